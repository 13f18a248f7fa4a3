# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host against what is asked of it, before anything changes: all that speaks against it. Private to this collection.

Pure: facts in, findings out. Memory and disk are GiB (2^30). Each check has a name, by which an operator can allow its findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._cuda_releases import required_python
from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import Accelerators, GpuError
from ansible_collections.inferops.sglang.plugins.module_utils._host import (
    FileFacts,
    HostMemory,
    Instance,
    Interpreter,
    Listener,
    LockLimit,
    Manager,
    Space,
    Unit,
    Xid,
)
from ansible_collections.inferops.sglang.plugins.module_utils._release import ReleaseError, ReleaseState

# LoadCredential=, by which the server gets its key, and ProtectProc=
LEAST_SYSTEMD = 247
# what the caches of compiled kernels and the records take beside environment and models
CACHE_FOLDER = "/var/cache/sglang"
CACHE_GIB = 0.5
STATE_GIB = 0.1
SHOWN = 8
# the role's variables
MODELS = {"model": "sglang_model", "draft": "sglang_draft_model"}

# Every check by its name, which is what an operator allows: what it looks at. Those of the flags are in rooms of their own, which
# call them by what they find.
CHECKS = {
    "root": "the host is read and changed as root",
    "service_manager": "systemd answers and is 247 or newer",
    "unit": "the unit of the instance is not masked",
    "python": "the interpreter of a new environment runs, suits the release and can make environments",
    "release": "what is installed from is there, a wheelhouse with the release; an environment of the operator's has that version",
    "container_engine": "the program that runs the image is on the host",
    "host_memory": "host memory for every rank, with what the instance itself will give back",
    "memlock": "memory can be locked without a limit where there are RDMA cards",
    "disk": "room for a new environment, for what the models lack, for records and caches, added up by filesystem",
    "port": "nobody else listens on the port, and no other instance has it",
    "environment_files": "environment files that are named are there",
    "files": "manifests that are named are there",
    "secrets": "the API key and the hub's token are there, on one line, and readable by their owner alone",
    "gpus": "the cards can be read, those of sglang_gpus exist, and there is one for each rank",
    "gpu_size": "the cards have as much memory each",
    "gpu_processes": "no process of anybody else is on the cards",
    "gpu_free": "nothing unseen holds memory of a card, and no card has less than 0.9 of the free memory of another",
    "mig": "the cards are not cut into MIG instances",
    "ecc": "no card has counted uncorrected memory errors",
    "xid": "the kernel's log of this boot has no hardware error of the cards",
    "driver": "the driver runs the CUDA of the release's torch",
    "instances": "no other instance has one of the cards",
    "model": "the target is complete or has a source, and its configuration can be planned with",
    "draft_model": "the same of the draft",
    "parallelism": "TP, PP, DP and EP fit the heads and layers of the target",
    "draft": "the draft was made for this target: vocabulary, hidden size, layers that it taps",
    "version": "the release is known to the plan and knows the types that are asked",
    "windows": "windowed layers can be planned with these flags",
    "speculation": "algorithm, release and kind of draft go together, and TP fits the draft's heads",
    "pool": "the pool of this model can have the type that is asked",
    "flags": "flags that decide the pool have values that can be read",
    "flag_unknown": "the release knows the flag",
    "flag_removed": "the release still knows the flag under this name",
    "flag_value": "the release knows the value",
    "flag_twice": "no argument is given under two names",
    "flags_together": "the release takes the flags together",
    "speculative_algorithm": "the release has the algorithm; DDTREE needs a branch",
    "draft_block_size": "a DFLASH draft drafts blocks of its own size",
    "spec_v2": "SGLANG_ENABLE_SPEC_V2 is not set where it is not read",
    "auto_truncate": "prompts are not cut in silence",
    "max_total_tokens": "the pool is not capped below what is asked",
}

# a finding refuses the host, a text is worth knowing
Said = Union[Finding, str]


