# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A good log, damaged 100,000 times: none that lost a rank or a token of its target passes the gate.

Whether something was lost is told by a plain search in the damaged text, not by the parser under test.
"""

from __future__ import annotations

import random
import re
from concurrent.futures import ProcessPoolExecutor

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._text_log import GivenText
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Ask, judge
from ansible_collections.inferops.sglang.plugins.test.sglang import pool_sufficient
from ansible_collections.inferops.sglang.tests.unit.boots import READY, stamped
from hypothesis import given, settings
from hypothesis import strategies as st

REQUIRED, POOL = 200000, 200099
RANKS = range(3)
MUTATIONS, SHARES = 100_000, 8

ARGUMENTS = "server_args=ServerArgs(model_path='/srv/k26', tp_size=3, pp_size=1, dp_size=1, speculative_algorithm='DFLASH', page_size=1)"
# what each rank prints, in the order of 0.5.14 and later: the draft is loaded before the pools
OF_EACH_RANK = (
    "Load weight begin. avail mem=93.73 GB",
    "Load weight end. elapsed=412.07 s, type=KimiK25ForConditionalGeneration, avail mem=21.33 GB, mem usage=72.40 GB.",
    "Load weight begin. avail mem=21.33 GB",
    "Load weight end. elapsed=3.10 s, type=DFlashDraftModel, avail mem=20.02 GB, mem usage=1.31 GB.",
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: 13.10 GB",
    "Memory pool end. avail mem=6.90 GB",
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 200099, K size: 0.29 GB, V size: 0.29 GB",
    "Memory pool end. avail mem=6.33 GB",
    "Capture target verify CUDA graph begin. backend=full, bs=[1, 2], avail mem=6.33 GB",
    "Capture target verify CUDA graph end. bs=[1, 2], elapsed=1.61 s, mem usage=0.11 GB, avail mem=6.22 GB.",
)
FINAL = f"max_total_num_tokens={POOL}, chunked_prefill_size=8192, max_running_requests=8, context_len=200000, available_gpu_mem=6.22 GB"
BAR = "  0%|          | 0/13 [00:00<?, ?it/s]"

# the target's pool line of a rank, by the size that the draft's has not; cut within its number it shows a smaller one
TARGET_LINE = re.compile(r"TP(\d+)\] KV Cache is allocated[^\n]{0,40}?#tokens: ?(\d+)(?!\d|, K size)")


def good(tokens: dict[int, int]) -> list[str]:
    """A start on three ranks that write in turns; ``tokens``: the pools that are not as large as the others'."""
    lines = [stamped("", ARGUMENTS)]
    lines += [stamped(f"TP{rank}", text.format(tokens=tokens.get(rank, POOL))) for text in OF_EACH_RANK for rank in RANKS]
    return [*lines, stamped("TP0", FINAL), stamped("", READY)]


def passes(lines: list[str]) -> bool:
    folder = BootFolder()
    folder.feed_all(map(Entry, lines))
    allocation = folder.result(Parallelism(), ended=True, saved=True).as_dict()
    return pool_sufficient(allocation, REQUIRED) or judge(allocation, Ask(REQUIRED)).accepted


# --- ways to damage a log


def drop(lines: list[str], pick: random.Random) -> None:
    del lines[pick.randrange(len(lines))]


def duplicate(lines: list[str], pick: random.Random) -> None:
    lines.insert(pick.randrange(len(lines)), pick.choice(lines))


def swap(lines: list[str], pick: random.Random) -> None:
    one, other = pick.randrange(len(lines)), pick.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def cut(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    end = pick.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:end] if pick.random() < 0.5 else lines[at][end:]


