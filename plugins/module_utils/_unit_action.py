# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest action that makes a service run as configured, and why. Private to this collection: may change at any time.

The running process decides, not the file: it was started with the digest that stands in its environment. The file decides beside it,
because a process that was started from an edited file has the digest of the file before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import count, sufficient, whole_number
from ansible_collections.inferops.sglang.plugins.module_utils._unit_change import (
    NOTHING,
    RELOAD,
    RESTART,
    Change,
    compare,
    reading_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import environment_files, read_unit

START = "start"
_RUNS = ("active", "activating", "reloading")


@dataclass(frozen=True)
class Files:
    """A unit and its environment file as texts; ``environment`` is None where that is not known."""

    unit: str
    environment: Optional[str] = None


@dataclass(frozen=True)
class Situation:
    """A service as it is and as it is wanted.

    ``service``, ``allocation``: its state and its last start; ``path``: of its environment file, which is compared where both texts are
    known; ``digest``: of what is wanted; ``accepted``: what was accepted last, as the role keeps it; ``required``: tokens of every rank.
    """

    service: Mapping[str, Any]
    allocation: Any
    disk: Files
    wanted: Files
    path: str
    digest: str
    accepted: Mapping[str, Any]
    required: Any


@dataclass(frozen=True)
class Action:
    """What to do, and the lines that say why."""

    action: str
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for a person."""
        head = {NOTHING: "nothing to do", RELOAD: "reload: ", START: "start: ", RESTART: "restart because: "}[self.action]
        return head + "; ".join(self.lines)


def difference(old: Files, new: Files, path: str) -> Change:
    """What differs between files whose environment file has this path. A unit that does not name that file needs no text of it."""
    named = path in [item.lstrip("-") for item in environment_files(read_unit(old.unit))]
    known = new.environment is not None and (old.environment is not None or not named)
    return compare(
        reading_of(read_unit(old.unit), {path: old.environment or ""} if known else {}),
        reading_of(read_unit(new.unit), {path: new.environment or ""} if known else {}),
    )


def decide(seen: Situation) -> Action:
    """The smallest action for what is seen."""
    on_disk = difference(seen.disk, seen.wanted, seen.path)
    state = str(seen.service.get("active_state") or "unknown")
    if state not in _RUNS:
        lines = (f"the service is {state}", *on_disk.lines) if seen.disk.unit else ("this instance has no unit here yet",)
        return Action(START, lines)
    of_files = on_disk.reasons if on_disk.action == RESTART else ()
    reasons = _of_the_process(seen) or of_files or _short(seen.allocation, seen.required)
    if reasons:
        return Action(RESTART, reasons)
    if seen.disk.unit != seen.wanted.unit:
        return Action(RELOAD, on_disk.lines or ("comments or the order of lines",))
    return Action(NOTHING)


def _of_the_process(seen: Situation) -> tuple[str, ...]:
    """Why the process must start anew; empty where it was started as is wanted."""
    running = seen.service.get("digest")
    if running == seen.digest:
        return ()
    kept = seen.accepted.get("receipt")
    unit, environment = seen.accepted.get("unit"), seen.accepted.get("environment")
    is_accepted = isinstance(kept, Mapping) and running and kept.get("digest") == running
    started_with = Files(unit, environment) if is_accepted and isinstance(unit, str) and isinstance(environment, str) else seen.disk
    change = difference(started_with, seen.wanted, seen.path)
    if change.action == RESTART and started_with.unit:
        return change.reasons
    return (f"the process was started from other files (their digest {running or 'is missing'}, now {seen.digest})",)


def _short(allocation: Any, required: Any) -> tuple[str, ...]:
    """Why a start that is over is not enough; empty while it goes on, and where it holds what is asked."""
    phase = allocation.get("phase") if isinstance(allocation, Mapping) else "failed"
    if phase not in ("ready", "failed") or whole_number(required) is None or sufficient(allocation, required):
        return ()
    tokens = count(allocation.get("min_tokens")) if isinstance(allocation, Mapping) else None
    return (f"the running server does not prove {whole_number(required):,} tokens (its log shows {f'{tokens:,}' if tokens else 'none'})",)
