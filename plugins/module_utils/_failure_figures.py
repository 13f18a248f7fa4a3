# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers in the last words of a server, and what follows from them. Private to this collection: may change at any time.

Texts of SGLang (0.4 to 0.5.23), of torch and of the service manager to figures, and figures to the next C(mem_fraction_static).
Memory is GiB (2^30), fractions have 4 decimals. P is the free memory before the weights, A the free memory when the pool is sized,
f the fraction of the start: SGLang gives the pool A - P (1 - f). Nothing in here raises.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple, Optional

# What the smallest pool that a server can answer its warm-up request from takes on one rank: a page of 128 tokens of a large model
# with full K/V heads (0.5 MiB a token). It is more than what the 2 decimals of the log's figures leave open (0.01 GiB).
SMALLEST_POOL_GIB = 0.0625
# Less than this is a desktop or a monitor of the card, which stays; whoever holds more is in the way.
FOREIGN_GIB = 1.0
# Of the memory beside the weights a hybrid model's states get r / (1 + r), r being mamba_full_memory_ratio, 0.9 unless it is set.
_STATE_SHARE = 0.9 / 1.9


@dataclass(frozen=True)
class BootFigures:
    """What the log of the boot says that a fraction can be worked out from; GiB, the smallest over the ranks.

    ``before_gib``: P, ``at_sizing_gib``: A, ``fraction``: f as the server has it in effect.
    """

    before_gib: Optional[float] = None
    at_sizing_gib: Optional[float] = None
    fraction: Optional[float] = None


class Holder(NamedTuple):
    """A process that holds memory of a card, GiB."""

    pid: int
    gib: float


class Shortage(NamedTuple):
    """What an allocation on a card failed for: how much was asked for, how much was free (GiB), and who else holds memory.

    ``unused_gib``: what PyTorch holds of the card and has given to nobody.
    """

    asked_gib: float
    free_gib: float
    others: tuple[Holder, ...]
    unused_gib: float = 0.0

    @property
    def gib(self) -> float:
        return max(self.asked_gib - self.free_gib, 0.0)


# --- the next fraction ------------------------------------------------------------------------------------------------

_VIABLE = (
    re.compile(r"minimum viable = (?:1 - available/pre = )?(0?\.\d{1,10})"),
    re.compile(r"--mem-fraction-static above (0?\.\d{1,10})"),
)
_STATES = re.compile(r"total_rest_memory=(-?\d{1,6}\.\d{1,6}) GB, mamba_cache_per_req=(\d{1,9}\.\d{1,6}) MB")


def minimum_fraction(text: str, figures: BootFigures) -> Optional[float]:
    """The share below which this start cannot come up: SGLang's own figure, else 1 - A/P, 4 decimals up; None if neither is known."""
    named = next((match for match in (pattern.search(text) for pattern in _VIABLE) if match), None)
    if named is not None:
        return float(named.group(1))
    before, after = _card(figures), figures.at_sizing_gib
    if before is None or after is None or not 0 <= after < before:
        return None
    return _up(1 - after / before)


def raised_fraction(text: str, figures: BootFigures) -> Optional[float]:
    """The smallest share that starts at all, 4 decimals up; None where the log does not hold what it takes. It may be 1 or more.

    The weights need the minimum, and the smallest pool SMALLEST_POOL_GIB / P on top of it. A hybrid model needs its states besides:
    SGLang takes two slots of them (one pads) out of their part of the memory beside the weights, so that memory must grow from what
    the refusal names to 2 slots / _STATE_SHARE. A draft adds to a slot what SGLang does not print, so this is then a lower bound.
    """
    before, fraction = _card(figures), figures.fraction
    if before is None:
        return None
    states = _STATES.search(text)
    if states is not None and fraction is not None:
        rest, slot = float(states.group(1)), float(states.group(2)) / 1024
        return _up(fraction + max(2 * slot / _STATE_SHARE - rest, SMALLEST_POOL_GIB) / before)
    known = [share for share in (minimum_fraction(text, figures), fraction) if share is not None]
    return _up(max(known) + SMALLEST_POOL_GIB / before) if known else None


