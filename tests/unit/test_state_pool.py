# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hybrid models: slots of states and tokens against what the releases' own code gave (fixtures/vectors) and public logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Plan, Request, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import (
    GIB,
    Pool,
    build_pool,
    fraction_for,
    free_at_sizing,
    lowest_fraction,
    mamba_slots,
    max_requests,
    pool_tokens,
    state_gib,
)
from ansible_collections.inferops.sglang.plugins.module_utils._state_pool import StateCache, state_cache
from hypothesis import given, settings
from hypothesis import strategies as st

FIXTURES = Path(__file__).parent / "fixtures"
VECTORS = json.loads((FIXTURES / "vectors/state_pools.json").read_text(encoding="utf-8"))
ROWS = [(version, case) for version, rows in VECTORS["results"].items() for case in rows]
# the same, where memory and not a cap decides and the stage that is asked for is the whole model
STEADY = [(version, case) for version, case in ROWS if VECTORS["results"][version][case][0] and "cap" not in case and "pp" not in case]


def config(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FIXTURES / f"configs/{name}.json").read_text(encoding="utf-8"))
    return content


def geometry(name: str) -> Geometry:
    return read_geometry(config(name))


def era(version: str) -> Era:
    return era_of(parse_version(version))[0]


def pool_of(version: str, model: str, draft: str | None = None, **flags: Any) -> Pool:
    return build_pool(era(version), geometry(model), geometry(draft) if draft else None, Deployment(**flags))


def vector(version: str, name: str) -> tuple[dict[str, Any], Deployment, Pool]:
    case = VECTORS["cases"][name]
    return case, Deployment(**case["flags"]), pool_of(version, case["model"], case.get("draft"), **case["flags"])


@pytest.mark.parametrize(("version", "name"), ROWS)
def test_equals_what_the_release_computes(version: str, name: str) -> None:
    case, flags, pool = vector(version, name)
    (before, at_sizing), fraction = case["gib"], case["fraction"]
    tokens = pool_tokens(pool, before, at_sizing, fraction)
    slots = mamba_slots(pool, before, at_sizing, fraction)
    context = geometry(case["model"]).max_position or 0
    found = (
        tokens,
        slots,
        max_requests(pool, flags, context, tokens, slots),
        pool.charged,
        round(state_gib(pool, flags, context, tokens, slots) * GIB),
        pool.target_pool_bytes(tokens),
        (tokens + pool.page) * pool.draft_bytes,
    )
    told = [(mine, its) for mine, its in zip(found, VECTORS["results"][version][name]) if its is not None]
    assert [mine for mine, _its in told] == [its for _mine, its in told]


@pytest.mark.parametrize(("version", "name"), STEADY[::7])
def test_the_fraction_is_the_first_step_that_reaches_the_pool(version: str, name: str) -> None:
    """Every step below is tried: tokens fall back wherever the memory gives another slot, so no bisection can tell."""
    case, _flags, pool = vector(version, name)
    (before, at_sizing), tokens = case["gib"], VECTORS["results"][version][name][0]
    first = next(step for step in range(1, 10_000) if pool_tokens(pool, before, at_sizing, step / 10_000) >= tokens)
    assert fraction_for(pool, before, at_sizing, tokens) == first / 10_000
    assert first / 10_000 <= case["fraction"] + 1e-9


@pytest.mark.parametrize(("version", "name"), STEADY[::3])
def test_an_observed_pool_gives_the_free_memory_back(version: str, name: str) -> None:
    case, _flags, pool = vector(version, name)
    (before, at_sizing), fraction = case["gib"], case["fraction"]
    tokens, slots = VECTORS["results"][version][name][:2]
    row = pool.charged * pool.page / GIB
    # the same tokens come from budgets that lie one slot apart
    apart = pool.states.tooth_gib if pool.states else 0.0
    known = free_at_sizing(pool, before, fraction, tokens, slots)
    assert known == pytest.approx(at_sizing, abs=row)
    assert (pool_tokens(pool, before, known, fraction), mamba_slots(pool, before, known, fraction)) == (tokens, slots)
    guessed = free_at_sizing(pool, before, fraction, tokens, near_gib=at_sizing)
    assert guessed == pytest.approx(at_sizing, abs=row)
    unknown = free_at_sizing(pool, before, fraction, tokens)
    assert unknown == pytest.approx(at_sizing, abs=apart + row)
    assert pool_tokens(pool, before, unknown, fraction) == tokens


