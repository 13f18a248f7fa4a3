# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: a broad part of SGLang's flags, parsed for real, and the record that prints them."""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Sequence
from typing import Any

from sglang.standin.eras import Era

GRAPH_SIZES = [1, 2, 4, 8, 12, 16, *range(24, 257, 8), *range(272, 513, 16)]
PREFILL_GRAPH_SIZES = [*range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32), *range(576, 1025, 64), 1280, 1536, 1792, 2048]

# name of the argument, which is also the flag: its default. False makes a switch, None takes any text.
FLAGS: dict[str, Any] = {
    "model_path": None, "tokenizer_path": None, "tokenizer_mode": "auto", "tokenizer_backend": "huggingface",
    "tokenizer_worker_num": 1, "detokenizer_worker_num": 1, "skip_tokenizer_init": False, "load_format": "auto",
    "model_loader_extra_config": "{}", "trust_remote_code": False, "context_length": None, "is_embedding": False,
    "enable_multimodal": False, "revision": None, "model_impl": "auto", "host": "127.0.0.1", "port": 30000,
    "fastapi_root_path": "", "grpc_mode": False, "skip_server_warmup": False, "warmups": None, "nccl_port": None,
    "checkpoint_engine_wait_weights_before_ready": False, "ssl_keyfile": None, "ssl_certfile": None, "ssl_ca_certs": None,
    "dtype": "auto", "quantization": None, "quantization_param_path": None, "kv_cache_dtype": "auto",
    "enable_fp32_lm_head": False, "modelopt_quant": None, "modelopt_export_path": None, "quantize_and_serve": False,
    "mem_fraction_static": 0.88, "max_running_requests": None, "max_queued_requests": None, "max_total_tokens": None,
    "chunked_prefill_size": 8192, "enable_dynamic_chunking": False, "max_prefill_tokens": 16384, "prefill_max_requests": None,
    "schedule_policy": "fcfs", "enable_priority_scheduling": False, "abort_on_priority_when_disabled": False,
    "priority_scheduling_preemption_threshold": 10, "schedule_conservativeness": 1.0, "page_size": 1,
    "swa_full_tokens_ratio": 0.8, "disable_hybrid_swa_memory": False, "radix_eviction_policy": "lru",
    "enable_prefill_delayer": False, "prefill_delayer_max_delay_passes": 30, "prefill_delayer_token_usage_low_watermark": None,
    "device": "cuda", "tp_size": 1, "pp_size": 1, "pp_max_micro_batch_size": None, "pp_async_batch_depth": 0,
    "stream_interval": 1, "stream_response_default_include_usage": False, "incremental_streaming_output": False,
    "random_seed": 42, "constrained_json_whitespace_pattern": None, "constrained_json_disable_any_whitespace": False,
    "watchdog_timeout": 300, "soft_watchdog_timeout": None, "dist_timeout": None, "download_dir": None, "model_checksum": None,
    "base_gpu_id": 0, "gpu_id_step": 1, "sleep_on_idle": False, "custom_sigquit_handler": None, "log_level": "info",
    "log_level_http": None, "log_requests": False, "log_requests_level": 2, "log_requests_format": "text",
    "log_requests_target": None, "crash_dump_folder": None, "show_time_cost": False, "enable_metrics": False,
    "enable_metrics_for_all_schedulers": False, "tokenizer_metrics_custom_labels_header": "x-custom-labels",
    "bucket_time_to_first_token": None, "bucket_inter_token_latency": None, "bucket_e2e_request_latency": None,
    "gc_warning_threshold_secs": 0.0, "decode_log_interval": 40, "enable_request_time_stats_logging": False,
    "kv_events_config": None, "enable_trace": False, "otlp_traces_endpoint": "localhost:4317", "export_metrics_to_file": False,
    "api_key": None, "admin_api_key": None, "served_model_name": None, "weight_version": "default", "chat_template": None,
    "hf_chat_template_name": None, "completion_template": None, "file_storage_path": "sglang_storage",
    "enable_cache_report": False, "reasoning_parser": None, "tool_call_parser": None, "tool_server": None,
    "sampling_defaults": "model", "dp_size": 1, "load_balance_method": "round_robin", "attn_cp_size": 1, "moe_dp_size": 1,
    "dist_init_addr": None, "nnodes": 1, "node_rank": 0, "json_model_override_args": "{}", "preferred_sampling_params": None,
    "enable_lora": False, "max_lora_rank": None, "lora_paths": None, "max_loaded_loras": None, "max_loras_per_batch": 8,
    "lora_eviction_policy": "lru", "lora_backend": "csgmv", "attention_backend": None, "decode_attention_backend": None,
    "prefill_attention_backend": None, "sampling_backend": "flashinfer", "grammar_backend": "xgrammar",
    "mm_attention_backend": None, "fp8_gemm_runner_backend": "auto", "fp4_gemm_runner_backend": "auto",
    "nsa_prefill_backend": None, "nsa_decode_backend": None, "disable_flashinfer_autotune": False, "mamba_backend": "triton",
    "speculative_algorithm": None, "speculative_draft_model_path": None, "speculative_draft_model_revision": None,
    "speculative_draft_load_format": None, "speculative_num_steps": None, "speculative_eagle_topk": None,
    "speculative_num_draft_tokens": None, "speculative_dflash_block_size": None, "speculative_draft_window_size": None,
    "speculative_accept_threshold_single": 1.0, "speculative_accept_threshold_acc": 1.0, "speculative_token_map": None,
    "speculative_attention_mode": "prefill", "speculative_draft_attention_backend": None,
    "speculative_moe_runner_backend": "auto", "speculative_draft_model_quantization": None,
    "speculative_ngram_min_bfs_breadth": 1, "speculative_ngram_max_bfs_breadth": 10, "speculative_ngram_match_type": "BFS",
    "speculative_ngram_capacity": 10000000, "enable_multi_layer_eagle": False, "ep_size": 1, "moe_a2a_backend": "none",
    "moe_runner_backend": "auto", "flashinfer_mxfp4_moe_precision": "default", "enable_flashinfer_allreduce_fusion": False,
    "deepep_mode": "auto", "ep_num_redundant_experts": 0, "ep_dispatch_algorithm": None, "init_expert_location": "trivial",
    "enable_eplb": False, "eplb_algorithm": "auto", "eplb_rebalance_num_iterations": 1000, "deepep_config": None,
    "moe_dense_tp_size": None, "elastic_ep_backend": None, "mooncake_ib_device": None, "max_mamba_cache_size": None,
    "mamba_ssm_dtype": None, "mamba_full_memory_ratio": 0.9, "mamba_track_interval": 256, "enable_hierarchical_cache": False,
    "hicache_ratio": 2.0, "hicache_size": 0, "hicache_write_policy": "write_through", "hicache_io_backend": "kernel",
    "hicache_mem_layout": "layer_first", "hicache_storage_backend": None, "enable_lmcache": False, "cpu_offload_gb": 0,
    "offload_mode": "cpu", "disable_radix_cache": False, "cuda_graph_max_bs": None, "cuda_graph_max_bs_decode": None,
    "cuda_graph_bs": None, "disable_cuda_graph": False, "disable_cuda_graph_padding": False, "enable_profile_cuda_graph": False,
    "enable_cudagraph_gc": False, "enable_nccl_nvls": False, "enable_symm_mem": False, "disable_custom_all_reduce": False,
    "enable_mscclpp": False, "enable_torch_symm_mem": False, "disable_overlap_schedule": False, "enable_mixed_chunk": False,
    "enable_dp_attention": False, "enable_dp_lm_head": False, "enable_two_batch_overlap": False, "enable_torch_compile": False,
    "disable_piecewise_cuda_graph": False, "torch_compile_max_bs": 32, "piecewise_cuda_graph_max_tokens": 2048,
    "piecewise_cuda_graph_compiler": "eager", "torchao_config": "", "enable_p2p_check": False,
    "triton_attention_num_kv_splits": 8, "num_continuous_decode_steps": 1, "delete_ckpt_after_loading": False,
    "enable_memory_saver": False, "allow_auto_truncate": False, "enable_custom_logit_processor": False,
    "flashinfer_mla_disable_ragged": False, "disable_shared_experts_fusion": False, "disable_chunked_prefix_cache": False,
    "disable_fast_image_processor": False, "keep_mm_feature_on_device": False, "enable_return_hidden_states": False,
    "scheduler_recv_interval": 1, "numa_node": None, "enable_deterministic_inference": False,
    "disaggregation_mode": "null", "disaggregation_transfer_backend": "mooncake", "disaggregation_bootstrap_port": 8998,
    "disaggregation_ib_device": None, "num_reserved_decode_tokens": 512, "encoder_only": False, "language_only": False,
    "weight_loader_disable_mmap": False, "enable_pdmux": False, "sm_group_num": 8, "mm_enable_dp_encoder": False,
}

