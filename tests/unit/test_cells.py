# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells of sparse and compressed attention, KV types and drafts, against what SGLang's own code gave (fixtures/vectors)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import Pool, build_pool, fraction_for, pool_tokens

FIXTURES = Path(__file__).parent / "fixtures"
VECTORS = json.loads((FIXTURES / "vectors/sparse_and_dtypes.json").read_text(encoding="utf-8"))
ROWS = [(version, case) for version, rows in VECTORS["results"].items() for case in rows]
# flags by the names of a case and of Deployment
FLAGS = {
    "spec": "algorithm", "tp": "tp_size", "pp": "pp_size", "dp": "dp_size", "dcp": "dcp_size", "spec_num_steps": "num_steps",
    "spec_topk": "topk", "spec_num_draft_tokens": "num_draft_tokens",
}  # fmt: skip
NO_FLAGS = ("model", "draft", "changes", "pre_gib", "post_gib", "mem_fraction_static")


def config(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / f"configs/{name}.json").read_text(encoding="utf-8"))
    return found


def geometry(name: str, changes: dict[str, Any] | None = None) -> Geometry:
    if name == "dspark":
        return read_geometry({**config("kimi-k2.6-dflash"), "architectures": ["Qwen3DSparkModel"]})
    return read_geometry({**config(name), **(changes or {})})


def pool_of(version: str, model: str, draft: str | None = None, changes: dict[str, Any] | None = None, **flags: Any) -> Pool:
    target = geometry(model, changes)
    helper = target if draft == model else geometry(draft) if draft else None
    return build_pool(era_of(parse_version(version))[0], target, helper, Deployment(**flags))


def case_pool(version: str, name: str) -> Pool:
    case = VECTORS["cases"][name]
    flags = {FLAGS.get(key, key): value for key, value in case.items() if key not in NO_FLAGS}
    return pool_of(version, case["model"], case.get("draft"), case.get("changes"), **flags)


@pytest.mark.parametrize(("version", "name"), ROWS)
def test_equals_what_the_release_computes(version: str, name: str) -> None:
    case, (rows, charged, target_bytes, draft_bytes) = VECTORS["cases"][name], VECTORS["results"][version][name]
    pool = case_pool(version, name)
    tokens = pool_tokens(pool, case["pre_gib"], case["post_gib"], case["mem_fraction_static"])
    assert tokens == rows * case.get("dcp", 1)
    found = (pool.charged, pool.target_pool_bytes(tokens), (rows + pool.page) * pool.draft_bytes)
    told = [(mine, its) for mine, its in zip(found, (charged, target_bytes, draft_bytes)) if its is not None]
    assert [mine for mine, _its in told] == [its for _mine, its in told]


@pytest.mark.parametrize(("version", "name"), [(version, name) for version, name in ROWS if "cap" not in name])
def test_the_fraction_is_found_again(version: str, name: str) -> None:
    case = VECTORS["cases"][name]
    tokens = VECTORS["results"][version][name][0] * case.get("dcp", 1)
    found = fraction_for(case_pool(version, name), case["pre_gib"], case["post_gib"], tokens)
    assert found == pytest.approx(case["mem_fraction_static"], abs=1e-9)


# Layers that keep an index, by hand: 3 first ones and every fourth from the seventh on, of 78 layers.
@pytest.mark.parametrize(
    ("version", "flags", "charged"),
    [
        ("0.5.17", {}, 78 * (1152 + 132)),
        ("0.5.18", {}, 78 * 1152 + 21 * 132),
        ("0.5.23", {}, 78 * 1152 + 21 * 132),
        # fp8: 512 + 16 bytes of scales + 128 of the rope part; 576 without scales where the backend reads raw rows
        ("0.5.16", {"kv_cache_dtype": "fp8_e4m3"}, 78 * (576 + 132)),
        ("0.5.17", {"kv_cache_dtype": "fp8_e4m3"}, 78 * (656 + 132)),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3", "compute_capability": 9.0}, 78 * 656 + 21 * 132),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3", "compute_capability": 10.0}, 78 * 576 + 21 * 132),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3", "compute_capability": 12.0}, 78 * 656 + 21 * 132),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3", "attention_backend": "tilelang"}, 78 * 576 + 21 * 132),
        ("0.5.18", {"kv_cache_dtype": "fp8_e4m3", "compute_capability": 10.0, "attention_backend": "flashmla_kv"}, 78 * 656 + 21 * 132),
        # auto is fp8 from compute capability 10 on
        ("0.5.18", {"compute_capability": 9.0}, 78 * 1152 + 21 * 132),
        ("0.5.18", {"compute_capability": 10.3}, 78 * 576 + 21 * 132),
    ],
)
def test_layers_that_share_an_index(version: str, flags: dict[str, Any], charged: int) -> None:
    assert pool_of(version, "glm-5.2", tp_size=8, page_size=64, **flags).charged == charged


def test_which_layers_keep_an_index_is_read_in_two_ways() -> None:
    """Up to 0.5.19 by the stride alone, from 0.5.20 on by indexer_types where there are any."""
    changes = {"indexer_types": ["full"] * 70 + ["shared"] * 8}
    by_release = [
        pool_of(version, "glm-5.2", changes=changes, tp_size=8, page_size=64).charged - 78 * 1152 for version in ("0.5.19", "0.5.20")
    ]
    assert by_release == [21 * 132, 70 * 132]


