# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan is asked for, and what of it cannot be planned with. Private to this collection: may change at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._boots import (
    LEAST_RATIO,
    MOST_COUNT,
    MOST_GIB,
    MOST_RATIO,
    MOST_VERSION_TEXT,
)
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    Pool,
    required_tokens,
    round_up,
)

# More than any draft has steps, branches or tokens.
_MOST_DRAFTED = 10**6
# More than any batch of a CUDA graph.
_MOST_BATCH = 10**6


@dataclass(frozen=True)
class Request:
    """What a plan is asked for. Lengths and pools in tokens, memory in GiB per rank."""

    version: str
    target: Geometry
    deployment: Deployment
    sources: Sources
    draft: Optional[Geometry] = None
    context_length: Optional[int] = None
    concurrent_requests: float = 1.0
    pool_target: Optional[int] = None
    mem_fraction_static: Optional[float] = None
    min_headroom_gib: float = 5.0
    chunked_prefill_size: Optional[int] = None


def check(request: Request) -> None:
    """Raises InputError for figures that no plan can be made with."""
    if request.context_length is None and request.pool_target is None and request.mem_fraction_static is None:
        raise InputError("a plan", "none of context_length, pool_target, mem_fraction_static", "give one of them")
    check_version(request.version)
    check_deployment(request.deployment)
    sources = request.sources
    for name, count in (
        ("context_length", request.context_length),
        ("pool_target", request.pool_target),
        ("concurrent_requests", request.concurrent_requests),
    ):
        _check_above_zero(name, count, MOST_COUNT)
    _check_above_zero("gpu_free_gib", sources.gpu_free_gib, math.inf)
    for name, gib in (
        ("min_headroom_gib", request.min_headroom_gib),
        ("free_jitter_gib", sources.free_jitter_gib),
        ("free_at_sizing_gib", sources.free_at_sizing_gib),
    ):
        if gib is not None and not 0 <= gib < math.inf:
            raise InputError(name, f"{gib:g}", "give a number from 0 up")
        check_gib(name, gib)
    check_gib("gpu_free_gib", sources.gpu_free_gib)
    fraction = request.mem_fraction_static
    if fraction is not None and not 0 < fraction < 1:
        raise InputError("mem_fraction_static", f"{fraction:g}", "give a share of the memory between 0 and 1, such as 0.92")


def check_version(text: str) -> None:
    """Raises InputError for a text too long to be a version, before its digits are read."""
    if len(str(text)) > MOST_VERSION_TEXT:
        found = f"{len(str(text)):,} characters, {str(text)[:20]!r} and so on"
        raise InputError("the sizing rules of an SGLang version", found, "give the version as the package names it, such as 0.5.12.post1")


def check_deployment(deployment: Deployment) -> None:
    """Raises InputError for flags that no server takes; they need no memory figures."""
    for name, value, most in (
        ("max_running_requests", deployment.max_running_requests, MOST_COUNT),
        ("max_total_tokens", deployment.max_total_tokens, MOST_COUNT),
        ("max_mamba_cache_size", deployment.max_mamba_cache_size, MOST_COUNT),
        ("speculative_num_steps", deployment.num_steps, _MOST_DRAFTED),
        ("speculative_eagle_topk", deployment.topk, _MOST_DRAFTED),
        ("speculative_num_draft_tokens", deployment.num_draft_tokens, _MOST_DRAFTED),
        ("cuda_graph_max_bs", deployment.cuda_graph_max_bs, _MOST_BATCH),
    ):
        _check_above_zero(name, value, most)
    for name, ratio in (
        ("swa_full_tokens_ratio", deployment.swa_full_tokens_ratio),
        ("mamba_full_memory_ratio", deployment.mamba_full_memory_ratio),
    ):
        _check_above_zero(name, ratio, math.inf)
        if not LEAST_RATIO <= ratio <= MOST_RATIO:
            raise InputError(name, f"{ratio:g}", f"give a ratio from {LEAST_RATIO:g} to {MOST_RATIO:g}")
    capability = deployment.compute_capability
    if capability is not None and not 1 <= capability <= 100:
        raise InputError("compute_capability", f"{capability:g}", "give that of the cards, such as 9.0")


def check_gib(name: str, gib: Optional[float]) -> None:
    """Raises InputError for more memory than there is."""
    if gib is not None and gib > MOST_GIB:
        raise InputError(name, f"{gib:g}", f"no rank has more than {MOST_GIB:,} GiB: is that MiB? Give GiB (2^30 bytes)")


def _check_above_zero(name: str, value: Optional[float], most: float) -> None:
    # a whole number too long for a float is not printed either
    if value is None or (0 < value <= most and value < math.inf):
        return
    if most < value < math.inf:
        raise InputError(name, f"more than {most:,}", f"give a number of at most {most:,}")
    raise InputError(name, "a number far below 0" if -math.inf < value < -MOST_COUNT else f"{value:g}", "give a number greater than 0")


def context_of(request: Request) -> int:
    """Tokens of context the server is started with: as asked, else what the model allows."""
    return request.context_length or request.target.max_position or request.pool_target or 4096


def required_of(request: Request, pool: Pool) -> Optional[int]:
    page = request.deployment.page_size * request.deployment.dcp_size
    if request.pool_target is not None:
        return round_up(request.pool_target, page)
    if request.context_length is None:
        return None
    return needed_tokens(request.context_length, request.concurrent_requests, pool)


def needed_tokens(context_length: int, concurrent_requests: float, pool: Pool) -> int:
    """Tokens of the pool for so many requests, of which each alone may be that long."""
    together = required_tokens(context_length, concurrent_requests, pool.page * pool.rows)
    return max(together, pool.tokens_for_request(context_length))
