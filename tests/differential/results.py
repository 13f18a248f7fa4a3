# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what a run found to .cache/differential/results.json, from which docs/accuracy.md is made.

    {
      "scope": "subset" | "whole",
      "releases": ["0.4.6.post5", ...],
      "rows": [{
        "family": "mla", "era": "0.5.11-0.5.13",
        "cases": 96,               # compared or not
        "compared": 90,            # both sides gave a figure
        "equal": 90,               # ... and the same one
        "refused": 4,              # both sides refuse
        "worst_tokens": 0,         # largest distance of predicted from printed tokens, by size
        "median_tokens": 0,        # median of those distances
        "worst_percent": 0.0,      # the same as a share of the printed tokens
        "uncomparable": {"architecture unknown": 2}
      }, ...],
      "reasons": {"architecture unknown": "why such cases say nothing", ...},
      "different": [{"release": ..., "case": ..., "predicted": ..., "printed": ..., "problems": [...]}, ...],
      "cases": [["0.5.11", "mla", "deepseek-v3 - tp8 auto page64", 545984, 545984], ...]   # release, family, case, predicted, printed
    }
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version
from differential.compare import Outcome
from differential.uncomparable import REASONS

PATH = Path(__file__).resolve().parents[2] / ".cache" / "differential" / "results.json"


def write(scope: str, outcomes: Sequence[Outcome], path: Path = PATH) -> None:
    """Write the results of a run in place of those of an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(_results(scope, outcomes), indent=1) + "\n", encoding="utf-8")
    part.rename(path)


def _results(scope: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.case.family, era(outcome.release)), []).append(outcome)
    return {
        "scope": scope,
        "releases": list(dict.fromkeys(outcome.release for outcome in outcomes)),
        "rows": [{"family": family, "era": name, **_row(group)} for (family, name), group in groups.items()],
        "reasons": {reason.name: reason.text for reason in REASONS},
        "different": [_different(outcome) for outcome in outcomes if outcome.problem and outcome.reason is None],
        "cases": [_figures(outcome) for outcome in outcomes if outcome.difference is not None],
    }


def era(release: str) -> str:
    """The name of the rules that a release is planned by."""
    return era_of(parse_version(release))[0].name


def _row(group: Iterable[Outcome]) -> dict[str, Any]:
    group = list(group)
    reasons = Counter(outcome.reason.name for outcome in group if outcome.reason)
    compared = [outcome for outcome in group if outcome.reason is None and outcome.difference is not None]
    distances = [abs(outcome.difference or 0) for outcome in compared]
    shares = [100 * distance / max(1, outcome.printed["tokens"] or 0) for distance, outcome in zip(distances, compared)]
    return {
        "cases": len(group),
        "compared": len(compared),
        "equal": sum(not outcome.problem for outcome in compared),
        "refused": sum(outcome.both_refuse for outcome in group),
        "worst_tokens": max(distances, default=0),
        "median_tokens": statistics.median(distances) if distances else 0,
        "worst_percent": round(max(shares, default=0.0), 4),
        "uncomparable": dict(sorted(reasons.items())),
    }


def _different(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    told = {"predicted": outcome.predicted.get("tokens"), "printed": outcome.printed.get("tokens")}
    return {"release": outcome.release, "case": case.name, "options": case.options, **told, "problems": [outcome.problem]}


def _figures(outcome: Outcome) -> list[Any]:
    tokens = [outcome.predicted["tokens"], outcome.printed["tokens"]]
    return [outcome.release, outcome.case.family, outcome.case.name, *tokens]
