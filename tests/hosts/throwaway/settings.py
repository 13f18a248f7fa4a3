# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a set of hosts lives, and how its parts are named.

Two sets with different prefix, network and state directory never meet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

# Debian's package for each program that is called.
TOOLS = {
    "apt-get": "apt",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "systemd-nspawn": "systemd-container",
}


class HostsError(Exception):
    """A command that cannot be done; the text says what was asked, what was found and what to do."""


@dataclass(frozen=True)
class Settings:
    """One set of hosts.

    ``network`` is the first three numbers of a /24, the controller is .1 in it; ``wait`` is how long
    one host may take to come up, in seconds.
    """

    state: Path
    cache: Path
    prefix: str
    network: str
    mirror: str
    packages: tuple[str, ...]
    wait: float

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the INFEROPS_HOSTS_* variables that README.md lists."""

        def value(name: str, default: str) -> str:
            return os.environ.get(f"INFEROPS_HOSTS_{name}") or default

        prefix = value("PREFIX", "infops")
        if len(prefix) > 10:  # the kernel ends an interface's name at 15 characters, "v250" needs 4
            raise HostsError(f"INFEROPS_HOSTS_PREFIX is {prefix!r}: {len(prefix)} characters, use at most 10")
        return cls(
            state=Path(value("STATE", "/var/lib/inferops-hosts")),
            cache=Path(value("CACHE", "/var/cache/inferops-hosts")),
            prefix=prefix,
            network=value("NET", "10.79.0"),
            mirror=value("MIRROR", ""),
            packages=tuple(value("PACKAGES", "").replace(",", " ").split()),
            wait=float(value("WAIT", "120")),
        )

    @property
    def hosts(self) -> Path:
        """Directory with one directory per host."""
        return self.state / "hosts"

    @property
    def key(self) -> Path:
        """The private key that opens root's account on every host of the set."""
        return self.state / "id_ed25519"

    @property
    def bridge(self) -> str:
        """Name of the bridge that joins the hosts and the controller."""
        return f"{self.prefix}0"


def check_machine() -> None:
    """Refuse early, with the remedy, where hosts cannot be made at all."""
    if os.geteuid() != 0:
        raise HostsError(f"throw-away hosts need root for mounts and namespaces; this is uid {os.geteuid()}")
    missing = {program: package for program, package in TOOLS.items() if not shutil.which(program)}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise HostsError(f"missing {', '.join(sorted(missing))}: apt-get install --no-install-recommends {packages}")


def run(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program and return what it said; unless told otherwise a failure is an error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise HostsError(f"{' '.join(map(str, command))}: exit code {done.returncode}: {said}")
    return done


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step: a run that is killed leaves the old one, the new one or none, never a part."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.rename(path)


def become(*command: str | Path, environment: dict[str, str]) -> NoReturn:
    """Become another program, with nothing but the given environment."""
    words = [str(word) for word in command]
    os.execvpe(words[0], words, environment)
