# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: a fraction for a wanted pool (or a pool for a given fraction), what it leaves free, and what else would fit.

Private to this collection: may change at any time. All memory is GiB (2^30) per rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._boots import Anchor, Boot
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    SPECULATIVE_REQUESTS,
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, Version, dotted, era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import kv_type
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Memory, Sources, find_memory
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError
from ansible_collections.inferops.sglang.plugins.module_utils._requests import (
    graph_batch_sizes,
    recommended_requests,
    verified_tokens,
)
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    STEPS,
    Pool,
    build_pool,
    fraction_for,
    largest_fraction,
    lowest_fraction,
    mamba_slots,
    max_requests,
    pool_tokens,
    request_table_gib,
    required_tokens,
    round_up,
    state_gib,
    wanted_requests,
)

# Public starts that died in prefill had 0.45 to 0.84 GiB left, the tightest that held had 1.34.
HARD_FLOOR_GIB = 1.0
# Where no start has shown them, the graphs have to come out of that too: public starts took 0.6 to 2.7 GiB for them.
UNSEEN_GRAPHS_GIB = 1.5
# More free memory than any rank has, on a card or in a host: such a figure is in another unit.
MOST_GIB = 16384
# What the alternative with fewer requests at once is worked out for.
FEW_REQUESTS = 8
# SGLang turns a prompt away above min(context, pool) less so many tokens.
PROMPT_RESERVE = 7


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


@dataclass(frozen=True)
class Alternative:
    """Another way, with its figures."""

    change: str
    mem_fraction_static: Optional[float]
    headroom_gib: float
    verdict: str
    predicted_tokens: int
    required_tokens: int


@dataclass(frozen=True)
class Plan:
    """The answer; see the module memory_plan for the meaning of each field."""

    mem_fraction_static: Optional[float]
    required_tokens: Optional[int]
    predicted_tokens: int
    bytes_per_token: dict[str, Union[int, float]]
    headroom_gib: float
    tokens_per_hundredth: int
    basis: str
    era: str
    error_tokens: int
    verdict: str
    reasons: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    lower_bound: float
    upper_bound: Optional[float]
    # the second lever: what requests cost outside the pool
    running_requests: int
    req_to_token_gib: float
    graph_batch_sizes: Optional[tuple[int, ...]]
    graph_tokens_per_request: Optional[int]
    recommended_max_running_requests: Optional[int]
    # of a hybrid model
    mamba_slots: Optional[int]
    states_gib: Optional[float]

    def as_dict(self) -> dict[str, Any]:
        """Plain data in the form the module returns."""
        plain = dict(self.__dict__)
        plain["reasons"] = list(self.reasons)
        plain["alternatives"] = [dict(other.__dict__) for other in self.alternatives]
        plain["graph_batch_sizes"] = None if self.graph_batch_sizes is None else list(self.graph_batch_sizes)
        return plain


def make_plan(request: Request) -> Plan:
    """The plan for a request; raises InputError for what cannot be planned, returns ``impossible`` for what cannot fit."""
    _check(request)
    version = parse_version(request.version)
    era, era_notes = era_of(version)
    memory = find_memory(version, era, request.target, request.draft, request.deployment, _context(request), request.sources)
    required = _required(request, memory.pool)
    situation = _situation(request, memory)
    solution = _answer(request, situation, required)
    asked = _running(request, version, memory, situation, solution, request.deployment)
    advised = _advised(request, version, memory, situation, solution)
    reasons = [
        *era_notes,
        *_build_notes(request, version),
        *memory.reasons,
        *_pool_notes(request, memory, required),
        *solution.reasons,
        *_state_notes(situation, solution),
        *_window_notes(request, memory.pool, solution),
        *_request_notes(solution, situation, asked, advised),
    ]
    return Plan(
        mem_fraction_static=solution.fraction,
        required_tokens=required,
        predicted_tokens=solution.tokens,
        bytes_per_token=_plain_bytes(memory.pool),
        headroom_gib=round(solution.headroom, 2),
        tokens_per_hundredth=round(memory.before_gib * memory.pool.fraction_factor * GIB / memory.pool.effective_cell / 100),
        basis=memory.basis,
        era=memory.pool.era.name,
        error_tokens=_error_tokens(memory, solution.tokens),
        verdict=solution.verdict,
        reasons=tuple(reasons),
        alternatives=tuple(_alternatives(request, memory, situation, solution, required)),
        lower_bound=situation.lower_bound,
        upper_bound=situation.upper_bound,
        running_requests=asked.requests,
        req_to_token_gib=round(asked.table_gib, 3),
        graph_batch_sizes=asked.batch_sizes,
        graph_tokens_per_request=asked.tokens_each,
        recommended_max_running_requests=advised.flag if advised else None,
        mamba_slots=situation.slots(_shown(solution)) if memory.pool.states else None,
        states_gib=round(_states_gib(situation, solution), 2) if memory.pool.states else None,
    )


