# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of docs/accuracy.md about weights: the boots of tests/unit/test_weights.py, said and printed."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ansible_collections.inferops.sglang.plugins.module_utils._weights import rank_weights
from support.checkpoints import CONFIGS, public_model
from unit.test_weights import BOOTS, checkpoint

from accuracy.tables import table


class _Row(NamedTuple):
    boot: str
    model: str
    ranks: int
    said: float
    error: float
    printed: float
    why: str

    @property
    def percent(self) -> float:
        return 100 * (self.said / self.printed - 1)


@cache
def _rows() -> tuple[_Row, ...]:
    found = []
    for boot in BOOTS:
        weights = rank_weights(checkpoint(public_model(boot.model)), CONFIGS[boot.model], boot.layout)
        found.append(_Row(boot.boot, boot.model, boot.layout.tp_size, weights.gib, weights.error_gib, boot.printed, boot.why))
    return tuple(found)


def errors() -> list[float]:
    """Distances in percent."""
    return [abs(row.percent) for row in _rows()]


def section() -> str:
    rows = [
        (row.boot, row.model, row.ranks, f"{row.said:.2f}", f"{row.error:.2f}", f"{row.printed:.2f}", f"{row.percent:+.1f}", row.why)
        for row in _rows()
    ]
    return (
        "## Weights, from the headers of a checkpoint alone\n\n"
        "What a rank will hold, from names, shapes and types of the tensors, without a boot; `+-` is the error that the estimate states\n"
        "of itself. Here an error is predicted over printed.\n\n"
        + table(("boot", "model", "ranks", "predicted", "+-", "printed", "error %", "why"), rows)
    )