TYPES = dict.fromkeys(
    (
        "context_length", "max_running_requests", "max_queued_requests", "max_total_tokens", "nccl_port",
        "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens", "speculative_dflash_block_size",
        "speculative_draft_window_size", "cuda_graph_max_bs", "cuda_graph_max_bs_decode", "prefill_max_requests",
    ),
    int,
)
ALIASES = {
    "model_path": ["--model"],
    "tp_size": ["--tensor-parallel-size", "--tp"],
    "pp_size": ["--pipeline-parallel-size", "--pp"],
    "dp_size": ["--data-parallel-size", "--dp"],
    "ep_size": ["--expert-parallel-size", "--ep"],
    "speculative_draft_model_path": ["--speculative-draft-model"],
    "speculative_draft_window_size": ["--speculative-dflash-draft-window-size"],
}
KV_DTYPES = ["auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"]


def parse(argv: Sequence[str], era: Era) -> argparse.Namespace:
    """Parses the command line and fills in what SGLang would. An unknown or bad flag ends the process with 2."""
    args = build_parser(era).parse_args(argv)
    args.tokenizer_path = args.tokenizer_path or args.model_path
    args.served_model_name = args.served_model_name or args.model_path
    if args.speculative_algorithm == "NEXTN":
        args.speculative_algorithm = "EAGLE"
    args.cuda_graph_bs = graph_sizes(args)
    return args


