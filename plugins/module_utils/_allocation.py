# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of one boot of SGLang to its allocation: pools, ranks, phase, failure. Private to this collection: may change at any time.

Feed the log in the order in which the log daemon wrote it; the newest boot in it counts. Memory is GiB (2^30), pools are tokens,
times are seconds. Figures that were not printed are None, and what is not proved is not claimed: an allocation is C(complete)
only if every expected rank printed the pool of its target model, and C(ready) only if the server of this boot said so itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._boot_notes import BootFacts, log_notes, pool_notes
from ansible_collections.inferops.sglang.plugins.module_utils._failure_figures import BootFigures
from ansible_collections.inferops.sglang.plugins.module_utils._failure_kinds import kind_of
from ansible_collections.inferops.sglang.plugins.module_utils._failures import (
    MAX_TRACES,
    Cause,
    Failure,
    Traces,
    best,
    failure_of,
    lost_its_peer,
    manager_cause,
    of_no_rank,
    outweighed,
    process_index,
)
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import MAX_RANKS, Parallelism, share_of, size_of
from ansible_collections.inferops.sglang.plugins.module_utils._rank_pools import (
    STEPS,
    PoolContext,
    RankReport,
    RankState,
    capacity_of,
    least,
    pools_of,
    proved,
    rank_of,
    report_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, names_of
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import (
    Changed,
    Crash,
    Event,
    ExceptionLine,
    Fatal,
    InitBegin,
    Progress,
    Rank,
    Ready,
    Record,
    ServerArgs,
    Stopping,
    Summary,
    Traceback,
    Unbalanced,
    UnitLine,
    WeightsBegin,
    parse_record,
    parse_suppressed,
    parse_unit_line,
)
from ansible_collections.inferops.sglang.plugins.module_utils._timeline import PHASES, BootClock, durations, is_later

MAX_CHANGES = 16  # sentences on changed flags that are kept


class Entry(NamedTuple):
    """One log record with what the log daemon knows about it; both times are None in plain text.

    ``time_us``: microseconds since 1970. ``clock_us``: microseconds of the host's clock that never jumps.
    """

    text: str
    pid: Optional[int] = None
    time_us: Optional[int] = None
    manager: bool = False  # written by the service manager about the unit
    daemon: bool = False  # written by the log daemon about itself
    clock_us: Optional[int] = None


@dataclass(frozen=True)
class Allocation:
    """One boot, as the collection hands it on."""

    invocation_id: Optional[str]
    started_at: Optional[str]
    sglang_version: Optional[str]
    server_args: dict[str, Any]
    phase: str
    phases: dict[str, float]
    phase_percent: Optional[int]
    waiting_for: Optional[str]
    ready: bool
    was_ready: bool
    stopped: bool
    complete: bool
    ranks: tuple[RankReport, ...]
    missing_ranks: tuple[RankId, ...]
    min_tokens: Optional[int]
    capacity_tokens: Optional[int]
    max_total_num_tokens: Optional[int]
    context_len: Optional[int]
    max_running_requests: Optional[int]
    available_gpu_mem_gib: Optional[float]
    min_avail_gib: Optional[float]
    spread_gib: Optional[float]
    load_order: Optional[str]
    failure: Optional[Failure]
    restarts: int
    elapsed_s: Optional[float]
    last_milestone: Optional[str]
    dropped_messages: int
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        values = asdict(self)
        values["missing_ranks"] = [rank.as_dict() for rank in self.missing_ranks]
        values["ranks"] = list(values["ranks"])
        values["notes"] = list(self.notes)
        return values


# Speculation whose draft model always has a pool of its own; others may share the target's, or have none.
ALGORITHMS_WITH_A_POOL = frozenset(("DFLASH", "DDTREE", "EAGLE", "EAGLE3", "STANDALONE"))
_ACTIVITIES = {
    "starting": "setting up",
    "weights": "loading weights",
    "pool": "allocating pools",
    "capture": "capturing graphs",
    "warmup": "warming up",
}


class BootFolder:
    """Folds log entries into the newest boot among them. Never raises, whatever the log holds; memory use is bounded."""

    def __init__(self) -> None:
        self.boots = 0
        self.main_pid = 0  # the unit's main process as it runs now; 0: unknown
        self._restarts = 0
        self._early_changes: dict[str, None] = {}
        self._opener: Optional[int] = None
        self._members: set[int] = set()
        self._begin({}, None)

    def _begin(self, server_args: dict[str, Any], opener: Optional[int]) -> None:
        # by the log daemon's word on who wrote a line: the processes of the boot before, and of this one
        self._former = self._members - {opener}
        self._opener = opener
        self._members = {opener} if opener is not None else set()
        self._voices: dict[int, RankId] = {}
        self._doubled: Optional[str] = None
        self._args = server_args
        self._ranks: dict[tuple[RankId, int], RankState] = {}
        self._phase = "starting"
        self._ready = self._was_ready = self._stopping = self._seen = False
        self._summaries: list[Summary] = []
        self._fatals: list[Cause] = []
        self._traces = Traces()
        self._unit: list[UnitLine] = []
        self._suppressed = 0
        self._overflow = False
        self._unbalanced: Optional[str] = None
        self._clock = BootClock()
        self._first: Optional[float] = None
        self._now: Optional[float] = None
        self._reached: dict[str, float] = {}
        self._percent: dict[str, int] = {}
        self._changes: dict[str, None] = {}
        self._first_us: Optional[int] = None
        self._first_stamp = ""
        self._milestone: Optional[str] = None

    # --- reading

    def feed(self, entry: Entry) -> None:
        """Takes the next log entry."""
        if entry.daemon:
            dropped = parse_suppressed(entry.text)
            self._suppressed += dropped.count if dropped else 0
        elif entry.manager:
            self._read_unit_line(parse_unit_line(entry.text))
        else:
            for record in parse_record(entry.text):
                self._read(record, entry)

    def feed_all(self, entries: Iterable[Entry]) -> None:
        """Takes entries in the order in which they were logged."""
        for entry in entries:
            self.feed(entry)

    def _read(self, record: Record, entry: Entry) -> None:
        pid = entry.pid if entry.pid is not None else record.pid
        event = record.event
        if entry.pid is not None and entry.pid in self._former and not isinstance(event, ServerArgs):
            return  # a server that ends late, or another one of the unit: its words are not this one's
        if self._traces.reading:
            self._traces.read(record, pid)
        if event is None:
            return
        if isinstance(event, Changed):
            self._keep_change(event.text)
            return
        if isinstance(event, _OPENINGS) and not self._cut(event, record.rank, entry.pid):
            return
        self._early_changes.clear()
        self._time(record, entry)
        if not isinstance(event, (Traceback, ExceptionLine, Crash, ServerArgs, Progress)):
            self._milestone = record.body[:300]
        self._apply(event, record.rank, pid)

    def _keep_change(self, text: str) -> None:
        """What is changed while the arguments are read is printed before them, so it may belong to the boot that they open."""
        for changes in (self._early_changes, *(() if self._was_ready else (self._changes,))):
            if len(changes) < MAX_CHANGES:
                changes.setdefault(text[:300])

    def _cut(self, event: Event, rank: Rank, writer: Optional[int]) -> bool:
        """Starts over where a new boot begins; false where a process of a running server seems to say so, which is a quotation."""
        if self._is_quoted(event, writer):
            return False
        if isinstance(event, ServerArgs):
            self.boots += 1
            self._begin(event.values, writer)
            self._changes.update(self._early_changes)
        elif self._was_ready or self._has_its_summary(rank, writer):
            # a server that was up does not load again: the line that opens the next boot was lost
            self.boots += 1
            self._begin({}, None)
        return True

    def _is_quoted(self, event: Event, writer: Optional[int]) -> bool:
        """Whether this is none of a boot that begins, by who wrote it: what is served (prompts, answers) may hold a whole log."""
        if writer is None or self._opener is None:
            return False
        if self._opener == self.main_pid and writer != self._opener:
            return self._was_ready or isinstance(event, ServerArgs)
        # a rank opens no boot; and from the final line on requests may come
        is_a_rank = isinstance(event, ServerArgs) and writer != self._opener
        return (is_a_rank or self._was_ready or bool(self._summaries)) and writer in self._members

    def _has_its_summary(self, rank: Rank, writer: Optional[int]) -> bool:
        state = self._ranks.get(_key_of(rank, writer))
        return state is not None and state.summary is not None

    def _time(self, record: Record, entry: Entry) -> None:
        self._seen = True
        if self._was_ready:
            return
        now = self._clock.read(entry.clock_us, entry.time_us, record.stamp)
        self._now = now if now is not None else self._now
        self._first = self._now if self._first is None else self._first
        self._first_us = entry.time_us if self._first_us is None else self._first_us
        self._first_stamp = self._first_stamp or record.stamp

    def _apply(self, event: Event, rank: Rank, pid: Optional[int]) -> None:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, rank, pid)
        elif type(event) in STEPS and not self._was_ready:
            # what is printed once requests are served may quote anything, and changes no pool
            self._on_rank(event, rank, pid)

    def _on_rank(self, event: Event, rank: Rank, pid: Optional[int]) -> None:
        key = _key_of(rank, pid)
        if key not in self._ranks and len(self._ranks) >= MAX_RANKS:
            self._overflow = True
            return
        state = self._ranks.setdefault(key, RankState(rank, pid))
        if pid is not None and not self._is_one(state, pid):
            return
        state.now = self._now
        STEPS[type(event)](state, event)
        state.last = type(event)
        state.pid = pid if pid is not None else state.pid
        self._traces.goes_on(pid)
        self._reach(state.phase)

    def _is_one(self, state: RankState, pid: int) -> bool:
        """Whether rank and process are one, as they are in one server; where all lines come through one process, it says nothing."""
        if len(self._members) > MAX_RANKS and pid not in self._members:
            self._overflow = True
            return False
        self._members.add(pid)
        if state.pid not in (None, pid):
            self._doubled = self._doubled or f"processes {state.pid} and {pid} both call themselves {names_of([state.id])}"
            return False
        other = self._voices.setdefault(pid, state.id)
        if other != state.id and self._opener not in (None, pid):
            self._doubled = self._doubled or f"process {pid} calls itself both {names_of([other])} and {names_of([state.id])}"
        return True

    def _reach(self, phase: str) -> None:
        if is_later(phase, self._phase):
            self._phase = phase
            if self._now is not None:
                self._reached[phase] = self._now

    # --- single events

    def _read_summary(self, event: Summary, rank: Rank, pid: Optional[int]) -> None:
        if self._was_ready:
            return
        self._on_rank(event, rank, pid)
        if len(self._summaries) < MAX_RANKS:
            self._summaries.append(event)
        self._reach("warmup")

    def _read_ready(self, _event: Ready, _rank: Rank, _pid: Optional[int]) -> None:
        if self.lost or self._stopping:
            return
        self._ready = self._was_ready = True
        self._reach("ready")
        self._traces.forget()

    def _read_progress(self, event: Progress, _rank: Rank, _pid: Optional[int]) -> None:
        self._percent[event.what] = event.percent

    def _read_stopping(self, _event: Stopping, _rank: Rank, _pid: Optional[int]) -> None:
        self._stopping = self._stopping or not self.lost
        self._ready = False

    def _read_fatal(self, event: Fatal, rank: Rank, pid: Optional[int]) -> None:
        if self._stopping and event.kind == "child_died":
            return
        self._ready = False
        if len(self._fatals) < MAX_TRACES:
            self._fatals.append(Cause(kind_of(event.text, self._stage(rank, pid), event.kind), event.text, rank))

    def _read_crash(self, event: Crash, rank: Rank, pid: Optional[int]) -> None:
        self._ready = False
        self._traces.announce(event.text, rank, pid, self._stage(rank, pid))

    def _read_unbalanced(self, event: Unbalanced, _rank: Rank, _pid: Optional[int]) -> None:
        self._unbalanced = event.text

    def _read_traceback(self, _event: Traceback, rank: Rank, pid: Optional[int]) -> None:
        self._traces.suspect("Traceback", rank, pid, self._stage(rank, pid))

    def _read_exception(self, event: ExceptionLine, rank: Rank, pid: Optional[int]) -> None:
        self._traces.suspect(event.text, rank, pid, self._stage(rank, pid))

    def _read_unit_line(self, line: Optional[UnitLine]) -> None:
        if line is None:
            return
        if line.what == "restart":
            self._restarts = int(line.detail[:9])
        self._ready = self._ready and line.what not in ("stopped", "ended", "exited", "failed")
        if line.what == "stopped":
            self._stopping = self._stopping or not self.lost
        if len(self._unit) < MAX_TRACES:
            self._unit.append(line)

    def _stage(self, rank: Rank, pid: Optional[int]) -> str:
        """What the process was doing last, for failures that only differ by that."""
        if self._was_ready:
            return "prefill"
        state = self._state_of(rank, pid)
        if state is None:
            return {"starting": "start"}.get(self._phase, self._phase)
        stage = state.stage()
        return "warmup" if self._summaries and stage == "capture" and not state.capturing else stage

    def _state_of(self, rank: Rank, pid: Optional[int]) -> Optional[RankState]:
        wanted = rank_of(rank)
        for state in self._ranks.values():
            if (rank.labelled and state.id == wanted) or (not rank.labelled and pid is not None and state.pid == pid):
                return state
        return next(iter(self._ranks.values())) if len(self._ranks) == 1 else None

    # --- results

    @property
    def phase_began(self) -> Optional[float]:
        """When the phase it is in began, in seconds of the host's clock that never jumps; None where the log does not tell."""
        if not self._clock.is_steady:
            return None
        return self._first if self._phase == "starting" else self._reached.get(self._phase)

    @property
    def began_us(self) -> Optional[int]:
        """When its first line was written, in microseconds since 1970; None in plain text."""
        return self._first_us

    @property
    def in_traceback(self) -> bool:
        """The next lines may belong to a traceback, so none of them may be left out."""
        return self._traces.reading

    @property
    def lost(self) -> bool:
        """The log already proves that this boot will not come up, or has died."""
        return bool(self._fatals) or self._traces.announced or bool(self._fatal_unit_lines())

    def _fatal_unit_lines(self) -> list[UnitLine]:
        lines = [line for line in self._unit if line.what in ("failed", "limit", "oom", "exec", "overdue")]
        if not self._stopping:
            return lines
        # a server that is told to stop may exit badly; only a stop that the manager itself forced is a failure
        return [line for line in lines if line.what == "oom" or line.detail in ("timeout", "watchdog", "oom-kill")]

    def result(
        self,
        expected: Parallelism,
        service: Optional[ServiceState] = None,
        ended: bool = False,
        verdict: Optional[Failure] = None,
        invocation_id: Optional[str] = None,
        sglang_version: Optional[str] = None,
        saved: bool = False,
    ) -> Allocation:
        """The newest boot as far as the log goes.

        ``ended``: nothing more will come (a saved log, or the unit is dead), so an uncaught traceback at its end is the cause of death.
        ``saved``: a log kept by itself, which shows how a boot went and not what runs now: an orderly stop at its end takes nothing away.
        ``verdict``: a failure the caller found by other means, as a timeout; the log's own cause wins over it.
        """
        parallel = expected.over(self._args)
        wanted = parallel.ranks()
        reports = self._reports(wanted)
        dead = service is not None and service.dead
        failure = outweighed(self._failure(reports, wanted, service, ended or dead), verdict)
        missing, complete = self._completeness(wanted, reports, parallel)
        others = expected.against(self._args)
        underway = failure is None and not dead and not self._was_ready and not self._stopping
        return Allocation(
            invocation_id=invocation_id,
            started_at=self._started_at(),
            sglang_version=sglang_version,
            server_args=self._args,
            phase="failed" if failure else self._phase,
            phases=durations(self._reached, self._first, self._now),
            phase_percent=self._percent.get(self._phase) if underway else None,
            waiting_for=self._waiting_for(wanted, reports, parallel) if underway else None,
            ready=failure is None and not dead and (self._ready or (saved and self._stopping and self._was_ready)),
            was_ready=self._was_ready,
            stopped=failure is None and (self._stopping or dead),
            complete=complete and not others,
            ranks=reports,
            missing_ranks=missing,
            min_tokens=least(report.tokens for report in reports),
            capacity_tokens=capacity_of(reports) if complete and not others else None,
            max_total_num_tokens=self._total_tokens,
            context_len=self._from_summary("context_len"),
            max_running_requests=self._from_summary("max_running_requests"),
            available_gpu_mem_gib=least(summary.available_gib for summary in self._summaries),
            min_avail_gib=least(report.last_avail_gib for report in reports),
            spread_gib=_spread([report.avail_after_pool_gib for report in reports]),
            load_order=_common([report.load_order for report in reports]),
            failure=failure,
            restarts=max(self.boots - 1, self._restarts, service.n_restarts if service else 0),
            elapsed_s=self._elapsed(),
            last_milestone=self._milestone,
            dropped_messages=self._suppressed,
            notes=(*others, *self._notes(wanted, reports), *(f"SGLang says: {text}" for text in self._changes)),
        )

    @property
    def _total_tokens(self) -> Optional[int]:
        return least(summary.max_total_num_tokens for summary in self._summaries)

    def _from_summary(self, name: str) -> Optional[int]:
        return next((value for value in (getattr(summary, name) for summary in self._summaries) if value is not None), None)

    def _reports(self, wanted: Sequence[RankId]) -> tuple[RankReport, ...]:
        states = self._believed(wanted)
        context = PoolContext(
            template=next((state for state in states if state.closed), None),
            total=self._total_tokens if len({state.printed for state in states}) == 1 else None,
            silent=not any(state.has_pool_lines for state in states),
            dcp_size=size_of(self._args.get("dcp_size")) or 1,
        )
        pools = {state.id: pools_of(state, context) for state in states}
        if self._summaries or self._was_ready:
            last = max((rank.pp for rank in (*wanted, *pools)), default=0)  # the only stage of a pipeline that holds a draft
            for stage in {rank.pp for rank in pools}:
                ranks = [rank for rank in pools if rank.pp == stage]
                two = stage == last and self._drafts in ALGORITHMS_WITH_A_POOL
                pools.update(zip(ranks, proved([pools[rank] for rank in ranks], two)))
        # once the final line is printed, no rank captures any more: the scheduler that prints it is the last to begin
        until = self._reached.get("warmup", self._now)
        return tuple(report_of(state, pools[state.id], self._first, until) for state in states)

    @property
    def _drafts(self) -> str:
        return str(self._args.get("speculative_algorithm") or "NONE").upper()

    def _believed(self, wanted: Sequence[RankId]) -> list[RankState]:
        """The ranks to report: labelled ones, or the one process of a server that needs no labels."""
        labelled = [state for state in self._ranks.values() if state.rank.labelled]
        if labelled:
            return sorted(labelled, key=lambda state: state.id)
        bare = list(self._ranks.values())
        with_model = [state for state in bare if state.has_pool or state.loads]
        if len(wanted) > 1 or len(with_model) > 1:
            return []
        return with_model or bare[:1]

    def _completeness(
        self, wanted: Sequence[RankId], reports: Sequence[RankReport], parallel: Parallelism
    ) -> tuple[tuple[RankId, ...], bool]:
        reported = {parallel.key(report.id) for report in reports if (report.tokens or 0) > 0}
        missing = tuple(rank for rank in wanted if parallel.key(rank) not in reported)
        strangers = {parallel.key(report.id) for report in reports} - {parallel.key(rank) for rank in wanted}
        return missing, bool(wanted) and not (missing or strangers or self._overflow or self._doubled)

    def _started_at(self) -> Optional[str]:
        if self._first_us is None:
            return self._first_stamp or None
        try:
            return datetime.fromtimestamp(self._first_us / 1e6, timezone.utc).isoformat(timespec="seconds")
        except (ValueError, OverflowError, OSError):
            return None

    def _elapsed(self) -> Optional[float]:
        return round(max(self._now - self._first, 0.0), 1) if self._first is not None and self._now is not None else None

    def _waiting_for(self, wanted: Sequence[RankId], reports: Sequence[RankReport], parallel: Parallelism) -> Optional[str]:
        """Which ranks the start waits for, and what they are doing."""
        if self._summaries:
            return "the server's own first request"
        came_to = {parallel.key(report.id): report.phase for report in reports}
        phases = {rank: came_to.get(parallel.key(rank), "starting") for rank in wanted or [report.id for report in reports]}
        if not phases:
            return None
        last = min(phases.values(), key=PHASES.index)
        return f"{names_of(rank for rank, phase in phases.items() if phase == last)} ({_ACTIVITIES[last]})"

    def _notes(self, wanted: Sequence[RankId], reports: Sequence[RankReport]) -> list[str]:
        facts = BootFacts(
            boots=self.boots,
            args=self._args,
            ranks=list(self._ranks.values()),
            final=bool(self._summaries),
            total_tokens=self._total_tokens,
            context_len=self._from_summary("context_len"),
            drafts=self._drafts,
            suppressed=self._suppressed,
            doubled=self._doubled,
            overflow=self._overflow,
            unbalanced=self._unbalanced,
            seen=self._seen,
        )
        return [*log_notes(facts, wanted), *pool_notes(facts, reports)]

    # --- failure

    def _failure(
        self, reports: Sequence[RankReport], wanted: Sequence[RankId], service: Optional[ServiceState], dead: bool
    ) -> Optional[Failure]:
        causes = [*self._traces.causes(), *self._fatals, *self._manager_causes(service)]
        suspect = self._traces.last_suspect()
        if suspect is not None and (causes or (dead and not self._stopping and not self._ready)):
            # an uncaught exception that nobody announced: the last one before the end
            causes.append(suspect)
        cause = best(causes)
        if cause is None:
            return None
        cause = _silent_peer(cause, causes, wanted) or cause
        figures = BootFigures(
            before_gib=least(report.avail_before_weights_gib for report in reports),
            at_sizing_gib=least(report.avail_after_weights_gib for report in reports),
            fraction=share_of(self._args.get("mem_fraction_static")),
        )
        return failure_of(cause, self._guilty(cause, reports, wanted), figures)

    def _guilty(self, cause: Cause, reports: Sequence[RankReport], wanted: Sequence[RankId]) -> Optional[dict[str, int]]:
        if cause.rank.labelled:
            return rank_of(cause.rank).as_dict()
        # processes are numbered by replica and by node
        single = all((size_of(self._args.get(name)) or 1) == 1 for name in ("dp_size", "nnodes"))
        index, tp = process_index(cause.text), size_of(self._args.get("tp_size"))
        if index is not None and tp is not None and single:
            return RankId(0, index // tp, index % tp).as_dict()
        if cause.weight > 1 or of_no_rank(cause):
            return None
        # the one rank of a server says nothing of its number
        only = [report.id for report in reports] or (list(wanted) if self._args else [])
        return only[0].as_dict() if len(only) == 1 else None

    def _manager_causes(self, service: Optional[ServiceState]) -> list[Cause]:
        exits = "".join(f" (main process exited, {line.detail})" for line in self._unit if line.what == "exited")[:200]
        causes = [
            manager_cause(line.what, line.detail, f"the service manager says: {line.detail}{exits}")
            for line in self._fatal_unit_lines()
        ]
        if service is not None and service.failed and not (self._stopping and service.result in ("exit-code", "signal", "success")):
            causes.append(manager_cause("failed", service.result, service.sentence() + exits))
        gone = any(line.what == "ended" for line in self._unit) or (service is not None and service.dead and not service.failed)
        if gone and not self._stopping:
            # nobody stopped it, so it ended by itself, whatever its exit status says
            causes.append(Cause("exit", "the server ended by itself" + (f": {service.sentence()}" if service else ""), Rank()))
        return causes


_HANDLERS: dict[type[Event], Any] = {
    Summary: BootFolder._read_summary,
    Ready: BootFolder._read_ready,
    Progress: BootFolder._read_progress,
    Stopping: BootFolder._read_stopping,
    Fatal: BootFolder._read_fatal,
    Crash: BootFolder._read_crash,
    Unbalanced: BootFolder._read_unbalanced,
    Traceback: BootFolder._read_traceback,
    ExceptionLine: BootFolder._read_exception,
}


_OPENINGS = (ServerArgs, InitBegin, WeightsBegin)


def _key_of(rank: Rank, pid: Optional[int]) -> tuple[RankId, int]:
    """What tells the ranks of a log apart: their labels, or, where they have none, their processes."""
    return rank_of(rank), -1 if rank.labelled else pid or 0


def _silent_peer(cause: Cause, causes: Sequence[Cause], wanted: Sequence[RankId]) -> Optional[Cause]:
    """The death of the one rank that says nothing where all others say that a peer is gone: a killed process has no last words."""
    told = {rank_of(one.rank) for one in causes if one.rank.labelled}
    silent = [rank for rank in wanted if rank not in told]
    if len(wanted) < 2 or len(silent) != 1 or not lost_its_peer(cause):
        return None
    dead = silent[0]
    words = [f"{names_of([dead])} ended without a word, and {names_of([rank_of(cause.rank)])} says: {cause.text}"]
    words += [one.text for one in causes if one.kind == "child_died" and process_index(one.text) is not None]
    return Cause("child_died", " ".join(words), Rank(tp=dead.tp, pp=dead.pp, dp=dead.dp))


def _spread(values: Sequence[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return round(max(known) - min(known), 2) if known else None


def _common(values: Sequence[Optional[str]]) -> Optional[str]:
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None
