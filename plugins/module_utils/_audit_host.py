# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What serves on a host: its SGLang units, what was accepted of each, and what each runs now. Private to this collection.

Nothing here judges and nothing is changed. What goes wrong with one unit is told in its ``problem``, so that it hides no other.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import Accelerators, GpuError, read_accelerators
from ansible_collections.inferops.sglang.plugins.module_utils._host import Sight, pids_of
from ansible_collections.inferops.sglang.plugins.module_utils._host import Unit as SeenUnit
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError, JournalReader, Source
from ansible_collections.inferops.sglang.plugins.module_utils._made import NAME as MADE
from ansible_collections.inferops.sglang.plugins.module_utils._made import Made, read_made
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._service import read_service, running_version
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState
from ansible_collections.inferops.sglang.plugins.module_utils._unit_action import Files
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import MARK, environment_files, read_unit
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import Server, read_server

# where systemd looks for units, the first that has one wins
UNIT_FOLDERS = (
    "/etc/systemd/system", "/run/systemd/transient", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
    "/lib/systemd/system",
)  # fmt: skip
_RUNNING = ("active", "activating", "reloading", "deactivating")
_ENABLED = ("enabled", "enabled-runtime")
_PROPERTIES = ("Id", "ActiveState", "UnitFileState", "FragmentPath", "DropInPaths", "ControlGroup")
_KEPT = ("receipt.json", "accepted.json", "verdict.json")
_DRAINED = "drained.json"
# SGLang itself takes 20 s to say that nothing moves
_ANSWER_S = 25.0
_REACHED: Mapping[str, str] = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}

# host, port, whether by TLS, path, seconds -> status; raises OSError
Prober = Callable[[str, int, bool, str, float], int]
# unit -> the last start of it that the journal has, and its service; raises JournalError
BootReader = Callable[[str], "tuple[Optional[dict[str, Any]], ServiceState, tuple[str, ...]]"]


@dataclass(frozen=True)
class Answer:
    """Whether a server answers on /health. ``status``: None where it did not, ``why`` then says it. ``url``: empty where none was asked."""

    url: str = ""
    status: Optional[int] = None
    why: str = ""


@dataclass(frozen=True)
class Instance:
    """One unit that starts SGLang. ``name``: the role's instance, empty for a unit of somebody else.

    ``kept``: what the role keeps of it by the file's name, as far as it is readable: receipt.json, accepted.json, verdict.json.
    ``drained_since``: when it was taken out of its balancers, empty where it is not. ``gaps``: what is missing from its log. ``pids``: of
    all its processes. ``problem``: why it could not be read whole.
    """

    unit: str
    name: str = ""
    enabled: bool = False
    path: str = ""
    drop_ins: tuple[str, ...] = ()
    environment_path: str = ""
    disk: Files = field(default_factory=lambda: Files(""))
    server: Server = field(default_factory=Server)
    kept: Mapping[str, Any] = field(default_factory=dict)
    drained_since: str = ""
    service: Optional[ServiceState] = None
    allocation: Optional[Mapping[str, Any]] = None
    gaps: tuple[str, ...] = ()
    answer: Answer = Answer()
    pids: frozenset[int] = frozenset()
    problem: str = ""


@dataclass(frozen=True)
class HostFacts:
    """A host as it was read. ``cards`` is None where it has none that a tool shows; ``gpu_error`` says why, if that is odd."""

    instances: tuple[Instance, ...]
    cards: Optional[Accelerators] = None
    gpu_error: str = ""


@dataclass(frozen=True)
class Eyes:
    """How the host is looked at, beside its files and programs."""

    sight: Sight
    boot: BootReader
    probe: Prober


@dataclass(frozen=True)
class _Candidate:
    """A unit file that names SGLang."""

    unit: str
    path: str
    text: str


def read_host(state_dir: str, eyes: Eyes) -> HostFacts:
    """Every unit of this host that starts SGLang, and its cards. ``state_dir``: where the role keeps what it made and accepted."""
    made = read_made(eyes.sight.text(os.path.join(state_dir, MADE)) or "")
    candidates = {candidate.unit: candidate for candidate in _candidates(eyes.sight)}
    known = [f"{name}.service" for name in made.instances]
    states = _states(eyes.sight, dict.fromkeys((*known, *candidates)))
    found = []
    for name, state in states.items():
        instance = _instance(name, state, candidates.get(name), made, state_dir, eyes)
        if instance is not None:
            found.append(instance)
    cards, error = _cards(eyes.sight)
    return HostFacts(tuple(sorted(found, key=lambda one: one.unit)), cards, error)


