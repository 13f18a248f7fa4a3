# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of a plan, for the module memory_plan and for the filters alike. Private to this collection.

What is planned with is one table, in the form of Ansible's argument specifications; what it means is documented in the module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import (
    Checkpoint,
    Weights,
    model_config,
    model_directory,
    read_checkpoint,
)
from ansible_collections.inferops.sglang.plugins.module_utils._compatibility import check_sizes
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment, normalise_algorithm
from ansible_collections.inferops.sglang.plugins.module_utils._eras import read_version
from ansible_collections.inferops.sglang.plugins.module_utils._memory import LOG_ERROR_GIB, Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Request
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import check_gib, check_version
from ansible_collections.inferops.sglang.plugins.module_utils._weights import Layout, rank_weights

PLAN_OPTIONS: dict[str, dict[str, Any]] = {
    "model": {"type": "path"},
    "model_config": {"type": "dict"},
    "draft_model": {"type": "path"},
    "draft_model_config": {"type": "dict"},
    "sglang_version": {"type": "str", "required": True},
    "speculative_algorithm": {
        "type": "str",
        "choices": ["", "DFLASH", "DDTREE", "DSPARK", "EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"],
        "default": "",
    },
    "speculative_num_steps": {"type": "int"},
    "speculative_eagle_topk": {"type": "int"},
    "speculative_num_draft_tokens": {"type": "int", "no_log": False},
    "tp_size": {"type": "int", "default": 1},
    "pp_size": {"type": "int", "default": 1},
    "dp_size": {"type": "int", "default": 1},
    "ep_size": {"type": "int", "default": 1},
    "dcp_size": {"type": "int", "default": 1},
    "enable_dp_attention": {"type": "bool", "default": False},
    "page_size": {"type": "int", "default": 1},
    "kv_cache_dtype": {"type": "str", "default": "auto"},
    "draft_kv_cache_dtype": {"type": "str"},
    "attention_backend": {"type": "str"},
    "draft_attention_backend": {"type": "str"},
    "platform": {"type": "str", "choices": ["cuda", "rocm"]},
    "compute_capability": {"type": "float"},
    "context_length": {"type": "int"},
    "concurrent_requests": {"type": "float", "default": 1},
    "pool_target": {"type": "int"},
    "mem_fraction_static": {"type": "float"},
    "gpu_free_gib": {"type": "list", "elements": "float"},
    "free_at_sizing_gib": {"type": "list", "elements": "float"},
    "weights_gib": {"type": "float"},
    "draft_weights_gib": {"type": "float"},
    "observed": {"type": "list", "elements": "dict", "default": []},
    "free_jitter_gib": {"type": "float", "default": 0.0},
    "min_headroom_gib": {"type": "float", "default": 5.0},
    "max_running_requests": {"type": "int"},
    "max_total_tokens": {"type": "int", "no_log": False},
    "chunked_prefill_size": {"type": "int"},
    "swa_full_tokens_ratio": {"type": "float", "default": 0.8, "no_log": False},
    "disable_hybrid_swa_memory": {"type": "bool", "default": False},
    "disable_radix_cache": {"type": "bool", "default": False},
    "disable_overlap_schedule": {"type": "bool", "default": False},
    "mamba_full_memory_ratio": {"type": "float", "default": 0.9},
    "max_mamba_cache_size": {"type": "int"},
    "mamba_ssm_dtype": {"type": "str", "choices": ["float32", "bfloat16", "float16"]},
    "mamba_scheduler_strategy": {
        "type": "str",
        "choices": ["auto", "no_buffer", "extra_buffer", "extra_buffer_lazy"],
        "default": "auto",
    },
    "mm_feature_transport": {"type": "str", "choices": ["cpu", "cuda_ipc", "cuda_vmm"], "default": "cpu"},
    "cuda_graph_max_bs": {"type": "int"},
    "disable_cuda_graph": {"type": "bool", "default": False},
}

# of each of these one is needed, and of each of those no two go together
NEEDED_OPTIONS = [("model", "model_config"), ("context_length", "pool_target", "mem_fraction_static")]
ALTERNATIVE_OPTIONS = [("model", "model_config"), ("draft_model", "draft_model_config")]


def request_of(params: dict[str, Any]) -> Request:
    """Arguments, every option of PLAN_OPTIONS present, as a request; raises InputError."""
    check_version(params["sglang_version"])
    target = _geometry(params["model"], params["model_config"], "the model")
    algorithm = normalise_algorithm(params["speculative_algorithm"])
    draft = _draft(params, target, algorithm)
    deployment = deployment_of(params)
    check_sizes(deployment)
    return Request(
        version=params["sglang_version"],
        target=target,
        draft=draft,
        deployment=deployment,
        sources=_sources(params, deployment, own_draft=draft is target),
        context_length=params["context_length"],
        concurrent_requests=params["concurrent_requests"],
        pool_target=params["pool_target"],
        mem_fraction_static=params["mem_fraction_static"],
        min_headroom_gib=params["min_headroom_gib"],
        chunked_prefill_size=params["chunked_prefill_size"],
    )


