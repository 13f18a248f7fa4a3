# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans: from earlier starts, from measurements of failed starts, from estimates; verdicts, bounds and alternatives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import Weights
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Plan, Request, make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

CONFIGS = Path(__file__).parent / "fixtures/configs"


def geometry(name: str) -> Geometry:
    return read_geometry(json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")))


def boot(fraction: float | None, tokens: int | None, **more: Any) -> dict[str, Any]:
    """A start as allocation_info returns it, as far as these tests need it; server_args are merged."""
    args = {"mem_fraction_static": fraction, **more.pop("server_args", {})}
    return {"sglang_version": "0.5.12.post1", "ready": True, "min_tokens": tokens, "server_args": args, **more}


FIRST = boot(0.85, 101134, available_gpu_mem_gib=10.37, max_running_requests=64)
SECOND = boot(0.92, 192406, available_gpu_mem_gib=6.23, max_running_requests=8)


def plan(observed: list[dict[str, Any]] | None = None, **changes: Any) -> Plan:
    """Kimi K2.6 with its DFlash draft on 8 ranks; flags of the deployment and of the sources by their names."""
    flags: dict[str, Any] = {"algorithm": "DFLASH", "tp_size": 8, "max_running_requests": 8}
    sources: dict[str, Any] = {"observed": observed or []}
    request: dict[str, Any] = {"version": "0.5.12.post1", "context_length": 200000}
    for key, value in changes.items():
        kind = flags if key in Deployment.__dataclass_fields__ and key != "context_length" else request
        (sources if key in Sources.__dataclass_fields__ else kind)[key] = value
    draft = None if not flags["algorithm"] else geometry("kimi-k2.6-dflash")
    return make_plan(
        Request(**{"target": geometry("kimi-k2.6"), "draft": draft, **request}, deployment=Deployment(**flags), sources=Sources(**sources))
    )


ESTIMATE = {"gpu_free_gib": 94.0, "weights": lambda: Weights(72.3), "draft_weights": lambda: Weights(1.312)}


KEYS = [
    "sglang_version", "started_at", "ready", "min_tokens", "max_total_num_tokens", "available_gpu_mem_gib", "min_avail_gib", "load_order",
    "server_args", "mem_fraction_static", "tp_size", "page_size", "max_total_tokens", "max_running_requests", "context_len",
    "ranks", "target", "tokens", "dtype", "draft", "k_gib", "v_gib", "avail_before_weights_gib", "avail_after_weights_gib",
    "avail_after_pool_gib", "avail_after_capture_gib", "failure", "kind", "advice", "minimum_fraction",
]  # fmt: skip


def text(found: Plan) -> str:
    return "\n".join(found.reasons)


# --- the two starts this collection began with ---


def test_the_two_starts() -> None:
    found = plan([FIRST, SECOND], algorithm="DDTREE")
    assert found.mem_fraction_static == 0.9259
    assert found.basis == "observed"
    assert found.era == "0.5.11-0.5.13"
    assert found.bytes_per_token == {"target": 70272, "draft": 3072, "charged": 77184}
    assert found.tokens_per_hundredth == 13039
    assert 200000 <= found.predicted_tokens <= 200130
    assert found.error_tokens <= 2
    assert found.headroom_gib == pytest.approx(5.69, abs=0.02)
    assert found.verdict == "fits"
    assert found.lower_bound == pytest.approx(1 - 21.329 / 93.727, abs=0.0002)


def test_what_the_two_starts_mean() -> None:
    said = text(plan([FIRST, SECOND], algorithm="DDTREE"))
    for part in (
        "1,303,886 tokens for 1.00",
        "192,406 tokens, 7,594 short of 200,000",
        "K/V pool of 0.28 / 0.28 GiB is the draft's",
        "1,536 bytes per token for K and for V",
        "not a layer of the target",
        "Free memory fell by 4.1 GiB",
        "not by the 6.6 GiB",
        "max_running_requests 64 then 8",
        "DDTREE is in no SGLang release",
        "T + G + 2",
    ):
        assert part in said


def test_the_order_of_the_list_and_the_stamps() -> None:
    """The last is the newest, unless all carry a stamp."""
    assert plan([FIRST, SECOND]).headroom_gib == pytest.approx(5.69, abs=0.02)
    stamped = [{**SECOND, "started_at": "2026-05-30T22:08:02"}, {**FIRST, "started_at": "2026-05-30T20:00:00"}]
    assert plan(stamped).headroom_gib == pytest.approx(5.69, abs=0.02)
    # with the older one as anchor: 10.37 GiB less 98,866 tokens of 73,344 bytes, and 56 rows of 200,012 requests' entries back
    assert plan([SECOND, FIRST]).headroom_gib == pytest.approx(10.37 - 6.753 + 0.042, abs=0.02)


def test_one_start_and_the_cards() -> None:
    """f' = f + dN * c / (P * 2**30) = 0.92 + 7594 * 77184 / (93.73 * 2**30)"""
    found = plan([SECOND], gpu_free_gib=93.73)
    assert (found.mem_fraction_static, found.basis) == (0.9259, "observed")
    logged = {**SECOND, "ranks": [{"avail_before_weights_gib": gib} for gib in (93.9, 93.73, 93.8)]}
    assert plan([logged]).mem_fraction_static == 0.9259
    assert plan([logged], gpu_free_gib=50.0).mem_fraction_static == 0.9259


def test_one_start_without_the_cards() -> None:
    with pytest.raises(InputError, match=r"a plan from one earlier start.*give gpu_free_gib, or a second start"):
        plan([SECOND], weights=unknown)


@pytest.mark.parametrize("start", [{}, {"min_tokens": 192406}, {"server_args": {"mem_fraction_static": 0.92}}, {"allocation": SECOND}])
def test_a_start_that_tells_nothing_is_named(start: dict[str, Any]) -> None:
    found = plan([start], **ESTIMATE)
    assert found.basis == "estimated"
    assert "No observed start tells enough to plan from" in text(found)
    assert "No observed start" not in text(plan([], **ESTIMATE))


def unknown() -> Weights:
    raise InputError("weights", "none", "give them")


ONE_START = [
    # P = (21.33 - 192,406.5 * 77,184 / 2**30) / 0.08 = 93.74
    ({"ranks": [{"avail_after_weights_gib": gib} for gib in (21.5, 21.33)]}, {"weights": unknown}, 93.74, 7),
    ({}, {"weights": unknown, "free_at_sizing_gib": 21.33}, 93.74, 7),
    # P = (192,406.5 * 77,184 / 2**30 + 72.4) / 0.92 = 93.73, and 5 % of the weights are 4.2 % of P
    ({}, {"weights": lambda: Weights(72.4, 0.005)}, 93.73, 2),
    ({}, {"weights": lambda: Weights(72.4, 3.62)}, 93.73, 324),
]


@pytest.mark.parametrize(("logged", "sources", "before", "error"), ONE_START)
def test_one_start_that_does_not_show_what_was_free_before(
    logged: dict[str, Any], sources: dict[str, Any], before: float, error: int
) -> None:
    found = plan([{**SECOND, **logged}], **sources)
    assert (found.mem_fraction_static, found.basis, found.verdict) == (0.9259, "observed", "fits")
    assert f"{before:.2f} GiB free before the weights (from " in text(found)
    assert found.error_tokens == error


def test_the_pool_that_only_the_summary_line_names() -> None:
    bare = [{"max_total_num_tokens": n, "server_args": {"mem_fraction_static": f}} for f, n in ((0.85, 101134), (0.92, 192406))]
    found = plan(bare)
    assert (found.mem_fraction_static, found.basis) == (0.9259, "observed")
    assert "does not tell what was left" in text(found)


def test_the_smallest_rank_counts() -> None:
    ranks = [{"target": {"tokens": n}, "draft": {"k_gib": 0.28, "v_gib": 0.28}} for n in (192406, 192000, 192406)]
    found = plan([{**SECOND, "ranks": ranks}], gpu_free_gib=93.73)
    assert "192,000 tokens, 8,000 short" in text(found)


def test_a_third_start_lies_on_the_line_of_two() -> None:
    """A public server: 20,416 tokens at 0.75, 53,440 at 0.85, 86,528 at 0.95; pages of 64 leave one page of doubt."""
    starts = [boot(0.75, 20416), boot(0.85, 53440)]
    found = make_plan(
        Request("0.5.12.post1", geometry("llama-3.1-8b"), Deployment(page_size=64), Sources(observed=starts), mem_fraction_static=0.95)
    )
    assert abs(found.predicted_tokens - 86528) <= 128


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sglang_version": "0.5.13.post1"}, "sglang_version is 0.5.13.post1, the plan's is 0.5.12.post1"),
        ({"server_args": {"tp_size": 4}}, "tp_size is 4"),
        ({"server_args": {"pp_size": 2}}, "pp_size is 2"),
        ({"server_args": {"dp_size": 2}}, "dp_size is 2"),
        ({"server_args": {"ep_size": 8}}, "ep_size is 8"),
        ({"server_args": {"page_size": 64}}, "page_size is 64"),
        ({"server_args": {"kv_cache_dtype": "fp8_e4m3"}}, "kv_cache_dtype is 1"),
        ({"ranks": [{"target": {"tokens": 192406, "dtype": "torch.float8_e4m3fn"}}]}, "kv_cache_dtype is 1"),
        ({"server_args": {"model_path": "/srv/other"}}, "model is /srv/other"),
        ({"server_args": {"speculative_draft_model_path": "/srv/old-draft"}}, "draft_model is /srv/old-draft"),
        ({"server_args": {"speculative_algorithm": None}}, "speculative_algorithm is none"),
        ({"server_args": {"speculative_algorithm": "EAGLE"}}, "speculative_algorithm is EAGLE"),
    ],
)
def test_starts_of_another_server_do_not_count(change: dict[str, Any], word: str) -> None:
    other = boot(0.92, 192406, **change)
    found = plan([other], model="/srv/kimi", draft_model="/srv/draft", **ESTIMATE)
    assert found.basis == "estimated"
    assert word in text(found)