# --- units ------------------------------------------------------------------------------------------------------------


def _candidates(sight: Sight) -> Iterator[_Candidate]:
    seen: set[str] = set()
    for folder in UNIT_FOLDERS:
        for name in sight.names(folder):
            path = f"{folder}/{name}"
            if not name.endswith(".service") or name in seen or sight.link(path) == "/dev/null":
                continue
            seen.add(name)
            try:
                raw = sight.read(path)
            except (OSError, ValueError):
                continue
            # nearly all units of a host are of no interest: they are not even decoded
            if b"sglang" in raw.lower() or MARK.encode() in raw:
                for unit in _started(sight, name):
                    yield _Candidate(unit, path, raw.decode("utf-8", "replace"))


def _started(sight: Sight, name: str) -> Iterable[str]:
    """The unit itself, or of a template those that are loaded."""
    if not name.endswith("@.service"):
        return (name,)
    pattern = name.replace("@.service", "@*.service")
    try:
        _code, out, _errors = sight.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager", pattern])
    except OSError:
        return ()
    return tuple(line.split()[0] for line in out.splitlines() if line.split())


def _states(sight: Sight, units: Iterable[str]) -> dict[str, dict[str, str]]:
    """What the manager knows of these units, by the name that each of them really has, from one call."""
    names = list(units)
    if not names:
        return {}
    code, out, errors = sight.run(["systemctl", "show", "--property=" + ",".join(_PROPERTIES), "--", *names])
    if code:
        raise JournalError(
            f"asked systemd for the units {', '.join(names)}, found exit code {code} ({errors.strip()[:300]}); "
            "run this on a host with systemd"
        )
    blocks = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in out.split("\n\n"))
    return {block["Id"]: block for block in blocks if block.get("Id")}


def _instance(
    unit: str, state: Mapping[str, str], candidate: Optional[_Candidate], made: Made, state_dir: str, eyes: Eyes
) -> Optional[Instance]:
    """One unit as it is; None for one that is of no interest."""
    sight = eyes.sight
    text = candidate.text if candidate else ""
    drop_ins = {path: sight.text(path) or "" for path in state.get("DropInPaths", "").split()}
    parsed = read_unit(text, drop_ins)
    own = unit[: -len(".service")] if unit[: -len(".service")] in made.instances else parsed.instance
    files = {path.lstrip("-"): sight.text(path.lstrip("-")) or "" for path in environment_files(parsed)}
    server = read_server(parsed, files)
    runs, enabled = state.get("ActiveState") in _RUNNING, state.get("UnitFileState") in _ENABLED
    # a unit of somebody else that neither runs nor will is no server of this host: one that was taken over stays like that
    if not own and not (server.how and (runs or enabled)):
        return None
    environment_path = (made.instances[own].environment if own in made.instances else "") or f"/etc/sglang/{own or unit}.env"
    instance = Instance(
        unit=unit,
        name=own,
        enabled=enabled,
        path=state.get("FragmentPath", "") or (candidate.path if candidate else ""),
        drop_ins=tuple(drop_ins),
        environment_path=environment_path,
        disk=Files(text, files.get(environment_path, sight.text(environment_path))),
        server=server,
        pids=pids_of(sight, [_as_seen(unit, state)]) if runs else frozenset(),
        **_kept(sight, os.path.join(state_dir, own)) if own else {},
    )
    return _with_boot(instance, eyes)


def _as_seen(unit: str, state: Mapping[str, str]) -> SeenUnit:
    return SeenUnit(unit, state.get("FragmentPath", ""), control_group=state.get("ControlGroup", ""))


def _kept(sight: Sight, folder: str) -> dict[str, Any]:
    """What the role keeps of an instance; a file that is cut, or is none, counts as one that is not there."""
    found: dict[str, Any] = {}
    for name in _KEPT:
        try:
            found[name] = json.loads(sight.text(os.path.join(folder, name)) or "null")
        except (ValueError, RecursionError):
            found[name] = None
    # whatever is in it: one that is cut means that a server is out, too
    state = sight.state(os.path.join(folder, _DRAINED))
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(state.st_mtime)) if state else ""
    return {"kept": {name: value for name, value in found.items() if value}, "drained_since": since}


