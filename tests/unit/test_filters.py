# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters over a config.json, as a template calls them: what they give, and one clear error for what they cannot."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display
from ansible_collections.inferops.sglang.plugins.filter import sglang as filters
from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS
from ansible_collections.inferops.sglang.plugins.modules import memory_plan as module

ROOT = Path(__file__).resolve().parents[2]
PLUGIN_UTILS = "ansible_collections.inferops.sglang.plugins.plugin_utils"
FILTERS = filters.FilterModule().filters()


def config(name: str) -> dict[str, Any]:
    return json.loads((Path(__file__).parent / f"fixtures/configs/{name}.json").read_text(encoding="utf-8"))


KIMI = config("kimi-k2.6")
DRAFT = config("kimi-k2.6-dflash")
WITH_DRAFT = {"tp_size": 8, "draft": DRAFT, "speculative_algorithm": "DFLASH"}
CARDS = {**WITH_DRAFT, "sglang_version": "0.5.12.post1", "gpu_free_gib": 94.0, "weights_gib": 72.3, "draft_weights_gib": 1.312}

# (kv_lora_rank 512 + qk_rope_head_dim 64) * 61 layers * 2 bytes = 70,272; the draft: 6 layers * 1 head * 2 * 128 * 2 bytes = 3,072
BYTES = [
    ("kimi-k2.6", {}, 70272),
    ("kimi-k2.6", {"tp_size": 8}, 70272),
    ("kimi-k2.6", {"tp_size": "8", "kv_cache_dtype": "fp8_e4m3"}, 35136),
    # the draft by the rule of layers, 70,272 * 67 / 61, and from 0.5.18 on by its own geometry
    ("kimi-k2.6", {**WITH_DRAFT, "sglang_version": "0.5.12.post1"}, 77184),
    ("kimi-k2.6", {**WITH_DRAFT, "sglang_version": "0.5.17", "kv_cache_dtype": "fp8_e4m3"}, 38592),
    ("kimi-k2.6", WITH_DRAFT, 73344),
    ("kimi-k2.6", {**WITH_DRAFT, "part": "target"}, 70272),
    ("kimi-k2.6", {**WITH_DRAFT, "part": "draft"}, 3072),
    # 32 layers * 8 KV heads * 2 * 128 * 2 bytes, over so many ranks and no further than one head
    ("llama-3.1-8b", {}, 131072),
    ("llama-3.1-8b", {"tp_size": 4}, 32768),
    ("llama-3.1-8b", {"tp_size": 16}, 16384),
    ("llama-3.1-8b", {"tp_size": 8, "enable_dp_attention": True, "dp_size": 4}, 65536),
]


@pytest.mark.parametrize(("name", "options", "expected"), BYTES)
def test_bytes_of_a_token(name: str, options: dict[str, Any], expected: int) -> None:
    found = FILTERS["kv_bytes"](config(name), **options)
    assert found == expected
    assert isinstance(found, int)


# the derived cases of Kimi K2.6 with its DFlash draft, whose fractions are rounded up here: 200,000 and 262,144 tokens, bf16 and
# fp8, on cards of 94.0 and 139.8 GiB; by the rules up to 0.5.13, up to 0.5.17, and from 0.5.18 on
FRACTIONS = [
    ({"context_length": 200000}, (0.9221, 0.9361, 0.9295)),
    ({"context_length": 200000, "kv_cache_dtype": "fp8_e4m3"}, (0.8457, 0.8596, 0.8569)),
    ({"context_length": 262144, "min_headroom_gib": 2}, (0.9697, 0.9836, 0.9747)),
    ({"context_length": 262144, "kv_cache_dtype": "fp8_e4m3"}, (0.8694, 0.8834, 0.8794)),
    ({"context_length": 262144, "gpu_free_gib": 139.8}, (0.652, 0.6614, 0.6554)),
]


@pytest.mark.parametrize(("options", "by_era"), FRACTIONS)
def test_a_fraction_by_the_rules_of_three_eras(options: dict[str, Any], by_era: tuple[float, ...]) -> None:
    versions = ("0.5.12.post1", "0.5.17", "0.5.23")
    found = [FILTERS["mem_fraction"](KIMI, **{**CARDS, **options, "sglang_version": version}) for version in versions]
    assert found == list(by_era)


def test_the_newest_checked_release_is_the_default() -> None:
    documented = yaml.safe_load((ROOT / "plugins/filter/kv_bytes.yml").read_text(encoding="utf-8"))["DOCUMENTATION"]
    newest = documented["options"]["sglang_version"]["default"]
    assert FILTERS["kv_bytes"](KIMI, **WITH_DRAFT, sglang_version=newest) == FILTERS["kv_bytes"](KIMI, **WITH_DRAFT)
    assert newest == "0.5.23"


def test_arguments_as_text_are_cast() -> None:
    text = {**CARDS, "tp_size": "8", "context_length": "200000", "gpu_free_gib": "95.1,94.0", "weights_gib": "72.3"}
    assert FILTERS["mem_fraction"](KIMI, **text) == 0.9221


def test_an_option_of_none_is_one_that_is_left_out() -> None:
    assert FILTERS["mem_fraction"](KIMI, **CARDS, context_length=200000, pool_target=None) == 0.9221


def test_a_tight_fraction_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda _self, text: warned.append(text))
    assert FILTERS["mem_fraction"](KIMI, **CARDS, context_length=200000) == 0.9221
    assert warned == []
    assert FILTERS["mem_fraction"](KIMI, **{**CARDS, "gpu_free_gib": 90.0}, context_length=200000) == 0.9631
    assert len(warned) == 1
    assert "2.69 GiB" in warned[0]