def build_parser(era: Era) -> argparse.ArgumentParser:
    """The parser of one era. DDTREE belongs to no release: a fork's server is asked for with STANDIN_DDTREE=1."""
    parser = argparse.ArgumentParser(prog="launch_server.py")
    algorithms = [*era.speculative_algorithms, *(["DDTREE"] if os.environ.get("STANDIN_DDTREE") == "1" else [])]
    choices = {"speculative_algorithm": algorithms, "kv_cache_dtype": KV_DTYPES}
    for name, default in FLAGS.items():
        flags = ["--" + name.replace("_", "-"), *ALIASES.get(name, [])]
        if default is False:
            parser.add_argument(*flags, dest=name, action="store_true")
            continue
        kind = TYPES.get(name, str if default is None else type(default))
        parser.add_argument(
            *flags, dest=name, type=kind, default=default, choices=choices.get(name), required=name == "model_path"
        )
    return parser


def graph_sizes(args: argparse.Namespace) -> list[int]:
    """Batch sizes to capture: up to the wanted maximum, else up to the number of running requests."""
    largest = args.cuda_graph_max_bs_decode or args.cuda_graph_max_bs or min(args.max_running_requests or 256, 256)
    return [size for size in GRAPH_SIZES if size < largest] + [largest]


def effective(args: argparse.Namespace) -> dict[str, Any]:
    """All arguments as SGLang reports them, with the long lists and the nested table that its own record has."""
    shown = dict(vars(args))
    prefill = {"backend": "disabled", "max_bs": 2048, "bs": PREFILL_GRAPH_SIZES}
    decode = {"backend": "full", "max_bs": args.cuda_graph_bs[-1], "bs": args.cuda_graph_bs}
    shown["piecewise_cuda_graph_tokens"] = PREFILL_GRAPH_SIZES
    shown["cuda_graph_config"] = {"decode": decode, "prefill": prefill}
    return {**shown, **silent_changes(os.environ.get("STANDIN_CHANGE", ""))}


def silent_changes(text: str) -> dict[str, Any]:
    """Arguments that are shown otherwise than they were given, as SGLang changes some for a card or a backend: name=value,name=value."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name.strip(): _literal(value.strip()) for name, _equals, value in pairs}


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def record(args: argparse.Namespace, era: Era) -> str:
    """The `server_args=` record: one line of several kilobytes, a repr or, later, a dict. Keys stay in the open."""
    shown = effective(args)
    if era.server_args_form == "dict":
        return f"server_args={shown!r}"
    del shown["cuda_graph_config"]
    return "server_args=ServerArgs(" + ", ".join(f"{name}={value!r}" for name, value in shown.items()) + ")"
