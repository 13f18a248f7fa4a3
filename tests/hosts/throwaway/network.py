# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The private network: one bridge, and for each host a namespace with one pair of interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .settings import Settings, run

NAMESPACES = Path("/run/netns")
INTERFACES = Path("/sys/class/net")


def address(settings: Settings, number: int) -> str:
    """IPv4 address of the host with this number; number 1 is the controller."""
    return f"{settings.network}.{number}"


def namespace(settings: Settings, name: str) -> str:
    """Name of a host's network namespace."""
    return f"{settings.prefix}-{name}"


def ensure_bridge(settings: Settings) -> None:
    """Make the bridge if it is not there, and see to it that it is up and has the controller's address."""
    if not (INTERFACES / settings.bridge).exists():
        run("ip", "link", "add", settings.bridge, "type", "bridge")
    run("ip", "address", "replace", f"{address(settings, 1)}/24", "dev", settings.bridge)
    run("ip", "link", "set", settings.bridge, "up")


def remove_bridge(settings: Settings) -> None:
    """Remove the bridge, if it is there."""
    run("ip", "link", "delete", settings.bridge, check=False)


def attach(settings: Settings, name: str, number: int) -> None:
    """Give a host its namespace, with loopback and an eth0 that is on the bridge."""
    netns = namespace(settings, name)
    run("ip", "netns", "add", netns)
    run("ip", "link", "add", _pair(settings, number), "type", "veth", "peer", "name", "eth0", "netns", netns)
    run("ip", "link", "set", _pair(settings, number), "master", settings.bridge, "up")
    run("ip", "-n", netns, "link", "set", "lo", "up")
    run("ip", "-n", netns, "address", "add", f"{address(settings, number)}/24", "dev", "eth0")
    run("ip", "-n", netns, "link", "set", "eth0", "up")


def detach(settings: Settings, name: str, number: int | None) -> None:
    """Take the namespace and the pair away, as far as they are there and the number is known.

    The pair goes by name: sockets that still say goodbye can hold the namespace for minutes, and with it
    the pair's name.
    """
    if number is not None:
        run("ip", "link", "delete", _pair(settings, number), check=False)
    run("ip", "netns", "delete", namespace(settings, name), check=False)


def leftovers(settings: Settings) -> Iterator[str]:
    """Name every interface and namespace that the set still has."""
    ours = re.compile(rf"{re.escape(settings.prefix)}(0|v\d+)")
    yield from (f"interface {link.name}" for link in INTERFACES.iterdir() if ours.fullmatch(link.name))
    yield from (f"network namespace {path.name}" for path in NAMESPACES.glob(f"{settings.prefix}-*"))


def _pair(settings: Settings, number: int) -> str:
    return f"{settings.prefix}v{number}"
