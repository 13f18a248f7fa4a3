# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison can fail: a plan by a neighbour's rules is noticed; a fetch that was cut short leaves nothing."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._eras import ERAS, parse_version
from differential import compare, sources
from differential.cases import Case, matrix, randomised, version_key

# A release, a neighbour whose rules differ from its own, and a case that shows it.
NEIGHBOURS = [
    ("0.5.13.post1", "0.5.14", "llama-3.1-8b EAGLE3 tp2"),
    ("0.5.17", "0.5.18", "kimi-k2.6 DFLASH tp8"),
    ("0.5.17", "0.5.13.post1", "deepseek-v3.2 - tp8 fp8_e4m3"),
    ("0.5.6.post2", "0.5.7", "qwen3-32b EAGLE3 tp1"),
]


@pytest.mark.parametrize(("release", "neighbour", "name"), NEIGHBOURS)
def test_a_plan_by_the_rules_of_a_neighbour_is_noticed(release: str, neighbour: str, name: str) -> None:
    cases = [case for case in matrix(release) if case.name.startswith(name)]
    answers, _flags = compare.ask(release, cases)
    right, wrong = (compare.judge(release, cases, answers, planned_as) for planned_as in (release, neighbour))
    assert [outcome.problem for outcome in right] == ["" for _case in cases]
    assert all(outcome.difference for outcome in wrong)


def test_releases_are_listed_in_order_and_on_both_sides_of_every_boundary() -> None:
    """Between two neighbours in the list, no rule may change twice."""
    listed = sources.releases()
    assert listed == sorted(set(listed), key=version_key)
    assert len(listed) >= 12
    ordered = [(*version.release, version.post) for version in map(parse_version, listed)]
    boundaries = [(*era.since, 0)[:4] for era in ERAS[1:]]
    crossed = [sum(before < boundary <= after for boundary in boundaries) for before, after in itertools.pairwise(ordered)]
    assert max(crossed) == 1
    assert sum(crossed) == len(boundaries)


def test_random_cases_are_the_same_at_every_run() -> None:
    def drawn(release: str) -> list[Case]:
        return list(randomised(release, 20))

    assert drawn("0.5.11") == drawn("0.5.11")
    assert drawn("0.5.11") != drawn("0.5.12.post1")


def test_turns_go_through_the_whole_matrix() -> None:
    whole = list(matrix("0.5.23"))
    turns = {case.name for turn in range(len(sources.releases())) for case in matrix("0.5.23", turn)}
    assert turns == {case.name for case in whole}
    assert len(turns) == len(whole)
    assert {case.options["tp_size"] for case in whole} >= {1, 2, 4, 8}
    assert {case.algorithm for case in whole} >= {"", "DFLASH", "EAGLE3", "NEXTN", "STANDALONE"}


def test_a_fetch_that_was_cut_short_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "0.5.23"

    def cut(part: Path) -> None:
        (part / "half").touch()
        raise sources.SourceError("no network")

    def whole(part: Path) -> None:
        assert list(part.iterdir()) == []
        (part / "all").touch()

    with pytest.raises(sources.SourceError, match="no network"):
        sources._complete(target, cut)
    assert not target.exists()
    assert [path.name for path in sources._complete(target, whole).iterdir()] == ["all"]
    # there is nothing left to fill
    assert sources._complete(target, cut) == target


def test_a_release_that_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sources, "environment", lambda: Path("/usr/bin/false"))
    with pytest.raises(sources.SourceError, match=r"sglang==0\.0\.1.*exit status 1"):
        sources.source("0.0.1")
    assert not (tmp_path / "inferops-sglang/differential/sources/0.0.1").exists()
