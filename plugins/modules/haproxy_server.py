#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: haproxy_server
short_description: Take a server out of HAProxy, and put it back
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - With O(state=drained) HAProxy sends the server nothing new, and the module waits until it has no session under way or queued for it.
    Then the server is in maintenance, so that no sticky session comes to it either.
  - With O(state=ready) it is what it was, and the module waits until HAProxy calls it up.
  - Through the admin socket (C(stats socket ... level admin)). HAProxy forgets what it is told there when it is started again.
attributes:
  check_mode:
    support: full
    description: Asks HAProxy and changes nothing. Nothing is waited for.
  diff_mode:
    support: full
    description: Shows whether the server gets requests.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  socket:
    description: Path of the admin socket, or HOST:PORT.
    type: str
    required: true
  backend:
    description: Name of the backend.
    type: str
    required: true
  server:
    description: Name of the server in it.
    type: str
    required: true
  state:
    description: V(drained) is out and without a session under way, V(ready) is in and up.
    type: str
    choices: [drained, ready]
    default: ready
  timeout:
    description: Seconds that sessions under way may take to end, or HAProxy to call the server up.
    type: int
    default: 300
  force:
    description: Goes on with a warning where sessions are still under way after O(timeout).
    type: bool
    default: false
  wait:
    description:
      - Whether V(drained) waits until nothing is under way.
      - Where several balancers send requests, take the server out of each without waiting first, and wait then.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Take this server out for maintenance
  inferops.sglang.haproxy_server:
    socket: /run/haproxy/admin.sock
    backend: sglang
    server: "{{ inventory_hostname }}"
    state: drained
    timeout: 600
  delegate_to: balancer01
  register: drained

- name: Put it back, if it was in
  inferops.sglang.haproxy_server:
    socket: /run/haproxy/admin.sock
    backend: sglang
    server: "{{ inventory_hostname }}"
    state: ready
  delegate_to: balancer01
  when: drained.was == 'in'
"""

RETURN = r"""
msg:
  description: What was done, in a sentence.
  returned: always
  type: str
was:
  description: What HAProxy had before, V(in) or V(out). A server that is down by HAProxy's own checks is in.
  returned: success
  type: str
in_flight:
  description: Sessions under way or queued at the end.
  returned: success
  type: int
in_flight_before:
  description: Sessions under way or queued at the first look.
  returned: success
  type: int
waited_s:
  description: Seconds waited.
  returned: success
  type: float
others:
  description: Servers of the backend beside this one that get requests.
  returned: success
  type: int
status:
  description: HAProxy's own word for the server before, for example V(UP), V(DOWN) or V(MAINT).
  returned: success
  type: str
restore:
  description: Nothing; HAProxy keeps all it knows of the server. It stands here as that of M(inferops.sglang.router_worker) does.
  returned: success
  type: dict
reached:
  description: Whether anything is there at all; V(false) only where nobody listens at the address, or the name has none.
  returned: failure
  type: bool
