# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module memory_plan, run as Ansible runs it: arguments in, JSON out."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils import basic
from ansible_collections.inferops.sglang.plugins.module_utils import _arguments
from ansible_collections.inferops.sglang.plugins.modules import memory_plan
from support.module import Run, runner

CONFIGS = Path(__file__).parent / "fixtures/configs"

KIMI = {
    "model": str(CONFIGS / "kimi-k2.6.json"),
    "draft_model": str(CONFIGS / "kimi-k2.6-dflash.json"),
    "sglang_version": "0.5.12.post1",
    "speculative_algorithm": "DFLASH",
    "tp_size": 8,
    "context_length": 200000,
    "gpu_free_gib": 94.0,
    "weights_gib": 72.3,
    "draft_weights_gib": 1.312,
    "max_running_requests": 8,
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(memory_plan.main, monkeypatch, capsys)


def model(directory: Path, config: dict[str, Any], megabytes: int = 0) -> str:
    """A model directory whose one file promises (and, as a hole, has) so much data."""
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if megabytes:
        size = megabytes << 20
        tensor = {"dtype": "BF16", "shape": [size // 2048, 1024], "data_offsets": [0, size]}
        header = json.dumps({"model.layers.0.mlp.up_proj.weight": tensor}).encode()
        with (directory / "model.safetensors").open("wb") as stream:
            stream.write(struct.pack("<Q", len(header)) + header)
            stream.truncate(8 + len(header) + size)
    return str(directory)


def config(name: str) -> dict[str, Any]:
    return json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))


def test_a_plan(run: Run) -> None:
    result = run(**KIMI)
    assert result["changed"] is False
    plan = result["plan"]
    returned = yaml.safe_load(memory_plan.RETURN)["plan"]["contains"]
    assert sorted(plan) == sorted(returned)
    assert (plan["mem_fraction_static"], plan["verdict"], plan["basis"], plan["era"]) == (0.9221, "fits", "estimated", "0.5.11-0.5.13")
    assert (plan["required_tokens"], plan["bytes_per_token"]) == (200000, {"target": 70272, "draft": 3072, "charged": 77184})
    assert "rc" not in result


def test_an_impossible_plan_is_returned(run: Run) -> None:
    result = run(**{**KIMI, "gpu_free_gib": [24.0, 23.5]})
    assert (result["plan"]["verdict"], result["plan"]["mem_fraction_static"]) == ("impossible", None)
    assert "failed" not in result


def test_a_version_newer_than_the_table_warns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda _self, text: warned.append(text))
    run(**KIMI)
    assert warned == []
    result = run(**{**KIMI, "sglang_version": "0.6.1"})
    assert result["plan"]["era"] == "0.5.18-0.5.23"
    assert "newer than 0.5.23" in warned[0]
    assert result["plan"]["reasons"][0] == warned[0]


def test_observed_starts(run: Run) -> None:
    starts = [
        {"min_tokens": tokens, "server_args": {"mem_fraction_static": fraction}} for fraction, tokens in ((0.85, 101134), (0.92, 192406))
    ]
    changes = {"observed": starts, "gpu_free_gib": None, "weights_gib": None, "draft_weights_gib": 1.312}
    plan = run(**{**KIMI, **changes})["plan"]
    assert (plan["mem_fraction_static"], plan["basis"]) == (0.9259, "observed")


def test_the_smallest_card_decides(run: Run) -> None:
    assert run(**{**KIMI, "gpu_free_gib": [99.0, 94.0, 95.5]})["plan"]["mem_fraction_static"] == 0.9221


def test_weights_from_the_checkpoint(run: Run, tmp_path: Path) -> None:
    """1,024 MiB over 2 ranks are 0.5 GiB, and the table of 131,072 positions is 64 MiB: 16.0 - 0.5625 GiB when the pool is sized."""
    path = model(tmp_path / "m", config("llama-3.1-8b"), megabytes=1024)
    plan = run(model=path, sglang_version="0.5.23", tp_size=2, context_length=100000, gpu_free_gib=16.0)["plan"]
    # 1 - (15.4375 - 100000 * 65536 / 2**30) / 16
    assert plan["mem_fraction_static"] == 0.4167
    assert plan["error_tokens"] == pytest.approx((0.1 + 0.01) * 2**30 / 65536 + 1, abs=2)
    same = run(model=path + "/config.json", sglang_version="0.5.23", tp_size=2, context_length=100000, gpu_free_gib=16.0)["plan"]
    assert same == plan


