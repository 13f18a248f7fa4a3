# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pool tokens and fractions, against what SGLang's own code gave (fixtures/vectors) and against figures of public logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import (
    Deployment,
)
from ansible_collections.inferops.sglang.plugins.module_utils._eras import ERAS, era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    Pool,
    build_pool,
    fraction_for,
    free_at_sizing,
    largest_fraction,
    lowest_fraction,
    pool_tokens,
    request_table_gib,
    required_tokens,
)
from hypothesis import given, settings
from hypothesis import strategies as st

FIXTURES = Path(__file__).parent / "fixtures"
VECTORS = json.loads((FIXTURES / "vectors/pool_sizes.json").read_text(encoding="utf-8"))
ROWS = [(version, case) for version, rows in VECTORS["results"].items() for case in rows]
# rows with a pool that a fraction gave, not a cap
SOLVED = [
    (version, case)
    for version, case in ROWS
    if VECTORS["results"][version][case][0] and VECTORS["cases"][case].get("max_total_tokens", 9_000_000) == 9_000_000
]


def geometry(name: str) -> Geometry:
    return read_geometry(json.loads((FIXTURES / f"configs/{name}.json").read_text(encoding="utf-8")))


def deployment(case: dict[str, Any]) -> Deployment:
    return Deployment(
        algorithm=case.get("spec", ""),
        tp_size=case["tp"],
        pp_size=case.get("pp", 1),
        dp_size=case.get("dp", 1),
        dp_attention=case.get("dp_attention", False),
        page_size=case.get("page_size", 1),
        kv_cache_dtype=case.get("kv_cache_dtype", "auto"),
        max_running_requests=case.get("max_running_requests"),
        max_total_tokens=case.get("max_total_tokens"),
        num_steps=case.get("spec_num_steps"),
        topk=case.get("spec_topk"),
        num_draft_tokens=case.get("spec_num_draft_tokens"),
        swa_full_tokens_ratio=case.get("swa_full_tokens_ratio", 0.8),
    )


def pool_of(version: str, target: str, draft: str | None = None, **flags: Any) -> Pool:
    return build_pool(era_of(parse_version(version))[0], geometry(target), geometry(draft) if draft else None, Deployment(**flags))


def kimi(version: str, **flags: Any) -> Pool:
    return pool_of(version, "kimi-k2.6", "kimi-k2.6-dflash", **{"algorithm": "DFLASH", "tp_size": 8, **flags})


@pytest.mark.parametrize(("version", "name"), ROWS)
def test_equals_what_the_release_computes(version: str, name: str) -> None:
    case, row = VECTORS["cases"][name], VECTORS["results"][version][name]
    flags = deployment(case)
    target = geometry(case["model"])
    draft = geometry(case["draft"]) if "draft" in case else None
    pool = build_pool(era_of(parse_version(version))[0], target, draft, flags)
    tokens = pool_tokens(pool, case["pre_gib"], case["post_gib"], case["mem_fraction_static"])
    assert tokens == row[0]
    context = case.get("context_length") or target.max_position or 0
    found = (
        pool.charged,
        (tokens + pool.page) * pool.target_bytes,
        (tokens + pool.page) * pool.draft_bytes,
        round(request_table_gib(pool, flags, context, tokens) * GIB),
    )
    told = [(mine, its) for mine, its in zip(found, row[1:]) if its is not None]
    assert [mine for mine, _its in told] == [its for _mine, its in told]


@pytest.mark.parametrize(("version", "name"), SOLVED)
def test_fraction_is_the_smallest_that_reaches_the_pool(version: str, name: str) -> None:
    case = VECTORS["cases"][name]
    tokens = VECTORS["results"][version][name][0]
    draft = geometry(case["draft"]) if "draft" in case else None
    pool = build_pool(era_of(parse_version(version))[0], geometry(case["model"]), draft, deployment(case))
    assert fraction_for(pool, case["pre_gib"], case["post_gib"], tokens) == pytest.approx(case["mem_fraction_static"], abs=1e-9)


