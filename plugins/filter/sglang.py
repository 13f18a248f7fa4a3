# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over allocations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def rank_name(rank: Mapping[str, Any]) -> str:
    """A rank as SGLang's log names it: V(TP3), V(PP1 TP0), V(DP0 TP2); the parts a boot does not number are left out."""
    if not isinstance(rank, Mapping):
        raise AnsibleFilterError(
            f"rank_name: asked for the name of a rank, found {type(rank).__name__}; give an entry of allocation.ranks"
        )
    parts = [f"{part.upper()}{rank[part]}" for part in ("dp", "pp", "tp") if rank.get(part) is not None]
    return " ".join(part for part in parts if part.startswith("TP") or not part.endswith("P0")) or "TP0"


class FilterModule:
    """Filters of inferops.sglang."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rank_name": rank_name}
