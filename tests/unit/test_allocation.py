# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A log to an allocation: which pool is whose, which boot counts, which ranks are missing, and why a start died."""

from __future__ import annotations

import dataclasses
import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation, BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import MAX_RANKS, Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, names_of
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState
from ansible_collections.inferops.sglang.plugins.test.sglang import pool_sufficient
from ansible_collections.inferops.sglang.tests.unit.boots import FIRST, READY, SECOND, Line, log_lines, stamped
from hypothesis import given, settings
from hypothesis import strategies as st

ACTIVE = ServiceState("active", "running", "success", "loaded", 4242, 0, "d" * 32, 0)
FAILED = dataclasses.replace(ACTIVE, active_state="failed", sub_state="failed", result="exit-code", main_pid=0, exec_main_status=1)


UNKNOWN = Parallelism()


def fold(lines, expected=UNKNOWN, **options) -> Allocation:
    folder = BootFolder()
    folder.feed_all(line if isinstance(line, Entry) else Entry(line) for line in lines)
    return folder.result(expected, **options)


def entries(lines: list[Line]) -> list[Entry]:
    return [Entry(line.text, line.pid, 1780000000000000 + number * 1_000_000) for number, line in enumerate(lines)]


def arguments(**values) -> str:
    return stamped("", f"server_args={values!r}")


