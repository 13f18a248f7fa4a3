# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last words of a server to the kind of its failure. Private to this collection: may change at any time.

Texts of SGLang from 0.4 to 0.5.23, of torch, of the libraries that read models, and of the service manager. The kinds themselves,
and what is to be done about each, are in C(_failures).
"""

from __future__ import annotations

import re

from ansible_collections.inferops.sglang.plugins.module_utils._failure_figures import foreign_holders, shortage_of

# What an exception's text says about its kind; the first that matches decides. "oom" is made precise by the stage of the rank.
_TEXTS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        # the unit's own guard; the names of those who hold the cards follow
        ("gpus_busy", r"^cards not free: asked for gpu "),
        ("hybrid_state", r"not enough gpu memory for hybrid|state cache is too small to serve"),
        (
            "not_enough_memory",
            r"not enough memory\. please try|leave no gpu memory for the kv cache|leaves no room for the full kv pool"
            r"|byte budget -?\d+ cannot fit one|memory pool size is too small",
        ),
        ("unbalanced", r"memory capacity is unbalanced"),
        ("foreign_process", r"busy or unavailable"),
        (
            "no_device",
            r"no cuda gpus are available|no cuda-capable device|no nvidia driver|no cuda devices found|no accelerator \("
            r"|invalid device ordinal|npu device is not available|torch\.(?:xpu|mps) is not available|cuda_error_no_device"
            r"|no hip gpus are available",
        ),
        (
            "missing_kernel",
            r"no kernel image is available|unsupported toolchain|undefined symbol|cuda_error_no_binary|invalid device function"
            r"|driver (?:version |on your system )?is (?:insufficient|too old)|could not load .{0,40}(?:kernel|common_ops)"
            r"|only supports sm\d|minimum capability: \d|requires \.target sm_|cannot open shared object file"
            r"|no module named '?(?!sglang\b)\w|cannot import name|minimum required version .{1,20} is not installed",
        ),
        (
            "missing_compiler",
            r"no working c\+\+ compiler|failed to find c compiler|could not find nvcc|cuda_home environment variable is not set"
            r"|ninja is required to load|no such file or directory: '(?:[\w./-]*/)?(?:nvcc|ninja|g\+\+|gcc|c\+\+|cc)'"
            r"|(?:nvcc|ninja|g\+\+|gcc): (?:command )?not found",
        ),
        # without a word of its own: the pipe to a child was closed
        ("child_died", r"rank \d+ scheduler (?:is dead|died)|^eoferror$"),
        (
            "pool_exhausted",
            r"(?:prefill|decode|req_slots) (?:runs )?out of memory\. (?:try to lower|please set)"
            r"|no space left for only one request|can ?not alloc mamba cache",
        ),
        (
            "host_memory",
            r"can't allocate memory: you tried|cannot allocate memory|std::bad_alloc|\bmemoryerror\b|insufficient shared memory"
            r"|not enough host memory",
        ),
        ("oom", r"out of memory|outofmemoryerror|cudaerrormemoryallocation|cublas_status_alloc_failed"),
        (
            "device_error",
            r"illegal memory access|illegal instruction was|unspecified launch failure|device-side assert|misaligned address"
            r"|uncorrectable (?:ecc|nvlink) error|fallen off the bus|cuda error: unknown error",
        ),
        ("disk_full", r"no space left on device|errno 28\b|disk quota exceeded"),
        ("port_in_use", r"address already in use|errno 98\b|eaddrinuse|port is already in use|is used by a process already"),
        ("permission", r"permissionerror|permission denied|errno 13\b|operation not permitted: '"),
        (
            "damaged_file",
            r"error while deserializing header|incomplete metadata|invalidheader|headertoo(?:large|small)|jsondecodeerror"
            r"|not a valid json file|failed reading zip archive|unpicklingerror|file is (?:truncated|corrupt)|checksum mismatch|bad magic",
        ),
        (
            "unsupported_model",
            r"are not supported for now|does not recognize this architecture|unrecognized configuration class|cannot find model module"
            r"|has no sglang implementation|unknown quantization method|model type .{1,80} is not supported",
        ),
        (
            "tensor_parallel",
            r"divisible by .{0,60}(?:tensor|tp_size|parallel|quantization block)|\b\d+ is not divisible by \d+"
            r"|assert .{1,80} % .{0,40}tp_size == 0",
        ),
        (
            "checkpoint_mismatch",
            r"weight shape mismatch|size mismatch for \w|start \(\d+\) \+ length \(\d+\) exceeds dimension size|attempted to load weight \("
            r"|assert param\w*\.(?:data\.)?(?:size\(\)|shape) == loaded_weight",
        ),
        (
            "missing_file",
            r"filenotfounderror|no such file or directory|does not appear to have a file|not a valid model identifier|notadirectoryerror"
            r"|repo id must be|no module named '?sglang\b|can't load the (?:configuration|tokenizer)|cannot find any model weights"
            # what is said of a config.json without a model_type is also said of one that the service's user cannot read
            r"|unrecognized model in|shard file\(s\) missing"
            r"|localentrynotfounderror|offlinemodeisenabled|couldn't connect to|repositorynotfounderror",
        ),
        (
            "rendezvous",
            r"distnetworkerror|diststoreerror|timed out initializing process group|socket has timed out"
            r"|timed out after \d+ seconds waiting for clients|wait timeout after \d+ms|store based barrier"
            r"|failed to connect to (?:the )?(?:master|tcpstore)",
        ),
        ("nccl", r"\bnccl|distbackenderror|processgroup|\bgloo|connection (?:closed by|reset by) peer|collective operation timeout"),
        ("capture_failed", r"capture \w+ graph failed"),
        (
            "bad_arguments",
            r"unrecognized arguments|error: argument|invalid choice|is greater than the derived context_length|invalid port number"
            r"|is only supported (?:for|on|with) |cannot assign requested address|name or service not known",
        ),
    )
)
_OOM_BY_STAGE = {
    "start": "oom_init",
    "weights": "oom_weights",
    "draft_weights": "oom_draft_weights",
    "pool": "oom_pool",
    "draft_pool": "oom_draft_pool",
    "capture": "oom_capture",
    "warmup": "oom_warmup",
    "prefill": "oom_prefill",
    "decode": "oom_decode",
}


def kind_of(text: str, stage: str, fallback: str) -> str:
    """The kind of failure that this text names; ``stage`` is what the rank was doing, ``fallback`` the kind of a text that names none."""
    kind = next((kind for kind, pattern in _TEXTS if pattern.search(text)), fallback)
    if kind != "oom":
        return kind
    if foreign_holders(shortage_of(text)):
        return "foreign_process"
    return "oom_capture" if re.search(r"capture \w+ graph failed", text, re.IGNORECASE) else _OOM_BY_STAGE[stage]


def manager_kind(what: str, detail: str) -> str:
    """The kind of a death that only the service manager tells, as far as no exit code is known."""
    if detail == "oom-kill":
        return "oom_kill"
    if detail == "start-limit-hit":
        return "crash_loop"
    if what == "exec":
        return kind_of(detail, "start", "exit")
    return {"limit": "crash_loop", "oom": "oom_kill", "overdue": "start_timeout"}.get(what, "unit_failed")
