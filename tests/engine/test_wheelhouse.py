# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real engine's parts: what the wheelhouse changes in a wheel, and what the tiny checkpoints are.

These need no network. Whether SGLang starts from them is shown by the scenarios that start it.
"""

from __future__ import annotations

import configparser
import hashlib
import importlib.util
import json
import struct
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"engine_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


wheelhouse = load("build_wheelhouse")
make_models = load("make_models")

INFO = "sglang-0.5.23.dist-info"
CPU_INFO = "sglang-0.5.23+cpu.dist-info"
METADATA = """\
Metadata-Version: 2.4
Name: sglang
Version: 0.5.23
Requires-Python: >=3.10
Requires-Dist: torch==2.14.1
Requires-Dist: sglang-kernel==0.4.10
Provides-Extra: tracing
Requires-Dist: opentelemetry-sdk; extra == "tracing"

# SGLang

Version: this line is prose.
Requires-Dist: so is this one.
"""
CPU_METADATA = """\
Metadata-Version: 2.4
Name: sglang
Version: 0.5.23+cpu
Requires-Python: >=3.10
Requires-Dist: torch==2.13.0
Requires-Dist: inferops-cpu-engine==1.0

# SGLang

Version: this line is prose.
Requires-Dist: so is this one.
"""
NEEDS = ["torch==2.13.0", "inferops-cpu-engine==1.0"]


def published_wheel(folder: Path, info: str = INFO, **more: str) -> Path:
    """A small wheel laid out as SGLang's own: a package, an executable, a name with a comma."""
    path = folder / "sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl"
    files = {
        "sglang/__init__.py": "value = 1\n",
        "sglang/a,b.json": "{}",
        f"{info}/METADATA": METADATA,
        f"{info}/WHEEL": "Wheel-Version: 1.0\n",
        f"{info}/entry_points.txt": "[console_scripts]\nsglang = sglang.cli:main\n",
        f"{info}/RECORD": "sglang/__init__.py,,\n",
        **more,
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        tool = zipfile.ZipInfo("sglang/bin/tool")
        tool.external_attr = 0o100755 << 16
        wheel.writestr(tool, "#!/bin/sh\n")
    return path


@pytest.fixture
def repacked(tmp_path: Path) -> zipfile.ZipFile:
    (tmp_path / "out").mkdir()
    path = wheelhouse.repack(published_wheel(tmp_path), tmp_path / "out", NEEDS)
    assert path.name == "sglang-0.5.23+cpu-cp311-cp311-manylinux_2_34_x86_64.whl"
    return zipfile.ZipFile(path)


def test_repack_changes_requirements_and_version_only(repacked: zipfile.ZipFile) -> None:
    assert repacked.read(f"{CPU_INFO}/METADATA").decode() == CPU_METADATA
    assert repacked.read("sglang/__init__.py") == b"value = 1\n"
    assert repacked.read(f"{CPU_INFO}/WHEEL") == b"Wheel-Version: 1.0\n"
    assert repacked.read(f"{CPU_INFO}/entry_points.txt") == b"[console_scripts]\nsglang = sglang.cli:main\n"
    assert not [name for name in repacked.namelist() if name.startswith(f"{INFO}/")]


def test_repack_keeps_the_executable_bit(repacked: zipfile.ZipFile) -> None:
    assert repacked.getinfo("sglang/bin/tool").external_attr >> 16 == 0o100755


def test_repack_records_every_file(repacked: zipfile.ZipFile) -> None:
    record = repacked.read(f"{CPU_INFO}/RECORD").decode().splitlines()
    # sha256 of "{}" and of "value = 1\n", base64 as RECORD wants it
    assert '"sglang/a,b.json",sha256=RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o,2' in record
    assert "sglang/__init__.py,sha256=WFyTZm_LBGt7Jk0_pzICqio4JUroKks7oZ6HPC1amIY,10" in record
    assert f"{CPU_INFO}/RECORD,," in record
    assert len(record) == len(repacked.namelist())


def test_repacking_twice_gives_the_same_wheel(tmp_path: Path) -> None:
    published = published_wheel(tmp_path)
    digests = set()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        digests.add(hashlib.sha256(wheelhouse.repack(published, tmp_path / name, NEEDS).read_bytes()).hexdigest())
    assert len(digests) == 1


def test_repack_refuses_a_wheel_it_does_not_know(tmp_path: Path) -> None:
    """Where the metadata is not found it cannot have been replaced, and that is noticed."""
    (tmp_path / "out").mkdir()
    published = published_wheel(tmp_path, info="SGLang-0.5.23.dist-info")
    with pytest.raises(wheelhouse.WheelhouseError, match="in METADATA and RECORD only; found: RECORD;"):
        wheelhouse.repack(published, tmp_path / "out", NEEDS)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("sglang/__init__.py", "value = 2\n", {"sglang/__init__.py"}),
        ("sglang/new.py", "", {"sglang/new.py"}),
        (f"{INFO}/METADATA", "Version: 0.5.23+cpu\n", {"METADATA"}),
    ],
)
def test_differences_sees_every_change(tmp_path: Path, name: str, text: str, found: set[str]) -> None:
    (tmp_path / "changed").mkdir()
    changed = published_wheel(tmp_path / "changed", **{name: text})
    assert wheelhouse.differences(published_wheel(tmp_path), changed) == found


