# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes that come in blocks, taken line by line in bounded memory. Private to this collection: may change at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

BLOCK = 1 << 16
# Bytes of one line or field that are kept, the rest is skipped. A log record is looked at for no more characters than that.
MAX_LINE = 1_000_000


class Blocks:
    """A position in a stream. Holds one block and what of the line under way is kept, however long that line is."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._data = b""
        self._at = 0
        self.taken = 0  # bytes of the stream before the position
        self.rest = b""  # what is kept of a last line that has no end
        self.left = 0  # and its whole length
        self.crossed = False  # whether the last line stood in more than one block

    def match(self, pattern: re.Pattern[bytes]) -> Optional[re.Match[bytes]]:
        """Steps over what the pattern matches in the present block; None where it does not match."""
        found = pattern.match(self._data, self._at)
        if found is not None:
            self._step(found.end())
        return found

    def line(self, limit: int = MAX_LINE) -> Optional[bytes]:
        """The next line without its end; None where the stream ends before the line does: see ``rest``."""
        kept: list[bytes] = []
        room, begin = limit, self.taken
        self.crossed = False
        while True:
            end = self._data.find(b"\n", self._at)
            stop = end if end >= 0 else len(self._data)
            if room > 0 and stop > self._at:
                kept.append(self._data[self._at : min(stop, self._at + room)])
                room -= len(kept[-1])
            if end >= 0:
                self._step(end + 1)
                return b"".join(kept)
            self._step(stop)
            self.crossed = True
            if not self._more():
                self.rest, self.left = b"".join(kept), self.taken - begin
                return None

    def exactly(self, count: int, limit: int = MAX_LINE) -> Optional[bytes]:
        """The next ``count`` bytes, ``limit`` of them at most; None where the stream ends before."""
        kept: list[bytes] = []
        room, wanted = min(limit, count), count
        while True:
            stop = min(self._at + wanted, len(self._data))
            if room > 0 and stop > self._at:
                kept.append(self._data[self._at : min(stop, self._at + room)])
                room -= len(kept[-1])
            wanted -= stop - self._at
            self._step(stop)
            if not wanted:
                return b"".join(kept)
            if not self._more():
                return None

    def _step(self, to: int) -> None:
        self.taken += to - self._at
        self._at = to

    def _more(self) -> bool:
        for block in self._blocks:
            if block:
                self._data, self._at = block, 0
                return True
        self._data, self._at = b"", 0
        return False
