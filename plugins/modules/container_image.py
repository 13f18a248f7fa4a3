#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: container_image
short_description: The image of a container on a host, pulled if it is not there
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Tells the id of an image, and pulls it if it is not there. An image that is there is never pulled again, so nothing is asked of a
    network, and a name that means another image by now changes nothing.
  - The pull runs as a transient unit of systemd, C(sglang-pull-...). A lost connection does not end it, its output is in the journal,
    and another run that asks for the same image joins it.
  - A person at the terminal sees a line on standard error every 30 seconds.
attributes:
  check_mode:
    support: full
    description: Says whether the image would be pulled, and pulls nothing.
  diff_mode:
    support: none
    description: There is no text to compare.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  name:
    description: The image, by tag, by digest or by id.
    type: str
    required: true
  engine:
    description: The engine's program.
    type: str
    choices: [podman, docker]
    default: podman
  pull:
    description: Whether to pull an image that is not there.
    type: bool
    default: true
  timeout:
    description: Seconds that the pull may take.
    type: int
    default: 3600
  since:
    description:
      - What an earlier call returned as RV(progress). The module then returns as soon as it has something new to tell.
      - In a playbook this needs no thought, as the calls that show the progress are made by themselves.
    type: dict
    suboptions:
      invocation_id:
        description: The pull that is waited for.
        type: str
      waited_s:
        description: Seconds that earlier calls waited.
        type: float
        default: 0.0
"""

EXAMPLES = r"""
- name: Have SGLang's image on the host
  inferops.sglang.container_image:
    name: docker.io/lmsysorg/sglang:v0.5.23
  register: sglang

- name: Only look
  inferops.sglang.container_image:
    name: docker.io/lmsysorg/sglang:v0.5.23
    engine: docker
    pull: false
"""

RETURN = r"""
image:
  description: The image, V(null) where it is not there.
  returned: success
  type: dict
  contains:
    id:
      description: What it is known by, the same wherever it came from.
      type: str
      sample: sha256:3b1f6c6d7f0a
    digests:
      description: Names with digests by which a registry knows it.
      type: list
      elements: str
    size_gib:
      description: Size in GiB.
      type: float
waited_s:
  description: Seconds the pull has taken.
  returned: success
  type: float
progress:
  description: What to give as O(since) to the next call, with V(invocation_id) and V(waited_s).
  returned: with O(since), while the pull goes on
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._container import ContainerError, ensure, find
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import LongStepError
from ansible_collections.inferops.sglang.plugins.module_utils._programs import through
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "engine": {"type": "str", "choices": ["podman", "docker"], "default": "podman"},
    "pull": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 3600},
    "since": {"type": "dict", "options": {"invocation_id": {"type": "str"}, "waited_s": {"type": "float", "default": 0.0}}},
}


def have(module: AnsibleModule) -> dict[str, Any]:
    asked = module.params
    engine = module.get_bin_path(asked["engine"])
    if engine is None:
        raise ContainerError(f"the image {asked['name']}", f"no {asked['engine']} on the host", "install it, or name the other engine")

    run = through(module.run_command, "C.UTF-8")
    if module.check_mode or not asked["pull"]:
        image = find(engine, asked["name"], run)
        return {"changed": image is None and asked["pull"], "image": image and image.as_dict(), "waited_s": 0.0}
    since = asked["since"]
    pull = ensure(
        engine, asked["name"], asked["timeout"], run, Clock(), known=(since or {}).get("invocation_id") or None, watched=since is not None
    )
    result = {"changed": pull.pulled, "image": pull.image and pull.image.as_dict(), "waited_s": round(pull.step.elapsed_s, 1)}
    if pull.image is None:
        result["progress"] = {"invocation_id": pull.step.invocation_id, "waited_s": pull.step.elapsed_s}
    return result


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        if module.params["timeout"] < 1:
            raise ContainerError(f"timeout={module.params['timeout']}", "a number that is too small", "give seconds above 0")
        module.exit_json(**have(module))
    except (ContainerError, LongStepError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