@pytest.mark.parametrize(
    "change",
    [
        {"sglang_version": "0.5.12.post1+ddtree"},
        {"sglang_version": None},
        {"sglang_version": "unknown"},
        {"server_args": {"tp_size": 8, "page_size": None, "kv_cache_dtype": "auto", "context_length": 262144}},
        {"server_args": {"model_path": "/srv/kimi/", "max_running_requests": 64}},
        {"server_args": {"model_path": "/srv/kimi/config.json", "speculative_algorithm": "DFLASH"}},
        {"server_args": {"tp_size": "8"}},
        {"ranks": "none", "failure": [], "ready": "yes"},
        {"ranks": [None, {"target": None}, {"avail_before_weights_gib": float("nan")}]},
    ],
)
def test_starts_of_this_server_count(change: dict[str, Any]) -> None:
    found = plan([boot(0.92, 192406, **change)], model="/srv/kimi", gpu_free_gib=93.73)
    assert (found.basis, found.mem_fraction_static) == ("observed", 0.9259)


def test_a_start_with_the_type_of_the_model_does_not_count_for_fp8() -> None:
    other = boot(0.92, 192406, server_args={"kv_cache_dtype": "auto"})
    found = plan([other], **{**ESTIMATE, "kv_cache_dtype": "fp8_e4m3"})
    assert found.basis == "estimated"
    assert "kv_cache_dtype is 2" in text(found)


