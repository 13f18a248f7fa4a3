# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no checkpoint has in its config.json is refused by name, and never passes for a key that is not there."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._config import (
    InputError,
    optional_count,
    optional_list,
    optional_number,
    optional_text,
    shown,
)
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import read_geometry

CONFIGS = Path(__file__).parent / "fixtures/configs"
NAN, INFINITE = float("nan"), float("inf")
NO_COUNTS = ("8", "", 8.0, 8.5, -8, [], [8], {}, True, False, NAN, INFINITE, 10**9 + 1, 10**400, 10**5000)


def changed(name: str, path: Sequence[str], value: Any) -> dict[str, Any]:
    """A published config.json with one value put in another's place."""
    config = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    part = config
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = copy.deepcopy(value)
    return dict(config)


@pytest.mark.parametrize("value", NO_COUNTS, ids=range(len(NO_COUNTS)))
def test_no_count(value: Any) -> None:
    with pytest.raises(InputError, match=r"asked for some_key of a config.json; found .* no whole number from 1 to 1000000000"):
        optional_count({"some_key": value}, "some_key")


@pytest.mark.parametrize(
    ("key", "value", "count"),
    [
        ("head_dim", None, None),
        ("head_dim", 1, 1),
        ("head_dim", 10**9, 10**9),
        ("num_hidden_layers", 10_000, 10_000),
        ("num_nextn_predict_layers", 0, None),
        ("sliding_window", 0, None),
        ("v_head_dim", 0, None),
    ],
)
def test_counts(key: str, value: Any, count: Any) -> None:
    assert optional_count({key: value}, key) == count
    assert optional_count({}, key) is None


