# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong in a rollout to four hosts that serve: who was touched, what runs where, and what the run says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.fleet import INSTANCE, Fleet, Serving, kimi_fleet
from support.kimi import FREE_GIB

TOKENS, FRACTION = 200099, 0.9259
# a fault of the host itself: whatever starts there meets it
FAULT_FILE = "/run/standin-fault"
NUMBERS = iter(range(9, 99))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Four hosts that serve."""
    values = {"sglang_gate_settle_time": 1, "sglang_batches": ["100%"]}
    with kimi_fleet(tmp_path_factory.mktemp("faults"), "faults", 4, "infopoq", "10.79.35", installed=True, **values) as fleet:
        for number in range(4):
            fleet.faulty(number, STANDIN_FAULT_FILE=FAULT_FILE)
        run = fleet.play()
        assert (run.code, fleet.starts()) == (0, [1, 1, 1, 1]), run.text
        yield fleet


@pytest.fixture
def requests() -> int:
    """A value of --max-running-requests that no host has yet: a rollout of it restarts every server."""
    return next(NUMBERS)


def stands(before: list[Serving], after: list[Serving], requests: int) -> list[str]:
    """Of each host: untouched; new, if it serves what is asked; back, if it serves again what it did; else what it is."""
    words = []
    for old, new in zip(before, after):
        serves = (new.active, new.fraction, new.min_tokens) == ("active", FRACTION, TOKENS)
        if new == old:
            words.append("untouched")
        elif serves and new.max_running_requests == requests:
            words.append("new")
        elif serves and new.max_running_requests == old.max_running_requests:
            words.append("back")
        else:
            words.append(new.active)
    return words


@dataclass(frozen=True)
class Case:
    """A fault of one host, and what comes of it for each host."""

    host: int
    fault: dict[str, str]
    stands: list[str]
    states: list[str]
    says: list[str]
    asks: dict[str, Any] = field(default_factory=dict)


ONLY_THE_CANARY = (["back", "untouched", "untouched", "untouched"], ["refused", "waiting", "waiting", "waiting"])
REFUSED = {
    "the first host is short of tokens": Case(
        0, {"STANDIN_FREE_GIB": str(float(FREE_GIB) - 4)}, *ONLY_THE_CANARY, ["short", "200,000 tokens asked of every rank"]),
    "the first host has no memory for its graphs": Case(0, {"STANDIN_FAULT": "oom_capture"}, *ONLY_THE_CANARY, ["lower the fraction"]),
    "the first host ends and is started again": Case(0, {"STANDIN_FAULT": "crash_loop"}, *ONLY_THE_CANARY, ["REFUSED"]),
    "the first host hangs": Case(
        0, {"STANDIN_FAULT": "hang:capture"}, *ONLY_THE_CANARY, ["capture"], {"sglang_gate_phase_timeouts": {"capture": 3}}),
    "the second host loses a rank": Case(
        1, {"STANDIN_FAULT": "lost_rank:5"}, ["new", "back", "untouched", "untouched"], ["accepted", "refused", "waiting", "waiting"],
        ["TP5"], {"sglang_gate_phase_timeouts": {"weights": 5, "pool": 5, "capture": 5}}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_host_that_is_refused_ends_the_rollout_and_serves_what_it_did(served: Fleet, requests: int, name: str) -> None:
    case, before = REFUSED[name], served.serving()
    served.faulty(case.host, more=case.asks, STANDIN_FAULT_FILE=FAULT_FILE, **case.fault)
    run = served.play({"sglang_max_running_requests": requests})
    served.faulty(case.host, STANDIN_FAULT_FILE=FAULT_FILE)
    assert run.code == 2, run.text
    assert [word for word in case.says if word not in run.text] == [], run.text
    assert "The last accepted service runs again (fraction 0.9259, 200,099 tokens)" in run.text
    assert stands(before, served.serving(), requests) == case.stands
    report = served.report()
    assert (report["state"], report["finished"]) == ("refused", True)
    assert served.states() == case.states
    refused = report["hosts"][case.host]
    assert refused["refusal"]
    assert "The last accepted service runs again" in refused["rolled_back"]


def test_nothing_begins_while_one_host_cannot_be_planned_and_another_cannot_be_reached(served: Fleet, requests: int) -> None:
    before = served.serving()
    served.faulty(2, more={"sglang_tp_size": 7}, STANDIN_FAULT_FILE=FAULT_FILE)
    served.lose(3)
    run = served.play({"sglang_max_running_requests": requests})
    served.find(3)
    served.faulty(2, STANDIN_FAULT_FILE=FAULT_FILE)
    assert run.code == 4, run.text
    assert "found 2 that cannot take part; no host was changed" in run.text
    assert "faults-4: could not be reached" in run.text
    assert stands(before, served.serving(), requests) == ["untouched"] * 4
    assert (served.report()["state"], served.states()) == ("refused", ["waiting", "waiting", "refused", "unreachable"])


def test_a_first_host_that_is_lost_after_the_plan_ends_the_rollout(served: Fleet, requests: int) -> None:
    before = served.serving()
    run = served.play(
        {"sglang_max_running_requests": requests}, at={"task": "Run the role", "turn": 1, "run": served.losing(0)})
    served.find(0)
    assert run.code == 4, run.text
    assert stands(before, served.serving(), requests) == ["untouched"] * 4
    assert served.states()[1:] == ["waiting"] * 3


def test_a_host_that_is_lost_in_the_second_batch_stops_the_third(served: Fleet, requests: int) -> None:
    before = served.serving()
    run = served.play(
        {"sglang_max_running_requests": requests, "sglang_serving_batches": [1, 2, 1]},
        at={"task": "Run the role", "turn": 2, "run": served.losing(1)},
    )
    served.find(1)
    assert run.code == 2, run.text
    assert "1 of 3 earlier hosts without a pass in this run: faults-2" in run.text
    assert stands(before, served.serving(), requests) == ["new", "untouched", "new", "untouched"]
    assert served.report()["batches"] == [["faults-1"], ["faults-2", "faults-3"]]
    assert (served.report()["state"], served.states()) == ("stopped", ["accepted", "unreachable", "accepted", "waiting"])


HOOK = """\
- name: {name}
  ansible.builtin.file:
    path: "{folder}/{{{{ inventory_hostname }}}}"
    state: {state}
    mode: "0644"
  delegate_to: localhost
  become: false
