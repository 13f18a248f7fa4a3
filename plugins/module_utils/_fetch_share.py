# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets one other host copy one directory of this host for a while. Private to this collection: may change at any time.

An rsync daemon that can only read, as a transient unit whose time is limited, for the addresses that are named and with a word that is
used once. It needs no trust between the hosts and leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._fetch_swap import places
from ansible_collections.inferops.sglang.plugins.module_utils._hub import SourceError
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import RUNNING, LongStep, forget, look, start_or_join
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

ROOM = "/run"
USER = "inferops"
_START_S = 10.0
_CONFIGURATION = """\
port = {port}
use chroot = yes
uid = root
gid = root
read only = yes
list = no
reverse lookup = no

[model]
path = {path}
auth users = {user}
secrets file = {secrets}
hosts allow = {allow}
hosts deny = *
"""


@dataclass(frozen=True)
class Share:
    """One directory, one port, the names or addresses that may take it, the word they must know, and how many seconds at most."""

    path: str
    port: int
    allow: Sequence[str] = ()
    secret: str = ""
    timeout_s: int = 0

    @property
    def unit(self) -> str:
        return f"inferops-share-{hashlib.sha256(places(self.path).path.encode()).hexdigest()[:12]}"


# whether somebody listens on a port of this host
Listens = Callable[[int], bool]


def configuration(share: Share, place: str) -> str:
    """The daemon's configuration file."""
    return _CONFIGURATION.format(
        port=share.port, path=places(share.path).path, user=USER, secrets=os.path.join(place, "secret"), allow=" ".join(share.allow)
    )


def start(share: Share, run: Runner, listens: Listens, clock: Clock, room: str = ROOM) -> None:
    """Starts it, in place of one that still gives this directory to somebody. Raises SourceError, LongStepError."""
    asked = f"{share.path} to be copied from this host at port {share.port}"
    path = places(share.path).path
    if not os.path.isdir(path):
        raise SourceError(asked, "no such directory", "give the directory of a model that is complete", "model_peer")
    if not share.allow or not all(_plain(name) for name in share.allow):
        raise SourceError(asked, f"the hosts {list(share.allow)}", "name the addresses of the hosts that may copy it", "model_peer")
    if any(character in path for character in "%\\\n#;") or path != path.strip():
        raise SourceError(asked, "characters that rsync's configuration reads otherwise", "give the directory another name", "model_peer")
    rsync = shutil.which("rsync", path=os.environ.get("PATH", "") + os.pathsep + "/usr/bin")
    if rsync is None:
        todo = "install the package rsync on that host (Debian, Ubuntu, Red Hat and others call it so)"
        raise SourceError(asked, "no rsync", todo, "model_peer")
    stop(share, run, room)
    if listens(share.port):
        raise SourceError(
            asked, "that another program listens there", "give another port (sglang_model_peer_port), or stop that program", "model_peer"
        )
    place = os.path.join(room, share.unit)
    os.makedirs(place, 0o700)
    _write(os.path.join(place, "secret"), f"{USER}:{share.secret}\n")
    _write(os.path.join(place, "rsyncd.conf"), configuration(share, place))
    step = LongStep(
        unit=share.unit,
        argv=(rsync, "--daemon", "--no-detach", f"--config={os.path.join(place, 'rsyncd.conf')}"),
        description=f"Gives {share.path} to {' '.join(share.allow)}",
        timeout_s=share.timeout_s,
    )
    start_or_join(step, run)
    seen = wait_until(
        look=lambda: (look(share.unit, run, lines=0).state == RUNNING, listens(share.port)),
        done=lambda value: not value[0] or value[1],
        timeout_s=_START_S, interval_s=0.1, clock=clock,
    )  # fmt: skip
    if seen.value != (True, True):
        state = look(share.unit, run)
        last = f" ({state.last_lines[-1]})" if state.last_lines else ""
        stop(share, run, room)
        raise SourceError(asked, f"that it does not start: {state.sentence()}{last}", "look at the host's journal", "model_peer")


def stop(share: Share, run: Runner, room: str = ROOM) -> bool:
    """Ends it, and says whether there was anything to end."""
    place = os.path.join(room, share.unit)
    there = os.path.isdir(place) or look(share.unit, run, lines=0).state != "absent"
    forget(share.unit, run)
    shutil.rmtree(place, ignore_errors=True)
    return there


def listens(port: int) -> bool:
    """Whether somebody answers on this port of this host."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _plain(name: str) -> bool:
    return bool(name) and not name.startswith("-") and all(character.isalnum() or character in ".:-_/" for character in name)


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
