# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models some of whose layers keep a state of fixed size for each request. Private to this collection: may change at any time.

Mamba, gated delta networks, KDA, lightning attention and short convolutions all come to the same two arrays in a layer: the
last inputs of a convolution and a matrix for each head. Only the other layers have a KV cache. What the pool of these states
takes from the memory is worked out in _state_pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import (
    Config,
    InputError,
    Release,
    head_size,
    is_int,
    optional_count,
    optional_list,
    optional_mapping,
    optional_number,
    optional_text,
    required_count,
    shown,
)


@dataclass(frozen=True)
class Hybrid:
    """What SGLang does with one architecture. ``family`` is that of its layers with a KV cache."""

    since: Release
    family: str
    # which of the readers below finds the states in its configuration
    reader: str
    # before this release its radix cache is switched off, whatever the flags say
    radix_since: Release = (0, 0, 0)
    # from this release on SGLang can keep spare states for it (strategy extra_buffer); None: it cannot
    buffer_since: Optional[Release] = None
    # from this release on SGLang fits its flags to the states of this model
    handled_since: Release = (0, 0, 0)
    # releases up to the second that switch the radix cache off for it under speculation
    no_radix_speculating: Optional[tuple[Release, Release]] = None
    # the page that SGLang sets for it whatever the flags say
    page: Optional[int] = None
    # before this release its states are cut by all ranks, under DP attention too
    attention_since: Release = (0, 0, 0)
    # its next-token layer serves as a draft, though SGLang names no path for it
    pathless_draft: bool = False


_NEVER: Release = (99, 0, 0)
_QWEN35 = Hybrid((0, 5, 9), "mha", "gdn", buffer_since=(0, 5, 9), pathless_draft=True)
_NEMOTRON = Hybrid(
    (0, 5, 3),
    "mha",
    "nemotron",
    radix_since=(0, 5, 6),
    buffer_since=(0, 5, 13),
    no_radix_speculating=((0, 5, 8), (0, 5, 9)),
    pathless_draft=True,
)
_NEMOTRON_NANO = replace(_NEMOTRON, buffer_since=None, handled_since=_NEVER)

HYBRIDS: dict[str, Hybrid] = {
    "BailingMoeV2_5ForCausalLM": Hybrid((0, 5, 9), "mla", "lightning", radix_since=(0, 5, 13), buffer_since=(0, 5, 13)),
    "BailingMoeV3ForCausalLM": Hybrid((0, 5, 19), "mla", "bailing_kda", buffer_since=(0, 5, 19)),
    "BailingMoeV3VLForConditionalGeneration": Hybrid((0, 5, 21), "mla", "bailing_kda", buffer_since=(0, 5, 21)),
    "FalconH1ForCausalLM": Hybrid((0, 5, 3), "mha", "falcon", radix_since=(0, 5, 6), buffer_since=(0, 5, 13), attention_since=(0, 5, 4)),
    "GigaChat35ForCausalLM": Hybrid((0, 5, 21), "mla", "gigachat"),
    "Glm5NextForConditionalGeneration": Hybrid((0, 5, 20), "dsa", "glm5", buffer_since=(0, 5, 20), pathless_draft=True),
    "GraniteMoeHybridForCausalLM": Hybrid((0, 5, 9), "mha", "granite", buffer_since=(0, 5, 13)),
    "InternS2MobiusForConditionalGeneration": replace(_QWEN35, since=(0, 5, 18), buffer_since=None),
    "InternS2PreviewForConditionalGeneration": replace(_QWEN35, since=(0, 5, 12), buffer_since=(0, 5, 12)),
    "JetNemotronForCausalLM": Hybrid((0, 5, 5), "mha", "jet"),
    "JetVLMForConditionalGeneration": Hybrid((0, 5, 6), "mha", "jet"),
    "KimiK3ForConditionalGeneration": Hybrid((0, 5, 17), "mla", "kimi", buffer_since=(0, 5, 17)),
    "KimiLinearForCausalLM": Hybrid((0, 5, 4), "mla", "kimi", radix_since=(0, 5, 14), buffer_since=(0, 5, 16)),
    "Lfm2ForCausalLM": Hybrid((0, 5, 9), "mha", "lfm2"),
    "Lfm2MoeForCausalLM": Hybrid((0, 5, 9), "mha", "lfm2", handled_since=(0, 5, 17)),
    "Lfm2VlForConditionalGeneration": Hybrid((0, 5, 10), "mha", "lfm2", handled_since=_NEVER),
    "MiniCPMSALAForCausalLM": Hybrid((0, 5, 19), "mha", "sala", handled_since=_NEVER),
    "MiniCPMV4_6ForConditionalGeneration": replace(_QWEN35, since=(0, 5, 12), buffer_since=(0, 5, 12)),
    "MiniCPMV4_7ForConditionalGeneration": replace(_QWEN35, since=(0, 5, 23), buffer_since=(0, 5, 23)),
    "NemotronHForCausalLM": _NEMOTRON,
    "NemotronHPuzzleForCausalLM": replace(_NEMOTRON, since=(0, 5, 13)),
    "NemotronH_Nano_Omni_Reasoning_V3": replace(_NEMOTRON_NANO, since=(0, 5, 11)),
    "NemotronH_Nano_VL_V2": replace(_NEMOTRON_NANO, since=(0, 5, 6)),
    "NemotronH_Omni_Reasoning_V3": replace(_NEMOTRON, since=(0, 5, 20), buffer_since=(0, 5, 20)),
    "Qwen3NextForCausalLM": Hybrid((0, 5, 2), "mha", "gdn", radix_since=(0, 5, 3, 2), buffer_since=(0, 5, 7), pathless_draft=True),
    "Qwen3_5ForCausalLM": replace(_QWEN35, buffer_since=(0, 5, 19), handled_since=(0, 5, 19)),
    "Qwen3_5ForConditionalGeneration": _QWEN35,
    "Qwen3_5MoeForCausalLM": replace(_QWEN35, buffer_since=(0, 5, 19), handled_since=(0, 5, 19)),
    "Qwen3_5MoeForConditionalGeneration": _QWEN35,
    "Qwen4ExpForConditionalGeneration": Hybrid((0, 5, 20), "qsa", "qwen4", buffer_since=(0, 5, 20), page=64),
    "ZayaForCausalLM": Hybrid((0, 5, 14), "mha", "zaya"),
}


