# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts of the stand-in engine as plain units of one throw-away host, all watched by one playbook.

Each start has an inventory host of its own, all of them names of the same host, so that Ansible's forks run them side by side.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.host import ROOT, Host, environment

MODELS = ("kimi-k2.6", "kimi-k2.6-dflash")
# The card of every start: 80 GiB free before the weights, 20 GiB after them.
CARD = {"STANDIN_FREE_GIB": "80", "STANDIN_WEIGHTS_GIB": "60", "STANDIN_DRAFT_WEIGHTS_GIB": "1.2", "STANDIN_GRAPH_GIB": "0.6"}
FLAGS = "--model-path /srv/models/kimi-k2.6 --tp-size 2 --context-length 65536 --max-running-requests 8 --cuda-graph-max-bs 8"
DRAFT = " --speculative-draft-model-path /srv/models/kimi-k2.6-dflash --speculative-algorithm DFLASH"
UNIT = """\
[Unit]
Description={name}
StartLimitBurst={burst}
StartLimitIntervalSec=60
[Service]
ExecStart={command}
Restart={restart}
RestartSec=100ms
TimeoutStopSec=5
LogRateLimitIntervalSec=0
{extra}
"""
CLIENT = """\
import json, sys, urllib.request
body = json.dumps({"text": "a few words", "sampling_params": {"max_new_tokens": 2}}).encode()
urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/generate", body, timeout=20)
"""
# What systemd-oomd does to a unit whose memory is short: it leaves a mark for the service manager and kills.
OOMD = """\
import os, sys, time
time.sleep(float(sys.argv[2]))
group = f"/sys/fs/cgroup/system.slice/{sys.argv[1]}"
os.setxattr(group, "user.oomd_ooms", b"1")
os.setxattr(group, "user.oomd_kill", b"3")
open(f"{group}/cgroup.kill", "w").write("1")
"""


@dataclass(frozen=True)
class Start:
    """One start of the stand-in; ``fraction`` is its C(--mem-fraction-static), ``draft``: with a DFlash draft model.

    ``watch``: options of C(allocation_info). ``probe``: once it is ready a client sends a request, and then it is looked at again.
    ``command`` takes the place of the stand-in's. ``extra``: lines of the unit's C([Service]) section.
    """

    fault: str = "none"
    version: str = "0.5.12.post1"
    fraction: float = 0.85
    draft: bool = True
    watch: Mapping[str, Any] = field(default_factory=dict)
    probe: bool = False
    restart: str = "no"
    burst: int = 5
    command: str = ""
    extra: str = ""


def unit_of(name: str, number: int, start: Start) -> str:
    variables = {**CARD, "STANDIN_STEP_SECONDS": "0.05", "STANDIN_FAULT": start.fault, "PYTHONPATH": f"/srv/site/{start.version}"}
    flags = FLAGS + (DRAFT if start.draft else "")
    server = f"/usr/bin/python3 -m sglang.launch_server {flags} --port {31000 + number} --mem-fraction-static {start.fraction}"
    lines = [f"Environment={key}={value}" for key, value in variables.items()]
    return UNIT.format(
        name=name, command=start.command or server, restart=start.restart, burst=start.burst, extra="\n".join([*lines, start.extra])
    )


@contextmanager
def unit_host(work: Path, prefix: str, network: str, versions: set[str]) -> Iterator[Host]:
    """A throw-away host with the stand-in of these versions and two models; gone afterwards."""
    for version in versions:
        built = subprocess.run(
            [sys.executable, ROOT / "tests/engine/standin/build_wheel.py", version, work / "wheels"],
            check=True, capture_output=True, text=True,
        )
        with zipfile.ZipFile(built.stdout.strip()) as wheel:
            wheel.extractall(work / "site" / version)
    for model in MODELS:
        (work / "models" / model).mkdir(parents=True)
        shutil.copy(ROOT / f"tests/unit/fixtures/configs/{model}.json", work / "models" / model / "config.json")
    variables = environment(prefix, network)
    hosts = ROOT / "tests/hosts/hosts"
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        binds = [option for place in ("site", "models") for option in ("--bind-ro", f"{work / place}:/srv/{place}")]
        subprocess.run([hosts, "up", "units", "--group", "sglang", *binds], env=variables, check=True)
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        yield Host("units", inventory, variables)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


