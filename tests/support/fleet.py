# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of throw-away hosts with the stand-in engine: rolled out to by Ansible, looked at by a shell on each of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.host import ROOT, Host, Run, environment
from support.kimi import kimi_service, kimi_shelves

INSTANCE, PORT = "sglang-fleet", 30000
CALLBACKS = ROOT / "tests/support/callbacks"

# What runs on a host, asked of the host alone: state and start of the service, the process's own command line, and what its ranks logged.
_LOOK = """\
unit={instance}.service
systemctl show -P ActiveState "$unit"
start=$(systemctl show -P InvocationID "$unit"); echo "$start"
pid=$(systemctl show -P MainPID "$unit")
[ "$pid" = 0 ] && echo || tr '\\0' ' ' </proc/"$pid"/cmdline; echo
[ -z "$start" ] || journalctl --all -o cat _SYSTEMD_INVOCATION_ID="$start" + INVOCATION_ID="$start" | grep -o '#tokens: [0-9]*' || true
"""
_NO_SSH = "systemctl stop ssh.socket ssh.service 2>/dev/null; pkill -KILL sshd; true"


@dataclass(frozen=True)
class Serving:
    """What runs on one host. ``min_tokens``: of the smallest pool that a rank of this start logged; 0 where there is none."""

    active: str
    invocation: str
    fraction: float
    max_running_requests: int
    min_tokens: int


@dataclass
class FleetRun(Run):
    """What one ansible-playbook did to each host."""

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """Host -> its figures (ok, changed, unreachable, failed, ...)."""
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", self.text, re.M)
        return {host: {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", figures)} for host, figures in rows}

    def changes(self) -> dict[str, int]:
        return {host: figures["changed"] for host, figures in self.recap.items()}


@dataclass
class Fleet:
    """Hosts of one inventory; what is asked of all stands in its group_vars, what is asked of one in its host_vars."""

    hosts: list[Host]
    inventory: Path

    @property
    def environment(self) -> dict[str, str]:
        return self.hosts[0].environment

    @property
    def reports(self) -> Path:
        return self.inventory.parent / "reports"

    def __getitem__(self, number: int) -> Host:
        return self.hosts[number]

    # what is asked

    def ask(self, *numbers: int, **values: Any) -> None:
        """Variables of these hosts alone, in place of those they had; of none: of all. A value replaces the one of the fleet."""
        for name in [self.hosts[number].name for number in numbers] or [host.name for host in self.hosts]:
            (self.inventory / "host_vars" / f"{name}.json").write_text(json.dumps(values), encoding="utf-8")

    def faulty(self, number: int, more: dict[str, Any] | None = None, **environment: str) -> None:
        """More variables of the server's environment on this host alone; ``more``: of the role's."""
        service = kimi_service(INSTANCE, PORT, **environment)
        self.ask(number, sglang_environment=service["sglang_environment"], **more or {})

    def play(
        self, values: dict[str, Any] | None = None, *options: str, playbook: str = "inferops.sglang.deploy_k26",
        at: dict[str, Any] | None = None,
    ) -> FleetRun:
        """Runs a playbook; ``at``: what happens right before one of its tasks (callbacks/at_task.py)."""
        happens = {"ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS), "INFEROPS_AT_TASK": json.dumps(at)} if at else {}
        with subprocess.Popen(
            self.hosts[0].command(values or {}, *options, playbook=playbook), env={**self.environment, **happens},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        ) as play:
            try:
                text, _errors = play.communicate()
            finally:
                if play.poll() is None:
                    os.killpg(play.pid, signal.SIGKILL)
        return FleetRun(play.returncode, text)

    # what happens

    def losing(self, number: int) -> str:
        """A command of this machine after which no connection to the host lives or begins; ``find`` ends that."""
        return f"{ROOT}/tests/hosts/hosts exec {self.hosts[number].name} sh -c '{_NO_SSH}'"

    def lose(self, number: int) -> None:
        """The same, now."""
        self.hosts[number].shell(_NO_SSH)

    def find(self, number: int) -> None:
        self.hosts[number].shell("systemctl start ssh.service")

    # what there is

    def serving(self) -> list[Serving]:
        """What runs on each host, in the order of the hosts."""
        return [_serving(text) for text in self.shell(_LOOK.format(instance=INSTANCE))]

    def starts(self) -> list[int]:
        """How often each host has ever started the service."""
        return [int(text) for text in self.shell(f"journalctl --all -o cat -u {INSTANCE}.service | grep -c 'server_args=' || true")]

    def shell(self, script: str) -> list[str]:
        """What the script prints on each host, all at a time."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            return list(pool.map(lambda host: host.shell(script), self.hosts))

    def report(self) -> dict[str, Any]:
        """The newest report."""
        return json.loads((self.reports / "latest/report.json").read_text(encoding="utf-8"))

    def states(self) -> list[str]:
        """What the newest report says of each host, in the order of the hosts."""
        said = {host["host"]: host["state"] for host in self.report()["hosts"]}
        return [said[host.name] for host in self.hosts]


def _serving(text: str) -> Serving:
    active, invocation, command, *pools = [*text.split("\n"), "", ""]
    flags = dict(re.findall(r"--(mem-fraction-static|max-running-requests)[ =](\S+)", command))
    return Serving(
        active=active,
        invocation=invocation,
        fraction=float(flags.get("mem-fraction-static", 0)),
        max_running_requests=int(flags.get("max-running-requests", 0)),
        min_tokens=min((int(line.rpartition(" ")[2]) for line in pools if line), default=0),
    )


def _environment_of_all(work: Path) -> tuple[list[str], dict[str, Any]]:
    """One environment with the stand-in, bound into every host: options of ``hosts up``, and variables of the role."""
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", work / "engine"], check=True)
    packages = next((work / "engine").glob("lib/python3*/site-packages"))
    with zipfile.ZipFile(next((work / "wheels").glob("sglang-*.whl"))) as wheel:
        wheel.extractall(packages)
    return ["--bind-ro", f"{work}/engine:/opt/engine"], {
        "sglang_install_method": "existing", "sglang_existing_environment": "/opt/engine", "sglang_wheelhouse": ""}


@contextmanager
def kimi_fleet(
    work: Path, name: str, count: int, prefix: str, network: str, *, installed: bool = False, **values: Any,
) -> Iterator[Fleet]:
    """So many hosts, NAME-1 and on, with the stand-in's Kimi K2.6 asked of each; gone afterwards. ``values``: more for all of them.

    ``installed``: in an environment that is there already; else each host installs it.
    """
    names = [f"{name}-{number}" for number in range(1, count + 1)]
    shelves = kimi_shelves(work)
    if installed:
        options, found = _environment_of_all(work)
        shelves, values = shelves + options, {**found, **values}
    variables = environment(prefix, network)
    hosts, inventory = ROOT / "tests/hosts/hosts", work / "inventory"
    for folder in ("group_vars", "host_vars"):
        (inventory / folder).mkdir(parents=True)
    (inventory / "group_vars/sglang.json").write_text(json.dumps({**kimi_service(INSTANCE, PORT), **values}), encoding="utf-8")
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        subprocess.run([hosts, "up", *names, *shelves], env=variables, check=True)
        subprocess.run([hosts, "inventory", "--output", inventory / "hosts.yml"], env=variables, check=True)
        yield Fleet([Host(host, inventory, variables) for host in names], inventory)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)
