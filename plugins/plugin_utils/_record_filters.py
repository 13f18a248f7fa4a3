# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over what earlier runs kept, and over ranks. Private to this collection: may change at any time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display


def rank_name(rank: Mapping[str, Any]) -> str:
    """A rank as SGLang's log names it: V(TP3), V(PP1 TP0), V(DP0 TP2); the parts a boot does not number are left out."""
    if not isinstance(rank, Mapping):
        raise AnsibleFilterError(
            f"rank_name: asked for the name of a rank, found {type(rank).__name__}; give an entry of allocation.ranks"
        )
    parts = [f"{part.upper()}{rank[part]}" for part in ("dp", "pp", "tp") if rank.get(part) is not None]
    return " ".join(part for part in parts if part.startswith("TP") or not part.endswith("P0")) or "TP0"


def kept_json(text: Any, fallback: Any, needs: Sequence[str] = ()) -> Any:
    """JSON text as data of the fallback's type; the fallback, with a warning, for a text that is cut, of another type, or a mapping
    that lacks one of the keys that it ``needs``."""
    if not isinstance(fallback, (dict, list)):
        raise AnsibleFilterError(f"kept_json: asked for a fallback of type {type(fallback).__name__}; give a mapping or a list")
    if not isinstance(text, str) or not text:
        return fallback
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(fallback, dict) and isinstance(data, dict) and all(key in data for key in needs):
        return data
    if isinstance(fallback, list) and isinstance(data, list):
        return [item for item in data if isinstance(item, dict)]
    wanted = "mapping" if isinstance(fallback, dict) else "list"
    Display().warning(
        f"asked for a JSON {wanted} that an earlier run kept, found {text[:40]!r}; it is left out, and the next accepted run writes it anew"
    )
    return fallback
