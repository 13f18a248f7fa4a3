# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit of the role runs before and after its server.

    sglang_guard.py cards --wait SECONDS [--first N] [--count N]    ExecStartPre: returns when nothing else holds memory of the cards
    sglang_guard.py ready --url URL                                 ExecStartPost: returns when the server answers, or has ended

Standard library only, Python 3.9 or later. The cards are those of CUDA_VISIBLE_DEVICES (indexes as nvidia-smi counts them, or UUIDs),
all where it is not set; of these ``--count`` from ``--first`` on. What is said goes to standard output, which the unit sends to its
journal; C(allocation_info) reads these sentences, so their beginnings are fixed.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import select
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, TextIO

Run = Callable[[Sequence[str]], str]

HELD_GIB = 1.0  # less than this is a monitor, a desktop or what the driver keeps for itself
POLL_S = 1.0
SLOW_POLL_S = 5.0
WELL = 200
SAY_EVERY_S = 30.0
ANSWER_S = 30.0  # SGLang's own limit for the token of a health check is 20 s
TOOL_S = 30.0
LONGEST_NAME = 120
# serves the processes of others, and holds nothing that is not theirs
_SERVICES = ("nvidia-cuda-mps-server",)


class Unknown(Exception):
    """The cards cannot be read; the text says why."""


# --- cards ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """A process on a card; ``gib`` is None where the driver does not tell."""

    pid: int
    name: str
    gib: Optional[float]

    def __str__(self) -> str:
        return f"pid {self.pid} {self.name}" + (f" ({self.gib:.1f} GiB)" if self.gib is not None else "")


@dataclass(frozen=True)
class Card:
    """A card with what is in use of it; ``gib`` is None where the driver does not tell, as on cards without memory of their own."""

    index: str
    uuid: str
    gib: Optional[float]
    processes: tuple[Process, ...] = ()

    @property
    def is_held(self) -> bool:
        return (self.gib or 0.0) >= HELD_GIB or any((process.gib or 0.0) >= HELD_GIB for process in self.processes)

    def __str__(self) -> str:
        holders = ", ".join(map(str, self.processes)) or "no process that nvidia-smi names"
        used = f"{self.gib:.1f} GiB" if self.gib is not None else "memory"
        return f"GPU {self.index}: {used} held by {holders}"


