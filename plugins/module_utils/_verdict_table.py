# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verdict as a table for people and as plain data for machines. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._ranks import spans_of
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Finding, Row, Verdict

MOST_ROWS = 8  # ranks that are shown one by one; of more, equal neighbours share a row
_HEADS = ("rank", "pool", "against asked", "draft", "GiB left", "verdict")


def as_data(verdict: Verdict) -> dict[str, Any]:
    """Plain data, as the filter returns it; the same verdict always gives the same."""
    return {
        "accepted": verdict.accepted,
        "required_tokens": verdict.required_tokens,
        "findings": [{**asdict(finding), "rank": finding.rank.name if finding.rank else None} for finding in verdict.findings],
        "changes": [asdict(change) for change in verdict.changes],
        "rows": [{**row.rank._asdict(), **asdict(row), "rank": row.rank.name} for row in verdict.rows],
        "notes": list(verdict.notes),
    }


def table(verdict: Verdict, name: str) -> list[str]:
    """The report: a headline, the ranks, what speaks against the boot with what to do, and notes."""
    word = "ACCEPTED" if verdict.accepted else "REFUSED"
    head = f"{name}: " if name else ""
    return [
        f"{head}{word}, {verdict.required_tokens:,} tokens asked of every rank",
        *_grid(verdict.rows),
        *_against(verdict.findings),
        *(f"  note: {note}".rstrip() for note in verdict.notes),
    ]


def _grid(rows: Sequence[Row]) -> list[str]:
    if all(row.tokens is None for row in rows):
        # a start that came to no pool at all: only what memory its ranks saw is worth a line
        rows = [row for row in rows if row.left_gib is not None]
    groups = [[row] for row in rows] if len(rows) <= MOST_ROWS else _folded(rows)
    cells = [_HEADS, *(_cells(group) for group in groups)] if groups else []
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADS))] if cells else []
    return ["  " + _line(line, widths).rstrip() for line in cells]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *middle, last = (cell.rjust(width) for cell, width in zip(cells, widths))
    return "  ".join([cells[0].ljust(len(first)), *middle, cells[-1].ljust(len(last))])


def _folded(rows: Sequence[Row]) -> list[list[Row]]:
    return [list(group) for _key, group in groupby(rows, lambda row: (row.rank.dp, row.rank.pp, row.tokens, row.draft_tokens, row.word))]


def _cells(rows: Sequence[Row]) -> tuple[str, ...]:
    row = rows[0]
    left = sorted({f"{row.left_gib:.2f}" for row in rows if row.left_gib is not None}, key=float)
    return (
        ", ".join(spans_of(row.rank for row in rows)),
        f"{row.tokens:,}" if row.tokens is not None else "-",
        "-" if row.spare is None else f"{row.spare:,} spare" if row.spare >= 0 else f"{-row.spare:,} short",
        f"{row.draft_tokens:,}" if row.draft_tokens is not None else "-",
        "-" if not left else left[0] if len(left) == 1 else f"{left[0]}-{left[-1]}",
        row.word,
    )


def _against(findings: Iterable[Finding]) -> Iterator[str]:
    """Findings that differ by the rank alone share a line, and neighbours that ask for the same share what to do."""
    for (_check, do), group in groupby(findings, lambda finding: (finding.check, finding.do)):
        for found, same in groupby(group, lambda finding: (finding.found, finding.rank is None)):
            ranks = [finding.rank for finding in same if finding.rank is not None]
            place = f"rank{'s' * (len(ranks) > 1)} {', '.join(spans_of(ranks))}: " if ranks else ""
            yield f"  - {place}{found[0]}".rstrip()
        if do:
            yield f"    do: {do}".rstrip()
