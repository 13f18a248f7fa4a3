# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host of a play gives a model to which. Private to this collection: may change at any time.

A play goes in rounds. In each one, every host that has the model gives it to one that lacks it, so that a round doubles those who have it.
Where nobody has it, one host asks the source, and the others wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """What one host does in this round: takes it from ``peer``, or from the source (``asks``), or neither and waits.

    ``gib`` is the size of the model where a host that has it tells it.
    """

    peer: str = ""
    asks: bool = False
    gib: float = 0.0


def turn_of(
    host: str, model: Mapping[str, Any], seen: Mapping[str, Mapping[str, Any]], batch: Sequence[str], avoided: Collection[str] = ()
) -> Turn:
    """``seen``: what each host of the play has at the place of this model, as preflight saw it or as it was fetched since; ``batch``: the
    hosts that are deployed together; ``avoided``: hosts that did not give it when they were asked."""
    givers = [name for name, has in sorted(seen.items()) if gives(has, model) and name not in avoided]
    takers = [name for name in batch if not (seen.get(name) or {}).get("settled")]
    if host not in takers:
        return Turn()
    place = takers.index(host)
    if givers:
        gib = max(float(seen[name].get("total_gib") or 0) for name in givers)
        return Turn(peer=givers[place] if place < len(givers) else "", gib=gib)
    return Turn(asks=place == 0)


def gives(has: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether what a host has is what another one asks for; without a revision any is, so that a fleet stays at one commit."""
    same = has.get("settled") and has.get("complete") and has.get("source") == model.get("source")
    revision = model.get("revision") or ""
    return bool(same) and revision in ("", has.get("revision"), has.get("commit"))


def rounds(hosts: int) -> int:
    """How many rounds bring a model to so many hosts when one of them has to ask the source first, and one giver may fail."""
    return hosts.bit_length() + 2
