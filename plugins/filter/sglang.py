# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over allocations, over unit files, over what earlier runs kept, and over the config.json of a model."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.template import accept_args_markers, accept_lazy_markers
from ansible.utils.display import Display
from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, request_of
from ansible_collections.inferops.sglang.plugins.module_utils._eras import LAST_KNOWN, dotted
from ansible_collections.inferops.sglang.plugins.module_utils._flags import text_of
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Request, bytes_per_token, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._unit_action import Files, Situation, decide
from ansible_collections.inferops.sglang.plugins.module_utils._unit_change import Reading, compare, reading_of
from ansible_collections.inferops.sglang.plugins.module_utils._unit_change import digest as digest_of
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import Unit, read_unit
from ansible_collections.inferops.sglang.plugins.module_utils._unit_variables import variables_of
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Ask, judge
from ansible_collections.inferops.sglang.plugins.module_utils._verdict_table import as_data, table

Spec = dict[str, dict[str, Any]]

_NO_FLAGS: Mapping[str, Any] = MappingProxyType({})
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})
# A filter has the model at hand: it takes no paths, and the draft by a name of its own.
_PATHS = ("model", "model_config", "draft_model", "draft_model_config")
_PLAN: Spec = {**{name: option for name, option in PLAN_OPTIONS.items() if name not in _PATHS}, "draft": {"type": "dict"}}
_FRACTION: Spec = {name: option for name, option in _PLAN.items() if name != "mem_fraction_static"}
# What says how much memory there is, how much of it is wanted, and what lies beside the pool has no part in the bytes of a token.
_NOT_OF_A_TOKEN = (
    "context_length", "concurrent_requests", "pool_target", "mem_fraction_static", "min_headroom_gib", "gpu_free_gib",
    "free_at_sizing_gib", "free_jitter_gib", "weights_gib", "draft_weights_gib", "observed", "ep_size", "mm_feature_transport",
    "cuda_graph_max_bs", "disable_cuda_graph",
)  # fmt: skip
_BYTES: Spec = {
    **{name: option for name, option in _PLAN.items() if name not in _NOT_OF_A_TOKEN},
    "sglang_version": {"type": "str", "default": dotted(LAST_KNOWN)},
    "part": {"type": "str", "choices": ["charged", "target", "draft"], "default": "charged"},
}


def rank_name(rank: Mapping[str, Any]) -> str:
    """A rank as SGLang's log names it: V(TP3), V(PP1 TP0), V(DP0 TP2); the parts a boot does not number are left out."""
    if not isinstance(rank, Mapping):
        raise AnsibleFilterError(
            f"rank_name: asked for the name of a rank, found {type(rank).__name__}; give an entry of allocation.ranks"
        )
    parts = [f"{part.upper()}{rank[part]}" for part in ("dp", "pp", "tp") if rank.get(part) is not None]
    return " ".join(part for part in parts if part.startswith("TP") or not part.endswith("P0")) or "TP0"


def kept_json(text: Any, fallback: Any) -> Any:
    """JSON text as data of the fallback's type; the fallback, with a warning, for a text that is cut or of another type."""
    if not isinstance(fallback, (dict, list)):
        raise AnsibleFilterError(f"kept_json: asked for a fallback of type {type(fallback).__name__}; give a mapping or a list")
    if not isinstance(text, str) or not text:
        return fallback
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(fallback, dict) and isinstance(data, dict):
        return data
    if isinstance(fallback, list) and isinstance(data, list):
        return [item for item in data if isinstance(item, dict)]
    wanted = "mapping" if isinstance(fallback, dict) else "list"
    Display().warning(
        f"asked for a JSON {wanted} that an earlier run kept, found {text[:40]!r}; it is left out, and the next accepted run writes it anew"
    )
    return fallback


