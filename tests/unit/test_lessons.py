# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start teaches the other hosts of its class.

The judge of a fraction is SGLang's own formula with the true memory of the host that it is planned for. The plan knows only what is
printed with two decimals, what the driver tells in MiB, and an overhead that nobody knows exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils import _boots
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import Weights
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._lessons import (
    fleet_boots,
    is_lesson,
    lessons_from_kept,
    lessons_from_outcome,
    margin_gib,
    merge,
    teaches,
)
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Plan, Request, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import Pool, build_pool, mamba_slots, pool_tokens
from ansible_collections.inferops.sglang.plugins.plugin_utils import _class_filters, _lesson_store

CONFIGS = Path(__file__).parent / "fixtures/configs"
KEY = "0123456789ab"
GIB = 1 << 30


def geometry(name: str) -> Geometry:
    return read_geometry(json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")))


# --- the fraction for another host -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Service:
    """A server, and how much it loads before the pool (GiB on a rank)."""

    model: str = "kimi-k2.6"
    draft: str | None = "kimi-k2.6-dflash"
    deployment: Deployment = field(default_factory=lambda: Deployment(algorithm="DFLASH", tp_size=8, max_running_requests=8))
    version: str = "0.5.12.post1"
    loaded_gib: float = 72.398
    context_length: int = 200000

    @property
    def pool(self) -> Pool:
        draft = geometry(self.draft) if self.draft else None
        return build_pool(era_of(parse_version(self.version))[0], geometry(self.model), draft, self.deployment)

    def start(self, host: Host, fraction: float, stamp: str = "2026-11-30T07:01:02", **more: Any) -> dict[str, Any]:
        """The start as its log tells it: memory with two decimals, tokens as the true memory gave them."""
        left = host.free_gib - self.loaded_gib
        tokens = pool_tokens(self.pool, host.free_gib, left, fraction)
        after = left - self.pool.stored_gib(tokens) - 1.95
        ranks = [
            {
                "tp": rank, "pp": 0, "dp": None, "avail_before_weights_gib": round(host.free_gib + more_gib, 2),
                "avail_after_weights_gib": round(left + more_gib, 2), "avail_after_pool_gib": round(after + more_gib, 2),
                "target": {"tokens": tokens}, "draft": None,
                "mamba_slots": mamba_slots(self.pool, host.free_gib, left, fraction) or None,
            }
            for rank, more_gib in enumerate(host.ranks_gib)
        ]  # fmt: skip
        return {
            "invocation_id": f"{host.name}{stamp}", "started_at": stamp, "sglang_version": self.version, "ready": True, "was_ready": True,
            "complete": True, "min_tokens": tokens, "available_gpu_mem_gib": round(after, 2), "min_avail_gib": round(after, 2),
            "server_args": {"mem_fraction_static": fraction, "model_path": "/srv/models/m"}, "ranks": ranks, "failure": None, **more,
        }  # fmt: skip

    def tokens(self, host: Host, fraction: float) -> int:
        """What SGLang gives on a host: the judge."""
        return pool_tokens(self.pool, host.free_gib, host.free_gib - self.loaded_gib, fraction)

    def plan(self, observed: list[dict[str, Any]], host: Host) -> Plan:
        draft = geometry(self.draft) if self.draft else None
        sources = Sources(
            observed=observed, gpu_free_gib=host.reckoned_gib, weights=lambda: Weights(0.0), draft_weights=lambda: Weights(0.0)
        )
        return make_plan(
            Request(
                version=self.version, target=geometry(self.model), draft=draft, context_length=self.context_length,
                deployment=self.deployment, sources=sources,
            )
        )  # fmt: skip


@dataclass(frozen=True)
class Host:
    """True free memory of the fullest card, what the other cards have more, and what a plan takes the overhead for too much (GiB)."""

    name: str = "gpu01"
    free_gib: float = 93.727
    ranks_gib: tuple[float, ...] = (0.0,) * 8
    misjudged_gib: float = 0.3

    @property
    def reckoned_gib(self) -> float:
        """Whole MiB of the driver, less what the context is taken for."""
        return round(self.free_gib * 1024) / 1024 - self.misjudged_gib


KIMI = Service()
SERVICES = {
    "kimi": KIMI,
    "kimi in one go with its draft": replace(KIMI, version="0.5.21", loaded_gib=73.71),
    "pages of 64": replace(KIMI, deployment=replace(KIMI.deployment, page_size=64)),
    "gqa": Service("qwen3-32b", None, Deployment(tp_size=8), loaded_gib=8.1, context_length=32768),
    "states beside the pool": Service("qwen3-next-80b", None, Deployment(tp_size=4), "0.5.12", 37.9, 262144),
}
DIFFERENCES = (-1.0, -0.5, -0.25, -0.05, -0.006, 0.0, 0.004, 0.05, 0.26, 0.5, 1.0)


def lessons(service: Service, host: Host, fractions: tuple[float, ...]) -> dict[str, list[dict[str, Any]]]:
    """What the starts of a canary at these fractions teach, the last of them accepted."""
    boots = [service.start(host, fraction, f"2026-11-30T07:0{number}:00") for number, fraction in enumerate(fractions)]
    outcome = {
        "host": host.name, "outcome": "accepted", "starts": len(boots), "fleet_class": {"key": KEY}, "free_gib": host.reckoned_gib,
        "boots": boots,
    }  # fmt: skip
    return merge(lessons_from_outcome(outcome))


@pytest.mark.parametrize("difference", DIFFERENCES)
@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("fractions", [(0.85,), (0.92,), (0.85, 0.9259)])
def test_another_host_reaches_the_target_in_one_start(name: str, difference: float, fractions: tuple[float, ...]) -> None:
    service, canary, host = SERVICES[name], Host(), Host("gpu02", 93.727 + difference)
    found = fleet_boots(lessons(service, canary, fractions), KEY, host.reckoned_gib)
    plan = service.plan(found, host)
    assert (plan.basis, len(found)) == ("observed", len(fractions))
    assert plan.mem_fraction_static is not None
    got = service.tokens(host, plan.mem_fraction_static)
    assert got >= plan.required_tokens
    # no higher than the margin and MiB, one step of the fraction and a page ask for: 0.003 GiB, 0.0001, and what a page holds
    least = plan.mem_fraction_static - 0.003 / host.free_gib - 0.0002
    page = service.deployment.page_size
    assert service.tokens(host, round(least, 4)) < plan.required_tokens + page + service.pool.unsteady_tokens


def test_the_case_by_hand() -> None:
    """At 0.9 the static share is 84.354 GiB: 72.398 of weights and 166,329 tokens of 77,184 bytes. 33,671 more take 2.420 GiB,
    86.775 in all, which is 0.93079 of 93.227 GiB. The log says 93.73, not 93.727, and 0.001 is taken off: 86.777 of 93.229 is the same."""
    found = fleet_boots(lessons(KIMI, Host(), (0.9,)), KEY, Host("gpu02", 93.227).reckoned_gib)
    [boot] = found
    assert boot["server_args"]["mem_fraction_static"] == pytest.approx(0.9 * 93.73 / (93.73 - 0.5 - 0.001), abs=1e-5)
    assert boot["ranks"][0]["target"]["tokens"] == 166329
    plan = KIMI.plan(found, Host("gpu02", 93.227))
    assert plan.mem_fraction_static == 0.9308
    # the canary's own fraction would be short here
    assert KIMI.tokens(Host("gpu02", 93.227), 0.9259) < 200000


def test_the_fraction_of_the_other_host_alone_would_not_do() -> None:
    """Taken over as it stands, a start on a card with more memory plans too little for one with less."""
    canary, host = Host(), Host("gpu02", 92.727)
    plain = KIMI.plan([KIMI.start(canary, 0.85)], host)
    assert plan_tokens(plain, host) < 200000
    told = KIMI.plan(fleet_boots(lessons(KIMI, canary, (0.85,)), KEY, host.reckoned_gib), host)
    assert plan_tokens(told, host) >= 200000


def plan_tokens(plan: Plan, host: Host) -> int:
    assert plan.mem_fraction_static is not None
    return KIMI.tokens(host, plan.mem_fraction_static)


def test_what_would_be_left_moves_with_the_card() -> None:
    canary, host = Host(), Host("gpu02", 92.727)
    there = KIMI.plan([KIMI.start(canary, 0.9)], canary)
    here = KIMI.plan(fleet_boots(lessons(KIMI, canary, (0.9,)), KEY, host.reckoned_gib), host)
    assert here.headroom_gib == pytest.approx(there.headroom_gib - 1.0, abs=0.02)


MARGINS = [
    # MiB of the driver, with what is taken off for the context
    (93.4268, 92.9268, False, 0.001),
    (93.4268, 93.4268, False, 0.0),
    (93.4268, 93.4271, False, 0.0),
    # told: as many decimals as the coarser one has
    (93.73, 93.23, True, 0.01),
    (93.73, 93.2, True, 0.1),
    (94, 93.0, True, 1.0),
    (93.7274, 93.2274, True, 0.001),
    (94.0, 94.0, True, 0.0),
]


@pytest.mark.parametrize(("there", "here", "given", "margin"), MARGINS)
def test_the_margin_is_what_rounded_figures_hide(there: float, here: float, given: bool, margin: float) -> None:
    for one, other in ((there, here), (here, there)):
        assert margin_gib(one, other, given) == pytest.approx(margin)


@pytest.mark.parametrize("less", [0.0, 0.44, 0.5, 0.73, 1.2])
def test_a_told_figure_reaches_the_target_however_it_was_rounded(less: float) -> None:
    """A tenth of a GiB is told of each host."""
    canary, host = Host(), Host("gpu02", 93.727 - less)
    boot = KIMI.start(canary, 0.85)
    known = merge(lessons_from_outcome({**OUTCOME, "boots": [boot], "free_gib": round(canary.free_gib, 1)}))
    found = fleet_boots(known, KEY, round(host.free_gib, 1), given=True)
    assert plan_tokens(KIMI.plan(found, host), host) >= 200000


def test_hosts_that_say_the_same_run_the_same() -> None:
    """The canary holds 200,099 at 0.9259; so do all others, whatever the last decimals of their logs."""
    found = fleet_boots(lessons(KIMI, Host(), (0.9153, 0.9259)), KEY, Host().reckoned_gib)
    assert KIMI.plan(found, Host("gpu02")).mem_fraction_static == 0.9259


def test_the_reasons_name_the_host_that_taught() -> None:
    host = Host("gpu02", 93.227)
    said = KIMI.plan(fleet_boots(lessons(KIMI, Host(), (0.9,)), KEY, host.reckoned_gib), host).reasons
    assert said[0] == (
        "A start on gpu01, which is of the same class, stands in for one of this host: weights and pool take the same memory, and 93.23 "
        "GiB are reckoned free before the weights (0.5 GiB less than there and 0.001 off, which such figures may hide)."
    )
    same = KIMI.plan(fleet_boots(lessons(KIMI, Host(), (0.9,)), KEY, Host().reckoned_gib), host).reasons
    assert said[0] not in same
    assert same[0].endswith("and 93.73 GiB are reckoned free before the weights (as there).")


# --- starts that died ----------------------------------------------------------------------------------------------------------

OOM = {"kind": "oom_capture", "advice": "lower", "rank": None, "message": "CUDA out of memory", "minimum_fraction": None}
NO_POOL = {"kind": "not_enough_memory", "advice": "raise", "rank": None, "message": "Not enough memory"}


def refused(boot: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "host": "gpu01", "outcome": "refused", "starts": 1, "fleet_class": {"key": KEY}, "free_gib": Host().reckoned_gib, "boots": [boot],
        **more,
    }  # fmt: skip


def dead(host: Host, fraction: float, failure: dict[str, Any]) -> dict[str, Any]:
    return KIMI.start(host, fraction, ready=False, was_ready=False, failure=failure, available_gpu_mem_gib=None, min_avail_gib=None)


@pytest.mark.parametrize("difference", [-0.5, 0.0, 0.5])
def test_a_start_that_ran_out_of_memory_bounds_the_others(difference: float) -> None:
    """200,000 tokens need 0.9259 of the canary's card, and it died at 0.92: no equal card holds them."""
    host = Host("gpu02", 93.727 + difference)
    found = fleet_boots(merge(lessons_from_outcome(refused(dead(Host(), 0.92, OOM)))), KEY, host.reckoned_gib)
    plan = KIMI.plan(found, host)
    assert plan.verdict == "impossible"
    assert plan.upper_bound is not None
    assert plan.upper_bound < 0.92 * 93.727 / (host.free_gib - 0.02)
    assert "on gpu01, here at 0.9" in "\n".join(plan.reasons)


def test_the_next_fraction_leaves_the_same_rest() -> None:
    """CUDA said how much it lacked: what lies outside of 0.91 of 93.73 GiB would have done, 8.436 GiB on any card."""
    boot = dead(Host(), 0.92, {**OOM, "next_fraction": 0.91})
    [told] = fleet_boots(merge(lessons_from_outcome(refused(boot))), KEY, Host().reckoned_gib - 0.99)
    assert told["failure"]["next_fraction"] == pytest.approx(1 - 0.09 * 93.73 / 92.739, abs=1e-6)


@pytest.mark.parametrize("difference", [-1.0, 0.0, 1.0])
def test_a_start_without_a_pool_tells_the_weights(difference: float) -> None:
    """It said that it needs more than 72.398 of 93.727 GiB; the other host needs as many GiB, within what its log rounds: 0.015 GiB."""
    host = Host("gpu02", 93.727 + difference)
    boot = dead(Host(), 0.7, {**NO_POOL, "minimum_fraction": 0.7724})
    found = fleet_boots(merge(lessons_from_outcome(refused(boot))), KEY, host.reckoned_gib)
    plan = KIMI.plan(found, host)
    assert plan.lower_bound >= 0.7724 * 93.73 / (host.free_gib + 0.01)
    assert plan_tokens(plan, host) >= 200000 - 209


def test_a_host_with_less_than_the_share_learns_from_what_was_measured() -> None:
    """0.97 of 93.73 GiB are more than the other card has; its weights still leave a pool."""
    host = Host("gpu02", 90.5)
    found = fleet_boots(lessons(KIMI, Host(), (0.97,)), KEY, host.reckoned_gib)
    assert found[0]["server_args"]["mem_fraction_static"] is None
    assert KIMI.plan(found, host).basis == "observed"
    assert fleet_boots(lessons(KIMI, Host(), (0.97,)), KEY, 72.0) == []


BOOT = KIMI.start(Host(), 0.9)
TEACHING: dict[str, tuple[dict[str, Any], bool]] = {
    "it served": (BOOT, True),
    "it served, then stopped": ({**BOOT, "ready": False}, True),
    "out of memory": ({**BOOT, "ready": False, "was_ready": False, "failure": OOM}, True),
    "no pool": ({**BOOT, "ready": False, "was_ready": False, "failure": NO_POOL}, True),
    "somebody else's memory": ({**BOOT, "failure": {"kind": "foreign_process", "advice": "other"}}, False),
    "a rank was lost": ({**BOOT, "failure": {"kind": "child_died", "advice": "other"}}, False),
    "weights too large": ({**BOOT, "failure": {"kind": "oom_weights", "advice": "impossible"}}, False),
    "a rank never came": ({**BOOT, "complete": False}, False),
    "it never served": ({**BOOT, "ready": False, "was_ready": False}, False),
    "one card fuller by half a GiB": (KIMI.start(Host(ranks_gib=(0.0, 0.52)), 0.9), False),
    "out of memory on the fuller card": ({**KIMI.start(Host(ranks_gib=(0.0, 4.0)), 0.9), "failure": OOM}, False),
    "one card fuller by less": (KIMI.start(Host(ranks_gib=(0.0, 0.27)), 0.9), True),
    "no fraction": ({**BOOT, "server_args": {}}, False),
    "nothing": ({}, False),
    "odd": ({"server_args": 5, "ranks": 5, "failure": 5}, False),
}


@pytest.mark.parametrize("case", TEACHING)
def test_which_starts_teach(case: str) -> None:
    boot, expected = TEACHING[case]
    assert teaches(boot) is expected


# --- where lessons come from ---------------------------------------------------------------------------------------------------

OTHER_BOOT = KIMI.start(Host(), 0.85, "2026-11-29T00:00:00")
OUTCOME = {
    "host": "gpu01", "outcome": "accepted", "starts": 1, "fleet_class": {"key": KEY}, "free_gib": 93.427, "boots": [OTHER_BOOT, BOOT],
}  # fmt: skip
OUTCOMES: dict[str, tuple[dict[str, Any], list[tuple[str, bool]]]] = {
    "one start": (OUTCOME, [("2026-11-30T07:01:02", True)]),
    "a corrected one": ({**OUTCOME, "starts": 2}, [("2026-11-29T00:00:00", False), ("2026-11-30T07:01:02", True)]),
    "nothing to do": ({**OUTCOME, "starts": 0}, [("2026-11-30T07:01:02", True)]),
    "refused after a start": ({**OUTCOME, "outcome": "refused"}, [("2026-11-30T07:01:02", False)]),
    # what runs is the service of before
    "refused without one": ({**OUTCOME, "outcome": "refused", "starts": 0}, []),
    "check mode": ({**OUTCOME, "outcome": "checked", "starts": 0}, []),
    "removed": ({**OUTCOME, "outcome": "removed"}, []),
    "no class": ({**OUTCOME, "fleet_class": {}}, []),
    "nothing reckoned": ({**OUTCOME, "free_gib": None}, []),
    "no boots": ({**OUTCOME, "boots": None}, []),
    "odd boots": ({**OUTCOME, "boots": [None, 5]}, []),
    "empty": ({}, []),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_lessons_of_an_outcome(case: str) -> None:
    outcome, expected = OUTCOMES[case]
    found = lessons_from_outcome(outcome)
    assert [(lesson["seen_at"], lesson["accepted"]) for lesson in found] == expected
    assert all((lesson["host"], lesson["fleet_class"], lesson["free_gib"]) == ("gpu01", KEY, 93.427) for lesson in found)


MARKED = {**BOOT, "fleet_class": KEY, "reckoned_free_gib": 93.4}
KEPT: list[tuple[list[dict[str, Any]], dict[str, Any], list[tuple[float, bool]]]] = [
    ([MARKED], {"invocation_id": BOOT["invocation_id"]}, [(93.4, True)]),
    ([MARKED], {"invocation_id": "another"}, [(93.4, False)]),
    ([MARKED], {}, [(93.4, False)]),
    ([{**MARKED, "fleet_class": "ba9876543210"}, {**MARKED, "reckoned_free_gib": None}, BOOT], {}, []),
    # the host has less by half a GiB since then
    ([{**MARKED, "reckoned_free_gib": 93.92}], {}, []),
    ([{**MARKED, "failure": {"kind": "foreign_process", "advice": "other"}}], {}, []),
]


@pytest.mark.parametrize(("boots", "receipt", "expected"), KEPT)
def test_lessons_of_what_a_host_kept(boots: list[dict[str, Any]], receipt: dict[str, Any], expected: list[tuple[float, bool]]) -> None:
    found = lessons_from_kept("gpu01", KEY, 93.42, boots, receipt)
    assert [(lesson["free_gib"], lesson["accepted"]) for lesson in found] == expected


def test_a_lesson_keeps_what_a_plan_reads_and_no_more() -> None:
    """Every argument and figure that a plan reads, with a value of its own, and a secret."""
    names = [*_boots.COMPARED, *_boots._UNMODELLED, "mem_fraction_static", "model_path", "speculative_draft_model_path", "context_length"]
    names += ["max_running_requests", "max_total_tokens", "chunked_prefill_size", "max_mamba_cache_size", "mamba_full_memory_ratio"]
    arguments = {name: number + 2 for number, name in enumerate(names)}
    arguments.update(
        mem_fraction_static=0.9, model_path="/m", speculative_draft_model_path="/d", speculative_algorithm="EAGLE", kv_cache_dtype="bf16",
        disable_radix_cache=True, disable_overlap_schedule=False, mamba_ssm_dtype="float32", mamba_scheduler_strategy="extra_buffer",
        mamba_full_memory_ratio=0.5,
    )  # fmt: skip
    boot = {
        **BOOT, "server_args": {**arguments, "api_key": "s3cret"}, "load_order": "draft_after_pool", "max_total_num_tokens": 5,
        "context_len": 7, "max_running_requests": 9, "dropped_messages": 3,
        "failure": {**OOM, "message": "s3cret", "minimum_fraction": 0.5, "next_fraction": 0.6},
        "ranks": [{**BOOT["ranks"][0], "pid": 77, "draft": {"k_gib": 1.0, "v_gib": 2.0}, "avail_after_capture_gib": 2.5}],
    }  # fmt: skip
    [lesson] = lessons_from_outcome({**OUTCOME, "boots": [boot]})
    assert _boots.read_boots([lesson["boot"]]) == _boots.read_boots([boot])
    assert "s3cret" not in json.dumps(lesson)
    assert "pid" not in lesson["boot"]["ranks"][0]


def numbered(host: str, number: int, accepted: bool = False, **more: Any) -> dict[str, Any]:
    boot = {**BOOT, "invocation_id": f"{host}-{number}", **more}
    return {
        "host": host, "fleet_class": KEY, "free_gib": 93.4, "seen_at": f"2026-11-{number:02}T00:00:00", "accepted": accepted, "boot": boot,
    }  # fmt: skip


MERGED: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "the newest accepted first": ([numbered("a", 1, True), numbered("a", 3), numbered("b", 2, True)], ["b-2", "a-1", "a-3"]),
    "three at the most": ([numbered("a", day, True) for day in range(1, 8)], ["a-7", "a-6", "a-5"]),
    "the dead last": (
        [numbered("a", 9, failure=OOM), numbered("a", 2), numbered("b", 5, ready=False, was_ready=False)], ["a-2", "a-9", "b-5"],
    ),
    "once each, accepted if ever": ([numbered("a", 1, True), numbered("a", 2), numbered("a", 1)], ["a-1", "a-2"]),
    "damaged ones not at all": ([{}, {"host": "a"}, {**numbered("a", 1), "free_gib": "x"}, numbered("a", 2)], ["a-2"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MERGED)
def test_lessons_are_merged(case: str) -> None:
    given, expected = MERGED[case]
    found = merge(given)
    assert [lesson["boot"]["invocation_id"] for lesson in found[KEY]] == expected


def test_classes_are_kept_apart() -> None:
    other = {**numbered("b", 2), "fleet_class": "ba9876543210"}
    assert {key: len(found) for key, found in merge([numbered("a", 1), other]).items()} == {KEY: 1, "ba9876543210": 1}
    assert merge([]) == {}


# --- whose starts count --------------------------------------------------------------------------------------------------------


def test_starts_of_one_host_alone_in_the_order_of_their_time() -> None:
    known = merge([numbered("a", 1), numbered("a", 3, True), numbered("b", 2, True)])
    assert [boot["invocation_id"] for boot in fleet_boots(known, KEY, 93.4)] == ["a-1", "a-3"]


OWN: list[tuple[list[dict[str, Any]], int]] = [
    ([], 1),
    ([MARKED], 0),
    # of another class, or of none that is known
    ([{**MARKED, "fleet_class": "ba9876543210"}, BOOT], 1),
    # it says nothing about the class, so the others' starts are the better evidence
    ([{**MARKED, "failure": {"kind": "foreign_process", "advice": "other"}}], 1),
    ([{**MARKED, "failure": OOM}], 0),
]


@pytest.mark.parametrize(("own", "count"), OWN)
def test_a_start_of_its_own_comes_before_those_of_others(own: list[dict[str, Any]], count: int) -> None:
    assert len(fleet_boots(merge([numbered("a", 1, True)]), KEY, 93.4, own=own)) == count


@pytest.mark.parametrize("known", [{}, {KEY: []}, {KEY: [{}, 5]}, {"ba9876543210": [numbered("a", 1)]}])
def test_no_lesson_no_start(known: dict[str, Any]) -> None:
    assert _class_filters.fleet_boots(known, KEY, "93.4") == []


@pytest.mark.parametrize(
    ("known", "free", "said"), [([], 93.4, "found list; give lessons by the key"), ({}, "x", "free_gib: asked for GiB")]
)
def test_what_are_no_lessons_is_refused_in_words(known: Any, free: Any, said: str) -> None:
    with pytest.raises(AnsibleFilterError, match=said):
        _class_filters.fleet_boots(known, KEY, free)


def test_a_host_that_joins_later_needs_one_start(tmp_path: Path) -> None:
    """No host of its class is part of the run: what is known stands on the controller."""
    for name, stamp in (("gpu01", "2026-11-01T00:00:00"), ("gpu03", "2026-11-02T00:00:00")):
        boot = KIMI.start(Host(name), 0.9259, stamp)
        _lesson_store.store(tmp_path, lessons_from_outcome({**OUTCOME, "host": name, "boots": [boot], "free_gib": Host().reckoned_gib}))
    host = Host("gpu09", 93.227)
    found = fleet_boots(merge(_lesson_store.load(tmp_path, [KEY])), KEY, host.reckoned_gib)
    assert [boot["lesson"]["host"] for boot in found] == ["gpu03"]
    assert plan_tokens(KIMI.plan(found, host), host) >= 200000


@pytest.mark.parametrize(
    ("free_gib", "holds"),
    [(93.7, True), (94, True), (float("nan"), False), (float("inf"), False), ("93.7", False), (True, False)],
)
def test_a_lesson_has_memory_that_is_a_number(free_gib: Any, holds: bool) -> None:
    told = {"host": "gpu01", "fleet_class": "0123456789ab", "free_gib": free_gib, "boot": {}}
    assert is_lesson(told) is holds
