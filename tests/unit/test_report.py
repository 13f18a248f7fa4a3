# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of a report: state, headline and next step of each situation, odd data, and that nothing is better than its hosts."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import normalised
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_reasons import reasons_of
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_text import (
    count_words,
    duration,
    epoch_of,
    first_line,
    moment,
    number,
    shown,
    signed,
)
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_view import hosts_of, outliers
from ansible_collections.inferops.sglang.tests.unit import report_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

AGAIN = "Run again: hosts that were accepted are left as they are."


class Situation(NamedTuple):
    state: str
    headline: str
    next_step: str


SITUATIONS = {
    "all_accepted": Situation("accepted", "4 hosts accepted: every rank holds 200,000 tokens", "Nothing to do."),
    "canary_short": Situation(
        "refused", "gpu01.example.net refused, ranks TP0-TP7: 192,406 of 200,000 tokens, 7,594 short",
        "On gpu01.example.net: raise mem_fraction_static: run the playbook again with sglang_mem_fraction_static 0 (this boot is kept and "
        "the plan learns from it), or give this boot to memory_plan as observed.",
    ),
    "rank_lost": Situation(
        "refused", "gpu03.example.net refused, rank TP5: hang",
        "On gpu03.example.net: look what the rank waits for (py-spy dump --pid 205), and raise the "
        "timeout only if it still makes progress.",
    ),
    "unreachable": Situation(
        "stopped", "Stopped: gpu03.example.net unreachable; 2 of 8 hosts accepted",
        f"Make gpu03.example.net reachable, or leave it out of the inventory. {AGAIN}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_in_one_line_and_with_its_next_step(name: str) -> None:
    made = normalised(cases.SITUATIONS[name]())
    assert Situation(made["state"], made["headline"], made["next_step"]) == SITUATIONS[name]


def short(*hosts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return normalised({"id": "deploy-1", "finished": True, "batches": [], "hosts": list(hosts), **more})


def host(name: str, state: str | None = None, **more: Any) -> dict[str, Any]:
    return {"host": name, "state": state, **more}


FINE, FALLEN = host("a", "accepted"), host("b", "refused", refusal="no pool")
STATES = {
    "accepted": ("accepted", [FINE], {}),
    "unchanged hosts are fine": ("accepted", [FINE, host("b", "unchanged")], {}),
    "one refused": ("refused", [FINE, FALLEN], {"state": "accepted"}),
    "a refused host goes before an unreachable one": ("refused", [FALLEN, host("c", "unreachable")], {"state": "stopped"}),
    "one unreachable": ("stopped", [FINE, host("c", "unreachable")], {"state": "accepted"}),
    "one not judged": ("stopped", [FINE, host("c", "not judged")], {"state": "accepted"}),
    "one not reached": ("stopped", [FINE, host("c", "waiting")], {"state": "accepted"}),
    "a host whose turn did not end": ("stopped", [FINE, host("c", "under way")], {}),
    "a reason without a host": ("stopped", [FINE], {"stopped_because": "given from outside"}),
    "the caller knows worse": ("refused", [FINE], {"state": "refused"}),
    "a state that is none": ("accepted", [FINE], {"state": "splendid"}),
    "no host at all": ("stopped", [], {"state": "accepted"}),
    "under way, whatever was found": ("under way", [FALLEN], {"finished": False, "state": "accepted"}),
    "finished is said, not guessed": ("under way", [FINE], {"finished": "yes", "state": "accepted"}),
}


@pytest.mark.parametrize("name", STATES)
def test_the_state_is_never_better_than_the_hosts(name: str) -> None:
    state, hosts, more = STATES[name]
    assert short(*hosts, **more)["state"] == state


HOST_STATES = {
    "as given": ("unchanged", host("a", "unchanged")),
    "by its outcome": ("accepted", host("a", outcome="accepted")),
    "removed is accepted": ("accepted", host("a", outcome="removed")),
    "a check changes nothing": ("unchanged", host("a", outcome="checked")),
    "a verdict against it": ("refused", host("a", "accepted", verdict={"accepted": False})),
    "a refusal": ("refused", host("a", "accepted", refusal="the disk is full")),
    "a refused outcome": ("refused", host("a", "accepted", outcome="refused")),
    "nothing is known": ("waiting", host("a")),
    "no such state": ("waiting", host("a", "excellent")),
}


@pytest.mark.parametrize("name", HOST_STATES)
def test_what_speaks_against_a_host_is_stronger_than_its_state(name: str) -> None:
    state, given_host = HOST_STATES[name]
    assert [entry["state"] for entry in short(given_host)["hosts"]] == [state]


STEPS = {
    "given": ("Call Ada.", [FALLEN], {"next_step": "Call Ada."}),
    "nothing says what to do": ("Look at what speaks against b.", [FALLEN], {}),
    "many are lost": (f"Make a, b, c and 1 more reachable, or leave it out of the inventory. {AGAIN}",
                      [host(name, "unreachable") for name in "abcd"], {}),
    "not judged": ("Run again for c, without tags that leave the gate out.", [FINE, host("c", "not judged")], {}),
    "not reached": (AGAIN, [FINE, host("c", "waiting")], {}),
    "under way": ("Wait: this page is written anew after each batch.", [FINE], {"finished": False}),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_the_next_step(name: str) -> None:
    step, hosts, more = STEPS[name]
    assert short(*hosts, **more)["next_step"] == step


HEADLINES = {
    "nobody was touched": ("2 hosts looked at, nothing was changed", [host("a", outcome="checked"), host("b", outcome="checked")], {}),
    "removed": ("Removed from 1 host", [host("a", outcome="removed")], {}),
    "two fell": ("b refused, no pool; and 1 host more", [FALLEN, host("c", "refused", refusal="no card")], {}),
    "refused by its plan": ("b refused, Asked for 7, found 8",
                            [host("b", "refused", refusal="k26 on b: refused before anything was changed.\nAsked for 7, found 8")],
                            {}),
    "for no reason": ("b refused, for a reason that is not known", [host("b", "refused")], {}),
    "stopped by a rule": ("Stopped: given from outside", [FINE], {"stopped_because": "given from outside"}),
    "no host": ("Stopped: no host was reached", [], {}),
    "under way": ("Under way, batch 2: 1 of 3 hosts accepted, 1 refused",
                  [FINE, FALLEN, host("c")], {"finished": False, "batches": [["a"], ["b"]]}),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADLINES)
def test_the_headline(name: str) -> None:
    headline, hosts, more = HEADLINES[name]
    assert short(*hosts, **more)["headline"] == headline


def test_hosts_come_once_in_the_order_of_their_batches_also_those_that_only_a_batch_names() -> None:
    made = short(host("c"), host("a", "accepted"), host("a", "refused"), batches=[["b"], ["a"]], finished=False)
    assert [(entry["host"], entry["batch"], entry["state"]) for entry in made["hosts"]] == [
        ("b", 1, "under way"), ("a", 2, "refused"), ("c", None, "waiting"),
    ]  # fmt: skip
    assert made["counts"]["hosts"] == 3


def test_a_class_that_only_hosts_name_is_one() -> None:
    one = {"key": "k1", "title": "8 x H200"}
    made = short(host("a", "accepted", fleet_class=one), host("b", "accepted", fleet_class=one), classes=[{"key": "k0", "hosts": ["z"]}])
    assert made["classes"][1] == {"key": "k1", "title": "8 x H200", "hosts": ["a", "b"], "lesson": ""}


ODD = [
    None, [], "text", 3, {"hosts": {"a": 1}}, {"hosts": [None, 3, "a", [], {}, {"host": None}]},
    {"batches": "a", "classes": [None, "b"]},
    {"hosts": [{"host": "a", "boots": [None, {"ranks": "x", "phases": {"pool": "long"}, "failure": "no"}], "verdict": {"rows": [1]}}]},
    {"asked": [], "started_at": "now", "updated_at": float("nan")},
    {"hosts": [{"host": "a", "plan": "none", "starts": float("inf")}]},
]  # fmt: skip


@pytest.mark.parametrize("report", ODD, ids=range(len(ODD)))
def test_odd_data_make_a_report(report: Any) -> None:
    made = normalised(report)
    assert made["state"] in ("under way", "stopped")
    assert json.loads(json.dumps(made, allow_nan=False)) == made


@pytest.mark.parametrize("name", [name for name in cases.SITUATIONS if name != "large"])
def test_a_report_that_is_read_back_and_written_again_is_the_same(name: str) -> None:
    made = normalised(cases.SITUATIONS[name]())
    assert normalised(json.loads(json.dumps(made))) == made


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)  # fmt: skip
entries = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("host", "state", "boots", "verdict", "plan", "fleet_class", "returned", "findings", "batch"), anything),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(entries, max_size=3), anything)
def test_no_data_whatever_raise(hosts: list[dict[str, Any]], rest: Any) -> None:
    made = normalised({"hosts": hosts, "batches": rest, "classes": rest, "asked": rest, "finished": True})
    json.dumps(made, allow_nan=False)
    for one in hosts_of(made):
        assert isinstance(one.serves, str)
        assert all(rank.form in ("full", "short", "none", "odd") for rank in one.bars)


# --- what is shown of a host ------------------------------------------------------------------------------------------


def shown_host(name: str, which: int) -> Any:
    return hosts_of(normalised(cases.SITUATIONS[name]()))[which]


def test_a_start_that_fell_short() -> None:
    seen = shown_host("canary_short", 0)
    assert [(rank.name, rank.tokens, rank.spare, rank.left_gib, rank.form) for rank in seen.ranks][:2] == [
        ("TP0", 192406, -7594, 6.25, "short"), ("TP1", 192406, -7594, 6.24, "short"),
    ]  # fmt: skip
    assert (seen.smallest, seen.spare, seen.left_gib, seen.poolless) == (192406, -7594, 6.23, 0)
    assert seen.serves == "101,134 tokens at 0.8500"
    assert seen.serves_fully == "The last accepted service runs again (fraction 0.8500, 101,134 tokens)."
    # the plan was for another fraction: it says nothing about this start
    assert seen.prediction is None


def test_a_rank_that_never_came() -> None:
    seen = shown_host("rank_lost", 2)
    assert [(rank.name, rank.form, rank.phase) for rank in seen.ranks][4:6] == [("TP4", "full", "pool"), ("TP5", "none", "weights")]
    assert (seen.smallest, seen.poolless, seen.boot.kind, seen.boot.place, seen.boot.end) == (None, 1, "hang", "TP5", "failed")


def test_a_start_that_died_at_the_capture() -> None:
    seen = shown_host("oom_at_capture", 1)
    assert [rank.form for rank in seen.ranks] == ["full"] * 3 + ["odd"] + ["full"] * 4
    assert [phase.name for phase in seen.boot.phases] == ["starting", "weights", "pool", "capture"]
    assert seen.serves == "192,406 tokens at 0.9200"


def test_a_plan_against_the_start_that_it_led_to() -> None:
    seen = shown_host("all_accepted", 0)
    assert (seen.prediction.predicted, seen.prediction.tokens, seen.prediction.basis, seen.prediction.holds) == (
        200099, 200099, "observed", True,
    )  # fmt: skip
    assert [(boot.fraction, boot.tokens) for boot in seen.boots] == [(0.92, 192406), (0.9259, 200099)]


def test_hosts_of_a_class_that_are_not_as_the_others() -> None:
    hosts = hosts_of(normalised(cases.audit_outlier()))[:10]
    assert [one.name for one in hosts if one.index in outliers(hosts)] == ["gpu04.example.net"]
    assert outliers(hosts[:2]) == frozenset()


SERVING = {
    "nothing: removed": host("a", outcome="removed"),
    "what it served before": host("a", outcome="checked"),
    "not known": host("a", "unreachable"),
    "The service is stopped.": host("a", "refused", rolled_back="The service is stopped."),
    "nothing: stopped": host("a", "accepted", boots=[{"phase": "ready", "stopped": True}]),
    "5,000 tokens": host("a", "accepted", boots=[{"phase": "ready", "min_tokens": 5000}]),
}


@pytest.mark.parametrize("words", SERVING)
def test_what_a_host_serves_now(words: str) -> None:
    assert hosts_of(short(SERVING[words]))[0].serves == words


EVIDENCE = {
    "inside": ("/r/deploy-1/evidence/a b", ("evidence/a b/", "evidence/a%20b/")),
    "relative": ("evidence/a", ("evidence/a/", "evidence/a/")),
    "elsewhere": ("/var/log", ("/var/log", "")),
    "above": ("../../etc", ("../../etc", "")),
    "none": ("", ("", "")),
    "what a browser would run": ("javascript:alert(1)", ("javascript:alert(1)/", "javascript%3Aalert%281%29/")),
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_is_linked_only_inside_the_folder_of_the_report(name: str) -> None:
    path, expected = EVIDENCE[name]
    assert hosts_of(short(host("a", "refused", evidence=path)))[0].evidence("/r/deploy-1") == expected


def test_many_ranks_that_are_alike_share_a_bar() -> None:
    rows = [{"rank": f"TP{tp}", "tokens": 100, "left_gib": 5 + tp / 100, "word": "ok"} for tp in range(32)]
    rows[20] = {"rank": "TP20", "tokens": 90, "left_gib": 1.0, "word": "short"}
    seen = hosts_of(short(host("a", "refused", required_tokens=100, verdict={"rows": rows})))[0]
    assert [(rank.name, rank.form, rank.left_gib) for rank in seen.bars] == [
        ("TP0-TP19", "full", 5.0), ("TP20", "short", 1.0), ("TP21-TP31", "full", 5.21),
    ]  # fmt: skip


def test_findings_of_several_ranks_are_one() -> None:
    findings: list[dict[str, Any]] = [{"check": "pool", "rank": f"TP{tp}", "found": "1 of 2", "do": "raise"} for tp in (0, 1, 2, 4)]
    findings.append({"check": "flags", "rank": None, "found": "none", "do": ""})
    assert [reason.text for reason in reasons_of({"findings": findings})] == ["ranks TP0-TP2, TP4: 1 of 2", "none"]


# --- texts ------------------------------------------------------------------------------------------------------------

SHOWN = {
    "\x1b[31mred\x1b[0m \x1b]0;title\x07end": "red end",
    "null\x00 bell\x07": "null[U+0000] bell[U+0007]",
    "abc\u202ecba": "abc[U+202E]cba",
    "half \ud83d": "half [U+D83D]",
    "two\r\nlines\ttab": "two\nlines\ttab",
    "\U0001f468\u200d\U0001f469 \u05e9\u05dc\u05d5\u05dd": "\U0001f468\u200d\U0001f469 \u05e9\u05dc\u05d5\u05dd",
    "x" * 5000: "x" * 3996 + " ...",
    None: "",
    7: "7",
}


@pytest.mark.parametrize("value", SHOWN, ids=range(len(SHOWN)))
def test_what_a_log_says_is_made_visible(value: Any) -> None:
    assert shown(value) == SHOWN[value]


FORMS = [
    (duration, 4.24, "4.2 s"), (duration, 41, "41 s"), (duration, 412.07, "6 min 52 s"), (duration, 3900, "1 h 05 min"),
    (duration, None, "\u2013"), (duration, -3, "0.0 s"), (signed, 99, "+99"), (signed, -7594, "\u22127,594"), (signed, 0, "\u00b10"),
    (moment, 0.5, "1970-01-01 00:00:00 UTC"), (moment, 1e14, ""), (moment, None, ""),
    (epoch_of, "1970-01-01T00:01:00+00:00", 60.0), (epoch_of, "1970-01-01 00:01:00", 60.0), (epoch_of, "soon", None), (epoch_of, 3, None),
    (number, True, None), (number, float("nan"), None), (number, 10**400, None), (number, 3, 3.0), (number, "3", None),
    (first_line, "one\ntwo", "one"), (first_line, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("form", "value", "expected"), FORMS, ids=range(len(FORMS)))
def test_numbers_and_times_as_people_read_them(form: Any, value: Any, expected: Any) -> None:
    assert form(value) == expected


def test_one_and_many() -> None:
    assert [count_words(amount, "host") for amount in (0, 1, 1000)] == ["0 hosts", "1 host", "1,000 hosts"]