# What the releases printed or computed for Kimi K2.6 with its DFlash draft on 8 cards (P 93.7274, A 21.328985 GiB).
@pytest.mark.parametrize(
    ("version", "fraction", "tokens"),
    [
        ("0.5.12.post1", 0.85, 101134),
        ("0.5.12.post1", 0.92, 192406),
        ("0.5.12.post1", 0.926, 200229),
        ("0.5.12.post1", 0.925, 198925),
        ("0.5.17", 0.92, 192406),
        ("0.5.18", 0.85, 104999),
        ("0.5.23", 0.926, 209283),
    ],
)
def test_kimi_with_its_draft(version: str, fraction: float, tokens: int) -> None:
    assert pool_tokens(kimi(version), 93.7274, 21.328985, fraction) == tokens


@pytest.mark.parametrize(
    ("before", "context", "dtype", "fractions"),
    [
        (94.0, 200000, "auto", {"0.5.11": 0.9221, "0.5.14": 0.9361, "0.5.18": 0.9295}),
        (94.0, 200000, "fp8_e4m3", {"0.5.11": 0.8456, "0.5.14": 0.8596, "0.5.18": 0.8568}),
        (94.0, 262144, "auto", {"0.5.11": 0.9696, "0.5.14": 0.9836, "0.5.18": 0.9746}),
        (94.0, 262144, "fp8_e4m3", {"0.5.11": 0.8694, "0.5.14": 0.8833, "0.5.18": 0.8794}),
        (139.8, 262144, "auto", {"0.5.11": 0.652, "0.5.14": 0.6613, "0.5.18": 0.6553}),
    ],
)
def test_fractions_worked_out_by_hand(before: float, context: int, dtype: str, fractions: dict[str, float]) -> None:
    for version, expected in fractions.items():
        loaded = 72.3 if version == "0.5.11" else 72.3 + 1.312
        found = fraction_for(kimi(version, kv_cache_dtype=dtype), before, before - loaded, context)
        assert found is not None
        # the hand-made figures are rounded to the nearest step, the plan is always rounded up
        assert -1e-9 <= found - expected <= 0.0001 + 1e-9, version


# Public logs: free memory before and after the weights as printed (two decimals), the pool they printed, and the distance
# in tokens that the printed decimals allow.
@pytest.mark.parametrize(
    ("version", "model", "flags", "before", "after", "fraction", "printed", "distance"),
    [
        ("0.5.8.post1", "kimi-k2.6", {"tp_size": 8}, 283.53, 209.96, 0.8260405859375, 2454421, 90),
        ("0.5.12.post1", "kimi-k2.6", {"tp_size": 8}, 94.0, 21.7, 0.85, 116153, 90),
        ("0.5.12.post1", "kimi-k2.6", {"tp_size": 8, "kv_cache_dtype": "fp8_e4m3"}, 94.0, 21.7, 0.85, 232306, 180),
        ("0.4.6", "qwq-32b", {"tp_size": 4}, 21.63, 6.09, 0.85, 46611, 95),
        ("0.5.9", "glm-5", {"tp_size": 8, "page_size": 64}, 93.99, 36.93, 0.92, 314304, 1100),
    ],
)
def test_public_logs(
    version: str, model: str, flags: dict[str, Any], before: float, after: float, fraction: float, printed: int, distance: int
) -> None:
    assert abs(pool_tokens(pool_of(version, model, **flags), before, after, fraction) - printed) <= distance


@pytest.mark.parametrize(
    ("model", "flags", "tokens", "gib"),
    [
        ("kimi-k2.6", {"tp_size": 8}, 2454421, "160.63"),
        ("kimi-k2.6", {"tp_size": 8}, 209413, "13.71"),
        ("glm-5", {"tp_size": 8, "page_size": 64}, 314304, "29.32"),
        ("qwq-32b", {"tp_size": 4}, 46611, "2.84"),
        ("qwen3-235b-a22b", {"tp_size": 4}, 199999, "8.96"),
        ("qwen3-235b-a22b", {"tp_size": 8}, 199999, "8.96"),
    ],
)
def test_pool_sizes_that_logs_print(model: str, flags: dict[str, Any], tokens: int, gib: str) -> None:
    assert f"{pool_of('0.5.9', model, **flags).stored_gib(tokens):.2f}" == gib


