# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that strangers' servers printed, from 2024 to 2026, on CUDA, ROCm, NPU and others: the tokens and the deaths as their owners said.

The figures beside the lines were read by people, not by the code under test. Of most boots only some lines are public.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation, BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism

BOOTS = json.loads((Path(__file__).parent / "fixtures/boots/public_logs.json").read_text(encoding="utf-8"))


def name(boot: dict[str, Any]) -> str:
    return f"{boot['id']} ({boot['version'] or 'release unknown'}, {boot['hardware'] or 'hardware unknown'})"


def fold(boot: dict[str, Any]) -> Allocation:
    sizes = boot["sizes"]
    folder = BootFolder()
    folder.feed_all(map(Entry, boot["lines"]))
    return folder.result(Parallelism(sizes.get("tp"), sizes.get("pp"), sizes.get("dp")), ended=True)


SIZED = [boot for boot in BOOTS if boot["tokens"] is not None]
DEAD = [boot for boot in BOOTS if boot["failure"]]


@pytest.mark.parametrize("boot", SIZED, ids=name)
def test_the_tokens_are_those_that_its_owner_read(boot):
    allocation = fold(boot)
    found = allocation.max_total_num_tokens if boot["from"] == "final_line" else allocation.min_tokens
    assert found == boot["tokens"]


@pytest.mark.parametrize("boot", DEAD, ids=name)
def test_what_it_died_of(boot):
    failure = fold(boot).failure
    assert [failure.kind, failure.advice] == boot["failure"]


@pytest.mark.parametrize("boot", [boot for boot in BOOTS if not boot["failure"]], ids=name)
def test_what_did_not_die_has_no_failure(boot):
    assert fold(boot).failure is None
