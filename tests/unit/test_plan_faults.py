# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans from odd figures: what no server takes is refused in words, what a log cannot hold counts as not there."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, request_of
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Alternative, Plan, bytes_per_token, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import Request

CONFIGS = Path(__file__).parent / "fixtures/configs"
DEFAULTS = {name: option.get("default") for name, option in PLAN_OPTIONS.items()}
# 32 layers * 8 KV heads * 2 * 128 * 2 bytes = 131,072 bytes per token: 8,192 tokens are 1 GiB
LLAMA = {"sglang_version": "0.5.23", "context_length": 8192, "gpu_free_gib": [100.0], "weights_gib": 20.0}


def request(name: str, **options: Any) -> Request:
    config = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    return request_of({**DEFAULTS, "model_config": config, **options})


def plan(name: str = "llama-3.1-8b", **options: Any) -> Plan:
    return make_plan(request(name, **{**LLAMA, **options}))


def alternative(found: Plan, change: str) -> Alternative:
    return next(other for other in found.alternatives if other.change.startswith(change))


# --- refused -------------------------------------------------------------------------------------------------------------

HUGE = 10**400
FLAGS = [
    ("speculative_num_steps", 0, "greater than 0"),
    ("speculative_num_steps", 10**18, "at most 1,000,000"),
    ("speculative_eagle_topk", -1, "greater than 0"),
    ("speculative_eagle_topk", 1_000_001, "at most 1,000,000"),
    ("speculative_num_draft_tokens", 0, "greater than 0"),
    ("speculative_num_draft_tokens", HUGE, "at most 1,000,000"),
    ("swa_full_tokens_ratio", 0.0, "greater than 0"),
    ("swa_full_tokens_ratio", -1.0, "greater than 0"),
    ("swa_full_tokens_ratio", math.nan, "greater than 0"),
    ("swa_full_tokens_ratio", 1e300, "from 0.001 to 1000"),
    ("mamba_full_memory_ratio", 1e-300, "from 0.001 to 1000"),
    ("mamba_full_memory_ratio", 1e300, "from 0.001 to 1000"),
    ("compute_capability", math.nan, "such as 9.0"),
    ("compute_capability", math.inf, "such as 9.0"),
    ("compute_capability", 139.0, "such as 9.0"),
    ("max_running_requests", HUGE, "at most 1,000,000,000,000"),
    ("max_running_requests", -HUGE, "far below 0"),
    ("cuda_graph_max_bs", 10**18, "at most 1,000,000"),
    ("sglang_version", "9" * 5000 + ".1.1", "5,004 characters"),
    ("sglang_version", "0.5.5" + "0" * 4000, "4,005 characters"),
]
FIGURES = [
    ("free_jitter_gib", 1e300, "no rank has more than 16,384 GiB"),
    ("min_headroom_gib", 1e300, "no rank has more than 16,384 GiB"),
    ("weights_gib", 1e300, "no rank has more than 16,384 GiB"),
    ("free_at_sizing_gib", [1e9], "no rank has more than 16,384 GiB"),
    ("context_length", HUGE, "at most 1,000,000,000,000"),
    ("concurrent_requests", 1e300, "at most 1,000,000,000,000"),
]


@pytest.mark.parametrize(("name", "value", "part"), [*FLAGS, *FIGURES])
def test_a_plan_refuses(name: str, value: Any, part: str) -> None:
    with pytest.raises(InputError) as error:
        plan(**{name: value})
    assert part in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(("name", "value", "part"), FLAGS)
def test_bytes_of_a_token_refuse_the_same_flags(name: str, value: Any, part: str) -> None:
    with pytest.raises(InputError, match=part):
        bytes_per_token(request("llama-3.1-8b", **{"sglang_version": "0.5.23", name: value}))


def test_no_worker_at_all() -> None:
    with pytest.raises(InputError, match="asked for dp_size; found 0; give a whole number from 1 up"):
        plan(dp_size=0, enable_dp_attention=True, weights_gib=None)


def test_context_ranks_that_share_no_attention() -> None:
    """8 ranks of 8 workers leave one for each attention: no 4 of them share its tokens."""
    flags = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "dcp_size": 4}
    asked = "asked for dcp_size 4.*give a divisor of the 1 ranks that share the attention"
    with pytest.raises(InputError, match=asked):
        plan(**flags)
    with pytest.raises(InputError, match=asked):
        bytes_per_token(request("llama-3.1-8b", sglang_version="0.5.23", **flags))
    # 4 ranks share 8 KV heads, and 4 of them the tokens: every one of them has all heads of its rows
    shared = request("llama-3.1-8b", **{**flags, "sglang_version": "0.5.23", "dp_size": 2})
    assert bytes_per_token(shared)["charged"] == 131072 / 4


