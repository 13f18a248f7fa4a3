# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What public logs of SGLang printed, against what this collection says from the other figures of the same log."""

from __future__ import annotations

import statistics

import pytest
from accuracy.public_boots import Boot, Prediction, load, predictions
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError

BOOTS, UNPREDICTABLE, REASONS = load()
# Boots of families that memory_plan refuses by name.
REFUSED = [boot for boot in BOOTS if boot.family == "refused"]
SAID = [found for boot in BOOTS if boot not in REFUSED for found in predictions(boot)]
POOLS = [found for found in SAID if found.kind == "tokens"]


def name(found: Prediction) -> str:
    return f"{found.boot.id}-{found.kind}"


@pytest.mark.parametrize("found", SAID, ids=name)
def test_said_and_printed(found: Prediction) -> None:
    """Within what the printed decimals leave; else as far off as the table says, and no nearer, for a reason that it names."""
    if found.named is None:
        assert found.within, f"{found.predicted} predicted, {found.printed} printed"
        return
    bound, reason = found.named
    assert not found.within, "this exception is no longer needed"
    assert 0.5 * bound <= found.percent <= bound
    assert reason in REASONS


@pytest.mark.parametrize("boot", REFUSED, ids=lambda boot: boot.id)
def test_refused_by_name(boot: Boot) -> None:
    with pytest.raises(InputError, match="architecture"):
        assert boot.target


def test_pools_from_memory_before_and_after_the_weights() -> None:
    errors = [found.percent for found in POOLS]
    assert len(errors) >= 13
    assert statistics.median(errors) <= 0.1
    assert max(errors) <= 1.0


def test_the_table_is_whole() -> None:
    """At least forty boots, each named once, each of them saying something or standing in the list of those that cannot."""
    ids = [boot.id for boot in BOOTS] + [row["id"] for row in UNPREDICTABLE]
    assert len(ids) == len(set(ids))
    assert len(BOOTS) >= 40
    used = {found.boot.id for found in SAID} | {boot.id for boot in REFUSED} | {boot.other for boot in BOOTS if boot.other}
    assert {boot.id for boot in BOOTS} == used
    assert all(row["why"] for row in UNPREDICTABLE)


def test_every_reason_is_used() -> None:
    assert {found.named[1] for found in SAID if found.named} == set(REASONS)
