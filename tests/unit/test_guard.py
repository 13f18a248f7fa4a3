# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit runs before and after its server: whose the cards are, and whether the server answers."""

from __future__ import annotations

import http.server
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "roles/sglang/files/sglang_guard.py"
spec = importlib.util.spec_from_file_location("sglang_guard", SCRIPT)
guard = importlib.util.module_from_spec(spec)
sys.modules["sglang_guard"] = guard
spec.loader.exec_module(guard)

CARDS = "0, GPU-aaaa-1, 3\n1, GPU-bbbb-2, 81920\n2, GPU-cccc-3, 512\n3, GPU-dddd-4, [N/A]\n"
PROCESSES = (
    "GPU-bbbb-2, 4711, /opt/x/bin/python, 80896\n"
    "GPU-cccc-3, 815, /usr/lib/xorg, the server, 300\n"
    "GPU-cccc-3, 816, /usr/bin/nvidia-cuda-mps-server, 30\n"
    "GPU-dddd-4, 4712, [Not Found], [N/A]\n"
)
HELD = "GPU 1: 80.0 GiB held by pid 4711 /opt/x/bin/python (79.0 GiB)"


def tool(cards: str = CARDS, processes: str = PROCESSES):
    return lambda argv: processes if any("compute-apps" in word for word in argv) else cards


def read(**texts: str) -> list:
    return guard.read_cards(tool(**texts), lambda _pid, name: name)


def test_cards_and_who_is_on_them():
    assert [str(card) for card in read()] == [
        "GPU 0: 0.0 GiB held by no process that nvidia-smi names",
        HELD,
        "GPU 2: 0.5 GiB held by pid 815 /usr/lib/xorg,the server (0.3 GiB)",
        "GPU 3: memory held by pid 4712 [Not Found]",
    ]
    assert [card.is_held for card in read()] == [False, True, False, False]


CARD_STATES = [
    ("nothing on it", "3", "", False),
    ("a monitor", "1023", "", False),
    ("memory of nobody that is named", "1024", "", True),
    ("no memory of its own, and a process that holds some", "[N/A]", "GPU-e, 9, python, 2048\n", True),
    ("no memory of its own, and a small process", "[N/A]", "GPU-e, 9, python, 100\n", False),
    ("a process of another card", "3", "GPU-f, 9, python, 2048\n", False),
]


@pytest.mark.parametrize(("used", "processes", "held"), [row[1:] for row in CARD_STATES], ids=[row[0] for row in CARD_STATES])
def test_what_counts_as_held(used, processes, held):
    assert [card.is_held for card in read(cards=f"0, GPU-e, {used}\n", processes=processes)] == [held]


CHOICES = [
    ("all", None, 0, 0, "0123"),
    ("as many as there are ranks", None, 0, 2, "01"),
    ("from a card on", None, 1, 2, "12"),
    ("by index", "3,1", 0, 0, "31"),
    ("the first of those that are seen", "3,1", 0, 1, "3"),
    ("by the begin of a UUID", "GPU-cccc", 0, 0, "2"),
    ("none", "", 0, 0, ""),
]


@pytest.mark.parametrize(("visible", "first", "count", "indexes"), [row[1:] for row in CHOICES], ids=[row[0] for row in CHOICES])
def test_the_cards_of_a_server(visible, first, count, indexes):
    assert "".join(card.index for card in guard.own_cards(read(), visible, first, count)) == indexes


