# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the starts of each class taught, kept on the controller from one run to the next. Private to this collection.

A directory with one file a class, ``KEY.json``: the lessons (see C(_lessons)) under ``lessons``, the newest last. Several runs may
write at once: each adds to what is there. A file that cannot be read is never lost: it is set aside before another is written.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

from ansible.utils.display import Display
from ansible_collections.inferops.sglang.plugins.module_utils._lessons import is_lesson, merge

MOST_OF_A_CLASS = 6
_KEY = re.compile(r"[0-9a-f]{12}")
# larger than any six starts
_MOST_BYTES = 8 << 20

Warn = Callable[[str], None]
Directory = Union[str, Path]


class _DamagedError(Exception):
    """A file that is no record of lessons; the text says why."""


def _say(text: str) -> None:
    Display().warning(text)


def load(directory: Directory, keys: Iterable[str], warn: Warn = _say) -> list[dict[str, Any]]:
    """The lessons of these classes; a file that cannot be read counts as none and is named to ``warn``. Nothing is written."""
    found: list[dict[str, Any]] = []
    for path in _paths(directory, keys):
        try:
            found += _read(path)
        except (_DamagedError, OSError) as error:
            warn(f"asked for what starts of earlier runs showed, found {path} {_why(error)}; this run learns from its hosts alone")
    return found


def store(directory: Directory, lessons: Sequence[Mapping[str, Any]], warn: Warn = _say) -> None:
    """Add lessons to those of their classes; raises OSError where the directory cannot be written."""
    classes: dict[str, list[Mapping[str, Any]]] = {}
    for lesson in lessons:
        classes.setdefault(str(lesson.get("fleet_class")), []).append(lesson)
    for path in _paths(directory, classes):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            _write(path, _kept([*_read_or_set_aside(path, warn), *classes[path.stem]]))


def _paths(directory: Directory, keys: Iterable[str]) -> list[Path]:
    return [Path(directory).expanduser() / f"{key}.json" for key in sorted(set(keys)) if _KEY.fullmatch(key)]


def _kept(lessons: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The best lessons of one class, the newest last."""
    best = [lesson for found in merge(lessons, MOST_OF_A_CLASS).values() for lesson in found]
    return sorted(best, key=lambda lesson: str(lesson.get("seen_at") or ""))


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return []
    if len(content) > _MOST_BYTES:
        raise _DamagedError(f"larger than {_MOST_BYTES >> 20} MiB")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise _DamagedError("which is no JSON") from None
    listed = data.get("lessons") if isinstance(data, dict) else None
    if not isinstance(listed, list) or not all(is_lesson(lesson) and lesson["fleet_class"] == path.stem for lesson in listed):
        raise _DamagedError("which holds other things than lessons of its class")
    return listed


def _read_or_set_aside(path: Path, warn: Warn) -> list[dict[str, Any]]:
    try:
        return _read(path)
    except _DamagedError as error:
        aside = path.with_name(path.name + ".damaged")
        path.replace(aside)
        warn(f"asked to add to {path}, found a file {error}; it is set aside as {aside}, look at it or remove it")
        return []


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, _DamagedError) else f"which cannot be read ({error})"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone with the file beside this one, until the block ends or its process does."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, lessons: Sequence[Mapping[str, Any]]) -> None:
    """The whole file or the one before it."""
    text = json.dumps({"lessons": lessons}, indent=1, sort_keys=True) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
