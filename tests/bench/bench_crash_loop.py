# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the time and the memory that allocation_info needs for a log of 2 GB in which a server dies and starts again.

Usage: bench_crash_loop.py [MEGABYTES]. The log is made once, under .cache/bench: each start of eight ranks loads its weights, prints its
pools, and dies in graph capture with a traceback on every rank. The memory is that of the whole process of the module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".cache" / "collections"))

from ansible_collections.inferops.sglang.tests.unit.boots import SECOND, stamped  # noqa: E402

MEBIBYTES = 256  # budget
LINES = 1500  # of one start
FILLER = (
    "/opt/sglang/lib/python3.11/site-packages/torch/_inductor/compile_fx.py:236: UserWarning: number {n}",
    "2026-05-30 22:08:02,560 - INFO - flashinfer.jit: Loading JIT ops: batch_decode_{n} with head_dim 512, page size 1",
    "[2026-05-30 22:08:02 TP3] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at {n}",
    "[aiter] import [module_{n}] under /opt/aiter/jit/module_{n}.so",
)
MODULE = """
import sys
from ansible.module_utils import basic
from ansible_collections.inferops.sglang.plugins.modules import allocation_info
basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = sys.argv[1].encode(), "legacy"
allocation_info.main()
"""


def start() -> str:
    """One start, in the order in which the log keeps it."""
    milestones = [line.text for line in SECOND.lines() if "Capture cuda graph end" not in line.text]
    milestones = milestones[: next(n for n, text in enumerate(milestones) if "DFlashDraftModel" in text) - 8]
    crash = "Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.50 GiB."
    trace = ["Traceback (most recent call last):"]
    for number in range(12):
        trace += [f'  File "/opt/sglang/srt/managers/step_{number}.py", line {number}, in run', "    self.run_next(batch)"]
    bars = [f"Loading safetensors checkpoint shards: {n * 100 // 64:3}% Completed | {n}/64 [00:{n:02}<00:20,  2.90it/s]" for n in range(65)]
    traces = [[stamped(f"TP{rank}", "Scheduler hit an exception: " + trace[0]), *trace[1:], f"Exception: {crash}", ""] for rank in range(8)]
    every = LINES // len(milestones)
    filler = [*bars, *(FILLER[n % len(FILLER)].format(n=n) for n in range(LINES - len(milestones) - len(bars)))]
    lines = []
    for number, milestone in enumerate(milestones):
        lines += [milestone, *filler[number * (every - 1) : (number + 1) * (every - 1)]]
    died = stamped("", "Received sigquit from a child process. It usually means the child failed.")
    return "\n".join([*lines, *(line for trace in traces for line in trace), died, ""])


def log(megabytes: int) -> Path:
    path = ROOT / ".cache" / "bench" / f"crash-loop-{megabytes}.log"
    if not path.exists():
        print(f"making a log of {megabytes} MB, once ...", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        one = start().encode()
        with open(path.with_suffix(".part"), "wb") as file:
            for _start in range(megabytes * 10**6 // len(one) + 1):
                file.write(one)
        path.with_suffix(".part").rename(path)
    return path


def main() -> None:
    path = log(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {"log_files": [str(path)]}})
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".cache" / "collections")}
    begin = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", MODULE, arguments], env=environment, stdout=subprocess.PIPE) as module:
        assert module.stdout is not None
        result = json.loads(module.stdout.read())
        _pid, status, usage = os.wait4(module.pid, 0)
        module.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    allocation = result["allocation"]
    assert allocation["failure"]["kind"] == "oom_capture", allocation["failure"]
    gigabytes = path.stat().st_size / 1e9
    print(
        f"{gigabytes:.2f} GB, {allocation['restarts'] + 1:,} starts: {seconds:.1f} s ({gigabytes * 1000 / seconds:.0f} MB/s, "
        f"load {os.getloadavg()[0]:.1f}), {usage.ru_maxrss / 1024:.0f} MiB resident at most (budget {MEBIBYTES})"
    )


if __name__ == "__main__":
    main()
