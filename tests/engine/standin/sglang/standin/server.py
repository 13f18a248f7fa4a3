# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main process: starts the ranks, waits for them, serves HTTP, warms up, and ends as SGLang ends."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sglang.standin import log
from sglang.standin.api import Server, State, listen
from sglang.standin.arguments import parse, record
from sglang.standin.eras import era_of
from sglang.standin.faults import asked, read_faults
from sglang.standin.memory import Hardware, Misuse, Refusal, Sizing, draft_geometry, read_config, world
from sglang.standin.ranks import Group, Pace, Process, spawn
from sglang.standin.timeline import Start, scripts

TICK = 0.05  # seconds between two looks at the ranks


def serve(argv: Sequence[str], environ: Mapping[str, str], version: str) -> NoReturn:
    """The whole life of one server. Ends the process with the status that SGLang would leave."""
    era = era_of(version)
    faults = asked(environ)
    args = parse([*argv, *faults.bad_flags], era)
    if faults.refusal:
        reason = faults.refusal.reason.format(model=args.model_path, no_device=era.no_device)
        _refuse(faults.refusal.file, faults.refusal.where, reason)
    if args.base_gpu_id < 0:
        _refuse(era.checks_file, "check_server_args", "AssertionError: base_gpu_id must be non-negative")
    try:
        start = prepare(args, environ, version)
    except Refusal as refusal:
        _refuse("sglang/launch_server.py", "<module>", str(refusal))
    except Misuse as misuse:
        log.raw(f"standin: {misuse}\n")
        sys.exit(2)
    log.say(record(args, era))
    if args.speculative_algorithm and args.max_running_requests is None:
        log.say(
            "Max running requests is reset to 48 for speculative decoding. "
            "You can override this by explicitly setting --max-running-requests."
        )
    Main(start, version).live()


def _refuse(file: str, where: str, reason: str) -> NoReturn:
    log.raw(
        'Traceback (most recent call last):\n  File "sglang/launch_server.py", line 1, in <module>\n'
        f'  File "{file}", line 7, in {where}\n{reason}\n'
    )
    sys.exit(1)


def prepare(args: Any, environ: Mapping[str, str], version: str) -> Start:
    """Reads the models, the STANDIN_ variables and the faults, and sizes the pools. Refusal or Misuse says what is wrong."""
    era = era_of(version)
    ranks = len(world(args))
    drafts = draft_geometry(args, read_config(args.model_path)) is not None
    faults = read_faults(environ, ranks, drafts, hybrids=bool(era.no_states))
    hardware = Hardware(
        free=[_number("STANDIN_FREE_GIB", word) for word in environ.get("STANDIN_FREE_GIB", "94.0").split(",")],
        weights=_number("STANDIN_WEIGHTS_GIB", environ.get("STANDIN_WEIGHTS_GIB", "60")),
        draft_weights=_number("STANDIN_DRAFT_WEIGHTS_GIB", environ.get("STANDIN_DRAFT_WEIGHTS_GIB", "1.3")),
        graph=_number("STANDIN_GRAPH_GIB", environ.get("STANDIN_GRAPH_GIB", "1.5")),
    )
    hardware = faults.applied(hardware, args.mem_fraction_static, ranks)
    step = _number("STANDIN_STEP_SECONDS", environ.get("STANDIN_STEP_SECONDS", "0.05"))
    token = _number("STANDIN_TOKEN_SECONDS", environ.get("STANDIN_TOKEN_SECONDS", "0"))
    return Start(args, era, Sizing(args, era, hardware).run(), faults, step, token)


