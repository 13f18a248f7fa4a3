# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One log record to events: every form of 0.4.0 to 0.5.23, by release and platform, and what only looks like one.

A row's releases are those that print these words; where a public log shows them, they are as that log has them.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, NamedTuple

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._secrets import MASKED
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import (
    NOISE,
    Capture,
    Changed,
    Crash,
    ExceptionLine,
    Fatal,
    InitBegin,
    InitEnd,
    KvPool,
    MambaPool,
    PoolEnd,
    PostCapturePool,
    Progress,
    Rank,
    Ready,
    ServerArgs,
    SplitSizes,
    Stopping,
    Summary,
    Suppressed,
    Traceback,
    Unbalanced,
    UnitLine,
    WeightsBegin,
    WeightsEnd,
    is_noise,
    parse_record,
    parse_server_args,
    parse_suppressed,
    parse_unit_line,
)
from ansible_collections.inferops.sglang.tests.unit.boots import LOGS
from hypothesis import example, given, settings
from hypothesis import strategies as st

STAMP = "[2026-05-30 22:08:02]"


class Form(NamedTuple):
    """A log record as these releases print it on this platform, and what it says."""

    releases: str
    platform: str
    name: str
    text: str
    says: Any


def label(value):
    """The name of a row is that of its test."""
    return f"{value.releases} {value.platform} {value.name}" if isinstance(value, Form) else None


def whole(event, text):
    """A record whose event keeps the whole sentence."""
    return f"{STAMP} {text}", [event(text)]


ARGUMENTS = [
    Form(
        "0.4.0-0.5.19",
        "any",
        "arguments as an object",
        f"{STAMP} server_args=ServerArgs(model_path='/srv/m', tp_size=8, mem_fraction_static=0.85)",
        [ServerArgs({"model_path": "/srv/m", "tp_size": 8, "mem_fraction_static": 0.85})],
    ),
    Form(
        "0.5.20-0.5.23",
        "any",
        "arguments as a table",
        f"{STAMP} server_args={{'model_path': '/srv/m', 'model_loader_extra_config': '{{\"tp_size\": 4}}', 'tp_size': 8}}",
        [ServerArgs({"model_path": "/srv/m", "model_loader_extra_config": '{"tp_size": 4}', "tp_size": 8})],
    ),
]

GROUPS = [
    Form("0.4.0-0.5.20", "any", "process groups begin", f"{STAMP} Init torch distributed begin.", [InitBegin()]),
    Form("0.5.21-0.5.23", "any", "process groups begin", f"{STAMP} Init parallel begin.", [InitBegin()]),
    Form(
        "0.4.0-0.5.8", "CUDA", "process groups end", "[2025-03-08 12:29:13 TP2] Init torch distributed ends. mem usage=0.13 GB", [InitEnd()]
    ),
    Form(
        "0.5.9-0.5.20", "CPU", "process groups end", f"{STAMP} Init torch distributed ends. elapsed=1.05 s, mem usage=0.04 GB", [InitEnd()]
    ),
    Form("0.5.21-0.5.23", "CPU", "process groups end", "[2026-11-29 12:02:09 TP0] Init parallel ends. elapsed=0.12 s", [InitEnd()]),
    Form(
        "0.4.6-0.5.6",
        "any",
        "one card is fuller, with both figures",
        *whole(
            Unbalanced,
            "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=21.05, "
            "local_gpu_memory=79.1, local_gpu_memory * 0.9=71.19",
        ),
    ),
    Form(
        "0.5.7-0.5.23",
        "any",
        "one card is fuller, with both figures",
        *whole(
            Unbalanced,
            "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=21.05, "
            "local_gpu_memory=79.1, local_gpu_memory * 0.9=71.19",
        ),
    ),
]

WEIGHTS = [
    Form("0.4.0-0.5.23", "any", "load begins", f"{STAMP} Load weight begin. avail mem=93.73 GB", [WeightsBegin(93.73)]),
    Form(
        "0.4.0-0.4.1",
        "CUDA",
        "load ends, without its use",
        "[2024-12-13 01:44:59 TP0] Load weight end. type=MistralForCausalLM, dtype=torch.bfloat16, avail mem=9.69 GB",
        [WeightsEnd(9.69, None, "MistralForCausalLM")],
    ),
    Form(
        "0.4.3-0.5.8",
        "CUDA",
        "load ends",
        "[2025-03-08 12:29:21 TP1] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=6.09 GB, mem usage=15.54 GB.",
        [WeightsEnd(6.09, 15.54, "Qwen2ForCausalLM")],
    ),
    Form(
        "0.4.3-0.5.8",
        "ROCm",
        "load ends",
        "[2025-07-02 07:41:58 DP0 TP0] Load weight end. type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=21.73 GB, "
        "mem usage=166.59 GB.",
        [WeightsEnd(21.73, 166.59, "DeepseekV3ForCausalLM")],
    ),
    Form(
        "0.5.9",
        "ROCm",
        "load ends, time first",
        "[2026-02-26 16:41:05 TP1] Load weight end. elapsed=605.50 s, type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, "
        "avail mem=210.38 GB, mem usage=73.58 GB.",
        [WeightsEnd(210.38, 73.58, "KimiK25ForConditionalGeneration")],
    ),
    Form(
        "0.5.10-0.5.23",
        "NPU",
        "load ends",
        "[2026-03-11 13:53:21 TP0] Load weight end. elapsed=23.18 s, type=Glm4MoeLiteForCausalLM, avail mem=32.02 GB, mem usage=28.79 GB.",
        [WeightsEnd(32.02, 28.79, "Glm4MoeLiteForCausalLM")],
    ),
    Form(
        "0.5.10-0.5.23",
        "ROCm",
        "load ends, quantised",
        "[2026-08-20 03:10:54 TP0] Load weight end. elapsed=4.76 s, type=Qwen3_5ForConditionalGeneration, quant=fp8, fmt=e4m3, "
        "avail mem=264.75 GB, mem usage=14.49 GB.",
        [WeightsEnd(264.75, 14.49, "Qwen3_5ForConditionalGeneration")],
    ),
    Form(
        "0.5.10-0.5.23",
        "CUDA",
        "a draft's load that freed more than it took",
        "[2026-08-28 21:34:13] Load weight end. elapsed=94.49 s, type=Qwen4ExpForCausalLMMTP, quant=modelopt_fp4, quant_algo=NVFP4, "
        "avail mem=30.67 GB, mem usage=-1.86 GB.",
        [WeightsEnd(30.67, -1.86, "Qwen4ExpForCausalLMMTP")],
    ),
    Form(
        "0.5.10-0.5.23",
        "CUDA",
        "load ends, cut after the time",
        "[TP0] Load weight end. elapsed=282.07 s,",
        [WeightsEnd(None, None, None)],
    ),
    Form(
        "0.5.18-0.5.23",
        "CUDA",
        "weights loaded behind the graphs: a second word on a load",
        f"{STAMP} Load weight end. Committed real weights after CUDA graph capture in 3.10 s (capture overlap window 41.20 s, startup "
        "overlap total 44.30 s)",
        [WeightsEnd(None, None, None)],
    ),
]

