# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model's config.json says about its KV cache. Private to this collection: may change at any time.

SGLang picks the attention of a model by the name of its architecture, so this room does too: a name that is in no table
is refused by name and never sized as plain multi-head attention, which would be wrong by up to 25 times for an MLA model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

Config = Mapping[str, Any]
Release = tuple[int, int, int]


class InputError(ValueError):
    """Input that cannot be planned with; the text says what was asked, what was found, and what to do."""

    def __init__(self, asked: str, found: str, advice: str) -> None:
        super().__init__(f"asked for {asked}; found {found}; {advice}")


@dataclass(frozen=True)
class Draft:
    """What a block-diffusion draft says about the target it was trained for."""

    block_size: int
    num_target_layers: Optional[int]
    target_layer_ids: tuple[int, ...]


@dataclass(frozen=True)
class Geometry:
    """Attention geometry of one model, whole (not per rank). Head and layer fields are counts, dims are elements."""

    family: str
    architecture: str
    layers: int
    query_heads: int
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    latent_dim: int = 0
    rope_dim: int = 0
    index_head_dim: int = 0
    swa_layers: int = 0
    nextn_layers: int = 0
    hidden_size: Optional[int] = None
    # width of the states a draft takes from its target, where that is not its own
    target_hidden_size: Optional[int] = None
    vocab_size: Optional[int] = None
    max_position: Optional[int] = None
    multimodal: bool = False
    fp8_kv_checkpoint: bool = False
    since: Release = (0, 4, 6)
    draft: Optional[Draft] = None

    @property
    def draft_layers(self) -> int:
        """KV layers when this model serves as a draft: the next-token layers of an MTP checkpoint, else all."""
        return self.nextn_layers or self.layers


def read_geometry(config: Config, what: str = "the model") -> Geometry:
    """Geometry of a config.json given as a mapping; raises InputError for an architecture without a known closed form."""
    if not isinstance(config, Mapping):
        raise InputError(f"the configuration of {what}", f"{type(config).__name__}", "give the content of its config.json")
    name = _architecture_name(config, what)
    row = _ARCHITECTURES.get(name)
    if row is None:
        raise _refusal(name, what)
    text = _text_config(config)
    reader = _READERS[row.family]
    return Geometry(
        family=row.family,
        architecture=name,
        layers=_positive(text, "num_hidden_layers", what),
        query_heads=_positive(text, "num_attention_heads", what),
        nextn_layers=_optional(text, "num_nextn_predict_layers") or 0,
        hidden_size=_optional(text, "hidden_size"),
        target_hidden_size=_optional(text, "target_hidden_size"),
        vocab_size=_optional(text, "vocab_size"),
        max_position=_max_position(text),
        multimodal="vision_config" in config or "audio_config" in config,
        fp8_kv_checkpoint=_fp8_kv(config) or _fp8_kv(text),
        since=row.since,
        draft=_draft(text, what) if row.is_draft else None,
        **reader(text, what),
    )


def check_draft(target: Geometry, draft: Geometry) -> None:
    """Raises InputError where a draft's own figures show that it was made for another target."""
    facts = draft.draft
    pairs = [("vocab_size", draft.vocab_size, target.vocab_size)]
    if facts:
        pairs += [
            ("num_target_layers", facts.num_target_layers, target.layers),
            ("hidden_size", draft.hidden_size, target.hidden_size),
        ]
    elif "Eagle" in draft.architecture:
        pairs.append(("hidden_size", draft.target_hidden_size or draft.hidden_size, target.hidden_size))
    for key, of_draft, of_target in pairs:
        if of_draft is not None and of_target is not None and of_draft != of_target:
            raise InputError(
                f"the draft {draft.architecture} beside the target {target.architecture}",
                f"{key} {of_draft} in the draft where the target has {of_target}",
                "this draft was made for another model; give the draft that belongs to this target",
            )
    beyond = [layer for layer in (facts.target_layer_ids if facts else ()) if layer >= target.layers]
    if beyond:
        raise InputError(
            f"the draft {draft.architecture} beside the target {target.architecture}",
            f"target_layer_ids {beyond} in the draft, but the target has the layers 0 to {target.layers - 1}",
            "this draft was made for another model; give the draft that belongs to this target",
        )


@dataclass(frozen=True)
class _Row:
    family: str
    since: Release = (0, 4, 6)
    is_draft: bool = False


