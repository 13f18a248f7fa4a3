# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Earlier starts of a server as evidence for the next plan. Private to this collection: may change at any time.

A start is what ``allocation_info`` returns as ``allocation``. Any part may be missing, because logs are cut and versions
differ: what a start does not tell is unknown here and never counts for or against it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._deployment import normalise_algorithm
from ansible_collections.inferops.sglang.plugins.module_utils._eras import parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError

# what must not differ between a start and the plan, by the name the user knows it under
COMPARED = (
    "sglang_version",
    "model",
    "draft_model",
    "speculative_algorithm",
    "tp_size",
    "pp_size",
    "dp_size",
    "ep_size",
    "dcp_size",
    "kv_cache_dtype",
    "page_size",
)

# Flags that change what a token costs or what a request may fill in ways that no plan knows, with the values that change nothing.
_OFF = (None, False)
_UNMODELLED: dict[str, tuple[Any, ...]] = {
    "attn_cp_size": (None, 1),
    "disaggregation_mode": (None, "null"),
    "enable_double_sparsity": _OFF,
    "enable_dsa_cache_layer_split": _OFF,
    "enable_dsa_prefill_context_parallel": _OFF,
    "enable_encoder_swa_bounded_replay": _OFF,
    "enable_hisparse": _OFF,
    "enable_kv_cache_sharding": _OFF,
    "enable_nsa_prefill_context_parallel": _OFF,
    "enable_prefill_context_parallel": _OFF,
    "enable_prefill_cp": _OFF,
    "enable_unified_memory": _OFF,
    "prefill_only_disable_kv_cache": _OFF,
    "swa_prefix_tails": (None,),
}

# More free memory than any rank has, on a card or in a host: such a figure is in another unit.
MOST_GIB = 16384
# The log gives memory with two decimals: a card with less than one of them is none.
_LEAST_GIB = 0.01
# More than any count of tokens, requests or ranks.
MOST_COUNT = 10**12
# Shares of one pool to another that still leave both.
LEAST_RATIO, MOST_RATIO = 0.001, 1000.0
# Longer than any version that a package has.
MOST_VERSION_TEXT = 200
# Longer than any time of day.
MOST_STAMP_TEXT = 40

# From this release on the summary of a start counts what requests can fill, before the rows of one rank.
_LOGICAL_SUMMARY = (0, 5, 21)


@dataclass(frozen=True)
class Boot:
    """One start. Memory in GiB, the smallest over the ranks; None is unknown."""

    facts: Mapping[str, Any]
    fraction: Optional[float]
    tokens: Optional[int]
    before_gib: Optional[float]
    at_sizing_gib: Optional[float]
    free_gib: Optional[float]
    graphs_gib: Optional[float]
    load_order: Optional[str]
    advice: Optional[str]
    failure: Optional[str]
    minimum_fraction: Optional[float]
    was_ready: bool
    context_length: Optional[int]
    # as the log gives it, of one worker
    running_each: Optional[int]
    # as the flag gives it, for all workers together
    running_flag: Optional[int]
    chunked_prefill_size: Optional[int]
    max_total_tokens: Optional[int]
    draft_kv: Optional[tuple[float, float]]
    # does its pool line name a type? None where no such line is known
    typed_pool: Optional[bool] = None
    # flags that change what a token costs in ways that no plan knows
    unmodelled: tuple[str, ...] = ()
    # the nearest fraction that takes the cause of its death away, where its log told enough for one
    next_fraction: Optional[float] = None
    # slots of the states of a hybrid model, and the flags that decide their pool, by their names in Deployment
    mamba_slots: Optional[int] = None
    state_flags: Mapping[str, Any] = field(default_factory=dict)
    started_at: Optional[str] = None
    # of a start that another host stands in with: that host, and what was made of it
    host: Optional[str] = None
    taught: Optional[str] = None

    @property
    def name(self) -> str:
        """Which start it is, by what is known of it, as the subject of a sentence."""
        which = f"The start of {self.started_at}" if self.started_at else "A start"
        if self.host is not None:
            share = "" if self.fraction is None else f", here at {self.fraction:.4f},"
            return f"{which} on {self.host}{share}"
        return which if self.fraction is None else f"{which} at {self.fraction:g}"

    def anchor(self) -> Optional[Anchor]:
        """The point it fixes on the line of pools over fractions; a pool cut by max_total_tokens fixes none."""
        if self.fraction is None or not self.tokens:
            return None
        page = self.facts.get("page_size") or 1
        rows = self.facts.get("dcp_size") or 1
        if self.max_total_tokens is not None and self.tokens > (self.max_total_tokens - page) * rows:
            return None
        return Anchor(self, self.fraction, self.tokens)

    def running(self, workers: int) -> Optional[int]:
        """What max_running_requests would have given its number of requests, were it divided over so many workers."""
        return self.running_each * workers if self.running_each else self.running_flag


