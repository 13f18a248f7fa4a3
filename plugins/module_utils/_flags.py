# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags that were asked of a server against the arguments it printed. Private to this collection: may change at any time.

SGLang takes a flag under one name, keeps it under another, and changes what it was given where a card, a backend or a model wants it
otherwise. Names and values that mean the same are tables here. Nothing in here raises, whatever the data are.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._secrets import MASKED
from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import count

CLOSE = 5e-5  # two numbers that a unit file with 4 decimals cannot tell apart
LONGEST_TEXT = 200  # characters of a value in a message
DEEPEST = 8  # levels of a value that are looked at

# Flag: the arguments it is kept as, in one release or another. From the parsers of SGLang 0.4.6 to 0.5.23.
_KEPT_AS: dict[str, tuple[str, ...]] = {
    "model": ("model_path",),
    "tensor_parallel_size": ("tp_size",),
    "tp": ("tp_size",),
    "pipeline_parallel_size": ("pp_size",),
    "pp": ("pp_size",),
    "data_parallel_size": ("dp_size",),
    "dp": ("dp_size",),
    "expert_parallel_size": ("ep_size",),
    "ep": ("ep_size",),
    "decode_context_parallel_size": ("dcp_size",),
    "attention_data_parallel_size": ("attn_dp_size",),
    "attention_context_parallel_size": ("attn_cp_size",),
    "moe_data_parallel_size": ("moe_dp_size",),
    "nccl_init_addr": ("dist_init_addr",),
    "speculative_draft_model": ("speculative_draft_model_path",),
    "speculative_dflash_draft_window_size": ("speculative_draft_window_size",),
    "cuda_graph_bs": ("cuda_graph_bs_decode",),
    "cuda_graph_max_bs": ("cuda_graph_max_bs_decode",),
    "piecewise_cuda_graph_tokens": ("cuda_graph_bs_prefill",),
    "piecewise_cuda_graph_compiler": ("cuda_graph_tc_compiler",),
    "piecewise_cuda_graph_max_tokens": ("cuda_graph_max_bs_prefill",),
    "context_bucket": ("cuda_graph_prefill_max_context",),
    "mamba_scheduler_strategy": ("mamba_radix_cache_strategy",),
    "mamba_radix_cache_strategy": ("mamba_scheduler_strategy",),
    "nsa_prefill_backend": ("dsa_prefill_backend",),
    "nsa_decode_backend": ("dsa_decode_backend",),
    "nsa_prefill_cp_mode": ("dsa_prefill_cp_mode",),
    "enable_nsa_prefill_context_parallel": ("enable_dsa_prefill_context_parallel",),
    "fp8_gemm_backend": ("fp8_gemm_runner_backend",),
    "fp4_gemm_backend": ("fp4_gemm_runner_backend",),
    "stream_output": ("incremental_streaming_output",),
    "enable_hicache": ("enable_hierarchical_cache",),
    "enable_gdn_replayssm_spec": ("enable_linear_replayssm_spec",),
    "hierarchical_sparse_attention_extra_config": ("hisparse_config",),
    "grpc_http_sidecar_port": ("smg_http_sidecar_port",),
    "elastic_ep_join_mode": ("ep_join_mode",),
    "elastic_ep_join_rank_offset": ("ep_join_rank_offset",),
}
# Switches that became one value of another argument.
_SWITCHES: dict[str, tuple[str, str]] = {
    "disable_piecewise_cuda_graph": ("cuda_graph_backend_prefill", "disabled"),
    "enable_breakable_cuda_graph": ("cuda_graph_backend_prefill", "breakable"),
}
# Argument: values that SGLang takes as another spelling of a second one.
_KV_TYPES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
_SPELLINGS: dict[str, dict[str, str]] = {
    "kv_cache_dtype": _KV_TYPES,
    "speculative_draft_kv_cache_dtype": _KV_TYPES,
    "dtype": {"half": "float16", "float": "float32"},
    # the last for drafts of Gemma 4 alone
    "speculative_algorithm": {"nextn": "eagle", "frozen_kv_mtp": "eagle"},
    "tool_call_parser": {"qwen25": "qwen", "glm45": "glm"},
    "attention_backend": {"nsa": "dsa"},
    "prefill_attention_backend": {"nsa": "dsa"},
    "decode_attention_backend": {"nsa": "dsa"},
}
# With attention data parallelism SGLang takes these shares of what it is given, in every release.
_SHARES: dict[str, Callable[[int], float]] = {
    "chunked_prefill_size": lambda groups: 1 / groups,
    "schedule_conservativeness": lambda _groups: 0.3,
}


