# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over the config.json of a model. Private to this collection: may change at any time."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.utils.display import Display
from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, request_of
from ansible_collections.inferops.sglang.plugins.module_utils._eras import LAST_KNOWN, dotted
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Request, bytes_per_token, make_plan

Spec = dict[str, dict[str, Any]]


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
