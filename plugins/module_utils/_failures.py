# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a boot died: tracebacks put together, texts to kinds, kinds to advice. Private to this collection: may change at any time.

Two failures look alike and need opposite moves: SGLang refusing to start because its share of memory is too small (raise
C(mem_fraction_static)) and CUDA running out of memory beside that share (lower it).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import ExceptionLine, Rank, Record, Traceback

MAX_TRACES = 64
MAX_TRACE_TEXT = 4000


@dataclass(frozen=True)
class Failure:
    """Why the boot died, and in which direction C(mem_fraction_static) must move: raise, lower, impossible or other."""

    kind: str
    rank: Optional[dict[str, int]]
    message: str
    advice: str
    minimum_fraction: Optional[float]
    remedy: str


@dataclass(frozen=True)
class BootFigures:
    """What the log of the boot says that a fraction can be worked out from; GiB, the smallest over the ranks.

    ``before_gib``: free memory before the weights. ``at_sizing_gib``: free memory when the pool is sized.
    """

    before_gib: Optional[float] = None
    at_sizing_gib: Optional[float] = None


class Kind(NamedTuple):
    """``weight``: 0 a cause, 1 what may be a consequence on another rank, 2 and more a mere consequence."""

    weight: int
    advice: str
    remedy: str


_LOWER = "lower mem_fraction_static, or need less outside the pool: fewer or smaller CUDA graphs, a smaller chunked_prefill_size"
KINDS = {
    "not_enough_memory": Kind(0, "raise", "raise mem_fraction_static: the weights alone take more than the share it grants"),
    "hybrid_state": Kind(0, "raise", "raise mem_fraction_static, or shrink the state pool (max_mamba_cache_size, mamba_full_memory_ratio)"),
    "unbalanced": Kind(0, "other", "free the cards: another process holds memory on one of them (nvidia-smi names it)"),
    "oom_weights": Kind(0, "impossible", "the weights do not fit on the card: use more cards (tp_size) or a smaller quantisation"),
    "oom_draft_weights": Kind(0, "lower", "lower mem_fraction_static: this build loads the draft after the pool took its share"),
    "oom_pool": Kind(0, "lower", _LOWER),
    "oom_draft_pool": Kind(0, "lower", "lower mem_fraction_static: the draft's pool did not fit beside the target's"),
    "oom_capture": Kind(0, "lower", _LOWER),
    "oom_warmup": Kind(0, "lower", _LOWER),
    "oom_prefill": Kind(0, "lower", _LOWER),
    "oom_kill": Kind(0, "other", "give the host or the unit more memory (MemoryMax=, swap, fewer parallel compile jobs)"),
    "missing_kernel": Kind(0, "other", "install a build of SGLang and its kernels that knows this card and driver"),
    "bad_arguments": Kind(0, "other", "correct the arguments of the server for this SGLang version"),
    "missing_file": Kind(0, "other", "check the paths of the model and the program, and that the user of the unit can see them"),
    "port_in_use": Kind(0, "other", "stop the process that holds the port, or choose another port"),
    "permission": Kind(0, "other", "give the user of the unit access to what the message names"),
    "capture_failed": Kind(0, "other", "look at the cause in the message; a start without CUDA graphs tells whether they are to blame"),
    "nccl": Kind(1, "other", "look at the other ranks and at the links between the cards: this rank lost its peers"),
    "unknown_exception": Kind(1, "other", "read the log of this start around the message"),
    "hang": Kind(1, "other", "look what the rank waits for (py-spy dump), and raise the timeout only if it still makes progress"),
    "child_died": Kind(2, "other", "look for the cause before this line; after exit code -9 look for the OOM killer (journalctl -k)"),
    "exit": Kind(3, "other", "read the log of this start before this line"),
    "crash_loop": Kind(3, "other", "stop the unit, read the log of its first start, and correct the cause before starting it again"),
    "unit_failed": Kind(4, "other", "read the log of this start and what the service manager says (systemctl status)"),
}

