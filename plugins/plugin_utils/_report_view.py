# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a page shows of a host: its ranks, its starts, plan against start. Private to this collection: may change at any time.

Pure, over one host of a normalised report. Pools are tokens, memory is GiB, times are seconds since 1970. What is odd is not known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any
from urllib.parse import quote

from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId, spans_of
from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import place_of, pool_tokens
from ansible_collections.inferops.sglang.plugins.module_utils._timeline import PHASES
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import FINE, OPEN, against
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_reasons import Reason, rank_id
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_text import (
    epoch_of,
    first_line,
    fraction,
    number,
    shown,
    thousands,
    whole,
)

MOST_SINGLE = 16  # ranks that are shown one by one; of more, equal neighbours share a bar
MOST_RANKS = 4096
SAME_FRACTION = 0.00005  # fractions are written with four decimals
UNUSUAL = 0.005  # of a pool: what the ranks' memory differs by from start to start is less


@dataclass(frozen=True)
class Rank:
    """A rank of the judged start. ``form``: C(full), C(short), C(none) for no pool, C(odd) for anything else that is wrong with it."""

    name: str
    tokens: int | None
    spare: int | None
    draft: int | None
    left_gib: float | None
    word: str
    phase: str
    form: str


@dataclass(frozen=True)
class Phase:
    """A phase of a start: its name, when it began after the start, and how long it took."""

    name: str
    after_s: float
    took_s: float


@dataclass(frozen=True)
class Boot:
    """A start. ``end``: the phase it is in, C(ready), C(failed) or C(stopped)."""

    began: float | None
    phases: tuple[Phase, ...]
    end: str
    fraction: float | None
    tokens: int | None
    kind: str
    place: str
    message: str
    version: str

    @property
    def took_s(self) -> float:
        return sum(phase.took_s for phase in self.phases)


@dataclass(frozen=True)
class Prediction:
    """A plan against the start made by it. ``tokens``, ``left_gib``: what the start showed. ``error``: None if the plan named none."""

    predicted: int
    error: int | None
    tokens: int
    headroom_gib: float | None
    left_gib: float | None
    basis: str

    @property
    def off(self) -> int:
        """Tokens that the start has more."""
        return self.tokens - self.predicted

    @property
    def holds(self) -> bool:
        """Whether the start is within the error that the plan named."""
        return self.error is None or abs(self.off) <= self.error


