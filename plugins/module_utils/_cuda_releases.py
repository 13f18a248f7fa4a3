# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an SGLang release asks of the NVIDIA driver and of Python. Private to this collection: may change at any time.

The torch that a release pins and its Requires-Python are from the METADATA of its wheel; the CUDA of a torch is that of the
nvidia-cuda-runtime or cuda-toolkit which its own wheel on the Python package index requires; the drivers are from the tables of NVIDIA's
CUDA release notes. A torch from another index may be built for another CUDA: then nothing here holds.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._eras import read_version
from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding

DRIVER = "driver"


class Pin(NamedTuple):
    """From this release on, up to the next row."""

    since: str
    torch: str
    cuda: str


PINS: tuple[Pin, ...] = (
    Pin("0.4.6.post5", "2.6.0", "12.4"),
    Pin("0.4.9.post6", "2.7.1", "12.6"),
    Pin("0.5.1.post3", "2.8.0", "12.8"),
    Pin("0.5.6.post2", "2.9.1", "12.8"),
    Pin("0.5.11", "2.11.0", "13.0"),
    Pin("0.5.18", "2.13.0", "13.0"),
    Pin("0.5.22", "2.14.1", "13.0"),
)
# CUDA: the least driver that runs its programs, and the one that comes with it. Within a major version a program runs on the driver of
# the first minor one (minor version compatibility); what a kernel compiles at run time (PTX) needs the driver that came with its CUDA.
DRIVERS: dict[str, tuple[str, str]] = {
    "12.4": ("525.60.13", "550.54.14"),
    "12.6": ("525.60.13", "560.28.03"),
    "12.8": ("525.60.13", "570.26"),
    "12.9": ("525.60.13", "575.51.03"),
    "13.0": ("580.65.06", "580.65.06"),
}
# From this release on, up to the next row: the least Python.
PYTHONS: tuple[tuple[str, tuple[int, int]], ...] = (("0.4.6.post5", (3, 8)), ("0.5.1.post3", (3, 10)), ("0.5.22", (3, 11)))


def pin_of(sglang_version: str) -> Optional[Pin]:
    """None for a version older than the table, and for one that names no release; the newest row for a newer one."""
    key = _key(sglang_version)
    rows = [pin for pin in PINS if _key(pin.since) <= key] if key else []
    return rows[-1] if rows else None


def driver_finding(sglang_version: str, driver_version: str) -> Optional[Finding]:
    """None where the driver runs the CUDA of the release's torch, or where either is not known.

    For SGLang from the Python package index, ``0.5.23`` and the like; ``driver_version`` as nvidia-smi has it, ``580.65.06``.
    """
    pin, found = pin_of(sglang_version), _numbers(driver_version)
    if pin is None or not found:
        return None
    least, own = DRIVERS[pin.cuda]
    if found >= _numbers(least):
        return None
    of_major = "" if own == least else f", {own} for all it can"
    return Finding(
        DRIVER,
        f"SGLang {sglang_version} with torch {pin.torch} for CUDA {pin.cuda}, which needs driver {least} or newer{of_major}",
        f"driver {driver_version}",
        f"install a driver of at least {least}, or a build of SGLang and torch for an older CUDA (sglang_extra_index_url, sglang_wheel)",
    )


def driver_note(sglang_version: str, driver_version: str) -> str:
    """A driver that runs the release's CUDA but is older than the one that came with it; else empty."""
    pin, found = pin_of(sglang_version), _numbers(driver_version)
    if pin is None or not found or driver_finding(sglang_version, driver_version) is not None or found >= _numbers(DRIVERS[pin.cuda][1]):
        return ""
    return (
        f"driver {driver_version} is older than {DRIVERS[pin.cuda][1]}, which came with CUDA {pin.cuda} (torch {pin.torch} of SGLang "
        f"{sglang_version}): programs run, but kernels that are compiled at run time may be refused as an unsupported PTX version"
    )


def required_python(sglang_version: str) -> tuple[int, int]:
    """The least Python of a release, as (3, 10); of the newest one for a version that is not known."""
    key = _key(sglang_version)
    rows = [least for since, least in PYTHONS if not key or _key(since) <= key]
    return rows[-1] if rows else PYTHONS[0][1]


def _key(sglang_version: str) -> tuple[int, ...]:
    """A release in order, its post-release last; empty for a version that names none. Raises InputError for no text."""
    version = read_version(sglang_version)
    return (*version.release, version.post) if version.known else ()


def _numbers(driver: str) -> tuple[int, ...]:
    """Empty where the text is no version."""
    parts = driver.strip().split(".")
    return tuple(int(part) for part in parts) if all(part.isascii() and part.isdigit() for part in parts) else ()