@pytest.mark.parametrize(("key", "value"), [("num_hidden_layers", 10_001), ("head_dim", 0), ("sliding_window", False), ("v_head_dim", 0.0)])
def test_counts_that_are_none_by_their_key(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{key} of a config.json; found {value}, which is no whole number"):
        optional_count({key: value}, key)


@pytest.mark.parametrize("value", [NAN, INFINITE, -INFINITE, 0, 0.0, -1, "2", True, [], 10**400, 10**9 + 1])
def test_no_number(value: Any) -> None:
    with pytest.raises(InputError, match=r"some_key of a config.json; found .* no number above 0"):
        optional_number({"some_key": value}, "some_key")


@pytest.mark.parametrize("value", [1, True, "x", {}, 0, ""])
def test_no_list(value: Any) -> None:
    with pytest.raises(InputError, match=r"some_key of a config.json; found .* no list"):
        optional_list({"some_key": value}, "some_key")


@pytest.mark.parametrize("value", [1, True, [], {}, 0])
def test_no_text(value: Any) -> None:
    with pytest.raises(InputError, match=r"some_key of a config.json; found .* no string"):
        optional_text({"some_key": value}, "some_key")


@pytest.mark.parametrize(
    ("value", "text"),
    [("8", "'8'"), ("\ud800", "'\\ud800'"), (8.0, "8.0"), (10**5000, "a int"), ("x" * 500, "'" + "x" * 119 + "...")],
    ids=["text", "surrogate", "float", "digits", "long"],
)
def test_any_value_can_be_printed(value: Any, text: str) -> None:
    assert shown(value) == text


# config.json, the key in it, what it is given, and the words of the error
FAULTS: list[tuple[str, str, Any, str]] = [
    # a figure that would count as absent
    ("llama-3.1-8b", "num_key_value_heads", "8", "num_key_value_heads of a config.json; found '8'"),
    ("llama-3.1-8b", "num_key_value_heads", 0, "num_key_value_heads of a config.json; found 0"),
    ("llama-3.1-8b", "num_key_value_heads", 8.0, "num_key_value_heads of a config.json; found 8.0"),
    ("llama-3.1-8b", "head_dim", [], r"head_dim of a config.json; found \[\]"),
    ("llama-3.1-8b", "v_head_dim", "128", "v_head_dim of a config.json; found '128'"),
    ("llama-3.1-8b", "max_position_embeddings", -1, "max_position_embeddings of a config.json; found -1"),
    ("mimo-v2-flash", "swa_v_head_dim", True, "swa_v_head_dim of a config.json; found True"),
    ("mimo-v2-flash", "swa_head_dim", 192.0, "swa_head_dim of a config.json; found 192.0"),
    ("mimo-v2-flash", "hybrid_layer_pattern", 3, "hybrid_layer_pattern of a config.json; found 3"),
    ("gemma-4-26b-a4b", "text_config.global_head_dim", "512", "global_head_dim of a config.json; found '512'"),
    ("gemma-4-26b-a4b", "text_config.num_global_key_value_heads", -2, "num_global_key_value_heads of a config.json; found -2"),
    ("glm-5.3-flash", "text_config.index_kpool", "4", "index_kpool of a config.json; found '4'"),
    ("glm-5.2", "indexer_types", "full", "indexer_types of a config.json; found 'full'"),
    ("glm-5.2", "index_topk_pattern", 5, "index_topk_pattern of a config.json; found 5"),
    ("falcon-h1-34b", "mamba_d_ssm", [4096], r"mamba_d_ssm of a config.json; found \[4096\]"),
    ("minicpm-sala", "lightning_nkv", "32", "lightning_nkv of a config.json; found '32'"),
    ("deepseek-v3", "num_nextn_predict_layers", True, "num_nextn_predict_layers of a config.json; found True"),
    ("kimi-k2.6-dflash", "block_size", "8", "block_size of a config.json; found '8'"),
    # more than any model has
    ("llama-3.1-8b", "num_hidden_layers", 10**9, "num_hidden_layers of the model; found 1000000000, .* 1 to 10000;"),
    ("deepseek-v3.2", "num_hidden_layers", 10**400, "num_hidden_layers of the model; found 1000"),
    ("deepseek-v3", "kv_lora_rank", 10**5000, "kv_lora_rank of the model; found a int"),
    # ropes
    ("llama-3.1-8b", "rope_scaling", {"factor": NAN}, "factor of a config.json; found nan"),
    ("llama-3.1-8b", "rope_scaling", {"factor": INFINITE}, "factor of a config.json; found inf"),
    ("llama-3.1-8b", "rope_scaling", {"factor": -2}, "factor of a config.json; found -2"),
    ("llama-3.1-8b", "rope_scaling", {"factor": 0}, "factor of a config.json; found 0"),
    ("llama-3.1-8b", "rope_scaling", {"factor": "8"}, "factor of a config.json; found '8'"),
    ("llama-3.1-8b", "rope_scaling", [8.0], r"rope_scaling of a config.json; found \[8.0\]"),
    # lists, dictionaries and numbers where a name belongs, and the other way round
    ("deepseek-v4-flash", "compress_ratios", [[4]] * 80, r"compress_ratios \[\[4\], "),
    ("deepseek-v4-flash", "compress_ratios", [{}] * 80, r"compress_ratios \[\{\}, "),
    ("deepseek-v4-flash", "compress_ratios", [4.0] * 80, r"compress_ratios \[4.0, "),
    ("lfm2-1.2b", "layer_types", 5, "layer_types of a config.json; found 5"),
    ("granite-4.0-h-small", "layer_types", True, "layer_types of a config.json; found True"),
    ("qwen4-exp", "text_config.layer_types", "x", "layer_types of a config.json; found 'x'"),
    ("minicpm-sala", "mixer_types", 7, "mixer_types of a config.json; found 7"),
    ("minicpm-sala", "mixer_types", {"a": 1}, r"mixer_types of a config.json; found \{'a': 1\}"),
    ("zaya1-8b", "zaya_layers", 3, "zaya_layers of a config.json; found 3"),
    ("falcon-h1-34b", "mamba_ssm_dtype", ["float32"], r"mamba_ssm_dtype of a config.json; found \['float32'\]"),
    ("qwen3-next-80b", "mamba_ssm_dtype", {}, r"mamba_ssm_dtype of a config.json; found \{\}"),
    ("kimi-linear-48b", "linear_attn_config.kda_layers", [1, "2"], "kda_layers of a config.json; found the entry '2'"),
    ("kimi-linear-48b", "linear_attn_config.kda_layers", [1, True], "kda_layers of a config.json; found the entry True"),
    ("kimi-linear-48b", "linear_attn_config.kda_layers", [None], "kda_layers of a config.json; found the entry None"),
    ("kimi-linear-48b", "linear_attn_config.kda_layers", [0, 1], "kda_layers of a config.json; found the entry 0, .* from 1 on"),
    ("glm-5.3-flash", "text_config.linear_attn_config", {"kda_layers": [0, -1]}, "found the entry -1, .* from 0 on"),
    ("deepseek-v4-flash", "compress_ratios", "4", "compress_ratios of a config.json; found '4'"),
    ("jet-nemotron-2b", "efficient_attention_config.jet.expand_v", NAN, "expand_v of a config.json; found nan"),
    ("kimi-k2.6-dflash", "dflash_config", {"target_layer_ids": [10**400]}, r"target_layer_ids \[1000"),
    ("glm-5.3-flash", "text_config.linear_attn_config", 5, "linear_attn_config of a config.json; found 5"),
    ("kimi-k2.6-dflash", "dflash_config", [], r"dflash_config of a config.json; found \[\]"),
    ("llama-3.1-8b", "attn_config", "x", "attn_config of a config.json; found 'x'"),
    # figures that fit each other not
    ("lfm2-1.2b", "num_hidden_layers", 1, "kinds for 16 layers at least, and num_hidden_layers 1"),
    ("qwen3-next-80b", "num_hidden_layers", 1, "1 layers with states and 0 layers with a KV cache"),
    ("tinyllama-1.1b", "num_attention_heads", 4096, "num_attention_heads 4096 with hidden_size 2048 and no head_dim"),
    ("granite-4.0-h-small", "mamba_n_heads", 10**6, "mamba_n_heads 1000000 for 8192 channels"),
]


@pytest.mark.parametrize(("name", "path", "value", "words"), FAULTS, ids=range(len(FAULTS)))
def test_faults(name: str, path: str, value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        read_geometry(changed(name, path.split("."), value))
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("name", ["Lla\ud800ma", "Lla\nma", "Lla\x1b[31mma", "L" * 5000])
def test_an_odd_name_can_be_printed(name: str) -> None:
    with pytest.raises(InputError, match="the architecture L") as error:
        read_geometry({"architectures": [name], "num_hidden_layers": 1})
    assert str(error.value).isascii()
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("bits", ["8", 8.0, True, [8]])
def test_bits_of_a_kv_scheme(bits: Any) -> None:
    scheme = {"type": "float", "num_bits": bits, "strategy": "tensor", "dynamic": False, "symmetric": True}
    quantised = {"quant_method": "compressed-tensors", "kv_cache_scheme": scheme}
    with pytest.raises(InputError, match=r"num_bits of a config.json"):
        read_geometry(changed("llama-3.1-8b", ["quantization_config"], quantised))


# what real configurations write is read as before
@pytest.mark.parametrize(
    ("name", "path", "value", "field", "figure"),
    [
        ("deepseek-v3", "num_nextn_predict_layers", 0, "nextn_layers", 0),
        ("tinyllama-1.1b", "num_key_value_heads", None, "kv_heads", 32),
        ("tinyllama-1.1b", "head_dim", None, "head_dim", 64),
        ("tinyllama-1.1b", "v_head_dim", 0, "v_head_dim", 64),
        ("tinyllama-1.1b", "rope_scaling", {"factor": 2.5}, "max_position", 5120),
        ("tinyllama-1.1b", "rope_scaling", {"factor": None}, "max_position", 2048),
        ("tinyllama-1.1b", "rope_scaling", {"factor": 1e-9}, "max_position", 1),
        ("tinyllama-1.1b", "rope_scaling", {"mrope_section": [16, 24, 24]}, "max_position", 2048),
        ("tinyllama-1.1b", "rope_scaling", {}, "max_position", 2048),
    ],
)
def test_what_is_read_as_before(name: str, path: str, value: Any, field: str, figure: int) -> None:
    assert getattr(read_geometry(changed(name, [path], value)), field) == figure
