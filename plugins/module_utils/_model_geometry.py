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

from ansible_collections.inferops.sglang.plugins.module_utils._architectures import ARCHITECTURES, UNSIZED
from ansible_collections.inferops.sglang.plugins.module_utils._config import (
    Config,
    InputError,
    Release,
    is_int,
    optional_count,
    required_count,
)

__all__ = ["Draft", "Geometry", "InputError", "Release", "check_draft", "read_geometry"]


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
    row = ARCHITECTURES.get(name)
    if row is None:
        raise _refusal(name, what)
    text = _text_config(config)
    reader = _READERS[row.family]
    return Geometry(
        family=row.family,
        architecture=name,
        layers=required_count(text, "num_hidden_layers", what),
        query_heads=required_count(text, "num_attention_heads", what),
        nextn_layers=optional_count(text, "num_nextn_predict_layers") or 0,
        hidden_size=optional_count(text, "hidden_size"),
        target_hidden_size=optional_count(text, "target_hidden_size"),
        vocab_size=optional_count(text, "vocab_size"),
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


def _refusal(name: str, what: str) -> InputError:
    reason = next((text for start, text in UNSIZED.items() if name.startswith(start)), "an attention that is not in the table")
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
    heads = required_count(text, "num_attention_heads", what)
    head_dim = optional_count(text, "head_dim") or required_count(text, "hidden_size", what) // heads
    return {
        "kv_heads": optional_count(text, "num_key_value_heads") or heads,
        "head_dim": head_dim,
        "v_head_dim": optional_count(text, "v_head_dim") or head_dim,
    }


def _read_mla(text: Config, what: str) -> dict[str, Any]:
    return {"latent_dim": required_count(text, "kv_lora_rank", what), "rope_dim": required_count(text, "qk_rope_head_dim", what)}


def _read_dsa(text: Config, what: str) -> dict[str, Any]:
    shared = [kind for kind in text.get("indexer_types") or [] if kind != "full"]
    if shared or (optional_count(text, "index_topk_freq") or 1) > 1:
        raise InputError(
            f"the KV bytes per token of {what}",
            f"sparse attention whose layers share an index ({len(shared)} layers without their own), sized differently from 0.5.18 on",
            "start it once with a low and once with a higher mem_fraction_static and draw the line through the two pools",
        )
    return {**_read_mla(text, what), "index_head_dim": required_count(text, "index_head_dim", what)}


def _read_swa(text: Config, what: str) -> dict[str, Any]:
    kinds = text.get("layer_types") or []
    windowed = sum("sliding" in str(kind) for kind in kinds)
    layers = required_count(text, "num_hidden_layers", what)
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
    if layers is not None and not (isinstance(layers, list) and all(is_int(layer) for layer in layers)):
        raise InputError(f"the tapped layers of {what}", f"target_layer_ids {layers!r}", "give the draft's config.json unaltered")
    return Draft(
        block_size=optional_count(text, "block_size") or optional_count(inner, "block_size") or _DEFAULT_BLOCK_SIZE,
        num_target_layers=optional_count(text, "num_target_layers"),
        target_layer_ids=tuple(layers or ()),
    )


_LENGTH_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


def _max_position(text: Config) -> Optional[int]:
    """Longest context SGLang derives (tokens): the first length key, times a rope factor that is not yet in it."""
    length = next((value for value in (optional_count(text, key) for key in _LENGTH_KEYS) if value), None)
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
