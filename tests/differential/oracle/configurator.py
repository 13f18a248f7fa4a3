# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases from 0.5.16 on: KVCacheConfigurator sizes and makes the pools of one runner."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Optional

from differential.oracle.inputs import Inputs
from differential.oracle.release import Answer, Release, pool_bytes, table_bytes
from differential.oracle.settings import Settings


def size(release: Release, inputs: Inputs, stage: int) -> Answer:
    """Size and make the pools of one pipeline stage, target first, then draft."""
    settings = release.use(inputs, stage)
    release.inputs = inputs
    target = _configurator(release, inputs, settings, stage)
    made = target.configure(pre_model_load_memory=inputs.gpu_free_gib)
    answer = Answer(
        tokens=int(made.max_total_num_tokens),
        swa_tokens=made.swa_max_total_num_tokens,
        charged=release.cells[0],
        target_bytes=pool_bytes(made.token_to_kv_pool),
        request_table_bytes=table_bytes(made.req_to_token_pool),
        max_running_requests=int(made.max_running_requests),
        mamba_slots=settings.max_mamba_cache_size if target.mambaish_config else None,
    )
    if inputs.draft_model is not None:
        draft = _configurator(release, inputs, settings, stage, of_target=made)
        answer.draft_bytes = pool_bytes(draft.configure(pre_model_load_memory=inputs.gpu_free_gib).token_to_kv_pool)
    return answer


def _configurator(release: Release, inputs: Inputs, settings: Settings, stage: int, of_target: Any = None) -> Any:
    """The configurator as ModelRunner makes it after its model is loaded; a draft shares the tables of its target."""
    import torch
    from sglang.srt.configs.model_config import AttentionArch
    from sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    draft = of_target is not None
    config = release.model_config(inputs.draft_model if draft and inputs.draft_model else inputs.model, inputs, draft)
    model = release.stand_in(config, inputs, stage, draft)
    algorithm = SpeculativeAlgorithm.from_string(inputs.algorithm)
    layers = _layer_info(release, config, model, draft, algorithm)
    dtype_name, dtype = _kv_dtype(model, settings, draft, algorithm)
    values = {
        "device": "meta", "gpu_id": 0, "ps": settings, "attn_dp_size": inputs.attention_dp_size, "pp_size": inputs.pp_size,
        "pp_group": release.stage_group(inputs, stage), "model": model, "model_config": config, "server_args": settings,
        "kv_cache_dtype": dtype, "kv_cache_dtype_str": dtype_name, "model_dtype": torch.bfloat16, "page_size": inputs.page_size,
        "sliding_window_size": _window(model, config), "spec_algorithm": algorithm, "is_draft_worker": draft,
        "post_capture_kv_active": False, "spec_aux_config": _spec(config, settings, draft, algorithm),
        "is_hybrid_swa": config.is_hybrid_swa, "is_hybrid_swa_compress": getattr(config, "is_hybrid_swa_compress", False),
        "use_mla_backend": config.attention_arch == AttentionArch.MLA, "layer_info": layers, "forward_stream": None,
        "req_to_token_pool": of_target.req_to_token_pool if draft else None,
        "token_to_kv_pool_allocator": of_target.token_to_kv_pool_allocator if draft else None,
        "memory_pool_config": of_target.memory_pool_config if draft else None,
    }  # fmt: skip
    release.patches.apply()
    taken = {field.name for field in dataclasses.fields(KVCacheConfigurator) if field.init}
    return KVCacheConfigurator(**{name: value for name, value in values.items() if name in taken})


def _call(function: Any, **values: Any) -> Any:
    """Call with those of the values that this release's function takes."""
    taken = inspect.signature(function).parameters
    return function(**{name: value for name, value in values.items() if name in taken})


def _layer_info(release: Release, config: Any, model: Any, draft: bool, algorithm: Any) -> Any:
    from sglang.srt.model_executor.model_runner_components import layer_setup

    release.patches.apply()
    info = _call(
        layer_setup.resolve_layer_indices, model=model, model_config=config, is_draft_worker=draft, spec_algorithm=algorithm
    )
    adjust = getattr(layer_setup, "adjust_hybrid_swa_layer_ids", None)
    if adjust is not None:
        _call(
            adjust, model_config=config, start_layer=info.start_layer, end_layer=info.end_layer, is_hybrid_swa=config.is_hybrid_swa
        )
    return info


def _kv_dtype(model: Any, settings: Settings, draft: bool, algorithm: Any) -> tuple[str, Any]:
    import torch
    from sglang.srt.mem_cache.kv_cache_dtype import configure_kv_cache_dtype

    name, dtype = _call(
        configure_kv_cache_dtype,
        server_args_kv_cache_dtype=settings.kv_cache_dtype,
        model=model,
        model_dtype=torch.bfloat16,
        is_draft_worker=draft,
        is_dflash=algorithm.is_dflash_family(),
        speculative_draft_attention_backend=settings.speculative_draft_attention_backend,
        speculative_draft_kv_cache_dtype=settings.speculative_draft_kv_cache_dtype,
    )
    return (name if name is not None else settings.kv_cache_dtype), dtype


def _window(model: Any, config: Any) -> Optional[int]:
    from sglang.srt.model_executor.model_runner_components import load_model_utils

    found: Optional[int] = load_model_utils.resolve_sliding_window_size(model, config)
    return found


def _spec(config: Any, settings: Settings, draft: bool, algorithm: Any) -> Any:
    from sglang.srt.model_executor.model_runner_components import spec_aux_hidden_state

    found: Any = _call(
        spec_aux_hidden_state.resolve_spec_aux_hidden_state_config,
        server_args=settings,
        model_config=config,
        spec_algorithm=algorithm,
        is_draft_worker=draft,
    )
    return found