def test_a_pool_cut_by_its_cap_says_nothing_about_the_line() -> None:
    capped = boot(0.95, 100000, server_args={"max_total_tokens": 100000})
    assert plan([capped], **ESTIMATE).basis == "estimated"
    assert plan([capped, SECOND], gpu_free_gib=93.73).mem_fraction_static == 0.9259


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-5, 300000) | st.sampled_from(["", "x", "0.92", "inf", "lower"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=100, deadline=None)
@given(observed=st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8), max_size=4))
def test_whatever_a_start_holds_there_is_a_plan(observed: list[dict[str, Any]]) -> None:
    assert plan(observed, **ESTIMATE).verdict in ("fits", "tight", "impossible")


def test_a_start_that_was_stopped_had_been_ready() -> None:
    stopped = {**SECOND, "ready": False, "was_ready": True}
    assert "did not become ready" not in text(plan([FIRST, stopped]))
    assert "did not become ready" in text(plan([FIRST, {**SECOND, "ready": False}]))


def test_odd_fractions_and_pools_are_unknown() -> None:
    for odd in (boot(1.5, 192406), boot(None, 192406), boot(0.92, 0), boot(0.92, None), {"server_args": None}, {}):
        assert plan([odd], **ESTIMATE).basis == "estimated"


# --- rules that the version string does not name ---

WITH_CARDS = [{"avail_before_weights_gib": 93.73}]


def fork(first: int, second: int, **more: Any) -> list[dict[str, Any]]:
    return [boot(f, n, sglang_version="0.5.17", ranks=WITH_CARDS, **more) for f, n in ((0.85, first), (0.92, second))]


def test_a_pool_that_another_release_explains() -> None:
    """0.5.17 by its string, but 96,051 tokens for 0.07 are 73,344 bytes each, as from 0.5.18 on."""
    found = plan(fork(104999, 201050), version="0.5.17", context_length=210000)
    assert found.era == "0.5.18-0.5.23"
    assert found.bytes_per_token["charged"] == 73344
    assert "version string says 0.5.17" in text(found)
    # 0.92 + 8950 * 73344 / (93.73 * 2**30)
    assert found.mem_fraction_static == 0.9266


def test_a_pool_that_its_own_release_explains() -> None:
    assert plan(fork(101134, 192406), version="0.5.17").era == "0.5.14-0.5.17"


def test_a_pool_that_no_release_explains() -> None:
    """100,000 tokens for 0.07: planned along that line, 0.92 + 5000 / 1,428,571."""
    found = plan(fork(95000, 195000), version="0.5.17")
    assert "No known release explains" in text(found)
    assert found.mem_fraction_static == 0.9235


