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
    dspark: bool = False
    dflash_with_dp_attention: bool = False
    # layers that do not divide go one each to the last pipeline stages; before: all to the very last
    spread_layers: bool = False
    mla_pipeline: bool = False
    # V heads count with their own width; before: twice the K width
    v_head_dim: bool = False
    # and are stored with it, where there is one pool
    v_head_dim_stored: bool = False
    # fp8 sparse-attention cell counts the scales and the unquantised rope part that the pool stores
    dsa_fp8_stored: bool = False
    # the backend that keeps fp8 sparse attention without them is the default from compute capability 10 on
    dsa_raw_on_blackwell: bool = False
    # sparse-attention layers that keep an index: all | frequency (by the stride of index_topk_freq) | types (by indexer_types)
    dsa_index: str = "all"
    # GLM's fp8 rows on compute capability 12 are scaled ones all the same
    dsa_scaled_glm: bool = False
    # what an EAGLE-type draft adds to a cell without index is rounded by itself; before, the two together
    eagle_rounded_alone: bool = False
    # an index of pooled tokens is charged as such; before, as one of single tokens
    dsa_index_pooled: bool = False
    # every rank of decode context parallelism is charged for the whole index, which it keeps
    dsa_index_whole: bool = False
    # what kv_cache_dtype and the draft's own may be
    kv_dtypes: tuple[str, ...] = ("auto", "fp8_e5m2", "fp8_e4m3")
    draft_kv_dtypes: tuple[str, ...] = ()
    # FP8 requests of a checkpoint (see _kv_quantisation) that kv_cache_dtype auto follows
    auto_fp8: frozenset[str] = frozenset()
    # what auto became stands in the flags from then on, and a draft finds it there
    auto_recorded: bool = False
    # a block-diffusion draft on the attention backend fa4 keeps its own 16-bit type
    fa4_draft_own_type: bool = False
    # 4-bit pools: none | latent (MLA only) | heads (K and V too) | workspace (both recipes charged with one) | recipes (each by
    # what its attention backends read)
    fp4_cells: str = "none"
    # MiniMax's sparse index is charged in the type it is kept in: always 16 bits | gemm (fp8 on compute capability 10) | hopper too
    minimax_index: str = "16 bits"
    # compressed attention (DeepSeek-V4): none | states (all inside the cell) | request_states (c128 states by request) | padded
    compressed: str = "none"
    # compressed attention counts the next-token layer's entry of compress_ratios as a layer of the target
    compressed_extra_layer: bool = False
    # attention_backend aiter takes 15 % off the fraction above 8192 tokens of context
    aiter_fraction: bool = False
    multimodal_reserve: bool = False
    # decode context parallelism: none | rows (a request may be no longer than the rows of one rank) | widened
    dcp: str = "none"
    # its ranks share the KV heads only between them, so that each keeps more of them
    dcp_shares_heads: bool = False
    # it widens what the draft is charged with
    dcp_draft_layers: bool = False
    # an explicit fraction is multiplied by this for multimodal models
    multimodal_fraction: float = 1.0
    # rows of the request table: user (as asked) | capped (2048 to 4096 at most) | pool (half the pool at most)
    request_rule: str = "user"
    extra_request_rows: int = 0
    draft_columns: bool = False
    # columns for the pages of two steps under speculation: never | tree (topk > 1) | always | all_ranks (pages of all DCP ranks)
    page_columns: str = "never"


_KV_DTYPES = ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1")
_RECIPES = ("auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16")
_DRAFT_KV_DTYPES = ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16")
# what asks for FP8 in the order in which the releases learned to read it
_FP8_NVFP4 = frozenset({"modelopt_fp4", "modelopt_fp4_flat"})
_FP8_MODELOPT = frozenset({"modelopt_fp4", "modelopt_fp4_flat", "modelopt_fp8"})
_FP8_SCHEMES = frozenset({"modelopt_fp4", "modelopt_fp8"})
_FP8_MIXED = _FP8_SCHEMES | {"modelopt_mixed"}
_FP8_FLAT = _FP8_MIXED | {"modelopt_fp4_flat", "modelopt_fp8_flat", "modelopt_mixed_flat"}

_FIRST = Era("0.4.6-0.5.6", (0, 4, 6), speculative_head_room=True, extra_request_rows=1, multimodal_fraction=0.9)

