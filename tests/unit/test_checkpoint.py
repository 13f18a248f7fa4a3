# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints by index and headers: sizes per rank, and every way a download can be short."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import (
    INDEX,
    RANK_ERROR,
    optional_config,
    read_checkpoint,
    weights_per_rank,
)
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError

GIB = 1 << 30


def write(path: Path, shapes: dict[str, list[int]], short: int = 0) -> None:
    """A safetensors file of two-byte elements; its data is a hole, so that a large one costs nothing."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        size = 2
        for width in shape:
            size *= width
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + end - short)


def index(directory: Path, files: dict[str, list[str]]) -> None:
    weight_map = {tensor: name for name, tensors in files.items() for tensor in tensors}
    (directory / INDEX).write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")


def dflash_draft() -> dict[str, list[int]]:
    """The tensors of a six-layer draft of hidden size 7168 that taps six layers of its target."""
    shapes = {"fc.weight": [7168, 6 * 7168], "norm.weight": [7168]}
    for layer in range(6):
        start = f"layers.{layer}"
        shapes |= {
            f"{start}.self_attn.q_proj.weight": [8192, 7168],
            f"{start}.self_attn.k_proj.weight": [1024, 7168],
            f"{start}.self_attn.v_proj.weight": [1024, 7168],
            f"{start}.self_attn.o_proj.weight": [7168, 8192],
            f"{start}.mlp.gate_proj.weight": [18432, 7168],
            f"{start}.mlp.up_proj.weight": [18432, 7168],
            f"{start}.mlp.down_proj.weight": [7168, 18432],
        }
    return shapes


@pytest.mark.parametrize(("ranks", "gib"), [(8, "1.31"), (4, "2.05"), (1, "6.48")])
def test_a_draft_keeps_its_fusion_layer_whole(tmp_path: Path, ranks: int, gib: str) -> None:
    write(tmp_path / "model.safetensors", dflash_draft())
    weights = weights_per_rank(read_checkpoint(str(tmp_path)), ranks, 1, ranks)
    assert f"{weights.gib:.2f}" == gib
    assert weights.error_gib == pytest.approx(weights.gib * RANK_ERROR)


def test_what_ranks_share(tmp_path: Path) -> None:
    """1024 x 1024 two-byte elements are 2 MiB; 8 ranks of which 2 share an attention, 2 stages."""
    shapes = {
        "model.layers.0.self_attn.o_proj.weight": [1024, 1024],
        "model.layers.0.self_attn.q_a_proj.weight": [1024, 1024],
        "model.layers.0.self_attn.kv_a_proj_with_mqa.weight": [1024, 1024],
        "model.layers.0.mlp.gate.weight": [1024, 1024],
        "model.layers.0.mlp.gate_proj.weight": [1024, 1024],
        "model.layers.0.mlp.experts.7.down_proj.weight": [1024, 1024],
        "model.norm.weight": [1024 * 1024],
    }
    write(tmp_path / "model.safetensors", shapes)
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.total_bytes == 7 * 2 * 1024 * 1024
    mib = 2 * (1 / 2 + 1 + 1 + 1 + 1 / 8 + 1 / 8 + 1) / 2
    assert weights_per_rank(checkpoint, 8, 2, 2).gib * 1024 == pytest.approx(mib)


def test_shards_and_fingerprint(tmp_path: Path) -> None:
    write(tmp_path / "model-1.safetensors", {"a": [4, 4], "b": [4]})
    write(tmp_path / "model-2.safetensors", {"c": [8, 2]})
    index(tmp_path, {"model-1.safetensors": ["a", "b"], "model-2.safetensors": ["c"]})
    write(tmp_path / "consolidated.safetensors", {"a": [4, 4], "b": [4], "c": [8, 2]})
    first = read_checkpoint(str(tmp_path))
    assert (first.complete, first.files, first.total_bytes) == (True, ("model-1.safetensors", "model-2.safetensors"), 72)
    assert read_checkpoint(str(tmp_path)).fingerprint == first.fingerprint
    write(tmp_path / "model-2.safetensors", {"c": [2, 8]})
    assert read_checkpoint(str(tmp_path)).fingerprint != first.fingerprint


def test_without_an_index_all_files_count(tmp_path: Path) -> None:
    write(tmp_path / "one.safetensors", {"a": [4, 4]})
    write(tmp_path / "two.safetensors", {"b": [4, 4]})
    assert read_checkpoint(str(tmp_path)).total_bytes == 64


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda d: (d / "b.safetensors").unlink(), "b.safetensors: missing"),
        (lambda d: write(d / "b.safetensors", {"y": [64, 64]}, short=1), "bytes where its header promises"),
        (lambda d: (d / "b.safetensors").write_bytes(b""), "b.safetensors: no safetensors header"),
        (lambda d: (d / "b.safetensors").write_bytes(b"version https://git-lfs"), "b.safetensors: no safetensors header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 500) + b"{}"), "cut inside its header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 4) + b"nope"), "an unreadable header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]"), "an unreadable header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 7) + b'{"y":1}'), "an unreadable header"),
        (lambda d: write(d / "b.safetensors", {"other": [64, 64]}), "1 tensors of the index are in no file, the first: y"),
    ],
)
def test_incomplete(tmp_path: Path, damage: Any, problem: str) -> None:
    write(tmp_path / "a.safetensors", {"x": [64, 64]})
    write(tmp_path / "b.safetensors", {"y": [64, 64]})
    index(tmp_path, {"a.safetensors": ["x"], "b.safetensors": ["y"]})
    assert read_checkpoint(str(tmp_path)).complete
    damage(tmp_path)
    checkpoint = read_checkpoint(str(tmp_path))
    assert problem in " ".join(checkpoint.problems)
    with pytest.raises(InputError, match=r"an incomplete checkpoint \(1 problems.*finish the download, or give weights_gib"):
        weights_per_rank(checkpoint, 1, 1, 1)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "Expecting"),
        ("[]", "no weight_map"),
        ('{"weight_map": []}', "no weight_map"),
        ('{"weight_map": {"x": "../../elsewhere.safetensors"}}', "no weight_map"),
        ('{"weight_map": {"x": 1}}', "no weight_map"),
    ],
)
def test_broken_index(tmp_path: Path, content: str, word: str) -> None:
    (tmp_path / INDEX).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"{word}.*fetch the checkpoint again"):
        read_checkpoint(str(tmp_path))


def test_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no safetensors file in it; give weights_gib"):
        read_checkpoint(str(tmp_path))
    with pytest.raises(InputError, match=r"No such file.*give the directory"):
        read_checkpoint(str(tmp_path / "absent"))


def test_configuration_files(tmp_path: Path) -> None:
    assert optional_config(str(tmp_path), "config.json") is None
    (tmp_path / "config.json").write_text('{"a": 1}', encoding="utf-8")
    assert optional_config(str(tmp_path), "config.json") == {"a": 1}
    for content, word in ((b"{", "Expecting"), (b"[1]", "a JSON list"), (b"\xff", "can't decode")):
        (tmp_path / "config.json").write_bytes(content)
        with pytest.raises(InputError, match=word):
            optional_config(str(tmp_path), "config.json")