@dataclass(frozen=True)
class States:
    """The states of one model, whole (not per rank). Layers are numbers, all else counts of heads, groups or channels.

    A layer keeps ``heads x head_dim x state_dim`` elements, and the last ``kernel - 1`` inputs of its convolution, which has
    ``channels + 2 * groups * state_dim`` channels split over the ranks and ``whole_channels`` that every rank has.
    """

    hybrid: Hybrid
    layers: tuple[int, ...]
    kv_layers: tuple[int, ...]
    heads: int = 0
    head_dim: int = 0
    state_dim: int = 0
    groups: int = 0
    channels: int = 0
    kernel: int = 1
    whole_channels: int = 0
    # KDA, whose convolution keeps its inputs in an order that rules out the shared form of the states under speculation
    inputs_first: bool = False
    # next-token layers that SGLang takes it to have, and those that its configuration counts where SGLang looks
    nextn_layers: int = 0
    counted_nextn: int = 0
    # next-token layers for which some releases keep a state too, though they charge none
    stateful_nextn: int = 0
    # release that first reads the kinds of the layers from the key that the configuration has
    since: Release = (0, 0, 0)
    # type of the matrix as the checkpoint has it; None where SGLang takes none from there
    dtype: Optional[str] = None

    def matrix(self, ranks: int) -> int:
        """Elements of the matrices of one layer on one of so many ranks."""
        return self.heads // ranks * self.head_dim * self.state_dim

    def inputs(self, ranks: int) -> tuple[int, int]:
        """Channels of one layer's convolution on one of so many ranks, and how many inputs it keeps of each."""
        # groups that do not divide are repeated, so that every rank has those of its heads
        groups = self.groups if self.groups % ranks == 0 else ranks
        return (self.channels + 2 * groups * self.state_dim) // ranks, self.kernel - 1

    def check_ranks(self, ranks: int, architecture: str) -> None:
        """Raises InputError where the states cannot be split over so many ranks."""
        groups = self.groups if self.groups % ranks == 0 else ranks
        if self.heads % ranks or (self.channels + 2 * groups * self.state_dim) % ranks:
            raise InputError(
                f"tp_size that spreads the states of {architecture} over {ranks} ranks",
                f"{self.heads} heads of states and {self.channels} channels of their convolution",
                "give a size that divides both",
            )


