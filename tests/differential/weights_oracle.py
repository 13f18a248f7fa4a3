# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the model classes of one unpacked SGLang release on PyTorch's ``meta`` device and counts the parameters of a rank.

    python -m differential.weights_oracle SOURCE ANSWERS

ANSWERS gets a JSON list: model, layout, bytes of the first rank's parameters, bytes of its kv_b_proj (which loading copies
into two halves), the tensors of a checkpoint and its configuration. The checkpoint is what Transformers' own class of that
model holds, so that names and shapes come from neither side of the comparison. Process groups are numbers.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

from differential.oracle import stubs

DENSE = {
    "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 1024, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip
LATENT = {
    **DENSE, "num_key_value_heads": 8, "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
    "v_head_dim": 48, "n_routed_experts": 8, "n_shared_experts": 1, "moe_intermediate_size": 256, "first_k_dense_replace": 1,
    "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
}  # fmt: skip
EXPERTS = {"num_experts": 8, "moe_intermediate_size": 256, "head_dim": 64}
# module and class of SGLang, class of Transformers without its ending, configuration
MODELS = {
    "llama": ("llama", "LlamaForCausalLM", "Llama", DENSE),
    "llama, tied": ("llama", "LlamaForCausalLM", "Llama", {**DENSE, "tie_word_embeddings": True}),
    "qwen2": ("qwen2", "Qwen2ForCausalLM", "Qwen2", DENSE),
    "qwen3": ("qwen3", "Qwen3ForCausalLM", "Qwen3", {**DENSE, "head_dim": 64}),
    "qwen3-moe": ("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3Moe", {**DENSE, **EXPERTS}),
    "deepseek-v3": ("deepseek_v2", "DeepseekV3ForCausalLM", "DeepseekV3", LATENT),
    "gpt-oss": ("gpt_oss", "GptOssForCausalLM", "GptOss", {**DENSE, "head_dim": 64, "num_local_experts": 8}),
}
# tp, ep, ranks of an attention
LAYOUTS = ((1, 1, 1), (2, 1, 2), (4, 1, 4), (8, 1, 8), (4, 4, 4), (8, 2, 8), (4, 1, 2), (8, 8, 1))
# what configurations of these models have and Transformers' classes no longer keep under that name
KEPT = {"rope_theta": 10000.0, "rope_scaling": None, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "moe_layer_freq": 1}


class Group:
    """A process group of some size, seen from its first rank."""

    rank = rank_in_group = local_rank = 0
    is_first_rank = is_last_rank = True
    device_group = cpu_group = None

    def __init__(self, size: int) -> None:
        self.world_size = size


class Arguments(types.SimpleNamespace):
    """Server arguments at their defaults; a question to them as a method is answered with None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: None


def default(field: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()


def spread(tp: int, ep: int, attention: int) -> None:
    """Make the release believe in process groups of these sizes."""
    from sglang.srt import server_args
    from sglang.srt.distributed import parallel_state
    from sglang.srt.layers import dp_attention
    from sglang.srt.layers.moe import utils

    sizes = {"_WORLD": tp, "_TP": tp, "_PP": 1, "_MOE_EP": ep, "_MOE_TP": tp // ep, "_MOE_DP": 1, "_ATTN_TP": attention, "_ATTN_CP": 1}
    for name, size in sizes.items():
        setattr(parallel_state, name, Group(size))
    told = {"_ATTN_TP_GROUP": Group(attention), "_ATTN_TP_SIZE": attention, "_ATTN_TP_RANK": 0, "_ATTN_DP_RANK": 0}
    apart = tp // attention
    told.update(_ATTN_DP_SIZE=apart, _LOCAL_ATTN_DP_SIZE=apart, _LOCAL_ATTN_DP_RANK=0, _ENABLE_DP_ATTENTION_FLAG=apart > 1)
    for name, value in told.items():
        setattr(dp_attention, name, value)
    values = {field.name: default(field) for field in dataclasses.fields(server_args.ServerArgs)}
    arguments = Arguments(**{**values, "device": "cuda", "tp_size": tp, "ep_size": ep, "dp_size": apart, "enable_dp_attention": apart > 1})
    server_args._global_server_args = arguments
    utils.initialize_moe_config(arguments)


def configuration(name: str) -> Any:
    import transformers

    _module, architecture, family, values = MODELS[name]
    config = getattr(transformers, f"{family}Config")(**values)
    config.architectures = [architecture]
    for key, value in KEPT.items():
        if not hasattr(config, key):
            setattr(config, key, value)
    return config


def bytes_of(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def count(name: str, config: Any) -> dict[str, int]:
    import torch

    module, architecture, _family, _values = MODELS[name]
    cls = getattr(importlib.import_module(f"sglang.srt.models.{module}"), architecture)
    with torch.device("meta"):
        model = cls(config)
    named = dict(model.named_parameters())
    latent = [tensor for key, tensor in named.items() if key.endswith("kv_b_proj.weight")]
    return {"bytes": bytes_of(named.values()), "latent_bytes": bytes_of(latent)}


def checkpoint(name: str) -> list[tuple[str, list[int]]]:
    """Names and shapes of what Transformers would write, a tied head left out as it is in files."""
    import torch
    import transformers

    config = configuration(name)
    with torch.device("meta"):
        model = getattr(transformers, config.architectures[0])(config)
    tensors = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
    if config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    return list(tensors.items())


def main() -> None:
    source, answers = Path(sys.argv[1]), Path(sys.argv[2])
    stubs.install()
    sys.path.insert(0, str(source))
    import torch

    importlib.import_module("sglang.srt.configs.model_config")
    torch.set_default_dtype(torch.bfloat16)
    found = []
    for name in MODELS:
        for layout in LAYOUTS:
            spread(*layout)
            found.append({"model": name, "layout": layout, **count(name, configuration(name))})
    models = {name: {"tensors": checkpoint(name), "config": MODELS[name][3]} for name in MODELS}
    answers.write_text(json.dumps({"models": models, "counts": found}), encoding="utf-8")


if __name__ == "__main__":
    main()
