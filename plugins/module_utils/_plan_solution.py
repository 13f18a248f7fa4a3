# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fraction that gives a pool, what it leaves, and the verdict over it. Private to this collection: may change at any time.

All memory is GiB (2^30) per rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._boots import Boot
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Memory
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import Request, context_of
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    STEPS,
    Pool,
    fraction_for,
    largest_fraction,
    mamba_slots,
    pool_tokens,
    request_table_gib,
    state_gib,
)

# Public starts that died in prefill had 0.45 to 0.84 GiB left, the tightest that held had 1.34.
HARD_FLOOR_GIB = 1.0
# Where no start has shown them, the graphs have to come out of that too: public starts took 0.6 to 2.7 GiB for them.
UNSEEN_GRAPHS_GIB = 1.5


class Shown(NamedTuple):
    """A fraction that a start has shown to be too low or too high, and which start."""

    fraction: float
    start: str


@dataclass(frozen=True)
class Situation:
    """Everything that decides between fractions."""

    pool: Pool
    deployment: Deployment
    context_length: int
    before_gib: float
    at_sizing_gib: float
    free_base_gib: float
    min_headroom_gib: float
    # requests that are to run at once
    at_once: int = 1
    # a start has shown what its graphs take, so they are no part of the headroom
    graphs_seen: bool = False
    # what free memory moves by between two readings
    jitter_gib: float = 0.0
    seen_too_low: Optional[Shown] = None
    seen_too_high: Optional[Shown] = None
    obstacles: tuple[str, ...] = ()

    @property
    def margin(self) -> int:
        """Tokens on top of what is required."""
        pool = self.pool
        return math.ceil(self.jitter_gib * GIB / pool.effective_cell + pool.unsteady_tokens) if self.jitter_gib else 0

    def tokens(self, fraction: float) -> int:
        return pool_tokens(self.pool, self.before_gib, self.at_sizing_gib, fraction)

    def slots(self, fraction: float) -> int:
        return mamba_slots(self.pool, self.before_gib, self.at_sizing_gib, fraction)

    def served(self, fraction: float) -> Optional[int]:
        """Requests that the states of a hybrid model serve at once; None where nothing bounds them."""
        return None if self.pool.states is None else self.pool.states.requests(self.slots(fraction))

    def headroom(self, fraction: float) -> float:
        tokens, slots = self.tokens(fraction), self.slots(fraction)
        table = request_table_gib(self.pool, self.deployment, self.context_length, tokens, slots)
        states = state_gib(self.pool, self.deployment, self.context_length, tokens, slots)
        return self.free_base_gib - self.pool.stored_gib(tokens) - states - table

    @property
    def floor_gib(self) -> float:
        """Under this nothing is started: what a server needs to live, unless the caller asks for even less."""
        return min(HARD_FLOOR_GIB + (0 if self.graphs_seen else UNSEEN_GRAPHS_GIB), self.min_headroom_gib)

    @property
    def lower_bound(self) -> float:
        """The largest fraction at four decimals with which there is no pool, or with which a start found none; 1.0 for all."""
        uncapped = replace(self, pool=replace(self.pool, cap=None))
        poolless = largest_fraction(lambda fraction: uncapped.tokens(fraction) == 0) or 0.0
        if poolless == (STEPS - 1) / STEPS:
            return 1.0
        seen = math.floor(round((self.seen_too_low.fraction if self.seen_too_low else 0.0) * STEPS, 6)) / STEPS
        return max(poolless, seen)

    @property
    def upper_bound(self) -> Optional[float]:
        bound = largest_fraction(lambda fraction: self.headroom(fraction) >= self.min_headroom_gib)
        if bound is None or self.seen_too_high is None:
            return bound
        below = (math.ceil(round(self.seen_too_high.fraction * STEPS, 6)) - 1) / STEPS
        return min(bound, below)


@dataclass(frozen=True)
class Solution:
    fraction: Optional[float]
    tokens: int
    headroom: float
    verdict: str
    reasons: tuple[str, ...]


