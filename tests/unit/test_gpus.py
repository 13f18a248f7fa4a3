# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import (
    NVIDIA_HEADER,
    NVIDIA_PROCESSES,
    NVIDIA_SMI,
    ROCM_SMI,
    Gpu,
    GpuError,
    GpuProcess,
    read_accelerators,
)

A = "0, GPU-aa, 00000000:01:00.0, 97887, 639, 97248, 580.95.05, 12.0, 0, Disabled, NVIDIA RTX PRO 6000, Server Edition\n"
B = "1, GPU-bb, 00000000:41:00.0, 97887, 0, 97887, 580.95.05, 12.0, [N/A], [N/A], NVIDIA RTX PRO 6000, Server Edition\n"
CARD_A = Gpu(0, "GPU-aa", "NVIDIA RTX PRO 6000, Server Edition", 95.593, 0.624, 94.969, "00000000:01:00.0", 12.0, 0, False)
CARD_B = Gpu(1, "GPU-bb", "NVIDIA RTX PRO 6000, Server Edition", 95.593, 0.0, 95.593, "00000000:41:00.0", 12.0, None, False)
PROCESSES = "4711, GPU-bb, 34816, /opt/venv/python, of mine\n12, GPU-aa, [N/A], [Not Found]\n13, GPU-zz, 1, other\n[N/A], GPU-aa, 1, x\n"
HEADER = "\n====NVSMI LOG====\n\nDriver Version                            : 580.95.05\nCUDA Version                              : 13.0\n"
MEMINFO = "MemTotal:       25165824 kB\nMemFree:         1048576 kB\nMemAvailable:   22020096 kB\nHugePages_Total:       0\n"
ROCM = {
    "card1": {
        "Unique ID": "0xbb", "PCI Bus": "0000:05:00.0", "VRAM Total Memory (B)": "206141652992",
        "VRAM Total Used Memory (B)": "1073741824", "Card Series": "AMD Instinct MI300X",
    },
    "card0": {
        "Unique ID": "N/A", "PCI Bus": "0000:04:00.0", "VRAM Total Memory (B)": "206141652992",
        "VRAM Total Used Memory (B)": "0", "Card series": "N/A", "Card model": "0x74a1",
    },
    "system": {"Driver version": "6.10.5", "PID77": "python3, 1, 1073741824, 0, 12", "PID78": "a, b, 2, UNKNOWN, 0, UNKNOWN"},
}  # fmt: skip


def never(_argument: object) -> str:
    raise AssertionError("not to be called")


def answers(*pairs: tuple[Sequence[str], object]):
    """A runner that knows these commands; an exception is raised, a text is what a success prints, and others are not there."""
    known = {tuple(argv): answer for argv, answer in pairs}

    def run(argv):
        answer = known.get(tuple(argv), FileNotFoundError(2, "No such file or directory", argv[0]))
        if isinstance(answer, Exception):
            raise answer
        return (0, answer, "") if isinstance(answer, str) else answer

    return run


def test_cards_and_their_processes_are_read_in_gib() -> None:
    run = answers((NVIDIA_SMI, A + B), (NVIDIA_PROCESSES, PROCESSES), (NVIDIA_HEADER, HEADER))
    found = read_accelerators("cuda", run, never, cuda=True)
    assert found.cards == (CARD_A, CARD_B)
    assert found.processes == (GpuProcess(4711, "/opt/venv/python, of mine", 1, 34.0), GpuProcess(12, "", 0, None))
    assert (found.tool, found.driver_version, found.cuda_version, found.notes) == ("nvidia-smi", "580.95.05", "13.0", ())


@pytest.mark.parametrize(
    ("header", "version"),
    [
        pytest.param("CUDA UMD Version : 13.1\n", "13.1", id="newer name"),
        pytest.param("CUDA Version     : N/A\n", "", id="not told"),
    ],
)
def test_the_cuda_of_the_driver(header: str, version: str) -> None:
    run = answers((NVIDIA_SMI, A), (NVIDIA_PROCESSES, ""), (NVIDIA_HEADER, header))
    assert read_accelerators("cuda", run, never, cuda=True).cuda_version == version