def kv_bytes(config: Any, **options: Any) -> int:
    """Bytes that one token costs on one rank, rounded up; see the filter's documentation for the options."""
    values = _values("kv_bytes", _BYTES, options)
    part = values.pop("part")
    try:
        return math.ceil(bytes_per_token(_request(config, values))[part])
    except InputError as error:
        raise AnsibleFilterError(f"kv_bytes: {error}") from error


def memory_plan(config: Any, **options: Any) -> dict[str, Any]:
    """The plan that the module memory_plan returns, for a configuration at hand."""
    return _plan("memory_plan", config, _values("memory_plan", _PLAN, options))


def mem_fraction(config: Any, **options: Any) -> float:
    """The fraction of that plan; an error that says what would fit where nothing should be started with it."""
    plan = _plan("mem_fraction", config, _values("mem_fraction", _FRACTION, options))
    if plan["verdict"] == "impossible":
        raise AnsibleFilterError(f"mem_fraction: {_refusal(plan)}")
    fraction = float(plan["mem_fraction_static"])
    if plan["verdict"] == "tight":
        Display().warning(f"mem_fraction: {fraction:g} leaves {plan['headroom_gib']:g} GiB for graphs and activations, less than wanted")
    return fraction


# both: what is undefined, as a whole or inside, comes in as it is and is refused like anything else that proves nothing
@accept_args_markers
@accept_lazy_markers
def verdict(
    allocation: Any,
    required_tokens: Any,
    flags: Any = _NO_FLAGS,
    min_avail_gib: Any = 1.0,
    max_spread_gib: Any = 4.0,
    allowed_changes: Any = (),
    also: Any = (),
    name: Any = "",
) -> dict[str, Any]:
    """One start against all that was asked of it; see the filter's documentation for what comes back."""
    found = judge(allocation, Ask(required_tokens, flags, min_avail_gib, max_spread_gib, allowed_changes, also))
    return {**as_data(found), "table": table(found, text_of(name))}


def unit_changes(
    old: Any, new: Any, old_files: Any = _NO_TEXTS, new_files: Any = _NO_TEXTS, drop_ins: Any = _NO_TEXTS
) -> dict[str, Any]:
    """What differs between two unit files, and the smallest action that takes it over; see the filter's documentation."""
    change = compare(
        _reading("unit_changes", old, old_files, drop_ins),
        _reading("unit_changes", new, new_files, _NO_TEXTS),
    )
    return {"action": change.action, "lines": list(change.lines), "reasons": list(change.reasons)}


def unit_action(
    now: Any,
    old: Any,
    new: Any,
    environment_file: Any = "",
    old_environment: Any = None,
    new_environment: Any = "",
    digest: Any = "",
    accepted: Any = _NO_TEXTS,
    required_tokens: Any = 0,
) -> dict[str, Any]:
    """The smallest action that makes a service run as configured, and why; see the filter's documentation."""
    if not isinstance(now, Mapping) or not isinstance(now.get("service"), Mapping):
        raise AnsibleFilterError(f"unit_action: asked for the result of allocation_info, found {type(now).__name__}; register it")
    for text in (old, new, new_environment):
        if not isinstance(text, str):
            raise AnsibleFilterError(f"unit_action: asked for the text of a file, found {type(text).__name__}; give its content")
    found = decide(Situation(
        service=now["service"],
        allocation=now.get("allocation"),
        disk=Files(old, old_environment if isinstance(old_environment, str) else None),
        wanted=Files(new, new_environment),
        path=str(environment_file),
        digest=str(digest),
        accepted=accepted if isinstance(accepted, Mapping) else {},
        required=required_tokens,
    ))  # fmt: skip
    return {"action": found.action, "lines": list(found.lines), "text": found.text}


def unit_digest(unit: Any, files: Any = _NO_TEXTS) -> str:
    """What a process gets from this unit at its start, as sixteen hexadecimal digits."""
    return digest_of(_reading("unit_digest", unit, files, _NO_TEXTS))