def situation_of(request: Request, memory: Memory) -> Situation:
    context, longest = request.context_length, request.target.max_position
    obstacles = []
    if context is not None and longest is not None and context > longest:
        obstacles.append(
            f"SGLang refuses a context_length of {context:,}: the model ends at {longest:,} tokens; ask for no more than that."
        )
    return Situation(
        pool=memory.pool,
        deployment=request.deployment,
        context_length=context_of(request),
        before_gib=memory.before_gib,
        at_sizing_gib=memory.at_sizing_gib,
        free_base_gib=memory.free_base_gib,
        min_headroom_gib=request.min_headroom_gib,
        at_once=math.ceil(request.concurrent_requests),
        graphs_seen=_graphs_seen(memory),
        jitter_gib=request.sources.free_jitter_gib,
        seen_too_low=_seen_too_low(memory.starts),
        seen_too_high=_seen_too_high(request, memory.starts),
        obstacles=tuple(obstacles),
    )


def _graphs_seen(memory: Memory) -> bool:
    anchor = memory.anchor
    if anchor is not None and anchor.boot.was_ready and anchor.boot.free_gib is not None:
        return True
    return any(boot.graphs_gib is not None for boot in memory.starts)


def _seen_too_low(starts: Sequence[Boot]) -> Optional[Shown]:
    """The highest fraction that a start called too low, unless a later start got a pool out of no more than that."""
    found: list[Shown] = []
    worked = 1.0
    for boot in starts:  # newest first
        if boot.fraction is not None and boot.tokens:
            worked = min(worked, boot.fraction)
        if boot.minimum_fraction is not None and boot.minimum_fraction < worked:
            found.append(Shown(boot.minimum_fraction, boot.name))
    return max(found, key=lambda shown: shown.fraction, default=None)


def _seen_too_high(request: Request, starts: Sequence[Boot]) -> Optional[Shown]:
    """The lowest fraction at which a start ran out of memory, unless the plan asks for less or a later start held more."""
    found: list[Shown] = []
    held = 0.0
    for boot in starts:  # newest first
        if boot.fraction is None:
            continue
        if boot.was_ready and boot.advice is None:
            held = max(held, boot.fraction)
        if boot.advice == "lower" and boot.fraction > held and not _asks_less(request, boot):
            # CUDA says what it lacked, so more than the fraction that ran is known to be too much
            least = boot.fraction if boot.next_fraction is None else min(boot.fraction, boot.next_fraction + 1 / STEPS)
            found.append(Shown(least, boot.name))
    return min(found, key=lambda shown: shown.fraction, default=None)


def _asks_less(request: Request, boot: Boot) -> bool:
    pairs = (
        (request.deployment.max_running_requests, boot.running(request.deployment.dp_size)),
        (request.chunked_prefill_size, boot.chunked_prefill_size),
    )
    return any(planned is not None and ran is not None and planned < ran for planned, ran in pairs)


def solve(situation: Situation, required: int) -> Solution:
    wanted = required + situation.margin
    fraction = fraction_for(situation.pool, situation.before_gib, situation.at_sizing_gib, wanted, situation.at_once)
    if fraction is None:
        return _out_of_reach(situation, wanted)
    verdict, reasons = judge(situation, fraction, required)
    tokens = situation.tokens(fraction)
    moves = f"free memory moves by {situation.jitter_gib:g} GiB between two readings here"
    extra = (f"{situation.margin:,} tokens are added because {moves}.",) if situation.margin else ()
    return Solution(fraction, tokens, situation.headroom(fraction), verdict, (*extra, *reasons))