@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [(["1"], [1]), (["GPU-bb", "0"], [1, 0]), ([], [0, 1])],
)
def test_a_subset_comes_in_the_order_it_is_asked_for(wanted: list[str], indexes: list[int]) -> None:
    found = read_accelerators("cuda", answers((NVIDIA_SMI, A + B), (NVIDIA_PROCESSES, PROCESSES)), never, wanted)
    assert [card.index for card in found.cards] == indexes
    assert {process.gpu for process in found.processes} == set(indexes)


def test_a_broken_card_beside_the_wanted_one_does_not_matter() -> None:
    broken = "1, GPU-bb, 00000000:41:00.0, [GPU is lost], [GPU is lost], [GPU is lost], 580.95.05, 12.0, [N/A], [N/A], X\n"
    found = read_accelerators("cuda", answers((NVIDIA_SMI, A + broken), (NVIDIA_PROCESSES, "")), never, ["0"])
    assert found.cards == (CARD_A,)


def test_fields_that_an_older_driver_does_not_know_are_left_out() -> None:
    unknown = 'Field "%s" is not a valid field to query.\n\n'
    fewer = ("nvidia-smi", NVIDIA_SMI[1].replace("compute_cap,", ""), NVIDIA_SMI[2])
    fewest = ("nvidia-smi", fewer[1].replace("mig.mode.current,", ""), NVIDIA_SMI[2])
    run = answers(
        (NVIDIA_SMI, (2, unknown % "compute_cap", "")),
        (fewer, (2, unknown % "mig.mode.current", "")),
        (fewest, "0, GPU-aa, 00000000:01:00.0, 97887, 0, 97887, 440.33.01, 2, Tesla\n"),
        (NVIDIA_PROCESSES, ""),
    )
    assert read_accelerators("cuda", run, never).cards == (
        Gpu(0, "GPU-aa", "Tesla", 95.593, 0.0, 95.593, "00000000:01:00.0", None, 2, False),
    )


def test_mig_and_a_corrupted_inforom_are_told() -> None:
    out = "WARNING: infoROM is corrupted at gpu 0000:01:00.0\n" + A.replace("Disabled", "Enabled")
    found = read_accelerators("cuda", answers((NVIDIA_SMI, (14, out, "")), (NVIDIA_PROCESSES, (14, "", ""))), never)
    assert found.cards[0].mig is True
    assert found.notes == ("The infoROM of a card is corrupted, says nvidia-smi: its counters may be wrong.",)


def test_processes_that_are_not_told_are_none() -> None:
    run = answers((NVIDIA_SMI, A), (NVIDIA_PROCESSES, (4, "", "Insufficient Permissions")))
    assert read_accelerators("cuda", run, never).processes == ()


def test_rocm_is_read_where_nvidia_smi_is_not() -> None:
    text = "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n" + json.dumps(ROCM)
    found = read_accelerators("cuda", answers((ROCM_SMI, text)), never)
    assert found.cards == (
        Gpu(0, "", "0x74a1", 191.984, 0.0, 191.984, "0000:04:00.0"),
        Gpu(1, "0xbb", "AMD Instinct MI300X", 191.984, 1.0, 190.984, "0000:05:00.0"),
    )
    assert found.processes == (GpuProcess(77, "python3", None, 1.0), GpuProcess(78, "a, b", None, None))
    assert (found.tool, found.driver_version) == ("rocm-smi", "6.10.5")
    assert [card.index for card in read_accelerators("cuda", answers((ROCM_SMI, text)), never, ["0xbb"]).cards] == [1]


def test_the_cpu_counts_available_memory() -> None:
    found = read_accelerators("cpu", never, lambda path: {"/proc/meminfo": MEMINFO}[path])
    assert found.cards == (Gpu(0, "cpu", "cpu", 24.0, 3.0, 21.0),)


