# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a whole, on real binary journals and saved logs; and waiting, with a clock that the test moves."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Entry
from ansible_collections.inferops.sglang.plugins.module_utils._boot_watch import (
    Milestone,
    Terms,
    TextWatch,
    UnitWatch,
    milestone_of,
    observe,
    shortcoming,
)
from ansible_collections.inferops.sglang.plugins.module_utils._gauge import WeightsGauge
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock
from ansible_collections.inferops.sglang.plugins.modules import allocation_info
from ansible_collections.inferops.sglang.plugins.test.sglang import pool_sufficient
from ansible_collections.inferops.sglang.tests.unit.boots import FIRST, LOGS, READY, SECOND, Journal, KimiStart, Line, as_text, stamped

OLD, NEW, THIRD = "d" * 32, "e" * 32, "f" * 32
UNIT = "sglang-k26.service"
ENOUGH = KimiStart(0.926, 8, 200229, 13.10, 0.29, 8.22, (5.69,) * 8)
CRASH = "Scheduler hit an exception: Traceback (most recent call last):"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB."


class Failed(Exception):
    """The module failed; holds its result."""


@pytest.fixture
def call(capsys):
    """Runs the module with these arguments and returns what it returns; raises Failed with the result where it fails."""

    def run(check_mode: bool = False, **arguments):
        values = {name: [str(item) for item in value] if isinstance(value, list) else value for name, value in arguments.items()}
        with patch_module_args({**values, "_ansible_check_mode": check_mode}), pytest.raises(SystemExit):
            allocation_info.main()
        result = json.loads(capsys.readouterr().out)
        if result.get("failed"):
            raise Failed(result)
        return result

    return run


def journal_of(directory: Path, *boots: tuple[KimiStart, str]) -> str:
    journal = Journal()
    for boot, invocation in boots:
        journal.manager("Started SGLang.", invocation)
        journal.server(boot.lines(), invocation)
    journal.write(directory)
    return str(directory)


# --- journals


def test_the_first_start_in_a_journal(call, tmp_path):
    allocation = call(journal_directory=journal_of(tmp_path, (FIRST, OLD)))["allocation"]
    assert [rank["target"]["tokens"] for rank in allocation["ranks"]] == [101134] * 8
    assert [(rank["draft"]["k_gib"], rank["draft"]["v_gib"]) for rank in allocation["ranks"]] == [(0.14, 0.14)] * 8


def test_the_second_start_is_shown_rank_by_rank_and_refused_for_200000_tokens(call, tmp_path):
    result = call(journal_directory=journal_of(tmp_path, (FIRST, OLD), (SECOND, NEW)), unit="sglang-k26")
    allocation = result["allocation"]
    assert [(rank["tp"], rank["target"]["tokens"]) for rank in allocation["ranks"]] == [(tp, 192406) for tp in range(8)]
    assert [(rank["target"]["kv_gib"], rank["target"]["k_gib"]) for rank in allocation["ranks"]] == [(12.59, None)] * 8
    assert [(rank["draft"]["k_gib"], rank["draft"]["v_gib"]) for rank in allocation["ranks"]] == [(0.28, 0.28)] * 8
    assert [rank["avail_after_pool_gib"] for rank in allocation["ranks"]] == [6.25, 6.24, 6.23, 6.24, 6.25, 6.24, 6.23, 6.24]
    assert [rank["pid"] for rank in allocation["ranks"]] == list(range(200, 208))
    assert (allocation["invocation_id"], allocation["ready"], allocation["complete"]) == (NEW, True, True)
    assert (result["service"], result["changed"]) == (None, False)
    assert not pool_sufficient(allocation, 200000)
    assert pool_sufficient(allocation, 192406)


def test_a_newer_start_with_a_smaller_pool_hides_an_older_one_with_enough(call, tmp_path):
    directory = journal_of(tmp_path, (ENOUGH, OLD), (SECOND, NEW))
    newest = call(journal_directory=directory)["allocation"]
    assert (newest["invocation_id"], newest["min_tokens"]) == (NEW, 192406)
    assert not pool_sufficient(newest, 200000)
    older = call(journal_directory=directory, invocation_id=OLD)["allocation"]
    assert (older["min_tokens"], pool_sufficient(older, 200000)) == (200229, True)


def test_single_journal_files(call, tmp_path):
    journal_of(tmp_path, (SECOND, NEW))
    assert call(journal_files=[tmp_path / "known.journal"])["allocation"]["min_tokens"] == 192406


def test_a_start_without_its_ready_line_is_not_ready(call, tmp_path):
    not_ready = KimiStart(0.926, 8, 200229, 13.10, 0.29, 8.22, (5.69,) * 8, ready=False)
    allocation = call(journal_directory=journal_of(tmp_path, (not_ready, NEW)))["allocation"]
    assert (allocation["phase"], allocation["ready"], allocation["complete"]) == ("warmup", False, True)
    assert not pool_sufficient(allocation, 1)


def test_a_rank_that_did_not_report_is_named(call, tmp_path):
    lost = KimiStart(0.926, 8, 200229, 13.10, 0.29, 8.22, (5.69,) * 7, ranks=[0, 1, 2, 3, 4, 6, 7])
    allocation = call(journal_directory=journal_of(tmp_path, (lost, NEW)))["allocation"]
    assert (allocation["missing_ranks"], allocation["complete"]) == ([{"tp": 5, "pp": 0, "dp": 0}], False)
    assert not pool_sufficient(allocation, 1)