def _out_of_reach(situation: Situation, wanted: int) -> Solution:
    """No fraction, and what the largest one gives and leaves."""
    most = situation.tokens((STEPS - 1) / STEPS)
    cap = situation.pool.cap
    served = situation.served((STEPS - 1) / STEPS)
    if served is not None and served < situation.at_once and most >= wanted:
        reason = f"{situation.at_once:,} requests at once are out of reach: the states serve {served:,} at most."
        return Solution(None, most, situation.headroom((STEPS - 1) / STEPS), "impossible", (*situation.obstacles, reason))
    why = f"max_total_tokens {cap:,} caps the pool" if cap is not None and cap < wanted else "no fraction below 1 gives more"
    reason = f"{wanted:,} tokens are out of reach: {most:,} at most; {why}."
    return Solution(None, most, situation.headroom((STEPS - 1) / STEPS), "impossible", (*situation.obstacles, reason))


def answer(request: Request, situation: Situation, required: Optional[int]) -> Solution:
    """Judges the fraction that is given, or looks for the one that reaches what is required."""
    fraction = request.mem_fraction_static
    if fraction is None:
        return solve(situation, required or 0)
    tokens = situation.tokens(fraction)
    verdict, reasons = judge(situation, fraction, required)
    return Solution(fraction, tokens, situation.headroom(fraction), verdict, tuple(reasons))


def judge(situation: Situation, fraction: float, required: Optional[int]) -> tuple[str, list[str]]:
    """Verdict over one fraction, and why."""
    tokens = situation.tokens(fraction)
    headroom = situation.headroom(fraction)
    lower, upper = situation.lower_bound, situation.upper_bound
    reasons = list(situation.obstacles)
    if tokens == 0:
        reasons.append(f"At {fraction:g} there is no pool: {_no_pool(situation, fraction, lower)}.")
    elif required is not None and tokens < required:
        reasons.append(f"{fraction:g} gives {tokens:,} tokens, {required - tokens:,} short of the {required:,} required.")
    served = situation.served(fraction)
    if tokens and served is not None and served < situation.at_once:
        reasons.append(f"The states serve {served:,} requests at once, {situation.at_once:,} are asked for.")
    reasons += _against(situation, fraction)
    if headroom < situation.floor_gib:
        reasons.append(
            f"{headroom:.2f} GiB would be left for graphs and activations, under the least of {situation.floor_gib:g} GiB: "
            + ("servers with less died in prefill." if situation.graphs_seen else "servers with less died in graph capture or in prefill.")
        )
    elif upper is None or lower >= upper:
        most = f"only up to {upper:g} leaves enough" if upper is not None else f"no fraction leaves {situation.min_headroom_gib:g} GiB"
        reasons.append(f"The bounds cross: a pool needs more than {lower:g}, and {most}.")
    if reasons:
        return "impossible", reasons
    left = f"{headroom:.2f} GiB would be left for graphs and activations"
    if headroom < situation.min_headroom_gib:
        return "tight", [f"{left}, under the {situation.min_headroom_gib:g} GiB wanted: watch the first long prompts."]
    return "fits", [f"{left}; {situation.min_headroom_gib:g} GiB are wanted."]


_FORGET = "If its cause is gone, leave it out of observed; the role keeps boots in boots.json in its state directory."


def _against(situation: Situation, fraction: float) -> list[str]:
    """What earlier starts have shown against a fraction, and how to be rid of them."""
    found = []
    high, low = situation.seen_too_high, situation.seen_too_low
    if high is not None and fraction >= high.fraction:
        found.append(f"{high.start} ran out of memory, and {high.fraction:g} would have as well: this fraction is no lower.")
    if low is not None and fraction <= low.fraction:
        found.append(f"{low.start} said that it needs more than {low.fraction:g}: this fraction is no higher.")
    return [*found[:-1], f"{found[-1]} {_FORGET}"] if found else []


def _no_pool(situation: Situation, fraction: float, lower: float) -> str:
    """Why there is none at a fraction: the cap where there would be one without it."""
    pool = situation.pool
    if pool.cap is not None and replace(situation, pool=replace(pool, cap=None)).tokens(fraction):
        return f"max_total_tokens {pool.cap:,} leaves none, with pages of {pool.page:,} tokens"
    return f"SGLang needs more than {lower:g}" if lower < 1 else "no fraction below 1 gives one"
