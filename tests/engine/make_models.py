# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write tiny random checkpoints that the real SGLang server can load and serve.

The hidden sizes are tiny but the KV cells are those of large models, because the
engine sizes its pool from free RAM: with a cell of tens of kilobytes a token, the
few MiB by which free RAM moves between two readings are a handful of tokens.

====  ==================================  =======================================
kind  architecture                        KV cell, bytes per token (bf16, TP 1)
====  ==================================  =======================================
mla   DeepseekV3ForCausalLM, all dense    (512 + 64) x 61 layers x 2 = 70,272
gqa   Qwen3ForCausalLM                    8 heads x (128 + 128) x 16 layers x 2 = 65,536
====  ==================================  =======================================

``dflash-mla`` and ``dflash-gqa`` are DFLASH drafts for the target of that name:
8 heads x (64 + 64) x 3 layers x 2 = 6,144 bytes more per token.

Only the standard library is used, so checkpoints can be made on a controller that
has no torch. The weights depend on the kind alone: two runs write identical files.

Usage: make_models.py KIND DIRECTORY
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPECIALS = ("<pad>", "<s>", "</s>", "<mask>")
VOCAB = len(SPECIALS) + 256
CONTEXT = 262144
SHORT_CONTEXT = 32768
HIDDEN = 128
INTERMEDIATE = 128
ELEMENT_BYTES = 2
"""Size of a bfloat16, the type of every weight and of the KV cache."""

Shapes = dict[str, tuple[int, ...]]
Config = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """One checkpoint: its config.json and the shape of every tensor."""

    config: Config
    shapes: Shapes
    cell_bytes: int
    """KV cache bytes per token at TP 1, as ``--kv-cache-dtype auto`` stores it."""


def _common(architecture: str, layers: int, context: int) -> Config:
    return {
        "architectures": [architecture],
        "attention_bias": False,
        "bos_token_id": SPECIALS.index("<s>"),
        "eos_token_id": SPECIALS.index("</s>"),
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": context,
        "num_hidden_layers": layers,
        "pad_token_id": SPECIALS.index("<pad>"),
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "vocab_size": VOCAB,
    }


def _mlp(prefix: str) -> Shapes:
    return {
        f"{prefix}mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
        f"{prefix}mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
        f"{prefix}mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
    }


def _norms(prefix: str) -> Shapes:
    return {
        f"{prefix}input_layernorm.weight": (HIDDEN,),
        f"{prefix}post_attention_layernorm.weight": (HIDDEN,),
    }


