#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: instance
short_description: Records what the role makes for an instance, and takes it away again
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - With O(state=present) it writes down which accounts and directories do not exist yet and belong to the instance, before the role makes
    them, in C(made.json) of O(state_dir). With O(adopt) it also keeps what a unit written by hand was, before the role takes it over.
  - With O(state=absent) it stops and disables the unit and removes what the role made for the instance, and only that. What all
    instances share goes with the last one. A unit without the role's mark, drop-ins, copies of replaced units, models that
    the role did not fetch, and directories with files of somebody else stay and are named in RV(kept).
  - A run that is killed is finished by the next one.
extends_documentation_fragment: [inferops.sglang.attributes]
attributes:
  check_mode:
    support: full
    description: Says what would be removed or recorded.
  diff_mode:
    support: full
    description: Shows the paths that go, or the record.
options:
  name:
    description: Name of the instance; its unit is this name with C(.service).
    type: str
    required: true
  state:
    description: V(present) records, V(absent) removes.
    type: str
    choices: [present, absent]
    default: present
  user:
    description: User of the service.
    type: str
    required: true
  group:
    description: Group of the service.
    type: str
    required: true
  root:
    description: Directory of the environments.
    type: path
    required: true
  config_dir:
    description: Directory of the environment file.
    type: path
    required: true
  state_dir:
    description: Directory of receipts and observed starts.
    type: path
    required: true
  models:
    description: Directories of the models of this instance.
    type: list
    elements: path
    default: []
  absent_models:
    description: With O(state=absent) remove models too that the role fetched and no other instance uses.
    type: bool
    default: false
  adopt:
    description: Unit, written by hand, that the role is about to take over.
    type: str
"""

EXAMPLES = r"""
- name: Take an instance away
  inferops.sglang.instance:
    name: sglang-k26
    state: absent
    user: sglang
    group: sglang
    root: /opt/sglang
    config_dir: /etc/sglang
    state_dir: /var/lib/sglang
"""

RETURN = r"""
removed:
  description: What went, in this order.
  type: list
  elements: str
  returned: with O(state=absent)
kept:
  description: What stays.
  type: list
  elements: dict
  returned: with O(state=absent)
  contains:
    path:
      description: The file or directory.
      type: str
    why:
      description: Why it stays.
      type: str
adoption:
  description: The adoption that is not finished yet, V(null) where there is none.
  type: dict
  returned: with O(state=present)
  contains:
    id:
      description: What the receipt of the accepted service names it by.
      type: str
    unit:
      description: The old unit.
      type: str
    same:
      description: Whether the role's unit takes its place under the same name.
      type: bool
    active:
      description: Whether it was running.
      type: bool
    enabled:
      description: Whether it was enabled.
      type: bool
    drop_ins:
      description: Its drop-ins.
      type: list
      elements: str