def test_dropped_messages_are_noted(call, tmp_path):
    journal = Journal()
    journal.server(SECOND.lines()[:20], NEW)
    journal.daemon(f"Suppressed 62498 messages from {UNIT}")
    journal.write(tmp_path)
    notes = call(journal_directory=str(tmp_path), unit="sglang-k26")["allocation"]["notes"]
    assert [note for note in notes if "62498" in note and "unknown" in note]


def test_a_crash_is_read_out_of_single_lines_of_interleaved_processes(call, tmp_path):
    journal = Journal()
    journal.server(SECOND.lines()[:50], NEW)
    journal.server([Line(stamped("TP3", CRASH), 203), Line(stamped("TP4", CRASH), 204), Line("  File x", 203), Line(OOM, 203)], NEW)
    journal.server([Line("torch.distributed.DistBackendError: NCCL error", 204)], NEW)
    journal.manager(f"{UNIT}: Main process exited, code=exited, status=1/FAILURE", NEW)
    journal.manager(f"{UNIT}: Failed with result 'exit-code'.", NEW)
    journal.write(tmp_path)
    failure = call(journal_directory=str(tmp_path))["allocation"]["failure"]
    assert (failure["kind"], failure["rank"], failure["message"], failure["advice"]) == (
        "oom_capture",
        {"tp": 3, "pp": 0, "dp": 0},
        OOM,
        "lower",
    )


def test_a_unit_that_the_manager_calls_failed_has_failed(call, tmp_path):
    journal = Journal()
    journal.server(SECOND.lines(), NEW)
    journal.manager(f"{UNIT}: Main process exited, code=killed, status=9/KILL", NEW)
    journal.manager(f"{UNIT}: Failed with result 'signal'.", NEW)
    journal.write(tmp_path)
    allocation = call(journal_directory=str(tmp_path))["allocation"]
    assert (allocation["failure"]["kind"], allocation["ready"], allocation["was_ready"]) == ("killed", False, True)
    assert allocation["failure"]["message"] == "the service manager says: signal (main process exited, code=killed, status=9/KILL)"


# --- saved logs


def test_a_saved_log_of_the_real_engine(call):
    allocation = call(log_files=[LOGS / "0.5.23-qwen3-dflash-tp2.log"])["allocation"]
    assert [(rank["target"]["k_gib"], rank["draft"]["k_gib"]) for rank in allocation["ranks"]] == [(0.25, 0.06)] * 2
    assert (allocation["phase"], allocation["was_ready"], allocation["ready"]) == ("ready", True, True)


def test_several_files_are_one_log(call, tmp_path):
    lines = SECOND.lines()
    (tmp_path / "a.log").write_text(as_text(lines[:40]) + "\n")
    (tmp_path / "b.log").write_text(as_text(lines[40:]))
    assert call(log_files=[tmp_path / "a.log", tmp_path / "b.log"])["allocation"]["ready"] is True


def test_what_of_a_log_cannot_be_read_is_noted(call, tmp_path):
    whole = gzip.compress("".join(f"{line.text} {number}\n" for number, line in enumerate(SECOND.lines() * 50)).encode())
    (tmp_path / "a.log.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.log").write_text(as_text(FIRST.lines()[:-1]))
    allocation = call(log_files=[tmp_path / "a.log.gz", tmp_path / "b.log"])["allocation"]
    assert (allocation["ready"], allocation["min_tokens"]) == (False, 101134)
    assert [note for note in allocation["notes"] if note.startswith(f"{tmp_path}/a.log.gz is damaged")]


def test_what_of_a_journal_cannot_be_read_is_noted(call, tmp_path):
    journal = Journal()
    journal.server(SECOND.lines()[:-1], NEW)
    journal.write(tmp_path)
    (tmp_path / "cut.journal").write_bytes((tmp_path / "known.journal").read_bytes()[:100000])
    allocation = call(journal_directory=str(tmp_path))["allocation"]
    assert (allocation["ready"], allocation["complete"], allocation["failure"]) == (False, True, None)
    assert [note for note in allocation["notes"] if note.startswith("the journal is damaged") and "cut.journal" in note]


def test_a_given_log(call):
    allocation = call(log_text=as_text(SECOND.lines()))["allocation"]
    assert (allocation["min_tokens"], allocation["invocation_id"], allocation["ready"]) == (192406, None, True)


def test_an_uncaught_exception_ends_a_saved_log(call):
    text = "\n".join(["Traceback (most recent call last):", '  File "/opt/x.py", line 1', "ModuleNotFoundError: No module named 'sglang'"])
    assert call(log_text=text)["allocation"]["failure"]["kind"] == "missing_file"


# --- what fails

