# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand: STANDIN_FAULT, or the file that STANDIN_FAULT_FILE names, e.g. "slow_load:3,oom_capture:2".

R is the index of a rank, 0 where it may be left out.
  none               a healthy start
  benign_noise       a healthy start with tracebacks and words of memory in it
  retraction         a healthy server that takes a request back whenever it gets one
  short_pool[:GIB]   the last rank has GIB (4) less free memory: every pool of its group is smaller
  slow_load:SECONDS  the weights take longer
  lost_rank:R        rank R says nothing after its weights and hangs; the others wait for it at the capture
  hang:PHASE         every rank stops in init, weights, pool, capture or warmup, alive
  port_in_use        another socket has the port
  crash_loop         rank 0 fails after the pools, in every start
before any rank is there
  missing_kernel     the kernels' library cannot be loaded
  no_device          no card is in sight
  permission         the model may not be read
  bad_arguments      a flag that no release has
  bad_flag           a flag whose value SGLang's own checks refuse
in a rank
  unbalanced:R       rank R has a fifth less free memory: the others refuse to start
  rendezvous_timeout the ranks never find each other
  nccl_timeout       the process groups never form; the last rank's watchdog aborts it
  missing_file       a shard of the weights is not there
  damaged_file       a shard of the weights is cut short
  oom_weights[:R]    the weights do not fit
  not_enough_memory  the weights leave nothing of the static fraction
  hybrid_state       what they leave is too little for the states of a hybrid model; from 0.5.14 on
  oom_pool[:R]       the target's pool does not fit
  oom_draft_pool[:R] the draft's pool does not fit
  foreign_process[:R] the target's graphs do not fit, as another process holds memory of the card
  disk_full[:R]      what is compiled for the graphs cannot be written
  oom_capture[:R]    the target's graphs do not fit
  oom_warmup[:R]     the first prompt does not fit
  oom_prefill[:R]    the first prompt of a client does not fit
  oom_decode[:R]     its first step after the prompt does not fit
  watchdog[:R]       a forward pass takes longer than SGLang's watchdog allows
without a word of SGLang
  kill9[:R]          rank R is killed while the weights load; kill9:main kills the main process
  host_oom[:R]       rank R takes host memory while the weights load until it is killed
  segfault[:R]       rank R reads memory that is not there
  abort[:R]          rank R aborts
  exit:CODE          the main process ends with this status while the ranks load
  silent_death       the server is gone after the pools, without a word, with status 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sglang.standin.memory import Hardware, Misuse

PHASES = ("init", "weights", "pool", "capture", "warmup")

# name: (kind of its argument, the argument when none is given)
KNOWN: dict[str, tuple[str | None, str | None]] = {
    **dict.fromkeys(
        (
            "none", "benign_noise", "retraction", "port_in_use", "crash_loop", "silent_death", "missing_kernel", "no_device", "permission",
            "bad_arguments", "bad_flag", "rendezvous_timeout", "nccl_timeout", "missing_file", "damaged_file", "not_enough_memory",
            "hybrid_state",
        ),
        (None, None),
    ),
    **dict.fromkeys(
        (
            "oom_weights", "oom_pool", "oom_draft_pool", "foreign_process", "disk_full", "oom_capture", "oom_warmup", "oom_prefill",
            "oom_decode", "watchdog", "kill9", "host_oom", "segfault", "abort",
        ),
        ("rank", "0"),
    ),
    "short_pool": ("gib", "4"),
    "lost_rank": ("rank", None),
    "unbalanced": ("rank", None),
    "hang": ("phase", None),
    "slow_load": ("seconds", None),
    "exit": ("status", None),
}  # fmt: skip

_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB. GPU {rank} has a total capacity of "
    "94.97 GiB of which 612.81 MiB is free. %sIncluding non-PyTorch memory, this process has 94.36 GiB memory in use. "
    "Of the allocated memory 91.02 GiB is allocated by PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated."
)
OOM = _OOM % ""
OOM_BESIDE_ANOTHER = _OOM % "Process 4117 has 28.50 GiB memory in use. "
ILLEGAL_ACCESS = "RuntimeError: CUDA error: an illegal memory access was encountered"
NO_SHARD = 'FileNotFoundError: No such file or directory: "{model}/model-00001-of-000064.safetensors"'
CUT_SHARD = "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer"
NO_SPACE = "OSError: [Errno 28] No space left on device: '/root/.triton/cache/7f3a/kernel.cubin'"
NOBODY_CAME = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/8 clients joined."
WATCHDOG = "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"
RETRACTION = "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 96, #new_token_ratio: 0.7100 -> 0.9400"
UNBALANCED = (
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
    "{name}={smallest!r}, local_gpu_memory={own!r}, local_gpu_memory * 0.9={share!r}"
)
NCCL = (
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, "
    "NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
)


@dataclass(frozen=True)
class Crash:
    """How a rank fails: before which memory event (what, whose), in which function, and its last words."""

    what: str
    whose: str
    where: str
    reason: str


