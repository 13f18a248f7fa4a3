# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a plan's memory figures come from: earlier starts if any match, else an estimate. Private to this collection.

A start beats every estimate. Two starts with different fractions give the line through their pools without any knowledge
of the cards; one start gives it with the free memory before the weights; a start that died for want of memory still
printed both measurements. Only then weights are taken from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._boots import (
    Anchor,
    Boot,
    algorithm_fact,
    matching,
    path_fact,
    read_boots,
)
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import Weights
from ansible_collections.inferops.sglang.plugins.module_utils._compressed import page_of
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._era_evidence import Evidence, era_of_starts, no_release
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, Version
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import kv_type, type_notes
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    Pool,
    build_pool,
    free_at_sizing,
    pool_tokens,
    request_table_gib,
    state_gib,
)

# half a unit of the last place in SGLang's log, where all memory has two decimals
LOG_ERROR_GIB = 0.005
# The bytes per token of the known rules differ by 5 % on the models this is for; free memory that moved between two starts
# by as much as the log rounds shifts them by far less than 1 %.
RULE_TOLERANCE = 0.02


@dataclass(frozen=True)
class Sources:
    """What the caller knows about memory (GiB per rank, the smallest over the ranks) and about earlier starts."""

    gpu_free_gib: Optional[float] = None
    free_at_sizing_gib: Optional[float] = None
    # asked only when no start tells the weights; raises InputError where they cannot be known
    weights: Callable[[], Weights] = field(default=lambda: Weights(0.0))
    # None where there is nothing a draft's weights could be read from
    draft_weights: Callable[[], Optional[Weights]] = field(default=lambda: None)
    observed: Sequence[Mapping[str, Any]] = ()
    model: Optional[str] = None
    draft_model: Optional[str] = None
    free_jitter_gib: float = 0.0


@dataclass(frozen=True)
class Memory:
    """The figures a plan is made from. ``free_base_gib`` is what would be free with no pools and no request table."""

    pool: Pool
    before_gib: float
    at_sizing_gib: float
    free_base_gib: float
    basis: str
    reasons: tuple[str, ...]
    # half-width of a predicted pool: tokens at the anchor, and more for each token away from it
    error_tokens: float
    error_slope: float = 0.0
    # draft weights that load after the pool, as far as they are known
    uncharged_gib: float = 0.0
    anchor: Optional[Anchor] = None
    earlier: Optional[Anchor] = None
    starts: tuple[Boot, ...] = ()


@dataclass(frozen=True)
class _Case:
    """The inputs that every step below needs."""

    version: Version
    era: Era
    target: Geometry
    draft: Optional[Geometry]
    deployment: Deployment
    context_length: int
    sources: Sources

    def pool(self, era: Era) -> Pool:
        return build_pool(era, self.target, self.draft, self.deployment)

    def ran(self, boot: Boot) -> Deployment:
        """The plan's flags with those of a start, as far as it tells them and they decide the states of a hybrid model."""
        if self.target.states is None:
            return self.deployment
        return replace(self.deployment, **boot.state_flags)

    def pool_of(self, era: Era, boot: Boot) -> Pool:
        """The pool as a start had it; with the plan's flags where those of the start do not go together here."""
        try:
            return build_pool(era, self.target, self.draft, self.ran(boot))
        except InputError:
            return self.pool(era)


def find_memory(
    version: Version,
    era: Era,
    target: Geometry,
    draft: Optional[Geometry],
    deployment: Deployment,
    context_length: int,
    sources: Sources,
) -> Memory:
    """Memory of the best evidence there is; raises InputError where there is too little of it."""
    case = _Case(version, era, target, draft, deployment, context_length, sources)
    if version.known:
        case.pool(era)
    as_auto = kv_type(era, target, replace(deployment, kv_cache_dtype="auto")).width
    starts, notes = matching(read_boots(sources.observed, as_auto), _wanted(case))
    notes.extend(type_notes(era, target, deployment))
    # starts of other hosts come from one host, and one sentence says what was made of them
    notes.extend([boot.taught for boot in starts if boot.taught][:1])
    anchors = [anchor for anchor in (boot.anchor() for boot in starts) if anchor is not None]
    notes.extend(_unmodelled_notes(starts))
    if anchors:
        memory = _from_anchors(case, anchors)
    elif not version.known:
        raise no_release(version)
    else:
        measured = next((found for found in map(_measured, starts) if found is not None), None)
        memory = _from_measurement(case, measured, starts) if measured else _from_estimate(case, starts)
        if starts and not measured:
            notes.append("No observed start tells enough to plan from: a fraction with its pool, or the memory around the weights.")
    return replace(memory, reasons=(*notes, *memory.reasons), starts=tuple(starts))


