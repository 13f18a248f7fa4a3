# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may go on in a rollout, and what its report says of each host."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.plugin_utils import _rollout
from ansible_collections.inferops.sglang.plugins.plugin_utils._rollout import Survey

CLASS = {"key": "0123456789ab", "title": "8 x RTX PRO 6000 96 GB, SGLang 0.5.12.post1"}
NEW = Survey("gpu01", "start", "start: it does not run", fleet_class=CLASS, required_tokens=200000)
SAME = Survey("gpu02", "nothing", "nothing to do", fleet_class=CLASS, required_tokens=200000)
BUSY = Survey("gpu03", "restart", "restart because: tp-size", serving=True, fleet_class=CLASS, required_tokens=200000)
LOST = Survey("gpu04", reached=False)
BAD = Survey("gpu05", refused="Asked for 8 cards, found 7; look at the eighth\nand more")
PLANNED = {"id": "deploy-1", "free": ["gpu01", "gpu02"], "serving": ["gpu03", "gpu06", "gpu07"]}


@pytest.mark.parametrize(
    ("facts", "planned", "reached"),
    [
        ({"__sglang_survey": {"action": "start", "serving": False}}, True, True),
        ({"__sglang_survey": {"refused": "no"}}, False, True),
        ({"__sglang_survey": {}}, False, False),
        ({}, False, False),
    ],
)
def test_a_host_without_a_survey_was_not_reached(facts: dict[str, Any], planned: bool, reached: bool) -> None:
    survey = _rollout.survey_of("gpu01", facts)
    assert (survey.planned, survey.reached) == (planned, reached)


@pytest.mark.parametrize(
    ("extra", "facts", "opening", "found"),
    [
        ([], {"gpu01": {}}, True, []),
        (["sglang_context_length", "sglang_batches"], {"gpu01": {}}, True, []),
        (["sglang_gate_passed"], {"gpu01": {"sglang_gate_passed": True}}, True, ["sglang_gate_passed"]),
        (["__sglang_outcome", "__sglang_rollout"], {}, False, ["__sglang_outcome", "__sglang_rollout"]),
        ([], {"gpu01": {}, "gpu02": {"sglang_gate_passed": False}}, True, ["sglang_gate_passed of gpu02"]),
        # in a later batch earlier hosts have theirs
        ([], {"gpu02": {"sglang_gate_passed": True}}, False, []),
    ],
)
def test_a_pass_is_given_by_this_run_alone(extra: list[str], facts: dict[str, Any], opening: bool, found: list[str]) -> None:
    assert _rollout.forged(extra, facts, opening) == found


@pytest.mark.parametrize(
    ("batches", "fits"),
    [
        (1, True),
        ("4", True),
        ("10 %", True),
        ([1, "10%", "50%", "100%"], True),
        # one batch of all hosts by Ansible's reckoning
        (0, False),
        (-1, False),
        ("-50%", False),
        ([], False),
        ([1, 0], False),
        # an error of Ansible's own, in the middle of the run
        ("", False),
        ("1,4", False),
        (None, False),
        ({"first": 1}, False),
        (True, False),
        (1.5, False),
        ("0%", False),
    ],
)
def test_batches_are_what_they_say(batches: Any, fits: bool) -> None:
    refusal = _rollout.refusal_of_batches({"sglang_batches": 1, "sglang_serving_batches": batches})
    assert refusal.startswith("" if fits else "sglang_serving_batches: asked for batches of ")
    assert bool(refusal) is not fits


def test_a_rollout_begins_only_if_every_host_can_take_part() -> None:
    assert _rollout.refusal_of_plan([NEW, SAME, BUSY]) == ""
    assert _rollout.refusal_of_plan([NEW, LOST, BAD]).splitlines() == [
        "Asked to roll out 3 hosts, found 2 that cannot take part; no host was changed",
        "  - gpu05: Asked for 8 cards, found 7; look at the eighth (the rest stands above)",
        "  - gpu04: could not be reached",
        "    do: mend them and run again, or leave them out with --limit 'all:!gpu05:!gpu04'",
    ]


