# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What public logs of SGLang printed, against what this collection says from the other figures of the same log."""

from __future__ import annotations

import statistics

import pytest
from accuracy import document
from accuracy.kimi_plans import KimiPlan, kimi_plans
from accuracy.public_boots import Prediction, load, predictions

BOOTS, UNPREDICTABLE, REASONS = load()
SAID = [found for boot in BOOTS for found in predictions(boot)]
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


def test_pools_from_memory_before_and_after_the_weights() -> None:
    errors = [found.percent for found in POOLS]
    assert len(errors) >= 18
    assert statistics.median(errors) <= 0.1
    assert max(errors) <= 1.0


def test_the_table_is_whole() -> None:
    """At least forty boots, each named once, each of them saying something or standing in the list of those that cannot."""
    ids = [boot.id for boot in BOOTS] + [row["id"] for row in UNPREDICTABLE]
    assert len(ids) == len(set(ids))
    assert len(BOOTS) >= 40
    used = {found.boot.id for found in SAID} | {boot.other for boot in BOOTS if boot.other}
    assert {boot.id for boot in BOOTS} == used
    assert all(row["why"] for row in UNPREDICTABLE)


def test_every_reason_is_used() -> None:
    assert {found.named[1] for found in SAID if found.named} == set(REASONS)


@pytest.mark.parametrize("found", kimi_plans(), ids=lambda found: f"{found.id}-{found.era}")
def test_kimi_on_eight_cards(found: KimiPlan) -> None:
    """The three eras differ as worked out by hand; those figures are rounded to the nearest step, the plan is rounded up."""
    assert found.plan.era == found.era
    assert -1e-9 <= (found.plan.mem_fraction_static or 0) - found.fraction <= 0.0001 + 1e-9
    # the table of eight requests takes 0.01 GiB of what was left by hand
    assert found.plan.headroom_gib == pytest.approx(found.left, abs=0.03)
    assert (found.plan.verdict == "fits") is found.fits


@pytest.mark.parametrize(("era", "fraction"), [("0.5.11-0.5.13", 0.8694), ("0.5.14-0.5.17", 0.8834), ("0.5.18-0.5.23", 0.8794)])
def test_the_whole_context_asks_for_fp8(era: str, fraction: float) -> None:
    """262,144 tokens in bf16 leave 2.5 GiB of 94 and are refused; the plan names what fits, with its figures."""
    found = next(plan for plan in kimi_plans() if plan.id == "S3" and plan.era == era)
    assert found.plan.verdict == "impossible"
    assert found.fp8 is not None
    assert (found.fp8.mem_fraction_static, found.fp8.verdict) == (fraction, "fits")
    assert found.fp8.headroom_gib == pytest.approx(11.43, abs=0.03)


def test_the_document_is_what_the_data_give() -> None:
    """docs/accuracy.md less the differential section, which needs a run; `make accuracy` writes it anew."""
    kept = document.DOCUMENT.read_text(encoding="utf-8")
    assert document.without_differential(kept) == document.without_differential(document.document(""))
