# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All hosts of a set: made together, listed, removed without a trace."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import cgroup, network
from .host import NSPAWN, Host, Spec
from .image import ensure_image
from .settings import HostsError, Settings, run, write_whole

FIRST, LAST = 10, 250  # last parts of the hosts' addresses
# A systemd holds 7 inotify instances; the kernel's 128 for one user are gone with the 18th host.
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 4096

SSH_OPTIONS = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


class Fleet:
    """The hosts of one set."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # beside the cache: the state directory goes with the last host, a lock must not
        self.settings.cache.mkdir(parents=True, exist_ok=True)
        with open(self.settings.cache / f"{self.settings.prefix}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _remains(self) -> list[Host]:
        """Every host of which anything is on the disk, also those that a killed run only began."""
        return [Host(self.settings, path.name) for path in sorted(self.settings.hosts.glob("*"))]

    def hosts(self, names: Iterable[str] = ()) -> list[Host]:
        """The named hosts, or all; it is an error to name one that is not there."""
        known = {host.name: host for host in self._remains() if host.is_made}
        absent = [name for name in names if name not in known]
        if absent:
            raise HostsError(f"no host {', '.join(absent)}; there are: {', '.join(known) or 'none'}. Make it with 'hosts ensure'")
        return [known[name] for name in names] or list(known.values())

    # -- making and removing ------------------------------------------------------------------

    def up(self, specs: list[Spec]) -> list[str]:
        """Make and boot hosts that are not up; return their names."""
        running = [spec.name for spec in specs if Host(self.settings, spec.name).runs]
        if running:
            raise HostsError(f"up: {', '.join(running)} runs already: use 'hosts ensure', or 'hosts down' first")
        return self.ensure(specs)

    def ensure(self, specs: list[Spec]) -> list[str]:
        """Make and boot those hosts that do not run; wait for all; return the names of the new ones.

        What a killed run left of a host is thrown away first.
        """
        names = [spec.name for spec in specs]
        if len(set(names)) != len(names):
            raise HostsError(f"a host is named twice: {', '.join(names)}")
        images = {release: ensure_image(self.settings, release) for release in {spec.release for spec in specs}}
        with self._locked():
            self._prepare()
            new = [spec for spec in specs if self._must_make(spec)]
            for spec in new:
                Host(self.settings, spec.name).create(spec, self._next_number(), images[spec.release])
        for host in self.hosts(names):
            host.wait_up()
        return [spec.name for spec in new]

    def _must_make(self, spec: Spec) -> bool:
        host = Host(self.settings, spec.name)
        if not host.runs:
            host.remove()
            return True
        if host.spec != spec:
            raise HostsError(f"{spec.name} runs as {host.spec}, asked for was {spec}: 'hosts down {spec.name}' first")
        return False

    def _prepare(self) -> None:
        self.settings.hosts.mkdir(parents=True, exist_ok=True)
        self._ensure_key()
        network.ensure_bridge(self.settings)
        if int(INOTIFY.read_text(encoding="ascii")) < INOTIFY_INSTANCES:
            INOTIFY.write_text(str(INOTIFY_INSTANCES), encoding="ascii")

    def _ensure_key(self) -> None:
        key, part = self.settings.key, self.settings.key.with_name("part")
        if key.exists():
            return
        part.unlink(missing_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.settings.prefix, "-f", part)
        # the private half last: where it is, the other is too
        part.with_suffix(".pub").rename(key.with_suffix(".pub"))
        part.rename(key)

    def _next_number(self) -> int:
        """Number the hosts in turn: a connection that ssh kept open for an old host meets no new one."""
        memory = self.settings.cache / f"{self.settings.prefix}.number"
        taken = {host.number for host in self.hosts()}
        last = int(memory.read_text(encoding="ascii")) if memory.exists() else LAST
        turn: list[int] = [*range(last + 1, LAST + 1), *range(FIRST, last + 1)]
        free: list[int] = [number for number in turn if number not in taken]
        if not free:
            raise HostsError(f"all {LAST - FIRST + 1} addresses of {self.settings.network}.0/24 are taken: remove hosts")
        write_whole(memory, str(free[0]))
        return free[0]

    def down(self, names: Iterable[str] = ()) -> list[str]:
        """Remove the named hosts, or all; return the names of those that were there."""
        wanted = set(names)
        with self._locked():
            removed = [host for host in self._remains() if not wanted or host.name in wanted]
            for host in removed:
                host.remove()
            if not any(self.settings.hosts.glob("*")):
                network.remove_bridge(self.settings)
                self._forget()
        return [host.name for host in removed]

    def _forget(self) -> None:
        shutil.rmtree(self.settings.state, ignore_errors=True)

    def leftovers(self) -> list[str]:
        """Everything that the set still has on this machine, apart from the cache."""
        settings = self.settings
        return [
            *_mounts(settings.state),
            *network.leftovers(settings),
            *cgroup.leftovers(settings),
            *_processes(settings.hosts),
            *(f"directory {path}" for path in (NSPAWN / "propagate").glob(f"{settings.prefix}-*")),
            *(f"directory {path}" for path in (settings.state, *settings.hosts.glob("*")) if path.exists()),
        ]

    # -- commands on running hosts ------------------------------------------------------------

    def reboot(self, names: list[str]) -> None:
        """Reboot hosts in an orderly way, all at once, and wait for them."""
        for host, leader in [(host, host.start_reboot()) for host in self.hosts(names)]:
            host.wait_up(not_leader=leader)

    def crash(self, names: list[str]) -> None:
        """Pull the plug of hosts, all at once, and wait until they are up again."""
        for host, leader in [(host, host.start_crash()) for host in self.hosts(names)]:
            host.wait_up(not_leader=leader)

    # -- lists --------------------------------------------------------------------------------

    def inventory(self, names: Iterable[str] = ()) -> str:
        """An Ansible inventory in YAML of the named hosts, or of all, with their groups."""
        hosts = self.hosts(names)
        lines = ["all:", "  hosts:"]
        lines += [f"    {host.name}: {{ansible_host: {host.address}}}" for host in hosts]
        lines += [
            "  vars:",
            "    ansible_user: root",
            f"    ansible_ssh_private_key_file: {json.dumps(str(self.settings.key))}",
            f"    ansible_ssh_common_args: {SSH_OPTIONS}",
            "    ansible_python_interpreter: /usr/bin/python3",
        ]
        groups = sorted({group for host in hosts for group in host.spec.groups})
        lines += ["  children:"] if groups else []
        for group in groups:
            members = ", ".join(f"{host.name}: " for host in hosts if group in host.spec.groups)
            lines.append(f"    {group}: {{hosts: {{{members}}}}}")
        return "\n".join(lines) + "\n"

    def instance_config(self, names: Iterable[str] = ()) -> str:
        """The same as JSON, in the shape of Molecule's instance configuration."""
        hosts = self.hosts(names)
        return json.dumps(
            [
                {
                    "instance": host.name,
                    "address": host.address,
                    "user": "root",
                    "port": 22,
                    "identity_file": str(self.settings.key),
                }
                for host in hosts
            ]
        )

    def table(self) -> str:
        """One line per host: name, address, release, and the process id of its PID 1 or that it is down."""
        return "".join(
            f"{host.name} {host.address} {host.spec.release} {f'pid {host.leader}' if host.leader else 'not up'}\n" for host in self.hosts()
        )


def _mounts(directory: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    targets = [line.split()[4] for line in lines]
    return [f"mount {target}" for target in targets if Path(target).is_relative_to(directory)]


def _processes(directory: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:  # it ended while we looked
            continue
        if f"{directory}/".encode() in command:
            found.append(f"process {entry.name} {command.replace(bytes(1), b' ').decode(errors='replace').strip()}")
    return found