def test_plugin_wheel_is_found_by_sglang(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheelhouse.plugin_wheel(tmp_path)) as wheel:
        assert wheel.testzip() is None
        names = wheel.namelist()
        entry_points = configparser.ConfigParser()
        entry_points.read_string(wheel.read("inferops_cpu_engine-1.0.dist-info/entry_points.txt").decode())
        sources = {name: wheel.read(name).decode() for name in names if name.endswith(".py")}
    assert dict(entry_points["sglang.srt.platforms"]) == {"inferops_cpu": "inferops_cpu_engine:activate"}
    assert sorted(sources) == [f"inferops_cpu_engine/{name}.py" for name in ("__init__", "calm", "patches", "platform")]
    assert not [name for name in names if name.endswith(".pth")]
    for name, source in sources.items():
        compile(source, name, "exec")


def test_every_requirement_is_pinned() -> None:
    needs = wheelhouse.requirements()
    assert [need for need in needs if need.count("==") != 1 or any(sign in need for sign in "<>~;+")] == []
    names = [need.partition("==")[0] for need in needs]
    assert len(names) == len(set(names))
    assert {"torch", "triton", "torchvision", "transformers"} <= set(names)


def test_a_folder_appears_only_when_complete(tmp_path: Path) -> None:
    target = tmp_path / "wheels"

    def half(part: Path) -> None:
        (part / "one.whl").write_text("1")
        raise wheelhouse.WheelhouseError("no network")

    with pytest.raises(wheelhouse.WheelhouseError, match="no network"):
        wheelhouse._complete(target, half)
    assert list(tmp_path.iterdir()) == []

    wheelhouse._complete(target, lambda part: (part / "one.whl").write_text("1"))
    assert [path.name for path in target.iterdir()] == ["one.whl"]
    assert list(tmp_path.iterdir()) == [target]
    # a second run does not fill it again
    wheelhouse._complete(target, half)


def read_safetensors(path: Path) -> tuple[dict[str, Any], int]:
    """The header and the number of data bytes of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    return header, len(data) - 8 - length


# kind: KV bytes per token, upper bound of the file in MB, config values that make the cell
CHECKPOINTS = {
    "mla": (70272, 60, {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 61, "first_k_dense_replace": 61}),
    "gqa": (65536, 60, {"num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 16}),
    "dflash-mla": (6144, 5, {"num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 3, "num_target_layers": 61}),
    "dflash-gqa": (6144, 5, {"num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 3, "num_target_layers": 16}),
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoint(tmp_path: Path, kind: str) -> None:
    cell, megabytes, values = CHECKPOINTS[kind]
    assert make_models.write(kind, tmp_path).cell_bytes == cell
    config = json.loads((tmp_path / "config.json").read_text())
    assert {name: config[name] for name in values} == values

    header, size = read_safetensors(tmp_path / "model.safetensors")
    assert header.pop("__metadata__") == {"format": "pt"}
    assert size < megabytes * 10**6
    end = 0
    for name, tensor in header.items():
        elements = 1
        for extent in tensor["shape"]:
            elements *= extent
        assert tensor["dtype"] == "BF16", name
        assert tensor["data_offsets"] == [end, end + 2 * elements], name
        end += 2 * elements
    assert end == size


@pytest.mark.parametrize(("draft", "target"), [("dflash-mla", "mla"), ("dflash-gqa", "gqa")])
def test_draft_fits_its_target(draft: str, target: str) -> None:
    ours, theirs = make_models.MODELS[draft].config, make_models.MODELS[target].config
    assert (ours["hidden_size"], ours["vocab_size"]) == (theirs["hidden_size"], theirs["vocab_size"])
    assert ours["max_position_embeddings"] == theirs["max_position_embeddings"]
    captured = ours["dflash_config"]["target_layer_ids"]
    assert captured == sorted(set(captured))
    assert max(captured) < theirs["num_hidden_layers"] == ours["num_target_layers"]


def test_checkpoints_are_reproducible(tmp_path: Path) -> None:
    for name in ("first", "second"):
        make_models.write("gqa", tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_tokenizer_has_one_token_per_byte(tmp_path: Path) -> None:
    make_models.write("mla", tmp_path)
    model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    assert model["merges"] == []
    assert sorted(model["vocab"].values()) == list(range(260))
    # a letter stands for itself, a space for the byte-level alphabet's G with a dot
    assert {"a", "\u0120"} <= set(model["vocab"])