def start(rank: str, tokens: int, *, draft: bool = False) -> list[str]:
    """One rank's lines up to its pools, in the order of 0.5.14 and later."""
    sections = [f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: 2.00 GB", "Memory pool end. avail mem=7.00 GB"]
    if draft:
        sections += [
            f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: 0.28 GB, V size: 0.28 GB",
            "Memory pool end. avail mem=6.00 GB",
        ]
    loads = ["Load weight begin. avail mem=80.00 GB", "Load weight end. avail mem=9.00 GB, mem usage=71.00 GB."]
    return [stamped(rank, message) for message in [*loads, *sections]]


SUMMARY = "max_total_num_tokens=1000, max_running_requests=48, context_len=2048, available_gpu_mem=5.50 GB"
TP2 = [arguments(tp_size=2), *start("TP0", 1000), *start("TP1", 1000)]
HEALTHY = [*TP2, stamped("TP0", SUMMARY), stamped("", READY)]


# --- the case this collection began with


@pytest.mark.parametrize(("boot", "tokens", "draft_gib"), [(FIRST, 101134, 0.14), (SECOND, 192406, 0.28)])
def test_the_kimi_starts_keep_the_drafts_pool_apart(boot, tokens, draft_gib):
    allocation = fold(entries(boot.lines()))
    assert [(rank.tp, rank.target.tokens) for rank in allocation.ranks] == [(tp, tokens) for tp in range(8)]
    assert {(rank.draft.k_gib, rank.draft.v_gib) for rank in allocation.ranks} == {(draft_gib, draft_gib)}
    assert {(rank.target.kv_gib, rank.target.k_gib) for rank in allocation.ranks} == {(boot.target_gib, None)}
    assert (allocation.ready, allocation.complete, allocation.phase, allocation.failure) == (True, True, "ready", None)
    assert not pool_sufficient(allocation.as_dict(), 200000)
    assert pool_sufficient(allocation.as_dict(), tokens)


def test_a_latent_pool_is_the_targets_even_where_the_line_between_the_two_was_lost():
    lines = [line for line in SECOND.lines() if f"avail mem={SECOND.after_target_gib:.2f}" not in line.text]
    ranks = fold(entries(lines)).as_dict()["ranks"]
    assert [(rank["target"]["tokens"], rank["target"]["kv_gib"]) for rank in ranks] == [(192406, 12.59)] * 8
    assert [(rank["draft"]["tokens"], rank["draft"]["k_gib"], rank["draft"]["v_gib"]) for rank in ranks] == [(192406, 0.28, 0.28)] * 8
    assert [rank["avail_after_pool_gib"] for rank in ranks] == [6.25, 6.24, 6.23, 6.24, 6.25, 6.24, 6.23, 6.24]


def test_the_second_kimi_start_gives_the_figures_the_next_plan_needs():
    allocation = fold(entries(SECOND.lines()))
    rank = allocation.ranks[2]
    assert (rank.avail_before_weights_gib, rank.avail_after_weights_gib) == (93.73, 21.33)
    assert (rank.weights_gib, rank.draft_weights_gib, rank.load_order) == (72.4, 1.31, "draft_after_pool")
    assert (rank.target.avail_after_gib, rank.avail_after_pool_gib, rank.avail_after_capture_gib) == (8.73, 6.23, 8.09)
    assert (allocation.min_avail_gib, allocation.spread_gib, allocation.available_gpu_mem_gib) == (6.23, 0.02, 6.23)
    assert (allocation.min_tokens, allocation.max_total_num_tokens, allocation.context_len) == (192406, 192406, 200000)
    assert (allocation.load_order, allocation.max_running_requests) == ("draft_after_pool", 8)
    assert allocation.server_args["mem_fraction_static"] == 0.92
    assert any("7594 fewer than context_len=200000" in note for note in allocation.notes)


def test_a_rank_whose_target_line_was_lost_is_missing_although_its_draft_line_is_there():
    lost = ("TP3] KV Cache is allocated. #tokens: 192406, KV size", "TP3] Memory pool end. avail mem=8.73")
    lines = [line for line in SECOND.lines() if not any(text in line.text for text in lost)]
    allocation = fold(entries(lines))
    assert [rank.tp for rank in allocation.missing_ranks] == [3]
    assert (allocation.ranks[3].target, allocation.ranks[3].draft.k_gib, allocation.complete) == (None, 0.28, False)


# --- whole logs of the real engine: name, ranks, tokens, target (kv, k), draft k, order of loads
ENGINE = [
    ("0.5.12.post1-llama-tp1.log", [0], 1048576, (None, 0.25), None, None),
    ("0.5.23-llama-tp2.log", [0, 1], 8192, (None, 0.0), None, None),
    ("0.5.23-deepseek-mla-tp1.log", [0], 1048576, (0.38, None), None, None),
    ("0.5.23-llama-eagle-tp1.log", [0], 65536, (None, 0.02), 0.01, "draft_before_pool"),
    ("0.5.23-qwen3-dflash-tp2.log", [0, 1], 1048576, (None, 0.25), 0.06, "draft_before_pool"),
    ("0.5.23-llama-stopped-hard-tp1.log", [0], 8192, (None, 0.0), None, None),
]


@pytest.mark.parametrize(("name", "ranks", "tokens", "target", "draft_k", "order"), ENGINE, ids=[case[0] for case in ENGINE])
def test_logs_of_the_real_engine(name, ranks, tokens, target, draft_k, order):
    lines = log_lines(name)
    ready = next(number for number, line in enumerate(lines) if READY in line)
    up = fold(lines[: ready + 1])
    assert [rank.tp for rank in up.ranks] == ranks
    assert {(rank.target.tokens, rank.target.kv_gib, rank.target.k_gib) for rank in up.ranks} == {(tokens, *target)}
    assert {rank.draft.k_gib if rank.draft else None for rank in up.ranks} == {draft_k}
    assert (up.phase, up.ready, up.complete, up.load_order, up.failure) == ("ready", True, True, order, None)
    assert (up.max_total_num_tokens, up.context_len) == (tokens, 2048)
    assert pool_sufficient(up.as_dict(), tokens)
    before = fold(lines[:ready])
    assert (before.phase, before.ready) == ("warmup", False)
    assert not pool_sufficient(before.as_dict(), 1)
    after = fold(lines, ended=True)
    assert (after.phase, after.ready, after.was_ready, after.stopped, after.failure) == ("ready", False, True, True, None)
    kept = fold(lines, ended=True, saved=True)
    assert (kept.phase, kept.ready, kept.stopped, kept.failure) == ("ready", True, True, None)
    assert pool_sufficient(kept.as_dict(), tokens)


# algorithm, whether one pool is noted, what it proves
DRAFTS = [
    ("DFLASH", True, None),
    ("EAGLE", True, None),
    ("FROZEN_KV_MTP", True, 192406),
    ("NGRAM", False, 192406),
    ("none", False, 192406),
    (None, False, 192406),
]


@pytest.mark.parametrize(("algorithm", "noted", "tokens"), DRAFTS)
def test_one_pool_where_two_are_expected_is_noted_and_proves_nothing(algorithm, noted, tokens):
    lines = [
        arguments(tp_size=1, speculative_algorithm=algorithm),
        stamped("TP0", "KV Cache is allocated. #tokens: 192406, K size: 0.28 GB, V size: 0.28 GB"),
        stamped("TP0", "Memory pool end. avail mem=6.23 GB"),
        stamped("TP0", "max_total_num_tokens=192406, context_len=192000, available_gpu_mem=6.23 GB"),
    ]
    allocation = fold(lines)
    assert allocation.min_tokens == tokens
    assert any("a draft model is configured, but each rank shows one pool" in note for note in allocation.notes) is noted
    # before the final line the draft's pool may still come
    assert not any("a draft model is configured" in note for note in fold(lines[:-1]).notes)


# --- which pool is whose: name, lines of one rank, tokens of the target, of the draft, of the window
POOLS = [
    (
        "window first, then full (0.5.16)",
        [
            "Use sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288",
            "KV Cache is allocated. #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB",
            "KV Cache is allocated. #tokens: 375360, K size: 2.62 GB, V size: 1.75 GB",
            "Memory pool end. avail mem=5.00 GB",
        ],
        375360,
        None,
        300288,
    ),
    (
        "window only, the line of the full half was lost",
        [
            "Use sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288",
            "KV Cache is allocated. #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB",
            "Memory pool end. avail mem=5.00 GB",
        ],
        375360,
        None,
        300288,
    ),
    (
        "labels (0.5.17)",
        [
            "Full KV Cache is allocated. dtype: torch.bfloat16, #tokens: 400, K size: 8.00 GB, V size: 8.00 GB",
            "SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 320, K size: 8.00 GB, V size: 8.00 GB",
            "Memory pool end. avail mem=5.00 GB",
        ],
        400,
        None,
        320,
    ),
    (
        "all layers slide",
        ["Use sliding window memory pool (all SWA). swa_layer_tokens=5000", "Memory pool end. avail mem=5.00 GB"],
        5000,
        None,
        5000,
    ),
    (
        "no pool line, split sizes only",
        ["DSV4 pool sizes: full=32768, swa=3200, c4=8192", "Memory pool end. avail mem=5.00 GB"],
        32768,
        None,
        3200,
    ),
    (
        "a shard and the whole, the final line decides",
        [
            "KV Cache is allocated. #tokens: 31229, K size: 0.18 GB, V size: 0.18 GB",
            "KV Cache is allocated. #tokens: 1000, K size: 0.02 GB, V size: 0.02 GB",
            "Memory pool end. avail mem=5.00 GB",
        ],
        1000,
        None,
        None,
    ),
    (
        "two lines that nothing explains: the smaller",
        [
            "KV Cache is allocated. #tokens: 31229, K size: 0.18 GB, V size: 0.18 GB",
            "KV Cache is allocated. #tokens: 1287, K size: 0.02 GB, V size: 0.02 GB",
            "Memory pool end. avail mem=5.00 GB",
        ],
        1287,
        None,
        None,
    ),
    (
        "an upper bound that was never fixed",
        [
            "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9000, K size: 1.00 GB, V size: 1.00 GB",
            "Memory pool end. avail mem=5.00 GB",
        ],
        None,
        None,
        None,
    ),
    (
        "an upper bound, then the real size",
        [
            "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9000, K size: 1.00 GB, V size: 1.00 GB",
            "Memory pool end. avail mem=5.00 GB",
            "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 8000, KV size: 0.90 GB, avail mem=4.00 GB",
        ],
        8000,
        None,
        None,
    ),
    (
        "an upper bound, the real size among other words on it (0.5.20)",
        [
            "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9000, K size: 1.00 GB, V size: 1.00 GB",
            "Memory pool end. avail mem=5.00 GB",
            "Post-capture KV sizing: decode CUDA graph max_bs=64 < max_running_requests=256; reserving activation headroom",
            "Post-capture KV sizing: full_layer_tokens=8000, swa_layer_tokens=0",
            "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 8000, KV size: 0.90 GB, avail mem=4.00 GB",
            "Post-capture KV sizing: KV-canary per-forward workspace 0.10 GB",
            "Post-capture KV sizing: max_running_requests 256 -> 64",
        ],
        8000,
        None,
        None,
    ),
    (
        "memory shared with states: the pool's line says how many tokens would fit without any (0.5.15)",
        [
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 9000, K size: 1.00 GB, V size: 1.00 GB",
            "[unified-memory-pool]   total_bytes=2147483648, max_total_num_tokens=4000, max_mamba_cache_size=32, max_num_reqs=8, "
            "speculative_num_draft_tokens=None",
            "Memory pool end. avail mem=5.00 GB",
        ],
        4000,
        None,
        None,
    ),
    (
        "memory shared by both halves (0.5.15)",
        [
            "Use sliding window memory pool. full_layer_tokens=4000, swa_layer_tokens=1000",
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 9000, K size: 1.00 GB, V size: 1.00 GB",
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 8000, K size: 1.00 GB, V size: 1.00 GB",
            "[unified-memory-pool]   total_bytes=2147483648 (=2.00 GB), full_max_total_num_tokens=4000, swa_max_total_num_tokens=1000, "
            "joint_available=900 slots",
            "Memory pool end. avail mem=5.00 GB",
        ],
        4000,
        None,
        1000,
    ),
    (
        "several heads of a draft",
        ["KV Cache is allocated. #tokens: 1000, KV size: 8.00 GB", "Memory pool end. avail mem=9.00 GB"]
        + ["KV Cache is allocated. #tokens: 1000, K size: 0.10 GB, V size: 0.10 GB", "Memory pool end. avail mem=8.00 GB"] * 3,
        1000,
        1000,
        None,
    ),
]


@pytest.mark.parametrize(("lines", "target", "draft", "window"), [case[1:] for case in POOLS], ids=[case[0] for case in POOLS])
def test_the_targets_pool_among_all_lines(lines, target, draft, window):
    allocation = fold([arguments(tp_size=1), *(stamped("", line) for line in lines), stamped("", SUMMARY), stamped("", READY)])
    (rank,) = allocation.ranks
    assert rank.target.tokens == target
    assert (rank.draft.tokens if rank.draft else None, rank.swa_tokens) == (draft, window)
    assert allocation.complete == (target is not None)


def test_the_memory_of_several_drafts_adds_up():
    lines = POOLS[-1][1]
    (rank,) = fold([arguments(tp_size=1), *(stamped("", line) for line in lines)]).ranks
    assert (rank.draft.k_gib, rank.draft.v_gib, rank.draft.avail_after_gib) == (0.3, 0.3, 8.0)


def test_old_builds_print_the_pool_end_of_tp0_only():
    def kv(rank, tail):
        return stamped(rank, f"KV Cache is allocated. #tokens: 500, {tail}")

    target, draft = "KV size: 2.00 GB", "K size: 0.10 GB, V size: 0.10 GB"
    end = stamped("TP0", "Memory pool end. avail mem=5.00 GB")
    lines = [arguments(tp_size=2), kv("TP0", target), kv("TP1", target), end, kv("TP0", draft), kv("TP1", draft), end]
    ranks = fold(lines).ranks
    assert [(rank.target.kv_gib, rank.draft.k_gib) for rank in ranks] == [(2.0, 0.1), (2.0, 0.1)]


def test_builds_without_a_pool_line_are_known_by_the_final_line_of_each_rank():
    end, final = "Memory pool end. avail mem=22.00 GB", "max_total_num_tokens=712400, context_len=163840"
    lines = [arguments(tp_size=2), *(stamped(f"TP{tp}", text) for tp in (0, 1) for text in (end, final))]
    assert [rank.target.tokens for rank in fold(lines).ranks] == [712400, 712400]
    assert [rank.tp for rank in fold(lines[:-1]).missing_ranks] == [1]


KV_ROWS = "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 50000, KV size: 3.27 GB"
KV_WHOLE = "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 200000, K size: 0.28 GB, V size: 0.28 GB"
POOL_END = "Memory pool end. avail mem=6.00 GB"


@pytest.mark.parametrize(
    ("final", "admitted"),
    [("max_total_num_tokens=200000, context_len=262144", True), ("max_total_num_tokens=50000, context_len=262144", False)],
    ids=["0.5.21-0.5.23 counts what requests can fill", "0.5.17-0.5.20 admits the rows of one rank"],
)
def test_ranks_that_share_tokens_print_their_own_rows_and_hold_those_of_all(final, admitted):
    lines = [arguments(tp_size=8, dcp_size=4, speculative_algorithm="EAGLE3")]
    lines += [stamped(f"TP{tp}", text) for tp in range(8) for text in (KV_ROWS, POOL_END, KV_WHOLE, POOL_END)]
    allocation = fold([*lines, stamped("TP0", final), stamped("", READY)])
    assert {(rank.target.tokens, rank.target.shard_tokens, rank.draft.tokens) for rank in allocation.ranks} == {(200000, 50000, 200000)}
    assert pool_sufficient(allocation.as_dict(), 200000) is admitted


# name, arguments, labels with their tokens, what all requests together can fill
CAPACITIES = [
    ("tensor-parallel ranks share", {"tp_size": 2}, {"TP0": 1000, "TP1": 1000}, 1000),
    ("pipeline stages have the least of theirs", {"tp_size": 1, "pp_size": 2}, {"PP0": 1000, "PP1": 700}, 700),
    ("data-parallel ranks add up", {"tp_size": 1, "dp_size": 2}, {"DP0": 1000, "DP1": 900}, 1900),
    (
        "attention data-parallel groups add up",
        {"tp_size": 4, "dp_size": 2, "enable_dp_attention": True},
        {"DP0 TP0": 1000, "DP0 TP1": 1000, "DP1 TP2": 800, "DP1 TP3": 800},
        1800,
    ),
    ("a boot that lacks a rank has none", {"tp_size": 2}, {"TP0": 1000}, None),
]


@pytest.mark.parametrize(("args", "pools", "tokens"), [case[1:] for case in CAPACITIES], ids=[case[0] for case in CAPACITIES])
def test_what_all_requests_together_can_fill(args, pools, tokens):
    assert fold([arguments(**args), *(line for rank, of in pools.items() for line in start(rank, of))]).capacity_tokens == tokens


SHARD = "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 31229, K size: 0.18 GB, V size: 0.18 GB"
WHOLE = "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 90816, K size: 0.02 GB, V size: 0.02 GB"


def test_the_final_line_says_which_of_several_counts_only_where_all_ranks_print_the_same():
    final = stamped("TP0", "max_total_num_tokens=90816, context_len=90000")
    lines = [arguments(tp_size=2), *(stamped(f"TP{tp}", text) for tp in (0, 1) for text in (SHARD, WHOLE, POOL_END)), final]
    assert [rank.target.tokens for rank in fold(lines).ranks] == [90816, 90816]
    lost = [line for line in lines if line != stamped("TP1", SHARD)]
    assert [rank.target for rank in fold(lost).ranks] == [None, None]
    assert [note for note in fold(lost).notes if note.startswith("TP0-TP1: pool lines that other ranks")]
    # a branch whose only line counts a part: what is not proved is not claimed, and the note says that the two differ
    part = fold([arguments(tp_size=1), stamped("", "KV Cache is allocated. #tokens: 1287"), stamped("", "max_total_num_tokens=457784")])
    assert (part.min_tokens, part.max_total_num_tokens) == (1287, 457784)
    assert "the final line says max_total_num_tokens=457784, the smallest pool line 1287 tokens" in part.notes


def test_a_draft_that_prints_no_size_is_known_by_the_end_of_its_pool():
    """DeepSeek-V4: the sizes are the target's, its next-token layers print none."""
    texts = ["DSV4 pool sizes: full=32768, swa=3200, c4=8192, c128=256", POOL_END, POOL_END, SUMMARY]
    lines = [arguments(tp_size=1, speculative_algorithm="EAGLE"), *(stamped("TP0", text) for text in texts)]
    assert (fold(lines).complete, fold(lines).min_tokens) == (True, 32768)


def test_two_models_and_one_pool_line_prove_no_target():
    """Both lines of the target's pool were lost; the draft's says as many tokens."""
    load = ["Load weight begin. avail mem=80.00 GB", "Load weight end. avail mem=9.00 GB, mem usage=71.00 GB."]
    kv, end = "KV Cache is allocated. #tokens: 1000, K size: 0.28 GB, V size: 0.28 GB", "Memory pool end. avail mem=6.00 GB"
    rest = [*(stamped("TP0", text) for text in (*load, *load, kv, end, SUMMARY)), stamped("", READY)]
    allocation = fold([arguments(tp_size=1, speculative_algorithm="EAGLE3"), *rest])
    assert (allocation.complete, [rank.target for rank in allocation.ranks]) == (False, [None])
    # a draft that shares the target's pool has none of its own
    assert fold([arguments(tp_size=1, speculative_algorithm="FROZEN_KV_MTP"), *rest]).complete


CLAMPED = "max_total_tokens=131072 is larger than the profiled value 50756. Use the profiled value instead."
FORCED = "Setting KV cache dtype to bfloat16 for DeepSeek DSA on SM12 device."


def test_what_sglang_says_to_have_changed_is_noted_with_its_boot():
    """What is changed while the arguments are read comes before them; of a boot that is over nothing is left."""
    forced, clamped = stamped("", FORCED), [stamped(f"TP{tp}", CLAMPED) for tp in (0, 1)]
    said = [note for note in fold([forced, *HEALTHY[:1], *clamped, *HEALTHY[1:]]).notes if note.startswith("SGLang says: ")]
    assert said == [f"SGLang says: {FORCED}", f"SGLang says: {CLAMPED}"]
    again = fold([*HEALTHY, *clamped, *HEALTHY[:1], *HEALTHY[1:3], forced, *HEALTHY[:1]])
    assert [note for note in again.notes if note.startswith("SGLang says: ")] == [f"SGLang says: {FORCED}"]
    assert not [note for note in fold([*HEALTHY, forced]).notes if note.startswith("SGLang says: ")]


# --- which ranks must report: name, server_args, labels that report, missing (dp, pp, tp)
DP_ATTENTION = {"tp_size": 4, "dp_size": 2, "enable_dp_attention": True}
RANKS = [
    ("one rank needs no label", {"tp_size": 1}, [""], []),
    ("one rank with a label, as old builds print", {"tp_size": 1}, ["TP0"], []),
    ("two", {"tp_size": 2}, ["TP0", "TP1"], []),
    ("TP1 is not TP10", {"tp_size": 11}, [f"TP{tp}" for tp in range(11) if tp != 1], [(0, 0, 1)]),
    ("no label where two are expected", {"tp_size": 2}, [""], [(0, 0, 0), (0, 0, 1)]),
    ("pipeline", {"tp_size": 2, "pp_size": 2}, ["PP0 TP0", "PP0 TP1", "PP1 TP0"], [(0, 1, 1)]),
    ("pipeline of one", {"tp_size": 1, "pp_size": 2}, ["PP0", "PP1"], []),
    ("replicas", {"tp_size": 1, "dp_size": 2}, ["DP0"], [(1, 0, 0)]),
    ("replicas of two", {"tp_size": 2, "dp_size": 2}, ["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"], []),
    ("attention data parallel", DP_ATTENTION, ["DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"], []),
    ("attention data parallel, one missing", DP_ATTENTION, ["DP0 TP0", "DP0 TP1", "DP1 TP2"], [(1, 0, 3)]),
]


@pytest.mark.parametrize(("args", "labels", "missing"), [case[1:] for case in RANKS], ids=[case[0] for case in RANKS])
def test_every_expected_rank_must_report(args, labels, missing):
    lines = [arguments(**args), *(line for label in labels for line in start(label, 1000)), stamped("", READY)]
    allocation = fold(lines)
    assert [(rank.dp, rank.pp, rank.tp) for rank in allocation.missing_ranks] == missing
    assert allocation.complete == (not missing)
    assert pool_sufficient(allocation.as_dict(), 1000) == (not missing)


def test_a_rank_that_was_not_expected_makes_the_boot_incomplete():
    allocation = fold([*TP2, *start("TP2", 1000), stamped("", READY)])
    assert (allocation.missing_ranks, allocation.complete) == ((), False)


@pytest.mark.parametrize("size", [None, 0, -1, True, "8", 10**9, 1.5])
def test_a_size_that_is_no_size_of_a_deployment_is_unknown(size):
    allocation = fold([arguments(tp_size=size), *start("TP0", 1000), stamped("", READY)])
    assert not allocation.complete
    assert any("number of ranks is unknown" in note for note in allocation.notes)


def test_given_sizes_win_over_the_logs():
    allocation = fold(HEALTHY, Parallelism(tp_size=4))
    assert [rank.tp for rank in allocation.missing_ranks] == [2, 3]


def test_sizes_that_are_not_the_servers_own_prove_nothing():
    lines = [arguments(tp_size=4), *HEALTHY[1:]]  # of its four ranks two are there
    allocation = fold(lines, Parallelism(tp_size=2))
    assert (allocation.complete, allocation.capacity_tokens) == (False, None)
    assert "tp_size=2 was given, the server runs with 4" in allocation.notes
    assert not pool_sufficient(allocation.as_dict(), 1)


def test_of_a_server_that_spans_nodes_the_ranks_of_one_may_be_asked_for():
    lines = [arguments(tp_size=4, nnodes=2), *HEALTHY[1:]]
    assert [rank.tp for rank in fold(lines).missing_ranks] == [2, 3]
    allocation = fold(lines, Parallelism(tp_size=2))
    assert allocation.complete
    assert "the server spans 2 nodes, and the log of one node shows only its own ranks" in allocation.notes


def test_without_server_args_and_sizes_nothing_is_complete():
    allocation = fold(HEALTHY[1:])
    assert (allocation.complete, allocation.missing_ranks) == (False, ())
    assert fold(HEALTHY[1:], Parallelism(tp_size=2)).complete


def test_more_ranks_than_any_deployment_has_are_not_believed():
    folder = BootFolder()
    folder.feed_all(Entry(stamped(f"TP{tp}", "Memory pool end. avail mem=1.00 GB")) for tp in range(MAX_RANKS + 10))
    allocation = folder.result(Parallelism(tp_size=1))
    assert (len(allocation.ranks), allocation.complete) == (MAX_RANKS, False)


# --- which boot counts


def test_the_newest_boot_in_one_log_counts():
    old, new = [*HEALTHY], [arguments(tp_size=2), *start("TP0", 400), *start("TP1", 400), stamped("", READY)]
    allocation = fold([*old, *new])
    assert (allocation.min_tokens, allocation.restarts, allocation.ready) == (400, 1, True)
    assert not pool_sufficient(allocation.as_dict(), 1000)


def test_an_old_life_that_was_ready_says_nothing_about_a_new_one_that_loads():
    allocation = fold([*HEALTHY, arguments(tp_size=2), stamped("TP0", "Load weight begin. avail mem=80.00 GB")])
    assert (allocation.phase, allocation.ready, allocation.min_tokens) == ("weights", False, None)


def test_a_load_after_ready_is_a_new_boot_even_if_its_first_line_was_lost():
    allocation = fold([*HEALTHY, stamped("TP0", "Load weight begin. avail mem=80.00 GB")])
    assert (allocation.phase, allocation.ready, allocation.complete) == ("weights", False, False)


def test_pool_lines_after_ready_are_not_believed():
    forged = stamped("TP0", "KV Cache is allocated. dtype: x, #tokens: 999999, K size: 99.00 GB, V size: 99.00 GB")
    assert fold([*HEALTHY, forged]).min_tokens == 1000


# --- phases

PHASES = [
    ([arguments(tp_size=1)], "starting"),
    ([stamped("", "Load weight begin. avail mem=80.00 GB")], "weights"),
    ([stamped("", "Load weight end. avail mem=9.00 GB, mem usage=71.00 GB.")], "weights"),
    ([stamped("", "KV Cache is allocated. #tokens: 10, KV size: 1.00 GB"), stamped("", "Memory pool end. avail mem=8.00 GB")], "pool"),
    ([stamped("", "Capture cuda graph begin. avail mem=8.00 GB")], "capture"),
    ([stamped("", SUMMARY)], "warmup"),
    ([stamped("", "INFO:     Application startup complete.")], "warmup"),
    ([stamped("", READY)], "ready"),
    ([stamped("", "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")], "ready"),
]


def test_the_phase_follows_the_milestones():
    folder = BootFolder()
    seen = []
    for lines, _phase in PHASES:
        folder.feed_all(map(Entry, lines))
        seen.append(folder.result(Parallelism()).phase)
    assert seen == [phase for _lines, phase in PHASES]


def test_times_come_from_the_journal_and_else_from_the_log():
    allocation = fold(entries(SECOND.lines()))
    assert allocation.started_at == "2026-05-28T20:26:40+00:00"
    assert allocation.elapsed_s == float(len(SECOND.lines()) - 1)
    text = fold(["[2026-05-30 22:08:02] server_args={'tp_size': 1}", "[2026-05-30 22:09:32] The server is fired up and ready to roll!"])
    assert (text.started_at, text.elapsed_s) == ("2026-05-30 22:08:02", 90.0)


def at(second: int, rank: str, message: str) -> Entry:
    """An entry whose host's clock stood still for a day before it jumped back: only the clock that never jumps is right."""
    return Entry(f"[2026-05-30 22:08:02{rank and ' ' + rank}] {message}", 1, 1780000000000000, clock_us=(5000 + second) * 1_000_000)


SLOW = [
    at(0, "", "server_args={'tp_size': 2}"),
    at(8, "TP0", "Load weight begin. avail mem=80.00 GB"),
    at(9, "TP1", "Load weight begin. avail mem=80.00 GB"),
    at(300, "TP0", "Load weight end. avail mem=9.00 GB, mem usage=71.00 GB."),
    at(600, "TP1", "Load weight end. avail mem=9.00 GB, mem usage=71.00 GB."),
    *(at(601, rank, "KV Cache is allocated. #tokens: 1000, KV size: 2.00 GB") for rank in ("TP0", "TP1")),
    at(602, "TP0", "Capture cuda graph begin. avail mem=7.00 GB"),
    at(603, "TP1", "Capture cuda graph begin. avail mem=7.00 GB"),
    at(640, "TP0", SUMMARY),
    at(650, "", READY),
]


def test_how_long_each_phase_took_for_the_boot_and_for_each_rank():
    allocation = fold(SLOW)
    assert allocation.phases == {"starting": 8.0, "weights": 593.0, "pool": 1.0, "capture": 38.0, "warmup": 10.0}
    assert allocation.ranks[0].phases == {"starting": 8.0, "weights": 593.0, "pool": 1.0, "capture": 38.0, "warmup": 0.0}
    assert allocation.ranks[1].phases == {"starting": 9.0, "weights": 592.0, "pool": 2.0, "capture": 37.0}
    assert (allocation.elapsed_s, allocation.waiting_for) == (650.0, None)


# entries of SLOW seen, what the start waits for
WAITS = [
    (0, None),
    (1, "TP0-TP1 (setting up)"),
    (2, "TP1 (setting up)"),
    (4, "TP0-TP1 (loading weights)"),
    (6, "TP1 (loading weights)"),
    (7, "TP0-TP1 (allocating pools)"),
    (8, "TP1 (allocating pools)"),
    (10, "the server's own first request"),
    (11, None),
]


@pytest.mark.parametrize(("count", "waits"), WAITS)
def test_what_a_start_waits_for(count, waits):
    assert fold(SLOW[:count]).waiting_for == waits


def test_how_far_the_weights_are():
    shards = at(20, "", "")._replace(text="Loading safetensors checkpoint shards:  45% Completed | 29/64 [01:00<01:12,  2.07s/it]")
    loading = fold([*SLOW[:3], shards])
    assert (loading.phase_percent, loading.waiting_for) == (45, "TP0-TP1 (loading weights)")
    assert fold([*SLOW[:3], shards, *SLOW[3:]]).phase_percent is None


NAMES = [
    ([], ""),
    ([(0, 0, 0)], "TP0"),
    ([(0, 0, 2), (0, 0, 0), (0, 0, 1)], "TP0-TP2"),
    ([(0, 0, 0), (0, 0, 2), (0, 0, 3)], "TP0, TP2-TP3"),
    ([(0, 1, 0), (0, 1, 1), (0, 0, 1)], "TP1, PP1 TP0-TP1"),
    ([(1, 0, 0)], "DP1 TP0"),
    ([(0, 0, 2 * tp) for tp in range(18)], ", ".join(f"TP{2 * tp}" for tp in range(16)) + " and 2 more"),
]


@pytest.mark.parametrize(("ranks", "name"), NAMES)
def test_ranks_are_named_as_the_log_names_them(ranks, name):
    assert names_of([RankId(*rank) for rank in ranks]) == name


# --- why a start died

CRASH = "Scheduler hit an exception: Traceback (most recent call last):"
FRAME = '  File "/opt/sglang/x.py", line 1, in f'
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB. GPU 0 has a total capacity of 94.50 GiB"
LOAD = [stamped("TP0", "Load weight begin. avail mem=80.00 GB"), stamped("TP0", "Load weight end. avail mem=20.00 GB, mem usage=60.00 GB.")]
KV = stamped("TP0", "KV Cache is allocated. #tokens: 1000, KV size: 2.00 GB")
END = stamped("TP0", "Memory pool end. avail mem=7.00 GB")
CAPTURE = stamped("TP0", "Capture cuda graph begin. avail mem=7.00 GB")
CAPTURED = stamped("TP0", "Capture cuda graph end. mem usage=1.00 GB. avail mem=6.00 GB.")


def crash(*lines: str) -> list[str]:
    return [stamped("TP0", CRASH), FRAME, *lines]


# name, lines before, last lines, kind, advice, minimum fraction
DEATHS = [
    (
        "refused, old words",
        LOAD,
        crash("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
        "not_enough_memory",
        "raise",
        0.75,
    ),
    (
        "refused, 0.5.14, wrapped over lines",
        LOAD,
        crash(
            "ValueError: Loaded weights leave no GPU memory for the KV cache under",
            "--mem-fraction-static=0.94. Raise --mem-fraction-static above 0.942",
            "(minimum viable = 1 - available/pre = 0.9411).",
        ),
        "not_enough_memory",
        "raise",
        0.9411,
    ),
    (
        "refused, only the rounded figure",
        LOAD,
        crash(
            "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.94. "
            "Raise --mem-fraction-static above 0.942"
        ),
        "not_enough_memory",
        "raise",
        0.942,
    ),
    (
        "hybrid state",
        LOAD,
        crash("RuntimeError: Not enough GPU memory for hybrid state cache (total_rest_memory=-1.4)"),
        "hybrid_state",
        "raise",
        0.75,
    ),
    (
        "unbalanced",
        LOAD[:1],
        crash("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."),
        "unbalanced",
        "other",
        None,
    ),
    ("oom in weights", LOAD[:1], crash(OOM), "oom_weights", "impossible", None),
    ("oom in the target's pool", LOAD, crash(OOM), "oom_pool", "lower", None),
    (
        "oom in the draft's weights after the pool",
        [*LOAD, KV, END, stamped("TP0", "Load weight begin. avail mem=7.00 GB")],
        crash(OOM),
        "oom_draft_weights",
        "lower",
        None,
    ),
    ("oom in the draft's pool, draft loaded first", [*LOAD, *LOAD, KV, END], crash(OOM), "oom_draft_pool", "lower", None),
    ("oom in the draft's pool, draft loaded last", [*LOAD, KV, END, *LOAD], crash(OOM), "oom_draft_pool", "lower", None),
    ("oom in capture", [*LOAD, KV, END, CAPTURE], crash(OOM), "oom_capture", "lower", None),
    (
        "oom in capture, wrapped by SGLang",
        [*LOAD, KV, END, CAPTURE],
        crash(
            OOM,
            "",
            "During handling of the above exception, another exception occurred:",
            "",
            "Traceback (most recent call last):",
            FRAME,
            "Exception: Capture cuda graph failed: CUDA out of memory.",
            "Possible solutions:",
            "1. set --mem-fraction-static to a smaller value",
        ),
        "oom_capture",
        "lower",
        None,
    ),
    (
        "capture fails for another reason",
        [*LOAD, KV, END, CAPTURE],
        crash("Exception: Capture cuda graph failed: operation not permitted"),
        "capture_failed",
        "other",
        None,
    ),
    ("oom in warm-up", [*LOAD, KV, END, CAPTURE, CAPTURED, stamped("TP0", SUMMARY)], crash(OOM), "oom_warmup", "lower", None),
    ("oom in a request", [*LOAD, KV, END, stamped("TP0", SUMMARY), stamped("", READY)], crash(OOM), "oom_prefill", "lower", None),
    (
        "old name of the exception",
        [*LOAD, KV, END, CAPTURE],
        crash("torch.cuda.OutOfMemoryError: HIP out of memory."),
        "oom_capture",
        "lower",
        None,
    ),
    ("nccl", LOAD[:1], crash("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356"), "nccl", "other", None),
    (
        "kernel",
        LOAD,
        crash("RuntimeError: CUDA error: no kernel image is available for execution on the device"),
        "missing_kernel",
        "other",
        None,
    ),
    (
        "file",
        [],
        crash("FileNotFoundError: [Errno 2] No such file or directory: '/srv/models/x/config.json'"),
        "missing_file",
        "other",
        None,
    ),
    ("permission", [], crash("PermissionError: [Errno 13] Permission denied: '/srv/models'"), "permission", "other", None),
    ("arguments", [], ["launch_server.py: error: unrecognized arguments: --mem-fraction"], "bad_arguments", "other", None),
    (
        "port",
        LOAD,
        [stamped("", "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 1): address already in use")],
        "port_in_use",
        "other",
        None,
    ),
    ("anything else", LOAD, crash("KeyError: 'rope_theta'"), "unknown_exception", "other", None),
    ("exception without a word", LOAD, crash("AssertionError"), "unknown_exception", "other", None),
    (
        "a dead child, as the parent's exception",
        LOAD,
        ["Traceback (most recent call last):", FRAME, "RuntimeError: Rank 3 scheduler died during initialization (exit code: -9). x"],
        "child_died",
        "other",
        None,
    ),
    (
        "a collective that timed out",
        LOAD,
        ["[rank7]:[E421 04:13:43.457389636 ProcessGroupNCCL.cpp:629] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL"],
        "nccl",
        "other",
        None,
    ),
    (
        "a dead child and nothing else",
        LOAD,
        [stamped("", "Rank 0 scheduler died during initialization (exit code: -9).")],
        "child_died",
        "other",
        None,
    ),
    (
        "the cause before its consequences",
        [*LOAD, KV, END, CAPTURE],
        [
            *crash(OOM),
            stamped("TP1", CRASH),
            FRAME,
            "torch.distributed.DistBackendError: NCCL error",
            stamped("", "Received sigquit from a child process. It usually means the child failed."),
        ],
        "oom_capture",
        "lower",
        None,
    ),
    (
        "warm-up fails",
        [*LOAD, KV, END],
        [
            stamped("", "Initialization failed. warmup error: Traceback (most recent call last):"),
            FRAME,
            "AssertionError: res.status_code=500",
        ],
        "unknown_exception",
        "other",
        None,
    ),
    (
        "said to have failed, without a cause",
        LOAD,
        [stamped("", "Initialization failed. Please see the error messages above.")],
        "exit",
        "other",
        None,
    ),
    ("watchdog", [*LOAD, KV, END], [stamped("TP0", "Watchdog timeout (self.watchdog_timeout=300)")], "hang", "other", None),
]


@pytest.mark.parametrize(("before", "last", "kind", "advice", "minimum"), [case[1:] for case in DEATHS], ids=[case[0] for case in DEATHS])
def test_each_death_has_its_kind_and_direction(before, last, kind, advice, minimum):
    allocation = fold([arguments(tp_size=1), *before, *last], ended=True)
    failure = allocation.failure
    assert (failure.kind, failure.advice, failure.minimum_fraction) == (kind, advice, minimum)
    assert (allocation.phase, allocation.ready) == ("failed", False)
    assert failure.remedy
    assert not pool_sufficient(allocation.as_dict(), 1)


def test_the_message_is_the_exception_that_killed_and_names_the_rank():
    lines = [arguments(tp_size=2), *start("TP0", 10), *start("TP1", 10), stamped("TP1", CRASH), FRAME, OOM]
    failure = fold(lines).failure
    assert failure.message == OOM
    assert failure.rank == {"tp": 1, "pp": 0, "dp": 0}


def test_a_journal_keeps_the_tracebacks_of_interleaved_ranks_apart():
    lines = [
        Entry(arguments(tp_size=2), 1),
        *(Entry(line, 10) for line in start("TP0", 10)),
        *(Entry(line, 11) for line in start("TP1", 10)),
        Entry(stamped("TP1", CRASH), 11),
        Entry(stamped("TP0", CRASH), 10),
        Entry(FRAME, 11),
        Entry(FRAME, 10),
        Entry("torch.distributed.DistBackendError: NCCL error", 10),
        Entry("ValueError: Loaded weights leave no GPU memory for the KV cache", 11),
        Entry(stamped("TP0", "noise"), 10),
        Entry("(minimum viable = 0.6433)", 11),
    ]
    failure = fold(lines).failure
    assert (failure.kind, failure.minimum_fraction, failure.rank["tp"]) == ("not_enough_memory", 0.6433, 1)


HARMLESS = [
    ["Traceback (most recent call last):", FRAME, "RuntimeError: metrics context is not set"],
    [stamped("TP0", "Ignore import error when loading sglang.srt.models.grok: No module named 'x'")],
    [stamped("TP0", "Decode out of memory happened. #retracted_reqs: 1")],
    [stamped("TP0", "KV cache pool is full. Retract requests. #retracted_reqs: 1")],
    [stamped("TP0", "Unexpected error during package walk: x")],
    [stamped("TP0", "The memory capacity is unbalanced. Some GPUs may be occupied by other processes.")],
    ["[rank1]:[W807 17:36:05.837219864 NPUGraph.cpp:223] Warning: operation scheduled before its operands can be ignored"],
]


@pytest.mark.parametrize("lines", HARMLESS)
def test_words_that_healthy_boots_print_are_no_failure(lines):
    boot = [*TP2, *lines, stamped("TP0", "Capture cuda graph begin. avail mem=7.00 GB"), stamped("TP0", SUMMARY)]
    assert fold(boot).failure is None
    up = fold([*boot, stamped("", READY), *lines])
    assert (up.ready, up.failure) == (True, None)


def test_an_uncaught_traceback_is_the_cause_once_the_process_is_gone():
    lines = [Entry("Traceback (most recent call last):", 7), Entry(FRAME, 7), Entry("ModuleNotFoundError: No module named 'sglang'", 7)]
    assert fold(lines, service=ACTIVE).failure is None
    assert fold(lines, service=FAILED).failure.kind == "missing_file"
    assert fold(lines, ended=True).failure.kind == "missing_file"


def test_a_harmless_traceback_is_not_blamed_for_a_later_silent_death():
    lines = [Entry(arguments(tp_size=1), 1), Entry("Traceback (most recent call last):", 7), Entry("ValueError: harmless", 7)]
    lines += [Entry(line, 7) for line in LOAD]
    assert fold(lines, service=FAILED).failure.kind == "unit_failed"


STATES = [
    ({"active_state": "failed", "sub_state": "failed", "result": "exit-code"}, "unit_failed"),
    ({"active_state": "failed", "sub_state": "failed", "result": "oom-kill"}, "oom_kill"),
    ({"active_state": "failed", "sub_state": "failed", "result": "start-limit-hit"}, "crash_loop"),
    ({"active_state": "activating", "sub_state": "auto-restart", "result": "exit-code"}, "unit_failed"),
]


@pytest.mark.parametrize(("state", "kind"), STATES)
def test_a_dead_unit_is_a_failure_even_if_the_log_says_ready(state, kind):
    allocation = fold(HEALTHY, service=dataclasses.replace(ACTIVE, **state))
    assert (allocation.failure.kind, allocation.ready, allocation.was_ready) == (kind, False, True)


GONE = dataclasses.replace(ACTIVE, active_state="inactive", sub_state="dead")


@pytest.mark.parametrize("boot", [TP2, HEALTHY])
def test_a_server_that_ends_without_being_told_to_has_failed_whatever_its_status(boot):
    assert fold(boot, service=GONE).failure.kind == "exit"
    assert fold([*map(Entry, boot), Entry("sglang.service: Deactivated successfully.", 1, manager=True)]).failure.kind == "exit"


def test_a_unit_that_is_stopped_is_neither_ready_nor_failed():
    lines = [*map(Entry, HEALTHY), Entry("Stopping SGLang...", 1, manager=True), Entry("x: Deactivated successfully.", 1, manager=True)]
    allocation = fold(lines, service=GONE)
    assert (allocation.ready, allocation.stopped, allocation.phase, allocation.failure) == (False, True, "ready", None)


MANAGER = [
    ("sglang.service: A process of this unit has been killed by the OOM killer.", "oom_kill"),
    ("sglang.service: Failed with result 'exit-code'.", "unit_failed"),
    ("sglang.service: Start request repeated too quickly.", "crash_loop"),
    ("sglang.service: Failed at step EXEC spawning /opt/x: No such file or directory", "missing_file"),
    ("sglang.service: Failed at step USER spawning /opt/x: No such process", "exit"),
]


@pytest.mark.parametrize(("text", "kind"), MANAGER)
def test_the_service_managers_own_lines_are_enough(text, kind):
    allocation = fold([*map(Entry, HEALTHY), Entry(text, 1, manager=True)])
    assert (allocation.failure.kind, allocation.ready) == (kind, False)


def test_a_server_that_is_told_to_stop_does_not_fail_by_it():
    lines = [
        *map(Entry, HEALTHY),
        Entry("Stopping SGLang...", 1, manager=True),
        Entry(stamped("", "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")),
        Entry(stamped("", "SIGQUIT received. signum=None, frame=None. It usually means one child failed.")),
        Entry("sglang.service: Main process exited, code=killed, status=9/KILL", 1, manager=True),
        Entry("sglang.service: Failed with result 'signal'.", 1, manager=True),
    ]
    allocation = fold(lines)
    assert (allocation.failure, allocation.phase, allocation.ready) == (None, "ready", False)


def test_a_unit_that_failed_and_is_then_called_stopped_has_failed():
    lines = [
        *map(Entry, TP2),
        Entry("sglang.service: Failed with result 'exit-code'.", 1, manager=True),
        Entry("sglang.service: Scheduled restart job, restart counter is at 2.", 1, manager=True),
        Entry("Stopped SGLang.", 1, manager=True),
    ]
    allocation = fold(lines)
    assert (allocation.failure.kind, allocation.restarts) == ("unit_failed", 2)


def test_a_start_that_the_manager_gave_up_on_has_failed():
    lines = [
        *map(Entry, TP2),
        Entry(stamped("", "SIGTERM received. signum=None")),
        Entry("x: Failed with result 'timeout'.", 1, manager=True),
    ]
    assert fold(lines).failure.kind == "unit_failed"


def test_dropped_messages_make_what_is_missing_unknown():
    lines = [*map(Entry, HEALTHY[:1]), Entry("Suppressed 62498 messages from sglang.service", 3, daemon=True)]
    assert any("dropped 62498 messages" in note and "unknown" in note for note in fold(lines).notes)


# --- whatever the log holds

RECORDS = st.sampled_from(
    [*HEALTHY, *crash(OOM), *(line for lines in HARMLESS for line in lines), *(line for case in DEATHS for line in case[2])]
)
MUTATED = st.builds(lambda text, at, other: text[:at] + other + text[at + len(other) :], RECORDS, st.integers(0, 80), st.text(max_size=6))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(RECORDS, MUTATED, st.text(max_size=60), st.binary(max_size=60).map(lambda data: data.decode("utf-8", "replace"))),
        max_size=40,
    )
)
def test_no_log_breaks_the_folder_and_none_passes_without_every_rank(lines):
    allocation = fold(lines, ended=True)
    as_dict = json.loads(json.dumps(allocation.as_dict()))
    if pool_sufficient(as_dict, 1):
        reported = {rank["tp"] for rank in as_dict["ranks"] if rank["target"] and rank["target"]["tokens"]}
        assert reported == set(range(as_dict["server_args"]["tp_size"]))
        assert any(READY in line for line in lines)


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, len(HEALTHY) - 1), min_size=1, max_size=4))
def test_no_boot_passes_that_lost_a_pool_the_arguments_or_the_ready_line(lost):
    lines = [line for number, line in enumerate(HEALTHY) if number not in lost]
    needed = {0, 3, 7, len(HEALTHY) - 1}  # arguments, the pool of each rank, ready
    assert pool_sufficient(fold(lines).as_dict(), 1000) == (not needed & lost)
