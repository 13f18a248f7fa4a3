#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: router_worker
short_description: Take a server out of SGLang's router, and put it back
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - With O(state=drained) the worker is removed from the router, which then sends it nothing new, and the module waits until the server has
    no request under way. Those that it has are finished, streams among them.
  - With O(state=present) the worker is added as it was, and the module waits until the router calls it healthy.
  - The router is SGLang's router or Model Gateway, C(sglang-router) 0.1.9 and 0.2.0 to 0.3.2. Another is refused before anything changes.
  - Requests under way are counted by the server itself (C(/v1/loads), or C(/get_load) of SGLang 0.5.3 to 0.5.20), those among them that
    came another way than through this router.
attributes:
  check_mode:
    support: full
    description: Asks the router and the server, and changes nothing. Nothing is waited for.
  diff_mode:
    support: full
    description: Shows whether the router has the worker.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  url:
    description: Address of the router, for example V(http://router:30000).
    type: str
    required: true
  worker:
    description: Address of the server as the router knows it, for example V(http://gpu01:30000).
    type: str
    required: true
  state:
    description: V(drained) is out and without a request under way, V(present) is in and healthy.
    type: str
    choices: [drained, present]
    default: present
  api_key_file:
    description: File with the key of the router's control plane, where it asks for one. Read where the module runs.
    type: path
  worker_api_key_file:
    description: File with the server's own key, where it asks for one. Read where the module runs, and given to the router with the worker.
    type: path
  restore:
    description: RV(restore) of the call that took the worker out. Without it the router gives the worker its own defaults.
    type: dict
    default: {}
  timeout:
    description: Seconds that requests under way may take to end, or the router to call the worker healthy.
    type: int
    default: 300
  force:
    description: Goes on with a warning where requests are still under way after O(timeout), or cannot be counted.
    type: bool
    default: false
  wait:
    description:
      - Whether V(drained) waits until nothing is under way.
      - Where several balancers send requests, take the server out of each without waiting first, and wait then.
    type: bool
    default: true
  validate_certs:
    description: Whether certificates have to be trusted.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Take a server out for maintenance
  inferops.sglang.router_worker:
    url: http://router:30000
    worker: http://gpu01:30000
    state: drained
    timeout: 600
  register: drained

- name: Put it back as it was, if it was in
  inferops.sglang.router_worker:
    url: http://router:30000
    worker: http://gpu01:30000
    restore: "{{ drained.restore }}"
  when: drained.was == 'in'
"""

RETURN = r"""
msg:
  description: What was done, in a sentence.
  returned: always
  type: str
was:
  description: What the router had before, V(in) or V(absent).
  returned: success
  type: str
in_flight:
  description: Requests under way at the end, none where they cannot be counted. With O(state=present) it is none.
  returned: success
  type: int
in_flight_before:
  description: Requests under way at the first look.
  returned: success
  type: int
waited_s:
  description: Seconds waited.
  returned: success
  type: float
others:
  description: Workers beside this one that the router may send requests to.
  returned: success
  type: int
restore:
  description: What of the worker was set by hand, as O(restore) takes it. Keys are not shown by the router and not among it.
  returned: success
  type: dict
reached:
  description: Whether anything is there at all; V(false) only where nobody listens at the address, or the name has none.
  returned: failure
  type: bool
"""

from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._http import KeyFileError, is_away, opener, read_key
from ansible_collections.inferops.sglang.plugins.module_utils._load import Load, read_load
from ansible_collections.inferops.sglang.plugins.module_utils._quiet import Quiet, ended, in_words, wait_quiet
from ansible_collections.inferops.sglang.plugins.module_utils._router import Listing, Router, RouterError, Worker
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "worker": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "present"], "default": "present"},
            "api_key_file": {"type": "path", "no_log": False},
            "worker_api_key_file": {"type": "path", "no_log": False},
            "restore": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 300},
            "force": {"type": "bool", "default": False},
            "wait": {"type": "bool", "default": True},
            "validate_certs": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    for name in ("url", "worker"):
        if not asked[name].startswith(("http://", "https://")):
            module.fail_json(msg=f"{name}: found {asked[name]!r}; give an address that begins with http:// or https://")
    if asked["timeout"] < 0:
        module.fail_json(msg=f"timeout: found {asked['timeout']}; give seconds, 0 or more")
    try:
        key = read_key(asked["api_key_file"] or "", "the router's key")
        worker_key = read_key(asked["worker_api_key_file"] or "", "the server's key")
        router = Router(asked["url"], opener(asked["validate_certs"]), key)
        listing = router.workers()
        change = _Change(module, router, listing, listing.find(asked["worker"]), worker_key)
        result = change.drain() if asked["state"] == "drained" else change.put_back()
    except (RouterError, KeyFileError) as error:
        module.fail_json(msg=str(error), reached=not is_away(error.__cause__))
    module.exit_json(**result)


class _Change:
    """One worker of one router, taken out or put back."""

    def __init__(self, module: AnsibleModule, router: Router, listing: Listing, found: Optional[Worker], worker_key: str) -> None:
        self.module = module
        self.asked = module.params
        self.router = router
        self.listing = listing
        self.found = found
        self.worker_key = worker_key

    def drain(self) -> dict[str, Any]:
        others = self.listing.others(self.asked["worker"])
        if self.found is not None and self.found.healthy is not False and others == 0:
            self.module.warn(
                f"router {self.router.url}: {self.asked['worker']} is its last healthy worker; until it is back every request fails"
            )
        if self.module.check_mode:
            load = self._load()
            return self._result("would be taken out" if self.found else "is not in", Quiet(True, load, load, 0.0), self.found is not None)
        if self.found is not None:
            self.router.remove(self.listing, self.found)
        if not self.asked["wait"]:
            load = self._load()
            return self._result("gets no new requests", Quiet(True, load, load, 0.0), self.found is not None)
        quiet = wait_quiet(self._load, self.asked["timeout"], Clock())
        if not quiet.ok:
            self._not_quiet(quiet)
        words = f"taken out, {ended(quiet)}" if quiet.ok else f"taken out with {in_words(quiet.last)} under way"
        return self._result(words, quiet, self.found is not None)

    def _not_quiet(self, quiet: Quiet) -> None:
        text = (
            f"router {self.router.url}: asked for no request under way at {self.asked['worker']} within {self.asked['timeout']} s, "
            f"found {in_words(quiet.last)}"
        )
        if self.asked["force"]:
            self.module.warn(text + "; going on, as that is asked (force)")
            return
        changed = self.found is not None
        self.module.fail_json(
            msg=text + "; wait longer (timeout, sglang_drain_timeout), or let them fail (force, sglang_drain_force)",
            **self._result("", quiet, changed),
        )

    def put_back(self) -> dict[str, Any]:
        nothing = Quiet(True, Load(None), Load(None), 0.0)
        if self.found is not None and self.found.healthy is not False:
            return self._result("is in", nothing, False)
        if self.module.check_mode:
            return self._result("would be put back", nothing, self.found is None)
        url, timeout = self.asked["worker"], float(self.asked["timeout"])
        if self.found is not None:
            waited = self.router.wait_healthy(url, timeout)
        else:
            waited = self.router.add(self.listing, url, self.asked["restore"], self.worker_key, timeout)
        return self._result(f"put back, healthy after {waited:.1f} s", Quiet(True, Load(None), Load(None), waited), self.found is None)

    def _load(self) -> Load:
        return read_load(self.router.opener, self.asked["worker"], self.worker_key)

    def _result(self, words: str, quiet: Quiet, changed: bool) -> dict[str, Any]:
        before = "in" if self.found is not None else "absent"
        after = {"drained": "absent", "present": "in"}[self.asked["state"]] if changed else before
        result = {
            "changed": changed,
            "was": before,
            "in_flight": quiet.last.requests,
            "in_flight_before": quiet.first.requests,
            "waited_s": round(quiet.waited_s, 1),
            "others": self.listing.others(self.asked["worker"]),
            "restore": dict(self.found.restore) if self.found is not None else {},
            "diff": {"before": f"{self.asked['worker']}: {before}\n", "after": f"{self.asked['worker']}: {after}\n"},
        }
        if words:
            result["msg"] = f"router {self.router.url}: {self.asked['worker']} {words}"
        return result


if __name__ == "__main__":
    main()
