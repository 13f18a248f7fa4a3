# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else would fit, each way with its figures. Private to this collection: may change at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    SPECULATIVE_REQUESTS,
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import kv_type
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Memory
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import Request, needed_tokens
from ansible_collections.inferops.sglang.plugins.module_utils._plan_solution import Situation, Solution, solve
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    Pool,
    build_pool,
)

# What the alternative with fewer requests at once is worked out for.
FEW_REQUESTS = 8


@dataclass(frozen=True)
class Alternative:
    """Another way, with its figures."""

    change: str
    mem_fraction_static: Optional[float]
    headroom_gib: float
    verdict: str
    predicted_tokens: int
    required_tokens: int


def alternatives_of(
    request: Request, memory: Memory, situation: Situation, solution: Solution, required: Optional[int]
) -> list[Alternative]:
    if required is None:
        return []
    found: list[Optional[Alternative]] = []
    if request.mem_fraction_static is not None and solution.tokens < required:
        found.append(_variant(f"mem_fraction_static that reaches {required:,} tokens", situation, required))
    if solution.verdict != "fits":
        found += [
            _fp8(request, memory, situation, required),
            _fewer_at_once(request, situation),
            _fewer_running(request, memory, situation, required),
            _fewer_states(request, memory, situation, required),
            _more_ranks(request, memory, situation, required),
        ]
    found.append(_longest_context(request, memory, situation, required))
    return [other for other in found if other is not None and _helps(other, solution)]


def _helps(other: Alternative, solution: Solution) -> bool:
    """Would it start, or does it at least leave more than the plan itself?"""
    return other.verdict != "impossible" or other.headroom_gib > round(solution.headroom, 2)


def _variant(change: str, situation: Situation, required: int) -> Alternative:
    solution = solve(situation, required)
    return Alternative(change, solution.fraction, round(solution.headroom, 2), solution.verdict, solution.tokens, required)


def _other_pool(request: Request, era: Era, deployment: Deployment) -> Optional[Pool]:
    try:
        return build_pool(era, request.target, request.draft, deployment)
    except InputError:
        return None


def _fp8(request: Request, memory: Memory, situation: Situation, required: int) -> Optional[Alternative]:
    era = memory.pool.era
    if kv_type(era, request.target, request.deployment).width < 2:
        return None
    deployment = replace(request.deployment, kv_cache_dtype="fp8_e4m3")
    pool = _other_pool(request, era, deployment)
    if pool is None:
        return None
    return _variant("kv_cache_dtype=fp8_e4m3", replace(situation, pool=pool, deployment=deployment), required)


def _fewer_at_once(request: Request, situation: Situation) -> Optional[Alternative]:
    if request.context_length is None or request.pool_target is not None or request.concurrent_requests <= 1:
        return None
    pool = situation.pool
    most = max(1, min(_most_tokens(situation) // request.context_length, math.ceil(request.concurrent_requests) - 1))
    fewer = replace(situation, at_once=most)
    return _variant(f"concurrent_requests={most}", fewer, needed_tokens(request.context_length, most, pool))


def _fewer_states(request: Request, memory: Memory, situation: Situation, required: int) -> Optional[Alternative]:
    """Of the states of a hybrid model no more than the requests that are to run at once may need."""
    states = situation.pool.states
    if states is None:
        return None
    deployment = replace(request.deployment, max_mamba_cache_size=states.cache.per_request * situation.at_once * _data_ranks(request))
    pool = _other_pool(request, memory.pool.era, deployment)
    if pool is None or pool.states is None or pool.states.fixed is None:
        return None
    change = f"max_mamba_cache_size={deployment.max_mamba_cache_size}"
    return _variant(change, replace(situation, pool=pool, deployment=deployment), required)


def _data_ranks(request: Request) -> int:
    return request.deployment.dp_size if request.deployment.dp_attention else 1


def _fewer_running(request: Request, memory: Memory, situation: Situation, required: int) -> Optional[Alternative]:
    """The request table shrinks by these figures; the CUDA graphs shrink too, by an amount only a start can show."""
    deployment = situation.deployment
    running = deployment.max_running_requests or (SPECULATIVE_REQUESTS if deployment.algorithm else FEW_REQUESTS + 1)
    if running <= FEW_REQUESTS:
        return None
    fewer = replace(deployment, max_running_requests=FEW_REQUESTS)
    counted = "its table" if situation.pool.states is None else "its table and states"
    change = f"max_running_requests={FEW_REQUESTS} (counts {counted} only; CUDA graphs shrink too)"
    pool = _other_pool(request, memory.pool.era, fewer)
    if pool is None:
        return None
    return _variant(change, replace(situation, pool=pool, deployment=fewer), required)


def _more_ranks(request: Request, memory: Memory, situation: Situation, required: int) -> Optional[Alternative]:
    """Twice the ranks: half the weights on each, fewer KV heads unless the model's latent cache is whole on every rank."""
    deployment = replace(request.deployment, tp_size=2 * request.deployment.tp_size)
    pool = _other_pool(request, memory.pool.era, deployment)
    if pool is None:
        return None
    freed = (memory.before_gib - memory.at_sizing_gib) / 2
    more = replace(
        situation,
        pool=pool,
        deployment=deployment,
        at_sizing_gib=situation.at_sizing_gib + freed,
        free_base_gib=situation.free_base_gib + freed + memory.uncharged_gib / 2,
        seen_too_low=None,
        seen_too_high=None,
    )
    return _variant(f"tp_size={deployment.tp_size} (needs twice the cards)", more, required)


# The table of requests grows with the context, and attention_backend aiter takes its share only from a length on: a first
# guess may be too long, and settles in a few steps or not at all.
_GUESSES = 8


def _longest_context(request: Request, memory: Memory, situation: Situation, required: int) -> Optional[Alternative]:
    """The longest context (or pool) that leaves the wanted headroom; None where it is the plan's own, or none fits."""
    most = _most_tokens(situation)
    if request.context_length is None or request.pool_target is not None:
        pool = _variant(f"pool_target={most}", situation, most) if most > 0 and most != required else None
        return pool if pool is not None and pool.verdict == "fits" else None
    context = _context_for(request, situation, most)
    for _guess in range(_GUESSES):
        if context <= 0:
            return None
        other = _at_context(request, memory, situation, context)
        if other is None:
            return None
        reached = _context_for(request, other, _most_tokens(other))
        if reached >= context:
            found = _variant(f"context_length={context}", other, needed_tokens(context, request.concurrent_requests, other.pool))
            if found.verdict == "fits":
                return found if context != request.context_length else None
        context = min(reached, context - other.pool.page * other.pool.rows)
    return None


def _at_context(request: Request, memory: Memory, situation: Situation, context: int) -> Optional[Situation]:
    deployment = situation.deployment
    if deployment.context_length is not None:
        deployment = replace(deployment, context_length=context)
    pool = _other_pool(request, memory.pool.era, deployment)
    return None if pool is None else replace(situation, pool=pool, deployment=deployment, context_length=context, obstacles=())


def _context_for(request: Request, situation: Situation, tokens: int) -> int:
    """The longest context, in whole pages, of which a pool holds the requests that are asked for."""
    page = situation.pool.page * situation.pool.rows
    each = min(int(tokens / request.concurrent_requests), situation.pool.request_tokens(tokens))
    return min(each // page * page, request.target.max_position or tokens)


def _most_tokens(situation: Situation) -> int:
    """The largest pool that leaves the wanted headroom; 0 where none does."""
    upper = situation.upper_bound
    return 0 if upper is None else situation.tokens(upper) - situation.margin