PROGRESS = [
    Form(
        "0.4.0-0.5.23",
        "any",
        "shards",
        "Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:13<00:15,  2.21it/s]",
        [Progress("weights", 45)],
    ),
    Form(
        "0.4.0-0.5.23",
        "any",
        "torch's shards",
        "Loading pt checkpoint shards:   0% Completed | 0/5 [00:00<?, ?it/s]",
        [Progress("weights", 0)],
    ),
    Form(
        "0.4.0-0.5.23",
        "any",
        "cached arrays",
        "Loading np_cache checkpoint shards:  20% Completed | 1/5 [00:00<00:03, 1.00it/s]",
        [Progress("weights", 20)],
    ),
    Form(
        "0.4.9-0.5.23",
        "CPU",
        "two states of several threads in one line",
        "Multi-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]Multi-thread loading shards: 100% Completed | 1/1 "
        "[00:00<00:00, 536.36it/s]",
        [Progress("weights", 100)],
    ),
    Form(
        "0.4.9-0.5.23",
        "any",
        "torch's shards in several threads",
        "Multi-thread loading pt checkpoint shards:  50% Completed | 1/2 [00:01<00:01, 1.00s/it]",
        [Progress("weights", 50)],
    ),
    Form(
        "0.4.6-0.5.23",
        "CUDA",
        "streamer",
        "Loading safetensors using Runai Model Streamer:   7% Completed | 5/64 [1:02:13<9:15:00, 2.21s/it]",
        [Progress("weights", 7)],
    ),
    Form(
        "0.5.7-0.5.23",
        "CUDA",
        "loader of its own",
        "Loading safetensors using Fastsafetensor loader:  99% Completed | 63/64 [00:13<00:00,  2.21it/s]",
        [Progress("weights", 99)],
    ),
    Form(
        "0.5.22-0.5.23",
        "CUDA",
        "another loader of its own",
        "Loading safetensors using InstantTensor:  33% Completed | 100/300 [00:13<00:00,  2.21it/s]",
        [Progress("weights", 33)],
    ),
    Form(
        "0.4.6",
        "CUDA",
        "graphs, with the record of another library glued behind",
        "Capturing batches (avail_mem=0.00 GB):   0%|          | 0/4 [00:00<?, ?it/s]2025-05-02 16:14:34,907 - INFO - flashinfer.jit: "
        "Loading JIT ops: batch_decode",
        [Progress("capture", 0), None],
    ),
    Form(
        "0.4.9-0.5.23",
        "CUDA",
        "graphs",
        "Capturing batches (bs=1 avail_mem=0.86 GB): 100%|██████████| 4/4 [00:18<00:00,  4.51s/it]",
        [Progress("capture", 100)],
    ),
    Form(
        "0.4.9-0.5.23",
        "CUDA",
        "graphs, behind a bar that has no name yet",
        "  0%|          | 0/4 [00:00<?, ?it/s]Capturing batches (bs=4 avail_mem=1.85 GB):   0%|          | 0/4 [00:00<?, ?it/s]",
        [Progress("capture", 0)],
    ),
    Form("0.4.0-0.5.23", "any", "a bar that has no name yet", "  0%|          | 0/13 [00:00<?, ?it/s]", [None]),
    Form(
        "0.5.3-0.5.20",
        "CUDA",
        "graphs by tokens",
        "Capturing num tokens (num_tokens=4096 avail_mem=7.10 GB):  12%|█▎        | 5/40 [00:18<00:00,  4.51s/it]",
        [Progress("capture", 12)],
    ),
    Form(
        "0.5.11-0.5.13",
        "CUDA",
        "graphs by tokens, breakable",
        "[BCG] Capturing (num_tokens=4096 avail_mem=7.10 GB):  12%|█▎        | 5/40 [00:18<00:00,  4.51s/it]",
        [Progress("capture", 12)],
    ),
    Form(
        "0.5.21-0.5.23",
        "CUDA",
        "graphs by shape",
        "Capturing prefill shape (num_tokens=4096 avail_mem=7.10 GB):  12%|█▎        | 5/40 [00:18<00:00,  4.51s/it]",
        [Progress("capture", 12)],
    ),
    Form(
        "0.5.3-0.5.23",
        "CUDA",
        "compiled before they are captured",
        "Compiling num tokens (num_tokens=64):  80%|████████  | 8/10 [00:18<00:00,  4.51s/it]",
        [Progress("capture", 80)],
    ),
    Form(
        "0.4.0-0.5.23",
        "any",
        "states with carriage returns, a record glued behind",
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01]\rLoading safetensors checkpoint shards: 100% Completed "
        "| 2/2 [00:02<00:00]\r[2026-05-30 22:08:02 TP0] Load weight begin. avail mem=1.00 GB",
        [Progress("weights", 50), Progress("weights", 100), WeightsBegin(1.0)],
    ),
    Form(
        "0.5.6",
        "MUSA",
        "graphs, with a record glued behind",
        "Capturing batches (bs=10 avail_mem=11.99 GB):   0%|          | 0/5 [00:00<?, ?it/s][2026-06-08 07:21:05 TP1] Memory pool end. "
        "avail mem=1.00 GB",
        [Progress("capture", 0), PoolEnd(1.0)],
    ),
    Form(
        "0.4.0-0.5.23",
        "any",
        "more than all is all",
        "Loading safetensors checkpoint shards: 102% Completed | 65/64 [00:13<00:00]",
        [Progress("weights", 100)],
    ),
]

POOLS = [
    Form(
        "0.4.1",
        "CUDA",
        "pool without tokens, trailing dot",
        "[2026-05-14 10:55:40 TP0] KV Cache is allocated. K size: 4.41 GB, V size: 4.41 GB.",
        [KvPool(None, None, 4.41, 4.41, None)],
    ),
    Form(
        "0.4.3-0.5.12",
        "CUDA",
        "pool of keys and values",
        "[2025-03-08 12:29:21 TP0] KV Cache is allocated. #tokens: 46611, K size: 1.42 GB, V size: 1.42 GB",
        [KvPool(46611, None, 1.42, 1.42, None)],
    ),
    Form(
        "0.4.3-0.5.12",
        "NPU",
        "latent pool",
        "[2026-03-11 13:53:23 TP0] KV Cache is allocated. #tokens: 383872, KV size: 19.36 GB",
        [KvPool(383872, 19.36, None, None, None)],
    ),
    Form(
        "0.5.12",
        "CUDA",
        "latent pool with words of a person behind",
        "KV Cache is allocated. #tokens: 314304, KV size: 29.32 GB  [x 8 GPUs]",
        [KvPool(314304, 29.32, None, None, None)],
    ),
    Form(
        "0.5.6",
        "ROCm",
        "latent pool with its layout behind",
        "[2025-12-18 22:43:05 TP2] KV Cache is allocated. #tokens: 60000, KV size: 0.13 GB, layout=(60001, 1, 576), page_size=1",
        [KvPool(60000, 0.13, None, None, None)],
    ),
    Form(
        "0.4.6",
        "CUDA",
        "digits in groups",
        f"{STAMP} KV Cache is allocated. #tokens: 1,048,576, K size: 1.00 GB, V size: 1.00 GB",
        [KvPool(1048576, None, 1.0, 1.0, None)],
    ),
    Form(
        "0.5.6",
        "MUSA",
        "pool with its type first",
        "[2026-06-08 07:20:53 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1106304, K size: 25.32 GB, V size: 25.32 GB",
        [KvPool(1106304, None, 25.32, 25.32, "torch.bfloat16")],
    ),
    Form(
        "0.5.13-0.5.23",
        "CUDA",
        "pool with its type first",
        "[2026-09-12 00:22:48 TP0] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 454112, K size: 3.46 GB, V size: 3.46 GB",
        [KvPool(454112, None, 3.46, 3.46, "torch.float8_e4m3fn")],
    ),
    Form(
        "0.5.13-0.5.23",
        "CPU",
        "pool with its type first",
        "[2026-11-29 12:02:13 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 8192, K size: 0.00 GB, V size: 0.00 GB",
        [KvPool(8192, None, 0.0, 0.0, "torch.bfloat16")],
    ),
    Form(
        "0.5.13-0.5.23",
        "CUDA",
        "latent pool with its type first",
        "[2026-08-17 16:52:13] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1933682, KV size: 12.45 GB",
        [KvPool(1933682, 12.45, None, None, "torch.bfloat16")],
    ),
    Form(
        "0.4.3-0.5.12",
        "CUDA",
        "window's pool, keys larger than values",
        "[2026-01-31 13:50:39 TP1] KV Cache is allocated. #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB",
        [KvPool(300288, None, 8.38, 5.59, None)],
    ),
    Form(
        "0.5.17-0.5.23",
        "CUDA",
        "window's pool with its name",
        f"{STAMP} SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB",
        [KvPool(300288, None, 8.38, 5.59, "torch.bfloat16", "SWA")],
    ),
    Form(
        "0.5.23",
        "CUDA",
        "MiniMax's pool with its name",
        f"{STAMP} MiniMax MSA-v1 main NVFP4 KV Cache is allocated. dtype: torch.uint8, #tokens: 4096, K size: 0.25 GB, V size: 0.25 GB",
        [KvPool(4096, None, 0.25, 0.25, "torch.uint8", "MiniMax MSA-v1 main NVFP4")],
    ),
    Form(
        "0.5.18-0.5.23",
        "CUDA",
        "pool whose real size comes after the graphs",
        f"{STAMP} KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1000, K size: 1.00 GB, V size: 1.00 GB",
        [KvPool(1000, None, 1.0, 1.0, "torch.bfloat16", None, True)],
    ),
    Form(
        "0.5.18-0.5.23",
        "CUDA",
        "full half whose real size comes after the graphs",
        f"{STAMP} Full KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1000, KV size: 1.00 GB",
        [KvPool(1000, 1.0, None, None, "torch.bfloat16", "Full", True)],
    ),
    Form(
        "0.5.16",
        "CUDA",
        "real size after the graphs",
        f"{STAMP} Post-capture KV sizing: max_total_num_tokens=8192, free memory=9.30 GB",
        [PostCapturePool(KvPool(8192, None, None, None, None), False, 9.3)],
    ),
    Form(
        "0.5.17-0.5.23",
        "CUDA",
        "real pool after the graphs",
        f"{STAMP} Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 9000, KV size: 1.25 GB, avail mem=7.00 GB",
        [PostCapturePool(KvPool(9000, 1.25, None, None, "torch.bfloat16"), False, 7.0)],
    ),
    Form(
        "0.5.22-0.5.23",
        "CUDA",
        "draft's real pool after the graphs",
        f"{STAMP} Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 9000, KV size: 0.25 GB",
        [PostCapturePool(KvPool(9000, 0.25, None, None, "torch.bfloat16"), True, None)],
    ),
    Form(
        "0.5.17-0.5.23",
        "CUDA",
        "both halves' real sizes after the graphs",
        f"{STAMP} Post-capture KV sizing: full_layer_tokens=400, swa_layer_tokens=300",
        [SplitSizes(400, 300, True)],
    ),
    Form(
        "0.5.17-0.5.23",
        "CUDA",
        "real size after the graphs of a model without a window",
        f"{STAMP} Post-capture KV sizing: full_layer_tokens=400, swa_layer_tokens=0",
        [SplitSizes(400, None, True)],
    ),
    Form(
        "0.4.9-0.5.6",
        "CUDA",
        "sizes of both halves",
        f"{STAMP} Use Sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288",
        [SplitSizes(375360, 300288)],
    ),
    Form(
        "0.5.7-0.5.23",
        "CUDA",
        "sizes of both halves",
        "[2026-01-31 13:50:39 TP2] Use sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288",
        [SplitSizes(375360, 300288)],
    ),
    Form(
        "0.5.9-0.5.23",
        "CUDA",
        "size where all layers have a window",
        f"{STAMP} Use sliding window memory pool (all SWA). swa_layer_tokens=5000",
        [SplitSizes(None, 5000)],
    ),
    Form(
        "0.5.12-0.5.23",
        "NPU",
        "sizes of DeepSeek-V4",
        "[2026-08-10 09:19:13 TP2] DSV4 pool sizes: full=32768, swa=3200, c4=8192, c128=256, c4_state=200, c128_state=0",
        [SplitSizes(32768, 3200)],
    ),
    Form(
        "0.5.15-0.5.20",
        "CUDA",
        "memory shared by both halves",
        f"{STAMP} [unified-memory-pool]   total_bytes=1073741824 (=1.00 GB), full_max_total_num_tokens=4000, swa_max_total_num_tokens=1000"
        ", joint_available=900 slots",
        [SplitSizes(4000, 1000, True)],
    ),
    Form(
        "0.5.21-0.5.23",
        "CUDA",
        "memory shared by both halves",
        f"{STAMP} [unified-memory-pool]   total_bytes=1073741824 (=1.00 GB), full_capacity=4000, swa_capacity=1000, "
        "joint_available=900 slots",
        [SplitSizes(4000, 1000, True)],
    ),
    Form(
        "0.5.15-0.5.23",
        "CUDA",
        "memory shared with states",
        f"{STAMP} [unified-memory-pool]   total_bytes=1073741824, max_total_num_tokens=4000, max_mamba_cache_size=32, max_num_reqs=8, "
        "speculative_num_draft_tokens=None",
        [SplitSizes(4000, None, True, 32)],
    ),
    Form(
        "0.5.19-0.5.23",
        "CUDA",
        "memory shared by both halves and states",
        f"{STAMP} [unified-memory-pool]   total_bytes=1073741824 (=1.00 GB), full_max=4000, swa_max=1000, max_mamba_cache_size=32, "
        "max_num_reqs=8, joint_available=900",
        [SplitSizes(4000, 1000, True, 32)],
    ),
    Form(
        "0.5.2",
        "CUDA",
        "states without their number",
        f"{STAMP} Mamba Cache is allocated. conv_state size: 0.03GB, ssm_state size: 2.74GB",
        [MambaPool(None)],
    ),
    Form(
        "0.5.3-0.5.23",
        "CUDA",
        "states, no blank before the unit",
        "[2026-02-01 00:05:03 TP0] Mamba Cache is allocated. max_mamba_cache_size: 38, conv_state size: 0.03GB, ssm_state size: 2.74GB ",
        [MambaPool(38)],
    ),
    Form(
        "0.5.3-0.5.23",
        "CUDA",
        "states of a model with a draft",
        f"{STAMP} Mamba Cache is allocated. max_mamba_cache_size: 97, conv_state size: 0.10GB, ssm_state size: 5.17GB "
        "intermediate_ssm_state_cache size: 0.50GB intermediate_conv_window_cache size: 0.01GB ",
        [MambaPool(97)],
    ),
    Form("0.4.0-0.5.23", "any", "pools end", "[2025-03-08 12:29:21 TP0] Memory pool end. avail mem=2.09 GB", [PoolEnd(2.09)]),
    Form("0.4.0-0.5.23", "any", "pools end, unit cut short", f"{STAMP} Memory pool end. avail mem=0.58 G", [PoolEnd(0.58)]),
]

