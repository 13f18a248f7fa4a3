# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the weights lies on the cards while they load. Private to this collection: may change at any time.

SGLang's own progress bar ends no line before it is full, and the log daemon keeps lines: live it is not in the journal. The driver
tells instead what each rank's process holds on its card. Memory is GiB (2^30).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner

PROCESSES = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
INTERVAL_S = 10.0  # the driver is not asked more often
ALMOST = 99  # that all is loaded is the server's to say


def parse_processes(text: str) -> dict[int, float]:
    """Rows of ``nvidia-smi --query-compute-apps`` (csv, no header, no units; MiB) as GiB by process; rows without figures are left out."""
    held: dict[int, float] = {}
    for line in text.splitlines():
        pid, _comma, mib = (part.strip() for part in line.partition(","))
        if pid.isascii() and pid.isdigit() and mib.isascii() and mib.isdigit():
            held[int(pid)] = held.get(int(pid), 0.0) + int(mib) / 1024
    return held


class WeightsGauge:
    """Reads the percentage of the weights that the slowest rank holds. Says nothing, ever again, where the driver cannot be asked."""

    def __init__(self, weights_gib: float, run: Runner, now: Callable[[], float]) -> None:
        self._weights_gib = weights_gib
        self._run = run
        self._now = now
        self._asked: Optional[float] = None
        self._held: Optional[dict[int, float]] = {}

    def percent(self, processes: Sequence[Optional[int]]) -> Optional[int]:
        """0 to 99 for the processes of all ranks; None where one of them holds nothing that the driver knows of."""
        self._ask()
        held = [self._held.get(pid) if self._held and pid is not None else None for pid in processes]
        known = [gib for gib in held if gib is not None]
        if not known or len(known) < len(held):
            return None
        return min(int(100 * min(known) / self._weights_gib), ALMOST)

    def _ask(self) -> None:
        now = self._now()
        if self._held is None or (self._asked is not None and now - self._asked < INTERVAL_S):
            return
        self._asked = now
        try:
            code, out, _errors = self._run(PROCESSES)
        except OSError:
            code, out = 127, ""
        self._held = parse_processes(out) if code == 0 else None
