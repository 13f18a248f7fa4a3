# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints by index and headers: what is in them, and every way a download can be short."""

from __future__ import annotations

import json
import os
import re
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
        (lambda d: (d / "b.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]"), "an unreadable header (a JSON list"),
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


def entry(dtype: Any = "BF16", shape: Any = (4, 4), offsets: Any = (0, 32)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def raw_file(path: Path, header: bytes, size: int = 0) -> None:
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        stream.truncate(8 + len(header) + size)


@pytest.mark.parametrize(
    ("tensors", "size", "problem"),
    [
        ({"a": entry(), "b": entry()}, 32, "b starts at byte 0 of the data, where the tensors before it end at 32"),
        ({"a": entry(), "b": entry(offsets=(64, 96))}, 96, "b starts at byte 64 of the data, where the tensors before it end at 32"),
        ({"a": entry(offsets=(8, 40))}, 40, "a starts at byte 8"),
        ({"a": entry(offsets=(32, 0))}, 32, r"a with the offsets \(32, 0\)"),
        ({"a": entry(offsets=(-32, 0))}, 0, r"a with the offsets \(-32, 0\)"),
        ({"a": entry(offsets=(0, 32.0))}, 32, "a with the offsets"),
        ({"a": entry(offsets=("0", "32"))}, 32, "a with the offsets"),
        ({"a": entry(shape=(), offsets=(False, True))}, 1, "a with the offsets"),
        ({"a": entry(offsets=(0, float("inf")))}, 32, "a with the offsets"),
        ({"a": entry(offsets=(0, 10**30))}, 32, "a with the offsets"),
        ({"a": entry(offsets=(0, 32, 64))}, 32, "an unreadable header"),
        ({"a": entry(shape=(400, 400))}, 32, r"a of 32 bytes, where BF16 and the shape \[400, 400\] make 320000"),
        ({"a": entry("F4", (3,), (0, 1))}, 1, r"a of 1 bytes, where F4 and the shape \[3\] make 1.5"),
        ({"a": entry(shape=(-4, -4))}, 32, r"a with the shape \[-4, -4\]"),
        ({"a": entry(shape=(2**40, 2**40, 0), offsets=(0, 0))}, 0, "a with the shape"),
        ({"a": entry(shape=(10**400,))}, 32, r"a with the shape \[10{198}\.\.\."),
        ({"a": entry(shape=(True, 16))}, 32, "a with the shape"),
        ({"a": entry(shape=(4.0, 4))}, 32, "a with the shape"),
        ({"a": entry(shape=(float("nan"),))}, 32, "a with the shape"),
        ({"a": entry(shape="44")}, 32, "a with the shape 44"),
        ({"a": entry(dtype="XYZ")}, 32, "a of the type 'XYZ', which safetensors does not have"),
        ({"a": entry(dtype=["BF16"])}, 32, "a of the type"),
        ({"a\n\ud800": entry(dtype=None)}, 32, r"a\\n\\ud800 of the type None"),
        ({"\ud800": entry()}, 32, "an unreadable header"),
        ({"a": entry(), "__metadata__": 5}, 32, "__metadata__ is no table of texts"),
        ({}, 0, "a header without tensors"),
    ],
)
def test_headers_that_no_loader_reads(tmp_path: Path, tensors: dict[str, Any], size: int, problem: str) -> None:
    raw_file(tmp_path / "m.safetensors", json.dumps(tensors).encode(), size)
    problems = read_checkpoint(str(tmp_path)).problems
    assert len(problems) == 1
    assert re.match(f"m.safetensors: .*{problem}", problems[0])
    assert problems[0].isprintable()


def test_a_header_that_is_nested_too_deeply(tmp_path: Path) -> None:
    raw_file(tmp_path / "m.safetensors", b'{"a":' * 100_000)
    assert read_checkpoint(str(tmp_path)).problems == ("m.safetensors: an unreadable header (nested too deeply)",)


# as they follow each other in a file, out of the order of the header, some without a byte
ALL_TYPES = (
    ("F4", (4,), 2), ("F6_E2M3", (4,), 3), ("F6_E3M2", (8,), 6), ("BOOL", (3,), 3), ("U8", (1,), 1), ("I8", (1,), 1),
    ("F8_E5M2", (1,), 1), ("F8_E4M3", (1,), 1), ("F8_E8M0", (0, 7), 0), ("I16", (), 2), ("U16", (1,), 2), ("F16", (1,), 2),
    ("BF16", (2, 2), 8), ("I32", (1,), 4), ("U32", (1,), 4), ("F32", (1,), 4), ("C64", (1,), 8), ("F64", (1,), 8),
    ("I64", (1,), 8), ("U64", (1,), 8),
)  # fmt: skip


def test_every_type_of_the_format(tmp_path: Path) -> None:
    tensors: dict[str, Any] = {}
    end = 0
    for dtype, shape, size in ALL_TYPES:
        tensors[dtype] = entry(dtype, shape, (end, end + size))
        end += size
    raw_file(tmp_path / "m.safetensors", json.dumps(dict(reversed(tensors.items()))).encode(), end)
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.problems == ()
    assert {tensor.name: tensor.size for tensor in checkpoint.tensors} == {dtype: size for dtype, _shape, size in ALL_TYPES}


def test_an_index_of_nothing(tmp_path: Path) -> None:
    write_file(tmp_path / "model.safetensors", bf16(a=(4, 4)))
    index(tmp_path, {})
    assert read_checkpoint(str(tmp_path)).problems == (f"{INDEX}: it names no tensor",)


def test_an_index_that_names_the_wrong_file(tmp_path: Path) -> None:
    write_file(tmp_path / "a.safetensors", bf16(x=(4, 4)))
    write_file(tmp_path / "b.safetensors", bf16(y=(4, 4)))
    index(tmp_path, {"a.safetensors": ["y"], "b.safetensors": ["x"]})
    (problem,) = read_checkpoint(str(tmp_path)).problems
    assert problem.startswith("2 tensors are in another file than the index says, the first: y in b.safetensors, not in a.safetensors")


@pytest.mark.parametrize("indexed", [True, False])
def test_a_tensor_in_two_files(tmp_path: Path, indexed: bool) -> None:
    write_file(tmp_path / "a.safetensors", bf16(x=(4, 4)))
    write_file(tmp_path / "b.safetensors", bf16(x=(4, 4), y=(4,)))
    if indexed:
        index(tmp_path, {"a.safetensors": ["x"], "b.safetensors": ["y"]})
    expected = ("b.safetensors: 1 tensors are in another file too, the first: x in a.safetensors",)
    assert read_checkpoint(str(tmp_path)).problems == expected


@pytest.mark.parametrize(
    ("names", "loaded", "problems"),
    [
        (["consolidated.safetensors"], 1, 0),
        # the one pair of which SGLang leaves the first out
        (["consolidated.safetensors", "model.safetensors"], 1, 0),
        (["consolidated.safetensors", "model-00001-of-00001.safetensors"], 2, 1),
        (["consolidated-00001-of-00002.safetensors", "consolidated-00002-of-00002.safetensors"], 2, 0),
    ],
)
def test_weights_in_the_form_of_mistral(tmp_path: Path, names: list[str], loaded: int, problems: int) -> None:
    for name in names:
        write_file(tmp_path / name, {name: ("BF16", (4, 4))})
    checkpoint = read_checkpoint(str(tmp_path))
    assert (len(checkpoint.files), len(checkpoint.problems)) == (loaded, problems)
    assert all("consolidated.safetensors: without an index SGLang loads this second copy" in problem for problem in checkpoint.problems)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("x\0y.safetensors", r"x\x00y.safetensors: not the name of a file in UTF-8"),
        ("\ud800.safetensors", r"\ud800.safetensors: not the name of a file in UTF-8"),
        ("..", "..: not a regular file"),
    ],
)
def test_names_that_no_file_has(tmp_path: Path, name: str, problem: str) -> None:
    index(tmp_path, {name: ["x"]})
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.problems == (problem,)
    assert all(file.isprintable() for file in checkpoint.files)


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    write_file(tmp_path / "m.safetensors", bf16(x=(4, 4)))
    os.rename(tmp_path / "m.safetensors", os.fsencode(tmp_path) + b"/\xff.safetensors")
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.files == (r"\udcff.safetensors",)
    assert checkpoint.problems == (r"\udcff.safetensors: not the name of a file in UTF-8",)