@dataclass(frozen=True)
class Anchor:
    """A start with the fraction it ran with and the pool that gave."""

    boot: Boot
    fraction: float
    tokens: int


def read_boots(observed: Sequence[Mapping[str, Any]], auto_kv_bytes: Optional[float] = None) -> list[Boot]:
    """Starts, newest first: by ``started_at`` where all have one, else the last of the list is the newest.

    ``auto_kv_bytes``: bytes of a KV element where a start says ``auto``, if that is known.
    """
    stamps = [str(entry.get("started_at") or "") for entry in observed]
    order = sorted(range(len(observed)), key=lambda i: (stamps[i] if all(stamps) else "", i), reverse=True)
    return [_read(observed[i], auto_kv_bytes) for i in order]


def matching(boots: Iterable[Boot], wanted: Mapping[str, Any]) -> tuple[list[Boot], list[str]]:
    """The starts that may speak for this plan, and for each other one why not."""
    kept: list[Boot] = []
    notes: list[str] = []
    for boot in boots:
        differing = [key for key in COMPARED if _differs(boot.facts.get(key), wanted.get(key))]
        if differing:
            key = differing[0]
            notes.append(_left_out(boot, key, wanted[key]))
        else:
            kept.append(boot)
    return kept, notes


def _left_out(boot: Boot, key: str, wanted: Any) -> str:
    theirs = boot.facts[key]
    # the width of a KV element stands for several types
    same = f"its {key}" if isinstance(theirs, float) else f"{key} {_text(theirs)}"
    why = f"its {key} is {_text(theirs)}, the plan's is {_text(wanted)}"
    return f"{boot.name} was left out: {why}; plan with {same} if the server shall run with it."


def path_fact(path: Optional[str]) -> Optional[str]:
    """A model path in the form that two spellings share; None stays unknown."""
    if not path:
        return None
    clean = posixpath.normpath(path)
    return posixpath.dirname(clean) if posixpath.basename(clean) == "config.json" else clean


def version_fact(text: Any) -> Any:
    """What makes two builds size alike; None for a text that is no version."""
    if not text or len(str(text)) > MOST_VERSION_TEXT:
        return None
    try:
        return parse_version(text).identity
    except InputError:
        return None


def algorithm_fact(name: Optional[str]) -> str:
    """The algorithm's name, ``none`` for no speculation."""
    return normalise_algorithm(name) or "none"


def _differs(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one != other


def _text(fact: Any) -> str:
    if isinstance(fact, tuple):
        release, post = fact
        return ".".join(str(part) for part in release) + (f".post{post}" if post else "")
    return f"{fact:g} byte{'' if fact == 1 else 's'} a value" if isinstance(fact, float) else str(fact)


# bytes of one value, by the names of flags and of logs
_WIDTHS = {
    **dict.fromkeys(("bfloat16", "float16", "bf16"), 2.0),
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "mxfp8", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), 1.0),
    **dict.fromkeys(("fp4_e2m1", "fp4_mx_block16", "nvfp4", "float4_e2m1fn_x2"), 0.5),
}


