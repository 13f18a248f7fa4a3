# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a boot died: tracebacks put together, texts to kinds, kinds to advice. Private to this collection: may change at any time.

Two failures look alike and need opposite moves: SGLang refusing to start because its share of memory is too small (raise
C(mem_fraction_static)) and CUDA running out of memory beside that share (lower it).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._failure_figures import (
    BootFigures,
    exit_of,
    foreign_holders,
    lowered_fraction,
    meaning_of,
    minimum_fraction,
    raised_fraction,
    remedy_of,
    shortage_of,
    unbalanced_gib,
)
from ansible_collections.inferops.sglang.plugins.module_utils._failure_kinds import kind_of, manager_kind
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import ExceptionLine, Progress, Rank, Record, Traceback

MAX_TRACES = 64
MAX_TRACE_TEXT = 4000
MAX_MESSAGE = 1000


@dataclass(frozen=True)
class Failure:
    """Why the boot died, and in which direction C(mem_fraction_static) must move: raise, lower, impossible or other.

    ``minimum_fraction``: below it this start cannot come up. ``next_fraction``: the nearest one that takes this cause away; None where
    the log does not hold the figures for it, or no fraction helps.
    """

    kind: str
    rank: Optional[dict[str, int]]
    message: str
    advice: str
    minimum_fraction: Optional[float]
    remedy: str
    next_fraction: Optional[float] = None


class Kind(NamedTuple):
    """``weight``: 0 a cause, 1 what may be a consequence on another rank, 2 and more a mere consequence."""

    weight: int
    advice: str
    remedy: str


