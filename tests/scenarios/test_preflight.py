# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host can have against a server, each thing provoked on a host, and all of a run told in one message before anything changes.

The cards are those of tests/support/fake_cards.py; processes, ports, units, disks and limits are the host's own.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from support.fake_cards import Card, FakeCards, Holder, eight
from support.host import ROOT, Host
from support.kimi import kimi_host, kimi_service

Values = dict[str, Any]

OPTIONS = ("--tmpfs", "/srv/small:24M", "--bind-ro", f"{ROOT}/tests/differential/models:/srv/more")

LISTENER = "import socket, time; s = socket.create_server(('127.0.0.1', 30555)); time.sleep(9999)"
OTHER_UNIT = """\
[Unit]
X-InferopsInstance=other
[Service]
EnvironmentFile=/srv/other.env
ExecStart=/bin/true \\\\
    --port 30555
[Install]
WantedBy=multi-user.target
"""
XIDS = (
    (1796000000, "NVRM: Xid (PCI:0000:03:00): 13, pid=77, name=python3, Graphics Exception"),
    (1796000100, "NVRM: Xid (PCI:0000:03:00): 79, pid=77, name=python3, GPU has fallen off the bus."),
    (1796000200, "NVRM: Xid (PCI:0000:0A:00): 48, pid=78, DBE (double bit error)"),
)


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    work = tmp_path_factory.mktemp("preflight")
    with kimi_host(work, "flight", "infopq", "10.79.23", *OPTIONS) as host:
        # it is looked for, and never installed
        (work / "wheels/sglang-0.5.23-py3-none-any.whl").touch()
        yield Host(host.name, host.inventory, {**host.environment, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})


@pytest.fixture
def cards(flight: Host) -> Iterator[FakeCards]:
    fake = FakeCards(flight).install(kernel_log=True)
    yield fake.show(eight())
    fake.remove()


def refused(host: Host, values: Values) -> list[str]:
    """The lines of the refusal; the host is as it was before."""
    before = host.state()
    run = host.play(values)
    assert run.code == 2, run.text
    assert host.state() == before
    message = re.search(r'"msg": ("(?:[^"\\]|\\.)*")', run.text.partition("Refuse what cannot work")[2])
    assert message, run.text
    return json.loads(message.group(1)).splitlines()


def kimi(**values: Any) -> Values:
    return {**kimi_service("sglang-flight", 30555), "sglang_gpu_free_gib": [], **values}


