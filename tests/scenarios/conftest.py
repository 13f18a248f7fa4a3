# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A throw-away host with the stand-in engine in reach."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import ROOT, Host, environment
from support.kimi import VERSION, kimi_service

NAME = "loop"
NUMBERS = iter(range(100, 999))


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One Debian host with the stand-in's wheel and the configs of Kimi K2.6 and its draft; gone afterwards."""
    work = tmp_path_factory.mktemp("loop")
    wheels = work / "wheels"
    subprocess.run([sys.executable, ROOT / "tests/engine/standin/build_wheel.py", VERSION, wheels], check=True)
    for model in ("kimi-k2.6", "kimi-k2.6-dflash", "qwen3-32b"):
        (work / "models" / model).mkdir(parents=True)
        shutil.copy(ROOT / f"tests/unit/fixtures/configs/{model}.json", work / "models" / model / "config.json")
    (work / "models/empty").mkdir()
    variables = environment("infopl", "10.79.3")
    hosts = ROOT / "tests/hosts/hosts"
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        subprocess.run(
            [hosts, "up", NAME, "--group", "sglang", "--bind-ro", f"{wheels}:/srv/wheels", "--bind-ro", f"{work / 'models'}:/srv/models",
             "--tmpfs", "/srv/small:24M"],
            env=variables, check=True,
        )
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        yield Host(NAME, inventory, variables)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


@pytest.fixture
def service(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Variables of an instance of the test's own: the playbook's Kimi K2.6 on the card of the founding case."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    number = next(NUMBERS)
    return {**kimi_service(f"sglang-{number}-{name[:32]}", 30000 + number), "sglang_gate_settle_time": 1}