_LOWER = "lower mem_fraction_static, or need less outside the pool: fewer or smaller CUDA graphs, a smaller chunked_prefill_size"
KINDS = {
    "not_enough_memory": Kind(0, "raise", "raise mem_fraction_static: the weights alone take more than the share it grants"),
    "hybrid_state": Kind(0, "raise", "raise mem_fraction_static, or shrink the state pool (max_running_requests, max_mamba_cache_size)"),
    "unbalanced": Kind(0, "other", "free the cards: another process holds memory on one of them (nvidia-smi names it)"),
    "foreign_process": Kind(0, "other", "free the card: end the other process, or wait until an older server has given its memory back"),
    "gpus_busy": Kind(0, "other", "end what holds the cards, or give this instance others (sglang_gpus) or more time (sglang_gpu_wait)"),
    "oom_init": Kind(0, "other", "free the card: its memory was short before any weights were loaded (nvidia-smi names who holds it)"),
    "oom_weights": Kind(0, "impossible", "the weights do not fit on the card: use more cards (tp_size) or a smaller quantisation"),
    "oom_draft_weights": Kind(0, "lower", "lower mem_fraction_static: this build loads the draft after the pool took its share"),
    "oom_pool": Kind(0, "lower", _LOWER),
    "oom_draft_pool": Kind(0, "lower", "lower mem_fraction_static: the draft's pool did not fit beside the target's"),
    "oom_capture": Kind(0, "lower", _LOWER),
    "oom_warmup": Kind(0, "lower", _LOWER),
    "oom_prefill": Kind(0, "lower", _LOWER),
    "oom_decode": Kind(0, "lower", _LOWER),
    "pool_exhausted": Kind(0, "raise", "raise mem_fraction_static, or lower max_running_requests: the requests outgrew the pool"),
    "oom_kill": Kind(0, "other", "give the host or the unit more memory (MemoryMax=, swap, fewer parallel compile jobs)"),
    "host_memory": Kind(0, "other", "give the host or the unit more memory, shared memory (/dev/shm) or locked memory (LimitMEMLOCK=)"),
    "no_device": Kind(0, "other", "check the driver and the cards (nvidia-smi), CUDA_VISIBLE_DEVICES, DeviceAllow= of the unit, tp_size"),
    "missing_kernel": Kind(0, "other", "install a build of SGLang and its kernels that knows this card and driver"),
    "missing_compiler": Kind(0, "other", "install a C++ compiler on the host, and nvcc and ninja where it builds kernels for its cards"),
    "unsupported_model": Kind(0, "other", "use an SGLang version that knows this model's architecture and quantisation"),
    "tensor_parallel": Kind(0, "other", "choose a tp_size that divides the model's heads and sizes"),
    "bad_arguments": Kind(0, "other", "correct the arguments of the server for this SGLang version"),
    "checkpoint_mismatch": Kind(
        0, "other", "use files that belong together (weights and config.json, draft and target), and a tp_size that fits"
    ),
    "missing_file": Kind(0, "other", "check the paths of the model and the program, and that the user of the unit can see them"),
    "damaged_file": Kind(0, "other", "copy the model again: a file of it is incomplete or damaged (checkpoint_info tells which)"),
    "disk_full": Kind(0, "other", "free or add disk space, also where caches and temporary files lie (TMPDIR, HF_HOME, /dev/shm)"),
    "port_in_use": Kind(0, "other", "stop the process that holds the port, or choose another port"),
    "permission": Kind(0, "other", "give the user of the unit access to what the message names"),
    "device_error": Kind(0, "other", "look for Xid errors of the driver (journalctl -k), and for kernels that do not fit card and model"),
    "capture_failed": Kind(0, "other", "look at the cause in the message; a start without CUDA graphs tells whether they are to blame"),
    "rendezvous": Kind(1, "other", "look for the rank that never came: its log, its host, dist_init_addr, and the network between"),
    "nccl": Kind(1, "other", "look at the other ranks and at the links between the cards: this rank lost its peers"),
    "unknown_exception": Kind(1, "other", "read the log of this start around the message"),
    "hang": Kind(1, "other", "look what the rank waits for (py-spy dump), and raise the timeout only if it still makes progress"),
    "start_timeout": Kind(1, "other", "look what it waited for; raise TimeoutStartSec (sglang_start_timeout) only if it made progress"),
    "child_died": Kind(2, "other", "look for the cause before this line"),
    "exit": Kind(3, "other", "read the log of this start before this line"),
    "crash_loop": Kind(3, "other", "stop the unit, read the log of its first start, and correct the cause before starting it again"),
    "killed": Kind(4, "other", "find out who ended it: the kernel's OOM killer (journalctl -k), a timeout of the unit, or a person"),
    "native_crash": Kind(4, "other", "look for a core dump (coredumpctl), and for builds of torch, driver and kernels that do not fit"),
    "unit_failed": Kind(4, "other", "read the log of this start and what the service manager says (systemctl status)"),
}


class Cause(NamedTuple):
    """One explanation of a death; the one whose kind weighs least is the best.

    ``hearsay``: nobody who saw it says so, it is read from an exit code alone.
    """

    kind: str
    text: str
    rank: Rank
    hearsay: bool = False

    @property
    def weight(self) -> int:
        return max(KINDS[self.kind].weight, 4 if self.hearsay else 0)


# --- the service manager ----------------------------------------------------------------------------------------------

_KIND_OF_EXIT = {2: "bad_arguments", 126: "permission", 127: "missing_file", 200: "missing_file", 203: "missing_file"}
_NATIVE = frozenset((-4, -6, -7, -8, -11))  # SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV


def manager_cause(what: str, detail: str, sentence: str) -> Cause:
    """A death that only the service manager tells, by its line (``what``, ``detail``) or its result (C(failed), the result).

    ``sentence``: all it says, in which an exit code may stand.
    """
    kind = manager_kind(what, detail)
    end = exit_of(sentence)
    if kind != "unit_failed" or end is None:
        return Cause(kind, sentence, Rank())
    code = end.code
    by_code = _KIND_OF_EXIT.get(code) or ("native_crash" if code in _NATIVE else "killed" if code < 0 else kind)
    return Cause(by_code, sentence, Rank(), hearsay=True)


