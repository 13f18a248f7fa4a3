# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the log of one start of a unit with C(journalctl). Private to this collection: may change at any time.

One start is told from all others by its invocation id, never by time: the processes' own lines carry it as
C(_SYSTEMD_INVOCATION_ID), what the service manager says about the unit as C(INVOCATION_ID). Entries are streamed and most of
them are dropped unparsed, so memory does not grow with the journal. The program is started by an injected streamer.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Optional, cast

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Entry
from ansible_collections.inferops.sglang.plugins.module_utils._blocks import BLOCK, Blocks
from ansible_collections.inferops.sglang.plugins.module_utils._journal_export import Fields, entries, next_fields
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import parse_record

# called at the program's end with its exit code and the beginning of what it wrote to standard error
Ended = Callable[[int, str], None]
# argv, what to call at the end, and whether journalctl is to tell of damage (its debug level) -> blocks of standard output;
# raises JournalError where the program cannot be started
Streamer = Callable[[Sequence[str], Ended, bool], Iterator[bytes]]

_COMMAND = ("journalctl", "--no-pager", "--output=export")
_FIELDS = "--output-fields=MESSAGE,_PID,_UID,SYSLOG_IDENTIFIER,_SYSTEMD_INVOCATION_ID,_SYSTEMD_UNIT,INVOCATION_ID,UNIT"
# the log daemon's own note that it dropped messages; it carries no invocation id
_DROPPED = "MESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e"
_DROPPED_OF = re.compile(rb"Suppressed \d+ messages from (?:/\S*/)?([^/\s]+)\s*$")
_DENIED = re.compile(r"insufficient permissions|not seeing messages|Permission denied", re.IGNORECASE)
_NO_FILES = re.compile(r"No journal files were found", re.IGNORECASE)
# what journalctl says about files, entries and fields that it leaves out; for all but whole files only at its debug level
_DAMAGE = re.compile(r"^.*(?:ignoring file|(?:is|object is) bad, skipping over it|Can't iterate through).*$", re.MULTILINE)
# what its debug level says of a sound journal, and of a damaged one that is read all the same
_CHATTER = re.compile(
    r".* ignoring file|Considering |(?:Root d|D)irectory |File .* (?:added|removed)|Journal (?:effective|filter)|mmap cache|Loaded "
)
_PLAIN = {"LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_LOG_TARGET": "console"}
_VERBOSE = {**_PLAIN, "SYSTEMD_LOG_LEVEL": "debug"}
_MAX_ERRORS = 1 << 16
_SLACK_US = 2_000_000  # a journal of a namespace is begun by the unit's own first line


class JournalError(Exception):
    """The log cannot be read; the text says what was asked, what was found, and what to do."""


def stream_output(argv: Sequence[str], ended: Ended, verbose: bool = False) -> Iterator[bytes]:
    """Runs a program and yields its standard output as it comes; a caller that stops early ends it, and hears nothing of its end."""
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **(_VERBOSE if verbose else _PLAIN)},
        )
    except OSError as error:
        raise JournalError(
            f"asked for the log with {argv[0]!r}, found that it cannot be started ({error}); "
            "install systemd's journalctl, or give log_files or log_text instead"
        ) from error
    with process:
        output, errors = cast("IO[bytes]", process.stdout), _Beginning(cast("IO[bytes]", process.stderr))
        code = 0
        try:
            yield from iter(lambda: output.read(BLOCK), b"")
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
            text = errors.text()
    ended(code, text)