SPECIAL = (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path))


@pytest.mark.parametrize("make", SPECIAL)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """A pipe is not waited for, a device not read."""
    make(tmp_path / "m.safetensors")
    assert read_checkpoint(str(tmp_path)).problems == ("m.safetensors: not a regular file",)
    make(tmp_path / INDEX)
    with pytest.raises(InputError, match="not a regular file; fetch"):
        read_checkpoint(str(tmp_path))


@pytest.mark.parametrize("make", SPECIAL)
@pytest.mark.parametrize("name", ["config.json", "hf_quant_config.json"])
def test_what_is_no_configuration(tmp_path: Path, make: Callable[[Path], object], name: str) -> None:
    if name != "config.json":
        (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    make(tmp_path / name)
    with pytest.raises(InputError, match=f"{name}; found not a regular file"):
        model_config(str(tmp_path))


def test_json_without_end(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises(InputError, match="nested too deeply"):
        read_checkpoint(str(tmp_path))
    os.truncate(tmp_path / INDEX, (256 << 20) + 1)
    with pytest.raises(InputError, match="more than 256 MiB of JSON"):
        read_checkpoint(str(tmp_path))


def test_many_problems_are_a_number(tmp_path: Path) -> None:
    write_file(tmp_path / "model-00001-of-99999.safetensors", bf16(x=(4, 4)))
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.problems[0] == "model-00002-of-99999.safetensors: missing"
    assert checkpoint.problems[20:] == ("... and 99978 more",)
    assert len(checkpoint.files) == 21
