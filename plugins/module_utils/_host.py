# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is, as far as a server on it depends on that. Private to this collection: may change at any time.

Files, folders and programs are read through the injected functions of a Sight; nothing here judges, and nothing is changed. Memory and
disk are GiB (2^30).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._gpus import meminfo_gib
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner, search_path
from ansible_collections.inferops.sglang.plugins.module_utils._service import running_digest
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import read_unit as read_unit_file

GIB = 1 << 30
UNIT_FOLDER = "/etc/systemd/system"
_CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
_UNIT_PROPERTIES = ("LoadState", "ActiveState", "MainPID", "DropInPaths", "FragmentPath", "ControlGroup")
_LISTENS = "0A"
_SYS_RESOURCE = 24  # the capability to raise limits
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(?:, (.*))?")
_PYTHON = "import sys, importlib.util as u; print('%d.%d.%d' % sys.version_info[:3], int(u.find_spec('ensurepip') is not None))"


@dataclass(frozen=True)
class Space:
    """The filesystem that holds a path, or will. ``mount`` is where it begins."""

    mount: str
    device: int
    free_gib: float


def _read(path: str) -> bytes:
    # what a pipe holds has no end, and opening one can wait for ever
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
        return stream.read(64 << 20)


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _stat(path: str) -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _free_bytes(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


@dataclass(frozen=True)
class Sight:
    """How a host is looked at. ``read`` raises OSError; what is not there has no names, no link and no state."""

    run: Runner
    read: Callable[[str], bytes] = _read
    names: Callable[[str], list[str]] = _names
    link: Callable[[str], str] = _link
    state: Callable[[str], Optional[os.stat_result]] = _stat
    free_bytes: Callable[[str], int] = _free_bytes
    program: Callable[[str], Optional[str]] = field(default=lambda name: shutil.which(name, path=search_path()))

    def text(self, path: str) -> Optional[str]:
        """A file as text; None where there is none that can be read."""
        try:
            return self.read(path).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None


# --- the service manager and the unit -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Manager:
    """``version`` is none where systemd does not answer; ``found`` says then what process 1 is and what systemctl said."""

    version: Optional[int]
    found: str = ""


@dataclass(frozen=True)
class Unit:
    """A unit as the manager knows it and as its file is; ``text`` is none where there is no file of its own."""

    name: str
    path: str
    text: Optional[str] = None
    load_state: str = "not-found"
    active_state: str = "inactive"
    main_pid: int = 0
    drop_ins: tuple[str, ...] = ()
    control_group: str = ""


def read_manager(sight: Sight) -> Manager:
    try:
        code, out, errors = sight.run(["systemctl", "show", "--property=Version"])
    except OSError as error:
        code, out, errors = 127, "", str(error)
    match = re.search(r"^Version=\D*(\d+)", out, re.M)
    if code == 0 and match:
        return Manager(int(match.group(1)))
    first = (sight.text("/proc/1/comm") or "").strip() or "an unknown program"
    said = " ".join((errors or out).split())[:200]
    return Manager(None, f"{first} as process 1 (systemctl: {said or f'exit code {code}'})")


def read_unit(sight: Sight, name: str) -> Unit:
    """The unit, with the text of its file under /etc/systemd/system; one that is not there where systemd does not answer."""
    path = f"{UNIT_FOLDER}/{name}"
    text = None if sight.link(path) == "/dev/null" else sight.text(path)
    try:
        code, out, _errors = sight.run(["systemctl", "show", "--property=" + ",".join(_UNIT_PROPERTIES), "--", name])
    except OSError:
        code, out = 127, ""
    if code != 0:
        return Unit(name, path, text)
    values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    pid = values.get("MainPID", "")
    return Unit(
        name=name,
        path=path,
        text=text,
        load_state=values.get("LoadState", "not-found"),
        active_state=values.get("ActiveState", "inactive"),
        main_pid=int(pid) if pid.isdigit() else 0,
        drop_ins=tuple(values.get("DropInPaths", "").split()),
        control_group=values.get("ControlGroup", ""),
    )


def pids_of(sight: Sight, units: Iterable[Unit]) -> frozenset[int]:
    """Every process of these units."""
    found: set[int] = set()
    for unit in units:
        found.update([unit.main_pid] if unit.main_pid else [])
        for root in _CGROUPS if unit.control_group else ():
            found.update(_group_pids(sight, f"{root}{unit.control_group}"))
    return frozenset(found)


def _group_pids(sight: Sight, folder: str) -> Iterable[int]:
    text = sight.text(f"{folder}/cgroup.procs")
    if text is None:
        return
    yield from (int(word) for word in text.split() if word.isdigit())
    for name in sight.names(folder):
        if "." not in name or name.endswith((".scope", ".service", ".slice")):
            yield from _group_pids(sight, f"{folder}/{name}")


# --- processes and ports --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Owners:
    """Whose processes are the instance's own: those of its units, and in a container those of the same configuration."""

    pids: frozenset[int]
    digests: frozenset[str]


def read_owners(sight: Sight, units: Sequence[Unit]) -> Owners:
    digests = (running_digest(unit.main_pid, sight.read) for unit in units if unit.main_pid)
    return Owners(pids_of(sight, units), frozenset(digest for digest in digests if digest))


def is_own(sight: Sight, owners: Owners, pid: int) -> bool:
    return pid in owners.pids or (bool(owners.digests) and running_digest(pid, sight.read) in owners.digests)


def program_of(sight: Sight, pid: int) -> str:
    """A process in words: its program, and its unit if it has one; empty where it cannot be seen."""
    name = (sight.text(f"/proc/{pid}/comm") or "").strip()
    match = re.search(r"([^/\n]+\.service)(?:/|$)", sight.text(f"/proc/{pid}/cgroup") or "", re.M)
    return f"{name} of {match.group(1)}" if name and match else name


@dataclass(frozen=True)
class Listener:
    """A socket that listens. ``pid`` is 0 where its process cannot be seen."""

    address: str
    port: int
    pid: int
    program: str
    own: bool


def read_listeners(sight: Sight, host: str, port: int, owners: Owners) -> tuple[Listener, ...]:
    """Sockets that listen where a server on this address and port would."""
    sockets = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (sight.text(table) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTENS and words[1].count(":") == 1:
                address, _colon, number = words[1].partition(":")
                sockets.append((_address(address), int(number, 16), words[9]))
    ours = {"localhost": "127.0.0.1", "": "127.0.0.1"}.get(host, host)
    wild = ("0.0.0.0", "::")
    hits = [item for item in sockets if item[1] == port and (item[0] == ours or item[0] in wild or ours in wild or not _is_address(ours))]
    return tuple(_listener(sight, address, inode, port, owners) for address, _port, inode in hits)


def _listener(sight: Sight, address: str, inode: str, port: int, owners: Owners) -> Listener:
    link = f"socket:[{inode}]"
    pid = _holder(sight, link, sorted(owners.pids))
    if not pid:
        pid = _holder(sight, link, (int(name) for name in sight.names("/proc") if name.isdigit()))
    return Listener(address, port, pid, program_of(sight, pid) if pid else "", bool(pid) and is_own(sight, owners, pid))


def _holder(sight: Sight, link: str, pids: Iterable[int]) -> int:
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        if any(sight.link(f"{folder}/{name}") == link for name in sight.names(folder)):
            return pid
    return 0


def _is_address(text: str) -> bool:
    return ":" in text or bool(re.fullmatch(r"[\d.]+", text))


def _address(digits: str) -> str:
    """An address of the kernel's tables: words of 4 bytes, each the wrong way round."""
    if len(digits) == 8:
        return ".".join(str(int(digits[place : place + 2], 16)) for place in (6, 4, 2, 0))
    words = [digits[place : place + 8] for place in range(0, 32, 8)]
    whole = "".join("".join(word[place : place + 2] for place in (6, 4, 2, 0)) for word in words).lower()
    if whole == "0" * 32:
        return "::"
    if whole == "0" * 31 + "1":
        return "::1"
    if whole.startswith("0" * 20 + "ffff"):
        return ".".join(str(int(whole[place : place + 2], 16)) for place in (24, 26, 28, 30))
    return ":".join(whole[place : place + 4] for place in range(0, 32, 4))


# --- other instances ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """Another server of the role on this host: its port, and its cards by index or UUID (none named: all)."""

    unit: str
    port: Optional[int]
    gpus: tuple[str, ...]


def read_instances(sight: Sight, own: Iterable[str]) -> tuple[Instance, ...]:
    """The other units that carry the role's mark and will run: enabled, or running now."""
    leave = set(own)
    files = sight.names(UNIT_FOLDER)
    enabled = {name for folder in files if folder.endswith((".wants", ".requires")) for name in sight.names(f"{UNIT_FOLDER}/{folder}")}
    found = []
    for name in files:
        if not name.endswith(".service") or name in leave:
            continue
        text = sight.text(f"{UNIT_FOLDER}/{name}") or ""
        if read_unit_file(text).instance and (name in enabled or _runs(sight, name)):
            found.append(_instance(sight, name, text))
    return tuple(found)


def _runs(sight: Sight, unit: str) -> bool:
    return any(sight.state(f"{root}/system.slice/{unit}") is not None for root in _CGROUPS)


def _instance(sight: Sight, unit: str, text: str) -> Instance:
    port = re.search(r"--port[ =](\d+)", text)
    gpus: tuple[str, ...] = ()
    for path in re.findall(r"^EnvironmentFile=-?(/.*)$", text, re.M):
        match = re.search(r'^CUDA_VISIBLE_DEVICES="?([^"\n]*)"?$', sight.text(path) or "", re.M)
        gpus = tuple(word.strip() for word in match.group(1).split(",") if word.strip()) if match else gpus
    return Instance(unit, int(port.group(1)) if port else None, gpus)


# --- memory, limits, disk, kernel -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HostMemory:
    """GiB. ``own_gib`` is what the instance's own processes hold and give back when they end."""

    total_gib: float
    available_gib: float
    own_gib: float = 0.0
    huge_gib: float = 0.0


def read_memory(sight: Sight, owners: Owners) -> Optional[HostMemory]:
    values = meminfo_gib(sight.text("/proc/meminfo") or "")
    if "MemTotal" not in values or "MemAvailable" not in values:
        return None
    own = sum(_status_gib(sight, pid, "RssAnon") for pid in owners.pids)
    return HostMemory(values["MemTotal"], values["MemAvailable"], own, values.get("Hugetlb", 0.0))


def _status_gib(sight: Sight, pid: int, key: str) -> float:
    match = re.search(rf"^{key}:\s+(\d+) kB", sight.text(f"/proc/{pid}/status") or "", re.M)
    return int(match.group(1)) / 1024**2 if match else 0.0


@dataclass(frozen=True)
class LockLimit:
    """Memory that a service can lock. ``most_kib``: what the manager cannot go beyond, none where it can raise the limit."""

    most_kib: Optional[int]
    rdma: tuple[str, ...]


def read_lock_limit(sight: Sight) -> LockLimit:
    rdma = tuple(sight.names("/sys/class/infiniband"))
    limit = re.search(r"^Max locked memory\s+\S+\s+(\d+)", sight.text("/proc/1/limits") or "", re.M)
    rights = re.search(r"^CapEff:\s+([0-9a-f]+)", sight.text("/proc/1/status") or "", re.M)
    raises = rights is not None and int(rights.group(1), 16) >> _SYS_RESOURCE & 1
    return LockLimit(int(limit.group(1)) // 1024 if limit and not raises else None, rdma)


def read_space(sight: Sight, path: str) -> Optional[Space]:
    """The filesystem on which a path is or would be made; None for a path that is not absolute."""
    if not os.path.isabs(path):
        return None
    place = path.rstrip("/") or "/"
    found = sight.state(place)
    while found is None and place != "/":
        place = os.path.dirname(place)
        found = sight.state(place)
    if found is None:
        return None
    try:
        free = sight.free_bytes(place) / GIB
    except OSError:
        return None
    mount = place
    while mount != "/":
        parent = sight.state(os.path.dirname(mount))
        if parent is None or parent.st_dev != found.st_dev:
            break
        mount = os.path.dirname(mount)
    return Space(mount, found.st_dev, free)


@dataclass(frozen=True)
class Xid:
    """An error of a card in the kernel's log of this boot."""

    at: str
    pci: str
    code: int
    message: str


def read_xids(sight: Sight) -> tuple[Xid, ...]:
    """The newest 200, oldest first; none where the kernel's log cannot be read."""
    argv = ["journalctl", "--dmesg", "--boot", "--output=json", "--output-fields=MESSAGE", "--lines=200", "--no-pager", "--quiet"]
    try:
        code, out, _errors = sight.run([*argv, "--grep=NVRM: Xid"])
    except OSError:
        return ()
    found = (_xid(line) for line in out.splitlines()) if code == 0 else ()
    return tuple(xid for xid in found if xid is not None)


def _xid(line: str) -> Optional[Xid]:
    try:
        record = json.loads(line)
        message, stamp = record["MESSAGE"], int(record["__REALTIME_TIMESTAMP"])
    except (ValueError, KeyError, TypeError):
        return None
    match = _XID.search(message) if isinstance(message, str) else None
    if match is None:
        return None
    at = datetime.fromtimestamp(stamp / 10**6, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Xid(at, match.group(1).lower(), int(match.group(2)), (match.group(3) or "").strip()[:120])


# --- files and interpreters -----------------------------------------------------------------------------------------------


# no key or token is longer
_SECRET_BYTES = 16384


@dataclass(frozen=True)
class FileFacts:
    """``kind``: missing, file, folder or other; ``size`` in bytes; ``lines``: of the text in a file as small as a secret, else 0."""

    kind: str
    mode: int = 0
    size: int = 0
    lines: int = 0

    @property
    def open_to_others(self) -> bool:
        return bool(self.mode & 0o077)


def read_file_facts(sight: Sight, path: str) -> FileFacts:
    found = sight.state(path)
    if found is None:
        return FileFacts("missing")
    kind = "folder" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else "other"
    text = sight.text(path) if kind == "file" and found.st_size <= _SECRET_BYTES else None
    return FileFacts(kind, stat.S_IMODE(found.st_mode), found.st_size, len((text or "").strip().splitlines()))


@dataclass(frozen=True)
class Interpreter:
    """A Python of the host. ``version`` is empty where it does not run, and ``found`` says then why."""

    version: str
    has_ensurepip: bool = False
    found: str = ""

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split(".")) if self.version else ()


def read_interpreter(sight: Sight, path: str) -> Interpreter:
    try:
        code, out, errors = sight.run([path, "-c", _PYTHON])
    except FileNotFoundError:
        return Interpreter("", found="no such program")
    except OSError as error:
        return Interpreter("", found=f"that it cannot be started ({error.strerror or error})")
    match = re.fullmatch(r"(\d+\.\d+\.\d+) ([01])", out.strip())
    if code != 0 or match is None:
        return Interpreter("", found=f"exit code {code} ({' '.join((errors or out).split())[:200]})")
    return Interpreter(match.group(1), match.group(2) == "1")
