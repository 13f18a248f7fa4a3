# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of the accelerators of a host, as its own tools print it. Private to this collection: may change at any time.

NVIDIA cards are read with C(nvidia-smi), whose MiB figures are 2^20 bytes. On a host without cards (SGLang on the CPU) the
figure that SGLang itself takes is the kernel's available memory, read from C(/proc/meminfo). All results are GiB (2^30).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# argv -> (exit code, standard output, standard error); raises OSError where the program cannot be started
Runner = Callable[[Sequence[str]], "tuple[int, str, str]"]
Opener = Callable[[str], str]

QUERY = ("index", "uuid", "name", "memory.total", "memory.used", "memory.free")
NVIDIA_SMI = ("nvidia-smi", "--query-gpu=" + ",".join(QUERY), "--format=csv,noheader,nounits")


class GpuError(Exception):
    """The memory of the accelerators cannot be told; the text says what was asked, found, and what to do."""


@dataclass(frozen=True)
class Gpu:
    """One accelerator; memory in GiB."""

    index: int
    uuid: str
    name: str
    total_gib: float
    used_gib: float
    free_gib: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def parse_nvidia_smi(text: str) -> list[Gpu]:
    """Rows of ``nvidia-smi --query-gpu`` (csv, no header, no units; MiB) as cards; raises GpuError on any other form."""
    return [_nvidia_row(line) for line in text.splitlines() if line.strip()]


def _nvidia_row(line: str) -> Gpu:
    fields = [field.strip() for field in line.split(",")]
    try:
        index, uuid, name, total, used, free = fields
        return Gpu(int(index), uuid, name, _mib(total), _mib(used), _mib(free))
    except ValueError as error:
        raise GpuError(
            f"asked nvidia-smi for {', '.join(QUERY)} of each card, found the line {line!r}; "
            "look whether the driver is in order (nvidia-smi by hand), or give gpu_free_gib yourself"
        ) from error


def _mib(text: str) -> float:
    return round(int(text) / 1024, 3)


def parse_meminfo(text: str) -> Gpu:
    """/proc/meminfo (kB = 1024 bytes) as one pseudo card named C(cpu); raises GpuError without the two lines it needs."""
    values = {}
    for line in text.splitlines():
        key, _colon, rest = line.partition(":")
        number = rest.split()
        if number and number[0].isdigit():
            values[key] = int(number[0]) / 1024**2
    try:
        total, free = values["MemTotal"], values["MemAvailable"]
    except KeyError as error:
        raise GpuError(f"asked /proc/meminfo for MemTotal and MemAvailable, found no {error}; give gpu_free_gib yourself") from error
    return Gpu(0, "cpu", "cpu", round(total, 3), round(total - free, 3), round(free, 3))


def read_gpus(device: str, run: Runner, read: Opener) -> list[Gpu]:
    """The cards of this host for SGLang's ``--device`` (``cuda`` or ``cpu``); raises GpuError where they cannot be read."""
    if device == "cpu":
        return [parse_meminfo(read("/proc/meminfo"))]
    try:
        code, out, err = run(NVIDIA_SMI)
    except OSError as error:
        raise GpuError(
            f"asked nvidia-smi for the memory of each card, found that it cannot be started ({error}); "
            "install NVIDIA's driver, use device cpu, or give gpu_free_gib yourself"
        ) from error
    if code != 0:
        raise GpuError(
            f"asked nvidia-smi for the memory of each card, found exit code {code} ({(err or out).strip()[:300]}); "
            "mend the driver first: SGLang would not start either"
        )
    cards = parse_nvidia_smi(out)
    if not cards:
        raise GpuError("asked nvidia-smi for the memory of each card, found none listed; look at the PCI bus and the driver")
    return cards
