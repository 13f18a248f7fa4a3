# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every architecture that SGLang registers is sized by its family or refused with its reason; none falls through to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._architectures import (
    ARCHITECTURES,
    MULTIMODAL,
    TEXT_ONLY,
    UNSIZED,
)
from ansible_collections.inferops.sglang.plugins.module_utils._eras import parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import WINDOWED
from ansible_collections.inferops.sglang.plugins.module_utils._states import HYBRIDS

REGISTERED = json.loads((Path(__file__).parent / "fixtures/architectures.json").read_text(encoding="utf-8"))["names"]

PLAIN = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "max_position_embeddings": 8192,
}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_every_registered_architecture_has_a_place(name: str) -> None:
    row = ARCHITECTURES.get(name)
    if row is None:
        reason = next(text for start, text in UNSIZED.items() if name.startswith(start))
        with pytest.raises(InputError, match=f"the architecture {name}: {reason}"):
            read_geometry({**PLAIN, "architectures": [name]})
        return
    # models with states are known by their configuration, some before they had this name
    if name not in HYBRIDS and row.family in ("mha", "mla", "either", "swa") and not row.is_draft:
        assert row.since == parse_version(REGISTERED[name]).release


def test_the_tables_name_what_exists() -> None:
    assert [name for name in (*ARCHITECTURES, *MULTIMODAL, *TEXT_ONLY, *WINDOWED) if name not in REGISTERED] == []
    assert [name for name in WINDOWED if name in ARCHITECTURES and ARCHITECTURES[name].family != "swa"] == []
    assert [name for name, row in ARCHITECTURES.items() if row.family == "swa" and name not in WINDOWED] == []


@pytest.mark.parametrize("name", ["BrandNewForCausalLM", "LlamaForCausalLM2", "llamaforcausallm", "Llama", ""])
def test_an_unknown_architecture_is_never_taken_for_another(name: str) -> None:
    with pytest.raises(InputError, match=f"the architecture {name}: an attention that is not in the table"):
        read_geometry({**PLAIN, "architectures": [name]})


def test_the_first_name_decides() -> None:
    """As in SGLang, where a configuration names several."""
    assert read_geometry({**PLAIN, **MLA, "architectures": ["DeepseekV3ForCausalLM", "LlamaForCausalLM"]}).family == "mla"


# Sizes of published models, and the geometry that SGLang's ModelConfig makes of them.
@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        ("MiniMaxM2ForCausalLM", {**PLAIN, "num_hidden_layers": 62, "num_attention_heads": 48, "head_dim": 128}, ("mha", 62, 8, 128, 128)),
        (
            "ChatGLMModel",
            {"num_layers": 28, "num_attention_heads": 32, "hidden_size": 4096, "kv_channels": 128, "multi_query_group_num": 2},
            ("mha", 28, 2, 128, 128),
        ),
        ("DbrxForCausalLM", {"n_layers": 40, "n_heads": 48, "d_model": 6144, "attn_config": {"kv_n_heads": 8}}, ("mha", 40, 8, 128, 128)),
        ("DbrxForCausalLM", {"n_layers": 40, "n_heads": 48, "d_model": 6144, "attn_config": {"clip_qkv": 8}}, ("mha", 40, 48, 128, 128)),
        ("GPT2LMHeadModel", {"n_layer": 12, "n_head": 12, "n_embd": 768}, ("mha", 12, 12, 64, 64)),
        ("GPTBigCodeForCausalLM", {"n_layer": 40, "n_head": 48, "n_embd": 6144, "multi_query": True}, ("mha", 40, 1, 128, 128)),
        ("GPTJForCausalLM", {"n_layer": 28, "n_head": 16, "n_embd": 4096}, ("mha", 28, 16, 256, 256)),
        (
            "DeciLMForCausalLM",
            {
                **PLAIN, "model_type": "nemotron-nas", "num_hidden_layers": 80, "num_attention_heads": 64, "hidden_size": 8192,
                "num_key_value_heads": None,
                "block_configs": [{"attention": {"n_heads_in_group": 8}}] * 49 + [{"attention": {"no_op": True}}] * 31,
            },
            ("mha", 80, 8, 128, 128),
        ),
        (
            "Step3VLForConditionalGeneration",
            {"text_config": {"num_hidden_layers": 61, "num_attention_heads": 64, "num_attention_groups": 1, "head_dim": 256}},
            ("mha", 61, 1, 256, 256),
        ),
        ("Qwen3OmniMoeForConditionalGeneration", {"thinker_config": {"text_config": {**PLAIN, "head_dim": 64}}}, ("mha", 32, 8, 64, 64)),
        ("Qwen3ASRForConditionalGeneration", {"thinker_config": {**PLAIN}}, ("mha", 32, 8, 128, 128)),
        ("InternVLChatModel", {"llm_config": PLAIN, "vision_config": {}}, ("mha", 32, 8, 128, 128)),
        ("MultiModalityCausalLM", {"language_config": PLAIN}, ("mha", 32, 8, 128, 128)),
        ("LlavaForConditionalGeneration", {"text_config": PLAIN}, ("mha", 32, 8, 128, 128)),
        # not the transformers form of Llava: a text_config there says nothing
        ("LlavaQwenForCausalLM", {**PLAIN, "text_config": {"num_hidden_layers": 99}}, ("mha", 32, 8, 128, 128)),
        ("PixtralForConditionalGeneration", {"text_config": {**PLAIN, "head_dim": 160}}, ("mha", 32, 8, 160, 160)),
        (
            "DeepseekOCRForCausalLM",
            {
                "language_config": {
                    "num_hidden_layers": 12, "num_attention_heads": 10, "hidden_size": 1280, "v_head_dim": 0, "use_mla": False,
                },
            },
            ("mha", 12, 10, 128, 128),
        ),
        ("Gemma3nForCausalLM", {**PLAIN, "num_hidden_layers": 35, "num_kv_shared_layers": 15}, ("mha", 35, 8, 128, 128)),
        ("Cohere2ForCausalLM", {**PLAIN, "sliding_window": 4096, "layer_types": ["sliding_attention"] * 32}, ("mha", 32, 8, 128, 128)),
        ("Olmo2ForCausalLM", {**PLAIN, "sliding_window": 4096}, ("mha", 32, 8, 128, 128)),
        ("Llama4ForCausalLM", {**PLAIN, "attention_chunk_size": 8192}, ("mha", 32, 8, 128, 128)),
        ("HunYuanMoEV1ForCausalLM", {**PLAIN, "use_cla": True, "cla_share_factor": 2}, ("mha", 32, 8, 128, 128)),
    ],
)
def test_heads(name: str, config: dict[str, Any], expected: tuple[object, ...]) -> None:
    found = read_geometry({**config, "architectures": [name]})
    assert (found.family, found.layers, found.kv_heads, found.head_dim, found.v_head_dim) == expected