@dataclass(frozen=True)
class Ask:
    """What shall run. ``gpus``: the instance's cards by index or UUID, none for all. ``named_files`` are paths by the variable that names
    them, ``secret_files`` those that hold a secret. ``custom_source``: SGLang comes from a wheel, a branch or a second index, not from
    its releases. ``sources``: where a model that is not there comes from, by C(model) and C(draft). ``weights_given``: the models whose
    weight memory is told, so that their files need not tell it.
    """

    instance: str
    version: str
    device: str = "cuda"
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    dp_attention: bool = False
    nodes: int = 1
    base_gpu: int = 0
    gpu_step: int = 1
    host: str = "127.0.0.1"
    port: int = 30000
    gpus: tuple[str, ...] = ()
    free_given: bool = False
    method: str = "venv"
    installer: str = "auto"
    engine: str = "podman"
    python: str = "/usr/bin/python3"
    custom_source: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    weights_given: frozenset[str] = frozenset()
    memory_per_rank_gib: float = 0.0
    release_gib: float = 0.0
    root: str = "/opt/sglang"
    state_dir: str = "/var/lib/sglang"
    environment_files: tuple[str, ...] = ()
    named_files: Mapping[str, str] = field(default_factory=dict)
    secret_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """Ranks of this host: all of them, shared by the nodes."""
        replicas = 1 if self.dp_attention else self.dp_size
        return -(-self.tp_size * self.pp_size * replicas // max(self.nodes, 1))


@dataclass(frozen=True)
class CheckpointFacts:
    """A model's directory. ``settled``: nothing has to be fetched. ``missing_gib``: what has to be, none where that is not known."""

    path: str
    present: bool = False
    complete: bool = False
    problems: tuple[str, ...] = ()
    fingerprint: str = ""
    total_gib: float = 0.0
    settled: bool = False
    # as they are asked, so that other hosts of a play know what this one has
    source: str = ""
    revision: str = ""
    commit: str = ""
    signature: str = ""
    refusal: str = ""
    note: str = ""
    # no safetensors file at all, with or without a config.json
    config_alone: bool = False
    bare: bool = False
    missing_gib: Optional[float] = None


@dataclass(frozen=True)
class Facts:
    """What the host is. What was not looked for is none or empty."""

    manager: Manager
    unit: Unit
    accelerators: Optional[Accelerators] = None
    gpu_error: Optional[GpuError] = None
    # of the processes on the cards: those of the instance itself, and what the others are
    own_pids: frozenset[int] = frozenset()
    programs: Mapping[int, str] = field(default_factory=dict)
    own_runs: bool = False
    memory: Optional[HostMemory] = None
    lock_limit: Optional[LockLimit] = None
    spaces: Mapping[str, Space] = field(default_factory=dict)
    listeners: tuple[Listener, ...] = ()
    instances: tuple[Instance, ...] = ()
    xids: tuple[Xid, ...] = ()
    interpreter: Optional[Interpreter] = None
    release: Optional[ReleaseState] = None
    release_error: Optional[ReleaseError] = None
    has_engine: bool = True
    has_uv: bool = False
    checkpoints: Mapping[str, CheckpointFacts] = field(default_factory=dict)
    files: Mapping[str, FileFacts] = field(default_factory=dict)


def host_findings(ask: Ask, facts: Facts) -> Iterator[Said]:
    """What speaks against the host but for its cards, its models and the flags, which have rooms of their own."""
    yield from _manager(facts.manager)
    yield from _unit(facts.unit)
    yield from _release(ask, facts)
    yield from _memory(ask, facts.memory)
    yield from _lock_limit(ask, facts)
    yield from _disk(ask, facts)
    yield from _port(ask, facts)
    yield from _files(ask, facts)


def right_findings(uid: int) -> Iterator[Said]:
    """What speaks against whoever runs this; without the right to look, nothing else that is seen tells anything."""
    if uid != 0:
        yield Finding("root", "the right to read and write units and state", f"the user of number {uid}", "run with become")


def removal_findings(facts: Facts) -> Iterator[Said]:
    """What speaks against taking an instance away."""
    yield from _manager(facts.manager)


def _manager(manager: Manager) -> Iterator[Said]:
    if manager.version is None:
        do = "run it on a host that systemd manages: the service, its journal and the gate need it"
        yield Finding("service_manager", "systemd as service manager", manager.found, do)
    elif manager.version < LEAST_SYSTEMD:
        do = "use Debian 11, Ubuntu 22.04, RHEL 9 or newer: the unit takes credentials, which older ones do not know"
        yield Finding("service_manager", f"systemd {LEAST_SYSTEMD} or newer", f"systemd {manager.version}", do)


def _unit(unit: Unit) -> Iterator[Said]:
    if unit.load_state == "masked":
        yield Finding("unit", f"{unit.path} to be written", "the unit masked", f"if it shall run again: systemctl unmask {unit.name}")


# --- what SGLang is installed from, and with --------------------------------------------------------------------------------


def _release(ask: Ask, facts: Facts) -> Iterator[Said]:
    if ask.method == "container":
        if not facts.has_engine:
            do = f"install {ask.engine}, or set sglang_container_engine or sglang_install_method"
            yield Finding("container_engine", f"{ask.engine} to run the image", "no such program on the host", do)
        return
    if facts.release_error is not None:
        yield facts.release_error.finding
        return
    if facts.release is None or facts.release.complete:
        return
    if ask.method == "existing":
        do = "mend it, or give another one as sglang_existing_environment; the role never changes it"
        yield Finding("release", f"SGLang {ask.version} in {facts.release.path}", facts.release.reason, do)
        return
    if facts.release.kind != "absent":
        yield f"{facts.release.path} is built again: {facts.release.reason}."
    yield from _interpreter(ask, facts)


def _interpreter(ask: Ask, facts: Facts) -> Iterator[Said]:
    python = facts.interpreter
    if python is None:
        return
    asked = f"{ask.python} to make an environment for SGLang {ask.version}"
    if not python.release:
        yield Finding("python", asked, python.found, "install it on the host, or give another interpreter as sglang_python")
        return
    least = required_python(ask.version)
    if python.release < least:
        found = f"Python {python.version}, and that this release needs {'.'.join(map(str, least))} or newer"
        yield Finding("python", asked, found, "install a newer Python on the host and give it as sglang_python")
    if not python.has_ensurepip and not (ask.installer == "uv" or (ask.installer == "auto" and facts.has_uv)):
        package = f"python{python.release[0]}.{python.release[1]}-venv"
        do = f"install what makes environments (on Debian and Ubuntu the package {package}), or uv"
        yield Finding("python", asked, f"Python {python.version} without ensurepip, which no environment can be made with", do)


# --- memory, disk, limits ---------------------------------------------------------------------------------------------------


def _memory(ask: Ask, memory: Optional[HostMemory]) -> Iterator[Said]:
    wanted = ask.ranks * ask.memory_per_rank_gib
    if memory is None or memory.available_gib + memory.own_gib >= wanted:
        return
    found = f"{memory.available_gib + memory.own_gib:.1f} of {memory.total_gib:.1f} GiB"
    found += f", and {memory.huge_gib:.1f} GiB reserved as huge pages" if memory.huge_gib else ""
    do = "end what holds it, or lower sglang_host_memory_per_rank_gib (0 does not judge it)"
    if memory.huge_gib:
        do = "give the huge pages back (sysctl vm.nr_hugepages), or " + do
    each = f"{ask.ranks} rank{'s' * (ask.ranks > 1)} of {ask.memory_per_rank_gib:g} GiB"
    yield Finding("host_memory", f"{wanted:.1f} GiB of available host memory ({each})", found, do)


def _lock_limit(ask: Ask, facts: Facts) -> Iterator[Said]:
    limit = facts.lock_limit
    if ask.device == "cpu" or limit is None or limit.most_kib is None:
        return
    found = f"a service manager that may raise no limit and has {limit.most_kib:,} KiB itself"
    if limit.rdma:
        asked = f"unlimited locked memory for {', '.join(limit.rdma[:SHOWN])}"
        do = "raise the limit of the container that this host is (--ulimit memlock=-1), or give it CAP_SYS_RESOURCE"
        yield Finding("memlock", asked, found, do)
    elif facts.accelerators is not None:
        yield f"LimitMEMLOCK=infinity of the unit will not hold: {found}. Nothing here needs it, as there is no RDMA card."


def _disk(ask: Ask, facts: Facts) -> Iterator[Said]:
    """Needs are added up by filesystem: each may fit where all together do not."""
    needs: dict[int, list[tuple[float, str]]] = {}
    for path, gib, what in _needs(ask, facts):
        space = facts.spaces.get(path)
        if space is not None and gib > 0:
            needs.setdefault(space.device, []).append((gib, f"{gib:.1f} GiB for {what} in {path}"))
    spaces = {space.device: space for space in facts.spaces.values()}
    for device, wanted in needs.items():
        space = spaces[device]
        if sum(gib for gib, _what in wanted) <= space.free_gib:
            continue
        found = f"{space.free_gib:.1f} GiB free on the filesystem {space.mount}"
        do = "make room, or put it elsewhere (sglang_root, sglang_model, sglang_state_dir); sglang_release_gib is what an environment takes"
        yield Finding("disk", " and ".join(what for _gib, what in wanted), found, do)


def _needs(ask: Ask, facts: Facts) -> Iterator[tuple[str, float, str]]:
    if ask.method == "venv" and not (facts.release is not None and facts.release.complete):
        yield ask.root, ask.release_gib, "a new environment"
    for name, checkpoint in facts.checkpoints.items():
        if not checkpoint.settled and checkpoint.missing_gib:
            yield checkpoint.path, checkpoint.missing_gib, f"what {MODELS[name]} lacks"
    yield ask.state_dir, STATE_GIB, "records"
    yield CACHE_FOLDER, CACHE_GIB, "compiled kernels"


# --- ports and other instances ----------------------------------------------------------------------------------------------


def _port(ask: Ask, facts: Facts) -> Iterator[Said]:
    others = [other.unit for other in facts.instances if other.port == ask.port and facts.unit.name != other.unit]
    for listener in facts.listeners:
        # one that listens for another instance is told below
        if listener.own or any(listener.program.endswith(f" of {unit}") for unit in others):
            continue
        who = f"{listener.program} (pid {listener.pid})" if listener.pid else "a process that cannot be seen from here"
        do = "give sglang_port another number, or stop that program"
        yield Finding("port", f"port {ask.port} on {ask.host}", f"that {who} listens on it", do)
        break
    for unit in others:
        yield Finding("port", f"port {ask.port}", f"that {unit} has it too", "give each instance a sglang_port of its own")


# --- files ------------------------------------------------------------------------------------------------------------------


def _files(ask: Ask, facts: Facts) -> Iterator[Said]:
    for path in ask.environment_files:
        plain = path.lstrip("-")
        if not path.startswith("-") and _kind(facts, plain) == "missing":
            do = f"make it with mode 0600, or write -{plain} where it may be absent"
            yield Finding("environment_files", f"the environment file {plain}", "no such file on the host", do)
    for name, path in ask.named_files.items():
        if path and _kind(facts, path) == "missing":
            yield Finding("files", f"{name} {path}", "no such file or directory on the host", "put it there, or clear the variable")
    for name, path in ask.secret_files.items():
        yield from _secret(name, path, facts.files.get(path)) if path else ()


def _secret(name: str, path: str, found: Optional[FileFacts]) -> Iterator[Said]:
    asked = f"{name} {path}"
    if found is None or found.kind == "missing":
        yield Finding("secrets", asked, "no such file on the host", "make it with mode 0600, or clear the variable")
    elif found.kind != "file" or found.lines != 1:
        what = f"{found.size:,} bytes with {found.lines} lines of text" if found.kind == "file" else "no regular file"
        yield Finding("secrets", asked, what, "write the secret alone into it, on one line")
    elif found.open_to_others:
        yield Finding("secrets", f"{asked} readable by its owner alone", f"mode {found.mode:04o}", f"chmod 0600 {path}")


def _kind(facts: Facts, path: str) -> str:
    found = facts.files.get(path)
    return found.kind if found else "missing"


# --- the verdict ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What refuses the host, and what is worth knowing; a finding that is allowed is among the notes."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {"findings": [finding.as_dict() for finding in self.findings], "notes": list(self.notes)}


def verdict_of(said: Iterator[Said], allowed: frozenset[str]) -> Verdict:
    findings: list[Finding] = []
    notes: list[str] = []
    for item in said:
        if isinstance(item, str):
            notes.append(item)
        elif item.check in allowed:
            notes.append(f"Allowed: {item.text}")
        elif item not in findings:
            findings.append(item)
    return Verdict(tuple(findings), tuple(notes))
