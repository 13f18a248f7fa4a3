# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan is asked for, and what of it cannot be planned with. Private to this collection: may change at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

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

# More free memory than any rank has, on a card or in a host: such a figure is in another unit.
MOST_GIB = 16384


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
    if request.context_length is None and request.pool_target is None and request.mem_fraction_static is None:
        raise InputError("a plan", "none of context_length, pool_target, mem_fraction_static", "give one of them")
    deployment = request.deployment
    counts = {
        "context_length": request.context_length,
        "pool_target": request.pool_target,
        "concurrent_requests": request.concurrent_requests,
        "gpu_free_gib": request.sources.gpu_free_gib,
        "max_running_requests": deployment.max_running_requests,
        "max_total_tokens": deployment.max_total_tokens,
        "speculative_num_draft_tokens": deployment.num_draft_tokens,
        "swa_full_tokens_ratio": deployment.swa_full_tokens_ratio,
        "mamba_full_memory_ratio": deployment.mamba_full_memory_ratio,
        "max_mamba_cache_size": deployment.max_mamba_cache_size,
    }
    for name, value in counts.items():
        if value is not None and not 0 < value < math.inf:
            raise InputError(name, f"{value:g}", "give a number greater than 0")
    from_zero = {
        "min_headroom_gib": request.min_headroom_gib,
        "free_jitter_gib": request.sources.free_jitter_gib,
        "free_at_sizing_gib": request.sources.free_at_sizing_gib,
    }
    for name, value in from_zero.items():
        if value is not None and not 0 <= value < math.inf:
            raise InputError(name, f"{value:g}", "give a number from 0 up")
    free = request.sources.gpu_free_gib
    if free is not None and free > MOST_GIB:
        raise InputError("gpu_free_gib", f"{free:g}", f"no rank has more than {MOST_GIB:,} GiB: is that MiB? Give GiB (2^30 bytes)")
    fraction = request.mem_fraction_static
    if fraction is not None and not 0 < fraction < 1:
        raise InputError("mem_fraction_static", f"{fraction:g}", "give a share of the memory between 0 and 1, such as 0.92")


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
