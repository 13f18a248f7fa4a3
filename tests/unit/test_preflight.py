# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What speaks against a host, from facts that the tests give. The messages themselves are those of tests/scenarios/test_preflight.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import Accelerators, Gpu, GpuError, GpuProcess
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
from ansible_collections.inferops.sglang.plugins.module_utils._preflight import (
    Ask,
    CheckpointFacts,
    Facts,
    Said,
    host_findings,
    removal_findings,
    verdict_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._preflight_cards import card_findings, free_for_us, used_cards
from ansible_collections.inferops.sglang.plugins.module_utils._preflight_models import Server, model_findings, pool_flags, sizes_of
from ansible_collections.inferops.sglang.plugins.module_utils._release import ReleaseError, ReleaseState

CONFIGS = Path(__file__).parent / "fixtures/configs"
ASK = Ask("x", "0.5.23", tp_size=8)
BUILT = ReleaseState("/opt/sglang/0.5.23-aa", "", "", "0.5.23")
BY_PIP = replace(ASK, installer="pip")
NO_ENSUREPIP = Interpreter("3.11.1")
ABSENT = ReleaseState("/opt/sglang/0.5.23-aa", "absent", "it is not built yet", None)
FINE = Facts(Manager(252), Unit("x.service", "/etc/systemd/system/x.service"), release=BUILT)


def found(said: list[Said]) -> list[str]:
    return [item.check for item in said if isinstance(item, Finding)]


def notes(said: list[Said]) -> list[str]:
    return [item for item in said if isinstance(item, str)]


def of_host(ask: Ask = ASK, **facts: Any) -> list[Said]:
    return list(host_findings(ask, replace(FINE, **facts)))


def test_a_host_without_faults_has_no_findings() -> None:
    assert of_host() == []


HOST: dict[str, tuple[Ask, dict[str, Any], list[str]]] = {
    "systemd of the least version": (ASK, {"manager": Manager(247)}, []),
    "systemd before it": (ASK, {"manager": Manager(246)}, ["service_manager"]),
    "masked": (ASK, {"unit": replace(FINE.unit, load_state="masked")}, ["unit"]),
    "an engine in a container": (replace(ASK, method="container"), {"release": None}, []),
    "no engine": (replace(ASK, method="container"), {"release": None, "has_engine": False}, ["container_engine"]),
    "an installation that cannot be": (ASK, {"release": None, "release_error": ReleaseError("a", "b", "c")}, ["release"]),
    "an environment of the operator's": (replace(ASK, method="existing"), {"release": replace(BUILT, kind="version")}, ["release"]),
    "a Python for a built environment": (ASK, {"interpreter": Interpreter("3.8.1")}, []),
    "a Python of another release": (ASK, {"release": ABSENT, "interpreter": Interpreter("3.10.1", True)}, ["python"]),
    "a Python that suits": (ASK, {"release": ABSENT, "interpreter": Interpreter("3.11.1", True)}, []),
    "no ensurepip": (ASK, {"release": ABSENT, "interpreter": NO_ENSUREPIP}, ["python"]),
    "no ensurepip, but uv": (ASK, {"release": ABSENT, "interpreter": NO_ENSUREPIP, "has_uv": True}, []),
    "no ensurepip, pip asked": (BY_PIP, {"release": ABSENT, "interpreter": NO_ENSUREPIP, "has_uv": True}, ["python"]),
    "a Python that does not run": (ASK, {"release": ABSENT, "interpreter": Interpreter("", found="x")}, ["python"]),
    "memory not judged": (ASK, {"memory": HostMemory(8, 0)}, []),
    "memory enough": (replace(ASK, memory_per_rank_gib=2.5), {"memory": HostMemory(64, 20)}, []),
    "memory that the instance gives back": (replace(ASK, memory_per_rank_gib=2.5), {"memory": HostMemory(64, 12, own_gib=8)}, []),
    "memory short": (replace(ASK, memory_per_rank_gib=2.5), {"memory": HostMemory(64, 19.9)}, ["host_memory"]),
    "locked memory without need": (ASK, {"lock_limit": LockLimit(8192, ())}, []),
    "locked memory with RDMA": (ASK, {"lock_limit": LockLimit(8192, ("mlx5_0",))}, ["memlock"]),
    "locked memory on the CPU": (replace(ASK, device="cpu"), {"lock_limit": LockLimit(8192, ("mlx5_0",))}, []),
    "locked memory without a limit": (ASK, {"lock_limit": LockLimit(None, ("mlx5_0",))}, []),
    "room for what is built": (replace(ASK, release_gib=15), {"spaces": {"/opt/sglang": Space("/", 1, 1)}}, []),
    "room for what is not": (replace(ASK, release_gib=15), {"release": ABSENT, "spaces": {"/opt/sglang": Space("/", 1, 14.9)}}, ["disk"]),
    "room for a container": (replace(ASK, release_gib=15, method="container"), {"spaces": {"/opt/sglang": Space("/", 1, 1)}}, []),
    "no room for records": (ASK, {"spaces": {"/var/lib/sglang": Space("/var", 1, 0.05)}}, ["disk"]),
    "own port": (ASK, {"listeners": (Listener("127.0.0.1", 30000, 7, "python3", True),)}, []),
    "port of others": (ASK, {"listeners": (Listener("::", 30000, 0, "", False), Listener("0.0.0.0", 30000, 0, "", False))}, ["port"]),
    "port of another instance that runs": (
        ASK,
        {"instances": (Instance("y.service", 30000, ("0",)),), "listeners": (Listener("::", 30000, 7, "python of y.service", False),)},
        ["port"],
    ),
    "port of another instance": (ASK, {"instances": (Instance("y.service", 30000, ("0",)), Instance("z.service", 30001, ()))}, ["port"]),
    "an environment file that may be missing": (replace(ASK, environment_files=("-/a",)), {}, []),
    "an environment file that may not": (
        replace(ASK, environment_files=("/a", "/b")), {"files": {"/b": FileFacts("file")}}, ["environment_files"],
    ),
    "no file named": (replace(ASK, named_files={"sglang_model_manifest": ""}), {}, []),
    "a file named": (replace(ASK, named_files={"sglang_model_manifest": "/a"}), {}, ["files"]),
    "a secret": (replace(ASK, secret_files={"k": "/a"}), {"files": {"/a": FileFacts("file", 0o400, 9, 1)}}, []),
    "a secret for all": (replace(ASK, secret_files={"k": "/a"}), {"files": {"/a": FileFacts("file", 0o640, 9, 1)}}, ["secrets"]),
    "an empty secret": (replace(ASK, secret_files={"k": "/a"}), {"files": {"/a": FileFacts("file", 0o600, 0)}}, ["secrets"]),
    "a secret of two lines": (replace(ASK, secret_files={"k": "/a"}), {"files": {"/a": FileFacts("file", 0o600, 9, 2)}}, ["secrets"]),
    "a folder for a secret": (replace(ASK, secret_files={"k": "/a"}), {"files": {"/a": FileFacts("folder", 0o700, 9)}}, ["secrets"]),
    "no secret": (replace(ASK, secret_files={"k": ""}), {}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", HOST)
def test_the_host(case: str) -> None:
    ask, facts, checks = HOST[case]
    assert found(of_host(ask, **facts)) == checks


def test_needs_on_one_filesystem_add_up() -> None:
    model = CheckpointFacts("/srv/kimi", present=True, missing_gib=600.0)
    spaces = {"/opt/sglang": Space("/", 1, 610), "/srv/kimi": Space("/", 1, 610), "/var/lib/sglang": Space("/var", 2, 5)}
    ask = replace(ASK, release_gib=15)
    said = of_host(ask, release=ABSENT, spaces=spaces, checkpoints={"model": model})
    assert [item.text for item in said if isinstance(item, Finding)] == [
        "disk: asked for 15.0 GiB for a new environment in /opt/sglang and 600.0 GiB for what sglang_model lacks in /srv/kimi, found 610.0 "
        "GiB free on the filesystem /; make room, or put it elsewhere (sglang_root, sglang_model, sglang_state_dir); sglang_release_gib is "
        "what an environment takes"
    ]
    apart = {**spaces, "/srv/kimi": Space("/srv", 3, 600)}
    assert found(of_host(ask, release=ABSENT, spaces=apart, checkpoints={"model": model})) == []


def test_what_is_worth_knowing_of_a_host() -> None:
    said = of_host(
        release=replace(ABSENT, kind="unfinished", reason="it was never finished"),
        lock_limit=LockLimit(8192, ()),
        accelerators=Accelerators("nvidia-smi", ()),
    )
    assert found(said) == []
    assert [note.partition(":")[0] for note in notes(said)] == [
        "/opt/sglang/0.5.23-aa is built again",
        "LimitMEMLOCK=infinity of the unit will not hold",
    ]


def test_huge_pages_are_named() -> None:
    said = of_host(replace(ASK, memory_per_rank_gib=2.5), memory=HostMemory(64, 4, huge_gib=40))
    assert [item.text for item in said if isinstance(item, Finding)] == [
        "host_memory: asked for 20.0 GiB of available host memory (8 ranks of 2.5 GiB), found 4.0 of 64.0 GiB, and 40.0 GiB reserved as "
        "huge pages; give the huge pages back (sysctl vm.nr_hugepages), or end what holds it, or lower sglang_host_memory_per_rank_gib (0 "
        "does not judge it)"
    ]


def test_a_removal_needs_no_more_than_the_manager() -> None:
    assert found(list(removal_findings(replace(FINE, unit=replace(FINE.unit, load_state="masked"))))) == []
    assert found(list(removal_findings(replace(FINE, manager=Manager(None, "tini"))))) == ["service_manager"]


def test_what_is_allowed_is_a_note_and_nothing_is_said_twice() -> None:
    first, second = Finding("ecc", "a", "b", "c"), Finding("xid", "a", "b", "c")
    verdict = verdict_of(iter([first, "a note", second, second]), frozenset({"ecc"}))
    assert (verdict.findings, verdict.notes) == ((second,), ("Allowed: ecc: asked for a, found b; c", "a note"))


# --- cards ------------------------------------------------------------------------------------------------------------------


def card(index: int, used: float = 0.0, total: float = 96.0, **more: Any) -> Gpu:
    return Gpu(index, f"GPU-{index}", "RTX", total, used, total - used, f"00000000:0{index}:00.0", 12.0, **{"ecc_uncorrected": 0, **more})


TWO = Ask("x", "0.5.23", tp_size=2)


def of_cards(ask: Ask, cards: list[Gpu], processes: tuple[GpuProcess, ...] = (), driver: str = "610.43", **facts: Any) -> list[Said]:
    accelerators = Accelerators(facts.pop("tool", "nvidia-smi"), tuple(cards), processes, driver)
    return list(card_findings(ask, replace(FINE, accelerators=accelerators, **facts)))


PAIR = [card(0), card(1)]
OWN_RUNS = {"own_pids": frozenset({7}), "own_runs": True}
CARDS: dict[str, tuple[Ask, list[Gpu], tuple[GpuProcess, ...], dict[str, Any], list[str]]] = {
    "enough": (TWO, PAIR, (), {}, []),
    "too few": (replace(TWO, pp_size=2), PAIR, (), {}, ["gpus"]),
    "too few from the base on": (replace(TWO, base_gpu=1), PAIR, (), {}, ["gpus"]),
    "replicas": (replace(TWO, dp_size=2), PAIR, (), {}, ["gpus"]),
    "groups of attention": (replace(TWO, dp_size=2, dp_attention=True), PAIR, (), {}, []),
    "two nodes": (replace(TWO, tp_size=4, nodes=2), PAIR, (), {}, []),
    "only the used ones are judged": (TWO, [*PAIR, card(2, total=24, ecc_uncorrected=3, mig=True)], (), {}, []),
    "sizes a little apart": (TWO, [card(0), card(1, total=95.5)], (), {}, []),
    "sizes apart": (TWO, [card(0), card(1, total=94.9)], (), {}, ["gpu_size"]),
    "sizes far apart": (TWO, [card(0), card(1, total=80.0)], (), {}, ["gpu_size", "gpu_free"]),
    "MIG": (TWO, [card(0), card(1, mig=True)], (), {}, ["mig"]),
    "idle use": (TWO, [card(0, 1.9), card(1)], (), {}, []),
    "use by nobody": (TWO, [card(0, 2.1), card(1)], (), {}, ["gpu_free"]),
    "free just enough": (TWO, [card(0, 9.6), card(1)], (GpuProcess(7, "x", 0, 9.6),), {"own_pids": frozenset({7})}, []),
    "unbalanced": (TWO, [card(0, 9.7), card(1)], (GpuProcess(8, "x", 0, 9.7),), {}, ["gpu_processes", "gpu_free"]),
    "unbalanced without tensor ranks": (
        replace(TWO, tp_size=1, pp_size=2), [card(0, 9.7), card(1)], (GpuProcess(8, "x", 0, 9.7),), {}, ["gpu_processes"],
    ),
    "a process on another card": (replace(TWO, tp_size=1), [card(0), card(1, 90)], (GpuProcess(8, "x", 1, 90),), {}, []),
    "a small process": (TWO, [card(0, 0.5), card(1)], (GpuProcess(8, "x", 0, 0.5),), {}, ["gpu_processes"]),
    "one that lets others hold": (TWO, [card(0, 0.5), card(1)], (GpuProcess(8, "/usr/bin/nvidia-cuda-mps-server", 0, 0.5),), {}, []),
    "own processes that tell no memory": (TWO, [card(0, 90), card(1, 90)], (GpuProcess(7, "x", 0, None),), OWN_RUNS, []),
    "own processes that are not seen": (TWO, [card(0, 90), card(1, 88)], (), {"own_runs": True}, []),
    "AMD does not tell the card": (TWO, [card(0, 50), card(1)], (GpuProcess(8, "x", None, 50.0),), {"tool": "rocm-smi"}, ["gpu_free"]),
    "ECC": (TWO, [card(0, ecc_uncorrected=1), card(1, ecc_uncorrected=None)], (), {}, ["ecc"]),
    "another instance on other cards": (TWO, PAIR, (), {"instances": (Instance("y.service", 1, ("2",)),)}, []),
    "another instance by UUID": (TWO, PAIR, (), {"instances": (Instance("y.service", 1, ("GPU-1",)),)}, ["instances"]),
    "another instance on all cards": (TWO, PAIR, (), {"instances": (Instance("y.service", 1, ()),)}, ["instances"]),
    "an old driver": (TWO, PAIR, (), {"driver": "550.54.14"}, ["driver"]),
    "an old driver of AMD's": (TWO, PAIR, (), {"driver": "5.0", "tool": "rocm-smi"}, []),
    "an old driver and a branch": (replace(TWO, custom_source=True), PAIR, (), {"driver": "550.54.14"}, []),
    "an old driver and a container": (replace(TWO, method="container"), PAIR, (), {"driver": "550.54.14"}, []),
    "an old driver and no version": (replace(TWO, version=""), PAIR, (), {"driver": "550.54.14"}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", CARDS)
def test_the_cards(case: str) -> None:
    ask, cards, processes, facts, checks = CARDS[case]
    driver = facts.get("driver", "610.43")
    assert found(of_cards(ask, cards, processes, driver, **{key: value for key, value in facts.items() if key != "driver"})) == checks


def xid(code: int, pci: str) -> Xid:
    return Xid("2026-11-30 00:55:00 UTC", pci, code, "")


@pytest.mark.parametrize(
    ("xids", "checks"),
    [
        pytest.param((xid(13, "0000:00:00"), xid(31, "0000:01:00")), [], id="of a program"),
        pytest.param((xid(79, "0000:01:00"),), ["xid"], id="of a card in use"),
        pytest.param((xid(79, "0000:03:00"),), [], id="of another card"),
        pytest.param((xid(79, "0000:7f:00"),), ["xid"], id="of a card that is gone"),
        pytest.param((xid(79, "somewhere"),), ["xid"], id="of who knows what"),
    ],
)
def test_errors_of_the_cards(xids: tuple[Xid, ...], checks: list[str]) -> None:
    # those that are wanted come first in what the driver is asked for
    cards = [card(0), card(1), card(3)]
    assert found(of_cards(TWO, cards, xids=xids)) == checks


def test_an_error_that_came_again_is_told_once() -> None:
    said = of_cards(TWO, PAIR, xids=(replace(xid(48, "0000:01:00"), at="first"), replace(xid(48, "0000:01:00"), at="last")))
    assert [item.found for item in said if isinstance(item, Finding)] == ["Xid 48 at 0000:01:00 (an uncorrectable ECC error, last)"]


def test_cards_that_cannot_be_read_need_not_be_where_their_memory_is_given() -> None:
    facts = replace(FINE, gpu_error=GpuError("a", "b", "c"))
    assert found(list(card_findings(TWO, facts))) == ["gpus"]
    assert list(card_findings(replace(TWO, free_given=True), facts)) == []
    assert list(card_findings(replace(TWO, device="cpu"), facts)) == []
    assert list(card_findings(TWO, FINE)) == []


def test_cards_that_are_named_are_counted_even_where_they_cannot_be_read() -> None:
    facts = replace(FINE, gpu_error=GpuError("a", "b", "c"))
    assert list(card_findings(replace(TWO, free_given=True, gpus=("2", "5")), facts)) == []
    said = list(card_findings(replace(TWO, free_given=True, gpus=("5",)), facts))
    assert [item.found for item in said if isinstance(item, Finding)] == ["1 of sglang_gpus (5)"]


def test_the_cards_that_the_ranks_take() -> None:
    cards = [card(index) for index in range(8)]
    assert [item.index for item in used_cards(replace(TWO, base_gpu=2, gpu_step=3), cards)] == [2, 5]
    assert [item.index for item in used_cards(TWO, cards)] == [0, 1]


def test_many_processes_are_shortened_and_cards_without_use_are_a_note() -> None:
    processes = tuple(GpuProcess(pid, "x", 0, 1.0) for pid in range(1, 11))
    said = of_cards(replace(TWO, gpus=("0", "1", "2")), [card(0, 10), card(1), card(2)], processes, programs={1: "trainer of t.service"})
    text = next(item.found for item in said if isinstance(item, Finding) and item.check == "gpu_processes")
    assert text.startswith("trainer of t.service (pid 1) with 1.0 GiB on card 0, x (pid 2) with 1.0 GiB on card 0, ")
    assert text.endswith("x (pid 8) with 1.0 GiB on card 0 and 2 more")
    assert notes(said) == ["3 cards are named in sglang_gpus and 2 of them are used (tp_size 2)."]


def test_what_a_start_will_find_free() -> None:
    processes = (GpuProcess(7, "x", 0, 80.0), GpuProcess(8, "y", 0, 5.0))
    facts = replace(FINE, accelerators=Accelerators("nvidia-smi", (), processes), own_pids=frozenset({7}), own_runs=True)
    assert free_for_us(card(0, 86.0), facts) == 90.0
    assert free_for_us(card(0, 86.0), replace(facts, accelerators=Accelerators("nvidia-smi", (), processes[1:]))) == 91.0


# --- models and flags -------------------------------------------------------------------------------------------------------

WHOLE = CheckpointFacts("/srv/kimi", present=True, complete=True, settled=True)
CONFIG_OF = {"/srv/kimi": "kimi-k2.6", "/srv/draft": "kimi-k2.6-dflash", "/srv/qwen": "qwen3-32b"}


def read_config(path: str) -> Mapping[str, Any]:
    if path not in CONFIG_OF:
        raise InputError(f"the model {path}", "no config.json on this host", "fetch it")
    return json.loads((CONFIGS / f"{CONFIG_OF[path]}.json").read_text(encoding="utf-8"))


def of_models(server: Server, ask: Ask = ASK, model: CheckpointFacts = WHOLE, draft: Optional[CheckpointFacts] = None) -> list[Said]:
    checkpoints = {"model": model, **({"draft": draft} if draft else {})}
    return list(model_findings(ask, replace(FINE, checkpoints=checkpoints), server, read_config))


def kimi(**flags: Any) -> Server:
    given = {"model-path": "/srv/kimi", "tp-size": 8, **{name.replace("_", "-"): value for name, value in flags.items()}}
    return Server(flags=given, values=pool_flags(given))


DRAFT = {"speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/srv/draft"}
OF_DRAFT = replace(WHOLE, path="/srv/draft")
PROBLEMS = ("a: missing", "b: missing", "c: cut", "d: cut")
CUT = CheckpointFacts("/srv/kimi", present=True, problems=PROBLEMS, fingerprint="1", missing_gib=3.5)
GONE = CheckpointFacts("/srv/none")
FETCHED = replace(ASK, sources={"model": "hub:a/b"})
WEIGHTS_GIVEN = replace(ASK, weights_given=frozenset({"model"}))
REFUSED = replace(WHOLE, settled=False, refusal="a checkpoint of another commit")
ALONE = CheckpointFacts("/srv/kimi", present=True, problems=("no safetensors file in it",), config_alone=True)
BARE = CheckpointFacts("/srv/empty", present=True, problems=("no safetensors file in it",), bare=True)

MODELS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "whole": ({"server": kimi()}, []),
    "with its draft": ({"server": kimi(**DRAFT), "draft": OF_DRAFT}, []),
    "cut": ({"server": kimi(), "model": CUT}, ["model"]),
    "cut, with a source": ({"server": kimi(), "ask": FETCHED, "model": CUT}, []),
    "not there": ({"server": kimi(), "model": GONE}, ["model"]),
    "not there, with a source": ({"server": kimi(), "ask": FETCHED, "model": GONE}, []),
    "an empty directory": ({"server": kimi(), "model": BARE}, ["model"]),
    "a configuration alone": ({"server": kimi(), "model": ALONE}, ["model"]),
    "a configuration alone, weights given": ({"server": kimi(), "ask": WEIGHTS_GIVEN, "model": ALONE}, []),
    "not to be replaced": ({"server": kimi(), "ask": FETCHED, "model": REFUSED}, ["model"]),
    "draft not there": ({"server": kimi(**DRAFT), "draft": GONE}, ["draft_model"]),
    "heads": ({"server": kimi(tp_size=7)}, ["parallelism"]),
    "stages": ({"server": kimi(pp_size=99)}, ["parallelism"]),
    "a size of nothing": ({"server": kimi(tp_size=0)}, ["version"]),
    "a type that the release does not know": ({"server": kimi(kv_cache_dtype="int3")}, ["version", "flag_value"]),
    "a release before the table": ({"server": kimi(), "ask": replace(ASK, version="0.3.0")}, ["version"]),
    "a version that names no release": ({"server": kimi(tp_size=7), "ask": replace(ASK, version="our-branch")}, []),
    "no version": ({"server": kimi(), "ask": replace(ASK, version="")}, ["version"]),
    "values that cannot be cast": ({"server": replace(kimi(tp_size=7), errors=("x",))}, ["flags"]),
}


@pytest.mark.parametrize("case", MODELS)
def test_models(case: str) -> None:
    given, checks = MODELS[case]
    assert found(of_models(**given)) == checks


def test_a_draft_of_another_target_is_told_figure_by_figure() -> None:
    said = of_models(kimi(**DRAFT), model=replace(WHOLE, path="/srv/qwen"), draft=OF_DRAFT)
    assert [(item.check, item.found.split()[0]) for item in said if isinstance(item, Finding)] == [
        ("draft", "vocab_size"), ("draft", "num_target_layers"), ("draft", "hidden_size"),
    ]  # fmt: skip


def test_what_is_fetched_is_a_note_with_its_size() -> None:
    assert notes(of_models(kimi(), FETCHED, CUT))[0] == (
        "sglang_model /srv/kimi is fetched, 3.5 GiB, from hub:a/b: a: missing; b: missing; c: cut; and 1 more."
    )
    assert notes(of_models(kimi(), FETCHED, GONE))[0] == "sglang_model /srv/none is fetched from hub:a/b: no such directory on the host."


def test_flags_that_decide_the_pool_by_any_of_their_names() -> None:
    flags = {"mamba-radix-cache-strategy": "auto", "speculative-draft-kv-cache-dtype": "bf16", "--tp_size": 4, "log-level": "info"}
    assert pool_flags(flags) == {"mamba_scheduler_strategy": "auto", "draft_kv_cache_dtype": "bf16", "tp_size": 4}


def test_sizes_of_a_command_line() -> None:
    defaults = {"tp_size": 1, "pp_size": 1, "dp_size": 1, "nnodes": 1, "base_gpu_id": 0, "gpu_id_step": 1}
    assert sizes_of({}) == defaults
    assert sizes_of({"tp-size": "8", "nnodes": 2, "base-gpu-id": -1, "pp-size": "x"}) == {**defaults, "tp_size": 8, "nnodes": 2}