def lowered_fraction(shortage: Optional[Shortage], figures: BootFigures) -> Optional[float]:
    """The largest share that leaves what CUDA lacked, f - shortage / P, 4 decimals down; None where a figure of it is not known."""
    before, fraction = _card(figures), figures.fraction
    if shortage is None or shortage.gib <= 0 or fraction is None or before is None:
        return None
    return math.floor((fraction - shortage.gib / before) * 10000 + 1e-6) / 10000


def _card(figures: BootFigures) -> Optional[float]:
    """P, where it is a figure that a card can have."""
    before = figures.before_gib
    return before if before is not None and 0.1 <= before <= 10**6 else None


def _up(share: float) -> float:
    return math.ceil(share * 10000 - 1e-6) / 10000


# --- texts ------------------------------------------------------------------------------------------------------------

_UNITS = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 1024.0}
_SIZE = r"(\d{1,12}(?:\.\d{1,6})?) (bytes|[KMGT]iB)"
_ASKED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_FREE = re.compile(rf"of which {_SIZE} is free|; {_SIZE} free;")
_HOLDER = re.compile(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_OWN = re.compile(r"this process has \d")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_ALLOCATED = re.compile(rf"allocated memory {_SIZE} is allocated by PyTorch")
_FIGURE = r"=(\d{1,6}(?:\.\d{0,20})?)"
_UNBALANCED = re.compile(rf"(?:min_per_gpu_memory|pre_model_load_memory){_FIGURE}.{{0,40}}?\blocal_gpu_memory{_FIGURE}")


def shortage_of(text: str) -> Optional[Shortage]:
    """What torch's text on an allocation that failed says, in all its forms; None where it names no sizes."""
    asked, free = _ASKED.search(text), _FREE.search(text)
    if asked is None or free is None:
        return None
    number, unit = (part for part in free.groups() if part is not None)
    unused = _UNUSED.search(text)
    return Shortage(_gib(*asked.groups()), _gib(number, unit), _others(text), _gib(*unused.groups()) if unused else 0.0)


def _others(text: str) -> tuple[Holder, ...]:
    holders = [Holder(int(pid), _gib(number, unit)) for pid, number, unit in _HOLDER.findall(text)]
    own = _ALLOCATED.search(text)
    if holders and not _OWN.search(text):
        # in a container the card knows this process by another number: it is the one that holds what PyTorch says it allocated
        about = _gib(*own.groups()) if own else max(holder.gib for holder in holders)
        holders.remove(min(holders, key=lambda holder: abs(holder.gib - about)))
    return tuple(holders)


def foreign_holders(shortage: Optional[Shortage]) -> tuple[Holder, ...]:
    """Other processes that hold so much of the card that the allocation would have fitted without them; else none."""
    if shortage is None or sum(holder.gib for holder in shortage.others) < max(shortage.gib, FOREIGN_GIB):
        return ()
    return shortage.others


def unbalanced_gib(text: str) -> Optional[tuple[float, float]]:
    """(free on the poorest card, free on this rank's card) of SGLang's word on unbalanced memory; None where it names no figures."""
    found = _UNBALANCED.search(text)
    return (float(found.group(1)), float(found.group(2))) if found else None


def _gib(number: str, unit: str) -> float:
    return float(number) * _UNITS[unit]


# --- exit codes -------------------------------------------------------------------------------------------------------

_EXIT = re.compile(r"(?:[Ee]xit ?code:? |exitcode=|terminated with )(-?\d{1,5})\b")
_STATUS = re.compile(
    r"(?:code=(?P<how>exited|killed|dumped), status=|result (?P<result>[\w-]{1,40}), exit status )"
    r"(?P<number>\d{1,5})(?P<name>/[A-Z_]{2,40})?"
)
# exit codes with a meaning: those of shells, of Python's argument parser, and those the service manager ends a child with
_MEANINGS = {
    0: "success to the service manager, so that Restart=on-failure leaves the server dead",
    1: "an error of its own",
    2: "arguments that it does not take",
    126: "a program that may not be run",
    127: "a program that is not there",
    200: "that the working directory cannot be entered",
    203: "that the program cannot be run",
    216: "that the group of the unit does not exist",
    217: "that the user of the unit does not exist",
    226: "that the unit's file system sandbox cannot be set up",
}
_TOLD = "told to end"
_WHO = "find out by whom: a timeout of the unit, systemctl, or a person"
_CORE = "look for a core dump (coredumpctl), and for builds of torch, driver and kernels that do not fit"


class _Signal(NamedTuple):
    name: str
    meaning: str
    remedy: str


_SIGNALS = {
    1: _Signal("SIGHUP", _TOLD, _WHO),
    2: _Signal("SIGINT", _TOLD, _WHO),
    3: _Signal("SIGQUIT", f"{_TOLD} with a trace", _WHO),
    4: _Signal("SIGILL", "an instruction that this processor does not have", "install builds of torch and kernels that are made for it"),
    6: _Signal("SIGABRT", "native code gave up, as a watchdog of NCCL or a failed assertion does", "read the log before this line"),
    7: _Signal("SIGBUS", "memory that is not there", "look for a full /dev/shm, and for a file cut short"),
    8: _Signal("SIGFPE", "an arithmetic fault in native code", _CORE),
    9: _Signal(
        "SIGKILL",
        "killed from outside, mostly by the kernel's OOM killer",
        "look for it with journalctl -k, else for a timeout of the unit",
    ),
    11: _Signal("SIGSEGV", "a crash in native code", _CORE),
    15: _Signal("SIGTERM", _TOLD, _WHO),
}


class Exit(NamedTuple):
    """How a process ended: ``code`` as Python says it, a signal as its negative number, and ``seen`` as the text says it."""

    code: int
    seen: str


def exit_of(text: str) -> Optional[Exit]:
    """How a process ended, as far as a text names it; the last one where there are several, None where none."""
    found = [(match.start(), _exit_code(match)) for match in _EXIT.finditer(text)]
    found += [(match.start(), _status(match)) for match in _STATUS.finditer(text)]
    return max(found)[1] if found else None


def _exit_code(match: re.Match[str]) -> Exit:
    number = int(match.group(1))
    return Exit(_as_signal(number), f"exit code {number}{_of_shell(number)}")


def _status(match: re.Match[str]) -> Exit:
    number = int(match["number"])
    seen = f"status={number}{match['name'] or ''}" if match["how"] else f"exit status {number}"
    if match["how"] in ("killed", "dumped") or match["result"] in ("signal", "core-dump"):
        return Exit(-number, seen)
    return Exit(_as_signal(number), f"{seen}{_of_shell(number)}")


def _of_shell(number: int) -> str:
    """A shell says 128 + n for signal n."""
    return f" (128 + {number - 128})" if number - 128 in _SIGNALS else ""


def _as_signal(code: int) -> int:
    """A shell says 128 + n for signal n, Python -n."""
    return 128 - code if code - 128 in _SIGNALS else code


def meaning_of(end: Exit) -> str:
    """In words how a process ended."""
    if end.code >= 0:
        return f"{end.seen} means {_MEANINGS.get(end.code, 'that the program ended itself')}"
    signal = _SIGNALS.get(-end.code)
    return f"{end.seen} is {signal.name} ({signal.meaning})" if signal else f"{end.seen} is signal {-end.code}, which came from outside"


def remedy_of(end: Exit) -> Optional[str]:
    """What to do about a signal; None where none ended the process, or one that is not known."""
    signal = _SIGNALS.get(-end.code)
    return signal.remedy if signal else None
