# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models with windowed layers: their two pools against what SGLang's own code gave, and the rules of each release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import Weights
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import ERAS, era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Plan, Request, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import GIB, Pool, build_pool, fraction_for, pool_tokens
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import RULES, WINDOWED
from ansible_collections.inferops.sglang.plugins.module_utils._stages import stages

VECTORS = json.loads((Path(__file__).parent / "fixtures/vectors/sliding_window.json").read_text(encoding="utf-8"))
ROWS = [(version, index) for version, rows in VECTORS["results"].items() for index in range(len(rows))]
TOLD = [(version, index) for version, index in ROWS if "bytes" in VECTORS["results"][version][index]]
MODELS: dict[str, Geometry] = {name: read_geometry(config) for name, config in VECTORS["models"].items()}


def pool_of(version: str, model: str, draft: Optional[str] = None, **flags: Any) -> Pool:
    return build_pool(era_of(parse_version(version))[0], MODELS[model], MODELS[draft] if draft else None, Deployment(**flags))


@pytest.mark.parametrize(("version", "index"), ROWS)
def test_equals_what_the_release_computes(version: str, index: int) -> None:
    row = VECTORS["results"][version][index]
    pool = pool_of(version, row["model"], row.get("draft"), **row["flags"])
    tokens = pool_tokens(pool, row["before"], row["at_sizing"], row["fraction"])
    assert tokens == row["tokens"]
    if "charged" in row:
        assert pool.charged == row["charged"]
    if "swa_tokens" not in row:
        assert pool.swa_tokens(tokens) is None
        return
    found = pool.swa_tokens(tokens)
    assert found is not None
    # 0.5.8 and 0.5.9 round the second pool down from what the first was before it was rounded
    slack = pool.page if pool.page > 1 and parse_version(version).release < (0, 5, 10) else 0
    assert 0 <= row["swa_tokens"] - found <= slack


@pytest.mark.parametrize(("version", "index"), TOLD)
def test_bytes_of_both_pools(version: str, index: int) -> None:
    row = VECTORS["results"][version][index]
    pool = pool_of(version, row["model"], row.get("draft"), **row["flags"])
    assert pool.target_pool_bytes(row["tokens"]) == row["bytes"]


def test_a_fraction_that_reaches_a_pool_of_either_kind() -> None:
    for flags in ({}, {"disable_radix_cache": True, "max_running_requests": 48, "chunked_prefill_size": 8192}):
        pool = pool_of("0.5.23", "gpt-oss-120b", tp_size=2, page_size=64, **flags)
        fraction = fraction_for(pool, 78.5, 44.0, 131072)
        assert fraction is not None
        assert pool_tokens(pool, 78.5, 44.0, fraction) >= 131072 > pool_tokens(pool, 78.5, 44.0, round(fraction - 0.0001, 4))


# which releases give the windowed layers a pool of their own
@pytest.mark.parametrize(
    ("version", "model", "flags", "two"),
    [
        ("0.5.7", "gpt-oss-120b", {}, False),
        ("0.5.8", "gpt-oss-120b", {}, True),
        ("0.5.23", "gpt-oss-120b", {}, True),
        ("0.5.23", "gpt-oss-120b", {"disable_hybrid_swa_memory": True}, False),
        ("0.5.8", "gpt-oss-120b", {"attention_backend": "trtllm_mha"}, False),
        ("0.5.9", "gpt-oss-120b", {"compute_capability": 10.0}, False),
        ("0.5.9", "gpt-oss-120b", {"compute_capability": 10.0, "attention_backend": "triton"}, True),
        ("0.5.9", "gpt-oss-120b", {"compute_capability": 9.0}, True),
        ("0.5.10", "gpt-oss-120b", {"attention_backend": "trtllm_mha"}, True),
        ("0.5.8", "gpt-oss-120b", {"algorithm": "NGRAM"}, False),
        ("0.5.9", "gpt-oss-120b", {"algorithm": "NGRAM"}, True),
        ("0.5.8", "mimo-v2-flash", {"attention_backend": "trtllm_mha"}, True),
        ("0.5.7", "mimo-v2-flash", {}, True),
        ("0.5.7", "llama-4-scout", {}, False),
        ("0.5.8", "llama-4-scout", {}, True),
        ("0.5.23", "gemma-3-27b", {}, False),
        ("0.5.23", "exaone-4-32b", {}, False),
    ],
)
def test_which_releases_have_two_pools(version: str, model: str, flags: dict[str, Any], two: bool) -> None:
    assert (pool_of(version, model, tp_size=2, **flags).swa_tokens(100_000) is not None) is two


