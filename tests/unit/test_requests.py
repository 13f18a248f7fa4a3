# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What running requests cost: the captured batch sizes as each release's own code lists them, and how many the pool holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._requests import (
    graph_batch_sizes,
    recommended_requests,
    verified_tokens,
)

DRAFT = json.loads((Path(__file__).parent / "fixtures/configs/kimi-k2.6-dflash.json").read_text(encoding="utf-8"))
TO_32 = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32]

# release, flags, free GiB, requests; what the code of that release lists
LISTED: list[tuple[tuple[int, int, int], dict[str, Any], float, int, list[int]]] = [
    # the two starts of Kimi K2.6 with its DFlash draft: 64 requests, then 8
    ((0, 5, 12), {"algorithm": "DFLASH", "tp_size": 8}, 93.73, 64, [*TO_32, 40, 44, 48, 52, 56, 60, 64]),
    ((0, 5, 12), {"algorithm": "DFLASH", "tp_size": 8}, 93.73, 8, [1, 2, 3, 4, 5, 6, 7, 8]),
    ((0, 5, 12), {"algorithm": "DFLASH", "tp_size": 8}, 93.73, 48, [*TO_32, 40, 44, 48]),
    # the number of requests is a size of its own where no step of the list has it
    ((0, 5, 23), {"algorithm": "EAGLE", "tp_size": 8}, 139.0, 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ((0, 5, 18), {}, 78.5, 5, [1, 2, 4, 5]),
    # the step at 64 came with 0.5.4
    ((0, 5, 3), {"algorithm": "EAGLE", "cuda_graph_max_bs": 80}, 78.5, 80, [*TO_32, 40, 44, 48, 52, 56, 60, 72, 80]),
    ((0, 5, 4), {"algorithm": "EAGLE", "cuda_graph_max_bs": 80}, 78.5, 80, [*TO_32, 40, 44, 48, 52, 56, 60, 64, 72, 80]),
    # the largest batch became a size of its own with 0.5.10
    ((0, 5, 9), {"cuda_graph_max_bs": 22}, 78.5, 2048, [1, 2, 4, 8, 12, 16]),
    ((0, 5, 10), {"cuda_graph_max_bs": 22}, 78.5, 2048, [1, 2, 4, 8, 12, 16, 22]),
    # cards of 24 GiB
    ((0, 5, 3), {}, 22.5, 2048, [1, 2, 4, 8, 12, 16]),
    ((0, 5, 19), {}, 22.5, 2048, [1, 2, 4, 8, 12, 16, 24]),
    ((0, 5, 20), {}, 22.5, 2048, [1, 2, 4, 8, 12, 16, 24, 32, 40, 48]),
    # cards of 16 and of 48 GiB
    ((0, 5, 20), {"tp_size": 4}, 14.6, 2048, [1, 2, 4, 8]),
    ((0, 5, 20), {}, 44.4, 2048, [1, 2, 4, 8, 12, 16, 24, 32]),
]  # fmt: skip


@pytest.mark.parametrize(("release", "flags", "free", "requests", "sizes"), LISTED)
def test_captured_batch_sizes(release: tuple[int, int, int], flags: dict[str, Any], free: float, requests: int, sizes: list[int]) -> None:
    assert graph_batch_sizes(release, Deployment(**flags), free, requests) == tuple(sizes)


# SGLang's largest batch for a card: free GiB, tp_size, the size
LARGEST = [
    (14.6, 1, 8), (22.5, 4, 160), (44.4, 2, 32), (44.4, 8, 160), (78.5, 1, 256), (78.5, 4, 512), (139.0, 2, 256), (178.0, 1, 512),
]  # fmt: skip


@pytest.mark.parametrize(("free", "tp_size", "largest"), LARGEST)
def test_the_largest_batch_by_the_size_of_the_card(free: float, tp_size: int, largest: int) -> None:
    sizes = graph_batch_sizes((0, 5, 23), Deployment(tp_size=tp_size), free, 4096)
    assert sizes is not None
    assert sizes[-1] == largest


UNKNOWN = [
    ((0, 5, 2), {}, 78.5),
    ((0, 5, 23), {"tp_size": 8, "dp_size": 8, "dp_attention": True}, 78.5),
    # a card of 58.5 GiB free may count as one under 60 GiB or as one above
    ((0, 5, 23), {}, 58.5),
]


@pytest.mark.parametrize(("release", "flags", "free"), UNKNOWN)
def test_batch_sizes_that_are_not_known(release: tuple[int, int, int], flags: dict[str, Any], free: float) -> None:
    assert graph_batch_sizes(release, Deployment(**flags), free, 8) is None


@pytest.mark.parametrize("size", [0, -8])
def test_no_batch_is_smaller_than_one(size: int) -> None:
    with pytest.raises(InputError, match=f"asked for cuda_graph_max_bs; found {size}; give a whole number from 1 up"):
        graph_batch_sizes((0, 5, 9), Deployment(cuda_graph_max_bs=size), 78.5, 8)


def test_no_graphs() -> None:
    assert graph_batch_sizes((0, 5, 23), Deployment(disable_cuda_graph=True), 78.5, 8) == ()


@pytest.mark.parametrize(
    ("flags", "tokens"),
    [
        ({}, 1),
        ({"algorithm": "DFLASH"}, 8),
        ({"algorithm": "DFLASH", "num_draft_tokens": 8}, 8),
        ({"algorithm": "DDTREE", "num_draft_tokens": 24}, 24),
        ({"algorithm": "DDTREE"}, None),
        ({"algorithm": "EAGLE"}, None),
        ({"algorithm": "EAGLE", "num_draft_tokens": 4}, 4),
    ],
)
def test_tokens_that_a_graph_computes_for_a_request(flags: dict[str, Any], tokens: int | None) -> None:
    assert verified_tokens(Deployment(**flags), read_geometry(DRAFT)) == tokens


@pytest.mark.parametrize(
    ("tokens", "context", "concurrent", "dp_size", "requests"),
    [
        (200110, 200000, 1.0, 1, 1),
        (399999, 200000, 1.0, 1, 1),
        (400000, 200000, 1.0, 1, 2),
        # a pool that falls short, and what is asked for
        (192406, 200000, 1.0, 1, 1),
        (192406, 200000, 2.5, 1, 3),
        (1000000, 32768, 1.0, 1, 30),
        # every worker has a pool of its own
        (1000000, 32768, 1.0, 4, 120),
        (0, 32768, 1.0, 1, None),
    ],
)
def test_how_many_requests_the_pool_holds(tokens: int, context: int, concurrent: float, dp_size: int, requests: int | None) -> None:
    assert recommended_requests(tokens, context, concurrent, dp_size) == requests
