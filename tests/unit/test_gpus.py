# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import NVIDIA_SMI, Gpu, GpuError, read_gpus

TWO_CARDS = "0, GPU-aa, NVIDIA RTX PRO 6000, 97887, 639, 97248\n1, GPU-bb, NVIDIA RTX PRO 6000, 97887, 0, 97887\n"
MEMINFO = "MemTotal:       25165824 kB\nMemFree:         1048576 kB\nMemAvailable:   22020096 kB\nHugePages_Total:       0\n"


def never(_argument: object) -> str:
    raise AssertionError("not to be called")


def test_cards_are_read_in_gib() -> None:
    seen = []

    def run(argv):
        seen.append(tuple(argv))
        return 0, TWO_CARDS, ""

    assert read_gpus("cuda", run, never) == [
        Gpu(0, "GPU-aa", "NVIDIA RTX PRO 6000", 95.593, 0.624, 94.969),
        Gpu(1, "GPU-bb", "NVIDIA RTX PRO 6000", 95.593, 0.0, 95.593),
    ]
    assert seen == [NVIDIA_SMI]


def test_the_cpu_counts_available_memory() -> None:
    assert read_gpus("cpu", never, lambda path: {"/proc/meminfo": MEMINFO}[path]) == [Gpu(0, "cpu", "cpu", 24.0, 3.0, 21.0)]


def absent(_argv):
    raise FileNotFoundError(2, "No such file or directory", "nvidia-smi")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        pytest.param(absent, ["cannot be started", "gpu_free_gib"], id="no nvidia-smi"),
        pytest.param(lambda _argv: (9, "", "couldn't communicate with the NVIDIA driver"), ["exit code 9", "driver"], id="driver down"),
        pytest.param(lambda _argv: (0, "", ""), ["found none"], id="no card"),
        pytest.param(lambda _argv: (0, "0, GPU-aa, X, [N/A], [N/A], [N/A]\n", ""), ["[N/A]", "gpu_free_gib"], id="no memory figure"),
    ],
)
def test_what_cannot_be_read_is_said(run, words: list[str]) -> None:
    with pytest.raises(GpuError) as error:
        read_gpus("cuda", run, never)
    assert [word for word in words if word not in str(error.value)] == []


def test_meminfo_without_figures_is_said() -> None:
    with pytest.raises(GpuError, match="MemTotal"):
        read_gpus("cpu", never, lambda _path: "nothing\n")