class Main:
    """The main process between the first fork and the last line."""

    def __init__(self, start: Start, version: str) -> None:
        self.start = start
        self.serving = False  # the first request replaces the handlers of the launch
        self.terminated = False
        self.group = Group([])
        self.state = State(start, self.group, version, read_config(start.args.model_path))

    def live(self) -> NoReturn:
        signal.signal(signal.SIGQUIT, self._on_sigquit)
        self._launch()
        self._wait_for_ranks()
        server = self._bind()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        threading.Thread(target=server.serve_forever, args=(TICK,), daemon=True).start()
        threading.Thread(target=self._warm_up, daemon=True).start()
        while not self.terminated:
            time.sleep(TICK)
            self._watch()
        self._shut_down(server)

    def _launch(self) -> None:
        plan = scripts(self.start)
        begun = time.monotonic()
        processes: list[Process] = self.group.processes
        pace = Pace(len(self.start.pools.ranks))
        for rank in self.start.pools.ranks:
            processes.append(spawn(self.start, rank, plan[rank.index], begun, pace, processes))
        if self.start.faults.active.get("kill9") == "main":
            pace.wait(self.start.step * 3)
            os.kill(os.getpid(), signal.SIGKILL)
        if "exit" in self.start.faults:
            pace.wait(self.start.step * 3)
            os._exit(int(self.start.faults.active["exit"]))

    def _wait_for_ranks(self) -> None:
        """Returns when every rank has said that it is ready; a rank that ends before is the end of the start."""
        with selectors.DefaultSelector() as waiting:
            for process in self.group.processes:
                waiting.register(process.answers, selectors.EVENT_READ)
            while waiting.get_map():
                for key, _events in waiting.select(TICK):
                    if key.fileobj.readline():  # type: ignore[union-attr]
                        waiting.unregister(key.fileobj)
                dead = self.group.reap()
                if dead:
                    self._died_early(dead["rank"], dead["code"])

    def _died_early(self, rank: int, code: int) -> NoReturn:
        self.group.kill()
        if "silent_death" in self.start.faults:
            os._exit(0)
        if self.start.era.names_dead_rank_in_exception:
            reason = (
                f"RuntimeError: Rank {rank} scheduler died during initialization (exit code: {code}). If exit code is -9 "
                "(SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
            )
        else:
            log.say(f"Rank {rank} scheduler is dead. Please check if there are relevant logs.")
            log.say(f"Exit code: {code}")
            reason = "EOFError"
        log.raw(
            'Traceback (most recent call last):\n  File "sglang/srt/entrypoints/engine.py", line 1340, in '
            f"_wait_for_scheduler_ready\n{reason}\n"
        )
        os._exit(1)

    def _bind(self) -> Server:
        if self.start.era.says_start_timings:
            load = self.start.step
            log.say(f"Engine startup timings (s): load_weight={load:.2f}, kv_cache_allocation={load:.2f}, scheduler_e2e={load * 6:.2f}")
        log.http(f"Started server process [{os.getpid()}]")
        log.http("Waiting for application startup.")
        log.http("Application startup complete.")
        args = self.start.args
        holder: socket.socket | None = None
        if "port_in_use" in self.start.faults:
            holder = socket.create_server((args.host, args.port))
        try:
            server = listen(self.state)
        except OSError as error:
            log.say(
                f"ERROR:    [Errno {error.errno}] error while attempting to bind on address "
                f"('{args.host}', {args.port}): {os.strerror(error.errno or 0).lower()}"
            )
            log.http("Waiting for application shutdown.")
            log.http("Application shutdown complete.")
            self.group.kill()
            sys.exit(1)
        finally:
            if holder:
                holder.close()
        log.http(f"Uvicorn running on http://{args.host}:{args.port} (Press CTRL+C to quit)")
        return server

    def _warm_up(self) -> None:
        """Asks the server itself for its model and for eight tokens, as SGLang does, then declares it ready."""
        if not self.start.args.skip_server_warmup:
            self._request("/model_info", None)
            self.serving = True
            body = {"text": "The capital city of France is", "sampling_params": {"temperature": 0, "max_new_tokens": 8}}
            self._request("/generate", json.dumps(body).encode())
        self.serving = True
        self.state.starting = False
        log.say("The server is fired up and ready to roll!")

    def _request(self, path: str, body: bytes | None) -> None:
        args = self.start.args
        host = "127.0.0.1" if args.host in ("0.0.0.0", "") else args.host
        request = urllib.request.Request(f"http://{host}:{args.port}{path}", data=body)
        if args.api_key:
            request.add_header("Authorization", f"Bearer {args.api_key}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            opener.open(request).read()
        except OSError as error:
            log.say(f"Initialization failed. warmup error: Traceback (most recent call last):\n{error!r}")
            self._kill_tree()

    def _watch(self) -> None:
        """A rank that ends with a fault takes the server along; one that ends with 0 goes unnoticed, as in SGLang."""
        dead = self.group.reap()
        if not dead or dead["code"] == 0 or not self.start.era.has_child_watchdog:
            return
        log.say(
            f"Subprocess scheduler_{dead['rank']} (pid={dead['pid']}) crashed with exit code {dead['code']}. "
            "Triggering SIGQUIT for cleanup..."
        )
        os.kill(os.getpid(), signal.SIGQUIT)

    def _on_sigquit(self, _number: int, _frame: Any) -> None:
        if self.serving:
            log.say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
        else:
            log.say("Received sigquit from a child process. It usually means the child failed.")
        self._kill_tree()

    def _on_sigterm(self, _number: int, _frame: Any) -> None:
        log.say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        self.state.stopping = True
        self.terminated = True

    def _shut_down(self, server: Server) -> NoReturn:
        log.say("Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
        if self.start.era.stop_is_kill:
            self._kill_tree()
        self.group.stop()
        self._log_tree_kill(include_parent=False)
        for line in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
            log.http(line)
        log.http(f"Finished server process [{os.getpid()}]")
        server.server_close()
        self.group.kill()
        os._exit(0)

    def _log_tree_kill(self, include_parent: bool) -> None:
        if self.start.era.logs_tree_kill:
            pid = os.getpid()
            log.say(f"kill_process_tree called: parent_pid={pid}, include_parent={include_parent}, pid={pid}")

    def _kill_tree(self) -> NoReturn:
        """Kills every rank and then itself: the status is that of SIGKILL."""
        self._log_tree_kill(include_parent=True)
        self.group.kill()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a process outlived its SIGKILL")


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise Misuse(f"{name} is {text!r}: a number is needed") from error
    if value < 0:
        raise Misuse(f"{name} is {text!r}: it cannot be negative")
    return value