CAPTURES = [
    Form(
        "0.4.0-0.4.2",
        "CUDA",
        "graphs begin, without memory",
        "[2024-12-13 01:44:59 TP0] Capture cuda graph begin. This can take up to several minutes.",
        [Capture(True, None)],
    ),
    Form(
        "0.4.0-0.4.2",
        "CUDA",
        "graphs end, without memory",
        "[2024-12-13 01:45:01 TP0] Capture cuda graph end. Time elapsed: 2.19 s",
        [Capture(False, None)],
    ),
    Form(
        "0.4.3-0.5.13",
        "MUSA",
        "graphs begin",
        "[2026-06-08 07:20:54 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=12.07 GB",
        [Capture(True, 12.07)],
    ),
    Form(
        "0.4.3-0.4.5",
        "CUDA",
        "graphs end, free memory first",
        "[2025-03-08 12:29:28 TP0] Capture cuda graph end. Time elapsed: 7.23 s. avail mem=0.53 GB. mem usage=0.93 GB.",
        [Capture(False, 0.53)],
    ),
    Form(
        "0.4.6-0.5.13",
        "CUDA",
        "graphs end, used memory first",
        "[2026-02-01 00:05:04 TP0] Capture cuda graph end. Time elapsed: 1.24 s. mem usage=0.09 GB. avail mem=2.89 GB.",
        [Capture(False, 2.89)],
    ),
    Form(
        "0.5.2-0.5.13",
        "CPU",
        "graphs begin",
        f"{STAMP} Capture cpu graph begin. This can take up to several minutes. avail mem=20.16 GB",
        [Capture(True, 20.16)],
    ),
    Form(
        "0.5.9-0.5.13",
        "NPU",
        "graphs end",
        "[2026-03-11 13:53:32 TP0] Capture npu graph end. Time elapsed: 8.04 s. mem usage=0.80 GB. avail mem=10.30 GB.",
        [Capture(False, 10.3)],
    ),
    Form(
        "0.5.14-0.5.23",
        "NPU",
        "graphs of the target end",
        "[2026-08-07 17:36:17 TP3] Capture target decode NPU graph end. elapsed=17.95 s, mem usage=0.73 GB, avail mem=0.88 GB.",
        [Capture(False, 0.88)],
    ),
    Form(
        "0.5.14-0.5.23",
        "XPU",
        "graphs of the target begin",
        f"{STAMP} Capture target decode xpu graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2], avail mem=10.00 GB",
        [Capture(True, 10.0)],
    ),
    Form(
        "0.5.14-0.5.23",
        "ROCm",
        "graphs of the target end",
        f"{STAMP} Capture target decode CUDA graph end. elapsed=40.10 s, mem usage=2.10 GB, avail mem=75.82 GB.",
        [Capture(False, 75.82)],
    ),
    Form(
        "0.5.14-0.5.23",
        "CPU",
        "graphs of the target end",
        f"{STAMP} Capture target decode CPU graph end. elapsed=4.10 s, mem usage=0.10 GB, avail mem=20.00 GB.",
        [Capture(False, 20.0)],
    ),
    Form(
        "0.5.14-0.5.21",
        "CUDA",
        "graphs that verify begin",
        "[2026-08-28 21:34:50] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, bs=[1, 2], avail mem=26.27 GB",
        [Capture(True, 26.27)],
    ),
    Form(
        "0.5.14-0.5.21",
        "CUDA",
        "graphs that verify begin, cut",
        "[2026-09-22 19:53:41] Capture target verify CUDA graph begin. backend=full",
        [Capture(True, None)],
    ),
    Form(
        "0.5.14-0.5.23",
        "CUDA",
        "graphs that verify end",
        "[2026-10-02 00:40:07] Capture target verify CUDA graph end. elapsed=6.90 s, mem usage=6.13 GB, avail mem=4.72 GB.",
        [Capture(False, 4.72)],
    ),
    Form(
        "0.5.22-0.5.23",
        "CUDA",
        "graphs of the draft end",
        f"{STAMP} Capture draft decode CUDA graph end. bs=[1, 2], elapsed=1.61 s, mem usage=0.11 GB, avail mem=26.15 GB.",
        [Capture(False, 26.15)],
    ),
    Form(
        "0.5.6-0.5.13",
        "CUDA",
        "graphs of prefill begin",
        f"{STAMP} Capture piecewise CUDA graph begin. avail mem=12.00 GB",
        [Capture(True, 12.0)],
    ),
    Form(
        "0.5.14-0.5.23",
        "CUDA",
        "graphs of prefill end",
        "[2026-10-02 00:40:00] Capture target prefill CUDA graph end. elapsed=17.92 s, mem usage=3.85 GB, avail mem=10.85 GB.",
        [Capture(False, 10.85)],
    ),
    Form(
        "0.4.6-0.5.13",
        "CUDA",
        "graphs of a draft begin",
        f"{STAMP} Capture draft cuda graph begin. This can take up to several minutes. avail mem=5.00 GB",
        [Capture(True, 5.0)],
    ),
    Form(
        "0.5.7-0.5.13",
        "CUDA",
        "graphs of one of several drafts begin",
        f"{STAMP} Capture draft extend cuda graph begin (step 2). This can take up to several minutes. avail mem=5.00 GB",
        [Capture(True, 5.0)],
    ),
    Form(
        "0.5.14-0.5.23",
        "CUDA",
        "graphs of one of several drafts end",
        f"{STAMP} Capture draft extend CUDA graph end. step=2, elapsed=1.61 s, mem usage=0.11 GB, avail mem=26.15 GB.",
        [Capture(False, 26.15)],
    ),
    Form(
        "0.5.16-0.5.23",
        "CUDA",
        "one graph for several drafts begins",
        f"{STAMP} Capture single-CG draft extend begin. This can take several minutes. avail mem=5.00 GB",
        [Capture(True, 5.0)],
    ),
    Form(
        "0.5.16-0.5.23",
        "CUDA",
        "one graph for several drafts ends",
        f"{STAMP} Capture single-CG draft extend end. elapsed=1.61 s, mem usage=0.11 GB, avail mem=4.89 GB.",
        [Capture(False, 4.89)],
    ),
    Form(
        "0.5.12-0.5.23",
        "CUDA",
        "graphs of a frozen draft begin",
        f"{STAMP} Capture Frozen-KV MTP draft cuda graph begin.",
        [Capture(True, None)],
    ),
    Form(
        "0.5.12-0.5.23",
        "CUDA",
        "graphs of a frozen draft end",
        f"{STAMP} Capture Frozen-KV MTP draft cuda graph end.",
        [Capture(False, None)],
    ),
    Form(
        "0.5.20-0.5.23",
        "CUDA",
        "graphs of a tree of drafts begin",
        f"{STAMP} Capture UNO tree draft CUDA graph begin. num_tokens_per_req=8, avail mem=5.00 GB",
        [Capture(True, 5.0)],
    ),
]