def test_the_drafts_pool_of_the_log() -> None:
    """0.28 GiB for K at 192,406 tokens, 0.14 at 101,134: the draft's 6 layers with one KV head per rank."""
    pool = kimi("0.5.12.post1")
    k_gib = [pool.draft_bytes / 2 * (tokens + 1) / GIB for tokens in (192406, 101134)]
    assert [f"{gib:.2f}" for gib in k_gib] == ["0.28", "0.14"]


@pytest.mark.parametrize(
    ("version", "flags", "charged"),
    [
        ("0.5.11", {}, 77184),
        ("0.5.17", {}, 77184),
        ("0.5.18", {}, 73344),
        ("0.5.18", {"tp_size": 4}, 76416),
        ("0.5.18", {"tp_size": 1}, 94848),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3"}, 36672),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3", "draft_kv_cache_dtype": "bfloat16"}, 38208),
        ("0.5.11", {"kv_cache_dtype": "fp8_e4m3"}, 38592),
        ("0.5.12", {"algorithm": "DDTREE"}, 77184),
        ("0.5.21", {"dp_size": 8, "dp_attention": True}, 73344),
        ("0.5.22", {"dp_size": 8, "dp_attention": True}, 94848),
    ],
)
def test_what_a_token_is_charged(version: str, flags: dict[str, Any], charged: int) -> None:
    assert kimi(version, **flags).charged == charged


@pytest.mark.parametrize(
    ("version", "transport", "reserve"),
    [("0.5.17", "cuda_ipc", 0.0), ("0.5.18", "cpu", 100 / 1024), ("0.5.18", "cuda_ipc", 1124 / 1024), ("0.5.23", "cuda_vmm", 1124 / 1024)],
)
def test_multimodal_reserve(version: str, transport: str, reserve: float) -> None:
    assert kimi(version, mm_feature_transport=transport).reserve_gib == reserve
    assert pool_of(version, "llama-3.1-8b", mm_feature_transport=transport).reserve_gib == 0.0


def test_decode_context_parallelism_widens_the_pool() -> None:
    """Each of 4 ranks keeps a quarter of the latent rows; the draft's rows and a sparse index are whole on each."""
    pool = kimi("0.5.23", dcp_size=4)
    assert (pool.charged, pool.target_bytes, pool.draft_bytes, pool.rows) == (70272 + 4 * 3072, 70272, 4 * 3072, 4)
    assert pool_tokens(pool, 94.0, 20.0, 0.9) == 4 * int((20.0 - 94.0 * 0.1 - 100 / 1024) * GIB // 82560)


def test_pages_and_caps() -> None:
    pool = pool_of("0.5.23", "deepseek-v3", tp_size=8, page_size=64, max_total_tokens=100_001)
    assert pool_tokens(pool, 139.0, 55.0, 0.9) == 99_968
    assert pool_tokens(pool, 139.0, 55.0, 0.6) == 0


@pytest.mark.parametrize(
    ("before", "after", "lowest"),
    [(78.5, 63.4, 0.1924), (23.2, 2.0, 0.9138), (100.0, 25.0, 0.75)],
)
def test_lowest_fraction(before: float, after: float, lowest: float) -> None:
    pool = pool_of("0.5.14", "llama-3.1-8b")
    assert lowest_fraction(pool, before, after) == lowest
    assert pool_tokens(pool, before, after, lowest - 0.0001) == 0


def test_no_fraction_reaches_what_does_not_fit() -> None:
    pool = kimi("0.5.12")
    assert fraction_for(pool, 93.7, 21.3, 300_000) is None
    assert fraction_for(pool, 93.7, -5.0, 1) is None


def test_largest_fraction() -> None:
    assert largest_fraction(lambda fraction: fraction <= 0.73215) == 0.7321
    assert largest_fraction(lambda _fraction: True) == 0.9999
    assert largest_fraction(lambda _fraction: False) is None


@pytest.mark.parametrize(
    ("context", "concurrent", "page", "tokens"),
    [
        (200000, 1, 1, 200000),
        (200000, 1.5, 1, 300000),
        (200000, 1.1, 1, 220000),
        (200000, 1.1, 64, 220032),
        (131071, 1.3, 1, 170393),
        (3, 0.1, 1, 1),
    ],
)
def test_required_tokens_are_exact(context: int, concurrent: float, page: int, tokens: int) -> None:
    assert required_tokens(context, concurrent, page) == tokens


@settings(max_examples=200, deadline=None)
@given(
    version=st.sampled_from(["0.4.6", "0.5.6", "0.5.8", "0.5.9", "0.5.13", "0.5.17", "0.5.18", "0.5.23"]),
    model=st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "deepseek-v3.2"]),
    page=st.sampled_from([1, 16, 64]),
    before=st.floats(20, 280),
    loaded=st.floats(0.05, 0.7),
    fraction=st.integers(4000, 9990),
)
def test_forward_and_back(version: str, model: str, page: int, before: float, loaded: float, fraction: int) -> None:
    pool = pool_of(version, model, tp_size=8, page_size=page)
    tokens = pool_tokens(pool, before, before * (1 - loaded), fraction / 10000)
    if tokens == 0:
        assert fraction / 10000 <= lowest_fraction(pool, before, before * (1 - loaded)) + 0.001
        return
    found = fraction_for(pool, before, before * (1 - loaded), tokens)
    assert found is not None
    assert found <= fraction / 10000
    assert pool_tokens(pool, before, before * (1 - loaded), found) >= tokens
    # an anchor at this point gives the same pool back
    again = free_at_sizing(pool, before, fraction / 10000, tokens)
    assert pool_tokens(pool, before, again, fraction / 10000) == pytest.approx(tokens, abs=2 * page)


