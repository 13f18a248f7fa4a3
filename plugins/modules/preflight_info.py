#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_info
short_description: Hold a host against the server that shall run on it
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads what a host is (service manager, unit, cards and who holds them, memory, disk, ports, limits, environment, models) and says what
    of it speaks against the server that is asked for. All of it at once, before anything is changed.
  - What speaks against it is returned in RV(findings), not failed. Each finding has the name of its check, by which it can be allowed.
  - The role C(inferops.sglang.sglang) calls it first; its checks are listed in the role's documentation.
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  instance:
    description: Name of the service.
    type: str
    required: true
  state:
    description: With V(absent) only what a removal depends on is read and judged.
    type: str
    choices: [present, absent]
    default: present
  sglang_version:
    description: SGLang release that shall run.
    type: str
    required: true
  device:
    description: SGLang's C(--device). On V(cpu) no card is looked at.
    type: str
    choices: [cuda, cpu]
    default: cuda
  host:
    description: Address to listen on.
    type: str
    default: 127.0.0.1
  port:
    description: Port to listen on.
    type: int
    default: 30000
  flags:
    description: Flags of the server by name without dashes, as it gets them; V(true) for a switch.
    type: dict
    default: {}
  environment:
    description: Environment of the server.
    type: dict
    default: {}
  required_tokens:
    description: Tokens that the pool of every rank must hold.
    type: int
    default: 0
  model:
    description: Directory of the target model.
    type: path
  draft_model:
    description: Directory of the draft model.
    type: path
  model_source:
    description: Where the target comes from if it is not complete. Empty expects it to be there.
    type: str
    default: ''
  draft_model_source:
    description: The same of the draft.
    type: str
    default: ''
  model_revision:
    description: Revision that is asked of the target.
    type: str
    default: ''
  draft_model_revision:
    description: The same of the draft.
    type: str
    default: ''
  weights_given:
    description: Models whose weight memory is told, so that a directory with no more than a C(config.json) will do.
    type: list
    elements: str
    choices: [model, draft]
    default: []
  gpus:
    description: Cards of the instance by index or UUID; empty for all.
    type: list
    elements: str
    default: []
  gpu_free_gib:
    description: Free memory of the cards, if it is told; then they need not be readable.
    type: list
    elements: float
    default: []
  install_method:
    description: How SGLang comes to the host.
    type: str
    choices: [venv, existing, container]
    default: venv
  release:
    description: What to install, as the module M(inferops.sglang.release) takes it.
    type: dict
    default: {}
  root:
    description: Directory of the environments.
    type: path
    default: /opt/sglang
  existing_environment:
    description: The environment of O(install_method=existing).
    type: path
    default: ''
  container_engine:
    description: The program of O(install_method=container).
    type: str
    default: podman
  user:
    description: User of the service.
    type: str
    default: sglang
  group:
    description: Group of the service.
    type: str
    default: sglang
  state_dir:
    description: Directory of the records.
    type: path
    default: /var/lib/sglang
  host_memory_per_rank_gib:
    description: GiB of host memory that must be available for each rank; V(0) does not judge it.
    type: float
    default: 0
  release_gib:
    description: GiB of disk that a new environment takes; V(0) does not judge it.
    type: float
    default: 0
  environment_files:
    description: Environment files that the unit names; one that begins with a dash may be missing.
    type: list
    elements: str
    default: []
  named_files:
    description: Paths that must be there, by the name of the variable that names them; empty paths are left out.
    type: dict
    default: {}
  secret_files:
    description: The same of files with secrets, which only their owner may read.
    type: dict
    default: {}
  adopt:
    description: A unit whose server the instance takes over, so that what it holds counts as free.
    type: str
    default: ''
  files:
    description: Files whose text is wanted.
    type: list
    elements: path
    default: []
  allowed:
    description: Names of checks whose findings are notes.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Look at the host
  inferops.sglang.preflight_info:
    instance: sglang
    sglang_version: 0.5.23
    model: /srv/models/kimi-k2.6
    flags: {model-path: /srv/models/kimi-k2.6, tp-size: 8, context-length: 200000}
    release: {version: 0.5.23}
    host_memory_per_rank_gib: 2.5
    release_gib: 15
  register: host

- name: Refuse it with all that was found
  ansible.builtin.assert:
    that: host.findings | length == 0
    fail_msg: "{{ host.findings | map(attribute='text') | join('\n') }}"