LAST_LINES = [
    Form(
        "0.4.0-0.4.2",
        "CUDA",
        "last line",
        "[2024-12-13 01:45:02 TP0] max_total_num_tokens=56524, max_prefill_tokens=16384, max_running_requests=2049, context_len=32768",
        [Summary(56524, 32768, 2049, None)],
    ),
    Form(
        "0.4.3-0.4.6",
        "CUDA",
        "last line, of every rank",
        "[2025-02-17 05:27:24 TP6] max_total_num_tokens=712400, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=50, context_len=163840",
        [Summary(712400, 163840, 50, None)],
    ),
    Form(
        "0.4.9-0.5.23",
        "CUDA",
        "last line",
        f"{STAMP} max_total_num_tokens=38141, chunked_prefill_size=-1, max_prefill_tokens=16384, max_running_requests=2048, "
        "context_len=131072, available_gpu_mem=0.83 GB",
        [Summary(38141, 131072, 2048, 0.83)],
    ),
    Form(
        "0.4.9-0.5.23",
        "ROCm",
        "last line of a data parallel rank",
        "2026-09-23T08:24:42.655136271Z [2026-09-23 08:24:42 DP0 TP0] max_total_num_tokens=2226368, chunked_prefill_size=16384, "
        "max_prefill_tokens=16384, max_running_requests=16, context_len=1048576, available_gpu_mem=39.67 GB",
        [None, Summary(2226368, 1048576, 16, 39.67)],
    ),
    Form(
        "0.4.9-0.5.23",
        "NPU",
        "last line",
        "[2026-08-07 17:36:17 TP0] max_total_num_tokens=1641472, chunked_prefill_size=2048, max_prefill_tokens=16384, "
        "max_running_requests=8, context_len=1048576, available_gpu_mem=0.81 GB",
        [Summary(1641472, 1048576, 8, 0.81)],
    ),
    Form(
        "0.5.2-0.5.23",
        "CPU",
        "last line",
        "[2026-11-29 12:02:13 TP0] max_total_num_tokens=8192, chunked_prefill_size=4096, max_prefill_tokens=16384, "
        "max_running_requests=2048, context_len=2048, available_cpu_mem=20.66 GB",
        [Summary(8192, 2048, 2048, 20.66)],
    ),
    Form("0.5.6", "CUDA", "last line of a benchmark, bare", "max_total_num_tokens=399740", [Summary(399740, None, None, None)]),
    Form(
        "0.5.19",
        "CUDA",
        "last line shortened by a person",
        "max_total_num_tokens=350257, ... max_running_requests=12, context_len=262144",
        [Summary(350257, 262144, 12, None)],
    ),
    Form("0.4.0-0.5.23", "any", "ready", "[2026-08-20 03:11:05] The server is fired up and ready to roll!", [Ready()]),
]

ENDS = [
    Form(
        "0.4.6-0.5.23",
        "any",
        "told to stop",
        f"{STAMP} SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        [Stopping()],
    ),
    Form(
        "0.5.21-0.5.23",
        "any",
        "told to stop on another node",
        f"{STAMP} SIGTERM received on node_rank 1; waiting for the rank-0 ShutdownReq broadcast to stop the schedulers.",
        [Stopping()],
    ),
    Form(
        "0.5.3-0.5.23",
        "any",
        "told to stop before it was up",
        f"{STAMP} Signal SIGTERM received while health check failed. Force exiting.",
        [Stopping()],
    ),
    Form(
        "0.5.3-0.5.23",
        "any",
        "stopped",
        f"{STAMP} Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
        [Stopping()],
    ),
    Form("0.4.6-0.5.23", "any", "crash", *whole(Crash, "Scheduler hit an exception: Traceback (most recent call last):")),
    Form("0.4.6-0.5.3", "any", "crash of the overlapped worker", *whole(Crash, "TpModelWorkerClient hit an exception: Traceback")),
    Form(
        "0.4.6-0.5.23",
        "any",
        "crash, its cause on other lines",
        "[08:00:27] Scheduler hit an exception:",
        [Crash("Scheduler hit an exception:")],
    ),
    Form("0.4.6-0.5.23", "any", "no warm-up", *whole(Crash, "Initialization failed. warmup error: Traceback (most recent call last):")),
    Form("0.5.13-0.5.23", "any", "no warm-up", *whole(Crash, "Server warmup failed; aborting startup: status 500")),
    Form(
        "0.4.6-0.5.23",
        "any",
        "a child died",
        *whole(partial(Fatal, "child_died"), "Received sigquit from a child process. It usually means the child failed."),
    ),
    Form(
        "0.5.3-0.5.23",
        "any",
        "a child died",
        *whole(partial(Fatal, "child_died"), "SIGQUIT received. signum=3, frame=None. It usually means one child failed."),
    ),
    Form(
        "0.5.3-0.5.9",
        "any",
        "a child of the gRPC server died",
        *whole(partial(Fatal, "child_died"), "Received SIGQUIT from scheduler process. Scheduler failed, shutting down gRPC server."),
    ),
    Form(
        "0.4.6", "any", "a child died", *whole(partial(Fatal, "child_died"), "Child process unexpectedly failed with an exit code 9. pid=7")
    ),
    Form("0.4.9", "any", "a child died", *whole(partial(Fatal, "child_died"), "Child process unexpectedly failed with exitcode=9. pid=7")),
    Form(
        "0.4.6-0.5.17",
        "any",
        "a rank died",
        *whole(partial(Fatal, "child_died"), "Rank 3 scheduler is dead. Please check if there are relevant logs."),
    ),
    Form("0.4.6-0.5.9", "any", "exit code of a rank", *whole(partial(Fatal, "child_died"), "Exit code: -9")),
    Form(
        "0.5.10-0.5.23",
        "any",
        "a rank died while it came up",
        *whole(
            partial(Fatal, "child_died"), "Rank 3 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), ..."
        ),
    ),
    Form(
        "0.5.10-0.5.23",
        "any",
        "a child died",
        *whole(
            partial(Fatal, "child_died"), "Subprocess scheduler_0 (pid=29426) crashed with exit code -9. Triggering SIGQUIT for cleanup..."
        ),
    ),
    Form(
        "0.5.10-0.5.23",
        "any",
        "a child that was told to stop",
        f"{STAMP} Subprocess scheduler_0 (pid=29426) crashed with exit code -15. Triggering SIGQUIT for cleanup...",
        [None],
    ),
    Form(
        "0.4.6-0.5.23",
        "any",
        "a child on another node died",
        *whole(partial(Fatal, "child_died"), "Scheduler or DataParallelController 4242 terminated with -9"),
    ),
    Form(
        "0.4.6-0.5.23",
        "any",
        "a child on another node was told to stop",
        f"{STAMP} Scheduler or DataParallelController 4242 terminated with -15",
        [None],
    ),
    Form(
        "0.4.6-0.5.23",
        "any",
        "a child on another node ended",
        f"{STAMP} Scheduler or DataParallelController 4242 terminated with 0",
        [None],
    ),
    Form("0.5.10-0.5.23", "any", "an actor died", *whole(partial(Fatal, "child_died"), "Scheduler PP0 TP1 crashed: CUDA error")),
    Form("0.4.6-0.5.6", "any", "watchdog", *whole(partial(Fatal, "hang"), "Watchdog timeout (self.watchdog_timeout=300)")),
    Form(
        "0.5.7-0.5.23",
        "any",
        "watchdog",
        *whole(partial(Fatal, "hang"), "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"),
    ),
    Form(
        "0.5.7-0.5.23",
        "any",
        "watchdog that only looks",
        f"{STAMP} Scheduler watchdog timeout (self.watchdog_timeout=30.0, self.soft=True)",
        [None],
    ),
    Form(
        "0.4.6-0.5.23",
        "any",
        "port",
        *whole(
            partial(Fatal, "port_in_use"),
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use",
        ),
    ),
    Form(
        "0.4.6-0.5.23",
        "any",
        "arguments",
        "launch_server.py: error: unrecognized arguments: --mem-fraction 0.9",
        [Fatal("bad_arguments", "launch_server.py: error: unrecognized arguments: --mem-fraction 0.9")],
    ),
    Form(
        "0.5.14-0.5.23",
        "any",
        "arguments of the command",
        "sglang serve: error: argument --tp: invalid int value: 'x'",
        [Fatal("bad_arguments", "sglang serve: error: argument --tp: invalid int value: 'x'")],
    ),
    Form("0.4.0-0.5.23", "any", "traceback", "Traceback (most recent call last):", [Traceback()]),
    Form(
        "0.4.0-0.5.23",
        "CUDA",
        "exception with the path of its type",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB.",
        [ExceptionLine("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB.")],
    ),
    Form(
        "0.4.9-0.5.23",
        "CUDA",
        "exception of no type of its own",
        "Exception: Capture cuda graph failed: CUDA out of memory.",
        [ExceptionLine("Exception: Capture cuda graph failed: CUDA out of memory.")],
    ),
    Form("0.4.0-0.5.23", "any", "exception without a word", "AssertionError", [ExceptionLine("AssertionError")]),
    Form(
        "0.5.16",
        "CUDA",
        "exception broken over three lines",
        "ValueError: Loaded weights leave no GPU memory for the KV cache under\n--mem-fraction-static=0.94. Raise --mem-fraction-static "
        "above 0.942\n(minimum viable = 1 - available/pre = 0.9411).",
        [ExceptionLine("ValueError: Loaded weights leave no GPU memory for the KV cache under"), None, None],
    ),
    Form(
        "0.5.13-0.5.23",
        "CUDA",
        "exception with a negative figure",
        "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=0 "
        "(total_rest_memory=-1.40 GB, mamba_cache_per_req=51.20 MB).",
        [
            ExceptionLine(
                "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=0 "
                "(total_rest_memory=-1.40 GB, mamba_cache_per_req=51.20 MB)."
            )
        ],
    ),
    Form(
        "0.5.7-0.5.23",
        "any",
        "exception with both figures",
        "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=21.05, "
        "local_gpu_memory=79.1, local_gpu_memory * 0.9=71.19",
        [
            ExceptionLine(
                "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
                "pre_model_load_memory=21.05, local_gpu_memory=79.1, local_gpu_memory * 0.9=71.19"
            )
        ],
    ),
]

