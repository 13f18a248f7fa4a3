# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables in Markdown that also read well as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

FIGURE = re.compile(r"[+-]?[0-9,]*(\.[0-9]+)?")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell but for the last; figures to the right."""
    cells = [[str("" if cell is None else cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [list(head), *cells]) for column in range(len(head))]
    right = [all(_figure(row[column]) for row in cells) and any(row[column] for row in cells) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = [cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right)]
        return f"| {' | '.join(padded)} |"

    def rule(width: int, to_right: bool) -> str:
        return "-" * (width + 1) + (":" if to_right else "-")

    rules = "|".join(rule(width, to_right) for width, to_right in zip(widths, right))
    return "\n".join([line(list(head)), f"|{rules}|", *(line(row) for row in cells)])


def release_order(era: str) -> tuple[int, ...]:
    """Eras in the order of their first release, such as 0.5.7-0.5.10; those by a word come first."""
    return tuple(int(part) for part in era.split("-")[0].split(".")) if era[0].isdigit() else ()


def number(value: float) -> str:
    return f"{value:,.0f}"


def _figure(cell: str) -> bool:
    return FIGURE.fullmatch(cell) is not None
