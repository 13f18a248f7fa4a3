# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One throw-away host: made of the image, booted, watched, crashed, removed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from . import cgroup, network
from .settings import HostsError, Settings, become, run, write_whole

RELEASE = "bookworm"
REBOOT = 133  # systemd-nspawn's exit code when the host asked for a reboot
OPEN_FILES = 16384
NSPAWN = Path("/run/systemd/nspawn")  # where systemd-nspawn keeps a directory and a lock for each host
# What every program that is run inside a host sees: nothing of the controller's.
INSIDE = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TERM": "dumb",
}


@dataclass(frozen=True)
class Spec:
    """What was asked for: ``bind_ro`` are SRC:DST, ``tmpfs`` are DST:SIZE (64M, 2G)."""

    name: str
    release: str = RELEASE
    groups: tuple[str, ...] = ()
    bind_ro: tuple[str, ...] = ()
    tmpfs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", self.name):
            raise HostsError(f"host name {self.name!r}: use up to 40 of a-z, 0-9 and -, with a letter first")
        for bind in self.bind_ro:
            if not re.fullmatch(r"/[^:]*:/[^:]+", bind) or not os.path.exists(bind.partition(":")[0]):
                raise HostsError(f"{self.name}: bind {bind!r}: use SRC:DST, both absolute, where SRC exists")
        for entry in self.tmpfs:
            if not re.fullmatch(r"/[^:]+:[0-9]+[KMG]", entry):
                raise HostsError(f"{self.name}: tmpfs {entry!r}: use DST:SIZE, such as /opt/small:64M")

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> Spec:
        """Make one from JSON: one text each for name and release, a list of texts for every other field."""

        def texts(key: str) -> tuple[str, ...]:
            value = fields.get(key, [])
            if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
                raise HostsError(f"{fields['name']}: {key} is {value!r}: use a list of texts")
            return tuple(value)

        return cls(
            name=str(fields["name"]),
            release=str(fields.get("release", RELEASE)),
            groups=texts("groups"),
            bind_ro=texts("bind_ro"),
            tmpfs=texts("tmpfs"),
        )


