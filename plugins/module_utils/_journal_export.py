# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal's export format, as C(journalctl -o export) writes it. Private to this collection: may change at any time.

An entry is a line C(NAME=value) for each field and an empty line. A value that is not printable comes as a line with the name alone,
its size in eight bytes, the bytes themselves and a line's end. It is the one format of journalctl that keeps every byte, and it costs
journalctl a third of the time that its JSON does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._blocks import MAX_LINE, Blocks
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import NOISE

Fields = dict[bytes, bytes]
MAX_FIELDS = 1000  # of one entry; journald itself takes no more than 1,024

# A whole entry of a server's process, all of it printable, whose message is noise
_OTHER_FIELDS = rb"(?:(?!MESSAGE=|INVOCATION_ID=|SYSLOG_IDENTIFIER=systemd-journald)[A-Z0-9_]+=[^\n]*\n)*"
_NOISE_ENTRY = re.compile(
    rb"__CURSOR=([^\n]*)\n" + _OTHER_FIELDS + rb"MESSAGE=" + NOISE.encode() + rb"\n" + _OTHER_FIELDS + rb"\n",
)
_PRINTABLE = re.compile(rb"(?:[A-Z0-9_]+=[^\n]*\n)+")
_NOISE = re.compile(NOISE.encode())


def next_fields(source: Blocks) -> Optional[Fields]:
    """The fields of the next entry, the parts of a repeated one on lines of their own; None where the stream ends before its end."""
    fields: Fields = {}
    while True:
        printable = source.match(_PRINTABLE)
        if printable is not None:
            for text in printable.group().split(b"\n")[:-1]:
                name, _equals, value = text.partition(b"=")
                _add(fields, name, value)
        line = source.line()
        if line is None:
            return None
        if not line:
            return fields
        name, equals, value = line.partition(b"=")
        if not equals:
            size = source.exactly(8)
            data = source.exactly(int.from_bytes(size, "little")) if size is not None else None
            if data is None or source.line() is None:
                return None
            value = data
        _add(fields, name, value)


def _add(fields: Fields, name: bytes, value: bytes) -> None:
    if name not in fields:
        if len(fields) < MAX_FIELDS:
            fields[name] = value
    elif len(fields[name]) + len(value) < MAX_LINE:
        fields[name] += b"\n" + value


def entries(source: Blocks, everything: Callable[[], bool], seen: Callable[[bytes], None]) -> Iterator[Fields]:
    """The entries, without those that tell nothing unless ``everything`` says, just then, that the reader needs them.

    ``seen`` is told the cursor of every entry that is left out, or of the last of several.
    """
    while True:
        skipped = None
        while not everything():
            found = source.match(_NOISE_ENTRY)
            if found is None:
                break
            skipped = found
        if skipped is not None:
            seen(skipped.group(1))
        fields = next_fields(source)
        if fields is None:
            return
        if _tells_nothing(fields) and not everything():
            seen(fields.get(b"__CURSOR", b""))
        else:
            yield fields


def _tells_nothing(fields: Fields) -> bool:
    if b"INVOCATION_ID" in fields or fields.get(b"SYSLOG_IDENTIFIER") == b"systemd-journald":
        return False
    return _NOISE.fullmatch(fields.get(b"MESSAGE", b"")) is not None
