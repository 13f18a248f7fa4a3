# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release that explains observed starts, where the version string is untruthful or names none.

The starts are those this collection began with, read from their logs: Kimi K2.6 with a DFlash draft that loads after the
target's pool, which only releases up to 0.5.13 do, and 77,184 bytes per token, which only 0.5.11 to 0.5.17 charge.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import parse_version, read_version
from ansible_collections.inferops.sglang.plugins.module_utils._memory import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Plan, Request, make_plan
from ansible_collections.inferops.sglang.tests.unit.boots import FIRST, SECOND, KimiStart

CONFIGS = Path(__file__).parent / "fixtures/configs"
NAMELESS = ["escha-1.0.2", "0.0.0.dev1+g5f55db35e", "main"]


def config(name: str) -> Any:
    return json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))


def observed(start: KimiStart, **changes: Any) -> dict[str, Any]:
    """What allocation_info returns for a start, with figures of its ranks or of itself changed (None: not told)."""
    folder = BootFolder()
    folder.feed_all(Entry(line.text, line.pid, 1780000000000000 + number) for number, line in enumerate(start.lines()))
    found: dict[str, Any] = folder.result(Parallelism()).as_dict()
    of_ranks = {key: changes.pop(key) for key in list(changes) if key.startswith("avail_")}
    ranks = [{**rank, **of_ranks} for rank in found["ranks"]]
    return {**found, "ranks": ranks, **changes}


def plan(version: str, starts: list[dict[str, Any]], **changes: Any) -> Plan:
    request: dict[str, Any] = {"context_length": 200000, **changes}
    return make_plan(
        Request(
            version=version,
            target=read_geometry(config("kimi-k2.6")),
            draft=read_geometry(config("kimi-k2.6-dflash")),
            deployment=Deployment(algorithm="DFLASH", tp_size=8, max_running_requests=8),
            sources=Sources(observed=starts),
            **request,
        )
    )


def text(found: Plan) -> str:
    return "\n".join(found.reasons)


@pytest.mark.parametrize("version", ["0.5.12.post1", "0.5.18", "0.5.23", *NAMELESS])
def test_the_two_starts_whatever_the_version_string_says(version: str) -> None:
    """0.92 + 7594 * 77184 / (93.73 * 2**30), rounded up, under every name."""
    starts = [observed(start, sglang_version=version) for start in (FIRST, SECOND)]
    found = plan(version, starts)
    assert (found.era, found.basis, found.mem_fraction_static) == ("0.5.11-0.5.13", "observed", 0.9259)
    assert found.bytes_per_token == {"target": 70272, "draft": 3072, "charged": 77184}
    assert found.verdict == "fits"


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_an_untruthful_version_is_said_to_be_one(version: str) -> None:
    found = text(plan(version, [observed(start, sglang_version=version) for start in (FIRST, SECOND)]))
    for part in (
        f"The version string says {version} (rules of 0.5.18-0.5.23)",
        "the order in which the log shows the draft's load",
        "a pool line without a type",
        "the two pools they gave",
        "planned by the rules of 0.5.11-0.5.13",
    ):
        assert part in found


@pytest.mark.parametrize("version", NAMELESS)
def test_a_version_that_names_no_release(version: str) -> None:
    found = text(plan(version, [observed(start, sglang_version=version) for start in (FIRST, SECOND)]))
    for part in (
        f"The version string '{version}' names no release: planned by the rules of 0.5.11-0.5.13",
        "the order in which the log shows the draft's load",
        "the two pools they gave",
    ):
        assert part in found
    # nothing about a release that the string does not name
    assert "newer than" not in found
    assert "no release: planned as" not in found


def test_a_truthful_version_is_not_talked_about() -> None:
    assert "rules" not in text(plan("0.5.12.post1", [observed(FIRST), observed(SECOND)]))


# One start, with ever less of what tells releases apart.
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ["order in which", "without a type", "the pool it gave"]),
        ({"load_order": None}, ["without a type", "the pool it gave"]),
        ({"avail_before_weights_gib": 93.73, "avail_after_weights_gib": None}, ["order in which", "without a type"]),
    ],
)
def test_one_start(changes: dict[str, Any], said: list[str]) -> None:
    found = plan("escha-1.0.2", [observed(SECOND, sglang_version=None, **changes)])
    assert found.era == "0.5.11-0.5.13"
    assert [part for part in said if part not in text(found)] == []


def untyped(start: dict[str, Any]) -> dict[str, Any]:
    """Without the type and without the sizes of the pool: such a line could be any release's."""
    ranks = [{**rank, "target": {"tokens": rank["target"]["tokens"]}, "draft": None} for rank in start["ranks"]]
    return {**start, "ranks": ranks}


def test_the_pool_alone_leaves_two_eras_open() -> None:
    """0.5.11 to 0.5.17 charge alike; without the order of loads the newer of the two is taken, and said to be a guess."""
    found = plan("main", [untyped(observed(SECOND, load_order=None))])
    assert found.era == "0.5.14-0.5.17"
    assert "(those of 0.5.11-0.5.13 would do as well)" in text(found)


def typed(start: dict[str, Any]) -> dict[str, Any]:
    ranks = [{**rank, "target": {**rank["target"], "dtype": "torch.bfloat16"}} for rank in start["ranks"]]
    return {**start, "ranks": ranks}


