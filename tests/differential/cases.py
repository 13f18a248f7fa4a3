# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of a release: a matrix over every family, and seeded random ones. A case is a set of memory_plan's options."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

from differential.families import FAMILIES, Family

MODELS = Path(__file__).resolve().parent / "models"

# A card and what the weights leave of it, with digits enough that no floor is met by chance (GiB).
MEMORY = {"gpu_free_gib": 139.62, "free_at_sizing_gib": 57.4271, "mem_fraction_static": 0.873}
# What SGLang would choose by the card.
_CARD = {"chunked_prefill_size": 8192}
# Draft steps, branches and tokens of a tree, as SGLang's own defaults choose them for EAGLE types.
_TREE = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4, "max_running_requests": 48}
_NGRAM = {"speculative_num_draft_tokens": 8, "max_running_requests": 48}
_BLOCK = {"speculative_num_steps": 1, "speculative_eagle_topk": 1, "max_running_requests": 48}


# first release with --mamba-scheduler-strategy
_STRATEGIES = "0.5.7"
# coprime to the number of flags of every family, so that turns go through all of them
_STEP = 5

_Flags = tuple[int, str, int]


@dataclass(frozen=True)
class Case:
    """One case: a family, its models by folder, and options by the names of memory_plan."""

    name: str
    family: str
    since: str
    model: str
    draft: Optional[str] = None
    draft_is_named: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def algorithm(self) -> str:
        return str(self.options.get("speculative_algorithm", ""))


def matrix(release: str, turn: Optional[int] = None) -> Iterator[Case]:
    """Every family x {no draft, DFLASH, EAGLE or NEXTN, STANDALONE} x TP x KV type x page.

    Of this, two flags in every draft of a family are one ``turn``; as many turns as there are releases go through all of it.
    """
    for family in FAMILIES:
        flags = list(itertools.product(family.tp_sizes, family.kv_types[:2], family.page_sizes))
        for number, draft in enumerate(_drafts(family)):
            for tp, kv, page in flags if turn is None else _of_turn(flags, turn + number):
                yield _case(release, family, draft, tp, kv, page)


