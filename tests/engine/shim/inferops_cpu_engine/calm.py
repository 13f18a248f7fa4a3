# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until free memory stands still.

On a GPU nobody else touches the card while a server starts. Here "GPU memory" is RAM, and
the server's own detokenizer is still importing torch when the scheduler takes its memory
baseline: what it allocates between the baseline and the sizing of the pool would be counted
as the model's. The wait removes that race and changes no figure that SGLang measures.
"""

from __future__ import annotations

import functools
import time

import psutil

INTERVAL = 0.25
"""Seconds between two readings."""

WINDOW = 6
"""Readings that must agree."""

TOLERANCE = 4 << 20
"""Bytes by which they may differ."""

TIMEOUT = 10.0
"""Seconds after which the start goes on all the same: others may use this RAM too."""


@functools.cache
def wait() -> None:
    """Return when WINDOW readings lie within TOLERANCE, or after TIMEOUT; only once in a process."""
    deadline = time.monotonic() + TIMEOUT
    readings: list[int] = []
    while time.monotonic() < deadline:
        readings = [*readings[1 - WINDOW :], psutil.virtual_memory().available]
        if len(readings) == WINDOW and max(readings) - min(readings) <= TOLERANCE:
            return
        time.sleep(INTERVAL)
