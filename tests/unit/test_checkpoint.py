# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints by index and headers: what is in them, and every way a download can be short."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import (
    Tensor,
    model_config,
    model_directory,
    optional_config,
    read_checkpoint,
)
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from support.checkpoints import INDEX, Shapes, write_checkpoint, write_file


def bf16(**shapes: tuple[int, ...]) -> Shapes:
    return {name: ("BF16", shape) for name, shape in shapes.items()}


def index(directory: Path, files: dict[str, list[str]]) -> None:
    weight_map = {tensor: name for name, tensors in files.items() for tensor in tensors}
    (directory / INDEX).write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")


def test_what_the_headers_say(tmp_path: Path) -> None:
    write_file(tmp_path / "model.safetensors", {"a": ("BF16", (4, 8)), "b": ("F8_E4M3", (16,)), "c": ("F32", ())})
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.tensors == (Tensor("a", "BF16", (4, 8), 64), Tensor("b", "F8_E4M3", (16,), 16), Tensor("c", "F32", (), 4))
    assert (checkpoint.total_bytes, checkpoint.complete) == (84, True)
    assert list(checkpoint.bytes_by_dtype().items()) == [("BF16", 64), ("F8_E4M3", 16), ("F32", 4)]


def test_shards_of_an_index(tmp_path: Path) -> None:
    """A second copy of the tensors in a file that the index does not name is not loaded and does not count."""
    write_file(tmp_path / "model-1.safetensors", bf16(a=(4, 4), b=(4,)))
    write_file(tmp_path / "model-2.safetensors", bf16(c=(8, 2)))
    index(tmp_path, {"model-1.safetensors": ["a", "b"], "model-2.safetensors": ["c"]})
    write_file(tmp_path / "consolidated.safetensors", bf16(a=(4, 4), b=(4,), c=(8, 2)))
    checkpoint = read_checkpoint(str(tmp_path))
    assert (checkpoint.complete, checkpoint.files) == (True, ("model-1.safetensors", "model-2.safetensors"))
    assert checkpoint.total_bytes == 72


def test_without_an_index_all_files_count(tmp_path: Path) -> None:
    write_file(tmp_path / "one.safetensors", bf16(a=(4, 4)))
    write_file(tmp_path / "two.safetensors", bf16(b=(4, 4)))
    assert read_checkpoint(str(tmp_path)).total_bytes == 64


SHARDS = dict.fromkeys("abcd", ("BF16", (8, 8)))


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda d: os.utime(d / "model-00001-of-00002.safetensors", (0, 0)), True),
        (lambda d: (d / "README.md").write_text("more"), True),
        (lambda d: write_file(d / "model-00002-of-00002.safetensors", {"c": ("BF16", (4, 16)), "d": ("BF16", (8, 8))}), False),
        (lambda d: write_file(d / "model-00002-of-00002.safetensors", {"c": ("F16", (8, 8)), "d": ("BF16", (8, 8))}), False),
    ],
)
def test_fingerprint(tmp_path: Path, change: Callable[[Path], object], same: bool) -> None:
    write_checkpoint(tmp_path / "m", SHARDS, shards=2)
    shutil.copytree(tmp_path / "m", tmp_path / "copy")
    change(tmp_path / "copy")
    first, second = read_checkpoint(str(tmp_path / "m")), read_checkpoint(str(tmp_path / "copy"))
    assert second.complete
    assert (first.fingerprint == second.fingerprint) is same


def cut_header(directory: Path) -> None:
    (directory / "b.safetensors").write_bytes(struct.pack("<Q", 500) + b"{}")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda d: (d / "b.safetensors").unlink(), "b.safetensors: missing"),
        (lambda d: write_file(d / "b.safetensors", bf16(y=(64, 64)), short=1), "bytes where its header promises"),
        (lambda d: (d / "b.safetensors").write_bytes(b""), "b.safetensors: no safetensors header"),
        (lambda d: (d / "b.safetensors").write_bytes(b"\xff" * 64), "b.safetensors: no safetensors header"),
        (lambda d: (d / "b.safetensors").write_bytes(b"version spec/v1\noid sha256:00\nsize 8\n"), "b.safetensors: a git-lfs pointer"),
        (cut_header, "cut inside its header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 4) + b"nope"), "an unreadable header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]"), "an unreadable header"),
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 7) + b'{"y":1}'), "an unreadable header"),
        (lambda d: write_file(d / "b.safetensors", bf16(other=(64, 64))), "1 tensors of the index are in no file, the first: y"),
    ],
)
def test_incomplete(tmp_path: Path, damage: Callable[[Path], object], problem: str) -> None:
    write_file(tmp_path / "a.safetensors", bf16(x=(64, 64)))
    write_file(tmp_path / "b.safetensors", bf16(y=(64, 64)))
    index(tmp_path, {"a.safetensors": ["x"], "b.safetensors": ["y"]})
    assert read_checkpoint(str(tmp_path)).complete
    damage(tmp_path)
    checkpoint = read_checkpoint(str(tmp_path))
    assert not checkpoint.complete
    assert problem in checkpoint.problems[0]
    assert len(checkpoint.problems) == 1


def hub_download(directory: Path) -> None:
    (directory / ".cache/huggingface/download").mkdir(parents=True)
    (directory / ".cache/huggingface/download/Qx7.0a1b.incomplete").touch()


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        # numbers promise files also where no index does
        (lambda d: (d / "model-00002-of-00003.safetensors").unlink(), ["model-00002-of-00003.safetensors: missing"]),
        (
            lambda d: (d / "model-00002-of-00003.safetensors").rename(d / "model-00002-of-00003.safetensors.part"),
            ["model-00002-of-00003.safetensors: missing", "model-00002-of-00003.safetensors.part: an unfinished download"],
        ),
        # left behind beside the whole file
        (lambda d: (d / "model-00002-of-00003.safetensors.incomplete").touch(), []),
        # every weight is there: what the hub's client still fetches is something else
        (hub_download, []),
    ],
)
def test_numbered_shards_without_an_index(tmp_path: Path, change: Callable[[Path], object], problems: list[str]) -> None:
    write_checkpoint(tmp_path / "m", dict.fromkeys("abc", ("BF16", (8, 8))), shards=3)
    (tmp_path / "m" / INDEX).unlink()
    change(tmp_path / "m")
    assert list(read_checkpoint(str(tmp_path / "m")).problems) == problems


@pytest.mark.parametrize("shards", [1, 2])
def test_a_download_of_the_hub_in_flight(tmp_path: Path, shards: int) -> None:
    """It counts where nothing says which files there must be, and beside a file that is missing."""
    write_checkpoint(tmp_path / "m", SHARDS, shards=shards)
    hub_download(tmp_path / "m")
    if shards > 1:
        (tmp_path / "m/model-00002-of-00002.safetensors").unlink()
    problems = read_checkpoint(str(tmp_path / "m")).problems
    assert problems[-1] == "1 unfinished downloads in .cache/huggingface/download"
    assert len(problems) == shards


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
    with pytest.raises(InputError, match="no safetensors file in it; fetch the model"):
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


def test_a_configuration_with_its_quantisation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no .*/config.json on this host"):
        model_config(str(tmp_path))
    (tmp_path / "config.json").write_text('{"a": 1}', encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")
    expected: dict[str, Any] = {"a": 1, "quantization_config": {"quantization": {"quant_algo": "NVFP4"}}}
    for path in (str(tmp_path), str(tmp_path / "config.json")):
        assert model_config(path) == expected
        assert model_directory(path) == str(tmp_path)
