# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model's config.json says about its KV cache. Private to this collection: may change at any time.

SGLang picks the attention of a model by the name of its architecture, so this room does too: a name that is in no table
is refused by name and never sized as plain multi-head attention, which would be wrong by up to 25 times for an MLA model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._architectures import (
    ARCHITECTURES,
    MULTIMODAL,
    TEXT_ONLY,
    UNSIZED,
)
from ansible_collections.inferops.sglang.plugins.module_utils._config import (
    MOST_LAYERS,
    Config,
    InputError,
    Release,
    head_size,
    is_int,
    optional_count,
    optional_list,
    optional_mapping,
    optional_number,
    required_count,
    shown,
)
from ansible_collections.inferops.sglang.plugins.module_utils._kv_quantisation import fp8_form
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import WINDOWED, Windows, read_windows
from ansible_collections.inferops.sglang.plugins.module_utils._states import HYBRIDS, States, hybrid_config, read_states

__all__ = ["Draft", "Geometry", "InputError", "Release", "check_draft", "draft_faults", "read_geometry"]


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
    # tokens that share one row of the sparse index
    index_pool: int = 1
    # which layers of sparse attention keep an index, by the two ways in which SGLang tells them (none named: all of them)
    index_by_frequency: tuple[bool, ...] = ()
    index_by_types: tuple[bool, ...] = ()
    # heads of the index of MiniMax's layers: none, a K, or a K and a V
    index_heads: tuple[int, ...] = ()
    # what DeepSeek-V4 compresses the tokens of each layer by (0: not at all), those of its next-token layers, and its window
    compress_ratios: tuple[int, ...] = ()
    nextn_ratios: tuple[int, ...] = ()
    window: int = 0
    windows: Optional[Windows] = None
    # what the layers without a KV cache keep for each request
    states: Optional[States] = None
    nextn_layers: int = 0
    hidden_size: Optional[int] = None
    # width of the states a draft takes from its target, where that is not its own
    target_hidden_size: Optional[int] = None
    vocab_size: Optional[int] = None
    max_position: Optional[int] = None
    multimodal: bool = False
    # form in which the checkpoint asks for an FP8 KV cache (see _kv_quantisation)
    fp8_kv_form: Optional[str] = None
    since: Release = (0, 4, 6)
    draft: Optional[Draft] = None

    @property
    def draft_layers(self) -> int:
        """KV layers when this model serves as a draft: the next-token layers of an MTP checkpoint, else all."""
        return self.nextn_layers or self.layers

    def of_stage(self, layers: range, release: Release) -> Geometry:
        """The model as one pipeline stage holds it."""
        return replace(
            self,
            layers=len(layers),
            windows=self.windows.of_stage(layers, release) if self.windows else None,
            index_by_frequency=self.index_by_frequency[layers.start : layers.stop],
            index_by_types=self.index_by_types[layers.start : layers.stop],
            index_heads=self.index_heads[layers.start : layers.stop],
            compress_ratios=self.compress_ratios[layers.start : layers.stop],
        )


def read_geometry(config: Config, what: str = "the model") -> Geometry:
    """Geometry of a config.json given as a mapping; raises InputError for an architecture without a known closed form."""
    if not isinstance(config, Mapping):
        raise InputError(f"the configuration of {what}", f"{type(config).__name__}", "give the content of its config.json")
    name = _architecture_name(config, what)
    row = ARCHITECTURES.get(name)
    if row is None:
        raise _refusal(name, what)
    text = hybrid_config(name, _text_config(config, name))
    states = read_states(name, text, what)
    family = _family(name, row.family, text)
    return Geometry(
        family=family,
        architecture=name,
        layers=required_count(text, "num_hidden_layers", what) * _ATTENTIONS_PER_LAYER.get(name, 1),
        query_heads=required_count(text, "num_attention_heads", what),
        states=states,
        nextn_layers=optional_count(text, "num_nextn_predict_layers") or (states.nextn_layers if states else 0),
        hidden_size=optional_count(text, "hidden_size"),
        target_hidden_size=optional_count(text, "target_hidden_size"),
        vocab_size=optional_count(text, "vocab_size"),
        max_position=_max_position(text),
        multimodal=_multimodal(config, name),
        fp8_kv_form=fp8_form(config) or fp8_form(text),
        since=max(row.since, states.since) if states else row.since,
        draft=_draft(text, what) if row.is_draft else None,
        **_READERS[family](text, name, what),
    )