def _of_turn(flags: list[_Flags], turn: int) -> list[_Flags]:
    """Two that differ in TP size and KV type or page, and others in every turn until all have been."""
    return [flags[(turn * _STEP) % len(flags)], flags[(turn * _STEP + _STEP // 2) % len(flags)]]


_BY_MODEL = {family.model: family for family in reversed(FAMILIES)}


def singled_out(release: str) -> Iterator[Case]:
    """Cases that chance seldom draws: every flag that the matrix has not, and all that the plan or a release refuses."""
    for model, draft, more in _SINGLED_OUT:
        family = _BY_MODEL[model]
        flags = {"tp_size": 8, "kv_cache_dtype": "auto", "page_size": family.page_sizes[-1], **more}
        tp, kv, page = (flags.pop(name) for name in ("tp_size", "kv_cache_dtype", "page_size"))
        case = _case(release, family, draft, tp, kv, page, **flags)
        yield replace(case, name=f"{case.name} {' '.join(f'{name} {value}' for name, value in more.items())}")


def randomised(release: str, count: int) -> Iterator[Case]:
    """Cases drawn at random, the same ones for the same release at every run."""
    known = [family for family in FAMILIES if version_key(family.since) <= version_key(release)]
    for number in range(count):
        yield _random_case(random.Random(f"{release} {number}"), release, known, number)


@dataclass(frozen=True)
class _Draft:
    algorithm: str = ""
    model: Optional[str] = None
    options: dict[str, Any] = field(default_factory=dict)
    is_named: bool = True


def _drafts(family: Family) -> list[_Draft]:
    found = [_Draft()]
    if family.dflash:
        # SGLang takes the block from the draft where no flag names one
        block = {"speculative_num_draft_tokens": config(family.dflash)["block_size"]}
        found.append(_Draft("DFLASH", family.dflash, {**_BLOCK, **block}))
    if family.eagle3:
        found.append(_Draft("EAGLE3", family.eagle3, _TREE))
    if family.nextn:
        found.append(_Draft("NEXTN", None, _TREE, is_named=family.nextn == "named"))
    if family.standalone:
        found.append(_Draft("STANDALONE", family.standalone, _TREE))
    return found


def _case(release: str, family: Family, draft: _Draft, tp: int, kv: str, page: int, **more: Any) -> Case:
    flags = {"tp_size": tp, "kv_cache_dtype": kv, "page_size": page, "speculative_algorithm": draft.algorithm}
    states = _state_flags(release, family, draft, page) if family.states else {}
    given = {name: value for name, value in more.items() if value is not None}
    options = {**MEMORY, **_CARD, **draft.options, **flags, **given, **states}
    name = f"{family.model} {draft.algorithm or '-'} tp{tp} {kv} page{page}"
    return Case(name, family.name, family.since, family.model, draft.model, draft.is_named, options)


def _state_flags(release: str, family: Family, draft: _Draft, page: int) -> dict[str, Any]:
    """Flags that every release takes as they are: a radix cache of states goes with pages of one token and no draft only."""
    strategy = {"mamba_scheduler_strategy": "no_buffer"} if version_key(release) >= version_key(_STRATEGIES) else {}
    if draft.algorithm or page > 1 or version_key(release) < version_key(family.radix_since):
        return {**strategy, "disable_radix_cache": True, "max_running_requests": 48}
    return {**strategy, "disable_radix_cache": False, "disable_overlap_schedule": True}


def _random_case(rng: random.Random, release: str, known: list[Family], number: int) -> Case:
    family = rng.choice(known)
    draft = rng.choice([_Draft(), *_drafts(family), *_ngram(family)])
    more = {**_random_memory(rng), **_random_limits(rng), **_random_ranks(rng, family, draft)}
    tp = more.pop("tp_size")
    case = _case(release, family, draft, tp, rng.choice(family.kv_types), rng.choice(_pages(family)), **more)
    return replace(case, name=f"random {number}: {case.name}")


def _random_memory(rng: random.Random) -> dict[str, Any]:
    before = rng.choice((23.2, 44.4, 78.5, 93.7274, 139.0, 177.31)) + rng.random()
    return {
        "gpu_free_gib": before,
        "free_at_sizing_gib": before * rng.uniform(0.15, 0.95),
        "mem_fraction_static": round(rng.uniform(0.6, 0.97), 4),
    }


def _random_limits(rng: random.Random) -> dict[str, Any]:
    return {
        "context_length": rng.choice((None, 4096, 32768, 200000)),
        "max_total_tokens": rng.choice((None, None, None, 20000, 131072, 10**9)),
        "swa_full_tokens_ratio": rng.choice((None, None, 0.5, 0.1)),
        "disable_radix_cache": rng.random() < 0.15,
    }


def _random_ranks(rng: random.Random, family: Family, draft: _Draft) -> dict[str, Any]:
    """Parallel sizes that SGLang starts this model and draft with, and requests for every replica."""
    found: dict[str, Any] = {"tp_size": rng.choice(_fitting(family, draft, (*family.tp_sizes, 2 * family.tp_sizes[-1])))}
    replicas = [size for size in (2, 4, 8) if size <= found["tp_size"]]
    if replicas and draft.algorithm != "DFLASH" and rng.random() < 0.25:
        found |= {"enable_dp_attention": True, "dp_size": rng.choice(replicas)}
    if not draft.algorithm:
        found |= {"max_running_requests": rng.choice((None, 8, 256, 3000)), "pp_size": rng.choice((1, 1, 1, 2, 3))}
    elif rng.random() < 0.5:
        found["max_running_requests"] = rng.choice((8, 64))
    return found


def _ngram(family: Family) -> list[_Draft]:
    """SGLang starts compressed attention with drafts of its own only."""
    return [] if family.name == "compressed" else [_Draft("NGRAM", None, _NGRAM)]


def _fitting(family: Family, draft: _Draft, sizes: Sequence[int]) -> list[int]:
    """The TP sizes that divide the attention heads, and divide the KV heads or are multiples of them."""
    heads = [_heads(config(model)) for model in (family.model, draft.model) if model]
    return [size for size in sizes if all(query % size == 0 and (kv % size == 0 or size % kv == 0) for query, kv in heads)]


def _heads(whole: dict[str, Any]) -> tuple[int, int]:
    text = whole.get("text_config", whole)
    heads = text["num_attention_heads"]
    return heads, text.get("num_key_value_heads") or text.get("num_attention_groups") or heads


def _pages(family: Family) -> tuple[int, ...]:
    """Page sizes to draw from: a family of one page size has no other."""
    return (*family.page_sizes, 16, 256) if len(family.page_sizes) > 1 else family.page_sizes


_TREE_OF_4 = {**_TREE, "speculative_num_steps": 5, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 16}
_SINGLED_OUT: tuple[tuple[str, _Draft, dict[str, Any]], ...] = (
    ("llama-3.1-8b", _Draft("NGRAM", None, _NGRAM), {"page_size": 1}),
    ("llama-3.1-8b", _Draft("EAGLE3", "llama-3.1-8b-eagle3", _TREE_OF_4), {"page_size": 1}),
    ("llama-3.1-8b", _Draft("EAGLE3", "llama-3.1-8b-eagle3", _TREE_OF_4), {"max_running_requests": 24}),
    ("llama-3.1-8b", _Draft(), {"kv_cache_dtype": "fp4_e2m1"}),
    ("llama-3.1-8b", _Draft(), {"kv_cache_dtype": "nvfp4"}),
    ("llama-3.1-8b", _Draft(), {"kv_cache_dtype": "fp4_mx_block16", "pp_size": 3}),
    ("llama-3.1-8b", _Draft(), {"dcp_size": 2}),
    ("qwen3-32b", _Draft("DFLASH", "qwen3-32b-dflash", {**_BLOCK, "speculative_num_draft_tokens": 16}), {"dcp_size": 4}),
    ("qwen3-32b", _Draft(), {"enable_dp_attention": True, "dp_size": 4, "max_running_requests": 256}),
    ("deepseek-v2-lite", _Draft(), {"kv_cache_dtype": "nvfp4"}),
    ("deepseek-v2-lite", _Draft(), {"pp_size": 2, "max_total_tokens": 500_000}),
    ("deepseek-v3", _Draft("NEXTN", None, _TREE), {"dcp_size": 8}),
    ("deepseek-v3", _Draft(), {"dcp_size": 2, "context_length": 32768}),
    ("gpt-oss-120b", _Draft(), {"pp_size": 3, "page_size": 1}),
    ("gpt-oss-120b", _Draft(), {"disable_radix_cache": True, "max_running_requests": 64}),
    ("gpt-oss-120b", _Draft(), {"max_total_tokens": 131_072, "page_size": 1}),
    ("deepseek-v4-flash", _Draft(), {"pp_size": 2, "swa_full_tokens_ratio": 0.2}),
    ("kimi-k2.6", _Draft(), {"mm_feature_transport": "cuda_ipc"}),
    ("qwen3-next-80b", _Draft(), {"max_mamba_cache_size": 300}),
    ("qwen3-next-80b", _Draft(), {"mamba_full_memory_ratio": 2.0, "page_size": 1, "max_running_requests": 10}),
)


@functools.cache
def config(model: str) -> dict[str, Any]:
    """The config.json of a model's folder."""
    found: dict[str, Any] = json.loads((MODELS / model / "config.json").read_text(encoding="utf-8"))
    return found


def version_key(version: str) -> tuple[int, ...]:
    """``0.5.12.post1`` in an order that sorts."""
    return tuple(int(part.removeprefix("post")) for part in version.split("."))
