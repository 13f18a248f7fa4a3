# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check of the preflight has a name that is documented and a finding that was provoked on a host."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.inferops.sglang.plugins.module_utils._preflight import CHECKS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("_preflight", "_preflight_cards", "_preflight_models", "_release", "_cuda_releases", "_flag_rules", "_flag_clashes")


def names_in_code() -> set[str]:
    """What the rooms call their findings: the first argument, as a text, a constant of the room, or the rooms of _compatibility."""
    found: set[str] = set()
    for room in ROOMS:
        tree = ast.parse((ROOT / f"plugins/module_utils/{room}.py").read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant)
        }
        for first in _first_arguments(tree):
            if isinstance(first, ast.Constant):
                found.add(first.value)
            elif isinstance(first, ast.Name) and first.id in constants:
                found.add(constants[first.id])
            else:
                # a name that a function gives: its texts
                found |= {"model", "draft_model"} if ast.unparse(first).startswith("_check(") else set()
    return found | _rooms_of_compatibility()


def _first_arguments(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Finding", "_finding") and node.args:
            yield node.args[0]


def _rooms_of_compatibility() -> set[str]:
    text = (ROOT / "plugins/module_utils/_compatibility.py").read_text(encoding="utf-8")
    return set(re.findall(r'^        \("(\w+)", ', text.partition("rooms = (")[2].partition("    )\n")[0], re.M))


def test_every_name_in_the_code_is_a_check_and_every_check_is_in_the_code() -> None:
    assert names_in_code() == set(CHECKS)


def test_every_check_is_documented_as_it_is() -> None:
    lines = (ROOT / "docs/preflight.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    assert {row[0].strip("`"): row[1] for row in rows} == CHECKS
    assert [row[0] for row in rows if len(row) != 3 or not row[2]] == []


def test_every_finding_was_provoked_on_a_host() -> None:
    text = (ROOT / "tests/scenarios/test_preflight.py").read_text(encoding="utf-8")
    shown = set(re.findall(r'^\s+r?f?"([a-z_0-9]+): asked for ', text, re.M)) | set(re.findall(r'= "([a-z_]+): asked for ', text))
    assert shown == set(CHECKS)