def test_a_host_with_everything_wrong(flight: Host, cards: FakeCards) -> None:
    flight.shell(
        f"systemd-run -q --unit=listens /usr/bin/python3 -c \"{LISTENER}\"; systemd-run -q --unit=holds sleep 9999;"
        f"printf %s '{OTHER_UNIT}' > /etc/systemd/system/other.service; echo CUDA_VISIBLE_DEVICES='\"4,5\"' > /srv/other.env;"
        "systemctl daemon-reload; systemctl enable -q other; systemctl mask -q sglang-flight;"
        "echo secret > /srv/key; chmod 644 /srv/key; mount -t tmpfs none /sys/class; mkdir -p /sys/class/infiniband/mlx5_0"
    )
    flight.wait_for("ss -ltn | grep 30555")
    listens, holds = (flight.shell(f"systemctl show -P MainPID {name}") for name in ("listens", "holds"))
    broken = eight()
    broken[0] = Card(0, used_mib=34816)
    broken[1] = Card(1, mig="Enabled")
    broken[2] = Card(2, ecc=2)
    broken[3] = Card(3, total_mib=81920, name="NVIDIA H100 80GB HBM3")
    broken[5] = Card(5, used_mib=40960)
    cards.show(broken, [Holder(int(holds), 0, 34816, "/usr/bin/sleep")], driver="550.54.14", kernel=XIDS)
    lines = refused(flight, kimi(
        sglang_api_key_file="/srv/key", sglang_hub_token_file="/srv/none", sglang_environment_files=["/srv/gone.env", "-/srv/unsure.env"],
        sglang_model_manifest="/srv/sums", sglang_root="/srv/small", sglang_release_gib=15,
        sglang_host_memory_per_rank_gib=100000, sglang_extra_args={"no-such-flag": 1}, sglang_adopt="some unit",
    ))  # fmt: skip
    flight.shell(
        "umount /sys/class; systemctl stop listens holds; systemctl unmask -q sglang-flight; systemctl disable -q other;"
        "rm /etc/systemd/system/other.service; systemctl daemon-reload"
    )
    memory = next(line for line in lines if line.startswith("host_memory"))
    assert re.fullmatch(
        r"host_memory: asked for 800000\.0 GiB of available host memory \(8 ranks of 100000 GiB\), found \d+\.\d of \d+\.\d GiB"
        r"(, and \d+\.\d GiB reserved as huge pages)?; (give the huge pages back \(sysctl vm\.nr_hugepages\), or )?end what holds it, "
        r"or lower sglang_host_memory_per_rank_gib \(0 does not judge it\)",
        memory,
    )
    assert [line for line in lines if line != memory] == [
        'sglang_adopt: found "some unit"; give the name of a unit, for example sglang-k26-ddtree.service',
        "unit: asked for /etc/systemd/system/sglang-flight.service to be written, found the unit masked; if it shall run again: "
        "systemctl unmask sglang-flight.service",
        "memlock: asked for unlimited locked memory for mlx5_0, found a service manager that may raise no limit and has 8,192 KiB itself; "
        "raise the limit of the container that this host is (--ulimit memlock=-1), or give it CAP_SYS_RESOURCE",
        "disk: asked for 15.0 GiB for a new environment in /srv/small, found 0.0 GiB free on the filesystem /srv/small; make room, or put "
        "it elsewhere (sglang_root, sglang_model, sglang_state_dir); sglang_release_gib is what an environment takes",
        f"port: asked for port 30555 on 127.0.0.1, found that python3 of listens.service (pid {listens}) listens on it; give sglang_port "
        "another number, or stop that program",
        "port: asked for port 30555, found that other.service has it too; give each instance a sglang_port of its own",
        "environment_files: asked for the environment file /srv/gone.env, found no such file on the host; make it with mode 0600, or write "
        "-/srv/gone.env where it may be absent",
        "files: asked for sglang_model_manifest /srv/sums, found no such file or directory on the host; put it there, or clear the "
        "variable",
        "secrets: asked for sglang_api_key_file /srv/key readable by its owner alone, found mode 0644; chmod 0600 /srv/key",
        "secrets: asked for sglang_hub_token_file /srv/none, found no such file on the host; make it with mode 0600, or clear the variable",
        "gpu_size: asked for cards of one size, found card 3 (NVIDIA H100 80GB HBM3) of 80.0 GiB beside card 0 (NVIDIA RTX PRO 6000 "
        "Blackwell Server Edition) of 95.6 GiB; choose cards of one size with sglang_gpus: every rank gets the pool of the smallest",
        "mig: asked for whole cards, found MIG on card 1; end it (nvidia-smi -i 1 -mig 0), or choose other cards with sglang_gpus",
        f"gpu_processes: asked for cards 0, 1, 2, 3, 4, 5, 6, 7 for this instance alone, found sleep of holds.service (pid {holds}) with "
        "34.0 GiB on card 0; end them, or choose other cards with sglang_gpus",
        "gpu_free: asked for card 5 free, found 40.0 GiB in use by no process that can be seen; look for what holds it in containers and "
        "on the host (fuser -v /dev/nvidia* /dev/kfd), or reset the card",
        "gpu_free: asked for cards with as much free memory each, found 55.6 GiB free on card 5 beside 95.6 GiB on card 1; free it, or "
        "choose other cards with sglang_gpus: under 86.0 GiB SGLang ends with 'The memory capacity is unbalanced'",
        "ecc: asked for no uncorrected memory errors since the driver was loaded, found 2 on card 2 at 00000000:03:00.0; reset the card or "
        "reboot the host; if they come back, have it replaced",
        "xid: asked for no hardware error of the cards since the host booted, found Xid 79 at 0000:03:00 (the card has fallen off the bus, "
        "2026-11-30 00:55:00 UTC), 48 at 0000:0a:00 (an uncorrectable ECC error, 2026-11-30 00:56:40 UTC); reset the card or reboot the "
        "host, and look at the kernel's log (journalctl -k); if it comes back, have it replaced",
        "driver: asked for SGLang 0.5.12.post1 with torch 2.11.0 for CUDA 13.0, which needs driver 580.65.06 or newer, found driver "
        "550.54.14; install a driver of at least 580.65.06, or a build of SGLang and torch for an older CUDA (sglang_extra_index_url, "
        "sglang_wheel)",
        "instances: asked for cards 0, 1, 2, 3, 4, 5, 6, 7 for sglang-flight alone, found that other.service has cards 4, 5 too; give each "
        "instance cards of its own with sglang_gpus, or remove that instance",
        "flag_unknown: asked for --no-such-flag, found no such flag in SGLang 0.5.12.post1 nor in any other release; leave it out",
    ]


