# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the log of one start of a unit with C(journalctl). Private to this collection: may change at any time.

One start is told from all others by its invocation id, never by time: the processes' own lines carry it as
C(_SYSTEMD_INVOCATION_ID), what the service manager says about the unit as C(INVOCATION_ID). Entries are streamed and most of
them are dropped unparsed, so memory does not grow with the journal. The program is started by an injected streamer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Entry
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import is_noise, parse_record

# argv -> lines of its standard output; raises JournalError where the program cannot be started or says it failed
Streamer = Callable[[Sequence[str]], Iterator[bytes]]

# --all: without it a field of more than 4,096 bytes is null, and the line with the server's arguments is one
_COMMAND = ("journalctl", "--no-pager", "--all", "--output=json")
_FIELDS = "--output-fields=MESSAGE,_PID,SYSLOG_IDENTIFIER,_SYSTEMD_INVOCATION_ID,INVOCATION_ID"
# the log daemon's own note that it dropped messages; it carries no invocation id
_DROPPED = "MESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e"
_CURSOR = re.compile(rb'"__CURSOR" ?: ?"([^"\\]{1,500})"')
_HINTS = re.compile(r"insufficient permissions|not seeing messages|Permission denied", re.IGNORECASE)


class JournalError(Exception):
    """The log cannot be read; the text says what was asked, what was found, and what to do."""


def stream_lines(argv: Sequence[str]) -> Iterator[bytes]:
    """Runs a program and yields the lines of its standard output as they come; raises JournalError if it fails."""
    with tempfile.TemporaryFile() as errors:
        try:
            # the caller may stop early, so the end of the program is seen to in every case
            process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "LC_ALL": "C"}
            )
        except OSError as error:
            raise JournalError(
                f"asked for the log with {argv[0]!r}, found that it cannot be started ({error}); "
                "install systemd's journalctl, or give log_files or log_text instead"
            ) from error
        with process:
            stopped_early = True
            try:
                yield from process.stdout or ()
                stopped_early = False
            finally:
                if stopped_early:
                    process.kill()
        errors.seek(0)
        check_end(argv, process.returncode, errors.read(4000).decode("utf-8", "replace"))


def check_end(argv: Sequence[str], code: int, errors: str) -> None:
    """Raises JournalError for an end of journalctl that means that the journal could not be read; no match is none."""
    denied = _HINTS.search(errors)
    if not denied and (code == 0 or (code == 1 and not errors.strip())):
        return
    do = "run as root or as a member of the group systemd-journal" if denied else "check that the journal is there and not damaged"
    raise JournalError(f"asked the journal ({' '.join(argv[:2])} ...), found exit code {code} and {errors.strip()[:500]!r}; {do}")


@dataclass(frozen=True)
class Source:
    """Where the journal lies: this host's own, a directory, or single files."""

    directory: Optional[str] = None
    files: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        if self.directory:
            return ["--directory=" + self.directory]
        return ["--file=" + name for name in self.files]


class JournalReader:
    """Reads one start, and on each further call what was added since."""

    def __init__(self, source: Source, stream: Streamer = stream_lines) -> None:
        self._base = [*_COMMAND, *source.arguments()]
        self._stream = stream
        self._cursor: Optional[str] = None

    def newest_invocation(self, unit: str) -> Optional[str]:
        """Invocation id of the newest start of this unit in the journal; None if it has no entry."""
        fields = "--output-fields=_SYSTEMD_INVOCATION_ID,INVOCATION_ID"
        argv = [*self._base, fields, "--reverse", "--lines=50", f"_SYSTEMD_UNIT={unit}", "+", f"UNIT={unit}"]
        return next((found for found in map(_invocation, self._stream(argv)) if found), None)

    def newest_boot(self) -> Optional[str]:
        """Invocation id of the newest start of any SGLang server; None if there is none.

        A server is known by its line of arguments, or, where that was lost, by any of its other milestones. Its unit may have been
        started again since without a word of SGLang's: then that start is the newest.
        """
        for pattern in ("server_args=", "Load weight|KV Cache|Memory pool end|fired up"):
            argv = [*self._base, f"{_FIELDS},_SYSTEMD_UNIT", "--reverse", f"--grep={pattern}"]
            for line in self._stream(argv):
                entry, invocation = parse_line(line), _invocation(line)
                if entry and invocation and any(record.event for record in parse_record(entry.text)):
                    unit = _field(line, "_SYSTEMD_UNIT")
                    return (self.newest_invocation(unit) if unit else None) or invocation
        return None

    def read(self, invocation: str, unit: Optional[str], everything: Callable[[], bool]) -> Iterator[Entry]:
        """Entries of this start in journal order, from where the last call ended.

        Entries that tell nothing are left out unless ``everything`` says, just then, that the reader needs them, as inside a traceback.
        ``unit``: its name, to see the log daemon's note that it dropped messages of it.
        """
        after = [f"--after-cursor={self._cursor}"] if self._cursor else []
        matches = [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}", *(["+", _DROPPED] if unit else [])]
        last = b""
        for line in self._stream([*self._base, _FIELDS, *after, *matches]):
            last = line
            if is_noise(line) and not _of_system(line) and not everything():
                continue
            entry = parse_line(line)
            if entry is not None and not (entry.daemon and (not unit or unit not in entry.text)):
                yield entry
        cursor = _CURSOR.search(last)
        self._cursor = cursor.group(1).decode("ascii", "replace") if cursor else self._cursor

    def last_lines(self, invocation: str, count: int) -> list[str]:
        """The newest lines of this start, oldest first, for messages."""
        argv = [*self._base, _FIELDS, "--reverse", f"--lines={count}", f"_SYSTEMD_INVOCATION_ID={invocation}"]
        return [entry.text for entry in map(parse_line, self._stream(argv)) if entry][::-1]


def parse_line(line: bytes) -> Optional[Entry]:
    """One line of C(journalctl -o json) as an entry; None for an entry without text and for what is no JSON object."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
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


def _of_system(line: bytes) -> bool:
    """Whether this raw line may be one of the service manager about the unit, or of the log daemon about itself."""
    return b'"INVOCATION_ID"' in line or b"systemd-journald" in line


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


def _invocation(line: bytes) -> Optional[str]:
    return _field(line, "_SYSTEMD_INVOCATION_ID") or _field(line, "INVOCATION_ID")


def _field(line: bytes, name: str) -> Optional[str]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = fields.get(name) if isinstance(fields, dict) else None
    return found if isinstance(found, str) else None


# --- saved logs -------------------------------------------------------------------------------------------------------


def text_entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Lines of a saved log as entries: plain, as docker's C(json-file) driver keeps them, or saved from C(journalctl -o json)."""
    for line in lines:
        if not line.startswith(b"{"):
            yield Entry(line.decode("utf-8", "replace").rstrip("\r\n"))
        elif b'"__CURSOR"' in line:
            entry = parse_line(line)
            if entry is not None:
                yield entry
        else:
            yield Entry(_docker_text(line))


def _docker_text(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    log = fields.get("log") if isinstance(fields, dict) else None
    return log.rstrip("\r\n") if isinstance(log, str) else text
