# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reader of an allocation should know besides its figures. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._failures import unbalanced_words
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import MAX_RANKS, size_of
from ansible_collections.inferops.sglang.plugins.module_utils._rank_pools import RankReport, RankState
from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, names_of


@dataclass(frozen=True)
class BootFacts:
    """What a boot showed, as far as notes are made of it.

    ``final``: its final line was printed, with ``total_tokens`` and ``context_len``. ``drafts``: the speculative algorithm.
    ``suppressed``: messages that the log daemon dropped. ``doubled``: who else writes to the log. ``overflow``: it shows too many ranks.
    ``seen``: any line of SGLang's is in the log.
    """

    boots: int
    args: Mapping[str, Any]
    ranks: Sequence[RankState]
    final: bool
    total_tokens: Optional[int]
    context_len: Optional[int]
    drafts: str
    suppressed: int
    doubled: Optional[str]
    overflow: bool
    unbalanced: Optional[str]
    seen: bool


def log_notes(boot: BootFacts, wanted: Sequence[RankId]) -> list[str]:
    """What the log lacks, or holds too much of."""
    unlabelled = len(wanted) > 1 and boot.ranks and not any(state.rank.labelled for state in boot.ranks)
    spans = size_of(boot.args.get("nnodes")) or 1
    notes = (
        (boot.boots > 1, f"the log holds {boot.boots} boots; this is the newest"),
        (not boot.seen, "no line of an SGLang start is in this log: is it the right log, unit or start, and not packed?"),
        (boot.seen and not boot.args, "the server_args line of this boot is not in the log: its settings are unknown"),
        (boot.seen and not wanted, "the number of ranks is unknown (no usable tp_size in the log or given): the boot cannot be complete"),
        (
            boot.suppressed > 0,
            f"the log daemon dropped {boot.suppressed} messages of this unit: what is missing here is unknown, not absent",
        ),
        (
            unlabelled,
            f"{len(wanted)} ranks are expected, but no record carries a rank label (a logging configuration replaced SGLang's "
            "prefix?), so the ranks cannot be told apart",
        ),
        (
            boot.doubled is not None,
            f"{boot.doubled}: more than one server writes to this log, or the line that opens a later start was lost, and whose pools "
            "these are is not proved",
        ),
        (boot.overflow, f"the log shows more than {MAX_RANKS} ranks: it is not believed"),
        (
            boot.unbalanced is not None,
            "SGLang warned that the memory of the cards is unbalanced, so another process may hold memory on one: "
            + (unbalanced_words(boot.unbalanced or "") or "its figures are not in the log"),
        ),
        (spans > 1, f"the server spans {spans} nodes, and the log of one node shows only its own ranks"),
    )
    return [note for holds, note in notes if holds]


def pool_notes(boot: BootFacts, reports: Sequence[RankReport]) -> list[str]:
    """What the pools are short of, or do not prove."""
    tokens = [report.tokens for report in reports if report.tokens is not None]
    smallest, largest = min(tokens, default=0), max(tokens, default=0)
    context, total = boot.context_len or 0, boot.total_tokens
    printed = {state.id for state in boot.ranks if state.printed}
    doubtful = names_of(report.id for report in reports if report.target is None and report.id in printed)
    one_pool = boot.final and any(state.has_pool_lines for state in boot.ranks)
    bound = any(report.target and report.target.upper_bound_tokens is not None for report in reports)
    notes = (
        (
            bool(tokens) and smallest < context,
            f"the pool holds {smallest} tokens, {context - smallest} fewer than context_len={context}: longer requests are refused",
        ),
        (smallest != largest, f"the ranks report different pools ({smallest} to {largest} tokens); they should be equal"),
        (
            bool(tokens) and total not in (None, smallest),
            f"the final line says max_total_num_tokens={total}, the smallest pool line {smallest} tokens",
        ),
        (
            boot.final and bool(doubtful),
            f"{doubtful}: pool lines that other ranks, or another model of the rank, should have printed as well are not there, so a "
            "line was lost or came in another order, and whose pool the others show is not proved",
        ),
        (bound, "a pool is known by its upper bound only: its real size is printed after graph capture"),
        (
            boot.drafts not in ("NGRAM", "NONE") and one_pool and not any(report.draft for report in reports),
            "a draft model is configured, but each rank shows one pool: either a line was lost, and nothing tells whose pool the other "
            "one shows (the tokens are the same for both), or this draft has no pool of its own",
        ),
    )
    return [note for holds, note in notes if holds]
