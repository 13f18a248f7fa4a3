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

from ansible_collections.inferops.sglang.plugins.module_utils._cells import CELLS, charged_bytes, draft_stored_bytes, element_bytes
from ansible_collections.inferops.sglang.plugins.module_utils._compatibility import check_together
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import EAGLE_TYPES, SPECULATIVE_REQUESTS, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry

GIB = 1 << 30
# fractions are solved at four decimals: 0.01 is some 13,800 tokens on a 94 GiB card
STEPS = 10_000

_MIB_PER_GIB = 1024
_EMBEDDING_CACHE_MIB = 100
_GPU_TRANSPORT_MIB = 1024


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


def build_pool(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> Pool:
    """Figures of the pool; raises InputError where flags, target and draft do not go together."""
    check_together(era, target, draft, deployment)
    size = element_bytes(deployment.kv_cache_dtype, era, target)
    layers = -(-target.layers // deployment.pp_size)
    stage = replace(target, layers=layers)
    cell = CELLS[target.family](era, stage, deployment, size)
    return Pool(
        era=era,
        page=deployment.page_size,
        charged=charged_bytes(era, stage, draft, deployment, size, cell),
        target_bytes=cell.stored,
        draft_bytes=draft_stored_bytes(era, draft, deployment, size),
        split=cell.split,
        head_room=_head_room(era, deployment),
        cap=deployment.max_total_tokens,
        reserve_gib=_reserve_gib(era, target, deployment),
        fraction_factor=era.multimodal_fraction if target.multimodal else 1.0,
        rows=deployment.dcp_size,
    )


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
