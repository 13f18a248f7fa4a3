# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start on one host teaches the others of its class. Private to this collection: may change at any time.

A lesson is plain data: C(host), C(fleet_class) (key of the class), C(free_gib) (what was free on a rank of that host before the start,
as its cards or its inventory tell it; only differences between hosts count), C(seen_at) (when the start began, as its log says),
C(accepted), and C(boot) (the start as C(allocation_info) returns it, with what a plan and a report read of it). All memory is GiB.

Why a start can be carried over: with P free before the weights and f the fraction, SGLang gives f * P to weights and pool, whatever
P is. So the pool that a start showed comes on another card with the same f * P, and what that leaves is smaller or larger by as much
as P is. A lesson is therefore told to another host as the start would have looked there::

    P' = P + difference of free_gib - margin      f' = f * P / P'      all that was left: + (P' - P)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

Lesson = Mapping[str, Any]

# what the record of a start says about it: its class, and what was free before it
CLASS_MARK = "fleet_class"
FREE_MARK = "reckoned_free_gib"

MOST_OF_A_CLASS = 3

# What a difference of two readings hides: tools give memory in whole MiB, which is half of one in each.
READ_MARGIN_GIB = 0.001
# By so much equal cards of one host do not differ by themselves: something else held memory there.
UNEVEN_GIB = 0.5
# Figures nearer than that are the same.
_SAME_GIB = 0.0004
# these two are about the fraction; any other cause of a death is that host's own
_ABOUT_MEMORY = ("raise", "lower")

_KEPT = (
    "invocation_id", "started_at", "sglang_version", "phase", "ready", "was_ready", "complete", "min_tokens", "max_total_num_tokens",
    "context_len", "max_running_requests", "available_gpu_mem_gib", "min_avail_gib", "spread_gib", "load_order", "elapsed_s",
)  # fmt: skip
_KEPT_ARGUMENTS = (
    "mem_fraction_static", "model_path", "speculative_draft_model_path", "speculative_algorithm", "kv_cache_dtype", "tp_size", "pp_size",
    "dp_size", "ep_size", "dcp_size", "page_size", "context_length", "max_running_requests", "max_total_tokens", "chunked_prefill_size",
    "disable_radix_cache", "disable_overlap_schedule", "max_mamba_cache_size", "mamba_full_memory_ratio", "mamba_ssm_dtype",
    "mamba_scheduler_strategy", "mamba_radix_cache_strategy",
    # what no plan knows has to be known as such
    "attn_cp_size", "disaggregation_mode", "enable_double_sparsity", "enable_dsa_cache_layer_split",
    "enable_dsa_prefill_context_parallel", "enable_encoder_swa_bounded_replay", "enable_hisparse", "enable_kv_cache_sharding",
    "enable_nsa_prefill_context_parallel", "enable_prefill_context_parallel", "enable_prefill_cp", "enable_unified_memory",
    "prefill_only_disable_kv_cache", "swa_prefix_tails",
)  # fmt: skip
_KEPT_OF_RANK = (
    "tp", "pp", "dp", "avail_before_weights_gib", "avail_after_weights_gib", "weights_gib", "avail_after_pool_gib",
    "avail_after_capture_gib", "target", "draft", "mamba_slots",
)  # fmt: skip
_KEPT_OF_FAILURE = ("kind", "rank", "advice", "minimum_fraction", "next_fraction")
_LEFT = ("available_gpu_mem_gib", "min_avail_gib")