def hybrid_config(architecture: str, text: Config) -> Config:
    """The language model's configuration with the keys filled in that its class derives from others."""
    hybrid = HYBRIDS.get(architecture)
    if hybrid is None:
        return text
    if hybrid.reader == "nemotron":
        return {"head_dim": 128, **text, "num_hidden_layers": len(_nemotron_kinds(text, architecture))}
    if hybrid.reader in ("gdn", "qwen4"):
        return {"head_dim": 256, **text}
    if hybrid.reader == "bailing_kda" and text.get("use_mla_nope"):
        return {**text, "qk_rope_head_dim": 0}
    return text


def read_states(architecture: str, text: Config, what: str) -> Optional[States]:
    """The states of an architecture that has some; raises InputError where the configuration does not tell them."""
    hybrid = HYBRIDS.get(architecture)
    if hybrid is None:
        return None
    found = _READERS[hybrid.reader](text, what)
    layers, kv_layers = found.pop("layers"), found.pop("kv_layers")
    if not kv_layers or (not layers and hybrid.reader != "granite"):
        raise InputError(
            f"the pool of {what}",
            f"{len(layers)} layers with states and {len(kv_layers)} layers with a KV cache",
            "give the whole config.json: the kinds of its layers decide the pool",
        )
    if not layers:
        return None
    count = required_count(text, "num_hidden_layers", what)
    beyond = [number for number in (*layers, *kv_layers) if number >= count]
    if beyond:
        raise InputError(
            f"the pool of {what}",
            f"kinds for {max(beyond) + 1} layers at least, and num_hidden_layers {count}",
            "give the whole config.json, unaltered: the kinds of its layers decide the pool",
        )
    counted = optional_count(text, "num_nextn_predict_layers") or 0
    return States(hybrid, tuple(layers), tuple(kv_layers), counted_nextn=counted, **found)


def _split(kinds: Sequence[object], state: Sequence[str], attention: Sequence[str], what: str) -> dict[str, Any]:
    """Numbers of the layers by their kinds; those of neither kind have neither."""
    if not kinds:
        raise InputError(f"the pool of {what}", "no kinds of layers in its config.json", "give the whole config.json")
    return {
        "layers": [number for number, kind in enumerate(kinds) if kind in state],
        "kv_layers": [number for number, kind in enumerate(kinds) if kind in attention],
    }


def _every(interval: int, layers: int) -> dict[str, Any]:
    """Full attention in the last layer of every so many."""
    numbers = range(layers)
    return {
        "layers": [number for number in numbers if (number + 1) % interval],
        "kv_layers": [number for number in numbers if (number + 1) % interval == 0],
    }


def _gdn_shape(text: Config, what: str) -> dict[str, Any]:
    heads = required_count(text, "linear_num_value_heads", what)
    head_dim = required_count(text, "linear_value_head_dim", what)
    return {
        "heads": heads,
        "head_dim": head_dim,
        "state_dim": required_count(text, "linear_key_head_dim", what),
        "groups": required_count(text, "linear_num_key_heads", what),
        "channels": heads * head_dim,
        "kernel": required_count(text, "linear_conv_kernel_dim", what),
        "dtype": optional_text(text, "mamba_ssm_dtype"),
    }


def _read_gdn(text: Config, what: str) -> dict[str, Any]:
    interval = optional_count(text, "full_attention_interval") or 4
    layers = _every(interval, required_count(text, "num_hidden_layers", what))
    return {**layers, **_gdn_shape(text, what), "nextn_layers": 1}


def _read_qwen4(text: Config, what: str) -> dict[str, Any]:
    kinds = optional_list(text, "layer_types")
    if kinds is None:
        return _read_gdn(text, what)
    attention = ("attention", "full_attention", "qwen_sparse_attention", "indexed_attention")
    return {**_split(kinds, ("linear_attention",), attention, what), **_gdn_shape(text, what), "nextn_layers": 1}


def _read_gigachat(text: Config, what: str) -> dict[str, Any]:
    kinds = optional_list(text, "layer_types") or []
    layers = _split(kinds, ("linear_attention",), ("attention", "full_attention"), what)
    return {**layers, **_gdn_shape(text, what)}


_NEMOTRON_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_kinds(text: Config, what: str) -> list[str]:
    kinds, pattern = optional_list(text, "layers_block_type"), optional_text(text, "hybrid_override_pattern")
    if kinds:
        return [str(kind) for kind in kinds]
    if pattern:
        return [_NEMOTRON_LETTERS.get(letter, letter) for letter in pattern]
    raise InputError(f"the pool of {what}", "neither layers_block_type nor hybrid_override_pattern", "give the whole config.json")


