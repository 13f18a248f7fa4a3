# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""memory_plan against what SGLang's releases compute, to the token, and the table of flags against what their parsers know.

DIFFERENTIAL=whole takes every case.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent import futures

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _flag_releases as flags
from differential import compare, results, sources
from differential.cases import Case, matrix, randomised, singled_out
from differential.compare import Outcome, Run
from differential.families import FAMILIES
from differential.uncomparable import REASONS

WHOLE = os.environ.get("DIFFERENTIAL") == "whole"
RELEASES = sources.releases()
RANDOM_CASES = 300 if WHOLE else 40
# two processes of SGLang at a time: a core each
PROCESSES = 2

Runs = dict[str, futures.Future[Run]]


def cases_of(release: str) -> list[Case]:
    turn = None if WHOLE else RELEASES.index(release)
    return [*matrix(release, turn), *singled_out(release), *randomised(release, RANDOM_CASES)]


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    """Every release on its way; a test waits for the one it is about."""
    sources.environment()
    with futures.ThreadPoolExecutor(PROCESSES) as pool:
        yield {release: pool.submit(compare.run, release, cases_of(release)) for release in RELEASES}
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def outcomes(runs: Runs) -> list[Outcome]:
    """All outcomes, which are written down as well."""
    found = [outcome for run in runs.values() for outcome in run.result().outcomes]
    results.write("whole" if WHOLE else "subset", found)
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_the_plan_is_what_the_release_computes(runs: Runs, release: str) -> None:
    found = runs[release].result().outcomes
    different = [outcome for outcome in found if outcome.problem and outcome.reason is None]
    assert told(different, lambda outcome: outcome.problem) == [], f"{len(different)} of {len(found)} cases under SGLang {release}"


@pytest.mark.parametrize("release", RELEASES)
def test_so_is_what_its_tokens_rest_on(runs: Runs, release: str) -> None:
    """Bytes of a token, of both pools and of the request table."""
    found = runs[release].result().outcomes
    different = [outcome for outcome in found if outcome.details and outcome.reason is None]
    assert told(different, lambda outcome: "; ".join(outcome.details)) == [], f"{len(different)} of {len(found)} cases"


@pytest.mark.parametrize("release", RELEASES)
def test_the_flags_are_those_of_the_releases_own_parser(runs: Runs, release: str) -> None:
    """The table of flags, read for this release; a new release is a new run of flag_table.py."""
    parser = runs[release].result().flags
    options = {name: option for option in parser["options"] for name in option["names"]}
    version = flags.version_of(release)
    assert version.sure
    assert flags.full_names("", version) == tuple(sorted(options))
    assert flags.algorithms_of(version) == set(parser["algorithms"])
    assert {name for name in options if flags.is_refused(name, version)} == {name for name in options if options[name]["refused"]}
    told_to_go = {name for name, option in options.items() if option["deprecated"] and not option["refused"]}
    assert {name for name in options if flags.is_deprecated(name, version)} == told_to_go
    assert {name: flags.choices_of(name, version) for name in options} == {
        name: None if option["choices"] is None else set(option["choices"]) for name, option in options.items()
    }
    assert [name for name, option in options.items() if name in flags.SWITCHES and not option["switch"]] == []
    assert [name for name, option in options.items() if name in flags.BARE and not option["bare"]] == []
    for one, other in itertools.combinations(sorted(options), 2):
        if options[one]["kept_as"] == options[other]["kept_as"]:
            assert flags.argument_of(one) == flags.argument_of(other)


def test_every_flag_without_a_value_is_a_switch(runs: Runs) -> None:
    options = [option for run in runs.values() for option in run.result().flags["options"]]
    valued = {name for option in options if not option["switch"] for name in option["names"]}
    assert {name for option in options for name in option["names"]} - valued == flags.SWITCHES


def told(outcomes: list[Outcome], text: Callable[[Outcome], str]) -> list[str]:
    return [f"{outcome.case.name} {outcome.case.options}: {text(outcome)}" for outcome in outcomes]


def test_every_family_is_compared(outcomes: list[Outcome]) -> None:
    compared = {outcome.case.model for outcome in outcomes if outcome.difference is not None and outcome.reason is None}
    assert {family.model for family in FAMILIES} - compared == set()


def test_every_reason_is_needed(outcomes: list[Outcome]) -> None:
    used = {outcome.reason.name for outcome in outcomes if outcome.reason}
    assert [reason.name for reason in REASONS if reason.name not in used] == []


def test_most_cases_are_compared(outcomes: list[Outcome]) -> None:
    """Refusals and reasons stay the exception among what a release knows."""
    known = [outcome for outcome in outcomes if outcome.reason is None or outcome.reason.name != "architecture unknown"]
    compared = [outcome for outcome in known if outcome.difference is not None]
    assert len(compared) > 0.7 * len(known)
