# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A throw-away host, seen by its user through Ansible and by a test through a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Run:
    """What one ansible-playbook printed; the exit code is that of the command."""

    code: int
    text: str

    @property
    def changed(self) -> int:
        return int(re.findall(r"changed=(\d+)", self.text)[-1])

    def tasks(self) -> int:
        return len(re.findall(r"^(?:ok|changed): ", self.text, re.M))


@dataclass
class Host:
    """The host, seen by its user through Ansible and by the test through a shell."""

    name: str
    inventory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def shell(self, script: str, check: bool = True) -> str:
        done = subprocess.run(
            [ROOT / "tests/hosts/hosts", "exec", self.name, "sh", "-c", script],
            env=self.environment, capture_output=True, text=True, check=False,
        )
        if check:
            assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def wait_for(self, script: str, seconds: float = 90) -> None:
        """Returns when the script prints something; an error says what was not seen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.shell(script, check=False):
                return
            time.sleep(0.2)
        raise AssertionError(f"not seen in {seconds} s: {script}")

    def command(self, values: dict[str, Any], *options: str, playbook: str = "inferops.sglang.deploy_k26") -> list[str]:
        given = {"sglang_report_dir": str(self.inventory.parent / "reports"), **values}
        return ["ansible-playbook", "-i", str(self.inventory), playbook, "-e", json.dumps(given), *options]

    def play(self, values: dict[str, Any], *options: str, playbook: str = "inferops.sglang.deploy_k26") -> Run:
        done = subprocess.run(
            self.command(values, *options, playbook=playbook),
            env=self.environment, capture_output=True, text=True, check=False,
        )
        return Run(done.returncode, done.stdout + done.stderr)

    def read(self, path: str) -> str:
        return self.shell(f"cat {path}")

    def receipt(self, instance: str) -> dict[str, Any]:
        return json.loads(self.read(f"/var/lib/sglang/{instance}/receipt.json"))

    def invocation(self, instance: str) -> str:
        return self.shell(f"systemctl show -P InvocationID {instance}.service")

    def starts(self, instance: str) -> int:
        """How often the service was started, from the journal: one server_args record a start."""
        return int(self.shell(f"journalctl --all -o cat -u {instance}.service | grep -c 'server_args=' || true"))

    def state(self) -> str:
        """All that the role could change on the host, as one text."""
        return self.shell(
            "find /etc /opt /var/lib/sglang /var/cache/sglang -xdev -not -name .pwd.lock -printf '%p %s %T@ %m %l\\n' 2>/dev/null | sort;"
            "systemctl list-units --all --plain --no-legend 'sglang*' | awk '{print $1, $3, $4}'; getent passwd sglang;"
            "getent group sglang",
            check=False,
        )


def environment(prefix: str, network: str) -> dict[str, str]:
    return {
        **os.environ,
        # Ansible stands beside the interpreter
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_INJECT_FACT_VARS": "false",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml",
        "ANSIBLE_RETRY_FILES_ENABLED": "false",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "INFEROPS_HOSTS_PREFIX": prefix,
        "INFEROPS_HOSTS_NET": network,
        "INFEROPS_HOSTS_STATE": f"/var/lib/inferops-hosts-{prefix}",
    }
