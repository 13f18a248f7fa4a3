# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts beside one another: the document that questions are asked of, what sets a host apart, the table, the report, the questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._audit import Terms, audit_of
from ansible_collections.inferops.sglang.plugins.module_utils._audit_host import read_host
from ansible_collections.inferops.sglang.plugins.plugin_utils import _query
from ansible_collections.inferops.sglang.plugins.plugin_utils._audit_fleet import MOST_ROWS, document_of, headline, report_of, table_of
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import against, normalised
from ansible_collections.inferops.sglang.tests.unit.audit_cases import BOOT, RECEIPT, RUNNING, STATE, FakeHost, changed, kept

NOW = 1796022000.7
DOCS = Path(__file__).parents[2] / "docs/audit.md"


def serving(tokens: int = 200099, fraction: float = 0.9259, health: int = 200, **files: str) -> dict[str, Any]:
    """What the module returns for a host whose ranks hold so many tokens."""
    boot = changed(
        BOOT, ranks__0__target={"tokens": tokens}, ranks__1__target={"tokens": tokens}, min_tokens=tokens, max_total_num_tokens=tokens,
        server_args__mem_fraction_static=fraction,
    )  # fmt: skip
    receipt = changed(RECEIPT, flags={**RECEIPT["flags"], "mem-fraction-static": str(fraction)}, predicted_tokens=tokens)
    host = FakeHost(boots={"k26.service": (boot, RUNNING, ())}, health=health)
    host.files.update({**kept("receipt.json", receipt), **files})
    return {"changed": False, "audit": audit_of(read_host(STATE, host.eyes()), Terms())}


LOST = {"unreachable": True, "changed": False, "msg": "Task failed: Failed to connect to the host via ssh:\nNo route to host"}
BROKEN = {"failed": False, "msg": "No start of json char found", "module_stderr": "/bin/sh: 1: sudo: not found\n"}
EMPTY = {"audit": {"instances": [], "gpus": [], "idle_gib": 0, "findings": [], "warnings": []}}


def document(**hosts: Any) -> dict[str, Any]:
    return document_of(hosts, NOW)


def notes(found: dict[str, Any], host: str) -> list[str]:
    return next(one for one in found["hosts"] if one["name"] == host)["instances"][0]["warnings"]


HOSTS = [
    ("a server", serving(), "accepted", []),
    ("a server that does not answer", serving(health=503), "refused", ["answer"]),
    ("no server", EMPTY, "refused", ["instance"]),
    ("a host that is lost", LOST, "unreachable", ["reach"]),
    ("a host of which nothing was heard", None, "unreachable", ["reach"]),
    ("a host on which the module cannot run", BROKEN, "not judged", ["read"]),
    ("cards that cannot be read", {"audit": {**serving()["audit"], "findings": [
        {"check": "gpus", "rank": None, "asked": "the cards", "found": "none", "do": "look"}]}}, "refused", ["gpus"]),
]  # fmt: skip


@pytest.mark.parametrize(("result", "state", "checks"), [case[1:] for case in HOSTS], ids=[case[0] for case in HOSTS])
def test_each_host_is_judged_and_only_what_is_known_to_be_good_is_accepted(result: Any, state: str, checks: list[str]) -> None:
    found = document(a=result)
    assert (found["hosts"][0]["state"], found["hosts"][0]["checks"]) == (state, checks)
    assert found["accepted"] is found["hosts"][0]["accepted"] is (state == "accepted")
    assert found["counts"][state] == 1


def test_what_a_host_said_is_told() -> None:
    assert document(a=BROKEN)["hosts"][0]["findings"][0]["found"] == "No start of json char found: /bin/sh: 1: sudo: not found"


def test_no_host_at_all_is_not_accepted() -> None:
    assert document()["accepted"] is False


def test_the_figures_of_a_host_are_those_of_its_servers() -> None:
    found = document(a=serving(), b=LOST)
    keys = ("min_tokens", "required_tokens", "headroom_gib", "mem_fraction_static", "units", "sglang_versions", "answering", "restarts")
    assert [{key: host[key] for key in keys} for host in found["hosts"]] == [
        {"min_tokens": 200099, "required_tokens": 200000, "headroom_gib": 6.34, "mem_fraction_static": 0.9259, "units": ["k26.service"],
         "sglang_versions": ["0.5.23"], "answering": True, "restarts": 0},
        {"min_tokens": 0, "required_tokens": 0, "headroom_gib": None, "mem_fraction_static": None, "units": [], "sglang_versions": [],
         "answering": False, "restarts": 0},
    ]  # fmt: skip
    assert (found["id"], found["at"]) == ("audit-20261130T070000Z", 1796022001)


def test_what_sets_a_server_apart_from_its_class() -> None:
    found = document(a=serving(), b=serving(200150), c=serving(183000, 0.9), d=serving(200120, 0.925), e=serving(215000))
    assert len(found["classes"]) == 1
    assert (found["classes"][0]["min_tokens"], found["classes"][0]["mem_fraction_static"]) == (200120, 0.9259)
    assert {name: notes(found, name) for name in "abcde"} == {
        "a": [],
        "b": [],
        "c": ["183,000 tokens, 17,120 fewer than the 200,120 of its class (5 servers); its fraction is 0.9000, theirs 0.9259"],
        "d": ["its fraction 0.9250 is under the 0.9259 of its class (5 servers)"],
        "e": ["215,000 tokens, 14,880 more than the 200,120 of its class (5 servers)"],
    }


