# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs kept as text: saved ones, those that still grow, and packed ones. Private to this collection: may change at any time.

Lines are plain, as docker's C(json-file) driver keeps them, or saved from C(journalctl -o json); each tells which by itself. Memory
does not grow with the log, and what was read once is not read again.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Entry
from ansible_collections.inferops.sglang.plugins.module_utils._blocks import MAX_LINE, Blocks
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import (
    NOISE,
    QUOTED_NOISE,
    ServerArgs,
    is_noise,
    parse_record,
)

_BLOCK = 1 << 18
_SCAN = 1 << 22
_TAIL = 1 << 16  # bytes of a file's end in which its last lines are looked for
_STREAMS = 8  # more than docker has
_OPENING = b"server_args="
_MARK = 256  # bytes before the position that must still be there at the next look
# Whole lines that tell nothing, several at a time: plain ones, and those of docker whose other values are plain text
_PLAIN_NOISE = re.compile(rb"(?:(?!\{)" + NOISE.encode() + rb"\n)+")
_DOCKER_NOISE = re.compile(rb'(?:\{"log":"' + QUOTED_NOISE.encode() + rb'\\n"(?:,"(?:stream|time)":"[\w:.+-]*"){0,2}\}\n)+', re.ASCII)


class Decoder:
    """Lines to entries.

    Keeps the parts of a line of docker's, which takes lines of more than 16 KiB apart, and which start of a unit is the newest in lines
    of the journal: from there on those of other units and starts are none of its.
    """

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}
        self._invocation: object = None
        self._unit: object = None

    def entries(self, source: Blocks, everything: Callable[[], bool]) -> Iterator[Entry]:
        """Entries of the whole lines, without those that tell nothing unless ``everything`` says, just then, that they are needed."""
        while True:
            while not everything() and self._skip(source):
                pass
            line = source.line()
            if line is None:
                return
            if everything() or not self._tells_nothing(line, source.crossed):
                yield from self.entry(line)

    def _skip(self, source: Blocks) -> bool:
        return any(source.match(pattern) is not None for pattern in self._patterns())

    def _patterns(self) -> tuple[re.Pattern[bytes], ...]:
        # behind a part of a line no other line of docker's may be left out
        return (_PLAIN_NOISE,) if self._parts else (_PLAIN_NOISE, _DOCKER_NOISE)

    def _tells_nothing(self, line: bytes, crossed: bool) -> bool:
        """``crossed``: the line stood in two blocks, so it could not be stepped over as a whole."""
        if line.startswith(b"{") and b'"__CURSOR"' in line:
            return is_noise(line) and b'"INVOCATION_ID"' not in line and b"systemd-journald" not in line
        return crossed and any(pattern.fullmatch(line + b"\n") for pattern in self._patterns())

    def entry(self, line: bytes) -> Iterator[Entry]:
        """The entry of this line; none where it has no text, or is a part of one that has not come to its end."""
        if not line.startswith(b"{"):
            yield Entry(line.decode("utf-8", "replace").rstrip("\r\n"))
        elif b'"__CURSOR"' in line:
            fields = _object(line)
            entry = _entry_of(fields)
            if entry is not None and self._belongs(fields, entry):
                yield entry
        else:
            text = self._docker_text(line)
            if text is not None:
                yield Entry(text)

    def _belongs(self, fields: dict[str, Any], entry: Entry) -> bool:
        """Whether this line of the journal is one of the newest start, as far as its fields were kept."""
        invocation = fields.get("_SYSTEMD_INVOCATION_ID")
        if invocation is not None and _OPENING.decode() in entry.text and _opens(entry.text):
            self._invocation, self._unit = invocation, fields.get("_SYSTEMD_UNIT")
        if entry.daemon and self._unit is not None:
            return entry.text.rpartition(" ")[2].rpartition("/")[2] == self._unit
        named = invocation if invocation is not None else fields.get("INVOCATION_ID")
        return self._invocation is None or named is None or named == self._invocation

    def rest(self) -> Iterator[Entry]:
        """What is left of lines whose end never came."""
        for parts in self._parts.values():
            yield Entry("".join(parts))
        self._parts = {}

    def _docker_text(self, line: bytes) -> Optional[str]:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        fields = _object(text)
        log = fields.get("log")
        if not isinstance(log, str):
            return text
        stream = str(fields.get("stream"))[:20]
        parts = self._parts.pop(stream, [])
        if log.endswith("\n"):
            return "".join([*parts, log]).rstrip("\r\n")
        if len(self._parts) < _STREAMS:
            self._parts[stream] = [*parts, log] if sum(map(len, parts)) < MAX_LINE else parts
        return None