@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        ("DeepseekV2ForCausalLM", {**PLAIN, **MLA}, (32, 512, 64)),
        ("MiniCPM3ForCausalLM", {**PLAIN, **MLA, "kv_lora_rank": 256, "qk_rope_head_dim": 32}, (32, 256, 32)),
        ("KimiVLForConditionalGeneration", {"text_config": {**PLAIN, **MLA}}, (32, 512, 64)),
        ("Glm4MoeLiteForCausalLM", {**PLAIN, **MLA}, (32, 512, 64)),
        ("SarvamMLAForCausalLM", {**PLAIN, **MLA}, (32, 512, 64)),
        ("MistralLarge3ForCausalLM", {**PLAIN, **MLA}, (32, 512, 64)),
        ("PixtralForConditionalGeneration", {"text_config": {**PLAIN, **MLA}}, (32, 512, 64)),
        ("DeepseekVL2ForCausalLM", {"language_config": {**PLAIN, **MLA}}, (32, 512, 64)),
        # each layer has two attentions with a cache of their own
        ("LongcatFlashForCausalLM", {"num_layers": 28, "num_attention_heads": 64, "hidden_size": 6144, **MLA}, (56, 512, 64)),
    ],
)
def test_latent_vectors(name: str, config: dict[str, Any], expected: tuple[int, int, int]) -> None:
    found = read_geometry({**config, "architectures": [name]})
    assert found.family == "mla"
    assert (found.layers, found.latent_dim, found.rope_dim) == expected


@pytest.mark.parametrize(
    ("name", "config", "multimodal"),
    [
        ("LlamaForCausalLM", PLAIN, False),
        ("LlavaQwenForCausalLM", PLAIN, True),
        ("Phi4MMForCausalLM", PLAIN, True),
        ("Qwen2VLForConditionalGeneration", {**PLAIN, "vision_config": {}}, True),
        ("InternVLChatModel", {"llm_config": PLAIN}, True),
        ("Gemma3ForConditionalGeneration", {"text_config": PLAIN, "vision_config": {}}, False),
        ("Step3VLForConditionalGeneration", {"text_config": PLAIN, "vision_config": {}}, False),
        ("GlmAsrForConditionalGeneration", {"text_config": PLAIN, "audio_config": {}}, True),
    ],
)
def test_what_is_served_as_multimodal(name: str, config: dict[str, Any], multimodal: bool) -> None:
    assert read_geometry({**config, "architectures": [name]}).multimodal is multimodal


@pytest.mark.parametrize(
    ("name", "config", "word"),
    [
        ("DeciLMForCausalLM", {**PLAIN, "model_type": "nemotron-nas"}, r"block_configs with n_heads_in_group \[\]"),
        (
            "DeciLMForCausalLM",
            {
                **PLAIN, "model_type": "nemotron-nas",
                "block_configs": [{"attention": {"n_heads_in_group": 8}}, {"attention": {"n_heads_in_group": 4}}],
            },
            r"n_heads_in_group \['4', '8'\]",
        ),
        ("SarvamMLAForCausalLM", {**PLAIN, **MLA, "index_topk": 2048}, "index_topk in a configuration of SarvamMLAForCausalLM"),
        ("LlamaForCausalLM", {**PLAIN, "is_hybrid_swa": True}, "is_hybrid_swa"),
        ("LlavaForConditionalGeneration", {"text_config": {"hidden_size": 4096}}, "num_hidden_layers of the model; found None"),
    ],
)
def test_what_is_refused_all_the_same(name: str, config: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        read_geometry({**config, "architectures": [name]})