# a fault that names no rank strikes all
CRASHES = {
    "rendezvous_timeout": Crash("init", "target", "init_torch_distributed", NOBODY_CAME),
    "oom_weights": Crash("load", "target", "load_model", OOM),
    "missing_file": Crash("load", "target", "load_model", NO_SHARD),
    "damaged_file": Crash("load", "target", "load_model", CUT_SHARD),
    "oom_pool": Crash("pool", "target", "alloc_memory_pool", OOM),
    "oom_draft_pool": Crash("pool", "draft", "alloc_memory_pool", OOM),
    "foreign_process": Crash("graph", "target", "capture_one_batch_size", OOM_BESIDE_ANOTHER),
    "disk_full": Crash("graph", "target", "capture_one_batch_size", NO_SPACE),
}
# failures of the first request of a kind: the function of the traceback
REQUEST_CRASHES = {"oom_warmup": "event_loop_overlap", "oom_prefill": "forward_extend", "oom_decode": "forward_decode"}


@dataclass(frozen=True)
class Refused:
    """How the main process fails before it starts a rank: file and function of its traceback, and its last words."""

    file: str
    where: str
    reason: str


REFUSALS = {
    "missing_kernel": Refused(
        "sgl_kernel/load_utils.py", "_load_architecture_specific_ops",
        "ImportError: \n[sgl_kernel] CRITICAL: \nCould not load any common_ops library!\n\nAttempted locations:\n"
        "1. Architecture-specific pattern: /opt/sglang/sgl_kernel/sm100/common_ops.* - found files: []",
    ),
    "no_device": Refused("sglang/srt/utils/common.py", "get_device", "RuntimeError: {no_device}"),
    "permission": Refused(
        "transformers/configuration_utils.py", "_dict_from_json_file",
        "PermissionError: [Errno 13] Permission denied: '{model}/config.json'",
    ),
}  # fmt: skip
# flags that are wrong for real: argparse and SGLang's own checks refuse them
BAD_FLAGS = {"bad_arguments": ["--no-such-flag"], "bad_flag": ["--base-gpu-id", "-1"]}

# lines of healthy boots that look like failures: phase before which they are printed, with or without a prefix
NOISE = (
    ("weights", True, "Unexpected error during package walk: cutlass.cute.experimental"),
    ("weights", True, "Ignore import error when loading sglang.srt.models.grok: No module named 'cutlass'"),
    (
        "weights", False,
        "[W1129 16:20:41.437201991 socket.cpp:752] [c10d] The client socket has failed to connect to [::1]:30103 (errno: 111 - refused).",
    ),
    ("weights", True, "Port 30103 is already in use, trying port 30104"),
    ("pool", False, "WARNING: torch._dynamo: error while collecting metrics"),
    ("pool", False, "Traceback (most recent call last):"),
    ("pool", False, '  File "torch/_dynamo/utils.py", line 1424, in record_metrics'),
    ("pool", False, "RuntimeError: compile metrics are not available"),
    ("capture", False, "E0000 scheduler.cc:112] operation scheduled before its operands can be ignored"),
    ("capture", True, "Decode out of memory happened. #retracted_reqs: 0, #new_tokens_gained: 0"),
    ("capture", True, "Soft watchdog timeout (self.watchdog_timeout=60, self.soft=True)"),
    ("capture", True, "max_total_num_tokens: arg=60000 vs profiled=-89624"),
)  # fmt: skip


@dataclass(frozen=True)
class Faults:
    """The faults of one start: name to argument."""

    active: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.active

    def strikes(self, name: str, rank: int) -> bool:
        """True if the fault is on and names this rank."""
        return self.active.get(name) == str(rank)

    def crash(self, what: str, whose: str, rank: int) -> Crash | None:
        """How this rank fails before this memory event; None if it does not."""
        for name, crash in CRASHES.items():
            if (crash.what, crash.whose) == (what, whose) and self.active.get(name) in ("", str(rank)):
                return crash
        return None

    @property
    def refusal(self) -> Refused | None:
        """How the main process fails before any rank is there; None if it does not."""
        return next((REFUSALS[name] for name in self.active if name in REFUSALS), None)

    @property
    def bad_flags(self) -> list[str]:
        return [word for name in self.active for word in BAD_FLAGS.get(name, [])]

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


def asked(environ: Mapping[str, str]) -> Faults:
    """The faults asked for, unchecked; a file with text wins over the variable."""
    text = environ.get("STANDIN_FAULT", "")
    text = _wish(environ.get("STANDIN_FAULT_FILE")) or text
    words = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    return Faults({name: argument for name, _colon, argument in words})


def read_faults(environ: Mapping[str, str], ranks: int, drafts: bool, hybrids: bool) -> Faults:
    """The faults asked for, for a server of so many ranks. Misuse names what is wrong with them."""
    active: dict[str, str] = {}
    for name, argument in asked(environ).active.items():
        if name not in KNOWN:
            raise Misuse(f"STANDIN_FAULT asks for {name!r}; known are {', '.join(KNOWN)}")
        active[name] = _argument(name, argument, ranks)
    if "oom_draft_pool" in active and not drafts:
        raise Misuse("STANDIN_FAULT asks for 'oom_draft_pool', but this server has no draft model")
    if "hybrid_state" in active and not hybrids:
        raise Misuse("STANDIN_FAULT asks for 'hybrid_state', but this release has no words for it")
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