def _read(entry: Mapping[str, Any], auto_kv_bytes: Optional[float]) -> Boot:
    args = _mapping(entry.get("server_args"))
    listed = entry.get("ranks")
    ranks = [rank for rank in listed if isinstance(rank, Mapping)] if isinstance(listed, list) else []
    failure = _mapping(entry.get("failure"))
    lesson = _mapping(entry.get("lesson"))
    return Boot(
        facts=_facts(entry, args, ranks, auto_kv_bytes),
        fraction=_share(args.get("mem_fraction_static")),
        tokens=_tokens(entry, ranks, _count(args.get("dcp_size")) or 1),
        before_gib=_lowest(ranks, "avail_before_weights_gib", _LEAST_GIB),
        at_sizing_gib=_lowest(ranks, "avail_after_weights_gib"),
        free_gib=_free(entry, ranks),
        graphs_gib=_graphs(ranks),
        load_order=_string(entry.get("load_order")),
        advice=_string(failure.get("advice")),
        failure=_string(failure.get("kind")),
        minimum_fraction=_share(failure.get("minimum_fraction")),
        next_fraction=_share(failure.get("next_fraction")),
        was_ready=entry.get("ready") is True or entry.get("was_ready") is True,
        context_length=_count(entry.get("context_len")) or _count(args.get("context_length")),
        running_each=_count(entry.get("max_running_requests")),
        running_flag=_count(args.get("max_running_requests")),
        chunked_prefill_size=_count(args.get("chunked_prefill_size")),
        max_total_tokens=_count(args.get("max_total_tokens")),
        draft_kv=_draft_kv(ranks),
        typed_pool=_typed_pool(ranks),
        unmodelled=tuple(flag for flag, value in args.items() if flag in _UNMODELLED and value not in _UNMODELLED[flag]),
        mamba_slots=min((slots for slots in (_count(rank.get("mamba_slots")) for rank in ranks) if slots), default=None),
        state_flags=_state_flags(args),
        started_at=(_string(entry.get("started_at")) or "")[:MOST_STAMP_TEXT] or None,
        host=_string(lesson.get("host")),
        taught=_string(lesson.get("text")),
    )


def _facts(
    entry: Mapping[str, Any], args: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]], auto_kv_bytes: Optional[float]
) -> dict[str, Any]:
    facts: dict[str, Any] = {key: _count(args.get(key)) for key in ("tp_size", "pp_size", "dp_size", "ep_size", "dcp_size", "page_size")}
    facts["sglang_version"] = version_fact(entry.get("sglang_version"))
    facts["model"] = path_fact(_string(args.get("model_path")))
    facts["draft_model"] = path_fact(_string(args.get("speculative_draft_model_path")))
    if "speculative_algorithm" in args:
        facts["speculative_algorithm"] = algorithm_fact(_string(args["speculative_algorithm"]))
    facts["kv_cache_dtype"] = _kv_bytes(args, ranks) or (auto_kv_bytes if args.get("kv_cache_dtype") == "auto" else None)
    return facts


def _kv_bytes(args: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> Optional[float]:
    """Bytes of a KV element: by the type that a rank printed, else by the flag unless that was auto."""
    for name in (*(_mapping(rank.get("target")).get("dtype") for rank in ranks), args.get("kv_cache_dtype")):
        size = _WIDTHS.get(str(name).replace("torch.", ""))
        if size is not None:
            return size
    return None


def _tokens(entry: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]], dcp_size: int) -> Optional[int]:
    """Tokens that requests can fill: under decode context parallelism as many times the rows of one rank."""
    of_ranks = [tokens for tokens in (_count(_mapping(rank.get("target")).get("tokens")) for rank in ranks) if tokens]
    if of_ranks:
        return min(of_ranks)
    if dcp_size == 1:
        return _count(entry.get("min_tokens")) or _count(entry.get("max_total_num_tokens"))
    version, summary = version_fact(entry.get("sglang_version")), _count(entry.get("max_total_num_tokens"))
    if version is None or summary is None:
        return None
    return summary if version[0] >= _LOGICAL_SUMMARY else summary * dcp_size