@pytest.mark.parametrize("visible", ["7", "MIG-1234", "0,9", "GPU-eeee"])
def test_cards_that_are_not_there_are_unknown(visible):
    with pytest.raises(guard.Unknown, match="CUDA_VISIBLE_DEVICES"):
        guard.own_cards(read(), visible, 0, 0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(freed_at: float, wait_s: float) -> tuple[bool, list[str], float]:
    clock, said = Clock(), []
    cards = {True: read()[:2], False: read(processes="", cards="0, GPU-aaaa-1, 3\n1, GPU-bbbb-2, 5\n")}
    free = guard.wait_for_cards(lambda: cards[clock.now < freed_at], wait_s, said.append, clock, clock.sleep)
    return free, said, clock.now


def test_free_cards_cost_no_time_and_no_word():
    assert wait(0, 300) == (True, [], 0.0)


def test_a_wait_says_at_once_and_every_half_minute_who_holds_the_cards():
    assert wait(65, 300) == (
        True,
        [*(f"waits for its cards ({seconds} of 300 s): {HELD}" for seconds in (0, 30, 60)), "the cards are free after 65 s"],
        65.0,
    )


def test_cards_that_stay_held_are_named_with_their_holder():
    free, said, now = wait(1e9, 45)
    assert (free, now) == (False, 45.0)
    assert said[-1] == (
        f"cards not free: asked for GPU 0,1 with less than 1 GiB in use within 45 s, found {HELD}; "
        "end what holds them, or give this instance other cards"
    )


FILES = {
    "/proc/7/cmdline": "/opt/x/bin/python\0-m\0sglang.launch_server\0--port\x001\0",
    "/proc/7/cgroup": "0::/system.slice/sglang-b.service\n",
    "/proc/8/cmdline": "/bin/long\0" + "x" * 200,
    "/proc/8/cgroup": "0::/\n",
    "/proc/9/cmdline": "",
}


def text_of(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(path)
    return FILES[path]


@pytest.mark.parametrize(("pid", "told"), [
    (7, "'/opt/x/bin/python -m sglang.launch_server --port 1' of sglang-b.service"),
    (8, "'/bin/long " + "x" * 106 + " ...'"),
    (9, "'python'"),
    (10, "python"),
])  # fmt: skip
def test_a_process_is_known_by_its_command_line_and_its_unit(pid, told):
    assert guard.describe_process(pid, "python", text_of) == told


# --- the program, with a tool in its path


def run(path: Path, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    if script:
        (path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (path / "nvidia-smi").chmod(0o755)
    return subprocess.run(
        [sys.executable, "-I", SCRIPT, *arguments], env={"PATH": str(path), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


ONE_HELD = 'case "$*" in *compute*) ;; *) echo "0, GPU-a, 2048"; echo "1, GPU-b, 4";; esac'
TOOLS = [
    ("no tool", "", 0, "no nvidia-smi here: it is not known whether the cards are free"),
    ("a broken driver", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", 0,
     "it is not known whether the cards are free: Failed to initialize NVML: Driver/library version mismatch"),
    ("a silent failure", "exit 9", 0, "it is not known whether the cards are free: nvidia-smi says nothing"),
    ("free cards", 'case "$*" in *compute*) ;; *) echo "0, GPU-a, 4";; esac', 0, ""),
    ("held cards", 'case "$*" in *compute*) ;; *) echo "0, GPU-a, 2048";; esac', 1,
     "cards not free: asked for GPU 0 with less than 1 GiB in use within 0 s, found GPU 0: 2.0 GiB held by no process that nvidia-smi "
     "names; end what holds them, or give this instance other cards"),
    ("one of two", ONE_HELD, 1, "cards not free: asked for GPU 0,1"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "code", "words"), [row[1:] for row in TOOLS], ids=[row[0] for row in TOOLS])
def test_the_guard_of_the_cards_as_a_program(tmp_path, script, code, words):
    done = run(tmp_path, script, "cards", "--wait", "0")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(f"inferops.sglang: {words}") if words else done.stdout == ""


def test_the_cards_of_another_instance_are_not_looked_at(tmp_path):
    assert run(tmp_path, ONE_HELD, "cards", "--wait", "0", CUDA_VISIBLE_DEVICES="1").returncode == 0
    assert run(tmp_path, ONE_HELD, "cards", "--wait", "0", CUDA_VISIBLE_DEVICES="0").returncode == 1


def test_a_tool_that_hangs_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(guard, "TOOL_S", 0.2)
    with pytest.raises(guard.Unknown, match="does not answer within"):
        guard.run_tool(["sleep", "60"])


# --- ready


class Health(http.server.BaseHTTPRequestHandler):
    answers = (503, 200)
    asked = 0

    def do_GET(self) -> None:
        status = type(self).answers[min(type(self).asked, len(type(self).answers) - 1)]
        type(self).asked += 1
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Says nothing."""


@pytest.fixture
def url(monkeypatch):
    Health.asked = 0
    server = http.server.HTTPServer(("127.0.0.1", 0), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # a proxy of the server's environment is not the way to the server
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    yield f"http://127.0.0.1:{server.server_port}/health"
    server.shutdown()
    server.server_close()


def test_a_server_that_is_starting_does_not_answer_yet(url):
    assert [guard.health_of(url) for _ask in range(3)] == [503, 200, 200]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/health", "http://no.such.host.invalid/health", "nonsense"])
def test_nothing_there_is_no_answer(url):
    assert guard.health_of(url) == 0


def test_the_guard_returns_when_the_server_answers(tmp_path, url):
    done = run(tmp_path, "", "ready", "--url", url, MAINPID=str(os.getpid()))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("inferops.sglang: the server answers after ")


def test_the_guard_returns_when_the_server_has_ended(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    done = run(tmp_path, "", "ready", "--url", "http://127.0.0.1:9/health", MAINPID=str(ended.pid))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_guard_notices_the_end_of_the_server():
    server = subprocess.Popen(["sleep", "60"])
    words = [sys.executable, "-I", SCRIPT, "ready", "--url", "http://127.0.0.1:9/health"]
    watcher = subprocess.Popen(words, env={"MAINPID": str(server.pid)}, stdout=subprocess.PIPE)
    server.kill()
    server.wait()
    assert watcher.communicate() == (b"", None)
    assert watcher.returncode == 0


def test_a_server_that_listens_is_asked_less_and_less_often():
    statuses, pauses = iter([0, 0, 503, 503, 503, 503, 503, 503, 200]), []
    assert guard.wait_for_answer(lambda: next(statuses), lambda pause: bool(pauses.append(pause))) is True
    assert pauses == [1.0, 1.0, 1.0, 1.5, 2.25, 3.375, 5.0, 5.0]
