# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A start in a few lines, for whoever calls the module by hand. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation
from ansible_collections.inferops.sglang.plugins.module_utils._failures import Failure, shortened
from ansible_collections.inferops.sglang.plugins.module_utils._rank_pools import total_of
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, names_of

MAX_WORDS = 300  # characters of a failure's message


def summary_of(allocation: Optional[Allocation]) -> list[str]:
    """State, pools, failure and notes of a start, one line each; what is not known has no line."""
    if allocation is None:
        return ["no start"]
    return [_state(allocation), *_pools(allocation), *_failure(allocation.failure), *(f"note: {note}" for note in allocation.notes)]


def _state(allocation: Allocation) -> str:
    state = "stopped" if allocation.stopped else allocation.phase
    percent = f" {allocation.phase_percent} %" if allocation.phase_percent is not None else ""
    after = f" after {allocation.elapsed_s:g} s" if allocation.elapsed_s is not None else ""
    waits = f", waits for {allocation.waiting_for}" if allocation.waiting_for else ""
    missing = f", no pool from {names_of(allocation.missing_ranks)}" if allocation.missing_ranks else ""
    return f"{state}{percent}{after}{waits}{missing}"


def _pools(allocation: Allocation) -> Iterator[str]:
    sized = [rank for rank in allocation.ranks if rank.tokens is not None]
    if not sized:
        return
    smallest = min(rank.tokens or 0 for rank in sized)
    memory = total_of((sized[0].target.kv_gib, sized[0].target.k_gib, sized[0].target.v_gib)) if sized[0].target else None
    draft = next((rank.draft.tokens for rank in sized if rank.draft and rank.draft.tokens), None)
    words = [f"{smallest:,} tokens on the smallest of {len(sized)} ranks"]
    words += [f"{memory:.2f} GiB on each"] if memory is not None else []
    words += [f"draft {draft:,}"] if draft is not None else []
    words += [f"context {allocation.context_len:,}"] if allocation.context_len is not None else []
    words += [f"{allocation.min_avail_gib:.2f} GiB left on the fullest"] if allocation.min_avail_gib is not None else []
    yield "pool: " + ", ".join(words)


def _failure(failure: Optional[Failure]) -> Iterator[str]:
    if failure is None:
        return
    place = f" on {names_of([RankId(**failure.rank)])}" if failure.rank else ""
    yield f"failure: {failure.kind}{place}: {shortened(failure.message, MAX_WORDS)}"
    yield f"do: {failure.remedy}"
