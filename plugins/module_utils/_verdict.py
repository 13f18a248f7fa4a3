# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One boot against what was asked of it: accepted, or everything that speaks against it. Private to this collection: may change.

Pure, over the plain data of an allocation. It fails closed: what is missing, odd or undefined is a finding, and nothing raises. An
accepted boot is always one of which C(_sufficient) says the same. Memory is GiB (2^30), pools are tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._flags import (
    Change,
    attention_groups,
    compare,
    flag_name,
    names_of,
    number_of,
    text_of,
    value_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId
from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import (
    count,
    place_of,
    pool_tokens,
    sequence,
    sufficient,
    whole_number,
)

LONGEST_PAGE = 256  # tokens; a pool is cut to whole pages
MOST_NAMED = 4096  # ranks, findings of a kind, texts: more are not looked at

UNEVEN_GIB = 0.5  # by which a card must have less left than another before it is named as the cause of short pools

_RAISE = (
    "raise mem_fraction_static: run the playbook again with sglang_mem_fraction_static 0 (this boot is kept and the plan learns from it), "
    "or give this boot to memory_plan as observed"
)
_LOWER = (
    "lower mem_fraction_static (sglang_mem_fraction_static), or need less beside the pool: fewer or smaller CUDA graphs, "
    "a smaller chunked_prefill_size"
)
_FREE_CARD = "look what else holds memory on the card of that rank (nvidia-smi), free it and start again"
_READ_LOG = "read the log of this start around that rank"
_NO_LOSS = "keep the whole log of a start (LogRateLimitIntervalSec=0, journalctl --all), and start the server again"
_ODD = "give the allocation of inferops.sglang.allocation_info as it was returned"
_ALLOW = (
    "ask for what this release and this card can do, or name the flag in allowed_changes "
    "(sglang_gate_allowed_changes of the role) if it may differ"
)
_MOVES = {
    "raise": "raise the fraction",
    "lower": "lower the fraction",
    "impossible": "no fraction helps",
    "other": "not a matter of the fraction",
}

# Arguments that are nobody's wish as long as they have these values; a plan must know what SGLang took instead.
_UNASKED = {"page_size": (None, 1), "kv_cache_dtype": (None, "auto")}

# Element types of a pool that stand for an asked kv_cache_dtype; a type that is no row here is not compared.
_BYTES = "uint8"  # how some backends keep what is narrower
_POOL_TYPES = {
    "bf16": ("bfloat16",),
    "bfloat16": ("bfloat16",),
    "fp8_e4m3": ("float8_e4m3fn", "float8_e4m3fnuz", _BYTES),
    "fp8_e5m2": ("float8_e5m2", "float8_e5m2fnuz", _BYTES),
    "fp4_e2m1": ("float4_e2m1fn_x2", _BYTES),
}


@dataclass(frozen=True)
class Ask:
    """What a boot must be.

    ``required_tokens``: of every rank. ``flags``: as the server was given them, by name. ``min_avail_gib``: left on every rank, 0 for
    whatever is left. ``max_spread_gib``: between the ranks, refused from there on, 0 for any. ``allowed_changes``: flags that may differ.
    ``also``: texts that the caller found against the boot by other means. All as they come from a playbook: what makes no sense is a
    finding.
    """

    required_tokens: Any
    flags: Any = field(default_factory=dict)
    min_avail_gib: Any = 1.0
    max_spread_gib: Any = 4.0
    allowed_changes: Any = ()
    also: Any = ()


@dataclass(frozen=True)
class Finding:
    """One thing against a boot. ``check``: asked, complete, ready, pool, headroom, spread, flags, draft, also or proof."""

    check: str
    rank: Optional[RankId]
    asked: str
    found: str
    do: str


@dataclass(frozen=True)
class Row:
    """One rank. ``spare``: tokens above what is asked, negative where it falls short. ``word``: ok, or what is wrong with it."""

    rank: RankId
    tokens: Optional[int]
    spare: Optional[int]
    draft_tokens: Optional[int]
    left_gib: Optional[float]
    word: str


@dataclass(frozen=True)
class Verdict:
    """The judgement; ``required_tokens`` is 0 where nothing sensible was asked."""

    accepted: bool
    required_tokens: int
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Rank:
    place: RankId
    tokens: Optional[int]
    draft_tokens: Optional[int]
    has_draft: bool
    left_gib: Optional[float]
    before_weights_gib: Optional[float]
    after_pool_gib: Optional[float]
    token_gib: Optional[float]
    dtype: Optional[str]


@dataclass(frozen=True)
class _Boot:
    """An allocation, looked at once: what of it is as it should be."""

    data: Mapping[Any, Any]
    ranks: tuple[_Rank, ...]
    missing: tuple[RankId, ...]
    odd: tuple[str, ...]
    args: Mapping[Any, Any]

    @property
    def dead(self) -> bool:
        """Whether the start ended by a failure that it names, or was stopped: what it did not reach is then no news."""
        return isinstance(self.data.get("failure"), Mapping) or (self.data.get("stopped") is True and self.data.get("ready") is not True)

    def uneven(self, stage: int) -> Optional[_Uneven]:
        """The ranks of a pipeline stage with the least and the most left after their pools; None where that cannot be told."""
        known = [(rank.after_pool_gib, rank.place) for rank in self.ranks if rank.place.pp == stage and rank.after_pool_gib is not None]
        # without cards of their own all ranks draw on the memory of the host, one after the other
        if len(known) < 2 or self.args.get("device") == "cpu":
            return None
        least, most = min(known), max(known, key=lambda one: one[0])
        return _Uneven(least[1], least[0], most[1], most[0], round(most[0] - least[0], 4))


@dataclass(frozen=True)
class _Uneven:
    """GiB left after their pools on the fullest and on the emptiest card of a stage."""

    fullest: RankId
    least_gib: float
    emptiest: RankId
    most_gib: float
    spread_gib: float


def judge(allocation: Any, asked: Ask) -> Verdict:
    """The verdict on one allocation, as M(inferops.sglang.allocation_info) returns it; never raises, whatever is given."""
    boot = _read(allocation)
    required = whole_number(asked.required_tokens) or 0
    changes, notes = _changes(boot, asked)
    checks = _OF_THE_DEAD if boot.dead else _CHECKS if boot.data else (_sensible,)
    findings = [finding for check in checks for finding in check(boot, asked)]
    findings += [_finding_of(change) for change in changes if not change.allowed and not boot.dead]
    findings += [Finding("also", None, "nothing else against it", text_of(text), "") for text in _list(asked.also)]
    if not findings and not sufficient(allocation, required):
        findings.append(
            Finding("proof", None, "a boot that proves its pools", "the figures of this boot do not agree with one another", _NO_LOSS)
        )
    return Verdict(
        accepted=not findings,
        required_tokens=required,
        findings=tuple(findings),
        changes=changes,
        rows=_rows(boot, asked, findings),
        notes=(*notes, *_unasked(boot, asked), *_notes(boot, changes)),
    )


# --- the data ---------------------------------------------------------------------------------------------------------


def _read(allocation: Any) -> _Boot:
    data = allocation if isinstance(allocation, Mapping) else {}
    odd = [] if isinstance(allocation, Mapping) and data else ["no start of a server is known"]
    ranks: dict[RankId, _Rank] = {}
    for entry in _list(data.get("ranks")):
        place = place_of(entry) if isinstance(entry, Mapping) else None
        if place is None:
            odd.append("an entry of ranks says not which rank it is")
        elif place in ranks:
            odd.append(f"{place.name} is in ranks twice")
        else:
            ranks[place] = _rank(place, entry)
    missing = [place_of(entry) if isinstance(entry, Mapping) else None for entry in _list(data.get("missing_ranks"))]
    if None in missing:
        odd.append("an entry of missing_ranks says not which rank it is")
    args = data.get("server_args")
    return _Boot(
        data,
        tuple(ranks[place] for place in sorted(ranks)),
        tuple(sorted(place for place in set(missing) if place is not None)),
        tuple(dict.fromkeys(odd)),
        args if isinstance(args, Mapping) else {},
    )


def _rank(place: RankId, entry: Mapping[Any, Any]) -> _Rank:
    target, draft = entry.get("target"), entry.get("draft")
    dtype = target.get("dtype") if isinstance(target, Mapping) else None
    return _Rank(
        place,
        pool_tokens(entry),
        pool_tokens(entry, "draft"),
        isinstance(draft, Mapping),
        _gib(entry.get("last_avail_gib")),
        _gib(entry.get("avail_before_weights_gib")),
        _gib(entry.get("avail_after_pool_gib")),
        _token_gib(target, draft),
        dtype.rpartition(".")[2] if isinstance(dtype, str) else None,
    )


def _token_gib(target: Any, draft: Any) -> Optional[float]:
    """What one token of the target's pool costs, with the draft's pool beside it; None without the figures."""
    tokens = count(target.get("tokens")) if isinstance(target, Mapping) else None
    sizes = [_pool_gib(pool) for pool in (target, draft) if isinstance(pool, Mapping)]
    known = [size for size in sizes if size is not None]
    return sum(known) / tokens if tokens and known and len(known) == len(sizes) else None


def _pool_gib(pool: Mapping[Any, Any]) -> Optional[float]:
    whole, keys, values = (_gib(pool.get(name)) for name in ("kv_gib", "k_gib", "v_gib"))
    size = whole if whole is not None else keys + values if keys is not None and values is not None else 0.0
    return size if size > 0 else None


def _list(value: Any) -> Sequence[Any]:
    return (sequence(value) or ())[:MOST_NAMED]


def _gib(value: Any) -> Optional[float]:
    return None if isinstance(value, str) else number_of(value)


# --- the checks -------------------------------------------------------------------------------------------------------


def _sensible(boot: _Boot, asked: Ask) -> Iterator[Finding]:
    """Is it a boot, and was something asked that a boot can be held against."""
    for text in boot.odd:
        yield Finding("complete", None, "the allocation of one boot", text, _ODD)
    if whole_number(asked.required_tokens) is None:
        yield Finding(
            "asked", None, text_of(asked.required_tokens), f"asked for {text_of(asked.required_tokens)} tokens of every rank",
            "give the tokens that every rank must hold, at least 1",
        )  # fmt: skip
    for name, value in (("min_avail_gib", asked.min_avail_gib), ("max_spread_gib", asked.max_spread_gib)):
        limit = number_of(value)
        if limit is None or limit < 0:
            yield Finding("asked", None, text_of(value), f"asked for {name} {text_of(value)}", "give GiB, or 0 not to judge it")
    # what is not even known to be asked could not be held against the boot
    for name, value, kind in (
        ("flags", asked.flags, "a mapping" if not isinstance(asked.flags, Mapping) else ""),
        ("allowed_changes", asked.allowed_changes, "a list" if sequence(asked.allowed_changes) is None else ""),
        ("also", asked.also, "a list" if sequence(asked.also) is None else ""),
    ):
        if kind:
            yield Finding("asked", None, kind, f"asked for {name} {text_of(value)}", f"give {kind}, which may be empty")


def _silent(boot: _Boot, asked: Ask) -> list[RankId]:
    """Ranks of which no pool is known, in their order."""
    return sorted({*boot.missing, *_untold(boot, asked)})


def _complete(boot: _Boot, asked: Ask) -> Iterator[Finding]:
    silent = _silent(boot, asked)
    for place in silent:
        yield Finding("complete", place, "every rank", "no pool in the journal of this boot", _READ_LOG)
    if silent:
        return
    if not boot.ranks:
        yield Finding("complete", None, "every rank", "no rank reported a pool in the journal of this boot", _READ_LOG)
    elif boot.data.get("complete") is not True:
        yield Finding(
            "complete", None, "every rank and no other",
            f"{len(boot.ranks)} ranks reported, and these are not proved to be all of them",
            "give tp_size and pp_size (sglang_tp_size, sglang_pp_size) as the server has them",
        )  # fmt: skip


def _untold(boot: _Boot, asked: Ask) -> set[RankId]:
    """Ranks that there must be by the server's own arguments, or by the flags, and of which the allocation says nothing at all."""
    flags = _flags(asked)
    tp, pp, dp = (count(boot.args.get(name)) or whole_number(value_of(flags, name)) for name in ("tp_size", "pp_size", "dp_size"))
    groups = attention_groups(boot.args)
    dp = max(dp or 1, groups)
    wanted = Parallelism(tp, pp, dp, dp_attention=boot.args.get("enable_dp_attention") is True or groups > 1)
    if (count(boot.args.get("nnodes")) or 1) > 1:
        return set()  # the log of one node shows its own ranks alone
    known = {wanted.key(RankId(*place)) for place in (*(rank.place for rank in boot.ranks), *boot.missing)}
    return {rank for rank in wanted.ranks() if wanted.key(rank) not in known}


def _ready(boot: _Boot, asked: Ask) -> Iterator[Finding]:
    failure = boot.data.get("failure", "left out")
    if isinstance(failure, Mapping):
        yield _failed(boot, asked, failure)
    elif failure is not None:
        yield Finding("ready", None, "no failure", "the boot says not whether it failed", _ODD)
    elif boot.data.get("ready") is not True:
        phase = text_of(boot.data.get("phase")) if boot.data.get("phase") is not None else "absent"
        stopped = boot.data.get("stopped") is True
        yield Finding(
            "ready", None, "a server that is ready",
            f"not ready: {'the server was stopped' if stopped else 'the boot stands in phase ' + phase}",
            "start the server" if stopped else "wait for it, or read the log of this start",
        )  # fmt: skip


def _failed(boot: _Boot, asked: Ask, failure: Mapping[Any, Any]) -> Finding:
    rank = failure.get("rank")
    place = place_of(rank) if isinstance(rank, Mapping) else None
    move = _MOVES.get(failure["advice"], _MOVES["other"]) if isinstance(failure.get("advice"), str) else _MOVES["other"]
    fractions = [
        f"{words} {number:.4f}"
        for words, number in (("next", number_of(failure.get("next_fraction"))), ("at least", number_of(failure.get("minimum_fraction"))))
        if number is not None
    ]
    found = f"{text_of(failure.get('kind'))}: {text_of(failure.get('message'))} ({', '.join([move, *fractions])})"
    remedy = text_of(failure["remedy"]) if isinstance(failure.get("remedy"), str) else ""
    return Finding("ready", place, "no failure", found, "; ".join(text for text in (remedy, _at_next(boot, asked, failure)) if text))


def _at_next(boot: _Boot, asked: Ask, failure: Mapping[Any, Any]) -> str:
    """What the next fraction would hold if that is too little: a pool loses (f - next) * P / (GiB of a token), P free before weights."""
    required, following = whole_number(asked.required_tokens), number_of(failure.get("next_fraction"))
    fraction = number_of(boot.args.get("mem_fraction_static"))
    pools = [(rank.tokens, rank) for rank in boot.ranks if rank.tokens]
    if required is None or following is None or fraction is None or not pools:
        return ""
    tokens, rank = min(pools, key=lambda one: one[0])
    if rank.before_weights_gib is None or not rank.token_gib or not 0 < following < 1:
        return ""
    left = int(max(tokens - (fraction - following) * rank.before_weights_gib / rank.token_gib, 0.0))
    return f"at {following:.4f} the pool is about {left:,} tokens, {required - left:,} short of {required:,}" if left < required else ""


def _pools(boot: _Boot, asked: Ask) -> Iterator[Finding]:
    required = whole_number(asked.required_tokens) or 0
    for rank in boot.ranks:
        tokens = rank.tokens or 0
        unreached = rank.place in boot.missing or (boot.dead and rank.tokens is None)
        if unreached or (rank.tokens is not None and tokens >= required):
            continue
        found = f"{tokens:,} of {required:,} tokens, {required - tokens:,} short" if tokens < required else "no pool of the target model"
        yield Finding("pool", rank.place, f"{required:,} tokens", found, _more_tokens(boot, rank.place.pp))
    total = boot.data.get("max_total_num_tokens")
    smallest = min((rank.tokens for rank in boot.ranks if rank.tokens), default=0)
    if total is not None and (count(total) or 0) < required <= smallest:
        yield Finding(
            "pool", None, f"{required:,} tokens",
            f"the server admits {text_of(total)} tokens (max_total_num_tokens), fewer than its pools hold", _RAISE,
        )  # fmt: skip


def _more_tokens(boot: _Boot, stage: int) -> str:
    """All ranks of a stage get the pool of its fullest card, so what holds memory there comes before the fraction."""
    uneven = boot.uneven(stage)
    if uneven is None or uneven.spread_gib < UNEVEN_GIB:
        return _RAISE
    return (
        f"{uneven.fullest.name} has {uneven.spread_gib:.2f} GiB less left than {uneven.emptiest.name}: look what holds memory on its "
        f"card (nvidia-smi); only if nothing does {_RAISE}"
    )


def _headroom(boot: _Boot, asked: Ask) -> Iterator[Finding]:
    wanted = max(number_of(asked.min_avail_gib) or 0.0, 0.0)
    for rank in boot.ranks:
        if not wanted or rank.tokens is None or (rank.left_gib is not None and rank.left_gib >= wanted):
            continue
        if rank.left_gib is None:
            if boot.dead:
                continue
            found = f"says not what memory it has left, {wanted:.2f} GiB wanted"
            do = f"{_NO_LOSS}, or set min_avail_gib (sglang_gate_min_avail_gib) to 0"
        else:
            found, do = f"headroom: {rank.left_gib:.2f} GiB left, {wanted:.2f} GiB wanted", _LOWER
        yield Finding("headroom", rank.place, f"{wanted:.2f} GiB", found, do)


def _spread(boot: _Boot, asked: Ask) -> Iterator[Finding]:
    """Stages of a pipeline hold different layers, so only ranks of one stage are held against one another."""
    limit = max(number_of(asked.max_spread_gib) or 0.0, 0.0)
    for stage in sorted({rank.place.pp for rank in boot.ranks}):
        uneven = boot.uneven(stage)
        if uneven is not None and 0 < limit <= uneven.spread_gib:
            yield Finding(
                "spread", uneven.fullest, f"less than {limit:.2f} GiB",
                f"spread: {uneven.least_gib:.2f} GiB left after its pool, {uneven.spread_gib:.2f} less than {uneven.emptiest.name} "
                f"({uneven.most_gib:.2f}), under {limit:.2f} allowed",
                _FREE_CARD,
            )  # fmt: skip


def _arguments(boot: _Boot, _asked: Ask) -> Iterator[Finding]:
    if not boot.args:
        yield Finding(
            "flags", None, "the arguments the server runs with",
            "flags: the line with the server's arguments (server_args) is not in the log of this boot", _NO_LOSS,
        )  # fmt: skip


def _drafts(boot: _Boot, _asked: Ask) -> Iterator[Finding]:
    """Within a stage every rank has a draft pool, or none has."""
    for stage in sorted({rank.place.pp for rank in boot.ranks}):
        ranks = [rank for rank in boot.ranks if rank.place.pp == stage and rank.tokens is not None]
        without = [rank.place for rank in ranks if not rank.has_draft]
        for place in without if len(without) < len(ranks) else ():
            yield Finding("draft", place, "a draft pool on every rank", "no draft pool, which other ranks have", _READ_LOG)


_CHECKS = (_sensible, _complete, _ready, _pools, _headroom, _spread, _arguments, _drafts)
# the cause first; the ranks, pools and arguments that a dead start never came to only follow from it
_OF_THE_DEAD = (_ready, _sensible, _pools, _headroom, _spread)


# --- what SGLang changed ----------------------------------------------------------------------------------------------


def _changes(boot: _Boot, asked: Ask) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Asked flags that are not in force, by the printed arguments, the final line and the pools."""
    if not boot.args:
        return (), ()
    flags = _flags(asked)
    allowed = names_of(_list(asked.allowed_changes))
    found = compare(flags, boot.args, allowed)
    changed = names_of(change.flag for change in found.changes)
    later = [
        Change(name.replace("_", "-"), text_of(value_of(flags, name)), effective, name in allowed)
        for name, effective in _in_the_log(boot, flags)
        if name not in changed
    ]
    return (*found.changes, *later), found.notes


def _flags(asked: Ask) -> Mapping[Any, Any]:
    return asked.flags if isinstance(asked.flags, Mapping) else {}


def _in_the_log(boot: _Boot, flags: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Arguments that the server printed as asked, and did not keep to: name and what it took."""
    asked = {name: number_of(value_of(flags, name)) or 0 for name in ("context_length", "max_running_requests", "max_total_tokens")}
    context = count(boot.data.get("context_len"))
    if context is not None and context < asked["context_length"]:
        yield "context_length", f"{context} (final line)"
    running, wanted = count(boot.data.get("max_running_requests")), asked["max_running_requests"] // attention_groups(boot.args)
    if running is not None and running < wanted:
        yield "max_running_requests", f"{running} (final line)"
    pool = count(boot.data.get("max_total_num_tokens")) or count(boot.data.get("min_tokens"))
    page = min(count(boot.args.get("page_size")) or 1, LONGEST_PAGE)
    if pool is not None and pool + page <= asked["max_total_tokens"]:
        yield "max_total_tokens", f"{pool} (final line)"
    types = _POOL_TYPES.get(text_of(value_of(flags, "kv_cache_dtype")))
    others = Counter(rank.dtype for rank in boot.ranks if types and rank.dtype and rank.dtype not in types)
    for dtype, ranks in others.most_common(1):
        yield "kv_cache_dtype", f"{text_of(dtype)} (pools of {ranks} ranks)"


def _finding_of(change: Change) -> Finding:
    return Finding("flags", None, change.asked, _change_of(change), _ALLOW)


def _change_of(change: Change) -> str:
    return f"{change.flag}: asked {change.asked}, SGLang runs with {change.effective}"


# --- what is shown ----------------------------------------------------------------------------------------------------

_WORDS = {"complete": "missing", "ready": "failed", "pool": "short", "headroom": "low memory", "spread": "less left", "draft": "no draft"}


def _rows(boot: _Boot, asked: Ask, findings: Iterable[Finding]) -> tuple[Row, ...]:
    required = whole_number(asked.required_tokens) or 0
    words: dict[RankId, str] = {}
    for finding in findings:
        if finding.rank is not None:
            words.setdefault(finding.rank, _WORDS[finding.check])
    silent = _silent(boot, asked)
    for place in silent:
        words.setdefault(place, _WORDS["complete"])
    known = {rank.place: rank for rank in boot.ranks}
    rows = []
    for place in sorted({*known, *silent}):
        rank = known.get(place)
        tokens = rank.tokens if rank else None
        spare = tokens - required if tokens is not None and required else None
        left = rank.left_gib if rank else None
        rows.append(Row(place, tokens, spare, rank.draft_tokens if rank else None, left, words.get(place, "ok")))
    return tuple(rows)


def _unasked(boot: _Boot, asked: Ask) -> Iterator[str]:
    """What SGLang chose where nothing was asked, and a plan depends on."""
    flags = _flags(asked)
    for name, usual in _UNASKED.items():
        found = boot.args.get(name)
        if value_of(flags, name) is None and found not in usual:
            yield f"{flag_name(name)}: not asked, SGLang runs with {text_of(found)}"


def _notes(boot: _Boot, changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        if change.allowed:
            yield f"{_change_of(change)}, which is allowed"
        elif boot.dead:
            yield _change_of(change)
    restarts = count(boot.data.get("restarts"))
    if restarts is not None:
        yield f"the server was restarted {restarts} times before this start came up"
    yield from (text_of(note) for note in _list(boot.data.get("notes")))
