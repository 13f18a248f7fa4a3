#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: audit_info
short_description: What serves on a host, against what was accepted there
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads every unit of the host that starts SGLang, those of the role P(inferops.sglang.sglang#role) and those that somebody wrote by hand,
    in one call. Of each it says what it runs, what every rank of the start that runs allocated, and whether that is what was accepted.
  - An instance is accepted only if nothing speaks against it. It must run and answer, every rank must be proved to hold the tokens, unit
    and process must be those that were accepted, it must not have died since, and must not be left out of its balancers.
  - Pools are proved by the journal of the start that runs. Where the journal has lost it, the receipt proves them, if the gate accepted
    this very start.
  - Nothing is changed but the file of O(textfile), if that is given. The playbook C(inferops.sglang.audit) asks a whole fleet and
    sets hosts of a class beside one another.
attributes:
  check_mode:
    support: full
    description: Reads as always and does not write O(textfile).
  diff_mode:
    support: full
    description: Shows what would be another in O(textfile).
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  state_dir:
    description: Where the role keeps what it made and accepted, its O(inferops.sglang.sglang#role:main:sglang_state_dir).
    type: path
    default: /var/lib/sglang
  context_length:
    description:
      - Tokens that one request must be able to hold. Instances are held against it instead of what each of them was accepted with.
    type: int
    default: 0
  concurrent_requests:
    description: How many such requests at once.
    type: float
    default: 1.0
  pool_target:
    description: Tokens that every rank must hold, instead of O(context_length) times O(concurrent_requests).
    type: int
    default: 0
  instance:
    description:
      - The instance of the role that O(context_length) and O(pool_target) are asked of, beside units without a receipt. Empty asks them of
        all.
    type: str
    default: ""
  min_avail_gib:
    description: GiB that must be left on every rank once it is up, V(0) for whatever is left.
    type: float
    default: 1.0
  max_spread_gib:
    description: GiB by which ranks may differ in what is left, V(0) for any.
    type: float
    default: 4.0
  allowed_changes:
    description: Flags that SGLang may run with other values than the accepted ones, beside those that the gate let pass.
    type: list
    elements: str
    default: []
  headroom_gib:
    description: GiB that are to stay free on a card. What is free beyond it is called idle from 2 GiB on.
    type: float
    default: 5.0
  textfile:
    description:
      - File on the host for the same as metrics in Prometheus' text format, for the textfile collector of node_exporter, which wants a name
        that ends in C(.prom). It is replaced in one step; its directory must be there. One that cannot be written speaks against the host.
    type: path
  textfile_host:
    description: Name of this host in O(textfile).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read what serves here
  inferops.sglang.audit_info:
  register: found

- name: Show what speaks against it
  ansible.builtin.debug:
    msg: "{{ found.audit.instances | rejectattr('accepted') | map(attribute='findings') | flatten | map(attribute='found') }}"

- name: Hold every instance against another context
  inferops.sglang.audit_info:
    context_length: 262144
"""

RETURN = r"""
audit:
  description: The host.
  type: dict
  returned: always
  contains:
    instances:
      description: Its units that start SGLang, by name. A unit of somebody else counts if it runs or is enabled.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the unit without its suffix.
          type: str
        unit:
          description: The unit.
          type: str
        instance:
          description: The instance of the role, empty for a unit of somebody else.
          type: str
        path:
          description: Its file.
          type: str
        drop_ins:
          description: Paths of its drop-ins.
          type: list
          elements: str
        enabled:
          description: Whether it is started with the host.
          type: bool
        active_state:
          description: As systemd has it, V(unknown) where it does not say.
          type: str
        sub_state:
          description: As systemd has it.
          type: str
        restarts:
          description: Automatic restarts since the last start by hand.
          type: int
        invocation_id:
          description: The start that runs.
          type: str
        started_at:
          description: When it began.
          type: str
        sglang_version:
          description: Version of SGLang that runs.
          type: str
        release:
          description: Its environment or image.
          type: str
        mem_fraction_static:
          description: The static fraction that it runs with.
          type: float
        required_tokens:
          description: Tokens that every rank must hold, V(0) where nothing says so.
          type: int
        required_by:
          description: V(asked) by an option, V(receipt), or empty.
          type: str
        min_tokens:
          description: Tokens that every rank is proved to hold, V(0) where that is not proved.
          type: int
        proof:
          description: V(journal), V(receipt), or empty.
          type: str
        predicted_tokens:
          description: What the plan of the accepted start said.
          type: int
        headroom_gib:
          description: GiB left on the fullest rank once it was up.
          type: float
        answer:
          description: Whether it answers on C(/health). C(url), C(status) and C(why) it did not.
          type: dict
        drained:
          description: Whether it was taken out of its balancers and not put back.
          type: bool
        drift:
          description: What differs from the accepted unit to the one on the disk, of what a process gets at its start.
          type: list
          elements: str
        flags:
          description: Flags of the unit on the disk. Keys and passwords are not shown.
          type: dict
        checkpoints:
          description: The models, with their fingerprints, as they were when it was accepted.
          type: dict
        accepted:
          description: Whether nothing speaks against it.
          type: bool
        findings:
          description: What speaks against it. C(check), C(rank), C(asked), C(found), C(do).
          type: list
          elements: dict
        warnings:
          description: What is worth a word and refuses nothing.
          type: list
          elements: str
        rows:
          description: Its ranks with their pools.
          type: list
          elements: dict
        receipt:
          description: What was accepted last.
          type: dict
        allocation:
          description: The start that runs, or the last one, as M(inferops.sglang.allocation_info) returns it.
          type: dict
    gpus:
      description: The cards as the driver's tool shows them, with the units that hold memory of each. Empty where there is no such tool.
      type: list
      elements: dict
    idle_gib:
      description: GiB of cards that nothing uses.
      type: float
    findings:
      description: What speaks against the host itself.
      type: list
      elements: dict
    warnings:
      description: What is worth a word of the host itself.
      type: list
      elements: str
"""

import math
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._audit import Terms, audit_of
from ansible_collections.inferops.sglang.plugins.module_utils._audit_host import Eyes, boot_reader, probe_status, read_host
from ansible_collections.inferops.sglang.plugins.module_utils._audit_metrics import metrics_of
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import TIME_LIMIT
from ansible_collections.inferops.sglang.plugins.module_utils._host import Sight
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError
from ansible_collections.inferops.sglang.plugins.module_utils._made import write_whole
from ansible_collections.inferops.sglang.plugins.module_utils._programs import limited

ARGUMENTS: dict[str, dict[str, Any]] = {
    "state_dir": {"type": "path", "default": "/var/lib/sglang"},
    "context_length": {"type": "int", "default": 0},
    "concurrent_requests": {"type": "float", "default": 1.0},
    "pool_target": {"type": "int", "default": 0},
    "instance": {"type": "str", "default": ""},
    "min_avail_gib": {"type": "float", "default": 1.0},
    "max_spread_gib": {"type": "float", "default": 4.0},
    "allowed_changes": {"type": "list", "elements": "str", "default": []},
    "headroom_gib": {"type": "float", "default": 5.0},
    "textfile": {"type": "path"},
    "textfile_host": {"type": "str", "default": ""},
}


def terms_of(params: dict[str, Any]) -> Terms:
    """What is asked. Raises ValueError, in three parts, for what no server can be held against."""
    for name in ("context_length", "concurrent_requests", "pool_target", "min_avail_gib", "max_spread_gib", "headroom_gib"):
        if not 0 <= params[name] < float("inf"):
            raise ValueError(f"asked for {name}={params[name]}, found that it is no size; give {name} as 0 or more, or leave it out")
    return Terms(
        required_tokens=params["pool_target"] or math.ceil(params["context_length"] * params["concurrent_requests"]),
        instance=params["instance"],
        min_avail_gib=params["min_avail_gib"],
        max_spread_gib=params["max_spread_gib"],
        allowed_changes=tuple(params["allowed_changes"]),
        headroom_gib=params["headroom_gib"],
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    sight = Sight(limited(TIME_LIMIT))
    try:
        terms = terms_of(module.params)
        audit = audit_of(read_host(module.params["state_dir"], Eyes(sight, boot_reader(sight, sight.names), probe_status)), terms)
    except (ValueError, OSError, JournalError) as error:
        module.fail_json(msg=str(error))
    path = module.params["textfile"]
    if not path:
        module.exit_json(changed=False, audit=audit)
    before, after = sight.text(path) or "", metrics_of(audit, module.params["textfile_host"], time.time())
    diff = {"before_header": path, "after_header": path, "before": before, "after": after}
    try:
        if not module.check_mode:
            write_whole(path, after, 0o644)
    except OSError as error:
        audit["findings"].append(unwritten(path, error))
        module.exit_json(changed=False, audit=audit)
    module.exit_json(changed=True, audit=audit, **({"diff": diff} if module._diff else {}))


def unwritten(path: str, error: OSError) -> dict[str, Any]:
    """That the file cannot be written, as a finding of the host."""
    do = "make its directory, or give another path (sglang_audit_textfile)"
    return {"check": "textfile", "rank": None, "asked": f"the metrics in {path}", "found": error.strerror or str(error), "do": do}


if __name__ == "__main__":
    main()
