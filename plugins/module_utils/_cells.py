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

from ansible_collections.inferops.sglang.plugins.module_utils._compressed import (
    bytes_per_token,
    draft_bytes_per_token,
    request_state_bytes,
    stored_bytes_per_token,
)
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import DFLASH_TYPES, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import (
    BLACKWELL,
    FP4_TYPES,
    KvType,
    charged_draft_type,
    draft_kv_type,
)
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import (
    SecondPool,
    has_two_pools,
    rules_of,
    tokens_by_requests,
)

_INDEX_BLOCK = 128  # sparse attention keeps one 4-byte scale for so many index elements
_FP4_BLOCK = 16  # 4-bit types keep one byte of scale for so many elements
_MX_BLOCK = 32  # mxfp8 does for so many

# Backends of sparse attention that read fp8 rows without scales, rope part and all.
_RAW_BACKENDS = ("trtllm", "tilelang", "aiter", "triton")
# Names that say no more than that the attention is sparse.
_SPARSE_BACKENDS = (None, "dsa", "nsa")


@dataclass(frozen=True)
class Cell:
    """Bytes per token of one model: what the budget is charged, what the buffers take, and of the first the sparse index."""

    charged: Union[int, float]
    stored: float
    index: int = 0
    # the tokens that the budget pays become parts[0] / parts[1] times as many in the full pool
    parts: tuple[Union[int, float], Union[int, float]] = (1, 1)
    second: Optional[SecondPool] = None
    # of one full layer of a model with two pools
    full_layer: int = 0
    # what the running requests take whatever the tokens
    request_bytes: int = 0


