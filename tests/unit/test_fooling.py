# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A malicious and an unlucky world: what must not pass the gate, and what must not be refused by it."""

from __future__ import annotations

import dataclasses
import random

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation, BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalReader, Source
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import MAX_RANKS, Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Ask, judge
from ansible_collections.inferops.sglang.plugins.test.sglang import pool_sufficient
from ansible_collections.inferops.sglang.tests.unit.boots import READY, Journal, Line, stamped

ENOUGH, SHORT = 200_099, 192_406
MAIN, RANKS = 100, 201


def server(tokens: int, main: int = MAIN, ranks: int = RANKS, tp: int = 2) -> list[Line]:
    """A whole start of a server: its main process prints the arguments and the ready line, each rank is a process of its own."""
    label = (lambda rank: f"TP{rank}") if tp > 1 else (lambda _rank: "")
    lines = [Line(stamped("", f"server_args=ServerArgs(model_path='/srv/m', tp_size={tp}, pp_size=1, dp_size=1)"), main)]
    for text in (
        "Init torch distributed begin.",
        "Load weight begin. avail mem=93.73 GB",
        "Load weight end. elapsed=9.07 s, type=LlamaForCausalLM, avail mem=31.33 GB, mem usage=62.40 GB.",
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: 6.55 GB, V size: 6.55 GB",
        "Memory pool end. avail mem=18.23 GB",
        "Capture cuda graph begin. This can take up to several minutes. avail mem=18.20 GB",
        "Capture cuda graph end. Time elapsed: 4.20 s. mem usage=0.64 GB. avail mem=17.56 GB.",
    ):
        lines += [Line(stamped(label(rank), text), ranks + rank) for rank in range(tp)]
    final = f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_running_requests=8, context_len=190000"
    return [*lines, Line(stamped(label(0), final), ranks), Line(stamped("", READY), main)]


def folded(lines: list[Line], main_pid: int = 0) -> Allocation:
    folder = BootFolder()
    folder.main_pid = main_pid
    folder.feed_all(Entry(line.text, pid=line.pid) for line in lines)
    return folder.result(Parallelism(tp_size=None))


def passes(lines: list[Line], main_pid: int = 0) -> bool:
    return pool_sufficient(folded(lines, main_pid).as_dict(), 200_000)


def quoted(lines: list[Line], pid: int) -> list[Line]:
    """The same words out of another mouth."""
    return [dataclasses.replace(line, pid=pid) for line in lines]


def test_the_server_itself():
    assert passes(server(ENOUGH))
    assert not passes(server(SHORT))
    assert passes(server(ENOUGH, tp=1))
    assert not passes(server(SHORT, tp=1))


# --- whose words they are


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("who", [MAIN, RANKS], ids=("the front", "a rank"))
def test_a_log_inside_of_what_is_served_is_no_start(tp, who):
    fake = quoted(server(ENOUGH, tp=tp), who)
    short = server(SHORT, tp=tp)
    assert not passes([*short, *fake])
    assert not passes([*short, *fake[1:]])  # without its arguments
    # nor does it take a good server down
    assert passes([*server(ENOUGH, tp=tp), *quoted(server(SHORT, tp=tp), who)])
    assert folded([*short, *fake]).min_tokens == SHORT


def test_a_log_that_a_helper_of_the_unit_prints_is_no_start_while_the_main_process_runs():
    """As a tokenizer in a process of its own, or a command of the unit that shows an old log."""
    for at in range(1, len(server(SHORT)) + 1):
        lines = server(SHORT)
        lines[at:at] = quoted(server(ENOUGH), 999)
        assert not passes(lines, main_pid=MAIN), at
    assert passes([*server(ENOUGH), *quoted(server(SHORT), 999)], main_pid=MAIN)


def spoken(pick: random.Random, lines: list[Line], fake: list[Line], begin: int) -> list[Line]:
    """The server's lines with the others in between, from this one on; these may be incomplete, and glued to one record."""
    fake = [line for line in fake if pick.random() < 0.95]
    if pick.random() < 0.3:
        glue = pick.choice((" ", "\r", "\n", "\x1b[0m"))
        fake = [Line(glue.join(line.text for line in fake), fake[0].pid)] if fake else []
    mixed, at = list(lines), pick.randrange(begin, len(lines) + 1)
    for line in fake:
        mixed.insert(at, line)
        at += 1 if pick.random() < 0.5 else pick.randint(1, len(mixed) - at)
    return mixed


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize(
    ("who", "main_pid", "begin"),
    [(MAIN, MAIN, -1), (MAIN, 0, -1), (RANKS, MAIN, -2), (RANKS, 0, -2), (999, MAIN, 3)],
    ids=["the front", "the front of a saved journal", "a rank", "a rank of a saved journal", "a helper"],
)
def test_no_words_of_others_make_up_for_a_short_pool(who, main_pid, begin, tp):
    """The front and the ranks may quote from when they take requests on, a helper of the unit from when a rank loads."""
    for seed in range(250):
        pick = random.Random(seed)
        lines, fake = server(SHORT, tp=tp), quoted(server(ENOUGH, tp=pick.choice((1, 2, 4))), who)
        assert not passes(spoken(pick, lines, fake, begin % len(lines)), main_pid), seed