def _object(text: Any) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def parse_line(line: bytes) -> Optional[Entry]:
    """One line of C(journalctl -o json) as an entry; None for an entry without text and for what is no JSON object."""
    return _entry_of(_object(line))


def _entry_of(fields: dict[str, Any]) -> Optional[Entry]:
    text = _message(fields.get("MESSAGE"))
    if not text:
        return None
    return Entry(
        text=text,
        pid=_integer(fields.get("_PID")),
        time_us=_integer(fields.get("__REALTIME_TIMESTAMP")),
        clock_us=_integer(fields.get("__MONOTONIC_TIMESTAMP")),
        manager="INVOCATION_ID" in fields,
        daemon=fields.get("SYSLOG_IDENTIFIER") == "systemd-journald",
    )


def _message(value: Any) -> str:
    """A field's text: journalctl gives bytes as numbers where a byte is not printable, and a list where a field is repeated."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    try:
        return bytes(value).decode("utf-8", "replace")
    except (ValueError, TypeError):
        return "\n".join(_message(part) for part in value if isinstance(part, (str, list)))


def _integer(value: Any) -> Optional[int]:
    first = value[0] if isinstance(value, list) and value else value
    return int(first) if isinstance(first, str) and first.isascii() and first.isdigit() and len(first) < 20 else None


# --- where the text lies ----------------------------------------------------------------------------------------------


class GivenText:
    """A text that was handed over: it is read once and does not grow."""

    warnings: tuple[str, ...] = ()

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._read = False

    def starts_over(self) -> bool:
        return False

    def read(self, everything: Callable[[], bool], final: bool) -> Iterator[Entry]:  # noqa: ARG002  all of it is there at once
        if not self._read:
            self._read = True
            source, decoder = Blocks([self._data]), Decoder()
            yield from decoder.entries(source, everything)
            yield from decoder.entry(source.rest) if source.rest else ()
            yield from decoder.rest()

    def last_lines(self, count: int = 3) -> list[str]:
        return _last_lines(self._data[-_TAIL:], count)


class TextLog:
    """Files, read one after the other as one log; the last one may still grow.

    Raises JournalError for a file that cannot be read.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._begin()

    def _begin(self) -> None:
        self._decoder = Decoder()
        self._files: list[_File] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the files could not be read, in short sentences."""
        return tuple(file.warning for file in self._files if file.warning)

    def starts_over(self) -> bool:
        """Whether a file is not the one any more of which a part was read, so that the next ``read`` begins anew."""
        for file in self._files:
            with _naming(file.path):
                if not file.goes_on(file is self._files[-1]):
                    self._begin()
                    return True
        return False

    def read(self, everything: Callable[[], bool], final: bool) -> Iterator[Entry]:
        """What was added since the last call, without lines that tell nothing unless ``everything`` says that they are needed.

        A last line without an end is held back until the file has not grown between two calls, or this is the ``final`` one: its
        figures may be cut.
        """
        for number, path in enumerate(self._paths):
            with _naming(path):
                if number == len(self._files):
                    self._files.append(_File(path))
                last = number == len(self._paths) - 1
                yield from self._files[number].read(self._decoder, everything, final or not last)
        if final:
            yield from self._decoder.rest()

    def last_lines(self, count: int = 3) -> list[str]:
        """The newest lines, oldest first, for messages; none of a file that can be read only once."""
        with _naming(self._paths[-1]):
            return _last_lines(self._files[-1].tail() if self._files else b"", count)


class _File:
    """One file and how far it was read.

    A plain file may grow. What is packed, and what is no file at all but a pipe, is read once.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.warning = ""
        now = os.stat(path)
        regular = stat.S_ISREG(now.st_mode)
        self._packed = regular and _begins_packed(path)
        self._grows = regular and not self._packed
        self._identity = _identity(now)
        self._size = -1  # at the last look
        self._offset = 0  # of the first line that was not read
        self._mark = b""  # what stands before it
        self._told = False  # a line without an end was taken for a whole one

    def goes_on(self, last: bool) -> bool:
        """Whether what was read of it is still there, and nothing but new lines of the ``last`` file has come since."""
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            return True  # moved away a moment ago: what was read stays true until another file is there
        if not self._grows:
            return not self._packed or _identity(now) == self._identity
        if _identity(now)[:2] != self._identity[:2] or now.st_size < self._size:
            return False
        if now.st_size > self._size and (self._told or not last):
            return False
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self._offset - len(self._mark))
            return file.read(len(self._mark)) == self._mark

    def read(self, decoder: Decoder, everything: Callable[[], bool], final: bool) -> Iterator[Entry]:
        if not self._grows:
            if self._size < 0:
                self._size = 0
                source = Blocks(self._unpacked() if self._packed else _blocks_of(self.path))
                yield from decoder.entries(source, everything)
                yield from decoder.entry(source.rest) if source.rest else ()
        elif os.path.exists(self.path):
            yield from self._go_on(decoder, everything, final)

    def _go_on(self, decoder: Decoder, everything: Callable[[], bool], final: bool) -> Iterator[Entry]:
        if self._size < 0:
            yield from self._skip_to_the_newest_start()
        source = Blocks(_blocks_of(self.path, self._offset))
        yield from decoder.entries(source, everything)
        size = self._offset + source.taken
        self._offset = size - source.left
        if self._offset > self._size or self._size < 0:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(max(self._offset - _MARK, 0))
                self._mark = file.read(min(self._offset, _MARK))
        if source.left and not self._told and (final or size == self._size):
            self._told = True
            yield from decoder.entry(source.rest)
        self._size = size

    def _skip_to_the_newest_start(self) -> Iterator[Entry]:
        """Moves to where the newest start begins; of those before it only the line that opens them is told, so that they are counted."""
        newest = None
        for offset, opening in _starts(self.path):
            if newest is not None:
                yield newest
            self._offset, newest = offset, opening

    def _unpacked(self) -> Iterator[bytes]:
        with gzip.open(self.path, "rb") as file:
            try:
                yield from iter(lambda: file.read(_BLOCK), b"")
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                self.warning = f"{self.path} is damaged ({error}): lines may be missing"

    def tail(self) -> bytes:
        if not self._grows:
            return b""
        with open(self.path, "rb", buffering=0) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            return file.read(_TAIL)


