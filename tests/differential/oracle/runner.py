# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases before 0.5.16: ModelRunner sizes and makes its own pools."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Optional

from differential.oracle.inputs import Inputs
from differential.oracle.release import Answer, Release, draft_layers, pool_bytes, table_bytes
from differential.oracle.settings import Settings


def size(release: Release, inputs: Inputs, stage: int) -> Answer:
    """Size and make the pools of one pipeline stage, target first, then draft."""
    settings = release.use(inputs, stage)
    target = _runner(release, inputs, settings, stage, draft=False)
    _init_memory_pool(target, inputs, settings)
    answer = Answer(
        tokens=int(target.max_total_num_tokens),
        swa_tokens=_number(target, "swa_max_total_num_tokens") if _is_hybrid(target) else None,
        charged=release.cells[0] if release.cells else target.told_cell,
        target_bytes=pool_bytes(target.token_to_kv_pool),
        request_table_bytes=table_bytes(target.req_to_token_pool),
        max_running_requests=_number(target, "max_running_requests"),
        mamba_slots=settings.max_mamba_cache_size if _is_mamba(target) else None,
    )
    if inputs.draft_model is not None:
        draft = _runner(release, inputs, settings, stage, draft=True)
        draft.req_to_token_pool = target.req_to_token_pool
        draft.token_to_kv_pool_allocator = target.token_to_kv_pool_allocator
        draft.memory_pool_config = target.__dict__.get("memory_pool_config")
        _init_memory_pool(draft, inputs, settings)
        answer.draft_bytes = pool_bytes(draft.token_to_kv_pool)
    return answer


def _runner(release: Release, inputs: Inputs, settings: Settings, stage: int, draft: bool) -> Any:
    """A ModelRunner as it is after it has loaded its model and before it makes its pools."""
    import torch
    from sglang.srt.configs.model_config import AttentionArch
    from sglang.srt.model_executor import model_runner
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    release.patches.apply()
    if hasattr(model_runner, "is_cuda"):  # asked for by the KV type of the first releases
        model_runner.is_cuda = lambda: True
    config = release.model_config(inputs.draft_model if draft and inputs.draft_model else inputs.model, inputs, draft)
    model = release.stand_in(config, inputs, stage, draft)
    start, end = (0, draft_layers(config)) if draft else (model.start_layer, model.end_layer)
    runner = _told(model_runner.ModelRunner)
    values = {
        "device": "meta", "gpu_id": 0, "model": model, "model_config": config, "server_args": settings, "dtype": torch.bfloat16,
        "mem_fraction_static": inputs.mem_fraction_static, "is_draft_worker": draft, "page_size": inputs.page_size,
        "use_mla_backend": config.attention_arch == AttentionArch.MLA,
        "spec_algorithm": SpeculativeAlgorithm.from_string(inputs.algorithm),
        "start_layer": start, "end_layer": end, "num_effective_layers": end - start,
        "tp_size": inputs.tp_size, "tp_rank": 0, "pp_size": inputs.pp_size, "pp_rank": stage, "dp_size": inputs.attention_dp_size,
        "dcp_size": inputs.dcp_size, "pp_group": release.stage_group(inputs, stage),
        "req_to_token_pool": None, "token_to_kv_pool_allocator": None, "memory_pool_config": None, "forward_stream": None,
        "attention_chunk_size": getattr(config, "attention_chunk_size", None), "enable_hisparse": False, "draft_model_idx": None,
        "is_hybrid_swa_compress": getattr(config, "is_hybrid_swa_compress", False),
        "_linear_attn_registry_cache": getattr(model_runner, "_UNSET", None),
        **_draft_layers_told(release, inputs, draft),
    }  # fmt: skip
    for name, value in values.items():
        _set(runner, name, value)
    _set_windows(runner, config, model, model_runner)
    _adjust_fraction(runner, config, module=model_runner)
    _without_radix_cache(runner, inputs, settings, module=model_runner)
    if hasattr(runner, "configure_kv_cache_dtype"):
        runner.configure_kv_cache_dtype()
    return runner


def _told(cls: Any) -> Any:
    """An instance without a constructor run, of a class that also remembers the cell it sized with."""

    class Told(cls):  # type: ignore[misc]
        told_cell: Optional[float] = None

        def get_cell_size_per_token(self, num_layers: int) -> int:
            cell: int = super().get_cell_size_per_token(num_layers)
            self.told_cell = cell
            return cell

    return Told.__new__(Told)


def _set(runner: Any, name: str, value: Any) -> None:
    """Plain data, unless the release works the name out itself."""
    if not isinstance(getattr(type(runner), name, None), property):
        object.__setattr__(runner, name, value)