def _embeddings() -> Shapes:
    return {
        "model.embed_tokens.weight": (VOCAB, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (VOCAB, HIDDEN),
    }


def _gqa_attention(prefix: str, heads: int, kv_heads: int, head_dim: int) -> Shapes:
    return {
        f"{prefix}self_attn.q_proj.weight": (heads * head_dim, HIDDEN),
        f"{prefix}self_attn.k_proj.weight": (kv_heads * head_dim, HIDDEN),
        f"{prefix}self_attn.v_proj.weight": (kv_heads * head_dim, HIDDEN),
        f"{prefix}self_attn.o_proj.weight": (HIDDEN, heads * head_dim),
        f"{prefix}self_attn.q_norm.weight": (head_dim,),
        f"{prefix}self_attn.k_norm.weight": (head_dim,),
    }


def mla() -> Model:
    """Multi-head latent attention with the cell of a 61-layer 1T-class model.

    Every layer is dense: the CPU engine's MoE kernels are not under test. The rope
    scaling is there because SGLang's CPU rope accepts ``deepseek_yarn`` only.
    """
    layers, heads, latent, rope, nope, value, q_rank = 61, 2, 512, 64, 32, 32, 64
    original_context = 4096
    config = {
        **_common("DeepseekV3ForCausalLM", layers, CONTEXT),
        "model_type": "deepseek_v3",
        "ep_size": 1,
        "first_k_dense_replace": layers,
        "kv_lora_rank": latent,
        "moe_intermediate_size": 64,
        "moe_layer_freq": 1,
        "n_group": 1,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "num_attention_heads": heads,
        "num_experts_per_tok": 2,
        "num_key_value_heads": heads,
        "q_lora_rank": q_rank,
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": rope,
        "rope_interleave": True,
        "rope_scaling": {
            "beta_fast": 32,
            "beta_slow": 1,
            "factor": CONTEXT // original_context,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": original_context,
            "type": "yarn",
        },
        "rope_theta": 50000,
        "routed_scaling_factor": 1.0,
        "scoring_func": "sigmoid",
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "v_head_dim": value,
    }
    shapes = _embeddings()
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        shapes.update(_norms(prefix))
        shapes.update(_mlp(prefix))
        shapes.update(
            {
                f"{prefix}self_attn.q_a_proj.weight": (q_rank, HIDDEN),
                f"{prefix}self_attn.q_a_layernorm.weight": (q_rank,),
                f"{prefix}self_attn.q_b_proj.weight": (heads * (nope + rope), q_rank),
                f"{prefix}self_attn.kv_a_proj_with_mqa.weight": (latent + rope, HIDDEN),
                f"{prefix}self_attn.kv_a_layernorm.weight": (latent,),
                f"{prefix}self_attn.kv_b_proj.weight": (heads * (nope + value), latent),
                f"{prefix}self_attn.o_proj.weight": (HIDDEN, heads * value),
            }
        )
    return Model(config, shapes, (latent + rope) * layers * ELEMENT_BYTES)


def gqa() -> Model:
    """Grouped-query attention with eight KV heads of 128."""
    layers, heads, kv_heads, head_dim = 16, 16, 8, 128
    config = {
        **_common("Qwen3ForCausalLM", layers, SHORT_CONTEXT),
        "model_type": "qwen3",
        "head_dim": head_dim,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "rope_scaling": None,
        "rope_theta": 1000000,
    }
    shapes = _embeddings()
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        shapes.update(_norms(prefix))
        shapes.update(_mlp(prefix))
        shapes.update(_gqa_attention(prefix, heads, kv_heads, head_dim))
    return Model(config, shapes, kv_heads * 2 * head_dim * layers * ELEMENT_BYTES)


def dflash(target: Model) -> Model:
    """A DFLASH draft for ``target``: three layers, embeddings borrowed from the target.

    It knows the target's positions: SGLang refuses a context that is too long for the draft.
    """
    layers, heads, kv_heads, head_dim, block = 3, 8, 8, 64, 4
    target_layers = target.config["num_hidden_layers"]
    captured = [1, target_layers // 2, target_layers - 3]
    config = {
        **_common("DFlashDraftModel", layers, target.config["max_position_embeddings"]),
        "model_type": "qwen3",
        "block_size": block,
        "dflash_config": {
            "mask_token_id": SPECIALS.index("<mask>"),
            "target_layer_ids": captured,
        },
        "head_dim": head_dim,
        "layer_types": ["full_attention"] * layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_target_layers": target_layers,
        "rope_scaling": None,
        "rope_theta": 1000000,
    }
    shapes: Shapes = {
        "fc.weight": (HIDDEN, len(captured) * HIDDEN),
        "hidden_norm.weight": (HIDDEN,),
        "norm.weight": (HIDDEN,),
    }
    for layer in range(layers):
        prefix = f"layers.{layer}."
        shapes.update(_norms(prefix))
        shapes.update(_mlp(prefix))
        shapes.update(_gqa_attention(prefix, heads, kv_heads, head_dim))
    return Model(config, shapes, kv_heads * 2 * head_dim * layers * ELEMENT_BYTES)


MODELS: dict[str, Model] = {
    "mla": mla(),
    "gqa": gqa(),
    "dflash-mla": dflash(mla()),
    "dflash-gqa": dflash(gqa()),
}
"""Every kind of checkpoint this script can write."""


def _bfloat16(value: float) -> bytes:
    """The two little-endian bytes of ``value`` cut to bfloat16."""
    return struct.pack("<f", value)[2:]


_NORMAL = statistics.NormalDist(0.0, 0.02)
_QUANTILES = [_bfloat16(_NORMAL.inv_cdf((i + 0.5) / 256)) for i in range(256)]
_LOW = bytes(pair[0] for pair in _QUANTILES)
_HIGH = bytes(pair[1] for pair in _QUANTILES)


def _random_tensor(rng: random.Random, count: int) -> bytes:
    """``count`` bfloat16 values near N(0, 0.02), one table look-up per random byte."""
    draw = rng.randbytes(count)
    values = bytearray(2 * count)
    values[0::2] = draw.translate(_LOW)
    values[1::2] = draw.translate(_HIGH)
    return bytes(values)


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _tensors(kind: str, shapes: Shapes) -> Iterator[bytes]:
    rng = random.Random(kind)
    for name, shape in shapes.items():
        if "norm" in name:
            yield _bfloat16(1.0) * _elements(shape)
        else:
            yield _random_tensor(rng, _elements(shape))


def _safetensors_header(shapes: Shapes) -> bytes:
    """The length-prefixed JSON header, padded so that the data starts at a multiple of 8."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in shapes.items():
        end = offset + _elements(shape) * ELEMENT_BYTES
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _byte_characters() -> list[str]:
    """The printable stand-in that byte-level BPE uses for each of the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


def _tokenizer() -> dict[str, Any]:
    """A byte-level BPE without merges: one token per UTF-8 byte, so lengths are easy to choose."""
    symbols = [*SPECIALS, *_byte_characters()]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index, text in enumerate(SPECIALS)
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {symbol: index for index, symbol in enumerate(symbols)},
            "merges": [],
        },
    }


_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def _tokenizer_config(context: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
        "model_max_length": context,
        "chat_template": _CHAT_TEMPLATE,
    }


def write(kind: str, directory: Path) -> Model:
    """Write the checkpoint ``kind`` into ``directory`` (made if needed) and return what it is.

    Raises KeyError for an unknown kind and OSError if the directory cannot be written.
    """
    model = MODELS[kind]
    directory.mkdir(parents=True, exist_ok=True)
    documents = {
        "config.json": model.config,
        "tokenizer.json": _tokenizer(),
        "tokenizer_config.json": _tokenizer_config(model.config["max_position_embeddings"]),
    }
    for name, document in documents.items():
        (directory / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    with (directory / "model.safetensors").open("wb") as file:
        file.write(_safetensors_header(model.shapes))
        for data in _tensors(kind, model.shapes):
            file.write(data)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a tiny random checkpoint for the CPU engine.")
    parser.add_argument("kind", choices=sorted(MODELS))
    parser.add_argument("directory", type=Path)
    args = parser.parse_args()
    model = write(args.kind, args.directory)
    print(f"{args.directory}: {args.kind}, {model.cell_bytes} bytes of KV cache per token")


if __name__ == "__main__":
    main()