@settings(max_examples=150, deadline=None)
@given(
    version=st.sampled_from(["0.5.4", "0.5.6", "0.5.7", "0.5.8", "0.5.9", "0.5.12", "0.5.13", "0.5.16", "0.5.17", "0.5.23"]),
    model=st.sampled_from(["qwen3-next-80b", "nemotron-3-super-120b-a12b"]),
    speculating=st.booleans(),
    requests=st.integers(1, 200),
    ratio=st.floats(0.05, 3.0),
    before=st.floats(60, 280),
    loaded=st.floats(0.2, 0.6),
    fraction=st.integers(6000, 9900),
)
def test_forward_and_back(
    version: str, model: str, speculating: bool, requests: int, ratio: float, before: float, loaded: float, fraction: int
) -> None:
    flags: dict[str, Any] = {"algorithm": "EAGLE", "num_draft_tokens": 4, "num_steps": 3, "topk": 1} if speculating else {}
    flags.update(max_running_requests=requests, mamba_full_memory_ratio=ratio, disable_radix_cache=speculating or requests % 3 == 0)
    pool = pool_of(version, model, model if speculating else None, tp_size=4, **flags)
    at_sizing, share = before * (1 - loaded), fraction / 10_000
    tokens = pool_tokens(pool, before, at_sizing, share)
    if tokens == 0:
        return
    found = fraction_for(pool, before, at_sizing, tokens)
    assert found is not None
    assert found <= share
    assert pool_tokens(pool, before, at_sizing, found) >= tokens
    slots = mamba_slots(pool, before, at_sizing, share)
    again = free_at_sizing(pool, before, share, tokens, slots)
    assert (pool_tokens(pool, before, again, share), mamba_slots(pool, before, again, share)) == (tokens, slots)
    # more memory never takes away more than one slot's worth of tokens
    assert pool_tokens(pool, before, at_sizing + 0.5, share) >= tokens - pool.unsteady_tokens - 1


def test_no_pool_at_or_below_the_lowest_fraction() -> None:
    pool = pool_of("0.5.23", "qwen3-next-80b", tp_size=4)
    lowest = lowest_fraction(pool, 140.0, 70.0)
    assert pool_tokens(pool, 140.0, 70.0, lowest) == 0
    assert pool_tokens(pool, 140.0, 70.0, lowest + 0.0001) > 0
    assert lowest_fraction(pool, 20.0, 0.01) == 1.0


