# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quality gates: each is one command that must end with 0."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
UTILS = "ansible_collections.inferops.sglang.plugins.module_utils"

GATES = {
    "ruff": ["ruff", "check", "."],
    "mypy": ["mypy", "-p", UTILS],
    "yamllint": ["yamllint", "-s", "."],
    "ansible-lint": ["ansible-lint", "--offline", "-q", "--strict"],
    "changelog": ["antsibull-changelog", "lint"],
    "sanity": ["tests/quality/ansible-test-sanity"],
}


def run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("gate", GATES)
def test_gate(gate: str) -> None:
    done = run(GATES[gate])
    assert done.returncode == 0, f"{' '.join(GATES[gate])}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"


def role_file(name: str) -> dict:
    return yaml.safe_load((ROOT / "roles/sglang" / name).read_text(encoding="utf-8"))


def test_defaults_equal_the_argument_spec() -> None:
    """Every public variable is documented, and every documented default is the one that holds."""
    defaults = role_file("defaults/main.yml")
    options = role_file("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    documented = {name: spec["default"] for name, spec in options.items() if "default" in spec}
    assert documented == defaults


def test_every_public_variable_is_read() -> None:
    """No option that nothing reads."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("roles/sglang", "playbooks")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".yml", ".j2"} and "meta" not in path.parts and path.parent.name != "defaults"
    )
    options = role_file("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert [name for name in options if name not in text] == []


def test_the_action_group_lists_every_module() -> None:
    runtime = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))
    modules = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
    assert sorted(runtime["action_groups"]["sglang"]) == modules


def test_no_sanity_ignores() -> None:
    ignores = list((ROOT / "tests/sanity").glob("ignore-*.txt"))
    assert [path for path in ignores if path.read_text(encoding="utf-8").strip()] == []


def test_run_time_needs_only_the_four_folders(tmp_path: Path) -> None:
    """The playbook still parses when everything but meta, plugins, roles and playbooks is gone."""
    tree = tmp_path / "ansible_collections/inferops/sglang"
    tree.mkdir(parents=True)
    for name in ("meta", "plugins", "roles", "playbooks", "galaxy.yml"):
        (tree / name).symlink_to(ROOT / name)
    done = subprocess.run(
        ["ansible-playbook", "-i", "localhost,", "--syntax-check", "inferops.sglang.deploy_k26"],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_artefact_holds_what_users_need_and_nothing_else(tmp_path: Path) -> None:
    done = run(["ansible-galaxy", "collection", "build", "--output-path", str(tmp_path)])
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as artefact:
        tops = {Path(name).parts[0] for name in artefact.getnames()}
    wanted = {"CHANGELOG.md", "LICENSE", "README.md", "changelogs", "docs", "meta", "playbooks", "plugins", "roles"}
    assert tops - {"FILES.json", "MANIFEST.json"} <= wanted
    assert {"LICENSE", "README.md", "changelogs", "meta", "playbooks", "plugins", "roles"} <= tops
