# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit finds on one host: which units are servers, and for each way in which one may be wrong the words that say it."""

from __future__ import annotations

import re
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._audit import Terms, audit_of
from ansible_collections.inferops.sglang.plugins.module_utils._audit_host import probe_status, read_host
from ansible_collections.inferops.sglang.plugins.module_utils._audit_metrics import FAMILIES, metrics_of
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError
from ansible_collections.inferops.sglang.plugins.modules import audit_info
from ansible_collections.inferops.sglang.tests.unit.audit_cases import (
    BOOT,
    BY_HAND,
    ENVIRONMENT,
    RECEIPT,
    RUNNING,
    STATE,
    TEXT,
    UNIT,
    FakeHost,
    changed,
    kept,
)
from support.prometheus import parsed

STOPPED = replace(RUNNING, active_state="inactive", sub_state="dead", main_pid=0)
DIED = replace(RUNNING, invocation_id="start2", n_restarts=2)
AGAIN = replace(RUNNING, invocation_id="start2")
FAILURE = {"kind": "oom_capture", "rank": None, "message": "out of memory", "advice": "lower", "remedy": "lower the fraction"}
NO_POOLS = changed(BOOT, ranks=[], min_tokens=None, complete=False, ready=False, phase="starting")
SHORT = changed(BOOT, ranks__1__target={"tokens": 190000}, min_tokens=190000, max_total_num_tokens=190000)


def host(
    boot: Any = BOOT, service: Any = RUNNING, gaps: tuple[str, ...] = (), health: Any = 200, without: str = "", **files: str
) -> FakeHost:
    """The accepted host with this start in place of its own, and other files; ``without``: one that is not there."""
    made = FakeHost(boots={"k26.service": (boot, service, gaps)}, health=health)
    made.files.update(files)
    made.files = {path: text for path, text in made.files.items() if not without or not path.endswith(without)}
    return made


def audit(made: FakeHost, **terms: Any) -> dict[str, Any]:
    return audit_of(read_host(STATE, made.eyes()), Terms(**terms))


def only(made: FakeHost, **terms: Any) -> dict[str, Any]:
    found = audit(made, **terms)["instances"]
    assert len(found) == 1
    return found[0]


def test_an_accepted_server_has_nothing_against_it() -> None:
    made = host()
    found = only(made)
    assert (found["accepted"], found["findings"], found["warnings"]) == (True, [], [])
    assert {key: found[key] for key in ("unit", "instance", "required_tokens", "required_by", "min_tokens", "proof", "headroom_gib")} == {
        "unit": "k26.service", "instance": "k26", "required_tokens": 200000, "required_by": "receipt", "min_tokens": 200099,
        "proof": "journal", "headroom_gib": 6.34,
    }  # fmt: skip
    assert [(row["rank"], row["tokens"], row["spare"]) for row in found["rows"]] == [("TP0", 200099, 99), ("TP1", 200105, 105)]
    # a server that listens everywhere is asked on the host itself
    assert (made.probed, found["answer"]["url"]) == ([("127.0.0.1", 30000, False)], "http://127.0.0.1:30000/health")


