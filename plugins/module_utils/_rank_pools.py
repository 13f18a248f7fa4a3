# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one rank of a booting server printed: loads, pools, captures. Private to this collection: may change at any time.

A rank prints one section of pool lines for each model it holds, closed by C(Memory pool end): the first is the target's, all
further ones are the drafts'. Nothing in a line says to which model it belongs. Memory is GiB (2^30), pools are tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Optional, TypeVar

from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import (
    Capture,
    Event,
    InitBegin,
    KvPool,
    MambaPool,
    PoolEnd,
    PostCapturePool,
    Rank,
    SplitSizes,
    Summary,
    WeightsBegin,
    WeightsEnd,
)
from ansible_collections.inferops.sglang.plugins.module_utils._timeline import durations, is_later

Number = TypeVar("Number", int, float)

MAX_LINES = 64  # pool lines kept of one rank; SGLang prints one or two of each model
ALIKE = 0.25  # by how much the memory for a token may differ between lines of one model
ROUNDED = 0.005  # GiB by which each printed figure may be off
MAX_VOTED = 8  # ranks whose pools are set against those of all others


def rank_of(labels: Rank) -> RankId:
    """The rank that the labels of a record name."""
    return RankId(labels.dp or 0, labels.pp or 0, labels.tp or 0)


@dataclass(frozen=True)
class Pool:
    """The pool of one model on one rank. MLA models print ``kv_gib``, all others ``k_gib`` and ``v_gib``.

    ``tokens``: what requests can fill. ``shard_tokens``: the part of them that lies on this rank, under decode context parallelism.
    """

    tokens: Optional[int]
    kv_gib: Optional[float]
    k_gib: Optional[float]
    v_gib: Optional[float]
    dtype: Optional[str]
    avail_after_gib: Optional[float]
    upper_bound_tokens: Optional[int] = None
    shard_tokens: Optional[int] = None

    def looks_like(self, other: Pool) -> bool:
        """Whether the two may be pools of one model: the same form, and about as much memory for a token."""
        if (self.kv_gib is None) != (other.kv_gib is None):
            return False
        own, its = self._gib_per_token, other._gib_per_token
        return abs(own - its) <= ALIKE * max(own, its) + self._rounding + other._rounding

    @property
    def _gib_per_token(self) -> float:
        return (self.kv_gib or (self.k_gib or 0.0) + (self.v_gib or 0.0)) / (self.tokens or 1)

    @property
    def _rounding(self) -> float:
        """By how much the memory for a token may be off: of a tiny model's pool two decimals tell next to nothing."""
        return ROUNDED * (1 if self.kv_gib is not None else 2) / (self.tokens or 1)


@dataclass(frozen=True)
class RankReport:
    """What one rank printed."""

    tp: int
    pp: int
    dp: int
    ep: Optional[int]
    pid: Optional[int]
    phase: str
    phases: dict[str, float]
    avail_before_weights_gib: Optional[float]
    avail_after_weights_gib: Optional[float]
    weights_gib: Optional[float]
    draft_weights_gib: Optional[float]
    load_order: Optional[str]
    avail_after_pool_gib: Optional[float]
    avail_after_capture_gib: Optional[float]
    last_avail_gib: Optional[float]
    target: Optional[Pool]
    draft: Optional[Pool]
    swa_tokens: Optional[int]
    mamba_slots: Optional[int]

    @property
    def tokens(self) -> Optional[int]:
        return self.target.tokens if self.target else None

    @property
    def id(self) -> RankId:
        return RankId(self.dp, self.pp, self.tp)


@dataclass
class _Load:
    """One model's load; ``before_pool``: it began before this rank printed any pool."""

    begin_gib: Optional[float]
    end_gib: Optional[float] = None
    usage_gib: Optional[float] = None
    ended: bool = False
    before_pool: bool = True

    @property
    def weights_gib(self) -> Optional[float]:
        if self.usage_gib is None and self.begin_gib is not None and self.end_gib is not None:
            return round(self.begin_gib - self.end_gib, 2)
        return self.usage_gib