# What systemctl says of the manager; all else goes to the real one.
SYSTEMCTL = """\
#!/bin/sh
case "$*" in *property=Version) {answer};; *) exec /usr/bin/systemctl "$@";; esac
"""
NO_SYSTEMD = SYSTEMCTL.format(answer="echo System has not been booted with systemd as init system >&2; exit 1")
OLD_SYSTEMD = SYSTEMCTL.format(answer="echo Version=245.4-4ubuntu3.24")

OF_ANOTHER = "this draft was made for another model; give the draft that belongs to this target"
DRAFT_BESIDE = "draft: asked for the draft DFlashDraftModel beside the target Qwen3ForCausalLM, found"
HEADS = "give a size that divides the attention heads, and divides the KV heads or is a multiple of them"
OLD_PYTHON = "python: asked for /usr/local/bin/python3.9 to make an environment for SGLang 0.5.12.post1, found Python 3.9.2"
NO_DRAFT = {"sglang_draft_model": "", "sglang_speculative_algorithm": "", "sglang_speculative_num_draft_tokens": 0}

# name: (programs on the host, variables, findings)
REST: dict[str, tuple[dict[str, str], Values, list[str]]] = {
    "target, draft and flags": (
        {},
        {
            "sglang_model": "/srv/models/qwen3-32b", "sglang_tp_size": 7, "sglang_pp_size": 2, "sglang_speculative_num_draft_tokens": 5,
            "sglang_kv_cache_dtype": "nvfp4", "sglang_install_method": "container", "sglang_container_image": "sglang:x",
        },
        [
            "container_engine: asked for podman to run the image, found no such program on the host; install podman, or set "
            "sglang_container_engine or sglang_install_method",
            "gpus: asked for 14 cards (tp_size 7, pp_size 2), found 8 (0, 1, 2, 3, 4, 5, 6, 7); give sizes whose product is the number of "
            "cards, or name more cards in sglang_gpus",
            "parallelism: asked for tp_size that spreads Qwen3ForCausalLM over 7 ranks, found 64 attention heads and 8 KV heads; " + HEADS,
            f"{DRAFT_BESIDE} vocab_size 163840 in the draft where the target has 151936; {OF_ANOTHER}",
            f"{DRAFT_BESIDE} num_target_layers 61 in the draft where the target has 64; {OF_ANOTHER}",
            f"{DRAFT_BESIDE} hidden_size 7168 in the draft where the target has 5120; {OF_ANOTHER}",
            "version: asked for kv_cache_dtype nvfp4, found SGLang from 0.5.12 on and before 0.5.13, which knows auto, fp8_e5m2, fp8_e4m3, "
            "bf16, bfloat16, fp4_e2m1; use one of these, or a release that has it",
            "speculation: asked for tp_size that spreads DFlashDraftModel over 7 ranks, found 64 attention heads and 8 KV heads; " + HEADS,
            "flags_together: asked for --speculative-algorithm DFLASH, found --pp-size 2, which SGLang 0.5.12.post1 refuses; use pp_size "
            "1, or leave speculation out",
            "draft_block_size: asked for --speculative-num-draft-tokens 5, found a draft whose block_size is 8; give 8 or leave it out",
        ],
    ),
    "a sparse model without weights, more ranks than cards": (
        {},
        {
            "sglang_model": "/srv/more/deepseek-v3.2", "sglang_tp_size": 16, "sglang_kv_cache_dtype": "fp8_e5m2", "sglang_weights_gib": 0,
            **NO_DRAFT,
        },
        [
            "gpus: asked for 16 cards (tp_size 16), found 8 (0, 1, 2, 3, 4, 5, 6, 7); give sizes whose product is the number of cards, or "
            "name more cards in sglang_gpus",
            "model: asked for a complete checkpoint in /srv/more/deepseek-v3.2 (sglang_model), found no safetensors file in it; fetch what "
            "is missing, or give sglang_model_source",
            "pool: asked for the KV pool of DeepseekV32ForCausalLM with kv_cache_dtype fp8_e5m2, found sparse attention, which SGLang "
            "0.5.11-0.5.13 keeps in bfloat16 or fp8_e4m3 only; use one of these, or auto",
        ],
    ),
    "flags": (
        {},
        {
            "sglang_version": "0.5.23", "sglang_speculative_algorithm": "DDTREE", "sglang_environment": {"SGLANG_ENABLE_SPEC_V2": 1},
            "sglang_extra_args": {
                "speculative-dflash-draft-window-size": 4096, "schedule-policy": "oldest", "allow-auto-truncate": True,
                "max-total-tokens": 1000, "ep-size": 2, "expert-parallel-size": 4, "chunked-prefill-size": "many",
            },
        },
        [
            "flags: asked for flags that the plan can read, found --chunked-prefill-size many, which is no whole number; mend it in "
            "sglang_extra_args",
            "flag_removed: asked for --speculative-dflash-draft-window-size, found SGLang 0.5.23, which has it not; 0.5.11 to 0.5.19 have "
            "it; write --speculative-draft-window-size, its name there",
            "flag_value: asked for --schedule-policy oldest, found that SGLang 0.5.23 knows dfs-weight, fcfs, hrrn, lof, lpm, priority, "
            "random, routing-key, shortest-prefill-first; give one of these",
            "flag_twice: asked for --ep-size 2 and --expert-parallel-size 4, found names of one argument, of which the last one wins; give "
            "one of them",
            "speculative_algorithm: asked for --speculative-algorithm DDTREE, found SGLang 0.5.23; no release up to 0.5.23 has it; install "
            "a branch that has it (sglang_git, sglang_wheel), or use DFLASH with the same draft",
            "auto_truncate: asked for --allow-auto-truncate, found that SGLang then cuts prompts that do not fit the pool, and answers as "
            "if nothing were missing; leave it out: the gate proves that the pool holds what is asked",
            "max_total_tokens: asked for 200,000 tokens in the pool of every rank, found --max-total-tokens 1,000, which caps it; leave it "
            "out, or ask for less",
            "spec_v2: asked for SGLANG_ENABLE_SPEC_V2=1 in the environment, found SGLang 0.5.23, which reads it no more: speculation "
            "always runs as version 2; leave it out; --disable-overlap-schedule is what turns overlap off",
        ],
    ),
    "no systemd, a Python that is too old": (
        {"systemctl": NO_SYSTEMD, "python3.9": "#!/bin/sh\necho 3.9.2 0\n"},
        {"sglang_draft_model": "/srv/models/none", "sglang_python": "/usr/local/bin/python3.9", "sglang_installer": "pip"},
        [
            "service_manager: asked for systemd as service manager, found systemd as process 1 (systemctl: System has not been booted with "
            "systemd as init system); run it on a host that systemd manages: the service, its journal and the gate need it",
            OLD_PYTHON + ", and that this release needs 3.10 or newer; install a newer Python on the host and give it as sglang_python",
            OLD_PYTHON + " without ensurepip, which no environment can be made with; install what makes environments (on Debian and Ubuntu "
            "the package python3.9-venv), or uv",
            "draft_model: asked for sglang_draft_model /srv/models/none, found no such directory on the host; give the directory of the "
            "model on the host, or sglang_draft_model_source to fetch it",
        ],
    ),
    "an old systemd, a window, an environment of the operator's": (
        {"systemctl": OLD_SYSTEMD},
        {
            "sglang_version": "0.5.23", "sglang_model": "/srv/more/gpt-oss-120b", "sglang_extra_args": {"dcp-size": 2},
            "sglang_install_method": "existing", "sglang_existing_environment": "/srv/none", **NO_DRAFT,
        },
        [
            "service_manager: asked for systemd 247 or newer, found systemd 245; use Debian 11, Ubuntu 22.04, RHEL 9 or newer: the unit "
            "takes credentials, which older ones do not know",
            "release: asked for SGLang 0.5.23 in /srv/none, found there is no such directory; mend it, or give another one as "
            "sglang_existing_environment; the role never changes it",
            "windows: asked for the pool of GptOssForCausalLM under SGLang 0.5.18-0.5.23, found dcp_size 2 beside windowed layers; use "
            "dcp_size 1: no release was compared with more",
        ],
    ),
}  # fmt: skip


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize("case", REST)
def test_what_else_a_host_can_have(flight: Host, case: str) -> None:
    programs, values, findings = REST[case]
    for name, text in programs.items():
        flight.shell(f"printf %s {shlex.quote(text)} > /usr/local/bin/{name}; chmod 755 /usr/local/bin/{name}")
    try:
        found = refused(flight, kimi(**values))
    finally:
        flight.shell(f"cd /usr/local/bin && rm -f {' '.join(programs) or 'none'}")
    assert found == findings