@dataclass(frozen=True)
class Change:
    """A flag whose effective value is not the asked one; both as text. ``allowed``: the caller said that it may differ."""

    flag: str
    asked: str
    effective: str
    allowed: bool


@dataclass(frozen=True)
class Comparison:
    """What differs, and what could not be compared."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...]


def compare(asked: Mapping[Any, Any], effective: Mapping[Any, Any], allowed: frozenset[str]) -> Comparison:
    """Every asked flag against the arguments that the server printed; ``allowed``: names as names_of gives them."""
    changes: list[Change] = []
    unseen: list[str] = []
    hidden: list[str] = []
    for flag, value in asked.items():
        name = argument_name(flag)
        if value is None or (isinstance(value, str) and not value):
            continue
        shown = {field: effective[field] for field in _fields(name) if field in effective}
        verdicts = [_same(field, value, found, effective) for field, found in shown.items()]
        if not shown and name in _SWITCHES:
            shown, verdicts = _switched(name, effective)
        if not shown:
            unseen.append(name)
        elif True in verdicts:
            continue
        elif None in verdicts:
            hidden.append(name)
        else:
            found = next((item for item in shown.values() if item is not None), None)
            changes.append(Change(flag_name(flag), text_of(value), text_of(found), not allowed.isdisjoint(_fields(name))))
    return Comparison(tuple(changes), (*_note("not shown by this release, so not compared", unseen), *_note("not comparable", hidden)))


def argument_name(flag: Any) -> str:
    """A flag as SGLang keeps it, without dashes in front and with underscores."""
    return text_of(flag).lstrip("-").replace("-", "_")


def flag_name(flag: Any) -> str:
    """A flag as a command line has it, without the dashes in front."""
    return argument_name(flag).replace("_", "-")


def names_of(flags: Any) -> frozenset[str]:
    """All names under which these flags may be kept."""
    return frozenset(field for flag in flags for field in _fields(argument_name(flag)))


def value_of(asked: Mapping[Any, Any], name: str) -> Any:
    """What was asked for an argument under any of its names; None where nothing was."""
    return next((value for flag, value in asked.items() if name in _fields(argument_name(flag))), None)


def attention_groups(effective: Mapping[Any, Any]) -> int:
    """How many groups share the requests under attention data parallelism; 1 without it."""
    groups = count(effective.get("attn_dp_size")) or 1
    if effective.get("enable_dp_attention") is True:
        # from 0.5.22 on the groups have a size of their own, and dp_size counts replicas again
        return max(groups, count(effective.get("dp_size")) or 1)
    return groups


def number_of(value: Any) -> Optional[float]:
    """A finite number, also as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or (isinstance(value, str) and not 0 < len(value) <= 40):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e18 else None


def text_of(value: Any, deep: int = DEEPEST) -> str:
    """Plain data in words for a message, one line of at most 200 characters, cut after a word; the type's name for anything else."""
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "nothing"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else "a huge number"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, str):
        return _cut("".join(letter if letter.isprintable() else " " for letter in value[: LONGEST_TEXT + 1]))
    if deep and isinstance(value, Mapping):
        pairs = [f"{text_of(key, deep - 1)}: {text_of(item, deep - 1)}" for key, item in list(value.items())[:50]]
        return _cut(f"{{{', '.join(pairs)}}}")
    if deep and isinstance(value, (list, tuple, set, frozenset)):
        return _cut(f"[{', '.join(text_of(item, deep - 1) for item in list(value)[:50])}]")
    return type(value).__name__


