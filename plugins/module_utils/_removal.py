# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes an instance from a host: what the role made for it, and only that. Private to this collection: may change at any time.

The steps have an order by which a run that is killed between any two of them is finished by the next one: the unit goes first, the
record of what was made last. What is not in the record, or holds files of somebody else, stays and is named.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._accepted import EARLIER
from ansible_collections.inferops.sglang.plugins.module_utils._fetch import unit_of
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import RECORD
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_swap import places
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import RUNNING, forget, look
from ansible_collections.inferops.sglang.plugins.module_utils._made import NAME, Instance, Made, made_text, write_made
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._release import MARK as RELEASE_MARK
from ansible_collections.inferops.sglang.plugins.module_utils._release import RELEASE_NAME
from ansible_collections.inferops.sglang.plugins.module_utils._release_build import Place
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import read_unit
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import read_server

UNITS = "/etc/systemd/system"
# what the role keeps of an instance, and the name under which each is written before it takes its place
STATE_FILES = ("accepted.json", "adoption.json", "boots.json", "drained.json", "receipt.json", "verdict.json")
_FOREIGN = "the role did not write this unit"
_LIBRARIES = ("libexec", "current")


class RemovalError(Exception):
    """What was asked, what was found, and what to do."""


@dataclass(frozen=True)
class Kept:
    """A thing that stays, and why."""

    path: str
    why: str


@dataclass
class Outcome:
    """What went and what stays, in the order of the steps."""

    removed: list[str] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


@dataclass(frozen=True)
class Removal:
    """One instance to be removed. ``models``: whether models that the role fetched go too; ``only_look``: change nothing.

    ``processes`` gives the command lines of the processes that run outside of this instance's unit.
    """

    name: str
    made: Made
    state_dir: str
    models: bool
    only_look: bool
    run: Runner
    processes: Callable[[str], Iterator[str]]
    units: str = UNITS
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def unit(self) -> str:
        return f"{self.name}.service"

    @property
    def unit_file(self) -> str:
        return os.path.join(self.units, self.unit)

    def others(self) -> dict[str, str]:
        """Texts of the other units of this role, by path."""
        found: dict[str, str] = {}
        for path in sorted(glob.glob(os.path.join(glob.escape(self.units), "*.service"))):
            text = read_text(path)
            if path != self.unit_file and read_unit(text).instance:
                found[path] = text
        return found

    def is_last(self) -> bool:
        """Is there no other instance, neither in the record nor by its unit?"""
        return not self.others() and not self.made.without_instance(self.name).instances

    def is_wanted(self, model: str) -> bool:
        """Does another instance use this model, or is about to?"""
        known = self.made.without_instance(self.name).instances.values()
        return any(model in other.models for other in known) or model in "\n".join(self.others().values())


def remove(removal: Removal, entry: Optional[Instance]) -> Outcome:
    """Takes the instance away; ``entry``: what the record holds of it, None on a host where it never was."""
    text = read_text(removal.unit_file)
    if entry is None:
        if text:
            removal.outcome.kept.append(Kept(removal.unit_file, _FOREIGN))
        return removal.outcome
    _remove_unit(removal, text)
    _end_steps(removal, entry)
    _remove_files(removal, entry)
    _remove_models(removal, entry)
    _remove_state(removal, entry)
    _forget(removal)
    return removal.outcome


def read_text(path: str) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _remove_unit(removal: Removal, text: str) -> None:
    state = unit_state(removal.unit, removal.run)
    is_own = read_unit(text).instance == removal.name
    if text and not is_own:
        removal.outcome.kept.append(Kept(removal.unit_file, _FOREIGN))
    elif not removal.only_look:
        if is_own:
            _systemctl(removal, "disable", "--now", removal.unit)
        elif state.get("ActiveState") not in ("inactive", "failed"):
            _systemctl(removal, "stop", removal.unit)
    if is_own:
        _remove_file(removal, removal.unit_file)
    # the manager still knows it, perhaps since a run that was killed here
    if not text or is_own:
        _let_go(removal)
    home = read_server(read_unit(text)).python_home if is_own else ""
    if home and os.path.isdir(home) and not RELEASE_NAME.match(os.path.basename(home)):
        removal.outcome.kept.append(Kept(home, "the role did not make this environment"))
    for path in sorted(glob.glob(f"{glob.escape(removal.unit_file)}.d/*.conf")):
        removal.outcome.kept.append(Kept(path, "a drop-in is its writer's"))
    for path in sorted(glob.glob(f"{glob.escape(removal.unit_file)}.*~")):
        removal.outcome.kept.append(Kept(path, "the copy of a unit that the role replaced"))


