# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The case that started this project, as the stand-in engine plays it on a throw-away host."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.host import ROOT, Host, environment

VERSION = "0.5.12.post1"
# The card of that case: 93.727 GiB before the weights, 21.329 GiB after them.
FREE_GIB, WEIGHTS_GIB = "93.7274", "72.398415"


def kimi_service(instance: str, port: int, **environment: str) -> dict[str, Any]:
    """Variables of the role for one instance of Kimi K2.6; ``environment``: more for the server."""
    return {
        "sglang_instance": instance,
        "sglang_port": port,
        "sglang_wheelhouse": "/srv/wheels",
        # the stand-in takes next to nothing of a host
        "sglang_host_memory_per_rank_gib": 0.1,
        "sglang_release_gib": 0.1,
        "sglang_model": "/srv/models/kimi-k2.6",
        "sglang_draft_model": "/srv/models/kimi-k2.6-dflash",
        "sglang_gpu_free_gib": [float(FREE_GIB)],
        "sglang_weights_gib": float(WEIGHTS_GIB),
        "sglang_draft_weights_gib": 1.31,
        "sglang_environment": {
            "STANDIN_FREE_GIB": FREE_GIB, "STANDIN_WEIGHTS_GIB": WEIGHTS_GIB, "STANDIN_STEP_SECONDS": "0.02", **environment,
        },
    }  # fmt: skip


def kimi_shelves(work: Path) -> list[str]:
    """Options of ``hosts up`` that put the stand-in's wheel and the configs of Kimi K2.6, its draft and another model on a host."""
    wheels, models = work / "wheels", work / "models"
    subprocess.run([sys.executable, ROOT / "tests/engine/standin/build_wheel.py", VERSION, wheels], check=True)
    for model in ("kimi-k2.6", "kimi-k2.6-dflash", "qwen3-32b"):
        (models / model).mkdir(parents=True)
        shutil.copy(ROOT / f"tests/unit/fixtures/configs/{model}.json", models / model / "config.json")
    (models / "empty").mkdir()
    return ["--group", "sglang", "--bind-ro", f"{wheels}:/srv/wheels", "--bind-ro", f"{models}:/srv/models"]


@contextmanager
def kimi_host(work: Path, name: str, prefix: str, network: str, *options: str) -> Iterator[Host]:
    """One Debian host with what ``kimi_shelves`` makes; gone afterwards.

    ``options``: more of ``hosts up``. The hosts of a prefix belong to one process at a time.
    """
    shelves = kimi_shelves(work)
    variables = environment(prefix, network)
    hosts = ROOT / "tests/hosts/hosts"
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        subprocess.run([hosts, "up", name, *shelves, *options], env=variables, check=True)
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        yield Host(name, inventory, variables)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)