# --- what runs --------------------------------------------------------------------------------------------------------


def _with_boot(instance: Instance, eyes: Eyes) -> Optional[Instance]:
    try:
        allocation, service, gaps = eyes.boot(instance.unit)
    except (JournalError, OSError, ValueError) as error:
        return replace(instance, problem=str(error))
    # behind a script of its owner a server is known by its own words alone
    if not instance.name and instance.server.how == "hidden" and not (allocation or {}).get("server_args"):
        return None
    known = replace(instance, allocation=allocation, service=service, gaps=gaps)
    return replace(known, answer=_ask(known, eyes.probe)) if service.active_state in ("active", "reloading") else known


def boot_reader(sight: Sight, names: Callable[[str], list[str]]) -> BootReader:
    """Reads the start of a unit that runs now, or the last one, once: no more of the journal than its lines."""

    def boot(unit: str) -> tuple[Optional[dict[str, Any]], ServiceState, tuple[str, ...]]:
        service, reader, folder = read_service(unit, sight.run, sight.read), JournalReader(Source()), BootFolder()
        reader.use_namespace(service.log_namespace)
        invocation = (service.invocation_id or reader.newest_invocation(unit)) if service.exists else None
        if invocation is None:
            return None, service, ()
        folder.main_pid = service.main_pid
        folder.feed_all(reader.read(invocation, unit, lambda: folder.in_traceback))
        version = running_version(service.main_pid, sight.read, names)
        found = folder.result(Parallelism(None, None, None), service=service, invocation_id=invocation, sglang_version=version)
        if service.main_pid and not found.complete:
            # only where something is missing is it of use to know whether the journal has lost it
            reader.check_begin(service.started_us)
        dropped = f"the log daemon dropped {found.dropped_messages:,} messages"
        return found.as_dict(), service, (*((dropped,) if found.dropped_messages else ()), *reader.warnings)

    return boot


def _ask(instance: Instance, probe: Prober) -> Answer:
    """Asks the server where it says that it listens; SGLang answers without a key there."""
    args = (instance.allocation or {}).get("server_args") or {}
    flags = {**instance.server.flags, **{name: args[name] for name in ("host", "port") if isinstance(args.get(name), (str, int))}}
    host = str(flags.get("host", "127.0.0.1"))
    host = _REACHED.get(host, host)
    port = str(flags.get("port", "30000"))
    tls = "ssl-certfile" in flags
    shown = f"[{host}]" if ":" in host else host
    url = f"{'https' if tls else 'http'}://{shown}:{port}/health"
    if not port.isdigit() or not 0 < int(port) < 65536:
        return Answer(url, None, "no such port")
    try:
        return Answer(url, probe(host, int(port), tls, "/health", _ANSWER_S))
    except (OSError, ValueError) as error:
        return Answer(url, None, str(error) or type(error).__name__)


def probe_status(host: str, port: int, tls: bool, path: str, seconds: float) -> int:
    """The status of an answer, by a socket alone: an HTTP library costs more to load than all else that is asked of a host."""
    with socket.create_connection((host, port), timeout=seconds) as plain:
        stream = _secured(plain) if tls else plain
        name = f"[{host}]" if ":" in host else host
        stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n".encode())
        head = b""
        while b"\r\n" not in head and len(head) < 4096:
            block = stream.recv(4096)
            if not block:
                break
            head += block
    words = head.split(b"\r\n", 1)[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError(f"no answer of HTTP: {head[:60]!r}")
    return int(words[1])


def _secured(plain: socket.socket) -> socket.socket:
    # loaded where it is needed alone
    import ssl

    context = ssl.create_default_context()
    # whether it answers is asked here, not who it is: its certificate has the name that clients use
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain)


# --- cards ------------------------------------------------------------------------------------------------------------


def _cards(sight: Sight) -> tuple[Optional[Accelerators], str]:
    if not (sight.program("nvidia-smi") or sight.program("rocm-smi")):
        return None, ""
    try:
        return read_accelerators("cuda", sight.run, lambda path: sight.text(path) or ""), ""
    except GpuError as error:
        return None, str(error)