def bytes_per_token(request: Request) -> dict[str, Union[int, float]]:
    """Bytes for one token and rank: ``target`` and ``draft`` as stored, ``charged`` to the budget; needs no memory figures."""
    era, _notes = era_of(parse_version(request.version))
    return _plain_bytes(build_pool(era, request.target, request.draft, request.deployment))


# --- what is asked -------------------------------------------------------------------------------------------------------


def _check(request: Request) -> None:
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


def _context(request: Request) -> int:
    """Tokens of context the server is started with: as asked, else what the model allows."""
    return request.context_length or request.target.max_position or request.pool_target or 4096


def _required(request: Request, pool: Pool) -> Optional[int]:
    page = request.deployment.page_size * request.deployment.dcp_size
    if request.pool_target is not None:
        return round_up(request.pool_target, page)
    if request.context_length is None:
        return None
    return _needed(request.context_length, request.concurrent_requests, pool)


def _needed(context_length: int, concurrent_requests: float, pool: Pool) -> int:
    """Tokens of the pool for so many requests, of which each alone may be that long."""
    together = required_tokens(context_length, concurrent_requests, pool.page * pool.rows)
    return max(together, pool.tokens_for_request(context_length))


# --- solving ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Situation:
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
    # tokens on top of what is required, and why
    margin: int = 0
    margin_reason: str = ""
    # fractions that a start has shown to be too low or too high
    seen_too_low: Optional[float] = None
    seen_too_high: Optional[float] = None
    obstacles: tuple[str, ...] = ()

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
        bound = lowest_fraction(self.pool, self.before_gib, self.at_sizing_gib)
        return round(max(bound, self.seen_too_low or 0.0), 4)

    @property
    def upper_bound(self) -> Optional[float]:
        bound = largest_fraction(lambda fraction: self.headroom(fraction) >= self.min_headroom_gib)
        if bound is None or self.seen_too_high is None:
            return bound
        below = (math.ceil(round(self.seen_too_high * STEPS, 6)) - 1) / STEPS
        return min(bound, below)


@dataclass(frozen=True)
class _Solution:
    fraction: Optional[float]
    tokens: int
    headroom: float
    verdict: str
    reasons: tuple[str, ...]


def _situation(request: Request, memory: Memory) -> _Situation:
    jitter = request.sources.free_jitter_gib
    margin = math.ceil(jitter * GIB / memory.pool.effective_cell + memory.pool.unsteady_tokens) if jitter else 0
    context, longest = request.context_length, request.target.max_position
    obstacles = []
    if context is not None and longest is not None and context > longest:
        obstacles.append(
            f"SGLang refuses a context_length of {context:,}: the model ends at {longest:,} tokens; ask for no more than that."
        )
    return _Situation(
        pool=memory.pool,
        deployment=request.deployment,
        context_length=_context(request),
        before_gib=memory.before_gib,
        at_sizing_gib=memory.at_sizing_gib,
        free_base_gib=memory.free_base_gib,
        min_headroom_gib=request.min_headroom_gib,
        at_once=math.ceil(request.concurrent_requests),
        graphs_seen=_graphs_seen(memory),
        margin=margin,
        margin_reason=f"{margin:,} tokens are added because free memory moves by {jitter:g} GiB between two readings here."
        if margin
        else "",
        seen_too_low=_seen_too_low(memory.starts),
        seen_too_high=_seen_too_high(request, memory.starts),
        obstacles=tuple(obstacles),
    )


