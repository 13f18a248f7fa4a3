# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A throw-away host with the stand-in engine in reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import Host
from support.kimi import kimi_host, kimi_service

NUMBERS = iter(range(100, 999))


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The host that the scenarios of the loop and of the gate share; one for each process that runs them."""
    prefix, network = {"gw1": ("infopk", "10.79.18")}.get(os.environ.get("PYTEST_XDIST_WORKER", ""), ("infopl", "10.79.3"))
    with kimi_host(tmp_path_factory.mktemp("loop"), "loop", prefix, network, "--tmpfs", "/srv/small:24M") as booted:
        yield booted


@pytest.fixture
def service(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Variables of an instance of the test's own: the playbook's Kimi K2.6 on the card of the founding case."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    number = next(NUMBERS)
    return {**kimi_service(f"sglang-{number}-{name[:32]}", 30000 + number), "sglang_gate_settle_time": 1}
