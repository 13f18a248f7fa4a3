# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang 0.5.23 itself, made to fail on a host with real systemd and real journald: what allocation_info says while it waits.

Every start is a plain unit and has a watch of its own, which waits for ready from before the fault on. C(pytest -s) shows how long the
failed task came after the line that told.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Optional

import pytest
from support.host import ROOT, Host, environment

pytestmark = pytest.mark.alone
PREFIX = "infope"
# the shards of the checkpoint are named in an index, and one of them is not there
DAMAGE = """
cp -r /srv/models/mla /srv/shard && cd /srv/shard && mv model.safetensors model-00001-of-00002.safetensors
cat > model.safetensors.index.json <<'INDEX'
{"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
INDEX
useradd --system sglang
"""
UNIT = """\
[Service]
Type=exec
User=sglang
CacheDirectory=sglang/{name}
WorkingDirectory=%C/sglang/{name}
Environment=HOME=%C/sglang/{name}
Environment=TORCHDYNAMO_DISABLE=1 "SGLANG_CPU_OMP_THREADS_BIND={cores}"
ExecStart=/opt/sglang/bin/python -m sglang.launch_server {flags}
KillMode=mixed
TimeoutStopSec=30
LogRateLimitIntervalSec=0
{extra}
"""
# What the engine takes for GPU memory is the machine's free memory, which other starts move: the share leaves room for that, and the
# bound on the tokens keeps the pool small.
FLAGS = {
    "device": "cpu",
    "host": "127.0.0.1",
    "model-path": "/srv/models/mla",
    "context-length": 4096,
    "max-running-requests": 8,
    "mem-fraction-static": 0.3,
    "max-total-tokens": 16384,
}
TWO_RANKS = {"model-path": "/srv/models/gqa", "tp-size": 2}
DRAFT = {"speculative-algorithm": "DFLASH", "speculative-draft-model-path": "/srv/models/dflash-mla"}
LIMIT_MIB = 2600
# Where the machine mounts the memory controller as version 1, a host has none: its MemoryMax= has no effect, and its systemd cannot see
# what the kernel did.
OLD_CONTROLLER = Path("/sys/fs/cgroup/memory")
SIGNAL = "for p in $(cat /sys/fs/cgroup/system.slice/{}.service/cgroup.procs); do grep -qa {} /proc/$p/cmdline && kill -{} $p; done; true"


@dataclass(frozen=True)
class Case:
    """A start of the engine, and what must be said of it. ``told``: the line in the journal that tells its end.

    ``before``: a script that is run before. ``limited``: its memory is.
    """

    kind: str
    word: str
    told: str
    rank: Optional[int] = None
    advice: str = "other"
    flags: Mapping[str, Any] = field(default_factory=dict)
    extra: str = ""
    before: str = "true"
    limited: bool = False


CASES = {
    "share": Case("not_enough_memory", "minimum viable", "Raise --mem-fraction-static", 0, "raise", {"mem-fraction-static": 0.001}),
    "shard": Case("missing_file", "model-00002-of-00002", "shard file.s. missing", 0, flags={"model-path": "/srv/shard"}),
    "flag": Case("bad_arguments", "--no-such-flag", "unrecognized arguments", flags={"no-such-flag": 1}),
    "home": Case("permission", "/root/.cache", "PermissionError", extra="Environment=HOME=/root"),
    "port": Case(
        "port_in_use", "31999", "Errno 98", flags={"port": 31999},
        before="systemd-run --unit=occupant /usr/bin/python3 -m http.server --bind 127.0.0.1 31999",
    ),
    "memory": Case(
        "child_died" if OLD_CONTROLLER.is_dir() else "oom_kill", "OOM killer", "scheduler died|OOM killer", 0,
        flags={"max-total-tokens": 65536}, extra=f"MemoryMax={LIMIT_MIB}M\nMemorySwapMax=0", limited=True,
    ),
}  # fmt: skip