"""

RETURN = r"""
findings:
  description: What speaks against the host, the host's own first, then its cards, then models and flags.
  returned: always
  type: list
  elements: dict
  contains:
    check:
      description: Name of the check, as O(allowed) takes it.
      type: str
    asked:
      description: What was asked for.
      type: str
    found:
      description: What was found.
      type: str
    do:
      description: What to do.
      type: str
    text:
      description: All of it in one line.
      type: str
  sample: []
notes:
  description: What is worth knowing and refuses nothing; findings that are allowed among them.
  returned: always
  type: list
  elements: str
  sample: []
release:
  description: The environment that is asked for; empty in a container.
  returned: always
  type: dict
  contains:
    path:
      description: Where it lies or will lie.
      type: str
    complete:
      description: Is it there and whole?
      type: bool
    kind:
      description: What is wrong with it, as one word; empty where nothing is.
      type: str
    reason:
      description: The same in words.
      type: str
    version:
      description: Version of the SGLang inside.
      type: str
  sample: {path: /opt/sglang/0.5.23-1a2b3c4d, complete: true, kind: '', reason: '', version: 0.5.23}
files:
  description: Text of each of O(files); none for one that is not there.
  returned: always
  type: dict
  sample: {}
unit:
  description: The unit of the instance.
  returned: always
  type: dict
  contains:
    name:
      description: Its full name.
      type: str
    path:
      description: Where its file is or will be.
      type: str
    text:
      description: Text of its file; none where there is none, or where it is masked.
      type: str
    instance:
      description: The instance of the role that it was written for; empty where somebody else wrote it, or none is there.
      type: str
    load_state:
      description: As the service manager says it (V(loaded), V(not-found), V(masked)).
      type: str
    active_state:
      description: As the service manager says it.
      type: str
    main_pid:
      description: Its main process; V(0) where none runs.
      type: int
    drop_ins:
      description: Paths of its drop-ins.
      type: list
      elements: str
accounts:
  description: Is there such a user, and such a group?
  returned: always
  type: dict
  sample: {user: true, group: true}
gpus:
  description:
    - The cards that the ranks of this host take, with all that M(inferops.sglang.gpu_info) returns of each.
      Empty where they cannot be read.
    - On O(device=cpu) the host's memory.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: Number of the card.
      type: int
    free_gib:
      description: Free memory in GiB.
      type: float
    startable_gib:
      description: GiB that a start will find free, once the instance's own processes have ended.
      type: float
processes:
  description: Processes on the cards of O(gpus), with all that M(inferops.sglang.gpu_info) returns of each.
  returned: always
  type: list
  elements: dict
  contains:
    pid:
      description: Process id.
      type: int
    own:
      description: Is it one of the instance itself?
      type: bool
tool:
  description: The tool that the cards were read with, V(nvidia-smi) or V(rocm-smi); empty where there is none.
  returned: always
  type: str
driver_version:
  description: Version of the driver; empty where it is not told.
  returned: always
  type: str
  sample: 580.95.05
checkpoints:
  description: What is there of V(model) and V(draft).
  returned: always
  type: dict
  sample:
    model:
      path: /srv/models/kimi-k2.6
      present: true
      complete: true
      settled: true
      source: hub:moonshotai/Kimi-K2.6
      revision: ''
      problems: []
      fingerprint: 8d3f0f4c6c0e1c3a8f0d9c3f7b6f0f3b4c4f1f0e4b0d2a9e8c7b6a5f4e3d2c1b
      total_gib: 554.3
      commit: ''
      signature: 0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9
      missing_gib: null
instances:
  description: Other servers of the role on this host.
  returned: always
  type: list
  elements: dict
  sample: [{unit: sglang-b.service, port: 30001, gpus: ["4", "5"]}]
systemd_version:
  description: Version of the service manager; none where it does not answer.
  returned: always
  type: int
  sample: 252
python_version:
  description: Version of the interpreter that would make the environment; empty where it was not asked.
  returned: always
  type: str
  sample: 3.11.2
memory_available_gib:
  description: Host memory that is available, with what the instance itself will give back.
  returned: always
  type: float
  sample: 900.1
disks:
  description: Filesystems by what will lie on them.
  returned: always
  type: dict
  sample: {/opt/sglang: {mount: /, free_gib: 70.2}}
