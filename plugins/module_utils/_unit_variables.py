# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit that somebody wrote by hand as the variables of the role that give the same server. Private to this collection."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._secrets import is_secret, is_secret_flag
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import (
    NO_TEXTS,
    Unit,
    environment_files,
    environment_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import Server, Value, read_server

# Flags that have a variable of their own, in the order in which a person gives them.
FLAG_VARIABLES: Mapping[str, str] = MappingProxyType({
    "model-path": "sglang_model",
    "speculative-draft-model-path": "sglang_draft_model",
    "served-model-name": "sglang_served_model_name",
    "context-length": "sglang_context_length",
    "mem-fraction-static": "sglang_mem_fraction_static",
    "device": "sglang_device",
    "tp-size": "sglang_tp_size",
    "pp-size": "sglang_pp_size",
    "kv-cache-dtype": "sglang_kv_cache_dtype",
    "page-size": "sglang_page_size",
    "max-running-requests": "sglang_max_running_requests",
    "speculative-algorithm": "sglang_speculative_algorithm",
    "speculative-num-draft-tokens": "sglang_speculative_num_draft_tokens",
    "host": "sglang_host",
    "port": "sglang_port",
})  # fmt: skip
_CARDS = re.compile(r"\d+(?:,\d+)*\Z")
# of what stands in front of the image the role sets these itself
_OWN_ENGINE_WORDS = frozenset({"run", "--rm", "-d", "--detach", "-i", "-t", "-it", "--interactive", "--tty"})


@dataclass(frozen=True)
class Reproduction:
    """Variables by name, and in words what no variable reproduces."""

    variables: Mapping[str, Any]
    notes: tuple[str, ...]


def variables_of(unit: Unit, name: str = "", version: str = "", files: Mapping[str, str] = NO_TEXTS) -> Reproduction:
    """The role's variables for this unit. ``name``: its unit; ``version``: of its SGLang, if that is known; ``files``: read to resolve."""
    server = read_server(unit, files)
    instance = name[: -len(".service")] if name.endswith(".service") else name
    variables: dict[str, Any] = {"sglang_instance": instance} if instance else {}
    notes = list(server.unread)
    if version:
        variables["sglang_version"] = version
    elif server.is_seen:
        notes.append("sglang_version is not in the unit: give the release that runs")
    variables.update(_install(server, notes))
    variables.update(_flags(server.flags, notes))
    variables.update(_environment(unit, server, files, notes))
    for setting, variable in (("User", "sglang_user"), ("Group", "sglang_group")):
        account = unit.last("Service", setting)
        variables.update({variable: account} if account else {})
    if server.is_seen and not unit.last("Service", "User") and not server.engine:
        notes.append("it runs as root; the role runs it as sglang_user, who must be able to read the model")
    return Reproduction(variables, tuple(notes))


def _install(server: Server, notes: list[str]) -> dict[str, Any]:
    if server.engine:
        words = server.front
        begin = next((place for place, word in enumerate(words) if posixpath.basename(word) == server.engine), 0)
        arguments = _engine_arguments(words[begin + 1 : -1])
        found = {"sglang_install_method": "container", "sglang_container_engine": server.engine, "sglang_container_image": server.image}
        return {**found, **({"sglang_container_args": arguments} if arguments else {})}
    if server.front:
        notes.append(f"in front of it stands {' '.join(server.front)}: no variable reproduces that")
    if server.python_home:
        return {"sglang_install_method": "existing", "sglang_existing_environment": server.python_home}
    if server.is_seen:
        notes.append(f"{server.program[0]} is in no environment of its own: the role installs one, or takes sglang_existing_environment")
    return {}


def _engine_arguments(words: tuple[str, ...]) -> list[str]:
    """Words in front of the image that the role does not set itself."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word in _OWN_ENGINE_WORDS or word.startswith("--name="):
            skip = False
        elif word == "--name":
            skip = True
        else:
            kept.append(word)
    return kept


def _flags(flags: Mapping[str, Value], notes: list[str]) -> dict[str, Any]:
    variables = {variable: plain_value(flags[flag]) for flag, variable in FLAG_VARIABLES.items() if flag in flags}
    extra: dict[str, Any] = {}
    for flag, value in flags.items():
        if flag in FLAG_VARIABLES:
            continue
        if is_secret_flag(flag):
            wanted = "sglang_api_key_file" if flag == "api-key" else "a file of sglang_environment_files"
            notes.append(f"--{flag} is not repeated here: put it into a file of mode 0600 and name that in {wanted}")
        elif flag in ("dp-size", "config"):
            notes.extend([] if value == "1" else [f"--{flag} {value}: the role has no variable for it"])
        else:
            extra[flag] = plain_value(value)
    return {**variables, **({"sglang_extra_args": extra} if extra else {})}


def _environment(unit: Unit, server: Server, files: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """What the unit itself sets, and what its command sets; files of it are named, not repeated."""
    known = environment_of(unit, files)
    shown = {**environment_of(unit), **{name: value for name, value in server.environment.items() if known.get(name) != value}}
    found: dict[str, Any] = {}
    if _CARDS.match(shown.get("CUDA_VISIBLE_DEVICES", "")):
        found["sglang_gpus"] = [int(card) for card in shown.pop("CUDA_VISIBLE_DEVICES").split(",")]
    secret = sorted(name for name in shown if is_secret(name))
    if secret:
        notes.append(f"{', '.join(secret)}: not repeated here; put it into a file of mode 0600 and name that in sglang_environment_files")
    own = {name: value for name, value in shown.items() if name not in secret}
    paths = list(environment_files(unit))
    return {**found, **({"sglang_environment": own} if own else {}), **({"sglang_environment_files": paths} if paths else {})}


def plain_value(value: Value) -> Any:
    """A flag's value as YAML has it: numbers as numbers where the text says no more, several words as a list, JSON as a mapping."""
    if isinstance(value, tuple):
        return [plain_value(word) for word in value]
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        # 0.9200 is the same number, 007 and 1_000 are texts
        return number if re.match(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?\Z", value) else value
    if value.startswith("{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
