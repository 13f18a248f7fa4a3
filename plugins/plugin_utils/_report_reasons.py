# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verdict says against a start, told once where it holds for several ranks. Private to this collection: may change at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, spans_of

MOST_FINDINGS = 4096
_RANK = re.compile(r"(?:DP(\d{1,6}) )?(?:PP(\d{1,6}) )?TP(\d{1,6})")


class Reason(NamedTuple):
    """One thing against a start. ``ranks``: their names, neighbours as a span; none if it is not about ranks."""

    check: str
    ranks: tuple[str, ...]
    found: str
    do: str

    @property
    def text(self) -> str:
        """In one line, the ranks in front."""
        many = len(self.ranks) > 1 or any("-" in rank for rank in self.ranks)
        return (f"rank{'s' if many else ''} {', '.join(self.ranks)}: " if self.ranks else "") + self.found


def reasons_of(verdict: Mapping[str, Any]) -> list[Reason]:
    """The findings of a verdict; those that differ by the rank alone are one."""
    findings = verdict.get("findings")
    known = [finding for finding in findings if isinstance(finding, Mapping)] if isinstance(findings, list) else []
    grouped = groupby(known[:MOST_FINDINGS], lambda finding: tuple(_word(finding.get(key)) for key in ("check", "found", "do")))
    return [Reason(check, _ranks(group), found, do) for (check, found, do), group in grouped]


def rank_id(name: Any) -> RankId | None:
    """A rank by the name that SGLang's log gives it; None for anything else."""
    found = _RANK.fullmatch(name) if isinstance(name, str) else None
    return RankId(*(int(digits or 0) for digits in found.groups())) if found else None


def _ranks(group: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    known = [rank for rank in (rank_id(finding.get("rank")) for finding in group) if rank is not None]
    return tuple(spans_of(known))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
