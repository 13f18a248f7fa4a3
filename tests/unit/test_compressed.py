# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pools of DeepSeek-V4; their tokens by release are in test_cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._compressed import (
    SubPools,
    bytes_per_token,
    request_state_bytes,
    sub_pools,
)
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, InputError, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import GIB, build_pool, free_at_sizing, pool_tokens

CONFIGS = Path(__file__).parent / "fixtures/configs"


def config(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CONFIGS / f"deepseek-v4-{name}.json").read_text(encoding="utf-8"))
    return found


def geometry(name: str) -> Geometry:
    return read_geometry(config(name))


def era(version: str) -> Era:
    return era_of(parse_version(version))[0]


# What the releases log as bytes_per_full_token.
@pytest.mark.parametrize(
    ("version", "logged"), [("0.5.12.post1", 15955.85), ("0.5.15.post1", 7705.45), ("0.5.20", 7705.45), ("0.5.21", 7086.75)]
)
def test_bytes_that_the_releases_log(version: str, logged: float) -> None:
    assert bytes_per_token(era(version), geometry("flash"), Deployment(tp_size=8)) == pytest.approx(logged, abs=0.005)


def test_nothing_is_divided_by_ranks() -> None:
    cells = {build_pool(era("0.5.23"), geometry("flash"), None, Deployment(tp_size=ranks)).charged for ranks in (1, 4, 8)}
    assert len(cells) == 1


def test_a_draft_layer_is_counted_into_the_cell() -> None:
    """43 layers and one more; the rings of states are twice as wide under speculation."""
    target = geometry("flash")
    drafted = build_pool(era("0.5.23"), target, target, Deployment(tp_size=8, algorithm="EAGLE"))
    # rows of 584 bytes, 585 with the padding of a page, 864 where a page has two of them; states of 10,240; an index of 132
    single = 0.1 * (585 * 43 + 16 / 256 * 10240 * 21) + ((585 + 132) / 4 * 21 + 864 / 128 * 20)
    assert drafted.charged == pytest.approx(single * 44 / 43, rel=1e-12)


def test_states_by_request() -> None:
    """257 slots of 128 rows and one ring more, in whole 128s, of 2 x 512 x 4 bytes in each of 20 layers."""
    rows = 257 * 128 + 128 + 128
    assert request_state_bytes(era("0.5.15"), geometry("flash"), Deployment()) == rows * 4096 * 20
    assert request_state_bytes(era("0.5.14"), geometry("flash"), Deployment()) == 0
    few = Deployment(max_running_requests=32, dp_size=4, dp_attention=True, tp_size=8)
    assert request_state_bytes(era("0.5.23"), geometry("flash"), few) == (9 * 128 + 256) * 4096 * 20


def test_pools_that_a_start_on_npus_logged() -> None:
    """DSV4 pool sizes: full=32768, swa=3200, c4=8192, c128=256, c4_state=200, on NPUs with pages of 128."""
    found = sub_pools(era("0.5.18"), geometry("flash"), Deployment(tp_size=4, page_size=128), 32768)
    assert found == SubPools(windowed=3200, by_4=8192, by_128=256, states_4=200)


def test_pools_beside_the_full_one() -> None:
    """As 0.5.12 and 0.5.21 log them beside 6,279,680 and 13,755,904 tokens."""
    early = sub_pools(era("0.5.12"), geometry("flash"), Deployment(), 6279680)
    late = sub_pools(era("0.5.21"), geometry("flash"), Deployment(), 13755904)
    assert early == SubPools(627968, 1569920, 49060, 39248)
    assert late == SubPools(1375488, 3438976, 107468, 42984)


def test_public_pools_are_whole_pages() -> None:
    """120,576, 73,472 and 2,413,824 tokens of Flash on 8 cards of 46 GB, without and with a draft, and on two stages."""
    assert [tokens % 256 for tokens in (120576, 73472, 2413824)] == [0, 0, 0]
    pool = build_pool(era("0.5.18"), geometry("flash"), None, Deployment(tp_size=8))
    assert pool.page == 256
    paid = 120576 * float(pool.charged) + pool.fixed_bytes
    assert pool_tokens(pool, 44.0, (paid + 1000) / GIB + 44.0 * 0.1, 0.9) == 120576


def test_the_states_come_off_the_budget() -> None:
    pool = build_pool(era("0.5.18"), geometry("flash"), None, Deployment(tp_size=8))
    # less than 2.53 GiB outside the slack: no pool at all
    assert pool_tokens(pool, 100.0, 12.5, 0.9) == 0
    assert pool_tokens(pool, 100.0, 12.6, 0.9) > 0


def test_the_stage_that_decides_depends_on_the_requests() -> None:
    """Of Pro's two stages the first keeps more states of requests, the second more for a token; by hand, in bytes.

    0.5.21: the first has 16 layers of ratio 128 and 14 of ratio 4, the second 15 and 16. 2,835,712 is what the release gives.
    """
    few, many = (
        build_pool(era("0.5.21"), geometry("pro"), None, Deployment(tp_size=4, pp_size=2, max_running_requests=requests))
        for requests in (8, 3000)
    )
    measured = (44.965702278021915, 40.07731273249928, 0.9136)
    assert pool_tokens(many, *measured) == 2835712
    assert free_at_sizing(many, measured[0], measured[2], 2835712) == pytest.approx(measured[1], abs=0.002)
    assert many.other_stages[0][1] == (3001 * 128 + 256) // 128 * 128 * 4096 * 16
    # with few requests the second stage decides, as its cell is the larger
    assert pool_tokens(few, *measured) == int((36.1922756 * GIB - few.request_bytes) // few.charged) // 256 * 256


@pytest.mark.parametrize(
    ("version", "flags", "words"),
    [
        ("0.5.11", {}, ["does not know them", "0.5.12"]),
        ("0.5.18", {"page_size": 64}, ["page_size 64", "pages of 256"]),
        ("0.5.18", {"kv_cache_dtype": "bfloat16"}, ["kv_cache_dtype bfloat16", "use auto"]),
        ("0.5.18", {"algorithm": "NGRAM"}, ["NGRAM", "EAGLE or DSPARK"]),
        ("0.5.15", {"algorithm": "DSPARK"}, ["DSPARK", "use none or EAGLE"]),
        ("0.5.12", {"pp_size": 2}, ["pp_size 2", "0.5.13"]),
        ("0.5.23", {"dcp_size": 2, "tp_size": 8}, ["dcp_size 2", "use dcp_size 1"]),
    ],
)
def test_what_it_cannot_have(version: str, flags: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        build_pool(era(version), geometry("flash"), None, Deployment(**flags))
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"compress_ratios": [0] * 42}, ["43 layers"]),
        ({"compress_ratios": [0, 1, 2] * 20}, ["ratios of 0, 4 and 128"]),
        ({"kv_source_layer_ids": [3]}, ["ratios of 0, 4 and 128"]),
        ({"compress_ratios": None}, ["compress_ratios None"]),
        ({"sliding_window": None}, ["sliding_window"]),
        ({"head_dim": None}, ["head_dim"]),
    ],
)
def test_broken_configurations(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_geometry({**config("flash"), **change})
    assert [word for word in words if word not in str(caught.value)] == []
