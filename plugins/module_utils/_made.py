# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of what the role made on a host: C(made.json) in the state directory. Private to this collection.

It is written before a thing is made, so a run that is killed leaves nothing that is not in it. What was there before is not in it.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

NAME = "made.json"


@dataclass(frozen=True)
class Instance:
    """What belongs to one instance, by absolute path. ``models``: directories that the role was given or fetched."""

    environment: str
    state: str
    cache: str
    root: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Made:
    """Accounts and directories that did not exist before the role made them, and the instances."""

    user: str = ""
    group: str = ""
    directories: tuple[str, ...] = ()
    instances: Mapping[str, Instance] = field(default_factory=dict)

    def with_instance(self, name: str, instance: Instance) -> Made:
        """The record with this instance; models that it had before stay known."""
        before = self.instances.get(name)
        models = dict.fromkeys((*(before.models if before else ()), *instance.models))
        return replace(self, instances={**self.instances, name: replace(instance, models=tuple(models))})

    def without_instance(self, name: str) -> Made:
        return replace(self, instances={key: value for key, value in self.instances.items() if key != name})

    def with_new(self, user: str, group: str, directories: Iterable[str]) -> Made:
        """The record with accounts and directories that are about to be made; empty texts for accounts that exist."""
        return replace(
            self,
            user=user or self.user,
            group=group or self.group,
            directories=tuple(dict.fromkeys((*self.directories, *directories))),
        )


def read_made(text: str) -> Made:
    """The record of this text; an empty one for a text that is cut or is no record."""
    try:
        data = json.loads(text) if text else {}
    except ValueError:
        data = {}
    if not isinstance(data, dict):
        return Made()
    instances = data.get("instances")
    return Made(
        user=_text(data.get("user")),
        group=_text(data.get("group")),
        directories=_texts(data.get("directories")),
        instances={
            str(name): Instance(
                environment=_text(entry.get("environment")),
                state=_text(entry.get("state")),
                cache=_text(entry.get("cache")),
                root=_text(entry.get("root")),
                models=_texts(entry.get("models")),
            )
            for name, entry in (instances.items() if isinstance(instances, dict) else ())
            if isinstance(entry, dict)
        },
    )


def made_text(made: Made) -> str:
    return json.dumps(asdict(made), indent=2, sort_keys=True) + "\n"


def missing_directories(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of these directories, and of the ones above them, that do not exist, the outer ones first."""
    found: list[str] = []
    for path in paths:
        above: list[str] = []
        while path not in ("", "/") and not os.path.lexists(path):
            above.append(path)
            path = os.path.dirname(path)
        found.extend(reversed(above))
    return tuple(dict.fromkeys(found))


def write_made(directory: str, text: str) -> None:
    """Writes the record in one step; a directory that does not exist appears with the record in it, so that none is made without."""
    if os.path.isdir(directory):
        write_whole(os.path.join(directory, NAME), text, 0o644)
        return
    above = os.path.dirname(directory.rstrip("/"))
    os.makedirs(above, exist_ok=True)
    new = tempfile.mkdtemp(prefix=f".{os.path.basename(directory.rstrip('/'))}.", dir=above)
    try:
        write_whole(os.path.join(new, NAME), text, 0o644)
        os.chmod(new, 0o755)
        os.rename(new, directory)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        raise


def write_whole(path: str, text: str, mode: int) -> None:
    """Writes a file in one step, with this mode from its first moment on."""
    handle, new = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(new, stat.S_IMODE(mode))
        os.replace(new, path)
    except OSError:
        os.unlink(new)
        raise


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
