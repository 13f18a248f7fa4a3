# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last words of a server, as SGLang's releases, torch and the service manager print them, to kind, rank, advice and next fraction.

Numbers are worked out by hand. The card of these starts has P = 80 GiB before the weights and A = 20 GiB after them, so the weights
need a share of 1 - 20/80 = 0.75; the smallest pool, 1/16 GiB, is another 0.00078125 of it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation, BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._failure_figures import (
    BootFigures,
    Exit,
    Shortage,
    exit_of,
    foreign_holders,
    lowered_fraction,
    meaning_of,
    minimum_fraction,
    raised_fraction,
    shortage_of,
    unbalanced_gib,
)
from ansible_collections.inferops.sglang.plugins.module_utils._failures import KINDS, Cause, Failure, failure_of, process_index, shortened
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import Rank
from ansible_collections.inferops.sglang.plugins.module_utils._summary import summary_of
from ansible_collections.inferops.sglang.plugins.test.sglang import pool_sufficient
from ansible_collections.inferops.sglang.tests.unit.boots import READY, stamped
from hypothesis import given, settings
from hypothesis import strategies as st

SITE = "/opt/sglang/lib/python3.12/site-packages/sglang"
CRASH = "Scheduler hit an exception: Traceback (most recent call last):"
FRAME = f'  File "{SITE}/srt/managers/scheduler.py", line 3401, in run_scheduler_process'