def test_of_two_the_lesser_is_the_odd_one() -> None:
    found = document(a=serving(), b=serving(183000))
    assert (notes(found, "a"), len(notes(found, "b"))) == ([], 1)


def test_another_model_is_another_class() -> None:
    other = changed(RECEIPT, checkpoints={"model": {"fingerprint": "bb22"}})
    found = document(a=serving(), b=serving(**kept("receipt.json", other)))
    assert len({entry["key"] for entry in found["classes"]}) == 2
    assert notes(found, "b") == []


def test_the_table() -> None:
    found = document(gpu1=serving(), gpu2=serving(183000, health=503), gpu3=LOST, gpu4=EMPTY)
    assert table_of(found) == [
        "Audit: 1 of 4 hosts accepted, 2 refused (gpu2, gpu4), 1 unreachable (gpu3)",
        "  host  unit  SGLang     pool    asked  GiB left  fraction  verdict",
        "  gpu1  k26   0.5.23  200,099  200,000      6.34    0.9259  accepted",
        "  gpu2  k26   0.5.23  183,000  200,000      6.34    0.9259  pool, answer",
        "  gpu3  -     -             -        -         -         -  unreachable",
        "  gpu4  -     -             -        -         -         -  refused",
        "gpu2 k26:",
        "  - pool: TP0 and TP1: 183,000 of 200,000 tokens, 17,000 short",
        "    do: raise mem_fraction_static: run the playbook again with sglang_mem_fraction_static 0 (this boot is kept and the plan "
        "learns from it), or give this boot to memory_plan as observed",
        "  - answer: status 503",
        "    do: look what the server does: journalctl -u k26.service -e",
        "gpu3:",
        "  - reach: Failed to connect to the host via ssh: No route to host",
        "    do: see that it runs and that Ansible reaches it",
        "gpu4:",
        "  - instance: no unit that starts SGLang, by the role or by hand",
        "    do: run the playbook for this host, or take it out of the group that is audited",
        "  note: gpu2 k26: 183,000 tokens, 17,099 fewer than the 200,099 of its class (2 servers)",
    ]


def test_of_a_large_fleet_what_is_well_shares_a_line() -> None:
    hosts = {f"gpu{number:03}": serving(200099 + number) for number in range(MOST_ROWS)}
    lines = table_of(document(**hosts, bad=serving(health=503)))
    assert lines[:4] == [
        "Audit: 40 of 41 hosts accepted, 1 refused (bad)",
        "  host       unit  SGLang             pool    asked  GiB left  fraction  verdict",
        "  bad        k26   0.5.23          200,099  200,000      6.34    0.9259  answer",
        "  (40 more)  k26   0.5.23  200,099-200,138  200,000      6.34    0.9259  accepted",
    ]


def test_many_names_are_cut() -> None:
    assert headline(document(**{f"h{number}": LOST for number in range(10)})) == (
        "0 of 10 hosts accepted, 10 unreachable (h0, h1, h2, h3, h4, h5, h6, h7 and 2 more)"
    )


def test_the_report() -> None:
    found = document(gpu1=serving(), gpu2=serving(health=503), gpu3=LOST, gpu4=EMPTY)
    report = normalised(report_of(found, {"instance": ""}))
    assert (report["kind"], report["id"], report["state"], report["asked"]["required_tokens"]) == (
        "audit", "audit-20261130T070000Z", "refused", 200000,
    )  # fmt: skip
    assert [(host["host"], host["state"]) for host in report["hosts"]] == [
        ("gpu1", "accepted"), ("gpu2", "refused"), ("gpu3", "unreachable"), ("gpu4", "refused"),
    ]  # fmt: skip
    assert [[reason.text for reason in against(host)] for host in report["hosts"]] == [
        [], ["status 503"],
        ["Failed to connect to the host via ssh: No route to host; see that it runs and that Ansible reaches it"],
        ["no unit that starts SGLang, by the role or by hand"],
    ]  # fmt: skip
    assert against(report["hosts"][3])[0].do == "run the playbook for this host, or take it out of the group that is audited"
    assert report["hosts"][0]["boots"][0]["min_tokens"] == 200099
    assert report["hosts"][0]["plan"] == {
        "mem_fraction_static": 0.9259, "predicted_tokens": 200099, "headroom_gib": 6.4, "basis": "observed",
    }  # fmt: skip


def test_servers_of_one_host_are_entries_of_their_own() -> None:
    both = serving()
    other = serving(health=503)["audit"]["instances"][0]
    both["audit"]["instances"].append({**other, "name": "other", "unit": "other.service"})
    report = normalised(report_of(document(gpu1=both), {}))
    assert [(host["host"], host["state"]) for host in report["hosts"]] == [("gpu1 k26", "accepted"), ("gpu1 other", "refused")]


