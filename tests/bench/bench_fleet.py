# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what a fleet costs its controller: the plan of all hosts, and a rollout that finds nothing to do.

The hosts of the inventory are names: each leads over SSH to one of four throw-away hosts that serve. What the modules do there runs on the
same cores, so a wall time is more than a controller of its own would take; its own CPU time and memory are what they are. Needs root.

    python tests/bench/bench_fleet.py [--plan-only] [HOSTS ...]      (100)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.fleet import Fleet, kimi_fleet  # noqa: E402

FORKS, MACHINES = 20, 4
PLAN = """\
- hosts: sglang
  gather_facts: false
  vars_files: ["{root}/playbooks/vars/k26.yml"]
  tasks:
    - ansible.builtin.include_role:
        name: inferops.sglang.sglang
        tasks_from: plan
"""
MODULE = "- hosts: sglang\n  gather_facts: false\n  tasks:\n    - ansible.builtin.command: journalctl -n 1\n      changed_when: false\n"


@dataclass
class Cost:
    """Of one ansible-playbook with its forks and SSH clients: seconds, CPU seconds, MiB at their highest, tasks by host."""

    wall: float
    cpu: float
    memory: float
    tasks: float


class Memory(threading.Thread):
    """The highest proportional set size that a process and those below it had, MiB, looked at once a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak, self._pid, self._over = 0.0, pid, threading.Event()

    def run(self) -> None:
        while not self._over.wait(1):
            self.peak = max(self.peak, sum(map(_pss, _session(self._pid))) / 1024)

    def end(self) -> float:
        self._over.set()
        self.join()
        return self.peak


def _session(leader: int) -> list[str]:
    """Processes of a session; SSH's kept connections have left it."""
    found = []
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                found.append(entry.name)
        except ProcessLookupError:
            continue
    return found


def _pss(pid: str) -> int:
    try:
        return int(re.findall(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii"), re.M)[0])
    except (OSError, IndexError):
        return 0


def cost(fleet: Fleet, inventory: Path, playbook: str) -> Cost:
    argv = ["ansible-playbook", "-i", str(inventory), "--forks", str(FORKS), playbook, "-e", json.dumps({"sglang_report_dir": ""})]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(
        argv, env=fleet.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as play:
        memory = Memory(play.pid)
        memory.start()
        text, _errors = play.communicate()
        peak = memory.end()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert play.returncode == 0, text[-3000:]
    assert not re.search(r"changed=[1-9]", text), text[-3000:]
    hosts = len(re.findall(r"^\S+ +: ok=", text, re.M))
    ran = sum(int(number) for number in re.findall(r"^\S+ +: ok=(\d+)", text, re.M))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.monotonic() - began, cpu, peak, ran / hosts)


def names(fleet: Fleet, count: int) -> Path:
    """An inventory of so many names over the hosts there are."""
    inventory = fleet.inventory.parent / f"names-{count}"
    inventory.mkdir()
    (inventory / "group_vars").symlink_to(fleet.inventory / "group_vars")
    real = yaml.safe_load((fleet.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]
    addresses = [entry["ansible_host"] for entry in real["hosts"].values()]
    hosts = {f"gpu{number:04}": {"ansible_host": addresses[number % len(addresses)]} for number in range(count)}
    (inventory / "hosts.json").write_text(
        json.dumps({"all": {"vars": real["vars"], "children": {"sglang": {"hosts": hosts}}}}), encoding="utf-8")
    return inventory


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("hosts", nargs="*", type=int, default=[100])
    arguments.add_argument("--plan-only", action="store_true")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as work, kimi_fleet(Path(work), "names", MACHINES, "infopn", "10.79.17") as fleet:
        first = fleet.play({"sglang_batches": ["100%"]})
        assert first.code == 0, first.text
        playbooks = {"one command on each host": Path(work) / "module.yml", "plan of each host": Path(work) / "plan.yml"}
        playbooks["one command on each host"].write_text(MODULE, encoding="utf-8")
        playbooks["plan of each host"].write_text(PLAN.format(root=ROOT), encoding="utf-8")
        rows = {name: str(path) for name, path in playbooks.items()}
        if not asked.plan_only:
            rows["rollout, nothing to do"] = "inferops.sglang.deploy_k26"
        print(f"{os.cpu_count()} cores, {FORKS} forks; the modules run on the same cores")
        for count in asked.hosts:
            inventory = names(fleet, count)
            for name, playbook in rows.items():
                one = cost(fleet, inventory, playbook)
                print(f"{count} hosts, {name}: {one.wall:.0f} s, {one.cpu:.0f} s of CPU on the controller ({one.cpu / count:.2f} a host, "
                      f"{one.tasks:.0f} tasks), {one.memory:.0f} MiB at most", flush=True)


if __name__ == "__main__":
    main()
