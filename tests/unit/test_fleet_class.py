# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are of one class."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.plugin_utils._class_filters import fleet_class

CARD = {"index": 0, "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "total_gib": 95.593, "free_gib": 95.1, "startable_gib": 95.1}
MODEL = {"path": "/srv/models/kimi-k2.6", "fingerprint": "8d3f", "total_gib": 554.3}
HOST = {"gpus": [CARD] * 8, "checkpoints": {"model": MODEL, "draft": {"path": "/srv/models/dflash", "fingerprint": "11aa"}}}
FLAGS = {
    "model-path": "/srv/models/kimi-k2.6", "host": "0.0.0.0", "port": 30000, "tp-size": 8, "mem-fraction-static": "0.9259",
    "served-model-name": "kimi",
}  # fmt: skip
ASKED = {"sglang_version": "0.5.12.post1", "release": "/opt/sglang/releases/0.5.12.post1-3f2a", "device": "cuda"}
BARE = {"gpus": [], "checkpoints": {"model": {**MODEL, "fingerprint": ""}, "draft": {"fingerprint": ""}}}


def key(host: dict[str, Any] | None = None, flags: dict[str, Any] | None = None, **asked: Any) -> str:
    found = fleet_class(HOST if host is None else host, FLAGS if flags is None else flags, **{**ASKED, **asked})
    assert len(found["key"]) == 12
    return str(found["key"])


def test_what_a_class_is_made_of() -> None:
    found = fleet_class(HOST, FLAGS, **ASKED)
    assert found["facts"] == {
        "cards": [[8, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 95.6]],
        "free": "read",
        "sglang_version": "0.5.12.post1",
        "release": "0.5.12.post1-3f2a",
        "model": "8d3f",
        "draft": "11aa",
        "device": "cuda",
        "flags": {"model-path": "/srv/models/kimi-k2.6", "tp-size": "8"},
    }
    assert found["title"] == "8 x RTX PRO 6000 Blackwell Server Edition 96 GiB, SGLang 0.5.12.post1, kimi-k2.6"


def test_the_key_is_of_the_canonical_text() -> None:
    text = '{"cards":[],"device":"cpu","draft":"","flags":{"tp-size":"1"},"free":"read","model":"","release":"","sglang_version":""}'
    found = fleet_class({}, {"tp-size": 1, "port": 1}, device="cpu")
    assert (found["key"], found["title"]) == (hashlib.sha256(text.encode()).hexdigest()[:12], "cpu")


SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"flags": {**FLAGS, "port": 31000, "host": "127.0.0.1", "mem-fraction-static": "0.8", "served-model-name": "k"}}),
    # inventories give numbers as text, and a card's memory in use is no part of what it is
    ({}, {"flags": {**FLAGS, "tp-size": "8"}}),
    ({}, {"host": {**HOST, "gpus": [{**CARD, "index": number, "free_gib": 94.0, "total_gib": 95.61} for number in range(8)]}}),
    ({}, {"release": "/srv/elsewhere/0.5.12.post1-3f2a/"}),
    ({"gpu_free_gib": ["93.7"]}, {"gpu_free_gib": [50]}),
    ({"host": BARE, "gpu_free_gib": ["93.7"]}, {"host": BARE, "gpu_free_gib": [94.1, 93.9]}),
    ({}, {"weights_gib": 72.4}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_makes_no_difference(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(**one) == key(**other)


OTHERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"host": {**HOST, "gpus": [CARD] * 4}}),
    ({}, {"host": {**HOST, "gpus": [{**CARD, "name": "NVIDIA H200"}] * 8}}),
    ({}, {"host": {**HOST, "gpus": [{**CARD, "total_gib": 47.5}] * 8}}),
    ({}, {"host": {**HOST, "gpus": [CARD] * 7 + [{**CARD, "name": "NVIDIA H200"}]}}),
    ({}, {"host": {**HOST, "checkpoints": {**HOST["checkpoints"], "model": {**MODEL, "fingerprint": "8d40"}}}}),
    ({}, {"host": {**HOST, "checkpoints": {"model": MODEL}}}),
    ({}, {"flags": {**FLAGS, "chunked-prefill-size": 4096}}),
    ({}, {"flags": {**FLAGS, "enable-mixed-chunk": True}}),
    ({}, {"sglang_version": "0.5.13"}),
    ({}, {"release": "/opt/sglang/releases/0.5.12.post1-77aa"}),
    ({}, {"device": "cpu"}),
    ({}, {"gpu_free_gib": [93.7]}),
    ({"host": BARE, "gpu_free_gib": [93.7]}, {"host": BARE, "gpu_free_gib": [80]}),
    ({"host": BARE, "weights_gib": 72.4}, {"host": BARE, "weights_gib": 36.2}),
    ({"host": BARE, "draft_weights_gib": 1.31}, {"host": BARE}),
]


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_what_makes_another_class(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(**one) != key(**other)


TITLES: list[tuple[dict[str, Any], list[float], str]] = [
    (BARE, [93.7274], "94 GiB free a rank"),
    ({**HOST, "gpus": [CARD, {**CARD, "name": "AMD Instinct MI300X", "total_gib": 191.98}]}, [],
     "1 x Instinct MI300X 192 GiB + 1 x RTX PRO 6000 Blackwell Server Edition 96 GiB"),
    ({}, [], "cuda"),
]  # fmt: skip


@pytest.mark.parametrize(("host", "free", "cards"), TITLES)
def test_the_title_names_the_cards_first(host: dict[str, Any], free: list[float], cards: str) -> None:
    assert fleet_class(host, {}, gpu_free_gib=free, **ASKED)["title"] == f"{cards}, SGLang 0.5.12.post1"


@pytest.mark.parametrize(
    ("host", "flags", "more", "said"),
    [
        ("gpu01", {}, {}, "found str with dict as flags; give the result"),
        ({}, None, {}, "found dict with NoneType as flags"),
        ({}, {}, {"weights_gib": "many"}, "weights_gib: asked for GiB, found 'many'; give a number"),
        ({}, {}, {"gpu_free_gib": [None]}, "gpu_free_gib: asked for GiB, found None"),
    ],
)
def test_what_is_no_host_is_refused_in_words(host: Any, flags: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(AnsibleFilterError, match=said):
        fleet_class(host, flags, **more)
