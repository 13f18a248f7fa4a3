# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a boot and its ranks reached their phases, and on whose clock. Private to this collection: may change at any time.

All times are seconds of one clock: the journal's that never jumps, else its time of day, else what SGLang printed in its prefixes
(whole seconds). One boot uses one of them throughout, so differences mean something.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Optional

PHASES = ("starting", "weights", "pool", "capture", "warmup", "ready")


def is_later(phase: str, other: str) -> bool:
    """Whether a boot comes to this phase after the other one."""
    return PHASES.index(phase) > PHASES.index(other)


class BootClock:
    """Reads the time of log entries on the first clock that the boot showed; None for an entry without that clock."""

    def __init__(self) -> None:
        self._kind: Optional[str] = None

    @property
    def is_steady(self) -> bool:
        """Whether the times are those of the host's clock that never jumps, so that they can be set against it."""
        return self._kind == "clock"

    def read(self, clock_us: Optional[int], time_us: Optional[int], stamp: str) -> Optional[float]:
        """Seconds; the stamp is read only where the log daemon told nothing."""
        if self._kind is None:
            self._kind = "clock" if clock_us is not None else "time" if time_us is not None else "stamp" if stamp else None
        if self._kind == "stamp":
            return seconds_of(stamp)
        known = clock_us if self._kind == "clock" else time_us
        return known / 1e6 if known is not None else None


@lru_cache(maxsize=256)
def seconds_of(stamp: str) -> Optional[float]:
    """A prefix of SGLang's as seconds of local time, without the zone that it does not print; None for anything else."""
    try:
        return (datetime.strptime(stamp[:19].replace("T", " "), "%Y-%m-%d %H:%M:%S") - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        return None


def durations(reached: Mapping[str, float], begin: Optional[float], end: Optional[float]) -> dict[str, float]:
    """Seconds spent in each phase, in order. ``reached``: when each phase began. The last one counts up to ``end``."""
    if begin is None or end is None:
        return {}
    marks = [("starting", begin), *((phase, reached[phase]) for phase in PHASES[1:] if phase in reached)]
    ends = [*(at for _phase, at in marks[1:]), max(end, marks[-1][1])]
    return {phase: round(max(to - at, 0.0), 1) for (phase, at), to in zip(marks, ends) if phase != "ready"}