def _unmodelled_notes(starts: Sequence[Boot]) -> list[str]:
    flags = starts[0].unmodelled if starts else ()
    if not flags:
        return []
    return [
        f"The newest start ran with {' and '.join(flags)}, which no plan here knows: trust only what two such starts with different "
        "fractions show between them."
    ]


def _wanted(case: _Case) -> dict[str, Any]:
    dep = case.deployment
    return {
        "sglang_version": case.version.identity if case.version.known else None,
        "model": path_fact(case.sources.model),
        "draft_model": path_fact(case.sources.draft_model),
        "speculative_algorithm": algorithm_fact(dep.algorithm),
        "tp_size": dep.tp_size,
        "pp_size": dep.pp_size,
        "dp_size": dep.dp_size,
        "ep_size": dep.ep_size,
        "dcp_size": dep.dcp_size,
        "kv_cache_dtype": kv_type(case.era, case.target, dep).width,
        "page_size": page_of(dep) if case.target.family == "compressed" else dep.page_size,
    }


# --- from starts that printed a pool -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """Pool tokens against the fraction: through one start, or through two."""

    newest: Anchor
    other: Optional[Anchor]
    before_gib: Optional[float]

    @property
    def delta_tokens(self) -> int:
        return abs(self.newest.tokens - self.other.tokens) if self.other else 0

    @property
    def slope(self) -> Optional[float]:
        """Tokens for 1.00 of the fraction."""
        if self.other is None:
            return None
        return (self.newest.tokens - self.other.tokens) / (self.newest.fraction - self.other.fraction)


def _from_anchors(case: _Case, anchors: Sequence[Anchor]) -> Memory:
    line = _line(case, anchors)
    newest = line.newest
    era, era_notes = _era_of_line(case, line)
    pool = case.pool(era)
    before = _before(case, pool, line)
    boot = newest.boot
    at_sizing = free_at_sizing(case.pool_of(era, boot), before.gib, newest.fraction, newest.tokens, boot.mamba_slots, boot.at_sizing_gib)
    return Memory(
        pool=pool,
        before_gib=before.gib,
        at_sizing_gib=at_sizing,
        free_base_gib=_free_base(case, case.pool_of(era, boot), newest, at_sizing),
        basis="observed",
        reasons=(_line_text(line, before), *era_notes, *_left_text(newest.boot)),
        error_tokens=pool.page * pool.rows + pool.unsteady_tokens,
        error_slope=before.error,
        uncharged_gib=_uncharged_if_known(case, pool),
        anchor=newest,
        earlier=line.other,
    )


def _line(case: _Case, anchors: Sequence[Anchor]) -> _Line:
    """The newest start, with the next older one whose pool differs by more than free memory moves."""
    newest = anchors[0]
    known = [one.boot.before_gib for one in anchors if one.boot.before_gib is not None]
    before = known[0] if known else case.sources.gpu_free_gib
    others = [one for one in anchors[1:] if (one.fraction - newest.fraction) * (one.tokens - newest.tokens) > 0]
    lines = [_Line(newest, other, before) for other in others]
    pool = case.pool(case.era)
    telling = [line for line in lines if _noise(case, pool, line) <= RULE_TOLERANCE]
    return (telling or lines or [_Line(newest, None, before)])[0]


def _noise(case: _Case, pool: Pool, line: _Line) -> float:
    """Share of the slope that log rounding and moving memory may account for."""
    moved = (2 * LOG_ERROR_GIB + case.sources.free_jitter_gib) * GIB / pool.effective_cell
    return (moved + 2 * (pool.page * pool.rows + pool.unsteady_tokens)) / line.delta_tokens


