# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand: STANDIN_FAULT, or the file that STANDIN_FAULT_FILE names, e.g. "slow_load:3,oom_capture:2".

R is the index of a rank, 0 where it may be left out.
  none               a healthy start
  short_pool[:GIB]   the last rank has GIB (4) less free memory: every pool of its group is smaller
  unbalanced:R       rank R has a fifth less free memory: the others refuse to start
  not_enough_memory  the weights leave nothing of the static fraction
  slow_load:SECONDS  the weights take longer
  missing_file       a shard of the weights is not there
  kill9[:R]          rank R is killed while the weights load; kill9:main kills the main process
  nccl_timeout       the process groups never form; the last rank's watchdog aborts it
  lost_rank:R        rank R says nothing after its weights and hangs; the others wait for it at the capture
  crash_loop         rank 0 fails after the pools, in every start
  silent_death       the server is gone after the pools, without a word, with status 0
  oom_draft_pool[:R] the draft's pool does not fit
  oom_capture[:R]    the target's graphs do not fit
  oom_warmup[:R]     the first prompt does not fit
  hang:PHASE         every rank stops in init, weights, pool, capture or warmup, alive
  port_in_use        another socket has the port
  benign_noise       a healthy start with tracebacks and words of memory in it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sglang.standin.memory import Hardware, Misuse

PHASES = ("init", "weights", "pool", "capture", "warmup")

# name: (kind of its argument, the argument when none is given)
KNOWN = {
    "none": (None, None),
    "short_pool": ("gib", "4"),
    "lost_rank": ("rank", None),
    "oom_capture": ("rank", "0"),
    "oom_warmup": ("rank", "0"),
    "oom_draft_pool": ("rank", "0"),
    "not_enough_memory": (None, None),
    "hang": ("phase", None),
    "slow_load": ("seconds", None),
    "crash_loop": (None, None),
    "silent_death": (None, None),
    "kill9": ("rank", "0"),
    "unbalanced": ("rank", None),
    "port_in_use": (None, None),
    "missing_file": (None, None),
    "nccl_timeout": (None, None),
    "benign_noise": (None, None),
}

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB. GPU {rank} has a total capacity of "
    "94.97 GiB of which 612.81 MiB is free. Including non-PyTorch memory, this process has 94.36 GiB memory in use. "
    "Of the allocated memory 91.02 GiB is allocated by PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated."
)
ILLEGAL_ACCESS = "RuntimeError: CUDA error: an illegal memory access was encountered"
NO_SHARD = 'FileNotFoundError: No such file or directory: "{model}/model-00001-of-000064.safetensors"'
UNBALANCED = (
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
    "{name}={smallest!r}, local_gpu_memory={own!r}, local_gpu_memory * 0.9={share!r}"
)
NCCL = (
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, "
    "NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
)

# lines of healthy boots that look like failures: phase before which they are printed, with or without a prefix
NOISE = (
    ("weights", True, "Unexpected error during package walk: cutlass.cute.experimental"),
    ("weights", True, "Ignore import error when loading sglang.srt.models.grok: No module named 'cutlass'"),
    ("pool", False, "WARNING: torch._dynamo: error while collecting metrics"),
    ("pool", False, "Traceback (most recent call last):"),
    ("pool", False, '  File "torch/_dynamo/utils.py", line 1424, in record_metrics'),
    ("pool", False, "RuntimeError: compile metrics are not available"),
    ("capture", False, "E0000 scheduler.cc:112] operation scheduled before its operands can be ignored"),
    ("capture", True, "Decode out of memory happened. #retracted_reqs: 0, #new_tokens_gained: 0"),
)


@dataclass(frozen=True)
class Faults:
    """The faults of one start: name to argument."""

    active: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.active

    def strikes(self, name: str, rank: int) -> bool:
        """True if the fault is on and names this rank."""
        return self.active.get(name) == str(rank)

    def hangs(self, phase: str) -> bool:
        return self.active.get("hang") == phase

    @property
    def slow_load(self) -> float:
        """Seconds that the weights take on top."""
        return float(self.active.get("slow_load", 0))

    def applied(self, hardware: Hardware, fraction: float, ranks: int) -> Hardware:
        """The hardware under those faults that are a matter of memory."""
        free = hardware.free if len(hardware.free) > 1 else hardware.free * ranks
        if "short_pool" in self:
            free = [*free[:-1], free[-1] - float(self.active["short_pool"])]
        if "unbalanced" in self:
            poor = int(self.active["unbalanced"])
            free = [have * 0.8 if index == poor else have for index, have in enumerate(free)]
        weights = hardware.weights
        if "not_enough_memory" in self:
            weights = min(free) * (1 - (1 - fraction) / 2)
        return replace(hardware, free=list(free), weights=weights)


def read_faults(environ: Mapping[str, str], ranks: int, drafts: bool) -> Faults:
    """The faults asked for; a file with text wins over the variable. Misuse names what is wrong with them."""
    text = environ.get("STANDIN_FAULT", "")
    text = _wish(environ.get("STANDIN_FAULT_FILE")) or text
    active: dict[str, str] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _colon, argument = word.partition(":")
        if name not in KNOWN:
            raise Misuse(f"STANDIN_FAULT asks for {name!r}; known are {', '.join(KNOWN)}")
        active[name] = _argument(name, argument, ranks)
    if "oom_draft_pool" in active and not drafts:
        raise Misuse("STANDIN_FAULT asks for 'oom_draft_pool', but this server has no draft model")
    return Faults(active)


def _wish(path: str | None) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise Misuse(f"STANDIN_FAULT_FILE cannot be read: {error}") from error


def _argument(name: str, argument: str, ranks: int) -> str:
    kind, default = KNOWN[name]
    given = argument or default or ""
    valid: dict[str | None, list[str]] = {None: [""], "phase": list(PHASES), "rank": [str(rank) for rank in range(ranks)]}
    if name == "kill9":
        valid["rank"].append("main")
    fine = given in valid[kind] if kind in valid else given.replace(".", "", 1).isdigit()
    if not fine:
        wanted = ", ".join(valid[kind]) if kind in valid else f"a number of {kind}"
        raise Misuse(f"STANDIN_FAULT gives {name!r} the argument {given!r}; it takes {wanted or 'none'}")
    return given
