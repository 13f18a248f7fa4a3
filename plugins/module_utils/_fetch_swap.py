# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a fetched checkpoint takes the place of what stands there. Private to this collection: may change at any time.

A checkpoint is fetched into C(PATH.fetching). Once it is whole it gets its record; what stands at PATH is moved to C(PATH.replaced), the
new one to PATH, and the old one is removed. A run may be killed between any two of these steps: every state has one next step.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import FETCHING, RECORD, REPLACED, WORK
from ansible_collections.inferops.sglang.plugins.module_utils._hub import SourceError

try:
    import fcntl
except ImportError:  # no Unix: these modules run nowhere else, but documentation tools read them anywhere
    fcntl = None  # type: ignore[assignment]

STAY, MOVE_ASIDE, MOVE_IN, PUT_BACK, REMOVE_OLD, REFUSE = "stay", "move aside", "move in", "put back", "remove old", "refuse"


@dataclass(frozen=True)
class Places:
    """The directory of a checkpoint without symbolic links, and its two neighbours."""

    path: str

    @property
    def fetching(self) -> str:
        return self.path + FETCHING

    @property
    def replaced(self) -> str:
        return self.path + REPLACED

    @property
    def parent(self) -> str:
        return os.path.dirname(self.path)


def places(path: str) -> Places:
    return Places(os.path.realpath(path))


def next_step(stands: bool, stands_recorded: bool, fetched: bool, replaced: bool) -> str:
    """The one step that is next. ``stands``: there is a PATH; ``stands_recorded``: with a record; ``fetched``: PATH.fetching is whole and
    has its record; ``replaced``: there is a PATH.replaced."""
    if not replaced:
        return (MOVE_ASIDE if stands else MOVE_IN) if fetched else STAY
    if not stands:
        return MOVE_IN if fetched else PUT_BACK
    # what was moved in has a record; anything else was put there by somebody since
    return REMOVE_OLD if stands_recorded else REFUSE


def finish(where: Places) -> list[str]:
    """Takes all steps that are next, and returns them. Raises SourceError where somebody else has put something in between."""
    done: list[str] = []
    while True:
        step = next_step(
            os.path.isdir(where.path),
            os.path.isfile(os.path.join(where.path, RECORD)),
            os.path.isfile(os.path.join(where.fetching, RECORD)),
            os.path.isdir(where.replaced),
        )
        if step == STAY:
            # of a run that was killed right after the new one was moved in
            shutil.rmtree(os.path.join(where.path, WORK), ignore_errors=True)
            return done
        _take(step, where)
        done.append(step)


@contextmanager
def locked(where: Places) -> Iterator[None]:
    """No other run takes steps at the same time."""
    handle = os.open(where.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _take(step: str, where: Places) -> None:
    if step == REFUSE:
        raise SourceError(
            f"{where.path}", f"a directory that somebody made while {where.replaced} still holds what stood there before",
            f"remove one of the two, or move {where.replaced} away", check="model_path",
        )  # fmt: skip
    if step == REMOVE_OLD:
        shutil.rmtree(where.replaced)
        return
    start, end = {
        MOVE_ASIDE: (where.path, where.replaced),
        MOVE_IN: (where.fetching, where.path),
        PUT_BACK: (where.replaced, where.path),
    }[step]
    os.rename(start, end)
    handle = os.open(where.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
