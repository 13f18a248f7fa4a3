#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release
short_description: SGLang in a virtual environment of its own, one for each request
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Builds a virtual environment with a release of SGLang under O(root), in a folder named by the release and by a hash over the request.
    The content of O(wheel), O(constraints) and O(lock_file) and the version of O(python) are part of the request, so another lock file
    is another environment, and the same request is built once.
  - The build runs as a transient unit of systemd, C(sglang-build-...). A lost connection does not end it, its output is in the
    journal, and another run that asks for the same joins it. The environment is marked as finished last, so that a build
    which was killed is told from a finished one and is made anew.
  - A finished environment is looked at each time, without starting anything. If its interpreter is gone, if packages are missing or are
    others by now, or if it holds another version, it is built anew. The broken one is kept aside until the new one stands, and
    comes back if that cannot be built.
  - A link for each instance, C(current/INSTANCE) under O(root), leads to the environment that it was accepted with. What no link, no
    unit file, no accepted configuration and no process uses can be pruned by count.
  - A person at the terminal sees a line on standard error when the installer is at something else, and every 30 seconds.
  - No package of the operating system is installed. Where Python's module C(venv) is missing, the error names the package that brings it.
attributes:
  check_mode:
    support: full
    description: Says what would be done, and changes nothing.
  diff_mode:
    support: none
    description: There is no text to compare.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  state:
    description:
      - V(present) builds the environment of the request, or checks the one in O(existing).
      - V(current) makes the link of O(instance) lead to O(path), and prunes.
      - V(absent) removes the link of O(instance), and prunes. Call it when the unit and the state of the instance are gone,
        for an environment that anything still names stays.
    type: str
    choices: [present, current, absent]
    default: present
  root:
    description: Folder of the environments.
    type: path
    default: /opt/sglang
  version:
    description: Release of SGLang. What is installed must have this version, whatever it comes from.
    type: str
  existing:
    description:
      - A virtual environment that you made, to use in place of one under O(root). It is checked for an interpreter and for O(version),
        and never changed.
    type: path
  wheelhouse:
    description: Directory on the host with the wheels of SGLang and of all it needs. Nothing else is then asked.
    type: path
  wheel:
    description: A wheel on the host to install in place of the release.
    type: path
  git:
    description:
      - A reference to install in place of the release, as pip takes it (C(git+https://HOST/REPO@COMMIT#subdirectory=python)).
      - It is built once. A branch that moves is not followed, so give a commit or a tag.
      - A version that is on its way to O(version) (C(0.5.24.dev3) to C(0.5.24)) is taken for it.
    type: str
  index_url:
    description:
      - Package index in place of the installer's own. A user and a password in it are seen by root alone, and are no part of the request.
    type: str
  extra_index_url:
    description: One more package index, for example of CUDA builds of PyTorch.
    type: str
  requirements:
    description: More requirements to install beside SGLang.
    type: list
    elements: str
    default: []
  constraints:
    description: A constraints file on the host.
    type: path
  lock_file:
    description:
      - A requirements file on the host with a version and hashes for everything, SGLang included. Nothing else is then installed.
    type: path
  python:
    description: Interpreter that makes the environment.
    type: path
    default: /usr/bin/python3
  installer:
    description: What fills the environment. V(auto) takes C(uv) where it is in the path, else C(pip).
    type: str
    choices: [auto, uv, pip]
    default: auto
  timeout:
    description: Seconds that the installation may take.
    type: int
    default: 3600
  instance:
    description: Name of the instance whose link to set or to remove.
    type: str
  path:
    description: Environment that the instance was accepted with.
    type: path
  keep:
    description:
      - How many environments that nothing uses any more stay, those that were used last.
      - With O(state=absent) and no other instance left, none stays.
    type: int
    default: 2
  state_dir:
    description: Folder of the instances' states. What an accepted configuration in it names is not pruned.
    type: path
    default: /var/lib/sglang
  since:
    description:
      - What an earlier call returned as RV(progress). The module then returns as soon as it has something new to tell.
      - In a playbook this needs no thought, as the calls that show the progress are made by themselves.
    type: dict
    suboptions:
      invocation_id:
        description: The build that is waited for.
        type: str
      phase:
        description: What it was at.
        type: str
      waited_s:
        description: Seconds that earlier calls waited.
        type: float
        default: 0.0
"""

EXAMPLES = r"""
- name: Install a release from wheels, without any network
  inferops.sglang.release:
    version: 0.5.23
    wheelhouse: /srv/wheels
  register: sglang

- name: Install a branch with CUDA builds of PyTorch
  inferops.sglang.release:
    version: 0.5.24
    git: git+https://git.example.com/sglang.git@0a1b2c3d#subdirectory=python
    extra_index_url: https://wheels.example.com/cu130

- name: Note what the instance runs, and keep two others for a way back
  inferops.sglang.release:
    state: current
    instance: k26
    path: "{{ sglang.release.path }}"
    keep: 2
"""

RETURN = r"""
python:
  description: The interpreter of the environment.
  returned: with O(state=present), unless what the request points at is missing
  type: str
release:
  description: The environment as it was found, or as it was built. In check mode also if it is not there yet.
  returned: with O(state=present), unless what the request points at is missing
  type: dict
  contains:
    path:
      description: Where it lies.
      type: str
    complete:
      description: Whether it is finished and whole.
      type: bool
    kind:
      description:
        - What is wrong with it, V(absent), V(unfinished), V(unreadable), V(interpreter), V(packages) or V(version). Empty if nothing is.
      type: str
    reason:
      description: The same in words.
      type: str
    version:
      description: Version of the SGLang in it.
      type: str
removed:
  description: Environments that were pruned. Empty in check mode.
  returned: with O(state=current) and O(state=absent)
  type: list
  elements: str
used:
  description: Environments that are in use, with who uses them. Empty in check mode.
  returned: with O(state=current) and O(state=absent)
  type: dict
phase:
  description: What the installer is at.
  returned: with O(since), while it goes on
  type: str
size_gb:
  description: Size of what was installed so far, in 10^9 bytes.
  returned: with O(since)
  type: float
waited_s:
  description: Seconds the build has taken.
  returned: with O(state=present)
  type: float
progress:
  description: What to give as O(since) to the next call, with V(invocation_id), V(phase) and V(waited_s).
  returned: with O(since), while it goes on
  type: dict
"""

import os
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import LongStepError
from ansible_collections.inferops.sglang.plugins.module_utils._programs import through
from ansible_collections.inferops.sglang.plugins.module_utils._release import (
    ReleaseError,
    ReleaseState,
    Request,
    path_of,
    state_of,
    state_of_existing,
)
from ansible_collections.inferops.sglang.plugins.module_utils._release_build import (
    LOCK,
    Host,
    Known,
    Place,
    ensure,
    locked,
    remove,
    settle,
    size_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._release_output import os_release
from ansible_collections.inferops.sglang.plugins.module_utils._release_store import (
    Pruned,
    Store,
    drop_link,
    left_over,
    link_of,
    linked,
    prune,
    remove_release,
    set_link,
    unfinished,
)
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "current", "absent"], "default": "present"},
    "root": {"type": "path", "default": "/opt/sglang"},
    "version": {"type": "str"},
    "existing": {"type": "path"},
    "wheelhouse": {"type": "path"},
    "wheel": {"type": "path"},
    "git": {"type": "str"},
    "index_url": {"type": "str"},
    "extra_index_url": {"type": "str"},
    "requirements": {"type": "list", "elements": "str", "default": []},
    "constraints": {"type": "path"},
    "lock_file": {"type": "path"},
    "python": {"type": "path", "default": "/usr/bin/python3"},
    "installer": {"type": "str", "choices": ["auto", "uv", "pip"], "default": "auto"},
    "timeout": {"type": "int", "default": 3600},
    "instance": {"type": "str"},
    "path": {"type": "path"},
    "keep": {"type": "int", "default": 2},
    "state_dir": {"type": "path", "default": "/var/lib/sglang"},
    "since": {
        "type": "dict",
        "options": {
            "invocation_id": {"type": "str"},
            "phase": {"type": "str"},
            "waited_s": {"type": "float", "default": 0.0},
        },
    },
}


def this_host(module: AnsibleModule) -> Host:
    return Host(
        run=through(module.run_command, "C.UTF-8"),
        clock=Clock(),
        which=module.get_bin_path,
        environment=os.environ,
        os_release=os_release(read_os_release()),
    )


def read_os_release() -> str:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            continue
    return ""


def result_of(state: ReleaseState) -> dict[str, Any]:
    return {"python": f"{state.path}/bin/python", "release": state.as_dict()}


def check_existing(module: AnsibleModule, request: Request) -> None:
    state = state_of_existing(module.params["existing"].rstrip("/"), request)
    if not state.complete:
        raise ReleaseError(
            f"SGLang {request.version} in the existing environment {state.path}",
            f"that {state.reason}",
            "mend it, or give the version that is in it; it was not changed",
        )
    module.exit_json(changed=False, waited_s=0.0, **result_of(state))


def build(module: AnsibleModule, request: Request) -> None:
    asked, host = module.params, this_host(module)
    path = path_of(asked["root"], request, host.run)
    if module.check_mode:
        state = state_of(path, request)
        module.exit_json(changed=not state.complete, waited_s=0.0, **result_of(state))
    since = asked["since"]
    known = None if since is None else Known(since["invocation_id"] or "", since["phase"] or "")
    place = Place(path)
    news = ensure(request, place, asked["timeout"], host, known)
    result = {"changed": news.built, "waited_s": round(news.elapsed_s, 1), **result_of(news.state)}
    if known is not None and news.built:
        result["size_gb"] = round(size_of(place.path, place.build) / 1e9, 1)
    if news.pending and news.phase is not None:
        progress = {"invocation_id": news.invocation_id, "phase": news.phase.kind, "waited_s": news.elapsed_s}
        module.exit_json(**result, phase=news.phase.text, progress=progress)
    module.exit_json(**result)


def change_link(module: AnsibleModule) -> None:
    asked = module.params
    store, keep = Store(asked["root"].rstrip("/") or "/", asked["state_dir"]), asked["keep"]
    host = this_host(module)
    wanted: Optional[str] = asked["path"].rstrip("/") if asked["state"] == "current" else None
    changed = link_of(store, asked["instance"]) != wanted
    if wanted is not None and not os.path.isdir(wanted):
        raise ReleaseError(f"a link to {wanted}", "no such directory", "give the path of an environment that was built")
    if module.check_mode:
        module.exit_json(changed=changed, removed=[], used={})
    with locked(LOCK):
        if changed and wanted is not None:
            set_link(store, asked["instance"], wanted)
        elif changed:
            drop_link(store, asked["instance"])
        # nobody is left who could want to go back
        pruned = tidy(store, 0 if wanted is None and not linked(store) else keep, host)
        if wanted is None:
            remove_empty(store.root)
    module.exit_json(changed=changed or bool(pruned.removed), removed=sorted(pruned.removed), used=pruned.used)


def tidy(store: Store, keep: int, host: Host) -> Pruned:
    for path in left_over(store):
        remove(path)
    for name in unfinished(store):
        settle(Place(store.path(name)), host)
    return prune(store, keep, lambda path: remove_release(path, remove))


def remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        # not empty, a mount point, or not there
        return


def check_values(module: AnsibleModule) -> None:
    asked = module.params
    if asked["timeout"] < 1 or asked["keep"] < 0:
        numbers = f"timeout={asked['timeout']} and keep={asked['keep']}"
        raise ReleaseError(numbers, "a number that is too small", "give seconds above 0, and a count of 0 or more")
    instance = asked["instance"]
    if instance is not None and (not instance or "/" in instance or instance.startswith(".")):
        raise ReleaseError(f"the instance {instance!r}", "that it cannot be the name of a link", "give the name of an instance")


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[
            ["state", "present", ["version"]],
            ["state", "current", ["instance", "path"]],
            ["state", "absent", ["instance"]],
        ],
        supports_check_mode=True,
    )
    try:
        check_values(module)
        if module.params["state"] != "present":
            change_link(module)
        request = Request.of(module.params)
        if module.params["existing"]:
            check_existing(module, request)
        build(module, request)
    except (ReleaseError, LongStepError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
