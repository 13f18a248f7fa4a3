# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one page for people, complete in itself. Private to this collection: may change at any time.

Every text goes through C(shown) and is escaped; what is drawn comes from numbers alone. Hosts that are alike are folded, so that a page
on hundreds of hosts stays small and shows first what is not as it should be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ansible_collections.inferops.sglang.plugins.plugin_utils import _report_svg as svg
from ansible_collections.inferops.sglang.plugins.plugin_utils import _report_text as text
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import HOST_STATES, KINDS
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_style import style
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_view import Host, hosts_of, outliers
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

FOLDED_FROM = 12  # accepted hosts of a batch that are folded into one line
MOST_OPEN = 6  # hosts of a report whose details are all open
MOST_CARDS = 40  # hosts whose details are shown
MAP_FROM = 9  # hosts from which on a map of all is worth its place

_SPAN = re.compile(r"TP\d+-TP\d+")
_SEALS = {"accepted": "Accepted", "refused": "Refused", "stopped": "Stopped", "under way": "Under way"}


@dataclass(frozen=True)
class Group:
    """Hosts of a batch or a class.

    ``shown``: a row for each. ``folded``: rows that open on demand, with ``summary`` in their place. ``blank``: only the name is known.
    """

    title: str
    hosts: Sequence[Host]
    shown: Sequence[Host]
    folded: Sequence[Host]
    blank: Sequence[Host]
    summary: str


@dataclass(frozen=True)
class Family:
    """A class of equal hosts with what was learned of it, and how its figures lie beside one another."""

    title: str
    hosts: Sequence[Host]
    lesson: str
    pools: Markup
    pools_words: str
    left: Markup
    left_words: str


def page(report: Mapping[str, Any], folder: str) -> str:
    """The page of a normalised report that lies in ``folder``, as text."""
    hosts = hosts_of(report)
    families = _families(report, hosts)
    odd = frozenset(host.index for host in hosts if host.is_odd) | _outliers(report, hosts)
    cards = _cards(hosts, odd, report)
    rendered: str = _template().render(
        report=report,
        kind=KINDS[report["kind"]],
        seal=_SEALS[report["state"]],
        style=Markup(style()),
        facts=list(_facts(report, hosts)),
        states=HOST_STATES,
        groups=_groups(report, hosts, odd),
        families=families,
        odd=odd,
        cards=cards,
        cards_left=len(odd) - sum(1 for host in cards if host.index in odd),
        carded=frozenset(host.index for host in cards),
        all_open=len(hosts) <= MOST_OPEN,
        has_map=len(hosts) >= MAP_FROM,
        axis=_axis(report, hosts),
        longest=max((boot.took_s for host in hosts for boot in host.boots), default=0.0),
        folder=folder,
    )
    return rendered