def test_a_pool_too_small_for_one_window() -> None:
    """From 0.5.16 on SGLang refuses a second pool of no more than a window and a page: 2,047 + 64 = 2,111 tokens."""
    pool = pool_of("0.5.18", "muse-glimmer", tp_size=2, page_size=64)
    cell = pool.charged / GIB

    def tokens(full: int) -> int:
        return pool_tokens(pool, 100.0, 10.0 + (full + 0.5) * cell, 0.9)

    assert tokens(2624) == 0  # int(2624 * 0.8) = 2099, in pages 2048
    assert tokens(2688) == 2688  # int(2688 * 0.8) = 2150, in pages 2112
    assert pool_tokens(pool_of("0.5.15", "gpt-oss-120b", tp_size=2), 100.0, 10.0 + 100 * 33177.6 / GIB, 0.9) == 100


@pytest.mark.parametrize(
    ("version", "tokens", "limit"),
    [("0.5.9", 100_000, 80_000), ("0.5.10", 100_000, 80_000), ("0.5.11", 100_000, 100_000), ("0.5.23", 100_000, 100_000)],
)
def test_how_long_a_request_may_be(version: str, tokens: int, limit: int) -> None:
    pool = pool_of(version, "gpt-oss-120b", tp_size=2)
    assert pool.request_tokens(tokens) == limit
    needed = pool.tokens_for_request(limit)
    assert pool.request_tokens(needed) >= limit > pool.request_tokens(needed - 2)


@pytest.mark.parametrize("page", [1, 16, 64])
@pytest.mark.parametrize("ratio", [0.1, 0.33, 0.8, 1.0])
@pytest.mark.parametrize("request_tokens", [1, 63, 8191, 131072])
def test_the_pool_that_a_request_needs_is_the_smallest(page: int, ratio: float, request_tokens: int) -> None:
    pool = pool_of("0.5.10", "gpt-oss-120b", tp_size=2, page_size=page, swa_full_tokens_ratio=ratio)
    needed = pool.tokens_for_request(request_tokens)
    assert needed % page == 0
    assert pool.request_tokens(needed) >= request_tokens
    assert needed == page or pool.request_tokens(needed - page) < request_tokens


def plan(version: str, **request: Any) -> Plan:
    sources = Sources(gpu_free_gib=78.5, weights=lambda: Weights(34.0))
    return make_plan(Request(version, MODELS["gpt-oss-120b"], Deployment(tp_size=2), sources, **request))


def test_a_plan_where_the_smaller_pool_limits_a_request() -> None:
    found = plan("0.5.9", context_length=131072)
    assert found.required_tokens == 163840
    assert found.predicted_tokens >= 163840
    text = " ".join(found.reasons)
    assert "Two pools:" in text
    assert "131,072 need 163,840 in the first" in text


@pytest.mark.parametrize(("version", "said"), [("0.5.8", True), ("0.5.9", True), ("0.5.10", False)])
def test_a_plan_that_depends_on_the_backend_says_so(version: str, said: bool) -> None:
    assert ("this release makes one pool" in " ".join(plan(version, context_length=131072).reasons)) is said


def test_a_plan_where_it_does_not() -> None:
    found = plan("0.5.11", context_length=131072)
    assert found.required_tokens == 131072
    text = " ".join(found.reasons)
    assert "Two pools:" in text
    assert "smaller of the two" not in text
    assert "Two pools:" not in " ".join(plan("0.5.7", context_length=131072).reasons)


def test_a_plan_says_how_long_a_request_may_be_where_none_is_asked_for() -> None:
    found = plan("0.5.9", mem_fraction_static=0.6)
    longest = int(found.predicted_tokens * 0.8)
    assert f"lets no request fill more than the smaller of the two, {longest:,} tokens." in " ".join(found.reasons)