# --- what is to be done -----------------------------------------------------------------------------------------------


def failure_of(cause: Cause, rank: Optional[dict[str, int]], figures: BootFigures) -> Failure:
    """The failure of this cause with what is to be done about it."""
    about = KINDS[cause.kind]
    advise = {"raise": _raise, "lower": _lower}.get(about.advice, _neither)
    advice = advise(cause, about, figures)
    remedy = advice.remedy + (_in_pieces(cause.text) if cause.kind.startswith("oom_") else "")
    return Failure(cause.kind, rank, shortened(cause.text), advice.direction, advice.minimum, remedy, advice.next)


def shortened(text: str, most: int = MAX_MESSAGE) -> str:
    """A message of at most so many characters, cut between words where it is longer."""
    if len(text) <= most:
        return text
    room = text[: most - len(" ...") + 1]
    words = room.rpartition(" ")[0].rstrip()
    # what has no space for so long is not made of words
    return f"{words} ..." if len(words) > most // 2 else f"{room[:-1]} ..."


def _in_pieces(text: str) -> str:
    """The advice on memory that was there, in pieces too small."""
    shortage = shortage_of(text)
    if shortage is None or shortage.unused_gib <= shortage.gib:
        return ""
    return (
        f"; PyTorch held {shortage.unused_gib:.2f} GiB unused, in pieces: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may join them "
        "(not with PCIe one-shot all-reduce)"
    )


class _Advice(NamedTuple):
    direction: str
    remedy: str
    minimum: Optional[float] = None
    next: Optional[float] = None


_NO_POOL = "with next to no pool: memory_plan (or the role's next run) gives the one for a context"
_AS_MUCH = "and the pool shrinks by as much"


def _raise(cause: Cause, about: Kind, figures: BootFigures) -> _Advice:
    if cause.kind == "pool_exhausted":
        return _Advice("raise", about.remedy)  # how much the requests need is not in the log
    least, following = minimum_fraction(cause.text, figures), raised_fraction(cause.text, figures)
    if (least or 0) >= 1 or (following or 0) >= 1:
        share = following if following is not None else least
        return _Advice("impossible", f"no fraction works: what is loaded needs {share:.4f} or more; {KINDS['oom_weights'].remedy}", least)
    more = f"; the smallest that starts is {following:.4f}, {_NO_POOL}" if following is not None else ""
    return _Advice("raise", about.remedy + more, least, following)


def _lower(cause: Cause, about: Kind, figures: BootFigures) -> _Advice:
    shortage = shortage_of(cause.text)
    largest, least = lowered_fraction(shortage, figures), minimum_fraction("", figures)
    if shortage is None or largest is None:
        return _Advice("lower", about.remedy)
    why = f"{shortage.gib:.2f} GiB were missing of {figures.before_gib:.2f} GiB"
    if largest <= (least or 0):
        bounds = f"at most {largest:.4f} ({why}) and more than {least or 0:.4f} (what is loaded by then)"
        remedy = f"no fraction works: it would have to be {bounds}; need less outside the pool, or use more cards"
        return _Advice("impossible", remedy, least)
    return _Advice("lower", f"{about.remedy}; {largest:.4f} is the largest that leaves this allocation ({why}), {_AS_MUCH}", None, largest)


def _neither(cause: Cause, about: Kind, _figures: BootFigures) -> _Advice:
    if cause.kind in _ENDS:
        return _Advice(about.advice, _after_end(cause, about))
    detail = _DETAILS.get(cause.kind, _no_detail)(cause.text)
    return _Advice(about.advice, about.remedy + (f"; {detail}" if detail else ""))


# kinds that an exit code may be told of; of the last ones a signal says better what to do
_ENDS = frozenset(("bad_arguments", "missing_file", "crash_loop", "unit_failed", "child_died", "exit", "killed", "native_crash"))
_BY_SIGNAL = frozenset(("child_died", "exit", "killed", "native_crash"))


