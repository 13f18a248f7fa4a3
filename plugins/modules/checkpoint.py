#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint
short_description: Make a directory hold a complete checkpoint
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Fetches a model from a hub, from a directory of the host (a shared file system) or by C(rsync), if the directory does not hold it.
    Where it does, no network is touched.
  - It is fetched into C(PATH.fetching), as a transient unit that outlives a lost connection, is in the journal, and is joined by the next
    run. Files that are there already with the same content are linked in, the others go on where an earlier run was cut.
  - What was fetched is held against the checksums that the hub or the host which gives it knows, then against O(manifest), then against
    the headers of the weights. Only then does it take the place of what stood there, which stays whole until that moment.
  - A run may be killed at any point. The next one finishes what it left.
  - The directory gets a file C(.inferops-source.json) that tells source, commit, fingerprint and time. A complete directory without it was
    filled by you, and is taken as it is.
  - Only what serving reads is fetched; no second form of the same weights.
  - All sizes are GiB (2^30 bytes).
attributes:
  check_mode:
    support: full
    description: Says what is missing and whether the source would give it. Fetches nothing.
  diff_mode:
    support: none
    description: Files of this size are not shown.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  path:
    description: Directory of the model on the host. Its parent must be on the same file system.
    type: path
    required: true
  source:
    description:
      - C(hub:OWNER/NAME) for the hub, the absolute path of a directory, or what C(rsync) takes
        (C(rsync://HOST/MODULE/PATH), C(HOST:/PATH)).
    type: str
    required: true
  revision:
    description:
      - Branch, tag or commit of the hub's repository. Another one replaces the model. Without it V(main) is taken once.
      - For other sources any word; another word fetches again.
    type: str
    default: ''
  endpoint:
    description: Address of the hub, or of a mirror that speaks its interface.
    type: str
    default: https://huggingface.co
  token_file:
    description: File on the host with the hub's token, mode 0600.
    type: path
  manifest:
    description: File on the host with SHA-256 checksums of the model's files, as C(sha256sum) writes them. Checked when files were fetched.
    type: path
  python:
    description: Interpreter that has C(huggingface_hub), for the hub only. By default the one that runs this module.
    type: path
  timeout:
    description: Seconds that fetching may take; V(0) for as long as it needs.
    type: int
    default: 43200
  peer:
    description:
      - A host that gives its copy in place of the source, as M(inferops.sglang.checkpoint_share) lets it. The record still names O(source).
    type: dict
    suboptions:
      address:
        description: Name or address of that host.
        type: str
        required: true
      port:
        description: TCP port.
        type: int
        required: true
      secret:
        description: The word that it asks for.
        type: str
        required: true
      name:
        description: What to call it in messages and in the record.
        type: str
        default: ''
  check_only:
    description:
      - Only say whether the source gives it and whether there is room, as check mode does. What speaks against it comes back as
        RV(finding), and the task does not fail.
    type: bool
    default: false
  expected_gib:
    description: With O(check_only), how much the model is, where that is known; the source is then not asked.
    type: float
    default: 0
  since:
    description: What an earlier call returned as RV(progress). The action plugin gives it; without it the call returns when all is done.
    type: dict
requirements:
  - systemd 247 or newer
  - rsync, on both sides, for O(peer) and for sources by rsync
seealso:
  - module: inferops.sglang.checkpoint_info
  - module: inferops.sglang.checkpoint_share
"""

EXAMPLES = r"""
- name: The target, at one commit
  inferops.sglang.checkpoint:
    path: /srv/models/kimi-k2.6
    source: hub:moonshotai/Kimi-K2.6
    revision: 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c
    token_file: /etc/sglang/hub-token
    python: /opt/sglang/current/sglang/bin/python

- name: The draft, from a shared file system
  inferops.sglang.checkpoint:
    path: /srv/models/kimi-k2.6-dflash
    source: /mnt/models/kimi-k2.6-dflash
    manifest: /mnt/models/kimi-k2.6-dflash.sha256

- name: Ask early whether a gated model can be had
  inferops.sglang.checkpoint:
    path: /srv/models/kimi-k2.6-dflash
    source: hub:OWNER/NAME
    check_only: true
  register: early

- name: Say what speaks against it
  ansible.builtin.assert:
    that: early.finding is not defined
    fail_msg: "{{ early.finding.text }}"
"""

RETURN = r"""
directory:
  description: The directory, without symbolic links.
  returned: success
  type: str
complete:
  description: Does it hold every byte that the index and the headers promise, and a C(config.json)?
  returned: success
  type: bool
settled:
  description: Is it what was asked, so that nothing has to be fetched?
  returned: success
  type: bool
problems:
  description: What is missing, as M(inferops.sglang.checkpoint_info) names it.
  returned: success
  type: list
  elements: str
fingerprint:
  description: SHA-256 over names and headers of the weights.
  returned: success
  type: str
source:
  description: Where it came from by its record; empty where you filled it.
  returned: success
  type: str
revision:
  description: The commit, where it is known. With O(check_only), that which would be fetched.
  returned: success
  type: str
own:
  description: Did you fill the directory, and not this module?
  returned: success
  type: bool
fetched_gib:
  description: What was fetched for it, also by earlier runs that were cut.
  returned: success
  type: float
total_gib:
  description: Size of the tensors; with O(check_only), of all files that would be there.
  returned: success
  type: float
missing_gib:
  description: What would have to be fetched, as far as it can be told without reading what is there.
  returned: success
  type: float
free_gib:
  description: Free space on the file system.
  returned: success
  type: float
mended:
  description: Steps that an earlier run had left to be taken.
  returned: success
  type: list
  elements: str
notes:
  description: What is worth knowing and changes nothing.
  returned: success
  type: list
  elements: str
finding:
  description: What speaks against it, with C(check), C(asked), C(found), C(do) and C(text).
  returned: with O(check_only), where something does; and on failure
  type: dict
progress:
  description: Where it is, for the next call.
  returned: with O(since), while it goes on
  type: dict
now:
  description: The same, to be shown.
  returned: with O(since), while it goes on
  type: dict
"""

import inspect
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils import _fetch_worker
from ansible_collections.inferops.sglang.plugins.module_utils._fetch import Fetch, Tools, Wish, check_finding
from ansible_collections.inferops.sglang.plugins.module_utils._hub import SourceError, open_url
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import LongStepError
from ansible_collections.inferops.sglang.plugins.module_utils._programs import through

PEER: dict[str, dict[str, Any]] = {
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "secret": {"type": "str", "required": True, "no_log": True},
    "name": {"type": "str", "default": ""},
}
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "source": {"type": "str", "required": True},
    "revision": {"type": "str", "default": ""},
    "endpoint": {"type": "str", "default": "https://huggingface.co"},
    "token_file": {"type": "path", "no_log": False},
    "manifest": {"type": "path"},
    "python": {"type": "path"},
    "timeout": {"type": "int", "default": 43200},
    "peer": {"type": "dict", "options": PEER},
    "check_only": {"type": "bool", "default": False},
    "expected_gib": {"type": "float", "default": 0},
    "since": {"type": "dict"},
}
GIB = 1 << 30
# an early look does not wait for a hub that is busy
EARLY_PATIENCE_S = 30.0


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    only_looks = module.params["check_only"] or module.check_mode
    try:
        fetch = Fetch(wish_of(module.params), _tools(module, only_looks))
        if only_looks:
            result = fetch.check(int(module.params["expected_gib"] * GIB))
            if module.params["check_only"]:
                result["changed"] = False
        else:
            result = fetch.make(module.params["since"])
    except SourceError as error:
        if module.params["check_only"]:
            module.exit_json(changed=False, finding=check_finding(error))
        module.fail_json(msg=str(error), finding=check_finding(error))
    except LongStepError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg=f"asked for {module.params['source']} in {module.params['path']}, found {error.strerror or error} "
            f"at {error.filename}; mend that file system and run again"
        )
    module.exit_json(**result)


def wish_of(params: dict[str, Any]) -> Wish:
    """The module's arguments as what is asked."""
    peer = params["peer"] or {}
    address = peer.get("address", "")
    host = f"[{address}]" if ":" in address else address
    return Wish(
        path=params["path"],
        source=params["source"],
        revision=params["revision"],
        endpoint=params["endpoint"],
        token_file=params["token_file"] or "",
        manifest=params["manifest"] or "",
        python=params["python"] or "",
        timeout_s=params["timeout"],
        peer_url=f"rsync://inferops@{host}:{peer['port']}/model/" if peer else "",
        peer_secret=peer.get("secret", ""),
        peer_name=peer.get("name") or address,
    )


def _tools(module: AnsibleModule, only_looks: bool) -> Tools:
    patience = EARLY_PATIENCE_S if only_looks else 300.0
    return Tools(run=through(module.run_command), opener=open_url, worker=inspect.getsource(_fetch_worker), patience_s=patience)


if __name__ == "__main__":
    main()
