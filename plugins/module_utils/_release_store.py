# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environments of a host: which instance runs which, and which nobody needs any more. Private to this collection.

An environment is in use while a link, a unit file, an accepted configuration or a process names it. All that is looked at before one goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._release import MARK, RELEASE_NAME

LINKS = "current"
UNIT_DIRECTORIES = (
    *("/etc/systemd/system", "/run/systemd/system", "/run/systemd/transient"),
    *("/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
)
GONE = ".gone"


@dataclass(frozen=True)
class Store:
    """The folder of environments, that of the instances' states, and where unit files and processes are looked for."""

    root: str
    state_dir: str
    units: Sequence[str] = UNIT_DIRECTORIES
    proc: str = "/proc"

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)


@dataclass
class Pruned:
    """What went, and what stays although it is over the count: path -> who uses it."""

    removed: list[str] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)


def link_of(store: Store, instance: str) -> Optional[str]:
    """Where the link of an instance leads; None without one."""
    try:
        return os.readlink(os.path.join(store.root, LINKS, instance))
    except OSError:
        return None


def set_link(store: Store, instance: str, path: str) -> None:
    """Makes the link of an instance lead to this environment, in one step. The one that it leaves counts as used until now."""
    before = link_of(store, instance)
    folder = os.path.join(store.root, LINKS)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    draft = os.path.join(folder, f".{instance}.new")
    if os.path.lexists(draft):
        os.unlink(draft)
    os.symlink(path, draft)
    os.replace(draft, os.path.join(folder, instance))
    _touch(before)


def drop_link(store: Store, instance: str) -> None:
    """Takes the link of an instance away, and the folder of links with the last one."""
    _touch(link_of(store, instance))
    os.unlink(os.path.join(store.root, LINKS, instance))
    try:
        os.rmdir(os.path.join(store.root, LINKS))
    except OSError:
        return


def linked(store: Store) -> dict[str, str]:
    """Instance -> environment, for all links there are."""
    found = ((name, link_of(store, name)) for name in sorted(_names(os.path.join(store.root, LINKS))))
    return {name: path for name, path in found if path is not None}


def unfinished(store: Store) -> list[str]:
    """Names of environments that a build which was cut left something beside."""
    return sorted({name[1 : -len(ending)] for name in _names(store.root) for ending in (".build", ".old")
                   if name.startswith(".") and name.endswith(ending) and RELEASE_NAME.fullmatch(name[1 : -len(ending)])})  # fmt: skip


def releases(store: Store) -> list[str]:
    """Names of the environments that the role made: finished ones by the time they were last used, newest first, then all others."""
    names = [name for name in _names(store.root) if RELEASE_NAME.fullmatch(name) and os.path.isfile(f"{store.path(name)}/pyvenv.cfg")]
    return sorted(names, key=lambda name: (-_last_used(store.path(name)), name))


def prune(store: Store, keep: int, remove: Callable[[str], None]) -> Pruned:
    """Removes the environments that nobody uses, except the ``keep`` that were used last. One that is being built is left alone."""
    names = releases(store)
    building = set(unfinished(store))
    users = users_of(store, names)
    result = Pruned()
    spare = 0
    for name in names:
        path = store.path(name)
        if name in users:
            result.used[path] = users[name]
        elif name not in building:
            spare += _last_used(path) > 0
            if spare > keep or _last_used(path) == 0:
                result.removed.append(path)
    for path in result.removed:
        remove(path)
    return result


def remove_release(path: str, remove: Callable[[str], None]) -> None:
    """Takes an environment away so that no half of one is ever found under its name."""
    gone = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}{GONE}")
    remove(gone)
    os.rename(path, gone)
    remove(gone)


def left_over(store: Store) -> list[str]:
    """What a removal that was cut left."""
    return sorted(store.path(name) for name in _names(store.root) if name.startswith(".") and name.endswith(GONE))


def users_of(store: Store, names: Sequence[str]) -> dict[str, str]:
    """Name of an environment -> who uses it, in words."""
    roots = {store.root.rstrip("/"), os.path.realpath(store.root)}
    places = {f"{root}/{name}": name for root in roots for name in names}
    found: dict[str, str] = {}
    for instance, path in linked(store).items():
        if path.rstrip("/") in places:
            found.setdefault(places[path.rstrip("/")], f"{LINKS}/{instance}")
    for text, who in _texts(store):
        for place, name in places.items():
            if name not in found and f"{place}/" in text:
                found[name] = who
    left = {place: name for place, name in places.items() if name not in found}
    if left:
        found.update(_processes(store.proc, left))
    return found


def _texts(store: Store) -> Iterator[tuple[str, str]]:
    """Unit files with their drop-ins, and accepted configurations; each with its path."""
    patterns = [(folder, pattern) for folder in store.units for pattern in ("*.service", "*.service.d/*.conf")]
    patterns.append((store.state_dir, "*/accepted.json"))
    for file in (file for folder, pattern in patterns for file in sorted(Path(folder).glob(pattern))):
        yield _read(str(file)), str(file)


def _processes(proc: str, places: dict[str, str]) -> dict[str, str]:
    """The same for running processes: by their command, or where they renamed themselves by the libraries they have loaded."""
    found: dict[str, str] = {}
    for pid in sorted((name for name in _names(proc) if name.isdigit()), key=int):
        if len(found) == len(set(places.values())):
            break
        text = _read(f"{proc}/{pid}/cmdline").replace("\0", "\n") + _read(f"{proc}/{pid}/maps")
        for place, name in places.items():
            if name not in found and f"{place}/" in text:
                found[name] = f"process {pid} ({_read(f'{proc}/{pid}/comm').strip()})"
    return found


def _touch(path: Optional[str]) -> None:
    mark = os.path.join(path or "", MARK)
    if path and os.path.isfile(mark):
        os.utime(mark)


def _last_used(path: str) -> float:
    try:
        return os.stat(os.path.join(path, MARK)).st_mtime
    except OSError:
        return 0.0


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _names(directory: str) -> Iterable[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