# SGLang takes no window from these classes: they are sized as full attention even where layer_types names one.
_MHA = (
    "ArceeForCausalLM", "BaichuanForCausalLM", "CohereForCausalLM", "Ernie4_5_ForCausalLM", "Ernie4_5_MoeForCausalLM",
    "ExaoneForCausalLM", "GemmaForCausalLM", "Glm4ForCausalLM", "Glm4MoeForCausalLM", "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration", "GraniteForCausalLM", "GraniteMoeForCausalLM", "InternLM2ForCausalLM",
    "InternLM3ForCausalLM", "LlamaForCausalLM", "MiMoForCausalLM", "MiniCPMForCausalLM",
    "Mistral3ForConditionalGeneration", "MistralForCausalLM", "MixtralForCausalLM", "OlmoForCausalLM",
    "OlmoeForCausalLM", "OrionForCausalLM", "Phi3ForCausalLM", "Qwen2ForCausalLM", "Qwen2MoeForCausalLM",
    "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM",
    "Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration", "SolarForCausalLM", "StableLmForCausalLM",
    "Starcoder2ForCausalLM",
)
_MHA_DRAFTS = (
    "LlamaForCausalLMEagle", "LlamaForCausalLMEagle3", "MistralForCausalLMEagle", "Qwen2ForCausalLMEagle",
)
_MLA = (
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV3ForCausalLMNextN", "KimiVLForConditionalGeneration",
    "MiniCPM3ForCausalLM",
)

_ARCHITECTURES: dict[str, _Row] = {
    **{name: _Row("mha") for name in (*_MHA, *_MHA_DRAFTS)},
    **{name: _Row("mla") for name in _MLA},
    "Glm4MoeLiteForCausalLM": _Row("mla", (0, 5, 9)),
    "KimiK25ForConditionalGeneration": _Row("mla", (0, 5, 9)),
    "Eagle3DeepseekV2ForCausalLM": _Row("mla", (0, 5, 11)),
    "DeepseekV32ForCausalLM": _Row("dsa", (0, 5, 3)),
    "GlmMoeDsaForCausalLM": _Row("dsa", (0, 5, 9)),
    "GptOssForCausalLM": _Row("swa", (0, 5, 1)),
    "DFlashDraftModel": _Row("mha", (0, 5, 11), is_draft=True),
}

# Beginnings of architecture names that have no closed form here, with what stands in its way.
_UNSIZED = {
    "Afmoe": "hybrid sliding-window attention",
    "BailingMoe": "hybrid linear attention",
    "Cohere2": "hybrid sliding-window attention",
    "DeciLM": "KV heads that differ from layer to layer",
    "DeepseekV4": "the compressed attention of DeepSeek-V4",
    "Exaone4": "hybrid sliding-window attention",
    "Falcon": "Mamba states beside the KV cache",
    "Gemma2": "hybrid sliding-window attention",
    "Gemma3": "hybrid sliding-window attention",
    "Gemma4": "hybrid sliding-window attention",
    "Glm5": "hybrid linear attention",
    "GraniteMoeHybrid": "Mamba states beside the KV cache",
    "Jet": "hybrid linear attention",
    "KimiK3": "hybrid linear attention",
    "KimiLinear": "hybrid linear attention",
    "Lfm2": "convolution states beside the KV cache",
    "Llama4": "hybrid chunked attention",
    "LongcatFlash": "two attentions in one layer",
    "MiMoV2": "hybrid sliding-window attention",
    "MiniMax": "the attention of MiniMax",
    "NemotronH": "Mamba states beside the KV cache",
    "Olmo2": "hybrid sliding-window attention",
    "Qwen3Next": "linear-attention states beside the KV cache",
    "Qwen3_5": "linear-attention states beside the KV cache",
    "Step3p5": "hybrid sliding-window attention",
}


def _refusal(name: str, what: str) -> InputError:
    reason = next((text for start, text in _UNSIZED.items() if name.startswith(start)), "an attention that is not in the table")
    return InputError(
        f"the KV bytes per token of {what}",
        f"the architecture {name}: {reason}, for which this collection has no proven closed form",
        "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
    )


def _architecture_name(config: Config, what: str) -> str:
    names = config.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    raise InputError(
        f"the architecture of {what}",
        f"architectures {names!r} and model_type {config.get('model_type')!r} in its config.json",
        "give the config.json of a complete checkpoint: SGLang chooses the attention by that name",
    )


def _text_config(config: Config) -> Config:
    """The language model's part of a multimodal configuration."""
    for key in ("text_config", "llm_config", "language_config"):
        part = config.get(key)
        if isinstance(part, Mapping):
            return part
    return config


