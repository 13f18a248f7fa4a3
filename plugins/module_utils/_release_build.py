# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the environment of a release as a long step. Private to this collection: may change at any time.

Whatever ends a run half-way, the next one finds one of these states and goes on from there:

* the step runs: this run joins it;
* the step ended and the environment has no mark: it is looked through and marked, or cleared away;
* no step, no mark, the folder of the build: what lies there is half-made and goes;
* the mark is there: finished; what building left beside it is tidied up.

What was there before the build is moved aside, for a server may still live in it, and comes back if the new one cannot be built.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._long_step import (
    ABSENT,
    DONE,
    FAILED,
    RUNNING,
    LongStep,
    LongStepError,
    StepState,
    forget,
    look,
    output_of,
    start_or_join,
)
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._release import (
    MARK,
    ReleaseError,
    ReleaseState,
    Request,
    mark_text,
    state_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._release_command import (
    ENVIRONMENT,
    REQUIREMENTS,
    choose_installer,
    environment_text,
    requirements_text,
    script_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._release_output import Phase, phase_of, trouble_of
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

LOCK = "/run/inferops-sglang-release.lock"
NEWS_S = 30.0
POLL_S = 1.0
LINES = 400


@dataclass(frozen=True)
class Host:
    """What building needs of a host: a way to run commands, a clock, to find programs, its own environment, what os-release says."""

    run: Runner
    clock: Clock
    which: Callable[[str], Optional[str]]
    environment: Mapping[str, str]
    os_release: Mapping[str, str]
    lock: str = LOCK


@dataclass(frozen=True)
class Place:
    """Where an environment is built: its folder, and beside it what building needs and what was there before."""

    path: str

    @property
    def root(self) -> str:
        return os.path.dirname(self.path)

    @property
    def build(self) -> str:
        return f"{self.root}/.{os.path.basename(self.path)}.build"

    @property
    def aside(self) -> str:
        return f"{self.root}/.{os.path.basename(self.path)}.old"

    @property
    def unit(self) -> str:
        """One for each folder of the host."""
        return "sglang-build" + re.sub(r"[^A-Za-z0-9.-]", "_", self.path.replace("/", "-"))


@dataclass(frozen=True)
class Known:
    """What the caller knows from an earlier call: the step it waits for, and what it was at."""

    invocation_id: str = ""
    phase: str = ""


@dataclass(frozen=True)
class News:
    """What a call saw. ``built``: there was something to do. ``pending``: it goes on, ``phase`` and ``elapsed_s`` say how far it is."""

    state: ReleaseState
    built: bool
    pending: bool = False
    phase: Optional[Phase] = None
    elapsed_s: float = 0.0
    invocation_id: str = ""


def ensure(request: Request, place: Place, timeout_s: int, host: Host, known: Optional[Known]) -> News:
    """Sees to it that the environment is there and whole.

    Without ``known`` it comes back when that is so. With it, as soon as there is news: the step was started, is at something else, or
    half a minute is gone. Raises ReleaseError or LongStepError.
    """
    invocation = known.invocation_id if known else ""
    phase, since = known.phase if known else "", host.clock.now()
    while True:
        with locked(host.lock):
            seen = look(place.unit, host.run, lines=LINES)
            if seen.state != RUNNING:
                ended = _end(request, place, timeout_s, host, seen, invocation)
                if ended is not None:
                    return ended
                seen = _start(request, place, timeout_s, host)
        invocation, now_at = seen.invocation_id, phase_of(seen.last_lines)
        if known is not None and (now_at.kind != phase or host.clock.now() - since >= NEWS_S):
            return News(state_of(place.path, request), True, True, now_at, seen.elapsed_s, invocation)
        phase = now_at.kind
        host.clock.sleep(POLL_S)


def _end(request: Request, place: Place, timeout_s: int, host: Host, seen: StepState, awaited: str) -> Optional[News]:
    """How it ended, if there is nothing more to build. Raises ReleaseError for a step that this caller waited for and that failed."""
    state = state_of(place.path, request)
    is_ours = bool(awaited) and awaited == seen.invocation_id
    if seen.state == DONE and (state.kind == "unfinished" or (is_ours and not state.complete)):
        try:
            _mark(request, place, host)
        except ReleaseError as error:
            _clear(place, host)
            # what an earlier run left half-way is built anew; what was just built will not get better
            if not is_ours:
                return None
            raise ReleaseError(error.finding.asked, error.finding.found, f"{error.finding.do}. {_after(place)}") from None
        state = state_of(place.path, request)
    if state.complete:
        left = seen.state != ABSENT or os.path.lexists(place.build) or os.path.lexists(place.aside)
        if left:
            _tidy(place, host)
        return News(state, left or bool(awaited), elapsed_s=seen.elapsed_s, invocation_id=seen.invocation_id or awaited)
    if seen.state == FAILED and is_ours:
        _clear(place, host)
        raise _failure(request, place, timeout_s, host, seen)
    if awaited and seen.state == ABSENT:
        # stopped by hand, or another run that waited for the same step was faster and has cleared away what it left
        if os.path.lexists(place.build):
            _clear(place, host)
        lines = output_of(awaited, host.run, LINES)
        raise _failure(request, place, timeout_s, host, StepState(ABSENT, last_lines=lines, invocation_id=awaited))
    return None


def _start(request: Request, place: Place, timeout_s: int, host: Host) -> StepState:
    installer = choose_installer(request, host.which)
    os.makedirs(place.root, mode=0o755, exist_ok=True)
    _make_room(place)
    try:
        _write_build(request, place, host.environment)
        step = LongStep(
            unit=place.unit,
            argv=("/bin/sh", "-ec", script_of(request, place.path, place.build, installer)),
            description=f"Builds SGLang {request.version} in {place.path}",
            timeout_s=timeout_s,
            environment_file=f"{place.build}/{ENVIRONMENT}",
        )
        return start_or_join(step, host.run)
    except (OSError, LongStepError) as error:
        _clear(place, host)
        if isinstance(error, LongStepError):
            raise
        do = f"free space there, or put sglang_root elsewhere. {_after(place)}"
        raise ReleaseError(f"SGLang {request.version} in {place.path}", f"{error.strerror} ({error.filename})", do) from error


def _make_room(place: Place) -> None:
    """Nothing lies where the environment is to be built: what a build that was cut left goes, anything else is kept beside it."""
    if not os.path.lexists(place.path):
        return
    half_made = os.path.lexists(place.build) and not os.path.lexists(f"{place.path}/{MARK}")
    if half_made or os.path.lexists(place.aside):
        remove(place.path)
    else:
        os.rename(place.path, place.aside)


def _write_build(request: Request, place: Place, environment: Mapping[str, str]) -> None:
    remove(place.build)
    os.mkdir(place.build, 0o700)
    for folder in ("tmp", "cache"):
        os.mkdir(f"{place.build}/{folder}", 0o700)
    for name, text in ((REQUIREMENTS, requirements_text(request)), (ENVIRONMENT, environment_text(place.build, environment))):
        Path(place.build, name).write_text(text, encoding="utf-8")


def _mark(request: Request, place: Place, host: Host) -> None:
    """Marks the environment as finished, in one step."""
    text = mark_text(place.path, request, _installer_name(place, request, host))
    draft = f"{place.path}/{MARK}.new"
    with open(draft, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(draft, 0o644)
    os.rename(draft, f"{place.path}/{MARK}")


def _installer_name(place: Place, request: Request, host: Host) -> str:
    """Which one filled it: uv notes itself in what it makes."""
    try:
        return "uv" if re.search(r"^uv\s*=", Path(place.path, "pyvenv.cfg").read_text(encoding="utf-8"), re.MULTILINE) else "pip"
    except OSError:
        return choose_installer(request, host.which).name


def _tidy(place: Place, host: Host) -> None:
    for left in (place.build, place.aside):
        remove(left)
    forget(place.unit, host.run)


def _clear(place: Place, host: Host) -> None:
    """Takes a half-made environment away and puts back what was there before; in an order that may be cut anywhere."""
    forget(place.unit, host.run)
    remove(place.path)
    remove(place.build)
    if os.path.lexists(place.aside):
        os.rename(place.aside, place.path)
    try:
        # an empty folder is left by nobody; a mount point stays
        os.rmdir(place.root)
    except OSError:
        return


def _failure(request: Request, place: Place, timeout_s: int, host: Host, seen: StepState) -> ReleaseError:
    ended = f"that {seen.sentence()}"
    trouble = trouble_of(seen.last_lines, request, host.os_release, ended)
    found, do = trouble.found, trouble.do
    if seen.result == "timeout":
        found, do = ended, f"give sglang_install_timeout more than {timeout_s} seconds"
    elif seen.signalled or seen.result == "oom-kill" or (seen.state == ABSENT and found == ended):
        found, do = f"that the installation did not end by itself: {seen.sentence()}", "run it again"
    log = f"The installer's output: journalctl _SYSTEMD_INVOCATION_ID={seen.invocation_id}"
    return ReleaseError(f"SGLang {request.version} in {place.path}", found, f"{do}. {_after(place)} {log}")


def _after(place: Place) -> str:
    if os.path.lexists(place.path):
        return "The broken environment that was there is put back and the service is untouched."
    return "The half-made environment is removed and the service is untouched."


def settle(place: Place, host: Host) -> None:
    """Ends what a build that nobody waits for any more left beside its environment; one that goes on is left alone."""
    if look(place.unit, host.run, lines=0).state in (RUNNING, DONE):
        return
    if os.path.lexists(f"{place.path}/{MARK}"):
        _tidy(place, host)
    else:
        _clear(place, host)


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


@contextmanager
def locked(path: str) -> Iterator[None]:
    """One run at a time decides and acts; none waits for a build in here."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def size_of(*folders: str) -> int:
    """Bytes on the disk of all files in them, those with several names once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for folder in folders:
        for base, _folders, files in os.walk(folder):
            for name in files:
                try:
                    status = os.lstat(os.path.join(base, name))
                except OSError:
                    continue
                if status.st_nlink == 1 or (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    total += status.st_blocks * 512
    return total