def test_the_drafts_weights_from_its_checkpoint(run: Run, tmp_path: Path) -> None:
    """8 GiB over 8 ranks, and a table of 64 x 4,096 positions, 128 wide, in four bytes."""
    path = model(tmp_path / "d", config("kimi-k2.6-dflash"), megabytes=8192)
    given = run(**{**KIMI, "sglang_version": "0.5.14", "draft_weights_gib": 1.125})["plan"]
    read = run(**{**KIMI, "sglang_version": "0.5.14", "draft_weights_gib": None, "draft_model": path})["plan"]
    assert read["mem_fraction_static"] == given["mem_fraction_static"]


def test_quantisation_in_its_own_file(run: Run, tmp_path: Path) -> None:
    path = model(tmp_path / "m", config("llama-3.1-8b"))
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "m/hf_quant_config.json").write_text(json.dumps(quant), encoding="utf-8")
    plan = run(model=path, sglang_version="0.5.23", context_length=1000, gpu_free_gib=16, weights_gib=8)["plan"]
    assert plan["bytes_per_token"]["target"] == 65536


def test_next_token_layers_need_no_draft(run: Run) -> None:
    arguments = {
        "model_config": config("deepseek-v3"), "sglang_version": "0.5.14", "speculative_algorithm": "NEXTN", "tp_size": 8,
        "page_size": 64, "mem_fraction_static": 0.88, "gpu_free_gib": 139, "weights_gib": 86,
    }
    assert run(**arguments)["plan"]["predicted_tokens"] == 545984


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"context_length": 0}, ["context_length", "found 0", "greater than 0"]),
        ({"gpu_free_gib": [95970.0]}, ["gpu_free_gib", "found 95970", "is that MiB?"]),
        ({"tp_size": 7}, ["7 ranks", "64 attention heads", "divides"]),
        ({"gpu_free_gib": -1}, ["gpu_free_gib", "found -1"]),
        ({"gpu_free_gib": 20.0, "free_at_sizing_gib": 21.0}, ["20", "21", "no smaller"]),
        ({"sglang_version": "nightly"}, ["'nightly'", "such as 0.5.12.post1"]),
        ({"sglang_version": "0.5.10"}, ["DFLASH", "0.5.7-0.5.10", "use SGLang 0.5.11"]),
        ({"draft_model": None}, ["no draft model", "draft_model_config"]),
        ({"draft_model": str(CONFIGS / "llama-3.1-8b.json")}, ["128256", "163840", "another model"]),
        ({"model": "/srv/none"}, ["/srv/none", "no /srv/none/config.json", "fetch it first"]),
        ({"model": str(CONFIGS / "missing.json")}, ["missing.json", "fetch it first"]),
        ({"weights_gib": None}, ["no safetensors file", "with weights_gib"]),
        ({"gpu_free_gib": None}, ["no gpu_free_gib", "give gpu_free_gib"]),
        ({"gpu_free_gib": [94.0, "nan"]}, ["gpu_free_gib; found nan"]),
        ({"gpu_free_gib": "inf"}, ["gpu_free_gib; found inf"]),
        ({"free_at_sizing_gib": [21.0, -1.0]}, ["free_at_sizing_gib; found -1"]),
        ({"weights_gib": "nan"}, ["weights_gib", "found nan"]),
        ({"draft_weights_gib": -3}, ["weights_gib", "found -3"]),
        ({"concurrent_requests": "inf"}, ["concurrent_requests; found inf"]),
        ({"context_length": None}, ["one of the following is required", "pool_target"]),
        ({"speculative_algorithm": "MEDUSA"}, ["MEDUSA", "DFLASH"]),
        ({"draft_model_config": {}}, ["mutually exclusive"]),
    ],
)
def test_one_clear_error(run: Run, changes: dict[str, Any], parts: list[str]) -> None:
    result = run(**{**KIMI, **changes})
    assert result["failed"] is True
    assert [part for part in parts if part not in result["msg"]] == []
    assert "Traceback" not in json.dumps(result)


