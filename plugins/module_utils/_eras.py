# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between SGLang releases when they size the KV pool, as one table. Private to this collection.

Every row was compared with the pool tokens that the release's own code gives (tests/unit/fixtures/vectors).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError, Release


@dataclass(frozen=True)
class Era:
    """How releases from ``since`` up to the next row size the pool."""

    name: str
    since: Release
    # the draft's weights are resident when the pool is sized (the order of loads changed)
    draft_weights_charged: bool = False
    # tokens = int(bytes) // cell; before: int(bytes // cell), at most one token apart
    integer_floor: bool = False
    # EAGLE-type speculation adds tokens on top of the budget
    speculative_head_room: bool = False
    # what EAGLE-type drafts add to the cell: none | layers (in proportion) | layers_and_index (sparse targets apart)
    eagle_cell: str = "none"
    # what a DFLASH draft adds: unknown (no such algorithm) | layers (as if they were target layers) | own (its geometry)
    dflash_cell: str = "unknown"
    # the draft's own cell counts KV heads per attention rank, not per tensor-parallel rank
    dflash_attention_width: bool = False
    dflash_with_dp_attention: bool = False
    draft_kv_dtype: bool = False
    # sliding-window models: none (as full) | layers | bytes (both split after sizing) | cell (inside the cell)
    swa_split: str = "none"
    swa_page_floor: bool = False
    # V heads count with their own width; before: twice the K width
    v_head_dim: bool = False
    # fp8 sparse-attention cell counts the scales and the unquantised rope part that the pool stores
    dsa_fp8_stored: bool = False
    # kv_cache_dtype auto follows a checkpoint that asks for FP8
    auto_fp8: bool = False
    multimodal_reserve: bool = False
    dcp: bool = False
    # an explicit fraction is multiplied by this for multimodal models
    multimodal_fraction: float = 1.0
    # rows of the request table: user (as asked) | capped (2048 to 4096 at most) | pool (half the pool at most)
    request_rule: str = "user"
    extra_request_rows: int = 0
    draft_columns: bool = False
    # a page more of columns under speculation: never | tree (topk > 1) | always
    page_columns: str = "never"


_FIRST = Era("0.4.6-0.5.6", (0, 4, 6), speculative_head_room=True, extra_request_rows=1, multimodal_fraction=0.9)

_CHANGES: tuple[tuple[Release, dict[str, Any]], ...] = (
    ((0, 4, 9), {"swa_split": "layers", "extra_request_rows": 0, "multimodal_fraction": 1.0}),
    ((0, 5, 2), {"draft_columns": True}),
    ((0, 5, 3), {"auto_fp8": True}),
    (
        (0, 5, 7),
        {
            "name": "0.5.7-0.5.10",
            "integer_floor": True,
            "speculative_head_room": False,
            "v_head_dim": True,
            "swa_split": "none",
            "swa_page_floor": True,
        },
    ),
    ((0, 5, 8), {"swa_split": "layers"}),
    ((0, 5, 9), {"swa_split": "bytes"}),
    ((0, 5, 10), {"request_rule": "capped"}),
    ((0, 5, 11), {"name": "0.5.11-0.5.13", "swa_split": "cell", "dflash_cell": "layers", "extra_request_rows": 1}),
    ((0, 5, 13), {"page_columns": "tree"}),
    (
        (0, 5, 14),
        {
            "name": "0.5.14-0.5.17",
            "draft_weights_charged": True,
            "eagle_cell": "layers",
            "dflash_with_dp_attention": True,
            "request_rule": "pool",
        },
    ),
    ((0, 5, 16), {"page_columns": "always"}),
    ((0, 5, 17), {"dsa_fp8_stored": True}),
    (
        (0, 5, 18),
        {"name": "0.5.18-0.5.23", "dflash_cell": "own", "multimodal_reserve": True, "draft_kv_dtype": True, "dcp": True},
    ),
    ((0, 5, 19), {"eagle_cell": "layers_and_index"}),
    ((0, 5, 22), {"dflash_attention_width": True}),
)


def _table() -> tuple[Era, ...]:
    rows = [_FIRST]
    for since, changes in _CHANGES:
        rows.append(replace(rows[-1], since=since, **changes))
    return tuple(rows)


ERAS = _table()
LAST_KNOWN: Release = (0, 5, 23)


@dataclass(frozen=True)
class Version:
    """A version of SGLang: what decides the era, what makes two builds the same, and what is odd about it."""

    text: str
    release: Release
    post: int
    notes: tuple[str, ...]

    @property
    def identity(self) -> tuple[Release, int]:
        """Equal for builds that size alike: a local part such as ``+cpu`` or ``-cu129`` does not count."""
        return (self.release, self.post)


_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:\.post(\d+))?(.*)", re.ASCII | re.DOTALL)
_BEFORE_RELEASE = re.compile(r"\.?(?:dev|rc|a|b|alpha|beta)\d*", re.ASCII)
_BUILD = re.compile(r"[+-][A-Za-z0-9]")


def parse_version(text: str) -> Version:
    """``0.5.12.post1``, ``v0.5.23+cpu``, ``0.5.11rc1``, ``0.5.12.dev3+gabc`` ...; raises InputError for anything else."""
    match = _VERSION.fullmatch(str(text).strip())
    rest = match.group(5) if match else ""
    if match is None or (rest and not _BEFORE_RELEASE.match(rest) and not _BUILD.match(rest)):
        raise InputError(
            "the sizing rules of an SGLang version",
            repr(text),
            "give the version as the package names it, such as 0.5.12.post1; for a branch give the release it was cut from",
        )
    major, minor, micro = int(match.group(1)), int(match.group(2)), int(match.group(3))
    notes = []
    if _BEFORE_RELEASE.match(rest):
        notes.append(f"SGLang {text} is no release: planned as {major}.{minor}.{micro}, whose rules it may not all have.")
    return Version(str(text).strip(), (major, minor, micro), int(match.group(4) or 0), tuple(notes))


def era_of(version: Version) -> tuple[Era, tuple[str, ...]]:
    """The row that sizes for this version, and notes; a version newer than the table gets the newest row and says so."""
    if version.release < ERAS[0].since:
        raise InputError(
            f"the sizing rules of SGLang {version.text}",
            f"a version older than {dotted(ERAS[0].since)}, the first in the table",
            f"use SGLang {dotted(ERAS[0].since)} or newer",
        )
    era = [row for row in ERAS if row.since <= version.release][-1]
    if version.release <= LAST_KNOWN:
        return era, version.notes
    note = (
        f"SGLang {version.text} is newer than {dotted(LAST_KNOWN)}, the last release whose sizing was checked: "
        f"planned by the rules of {era.name}; trust the first start more than this plan."
    )
    return era, (*version.notes, note)


def dotted(release: Release) -> str:
    """``(0, 5, 12)`` as ``0.5.12``."""
    return ".".join(str(part) for part in release)