def _after_end(cause: Cause, about: Kind) -> str:
    """One sentence: the exit code as it was seen, what it means, what to do."""
    end = exit_of(cause.text)
    if end is None:
        return about.remedy
    by_signal = remedy_of(end) if cause.kind in _BY_SIGNAL else None
    return f"{meaning_of(end)}: {by_signal or about.remedy}"


def unbalanced_words(text: str) -> str:
    """The two figures of SGLang's word on unbalanced memory, as a person reads them; empty where it names none."""
    figures = unbalanced_gib(text)
    if figures is None:
        return ""
    poorest, own = figures
    return f"the poorest card has {poorest:.2f} GiB free, this rank's has {own:.2f} GiB, and SGLang asks for {own * 0.9:.2f} GiB on each"


def _foreign_detail(text: str) -> str:
    holders = foreign_holders(shortage_of(text))
    return ", ".join(f"process {holder.pid} holds {holder.gib:.2f} GiB" for holder in holders[:8])


def _no_detail(_text: str) -> str:
    return ""


_DETAILS: dict[str, Callable[[str], str]] = {
    "unbalanced": unbalanced_words,
    "foreign_process": _foreign_detail,
}


def best(causes: list[Cause]) -> Optional[Cause]:
    """The cause among causes and consequences; of equals the first."""
    first = min(causes, key=lambda cause: cause.weight, default=None)
    if first is None or first.kind != "child_died":
        return first
    # which child is dead and with which exit code stands in lines of their own up to 0.5.9
    told = dict.fromkeys(cause.text for cause in causes if cause.kind == first.kind)
    return first._replace(text=" ".join(told))


_PEER_GONE = re.compile(r"connection (?:reset|closed) by (?:remote )?peer", re.IGNORECASE)


def lost_its_peer(cause: Cause) -> bool:
    """Whether a rank died because the process at the other end of a connection had gone."""
    return cause.rank.labelled and _PEER_GONE.search(cause.text) is not None


_FRONT = re.compile(r"error while attempting to bind|Name or service not known")


def of_no_rank(cause: Cause) -> bool:
    """Whether the process that serves requests failed, and none of the ranks behind it."""
    return not cause.rank.labelled and _FRONT.search(cause.text) is not None


def outweighed(found: Optional[Failure], verdict: Optional[Failure]) -> Optional[Failure]:
    """What a log says wins over what its reader concluded, unless the log only knows that the unit failed."""
    if found is None or verdict is None:
        return found or verdict
    return replace(verdict, message=f"{verdict.message}; {found.message}") if found.kind == "unit_failed" else found


_PROCESS = re.compile(r"\bRank (\d{1,5}) (?:scheduler|successfully)|\bscheduler_(\d{1,5}) \(pid=|\[Rank (\d{1,5})\] Watchdog")


def process_index(text: str) -> Optional[int]:
    """Which scheduler process a sentence of another process is about: pipeline stages one after the other, their TP ranks in order."""
    found = _PROCESS.search(text)
    return next((int(number) for number in found.groups() if number is not None), None) if found else None


# --- tracebacks -------------------------------------------------------------------------------------------------------


@dataclass
class _Trace:
    rank: Rank
    pid: Optional[int]
    declared: bool
    stage: str
    intro: str
    lines: list[str] = field(default_factory=list)
    place: str = ""
    source: str = ""
    decodes: bool = False

    def enter(self, frame: re.Match[str]) -> None:
        """The next deeper frame of the traceback."""
        path, function = frame.groups()
        self.place = path if "sglang/" in path else self.place
        self.decodes = self.decodes or "decode" in function

    def again(self) -> None:
        """Another exception while the first was handled: the last one is the one that killed."""
        self.lines.clear()
        self.place = ""

    def add(self, text: str) -> None:
        if sum(map(len, self.lines)) < MAX_TRACE_TEXT:
            self.lines.append(text.strip()[:2000])

    def cause(self) -> Cause:
        text = " ".join(self.lines) or self.intro
        if text.rstrip(":") == "AssertionError" and self.source:
            text = f"{text} ({self.source})"  # without words of its own: the line says what did not hold
        silent = not self.lines and self.intro.startswith("Initialization failed")
        fallback = "exit" if silent else "bad_arguments" if _SETTINGS.search(self.place) else "unknown_exception"
        stage = "decode" if self.stage == "prefill" and self.decodes else self.stage
        return Cause(kind_of(text, stage, fallback), text, self.rank)