def test_the_whole_plan_is_that_of_the_module() -> None:
    plan = FILTERS["memory_plan"](KIMI, **CARDS, context_length=262144)
    assert sorted(plan) == sorted(yaml.safe_load(module.RETURN)["plan"]["contains"])
    assert (plan["verdict"], plan["alternatives"][0]["change"]) == ("impossible", "kv_cache_dtype=fp8_e4m3")
    impossible = FILTERS["memory_plan"](KIMI, **{**CARDS, "gpu_free_gib": 24.0}, context_length=200000)
    assert (impossible["verdict"], impossible["mem_fraction_static"]) == ("impossible", None)


def test_a_fraction_that_is_given() -> None:
    """The second start of the founding case: 0.92 on its card gave 192,406 tokens."""
    card = {**CARDS, "gpu_free_gib": 93.727, "free_at_sizing_gib": 21.329}
    plan = FILTERS["memory_plan"](KIMI, **card, mem_fraction_static=0.92)
    assert abs(plan["predicted_tokens"] - 192406) <= 20


REFUSED = [
    # misspelt, and unlike anything
    ("kv_bytes", KIMI, {"tp_sizes": 8}, ["tp_sizes", "is tp_size meant?", "known are", "kv_cache_dtype"]),
    ("kv_bytes", KIMI, {"context_length": 1}, ["the keyword context_length", "known are attention_backend"]),
    ("mem_fraction", KIMI, {**CARDS, "contxt_length": 200000}, ["contxt_length", "is context_length meant?", "pool_target"]),
    ("mem_fraction", KIMI, {**CARDS, "mem_fraction_static": 0.9}, ["the keyword mem_fraction_static"]),
    ("memory_plan", KIMI, {**CARDS, "context_length": 1, "model": "/srv/models"}, ["the keyword model", "known are"]),
    # not the right kind of thing
    ("kv_bytes", "config.json", {}, ["found str", "from_json"]),
    ("kv_bytes", [], {}, ["content of a config.json", "found list"]),
    ("kv_bytes", {"architectures": ["NoSuchForCausalLM"]}, {}, ["NoSuchForCausalLM"]),
    ("kv_bytes", KIMI, {"part": "both"}, ["part", "charged", "both"]),
    ("kv_bytes", KIMI, {"tp_size": "eight"}, ["tp_size", "eight", "int"]),
    ("kv_bytes", KIMI, {"tp_size": 7}, ["7 ranks", "64 attention heads"]),
    ("kv_bytes", KIMI, {"draft": DRAFT}, ["DFlashDraftModel", "speculative_algorithm unset"]),
    ("kv_bytes", KIMI, {**WITH_DRAFT, "sglang_version": "0.5.9"}, ["DFLASH", "use SGLang 0.5.11"]),
    ("mem_fraction", KIMI, {"context_length": 1}, ["missing", "sglang_version"]),
    ("mem_fraction", KIMI, CARDS, ["none of context_length", "give one of them"]),
    ("mem_fraction", KIMI, {"context_length": 1, "sglang_version": "0.5.23", "gpu_free_gib": 90}, ["the memory left by the weights"]),
    # nothing to start with
    (
        "mem_fraction",
        KIMI,
        {**CARDS, "context_length": 200000, "gpu_free_gib": 80.0},
        ["asked for 200,000 tokens", "found", "impossible", "tp_size=16", "context_length="],
    ),
    ("mem_fraction", KIMI, {**CARDS, "context_length": 200000, "gpu_free_gib": 24.0}, ["0 tokens at most", "impossible"]),
]


@pytest.mark.parametrize(("name", "model", "options", "parts"), REFUSED)
def test_one_clear_error(name: str, model: Any, options: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(AnsibleFilterError) as error:
        FILTERS[name](model, **options)
    text = str(error.value)
    assert text.startswith(f"{name}: ")
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_every_filter_is_documented_with_options_that_it_takes(name: str) -> None:
    documented = yaml.safe_load((ROOT / f"plugins/filter/{name}.yml").read_text(encoding="utf-8"))["DOCUMENTATION"]
    assert documented["name"] == name
    room = next(room for room, names in filters._ROOMS.items() if name in names)
    if room != "_plan_filters":
        function = getattr(import_module(f"{PLUGIN_UTILS}.{room}"), name)
        assert len(documented["options"]) == len(inspect.signature(function).parameters)
        assert set(list(documented["options"])[1:]) == set(list(inspect.signature(function).parameters)[1:])
        return
    keywords = [option for option in documented["options"] if option != "_input"]
    with pytest.raises(AnsibleFilterError, match="no_such_keyword") as error:
        FILTERS[name](KIMI, no_such_keyword=1)
    known = str(error.value).split("known are ")[1].split(", ")
    assert [keyword for keyword in keywords if keyword not in known] == []


def test_the_playbook_takes_every_option_of_the_plan() -> None:
    """But for the models, the release, the rows and what a row is solved for."""
    own = {"model", "model_config", "draft_model", "draft_model_config", "sglang_version", "context_length", "kv_cache_dtype"}
    listed = yaml.safe_load((ROOT / "playbooks/vars/plan_k26.yml").read_text(encoding="utf-8"))["__plan_options"]
    assert set(PLAN_OPTIONS) - own - {"mem_fraction_static", "pool_target"} <= set(listed)