def _read_nemotron(text: Config, what: str) -> dict[str, Any]:
    heads, head_dim = required_count(text, "mamba_num_heads", what), required_count(text, "mamba_head_dim", what)
    return {
        **_split(_nemotron_kinds(text, what), ("mamba",), ("attention",), what),
        "since": (0, 0, 0) if text.get("hybrid_override_pattern") else (0, 5, 10),
        "heads": heads,
        "head_dim": head_dim,
        "state_dim": required_count(text, "ssm_state_size", what),
        "groups": required_count(text, "n_groups", what),
        "channels": heads * head_dim,
        "kernel": required_count(text, "conv_kernel", what),
        "dtype": optional_text(text, "mamba_ssm_dtype"),
    }


def _mamba_shape(text: Config, what: str, channels: int) -> dict[str, Any]:
    heads = required_count(text, "mamba_n_heads", what)
    if channels < heads:
        raise InputError(f"the states of {what}", f"mamba_n_heads {heads} for {channels} channels", "give the whole config.json")
    return {
        "heads": heads,
        "head_dim": _mamba_head(text) or channels // heads,
        "state_dim": required_count(text, "mamba_d_state", what),
        "groups": required_count(text, "mamba_n_groups", what),
        "channels": channels,
        "kernel": required_count(text, "mamba_d_conv", what),
    }


def _mamba_head(text: Config) -> Optional[int]:
    """mamba_d_head, which may also say that it follows from the others."""
    return None if text.get("mamba_d_head") == "auto" else optional_count(text, "mamba_d_head")


def _read_falcon(text: Config, what: str) -> dict[str, Any]:
    channels = optional_count(text, "mamba_d_ssm") or _expanded(text, what)
    every = list(range(required_count(text, "num_hidden_layers", what)))
    return {"layers": every, "kv_layers": every, **_mamba_shape(text, what, channels), "dtype": optional_text(text, "mamba_ssm_dtype")}


def _read_granite(text: Config, what: str) -> dict[str, Any]:
    layers = _split(optional_list(text, "layer_types") or [], ("mamba",), ("attention",), what)
    return {**layers, **_mamba_shape(text, what, _expanded(text, what))}


def _expanded(text: Config, what: str) -> int:
    return required_count(text, "mamba_expand", what) * required_count(text, "hidden_size", what)


def _kda_shape(heads: int, head_dim: int, kernel: int) -> dict[str, Any]:
    """Queries, keys and values each have a convolution over all their channels."""
    return {
        "heads": heads,
        "head_dim": head_dim,
        "state_dim": head_dim,
        "groups": heads,
        "channels": heads * head_dim,
        "kernel": kernel,
        "inputs_first": True,
    }


def _read_kimi(text: Config, what: str) -> dict[str, Any]:
    linear = optional_mapping(text, "linear_attn_config")
    numbers = optional_list(linear, "kda_layers") if linear else None
    if linear is None or numbers is None:
        raise InputError(f"the pool of {what}", f"linear_attn_config {shown(linear)}", "give the whole config.json")
    named = {number - 1 for number in _numbers(numbers, "kda_layers", 1)}
    every = range(required_count(text, "num_hidden_layers", what))
    return {
        "layers": [number for number in every if number in named],
        "kv_layers": [number for number in every if number not in named],
        **_kda_shape(*(required_count(linear, key, what) for key in ("num_heads", "head_dim", "short_conv_kernel_size"))),
    }


def _numbers(numbers: list[Any], key: str, first: int) -> list[int]:
    """Numbers of layers, counted from ``first``; raises InputError for an entry that is none."""
    odd = [number for number in numbers if not is_int(number) or number < first]
    if odd:
        raise InputError(
            f"{key} of a config.json", f"the entry {shown(odd[0])}, which is no whole number from {first} on", "give the whole config.json"
        )
    return numbers