def _graphs_seen(memory: Memory) -> bool:
    anchor = memory.anchor
    if anchor is not None and anchor.boot.was_ready and anchor.boot.free_gib is not None:
        return True
    return any(boot.graphs_gib is not None for boot in memory.starts)


def _seen_too_low(starts: Sequence[Boot]) -> Optional[float]:
    """The highest fraction that a start called too low, unless a later start got a pool out of no more than that."""
    found: list[float] = []
    worked = 1.0
    for boot in starts:  # newest first
        if boot.fraction is not None and boot.tokens:
            worked = min(worked, boot.fraction)
        if boot.minimum_fraction is not None and boot.minimum_fraction < worked:
            found.append(boot.minimum_fraction)
    return max(found, default=None)


def _seen_too_high(request: Request, starts: Sequence[Boot]) -> Optional[float]:
    """The lowest fraction at which a start ran out of memory, unless the plan asks for less or a later start held more."""
    found: list[float] = []
    held = 0.0
    for boot in starts:  # newest first
        if boot.fraction is None:
            continue
        if boot.was_ready and boot.advice is None:
            held = max(held, boot.fraction)
        if boot.advice == "lower" and boot.fraction > held and not _asks_less(request, boot):
            found.append(boot.fraction)
    return min(found, default=None)


def _asks_less(request: Request, boot: Boot) -> bool:
    pairs = (
        (request.deployment.max_running_requests, boot.max_running_requests),
        (request.chunked_prefill_size, boot.chunked_prefill_size),
    )
    return any(planned is not None and ran is not None and planned < ran for planned, ran in pairs)


def _solve(situation: _Situation, required: int) -> _Solution:
    wanted = required + situation.margin
    fraction = fraction_for(situation.pool, situation.before_gib, situation.at_sizing_gib, wanted, situation.at_once)
    if fraction is None:
        return _out_of_reach(situation, wanted)
    verdict, reasons = _judge(situation, fraction, required)
    tokens = situation.tokens(fraction)
    extra = (situation.margin_reason,) if situation.margin_reason else ()
    return _Solution(fraction, tokens, situation.headroom(fraction), verdict, (*extra, *reasons))


def _out_of_reach(situation: _Situation, wanted: int) -> _Solution:
    """No fraction, and what the largest one gives and leaves."""
    most = situation.tokens((STEPS - 1) / STEPS)
    cap = situation.pool.cap
    served = situation.served((STEPS - 1) / STEPS)
    if served is not None and served < situation.at_once and most >= wanted:
        reason = f"{situation.at_once:,} requests at once are out of reach: the states serve {served:,} at most."
        return _Solution(None, most, situation.headroom((STEPS - 1) / STEPS), "impossible", (*situation.obstacles, reason))
    why = f"max_total_tokens {cap:,} caps the pool" if cap is not None and cap < wanted else "no fraction below 1 gives more"
    reason = f"{wanted:,} tokens are out of reach: {most:,} at most; {why}."
    return _Solution(None, most, situation.headroom((STEPS - 1) / STEPS), "impossible", (*situation.obstacles, reason))


def _answer(request: Request, situation: _Situation, required: Optional[int]) -> _Solution:
    """Judges the fraction that is given, or looks for the one that reaches what is required."""
    fraction = request.mem_fraction_static
    if fraction is None:
        return _solve(situation, required or 0)
    tokens = situation.tokens(fraction)
    verdict, reasons = _judge(situation, fraction, required)
    return _Solution(fraction, tokens, situation.headroom(fraction), verdict, tuple(reasons))