"""

import grp
import os
import pwd
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import model_config
from ansible_collections.inferops.sglang.plugins.module_utils._flags import text_of
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import TIME_LIMIT
from ansible_collections.inferops.sglang.plugins.module_utils._host import Sight, read_manager, read_unit
from ansible_collections.inferops.sglang.plugins.module_utils._host_facts import Places, read_facts
from ansible_collections.inferops.sglang.plugins.module_utils._preflight import (
    Ask,
    Facts,
    host_findings,
    removal_findings,
    right_findings,
    verdict_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._preflight_cards import card_findings, free_for_us, used_cards
from ansible_collections.inferops.sglang.plugins.module_utils._preflight_models import (
    FLAG_OPTIONS,
    Server,
    model_findings,
    pool_flags,
    sizes_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._programs import limited
from ansible_collections.inferops.sglang.plugins.module_utils._service import unit_name
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import read_unit as read_unit_file

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "instance": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "sglang_version": {"type": "str", "required": True},
    "device": {"type": "str", "choices": ["cuda", "cpu"], "default": "cuda"},
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "default": 30000},
    "flags": {"type": "dict", "default": {}},
    "environment": {"type": "dict", "default": {}},
    "required_tokens": {"type": "int", "default": 0, "no_log": False},
    "model": {"type": "path"},
    "draft_model": {"type": "path"},
    "model_source": {"type": "str", "default": ""},
    "draft_model_source": {"type": "str", "default": ""},
    "model_revision": {"type": "str", "default": ""},
    "draft_model_revision": {"type": "str", "default": ""},
    "weights_given": {"type": "list", "elements": "str", "choices": ["model", "draft"], "default": []},
    "gpus": {"type": "list", "elements": "str", "default": []},
    "gpu_free_gib": {"type": "list", "elements": "float", "default": []},
    "install_method": {"type": "str", "choices": ["venv", "existing", "container"], "default": "venv"},
    "release": {"type": "dict", "default": {}},
    "root": {"type": "path", "default": "/opt/sglang"},
    "existing_environment": {"type": "path", "default": ""},
    "container_engine": {"type": "str", "default": "podman"},
    "user": {"type": "str", "default": "sglang"},
    "group": {"type": "str", "default": "sglang"},
    "state_dir": {"type": "path", "default": "/var/lib/sglang"},
    "host_memory_per_rank_gib": {"type": "float", "default": 0},
    "release_gib": {"type": "float", "default": 0},
    "environment_files": {"type": "list", "elements": "str", "default": []},
    "named_files": {"type": "dict", "default": {}},
    "secret_files": {"type": "dict", "default": {}, "no_log": False},
    "adopt": {"type": "str", "default": ""},
    "files": {"type": "list", "elements": "path", "default": []},
    "allowed": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(changed=False, **preflight(module.params, Sight(limited(TIME_LIMIT))))


def preflight(params: dict[str, Any], sight: Sight) -> dict[str, Any]:
    """The module's arguments as its result."""
    ask = _ask(params)
    missing_right = list(right_findings(os.geteuid()))
    if missing_right:
        facts = Facts(manager=read_manager(sight), unit=read_unit(sight, unit_name(ask.instance)))
        return {**verdict_of(missing_right, frozenset()).as_dict(), **_shown(ask, facts), "files": {}, "accounts": _accounts(params)}
    if params["state"] == "absent":
        facts = Facts(manager=read_manager(sight), unit=read_unit(sight, unit_name(ask.instance)))
        verdict = verdict_of(removal_findings(facts), frozenset(params["allowed"]))
    else:
        facts = read_facts(ask, _places(params), sight)
        verdict = verdict_of(_said(params, ask, facts), frozenset(params["allowed"]))
    return {**verdict.as_dict(), **_shown(ask, facts), "files": _texts(params, sight), "accounts": _accounts(params)}


def _said(params: dict[str, Any], ask: Ask, facts: Facts) -> Any:
    yield from host_findings(ask, facts)
    yield from card_findings(ask, facts)
    yield from model_findings(ask, facts, _server(params, facts), model_config)


def _ask(params: dict[str, Any]) -> Ask:
    release = params["release"]
    sizes = sizes_of(params["flags"])
    return Ask(
        instance=params["instance"],
        version=params["sglang_version"],
        device=params["device"],
        tp_size=sizes["tp_size"],
        pp_size=sizes["pp_size"],
        dp_size=sizes["dp_size"],
        nodes=sizes["nnodes"],
        base_gpu=sizes["base_gpu_id"],
        gpu_step=sizes["gpu_id_step"],
        dp_attention=params["flags"].get("enable-dp-attention") is True,
        host=params["host"],
        port=params["port"],
        gpus=tuple(params["gpus"]),
        free_given=bool(params["gpu_free_gib"]),
        method=params["install_method"],
        installer=release.get("installer") or "auto",
        engine=params["container_engine"],
        python=release.get("python") or "/usr/bin/python3",
        custom_source=_is_custom(release),
        sources={"model": params["model_source"], "draft": params["draft_model_source"]},
        weights_given=frozenset(params["weights_given"]),
        memory_per_rank_gib=params["host_memory_per_rank_gib"],
        release_gib=params["release_gib"],
        root=params["root"],
        state_dir=params["state_dir"],
        environment_files=tuple(params["environment_files"]),
        named_files=params["named_files"],
        secret_files=params["secret_files"],
    )


