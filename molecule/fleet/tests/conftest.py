# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both rollouts of the scenario have in common to look at."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

UNIT = "sglang-k26-ddtree"


@dataclass
class Service:
    """The service on one host, seen from outside."""

    host: Any

    def receipt(self) -> dict[str, Any]:
        return json.loads(self.host.file(f"/var/lib/sglang/{UNIT}/receipt.json").content_string)

    def starts(self) -> int:
        return int(self.host.check_output(f"journalctl --all -o cat -u {UNIT}.service | grep -c server_args="))

    def is_proved(self) -> None:
        """It runs, was not restarted by systemd, and its receipt is of this start and of 200,099 tokens on each rank."""
        properties = self.host.service(f"{UNIT}.service").systemd_properties
        assert (properties["ActiveState"], properties["UnitFileState"], properties["NRestarts"]) == ("active", "enabled", "0")
        receipt = self.receipt()
        # 0.9259 at 77,184 bytes a token on 93.7274 GiB: what SGLang's own sizing code gives
        assert receipt["mem_fraction_static"] == 0.9259
        assert receipt["tokens_per_rank"] == {f"TP{rank}": 200099 for rank in range(8)}
        assert receipt["invocation_id"] == properties["InvocationID"]


@pytest.fixture
def service(host):
    return Service(host)


@pytest.fixture
def name(host):
    return host.backend.get_hostname()


@pytest.fixture
def report():
    """The newest one."""
    return json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "reports/latest/report.json").read_text(encoding="utf-8"))