# releases, platform, what SGLang says
CHANGED = [
    ("0.4.6-0.5.23", "CUDA", "max_total_tokens=131072 is larger than the profiled value 50756. Use the profiled value instead."),
    ("0.4.6-0.5.23", "ROCm", "max_total_tokens=131072 is larger than the profiled value -561981. Use the profiled value instead."),
    ("0.4.6", "CUDA", "Automatically reduce --mem-fraction-static to 0.792 because this is a multimodal model."),
    ("0.4.9", "CUDA", "Multimodal model: Dynamically adjusted --mem-fraction-static from: 0.85 to: 0.792."),
    ("0.4.9-0.5.23", "CUDA", "Automatically turn off --chunked-prefill-size as it is not supported for mllama"),
    ("0.4.6-0.5.15", "CUDA", "DP attention is enabled. The chunked prefill size is adjusted to 1024 to avoid MoE kernel issues. "),
    ("0.5.16-0.5.23", "CUDA", "DP attention is enabled. chunked prefill size is adjusted from 8192 to 1024."),
    ("0.4.6-0.5.16", "CUDA", "DeepEP MoE is enabled. The expert parallel size is adjusted to be the same as the tensor parallel size[8]."),
    ("0.5.17-0.5.23", "CUDA", "deepep MoE is enabled. The expert parallel size is adjusted from 1 to the tensor parallel size [8]."),
    (
        "0.5.6-0.5.16",
        "NPU",
        "Ascend fused EP MoE is enabled. The expert parallel size is adjusted to be the same as the tensor parallel size[8].",
    ),
    ("0.5.3", "CUDA", "Setting mem fraction static to 0.8 for DeepSeek NSA."),
    ("0.5.3-0.5.7", "CUDA", "Setting page size to 64 for DeepSeek NSA."),
    ("0.5.8-0.5.11", "ROCm", "Setting page size to 1 for DeepSeek DSA on ROCm."),
    ("0.5.20-0.5.23", "XPU", "Setting page size to 128 for DeepSeek DSA on XPU."),
    ("0.5.10-0.5.23", "ROCm", "Setting page_size=16 for aiter unified attention on Qwen3VLForConditionalGeneration."),
    ("0.5.3-0.5.3", "CUDA", "Setting KV cache dtype to fp8."),
    ("0.5.8-0.5.23", "CUDA", "Setting KV cache dtype to bfloat16 for DeepSeek DSA on SM12 device."),
    ("0.5.20-0.5.23", "XPU", "Setting KV cache dtype to bfloat16 for DeepSeek DSA on XPU."),
    ("0.5.17-0.5.22", "CUDA", "Kimi-K3 DCP with tokenspeed mla backend overrides KV cache dtype: auto -> 'fp8_e4m3'."),
    (
        "0.5.16-0.5.23",
        "CUDA",
        "DFLASH fa4 draft: overriding KV cache dtype torch.float8_e4m3fn -> torch.bfloat16 (fa4 needs K.dtype == Q.dtype).",
    ),
    ("0.5.4-0.5.15", "CUDA", "--kv-cache-dtype falls back to 'auto' because this torch version does not support torch.float4_e2m1fn_x2"),
    (
        "0.5.20-0.5.23",
        "CUDA",
        "--kv-cache-dtype=bfloat16 is ignored on the unified_kv path; SGLANG_DSV4_UNIFIED_KV_FP8=1 stores the latent as fp8.",
    ),
    ("0.5.12-0.5.23", "CUDA", "Setting max_running_requests to 256 for DeepseekV4ForCausalLM."),
    ("0.5.4-0.5.23", "any", "Max running requests is reset to 48 for speculative decoding. You can override this by setting it."),
    (
        "0.5.14-0.5.23",
        "any",
        "max_running_requests was reduced from the requested 256 to 64 (per dp worker) due to the available KV cache capacity.",
    ),
    (
        "0.5.17-0.5.23",
        "CUDA",
        "max_running_requests is capped to 32 by the mamba state cache (max_mamba_cache_size=96, 3 state slots per request).",
    ),
    ("0.5.16-0.5.23", "CUDA", "Post-capture KV sizing: max_running_requests 256 -> 64"),
    ("0.5.20-0.5.23", "CUDA", "SWA ring: swa_max_total_num_tokens 4096 -> 2048 (fixed per-request SWA ring capacity)."),
    (
        "0.5.23",
        "any",
        "KV pool holds 192406 tokens, fewer than --context-length 200000. One full-length request cannot fit, so long requests ...",
    ),
    ("0.4.6", "CUDA", "speculative_eagle_topk is adjusted to 1 when page_size > 1"),
    ("0.5.11-0.5.23", "CUDA", "DFLASH only supports speculative_num_steps == 1; overriding speculative_num_steps=3 to 1."),
    (
        "0.5.15-0.5.20",
        "CUDA",
        "DFLASH draft worker only supports attention_backend in ['fa3'] for now, but got 'triton'. Falling back to 'fa3'.",
    ),
    ("0.5.3-0.5.23", "any", "Overriding the draft model's max_position_embeddings to 200000."),
    ("0.4.6-0.5.23", "CUDA", "FlashAttention3 only supports fp8_e4m3 if using FP8; Setting attention backend to triton."),
    ("0.5.10-0.5.23", "NPU", "Attention backend is overridden to 'ascend' when running on NPU for diffusion LLM inference."),
    ("0.5.7-0.5.23", "any", "Fallback load_format to 'auto' due to 'transfer_engine' backend is not supported."),
    ("0.5.12-0.5.23", "CUDA", "Use dsv4 attention backend for DeepseekV4ForCausalLM, setting page_size to 256."),
    (
        "0.5.11-0.5.13",
        "CUDA",
        "NemotronHForCausalLM with radix cache requires page_size=1 in the current Mamba scheduling mode (no_buffer), but got 64.",
    ),
    ("0.5.1-0.5.23", "CUDA", "Disable hybrid SWA memory for Gemma2ForCausalLM as it is not yet supported."),
    ("0.5.7-0.5.10", "CUDA", "Reset swa_full_tokens_ratio to 1.0 for MiMoV2FlashForCausalLM model with hierarchical cache"),
    ("0.5.4-0.5.13", "any", "Disabling Radix Cache for Step3VLForConditionalGeneration as it is not yet supported."),
    ("0.5.11-0.5.13", "ROCm", "Speculative decoding for Qwen3NextForCausalLM is not compatible with radix cache on ROCm devices."),
    ("0.4.6-0.5.23", "CPU", "Cuda graph is disabled because of using torch native attention backend"),
    ("0.5.8-0.5.23", "ROCm", "Cuda graph is disabled for diffusion LLM inference on AMD GPUs"),
    ("0.5.14", "XPU", "XPU platform does not support piecewise CUDA graph, disabling prefill cuda graph."),
    ("0.5.15-0.5.23", "XPU", "XPU platform only supports decode backend 'full'; disabling unsupported decode backend 'breakable'."),
    ("0.5.14-0.5.23", "CPU", "--debug-cuda-graph is not supported on non CUDA/HIP devices. Disabling breakable CUDA graph."),
    (
        "0.5.14-0.5.23",
        "CUDA",
        "Disable DFLASH draft cuda graph because only 1.10 GB GPU memory is available after target backend initialization.",
    ),
    ("0.5.16-0.5.17", "CUDA", "Disabling auto-selected prefill CUDA graph: only 3.10 GiB is free after model/KV/eager-buffer allocation;"),
    ("0.5.10-0.5.13", "CUDA", "Disable piecewise CUDA graph because the model is not a language model"),
    ("0.4.9-0.5.18", "CUDA", "Mixed chunked prefill is disabled because of using eagle speculative decoding."),
    (
        "0.5.5-0.5.8",
        "CUDA",
        "Disabling overlap schedule since MambaRadixCache is not compatible with overlap schedule currently, try to use",
    ),
    ("0.5.3-0.5.5", "CUDA", "Qwen3NextForCausalLM model detected, disable radix cache"),
    ("0.5.13-0.5.23", "CUDA", "Enabled DSA context parallel: strategy=round-robin, dp_size=1, moe_dense_tp_size=1, ep_size=8, tp_size=8"),
]
CHANGES = [Form(releases, platform, text[:60], *whole(Changed, text)) for releases, platform, text in CHANGED]