def _read_mha(text: Config, what: str) -> dict[str, Any]:
    if "kv_lora_rank" in text or "index_topk" in text:
        raise InputError(
            f"the KV bytes per token of {what}",
            "an architecture with K and V heads whose configuration also has kv_lora_rank or index_topk",
            "check that config.json belongs to this checkpoint",
        )
    heads = _positive(text, "num_attention_heads", what)
    head_dim = _optional(text, "head_dim") or _positive(text, "hidden_size", what) // heads
    return {
        "kv_heads": _optional(text, "num_key_value_heads") or heads,
        "head_dim": head_dim,
        "v_head_dim": _optional(text, "v_head_dim") or head_dim,
    }


def _read_mla(text: Config, what: str) -> dict[str, Any]:
    return {"latent_dim": _positive(text, "kv_lora_rank", what), "rope_dim": _positive(text, "qk_rope_head_dim", what)}


def _read_dsa(text: Config, what: str) -> dict[str, Any]:
    shared = [kind for kind in text.get("indexer_types") or [] if kind != "full"]
    if shared or (_optional(text, "index_topk_freq") or 1) > 1:
        raise InputError(
            f"the KV bytes per token of {what}",
            f"sparse attention whose layers share an index ({len(shared)} layers without their own), sized differently from 0.5.18 on",
            "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
        )
    return {**_read_mla(text, what), "index_head_dim": _positive(text, "index_head_dim", what)}


def _read_swa(text: Config, what: str) -> dict[str, Any]:
    kinds = text.get("layer_types") or []
    windowed = sum("sliding" in str(kind) for kind in kinds)
    layers = _positive(text, "num_hidden_layers", what)
    if len(kinds) != layers or windowed in (0, layers):
        raise InputError(
            f"the KV bytes per token of {what}",
            f"layer_types with {len(kinds)} entries, {windowed} of them sliding, for {layers} layers",
            "give the whole config.json: the split into full and sliding layers decides the pool",
        )
    return {**_read_mha(text, what), "swa_layers": windowed}


_READERS: dict[str, Callable[[Config, str], dict[str, Any]]] = {
    "mha": _read_mha,
    "mla": _read_mla,
    "dsa": _read_dsa,
    "swa": _read_swa,
}

# SGLang's own fallback where a draft's configuration names no block
_DEFAULT_BLOCK_SIZE = 16


def _draft(text: Config, what: str) -> Draft:
    inner = text.get("dflash_config")
    inner = inner if isinstance(inner, Mapping) else {}
    layers = inner.get("target_layer_ids")
    if layers is not None and not (isinstance(layers, list) and all(_is_int(layer) for layer in layers)):
        raise InputError(f"the tapped layers of {what}", f"target_layer_ids {layers!r}", "give the draft's config.json unaltered")
    return Draft(
        block_size=_optional(text, "block_size") or _optional(inner, "block_size") or _DEFAULT_BLOCK_SIZE,
        num_target_layers=_optional(text, "num_target_layers"),
        target_layer_ids=tuple(layers or ()),
    )


_LENGTH_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


def _max_position(text: Config) -> Optional[int]:
    """Longest context SGLang derives (tokens): the first length key, times a rope factor that is not yet in it."""
    length = next((value for value in (_optional(text, key) for key in _LENGTH_KEYS) if value), None)
    rope = text.get("rope_scaling")
    if length is None or not isinstance(rope, Mapping):
        return length
    if "original_max_position_embeddings" in rope or rope.get("rope_type") == "llama3":
        return length
    factor = rope.get("factor")
    return int(length * factor) if isinstance(factor, (int, float)) and not isinstance(factor, bool) else length


def _fp8_kv(config: Config) -> bool:
    """Does the checkpoint's quantisation ask for an FP8 KV cache, in the nested or in the flat form of ModelOpt?"""
    quant = config.get("quantization_config")
    if not isinstance(quant, Mapping):
        return False
    inner = quant.get("quantization")
    names = [part.get("kv_cache_quant_algo") for part in (quant, inner) if isinstance(part, Mapping)]
    if any(isinstance(name, str) and name.upper() == "FP8" for name in names):
        return True
    scheme = quant.get("kv_cache_scheme")
    if quant.get("quant_algo") is None or not isinstance(scheme, Mapping):
        return False
    return bool(scheme.get("type") == "float" and scheme.get("num_bits") == 8)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _optional(config: Config, key: str) -> Optional[int]:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _positive(config: Config, key: str, what: str) -> int:
    value = _optional(config, key)
    if value is None:
        raise InputError(f"{key} of {what}", repr(config.get(key)), "give the config.json of a complete checkpoint")
    return value
