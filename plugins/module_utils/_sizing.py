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

from ansible_collections.inferops.sglang.plugins.module_utils._cells import Cell, cell_of, charged_bytes, draft_stored_bytes
from ansible_collections.inferops.sglang.plugins.module_utils._compatibility import check_together
from ansible_collections.inferops.sglang.plugins.module_utils._compressed import REQUESTS, page_of
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import EAGLE_TYPES, SPECULATIVE_REQUESTS, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import kv_type
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry
from ansible_collections.inferops.sglang.plugins.module_utils._requests import verified_tokens
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import SecondPool
from ansible_collections.inferops.sglang.plugins.module_utils._stages import stages
from ansible_collections.inferops.sglang.plugins.module_utils._state_pool import (
    StatePool,
    charged_draft,
    hybrid_stages,
    state_pool,
)

GIB = 1 << 30
# fractions are solved at four decimals: 0.01 is some 13,800 tokens on a 94 GiB card
STEPS = 10_000

# tokens at a fraction never lie further apart from those on a straight line than so many slots of states
_TEETH = 3
# places within the range of one token that are tried for a whole number of slots too
_WITHIN = (0.5, 0.25, 0.75, 0.05, 0.95, 0.005, 0.995)
# of a budget of some GiB down to less than a token
_HALVINGS = 40
# tokens that EAGLE-type speculation gets before 0.5.7 whatever the requests
_HEAD_ROOM = 100
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
    # the tokens that the budget pays become parts[0] / parts[1] times as many (sliding windows before 0.5.11)
    parts: tuple[Union[int, float], Union[int, float]] = (1, 1)
    # the pool of windowed layers
    second: Optional[SecondPool] = None
    # what the running requests take of the budget before any token
    request_bytes: int = 0
    # what the other pipeline stages charge for a token and take for requests, where that differs from stage to stage
    other_stages: tuple[tuple[Union[int, float], int], ...] = ()
    head_room: int = 0
    cap: Optional[int] = None
    reserve_gib: float = 0.0
    fraction_factor: float = 1.0
    # SGLang's own max_running_requests for this model, where it has one
    default_requests: Optional[int] = None
    # tokens a request sees for each row of a rank (decode context parallelism)
    rows: int = 1
    # the pool of states that a hybrid model has beside it
    states: Optional[StatePool] = None

    @property
    def split(self) -> float:
        """Tokens of the full pool for each token the budget pays."""
        return self.parts[0] / self.parts[1]

    @property
    def fixed_bytes(self) -> int:
        """Bytes of the budget that do not depend on the tokens of the pool."""
        return self.request_bytes + (self.second.fixed_bytes if self.second else 0)

    @property
    def charged_cell(self) -> float:
        """Bytes that one token which requests can use is charged with."""
        return self.charged / self.split / self.rows

    @property
    def effective_cell(self) -> float:
        """Bytes of budget for one token that requests can use, with what goes to states meanwhile."""
        return self.charged_cell / (self.states.token_share if self.states else 1.0)

    @property
    def unsteady_tokens(self) -> float:
        """Tokens by which the pool may be smaller though the memory is a little larger: those of one slot of states."""
        return self.states.slot_gib * GIB / self.charged_cell if self.states and self.states.fixed is None else 0.0

    def stored_gib(self, tokens: int) -> float:
        """GiB of all pools, with the one padding page that SGLang adds to each."""
        draft = (tokens / self.rows + self.page) * self.draft_bytes
        return (self.target_pool_bytes(tokens) + draft + self.request_bytes) / GIB

    def target_pool_bytes(self, tokens: int) -> float:
        """Bytes of the target's pool, or of its two."""
        if self.second is None:
            return (tokens / self.rows + self.page) * self.target_bytes
        windowed = (self.second.tokens(tokens) + self.page) * self.second.bytes_per_token
        return (tokens + self.page) * self.second.full_bytes + windowed

    def swa_tokens(self, tokens: int) -> Optional[int]:
        """Tokens of the windowed layers' pool beside a full one of so many; None where there is one pool."""
        return self.second.tokens(tokens) if self.second and self.second.bytes_per_token else None

    def request_tokens(self, tokens: int) -> int:
        """Tokens that one request may fill in a pool of so many."""
        return self.second.request_tokens(tokens) if self.second else tokens

    def tokens_for_request(self, tokens: int) -> int:
        """Tokens of the pool with which one request may fill so many."""
        return self.second.full_for(tokens) if self.second else tokens