# 30 layers of which every sixth keeps all, and so on: what each stage holds
@pytest.mark.parametrize(
    ("version", "layers", "sizes"),
    [
        ("0.5.5", 61, [7, 7, 7, 7, 7, 7, 7, 12]),
        ("0.5.6", 61, [7, 7, 7, 8, 8, 8, 8, 8]),
        ("0.5.5", 64, [8] * 8),
        ("0.5.23", 64, [8] * 8),
        ("0.5.23", 10, [1, 1, 1, 1, 1, 1, 2, 2]),
    ],
)
def test_layers_of_the_stages(version: str, layers: int, sizes: list[int]) -> None:
    cut = stages(era_of(parse_version(version))[0], layers, 8)
    assert [len(stage) for stage in cut] == sizes
    assert [layer for stage in cut for layer in stage] == list(range(layers))


@pytest.mark.parametrize(
    ("version", "model", "draft", "flags", "words"),
    [
        ("0.5.7", "mimo-v2-flash", None, {"page_size": 64}, ["page_size 64", "0.5.7 does not start"]),
        ("0.5.8", "gpt-oss-120b", None, {"pp_size": 2}, ["9 full and 9 windowed", "0.5.11"]),
        ("0.5.9", "mimo-v2-flash", None, {"pp_size": 2}, ["4 full and 20 windowed layers, 5 full and 20 windowed layers"]),
        ("0.5.23", "mimo-v2-flash", None, {"pp_size": 24}, ["0 full and 2 windowed"]),
        ("0.5.18", "gpt-oss-120b", None, {"tp_size": 4, "dcp_size": 2}, ["dcp_size 2"]),
        ("0.4.9", "gemma-3-27b", None, {}, ["two pools in 0.4.9", "0.5.1"]),
        ("0.5.15", "gpt-oss-120b", "gpt-oss-120b", {"algorithm": "STANDALONE"}, ["a draft", "two pools of its own"]),
        (
            "0.5.14", "gpt-oss-120b", None, {"disable_radix_cache": True, "max_running_requests": 8},
            ["no chunked_prefill_size", "depends on the card"],
        ),
        (
            "0.5.23", "gpt-oss-120b", None,
            {"disable_radix_cache": True, "max_running_requests": 8, "chunked_prefill_size": 8192, "algorithm": "NGRAM"},
            ["NGRAM without speculative_num_draft_tokens"],
        ),
        (
            "0.5.23", "gpt-oss-120b", "gpt-oss-eagle3",
            {
                "disable_radix_cache": True, "max_running_requests": 8, "chunked_prefill_size": 8192, "algorithm": "EAGLE3",
                "num_draft_tokens": 8, "topk": 2, "page_size": 64,
            },
            ["speculative_eagle_topk 2 with page_size 64"],
        ),
    ],
)
def test_what_is_refused(version: str, model: str, draft: Optional[str], flags: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        pool_of(version, model, draft, **flags)
    assert [word for word in words if word not in str(caught.value)] == []


def test_gemma_in_its_first_releases_without_the_second_pool() -> None:
    assert pool_of("0.4.9", "gemma-3-27b", disable_hybrid_swa_memory=True).charged == 62 * 16 * 256 * 2
    assert pool_of("0.4.6", "gemma-3-27b").charged == pool_of("0.5.1", "gemma-3-27b").charged == 62 * 16 * 256 * 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"layer_types": ["full_attention"] * 36}, "36 entries, 0 of them sliding"),
        ({"layer_types": None}, "0 entries"),
        ({"layer_types": ["sliding_attention"] * 35}, "35 entries"),
        ({"layer_types": ["chunked_attention"] * 36}, "36 entries, 0 of them sliding"),
    ],
)
def test_a_split_that_is_not_told(change: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        read_geometry({**VECTORS["models"]["gpt-oss-120b"], **change})


def test_boundaries_are_rows_of_the_eras() -> None:
    """The eras are what a version is looked up by; a rule that begins between two of them would begin late."""
    known = {era.since for era in ERAS}
    wanted = {rules.since for rules in RULES}
    for row in WINDOWED.values():
        wanted |= {row.since, row.speculates, row.on_trtllm}
    assert sorted(wanted - known) == []
    assert [rules.since for rules in RULES] == sorted({rules.since for rules in RULES})