def run_tool(argv: Sequence[str]) -> str:
    """Standard output of nvidia-smi. Unknown where it fails or hangs; one that hangs in the driver is not waited for."""
    with subprocess.Popen(list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        try:
            out, _none = process.communicate(timeout=TOOL_S)
        except subprocess.TimeoutExpired:
            process.kill()
            # its end is not waited for: in the driver it may never come
            process.returncode = -9
            raise Unknown(f"nvidia-smi does not answer within {TOOL_S:g} s") from None
    if process.returncode != 0:
        raise Unknown((out.strip().splitlines() or ["nvidia-smi says nothing"])[0][:300])
    return out


def read_cards(run: Run, describe: Callable[[int, str], str]) -> list[Card]:
    """All cards of the host, in the order of their indexes."""
    query = ["nvidia-smi", "--format=csv,noheader,nounits"]
    cards = _rows(run([*query, "--query-gpu=index,uuid,memory.used"]), 3)
    processes: dict[str, list[Process]] = {}
    for uuid, pid, name, used in _rows(run([*query, "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"]), 4):
        if pid.isdigit() and os.path.basename(name) not in _SERVICES:
            processes.setdefault(uuid, []).append(Process(int(pid), describe(int(pid), name), _gib(used)))
    return [Card(index, uuid, _gib(used), tuple(processes.get(uuid, ()))) for index, uuid, used in cards]


def _rows(text: str, columns: int) -> Iterable[list[str]]:
    """The lines as columns; a comma in the last but one belongs to it."""
    for line in text.splitlines():
        row = [part.strip() for part in line.split(",")]
        if len(row) >= columns:
            yield [*row[: columns - 2], ",".join(row[columns - 2 : -1]).strip(), row[-1]]


def _gib(mib: str) -> Optional[float]:
    try:
        return float(mib) / 1024
    except ValueError:
        return None


def own_cards(cards: Sequence[Card], visible: Optional[str], first: int, count: int) -> list[Card]:
    """The cards of this server. Unknown where CUDA_VISIBLE_DEVICES names what nvidia-smi does not (parts of a card, for example)."""
    chosen = list(cards)
    if visible is not None:
        words = [word.strip() for word in visible.split(",") if word.strip()]
        chosen = [card for word in words for card in cards if word == card.index or (len(word) > 4 and card.uuid.startswith(word))]
        if len(chosen) != len(words):
            raise Unknown(f"CUDA_VISIBLE_DEVICES is {visible!r}, and not all of it is a card of nvidia-smi")
    return chosen[first : first + count] if count else chosen[first:]


def describe_process(pid: int, name: str, read: Callable[[str], str]) -> str:
    """What a person knows a process by: its command line and its unit, else the name that the driver has."""
    try:
        words = read(f"/proc/{pid}/cmdline").replace("\0", " ").strip() or name
    except OSError:
        return name
    try:
        units = [part for part in read(f"/proc/{pid}/cgroup").replace("\n", "/").split("/") if part.endswith((".service", ".scope"))]
    except OSError:
        units = []
    text = words if len(words) <= LONGEST_NAME else words[: LONGEST_NAME - 4] + " ..."
    return f"{text!r}" + (f" of {units[-1]}" if units else "")


def read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait_for_cards(
    look: Callable[[], list[Card]], wait_s: float, say: Callable[[str], None], now: Callable[[], float], sleep: Callable[[float], None]
) -> bool:
    """Waits until none of the cards is held, and says every half minute by whom; false after ``wait_s`` seconds."""
    began = now()
    said: Optional[float] = None
    while True:
        cards = look()
        held = [card for card in cards if card.is_held]
        waited = now() - began
        if not held:
            if said is not None:
                say(f"the cards are free after {waited:.0f} s")
            return True
        words = "; ".join(map(str, held))
        if waited >= wait_s:
            say(
                f"cards not free: asked for GPU {','.join(card.index for card in cards)} with less than {HELD_GIB:g} GiB in use "
                f"within {wait_s:g} s, found {words}; end what holds them, or give this instance other cards"
            )
            return False
        if said is None or waited - said >= SAY_EVERY_S:
            said = waited
            say(f"waits for its cards ({waited:.0f} of {wait_s:g} s): {words}")
        sleep(min(POLL_S, wait_s - waited))


def guard_cards(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    if shutil.which("nvidia-smi") is None:
        say("no nvidia-smi here: it is not known whether the cards are free")
        return 0
    _make_devices()

    def look() -> list[Card]:
        cards = read_cards(run_tool, lambda pid, name: describe_process(pid, name, read_text))
        return own_cards(cards, environment.get("CUDA_VISIBLE_DEVICES"), arguments.first, arguments.count)

    try:
        return 0 if wait_for_cards(look, arguments.wait, say, time.monotonic, time.sleep) else 1
    except Unknown as reason:
        # the server itself says better what is wrong with a card or its driver
        say(f"it is not known whether the cards are free: {reason}")
        return 0


def _make_devices() -> None:
    """Makes the device files that nothing has needed since the host came up; the server may not: its privileges are taken away."""
    tool = shutil.which("nvidia-modprobe")
    if tool is None or os.geteuid() != 0:
        return
    # where it fails, the look at the cards or the server itself says why
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run([tool, "-u", "-c", "0"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TOOL_S)


# --- ready ------------------------------------------------------------------------------------------------------------


def wait_for_answer(health: Callable[[], int], ended: Callable[[float], bool]) -> bool:
    """Waits until the server is well; false where it ends before. There is no limit: TimeoutStartSec= of the unit is the one."""
    pause = POLL_S
    while True:
        status = health()
        if status == WELL:
            return True
        if ended(pause):
            return False
        # a server that listens writes down each time that it is asked
        pause = min(pause * 1.5, SLOW_POLL_S) if status else POLL_S


def health_of(url: str) -> int:
    """The status of the server's answer: 503 until its own first request is through, then 200; 0 where nothing answers."""
    # no proxy of the environment stands between a server and its own host, and its certificate is not made for this name
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=ANSWER_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as answer:
        return answer.code
    except (OSError, ValueError, http.client.HTTPException):
        return 0


def end_of(pid: int) -> Callable[[float], bool]:
    """Waits so many seconds for the end of a process and says whether it came."""
    if not pid:
        return _sleeps
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return lambda _seconds: True
    except (OSError, AttributeError):
        return lambda seconds: _sleeps(seconds) or not os.path.exists(f"/proc/{pid}")
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return lambda seconds: bool(poll.poll(seconds * 1000))


def _sleeps(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def guard_ready(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    began = time.monotonic()
    pid = environment.get("MAINPID", "")
    if wait_for_answer(lambda: health_of(arguments.url), end_of(int(pid) if pid.isdigit() else 0)):
        say(f"the server answers after {time.monotonic() - began:.0f} s")
    # how a server ended the service manager knows by itself
    return 0


# --- the command line -------------------------------------------------------------------------------------------------


def say(text: str, stream: Optional[TextIO] = None) -> None:
    print(f"inferops.sglang: {text}", file=stream or sys.stdout, flush=True)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sglang_guard.py", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    cards = commands.add_parser("cards", allow_abbrev=False)
    cards.add_argument("--wait", type=float, required=True)
    cards.add_argument("--first", type=int, default=0)
    cards.add_argument("--count", type=int, default=0)
    cards.set_defaults(command=guard_cards)
    ready = commands.add_parser("ready", allow_abbrev=False)
    ready.add_argument("--url", required=True)
    ready.set_defaults(command=guard_ready)
    return parser.parse_args(list(argv))


def main(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    arguments = parse(argv)
    return int(arguments.command(arguments, environment))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
