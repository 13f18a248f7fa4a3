# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's place in the control group trees: what keeps its processes together, and ends them all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from .settings import HostsError, Settings

ROOT = Path("/sys/fs/cgroup")
KILL_SECONDS = 10.0


def trees() -> list[Path]:
    """The trees that systemd-nspawn works in: version 2's, and where both versions are mounted systemd's named one."""
    return [tree for tree in (ROOT, ROOT / "unified", ROOT / "systemd") if (tree / "cgroup.procs").exists()]


def check_kernel() -> None:
    """Refuse where the version 2 tree is missing: without it a host cannot be ended reliably."""
    if not any((tree / "cgroup.subtree_control").exists() for tree in trees()):
        raise HostsError(f"no cgroup v2 tree at {ROOT} or {ROOT}/unified: mount one, hosts run in it")


def enter(settings: Settings, name: str) -> None:
    """Move this process into the host's own group of every tree.

    systemd-nspawn makes its groups below its own, so two hosts started from one group would share them.
    """
    for group in _groups(settings, name):
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def kill(settings: Settings, name: str) -> None:
    """End every process of a host at once, also those whose supervisor is gone."""
    for group in _groups(settings, name):
        if (group / "cgroup.kill").exists():
            (group / "cgroup.kill").write_text("1", encoding="ascii")
            _wait_empty(group)


def _wait_empty(group: Path) -> None:
    end = time.monotonic() + KILL_SECONDS
    while "populated 1" in (group / "cgroup.events").read_text(encoding="ascii"):
        if time.monotonic() > end:
            raise HostsError(f"processes in {group} outlived SIGKILL by {KILL_SECONDS:.0f} s: look for I/O that hangs")
        time.sleep(0.02)


def remove(settings: Settings, name: str) -> None:
    """Remove the emptied groups of a host, and the set's own when no host is left."""
    for group in _groups(settings, name):
        for directory, _below, _files in os.walk(group, topdown=False):
            os.rmdir(directory)
        if group.parent.is_dir() and not any(entry.is_dir() for entry in group.parent.iterdir()):
            group.parent.rmdir()


def leftovers(settings: Settings) -> Iterator[str]:
    """Name every group that the set still has."""
    for tree in trees():
        for directory, _below, _files in os.walk(tree / settings.prefix):
            yield f"cgroup {directory}"


def _groups(settings: Settings, name: str) -> list[Path]:
    return [tree / settings.prefix / name for tree in trees()]