@dataclass
class _Section:
    """The pool lines of one model runner: what a rank prints up to one ``Memory pool end``."""

    lines: list[KvPool] = field(default_factory=list)
    sizes: Optional[SplitSizes] = None
    avail_gib: Optional[float] = None

    @property
    def empty(self) -> bool:
        return not self.lines and self.sizes is None


@dataclass
class RankState:
    """All that one rank printed so far."""

    rank: Rank
    pid: Optional[int]
    phase: str = "starting"
    now: Optional[float] = None
    reached: dict[str, float] = field(default_factory=dict)
    loads: list[_Load] = field(default_factory=list)
    closed: list[_Section] = field(default_factory=list)
    open: _Section = field(default_factory=_Section)
    post_target: Optional[KvPool] = None
    post_drafts: list[KvPool] = field(default_factory=list)
    post_sizes: Optional[SplitSizes] = None
    summary: Optional[Summary] = None
    slots: Optional[int] = None
    last: Optional[type[Event]] = None
    capturing: bool = False
    capture_gib: Optional[float] = None
    last_gib: Optional[float] = None

    @property
    def has_pool(self) -> bool:
        return bool(self.closed) or not self.open.empty

    @property
    def has_pool_lines(self) -> bool:
        return not self.open.empty or any(not section.empty for section in self.closed)

    @property
    def printed(self) -> tuple[Optional[int], ...]:
        """The tokens of all its pool lines, in order."""
        return tuple(line.tokens for section in (*self.closed, self.open) for line in section.lines)

    @property
    def id(self) -> RankId:
        return rank_of(self.rank)

    def reach(self, phase: str) -> None:
        """The rank shows, at the time of ``now``, that it has come to this phase."""
        if is_later(phase, self.phase):
            self.phase = phase
            if self.now is not None:
                self.reached[phase] = self.now

    def stage(self) -> str:
        """What this rank was doing last, for the failures that only differ by that."""
        if self.last is InitBegin and self.phase == "starting":
            return "start"
        if self.last is WeightsBegin:
            return "draft_weights" if self.has_pool else "weights"
        if self.last in (Capture, PostCapturePool, Summary):
            return "capture"
        if not self.closed:
            return "pool"
        return "draft_pool" if not self.open.empty or len(self.loads) > max(len(self.closed), 1) else "capture"


# --- what an event does to its rank -----------------------------------------------------------------------------------


def _init_begin(_state: RankState, _event: InitBegin) -> None:
    """The rank is there; nothing is known of it yet."""


def _weights_begin(state: RankState, event: WeightsBegin) -> None:
    state.reach("weights")
    if len(state.loads) < MAX_LINES:
        state.loads.append(_Load(event.avail_gib, before_pool=not state.has_pool))


def _weights_end(state: RankState, event: WeightsEnd) -> None:
    state.reach("weights")
    if not state.loads or state.loads[-1].ended:
        if event.avail_gib is None or len(state.loads) >= MAX_LINES:
            return  # "committed real weights": a second word about a load that has ended
        state.loads.append(_Load(None, before_pool=not state.has_pool))
    load = state.loads[-1]
    load.end_gib, load.usage_gib, load.ended = event.avail_gib, event.usage_gib, True


def _pool_line(state: RankState, event: KvPool) -> None:
    state.reach("pool")
    if len(state.open.lines) < MAX_LINES:
        state.open.lines.append(event)


def _split(state: RankState, event: SplitSizes) -> None:
    if event.post_capture:
        state.post_sizes = event
        state.slots = event.slots if event.slots is not None else state.slots
    else:
        state.reach("pool")
        state.open.sizes = event