def _judge(situation: _Situation, fraction: float, required: Optional[int]) -> tuple[str, list[str]]:
    """Verdict over one fraction, and why."""
    tokens = situation.tokens(fraction)
    headroom = situation.headroom(fraction)
    lower, upper = situation.lower_bound, situation.upper_bound
    reasons = list(situation.obstacles)
    if tokens == 0:
        reasons.append(f"At {fraction:g} there is no pool: SGLang needs more than {lower:g}.")
    elif required is not None and tokens < required:
        reasons.append(f"{fraction:g} gives {tokens:,} tokens, {required - tokens:,} short of the {required:,} required.")
    served = situation.served(fraction)
    if tokens and served is not None and served < situation.at_once:
        reasons.append(f"The states serve {served:,} requests at once, {situation.at_once:,} are asked for.")
    if situation.seen_too_high is not None and fraction >= situation.seen_too_high:
        reasons.append(f"A start with {situation.seen_too_high:g} ran out of memory: this fraction is no lower.")
    if situation.seen_too_low is not None and fraction <= situation.seen_too_low:
        reasons.append(f"A start said that it needs more than {situation.seen_too_low:g}: this fraction is no higher.")
    if headroom < situation.floor_gib:
        reasons.append(
            f"{headroom:.2f} GiB would be left for graphs and activations, under the least of {situation.floor_gib:g} GiB: "
            + ("servers with less died in prefill." if situation.graphs_seen else "servers with less died in graph capture or in prefill.")
        )
    elif upper is None or lower > upper:
        most = f"only up to {upper:g} leaves enough" if upper is not None else f"no fraction leaves {situation.min_headroom_gib:g} GiB"
        reasons.append(f"The bounds cross: a pool needs more than {lower:g}, and {most}.")
    if reasons:
        return "impossible", reasons
    left = f"{headroom:.2f} GiB would be left for graphs and activations"
    if headroom < situation.min_headroom_gib:
        return "tight", [f"{left}, under the {situation.min_headroom_gib:g} GiB wanted: watch the first long prompts."]
    return "fits", [f"{left}; {situation.min_headroom_gib:g} GiB are wanted."]


# --- what else would fit ---------------------------------------------------------------------------------------------------


def _alternatives(
    request: Request, memory: Memory, situation: _Situation, solution: _Solution, required: Optional[int]
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
    found.append(_longest_context(request, situation, required))
    return [other for other in found if other is not None]


def _variant(change: str, situation: _Situation, required: int) -> Alternative:
    solution = _solve(situation, required)
    return Alternative(change, solution.fraction, round(solution.headroom, 2), solution.verdict, solution.tokens, required)


def _other_pool(request: Request, era: Era, deployment: Deployment) -> Optional[Pool]:
    try:
        return build_pool(era, request.target, request.draft, deployment)
    except InputError:
        return None


def _fp8(request: Request, memory: Memory, situation: _Situation, required: int) -> Optional[Alternative]:
    era = memory.pool.era
    if kv_type(era, request.target, request.deployment).width < 2:
        return None
    deployment = replace(request.deployment, kv_cache_dtype="fp8_e4m3")
    pool = _other_pool(request, era, deployment)
    if pool is None:
        return None
    return _variant("kv_cache_dtype=fp8_e4m3", replace(situation, pool=pool, deployment=deployment), required)


def _fewer_at_once(request: Request, situation: _Situation) -> Optional[Alternative]:
    if request.context_length is None or request.pool_target is not None or request.concurrent_requests <= 1:
        return None
    pool = situation.pool
    return _variant("concurrent_requests=1", replace(situation, at_once=1), _needed(request.context_length, 1, pool))


def _fewer_states(request: Request, memory: Memory, situation: _Situation, required: int) -> Optional[Alternative]:
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


def _fewer_running(request: Request, memory: Memory, situation: _Situation, required: int) -> Optional[Alternative]:
    """The request table shrinks by these figures; the CUDA graphs shrink too, by an amount only a start can show."""
    deployment = situation.deployment
    running = deployment.max_running_requests or (SPECULATIVE_REQUESTS if deployment.algorithm else FEW_REQUESTS + 1)
    if running <= FEW_REQUESTS:
        return None
    fewer = replace(deployment, max_running_requests=FEW_REQUESTS)
    counted = "its table" if situation.pool.states is None else "its table and states"
    change = f"max_running_requests={FEW_REQUESTS} (counts {counted} only; CUDA graphs shrink too)"
    pool = _other_pool(request, memory.pool.era, fewer) or situation.pool
    return _variant(change, replace(situation, pool=pool, deployment=fewer), required)


def _more_ranks(request: Request, memory: Memory, situation: _Situation, required: int) -> Optional[Alternative]:
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
        free_base_gib=situation.free_base_gib + freed,
        seen_too_low=None,
        seen_too_high=None,
    )
    return _variant(f"tp_size={deployment.tp_size} (needs twice the cards)", more, required)


