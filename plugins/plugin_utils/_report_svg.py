# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drawings of a report as inline SVG. Private to this collection: may change at any time.

Form says what colour says: a full pool is a filled bar that passes the line of the target, a short one is hollow and ends before it with
a dashed gap, a rank without a pool is a dashed frame, one with another fault is striped. Colours are classes of the page's style.
Nothing in here comes from a log.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ansible_collections.inferops.sglang.plugins.plugin_utils._report_view import Boot, Host, Prediction, Rank
from markupsafe import Markup

WIDE = 1000  # units of a drawing that is stretched to its place
ABOVE = 1.04  # a bar's place goes beyond the target by this, so that a pool can be seen to pass it
STRIP_HIGH, STRIP_STEP, STRIP_BAR = 22, 6, 4
STRIP_LINE = 5  # from the top of a strip to the line of the target
STRIP_GAP = 3  # by which a short rank of a strip ends under the line at the least: it tells that, the table tells how much
MOST_STRIP = 64  # ranks of a strip
MOST_ALIKE = 0.05  # of a figure: what lies nearer together is not drawn farther apart


def scale_of(ranks: Iterable[Rank], required: int) -> float:
    """Tokens that the whole width of a bar stands for."""
    return max([required * ABOVE, *(rank.tokens * 1.01 for rank in ranks if rank.tokens is not None), 1.0])


def rank_bar(rank: Rank, required: int, most: float) -> Markup:
    """The pool of one rank against the target."""
    target = _units(required, most)
    end = _units(rank.tokens or 0, most)
    if rank.form == "none":
        body = f'<rect class="none" x="1" y="2" width="{max(target - 2, 0)}" height="12"/>'
    elif rank.form == "short":
        body = f'<rect class="gap" x="{end}" y="2" width="{max(target - end, 0)}" height="12"/>'
        body += f'<rect class="short" x="1" y="2" width="{max(end - 1, 0)}" height="12"/>'
    elif rank.form == "odd":
        body = f'<path class="stripes" d="M0 8h{end}"/>'
    else:
        body = f'<rect class="full" x="0" y="2" width="{end}" height="12"/>'
    line = f'<path class="target" d="M{target} 0v16"/>' if required else ""
    return Markup(f'<svg class="bar" viewBox="0 0 {WIDE} 16" preserveAspectRatio="none" aria-hidden="true">{body}{line}</svg>')


def strip(ranks: Sequence[Rank], required: int) -> Markup:
    """All ranks of a host in a place as high as a line of text."""
    drawn = ranks[:MOST_STRIP]
    if not drawn:
        return Markup()
    most = scale_of(drawn, required)
    paths: dict[str, str] = {}
    for place, rank in enumerate(drawn):
        paths[rank.form] = paths.get(rank.form, "") + _strip_bar(rank, place * STRIP_STEP, required, most)
    width = len(drawn) * STRIP_STEP
    body = "".join(f'<path class="{form}" d="{path}"/>' for form, path in paths.items())
    line = f'<path class="target" d="M0 {STRIP_LINE}h{width - 2}"/>' if required else ""
    return Markup(f'<svg class="strip" width="{width}" height="{STRIP_HIGH}" aria-hidden="true">{body}{line}</svg>')


def _strip_bar(rank: Rank, left: int, required: int, most: float) -> str:
    whole = STRIP_HIGH - STRIP_LINE
    if rank.form == "none":
        return f"M{left}.5 {STRIP_LINE + STRIP_GAP}v{whole - STRIP_GAP}m{STRIP_BAR - 1} 0v-{whole - STRIP_GAP}"
    tokens = rank.tokens or 0
    high = round(whole * tokens / required) if required else round(STRIP_HIGH * tokens / most)
    if rank.form == "short":
        high = max(min(high, whole - STRIP_GAP), 2)
        return f"M{left}.5 {STRIP_HIGH}v-{high}h{STRIP_BAR - 1}v{high}"
    return f"M{left + STRIP_BAR // 2} {STRIP_HIGH}v-{min(max(high + 2, 1), STRIP_HIGH)}"