def _let_go(removal: Removal) -> None:
    state = unit_state(removal.unit, removal.run)
    if removal.only_look or (state.get("LoadState"), state.get("ActiveState")) == ("not-found", "inactive"):
        return
    _systemctl(removal, "daemon-reload")
    # fails where nothing is left to forget
    removal.run(["systemctl", "reset-failed", removal.unit])


def unit_state(unit: str, run: Runner) -> dict[str, str]:
    """Properties of a unit by name, as the service manager has them. Raises RemovalError where it does not answer."""
    names = "LoadState,ActiveState,UnitFileState,FragmentPath,DropInPaths"
    code, out, errors = run(["systemctl", "show", f"--property={names}", "--", unit])
    if code:
        said = errors.strip()[:300]
        raise RemovalError(f"asked systemd for the state of {unit}, found exit code {code} ({said}); run this on a host with systemd")
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)


def _systemctl(removal: Removal, *words: str) -> None:
    code, out, errors = removal.run(["systemctl", *words])
    if code:
        said = (errors or out).strip()[:300]
        raise RemovalError(
            f"asked systemd for {' '.join(words)}, found exit code {code} ({said}); nothing that comes after it was removed: "
            "mend the cause and run again"
        )


def _end_steps(removal: Removal, entry: Instance) -> None:
    """Ends what an earlier run began for this instance and no other one waits for: it would write into what is removed."""
    steps = [unit_of(path) for path in entry.models if not removal.is_wanted(path)]
    # whose build it is is not known while there is another instance
    if removal.is_last():
        steps += [build_of(path) for path in release_paths(entry.root)]
    for step in dict.fromkeys(steps):
        if look(step, removal.run, lines=0).state == RUNNING:
            removal.outcome.removed.append(f"unit {step}.service")
            if not removal.only_look:
                forget(step, removal.run)


def _remove_files(removal: Removal, entry: Instance) -> None:
    others = removal.others()
    _remove_file(removal, entry.environment)
    link = os.path.join(entry.root, "current", removal.name)
    if os.path.islink(link):
        _remove_file(removal, link)
    for path in unused_releases(removal, entry.root, others):
        _remove_tree(removal, path)
    if removal.is_last():
        for name in _LIBRARIES:
            _remove_tree(removal, os.path.join(entry.root, name))
    _remove_tree(removal, entry.cache)
    _remove_empty(removal, os.path.dirname(entry.cache), is_quiet=True)


def unused_releases(removal: Removal, root: str, others: dict[str, str]) -> list[str]:
    """Environments of the role, whole or not, that no other unit, accepted service, link or process uses."""
    texts = list(others.values())
    for path in glob.glob(os.path.join(glob.escape(removal.state_dir), "*", "accepted.json")):
        if os.path.basename(os.path.dirname(path)) != removal.name:
            texts.append(read_text(path))
    for link in glob.glob(os.path.join(glob.escape(root), "current", "*")):
        if os.path.basename(link) != removal.name:
            texts.append(os.path.realpath(link) + "/")
    texts.extend(removal.processes(removal.unit))
    paths = [path for path in release_paths(root) if not any(f"{path}/" in text for text in texts)]
    return [path for path in paths if not _is_built(removal, path)]


def release_paths(root: str) -> list[str]:
    """The role's environments, with what a build that was killed left beside one: its name with a dot in front."""
    names = os.listdir(root) if os.path.isdir(root) else []
    found = [os.path.join(root, name) for name in sorted(names) if RELEASE_NAME.match(name.lstrip("."))]
    return [path for path in found if os.path.isdir(path)]


def build_of(path: str) -> str:
    """The step that builds this environment, or the one that this lies beside."""
    match = RELEASE_NAME.match(os.path.basename(path).lstrip("."))
    return Place(os.path.join(os.path.dirname(path), match.group() if match else "")).unit