@dataclass(frozen=True)
class _Before:
    """P in GiB, how far off it may be as a share of it, and how it is known."""

    gib: float
    error: float
    source: str


def _before(case: _Case, pool: Pool, line: _Line) -> _Before:
    """The logged P unless the two starts draw another line; where none was logged, what the start's other figures say."""
    slope = line.slope
    logged = None if line.before_gib is None else _Before(line.before_gib, LOG_ERROR_GIB / line.before_gib, "logged")
    if slope is None:
        return logged or _before_of_one(case, pool, line.newest)
    fitted = slope * pool.effective_cell / GIB / pool.fraction_factor
    if logged is not None:
        agrees = abs(fitted / logged.gib - 1) <= RULE_TOLERANCE
        if agrees or _noise(case, pool, line) > RULE_TOLERANCE:
            return logged
    return _Before(fitted, 2 * pool.page * pool.rows / line.delta_tokens, "fitted")


def _before_of_one(case: _Case, pool: Pool, newest: Anchor) -> _Before:
    """The formula of the pool solved for P: by A of the start, else by the weights, with f * P = pool + weights."""
    share = newest.fraction * pool.fraction_factor
    ran = case.pool_of(pool.era, newest.boot)
    paid = free_at_sizing(ran, 0.0, newest.fraction, newest.tokens, newest.boot.mamba_slots)
    logged = newest.boot.at_sizing_gib
    at_sizing = case.sources.free_at_sizing_gib if logged is None else logged
    if at_sizing is not None and at_sizing > paid:
        gib = (at_sizing - paid) / (1 - share)
        return _Before(gib, LOG_ERROR_GIB / (1 - share) / gib, "from what was free when the pool was sized")
    try:
        loaded = _loaded(case, pool)
    except InputError as unknown:
        raise InputError(
            "a plan from one earlier start",
            "no free memory before the weights, neither in that start nor as gpu_free_gib, and no memory of the weights",
            "give gpu_free_gib, or a second start with another mem_fraction_static, or weights_gib",
        ) from unknown
    return _Before(
        (paid + loaded.gib) / share, loaded.error_gib / (paid + loaded.gib), f"from the pool and {loaded.gib:.2f} GiB of weights"
    )


def _era_of_line(case: _Case, line: _Line) -> tuple[Era, list[str]]:
    """The rules that explain the starts: those of the version, unless they are contradicted and others fit."""
    boot = line.newest.boot
    evidence = Evidence(
        fits=lambda era: _pools_fit(case, era, line),
        order=boot.load_order if case.draft is not None else None,
        typed=boot.typed_pool,
        starts=1 if line.other is None else 2,
    )
    return era_of_starts(case.version, case.era, evidence, lambda era: _known(case, era))


def _known(case: _Case, era: Era) -> bool:
    try:
        case.pool(era)
    except InputError:
        return False
    return True


def _pools_fit(case: _Case, era: Era, line: _Line) -> Optional[bool]:
    """Do an era's bytes per token explain the pools? None where they cannot tell, or the era knows no such draft."""
    if not _known(case, era):
        return None
    pool = case.pool(era)
    slope = line.slope
    if slope is None:
        return _pool_fits(case, case.pool_of(era, line.newest.boot), line.newest)
    if line.before_gib is None or _noise(case, pool, line) > RULE_TOLERANCE:
        return None
    measured = line.before_gib * pool.fraction_factor * GIB / slope
    return abs(measured / pool.effective_cell - 1) <= RULE_TOLERANCE


def _pool_fits(case: _Case, pool: Pool, start: Anchor) -> Optional[bool]:
    """Does the formula give the pool of one start that printed both measurements? Only where rounding cannot hide the answer."""
    before, at_sizing = start.boot.before_gib, start.boot.at_sizing_gib
    if before is None or at_sizing is None:
        return None
    allowed = RULE_TOLERANCE * start.tokens
    moved = (2 * LOG_ERROR_GIB + case.sources.free_jitter_gib) * GIB / pool.effective_cell + pool.page * pool.rows + pool.unsteady_tokens
    if moved > allowed:
        return None
    return abs(pool_tokens(pool, before, at_sizing, start.fraction) - start.tokens) <= allowed