# What the driver's tool says: (exit code and text, finding)
BROKEN_TOOLS = {
    "mismatch": (
        (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95"),
        "gpus: asked for the memory of each card (nvidia-smi), found exit code 18 (Failed to initialize NVML: Driver/library version "
        "mismatch NVML library version: 580.95); the driver was updated while its old modules run on: reboot the host, or load the nvidia "
        "modules anew",
    ),
    "lost": (
        (15, "Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU"),
        "gpus: asked for the memory of each card (nvidia-smi), found exit code 15 (Unable to determine the device handle for "
        "GPU0000:41:00.0: GPU is lost. Reboot the system to recover this GPU); the card fell off the bus: power the host off and on, look "
        "at the kernel's log",
    ),
}


@pytest.mark.parametrize("case", BROKEN_TOOLS)
def test_cards_that_cannot_be_read(flight: Host, cards: FakeCards, case: str) -> None:
    says, finding = BROKEN_TOOLS[case]
    cards.show([], says=says)
    assert refused(flight, kimi()) == [finding]


def test_what_is_allowed_is_shown_with_the_plan(flight: Host, cards: FakeCards) -> None:
    cards.show([Card(0, ecc=2), *eight()[1:]])
    before = flight.state()
    run = flight.play(kimi(sglang_allowed_findings=["ecc"]), "--tags", "sglang_plan")
    for words in ("200,000 tokens in the pool", "- host: Allowed: ecc: asked for no uncorrected memory errors", "- host: sglang_model "):
        assert words in run.text, run.text
    assert flight.state() == before


def ask(host: Host, module: str, values: Values) -> dict[str, Any]:
    """A module's result."""
    done = subprocess.run(
        ["ansible", "-i", host.inventory, host.name, "-m", f"inferops.sglang.{module}", "-a", json.dumps(values)],
        env=host.environment, capture_output=True, text=True, check=False,
    )
    return json.loads(done.stdout.partition(" => ")[2])


def server(**values: Any) -> Values:
    flags = {"model-path": "/srv/models/kimi-k2.6", "tp-size": 8, "context-length": 200000}
    release = {"version": "0.5.12.post1", "wheelhouse": "/srv/wheels"}
    return {
        "instance": "sglang-own", "sglang_version": "0.5.12.post1", "model": "/srv/models/kimi-k2.6", "weights_given": ["model"],
        "flags": flags, "release": release, **values,
    }  # fmt: skip


def test_what_the_instance_itself_holds_does_not_speak_against_it(flight: Host, cards: FakeCards) -> None:
    flight.shell(
        f"systemd-run -q --unit=sglang-own --setenv=INFEROPS_DIGEST=abc /usr/bin/python3 -c \"{LISTENER}\";"
        "systemd-run -q --unit=in-a-container --setenv=INFEROPS_DIGEST=abc sleep 9999"
    )
    flight.wait_for("ss -ltn | grep 30555")
    pids = [int(flight.shell(f"systemctl show -P MainPID {name}")) for name in ("sglang-own", "in-a-container")]
    cards.show(eight(used_mib=90000), [Holder(pids[index % 2], index, 89000) for index in range(8)])
    try:
        found = ask(flight, "preflight_info", server(port=30555))
        other = ask(flight, "preflight_info", server(port=30555, instance="sglang-new"))
        taken_over = ask(flight, "preflight_info", server(port=30555, instance="sglang-new", adopt="sglang-own.service"))
        off = ask(flight, "preflight_info", server(port=30555, instance="sglang-new", allowed=["port", "gpu_processes"]))
        removed = ask(flight, "preflight_info", server(port=30555, instance="sglang-new", state="absent"))
    finally:
        flight.shell("systemctl stop sglang-own in-a-container")
    assert found["findings"] == taken_over["findings"] == removed["findings"] == []
    assert {gpu["startable_gib"] for gpu in found["gpus"]} == {94.616}
    assert {process["own"] for process in found["processes"]} == {True}
    assert (found["unit"]["load_state"], found["unit"]["main_pid"]) == ("loaded", pids[0])
    assert [finding["check"] for finding in other["findings"]] == ["port", "gpu_processes"]
    assert off["findings"] == []
    allowed = [f"Allowed: {finding['text']}" for finding in other["findings"]]
    assert [note for note in off["notes"] if note.startswith("Allowed: ")] == allowed


def test_given_figures_need_no_cards(flight: Host) -> None:
    found = ask(flight, "preflight_info", server(gpu_free_gib=[93.7], files=["/etc/hostname", "/srv/none"], user="root", group="none"))
    assert (found["findings"], found["gpus"]) == ([], [])
    assert found["files"] == {"/etc/hostname": flight.read("/etc/hostname") + "\n", "/srv/none": None}
    assert found["accounts"] == {"user": True, "group": False}
    assert (found["release"]["complete"], found["release"]["reason"]) == (False, "it is not built yet")
    assert found["checkpoints"]["model"]["present"] is True
    without = ask(flight, "preflight_info", server())
    assert [finding["text"] for finding in without["findings"]] == [
        "gpus: asked for the memory of each card, found neither nvidia-smi nor rocm-smi on this host; install the driver of the cards with "
        "its tools, set sglang_device (device) to cpu, or give sglang_gpu_free_gib (gpu_free_gib) yourself"
    ]


@pytest.mark.parametrize("tool", ["nvidia-smi", "rocm-smi"])
def test_gpu_info_reads_either_tool(flight: Host, tool: str) -> None:
    fake = FakeCards(flight).install(tool).show(eight(used_mib=1024), [Holder(4711, 6, 512, "a, b")])
    try:
        found = ask(flight, "gpu_info", {"gpus": ["7", Card(6).uuid]})
        missing = ask(flight, "gpu_info", {"gpus": ["8"]})
    finally:
        fake.remove()
    nvidia = tool == "nvidia-smi"
    assert (found["tool"], found["driver_version"], found["cuda_version"]) == (tool, "610.43.02", "13.1" if nvidia else "")
    assert [(gpu["index"], gpu["total_gib"], gpu["free_gib"], gpu["pci_bus_id"]) for gpu in found["gpus"]] == [
        (7, 95.593, 94.593, "00000000:08:00.0"), (6, 95.593, 94.593, "00000000:07:00.0"),
    ]  # fmt: skip
    assert {(gpu["compute_capability"], gpu["ecc_uncorrected"]) for gpu in found["gpus"]} == {(12.0, 0) if nvidia else (None, None)}
    assert found["processes"] == [{"pid": 4711, "name": "a, b", "gpu": 6 if nvidia else None, "used_gib": 0.5}]
    assert missing["msg"] == (
        "asked for the cards 8, found none called 8 among the 8 of this host (0, 1, 2, 3, 4, 5, 6, 7); give indexes or UUIDs as the "
        "driver's tool lists them"
    )


def test_whoever_may_not_look_is_told_so_and_no_more(flight: Host) -> None:
    assert refused(flight, kimi(ansible_become_user="nobody")) == [
        "root: asked for the right to read and write units and state, found the user of number 65534; run with become"
    ]