FORMS = [*ARGUMENTS, *GROUPS, *WEIGHTS, *PROGRESS, *POOLS, *CAPTURES, *LAST_LINES, *ENDS, *CHANGES]


@pytest.mark.parametrize("form", FORMS, ids=label)
def test_each_form_of_a_sentence_gives_its_event(form):
    assert [record.event for record in parse_record(form.text)] == form.says


END = "Memory pool end. avail mem=1.00 GB"
TIME = "2026-05-30 22:08:02"
# says: rank, time in the bracket, process id
PREFIXES = [
    Form("0.4.3-0.5.23", "any", "no rank", f"[2026-05-30 22:08:02] {END}", (Rank(), TIME, None)),
    Form("0.4.0-0.4.2", "CUDA", "rank even where there is one", f"[2026-05-30 22:08:02 TP0] {END}", (Rank(tp=0), TIME, None)),
    Form("0.4.3-0.5.23", "any", "TP", f"[2026-05-30 22:08:02 TP3] {END}", (Rank(tp=3), TIME, None)),
    Form("0.4.3-0.5.23", "any", "TP of one digit", f"[2026-05-30 22:08:02 TP1] {END}", (Rank(tp=1), TIME, None)),
    Form("0.4.1", "CUDA", "TP of two digits, on another node", f"[2026-05-30 22:08:02 TP10] {END}", (Rank(tp=10), TIME, None)),
    Form("0.5.2-0.5.23", "CUDA", "TP EP", f"[2026-05-30 22:08:02 TP0 EP1] {END}", (Rank(tp=0, ep=1), TIME, None)),
    Form("0.4.8", "ROCm", "DP TP", f"[2026-05-30 22:08:02 DP7 TP6] {END}", (Rank(tp=6, dp=7), TIME, None)),
    Form("0.5.12", "NPU", "DP TP EP", f"[2026-05-30 22:08:02 DP0 TP0 EP0] {END}", (Rank(tp=0, dp=0, ep=0), TIME, None)),
    Form("0.5.6", "CUDA", "PP TP", f"[2026-05-30 22:08:02 PP0 TP1] {END}", (Rank(tp=1, pp=0), TIME, None)),
    Form("0.4.6-0.4.9", "any", "DP TP PP", f"[2026-05-30 22:08:02 DP1 TP2 PP3] {END}", (Rank(tp=2, pp=3, dp=1), TIME, None)),
    Form(
        "0.5.9-0.5.23",
        "any",
        "all labels",
        f"[2026-05-30 22:08:02 DP1 PP2 ATTN_CP3 MOE_DP4 TP5 EP6] {END}",
        (Rank(tp=5, pp=2, dp=1, ep=6), TIME, None),
    ),
    Form("0.5.3-0.5.23", "any", "milliseconds", f"[2026-05-30 22:08:02.123 TP1] {END}", (Rank(tp=1), "2026-05-30 22:08:02.123", None)),
    Form("0.5.20-0.5.23", "CUDA", "rank without time", f"[TP4] {END}", (Rank(tp=4), "", None)),
    Form("0.5.14", "CUDA", "time without date", f"[08:00:27] {END}", (Rank(), "08:00:27", None)),
    Form("0.4.0-0.5.23", "any", "nothing", END, (Rank(), "", None)),
    Form(
        "0.5.23",
        "ROCm",
        "docker and kubectl",
        f"2026-09-23T08:24:42.655136271Z [2026-05-30 22:08:02 DP0 TP0] {END}",
        (Rank(tp=0, dp=0), TIME, None),
    ),
    Form("any", "any", "kubectl with an offset", f"2026-09-23T08:24:42.655136271+02:00 {END}", (Rank(), "", None)),
    Form("any", "any", "container runtime", f"2026-09-23T08:24:42.655136271Z stderr F {END}", (Rank(), "", None)),
    Form("any", "any", "pod's name", f"[pod/sglang-0/server] [2026-05-30 22:08:02 TP2] {END}", (Rank(tp=2), TIME, None)),
    Form("any", "any", "compose", f"sglang-1  | [2026-05-30 22:08:02 TP0] {END}", (Rank(tp=0), TIME, None)),
    Form("0.5.14", "CUDA", "tracing", f"2026-06-01T01:11:53.390560Z  INFO scheduler.init_model_worker: {END}", (Rank(), "", None)),
    Form(
        "0.5.14",
        "CUDA",
        "tracing, words on the next line",
        f"2026-06-01T01:11:53.390560Z INFO scheduler.init_model_worker:\n{END}",
        (Rank(), "", None),
    ),
    Form(
        "0.4.5",
        "CUDA",
        "logging configuration with a process id",
        f"2025-04-13 14:53:45 INFO 507 [model_runner.py:313] {END}",
        (Rank(), "", 507),
    ),
    Form(
        "0.5.20",
        "CUDA",
        "journal in another locale",
        f"août 28 18:14:37 gpu01 bash[9]: [2026-05-30 22:08:02 TP1] {END}",
        (Rank(tp=1), TIME, None),
    ),
    Form("any", "any", "journal", f"May 30 18:14:37 gpu01 python3[9]: {END}", (Rank(), "", 9)),
    Form("any", "any", "torch's global rank", f"[rank6]: {END}", (Rank(), "", None)),
]


@pytest.mark.parametrize("form", PREFIXES, ids=label)
def test_each_prefix_is_understood(form):
    (record,) = [record for record in parse_record(form.text) if record.event]
    assert record.event == PoolEnd(1.0)
    assert (record.rank, record.stamp, record.pid) == form.says


# says: rank and free memory of each end of the pools
GLUED = [
    Form(
        "0.4.3",
        "CUDA",
        "bar before",
        "  0%|     | 0/13 [00:00<?, ?it/s][2026-05-30 22:08:02 TP1] Memory pool end. avail mem=1.45 GB",
        [(1, 1.45)],
    ),
    Form(
        "0.5.12",
        "CPU",
        "two states of a bar before",
        "Multi-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]Multi-thread loading shards: 100% Completed | 1/1 "
        "[00:00<00:00, 536.36it/s][2026-05-30 22:08:02 TP1] Memory pool end. avail mem=1.45 GB",
        [(1, 1.45)],
    ),
    Form(
        "any",
        "any",
        "bar before a record without a bracket",
        "Capturing batches (avail_mem=0.00 GB):   0%|          | 0/4 [00:00<?, ?it/s]Memory pool end. avail mem=1.45 GB",
        [(None, 1.45)],
    ),
    Form(
        "any",
        "any",
        "two records",
        "[2026-05-30 22:08:02 TP0] Memory pool end. avail mem=1.00 GB[2026-05-30 22:08:02 TP1] Memory pool end. avail mem=2.00 GB",
        [(0, 1.0), (1, 2.0)],
    ),
    Form(
        "any",
        "any",
        "carriage returns",
        "Loading: 0%\rLoading: 100%\r[2026-05-30 22:08:02 TP2] Memory pool end. avail mem=3.00 GB\r\n",
        [(2, 3.0)],
    ),
    Form("any", "any", "colour", "\x1b[32m[2026-05-30 22:08:02 TP2]\x1b[0m Memory pool end. avail mem=3.00 GB", [(2, 3.0)]),
    Form(
        "any",
        "any",
        "several lines in one message",
        "tracing\n[2026-05-30 22:08:02 TP2] Memory pool end. avail mem=3.00 GB\nmore",
        [(2, 3.0)],
    ),
]


@pytest.mark.parametrize("form", GLUED, ids=label)
def test_records_are_found_where_others_wrote_into_their_line(form):
    found = [(record.rank.tp, record.event.avail_gib) for record in parse_record(form.text) if isinstance(record.event, PoolEnd)]
    assert found == form.says


