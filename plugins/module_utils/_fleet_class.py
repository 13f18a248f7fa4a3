# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are equal for a plan. Private to this collection: may change at any time.

Two hosts are of one class when the same start would take the same memory on both: the same cards, engine, model, draft and flags.
What only says where a server listens, and the fraction that the plan is to find, is no part of it.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

# flags that decide nothing about memory, and the one that the plan finds
_LEFT_OUT = frozenset({"mem-fraction-static", "host", "port", "served-model-name"})
_KEY_DIGITS = 12
_MAKERS = ("NVIDIA ", "AMD ")


@dataclass(frozen=True)
class Ingredients:
    """What makes a class. Memory in GiB.

    ``cards``: as ``preflight_info`` returns ``gpus``. ``free_gib``: free memory of the ranks where it is told and not read.
    ``checkpoints``: as ``preflight_info`` returns them. ``weights_gib`` and ``draft_weights_gib`` stand in for a checkpoint of
    which nothing but its config.json is there; 0 is not given.
    """

    cards: Sequence[Mapping[str, Any]] = ()
    free_gib: Sequence[float] = ()
    sglang_version: str = ""
    release: str = ""
    checkpoints: Mapping[str, Any] = field(default_factory=dict)
    weights_gib: float = 0.0
    draft_weights_gib: float = 0.0
    device: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FleetClass:
    """``key``: 12 hexadecimal digits that hosts of one class share. ``title``: the class for a person. ``facts``: what it is made of."""

    key: str
    title: str
    facts: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as the filter returns it."""
        return {"key": self.key, "title": self.title, "facts": self.facts}


def class_of(what: Ingredients) -> FleetClass:
    """The class of a host that is to run this."""
    facts = {
        "cards": _cards(what),
        # figures of the two kinds are not to be compared
        "free": "told" if what.free_gib else "read",
        "sglang_version": what.sglang_version,
        "release": posixpath.basename(what.release.rstrip("/")),
        "model": _weights_of(what.checkpoints.get("model"), what.weights_gib),
        "draft": _weights_of(what.checkpoints.get("draft"), what.draft_weights_gib),
        "device": what.device,
        "flags": {name: _plain(value) for name, value in sorted(what.flags.items()) if name not in _LEFT_OUT},
    }
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    key = hashlib.sha256(canonical.encode()).hexdigest()[:_KEY_DIGITS]
    return FleetClass(key, _title(facts, what.flags), facts)


def _cards(what: Ingredients) -> list[list[Any]]:
    """Cards of each kind: how many, their name, and their GiB; or only the free GiB that are told, without a name."""
    kinds = Counter((str(card.get("name") or ""), round(float(card.get("total_gib") or 0), 1)) for card in what.cards)
    if kinds:
        return [[count, name, gib] for (name, gib), count in sorted(kinds.items())]
    return [[0, "", float(round(min(what.free_gib)))]] if what.free_gib else []


def _weights_of(checkpoint: Any, given_gib: float) -> str:
    """The fingerprint of a checkpoint, else the memory that is said to be taken by it; empty where neither is known."""
    fingerprint: Optional[str] = checkpoint.get("fingerprint") if isinstance(checkpoint, Mapping) else None
    return str(fingerprint) if fingerprint else f"{given_gib:g} GiB given" if given_gib else ""


def _plain(value: Any) -> Any:
    """A flag's value in one spelling, for a number in an inventory may be a text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value)


def _title(facts: Mapping[str, Any], flags: Mapping[str, Any]) -> str:
    cards = " + ".join(_card_text(*card) for card in facts["cards"]) or facts["device"] or "no cards"
    model = posixpath.basename(str(flags.get("model-path") or "").rstrip("/"))
    version = f"SGLang {facts['sglang_version']}" if facts["sglang_version"] else ""
    return ", ".join(part for part in (cards, version, model) if part)


def _card_text(count: int, name: str, gib: float) -> str:
    if not count:
        return f"{gib:.0f} GiB free a rank"
    short = next((name[len(maker) :] for maker in _MAKERS if name.startswith(maker)), name)
    return f"{count} x {short} {gib:.0f} GiB"
