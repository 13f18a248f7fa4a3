# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches one start of a server until its outcome is certain. Private to this collection: may change at any time.

A watch looks at one source (a unit of this host, a journal, a saved log) and says what is known now; ``observe`` looks again and
again. It gives up as soon as the log or the service manager proves that the start is lost, not only when the time is over.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Optional, Protocol

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation, BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._failures import KINDS, Failure, shortened
from ansible_collections.inferops.sglang.plugins.module_utils._gauge import WeightsGauge
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalReader
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, names_of
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState
from ansible_collections.inferops.sglang.plugins.module_utils._timeline import PHASES
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, Outcome, wait_until

LAST_LINES = 64  # more than a stack of the C++ runtime, whose frames say nothing to a reader
POLL_S = 1.0  # a start is given up one look after the look that saw it lost: under 3 s from the fatal line
SILENCE_S = 300.0  # a caller who shows how a start goes on is told at least this often
STEP_PERCENT = 10  # and each time the weights or the graphs have come so much further


@dataclass(frozen=True)
class Look:
    """What is known now. ``lost``: it cannot come up any more.

    ``phase_age_s``: seconds since the phase began, by the journal, so also for one that began before it was looked at.
    ``restarts``: automatic restarts of the unit when the watch began. ``gaps``: what is known to be missing from the log.
    """

    allocation: Optional[Allocation]
    service: Optional[ServiceState]
    lost: bool
    gaps: tuple[str, ...] = ()
    phase_age_s: Optional[float] = None
    restarts: Optional[int] = None


@dataclass(frozen=True)
class Milestone:
    """How far a watched start was when its caller was last told, and for how long it had been watched (seconds)."""

    invocation_id: Optional[str] = None
    restarts: Optional[int] = None
    phase: Optional[str] = None
    percent: Optional[int] = None
    waited_s: float = 0.0


@dataclass(frozen=True)
class Terms:
    """What is waited for and how long, in seconds.

    ``goal``: C(none), C(pool) or C(ready). ``phase_timeouts``: how long a start may stay in a phase. ``settle_s``: how long a start must
    have been at its goal. ``since``: what the caller knows already; the watching ends, unfinished, when there is something new to tell.
    """

    goal: str = "none"
    timeout_s: float = 0.0
    phase_timeouts: Mapping[str, float] = field(default_factory=dict)
    settle_s: float = 0.0
    since: Optional[Milestone] = None


class Watch(Protocol):
    """A source of looks at one start; ``name`` says in messages what is looked at."""

    name: str

    def look(self, final: bool) -> Look:
        """What is known now; ``final``: no further look follows."""

    def last_lines(self) -> list[str]:
        """The newest lines of the log, oldest first."""


class Text(Protocol):
    """A log kept as text, which may still grow."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of it could not be read."""

    def starts_over(self) -> bool:
        """Whether it is another log than at the last look."""

    def read(self, everything: Callable[[], bool], final: bool) -> Iterable[Entry]:
        """What was added since the last call."""

    def last_lines(self) -> list[str]:
        """The newest lines, oldest first."""


class TextWatch:
    """A saved log, or one that is still written."""

    def __init__(self, name: str, log: Text, expected: Parallelism) -> None:
        self.name = name
        self._log = log
        self._expected = expected
        self._folder = BootFolder()

    def look(self, final: bool) -> Look:
        if self._log.starts_over():
            self._folder = BootFolder()
        self._folder.feed_all(self._log.read(lambda: self._folder.in_traceback, final))
        allocation = self._folder.result(self._expected, ended=final, saved=True)
        return _with_gaps(Look(allocation, None, self._folder.lost), self._log.warnings)

    def last_lines(self) -> list[str]:
        return self._log.last_lines()


