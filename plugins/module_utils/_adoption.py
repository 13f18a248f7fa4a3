# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit written by hand that the role takes over: what it was, so that it can be as it was again. Private to this collection.

The record is written before anything of the old unit is touched. It is open until a service of the role is accepted under its id; an
open one is never overwritten, because after a run that was killed the old unit is stopped by us and not by its owner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import read_unit

NAME = "adoption.json"
_RUNNING = ("active", "activating", "reloading")
_ENABLED = ("enabled", "enabled-runtime")


@dataclass(frozen=True)
class Adoption:
    """The old unit as it was. ``id`` is the moment of the record; ``same``: the role writes its own unit in the same place."""

    id: str
    unit: str
    path: str
    text: str
    same: bool
    active: bool
    enabled: bool
    drop_ins: tuple[str, ...] = ()


def read_adoption(text: str) -> Optional[Adoption]:
    """The record of this text; None for a text that is cut or is no record."""
    try:
        data = json.loads(text) if text else None
        return Adoption(**{**data, "drop_ins": tuple(data["drop_ins"])}) if isinstance(data, dict) else None
    except (ValueError, TypeError, KeyError):
        return None


def adoption_text(adoption: Adoption) -> str:
    return json.dumps(asdict(adoption), indent=2, sort_keys=True) + "\n"


def open_adoption(kept: str, accepted: str) -> Optional[Adoption]:
    """The adoption that is not finished; None where there is none, or where a service was accepted under it."""
    adoption = read_adoption(kept)
    try:
        receipt = json.loads(accepted).get("receipt") if accepted else None
    except (ValueError, AttributeError):
        receipt = None
    closed = receipt.get("adoption") if isinstance(receipt, dict) else None
    return adoption if adoption and adoption.id != closed else None


def begin(moment: str, unit: str, own_unit: str, state: Mapping[str, Any], text: str) -> Optional[Adoption]:
    """The record of a unit that is about to be taken over; None where nothing of it is left to take."""
    same = unit == own_unit
    active, enabled = state.get("ActiveState") in _RUNNING, state.get("UnitFileState") in _ENABLED
    if read_unit(text).instance if same else not (active or enabled):
        return None
    drop_ins = tuple(path for path in str(state.get("DropInPaths", "")).split() if path)
    return Adoption(moment, unit, str(state.get("FragmentPath", "")), text, same, active, enabled, drop_ins)