def _pool_end(state: RankState, event: PoolEnd) -> None:
    state.reach("pool")
    state.open.avail_gib = event.avail_gib
    if len(state.closed) < MAX_LINES:
        state.closed.append(state.open)
    state.open = _Section()
    _saw(state, event.avail_gib)


def _capture_step(state: RankState, event: Capture) -> None:
    state.reach("capture")
    state.capturing = event.begins
    _saw(state, event.avail_gib)
    if not event.begins and event.avail_gib is not None:
        state.capture_gib = event.avail_gib


def _post_capture_step(state: RankState, event: PostCapturePool) -> None:
    state.reach("capture")
    _saw(state, event.avail_gib)
    if event.draft:
        state.post_drafts = [*state.post_drafts[: MAX_LINES - 1], event.pool]
    else:
        state.post_target = event.pool


def _mamba(state: RankState, event: MambaPool) -> None:
    state.slots = event.slots if event.slots is not None else state.slots


def _rank_summary(state: RankState, event: Summary) -> None:
    state.reach("warmup")
    state.summary = event


def _saw(state: RankState, avail_gib: Optional[float]) -> None:
    state.last_gib = avail_gib if avail_gib is not None else state.last_gib


STEPS: dict[type[Event], Any] = {
    InitBegin: _init_begin,
    WeightsBegin: _weights_begin,
    WeightsEnd: _weights_end,
    KvPool: _pool_line,
    SplitSizes: _split,
    PoolEnd: _pool_end,
    Capture: _capture_step,
    PostCapturePool: _post_capture_step,
    MambaPool: _mamba,
    Summary: _rank_summary,
}


# --- pools of a rank --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PoolContext:
    """What the pools of one rank are read with.

    ``template``: a rank that printed its sections' ends. ``total``: tokens of the final line, where all ranks print the same lines, so
    that it may say which of several counts. ``silent``: no rank of this build printed
    any pool line, so the final line of each rank is the word on its pool; in all other builds a missing pool line is a lost one.
    ``dcp_size``: ranks that each hold a part of the same tokens.
    """

    template: Optional[RankState] = None
    total: Optional[int] = None
    silent: bool = False
    dcp_size: int = 1


class Pools(NamedTuple):
    """The pools of a rank, and of how many models it printed any line about its pool."""

    target: Optional[Pool]
    draft: Optional[Pool]
    models: int


def pools_of(state: RankState, context: PoolContext) -> Pools:
    """Target and draft pool of a rank: its first section, and all further ones together."""
    total = context.total
    sections = _sections(state, context.template)
    target = _pool(sections[0], total, state.post_sizes) if sections else None
    if target is None and context.silent and state.summary is not None:
        target = Pool(state.summary.max_total_num_tokens, None, None, None, None, sections[0].avail_gib if sections else None)
    if target is not None and state.post_target is not None:
        target = _replaced(target, state.post_target)
    if target is not None and not (sections and sections[0].sizes):
        target = _widened(target, context.dcp_size)
    drafts = [pool for pool in (_pool(section, total, None) for section in sections[1:]) if pool]
    if drafts and state.post_drafts:
        drafts = [_replaced(pool, post) for pool, post in zip(drafts, state.post_drafts)]
    return Pools(target, _sum_of(drafts), len(sections))


def _sections(state: RankState, template: Optional[RankState]) -> list[_Section]:
    """The rank's pool lines by model runner.

    Up to 0.5.3 only TP0 prints C(Memory pool end): the lines of the other ranks are then cut as TP0's are.
    """
    own = [part for section in (*state.closed, *([] if state.open.empty else [state.open])) for part in _by_family(section)]
    if template is None or template is state or len(state.closed) >= len(template.closed):
        return own
    lines = [line for section in own for line in section.lines]
    counts = [len(section.lines) for section in template.closed]
    if len(lines) != sum(counts):
        return own
    sizes = next((section.sizes for section in own if section.sizes), None)
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    cut = [_Section(lines[end - count : end]) for count, end in zip(counts, ends)]
    cut[0].sizes = sizes
    return cut


