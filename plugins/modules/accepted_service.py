#!/usr/bin/python

# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: accepted_service
short_description: The services that a host accepted, to go back to
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Keeps what an instance was accepted with (receipt, unit, environment file) as C(accepted.json) in the state of the instance, and what
    was accepted before under C(accepted/). Files are replaced in one step, in an order in which a run that is killed loses none.
  - Says which of them can be started again, and which one a version, a release or an environment means.
  - Puts one of them back in the place of the unit and its environment file. The texts stay on the host, for they may hold keys.
attributes:
  check_mode:
    support: full
    description: Says what would be done, and changes nothing.
  diff_mode:
    support: partial
    description: Shows what changes of the unit with O(state=restored). An environment file may hold keys.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  state:
    description:
      - V(present) makes O(record) the last accepted service. At most eight earlier ones stay.
      - V(queried) changes nothing and chooses by O(to).
      - V(restored) writes the unit and the environment of the one that O(to) means. Nothing is started.
    type: str
    choices: [present, queried, restored]
    default: queried
  instance:
    description: Name of the instance.
    type: str
    required: true
  state_dir:
    description: Folder of the instances' states.
    type: path
    default: /var/lib/sglang
  record:
    description: What was accepted, for O(state=present).
    type: dict
    suboptions:
      receipt:
        description: Its receipt, with at least C(digest), C(mem_fraction_static), C(min_tokens) and C(required_tokens).
        type: dict
        required: true
      unit:
        description: Text of the unit. Without it both texts are those of the record that O(to) means.
        type: str
      environment:
        description: Text of the environment file.
        type: str
  unit_file:
    description: Path of the unit, for O(state=restored), and for RV(stands).
    type: path
  environment_file:
    description: Path of its environment file.
    type: path
  to:
    description:
      - What to choose. A version of SGLang, the name of a release, the path of an environment, the id of an image, or the name of a record.
        The newest that matches and can be started is taken.
      - Empty is the last accepted service.
    type: str
    default: ""
  container_engine:
    description: Program that is asked whether an image is still there.
    type: str
    default: podman
"""

EXAMPLES = r"""
- name: What can this host go back to?
  inferops.sglang.accepted_service:
    instance: sglang-k26
  register: found

- name: Show it
  ansible.builtin.debug:
    msg: "{{ found.kept | map(attribute='line') }}"
"""

RETURN = r"""
kept:
  description: The last accepted service, then those before it, newest first.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Its name.
      type: str
    sglang_version:
      description: Version of SGLang.
      type: str
    release:
      description: Path of its environment, or id of its image.
      type: str
    digest:
      description: Digest of what its process got.
      type: str
    last:
      description: Whether it is the last accepted one.
      type: bool
    mem_fraction_static:
      description: Its fraction.
      type: float
    min_tokens:
      description: Tokens of its smallest rank when it was accepted.
      type: int
    required_tokens:
      description: Tokens that were asked of every rank.
      type: int
    accepted_at:
      description: When it was accepted, in seconds since 1970.
      type: float
    lacks:
      description: Why it cannot be started, empty if it can.
      type: str
    line:
      description: The same for people.
      type: str
chosen:
  description: What O(to) means, an element of RV(kept) with its C(receipt). Empty if there is none.
  type: dict
  returned: unless O(state=present)
last_receipt:
  description: Receipt of the last accepted service, empty if there is none.
  type: dict
  returned: unless O(state=present)
stands:
  description: Whether O(unit_file) and O(environment_file) are those of RV(chosen).
  type: bool
  returned: unless O(state=present)
problem:
  description: Why there is none, and what to do. Empty if there is one, and where nothing was ever accepted and nothing is asked.
  type: str
  returned: with O(state=queried)