@dataclass(frozen=True)
class Host:
    """A host of the report as it is shown; ``index`` names its places on the page."""

    index: int
    data: Mapping[str, Any]
    kind: str

    @property
    def name(self) -> str:
        return shown(self.data["host"], 200)

    @property
    def state(self) -> str:
        return str(self.data["state"])

    @property
    def is_fine(self) -> bool:
        return self.state in FINE

    @property
    def is_odd(self) -> bool:
        """Whether a reader should look at it: it is not as it should be, or something was found though it was accepted."""
        return self.state not in FINE | OPEN or bool(self.data["findings"])

    @property
    def is_blank(self) -> bool:
        """Whether nothing is known of it in this run."""
        return not self.data["boots"] and not self.is_odd and self.state in OPEN

    @cached_property
    def required(self) -> int:
        return self.data["required_tokens"] or whole(self.data["verdict"].get("required_tokens")) or 0

    @cached_property
    def boots(self) -> tuple[Boot, ...]:
        return tuple(_boot(entry) for entry in self.data["boots"])

    @property
    def boot(self) -> Boot | None:
        """The judged start."""
        return self.boots[-1] if self.boots else None

    @cached_property
    def ranks(self) -> tuple[Rank, ...]:
        judged = self.data["boots"][-1] if self.data["boots"] else {}
        return _ranks(self.data["verdict"], judged, self.required)

    @cached_property
    def bars(self) -> tuple[Rank, ...]:
        """The ranks, or where there are many one for those that are alike."""
        return self.ranks if len(self.ranks) <= MOST_SINGLE else _folded(self.ranks)

    @cached_property
    def smallest(self) -> int | None:
        """Tokens of the smallest pool of the judged start; None as long as a rank has none."""
        return min((rank.tokens or 0 for rank in self.ranks), default=None) if not self.poolless else None

    @cached_property
    def poolless(self) -> int:
        """How many ranks have no pool."""
        return sum(rank.tokens is None for rank in self.ranks)

    @property
    def spare(self) -> int | None:
        return self.smallest - self.required if self.smallest is not None and self.required else None

    @cached_property
    def left_gib(self) -> float | None:
        return min((rank.left_gib for rank in self.ranks if rank.left_gib is not None), default=None)

    @cached_property
    def prediction(self) -> Prediction | None:
        return _prediction(self.data["plan"], self.boot, self.smallest, self.left_gib)

    @cached_property
    def reasons(self) -> list[Reason]:
        return against(self.data) if self.is_odd else []

    @property
    def said(self) -> str:
        """All that speaks against it, in one text."""
        return "\n".join(reason.text for reason in self.reasons)

    @property
    def notes(self) -> list[str]:
        notes = self.data["verdict"].get("notes")
        return [shown(note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []

    @cached_property
    def returned(self) -> Boot | None:
        """The service that runs after the way back."""
        return _boot(self.data["returned"]) if self.data["returned"] else None

    @cached_property
    def serves(self) -> str:
        """What the host serves now, in a few words."""
        return _serves(self)

    @property
    def serves_fully(self) -> str:
        """The same, in the words of whoever put it there."""
        return shown(self.data["rolled_back"]) or self.serves

    def evidence(self, folder: str) -> tuple[str, str]:
        """Where the evidence lies: the text, and the link from a page in ``folder``, empty for what lies elsewhere."""
        return _evidence(self.data["evidence"], folder)


def hosts_of(report: Mapping[str, Any]) -> list[Host]:
    """All hosts of a normalised report, in its order."""
    return [Host(index, data, report["kind"]) for index, data in enumerate(report["hosts"], 1)]


# --- starts -----------------------------------------------------------------------------------------------------------


def _boot(entry: Mapping[str, Any]) -> Boot:
    arguments, failure = _mapping(entry.get("server_args")), _mapping(entry.get("failure"))
    struck = place_of(_mapping(failure.get("rank")))
    return Boot(
        began=epoch_of(entry.get("started_at")),
        phases=_phases(_mapping(entry.get("phases"))),
        end="stopped" if entry.get("stopped") is True else _word(entry.get("phase")) or "not known",
        fraction=number(arguments.get("mem_fraction_static")),
        tokens=whole(entry.get("min_tokens")),
        kind=_word(failure.get("kind")),
        place=struck.name if struck else "",
        message=_word(failure.get("message")),
        version=_word(entry.get("sglang_version")),
    )


def _phases(seconds: Mapping[str, Any]) -> tuple[Phase, ...]:
    found: list[Phase] = []
    for name in PHASES:
        took = number(seconds.get(name))
        if took is not None and took >= 0:
            found.append(Phase(name, found[-1].after_s + found[-1].took_s if found else 0.0, took))
    return tuple(found)


# --- ranks ------------------------------------------------------------------------------------------------------------


def _ranks(verdict: Mapping[str, Any], judged: Mapping[str, Any], required: int) -> tuple[Rank, ...]:
    """By the rows of the verdict; where there is none, by the start itself."""
    rows, reports = _mappings(verdict.get("rows")), _mappings(judged.get("ranks"))
    phases = {place: _word(entry.get("phase")) for entry in reports if (place := place_of(entry)) is not None}
    if not rows:
        rows = [_row(entry) for entry in reports] + [{**entry, "word": "missing"} for entry in _mappings(judged.get("missing_ranks"))]
    placed = [(place, row) for row in rows if (place := rank_id(row.get("rank")) or place_of(row)) is not None]
    unready = judged.get("phase") != "ready"
    placed.sort(key=lambda one: one[0])
    return tuple(_rank(place, row, required, phases.get(place, "") if unready else "") for place, row in placed)


def _row(report: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a verdict has it, from what a rank reported."""
    return {
        **{key: report.get(key) for key in ("tp", "pp", "dp")},
        "tokens": pool_tokens(report),
        "draft_tokens": pool_tokens(report, "draft"),
        "left_gib": report.get("last_avail_gib"),
    }


def _rank(place: RankId, row: Mapping[str, Any], required: int, phase: str) -> Rank:
    tokens, word = whole(row.get("tokens")), _word(row.get("word")) or "ok"
    spare = tokens - required if tokens is not None and required else None
    form = "none" if tokens is None else "short" if spare is not None and spare < 0 else "odd" if word != "ok" else "full"
    return Rank(place.name, tokens, spare, whole(row.get("draft_tokens")), number(row.get("left_gib")), word, phase, form)


def _folded(ranks: Iterable[Rank]) -> tuple[Rank, ...]:
    """Neighbours that are alike as one, with what the poorest of them has left."""
    made = []
    for _key, group in groupby(ranks, lambda rank: (rank.form, rank.tokens, rank.draft, rank.word, rank.phase)):
        same = list(group)
        left = min((rank.left_gib for rank in same if rank.left_gib is not None), default=None)
        places = [place for rank in same if (place := rank_id(rank.name)) is not None]
        made.append(replace(same[0], name=", ".join(spans_of(places)), left_gib=left))
    return tuple(made)


# --- plan and start ---------------------------------------------------------------------------------------------------


def _prediction(plan: Mapping[str, Any], boot: Boot | None, tokens: int | None, left_gib: float | None) -> Prediction | None:
    """None where the start was not made with the fraction of the plan, or either says no figure."""
    predicted, planned = whole(plan.get("predicted_tokens")), number(plan.get("mem_fraction_static"))
    if boot is None or predicted is None or tokens is None:
        return None
    if planned is not None and boot.fraction is not None and abs(planned - boot.fraction) > SAME_FRACTION:
        return None
    error, headroom = whole(plan.get("error_tokens")), number(plan.get("headroom_gib"))
    return Prediction(predicted, None if error is None else abs(error), tokens, headroom, left_gib, _word(plan.get("basis")))


_SERVES = {"unreachable": "not known", "waiting": "what it served before", "under way": "changing", "not judged": "not judged"}


def _serves(host: Host) -> str:
    if host.kind != "audit":
        if host.state == "refused":
            return _service(host.returned) if host.returned else first_line(host.data["rolled_back"], 160) or "not known"
        if host.data["outcome"] == "removed":
            return "nothing: removed"
        if host.data["outcome"] == "checked":
            return "what it served before"
    if host.state in _SERVES:
        return _SERVES[host.state]
    return _service(host.boot) if host.boot is not None else "not known"


def _service(boot: Boot) -> str:
    if boot.end != "ready":
        return f"nothing: {boot.end}"
    at = f" at {fraction(boot.fraction)}" if boot.fraction is not None else ""
    return f"{thousands(boot.tokens)} tokens{at}" if boot.tokens is not None else "a server that names no pool"


def _evidence(path: str, folder: str) -> tuple[str, str]:
    if not path:
        return "", ""
    inside = os.path.normpath(os.path.relpath(path, folder) if os.path.isabs(path) else path)
    if inside.startswith(("..", "/")):
        return shown(path), ""
    return shown(inside) + "/", quote(inside.encode("utf-8", "replace")) + "/"


# --- odd data ---------------------------------------------------------------------------------------------------------


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)][:MOST_RANKS] if isinstance(value, list) else []


def _word(value: Any) -> str:
    return shown(value) if isinstance(value, str) else ""


def outliers(hosts: Sequence[Host]) -> frozenset[int]:
    """Indexes of the hosts of one class whose smallest pool is another than that of most of them."""
    pools = sorted(host.smallest for host in hosts if host.smallest is not None)
    if len(pools) < 3:
        return frozenset()
    usual = pools[len(pools) // 2]
    return frozenset(host.index for host in hosts if host.smallest is not None and abs(host.smallest - usual) > usual * UNUSUAL)