CASES: list[tuple[str, FakeHost, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "pools short of what is asked",
        host(),
        {"required_tokens": 250000},
        [("pool", "200,099 of 250,000 tokens, 49,901 short"), ("pool", "200,105 of 250,000 tokens, 49,895 short")],
    ),
    ("what is asked of another instance", host(), {"required_tokens": 250000, "instance": "other"}, []),
    ("a pool short of what was accepted", host(SHORT), {}, [("pool", "190,000 of 200,000 tokens, 10,000 short")]),
    (
        "a rank that is missing",
        host(changed(BOOT, ranks=BOOT["ranks"][:1], complete=False, missing_ranks=[{"tp": 1, "pp": 0, "dp": 0}])),
        {},
        [("complete", "no pool in the journal of this boot")],
    ),
    ("little left", host(), {"min_avail_gib": 6.35}, [("headroom", "6.34 GiB left, 6.35 GiB wanted")]),
    ("a start under way", host(changed(BOOT, ready=False, phase="capture")), {}, [("ready", "stands in phase capture")]),
    (
        "a service that was stopped",
        host(changed(BOOT, ready=False, stopped=True), STOPPED),
        {},
        [("running", "it does not run: the unit is inactive (dead), result success, exit status 0, 0 automatic restarts, enabled")],
    ),
    (
        "a service that failed",
        host(changed(BOOT, ready=False, phase="failed", failure=FAILURE), replace(STOPPED, active_state="failed", sub_state="failed")),
        {},
        [("running", "its last start died of oom_capture: out of memory")],
    ),
    (
        "a unit that is gone",
        host(None, replace(STOPPED, load_state="not-found", invocation_id=""), without="k26.service"),
        {},
        [("unit", "none, though the role made this instance")],
    ),
    ("a server that says no", host(health=503), {}, [("answer", "status 503")]),
    ("a server that says nothing", host(health=ConnectionRefusedError(111, "Connection refused")), {}, [("answer", "Connection refused")]),
    ("a server that died since", host(changed(BOOT, invocation_id="start2"), DIED), {}, [("restart", "started again, 2 times")]),
    ("a crash before it was accepted", host(service=replace(RUNNING, n_restarts=1)), {}, []),
    (
        "a unit that was edited",
        host(**{UNIT: TEXT.replace("0.9259", "0.8900")}),
        {},
        [("drift", "--mem-fraction-static 0.9259 -> 0.8900; the server still runs what was accepted")],
    ),
    (
        "a unit that was edited and started",
        host(
            changed(BOOT, server_args__mem_fraction_static=0.89, invocation_id="start2"), AGAIN,
            **{UNIT: TEXT.replace("0.9259", "0.8900")},
        ),
        {},
        [("drift", "--mem-fraction-static 0.9259 -> 0.8900; the server was started since")],
    ),
    (
        "an environment that was edited",
        host(**{"/etc/sglang/k26.env": ENVIRONMENT.replace("0,1", "2,3")}),
        {},
        [("drift", "environment: CUDA_VISIBLE_DEVICES 0,1 -> 2,3")],
    ),
    ("a process of other files", host(service=replace(RUNNING, digest="2222")), {}, [("drift", "started from other files (digest 2222)")]),
    ("a process without a digest", host(service=replace(RUNNING, digest=None)), {}, [("drift", "started from other files (digest none)")]),
    (
        "flags that SGLang changed",
        host(changed(BOOT, server_args__mem_fraction_static=0.8)),
        {},
        [("flags", "mem-fraction-static: asked 0.9259, SGLang runs with 0.8")],
    ),
    ("flags that may differ", host(changed(BOOT, server_args__mem_fraction_static=0.8)), {"allowed_changes": ("mem_fraction_static",)}, []),
    (
        "flags that the gate let pass",
        host(
            changed(BOOT, server_args__mem_fraction_static=0.8),
            **kept("verdict.json", {"changes": [{"flag": "mem-fraction-static", "allowed": True}]}),
        ),
        {},
        [],
    ),
    ("a server out of its balancers", host(**kept("drained.json", {"taken_out": ["lb1"]})), {}, [("drained", "(2026-11-30 00:53:20 UTC)")]),
    ("a record of that which is cut", host(**kept("drained.json", "{")), {}, [("drained", "not put back")]),
    ("no receipt", host(without="receipt.json"), {}, [("receipt", "none that can be read")]),
    ("a receipt that is cut", host(**kept("receipt.json", '{"instance"')), {}, [("receipt", "none that can be read")]),
    ("nothing to go back to", host(without="accepted.json"), {}, [("receipt", "none that can be read")]),
    ("a log that is lost, of the accepted start", host(NO_POOLS, gaps=("the journal begins later",)), {}, []),
    (
        "a log that is lost, of another start",
        host(NO_POOLS, AGAIN, gaps=("the journal begins later",)),
        {},
        [("log", "the journal begins later")],
    ),
    (
        "a log that is lost, and more is asked",
        host(NO_POOLS),
        {"required_tokens": 200100},
        [("pool", "200,099 tokens, 1 short, by the receipt of this start")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "terms", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_speaks_against_a_server(made: FakeHost, terms: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    found = only(made, **terms)
    assert [finding["check"] for finding in found["findings"]] == [check for check, _words in expected]
    for finding, (_check, words) in zip(found["findings"], expected):
        assert words in finding["found"]
        assert finding["asked"]
        assert finding["do"]
    assert found["accepted"] is (not expected)


WARNINGS = [
    ("started again by hand", host(changed(BOOT, invocation_id="start2"), AGAIN), {}, ["started again since it was accepted"]),
    (
        "a unit that differs in what systemd alone reads", host(**{UNIT: TEXT.replace("120", "90")}), {},
        ["differs from the accepted one in what the process does not get: TimeoutStopSec 120 -> 90"],
    ),
    (
        "a plan far off", host(**kept("receipt.json", changed(RECEIPT, predicted_tokens=180000))), {},
        ["the plan said 180,000 tokens and the smallest rank has 200,099, 20,099 more"],
    ),
    ("memory that stays free", host(), {"headroom_gib": 4.0}, ["6.34 GiB stay free on every card, 2.34 more than the headroom of 4"]),
    ("a log that is lost", host(NO_POOLS), {}, ["the journal has lost this start"]),
    ("a log with a gap", host(gaps=("the log daemon dropped 7 messages",)), {}, ["dropped 7 messages"]),
]  # fmt: skip


@pytest.mark.parametrize(("made", "terms", "expected"), [case[1:] for case in WARNINGS], ids=[case[0] for case in WARNINGS])
def test_what_is_worth_a_word_refuses_nothing(made: FakeHost, terms: dict[str, Any], expected: list[str]) -> None:
    found = only(made, **terms)
    assert found["accepted"] is True
    assert len(found["warnings"]) == len(expected)
    assert all(words in text for words, text in zip(expected, found["warnings"]))


def test_the_receipt_of_this_very_start_stands_in_for_its_log() -> None:
    found = only(host(NO_POOLS))
    assert (found["min_tokens"], found["proof"], found["headroom_gib"]) == (200099, "receipt", 6.34)
    assert [(row["rank"], row["tokens"]) for row in found["rows"]] == [("TP0", 200099), ("TP1", 200105)]


def test_a_server_that_does_not_run_has_no_figures() -> None:
    found = only(host(changed(BOOT, ready=False, stopped=True), STOPPED))
    assert (found["min_tokens"], found["proof"], found["headroom_gib"], found["started_at"], found["rows"]) == (0, "", None, None, [])
    assert found["answer"] == {"url": "", "status": None, "why": ""}


# --- which units are servers ------------------------------------------------------------------------------------------


def foreign(text: str = BY_HAND, show: str = "ActiveState=active\nUnitFileState=disabled", boot: Any = BOOT) -> FakeHost:
    cron = "[Service]\nExecStart=/usr/sbin/cron\n"
    made = host(**{"/usr/lib/systemd/system/hand.service": text, "/etc/systemd/system/cron.service": cron})
    made.boots["hand.service"] = (boot, replace(RUNNING, digest=None), ())
    made.show["hand.service"] = show
    return made


def test_a_unit_by_hand_is_a_server_too() -> None:
    made = foreign()
    found = {instance["unit"]: instance for instance in audit(made)["instances"]}
    assert list(found) == ["hand.service", "k26.service"]
    hand = found["hand.service"]
    assert [finding["check"] for finding in hand["findings"]] == ["receipt", "flags", "flags"]
    assert "sglang_adopt: hand.service" in hand["warnings"][0]
    # its own words may hold a key
    assert (hand["flags"]["api-key"], hand["flags"]["port"]) == ("(not shown)", "30001")
    assert found["k26.service"]["accepted"] is True
    # the units of no interest are not asked for
    assert not any("cron.service" in argv for argv in made.asked)


def test_a_unit_by_hand_is_held_against_what_is_asked() -> None:
    made = foreign(BY_HAND.replace("/srv/m ", "/srv/models/k26 ").replace("30001", "30000"))
    found = {instance["unit"]: instance for instance in audit(made, required_tokens=200000)["instances"]}
    assert found["hand.service"]["findings"] == []
    assert found["hand.service"]["required_by"] == "asked"


HIDDEN = "[Service]\nExecStart=/usr/local/bin/run-sglang.sh\n"
NO_SERVERS = [
    ("neither running nor enabled", foreign(show="ActiveState=failed\nUnitFileState=disabled")),
    ("a script that starts something else", foreign(HIDDEN, boot=changed(BOOT, server_args={}))),
    ("a script whose unit has no log", foreign(HIDDEN, boot=None)),
]


@pytest.mark.parametrize("made", [case[1] for case in NO_SERVERS], ids=[case[0] for case in NO_SERVERS])
def test_what_is_no_server(made: FakeHost) -> None:
    assert [instance["unit"] for instance in audit(made)["instances"]] == ["k26.service"]


def test_a_script_whose_log_is_sglangs_is_a_server() -> None:
    assert [instance["unit"] for instance in audit(foreign(HIDDEN))["instances"]] == ["hand.service", "k26.service"]


def test_a_template_counts_by_what_is_started_of_it() -> None:
    made = host(**{"/etc/systemd/system/sglang@.service": BY_HAND})
    made.programs["systemctl list-units"] = "sglang@a.service loaded active running A\nsglang@b.service loaded active running B\n"
    for name in ("sglang@a.service", "sglang@b.service"):
        made.boots[name] = (BOOT, RUNNING, ())
        made.show[name] = "ActiveState=active\nUnitFileState=enabled"
    assert [instance["unit"] for instance in audit(made)["instances"]] == ["k26.service", "sglang@a.service", "sglang@b.service"]


def test_one_unit_that_cannot_be_read_hides_no_other() -> None:
    made = foreign()
    made.boots["k26.service"] = JournalError("asked the journal, found exit code 1; run as root")
    found = {instance["unit"]: instance for instance in audit(made)["instances"]}
    assert [finding["check"] for finding in found["k26.service"]["findings"]] == ["read"]
    assert found["k26.service"]["findings"][0]["found"] == "asked the journal, found exit code 1; run as root"
    assert found["k26.service"]["active_state"] == "unknown"
    assert found["hand.service"]["min_tokens"] == 200099


def test_a_host_without_servers_has_none() -> None:
    made = FakeHost(files={}, boots={}, show={})
    assert audit(made) == {"instances": [], "gpus": [], "idle_gib": 0, "findings": [], "warnings": []}
    assert made.asked == []


def test_a_host_without_systemd_is_an_error() -> None:
    made = host()
    made._run = lambda _argv: (1, "", "System has not been booted with systemd")  # type: ignore[method-assign]
    with pytest.raises(JournalError, match=r"found exit code 1 .*booted with systemd.*; run this on a host with systemd"):
        read_host(STATE, made.eyes())


ADDRESSES = [
    ({"host": "::", "port": 31000}, "", ("::1", 31000, False), "http://[::1]:31000/health"),
    ({"host": "10.0.0.7", "port": 31000}, "", ("10.0.0.7", 31000, False), "http://10.0.0.7:31000/health"),
    ({"port": 31000}, "--ssl-certfile /etc/c.pem", ("127.0.0.1", 31000, True), "https://127.0.0.1:31000/health"),
]


@pytest.mark.parametrize(("args", "flag", "asked", "url"), ADDRESSES)
def test_a_server_is_asked_where_it_says_that_it_listens(args: dict[str, Any], flag: str, asked: Any, url: str) -> None:
    made = host({**BOOT, "server_args": args}, **{UNIT: TEXT.replace("--port 30000", f"--port 30000 {flag}")})
    found = only(made)
    assert (made.probed, found["answer"]["url"]) == ([asked], url)


# --- cards ------------------------------------------------------------------------------------------------------------


def test_cards_that_nothing_uses_are_idle() -> None:
    made = host()
    row = "{0}, GPU-{0}, 00000000:0{0}:00.0, 98304, {1}, {2}, 570.1, 12.0, 0, Disabled, RTX PRO 6000"
    made.programs = {
        "nvidia-smi --query-gpu": "\n".join([row.format(0, 90000, 8304), row.format(1, 90000, 8304), row.format(2, 600, 97704)]),
        "nvidia-smi --query-compute-apps": "500, GPU-0, 89000, python\n501, GPU-1, 89000, python\n",
    }
    made.show["k26.service"] += "\nControlGroup=/system.slice/k26.service"
    made.files["/sys/fs/cgroup/system.slice/k26.service/cgroup.procs"] = "100\n500\n501\n"
    found = audit(made)
    assert [(card["index"], card["units"]) for card in found["gpus"]] == [(0, ["k26.service"]), (1, ["k26.service"]), (2, [])]
    assert (found["idle_gib"], found["warnings"]) == (95.41, ["nothing uses card 2: 95.4 GiB are idle"])


def test_cards_that_cannot_be_read_speak_against_the_host() -> None:
    made = host()
    made.programs = {"nvidia-smi": "No devices were found"}
    assert [(finding["check"], "No devices were found" in finding["found"]) for finding in audit(made)["findings"]] == [("gpus", True)]


# --- metrics ----------------------------------------------------------------------------------------------------------

def test_metrics_are_what_prometheus_reads() -> None:
    made = foreign(boot=changed(BOOT, min_avail_gib=4.5))
    found = parsed(metrics_of(audit(made), 'a"b\\c', 1796000000.4))
    host_label = 'host="a\\"b\\\\c"'
    assert found["sglang_pool_tokens"] == [
        (f'{host_label},unit="{unit}",rank="{rank}"', tokens)
        for unit in ("hand.service", "k26.service") for rank, tokens in (("TP0", 200099), ("TP1", 200105))
    ]  # fmt: skip
    assert found["sglang_required_tokens"][1] == (f'{host_label},unit="k26.service"', 200000)
    assert [value for _labels, value in found["sglang_headroom_gib"]] == [4.5, 6.34]
    assert [value for _labels, value in found["sglang_accepted"]] == [0, 1]
    assert [value for _labels, value in found["sglang_boot_timestamp_seconds"]] == [1796022000, 1796022000]
    assert found["sglang_audit_timestamp_seconds"] == [(host_label, 1796000000)]
    assert found["sglang_instances"] == [(host_label, 2)]
    assert {family.name for family in FAMILIES} <= set(found)


def test_metrics_of_a_server_that_does_not_run() -> None:
    found = parsed(metrics_of(audit(host(changed(BOOT, ready=False, stopped=True), STOPPED)), "a", 1.0))
    assert [found[name][0][1] for name in ("sglang_accepted", "sglang_answering", "sglang_proved_tokens")] == [0, 0, 0]
    assert {"sglang_pool_tokens", "sglang_headroom_gib", "sglang_boot_timestamp_seconds"}.isdisjoint(found)


# --- the module's own -------------------------------------------------------------------------------------------------

DEFAULTS = {name: argument.get("default") for name, argument in audit_info.ARGUMENTS.items()}


def test_what_is_asked() -> None:
    asked = audit_info.terms_of({**DEFAULTS, "context_length": 1001, "concurrent_requests": 1.5})
    assert (asked.required_tokens, asked.min_avail_gib, asked.max_spread_gib, asked.headroom_gib) == (1502, 1.0, 4.0, 5.0)
    assert audit_info.terms_of({**DEFAULTS, "context_length": 1001, "pool_target": 7}).required_tokens == 7
    assert audit_info.terms_of(DEFAULTS).required_tokens == 0


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["concurrent_requests", "headroom_gib"])
def test_what_cannot_be_asked(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"asked for {name}={value}, found that it is no size; give {name} as 0 or more"):
        audit_info.terms_of({**DEFAULTS, name: value})


ANSWERS = [
    (b"HTTP/1.1 200 OK\r\n\r\n", 200, None),
    (b"HTTP/1.0 503 Service Unavailable\r\nX: y\r\n\r\n", 503, None),
    (b"SSH-2.0-OpenSSH\r\n", None, "no answer of HTTP: b'SSH-2.0-OpenSSH"),
    (b"", None, "no answer of HTTP: b''"),
]


@pytest.mark.parametrize(("answer", "status", "problem"), ANSWERS)
def test_the_status_of_an_answer(answer: bytes, status: Any, problem: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard: list[bytes] = []

        def serve() -> None:
            connection, _peer = server.accept()
            with connection:
                heard.append(connection.recv(4096))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        port = server.getsockname()[1]
        try:
            if problem:
                with pytest.raises(ValueError, match=re.escape(problem)):
                    probe_status("127.0.0.1", port, False, "/health", 5.0)
            else:
                assert probe_status("127.0.0.1", port, False, "/health", 5.0) == status
        finally:
            thread.join()
    assert heard[0].startswith(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode())


class _Asked(Exception):
    """What a module would return."""


@pytest.mark.parametrize(
    ("folder", "check", "changes", "checks"),
    [("", False, True, []), ("", True, True, []), ("missing/", False, False, ["textfile"])],
    ids=["written", "check mode", "no such directory"],
)
def test_the_file_of_the_metrics(
    folder: str, check: bool, changes: bool, checks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{folder}sglang.prom"
    if not folder:
        path.write_text("before\n", encoding="utf-8")
    returned: dict[str, Any] = {}

    class Module:
        params: ClassVar[dict[str, Any]] = {**DEFAULTS, "textfile": str(path), "textfile_host": "gpu1"}
        check_mode, _diff = check, True

        @staticmethod
        def exit_json(**result: Any) -> None:
            returned.update(result)
            raise _Asked

    monkeypatch.setattr(audit_info, "AnsibleModule", lambda **_options: Module)
    monkeypatch.setattr(audit_info, "read_host", lambda _state_dir, _eyes: read_host(STATE, host().eyes()))
    with pytest.raises(_Asked):
        audit_info.main()
    assert (returned["changed"], [finding["check"] for finding in returned["audit"]["findings"]]) == (changes, checks)
    if folder:
        assert returned["audit"]["findings"][0]["found"] == "No such file or directory"
        return
    assert (returned["diff"]["before"], path.read_text(encoding="utf-8") == "before\n") == ("before\n", check)
    assert parsed(returned["diff"]["after"])["sglang_instances"] == [('host="gpu1"', 1)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["sglang.prom"]
