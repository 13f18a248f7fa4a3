# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints how many journal records a second one core takes from journalctl's export format to an allocation.

Usage: bench_parse.py [RECORDS]. The lines are made in memory, so journalctl's own time is not in the figures.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".cache" / "collections"))

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalReader, Source  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism  # noqa: E402

SERVING = (
    "[2026-05-30 22:{m:02}:{s:02} TP0] Decode batch, #running-req: 1, #token: {n}, token usage: 0.00, accept len: 4.73, "
    "cuda graph: True, gen throughput (token/s): 104.81, #queue-req: 0",
    "[2026-05-30 22:{m:02}:{s:02} TP0] Prefill batch, #new-seq: 1, #new-token: {n}, #cached-token: 0, token usage: 0.00, "
    "#running-req: 0, #queue-req: 0, input throughput (token/s): 5321.52",
    '[2026-05-30 22:{m:02}:{s:02}] INFO:     10.0.0.7:{n} - "POST /v1/chat/completions HTTP/1.1" 200 OK',
)
FOREIGN = (
    "/opt/sglang/lib/python3.11/site-packages/torch/_inductor/compile_fx.py:236: UserWarning: number {n}",
    "2026-05-30 22:{m:02}:{s:02},560 - INFO - flashinfer.jit: Loading JIT ops: batch_decode_{n}",
    "[aiter] import [module_{n}] under /opt/aiter/jit",
)


def boot() -> Iterator[str]:
    """The milestones of one start on eight ranks."""
    yield "[2026-05-30 22:00:00] server_args=ServerArgs(model_path='/srv/models/kimi', tp_size=8, mem_fraction_static=0.92)"
    for milestone in (
        "Load weight begin. avail mem=93.73 GB",
        "Load weight end. elapsed=400.00 s, type=KimiK25ForConditionalGeneration, avail mem=21.33 GB, mem usage=72.40 GB.",
        "KV Cache is allocated. #tokens: 192406, KV size: 12.59 GB",
        "Memory pool end. avail mem=8.73 GB",
    ):
        for rank in range(8):
            yield f"[2026-05-30 22:07:00 TP{rank}] {milestone}"
    yield "[2026-05-30 22:09:00] The server is fired up and ready to roll!"


def line(number: int, text: str) -> bytes:
    return (
        f"__CURSOR=s={number:032x};i={number:x};b={'b' * 32};m={number:x};t={number:x};x={number:016x}\n"
        f"__REALTIME_TIMESTAMP={1766000000000000 + number}\n__MONOTONIC_TIMESTAMP={number}\n_BOOT_ID={'b' * 32}\n_PID=4242\n_UID=996\n"
        f"SYSLOG_IDENTIFIER=python\n_SYSTEMD_INVOCATION_ID={'d' * 32}\n_SYSTEMD_UNIT=sglang-k26.service\nMESSAGE={text}\n\n"
    ).encode()


def measure(name: str, patterns: tuple[str, ...], count: int) -> None:
    noise = (patterns[n % len(patterns)].format(n=n, m=n // 60 % 60, s=n % 60) for n in range(count))
    lines = [line(n, text) for n, text in enumerate([*boot(), *noise])]
    blocks = [b"".join(lines[n : n + 150]) for n in range(0, len(lines), 150)]
    reader = JournalReader(Source(), stream=lambda _argv, _ended, _verbose: iter(blocks))
    folder = BootFolder()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    folder.feed_all(reader.read("d" * 32, None, lambda: folder.in_traceback))
    seconds = time.process_time() - begin
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    allocation = folder.result(Parallelism())
    assert allocation.complete
    assert allocation.min_tokens == 192406
    print(f"{name}: {len(lines)} records, {seconds:.2f} s of CPU, {len(lines) / seconds:,.0f} records/s, {grown:.1f} MiB more memory")


if __name__ == "__main__":
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    measure("a server that serves", SERVING, records)
    measure("text of others only", FOREIGN, records)
    measure("half and half", SERVING + FOREIGN, records)
