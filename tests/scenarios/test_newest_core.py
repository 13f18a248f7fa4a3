# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest ansible-core, on Debian 13 with its Python and systemd: a host that deploys to itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.host import ROOT, Host, environment

VERSION = "0.5.23"
PLAY = "/opt/core/bin/ansible-playbook -i 'sglang,' -c local inferops.sglang.deploy_k26 -e sglang_hosts=all -e @/srv/values.json"
# Kimi K2.6 with its draft by the rules of 0.5.18 and newer, which also reserve memory for images: the plan's own figure must hold
VALUES = {
    "sglang_version": VERSION,
    "sglang_wheelhouse": "/srv/wheels",
    "sglang_model": "/srv/models/kimi-k2.6",
    "sglang_draft_model": "/srv/models/kimi-k2.6-dflash",
    "sglang_gpu_free_gib": [93.7274],
    "sglang_weights_gib": 72.398415,
    "sglang_draft_weights_gib": 1.31,
    "sglang_environment": {
        "STANDIN_FREE_GIB": "93.7274",
        "STANDIN_WEIGHTS_GIB": "72.398415",
        "STANDIN_DRAFT_WEIGHTS_GIB": "1.31",
        "STANDIN_STEP_SECONDS": "0.02",
    },
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """A shell on the host; the host carries the newest core from PyPI, the stand-in's wheel, the configs and this checkout."""
    work = tmp_path_factory.mktemp("newest")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", "--python-version", "3.13", "-d", work / "core",
         "-r", ROOT / "requirements-newest.txt"],
        check=True,
    )
    subprocess.run([sys.executable, ROOT / "tests/engine/standin/build_wheel.py", VERSION, work / "wheels"], check=True)
    for model in ("kimi-k2.6", "kimi-k2.6-dflash"):
        (work / "models" / model).mkdir(parents=True)
        shutil.copy(ROOT / f"tests/unit/fixtures/configs/{model}.json", work / "models" / model / "config.json")
    collection = work / "collections/ansible_collections/inferops/sglang"
    collection.mkdir(parents=True)
    for part in ("meta", "plugins", "roles", "playbooks", "galaxy.yml"):
        source = ROOT / part
        shutil.copytree(source, collection / part) if source.is_dir() else shutil.copy(source, collection / part)
    variables, hosts = environment("infopc", "10.79.4"), ROOT / "tests/hosts/hosts"
    binds = [word for part in ("core", "wheels", "models", "collections") for word in ("--bind-ro", f"{work / part}:/srv/{part}")]
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        subprocess.run([hosts, "up", "newest", "--release", "trixie", *binds], env=variables, check=True)
        host = Host("newest", Path(), variables)
        host.shell("python3 -m venv /opt/core && /opt/core/bin/pip install -q --no-index --find-links /srv/core ansible-core")
        host.shell(f"cat > /srv/values.json <<'END'\n{json.dumps(VALUES)}\nEND")
        yield host.shell
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


def test_the_newest_core_deploys_and_then_changes_nothing(shell: Callable[[str], str]) -> None:
    pinned = re.findall(r"^ansible-core==(\S+)", (ROOT / "requirements-newest.txt").read_text(encoding="utf-8"), re.M)[0]
    assert f"[core {pinned}]" in shell("/opt/core/bin/ansible-playbook --version")
    run = f"export ANSIBLE_COLLECTIONS_PATH=/srv/collections ANSIBLE_INJECT_FACT_VARS=false ANSIBLE_NOCOLOR=1; {PLAY}"
    first = shell(run)
    assert "ACCEPTED" in first
    receipt = json.loads(shell("cat /var/lib/sglang/sglang-k26-ddtree/receipt.json"))
    assert receipt["prediction_error_tokens"] == 0
    assert receipt["tokens_per_rank"] == {f"TP{rank}": receipt["predicted_tokens"] for rank in range(8)}
    assert 200000 <= receipt["min_tokens"] < 200000 + 140
    assert "changed=0 " in shell(run)
