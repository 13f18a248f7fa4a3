# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that a host accepted: the last one, and those before it to go back to. Private to this collection: may change at any time.

C(STATE/INSTANCE/accepted.json) is the last one, C(accepted/NAME.json) beside it holds earlier ones. A record has C(receipt), C(unit)
and C(environment) (the texts of both files) and C(accepted_at) (seconds since 1970). A file is replaced in one step, and an earlier
one is written before the last one is replaced, so that a run which is killed leaves one too many and never one too few.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._made import write_whole

LAST = "accepted.json"
EARLIER = "accepted"
# earlier services that are listed; each is a few kilobytes
MOST = 8
_NEEDS = ("digest", "mem_fraction_static", "min_tokens", "required_tokens")

# the release of a record -> why it cannot be started, empty if it can
Standing = Callable[["Accepted"], str]


@dataclass(frozen=True)
class Accepted:
    """One accepted service. ``lacks``: why its release cannot be started any more, empty if it can; ``last``: none came after it."""

    receipt: dict[str, Any]
    unit: str
    environment: str
    accepted_at: float
    lacks: str = ""
    last: bool = False

    @property
    def digest(self) -> str:
        return str(self.receipt["digest"])

    @property
    def release(self) -> str:
        return str(self.receipt.get("release") or "")

    @property
    def version(self) -> str:
        return str(self.receipt.get("sglang_version") or "")

    @property
    def name(self) -> str:
        """What its file is called: the release, and the digest of what its process got."""
        short = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(self.release.rstrip("/")))[:80].lstrip(".") or "service"
        return f"{short}-{self.digest[:8]}"

    @property
    def line(self) -> str:
        """For people: what it is, what it held, and when it was accepted."""
        when = datetime.fromtimestamp(self.accepted_at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        told = f"{self.version or 'unknown version'} ({self.release}), fraction {self.receipt['mem_fraction_static']}, "
        told += f"{self.receipt['min_tokens']:,} tokens, accepted {when}"
        return told + (", the last accepted one" if self.last else "") + (f"; cannot be started: {self.lacks}" if self.lacks else "")

    def as_record(self) -> dict[str, Any]:
        return {"receipt": self.receipt, "unit": self.unit, "environment": self.environment, "accepted_at": self.accepted_at}

    def as_listed(self) -> dict[str, Any]:
        """Without the texts, which may hold what nobody should read on a screen."""
        return {
            "name": self.name, "sglang_version": self.version, "release": self.release, "digest": self.digest, "last": self.last,
            "mem_fraction_static": self.receipt["mem_fraction_static"], "min_tokens": self.receipt["min_tokens"],
            "required_tokens": self.receipt["required_tokens"], "accepted_at": self.accepted_at, "lacks": self.lacks, "line": self.line,
        }  # fmt: skip

    def answers(self, wanted: str) -> bool:
        """Whether this is meant by a version, the name of a release or of a record, or the path of an environment."""
        names = {self.version, self.release.rstrip("/"), os.path.basename(self.release.rstrip("/")), self.name}
        return wanted.rstrip("/") in names - {""}


@dataclass(frozen=True)
class Choice:
    """What to go back to, or why there is nothing: ``problem`` says what was asked, what was found, and what to do."""

    chosen: Optional[Accepted]
    problem: str = ""


def record_of(data: Any, accepted_at: float = 0.0) -> Optional[Accepted]:
    """A record from data of any form; None where something that a way back needs is missing. ``accepted_at``: where it does not say."""
    receipt = data.get("receipt") if isinstance(data, dict) else None
    if not isinstance(receipt, dict) or not isinstance(data.get("unit"), str) or not isinstance(data.get("environment"), str):
        return None
    numbers = (receipt.get("min_tokens"), receipt.get("required_tokens"))
    if any(receipt.get(name) is None for name in _NEEDS) or not all(isinstance(number, int) for number in numbers):
        return None
    kept_at = data.get("accepted_at")
    at = float(kept_at) if isinstance(kept_at, (int, float)) and not isinstance(kept_at, bool) else accepted_at
    return Accepted(receipt, data["unit"], data["environment"], at)


def choose(records: Sequence[Accepted], wanted: str, instance: str) -> Choice:
    """The newest record that is meant and can be started; an empty ``wanted`` is the last accepted service."""
    meant = [record for record in records if (record.answers(wanted) if wanted else record.last)]
    startable = [record for record in meant if not record.lacks]
    if startable:
        return Choice(startable[0])
    if not meant and not wanted:
        return Choice(None)
    asked = f"sglang_rollback_to: asked for {wanted}" if wanted else f"asked to go back to the last accepted service of {instance}"
    found = f"found it, but {meant[0].release} cannot be started: {meant[0].lacks}" if meant else "found no accepted service of that name"
    return Choice(None, "\n".join([f"{asked}, {found}", *_what_else(records, meant)]))


def _what_else(records: Sequence[Accepted], meant: Sequence[Accepted]) -> Iterable[str]:
    rebuild = f"run the role with sglang_version {meant[0].version}, which makes it anew" if meant else ""
    kept = [record for record in records if not record.lacks]
    if not kept:
        yield f"    do: {rebuild or 'run the role with the version that shall run; no accepted service is kept here that can be started'}"
        return
    yield f"    do: {rebuild + ', or ' if rebuild else ''}give the version, the release or its path of one that is kept:"
    yield from (f"    - {record.line}" for record in kept)


class History:
    """The records of one instance on this host. ``folder``: its state; ``standing``: what its releases lack."""

    def __init__(self, folder: str, standing: Standing) -> None:
        self._folder, self._standing = folder, standing

    def records(self) -> list[Accepted]:
        """The last accepted service first, then those before it, newest first; each once."""
        last = self._read(os.path.join(self._folder, LAST))
        earlier = sorted(filter(None, map(self._read, self._earlier_files())), key=lambda record: -record.accepted_at)
        found = ([self._judged(last, True)] if last else []) + [self._judged(record, False) for record in earlier]
        digests = [record.digest for record in found]
        return [record for number, record in enumerate(found) if record.digest not in digests[:number]]

    def keep(self, new: Accepted, check: bool = False) -> bool:
        """Makes this the last accepted service; the one before it is kept among the earlier ones. Whether that changed anything."""
        before = self._read(os.path.join(self._folder, LAST))
        if before is not None and before.receipt == new.receipt and (before.unit, before.environment) == (new.unit, new.environment):
            return False
        if check:
            return True
        if before is not None and before.digest != new.digest:
            os.makedirs(os.path.join(self._folder, EARLIER), mode=0o700, exist_ok=True)
            self._write(os.path.join(self._folder, EARLIER, f"{before.name}.json"), before)
        self._write(os.path.join(self._folder, LAST), new)
        return True

    def tidy(self) -> list[str]:
        """Forgets records that are in the way: the last one's double, those that cannot be read, and those over the count, first those
        whose release is gone. Returns the names of their files."""
        kept = sorted(self.records()[1:], key=lambda record: (bool(record.lacks), -record.accepted_at))[:MOST]
        names = {f"{record.name}.json" for record in kept}
        gone = [path for path in self._earlier_files() if os.path.basename(path) not in names]
        for path in gone:
            os.unlink(path)
        return [os.path.basename(path) for path in gone]

    def _earlier_files(self) -> list[str]:
        folder = os.path.join(self._folder, EARLIER)
        try:
            # a file that is being written begins with a dot
            return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json"))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _judged(self, record: Accepted, last: bool) -> Accepted:
        return Accepted(record.receipt, record.unit, record.environment, record.accepted_at, self._standing(record), last)

    @staticmethod
    def _read(path: str) -> Optional[Accepted]:
        try:
            with open(path, encoding="utf-8") as file:
                return record_of(json.load(file), os.fstat(file.fileno()).st_mtime)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    @staticmethod
    def _write(path: str, record: Accepted) -> None:
        write_whole(path, json.dumps(record.as_record(), indent=4, ensure_ascii=False) + "\n", 0o600)
