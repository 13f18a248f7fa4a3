# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until a server has no request under way. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._load import Load
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

INTERVAL_S = 0.5
# SGLang counts a request once its first piece is computed: one that came right before is seen after as long as that takes
QUIET_S = 2.0


@dataclass(frozen=True)
class Quiet:
    """``ok``: nothing was under way for QUIET_S seconds. ``first`` and ``last``: what the first and the last look saw. Seconds."""

    ok: bool
    first: Load
    last: Load
    waited_s: float


class _Watch:
    """Looks again and again, and knows since when nothing is under way."""

    def __init__(self, look: Callable[[], Load], clock: Clock) -> None:
        self._look = look
        self._clock = clock
        self._since: Optional[float] = None
        self.first: Optional[Load] = None

    def __call__(self) -> Load:
        load = self._look()
        self.first = self.first or load
        if load.requests != 0:
            self._since = None
        elif self._since is None:
            self._since = self._clock.now()
        return load

    def is_quiet(self, seconds: float) -> bool:
        return self._since is not None and self._clock.now() - self._since >= seconds


def wait_quiet(look: Callable[[], Load], timeout_s: float, clock: Clock, quiet_s: float = QUIET_S) -> Quiet:
    """Requests may take ``timeout_s`` seconds to end; to see that none is left takes ``quiet_s`` more."""
    watch = _Watch(look, clock)
    outcome = wait_until(watch, lambda _load: watch.is_quiet(quiet_s), timeout_s, INTERVAL_S, clock)
    waited = outcome.elapsed_s
    if not outcome.ok and outcome.value.requests == 0:
        more = wait_until(watch, lambda load: watch.is_quiet(quiet_s) or load.requests != 0, quiet_s, INTERVAL_S, clock)
        outcome, waited = more, waited + more.elapsed_s
    return Quiet(watch.is_quiet(quiet_s), watch.first or outcome.value, outcome.value, waited)


def ended(quiet: Quiet) -> str:
    """How the wait went that ended well, for people."""
    if quiet.first.requests == 0:
        return "nothing was under way"
    return f"{in_words(quiet.first)} under way ended in {quiet.waited_s:.1f} s"


def in_words(load: Load) -> str:
    """How many requests are under way, for people."""
    if load.requests is None:
        return f"requests that cannot be counted ({load.why})"
    return f"{load.requests or 'no'} request{'' if load.requests == 1 else 's'}"
