# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on one boot: each check by a table of cases, what it prints, and that no data whatever pass it by accident."""

from __future__ import annotations

import copy
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, spans_of
from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import sufficient
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Ask, Verdict, judge
from ansible_collections.inferops.sglang.plugins.module_utils._verdict_table import as_data, table
from ansible_collections.inferops.sglang.plugins.plugin_utils import _verdict_filters as filters
from hypothesis import given, settings
from hypothesis import strategies as st

REQUIRED = 200000
RAISE = (
    "raise mem_fraction_static: run the playbook again with sglang_mem_fraction_static 0 (this boot is kept and the plan learns from it), "
    "or give this boot to memory_plan as observed"
)
FLAGS = {
    "model-path": "/srv/models/kimi-k2.6/",
    "host": "127.0.0.1",
    "tp-size": 2,
    "mem-fraction-static": "0.9259",
    "context-length": 200000,
    "kv-cache-dtype": "bf16",
    "max-running-requests": 8,
    "speculative-algorithm": "DFLASH",
    "trust-remote-code": True,
}
ARGS = {
    "model_path": "/srv/models/kimi-k2.6",
    "host": "127.0.0.1",
    "tp_size": 2,
    "pp_size": 1,
    "dp_size": 1,
    "mem_fraction_static": 0.9259,
    "context_length": 200000,
    "kv_cache_dtype": "bf16",
    "max_running_requests": 8,
    "max_total_tokens": None,
    "page_size": 1,
    "speculative_algorithm": "DFLASH",
    "trust_remote_code": True,
    "enable_dp_attention": False,
    "api_key": "********",
}


def rank(tp: int, **more: Any) -> dict[str, Any]:
    return {
        "tp": tp, "pp": 0, "dp": 0, "last_avail_gib": 6.34, "avail_after_pool_gib": 7.9,
        "target": {"tokens": 200099, "dtype": "torch.bfloat16"}, "draft": {"tokens": 200099}, **more,
    }  # fmt: skip


GOOD: dict[str, Any] = {
    "ready": True, "complete": True, "stopped": False, "phase": "ready", "failure": None, "missing_ranks": [], "min_tokens": 200099,
    "max_total_num_tokens": 200099, "context_len": 200000, "max_running_requests": 8, "restarts": 0, "notes": [],
    "server_args": ARGS, "ranks": [rank(0), rank(1)],
}  # fmt: skip


def changed(**places: Any) -> dict[str, Any]:
    """GOOD with values replaced: by key, or by ranks__1__draft and the like."""
    boot = copy.deepcopy(GOOD)
    for path, value in places.items():
        *parts, last = (int(part) if part.isdigit() else part for part in path.split("__"))
        inner: Any = boot
        for part in parts:
            inner = inner[part]
        inner[last] = value
    return boot


def verdict(boot: Any, **ask: Any) -> Verdict:
    return judge(boot, Ask(**{"required_tokens": REQUIRED, "flags": FLAGS, **ask}))


def lines(boot: Any, **ask: Any) -> list[str]:
    """What is said against it, as printed."""
    return [line.strip() for line in table(verdict(boot, **ask), "gpu01 sglang.service") if line.startswith("  - ")]


def test_a_boot_that_is_all_that_was_asked_is_accepted() -> None:
    found = verdict(GOOD)
    assert (found.accepted, found.findings, found.changes, found.notes) == (True, (), (), ())
    assert table(found, "gpu01 sglang.service") == [
        "gpu01 sglang.service: ACCEPTED, 200,000 tokens asked of every rank",
        "  rank     pool  against asked    draft  GiB left  verdict",
        "  TP0   200,099       99 spare  200,099      6.34  ok",
        "  TP1   200,099       99 spare  200,099      6.34  ok",
    ]


FAILURE = {"kind": "oom_capture", "rank": {"tp": 1, "pp": 0, "dp": 0}, "message": "CUDA out\nof memory", "advice": "lower",
           "minimum_fraction": None, "next_fraction": 0.91, "remedy": "lower it"}  # fmt: skip