def run_starts(host: Host, starts: Mapping[str, Start], forks: int = 8) -> dict[str, dict[str, Any]]:
    """Runs every start and returns what allocation_info said of it, by name; C(failed) tells whether the task failed."""
    work = host.inventory.parent / "units"
    work.mkdir(exist_ok=True)
    names = {name: f"standin-{number}" for number, name in enumerate(starts)}
    _install(host, {names[name]: unit_of(name, number, start) for number, (name, start) in enumerate(starts.items())})
    inventory = work / "inventory.yml"
    inventory.write_text(yaml.safe_dump(_aliases(host, starts, names)), encoding="utf-8")
    playbook = work / "watch.yml"
    playbook.write_text(yaml.safe_dump(_play()), encoding="utf-8")
    results = work / "results"
    shutil.rmtree(results, ignore_errors=True)
    variables = {**host.environment, "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.tree", "ANSIBLE_CALLBACK_TREE_DIR": str(results)}
    done = subprocess.run(
        ["ansible-playbook", "-i", inventory, "--forks", str(forks), playbook], env=variables, capture_output=True, text=True, check=False
    )
    (work / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    said = {name: json.loads((results / unit).read_text(encoding="utf-8")) for name, unit in names.items()}
    # the callback leaves out which of the results are failures
    return {name: {**result, "failed": f"fatal: [{names[name]}]: FAILED!" in done.stdout} for name, result in said.items()}


def _install(host: Host, units: Mapping[str, str]) -> None:
    files = "\n".join(f"cat > /etc/systemd/system/{name}.service <<'UNIT'\n{text}UNIT" for name, text in units.items())
    scripts = "\n".join(f"cat > /root/{name}.py <<'SCRIPT'\n{text}SCRIPT" for name, text in (("ask", CLIENT), ("oomd", OOMD)))
    host.shell(f"{files}\n{scripts}\nsystemctl daemon-reload")


def _aliases(host: Host, starts: Mapping[str, Start], names: Mapping[str, str]) -> dict[str, Any]:
    group = yaml.safe_load(host.inventory.read_text(encoding="utf-8"))
    reach = _host_variables(group, host.name)
    hosts = {
        names[name]: {
            **reach,
            "watch": {"unit": f"{names[name]}.service", "wait_for": "ready", "wait_timeout": 60, **start.watch},
            "probe": start.probe,
            "port": 31000 + number,
        }
        for number, (name, start) in enumerate(starts.items())
    }
    return {"all": {"hosts": hosts}}


def _host_variables(tree: Any, name: str) -> dict[str, Any]:
    """The variables of a host, wherever in the inventory it is, with those of all hosts."""
    common = tree.get("all", {}).get("vars", {})
    stack = [tree]
    while stack:
        node = stack.pop()
        for key, value in node.items() if isinstance(node, dict) else ():
            if key == "hosts" and isinstance(value, dict) and value.get(name):
                return {**common, **value[name]}
            stack.append(value)
    raise AssertionError(f"{name} is not in the inventory")


def _play() -> list[dict[str, Any]]:
    watch = {"name": "Watch", "inferops.sglang.allocation_info": "{{ watch }}"}
    tasks = [
        {"name": "Start", "ansible.builtin.raw": "systemctl start --no-block {{ watch.unit }}"},
        watch,
        {"name": "Ask", "ansible.builtin.raw": "/usr/bin/python3 /root/ask.py {{ port }} || true", "when": "probe"},
        {**watch, "name": "Watch again", "when": "probe"},
    ]
    return [{"name": "Starts", "hosts": "all", "gather_facts": False, "strategy": "ansible.builtin.free", "tasks": tasks}]
