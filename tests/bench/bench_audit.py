# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what an audit of 100 hosts costs, against one journalctl by ``ansible -m command`` on the same hosts.

The 100 are names of an inventory, each with an SSH connection of its own, over four throw-away hosts with a server each; the two in
turn, after a run of each that opens the connections. Another number of names is the argument. Needs root, as the hosts do.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.fleet import Fleet, kimi_fleet  # noqa: E402

RUNS, FORKS, HOSTS = 3, 20, 4
JOURNAL = "journalctl --no-pager _SYSTEMD_INVOCATION_ID={{ invocation }}"


def many(fleet: Fleet, names: int, path: Path) -> None:
    """An inventory of so many names over the hosts of the fleet."""
    known = yaml.safe_load((fleet.inventory / "hosts.yml").read_text(encoding="utf-8"))
    described: dict[str, Any] = {}
    for group in known.values():
        described.update(group.get("hosts") or {})
        for child in (group.get("children") or {}).values():
            described.update({name: {**described.get(name, {}), **(values or {})} for name, values in (child.get("hosts") or {}).items()})
    invocations = {host.name: host.invocation("sglang-fleet") for host in fleet.hosts}
    hosts = {}
    for number in range(names):
        name = fleet.hosts[number % len(fleet.hosts)].name
        hosts[f"gpu{number:03}"] = {**described[name], "invocation": invocations[name], "ansible_control_path": f"%(directory)s/{number}"}
    variables = {key: value for group in known.values() for key, value in (group.get("vars") or {}).items()}
    path.write_text(yaml.safe_dump({"sglang": {"hosts": hosts, "vars": variables}}), encoding="utf-8")


def seconds(argv: list[str], environment: dict[str, str]) -> float:
    began = time.monotonic()
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return time.monotonic() - began


def main() -> None:
    names = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with (
        tempfile.TemporaryDirectory() as work,
        kimi_fleet(Path(work), "bench", HOSTS, "infopv", "10.79.33", sglang_gate_settle_time=0) as fleet,
    ):
        deployed = fleet.play({"sglang_batches": ["100%"], "sglang_report_dir": ""})
        assert deployed.code == 0, deployed.text
        inventory = Path(work) / "many.yml"
        many(fleet, names, inventory)
        of_ssh = {"ANSIBLE_SSH_CONTROL_PATH_DIR": f"{work}/cp", "ANSIBLE_SSH_RETRIES": "5"}
        environment = {**fleet.environment, **of_ssh, "ANSIBLE_FORKS": str(FORKS)}
        audit = ["ansible-playbook", "-i", str(inventory), "inferops.sglang.audit", "-e", f"sglang_report_dir={work}/reports"]
        command = ["ansible", "sglang", "-i", str(inventory), "-b", "-m", "ansible.builtin.command", "-a", JOURNAL]
        pairs = [(seconds(audit, environment), seconds(command, environment)) for _number in range(RUNS + 1)][1:]
    ours, theirs = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
    print(f"audit of {names} hosts: {ours:.1f} s; one journalctl on each: {theirs:.1f} s ({FORKS} forks, {os.cpu_count()} cores)")
    print(f"ratio of the medians of {RUNS} runs: {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
