# make plan   what Kimi K2.6 needs on eight cards of 96 GB, as a table; ARGS='-e sglang_version=0.5.23' asks for something else
# make demo   the whole loop on this machine: throw-away hosts, the real engine, a plan, a boot, a verdict
# make test   every layer, cheap to dear: quality, unit, SGLang's own sizing, hosts, scenarios with the stand-in and the real engine
# make differential   the plan against the sizing code of every SGLang release, all cases
# make accuracy   docs/accuracy.md anew, from the last `make differential` and the figures of boots kept under tests
# Each installs what it needs: Python packages into .venv, and all but the first Debian packages too, as root.
SHELL := /bin/bash
PYTEST := .venv/bin/python -m pytest

.PHONY: help setup plan demo test quality unit hosts engine scenarios differential accuracy bench clean

help:
	@sed -n 's/^# //p' Makefile | head -6

setup:
	@tests/setup

plan:
	@tests/setup controller
	@ANSIBLE_COLLECTIONS_PATH=.cache/collections ANSIBLE_CALLBACK_RESULT_FORMAT=yaml ANSIBLE_PIPELINING=true \
		ANSIBLE_LOCALHOST_WARNING=false ANSIBLE_INVENTORY_UNPARSED_WARNING=false .venv/bin/ansible-playbook inferops.sglang.plan_k26 $(ARGS)

demo: setup
	@tests/demo/demo

# One process for each of two cores. Files with hosts of their own stay whole, in the order of their names: sorted by their number of
# tests the longest would come last.
TWO := --numprocesses 2
TWO_FILES := $(TWO) --dist loadfile --no-loadscope-reorder

test: setup
	@status=0; \
	$(PYTEST) $(TWO) tests/quality tests/unit tests/differential || status=1; \
	$(PYTEST) -m alone tests/scenarios || status=1; \
	$(PYTEST) $(TWO_FILES) -m "not alone" tests/hosts tests/engine tests/scenarios || status=1; \
	exit $$status

quality unit hosts engine scenarios: setup
	$(PYTEST) tests/$@

differential: setup
	DIFFERENTIAL=whole $(PYTEST) tests/differential

accuracy: setup
	.venv/bin/python tests/accuracy/make_accuracy.py

bench: setup
	@for b in tests/bench/bench_*.py; do echo "== $$b"; .venv/bin/python $$b || exit 1; done

clean:
	@tests/hosts/hosts down || true
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