def test_a_wrapper_that_starts_its_server_again_in_the_same_unit_shows_the_newest_start():
    again = server(SHORT, main=500, ranks=601)
    assert not passes([*server(ENOUGH), *again], main_pid=1)
    assert folded([*server(ENOUGH), *again]).min_tokens == SHORT
    assert passes([*server(SHORT), *server(ENOUGH, main=500, ranks=601)], main_pid=1)


def test_the_first_servers_late_words_are_not_the_second_ones():
    first, second = server(ENOUGH), server(SHORT, main=500, ranks=601)
    ready = second.pop()
    waiting = [*first[:-1], *second, first[-1]]
    assert not folded(waiting).ready
    assert folded([*waiting, ready]).ready


@pytest.mark.parametrize("seed", range(300))
def test_two_servers_of_one_unit_never_pass_for_each_other(seed):
    """Their lines mixed at random: the pool of the one that began later is short."""
    pick = random.Random(seed)
    tp = pick.choice((1, 2))
    later, first = server(SHORT, main=500, ranks=601, tp=tp), server(ENOUGH, tp=tp)
    opening, mixed = first.pop(0), []
    rest = later[1:]
    while first or rest:
        mixed.append((first if first and (not rest or pick.random() < 0.5) else rest).pop(0))
    at = pick.randrange(len(mixed) + 1)
    head = [line for line in mixed[:at] if line.pid < 500]  # the later one says nothing before its arguments
    tail = [line for line in mixed if line.pid >= 500 or line not in head]
    assert not passes([opening, *head, later[0], *tail])


@pytest.mark.parametrize("lost", range(1, 4))
def test_a_start_whose_first_lines_were_lost_is_not_proved_by_the_pools_of_the_one_before(lost):
    died = server(ENOUGH)[:-2]
    again = server(SHORT, main=500, ranks=601)[lost:]
    assert not passes([*died, *again])
    # without the word of a log daemon, at least from the final line on
    nameless = [Entry(line.text) for line in [*server(ENOUGH)[:-1], *server(SHORT)[1:]]]
    folder = BootFolder()
    folder.feed_all(nameless)
    assert not pool_sufficient(folder.result(Parallelism(tp_size=2)).as_dict(), 200_000)


def test_what_ansible_was_given_as_an_argument_is_no_start(tmp_path):
    """Ansible writes the arguments of its modules to the journal, a whole log with all its lines."""
    text = "\n".join(line.text for line in server(ENOUGH))
    invoked = f"Invoked with unit=None log_text={text} wait_for=none"
    assert folded([Line(invoked)]).phase == "starting"
    journal = Journal()
    journal.server(server(SHORT), "a" * 32)
    journal.server([Line(f"ansible-inferops.sglang.allocation_info {invoked}"), Line(invoked)], "e" * 32, unit="session-3.scope")
    journal.write(tmp_path)
    assert JournalReader(Source(str(tmp_path))).newest_boot() == "a" * 32


def test_another_process_that_speaks_of_the_unit_is_none_of_its_starts(tmp_path):
    journal = Journal()
    journal.server(server(SHORT), "a" * 32)
    for line in server(ENOUGH):
        journal.add(
            [
                ("_SYSTEMD_UNIT", "session-3.scope"),
                ("_SYSTEMD_INVOCATION_ID", "e" * 32),
                ("_PID", str(line.pid)),
                ("_UID", "1000"),
                ("UNIT", "sglang-k26.service"),
                ("INVOCATION_ID", "e" * 32),
                ("MESSAGE", line.text),
            ]
        )
    journal.write(tmp_path)
    reader = JournalReader(Source(str(tmp_path)))
    assert reader.newest_invocation("sglang-k26.service") == "a" * 32
    folder = BootFolder()
    folder.feed_all(reader.read("a" * 32, "sglang-k26.service", lambda: False))
    assert folder.result(Parallelism()).min_tokens == SHORT


def test_more_processes_than_any_deployment_has_are_not_believed():
    folder = BootFolder()
    folder.feed_all(Entry(stamped("TP0", "Memory pool end. avail mem=1.00 GB"), pid=pid) for pid in range(1000, 1000 + 2 * MAX_RANKS))
    assert len(folder._members) <= MAX_RANKS + 1
    assert not folder.result(Parallelism(tp_size=1)).complete