# a row without changes stands where _sliding_window or _state_pool has a boundary
_CHANGES: tuple[tuple[Release, dict[str, Any]], ...] = (
    ((0, 4, 9), {"extra_request_rows": 0, "multimodal_fraction": 1.0, "aiter_fraction": True}),
    ((0, 5, 1), {"draft_columns": True}),
    ((0, 5, 2), {"mla_pipeline": True}),
    ((0, 5, 3), {"auto_fp8": _FP8_NVFP4}),
    ((0, 5, 3, 2), {}),
    ((0, 5, 4), {"auto_fp8": _FP8_MODELOPT, "kv_dtypes": _KV_DTYPES, "fp4_cells": "latent"}),
    ((0, 5, 5), {"fp4_cells": "heads"}),
    ((0, 5, 6), {"spread_layers": True}),
    (
        (0, 5, 7),
        {
            "name": "0.5.7-0.5.10",
            "integer_floor": True,
            "speculative_head_room": False,
            "v_head_dim": True,
        },
    ),
    ((0, 5, 8), {}),
    ((0, 5, 9), {"auto_fp8": _FP8_SCHEMES, "auto_recorded": True}),
    ((0, 5, 10), {"request_rule": "capped", "auto_fp8": _FP8_MIXED, "dsa_raw_on_blackwell": True}),
    ((0, 5, 11), {"name": "0.5.11-0.5.13", "dflash_cell": "layers", "extra_request_rows": 1, "v_head_dim_stored": True}),
    ((0, 5, 12), {"compressed": "states", "compressed_extra_layer": True}),
    ((0, 5, 13), {"page_columns": "tree", "compressed_extra_layer": False}),
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
    ((0, 5, 15), {"compressed": "request_states", "auto_fp8": _FP8_FLAT, "dcp": "rows"}),
    ((0, 5, 16), {"page_columns": "always", "kv_dtypes": _RECIPES, "fp4_cells": "workspace", "dspark": True, "fa4_draft_own_type": True}),
    ((0, 5, 17), {"dsa_fp8_stored": True, "dsa_scaled_glm": True, "auto_recorded": False, "dcp": "widened", "dcp_draft_layers": True}),
    (
        (0, 5, 18),
        {
            "name": "0.5.18-0.5.23",
            "dflash_cell": "own",
            "multimodal_reserve": True,
            "draft_kv_dtypes": _DRAFT_KV_DTYPES,
            "dcp_shares_heads": True,
            "auto_fp8": _FP8_FLAT | {"fp8"},
            "dsa_index": "frequency",
            "eagle_cell": "layers_and_index",
        },
    ),
    ((0, 5, 19), {"auto_fp8": _FP8_FLAT | {"fp8", "compressed_tensors"}, "page_columns": "all_ranks"}),
    ((0, 5, 20), {"dsa_index": "types"}),
    ((0, 5, 21), {"fp4_cells": "recipes", "compressed": "padded", "minimax_index": "gemm"}),
    ((0, 5, 22), {"dflash_attention_width": True, "dsa_index_whole": True, "dsa_index_pooled": True, "eagle_rounded_alone": True}),
    ((0, 5, 23), {"minimax_index": "hopper"}),
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
    # False for a string that names no release: then its release is that of the newest rules, and says nothing
    known: bool = True

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


def read_version(text: str) -> Version:
    """As parse_version, but a string that names no release is one that starts have to explain; raises InputError for no text."""
    if not str(text or "").strip():
        return parse_version(text)
    try:
        version = parse_version(text)
    except InputError:
        return _nameless(text)
    # what build tools write where they find no release to count from
    return _nameless(text) if version.release == (0, 0, 0) else version


def _nameless(text: str) -> Version:
    return Version(str(text).strip(), LAST_KNOWN, 0, (), known=False)


def era_of(version: Version) -> tuple[Era, tuple[str, ...]]:
    """The row that sizes for this version, and notes; a version newer than the table gets the newest row and says so."""
    if version.release < ERAS[0].since:
        raise InputError(
            f"the sizing rules of SGLang {version.text}",
            f"a version older than {dotted(ERAS[0].since)}, the first in the table",
            f"use SGLang {dotted(ERAS[0].since)} or newer",
        )
    era = [row for row in ERAS if row.since <= (*version.release, version.post)][-1]
    if version.release <= LAST_KNOWN:
        return era, version.notes
    note = (
        f"SGLang {version.text} is newer than {dotted(LAST_KNOWN)}, the last release whose sizing was checked: "
        f"planned by the rules of {era.name}; trust the first start more than this plan."
    )
    return era, (*version.notes, note)


def span(era: Era) -> str:
    """The releases of a row of the table, which may be fewer than those that its name spans."""
    later = [row.since for row in ERAS if row.since > era.since]
    return f"from {dotted(era.since)} on" + (f" and before {dotted(later[0])}" if later else "")


def dotted(release: Release) -> str:
    """``(0, 5, 12)`` as ``0.5.12``."""
    return ".".join(str(part) for part in release)
