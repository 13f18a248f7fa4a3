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

NAME = "loop"
VERSION = "0.5.12.post1"
# The card of the case that started this project: 93.727 GiB before the weights, 21.329 GiB after them.
FREE_GIB, WEIGHTS_GIB = "93.7274", "72.398415"
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
    return {
        "sglang_instance": f"sglang-{number}-{name[:32]}",
        "sglang_port": 30000 + number,
        "sglang_wheelhouse": "/srv/wheels",
        "sglang_model": "/srv/models/kimi-k2.6",
        "sglang_draft_model": "/srv/models/kimi-k2.6-dflash",
        "sglang_gpu_free_gib": [float(FREE_GIB)],
        "sglang_weights_gib": float(WEIGHTS_GIB),
        "sglang_draft_weights_gib": 1.31,
        "sglang_gate_settle_time": 1,
        "sglang_environment": {"STANDIN_FREE_GIB": FREE_GIB, "STANDIN_WEIGHTS_GIB": WEIGHTS_GIB, "STANDIN_STEP_SECONDS": "0.02"},
    }
