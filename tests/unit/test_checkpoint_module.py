# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules checkpoint and checkpoint_share, run as Ansible runs them in check mode: arguments in, JSON out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.module_utils import _fetch
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import StepState
from ansible_collections.inferops.sglang.plugins.modules import checkpoint, checkpoint_share
from ansible_collections.inferops.sglang.plugins.plugin_utils._fleet_filters import model_turn
from support.checkpoints import write_checkpoint
from support.module import Run, runner

TENSORS = {"weight": ("BF16", (64, 64))}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The module checkpoint on a host where no step runs."""
    monkeypatch.setattr(_fetch, "look", lambda *_arguments, **_more: StepState("absent"))
    return runner(checkpoint.main, monkeypatch, capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "source", TENSORS, config={})


def test_a_model_that_the_operator_put_there_is_taken_as_it_is(run: Run, source: Path) -> None:
    result = run(path=str(source), source="hub:acme/kimi", endpoint="http://127.0.0.1:9")
    documented = set(yaml.safe_load(checkpoint.RETURN)) - {"finding", "progress", "now"}
    assert set(result) - {"invocation", "changed"} == documented
    assert (result["changed"], result["settled"], result["complete"], result["own"]) == (False, True, True, True)
    result = run(path=str(source), source="hub:acme/kimi", revision="v1", endpoint="http://127.0.0.1:9")
    assert result["notes"] == [
        f"{source} was not fetched by this collection; its revision is unknown, and it is taken as it is where v1 is asked"
    ]


def test_check_mode_says_what_would_be_fetched(run: Run, source: Path, tmp_path: Path) -> None:
    result = run(path=str(tmp_path / "models/kimi"), source=str(source))
    assert (result["changed"], result["settled"], result["missing_gib"], result["fetched_gib"]) == (True, False, 0.0, 0.0)
    # a bare look changes nothing, and says so
    assert run(path=str(tmp_path / "models/kimi"), source=str(source), check_only=True)["changed"] is False
    assert os.listdir(tmp_path) == ["source"]


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no source": (
        {"source": "kimi"},
        "model_source: asked for the source 'kimi', found neither hub:OWNER/NAME, nor the absolute path of a directory, "
        "nor rsync://HOST/MODULE/PATH or HOST:/PATH; give one of these",
        "model_source",
    ),
    "no directory": (
        {"source": "/nowhere"},
        "model_source: asked for a checkpoint from the directory /nowhere, found no such directory on this host; "
        "mount the file system it is on, or give another source",
        "model_source",
    ),
    "no manifest": (
        {"manifest": "/nowhere"},
        "model_manifest: asked for the manifest /nowhere, found No such file or directory; "
        "give a file with lines of 64 hexadecimal digits, two spaces and a file's name, as sha256sum writes them",
        "model_manifest",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_stands_against_it_is_a_finding_or_a_failure(case: str, run: Run, source: Path, tmp_path: Path) -> None:
    arguments, text, check = WRONG[case]
    asked = {"path": str(tmp_path / "kimi"), "source": str(source), **arguments}
    looked = run(**asked, check_only=True)
    assert (looked["finding"]["text"], looked["finding"]["check"], looked["changed"]) == (text, check, False)
    assert "failed" not in looked
    failed = run(**asked)
    assert (failed["failed"], failed["msg"]) == (True, text.partition(": ")[2])


def test_how_much_room_is_known_without_asking_the_source(run: Run, tmp_path: Path) -> None:
    asked = {"path": str(tmp_path / "kimi"), "source": "hub:acme/kimi", "endpoint": "http://127.0.0.1:9", "check_only": True}
    assert run(**asked, expected_gib=0.5)["missing_gib"] == 0.5
    text = run(**asked, expected_gib=1e6)["finding"]["text"]
    assert text.startswith(f"model_disk: asked for hub:acme/kimi in {tmp_path}/kimi, found 1000000.0 GiB missing and ")


def test_a_peer_is_an_rsync_address() -> None:
    options = {**dict.fromkeys(checkpoint.ARGUMENT_SPEC), "path": "/m", "source": "hub:a/b", "revision": "", "endpoint": "", "timeout": 5}
    peer = {"address": "2001:db8::1", "port": 8730, "secret": "word", "name": ""}
    wish = checkpoint.wish_of({**options, "peer": peer})
    assert (wish.peer_url, wish.peer_secret, wish.peer_name) == ("rsync://inferops@[2001:db8::1]:8730/model/", "word", "2001:db8::1")
    assert checkpoint.wish_of(options).peer_url == ""


def test_a_share_names_who_may_take_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = runner(checkpoint_share.main, monkeypatch, capsys)
    assert run(path="/m", allow=["192.0.2.1"])["msg"] == "state is started but all of the following are missing: secret"
    assert run(path="/m", allow=["192.0.2.1"], secret="word")["changed"] is True
    assert run(path="/m", state="stopped")["changed"] is True


def test_the_filter_takes_what_preflight_saw_and_what_came_since() -> None:
    model = {"path": "/m", "source": "hub:a/b", "revision": ""}
    has = {"path": "/m", "settled": True, "complete": True, "source": "hub:a/b", "revision": "", "commit": "c", "total_gib": 5.0}
    lacks = {"__sglang_host": {"checkpoints": {"model": {"path": "/m", "settled": False}}}}
    hosts = {
        "seen": {"__sglang_host": {"checkpoints": {"draft": {"path": "/d"}, "model": has}}},
        "came": {**lacks, "__sglang_models_fetched": {"/m": has}},
        "other": {"__sglang_host": {"checkpoints": {"model": {**has, "path": "/other"}}}},
        "one": {**lacks, "__sglang_models_elsewhere": {"results": [
            {"item": [model, "unread"], "settled": True, "complete": True, "revision": "c", "total_gib": 5.0},
            {"item": [model, "other"], "finding": {}}, {"item": [{**model, "revision": "v1"}, "other"], "settled": True, "complete": True},
        ]}},
        "two": lacks, "three": lacks, "unread": {},
    }  # fmt: skip
    turns = {name: model_turn(hosts, name, model, list(hosts), ["one", "two", "three", "came"]) for name in ("one", "two", "three", "came")}
    assert [turns[name]["peer"] for name in turns] == ["came", "seen", "unread", ""]
    assert [turns[name]["asks"] for name in turns] == [False] * 4
