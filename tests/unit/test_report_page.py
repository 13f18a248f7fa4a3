# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a report: whole, complete in itself, readable by everybody, small, and deaf to what logs say."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import normalised
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_html import MOST_CARDS, page
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_style import DARK, LIGHT
from ansible_collections.inferops.sglang.tests.unit import report_cases as cases

VOID = {"meta", "col", "br", "hr", "img", "input", "link"}
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> \"quoted\" 'single' {{ 7 * 7 }} & \x1b[31mred\x1b[0m \x00\x08 "
    "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd \U0001f525 ]]> --> \ud800"
)


class Reader(HTMLParser):
    """Every element, with a list of what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len({name for name, _value in attrs}) != len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes something else")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def having(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes, _above in self.elements if tag in tags]


@cache
def text_of(name: str) -> str:
    return page(normalised(cases.SITUATIONS[name]()), "/r/deploy-1")


@cache
def read(name: str) -> Reader:
    return Reader(text_of(name))


each = pytest.mark.parametrize("name", cases.SITUATIONS)


@each
def test_every_element_is_closed_in_order(name: str) -> None:
    assert read(name).faults == []


@each
def test_nothing_is_fetched_or_run(name: str) -> None:
    seen = read(name)
    assert seen.having("script", "link", "img", "iframe", "object", "embed", "form", "base", "audio", "video") == []
    linking = ("href", "src", "srcset")
    targets = [attributes[key] or "" for _tag, attributes, _above in seen.elements for key in linking if key in attributes]
    assert targets
    assert [target for target in targets if re.match(r"[a-z]+:|//|/", target)] == []
    assert [key for _tag, attributes, _above in seen.elements for key in attributes if key.startswith("on") or key == "style"] == []
    style = text_of(name).split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


@each
def test_every_place_that_is_linked_is_there_and_once(name: str) -> None:
    seen = read(name)
    places = [attributes["id"] for _tag, attributes, _above in seen.elements if "id" in attributes]
    assert len(places) == len(set(places))
    linked = {attributes["href"] for attributes in seen.having("a", "use") if (attributes.get("href") or "").startswith("#")}
    assert {target[1:] for target in linked} <= set(places)


@each
def test_who_cannot_see_it_can_read_it(name: str) -> None:
    seen = read(name)
    assert seen.having("html") == [{"lang": "en"}]
    assert [tag for tag, _attributes, _above in seen.elements].count("h1") == 1
    assert [tag for tag, _attributes, _above in seen.elements].count("title") == 1
    tables = len(seen.having("table"))
    assert (len(seen.having("caption")), len(seen.having("thead"))) == (tables, tables)
    heads = [attributes.get("scope") for attributes in seen.having("th")]
    assert set(heads) <= {"col", "row"}
    # a drawing has a name, or what it shows stands beside it and a reader of screens passes it by
    drawings = [attributes for tag, attributes, above in seen.elements if tag == "svg" and "a" not in above]
    assert [drawing for drawing in drawings if "aria-label" not in drawing and drawing.get("aria-hidden") != "true"] == []
    assert [link for link in seen.having("a") if link.get("title") == ""] == []


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_it_is_defined() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


TEXTS = [("ink", "ground"), ("ink", "sheet"), ("ink", "faint"), ("ink", "way-soft"),
         ("quiet", "ground"), ("quiet", "sheet"), ("quiet", "faint"),
         ("bad", "sheet"), ("bad", "bad-soft"), ("good", "sheet"), ("good", "good-soft"), ("warn", "sheet"), ("warn", "warn-soft"),
         ("way", "sheet"), ("way", "way-soft")]  # fmt: skip
DRAWN = [(name, "sheet") for name in ("good", "bad", "warn", "way", "ink", "starting", "weights", "pool", "capture", "warmup")]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back", "least"), [(*pair, 4.5) for pair in TEXTS] + [(*pair, 3.0) for pair in DRAWN])
def test_colours_stand_out(colours: dict[str, str], front: str, back: str, least: float) -> None:
    assert contrast(colours[front], colours[back]) >= least


def hostile() -> dict[str, Any]:
    """Every text of a report is what somebody would break the page with."""

    def worse(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: worse(entry, name) for name, entry in value.items()}
        if isinstance(value, list):
            return [worse(entry, key) for entry in value]
        kept = ("kind", "id", "state", "outcome", "started_at", "phase", "phases", "rank", "check", "word", "key", "hosts", "batches")
        return HOSTILE if isinstance(value, str) and key not in kept else value

    made = cases.oom_at_capture()
    made["hosts"] = [{**worse(host), "host": host["host"]} for host in made["hosts"]]
    bad = {**worse({key: made[key] for key in ("title", "next_step", "stopped_because", "classes", "asked")}), "next_step": HOSTILE}
    renamed = {"host": HOSTILE, "state": "refused", "findings": [HOSTILE], "evidence": HOSTILE}
    return {**made, **bad, "hosts": [*made["hosts"], renamed]}


def test_what_logs_say_is_text_and_nothing_else() -> None:
    text = page(normalised(hostile()), "/r/deploy-1")
    seen = Reader(text)
    assert seen.faults == []
    assert seen.having("script", "img") == []
    assert [key for _tag, attributes, _above in seen.elements for key in attributes if key.startswith("on")] == []
    said = "".join(seen.texts)
    assert "</script><script>alert(1)</script>" in said
    assert "{{ 7 * 7 }}" in said
    assert "[U+202E]evil" in said
    assert "\U0001f525" in said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)


def test_a_short_rank_is_told_by_form_and_not_by_colour_alone() -> None:
    text = text_of("canary_short")
    assert text.count('<rect class="short"') == 8
    assert text.count('<rect class="gap"') == 8
    assert '<rect class="full"' not in text
    # the bar ends where 192,406 of the 208,000 tokens end that the place is wide, the target is at 200,000
    assert '<rect class="gap" x="925" y="2" width="37" height="12"/>' in text
    assert 'class="target" d="M962 0v16"' in text
    assert "7,594 short" in text


def test_a_rank_without_a_pool_is_a_frame_and_one_that_failed_is_striped() -> None:
    assert text_of("rank_lost").count('<rect class="none"') == 1
    assert text_of("oom_at_capture").count('<path class="stripes"') == 1


def test_what_an_operator_asks_first_comes_first() -> None:
    text = text_of("oom_at_capture")
    order = [text.index(words) for words in (
        "<h1>", "Next step", "What went wrong", "<h3>gpu02", "Hosts, batch by batch", "<h3>Batch 1", "<h3>Batch 2", "Accepted hosts in",
    )]  # fmt: skip
    assert order == sorted(order)
    assert 'href="evidence/gpu02.example.net/"' in text
    assert "The last accepted service runs again (fraction 0.9200, 192,406 tokens)." in text
    assert "195,657 tokens, 4,343 short of 200,000" in text


def test_what_the_canary_taught_its_class() -> None:
    assert "Its start moves the fraction of 3 hosts to 0.9259." in text_of("all_accepted")


def test_five_hundred_hosts_are_small_and_the_odd_ones_are_seen() -> None:
    text = text_of("large")
    assert len(text.encode()) < 1_000_000
    assert text.count('<details class="card') == 3
    assert "50 hosts accepted, 200,099 tokens, 6.21 to 6.34 GiB left" in text
    open_rows = re.sub(r'<details class="fold">.*?</details>', "", text, flags=re.DOTALL)
    assert [name for name in ("gpu401.example.net", "gpu451.example.net") if f">{name}</a></th>" not in open_rows] == []


def test_a_fleet_of_which_every_host_fell_is_no_flood() -> None:
    fallen = cases.canary_short()["hosts"][0]
    made = cases.report([{**fallen, "host": f"gpu{number:03d}"} for number in range(500)], [])
    text = page(normalised(made), "/r/deploy-1")
    assert len(text.encode()) < 1_500_000
    assert text.count('<details class="card') == MOST_CARDS
    assert f"{500 - MOST_CARDS} hosts more" in text


@each
def test_equal_reports_give_equal_pages(name: str) -> None:
    assert page(normalised(cases.SITUATIONS[name]()), "/r/deploy-1") == text_of(name)


ODD_REPORTS: list[Any] = [None, {"hosts": [{"host": "a", "boots": [{"phases": {"weights": 3}, "ranks": [{"tp": "x"}]}]}]},
                          {"hosts": [{"host": "a", "state": "accepted", "started_at": 5, "ended_at": 5}], "finished": True},
                          {"hosts": [{"host": "a", "verdict": {"rows": [{"rank": "TP0", "tokens": 0}]}, "starts": 0}]}]  # fmt: skip


@pytest.mark.parametrize("report", ODD_REPORTS, ids=range(len(ODD_REPORTS)))
def test_a_damaged_report_is_still_a_page(report: Any) -> None:
    assert Reader(page(normalised(report), "/r/deploy-1")).faults == []
