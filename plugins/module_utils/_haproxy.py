# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of an HAProxy, through its admin socket. Private to this collection: may change at any time."""

from __future__ import annotations

import csv
import io
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from ansible_collections.inferops.sglang.plugins.module_utils._http import plain
from ansible_collections.inferops.sglang.plugins.module_utils._load import Load
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

_POLL_S = 0.5
_TIMEOUT_S = 10.0
# bits of srv_admin_state: what somebody asked for by hand or in the configuration
_FORCED_MAINT = 0x01
_CONFIGURED_MAINT = 0x04
_FORCED_DRAIN = 0x08
_TAKEN_OUT = _FORCED_MAINT | _CONFIGURED_MAINT | _FORCED_DRAIN
# what the status of a server that gets requests begins with
_SERVES = ("UP", "no check", "NOLB")

# a command -> what HAProxy answers; raises OSError where no answer comes
Talk = Callable[[str], str]


class HaproxyError(Exception):
    """The message tells what was asked, what was found, and what to do."""


@dataclass(frozen=True)
class Server:
    """``out``: somebody asked HAProxy to send it nothing new. ``status``: HAProxy's own word. ``sessions``: under way or queued for it.
    ``others``: servers beside it that get requests."""

    out: bool
    status: str
    sessions: int
    others: int

    @property
    def serves(self) -> bool:
        return not self.out and self.status.startswith(_SERVES)


@dataclass(frozen=True)
class Haproxy:
    """One server of one backend. ``name`` is the socket, for people."""

    name: str
    backend: str
    server: str
    talk: Talk
    clock: Clock = field(default_factory=Clock)

    def read(self) -> Server:
        """Raises HaproxyError."""
        admin = self._admin_state()
        table = self._statistics()
        mine = table.get(self.server)
        if mine is None:
            raise self._error("its figures", "none in show stat", "mend the name in sglang_balancers")
        others = sum(
            row.get("status", "").startswith(_SERVES) for name, row in table.items() if name not in (self.server, "BACKEND", "FRONTEND")
        )
        sessions = _number(mine.get("scur")) + _number(mine.get("qcur"))
        return Server(bool(admin & _TAKEN_OUT), mine.get("status", ""), sessions, others)

    def load(self) -> Load:
        return Load(self.read().sessions)

    def set_state(self, state: str) -> None:
        """C(drain), C(maint) or C(ready). Raises HaproxyError."""
        said = self._ask(f"set server {self.backend}/{self.server} state {state}").strip()
        if said:
            known = "ermission" in said
            do = "give the socket the level admin (stats socket ... level admin)" if known else "mend the names in sglang_balancers"
            raise self._error(f"the state {state}", said, do)

    def wait_serving(self, timeout_s: float) -> float:
        """Seconds until HAProxy sends requests again. Raises HaproxyError."""
        outcome = wait_until(self.read, lambda server: server.serves, timeout_s, _POLL_S, self.clock)
        if not outcome.ok:
            do = "look what HAProxy's check of this server asks for"
            raise self._error(f"it to be up within {timeout_s:g} s", f"status {outcome.value.status!r}", do)
        return outcome.elapsed_s

    def _admin_state(self) -> int:
        said = self._ask(f"show servers state {self.backend}")
        header: list[str] = []
        for line in said.splitlines():
            words = line.split()
            if words[:1] == ["#"]:
                header = words[1:]
            elif header and len(words) >= 7:
                row = dict(zip(header, words))
                if row.get("srv_name") == self.server:
                    return _number(row.get("srv_admin_state"))
        if header:
            do = "mend the name in sglang_balancers, or give the backend this server first: until it runs it is down there"
            raise self._error("its state", f"no server {self.server} in backend {self.backend}", do)
        found = " ".join(said.split())[:200] or "nothing"
        raise self._error("its state", found, "mend the backend in sglang_balancers, or give the socket the level operator or admin")

    def _statistics(self) -> dict[str, dict[str, str]]:
        text = self._ask("show stat")
        rows = csv.DictReader(io.StringIO(text[2:] if text.startswith("# ") else text))
        return {row["svname"]: row for row in rows if row.get("pxname") == self.backend and row.get("svname")}

    def _ask(self, command: str) -> str:
        try:
            return self.talk(command)
        except OSError as error:
            do = "run with become, or delegate to a host that may use it" if isinstance(error, PermissionError) else (
                "start HAProxy, mend its socket in sglang_balancers, or take the entry out"
            )  # fmt: skip
            raise self._error(f"an answer to {command.split(' ', 1)[0]}", plain(error), do) from error

    def _error(self, asked: str, found: str, do: str) -> HaproxyError:
        return HaproxyError(f"haproxy {self.name} {self.backend}/{self.server}: asked for {asked}, found {found}; {do}")


def talker(address: str, timeout_s: float = _TIMEOUT_S) -> Talk:
    """Through a path, or HOST:PORT. Every command has a connection of its own, as HAProxy closes it."""

    def talk(command: str) -> str:
        with _connected(address, timeout_s) as connection:
            connection.sendall(f"{command}\n".encode())
            pieces: list[bytes] = []
            while True:
                piece = connection.recv(65536)
                if not piece:
                    return b"".join(pieces).decode("utf-8", "replace")
                pieces.append(piece)

    return talk


def _connected(address: str, timeout_s: float) -> socket.socket:
    if address.startswith("/"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            raise
        return connection
    host, _colon, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)


def bad_address(address: str) -> str:
    """What is wrong with the address of a socket, empty for nothing."""
    if address.startswith("/"):
        return "" if os.path.normpath(address) != "/" else "no file"
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:]+):(\d{1,5})", address)
    return "" if found and 0 < int(found[2]) < 65536 else "neither a path nor HOST:PORT"


def _number(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isdigit() else 0
