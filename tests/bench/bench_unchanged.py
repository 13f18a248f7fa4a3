# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what a run of the role costs on a host where nothing is to be done, against a play of 30 tasks that do nothing.

On a throw-away host, over SSH, the two in turn. Needs root, as the hosts do.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.host import Host  # noqa: E402
from support.kimi import kimi_host, kimi_service  # noqa: E402

RUNS, TASKS, BUDGET_S = 5, 30, 10.0
IDLE = """\
- hosts: sglang
  gather_facts: false
  tasks:
    - ansible.builtin.ping:
""" + "    - ansible.builtin.ping:\n" * (TASKS - 1)


def seconds(host: Host, values: dict[str, Any], playbook: str) -> tuple[float, int]:
    """Wall time of one run, and the tasks that ran."""
    began = time.monotonic()
    run = host.play(values, playbook=playbook)
    assert (run.code, run.changed) == (0, 0), run.text
    return time.monotonic() - began, run.tasks()


def main() -> None:
    with tempfile.TemporaryDirectory() as work, kimi_host(Path(work), "bench", "infopn", "10.79.17") as host:
        values = {**kimi_service("sglang-bench", 30000), "sglang_gate_settle_time": 1}
        first = host.play(values)
        assert first.code == 0, first.text
        idle = Path(work) / "idle.yml"
        idle.write_text(IDLE, encoding="utf-8")
        pairs = [(seconds(host, values, "inferops.sglang.deploy_k26"), seconds(host, {}, str(idle))) for number in range(RUNS)]
    role = statistics.median(pair[0][0] for pair in pairs)
    tasks = statistics.median(pair[1][0] for pair in pairs)
    print(f"unchanged host: {role:.1f} s (budget {BUDGET_S:g}), {pairs[0][0][1]} tasks; {TASKS} tasks that do nothing: {tasks:.1f} s")
    print(f"ratio of the medians of {RUNS} runs: {role / tasks:.2f}")


if __name__ == "__main__":
    main()