def _is_custom(release: dict[str, Any]) -> bool:
    """Whether SGLang or the CUDA it is built for may be another one than that of the release."""
    return any(release.get(name) for name in ("wheel", "git", "lock_file", "extra_index_url"))


def _is_branch(release: dict[str, Any], version: str) -> bool:
    """Whether SGLang is one of somebody's own, as its source or its version says."""
    return bool(release.get("wheel") or release.get("git") or release.get("lock_file")) or "+" in version or "dev" in version


def _places(params: dict[str, Any]) -> Places:
    return Places(
        models={"model": params["model"] or "", "draft": params["draft_model"] or ""},
        revisions={"model": params["model_revision"], "draft": params["draft_model_revision"]},
        release=params["release"],
        existing_environment=params["existing_environment"],
        adopt=params["adopt"],
    )


def _server(params: dict[str, Any], facts: Facts) -> Server:
    given = pool_flags(params["flags"])
    errors = tuple(_odd(name, value) for name, value in given.items() if not _fits(name, value))
    values = {} if errors else dict(ArgumentSpecValidator(FLAG_OPTIONS).validate(given).validated_parameters)
    capabilities = [card.compute_capability for card in facts.accelerators.cards if card.compute_capability] if facts.accelerators else []
    return Server(
        flags=params["flags"],
        environment=params["environment"],
        values={**values, "compute_capability": min(capabilities, default=None)},
        errors=errors,
        required_tokens=params["required_tokens"],
        has_api_key=bool(params["secret_files"].get("sglang_api_key_file")),
        has_ddtree=params["install_method"] != "venv" or _is_branch(params["release"], params["sglang_version"]),
    )


def _fits(name: str, value: Any) -> bool:
    return not ArgumentSpecValidator({name: FLAG_OPTIONS[name]}).validate({name: value}).error_messages


def _odd(name: str, value: Any) -> str:
    option = FLAG_OPTIONS[name]
    kinds = {"int": "no whole number", "float": "no number", "bool": "neither true nor false"}
    wanted = f"none of {', '.join(filter(None, option['choices']))}" if "choices" in option else kinds.get(option["type"], "no text")
    return f"--{name.replace('_', '-')} {text_of(value)}, which is {wanted}"


def _shown(ask: Ask, facts: Facts) -> dict[str, Any]:
    found = facts.accelerators
    cards = found.cards if found else ()
    memory = facts.memory
    return {
        "release": facts.release.as_dict() if facts.release else {},
        "unit": {**asdict(facts.unit), "drop_ins": list(facts.unit.drop_ins), "instance": read_unit_file(facts.unit.text or "").instance},
        "gpus": [{**card.as_dict(), "startable_gib": round(free_for_us(card, facts), 3)} for card in used_cards(ask, cards)],
        "processes": [{**item.as_dict(), "own": item.pid in facts.own_pids} for item in (found.processes if found else ())],
        "tool": found.tool if found else "",
        "driver_version": found.driver_version if found else "",
        "checkpoints": {name: {**asdict(item), "problems": list(item.problems)} for name, item in facts.checkpoints.items()},
        "instances": [{**asdict(other), "gpus": list(other.gpus)} for other in facts.instances],
        "systemd_version": facts.manager.version,
        "python_version": facts.interpreter.version if facts.interpreter else "",
        "memory_available_gib": round(memory.available_gib + memory.own_gib, 3) if memory else 0.0,
        "disks": {path: {"mount": space.mount, "free_gib": round(space.free_gib, 3)} for path, space in facts.spaces.items()},
    }


def _texts(params: dict[str, Any], sight: Sight) -> dict[str, Any]:
    return {path: sight.text(path) for path in params["files"]}


def _accounts(params: dict[str, Any]) -> dict[str, bool]:
    return {"user": _exists(pwd.getpwnam, params["user"]), "group": _exists(grp.getgrnam, params["group"])}


def _exists(look: Callable[[str], Any], name: str) -> bool:
    try:
        look(name)
    except KeyError:
        return False
    return True


if __name__ == "__main__":
    main()
