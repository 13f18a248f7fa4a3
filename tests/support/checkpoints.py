# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints of public models as far as their headers go: real names, shapes and types, holes in place of the data.

No file is fetched: the layouts are facts about the published checkpoints, and the tests check their totals against the
published sizes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Optional

ELEMENT_BYTES = {"F32": 4, "I32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1}
INDEX = "model.safetensors.index.json"

Shapes = dict[str, tuple[str, tuple[int, ...]]]


def nbytes(dtype: str, shape: Iterable[int]) -> int:
    return ELEMENT_BYTES[dtype] * prod(shape)


def write_file(path: Path, tensors: Shapes, short: int = 0) -> None:
    """One safetensors file whose data is a hole, ``short`` bytes less than its header promises."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        start, end = end, end + nbytes(dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + end - short)


def write_checkpoint(directory: Path, tensors: Shapes, shards: int = 1, config: Optional[Mapping[str, Any]] = None) -> Path:
    """A directory with the tensors dealt out to shards in order, an index where there is more than one, and config.json."""
    directory.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    per_shard = -(-len(names) // shards)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        part = names[number * per_shard : (number + 1) * per_shard]
        name = f"model-{number + 1:05d}-of-{shards:05d}.safetensors" if shards > 1 else "model.safetensors"
        write_file(directory / name, {key: tensors[key] for key in part})
        weight_map.update(dict.fromkeys(part, name))
    if shards > 1:
        (directory / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}), encoding="utf-8")
    if config is not None:
        (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


class Sheet:
    """Collects tensors by the kind of module they belong to."""

    def __init__(self, dtype: str = "BF16") -> None:
        self.dtype = dtype
        self.tensors: Shapes = {}

    def put(self, name: str, *shape: int, dtype: Optional[str] = None) -> None:
        self.tensors[name] = (dtype or self.dtype, shape)

    def linear(self, name: str, out: int, width: int, style: str = "plain") -> None:
        """One linear layer in a quantisation's own set of tensors."""
        if style == "plain":
            self.put(f"{name}.weight", out, width)
        elif style == "fp8-block":
            self.put(f"{name}.weight", out, width, dtype="F8_E4M3")
            self.put(f"{name}.weight_scale_inv", -(-out // 128), -(-width // 128), dtype="F32")
        elif style == "fp8-block-bf16-scale":
            self.put(f"{name}.weight", out, width, dtype="F8_E4M3")
            self.put(f"{name}.weight_scale_inv", -(-out // 128), -(-width // 128), dtype="BF16")
        elif style == "int4-g32":
            self.put(f"{name}.weight_packed", out, width // 8, dtype="I32")
            self.put(f"{name}.weight_scale", out, width // 32)
            self.put(f"{name}.weight_shape", 2, dtype="I32")
        elif style == "nvfp4":
            self.put(f"{name}.weight", out, width // 2, dtype="U8")
            self.put(f"{name}.weight_scale", out, width // 16, dtype="F8_E4M3")
            self.put(f"{name}.weight_scale_2", dtype="F32")
            self.put(f"{name}.input_scale", dtype="F32")
        else:
            raise ValueError(style)

    def mlp(self, name: str, hidden: int, width: int, style: str = "plain") -> None:
        self.linear(f"{name}.gate_proj", width, hidden, style)
        self.linear(f"{name}.up_proj", width, hidden, style)
        self.linear(f"{name}.down_proj", hidden, width, style)


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    found = config.get("text_config", config)
    assert isinstance(found, Mapping)
    return found


def dense(config: Mapping[str, Any], *, biases: bool = False, head_norms: bool = False, stored_head: bool = True) -> Shapes:
    """Llama, Mistral, Qwen2 (``biases``) and Qwen3 (``head_norms``); ``stored_head`` also of a tied model."""
    sheet = Sheet()
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    width = config.get("head_dim") or hidden // heads
    query, keys = heads * width, config["num_key_value_heads"] * width
    sheet.put("model.embed_tokens.weight", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}"
        for name, out in (("q", query), ("k", keys), ("v", keys)):
            sheet.linear(f"{start}.self_attn.{name}_proj", out, hidden)
            if biases:
                sheet.put(f"{start}.self_attn.{name}_proj.bias", out)
        sheet.linear(f"{start}.self_attn.o_proj", hidden, query)
        if head_norms:
            sheet.put(f"{start}.self_attn.q_norm.weight", width)
            sheet.put(f"{start}.self_attn.k_norm.weight", width)
        sheet.mlp(f"{start}.mlp", hidden, config["intermediate_size"])
        sheet.put(f"{start}.input_layernorm.weight", hidden)
        sheet.put(f"{start}.post_attention_layernorm.weight", hidden)
    sheet.put("model.norm.weight", hidden)
    if stored_head:
        sheet.put("lm_head.weight", config["vocab_size"], hidden)
    return sheet.tensors


def qwen3_moe(config: Mapping[str, Any], style: str = "plain") -> Shapes:
    sheet = Sheet()
    hidden, width = config["hidden_size"], config["head_dim"]
    query, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    sheet.put("model.embed_tokens.weight", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}"
        for name, out in (("q", query), ("k", keys), ("v", keys)):
            sheet.linear(f"{start}.self_attn.{name}_proj", out, hidden, style)
        sheet.linear(f"{start}.self_attn.o_proj", hidden, query, style)
        sheet.put(f"{start}.self_attn.q_norm.weight", width)
        sheet.put(f"{start}.self_attn.k_norm.weight", width)
        sheet.put(f"{start}.mlp.gate.weight", config["num_experts"], hidden)
        for expert in range(config["num_experts"]):
            sheet.mlp(f"{start}.mlp.experts.{expert}", hidden, config["moe_intermediate_size"], style)
        sheet.put(f"{start}.input_layernorm.weight", hidden)
        sheet.put(f"{start}.post_attention_layernorm.weight", hidden)
    sheet.put("model.norm.weight", hidden)
    sheet.put("lm_head.weight", config["vocab_size"], hidden)
    return sheet.tensors


def deepseek(
    config: Mapping[str, Any],
    *,
    attention: str = "plain",
    dense_layers: str = "plain",
    experts: str = "plain",
    shared: str = "plain",
    next_token: str = "plain",
    prefix: str = "",
) -> Shapes:
    """DeepSeek V3, Kimi K2, GLM-5 and GLM-4.7-Flash: latent attention, routed experts, next-token layers behind the last."""
    text = _text(config)
    sheet = Sheet()
    hidden, layers = text["hidden_size"], text["num_hidden_layers"]
    sheet.put(f"{prefix}model.embed_tokens.weight", text["vocab_size"], hidden)
    for layer in range(layers + (text.get("num_nextn_predict_layers") or 0)):
        start = f"{prefix}model.layers.{layer}"
        is_next = layer >= layers
        _latent_attention(sheet, f"{start}.self_attn", text, next_token if is_next else attention)
        if layer < text["first_k_dense_replace"]:
            sheet.mlp(f"{start}.mlp", hidden, text["intermediate_size"], dense_layers)
        else:
            sheet.put(f"{start}.mlp.gate.weight", text["n_routed_experts"], hidden)
            sheet.put(f"{start}.mlp.gate.e_score_correction_bias", text["n_routed_experts"], dtype="F32")
            width = text["moe_intermediate_size"]
            for expert in range(text["n_routed_experts"]):
                sheet.mlp(f"{start}.mlp.experts.{expert}", hidden, width, next_token if is_next else experts)
            sheet.mlp(f"{start}.mlp.shared_experts", hidden, width * text["n_shared_experts"], next_token if is_next else shared)
        sheet.put(f"{start}.input_layernorm.weight", hidden)
        sheet.put(f"{start}.post_attention_layernorm.weight", hidden)
        if is_next:
            _next_token(sheet, start, text)
    sheet.put(f"{prefix}model.norm.weight", hidden)
    sheet.put(f"{prefix}lm_head.weight", text["vocab_size"], hidden)
    return sheet.tensors


def _latent_attention(sheet: Sheet, start: str, text: Mapping[str, Any], style: str) -> None:
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    nope, rope, value = text["qk_nope_head_dim"], text["qk_rope_head_dim"], text["v_head_dim"]
    latent, query = text["kv_lora_rank"], text["q_lora_rank"]
    sheet.linear(f"{start}.q_a_proj", query, hidden, style)
    sheet.put(f"{start}.q_a_layernorm.weight", query)
    sheet.linear(f"{start}.q_b_proj", heads * (nope + rope), query, style)
    sheet.linear(f"{start}.kv_a_proj_with_mqa", latent + rope, hidden, style)
    sheet.put(f"{start}.kv_a_layernorm.weight", latent)
    sheet.linear(f"{start}.kv_b_proj", heads * (nope + value), latent, style)
    sheet.linear(f"{start}.o_proj", hidden, heads * value, style)
    if text.get("index_topk"):
        index_heads, width = text["index_n_heads"], text["index_head_dim"]
        sheet.linear(f"{start}.indexer.wq_b", index_heads * width, query, style)
        sheet.linear(f"{start}.indexer.wk", width, hidden, style)
        sheet.put(f"{start}.indexer.k_norm.weight", width)
        sheet.put(f"{start}.indexer.k_norm.bias", width)
        sheet.put(f"{start}.indexer.weights_proj.weight", index_heads, hidden)


def _next_token(sheet: Sheet, start: str, text: Mapping[str, Any]) -> None:
    """A next-token layer brings copies of the embedding and of the head."""
    hidden = text["hidden_size"]
    sheet.put(f"{start}.embed_tokens.weight", text["vocab_size"], hidden)
    sheet.put(f"{start}.enorm.weight", hidden)
    sheet.put(f"{start}.hnorm.weight", hidden)
    sheet.put(f"{start}.eh_proj.weight", hidden, 2 * hidden)
    sheet.put(f"{start}.shared_head.norm.weight", hidden)
    sheet.put(f"{start}.shared_head.head.weight", text["vocab_size"], hidden)


def kimi_vision(text_hidden: int = 7168) -> Shapes:
    """MoonViT (27 layers of 1152) and its projector, as Kimi K2.5 and K2.6 store them."""
    sheet = Sheet()
    hidden, width = 1152, 4304
    for layer in range(27):
        start = f"vision_tower.encoder.blocks.{layer}"
        for name, out, inner in (
            ("wqkv", 3 * hidden, hidden),
            ("wo", hidden, hidden),
            ("mlp.fc0", width, hidden),
            ("mlp.fc1", hidden, width),
        ):
            sheet.put(f"{start}.{name}.weight", out, inner)
            sheet.put(f"{start}.{name}.bias", out)
        for norm in ("norm0", "norm1"):
            sheet.put(f"{start}.{norm}.weight", hidden)
            sheet.put(f"{start}.{norm}.bias", hidden)
    sheet.put("vision_tower.encoder.final_layernorm.weight", hidden)
    sheet.put("vision_tower.encoder.final_layernorm.bias", hidden)
    sheet.put("vision_tower.patch_embed.proj.weight", hidden, 3, 14, 14)
    sheet.put("vision_tower.patch_embed.proj.bias", hidden)
    sheet.put("vision_tower.patch_embed.pos_emb.weight", 64, 64, hidden)
    sheet.put("mm_projector.pre_norm.weight", hidden)
    sheet.put("mm_projector.pre_norm.bias", hidden)
    for name, out in (("proj.0", 4 * hidden), ("proj.2", text_hidden)):
        sheet.put(f"mm_projector.{name}.weight", out, 4 * hidden)
        sheet.put(f"mm_projector.{name}.bias", out)
    return sheet.tensors


def kimi(config: Mapping[str, Any]) -> Shapes:
    """Kimi K2.5 and K2.6: INT4 experts in groups of 32, everything else in bf16."""
    return deepseek(config, experts="int4-g32", prefix="language_model.") | kimi_vision()


def dflash(config: Mapping[str, Any]) -> Shapes:
    """A DFLASH draft: layers without embedding and head, and the fusion of the tapped layers."""
    hidden = config["hidden_size"]
    layers = dense({**config, "vocab_size": 1}, stored_head=False, head_norms=True)
    found = {name.removeprefix("model."): entry for name, entry in layers.items() if "embed_tokens" not in name}
    taps = len(config["dflash_config"]["target_layer_ids"])
    return {"fc.weight": ("BF16", (hidden, taps * hidden)), "hidden_norm.weight": ("BF16", (hidden,)), **found}


def gpt_oss(config: Mapping[str, Any]) -> Shapes:
    """Experts in MXFP4, stacked: blocks of 32 values in 16 bytes with a scale of one byte."""
    sheet = Sheet()
    hidden, width, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    head_dim = config["head_dim"]
    query, keys = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    sheet.put("model.embed_tokens.weight", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}"
        for name, out, inner in (("q", query, hidden), ("k", keys, hidden), ("v", keys, hidden), ("o", hidden, query)):
            sheet.put(f"{start}.self_attn.{name}_proj.weight", out, inner)
            sheet.put(f"{start}.self_attn.{name}_proj.bias", out)
        sheet.put(f"{start}.self_attn.sinks", config["num_attention_heads"])
        sheet.put(f"{start}.mlp.router.weight", experts, hidden)
        sheet.put(f"{start}.mlp.router.bias", experts)
        for name, out, inner in (("gate_up_proj", 2 * width, hidden), ("down_proj", hidden, width)):
            sheet.put(f"{start}.mlp.experts.{name}_blocks", experts, out, inner // 32, 16, dtype="U8")
            sheet.put(f"{start}.mlp.experts.{name}_scales", experts, out, inner // 32, dtype="U8")
            sheet.put(f"{start}.mlp.experts.{name}_bias", experts, out)
        sheet.put(f"{start}.input_layernorm.weight", hidden)
        sheet.put(f"{start}.post_attention_layernorm.weight", hidden)
    sheet.put("model.norm.weight", hidden)
    sheet.put("lm_head.weight", config["vocab_size"], hidden)
    return sheet.tensors


def qwen3_5(config: Mapping[str, Any], style: str = "fp8-block-bf16-scale") -> Shapes:
    """Qwen3.5 without experts: three gated delta nets and one gated attention in four layers, a vision tower, one next-token layer."""
    text = config["text_config"]
    sheet = Sheet()
    hidden = text["hidden_size"]
    keys = text["linear_num_key_heads"] * text["linear_key_head_dim"]
    values = text["linear_num_value_heads"] * text["linear_value_head_dim"]
    for layer in range(text["num_hidden_layers"]):
        start = f"model.language_model.layers.{layer}"
        if (layer + 1) % 4:
            sheet.linear(f"{start}.linear_attn.in_proj_qkv", 2 * keys + values, hidden, style)
            sheet.linear(f"{start}.linear_attn.in_proj_z", values, hidden, style)
            for name in ("a", "b"):
                sheet.put(f"{start}.linear_attn.in_proj_{name}.weight", text["linear_num_value_heads"], hidden)
            sheet.put(f"{start}.linear_attn.conv1d.weight", 2 * keys + values, 1, 4)
            sheet.put(f"{start}.linear_attn.A_log", text["linear_num_value_heads"], dtype="F32")
            sheet.put(f"{start}.linear_attn.dt_bias", text["linear_num_value_heads"])
            sheet.put(f"{start}.linear_attn.norm.weight", text["linear_value_head_dim"], dtype="F32")
            sheet.linear(f"{start}.linear_attn.out_proj", hidden, values, style)
        else:
            _gated_attention(sheet, f"{start}.self_attn", text, style)
        sheet.mlp(f"{start}.mlp", hidden, text["intermediate_size"], style)
        sheet.put(f"{start}.input_layernorm.weight", hidden)
        sheet.put(f"{start}.post_attention_layernorm.weight", hidden)
    sheet.put("model.language_model.embed_tokens.weight", text["vocab_size"], hidden)
    sheet.put("model.language_model.norm.weight", hidden)
    sheet.put("lm_head.weight", text["vocab_size"], hidden)
    sheet.put("mtp.fc.weight", hidden, 2 * hidden)
    _gated_attention(sheet, "mtp.layers.0.self_attn", text, style)
    sheet.mlp("mtp.layers.0.mlp", hidden, text["intermediate_size"], style)
    return sheet.tensors | _qwen_vision(hidden)


def _gated_attention(sheet: Sheet, start: str, text: Mapping[str, Any], style: str) -> None:
    hidden, width = text["hidden_size"], text["head_dim"]
    query, keys = text["num_attention_heads"] * width, text["num_key_value_heads"] * width
    sheet.linear(f"{start}.q_proj", 2 * query, hidden, style)
    sheet.linear(f"{start}.k_proj", keys, hidden, style)
    sheet.linear(f"{start}.v_proj", keys, hidden, style)
    sheet.linear(f"{start}.o_proj", hidden, query, style)
    sheet.put(f"{start}.q_norm.weight", width)
    sheet.put(f"{start}.k_norm.weight", width)


def _qwen_vision(text_hidden: int) -> Shapes:
    """27 layers of 1152 and the merger of 2 x 2 patches."""
    sheet = Sheet()
    hidden, width = 1152, 4304
    for layer in range(27):
        start = f"model.visual.blocks.{layer}"
        names = (("attn.qkv", 3 * hidden, hidden), ("attn.proj", hidden, hidden), ("mlp.linear_fc1", width, hidden))
        for name, out, inner in (*names, ("mlp.linear_fc2", hidden, width)):
            sheet.put(f"{start}.{name}.weight", out, inner)
            sheet.put(f"{start}.{name}.bias", out)
        for norm in ("norm1", "norm2"):
            sheet.put(f"{start}.{norm}.weight", hidden)
            sheet.put(f"{start}.{norm}.bias", hidden)
    sheet.put("model.visual.patch_embed.proj.weight", hidden, 3, 2, 16, 16)
    sheet.put("model.visual.pos_embed.weight", 2304, hidden)
    sheet.put("model.visual.merger.linear_fc1.weight", 4 * hidden, 4 * hidden)
    sheet.put("model.visual.merger.linear_fc2.weight", text_hidden, 4 * hidden)
    return sheet.tensors


def granite_hybrid(config: Mapping[str, Any]) -> Shapes:
    """Granite 4 without routed experts: Mamba-2 layers, a few of attention, one shared feed-forward in each."""
    sheet = Sheet()
    hidden, width = config["hidden_size"], config["shared_intermediate_size"]
    inner = config["mamba_expand"] * hidden
    states = config["mamba_n_groups"] * config["mamba_d_state"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    sheet.put("model.embed_tokens.weight", config["vocab_size"], hidden)
    for layer, kind in enumerate(config["layer_types"]):
        start = f"model.layers.{layer}"
        if kind == "mamba":
            sheet.put(f"{start}.mamba.in_proj.weight", 2 * inner + 2 * states + config["mamba_n_heads"], hidden)
            sheet.put(f"{start}.mamba.conv1d.weight", inner + 2 * states, 1, 4)
            sheet.put(f"{start}.mamba.conv1d.bias", inner + 2 * states)
            for name in ("A_log", "D", "dt_bias"):
                sheet.put(f"{start}.mamba.{name}", config["mamba_n_heads"])
            sheet.put(f"{start}.mamba.norm.weight", inner)
            sheet.put(f"{start}.mamba.out_proj.weight", hidden, inner)
        else:
            for name, out in (("q", hidden), ("k", keys), ("v", keys), ("o", hidden)):
                sheet.put(f"{start}.self_attn.{name}_proj.weight", out, hidden)
        sheet.put(f"{start}.shared_mlp.input_linear.weight", 2 * width, hidden)
        sheet.put(f"{start}.shared_mlp.output_linear.weight", hidden, width)
        sheet.put(f"{start}.input_layernorm.weight", hidden)
        sheet.put(f"{start}.post_attention_layernorm.weight", hidden)
    sheet.put("model.norm.weight", hidden)
    return sheet.tensors


def _dense_config(architecture: str, sizes: str, **more: Any) -> dict[str, Any]:
    keys = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")
    return {"architectures": [architecture], **dict(zip(keys, map(int, sizes.split()))), **more}


_DEEPSEEK_V3 = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "first_k_dense_replace": 3, "num_nextn_predict_layers": 1, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
    "max_position_embeddings": 163840, "tie_word_embeddings": False,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
}  # fmt: skip
_KIMI_K2 = {
    **_DEEPSEEK_V3,
    "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 0, "vocab_size": 163840, "max_position_embeddings": 262144,
    "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096},
    "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized"},
}  # fmt: skip

# Configurations of public models, cut to what decides their weights
CONFIGS: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": _dense_config("LlamaForCausalLM", "4096 32 32 8 14336 128256", max_position_embeddings=131072),
    "qwq-32b": _dense_config("Qwen2ForCausalLM", "5120 64 40 8 27648 152064", max_position_embeddings=131072),
    "qwen2.5-0.5b": _dense_config(
        "Qwen2ForCausalLM", "896 24 14 2 4864 151936", max_position_embeddings=32768, tie_word_embeddings=True
    ),
    "qwen3-0.6b": _dense_config(
        "Qwen3ForCausalLM", "1024 28 16 8 3072 151936", head_dim=128, max_position_embeddings=40960, tie_word_embeddings=True
    ),
    "qwen3-32b": _dense_config("Qwen3ForCausalLM", "5120 64 64 8 25600 151936", head_dim=128, max_position_embeddings=40960),
    "qwen3-235b": {
        **_dense_config("Qwen3MoeForCausalLM", "4096 94 64 4 12288 151936", head_dim=128, max_position_embeddings=40960),
        "num_experts": 128,
        "moe_intermediate_size": 1536,
    },
    "deepseek-v3": {**_DEEPSEEK_V3, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
    "deepseek-r1-bf16": _DEEPSEEK_V3,
    "kimi-k2.6": {"architectures": ["KimiK25ForConditionalGeneration"], "text_config": _KIMI_K2, "vision_config": {}},
    "kimi-k2.6-dflash": {
        **_dense_config("DFlashDraftModel", "7168 6 64 8 18432 163840", head_dim=128),
        "dflash_config": {"target_layer_ids": [1, 12, 24, 35, 47, 58]},
    },
    "glm-5-nvfp4": {
        **_DEEPSEEK_V3,
        "architectures": ["GlmMoeDsaForCausalLM"],
        "hidden_size": 6144, "num_hidden_layers": 78, "num_attention_heads": 64, "num_key_value_heads": 64,
        "intermediate_size": 12288, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256, "vocab_size": 154880,
        "index_topk": 2048, "index_n_heads": 32, "index_head_dim": 128, "max_position_embeddings": 202752, "rope_scaling": None,
        "quantization_config": {"quant_algo": "NVFP4"},
    },
    "glm-4.7-flash": {
        **_DEEPSEEK_V3,
        "architectures": ["Glm4MoeLiteForCausalLM"],
        "hidden_size": 2048, "num_hidden_layers": 47, "num_attention_heads": 20, "num_key_value_heads": 20,
        "intermediate_size": 10240, "moe_intermediate_size": 1536, "n_routed_experts": 64, "first_k_dense_replace": 1,
        "q_lora_rank": 768, "qk_nope_head_dim": 192, "v_head_dim": 256, "vocab_size": 154880,
        "max_position_embeddings": 202752, "rope_scaling": None,
    },
    "gpt-oss-120b": {
        "architectures": ["GptOssForCausalLM"],
        "hidden_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 2880, "num_local_experts": 128, "vocab_size": 201088, "max_position_embeddings": 131072,
        "tie_word_embeddings": False, "quantization_config": {"quant_method": "mxfp4"},
        "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096},
    },
    "qwen3.8-27b-fp8": {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "text_config": {
            "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256,
            "intermediate_size": 17408, "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 48,
            "linear_value_head_dim": 128, "vocab_size": 248320, "max_position_embeddings": 262144,
            "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25},
        },
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "granite-4.0-h-micro": {
        **_dense_config("GraniteMoeHybridForCausalLM", "2048 40 32 8 8192 100352", max_position_embeddings=131072),
        "shared_intermediate_size": 8192, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_n_heads": 64,
        "tie_word_embeddings": True, "position_embedding_type": "nope",
        "layer_types": ["attention" if layer in (5, 15, 25, 35) else "mamba" for layer in range(40)],
    },
}  # fmt: skip


def public_model(name: str) -> Shapes:
    """The tensors of one of CONFIGS."""
    config = CONFIGS[name]
    if name == "deepseek-v3":
        return deepseek(
            config, attention="fp8-block", dense_layers="fp8-block", experts="fp8-block", shared="fp8-block", next_token="fp8-block"
        )
    if name == "glm-5-nvfp4":
        return deepseek(config, dense_layers="nvfp4", experts="nvfp4", shared="nvfp4")
    builders = {
        "LlamaForCausalLM": dense,
        "Qwen2ForCausalLM": lambda found: dense(found, biases=True, stored_head=not found.get("tie_word_embeddings")),
        "Qwen3ForCausalLM": lambda found: dense(found, head_norms=True),
        "Qwen3MoeForCausalLM": qwen3_moe,
        "DeepseekV3ForCausalLM": deepseek,
        "Glm4MoeLiteForCausalLM": deepseek,
        "KimiK25ForConditionalGeneration": kimi,
        "DFlashDraftModel": dflash,
        "GptOssForCausalLM": gpt_oss,
        "Qwen3_5ForConditionalGeneration": qwen3_5,
        "GraniteMoeHybridForCausalLM": granite_hybrid,
    }
    return builders[config["architectures"][0]](config)
