# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots the real SGLang on the CPU of a throw-away host, once for each case, and keeps what was planned and what it printed.

Needs root, some GiB of free memory and the wheelhouse of tests/engine (made here if it is missing). Writes engine_boots.json
beside this file. SGLang's pool on the CPU comes out of the free memory of the machine, which other programs move.

Usage: record_engine_boots.py [CASE...]
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).resolve().parent / "engine_boots.json"
WORK = ROOT / ".cache/accuracy"
HOSTS = ROOT / "tests/hosts/hosts"
NAME = "accuracy"
DRAFTED = {"mla": "dflash-mla", "gqa": "dflash-gqa"}

# name -> model, with its draft or without, and what differs from tests/engine/k26_on_cpu.yml
CASES: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "mla-dflash-8k": ("mla", True, {"sglang_context_length": 8192}),
    "mla-dflash-64k": ("mla", True, {"sglang_context_length": 65536}),
    "mla-8k": ("mla", False, {"sglang_context_length": 8192}),
    "mla-64k": ("mla", False, {"sglang_context_length": 65536}),
    "gqa-dflash-8k": ("gqa", True, {"sglang_context_length": 8192}),
    "gqa-dflash-2x32k": ("gqa", True, {"sglang_context_length": 32768, "sglang_concurrent_requests": 2}),
    "gqa-8k": ("gqa", False, {"sglang_context_length": 8192}),
    "gqa-2x32k": ("gqa", False, {"sglang_context_length": 32768, "sglang_concurrent_requests": 2}),
}


def environment() -> dict[str, str]:
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "INFEROPS_HOSTS_PREFIX": "infopa",
        "INFEROPS_HOSTS_NET": "10.79.12",
        "INFEROPS_HOSTS_STATE": "/var/lib/inferops-hosts-infopa",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_INJECT_FACT_VARS": "false",
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }


def run(*argv: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in argv], cwd=ROOT, env=environment(), capture_output=True, text=True, check=check)


def boot_host(wheels: str) -> Path:
    models = WORK / "models"
    models.mkdir(parents=True, exist_ok=True)
    for kind in (*DRAFTED, *DRAFTED.values()):
        if not (models / kind / "config.json").exists():
            run(sys.executable, "tests/engine/make_models.py", kind, models / kind)
    run(HOSTS, "ensure", NAME, "--group", "sglang", "--bind-ro", f"{wheels}:/srv/wheels", "--bind-ro", f"{models}:/srv/models")
    inventory = WORK / "inventory.yml"
    run(HOSTS, "inventory", "--output", inventory)
    return inventory


def record(inventory: Path, name: str) -> dict[str, Any]:
    """Plans and boots one case; the figures of the plan, and those of the boot."""
    model, drafted, changes = CASES[name]
    instance = f"sglang-{model}{'-dflash' if drafted else ''}"
    variables = {
        **changes,
        "sglang_instance": instance,
        "sglang_model": f"/srv/models/{model}",
        "sglang_draft_model": f"/srv/models/{DRAFTED[model]}" if drafted else "",
        "sglang_speculative_algorithm": "DFLASH" if drafted else "",
    }
    playbook = ("ansible-playbook", "-i", inventory, "inferops.sglang.deploy_k26", "-e", "@tests/engine/k26_on_cpu.yml")
    done = run(*playbook, "-e", json.dumps(variables), check=False)
    (WORK / f"{name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        sys.exit(f"{name}: the deployment failed, see {WORK}/{name}.log")
    receipt = json.loads(run(HOSTS, "exec", NAME, "cat", f"/var/lib/sglang/{instance}/receipt.json").stdout)
    said = run("ansible", "-i", inventory, NAME, "-m", "inferops.sglang.allocation_info", "-a", f"unit={instance}.service", "--one-line")
    allocation = json.loads(said.stdout.split("=>", 1)[1])["allocation"]
    run(HOSTS, "exec", NAME, "systemctl", "stop", f"{instance}.service")
    rank = allocation["ranks"][0]
    return {
        "name": name,
        "model": model,
        "draft": DRAFTED[model] if drafted else None,
        "basis": receipt["prediction_basis"],
        "required_tokens": receipt["required_tokens"],
        "planned_tokens": receipt["predicted_tokens"],
        "fraction": receipt["mem_fraction_static"],
        "before": rank["avail_before_weights_gib"],
        "at_sizing": rank["avail_after_weights_gib"],
        "tokens": receipt["min_tokens"],
        "kv": [rank["target"][key] for key in ("kv_gib", "k_gib", "v_gib") if rank["target"].get(key) is not None],
        "draft_kv": [rank["draft"][key] for key in ("k_gib", "v_gib") if rank["draft"].get(key) is not None] if drafted else None,
        "after_pool": rank["avail_after_pool_gib"],
        "requests": allocation["max_running_requests"],
        "context": allocation["context_len"],
    }


def main(names: list[str]) -> None:
    wheels = run(ROOT / "tests/engine/wheelhouse").stdout.splitlines()[-1]
    try:
        inventory = boot_host(wheels)
        boots = [record(inventory, name) for name in names or CASES]
    finally:
        run(HOSTS, "down", check=False)
    kept = {"date": datetime.date.today().isoformat(), "sglang_version": "0.5.23", "device": "cpu", "boots": boots}
    RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
