# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the CPU time of one plan, from reading the configurations to the result."""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / ".cache" / "collections"
sys.path.insert(0, str(TREE))

from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, request_of  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._plan import make_plan  # noqa: E402

CONFIGS = ROOT / "tests/unit/fixtures/configs"
STARTS = [
    {"min_tokens": tokens, "available_gpu_mem_gib": free, "server_args": {"mem_fraction_static": fraction}}
    for fraction, tokens, free in ((0.85, 101134, 10.37), (0.92, 192406, 6.23))
]
KIMI = {
    "model": str(CONFIGS / "kimi-k2.6.json"),
    "draft_model": str(CONFIGS / "kimi-k2.6-dflash.json"),
    "sglang_version": "0.5.12.post1",
    "speculative_algorithm": "DFLASH",
    "tp_size": 8,
    "context_length": 200000,
}
CASES = {
    "two observed starts": {**KIMI, "observed": STARTS},
    "estimate, tight": {**KIMI, "context_length": 262144, "gpu_free_gib": [94.0], "weights_gib": 72.3, "draft_weights_gib": 1.312},
}
ROUNDS = 200


def cpu_ms(arguments: dict[str, object]) -> float:
    """Milliseconds of CPU for reading the configurations and planning."""
    params = {name: spec.get("default") for name, spec in PLAN_OPTIONS.items()}
    params.update(arguments)
    start = time.process_time()
    for _round in range(ROUNDS):
        make_plan(request_of(params)).as_dict()
    return (time.process_time() - start) * 1000 / ROUNDS


def main() -> None:
    for name, arguments in CASES.items():
        print(f"{name}: {cpu_ms(arguments):.2f} ms CPU a plan (budget 50)")


if __name__ == "__main__":
    main()