def pool_tokens(pool: Pool, before_gib: float, at_sizing_gib: float, fraction: float) -> int:
    """Tokens of the pool; 0 where SGLang would refuse to start for want of memory.

    ``before_gib`` (P) and ``at_sizing_gib`` (A) are GiB per rank, the smallest over the ranks.
    """
    rest = _budget_gib(pool, before_gib, at_sizing_gib, fraction)
    slots = 0
    if pool.states is not None and rest > 0:
        slots = pool.states.slots(rest)
        rest = pool.states.left_gib(rest, slots) if pool.states.requests(slots) else 0.0
    return _tokens_of(pool, rest, slots)


def mamba_slots(pool: Pool, before_gib: float, at_sizing_gib: float, fraction: float) -> int:
    """Slots of the state pool; 0 for a model without states, and where there is no pool."""
    if pool.states is None or pool_tokens(pool, before_gib, at_sizing_gib, fraction) == 0:
        return 0
    return pool.states.slots(_budget_gib(pool, before_gib, at_sizing_gib, fraction))


def _budget_gib(pool: Pool, before_gib: float, at_sizing_gib: float, fraction: float) -> float:
    return at_sizing_gib - before_gib * (1 - fraction * pool.fraction_factor) - pool.reserve_gib


def _tokens_of(pool: Pool, rest: float, slots: int) -> int:
    """Tokens that a budget (GiB) pays, beside so many slots of states that are paid already."""
    if rest <= 0:
        return 0
    budget = rest * GIB
    paid = (int(budget) - pool.fixed_bytes) if pool.era.integer_floor else budget - pool.fixed_bytes
    tokens = max(0, int(paid // pool.charged))
    for charged, request_bytes in pool.other_stages:
        tokens = min(tokens, max(0, int((paid + pool.request_bytes - request_bytes) // charged)))
    tokens += _head_room_of(pool, slots)
    if pool.cap is not None:
        tokens = min(tokens, pool.cap)
    tokens = _floor(tokens, pool.page)
    if pool.parts != (1, 1):
        tokens = _floor(int(tokens * pool.parts[0] / pool.parts[1]), pool.page)
    if pool.second is not None and pool.second.least >= pool.second.tokens(tokens):
        return 0
    return tokens * pool.rows


def fraction_for(pool: Pool, before_gib: float, at_sizing_gib: float, tokens: int, requests: int = 0) -> Optional[float]:
    """The smallest fraction, at four decimals, whose pool holds the tokens; None if not even 0.9999 does.

    ``requests``: so many at once must be served, where the states of a hybrid model bound their number.

    By closed form ``1 - (A - R - tokens * c / 2**30) / P``, rounded up; found by bisection over the forward formula, so
    that floors, pages and caps are those of SGLang. Beside states, tokens fall back by one slot wherever the memory gives
    another: the steps that this may spoil are tried one by one.
    """

    def holds(step: int) -> bool:
        fraction = step / STEPS
        if pool_tokens(pool, before_gib, at_sizing_gib, fraction) < tokens:
            return False
        return pool.states is None or pool.states.requests(mamba_slots(pool, before_gib, at_sizing_gib, fraction)) >= requests

    found = _first_step(holds)
    spoilt = _spoilt_steps(pool, before_gib)
    if spoilt:
        last = STEPS - 1 if found is None else found
        found = next((step for step in range(max(1, last - spoilt), last + 1) if holds(step)), None)
    return None if found is None else found / STEPS


def _spoilt_steps(pool: Pool, before_gib: float) -> int:
    """Steps of the fraction within which tokens may fall as it grows; 0 where they never do."""
    if pool.states is None:
        return 0
    share = before_gib * pool.fraction_factor / STEPS
    return math.ceil(_TEETH * pool.states.tooth_gib / share) if pool.states.tooth_gib else 0


def largest_fraction(holds: Callable[[float], bool]) -> Optional[float]:
    """The largest fraction at four decimals for which a condition holds that only breaks as the fraction grows."""
    step = _first_step(lambda k: not holds(k / STEPS))
    if step is None:
        return (STEPS - 1) / STEPS
    return None if step == 1 else (step - 1) / STEPS


def free_at_sizing(
    pool: Pool, before_gib: float, fraction: float, tokens: int, slots: Optional[int] = None, near_gib: Optional[float] = None
) -> float:
    """A (GiB) that gives exactly these tokens at this fraction: the middle of the range that floors to them.

    Beside states the same tokens may come from two numbers of slots: ``slots`` says which it was, else ``near_gib`` which A is
    the likelier, else the fewer slots are taken.
    """
    outside = before_gib * (1 - fraction * pool.fraction_factor) + pool.reserve_gib
    if pool.states is None:
        return _paid_gib(pool, tokens, 0) + outside
    found = [outside + rest for rest in _rests(pool, pool.states, tokens, slots)]
    return found[0] if near_gib is None else min(found, key=lambda at_sizing: abs(at_sizing - near_gib))


def _paid_gib(pool: Pool, tokens: int, slots: int, within: float = 0.5) -> float:
    """Budget (GiB) that pays for tokens alone: so far within the range that floors to them."""
    paid = (tokens / pool.rows - _head_room_of(pool, slots) * pool.split + within) / pool.split
    alone = (paid * pool.charged + pool.fixed_bytes) / GIB
    # the stage that needs most is the one that decided
    return max([alone, *((paid * charged + request_bytes) / GIB for charged, request_bytes in pool.other_stages)])


def _rests(pool: Pool, states: StatePool, tokens: int, slots: Optional[int]) -> list[float]:
    """Budgets (GiB) of tokens and states together that give these tokens, for each number of slots that may go with them."""
    about = states.slots(_rest_about(pool, states, tokens)) if slots is None else slots
    known = range(max(0, about - _TEETH), about + _TEETH + 1) if slots is None else (slots,)
    found = [rest for rest in (_rest_of(pool, states, tokens, count) for count in known) if rest is not None]
    # a start with other flags than are known here had slots that do not fit: its tokens alone have to do then
    return found or [_paid_gib(pool, tokens, about) + states.taken_gib(about)]


def _rest_of(pool: Pool, states: StatePool, tokens: int, slots: int) -> Optional[float]:
    """The budget (GiB) that gives so many tokens and slots; None where none gives both."""
    tries = (_paid_gib(pool, tokens, slots, within) + states.taken_gib(slots) for within in _WITHIN)
    return next((rest for rest in tries if states.slots(rest) == slots), None)


def _rest_about(pool: Pool, states: StatePool, tokens: int) -> float:
    """A budget (GiB) next to which the tokens are reached, by bisection: they grow with it but for one slot of states."""
    low, high = 0.0, 2 * (_paid_gib(pool, tokens, 0) + states.taken_gib(1))
    while _left_tokens(pool, states, high) < tokens:
        low, high = high, 2 * high
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        if _left_tokens(pool, states, middle) < tokens:
            low = middle
        else:
            high = middle
    return high


def _left_tokens(pool: Pool, states: StatePool, rest: float) -> int:
    slots = states.slots(rest)
    return int(_tokens_of(replace(pool, cap=None), states.left_gib(rest, slots), slots))


def lowest_fraction(pool: Pool, before_gib: float, at_sizing_gib: float) -> float:
    """``1 - (A - R) / P``, R with the pools of fixed size, rounded up at four decimals: at or below it there is no pool at all."""
    if pool.states is not None:
        step = _first_step(lambda k: pool_tokens(pool, before_gib, at_sizing_gib, k / STEPS) > 0)
        return 1.0 if step is None else (step - 1) / STEPS
    fixed = max([pool.fixed_bytes, *(request_bytes for _charged, request_bytes in pool.other_stages)])
    bound = (1 - (at_sizing_gib - pool.reserve_gib - fixed / GIB) / before_gib) / pool.fraction_factor
    return math.ceil(round(bound * STEPS, 6)) / STEPS


def required_tokens(context_length: int, concurrent_requests: float, page: int) -> int:
    """Tokens that so many requests of the full context fill, in whole pages; exact for decimal counts such as 1.1."""
    exact = Decimal(context_length) * Decimal(str(concurrent_requests))
    return round_up(int(exact.to_integral_value(ROUND_CEILING)), page)


def round_up(tokens: int, page: int) -> int:
    return -(-tokens // page) * page


def state_gib(pool: Pool, deployment: Deployment, context_length: int, tokens: int, slots: Optional[int] = None) -> float:
    """GiB of the states' buffers beside so many tokens; ``slots`` as in max_requests."""
    if pool.states is None or tokens <= 0:
        return 0.0
    count = slots_beside(pool, tokens) if slots is None else slots
    return pool.states.stored_gib(count, max_requests(pool, deployment, context_length, tokens, count))


def slots_beside(pool: Pool, tokens: int) -> int:
    """Slots of states that go with so many tokens where no cap cuts them; 0 for a model without states."""
    return pool.states.slots(_rests(pool, pool.states, tokens, None)[0]) if pool.states else 0


def request_table_gib(pool: Pool, deployment: Deployment, context_length: int, tokens: int, slots: Optional[int] = None) -> float:
    """GiB of the table that maps requests to pool rows (4 bytes an entry), which SGLang allocates outside the budget."""
    rows = max_requests(pool, deployment, context_length, tokens, slots) + pool.era.extra_request_rows
    return rows * (context_length + _more_columns(pool, deployment)) * 4 / GIB


def _more_columns(pool: Pool, deployment: Deployment) -> int:
    """Entries of a request beyond its context: its draft tokens, or the pages that two steps of decoding may take."""
    if not (pool.era.draft_columns and deployment.algorithm):
        return 4
    own = 4 + draft_tokens(deployment)
    tree = (deployment.topk or 1) > 1
    if pool.page == 1 or pool.era.page_columns == "never" or (pool.era.page_columns == "tree" and not tree):
        return own
    page = pool.page * (pool.rows if pool.era.page_columns == "all_ranks" else 1)
    aligned = 0 if pool.era.page_columns == "tree" else page - 1
    return max(own, 2 * _step_tokens(deployment, page) + aligned)


def _step_tokens(deployment: Deployment, page: int) -> int:
    """Tokens that one step of decoding may take: a branch of a tree has pages of its own."""
    steps, topk = deployment.num_steps or 1, deployment.topk or 1
    each = -(-(page - 1 + steps) // page) * page if topk > 1 and deployment.algorithm != "NGRAM" else steps
    return max(each * topk, draft_tokens(deployment))


def draft_tokens(deployment: Deployment) -> int:
    return deployment.num_draft_tokens or 0


def max_requests(pool: Pool, deployment: Deployment, context_length: int, tokens: int, slots: Optional[int] = None) -> int:
    """Requests that SGLang makes room for in one data-parallel worker, by its flag or by its default.

    ``slots``: those of the state pool, by default the number that goes with the tokens where no cap cuts them.
    """
    wanted = wanted_requests(pool, deployment, context_length, tokens)
    if pool.states is None:
        return wanted
    served = pool.states.requests(slots_beside(pool, tokens) if slots is None else slots)
    return min(wanted, served, pool.states.most_requests or wanted)


def wanted_requests(pool: Pool, deployment: Deployment, context_length: int, tokens: int) -> int:
    """The same without regard to states."""
    estimate = max(2048, min(4096, int(tokens / context_length * 512)))
    asked = deployment.max_running_requests or pool.default_requests or (SPECULATIVE_REQUESTS if deployment.algorithm else None)
    if pool.era.request_rule == "user":
        return asked or estimate
    if asked is None:
        return min(estimate, tokens // 2)
    share = max(1, asked // deployment.dp_size)
    return min(share, estimate if pool.era.request_rule == "capped" else tokens // 2)


def build_pool(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> Pool:
    """Figures of the pool; raises InputError where flags, target and draft do not go together."""
    check_together(era, target, draft, deployment)
    states = state_pool(era, target, deployment, _drafted(era, target, draft, deployment))
    counted = charged_draft(era, target, draft)
    priced = [_priced(era, stage, counted, deployment) for stage in _stages(era, target, deployment)]
    # the stage that can pay for the fewest tokens decides for all
    charged, cell = max(priced, key=lambda pair: pair[0] * pair[1].parts[1] / pair[1].parts[0])
    return Pool(
        era=era,
        page=_page(target, deployment, states),
        charged=charged,
        target_bytes=cell.stored,
        draft_bytes=draft_stored_bytes(era, target, draft, deployment),
        parts=cell.parts,
        second=cell.second,
        request_bytes=cell.request_bytes,
        other_stages=tuple((each, other.request_bytes) for each, other in priced if other.request_bytes > cell.request_bytes),
        head_room=_head_room(era, deployment),
        cap=deployment.max_total_tokens,
        reserve_gib=_reserve_gib(era, target, deployment),
        fraction_factor=_fraction_factor(era, target, deployment),
        default_requests=REQUESTS if target.family == "compressed" else None,
        rows=deployment.dcp_size,
        states=states,
    )


def _stages(era: Era, target: Geometry, deployment: Deployment) -> list[Geometry]:
    """The target as each pipeline stage holds it, stages alike left out."""
    whole = stages(era, target.layers, deployment.pp_size)
    if target.states is not None:
        return hybrid_stages(era, target, whole)
    return list(dict.fromkeys(target.of_stage(layers, era.since) for layers in whole))


def _page(target: Geometry, deployment: Deployment, states: Optional[StatePool]) -> int:
    if states is not None:
        return states.cache.page
    return page_of(deployment) if target.family == "compressed" else deployment.page_size


def _drafted(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> int:
    """Tokens whose states a hybrid model keeps for each request under speculation, 0 without."""
    if target.states is None or not deployment.algorithm:
        return 0
    tokens = verified_tokens(deployment, draft)
    if tokens is None:
        raise InputError(
            f"the states of {target.architecture} under {deployment.algorithm} and SGLang {era.name}, which grow with the draft's tokens",
            "no speculative_num_draft_tokens",
            "give it as the server gets it",
        )
    return tokens


def _priced(era: Era, stage: Geometry, draft: Optional[Geometry], deployment: Deployment) -> tuple[Union[int, float], Cell]:
    cell = cell_of(era, stage, deployment, kv_type(era, stage, deployment))
    return charged_bytes(era, stage, draft, deployment, cell), cell


def _head_room_of(pool: Pool, slots: int) -> int:
    """Tokens on top of the budget; a hybrid model gets them for the requests that its slots serve."""
    if pool.states is None or not pool.head_room:
        return pool.head_room
    asked = pool.states.asked or 0
    each = (pool.head_room - _HEAD_ROOM) // asked if asked else 0
    return min(asked, pool.states.requests(slots)) * each + _HEAD_ROOM


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
    return requests * steps * topk + requests * tokens + _HEAD_ROOM


# Context above which attention_backend aiter takes its share off the fraction, and what it leaves of it.
_AITER_CONTEXT, _AITER_LEAVES = 8192, 0.85


def _fraction_factor(era: Era, target: Geometry, deployment: Deployment) -> float:
    """What SGLang multiplies a given fraction by."""
    factor = era.multimodal_fraction if target.multimodal else 1.0
    long = (deployment.context_length or target.max_position or 0) > _AITER_CONTEXT
    return factor * _AITER_LEAVES if era.aiter_fraction and deployment.attention_backend == "aiter" and long else factor


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
