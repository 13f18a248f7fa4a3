# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes that one token of the KV pool costs a rank: a function for each family of attention, and the rules for drafts.

Private to this collection: may change at any time. ``charged`` is what SGLang takes from its budget for a token, ``stored``
what its buffers take; some releases get the two wrong, and the plan needs both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import DFLASH_TYPES, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry

_ELEMENT_BYTES = {
    "bfloat16": 2,
    "bf16": 2,
    "float16": 2,
    "fp16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
_INDEX_BLOCK = 128  # sparse attention keeps one 4-byte scale for so many index elements


def element_bytes(dtype: str, era: Era, geometry: Geometry) -> int:
    """Bytes of one KV element: 1 for fp8, 2 for the 16-bit types; ``auto`` is the model's type unless the checkpoint asks."""
    if dtype == "auto":
        return 1 if era.auto_fp8 and geometry.fp8_kv_checkpoint else 2
    try:
        return _ELEMENT_BYTES[dtype]
    except KeyError:
        raise InputError(
            f"the KV bytes per token with kv_cache_dtype {dtype}",
            "a type that is not in the table",
            f"use auto or one of {', '.join(sorted(_ELEMENT_BYTES))}",
        ) from None


@dataclass(frozen=True)
class Cell:
    """Bytes per token of one model: what the budget is charged, what the buffers take, and of these the sparse index."""

    charged: Union[int, float]
    stored: float
    index: int = 0
    split: float = 1.0


def _mha_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    ranks = max(1, deployment.attention_ranks // deployment.dcp_size)
    heads = max(1, geometry.kv_heads // ranks)
    stored = heads * (geometry.head_dim + geometry.v_head_dim) * geometry.layers * size
    width = geometry.head_dim + geometry.v_head_dim if era.v_head_dim else 2 * geometry.head_dim
    return Cell(heads * width * geometry.layers * size, stored)


def _mla_cell(_era: Era, geometry: Geometry, _deployment: Deployment, size: int) -> Cell:
    # the latent vector is the same for every head, so no rank can leave any of it out
    bytes_ = (geometry.latent_dim + geometry.rope_dim) * geometry.layers * size
    return Cell(bytes_, bytes_)


def _dsa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    width = (geometry.latent_dim + geometry.rope_dim) * size
    # fp8: the latent part with one 4-byte scale per 128 elements, the rope part unquantised
    stored_width = geometry.latent_dim + geometry.latent_dim // 128 * 4 + 2 * geometry.rope_dim if size == 1 else width
    index = (geometry.index_head_dim + geometry.index_head_dim // _INDEX_BLOCK * 4) * geometry.layers * deployment.dcp_size
    charged_width = stored_width if era.dsa_fp8_stored else width
    return Cell(charged_width * geometry.layers + index, stored_width * geometry.layers + index, index)


def _swa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    full, windowed, ratio = geometry.layers - geometry.swa_layers, geometry.swa_layers, deployment.swa_full_tokens_ratio
    every = _mha_cell(era, geometry, deployment, size).charged
    layer = every // geometry.layers
    if era.swa_split == "none":
        return Cell(every, every)
    weighted = layer * full + ratio * layer * windowed
    if era.swa_split == "cell":
        return Cell(weighted, weighted)
    split = geometry.layers / (ratio * windowed + full) if era.swa_split == "layers" else every / weighted
    return Cell(every, weighted, split=split)


CELLS: dict[str, Callable[[Era, Geometry, Deployment, int], Cell]] = {
    "mha": _mha_cell,
    "mla": _mla_cell,
    "dsa": _dsa_cell,
    "swa": _swa_cell,
}


def charged_bytes(
    era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment, size: int, cell: Cell
) -> Union[int, float]:
    """The target's cell with what this era adds for the draft."""
    if draft is None:
        return cell.charged
    rule = era.dflash_cell if deployment.algorithm in DFLASH_TYPES else f"eagle_{era.eagle_cell}"
    return _DRAFT_RULES[rule](era, target, draft, deployment, size, cell)


def _as_target(_era: Era, _t: Geometry, _d: Geometry, _dep: Deployment, _size: int, cell: Cell) -> Union[int, float]:
    return cell.charged


def _eagle_layers(_era: Era, t: Geometry, d: Geometry, _dep: Deployment, _size: int, cell: Cell) -> int:
    return int(cell.charged * (1 + d.draft_layers / t.layers))


def _eagle_layers_and_index(era: Era, t: Geometry, d: Geometry, dep: Deployment, size: int, cell: Cell) -> int:
    if not cell.index:
        return _eagle_layers(era, t, d, dep, size, cell)
    latent = cell.charged - cell.index
    index = cell.index // t.layers * d.draft_layers
    return int(cell.charged) + int(latent * d.draft_layers / t.layers) * dep.dcp_size + index


def _dflash_layers(_era: Era, t: Geometry, d: Geometry, _dep: Deployment, _size: int, cell: Cell) -> int:
    return -(-int(cell.charged) * (t.layers + d.layers) // t.layers)


def _dflash_own(era: Era, _t: Geometry, d: Geometry, dep: Deployment, size: int, cell: Cell) -> Union[int, float]:
    ranks = dep.attention_ranks if era.dflash_attention_width else dep.tp_size
    return cell.charged + _heads_bytes(d, ranks, _draft_size(dep, size)) * dep.dcp_size


_DRAFT_RULES: dict[str, Callable[[Era, Geometry, Geometry, Deployment, int, Cell], Union[int, float]]] = {
    "eagle_none": _as_target,
    "eagle_layers": _eagle_layers,
    "eagle_layers_and_index": _eagle_layers_and_index,
    "layers": _dflash_layers,
    "own": _dflash_own,
}


def _heads_bytes(draft: Geometry, ranks: int, size: int) -> int:
    return max(1, draft.kv_heads // ranks) * (draft.head_dim + draft.v_head_dim) * draft.draft_layers * size


def _draft_size(deployment: Deployment, size: int) -> int:
    return _ELEMENT_BYTES.get(deployment.draft_kv_cache_dtype or "", size)


def draft_stored_bytes(era: Era, draft: Optional[Geometry], deployment: Deployment, size: int) -> int:
    """Bytes per token that the draft's own pool takes: it always gets as many rows as the target."""
    if draft is None:
        return 0
    whole = replace(draft, layers=draft.draft_layers)
    own_width = replace(deployment, dcp_size=1)
    return int(CELLS[draft.family](era, whole, own_width, _draft_size(deployment, size)).stored) * deployment.dcp_size
