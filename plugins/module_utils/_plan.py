# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: a fraction for a wanted pool (or a pool for a given fraction), what it leaves free, and what else would fit.

Private to this collection: may change at any time. All memory is GiB (2^30) per rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version, read_version
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Memory, find_memory
from ansible_collections.inferops.sglang.plugins.module_utils._plan_alternatives import Alternative, alternatives_of
from ansible_collections.inferops.sglang.plugins.module_utils._plan_notes import (
    PROMPT_RESERVE,
    advised_running,
    build_notes,
    pool_notes,
    request_notes,
    running_at,
    shortfall_notes,
    shown_fraction,
    state_notes,
    states_gib_of,
    window_notes,
)
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import (
    Request,
    check,
    check_deployment,
    check_version,
    context_of,
    required_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._plan_solution import answer, situation_of
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    Pool,
    build_pool,
)

__all__ = ["PROMPT_RESERVE", "Alternative", "Plan", "Request", "bytes_per_token", "make_plan"]


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
    # of a model whose windowed layers have a pool of their own
    swa_tokens: Optional[int]
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
    check(request)
    version = read_version(request.version)
    era, era_notes = era_of(version)
    memory = find_memory(version, era, request.target, request.draft, request.deployment, context_of(request), request.sources)
    required = required_of(request, memory.pool)
    situation = situation_of(request, memory)
    solution = answer(request, situation, required)
    error_tokens = _error_tokens(memory, solution.tokens)
    asked = running_at(request, version, memory, situation, solution, request.deployment)
    advised = advised_running(request, version, memory, situation, solution)
    reasons = [
        *era_notes,
        *build_notes(request, version),
        *memory.reasons,
        *pool_notes(request, memory, required),
        *solution.reasons,
        *shortfall_notes(solution, required, error_tokens),
        *state_notes(situation, solution),
        *window_notes(request, memory.pool, solution),
        *request_notes(solution, situation, asked, advised),
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
        error_tokens=error_tokens,
        verdict=solution.verdict,
        reasons=tuple(reasons),
        alternatives=tuple(alternatives_of(request, memory, situation, solution, required)),
        lower_bound=situation.lower_bound,
        upper_bound=situation.upper_bound,
        running_requests=asked.requests,
        req_to_token_gib=round(asked.table_gib, 3),
        graph_batch_sizes=asked.batch_sizes,
        graph_tokens_per_request=asked.tokens_each,
        recommended_max_running_requests=advised.flag if advised else None,
        swa_tokens=memory.pool.swa_tokens(solution.tokens),
        mamba_slots=situation.slots(shown_fraction(solution)) if memory.pool.states else None,
        states_gib=round(states_gib_of(situation, solution), 2) if memory.pool.states else None,
    )


def bytes_per_token(request: Request) -> dict[str, Union[int, float]]:
    """Bytes for one token and rank: ``target`` and ``draft`` as stored, ``charged`` to the budget; needs no memory figures."""
    check_version(request.version)
    check_deployment(request.deployment)
    era, _notes = era_of(parse_version(request.version))
    return _plain_bytes(build_pool(era, request.target, request.draft, request.deployment))


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