def test_a_way_back_is_refused_as_one() -> None:
    assert _rollout.refusal_of_plan([NEW, LOST], "rollback").startswith("Asked to roll back 2 hosts, found 1 that cannot take part; ")


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("", ""),
        ("~/boots", ""),
        ("/srv/boots", ""),
        (
            "~no-such-user/boots",
            "boots: asked for ~no-such-user/boots, found no such user on the controller; give an absolute path, or one that begins with ~/",
        ),
    ],
)
def test_a_folder_of_nobody_is_refused_before_it_is_needed(path: str, refusal: str) -> None:
    assert _rollout.refusal_of_folder("boots", path) == refusal


def test_a_refusal_that_opens_a_list_says_what_is_on_it() -> None:
    # a limit that leaves nobody is no way on
    bad = Survey("gpu05", refused="Validation of arguments failed:\nargument 'sglang_port' is of type str")
    assert _rollout.refusal_of_plan([bad]).splitlines() == [
        "Asked to roll out gpu05, found 1 that cannot take part; no host was changed",
        "  - gpu05: Validation of arguments failed: argument 'sglang_port' is of type str",
        "    do: mend them and run again",
    ]


def test_hosts_that_nobody_misses_come_first() -> None:
    # a host that stays as it is teaches nothing: it is no canary
    assert _rollout.order_of([BUSY, SAME, NEW, LOST, BAD]) == (["gpu01", "gpu02"], ["gpu03"])


@pytest.mark.parametrize(
    ("play", "batch", "earlier"),
    [
        (["gpu01", "gpu02"], ["gpu01"], []),
        (["gpu01", "gpu02"], ["gpu02"], ["gpu01"]),
        # the second play waits for all of the first
        (["gpu03", "gpu06", "gpu07"], ["gpu03"], ["gpu01", "gpu02"]),
        (["gpu03", "gpu06", "gpu07"], ["gpu06", "gpu07"], ["gpu01", "gpu02", "gpu03"]),
        # the first host of a batch was lost before it opened: what lies before it counts all the same
        (["gpu03", "gpu06", "gpu07"], ["gpu07"], ["gpu01", "gpu02", "gpu03", "gpu06"]),
    ],
)
def test_earlier_hosts(play: list[str], batch: list[str], earlier: list[str]) -> None:
    assert _rollout.earlier_hosts(PLANNED, play, batch) == earlier


@pytest.mark.parametrize(
    ("rollout", "play", "batch", "earlier", "passed", "words"),
    [
        (PLANNED, ["gpu01", "gpu02"], ["gpu02"], ["gpu01"], ["gpu01"], []),
        (PLANNED, ["gpu01", "gpu02"], ["gpu01"], [], [], []),
        (PLANNED, ["gpu01", "gpu02"], ["gpu02"], ["gpu01"], [], ["1 of 1 earlier hosts", "gpu01", "run again"]),
        (PLANNED, ["gpu03", "gpu07"], ["gpu07"], ["gpu01", "gpu02", "gpu03"], ["gpu01", "gpu03"], ["1 of 3 earlier hosts", "gpu02"]),
        # a group of the inventory that has the name of one of ours
        (PLANNED, ["gpu01", "gpu09"], ["gpu01"], [], [], ["gpu09", "rename it"]),
        (PLANNED, ["gpu01", "gpu02", "gpu03"], ["gpu01"], [], [], ["gpu03", "rename it"]),
        ({}, ["gpu01"], ["gpu01"], [], [], ["--start-at-task", "from its beginning"]),
    ],
)
def test_a_batch_opens_only_behind_passes(
    rollout: dict[str, Any], play: list[str], batch: list[str], earlier: list[str], passed: list[str], words: list[str]
) -> None:
    refusal = _rollout.refusal_of_batch(rollout, play, batch, earlier, passed)
    assert bool(refusal) == bool(words)
    assert [word for word in words if word not in refusal] == []


def report() -> dict[str, Any]:
    return _rollout.new_report("deploy", "deploy-1", "sglang-k26", "0.5.12.post1", [NEW, SAME, BUSY], 10.0)


def states(found: dict[str, Any]) -> dict[str, str]:
    return {host["host"]: host["state"] for host in found["hosts"]}


