# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Public boots of SGLang: what their logs printed, beside what this collection says from the other figures of the same log.

The table is tests/unit/fixtures/boots/public_boots.json. A boot gives every prediction that its figures allow:

==================  ===============================================================================================
tokens              the pool, from the free memory before and after the weights and the fraction
from_other          the pool, from another boot of the same host with other flags
kv, draft_kv        GiB of the target's and of the draft's pool, from the printed tokens
swa_tokens, swa_kv  the pool of windowed layers, from that of the others
slots, states       slots of recurrent states, and what they take in GiB
after_pool          memory free after the pools, from what was free before them
cell                bytes of the budget for one token
budget              GiB that the fraction leaves for the pool
minimum_fraction    the lowest fraction that a refusal names
limit               the longest prompt that a refusal names, from the pool
==================  ===============================================================================================

A printed figure has two decimals, so it is known to 0.005 GiB; every tolerance here follows from that and from the size of a
page. Where a boot is further off, the table says by how much and for which of the reasons below.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._compressed import sub_pools
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan import PROMPT_RESERVE
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    Pool,
    build_pool,
    free_at_sizing,
    lowest_fraction,
    mamba_slots,
    pool_tokens,
    request_table_gib,
)

FIXTURES = Path(__file__).resolve().parents[1] / "unit/fixtures"
TABLE = FIXTURES / "boots/public_boots.json"

# half of the last printed decimal, in GiB and in fractions
PRINTED_GIB = 0.005
PRINTED_FRACTION = 0.00005
# the CUDA allocator hands out large buffers in blocks of 2 MiB and smaller ones out of segments of 20 MiB
BLOCK_GIB = 2 / 1024
SEGMENT_GIB = 20 / 1024


@dataclass(frozen=True)
class Boot:
    """One start as its log shows it. Memory in GiB per rank, pools in tokens; None is not shown."""

    id: str
    source: str
    hardware: str
    version: str
    known_by: str
    model: Optional[str] = None
    draft: Optional[str] = None
    sized_as: Optional[str] = None
    override: dict[str, Any] = field(default_factory=dict)
    named_by: Optional[str] = None
    args: dict[str, Any] = field(default_factory=dict)
    context: Optional[int] = None
    fraction: Optional[float] = None
    fraction_by: Optional[str] = None
    before: Optional[float] = None
    at_sizing: Optional[float] = None
    unsure: tuple[float, float] = (PRINTED_GIB, PRINTED_GIB)
    weights: Optional[float] = None
    tokens: Optional[int] = None
    kv: Optional[list[float]] = None
    draft_kv: Optional[list[float]] = None
    after_pool: Optional[float] = None
    cell: Optional[float] = None
    budget: Optional[float] = None
    minimum_fraction: Optional[float] = None
    limit: Optional[int] = None
    swa_tokens: Optional[int] = None
    swa_kv: Optional[list[float]] = None
    slots: Optional[int] = None
    states: Optional[dict[str, float]] = None
    requests: Optional[int] = None
    other: Optional[str] = None
    cut: Optional[str] = None
    off: dict[str, list[Any]] = field(default_factory=dict)

    @cached_property
    def target(self) -> Geometry:
        """Geometry of the model."""
        return _geometry(str(self.model), self.override)

    @property
    def deployment(self) -> Deployment:
        names = {"enable_dp_attention": "dp_attention"}
        return Deployment(**{names.get(key, key): value for key, value in self.args.items()})

    @cached_property
    def pool(self) -> Pool:
        draft = _geometry(self.draft, {}) if self.draft else None
        return build_pool(era_of(parse_version(self.sized_as or self.version))[0], self.target, draft, self.deployment)

    @property
    def era(self) -> str:
        era = era_of(parse_version(self.sized_as or self.version))[0].name
        return f"before 0.4.6, by the rules of {era}" if self.sized_as else era

    @property
    def family(self) -> str:
        """Family of the model, ``any`` where none is needed."""
        if self.model is None:
            return "any"
        return f"{self.target.family} with states" if self.target.states else self.target.family

    @property
    def has_memory(self) -> bool:
        """Shows the memory before and after the weights, the fraction and a pool that nothing else cut."""
        figures = (self.before, self.at_sizing, self.fraction)
        return None not in figures and bool(self.tokens) and not self.cut and "max_total_tokens" not in self.args

    @property
    def unsure_gib(self) -> float:
        """Half-width of the budget, from the printed decimals of the memory before and after the weights."""
        before, at_sizing = self.unsure
        return at_sizing + before * (1 - (self.fraction or 0))