"""

import datetime
import glob
import grp
import os
import pwd
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._adoption import NAME as ADOPTION_NAME
from ansible_collections.inferops.sglang.plugins.module_utils._adoption import Adoption, adoption_text, begin, open_adoption
from ansible_collections.inferops.sglang.plugins.module_utils._made import (
    NAME,
    Instance,
    Made,
    made_text,
    missing_directories,
    read_made,
    write_made,
    write_whole,
)
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._removal import (
    Removal,
    RemovalError,
    read_text,
    remove,
    unit_state,
)
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import read_unit


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "user": {"type": "str", "required": True},
            "group": {"type": "str", "required": True},
            "root": {"type": "path", "required": True},
            "config_dir": {"type": "path", "required": True},
            "state_dir": {"type": "path", "required": True},
            "models": {"type": "list", "elements": "path", "default": []},
            "absent_models": {"type": "bool", "default": False},
            "adopt": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        result = _absent(module) if module.params["state"] == "absent" else _present(module)
    except RemovalError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        place = error.filename or module.params["state_dir"]
        module.fail_json(msg=f"asked for {place}, found {error.strerror or error}; mend that and run again")
    module.exit_json(**result)


def _present(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    before = read_text(os.path.join(params["state_dir"], NAME))
    made = _recorded(params, read_made(before))
    after = made_text(made)
    adoption, is_new = _adoption(module)
    if not module.check_mode:
        if before != after:
            write_made(params["state_dir"], after)
        if adoption and is_new:
            os.makedirs(_state(params), mode=0o755, exist_ok=True)
            write_whole(os.path.join(_state(params), ADOPTION_NAME), adoption_text(adoption), 0o600)
    shown = {name: value for name, value in asdict(adoption).items() if name not in ("path", "text")} if adoption else None
    return {
        "changed": before != after or is_new,
        "adoption": shown,
        "diff": {"before_header": NAME, "after_header": NAME, "before": before, "after": after},
    }


def _recorded(params: dict[str, Any], made: Made) -> Made:
    """The record with this instance in it, and with what of it does not exist yet."""
    known = made.with_instance(params["name"], _instance(params))
    directories = missing_directories(params[name] for name in ("root", "config_dir", "state_dir"))
    return known.with_new(
        "" if _exists(pwd.getpwnam, params["user"]) else params["user"],
        "" if _exists(grp.getgrnam, params["group"]) else params["group"],
        directories,
    )


def _adoption(module: AnsibleModule) -> tuple[Optional[Adoption], bool]:
    """The adoption to be finished, and whether it begins now."""
    params = module.params
    kept, accepted = (read_text(os.path.join(_state(params), name)) for name in (ADOPTION_NAME, "accepted.json"))
    known = open_adoption(kept, accepted)
    # what was begun is finished, also by a run that does not ask for it again
    if not params["adopt"] or (known and known.unit == params["adopt"]):
        return known, False
    state = unit_state(params["adopt"], _runner(module))
    moment = datetime.datetime.now(datetime.timezone.utc).isoformat()
    begun = begin(moment, params["adopt"], f"{params['name']}.service", state, read_text(state.get("FragmentPath", "")))
    return begun, begun is not None


def _absent(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    made = read_made(read_text(os.path.join(params["state_dir"], NAME)))
    removal = Removal(
        name=params["name"],
        made=made,
        state_dir=params["state_dir"],
        models=params["absent_models"],
        only_look=module.check_mode,
        run=_runner(module),
        processes=_processes,
    )
    entry = made.instances.get(params["name"])
    if entry is None and read_unit(read_text(removal.unit_file)).instance == params["name"]:
        # the record is lost, the unit is ours: it is written again first, for the case that this run is killed
        entry = _instance(params)
        if not module.check_mode:
            write_made(params["state_dir"], made_text(made.with_instance(params["name"], entry)))
    outcome = remove(removal, entry)
    return {
        "changed": bool(outcome.removed),
        "removed": outcome.removed,
        "kept": [asdict(kept) for kept in outcome.kept],
        "diff": {"before": "".join(f"{path}\n" for path in outcome.removed), "after": ""},
    }


def _instance(params: dict[str, Any]) -> Instance:
    return Instance(
        environment=os.path.join(params["config_dir"], f"{params['name']}.env"),
        state=_state(params),
        cache=f"/var/cache/sglang/{params['name']}",
        root=params["root"],
        models=tuple(path for path in params["models"] if path),
    )


def _state(params: dict[str, Any]) -> str:
    return os.path.join(params["state_dir"], params["name"])


def _exists(look: Any, name: str) -> bool:
    try:
        look(name)
    except KeyError:
        return False
    return True


def _runner(module: AnsibleModule) -> Runner:
    return lambda argv: module.run_command(list(argv))


def _processes(unit: str) -> Iterator[str]:
    """Command lines and programs of all processes that are not of this unit, with a slash behind each path."""
    for directory in glob.glob("/proc/[0-9]*"):
        if f"/{unit}" in read_text(f"{directory}/cgroup"):
            continue
        yield read_text(f"{directory}/cmdline").replace("\0", " ")
        try:
            yield os.readlink(f"{directory}/exe")
        except OSError:
            continue


if __name__ == "__main__":
    main()