AGAINST = {
    "a rank that said nothing": (
        changed(ranks=[rank(0)], missing_ranks=[{"tp": 1, "pp": 0, "dp": 0}], complete=False),
        ["- rank TP1: no pool in the journal of this boot"],
    ),
    "a rank that is not even missing": (changed(ranks=[rank(0)]), ["- rank TP1: no pool in the journal of this boot"]),
    "a rank that only the flags tell of": (
        changed(ranks=[rank(0)], server_args={"mem_fraction_static": 0.9259}), ["- rank TP1: no pool in the journal of this boot"],
    ),
    "no rank": (
        changed(ranks=[], server_args={**ARGS, "tp_size": None}),
        ["- ranks TP0-TP1: no pool in the journal of this boot", "- tp-size: asked 2, SGLang runs with nothing"],
    ),
    "a stranger among the ranks": (
        changed(complete=False), ["- 2 ranks reported, and these are not proved to be all of them"],
    ),
    "ranks that are no ranks": (
        changed(ranks=[rank(0), rank(1), {"tp": True}, "TP2", rank(1)]),
        ["- an entry of ranks says not which rank it is", "- TP1 is in ranks twice"],
    ),
    "stopped": (changed(ready=False, stopped=True), ["- not ready: the server was stopped"]),
    "not yet ready": (changed(ready=False, phase="capture"), ["- not ready: the boot stands in phase capture"]),
    "ready is no truth": (changed(ready="yes"), ["- not ready: the boot stands in phase ready"]),
    "a failure": (changed(failure=FAILURE), ["- rank TP1: oom_capture: CUDA out of memory (lower the fraction, next 0.9100)"]),
    "a failure with its least fraction": (
        changed(failure={**FAILURE, "rank": None, "kind": "not_enough_memory", "message": "m", "advice": "raise",
                         "minimum_fraction": 0.8934, "next_fraction": 0.9301}),
        ["- not_enough_memory: m (raise the fraction, next 0.9301, at least 0.8934)"],
    ),
    "a failure that is no failure": (changed(failure="none"), ["- the boot says not whether it failed"]),
    "one rank short": (
        changed(ranks__1__target__tokens=192406, min_tokens=192406, max_total_num_tokens=192406),
        ["- rank TP1: 192,406 of 200,000 tokens, 7,594 short"],
    ),
    "every rank short": (
        changed(ranks=[rank(0, target={"tokens": 148576}), rank(1, target={"tokens": 148576})]),
        ["- ranks TP0-TP1: 148,576 of 200,000 tokens, 51,424 short"],
    ),
    "a rank without a pool": (changed(ranks__0__target=None), ["- rank TP0: 0 of 200,000 tokens, 200,000 short"]),
    "the server admits less than its pools": (
        changed(max_total_num_tokens=192406), ["- the server admits 192406 tokens (max_total_num_tokens), fewer than its pools hold"],
    ),
    "little headroom": (changed(ranks__1__last_avail_gib=0.45), ["- rank TP1: headroom: 0.45 GiB left, 1.00 GiB wanted"]),
    "unknown headroom": (changed(ranks__0__last_avail_gib=None), ["- rank TP0: says not what memory it has left, 1.00 GiB wanted"]),
    "odd headroom": (changed(ranks__0__last_avail_gib=float("nan")), ["- rank TP0: says not what memory it has left, 1.00 GiB wanted"]),
    "a wide spread": (
        changed(ranks__1__avail_after_pool_gib=3.8),
        ["- rank TP1: spread: 3.80 GiB left after its pool, 4.10 less than TP0 (7.90), under 4.00 allowed"],
    ),
    "a spread of exactly the limit": (
        changed(ranks__1__avail_after_pool_gib=3.9),
        ["- rank TP1: spread: 3.90 GiB left after its pool, 4.00 less than TP0 (7.90), under 4.00 allowed"],
    ),
    "pools short of a card that something else holds": (
        changed(ranks=[rank(tp, target={"tokens": 148576}, avail_after_pool_gib=left) for tp, left in enumerate((7.9, 3.9))]),
        ["- ranks TP0-TP1: 148,576 of 200,000 tokens, 51,424 short",
         "- rank TP1: spread: 3.90 GiB left after its pool, 4.00 less than TP0 (7.90), under 4.00 allowed"],
    ),
    "a start that failed before any pool": (
        changed(failure=FAILURE, ready=False, complete=False, server_args={}, min_tokens=None, max_total_num_tokens=None,
                ranks=[], missing_ranks=[{"tp": 0, "pp": 0, "dp": 0}, {"tp": 1, "pp": 0, "dp": 0}]),
        ["- rank TP1: oom_capture: CUDA out of memory (lower the fraction, next 0.9100)"],
    ),
    "a start that failed with a short pool and a changed flag": (
        changed(failure=FAILURE, ready=False, complete=False, server_args={**ARGS, "context_length": 1},
                ranks=[rank(0, target={"tokens": 192406}, draft=None, last_avail_gib=None)],
                missing_ranks=[{"tp": 1, "pp": 0, "dp": 0}]),
        ["- rank TP1: oom_capture: CUDA out of memory (lower the fraction, next 0.9100)",
         "- rank TP0: 192,406 of 200,000 tokens, 7,594 short"],
    ),
    "stopped before any pool": (
        changed(ready=False, stopped=True, complete=False, ranks=[], server_args={}), ["- not ready: the server was stopped"],
    ),
    "one draft of two": (changed(ranks__1__draft=None), ["- rank TP1: no draft pool, which other ranks have"]),
    "no arguments": (
        changed(server_args={}), ["- flags: the line with the server's arguments (server_args) is not in the log of this boot"],
    ),
    "figures that do not agree": (changed(min_tokens=5), ["- the figures of this boot do not agree with one another"]),
    "no boot": (None, ["- no start of a server is known"]),
    "an empty boot": ({}, ["- no start of a server is known"]),
}  # fmt: skip


@pytest.mark.parametrize("case", AGAINST)
def test_what_speaks_against_a_boot(case: str) -> None:
    boot, said = AGAINST[case]
    assert lines(boot) == said
    found = verdict(boot)
    assert not found.accepted
    assert table(found, "h u")[0] == "h u: REFUSED, 200,000 tokens asked of every rank"
    assert all(finding.do for finding in found.findings)


