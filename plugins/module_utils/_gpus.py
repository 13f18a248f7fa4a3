# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The accelerators of a host as their own tools show them. Private to this collection: may change at any time.

NVIDIA's cards are read with C(nvidia-smi), whose MiB are 2^20 bytes, AMD's with C(rocm-smi), which prints bytes. On a host without
cards (SGLang on the CPU) the figure that SGLang itself takes is the kernel's available memory, read from C(/proc/meminfo). All results
are GiB (2^30).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner

Opener = Callable[[str], str]

# the name comes last: it may hold a comma
QUERY = (
    "index",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "memory.free",
    "driver_version",
    "compute_cap",
    "ecc.errors.uncorrected.volatile.total",
    "mig.mode.current",
    "name",
)
# without these there is no card
_NEEDED = ("index", "uuid", "memory.total", "memory.used", "memory.free", "name")
PROCESS_QUERY = ("pid", "gpu_uuid", "used_gpu_memory", "process_name")
_FORMAT = "--format=csv,noheader,nounits"
NVIDIA_SMI = ("nvidia-smi", "--query-gpu=" + ",".join(QUERY), _FORMAT)
NVIDIA_PROCESSES = ("nvidia-smi", "--query-compute-apps=" + ",".join(PROCESS_QUERY), _FORMAT)
NVIDIA_HEADER = ("nvidia-smi", "--query", "--display=COMPUTE")
ROCM_SMI = (
    "rocm-smi", "--showmeminfo", "vram", "--showproductname", "--showuniqueid", "--showbus", "--showdriverversion", "--showpids", "--json",
)  # fmt: skip
# seconds after which a tool is taken to hang in the driver
TIME_LIMIT = 30

_NO_FIELD = re.compile(r'Field "([\w.]+)" is not a valid field to query')
# drivers from 590 on call it the version of their user-mode part
_CUDA = re.compile(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)")
# rows are printed all the same: a checksum of the card's own settings is wrong
_INFOROM = 14
# What the tool or a field of it says, and what is to be done then; the first that matches counts.
_REMEDIES = (
    (r"version mismatch", "the driver was updated while its old modules run on: reboot the host, or load the nvidia modules anew"),
    (r"is lost|fallen off|requires reset|device handle", "the card fell off the bus: power the host off and on, look at the kernel's log"),
    (r"couldn't communicate|not loaded|No such device", "load the driver (modprobe nvidia), and look why it was not (dkms status)"),
    (r"No devices were found", "no card is bound to the driver: look at the PCI bus (lspci) and at the kernel's log"),
    (r"Insufficient Permissions", "run with become: this user cannot open /dev/nvidia*, or the cards are cut into MIG instances"),
    (r"Not Supported|N/A", "this card does not tell its memory (unified memory, MIG): give sglang_gpu_free_gib (gpu_free_gib) yourself"),
)  # fmt: skip
_REMEDY = "look whether the driver is in order (the tool by hand, the kernel's log): SGLang would not start either"


class GpuError(Exception):
    """The accelerators cannot be told; the text says what was asked, found, and what to do."""

    def __init__(self, asked: str, found: str, advice: str) -> None:
        super().__init__(f"asked for {asked}, found {found}; {advice}")
        self.asked, self.found, self.advice = asked, found, advice


@dataclass(frozen=True)
class Gpu:
    """One accelerator; memory in GiB. What a tool does not tell is none or empty."""

    index: int
    uuid: str
    name: str
    total_gib: float
    used_gib: float
    free_gib: float
    pci_bus_id: str = ""
    compute_capability: Optional[float] = None
    ecc_uncorrected: Optional[int] = None
    mig: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of a card. ``gpu``: the card's index, none where the tool does not tell it."""

    pid: int
    name: str
    gpu: Optional[int]
    used_gib: Optional[float]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Accelerators:
    """What a host has. ``tool`` is empty on the CPU; ``notes`` are sentences about what is odd and stops nothing."""

    tool: str
    cards: tuple[Gpu, ...]
    processes: tuple[GpuProcess, ...] = ()
    driver_version: str = ""
    cuda_version: str = ""
    notes: tuple[str, ...] = ()


def read_accelerators(device: str, run: Runner, read: Opener, wanted: Sequence[str] = (), cuda: bool = False) -> Accelerators:
    """The cards for SGLang's ``--device`` (``cuda`` covers NVIDIA and ROCm, or ``cpu``), of them those ``wanted`` by index or UUID.

    Processes are those on these cards. ``cuda``: with the driver's CUDA version, which costs another call. Raises GpuError where
    the cards cannot be read.
    """
    if device == "cpu":
        return Accelerators("", (parse_meminfo(read("/proc/meminfo")),))
    try:
        return _read_nvidia(run, wanted, cuda)
    except FileNotFoundError:
        pass
    try:
        return _read_rocm(run, wanted)
    except FileNotFoundError as error:
        raise GpuError(
            "the memory of each card",
            "neither nvidia-smi nor rocm-smi on this host",
            "install the driver of the cards with its tools, set sglang_device (device) to cpu, or give "
            "sglang_gpu_free_gib (gpu_free_gib) yourself",
        ) from error