def test_a_pool_line_with_a_type() -> None:
    """From 0.5.13 on: with the draft's load after the pool only 0.5.13 itself is left."""
    found = plan("main", [typed(observed(SECOND))])
    assert (found.era, "a pool line with a type" in text(found)) == ("0.5.11-0.5.13", True)
    before = plan("main", [typed(observed(SECOND, load_order="draft_before_pool"))])
    assert before.era == "0.5.14-0.5.17"


def test_the_newest_rules_are_found_too() -> None:
    """201,050 tokens at 0.92 are what 0.5.18 gives with these measurements and 0.098 GiB of reserve."""
    start = observed(KimiStart(0.92, 8, 201050, 13.16, 0.29, 8.05, (6.2,) * 8), load_order="draft_before_pool")
    assert plan("main", [typed(start)]).era == "0.5.18-0.5.23"


@pytest.mark.parametrize(
    "starts",
    [
        [],
        # memory but no pool: the release decides what had been loaded by then
        [{**observed(SECOND), "ranks": [{"avail_before_weights_gib": 93.73, "avail_after_weights_gib": 21.33}], "min_tokens": None,
          "max_total_num_tokens": None, "load_order": None}],
    ],
)  # fmt: skip
def test_without_a_pool_nothing_stands_in_for_the_release(starts: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError) as caught:
        plan("escha-1.0.2", starts)
    for part in ("found 'escha-1.0.2'", "give the version as the package names it", "the release it was cut from", "observed starts"):
        assert part in str(caught.value)


def test_a_start_that_tells_nothing_is_not_guessed_from() -> None:
    bare = untyped(observed(SECOND, load_order=None, avail_before_weights_gib=None, avail_after_weights_gib=None))
    with pytest.raises(InputError) as caught:
        plan("escha-1.0.2", [bare])
    for part in ("'escha-1.0.2', which names no release", "nothing to tell releases by", "give the release it was cut from"):
        assert part in str(caught.value)


def test_a_pool_of_no_release() -> None:
    odd = untyped(observed(KimiStart(0.92, 8, 150000, 9.82, 0.21, 11.5, (8.8,) * 8), load_order=None))
    with pytest.raises(InputError, match="starts that no release explains"):
        plan("main", [odd])
    # under a release's own name the plan goes on along the figures, and says so
    assert "No known release explains" in text(plan("0.5.12", [odd]))


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.5.18", True), ("0.5.11rc1", True), ("0.4.3", True), ("0.0.0", False), ("0.0.0.dev1+g5f55db35e", False), ("escha-1.0.2", False)],
)
def test_which_strings_name_a_release(version: str, known: bool) -> None:
    assert read_version(version).known is known


@pytest.mark.parametrize("version", ["", "  ", None])
def test_no_string_at_all(version: Any) -> None:
    with pytest.raises(InputError, match="give the version"):
        read_version(version)


def test_an_old_release_stays_too_old() -> None:
    with pytest.raises(InputError, match=r"older than 0\.4\.6"):
        plan("0.4.3", [observed(SECOND)])


def test_the_same_string_is_no_contradiction() -> None:
    """A start and a plan that both name a release are compared by it; where one names none, the rest decides."""
    assert parse_version("0.5.18").identity != parse_version("0.5.12.post1").identity
    left_out = text(plan("0.5.18", [observed(SECOND, sglang_version="0.5.18"), observed(FIRST, sglang_version="0.5.12.post1")]))
    assert "its sglang_version is 0.5.12.post1, the plan's is 0.5.18" in left_out
    assert "left out" not in text(plan("main", [observed(SECOND, sglang_version="0.5.18")]))


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"enable_hisparse": True}, ["enable_hisparse"]),
        ({"disaggregation_mode": "decode", "attn_cp_size": 2}, ["disaggregation_mode", "attn_cp_size"]),
        ({"enable_hisparse": False, "disaggregation_mode": "null", "attn_cp_size": 1, "swa_prefix_tails": None}, []),
    ],
)
def test_flags_that_no_plan_knows_are_said(flags: dict[str, Any], named: list[str]) -> None:
    start = observed(SECOND, sglang_version="0.5.12.post1")
    said = text(plan("0.5.12.post1", [{**start, "server_args": {**start["server_args"], **flags}}]))
    assert ("which no plan here knows" in said) is bool(named)
    assert [name for name in named if name not in said] == []


@pytest.mark.parametrize(
    ("version", "entry", "tokens"),
    [
        # an allocation's ranks count what requests can fill, the summary up to 0.5.20 the rows of one rank
        ("0.5.18", {"ranks": [{"target": {"tokens": 200000, "shard_tokens": 50000}}]}, 200000),
        ("0.5.20", {"max_total_num_tokens": 50000}, 200000),
        ("0.5.21", {"max_total_num_tokens": 200000}, 200000),
    ],
)
def test_rows_of_decode_context_parallelism(version: str, entry: dict[str, Any], tokens: int) -> None:
    start = {"sglang_version": version, "server_args": {"mem_fraction_static": 0.8, "dcp_size": 4, "tp_size": 8}, "ready": True, **entry}
    found = make_plan(
        Request(
            version=version,
            target=read_geometry(config("kimi-k2.6")),
            deployment=Deployment(tp_size=8, dcp_size=4),
            sources=Sources(observed=[start], gpu_free_gib=93.7),
            mem_fraction_static=0.8,
        )
    )
    assert found.predicted_tokens == pytest.approx(tokens, abs=8)
    assert "4 times the rows" in text(found)
