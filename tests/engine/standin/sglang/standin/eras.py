# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start of SGLang says and does, release by release, as one table.

Every row of SINCE lists the value of one property together with the release that brought it; a release
has the newest value that is not younger than itself. Releases younger than the last entry behave like it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

FIRST = "0.5.9"

# order of the memory events of one rank: (what, whose)
TARGET_FIRST = (
    ("init", "target"), ("load", "target"), ("pool", "target"), ("graph", "target"),
    ("init", "draft"), ("load", "draft"), ("pool", "draft"), ("graph", "draft"),
)
LOADS_FIRST = (
    ("init", "target"), ("load", "target"), ("init", "draft"), ("load", "draft"),
    ("pool", "target"), ("pool", "draft"), ("graph", "target"), ("graph", "draft"),
)

_DIST_END = "Init torch distributed ends. elapsed={elapsed:.2f} s, mem usage={usage:.2f} GB"
_BASELINE = "Memory baseline taken. mem usage={usage:.2f} GB"
_LOAD_END = "Load weight end. elapsed={elapsed:.2f} s, type={model}, %savail mem={avail:.2f} GB, mem usage={usage:.2f} GB."
_NAMED_END = "elapsed={elapsed:.2f} s, mem usage={usage:.2f} GB, avail mem={avail:.2f} GB."
_NAMED_BEGIN = "Capture {name} CUDA graph begin. backend=full, "
_SMALLER = "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
_GRAPH_ADVICE = (
    _SMALLER
    + "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
    + "3. disable torch compile by not using --enable-torch-compile\n"
    + "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)"
)
_GRAPH_ADVICE_NAMED = (
    _SMALLER
    + "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)\n"
    + "3. disable decode CUDA graph by --cuda-graph-backend-decode=disabled. "
    + "(Not recommended. Huge performance loss)"
)
_OLD_SPEC = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM")
_NO_ROOM = "Not enough memory. Please try to increase --mem-fraction-static."
_WEIGHTS_TOO_BIG = (
    "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={fraction}. "
    "Raise --mem-fraction-static above {suggested:.3f} (minimum viable = 1 - available/pre = {minimum:.4f}). "
    "If using speculative decoding, draft weights are now counted."
)
_NO_STATES = (
    "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=0 "
    "(total_rest_memory={rest:.2f} GB, mamba_cache_per_req={slot:.2f} MB). Try: (1) reduce --max-running-requests, "
    "(2) increase --mem-fraction-static, (3) reduce --speculative-num-draft-tokens, or (4) use GPUs with more memory."
)

