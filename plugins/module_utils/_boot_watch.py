# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches one start of a server until its outcome is certain. Private to this collection: may change at any time.

A watch looks at one source (a unit of this host, a journal, a saved log) and says what is known now; ``observe`` looks again and
again. It gives up as soon as the log or the service manager proves that the start is lost, not only when the time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Optional, Protocol

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import (
    Allocation,
    BootFolder,
    Entry,
    Parallelism,
    ServiceState,
)
from ansible_collections.inferops.sglang.plugins.module_utils._failures import KINDS, Failure
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalReader
from ansible_collections.inferops.sglang.plugins.module_utils._rank_pools import PHASES
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

POLL_S = 1.0  # a start is given up one look after the look that saw it lost: under 3 s from the fatal line


@dataclass(frozen=True)
class Look:
    """What is known now. ``lost``: it cannot come up any more."""

    allocation: Optional[Allocation]
    service: Optional[ServiceState]
    lost: bool


class Watch(Protocol):
    """A source of looks at one start; ``name`` says in messages what is looked at."""

    name: str

    def look(self, final: bool) -> Look:
        """What is known now; ``final``: no further look follows."""

    def last_lines(self) -> list[str]:
        """The newest lines of the log, oldest first."""


class TextWatch:
    """A saved log, or one that is still written; read as a whole on each look."""

    def __init__(self, name: str, read: Callable[[], Iterable[Entry]], expected: Parallelism) -> None:
        self.name = name
        self._read = read
        self._expected = expected
        self._last: list[str] = []

    def look(self, final: bool) -> Look:
        folder = BootFolder()
        for entry in self._read():
            folder.feed(entry)
            if entry.text.strip():
                self._last = [*self._last[-2:], entry.text]
        return Look(folder.result(self._expected, ended=final, saved=True), None, folder.lost)

    def last_lines(self) -> list[str]:
        return self._last


class JournalWatch:
    """A journal that is not this host's own running one: a directory, or files that were collected."""

    def __init__(self, name: str, reader: JournalReader, unit: Optional[str], invocation: Optional[str], expected: Parallelism) -> None:
        self.name = name
        self._reader = reader
        self._unit = unit
        self._invocation = invocation
        self._expected = expected
        self._folder = BootFolder()

    def look(self, final: bool) -> Look:
        if self._invocation is None:
            self._invocation = self._reader.newest_invocation(self._unit) if self._unit else self._reader.newest_boot()
        if self._invocation is None:
            return Look(None, None, False)
        self._folder.feed_all(self._reader.read(self._invocation, self._unit, lambda: self._folder.in_traceback))
        allocation = self._folder.result(self._expected, ended=final, invocation_id=self._invocation)
        return Look(allocation, None, self._folder.lost)

    def last_lines(self) -> list[str]:
        return self._reader.last_lines(self._invocation, 3) if self._invocation else []


class UnitWatch:
    """A unit of this host. The start that ran at the first look is the one that is watched; another start means it is lost."""

    def __init__(
        self,
        unit: str,
        reader: JournalReader,
        service: Callable[[], ServiceState],
        version: Callable[[int], Optional[str]],
        expected: Parallelism,
        invocation: Optional[str] = None,
    ) -> None:
        self.name = unit
        self._unit = unit
        self._reader = reader
        self._service = service
        self._version = version
        self._expected = expected
        self._asked = invocation
        self._invocation = invocation
        self._restarts: Optional[int] = None
        self._running_version: Optional[str] = None
        self._folder = BootFolder()

    def look(self, final: bool) -> Look:  # noqa: ARG002  a unit's own state says whether more can come
        service = self._service()
        if not service.exists:
            return Look(None, service, True)
        self._choose(service)
        if self._invocation is None:
            return Look(None, service, service.dead)
        # the state belongs to the start that runs now, which may be another one than the start that is watched
        gone = service.invocation_id not in ("", self._invocation) or service.n_restarts > (self._restarts or 0)
        if not gone and service.main_pid and self._running_version is None:
            self._running_version = self._version(service.main_pid)
        self._folder.feed_all(self._reader.read(self._invocation, self._unit, lambda: self._folder.in_traceback))
        allocation = self._folder.result(
            self._expected,
            service=None if gone else service,
            ended=gone,
            verdict=self._verdict(service, gone),
            invocation_id=self._invocation,
            sglang_version=self._running_version,
        )
        return Look(allocation, service, self._folder.lost or gone or service.dead)

    def last_lines(self) -> list[str]:
        return self._reader.last_lines(self._invocation, 3) if self._invocation else []

    def _choose(self, service: ServiceState) -> None:
        """Settles on a start at the first look that shows one; a unit about to be started still shows its last one."""
        if self._restarts is None and not (service.job and service.active_state in ("inactive", "failed")):
            self._restarts = service.n_restarts
        if self._invocation is None and self._restarts is not None:
            self._invocation = service.invocation_id or self._reader.newest_invocation(self._unit)

    def _verdict(self, service: ServiceState, gone: bool) -> Optional[Failure]:
        if not gone or self._asked:
            return None
        again = service.n_restarts - (self._restarts or 0)
        kind = "crash_loop" if again > 0 else "unit_failed"
        text = f"the watched start {self._invocation} has ended and the unit was started again ({max(again, 0)} automatic restarts since)"
        return Failure(kind, None, text, KINDS[kind].advice, None, KINDS[kind].remedy)


@dataclass(frozen=True)
class Observation:
    """Where the watching ended. ``problem`` is the three-part message of an outcome that is not the one asked for."""

    look: Look
    problem: Optional[str]
    waited_s: float
    polls: int