def _by_family(section: _Section) -> list[_Section]:
    """Two runners' pools where the line between them was lost or stripped: one figure is an MLA pool, a K and a V figure are not.

    One model prints one of the two forms, so a latent pool followed by a K/V pool of as many tokens is a target and its draft.
    """
    if not section.lines or section.sizes or section.lines[0].kv_gib is None:
        return [section]
    first, *others = section.lines
    drafts = [line for line in others if line.kv_gib is None and line.tokens == first.tokens]
    if not drafts or len(drafts) < len(others):
        return [section]
    return [_Section([first]), _Section(drafts, avail_gib=section.avail_gib)]


def _pool(section: _Section, total: Optional[int], post: Optional[SplitSizes]) -> Optional[Pool]:
    sizes = post or section.sizes
    line = _capacity_line(section, total)
    if line is None:
        tokens = (sizes.full if sizes.full is not None else sizes.swa) if sizes else None
        return Pool(tokens, None, None, None, None, section.avail_gib) if tokens is not None else None
    real = post.full if post else None
    tokens = line.tokens if real is None and not line.upper_bound else real
    bound = line.tokens if tokens is None else None
    return Pool(tokens, line.kv_gib, line.k_gib, line.v_gib, line.dtype, section.avail_gib, bound)


def _capacity_line(section: _Section, total: Optional[int]) -> Optional[KvPool]:
    """The line among several that says how many tokens a request can use; the smallest where nothing tells."""
    lines = section.lines
    sizes = section.sizes
    if sizes is not None and sizes.full is not None and sizes.full != sizes.swa:
        # without the line of the full half, that of the window would stand in for it
        lines = [line for line in lines if line.tokens != sizes.swa]
    if len(lines) < 2:
        return lines[0] if lines else None
    full = [line for line in lines if (line.label or "").lower() == "full"]
    if full:
        return full[0]
    lines = [line for line in lines if (line.label or "").lower() != "swa"] or lines
    want = section.sizes.full if section.sizes else total
    # a sliding window's pool is printed first, so of two equal lines the last is the full one
    exact = [line for line in lines if line.tokens is not None and line.tokens == want]
    if exact:
        return exact[-1] if section.sizes else exact[0]
    return min(lines, key=lambda line: line.tokens if line.tokens is not None else -1)


def _replaced(pool: Pool, post: KvPool) -> Pool:
    if post.kv_gib is None and post.k_gib is None:
        return Pool(post.tokens, pool.kv_gib, pool.k_gib, pool.v_gib, post.dtype or pool.dtype, pool.avail_after_gib)
    return Pool(post.tokens, post.kv_gib, post.k_gib, post.v_gib, post.dtype or pool.dtype, pool.avail_after_gib)


def _widened(target: Pool, dcp_size: int) -> Pool:
    """Under decode context parallelism a rank prints its own rows, and requests fill those of all ranks that share them.

    The draft's pool is printed whole, and pools with a sliding window are not shared (SGLang 0.5.17 to 0.5.23).
    """
    if dcp_size < 2 or target.tokens is None:
        return target
    return replace(target, tokens=target.tokens * dcp_size, shard_tokens=target.tokens)


def _sum_of(pools: list[Pool]) -> Optional[Pool]:
    """Several drafts (one for each prediction head) as one: their memory adds up, their tokens are the smallest."""
    if not pools:
        return None
    return Pool(
        tokens=least(pool.tokens for pool in pools),
        kv_gib=total_of(pool.kv_gib for pool in pools),
        k_gib=total_of(pool.k_gib for pool in pools),
        v_gib=total_of(pool.v_gib for pool in pools),
        dtype=pools[0].dtype,
        avail_after_gib=pools[-1].avail_after_gib,
    )


