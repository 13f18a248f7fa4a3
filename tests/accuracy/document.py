# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of docs/accuracy.md: what this collection predicts, beside what SGLang says or printed.

Everything but the differential section comes from data in this tree and from the collection itself.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar, Union

from accuracy import engine_section, weights_section
from accuracy.kimi_plans import kimi_plans
from accuracy.public_boots import Boot, Prediction, load, predictions
from accuracy.tables import number, release_order, table

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/accuracy.md"
# the differential section stands between this heading and the next
DIFFERENTIAL = "## Against SGLang's own code"
UNITS = {
    "tokens": "tokens",
    "from_other": "tokens",
    "swa_tokens": "tokens",
    "slots": "slots",
    "limit": "tokens",
    "cell": "bytes",
    "minimum_fraction": "",
}
# figures that are GiB of a pool
STORED = ("kv", "draft_kv", "swa_kv", "states")
T = TypeVar("T")
K = TypeVar("K")


def document(of_differential: str) -> str:
    """The whole document, with the given differential section."""
    boots, unpredictable, reasons = load()
    said = [found for boot in boots for found in predictions(boot)]
    parts = [
        INTRODUCTION,
        summary(said),
        f"{DIFFERENTIAL}\n\n{of_differential}",
        PUBLIC,
        by_family_and_era(said),
        pools(said),
        others(said),
        explained(said, reasons),
        silent(unpredictable),
        sources(boots),
        engine_section.section(),
        weights_section.section(),
        kimi(),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def without_differential(text: str) -> str:
    """A document less its differential section, which needs a run."""
    before, _heading, rest = text.partition(DIFFERENTIAL)
    return before + rest[rest.index("\n## ") :]


INTRODUCTION = """# How near the predictions come

Made by `make accuracy`; do not edit. All memory is GiB (2^30 bytes) per rank, pools are tokens per rank. An error is printed
minus predicted. SGLang prints memory with two decimals, so every figure below is known to 0.005 GiB at best: on 94 GiB and
70,272 bytes a token these are 76 tokens.

No case is left out because it is bad. What is further off than the printed decimals allow is listed with the reason, and so is
every public boot that no prediction can be made for.

In short: from the free memory before and after the weights, the pool is that of SGLang's own code to the token, and on public
boots it is met within what their two decimals allow. The larger errors in the table are of something else: an unusual layout of
a pool, the free memory of a CPU, which moves between two lines of the log, and weights guessed from headers before anything ran.
What was said of boots on GPUs was worked out from the memory that the same log prints; a first start is an estimate until it
has run, and then corrects it.
"""

PUBLIC = """## Against public boots

Figures that people published of their own starts (`tests/unit/fixtures/boots/public_boots.json`), each beside what this
collection says from the other figures of the same log. `tests/unit/test_public_boots.py` holds every one of them to the printed
decimals, or to the distance named below."""


def summary(said: Sequence[Prediction]) -> str:
    tokens = [found.percent for found in said if found.kind == "tokens"]
    stored = [found.percent for found in said if found.kind in STORED]
    rows = [
        ("pool tokens of public boots, from the memory before and after the weights", tokens),
        ("GiB of pools that public boots printed, from their tokens", stored),
        ("pool tokens of real boots on the CPU, from the same figures", engine_section.errors()),
        ("weights per rank of public boots, from the headers of the checkpoint", weights_section.errors()),
    ]
    return table(
        ("what", "cases", "median error %", "worst error %"),
        [(what, len(errors), f"{statistics.median(errors):.3f}", f"{max(errors):.2f}") for what, errors in rows],
    )


def by_family_and_era(said: Sequence[Prediction]) -> str:
    groups = grouped((found for found in said if found.boot.model), lambda found: (found.boot.family, found.boot.era))
    rows = []
    for (family, era), group in sorted(groups.items(), key=lambda item: (item[0][0], release_order(item[0][1]))):
        tokens = [found.percent for found in group if found.kind == "tokens"]
        stored = [found.percent for found in group if found.kind in STORED]
        rows.append((family, era, *middle_and_worst(tokens), *middle_and_worst(stored)))
    head = ("family", "SGLang", "pools", "median error %", "worst error %", "GiB", "median error %", "worst error %")
    return (
        "### By family and era\n\n"
        "`pools`: tokens from the memory before and after the weights; `GiB`: what a pool takes, from its tokens.\n\n" + table(head, rows)
    )


def middle_and_worst(errors: Sequence[float]) -> tuple[object, str, str]:
    return (len(errors), f"{statistics.median(errors):.3f}", f"{max(errors):.3f}") if errors else ("", "", "")


def pools(said: Sequence[Prediction]) -> str:
    rows = [
        (
            found.boot.id,
            found.boot.model,
            found.boot.version,
            f"{found.boot.before:.2f}",
            f"{found.boot.at_sizing:.2f}",
            f"{found.boot.fraction:.4g}",
            number(found.predicted),
            number(found.printed),
            signed(found.difference),
            f"{found.percent:.3f}",
            mark(found),
        )
        for found in said
        if found.kind == "tokens"
    ]
    head = ("boot", "model", "SGLang", "before", "at sizing", "fraction", "predicted", "printed", "error", "%", "")
    return (
        "### Pools, from the memory before and after the weights\n\n"
        "`before` is the smallest `Load weight begin` over the ranks, `at sizing` the smallest `Load weight end`.\n\n" + table(head, rows)
    )


def others(said: Sequence[Prediction]) -> str:
    rows = [
        (
            found.boot.id,
            found.kind,
            quantity(found.predicted, found.kind),
            quantity(found.printed, found.kind),
            UNITS.get(found.kind, "GiB"),
            quantity(found.difference, found.kind, sign=True),
            mark(found),
        )
        for found in said
        if found.kind != "tokens"
    ]
    text = (
        "### Other figures of the same boots\n\n"
        "`kv` and `draft_kv`: the pools in GiB from the printed tokens. `swa_tokens`, `swa_kv`: the pool of windowed layers. `slots`,\n"
        "`states`: the pool of recurrent states. `after_pool`: what is free after the pools, from what was free before them; the\n"
        "allocator rounds each buffer up to 2 MiB, so up to 2 MiB for each of the K and V buffers are missing. `cell`: bytes of the\n"
        "budget for a token. `budget`: what the fraction leaves for the pool. `from_other`: the pool from another boot of the same\n"
        "host. `minimum_fraction`, `limit`: what refusals name.\n\n"
    )
    return text + table(("boot", "figure", "predicted", "printed", "unit", "error", ""), rows)


def explained(said: Sequence[Prediction], reasons: dict[str, str]) -> str:
    named = [(found, found.named) for found in said]
    rows = [(f"{found.boot.id}, {found.kind}", f"{found.percent:.3g}", why[1], reasons[why[1]]) for found, why in named if why]
    return "### Further off than the decimals allow\n\n" + table(("what", "error %", "reason", "in words"), rows)


def silent(unpredictable: Sequence[dict[str, str]]) -> str:
    groups = grouped(unpredictable, lambda row: row["why"])
    rows = [(why, ", ".join(row["id"] for row in group)) for why, group in groups.items()]
    return (
        "### Boots that nothing can be said about\n\n"
        f"{len(unpredictable)} more public boots were looked at. Their figures allow no prediction.\n\n" + table(("why", "boots"), rows)
    )


def sources(boots: Sequence[Boot]) -> str:
    rows = [(boot.id, boot.source, boot.hardware, boot.version, boot.known_by, boot.fraction_by or "") for boot in boots]
    return (
        "### Where the figures come from\n\n"
        "The wording of a log dates it: which release a boot ran is often known by that alone.\n\n"
        + table(("boot", "source", "hardware", "SGLang", "known by", "fraction by"), rows)
    )


def kimi() -> str:
    rows = [
        (
            found.id,
            found.era,
            f"{found.before:g}",
            number(found.context),
            "bf16" if found.kv == "auto" else "fp8",
            f"{found.fraction:.4f}",
            f"{found.plan.mem_fraction_static:.4f}",
            f"{found.left:.2f}",
            f"{found.plan.headroom_gib:.2f}",
            found.plan.verdict,
            f"{found.fp8.mem_fraction_static:.4f}, {found.fp8.headroom_gib:.2f} GiB left" if found.fp8 else "",
        )
        for found in kimi_plans()
    ]
    head = ("case", "SGLang", "card", "context", "KV", "by hand", "plan", "left by hand", "left", "verdict", "with fp8")
    return (
        "## Kimi K2.6 with its DFlash draft on eight cards\n\n"
        "72.3 GiB of weights and 1.312 of the draft per rank. The figures by hand are rounded to the nearest step, the plan is rounded\n"
        "up so that the pool reaches the context.\n\n" + table(head, rows)
    )


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def quantity(value: Union[int, float], kind: str, sign: bool = False) -> str:
    form = {"minimum_fraction": ".4f", "cell": ",.2f"}.get(kind, ",.0f" if kind in UNITS else ",.3f")
    return format(value + 0.0, f"+{form}" if sign else form)


def signed(value: float) -> str:
    return f"{value:+,.0f}"


def mark(found: Prediction) -> str:
    return "" if found.named is None else f"see below: {found.named[1]}"