def _draft_layers_told(release: Release, inputs: Inputs, draft: bool) -> dict[str, Optional[int]]:
    """What the target's runner reads from the draft's configuration in its constructor."""
    eagle = dflash = None
    if inputs.draft_model is not None and not draft:
        config = release.model_config(inputs.draft_model, inputs, draft=True)
        nextn = getattr(config, "num_nextn_predict_layers", None)
        layers = max(config.num_hidden_layers, getattr(config, "num_attention_layers", None) or 0)
        if inputs.algorithm == "DFLASH":
            dflash = int(config.num_hidden_layers)
        else:
            eagle = layers if nextn is None else int(nextn)
            eagle = eagle if inputs.draft_is_named else None
    return {"eagle_draft_num_layers": eagle, "dflash_draft_num_layers": dflash}


def _set_windows(runner: Any, config: Any, model: Any, module: Any) -> None:
    """The window, and whether the release splits the pool by it (ModelRunner.initialize and load_model)."""
    text = _text(module.ModelRunner)
    hybrid = getattr(config, "is_hybrid_swa", None)
    hybrid = getattr(config, "is_hybrid", None) if hybrid is None else hybrid
    window = getattr(config, "attention_chunk_size", None)
    if hasattr(model, "get_attention_sliding_window_size"):
        window = model.get_attention_sliding_window_size()
    elif hybrid and "self.model_config.sliding_window_size" in text and config.sliding_window_size is not None:
        window = config.sliding_window_size
    if "Check if the model is using hybrid SWA" in text and not runner.server_args.disable_hybrid_swa_memory:
        llama4 = any("Llama4" in name for name in config.hf_config.architectures)
        hybrid = hybrid or bool(window and window > 0 and not llama4)
    for name in ("full_attention_layer_ids", "swa_attention_layer_ids"):
        ids = getattr(config, name, None) or []
        # the release counts the first layer of the next stage in
        setattr(config, name, [layer for layer in ids if runner.start_layer <= layer <= runner.end_layer])
    for name in ("is_hybrid_swa", "is_hybrid"):
        _set(runner, name, hybrid)
        if hasattr(config, name):
            setattr(config, name, hybrid)
    _set(runner, "sliding_window_size", window)


@functools.cache
def _text(function: Any) -> str:
    return inspect.getsource(function)


def _adjust_fraction(runner: Any, config: Any, module: Any) -> None:
    """The first releases take a share off the fraction of a multimodal model, before they load it."""
    adjust = getattr(module.ModelRunner, "model_specific_adjustment", None)
    if adjust is not None and "self.mem_fraction_static *=" in _text(adjust):
        for name in ("is_multimodal", "is_multimodal_chunked_prefill_supported"):
            _set(runner, name, getattr(config, name, False))
        runner.model_specific_adjustment()


def _without_radix_cache(runner: Any, inputs: Inputs, settings: Settings, module: Any) -> None:
    """The first releases with hybrid models switch their radix cache off before they size (ModelRunner.initialize)."""
    text = _text(module.ModelRunner)
    if "Hybrid GDN model detected, disable radix cache" in text and _is_mamba(runner):
        slots = next(size for size in (inputs.max_mamba_cache_size, inputs.max_running_requests, 512) if size is not None)
        settings.disable_radix_cache, settings.max_mamba_cache_size = True, slots // inputs.attention_dp_size
    elif "model detected, disable radix cache" in text and getattr(runner, "mamba2_config", None):
        settings.disable_radix_cache = True


def _init_memory_pool(runner: Any, inputs: Inputs, settings: Settings) -> None:
    values = {
        "total_gpu_memory": inputs.gpu_free_gib,
        "pre_model_load_memory": inputs.gpu_free_gib,
        "min_per_gpu_memory": inputs.gpu_free_gib,
        "server_args": settings,
        "max_num_reqs": inputs.max_running_requests,
        "max_total_tokens": inputs.max_total_tokens,
    }
    wanted = [name for name in inspect.signature(runner.init_memory_pool).parameters if name in values]
    runner.init_memory_pool(**{name: values[name] for name in wanted})


def _is_hybrid(runner: Any) -> bool:
    return bool(getattr(runner, "is_hybrid_swa", False) or getattr(runner, "is_hybrid", False))


def _is_mamba(runner: Any) -> bool:
    return any(getattr(runner, name, None) for name in ("mambaish_config", "is_hybrid_gdn", "hybrid_gdn_config"))


def _number(holder: Any, name: str) -> Optional[int]:
    value = getattr(holder, name, None)
    return None if value is None else int(value)