def test_a_large_batch_of_graphs_is_not_counted_out() -> None:
    found = plan(cuda_graph_max_bs=1_000_000, max_running_requests=600, disable_radix_cache=True)
    # steps of 32 from 512 on: 544, 576, and the requests themselves
    assert (found.graph_batch_sizes or ())[-4:] == (512, 544, 576, 600)


# --- starts --------------------------------------------------------------------------------------------------------------


def start(found: Plan, fraction: float, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    rank = {"avail_before_weights_gib": 139.0, "avail_after_weights_gib": 77.0, "target": {"tokens": found.predicted_tokens}}
    rank |= {"mamba_slots": found.mamba_slots} if found.mamba_slots else {}
    return {
        "ready": True,
        "ranks": [rank],
        "available_gpu_mem_gib": found.headroom_gib,
        "max_running_requests": found.running_requests,
        "server_args": {"mem_fraction_static": fraction, **args},
        **more,
    }


def test_the_log_counts_requests_of_one_worker() -> None:
    args = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "max_running_requests": 512}
    drafted = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
    flags = {
        **args,
        **drafted,
        "speculative_algorithm": "NEXTN",
        "mem_fraction_static": 0.85,
        "gpu_free_gib": [139.0],
        "context_length": 65536,
    }
    forward = plan("qwen3-next-80b", **flags, weights_gib=60.0, draft_weights_gib=2.0)
    # 64 for each worker by the flag, and no more than the 202 slots of states serve with 5 for each request
    assert (forward.mamba_slots, forward.running_requests) == (202, 40)
    back = plan("qwen3-next-80b", **flags, observed=[start(forward, 0.85, args)])
    assert (back.basis, back.predicted_tokens, back.running_requests) == ("observed", forward.predicted_tokens, 40)
    assert back.headroom_gib == pytest.approx(forward.headroom_gib, abs=0.011)


ODD = [HUGE, -HUGE, 1e308, -1e308, math.inf, math.nan, -5, "9" * 5000, [], {}, True]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("key", ["avail_before_weights_gib", "avail_after_weights_gib", "mamba_slots"])
def test_an_odd_figure_of_a_rank_counts_as_not_there(key: str, odd: Any) -> None:
    """80 GiB are free when the pool is sized: 0.9 of 100 leaves 70 GiB, 573,440 tokens."""
    whole = start(plan(mem_fraction_static=0.9), 0.9, {})
    whole["ranks"][0].update(avail_before_weights_gib=100.0, avail_after_weights_gib=80.0)
    rank = dict(whole["ranks"][0])
    without = plan(observed=[{**whole, "ranks": [{name: value for name, value in rank.items() if name != key}]}], mem_fraction_static=0.9)
    found = plan(observed=[{**whole, "ranks": [{**rank, key: odd}]}], mem_fraction_static=0.9)
    assert found == without
    assert found.predicted_tokens == pytest.approx(573440, abs=1)


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("key", ["page_size", "tp_size", "max_total_tokens", "max_running_requests", "mamba_full_memory_ratio"])
def test_an_odd_flag_of_a_start_counts_as_not_there(key: str, odd: Any) -> None:
    whole = start(plan(mem_fraction_static=0.9), 0.9, {})
    args = {**whole["server_args"], key: odd}
    found = plan(observed=[{**whole, "server_args": args, "sglang_version": "9" * 5000 + ".1.1"}], mem_fraction_static=0.9)
    assert (found.basis, found.predicted_tokens) == ("observed", pytest.approx(573440, abs=1))


def test_the_error_of_a_start_counts_what_requests_can_fill() -> None:
    """One page of 64 rows is 256 tokens where 4 ranks share them."""
    flags = {"tp_size": 8, "dcp_size": 4, "page_size": 64}
    forward = plan("kimi-k2.6", **flags, mem_fraction_static=0.9, gpu_free_gib=[139.0], weights_gib=62.0)
    seen = start(forward, 0.9, flags)
    assert seen["ranks"][0]["target"]["tokens"] == forward.predicted_tokens
    found = plan("kimi-k2.6", **flags, mem_fraction_static=0.9, observed=[seen])
    assert (found.predicted_tokens, found.error_tokens) == (forward.predicted_tokens, 256)