def _alike(one: Pools, other: Pools) -> bool:
    if one.target is None or other.target is None or (one.draft is None) != (other.draft is None):
        return False
    drafts_alike = one.draft is None or other.draft is None or one.draft.looks_like(other.draft)
    return one.target.looks_like(other.target) and drafts_alike


def proved(stage: Sequence[Pools], two: bool) -> list[Pools]:
    """The pools of all ranks of one pipeline stage once all are printed; where a rank's lines prove nothing, it has no target.

    The ranks of a stage hold the same layers, so they print the same lines. One whose lines differ from those of most has lost a line or
    has it in another place, and then its draft's pool may stand where its target's should, with as many tokens.
    ``two``: each must have printed something about the pools of two models.
    """
    shown = [pools for pools in stage if pools.target]
    pattern = max(shown[:MAX_VOTED], key=lambda one: sum(_alike(one, other) for other in shown), default=None)
    if pattern is None or 2 * sum(_alike(pattern, other) for other in shown) <= len(shown) or (two and pattern.models < 2):
        return [pools._replace(target=None) for pools in stage]
    return [pools if _alike(pools, pattern) else _doubtful(pools, pattern.draft) for pools in stage]


def _doubtful(pools: Pools, draft: Optional[Pool]) -> Pools:
    """What is known of a rank that differs: at most that its only pool is a draft's."""
    only = pools.target if pools.draft is None and pools.target and draft and pools.target.looks_like(draft) else None
    return Pools(None, only or pools.draft, pools.models)


def report_of(state: RankState, pools: Pools, began: Optional[float], until: Optional[float]) -> RankReport:
    """The rank as the allocation shows it. ``began`` and ``until``: the boot's first moment, and the end of what this rank did in it."""
    sized_after = [load for load in state.loads if load.ended and load.before_pool]
    ends = [section.avail_gib for section in state.closed if section.avail_gib is not None]
    rank_id = state.id
    return RankReport(
        tp=rank_id.tp,
        pp=rank_id.pp,
        dp=rank_id.dp,
        ep=state.rank.ep,
        pid=state.pid,
        phase=state.phase,
        phases=durations(state.reached, began, until),
        avail_before_weights_gib=state.loads[0].begin_gib if state.loads else None,
        avail_after_weights_gib=sized_after[-1].end_gib if sized_after else None,
        weights_gib=state.loads[0].weights_gib if state.loads else None,
        draft_weights_gib=total_of(load.weights_gib for load in state.loads[1:]),
        load_order=_load_order(state),
        avail_after_pool_gib=ends[-1] if ends else None,
        avail_after_capture_gib=state.capture_gib,
        last_avail_gib=state.last_gib,
        target=pools.target,
        draft=pools.draft,
        swa_tokens=_swa_tokens(state),
        mamba_slots=state.slots,
    )


def _load_order(state: RankState) -> Optional[str]:
    if len(state.loads) < 2 or not state.has_pool:
        return None
    return "draft_before_pool" if state.loads[1].before_pool else "draft_after_pool"


def _swa_tokens(state: RankState) -> Optional[int]:
    first = state.closed[0] if state.closed else state.open
    sizes = state.post_sizes or first.sizes
    if sizes is not None:
        return sizes.swa
    return next((line.tokens for line in first.lines if (line.label or "").lower() == "swa"), None)


def capacity_of(reports: Iterable[RankReport]) -> Optional[int]:
    """Tokens that all requests together can fill: data-parallel ranks add up, ranks that share a request have the least of theirs."""
    replicas: dict[int, int] = {}
    for report in reports:
        if report.tokens is None:
            return None
        replicas[report.dp] = min(report.tokens, replicas.get(report.dp, report.tokens))
    return sum(replicas.values()) or None


def least(values: Iterable[Optional[Number]]) -> Optional[Number]:
    """The smallest of the known values; None if none is known."""
    return min((value for value in values if value is not None), default=None)


def total_of(values: Iterable[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return round(sum(known), 2) if known else None
