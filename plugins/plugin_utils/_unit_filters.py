# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over unit files. Private to this collection: may change at any time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._unit_action import Files, Situation, decide
from ansible_collections.inferops.sglang.plugins.module_utils._unit_change import Reading, compare, reading_of
from ansible_collections.inferops.sglang.plugins.module_utils._unit_change import digest as digest_of
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import Unit, read_unit
from ansible_collections.inferops.sglang.plugins.module_utils._unit_variables import variables_of

_NO_TEXTS: Mapping[str, str] = MappingProxyType({})


def unit_changes(
    old: Any, new: Any, old_files: Any = _NO_TEXTS, new_files: Any = _NO_TEXTS, drop_ins: Any = _NO_TEXTS
) -> dict[str, Any]:
    """What differs between two unit files, and the smallest action that takes it over; see the filter's documentation."""
    change = compare(
        _reading("unit_changes", old, old_files, drop_ins),
        _reading("unit_changes", new, new_files, _NO_TEXTS),
    )
    return {"action": change.action, "lines": list(change.lines), "reasons": list(change.reasons)}


def unit_action(
    now: Any,
    old: Any,
    new: Any,
    environment_file: Any = "",
    old_environment: Any = None,
    new_environment: Any = "",
    digest: Any = "",
    accepted: Any = _NO_TEXTS,
    required_tokens: Any = 0,
) -> dict[str, Any]:
    """The smallest action that makes a service run as configured, and why; see the filter's documentation."""
    if not isinstance(now, Mapping) or not isinstance(now.get("service"), Mapping):
        raise AnsibleFilterError(f"unit_action: asked for the result of allocation_info, found {type(now).__name__}; register it")
    for text in (old, new, new_environment):
        if not isinstance(text, str):
            raise AnsibleFilterError(f"unit_action: asked for the text of a file, found {type(text).__name__}; give its content")
    found = decide(Situation(
        service=now["service"],
        allocation=now.get("allocation"),
        disk=Files(old, old_environment if isinstance(old_environment, str) else None),
        wanted=Files(new, new_environment),
        path=str(environment_file),
        digest=str(digest),
        accepted=accepted if isinstance(accepted, Mapping) else {},
        required=required_tokens,
    ))  # fmt: skip
    return {"action": found.action, "lines": list(found.lines), "text": found.text}


def unit_digest(unit: Any, files: Any = _NO_TEXTS) -> str:
    """What a process gets from this unit at its start, as sixteen hexadecimal digits."""
    return digest_of(_reading("unit_digest", unit, files, _NO_TEXTS))


def unit_variables(unit: Any, name: Any = "", version: Any = "", files: Any = _NO_TEXTS, drop_ins: Any = _NO_TEXTS) -> str:
    """A unit that somebody wrote by hand as variables of the role, in YAML; what no variable reproduces is a comment."""
    found = variables_of(_unit("unit_variables", unit, drop_ins), str(name), str(version), _texts("unit_variables", files))
    notes = "".join(f"# {note}\n" for note in found.notes)
    # json first: what Ansible made known as its own kinds of text is plain text then
    variables = json.loads(json.dumps(dict(found.variables)))
    return notes + (yaml.safe_dump(variables, sort_keys=False, allow_unicode=True, width=1000) if variables else "")


def _reading(name: str, unit: Any, files: Any, drop_ins: Any) -> Reading:
    return reading_of(_unit(name, unit, drop_ins), _texts(name, files))


def _unit(name: str, text: Any, drop_ins: Any) -> Unit:
    if not isinstance(text, str):
        raise AnsibleFilterError(f"{name}: asked for the text of a unit, found {type(text).__name__}; give the file's content")
    return read_unit(text, _texts(name, drop_ins))


def _texts(name: str, files: Any) -> dict[str, str]:
    if not isinstance(files, Mapping):
        raise AnsibleFilterError(f"{name}: asked for texts by path, found {type(files).__name__}; give a mapping")
    return {str(path): text for path, text in files.items() if isinstance(text, str)}