class Engine:
    """The host with the engine, on which a start is a unit."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def start(self, unit: str, flags: Mapping[str, Any], extra: str = "") -> None:
        words = " ".join(f"--{name} {value}" for name, value in {**FLAGS, "port": 31000 + sum(unit.encode()), **flags}.items())
        text = UNIT.format(name=unit, flags=words, extra=extra, cores="0|1" if "tp-size" in flags else "all")
        script = f"cat > /etc/systemd/system/{unit}.service <<'UNIT'\n{text}UNIT\nsystemctl daemon-reload && systemctl start {unit}"
        self.host.shell(script)

    def journal(self, unit: str) -> str:
        return self.host.shell(f"journalctl --all -o short-unix -u {unit}")

    def wait_for(self, unit: str, pattern: str) -> None:
        """Returns when the journal of the unit shows the pattern, or the unit has ended."""
        self.host.shell(
            f"until journalctl --all -o cat -u {unit} | grep -qaE '{pattern}'; do systemctl -q is-active {unit} || exit 0; sleep 0.3; done"
        )

    def watch(self, unit: str, **options: Any) -> subprocess.Popen[str]:
        arguments = json.dumps({"unit": unit, "wait_for": "ready", "wait_timeout": 400, **options})
        module = ["-m", "inferops.sglang.allocation_info", "-a", arguments]
        command = ["ansible", "-i", str(self.host.inventory), "-o", *module, self.host.name]
        return subprocess.Popen(command, env=self.host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def signal(self, unit: str, process: str, number: str) -> None:
        """Sends a signal to the processes of the unit that have this in their command line."""
        self.host.shell(SIGNAL.format(unit, process, number))

    def end(self, unit: str) -> None:
        self.host.shell(f"systemctl kill --kill-whom=all -s KILL {unit}; systemctl stop {unit}", check=False)

    def look(self, unit: str, **options: Any) -> dict[str, Any]:
        return answer(self.watch(unit, **options))


def answer(watch: subprocess.Popen[str]) -> dict[str, Any]:
    text = watch.communicate()[0]
    return {**json.loads(text[text.index("{") :]), "failed": watch.returncode != 0}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    work = tmp_path_factory.mktemp("engine")
    wheels = subprocess.run([ROOT / "tests/engine/wheelhouse"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    for kind in ("mla", "gqa", "dflash-mla"):
        subprocess.run([sys.executable, ROOT / "tests/engine/make_models.py", kind, work / "models" / kind], check=True)
    variables = environment(PREFIX, "10.79.14")
    hosts = ROOT / "tests/hosts/hosts"
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        binds = ["--bind-ro", f"{wheels}:/srv/wheels", "--bind-ro", f"{work / 'models'}:/srv/models"]
        subprocess.run([hosts, "up", "engine", "--group", "sglang", *binds], env=variables, check=True)
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        host = Host("engine", inventory, variables)
        host.shell(DAMAGE)
        host.shell("python3 -m venv /opt/sglang && /opt/sglang/bin/pip install -q --no-index --find-links /srv/wheels sglang==0.5.23")
        yield Engine(host)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


@pytest.fixture(scope="module")
def said(engine: Engine) -> dict[str, Any]:
    """What the module said of each start, by name; two run at once, as each keeps a core busy.

    The share that is too small comes beside the start that stays up: memory that another start gives back would make it large enough.
    """
    jobs = {"healthy": healthy, **{name: partial(die, name=name) for name in CASES}, "stopped": stopped, "lamed": lamed}
    with ThreadPoolExecutor(2) as pool:
        ends = {name: pool.submit(job, engine) for name, job in jobs.items()}
        return {name: end.result() for name, end in ends.items()}


def die(engine: Engine, name: str) -> dict[str, Any]:
    """A start that a watch sees from the beginning to its end."""
    case = CASES[name]
    engine.host.shell(case.before)
    engine.start(name, case.flags, case.extra)
    with limited(engine, name) if case.limited else nullcontext():
        result = engine.look(name)
        told = engine.host.shell(f"journalctl --all -o short-unix -u {name} | grep -aE '{case.told}' | head -n 1").split()
        print(f"{name}: {time.time() - float(told[0]):.1f} s from the line that told to the failed task, {result['waited_s']} s waited")
        engine.end(name)
    return result


def lamed(engine: Engine) -> dict[str, dict[str, Any]]:
    """A start of two ranks of which one is stopped, and then killed."""
    engine.start("lamed", TWO_RANKS)
    engine.wait_for("lamed", "TP1. Init parallel begin")
    engine.signal("lamed", "scheduler_TP1", "STOP")
    frozen = engine.look("lamed", phase_timeouts={"starting": 4})
    watch = engine.watch("lamed")
    engine.signal("lamed", "scheduler_TP1", "KILL")
    killed = answer(watch)
    engine.end("lamed")
    return {"frozen": frozen, "killed": killed}


def stopped(engine: Engine) -> dict[str, Any]:
    engine.start("stopped", {})
    engine.wait_for("stopped", "server_args=")
    engine.host.shell("systemctl stop stopped")
    return engine.look("stopped", wait_for="none")


def healthy(engine: Engine) -> dict[str, Any]:
    """A start that comes up with a draft, and whose rank is killed in the end."""
    engine.start("healthy", DRAFT)
    looks = {
        "first": engine.look("healthy", wait_for="none"),
        "pool": engine.look("healthy", wait_for="pool"),
        "ready": engine.look("healthy"),
        "again": engine.look("healthy"),
    }
    journal = engine.journal("healthy")
    engine.signal("healthy", "scheduler", "KILL")
    engine.wait_for("healthy", "SIGQUIT|crashed")
    looks["dead"] = engine.look("healthy")
    engine.end("healthy")
    return {**looks, "journal": journal}


@contextmanager
def limited(engine: Engine, unit: str) -> Iterator[None]:
    """Sets the limit from outside where the host's own systemd cannot."""
    if not OLD_CONTROLLER.is_dir():
        yield
        return
    group = OLD_CONTROLLER / f"{PREFIX}-{unit}"
    group.mkdir(exist_ok=True)
    (group / "memory.limit_in_bytes").write_text(str(LIMIT_MIB * 2**20), encoding="ascii")
    inside = engine.host.shell(f"systemctl show -P MainPID {unit}")
    (group / "cgroup.procs").write_text(str(outside(inside)), encoding="ascii")
    yield
    group.rmdir()


