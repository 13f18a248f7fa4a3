# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KV types: their names by release, what auto stands for, and what a draft gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import (
    charged_draft_type,
    check_types,
    draft_kv_type,
    kv_type,
    type_notes,
)
from ansible_collections.inferops.sglang.plugins.module_utils._kv_quantisation import fp8_form
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry

CONFIGS = Path(__file__).parent / "fixtures/configs"


def geometry(name: str, **changes: Any) -> Geometry:
    return read_geometry({**json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")), **changes})


def era(version: str) -> Era:
    return era_of(parse_version(version))[0]


EIGHT = {"type": "float", "num_bits": 8}
FOUR = {"type": "float", "num_bits": 4}
QUANTISATIONS: dict[str, dict[str, Any]] = {
    "nested fp4": {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}},
    "scheme fp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": EIGHT},
    "flat fp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
    "nested fp8": {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "fp8"}},
    "scheme fp8": {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": EIGHT},
    "flat fp8": {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
    "nested mixed": {"quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8"}},
    "flat mixed": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8"},
    "plain fp8": {"quant_method": "fp8", "kv_cache_quant_algo": "FP8"},
    "compressed tensors": {"quant_method": "compressed-tensors", "kv_cache_scheme": {**EIGHT, "strategy": "tensor", "dynamic": False}},
}

# What the releases' own readers of a checkpoint answered, from the first to the last release with each answer.
READ = {
    "0.5.2": set(),
    "0.5.3": {"nested fp4", "scheme fp4", "flat fp4"},
    "0.5.4": {"nested fp4", "scheme fp4", "flat fp4", "nested fp8", "scheme fp8"},
    "0.5.8": {"nested fp4", "scheme fp4", "flat fp4", "nested fp8", "scheme fp8"},
    "0.5.9": {"nested fp4", "scheme fp4", "nested fp8", "scheme fp8"},
    "0.5.10": {"nested fp4", "scheme fp4", "nested fp8", "scheme fp8", "nested mixed"},
    "0.5.14": {"nested fp4", "scheme fp4", "nested fp8", "scheme fp8", "nested mixed"},
    "0.5.15": set(QUANTISATIONS) - {"plain fp8", "compressed tensors"},
    "0.5.17": set(QUANTISATIONS) - {"plain fp8", "compressed tensors"},
    "0.5.18": set(QUANTISATIONS) - {"compressed tensors"},
    "0.5.19": set(QUANTISATIONS),
    "0.5.23": set(QUANTISATIONS),
}


@pytest.mark.parametrize("version", READ)
@pytest.mark.parametrize("name", QUANTISATIONS)
def test_what_auto_reads_from_a_checkpoint(version: str, name: str) -> None:
    target = geometry("llama-3.1-8b", quantization_config=QUANTISATIONS[name])
    assert kv_type(era(version), target, Deployment()).name == ("fp8_e4m3" if name in READ[version] else "bf16")


@pytest.mark.parametrize(
    "quantisation",
    [
        None,
        "fp8",
        {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3"},
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": FOUR},
        # the scheme has the last word where there is one
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": FOUR, "kv_cache_quant_algo": "FP8"},
        {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None}},
        {"quant_method": "compressed-tensors", "kv_cache_scheme": None},
        {"quant_method": "compressed-tensors", "kv_cache_scheme": {**EIGHT, "strategy": "channel"}},
        {"quant_method": "compressed-tensors", "kv_cache_scheme": {**EIGHT, "strategy": "tensor", "dynamic": True}},
        {"quant_method": "compressed-tensors", "kv_cache_scheme": {**EIGHT, "strategy": "tensor", "symmetric": False}},
        {"kv_cache_scheme": EIGHT},
        {"kv_cache_quant_algo": "FP8"},
    ],
)
def test_checkpoints_that_ask_for_nothing(quantisation: Any) -> None:
    assert fp8_form({"quantization_config": quantisation}) is None


OLD = ["auto", "fp8_e5m2", "fp8_e4m3"]
MIDDLE = [*OLD, "bf16", "bfloat16", "fp4_e2m1"]
NEW = [*OLD, "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16"]
EVERY = sorted({*MIDDLE, *NEW, "fp8", "float16", "fp16", "int8", ""})


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.4.6", OLD), ("0.5.3", OLD), ("0.5.4", MIDDLE), ("0.5.15", MIDDLE), ("0.5.16", NEW), ("0.5.23", NEW)],
)
@pytest.mark.parametrize("name", EVERY)
def test_the_names_of_each_release(version: str, known: list[str], name: str) -> None:
    if name in known:
        check_types(era(version), Deployment(kv_cache_dtype=name))
        return
    with pytest.raises(InputError, match=rf"asked for kv_cache_dtype {name}; found SGLang .*, which knows auto, fp8_e5m2.*; use one of"):
        check_types(era(version), Deployment(kv_cache_dtype=name))


@pytest.mark.parametrize(
    ("version", "name", "words"),
    [
        ("0.5.17", "bf16", ["no such option", "0.5.18"]),
        ("0.5.18", "mxfp8", ["which knows auto, fp8_e5m2, fp8_e4m3, bf16, bfloat16"]),
        ("0.5.18", "fp8", ["draft_kv_cache_dtype fp8"]),
    ],
)
def test_the_names_of_a_drafts_type(version: str, name: str, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        check_types(era(version), Deployment(draft_kv_cache_dtype=name))
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("name", "size", "width"),
    [("bf16", 2, 2), ("bfloat16", 2, 2), ("fp8_e5m2", 1, 1), ("mxfp8", 1, 1), ("nvfp4", 1, 0.5), ("fp4_mx_block16", 1, 0.5)],
)
def test_sizes(name: str, size: int, width: float) -> None:
    found = kv_type(era("0.5.23"), geometry("llama-3.1-8b"), Deployment(kv_cache_dtype=name))
    assert (found.size, found.width) == (size, width)


