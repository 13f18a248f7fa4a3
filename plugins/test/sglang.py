# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on what M(inferops.sglang.allocation_info) returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from ansible.template import accept_args_markers, accept_lazy_markers

LONGEST_COUNT = 15  # digits; no pool holds more tokens


# both: what is undefined, as a whole or inside, comes in as it is and is refused like anything else that proves nothing
@accept_args_markers
@accept_lazy_markers
def pool_sufficient(allocation: Any, tokens: Any) -> bool:
    """True only if this allocation proves a ready server whose every rank holds at least ``tokens``; false on anything odd."""
    wanted = _count(int(tokens)) if _is_digits(tokens) else _count(tokens)
    if wanted is None or not isinstance(allocation, Mapping) or not _is_healthy(allocation):
        return False
    smallest = _smallest_pool(allocation.get("ranks"))
    if smallest is None or smallest != _count(allocation.get("min_tokens")):
        return False
    total = allocation.get("max_total_num_tokens")
    # the final line may say less than the pools: then it limits the requests
    limits = [smallest] if total is None else [smallest, _count(total) or 0]
    return min(limits) >= wanted


def _is_digits(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_COUNT and value.isascii() and value.isdigit()


def _count(value: Any) -> Optional[int]:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _is_healthy(allocation: Mapping[str, Any]) -> bool:
    """Ready, complete and without a failure, each said and not merely left out."""
    missing = allocation.get("missing_ranks", "left out")
    return (
        allocation.get("complete") is True
        and allocation.get("ready") is True
        and allocation.get("failure", "left out") is None
        and isinstance(missing, (list, tuple))
        and len(missing) == 0
    )


def _smallest_pool(ranks: Any) -> Optional[int]:
    """The smallest pool of a target model; None if there is no rank, or any is odd, there twice, or without a pool."""
    if not isinstance(ranks, Sequence) or isinstance(ranks, (str, bytes)):
        return None
    pools: dict[tuple[int, ...], int] = {}
    for rank in ranks:
        place, tokens = (_place(rank), _target_tokens(rank)) if isinstance(rank, Mapping) else (None, None)
        if place is None or tokens is None or place in pools:
            return None
        pools[place] = tokens
    return min(pools.values(), default=None)


def _place(rank: Mapping[str, Any]) -> Optional[tuple[int, ...]]:
    numbers = [rank.get("dp", 0), rank.get("pp", 0), rank.get("tp")]
    known = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool) and number >= 0]
    return tuple(known) if len(known) == len(numbers) else None


def _target_tokens(rank: Mapping[str, Any]) -> Optional[int]:
    target = rank.get("target")
    return _count(target.get("tokens")) if isinstance(target, Mapping) else None


class TestModule:
    """Ansible's entry point."""

    def tests(self) -> dict[str, Callable[..., bool]]:
        return {"pool_sufficient": pool_sufficient}
