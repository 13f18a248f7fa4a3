# make demo   the whole loop on this machine: throw-away hosts, the real engine, a plan, a boot, a verdict
# make test   every layer, cheap to dear: quality, unit, hosts, scenarios with the stand-in and with the real engine
# Both install what they need (Debian packages as root, Python packages into .venv).
SHELL := /bin/bash
PYTEST := .venv/bin/python -m pytest

.PHONY: help setup demo test quality unit hosts engine scenarios bench clean

help:
	@sed -n 's/^# //p' Makefile | head -3

setup:
	@tests/setup

demo: setup
	@tests/demo/demo

test: setup
	$(PYTEST) tests/quality tests/unit tests/hosts tests/engine tests/scenarios

quality unit hosts engine scenarios: setup
	$(PYTEST) tests/$@

bench: setup
	@for b in tests/bench/bench_*.py; do echo "== $$b"; .venv/bin/python $$b || exit 1; done

clean:
	@tests/hosts/hosts down || true
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