def _read_nvidia(run: Runner, wanted: Sequence[str], cuda: bool) -> Accelerators:
    names, code, out = _query(run, QUERY)
    rows = [_fields(line, names) for line in out.splitlines() if line.strip()]
    if not rows:
        raise GpuError("the memory of each card (nvidia-smi)", "no card listed", _remedy("No devices were found"))
    rows = _selected(rows, wanted, lambda row: (row["index"], row["uuid"]))
    cards = tuple(_nvidia_card(row) for row in rows)
    notes = ("The infoROM of a card is corrupted, says nvidia-smi: its counters may be wrong.",) if code == _INFOROM else ()
    return Accelerators(
        tool="nvidia-smi",
        cards=cards,
        processes=_nvidia_processes(run, cards),
        driver_version=_told(rows[0].get("driver_version", "")),
        cuda_version=_cuda_version(run) if cuda else "",
        notes=notes,
    )


def _query(run: Runner, names: tuple[str, ...]) -> tuple[tuple[str, ...], int, str]:
    """The names that this driver knows, the exit code, and the rows; raises GpuError for a tool that gives none."""
    code, out = _call(run, ("nvidia-smi", "--query-gpu=" + ",".join(names), _FORMAT))
    unknown = _NO_FIELD.search(out) if code else None
    if unknown and unknown.group(1) in names and unknown.group(1) not in _NEEDED:
        return _query(run, tuple(name for name in names if name != unknown.group(1)))
    if code not in (0, _INFOROM):
        raise GpuError("the memory of each card (nvidia-smi)", f"exit code {code} ({_line(out)})", _remedy(out))
    # an older driver says it with the exit code of success
    if out.strip().startswith("No devices were found"):
        raise GpuError("the memory of each card (nvidia-smi)", _line(out), _remedy(out))
    return names, code, "\n".join(line for line in out.splitlines() if not line.startswith("WARNING"))


def _call(run: Runner, argv: Sequence[str]) -> tuple[int, str]:
    """Exit code and output, that of errors where there is none; raises FileNotFoundError without the program, GpuError where it hangs."""
    try:
        code, out, errors = run(argv)
    except FileNotFoundError:
        raise
    except TimeoutError as error:
        raise GpuError(
            f"the memory of each card ({argv[0]})",
            str(error),
            "the driver hangs: look at the kernel's log for an Xid or a blocked task, and reboot the host",
        ) from error
    except OSError as error:
        raise GpuError(
            f"the memory of each card ({argv[0]})",
            f"that it cannot be started ({error})",
            "mend the driver's tools, or give sglang_gpu_free_gib (gpu_free_gib) yourself",
        ) from error
    return code, out if out.strip() else errors


def _fields(line: str, names: Sequence[str]) -> dict[str, str]:
    values = [field.strip() for field in line.split(",", len(names) - 1)]
    if len(values) != len(names):
        raise GpuError(f"{', '.join(names)} of each card (nvidia-smi)", f"the line {line.strip()!r}", _remedy(line))
    return dict(zip(names, values))


def _nvidia_card(row: Mapping[str, str]) -> Gpu:
    figures = {}
    for name in ("index", "memory.total", "memory.used", "memory.free"):
        if not _is_count(row[name]):
            card = f"card {row['index']}" + (f" at {row['pci.bus_id']}" if _told(row.get("pci.bus_id", "")) else "")
            raise GpuError(f"{name} of {card} (nvidia-smi)", row[name] or "nothing", _remedy(row[name]))
        figures[name] = int(row[name])
    ecc = row.get("ecc.errors.uncorrected.volatile.total", "")
    return Gpu(
        index=figures["index"],
        uuid=row["uuid"],
        name=row["name"],
        total_gib=_mib(figures["memory.total"]),
        used_gib=_mib(figures["memory.used"]),
        free_gib=_mib(figures["memory.free"]),
        pci_bus_id=_told(row.get("pci.bus_id", "")),
        compute_capability=_decimal(row.get("compute_cap", "")),
        ecc_uncorrected=int(ecc) if _is_count(ecc) else None,
        mig=row.get("mig.mode.current", "") == "Enabled",
    )


def _nvidia_processes(run: Runner, cards: Sequence[Gpu]) -> tuple[GpuProcess, ...]:
    """Processes on these cards; none where the tool does not tell them."""
    code, out = _call(run, NVIDIA_PROCESSES)
    indexes = {card.uuid: card.index for card in cards}
    found = []
    for line in out.splitlines() if code in (0, _INFOROM) else ():
        values = [field.strip() for field in line.split(",", len(PROCESS_QUERY) - 1)]
        if len(values) != len(PROCESS_QUERY) or not _is_count(values[0]) or values[1] not in indexes:
            continue
        pid, uuid, used, name = values
        found.append(GpuProcess(int(pid), _told(name), indexes[uuid], _mib(int(used)) if _is_count(used) else None))
    return tuple(found)