def _with_gaps(look: Look, warnings: tuple[str, ...]) -> Look:
    """The look with what its reader, or the log itself, says to be missing."""
    allocation = look.allocation
    if allocation is None:
        return replace(look, gaps=warnings)
    dropped = f"the log daemon dropped {allocation.dropped_messages:,} messages"
    gaps = (*((dropped,) if allocation.dropped_messages else ()), *warnings)
    return replace(look, allocation=replace(allocation, notes=(*allocation.notes, *warnings)), gaps=gaps)


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
        return _with_gaps(Look(allocation, None, self._folder.lost), self._reader.warnings)

    def last_lines(self) -> list[str]:
        return self._reader.last_lines(self._invocation, LAST_LINES) if self._invocation else []


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
        since: Optional[Milestone] = None,
        gauge: Optional[WeightsGauge] = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = unit
        self._unit = unit
        self._reader = reader
        self._service = service
        self._version = version
        self._expected = expected
        self._asked = invocation
        self._invocation = invocation or (since.invocation_id if since else None)
        self._restarts = since.restarts if since else None
        self._gauge = gauge
        self._now = now
        self._running_version: Optional[str] = None
        self._checked = False
        self._restarted = False
        self._folder = BootFolder()

    def look(self, final: bool) -> Look:  # noqa: ARG002  a unit's own state says whether more can come
        service = self._service()
        if not service.exists:
            return Look(None, service, True)
        self._reader.use_namespace(service.log_namespace)
        self._choose(service)
        self._restarted = service.n_restarts > 0
        if self._invocation is None:
            return Look(None, service, service.dead and not service.to_be_started)
        # the state belongs to the start that runs now, which may be another one than the start that is watched
        gone = service.invocation_id not in ("", self._invocation) or service.n_restarts > (self._restarts or 0)
        if not gone and service.main_pid and self._running_version is None:
            self._running_version = self._version(service.main_pid)
        if not gone and service.main_pid and not self._checked:
            self._checked = True
            self._reader.check_begin(service.started_us)
        self._folder.main_pid = 0 if gone else service.main_pid
        self._folder.feed_all(self._reader.read(self._invocation, self._unit, lambda: self._folder.in_traceback))
        allocation = self._folder.result(
            self._expected,
            service=None if gone else service,
            ended=gone,
            verdict=self._verdict(service, gone),
            invocation_id=self._invocation,
            sglang_version=self._running_version,
        )
        lost = self._folder.lost or gone or service.dead
        look = Look(self._gauged(allocation), service, lost, phase_age_s=self._phase_age(), restarts=self._restarts)
        return _with_gaps(look, self._reader.warnings)

    def _gauged(self, allocation: Allocation) -> Allocation:
        """With what the driver tells of the weights, where the server's own bar in the log is behind it."""
        if self._gauge is None or allocation.phase != "weights":
            return allocation
        known = (allocation.phase_percent, self._gauge.percent([rank.pid for rank in allocation.ranks]))
        return replace(allocation, phase_percent=max((percent for percent in known if percent is not None), default=None))

    def former(self) -> Optional[str]:
        """A note on how the start before this one ended, where the service manager started the unit again; None where it tells nothing."""
        began, unit = self._folder.began_us, self._unit
        if not self._restarted or began is None or self._invocation is None:
            return None
        invocation = self._reader.invocation_before(unit, self._invocation, began)
        if invocation is None:
            return None
        folder = BootFolder()
        folder.feed_all(self._reader.again().read(invocation, unit, lambda: folder.in_traceback))
        failure = folder.result(self._expected, ended=True).failure
        if failure is None:
            return None
        place = f" on {names_of([RankId(**failure.rank)])}" if failure.rank else ""
        return f"the start before this one (invocation_id {invocation}) died of {failure.kind}{place}: {shortened(failure.message, 200)}"

    def _phase_age(self) -> Optional[float]:
        began = self._folder.phase_began
        return max(self._now() - began, 0.0) if began is not None else None

    def last_lines(self) -> list[str]:
        return self._reader.last_lines(self._invocation, LAST_LINES) if self._invocation else []

    def _choose(self, service: ServiceState) -> None:
        """Settles on a start at the first look that shows one; a unit about to be started still shows its last one."""
        if self._restarts is None and not service.to_be_started:
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
    """Where the watching ended. ``problem`` is the three-part message of an outcome that is not the one asked for.

    ``pending``: nothing is decided, but the start has come further than ``Terms.since`` says.
    """

    look: Look
    problem: Optional[str]
    waited_s: float
    polls: int
    pending: bool = False