@pytest.mark.parametrize(
    ("pattern", "owners"),
    [
        ({"index_topk_pattern": "FS" * 39}, 39),
        ({"index_topk_pattern": None, "index_skip_topk_offset": None}, 21),
        ({"index_topk_pattern": None, "index_skip_topk_offset": None, "index_topk_freq": 1}, 78),
    ],
)
def test_strides_and_patterns(pattern: dict[str, Any], owners: int) -> None:
    assert sum(geometry("glm-5.2", pattern).index_by_frequency) == owners


@pytest.mark.parametrize("model", ["deepseek-v3", "deepseek-v3.2"])
def test_attention_is_sparse_where_the_configuration_says_so(model: str) -> None:
    """DeepSeek V3's class with index_topk is sparse, and V3.2's without it is not."""
    sparse = {"index_topk": 2048, "index_head_dim": 128}
    assert geometry(model, sparse).family == "dsa"
    assert geometry(model, {"index_topk": None}).family == "mla"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"kv_cache_dtype": "fp8_e5m2"}, ["fp8_e5m2", "bfloat16 or fp8_e4m3 only"]),
        ({"kv_cache_dtype": "mxfp8"}, ["mxfp8", "bfloat16 or fp8_e4m3 only"]),
    ],
)
def test_types_that_sparse_attention_does_not_know(flags: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        pool_of("0.5.23", "glm-5.2", tp_size=8, page_size=64, **flags)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("version", "model", "flags", "words"),
    [
        ("0.5.3", "deepseek-v3.2", {}, ["leaves the index out", "0.5.3.post2"]),
        ("0.5.4", "llama-3.1-8b", {"kv_cache_dtype": "fp4_e2m1"}, ["fp4_e2m1", "family mha", "use fp8_e4m3"]),
        ("0.5.23", "deepseek-v3", {"kv_cache_dtype": "nvfp4", "tp_size": 8}, ["nvfp4", "family mla"]),
        ("0.5.23", "deepseek-v3", {"kv_cache_dtype": "mxfp8", "tp_size": 8}, ["mxfp8", "family mla"]),
        ("0.5.23", "llama-3.1-8b", {"kv_cache_dtype": "nvfp4"}, ["nvfp4", "no compute_capability", "such as 10.0"]),
        ("0.5.21", "minimax-m3", {"kv_cache_dtype": "fp8_e4m3"}, ["MiniMax", "no compute_capability"]),
        ("0.5.23", "minimax-m3", {"dcp_size": 2, "tp_size": 4}, ["dcp_size 2", "use dcp_size 1"]),
        ("0.5.16", "kimi-k2.6", {"dcp_size": 2, "tp_size": 8}, ["dcp_size 2", "rows of one rank", "0.5.17"]),
        ("0.5.14", "kimi-k2.6", {"dcp_size": 2, "tp_size": 8}, ["dcp_size 2", "no decode context parallelism"]),
    ],
)
def test_what_has_no_pool(version: str, model: str, flags: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        pool_of(version, model, **flags)
    assert [word for word in words if word not in str(caught.value)] == []


# fp8 makes MiniMax's index fp8 too: on compute capability 10 with its own backend, and on 9 from 0.5.23 on.
@pytest.mark.parametrize(
    ("version", "flags", "index_bytes"),
    [
        ("0.5.20", {"compute_capability": 10.0}, 2),
        ("0.5.21", {"compute_capability": 10.0}, 1),
        ("0.5.21", {"compute_capability": 10.0, "attention_backend": "fa4"}, 2),
        ("0.5.22", {"compute_capability": 9.0}, 2),
        ("0.5.23", {"compute_capability": 9.0}, 1),
        ("0.5.23", {"compute_capability": 12.0}, 2),
    ],
)
def test_the_index_of_minimax(version: str, flags: dict[str, Any], index_bytes: int) -> None:
    pool = pool_of(version, "minimax-m3", tp_size=4, page_size=128, kv_cache_dtype="fp8_e4m3", **flags)
    # 60 layers of K and V with one head of 128 in fp8, and 57 sparse layers with a K of 128 for the index
    assert pool.charged == 60 * 2 * 128 + 57 * 128 * index_bytes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sparse_attention_config": None}, ["sparse layers", "give the whole config.json"]),
        ({"sparse_attention_config": {"sparse_attention_freq": [1] * 3}}, ["sparse layers", "for 60 layers"]),
    ],
)
def test_broken_configurations_of_minimax(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        geometry("minimax-m3", change)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("version", "algorithm", "draft", "words"),
    [
        ("0.5.15", "DSPARK", "dspark", ["DSPARK", "no such algorithm", "0.5.16"]),
        ("0.5.16", "DSPARK", "kimi-k2.6-dflash", ["DSPARK", "DFlashDraftModel", "Qwen3DSparkModel"]),
        ("0.5.16", "DFLASH", "dspark", ["DFLASH", "Qwen3DSparkModel", "DFlashDraftModel"]),
    ],
)
def test_drafts_and_algorithms_that_do_not_go_together(version: str, algorithm: str, draft: str, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        pool_of(version, "kimi-k2.6", draft, tp_size=8, algorithm=algorithm)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("version", "flags", "factor"),
    [
        ("0.4.6", {"context_length": 16384}, 1.0),
        ("0.4.9", {"context_length": 16384}, 0.85),
        ("0.5.23", {"context_length": 8192}, 1.0),
        # the model's own 131,072 where nothing is said
        ("0.5.23", {}, 0.85),
    ],
)
def test_what_aiter_takes_off_the_fraction(version: str, flags: dict[str, Any], factor: float) -> None:
    pool = pool_of(version, "llama-3.1-8b", attention_backend="aiter", **flags)
    assert pool.fraction_factor == factor
    assert pool_of(version, "llama-3.1-8b", attention_backend="triton", **flags).fraction_factor == 1.0
