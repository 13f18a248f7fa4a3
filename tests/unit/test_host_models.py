# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's directory, read no more than needed."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _host_models
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import read_checkpoint
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import RECORD, Record, Stamp
from ansible_collections.inferops.sglang.plugins.module_utils._host_models import read_checkpoint_facts, signature_of
from support.checkpoints import write_checkpoint

TENSORS = {f"layer.{number}.weight": ("BF16", (64, 64)) for number in range(4)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", TENSORS, shards=2, config={"architectures": ["LlamaForCausalLM"]})


def facts(model: Path, source: str = "", revision: str = "", kept: Any = None) -> Any:
    return read_checkpoint_facts(str(model), source, revision, kept or {})


def never(_directory: str) -> None:
    raise AssertionError("the headers are not to be read")


def test_a_whole_checkpoint_is_settled(model: Path) -> None:
    found = facts(model)
    assert (found.present, found.complete, found.settled, found.problems, found.missing_gib) == (True, True, True, (), None)
    assert found.fingerprint == read_checkpoint(str(model)).fingerprint
    assert (found.total_gib, found.path) == (round(4 * 64 * 64 * 2 / 2**30, 3), str(model))


def test_its_configuration_names_it_too(model: Path) -> None:
    found = facts(model / "config.json")
    assert (found.complete, found.path) == (True, str(model / "config.json"))


def test_what_is_missing_is_named(model: Path) -> None:
    (model / "model-00002-of-00002.safetensors").unlink()
    found = facts(model, "hub:a/b")
    assert (found.present, found.complete, found.settled) == (True, False, False)
    assert found.problems[0] == "model-00002-of-00002.safetensors: missing"


def test_what_has_to_be_fetched_from_a_directory_is_counted(model: Path, tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", TENSORS, shards=2, config={"architectures": ["LlamaForCausalLM"]})
    sizes = [(source / name).stat().st_size for name in os.listdir(source)]
    assert facts(tmp_path / "none", str(source)).missing_gib == sum(sizes) / 2**30
    shard = model / "model-00001-of-00002.safetensors"
    size = shard.stat().st_size
    shard.unlink()
    assert facts(model, str(source)).missing_gib == size / 2**30


def test_what_the_index_promises_is_counted(model: Path) -> None:
    shard = model / "model-00001-of-00002.safetensors"
    shard.unlink()
    left = (model / "model-00002-of-00002.safetensors").stat().st_size
    (model / "model.safetensors.index.json").write_text(
        '{"metadata": {"total_size": 1073741824}, "weight_map": {"layer.0.weight": "model-00001-of-00002.safetensors"}}', encoding="utf-8"
    )
    assert facts(model, "hub:a/b").missing_gib == (2**30 - left) / 2**30


@pytest.mark.parametrize(
    ("files", "alone", "bare"),
    [((), False, True), (("config.json",), True, False), (("config.json", "x.gguf"), True, False)],
)
def test_a_directory_without_safetensors(tmp_path: Path, files: tuple[str, ...], alone: bool, bare: bool) -> None:
    for name in files:
        (tmp_path / name).write_text("{}", encoding="utf-8")
    found = facts(tmp_path)
    assert (found.present, found.complete, found.config_alone, found.bare) == (True, False, alone, bare)
    assert found.problems == ("no safetensors file in it",)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    found = facts(tmp_path / "none")
    assert (found.present, found.complete, found.settled, found.missing_gib) == (False, False, False, None)


def test_files_of_the_last_accepted_start_are_not_read_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = facts(model)
    monkeypatch.setattr(_host_models, "read_checkpoint", never)
    assert facts(model, kept=asdict(first)) == first


@pytest.mark.parametrize("change", ["time", "size", "new file", "incomplete", "another path", "damaged"])
def test_anything_else_is_read_again(model: Path, change: str) -> None:
    kept = {**asdict(facts(model)), "fingerprint": "of before"}
    if change == "time":
        os.utime(model / "config.json", (1, 1))
    elif change == "size":
        (model / "config.json").write_text("{}", encoding="utf-8")
    elif change == "new file":
        (model / "more").touch()
    else:
        kept |= {"incomplete": {"complete": False}, "another path": {"path": "/x"}, "damaged": {"total_gib": "much"}}[change]
    found = facts(model, kept=kept)
    assert (found.complete, found.fingerprint) == (True, read_checkpoint(str(model)).fingerprint)


def record(model: Path, **more: Any) -> Record:
    stamps = {
        name: Stamp((model / name).stat().st_size, (model / name).stat().st_mtime_ns) for name in os.listdir(model) if name != RECORD
    }
    values = {"source": "hub:a/b", "commit": "c" * 40, "fingerprint": "as checked", "files": stamps, **more}
    return Record(**values)


def test_files_that_were_fetched_and_checked_are_not_read_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model / RECORD).write_text(record(model).text(), encoding="utf-8")
    monkeypatch.setattr(_host_models, "read_checkpoint", never)
    found = facts(model, "hub:a/b")
    assert (found.complete, found.settled, found.fingerprint, found.commit) == (True, True, "as checked", "c" * 40)


@pytest.mark.parametrize("change", ["touched", "gone", "more weights", "no fingerprint"])
def test_a_record_that_does_not_fit_says_nothing(model: Path, change: str) -> None:
    (model / RECORD).write_text(record(model, fingerprint="" if change == "no fingerprint" else "as checked").text(), encoding="utf-8")
    shard = model / "model-00001-of-00002.safetensors"
    if change == "touched":
        os.utime(shard, (1, 1))
    elif change == "gone":
        shard.unlink()
    elif change == "more weights":
        (model / "more.safetensors").touch()
    assert facts(model, "hub:a/b").fingerprint != "as checked"
    assert facts(model, "hub:a/b").complete is (change != "gone")


def test_another_source_is_not_settled(model: Path) -> None:
    (model / RECORD).write_text(record(model).text(), encoding="utf-8")
    found = facts(model, "hub:c/d")
    assert (found.complete, found.settled) == (True, False)


def test_the_signature_of_what_is_not_there(tmp_path: Path) -> None:
    assert signature_of(str(tmp_path / "none")) == ""