def _line_text(line: _Line, before: _Before) -> str:
    newest, other, slope = line.newest, line.other, line.slope
    if other is None or slope is None:
        return (
            f"From an observed start: mem_fraction_static {newest.fraction:g} gave {newest.tokens:,} tokens, "
            f"with {before.gib:.2f} GiB free before the weights ({before.source})."
        )
    return (
        f"From two observed starts: mem_fraction_static {other.fraction:g} gave {other.tokens:,} tokens and {newest.fraction:g} gave "
        f"{newest.tokens:,}: {slope:,.0f} tokens for 1.00 of fraction; {before.gib:.2f} GiB free before the weights ({before.source})."
    )


def _left_text(newest: Boot) -> list[str]:
    if newest.free_gib is None:
        return ["The start does not tell what was left in the end: headroom counts only what is known to be allocated."]
    if not newest.was_ready:
        return ["That start did not become ready: what it left free does not cover what it had still to allocate."]
    return []


def _free_base(case: _Case, pool: Pool, anchor: Anchor, at_sizing: float) -> float:
    """From what the start left free, else from A less what was loaded after the pool."""
    boot = anchor.boot
    if boot.free_gib is None:
        return at_sizing - _uncharged_gib(case, pool)
    # the first releases hand the whole flag to every worker
    running = boot.running(1 if pool.era.request_rule == "user" else case.deployment.dp_size)
    ran = replace(case.deployment, max_running_requests=running or case.deployment.max_running_requests)
    context = boot.context_length or case.context_length
    table = request_table_gib(pool, ran, context, anchor.tokens, boot.mamba_slots)
    states = state_gib(pool, ran, context, anchor.tokens, boot.mamba_slots)
    return boot.free_gib + pool.stored_gib(anchor.tokens) + states + table


def _uncharged_gib(case: _Case, pool: Pool) -> float:
    """Draft weights that arrive only after the pool was sized; 0 where they are not known."""
    if case.draft is None or pool.era.draft_weights_charged:
        return 0.0
    weights = case.sources.draft_weights()
    return weights.gib if weights else 0.0


def _uncharged_if_known(case: _Case, pool: Pool) -> float:
    """The same where a start has told all that the plan needs, so that a draft which cannot be read is no reason to refuse."""
    try:
        return _uncharged_gib(case, pool)
    except InputError:
        return 0.0


def _graphs_gib(starts: Sequence[Boot]) -> float:
    """What graph capture took at the newest start that shows it."""
    return next((boot.graphs_gib for boot in starts if boot.graphs_gib is not None), 0.0)


# --- from a start that measured its memory but kept no pool ------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    boot: Boot
    before_gib: float
    at_sizing_gib: float


def _measured(boot: Boot) -> Optional[_Measured]:
    """P and A of a start without a usable pool; A by the share it said it needs, which no later load has altered."""
    before, at_sizing = boot.before_gib, boot.at_sizing_gib
    if before is None:
        return None
    if boot.minimum_fraction is not None:
        at_sizing = before * (1 - boot.minimum_fraction)
    return None if at_sizing is None else _Measured(boot, before, at_sizing)


def _from_measurement(case: _Case, measured: _Measured, starts: Sequence[Boot]) -> Memory:
    pool = case.pool(case.era)
    uncharged = _uncharged_gib(case, pool)
    boot, before, at_sizing = measured.boot, measured.before_gib, measured.at_sizing_gib
    end = f"ended with {boot.failure}" if boot.failure else "shows its memory but no pool that a fraction gave"
    return Memory(
        pool=pool,
        before_gib=before,
        at_sizing_gib=at_sizing,
        free_base_gib=at_sizing - uncharged - _graphs_gib(starts),
        basis="observed",
        reasons=(
            f"From an observed start that {end}: {before:.2f} GiB free before the weights, {at_sizing:.2f} GiB when the pool is sized.",
        ),
        error_tokens=3 * LOG_ERROR_GIB * GIB / pool.effective_cell + pool.unsteady_tokens,
        uncharged_gib=uncharged,
    )