def _kv_heads(era: Era, geometry: Geometry, deployment: Deployment) -> int:
    """KV heads of a rank; never none, so heads are repeated where there are more ranks."""
    ranks = deployment.attention_ranks // (deployment.dcp_size if era.dcp_shares_heads else 1)
    return max(1, geometry.kv_heads // ranks)


def _mha_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    heads = _kv_heads(era, geometry, deployment)
    own, twice = geometry.head_dim + geometry.v_head_dim, 2 * geometry.head_dim
    charged, stored = own if era.v_head_dim else twice, own if era.v_head_dim_stored else twice
    each = heads * geometry.layers * size
    return Cell(charged * each, stored * each)


def _mla_cell(_era: Era, geometry: Geometry, _deployment: Deployment, size: int) -> Cell:
    # the latent vector is the same for every head, so no rank can leave any of it out
    bytes_ = (geometry.latent_dim + geometry.rope_dim) * geometry.layers * size
    return Cell(bytes_, bytes_)


def _dsa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    width = (geometry.latent_dim + geometry.rope_dim) * size
    scaled = size == 1 and not _raw_rows(era, geometry, deployment)
    # fp8: the latent part with one 4-byte scale per 128 elements, the rope part unquantised
    stored_width = geometry.latent_dim + geometry.latent_dim // 128 * 4 + 2 * geometry.rope_dim if scaled else width
    index = _index_row(era, geometry) * _index_layers(era, geometry)
    charged_index = index * (deployment.dcp_size if era.dsa_index_whole else 1)
    charged_width = stored_width if era.dsa_fp8_stored else width
    return Cell(
        charged_width * geometry.layers + charged_index,
        stored_width * geometry.layers + charged_index,
        charged_index,
    )


def _raw_rows(era: Era, geometry: Geometry, deployment: Deployment) -> bool:
    """Does the backend of sparse attention keep fp8 rows as they are? By its name, else by what the cards default to."""
    backend, capability = deployment.attention_backend, deployment.compute_capability or 0.0
    if backend not in _SPARSE_BACKENDS:
        return backend in _RAW_BACKENDS
    scaled_glm = era.dsa_scaled_glm and geometry.architecture.startswith("GlmMoeDsa") and 12.0 <= capability < 13.0
    return era.dsa_raw_on_blackwell and capability >= BLACKWELL and not scaled_glm


def _index_row(era: Era, geometry: Geometry) -> int:
    row = geometry.index_head_dim + geometry.index_head_dim // _INDEX_BLOCK * 4
    return -(-row // geometry.index_pool) if era.dsa_index_pooled else row


def _index_layers(era: Era, geometry: Geometry) -> int:
    """Layers that keep an index of their own; the others read that of a layer before them."""
    owners = {"frequency": geometry.index_by_frequency, "types": geometry.index_by_types}.get(era.dsa_index)
    return sum(owners) if owners else geometry.layers


def _minimax_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    """K and V of every layer, and a K (for some layers also a V) of one head for the index of each sparse layer."""
    main = 2 * _kv_heads(era, geometry, deployment) * geometry.head_dim * geometry.layers * size
    index = sum(geometry.index_heads) * geometry.index_head_dim
    bytes_ = main + index * _minimax_index_size(era, deployment, size)
    return Cell(bytes_, bytes_)


def _compressed_cell(era: Era, geometry: Geometry, deployment: Deployment, _size: int) -> Cell:
    return Cell(
        bytes_per_token(era, geometry, deployment),
        stored_bytes_per_token(era, geometry, deployment),
        request_bytes=request_state_bytes(era, geometry, deployment),
    )


def _minimax_index_size(era: Era, deployment: Deployment, size: int) -> int:
    if size == 2 or era.minimax_index == "16 bits" or deployment.kv_cache_dtype != "fp8_e4m3":
        return 2
    capability = deployment.compute_capability
    if capability is None:
        raise InputError(
            f"the sparse index of MiniMax with kv_cache_dtype fp8_e4m3 under SGLang {era.name}",
            "no compute_capability, which decides whether the index is fp8 too",
            "give compute_capability, such as 9.0",
        )
    gemm = BLACKWELL <= capability < 11.0 and deployment.attention_backend in (None, "trtllm_mha")
    return 1 if gemm or (era.minimax_index == "hopper" and 9.0 <= capability < BLACKWELL) else 2


def _qsa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    """K and V of every layer, and of so many tokens together one 16-bit key for the index of the layer."""
    cell = _mha_cell(era, geometry, deployment, size)
    index = geometry.index_head_dim * 2 // geometry.index_pool * geometry.layers
    return Cell(cell.charged + index, cell.stored + index)


def _swa_cell(era: Era, geometry: Geometry, deployment: Deployment, size: int) -> Cell:
    windows = geometry.windows
    if windows is None or not has_two_pools(windows, era.since, deployment):
        return _mha_cell(era, geometry, deployment, size)
    rules, ranks = rules_of(era.since), deployment.attention_ranks
    full_layer = max(1, geometry.kv_heads // ranks) * (geometry.head_dim + geometry.v_head_dim) * size
    windowed_layer = max(1, windows.kv_heads // ranks) * (windows.head_dim + windows.v_head_dim) * size
    full, windowed = full_layer * len(windows.full), windowed_layer * len(windows.windowed)
    if not windows.full:
        # one pool after all, of windowed layers: there is no full one to have a share of
        return Cell(windowed, windowed, full_layer=full_layer, second=SecondPool(0, windowed, 1.0, deployment.page_size))
    fixed = tokens_by_requests(windows, rules, deployment)
    ratio = deployment.swa_full_tokens_ratio if fixed is None else 0.0
    second = SecondPool(
        bytes_per_token=windowed,
        full_bytes=full,
        ratio=ratio,
        page=deployment.page_size,
        fixed=fixed,
        capped=deployment.max_total_tokens is not None,
        least=(windows.window or 0) + deployment.page_size if rules.least and fixed is None and windows.window else 0,
        limits_requests=rules.limits_requests,
    )
    weighted = full + ratio * windowed if ratio else full
    if rules.split == "cell":
        return Cell(weighted, weighted, full_layer=full_layer, second=second)
    every = full + windowed
    if rules.split == "bytes":
        return Cell(every, weighted, parts=(every, weighted), second=second)
    if rules.all_layers:
        every = full_layer * geometry.layers + (windowed if windows.row.heads == "swa" else 0)
    return Cell(every, weighted, parts=(geometry.layers, ratio * len(windows.windowed) + len(windows.full)), second=second)


CELLS: dict[str, Callable[[Era, Geometry, Deployment, int], Cell]] = {
    "mha": _mha_cell,
    "mla": _mla_cell,
    "dsa": _dsa_cell,
    "swa": _swa_cell,
    "compressed": _compressed_cell,
    "minimax_sparse": _minimax_cell,
    "qsa": _qsa_cell,
}


def cell_of(era: Era, geometry: Geometry, deployment: Deployment, kv: KvType) -> Cell:
    """Cell of a model whose pool has this type; raises InputError for a type that the family cannot have."""
    cell = CELLS[geometry.family](era, geometry, deployment, kv.size)
    if kv.name not in (*FP4_TYPES, "mxfp8"):
        return cell
    rule = _SCALED.get((geometry.family, kv.name))
    if rule is None or (geometry.family == "mha" and era.fp4_cells == "latent"):
        raise InputError(
            f"the KV pool of {geometry.architecture} with kv_cache_dtype {kv.name}",
            f"attention of the family {geometry.family}, for which SGLang {era.name} has no such pool that was checked",
            "use fp8_e4m3 or auto",
        )
    charged, stored = rule(era, geometry, deployment, int(cell.charged))
    return replace(cell, charged=charged, stored=stored)


def _fp4_latent(_era: Era, geometry: Geometry, _deployment: Deployment, bytes_: int) -> tuple[int, int]:
    halved = bytes_ // 2 + (geometry.latent_dim + geometry.rope_dim) // _FP4_BLOCK * geometry.layers
    return halved, halved


def _fp4_heads(era: Era, geometry: Geometry, deployment: Deployment, bytes_: int) -> tuple[int, int]:
    """Half the bytes and the scales; for some releases charged with a workspace that only nvfp4 has."""
    elements = _kv_heads(era, geometry, deployment) * geometry.head_dim
    stored = bytes_ // 2 + elements * geometry.layers * 2 // _FP4_BLOCK
    return stored + (elements * 2 if era.fp4_cells == "workspace" else 0), stored


def _nvfp4(era: Era, geometry: Geometry, deployment: Deployment, bytes_: int) -> tuple[int, int]:
    """Values, one or two layouts of their scales, and a workspace of one layer in fp8 where prefill reads from one."""
    if era.fp4_cells != "recipes":
        charged, _stored = _fp4_heads(era, geometry, deployment, bytes_)
        return charged, charged
    heads, dim = _kv_heads(era, geometry, deployment), geometry.head_dim
    layouts, workspace = _nvfp4_parts(era, deployment)
    each = heads * (dim // 2) + layouts * heads * (dim // _FP4_BLOCK)
    charged = each * geometry.layers * 2 + (heads * dim * 2 if workspace else 0)
    return charged, charged


def _nvfp4_parts(era: Era, deployment: Deployment) -> tuple[int, bool]:
    """Scale layouts, and whether there is a workspace: by the backend of prefill, which the card decides if nothing else."""
    capability = deployment.compute_capability
    if capability is None:
        raise InputError(
            f"the KV pool with kv_cache_dtype nvfp4 under SGLang {era.name}",
            "no compute_capability, which decides what prefill reads from",
            "give compute_capability, such as 10.0 or 12.0",
        )
    native_card = BLACKWELL <= capability < 11.0
    return (1, False) if native_card and deployment.attention_backend != "flashinfer" else (2 if native_card else 1, True)


def _mxfp8(era: Era, geometry: Geometry, deployment: Deployment, bytes_: int) -> tuple[int, int]:
    heads = _kv_heads(era, geometry, deployment)
    scaled = bytes_ + heads * (geometry.head_dim + geometry.v_head_dim) * geometry.layers // _MX_BLOCK
    return scaled, scaled


_SCALED: dict[tuple[str, str], Callable[[Era, Geometry, Deployment, int], tuple[int, int]]] = {
    ("mla", "fp4_e2m1"): _fp4_latent,
    ("mla", "fp4_mx_block16"): _fp4_latent,
    ("mha", "fp4_e2m1"): _fp4_heads,
    ("mha", "fp4_mx_block16"): _fp4_heads,
    ("mha", "nvfp4"): _nvfp4,
    ("mha", "mxfp8"): _mxfp8,
}


def charged_bytes(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment, cell: Cell) -> Union[int, float]:
    """The target's cell with what this era adds for the draft."""
    # compressed attention counts the draft by itself
    if draft is None or target.family == "compressed":
        return cell.charged
    if cell.second is not None:
        return _two_pools_and_draft(era, target, draft, deployment, cell)
    rule = era.dflash_cell if deployment.algorithm in DFLASH_TYPES else f"eagle_{era.eagle_cell}"
    return _DRAFT_RULES[rule](era, target, draft, deployment, cell)


def _two_pools_and_draft(era: Era, target: Geometry, draft: Geometry, deployment: Deployment, cell: Cell) -> Union[int, float]:
    rules = rules_of(era.since)
    if deployment.algorithm not in DFLASH_TYPES:
        return cell.charged + (cell.full_layer * draft.draft_layers if rules.eagle else 0)
    fixed = cell.second is not None and cell.second.fixed is not None
    counted = rules.by_requests_dflash if fixed else rules.dflash
    return _dflash_own(era, target, draft, deployment, cell) if counted else cell.charged


def _as_target(_era: Era, _t: Geometry, _d: Geometry, _dep: Deployment, cell: Cell) -> Union[int, float]:
    return cell.charged


def _eagle_layers(_era: Era, t: Geometry, d: Geometry, _dep: Deployment, cell: Cell) -> int:
    return int(cell.charged * (1 + d.draft_layers / t.layers))


def _eagle_layers_and_index(era: Era, t: Geometry, d: Geometry, dep: Deployment, cell: Cell) -> int:
    if not cell.index and not era.eagle_rounded_alone:
        return _eagle_layers(era, t, d, dep, cell)
    if not cell.index:
        return int(cell.charged) + int(cell.charged * d.draft_layers / t.layers)
    ranks = dep.dcp_size if era.dsa_index_whole else 1
    latent = int((cell.charged - cell.index) * d.draft_layers / t.layers)
    # no layer of the draft shares its index
    return int(cell.charged) + (latent + _index_row(era, t) * d.draft_layers) * ranks


def _dflash_layers(era: Era, t: Geometry, d: Geometry, dep: Deployment, cell: Cell) -> int:
    layers = d.layers * (dep.dcp_size if era.dcp_draft_layers else 1)
    return -(-int(cell.charged) * (t.layers + layers) // t.layers)


def _dflash_own(era: Era, t: Geometry, d: Geometry, dep: Deployment, cell: Cell) -> Union[int, float]:
    ranks = dep.attention_ranks if era.dflash_attention_width else dep.tp_size
    size = charged_draft_type(era, t, dep).size
    own = max(1, d.kv_heads // ranks) * (d.head_dim + d.v_head_dim) * d.draft_layers * size
    return cell.charged + own * dep.dcp_size


_DRAFT_RULES: dict[str, Callable[[Era, Geometry, Geometry, Deployment, Cell], Union[int, float]]] = {
    "eagle_none": _as_target,
    "eagle_layers": _eagle_layers,
    "eagle_layers_and_index": _eagle_layers_and_index,
    "layers": _dflash_layers,
    "own": _dflash_own,
}


def draft_stored_bytes(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> int:
    """Bytes per token that the draft's own pool takes: it always gets as many rows as the target."""
    if draft is None:
        return 0
    if target.family == "compressed":
        return draft_bytes_per_token(deployment, target)
    whole = replace(draft, layers=draft.draft_layers, index_by_frequency=(), index_by_types=())
    kv = draft_kv_type(era, target, draft, deployment)
    own_width = replace(deployment, dcp_size=1)
    return int(cell_of(era, whole, own_width, kv).stored) * deployment.dcp_size
