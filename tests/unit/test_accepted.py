# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepted services: which is kept, which is meant by a word, and that no cut loses one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _accepted
from ansible_collections.inferops.sglang.plugins.module_utils._accepted import Accepted, History, choose, record_of
from ansible_collections.inferops.sglang.plugins.modules import accepted_service
from support.module import runner

OLD, NEW, IMAGE = "/opt/sglang/0.5.11-aaaaaaaa", "/opt/sglang/0.5.12-bbbbbbbb", "sha256:0a1b2c3d"


def data(release: str, digest: str, at: float = 0.0, **more: Any) -> dict[str, Any]:
    receipt = {
        "digest": digest, "release": release, "sglang_version": release.rpartition("/")[2].partition("-")[0], "mem_fraction_static": 0.9259,
        "min_tokens": 200099, "required_tokens": 200000, **more,
    }  # fmt: skip
    return {"receipt": receipt, "unit": f"unit {digest}", "environment": f"environment {digest}", "accepted_at": at}


def record(release: str, digest: str, at: float = 0.0, lacks: str = "", last: bool = False) -> Accepted:
    made = record_of(data(release, digest, at))
    assert made is not None
    return Accepted(made.receipt, made.unit, made.environment, at, lacks, last)


KEPT = [record(NEW, "d2", 400, last=True), record(OLD, "d1", 300), record(OLD, "d0", 200, lacks="there is no such directory"),
        record(IMAGE, "d9", 100)]  # fmt: skip
MEANT = {
    "nothing said": ("", "d2"),
    "a version": ("0.5.11", "d1"),
    "a release": ("0.5.11-aaaaaaaa", "d1"),
    "a path": (OLD, "d1"),
    "a path with a slash": (OLD + "/", "d1"),
    "a record": ("0.5.11-aaaaaaaa-d1", "d1"),
    "an image": (IMAGE, "d9"),
    "what runs": ("0.5.12", "d2"),
    "unknown": ("0.5.1", None),
    "a part of a path": ("/opt/sglang", None),
    "a record that cannot be started": ("0.5.11-aaaaaaaa-d0", None),
}


@pytest.mark.parametrize("case", MEANT)
def test_the_newest_that_is_meant_and_can_be_started(case: str) -> None:
    wanted, digest = MEANT[case]
    choice = choose(KEPT, wanted, "k26")
    assert (choice.chosen.digest if choice.chosen else None) == digest
    assert bool(choice.problem) is (digest is None)


def test_what_cannot_be_gone_back_to_is_said_with_what_can() -> None:
    unknown = choose(KEPT, "0.4.6", "k26").problem.splitlines()
    assert unknown[0] == "sglang_rollback_to: asked for 0.4.6, found no accepted service of that name"
    assert unknown[2:] == [
        f"    - 0.5.12 ({NEW}), fraction 0.9259, 200,099 tokens, accepted 1970-01-01 00:06 UTC, the last accepted one",
        f"    - 0.5.11 ({OLD}), fraction 0.9259, 200,099 tokens, accepted 1970-01-01 00:05 UTC",
        f"    - sha256:0a1b2c3d ({IMAGE}), fraction 0.9259, 200,099 tokens, accepted 1970-01-01 00:01 UTC",
    ]
    gone = choose([record(OLD, "d1", lacks="there is no such directory", last=True)], "", "k26").problem
    assert gone == (
        f"asked to go back to the last accepted service of k26, found it, but {OLD} cannot be started: there is no such directory\n"
        "    do: run the role with sglang_version 0.5.11, which makes it anew"
    )
    nothing = choose([], "", "k26")
    assert (nothing.chosen, nothing.problem) == (None, "")
    assert "no accepted service is kept here" in choose([], "0.5.11", "k26").problem


