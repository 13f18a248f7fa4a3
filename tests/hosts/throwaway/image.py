# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base image: a Debian root without kernel, built once per release and recipe, then only read."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from .settings import HostsError, Settings, run

PACKAGES = (
    # a host that a fleet could have: init, log, logins
    *("systemd", "systemd-sysv", "libpam-systemd", "libnss-systemd", "dbus", "openssh-server"),
    # what Ansible and the roles need on it
    *("python3", "python3-apt", "python3-venv", "git", "rsync", "sudo", "iproute2", "procps", "ca-certificates"),
)

# Units that would fail or wait in a host that shares its kernel with others, or would reach for the network.
MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dev-hugepages.mount",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "sys-fs-fuse-connections.mount",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
)

# Documentation is more than a third of the files, and no test reads it.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")

# Many short logins at once are what Ansible does; sshd's own default drops some of them.
SSHD = "UseDNS no\nPrintMotd no\nMaxStartups 100\n"


def _customize() -> list[str]:
    """Shell lines that turn a Debian root into a host; mmdebstrap passes the root as $1."""
    masked = [f'ln -sf /dev/null "$1/etc/systemd/system/{unit}"' for unit in MASKED]
    return [
        # empty, not absent: every host makes its own identity at its first boot
        'rm -f "$1/var/lib/dbus/machine-id"; : >"$1/etc/machine-id"',
        # the directory makes the journal survive a reboot
        'mkdir -p "$1/var/log/journal"; mkdir -p -m 700 "$1/root/.ssh"',
        f'printf %s {shlex.quote(SSHD)} >"$1/etc/ssh/sshd_config.d/throwaway.conf"',
        'ln -sf /lib/systemd/system/multi-user.target "$1/etc/systemd/system/default.target"',
        *masked,
    ]


def _recipe(settings: Settings, release: str) -> list[str]:
    return [
        *("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root"),
        f"--include={','.join((*PACKAGES, *settings.packages))}",
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
        *(f"--customize-hook={line}" for line in _customize()),
        release,
    ]


def _mirror(settings: Settings) -> str:
    """The mirror that this machine's own apt uses."""
    if settings.mirror:
        return settings.mirror
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian").stdout.split()
    if not found:
        raise HostsError("apt knows no Debian mirror: run apt-get update, or set INFEROPS_HOSTS_MIRROR")
    return found[0]


def ensure_image(settings: Settings, release: str) -> Path:
    """Return the root directory of the release's image, building it if no earlier run has.

    The name carries a digest of the whole recipe, so a changed recipe is a new image.
    """
    recipe = _recipe(settings, release)
    digest = hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]
    image = settings.cache / f"{release}-{digest}"
    settings.cache.mkdir(parents=True, exist_ok=True)
    with open(settings.cache / "image.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.is_dir():
            _build(recipe, image, _mirror(settings))
    return image


def _build(recipe: list[str], image: Path, mirror: str) -> None:
    part = image.with_name(image.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    print(f"hosts: building {image}", file=sys.stderr, flush=True)
    # mmdebstrap's own scratch files go beside the image: /tmp may be small or mounted nodev
    environment = {**os.environ, "TMPDIR": str(image.parent)}
    done = subprocess.run([*recipe, str(part), mirror], env=environment, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        shutil.rmtree(part, ignore_errors=True)
        raise HostsError(f"building {image} failed: mmdebstrap's exit code is {done.returncode}, see above")
    part.rename(image)