INIT = [stamped("TP0", "Init torch distributed begin.")]
LOADING = [*INIT, stamped("TP0", "Load weight begin. avail mem=80.00 GB")]
LOADED = [*LOADING, stamped("TP0", "Load weight end. avail mem=20.00 GB, mem usage=60.00 GB.")]
KV = stamped("TP0", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1000, KV size: 2.00 GB")
POOL = [*LOADED, KV, stamped("TP0", "Memory pool end. avail mem=7.00 GB")]
DRAFT_FIRST = [
    *LOADED, stamped("TP0", "Load weight begin. avail mem=20.00 GB"),
    stamped("TP0", "Load weight end. avail mem=20.00 GB, mem usage=0.00 GB."), *POOL[3:],
]
DRAFT_LATER = [*POOL, stamped("TP0", "Load weight begin. avail mem=7.00 GB")]
CAPTURING = [*POOL, stamped("TP0", "Capture cuda graph begin. This can take up to several minutes. avail mem=7.00 GB")]
CAPTURED = [*CAPTURING, stamped("TP0", "Capture cuda graph end. Time elapsed: 4.20 s. mem usage=1.00 GB. avail mem=6.00 GB.")]
SUMMED = [*CAPTURED, stamped("TP0", "max_total_num_tokens=1000, max_running_requests=48, context_len=2048, available_gpu_mem=6.00 GB")]
UP = [*SUMMED, stamped("", READY)]


def fold(lines: list, **options) -> Allocation:
    folder = BootFolder()
    folder.feed_all(line if isinstance(line, Entry) else Entry(line) for line in lines)
    return folder.result(Parallelism(), **options)


def arguments(fraction: float = 0.85, **values) -> str:
    return stamped("", f"server_args={ {'tp_size': 1, 'mem_fraction_static': fraction, **values}!r}")


def announced(*lines: str, frame: str = FRAME) -> list[str]:
    """An exception that the scheduler announces."""
    return [stamped("TP0", CRASH), frame, *lines]


def uncaught(*lines: str, file: str = "srt/entrypoints/engine.py", function: str = "launch") -> list[str]:
    """An exception of the main process, which ends it."""
    return ["Traceback (most recent call last):", f'  File "{SITE}/{file}", line 7, in {function}', "    self.run()", *lines]


def oom(asked: str, free: str, more: str = "") -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 94.50 GiB of which "
        f"{free} is "
        f"free. {more}Including non-PyTorch memory, this process has 93.80 GiB memory in use. Of the allocated memory 91.02 GiB is "
        f"allocated "
        "by PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )


# 970.00 - 676.81 = 293.19 MiB = 0.286318 GiB, of 80 GiB 0.003579: a share of 0.85 becomes 0.846421
OOM = oom("970.00 MiB", "676.81 MiB")
# 2 - 0.5 = 1.5 GiB, of 80 GiB 0.01875
LARGE_OOM = oom("2.00 GiB", "512.00 MiB")


class Death(NamedTuple):
    """A boot up to a stage, its last words, and what is to be said of it."""

    kind: str
    advice: str
    release: str
    before: list[str]
    last: list[str]
    next: Optional[float] = None
    minimum: Optional[float] = None
    fraction: float = 0.85
    words: tuple[str, ...] = ()


REFUSALS = [
    # without a figure of its own: max(0.75, 0.74) + 0.00078125 = 0.75078125
    Death("not_enough_memory", "raise", "0.4.6 to 0.5.4", LOADED,
          announced("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."), 0.7508, 0.75, 0.74, ("0.7508",)),
    Death("not_enough_memory", "raise", "0.5.5 to 0.5.9", LOADED,
          announced("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
                    "Current value: self.server_args.mem_fraction_static=0.74"), 0.7508, 0.75, 0.74),
    # a share above the minimum that still was too small: 0.7503 + 0.00078125
    Death("not_enough_memory", "raise", "0.5.10", LOADED,
          announced("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
                    "Current value: mem_fraction_static=0.7503"),
          0.7511, 0.75, 0.7503),
    # SGLang's own minimum, wrapped by whoever copied the log: 0.7512 + 0.00078125 = 0.75198125
    Death("not_enough_memory", "raise", "0.5.14 to 0.5.23", LOADED,
          announced("ValueError: Loaded weights leave no GPU memory for the KV cache under", "--mem-fraction-static=0.74. Raise",
                    "--mem-fraction-static above 0.752 (minimum viable = 1 - available/pre = 0.7512). If using speculative decoding, draft",
                    "weights are now counted."), 0.7520, 0.7512, 0.74),
    Death("not_enough_memory", "raise", "0.5.14, cut after the rounded figure", LOADED,
          announced("ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.74. "
                    "Raise --mem-fraction-static above 0.752"), 0.7528, 0.752, 0.74),
    # the card is full with the weights: no share under 1 leaves a pool
    Death("not_enough_memory", "impossible", "0.5.14, weights as large as the card",
          [*LOADING, stamped("TP0", "Load weight end. avail mem=0.03 GB, mem usage=79.97 GB.")],
          announced("ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.99. "
                    "Raise --mem-fraction-static above 1.000 (minimum viable = 1 - available/pre = 0.9996)."), None, 0.9996, 0.99,
          ("no fraction works", "more cards")),
    # two slots of 300 MiB in 0.9/1.9 of it: 0.5859375 x 1.9 / 0.9 = 1.236979 GiB, 0.436979 more than the 0.80 there are
    Death("hybrid_state", "raise", "0.5.14 to 0.5.23", LOADED,
          announced("RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=0 "
                    "(total_rest_memory=0.80 GB, mamba_cache_per_req=300.00 MB). Try: (1) reduce --max-running-requests, (2) increase "
                    "--mem-fraction-static, (3) reduce --speculative-num-draft-tokens, or (4) use GPUs with more memory."),
          0.7655, 0.75, 0.76),
    # -1.40 GiB to 0.412326 (two slots of 100 MiB) are 1.812326 GiB, 0.022654 of 80
    Death("hybrid_state", "raise", "0.5.18, less than nothing beside the weights", LOADED,
          announced("RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=-3 "
                    "(total_rest_memory=-1.40 GB, mamba_cache_per_req=100.00 MB)."), 0.7552, 0.75, 0.7325),
    Death("hybrid_state", "raise", "a form without figures", LOADED,
          announced("RuntimeError: Not enough GPU memory for hybrid state cache"), 0.7608, 0.75, 0.76),
    Death("hybrid_state", "raise", "0.5.13 to 0.5.23, slots for no request", LOADED,
          announced("RuntimeError: Hybrid (mamba/linear-attention) state cache is too small to serve any requests. max_mamba_cache_size=2, "
                    "mamba_ratio=3, resulting max_num_reqs=0."), 0.7608, 0.75, 0.76),
    Death("not_enough_memory", "raise", "0.5.14 to 0.5.23, a window that leaves nothing", LOADED,
          announced("RuntimeError: SWA pool cap (65536 tokens, 4.00 GiB) leaves no room for the full KV pool within the available 3.00 GiB."
                    " Reduce --max-running-requests, lower SGLANG_SWA_EVICTION_INTERVAL, or increase --mem-fraction-static."),
          0.7508, 0.75, 0.74),
    Death("not_enough_memory", "raise", "0.5.19 to 0.5.23, memory that pools share", LOADED,
          announced("RuntimeError: [unified-memory-pool] init_unified_swa_pools: byte budget 1048576 cannot fit ONE worst-case request "
                    "(bs=1 floor 2097152 = swa_window_kv 2097152)."), 0.7508, 0.75, 0.74),
    Death("not_enough_memory", "raise", "0.4.6 to 0.5.23, no room for a request", LOADED,
          announced("AssertionError: Memory pool size is too small"), 0.7508, 0.75, 0.74),
]

OOMS = [
    Death("oom_init", "other", "the card was full before", INIT, announced(OOM)),
    Death("oom_weights", "impossible", "torch 2.6 and later", LOADING, announced(OOM)),
    # without the draft both orders differ only by when it is loaded
    Death("oom_draft_weights", "lower", "up to 0.5.13", DRAFT_LATER, announced(OOM), 0.8464),
    Death("oom_pool", "lower", "0.5.9", LOADED, announced(OOM), 0.8464, None, 0.85, ("0.29 GiB were missing of 80.00 GiB",)),
    Death("oom_pool", "lower", "no load line is left", [KV], announced(OOM)),
    Death("oom_draft_pool", "lower", "0.5.14 and later", DRAFT_FIRST, announced(OOM), 0.8464),
    Death("oom_draft_pool", "lower", "up to 0.5.13",
          [*DRAFT_LATER, stamped("TP0", "Load weight end. avail mem=7.00 GB, mem usage=0.00 GB.")], announced(OOM), 0.8464),
    Death("oom_capture", "lower", "0.5.9", CAPTURING, announced(OOM), 0.8464),
    Death("oom_capture", "lower", "0.5.9, wrapped by SGLang", CAPTURING, announced(
        OOM, "", "During handling of the above exception, another exception occurred:", "", "Traceback (most recent call last):", FRAME,
        f"Exception: Capture cuda graph failed: {OOM.partition(': ')[2]}", "Possible solutions:",
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)"), 0.8464),
    Death("oom_capture", "lower", "torch up to 2.5", CAPTURING, announced(OOM.replace("torch.", "torch.cuda.")), 0.8464),
    Death("oom_capture", "lower", "torch up to 2.0", CAPTURING, announced(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB (GPU 0; 94.50 GiB total capacity; 91.02 GiB already "
        "allocated; 676.81 MiB free; 92.16 GiB reserved in total by PyTorch)"), 0.8464),
    Death("oom_capture", "lower", "ROCm, nothing is free", CAPTURING, announced(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 191.98 GiB of which 0 "
        "bytes is "
        "free."), 0.8312),
    Death("oom_capture", "lower", "NPU", CAPTURING, announced(
        "RuntimeError: NPU out of memory. Tried to allocate 1.50 GiB (NPU 0; 60.97 GiB total capacity; 58.30 GiB already allocated; "
        "58.30 GiB "
        "current active; 0 bytes free; 58.90 GiB reserved in total by PyTorch)"), 0.8312),
    Death("oom_capture", "lower", "NCCL's buffers", CAPTURING,
          announced("torch.distributed.DistBackendError: NCCL error: unhandled cuda error. Last error: Cuda failure 2 'out of memory'")),
    Death("oom_capture", "lower", "cuBLAS's workspace", CAPTURING,
          announced("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")),
    Death("oom_capture", "lower", "three graphs were captured, the lines before them are lost", [
        stamped("", "Load weight begin. avail mem=93.77 GB"),
        stamped("", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 295950, K size: 4.52 GB, V size: 4.52 GB"),
        stamped("", "Memory pool end. avail mem=21.57 GB"),
        stamped("", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 295950, K size: 3.39 GB, V size: 3.39 GB"),
        stamped("", "Memory pool end. avail mem=14.77 GB"),
        stamped("", "Capture target prefill CUDA graph end. elapsed=17.92 s, mem usage=3.85 GB, avail mem=10.85 GB."),
        stamped("", "Capture target verify CUDA graph end. elapsed=6.90 s, mem usage=6.13 GB, avail mem=4.72 GB."),
        stamped("", "Capture draft verify CUDA graph end. elapsed=1.96 s, mem usage=2.17 GB, avail mem=2.56 GB.")],
        [stamped("", CRASH), FRAME, OOM], 0.8469),  # of 93.77 GiB 0.003053
    Death("oom_warmup", "lower", "0.5.9", SUMMED, announced(OOM), 0.8464),
    Death("oom_prefill", "lower", "0.5.9", UP, announced(OOM, frame=FRAME.replace("run_scheduler_process", "forward_extend")), 0.8464),
    Death("oom_decode", "lower", "0.5.9", UP, announced(OOM, frame=FRAME.replace("run_scheduler_process", "forward_decode")), 0.8464),
    # the largest share that leaves 1.5 GiB is 0.76 - 0.01875 = 0.74125, and the weights need more
    Death("oom_capture", "impossible", "both bounds cross", CAPTURING, announced(LARGE_OOM), None, 0.75, 0.76, ("0.7412", "0.7500")),
    # 0.8 - 0.01875
    Death("oom_capture", "lower", "both bounds leave a share", CAPTURING, announced(LARGE_OOM), 0.7812, None, 0.8),
    Death("foreign_process", "other", "torch names another process", CAPTURING,
          announced(oom("970.00 MiB", "676.81 MiB", "Process 4117 has 28.50 GiB memory in use. ")),
          words=("process 4117 holds 28.50 GiB",)),
    Death("oom_capture", "lower", "another process holds less than what is missing", CAPTURING,
          announced(oom("2.00 GiB", "512.00 MiB", "Process 4117 has 1.20 GiB memory in use. ")), 0.8312),
    Death("oom_capture", "lower", "a desktop on the card", CAPTURING,
          announced(oom("970.00 MiB", "676.81 MiB", "Process 912 has 410.00 MiB memory in use. ")), 0.8464),
    Death("oom_capture", "lower", "in a container the server itself is a process of another number", CAPTURING, announced(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB. GPU 0 has a total capacity of 94.50 GiB of which "
        "676.81 MiB "
        "is free. Process 2411 has 93.80 GiB memory in use. Of the allocated memory 91.02 GiB is allocated by PyTorch, and 1.14 GiB is "
        "reserved by PyTorch but unallocated."), 0.8464),
    Death("pool_exhausted", "raise", "0.5.9 and later", UP,
          announced("RuntimeError: Prefill out of memory. Try to lower your batch size.", "Try to allocate 8192 tokens.")),
    Death("pool_exhausted", "raise", "0.5.9 and later", UP, announced(
        "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller "
        "number for `--max-running-requests`.")),
    Death("pool_exhausted", "raise", "hybrid models", UP, announced("AssertionError: Can not alloc mamba cache, try to increase")),
]

# SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK is on unless it is switched off
_UNBALANCED = "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
_FIGURES = "{name}=147.93701171875, local_gpu_memory=176.25, local_gpu_memory * 0.9=158.625"
_BOTH = ("147.94 GiB free", "176.25 GiB", "158.62 GiB")  # 158.625 is exact, so it rounds to even
OTHERS = [
    Death("unbalanced", "other", "0.4.6 to 0.5.6", INIT,
          announced(f"ValueError: {_UNBALANCED}{_FIGURES.format(name='min_per_gpu_memory')}"), words=_BOTH),
    Death("unbalanced", "other", "0.5.7 to 0.5.9", INIT,
          announced(f"RuntimeError: {_UNBALANCED}{_FIGURES.format(name='min_per_gpu_memory')}"), words=_BOTH),
    Death("unbalanced", "other", "0.5.10 to 0.5.23", INIT,
          announced(f"RuntimeError: {_UNBALANCED}{_FIGURES.format(name='pre_model_load_memory')}"), words=_BOTH),
    Death("unbalanced", "other", "cut before its figures", INIT, announced(f"RuntimeError: {_UNBALANCED}")),
    Death("foreign_process", "other", "a card in exclusive use", INIT,
          announced("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable")),
    Death("host_memory", "other", "torch", LOADING,
          announced("RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
                    "allocate 117440512 bytes. Error code 12 (Cannot allocate memory)")),
    Death("host_memory", "other", "0.4.9 to 0.5.23, the second level of the cache", LOADED,
          announced("ValueError: Not enough host memory available. Requesting 300.00 GB but only have 100.00 GB free. Please reduce the "
                    "size of the hierarchical cache.")),
    Death("host_memory", "other", "Python", LOADING, announced("MemoryError")),
    Death("no_device", "other", "no driver", [], uncaught(
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from the "
        "vendor")),
    Death("no_device", "other", "no card in sight", [], uncaught("RuntimeError: No CUDA GPUs are available")),
    Death("no_device", "other", "0.5.9", [], uncaught("RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA) is available.",
                                                      file="srt/server_args.py", function="__post_init__")),
    Death("no_device", "other", "more ranks than cards", INIT, announced("RuntimeError: CUDA error: invalid device ordinal")),
    Death("missing_kernel", "other", "another card", LOADED,
          announced("RuntimeError: CUDA error: no kernel image is available for execution on the device")),
    Death("missing_kernel", "other", "sgl_kernel is not installed", [], uncaught("ModuleNotFoundError: No module named 'sgl_kernel'")),
    Death("missing_kernel", "other", "sgl_kernel of another torch", [], uncaught(
        "ImportError: ", "[sgl_kernel] CRITICAL: ", "Could not load any common_ops library!", "Attempted locations:")),
    Death("missing_kernel", "other", "a library of another version", [], uncaught(
        "ImportError: /opt/sglang/lib/python3.12/site-packages/sgl_kernel/sm100/common_ops.abi3.so: undefined symbol: "
        "_ZN3c104cuda9SetDeviceEab")),
    Death("missing_kernel", "other", "CUDA's runtime is missing", [],
          uncaught("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory")),
    Death("missing_kernel", "other", "an old driver", INIT, announced(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver")),
    Death("missing_kernel", "other", "0.5.9 on a card below sm75", INIT, announced("RuntimeError: SGLang only supports sm75 and above.")),
    Death("missing_kernel", "other", "a quantisation above the card", LOADING, announced(
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 80. Current capability: 75.")),
    Death("unsupported_model", "other", "0.5.9", LOADING, announced(
        "ValueError: Model architectures ['KimiK3ForCausalLM'] are not supported for now. Supported architectures: "
        "dict_keys(['LlamaForCausalLM'])")),
    Death("unsupported_model", "other", "Transformers", [], uncaught(
        "ValueError: The checkpoint you are trying to load has model type `kimi_k3` but Transformers does not recognize this architecture.",
        file="srt/configs/model_config.py")),
    Death("tensor_parallel", "other", "heads", LOADING, announced("AssertionError: 64 is not divisible by 7")),
    Death("tensor_parallel", "other", "blocks of a quantisation", LOADING, announced(
        "ValueError: Weight input_size_per_partition = 2368 is not divisible by weight quantization block_k = 128.")),
    Death("bad_arguments", "other", "argparse, a flag", [],
          ["usage: launch_server.py [-h] --model-path MODEL_PATH", "launch_server.py: error: unrecognized arguments: --mem-fraction"]),
    Death("bad_arguments", "other", "argparse, a value", [],
          ["launch_server.py: error: argument --speculative-algorithm: invalid choice: 'DDTREE' (choose from 'DFLASH')"]),
    Death("bad_arguments", "other", "argparse of the command of later releases", [],
          ["sglang serve: error: unrecognized arguments: --tp-sise 8"]),
    Death("bad_arguments", "other", "0.5.9, an AssertionError of ServerArgs", [], uncaught(
        "AssertionError: base_gpu_id must be non-negative", file="srt/server_args.py", function="check_server_args")),
    Death("bad_arguments", "other", "0.5.9, without a word", [],
          uncaught("AssertionError", file="srt/server_args.py", function="_handle_data_parallelism")),
    Death("bad_arguments", "other", "0.5.23, a ValueError of a hook", [], uncaught(
        "ValueError: --enable-watermark requires --device cuda, got 'cpu'", file="srt/arg_groups/validation_hook.py")),
    Death("bad_arguments", "other", "a context above the model's", [], uncaught(
        "ValueError: User-specified context_length (300000) is greater than the derived context_length (262144).",
        file="srt/configs/model_config.py")),
    Death("missing_file", "other", "a shard", LOADING, announced(
        'FileNotFoundError: No such file or directory: "/srv/models/k26/model-00001-of-000064.safetensors"')),
    Death("missing_file", "other", "no weights at all", LOADING,
          announced("RuntimeError: Cannot find any model weights with `/srv/models/k26`")),
    Death("missing_file", "other", "no configuration", [], uncaught(
        "OSError: /srv/models/k26 does not appear to have a file named config.json.", file="srt/configs/model_config.py")),
    Death("missing_file", "other", "a name where the hub is out of reach", [], uncaught(
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.")),
    Death("missing_file", "other", "no SGLang", [], uncaught("ModuleNotFoundError: No module named 'sglang'")),
    Death("damaged_file", "other", "a shard cut short", LOADING,
          announced("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer")),
    Death("damaged_file", "other", "a shard, newer words", LOADING,
          announced("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered")),
    Death("damaged_file", "other", "a shard that is no shard", LOADING,
          announced("safetensors_rust.SafetensorError: Error while deserializing header: header too large")),
    Death("damaged_file", "other", "a configuration", [], uncaught(
        "OSError: It looks like the config file at '/srv/models/k26/config.json' is not a valid JSON file.",
        file="srt/configs/model_config.py")),
    Death("damaged_file", "other", "an index", LOADING,
          announced("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)")),
    Death("disk_full", "other", "a cache of kernels", CAPTURING,
          announced("OSError: [Errno 28] No space left on device: '/root/.triton/cache/7f'")),
    Death("port_in_use", "other", "the server's own port", SUMMED, [stamped(
        "", "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use")]),
    Death("port_in_use", "other", "a port between its processes", [],
          uncaught("zmq.error.ZMQError: Address already in use (addr='tcp://*:30101')")),
    Death("port_in_use", "other", "the port of the process groups", INIT, announced(
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 30103, useIpv6: "
        "false, "
        "code: -98, name: EADDRINUSE, message: address already in use")),
    Death("port_in_use", "other", "0.5.9, ports of data parallelism", [], uncaught(
        "ValueError: Port is already in use. dist_init_port=30001 port_base=30002", file="srt/server_args.py")),
    Death("port_in_use", "other", "0.5.9, waited for in vain", [], uncaught(
        "ValueError: nccl_port at 30103 is not available in 30 seconds. nccl_port is used by a process already. process.name()='python'")),
    Death("permission", "other", "the model", [], uncaught("PermissionError: [Errno 13] Permission denied: '/srv/models/k26/config.json'")),
    Death("rendezvous", "other", "torch, a store that nobody joins", INIT,
          announced("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/8 clients joined.")),
    Death("rendezvous", "other", "torch, a host that does not answer", INIT, announced(
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 5000).")),
    Death("rendezvous", "other", "torch, a barrier", INIT, announced(
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 "
        "(world_size=2, num_workers_joined=1, timeout=0:30:00)")),
    Death("nccl", "other", "a peer is gone", INIT,
          announced("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356")),
    Death("nccl", "other", "a collective that timed out", LOADED, [
        "[rank7]:[E421 04:13:43.457389636 ProcessGroupNCCL.cpp:629] [Rank 7] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=2)"]),
    Death("device_error", "other", "CUDA", POOL, announced("RuntimeError: CUDA error: an illegal memory access was encountered")),
    Death("device_error", "other", "a broken card", LOADING, announced("RuntimeError: CUDA error: uncorrectable ECC error encountered")),
    Death("capture_failed", "other", "0.5.2 to 0.5.23 on a CPU", CAPTURING,
          announced("Exception: Capture CPU graph failed: operation not permitted")),
    Death("capture_failed", "other", "0.5.9", CAPTURING, announced("Exception: Capture cuda graph failed: operation not permitted")),
    Death("hang", "other", "0.4.6 to 0.5.8", UP, [stamped("TP0", "Watchdog timeout (self.watchdog_timeout=300)")]),
    Death("hang", "other", "0.5.9 to 0.5.23", UP,
          [stamped("TP0", "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)")]),
    Death("child_died", "other", "up to 0.5.9", LOADED,
          [stamped("", "Rank 0 scheduler is dead. Please check if there are relevant logs."), stamped("", "Exit code: -9"),
           *uncaught("EOFError")], words=("SIGKILL",)),
    Death("child_died", "other", "0.5.10 and later", LOADED, uncaught(
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS "
        "OOM killer."), words=("exit code -9 is SIGKILL", "OOM killer")),
    Death("child_died", "other", "0.5.10 and later, native code", LOADED,
          uncaught("RuntimeError: Rank 0 scheduler died during initialization (exit code: -11)."), words=("SIGSEGV",)),
    Death("child_died", "other", "0.5.10 and later, once it runs", UP, [stamped(
        "", "Subprocess scheduler_0 (pid=77) crashed with exit code -9. Triggering SIGQUIT for cleanup...")], words=("SIGKILL",)),
    Death("unknown_exception", "other", "anything else", LOADED, announced("KeyError: 'rope_theta'")),
]  # fmt: skip
DEATHS = [*REFUSALS, *OOMS, *OTHERS]


@pytest.mark.parametrize("death", DEATHS, ids=[f"{death.kind}: {death.release}" for death in DEATHS])
def test_each_death_has_its_kind_its_direction_and_the_next_fraction(death):
    # what fails before the arguments are printed leaves no such line
    lines = [arguments(death.fraction), *death.before, *death.last] if death.before else death.last
    allocation = fold(lines, ended=True)
    failure = allocation.failure
    assert (failure.kind, failure.advice) == (death.kind, death.advice)
    assert (failure.next_fraction, failure.minimum_fraction) == (death.next, death.minimum)
    assert [word for word in death.words if word not in failure.remedy] == []
    assert (allocation.phase, allocation.ready) == ("failed", False)
    assert not pool_sufficient(allocation.as_dict(), 1)


def test_a_warning_of_unbalanced_memory_is_a_note_with_both_figures():
    [note] = [note for note in fold([arguments(), *INIT, *HARMLESS["unbalanced memory as a warning"]]).notes if "unbalanced" in note]
    assert [word for word in _BOTH if word not in note] == []
    [bare] = [note for note in fold([arguments(), *INIT, stamped("TP0", _UNBALANCED)]).notes if "unbalanced" in note]
    assert "figures are not in the log" in bare


def test_the_table_of_the_documentation_is_the_one_in_the_code():
    lines = (Path(__file__).parents[2] / "docs/failures.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    told = {kind.strip("`"): remedy.strip(" |") for kind, _seen, _advice, remedy in rows}
    # what several kinds share is written once, and "as" with the name of the row that has it in the others
    as_another = {kind: remedy[4:-1] for kind, remedy in told.items() if remedy.startswith("as `")}
    assert [(kind, advice, told[as_another.get(kind, kind)]) for kind, advice in zip(told, (row[2] for row in rows))] == [
        (name, kind.advice, kind.remedy) for name, kind in KINDS.items()
    ]
    assert len(set(told.values()) - {f"as `{kind}`" for kind in told}) == len(told) - len(as_another)


def test_every_kind_has_a_remedy_and_a_known_direction():
    assert {kind.advice for kind in KINDS.values()} <= {"raise", "lower", "impossible", "other"}
    assert all(len(kind.remedy) > 30 for kind in KINDS.values())


# --- the words that are none

HARMLESS = {
    "a traceback of torch's metrics": [
        "Traceback (most recent call last):", '  File "torch/_dynamo/utils.py", line 1424, in record_metrics', "RuntimeError: metrics "
        "are not available",
    ],
    "an import that is tried": ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'cutlass'"],
    "an import that is logged": [stamped("TP0", "Ignore import error when loading sglang.srt.models.grok: No module named 'cutlass'")],
    "a package walk": [stamped("TP0", "Unexpected error during package walk: cutlass.cute.experimental")],
    "retraction, old words": [stamped("TP0", "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.71 -> 0.94")],
    "retraction, new words": [stamped("TP0", "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 96")],
    "unbalanced memory as a warning": [stamped("TP0", _UNBALANCED + _FIGURES.format(name="pre_model_load_memory"))],
    "a warning of C++": [
        "[rank1]:[W807 17:36:05.837219864 NPUGraph.cpp:223] Warning: operation scheduled before its operands can be ignored",
        "E0000 00:00:1749367265.0 scheduler.cc:112] operation scheduled before its operands can be ignored",
    ],
    "a socket that tries again": [
        "[W1129 16:20:41.437201991 socket.cpp:752] [c10d] The client socket has failed to connect to [::1]:30103 (errno: 111 - "
        "Connection refused)."
    ],
    "a port that is passed over": [stamped("", "Port 30000 is already in use, trying port 30001")],
    "a soft watchdog": [stamped("TP0", "Soft watchdog timeout (self.watchdog_timeout=60, self.soft=True)")],
    "a profile below zero": [stamped("TP0", "max_total_num_tokens: arg=60000 vs profiled=-89624")],
    "a load that freed memory": [stamped("TP0", "DSv4 memory calculation: total_rest_memory=-1.40 GB, full_token=0")],
    "a prompt that is too long": [
        stamped("", "[http_server] Error: Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
    ],
    "a health check in time": [stamped("", 'INFO:     127.0.0.1:4711 - "GET /health HTTP/1.1" 503 Service Unavailable')],
    "a client that went away": ["Traceback (most recent call last):", "ConnectionResetError: [Errno 104] Connection reset by peer"],
    "NCCL's own log": [
        "gpu01:4117:4203 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>", "gpu01:4117:4203 [0] NCCL WARN Error: link is down",
    ],
    "a logger of another library": ["2025-05-02 16:14:33,560 - ERROR - flashinfer.jit: falling back: no kernel image is available"],
}  # fmt: skip


@pytest.mark.parametrize("lines", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("at", [1, 2, 3, 5, 7, 8])
def test_words_of_healthy_boots_are_no_failure_where_the_boot_goes_on(lines, at):
    boot = [arguments(), *SUMMED]
    entries = [Entry(line, 10) for line in [*boot[:at], *lines, *boot[at:]]]
    assert fold(entries).failure is None
    assert fold([*boot[:at], *lines, *boot[at:]]).failure is None
    up = fold([*entries, Entry(stamped("", READY), 9)])
    assert (up.ready, up.complete, up.failure) == (True, True, None)


@pytest.mark.parametrize("lines", HARMLESS.values(), ids=HARMLESS)
def test_words_of_healthy_boots_are_no_failure_of_a_server_that_is_ready(lines):
    for entries in ([Entry(line, 10) for line in lines], [Entry(line) for line in lines]):
        allocation = fold([*(Entry(line, 10) for line in [arguments(), *UP]), *entries])
        assert (allocation.ready, allocation.failure) == (True, None)


# --- whose failure it is


def test_the_rank_that_another_process_names_is_the_guilty_one():
    lines = [arguments(tp_size=4, pp_size=2), *LOADING]
    died = "Rank 6 scheduler died during initialization (exit code: -9)."
    assert fold([*lines, *uncaught(f"RuntimeError: {died}")], ended=True).failure.rank == {"tp": 2, "pp": 1, "dp": 0}
    # with data parallelism the numbers are those of the controllers, over several nodes each node has its own
    for several in ({"dp_size": 2}, {"nnodes": 2}):
        lines = [arguments(tp_size=4, **several), *LOADING]
        assert fold([*lines, *uncaught(f"RuntimeError: {died}")], ended=True).failure.rank is None


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("Rank 3 scheduler is dead. Please check if there are relevant logs.", 3),
        ("RuntimeError: Rank 10 scheduler died during initialization (exit code: -9).", 10),
        ("Subprocess scheduler_7 (pid=1200) crashed with exit code -6. Triggering SIGQUIT for cleanup...", 7),
        ("Rank 6 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.", 6),
        ("[E421 04:13:43.457389636 ProcessGroupNCCL.cpp:629] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)", 7),
        ("Received sigquit from a child process. It usually means the child failed.", None),
        ("Subprocess detokenizer (pid=1201) crashed with exit code 1.", None),
    ],
)
def test_which_process_a_sentence_is_about(text, index):
    assert process_index(text) == index


# --- the service manager

RUNNING = ServiceState("active", "running", "success", "loaded", 4242, 0, "d" * 32, 0)
DEAD = dataclasses.replace(RUNNING, active_state="failed", sub_state="failed", main_pid=0)
# exit line of the service manager, result line, kind, words of the remedy
MANAGER = [
    ("code=exited, status=1/FAILURE", "exit-code", "unit_failed", "means an error of its own"),
    ("code=exited, status=2/INVALIDARGUMENT", "exit-code", "bad_arguments", "arguments that it does not take"),
    ("code=exited, status=126/n/a", "exit-code", "permission", "access"),
    ("code=exited, status=127/n/a", "exit-code", "missing_file", "means a program that is not there"),
    ("code=exited, status=137/n/a", "exit-code", "killed", "137 (128 + 9) is SIGKILL"),
    ("code=exited, status=139/n/a", "exit-code", "native_crash", "SIGSEGV"),
    ("code=exited, status=134/n/a", "exit-code", "native_crash", "SIGABRT"),
    ("code=exited, status=200/CHDIR", "exit-code", "missing_file", "the working directory cannot be entered"),
    ("code=exited, status=203/EXEC", "exit-code", "missing_file", "the program cannot be run"),
    ("code=exited, status=217/USER", "exit-code", "unit_failed", "the user of the unit does not exist"),
    ("code=killed, status=9/KILL", "signal", "killed", "OOM killer"),
    ("code=killed, status=15/TERM", "signal", "killed", "SIGTERM"),
    ("code=dumped, status=11/SEGV", "core-dump", "native_crash", "is SIGSEGV"),
    ("code=dumped, status=6/ABRT", "core-dump", "native_crash", "SIGABRT"),
    ("code=killed, status=7/BUS", "signal", "native_crash", "/dev/shm"),
    ("code=killed, status=9/KILL", "oom-kill", "oom_kill", "more memory"),
]


@pytest.mark.parametrize(("exited", "result", "kind", "words"), MANAGER, ids=[f"{row[0]} {row[1]}" for row in MANAGER])
def test_an_exit_code_is_said_with_what_it_means(exited, result, kind, words):
    lines = [f"sglang.service: Main process exited, {exited}", f"sglang.service: Failed with result '{result}'."]
    by_log = fold([arguments(), *LOADING, *(Entry(line, 1, manager=True) for line in lines)]).failure
    number = int(exited.split("=")[2].split("/")[0])
    by_state = fold([arguments(), *LOADING], service=dataclasses.replace(DEAD, result=result, exec_main_status=number)).failure
    for failure in (by_log, by_state):
        assert (failure.kind, failure.advice) == (kind, "other")
        assert words in failure.remedy
        assert str(number) in failure.message


def test_a_word_of_the_server_weighs_more_than_its_exit_code():
    lines = [
        arguments(), *CAPTURING, *announced(OOM),
        stamped("", "Received sigquit from a child process. It usually means the child failed."),
        Entry("sglang.service: Main process exited, code=killed, status=9/KILL", 1, manager=True),
        Entry("sglang.service: Failed with result 'signal'.", 1, manager=True),
    ]  # fmt: skip
    assert fold(lines).failure.kind == "oom_capture"


def test_a_start_that_took_too_long_is_told_so_and_not_that_it_was_ended():
    lines = [
        arguments(), *LOADING,
        Entry("sglang.service: start-post operation timed out. Terminating.", 1, manager=True),
        stamped("", "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."),
        Entry("sglang.service: Main process exited, code=killed, status=9/KILL", 1, manager=True),
        Entry("sglang.service: Failed with result 'timeout'.", 1, manager=True),
    ]  # fmt: skip
    failure = fold(lines).failure
    assert (failure.kind, failure.advice) == ("start_timeout", "other")
    assert "start-post operation timed out" in failure.message
    assert "sglang_start_timeout" in failure.remedy


def test_cards_that_are_not_free_are_told_with_who_holds_them():
    # what the guard names may hold any word
    held = "GPU 1: 79.2 GiB held by pid 4711 'nccl_test'"
    sentence = f"cards not free: asked for GPU 0,1 with less than 1 GiB in use within 300 s, found {held}"
    waits = f"inferops.sglang: waits for its cards (0 of 300 s): {held}"
    failure = fold([waits, f"inferops.sglang: {sentence}", Entry("x: Failed with result 'exit-code'.", 1, manager=True)]).failure
    assert (failure.kind, failure.advice, failure.rank, failure.message) == ("gpus_busy", "other", None, sentence)
    assert "sglang_gpus" in failure.remedy


def test_the_kernels_oom_killer_weighs_more_than_the_death_it_caused():
    lines = [
        arguments(), *LOADING, *uncaught("RuntimeError: Rank 0 scheduler died during initialization (exit code: -9)."),
        Entry("sglang.service: A process of this unit has been killed by the OOM killer.", 1, manager=True),
        Entry("sglang.service: Failed with result 'oom-kill'.", 1, manager=True),
    ]  # fmt: skip
    assert fold(lines).failure.kind == "oom_kill"


LOOP = Failure("crash_loop", None, "the unit was started again", "other", None, KINDS["crash_loop"].remedy)


def test_a_unit_that_is_started_again_is_told_with_the_exit_code_of_the_start_that_was_watched():
    lines = [arguments(), *LOADING, *(Entry(f"sglang.service: {line}", 1, manager=True) for line in (
        "Main process exited, code=exited, status=7/NOTRUNNING", "Failed with result 'exit-code'."))]  # fmt: skip
    failure = fold(lines, verdict=LOOP).failure
    assert failure.kind == "crash_loop"
    assert [word for word in ("the unit was started again", "status=7/NOTRUNNING") if word not in failure.message] == []


@pytest.mark.parametrize("last", [announced(OOM), [Entry("x.service: Main process exited, code=killed, status=9/KILL", 1, manager=True),
                                                   Entry("x.service: Failed with result 'signal'.", 1, manager=True)]])  # fmt: skip
def test_a_cause_is_told_rather_than_that_the_unit_is_started_again(last):
    assert fold([arguments(), *CAPTURING, *last], verdict=LOOP).failure.kind in ("oom_capture", "killed")


def test_the_user_space_oom_killer_is_one_too():
    killed = Entry("sglang.service: systemd-oomd killed 3 process(es) in this unit.", 1, manager=True)
    assert fold([arguments(), *LOADING, killed]).failure.kind == "oom_kill"


def test_a_silent_end_is_said_with_its_status():
    failure = fold([arguments(), *POOL], service=dataclasses.replace(DEAD, active_state="inactive", sub_state="dead")).failure
    assert failure.kind == "exit"
    assert "ended by itself" in failure.message
    assert "exit status 0 means success" in failure.remedy


# --- figures

FIGURES = BootFigures(before_gib=80.0, at_sizing_gib=20.0, fraction=0.85)


@pytest.mark.parametrize(
    ("figures", "least"),
    [
        (FIGURES, 0.75),
        (BootFigures(93.73, 21.33), 0.7725),  # 0.772431
        (BootFigures(80.0, 0.0), 1.0),
        (BootFigures(80.0, None), None),
        (BootFigures(None, 20.0), None),
        (BootFigures(80.0, 80.0), None),  # nothing was loaded: that is no boot
        (BootFigures(0.0, 0.0), None),
    ],
)
def test_the_least_fraction_of_the_boots_own_figures(figures, least):
    assert minimum_fraction("", figures) == least


@pytest.mark.parametrize(
    ("figures", "following"),
    [
        (dataclasses.replace(FIGURES, fraction=0.74), 0.7508),
        (dataclasses.replace(FIGURES, fraction=None), 0.7508),
        (dataclasses.replace(FIGURES, fraction=0.8), 0.8008),  # it failed above its minimum: more than it had
        (BootFigures(16.0, 4.0, 0.7), 0.754),  # 0.75 + 0.0625 / 16 = 0.75390625
        (BootFigures(None, 20.0, 0.7), None),
        (BootFigures(80.0, None, None), None),
        (BootFigures(0.0, 0.0, 0.7), None),
    ],
)
def test_the_smallest_fraction_that_starts(figures, following):
    assert raised_fraction("", figures) == following


@pytest.mark.parametrize(
    ("asked", "free", "figures", "largest"),
    [
        (2.0, 0.5, FIGURES, 0.8312),  # 0.85 - 0.01875 = 0.83125, down
        (1.6, 0.0, FIGURES, 0.83),  # exactly 0.02
        (1.0, 1.5, FIGURES, None),  # enough was free, in pieces: how much less helps is not in the log
        (2.0, 0.5, dataclasses.replace(FIGURES, fraction=None), None),
        (2.0, 0.5, dataclasses.replace(FIGURES, before_gib=None), None),
    ],
)
def test_the_largest_fraction_that_leaves_what_was_missing(asked, free, figures, largest):
    assert lowered_fraction(Shortage(asked, free, ()), figures) == largest
    assert lowered_fraction(None, figures) is None


@pytest.mark.parametrize(
    ("text", "asked", "free", "others"),
    [
        (OOM, 970 / 1024, 676.81 / 1024, ()),
        (LARGE_OOM, 2.0, 0.5, ()),
        (oom("64.00 KiB", "0 bytes"), 64 / 1024**2, 0.0, ()),
        (oom("1.00 GiB", "0 bytes", "Process 7 has 2.00 GiB memory in use. Process 9 has 512.00 MiB memory in use. "), 1.0, 0.0,
         ((7, 2.0), (9, 0.5))),
        ("HIP out of memory. Tried to allocate 1.50 GiB (GPU 0; 64 GiB total capacity; 60 GiB already allocated; 1.00 GiB free; 1 GiB x)",
         1.5, 1.0, ()),
        # a container: of two numbers one is the server itself, which allocated 60 GiB
        ("Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 94.50 GiB of which 1.00 GiB is free. Process 7 has 30.00 GiB memory "
            "in use. "
         "Process 8 has 63.00 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch", 2.0, 1.0, ((7, 30.0),)),
    ],
)  # fmt: skip
def test_what_torch_says_about_a_lack_of_memory(text, asked, free, others):
    shortage = shortage_of(text)
    assert (shortage.asked_gib, shortage.free_gib, shortage.others) == (pytest.approx(asked), pytest.approx(free), others)


@pytest.mark.parametrize("text", ["", "CUDA out of memory.", "Tried to allocate 2.00 GiB.", "of which 1.00 GiB is free"])
def test_a_text_without_sizes_names_no_shortage(text):
    assert shortage_of(text) is None
    assert foreign_holders(shortage_of(text)) == ()


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (_UNBALANCED + _FIGURES.format(name="min_per_gpu_memory"), (147.93701171875, 176.25)),
        (_UNBALANCED + "pre_model_load_memory=70, local_gpu_memory=93, local_gpu_memory * 0.9=83.7", (70.0, 93.0)),
        (_UNBALANCED, None),
        ("pre_model_load_memory=70", None),
    ],
)
def test_the_two_figures_of_unbalanced_memory(text, figures):
    assert unbalanced_gib(text) == figures


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Exit code: -9", (-9, "exit code -9")),
        ("Rank 3 scheduler died during initialization (exit code: -11). If exit code is -9 (SIGKILL), ...", (-11, "exit code -11")),
        ("Scheduler or DataParallelController 712 terminated with -6", (-6, "exit code -6")),
        ("crashed with exit code 1. Triggering", (1, "exit code 1")),
        ("crashed with exit code 137. Triggering", (-9, "exit code 137 (128 + 9)")),
        ("Main process exited, code=exited, status=143/n/a", (-15, "status=143 (128 + 15)")),
        ("Main process exited, code=dumped, status=11/SEGV", (-11, "status=11/SEGV")),
        ("Main process exited, code=killed, status=9/KILL", (-9, "status=9/KILL")),
        ("Main process exited, code=exited, status=217/USER", (217, "status=217/USER")),
        ("the unit is failed (failed), result exit-code, exit status 3, 0 automatic restarts", (3, "exit status 3")),
        ("the unit is failed (failed), result signal, exit status 9, 0 automatic restarts", (-9, "exit status 9")),
        ("nothing", None),
    ],
)
def test_an_exit_code_in_a_text(text, end):
    assert exit_of(text) == end


@pytest.mark.parametrize(
    ("code", "words"),
    [(-9, "x is SIGKILL ("), (-64, "x is signal 64"), (3, "x means"), (0, "success"), (203, "cannot be run"), (10**6, "x means")],
)
def test_an_exit_code_in_words(code, words):
    assert words in meaning_of(Exit(code, "x"))


# what was read, the kind, and all that is said: the number as it was seen, what it means, what to do
SENTENCES = [
    ("child_died", "Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), look for the OOM killer.",
     "exit code -9 is SIGKILL (killed from outside, mostly by the kernel's OOM killer): look for it with journalctl -k, else for a timeout "
     "of the unit"),
    ("child_died", "Rank 0 scheduler died during initialization (exit code: -11). If exit code is -9 (SIGKILL), look for the OOM killer.",
     "exit code -11 is SIGSEGV (a crash in native code): look for a core dump (coredumpctl), and for builds of torch, driver and kernels "
     "that do not fit"),
    ("child_died", "Rank 0 scheduler died during initialization (exit code: 1).",
     "exit code 1 means an error of its own: look for the cause before this line"),
    ("child_died", "Rank 0 scheduler is dead.", "look for the cause before this line"),
    ("killed", "Main process exited, code=killed, status=9/KILL",
     "status=9/KILL is SIGKILL (killed from outside, mostly by the kernel's OOM killer): look for it with journalctl -k, else for a "
     "timeout of the unit"),
    ("killed", "Main process exited, code=killed, status=15/TERM",
     "status=15/TERM is SIGTERM (told to end): find out by whom: a timeout of the unit, systemctl, or a person"),
    ("killed", "Main process exited, code=killed, status=40/RTMIN+6",
     "status=40/RTMIN is signal 40, which came from outside: find out who ended it: the kernel's OOM killer (journalctl -k), a timeout of "
     "the unit, or a person"),
    ("bad_arguments", "Main process exited, code=exited, status=2/INVALIDARGUMENT",
     "status=2/INVALIDARGUMENT means arguments that it does not take: correct the arguments of the server for this SGLang version"),
    ("unit_failed", "Main process exited, code=exited, status=217/USER",
     "status=217/USER means that the user of the unit does not exist: read the log of this start and what the service manager says "
     "(systemctl status)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "remedy"), SENTENCES, ids=[f"{row[0]}: {row[1][-30:]}" for row in SENTENCES])
def test_an_end_is_told_in_one_sentence(kind, text, remedy):
    assert failure_of(Cause(kind, text, Rank()), None, BootFigures()).remedy == remedy


def test_no_signal_is_told_twice():
    for kind in ("child_died", "exit", "killed", "native_crash"):
        for code in range(-64, 0):
            remedy = failure_of(Cause(kind, f"exit code: {code}", Rank()), None, BootFigures()).remedy
            assert [word for word in ("OOM killer", "journalctl", "coredumpctl", "exit code") if remedy.count(word) > 1] == []
            assert (code == -9) is ("SIGKILL" in remedy)


def test_a_summary_says_the_fraction_once():
    refused = announced("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.")
    said = "\n".join(summary_of(fold([arguments(0.74), *LOADED, *refused], ended=True)))
    assert said.count("0.7508") == 1


def remedy(kind: str, text: str, **changes) -> str:
    return failure_of(Cause(kind, text, Rank()), None, dataclasses.replace(FIGURES, **changes)).remedy


def test_a_fraction_is_told_with_what_it_gives():
    raised = remedy("not_enough_memory", "Not enough memory", fraction=0.74)
    assert "; the smallest that starts is 0.7508, with next to no pool: " in raised
    assert "memory_plan (or the role's next run) gives the one for a context" in raised
    lowered = remedy("oom_capture", LARGE_OOM)
    assert "; 0.8312 is the largest that leaves this allocation (1.50 GiB were missing of 80.00 GiB)" in lowered
    assert "and the pool shrinks by as much" in lowered


@pytest.mark.parametrize(
    ("kind", "text", "named"),
    [
        ("oom_capture", OOM, True),  # 0.29 GiB were missing, 1.14 GiB lay unused
        ("oom_weights", OOM, True),
        ("oom_capture", LARGE_OOM, False),  # 1.50 GiB were missing
        ("oom_capture", oom("1.00 GiB", "1.50 GiB"), True),  # nothing was missing at all, but in one piece
        ("oom_capture", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 of which 1.00 GiB is free.", False),
        ("oom_capture", "CUDA out of memory", False),
        ("foreign_process", OOM, False),
        ("oom_kill", "killed by the OOM killer", False),
    ],
)
def test_memory_in_pieces_is_named_where_it_would_have_been_enough(kind, text, named):
    said = remedy(kind, text)
    assert ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in said) is named
    assert ("1.14 GiB unused" in said) is named
    assert ("not with PCIe one-shot all-reduce" in said) is named


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("x" * 1000, "x" * 1000),
        ("word " * 200, "word " * 200),  # exactly 1000
        ("word " * 201, " ".join(["word"] * 199) + " ..."),  # 199 words are 994, one more 999
        ("x" * 1001, "x" * 996 + " ..."),
        ("a " + "x" * 2000, "a " + "x" * 994 + " ..."),
        ("x" * 996 + " y" * 5, "x" * 996 + " ..."),
    ],
)
def test_a_long_message_is_cut_between_words(text, shown):
    assert shortened(text) == shown
    assert shortened("cut at 20 after a word", 20) == "cut at 20 after ..."
    failure = failure_of(Cause("unknown_exception", text, Rank()), None, FIGURES)
    assert (failure.message, len(shown) <= 1000) == (shown, True)


# --- whatever it says

WORDS = st.sampled_from(sorted({line for death in DEATHS for line in death.last}))
FIGURE = st.one_of(st.none(), st.floats(0, 10**6, allow_nan=False))


@settings(max_examples=400, deadline=None)
@given(
    st.builds(lambda text, at, other: text[:at] + other + text[at:], WORDS, st.integers(0, 400), st.text(max_size=8)),
    st.sampled_from(sorted(KINDS)), FIGURE, FIGURE, st.one_of(st.none(), st.floats(0.01, 0.99)),
)  # fmt: skip
def test_no_words_and_no_figures_break_the_advice(text, kind, before, after, fraction):
    failure = failure_of(Cause(kind, text, Rank()), None, BootFigures(before, after, fraction))
    assert failure.advice in ("raise", "lower", "impossible", "other")
    if failure.next_fraction is not None:
        assert 0 < failure.next_fraction < 1
        assert failure.advice in ("raise", "lower")
        assert fraction is None or (failure.next_fraction > fraction) == (failure.advice == "raise")
        # 4 decimals, as a flag takes them
        assert float(f"{failure.next_fraction:.4f}") == failure.next_fraction
    if failure.advice == "raise" and None not in (failure.next_fraction, failure.minimum_fraction):
        assert failure.next_fraction > failure.minimum_fraction


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading_of_figures(text):
    assert (shortage_of(text), unbalanced_gib(text), process_index(text)) == (None, None, None)
    assert exit_of(text) is None
