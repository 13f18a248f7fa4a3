# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scheduler processes: forked children that play their script and then answer the main process."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import math
import mmap
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from sglang.standin import log
from sglang.standin.faults import OOM, REQUEST_CRASHES, RETRACTION, WATCHDOG
from sglang.standin.memory import Rank
from sglang.standin.timeline import Start, Step, prefix, traceback

FAILED = "Scheduler hit an exception: "
PATIENCE, TICK = 5.0, 0.002  # seconds
MEAL, APPETITE = 8 << 20, 32  # bytes taken at once and how often by a rank that takes all of the host's memory


class Process:
    """One rank as the main process sees it: its pid, orders to it, answers from it."""

    def __init__(self, pid: int, orders: TextIO, answers: TextIO) -> None:
        self.pid, self.orders, self.answers = pid, orders, answers

    def order(self, message: dict[str, Any]) -> None:
        """Sends one order; a rank that is gone is found by its exit status, not here."""
        try:
            self.orders.write(json.dumps(message) + "\n")
            self.orders.flush()
        except BrokenPipeError:
            return


class Pace:
    """How far each rank is in its script, shared by their processes: whoever fails does so after the others said what comes before."""

    def __init__(self, ranks: int) -> None:
        self._seconds = memoryview(mmap.mmap(-1, 8 * ranks)).cast("d")

    def reach(self, rank: int, at: float) -> None:
        self._seconds[rank] = at

    def wait(self, at: float) -> None:
        end = time.monotonic() + PATIENCE
        while min(self._seconds) < at and time.monotonic() < end:
            time.sleep(TICK)


def spawn(start: Start, rank: Rank, steps: list[Step], begun: float, pace: Pace, older: list[Process]) -> Process:
    """Forks the process of one rank; `begun` is the monotonic second that the steps count from."""
    orders_in, orders_out = os.pipe()
    answers_in, answers_out = os.pipe()
    main = os.getpid()
    pid = os.fork()
    if pid:
        os.close(orders_in)
        os.close(answers_out)
        return Process(pid, os.fdopen(orders_out, "w"), os.fdopen(answers_in))
    # an end kept open here would hide the death of the main process or of another rank
    for descriptor in [orders_out, answers_in, *(end.fileno() for process in older for end in (process.orders, process.answers))]:
        os.close(descriptor)
    try:
        _Worker(start, rank, main, os.fdopen(orders_in), os.fdopen(answers_out, "w")).live(steps, begun, pace)
    finally:
        os._exit(0)


class _Worker:
    """The life of one rank, inside its process."""

    def __init__(self, start: Start, rank: Rank, main: int, orders: TextIO, answers: TextIO) -> None:
        self.start, self.rank, self.main, self.orders, self.answers = start, rank, main, orders, answers
        self.prefix = prefix(rank, start.args)

    def live(self, steps: list[Step], begun: float, pace: Pace) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        faulthandler.enable()
        _name_process("sglang::schedul")  # the kernel keeps 15 characters of sglang::scheduler_TP0
        for step in steps:
            pace.reach(self.rank.index, step.at)
            time.sleep(max(0.0, begun + step.at - time.monotonic()))
            if step.kind not in ("say", "raw"):
                pace.wait(step.at)
                pace.reach(self.rank.index, math.inf)
            if os.getppid() != self.main:  # an orphan: whoever adopted it must not be signalled
                return
            self._act(step)
        pace.reach(self.rank.index, math.inf)
        self._answer({"ready": True})
        for line in self.orders:
            self._obey(json.loads(line))

    def _act(self, step: Step) -> None:
        if step.kind == "say":
            log.say(step.text, self.prefix)
        elif step.kind == "raw":
            log.raw(step.text)
        elif step.kind == "fail":
            self._fail(step.text)
        elif step.kind == "signal":
            os.kill(os.getpid(), step.number)
        elif step.kind == "exit":
            os._exit(step.number)
        elif step.kind == "hang":
            self._hang()
        else:
            {"eat": _eat, "segfault": _segfault, "abort": os.abort}[step.kind]()

    def _hang(self) -> None:
        """Silence until the main process is gone."""
        for _order in self.orders:
            continue
        os._exit(0)

    def _fail(self, reason: str) -> None:
        log.say(FAILED + reason, self.prefix)
        if os.getppid() == self.main:
            os.kill(self.main, signal.SIGQUIT)
        self._hang()

    def _obey(self, order: dict[str, Any]) -> None:
        if order.get("stop"):
            os._exit(0)
        if self.start.faults.hangs("warmup"):
            self._hang()
        self._fail_request("oom_warmup" if order["warming"] else "oom_prefill" if order["real"] else "")
        if self.start.faults.strikes("watchdog", self.rank.index):
            self._bark()
        if self.rank.index == 0:
            log.say(
                f"Prefill batch, #new-seq: 1, #new-token: {order['tokens']}, #cached-token: 0, token usage: 0.00, "
                "#running-req: 0, #queue-req: 0",
                self.prefix,
            )
            if order["real"] and "retraction" in self.start.faults:
                log.say(RETRACTION, self.prefix)
        self._fail_request("oom_decode" if order["real"] else "")
        self._answer({"id": order["id"]})

    def _fail_request(self, fault: str) -> None:
        if fault and self.start.faults.strikes(fault, self.rank.index):
            self._fail(traceback(REQUEST_CRASHES[fault], OOM.format(rank=self.rank.index)))

    def _bark(self) -> None:
        """What the watchdog's thread does about a forward pass that does not end."""
        log.say(WATCHDOG, self.prefix)
        log.raw("\n")
        time.sleep(self.start.step)
        os.kill(self.main, signal.SIGQUIT)
        self._hang()

    def _answer(self, message: dict[str, Any]) -> None:
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()


class Group:
    """All ranks, as the one thing that the HTTP side talks to."""

    def __init__(self, processes: list[Process]) -> None:
        self.processes = processes
        self._lock = threading.Lock()
        self._count = 0

    def prefill(self, tokens: int, warming: bool = False, real: bool = False) -> None:
        """Has the ranks compute one prompt; returns when all have answered, never if one does not: a step ends on all ranks at once.

        `warming`: it is the server's own first request. `real`: it is a client's, not that of a health check.
        """
        with self._lock:
            self._count += 1
            for process in self.processes:
                process.order({"id": self._count, "tokens": tokens, "warming": warming, "real": real})
            for process in self.processes:
                if not process.answers.readline():
                    threading.Event().wait()

    def stop(self) -> None:
        for process in self.processes:
            process.order({"stop": True})

    def kill(self) -> None:
        for process in self.processes:
            _kill(process.pid)

    def reap(self) -> dict[str, int] | None:
        """{"rank", "pid", "code"} of a rank that has ended since the last call; code as Popen gives it."""
        for index, process in enumerate(self.processes):
            pid, status = os.waitpid(process.pid, os.WNOHANG) if process.pid else (0, 0)
            if pid:
                process.pid = 0
                return {"rank": index, "pid": pid, "code": -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)}
        return None


def _eat() -> None:
    """Takes the host's memory until the kernel ends it; if the kernel has enough of it, the process ends itself in the same way."""
    eaten = []
    for _bite in range(APPETITE):
        eaten.append(bytearray(b"\1") * MEAL)
    os.kill(os.getpid(), signal.SIGKILL)


def _segfault() -> None:
    ctypes.string_at(0)


def _kill(pid: int) -> None:
    if pid:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _name_process(name: str) -> None:
    try:
        Path("/proc/self/comm").write_text(name, encoding="ascii")
    except OSError:
        return