# --- bounds --------------------------------------------------------------------------------------------------------------

# 100 GiB free, so many when the pool is sized: at 1 - A / 100 the budget is nothing
BOUNDS = [(80.0, 0.2), (79.995, 0.2), (70.0, 0.3), (99.999, 0.0), (0.0, 1.0)]


@pytest.mark.parametrize(("at_sizing", "lowest"), BOUNDS)
def test_the_lower_bound_is_the_last_fraction_without_a_pool(at_sizing: float, lowest: float) -> None:
    found = plan(free_at_sizing_gib=[at_sizing], weights_gib=None, pool_target=1)
    assert found.lower_bound == lowest
    if lowest:
        below = plan(free_at_sizing_gib=[at_sizing], weights_gib=None, mem_fraction_static=min(lowest, 0.9999))
        assert (below.predicted_tokens, below.verdict) == (0, "impossible")
    if lowest < 1:
        above = plan(free_at_sizing_gib=[at_sizing], weights_gib=None, mem_fraction_static=lowest + 0.0001)
        assert above.predicted_tokens > 0


def test_why_there_is_no_pool() -> None:
    low = plan(mem_fraction_static=0.1)
    assert "At 0.1 there is no pool: SGLang needs more than 0.2." in low.reasons
    capped = plan(mem_fraction_static=0.9, max_total_tokens=63, page_size=64)
    assert "At 0.9 there is no pool: max_total_tokens 63 leaves none, with pages of 64 tokens." in capped.reasons
    assert capped.lower_bound == 0.2


# --- alternatives --------------------------------------------------------------------------------------------------------


def test_the_margin_is_that_of_the_pool_of_the_alternative() -> None:
    """Half a GiB is 4,096 tokens of bf16 and 8,192 of fp8: 108,192 of 65,536 bytes are 6.6035 GiB of 8.2 - 23.2 * (1 - f)."""
    found = plan(gpu_free_gib=[23.2], weights_gib=15.0, context_length=100000, free_jitter_gib=0.5)
    fp8 = alternative(found, "kv_cache_dtype=fp8_e4m3")
    assert fp8.mem_fraction_static == 0.9312
    assert fp8.predicted_tokens >= 108192


def test_aiter_takes_its_share_above_its_context() -> None:
    """131,072 tokens are 16 GiB of 80 - 100 * (1 - 0.85 f): f is 36 / 85."""
    found = plan(sglang_version="0.5.21", attention_backend="aiter")
    # at 8,192 tokens of context there is no such share: 1 GiB of 80 - 100 * (1 - f)
    assert found.mem_fraction_static == 0.21
    assert alternative(found, "context_length=131072").mem_fraction_static == 0.4236


def test_a_longest_context_leaves_what_is_wanted() -> None:
    flags = {"tp_size": 2, "page_size": 64, "context_length": 65536, "concurrent_requests": 4, "max_running_requests": 8}
    found = plan(
        "qwen3.5-397b-a17b",
        **{**flags, "sglang_version": "0.5.21", "gpu_free_gib": [93.7], "weights_gib": 5.0},
        mamba_full_memory_ratio=10.0,
    )
    longest = alternative(found, "context_length=")
    assert (longest.verdict, longest.headroom_gib >= 5.0) == ("fits", True)
    assert longest.required_tokens > 4 * 65536


def test_no_advice_where_no_pool_can_be_made_with_it() -> None:
    """Without a radix cache max_running_requests decides the windowed pool, by a chunk that is not known here."""
    found = plan("mimo-v2-flash", tp_size=8, page_size=64, disable_radix_cache=True, min_headroom_gib=99.0)
    assert found.recommended_max_running_requests is None
    assert found.verdict == "impossible"
    assert not [other for other in found.alternatives if other.change.startswith("max_running_requests")]


def test_no_alternative_that_is_impossible_and_leaves_less() -> None:
    found = plan(gpu_free_gib=[23.2], weights_gib=15.0, context_length=131072, concurrent_requests=8, min_headroom_gib=3.0)
    assert found.verdict == "impossible"
    assert found.alternatives
    assert all(other.verdict != "impossible" or other.headroom_gib > found.headroom_gib for other in found.alternatives)
