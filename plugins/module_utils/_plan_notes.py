# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What running requests and states cost, and what else there is to say about a plan. Private to this collection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._boots import Anchor
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Version, dotted
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Memory
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import Request
from ansible_collections.inferops.sglang.plugins.module_utils._plan_solution import Situation, Solution
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
    mamba_slots,
    max_requests,
    pool_tokens,
    request_table_gib,
    state_gib,
    wanted_requests,
)
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import backend_decides

# SGLang turns a prompt away above min(context, pool) less so many tokens.
PROMPT_RESERVE = 7


@dataclass(frozen=True)
class Running:
    """So many requests in one worker: what they take outside the pool, and the pool that this number leaves."""

    # as max_running_requests gives it, for all workers together; None for SGLang's default
    flag: Optional[int]
    requests: int
    table_gib: float
    batch_sizes: Optional[tuple[int, ...]]
    tokens_each: Optional[int]
    pool_tokens: int


def running_at(
    request: Request, version: Version, memory: Memory, situation: Situation, solution: Solution, deployment: Deployment
) -> Running:
    era = memory.pool.era
    pool = build_pool(era, request.target, request.draft, deployment)
    fraction = solution.fraction or (STEPS - 1) / STEPS
    tokens = pool_tokens(pool, situation.before_gib, situation.at_sizing_gib, fraction)
    slots = mamba_slots(pool, situation.before_gib, situation.at_sizing_gib, fraction)
    requests = max_requests(pool, deployment, situation.context_length, solution.tokens, slots)
    # a start may have shown that the build follows other rules than its version says
    release = version.release if version.known and era.since <= version.release else era.since
    return Running(
        flag=deployment.max_running_requests,
        requests=requests,
        table_gib=request_table_gib(pool, deployment, situation.context_length, solution.tokens, slots),
        batch_sizes=graph_batch_sizes(release, deployment, situation.before_gib, requests),
        tokens_each=verified_tokens(deployment, request.draft),
        pool_tokens=tokens,
    )


def advised_running(request: Request, version: Version, memory: Memory, situation: Situation, solution: Solution) -> Optional[Running]:
    """The number of requests that the pool holds at the full context, as far as SGLang lets so many run.

    None where there is no pool, and where no pool can be made with that number.
    """
    deployment = request.deployment
    requests = recommended_requests(solution.tokens, situation.context_length, request.concurrent_requests, deployment.dp_size)
    if requests is None:
        return None
    advised = replace(deployment, max_running_requests=requests)
    try:
        running = running_at(request, version, memory, situation, solution, advised)
    except InputError:
        return None
    return replace(running, flag=running.requests * deployment.dp_size)


def request_notes(solution: Solution, situation: Situation, asked: Running, advised: Optional[Running]) -> list[str]:
    """What the number of requests costs, whether it changes the pool, and what the pool holds."""
    if advised is None:
        return []
    enters = advised.pool_tokens != asked.pool_tokens
    first = "Running requests are charged to the pool here, and" if enters else "Running requests never enter the pool:"
    cost = f"{first} out of what the fraction leaves free come {_cost_text(asked)}."
    held, freed = solution.tokens // situation.context_length, asked.table_gib - advised.table_gib
    graphs = _fewer_graphs(asked, advised) and bool(advised.batch_sizes)
    if advised.requests >= asked.requests or not (graphs or freed >= 0.05):
        return [cost]
    parts = [f"{freed:.2f} GiB of the table"] if freed >= 0.005 else []
    if graphs and advised.batch_sizes:
        parts.append(f"the graphs above batch {advised.batch_sizes[-1]}")
    full = f"{solution.tokens:,} tokens hold {_requests_text(held)} of {situation.context_length:,}"
    frees = f"max_running_requests={advised.flag} frees {' and '.join(parts)}"
    return [cost, f"{full}: {frees}; more at once run only while they are shorter."]


def _cost_text(running: Running) -> str:
    table = f"the table for {running.requests:,} of them ({running.table_gib:.2f} GiB)"
    if running.batch_sizes is None:
        return f"{table} and the CUDA graphs"
    if not running.batch_sizes:
        return table
    each = f" x {running.tokens_each} tokens" if running.tokens_each not in (None, 1) else ""
    sizes = "one batch size," if len(running.batch_sizes) == 1 else f"{len(running.batch_sizes)} batch sizes up to"
    return f"{table} and the CUDA graphs of {sizes} {running.batch_sizes[-1]}{each}"