def prediction(plan: Prediction, required: int) -> Markup:
    """What the plan said and within what, and what the start showed, on a line of tokens; the target is the long line."""
    least, largest = plan.predicted - (plan.error or 0), plan.predicted + (plan.error or 0)
    marks = [least, largest, plan.tokens, *([required] if required else [])]
    span = max(max(marks) - min(marks), 100) * 1.24
    middle = (min(marks) + max(marks)) / 2

    def at(tokens: int) -> float:
        return round(((tokens - middle) / span + 0.5) * 240, 1)

    band = round(max(at(largest) - at(least), 2.0), 1)
    target = f'<path class="target" d="M{at(required)} 1v26"/>' if required else ""
    return Markup(
        '<svg class="prediction" viewBox="0 0 240 28" aria-hidden="true"><path class="axis" d="M0 14h240"/>'
        f'<rect class="band" x="{at(least)}" y="8" width="{band}" height="12"/>'
        f'<path class="predicted" d="M{at(plan.predicted)} 6v16"/>{target}'
        f'<circle class="{"hit" if plan.holds else "miss"}" cx="{at(plan.tokens)}" cy="14" r="4.5"/></svg>'
    )


def turn(host: Host, begin: float, end: float) -> Markup:
    """When in the run the host had its turn, with the phases of its starts."""
    began, ended = host.data["started_at"], host.data["ended_at"]
    if began is None or end <= begin:
        return Markup()
    until = ended if ended is not None else end
    place = _Place(begin, end)
    body = place.rect("turn", began, until)
    for boot in host.boots:
        if boot.began is not None and began <= boot.began <= until:
            body += place.phases(boot, boot.began)
    return _line(body)


def start(boot: Boot, longest_s: float) -> Markup:
    """The phases of one start, beside others of which the longest fills the place."""
    return _line(_Place(0.0, max(longest_s, 0.1)).phases(boot, 0.0))


def spread(hosts: Sequence[Host], odd: Container[int], values: Sequence[float], line: float) -> Markup:
    """One figure of many hosts: a tick for each, a ring for the odd ones, a long line at what is asked."""
    least, most = min([*values, line or min(values)]), max([*values, line])
    span = max(most - least, abs(most) * MOST_ALIKE, 1e-9) * 1.1
    middle = (least + most) / 2

    def at(value: float) -> float:
        return round(((value - middle) / span + 0.5) * 400, 1)

    usual = dict.fromkeys(at(value) for host, value in zip(hosts, values) if host.index not in odd)
    body = f'<path class="tick" d="{"".join(f"M{place} 6v12" for place in usual)}"/>' if usual else ""
    rings = dict.fromkeys(at(value) for host, value in zip(hosts, values) if host.index in odd)
    body += "".join(f'<circle class="ring" cx="{place}" cy="12" r="5"/>' for place in rings)
    target = f'<path class="target" d="M{at(line)} 1v22"/>' if line else ""
    return Markup(f'<svg class="spread" viewBox="0 0 400 24" aria-hidden="true"><path class="axis" d="M0 12h400"/>{body}{target}</svg>')


class _Place:
    """A line of time, WIDE units from begin to end."""

    def __init__(self, begin: float, end: float) -> None:
        self._begin, self._span = begin, end - begin

    def _at(self, moment: float) -> int:
        return round(min(max((moment - self._begin) / self._span, 0.0), 1.0) * WIDE)

    def rect(self, name: str, begin: float, end: float) -> str:
        left = self._at(begin)
        return f'<rect class="{name}" x="{left}" y="3" width="{max(self._at(end) - left, 2)}" height="12"/>'

    def phases(self, boot: Boot, began: float) -> str:
        """A start's phases; a cross stands where it failed."""
        body = "".join(self.rect(phase.name, began + phase.after_s, began + phase.after_s + phase.took_s) for phase in boot.phases)
        end = self._at(began + boot.took_s)
        return body + (f'<path class="end" d="M{end} 0v18"/>' if boot.end == "failed" else "")


def _line(body: str) -> Markup:
    return Markup(f'<svg class="time" viewBox="0 0 {WIDE} 18" preserveAspectRatio="none" aria-hidden="true">{body}</svg>')


def _units(tokens: float, most: float) -> int:
    return round(min(tokens / most, 1.0) * WIDE)