# Sparse attention takes auto from the card, whatever the checkpoint asks for.
@pytest.mark.parametrize(("capability", "name"), [(None, "bf16"), (9.0, "bf16"), (10.0, "fp8_e4m3"), (12.0, "fp8_e4m3")])
def test_auto_of_sparse_attention(capability: float | None, name: str) -> None:
    target = geometry("deepseek-v3.2", quantization_config=QUANTISATIONS["nested fp4"])
    assert kv_type(era("0.5.23"), target, Deployment(compute_capability=capability)).name == name


def test_compressed_attention_is_fp8() -> None:
    assert kv_type(era("0.5.23"), geometry("deepseek-v4-flash"), Deployment()).name == "fp8_e4m3"


NVFP4 = geometry("kimi-k2.6-nvfp4")
KIMI = geometry("kimi-k2.6")
DRAFT = geometry("kimi-k2.6-dflash")


@pytest.mark.parametrize(
    ("version", "target", "flags", "stored", "charged"),
    [
        # the flags are written over with what auto became for the target, in some releases
        ("0.5.8", NVFP4, {}, "bf16", "bf16"),
        ("0.5.12", NVFP4, {}, "fp8_e4m3", "fp8_e4m3"),
        ("0.5.16", NVFP4, {}, "fp8_e4m3", "fp8_e4m3"),
        ("0.5.17", NVFP4, {}, "bf16", "bf16"),
        ("0.5.23", NVFP4, {}, "bf16", "bf16"),
        ("0.5.23", KIMI, {}, "bf16", "bf16"),
        ("0.5.23", KIMI, {"kv_cache_dtype": "fp8_e4m3"}, "fp8_e4m3", "fp8_e4m3"),
        ("0.5.23", KIMI, {"kv_cache_dtype": "fp8_e4m3", "draft_kv_cache_dtype": "bf16"}, "bf16", "bf16"),
        ("0.5.23", KIMI, {"draft_kv_cache_dtype": "fp8_e5m2"}, "fp8_e5m2", "fp8_e5m2"),
        ("0.5.15", KIMI, {"kv_cache_dtype": "fp8_e4m3", "draft_attention_backend": "fa4"}, "fp8_e4m3", "fp8_e4m3"),
        ("0.5.16", KIMI, {"kv_cache_dtype": "fp8_e4m3", "draft_attention_backend": "fa4"}, "bf16", "bf16"),
        ("0.5.23", KIMI, {"kv_cache_dtype": "fp8_e4m3", "draft_attention_backend": "triton"}, "fp8_e4m3", "fp8_e4m3"),
    ],
)
def test_what_a_draft_gets(version: str, target: Geometry, flags: dict[str, Any], stored: str, charged: str) -> None:
    deployment = Deployment(algorithm="DFLASH", tp_size=8, **flags)
    assert draft_kv_type(era(version), target, DRAFT, deployment).name == stored
    assert charged_draft_type(era(version), target, deployment).name == charged


def test_a_draft_may_ask_for_fp8_itself() -> None:
    """Its own pool follows its checkpoint; what the target's pool is charged for it does not."""
    draft = geometry("kimi-k2.6-dflash", quantization_config=QUANTISATIONS["nested fp8"])
    deployment = Deployment(algorithm="DFLASH", tp_size=8)
    assert draft_kv_type(era("0.5.23"), KIMI, draft, deployment).name == "fp8_e4m3"
    assert charged_draft_type(era("0.5.23"), KIMI, deployment).name == "bf16"


def test_a_sparse_target_hands_its_type_on() -> None:
    target = geometry("deepseek-v3.2")
    deployment = Deployment(algorithm="DFLASH", compute_capability=10.0)
    assert charged_draft_type(era("0.5.23"), target, deployment).name == "fp8_e4m3"


@pytest.mark.parametrize(
    ("version", "flags", "words"),
    [
        ("0.5.23", {"page_size": 64}, ["planned as bf16", "give compute_capability"]),
        ("0.5.23", {"page_size": 64, "kv_cache_dtype": "fp8_e4m3"}, ["trtllm", "give compute_capability"]),
        ("0.5.23", {"page_size": 64, "kv_cache_dtype": "fp8_e4m3", "attention_backend": "flashmla_kv"}, []),
        ("0.5.9", {"page_size": 64, "kv_cache_dtype": "fp8_e4m3"}, []),
        ("0.5.23", {"page_size": 64, "compute_capability": 9.0}, []),
        ("0.5.23", {"page_size": 1, "compute_capability": 9.0}, ["pages of 64"]),
    ],
)
def test_what_is_said_about_sparse_attention(version: str, flags: dict[str, Any], words: list[str]) -> None:
    notes = type_notes(era(version), geometry("glm-5.2"), Deployment(**flags))
    assert bool(notes) is bool(words)
    assert [word for word in words if word not in " ".join(notes)] == []


def test_nothing_is_said_about_other_attention() -> None:
    assert type_notes(era("0.5.23"), geometry("llama-3.1-8b"), Deployment()) == []