@pytest.mark.parametrize(
    ("version", "order", "era", "said"),
    [
        ("0.5.17", "draft_after_pool", "0.5.11-0.5.13", True),
        ("0.5.12.post1", "draft_before_pool", "0.5.14-0.5.17", True),
        ("0.5.17", "draft_before_pool", "0.5.14-0.5.17", False),
        ("0.5.12.post1", "draft_after_pool", "0.5.11-0.5.13", False),
        ("0.5.12.post1", "odd", "0.5.11-0.5.13", False),
        ("0.5.12.post1", None, "0.5.11-0.5.13", False),
    ],
)
def test_the_order_of_loads_tells_the_rules(version: str, order: str | None, era: str, said: bool) -> None:
    start = {**SECOND, "sglang_version": version, "load_order": order}
    found = plan([start], version=version, gpu_free_gib=93.73)
    assert found.era == era
    assert ("order in which the log shows" in text(found)) is said


def test_noise_is_no_evidence() -> None:
    """Two pools 500 tokens apart tell no slope where memory moves by 0.03 GiB: the cards do."""
    close = [boot(0.92, 192000, ranks=WITH_CARDS), boot(0.9203, 192500, ranks=WITH_CARDS)]
    found = plan(close, free_jitter_gib=0.03)
    assert found.era == "0.5.11-0.5.13"
    assert found.tokens_per_hundredth == 13039


# --- starts that failed ---


def test_a_start_without_memory_tells_both_measurements() -> None:
    """P 93.73, minimum 0.7724: A is 93.73 * 0.2276 = 21.333; 0.9258 gives 21.333 - 6.9548 = 14.378 GiB = 200,0xx tokens."""
    failed = boot(
        0.75,
        None,
        ready=False,
        ranks=[{"avail_before_weights_gib": 93.73, "avail_after_weights_gib": 21.3}],
        failure={"kind": "not_enough_memory", "advice": "raise", "minimum_fraction": 0.7724},
    )
    found = plan([failed], draft_weights=lambda: Weights(1.312))
    assert (found.basis, found.mem_fraction_static) == ("observed", 0.9258)
    assert found.lower_bound == 0.7724
    assert "ended with not_enough_memory" in text(found)
    without = plan([{**failed, "failure": None}], draft_weights=lambda: Weights(1.312))
    # 1 - (21.3 - 200000 * 77184 / 2**30) / 93.73
    assert without.mem_fraction_static == 0.9262


OOM = {"kind": "oom_capture", "advice": "lower", "minimum_fraction": None}


def test_a_start_that_ran_out_of_memory_bounds_the_plan() -> None:
    died = {**SECOND, "ready": False, "failure": OOM}
    found = plan([FIRST, died], max_running_requests=64)
    assert found.verdict == "impossible"
    assert found.upper_bound == 0.9199
    assert "A start at 0.92 ran out of memory, and 0.92 would have as well: this fraction is no lower. If its cause is gone" in text(found)


def test_what_a_start_lacked_bounds_the_plan_below_its_own_fraction() -> None:
    died = {**SECOND, "ready": False, "failure": {**OOM, "next_fraction": 0.9144}}
    found = plan([FIRST, died], max_running_requests=64)
    assert (found.verdict, found.upper_bound) == ("impossible", 0.9144)
    assert "A start at 0.92 ran out of memory, and 0.9145 would have as well" in text(found)


LEFT = "leave it out of observed; the role keeps boots in boots.json in its state directory"


def test_the_start_that_bounds_a_plan_is_named_with_how_to_be_rid_of_it() -> None:
    late = {**SECOND, "ready": False, "failure": OOM, "started_at": "2026-05-30 22:08:02"}
    # of two starts that ran out of memory the one with the lower fraction bounds
    early = boot(0.915, None, ready=False, failure=OOM, started_at="2026-05-29 07:00:00")
    said = text(plan([{**FIRST, "started_at": "2026-05-28 20:00:00"}, early, late], max_running_requests=64))
    assert "The start of 2026-05-29 07:00:00 at 0.915 ran out of memory" in said
    assert "2026-05-30" not in said
    assert said.count(LEFT) == 1


def test_the_start_that_asks_for_more_is_named_with_how_to_be_rid_of_it() -> None:
    refused = {"kind": "not_enough_memory", "advice": "raise", "minimum_fraction": 0.93}
    failed = boot(0.8, None, ready=False, failure=refused, started_at="2026-05-30T22:08:02+00:00")
    said = text(plan([FIRST, SECOND, failed]))
    assert "A start at 0.8" not in said
    assert "The start of 2026-05-30T22:08:02+00:00 at 0.8 said that it needs more than 0.93: this fraction is no higher." in said
    assert said.count(LEFT) == 1


