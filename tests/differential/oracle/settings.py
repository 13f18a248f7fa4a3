# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server's arguments and the process groups as the sizing code sees them: plain values in the place of both.

SGLang kept its arguments in one object at first and in a dozen views of it later, under the same names. So there is one flat
namespace here that stands for the object and for every view. What a case does not set has the release's own default; a
name that neither knows is an error, so nothing is ever made up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Optional

from differential.oracle.inputs import CHUNKED_PREFILL_SIZE, Inputs

_UNSET = object()
# The attention backends of a CUDA card: they decide how sparse attention stores its rows and nothing else of a pool.
_BACKENDS = {
    "attention_backend": "flashinfer",
    "dsv4_attn_backend": "flashmla",
    "nsa_prefill_backend": "flashmla_sparse",
    "nsa_decode_backend": "flashmla_kv",
    "dsa_prefill_backend": "flashmla_sparse",
    "dsa_decode_backend": "flashmla_kv",
}
_VIEWS = (
    "get_schedule", "get_memory", "get_spec", "get_disagg", "get_mm", "get_model", "get_exec", "get_parallel", "get_server_args",
    "get_global_server_args", "get_context",
)  # fmt: skip


class Settings:
    """One flat namespace for arguments, their views and the widths of the process groups."""

    def __init__(self, values: dict[str, Any], defaults: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self.__dict__["_defaults"] = defaults

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__.get("_defaults", {}).get(name, _UNSET)
        if value is _UNSET or name.startswith("__"):
            raise AttributeError(f"the sizing code reads {name}, which no case sets and the release has no default for")
        return value

    def __deepcopy__(self, _memo: Any) -> Settings:
        return self

    def override(self, _source: str, **values: Any) -> None:
        """How releases from 0.5.16 on write a derived value back into their arguments."""
        self.__dict__.update(values)


class Group:
    """A process group of so many ranks, of which this process plays one at a time."""

    def __init__(self, world_size: int, rank: int) -> None:
        self.world_size, self.rank_in_group, self.cpu_group = world_size, rank, None
        self.is_first_rank, self.is_last_rank = rank == 0, rank == world_size - 1


def defaults() -> dict[str, Any]:
    """The defaults of the release's own arguments."""
    import dataclasses

    from sglang.srt.server_args import ServerArgs

    if dataclasses.is_dataclass(ServerArgs):
        found, missing = dataclasses.fields(ServerArgs), dataclasses.MISSING
    else:
        import msgspec

        found, missing = msgspec.structs.fields(ServerArgs), msgspec.NODEFAULT
    plain = {field.name: field.default for field in found if field.default is not missing}
    made = {field.name: field.default_factory() for field in found if field.default_factory is not missing}
    return {**made, **plain}


def settings_of(inputs: Inputs, stage: int, own_defaults: dict[str, Any]) -> Settings:
    """The settings of one case as pipeline stage ``stage`` of it."""
    settings = Settings({**_arguments(inputs), **_parallel(inputs, stage)}, own_defaults)
    if inputs.mamba_ssm_dtype is not None:
        settings.mamba_ssm_dtype = inputs.mamba_ssm_dtype
    # views within views, as in get_exec().kernel
    for view in ("features", "kernel", "graph"):
        setattr(settings, view, settings)
    extra_buffer = inputs.mamba_scheduler_strategy != "no_buffer"
    lazy = inputs.mamba_scheduler_strategy == "extra_buffer_lazy"
    # methods of the arguments, values of the view
    settings.enable_mamba_extra_buffer = lambda: extra_buffer
    settings.enable_mamba_extra_buffer_lazy = lambda: lazy
    settings.mamba = Settings({"enable_mamba_extra_buffer": extra_buffer, "enable_mamba_extra_buffer_lazy": lazy}, own_defaults)
    decode = Settings({"max_bs": inputs.max_running_requests}, {})
    prefill = Settings({"backend": "none", "full_prefill_max_req": None}, {})
    settings.cuda_graph_config = Settings({"prefill": prefill, "decode": decode}, {})
    return settings


def _arguments(inputs: Inputs) -> dict[str, Any]:
    return {
        **_BACKENDS,
        "model_path": inputs.model,
        "device": "meta",
        "dtype": "bfloat16",
        "json_model_override_args": "{}",
        "context_length": inputs.context_length,
        "page_size": inputs.page_size,
        "mem_fraction_static": inputs.mem_fraction_static,
        "kv_cache_dtype": inputs.kv_cache_dtype,
        "max_running_requests": inputs.max_running_requests,
        "max_total_tokens": inputs.max_total_tokens,
        "chunked_prefill_size": inputs.chunked_prefill_size or CHUNKED_PREFILL_SIZE,
        "swa_full_tokens_ratio": inputs.swa_full_tokens_ratio,
        "_swa_full_tokens_ratio_explicitly_set": inputs.swa_full_tokens_ratio != 0.8,
        "disable_hybrid_swa_memory": inputs.disable_hybrid_swa_memory,
        "disable_radix_cache": inputs.disable_radix_cache,
        "disable_overlap_schedule": inputs.disable_overlap_schedule,
        "mamba_full_memory_ratio": inputs.mamba_full_memory_ratio,
        "max_mamba_cache_size": inputs.max_mamba_cache_size,
        "mamba_scheduler_strategy": inputs.mamba_scheduler_strategy,
        "mm_feature_transport": inputs.mm_feature_transport,
        "speculative_algorithm": inputs.algorithm,
        "speculative_num_steps": inputs.speculative_num_steps,
        "speculative_eagle_topk": inputs.speculative_eagle_topk,
        "speculative_num_draft_tokens": inputs.speculative_num_draft_tokens,
        "max_speculative_num_draft_tokens": inputs.speculative_num_draft_tokens,
        "speculative_draft_model_path": inputs.draft_model if inputs.draft_is_named else None,
        "speculative_draft_kv_cache_dtype": inputs.draft_kv_cache_dtype,
        "speculative_draft_model_quantization": None,
        # written by the target of releases up to 0.5.9, read by its draft
        "draft_runner_cache_size": None,
        "max_num_reqs": None,
    }


def _parallel(inputs: Inputs, stage: int) -> dict[str, Any]:
    world = Group(inputs.tp_size * inputs.pp_size, 0)
    dcp = inputs.dcp_size
    return {
        "tp_size": inputs.tp_size,
        "pp_size": inputs.pp_size,
        "dp_size": inputs.dp_size,
        "ep_size": inputs.ep_size,
        "dcp_size": dcp,
        "enable_dp_attention": inputs.enable_dp_attention,
        "attn_tp_size": inputs.attention_tp_size,
        "attn_dp_size": inputs.attention_dp_size,
        "attn_cp_size": 1,
        "attn_dcp_size": dcp,
        "dcp_enabled": dcp > 1,
        "pp_rank": stage,
        "tp_rank": 0,
        "attn_tp_rank": 0,
        "dcp_rank": 0,
        "attn_dcp_rank": 0,
        "kv_shard_size": 1,
        "gpu_id": 0,
        "launch_world_size": world.world_size,
        "world_group": world,
    }


class Patches:
    """Functions of the release that ask a device, a process group or the arguments, answered from the current case."""

    def __init__(self) -> None:
        self.settings: Optional[Settings] = None
        self.at_sizing_gib = 0.0
        self._answers = self._table()

    def apply(self) -> None:
        """Put the answers into every module of the release that has been imported by now."""
        for name, module in list(sys.modules.items()):
            if not name.startswith("sglang"):
                continue
            names = getattr(module, "__dict__", None) or {}
            for key in self._answers.keys() & names.keys():
                if callable(names[key]) and not isinstance(names[key], type):
                    names[key] = self._answers[key]

    def _mamba(self) -> Any:
        assert self.settings is not None
        return self.settings.mamba

    def _table(self) -> dict[str, Callable[..., Any]]:
        def value(name: str) -> Callable[..., Any]:
            return lambda *_args, **_kwargs: getattr(self.settings, name)

        def view(*_args: Any, **_kwargs: Any) -> Any:
            return self.settings

        return {
            **dict.fromkeys(_VIEWS, view),
            "resolving_view": lambda arguments: arguments,
            "resolved_view": lambda arguments: arguments,
            "get_available_gpu_memory": lambda *_args, **_kwargs: self.at_sizing_gib,
            # asks for a card besides
            "is_float4_e2m1fn_x2": lambda dtype: str(dtype) == "torch.float4_e2m1fn_x2",
            "get_world_group": value("world_group"),
            "get_tensor_model_parallel_world_size": value("tp_size"),
            "get_attention_tp_size": value("attn_tp_size"),
            "get_attention_tp_rank": value("attn_tp_rank"),
            "get_attention_dp_size": value("attn_dp_size"),
            "configured_tp_size": value("tp_size"),
            "configured_pp_size": value("pp_size"),
            "configured_attn_cp_size": value("attn_cp_size"),
            "configured_moe_dp_size": lambda: 1,
            "draft_attn_tp_size": value("attn_tp_size"),
            "linear_attn_tp_size": value("attn_tp_size"),
            "mamba_extra_buffer_enabled": lambda: self._mamba().enable_mamba_extra_buffer,
            "mamba_extra_buffer_lazy_enabled": lambda: self._mamba().enable_mamba_extra_buffer_lazy,
            "max_speculative_num_draft_tokens": value("max_speculative_num_draft_tokens"),
            "attention_backends": lambda: (_BACKENDS["attention_backend"],) * 2,
        }