def observe(watch: Watch, goal: str, timeout_s: float, phase_timeouts: Mapping[str, float], clock: Clock) -> Observation:
    """Looks until the start is C(ready) or has its C(pool) on every rank, is lost, or has no time left.

    ``goal`` C(none) looks once and finds nothing wrong. ``phase_timeouts``: seconds a start may stay in a phase, by phase.
    """
    if goal == "none":
        return Observation(watch.look(final=True), None, 0.0, 1)
    patience = _Patience(goal, phase_timeouts, clock)
    outcome = wait_until(lambda: watch.look(final=False), patience.over, timeout_s, POLL_S, clock)
    look = outcome.value
    if _reached(look, goal):
        return Observation(look, None, outcome.elapsed_s, outcome.polls)
    if not look.lost:
        look = watch.look(final=True)
        look = _call_it_a_hang(look, goal, outcome.elapsed_s, patience.overdue)
    problem = None if _reached(look, goal) else explain(watch, goal, timeout_s, look)
    return Observation(look, problem, outcome.elapsed_s, outcome.polls)


def shortcoming(watch: Watch, look: Look) -> Optional[str]:
    """The three-part message for a start that is not ready on every rank now; None for one that is."""
    allocation = look.allocation
    if allocation is not None and allocation.ready and allocation.complete:
        return None
    return explain(watch, "ready", 0, look)


class _Patience:
    """Decides after each look whether a further one is of use."""

    def __init__(self, goal: str, phase_timeouts: Mapping[str, float], clock: Clock) -> None:
        self._goal = goal
        self._limits = phase_timeouts
        self._clock = clock
        self._phase = ""
        self._since = 0.0
        self._lost_before = False
        self.overdue: Optional[str] = None

    def over(self, look: Look) -> bool:
        if _reached(look, self._goal):
            return True
        if look.lost:
            # one more look: the lines that say why may still be on their way
            certain, self._lost_before = self._lost_before, True
            return certain
        return self._phase_is_overdue(look.allocation.phase if look.allocation else "starting")

    def _phase_is_overdue(self, phase: str) -> bool:
        now = self._clock.now()
        if phase != self._phase:
            self._phase, self._since = phase, now
        limit = self._limits.get(phase)
        if limit is None or now - self._since < limit:
            return False
        self.overdue = phase
        return True


def _reached(look: Look, goal: str) -> bool:
    allocation = look.allocation
    if allocation is None or allocation.failure is not None:
        return False
    return allocation.ready or (goal == "pool" and allocation.complete and not allocation.stopped)


def _call_it_a_hang(look: Look, goal: str, waited_s: float, overdue: Optional[str]) -> Look:
    """A start that is neither up nor lost when the time is over hangs."""
    allocation = look.allocation
    if allocation is None or _reached(look, goal) or allocation.failure is not None:
        return look
    behind = _laggards(allocation)
    text = (
        f"no progress to {goal} within {waited_s:.0f} s: the start stands in phase {allocation.phase}"
        f"{' for longer than its limit' if overdue else ''}, {behind}"
    )
    failure = Failure("hang", None, text, KINDS["hang"].advice, None, KINDS["hang"].remedy)
    return Look(replace(allocation, failure=failure, phase="failed"), look.service, True)


def _laggards(allocation: Allocation) -> str:
    """Which ranks are behind, for a message."""
    if not allocation.ranks:
        return "no rank has reported yet"
    last = min(PHASES.index(report.phase) for report in allocation.ranks)
    behind = [f"TP{report.tp}" for report in allocation.ranks if PHASES.index(report.phase) == last]
    silent = [f"TP{rank.tp}" for rank in allocation.missing_ranks]
    return f"behind: {', '.join(behind[:16])} ({PHASES[last]}), without a pool: {', '.join(silent[:16]) or 'none'}"


def explain(watch: Watch, goal: str, timeout_s: float, look: Look) -> str:
    """Three parts: what was asked, what was found, what to do."""
    asked = f"asked for {watch.name} to be {'ready' if goal == 'ready' else 'past its pool'}" + (
        f" within {timeout_s:g} s" if timeout_s else ""
    )
    return f"{asked}; found: {_found(watch, look)}; {_remedy(look)}"


def _found(watch: Watch, look: Look) -> str:
    allocation = look.allocation
    if allocation is None:
        return look.service.sentence() + ", and no start of it in the journal" if look.service else "no start of a server in the log"
    if allocation.failure is None:
        missing = ", ".join(f"TP{rank.tp}" for rank in allocation.missing_ranks[:16])
        why = "; ".join(allocation.notes) or "ranks reported that were not expected"
        unproved = "" if allocation.complete else f", and not every rank is proved to have its pool: {why}"
        state = "a server that was stopped" if allocation.stopped else f"phase {allocation.phase}"
        return state + (f", no pool from {missing}" if missing else unproved) + _last_line(watch)
    failure = allocation.failure
    place = f" on TP{failure.rank['tp']}" if failure.rank else ""
    return f"{failure.kind}{place}: {failure.message}{_last_line(watch)}"


def _last_line(watch: Watch) -> str:
    lines = [line.strip() for line in watch.last_lines() if line.strip()]
    return f" (last line: {lines[-1][:300]!r})" if lines and "server_args=" not in lines[-1] else ""


def _remedy(look: Look) -> str:
    allocation = look.allocation
    if allocation is not None and allocation.failure is not None:
        least = allocation.failure.minimum_fraction
        return allocation.failure.remedy + (f" (at least {least:.4f})" if least is not None else "")
    if allocation is None and look.service is not None and not look.service.exists:
        return "check the name of the unit, and that it is installed on this host"
    if allocation is None or allocation.stopped:
        return "start the server, then look again"
    if allocation.ready:
        return "give tp_size (pp_size, dp_size) as the server has them, or start it again with its whole log kept"
    return "wait for it (wait_for), or read the log of this start"