BAD = [
    ("no source", {}, "one of the following is required"),
    ("two sources", {"log_text": "x", "unit": "y"}, "mutually exclusive"),
    ("two journals and a log", {"log_text": "x", "journal_directory": "/y"}, "mutually exclusive"),
    ("absent file", {"log_files": ["/nonexistent/x.log"]}, "asked for the log /nonexistent/x.log, found No such file or directory; check"),
    ("absent journal", {"journal_directory": "/nonexistent"}, "found exit code 1 and 'Failed to open /nonexistent"),
    ("unknown phase", {"log_text": "x", "phase_timeouts": {"loading": 5}}, "asked for phase_timeouts with loading=5, found no such phase"),
    ("odd limit", {"log_text": "x", "phase_timeouts": {"weights": "soon"}}, "weights='soon'"),
    ("no ranks", {"log_text": "x", "tp_size": 0}, "asked for tp_size=0, found that it is too small; give tp_size as 1 or more"),
    ("negative time", {"log_text": "x", "wait_timeout": -1}, "asked for wait_timeout=-1"),
    ("no time at all", {"unit": "x", "since": {"waited_s": float("nan")}}, "found no such time or restarts in it; give the progress"),
    ("endless time", {"unit": "x", "since": {"waited_s": float("inf")}}, "found no such time or restarts in it; give the progress"),
    ("restarts that were none", {"unit": "x", "since": {"restarts": -5}}, "'restarts': -5"),
    ("no memory", {"unit": "x", "weights_gib": float("nan")}, "asked for weights_gib=nan, found that it is no number"),
    ("endless memory", {"unit": "x", "weights_gib": "inf"}, "asked for weights_gib=inf, found that it is no number"),
    ("a template that came out empty", {"unit": "", "journal_directory": "/x"}, "asked for unit='', found no name in it; give unit"),
    ("no name", {"unit": ""}, "asked for unit='', found no name in it"),
    ("no file", {"log_files": []}, "asked for log_files='[]', found no name in it"),
    ("a file without a name", {"log_files": ["/x", ""]}, "found no name in it"),
    ("no journal", {"journal_directory": ""}, "asked for journal_directory='', found no name in it"),
    ("a source that is none", {"log_text": None}, "asked for a start, found no source of it; give one of unit, journal_directory"),
    ("a pattern of units", {"unit": "sglang*"}, "asked for unit='sglang*', found that no unit has such a name; give the name of one unit"),
    ("the file of a unit", {"unit": "/etc/systemd/system/sglang.service"}, "found that no unit has such a name"),
    ("a template without an instance", {"unit": "sglang@"}, "found that no unit has such a name"),
    ("a template without an instance, in full", {"unit": "sglang@.service"}, "found that no unit has such a name"),
    ("a name of two lines", {"unit": "a\nb"}, "found that no unit has such a name"),
    ("a name with an end of its own", {"unit": "a\0b"}, "found no name in it"),
]