class _Beginning:
    """Reads a stream to its end beside the caller and keeps the beginning of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept: list[bytes] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        room = _MAX_ERRORS
        for block in iter(lambda: self._stream.read(BLOCK), b""):
            if room > 0:
                self._kept.append(block[:room])
                room -= len(block)

    def text(self) -> str:
        self._thread.join()
        return b"".join(self._kept).decode("utf-8", "replace")


def check_end(argv: Sequence[str], code: int, errors: str) -> None:
    """Raises JournalError for an end of journalctl that means that the journal could not be read; no match is none."""
    said = "\n".join(line for line in errors.splitlines() if not _CHATTER.match(line)).strip()
    denied = _DENIED.search(errors)
    if not denied and (code == 0 or (code == 1 and not said)):
        return
    do = "run as root or as a member of the group systemd-journal" if denied else "check that the journal is there and not damaged"
    raise JournalError(f"asked the journal ({' '.join(argv[:2])} ...), found exit code {code} and {said[-500:]!r}; {do}")


@dataclass(frozen=True)
class Source:
    """Where the journal lies: this host's own, a directory, or single files.

    ``namespace``: of this host's own journal also the lines of this namespace (a unit's C(LogNamespace=)), or those ``alone``.
    """

    directory: Optional[str] = None
    files: tuple[str, ...] = ()
    namespace: str = ""
    alone: bool = False

    @property
    def live(self) -> bool:
        """This host's own journal, which grows and may lose its oldest files."""
        return not self.directory and not self.files

    def arguments(self) -> list[str]:
        if self.directory:
            return ["--directory=" + self.directory]
        if self.files:
            return ["--file=" + name for name in self.files]
        return [f"--namespace={'' if self.alone else '+'}{self.namespace}"] if self.namespace else []


