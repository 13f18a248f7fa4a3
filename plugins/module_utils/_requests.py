# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What running requests cost beside the pool: the table of their tokens and the CUDA graphs. Private to this collection.

Both are allocated after SGLang has sized the pool, out of what the static fraction leaves free. The batch sizes that are
captured were read from the sources of each release; how much memory their graphs take only a start can show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, Release

# The driver's total of a card is above what is free before the weights by its own share, the CUDA context and NCCL.
CARD_OVERHEAD_GIB = 3.0
# No two batch sizes above 512 lie further apart: beyond the requests one step more tells that there are larger ones.
_WIDEST_STEP = 32


@dataclass(frozen=True)
class _Captures:
    """How releases from ``since`` on choose the batch sizes to capture where no flag does."""

    since: Release
    # the largest batch on cards from 20 to 35 GiB: with tp_size under 4, and from 4 on
    small_card: tuple[int, int]
    # where the list of a speculative algorithm goes from steps of 4 to steps of 8
    fours_end: int
    # the largest batch is captured even if it is in no step of the list
    adds_largest: bool


_CAPTURES = (
    _Captures((0, 5, 3), small_card=(16, 80), fours_end=60, adds_largest=False),
    _Captures((0, 5, 4), small_card=(24, 80), fours_end=64, adds_largest=False),
    _Captures((0, 5, 10), small_card=(24, 80), fours_end=64, adds_largest=True),
    _Captures((0, 5, 20), small_card=(48, 160), fours_end=64, adds_largest=True),
)


def graph_batch_sizes(release: Release, deployment: Deployment, free_gib: float, requests: int) -> Optional[tuple[int, ...]]:
    """Batch sizes for which decode (or verify) graphs are captured, smallest first; None where they are not known.

    ``free_gib`` is the free memory of a card before the weights load, ``requests`` what one worker makes room for. Not known:
    releases before 0.5.3, attention with data parallelism (the sizes are aligned to its ranks), and cards whose size class
    the free memory leaves open.
    """
    if deployment.cuda_graph_max_bs is not None and deployment.cuda_graph_max_bs < 1:
        raise InputError("cuda_graph_max_bs", str(deployment.cuda_graph_max_bs), "give a whole number from 1 up, or disable_cuda_graph")
    if deployment.disable_cuda_graph:
        return ()
    known = [row for row in _CAPTURES if row.since <= release]
    if not known or deployment.dp_attention:
        return None
    largest = deployment.cuda_graph_max_bs or _largest_batch(known[-1], deployment.tp_size, free_gib)
    if largest is None:
        return None
    sizes = {size for size in _steps(known[-1], deployment, min(largest, requests + _WIDEST_STEP)) if size <= largest}
    if known[-1].adds_largest:
        sizes.add(largest)
    if max(sizes) > requests:
        sizes.add(requests)
    return tuple(sorted(size for size in sizes if size <= requests))


def verified_tokens(deployment: Deployment, draft: Optional[Geometry]) -> Optional[int]:
    """Tokens that a graph computes for each request: 1, or what a speculative algorithm verifies; None where SGLang chooses."""
    if not deployment.algorithm:
        return 1
    if deployment.num_draft_tokens is None and deployment.algorithm == "DFLASH" and draft is not None and draft.draft is not None:
        return draft.draft.block_size
    return deployment.num_draft_tokens


def recommended_requests(tokens: int, context_length: int, concurrent_requests: float, dp_size: int) -> Optional[int]:
    """How many requests of the full context the pool of every worker holds: ``dp_size * max(1, floor(tokens / context))``.

    Never fewer than the concurrent requests that are asked for, rounded up; None where there is no pool.
    """
    if tokens <= 0:
        return None
    return dp_size * max(1, math.ceil(concurrent_requests), tokens // context_length)


def _largest_batch(row: _Captures, tp_size: int, free_gib: float) -> Optional[int]:
    """SGLang's default by the size of the card."""
    classes = {_card_class(free_gib), _card_class(free_gib + CARD_OVERHEAD_GIB)}
    if len(classes) > 1:
        return None
    few, many = {20: (8, 8), 35: row.small_card, 60: (32, 160), 160: (256, 512)}.get(classes.pop(), (512, 512))
    return few if tp_size < 4 else many


def _card_class(gib: float) -> int:
    """The upper end (GiB) of the class that a card of this size is in; 0 for the largest class."""
    return next((end for end in (20, 35, 60, 160) if gib < end), 0)


def _steps(row: _Captures, deployment: Deployment, largest: int) -> list[int]:
    if not deployment.algorithm:
        return [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, largest + 1, 32)]
    fours = range(40, row.fours_end + 1, 4)
    return [*range(1, 9), *range(10, 33, 2), *fours, *range(72, 257, 8), *range(272, largest + 1, 16)]