"""

import os
import time
from collections.abc import Sequence
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._accepted import Accepted, History, Standing, choose, record_of
from ansible_collections.inferops.sglang.plugins.module_utils._made import write_whole
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner, limited
from ansible_collections.inferops.sglang.plugins.module_utils._release import Request, state_of, state_of_existing

ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "queried", "restored"], "default": "queried"},
    "instance": {"type": "str", "required": True},
    "state_dir": {"type": "path", "default": "/var/lib/sglang"},
    "record": {
        "type": "dict",
        "options": {
            "receipt": {"type": "dict", "required": True},
            "unit": {"type": "str"},
            "environment": {"type": "str", "no_log": True},
        },
    },
    "unit_file": {"type": "path"},
    "environment_file": {"type": "path"},
    "to": {"type": "str", "default": ""},
    "container_engine": {"type": "str", "default": "podman"},
}
# seconds within which an engine says whether it has an image
ENGINE_TIMEOUT = 30


def standing(engine: str, run: Runner) -> Standing:
    """What a release lacks that was accepted once: an environment its interpreter, SGLang or packages, an image itself."""

    def lacks(record: Accepted) -> str:
        if not record.release.startswith("/"):
            return _image_lacks(engine, record.release, run)
        # what was built from a branch may be on its way to the version
        request = Request(version=record.version, git="as it was built")
        own = os.path.isfile(os.path.join(record.release, "pyvenv.cfg")) and state_of(record.release, request)
        # an environment that somebody else made has no mark of ours
        found = own if own and own.kind not in ("unfinished", "unreadable") else state_of_existing(record.release, request)
        return found.reason

    return lacks


def _image_lacks(engine: str, image: str, run: Runner) -> str:
    try:
        code, _out, errors = run([engine, "image", "inspect", image])
    except OSError as error:
        return f"{engine} cannot be asked for its image ({error})"
    return "" if code == 0 else f"{engine} has no such image ({errors.strip()[:200]})"


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[["state", "present", ["record"]], ["state", "restored", ["unit_file", "environment_file"]]],
        required_together=[["unit_file", "environment_file"]],
        supports_check_mode=True,
    )
    asked = module.params
    if "/" in asked["instance"] or asked["instance"] in ("", ".", ".."):
        module.fail_json(msg=f"instance: asked for {asked['instance']!r}, found that it cannot be a folder; give the name of an instance")
    folder = os.path.join(asked["state_dir"], asked["instance"])
    history = History(folder, standing(asked["container_engine"], limited(ENGINE_TIMEOUT)))
    try:
        module.exit_json(**{"present": keep, "queried": query, "restored": restore}[asked["state"]](module, history))
    except OSError as error:
        module.fail_json(
            msg=f"accepted services of {asked['instance']}: asked for {error.filename or folder}, "
            f"found {error.strerror or error}; look at the folder, its disk and its rights"
        )


def keep(module: AnsibleModule, history: History) -> dict[str, Any]:
    given = module.params["record"]
    if given["unit"] is None:
        source = chosen(module, history.records())
        given = {**given, "unit": source.unit, "environment": source.environment}
    new = record_of(given, round(time.time(), 3))
    if new is None:
        module.fail_json(
            msg="record: asked to keep what was accepted, found no environment, or a receipt without digest, mem_fraction_static, "
            "min_tokens or required_tokens; give the texts and the receipt of a service that was accepted"
        )
    changed = history.keep(new, module.check_mode)
    if changed and not module.check_mode:
        history.tidy()
    return {"changed": changed, "kept": [record.as_listed() for record in history.records()]}


def query(module: AnsibleModule, history: History) -> dict[str, Any]:
    records = history.records()
    choice = choose(records, module.params["to"], module.params["instance"])
    return {"changed": False, "problem": choice.problem, **told(records, choice.chosen, not unlike(module, choice.chosen))}


def restore(module: AnsibleModule, history: History) -> dict[str, Any]:
    records = history.records()
    record = chosen(module, records)
    files = unlike(module, record)
    unit = module.params["unit_file"]
    diff = {"before_header": unit, "after_header": unit, "before": text_of(unit), "after": record.unit} if unit in files else {}
    for path, (text, mode) in files.items():
        if not module.check_mode:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_whole(path, text, mode)
    return {"changed": bool(files), "diff": diff, **told(records, record, not files)}


def chosen(module: AnsibleModule, records: Sequence[Accepted]) -> Accepted:
    """What is meant; without one the module ends."""
    choice = choose(records, module.params["to"], module.params["instance"])
    if choice.chosen is None:
        instance = module.params["instance"]
        module.fail_json(msg=choice.problem or f"asked for the last accepted service of {instance}, found none; deploy one")
    record: Accepted = choice.chosen
    return record


def unlike(module: AnsibleModule, record: Optional[Accepted]) -> dict[str, tuple[str, int]]:
    """Path -> text and mode, of the files that are not those of the record; the unit last."""
    if record is None or module.params["unit_file"] is None:
        return {}
    files = {module.params["environment_file"]: (record.environment, 0o600), module.params["unit_file"]: (record.unit, 0o644)}
    return {path: wanted for path, wanted in files.items() if text_of(path) != wanted[0]}


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def told(records: Sequence[Accepted], record: Optional[Accepted], stands: bool) -> dict[str, Any]:
    return {
        "kept": [item.as_listed() for item in records], "stands": stands,
        "chosen": {**record.as_listed(), "receipt": record.receipt} if record else {},
        "last_receipt": next((item.receipt for item in records if item.last), {}),
    }  # fmt: skip


if __name__ == "__main__":
    main()