def lessons_from_outcome(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the starts of one host in this run teach; nothing where it started nothing of its class, or has not said what was free.

    ``outcome``: as the role leaves it, with C(free_gib).
    """
    result, starts = outcome.get("outcome"), outcome.get("starts") or 0
    key = _mapping(outcome.get("fleet_class")).get("key")
    free = _number(outcome.get("free_gib"))
    boots = [boot for boot in outcome.get("boots") or () if isinstance(boot, Mapping)]
    if not key or not free or result not in ("accepted", "refused") or not boots:
        return []
    # without a start the boot that runs is one of this class only where it was accepted as it is
    own = boots[-starts:] if starts else boots[-1:] if result == "accepted" else []
    return [
        _lesson(str(outcome.get("host") or ""), str(key), free, boot, accepted=result == "accepted" and boot is boots[-1])
        for boot in own
        if teaches(boot)
    ]


def lessons_from_kept(
    host: str, class_key: str, free_gib: float, boots: Iterable[Mapping[str, Any]], receipt: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What the starts that a host has kept teach its class: those that are marked with it, and with what was free then.

    ``free_gib``: what is free now. Where that has moved since, the host is not what it was, and its old starts teach nobody.
    """
    found = []
    for boot in boots:
        then = _number(boot.get(FREE_MARK))
        if not then or boot.get(CLASS_MARK) != class_key or not teaches(boot) or abs(then - free_gib) >= UNEVEN_GIB:
            continue
        accepted = boot.get("invocation_id") is not None and boot.get("invocation_id") == receipt.get("invocation_id")
        found.append(_lesson(host, class_key, then, boot, accepted))
    return found


def teaches(boot: Mapping[str, Any]) -> bool:
    """Does a start say anything about other hosts? Not if what befell it was that host's own: a lost rank, somebody else's memory."""
    if not _mapping(boot.get("server_args")).get("mem_fraction_static") or _unevenness(boot) >= UNEVEN_GIB:
        return False
    failure = _mapping(boot.get("failure"))
    if failure:
        return failure.get("advice") in _ABOUT_MEMORY
    return (boot.get("ready") is True or boot.get("was_ready") is True) and boot.get("complete") is not False


def merge(lessons: Iterable[Lesson], most: int = MOST_OF_A_CLASS) -> dict[str, list[dict[str, Any]]]:
    """Lessons by class, the best first and at most so many: accepted starts, then those that served, then those that died; the newest
    of each. A start that comes twice is one, accepted if it was so in either."""
    starts: dict[tuple[str, str, str], dict[str, Any]] = {}
    for lesson in lessons:
        if is_lesson(lesson):
            known = starts.get(_identity(lesson))
            starts[_identity(lesson)] = {**lesson, "accepted": bool(lesson.get("accepted") or (known and known["accepted"]))}
    classes: dict[str, list[dict[str, Any]]] = {}
    for lesson in sorted(starts.values(), key=_worth, reverse=True):
        classes.setdefault(lesson["fleet_class"], []).append(lesson)
    return {key: found[:most] for key, found in classes.items()}


def fleet_boots(
    lessons: Mapping[str, Sequence[Lesson]], key: str, free_gib: float, own: Iterable[Mapping[str, Any]] = (), given: bool = False
) -> list[dict[str, Any]]:
    """The starts for a plan of this class on a host without any of its own, oldest first, as they would have looked there.

    ``lessons``: by class, the best first. ``free_gib``: what is free on a rank of this host. ``own``: starts of this
    host; as soon as one of them is of this class and teaches, no others are needed. ``given``: the free memory is told and was not read
    from the cards. All are of one host, as a line through starts of two would show how they differ.
    """
    if any(boot.get(CLASS_MARK) == key and teaches(boot) for boot in own):
        return []
    known = [lesson for lesson in lessons.get(key) or () if is_lesson(lesson)]
    of_one = [lesson for lesson in known if lesson["host"] == known[0]["host"]]
    told = [_told(lesson, free_gib, given) for lesson in sorted(of_one, key=_when)]
    return [boot for boot in told if boot is not None]


def is_lesson(value: Any) -> bool:
    """Has it all that a lesson needs?"""
    return (
        isinstance(value, Mapping)
        and all(isinstance(value.get(name), str) and value[name] for name in ("host", "fleet_class"))
        and _number(value.get("free_gib")) is not None
        and isinstance(value.get("boot"), Mapping)
    )


def _lesson(host: str, key: str, free_gib: float, boot: Mapping[str, Any], accepted: bool) -> dict[str, Any]:
    return {
        "host": host, "fleet_class": key, "free_gib": free_gib, "seen_at": str(boot.get("started_at") or ""), "accepted": accepted,
        "boot": _trimmed(boot),
    }  # fmt: skip


def _trimmed(boot: Mapping[str, Any]) -> dict[str, Any]:
    """A start with what plans and reports read of it. What a server was told beside that may be anybody's secret."""
    failure = boot.get("failure")
    return {
        **_only(boot, _KEPT),
        "server_args": _only(_mapping(boot.get("server_args")), _KEPT_ARGUMENTS),
        "ranks": [_only(rank, _KEPT_OF_RANK) for rank in _ranks(boot)],
        "failure": _only(failure, _KEPT_OF_FAILURE) if isinstance(failure, Mapping) else None,
    }


def _told(lesson: Lesson, free_gib: float, given: bool) -> Optional[dict[str, Any]]:
    """The start of a lesson as it would have looked with so much free; None where its weights would not fit."""
    boot = lesson["boot"]
    there = _lowest(boot, "avail_before_weights_gib") or float(lesson["free_gib"])
    margin = margin_gib(float(lesson["free_gib"]), free_gib, given)
    here = there + free_gib - float(lesson["free_gib"]) - margin
    after_weights = _lowest(boot, "avail_after_weights_gib")
    if here <= 0 or (after_weights is not None and after_weights + here - there <= 0):
        return None
    text = _text(lesson, here, free_gib - float(lesson["free_gib"]), margin)
    left = {name: _moved(boot.get(name), here - there) for name in _LEFT if name in boot}
    return {
        **boot,
        **left,
        "ranks": [_moved_rank(rank, here - there) for rank in _ranks(boot)],
        "server_args": _moved_fraction(_mapping(boot.get("server_args")), there, here),
        "failure": _moved_failure(boot.get("failure"), there, here),
        "notes": [text],
        "lesson": {"host": lesson["host"], "text": text},
    }


def margin_gib(there: float, here: float, given: bool) -> float:
    """GiB that a host is taken to have less than the figures say, for they are rounded: half a unit of the last place of each.

    None where both are the same: equal cards then run with the same fraction, and what is below a MiB is a dozen tokens.
    """
    if abs(here - there) < _SAME_GIB:
        return 0.0
    return max(_unit(there), _unit(here)) if given else READ_MARGIN_GIB


def _unit(told: float) -> float:
    """One of the last place with which a figure is told."""
    decimals = f"{told:.3f}".rstrip("0").partition(".")[2]
    return float(10 ** -len(decimals))


def _text(lesson: Lesson, here: float, differ: float, margin: float) -> str:
    known = "as there"
    if margin:
        known = f"{abs(differ):.3g} GiB {'more' if differ > 0 else 'less'} than there and {margin:.3g} off, which such figures may hide"
    return (
        f"A start on {lesson['host']}, which is of the same class, stands in for one of this host: weights and pool take the same memory, "
        f"and {here:.2f} GiB are reckoned free before the weights ({known})."
    )


def _moved_rank(rank: Mapping[str, Any], by: float) -> dict[str, Any]:
    return {name: _moved(value, by) if name.startswith("avail_") else value for name, value in rank.items()}


def _moved(value: Any, by: float) -> Any:
    """Memory that was left, with so much more or less on the card; what cannot be less than nothing is nothing."""
    known = _number(value)
    return value if known is None else round(max(known + by, 0.0), 6)


def _moved_fraction(arguments: Mapping[str, Any], there: float, here: float) -> dict[str, Any]:
    """The fraction that means the same memory here; one that would be all of the card or more is none, and then only measurements count."""
    share = _same_share(arguments.get("mem_fraction_static"), there, here)
    return {**arguments, "mem_fraction_static": share}


def _moved_failure(failure: Any, there: float, here: float) -> Optional[dict[str, Any]]:
    if not isinstance(failure, Mapping):
        return None
    moved = dict(failure)
    # a pool needs more than the weights leave: the same memory. Under the next fraction the rest of the card would do: the same rest
    if "minimum_fraction" in moved:
        moved["minimum_fraction"] = _same_share(moved["minimum_fraction"], there, here)
    if "next_fraction" in moved:
        moved["next_fraction"] = _same_rest(moved["next_fraction"], there, here)
    return moved


def _same_share(fraction: Any, there: float, here: float) -> Optional[float]:
    known = _number(fraction)
    share = None if known is None else known * there / here
    return share if share is not None and 0 < share < 1 else None


def _same_rest(fraction: Any, there: float, here: float) -> Optional[float]:
    known = _number(fraction)
    share = None if known is None else 1 - (1 - known) * there / here
    return share if share is not None and 0 < share < 1 else None


def _unevenness(boot: Mapping[str, Any]) -> float:
    """GiB between the ranks before the weights."""
    known = _known(boot, "avail_before_weights_gib")
    return max(known) - min(known) if known else 0.0


def _lowest(boot: Mapping[str, Any], name: str) -> Optional[float]:
    return min(_known(boot, name), default=None)


def _known(boot: Mapping[str, Any], name: str) -> list[float]:
    return [value for value in (_number(rank.get(name)) for rank in _ranks(boot)) if value is not None]


def _ranks(boot: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = boot.get("ranks")
    return [rank for rank in listed if isinstance(rank, Mapping)] if isinstance(listed, (list, tuple)) else []


def _identity(lesson: Lesson) -> tuple[str, str, str]:
    return lesson["fleet_class"], lesson["host"], str(lesson["boot"].get("invocation_id") or _when(lesson))


def _worth(lesson: Lesson) -> tuple[int, str]:
    boot = lesson["boot"]
    served = not boot.get("failure") and (boot.get("ready") is True or boot.get("was_ready") is True)
    return 2 if lesson.get("accepted") else 1 if served else 0, _when(lesson)


def _when(lesson: Lesson) -> str:
    return str(lesson.get("seen_at") or "")


def _only(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> Optional[float]:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None
