# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints, fault by fault, the seconds from the fatal line in the journal to the failed task of a playbook that waits for the start.

On a throw-away host, one start at a time, over SSH, as a user's playbook does it. Needs root, as the hosts do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.host import Host  # noqa: E402
from support.units import Start, run_starts, unit_host  # noqa: E402

BUDGET_S = 3.0
# fault -> what its fatal record says
FAULTS = {
    "bad_arguments": "error: unrecognized arguments",
    "missing_kernel": "Traceback",
    "unbalanced:1": "hit an exception",
    "rendezvous_timeout": "hit an exception",
    "nccl_timeout": "Watchdog caught",
    "missing_file": "hit an exception",
    "oom_weights:1": "hit an exception",
    "kill9:1": "died during initialization",
    "segfault:1": "died during initialization",
    "kill9:main": "Main process exited",
    "exit:7": "Main process exited",
    "not_enough_memory": "hit an exception",
    "oom_pool:1": "hit an exception",
    "silent_death": "Deactivated successfully",
    "oom_capture:1": "hit an exception",
    "crash_loop": "hit an exception",
    "port_in_use": "Errno 98",
    "oom_warmup:1": "hit an exception",
    "watchdog:1": "watchdog timeout",
}


def seconds_to_fail(host: Host, fault: str, words: str) -> float:
    """From the first record with these words to the moment Ansible had the task's result."""
    [(name, result)] = run_starts(host, {fault: Start(fault=fault)}).items()
    assert result["failed"], f"{name} did not fail: {result}"
    invocation = result["allocation"]["invocation_id"]
    query = f"journalctl --all -o json _SYSTEMD_INVOCATION_ID={invocation} + INVOCATION_ID={invocation}"
    entries = [json.loads(line) for line in host.shell(query).splitlines()]
    fatal = next(int(entry["__REALTIME_TIMESTAMP"]) for entry in entries if words in str(entry["MESSAGE"]))
    return (host.inventory.parent / "units/results/standin-0").stat().st_mtime - fatal / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as work, unit_host(Path(work), "infopq", "10.79.16", {Start().version}) as host:
        taken = {fault: seconds_to_fail(host, fault, words) for fault, words in FAULTS.items()}
    for fault, seconds in taken.items():
        print(f"{fault}: {seconds:.2f} s from the fatal line to the failed task (budget {BUDGET_S:g})")
    print(f"the slowest: {max(taken.values()):.2f} s")


if __name__ == "__main__":
    main()
