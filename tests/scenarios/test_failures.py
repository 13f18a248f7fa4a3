# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way to die, on a host with real systemd and real journald: what allocation_info says of it.

The engine is the stand-in, whose faults end its processes as SGLang's end. All starts share one card: P = 80 GiB free before the
weights, A = 20 GiB after them (18.8 GiB where the draft is loaded before the pools, from 0.5.14 on). Fractions are worked out by hand:
an allocation of 970.00 MiB with 612.81 MiB free lacks 0.348818 GiB, which is a share of 0.004360 of 80 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

import pytest
from support.units import Start, run_starts, unit_host

RANKS = frozenset((0, 1))  # a failure that all ranks share is that of the rank that speaks first


class Case(NamedTuple):
    """A start, and what must be said of it. ``rank``: its TP rank, several where any of them may be the one."""

    start: Start
    kind: str
    advice: str
    rank: Union[int, frozenset, None] = None
    next: Optional[float] = None
    minimum: Optional[float] = None
    words: tuple[str, ...] = ()


def case(
    fault: str, kind: str, advice: str, rank: Any = None, following: Any = None, minimum: Any = None, *words: str, **start: Any
) -> Case:
    return Case(Start(fault=fault, **start), kind, advice, rank, following, minimum, words)


LOOP = {"restart": "on-failure", "burst": 3}
CASES = {
    # before any rank is there
    "arguments no release has": case("bad_arguments", "bad_arguments", "other", None, None, None, "--no-such-flag"),
    "a value that SGLang refuses": case("bad_flag", "bad_arguments", "other", None, None, None, "base_gpu_id must be non-negative"),
    "a value that later releases refuse": case("bad_flag", "bad_arguments", "other", None, None, None, version="0.5.23"),
    "kernels that cannot be loaded": case("missing_kernel", "missing_kernel", "other", None, None, None, "common_ops"),
    "no card": case("no_device", "no_device", "other", None, None, None, "nvidia-smi"),
    "a model that may not be read": case("permission", "permission", "other", None, None, None, "config.json"),
    "a program that is not there": case("", "missing_file", "other", command="/opt/nowhere/bin/python -m sglang.launch_server"),
    "a directory that is not there": case("", "missing_file", "other", extra="WorkingDirectory=/opt/nowhere"),
    "a user that is not there": case("", "exit", "other", None, None, None, "217", extra="User=nobody-of-that-name"),
    # process groups
    "unbalanced cards": case("unbalanced:1", "unbalanced", "other", 0, None, None, "64.00 GiB free", "80.00 GiB", "72.00 GiB"),
    "ranks that never meet": case("rendezvous_timeout", "rendezvous", "other", RANKS, None, None, "1/8 clients joined"),
    "a collective that times out": case("nccl_timeout", "nccl", "other", 1, None, None, "Watchdog caught"),
    # weights
    "a shard that is not there": case("missing_file", "missing_file", "other", RANKS, None, None, "model-00001-of-000064.safetensors"),
    "a shard cut short": case("damaged_file", "damaged_file", "other", RANKS, None, None, "deserializing header"),
    "weights that do not fit": case("oom_weights:1", "oom_weights", "impossible", 1, None, None, "tp_size"),
    "a rank killed": case("kill9:1", "child_died", "other", 1, None, None, "SIGKILL", "OOM killer"),
    "a rank killed, older words": case("kill9:1", "child_died", "other", 1, None, None, "SIGKILL", version="0.5.9", draft=False),
    "a rank that takes the host's memory": case("host_oom:1", "child_died", "other", 1, None, None, "OOM killer"),
    "a segmentation fault": case("segfault:1", "child_died", "other", 1, None, None, "SIGSEGV"),
    "an abort": case("abort:1", "child_died", "other", 1, None, None, "SIGABRT"),
    "the host's memory runs out": case("slow_load:30", "oom_kill", "other", None, None, None, "more memory",
                                       extra="ExecStartPost=/bin/sh -c '/usr/bin/python3 /root/oomd.py %n 2 >/dev/null 2>&1 &'"),
    "the main process killed": case("kill9:main", "killed", "other", None, None, None, "SIGKILL", "OOM killer"),
    "the main process ends": case("exit:7", "unit_failed", "other", None, None, None, "7/NOTRUNNING means that the program ended itself"),
    # pools. 74 of 80 GiB are weights: 0.925, and 0.00078125 more for the smallest pool
    "weights above the share": case("not_enough_memory", "not_enough_memory", "raise", RANKS, 0.9258, 0.925, "0.9258"),
    # with the draft's weights 75.2 GiB: SGLang itself says 0.9400
    "weights above the share, newer words": case("not_enough_memory", "not_enough_memory", "raise", RANKS, 0.9408, 0.94,
                                                 version="0.5.23"),
    # 18.8 - 80 x 0.23 = 0.4 GiB are left, one slot takes as much, two of them need 0.8 x 1.9 / 0.9 = 1.688889 GiB: 0.016111 more
    "states that do not fit": case("hybrid_state", "hybrid_state", "raise", RANKS, 0.7862, 0.765, version="0.5.14", fraction=0.77),
    "no memory for the pool": case("oom_pool:1", "oom_pool", "lower", 1, 0.8456, None, "0.35 GiB were missing of 80.00 GiB"),
    "no memory for the draft's pool": case("oom_draft_pool:1", "oom_draft_pool", "lower", 1, 0.8456),
    "no memory for the draft's pool, loaded first": case("oom_draft_pool:1", "oom_draft_pool", "lower", 1, 0.8456, version="0.5.23"),
    "gone without a word": case("silent_death", "exit", "other", None, None, None, "ended by itself", "exit status 0 means success"),
    # graphs
    "no memory for the graphs": case("oom_capture:1", "oom_capture", "lower", 1, 0.8456, None, "0.8456"),
    "no memory for the graphs, newer words": case("oom_capture:1", "oom_capture", "lower", 1, 0.8456, version="0.5.23"),
    # 0.753 - 0.004360 = 0.748640, and the weights need more than 0.75
    "no share fits": case("oom_capture:1", "oom_capture", "impossible", 1, None, 0.75, "0.7486", "0.7500", "no fraction works",
                          fraction=0.753),
    "another process on the card": case("foreign_process:1", "foreign_process", "other", 1, None, None, "process 4117 holds 28.50 GiB"),
    "a full disk": case("disk_full:1", "disk_full", "other", 1, None, None, "No space left on device"),
    "a crash after the pools": case("crash_loop", "device_error", "other", 0, None, None, "illegal memory access", **LOOP),
    # warm-up and requests
    "a port in use": case("port_in_use", "port_in_use", "other", None, None, None, "31"),
    "no memory for the warm-up": case("oom_warmup:1", "oom_warmup", "lower", 1, 0.8456),
    "a forward pass that does not end": case("watchdog:1", "hang", "other", 1, None, None, "watchdog timeout"),
    "no memory for a prompt": case("oom_prefill:1", "oom_prefill", "lower", 1, 0.8456, probe=True),
    "no memory for a token": case("oom_decode:1", "oom_decode", "lower", 1, 0.8456, probe=True),
    "killed while it serves": case("", "killed", "other", None, None, None, "SIGKILL", probe=True,
                                   extra="ExecStartPost=/bin/sh -c '(sleep 4; systemctl kill --kill-whom=all -s KILL %n) >/dev/null "
                                       "2>&1 &'",
                                   watch={"settle_time": 8}),
    # no progress
    "a hang while weights load": case("hang:weights", "hang", "other", None, None, None, "weights",
                                      watch={"phase_timeouts": {"weights": 3}}),
    "a lost rank": case("lost_rank:1", "hang", "other", 1, None, None, "TP1", watch={"wait_timeout": 8}),
    # over and over
    "a unit that starts again and again": case("exit:7", "crash_loop", "other", watch={"wait_timeout": 20}, **LOOP),
}  # fmt: skip
HEALTHY = {
    "nothing wrong": Start(),
    "words that look like failures": Start(fault="benign_noise"),
    "words that look like failures, newest release": Start(fault="benign_noise", version="0.5.23"),
    "a request taken back": Start(fault="retraction", probe=True),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """What the module said of each start, by name."""
    starts = {**{name: row.start for name, row in CASES.items()}, **HEALTHY}
    work = tmp_path_factory.mktemp("failures")
    with unit_host(work, "infopf", "10.79.11", {start.version for start in starts.values()}) as host:
        yield run_starts(host, starts)


@pytest.mark.parametrize("name", CASES)
def test_a_death_is_named_with_its_rank_and_what_to_do(said: dict[str, dict[str, Any]], name: str) -> None:
    case, result = CASES[name], said[name]
    assert result["failed"], result
    failure = result["allocation"]["failure"]
    assert (failure["kind"], failure["advice"]) == (case.kind, case.advice), failure
    assert (failure["next_fraction"], failure["minimum_fraction"]) == (case.next, case.minimum), failure
    rank = failure["rank"] and failure["rank"]["tp"]
    assert rank in (case.rank if isinstance(case.rank, frozenset) else (case.rank,)), failure
    text = f"{result['msg']} {failure['message']}"
    assert [word for word in case.words if word not in text] == [], text
    # what was asked, what was found, what to do
    asked, _semicolon, found = result["msg"].partition("; found: ")
    assert asked.startswith("asked for standin-")
    assert failure["kind"] in found
    assert failure["remedy"] in found
    assert result["allocation"]["phase"] == "failed"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_start_has_no_failure(said: dict[str, dict[str, Any]], name: str) -> None:
    result = said[name]
    assert not result["failed"], result
    allocation = result["allocation"]
    assert (allocation["ready"], allocation["complete"], allocation["failure"]) == (True, True, None)
