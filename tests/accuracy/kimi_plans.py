# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for Kimi K2.6 with its DFlash draft on eight cards, beside the same worked out by hand (kimi_plans.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, request_of
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Alternative, Plan, make_plan

from accuracy.public_boots import FIXTURES


@dataclass(frozen=True)
class KimiPlan:
    """One case under one era: by hand and by the plan."""

    id: str
    era: str
    before: float
    context: int
    kv: str
    fraction: float
    left: float
    fits: bool
    plan: Plan

    @property
    def fp8(self) -> Optional[Alternative]:
        return next((other for other in self.plan.alternatives if other.change == "kv_cache_dtype=fp8_e4m3"), None)


def kimi_plans() -> list[KimiPlan]:
    table = json.loads((FIXTURES / "boots/kimi_plans.json").read_text(encoding="utf-8"))
    return [_plan(table, case, number) for case in table["cases"] for number in range(len(table["releases"]))]


def _plan(table: dict[str, Any], case: dict[str, Any], number: int) -> KimiPlan:
    era, release = list(table["releases"].items())[number]
    options = {
        **{name: spec.get("default") for name, spec in PLAN_OPTIONS.items()},
        **table["flags"],
        "model_config": _config("kimi-k2.6"),
        "draft_model_config": _config("kimi-k2.6-dflash"),
        "sglang_version": release,
        "gpu_free_gib": [case["before"]],
        "context_length": case["context"],
        "kv_cache_dtype": case["kv"],
    }
    return KimiPlan(
        case["id"], era, case["before"], case["context"], case["kv"], case["fractions"][number], case["left"], case["fits"],
        make_plan(request_of(options)),
    )  # fmt: skip


def _config(name: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((FIXTURES / f"configs/{name}.json").read_text(encoding="utf-8"))
    return config