# What an exception's text says about its kind; the first that matches decides. "oom" is made precise by the stage of the rank.
_TEXTS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("hybrid_state", r"not enough gpu memory for hybrid"),
        ("not_enough_memory", r"not enough memory\. please try|leave no gpu memory for the kv cache"),
        ("unbalanced", r"memory capacity is unbalanced"),
        (
            "missing_kernel",
            r"no kernel image is available|unsupported toolchain|undefined symbol|cuda_error_no_binary|invalid device function"
            r"|driver (?:version )?is (?:insufficient|too old)|could not load .{0,40}kernel",
        ),
        ("child_died", r"rank \d+ scheduler (?:is dead|died)"),
        ("oom", r"out of memory|outofmemoryerror|cudaerrormemoryallocation"),
        ("port_in_use", r"address already in use|errno 98\b"),
        ("permission", r"permissionerror|permission denied|errno 13\b"),
        (
            "missing_file",
            r"filenotfounderror|no such file or directory|does not appear to have a file|not a valid model identifier"
            r"|repo id must be|no module named '?sglang\b|can't load the configuration",
        ),
        ("nccl", r"\bnccl|distbackenderror|processgroup|\bgloo|connection (?:closed by|reset by) peer|collective operation timeout"),
        ("capture_failed", r"capture (?:cuda|npu) graph failed"),
        ("bad_arguments", r"unrecognized arguments|error: argument|invalid choice"),
    )
)
_OOM_BY_STAGE = {
    "start": "oom_weights",
    "weights": "oom_weights",
    "draft_weights": "oom_draft_weights",
    "pool": "oom_pool",
    "draft_pool": "oom_draft_pool",
    "capture": "oom_capture",
    "warmup": "oom_warmup",
    "prefill": "oom_prefill",
}
_VIABLE = (
    re.compile(r"minimum viable = (?:1 - available/pre = )?(0?\.\d{1,10})"),
    re.compile(r"--mem-fraction-static above (0?\.\d{1,10})"),
)


class Cause(NamedTuple):
    """One explanation of a death; the one whose kind weighs least is the best."""

    kind: str
    text: str
    rank: Rank


def kind_of(text: str, stage: str, fallback: str) -> str:
    """The kind of failure that this text names; ``stage`` is what the rank was doing, ``fallback`` the kind of a text that names none."""
    kind = next((kind for kind, pattern in _TEXTS if pattern.search(text)), fallback)
    if kind != "oom":
        return kind
    return "oom_capture" if re.search(r"capture \w+ graph failed", text, re.IGNORECASE) else _OOM_BY_STAGE[stage]


def manager_kind(what: str, detail: str) -> str:
    """The kind of a death that only the service manager tells, from its line or its result."""
    if detail == "oom-kill":
        return "oom_kill"
    if detail == "start-limit-hit":
        return "crash_loop"
    if what == "exec":
        return kind_of(detail, "start", "exit")
    return {"limit": "crash_loop", "oom": "oom_kill"}.get(what, "unit_failed")


def viable_fraction(text: str) -> Optional[float]:
    """The smallest fraction that SGLang's own refusal names; None where it names none."""
    found = next((match for match in (pattern.search(text) for pattern in _VIABLE) if match), None)
    return float(found.group(1)) if found else None


def failure_of(cause: Cause, rank: Optional[dict[str, int]], figures: BootFigures) -> Failure:
    """The failure of this cause with what is to be done about it."""
    about = KINDS[cause.kind]
    least = minimum_fraction(cause.text, figures) if about.advice == "raise" else None
    return Failure(cause.kind, rank, cause.text[:1000], about.advice, least, about.remedy)


def minimum_fraction(text: str, figures: BootFigures) -> Optional[float]:
    """The share below which this start cannot come up: SGLang's own figure, else 1 - A/P, 4 decimals up.

    P is the free memory before the weights, A the free memory when the pool is sized, each of the rank with the least.
    """
    named = viable_fraction(text)
    if named is not None:
        return named
    before, after = figures.before_gib, figures.at_sizing_gib
    if before is None or after is None or not 0 <= after < before:
        return None
    return math.ceil((1 - after / before) * 10000 - 1e-9) / 10000


def best(causes: list[Cause]) -> Optional[Cause]:
    """The cause among causes and consequences; of equals the first."""
    return min(causes, key=lambda cause: KINDS[cause.kind].weight, default=None)


# --- tracebacks -------------------------------------------------------------------------------------------------------


@dataclass
class _Trace:
    rank: Rank
    pid: Optional[int]
    declared: bool
    stage: str
    intro: str
    lines: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if sum(map(len, self.lines)) < MAX_TRACE_TEXT:
            self.lines.append(text.strip()[:2000])

    def cause(self) -> Cause:
        text = " ".join(self.lines) or self.intro
        silent = not self.lines and self.intro.startswith("Initialization failed")
        return Cause(kind_of(text, self.stage, "exit" if silent else "unknown_exception"), text, self.rank)


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
            trace.lines.clear()  # another exception while the first was handled: the last one is the one that killed
        elif isinstance(record.event, ExceptionLine) or not _FRAME.match(record.body):
            trace.add(record.body)

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