SINCE: dict[str, tuple[tuple[str, Any], ...]] = {
    "order": (("0.5.9", TARGET_FIRST), ("0.5.14", LOADS_FIRST)),
    "speculative_algorithms": (("0.5.9", _OLD_SPEC), ("0.5.11", (*_OLD_SPEC, "DFLASH"))),
    # how the draft's K/V is charged to the target's bytes per token
    "eagle_charge": (("0.5.9", "none"), ("0.5.14", "layers")),
    "dflash_charge": (("0.5.9", "layers"), ("0.5.18", "geometry")),
    "multimodal_reserve_mib": (("0.5.9", 0), ("0.5.18", 100)),
    "dsa_fp8_cell_is_real": (("0.5.9", False), ("0.5.17", True)),
    "request_rows_extra": (("0.5.9", 0), ("0.5.11", 1)),
    "requests_capped_by_estimate": (("0.5.9", True), ("0.5.14", False)),
    "server_args_form": (("0.5.9", "repr"), ("0.5.19", "dict")),
    "init_begin": (("0.5.9", "Init torch distributed begin."), ("0.5.21", "Init parallel begin.")),
    "init_end": (
        ("0.5.9", (_DIST_END,)),
        ("0.5.21", ("Init parallel ends. elapsed={elapsed:.2f} s", _BASELINE)),
    ),
    "draft_init": (("0.5.9", ("Init torch distributed begin.", _DIST_END)), ("0.5.21", (_BASELINE,))),
    "load_end": (("0.5.9", _LOAD_END % "dtype={dtype}, "), ("0.5.10", _LOAD_END % "")),
    "load_bar": (("0.5.9", "Loading safetensors checkpoint shards"), ("0.5.12", "Multi-thread loading shards")),
    "says_kv_dtype": (("0.5.9", True), ("0.5.13", False)),
    "kv_dtype": (("0.5.9", ""), ("0.5.13", "dtype: {dtype}, ")),
    "named_graphs": (("0.5.9", False), ("0.5.14", True)),
    "graph_begin": (
        ("0.5.9", "Capture {name}cuda graph begin. This can take up to several minutes. avail mem={avail:.2f} GB"),
        ("0.5.14", _NAMED_BEGIN + "num_tokens_per_bs={width}, bs={bs}, avail mem={avail:.2f} GB"),
        ("0.5.16", _NAMED_BEGIN + "num_tokens_per_req={width}, bs={bs}, avail mem={avail:.2f} GB"),
        ("0.5.22", _NAMED_BEGIN + "num_tokens_per_req={width}, avail mem={avail:.2f} GB"),
    ),
    "graph_end": (
        (
            "0.5.9",
            "Capture {name}cuda graph end. Time elapsed: {elapsed:.2f} s. mem usage={usage:.2f} GB. "
            "avail mem={avail:.2f} GB.",
        ),
        ("0.5.14", "Capture {name} CUDA graph end. " + _NAMED_END),
        ("0.5.22", "Capture {name} CUDA graph end. bs={bs}, " + _NAMED_END),
    ),
    "graph_advice": (("0.5.9", _GRAPH_ADVICE), ("0.5.14", _GRAPH_ADVICE_NAMED)),
    "concurrency_line": (
        ("0.5.9", ""),
        (
            "0.5.13",
            "Max concurrent requests (per dp worker) from the finalized token capacity: max_num_reqs={requests}.",
        ),
        ("0.5.14", ""),
    ),
    "no_room": (
        ("0.5.9", "RuntimeError: " + _NO_ROOM + " Current value: self.server_args.mem_fraction_static={fraction}"),
        ("0.5.10", "RuntimeError: " + _NO_ROOM + " Current value: mem_fraction_static={fraction}"),
        ("0.5.11", "RuntimeError: " + _NO_ROOM),
        ("0.5.14", "ValueError: " + _WEIGHTS_TOO_BIG),
    ),
    # a hybrid model whose states do not fit has had words of its own since then
    "no_states": (("0.5.9", ""), ("0.5.14", _NO_STATES)),
    "no_device": (
        ("0.5.9", "No accelerator (CUDA, XPU, HPU, NPU, MUSA) is available."),
        ("0.5.10", "No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) is available."),
        ("0.5.14", "No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available."),
    ),
    # where the arguments are checked
    "checks_file": (("0.5.9", "sglang/srt/server_args.py"), ("0.5.19", "sglang/srt/arg_groups/validation_hook.py")),
    "unbalanced_name": (("0.5.9", "min_per_gpu_memory"), ("0.5.10", "pre_model_load_memory")),
    "names_dead_rank_in_exception": (("0.5.9", False), ("0.5.10", True)),
    "has_child_watchdog": (("0.5.9", False), ("0.5.10", True)),
    "says_start_timings": (("0.5.9", False), ("0.5.18", True)),
    "logs_tree_kill": (("0.5.9", False), ("0.5.13", True)),
    # up to 0.5.19 the answer to SIGTERM ends with the process killing itself
    "stop_is_kill": (("0.5.9", True), ("0.5.20", False)),
    "memory_usage_rich": (("0.5.9", False), ("0.5.22", True)),
}


@dataclass(frozen=True)
class Era:
    """The properties of SINCE for one release."""

    order: tuple[tuple[str, str], ...]
    speculative_algorithms: tuple[str, ...]
    eagle_charge: str
    dflash_charge: str
    multimodal_reserve_mib: int
    dsa_fp8_cell_is_real: bool
    request_rows_extra: int
    requests_capped_by_estimate: bool
    server_args_form: str
    init_begin: str
    init_end: tuple[str, ...]
    draft_init: tuple[str, ...]
    load_end: str
    load_bar: str
    says_kv_dtype: bool
    kv_dtype: str
    named_graphs: bool
    graph_begin: str
    graph_end: str
    graph_advice: str
    concurrency_line: str
    no_room: str
    no_states: str
    no_device: str
    checks_file: str
    unbalanced_name: str
    names_dead_rank_in_exception: bool
    has_child_watchdog: bool
    says_start_timings: bool
    logs_tree_kill: bool
    stop_is_kill: bool
    memory_usage_rich: bool


def release(version: str) -> tuple[int, int, int]:
    """(major, minor, patch) of a version; a post release counts as its base. ValueError for anything else."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)(?:\.post\d+)?$", version)
    if match is None:
        raise ValueError(f"version {version!r} is not of the form 0.5.12 or 0.5.12.post1")
    major, minor, patch = (int(part) for part in match.groups())
    return major, minor, patch


def era_of(version: str) -> Era:
    """The era of one version, e.g. "0.5.12.post1". ValueError below FIRST: those starts are not imitated."""
    wanted = release(version)
    if wanted < release(FIRST):
        raise ValueError(f"version {version} is older than {FIRST}, the first start that is imitated")
    return Era(**{name: _newest(rows, wanted) for name, rows in SINCE.items()})


def _newest(rows: tuple[tuple[str, Any], ...], wanted: tuple[int, int, int]) -> Any:
    return [value for since, value in rows if release(since) <= wanted][-1]
