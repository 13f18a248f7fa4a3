# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cards for a throw-away host: an nvidia-smi and a rocm-smi that show what a JSON file says.

The programs stand in /usr/local/bin, the file under /run, so that nothing that the role writes is touched. What the fake shows can be
changed while something waits for it: `FakeCards(host).show(...)` again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from support.host import Host

STATE = "/run/fake-cards.json"
# A program on the host: the whole of it, as nothing of this checkout is there.
PROGRAM = '''\
#!/usr/bin/python3
"""Stands in for nvidia-smi and rocm-smi in tests."""
import json, re, sys, time

state = json.load(open("/run/fake-cards.json"))
time.sleep(state["hangs_s"])
if state["says"] is not None:
    code, text = state["says"]
    print(text)
    sys.exit(code)
cards, words = state["cards"], sys.argv[1:]
indexes = {card["uuid"]: card["index"] for card in cards}
if sys.argv[0].endswith("rocm-smi"):
    shown = {
        f"card{card['index']}": {
            "Unique ID": card["uuid"], "PCI Bus": card["pci.bus_id"], "Card Series": card["name"],
            "VRAM Total Memory (B)": str(int(card["memory.total"]) << 20),
            "VRAM Total Used Memory (B)": str(int(card["memory.used"]) << 20),
        }
        for card in cards
    }
    shown["system"] = {"Driver version": state["driver"]}
    for process in state["processes"]:
        shown["system"][f"PID{process['pid']}"] = f"{process['name']}, 1, {int(process['used_mib']) << 20}, 0, 0"
    print(json.dumps(shown))
    sys.exit(0)
only = None
for place, word in enumerate(words):
    if word in ("-i", "--id"):
        only = words[place + 1].split(",")
    elif word.startswith("--id="):
        only = word[5:].split(",")
chosen = [card for card in cards if only is None or str(card["index"]) in only or card["uuid"] in only]
query = next((word for word in words if word.startswith("--query-")), "")
kind, _equals, names = query.partition("=")
if kind == "--query-gpu":
    for card in chosen:
        row = {**card, "driver_version": state["driver"], "count": len(cards)}
        print(", ".join(str(row.get(name, "[N/A]")) for name in names.split(",")))
elif kind == "--query-compute-apps":
    used = {card["uuid"] for card in chosen}
    for process in state["processes"]:
        row = {
            "pid": process["pid"], "gpu_uuid": process["gpu_uuid"], "used_gpu_memory": process["used_mib"],
            "used_memory": process["used_mib"], "process_name": process["name"], "name": process["name"],
        }
        if row["gpu_uuid"] in used:
            print(", ".join(str(row[name]) for name in names.split(",")))
else:
    print(f"\\n==============NVSMI LOG==============\\n\\nDriver Version : {state['driver']}\\nCUDA Version   : {state['cuda']}\\n")
'''
# A journalctl that has a kernel's log, which a throw-away host has not: all but -k goes to the real one.
JOURNALCTL = '''\
#!/usr/bin/python3
import json, os, sys

if not {"-k", "--dmesg"} & set(sys.argv):
    os.execv("/usr/bin/journalctl", ["journalctl", *sys.argv[1:]])
for at, message in json.load(open("/run/fake-cards.json"))["kernel"]:
    print(json.dumps({"__REALTIME_TIMESTAMP": str(at * 10**6), "MESSAGE": message, "_TRANSPORT": "kernel"}))
'''


@dataclass(frozen=True)
class Card:
    """One card as nvidia-smi shows it; memory in MiB. ``fields``: others of its fields, or odd texts in place of these."""

    index: int
    total_mib: int = 97887
    used_mib: int = 0
    name: str = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    ecc: Any = 0
    mig: str = "Disabled"
    compute_cap: str = "12.0"
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.index:08x}-0000-0000-0000-000000000000"

    def row(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "uuid": self.uuid,
            "gpu_uuid": self.uuid,
            "pci.bus_id": f"00000000:{self.index + 1:02X}:00.0",
            "memory.total": self.total_mib,
            "memory.used": self.used_mib,
            "memory.free": self.total_mib - self.used_mib,
            "compute_cap": self.compute_cap,
            "ecc.errors.uncorrected.volatile.total": self.ecc,
            "mig.mode.current": self.mig,
            "name": self.name,
            **self.fields,
        }


@dataclass(frozen=True)
class Holder:
    """A process on a card, whether it is really there or not."""

    pid: int
    gpu: int
    used_mib: Any = 1024
    name: str = "/usr/bin/python3"


@dataclass
class FakeCards:
    """The cards of one host."""

    host: Host

    def install(self, tool: str = "nvidia-smi", kernel_log: bool = False) -> FakeCards:
        programs = {tool: PROGRAM, **({"journalctl": JOURNALCTL} if kernel_log else {})}
        for name, text in programs.items():
            path = f"/usr/local/bin/{name}"
            self.host.shell(f"printf %s {shlex.quote(text)} > {path}; chmod 755 {path}")
        return self

    def show(
        self,
        cards: Sequence[Card],
        processes: Sequence[Holder] = (),
        *,
        driver: str = "610.43.02",
        cuda: str = "13.1",
        says: Optional[tuple[int, str]] = None,
        hangs_s: float = 0,
        kernel: Sequence[tuple[int, str]] = (),
        once: str = "true",
    ) -> FakeCards:
        """``says``: exit code and text in place of cards. ``kernel``: lines of the kernel's log with their seconds since 1970.
        ``once``: a script of the host that ends when the cards may change; between two commands seconds may pass, after it none."""
        uuids = {card.index: card.uuid for card in cards}
        state = {
            "driver": driver,
            "cuda": cuda,
            "says": says,
            "hangs_s": hangs_s,
            "kernel": list(kernel),
            "cards": [card.row() for card in cards],
            "processes": [
                {"pid": item.pid, "gpu_uuid": uuids[item.gpu], "used_mib": item.used_mib, "name": item.name} for item in processes
            ],
        }
        # replaced in one step: somebody may be reading it
        self.host.shell(f"set -e\nprintf %s {shlex.quote(json.dumps(state))} > {STATE}.new\n{once}\nmv {STATE}.new {STATE}")
        return self

    def remove(self) -> None:
        self.host.shell(f"rm -f /usr/local/bin/nvidia-smi /usr/local/bin/rocm-smi /usr/local/bin/journalctl {STATE}")


def eight(used_mib: int = 0, **fields: Any) -> list[Card]:
    """Eight cards of 96 GB."""
    return [Card(index, used_mib=used_mib, **fields) for index in range(8)]
