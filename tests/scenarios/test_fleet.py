# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout to four hosts that goes well: what one start teaches the others, and what never happens at once.

The estimate is wrong: the weights take 72.40 GiB of a rank and 71.40 are given. By that 0.9153 would do; SGLang's own sizing code gives
186,210 tokens there, and 200,099 at 0.9259.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from support.fleet import INSTANCE, Fleet, FleetRun, Serving, kimi_fleet

TOKENS, FRACTION = 200099, 0.9259
NAMES = ["fleet-1", "fleet-2", "fleet-3", "fleet-4"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    work = tmp_path_factory.mktemp("fleet")
    with kimi_fleet(work, "fleet", 4, "infopo", "10.79.34", sglang_weights_gib=71.398415, sglang_gate_settle_time=1) as booted:
        yield booted


@pytest.fixture(scope="module")
def first(fleet: Fleet) -> FleetRun:
    """The fleet from nothing."""
    return fleet.play()


def pauses(fleet: Fleet) -> list[tuple[float, float]]:
    """From the last stop of each host's server until the next one was ready, by the clock that the hosts share."""
    script = f"journalctl --all -o short-unix -u {INSTANCE}.service | grep -E 'Stopping |The server is fired up'"
    found = []
    for text in fleet.shell(script):
        stopped, ready = text.splitlines()[-2:]
        assert "Stopping " in stopped, text
        assert "fired up" in ready, text
        found.append((float(stopped.split()[0]), float(ready.split()[0])))
    return found


def test_a_wrong_estimate_costs_the_fleet_one_start(fleet: Fleet, first: FleetRun) -> None:
    assert first.code == 0, first.text
    assert fleet.starts() == [2, 1, 1, 1]
    assert [(host.active, host.fraction, host.min_tokens) for host in fleet.serving()] == [("active", FRACTION, TOKENS)] * 4
    report = fleet.report()
    assert (report["state"], report["finished"]) == ("accepted", True)
    assert report["batches"] == [["fleet-1"], ["fleet-2"], ["fleet-3", "fleet-4"]]
    assert [(host["host"], host["state"], host["starts"]) for host in report["hosts"]] == [
        ("fleet-1", "accepted", 2), ("fleet-2", "accepted", 1), ("fleet-3", "accepted", 1), ("fleet-4", "accepted", 1)]
    assert [one["hosts"] for one in report["classes"]] == [NAMES]
    assert [host["plan"]["basis"] for host in report["hosts"]] == ["observed"] * 4


@pytest.mark.usefixtures("first")
def test_a_second_run_changes_nothing(fleet: Fleet) -> None:
    before, starts, states = fleet.serving(), fleet.starts(), [host.state() for host in fleet.hosts]
    again = fleet.play()
    assert (again.code, again.changes()) == (0, dict.fromkeys(NAMES, 0)), again.text
    assert (fleet.serving(), fleet.starts()) == (before, starts)
    assert [host.state() for host in fleet.hosts] == states
    assert (fleet.report()["state"], fleet.states()) == ("accepted", ["unchanged"] * 4)


@pytest.mark.usefixtures("first")
def test_a_later_rollout_starts_each_host_once_and_no_two_at_a_time(fleet: Fleet) -> None:
    before = fleet.starts()
    run = fleet.play({"sglang_max_running_requests": 16})
    assert run.code == 0, run.text
    assert [now - then for now, then in zip(fleet.starts(), before)] == [1, 1, 1, 1]
    assert [(host.active, host.max_running_requests, host.min_tokens) for host in fleet.serving()] == [("active", 16, TOKENS)] * 4
    assert fleet.report()["batches"] == [[name] for name in NAMES]
    assert fleet.states() == ["accepted"] * 4
    ordered = sorted(pauses(fleet))
    assert [ready < stopped for (_began, ready), (stopped, _end) in zip(ordered, ordered[1:])] == [True, True, True], ordered


FORGED = {
    "the pass": ["-e", "sglang_gate_passed=true"],
    "the outcome": ["-e", '{"__sglang_outcome": {"outcome": "accepted"}}'],
    "the rollout": ["-e", '{"__sglang_rollout": {"id": "deploy-1", "free": ["fleet-1"], "serving": []}}'],
}


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("case", FORGED)
def test_what_only_a_run_may_say_is_not_taken_from_its_command_line(fleet: Fleet, case: str) -> None:
    before = fleet.serving()
    run = fleet.play({"sglang_max_running_requests": 32}, *FORGED[case])
    assert run.code == 2, run.text
    assert "given from outside" in run.text
    assert fleet.serving() == before


@pytest.mark.usefixtures("first")
def test_a_pass_in_the_inventory_is_none(fleet: Fleet) -> None:
    before = fleet.serving()
    fleet.ask(1, sglang_gate_passed=True)
    run = fleet.play({"sglang_max_running_requests": 32})
    fleet.ask(1)
    assert run.code == 2, run.text
    assert "sglang_gate_passed of fleet-2" in run.text
    assert fleet.serving() == before


def changed(before: list[Serving], after: list[Serving]) -> list[bool]:
    return [old != new for old, new in zip(before, after)]


@pytest.mark.usefixtures("first")
def test_limit_rolls_out_to_those_hosts_alone(fleet: Fleet) -> None:
    before = fleet.serving()
    run = fleet.play({"sglang_max_running_requests": 24}, "--limit", "fleet-2")
    assert run.code == 0, run.text
    after = fleet.serving()
    assert changed(before, after) == [False, True, False, False]
    assert (after[1].max_running_requests, after[1].min_tokens) == (24, TOKENS)
    assert [(host["host"], host["state"]) for host in fleet.report()["hosts"]] == [("fleet-2", "accepted")]


@pytest.mark.usefixtures("first")
def test_check_shows_the_rollout_and_changes_nothing(fleet: Fleet) -> None:
    before, states, report = fleet.serving(), [host.state() for host in fleet.hosts], fleet.report()["id"]
    run = fleet.play({"sglang_max_running_requests": 40}, "--check", "--diff")
    assert run.code == 0, run.text
    assert len(re.findall(r"restart because: .*--max-running-requests \d+ -> 40", run.text)) >= 4, run.text
    assert (fleet.serving(), [host.state() for host in fleet.hosts]) == (before, states)
    assert fleet.report()["id"] == report


@pytest.mark.usefixtures("first")
def test_a_run_that_leaves_the_plan_out_deploys_nothing(fleet: Fleet) -> None:
    before, states = fleet.serving(), [host.state() for host in fleet.hosts]
    run = fleet.play({"sglang_max_running_requests": 40}, "--start-at-task", "Run the role")
    assert "changed=1" not in run.text, run.text
    assert (fleet.serving(), [host.state() for host in fleet.hosts]) == (before, states)