def test_a_report_follows_the_batches() -> None:
    found = report()
    assert states(found) == {"gpu01": "waiting", "gpu02": "waiting", "gpu03": "waiting"}
    assert found["asked"] == {"required_tokens": 200000, "instance": "sglang-k26", "sglang_version": "0.5.12.post1"}
    assert found["classes"] == [{**CLASS, "hosts": ["gpu01", "gpu02", "gpu03"], "lesson": ""}]
    found = _rollout.opened(found, ["gpu01", "gpu02"], 11.0)
    assert states(found) == {"gpu01": "under way", "gpu02": "under way", "gpu03": "waiting"}
    # all of them may be lost, and then nobody writes again
    assert found["next_step"].startswith("Batch 1 is under way (gpu01, gpu02). If this run has ended, it was lost")
    outcomes = {"gpu01": {"outcome": "accepted", "starts": 2}, "gpu02": {"outcome": "accepted", "starts": 0}}
    found = _rollout.judged(found, outcomes, ["gpu01", "gpu02"], ["gpu01", "gpu02"], 12.0)
    assert states(found) == {"gpu01": "accepted", "gpu02": "unchanged", "gpu03": "waiting"}
    assert (found["finished"], found["state"], found["batches"], found["next_step"]) == (False, "under way", [["gpu01", "gpu02"]], "")
    found = _rollout.opened(found, ["gpu03"], 13.0)
    found = _rollout.judged(found, {"gpu03": {"outcome": "accepted", "starts": 1}}, ["gpu03"], ["gpu03"], 14.0)
    assert (found["finished"], found["state"], found["updated_at"]) == (True, "accepted", 14.0)
    assert [host["batch"] for host in found["hosts"]] == [1, 1, 2]


@pytest.mark.parametrize(
    ("outcomes", "passed", "state", "why"),
    [
        ({"gpu01": {"outcome": "refused", "refusal": "short"}}, [], "refused", "gpu01 refused"),
        ({}, [], "unreachable", "gpu01 lost"),
        # tags left the gate out
        ({"gpu01": {"outcome": ""}}, [], "not judged", "gpu01 not judged"),
        # an outcome is no pass
        ({"gpu01": {"outcome": "accepted", "starts": 1}}, [], "not judged", "gpu01 not judged"),
    ],
)
def test_a_report_that_stops_says_where(outcomes: dict[str, Any], passed: list[str], state: str, why: str) -> None:
    found = _rollout.judged(_rollout.opened(report(), ["gpu01"], 11.0), outcomes, passed, ["gpu01"], 12.0)
    assert states(found) == {"gpu01": state, "gpu02": "waiting", "gpu03": "waiting"}
    assert (found["finished"], found["state"], found["stopped_because"]) == (True, "stopped", why)


def test_a_batch_that_never_came_back_is_said_by_the_next() -> None:
    found = _rollout.stopped(_rollout.opened(report(), ["gpu01"], 11.0), "gpu01 has no pass", 12.0)
    assert states(found)["gpu01"] == "unreachable"
    assert (found["finished"], found["stopped_because"]) == (True, "gpu01 has no pass")


def test_the_plan_of_a_rollout_for_a_person() -> None:
    assert _rollout.plan_lines([NEW, SAME, BUSY], report()) == [
        "Rollout deploy-1: sglang-k26 on 3 hosts",
        "  class   8 x RTX PRO 6000 96 GB, SGLang 0.5.12.post1: gpu01, gpu02, gpu03",
        "  first   2 that serve nothing or need no restart: gpu01, gpu02",
        "  then    1 whose server is stopped for it: gpu03",
    ]


def test_what_a_class_has_learnt_stands_in_its_report() -> None:
    lesson = {"host": "gpu01", "boot": {"min_tokens": 200099, "server_args": {"mem_fraction_static": 0.9259}}}
    assert _rollout.taught(report(), {CLASS["key"]: [lesson]})["classes"][0]["lesson"] == "gpu01 showed 200,099 tokens at 0.9259"
    assert _rollout.taught(report(), {"other": [lesson]})["classes"][0]["lesson"] == ""