# --- from an estimate ----------------------------------------------------------------------------------------------------


def _from_estimate(case: _Case, starts: Sequence[Boot]) -> Memory:
    before = case.sources.gpu_free_gib
    if before is None:
        raise InputError(
            "the memory that the pool is cut from",
            "no observed start that matches and no gpu_free_gib",
            "give gpu_free_gib, the free memory of a card in GiB just before the weights load",
        )
    pool = case.pool(case.era)
    at_sizing = _at_sizing(case, pool, before)
    draft = _uncharged_gib(case, pool)
    after = f" {draft:.2f} GiB of draft weights load after the pool." if draft else ""
    text = f"Estimated: {before:.2f} GiB free before the weights, {at_sizing.gib:.2f} GiB when the pool is sized ({at_sizing.how}).{after}"
    return Memory(
        pool=pool,
        before_gib=before,
        at_sizing_gib=at_sizing.gib,
        free_base_gib=at_sizing.gib - draft - _graphs_gib(starts),
        basis="estimated",
        reasons=(text, *at_sizing.notes, *_estimate_notes(case, pool, draft)),
        error_tokens=at_sizing.error_gib * GIB / pool.effective_cell + pool.page * pool.rows + pool.unsteady_tokens,
        uncharged_gib=draft,
    )


@dataclass(frozen=True)
class _Estimate:
    """A figure and its error (GiB), where it comes from, and what to know about it."""

    gib: float
    error_gib: float
    how: str
    notes: tuple[str, ...] = ()


def _at_sizing(case: _Case, pool: Pool, before: float) -> _Estimate:
    """Free memory when the pool is sized."""
    given = case.sources.free_at_sizing_gib
    if given is None:
        loaded = _loaded(case, pool)
        return replace(loaded, gib=before - loaded.gib, error_gib=loaded.error_gib + 2 * LOG_ERROR_GIB)
    if given > before:
        raise InputError(
            "free memory before the weights and when the pool is sized",
            f"gpu_free_gib {before:g} and free_at_sizing_gib {given:g}",
            "give the first no smaller than the second: loading weights frees no memory",
        )
    return _Estimate(given, 2 * LOG_ERROR_GIB, "as given")


def _loaded(case: _Case, pool: Pool) -> _Estimate:
    """What is loaded when the pool is sized; raises InputError where it is not known."""
    target = _weighed(case.sources.weights(), "weights")
    if case.draft is None or not pool.era.draft_weights_charged:
        return target
    weights = case.sources.draft_weights()
    if weights is not None:
        draft = _weighed(weights, "draft weights")
        return _Estimate(
            target.gib + draft.gib, target.error_gib + draft.error_gib, f"{target.how} and {draft.how}", (*target.notes, *draft.notes)
        )
    if case.draft is case.target:
        unknown = "The weights of the model's own next-token layers are unknown and not counted: give draft_weights_gib."
        return replace(target, notes=(*target.notes, unknown))
    raise InputError(
        f"the memory left by target and draft under SGLang {pool.era.name}, which loads both before it sizes the pool",
        "no weights of the draft",
        "give draft_weights_gib, or draft_model as a directory",
    )


def _weighed(weights: Weights, what: str) -> _Estimate:
    if not weights.reasons:
        return _Estimate(weights.gib, weights.error_gib, f"{weights.gib:.2f} GiB of {what}")
    note = f"The {what} by the headers of the checkpoint, within {weights.error_gib:.2f} GiB; {'; '.join(weights.reasons)}."
    return _Estimate(weights.gib, weights.error_gib, f"{weights.gib:.2f} GiB of {what}", (note,))


def _estimate_notes(case: _Case, pool: Pool, draft: float) -> list[str]:
    if case.draft is None or pool.era.draft_weights_charged or draft:
        return []
    return ["The draft's weights are unknown and load after the pool: headroom does not count them."]
