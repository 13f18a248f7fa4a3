# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one rank will say and do, and when: pure data, made before any process exists."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

from sglang.standin import faults as texts
from sglang.standin.eras import Era
from sglang.standin.faults import NOISE, Faults
from sglang.standin.memory import BALANCE, Moment, Pools, Rank

CONTEXT_GIB = 1.24  # what process groups take before anything is measured
PHASE_OF = {"init": "init", "load": "weights", "pool": "pool", "graph": "capture"}
SHARDS = 64


@dataclass(frozen=True)
class Step:
    """One act of a rank, `at` seconds after the start.

    `kind` is say (a record with prefix), raw (bytes as they are), fail (a logged exception that ends the server),
    signal (the process kills itself with `number`), exit (with `number`), hang, or a death of its own kind: eat, segfault, abort.
    """

    at: float
    kind: str
    text: str = ""
    number: int = 0


@dataclass(frozen=True)
class Start:
    """Everything a script depends on."""

    args: argparse.Namespace
    era: Era
    pools: Pools
    faults: Faults
    step: float
    token: float = 0.0  # seconds that a token of an answer takes


class Ended(Exception):
    """The script of this rank is complete: it failed, hung or died."""


class Script:
    """Writes the steps of one rank."""

    def __init__(self, start: Start, rank: Rank) -> None:
        self.start, self.rank = start, rank
        self.steps: list[Step] = []
        # ranks speak in a fixed but mixed order, well inside one step
        ranks = len(start.pools.ranks)
        self.now = start.step * 0.5 * ((rank.index * 5 + ranks // 2) % ranks) / ranks
        self.noise = list(NOISE) if "benign_noise" in start.faults else []

    def write(self) -> list[Step]:
        """All steps up to readiness, or up to the fault that comes first."""
        try:
            for moment in self.start.pools.ledgers[self.rank.index]:
                self._event(moment)
            self._check_budget()
            self._summary()
        except Ended:
            pass
        return self.steps

    def _event(self, moment: Moment) -> None:
        self._advance()  # a collective stands before every event: no rank is a phase ahead
        self._make_noise(PHASE_OF[moment.what])
        writers = {"init": self._init, "load": self._load, "pool": self._pool, "graph": self._graph}
        if moment.what == "graph" and (self.start.args.disable_cuda_graph or self.start.args.device == "cpu"):
            return
        writers[moment.what](moment)

    def _init(self, moment: Moment) -> None:
        era = self.start.era
        usage = CONTEXT_GIB if moment.whose == "target" else 0.0
        if moment.whose == "draft":
            lines = [line.format(elapsed=self._elapsed(), usage=usage) for line in era.draft_init]
            for line in lines:
                self._say(line)
            return
        self._say(era.init_begin)
        self._stop_if_hung("init")
        self._crash(moment)
        if "nccl_timeout" in self.start.faults:
            self._nccl_timeout()
        self._advance()
        self._check_balance()
        for line in era.init_end:
            self._say(line.format(elapsed=self._elapsed(), usage=usage))

    def _load(self, moment: Moment) -> None:
        era, pools, faults = self.start.era, self.start.pools, self.start.faults
        self._say(f"Load weight begin. avail mem={moment.before:.2f} GB")
        self._stop_if_hung("weights")
        self._bar(era.load_bar, 0)
        self._advance()
        self._die_silently()
        self._crash(moment)
        if moment.whose == "target":
            self.now += faults.slow_load
        model = pools.target if moment.whose == "target" or pools.draft is None else pools.draft
        self._bar(era.load_bar, SHARDS)
        self._say(
            era.load_end.format(
                elapsed=self._elapsed(), model=model.name, dtype="torch.bfloat16", avail=moment.after, usage=moment.usage
            )
        )
        if moment.whose == "draft" and self.rank.tp == 0 and self.start.args.speculative_algorithm == "DFLASH":
            self._say(
                f"Initialized DFLASH draft runner. attention_backend={self.start.args.attention_backend or 'flashinfer'}, "
                f"model={model.name}, block_size={pools.draft_tokens}, draft_window_size=None, compact_cache=False"
            )

    def _pool(self, moment: Moment) -> None:
        era, pools, faults = self.start.era, self.start.pools, self.start.faults
        if era.says_kv_dtype and self.rank.tp == 0 and moment.whose == "target":
            self._say(f"Using KV cache dtype: {pools.kv_dtype}")
        self._stop_if_hung("pool")
        if faults.strikes("lost_rank", self.rank.index):
            self._end("hang")
        if moment.whose == "target":
            self._warn_of_cap()
        if "hybrid_state" in faults:
            self._lack_states()
        self._crash(moment)
        key, value = pools.sizes[moment.whose, self.rank.index]
        size = f"K size: {key:.2f} GB, V size: {value:.2f} GB" if value else f"KV size: {key:.2f} GB"
        dtype = era.kv_dtype.format(dtype=pools.kv_dtype)
        self._say(f"KV Cache is allocated. {dtype}#tokens: {pools.tokens[self.rank.index]}, {size}")
        self._say(f"Memory pool end. avail mem={moment.after:.2f} GB")
        self._advance()
        self._die_after_pools(moment)

    def _warn_of_cap(self) -> None:
        cap, profiled = self.start.args.max_total_tokens, self.start.pools.profiled[self.rank.index]
        if cap and cap > profiled:
            self._say(f"max_total_tokens={cap} is larger than the profiled value {profiled}. Use the profiled value instead.")

    def _die_after_pools(self, moment: Moment) -> None:
        last = "draft" if self.start.pools.draft else "target"
        if moment.whose != last or self.rank.index != 0:
            return
        if "crash_loop" in self.start.faults:
            self._end("fail", traceback("init_attention_backend", texts.ILLEGAL_ACCESS))
        if "silent_death" in self.start.faults:
            self._end("exit", number=0)

    def _graph(self, moment: Moment) -> None:
        era, pools, faults = self.start.era, self.start.pools, self.start.faults
        sizes = self.start.args.cuda_graph_bs
        values = {
            "name": self._graph_name(moment.whose),
            "width": max(1, pools.draft_tokens),
            "bs": sizes,
            "elapsed": self._elapsed(),
            "usage": moment.usage,
        }
        self._say(era.graph_begin.format(**values, avail=moment.before))
        if not era.named_graphs and self.rank.tp == 0:
            self._say(f"Capture cuda graph bs {sizes}")
            self._raw(f"\rCapturing batches (bs={sizes[-1]} avail_mem={moment.before:.2f} GB):   0%|          | 0/{len(sizes)}")
        self._stop_if_hung("capture")
        if "lost_rank" in faults:  # the others wait for it in a collective
            self._end("hang")
        self._advance()
        self._crash(moment)
        if faults.strikes("oom_capture", self.rank.index):
            self._end("fail", self._capture_failure())
        if not era.named_graphs and self.rank.tp == 0:
            self._raw(f"\rCapturing batches (bs=1 avail_mem={moment.after:.2f} GB): 100%|##########| {len(sizes)}/{len(sizes)}\n")
        self._say(era.graph_end.format(**values, avail=moment.after))

    def _crash(self, moment: Moment) -> None:
        crash = self.start.faults.crash(moment.what, moment.whose, self.rank.index)
        if crash:
            reason = crash.reason.format(rank=self.rank.index, model=self.start.args.model_path)
            self._end("fail", traceback(crash.where, reason))

    def _die_silently(self) -> None:
        deaths = {"kill9": ("signal", 9), "host_oom": ("eat", 0), "segfault": ("segfault", 0), "abort": ("abort", 0)}
        for name, (kind, number) in deaths.items():
            if self.start.faults.strikes(name, self.rank.index):
                self._end(kind, number=number)

    def _lack_states(self) -> None:
        """One slot of states takes all that the weights leave of the static fraction."""
        pools, index = self.start.pools, self.rank.index
        rest = pools.available[index] - pools.smallest[index] * (1 - self.start.args.mem_fraction_static)
        reason = self.start.era.no_states.format(rest=rest, slot=rest * 1024)
        self._end("fail", traceback("_handle_max_mamba_cache", reason))

    def _graph_name(self, whose: str) -> str:
        eagle = self.start.args.speculative_algorithm not in (None, "DFLASH", "DDTREE")
        if not self.start.era.named_graphs:
            return "draft " if whose == "draft" and eagle else ""
        if whose == "draft":
            return "draft decode" if eagle else "draft verify"
        return "target verify" if self.start.args.speculative_algorithm else "target decode"

    def _capture_failure(self) -> str:
        cause = texts.OOM.format(rank=self.rank.index)
        reason = f"Exception: Capture cuda graph failed: {cause.partition(': ')[2]}\n{self.start.era.graph_advice}"
        return (
            traceback("capture_one_batch_size", cause)
            + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
            + traceback("init_device_graphs", reason)
        )

    def _check_balance(self) -> None:
        pools, index = self.start.pools, self.rank.index
        own, smallest = pools.free[index], pools.smallest[index]
        if self.start.args.tp_size > 1 and smallest < own * BALANCE:
            values = {"name": self.start.era.unbalanced_name, "smallest": smallest, "own": own, "share": own * BALANCE}
            self._end("fail", traceback("init_torch_distributed", texts.UNBALANCED.format(**values)))

    def _check_budget(self) -> None:
        pools, index = self.start.pools, self.rank.index
        if pools.tokens[index] > 0:
            return
        minimum = 1 - pools.available[index] / pools.smallest[index]
        values = {"fraction": self.start.args.mem_fraction_static, "minimum": minimum, "suggested": math.ceil(minimum * 1000) / 1000}
        self._end("fail", traceback("init_memory_pool", self.start.era.no_room.format(**values)))

    def _nccl_timeout(self) -> None:
        self.now += self.start.step * 4
        if self.rank.index != len(self.start.pools.ranks) - 1:
            self._end("hang")
        reason = texts.NCCL.format(rank=self.rank.index)
        self._raw(f"[rank{self.rank.index}]:[E1129 16:20:41.437201991 ProcessGroupNCCL.cpp:685] {reason}\n")
        self._raw(f"terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  {reason}\n")
        self._end("signal", number=6)

    def _summary(self) -> None:
        """The last line before readiness, from TP rank 0 of every group."""
        args, pools = self.start.args, self.start.pools
        index = self.rank.index
        if self.rank.tp != 0:
            return
        if self.start.era.concurrency_line:
            self._say(self.start.era.concurrency_line.format(requests=pools.requests[index]))
        left = pools.ledgers[index][-1].after
        self._say(
            f"max_total_num_tokens={pools.tokens[index]}, chunked_prefill_size={args.chunked_prefill_size}, "
            f"max_prefill_tokens={args.max_prefill_tokens}, max_running_requests={pools.requests[index]}, "
            f"context_len={pools.context}, available_{'cpu' if args.device == 'cpu' else 'gpu'}_mem={left:.2f} GB"
        )

    def _bar(self, title: str, done: int) -> None:
        """A progress bar of rank 0 that ends its line only when it is full: the next record sticks to it."""
        if self.rank.index != 0:
            return
        rate = "<?, ?it/s]" if done == 0 else f"<00:00, {SHARDS / max(self.now, 0.01):.2f}it/s]\n"
        self._raw(f"\r{title}: {100 * done // SHARDS:3d}% Completed | {done}/{SHARDS} [00:00{rate}")

    def _make_noise(self, phase: str) -> None:
        for line in [line for line in self.noise if line[0] == phase]:
            self.noise.remove(line)
            self._say(line[2]) if line[1] else self._raw(line[2] + "\n")

    def _elapsed(self) -> float:
        return self.now + self.start.step

    def _advance(self) -> None:
        self.now += self.start.step

    def _stop_if_hung(self, phase: str) -> None:
        if self.start.faults.hangs(phase):
            self._end("hang")

    def _say(self, text: str) -> None:
        self.steps.append(Step(self.now, "say", text))

    def _raw(self, text: str) -> None:
        self.steps.append(Step(self.now, "raw", text))

    def _end(self, kind: str, text: str = "", number: int = 0) -> None:
        self.steps.append(Step(self.now, kind, text, number))
        raise Ended


def scripts(start: Start) -> dict[int, list[Step]]:
    """The steps of every rank by its index."""
    return {rank.index: Script(start, rank).write() for rank in start.pools.ranks}


def prefix(rank: Rank, args: argparse.Namespace) -> str:
    """The rank part of a record, "" for a lone rank, else e.g. " DP1 PP0 TP3 EP3"."""
    parts = [
        (args.dp_size > 1, f" DP{rank.dp}"),
        (args.pp_size > 1, f" PP{rank.pp}"),
        (args.tp_size > 1, f" TP{rank.tp}"),
        (args.ep_size > 1, f" EP{rank.ep}"),
    ]
    return "".join(text for shown, text in parts if shown)


def traceback(where: str, reason: str) -> str:
    """A traceback through the scheduler that ends with `reason`."""
    return (
        "Traceback (most recent call last):\n"
        '  File "sglang/srt/managers/scheduler.py", line 3401, in run_scheduler_process\n'
        f'  File "sglang/srt/model_executor/model_runner.py", line 812, in {where}\n'
        f"{reason}"
    )