DECOYS = [
    ("0.5.6", "ROCm", f"{STAMP} max_total_num_tokens: arg=60000 vs profiled=16725761, using min"),
    ("0.5.6", "ROCm", f"{STAMP} req_to_token_pool: slots=4096 (profiled_max_total_num_tokens=16725761, context_len=163840), mem=2.68GB"),
    ("0.5.6", "ROCm", f"{STAMP} KV cache: MLA(kv_lora=512, rope=64) layers=2 dtype=torch.bfloat16 max_tokens=16725761"),
    ("0.5.18", "CUDA", f"{STAMP} Uneven DCP: restart with VECTOR=21,19,24 to raise max_total_num_tokens from 441536 to ~630784"),
    ("0.5.18", "CUDA", f"{STAMP} KV pool sizing: available_bytes=5083410432 (4.734 GiB), cell_size=14143 -> max_total_num_tokens=359424"),
    ("0.5.18", "CUDA", f"{STAMP} Uneven-DCP token sizing: rank 1 local capacity 90816 tokens -> EFFECTIVE max_total_num_tokens 90816"),
    ("any", "any", "profiled_max_total_num_tokens=16725761"),
    ("any", "any", "max_total_num_tokens = 193408"),
    ("any", "any", f"{STAMP} VirtualKV Cache is allocated. #tokens: 99, K size: 1.00 GB, V size: 1.00 GB"),
    ("any", "any", "INFO 05-30 22:08:02 kv_cache_utils.py:870] GPU KV cache size: 178,880 tokens"),
    ("0.5.14", "CUDA", "[08:00:27] TriAxialKV pool: 1614368 INT2 slots (50449 pages of 32) + 284898 INT4 slots"),
    ("0.5.12-0.5.23", "any", f"{STAMP} KV Cache skipped (no-op pool). Logical #tokens: 512, physical K/V size: ~1.0 KB placeholder"),
    ("0.5.7-0.5.11", "CUDA", f"{STAMP} Routing experts host buffer allocated. #tokens: 4096, size: 0.10 GB"),
    ("0.5.10-0.5.17", "CUDA", f"{STAMP} SWAKVPool mem usage: 4.00 GB, swa size: 4096, full size: 8192"),
    ("0.5.18-0.5.23", "CUDA", f"{STAMP} SWAKVPool VA upper bound: 4.00 GB, swa size: 4096, full size: 8192"),
    ("0.5.12-0.5.14", "NPU", f"{STAMP} DSV4 memory calculation: bytes_per_full_token=1.00, available_bytes=3.00 GB, full_token=32768"),
    ("0.5.12-0.5.20", "NPU", f"{STAMP} Initialize DeepSeekV4TokenToKVPool with max_num_reqs=4 swa_size=3200 c4_size=8192 c128_size=256"),
    ("0.5.15-0.5.23", "CUDA", f"{STAMP} [unified-memory-pool] UnifiedKVPool allocated: total_bytes=4.00 GB (=4294967296 B), 2 sub-pool(s)"),
    (
        "0.5.16-0.5.23",
        "CUDA",
        f"{STAMP} Post-capture KV sizing: decode CUDA graph max_bs=64 < max_running_requests=256; reserving headroom",
    ),
    ("0.5.20-0.5.23", "CUDA", f"{STAMP} Post-capture KV sizing: KV-canary per-forward workspace 0.10 GB"),
    ("0.5.14-0.5.23", "CUDA", f"{STAMP} int8 mamba checkpoint pool: 64 slots, 0.50GB (qdata 0.40 + scale 0.05 + conv 0.05)"),
    ("0.5.17-0.5.23", "ROCm", f"{STAMP} Allocating kv hierarchical KV host pool: 3423488 tokens, 153.81 GB host memory."),
    (
        "0.5.10-0.5.23",
        "MPS",
        f"{STAMP} MLX stub: initialized minimal pools (max_total_num_tokens=4096, max_running_requests=8, zero GPU KV)",
    ),
    ("0.4.6-0.5.23", "any", f"{STAMP} Update engine weights online from disk begin. avail mem=5.00 GB"),
    ("0.4.9-0.5.23", "CUDA", f"{STAMP} LoRA adapter loading starts: a. avail mem=5.00 GB"),
    ("0.5.21-0.5.23", "CPU", f"{STAMP} Memory baseline taken. mem usage=0.00 GB"),
    ("0.5.12", "CUDA", f"{STAMP} Init attention backend end. elapsed=0.03 s"),
    ("0.4.0-0.5.13", "MUSA", f"{STAMP} Capture cuda graph bs [1, 2, 4, 8, 10]"),
    ("0.5.2-0.5.23", "CPU", f"{STAMP} Capture cpu graph bs [1, 2, 4, 8]"),
    ("0.5.3-0.5.13", "CUDA", f"{STAMP} Capture cuda graph num tokens [4, 8, 12]"),
    ("0.5.21-0.5.23", "CUDA", f"{STAMP} Capturing 12 prefill CUDA graph token shapes with fixed max_context_size=4096"),
    ("0.5.1-0.5.23", "CUDA", "DeepGEMM warmup:  45%|████      | 45/100 [00:18<00:22,  4.51it/s]"),
    ("0.5.7-0.5.23", "CUDA", "quant weights to fp8 ue8m0:  45%|████      | 45/100 [00:18<00:22,  4.51it/s]"),
    ("any", "any", "Loading safetensors checkpoint shards:  45% Completed"),
    ("0.5.10-0.5.13", "CUDA", f"{STAMP} Disable piecewise CUDA graph because --disable-piecewise-cuda-graph is set"),
    ("0.5.3-0.5.5", "CUDA", f"{STAMP} Disable piecewise CUDA graph because disable_cuda_graph is set"),
    ("0.5.14-0.5.23", "CPU", f"{STAMP} Disable prefill CUDA graph because cuda_graph_config resolved prefill.backend='disabled' (e.g. via"),
    ("0.4.5", "CUDA", f"{STAMP} Custom allreduce is disabled because this process group spans across nodes."),
    ("0.4.9-0.5.23", "any", f"{STAMP} Attention backend not specified. Use fa3 backend by default."),
    ("0.4.6-0.5.23", "any", f"{STAMP} Ignore import error when loading sglang.srt.models.midashenglm: No module named 'torchaudio'"),
    ("0.5.20", "ROCm", f"{STAMP} torch._dynamo metrics: compile times, Traceback (most recent call last): 8"),
    ("any", "any", "Unexpected error during package walk: cutlass.cute.experimental"),
    ("0.4.3", "CUDA", "loc(unknown): error: operation scheduled before its operands can be ignored"),
    ("any", "any", "cc1plus: error: unrecognized command-line option '-mfoo'"),
    ("0.4.6", "any", f"{STAMP} Decode out of memory happened. #retracted_reqs: 1"),
    ("0.4.9-0.5.23", "any", f"{STAMP} KV cache pool is full. Retract requests. #retracted_reqs: 1"),
    ("0.4.0-0.5.23", "any", f"{STAMP} INFO:     Application startup complete."),
    ("0.5.7-0.5.23", "any", f"{STAMP} Watchdog TokenizerManager initialized."),
    ("any", "any", f"{STAMP} Soft watchdog timeout (300)"),
    (
        "0.5.12",
        "NPU",
        "[rank1]:[W807 17:36:05.837219864 NPUGraph.cpp:223] Warning: Waiting for pending NCCL work to finish before starting.",
    ),
    (
        "0.4.5",
        "CUDA",
        "[rank6]:[E421 04:13:43.457389636 ProcessGroupGloo.cpp:143] Rank 6 successfully reached monitoredBarrier, but received",
    ),
    ("0.4.6", "CUDA", "2025-05-02 16:14:33,560 - INFO - flashinfer.jit: Prebuilt kernels not found, using JIT backend"),
    ("0.5.9", "ROCm", "[aiter] import [module_aiter_enum] under /opt/aiter/jit/module_aiter_enum.so"),
    ("0.5.9", "ROCm", "[Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7"),
    ("any", "any", "[kvcached][INFO][2026-05-30 22:08:02][interfaces.py:42] kvcached is allocated"),
    ("any", "CUDA", "gpu01:4242:4242 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.7<0>"),
    ("0.5.14", "XPU", "[TP0..3] Memory pool end. avail mem=1.00 GB"),
    ("any", "any", "FutureWarning: the pynvml package is deprecated"),
    (
        "0.5.7-0.5.23",
        "any",
        f'{STAMP} {{"event": "request.received", "obj": {{"text": "[2026-05-30 22:08:02 TP0] Scheduler hit an exception: x"}}}}',
    ),
    (
        "any",
        "any",
        f"{STAMP} Receive: obj=GenerateReqInput(text='[2026-05-30 22:08:02 TP0] KV Cache is allocated. #tokens: 999999, KV size: 1.00 GB')",
    ),
    (
        "any",
        "any",
        "ansible-inferops.sglang.allocation_info[9]: Invoked with log_text=[2026-05-30 22:08:02 TP0] KV Cache is allocated. #tokens: 99",
    ),
]


@pytest.mark.parametrize(
    "text", [row[2] for row in DECOYS], ids=[f"{row[0]} {row[1]} {row[2].replace(STAMP, '').strip()[:60]}" for row in DECOYS]
)
def test_what_only_looks_like_a_sentence_gives_no_event(text):
    assert [record.event for record in parse_record(text) if record.event] == []


def test_what_sglang_changes_while_it_reads_its_arguments_is_printed_before_them():
    """As the real engine does: whoever cuts boots at the arguments has to look before the cut."""
    events = [
        record.event
        for line in (LOGS / "0.5.12.post1-llama-tp1.log").read_text(encoding="utf-8").splitlines()
        for record in parse_record(line)
        if isinstance(record.event, (Changed, ServerArgs))
    ]
    assert [type(event) for event in events] == [Changed, ServerArgs]
    assert events[0].text == "Cuda graph is disabled because of using torch native attention backend"