def _cuda_version(run: Runner) -> str:
    _code, out = _call(run, NVIDIA_HEADER)
    match = _CUDA.search(out)
    return match.group(1) if match else ""


def _read_rocm(run: Runner, wanted: Sequence[str]) -> Accelerators:
    code, out = _call(run, ROCM_SMI)
    asked = "the memory of each card (rocm-smi)"
    # sentences about sleeping cards come in front of the data
    start = out.find("{")
    try:
        data = json.loads(out[start:]) if code == 0 and start >= 0 else None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        remedy = "look whether the driver is in order: lsmod | grep amdgpu, the kernel's log"
        raise GpuError(asked, f"exit code {code} ({_line(out)})", remedy)
    tables = {name: _lowered(table) for name, table in data.items() if isinstance(table, dict)}
    names = sorted((name for name in tables if re.fullmatch(r"card\d+", name)), key=lambda name: int(name[4:]))
    if not names:
        raise GpuError(asked, "no card listed", _remedy("No devices were found"))
    names = _selected(names, wanted, lambda name: (name[4:], tables[name].get("unique id", "")))
    system = tables.get("system", {})
    return Accelerators(
        tool="rocm-smi",
        cards=tuple(_rocm_card(int(name[4:]), tables[name]) for name in names),
        processes=_rocm_processes(system),
        driver_version=system.get("driver version", ""),
    )


def _lowered(table: Mapping[str, Any]) -> dict[str, str]:
    """Releases differ in the capitals of their keys."""
    return {str(key).lower(): str(value).strip() for key, value in table.items()}


def _rocm_card(index: int, table: Mapping[str, str]) -> Gpu:
    total, used = table.get("vram total memory (b)", ""), table.get("vram total used memory (b)", "")
    if not (_is_count(total) and _is_count(used)):
        found = f"a total of {total or 'nothing'} and {used or 'nothing'} used"
        raise GpuError(f"the memory of card {index} (rocm-smi)", found, _remedy("N/A"))
    return Gpu(
        index=index,
        uuid=_told(table.get("unique id", "")),
        name=_told(table.get("card series", "")) or _told(table.get("card model", "")) or "AMD card",
        total_gib=round(int(total) / 2**30, 3),
        used_gib=round(int(used) / 2**30, 3),
        free_gib=round((int(total) - int(used)) / 2**30, 3),
        pci_bus_id=_told(table.get("pci bus", "")),
    )


def _rocm_processes(system: Mapping[str, str]) -> tuple[GpuProcess, ...]:
    """``PID4711: name, cards, bytes, ...``: how many cards a process uses is told, not which."""
    found = []
    for key, value in system.items():
        fields = [field.strip() for field in value.rsplit(",", 4)]
        if key.startswith("pid") and _is_count(key[3:]) and len(fields) == 5:
            used = round(int(fields[2]) / 2**30, 3) if _is_count(fields[2]) else None
            found.append(GpuProcess(int(key[3:]), _told(fields[0]), None, used))
    return tuple(found)


def _selected(rows: Sequence[Any], wanted: Sequence[str], names: Callable[[Any], tuple[str, str]]) -> list[Any]:
    """The rows that are wanted by index or UUID, in the order of the wish; all where nothing is wanted."""
    known = {key: row for row in rows for key in names(row) if key}
    missing = [key for key in wanted if key not in known]
    if missing:
        raise GpuError(
            f"the cards {', '.join(wanted)}",
            f"none called {', '.join(missing)} among the {len(rows)} of this host ({', '.join(names(row)[0] for row in rows)})",
            "give indexes or UUIDs as the driver's tool lists them",
        )
    return [known[key] for key in wanted] if wanted else list(rows)


def parse_meminfo(text: str) -> Gpu:
    """/proc/meminfo as one pseudo card named C(cpu); raises GpuError without the two lines it needs."""
    values = meminfo_gib(text)
    try:
        total, free = values["MemTotal"], values["MemAvailable"]
    except KeyError as error:
        raise GpuError("MemTotal and MemAvailable of /proc/meminfo", f"no {error}", "give gpu_free_gib yourself") from error
    return Gpu(0, "cpu", "cpu", round(total, 3), round(total - free, 3), round(free, 3))


def meminfo_gib(text: str) -> dict[str, float]:
    """The lines of /proc/meminfo that are in kB (1024 bytes), as GiB; those without a unit are counts."""
    values = {}
    for line in text.splitlines():
        key, _colon, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            values[key] = int(words[0]) / 1024**2 if words[1:] == ["kB"] else float(words[0])
    return values


def _remedy(text: str) -> str:
    return next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, text)), _REMEDY)


def _line(text: str) -> str:
    """A tool's words on one line."""
    return " ".join(text.split())[:300] or "nothing printed"


def _told(text: str) -> str:
    """A field's text; empty for what the tools print where they do not know."""
    return "" if text.startswith("[") or text in ("N/A", "UNKNOWN", "None") else text


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _decimal(text: str) -> Optional[float]:
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else None


def _mib(mib: int) -> float:
    return round(mib / 1024, 3)