@pytest.mark.parametrize(
    ("flags", "more", "said"),
    [
        ({"page_size": 64}, {}, "A start at 0.85 was left out: its page_size is 64, the plan's is 1; plan with page_size 64 if the server "
                                "shall run with it."),
        ({"tp_size": 4}, {"started_at": "2026-05-30 22:08:02"},
         "The start of 2026-05-30 22:08:02 at 0.85 was left out: its tp_size is 4, the plan's is 8; plan with tp_size 4 if"),
        ({"kv_cache_dtype": "fp8_e4m3"}, {},
         "its kv_cache_dtype is 1 byte a value, the plan's is 2 bytes a value; plan with its kv_cache_dtype if the server"),
        ({"mem_fraction_static": None, "page_size": 64}, {"started_at": 1780000000}, "A start was left out: its page_size is 64"),
        ({"page_size": 64}, {"started_at": "9" * 1000}, f"The start of {'9' * 40} at 0.85 was left out"),
    ],
)  # fmt: skip
def test_a_start_that_is_left_out_is_named_with_what_would_let_it_in(flags: dict[str, Any], more: dict[str, Any], said: str) -> None:
    other = boot(0.85, 90000, server_args=flags, **more)
    assert said in text(plan([other, FIRST, SECOND], page_size=1))


def test_less_demand_lifts_that_bound() -> None:
    died = {**SECOND, "ready": False, "failure": OOM, "max_running_requests": 64}
    assert plan([FIRST, died], max_running_requests=8).verdict == "fits"
    assert plan([FIRST, died], max_running_requests=64).verdict == "impossible"
    chunky = boot(0.9, None, ready=False, failure=OOM, server_args={"chunked_prefill_size": 8192})
    assert plan([chunky, FIRST, SECOND], chunked_prefill_size=4096).verdict == "fits"


def test_a_later_start_that_held_lifts_that_bound() -> None:
    died = boot(0.9, None, ready=False, failure=OOM)
    assert plan([FIRST, died, SECOND]).verdict == "fits"
    assert plan([FIRST, SECOND, died]).verdict == "impossible"


def test_a_later_pool_lifts_the_lower_bound() -> None:
    failed = boot(0.8, None, ready=False, failure={"kind": "not_enough_memory", "advice": "raise", "minimum_fraction": 0.93})
    assert plan([failed, FIRST, SECOND]).lower_bound < 0.78
    crossed = plan([FIRST, SECOND, failed])
    assert (crossed.lower_bound, crossed.verdict) == (0.93, "impossible")
    assert "needs more than 0.93" in text(crossed)


# --- estimates ---


@pytest.mark.parametrize(
    ("version", "changes", "fraction", "left", "verdict"),
    [
        ("0.5.11", {}, 0.9221, 6.72, "fits"),
        ("0.5.17", {}, 0.9361, 6.72, "fits"),
        ("0.5.23", {}, 0.9295, 6.72, "fits"),
        ("0.5.12", {"kv_cache_dtype": "fp8_e4m3"}, 0.8457, 13.55, "fits"),
        ("0.5.12", {"context_length": 262144}, 0.9697, 2.47, "impossible"),
        ("0.5.12", {"context_length": 262144, "gpu_free_gib": 139.8}, 0.652, 48.27, "fits"),
        # 1 - (20.0 - 200000 * 77184 / 2**30) / 92.3, and so on
        ("0.5.12", {"gpu_free_gib": 92.3}, 0.9391, 5.02, "fits"),
        ("0.5.12", {"gpu_free_gib": 90.0}, 0.9631, 2.72, "tight"),
        ("0.5.12", {"gpu_free_gib": 88.0}, 0.985, 0.72, "impossible"),
    ],
)
def test_estimates(version: str, changes: dict[str, Any], fraction: float, left: float, verdict: str) -> None:
    found = plan(version=version, **{**ESTIMATE, **changes})
    assert found.basis == "estimated"
    assert found.mem_fraction_static == fraction
    assert found.headroom_gib == pytest.approx(left, abs=0.02)
    assert found.verdict == verdict


def test_the_larger_error_of_weights_from_a_checkpoint() -> None:
    exact = plan(**ESTIMATE)
    rough = plan(**{**ESTIMATE, "weights": lambda: Weights(72.3, 3.6)})
    # 3.6 GiB are 50,081 tokens of 77,184 bytes
    assert rough.error_tokens - exact.error_tokens == pytest.approx(50081, abs=2)


def test_free_at_sizing_needs_no_weights() -> None:
    found = plan(gpu_free_gib=93.7274, free_at_sizing_gib=21.328985)
    assert found.mem_fraction_static == 0.9259
    assert "The draft's weights are unknown" in text(found)
    assert "unknown" not in text(plan(gpu_free_gib=93.7274, free_at_sizing_gib=20.0, version="0.5.14"))


def test_graphs_that_a_start_showed_count() -> None:
    capped = boot(
        0.9,
        50000,
        server_args={"max_total_tokens": 50000},
        ranks=[{"avail_after_pool_gib": 9.0, "avail_after_capture_gib": after} for after in (8.36, 8.5)],
    )
    assert (plan(**ESTIMATE).headroom_gib or 0) - (plan([capped], **ESTIMATE).headroom_gib or 0) == pytest.approx(0.64, abs=0.011)


