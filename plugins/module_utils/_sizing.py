# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang's KV pool: bytes per token, pool tokens for a fraction, and the fraction for pool tokens.

Private to this collection: may change at any time. The formula, with P and A the free memory per rank in GiB before the
weights load and when the pool is sized, f the mem_fraction_static, R a reserve and c the bytes that a token is charged with:

    tokens = page * ((int((A - P * (1 - f) - R) * 2**30) // c) // page)

It was read from SGLang's sources and compared with what they compute, release by release (see _eras).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, dotted
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, check_draft

GIB = 1 << 30
# fractions are solved at four decimals: 0.01 is some 13,800 tokens on a 94 GiB card
STEPS = 10_000

EAGLE_TYPES = ("EAGLE", "EAGLE3", "STANDALONE")
DFLASH_TYPES = ("DFLASH", "DDTREE")
# SGLang's own max_running_requests under any speculative algorithm
SPECULATIVE_REQUESTS = 48

_ELEMENT_BYTES = {
    "bfloat16": 2,
    "bf16": 2,
    "float16": 2,
    "fp16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
_INDEX_BLOCK = 128  # sparse attention keeps one 4-byte scale for so many index elements
_MIB_PER_GIB = 1024
_EMBEDDING_CACHE_MIB = 100
_GPU_TRANSPORT_MIB = 1024


@dataclass(frozen=True)
class Deployment:
    """The server's flags that decide its pool; sizes are counts, lengths tokens, an unset length means SGLang's default."""

    algorithm: str = ""
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    ep_size: int = 1
    dcp_size: int = 1
    dp_attention: bool = False
    page_size: int = 1
    kv_cache_dtype: str = "auto"
    draft_kv_cache_dtype: Optional[str] = None
    context_length: Optional[int] = None
    max_running_requests: Optional[int] = None
    max_total_tokens: Optional[int] = None
    num_steps: Optional[int] = None
    topk: Optional[int] = None
    num_draft_tokens: Optional[int] = None
    swa_full_tokens_ratio: float = 0.8
    mm_feature_transport: str = "cpu"

    @property
    def attention_ranks(self) -> int:
        """Ranks that share the KV heads of one layer."""
        return self.tp_size // (self.dp_size if self.dp_attention else 1)


@dataclass(frozen=True)
class Pool:
    """One model, draft, era and set of flags, reduced to the figures that size the pool. Bytes are per token and rank."""

    era: Era
    page: int
    charged: Union[int, float]
    target_bytes: float
    draft_bytes: int
    # tokens of the full pool for each token the budget pays (1 except for sliding windows before 0.5.11)
    split: float = 1.0
    head_room: int = 0
    cap: Optional[int] = None
    reserve_gib: float = 0.0
    fraction_factor: float = 1.0
    # tokens a request sees for each row of a rank (decode context parallelism)
    rows: int = 1

    @property
    def effective_cell(self) -> float:
        """Bytes of budget for one token that requests can use."""
        return self.charged / self.split / self.rows

    def stored_gib(self, tokens: int) -> float:
        """GiB of both pools, with the one padding page that SGLang adds to each."""
        return (tokens / self.rows + self.page) * (self.target_bytes + self.draft_bytes) / GIB


def pool_tokens(pool: Pool, before_gib: float, at_sizing_gib: float, fraction: float) -> int:
    """Tokens of the pool; 0 where SGLang would refuse to start for want of memory.

    ``before_gib`` (P) and ``at_sizing_gib`` (A) are GiB per rank, the smallest over the ranks.
    """
    rest = at_sizing_gib - before_gib * (1 - fraction * pool.fraction_factor) - pool.reserve_gib
    if rest <= 0:
        return 0
    budget = rest * GIB
    tokens = int(int(budget) // pool.charged) if pool.era.integer_floor else int(budget // pool.charged)
    tokens += pool.head_room
    if pool.cap is not None:
        tokens = min(tokens, pool.cap)
    tokens = _floor(tokens, pool.page)
    if pool.split != 1.0:
        tokens = int(tokens * pool.split)
        tokens = _floor(tokens, pool.page) if pool.era.swa_page_floor else tokens
    return tokens * pool.rows


def fraction_for(pool: Pool, before_gib: float, at_sizing_gib: float, tokens: int) -> Optional[float]:
    """The smallest fraction, at four decimals, whose pool holds the tokens; None if not even 0.9999 does.

    By closed form ``1 - (A - R - tokens * c / 2**30) / P``, rounded up; found by bisection over the forward formula, so
    that floors, pages and caps are those of SGLang.
    """
    step = _first_step(lambda k: pool_tokens(pool, before_gib, at_sizing_gib, k / STEPS) >= tokens)
    return None if step is None else step / STEPS


def largest_fraction(holds: Callable[[float], bool]) -> Optional[float]:
    """The largest fraction at four decimals for which a condition holds that only breaks as the fraction grows."""
    step = _first_step(lambda k: not holds(k / STEPS))
    if step is None:
        return (STEPS - 1) / STEPS
    return None if step == 1 else (step - 1) / STEPS


def free_at_sizing(pool: Pool, before_gib: float, fraction: float, tokens: int) -> float:
    """A (GiB) that gives exactly these tokens at this fraction: the middle of the range that floors to them."""
    paid = (tokens / pool.rows - pool.head_room * pool.split + 0.5) / pool.split
    return paid * pool.charged / GIB + before_gib * (1 - fraction * pool.fraction_factor) + pool.reserve_gib


def lowest_fraction(pool: Pool, before_gib: float, at_sizing_gib: float) -> float:
    """``1 - (A - R) / P``, rounded up at four decimals: at or below it there is no pool at all."""
    bound = (1 - (at_sizing_gib - pool.reserve_gib) / before_gib) / pool.fraction_factor
    return math.ceil(round(bound * STEPS, 6)) / STEPS


def required_tokens(context_length: int, concurrent_requests: float, page: int) -> int:
    """Tokens that so many requests of the full context fill, in whole pages; exact for decimal counts such as 1.1."""
    exact = Decimal(context_length) * Decimal(str(concurrent_requests))
    return round_up(int(exact.to_integral_value(ROUND_CEILING)), page)


def round_up(tokens: int, page: int) -> int:
    return -(-tokens // page) * page


def request_table_gib(pool: Pool, deployment: Deployment, context_length: int, tokens: int) -> float:
    """GiB of the table that maps requests to pool rows (4 bytes an entry), which SGLang allocates outside the budget."""
    columns = context_length + 4
    if pool.era.draft_columns and deployment.algorithm:
        columns += draft_tokens(deployment)
        paged = pool.page > 1 and (deployment.topk or 1) > 1
        if pool.era.page_columns == "always" or (pool.era.page_columns == "tree" and paged):
            columns += pool.page - 1
    return (max_requests(pool, deployment, context_length, tokens) + pool.era.extra_request_rows) * columns * 4 / GIB


def draft_tokens(deployment: Deployment) -> int:
    return deployment.num_draft_tokens or 0


def max_requests(pool: Pool, deployment: Deployment, context_length: int, tokens: int) -> int:
    """Requests that SGLang makes room for in one data-parallel worker, by its flag or by its default."""
    estimate = max(2048, min(4096, int(tokens / context_length * 512)))
    asked = deployment.max_running_requests or (SPECULATIVE_REQUESTS if deployment.algorithm else None)
    if pool.era.request_rule == "user":
        return asked or estimate
    if asked is None:
        return min(estimate, tokens // 2)
    share = max(1, asked // deployment.dp_size)
    return min(share, estimate if pool.era.request_rule == "capped" else tokens // 2)


def element_bytes(dtype: str, era: Era, geometry: Geometry) -> int:
    """Bytes of one KV element: 1 for fp8, 2 for the 16-bit types; ``auto`` is the model's type unless the checkpoint asks."""
    if dtype == "auto":
        return 1 if era.auto_fp8 and geometry.fp8_kv_checkpoint else 2
    try:
        return _ELEMENT_BYTES[dtype]
    except KeyError:
        raise InputError(
            f"the KV bytes per token with kv_cache_dtype {dtype}",
            "a type that is not in the table",
            f"use auto or one of {', '.join(sorted(_ELEMENT_BYTES))}",
        ) from None


def normalise_algorithm(name: Optional[str]) -> str:
    """SGLang's name of the algorithm: NEXTN is EAGLE with the model's own next-token layers."""
    upper = (name or "").upper()
    return "EAGLE" if upper == "NEXTN" else upper


def build_pool(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> Pool:
    """Figures of the pool; raises InputError where flags, target and draft do not go together."""
    _check_ranks(target, deployment)
    if draft is not None and deployment.algorithm != "STANDALONE":
        check_draft(target, draft)
    _check_era(era, target, draft, deployment)
    _check_speculation(era, draft, deployment)
    size = element_bytes(deployment.kv_cache_dtype, era, target)
    layers = -(-target.layers // deployment.pp_size)
    stage = replace(target, layers=layers)
    cell = _CELLS[target.family](era, stage, deployment, size)
    return Pool(
        era=era,
        page=deployment.page_size,
        charged=_charged(era, stage, draft, deployment, size, cell),
        target_bytes=cell.stored,
        draft_bytes=_draft_stored(era, draft, deployment, size),
        split=cell.split,
        head_room=_head_room(era, deployment),
        cap=deployment.max_total_tokens,
        reserve_gib=_reserve_gib(era, target, deployment),
        fraction_factor=era.multimodal_fraction if target.multimodal else 1.0,
        rows=deployment.dcp_size,
    )


@dataclass(frozen=True)
class _Cell:
    """Bytes per token of one model: what the budget is charged, what the buffers take, and of these the sparse index."""

    charged: Union[int, float]
    stored: float
    index: int = 0
    split: float = 1.0


def _mha_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> _Cell:
    ranks = max(1, deployment.attention_ranks // deployment.dcp_size)
    heads = max(1, geometry.kv_heads // ranks)
    stored = heads * (geometry.head_dim + geometry.v_head_dim) * geometry.layers * size
    width = geometry.head_dim + geometry.v_head_dim if era.v_head_dim else 2 * geometry.head_dim
    return _Cell(heads * width * geometry.layers * size, stored)


def _mla_cell(_era: Era, geometry: Geometry, _deployment: Deployment, size: int) -> _Cell:
    # the latent vector is the same for every head, so no rank can leave any of it out
    bytes_ = (geometry.latent_dim + geometry.rope_dim) * geometry.layers * size
    return _Cell(bytes_, bytes_)


def _dsa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> _Cell:
    width = (geometry.latent_dim + geometry.rope_dim) * size
    # fp8: the latent part with one 4-byte scale per 128 elements, the rope part unquantised
    stored_width = geometry.latent_dim + geometry.latent_dim // 128 * 4 + 2 * geometry.rope_dim if size == 1 else width
    index = (geometry.index_head_dim + geometry.index_head_dim // _INDEX_BLOCK * 4) * geometry.layers * deployment.dcp_size
    charged_width = stored_width if era.dsa_fp8_stored else width
    return _Cell(charged_width * geometry.layers + index, stored_width * geometry.layers + index, index)


def _swa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> _Cell:
    full, windowed, ratio = geometry.layers - geometry.swa_layers, geometry.swa_layers, deployment.swa_full_tokens_ratio
    every = _mha_cell(era, geometry, deployment, size).charged
    layer = every // geometry.layers
    if era.swa_split == "none":
        return _Cell(every, every)
    weighted = layer * full + ratio * layer * windowed
    if era.swa_split == "cell":
        return _Cell(weighted, weighted)
    split = geometry.layers / (ratio * windowed + full) if era.swa_split == "layers" else every / weighted
    return _Cell(every, weighted, split=split)


_CELLS: dict[str, Callable[[Era, Geometry, Deployment, int], _Cell]] = {
    "mha": _mha_cell,
    "mla": _mla_cell,
    "dsa": _dsa_cell,
    "swa": _swa_cell,
}


def _charged(
    era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment, size: int, cell: _Cell
) -> Union[int, float]:
    """The target's cell with what this era adds for the draft."""
    if draft is None:
        return cell.charged
    rule = era.dflash_cell if deployment.algorithm in DFLASH_TYPES else f"eagle_{era.eagle_cell}"
    return _DRAFT_RULES[rule](era, target, draft, deployment, size, cell)


def _as_target(_era: Era, _t: Geometry, _d: Geometry, _dep: Deployment, _size: int, cell: _Cell) -> Union[int, float]:
    return cell.charged


def _eagle_layers(_era: Era, t: Geometry, d: Geometry, _dep: Deployment, _size: int, cell: _Cell) -> int:
    return int(cell.charged * (1 + d.draft_layers / t.layers))


def _eagle_layers_and_index(era: Era, t: Geometry, d: Geometry, dep: Deployment, size: int, cell: _Cell) -> int:
    if not cell.index:
        return _eagle_layers(era, t, d, dep, size, cell)
    latent = cell.charged - cell.index
    index = cell.index // t.layers * d.draft_layers
    return int(cell.charged) + int(latent * d.draft_layers / t.layers) * dep.dcp_size + index


def _dflash_layers(_era: Era, t: Geometry, d: Geometry, _dep: Deployment, _size: int, cell: _Cell) -> int:
    return -(-int(cell.charged) * (t.layers + d.layers) // t.layers)


def _dflash_own(era: Era, _t: Geometry, d: Geometry, dep: Deployment, size: int, cell: _Cell) -> Union[int, float]:
    ranks = dep.attention_ranks if era.dflash_attention_width else dep.tp_size
    return cell.charged + _heads_bytes(d, ranks, _draft_size(dep, size)) * dep.dcp_size


_DRAFT_RULES: dict[str, Callable[[Era, Geometry, Geometry, Deployment, int, _Cell], Union[int, float]]] = {
    "eagle_none": _as_target,
    "eagle_layers": _eagle_layers,
    "eagle_layers_and_index": _eagle_layers_and_index,
    "layers": _dflash_layers,
    "own": _dflash_own,
}


def _heads_bytes(draft: Geometry, ranks: int, size: int) -> int:
    return max(1, draft.kv_heads // ranks) * (draft.head_dim + draft.v_head_dim) * draft.draft_layers * size


def _draft_size(deployment: Deployment, size: int) -> int:
    return _ELEMENT_BYTES.get(deployment.draft_kv_cache_dtype or "", size)


def _draft_stored(era: Era, draft: Optional[Geometry], deployment: Deployment, size: int) -> int:
    """Bytes per token that the draft's own pool takes: it always gets as many rows as the target."""
    if draft is None:
        return 0
    whole = replace(draft, layers=draft.draft_layers)
    own_width = replace(deployment, dcp_size=1)
    return int(_CELLS[draft.family](era, whole, own_width, _draft_size(deployment, size)).stored) * deployment.dcp_size


def _head_room(era: Era, deployment: Deployment) -> int:
    if not era.speculative_head_room or deployment.algorithm not in EAGLE_TYPES:
        return 0
    requests = deployment.max_running_requests or SPECULATIVE_REQUESTS
    steps, topk, tokens = deployment.num_steps, deployment.topk, deployment.num_draft_tokens
    if steps is None or topk is None or tokens is None:
        raise InputError(
            f"the pool of {deployment.algorithm} under SGLang {era.name}, which grows with the draft's tokens",
            f"speculative_num_steps {steps}, speculative_eagle_topk {topk}, speculative_num_draft_tokens {tokens}",
            "give all three as the server gets them",
        )
    return requests * steps * topk + requests * tokens + 100


def _reserve_gib(era: Era, target: Geometry, deployment: Deployment) -> float:
    if not (era.multimodal_reserve and target.multimodal):
        return 0.0
    extra = 0 if deployment.mm_feature_transport == "cpu" else _GPU_TRANSPORT_MIB
    return (_EMBEDDING_CACHE_MIB + extra) / _MIB_PER_GIB


def _check_ranks(target: Geometry, deployment: Deployment) -> None:
    for name in ("tp_size", "pp_size", "dp_size", "ep_size", "dcp_size", "page_size"):
        if getattr(deployment, name) < 1:
            raise InputError(name, str(getattr(deployment, name)), "give a whole number from 1 up")
    ranks = deployment.attention_ranks
    tests = (
        (deployment.dp_attention and deployment.tp_size % deployment.dp_size, "dp_size with enable_dp_attention", "tp_size"),
        (deployment.tp_size % deployment.ep_size, f"ep_size {deployment.ep_size}", "tp_size"),
        (deployment.tp_size % deployment.dcp_size, f"dcp_size {deployment.dcp_size}", "tp_size"),
    )
    for bad, name, whole in tests:
        if bad:
            raise InputError(name, f"tp_size {deployment.tp_size}, dp_size {deployment.dp_size}", f"give a divisor of {whole}")
    if deployment.pp_size > target.layers:
        raise InputError(f"pp_size {deployment.pp_size}", f"a model of {target.layers} layers", "give no more stages than layers")
    _check_heads(target, ranks, "tp_size")


def _check_heads(geometry: Geometry, ranks: int, name: str) -> None:
    kv = geometry.kv_heads
    if geometry.query_heads % ranks or (kv and kv % ranks and ranks % kv):
        raise InputError(
            f"{name} that spreads {geometry.architecture} over {ranks} ranks",
            f"{geometry.query_heads} attention heads" + (f" and {kv} KV heads" if kv else ""),
            "give a size that divides the attention heads, and divides the KV heads or is a multiple of them",
        )


def _check_era(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> None:
    if deployment.dcp_size > 1 and not era.dcp:
        raise InputError(f"dcp_size {deployment.dcp_size}", f"SGLang {era.name}", "use SGLang 0.5.18 or newer, or dcp_size 1")
    if deployment.draft_kv_cache_dtype and not era.draft_kv_dtype:
        raise InputError(
            f"draft_kv_cache_dtype {deployment.draft_kv_cache_dtype}", f"SGLang {era.name}", "use SGLang 0.5.18 or newer, or leave it out"
        )
    if target.family == "swa" and (deployment.pp_size > 1 or draft is not None):
        raise InputError(
            f"the pool of {target.architecture}", "pipeline stages or a draft model", "neither was proven for sliding-window models"
        )
    if target.draft is not None:
        raise InputError("the target model", f"the draft architecture {target.architecture}", "give the target as model")


def _check_speculation(era: Era, draft: Optional[Geometry], deployment: Deployment) -> None:
    algorithm = deployment.algorithm
    if algorithm not in (*EAGLE_TYPES, *DFLASH_TYPES):
        if draft is not None:
            raise InputError(
                f"a draft ({draft.architecture})",
                f"speculative_algorithm {algorithm or 'unset'}, which uses none",
                "name the draft's algorithm, such as DFLASH, or leave the draft out",
            )
        return
    if draft is None:
        raise InputError(f"speculative_algorithm {algorithm}", "no draft model", "give draft_model or draft_model_config")
    _check_heads(draft, deployment.attention_ranks, "tp_size")
    if algorithm in DFLASH_TYPES:
        _check_dflash(era, draft, deployment)
    elif draft.draft is not None:
        raise InputError(f"speculative_algorithm {algorithm}", f"the draft {draft.architecture}", "use DFLASH with this draft")


def _check_dflash(era: Era, draft: Geometry, deployment: Deployment) -> None:
    asked = f"speculative_algorithm {deployment.algorithm}"
    facts = draft.draft
    if era.dflash_cell == "unknown":
        raise InputError(asked, f"SGLang {era.name}, which has no such algorithm", f"use SGLang {dotted((0, 5, 11))} or newer")
    if facts is None:
        raise InputError(asked, f"the draft {draft.architecture}", "give a block-diffusion draft (DFlashDraftModel)")
    if deployment.pp_size > 1:
        raise InputError(asked, f"pp_size {deployment.pp_size}", "use pp_size 1: this algorithm knows no pipeline stages")
    if deployment.dp_attention and not era.dflash_with_dp_attention:
        raise InputError(asked, f"enable_dp_attention under SGLang {era.name}", "use SGLang 0.5.14 or newer, or no dp attention")
    # a tree (DDTREE) may hold more tokens than one block
    if deployment.algorithm == "DFLASH" and deployment.num_draft_tokens not in (None, facts.block_size):
        raise InputError(
            asked,
            f"speculative_num_draft_tokens {deployment.num_draft_tokens} where the draft's block_size is {facts.block_size}",
            f"give {facts.block_size} or leave it out",
        )


def _floor(tokens: int, page: int) -> int:
    return tokens // page * page


def _first_step(holds: Callable[[int], bool]) -> Optional[int]:
    """The first of 1 .. STEPS-1 for which a condition holds that stays true from there on; None if it holds for none."""
    low, high = 1, STEPS
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return None if low == STEPS else low