@pytest.mark.parametrize(
    ("text", "release", "post", "era"),
    [
        ("0.4.6.post5", (0, 4, 6), 5, "0.4.6-0.5.6"),
        ("0.5.7", (0, 5, 7), 0, "0.5.7-0.5.10"),
        ("0.5.12.post1", (0, 5, 12), 1, "0.5.11-0.5.13"),
        ("v0.5.12-cu129", (0, 5, 12), 0, "0.5.11-0.5.13"),
        ("0.5.12.post1-cu130", (0, 5, 12), 1, "0.5.11-0.5.13"),
        ("0.5.23+cpu", (0, 5, 23), 0, "0.5.18-0.5.23"),
        (" 0.5.14 ", (0, 5, 14), 0, "0.5.14-0.5.17"),
    ],
)
def test_versions(text: str, release: tuple[int, int, int], post: int, era: str) -> None:
    version = parse_version(text)
    assert version.identity == (release, post)
    assert (era_of(version)[0].name, era_of(version)[1]) == (era, ())


@pytest.mark.parametrize(
    ("text", "era", "word"),
    [
        ("0.5.11rc1", "0.5.11-0.5.13", "no release"),
        ("0.5.12.dev77+g1a2b3c4", "0.5.11-0.5.13", "no release"),
        ("0.5.24", "0.5.18-0.5.23", "newer than 0.5.23"),
        ("0.6.0.post1", "0.5.18-0.5.23", "newer than 0.5.23"),
        ("1.0.0", "0.5.18-0.5.23", "newer than 0.5.23"),
    ],
)
def test_versions_that_need_a_word(text: str, era: str, word: str) -> None:
    found, notes = era_of(parse_version(text))
    assert found.name == era
    assert word in " ".join(notes)


@pytest.mark.parametrize("text", ["", "main", "0.5", "latest", "0.5.x", "0.5.12;rm", "sglang", None, "0.5.12 post1"])
def test_versions_that_are_none(text: Any) -> None:
    with pytest.raises(InputError, match=r"asked for the sizing rules .*; found .*; give the version"):
        parse_version(text)


def test_too_old() -> None:
    with pytest.raises(InputError, match=r"0\.4\.3.*older than 0\.4\.6.*use SGLang 0\.4\.6"):
        era_of(parse_version("0.4.3.post4"))


def test_the_table_is_in_order() -> None:
    assert [era.since for era in ERAS] == sorted({era.since for era in ERAS})


