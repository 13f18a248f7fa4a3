# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for a predicate inside one module call. Private to this collection: may change at any time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Clock:
    """Seconds of a clock that never jumps, and a way to let them pass; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """``ok``: the predicate held within the time. ``value``: what the last look saw. Seconds, and how many looks it took."""

    ok: bool
    value: Value
    elapsed_s: float
    polls: int


def wait_until(
    look: Callable[[], Value],
    done: Callable[[Value], bool],
    timeout_s: float,
    interval_s: float,
    clock: Clock,
) -> Outcome[Value]:
    """Looks at once and then every ``interval_s`` seconds until ``done`` holds or ``timeout_s`` seconds have passed.

    A timeout of 0 looks exactly once. The last look is never earlier than the timeout, so a slow look costs no chance.
    """
    begin = clock.now()
    polls = 0
    while True:
        started = clock.now()
        value = look()
        polls += 1
        elapsed = clock.now() - begin
        if done(value):
            return Outcome(True, value, elapsed, polls)
        if started - begin >= timeout_s:
            return Outcome(False, value, elapsed, polls)
        clock.sleep(min(interval_s, max(timeout_s - elapsed, 0.0)))