BROKEN = {
    "no mapping": [],
    "no receipt": {"unit": "", "environment": ""},
    "no unit": {**data(OLD, "d1"), "unit": None},
    "no environment": {name: value for name, value in data(OLD, "d1").items() if name != "environment"},
    "no digest": {**data(OLD, "d1"), "receipt": {**data(OLD, "d1")["receipt"], "digest": None}},
    "tokens as text": {**data(OLD, "d1"), "receipt": {**data(OLD, "d1")["receipt"], "min_tokens": "200099"}},
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_record_that_lacks_something_is_none(case: str) -> None:
    assert record_of(BROKEN[case]) is None


def history(folder: Path, gone: Optional[str] = None) -> History:
    return History(str(folder), lambda found: "gone" if found.release == gone else "")


def accept(folder: Path, *made: Accepted) -> None:
    for one in made:
        history(folder).keep(one)
        history(folder).tidy()


def kept(folder: Path) -> list[tuple[str, bool]]:
    return [(found.digest, found.last) for found in history(folder).records()]


def test_what_is_left_goes_to_the_earlier_ones_and_comes_back_alone(tmp_path: Path) -> None:
    first, second = record(OLD, "d1", 1), record(NEW, "d2", 2)
    accept(tmp_path, first, second)
    assert kept(tmp_path) == [("d2", True), ("d1", False)]
    assert os.listdir(tmp_path / "accepted") == ["0.5.11-aaaaaaaa-d1.json"]
    assert [oct(path.stat().st_mode & 0o777) for path in (tmp_path / "accepted", tmp_path / "accepted.json")] == ["0o700", "0o600"]
    accept(tmp_path, record(OLD, "d1", 3))
    assert kept(tmp_path) == [("d1", True), ("d2", False)]
    assert os.listdir(tmp_path / "accepted") == ["0.5.12-bbbbbbbb-d2.json"]


def test_the_same_again_changes_nothing_and_a_new_start_of_it_keeps_no_second(tmp_path: Path) -> None:
    accept(tmp_path, record(OLD, "d1", 1))
    before = (tmp_path / "accepted.json").read_bytes()
    assert history(tmp_path).keep(record(OLD, "d1", 9)) is False
    assert (tmp_path / "accepted.json").read_bytes() == before
    newer = record_of(data(OLD, "d1", 2, min_tokens=200100))
    assert newer is not None
    assert history(tmp_path).keep(newer, check=True) is True
    assert (tmp_path / "accepted.json").read_bytes() == before
    accept(tmp_path, newer)
    assert (kept(tmp_path), (tmp_path / "accepted").exists()) == ([("d1", True)], False)


def test_a_cut_before_the_last_one_is_replaced_loses_none_and_shows_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept(tmp_path, record(OLD, "d1", 1))
    written = _accepted.write_whole

    def cut(path: str, text: str, mode: int) -> None:
        if path.endswith("/accepted.json"):
            raise OSError(28, "No space left on device", path)
        written(path, text, mode)

    monkeypatch.setattr(_accepted, "write_whole", cut)
    with pytest.raises(OSError, match="No space left"):
        history(tmp_path).keep(record(NEW, "d2", 2))
    assert kept(tmp_path) == [("d1", True)]
    monkeypatch.undo()
    accept(tmp_path, record(NEW, "d2", 2))
    assert kept(tmp_path) == [("d2", True), ("d1", False)]


def test_the_count_is_bounded_and_what_cannot_be_started_goes_first(tmp_path: Path) -> None:
    accept(tmp_path, record(OLD, "gone", 50), *(record(NEW, f"d{number}", number) for number in range(9)))
    assert len(history(tmp_path).records()) == 9
    history(tmp_path).keep(record(NEW, "d9", 60))
    history(tmp_path, gone=OLD).tidy()
    assert [digest for digest, _last in kept(tmp_path)] == ["d9", "d8", "d7", "d6", "d5", "d4", "d3", "d2", "d1"]


def test_damaged_files_are_passed_over(tmp_path: Path) -> None:
    accept(tmp_path, record(OLD, "d1", 1), record(NEW, "d2", 2))
    (tmp_path / "accepted.json").write_text("{", encoding="utf-8")
    (tmp_path / "accepted/other.json").write_text("[]", encoding="utf-8")
    assert kept(tmp_path) == [("d1", False)]
    assert choose(history(tmp_path).records(), "", "k26").chosen is None


def test_the_module_says_where_an_environment_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(accepted_service.main, monkeypatch, capsys)
    state = tmp_path / "k26"
    state.mkdir()
    release = str(tmp_path / "0.5.11-aaaaaaaa")
    (state / "accepted.json").write_text(json.dumps(data(release, "d1", 1)), encoding="utf-8")
    found = run(instance="k26", state_dir=str(tmp_path), unit_file=str(tmp_path / "u"), environment_file=str(tmp_path / "e"))
    assert found["chosen"] == {}
    assert found["kept"][0]["lacks"] == "there is no such directory"
    assert found["problem"].startswith("asked to go back to the last accepted service of k26, found it, but ")
    assert "environment d1" not in json.dumps(found)
    wrong = run(instance="../k26", state_dir=str(tmp_path))
    assert wrong["msg"] == "instance: asked for '../k26', found that it cannot be a folder; give the name of an instance"
    assert "give the texts and the receipt" in run(
        instance="k26", state="present", state_dir=str(tmp_path), record={"receipt": {}, "unit": "u", "environment": "A=1"}
    )["msg"]
