# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does an allocation prove a server whose every rank holds so many tokens. Private to this collection: may change at any time.

The data come from outside (a registered result, a file, somebody's template), so nothing in them is believed that is not as it should
be: what is missing or odd proves nothing. Nothing in here raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId

LONGEST_COUNT = 15  # digits; no pool holds more tokens


def sufficient(allocation: Any, tokens: Any) -> bool:
    """True only if this allocation proves a ready server whose every rank holds at least ``tokens``; false on anything odd."""
    wanted = whole_number(tokens)
    if wanted is None or not isinstance(allocation, Mapping) or not _is_healthy(allocation):
        return False
    smallest = _smallest_pool(allocation.get("ranks"))
    if smallest is None or smallest != count(allocation.get("min_tokens")):
        return False
    total = allocation.get("max_total_num_tokens")
    # the final line may say less than the pools: then it limits the requests
    limits = [smallest] if total is None else [smallest, count(total) or 0]
    return min(limits) >= wanted


def whole_number(value: Any) -> Optional[int]:
    """A count as playbooks give it, a number or its digits; None for anything else and for 0."""
    digits = isinstance(value, str) and len(value) <= LONGEST_COUNT and value.isascii() and value.isdigit()
    return count(int(value) if digits else value)


def count(value: Any) -> Optional[int]:
    """A whole number above 0 that a boot can show; None for anything else."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**LONGEST_COUNT else None


def place_of(rank: Mapping[str, Any]) -> Optional[RankId]:
    """Where a rank stands; None where a label is no label."""
    numbers = [rank.get("dp", 0), rank.get("pp", 0), rank.get("tp")]
    known = [int(number) for number in numbers if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 10**6]
    return RankId(*known) if len(known) == len(numbers) else None


def pool_tokens(rank: Mapping[str, Any], model: str = "target") -> Optional[int]:
    """Tokens of the rank's pool of its C(target) or its C(draft) model; None without one."""
    pool = rank.get(model)
    return count(pool.get("tokens")) if isinstance(pool, Mapping) else None


def sequence(value: Any) -> Optional[Sequence[Any]]:
    """A list; None for what is none."""
    return value if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else None


def _is_healthy(allocation: Mapping[str, Any]) -> bool:
    """Ready, complete and without a failure, each said and not merely left out."""
    missing = sequence(allocation.get("missing_ranks"))
    return (
        allocation.get("complete") is True
        and allocation.get("ready") is True
        and allocation.get("failure", "left out") is None
        and missing is not None
        and len(missing) == 0
    )


def _smallest_pool(ranks: Any) -> Optional[int]:
    """The smallest pool of a target model; None if there is no rank, or any is odd, there twice, or without a pool."""
    pools: dict[RankId, int] = {}
    for rank in sequence(ranks) or ():
        place, tokens = (place_of(rank), pool_tokens(rank)) if isinstance(rank, Mapping) else (None, None)
        if place is None or tokens is None or place in pools:
            return None
        pools[place] = tokens
    return min(pools.values(), default=None)
