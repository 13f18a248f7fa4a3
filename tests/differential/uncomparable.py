# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases in which the two sides may differ, each with its reason. A reason that no case needs any more fails the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from differential.cases import Case, version_key


@dataclass(frozen=True)
class Reason:
    """Which cases differ, and why that says nothing about the plan."""

    name: str
    text: str
    applies: Callable[[Case, str], bool]


def _before(release: str, first: str) -> bool:
    return version_key(release) < version_key(first)


# The first releases that know an algorithm.
_SINCE = {"STANDALONE": "0.5.2", "NGRAM": "0.5.3"}


def _unlike_stages(case: Case, release: str) -> bool:
    by_requests = bool(case.options.get("disable_radix_cache"))
    return "swa" in case.family and case.options.get("pp_size", 1) > 1 and (by_requests or _before(release, "0.5.11"))


REASONS = (
    Reason(
        "architecture unknown",
        "The release does not know the architecture and would take it for plain attention; the plan is for a build that knows it.",
        lambda case, release: _before(release, case.since),
    ),
    Reason(
        "algorithm unknown",
        "The release does not know the speculative algorithm and does not start.",
        lambda case, release: _before(release, _SINCE.get(case.algorithm, "0")),
    ),
    Reason(
        "MLA in stages",
        "The release does not split latent attention into pipeline stages and does not start.",
        lambda case, release: "mla" in case.family and case.options.get("pp_size", 1) > 1 and _before(release, "0.5.2"),
    ),
    Reason(
        "unlike stages",
        "Each pipeline stage of a model with windowed layers is sized for itself, so that their pools differ: the plan refuses that.",
        _unlike_stages,
    ),
    Reason(
        "compressed stages",
        "0.5.12 counts the layers of all stages on each of them: the plan refuses that.",
        lambda case, release: case.family == "compressed" and case.options.get("pp_size", 1) > 1 and _before(release, "0.5.13"),
    ),
    Reason(
        "context parallelism unknown",
        "Up to 0.5.16 decode context parallelism is missing, or leaves a request the rows of one rank only: the plan refuses it.",
        lambda case, release: case.options.get("dcp_size", 1) > 1 and _before(release, "0.5.17"),
    ),
    Reason(
        "heads in fp4",
        "0.5.4 sizes K and V heads in fp4 as if they were fp8, and has a pool for latent attention only: the plan refuses that.",
        lambda case, release: (
            "mla" not in case.family and case.options["kv_cache_dtype"] == "fp4_e2m1" and not _before(release, "0.5.4")
            and _before(release, "0.5.5")
        ),
    ),
    Reason(
        "latent nvfp4",
        "The plan refuses nvfp4 for latent attention: no pool of that kind was checked.",
        lambda case, _release: "mla" in case.family and case.options["kv_cache_dtype"] == "nvfp4",
    ),
)