def _cut(text: str) -> str:
    """At most LONGEST_TEXT characters; what is longer ends after a whole word."""
    if len(text) <= LONGEST_TEXT:
        return text
    start = text[: LONGEST_TEXT - 3]
    # the part that is cut off may begin with the blank
    words = start if text[len(start)] == " " else start.rpartition(" ")[0] or start
    return f"{words.rstrip()}..."


def _fields(name: str) -> tuple[str, ...]:
    return (name, *_KEPT_AS.get(name, ()))


def _note(why: str, names: list[str]) -> tuple[str, ...]:
    return (f"{why}: {', '.join(sorted(name.replace('_', '-') for name in names))}",) if names else ()


def _switched(name: str, effective: Mapping[Any, Any]) -> tuple[dict[str, Any], list[Optional[bool]]]:
    field, value = _SWITCHES[name]
    found = effective.get(field)
    return ({field: found}, [isinstance(found, str) and found == value]) if field in effective else ({}, [])


def _same(field: str, asked: Any, found: Any, effective: Mapping[Any, Any]) -> Optional[bool]:
    """Whether the two mean the same; None where that cannot be told."""
    if isinstance(found, str) and found == MASKED:
        return None
    if isinstance(asked, str) and asked == "auto":
        return True
    if isinstance(asked, bool):
        return (found is True) == asked if found is None or isinstance(found, bool) else None
    return _equal(field, asked, found, DEEPEST) or _is_share(field, asked, found, effective)


def _is_share(field: str, asked: Any, found: Any, effective: Mapping[Any, Any]) -> bool:
    wanted, number, groups = number_of(asked), number_of(found), attention_groups(effective)
    if field not in _SHARES or groups < 2 or wanted is None or number is None:
        return False
    share = wanted * _SHARES[field](groups)
    # whole numbers are divided without a remainder
    return abs(share - number) < CLOSE or (number == int(number) and int(share) == number)


def _equal(field: str, asked: Any, found: Any, deep: int) -> bool:
    asked, found = _structured(asked), _structured(found)
    if not deep:
        return False
    if isinstance(asked, Mapping):
        # SGLang fills in what a mapping leaves out
        return isinstance(found, Mapping) and all(key in found and _equal(field, item, found[key], deep - 1) for key, item in asked.items())
    if _is_list(asked) or _is_list(found):
        wanted, shown = _words(asked), _words(found)
        return len(wanted) == len(shown) and all(_equal(field, *pair, deep - 1) for pair in zip(wanted, shown))
    numbers = number_of(asked), number_of(found)
    if numbers[0] is not None and numbers[1] is not None:
        return abs(numbers[0] - numbers[1]) < CLOSE
    return bool(_spelt(field, asked) == _spelt(field, found))


def _structured(value: Any) -> Any:
    """What JSON text stands for."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))


def _words(value: Any) -> list[Any]:
    """The items of a list, or of several words on a command line, in an order of their own."""
    items = list(value) if _is_list(value) else value.split() if isinstance(value, str) else [value]
    return sorted(items, key=lambda item: (number_of(item) is None, number_of(item) or 0.0, text_of(item)))


def _spelt(field: str, value: Any) -> Any:
    """A single value in the one spelling that is compared."""
    if isinstance(value, bool) or value is None:
        return value
    text = value.strip() if isinstance(value, str) else text_of(value)
    if text.startswith("/"):
        return posixpath.normpath(text)
    if field == "device":
        return text.partition(":")[0]
    if field not in _SPELLINGS:
        return text
    return _SPELLINGS[field].get(text.lower(), text.lower())