def check_draft(target: Geometry, draft: Geometry) -> None:
    """Raises InputError where a draft's own figures show that it was made for another target."""
    for fault in draft_faults(target, draft):
        raise fault


def draft_faults(target: Geometry, draft: Geometry) -> Iterator[InputError]:
    """Every figure of a draft that shows that it was made for another target."""
    facts = draft.draft
    asked = f"the draft {draft.architecture} beside the target {target.architecture}"
    advice = "this draft was made for another model; give the draft that belongs to this target"
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
            yield InputError(asked, f"{key} {of_draft} in the draft where the target has {of_target}", advice)
    beyond = [layer for layer in (facts.target_layer_ids if facts else ()) if layer >= target.layers]
    if beyond:
        found = f"target_layer_ids {beyond} in the draft, but the target has the layers 0 to {target.layers - 1}"
        yield InputError(asked, found, advice)


def _refusal(name: str, what: str) -> InputError:
    reason = next((text for start, text in UNSIZED.items() if name.startswith(start)), "an attention that is not in the table")
    return InputError(
        f"the KV bytes per token of {what}",
        f"the architecture {shown(name)[1:-1]}: {reason}, for which this collection has no proven closed form",
        "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
    )


def _architecture_name(config: Config, what: str) -> str:
    names = config.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    raise InputError(
        f"the architecture of {what}",
        f"architectures {shown(names)} and model_type {shown(config.get('model_type'))} in its config.json",
        "give the config.json of a complete checkpoint: SGLang chooses the attention by that name",
    )


# Two attentions, each with a cache of its own, in one layer.
_ATTENTIONS_PER_LAYER = {"LongcatFlashForCausalLM": 2}