"""


def test_a_run_that_is_killed_before_it_puts_a_server_back_is_finished_by_the_next(served: Fleet, requests: int) -> None:
    before, work = served.serving(), served.inventory.parent
    balancer = work / "balancer"
    balancer.mkdir()
    for host in served.hosts:
        (balancer / host.name).touch()
    (work / "out.yml").write_text(HOOK.format(name="Take it out", folder=balancer, state="absent"), encoding="utf-8")
    (work / "back.yml").write_text(HOOK.format(name="Put it back", folder=balancer, state="touch"), encoding="utf-8")
    values = {
        "sglang_max_running_requests": requests,
        "sglang_drain_tasks": str(work / "out.yml"),
        "sglang_undrain_tasks": str(work / "back.yml"),
    }

    killed = served.play(values, at={"task": "Put the server back into its balancers", "turn": 1, "run": "kill -KILL -$PPID"})
    assert killed.code == -9, killed.text
    middle = served.serving()
    assert stands(before, middle, requests) == ["new", "untouched", "untouched", "untouched"]
    assert sorted(path.name for path in balancer.iterdir()) == ["faults-2", "faults-3", "faults-4"]
    assert (served.report()["finished"], served.states()) == (False, ["under way", "waiting", "waiting", "waiting"])

    again = served.play(values)
    assert again.code == 0, again.text
    assert stands(middle, served.serving(), requests) == ["untouched", "new", "new", "new"]
    assert sorted(path.name for path in balancer.iterdir()) == [host.name for host in served.hosts]
    assert served.states() == ["unchanged", "accepted", "accepted", "accepted"]


def test_a_way_back_that_fails_is_said_and_the_next_run_mends_it(served: Fleet, requests: int) -> None:
    before = served.serving()
    served[0].shell(f"echo crash_loop >{FAULT_FILE}")
    run = served.play({"sglang_max_running_requests": requests})
    served[0].shell(f"rm {FAULT_FILE}")
    assert run.code == 2, run.text
    assert "The way back failed too" in run.text
    after = served.serving()
    assert [old == new for old, new in zip(before, after)] == [False, True, True, True]
    assert served.states() == ["refused", "waiting", "waiting", "waiting"]
    assert "The way back failed too" in served.report()["hosts"][0]["rolled_back"]
    assert served[0].shell(f"cat /var/lib/sglang/{INSTANCE}/receipt.json | grep -c {before[0].invocation}") == "1"

    mended = served.play({"sglang_max_running_requests": requests}, "--limit", "faults-1")
    assert mended.code == 0, mended.text
    assert stands(before, served.serving(), requests) == ["new", "untouched", "untouched", "untouched"]