# What the sources of the releases make of the flags: whether there is a radix cache, on which page, slots of one request.
@pytest.mark.parametrize(
    ("version", "model", "flags", "expected"),
    [
        ("0.5.2", "qwen3-next-80b", {}, (False, 1, 1)),
        ("0.5.3.post1", "qwen3-next-80b", {}, (False, 1, 1)),
        ("0.5.3.post2", "qwen3-next-80b", {}, (True, 1, 3)),
        ("0.5.3.post3", "nemotron-3-super-120b-a12b", {}, (False, 1, 1)),
        ("0.5.5.post3", "falcon-h1-34b", {"tp_size": 4}, (False, 1, 1)),
        ("0.5.6.post2", "falcon-h1-34b", {"tp_size": 4}, (True, 1, 3)),
        ("0.5.6.post2", "kimi-linear-48b", {}, (False, 1, 1)),
        ("0.5.13.post1", "kimi-linear-48b", {}, (False, 1, 1)),
        ("0.5.14", "kimi-linear-48b", {}, (True, 1, 3)),
        ("0.5.16", "kimi-linear-48b", {}, (True, 1, 5)),
        ("0.5.12.post1", "ling-2.5-1t", {}, (False, 1, 1)),
        ("0.5.13.post1", "ling-2.5-1t", {}, (True, 1, 3)),
        ("0.5.7", "qwen3-next-80b", {}, (True, 1, 5)),
        ("0.5.8.post1", "qwen3-next-80b", {}, (True, 1, 3)),
        ("0.5.8.post1", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer"}, (True, 1, 5)),
        ("0.5.8.post1", "nemotron-3-super-120b-a12b", {"algorithm": "EAGLE"}, (False, 1, 1)),
        ("0.5.9", "qwen3-next-80b", {"algorithm": "EAGLE"}, (False, 1, 1)),
        ("0.5.9", "qwen3-next-80b", {"algorithm": "EAGLE", "mamba_scheduler_strategy": "extra_buffer"}, (True, 1, 4)),
        ("0.5.10.post1", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer", "algorithm": "EAGLE"}, (True, 1, 5)),
        ("0.5.11", "qwen3-next-80b", {"page_size": 64}, (True, 1, 3)),
        ("0.5.11", "qwen3-next-80b", {"page_size": 64, "disable_radix_cache": True}, (False, 64, 1)),
        ("0.5.11", "qwen3-next-80b", {"page_size": 64, "mamba_scheduler_strategy": "extra_buffer"}, (True, 64, 5)),
        ("0.5.14", "qwen3-next-80b", {}, (True, 1, 5)),
        ("0.5.14", "qwen3-next-80b", {"disable_overlap_schedule": True}, (True, 1, 3)),
        ("0.5.14", "qwen3-next-80b", {"disable_overlap_schedule": True, "page_size": 64}, (True, 64, 4)),
        ("0.5.14", "qwen3-next-80b", {"pp_size": 2}, (True, 1, 3)),
        ("0.5.14", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer_lazy"}, (True, 1, 4)),
        ("0.5.14", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer", "disable_radix_cache": True}, (False, 1, 1)),
        ("0.5.14", "jet-nemotron-2b", {}, (True, 1, 3)),
        ("0.5.23", "lfm2-1.2b", {}, (True, 1, 3)),
        ("0.5.23", "qwen3.5-397b-a17b", {"page_size": 64}, (True, 64, 5)),
        ("0.5.23", "minicpm-sala", {"page_size": 64}, (True, 64, 3)),
        ("0.5.23", "llama-3.1-8b", {"page_size": 64}, (True, 64, 1)),
    ],
)
def test_what_becomes_of_the_flags(version: str, model: str, flags: dict[str, Any], expected: tuple[bool, int, int]) -> None:
    found = state_cache(era(version), geometry(model), Deployment(**flags))
    assert (found.radix, found.page, found.per_request) == expected


@pytest.mark.parametrize(
    ("version", "model", "flags", "words"),
    [
        ("0.5.5", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer"}, ["a release without it", "leave it at auto"]),
        ("0.5.12", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer_lazy"}, ["a release without it"]),
        ("0.5.12", "nemotron-3-super-120b-a12b", {"mamba_scheduler_strategy": "extra_buffer"}, ["NemotronHForCausalLM", "no spare states"]),
        ("0.5.12", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer", "disable_radix_cache": True}, ["disable_radix_cache"]),
        ("0.5.14", "qwen3-next-80b", {"mamba_scheduler_strategy": "no_buffer"}, ["overlap scheduler", "disable_overlap_schedule"]),
        ("0.5.14", "lfm2-1.2b", {"mamba_scheduler_strategy": "extra_buffer"}, ["Lfm2ForCausalLM", "no spare states"]),
        ("0.5.9", "qwen3-next-80b", {"page_size": 64}, ["page_size 64", "pages of one token"]),
        ("0.5.23", "lfm2-1.2b", {"page_size": 64}, ["page_size 64", "disable_radix_cache"]),
        ("0.5.12", "qwen3-next-80b", {"algorithm": "EAGLE", "draft": "own", "num_draft_tokens": 4}, ["EAGLE", "extra_buffer"]),
        (
            "0.5.16", "qwen3-next-80b",
            {"algorithm": "EAGLE", "draft": "own", "num_draft_tokens": 4, "mamba_scheduler_strategy": "extra_buffer_lazy"},
            ["EAGLE", "give extra_buffer"],
        ),
        (
            "0.5.14", "qwen3-next-80b", {"mamba_scheduler_strategy": "extra_buffer_lazy", "disable_overlap_schedule": True},
            ["no overlap scheduler"],
        ),
        ("0.5.23", "qwen3-next-80b", {"algorithm": "EAGLE", "draft": "own"}, ["speculative_num_draft_tokens", "give it"]),
        ("0.5.8", "qwen3-next-80b", {"mamba_ssm_dtype": "float16"}, ["float16", "float32 or bfloat16"]),
        ("0.5.23", "falcon-h1-34b", {"tp_size": 8}, ["20 attention heads"]),
        ("0.5.23", "jet-nemotron-2b", {"tp_size": 4}, ["states of JetNemotronForCausalLM over 4 ranks", "6 heads of states"]),
        ("0.5.16", "jet-nemotron-2b", {"pp_size": 7}, ["7 pipeline stages", "0.5.17"]),
    ],
)  # fmt: skip
def test_what_a_release_refuses(version: str, model: str, flags: dict[str, Any], words: list[str]) -> None:
    target = geometry(model)
    draft = target if flags.pop("draft", None) else None
    with pytest.raises(InputError) as caught:
        build_pool(era(version), target, draft, Deployment(**flags))
    assert [word for word in words if word not in str(caught.value)] == []
    assert str(caught.value).startswith("asked for ")


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        ("nemotron-3-super-120b-a12b", {"hybrid_override_pattern": None}, ["layers_block_type"]),
        ("nemotron-3-super-120b-a12b", {"hybrid_override_pattern": "MEME"}, ["0 layers with a KV cache"]),
        ("qwen3-next-80b", {"linear_num_value_heads": None}, ["linear_num_value_heads"]),
        ("kimi-linear-48b", {"linear_attn_config": None}, ["linear_attn_config None"]),
        ("jet-nemotron-2b", {"efficient_attention_config": {}}, ["efficient_attention_config"]),
        ("lfm2-1.2b", {"layer_types": None}, ["no kinds of layers"]),
        ("granite-4.0-h-small", {"layer_types": ["mamba"] * 40}, ["40 layers with states and 0 layers with a KV cache"]),
    ],
)
def test_configurations_that_do_not_tell(model: str, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_geometry({**config(model), **changes})
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_granite_without_states_is_plain_attention() -> None:
    plain = read_geometry({**config("granite-4.0-h-small"), "layer_types": ["attention"] * 40})
    assert (plain.states, build_pool(era("0.5.23"), plain, None, Deployment(tp_size=8)).charged) == (None, 1 * (128 + 128) * 40 * 2)


# Slots, GiB of convolution inputs and of matrices that public logs print; one slot more is allocated than is used.
@pytest.mark.parametrize(
    ("version", "model", "flags", "slots", "conv", "ssm"),
    [
        ("0.5.23", "qwen3.5-27b", {"max_mamba_cache_size": 360}, 360, "0.99", "50.77"),
        ("0.5.23", "qwen3.5-9b", {"max_mamba_cache_size": 64}, 64, "0.07", "3.05"),
        ("0.5.9", "granite-4.0-h-micro", {}, 38, "0.03", "2.74"),
    ],
)
def test_states_that_public_logs_print(version: str, model: str, flags: dict[str, Any], slots: int, conv: str, ssm: str) -> None:
    target = geometry(model)
    states = target.states
    assert states is not None
    layers = len(states.layers)
    channels, kept = states.inputs(1)
    assert f"{(slots + 1) * layers * channels * kept * 2 / GIB:.2f}" == conv
    assert f"{(slots + 1) * layers * states.matrix(1) * 4 / GIB:.2f}" == ssm
    pool = build_pool(era(version), target, None, Deployment(**flags))
    assert pool.states is not None
    assert pool.states.stored_gib(slots, 0) == pytest.approx(float(conv) + float(ssm), abs=0.011)


def test_draft_tokens_states_of_a_public_log() -> None:
    """64 requests x 16 draft tokens: 48.75 GiB of matrices and 0.43 of inputs, in windows that overlap."""
    target = geometry("qwen3.5-9b")
    states = target.states
    assert states is not None
    channels, kept = states.inputs(1)
    assert f"{65 * 16 * 24 * states.matrix(1) * 4 / GIB:.2f}" == "48.75"
    assert f"{65 * 24 * channels * (16 + kept - 1) * 2 / GIB:.2f}" == "0.43"


def test_requests_of_a_public_log() -> None:
    """360 slots serve 72 requests where each may need five."""
    pool = pool_of("0.5.23", "qwen3.5-27b", max_mamba_cache_size=360)
    assert pool.states is not None
    assert pool.states.requests(360) == 72


def test_a_public_pool_beside_states() -> None:
    """Granite 4 on 16 GB: 15.24 GiB before and 9.26 after the weights, 38 slots and 399,740 tokens at one and the same fraction."""
    pool = pool_of("0.5.9", "granite-4.0-h-micro")
    paid = 15.24 * (1 - (9.26 - free_at_sizing(pool, 0.0, 0.0, 399_740, 38)) / 15.24)
    fraction = paid / 15.24
    assert (pool_tokens(pool, 15.24, 9.26, fraction), mamba_slots(pool, 15.24, 9.26, fraction)) == (399_740, 38)
    assert 0.7 < fraction < 0.85
    assert f"{(399_740 + 1) * pool.target_bytes / 2 / GIB:.2f}" == "1.52"


def test_ling_3_of_a_public_log() -> None:
    """614 slots of 0.38 and 10.81 GiB beside 1,933,682 tokens of 12.45 GiB: by the rule from 0.5.17 on, with the slot that pads."""
    shape = {"num_hidden_layers": 24, "layer_group_size": 4, "num_attention_heads": 16}
    target = read_geometry({**config("ling-3.0"), **shape})
    pool = build_pool(era("0.5.19"), target, None, Deployment(disable_overlap_schedule=True))
    assert pool.states is not None
    assert f"{pool.stored_gib(1_933_682):.2f}" == "12.45"
    assert pool.states.stored_gib(614, 0) == pytest.approx(0.38 + 10.81, abs=0.011)
    budget = free_at_sizing(pool, 0.0, 0.0, 1_933_682, 614)
    assert (pool_tokens(pool, 0.0, budget, 0.0), pool.states.slots(budget)) == (1_933_682, 614)
    assert pool.states.slots(budget - pool.states.slot_gib) < 614


def test_qwen_on_two_public_cards() -> None:
    """279.24 GiB before and 264.75 after the weights print 3,228,418 tokens at 0.85, of which ROCm's backend takes 15 %."""
    pool = pool_of("0.5.21", "qwen3.5-27b", tp_size=2, max_running_requests=32)
    found = pool_tokens(pool, 279.24, 264.75, 0.85 * 0.85)
    # two decimals of the log, and one slot
    assert abs(found - 3_228_418) <= 0.015 * GIB / pool.effective_cell + pool.unsteady_tokens
    assert found == pytest.approx(3_228_418, rel=0.001)


# --- the plan ----------------------------------------------------------------------------------------------------------------


def plan(version: str = "0.5.23", model: str = "qwen3-next-80b", draft: Geometry | None = None, **more: Any) -> Plan:
    asked = {key: more.pop(key) for key in ("context_length", "mem_fraction_static", "pool_target", "concurrent_requests") if key in more}
    sources = Sources(gpu_free_gib=140.0, free_at_sizing_gib=70.0, observed=more.pop("observed", ()))
    return make_plan(Request(version, geometry(model), Deployment(tp_size=4, **more), sources, draft, **asked))


def test_a_plan_says_what_the_states_take() -> None:
    found = plan(mem_fraction_static=0.85, max_running_requests=512, disable_overlap_schedule=True)
    text = " ".join(found.reasons)
    assert found.predicted_tokens == 2_253_805
    assert "The states take 23.21 GiB beside the KV pool, for 1,289 slots of 18.42 MiB" in text
    assert "a mamba_full_memory_ratio smaller than 0.9 gives tokens" in text
    capped = "max_running_requests is capped to 429 in a worker, below the 512 asked for in all"
    assert f"{capped}: a request may need 3 of the 1,289 slots" in text
    assert found.bytes_per_token["charged"] == 12_288
    assert found.running_requests == 429
    # P - (A - budget) is what stays outside: KV pool, states and table come out of the 70 GiB
    table = (429 + 1) * (262_144 + 4) * 4 / GIB
    assert found.headroom_gib == pytest.approx(70 - (2_253_805 + 1) * 12_288 / GIB - 24_918_589_440 / GIB - table, abs=0.01)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"max_mamba_cache_size": 300}, "a smaller max_mamba_cache_size gives tokens"),
        ({"disable_radix_cache": True, "max_running_requests": 64}, "a smaller max_running_requests gives tokens"),
        ({"disable_radix_cache": True}, "a mamba_full_memory_ratio smaller than 0.9 gives tokens"),
    ],
)
def test_a_plan_says_what_gives_tokens(flags: dict[str, Any], words: str) -> None:
    assert words in " ".join(plan(mem_fraction_static=0.85, **flags).reasons)


def test_a_plan_finds_the_fraction_beside_states() -> None:
    found = plan(pool_target=2_000_000)
    assert found.mem_fraction_static is not None
    assert found.predicted_tokens >= 2_000_000
    below = plan(mem_fraction_static=found.mem_fraction_static - 0.0001)
    assert below.predicted_tokens < 2_000_000
    assert found.tokens_per_hundredth == round(140.0 / 100 * GIB / 12_288 / 1.9)


def test_a_plan_makes_room_for_the_requests_that_run_at_once() -> None:
    """Eight requests of 1,000 tokens may need five slots each: the pool is larger than their tokens for the sake of these."""
    found = plan(model="nemotron-3-ultra-550b", context_length=1000, concurrent_requests=8)
    assert found.mem_fraction_static is not None
    assert (found.verdict, found.required_tokens) == ("fits", 8000)
    pool = pool_of("0.5.23", "nemotron-3-ultra-550b", tp_size=4)
    assert mamba_slots(pool, 140.0, 70.0, found.mem_fraction_static) // 5 == 8
    assert mamba_slots(pool, 140.0, 70.0, found.mem_fraction_static - 0.0001) // 5 == 7


def test_a_plan_for_more_requests_than_the_states_serve() -> None:
    found = plan(mem_fraction_static=0.85, context_length=1000, concurrent_requests=300)
    assert found.verdict == "impossible"
    assert "The states serve 257 requests at once, 300 are asked for." in found.reasons
    changes = {other.change: other for other in found.alternatives}
    # the most that leave 5 GiB at any fraction
    assert changes["concurrent_requests=299"].verdict == "fits"
    # 1,501 slots of 18.42 MiB and 300,000 tokens of 12,288 bytes are 30.44 of the 140 GiB, beside 70 that are taken already
    assert changes["max_mamba_cache_size=1500"].mem_fraction_static == 0.7175
    out = plan(model="nemotron-3-ultra-550b", context_length=1000, concurrent_requests=500)
    assert "500 requests at once are out of reach: the states serve" in " ".join(out.reasons)


def boot(tokens: int, slots: int, **arguments: Any) -> dict[str, Any]:
    ranks = [
        {"tp": rank, "avail_before_weights_gib": 140.0, "avail_after_weights_gib": 70.0, "mamba_slots": slots, "target": {"tokens": tokens}}
        for rank in range(4)
    ]
    args = {"mem_fraction_static": 0.85, "tp_size": 4, "page_size": 1, **arguments}
    return {"sglang_version": "0.5.23", "server_args": args, "ranks": ranks, "ready": True, "available_gpu_mem_gib": 20.0}


def test_a_plan_from_a_start_beside_states() -> None:
    """The start's slots tell which of two budgets it had, and its own flags how it shared it."""
    same = plan(mem_fraction_static=0.85, observed=[boot(2_253_805, 1289)])
    assert (same.basis, same.predicted_tokens) == ("observed", 2_253_805)
    # that start had fixed its slots; the plan shares by memory
    other = plan(mem_fraction_static=0.85, observed=[boot(3_808_513, 300, max_mamba_cache_size=300)])
    assert other.predicted_tokens == 2_253_805


def test_next_token_layers_of_a_model_that_is_its_own_draft() -> None:
    """Without a named path none is found before 0.5.22, and after it only where the configuration counts them."""
    flags = {"algorithm": "EAGLE", "num_draft_tokens": 4, "tp_size": 8, "disable_radix_cache": True, "max_running_requests": 48}
    found = {}
    for model in ("qwen3-next-80b", "nemotron-3-super-120b-a12b", "ling-2.5-1t"):
        target = geometry(model)
        for version in ("0.5.13", "0.5.16", "0.5.23"):
            found[model, version] = build_pool(era(version), target, target, Deployment(**flags)).charged
    assert found == {
        ("qwen3-next-80b", "0.5.13"): 12_288,
        ("qwen3-next-80b", "0.5.16"): 12_288,
        ("qwen3-next-80b", "0.5.23"): 12_288,
        ("nemotron-3-super-120b-a12b", "0.5.13"): 4_096,
        ("nemotron-3-super-120b-a12b", "0.5.16"): 4_096,
        ("nemotron-3-super-120b-a12b", "0.5.23"): 4_608,
        ("ling-2.5-1t", "0.5.13"): 11_520,
        ("ling-2.5-1t", "0.5.16"): 12_672,
        ("ling-2.5-1t", "0.5.23"): 12_672,
    }


def test_what_is_no_hybrid_has_no_states() -> None:
    pool = pool_of("0.5.23", "llama-3.1-8b")
    assert (mamba_slots(pool, 80.0, 60.0, 0.9), state_gib(pool, Deployment(), 8192, 100_000), pool.unsteady_tokens) == (0, 0.0, 0.0)
    assert state_cache(era("0.5.23"), geometry("llama-3.1-8b"), Deployment()) == StateCache(True, 1, 1)


def test_falcon_cuts_its_states_by_all_ranks_before_0_5_4() -> None:
    """tp 4 under DP attention 4: 48 slots of a quarter each leave SGLang's own 50,440 tokens; whole ones would leave none."""
    flags = {"tp_size": 4, "dp_size": 4, "dp_attention": True, "kv_cache_dtype": "fp8_e5m2", "max_running_requests": 48}
    pool = pool_of("0.5.3.post3", "falcon-h1-34b", disable_radix_cache=True, **flags)
    assert pool_tokens(pool, 44.4858418386902, 23.950707633904365, 0.616) == 50440
    later = pool_of("0.5.4", "falcon-h1-34b", disable_radix_cache=True, **flags)
    assert pool_tokens(later, 44.4858418386902, 23.950707633904365, 0.616) == 0