@pytest.mark.parametrize(
    ("version", "target", "draft", "flags", "words"),
    [
        ("0.5.10", "kimi-k2.6", "kimi-k2.6-dflash", {"algorithm": "DFLASH", "tp_size": 8}, ["no such algorithm", "0.5.11"]),
        ("0.5.12", "kimi-k2.6", None, {"algorithm": "DFLASH", "tp_size": 8}, ["DFLASH", "no draft model"]),
        ("0.5.12", "kimi-k2.6", "kimi-k2.6-dflash", {"tp_size": 8}, ["unset", "which uses none"]),
        ("0.5.12", "kimi-k2.6", "llama-3.1-8b", {"algorithm": "DFLASH", "tp_size": 8}, ["vocab_size", "128256", "163840"]),
        ("0.5.12", "deepseek-v3", "kimi-k2.6-dflash", {"algorithm": "DFLASH", "tp_size": 8}, ["vocab_size", "another model"]),
        ("0.5.12", "kimi-k2.6", "kimi-k2.6", {"algorithm": "DFLASH", "tp_size": 8}, ["KimiK25", "DFlashDraftModel"]),
        ("0.5.12", "kimi-k2.6", "kimi-k2.6-dflash", {"algorithm": "EAGLE", "tp_size": 8}, ["EAGLE", "use DFLASH"]),
        ("0.5.12", "kimi-k2.6", "kimi-k2.6-dflash", {"algorithm": "DFLASH", "tp_size": 8, "pp_size": 2}, ["pp_size 2"]),
        ("0.5.12", "kimi-k2.6", "kimi-k2.6-dflash", {"algorithm": "DFLASH", "tp_size": 8, "num_draft_tokens": 16}, ["block_size is 8"]),
        (
            "0.5.12", "kimi-k2.6", "kimi-k2.6-dflash",
            {"algorithm": "DFLASH", "tp_size": 8, "dp_size": 2, "dp_attention": True}, ["enable_dp_attention", "0.5.14"],
        ),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 7}, ["64 attention heads", "7 ranks"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 0}, ["tp_size", "found 0"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 8, "page_size": 0}, ["page_size", "found 0"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 8, "dp_size": 3, "dp_attention": True}, ["dp_size"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 8, "ep_size": 3}, ["ep_size 3"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 8, "dcp_size": 2}, ["dcp_size 2", "0.5.17"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 8, "kv_cache_dtype": "nvfp4"}, ["nvfp4", "fp8_e4m3"]),
        ("0.5.12", "kimi-k2.6", None, {"tp_size": 8, "draft_kv_cache_dtype": "bf16"}, ["draft_kv_cache_dtype", "no such option"]),
        ("0.5.12", "kimi-k2.6-dflash", None, {}, ["DFlashDraftModel", "give the target"]),
        ("0.5.12", "llama-3.1-8b", None, {"pp_size": 33}, ["pp_size 33", "32 layers"]),
        ("0.5.2", "llama-3.1-8b", "llama-3.1-8b-eagle3", {"algorithm": "EAGLE3"}, ["speculative_num_steps", "give all three"]),
        ("0.5.18", "gpt-oss-120b", None, {"tp_size": 8, "dcp_size": 2}, ["GptOssForCausalLM", "dcp_size 2"]),
        ("0.5.12", "qwq-32b", None, {"tp_size": 5}, ["8 KV heads"]),
    ],
)
def test_what_does_not_go_together(version: str, target: str, draft: str | None, flags: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        pool_of(version, target, draft, **flags)
    assert [word for word in words if word not in str(caught.value)] == []
    assert str(caught.value).startswith("asked for ")


def test_multimodal_fraction_of_the_first_releases() -> None:
    """0.4.6 multiplies an explicit fraction by 0.90 for multimodal models; 0.4.9 does not."""
    old, new = (pool_of(version, "kimi-k2.6", tp_size=8) for version in ("0.4.6.post5", "0.4.9"))
    assert pool_tokens(old, 283.53, 209.96, 0.9) == pytest.approx(pool_tokens(new, 283.53, 209.96, 0.81), abs=1)


def test_a_checkpoint_that_asks_for_fp8() -> None:
    assert [pool_of(version, "kimi-k2.6-nvfp4", tp_size=8).charged for version in ("0.5.2", "0.5.3")] == [70272, 35136]
    assert pool_of("0.5.12", "kimi-k2.6-nvfp4", tp_size=8, kv_cache_dtype="bfloat16").charged == 70272
