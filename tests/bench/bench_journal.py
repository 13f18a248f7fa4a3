# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what it costs to read one start out of a journal of 1,000,000 entries, beside what C(journalctl) alone costs.

The journal is made once by systemd-journal-remote and kept under .cache/bench: a serving server's unit with 21 starts (60 % of the
entries) among 40 other units. All figures are medians of runs that take turns, so what else the machine does falls on all of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".cache" / "collections"))

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalReader, Source  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism  # noqa: E402
from ansible_collections.inferops.sglang.tests.unit.boots import JOURNAL_REMOTE, SECOND  # noqa: E402

ENTRIES, STARTS, BOOT_LINES, ROUNDS = 1_000_000, 20, 1500, 15
UNIT = "sglang-k26.service"
NEWEST, SERVED = f"{STARTS:032x}", f"{STARTS - 1:032x}"
DECODE = (
    "[2026-05-30 22:09:{s:02} TP0] Decode batch, #running-req: 1, #token: {n}, token usage: 0.00, accept len: 4.73, "
    "cuda graph: True, gen throughput (token/s): 104.81, #queue-req: 0"
)
FILLER = (
    "/opt/sglang/lib/python3.11/site-packages/torch/_inductor/compile_fx.py:236: UserWarning: number {n}",
    "2026-05-30 22:08:02,560 - INFO - flashinfer.jit: Loading JIT ops: batch_decode_{n}",
    "[2026-05-30 22:08:02 TP3] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at {n}",
    "\rLoading safetensors checkpoint shards: {s:3}% Completed | {s}/64 [00:10<00:20,  2.90it/s]",
)


def boot() -> list[tuple[str, int]]:
    """The lines of one start and their processes: the milestones of eight ranks, evenly among lines that tell nothing."""
    milestones = [(line.text, line.pid) for line in SECOND.lines()]
    every = BOOT_LINES // len(milestones)
    lines = []
    for number in range(BOOT_LINES):
        if number % every == 0 and milestones:
            lines.append(milestones.pop(0))
        else:
            lines.append((FILLER[number % len(FILLER)].format(n=number, s=number % 100), 200 + number % 8))
    return lines + milestones


def entries() -> Iterator[tuple[str, str, int, str]]:
    """Unit, invocation, process and text of all entries: 20 starts that served, and the newest one near the end."""
    start = boot()
    of_unit = ENTRIES * 6 // 10 // STARTS
    number = 0
    for invocation in range(STARTS + 1):
        mine = [*start] if invocation == STARTS else [*start, *((DECODE.format(n=n, s=n % 60), 200) for n in range(of_unit - len(start)))]
        for text, pid in mine:
            yield UNIT, f"{invocation:032x}", pid, text
            for _other in range((number * 2 // 3) - ((number - 1) * 2 // 3) if number else 0):
                other = number % 40
                yield f"other-{other}.service", f"{other + 1000:032x}", 3000 + other, f"request {number} of something else took 12 ms"
            number += 1


def exported() -> Iterator[bytes]:
    for number, (unit, invocation, pid, text) in enumerate(entries()):
        message = f"MESSAGE={text}\n".encode() if text[0] != "\r" else b"MESSAGE\n" + len(text).to_bytes(8, "little") + f"{text}\n".encode()
        yield (
            f"__REALTIME_TIMESTAMP={1780000000000000 + number * 1000}\n__MONOTONIC_TIMESTAMP={1000000 + number * 1000}\n"
            f"_BOOT_ID={'b' * 32}\n_MACHINE_ID={'c' * 32}\n_HOSTNAME=gpu01\n_TRANSPORT=stdout\nPRIORITY=6\nSYSLOG_FACILITY=3\n"
            f"_UID=996\n_GID=996\n_COMM=python3\n_EXE=/usr/bin/python3.11\n_CMDLINE=python3 -m {unit}\n_CAP_EFFECTIVE=0\n"
            f"_SYSTEMD_CGROUP=/system.slice/{unit}\n_SYSTEMD_SLICE=system.slice\n_STREAM_ID={invocation}\n_RUNTIME_SCOPE=system\n"
            f"SYSLOG_IDENTIFIER=python3\n_SYSTEMD_UNIT={unit}\n_SYSTEMD_INVOCATION_ID={invocation}\n_PID={pid}\n"
        ).encode() + message + b"\n"


def journal() -> Path:
    directory = ROOT / ".cache" / "bench" / f"journal-{ENTRIES}"
    if not directory.exists():
        print(f"making a journal of {ENTRIES:,} entries under {directory.parent}, once ...", flush=True)
        made = directory.with_suffix(".part")
        subprocess.run(["rm", "-rf", made], check=True)
        made.mkdir(parents=True)
        argv = [JOURNAL_REMOTE, "-o", made / "known.journal", "-"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as remote:
            assert remote.stdin is not None
            remote.stdin.writelines(exported())
            remote.stdin.close()
            assert remote.wait() == 0
        made.rename(directory)
    return directory


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def shell(command: str) -> Callable[[], object]:
    return lambda: subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL)


class Reading:
    """One start read by this collection, as the module does it."""

    def __init__(self, directory: Path, invocation: str) -> None:
        self.reader = JournalReader(Source(directory=str(directory)))
        self.folder = BootFolder()
        self.invocation = invocation

    def __call__(self) -> None:
        self.folder.feed_all(self.reader.read(self.invocation, UNIT, lambda: self.folder.in_traceback))
        allocation = self.folder.result(Parallelism(), invocation_id=self.invocation)
        assert allocation.complete
        assert allocation.ready
        assert allocation.min_tokens == SECOND.tokens


def read_anew(directory: Path, invocation: str) -> None:
    Reading(directory, invocation)()


def compare(rounds: int, **actions: Callable[[], object]) -> dict[str, float]:
    """Medians in seconds of actions that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _round in range(rounds):
        for name, action in actions.items():
            taken[name].append(seconds(action))
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> None:
    directory = journal()
    alone = f"exec journalctl --directory={directory} -o json _SYSTEMD_INVOCATION_ID="
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name, invocation, rounds in (("a start that served", SERVED, 5), ("the newest start", NEWEST, ROUNDS)):
        found = compare(rounds, ours=partial(read_anew, directory, invocation), alone=shell(alone + invocation))
        print(
            f"{name}: {found['ours'] * 1000:.0f} ms to its allocation, {found['alone'] * 1000:.0f} ms for journalctl alone with the same "
            f"match, {found['ours'] / found['alone']:.2f} x (budget 1.2)"
        )
    search = shell(f"journalctl --directory={directory} -u {UNIT} --no-pager | grep -E 'KV Cache|Memory pool end|fired up'")
    found = compare(3, ours=partial(read_anew, directory, NEWEST), grep=search)
    print(f"-u {UNIT} | grep: {found['grep']:.2f} s, {found['grep'] / found['ours']:.0f} x the newest start (budget: at least 20)")
    reader = JournalReader(Source(directory=str(directory)))
    found = compare(ROUNDS, unit=lambda: reader.newest_invocation(UNIT), any_server=reader.newest_boot)
    print(f"which start is the newest: {found['unit'] * 1000:.0f} ms of this unit, {found['any_server'] * 1000:.0f} ms of any server")
    waiting = Reading(directory, NEWEST)
    waiting()
    found = compare(ROUNDS, poll=waiting, nothing=shell(f"exec journalctl --directory={directory} -n0"))
    print(f"a look that finds nothing new: {found['poll'] * 1000:.0f} ms, {found['nothing'] * 1000:.0f} ms of them to start journalctl")


if __name__ == "__main__":
    main()