def _free(entry: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> Optional[float]:
    """What was left when the start had done all it did: the smallest figure decides."""
    known = [value for value in (_gib(entry.get(key)) for key in ("available_gpu_mem_gib", "min_avail_gib")) if value is not None]
    if known:
        return min(known)
    after_capture = _lowest(ranks, "avail_after_capture_gib")
    return after_capture if after_capture is not None else _lowest(ranks, "avail_after_pool_gib")


def _graphs(ranks: Sequence[Mapping[str, Any]]) -> Optional[float]:
    """What graph capture took on the rank where it took most, where a start shows the memory before and after it."""
    pairs = [(_gib(rank.get("avail_after_pool_gib")), _gib(rank.get("avail_after_capture_gib"))) for rank in ranks]
    taken = [before - after for before, after in pairs if before is not None and after is not None and before >= after]
    return max(taken) if taken else None


_STRATEGIES = ("mamba_scheduler_strategy", "mamba_radix_cache_strategy")  # one flag, renamed in 0.5.14


def _state_flags(args: Mapping[str, Any]) -> dict[str, Any]:
    """What a start was told about its states, as far as its server_args say so; a flag that stands there as none is none."""
    switches = ("disable_radix_cache", "disable_overlap_schedule")
    flags: dict[str, Any] = {key: args[key] for key in switches if isinstance(args.get(key), bool)}
    flags.update({key: _count(args[key]) for key in ("max_mamba_cache_size", "max_running_requests") if key in args})
    ratio = _number(args.get("mamba_full_memory_ratio"))
    if ratio is not None and LEAST_RATIO <= ratio <= MOST_RATIO:
        flags["mamba_full_memory_ratio"] = ratio
    if "mamba_ssm_dtype" in args:
        flags["mamba_ssm_dtype"] = _string(args["mamba_ssm_dtype"])
    strategy = next((name for name in (_string(args.get(key)) for key in _STRATEGIES) if name), None)
    return {**flags, "mamba_scheduler_strategy": strategy} if strategy else flags


def _draft_kv(ranks: Sequence[Mapping[str, Any]]) -> Optional[tuple[float, float]]:
    for rank in ranks:
        draft = _mapping(rank.get("draft"))
        k, v = _gib(draft.get("k_gib")), _gib(draft.get("v_gib"))
        if k is not None and v is not None:
            return k, v
    return None


def _typed_pool(ranks: Sequence[Mapping[str, Any]]) -> Optional[bool]:
    """Does the pool line of a rank name a type? Only ranks whose line is known by the sizes it prints can tell."""
    lines = [_mapping(rank.get("target")) for rank in ranks]
    printed = [line for line in lines if "dtype" in line and (_number(line.get("kv_gib")) or _number(line.get("k_gib"))) is not None]
    return any(_string(line["dtype"]) for line in printed) if printed else None


def _lowest(ranks: Sequence[Mapping[str, Any]], key: str, least: float = 0.0) -> Optional[float]:
    values = [value for value in (_gib(rank.get(key), least) for rank in ranks) if value is not None]
    return min(values) if values else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _string(value: Any) -> Optional[str]:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> Optional[float]:
    """A number of a size that a log may hold, also as text (inventories pass figures as text); None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= MOST_COUNT else None


def _gib(value: Any, least: float = 0.0) -> Optional[float]:
    """Memory that a rank may have; None for anything else."""
    number = _number(value)
    return number if number is not None and least <= number <= MOST_GIB else None


def _share(value: Any) -> Optional[float]:
    number = _number(value)
    return number if number is not None and 0 < number < 1 else None


def _count(value: Any) -> Optional[int]:
    number = _number(value)
    return int(number) if number is not None and number > 0 and number == int(number) else None
