# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long steps: what is asked of systemd, and what its answers mean. The runner is a table of answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import (
    LongStep,
    LongStepError,
    StepState,
    look,
    start_or_join,
    wait,
)
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock


def shown(active: str, sub: str = "", **more: str) -> str:
    values = {"LoadState": "loaded", "ActiveState": active, "SubState": sub, "Result": "success", "InvocationID": "ab12", **more}
    return "".join(f"{name}={value}\n" for name, value in values.items())


ABSENT = shown("inactive", "dead", LoadState="not-found", InvocationID="")
RUNNING = shown("active", "running", ExecMainStartTimestampMonotonic="5000000")
DONE = shown("active", "exited", ExecMainStartTimestampMonotonic="5000000", ExecMainExitTimestampMonotonic="65000000")
KILLED = shown("failed", "failed", Result="signal", ExecMainCode="2", ExecMainStatus="9")


class Systemd:
    """Answers C(systemctl show) with these texts in turn, the last one for ever, and keeps every command."""

    def __init__(self, *states: str, start: tuple[int, str] = (0, "")) -> None:
        self.states = list(states)
        self.start = start
        self.commands: list[list[str]] = []

    def __call__(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.commands.append(list(argv))
        if argv[:2] == ["systemctl", "show"]:
            return 0, self.states.pop(0) if len(self.states) > 1 else self.states[0], ""
        if argv[0] == "systemd-run":
            return self.start[0], "", self.start[1]
        return 0, "one\ntwo\rthree  \n\n" if "--output=cat" in argv else "", ""

    def ran(self) -> list[str]:
        return [" ".join(command[:2]) for command in self.commands if command[:2] != ["systemctl", "show"]]


STEP = LongStep(
    "fill", ("/bin/sh", "-c", "echo $HOME 5%"), "Fills it", {"A": "b c"}, {"token": "/etc/token"}, timeout_s=60, environment_file="/run/env"
)


def test_the_command_limits_the_time_and_hides_what_is_secret():
    systemd = Systemd(ABSENT, RUNNING)
    assert start_or_join(STEP, systemd).state == "running"
    assert [command for command in systemd.commands if command[0] == "systemd-run"] == [
        ["systemd-run", "--quiet", "--unit=fill.service", "--description=Fills it",
         "--property=Type=exec", "--property=RemainAfterExit=yes", "--property=RuntimeMaxSec=60",
         "--property=SyslogIdentifier=fill", "--property=LogRateLimitIntervalSec=0",
         "--property=LoadCredential=token:/etc/token", "--property=EnvironmentFile=/run/env", "--setenv=A=b c", "--",
         "/bin/sh", "-c", "echo $$HOME 5%"]
    ]  # fmt: skip


STARTS = [
    ("one that runs is joined", [RUNNING], [], "running"),
    ("one that ended is forgotten first", [DONE, RUNNING], ["systemctl stop", "systemctl reset-failed", "systemd-run --quiet"], "running"),
    ("so is one that failed", [KILLED, RUNNING], ["systemctl stop", "systemctl reset-failed", "systemd-run --quiet"], "running"),
]


@pytest.mark.parametrize(("name", "states", "commands", "state"), STARTS, ids=[case[0] for case in STARTS])
def test_a_start(name, states, commands, state):
    systemd = Systemd(*states)
    assert start_or_join(STEP, systemd).state == state, name
    assert [command for command in systemd.ran() if not command.startswith("journalctl")] == commands


def test_another_run_that_was_faster_is_joined():
    systemd = Systemd(ABSENT, RUNNING, start=(1, "Failed to start transient service unit: Unit fill.service was already loaded"))
    assert start_or_join(STEP, systemd).state == "running"


def test_what_cannot_be_started_is_told():
    with pytest.raises(LongStepError) as error:
        start_or_join(STEP, Systemd(ABSENT, start=(1, "Failed to connect to bus: Host is down\n")))
    assert str(error.value) == (
        "asked systemd to run fill.service (Fills it), found exit code 1 and 'Failed to connect to bus: Host is down'; "
        "run it on a host that runs systemd, as root, and look at: systemctl status fill.service"
    )


def test_without_systemd_the_error_says_so():
    def run(_argv):
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(LongStepError, match=r"found exit code 127 and .*; run this on a host that runs systemd"):
        look("fill", run)


LINES = ("one", "three")
STATES = [
    ("absent", ABSENT, StepState("absent"), "it was stopped"),
    ("a start that waits", shown("inactive", "dead", Job="77"), StepState("running", "success", 0, LINES, 0.0, "ab12"), ""),
    ("running", RUNNING, StepState("running", "success", 0, LINES, 95.0, "ab12"), ""),
    ("on its way down", shown("deactivating", "stop-sigterm"), StepState("running", "success", 0, LINES, 0.0, "ab12"), ""),
    ("done", DONE, StepState("done", "success", 0, LINES, 60.0, "ab12"), ""),
    ("an exit code", shown("failed", Result="exit-code", ExecMainCode="1", ExecMainStatus="3"),
     StepState("failed", "exit-code", 3, LINES, 0.0, "ab12"), "it ended with exit code 3"),
    ("killed", KILLED, StepState("failed", "signal", 9, LINES, 0.0, "ab12", signalled=True), "it was killed with signal 9"),
    ("too slow", shown("failed", Result="timeout", ExecMainCode="2", ExecMainStatus="15", ExecMainStartTimestampMonotonic="5000000",
                       ExecMainExitTimestampMonotonic="65000000"),
     StepState("failed", "timeout", 15, LINES, 60.0, "ab12", signalled=True),
     "it was ended after 60 s, which is all the time it was given"),
    ("no memory", shown("failed", Result="oom-kill", ExecMainCode="2", ExecMainStatus="9"),
     StepState("failed", "oom-kill", 9, LINES, 0.0, "ab12", signalled=True), "the kernel ended it because the host ran out of memory"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "state", "sentence"), STATES, ids=[case[0] for case in STATES])
def test_what_systemd_shows(name, text, state, sentence):
    seen = look("fill", Systemd(text), now=lambda: 100.0)
    assert seen == state, name
    assert not sentence or seen.sentence() == sentence


def test_waiting_ends_with_the_step_or_with_the_time():
    seconds = [0.0]
    clock = Clock(now=lambda: seconds[0], sleep=lambda span: seconds.__setitem__(0, seconds[0] + span))
    assert wait("fill", Systemd(RUNNING, RUNNING, DONE), clock, until_s=30).state == "done"
    assert seconds[0] == 1.0
    assert wait("fill", Systemd(RUNNING), clock, until_s=3).state == "running"
    assert seconds[0] == 3.0