def observe(watch: Watch, terms: Terms, clock: Clock) -> Observation:
    """Looks until the start is C(ready) or has its C(pool) on every rank, is lost, or has no time left.

    A goal of C(none) looks once and finds nothing wrong.
    """
    if terms.goal == "none":
        return Observation(watch.look(final=True), None, 0.0, 1)
    before = terms.since.waited_s if terms.since else 0.0
    patience = _Patience(terms, clock)
    outcome = wait_until(lambda: watch.look(final=False), patience.over, max(terms.timeout_s - before, 0.0), POLL_S, clock)
    look, waited, polls = outcome.value, before + outcome.elapsed_s, outcome.polls
    if patience.has_news and waited < terms.timeout_s:
        return Observation(look, None, waited, polls, pending=True)
    if _reached(look, terms.goal) and terms.settle_s:
        settled = _settle(watch, look, terms, clock)
        look, waited, polls = settled.value, waited + settled.elapsed_s, polls + settled.polls - 1
    if _reached(look, terms.goal):
        return Observation(look, None, waited, polls)
    if not look.lost:
        look = watch.look(final=True)
        look = _call_it_a_hang(look, terms, waited, patience.overdue)
    problem = None if _reached(look, terms.goal) else explain(watch, terms.goal, terms.timeout_s, look)
    return Observation(look, problem, waited, polls)


def _settle(watch: Watch, look: Look, terms: Terms, clock: Clock) -> Outcome[Look]:
    """Watches a start that is at its goal until it has been there long enough; one that was ready before costs no time."""
    ready = look.allocation is not None and look.allocation.ready
    left = terms.settle_s - (look.phase_age_s or 0.0 if ready else 0.0)
    if left <= 0:
        return Outcome(True, look, 0.0, 1)
    outcome = wait_until(lambda: watch.look(final=False), lambda seen: not _reached(seen, terms.goal), left, POLL_S, clock)
    if outcome.ok and outcome.value.lost:
        # one more look: the lines that say why may still be on their way
        clock.sleep(POLL_S)
        return replace(outcome, value=watch.look(final=False))
    return outcome


def shortcoming(watch: Watch, look: Look) -> Optional[str]:
    """The three-part message for a start that is not ready on every rank now; None for one that is."""
    allocation = look.allocation
    if allocation is not None and allocation.ready and allocation.complete:
        return None
    return explain(watch, "ready", 0, look)


class _Patience:
    """Decides after each look whether a further one is of use."""

    def __init__(self, terms: Terms, clock: Clock) -> None:
        self._terms = terms
        self._clock = clock
        self._began = clock.now()
        self._phase = ""
        self._since = 0.0
        self._lost_before = False
        self.overdue: Optional[str] = None
        self.has_news = False

    def over(self, look: Look) -> bool:
        if _reached(look, self._terms.goal):
            return True
        if look.lost:
            # one more look: the lines that say why may still be on their way
            certain, self._lost_before = self._lost_before, True
            return certain
        if self._phase_is_overdue(look):
            return True
        self.has_news = self._terms.since is not None and self._is_news(look, self._terms.since)
        return self.has_news

    def _phase_is_overdue(self, look: Look) -> bool:
        now = self._clock.now()
        phase = look.allocation.phase if look.allocation else "starting"
        if phase != self._phase:
            self._phase, self._since = phase, now
        limit = self._terms.phase_timeouts.get(phase)
        age = look.phase_age_s if look.phase_age_s is not None else now - self._since
        if limit is None or age < limit:
            return False
        self.overdue = phase
        return True

    def _is_news(self, look: Look, since: Milestone) -> bool:
        seen = milestone_of(look, 0.0)
        return (seen.phase, seen.percent) != (since.phase, since.percent) or self._clock.now() - self._began >= SILENCE_S


def milestone_of(look: Look, waited_s: float) -> Milestone:
    """What a caller is to be told, in steps that are worth a line."""
    allocation = look.allocation
    if allocation is None:
        return Milestone(None, look.restarts, "starting", None, waited_s)
    percent = allocation.phase_percent
    step = percent - percent % STEP_PERCENT if percent is not None else None
    return Milestone(allocation.invocation_id, look.restarts, allocation.phase, step, waited_s)


def _reached(look: Look, goal: str) -> bool:
    allocation = look.allocation
    if allocation is None or allocation.failure is not None:
        return False
    if goal == "pool" and allocation.complete and not allocation.stopped:
        return True
    return allocation.ready and not _is_coming_up(look)


def _is_coming_up(look: Look) -> bool:
    """The service manager has not seen the server answer yet, and ends it if it never does."""
    service, allocation = look.service, look.allocation
    if service is None or allocation is None or service.invocation_id != allocation.invocation_id:
        return False
    return service.active_state == "activating"


