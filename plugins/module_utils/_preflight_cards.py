# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cards of a host against what is asked of them. Private to this collection: may change at any time. Memory is GiB (2^30)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional, TypeVar

from ansible_collections.inferops.sglang.plugins.module_utils._cuda_releases import driver_finding, driver_note
from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import Gpu, GpuProcess
from ansible_collections.inferops.sglang.plugins.module_utils._host import Instance
from ansible_collections.inferops.sglang.plugins.module_utils._preflight import SHOWN, Ask, Facts, Said

# a card, or the name of one
Card = TypeVar("Card")

# SGLang gives up where the card with the least free memory has less than this share of another rank's
# (srt/model_executor/model_runner.py, from 0.5.2x on srt/distributed/bootstrap.py), with more than one tensor-parallel rank.
BALANCE = 0.9
# cards of one model differ by less
SIZE_SHARE = 0.99
# an idle card of 96 GiB shows 0.6 GiB in use: what is beyond is somebody's
IDLE_GIB = 2.0
# NVIDIA's own, which holds a little memory for others
_SERVICES = ("nvidia-cuda-mps-server",)
# Errors of the card itself; the others that the driver logs are those of a program that ran on it.
HARDWARE_XIDS = {
    48: "an uncorrectable ECC error",
    62: "the card's controller halted",
    64: "a row of memory could not be remapped",
    74: "an NVLink error",
    79: "the card has fallen off the bus",
    95: "an uncontained memory error",
    110: "a security fault",
    119: "the card's system processor does not answer",
    120: "an error of the card's system processor",
    140: "an unrecovered ECC error",
    143: "the card did not start",
}


def card_findings(ask: Ask, facts: Facts) -> Iterator[Said]:
    """What speaks against the cards; nothing on the CPU, nor where they cannot be read and their free memory is given."""
    if ask.device == "cpu":
        return
    if facts.gpu_error is not None:
        if not ask.free_given:
            yield Finding("gpus", facts.gpu_error.asked, facts.gpu_error.found, facts.gpu_error.advice)
        elif ask.gpus:
            # those that are named can be counted all the same
            yield from _count(ask, ask.gpus)
        return
    if facts.accelerators is None:
        return
    yield from facts.accelerators.notes
    cards = used_cards(ask, facts.accelerators.cards)
    yield from _count(ask, [str(card.index) for card in facts.accelerators.cards])
    yield from _size(cards)
    yield from _mig(cards)
    yield from _processes(cards, facts)
    yield from _free(ask, cards, facts)
    yield from _ecc(cards)
    yield from _xids(facts, cards)
    if facts.accelerators.tool == "nvidia-smi" and ask.version.strip() and _is_release(ask):
        yield from _driver(ask.version, facts.accelerators.driver_version)
    yield from _shared(ask, cards, facts.instances)


def used_cards(ask: Ask, cards: Sequence[Card]) -> tuple[Card, ...]:
    """The cards that the ranks of this host take, in SGLang's order: from --base-gpu-id on, every --gpu-id-step-th."""
    return tuple(cards[ask.base_gpu :: max(ask.gpu_step, 1)][: ask.ranks])


def _is_release(ask: Ask) -> bool:
    """Which CUDA a wheel, a branch or an environment of the operator's is built for is not known."""
    return ask.method == "venv" and not ask.custom_source


def _driver(version: str, driver: str) -> Iterator[Said]:
    finding, note = driver_finding(version, driver), driver_note(version, driver)
    if finding is not None:
        yield finding
    elif note:
        yield note


def _count(ask: Ask, cards: Sequence[str]) -> Iterator[Said]:
    """Whether there is a card for each rank, of the indexes (or UUIDs) that there are."""
    used = used_cards(ask, cards)
    sizes = [("tp_size", ask.tp_size), ("pp_size", ask.pp_size), ("dp_size", 1 if ask.dp_attention else ask.dp_size), ("nnodes", ask.nodes)]
    told = ", ".join(f"{name} {size}" for name, size in sizes if size > 1 or name == "tp_size")
    if len(used) < ask.ranks:
        which = " of sglang_gpus" if ask.gpus else ""
        begin = f" from card {ask.base_gpu} on" if ask.base_gpu else ""
        found = f"{len(cards)}{which} ({', '.join(cards) or 'none'})"
        do = "give sizes whose product is the number of cards, or name more cards in sglang_gpus"
        yield Finding("gpus", f"{ask.ranks} cards ({told}){begin}", found, do)
    elif ask.gpus and len(cards) > len(used):
        yield f"{len(cards)} cards are named in sglang_gpus and {len(used)} of them are used ({told})."


def _size(cards: Sequence[Gpu]) -> Iterator[Said]:
    if not cards:
        return
    least, most = min(cards, key=lambda card: card.total_gib), max(cards, key=lambda card: card.total_gib)
    if least.total_gib < SIZE_SHARE * most.total_gib:
        found = " beside ".join(f"card {card.index} ({card.name}) of {card.total_gib:.1f} GiB" for card in (least, most))
        do = "choose cards of one size with sglang_gpus: every rank gets the pool of the smallest"
        yield Finding("gpu_size", "cards of one size", found, do)


def _mig(cards: Sequence[Gpu]) -> Iterator[Said]:
    cut = [card for card in cards if card.mig]
    if cut:
        do = f"end it (nvidia-smi -i {','.join(str(card.index) for card in cut)} -mig 0), or choose other cards with sglang_gpus"
        yield Finding("mig", "whole cards", f"MIG on card{'s' * (len(cut) > 1)} {_indexes(cut)}", do)