def deployment_of(params: dict[str, Any]) -> Deployment:
    """Arguments, every option of PLAN_OPTIONS present, as the flags that decide the pool; nothing is checked."""
    return Deployment(
        algorithm=normalise_algorithm(params["speculative_algorithm"]),
        tp_size=params["tp_size"],
        pp_size=params["pp_size"],
        dp_size=params["dp_size"],
        ep_size=params["ep_size"],
        dcp_size=params["dcp_size"],
        dp_attention=params["enable_dp_attention"],
        page_size=params["page_size"],
        kv_cache_dtype=params["kv_cache_dtype"],
        draft_kv_cache_dtype=params["draft_kv_cache_dtype"],
        attention_backend=params["attention_backend"],
        draft_attention_backend=params["draft_attention_backend"],
        compute_capability=params["compute_capability"],
        context_length=params["context_length"],
        max_running_requests=params["max_running_requests"],
        max_total_tokens=params["max_total_tokens"],
        num_steps=params["speculative_num_steps"],
        topk=params["speculative_eagle_topk"],
        num_draft_tokens=params["speculative_num_draft_tokens"],
        swa_full_tokens_ratio=params["swa_full_tokens_ratio"],
        disable_hybrid_swa_memory=params["disable_hybrid_swa_memory"],
        disable_radix_cache=params["disable_radix_cache"],
        disable_overlap_schedule=params["disable_overlap_schedule"],
        chunked_prefill_size=params["chunked_prefill_size"],
        mamba_full_memory_ratio=params["mamba_full_memory_ratio"],
        max_mamba_cache_size=params["max_mamba_cache_size"],
        mamba_ssm_dtype=params["mamba_ssm_dtype"],
        mamba_scheduler_strategy=params["mamba_scheduler_strategy"],
        mm_feature_transport=params["mm_feature_transport"],
        cuda_graph_max_bs=params["cuda_graph_max_bs"],
        disable_cuda_graph=params["disable_cuda_graph"],
    )


def _sources(params: dict[str, Any], deployment: Deployment, own_draft: bool) -> Sources:
    layout = Layout(
        tp_size=deployment.tp_size,
        pp_size=deployment.pp_size,
        ep_size=deployment.ep_size,
        attention_ranks=deployment.attention_ranks,
        platform=params["platform"] or "",
        release=read_version(params["sglang_version"]).release,
    )

    # where the weights of the model are given, its directory may hold no more than its config.json
    read = lru_cache(maxsize=None)(read_checkpoint)
    own_path = params["model"] if own_draft and params["weights_gib"] is None else None
    draft_path = params["draft_model"] or own_path

    def weights() -> Weights:
        found = _weights(params["weights_gib"], params["model"], read, layout)
        if found is None:
            raise InputError(
                "the memory left by the weights",
                "neither free_at_sizing_gib nor weights_gib nor the directory of the model",
                "give one of them, or an observed start",
            )
        return found

    return Sources(
        gpu_free_gib=_smallest(params["gpu_free_gib"]),
        free_at_sizing_gib=_smallest(params["free_at_sizing_gib"]),
        weights=weights,
        draft_weights=lambda: _weights(params["draft_weights_gib"], draft_path, read, layout, is_draft=True),
        observed=params["observed"],
        model=params["model"],
        draft_model=params["draft_model"],
        free_jitter_gib=params["free_jitter_gib"],
    )


def _weights(
    given: Optional[float], path: Optional[str], read: Callable[[str], Checkpoint], layout: Layout, is_draft: bool = False
) -> Optional[Weights]:
    if given is not None:
        if not 0 < given < math.inf:
            raise InputError("weights_gib and draft_weights_gib", f"{given:g}", "give a number greater than 0, or leave it out")
        check_gib("weights_gib and draft_weights_gib", given)
        return Weights(given, LOG_ERROR_GIB)
    if path is None:
        return None
    return rank_weights(read(model_directory(path)), model_config(path), layout, is_draft)


def _draft(params: dict[str, Any], target: Geometry, algorithm: str) -> Optional[Geometry]:
    """The draft that is given, or the target's own next-token layers."""
    if params["draft_model"] is not None or params["draft_model_config"] is not None:
        return _geometry(params["draft_model"], params["draft_model_config"], "the draft model")
    return target if algorithm == "EAGLE" and target.nextn_layers else None


def _geometry(path: Optional[str], config: Optional[dict[str, Any]], what: str) -> Geometry:
    return read_geometry(model_config(path) if path is not None else config or {}, what)


def _smallest(figures: Optional[list[float]]) -> Optional[float]:
    """The figure that decides; one that is no number is handed on, to be refused."""
    return min(figures, key=lambda figure: (not math.isnan(figure), figure)) if figures else None