UNEVEN = "TP1 has 4.00 GiB less left than TP0: look what holds memory on its card (nvidia-smi); only if nothing does "
SHORT = {"target": {"tokens": 148576}}
CAUSES = {
    # GiB left after the pool on TP1, where TP0 has 7.90
    "something else on a card": (3.9, {}, UNEVEN + RAISE),
    "the spread is not judged": (3.9, {"max_spread_gib": 0}, UNEVEN + RAISE),
    "from half a GiB on": (7.4, {}, UNEVEN.replace("4.00", "0.50") + RAISE),
    "cards that are as good as equal": (7.41, {}, RAISE),
    "a rank that says nothing": (None, {}, RAISE),
}


@pytest.mark.parametrize("case", CAUSES)
def test_pools_that_are_short_name_the_card_that_something_else_holds_before_the_fraction(case: str) -> None:
    left, ask, do = CAUSES[case]
    found = verdict(changed(ranks=[rank(0, **SHORT), rank(1, **SHORT, avail_after_pool_gib=left)]), **ask)
    assert [finding.do for finding in found.findings if finding.check == "pool"] == [do, do]


def test_a_dead_start_shows_its_cause_first_and_no_rows_of_ranks_that_said_nothing() -> None:
    silent = changed(failure=FAILURE, ready=False, complete=False, server_args={}, ranks=[], missing_ranks=[{"tp": 0}, {"tp": 1}])
    assert table(verdict(silent, also=["probe"]), "h u") == [
        "h u: REFUSED, 200,000 tokens asked of every rank",
        "  - rank TP1: oom_capture: CUDA out of memory (lower the fraction, next 0.9100)",
        "    do: lower it",
        "  - probe",
    ]
    changed_flag = changed(failure=FAILURE, ready=False, complete=False, ranks=[rank(0)], missing_ranks=[{"tp": 1}],
                           server_args={**ARGS, "context_length": 4096})  # fmt: skip
    assert table(verdict(changed_flag), "h u") == [
        "h u: REFUSED, 200,000 tokens asked of every rank",
        "  rank     pool  against asked    draft  GiB left  verdict",
        "  TP0   200,099       99 spare  200,099      6.34  ok",
        "  TP1         -              -        -         -  failed",
        "  - rank TP1: oom_capture: CUDA out of memory (lower the fraction, next 0.9100)",
        "    do: lower it",
        "  note: context-length: asked 200000, SGLang runs with 4096",
    ]