@pytest.mark.parametrize(("content", "word"), [("{", "Expecting"), ("[]", "a JSON list"), ('{"model_type": "x"}', "architectures None")])
def test_a_broken_configuration(run: Run, tmp_path: Path, content: str, word: str) -> None:
    path = model(tmp_path / "m", {})
    (tmp_path / "m/config.json").write_text(content, encoding="utf-8")
    assert word in run(**{**KIMI, "model": path})["msg"]


def test_neither_model_nor_weights(run: Run) -> None:
    changes = {"model": None, "model_config": config("kimi-k2.6"), "weights_gib": None}
    assert "neither free_at_sizing_gib nor weights_gib nor the directory" in run(**{**KIMI, **changes})["msg"]


def test_documented_options_are_the_options() -> None:
    documented = yaml.safe_load(memory_plan.DOCUMENTATION)["options"]
    assert sorted(documented) == sorted(_arguments.PLAN_OPTIONS)
    for name, option in documented.items():
        assert option.get("default") == _arguments.PLAN_OPTIONS[name].get("default"), name


# DeepSeek-V3 with its own next-token layer: a token costs int(70272 * 62 / 61) = 71424 bytes from 0.5.14 on
MTP = {
    "model": str(CONFIGS / "deepseek-v3.json"),
    "sglang_version": "0.5.14",
    "speculative_algorithm": "NEXTN",
    "tp_size": 8,
    "mem_fraction_static": 0.88,
    "gpu_free_gib": 139.0,
    "weights_gib": 80.0,
}


def test_own_next_token_layers_weigh_before_the_pool(run: Run) -> None:
    unknown = run(**MTP)["plan"]
    assert "The weights of the model's own next-token layers are unknown and not counted: give draft_weights_gib." in unknown["reasons"]
    known = run(**MTP, draft_weights_gib=1.5)["plan"]
    assert unknown["predicted_tokens"] - known["predicted_tokens"] == pytest.approx(1.5 * 2**30 / 71424, abs=1)
    assert "80.00 GiB of weights and 1.50 GiB of draft weights" in "\n".join(known["reasons"])


def test_own_next_token_layers_load_after_the_pool_before_0_5_14(run: Run) -> None:
    old = {**MTP, "sglang_version": "0.5.12.post1"}
    unknown, known = run(**old)["plan"], run(**old, draft_weights_gib=1.5)["plan"]
    assert unknown["predicted_tokens"] == known["predicted_tokens"]
    assert unknown["headroom_gib"] - known["headroom_gib"] == pytest.approx(1.5, abs=0.011)


def test_own_next_token_layers_by_the_headers(run: Run, tmp_path: Path) -> None:
    """61 layers of 64 MiB and one more, which only the draft loads: 61 and 1 of them, each on a segment of its own."""
    config = json.loads((CONFIGS / "deepseek-v3.json").read_text(encoding="utf-8"))
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    size, tensors = 64 << 20, {}
    for layer in range(62):
        tensors[f"model.layers.{layer}.mlp.down_proj.weight"] = {
            "dtype": "BF16",
            "shape": [4096, 8192],
            "data_offsets": [layer * size, (layer + 1) * size],
        }
    header = json.dumps(tensors).encode()
    with (directory / "model.safetensors").open("wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        stream.truncate(8 + len(header) + 62 * size)
    said = "\n".join(run(**{**MTP, "model": str(directory), "weights_gib": None, "tp_size": 1})["plan"]["reasons"])
    # 61 / 16 GiB and 1 / 16 GiB, and with each the table of sines: 163,840 rows of 64 values of 4 bytes, 0.04 GiB
    assert "3.85 GiB of weights and 0.10 GiB of draft weights" in said
    assert "by the headers of the checkpoint, within" in said
