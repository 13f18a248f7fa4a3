# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""config.json to geometry: families, drafts, wrappers, and refusals by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import (
    Draft,
    Geometry,
    InputError,
    check_draft,
    read_geometry,
)

CONFIGS = Path(__file__).parent / "fixtures/configs"


def config(name: str) -> dict[str, Any]:
    return json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))


LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kimi-k2.6", {"family": "mla", "layers": 61, "latent_dim": 512, "rope_dim": 64, "max_position": 262144, "multimodal": True}),
        ("kimi-k2.6-nvfp4", {"family": "mla", "layers": 61, "fp8_kv_form": "modelopt_fp4", "multimodal": True}),
        ("deepseek-v3", {"family": "mla", "layers": 61, "nextn_layers": 1, "draft_layers": 1, "max_position": 163840, "multimodal": False}),
        ("deepseek-v3.2", {"family": "dsa", "layers": 61, "latent_dim": 512, "rope_dim": 64, "index_head_dim": 128}),
        ("glm-5", {"family": "dsa", "layers": 78, "index_head_dim": 128, "max_position": 202752}),
        ("llama-3.1-8b", {"family": "mha", "layers": 32, "kv_heads": 8, "head_dim": 128, "v_head_dim": 128, "max_position": 131072}),
        ("qwen3-235b-a22b", {"family": "mha", "layers": 94, "kv_heads": 4, "head_dim": 128}),
        ("qwq-32b", {"family": "mha", "layers": 64, "kv_heads": 8, "head_dim": 128, "query_heads": 40}),
        ("gpt-oss-120b", {"family": "swa", "layers": 36, "kv_heads": 8, "head_dim": 64}),
        ("mimo-v2-flash", {"family": "swa", "layers": 48, "kv_heads": 4, "head_dim": 192, "v_head_dim": 128}),
        ("gemma-4-26b-a4b", {"family": "swa", "layers": 30, "kv_heads": 2, "head_dim": 512, "v_head_dim": 512, "multimodal": True}),
        ("llama-3.1-8b-eagle3", {"family": "mha", "layers": 1, "draft": None}),
        (
            "kimi-k2.6-dflash",
            {
                "family": "mha", "layers": 6, "kv_heads": 8, "head_dim": 128, "vocab_size": 163840, "hidden_size": 7168,
                "draft": Draft(8, 61, (1, 12, 24, 35, 47, 58)),
            },
        ),
    ],
)
def test_geometry(name: str, expected: dict[str, Any]) -> None:
    found = read_geometry(config(name))
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"num_key_value_heads": 1}, {"kv_heads": 1, "head_dim": 128}),
        ({"num_key_value_heads": None}, {"kv_heads": 32}),
        ({"head_dim": 64, "v_head_dim": 96}, {"head_dim": 64, "v_head_dim": 96}),
        ({"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, {"max_position": 32768}),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, {"max_position": 8192}),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}}, {"max_position": 8192}),
        ({"max_position_embeddings": None}, {"max_position": None}),
        ({"model_max_length": 4096}, {"max_position": 4096}),
        ({"layer_types": ["sliding_attention"] * 32, "sliding_window": 4096}, {"family": "mha", "windows": None}),
    ],
)
def test_details(change: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read_geometry({**LLAMA, **change})
    assert {key: getattr(found, key) for key in expected} == expected


def test_a_draft_with_windows_is_a_draft_all_the_same() -> None:
    """The draft's window shortens what its attention reads, not its pool."""
    windows = {"layer_types": ["sliding_attention"] * 5 + ["full_attention"], "sliding_window": 2048}
    assert read_geometry({**config("kimi-k2.6-dflash"), **windows}) == read_geometry(config("kimi-k2.6-dflash"))


def test_a_draft_without_a_block_has_sglangs_default() -> None:
    plain = {key: value for key, value in config("kimi-k2.6-dflash").items() if key not in ("block_size", "num_target_layers")}
    assert read_geometry(plain).draft == Draft(16, None, (1, 12, 24, 35, 47, 58))
    assert read_geometry({**plain, "dflash_config": {"block_size": 4}}).draft == Draft(4, None, ())


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("DeepseekV4ForCausalLMNextN", "draft"),
        ("InklingForConditionalGeneration", "convolution states beside two pools"),
        ("Dots3NoteForCausalLM", "latent attention with windows"),
        ("MllamaForConditionalGeneration", "encoder beside the decoder"),
        ("NanbeigeForCausalLM", "run more than once"),
        ("Qwen3ForSequenceClassification", "generates no text"),
        ("TransformersForCausalLM", "wrapper around any model"),
        ("BrandNewForCausalLM", "not in the table"),
    ],
)
def test_refused_by_name(name: str, word: str) -> None:
    with pytest.raises(InputError, match=rf"asked for the KV bytes .*; found the architecture {name}: .*{word}.*; start it once"):
        read_geometry({**LLAMA, "architectures": [name]})


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ({}, "architectures None"),
        ({"architectures": []}, r"architectures \[\]"),
        ({"architectures": "LlamaForCausalLM"}, "architectures 'LlamaForCausalLM'"),
        ([], "list"),
        ("text", "str"),
        ({**LLAMA, "num_hidden_layers": 0}, "num_hidden_layers of the model; found 0"),
        ({**LLAMA, "num_hidden_layers": "32"}, "num_hidden_layers of the model; found '32'"),
        ({**LLAMA, "num_hidden_layers": True}, "num_hidden_layers of the model; found True"),
        ({**LLAMA, "num_attention_heads": None}, "num_attention_heads of the model; found None"),
        ({**LLAMA, "hidden_size": None}, "hidden_size of the model; found None"),
        ({**LLAMA, "kv_lora_rank": 512}, "also has kv_lora_rank"),
        ({**config("deepseek-v3"), "kv_lora_rank": None}, "kv_lora_rank of the model; found None"),
        ({**config("deepseek-v3.2"), "index_head_dim": None}, "index_head_dim of the model; found None"),
        ({**config("gpt-oss-120b"), "layer_types": ["full_attention"] * 36}, "36 entries, 0 of them sliding"),
        ({**config("gpt-oss-120b"), "layer_types": None}, "0 entries"),
        ({**config("kimi-k2.6-dflash"), "dflash_config": {"target_layer_ids": "1,2"}}, "target_layer_ids '1,2'"),
    ],
)
def test_broken_configurations(broken: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read_geometry(broken)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"num_target_layers": 60}, "num_target_layers 60 in the draft where the target has 61"),
        ({"vocab_size": 151936}, "vocab_size 151936"),
        ({"hidden_size": 4096}, "hidden_size 4096"),
        ({"num_target_layers": None, "dflash_config": {"target_layer_ids": [1, 61]}}, r"target_layer_ids \[61\]"),
    ],
)
def test_a_draft_for_another_target(change: dict[str, Any], word: str) -> None:
    target = read_geometry(config("kimi-k2.6"))
    with pytest.raises(InputError, match=f"{word}.*made for another model"):
        check_draft(target, read_geometry({**config("kimi-k2.6-dflash"), **change}))