LOST = "Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
SAID = {
    "no tool": (answers(), "asked for the memory of each card, found neither nvidia-smi nor rocm-smi on this host; install"),
    "hangs": (
        answers((NVIDIA_SMI, TimeoutError("no answer within 30 s"))),
        "found no answer within 30 s; the driver hangs: look at the kernel's log for an Xid or a blocked task, and reboot the host",
    ),
    "not to be run": (answers((NVIDIA_SMI, PermissionError(13, "Permission denied"))), "cannot be started ([Errno 13] Permission denied)"),
    "driver down": (
        answers((NVIDIA_SMI, (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", ""))),
        "exit code 9 (NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.); load the driver (modprobe nvidia)",
    ),
    "mismatch": (
        answers((NVIDIA_SMI, (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n", ""))),
        "Driver/library version mismatch NVML library version: 580.95); the driver was updated while its old modules run on: reboot",
    ),
    "no devices": (answers((NVIDIA_SMI, (6, "No devices were found\n", ""))), "exit code 6 (No devices were found); no card is bound"),
    "no devices, old": (answers((NVIDIA_SMI, "No devices were found\n")), "found No devices were found; no card is bound"),
    "nothing": (answers((NVIDIA_SMI, "")), "found no card listed; no card is bound to the driver: look at the PCI bus (lspci)"),
    "lost": (answers((NVIDIA_SMI, (15, LOST, ""))), "recover this GPU); the card fell off the bus: power the host off and on"),
    "lost row": (
        answers((NVIDIA_SMI, A + "1, GPU-bb, 00000000:41:00.0, [GPU is lost], [N/A], [N/A], 580, 12.0, 0, Disabled, X\n")),
        "asked for memory.total of card 1 at 00000000:41:00.0 (nvidia-smi), found [GPU is lost]; the card fell off the bus",
    ),
    "unknown error": (
        answers((NVIDIA_SMI, "0, GPU-aa, [N/A], 97887, [Unknown Error], 97248, 580, 12.0, 0, Disabled, X\n")),
        "asked for memory.used of card 0 (nvidia-smi), found [Unknown Error]; look whether the driver is in order",
    ),
    "not supported": (
        answers((NVIDIA_SMI, "0, GPU-aa, 0000000F:01:00.0, [N/A], [N/A], [N/A], 580, 12.1, [N/A], [N/A], NVIDIA GB10\n")),
        "found [N/A]; this card does not tell its memory (unified memory, MIG): give sglang_gpu_free_gib (gpu_free_gib) yourself",
    ),
    "permissions": (
        answers((NVIDIA_SMI, (4, "", "Failed to initialize NVML: Insufficient Permissions\n"))),
        "exit code 4 (Failed to initialize NVML: Insufficient Permissions); run with become",
    ),
    "another form": (answers((NVIDIA_SMI, "a line of something\n")), "found the line 'a line of something'; look whether"),
    "rocm without json": (answers((ROCM_SMI, (0, "Driver not initialized (amdgpu not found)", ""))), "found exit code 0 (Driver not init"),
    "rocm cut": (answers((ROCM_SMI, '{"card0": {')), 'exit code 0 ({"card0": {); look whether the driver is in order'),
    "rocm without cards": (answers((ROCM_SMI, '{"system": {}}')), "(rocm-smi), found no card listed"),
    "rocm without memory": (answers((ROCM_SMI, '{"card0": {"Card Series": "X"}}')), "card 0 (rocm-smi), found a total of nothing"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_cannot_be_read_is_said(case: str) -> None:
    run, words = SAID[case]
    with pytest.raises(GpuError) as error:
        read_accelerators("cuda", run, never)
    assert words in str(error.value)
    assert str(error.value) == f"asked for {error.value.asked}, found {error.value.found}; {error.value.advice}"


def test_a_card_that_does_not_exist_is_said() -> None:
    with pytest.raises(GpuError) as error:
        read_accelerators("cuda", answers((NVIDIA_SMI, A + B)), never, ["1", "7"])
    assert "asked for the cards 1, 7, found none called 7 among the 2 of this host (0, 1)" in str(error.value)


def test_meminfo_without_figures_is_said() -> None:
    with pytest.raises(GpuError, match="MemTotal"):
        read_accelerators("cpu", never, lambda _path: "nothing\n")