@pytest.mark.parametrize(("arguments", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_cannot_be_read_or_meant_fails_with_a_message(call, arguments, message):
    with pytest.raises(Failed) as failed:
        call(**arguments)
    assert message in failed.value.args[0]["msg"]


def test_a_journal_without_a_server_fails_in_three_parts(call, tmp_path):
    journal = Journal()
    journal.server([Line("nothing")], OLD)
    journal.write(tmp_path)
    with pytest.raises(Failed) as failed:
        call(journal_directory=str(tmp_path))
    assert failed.value.args[0]["msg"].startswith("asked for a start of the newest server in ")
    assert failed.value.args[0]["allocation"] is None


def test_require_ready_fails_with_the_allocation(call):
    with pytest.raises(Failed) as failed:
        call(log_text=as_text(SECOND.lines()[:-1]), require_ready=True)
    result = failed.value.args[0]
    assert result["msg"].startswith("asked for the given log to be ready; found: phase warmup")
    assert result["allocation"]["min_tokens"] == 192406
    assert call(log_text=as_text(SECOND.lines()), require_ready=True)["allocation"]["ready"] is True


def test_require_ready_says_why_a_ready_server_is_not_enough(call):
    with pytest.raises(Failed) as failed:
        call(log_text=as_text(SECOND.lines()[1:]), require_ready=True)
    assert "phase ready, and not every rank is proved to have its pool: " in failed.value.args[0]["msg"]
    assert "the number of ranks is unknown (no usable tp_size in the log or given)" in failed.value.args[0]["msg"]
    assert "; give tp_size (pp_size, dp_size)" in failed.value.args[0]["msg"]
    whole = as_text(KimiStart(0.92, 8, 200000, 13.09, 0.29, 8.0, [6.0] * 8).lines())
    with pytest.raises(Failed, match="is proved to have its pool: tp_size=4 was given, the server runs with 8"):
        call(log_text=whole, require_ready=True, tp_size=4)
    with pytest.raises(Failed, match="ranks reported that were not expected"):
        call(log_text=whole.replace("tp_size=8", "tp_size=4"), require_ready=True)


def test_a_failed_start_does_not_fail_the_module_unless_it_is_asked_for(call):
    text = as_text([*SECOND.lines()[:50], Line(stamped("TP3", CRASH)), Line(OOM)])
    assert call(log_text=text)["allocation"]["failure"]["kind"] == "oom_capture"
    with pytest.raises(Failed) as failed:
        call(log_text=text, wait_for="ready")
    message = failed.value.args[0]["msg"]
    assert "found: oom_capture on TP3: " + OOM in message
    assert "; lower mem_fraction_static" in message
    assert failed.value.args[0]["allocation"]["failure"]["advice"] == "lower"


def test_check_mode_does_not_wait(call):
    result = call(check_mode=True, log_text=as_text(SECOND.lines()[:12]), wait_for="ready", require_ready=True)
    assert (result["allocation"]["phase"], result["polls"]) == ("weights", 1)


# --- a unit of this host, with a stand-in for systemctl and the real journalctl on a journal of known content


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Puts a systemctl that prints these properties, and a journalctl that reads this journal, first in PATH."""

    def make(properties: dict[str, str], journal: str) -> None:
        programs = tmp_path / "bin"
        programs.mkdir()
        shown = "\n".join(f"{key}={value}" for key, value in properties.items())
        scripts = {"systemctl": f"cat <<'END'\n{shown}\nEND", "journalctl": f'exec /usr/bin/journalctl --directory={journal} "$@"'}
        for name, body in scripts.items():
            (programs / name).write_text(f"#!/bin/sh\n{body}\n")
            (programs / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    return make


def show(**changes: str) -> dict[str, str]:
    return {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "Result": "success",
        "MainPID": str(os.getpid()),
        "NRestarts": "0",
        "InvocationID": NEW,
        "ExecMainStatus": "0",
        "Job": "0",
        **changes,
    }


def test_a_running_unit(call, tmp_path, host):
    host(show(), journal_of(tmp_path / "journal", (FIRST, OLD), (SECOND, NEW)))
    result = call(unit="sglang-k26", wait_for="ready", tp_size=8)
    assert (result["allocation"]["min_tokens"], result["allocation"]["ready"], result["polls"]) == (192406, True, 1)
    assert (result["service"]["active_state"], result["service"]["invocation_id"], result["service"]["digest"]) == ("active", NEW, None)


def test_a_unit_that_does_not_exist_is_no_failure_unless_it_is_waited_for(call, tmp_path, host):
    host(show(LoadState="not-found", ActiveState="inactive", MainPID="0", InvocationID=""), journal_of(tmp_path / "journal", (FIRST, OLD)))
    result = call(unit="sglang-k26")
    assert (result["allocation"], result["service"]["load_state"]) == (None, "not-found")
    with pytest.raises(Failed) as failed:
        call(unit="sglang-k26", wait_for="ready", wait_timeout=600)
    assert failed.value.args[0]["msg"].endswith("; check the name of the unit, and that it is installed on this host")


def test_a_unit_that_cannot_be_started_says_why(call, tmp_path, host):
    masked = show(LoadState="masked", ActiveState="inactive", SubState="dead", MainPID="0", InvocationID="")
    journal = Journal()
    journal.server([Line("other")], OLD, "other.service")
    journal.write(tmp_path / "journal")
    host(masked, str(tmp_path / "journal"))
    with pytest.raises(Failed) as failed:
        call(unit="sglang-k26", wait_for="ready", wait_timeout=0)
    assert failed.value.args[0]["msg"].endswith("; see why the unit's load state is masked (systemctl status), then start it")


def test_a_unit_that_was_never_started_has_no_allocation(call, tmp_path, host):
    quiet = show(ActiveState="inactive", SubState="dead", MainPID="0", InvocationID="")
    journal = Journal()
    journal.server([Line("other")], OLD, "other.service")
    journal.write(tmp_path / "journal")
    host(quiet, str(tmp_path / "journal"))
    assert call(unit="sglang-k26")["allocation"] is None


def test_a_unit_that_does_not_run_shows_its_newest_start_and_is_not_ready(call, tmp_path, host):
    host(
        show(ActiveState="inactive", SubState="dead", MainPID="0", InvocationID=""),
        journal_of(tmp_path / "journal", (FIRST, OLD), (SECOND, NEW)),
    )
    allocation = call(unit="sglang-k26")["allocation"]
    assert (allocation["invocation_id"], allocation["phase"], allocation["ready"]) == (NEW, "failed", False)


def test_the_module_runs_as_ansible_runs_it(tmp_path):
    """Through the real packaging for a target: all it imports must come along."""
    (tmp_path / "boot.log").write_text(as_text(SECOND.lines()))
    ansible = Path(sys.executable).parent / "ansible"
    arguments = json.dumps({"log_files": [str(tmp_path / "boot.log")]})
    done = subprocess.run(
        [str(ansible), "localhost", "-m", "inferops.sglang.allocation_info", "-a", arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path), "ANSIBLE_PYTHON_INTERPRETER": sys.executable},
    )
    assert '"min_tokens": 192406' in done.stdout


# --- waiting


class Host:
    """A unit whose life the test scripts: at each look the clock has moved on, and lines and states follow their times."""

    def __init__(self, lines: list[tuple[float, str, str]], states: list[tuple[float, dict]]) -> None:
        self.now = 0.0
        self.lines = lines
        self.states = states
        self.read_until: dict[str, int] = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def service(self) -> ServiceState:
        values = {"active_state": "active", "sub_state": "running", "result": "success", "load_state": "loaded", "main_pid": 42}
        values |= {"n_restarts": 0, "invocation_id": NEW, "exec_main_status": 0}
        for since, changes in self.states:
            values |= changes if since <= self.now else {}
        return ServiceState(**values)

    # the reader

    warnings = ()

    def use_namespace(self, name):
        assert name == ""

    def check_begin(self, started_us):
        assert started_us == 0

    def newest_invocation(self, _unit):
        return NEW

    def read(self, invocation, _unit, _everything):
        begin = self.read_until.get(invocation, 0)
        for number, (since, of, text) in enumerate(self.lines):
            if number >= begin and since <= self.now:
                self.read_until[invocation] = number + 1
                if of == invocation:
                    yield Entry(text, 1, int(since * 1e6), clock_us=int(since * 1e6))

    def last_lines(self, _invocation, count):
        return [text for since, _of, text in self.lines if since <= self.now][-count:]

    def watch(self, **options) -> UnitWatch:
        return UnitWatch(UNIT, self, self.service, lambda _pid: "0.5.12.post1", Parallelism(), now=lambda: self.now, **options)

    def observe(self, goal: str = "ready", timeout: float = 1800, limits: dict | None = None, settle: float = 0, **options):
        terms = Terms(goal, timeout, limits or {}, settle, options.get("since"))
        return observe(self.watch(**options), terms, Clock(lambda: self.now, self.sleep))


def boot(at: float = 0, invocation: str = NEW, tokens: int = 1000, ready: bool = True) -> list[tuple[float, str, str]]:
    lines = [
        "server_args={'tp_size': 1, 'mem_fraction_static': 0.9}",
        "Load weight begin. avail mem=80.00 GB",
        "Load weight end. avail mem=9.00 GB, mem usage=71.00 GB.",
        f"KV Cache is allocated. #tokens: {tokens}, KV size: 2.00 GB",
        "Memory pool end. avail mem=7.00 GB",
        *([READY] if ready else []),
    ]
    return [(at + 10 * number, invocation, stamped("", text)) for number, text in enumerate(lines)]


LOADED = boot(ready=False)
DEAD = {"active_state": "failed", "sub_state": "failed", "result": "exit-code", "main_pid": 0, "exec_main_status": 1}
RESTARTING = {"active_state": "activating", "sub_state": "auto-restart", "result": "exit-code", "main_pid": 0}


def test_waits_until_ready_in_one_go():
    seen = Host(boot(), []).observe()
    assert (seen.problem, seen.waited_s, seen.polls) == (None, 50.0, 51)
    assert (seen.look.allocation.ready, seen.look.allocation.sglang_version) == (True, "0.5.12.post1")


def test_a_wait_for_the_pool_does_not_wait_for_ready():
    seen = Host(boot(), []).observe("pool")
    assert (seen.problem, seen.waited_s, seen.look.allocation.ready, seen.look.allocation.complete) == (None, 30.0, False, True)


# name, further lines, states, seconds until given up at most, kind
LOST = [
    ("a fatal line while the unit still runs", [(60.5, NEW, stamped("", CRASH)), (60.6, NEW, OOM)], [], 63.0, "oom_capture"),
    (
        "the cause comes after the first fatal line",
        [
            (60.5, NEW, stamped("", "Rank 0 scheduler died during initialization (exit code: 1).")),
            (61.5, NEW, stamped("", CRASH)),
            (61.6, NEW, OOM),
        ],
        [],
        63.0,
        "oom_capture",
    ),
    ("the unit fails without a word", [], [(60.5, DEAD)], 63.0, "unit_failed"),
    ("its traceback comes after the unit has failed", [(61.4, NEW, OOM)], [(60.5, DEAD)], 63.0, "oom_capture"),
    ("killed for memory", [], [(60.5, {**DEAD, "result": "oom-kill"})], 63.0, "oom_kill"),
    ("the unit waits for its restart", [(60.4, NEW, stamped("", CRASH)), (60.4, NEW, OOM)], [(60.5, RESTARTING)], 63.0, "oom_capture"),
    ("restarted between two looks", [], [(60.5, {"n_restarts": 1, "invocation_id": THIRD})], 63.0, "crash_loop"),
    (
        "restarted between two looks, with a cause",
        [(60.2, NEW, stamped("", CRASH)), (60.2, NEW, OOM), *boot(60.6, THIRD)],
        [(60.5, {"n_restarts": 1, "invocation_id": THIRD})],
        63.0,
        "oom_capture",
    ),
    ("started again by somebody else", [], [(60.5, {"invocation_id": THIRD})], 63.0, "unit_failed"),
]


@pytest.mark.parametrize(("lines", "states", "at_most", "kind"), [case[1:] for case in LOST], ids=[case[0] for case in LOST])
def test_a_lost_start_is_given_up_at_once(lines, states, at_most, kind):
    seen = Host([*LOADED, *lines], states).observe()
    assert seen.look.allocation.failure.kind == kind
    assert seen.waited_s <= at_most
    assert seen.problem.startswith(f"asked for {UNIT} to be ready within 1800 s; found: {kind}")
    assert seen.look.allocation.invocation_id == NEW


def test_a_server_that_ends_by_itself_without_an_error_is_lost():
    seen = Host(LOADED, [(60.5, {"active_state": "inactive", "sub_state": "dead", "main_pid": 0})]).observe()
    assert (seen.look.allocation.phase, seen.look.allocation.failure.kind, seen.waited_s <= 63) == ("failed", "exit", True)
    assert "found: exit: the server ended by itself: the unit is inactive (dead)" in seen.problem


def test_a_server_that_is_stopped_while_it_is_waited_for_is_lost():
    stopping = (60.4, NEW, stamped("", "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."))
    seen = Host([*LOADED, stopping], [(60.5, {"active_state": "inactive", "sub_state": "dead", "main_pid": 0})]).observe()
    assert (seen.look.allocation.phase, seen.look.allocation.failure, seen.waited_s <= 63) == ("pool", None, True)
    assert "found: a server that was stopped" in seen.problem
    assert seen.problem.endswith("; start the server, then look again")


def test_no_progress_is_a_hang_that_names_phase_rank_and_last_line():
    seen = Host(boot()[:2], []).observe(timeout=100)
    failure = seen.look.allocation.failure
    assert (failure.kind, failure.advice, seen.look.allocation.phase, seen.waited_s) == ("hang", "other", "failed", 100.0)
    assert "no progress to ready within 100 s: the start stands in phase weights" in seen.problem
    assert "behind: TP0 (weights), without a pool: TP0" in seen.problem
    assert "(last line: '[2026-05-30 22:08:02] Load weight begin. avail mem=80.00 GB')" in seen.problem


def test_a_hang_in_the_first_phase_names_the_ranks_that_are_there():
    begin = "Init torch distributed begin."
    ranks = [(0, NEW, stamped("", "server_args={'tp_size': 2}")), (1, NEW, stamped("TP0", begin)), (1, NEW, stamped("TP1", begin))]
    seen = Host(ranks, []).observe(timeout=60)
    assert "the start stands in phase starting, behind: TP0-TP1 (starting), without a pool: TP0-TP1" in seen.problem


def test_a_phase_that_takes_too_long_is_a_hang_before_the_time_is_over():
    seen = Host(boot()[:2], []).observe(limits={"weights": 30, "starting": 11})
    assert (seen.look.allocation.failure.kind, seen.waited_s) == ("hang", 40.0)
    assert "in phase weights for longer than its limit" in seen.problem


def test_a_phase_within_its_limit_is_no_hang():
    assert Host(boot(), []).observe(limits={"weights": 30, "starting": 11, "pool": 21}).problem is None


def test_restarts_of_the_past_do_not_count():
    assert Host(boot(), [(0, {"n_restarts": 3})]).observe().problem is None


def test_a_unit_that_is_about_to_be_started_is_waited_for():
    states = [
        (0, {**DEAD, "invocation_id": OLD, "job": True}),
        (5, {"active_state": "active", "sub_state": "running", "job": False, "invocation_id": NEW}),
    ]
    seen = Host(boot(5), states).observe()
    assert (seen.problem, seen.look.allocation.invocation_id) == (None, NEW)


def test_a_server_is_ready_when_the_service_manager_has_seen_it_answer():
    states = [(0, {"active_state": "activating", "sub_state": "start-post"}), (70, {"active_state": "active", "sub_state": "running"})]
    seen = Host(boot(), states).observe()
    assert (seen.problem, seen.waited_s) == (None, 70.0)
    never = Host(boot(), states[:1]).observe(timeout=100)
    assert (never.look.allocation.failure.kind, never.waited_s) == ("hang", 100.0)
    assert "the start stands in phase ready, which the service manager has not seen yet (activating, start-post)" in never.problem


BEFORE_A_START = {
    "it has failed": DEAD,
    "it runs, and is to be restarted": {},
    "it stops, to be started again": {"active_state": "deactivating", "sub_state": "stop-sigterm"},
    "it waits for its automatic restart": RESTARTING,
}


@pytest.mark.parametrize("state", BEFORE_A_START)
def test_a_start_that_waits_for_its_turn_is_watched_and_not_the_one_before(state):
    host = Host([*boot(ready=True, invocation=OLD), *boot(8)], [
        (0, {**BEFORE_A_START[state], "invocation_id": OLD, "job": True}),
        (5, {"active_state": "activating", "sub_state": "start-pre", "result": "success", "invocation_id": NEW, "main_pid": 0}),
        (8, {"sub_state": "start-post", "main_pid": 42}),
        (60, {"active_state": "active", "sub_state": "running", "job": False}),
    ])  # fmt: skip
    seen = host.observe()
    assert (seen.problem, seen.look.allocation.invocation_id, seen.waited_s) == (None, NEW, 60.0)


def test_a_look_at_an_older_start_does_not_take_the_units_state_for_its_own():
    host = Host([*boot(0, OLD), *boot(0, NEW, tokens=500)], [(0, {"invocation_id": NEW})])
    host.now = 100.0
    allocation = host.observe("none", invocation=OLD).look.allocation
    assert (allocation.invocation_id, allocation.min_tokens, allocation.failure, allocation.sglang_version) == (OLD, 1000, None, None)


def test_a_log_that_is_still_written_is_waited_for():
    time, lines = [0.0], boot()

    class Growing:
        warnings = ()

        def starts_over(self):
            return True

        def read(self, _everything, _final):
            return [Entry(text) for since, _of, text in lines if since <= time[0]]

    watch = TextWatch("boot.log", Growing(), Parallelism())

    def sleep(seconds: float) -> None:
        time[0] += seconds

    seen = observe(watch, Terms("ready", 100), Clock(lambda: time[0], sleep))
    assert (seen.problem, seen.waited_s) == (None, 50.0)


def test_what_is_short_of_ready_is_said():
    host = Host(boot(), [])
    host.now = 40.0
    watch = host.watch()
    message = shortcoming(watch, watch.look(final=True))
    assert message.startswith(f"asked for {UNIT} to be ready; found: phase pool (last line: ")
    assert message.endswith("; wait for it (wait_for), or read the log of this start")
    host.now = 50.0
    assert shortcoming(watch, watch.look(final=True)) is None


def test_a_phase_counts_from_when_it_began_not_from_when_it_was_looked_at():
    host = Host(boot()[:2], [])
    host.now = 35.0
    seen = host.observe(limits={"weights": 30})
    assert (seen.look.allocation.failure.kind, seen.waited_s) == ("hang", 5.0)


# --- settling


def test_a_start_must_stay_up_for_the_settle_time_after_it_was_ready():
    seen = Host(boot(), []).observe(settle=10)
    assert (seen.problem, seen.waited_s) == (None, 60.0)


def test_a_server_that_has_been_ready_for_longer_costs_no_time():
    host = Host(boot(), [])
    host.now = 61.0
    assert (host.observe(settle=10).waited_s, host.now) == (0.0, 61.0)


# name, further lines, states, kind
UNSETTLED = [
    ("restarted", [], [(54.5, {"n_restarts": 1, "invocation_id": THIRD})], "crash_loop"),
    ("dead", [], [(54.5, DEAD)], "unit_failed"),
    ("its traceback comes after it died", [(55.2, NEW, OOM)], [(54.5, DEAD)], "oom_prefill"),
    ("out of memory in its first request", [(54.4, NEW, stamped("", CRASH)), (54.4, NEW, OOM)], [], "oom_prefill"),
]


@pytest.mark.parametrize(("lines", "states", "kind"), [case[1:] for case in UNSETTLED], ids=[case[0] for case in UNSETTLED])
def test_a_start_that_does_not_settle_has_failed(lines, states, kind):
    seen = Host([*boot(), *lines], states).observe(settle=10)
    assert seen.look.allocation.failure.kind == kind
    assert f"found: {kind}" in seen.problem
    assert seen.waited_s <= 60.0


# --- telling a caller how it goes on


def test_a_caller_is_told_of_each_phase_and_the_watch_goes_on_where_it_was():
    host, told, known = Host(boot(), []), [], Milestone()
    while True:
        seen = host.observe(timeout=100, since=known)
        host.read_until.clear()  # each call is a new process that reads the start from its beginning
        if not seen.pending:
            break
        known = milestone_of(seen.look, seen.waited_s)
        told.append((known.phase, known.waited_s))
    assert told == [("starting", 0.0), ("weights", 10.0), ("pool", 30.0)]
    assert (seen.problem, seen.waited_s, seen.look.allocation.ready) == (None, 50.0, True)


def test_the_time_of_all_calls_together_is_limited():
    known = Milestone(NEW, 0, "weights", None, 95.0)
    seen = Host(boot()[:2], []).observe(timeout=100, since=known)
    # from 0 s the phase is another one than is known; then the last 5 s of 100 pass
    assert (seen.pending, seen.look.allocation.phase) == (True, "starting")
    host = Host(boot()[:2], [])
    host.now = 10.0
    seen = host.observe(timeout=100, since=known)
    assert (seen.pending, seen.waited_s, seen.look.allocation.failure.kind) == (False, 100.0, "hang")
    assert "within 100 s" in seen.problem


@pytest.mark.parametrize("phase", ["starting", "weights", None])
def test_no_news_is_told_when_the_time_is_over(phase):
    host = Host(boot()[:2], [])
    host.now = 10.0
    seen = host.observe(timeout=0, since=Milestone(NEW, 0, phase, None, 0.0))
    assert (seen.pending, seen.waited_s, seen.look.allocation.phase, seen.look.allocation.failure) == (False, 0.0, "weights", None)
    assert seen.problem.startswith(f"asked for {UNIT} to be ready; found: phase weights")


def test_a_caller_hears_at_least_every_five_minutes():
    host = Host(boot()[:2], [])
    host.now = 10.0
    seen = host.observe(since=Milestone(NEW, 0, "weights", None, 0.0))
    assert (seen.pending, seen.waited_s) == (True, 300.0)


def test_a_restart_between_two_calls_is_seen():
    host = Host([*boot()[:2], *boot(20, THIRD)], [(15, {"n_restarts": 1, "invocation_id": THIRD})])
    host.now = 20.0
    seen = host.observe(since=Milestone(NEW, 0, "weights", None, 10.0))
    assert (seen.pending, seen.look.allocation.failure.kind, seen.look.allocation.invocation_id) == (False, "crash_loop", NEW)


def test_what_is_missing_is_unknown_where_messages_were_dropped():
    host = Host(boot(ready=False), [])
    watch = host.watch()
    read = host.read

    def with_drops(*arguments):
        yield from read(*arguments)
        if host.now == 45.0:
            yield Entry(f"Suppressed 62498 messages from {UNIT}", 1, daemon=True)

    host.read = with_drops
    host.now = 45.0
    seen = observe(watch, Terms("ready", 60), Clock(lambda: host.now, host.sleep))
    assert (seen.look.allocation.failure, seen.look.allocation.dropped_messages) == (None, 62498)
    assert "the log daemon dropped 62,498 messages, so what is missing here is unknown, not failed" in seen.problem
    assert seen.problem.endswith("; set LogRateLimitIntervalSec=0 in the unit, so that no message is dropped, and start it again")


def test_what_is_missing_is_unknown_where_a_part_of_the_journal_is_lost():
    host = Host(boot(ready=False), [])
    host.warnings = ("the journal has lost its beginning",)
    seen = host.observe(timeout=60)
    assert seen.look.allocation.failure is None
    assert "but the journal has lost its beginning, so what is missing here is unknown, not failed" in seen.problem
    assert seen.problem.endswith("; keep the journal whole (SystemMaxUse=, Storage=persistent), and start the server again")


def test_how_far_the_weights_are_comes_from_the_driver_where_no_bar_is_in_the_journal():
    gauge = WeightsGauge(72.0, lambda _argv: (0, "1, 36864\n", ""), lambda: 0.0)
    host = Host(boot()[:2], [])
    host.now = 10.0
    look = host.watch(gauge=gauge).look(final=False)
    assert (look.allocation.phase, look.allocation.phase_percent) == ("weights", 50)
    assert milestone_of(look, 0.0).percent == 50
    # a bar that another line pushed into the journal long ago
    stale = Host([*boot()[:2], (10, NEW, "Loading safetensors checkpoint shards:   3% Completed | 2/64 [00:01<00:31]")], [])
    stale.now = 10.0
    assert stale.watch(gauge=gauge).look(final=False).allocation.phase_percent == 50
    host = Host(boot(), [])
    host.now = 30.0
    assert host.watch(gauge=gauge).look(final=False).allocation.phase_percent is None


# --- what is returned is what is documented, both ways


def undocumented(value: Any, documented: dict[str, Any], path: str = "") -> Iterator[str]:
    """Where a result and its documentation differ: keys of one that the other has not, and values of another type."""
    kinds = {"str": str, "int": int, "bool": bool, "float": (int, float), "dict": dict, "list": list}
    for name in {*value, *documented}:
        here, known = f"{path}.{name}", documented.get(name)
        if known is None or name not in value:
            yield f"{here} {'is not documented' if known is None else 'is not returned'}"
            continue
        item = value[name]
        if item is None:
            continue
        if not isinstance(item, kinds[known["type"]]) or (isinstance(item, bool) and known["type"] != "bool"):
            yield f"{here} is {item!r}, and no {known['type']}"
        for part in item if isinstance(item, list) else [item]:
            if isinstance(part, dict) and "contains" in known:
                yield from undocumented(part, known["contains"], here)


def returned(call: Any, **arguments: Any) -> dict[str, Any]:
    result = call(**arguments)
    json.dumps(result, allow_nan=False)
    return {key: value for key, value in result.items() if key not in ("changed", "invocation", "failed", "msg", "progress")}


def test_all_that_is_returned_is_documented_and_all_that_is_documented_is_returned(call, tmp_path, host):
    host(show(), journal_of(tmp_path / "journal", (SECOND, NEW)))
    documented = {name: part for name, part in yaml.safe_load(allocation_info.RETURN).items() if name != "progress"}
    whole = returned(call, unit="sglang-k26", tp_size=8)
    assert whole["allocation"]["ranks"][0]["draft"]
    assert whole["service"]
    crashed = as_text(SECOND.lines()[:-2], stamped("TP3", f"{CRASH}\n{OOM}"))
    whole["allocation"]["failure"] = failed = returned(call, log_text=crashed)["allocation"]["failure"]
    assert failed["rank"] == {"tp": 3, "pp": 0, "dp": 0}
    assert sorted(undocumented(whole, documented)) == []
    for name in sorted(path.name for path in LOGS.iterdir()):
        saved = returned(call, log_files=[str(LOGS / name)])
        saved["allocation"]["failure"] = saved["allocation"]["failure"] or failed
        saved["service"] = whole["service"]
        # each model of each rank may lack a pool, but no key of it
        assert sorted(undocumented(saved, documented)) == [], name


def test_what_is_told_of_a_start_under_way_is_documented(call, tmp_path, host):
    host(show(), journal_of(tmp_path / "journal", (dataclasses.replace(SECOND, ready=False), NEW)))
    progress = call(unit="sglang-k26", wait_for="ready", since={})["progress"]
    described = yaml.safe_load(allocation_info.RETURN)["progress"]["description"]
    taken = set(yaml.safe_load(allocation_info.DOCUMENTATION)["options"]["since"]["suboptions"])
    assert set(progress) == taken == set(re.findall(r"V\((\w+)\)", str(described)))


# --- what else a reader is told


def test_how_the_start_before_this_one_ended_is_noted(call, tmp_path, host):
    journal = Journal()
    journal.server(SECOND.lines()[:60], OLD)
    journal.server([Line(stamped("TP3", CRASH), 203), Line(OOM, 203)], OLD)
    journal.manager(f"{UNIT}: Failed with result 'exit-code'.", OLD)
    journal.server(SECOND.lines(), NEW)
    journal.write(tmp_path / "journal")
    host(show(NRestarts="1"), str(tmp_path / "journal"))
    notes = call(unit="sglang-k26")["allocation"]["notes"]
    assert f"the start before this one (invocation_id {OLD}) died of oom_capture on TP3: {OOM}" in notes
    assert not [note for note in call(unit="sglang-k26", invocation_id=OLD)["allocation"]["notes"] if "start before" in note]


def test_a_start_that_nobody_restarted_looks_for_none_before_it(call, tmp_path, host):
    host(show(), journal_of(tmp_path / "journal", (FIRST, OLD), (SECOND, NEW)))
    assert not [note for note in call(unit="sglang-k26")["allocation"]["notes"] if "start before" in note]


def test_what_is_no_log_of_sglang_is_said(call):
    result = call(log_text="root:x:0:0:root:/root:/bin/bash")
    (note,) = result["allocation"]["notes"]
    assert note == "no line of an SGLang start is in this log: is it the right log, unit or start, and not packed?"
    with pytest.raises(Failed, match="no line of an SGLang start is in this log"):
        call(log_text="hello", wait_for="ready")


def test_a_saved_log_that_ends_does_not_hang(call, tmp_path):
    (tmp_path / "boot.log").write_text(as_text(SECOND.lines()[:12]))
    with pytest.raises(Failed) as failed:
        call(log_files=[tmp_path / "boot.log"], wait_for="ready", wait_timeout=1)
    assert failed.value.args[0]["allocation"]["failure"] is None
    assert "found: phase weights, no pool from TP0-TP7" in failed.value.args[0]["msg"]


def test_a_hang_says_which_process_to_look_at():
    failure = Host(boot()[:2], []).observe(timeout=60).look.allocation.failure
    assert failure.remedy.endswith("(py-spy dump --pid 1)")


SUMMARIES = [
    (
        as_text(SECOND.lines()),
        [
            "ready after 0 s",
            "pool: 192,406 tokens on the smallest of 8 ranks, 12.59 GiB on each, draft 192,406, context 200,000, 6.23 GiB left",
        ],
    ),
    (as_text(SECOND.lines()[:12]), ["weights after 0 s, waits for TP3-TP7 (setting up), no pool from TP0-TP7"]),
    (as_text([*SECOND.lines()[:50], Line(stamped("TP3", CRASH)), Line(OOM)]), [f"failure: oom_capture on TP3: {OOM}", "do: lower "]),
]


@pytest.mark.parametrize(("text", "lines"), SUMMARIES)
def test_a_start_in_a_few_lines(call, text, lines):
    summary = call(log_text=text)["summary"]
    assert [line for line in lines if not any(found.startswith(line) for found in summary)] == []