_CALL = re.compile(r'\s{1,20}File "([^"]{1,500})", line \d{1,8}, in (\S{1,200})')
# where SGLang checks its arguments and the model's configuration
_SETTINGS = re.compile(r"sglang/srt/(?:server_args|arg_groups/\w+|configs/model_config)\.py$")
# what belongs to a traceback but is not the exception itself: frames are indented
_FRAME = re.compile(r"\s|$|During handling of|The above exception|\+|\|")


class Traces:
    """Puts tracebacks together from single lines, by process.

    A traceback that SGLang announces ("hit an exception") is a cause of death. Others are only suspects: healthy boots print some.
    """

    def __init__(self) -> None:
        self._done: list[_Trace] = []
        self._open: dict[Optional[int], _Trace] = {}

    def announce(self, text: str, rank: Rank, pid: Optional[int], stage: str) -> None:
        """SGLang says that this process hit an exception."""
        self._close(pid)
        if len(self._open) < MAX_TRACES:
            self._open[pid] = _Trace(rank, pid, True, stage, text)

    def suspect(self, line: str, rank: Rank, pid: Optional[int], stage: str) -> None:
        """A traceback, or the last line of one, that nobody announced."""
        if pid not in self._open and len(self._open) < MAX_TRACES:
            self._open[pid] = trace = _Trace(rank, pid, False, stage, line)
            if not line.startswith("Traceback"):
                trace.add(line)

    def read(self, record: Record, pid: Optional[int]) -> None:
        """Takes the next record of a process for the traceback it may be in the middle of."""
        trace = self._open.get(pid)
        if trace is None:
            return
        if record.headed:
            # in plain text other ranks write between the lines of a traceback; a journal tells the processes apart
            if pid is not None or trace.lines:
                self._close(pid)
        elif isinstance(record.event, Traceback):
            trace.again()
        elif isinstance(record.event, ExceptionLine) or not _FRAME.match(record.body):
            if not isinstance(record.event, Progress):
                trace.add(record.body)
        else:
            frame = _CALL.match(record.body)
            if frame:
                trace.enter(frame)
            elif record.body.strip(" ^~"):
                trace.source = record.body.strip()[:300]

    def goes_on(self, pid: Optional[int]) -> None:
        """The process made progress, so what it printed before did not kill it."""
        self._done = [trace for trace in self._done if trace.declared or trace.pid != pid]
        if pid in self._open and not self._open[pid].declared:
            del self._open[pid]

    def forget(self) -> None:
        """The server came up: no traceback so far killed it."""
        self._done.clear()
        self._open.clear()

    @property
    def reading(self) -> bool:
        return bool(self._open)

    @property
    def announced(self) -> bool:
        return any(trace.declared for trace in self._all())

    def causes(self) -> list[Cause]:
        return [trace.cause() for trace in self._all() if trace.declared]

    def last_suspect(self) -> Optional[Cause]:
        suspects = [trace for trace in self._all() if not trace.declared]
        return suspects[-1].cause() if suspects else None

    def _all(self) -> list[_Trace]:
        return [*self._done, *self._open.values()]

    def _close(self, pid: Optional[int]) -> None:
        trace = self._open.pop(pid, None)
        if trace is not None and len(self._done) < MAX_TRACES:
            self._done.append(trace)
