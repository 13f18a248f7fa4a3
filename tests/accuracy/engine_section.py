# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of docs/accuracy.md about boots of the real engine, from engine_boots.json (see record_engine_boots.py)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import GIB, Pool, build_pool, pool_tokens
from engine.make_models import MODELS

from accuracy.tables import number, table

RECORD = Path(__file__).resolve().parent / "engine_boots.json"


class EngineBoot(NamedTuple):
    """One boot: what was planned for it, what its own figures say, what it printed."""

    row: dict[str, Any]
    pool: Pool

    @property
    def said(self) -> int:
        return pool_tokens(self.pool, self.row["before"], self.row["at_sizing"], self.row["fraction"])

    @property
    def percent(self) -> float:
        return 100 * abs(self.row["tokens"] - self.said) / float(self.row["tokens"])

    def stored(self) -> tuple[float, float]:
        """GiB of the target's and of the draft's pool."""
        tokens = self.row["tokens"]
        return self.pool.target_pool_bytes(tokens) / GIB, (tokens + self.pool.page) * self.pool.draft_bytes / GIB


@cache
def boots() -> tuple[EngineBoot, ...]:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    era = era_of(parse_version(record["sglang_version"]))[0]
    found = []
    for row in record["boots"]:
        target, draft = _geometry(row["model"]), _geometry(row["draft"])
        assert target is not None
        flags = Deployment(algorithm="DFLASH" if draft else "", max_running_requests=row["requests"])
        found.append(EngineBoot(row, build_pool(era, target, draft, flags)))
    return tuple(found)


def _geometry(kind: Optional[str]) -> Optional[Geometry]:
    return read_geometry(MODELS[kind].config) if kind else None


def errors() -> list[float]:
    """Distances in percent of the pools from each boot's own figures."""
    return [boot.percent for boot in boots()]


def section() -> str:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    rows = []
    for boot in boots():
        row = boot.row
        target, draft = boot.stored()
        rows.append(
            (
                row["name"],
                f"{row['before']:.2f}",
                f"{row['at_sizing']:.2f}",
                f"{row['fraction']:.4f}",
                number(row["required_tokens"]),
                number(row["planned_tokens"]),
                number(boot.said),
                number(row["tokens"]),
                f"{row['tokens'] - boot.said:+,.0f}",
                f"{boot.percent:.2f}",
                f"{(row['tokens'] - boot.said) * boot.pool.effective_cell / GIB:+.3f}",
                f"{target:.2f} / {sum(row['kv']):.2f}",
                f"{draft:.2f} / {sum(row['draft_kv']):.2f}" if row["draft_kv"] else "",
            )
        )
    figures = ("before", "at sizing", "fraction", "asked", "planned", "predicted", "printed", "error", "%", "GiB")
    head = ("boot", *figures, "pool", "draft's pool")
    return (
        "## Against real boots of the engine\n\n"
        f"SGLang {record['sglang_version']} itself on the CPU, deployed by the role on a throw-away host, {record['date']}: tiny\n"
        "weights, but KV cells of the size of large models. `planned` is what the plan said before the boot, with 0.6 GiB of room\n"
        "for other programs, so that the pool ends above what was asked; `predicted` is from the boot's own figures before and\n"
        "after the weights. On the CPU the pool comes out of the free memory of the machine, which other programs and SGLang's own\n"
        "processes, still starting, take of between two lines: that is the error here, the same few hundredths of a GiB whatever\n"
        "the pool. Pools are GiB, predicted / printed. `tests/accuracy/record_engine_boots.py` boots them anew.\n\n"
        + table(head, rows)
    )