@pytest.mark.parametrize(
    ("architecture", "sizes", "fits"),
    [
        ("LlamaForCausalLMEagle", {"hidden_size": 4096}, True),
        ("LlamaForCausalLMEagle", {"hidden_size": 5120}, False),
        ("LlamaForCausalLMEagle3", {"hidden_size": 2048, "target_hidden_size": 4096}, True),
        ("LlamaForCausalLMEagle3", {"hidden_size": 4096, "target_hidden_size": 5120}, False),
        # a small model of its own: it reads tokens, not the states of the target
        ("LlamaForCausalLM", {"hidden_size": 2048}, True),
    ],
)
def test_a_draft_that_reads_the_states_of_its_target_has_their_width(architecture: str, sizes: dict[str, int], fits: bool) -> None:
    draft = read_geometry({**LLAMA, "architectures": [architecture], **sizes})
    if fits:
        check_draft(read_geometry(LLAMA), draft)
        return
    with pytest.raises(InputError, match="hidden_size 5120 in the draft where the target has 4096"):
        check_draft(read_geometry(LLAMA), draft)


def test_the_right_draft() -> None:
    target: Geometry = read_geometry(config("kimi-k2.6"))
    check_draft(target, read_geometry(config("kimi-k2.6-dflash")))
    check_draft(target, read_geometry({**config("kimi-k2.6-dflash"), "num_target_layers": None}))