"""

import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._haproxy import Haproxy, HaproxyError, Server, bad_address, talker
from ansible_collections.inferops.sglang.plugins.module_utils._http import is_away
from ansible_collections.inferops.sglang.plugins.module_utils._load import Load
from ansible_collections.inferops.sglang.plugins.module_utils._quiet import Quiet, ended, in_words, wait_quiet
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

# in HAProxy's own language: a name has no other characters, and a command ends at one of them
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "socket": {"type": "str", "required": True},
            "backend": {"type": "str", "required": True},
            "server": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "ready"], "default": "ready"},
            "timeout": {"type": "int", "default": 300},
            "force": {"type": "bool", "default": False},
            "wait": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    refuse_odd_options(module)
    haproxy = Haproxy(asked["socket"], asked["backend"], asked["server"], talker(asked["socket"]))
    try:
        found = haproxy.read()
        result = drain(module, haproxy, found) if asked["state"] == "drained" else put_back(module, haproxy, found)
    except HaproxyError as error:
        module.fail_json(msg=str(error), reached=not is_away(error.__cause__))
    module.exit_json(**result)


def refuse_odd_options(module: AnsibleModule) -> None:
    asked = module.params
    problem = bad_address(asked["socket"])
    if problem:
        module.fail_json(msg=f"socket: found {asked['socket']!r}, {problem}; give the path of the admin socket, or HOST:PORT")
    for name in ("backend", "server"):
        if not _NAME.fullmatch(asked[name]):
            module.fail_json(msg=f"{name}: found {asked[name]!r}; give a name as HAProxy takes it: letters, digits and _ . : -")
    if asked["timeout"] < 0:
        module.fail_json(msg=f"timeout: found {asked['timeout']}; give seconds, 0 or more")


def drain(module: AnsibleModule, haproxy: Haproxy, found: Server) -> dict[str, Any]:
    label = _label(haproxy)
    if found.serves and found.others == 0:
        module.warn(f"{label} is the last server of its backend that is up; until it is back every request fails")
    load = Load(found.sessions)
    if module.check_mode:
        return _result(haproxy, found, "is out" if found.out else "would be taken out", Quiet(True, load, load, 0.0), not found.out)
    if not found.out:
        haproxy.set_state("drain")
    if not module.params["wait"]:
        return _result(haproxy, found, "gets no new requests", Quiet(True, load, load, 0.0), not found.out)
    quiet = wait_quiet(haproxy.load, module.params["timeout"], Clock())
    if not quiet.ok and not module.params["force"]:
        module.fail_json(
            msg=f"{label}: asked for no session under way within {module.params['timeout']} s, found {in_words(quiet.last)}; "
            "wait longer (timeout, sglang_drain_timeout), or let them fail (force, sglang_drain_force)",
            **_result(haproxy, found, "", quiet, not found.out),
        )
    if not quiet.ok:
        module.warn(f"{label}: {in_words(quiet.last)} under way after {module.params['timeout']} s; going on, as that is asked (force)")
    # drained, a server still gets the requests of sticky sessions
    if found.status != "MAINT":
        haproxy.set_state("maint")
    words = f"taken out with {in_words(quiet.last)} under way"
    if quiet.ok:
        words = f"taken out, {ended(quiet)}"
    return _result(haproxy, found, words, quiet, found.status != "MAINT")


def put_back(module: AnsibleModule, haproxy: Haproxy, found: Server) -> dict[str, Any]:
    load = Load(found.sessions)
    nothing = Quiet(True, load, load, 0.0)
    if found.serves:
        return _result(haproxy, found, "is in", nothing, False)
    if module.check_mode:
        return _result(haproxy, found, "would be put back", nothing, found.out)
    if found.out:
        haproxy.set_state("ready")
    waited = haproxy.wait_serving(module.params["timeout"])
    return _result(haproxy, found, f"put back, up after {waited:.1f} s", Quiet(True, load, load, waited), found.out)


def _label(haproxy: Haproxy) -> str:
    return f"haproxy {haproxy.name} {haproxy.backend}/{haproxy.server}"


def _result(haproxy: Haproxy, found: Server, words: str, quiet: Quiet, changed: bool) -> dict[str, Any]:
    label = _label(haproxy)
    before = "out" if found.out else "in"
    after = {"in": "out", "out": "in"}[before] if changed and found.status != "DRAIN" else before
    result: dict[str, Any] = {
        "changed": changed,
        "was": before,
        "in_flight": quiet.last.requests,
        "in_flight_before": quiet.first.requests,
        "waited_s": round(quiet.waited_s, 1),
        "others": found.others,
        "status": found.status,
        "restore": {},
        "diff": {"before": f"{label}: {before}\n", "after": f"{label}: {after}\n"},
    }
    if words:
        result["msg"] = f"{label} {words}"
    return result


if __name__ == "__main__":
    main()
