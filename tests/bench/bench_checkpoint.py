# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints time and memory of a plan, of C(checkpoint_info) and of their steps on a checkpoint of 64 shards and 100,000 tensors.

Its files are headers in front of holes. Reading the bytes of the index and headers, and parsing them as JSON, is timed in the
same run: nothing that reads them can take less. Each step runs in a process of its own, so that the memory is its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".cache" / "collections"))
sys.path.insert(0, str(ROOT / "tests"))

from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import read_checkpoint  # noqa: E402
from ansible_collections.inferops.sglang.plugins.modules import checkpoint_info, memory_plan  # noqa: E402
from support.checkpoints import CONFIGS, public_model, write_checkpoint  # noqa: E402

SHARDS, TENSORS = 64, 100_000
SECONDS, MEBIBYTES = 2, 200


def checkpoint(directory: Path) -> Path:
    """Kimi K2.6 with as many layers as make 100,000 tensors."""
    tensors = dict(list(public_model("kimi-k2.6").items())[:TENSORS])
    return write_checkpoint(directory, tensors, SHARDS, CONFIGS["kimi-k2.6"])


def floor(path: Path) -> None:
    """What cannot be less: the bytes of index and headers, parsed."""
    json.loads((path / "model.safetensors.index.json").read_bytes())
    for shard in sorted(path.glob("*.safetensors")):
        with shard.open("rb") as stream:
            json.loads(stream.read(int.from_bytes(stream.read(8), "little")))


def described(path: Path) -> None:
    params = {name: spec.get("default") for name, spec in checkpoint_info.ARGUMENT_SPEC.items()}
    checkpoint_info.describe({**params, "path": str(path), "tp_size": 8})


def planned(path: Path) -> None:
    params = {name: spec.get("default") for name, spec in memory_plan.PLAN_OPTIONS.items()}
    arguments = {"model": str(path), "sglang_version": "0.5.23", "tp_size": 8, "context_length": 200_000, "gpu_free_gib": [94.0]}
    memory_plan.make_plan(memory_plan.request_of({**params, **arguments})).as_dict()


STEPS: dict[str, Callable[[Path], object]] = {
    "reading and parsing alone": floor,
    "read_checkpoint": lambda path: read_checkpoint(str(path)),
    "checkpoint_info": described,
    "memory_plan": planned,
}


def peak_mib() -> float:
    """Resident memory at its highest; not getrusage's, which a child takes over from its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def one_step(name: str, path: Path) -> None:
    """Run in a process of its own: seconds of the clock and of the CPU, and MiB at most resident."""
    begin, cpu = time.perf_counter(), time.process_time()
    STEPS[name](path)
    print(f"{time.perf_counter() - begin} {time.process_time() - cpu} {peak_mib()}")


def main() -> None:
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; {SHARDS} shards, {TENSORS:,} tensors")
    with tempfile.TemporaryDirectory() as directory:
        path = checkpoint(Path(directory) / "m")
        least = 0.0
        for name in STEPS:
            done = subprocess.run([sys.executable, __file__, name, str(path)], check=True, capture_output=True, text=True)
            seconds, cpu, mebibytes = map(float, done.stdout.split())
            least = least or cpu
            print(
                f"{name}: {seconds:.2f} s (budget {SECONDS}), {cpu:.2f} s of CPU ({cpu / least:.1f} x reading alone), "
                f"{mebibytes:.0f} MiB resident at most (budget {MEBIBYTES})"
            )


if __name__ == "__main__":
    one_step(sys.argv[1], Path(sys.argv[2])) if len(sys.argv) > 2 else main()
