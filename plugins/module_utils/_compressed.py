# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pools of compressed attention (DeepSeek-V4). Private to this collection: may change at any time.

Every layer keeps the last tokens in a windowed pool, a share of the full one. A layer with compression ratio 4 or 128 also
keeps one compressed token for so many, ratio 4 with a sparse index, and the states from which the next ones are made: for
ratio 4 by page of the windowed pool, for 128 by page in early releases and by request since. Nothing is divided by ranks.
The sums are floating-point numbers, and their order of terms is that of the releases, so that they floor alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry

# Tokens of a page on cards, whatever page_size says, and on NPUs, which ask for it.
PAGE = 256
NPU_PAGE = 128
# SGLang's max_running_requests for these models, speculation or not.
REQUESTS = 256
# Share of the windowed pool where --swa-full-tokens-ratio is left at its default, and that default.
_SHARE, _NO_SHARE = 0.1, 0.8

_STATE_BYTES = 4
_SCALE_BYTES = 8
_INDEX_BLOCK = 128
# bytes to whole multiples of which a page of latent rows is padded
_PADDING = 576


@dataclass(frozen=True)
class SubPools:
    """Rows of the pools beside a full one: windowed tokens, compressed tokens by ratio, and states of ratio 4."""

    windowed: int
    by_4: int
    by_128: int
    states_4: int


def page_of(deployment: Deployment) -> int:
    """Tokens of a page; raises InputError for a size that these pools cannot have."""
    if deployment.page_size in (1, PAGE, NPU_PAGE):
        return NPU_PAGE if deployment.page_size == NPU_PAGE else PAGE
    raise InputError(
        f"the pools of compressed attention with page_size {deployment.page_size}",
        f"pages of {PAGE} tokens on every card, and of {NPU_PAGE} on NPUs",
        "leave page_size out",
    )


def bytes_per_token(era: Era, geometry: Geometry, deployment: Deployment) -> float:
    """Bytes of the budget that one token of the full pool costs a rank, the draft's layer included."""
    charged = _padded_bytes(geometry, deployment) if era.compressed == "padded" else _plain_bytes(era, geometry, deployment)
    if deployment.algorithm:
        layers = len(_ratios(era, geometry))
        charged *= (layers + 1) / layers
    return charged


def stored_bytes_per_token(era: Era, geometry: Geometry, deployment: Deployment) -> float:
    """Bytes that the buffers take for one token of the full pool, without states by request and without the draft."""
    stored = _padded_bytes(geometry, deployment)
    if era.compressed == "states":
        rings = _ring(128, deployment) / (geometry.window or 1)
        stored += _share(deployment) * rings * (2 * geometry.head_dim * _STATE_BYTES) * geometry.compress_ratios.count(128)
    return stored


def draft_bytes_per_token(deployment: Deployment, geometry: Geometry) -> int:
    """Bytes that the draft's one layer takes for a token: a windowed one without compression, rounded up."""
    return math.ceil(_share(deployment) * _row_bytes(geometry, deployment, page_of(deployment)))


def request_state_bytes(era: Era, geometry: Geometry, deployment: Deployment) -> int:
    """Bytes of the states of ratio 128, which the running requests take from the budget before any token (0.5.15 and newer)."""
    layers = geometry.compress_ratios.count(128)
    if era.compressed == "states" or not layers:
        return 0
    requests = deployment.max_running_requests or REQUESTS
    worker = max(1, requests // (deployment.dp_size if deployment.dp_attention else 1))
    ring = _ring(128, deployment)
    rows = -(-((worker + 1) * ring + ring + 1) // 128) * 128
    return rows * 2 * geometry.head_dim * _STATE_BYTES * layers


def sub_pools(era: Era, geometry: Geometry, deployment: Deployment, tokens: int) -> SubPools:
    """Rows of the other pools beside so many tokens in the full one."""
    page = page_of(deployment)
    windowed = int(tokens * _share(deployment)) // page * page
    states = windowed // _state_page(era, geometry, deployment) * _ring(4, deployment)
    return SubPools(windowed, tokens // 4, tokens // 128, states)


def _share(deployment: Deployment) -> float:
    ratio = deployment.swa_full_tokens_ratio
    return _SHARE if ratio == _NO_SHARE else ratio


def _ring(ratio: int, deployment: Deployment) -> int:
    """Rows of states for one page or request: twice as many where a draft's tokens may have to be taken back."""
    return (16 if ratio == 4 else 256) if deployment.algorithm else (8 if ratio == 4 else 128)


def _ratios(era: Era, geometry: Geometry) -> tuple[int, ...]:
    return geometry.compress_ratios + (geometry.nextn_ratios if era.compressed_extra_layer else ())


def _latent_bytes(geometry: Geometry) -> int:
    """One latent row: the part without positions in fp8, the rope part in 16 bits, and 8 bytes of scales."""
    return geometry.head_dim - geometry.rope_dim + geometry.rope_dim * 2 + _SCALE_BYTES


def _row_bytes(geometry: Geometry, deployment: Deployment, rows: int) -> float:
    """Bytes of one row in a page of so many, with its share of the padding, which NPUs do without."""
    if page_of(deployment) == NPU_PAGE:
        return _latent_bytes(geometry)
    return -(-rows * _latent_bytes(geometry) // _PADDING) * _PADDING / rows


def _index_bytes(geometry: Geometry) -> int:
    return geometry.index_head_dim + geometry.index_head_dim // _INDEX_BLOCK * 4


def _states_4(geometry: Geometry) -> int:
    return 2 * 2 * (geometry.head_dim + geometry.index_head_dim) * _STATE_BYTES


def _state_page(era: Era, geometry: Geometry, deployment: Deployment) -> int:
    """Windowed tokens that share one ring of states: the window, later a page."""
    return page_of(deployment) if era.compressed == "padded" else geometry.window or 1


def _plain_bytes(era: Era, geometry: Geometry, deployment: Deployment) -> float:
    """The sum of 0.5.12 to 0.5.20, which does not know that pages are padded."""
    ratios, share, row = _ratios(era, geometry), _share(deployment), _latent_bytes(geometry)
    by_4, by_128 = ratios.count(4), ratios.count(128)
    rings = _ring(4, deployment) / (geometry.window or 1)
    latent, index = 2 * 2 * geometry.head_dim * _STATE_BYTES, 2 * 2 * geometry.index_head_dim * _STATE_BYTES
    states_128 = 0.0
    if era.compressed == "states":
        states_128 = share * (_ring(128, deployment) / (geometry.window or 1)) * (2 * geometry.head_dim * _STATE_BYTES) * by_128
    return (
        share * row * len(ratios)
        + 1 / 4 * row * by_4
        + 1 / 128 * row * by_128
        + 1 / 4 * _index_bytes(geometry) * by_4
        + share * rings * latent * by_4
        + states_128
        + share * rings * index * by_4
    )


def _padded_bytes(geometry: Geometry, deployment: Deployment) -> float:
    """The sum from 0.5.21 on: what the buffers take."""
    ratios, page = geometry.compress_ratios, page_of(deployment)
    by_4, by_128 = ratios.count(4), ratios.count(128)
    windowed = _row_bytes(geometry, deployment, page) * len(ratios) + _ring(4, deployment) / page * _states_4(geometry) * by_4
    compressed_4 = 1 / 4 * _row_bytes(geometry, deployment, page // 4) + 1 / 4 * _index_bytes(geometry)
    compressed_128 = 1 / 128 * _row_bytes(geometry, deployment, page // 128)
    return _share(deployment) * windowed + (compressed_4 * by_4 + compressed_128 * by_128)