# --- questions --------------------------------------------------------------------------------------------------------

FLEET = document(
    gpu1=serving(),
    gpu2=serving(183000, 0.9),
    gpu3=LOST,
    gpu4=serving(health=503, **kept("drained.json", {"taken_out": ["lb1"]})),
)
ANSWERS: dict[str, Any] = {
    "hosts[?min_tokens < `200000`].name": ["gpu2", "gpu3"],
    "hosts[?!accepted].[name, checks]": [["gpu2", ["pool"]], ["gpu3", ["reach"]], ["gpu4", ["answer", "drained"]]],
    "hosts[?state == 'unreachable'].name": ["gpu3"],
    "hosts[?drained].name": ["gpu4"],
    "hosts[?headroom_gib < `8`].{host: name, left: headroom_gib}": [
        {"host": "gpu1", "left": 6.34}, {"host": "gpu2", "left": 6.34}, {"host": "gpu4", "left": 6.34},
    ],
    "min_by(hosts[?headroom_gib], &headroom_gib).name": "gpu1",
    "hosts[].instances[?sglang_version != '0.5.24'][].unit | length(@)": 3,
    "hosts[].instances[].{host_unit: unit, ranks: allocation.ranks[?target.tokens < `200000`].tp} | [?ranks].ranks[]": [0, 1],
    "classes[].{class: title, hosts: length(hosts)}": [{"class": "cuda, SGLang 0.5.23, k26", "hosts": 3}],
}  # fmt: skip


@pytest.mark.parametrize(("question", "answer"), ANSWERS.items(), ids=ANSWERS)
def test_questions_of_the_manual_have_answers(question: str, answer: Any) -> None:
    assert _query.query(FLEET, question) == answer


def test_every_question_of_the_manual_is_one_of_these() -> None:
    block = DOCS.read_text(encoding="utf-8").split("```jmespath\n")[1].split("```")[0]
    assert [line for line in block.splitlines() if not line.startswith("#")] == list(ANSWERS)


MISTAKES = [
    ("hosts[?min_tokens < 200000].name", "found '200000].name' at character 21, where it cannot stand; write the number in backticks, `20"),
    ("hosts[?min_tokens < ].name", "at character 21, where it cannot stand; if there was a number in backticks, the shell took it away"),
    ("hosts[?min_tokens < '200000'].name", "found a comparison by size with the text '200000'; write the number in backticks: `200000`"),
    ("hosts[?min_tokens", "that it ends where more must come"),
    ("hosts[?min_tokens < name].name", "found that values cannot be compared ('<' not supported between instances of 'int' and 'str')"),
    ("no_such(hosts)", "no_such"),
    ("max_by(hosts, &headroom_gib)", "found In function max_by(), invalid type"),
    ("", "no expression; give one, for example hosts[?min_tokens < `200000`].name"),
    (7, "no expression"),
]


@pytest.mark.parametrize(("question", "words"), MISTAKES)
def test_a_question_that_is_none_says_why(question: Any, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=re.escape(words)):
        _query.query(FLEET, question)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(_query, "import_module", missing)
    with pytest.raises(AnsibleFilterError, match=r"found no library jmespath .*; install it .*: pip install jmespath==1\.1\.0"):
        _query.query({}, "a")


def test_the_library_is_the_one_that_is_asked_for() -> None:
    pinned = [line.split("#")[0].strip() for name in ("requirements.txt", "meta/ee-requirements.txt")
              for line in (DOCS.parents[1] / name).read_text(encoding="utf-8").splitlines() if line.startswith("jmespath")]  # fmt: skip
    assert pinned == ["jmespath==1.1.0"] * 2


def test_what_is_no_data_is_said() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(AnsibleFilterError, match="asked a question of list, found that it is no JSON"):
        _query.query(endless, "a")


QUESTIONS = [
    (["sglang_audit_query=hosts[?a < `1`].name"], "hosts[?a", "hosts[?a < `1`].name"),
    (["sglang_audit_query=hosts[?a == 'x'].name"], "hosts[?a", "hosts[?a == 'x'].name"),
    (["sglang_audit_query=hosts[].{a: b}"], "hosts[].{a:", "hosts[].{a: b}"),
    (["sglang_audit_query=hosts[].name"], "hosts[].name", "hosts[].name"),
    (["sglang_audit_query=hosts[].name sglang_instance=x"], "hosts[].name", "hosts[].name"),
    (["sglang_audit_query='hosts[?a < `1`].name' b=c"], "hosts[?a < `1`].name", "hosts[?a < `1`].name"),
    (['{"sglang_audit_query": "a < b"}'], "a < b", "a < b"),
    (["sglang_audit_query=old < x", "sglang_audit_query=a < b"], "a", "a < b"),
    (["other=hosts[?a < `1`].name"], "hosts[?a", "hosts[?a"),
    ([], "a", "a"),
]


@pytest.mark.parametrize(("options", "asked", "question"), QUESTIONS)
def test_a_question_with_blanks_is_taken_whole(options: list[str], asked: str, question: str) -> None:
    assert _query.whole_question(asked, options, "sglang_audit_query") == question