class JournalReader:
    """Reads one start, and on each further call what was added since."""

    def __init__(self, source: Source, stream: Streamer = stream_output) -> None:
        self._warnings: dict[str, str] = {}
        self._source = source
        self._stream = stream
        self._cursor = b""
        self._unit = b""  # of the start that is read
        self._empty = True
        self._explained = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader found to be missing from the journal: a line that was not read is then no proof that it was never written."""
        return tuple(self._warnings.values())

    def use_namespace(self, name: str) -> None:
        """A unit of this host logs to this namespace; empty: to the default one."""
        self._source = replace(self._source, namespace=name)

    def newest_invocation(self, unit: str) -> Optional[str]:
        """Invocation id of the newest start of this unit in the journal; None if it has no entry."""
        fields = "--output-fields=_SYSTEMD_INVOCATION_ID,_SYSTEMD_UNIT,_PID,_UID,INVOCATION_ID"
        for found in self._fields([fields, "--reverse", f"_SYSTEMD_UNIT={unit}", "+", f"UNIT={unit}"]):
            invocation = found.get(b"INVOCATION_ID") if _by_the_system(found) else None
            if found.get(b"_SYSTEMD_UNIT") == unit.encode():
                invocation = found.get(b"_SYSTEMD_INVOCATION_ID")
            if invocation:
                return invocation.decode("utf-8", "replace")
        self._explain_nothing()
        return None

    def invocation_before(self, unit: str, invocation: str, began_us: int) -> Optional[str]:
        """Invocation id of the start of this unit before the one that wrote its first line then (microseconds since 1970)."""
        fields = "--output-fields=_SYSTEMD_INVOCATION_ID,_SYSTEMD_UNIT"
        # whole seconds: lines of the later start may be among them
        for found in self._fields([fields, "--reverse", f"--until=@{began_us // 1_000_000 + 1}", f"_SYSTEMD_UNIT={unit}"]):
            other = found.get(b"_SYSTEMD_INVOCATION_ID", b"").decode("utf-8", "replace")
            if other and other != invocation:
                return other
        return None

    def again(self) -> JournalReader:
        """Another reader of the same journal, from its beginning."""
        return JournalReader(self._source, self._stream)

    def newest_boot(self) -> Optional[str]:
        """Invocation id of the newest start of any SGLang server; None if there is none.

        A server is known by its line of arguments, or, where that was lost, by any of its other milestones. Its unit may have been
        started again since without a word of SGLang's: then that start is the newest.
        """
        for pattern in ("server_args=", "Load weight|KV Cache|Memory pool end|fired up"):
            for found in self._fields([_FIELDS, "--reverse", f"--grep={pattern}"]):
                invocation = found.get(b"_SYSTEMD_INVOCATION_ID", b"").decode("utf-8", "replace")
                if invocation and any(record.event for record in parse_record(entry_of(found).text)):
                    unit = found.get(b"_SYSTEMD_UNIT", b"").decode("utf-8", "replace")
                    return (self.newest_invocation(unit) if unit else None) or invocation
        self._explain_nothing()
        return None

    def read(self, invocation: str, unit: Optional[str], everything: Callable[[], bool]) -> Iterator[Entry]:
        """Entries of this start in journal order, from where the last call ended.

        Entries that tell nothing are left out unless ``everything`` says, just then, that the reader needs them, as inside a traceback.
        ``unit``: its name, to see the log daemon's note that it dropped messages of it; by default the one of the start's own lines.
        """
        self._unit = unit.encode() if unit else self._unit
        # not after the cursor: where its entry is gone, journalctl takes the next one for it, and that line would be lost
        resume = ["--cursor=" + self._cursor.decode("ascii", "replace")] if self._cursor else []
        matches = [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}", "+", _DROPPED]
        source = Blocks(self._run([_FIELDS, *resume, *matches], verbose=True))
        for fields in self._resumed(source, everything):
            self._cursor = fields.get(b"__CURSOR", self._cursor)
            entry = self._own(fields, invocation.encode())
            if entry is not None:
                yield entry
        if self._empty:
            self._explain_nothing()

    def _resumed(self, source: Blocks, everything: Callable[[], bool]) -> Iterator[Fields]:
        known = _place(self._cursor)
        if known:
            first = next_fields(source)
            if first is None or _place(first.get(b"__CURSOR", b"")) != known:
                self._warnings["lost"] = "the journal has lost the line that was read last (vacuumed or wiped): lines may be missing since"
                yield from () if first is None else (first,)
        yield from entries(source, everything, self._saw)

    def _saw(self, cursor: bytes) -> None:
        self._cursor, self._empty = cursor, False

    def _own(self, fields: Fields, invocation: bytes) -> Optional[Entry]:
        """The entry, if it is one of this start, or a note of the log daemon on this unit that is no older than the start."""
        entry = entry_of(fields)
        written = fields.get(b"_SYSTEMD_INVOCATION_ID") == invocation
        # any process may give its lines an INVOCATION_ID: only the system's word on a unit counts
        told = fields.get(b"INVOCATION_ID") == invocation and (written or _by_the_system(fields))
        if written or told:
            self._empty = False
            self._unit = self._unit or fields.get(b"_SYSTEMD_UNIT" if written else b"UNIT", b"")
            return entry._replace(manager=told, daemon=False) if entry.text else None
        dropped = _DROPPED_OF.match(fields.get(b"MESSAGE", b""))
        return entry if entry.daemon and dropped and not self._empty and dropped.group(1) == self._unit else None

    def last_lines(self, invocation: str, count: int) -> list[str]:
        """The newest lines of this start, oldest first, for messages."""
        found = self._fields([_FIELDS, "--reverse", f"--lines={count}", f"_SYSTEMD_INVOCATION_ID={invocation}"])
        return [entry.text for entry in map(entry_of, found) if entry.text][::-1]

    # --- running journalctl

    def _run(self, arguments: Sequence[str], verbose: bool = False) -> Iterator[bytes]:
        try:
            yield from self._start(arguments, verbose)
        except JournalError:
            if not self._leave_out_damaged_files():
                raise
            yield from self._start(arguments, verbose)

    def _start(self, arguments: Sequence[str], verbose: bool) -> Iterator[bytes]:
        argv = [*_COMMAND, *self._source.arguments(), *arguments]
        return self._stream(argv, lambda code, errors: self._ended(argv, code, errors), verbose)

    def _leave_out_damaged_files(self) -> bool:
        """Whether some of several files can be read: of files, unlike a directory, journalctl reads all or none."""
        sound = tuple(name for name in self._source.files if self._can_be_read(name))
        if not sound or sound == self._source.files:
            return False
        lost = ", ".join(name for name in self._source.files if name not in sound)
        self._warnings.setdefault("damaged", f"the journal is damaged, lines may be missing: cannot read {lost[:300]}")
        self._source = replace(self._source, files=sound)
        return True

    def _can_be_read(self, name: str) -> bool:
        codes: list[int] = []
        argv = ["journalctl", "--no-pager", "--lines=0", "--file=" + name]
        for _block in self._stream(argv, lambda code, _errors: codes.append(code), False):
            pass
        return codes == [0]

    def _fields(self, arguments: Sequence[str]) -> Iterator[Fields]:
        source = Blocks(self._run(arguments))
        return iter(lambda: next_fields(source), None)

    def check_begin(self, started_us: int) -> None:
        """Notes it where this host's journal begins after a start did, in microseconds of the clock that never jumps (0: unknown)."""
        if not started_us:
            return
        argv = [*_COMMAND, *replace(self._source, alone=True).arguments(), "--output-fields=_PID", "--boot"]
        source = Blocks(self._stream(argv, lambda code, errors: check_end(argv, code, errors), False))
        first = next_fields(source)
        begin = _integer(first.get(b"__MONOTONIC_TIMESTAMP", b"")) if first else None
        if begin is None or begin > started_us + _SLACK_US:
            since = f"{(begin - started_us) / 1e6:.0f} s after this start did" if begin is not None else "with nothing of this boot"
            self._warnings["begin"] = f"the journal begins {since} (vacuumed, wiped, or not kept): the first lines of this start are gone"

    def _ended(self, argv: Sequence[str], code: int, errors: str) -> None:
        check_end(argv, code, errors)
        self._look_for_damage(errors)

    def _look_for_damage(self, errors: str) -> None:
        damage = _DAMAGE.search(errors)
        if damage:
            self._warnings.setdefault("damaged", f"the journal is damaged, lines may be missing: {damage.group().strip()[:300]!r}")

    def _explain_nothing(self) -> None:
        """Raises JournalError where nothing was found because nothing can be read; with formats for programs journalctl does not say so."""
        if self._explained:
            return
        self._explained = True
        for _block in self._stream(["journalctl", "--no-pager", "--lines=0", *self._source.arguments()], self._explain, False):
            pass

    def _explain(self, code: int, errors: str) -> None:
        where = self._source.directory or ", ".join(self._source.files) or "this host's journal"
        check_end(["journalctl", where], code, errors)
        if _NO_FILES.search(errors):
            do = "see that systemd-journald runs and keeps a journal (Storage=)" if self._source.live else self._where_else()
            raise JournalError(
                f"asked for the journal of {where}, found no journal files there; {do}, or give log_files or log_text instead"
            )
        self._look_for_damage(errors)
        if "damaged" in self._warnings and not self._source.live:
            raise JournalError(
                f"asked for a start in {where}, found none in what can be read of it, and that {self._warnings['damaged']}; "
                "copy the journal again from its host, or look at the host itself"
            )

    def _where_else(self) -> str:
        """Advice for a directory without a journal: of its subdirectories only those named by a machine's id are looked into."""
        found = sorted(str(path.parent) for path in Path(self._source.directory or "").glob("*/*.journal"))
        return f"check the path, or give one of its subdirectories with a journal ({found[0]}, ...)" if found else "check the path"


def entry_of(fields: Fields) -> Entry:
    """An entry of the journal as the collection reads it; its text is empty where it has none."""
    return Entry(
        text=fields.get(b"MESSAGE", b"").decode("utf-8", "replace"),
        pid=_integer(fields.get(b"_PID", b"")),
        time_us=_integer(fields.get(b"__REALTIME_TIMESTAMP", b"")),
        clock_us=_integer(fields.get(b"__MONOTONIC_TIMESTAMP", b"")),
        manager=b"INVOCATION_ID" in fields,
        daemon=fields.get(b"SYSLOG_IDENTIFIER") == b"systemd-journald",
    )


def _integer(value: bytes) -> Optional[int]:
    return int(value) if value.isdigit() and len(value) < 20 else None


def _by_the_system(fields: Fields) -> bool:
    """Whether the service manager, or root, wrote this entry: the log daemon itself sets these fields."""
    return fields.get(b"_PID") == b"1" or fields.get(b"_UID") == b"0"


def _place(cursor: bytes) -> bytes:
    """What a cursor says about its entry alone: it stays the same when the entry is copied to another file."""
    return cursor.partition(b";b=")[2]
