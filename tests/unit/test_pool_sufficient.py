# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test plugin passes what is proved and nothing else."""

from __future__ import annotations

import copy
import math

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.inferops.sglang.plugins.test.sglang import TestModule as Plugin
from ansible_collections.inferops.sglang.plugins.test.sglang import pool_sufficient
from hypothesis import given
from hypothesis import strategies as st

GOOD = {
    "ready": True,
    "complete": True,
    "failure": None,
    "missing_ranks": [],
    "min_tokens": 200000,
    "max_total_num_tokens": 200000,
    "ranks": [
        {"dp": 0, "pp": 0, "tp": 0, "target": {"tokens": 200000}, "draft": {"tokens": 5}},
        {"dp": 0, "pp": 0, "tp": 1, "target": {"tokens": 200001}, "draft": None},
    ],
}


def changed(path: str, value) -> dict:
    """GOOD with one value replaced; the path's parts are keys and indexes."""
    result = copy.deepcopy(GOOD)
    place = result
    *parts, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in parts:
        place = place[part]
    place[last] = value
    return result


def without(key: str) -> dict:
    return {name: value for name, value in GOOD.items() if name != key}


@pytest.mark.parametrize("tokens", [1, 199999, 200000, "200000", "007"])
def test_enough_is_enough(tokens):
    assert pool_sufficient(GOOD, tokens) is True


def test_a_boot_without_a_final_line_passes_by_its_ranks():
    assert pool_sufficient(changed("max_total_num_tokens", None), 200000) is True


@pytest.mark.parametrize("tokens", [200001, 0, -1, None, True, 1.5, math.nan, "", "x", "-5", "1.5", "9" * 4000, [1], {}, b"5", "²"])
def test_too_many_tokens_or_odd_ones_are_refused(tokens):
    assert pool_sufficient(GOOD, tokens) is False


@pytest.mark.parametrize("allocation", [None, {}, [], "ready", 5, True, math.nan, [GOOD]])
def test_what_is_no_allocation_is_refused(allocation):
    assert pool_sufficient(allocation, 1) is False


@pytest.mark.parametrize("key", [key for key in GOOD if key != "max_total_num_tokens"])
def test_an_allocation_that_leaves_something_out_is_refused(key):
    assert pool_sufficient(without(key), 1) is False


ODD = [
    ("ready", False),
    ("ready", None),
    ("ready", "true"),
    ("ready", 1),
    ("complete", False),
    ("complete", "yes"),
    ("complete", 1),
    ("failure", {"kind": "oom_capture"}),
    ("failure", False),
    ("failure", ""),
    ("missing_ranks", [{"tp": 1}]),
    ("missing_ranks", None),
    ("missing_ranks", {}),
    ("missing_ranks", ""),
    ("min_tokens", None),
    ("min_tokens", "200000"),
    ("min_tokens", 199999),
    ("min_tokens", True),
    ("max_total_num_tokens", 0),
    ("max_total_num_tokens", "200000"),
    ("max_total_num_tokens", -561981),
    ("max_total_num_tokens", math.nan),
    ("ranks", []),
    ("ranks", None),
    ("ranks", {}),
    ("ranks", "TP0"),
    ("ranks", [None]),
    ("ranks", ["TP0"]),
    ("ranks.1", {}),
    ("ranks.1.target", None),
    ("ranks.1.target", {}),
    ("ranks.1.target", 200000),
    ("ranks.1.target.tokens", None),
    ("ranks.1.target.tokens", "200001"),
    ("ranks.1.target.tokens", True),
    ("ranks.1.target.tokens", -200001),
    ("ranks.1.target.tokens", 200001.0),
    ("ranks.1.target.tokens", math.inf),
    ("ranks.1.tp", 0),
    ("ranks.1.tp", None),
    ("ranks.1.tp", "1"),
    ("ranks.1.tp", True),
    ("ranks.1.tp", -1),
]


@pytest.mark.parametrize(("path", "value"), ODD)
def test_an_odd_value_anywhere_is_refused(path, value):
    assert pool_sufficient(changed(path, value), 1) is False


def test_a_rank_that_names_no_stage_and_no_replica_is_in_the_first():
    bare = changed("ranks", [{"tp": 0, "target": {"tokens": 200000}}, {"tp": 1, "target": {"tokens": 200001}}])
    assert pool_sufficient(bare, 200000) is True
    assert pool_sufficient({**bare, "ranks": [*bare["ranks"], {"dp": 0, "tp": 1, "target": {"tokens": 200001}}]}, 1) is False


def test_one_rank_that_is_short_is_enough_to_refuse():
    short = changed("ranks.0.target.tokens", 192406)
    short["min_tokens"] = 192406
    assert pool_sufficient(short, 192406) is True
    assert pool_sufficient(short, 192407) is False


def test_a_final_line_that_says_less_than_the_pools_limits():
    assert pool_sufficient(changed("max_total_num_tokens", 150000), 150001) is False
    assert pool_sufficient(changed("max_total_num_tokens", 150000), 150000) is True


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*GOOD, "target", "tokens", "tp"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(ANYTHING, ANYTHING)
def test_nothing_makes_it_raise(allocation, tokens):
    assert pool_sufficient(allocation, tokens) in (True, False)


@given(st.sampled_from(["ranks.0.target", "ranks.1", "ranks", "missing_ranks", "failure", "min_tokens", "ready", "complete"]), ANYTHING)
def test_no_value_in_place_of_a_proof_passes(path, value):
    if value != value_at(path):
        assert pool_sufficient(changed(path, value), 200000) is False


def value_at(path: str):
    value = GOOD
    for part in path.split("."):
        value = value[int(part) if part.isdigit() else part]
    return value


EXPRESSIONS = [
    ("boot is inferops.sglang.pool_sufficient(200000)", True),
    ("boot is inferops.sglang.pool_sufficient('200001')", False),
    ("boot is not inferops.sglang.pool_sufficient(200001)", True),
    ("none is inferops.sglang.pool_sufficient(1)", False),
    ("{} is inferops.sglang.pool_sufficient(boot.absent | default(none))", False),
    ("nothing is inferops.sglang.pool_sufficient(1)", False),
    ("nothing.allocation is inferops.sglang.pool_sufficient(1)", False),
    ("nothing is not inferops.sglang.pool_sufficient(1)", True),
    ("boot.absent is inferops.sglang.pool_sufficient(1)", False),
    ("boot is inferops.sglang.pool_sufficient(nothing)", False),
    ("hollow is inferops.sglang.pool_sufficient(1)", False),
]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS)
def test_in_a_template(expression, expected):
    hollow = {**GOOD, "ready": trust_as_template("{{ nothing }}")}
    templar = Templar(loader=DataLoader(), variables={"boot": GOOD, "hollow": hollow})
    assert templar.template(trust_as_template("{{ " + expression + " }}")) is expected


def test_the_plugin_offers_one_test():
    assert Plugin().tests() == {"pool_sufficient": pool_sufficient}
