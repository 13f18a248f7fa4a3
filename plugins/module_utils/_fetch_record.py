# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a checkpoint on this host came from, and whether that is what is asked. Private to this collection: may change at any time.

What was fetched carries a record in its directory. Nothing here asks a network: a host that has what is asked never needs one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._hub import is_commit

RECORD = ".inferops-source.json"
# what the worker keeps beside the files while it fetches
WORK = ".inferops-fetch"
# where a checkpoint is fetched to, and where the one that it replaces waits until it stands
FETCHING, REPLACED = ".fetching", ".replaced"
HUB = "hub:"
_MAX_RECORD = 64 << 20
# the hub's own client leaves this beside what it downloads into a directory: commit, ETag, time
_CLIENT_METADATA = os.path.join(".cache", "huggingface", "download", "config.json.metadata")
_SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{40})(?:/|$)")


@dataclass(frozen=True)
class Stamp:
    """A file as it was when its content was checked: bytes, time of change, and C(sha256:HEX) or C(git:HEX) of the content."""

    size: int
    mtime_ns: int
    identity: str = ""


@dataclass(frozen=True)
class Record:
    """``source`` as it was asked, ``revision`` as it was asked, ``commit`` behind it (empty where unknown), ``when`` in UTC, ``via``:
    the host that gave it in the source's place."""

    source: str
    revision: str = ""
    commit: str = ""
    fingerprint: str = ""
    when: str = ""
    via: str = ""
    files: Mapping[str, Stamp] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    def answers(self, source: str, revision: str) -> bool:
        """Whether this is what is asked; an empty revision asks for whatever was taken once."""
        return self.source == source and revision in ("", self.revision, self.commit)


@dataclass(frozen=True)
class Standing:
    """What a directory holds against what is asked. ``settled``: nothing has to be fetched. ``refusal``: why what stands there is not
    replaced. ``source`` and ``commit`` as far as they are known; ``own``: the operator put it there."""

    settled: bool
    source: str = ""
    commit: str = ""
    own: bool = True
    refusal: str = ""
    note: str = ""


def read_record(directory: str) -> Optional[Record]:
    """The record in a directory; None where there is none that can be read."""
    try:
        with open(os.path.join(directory, RECORD), "rb") as stream:
            content = json.loads(stream.read(_MAX_RECORD).decode("utf-8"))
        texts = {name: _text(content.get(name, "")) for name in ("source", "revision", "commit", "fingerprint", "when", "via")}
        files = {str(name): Stamp(int(entry["size"]), int(entry["mtime_ns"]), _text(entry.get("identity", "")))
                 for name, entry in content.get("files", {}).items()}  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Record(files=files, **texts) if texts["source"] else None


def standing(path: str, complete: bool, source: str, revision: str = "") -> Standing:
    """Whether the directory holds what is asked; ``complete`` is what its headers say."""
    record = read_record(path)
    if record is not None:
        settled = complete and (not source or (record.answers(source, revision) and not is_begun(path)))
        return Standing(settled, record.source, record.commit, own=False, note=_left_over(path) if settled and source else "")
    commit = known_commit(path)
    if not complete:
        return Standing(False, commit=commit)
    if not source or not revision or not source.startswith(HUB) or revision == commit:
        return Standing(True, commit=commit)
    if commit and is_commit(revision):
        return Standing(
            False,
            commit=commit,
            refusal=f"a complete checkpoint of commit {commit} that was not fetched by this collection",
        )
    known = f"commit {commit}" if commit else "unknown"
    return Standing(
        True,
        commit=commit,
        note=f"{path} was not fetched by this collection; its revision is {known}, and it is taken as it is where {revision} is asked",
    )


def is_begun(path: str) -> bool:
    """Whether one checkpoint was about to take the place of another one, and something of that is still to be done."""
    real = os.path.realpath(path)
    fetched = os.path.isfile(os.path.join(real + FETCHING, RECORD))
    return fetched or os.path.isdir(real + REPLACED) or os.path.isdir(os.path.join(real, WORK))


def _left_over(path: str) -> str:
    begun = os.path.realpath(path) + FETCHING
    if not os.path.isdir(begun):
        return ""
    return f"{begun} holds what was fetched for another revision and never finished; remove it if that is not wanted any more"


def known_commit(path: str) -> str:
    """The commit of a directory that the hub's own client filled; empty where nothing tells."""
    found = _SNAPSHOT.search(os.path.realpath(path))
    if found:
        return found[1]
    try:
        with open(os.path.join(path, _CLIENT_METADATA), encoding="ascii") as stream:
            first = stream.readline(64).strip()
    except (OSError, ValueError):
        return ""
    return first if is_commit(first) else ""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
