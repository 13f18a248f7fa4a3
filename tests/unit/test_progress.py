# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person at the terminal sees while a start is waited for: the action plugin around a module that is scripted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.inferops.sglang.plugins.action.allocation_info import ActionModule, progress_line
from ansible_collections.inferops.sglang.plugins.plugin_utils import _watch
from ansible_collections.inferops.sglang.plugins.plugin_utils._watch import duration

WEIGHTS = {"phase": "weights", "phase_percent": 40, "waiting_for": "TP0-TP7 (loading weights)"}
LINES = [
    (None, 0.0, "[gpu01] sglang.service | not started yet | 0 s"),
    (WEIGHTS, 130.4, "[gpu01] sglang.service | weights 40 % | 2 min 10 s | waits for TP0-TP7 (loading weights)"),
    ({"phase": "ready", "waiting_for": None}, 59.9, "[gpu01] sglang.service | ready | 59 s"),
    ({"phase": "failed", "failure": {"kind": "oom_capture"}}, 9.0, "[gpu01] sglang.service | failed | 9 s | oom_capture"),
]


@pytest.mark.parametrize(("allocation", "waited", "line"), LINES)
def test_a_line_says_host_unit_phase_time_and_what_is_waited_for(allocation, waited, line):
    assert progress_line("gpu01", "sglang.service", allocation, waited) == line


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3725, "62 min 5 s")])
def test_seconds_as_a_person_reads_them(seconds, text):
    assert duration(seconds) == text


class Terminal:
    """Runs the action with a module that returns these results, one a call, and keeps what was shown."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], results: list[dict[str, Any]]) -> None:
        self.calls: list[dict[str, Any]] = []
        self._left = list(results)
        self._capsys = capsys
        monkeypatch.setattr(ActionBase, "__init__", lambda _self, **_parts: None)
        monkeypatch.setattr(ActionBase, "run", lambda _self, _tmp, _vars: {})
        monkeypatch.setattr(ActionBase, "_execute_module", self._module)

    def _module(self, name: str, module_args: dict[str, Any], task_vars: dict[str, Any], wrap_async: Any = None) -> dict[str, Any]:
        assert (name, task_vars["inventory_hostname"]) == ("inferops.sglang.allocation_info", "gpu01")
        self.calls.append({**module_args, "wrap_async": wrap_async} if wrap_async else module_args)
        return self._left.pop(0)

    def run(self, task: Optional[dict[str, Any]] = None, **arguments: Any) -> dict[str, Any]:
        action = ActionModule()
        ordinary = {"async_val": 0, "check_mode": False, "no_log": False, "delegate_to": None}
        action._task = SimpleNamespace(args=arguments, **{**ordinary, **(task or {})})
        action._connection = SimpleNamespace(has_native_async=False)
        return action.run(None, {"inventory_hostname": "gpu01"})

    def shown(self) -> tuple[list[str], list[str]]:
        both = self._capsys.readouterr()
        return both.out.splitlines(), both.err.splitlines()


def result(phase: str, waited: float, progress: bool = True, **more: Any) -> dict[str, Any]:
    told = {"progress": {"phase": phase, "waited_s": waited}} if progress else {}
    return {"allocation": {"phase": phase, "waiting_for": None}, "waited_s": waited, "polls": 3, **told, **more}


def test_each_phase_is_one_line_on_standard_error_and_the_result_is_the_last_calls(monkeypatch, capsys):
    terminal = Terminal(monkeypatch, capsys, [result("starting", 0), result("weights", 12), result("ready", 80, False)])
    found = terminal.run(unit="sglang", wait_for="ready", wait_timeout=900)
    assert [call["since"] for call in terminal.calls] == [{}, {"phase": "starting", "waited_s": 0}, {"phase": "weights", "waited_s": 12}]
    assert all(call["wait_timeout"] == 900 for call in terminal.calls)
    out, err = terminal.shown()
    assert out == []
    assert err == ["[gpu01] sglang | starting | 0 s", "[gpu01] sglang | weights | 12 s", "[gpu01] sglang | ready | 1 min 20 s"]
    assert (found["waited_s"], found["polls"], "progress" in found) == (80, 9, False)


def test_a_task_that_is_not_to_be_logged_shows_no_line(monkeypatch, capsys):
    terminal = Terminal(monkeypatch, capsys, [result("weights", 12), result("ready", 80, False)])
    assert terminal.run(unit="sglang", wait_for="ready", task={"no_log": True})["waited_s"] == 80
    assert terminal.shown() == ([], [])


def test_a_host_that_another_one_stands_in_for_is_named(monkeypatch, capsys):
    terminal = Terminal(monkeypatch, capsys, [result("weights", 12), result("ready", 80, False)])
    terminal.run(unit="sglang", wait_for="ready", task={"delegate_to": "gpu02"})
    assert terminal.shown()[1][0] == "[gpu01 -> gpu02] sglang | weights | 12 s"


def test_what_the_calls_take_counts_as_waiting(monkeypatch, capsys):
    terminal = Terminal(monkeypatch, capsys, [result("weights", 0.1), result("ready", 0.2, False)])
    seconds = iter((100.0, 107.5, 131.0))
    monkeypatch.setattr(_watch, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    terminal.run(unit="sglang", wait_for="ready")
    assert terminal.calls[1]["since"] == {"phase": "weights", "waited_s": 7}
    assert terminal.shown()[1] == ["[gpu01] sglang | weights | 7 s", "[gpu01] sglang | ready | 31 s"]


def test_a_server_that_is_already_there_costs_one_call_and_no_line(monkeypatch, capsys):
    terminal = Terminal(monkeypatch, capsys, [result("ready", 0, False)])
    assert terminal.run(unit="sglang", wait_for="ready")["polls"] == 3
    assert (len(terminal.calls), terminal.shown()) == (1, ([], []))


def test_a_failed_start_is_told_with_its_kind_and_by_the_task(monkeypatch, capsys):
    terminal = Terminal(monkeypatch, capsys, [result("weights", 5), result("failed", 9, False, failed=True, msg="asked for ...")])
    found = terminal.run(unit="sglang", wait_for="ready")
    assert (found["failed"], found["msg"]) == (True, "asked for ...")
    assert terminal.shown() == ([], ["[gpu01] sglang | weights | 5 s", "[gpu01] sglang | failed | 9 s"])


# what has nothing to watch, or nobody to tell: arguments, options of the task
ALONE = [
    ({"unit": "sglang"}, {}),
    ({"unit": "sglang", "wait_for": "none"}, {}),
    ({"log_files": ["/x"], "wait_for": "ready"}, {}),
    ({"unit": "sglang", "journal_directory": "/x", "wait_for": "ready"}, {}),
    ({"unit": "sglang", "wait_for": "ready", "since": {"phase": "weights"}}, {}),
    ({"unit": "sglang", "wait_for": "ready"}, {"check_mode": True}),
    ({"unit": "sglang", "wait_for": "ready"}, {"async_val": 600}),
]


@pytest.mark.parametrize(("arguments", "task"), ALONE)
def test_otherwise_the_module_runs_once_as_it_was_asked(monkeypatch, capsys, arguments, task):
    terminal = Terminal(monkeypatch, capsys, [result("weights", 0)])
    terminal.run(task, **arguments)
    background = {"wrap_async": True} if task.get("async_val") else {}
    assert terminal.calls == [{**arguments, **background}]
    assert terminal.shown() == ([], [])