def _is_built(removal: Removal, path: str) -> bool:
    """Is this environment, or the one that this lies beside, being built for another instance?"""
    step = build_of(path)
    if removal.is_last() or look(step, removal.run, lines=0).state != RUNNING:
        return False
    removal.outcome.kept.append(Kept(path, f"{step}.service builds it; another instance may wait for it"))
    return True


def _remove_models(removal: Removal, entry: Instance) -> None:
    for path in entry.models:
        if not os.path.isdir(path):
            continue
        if not removal.models:
            removal.outcome.kept.append(Kept(path, "models stay unless sglang_absent_models is true"))
        elif not os.path.exists(os.path.join(path, RECORD)):
            removal.outcome.kept.append(Kept(path, "the role did not fetch this model"))
        elif removal.is_wanted(path):
            removal.outcome.kept.append(Kept(path, "another instance uses this model"))
        else:
            # a fetch that was killed left its part beside it
            where = places(path)
            for part in (where.fetching, where.replaced, path):
                _remove_tree(removal, part)


def _remove_state(removal: Removal, entry: Instance) -> None:
    for name in STATE_FILES:
        _remove_file(removal, os.path.join(entry.state, name))
    earlier = os.path.join(entry.state, EARLIER)
    for path in sorted(glob.glob(os.path.join(glob.escape(earlier), "*.json"))):
        _remove_file(removal, path)
    _remove_empty(removal, earlier)
    _remove_empty(removal, entry.state)


def _forget(removal: Removal) -> None:
    """Takes the instance out of the record; with the last one also what all of them share, and the record itself."""
    left = removal.made.without_instance(removal.name)
    record = os.path.join(removal.state_dir, NAME)
    if left.instances or removal.others():
        if left != removal.made and not removal.only_look:
            write_made(removal.state_dir, made_text(left))
        return
    for path in reversed(left.directories):
        if path.rstrip("/") != removal.state_dir.rstrip("/"):
            _remove_empty(removal, path)
    _remove_accounts(removal, (("user", left.user), ("group", left.group)))
    _remove_file(removal, record)
    if any(path.rstrip("/") == removal.state_dir.rstrip("/") for path in left.directories):
        _remove_empty(removal, removal.state_dir)


def _remove_accounts(removal: Removal, accounts: tuple[tuple[str, str], ...]) -> None:
    found = [(kind, name) for kind, name in accounts if _exists(removal, kind, name)]
    for kind, name in found:
        removal.outcome.removed.append(f"{kind} {name}")
        # with a user may go the group of the same name
        if removal.only_look or not _exists(removal, kind, name):
            continue
        code, out, errors = removal.run([{"user": "userdel", "group": "groupdel"}[kind], name])
        if code:
            raise RemovalError(
                f"asked to remove the {kind} {name}, which the role made; found exit code {code} ({(errors or out).strip()[:300]}); "
                "end what still uses it and run again"
            )


def _exists(removal: Removal, kind: str, name: str) -> bool:
    return name != "" and removal.run(["getent", {"user": "passwd", "group": "group"}[kind], name])[0] == 0


def _remove_file(removal: Removal, path: str) -> None:
    if not os.path.lexists(path):
        return
    removal.outcome.removed.append(path)
    if not removal.only_look:
        os.unlink(path)


def _remove_tree(removal: Removal, path: str) -> None:
    if not os.path.isdir(path) or os.path.islink(path):
        return
    removal.outcome.removed.append(path)
    if not removal.only_look:
        # what is half gone must not pass for whole
        for mark in (RELEASE_MARK, RECORD):
            if os.path.exists(os.path.join(path, mark)):
                os.unlink(os.path.join(path, mark))
        shutil.rmtree(path)


def _remove_empty(removal: Removal, path: str, is_quiet: bool = False) -> None:
    """Removes a directory in which nothing is left; one that is not empty stays and is named."""
    if not os.path.isdir(path) or os.path.islink(path):
        return
    left = [name for name in sorted(os.listdir(path)) if os.path.join(path, name) not in removal.outcome.removed]
    if left:
        if not is_quiet:
            removal.outcome.kept.append(Kept(path, f"it is not empty: {', '.join(left[:5])}{' ...' if len(left) > 5 else ''}"))
        return
    removal.outcome.removed.append(path)
    if not removal.only_look:
        os.rmdir(path)
