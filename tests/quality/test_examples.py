# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What examples/ gives a controller: Ansible knows every key, the role every variable, and ansible-builder takes the definition."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(*argv: str, cwd: Path = EXAMPLES) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"), "ANSIBLE_CONFIG": str(EXAMPLES / "ansible.cfg")}
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ansible_knows_every_key_of_the_configuration() -> None:
    assert "seem valid" in run("ansible-config", "validate", "--type", "all")


def test_the_configuration_holds() -> None:
    found = json.loads(run("ansible-config", "dump", "--only-changed", "--type", "base", "--format", "json"))
    assert {entry["name"]: entry["value"] for entry in found if "name" in entry and entry["name"] != "CONFIG_FILE"} == {
        "DEFAULT_FORKS": 20,
        "DEFAULT_TIMEOUT": 60,
        "DEFAULT_GATHERING": "explicit",
        "INJECT_FACTS_AS_VARS": False,
        "INTERPRETER_PYTHON": "auto_silent",
        "DEFAULT_HOST_LIST": [str(EXAMPLES / "inventory")],
        "COLLECTIONS_PATHS": [str(ROOT / ".cache/collections")],
    }


def test_the_inventory_has_its_hosts_and_no_variable_that_nothing_reads() -> None:
    listed = json.loads(run("ansible-inventory", "--list"))
    assert (len(listed["north"]["hosts"]), len(listed["south"]["hosts"])) == (16, 32)
    given = {name for name in listed["_meta"]["hostvars"]["gpu-n01.example.net"] if name.startswith("sglang_")}
    assert "sglang_batches" in given
    specs = yaml.safe_load((ROOT / "roles/sglang/meta/argument_specs.yml").read_text(encoding="utf-8"))
    playbooks = {"sglang_hosts", "sglang_batches", "sglang_serving_batches"}
    assert given - set(specs["argument_specs"]["main"]["options"]) - playbooks == set()


@pytest.mark.parametrize("playbook", ["deploy_k26", "rollback", "audit"])
def test_the_playbooks_parse_with_it(playbook: str) -> None:
    run("ansible-playbook", "--syntax-check", f"inferops.sglang.{playbook}")


def test_what_the_collection_needs_is_found_by_ansible_builder() -> None:
    found = yaml.safe_load(run("ansible-builder", "introspect", str(ROOT / ".cache/collections"), cwd=ROOT))
    needs = {kind: [line.partition("#")[0].strip() for line in lines] for kind, lines in found.items()}
    assert needs == {"python": ["jmespath==1.1.0"], "system": ["openssh-client [platform:dpkg]", "openssh-clients [platform:rpm]"]}


def test_ansible_builder_makes_a_build_context(tmp_path: Path) -> None:
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    artefact = f"inferops-sglang-{version}.tar.gz"
    shutil.copy(EXAMPLES / "execution-environment.yml", tmp_path)
    run("ansible-galaxy", "collection", "build", "--output-path", str(tmp_path), cwd=ROOT)
    run("ansible-builder", "create", "--output-filename", "Containerfile", cwd=tmp_path)
    context = tmp_path / "context"
    assert (context / "_build/collections" / artefact).is_file()
    wanted = yaml.safe_load((context / "_build/requirements.yml").read_text(encoding="utf-8"))
    assert wanted == {"collections": [{"name": f"collections/{artefact}", "type": "file"}]}
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    core = next(line.split()[0] for line in lines if line.startswith("ansible-core"))
    assert core in (context / "Containerfile").read_text(encoding="utf-8")