def _fewer_graphs(asked: Running, advised: Running) -> bool:
    return asked.batch_sizes is not None and asked.batch_sizes != advised.batch_sizes


def _requests_text(count: int) -> str:
    return ("not one request", "one request")[count] if count < 2 else f"{count:,} requests"


def state_notes(situation: Situation, solution: Solution) -> list[str]:
    """What the pool of states takes, what would give that memory to tokens, and how many requests its slots serve."""
    states = situation.pool.states
    if states is None or solution.tokens == 0:
        return []
    slots, gib = situation.slots(shown_fraction(solution)), states_gib_of(situation, solution)
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


def shown_fraction(solution: Solution) -> float:
    """The fraction whose figures are shown: the solution's, else the largest there is."""
    return solution.fraction or (STEPS - 1) / STEPS


def states_gib_of(situation: Situation, solution: Solution) -> float:
    slots = situation.slots(shown_fraction(solution))
    return state_gib(situation.pool, situation.deployment, situation.context_length, solution.tokens, slots)


def _state_advice(situation: Situation) -> str:
    states, deployment = situation.pool.states, situation.deployment
    if states is None or states.fixed is None:
        ratio = f"a mamba_full_memory_ratio smaller than {deployment.mamba_full_memory_ratio:g}"
        return f"{ratio}, and fewer max_running_requests," if states is not None and states.draft_tokens else ratio
    return "a smaller max_mamba_cache_size" if deployment.max_mamba_cache_size else "a smaller max_running_requests"


def build_notes(request: Request, version: Version) -> list[str]:
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
        notes.append(
            f"Tokens are those that requests can fill: {request.deployment.dcp_size} times the rows that the pool line of each rank shows."
        )
    return notes


def pool_notes(request: Request, memory: Memory, required: Optional[int]) -> list[str]:
    anchor = memory.anchor
    notes = []
    if required is not None and request.context_length is not None:
        notes.append(
            f"A prompt is accepted up to min(context, pool) - {PROMPT_RESERVE} tokens; "
            "a prompt of T tokens with G to come needs a pool of T + G + 2."
        )
    if memory.pool.reserve_gib:
        notes.append(f"SGLang keeps {memory.pool.reserve_gib:.2f} GiB of the budget for the images of a multimodal model.")
    if anchor is None:
        return notes
    if required is not None and anchor.tokens < required:
        notes.append(
            f"The newest start holds {anchor.tokens:,} tokens, {required - anchor.tokens:,} short of {required:,}: "
            "a request that fills them is refused."
        )
    notes += _draft_note(request, memory.pool, anchor)
    if memory.earlier is not None:
        notes += _difference_note(request, memory, memory.earlier, anchor)
    return notes


def shortfall_notes(solution: Solution, required: Optional[int], error_tokens: int) -> list[str]:
    """What the error of the figures may cost: no margin is added for it, because the first start shows what is true."""
    if required is None or solution.tokens < required or solution.tokens - error_tokens >= required:
        return []
    return [
        f"The pool may turn out up to {required - solution.tokens + error_tokens:,} tokens short: its {solution.tokens:,} are known "
        f"within {error_tokens:,}. A start shows the rest, and the fraction follows it."
    ]


def window_notes(request: Request, pool: Pool, solution: Solution) -> list[str]:
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
    if backend_decides(request.target.windows, pool.era.since, request.deployment):
        notes.append(
            "On the attention backend trtllm_mha, the default on cards of compute capability 10, this release makes one pool: "
            "there give disable_hybrid_swa_memory."
        )
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


def _difference_note(request: Request, memory: Memory, earlier: Anchor, newest: Anchor) -> list[str]:
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
    workers = request.deployment.dp_size
    runs = (earlier.boot.running(workers), newest.boot.running(workers))
    cause = f" (max_running_requests {runs[0]} then {runs[1]}: smaller CUDA graphs)" if None not in runs and runs[0] != runs[1] else ""
    return [f"{text}, and {elsewhere:.1f} GiB less went to other things{cause}."]