def test_jitter_raises_the_target_by_what_it_may_cost() -> None:
    """0.03 GiB are 417.3 tokens of 77,184 bytes."""
    calm, moving = plan([FIRST, SECOND]), plan([FIRST, SECOND], free_jitter_gib=0.03)
    assert (calm.mem_fraction_static, moving.mem_fraction_static) == (0.9259, 0.9262)
    assert moving.predicted_tokens >= 200418
    assert moving.required_tokens == 200000
    assert "418 tokens are added" in text(moving)


# --- a given fraction ---


def test_a_given_fraction() -> None:
    found = plan([FIRST, SECOND], mem_fraction_static=0.925)
    assert (found.mem_fraction_static, found.predicted_tokens, found.verdict) == (0.925, 198925, "impossible")
    assert "1,075 short of the 200,000 required" in text(found)
    first = found.alternatives[0]
    assert (first.mem_fraction_static, first.verdict) == (0.9259, "fits")
    enough = plan([FIRST, SECOND], mem_fraction_static=0.926)
    assert (enough.predicted_tokens, enough.verdict) == (200229, "fits")


def test_a_given_fraction_and_nothing_required() -> None:
    found = plan([FIRST, SECOND], mem_fraction_static=0.92, context_length=None)
    assert (found.predicted_tokens, found.required_tokens, found.verdict, found.alternatives) == (192406, None, "fits", ())


def test_a_given_fraction_without_a_pool() -> None:
    found = plan([FIRST, SECOND], mem_fraction_static=0.7)
    assert (found.predicted_tokens, found.verdict) == (0, "impossible")
    assert "there is no pool: SGLang needs more than 0.7724" in text(found)


# --- what does not fit, and what would ---


def test_out_of_reach() -> None:
    found = plan([FIRST, SECOND], context_length=262144, concurrent_requests=1.5)
    assert (found.mem_fraction_static, found.required_tokens, found.verdict) == (None, 393216, "impossible")
    # 192,406 + 0.0799 * 1,303,886; and 6.23 GiB less 104,180 tokens of 73,344 bytes
    assert (found.predicted_tokens, found.headroom_gib) == (296586, pytest.approx(6.23 - 7.116, abs=0.02))
    assert "393,216 tokens are out of reach" in text(found)


def alternative(found: Plan, start: str) -> Any:
    return next(other for other in found.alternatives if other.change.startswith(start))


def test_alternatives_of_a_plan_that_leaves_too_little() -> None:
    """262,144 tokens on a 94 GiB card: 2.47 GiB left, 11.4 with an fp8 cache."""
    found = plan(**{**ESTIMATE, "context_length": 262144, "max_running_requests": 64})
    assert found.verdict == "impossible"
    fp8 = alternative(found, "kv_cache_dtype=fp8_e4m3")
    assert (fp8.mem_fraction_static, fp8.verdict) == (0.8694, "fits")
    assert fp8.headroom_gib == pytest.approx(11.38, abs=0.03)
    ranks = alternative(found, "tp_size=16")
    # half of the 72.3 GiB of weights and of the 1.312 GiB of the draft's are free again, the latent cache is as large
    assert ranks.headroom_gib == pytest.approx((found.headroom_gib or 0) + 36.15 + 0.656, abs=0.2)
    assert ranks.mem_fraction_static == pytest.approx((found.mem_fraction_static or 0) - 36.15 / 94, abs=0.0002)
    fewer = alternative(found, "max_running_requests=8")
    # 56 rows of 262,148 entries of 4 bytes
    assert (fewer.headroom_gib or 0) - (found.headroom_gib or 0) == pytest.approx(0.055, abs=0.011)
    shorter = alternative(found, "context_length=")
    assert shorter.verdict == "fits"
    assert shorter.headroom_gib == pytest.approx(5.0, abs=0.02)
    assert 220000 < shorter.required_tokens < 226000


def test_alternative_of_fewer_requests() -> None:
    found = plan(**{**ESTIMATE, "concurrent_requests": 2})
    assert found.verdict == "impossible"
    one = alternative(found, "concurrent_requests=1")
    assert (one.mem_fraction_static, one.required_tokens, one.verdict) == (0.9221, 200000, "fits")


def test_more_ranks_shrink_the_heads_of_a_grouped_cache() -> None:
    request = Request(
        "0.5.23", geometry("llama-3.1-8b"), Deployment(), Sources(gpu_free_gib=23.2, weights=lambda: Weights(15.0)), context_length=100000
    )
    found = make_plan(request)
    assert found.verdict == "impossible"
    two = alternative(found, "tp_size=2")
    # 7.5 GiB of weights and 65,536 bytes per token: 1 - (15.7 - 6.1035) / 23.2
    assert two.mem_fraction_static == 0.5864


