# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module checkpoint_info, run as Ansible runs it: arguments in, JSON out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.modules import checkpoint_info
from support.checkpoints import CONFIGS, public_model, write_checkpoint
from support.module import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(checkpoint_info.main, monkeypatch, capsys)


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "llama", public_model("llama-3.1-8b"), shards=4, config=CONFIGS["llama-3.1-8b"])


def test_a_whole_checkpoint(run: Run, llama: Path) -> None:
    result = run(path=str(llama))
    assert result["changed"] is False
    found = result["checkpoint"]
    assert sorted(found) == sorted(yaml.safe_load(checkpoint_info.RETURN)["checkpoint"]["contains"])
    assert len(found.pop("fingerprint")) == 64
    assert found == {
        "complete": True,
        "problems": [],
        "files": [f"model-0000{number}-of-00004.safetensors" for number in (1, 2, 3, 4)],
        "tensors": 291,
        "total_gib": 14.958,
        "quantization": "",
        "dtypes": {"BF16": 14.958},
        "weights_gib": 15.021,
        "weights_error_gib": 0.101,
        "reasons": ["+-0.10 GiB: the driver's own while weights load"],
    }


def test_the_configuration_is_as_good_as_the_directory(run: Run, llama: Path) -> None:
    assert run(path=str(llama / "config.json"))["checkpoint"] == run(path=str(llama))["checkpoint"]


def test_an_incomplete_checkpoint_is_returned(run: Run, llama: Path) -> None:
    (llama / "model-00003-of-00004.safetensors").unlink()
    found = run(path=str(llama))["checkpoint"]
    assert (found["complete"], found["problems"]) == (False, ["model-00003-of-00004.safetensors: missing"])
    assert (found["weights_gib"], found["weights_error_gib"]) == (None, None)
    assert found["reasons"] == ["No estimate of the weights: the checkpoint is incomplete"]


def test_without_a_configuration_there_is_no_estimate(run: Run, llama: Path) -> None:
    (llama / "config.json").unlink()
    found = run(path=str(llama))["checkpoint"]
    assert (found["complete"], found["weights_gib"]) == (True, None)
    assert "config.json on this host" in found["reasons"][0]


@pytest.mark.parametrize(
    ("model", "arguments", "gib"),
    [
        # 5.908 GiB of layers over 8 ranks, 0.574 GiB of fusion on each
        ("kimi-k2.6-dflash", {"tp_size": 8, "draft": True}, 5.908 / 8 + 0.574),
        # and the table of positions, 64 MiB
        ("llama-3.1-8b", {"tp_size": 2}, 14.958 / 2 + 0.0625),
        ("llama-3.1-8b", {"pp_size": 2}, 14.958 / 2 + 0.0625),
    ],
)
def test_ranks(run: Run, tmp_path: Path, model: str, arguments: dict[str, Any], gib: float) -> None:
    path = write_checkpoint(tmp_path / model, public_model(model), config=CONFIGS[model])
    assert run(path=str(path), **arguments)["checkpoint"]["weights_gib"] == pytest.approx(gib, rel=0.011)


def test_attention_of_its_own_for_each_data_rank(run: Run, llama: Path) -> None:
    """32 layers x 2 x (4096 + 1024) x 4096 x 2 bytes of attention and 1 GiB of embedding are whole instead of a half."""
    shared = run(path=str(llama), tp_size=2, dp_size=2)["checkpoint"]["weights_gib"]
    whole = run(path=str(llama), tp_size=2, dp_size=2, enable_dp_attention=True)["checkpoint"]["weights_gib"]
    assert whole - shared == pytest.approx((32 * 2 * 5120 * 4096 * 2 + 128256 * 4096 * 2) / 2 / 2**30, abs=0.003)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tp_size": 8, "dp_size": 3, "enable_dp_attention": True}, "dp_size 3.*tp_size 8"),
        ({"dp_size": 0, "enable_dp_attention": True}, "dp_size 0"),
        ({"tp_size": 8, "ep_size": 3}, "ep_size 3"),
        ({"pp_size": 0}, "pp_size 0"),
        ({"pp_size": 33}, "pp_size 33; found a model of 32 layers"),
        ({"pp_size": 10**9}, "pp_size 1000000000; found a model of 32 layers"),
        ({"pp_size": 10**9, "draft": True}, "pp_size 1000000000"),
        ({"moe_dense_tp_size": 0}, "moe_dense_tp_size 0; found tp_size 1"),
        ({"moe_dense_tp_size": -1}, "moe_dense_tp_size -1"),
        ({"tp_size": 4, "moe_dense_tp_size": 3}, "moe_dense_tp_size 3; found tp_size 4"),
        ({"tp_size": 3}, "tp_size 3.* found 32 attention heads and 8 KV heads"),
        ({"tp_size": 64}, "tp_size 64.* found 32 attention heads"),
        ({"sglang_version": "newest"}, "'newest'"),
    ],
)
def test_bad_arguments(run: Run, llama: Path, arguments: dict[str, Any], message: str) -> None:
    result = run(path=str(llama), **arguments)
    assert result["failed"] is True
    assert re.search(message, result["msg"])


@pytest.mark.parametrize(("directory", "message"), [("empty", "no safetensors file in it"), ("absent", "No such file or directory")])
def test_no_checkpoint_fails(run: Run, tmp_path: Path, directory: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    result = run(path=str(tmp_path / directory))
    assert result["failed"] is True
    assert message in result["msg"]