# 77,184 bytes a token: 61 x 576 x 2 of the target and 6,912 of the draft; 93.7274 GiB free before the weights.
# From 0.9259 to 0.9221 a pool of 200,099 loses 0.0038 * 93.7274 / (77,184 / 2^30) = 4,954.8 tokens.
COSTS = {
    "avail_before_weights_gib": 93.7274,
    "target": {"tokens": 200099, "kv_gib": 200099 * 70272 / 2**30},
    "draft": {"tokens": 200099, "k_gib": 200099 * 3456 / 2**30, "v_gib": 200099 * 3456 / 2**30},
}
FOLLOWING = {
    "too few tokens": ({}, {}, 0.9221, "lower it; at 0.9221 the pool is about 195,144 tokens, 4,856 short of 200,000"),
    # 0.00005 * 93.7274 GiB are 65.2 tokens
    "still enough": ({}, {}, 0.92585, "lower it"),
    "no pool is left": ({}, {}, 0.5, "lower it; at 0.5000 the pool is about 0 tokens, 200,000 short of 200,000"),
    "no next fraction": ({}, {}, None, "lower it"),
    "no such fraction": ({}, {}, -1, "lower it"),
    "no fraction is known": ({}, {"mem_fraction_static": None}, 0.9221, "lower it"),
    "no free memory is known": ({"avail_before_weights_gib": None}, {}, 0.9221, "lower it"),
    "no size of the pool": ({"target": {"tokens": 200099}}, {}, 0.9221, "lower it"),
    "no size of the draft's pool": ({"draft": {"tokens": 200099}}, {}, 0.9221, "lower it"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLLOWING)
def test_a_failure_says_what_its_next_fraction_would_still_hold(case: str) -> None:
    figures, args, following, do = FOLLOWING[case]
    boot = changed(
        failure={**FAILURE, "next_fraction": following}, ready=False, server_args={**ARGS, **args},
        ranks=[rank(tp, **{**COSTS, **figures}) for tp in (0, 1)],
    )  # fmt: skip
    assert verdict(boot).findings[0].do == do


LONG = "word " * 60
CUTS = [
    ("x" * 200, "x" * 200),
    ("x" * 201, "x" * 197 + "..."),
    (LONG, ("word " * 39).rstrip() + "..."),
    ("ab" + LONG, "ab" + ("word " * 39).rstrip() + "..."),
    ("abc" + LONG, "abc" + ("word " * 39).rstrip() + "..."),
    ("abcd" + LONG, "abcd" + ("word " * 38).rstrip() + "..."),
]


@pytest.mark.parametrize(("message", "shown"), CUTS)
def test_a_long_message_is_cut_after_a_word(message: str, shown: str) -> None:
    found = verdict(changed(failure={**FAILURE, "message": message})).findings[0].found
    assert found == f"oom_capture: {shown} (lower the fraction, next 0.9100)"


def test_what_sglang_chose_where_nothing_was_asked_is_a_note() -> None:
    boot = changed(server_args={**ARGS, "page_size": 64, "kv_cache_dtype": "fp8_e4m3"})
    found = verdict(boot, flags={"tp-size": 2})
    assert (found.accepted, found.notes) == (
        True, ("page-size: not asked, SGLang runs with 64", "kv-cache-dtype: not asked, SGLang runs with fp8_e4m3"),
    )  # fmt: skip
    assert verdict(changed(server_args={"tp_size": 2, "page_size": 1, "kv_cache_dtype": "auto"}), flags={"tp-size": 2}).notes == ()
    assert verdict(boot, flags={"--page_size": 64, "kv-cache-dtype": "fp8_e4m3"}).notes == ()


ASKED = {
    "no tokens": ({"required_tokens": 0}, ["- asked for 0 tokens of every rank"]),
    "odd tokens": ({"required_tokens": 1.5}, ["- asked for 1.5 tokens of every rank"]),
    "odd headroom": ({"min_avail_gib": "x"}, ["- asked for min_avail_gib x"]),
    "negative spread": ({"max_spread_gib": -1}, ["- asked for max_spread_gib -1"]),
    "no number": ({"max_spread_gib": float("nan")}, ["- asked for max_spread_gib nan"]),
    "flags that are none": ({"flags": None}, ["- asked for flags nothing"]),
    "names that are no list": ({"allowed_changes": "dtype"}, ["- asked for allowed_changes dtype"]),
    "texts that are no list": ({"also": {"a": 1}}, ["- asked for also {a: 1}"]),
    "found by other means": ({"also": ["probe: status 503", "restart"]}, ["- probe: status 503", "- restart"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_what_is_asked_must_make_sense(case: str) -> None:
    ask, said = ASKED[case]
    assert lines(GOOD, **ask) == said


ALLOWED = {
    "exactly enough": (changed(ranks=[rank(0, target={"tokens": 200000}), rank(1)], min_tokens=200000, max_total_num_tokens=200000), {}),
    "no final line": (changed(max_total_num_tokens=None, context_len=None, max_running_requests=None), {}),
    "headroom of exactly what is wanted": (changed(ranks__1__last_avail_gib=1.0), {}),
    "headroom is not judged": (changed(ranks__1__last_avail_gib=None), {"min_avail_gib": 0}),
    "the spread is not judged": (changed(ranks__1__avail_after_pool_gib=0.1), {"max_spread_gib": 0}),
    "a spread just under the limit": (changed(ranks__1__avail_after_pool_gib=3.91), {}),
    "a spread that nobody printed": (changed(ranks__1__avail_after_pool_gib=None), {}),
    "all ranks draw on the memory of the host": (
        changed(ranks__1__avail_after_pool_gib=0.1, server_args={**ARGS, "device": "cpu"}), {},
    ),
    "stages of a pipeline differ": (
        changed(ranks=[rank(0), rank(0, pp=1, avail_after_pool_gib=1.5)], server_args={**ARGS, "tp_size": 1, "pp_size": 2}),
        {"flags": {}},
    ),
    "no draft at all": (changed(ranks__0__draft=None, ranks__1__draft=None), {}),
    "one node of two": (changed(server_args={**ARGS, "tp_size": 4, "nnodes": 2}), {"flags": {"tp-size": 4}}),
    "ranks of attention data parallelism": (
        changed(ranks=[rank(0), rank(1, dp=1)], server_args={**ARGS, "dp_size": 2, "enable_dp_attention": True}),
        {"flags": {}},
    ),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_is_no_reason(case: str) -> None:
    boot, ask = ALLOWED[case]
    assert lines(boot, **ask) == []
    assert verdict(boot, **ask).accepted


# flag, as asked, in the arguments that were printed: the change as text; None where nothing was changed
FLAG_CASES: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("mem-fraction-static", "0.9259", {"mem_fraction_static": 0.787}, "0.787"),
    ("mem-fraction-static", 0.92591, {"mem_fraction_static": 0.9259}, None),
    ("mem-fraction-static", "0.9260", {"mem_fraction_static": 0.9259}, "0.9259"),
    ("--mem_fraction_static", 0.9, {"mem_fraction_static": 0.9}, None),
    ("kv-cache-dtype", "fp8_e4m3", {"kv_cache_dtype": "bfloat16"}, "bfloat16"),
    ("kv-cache-dtype", "bf16", {"kv_cache_dtype": "bfloat16"}, None),
    ("kv-cache-dtype", "auto", {"kv_cache_dtype": "fp8_e4m3"}, None),
    ("dtype", "half", {"dtype": "float16"}, None),
    ("dtype", "float16", {"dtype": "bfloat16"}, "bfloat16"),
    ("speculative-algorithm", "NEXTN", {"speculative_algorithm": "EAGLE"}, None),
    ("speculative-algorithm", "nextn", {"speculative_algorithm": "FROZEN_KV_MTP"}, None),
    ("speculative-algorithm", "EAGLE", {"speculative_algorithm": "EAGLE3"}, "EAGLE3"),
    ("speculative-algorithm", "DFLASH", {"speculative_algorithm": None}, "nothing"),
    ("speculative-num-draft-tokens", 8, {"speculative_num_draft_tokens": 4}, "4"),
    ("page-size", 1, {"page_size": 64}, "64"),
    ("context-length", 200000, {"context_length": 163840}, "163840"),
    ("tp", 2, {"tp_size": 2}, None),
    ("tensor-parallel-size", "2", {"tp_size": 2}, None),
    ("expert-parallel-size", "8", {"ep_size": 1}, "1"),
    ("model", "/srv/m//x/", {"model_path": "/srv/m/x"}, None),
    ("model-path", "/srv/m/x", {"model_path": "/srv/m/y"}, "/srv/m/y"),
    ("device", "cuda:0", {"device": "cuda"}, None),
    ("device", "cuda", {"device": "cpu"}, "cpu"),
    # renamed flags: kept under the old name in one release and under the new one in another
    ("cuda-graph-max-bs", 8, {"cuda_graph_max_bs": 8}, None),
    ("cuda-graph-max-bs", 8, {"cuda_graph_max_bs_decode": 8}, None),
    ("cuda-graph-max-bs", 8, {"cuda_graph_max_bs": None, "cuda_graph_max_bs_decode": 8}, None),
    ("cuda-graph-max-bs", 8, {"cuda_graph_max_bs": None, "cuda_graph_max_bs_decode": 16}, "16"),
    ("cuda-graph-bs", [1, 2, 4], {"cuda_graph_bs_decode": [1, 2, 4]}, None),
    ("cuda-graph-bs", "4 2 1", {"cuda_graph_bs": [1, 2, 4]}, None),
    ("cuda-graph-bs", [1, 2, 4], {"cuda_graph_bs": [1, 2]}, "[1, 2]"),
    ("mamba-scheduler-strategy", "extra_buffer", {"mamba_radix_cache_strategy": "extra_buffer"}, None),
    ("mamba-radix-cache-strategy", "extra_buffer", {"mamba_scheduler_strategy": "no_buffer"}, "no_buffer"),
    ("disable-piecewise-cuda-graph", True, {"cuda_graph_backend_prefill": "disabled"}, None),
    ("disable-piecewise-cuda-graph", True, {"cuda_graph_backend_prefill": "full"}, "full"),
    ("attention-backend", "nsa", {"attention_backend": "dsa"}, None),
    ("tool-call-parser", "qwen25", {"tool_call_parser": "qwen"}, None),
    # switches
    ("trust-remote-code", True, {"trust_remote_code": True}, None),
    ("disable-radix-cache", True, {"disable_radix_cache": False}, "false"),
    ("disable-radix-cache", False, {"disable_radix_cache": None}, None),
    ("disable-overlap-schedule", False, {"disable_overlap_schedule": True}, "true"),
    # JSON
    ("json-model-override-args", {"a": "b $x"}, {"json_model_override_args": '{"a": "b $x"}'}, None),
    ("json-model-override-args", '{"a": 1}', {"json_model_override_args": {"a": 1, "b": 2}}, None),
    ("json-model-override-args", {"a": 1}, {"json_model_override_args": '{"a": 2}'}, '{"a": 2}'),
    ("hicache-ratio", 2, {"hicache_ratio": 2.0}, None),
    ("chat-template", "a b", {"chat_template": "a b"}, None),
    ("chat-template", "a b", {"chat_template": "b a"}, "b a"),
    ("warmups", "", {"warmups": None}, None),
    # what attention data parallelism shares out
    ("chunked-prefill-size", 8192, {"chunked_prefill_size": 2048, "dp_size": 4, "enable_dp_attention": True}, None),
    ("chunked-prefill-size", 8192, {"chunked_prefill_size": 2730, "dp_size": 3, "enable_dp_attention": True}, None),
    ("chunked-prefill-size", 8192, {"chunked_prefill_size": 2048, "attn_dp_size": 4}, None),
    ("chunked-prefill-size", 8192, {"chunked_prefill_size": 2048}, "2048"),
    ("schedule-conservativeness", 1.0, {"schedule_conservativeness": 0.3, "dp_size": 2, "enable_dp_attention": True}, None),
]


@pytest.mark.parametrize(("flag", "asked", "printed", "effective"), FLAG_CASES)
def test_a_flag_against_what_was_printed(flag: str, asked: Any, printed: dict[str, Any], effective: Any) -> None:
    boot = {**GOOD, "server_args": {"tp_size": 2, **printed}}
    if printed.get("enable_dp_attention"):
        boot["ranks"], boot["server_args"]["tp_size"] = [rank(tp) for tp in range(4)], 4
    found = verdict(boot, flags={flag: asked})
    assert [change.effective for change in found.changes] == ([] if effective is None else [effective])
    assert found.accepted is (effective is None)
    # the same change, allowed under either spelling of its name
    for name in (flag, flag.replace("-", "_")):
        allowed = verdict(boot, flags={flag: asked}, allowed_changes=[name])
        assert allowed.accepted
        assert [change.allowed for change in allowed.changes] == [True] * (effective is not None)


def test_a_changed_flag_says_what_to_do_and_an_allowed_one_is_a_note() -> None:
    boot = changed(server_args={**ARGS, "kv_cache_dtype": "fp8_e4m3"})
    assert table(verdict(boot), "h u")[-2:] == [
        "  - kv-cache-dtype: asked bf16, SGLang runs with fp8_e4m3",
        "    do: ask for what this release and this card can do, or name the flag in allowed_changes "
        "(sglang_gate_allowed_changes of the role) if it may differ",
    ]
    allowed = verdict(boot, allowed_changes=["kv_cache_dtype"])
    assert table(allowed, "h u")[-1] == "  note: kv-cache-dtype: asked bf16, SGLang runs with fp8_e4m3, which is allowed"


def test_what_cannot_be_compared_is_a_note() -> None:
    found = verdict(GOOD, flags={**FLAGS, "api-key": "s3cret", "config": "/etc/x.yml", "new-flag": 1})
    assert found.accepted
    assert found.notes == ("not shown by this release, so not compared: config, new-flag", "not comparable: api-key")
    assert "s3cret" not in json.dumps(as_data(found))


# what the arguments show as asked, and the final line or the pools show otherwise
LATER = [
    ("context-length", 200000, {"context_len": 163840}, "163840 (final line)"),
    ("context-length", 200000, {"context_len": 262144}, None),
    ("max-running-requests", 64, {"max_running_requests": 22}, "22 (final line)"),
    ("max-running-requests", 8, {"max_running_requests": 48}, None),
    ("max-total-tokens", 250000, {}, "200099 (final line)"),
    ("max-total-tokens", 200099, {}, None),
    ("kv-cache-dtype", "fp8_e4m3", {}, "bfloat16 (pools of 2 ranks)"),
    ("kv-cache-dtype", "bf16", {"ranks": [rank(0), rank(1, target={"tokens": 200099, "dtype": "torch.float8_e4m3fn"})]},
     "float8_e4m3fn (pools of 1 ranks)"),
    ("kv-cache-dtype", "bf16", {"ranks": [rank(0), rank(1, target={"tokens": 200099})]}, None),
    ("kv-cache-dtype", "auto", {}, None),
    ("kv-cache-dtype", "nvfp4", {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("flag", "asked", "boot", "effective"), LATER)
def test_what_the_arguments_do_not_tell(flag: str, asked: Any, boot: dict[str, Any], effective: Any) -> None:
    shown = {**GOOD, **boot, "server_args": {**ARGS, flag.replace("-", "_"): asked}}
    found = verdict(shown, flags={flag: asked})
    assert [(change.flag, change.effective) for change in found.changes] == ([] if effective is None else [(flag, effective)])
    assert found.accepted is (effective is None)
    assert verdict(shown, flags={flag: asked}, allowed_changes=[flag]).accepted


def test_requests_are_shared_among_the_groups_of_attention_data_parallelism() -> None:
    args = {**ARGS, "dp_size": 2, "enable_dp_attention": True, "max_running_requests": 64}
    boot = changed(server_args=args, ranks=[rank(0), rank(1, dp=1)], max_running_requests=32)
    assert verdict(boot, flags={"max-running-requests": 64}).accepted
    assert not verdict({**boot, "max_running_requests": 31}, flags={"max-running-requests": 64}).accepted


def test_pools_cut_to_whole_pages_are_not_clamped() -> None:
    pools = {"ranks": [rank(tp, target={"tokens": 200064}) for tp in (0, 1)], "min_tokens": 200064, "max_total_num_tokens": 200064}
    for asked, accepted in ((200064, True), (200127, True), (200128, False)):
        boot = {**GOOD, **pools, "server_args": {**ARGS, "page_size": 64, "max_total_tokens": asked}}
        assert verdict(boot, flags={"max-total-tokens": asked}).accepted is accepted


def test_ranks_that_nothing_tells_of() -> None:
    assert lines(changed(ranks=[], server_args={"page_size": 1}), flags={}) == ["- no rank reported a pool in the journal of this boot"]


def test_restarts_and_the_notes_of_the_boot_are_shown() -> None:
    assert verdict(changed(restarts=2, notes=["the log\nis short"])).notes == (
        "the server was restarted 2 times before this start came up", "the log is short",
    )  # fmt: skip


def many(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    return changed(ranks=ranks, server_args={**ARGS, "tp_size": 64})


def test_equal_rows_of_many_ranks_are_folded() -> None:
    flags = {**FLAGS, "tp-size": 64}
    ranks = [rank(tp, last_avail_gib=6.34 if tp % 2 else 6.36) for tp in range(64)]
    assert table(verdict(many(ranks), flags=flags), "h u") == [
        "h u: ACCEPTED, 200,000 tokens asked of every rank",
        "  rank         pool  against asked    draft   GiB left  verdict",
        "  TP0-TP63  200,099       99 spare  200,099  6.34-6.36  ok",
    ]
    ranks[40]["target"]["tokens"], ranks[40]["last_avail_gib"] = 192406, 0.45
    short = {**many(ranks), "min_tokens": 192406}
    assert table(verdict(short, flags=flags), "h u")[1:7] == [
        "  rank          pool  against asked    draft   GiB left  verdict",
        "  TP0-TP39   200,099       99 spare  200,099  6.34-6.36  ok",
        "  TP40       192,406    7,594 short  200,099       0.45  short",
        "  TP41-TP63  200,099       99 spare  200,099  6.34-6.36  ok",
        "  - rank TP40: 192,406 of 200,000 tokens, 7,594 short",
        f"    do: {RAISE}",
    ]


def test_the_refusal_of_the_case_that_started_this() -> None:
    """Fraction 0.92 gave 192,406 tokens on each of eight ranks; TP5 has 0.01 GiB less."""
    ranks = [rank(tp, target={"tokens": 192406}, draft={"tokens": 192406}, last_avail_gib=6.24 if tp == 5 else 6.25) for tp in range(8)]
    boot = changed(ranks=ranks, min_tokens=192406, max_total_num_tokens=192406, server_args={**ARGS, "tp_size": 8})
    assert table(verdict(boot, flags={**FLAGS, "tp-size": 8}), "gpu01 sglang-k26-ddtree.service") == [
        "gpu01 sglang-k26-ddtree.service: REFUSED, 200,000 tokens asked of every rank",
        "  rank     pool  against asked    draft  GiB left  verdict",
        *[f"  TP{tp}   192,406    7,594 short  192,406      {'6.24' if tp == 5 else '6.25'}  short" for tp in range(8)],
        "  - ranks TP0-TP7: 192,406 of 200,000 tokens, 7,594 short",
        f"    do: {RAISE}",
    ]


SPANS = [
    ([(0, 0, 3)], "TP3"),
    ([(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 5)], "TP0-TP2, TP5"),
    ([(0, 0, 9), (0, 0, 10), (0, 1, 0), (0, 1, 1)], "TP9-TP10, PP1 TP0-TP1"),
    ([(0, 0, 0), (1, 0, 1), (1, 2, 2)], "TP0, DP1 TP1, DP1 PP2 TP2"),
]


@pytest.mark.parametrize(("places", "text"), SPANS)
def test_ranks_in_short(places: list[tuple[int, int, int]], text: str) -> None:
    assert ", ".join(spans_of(RankId(*place) for place in places)) == text


def test_plain_data_for_machines() -> None:
    data = as_data(verdict(changed(ranks__1__target__tokens=192406), allowed_changes=["x"]))
    assert json.loads(json.dumps(data)) == data
    assert data["rows"][1] == {
        "dp": 0, "pp": 0, "tp": 1, "rank": "TP1", "tokens": 192406, "spare": -7594, "draft_tokens": 200099, "left_gib": 6.34,
        "word": "short",
    }  # fmt: skip
    assert data["findings"] == [{
        "check": "pool", "rank": "TP1", "asked": "200,000 tokens", "found": "192,406 of 200,000 tokens, 7,594 short",
        "do": RAISE,
    }]  # fmt: skip


EXPRESSIONS = [
    ("(boot | inferops.sglang.verdict(200000)).accepted", True),
    ("(boot | inferops.sglang.verdict('200000', flags={'kv-cache-dtype': 'bf16'})).accepted", True),
    ("(boot | inferops.sglang.verdict(200000, flags={'kv-cache-dtype': 'fp8_e4m3'})).changes[0].effective", "bf16"),
    ("(boot | inferops.sglang.verdict(200100, name='gpu01')).table[0]", "gpu01: REFUSED, 200,100 tokens asked of every rank"),
    ("(boot | inferops.sglang.verdict(200000, also=['x'])).table[-2]", "  - x"),
    ("(nothing | inferops.sglang.verdict(200000)).accepted", False),
    ("(nothing.allocation | inferops.sglang.verdict(200000)).findings[0].found", "no start of a server is known"),
    ("(none | inferops.sglang.verdict(200000)).accepted", False),
    ("(boot.absent | inferops.sglang.verdict(200000)).accepted", False),
    ("(hollow | inferops.sglang.verdict(200000)).accepted", False),
    ("(boot | inferops.sglang.verdict(nothing)).accepted", False),
    ("(boot | inferops.sglang.verdict(200000, flags=nothing)).accepted", False),
    ("(boot | inferops.sglang.verdict(200000, flags={'page-size': nothing})).accepted", False),
    ("(boot | inferops.sglang.verdict(200000, also=nothing)).accepted", False),
    ("(boot | inferops.sglang.verdict(200000, also=[nothing])).accepted", False),
    ("(boot | inferops.sglang.verdict(200000, min_avail_gib=nothing)).accepted", False),
    ("(boot | inferops.sglang.verdict(200000, allowed_changes=nothing)).accepted", False),
]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS)
def test_in_a_template(expression: str, expected: Any) -> None:
    hollow = {**GOOD, "server_args": {**ARGS, "tp_size": trust_as_template("{{ nothing }}")}, "ready": trust_as_template("{{ nothing }}")}
    templar = Templar(loader=DataLoader(), variables={"boot": GOOD, "hollow": hollow})
    assert templar.template(trust_as_template("{{ " + expression + " }}")) == expected


def test_the_filter_takes_what_is_documented() -> None:
    text = (Path(filters.__file__).parents[1] / "filter/verdict.yml").read_text(encoding="utf-8")
    options = yaml.safe_load(text)["DOCUMENTATION"]["options"]
    taken = {name: one.default for name, one in inspect.signature(filters.verdict).parameters.items()}
    assert list(options) == ["_input", *list(taken)[1:]]
    known = {name: {} if name == "flags" else list(value) if value == () else value for name, value in taken.items()}
    assert {name: spec["default"] for name, spec in options.items() if "default" in spec} == {
        name: value for name, value in known.items() if value is not inspect.Parameter.empty
    }


def test_a_real_start_of_sglang_with_the_flags_it_was_given() -> None:
    folder = BootFolder()
    log = Path(__file__).parent / "fixtures/logs/0.5.23-qwen3-dflash-tp2.log"
    for line in log.read_text(encoding="utf-8").splitlines():
        folder.feed(Entry(line))
    boot = folder.result(Parallelism(), ended=True, saved=True).as_dict()
    flags = {
        "model-path": "/srv/models/qwen3/", "device": "cpu", "tp-size": 2, "mem-fraction-static": "0.9500", "dtype": "auto",
        "max-total-tokens": 1048576, "speculative-algorithm": "DFLASH", "attention-backend": "torch_native",
    }  # fmt: skip
    assert table(verdict(boot, flags=flags), "")[:4] == [
        "ACCEPTED, 200,000 tokens asked of every rank",
        "  rank       pool  against asked      draft  GiB left  verdict",
        "  TP0   1,048,576  848,576 spare  1,048,576     19.08  ok",
        "  TP1   1,048,576  848,576 spare  1,048,576     19.24  ok",
    ]
    more = verdict(boot, flags={**flags, "max-running-requests": 64, "speculative-algorithm": "EAGLE"})
    assert [(change.flag, change.effective) for change in more.changes] == [
        ("speculative-algorithm", "DFLASH"), ("max-running-requests", "48"),
    ]  # fmt: skip


# --- whatever the data --------------------------------------------------------------------------------------------------

HUGE = st.integers(5000, 5001).map(lambda digits: 10**digits)
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | HUGE | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
PATHS = [
    *((key,) for key in GOOD),
    *(("server_args", key) for key in ARGS),
    ("ranks", 0),
    ("ranks", 1),
    *(("ranks", number, key) for number in (0, 1) for key in rank(0)),
    *(("ranks", number, "target", key) for number in (0, 1) for key in ("tokens", "dtype")),
]


def every_rank_is_proved(boot: Any) -> bool:
    """Both ranks, by their own words."""
    try:
        ranks = {entry["tp"]: entry for entry in boot["ranks"]}
        return sorted(ranks) == [0, 1] and all(entry["target"]["tokens"] >= REQUIRED for entry in ranks.values())
    except (TypeError, KeyError):
        return False


def held(boot: Any, **ask: Any) -> None:
    """What must hold of any verdict."""
    found = verdict(boot, **ask)
    data, shown = as_data(found), table(found, "h u")
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert all("\n" not in line and line == line.rstrip() for line in shown)
    assert found.accepted is not bool(found.findings)
    if found.accepted:
        assert sufficient(boot, REQUIRED)
        assert every_rank_is_proved(boot)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), ODD | st.just("leave out")), min_size=1, max_size=3))
def test_a_good_boot_with_anything_anywhere_never_passes_without_every_rank(edits: list[tuple[tuple[Any, ...], Any]]) -> None:
    boot = copy.deepcopy(GOOD)
    for path, value in edits:
        inner: Any = boot
        try:
            for part in path[:-1]:
                inner = inner[part]
            if value == "leave out":
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
        except (TypeError, KeyError, IndexError):
            continue
    held(boot)


@settings(max_examples=200, deadline=None)
@given(boot=ODD, flags=ODD, least=ODD, spread=ODD, allowed=st.lists(ODD, max_size=3), also=st.lists(ODD, max_size=2))
def test_whatever_is_given_there_is_a_verdict(boot: Any, flags: Any, least: Any, spread: Any, allowed: list[Any], also: list[Any]) -> None:
    held(boot, flags=flags, min_avail_gib=least, max_spread_gib=spread, allowed_changes=allowed, also=also)
    held(GOOD, flags=flags, min_avail_gib=least, max_spread_gib=spread, allowed_changes=allowed, also=also)


@settings(max_examples=200, deadline=None)
@given(flag=st.sampled_from(sorted(FLAGS)), asked=ODD, printed=ODD)
def test_any_value_of_a_flag_can_be_compared(flag: str, asked: Any, printed: Any) -> None:
    held({**GOOD, "server_args": {**ARGS, flag.replace("-", "_"): printed}}, flags={flag: asked})


def test_an_allocation_of_a_folded_log_is_judged_as_it_is() -> None:
    folder = BootFolder()
    said = [
        "server_args=ServerArgs(model_path='/m', tp_size=2, mem_fraction_static=0.9, kv_cache_dtype='bfloat16', page_size=1)",
        *[
            f"TP{tp} {text}"
            for tp in (0, 1)
            for text in (
                "Load weight begin. avail mem=90.00 GB",
                "Load weight end. type=X, dtype=torch.bfloat16, avail mem=30.00 GB, mem usage=60.00 GB.",
                "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 250000, KV size: 20.00 GB",
                "Memory pool end. avail mem=9.50 GB",
            )
        ],
        "TP0 max_total_num_tokens=250000, chunked_prefill_size=8192, max_running_requests=64, context_len=131072",
        "The server is fired up and ready to roll!",
    ]
    for text in said:
        rank_name, _blank, rest = text.partition(" ") if text.startswith("TP") else ("", "", text)
        folder.feed(Entry(f"[2026-05-01 10:00:00{' ' * bool(rank_name)}{rank_name}] {rest}"))
    boot = folder.result(Parallelism()).as_dict()
    found = verdict(boot, flags={"model-path": "/m", "tp-size": 2, "mem-fraction-static": "0.9000", "kv-cache-dtype": "bf16"})
    assert (found.accepted, found.findings) == (True, ())
    assert [(row.tokens, row.spare, row.left_gib) for row in found.rows] == [(250000, 50000, 9.5)] * 2
