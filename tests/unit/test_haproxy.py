# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of an HAProxy: what the admin socket says of it. The answers have the form of those of HAProxy 2.6."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._haproxy import Haproxy, HaproxyError, Server, bad_address, talker
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

STATE = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight\n"
STAT = "# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,status,weight,\n"
SHOWN = {
    "serves": ("2 0", "0,0,3,9", "UP", Server(False, "UP", 3, 1)),
    "is queued for": ("2 0", "2,5,3,9", "UP", Server(False, "UP", 5, 1)),
    "drains": ("2 8", "0,0,1,9", "DRAIN", Server(True, "DRAIN", 1, 1)),
    "in maintenance": ("0 1", "0,0,0,9", "MAINT", Server(True, "MAINT", 0, 1)),
    "disabled in the configuration": ("0 5", "0,0,0,9", "MAINT", Server(True, "MAINT", 0, 1)),
    # nobody took it out: HAProxy's own check did
    "down": ("0 0", "0,0,0,9", "DOWN", Server(False, "DOWN", 0, 1)),
    "comes up": ("2 0", "0,0,0,9", "UP 1/3", Server(False, "UP 1/3", 0, 1)),
    "is not checked": ("2 0", "0,0,0,9", "no check", Server(False, "no check", 0, 1)),
    "without a name by the DNS": ("0 32", "0,0,0,9", "MAINT (resolution)", Server(False, "MAINT (resolution)", 0, 1)),
}


def answers(admin: str = "2 0", figures: str = "0,0,0,0", status: str = "UP", other: str = "UP") -> dict[str, str]:
    return {
        "show servers state sglang": f"{STATE}3 sglang 1 gpu01 10.0.0.1 {admin} 1 1\n3 sglang 2 gpu02 10.0.0.2 2 0 1 1\n\n",
        "show stat": (
            f"{STAT}clients,FRONTEND,,,4,9,2000,80,1,1,OPEN,,\nelse,gpu01,0,0,7,9,,80,1,1,DOWN,1,\n"
            f"sglang,gpu01,{figures},,80,1,1,{status},1,\nsglang,gpu02,0,0,0,9,,80,1,1,{other},1,\n"
            "sglang,BACKEND,0,0,3,9,200,80,1,1,UP,2,\n\n"
        ),
    }


def haproxy(said: dict[str, str], told: list[str] | None = None) -> Haproxy:
    seconds = [0.0]

    def talk(command: str) -> str:
        if told is not None:
            told.append(command)
        return said.get(command, "\n")

    def sleep(length: float) -> None:
        seconds[0] += length

    return Haproxy("/run/haproxy.sock", "sglang", "gpu01", talk, Clock(lambda: seconds[0], sleep))


@pytest.mark.parametrize(("admin", "figures", "status", "server"), SHOWN.values(), ids=SHOWN)
def test_what_it_says_of_a_server(admin: str, figures: str, status: str, server: Server) -> None:
    found = haproxy(answers(admin, figures, status)).read()
    assert found == server
    assert haproxy(answers(admin, figures, status)).load().requests == server.sessions


@pytest.mark.parametrize(
    ("admin", "status", "serves"), [("2 0", "UP", True), ("2 8", "UP", False), ("0 0", "DOWN", False), ("2 0", "no check", True)]
)
def test_it_serves_when_it_is_up_and_nobody_took_it_out(admin: str, status: str, serves: bool) -> None:
    assert haproxy(answers(admin, status=status)).read().serves is serves


@pytest.mark.parametrize(("other", "count"), [("UP", 1), ("DOWN", 0), ("MAINT", 0), ("DRAIN", 0)])
def test_others_are_those_that_get_requests(other: str, count: int) -> None:
    assert haproxy(answers(other=other)).read().others == count


def test_a_state_is_told_in_haproxys_own_words() -> None:
    told: list[str] = []
    haproxy({}, told).set_state("drain")
    assert told == ["set server sglang/gpu01 state drain"]


REFUSALS = {
    "no such backend": ({"show servers state sglang": "Can't find backend.\n"}, "found Can't find backend.; mend the backend"),
    "no such server": (
        {"show servers state sglang": f"{STATE}3 sglang 2 gpu02 10.0.0.2 2 0 1 1\n"},
        "found no server gpu01 in backend sglang; mend the name",
    ),
    "no figures": ({**answers(), "show stat": f"{STAT}sglang,gpu02,0,0,0,9,,80,1,1,UP,1,\n"}, "found none in show stat"),
    "no right to look": (
        {"show servers state sglang": "Permission denied\n"},
        "found Permission denied; mend the backend in sglang_balancers, or give",
    ),
}


@pytest.mark.parametrize(("said", "text"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_read_is_said(said: dict[str, str], text: str) -> None:
    with pytest.raises(HaproxyError) as refused:
        haproxy(said).read()
    assert str(refused.value).startswith("haproxy /run/haproxy.sock sglang/gpu01: asked for ")
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Permission denied\n", "found Permission denied; give the socket the level admin"),
        ("No such server.\n", "found No such server.; mend the names in sglang_balancers"),
    ],
)
def test_what_cannot_be_told_is_said(said: str, text: str) -> None:
    with pytest.raises(HaproxyError) as refused:
        haproxy({"set server sglang/gpu01 state maint": said}).set_state("maint")
    assert f"asked for the state maint, {text}" in str(refused.value)


def test_a_server_that_stays_down_is_said() -> None:
    with pytest.raises(HaproxyError, match="asked for it to be up within 3 s, found status 'DOWN'"):
        haproxy(answers("0 0", status="DOWN")).wait_serving(3)
    assert haproxy(answers()).wait_serving(3) == 0.0


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(2, "No such file or directory"), "found no such file or directory; start HAProxy"),
        (PermissionError(13, "Permission denied"), "found permission denied; run with become"),
        (TimeoutError(), "found no answer in time; start HAProxy"),
    ],
)
def test_a_socket_that_does_not_answer_is_said(error: OSError, text: str) -> None:
    def talk(_command: str) -> str:
        raise error

    with pytest.raises(HaproxyError) as refused:
        Haproxy("/run/haproxy.sock", "sglang", "gpu01", talk).read()
    assert text in str(refused.value)


@pytest.mark.parametrize("family", ["path", "port"])
def test_it_talks_through_a_path_and_through_a_port(tmp_path: Path, family: str) -> None:
    path = os.path.relpath(tmp_path / "admin.sock")
    server = socket.socket(socket.AF_UNIX if family == "path" else socket.AF_INET)
    with server:
        server.bind(path if family == "path" else ("127.0.0.1", 0))
        server.listen()
        address = str(tmp_path / "admin.sock") if family == "path" else f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            connection, _peer = server.accept()
            with connection:
                connection.sendall(b"said: " + connection.recv(100))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert talker(address)("show stat") == "said: show stat\n"
        thread.join(10)


@pytest.mark.parametrize(
    ("address", "bad"),
    [
        ("/run/haproxy/admin.sock", ""),
        ("10.0.0.9:9999", ""),
        ("balancer:9999", ""),
        ("[2001:db8::1]:9999", ""),
        ("/", "no file"),
        ("balancer", "neither a path nor HOST:PORT"),
        ("balancer:0", "neither a path nor HOST:PORT"),
        ("balancer:65536", "neither a path nor HOST:PORT"),
        ("2001:db8::1:9999", "neither a path nor HOST:PORT"),
        ("", "neither a path nor HOST:PORT"),
    ],
)
def test_an_address_is_a_path_or_a_host_with_a_port(address: str, bad: str) -> None:
    assert bad_address(address) == bad