def test_server_args_of_both_dump_forms_are_read_at_the_top_level():
    dumps = [
        "ServerArgs(model_path='/srv/a, b', model_loader_extra_config='{\"tp_size\": 4}', tp_size=8, ratio=-0.5, names=['x', (1, 2)], "
        "odd=None)",
        "{'model_path': '/srv/a, b', 'model_loader_extra_config': '{\"tp_size\": 4}', 'tp_size': 8, 'ratio': -0.5, 'names': ['x', (1, 2)], "
        "'odd': None}",
    ]
    expected = {
        "model_path": "/srv/a, b",
        "model_loader_extra_config": '{"tp_size": 4}',
        "tp_size": 8,
        "ratio": -0.5,
        "names": ["x", [1, 2]],
        "odd": None,
    }
    assert [parse_server_args(dump) for dump in dumps] == [expected, expected]


def test_a_nested_tp_size_is_not_the_servers():
    assert parse_server_args("{'extra': {'tp_size': 4, 'x': [1, {'pp_size': 2}]}, 'tp_size': 2}") == {
        "extra": {"tp_size": 4, "x": [1, {"pp_size": 2}]},
        "tp_size": 2,
    }


def test_a_value_that_is_no_literal_costs_only_itself():
    dump = "{'backend': <Backend.FULL: 0>, 'call': f(1, 2), 'tp_size': 2, 'cut': 'the line ends he"
    assert parse_server_args(dump) == {"backend": "<Backend.FULL: 0>", "call": "f(1, 2)", "tp_size": 2, "cut": "'the line ends he"}


def test_nothing_in_a_dump_is_executed(tmp_path):
    trap = tmp_path / "trap"
    parse_server_args(f"ServerArgs(a=open({str(trap)!r}, 'w'), b=__import__('os').mkdir({str(trap)!r}))")
    assert not trap.exists()


def test_secrets_are_masked():
    values = parse_server_args("ServerArgs(api_key='k1', admin_api_key='k2', ssl_keyfile_password='k3', hf_token='k4', max_total_tokens=5)")
    assert values == {"api_key": MASKED, "admin_api_key": MASKED, "ssl_keyfile_password": MASKED, "hf_token": MASKED, "max_total_tokens": 5}
    assert parse_server_args("ServerArgs(api_key=None)") == {"api_key": None}


# file, number of arguments, a few of them
DUMPS = [
    ("0.5.12.post1-llama-tp1.log", 381, {"tp_size": 1, "mem_fraction_static": 0.843, "max_total_tokens": 1048576, "page_size": 1}),
    ("0.5.23-llama-tp2.log", 546, {"tp_size": 2, "mem_fraction_static": 0.95, "max_total_tokens": 8192, "speculative_algorithm": None}),
]


@pytest.mark.parametrize(("name", "count", "some"), DUMPS)
def test_whole_dumps_of_the_real_engine_are_read(name, count, some):
    lines = (LOGS / name).read_text(encoding="utf-8").splitlines()
    (event,) = [record.event for line in lines for record in parse_record(line) if isinstance(record.event, ServerArgs)]
    assert len(event.values) == count
    assert {key: event.values[key] for key in some} == some


UNIT_LINES = [
    ("sglang.service: Main process exited, code=exited, status=1/FAILURE", UnitLine("exited", "code=exited, status=1/FAILURE")),
    ("sglang.service: Failed with result 'exit-code'.", UnitLine("failed", "exit-code")),
    ("sglang.service: start-post operation timed out. Terminating.", UnitLine("overdue", "start-post operation timed out")),
    ("sglang.service: start operation timed out. Terminating.", UnitLine("overdue", "start operation timed out")),
    ("sglang.service: Scheduled restart job, restart counter is at 3.", UnitLine("restart", "3")),
    ("sglang.service: Start request repeated too quickly.", UnitLine("limit", "Start request repeated too quickly")),
    ("sglang.service: A process of this unit has been killed by the OOM killer.", UnitLine("oom", "killed by the OOM killer")),
    ("sglang.service: Deactivated successfully.", UnitLine("ended", "Deactivated successfully")),
    ("Stopping SGLang...", UnitLine("stopped", "Stopping")),
    (
        "sglang.service: Failed at step EXEC spawning /opt/x: No such file or directory",
        UnitLine("exec", "Failed at step EXEC spawning /opt/x: No such file or directory"),
    ),
    ("Started SGLang.", None),
]


@pytest.mark.parametrize(("text", "expected"), UNIT_LINES)
def test_lines_of_the_service_manager(text, expected):
    assert parse_unit_line(text) == expected


def test_the_log_daemons_note_on_dropped_messages():
    text = "Suppressed 62498 messages from sglang-k26.service"
    assert parse_suppressed(text) == Suppressed(62498, text)
    assert parse_suppressed("Journal started") is None


ENDINGS = ["", " ", "\x1b[0m", "\r", "]", "[", "\n", "[2026-05-30 22:08:02 TP1] Memory pool end. avail mem=1.00 GB"]
TEXTS = [form.text for form in (*FORMS, *PREFIXES, *GLUED)] + [row[2] for row in DECOYS]
BARE_NOISE = re.compile(NOISE.encode())


@settings(max_examples=600, deadline=None)
@example("launch_server.py: error: unrecognized arguments: --mem-fraction 0.9", "\N{SUPERSCRIPT TWO}", "", 1)
@example("Traceback (most recent call last):", "12\N{NO-BREAK SPACE}", "", 1)
@example("AssertionError", "", "", 0)
@example("AssertionError", "INFO\t", "", 0)
@given(st.sampled_from(TEXTS), st.text(max_size=40), st.sampled_from(ENDINGS), st.integers(0, 200))
def test_no_raw_line_is_called_noise_that_holds_an_event(text, other, ending, cut):
    message = (other + text[cut % 7 :] + ending) if cut % 2 else (text[: len(text) - cut % 5] + other + ending)
    quoted = json.dumps({"MESSAGE": message, "_PID": "1"}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if is_noise(quoted) or BARE_NOISE.fullmatch(message.encode("utf-8", "replace")):
        assert [record.event for record in parse_record(message) if record.event] == []


@pytest.mark.parametrize("form", [form for form in FORMS if any(form.says)], ids=label)
def test_no_form_is_called_noise(form):
    quoted = json.dumps({"MESSAGE": form.text}, ensure_ascii=False, separators=(",", ":")).encode()
    assert not is_noise(quoted)
    assert not BARE_NOISE.fullmatch(form.text.encode())


# one character or word over and over, as far as a record is looked at, behind each kind of beginning
ENDLESS = [
    "[",
    "]",
    "[[]",
    "7",
    "a ",
    "a.",
    "A",
    "Error",
    "-",
    " ",
    "a| ",
    "INFO ",
    "[0",
    "[2026-05-30 ",
    "TP1 ",
    "\\'",
    "'\\",
    "{",
    "(",
    "a=(",
    ", ",
]
ENDLESS += ["Loading ", "Capturing (", "Capturing batches: 1%|", "\x1b[", "\x1b[0;", "1,", "AssertionErrorX", "a.B.", "\t", "\r"]
BEGINNINGS = [
    "",
    f"{STAMP} ",
    "\x1b[",
    f"{STAMP} server_args=ServerArgs(a=",
    f"{STAMP} KV Cache is allocated. #tokens: ",
    f"{STAMP} Capture ",
]


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("word", ENDLESS)
def test_a_record_of_any_length_is_read_in_time(word, beginning):
    """A search that gives back what it took would not come to an end here."""
    text = (beginning + word * 1_000_000)[:1_000_000]
    events = [record.event for record in parse_record(text) if record.event]
    assert [event for event in events if isinstance(event, (Ready, Fatal, Crash))] == []
    noise = is_noise(json.dumps({"MESSAGE": text}).encode()) or BARE_NOISE.fullmatch(text.encode())
    assert not (noise and events)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.builds(lambda a, b: a + b, st.sampled_from(TEXTS), st.text())))
def test_no_text_breaks_the_parser(text):
    for record in parse_record(text):
        assert record.headed in (True, False)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ServerArgs(){}[]'\",=:\\ 0123456789.a_-<>\n", max_size=200))
def test_no_dump_breaks_the_reader_of_arguments(text):
    assert isinstance(parse_server_args("{" + text), dict)
    assert isinstance(parse_server_args("ServerArgs(" + text), dict)


def test_noise_is_most_of_what_a_serving_server_writes():
    serving = [
        f"{STAMP} Decode batch, #running-req: 1, #token: 28, token usage: 0.00, cuda graph: True, gen throughput (token/s): 2.81",
        f"{STAMP} Prefill batch, #new-seq: 1, #new-token: 28, #cached-token: 0, token usage: 0.00",
        f'{STAMP} INFO:     10.0.0.7:38552 - "POST /generate HTTP/1.1" 200 OK',
        "/opt/x.py:71: UserWarning: is still supported",
    ]
    assert [is_noise(json.dumps({"MESSAGE": text}, separators=(",", ":")).encode()) for text in serving] == [True] * len(serving)