# --- what must not be refused


def pipeline(draft: bool) -> list[Line]:
    """Two stages of two ranks, with other layers on each; from 0.5.19 on the last one alone holds an EAGLE draft."""
    args = f"server_args={{'tp_size': 2, 'pp_size': 2, 'dp_size': 1, 'speculative_algorithm': {'EAGLE' if draft else None!r}}}"
    lines = [Line(stamped("", args))]
    for stage, gib in ((0, 6.55), (1, 4.80)):
        texts = [
            "Load weight begin. avail mem=93.73 GB",
            "Load weight end. elapsed=9.07 s, type=LlamaForCausalLM, avail mem=31.33 GB, mem usage=62.40 GB.",
            f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {ENOUGH}, K size: {gib} GB, V size: {gib} GB",
            "Memory pool end. avail mem=18.23 GB",
        ]
        if draft and stage:
            texts[2:2] = [
                "Load weight begin. avail mem=31.33 GB",
                "Load weight end. elapsed=1.07 s, type=LlamaForCausalLMEagle, avail mem=30.33 GB, mem usage=1.00 GB.",
            ]
            texts += [
                f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {ENOUGH}, K size: 0.21 GB, V size: 0.21 GB",
                "Memory pool end. avail mem=17.81 GB",
            ]
        lines += [Line(stamped(f"PP{stage} TP{tp}", text), 200 + 10 * stage + tp) for text in texts for tp in (0, 1)]
    final = f"max_total_num_tokens={ENOUGH}, chunked_prefill_size=8192, max_running_requests=8, context_len=190000"
    return [*lines, Line(stamped("PP0 TP0", final), 200), Line(stamped("", READY))]


@pytest.mark.parametrize("draft", [True, False])
def test_a_pipeline_whose_stages_differ_and_whose_last_one_holds_the_draft_is_complete(draft):
    assert passes(pipeline(draft))
    assert folded(pipeline(draft)).complete


def test_a_pipeline_whose_last_stage_lost_its_targets_lines_is_not():
    lines = [line for line in pipeline(True) if not ("PP1" in line.text and "4.8 GB" in line.text)]
    assert not passes(lines)


@pytest.mark.parametrize(
    "args",
    [
        {"tp_size": 4, "dp_size": 2, "enable_dp_attention": True},
        {"tp_size": 4, "dp_size": 1, "attn_dp_size": 2, "enable_dp_attention": True},  # from 0.5.22 on
        {"tp_size": 4, "dp_size": 1, "attn_dp_size": 2, "enable_dp_attention": False},
    ],
)
def test_groups_of_attention_data_parallelism_are_expected_under_either_name(args):
    lines = [Line(stamped("", f"server_args={args}"))]
    for text in (
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {ENOUGH}, K size: 6.55 GB, V size: 6.55 GB",
        "Memory pool end. avail mem=18.23 GB",
    ):
        lines += [Line(stamped(f"DP{tp // 2} TP{tp}", text), 200 + tp) for tp in range(4)]
    final = f"max_total_num_tokens={ENOUGH}, chunked_prefill_size=8192, max_running_requests=16, context_len=190000"
    lines += [Line(stamped(f"DP{tp // 2} TP{tp}", final), 200 + tp) for tp in (0, 2)]
    whole = [*lines, Line(stamped("", READY))]
    assert passes(whole)
    assert [rank.as_dict() for rank in folded([line for line in whole if "TP3" not in line.text]).missing_ranks] == [
        {"tp": 3, "pp": 0, "dp": 1}
    ]
    # each group takes its share of the requests
    asked = Ask(200_000, flags={"max_running_requests": 32}, min_avail_gib=0)
    assert [finding.found for finding in judge(folded(whole).as_dict(), asked).findings] == []


@pytest.mark.parametrize(("gib", "other"), [("0.01", "0.01"), ("0.00", "0.01"), ("0.02", "0.03")])
def test_replicas_of_a_tiny_model_with_unequal_pools_are_alike_but_for_rounding(gib, other):
    lines = [Line(stamped("", "server_args={'tp_size': 1, 'dp_size': 2}"))]
    for dp, (tokens, size) in enumerate(((200_099, gib), (380_000, other))):
        final = f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_running_requests=16, context_len=190000"
        pool = f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: {size} GB, V size: {size} GB"
        lines += [Line(stamped(f"DP{dp}", text), 200 + dp) for text in (pool, "Memory pool end. avail mem=18.23 GB", final)]
    assert passes([*lines, Line(stamped("", READY))])
