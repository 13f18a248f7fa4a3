# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long step as a transient systemd unit. Private to this collection: may change at any time.

Whoever asks for it may go away: the unit runs on, its output is in the journal, its time is limited, and another run that asks for the
same step finds it by its name. It stays loaded after its end (C(RemainAfterExit=), or as a failed unit), so that a run which comes later
still sees how it ended; a restart of the host forgets it. All commands go through an injected runner.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._service import unit_name
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

ABSENT, RUNNING, DONE, FAILED = "absent", "running", "done", "failed"
KEPT_LINES = 60
POLL_S = 0.5

_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "ExecMainCode",
    "ExecMainStatus",
    "ExecMainStartTimestampMonotonic",
    "ExecMainExitTimestampMonotonic",
    "InvocationID",
    "Job",
)
_SIGNALLED = ("2", "3")  # CLD_KILLED and CLD_DUMPED, as ExecMainCode= has them
_TAKEN = re.compile(r"already loaded|already exists|has a fragment file", re.IGNORECASE)


class LongStepError(Exception):
    """The step cannot be started or seen; the text says what was asked, what was found, and what to do."""


@dataclass(frozen=True)
class LongStep:
    """What to run: a unit's name, a command, what it is for, and how many seconds it may take (0: as long as it needs).

    ``environment`` and the command can be read by every user of the host, a file of ``credentials`` (name -> path) or the
    ``environment_file`` only by root and by the step itself.
    """

    unit: str
    argv: tuple[str, ...]
    description: str
    environment: Mapping[str, str] = field(default_factory=dict)
    credentials: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 0
    environment_file: str = ""


@dataclass(frozen=True)
class StepState:
    """Where a step is: C(absent) (never started, stopped, or forgotten), C(running), C(done) or C(failed).

    ``result`` is systemd's own word for the end (C(success), C(exit-code), C(signal), C(timeout), C(oom-kill)), ``exit_status`` the exit
    code or the signal's number, ``last_lines`` the end of its output, oldest first.
    """

    state: str
    result: str = ""
    exit_status: int = 0
    last_lines: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    invocation_id: str = ""
    signalled: bool = False

    def sentence(self) -> str:
        """How it ended, in words, to follow a colon."""
        if self.result == "timeout":
            return f"it was ended after {self.elapsed_s:.0f} s, which is all the time it was given"
        if self.result == "oom-kill":
            return "the kernel ended it because the host ran out of memory"
        if self.signalled:
            return f"it was killed with signal {self.exit_status}"
        if self.state == ABSENT:
            return "it was stopped"
        return f"it ended with exit code {self.exit_status}"


def start_or_join(step: LongStep, run: Runner) -> StepState:
    """Starts the step unless it runs already; what an earlier one of this name left is forgotten first.

    Raises LongStepError where it cannot be started. A step that ends within the call comes back as it ended.
    """
    seen = look(step.unit, run, lines=0)
    if seen.state == RUNNING:
        return seen
    if seen.state != ABSENT:
        forget(step.unit, run)
    argv = _command(step)
    code, _out, errors = _run(argv, run)
    started = look(step.unit, run)
    # another run was faster: that one is joined. A program that cannot be started has left a failed unit and says so in there.
    if code != 0 and (started.state == ABSENT or not (_TAKEN.search(errors) or started.state == FAILED)):
        raise LongStepError(
            f"asked systemd to run {unit_name(step.unit)} ({step.description}), found exit code {code} and {errors.strip()[-400:]!r}; "
            f"run it on a host that runs systemd, as root, and look at: systemctl status {unit_name(step.unit)}"
        )
    return started


