# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pool of states that a hybrid model has beside its KV pool. Private to this collection: may change at any time.

SGLang takes it from the same budget before it counts tokens. With m the bytes of one slot, q the mamba_full_memory_ratio, D
the draft tokens, s the slots that one request may need, and rest the budget in bytes:

    slots = rest * q / (1 + q) // m           unless flags fix their number
    tokens = (rest - slots * m) // c

Under speculation every running request also keeps the states of D draft tokens. How those are counted, what fixes the number
of slots, and how many of them a request needs differ from release to release: one table below. It was compared with the
slots and tokens that the releases' own code gives (tests/unit/fixtures/vectors/state_pools.json).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError, Release
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import SPECULATIVE_REQUESTS, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry
from ansible_collections.inferops.sglang.plugins.module_utils._stages import stages
from ansible_collections.inferops.sglang.plugins.module_utils._states import States

_GIB = 1 << 30
_INPUT_BYTES = 2  # inputs of the convolution, bfloat16 unless an environment variable says otherwise
_MATRIX_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# a request's own slots where the radix cache keeps states too: its own, the one it came from, and one in passing
_SLOTS_WITH_RADIX = 3


@dataclass(frozen=True)
class _Rules:
    """How releases from ``since`` on size the pool of states."""

    since: Release
    # the number of slots may follow from the memory; before, only from flags
    by_memory: bool = True
    # max_mamba_cache_size counts whatever the radix cache; before, only without it
    flag_counts: bool = True
    # slots without radix cache and without any flag; None: from the memory
    default_slots: Optional[int] = None
    # states of draft tokens: unpaid | slots (of every slot) | by_memory (before the slots, only if these follow from the
    # memory) | first (before the slots) | joint (with the slots)
    drafts: str = "joint"
    # data-parallel attention divides: flags | flags_but_drafts | gated (all slots, of gated delta networks alone)
    divided: str = "flags"
    # slots that are paid for on top of those in use
    padding: int = 1
    # slots beyond three that a request may need: none | crossed (0.5.7) | speculating | overlap (by strategy and scheduler)
    spare: str = "overlap"
    # mamba_scheduler_strategy: none (no such flag) | flag | flag_lazy | resolved (auto goes by the model)
    strategy: str = "resolved"
    # speculation without spare slots: runs | no_radix (switches the radix cache off) | refused
    speculating: str = "runs"
    # spare slots are refused where there is no radix cache to keep; else the strategy is not looked at then
    spare_needs_radix: bool = False
    # without spare slots SGLang sets page_size to 1 beside the radix cache; else it dies on any other
    sets_page: bool = False
    # a stage is charged for its own layers: kv | states
    kv_by_stage: bool = True
    states_by_stage: bool = True
    # a stage may do without a KV cache
    empty_stage: bool = True
    # the states' type may come from the checkpoint
    checkpoint_type: bool = True
    # the inputs of draft tokens share their windows
    shared_windows: bool = True
    # a model's own next-token layer is charged even where no draft is named, if the checkpoint counts it
    pathless_counted: bool = True
    # layers that a next-token layer inside a multimodal checkpoint is charged as: one | all
    wrapped_nextn: str = "one"
    # next-token layers have states of their own
    nextn_states: bool = False
    # a worker always makes room for one request
    one_at_least: bool = True


def _table() -> tuple[_Rules, ...]:
    """The releases, newest first; each row says what was different before."""
    newest = _Rules((0, 5, 23))
    r22 = replace(newest, since=(0, 5, 22), one_at_least=False, nextn_states=True)
    r20 = replace(r22, since=(0, 5, 20), pathless_counted=False)
    r18 = replace(r20, since=(0, 5, 18), nextn_states=False)
    r17 = replace(r18, since=(0, 5, 17), wrapped_nextn="all")
    r14 = replace(r17, since=(0, 5, 14), padding=0, states_by_stage=False, empty_stage=False)
    r13 = replace(
        r14,
        since=(0, 5, 13),
        strategy="flag_lazy",
        speculating="refused",
        spare_needs_radix=True,
        sets_page=True,
        shared_windows=False,
    )
    r11 = replace(r13, since=(0, 5, 11), drafts="first", strategy="flag")
    r10 = replace(r11, since=(0, 5, 10), sets_page=False)
    r9 = replace(r10, since=(0, 5, 9), spare="speculating", speculating="no_radix", spare_needs_radix=False)
    r8 = replace(r9, since=(0, 5, 8), default_slots=512, checkpoint_type=False, speculating="runs")
    r7 = replace(r8, since=(0, 5, 7), drafts="by_memory", divided="flags_but_drafts", spare="crossed", kv_by_stage=False)
    r3_2 = replace(
        r7, since=(0, 5, 3, 2), flag_counts=False, drafts="slots", divided="gated", spare="none", strategy="none"
    )  # fmt: skip
    r2 = replace(r3_2, since=(0, 5, 2), by_memory=False, drafts="unpaid", divided="flags")
    return (newest, r22, r20, r18, r17, r14, r13, r11, r10, r9, r8, r7, r3_2, r2)