def _call_it_a_hang(look: Look, terms: Terms, waited_s: float, overdue: Optional[str]) -> Look:
    """A start that is neither up nor lost when the time is over hangs."""
    allocation = look.allocation
    if allocation is None or _reached(look, terms.goal) or allocation.failure is not None or look.gaps:
        return look  # where a part of the log is missing, the line that is waited for may be in it
    if not overdue and (not terms.timeout_s or look.service is None):
        return look  # nobody waited, or for a log that nothing is written to any more
    behind = [report for report in allocation.ranks if report.phase == _last_phase(allocation)]
    rank = behind[0].id.as_dict() if len(behind) == 1 and len(allocation.ranks) > 1 else None
    over = f"stands in phase {overdue} for longer than its limit of {terms.phase_timeouts[overdue]:g} s" if overdue else ""
    late = f"no progress to {terms.goal} within {waited_s:.0f} s: the start stands in phase {allocation.phase}"
    processes = [report.pid for report in behind if report.pid is not None] or [look.service.main_pid if look.service else 0]
    named = f"{KINDS['hang'].remedy} (py-spy dump --pid {processes[0]})" if processes[0] else KINDS["hang"].remedy
    unseen = f"which the service manager has not seen yet (activating, {look.service.sub_state})" if look.service else ""
    why = unseen if allocation.ready else _laggards(allocation)
    failure = Failure("hang", rank, f"{over or late}, {why}", KINDS["hang"].advice, None, named)
    return Look(replace(allocation, failure=failure, phase="failed"), look.service, True)


def _last_phase(allocation: Allocation) -> str:
    """The phase of the rank that is behind all others."""
    return min((report.phase for report in allocation.ranks), key=PHASES.index, default="starting")


def _laggards(allocation: Allocation) -> str:
    """Which ranks are behind, for a message."""
    if not allocation.ranks:
        return "no rank has reported yet"
    last = _last_phase(allocation)
    behind = names_of(report.id for report in allocation.ranks if report.phase == last)
    return f"behind: {behind} ({last}), without a pool: {names_of(allocation.missing_ranks) or 'none'}"


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
        missing = names_of(allocation.missing_ranks)
        why = "; ".join(allocation.notes) or "ranks reported that were not expected"
        unproved = "" if allocation.complete else f", and not every rank is proved to have its pool: {why}"
        state = "a server that was stopped" if allocation.stopped else f"phase {allocation.phase}"
        return state + (f", no pool from {missing}" if missing else unproved) + _unknown(look) + _last_line(watch)
    failure = allocation.failure
    place = f" on {names_of([RankId(**failure.rank)])}" if failure.rank else ""
    return f"{failure.kind}{place}: {failure.message}{_last_line(watch)}"


def _unknown(look: Look) -> str:
    return f", but {'; '.join(look.gaps)}, so what is missing here is unknown, not failed" if look.gaps else ""


_STACK = re.compile(r"\s|frame #\d|Exception raised from ")


def _last_line(watch: Watch) -> str:
    lines = [line.strip() for line in watch.last_lines() if line.strip() and not _STACK.match(line)]
    return f" (last line: {lines[-1][:300]!r})" if lines and "server_args=" not in lines[-1] else ""


def _remedy(look: Look) -> str:
    allocation = look.allocation
    if allocation is not None and allocation.failure is not None:
        least = allocation.failure.minimum_fraction if allocation.failure.next_fraction is None else None
        return allocation.failure.remedy + (f" (at least {least:.4f})" if least is not None else "")
    if allocation is None and look.service is not None and not look.service.exists:
        return "check the name of the unit, and that it is installed on this host"
    if allocation is None and look.service is not None and look.service.load_state != "loaded":
        return f"see why the unit's load state is {look.service.load_state} (systemctl status), then start it"
    if allocation is None or allocation.stopped:
        return "start the server, then look again"
    if allocation.dropped_messages:
        return "set LogRateLimitIntervalSec=0 in the unit, so that no message is dropped, and start it again"
    if look.gaps and not allocation.ready:
        return "keep the journal whole (SystemMaxUse=, Storage=persistent), and start the server again"
    if allocation.ready:
        return "give tp_size (pp_size, dp_size) as the server has them, or start it again with its whole log kept"
    return "wait for it (wait_for), or read the log of this start"
