# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports as a rollout and an audit hand them on: starts of Kimi K2.6 read from their logs, planned and judged by the collection."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._failures import Failure
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.plugin_utils._plan_filters import memory_plan
from ansible_collections.inferops.sglang.plugins.plugin_utils._verdict_filters import verdict
from ansible_collections.inferops.sglang.tests.unit.boots import SECOND, KimiStart, Line, stamped

CONFIGS = Path(__file__).parent / "fixtures" / "configs"
REQUIRED = 200000
BEGAN = datetime(2026, 11, 30, 7, 1, 2, tzinfo=timezone.utc).timestamp()
UNIT = "sglang-k26-ddtree.service"
CLASS = {"key": "5f0c1d2e3a4b", "title": "8 x RTX PRO 6000 96 GB, SGLang 0.5.12.post1", "facts": {"cards": [8, "RTX PRO 6000", 95.6]}}

# a start that reaches its target by the plan, and the same on cards of which the last has 4 GiB less
GOOD = KimiStart(0.9259, 8, 200099, 13.09, 0.29, 8.17, (6.36, 6.35, 6.34, 6.35, 6.36, 6.35, 6.34, 6.35))
LESS = KimiStart(0.9259, 8, 148576, 9.72, 0.21, 11.54, (7.99, 7.99, 7.98, 7.99, 7.99, 7.98, 7.99, 3.99))
# seconds from the start of a phase's first line: set-up, weights, pool and capture, draft, the end
CLOCK = {"Init": 9.0, "Load weight begin": 14.0, "Load weight end": 426.0, "KV Cache": 428.0, "Memory pool end": 429.0,
         "Capture cuda graph begin": 430.0, "Capture cuda graph end": 471.0, "max_total": 480.0, "The server": 497.0}  # fmt: skip
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB. GPU 3 has a total capacity of 94.97 GiB of which 676.81 MiB "
    "is free. Including non-PyTorch memory, this process has 94.30 GiB memory in use. Of the allocated memory 91.20 GiB is allocated by "
    "PyTorch, and 310.02 MiB is reserved by PyTorch but unallocated."
)


@dataclass(frozen=True)
class Told:
    """A host's turn: its starts, what it was planned with, and what became of it."""

    name: str
    starts: Sequence[dict[str, Any]]
    begins: float = 0.0
    takes: float = 620.0
    fraction: float = 0.9259
    observed: Sequence[dict[str, Any]] = ()
    more: dict[str, Any] = field(default_factory=dict)


def timed(lines: Iterable[Line], at: float, slower: float = 1.0) -> list[Entry]:
    """The lines of a start that began at this time of day, each when its phase has come to it."""
    entries, now, drafts = [], 0.0, False
    for line in lines:
        message = line.text.split("] ", 1)[-1]
        drafts = drafts or "DFlashDraftModel" in message
        usual = next((seconds for words, seconds in CLOCK.items() if message.startswith(words)), now)
        now = max(now, 474.0 if drafts and usual < 474.0 else usual)
        when = at + now * slower + line.pid % 8 * 0.11
        entries.append(Entry(line.text, line.pid, time_us=int(when * 1e6), clock_us=int(when * 1e6)))
    return entries


def boot(lines: Iterable[Line], at: float, slower: float = 1.0, hang: Failure | None = None) -> dict[str, Any]:
    """What allocation_info returns for these lines."""
    folder = BootFolder()
    folder.feed_all(timed(lines, at, slower))
    found = folder.result(Parallelism(), verdict=hang, invocation_id=f"{int(at):032x}", sglang_version="0.5.12.post1")
    return json.loads(json.dumps(found.as_dict()))


@cache
def config(name: str) -> str:
    return (CONFIGS / f"{name}.json").read_text(encoding="utf-8")