def _processes(cards: Sequence[Gpu], facts: Facts) -> Iterator[Said]:
    foreign = [process for process in _foreign(cards, facts) if process.gpu is not None]
    if foreign:
        shown = [_process_words(process, facts) for process in foreign[:SHOWN]]
        more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
        do = "end them, or choose other cards with sglang_gpus"
        yield Finding("gpu_processes", f"cards {_indexes(cards)} for this instance alone", ", ".join(shown) + more, do)


def _process_words(process: GpuProcess, facts: Facts) -> str:
    held = f" with {process.used_gib:.1f} GiB" if process.used_gib is not None else ""
    return f"{facts.programs.get(process.pid) or process.name or 'a process'} (pid {process.pid}){held} on card {process.gpu}"


def _foreign(cards: Sequence[Gpu], facts: Facts) -> list[GpuProcess]:
    """The processes of others, on these cards or on one that the tool does not tell."""
    indexes = {card.index for card in cards}
    processes = facts.accelerators.processes if facts.accelerators else ()
    theirs = [process for process in processes if process.pid not in facts.own_pids and not process.name.endswith(_SERVICES)]
    return [process for process in theirs if process.gpu is None or process.gpu in indexes]


def _free(ask: Ask, cards: Sequence[Gpu], facts: Facts) -> Iterator[Said]:
    """What a start would find free: the instance's own processes will have ended by then."""
    free = {card.index: free_for_us(card, facts) for card in cards}
    for card in cards:
        unseen = card.total_gib - free[card.index] - _held(_foreign([card], facts))
        if unseen > IDLE_GIB and not facts.own_runs:
            do = "look for what holds it in containers and on the host (fuser -v /dev/nvidia* /dev/kfd), or reset the card"
            yield Finding("gpu_free", f"card {card.index} free", f"{unseen:.1f} GiB in use by no process that can be seen", do)
    if ask.tp_size < 2 or not free:
        return
    least, most = min(free, key=lambda index: free[index]), max(free, key=lambda index: free[index])
    if free[least] < BALANCE * free[most]:
        found = f"{free[least]:.1f} GiB free on card {least} beside {free[most]:.1f} GiB on card {most}"
        do = (
            f"free it, or choose other cards with sglang_gpus: under {BALANCE * free[most]:.1f} GiB SGLang ends with "
            "'The memory capacity is unbalanced'"
        )
        yield Finding("gpu_free", "cards with as much free memory each", found, do)


def free_for_us(card: Gpu, facts: Facts) -> float:
    """GiB that a start will find free on a card, once the instance's own processes have ended."""
    processes = facts.accelerators.processes if facts.accelerators else ()
    own = [process for process in processes if process.pid in facts.own_pids and process.gpu in (card.index, None)]
    foreign = _foreign([card], facts)
    # a container sees no processes at all: what the running instance holds is then whatever nobody else does
    if facts.own_runs and (not own or any(process.used_gib is None for process in own)):
        return card.total_gib - _held(foreign)
    return min(card.free_gib + _held(own), card.total_gib)


def _held(processes: Sequence[GpuProcess]) -> float:
    return sum(process.used_gib or 0.0 for process in processes)


def _ecc(cards: Sequence[Gpu]) -> Iterator[Said]:
    bad = [card for card in cards if card.ecc_uncorrected]
    if bad:
        found = ", ".join(f"{card.ecc_uncorrected} on card {card.index} at {card.pci_bus_id}" for card in bad)
        do = "reset the card or reboot the host; if they come back, have it replaced"
        yield Finding("ecc", "no uncorrected memory errors since the driver was loaded", found, do)


def _xids(facts: Facts, cards: Sequence[Gpu]) -> Iterator[Said]:
    """Errors of the cards in question, and of those that are no longer listed; the newest of each kind."""
    listed = facts.accelerators.cards if facts.accelerators else ()
    others = {_slot(card.pci_bus_id) for card in listed} - {_slot(card.pci_bus_id) for card in cards}
    newest = {(xid.pci, xid.code): xid for xid in facts.xids if xid.code in HARDWARE_XIDS and _slot(xid.pci) not in others}
    if newest:
        found = [f"{xid.code} at {xid.pci} ({HARDWARE_XIDS[xid.code]}, {xid.at})" for xid in list(newest.values())[-SHOWN:]]
        do = "reset the card or reboot the host, and look at the kernel's log (journalctl -k); if it comes back, have it replaced"
        yield Finding("xid", "no hardware error of the cards since the host booted", "Xid " + ", ".join(found), do)


def _slot(pci: str) -> Optional[tuple[int, ...]]:
    """Domain, bus and device: the driver and its tool write them with different numbers of digits."""
    parts = pci.partition(".")[0].split(":")
    try:
        return tuple(int(part, 16) for part in parts) if len(parts) == 3 else None
    except ValueError:
        return None


def _shared(ask: Ask, cards: Sequence[Gpu], instances: Sequence[Instance]) -> Iterator[Said]:
    names = {str(card.index) for card in cards} | {card.uuid for card in cards if card.uuid}
    for other in instances:
        common = [card for card in cards if {str(card.index), card.uuid} & set(other.gpus)]
        if other.gpus and not common:
            continue
        found = f"that {other.unit} has {'card' + 's' * (len(common) > 1) + ' ' + _indexes(common) if other.gpus else 'all cards'} too"
        do = "give each instance cards of its own with sglang_gpus, or remove that instance"
        if names:
            yield Finding("instances", f"cards {_indexes(cards)} for {ask.instance} alone", found, do)


def _indexes(cards: Sequence[Gpu]) -> str:
    return ", ".join(str(card.index) for card in cards) or "none"
