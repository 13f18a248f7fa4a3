# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of docs/accuracy.md about the differential test, from the results that `make differential` leaves."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from accuracy.tables import number, release_order, table

RESULTS = Path(__file__).resolve().parents[2] / ".cache/differential/results.json"


def section() -> str:
    """Text of the section; ends the program where there are no results of a whole run."""
    if not RESULTS.exists():
        sys.exit(f"{RESULTS} is missing: run `make differential` first, which compares with SGLang's own code and leaves it there.")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    if results["scope"] != "whole":
        sys.exit(f"{RESULTS} is of a run on a subset: run `make differential` first.")
    rows, releases = results["rows"], results["releases"]
    counts = ("cases", "compared", "equal", "refused")
    cases, compared, equal, refused = (number(sum(row[key] for row in rows)) for key in counts)
    head = ("family", "SGLang", "cases", "compared", "equal", "both refuse", "not comparable", "worst tokens", "median tokens", "worst %")
    parts = [
        f"The sizing code of {len(releases)} releases ({releases[0]} to {releases[-1]}) on fake memory, and `memory_plan` on the same\n"
        f"cases: {cases} cases, {compared} compared, {equal} of them equal to the token; in {refused} both sides refuse.",
        table(head, [_row(row) for row in sorted(rows, key=lambda row: (row["family"], release_order(row["era"])))]),
        "What cannot be compared:",
        table(("reason", "cases", "in words"), _reasons(results)),
    ]
    if results["different"]:
        told = [(row["release"], row["case"], "; ".join(row["problems"])) for row in results["different"]]
        parts += ["What differs:", table(("SGLang", "case", "in what"), told)]
    return "\n\n".join(parts)


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    counts = (row["cases"], row["compared"], row["equal"], row["refused"], sum(row["uncomparable"].values()))
    distances = (number(row["worst_tokens"]), number(row["median_tokens"]), f"{row['worst_percent']:.3f}")
    return (row["family"], row["era"], *(number(count) for count in counts), *distances)


def _reasons(results: dict[str, Any]) -> list[tuple[object, ...]]:
    counts: Counter[str] = Counter()
    for row in results["rows"]:
        counts.update(row["uncomparable"])
    return [(reason, number(counts[reason]), text) for reason, text in results["reasons"].items() if counts[reason]]
