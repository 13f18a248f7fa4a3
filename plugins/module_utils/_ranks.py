# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How ranks are told apart and named. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MAX_NAMES = 16  # spans of ranks in one message


class RankId(NamedTuple):
    """A rank of the deployment; dimensions that SGLang does not print are 0."""

    dp: int
    pp: int
    tp: int

    def as_dict(self) -> dict[str, int]:
        return {"tp": self.tp, "pp": self.pp, "dp": self.dp}

    @property
    def name(self) -> str:
        """As SGLang's log names it; DP0 and PP0 are left out."""
        return "".join(f"{label}{number} " for label, number in (("DP", self.dp), ("PP", self.pp)) if number) + f"TP{self.tp}"


def spans_of(ranks: Iterable[RankId]) -> list[str]:
    """Ranks by name, neighbours in this order as a span: C(TP0-TP7), C(PP1 TP2-TP3)."""
    spans: list[tuple[RankId, RankId]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1]._replace(tp=spans[-1][1].tp + 1):
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    return [first.name + (f"-TP{last.tp}" if last != first else "") for first, last in spans]


def names_of(ranks: Iterable[RankId]) -> str:
    """Each rank once, in order, for a message: C(TP0-TP7), C(PP1 TP0, PP1 TP2-TP3)."""
    names = spans_of(sorted(set(ranks)))
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