@dataclass(frozen=True)
class Prediction:
    """One figure of a boot, said and printed. ``low`` and ``high`` bound printed minus predicted where nothing else is named."""

    boot: Boot
    kind: str
    predicted: Union[int, float]
    printed: Union[int, float]
    low: float
    high: float

    @property
    def difference(self) -> float:
        return self.printed - self.predicted

    @property
    def percent(self) -> float:
        """Distance in percent of what was printed; of the predicted where nothing was left."""
        return 100 * abs(self.difference) / (abs(self.printed) or abs(self.predicted) or 1)

    @property
    def within(self) -> bool:
        return self.low <= self.difference <= self.high

    @property
    def named(self) -> Optional[tuple[float, str]]:
        """Bound in percent and reason, where the table names one."""
        row = self.boot.off.get(self.kind)
        return (row[0], row[1]) if row else None


def load() -> tuple[list[Boot], list[dict[str, str]], dict[str, str]]:
    """The boots, those that nothing can be said about with the reason, and the reasons for distances."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return [Boot(**row) for row in table["boots"]], table["unpredictable"], table["reasons"]


def _geometry(name: str, override: dict[str, Any]) -> Geometry:
    config = json.loads((FIXTURES / f"configs/{name}.json").read_text(encoding="utf-8"))
    return read_geometry({**config, **override})


def predictions(boot: Boot) -> list[Prediction]:
    """Everything that can be said about a boot."""
    pools = (_tokens, _from_other, _kv, _draft_kv, _swa_tokens, _swa_kv, _slots, _states)
    makers = (*pools, _after_pool, _cell, _budget, _minimum_fraction, _limit)
    return [found for found in (make(boot) for make in makers) if found is not None]


def _tokens(boot: Boot) -> Optional[Prediction]:
    if not boot.has_memory:
        return None
    said = pool_tokens(boot.pool, boot.before, boot.at_sizing, boot.fraction)
    bound = (boot.unsure_gib + _slot_gib(boot)) * GIB / boot.pool.effective_cell + boot.pool.page + 1
    return Prediction(boot, "tokens", said, boot.tokens, -bound, bound)


def _from_other(boot: Boot) -> Optional[Prediction]:
    """The pool from another boot of the same host with other flags: what that one had free when it was sized is solved for."""
    if boot.other is None or boot.before is None or boot.fraction is None or boot.tokens is None:
        return None
    first = next(candidate for candidate in load()[0] if candidate.id == boot.other)
    at_sizing = free_at_sizing(first.pool, boot.before, first.fraction or 0, first.tokens or 0)
    said = pool_tokens(boot.pool, boot.before, at_sizing, boot.fraction)
    # half a token of the first boot, and what the printed memory before the weights leaves where the fractions differ
    apart = boot.unsure[0] * abs(boot.fraction - (first.fraction or 0)) * GIB
    bound = (apart + first.pool.page * first.pool.effective_cell) / boot.pool.effective_cell + boot.pool.page
    return Prediction(boot, "from_other", said, boot.tokens, -bound, bound)


def _kv(boot: Boot) -> Optional[Prediction]:
    return _stored(boot, "kv", boot.kv, boot.pool.target_pool_bytes(boot.tokens)) if boot.kv and boot.tokens else None


def _draft_kv(boot: Boot) -> Optional[Prediction]:
    if boot.draft_kv is None or boot.tokens is None:
        return None
    return _stored(boot, "draft_kv", boot.draft_kv, (boot.tokens + boot.pool.page) * boot.pool.draft_bytes)


def _swa_tokens(boot: Boot) -> Optional[Prediction]:
    """The pool of the windowed layers, from that of the others."""
    if boot.swa_tokens is None or not boot.tokens:
        return None
    if boot.target.family == "compressed":
        said: Optional[int] = sub_pools(boot.pool.era, boot.target, boot.deployment, boot.tokens).windowed
    else:
        said = boot.pool.swa_tokens(boot.tokens)
    return Prediction(boot, "swa_tokens", said or 0, boot.swa_tokens, 0, 0)


def _swa_kv(boot: Boot) -> Optional[Prediction]:
    if boot.swa_kv is None or boot.swa_tokens is None or boot.pool.second is None:
        return None
    return _stored(boot, "swa_kv", boot.swa_kv, (boot.swa_tokens + boot.pool.page) * boot.pool.second.bytes_per_token)


def _slots(boot: Boot) -> Optional[Prediction]:
    """Slots of recurrent states, as many as the memory gives."""
    if boot.slots is None or not boot.has_memory:
        return None
    said = mamba_slots(boot.pool, boot.before, boot.at_sizing, boot.fraction)
    bound = boot.unsure_gib / _slot_gib(boot) + 1
    return Prediction(boot, "slots", said, boot.slots, -bound, bound)


def _states(boot: Boot) -> Optional[Prediction]:
    if boot.states is None or boot.slots is None or boot.pool.states is None:
        return None
    said = boot.pool.states.stored_gib(boot.slots, boot.requests or 0) * GIB
    return _stored(boot, "states", list(boot.states.values()), said)


def _slot_gib(boot: Boot) -> float:
    """What one slot of recurrent states takes; 0 for a model without any."""
    return boot.pool.states.slot_bytes / GIB if boot.pool.states else 0.0


def _stored(boot: Boot, kind: str, printed: list[float], size: float) -> Prediction:
    """GiB of a pool with its padding page; K and V are printed apart, each with an error of its own."""
    bound = PRINTED_GIB * len(printed)
    return Prediction(boot, kind, size / GIB, round(sum(printed), 2), -bound, bound)


def _after_pool(boot: Boot) -> Optional[Prediction]:
    """The table of requests and the buffers come out of what was free; each buffer may waste most of a block."""
    if boot.after_pool is None or boot.at_sizing is None or not boot.tokens:
        return None
    context = boot.context or boot.target.max_position or 0
    table = request_table_gib(boot.pool, boot.deployment, context, boot.tokens)
    stored = boot.pool.stored_gib(boot.tokens)
    if boot.pool.states is not None:
        stored += boot.pool.states.stored_gib(boot.slots or 0, boot.requests or 0)
    buffers = boot.target.layers * (2 if boot.target.family in ("mha", "swa") else 1)
    waste = buffers * BLOCK_GIB if stored / buffers * 1024 > 10 else buffers * SEGMENT_GIB / 3
    unsure = 2 * PRINTED_GIB
    return Prediction(boot, "after_pool", boot.at_sizing - stored - table, boot.after_pool, -unsure - waste, unsure)


def _cell(boot: Boot) -> Optional[Prediction]:
    if boot.cell is None:
        return None
    return Prediction(boot, "cell", float(boot.pool.charged), boot.cell, -PRINTED_GIB, PRINTED_GIB)


def _budget(boot: Boot) -> Optional[Prediction]:
    if boot.budget is None or boot.before is None or boot.at_sizing is None or boot.fraction is None:
        return None
    said = boot.at_sizing - boot.before * (1 - boot.fraction) - boot.pool.reserve_gib
    unsure = PRINTED_GIB + boot.unsure_gib
    return Prediction(boot, "budget", said, boot.budget, -unsure, unsure)


def _minimum_fraction(boot: Boot) -> Optional[Prediction]:
    if boot.minimum_fraction is None or boot.before is None or boot.at_sizing is None:
        return None
    # rounded up here and to the nearest step there
    unsure = 2 * PRINTED_GIB / boot.before + 3 * PRINTED_FRACTION
    return Prediction(
        boot, "minimum_fraction", lowest_fraction(boot.pool, boot.before, boot.at_sizing), boot.minimum_fraction, -unsure, unsure
    )


def _limit(boot: Boot) -> Optional[Prediction]:
    """SGLang names the first length that it turns away."""
    if boot.limit is None or not boot.tokens:
        return None
    return Prediction(boot, "limit", boot.tokens - PROMPT_RESERVE + 1, boot.limit, 0, 0)