def test_no_alternative_that_changes_nothing() -> None:
    found = plan(**{**ESTIMATE, "kv_cache_dtype": "fp8_e4m3", "gpu_free_gib": 80.0, "context_length": 262144})
    assert [other.change.split("=")[0] for other in found.alternatives] == ["tp_size", "context_length"]


def test_a_context_that_the_model_does_not_have() -> None:
    found = plan(**{**ESTIMATE, "gpu_free_gib": 139.8, "context_length": 300000})
    assert found.verdict == "impossible"
    assert "refuses a context_length of 300,000: the model ends at 262,144" in text(found)
    assert alternative(found, "context_length=262144").verdict == "fits"


def test_a_cap_below_what_is_required() -> None:
    found = plan(**{**ESTIMATE, "max_total_tokens": 150000})
    assert (found.verdict, found.mem_fraction_static, found.predicted_tokens) == ("impossible", None, 150000)
    assert "max_total_tokens 150,000 caps the pool" in text(found)


def test_weights_larger_than_the_card() -> None:
    found = plan(**{**ESTIMATE, "gpu_free_gib": 24.0})
    assert (found.verdict, found.mem_fraction_static, found.upper_bound, found.predicted_tokens) == ("impossible", None, None, 0)
    assert found.lower_bound == 1


def test_a_small_wanted_headroom_lowers_the_floor() -> None:
    tight = {**ESTIMATE, "gpu_free_gib": 88.0}
    assert plan(**tight, min_headroom_gib=0.5).verdict == "fits"
    assert plan(**tight, min_headroom_gib=0.8).verdict == "impossible"


def test_a_pool_target_replaces_context_and_concurrency() -> None:
    found = plan([FIRST, SECOND], pool_target=199990, page_size=1, concurrent_requests=3)
    assert (found.required_tokens, found.mem_fraction_static) == (199990, 0.9259)


def test_pages_round_what_is_required() -> None:
    found = plan(**{**ESTIMATE, "page_size": 64, "context_length": 200001})
    assert found.required_tokens == 200064
    assert (found.predicted_tokens or 1) % 64 == 0


def test_an_architecture_newer_than_the_release() -> None:
    found = plan(**{**ESTIMATE, "algorithm": "", "version": "0.5.8.post1"})
    assert "KimiK25ForConditionalGeneration is known to SGLang from 0.5.9 on" in text(found)


def test_mtp_drafts_come_with_the_model() -> None:
    target = geometry("deepseek-v3")
    request = Request(
        "0.5.14",
        target,
        Deployment(algorithm="EAGLE", tp_size=8, page_size=64, max_running_requests=64),
        Sources(gpu_free_gib=139.0, weights=lambda: Weights(86.0)),
        draft=target,
        mem_fraction_static=0.88,
    )
    assert make_plan(request).predicted_tokens == 545984


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"context_length": None}, "none of context_length, pool_target, mem_fraction_static"),
        ({"context_length": 0}, "context_length; found 0"),
        ({"context_length": -5}, "context_length; found -5"),
        ({"pool_target": 0}, "pool_target; found 0"),
        ({"concurrent_requests": 0.0}, "concurrent_requests; found 0"),
        ({"concurrent_requests": float("nan")}, "concurrent_requests; found nan"),
        ({"mem_fraction_static": 0.0}, "mem_fraction_static; found 0"),
        ({"mem_fraction_static": 1.0}, "mem_fraction_static; found 1"),
        ({"mem_fraction_static": 92.0}, "mem_fraction_static; found 92"),
        ({"gpu_free_gib": 0.0}, "gpu_free_gib; found 0"),
        ({"gpu_free_gib": None}, "no observed start that matches and no gpu_free_gib"),
        ({"free_at_sizing_gib": 95.0}, "gpu_free_gib 94 and free_at_sizing_gib 95"),
        ({"max_running_requests": 0}, "max_running_requests; found 0"),
        ({"max_total_tokens": -1}, "max_total_tokens; found -1"),
        ({"min_headroom_gib": -1.0}, "min_headroom_gib; found -1"),
        ({"free_jitter_gib": -0.1}, "free_jitter_gib; found -0.1"),
        ({"free_jitter_gib": float("inf")}, "free_jitter_gib; found inf"),
        ({"free_at_sizing_gib": -1.0}, "free_at_sizing_gib; found -1"),
        ({"free_at_sizing_gib": float("nan")}, "free_at_sizing_gib; found nan"),
        ({"concurrent_requests": float("inf")}, "concurrent_requests; found inf"),
        ({"version": "mainline"}, "sizing rules of an SGLang version; found 'mainline'"),
        ({"version": "0.5.14", "draft_weights": lambda: None}, "no weights of the draft; give draft_weights_gib"),
    ],
)
def test_what_cannot_be_planned(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=f"asked for .*{word}" if not word.startswith(("no", "context", "gpu")) else word):
        plan(**{**ESTIMATE, **changes})