_RULES = _table()


def rules_of(era: Era) -> _Rules:
    """The row for an era; the oldest for releases that know no hybrid model at all."""
    return next((row for row in _RULES if row.since <= era.since), _RULES[-1])


@dataclass(frozen=True)
class StateCache:
    """How the radix cache of a hybrid model runs: whether at all, on which page, and slots that a request may need."""

    radix: bool
    page: int
    per_request: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StatePool:
    """The states of one model, era and set of flags, reduced to what sizes them. Bytes are those of one rank."""

    # bytes that a slot is charged with
    slot_bytes: int
    # what a slot takes, and what the draft tokens of one request take, on the stage with the most layers of states
    stored_slot: int
    stored_drafts: int
    # draft tokens that are paid for
    draft_tokens: int
    ratio: float
    # slots that flags fix; None where they follow from the memory
    fixed: Optional[int]
    # requests of one worker that the flags ask for; None for SGLang's default
    asked: Optional[int]
    cache: StateCache
    drafts: str
    # requests whose draft tokens are paid before the slots
    reserved: int = 0
    padding: int = 0
    # data-parallel ranks that share the slots which the memory gives
    divisor: int = 1

    def slots(self, rest_gib: float) -> int:
        """Slots that a budget (GiB) gives; 0 or less where SGLang would not start."""
        if self.fixed is not None:
            return self.fixed
        share = (rest_gib - self.first_gib) * self.ratio / (1 + self.ratio) * _GIB
        slot, drafts, padding = self.slot_bytes, self.draft_tokens, self.padding
        if self.drafts == "slots":
            return int(share // slot // (1 + drafts)) // self.divisor
        if self.drafts == "joint" and drafts:
            return int((share - padding * slot * (1 + drafts)) // (slot * (1 + drafts / self.cache.per_request)))
        return int((share - padding * slot) // slot)

    def left_gib(self, rest_gib: float, slots: int) -> float:
        """What so many slots leave of a budget (GiB) for tokens."""
        if self.drafts == "slots":
            return rest_gib - slots * self.slot_bytes * (1 + self.draft_tokens) / _GIB
        drafts = self.slot_bytes * self._draft_requests(slots) * self.draft_tokens / _GIB
        return rest_gib - self.first_gib - drafts - (slots + self.padding) * self.slot_bytes / _GIB

    def requests(self, slots: int) -> int:
        """Requests that so many slots serve at once."""
        return max(0, slots) // self.cache.per_request

    def stored_gib(self, slots: int, requests: int) -> float:
        """GiB of the buffers for so many slots and running requests, each with the one more that SGLang adds."""
        kept = requests if self.drafts == "unpaid" else slots
        drafted = slots if self.drafts == "slots" else requests
        return ((kept + 1) * self.stored_slot + (drafted + 1) * self.stored_drafts) / _GIB

    def taken_gib(self, slots: int) -> float:
        """What so many slots take of a budget (GiB)."""
        return -self.left_gib(0.0, slots)

    @property
    def first_gib(self) -> float:
        """What draft tokens take before anything else (GiB)."""
        return self.slot_bytes * self.reserved * self.draft_tokens / _GIB

    @property
    def slot_gib(self) -> float:
        """What one slot takes (GiB), with the draft tokens that come with it."""
        return self.slot_bytes * (1 + self.draft_tokens if self.drafts == "slots" else 1) / _GIB

    @property
    def token_share(self) -> float:
        """Share of a growing budget that goes to tokens, as long as the running requests are those asked for."""
        if self.fixed is not None:
            return 1.0
        slots = self.ratio / (1 + self.ratio)
        if self.drafts == "joint" and self.draft_tokens:
            slots /= 1 + self.draft_tokens / self.cache.per_request
        return 1 - slots / self.divisor

    @property
    def most_requests(self) -> Optional[int]:
        """The most that run at once in a worker under speculation, where the states of draft tokens are paid by request."""
        return self.asked if self.draft_tokens and self.drafts in ("first", "joint") else None

    @property
    def tooth_gib(self) -> float:
        """Budget between two slots: while it grows by so much, tokens rise and then fall back by one slot; 0 for fixed slots."""
        if self.fixed is not None:
            return 0.0
        return self.slot_bytes * (1 + self.draft_tokens) * self.divisor * (1 + self.ratio) / self.ratio / _GIB

    def _draft_requests(self, slots: int) -> int:
        if self.drafts != "joint" or not self.draft_tokens:
            return 0
        served = self.requests(slots)
        return (served if self.asked is None else min(self.asked, served)) + self.padding


def state_pool(era: Era, target: Geometry, deployment: Deployment, drafted: int) -> Optional[StatePool]:
    """The state pool of a hybrid model, None for any other; raises InputError where SGLang would refuse the flags.

    ``drafted``: tokens that are verified at once under speculation, 0 without.
    """
    states = target.states
    if states is None:
        return None
    rules = rules_of(era)
    ranks = _ranks(era, states, deployment)
    states.check_ranks(ranks, target.architecture)
    matrix = states.matrix(ranks) * _matrix_bytes(era, rules, states, deployment)
    channels, kept = states.inputs(ranks)
    layer = matrix + (channels * kept + states.whole_channels) * _INPUT_BYTES
    charged, stored = state_layers(era, target, deployment)
    stored += states.stateful_nextn if rules.nextn_states and drafted else 0
    cache = state_cache(era, target, deployment)
    fixed = _fixed(rules, states, deployment, cache)
    return StatePool(
        slot_bytes=int(layer * len(states.layers) * (charged / len(states.layers))),
        stored_slot=layer * stored,
        stored_drafts=(drafted * matrix + _draft_inputs(rules, states, deployment, ranks, drafted) * _INPUT_BYTES) * stored,
        draft_tokens=0 if rules.drafts == "unpaid" else drafted,
        ratio=deployment.mamba_full_memory_ratio,
        fixed=fixed,
        asked=_worker_requests(rules, deployment),
        cache=cache,
        drafts=rules.drafts,
        reserved=_reserved(rules, deployment, fixed) if drafted else 0,
        padding=rules.padding,
        divisor=_divisor(rules, states, deployment),
    )


def hybrid_stages(era: Era, target: Geometry, cut: Sequence[range]) -> list[Geometry]:
    """A hybrid target as each pipeline stage is charged for it: with the layers that have a KV cache, and no others.

    Raises InputError for a stage without any, under a release that dies there.
    """
    if target.states is None:
        return [target]
    rules, numbers = rules_of(era), target.states.kv_layers
    held = [[number for number in numbers if number in stage] for stage in cut] if rules.kv_by_stage else [list(numbers)]
    if not min(held, key=len) and not rules.empty_stage:
        raise InputError(
            f"{len(cut)} pipeline stages of {target.architecture} under SGLang {era.name}",
            "a stage without any layer that has a KV cache, with which it dies",
            "give fewer stages, or use SGLang 0.5.17 or newer",
        )
    return list(dict.fromkeys(_with_layers(target, of_stage) for of_stage in held if of_stage))


def _with_layers(target: Geometry, numbers: Sequence[int]) -> Geometry:
    return replace(
        target,
        layers=len(numbers),
        index_by_frequency=tuple(target.index_by_frequency[number] for number in numbers if target.index_by_frequency),
        index_by_types=tuple(target.index_by_types[number] for number in numbers if target.index_by_types),
    )


def charged_draft(era: Era, target: Geometry, draft: Optional[Geometry]) -> Optional[Geometry]:
    """The draft as a hybrid target's cell counts it.

    SGLang looks for the layers of a draft in the configuration that a path names. A model that is its own draft without one
    has none there, unless its own configuration counts them; and inside a multimodal one it did not find that there is but one.
    """
    if draft is None or target.states is None:
        return draft
    rules = rules_of(era)
    if draft is target and target.states.hybrid.pathless_draft:
        return draft if rules.pathless_counted and target.states.counted_nextn else None
    states = draft.states
    if states is not None and rules.wrapped_nextn == "all" and draft.multimodal and not states.counted_nextn:
        return replace(draft, nextn_layers=0)
    return draft


def state_layers(era: Era, target: Geometry, deployment: Deployment) -> tuple[int, int]:
    """Layers with states that a stage is charged for, and that the fullest stage keeps."""
    states = target.states
    if states is None:
        return 0, 0
    held = [sum(number in stage for number in states.layers) for stage in stages(era, target.layers, deployment.pp_size)]
    fullest = max(held)
    return (fullest if rules_of(era).states_by_stage else len(states.layers)), fullest


# --- what SGLang makes of the flags ------------------------------------------------------------------------------------------


def state_cache(era: Era, target: Geometry, deployment: Deployment) -> StateCache:
    """The radix cache as SGLang runs it with these flags; raises InputError for flags it refuses."""
    states = target.states
    if states is None:
        return StateCache(not deployment.disable_radix_cache, deployment.page_size, 1)
    rules, notes = rules_of(era), []
    if states.hybrid.page not in (None, deployment.page_size):
        deployment = replace(deployment, page_size=states.hybrid.page or deployment.page_size)
        notes.append(f"SGLang {era.name} sets page_size to {deployment.page_size} for {target.architecture}.")
    page = deployment.page_size
    strategy = _strategy(era, rules, states, deployment, target.architecture)
    radix = not deployment.disable_radix_cache
    if radix and _radix_off(era, states, deployment):
        radix = False
        notes.append(f"SGLang {era.name} switches the radix cache off for {target.architecture}.")
    if radix and deployment.algorithm and strategy == "no_buffer" and _handled(era, states):
        if rules.speculating == "refused":
            raise InputError(
                f"speculative_algorithm {deployment.algorithm} with {target.architecture} under SGLang {era.name}",
                "a radix cache without spare states, which it refuses",
                "give mamba_scheduler_strategy extra_buffer, or disable_radix_cache",
            )
        if rules.speculating == "no_radix":
            radix = False
            notes.append(f"SGLang {era.name} switches the radix cache off for {target.architecture} under speculation.")
    if radix and strategy == "no_buffer" and page > 1 and _handled(era, states):
        if not rules.sets_page:
            raise InputError(
                f"page_size {page} with {target.architecture} under SGLang {era.name}",
                "a radix cache without spare states, which knows only pages of one token",
                "give page_size 1, disable_radix_cache, or (where the release has it) mamba_scheduler_strategy extra_buffer",
            )
        notes.append(f"SGLang {era.name} sets page_size to 1 for {target.architecture} with this radix cache.")
        page = 1
    per_request = _SLOTS_WITH_RADIX + _spare(rules, deployment, strategy) if radix and rules.by_memory else 1
    return StateCache(radix, page, per_request, tuple(notes))


def _handled(era: Era, states: States) -> bool:
    """Does SGLang look at the radix cache of this model at all when it reads the flags?"""
    return era.since >= states.hybrid.handled_since


def _radix_off(era: Era, states: States, deployment: Deployment) -> bool:
    between = states.hybrid.no_radix_speculating
    speculating = bool(deployment.algorithm) and between is not None and between[0] <= era.since < between[1]
    return era.since < states.hybrid.radix_since or speculating


def _strategy(era: Era, rules: _Rules, states: States, deployment: Deployment, architecture: str) -> str:
    """no_buffer, extra_buffer or extra_buffer_lazy, as SGLang resolves the flag."""
    given, since = deployment.mamba_scheduler_strategy, states.hybrid.buffer_since
    able = since is not None and since <= era.since
    if given == "auto":
        wanted = _overlap(deployment) or deployment.page_size > 1
        return "extra_buffer" if rules.strategy == "resolved" and able and wanted else "no_buffer"
    asked = f"mamba_scheduler_strategy {given} with {architecture} under SGLang {era.name}"
    if rules.strategy == "none" or (given == "extra_buffer_lazy" and rules.strategy == "flag"):
        raise InputError(asked, "a release without it", "leave it at auto, or use a newer release")
    if given == "no_buffer":
        if rules.strategy == "resolved" and not deployment.disable_radix_cache and _overlap(deployment) and _handled(era, states):
            raise InputError(asked, "the overlap scheduler, which it refuses then", "give disable_overlap_schedule, or leave it at auto")
        return given
    if deployment.disable_radix_cache and not rules.spare_needs_radix:
        return given
    problems = (
        (not able, "a model for which it keeps no spare states", "leave it at auto"),
        (deployment.disable_radix_cache, "disable_radix_cache, with which it refuses that", "leave one of them out"),
        (given == "extra_buffer_lazy" and not _overlap(deployment), "no overlap scheduler", "give extra_buffer"),
        (
            given == "extra_buffer_lazy" and bool(deployment.algorithm) and era.since < (0, 5, 17),
            f"speculative_algorithm {deployment.algorithm}, with which it refuses that",
            "give extra_buffer",
        ),
    )
    for applies, found, advice in problems:
        if applies:
            raise InputError(asked, found, advice)
    return given


def _overlap(deployment: Deployment) -> bool:
    """Pipeline stages run without the overlap scheduler."""
    return not deployment.disable_overlap_schedule and deployment.pp_size == 1


def _spare(rules: _Rules, deployment: Deployment, strategy: str) -> int:
    """Slots beyond three that one request may need."""
    buffered = strategy != "no_buffer"
    speculating = bool(deployment.algorithm)
    if rules.spare == "none":
        return 0
    if rules.spare == "crossed":
        return 1 if buffered and speculating else 2
    if not buffered:
        return 0
    if rules.spare == "speculating":
        return 1 if speculating else 2
    return 1 if strategy == "extra_buffer_lazy" or deployment.disable_overlap_schedule or deployment.pp_size > 1 else 2


def _matrix_bytes(era: Era, rules: _Rules, states: States, deployment: Deployment) -> int:
    """Bytes of an element of the states: by the flag, else by the checkpoint where SGLang looks there, else float32."""
    given = deployment.mamba_ssm_dtype
    if given == "float16" and not rules.checkpoint_type:
        raise InputError(f"mamba_ssm_dtype {given}", f"SGLang {era.name}, which has no such type for states", "give float32 or bfloat16")
    kept = states.dtype if rules.checkpoint_type else None
    return _MATRIX_BYTES.get(given or kept or "float32", _MATRIX_BYTES["float32"])


def _ranks(era: Era, states: States, deployment: Deployment) -> int:
    """Ranks that share the states of one layer."""
    return deployment.attention_ranks if era.since >= states.hybrid.attention_since else deployment.tp_size


def _draft_inputs(rules: _Rules, states: States, deployment: Deployment, ranks: int, drafted: int) -> int:
    """Inputs of convolutions kept for the draft tokens of one request, in one layer."""
    channels, kept = states.inputs(ranks)
    if not drafted:
        return 0
    if rules.shared_windows and (deployment.topk or 1) == 1 and not states.inputs_first:
        # the windows of consecutive tokens overlap in all but one input
        return channels * (drafted + kept - 1 if kept else 0) + states.whole_channels * drafted
    return (channels * kept + states.whole_channels) * drafted


def _data_ranks(deployment: Deployment) -> int:
    return deployment.dp_size if deployment.dp_attention else 1


def _divisor(rules: _Rules, states: States, deployment: Deployment) -> int:
    return _data_ranks(deployment) if rules.divided == "gated" and states.hybrid.reader in ("gdn", "jet") else 1


def _running_flag(deployment: Deployment) -> Optional[int]:
    """max_running_requests for all workers together, as SGLang has it when it sizes; None where no flag says so."""
    return deployment.max_running_requests or (SPECULATIVE_REQUESTS if deployment.algorithm else None)


def _worker_requests(rules: _Rules, deployment: Deployment) -> Optional[int]:
    flag = _running_flag(deployment)
    if flag is None:
        return None
    # before 0.5.7 every worker made room for all of them
    share = flag if rules.divided == "gated" else flag // _data_ranks(deployment)
    return max(1, share) if rules.one_at_least else share


def _reserved(rules: _Rules, deployment: Deployment, fixed: Optional[int]) -> int:
    if rules.drafts == "first":
        return _worker_requests(rules, deployment) or 0
    if rules.drafts == "by_memory" and fixed is None:
        return _running_flag(deployment) or 0
    return 0


def _fixed(rules: _Rules, states: States, deployment: Deployment, cache: StateCache) -> Optional[int]:
    """Slots that the flags fix for one worker; None where they follow from the memory."""
    given, running = deployment.max_mamba_cache_size, _running_flag(deployment)
    ranks = _divisor(rules, states, deployment) if rules.divided == "gated" else _data_ranks(deployment)
    if given is not None and (rules.flag_counts or not cache.radix):
        return given // ranks
    if cache.radix:
        return None
    if running is None:
        return None if rules.default_slots is None else rules.default_slots // ranks
    return max(1, running // ranks) if rules.one_at_least else running // ranks
