# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every Molecule scenario, whole: create, converge, idempotence, testinfra, destroy."""

from __future__ import annotations

import re
import subprocess

import pytest
from support.host import ROOT

# scenario -> testinfra tests that must have run on its hosts: a verifier that finds none passes in silence
SCENARIOS = {"default": 10, "engine": 12, "fleet": 28, "lifecycle": 28}


def test_every_scenario_is_listed() -> None:
    assert sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")) == sorted(SCENARIOS)


@pytest.mark.parametrize("scenario", [pytest.param(name, marks=[pytest.mark.alone] if name == "engine" else []) for name in SCENARIOS])
def test_scenario(scenario: str) -> None:
    done = subprocess.run(["molecule", "test", "-s", scenario], cwd=ROOT, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-8000:]
    assert sum(int(number) for number in re.findall(r"(\d+) passed", text)) >= SCENARIOS[scenario], text[-4000:]