@cache
def _template() -> Any:
    room = Environment(
        loader=FileSystemLoader(os.path.dirname(__file__)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else text.shown(value),
    )
    room.filters.update(
        {name: getattr(text, name) for name in ("thousands", "gib", "fraction", "signed", "duration", "moment", "clock", "first_line")}
    )
    room.filters["together"] = _together
    room.globals["svg"] = svg
    room.globals["hosts_word"] = lambda amount: text.count_words(amount, "host")
    return room.get_template("report.html.j2")


def _together(said: str) -> Markup:
    """A text in which a span of ranks is not broken between two lines."""
    return Markup(_SPAN.sub(r"<span class=k>\g<0></span>", str(escape(text.shown(said)))))


# --- the head ---------------------------------------------------------------------------------------------------------


def _against(tokens: int, required: int) -> str:
    return f"{required - tokens:,} short" if tokens < required else f"{tokens - required:,} spare"


def _facts(report: Mapping[str, Any], hosts: Sequence[Host]) -> Iterable[tuple[str, str, str]]:
    """The figures under the headline: what it is, the figure, and a word on it."""
    asked = report["asked"]
    required = text.whole(asked.get("required_tokens"))
    if required:
        yield "asked of every rank", text.thousands(required), "tokens"
    poolless = sum(host.poolless for host in hosts)
    pools = [host.smallest for host in hosts if host.smallest is not None]
    if poolless:
        yield "without a pool", text.thousands(poolless), "rank" if poolless == 1 else "ranks"
    if pools:
        yield "smallest pool", text.thousands(min(pools)), _against(min(pools), required) if required else ""
    left = [host.left_gib for host in hosts if host.left_gib is not None]
    if left:
        yield "least memory left", text.gib(min(left)), "GiB"
    if report["kind"] != "audit":
        yield "starts", text.thousands(sum(host.data["starts"] for host in hosts)), f"for {text.count_words(len(hosts), 'host')}"
    began, ended = report["started_at"], report["updated_at"]
    if began is not None and ended is not None and ended >= began:
        yield "took" if report["finished"] else "under way for", text.duration(ended - began), ""
    version = text.first_line(asked.get("sglang_version"), 60)
    if version:
        yield "SGLang", version, ""


def _axis(report: Mapping[str, Any], hosts: Sequence[Host]) -> tuple[float, float] | None:
    """Begin and end of the line of time that the hosts' turns are drawn on; none where no host had one."""
    begins = [host.data["started_at"] for host in hosts if host.data["started_at"] is not None]
    ends = [host.data["ended_at"] for host in hosts if host.data["ended_at"] is not None]
    if not begins or not ends:
        return None
    first, last = report["started_at"], report["updated_at"]
    begin, end = min([*begins, *([first] if first is not None else [])]), max([*ends, *([last] if last is not None else [])])
    return (begin, end) if end > begin else None


# --- groups -----------------------------------------------------------------------------------------------------------


def _groups(report: Mapping[str, Any], hosts: Sequence[Host], odd: frozenset[int]) -> list[Group]:
    by_name = {host.data["host"]: host for host in hosts}
    if report["batches"]:
        named = [(f"Batch {index}", batch) for index, batch in enumerate(report["batches"], 1)]
        rest = "Not reached"
    else:
        named = [(text.first_line(entry["title"] or entry["key"]), entry["hosts"]) for entry in report["classes"]]
        rest = "Other hosts" if named else "Hosts"
    parts = [(title, [by_name.pop(name) for name in names if name in by_name]) for title, names in named]
    parts.append((rest, list(by_name.values())))
    return [_group(title, members, odd) for title, members in parts if members]


def _group(title: str, hosts: Sequence[Host], odd: frozenset[int]) -> Group:
    """Refused hosts first; those of which nothing is to be said are folded where they are many."""
    blank = [host for host in hosts if host.is_blank]
    plain = [host for host in hosts if host.index not in odd and not host.is_blank]
    folded = plain if len(plain) >= FOLDED_FROM else []
    hidden = frozenset(host.index for host in (*folded, *blank))
    seen = sorted((host for host in hosts if host.index not in hidden), key=lambda host: HOST_STATES.index(host.state))
    return Group(title, hosts, seen, folded, blank, _summary(folded))


def _summary(hosts: Sequence[Host]) -> str:
    """What folded hosts have in common, with the bounds of their figures."""
    if not hosts:
        return ""
    pools = _span([host.smallest for host in hosts], text.thousands, "tokens")
    left = _span([host.left_gib for host in hosts], text.gib, "GiB left")
    states = sorted({host.state for host in hosts}, key=HOST_STATES.index)
    return ", ".join(part for part in (f"{text.count_words(len(hosts), 'host')} {' or '.join(states)}", pools, left) if part)


def _span(values: Iterable[float | None], form: Any, unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least, most = form(min(known)), form(max(known))
    return f"{least} {unit}" if least == most else f"{least} to {most} {unit}"


def _families(report: Mapping[str, Any], hosts: Sequence[Host]) -> list[Family]:
    by_name = {host.data["host"]: host for host in hosts}
    families = [_family(entry, [by_name[name] for name in entry["hosts"] if name in by_name]) for entry in report["classes"]]
    return [family for family in families if family.hosts and (family.lesson or family.pools)]


def _family(entry: Mapping[str, Any], hosts: Sequence[Host]) -> Family:
    odd = outliers(hosts) | {host.index for host in hosts if host.state == "refused"}
    sized = [host for host in hosts if host.smallest is not None]
    spare = [host for host in hosts if host.left_gib is not None and not host.poolless]
    pools, left = [float(host.smallest or 0) for host in sized], [host.left_gib or 0.0 for host in spare]
    required = max((host.required for host in sized), default=0)
    return Family(
        title=entry["title"] or entry["key"],
        hosts=hosts,
        lesson=entry["lesson"],
        pools=svg.spread(sized, odd, pools, float(required)) if len(sized) > 1 else Markup(),
        pools_words=_span(pools, text.thousands, "tokens"),
        left=svg.spread(spare, odd, left, 0.0) if len(spare) > 1 else Markup(),
        left_words=_span(left, text.gib, "GiB left"),
    )


def _outliers(report: Mapping[str, Any], hosts: Sequence[Host]) -> frozenset[int]:
    by_name = {host.data["host"]: host for host in hosts}
    found: frozenset[int] = frozenset()
    for entry in report["classes"]:
        found |= outliers([by_name[name] for name in entry["hosts"] if name in by_name])
    return found


def _cards(hosts: Sequence[Host], odd: frozenset[int], report: Mapping[str, Any]) -> list[Host]:
    """Hosts with details: what is odd, then the canary, then the others where they are few."""
    first = set(report["batches"][0] if report["batches"] else ())
    told = [host for host in hosts if host.boots or host.reasons]
    few = len(told) <= FOLDED_FROM
    chosen = [host for host in told if host.index in odd] + [
        host for host in told if host.index not in odd and (few or host.data["host"] in first)
    ]
    return chosen[:MOST_CARDS]
