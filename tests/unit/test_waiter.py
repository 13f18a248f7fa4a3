# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting, with a clock that the test moves."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, Outcome, wait_until


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> Clock:
        return Clock(now=lambda: self.now, sleep=self.sleep)


# what the looks see, timeout, interval, outcome, sleeps
CASES = [
    ("at once", [True], 10, 1, Outcome(True, True, 0.0, 1), []),
    ("after two waits", [False, False, True], 10, 1, Outcome(True, True, 2.0, 3), [1, 1]),
    ("never", [False] * 9, 3, 1, Outcome(False, False, 3.0, 4), [1, 1, 1]),
    ("the last wait is cut short, and a look follows it", [False, False, True], 1.5, 1, Outcome(True, True, 1.5, 3), [1, 0.5]),
    ("no time looks once", [False], 0, 1, Outcome(False, False, 0.0, 1), []),
]


@pytest.mark.parametrize(
    ("looks", "timeout", "interval", "outcome", "slept"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_waits_until_the_predicate_holds_or_the_time_is_over(looks, timeout, interval, outcome, slept):
    time, left = FakeTime(), list(looks)
    assert wait_until(lambda: left.pop(0), bool, timeout, interval, time.clock()) == outcome
    assert time.slept == slept


def test_a_slow_look_still_gets_its_last_chance():
    time, seen = FakeTime(), []

    def slow() -> bool:
        time.now += 7
        seen.append(time.now)
        return len(seen) == 3

    assert wait_until(slow, bool, 10, 1, time.clock()) == Outcome(True, True, 22.0, 3)
