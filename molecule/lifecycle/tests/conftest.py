# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the steps of a service's life have in common to look at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Service:
    """A service of the role on a host, seen from outside."""

    host: Any
    name: str

    def receipt(self) -> dict[str, Any]:
        return json.loads(self.host.file(f"/var/lib/sglang/{self.name}/receipt.json").content_string)

    def command_line(self) -> list[str]:
        """Of the process that runs."""
        pid = self.host.check_output(f"systemctl show -P MainPID {self.name}.service")
        return self.host.check_output(f"tr '\\0' '\\n' </proc/{pid}/cmdline").splitlines()

    def starts(self) -> int:
        return int(self.host.check_output(f"journalctl --all -o cat -u {self.name}.service | grep -c server_args="))

    def is_proved(self, tokens: int) -> None:
        """It runs, holds the tokens on every rank, and what runs is what was accepted."""
        properties = self.host.service(f"{self.name}.service").systemd_properties
        assert (properties["ActiveState"], properties["UnitFileState"], properties["NRestarts"]) == ("active", "enabled", "0")
        receipt = self.receipt()
        assert receipt["tokens_per_rank"] == {f"TP{rank}": tokens for rank in range(8)}
        assert receipt["invocation_id"] == properties["InvocationID"]
        assert self.command_line()[0] == f"{receipt['release']}/bin/python"
        assert self.host.file(f"/opt/sglang/current/{self.name}").linked_to == receipt["release"]


@pytest.fixture
def service(host):
    return Service(host, "sglang-k26-ddtree")


@pytest.fixture
def second(host):
    return Service(host, "sglang-second")