def unit_variables(unit: Any, name: Any = "", version: Any = "", files: Any = _NO_TEXTS, drop_ins: Any = _NO_TEXTS) -> str:
    """A unit that somebody wrote by hand as variables of the role, in YAML; what no variable reproduces is a comment."""
    found = variables_of(_unit("unit_variables", unit, drop_ins), str(name), str(version), _texts("unit_variables", files))
    notes = "".join(f"# {note}\n" for note in found.notes)
    # json first: what Ansible made known as its own kinds of text is plain text then
    variables = json.loads(json.dumps(dict(found.variables)))
    return notes + (yaml.safe_dump(variables, sort_keys=False, allow_unicode=True, width=1000) if variables else "")


def _reading(name: str, unit: Any, files: Any, drop_ins: Any) -> Reading:
    return reading_of(_unit(name, unit, drop_ins), _texts(name, files))


def _unit(name: str, text: Any, drop_ins: Any) -> Unit:
    if not isinstance(text, str):
        raise AnsibleFilterError(f"{name}: asked for the text of a unit, found {type(text).__name__}; give the file's content")
    return read_unit(text, _texts(name, drop_ins))


def _texts(name: str, files: Any) -> dict[str, str]:
    if not isinstance(files, Mapping):
        raise AnsibleFilterError(f"{name}: asked for texts by path, found {type(files).__name__}; give a mapping")
    return {str(path): text for path, text in files.items() if isinstance(text, str)}


def _values(name: str, spec: Spec, options: dict[str, Any]) -> dict[str, Any]:
    """Options by their specification, cast and with defaults; raises AnsibleFilterError for what is not in it."""
    for unknown in sorted(set(options) - set(spec)):
        near = difflib.get_close_matches(unknown, spec, n=1)
        meant = f" (is {near[0]} meant?)" if near else ""
        raise AnsibleFilterError(f"{name}: found the keyword {unknown}{meant}; known are {', '.join(sorted(spec))}")
    result = ArgumentSpecValidator(spec).validate({key: value for key, value in options.items() if value is not None})
    if result.error_messages:
        raise AnsibleFilterError(f"{name}: {'; '.join(result.error_messages)}")
    return dict(result.validated_parameters)


def _request(config: Any, values: dict[str, Any]) -> Request:
    if not isinstance(config, Mapping):
        raise InputError("the content of a config.json", type(config).__name__, "give it as a mapping, for example by from_json")
    defaults = {option: spec.get("default") for option, spec in PLAN_OPTIONS.items()}
    draft = values.pop("draft")
    return request_of({**defaults, **values, "model_config": dict(config), "draft_model_config": draft})


def _plan(name: str, config: Any, values: dict[str, Any]) -> dict[str, Any]:
    try:
        return make_plan(_request(config, values)).as_dict()
    except InputError as error:
        raise AnsibleFilterError(f"{name}: {error}") from error


def _refusal(plan: Mapping[str, Any]) -> str:
    """Why a plan is impossible, and what else was found to fit."""
    fits = [
        f"{other['change']} ({other['mem_fraction_static']:.4f}, {other['headroom_gib']:g} GiB left, {other['verdict']})"
        for other in plan["alternatives"]
        if other["verdict"] != "impossible" and other["mem_fraction_static"] is not None
    ]
    fraction = plan["mem_fraction_static"]
    found = f"{fraction:.4f}, which leaves {plan['headroom_gib']:g} GiB" if fraction else f"{plan['predicted_tokens']:,} tokens at most"
    advice = f"what would fit: {', '.join(fits)}" if fits else "nothing that was tried would fit"
    return f"asked for {plan['required_tokens']:,} tokens; found {found}: impossible; {advice}"


class FilterModule:
    """Filters of inferops.sglang."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "kept_json": kept_json,
            "kv_bytes": kv_bytes,
            "mem_fraction": mem_fraction,
            "memory_plan": memory_plan,
            "rank_name": rank_name,
            "unit_action": unit_action,
            "unit_changes": unit_changes,
            "unit_digest": unit_digest,
            "unit_variables": unit_variables,
            "verdict": verdict,
        }