def outside(pid: str) -> int:
    """This machine's number of a process of the host's engine."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        status = Path("/proc", process, "status")
        try:
            numbers = next(line.split()[1:] for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("NSpid:"))
            if len(numbers) > 1 and numbers[-1] == pid and b"sglang.launch_server" in Path("/proc", process, "cmdline").read_bytes():
                return int(process)
        except OSError:
            continue
    raise AssertionError(f"no process of a host has the number {pid}")


@pytest.mark.parametrize("name", CASES)
def test_an_end_of_the_engine_is_named(said: dict[str, Any], name: str) -> None:
    case, result = CASES[name], said[name]
    assert result["failed"], result
    failure = result["allocation"]["failure"]
    assert (failure["kind"], failure["advice"]) == (case.kind, case.advice), failure
    assert (failure["rank"] and failure["rank"]["tp"]) == case.rank, failure
    assert case.word in failure["message"] + failure["remedy"], failure
    assert failure["kind"] in result["msg"]


def test_a_share_that_is_too_small_is_told_with_the_smallest_one(engine: Engine, said: dict[str, Any]) -> None:
    failure = said["share"]["allocation"]["failure"]
    assert f"minimum viable = 1 - available/pre = {failure['minimum_fraction']:.4f}" in engine.journal("share")
    assert failure["next_fraction"] > failure["minimum_fraction"] > 0.001


def test_a_rank_that_stands_still_is_a_hang(said: dict[str, Any]) -> None:
    result = said["lamed"]["frozen"]
    assert result["failed"]
    assert result["allocation"]["failure"]["kind"] == "hang"
    assert [word for word in ("starting", "longer") if word not in result["msg"]] == []


def test_a_rank_that_is_killed_is_named_although_it_cannot_say_so(said: dict[str, Any]) -> None:
    failure = said["lamed"]["killed"]["allocation"]["failure"]
    assert (failure["kind"], failure["rank"]["tp"], failure["advice"]) == ("child_died", 1, "other"), failure
    assert "Rank 1 scheduler died" in failure["message"]


def test_a_stop_in_the_middle_of_a_start_is_no_failure(said: dict[str, Any]) -> None:
    seen = said["stopped"]["allocation"]
    assert (seen["failure"], seen["stopped"], seen["ready"], seen["phase"]) == (None, True, False, "starting")


def test_the_pool_of_the_target_is_told_from_the_drafts(said: dict[str, Any]) -> None:
    looks = said["healthy"]
    target, draft = [line for line in looks["journal"].splitlines() if "KV Cache is allocated" in line]
    [rank] = looks["ready"]["allocation"]["ranks"]
    # an MLA target has one figure, its draft keys and values
    assert f"#tokens: {rank['target']['tokens']}, KV size: {rank['target']['kv_gib']:.2f} GB" in target
    assert f"#tokens: {rank['draft']['tokens']}, K size: {rank['draft']['k_gib']:.2f} GB" in draft
    assert looks["pool"]["allocation"]["complete"]
    assert looks["pool"]["allocation"]["min_tokens"] == looks["ready"]["allocation"]["min_tokens"] == rank["target"]["tokens"]


def test_a_healthy_start_is_followed_until_it_is_ready(said: dict[str, Any]) -> None:
    first, ready, again = (said["healthy"][name] for name in ("first", "ready", "again"))
    assert (first["failed"], first["allocation"]["ready"], first["allocation"]["complete"]) == (False, False, False)
    assert (ready["failed"], ready["allocation"]["phase"], ready["allocation"]["failure"]) == (False, "ready", None)
    assert (again["failed"], again["polls"], again["allocation"]["ready"]) == (False, 1, True)


def test_a_server_whose_rank_is_killed_is_not_ready_any_more(said: dict[str, Any]) -> None:
    result = said["healthy"]["dead"]
    assert result["failed"]
    assert (result["allocation"]["ready"], result["allocation"]["was_ready"]) == (False, True)
    assert (result["allocation"]["failure"]["kind"], result["allocation"]["failure"]["rank"]["tp"]) == ("child_died", 0)
