# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real SGLang router and the real HAProxy in front of throw-away hosts, and a client whose requests must not fail."""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.host import ROOT

REQUIREMENTS = ROOT / "tests/support/router_requirements.txt"
LIMIT = 60.0

# The server's health is asked often, and what fails is not tried again on another server: a client sees every mistake.
_HAPROXY = """\
global
    stats socket ipv4@{address}:{admin} level admin
defaults
    mode http
    retries 0
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind {address}:{port}
    default_backend sglang
backend sglang
    balance roundrobin
    option httpchk GET /health
    default-server check inter 500ms rise 1 fall 2
{servers}
"""


@dataclass
class Router:
    """SGLang's router, which can be stopped and started."""

    url: str
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it calls every worker of its command line healthy."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        servers = {word for word in self.command if word.startswith("http://")}
        until(lambda: {url for url, worker in self.workers().items() if worker["is_healthy"]} == servers)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, path: str, body: Any = None, method: str = "GET") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def workers(self) -> dict[str, dict[str, Any]]:
        """What an operator sees of each worker, by its address; what the router makes up anew for each is left out."""
        seen = self.ask("/workers")["workers"]
        return {worker.pop("url"): {key: value for key, value in worker.items() if key not in ("id", "load")} for worker in seen}

    def remove(self, url: str) -> None:
        identity = next(worker["id"] for worker in self.ask("/workers")["workers"] if worker["url"] == url)
        self.ask(f"/workers/{identity}", method="DELETE")
        until(lambda: url not in self.workers())

    def add(self, url: str, **more: Any) -> None:
        self.ask("/workers", {"url": url, **more}, "POST")
        until(lambda: self.workers().get(url, {}).get("is_healthy"))


@dataclass
class Haproxy:
    """HAProxy, asked through its admin socket."""

    url: str
    admin: tuple[str, int]

    def statuses(self) -> dict[str, str]:
        """HAProxy's word for each server."""
        with socket.create_connection(self.admin, 10) as connection:
            connection.sendall(b"show stat\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        header, *rows = [line.split(",") for line in text.removeprefix("# ").splitlines() if line]
        found = [dict(zip(header, row, strict=False)) for row in rows]
        return {row["svname"]: row["status"] for row in found if row["pxname"] == "sglang" and row["svname"] != "BACKEND"}


@dataclass
class Load:
    """A client that asks a few times a second, through one address after the other. Every second answer is a stream of some seconds."""

    urls: Sequence[str]
    most: int = 2000
    answered: int = 0
    streamed: int = 0
    failures: list[str] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _asked: int = 0

    def run(self) -> None:
        while not self._end.is_set():
            with self._lock:
                number = self._asked
                self._asked += 1
            if number >= self.most:
                return
            stream = number % 2 == 1
            problem = ask(self.urls[number // 2 % len(self.urls)], 15 if stream else 1, stream)
            with self._lock:
                self.answered += not problem
                self.streamed += stream and not problem
                self.failures += [f"request {number}: {problem}"] if problem else []
            self._end.wait(0.3)

    def end(self) -> None:
        self._end.set()


def ask(url: str, tokens: int, stream: bool) -> str:
    """Asks for tokens and says what went wrong, empty for nothing."""
    address = url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        body = {"text": "one two three", "stream": stream, "sampling_params": {"max_new_tokens": tokens}}
        connection.request("POST", "/generate", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {error!r}"
    finally:
        connection.close()
    if answer.status != 200:
        return f"{url}: {answer.status} {text[:200]}"
    if stream:
        whole = text.count("data: {") == tokens and text.rstrip().endswith("data: [DONE]")
        return "" if whole else f"{url}: a stream cut short: {text[-200:]!r}"
    return "" if json.loads(text)["meta_info"]["completion_tokens"] == tokens else f"{url}: {text[:200]}"


@contextmanager
def flowing(urls: Sequence[str], clients: int = 3) -> Iterator[Load]:
    """Requests flow; none is under way any more afterwards."""
    load = Load(urls)
    threads = [threading.Thread(target=load.run, daemon=True) for _client in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.end()
        for thread in threads:
            thread.join(LIMIT)


def until(seen: Any, seconds: float = LIMIT) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if seen():
                return
        except OSError:
            # not listening yet
            pass
        assert time.monotonic() < end, f"not seen in {seconds} s: {seen}"
        time.sleep(0.2)


def router_python() -> Path:
    """The interpreter of an environment that has the router; made once."""
    folder = ROOT / ".cache/scenarios/router"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    mark = folder / "requirements.sha256"
    if not mark.exists() or mark.read_text(encoding="ascii") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS], check=True)
        mark.write_text(wanted, encoding="ascii")
    return folder / "bin/python"


@contextmanager
def balancers(work: Path, address: str, servers: dict[str, str]) -> Iterator[tuple[Router, Haproxy]]:
    """A router and an HAProxy on this address, with these servers (name: HOST:PORT) that are all healthy by then."""
    with ExitStack() as stack:
        command = [
            str(router_python()), "-m", "sglang_router.launch_router", "--host", address, "--port", "8100",
            "--prometheus-host", address, "--prometheus-port", "8101", "--policy", "round_robin",
            "--health-check-interval-secs", "1", "--worker-startup-check-interval", "1", "--disable-retries", "--disable-circuit-breaker",
            "--worker-urls", *(f"http://{server}" for server in servers.values()),
        ]  # fmt: skip
        router = Router(f"http://{address}:8100", command, work / "router.log")
        stack.callback(router.stop)
        router.start()
        configuration = work / "haproxy.cfg"
        lines = "\n".join(f"    server {name} {server}" for name, server in servers.items())
        configuration.write_text(_HAPROXY.format(address=address, admin=8201, port=8200, servers=lines), encoding="utf-8")
        process = stack.enter_context(subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", configuration], stderr=subprocess.DEVNULL))
        stack.callback(process.kill)
        haproxy = Haproxy(f"http://{address}:8200", (address, 8201))
        until(lambda: set(haproxy.statuses().values()) == {"UP"})
        yield router, haproxy