def look(unit: str, run: Runner, lines: int = KEPT_LINES, now: Callable[[], float] = time.monotonic) -> StepState:
    """The step as it is now, with the last lines of its output. Raises LongStepError where systemd does not answer."""
    argv = ["systemctl", "show", "--property=" + ",".join(_PROPERTIES), "--", unit_name(unit)]
    code, out, errors = _run(argv, run)
    values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    if code != 0 or "ActiveState" not in values:
        raise LongStepError(
            f"asked systemd for the state of {unit_name(unit)}, found exit code {code} and {errors.strip()[:300]!r}; "
            "run this on a host that runs systemd"
        )
    state = _state(values)
    if state == ABSENT:
        return StepState(ABSENT)
    invocation = values.get("InvocationID", "")
    began, ended = (_number(values.get(f"ExecMain{name}TimestampMonotonic")) / 1e6 for name in ("Start", "Exit"))
    until = ended if state != RUNNING and ended > 0 else now()
    return StepState(
        state,
        result=values.get("Result", ""),
        exit_status=_number(values.get("ExecMainStatus")),
        last_lines=output_of(invocation, run, lines, sync=state != RUNNING) if lines else (),
        elapsed_s=max(until - began, 0.0) if began > 0 else 0.0,
        invocation_id=invocation,
        signalled=state == FAILED and values.get("ExecMainCode") in _SIGNALLED,
    )


def output_of(invocation: str, run: Runner, lines: int = KEPT_LINES, sync: bool = True) -> tuple[str, ...]:
    """The last lines that a step printed, also after it was forgotten; ``sync``: it has ended, so wait for what is on its way."""
    if not invocation:
        return ()
    if sync:
        _run(["journalctl", "--sync"], run)
    argv = ["journalctl", "--no-pager", "--all", "--quiet", "--output=cat", f"--lines={lines}", f"_SYSTEMD_INVOCATION_ID={invocation}"]
    _code, out, _errors = _run(argv, run)
    return tuple(text for text in (line.rsplit("\r", 1)[-1].rstrip() for line in out.split("\n")) if text)


def wait(unit: str, run: Runner, clock: Clock, until_s: float) -> StepState:
    """Looks until the step no longer runs, or the clock shows ``until_s``."""
    seen = wait_until(
        look=lambda: look(unit, run, lines=0, now=clock.now),
        done=lambda state: state.state != RUNNING,
        timeout_s=max(until_s - clock.now(), 0.0),
        interval_s=POLL_S,
        clock=clock,
    )
    return look(unit, run, now=clock.now) if seen.value.state != ABSENT else seen.value


def forget(unit: str, run: Runner) -> None:
    """Ends the step if it still runs, and takes its unit away: the next one of this name starts afresh."""
    for verb in ("stop", "reset-failed"):
        _run(["systemctl", verb, "--", unit_name(unit)], run)


def _command(step: LongStep) -> list[str]:
    properties = {
        "Type": "exec",
        "RemainAfterExit": "yes",
        "RuntimeMaxSec": str(step.timeout_s) if step.timeout_s > 0 else "infinity",
        "SyslogIdentifier": unit_name(step.unit).rsplit(".", 1)[0],
        # every line may be the one that tells why
        "LogRateLimitIntervalSec": "0",
    }
    given = [f"--property={name}={value}" for name, value in properties.items()]
    given += [f"--property=LoadCredential={name}:{path}" for name, path in step.credentials.items()]
    given += [f"--property=EnvironmentFile={step.environment_file}"] if step.environment_file else []
    given += [f"--setenv={name}={value}" for name, value in step.environment.items()]
    # systemd replaces $NAME in the words of a command
    words = [word.replace("$", "$$") for word in step.argv]
    return ["systemd-run", "--quiet", f"--unit={unit_name(step.unit)}", f"--description={step.description}", *given, "--", *words]


def _state(values: Mapping[str, str]) -> str:
    active = values["ActiveState"]
    if active == "failed":
        return FAILED
    if active == "active" and values.get("SubState") == "exited":
        return DONE
    if active != "inactive" or _number(values.get("Job")) > 0:
        return RUNNING
    return ABSENT


def _run(argv: list[str], run: Runner) -> tuple[int, str, str]:
    try:
        return run(argv)
    except OSError as error:
        return 127, "", str(error)


def _number(text: Optional[str]) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0