def _longest_context(request: Request, situation: _Situation, required: int) -> Optional[Alternative]:
    """The longest context (or pool) that leaves the wanted headroom."""
    most = _most_tokens(situation)
    if request.context_length is None or request.pool_target is not None:
        return _variant(f"pool_target={most}", situation, most) if most > 0 and most != required else None
    page = situation.pool.page * situation.pool.rows
    longest = request.target.max_position or most

    def context_for(tokens: int) -> int:
        each = min(int(tokens / request.concurrent_requests), situation.pool.request_tokens(tokens))
        return min(each // page * page, longest)

    first = context_for(most)
    if first <= 0:
        return None
    # the request table grows with the context, so the first guess may be a little too long
    context = min(first, context_for(_most_tokens(replace(situation, context_length=first))))
    if context <= 0 or context == request.context_length:
        return None
    other = replace(situation, context_length=context, obstacles=())
    return _variant(f"context_length={context}", other, _needed(context, request.concurrent_requests, situation.pool))


def _most_tokens(situation: _Situation) -> int:
    """The largest pool that leaves the wanted headroom; 0 where none does."""
    upper = situation.upper_bound
    return 0 if upper is None else situation.tokens(upper) - situation.margin


# --- what requests cost ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Running:
    """So many requests in one worker: what they take outside the pool, and the pool that this number leaves."""

    # as max_running_requests gives it, for all workers together; None for SGLang's default
    flag: Optional[int]
    requests: int
    table_gib: float
    batch_sizes: Optional[tuple[int, ...]]
    tokens_each: Optional[int]
    pool_tokens: int


def _running(
    request: Request, version: Version, memory: Memory, situation: _Situation, solution: _Solution, deployment: Deployment
) -> _Running:
    era = memory.pool.era
    pool = build_pool(era, request.target, request.draft, deployment)
    fraction = solution.fraction or (STEPS - 1) / STEPS
    tokens = pool_tokens(pool, situation.before_gib, situation.at_sizing_gib, fraction)
    slots = mamba_slots(pool, situation.before_gib, situation.at_sizing_gib, fraction)
    requests = max_requests(pool, deployment, situation.context_length, solution.tokens, slots)
    # a start may have shown that the build follows other rules than its version says
    release = version.release if era.since <= version.release else era.since
    return _Running(
        flag=deployment.max_running_requests,
        requests=requests,
        table_gib=request_table_gib(pool, deployment, situation.context_length, solution.tokens, slots),
        batch_sizes=graph_batch_sizes(release, deployment, situation.before_gib, requests),
        tokens_each=verified_tokens(deployment, request.draft),
        pool_tokens=tokens,
    )


def _advised(request: Request, version: Version, memory: Memory, situation: _Situation, solution: _Solution) -> Optional[_Running]:
    """The number of requests that the pool holds at the full context, as far as SGLang lets so many run."""
    deployment = request.deployment
    requests = recommended_requests(solution.tokens, situation.context_length, request.concurrent_requests, deployment.dp_size)
    if requests is None:
        return None
    advised = replace(deployment, max_running_requests=requests)
    running = _running(request, version, memory, situation, solution, advised)
    return replace(running, flag=running.requests * deployment.dp_size)


def _request_notes(solution: _Solution, situation: _Situation, asked: _Running, advised: Optional[_Running]) -> list[str]:
    """What the number of requests costs, whether it changes the pool, and what the pool holds."""
    if advised is None:
        return []
    enters = advised.pool_tokens != asked.pool_tokens
    first = "Running requests are charged to the pool here, and" if enters else "Running requests never enter the pool:"
    cost = f"{first} out of what the fraction leaves free come {_cost_text(asked)}."
    if advised.requests >= asked.requests:
        return [cost]
    held = f"{solution.tokens:,} tokens hold {_requests_text(solution.tokens // situation.context_length)} of {situation.context_length:,}"
    change = f"max_running_requests={advised.flag} frees {asked.table_gib - advised.table_gib:.2f} GiB of the table"
    graphs = f" and the graphs above batch {advised.batch_sizes[-1]}" if _fewer_graphs(asked, advised) and advised.batch_sizes else ""
    return [cost, f"{held}: {change}{graphs}; more at once run only while they are shorter."]


def _cost_text(running: _Running) -> str:
    table = f"the table for {running.requests:,} of them ({running.table_gib:.2f} GiB)"
    if running.batch_sizes is None:
        return f"{table} and the CUDA graphs"
    if not running.batch_sizes:
        return table
    each = f" x {running.tokens_each} tokens" if running.tokens_each not in (None, 1) else ""
    sizes = "one batch size," if len(running.batch_sizes) == 1 else f"{len(running.batch_sizes)} batch sizes up to"
    return f"{table} and the CUDA graphs of {sizes} {running.batch_sizes[-1]}{each}"


def _fewer_graphs(asked: _Running, advised: _Running) -> bool:
    return asked.batch_sizes is not None and asked.batch_sizes != advised.batch_sizes


def _requests_text(count: int) -> str:
    return "one request" if count == 1 else f"{count:,} requests"


# --- the states of a hybrid model -------------------------------------------------------------------------------------------


def _state_notes(situation: _Situation, solution: _Solution) -> list[str]:
    """What the pool of states takes, what would give that memory to tokens, and how many requests its slots serve."""
    states = situation.pool.states
    if states is None or solution.tokens == 0:
        return []
    slots, gib = situation.slots(_shown(solution)), _states_gib(situation, solution)
    each = f"{states.slot_bytes / (1 << 20):.2f} MiB"
    notes = [f"The states take {gib:.2f} GiB beside the KV pool, for {slots:,} slots of {each}; {_state_advice(situation)} gives tokens."]
    wanted = wanted_requests(situation.pool, situation.deployment, situation.context_length, solution.tokens)
    served = states.requests(slots)
    if served < wanted:
        asked = situation.deployment.max_running_requests
        than = f"the {asked:,} asked for in all" if asked else f"SGLang's own {wanted:,}"
        notes.append(
            f"max_running_requests is capped to {served:,} in a worker, below {than}: a request may need {states.cache.per_request} "
            f"of the {slots:,} slots."
        )
    return [*states.cache.notes, *notes]


def _shown(solution: _Solution) -> float:
    """The fraction whose figures are shown: the solution's, else the largest there is."""
    return solution.fraction or (STEPS - 1) / STEPS


def _states_gib(situation: _Situation, solution: _Solution) -> float:
    slots = situation.slots(_shown(solution))
    return state_gib(situation.pool, situation.deployment, situation.context_length, solution.tokens, slots)


def _state_advice(situation: _Situation) -> str:
    states, deployment = situation.pool.states, situation.deployment
    if states is None or states.fixed is None:
        ratio = f"a mamba_full_memory_ratio smaller than {deployment.mamba_full_memory_ratio:g}"
        return f"{ratio}, and fewer max_running_requests," if states is not None and states.draft_tokens else ratio
    return "a smaller max_mamba_cache_size" if deployment.max_mamba_cache_size else "a smaller max_running_requests"


# --- what to say about it ----------------------------------------------------------------------------------------------------


def _build_notes(request: Request, version: Version) -> list[str]:
    notes = []
    for geometry in (request.target, request.draft):
        if geometry is not None and (*version.release, version.post) < geometry.since:
            notes.append(
                f"{geometry.architecture} is known to SGLang from {dotted(geometry.since)} on: the release {version.text} would "
                "take it for something else; these figures are for a build that knows it."
            )
    if request.deployment.algorithm == "DDTREE":
        notes.append("DDTREE is in no SGLang release up to 0.5.23: planned as DFLASH, whose draft it shares; the build must have it.")
    if request.deployment.dcp_size > 1:
        notes.append("The figures for dcp_size above 1 were read from the source but never compared with a run.")
    return notes


def _pool_notes(request: Request, memory: Memory, required: Optional[int]) -> list[str]:
    anchor = memory.anchor
    notes = []
    if required is not None and request.context_length is not None:
        notes.append(
            f"A prompt is accepted up to min(context, pool) - {PROMPT_RESERVE} tokens; "
            "a prompt of T tokens with G to come needs a pool of T + G + 2."
        )
    if anchor is None:
        return notes
    if required is not None and anchor.tokens < required:
        notes.append(
            f"The newest start holds {anchor.tokens:,} tokens, {required - anchor.tokens:,} short of {required:,}: "
            "a request that fills them is refused."
        )
    notes += _draft_note(request, memory.pool, anchor)
    if memory.earlier is not None:
        notes += _difference_note(memory, memory.earlier, anchor)
    return notes


def _window_notes(request: Request, pool: Pool, solution: _Solution) -> list[str]:
    """What the windowed layers keep, and where that limits a request."""
    windowed = pool.swa_tokens(solution.tokens)
    if windowed is None or not solution.tokens:
        return []
    notes = [f"Two pools: {solution.tokens:,} tokens in the layers that keep all, {windowed:,} in those that keep a window."]
    longest = pool.request_tokens(solution.tokens)
    if longest < solution.tokens:
        context = request.context_length
        wanted = f"; {context:,} need {pool.tokens_for_request(context):,} in the first" if context else ""
        notes.append(f"SGLang {pool.era.name} lets no request fill more than the smaller of the two, {longest:,} tokens{wanted}.")
    return notes


def _draft_note(request: Request, pool: Pool, anchor: Anchor) -> list[str]:
    """An MLA target prints one KV figure, so a K/V pair in its log is the draft's and says nothing about the target."""
    draft = request.draft
    if draft is None or request.target.family not in ("mla", "dsa") or draft.family != "mha" or not pool.draft_bytes:
        return []
    heads = max(1, draft.kv_heads // request.deployment.attention_ranks)
    each = pool.draft_bytes * draft.head_dim // (draft.head_dim + draft.v_head_dim)
    gib = anchor.tokens * each / GIB
    k, v = anchor.boot.draft_kv or (gib, gib)
    return [
        f"The K/V pool of {k:.2f} / {v:.2f} GiB is the draft's ({draft.draft_layers} layers, KV heads per rank: {heads}; "
        f"{each:,} bytes per token for K and for V), not a layer of the target, whose pool is one KV figure of "
        f"{pool.target_bytes:,.0f} bytes per token."
    ]


def _difference_note(memory: Memory, earlier: Anchor, newest: Anchor) -> list[str]:
    """Where the memory of a higher fraction came from, when both starts tell what they left free."""
    if earlier.boot.free_gib is None or newest.boot.free_gib is None:
        return []
    fell = earlier.boot.free_gib - newest.boot.free_gib
    share = memory.before_gib * (newest.fraction - earlier.fraction)
    grew = memory.pool.stored_gib(newest.tokens) - memory.pool.stored_gib(earlier.tokens)
    if fell <= 0 or grew <= 0:
        return []
    text = (
        f"Free memory fell by {fell:.1f} GiB between the two starts, not by the {share:.1f} GiB that the static share grew: "
        f"the pools took {grew:.1f} GiB"
    )
    elsewhere = grew - fell
    if elsewhere < 0.1:
        return [f"{text}."]
    runs = (earlier.boot.max_running_requests, newest.boot.max_running_requests)
    cause = f" (max_running_requests {runs[0]} then {runs[1]}: smaller CUDA graphs)" if None not in runs and runs[0] != runs[1] else ""
    return [f"{text}, and {elsewhere:.1f} GiB less went to other things{cause}."]


def _plain_bytes(pool: Pool) -> dict[str, Union[int, float]]:
    plain = {
        "target": pool.target_bytes / pool.rows,
        "draft": pool.draft_bytes / pool.rows,
        "charged": pool.charged_cell,
    }
    return {key: int(value) if value == int(value) else round(value, 1) for key, value in plain.items()}


def _error_tokens(memory: Memory, tokens: int) -> int:
    away = abs(tokens - memory.anchor.tokens) if memory.anchor else 0
    return math.ceil(memory.error_tokens + memory.error_slope * away)