class Host:
    """A host of the set, whether it is up, stale or not there at all."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.directory = settings.hosts / name

    @property
    def _record_file(self) -> Path:
        return self.directory / "host.json"

    @property
    def _alive(self) -> Path:
        """The file that the supervisor keeps locked."""
        return self.directory / "alive"

    @property
    def _supervisor(self) -> Path:
        """The file with the supervisor's process id; the supervisor itself writes it."""
        return self.directory / "pid"

    @property
    def is_made(self) -> bool:
        """Whether the host is on the disk; a run that was killed early may have left less."""
        return self._record_file.exists()

    @property
    def _record(self) -> dict[str, object]:
        return dict(json.loads(self._record_file.read_text(encoding="utf-8")))

    @property
    def spec(self) -> Spec:
        """What the host was made from."""
        return Spec.from_fields(self._record)

    @property
    def number(self) -> int:
        """The last part of the host's address."""
        return int(str(self._record["number"]))

    @property
    def address(self) -> str:
        """The host's IPv4 address."""
        return network.address(self.settings, self.number)

    @property
    def machine(self) -> str:
        """The host's name on the controller, where several sets may have one of the same name."""
        return f"{self.settings.prefix}-{self.name}"

    # -- life ---------------------------------------------------------------------------------

    def create(self, spec: Spec, number: int, image: Path) -> None:
        """Make the disk and the network, and start to boot; a failure half way leaves nothing."""
        try:
            for part in ("upper", "work", "root"):
                (self.directory / part).mkdir(parents=True)
            record = {**asdict(spec), "number": number}
            write_whole(self._record_file, json.dumps(record))
            self._mount(image)
            self._personalize()
            network.attach(self.settings, self.name, number)
            self._start_supervisor()
        except BaseException:
            self.remove()
            raise

    def _mount(self, image: Path) -> None:
        layers = f"lowerdir={image},upperdir={self.directory}/upper,workdir={self.directory}/work"
        run("mount", "-t", "overlay", self.machine, "-o", layers, self.directory / "root")

    def _personalize(self) -> None:
        root = self.directory / "root"
        keys = root / "root/.ssh/authorized_keys"
        keys.write_bytes(self.settings.key.with_suffix(".pub").read_bytes())
        keys.chmod(0o600)
        (root / "etc/hostname").write_text(f"{self.name}\n", encoding="ascii")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.name}\n", encoding="ascii")

    def _start_supervisor(self) -> None:
        command = [sys.executable, "-B", "-P", "-s", "-m", "throwaway", "supervise", str(self.directory)]
        with open(self.directory / "console.log", "ab") as log, open(self._alive, "wb") as alive:
            # the supervisor inherits the lock, and the kernel lets go of it in the moment of its death
            fcntl.flock(alive, fcntl.LOCK_EX)
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                pass_fds=[alive.fileno()],
            )

    def supervise(self) -> None:
        """Run the host until it powers off, booting it again after a reboot and after a crash() of ours."""
        cgroup.enter(self.settings, self.name)
        write_whole(self._supervisor, str(os.getpid()))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        soft = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        again = self.directory / "again"
        while True:
            ended = subprocess.run(self._nspawn(), env=environment, check=False).returncode
            if ended != REBOOT and not again.exists():
                return
            again.unlink(missing_ok=True)

    def _nspawn(self) -> list[str]:
        spec = self.spec
        return [
            *("systemd-nspawn", "--quiet", "--boot", "--console=pipe"),
            *("--register=no", "--keep-unit", "--resolv-conf=off", "--timezone=off", "--link-journal=no"),
            f"--directory={self.directory}/root",
            f"--machine={self.machine}",
            f"--hostname={self.name}",
            f"--network-namespace-path={network.NAMESPACES / network.namespace(self.settings, self.name)}",
            *(f"--bind-ro={bind}" for bind in spec.bind_ro),
            *("--tmpfs={}:mode=0755,size={}".format(*entry.split(":")) for entry in spec.tmpfs),
        ]

    def remove(self) -> None:
        """Pull the plug and take everything away, however much of it there is."""
        cgroup.kill(self.settings, self.name)
        network.detach(self.settings, self.name, self.number if self.is_made else None)
        self._unmount()
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(NSPAWN / "propagate" / self.machine, ignore_errors=True)
        cgroup.remove(self.settings, self.name)

    def _unmount(self) -> None:
        root = self.directory / "root"
        if not os.path.ismount(root):
            return
        status = root.stat()
        # lazily: a program outside that still looks in does not keep the mount in the tree
        run("umount", "--lazy", root)
        (NSPAWN / "locks" / f"inode-{status.st_dev}:{status.st_ino}").unlink(missing_ok=True)

    # -- watching -----------------------------------------------------------------------------

    @property
    def runs(self) -> bool:
        """Whether the host's supervisor lives."""
        try:
            with open(self._alive, "rb") as alive:
                fcntl.flock(alive, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @property
    def leader(self) -> int | None:
        """Process id, on the controller, of the host's PID 1, if the host got that far."""
        if not self.runs or not self._supervisor.exists():
            return None
        nspawn = _child(int(self._supervisor.read_text(encoding="ascii")), "systemd-nspawn")
        return nspawn and _child(nspawn, "systemd")

    def wait_up(self, not_leader: int | None = None) -> None:
        """Wait until systemd has started everything and sshd listens.

        ``not_leader`` is the PID 1 of the boot before, whose answers do not count.
        """
        self._wait_for("a new boot" if not_leader else "a boot", lambda: self.leader not in (None, not_leader))
        self._wait_for("systemd to have started every unit", self._systemd_is_done)
        self._wait_for("sshd", self._ssh_listens)

    def _wait_for(self, what: str, done: Callable[[], bool]) -> None:
        end = time.monotonic() + self.settings.wait
        while not done():
            if not self.runs or time.monotonic() > end:
                state = f"not so after {self.settings.wait:.0f} s" if self.runs else "it powered off"
                raise HostsError(f"{self.name}: waited for {what}; {state}. Last lines of its console:\n{self._tail()}")
            time.sleep(0.1)

    def _systemd_is_done(self) -> bool:
        if self.leader is None:
            return False
        said = subprocess.run(self.command("systemctl", "is-system-running"), env=INSIDE, capture_output=True, text=True, check=False)
        # a unit of the test's own may fail to start at boot: that host is up too
        return said.stdout.strip() in ("running", "degraded")

    def _ssh_listens(self) -> bool:
        try:
            socket.create_connection((self.address, 22), timeout=5).close()
        except OSError:
            return False
        return True

    def _tail(self) -> str:
        try:
            lines = (self.directory / "console.log").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            return str(error)
        return "\n".join(lines[-15:])

    # -- commands -----------------------------------------------------------------------------

    def command(self, *words: str) -> list[str]:
        """The command line that runs ``words`` inside the host, as root, in all its namespaces."""
        leader = self.leader
        if leader is None:
            raise HostsError(f"{self.name} is not up: start it with 'hosts ensure {self.name}'")
        everything = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd")
        return ["nsenter", f"--target={leader}", *everything, "--", *words]

    def execute(self, words: list[str]) -> NoReturn:
        """Become a command inside the host, with this process's input and output."""
        become(*self.command(*words), environment=INSIDE)

    def start_reboot(self) -> int | None:
        """Ask for an orderly reboot that keeps the disk; return the PID 1 that goes."""
        leader = self.leader
        run(*self.command("systemctl", "reboot"))
        return leader

    def start_crash(self) -> int | None:
        """Pull the plug and boot again from the same disk; return the PID 1 that went."""
        leader = self.leader
        if leader is None:
            raise HostsError(f"{self.name} is not up: there is nothing to crash")
        (self.directory / "again").touch()
        os.kill(leader, signal.SIGKILL)
        return leader


def _child(parent: int, name: str) -> int | None:
    """The child of a process that runs the named program."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
        named = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == name]
    except OSError:  # it ended while we looked
        return None
    return int(named[0]) if named else None