def plan(observed: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The plan for 200,000 tokens on eight cards of 96 GB."""
    return memory_plan(
        json.loads(config("kimi-k2.6")), draft=json.loads(config("kimi-k2.6-dflash")), sglang_version="0.5.12.post1",
        speculative_algorithm="DFLASH", tp_size=8, context_length=REQUIRED, gpu_free_gib=93.727, free_at_sizing_gib=21.329,
        draft_weights_gib=1.31, max_running_requests=8, observed=list(observed),
    )  # fmt: skip


@cache
def estimated() -> str:
    return json.dumps(plan())


def outcome(told: Told) -> dict[str, Any]:
    """What the role leaves of a host's turn."""
    judged = verdict(told.starts[-1], REQUIRED, {"context-length": REQUIRED}, name=f"{told.name} {UNIT}") if told.starts else {}
    accepted = bool(judged) and judged["accepted"]
    return {
        "host": told.name, "instance": "sglang-k26-ddtree", "unit": UNIT, "outcome": "accepted" if accepted else "refused",
        "state": "accepted" if accepted else "refused", "change": "start: the service does not run", "fleet_class": copy.deepcopy(CLASS),
        "required_tokens": REQUIRED, "starts": len(told.starts), "started_at": BEGAN + told.begins,
        "ended_at": BEGAN + told.begins + told.takes, "plan": plan(told.observed) if told.observed else json.loads(estimated()),
        "boots": list(told.starts), "verdict": judged, "refusal": "" if accepted else "\n".join(judged.get("table", [])),
        "rolled_back": "", "returned": {}, "evidence": "", "balancers": [], "findings": [], **told.more,
    }  # fmt: skip


def accepted(name: str, begins: float = 0.0, slower: float = 1.0, left_gib: float = 6.34) -> dict[str, Any]:
    start = replace(GOOD, after_draft_gib=tuple(left_gib + step / 100 for step in (2, 1, 0, 1, 2, 1, 0, 1)))
    return outcome(Told(name, [boot(start.lines(), BEGAN + begins + 60, slower)], begins, 60 + 500 * slower + 25))


def report(hosts: Sequence[dict[str, Any]], batches: Sequence[Sequence[str]], **more: Any) -> dict[str, Any]:
    ends = [host["ended_at"] for host in hosts if host.get("ended_at")]
    return {
        "kind": "deploy", "id": "deploy-20261130T070102Z", "title": "Rollout of sglang-k26-ddtree", "started_at": BEGAN,
        "updated_at": max(ends, default=BEGAN), "finished": True, "state": "accepted",
        "asked": {"required_tokens": REQUIRED, "instance": "sglang-k26-ddtree", "sglang_version": "0.5.12.post1"},
        "batches": [list(batch) for batch in batches], "stopped_because": "", "next_step": "",
        "classes": [{"key": CLASS["key"], "title": CLASS["title"], "hosts": [host["host"] for host in hosts], "lesson": ""}],
        "hosts": list(hosts), **more,
    }  # fmt: skip


# --- situations -------------------------------------------------------------------------------------------------------


def all_accepted() -> dict[str, Any]:
    """Four hosts; the first estimate was short on the canary, so five starts."""
    first = boot(SECOND.lines(), BEGAN + 60)
    canary = outcome(Told("gpu01.example.net", [first, boot(GOOD.lines(), BEGAN + 600)], 0, 1130, observed=[first]))
    canary["balancers"] = ["router http://router.example.net: http://gpu01:30000 taken out, 3 requests ended in 12 s, put back"]
    others = [accepted(f"gpu{number:02d}.example.net", 1150 + 20 * number, 1 + number / 50, 6.34 - number / 40) for number in (2, 3, 4)]
    made = report([canary, *others], [["gpu01.example.net"], [host["host"] for host in others]])
    made["classes"][0]["lesson"] = (
        "gpu01.example.net held 192,406 tokens at 0.9200, 7,594 short. Its start moves the fraction of 3 hosts to 0.9259."
    )
    return made


def canary_short() -> dict[str, Any]:
    """The story this collection began with: 192,406 of 200,000 tokens, and three hosts that were left alone."""
    start = boot(SECOND.lines(), BEGAN + 60)
    old = boot(replace(SECOND, fraction=0.85, tokens=101134, target_gib=6.62, max_running_requests=64).lines(), BEGAN + 700)
    told = Told("gpu01.example.net", [start], 0, 1240, more={
        "rolled_back": "The last accepted service runs again (fraction 0.8500, 101,134 tokens).", "returned": old,
        "evidence": "evidence/gpu01.example.net", "change": "restart because: --mem-fraction-static 0.8500 -> 0.9200",
    })  # fmt: skip
    waiting = [{"host": f"gpu{number:02d}.example.net", "state": "waiting", "fleet_class": CLASS} for number in (2, 3, 4)]
    return report([outcome(told), *waiting], [["gpu01.example.net"]], state="refused", stopped_because="gpu01.example.net was refused")


def rank_lost() -> dict[str, Any]:
    """A rank of the second batch says nothing after its weights."""
    lost = [line for line in GOOD.lines() if not (line.pid == 205 and ("KV Cache" in line.text or "Memory pool" in line.text))]
    lost = [line for line in lost if not any(words in line.text for words in ("Capture", "DFlash", "max_total", "fired up", "K size"))]
    hang = Failure(
        "hang", {"tp": 5, "pp": 0, "dp": 0}, "TP5 is at weights for 905 s, more than the 900 s it may be", "other", None,
        "look what the rank waits for (py-spy dump --pid 205), and raise the timeout only if it still makes progress",
    )  # fmt: skip
    told = Told("gpu03.example.net", [boot(lost, BEGAN + 800, 1.0, hang)], 740, 1600, more={
        "rolled_back": "There is nothing to go back to: the service is stopped.", "evidence": "evidence/gpu03.example.net"})  # fmt: skip
    hosts = [accepted("gpu01.example.net"), accepted("gpu02.example.net", 740, 1.04), outcome(told)]
    return report(hosts, [["gpu01.example.net"], ["gpu02.example.net", "gpu03.example.net"]], state="refused",
                  stopped_because="gpu03.example.net was refused")  # fmt: skip


def oom_at_capture() -> dict[str, Any]:
    """A card has too little left for the graphs; the host is back on what it served."""
    lines = [line for line in GOOD.lines() if "Capture cuda graph end" not in line.text]
    cut = next(index for index, line in enumerate(lines) if "mem usage=1.31" in line.text or "Load weight begin. avail mem=7" in line.text)
    crash = [
        stamped("TP3", "Scheduler hit an exception: Traceback (most recent call last):"),
        '  File "/opt/sglang/srt/model_executor/cuda_graph_runner.py", line 412, in capture_one_batch_size', OOM,
    ]  # fmt: skip
    start = boot([*lines[:cut], *(Line(text, 203) for text in crash)], BEGAN + 800)
    old = boot(replace(SECOND, max_running_requests=8).lines(), BEGAN + 1400)
    told = Told("gpu02.example.net", [start], 740, 1220, more={
        "rolled_back": "The last accepted service runs again (fraction 0.9200, 192,406 tokens).", "returned": old,
        "evidence": "evidence/gpu02.example.net", "change": "restart because: --mem-fraction-static 0.9200 -> 0.9259"})  # fmt: skip
    hosts = [accepted("gpu01.example.net"), outcome(told), accepted("gpu03.example.net", 740, 1.1)]
    return report(hosts, [["gpu01.example.net"], ["gpu02.example.net", "gpu03.example.net"]], state="refused",
                  stopped_because="gpu02.example.net was refused")  # fmt: skip


def unreachable() -> dict[str, Any]:
    """A host of the second batch cannot be reached, so the third is not opened."""
    lost = {"host": "gpu03.example.net", "state": "unreachable", "fleet_class": CLASS,
            "findings": ["Failed to connect to the host via ssh: connect to host gpu03.example.net port 22: No route to host"]}  # fmt: skip
    waiting = [{"host": f"gpu{number:02d}.example.net", "state": "waiting", "fleet_class": CLASS} for number in (4, 5, 6, 7, 8)]
    hosts = [accepted("gpu01.example.net"), accepted("gpu02.example.net", 740, 1.03), lost, *waiting]
    return report(hosts, [["gpu01.example.net"], ["gpu02.example.net", "gpu03.example.net"]], state="stopped",
                  stopped_because="gpu03.example.net could not be reached")  # fmt: skip


def audit_outlier() -> dict[str, Any]:
    """Twelve hosts of two classes; one has a smaller pool than its class, one runs with another flag than its unit."""
    hosts = [accepted(f"gpu{number:02d}.example.net", 0, 1, 6.34 - number / 90) for number in range(1, 11)]
    hosts[3] = outcome(Told("gpu04.example.net", [boot(LESS.lines(), BEGAN - 86400)]))
    hosts[3]["findings"] = ["pool: 148,576 tokens, where 9 other hosts of its class hold 200,099"]
    hosts[6]["findings"] = ["drift: the unit says --max-running-requests 16, the process runs with 8"]
    other = {"key": "0badc0ffee00", "title": "8 x H200 141 GB, SGLang 0.5.23", "facts": {}}
    for number in (11, 12):
        host = accepted(f"h200-{number}.example.net")
        host["fleet_class"] = other
        hosts.append(host)
    for host in hosts:
        host.update(starts=0, change="", started_at=None, ended_at=None)
    classes = [{**CLASS, "hosts": [host["host"] for host in hosts[:10]], "lesson": ""},
               {**other, "hosts": [host["host"] for host in hosts[10:]], "lesson": ""}]  # fmt: skip
    return report(hosts, [], kind="audit", id="audit-20261130T070102Z", title="Audit of sglang-k26-ddtree", state="refused",
                  classes=classes, updated_at=BEGAN + 7)  # fmt: skip


def large(hosts: int = 500) -> dict[str, Any]:
    """A fleet: a canary, a tenth, a half, and the rest, in which one falls short and one cannot be reached."""
    pattern = [accepted("pattern", 0, 1 + step / 40, 6.34 - step / 60) for step in range(9)]
    names = [f"gpu{number:03d}.example.net" for number in range(1, hosts + 1)]
    ends = [1, 1 + hosts // 10, 1 + hosts // 10 + hosts // 2, hosts]
    batches = [names[begin:end] for begin, end in zip([0, *ends], ends)]
    made = []
    for index, batch in enumerate(batches):
        for place, name in enumerate(batch):
            host = copy.deepcopy(pattern[(place + index) % len(pattern)])
            shift = 760.0 * index
            host.update(host=name, started_at=host["started_at"] + shift, ended_at=host["ended_at"] + shift)
            made.append(host)
    short, lost = hosts * 8 // 10, hosts * 9 // 10
    made[short] = outcome(Told(names[short], [boot(LESS.lines(), BEGAN + 2340)], 2280, 1240, more={
        "rolled_back": "The last accepted service runs again (fraction 0.9200, 192,406 tokens).",
        "returned": boot(SECOND.lines(), BEGAN + 2900), "evidence": f"evidence/{names[short]}"}))  # fmt: skip
    made[lost] = {"host": names[lost], "state": "unreachable", "fleet_class": CLASS, "findings": ["ssh: connect: Connection timed out"]}
    done = report(made, batches, state="refused", stopped_because=f"{names[short]} was refused, {names[lost]} could not be reached")
    done["classes"][0]["lesson"] = "gpu001.example.net held what was planned: 200,099 of 200,099 tokens at 0.9259."
    return done


SITUATIONS = {
    "all_accepted": all_accepted, "canary_short": canary_short, "rank_lost": rank_lost, "oom_at_capture": oom_at_capture,
    "unreachable": unreachable, "audit_outlier": audit_outlier, "large": large,
}  # fmt: skip
