# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the weights lies on the cards, by what the driver says that the ranks' processes hold."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._gauge import PROCESSES, WeightsGauge, parse_processes

TABLES = [
    ("two ranks", "201, 36864\n202, 18432\n", {201: 36.0, 202: 18.0}),
    ("one process on two cards", "201, 1024\n201, 2048\n", {201: 3.0}),
    ("figures that the driver does not tell", "201, [N/A]\n[Not Found], 5\n202, 1024\n", {202: 1.0}),
    ("nothing runs", "", {}),
    ("no table", "No devices were found", {}),
]


@pytest.mark.parametrize(("text", "held"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES])
def test_the_drivers_table_of_processes(text, held):
    assert parse_processes(text) == held


# name, exit code, table, processes of the ranks, percent of 72 GiB
GAUGES = [
    ("the slowest rank decides", 0, "201, 36864\n202, 18432\n", [201, 202], 25),
    ("other processes do not count", 0, "201, 36864\n7, 90000\n", [201], 50),
    ("never all of it", 0, "201, 80000\n", [201], 99),
    ("a rank that holds nothing yet", 0, "201, 36864\n", [201, 202], None),
    ("a rank without a known process", 0, "201, 36864\n", [201, None], None),
    ("no rank yet", 0, "201, 36864\n", [], None),
    ("the driver fails", 9, "NVIDIA-SMI has failed", [201], None),
]


@pytest.mark.parametrize(("code", "table", "ranks", "percent"), [case[1:] for case in GAUGES], ids=[case[0] for case in GAUGES])
def test_the_percentage_of_the_weights(code, table, ranks, percent):
    assert WeightsGauge(72.0, lambda _argv: (code, table, ""), lambda: 0.0).percent(ranks) == percent


def test_the_driver_is_asked_every_ten_seconds_and_never_again_once_it_fails():
    asked, times = [], iter([0.0, 5.0, 10.0, 20.0, 30.0])
    answers = iter([(0, "201, 7373", ""), (0, "201, 14746", ""), (9, "", "")])

    def run(argv):
        asked.append(tuple(argv))
        return next(answers)

    gauge = WeightsGauge(72.0, run, lambda: next(times))
    assert [gauge.percent([201]) for _time in range(5)] == [10, 10, 20, None, None]
    assert asked == [PROCESSES] * 3


def test_a_host_without_the_drivers_tool_has_no_percentage():
    def run(_argv):
        raise FileNotFoundError("nvidia-smi")

    assert WeightsGauge(72.0, run, lambda: 0.0).percent([201]) is None