# What some architectures call the keys that all others share.
_OTHER_NAMES = {
    "num_hidden_layers": ("num_layers", "n_layer", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "hidden_size": ("n_embd", "d_model"),
}


def _text_config(config: Config, name: str) -> Config:
    """The language model's part of a multimodal configuration, under the keys that most models use."""
    text = config if name.startswith("Llava") and name.endswith("ForCausalLM") else _nested(config)
    missing = {key: others for key, others in _OTHER_NAMES.items() if text.get(key) is None}
    found = {key: next((text[other] for other in others if text.get(other) is not None), None) for key, others in missing.items()}
    return {**text, **{key: value for key, value in found.items() if value is not None}}


def _nested(config: Config) -> Config:
    thinker = config.get("thinker_config")
    if isinstance(thinker, Mapping):
        inner = thinker.get("text_config")
        return inner if isinstance(inner, Mapping) else thinker
    parts = (config.get(key) for key in ("llm_config", "language_config", "text_config"))
    return next((part for part in parts if isinstance(part, Mapping)), config)


def _multimodal(config: Config, name: str) -> bool:
    """Does SGLang serve this model as a multimodal one, where it is not told otherwise?"""
    if name == "MiMoV2ForCausalLM":
        return "vision_config" in config and "audio_config" in config
    nested = any(isinstance(config.get(key), Mapping) for key in ("thinker_config", "llm_config", "language_config", "text_config"))
    return (nested or name in MULTIMODAL) and name not in TEXT_ONLY


# Latent attention that is a sparse one where the configuration has index_topk.
_SPARSE_IF_INDEXED = (
    "DeepseekV3ForCausalLM",
    "DeepseekV3ForCausalLMNextN",
    "DeepseekV32ForCausalLM",
    "GlmMoeDsaForCausalLM",
    "MistralLarge3ForCausalLM",
    "PixtralForConditionalGeneration",
)


def _family(name: str, family: str, text: Config) -> str:
    if family in ("mla", "dsa") and name in _SPARSE_IF_INDEXED:
        return "dsa" if text.get("index_topk") is not None else "mla"
    if family != "either":
        return family
    return "mla" if text.get("kv_lora_rank") and text.get("use_mla", True) else "mha"


def _read_mha(text: Config, _name: str, what: str) -> dict[str, Any]:
    if (text.get("kv_lora_rank") and text.get("use_mla", True)) or text.get("index_topk"):
        raise InputError(
            f"the KV bytes per token of {what}",
            "an architecture with K and V heads whose configuration also has kv_lora_rank or index_topk",
            "check that config.json belongs to this checkpoint",
        )
    if text.get("is_hybrid_swa"):
        raise InputError(
            f"the KV bytes per token of {what}",
            "is_hybrid_swa, which gives the windowed layers of any architecture a pool of their own",
            "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
        )
    heads = required_count(text, "num_attention_heads", what)
    head_dim = head_size(text, what)
    return {
        "kv_heads": _kv_heads(text, what) or heads,
        "head_dim": head_dim,
        "v_head_dim": optional_count(text, "v_head_dim") or head_dim,
    }


_KV_HEAD_KEYS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")


def _kv_heads(text: Config, what: str) -> Optional[int]:
    """KV heads of a layer, by the key that SGLang reads first; None where there are as many as attention heads."""
    if text.get("multi_query") is True:
        return 1
    attention = optional_mapping(text, "attn_config")
    if attention is not None:
        return optional_count(attention, "kv_n_heads")
    if text.get("model_type") == "nemotron-nas":
        return _kv_heads_of_blocks(text, what)
    return next((count for count in (optional_count(text, key) for key in _KV_HEAD_KEYS) if count), None)


def _kv_heads_of_blocks(text: Config, what: str) -> int:
    """KV heads of a model that was cut layer by layer: those of its layers with attention, which must agree."""
    blocks = text.get("block_configs")
    attentions = [block.get("attention") for block in blocks if isinstance(block, Mapping)] if isinstance(blocks, list) else []
    groups = {optional_count(part, "n_heads_in_group") for part in attentions if isinstance(part, Mapping) and not part.get("no_op")}
    if len(groups) != 1 or None in groups:
        raise InputError(
            f"the KV heads of {what}",
            f"block_configs with n_heads_in_group {sorted(str(group) for group in groups)}",
            "SGLang serves such a model only if every layer with attention has as many KV heads; give the whole config.json",
        )
    heads, group = required_count(text, "num_attention_heads", what), int(groups.pop() or 1)
    if group > heads:
        raise InputError(
            f"the KV heads of {what}",
            f"block_configs with n_heads_in_group {group}, and num_attention_heads {heads}",
            "give the whole config.json: a group cannot have more heads than the layer",
        )
    return heads // group


def _read_mla(text: Config, name: str, what: str) -> dict[str, Any]:
    if text.get("index_topk"):
        raise InputError(
            f"the KV bytes per token of {what}",
            f"index_topk in a configuration of {name}, which makes its attention a sparse one",
            "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
        )
    return _latent(text, what)


def _latent(text: Config, what: str) -> dict[str, Any]:
    # attention without positions keeps the latent part alone
    rope = 0 if text.get("qk_rope_head_dim") == 0 else required_count(text, "qk_rope_head_dim", what)
    return {"latent_dim": required_count(text, "kv_lora_rank", what), "rope_dim": rope}


def _read_dsa(text: Config, name: str, what: str) -> dict[str, Any]:
    pooled = optional_count(text, "index_kpool") or 1
    if pooled > 1 and name not in HYBRIDS:
        raise InputError(
            f"the KV bytes per token of {what}",
            f"index_kpool {text['index_kpool']!r}: an index of pooled tokens",
            "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
        )
    layers = required_count(text, "num_hidden_layers", what)
    by_frequency = tuple(_has_index(text, layer) for layer in range(layers))
    types = optional_list(text, "indexer_types")
    listed = types is not None and tuple(layer >= len(types) or types[layer] != "shared" for layer in range(layers))
    return {
        **_latent(text, what),
        "index_head_dim": required_count(text, "index_head_dim", what),
        "index_pool": pooled,
        "index_by_frequency": by_frequency,
        "index_by_types": listed or by_frequency,
    }


def _read_qsa(text: Config, name: str, what: str) -> dict[str, Any]:
    return {
        **_read_mha(text, name, what),
        "index_head_dim": required_count(text, "indexer_head_dim", what),
        "index_pool": required_count(text, "indexer_compress_ratio", what),
    }


def _has_index(text: Config, layer: int) -> bool:
    """Does this layer look for its own top tokens? By index_topk_pattern, else every index_topk_freq-th one does."""
    pattern = text.get("index_topk_pattern")
    if pattern is not None and not isinstance(pattern, (str, list)):
        raise InputError("index_topk_pattern of a config.json", shown(pattern), "give it as the checkpoint has it: a letter a layer")
    if pattern is not None:
        return layer >= len(pattern) or pattern[layer] != "S"
    every = optional_count(text, "index_topk_freq") or 1
    return every == 1 or max(layer - (optional_count(text, "index_skip_topk_offset") or 2) + 1, 0) % every == 0


def _read_compressed(text: Config, name: str, what: str) -> dict[str, Any]:
    layers = required_count(text, "num_hidden_layers", what)
    ratios = optional_list(text, "compress_ratios")
    compared = ratios is not None and all(is_int(ratio) and ratio in (0, 4, 128) for ratio in ratios)
    if ratios is None or not compared or len(ratios) < layers or text.get("kv_source_layer_ids"):
        raise InputError(
            f"the pools of {what}",
            f"{name} with compress_ratios {shown(ratios)} for {layers} layers",
            "only ratios of 0, 4 and 128 were compared with a release; start it twice with different fractions and draw the line",
        )
    return {
        "head_dim": required_count(text, "head_dim", what),
        "rope_dim": required_count(text, "qk_rope_head_dim", what),
        "index_head_dim": required_count(text, "index_head_dim", what),
        "compress_ratios": tuple(ratios[:layers]),
        "nextn_ratios": tuple(ratios[layers:]),
        "window": required_count(text, "sliding_window", what),
    }


def _read_minimax_sparse(text: Config, name: str, what: str) -> dict[str, Any]:
    layers = required_count(text, "num_hidden_layers", what)
    sparse = text.get("sparse_attention_config")
    found = sparse if isinstance(sparse, Mapping) else {}
    kinds, key_only = found.get("sparse_attention_freq"), found.get("sparse_disable_index_value")
    if not (isinstance(kinds, list) and isinstance(key_only, list) and len(kinds) == len(key_only) == layers):
        raise InputError(
            f"the sparse layers of {what}",
            f"sparse_attention_freq {shown(kinds)} and sparse_disable_index_value {shown(key_only)} for {layers} layers",
            "give the whole config.json: both lists name every layer",
        )
    return {
        **_read_mha(text, name, what),
        "index_head_dim": required_count(found, "sparse_index_dim", what),
        "index_heads": tuple((1 if alone else 2) if kind else 0 for kind, alone in zip(kinds, key_only)),
    }


def _read_swa(text: Config, name: str, what: str) -> dict[str, Any]:
    full = _read_mha({**text, "is_hybrid_swa": False}, name, what)
    if WINDOWED[name].heads == "gemma":
        head_dim = optional_count(text, "global_head_dim") or full["head_dim"]
        kv_heads = optional_count(text, "num_global_key_value_heads") or full["kv_heads"]
        full = {"kv_heads": kv_heads, "head_dim": head_dim, "v_head_dim": optional_count(text, "v_head_dim") or head_dim}
    return {**full, "windows": read_windows(text, name, (full["kv_heads"], full["head_dim"], full["v_head_dim"]), what)}


_READERS: dict[str, Callable[[Config, str, str], dict[str, Any]]] = {
    "mha": _read_mha,
    "mla": _read_mla,
    "dsa": _read_dsa,
    "qsa": _read_qsa,
    "compressed": _read_compressed,
    "minimax_sparse": _read_minimax_sparse,
    "swa": _read_swa,
}

# SGLang's own fallback where a draft's configuration names no block
_DEFAULT_BLOCK_SIZE = 16


def _draft(text: Config, what: str) -> Draft:
    inner = optional_mapping(text, "dflash_config") or {}
    layers = inner.get("target_layer_ids")
    if layers is not None and not (isinstance(layers, list) and all(is_int(layer) and -1 <= layer <= MOST_LAYERS for layer in layers)):
        raise InputError(f"the tapped layers of {what}", f"target_layer_ids {shown(layers)}", "give the draft's config.json unaltered")
    return Draft(
        block_size=optional_count(text, "block_size") or optional_count(inner, "block_size") or _DEFAULT_BLOCK_SIZE,
        num_target_layers=optional_count(text, "num_target_layers"),
        target_layer_ids=tuple(layers or ()),
    )


# Far more than any rope is stretched by.
_MOST_FACTOR = 1_000_000
_LENGTH_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


def _max_position(text: Config) -> Optional[int]:
    """Longest context SGLang derives (tokens): the first length key, times a rope factor that is not yet in it."""
    length = next((value for value in (optional_count(text, key) for key in _LENGTH_KEYS) if value), None)
    rope = optional_mapping(text, "rope_scaling")
    factor = optional_number(rope, "factor", _MOST_FACTOR) if rope else None
    if length is None or factor is None or not rope:
        return length
    if "original_max_position_embeddings" in rope or rope.get("rope_type") == "llama3":
        return length
    # a factor that leaves nothing is as wrong as none above 0
    return max(1, int(length * factor))
