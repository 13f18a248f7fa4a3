# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept on the controller: bounded, whole at any time, and never lost to a damaged file or to a second run."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.plugin_utils import _lesson_store
from ansible_collections.inferops.sglang.plugins.plugin_utils._lesson_store import load, store

KEY, OTHER = "0123456789ab", "ba9876543210"


def lesson(number: int, host: str = "gpu01", key: str = KEY, accepted: bool = True) -> dict[str, Any]:
    return {
        "host": host, "fleet_class": key, "free_gib": 93.4, "seen_at": f"2026-11-{number:02}T00:00:00", "accepted": accepted,
        "boot": {"invocation_id": f"{host}-{number}", "ready": True},
    }  # fmt: skip


def names(lessons: list[dict[str, Any]]) -> list[str]:
    return [found["boot"]["invocation_id"] for found in lessons]


def quiet(text: str) -> None:
    raise AssertionError(f"nothing was to be said, heard {text}")


def test_what_was_stored_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "not/there/yet"
    assert load(folder, [KEY], quiet) == []
    store(folder, [lesson(2), lesson(1), lesson(3, key=OTHER)], quiet)
    assert load(folder, [KEY], quiet) == [lesson(1), lesson(2)]
    assert names(load(str(folder), {KEY, OTHER}, quiet)) == ["gpu01-1", "gpu01-2", "gpu01-3"]
    assert load(folder, ["ffffffffffff"], quiet) == []
    assert sorted(path.name for path in folder.iterdir()) == [f"{KEY}.json", f"{KEY}.lock", f"{OTHER}.json", f"{OTHER}.lock"]
    assert (folder / f"{KEY}.json").stat().st_mode & 0o777 == 0o644


BOUNDED: dict[str, tuple[list[list[dict[str, Any]]], list[str]]] = {
    "the newest six": ([[lesson(day)] for day in range(1, 9)], [f"gpu01-{day}" for day in range(3, 9)]),
    "all at once": ([[lesson(day) for day in range(8, 0, -1)]], [f"gpu01-{day}" for day in range(3, 9)]),
    "a start once": ([[lesson(1)], [lesson(1), lesson(2)], [lesson(2)]], ["gpu01-1", "gpu01-2"]),
    # an accepted start is never crowded out by others
    "accepted ones stay": (
        [[lesson(1)], [lesson(day, accepted=False) for day in range(2, 10)]], ["gpu01-1", *(f"gpu01-{day}" for day in range(5, 10))],
    ),
    "nothing new": ([[lesson(1)], []], ["gpu01-1"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BOUNDED)
def test_each_class_keeps_six(case: str, tmp_path: Path) -> None:
    runs, expected = BOUNDED[case]
    for lessons in runs:
        store(tmp_path, lessons, quiet)
    assert names(load(tmp_path, [KEY], quiet)) == expected


DAMAGED: dict[str, tuple[bytes, str]] = {
    "cut": (b'{"lessons": [{"ho', "which is no JSON"),
    "empty": (b"", "which is no JSON"),
    "binary": (b"\xff\xfe\x00", "which is no JSON"),
    "deep": (b"[" * 200_000, "which is no JSON"),
    "a list": (b"[]", "which holds other things"),
    "no lessons": (b'{"lessons": [5]}', "which holds other things"),
    "of another class": (json.dumps({"lessons": [lesson(1, key=OTHER)]}).encode(), "which holds other things"),
    "huge": (b" " * (8 << 20) + b"{}", "larger than 8 MiB"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_named_and_set_aside(case: str, tmp_path: Path) -> None:
    content, why = DAMAGED[case]
    path = tmp_path / f"{KEY}.json"
    path.write_bytes(content)
    said: list[str] = []
    assert load(tmp_path, [KEY], said.append) == []
    # reading changes nothing
    assert path.read_bytes() == content
    assert len(said) == 1
    assert said[0].startswith(f"asked for what starts of earlier runs showed, found {path} {why}")
    store(tmp_path, [lesson(1)], said.append)
    assert (tmp_path / f"{KEY}.json.damaged").read_bytes() == content
    assert f"set aside as {path}.damaged" in said[1]
    assert names(load(tmp_path, [KEY], quiet)) == ["gpu01-1"]


def test_a_directory_in_the_place_of_a_file_is_named_and_stays(tmp_path: Path) -> None:
    (tmp_path / f"{KEY}.json").mkdir()
    said: list[str] = []
    assert load(tmp_path, [KEY], said.append) == []
    assert "which cannot be read" in said[0]
    with pytest.raises(OSError, match="directory"):
        store(tmp_path, [lesson(1)], quiet)


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "0123456789AB", "0123456789ab/x", "0123456789abc"])
def test_a_key_is_never_a_path(key: str, tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    store(folder, [lesson(1, key=key)], quiet)
    assert not (tmp_path / "a").exists()
    assert load(folder, [key], quiet) == []


def test_the_last_file_stays_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, [lesson(1)], quiet)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store(tmp_path, [lesson(2)], quiet)
    assert names(load(tmp_path, [KEY], quiet)) == ["gpu01-1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{KEY}.json", f"{KEY}.lock"]


def _store_one(folder: Path, number: int, go: Any) -> None:
    go.wait(30)
    store(folder, [lesson(number, host=f"gpu{number:02}")])


def test_runs_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    go = context.Barrier(6)
    runs = [context.Process(target=_store_one, args=(tmp_path, number, go)) for number in range(1, 7)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [run.exitcode for run in runs] == [0] * 6
    assert names(load(tmp_path, [KEY], quiet)) == [f"gpu{number:02}-{number}" for number in range(1, 7)]
    assert _lesson_store.MOST_OF_A_CLASS == 6
