#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: unit_info
short_description: How a unit starts SGLang
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads a unit with its drop-ins as systemd does, also one that somebody wrote by hand, and says how it starts SGLang, with which
    flags, and which variables of the role P(inferops.sglang.sglang#role) give the same server.
  - A server behind C(numactl), C(env), a container engine or a shell is seen. What a script of its owner hides is said so.
  - Keys and tokens are named and never returned, except where they stand in the text of the unit, which every user of the host can read.
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  name:
    description: Name of the unit.
    type: str
    required: true
  version:
    description: Version of its SGLang, if that is known.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read a unit
  inferops.sglang.unit_info:
    name: sglang-k26.service
  register: found

- name: Show what gives the same server
  ansible.builtin.debug:
    msg: "{{ found.unit.variables }}"
"""

RETURN = r"""
unit:
  description: The unit.
  type: dict
  returned: always
  contains:
    name:
      description: Its name.
      type: str
    path:
      description: Its file, empty for a unit that does not exist.
      type: str
    text:
      description: Content of the file.
      type: str
    drop_ins:
      description: Contents of its drop-ins, by path.
      type: dict
    load_state:
      description: As systemd has it, for example V(loaded), V(masked) or V(not-found).
      type: str
    active_state:
      description: As systemd has it.
      type: str
    enabled:
      description: Whether it is started with the host.
      type: bool
    instance:
      description: The instance of the role that wrote it, empty for a unit of somebody else.
      type: str
    starts:
      description: >-
        V(module), V(serve) or V(script) where SGLang is seen, V(hidden) where what is started may start it, empty where nothing is.
      type: str
    program:
      description: Words in front of the flags.
      type: list
      elements: str
    front:
      description: Words in front of the interpreter, for example of C(numactl) or a container engine.
      type: list
      elements: str
    flags:
      description: Flags by their names in the role. A bare flag is V(true).
      type: dict
    variables:
      description: Variables of the role that give the same server.
      type: dict
    notes:
      description: What no variable reproduces, and what could not be read.
      type: list
      elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._removal import RemovalError, read_text, unit_state
from ansible_collections.inferops.sglang.plugins.module_utils._secrets import HIDDEN, is_secret_flag
from ansible_collections.inferops.sglang.plugins.module_utils._service import unit_name
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import environment_files, read_unit
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import plain, read_server
from ansible_collections.inferops.sglang.plugins.module_utils._unit_variables import variables_of


def main() -> None:
    module = AnsibleModule(
        argument_spec={"name": {"type": "str", "required": True}, "version": {"type": "str", "default": ""}},
        supports_check_mode=True,
    )
    name = unit_name(module.params["name"])
    try:
        state = unit_state(name, lambda argv: module.run_command(list(argv)))
    except RemovalError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, unit=describe(name, state, module.params["version"]))


def describe(name: str, state: dict[str, str], version: str) -> dict[str, Any]:
    """What the unit of this name is, from its files."""
    path = state.get("FragmentPath", "")
    text = read_text(path)
    drop_ins = {drop_in: read_text(drop_in) for drop_in in state.get("DropInPaths", "").split()}
    unit = read_unit(text, drop_ins)
    # read to resolve the command line; what they hold is not returned
    files = {file.lstrip("-"): read_text(file.lstrip("-")) for file in environment_files(unit)}
    server = read_server(unit, files)
    found = variables_of(unit, name, version, files)
    return {
        "name": name,
        "path": path,
        "text": text,
        "drop_ins": drop_ins,
        "load_state": state.get("LoadState", ""),
        "active_state": state.get("ActiveState", ""),
        "enabled": state.get("UnitFileState") in ("enabled", "enabled-runtime"),
        "instance": unit.instance,
        "starts": server.how,
        "program": list(server.program),
        "front": list(server.front),
        "flags": {flag: HIDDEN if is_secret_flag(flag) else value for flag, value in plain(server).items()},
        "variables": dict(found.variables),
        "notes": list(found.notes),
    }


if __name__ == "__main__":
    main()