# --- the second lever: requests ---

# flags, then requests, table in GiB (rows + 1 from 0.5.11 on, context + 4 + draft tokens, 4 bytes), batch sizes, advice
COSTS: list[tuple[dict[str, Any], int, float, int | None, int]] = [
    # the flags of the two starts of the founding case, with 197,264 tokens: 65 and 9 rows of 200,012 entries
    ({"max_running_requests": 64, "num_draft_tokens": 8}, 64, 65 * 200012 * 4 / 2**30, 27, 1),
    ({"max_running_requests": 8, "num_draft_tokens": 8}, 8, 9 * 200012 * 4 / 2**30, 8, 1),
    # SGLang's default under speculation
    ({"max_running_requests": None, "num_draft_tokens": 8}, 48, 49 * 200012 * 4 / 2**30, 23, 1),
    # requests of a shorter context
    ({"max_running_requests": 8, "num_draft_tokens": 8, "context_length": 32768}, 8, 9 * 32780 * 4 / 2**30, 8, 6),
    ({"max_running_requests": 9, "num_draft_tokens": 8, "context_length": 32768, "concurrent_requests": 6.5}, 9, 10 * 32780 / 2**28, 9, 7),
    ({"max_running_requests": 8, "num_draft_tokens": 8, "disable_cuda_graph": True}, 8, 9 * 200012 * 4 / 2**30, 0, 1),
    # without speculation the default is min(4096, 197,264 / 200,000 * 512), at least 2048: 2,049 rows of 200,004 entries
    ({"max_running_requests": None, "algorithm": ""}, 2048, 2049 * 200004 * 4 / 2**30, 52, 1),
]


@pytest.mark.parametrize(("flags", "requests", "table", "sizes", "advice"), COSTS)
def test_what_requests_cost(flags: dict[str, Any], requests: int, table: float, sizes: int | None, advice: int) -> None:
    found = plan(**ESTIMATE, mem_fraction_static=0.92, **flags)
    assert found.running_requests == requests
    assert found.req_to_token_gib == pytest.approx(table, abs=0.001)
    assert found.graph_batch_sizes is not None
    assert len(found.graph_batch_sizes) == sizes
    assert found.recommended_max_running_requests == advice
    assert "Running requests never enter the pool" in text(found)


def test_requests_buy_no_token() -> None:
    """64 requests or 8: the same pool at the same fraction; the table alone differs, by 56 rows of 200,012 entries."""
    many = plan(**ESTIMATE, mem_fraction_static=0.92, max_running_requests=64, num_draft_tokens=8)
    few = plan(**ESTIMATE, mem_fraction_static=0.92, max_running_requests=8, num_draft_tokens=8)
    assert many.predicted_tokens == few.predicted_tokens
    assert few.headroom_gib - many.headroom_gib == pytest.approx(56 * 200012 * 4 / 2**30, abs=0.011)
    assert "the table for 64 of them (0.05 GiB) and the CUDA graphs of 27 batch sizes up to 64 x 8 tokens" in text(many)
    assert "max_running_requests=1 frees 0.05 GiB of the table and the graphs above batch 1" in text(many)


def test_requests_that_do_enter_the_pool() -> None:
    """Before 0.5.7 EAGLE adds requests * (steps * topk + draft tokens) + 100 to the pool."""
    flags = {"algorithm": "EAGLE", "num_steps": 3, "topk": 1, "num_draft_tokens": 4, "tp_size": 1, "max_running_requests": 32}
    request = Request(
        version="0.5.2",
        target=geometry("llama-3.1-8b"),
        draft=geometry("llama-3.1-8b-eagle3"),
        deployment=Deployment(**flags),
        sources=Sources(gpu_free_gib=78.5, weights=lambda: Weights(15.1)),
        context_length=100000,
    )
    said = text(make_plan(request))
    assert "Running requests are charged to the pool here" in said
    assert "never enter" not in said


def test_batch_sizes_that_are_not_known() -> None:
    found = plan(**ESTIMATE, tp_size=8, dp_size=2, dp_attention=True, version="0.5.17", max_running_requests=64)
    assert found.graph_batch_sizes is None
    assert found.as_dict()["graph_batch_sizes"] is None
    assert "and the CUDA graphs" in text(found)
    # 64 requests of two workers, and a pool of its own for each
    assert (found.running_requests, found.recommended_max_running_requests) == (32, 2)


def test_no_pool_no_advice() -> None:
    found = plan(**{**ESTIMATE, "gpu_free_gib": 60.0})
    assert (found.predicted_tokens, found.recommended_max_running_requests) == (0, None)
    assert "Running requests" not in text(found)