def glue(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(max(len(lines) - 1, 1))
    lines[at : at + 2] = [pick.choice(("", BAR, " ", "\r")).join(lines[at : at + 2])]


def relabel(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    lines[at] = re.sub(r"TP\d+", f"TP{pick.choice((0, 1, 2, 3, 10, 12))}", lines[at], count=1)


def blot(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    start = pick.randrange(len(lines[at]) + 1)
    ink = "".join(pick.choices("\0[]{}'\"=0 \u00e9", k=pick.randint(1, 4)))
    lines[at] = lines[at][:start] + ink + lines[at][start + pick.randint(0, 3) :]


DAMAGES = (drop, duplicate, swap, cut, glue, relabel, blot)
# a pool that is too small, one by a single token, or none
OTHER_POOLS = (REQUIRED - 1, 192406, 20009, 1, 0)


def loss(lines: list[str], short: dict[int, int]) -> str | None:
    """What the damaged text does not prove any more; None if it still proves all."""
    text = "\n".join(lines)
    pools: dict[int, list[int]] = {rank: [] for rank in RANKS}
    for rank, tokens in TARGET_LINE.findall(text):
        pools.setdefault(int(rank), []).append(int(tokens))
    for rank in RANKS:
        if not pools[rank]:
            return f"TP{rank} shows no pool"
        if max(pools[rank]) < REQUIRED:
            return f"TP{rank} shows {pools[rank]}"
    if short:
        return f"a rank has {short}"
    if READY.rstrip("!") not in text:
        return "the ready line is gone"
    if "tp_size=3" not in text:
        return "the number of ranks is gone"
    return None


def damaged(pick: random.Random) -> tuple[list[str], dict[int, int]]:
    short = {pick.choice(RANKS): pick.choice(OTHER_POOLS)} if pick.random() < 0.3 else {}
    lines = good(short)
    for _edit in range(pick.randint(0 if short else 1, 3)):
        if lines:
            pick.choice(DAMAGES)(lines, pick)
    return lines, short


def test_the_good_log_passes_and_each_short_pool_is_refused():
    assert passes(good({}))
    assert [passes(good({rank: tokens})) for rank in RANKS for tokens in OTHER_POOLS] == [False] * 15


def damage_many(seed: int) -> tuple[int, int, str]:
    """How many of these damaged logs lost something, how many passed, and one that did both."""
    pick = random.Random(seed)
    lost = passed = 0
    for _number in range(MUTATIONS // SHARES):
        lines, short = damaged(pick)
        missing = loss(lines, short)
        accepted = passes(lines)
        lost, passed = lost + (missing is not None), passed + accepted
        if accepted and missing is not None:
            return lost, passed, "\n".join([missing, *lines])
    return lost, passed, ""


def test_no_damage_that_loses_a_rank_or_a_token_passes_the_gate():
    with ProcessPoolExecutor() as workers:
        shares = list(workers.map(damage_many, range(SHARES)))
    assert [fooled for _lost, _passed, fooled in shares if fooled] == []
    # both happen often, or the test shows nothing
    assert sum(lost for lost, _passed, _fooled in shares) > MUTATIONS / 4
    assert sum(passed for _lost, passed, _fooled in shares) > MUTATIONS / 10


# each line that proves something, and what is left of it after a cut
@pytest.mark.parametrize("number", range(len(good({}))))
def test_a_line_cut_anywhere_is_refused_or_still_proves_all(number):
    whole = good({})
    for end in range(len(whole[number])):
        lines = [*whole[:number], whole[number][:end], *whole[number + 1 :]]
        assert not (passes(lines) and loss(lines, {})), lines[number]


BYTES = st.one_of(st.binary(max_size=200), st.sampled_from([line.encode() for line in good({})]))


@settings(max_examples=300, deadline=None)
@given(st.lists(BYTES, max_size=40))
def test_no_bytes_break_the_reader_and_none_pass_without_every_rank(lines):
    folder = BootFolder()
    folder.feed_all(GivenText(b"\n".join(lines)).read(lambda: folder.in_traceback, final=True))
    allocation = folder.result(Parallelism(), ended=True).as_dict()
    if pool_sufficient(allocation, 1):
        shown = TARGET_LINE.findall(b"\n".join(lines).decode("utf-8", "replace"))
        assert {rank for rank, _tokens in shown} >= {"0", "1", "2"}