def _begins_packed(path: str) -> bool:
    with open(path, "rb", buffering=0) as file:
        return file.read(2) == b"\x1f\x8b"


def _blocks_of(path: str, offset: int = 0) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        if offset:
            file.seek(offset)
        yield from iter(lambda: file.read(_BLOCK), b"")


# --- where the newest start begins ------------------------------------------------------------------------------------

_BEFORE = 1 << 16  # bytes of a line in which its beginning is looked for
_BEHIND = 1 << 18


def _starts(path: str) -> Iterator[tuple[int, Entry]]:
    """Where the lines stand that open a start, and an entry that opens it, without what follows.

    A crash loop fills gigabytes, and of all its starts but the newest it only counts that they were. Where it cannot be told, as of a
    journal's own lines, what was found up to there is all.
    """
    with open(path, "rb", buffering=0) as file:
        known = -1
        for hit in _hits(file):
            if hit < known:
                continue
            file.seek(max(hit - _BEFORE, 0))
            before = file.read(min(hit, _BEFORE))
            begin = before.rfind(b"\n") + 1
            line = before[begin:] + file.read(_BEHIND).partition(b"\n")[0]
            if (begin == 0 and hit > _BEFORE) or (line.startswith(b"{") and b'"__CURSOR"' in line):
                return
            text = _opening_text(line, len(before) - begin)
            known = hit - len(before) + begin + len(line)
            if _opens(text):
                yield hit - len(before) + begin, Entry(text)


def _opens(text: str) -> bool:
    return any(isinstance(record.event, ServerArgs) for record in parse_record(text))


def _opening_text(line: bytes, hit: int) -> str:
    log = _object(line).get("log") if line.startswith(b"{") else None
    text = log if isinstance(log, str) else line.decode("utf-8", "replace")
    opening = _OPENING.decode()
    return text if text.count(opening) > 1 else text[: max(hit, text.find(opening)) + 500]


def _hits(file: IO[bytes]) -> Iterator[int]:
    """Positions of the text that opens a start; the file may be moved between two of them."""
    at, block = 0, b""
    while True:
        file.seek(at)
        block = file.read(_SCAN)
        found = block.find(_OPENING)
        while found >= 0:
            yield at + found
            found = block.find(_OPENING, found + 1)
        if len(block) < len(_OPENING):
            return
        at += len(block) - len(_OPENING) + 1


def _identity(now: os.stat_result) -> tuple[int, ...]:
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)


def _last_lines(tail: bytes, count: int) -> list[str]:
    lines = [line for line in tail.split(b"\n") if line.strip()][-count:]
    decoder = Decoder()
    return [entry.text for line in lines for entry in decoder.entry(line)]


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JournalError(f"asked for the log {path}, found {error.strerror}; check the path and who may read it") from error