def _read_glm5(text: Config, what: str) -> dict[str, Any]:
    """KDA as Kimi's, with its layers counted from 0, or three of every four where the configuration names none."""
    linear = optional_mapping(text, "linear_attn_config")
    numbers = optional_list(linear, "kda_layers") if linear else None
    if linear is not None and numbers is not None:
        from_one = {**linear, "kda_layers": [number + 1 for number in _numbers(numbers, "kda_layers", 0)]}
        found = _read_kimi({**text, "linear_attn_config": from_one}, what)
        return {**found, "stateful_nextn": optional_count(text, "num_nextn_predict_layers") or 0}
    kinds, count = optional_list(text, "layer_types"), required_count(text, "num_hidden_layers", what)
    layers = _split(kinds, ("linear_attention",), ("full_attention", "attention"), what) if kinds is not None else _every(4, count)
    shape = (required_count(text, key, what) for key in ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"))
    return {**layers, **_kda_shape(*shape), "stateful_nextn": optional_count(text, "num_nextn_predict_layers") or 0}


def _bailing_layers(text: Config, what: str) -> dict[str, Any]:
    size = text.get("layer_group_size")
    if isinstance(size, list):
        return _split(["linear" if kind == 1 else "full" for kind in size], ("linear",), ("full",), what)
    return _every(required_count(text, "layer_group_size", what), required_count(text, "num_hidden_layers", what))


def _bailing_heads(text: Config, what: str) -> tuple[int, int]:
    heads = required_count(text, "num_attention_heads", what)
    return heads, head_size(text, what)


def _read_bailing_kda(text: Config, what: str) -> dict[str, Any]:
    heads, head_dim = _bailing_heads(text, what)
    return {**_bailing_layers(text, what), **_kda_shape(heads, head_dim, required_count(text, "short_conv_kernel_size", what))}


def _read_lightning(text: Config, what: str) -> dict[str, Any]:
    heads, head_dim = _bailing_heads(text, what)
    return {**_bailing_layers(text, what), "heads": heads, "head_dim": head_dim, "state_dim": head_dim}


def _read_sala(text: Config, what: str) -> dict[str, Any]:
    given = optional_list(text, "mixer_types") or []
    count = required_count(text, "num_hidden_layers", what)
    kinds = [given[number % len(given)] for number in range(count)] if given else []
    heads = optional_count(text, "lightning_nkv") or required_count(text, "num_key_value_heads", what)
    head_dim = optional_count(text, "lightning_head_dim") or _bailing_heads(text, what)[1]
    layers = _split(kinds, ("lightning-attn", "lightning"), ("minicpm4",), what)
    return {**layers, "heads": heads, "head_dim": head_dim, "state_dim": head_dim}


def _read_jet(text: Config, what: str) -> dict[str, Any]:
    kinds = text.get("efficient_attention_config")
    jet = kinds.get("jet") if isinstance(kinds, Mapping) else None
    expansion = optional_number(jet, "expand_v") if isinstance(jet, Mapping) else None
    if not isinstance(jet, Mapping) or expansion is None:
        raise InputError(f"the pool of {what}", f"efficient_attention_config {shown(kinds)}", "give the whole config.json")
    heads, state_dim = required_count(jet, "num_heads", what), required_count(jet, "head_dim", what)
    head_dim = int(state_dim * expansion)
    return {
        # SGLang keeps every token of its windowed layers
        **_split(optional_list(text, "layer_types") or [], ("jet",), ("attn", "swa"), what),
        "heads": heads,
        "head_dim": head_dim,
        "state_dim": state_dim,
        "groups": heads,
        "channels": heads * head_dim,
        "kernel": required_count(jet, "conv_size", what),
        "dtype": optional_text(text, "mamba_ssm_dtype"),
    }


def _read_lfm2(text: Config, what: str) -> dict[str, Any]:
    layers = _split(optional_list(text, "layer_types") or [], ("conv", "short_conv"), ("full_attention",), what)
    return {**layers, "channels": required_count(text, "hidden_size", what), "kernel": required_count(text, "conv_L_cache", what)}


def _read_zaya(text: Config, what: str) -> dict[str, Any]:
    kinds = optional_list(text, "zaya_layers") or ["a", ""] * (required_count(text, "num_hidden_layers", what) // 2)
    layers = _split(kinds, ("a",), ("a",), what)
    heads = required_count(text, "num_attention_heads", what) + required_count(text, "num_key_value_heads", what)
    return {
        **layers,
        "channels": heads * required_count(text, "head_dim", what),
        "kernel": required_count(text, "cca_time0", what) + required_count(text, "cca_time1", what) - 1,
        "whole_channels": required_count(text, "hidden_size", what),
    }


_READERS: dict[str, Callable[[Config, str], dict[str, Any]]] = {
    "bailing_kda": _read_bailing_kda,
    "falcon": _read_falcon,
    "gdn": _read_gdn,
    "gigachat": _read_gigachat,
    "glm5": _read_glm5,
    "granite": _read_granite,
    "jet": _read_jet,
    "kimi": _read_kimi,
    "lfm2": _read_lfm2,
    "lightning": _read_lightning,
    "nemotron": _read_nemotron,
    "qwen4": _read_qwen4,
    "sala": _read_sala,
    "zaya": _read_zaya,
}
