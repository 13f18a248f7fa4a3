# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model hub for tests: as much of the interface as the hub's own client uses to fetch files, with faults on demand.

Weights are redirected to a second port, which stands for the hub's content network: it must never see a token. Every request is
kept, so that a test can say how often the hub was asked.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional
from urllib.parse import unquote, urlsplit

BLOCK = 64 << 10


def commit_of(files: Mapping[str, bytes]) -> str:
    """A name for a set of files, as git has one."""
    digest = hashlib.sha1(usedforsecurity=False)
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    port: str
    method: str
    path: str
    status: int
    start: int
    token: str


@dataclass
class Hub:
    """``repositories``: name -> commit -> file -> content. ``branches``: (name, branch) -> commit.

    Faults: ``gated`` repositories open to ``tokens`` with access only; ``busy``: how many requests are still answered with 429;
    ``cuts``: file -> bytes after which its transfers break, once each; ``damaged``: files that come with another content;
    ``bytes_per_second`` of every transfer, 0 for no limit.
    """

    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    branches: dict[tuple[str, str], str] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    tokens: dict[str, set[str]] = field(default_factory=dict)
    busy: int = 0
    cuts: dict[str, list[int]] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    bytes_per_second: int = 0
    requests: list[Asked] = field(default_factory=list)
    endpoint: str = ""
    content_endpoint: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, repository: str, files: Mapping[str, bytes], branch: str = "main") -> str:
        commit = commit_of(files)
        self.repositories.setdefault(repository, {})[commit] = dict(files)
        self.branches[(repository, branch)] = commit
        return commit

    def transfers(self, name: str = "") -> list[Asked]:
        """The requests that content came with."""
        return [asked for asked in self.requests if asked.method == "GET" and "/api/" not in asked.path and asked.path.endswith(name)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub
    port: str

    def log_message(self, *args: Any) -> None:
        """The requests are kept; nobody reads a log."""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.start = int((re.match(r"bytes=(\d+)-", self.headers.get("Range", "")) or [0, "0"])[1])
        self.token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        with self.hub.lock:
            busy, self.hub.busy = self.hub.busy > 0, max(self.hub.busy - 1, 0)
        if busy:
            self._error(429, "", "Too many requests", {"Retry-After": "1"})
        elif self.port == "content":
            self._content(path)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path):
            self._describe(match[1], match[2])
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(match[1], match[2], match[3])
        else:
            self._error(404, "EntryNotFound", "no such address")

    # ---- the hub itself

    def _files(self, repository: str, revision: str) -> Optional[tuple[str, dict[str, bytes]]]:
        """The commit and its files; None when the answer was an error."""
        if self.token and self.token not in self.hub.tokens:
            self._error(401, "", "Invalid credentials in Authorization header")
        elif repository not in self.hub.repositories:
            self._error(401, "RepoNotFound", "Invalid username or password.")
        else:
            commit = self.hub.branches.get((repository, revision), revision)
            if commit in self.hub.repositories[repository]:
                return commit, self.hub.repositories[repository][commit]
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return None

    def _describe(self, repository: str, revision: str) -> None:
        found = self._files(repository, revision)
        if found is None:
            return
        siblings = []
        for name, content in found[1].items():
            blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
            entry: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": blob}
            if _is_large(name):
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        body = json.dumps({"id": repository, "sha": found[0], "gated": "manual" if repository in self.hub.gated else False,
                           "siblings": siblings}).encode()  # fmt: skip
        self._send(200, {"Content-Type": "application/json"}, body)

    def _resolve(self, repository: str, revision: str, name: str) -> None:
        found = self._files(repository, revision)
        if found is None:
            return
        if repository in self.hub.gated and repository not in self.hub.tokens.get(self.token, set()):
            self._error(403 if self.token else 401, "GatedRepo", f"Access to model {repository} is restricted.")
            return
        commit, files = found
        if name not in files:
            self._error(404, "EntryNotFound", "Entry not found")
            return
        content = files[name]
        sha256 = hashlib.sha256(content).hexdigest()
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if not _is_large(name):
            blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
            self._transfer(name, content, {**headers, "ETag": f'"{blob}"'})
            return
        headers.update({"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{sha256}"', "ETag": f'"{sha256}"'})
        headers["Location"] = f"{self.hub.content_endpoint}/{sha256}/{repository}/{commit}/{name}"
        self._send(302, headers, b"")

    # ---- the content network

    def _content(self, path: str) -> None:
        _sha256, owner, short, commit, name = path.lstrip("/").split("/", 4)
        self._transfer(name, self.hub.repositories[f"{owner}/{short}"][commit][name], {"Accept-Ranges": "bytes"})

    def _transfer(self, name: str, content: bytes, headers: dict[str, str]) -> None:
        if self.start:
            headers["Content-Range"] = f"bytes {self.start}-{len(content) - 1}/{len(content)}"
        body = content[self.start :]
        if name in self.hub.damaged:
            body = bytes(len(body))
        with self.hub.lock:
            cuts = self.hub.cuts.get(name) if self.command == "GET" else None
            cut = cuts.pop(0) if cuts else None
        self._send(206 if self.start else 200, headers, body, cut)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, cut: Optional[int] = None) -> None:
        with self.hub.lock:
            self.hub.requests.append(Asked(self.port, self.command, unquote(urlsplit(self.path).path), status, self.start, self.token))
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for begin in range(0, len(body) if cut is None else min(cut, len(body)), BLOCK):
                self.wfile.write(body[begin : min(begin + BLOCK, len(body) if cut is None else cut)])
                if self.hub.bytes_per_second:
                    time.sleep(BLOCK / self.hub.bytes_per_second)
        except OSError:
            cut = 0
        if cut is not None:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def _error(self, status: int, code: str, message: str, more: Optional[Mapping[str, str]] = None) -> None:
        headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {}), **(more or {})}
        self._send(status, headers, json.dumps({"error": message}).encode())


def _is_large(name: str) -> bool:
    return name.endswith((".safetensors", ".bin", ".gguf"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def serving(hub: Hub, address: str = "127.0.0.1", content: str = "localhost") -> Iterator[Hub]:
    """The hub on two ports of an address, until the end of the block; ``content``: another name of it, as another network has one."""
    servers = {}
    for port in ("hub", "content"):
        handler = type("Handler", (_Handler,), {"hub": hub, "port": port})
        servers[port] = _Server((address, 0), handler)
        threading.Thread(target=servers[port].serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    hub.endpoint = f"http://{address}:{servers['hub'].server_address[1]}"
    hub.content_endpoint = f"http://{content}:{servers['content'].server_address[1]}"
    try:
        yield hub
    finally:
        for server in servers.values():
            server.shutdown()
            server.server_close()
