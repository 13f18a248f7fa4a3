#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_share
short_description: Let another host copy a checkpoint of this one for a while
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Runs an rsync daemon as a transient unit. It gives one directory, to the hosts that are named, with a word that is used once, and can
    only read. Its time is limited, so that a lost run leaves nothing open.
  - M(inferops.sglang.checkpoint) takes the other end with O(inferops.sglang.checkpoint#module:peer). No trust between the hosts is needed.
attributes:
  check_mode:
    support: full
    description: Changes nothing.
  diff_mode:
    support: none
    description: No file is shown.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  path:
    description: Directory of the model on this host.
    type: path
    required: true
  state:
    description: V(started) gives it, in place of what this host gave from there before. V(stopped) ends that.
    type: str
    choices: [started, stopped]
    default: started
  port:
    description: TCP port to listen on.
    type: int
    default: 8730
  allow:
    description: Names or addresses of the hosts that may copy. Required for V(started).
    type: list
    elements: str
    default: []
  secret:
    description: The word that they have to know. Required for V(started).
    type: str
  timeout:
    description: Seconds after which it ends by itself.
    type: int
    default: 43200
requirements:
  - systemd
  - rsync
seealso:
  - module: inferops.sglang.checkpoint
"""

EXAMPLES = r"""
- name: Give the model to one other host
  inferops.sglang.checkpoint_share:
    path: /srv/models/kimi-k2.6
    allow: [192.0.2.12]
    secret: "{{ word }}"
"""

RETURN = r"""
unit:
  description: The transient unit.
  returned: success
  type: str
  sample: inferops-share-0123456789ab
finding:
  description: What speaks against it, with C(check), C(asked), C(found), C(do) and C(text).
  returned: failure
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_share import Share, listens, start, stop
from ansible_collections.inferops.sglang.plugins.module_utils._hub import SourceError
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import LongStepError
from ansible_collections.inferops.sglang.plugins.module_utils._programs import through
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
    "port": {"type": "int", "default": 8730},
    "allow": {"type": "list", "elements": "str", "default": []},
    "secret": {"type": "str", "no_log": True},
    "timeout": {"type": "int", "default": 43200},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC, supports_check_mode=True, required_if=[("state", "started", ("allow", "secret"))]
    )
    asked = module.params
    share = Share(asked["path"], asked["port"], asked["allow"], asked["secret"] or "", asked["timeout"])

    run = through(module.run_command)
    changed = True
    try:
        if not module.check_mode:
            if asked["state"] == "started":
                start(share, run, listens, Clock())
            else:
                changed = stop(share, run)
    except SourceError as error:
        module.fail_json(msg=str(error), finding=error.finding.as_dict())
    except LongStepError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, unit=share.unit)


if __name__ == "__main__":
    main()
