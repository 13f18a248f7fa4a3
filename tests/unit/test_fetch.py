# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a directory comes to hold a checkpoint: what stands, what is asked, who gives, and every state that a killed run leaves."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.action.checkpoint import progress_line
from ansible_collections.inferops.sglang.plugins.module_utils import _fetch_swap, _fetch_worker
from ansible_collections.inferops.sglang.plugins.module_utils._fetch import Fetch, Tools, Wish, _is_news
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_fleet import Turn, rounds, turn_of
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import RECORD, Record, Stamp, read_record, standing
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_share import Share, configuration
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_sources import kind_of, read_manifest, rsync_offer
from ansible_collections.inferops.sglang.plugins.module_utils._hub import Request, Response, SourceError
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock
from support.checkpoints import write_checkpoint

TENSORS = {f"layers.{number}.weight": ("BF16", (64, 64)) for number in range(3)}
SHARDS = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
ONE, TWO = "1" * 40, "2" * 40


class Manager:
    """systemd and rsync as far as they are needed: a step runs to its end at once, or, with ``killed``, is killed before it begins."""

    def __init__(self, killed: bool = False) -> None:
        self.killed, self.output, self.code = killed, "", -1
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str]) -> tuple[int, str, str]:
        words = list(argv)
        self.calls.append(words)
        if words[0] == "systemd-run":
            self.code = 9
            if not self.killed:
                done = subprocess.run(words[words.index("--") + 1 :], capture_output=True, text=True, check=False)
                self.output, self.code = done.stdout + done.stderr, done.returncode
        elif words[:2] == ["systemctl", "show"]:
            failed = "failed\nSubState=failed\nResult=exit-code"
            state = {-1: "inactive\nSubState=dead", 0: "active\nSubState=exited"}.get(self.code, failed)
            return 0, f"ActiveState={state}\nExecMainStatus={max(self.code, 0)}\nInvocationID=x\n", ""
        elif words[0] == "systemctl":
            self.code = -1
        elif words[0] == "journalctl":
            return 0, self.output, ""
        return 0, "", ""


def no_network(request: Request) -> Response:
    raise AssertionError(f"asked for {request.url}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A whole checkpoint, with a tokenizer and the same weights in another form."""
    folder = write_checkpoint(tmp_path / "source", TENSORS, shards=3, config={"architectures": ["LlamaForCausalLM"]})
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"again")
    return folder


def fetch_of(tmp_path: Path, source: object, run: Any = None, **wish: Any) -> Fetch:
    clock = Clock(sleep=lambda _s: None)
    tools = Tools(run or Manager(), no_network, inspect.getsource(_fetch_worker), clock, lambda: "2026-01-02T03:04:05Z")
    return Fetch(Wish(str(tmp_path / "models/kimi"), str(source), **wish), tools)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ---- from nothing to done


def test_a_directory_is_copied_recorded_and_then_left_alone(tmp_path: Path, source: Path) -> None:
    manager = Manager()
    early = fetch_of(tmp_path, source, manager).check()
    assert (early["changed"], early["complete"], early["problems"]) == (True, False, [f"{tmp_path}/models/kimi does not exist"])
    assert not (tmp_path / "models").exists()

    made = fetch_of(tmp_path, source, manager).make()
    assert (made["changed"], made["complete"], made["settled"], made["own"]) == (True, True, True, False)
    wanted = sorted([*SHARDS, "config.json", "model.safetensors.index.json", "tokenizer.json"])
    path = tmp_path / "models/kimi"
    assert names(path) == [RECORD, *wanted]
    record = read_record(str(path))
    assert record is not None
    assert (record.source, record.revision, record.when) == (str(source), "", "2026-01-02T03:04:05Z")
    assert record.fingerprint == made["fingerprint"]
    assert sorted(record.files) == wanted
    assert os.listdir(tmp_path / "models") == ["kimi"]

    manager.calls.clear()
    again = fetch_of(tmp_path, source, manager).make()
    assert (again["changed"], again["fetched_gib"]) == (False, 0.0)
    assert manager.calls == []


def test_what_is_there_is_linked_and_what_the_operator_added_stays(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "models/kimi"
    fetch_of(tmp_path, source).make()
    inodes = {name: (path / name).stat().st_ino for name in SHARDS[:2]}
    (path / "mine.txt").write_text("mine")
    (path / SHARDS[2]).unlink()
    (source / "tokenizer.json").unlink()
    result = fetch_of(tmp_path, source).make()
    assert (result["complete"], result["fetched_gib"]) == (True, 0.0)
    assert {name: (path / name).stat().st_ino for name in SHARDS[:2]} == inodes
    assert (path / "mine.txt").read_text() == "mine"
    # a file of the model that the source no longer has is none of the operator's
    assert not (path / "tokenizer.json").exists()
    assert {(path / name).stat().st_nlink for name in names(path)} == {1}


def test_a_killed_step_says_so_and_the_next_run_starts_it_again(tmp_path: Path, source: Path) -> None:
    with pytest.raises(SourceError, match=r"found it ended with exit code 9; look at journalctl -u inferops-model-[0-9a-f]{12}, and run"):
        fetch_of(tmp_path, source, Manager(killed=True)).make()
    assert fetch_of(tmp_path, source).make()["complete"] is True


def test_a_source_that_is_not_whole_replaces_nothing(tmp_path: Path, source: Path) -> None:
    fetch_of(tmp_path, source).make()
    (source / SHARDS[1]).unlink()
    with pytest.raises(SourceError) as error:
        fetch_of(tmp_path, source, revision="again").make()
    assert f"found {SHARDS[1]}: missing; complete the source; what came is in {tmp_path}/models/kimi.fetching" in str(error.value)
    assert standing(str(tmp_path / "models/kimi"), True, str(source)).settled is True


PLACES: dict[str, tuple[str, str]] = {
    "a file": ("models/file", "found a file; give a directory as path"),
    "the source itself": ("source", "found that it is (in) the place where the model shall be"),
    "inside the source": ("source/inner", "found that it is (in) the place where the model shall be"),
    "a mount point": ("/proc", "found a mount point, which nothing can be moved to; give a directory on it, for example /proc/model"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_place_that_cannot_be_taken(case: str, tmp_path: Path, source: Path) -> None:
    place, text = PLACES[case]
    (tmp_path / "models").mkdir()
    (tmp_path / "models/file").write_text("")
    (source / SHARDS[0]).unlink()
    tools = Tools(Manager(), no_network, "")
    with pytest.raises(SourceError) as error:
        Fetch(Wish(str(tmp_path / place), str(source)), tools).make()
    assert text in str(error.value)


# ---- every state that a killed run leaves

STEPS = {
    # PATH is there, has a record, PATH.fetching is whole, PATH.replaced is there
    (False, False, False, False): "stay",
    (True, False, False, False): "stay",
    (True, True, False, False): "stay",
    (False, False, True, False): "move in",
    (True, False, True, False): "move aside",
    (True, True, True, False): "move aside",
    (False, False, True, True): "move in",
    (False, False, False, True): "put back",
    (True, True, False, True): "remove old",
    (True, True, True, True): "remove old",
    (True, False, False, True): "refuse",
    (True, False, True, True): "refuse",
}


@pytest.mark.parametrize("state", STEPS)
def test_each_state_has_one_next_step(state: tuple[bool, bool, bool, bool]) -> None:
    assert _fetch_swap.next_step(*state) == STEPS[state]


@pytest.mark.parametrize("cut", range(5))
def test_a_swap_that_is_cut_anywhere_is_finished_by_the_next_run(
    cut: int, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_of(tmp_path, source).make()
    (source / "tokenizer.json").write_text('{"new": 1}')
    taken: list[str] = []
    really = _fetch_swap._take

    def take(step: str, where: Any) -> None:
        if len(taken) == cut:
            raise KeyboardInterrupt
        really(step, where)
        taken.append(step)

    monkeypatch.setattr(_fetch_swap, "_take", take)
    if cut < 3:
        with pytest.raises(KeyboardInterrupt):
            fetch_of(tmp_path, source, revision="two").make()
        path = str(tmp_path / "models/kimi")
        assert standing(path, os.path.isdir(path), str(source), "two").settled is False
    monkeypatch.setattr(_fetch_swap, "_take", really)
    result = fetch_of(tmp_path, source, revision="two").make()
    assert (result["changed"], result["complete"], result["settled"]) == (True, True, True)
    assert (tmp_path / "models/kimi/tokenizer.json").read_text() == '{"new": 1}'
    assert os.listdir(tmp_path / "models") == ["kimi"]
    assert not (tmp_path / "models/kimi/.inferops-fetch").exists()


def test_what_was_fetched_for_another_wish_is_material_and_no_swap(tmp_path: Path, source: Path) -> None:
    fetch_of(tmp_path, source).make()
    begun = tmp_path / "models/kimi.fetching"
    begun.mkdir()
    (begun / RECORD).write_text(Record("hub:acme/other", "v1", ONE).text())
    result = fetch_of(tmp_path, source, revision="two").make()
    assert result["source"] == str(source)
    assert os.listdir(tmp_path / "models") == ["kimi"]


def test_a_directory_that_somebody_made_in_between_is_not_removed(tmp_path: Path, source: Path) -> None:
    fetch_of(tmp_path, source).make()
    (tmp_path / "models/kimi").rename(tmp_path / "models/kimi.replaced")
    (tmp_path / "models/kimi").mkdir()
    with pytest.raises(SourceError, match=r"while .*/kimi.replaced still holds what stood there before; remove one of the two"):
        fetch_of(tmp_path, source).make()


# ---- what stands against what is asked

STANDINGS: dict[str, tuple[Optional[Record], bool, str, str, bool]] = {
    "as it was asked": (Record("hub:a/b", "main", ONE), True, "hub:a/b", "main", True),
    "no revision asked": (Record("hub:a/b", "v1", ONE), True, "hub:a/b", "", True),
    "its commit": (Record("hub:a/b", "main", ONE), True, "hub:a/b", ONE, True),
    "another commit": (Record("hub:a/b", "main", ONE), True, "hub:a/b", TWO, False),
    "another repository": (Record("hub:a/b", "main", ONE), True, "hub:a/c", "main", False),
    "no source asked": (Record("hub:a/b", "main", ONE), True, "", "", True),
    "a file is lost": (Record("hub:a/b", "main", ONE), False, "hub:a/b", "main", False),
    "the operator's": (None, True, "hub:a/b", "", True),
    "the operator's, of an unknown revision": (None, True, "hub:a/b", ONE, True),
    "the operator's, not whole": (None, False, "hub:a/b", "", False),
}


@pytest.mark.parametrize("case", STANDINGS)
def test_what_stands_against_what_is_asked(case: str, tmp_path: Path) -> None:
    record, complete, asked, revision, settled = STANDINGS[case]
    if record:
        (tmp_path / RECORD).write_text(record.text())
    found = standing(str(tmp_path), complete, asked, revision)
    assert (found.settled, found.refusal, found.own) == (settled, "", record is None)
    assert ("its revision is unknown" in found.note) is (case == "the operator's, of an unknown revision")


def test_the_hubs_own_client_tells_the_commit_of_what_it_fetched(tmp_path: Path) -> None:
    (tmp_path / ".cache/huggingface/download").mkdir(parents=True)
    (tmp_path / ".cache/huggingface/download/config.json.metadata").write_text(f"{ONE}\netag\n1.0\n")
    assert standing(str(tmp_path), True, "hub:a/b", ONE).settled is True
    refused = standing(str(tmp_path), True, "hub:a/b", TWO)
    assert refused.settled is False
    assert refused.refusal == f"a complete checkpoint of commit {ONE} that was not fetched by this collection"
    snapshot = tmp_path / "models--a--b/snapshots" / TWO
    snapshot.mkdir(parents=True)
    assert standing(str(snapshot), True, "hub:a/b").commit == TWO


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"source": 5}', '{"source": "x", "files": {"a": 1}}', "\xff"])
def test_a_damaged_record_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text(text, encoding="latin-1")
    assert read_record(str(tmp_path)) is None


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record("hub:a/b", "main", ONE, "f", "now", "gpu01", {"a/b.json": Stamp(5, 7, "git:x")})
    (tmp_path / RECORD).write_text(record.text())
    assert read_record(str(tmp_path)) == record


# ---- sources

KINDS = {
    "hub:moonshotai/Kimi-K2.6": "hub", "/mnt/models/kimi": "directory", "rsync://store/models/kimi": "rsync", "store:/models/kimi": "rsync",
    "me@store.lan:/models": "rsync", "hub:kimi": "", "hub:../x": "", "models/kimi": "", "http://x/y": "", "-e sh:/x": "",
}  # fmt: skip


@pytest.mark.parametrize("source", KINDS)
def test_kinds_of_source(source: str) -> None:
    if KINDS[source]:
        assert kind_of(source) == KINDS[source]
        return
    with pytest.raises(SourceError, match="found neither hub:OWNER/NAME, nor"):
        kind_of(source)


MANIFESTS: dict[str, tuple[str, str]] = {
    "a line that is none": ("0123  config.json\n", "found the line 1, '0123  config.json'; give a file with lines of 64"),
    "a name that leads out": (f"{'a' * 64}  ../config.json\n", "found the line 1, "),
    "nothing that is served": (f"{'a' * 64}  README.md\n", "found no file in it that a server reads; "),
    "nothing": ("\n", "found no file in it that a server reads; "),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_is_none(case: str, tmp_path: Path) -> None:
    text, said = MANIFESTS[case]
    (tmp_path / "sums").write_text(text)
    with pytest.raises(SourceError) as error:
        read_manifest(str(tmp_path / "sums"))
    assert (said in str(error.value), error.value.finding.check) == (True, "model_manifest")


def test_a_manifest_is_read_in_both_of_its_forms(tmp_path: Path) -> None:
    (tmp_path / "sums").write_text(f"{'A' * 64}  ./config.json\n{'b' * 64} *model.safetensors\n{'c' * 64}  pytorch_model.bin\n")
    assert read_manifest(str(tmp_path / "sums")) == {"config.json": "a" * 64, "model.safetensors": "b" * 64}


# ---- the worker


class Slow(_fetch_worker.Fetcher):
    """Gives a file in pieces: each call one, or an error."""

    def __init__(self, *pieces: object) -> None:
        self.pieces, self.starts = list(pieces), []

    def fetch(self, file: _fetch_worker.File, part: str) -> None:
        assert file.name == "a.json"
        self.starts.append(_fetch_worker._size(part))
        piece = self.pieces.pop(0) if self.pieces else _fetch_worker.Again("cut")
        if isinstance(piece, Exception):
            raise piece
        with open(part, "ab") as stream:
            stream.write(piece)


def work_of(directory: Path, *files: _fetch_worker.File, **more: Any) -> tuple[_fetch_worker.Work, list[float]]:
    directory.mkdir(parents=True, exist_ok=True)
    slept: list[float] = []
    job = _fetch_worker.Job(str(directory), {"kind": "hub"}, files=files, threads=1, **more)
    return _fetch_worker.Work(job, slept.append), slept


def test_a_file_goes_on_where_it_was_cut_and_waits_as_long_as_it_is_told(tmp_path: Path) -> None:
    file = _fetch_worker.File("a.json", 6, "sha256:" + hashlib.sha256(b"abcdef").hexdigest())
    work, slept = work_of(tmp_path / "f", file)
    giver = Slow(b"ab", _fetch_worker.Again("429", 41.0), b"cd", _fetch_worker.Again("gone"), b"ef")
    work._fetch_one(giver, file)
    assert (tmp_path / "f/a.json").read_bytes() == b"abcdef"
    assert giver.starts == [0, 2, 2, 4, 4]
    assert slept == [1.0, 41.0, 1.0, 2.0]


def test_a_file_that_does_not_come_ends_the_work_and_one_that_is_damaged_twice_too(tmp_path: Path) -> None:
    file = _fetch_worker.File("a.json", 2, "sha256:" + "0" * 64)
    work, slept = work_of(tmp_path / "f", file)
    with pytest.raises(_fetch_worker.Failure, match=r"that a\.json does not come \(cut\), 8 tries in a row without a byte; look at"):
        work._fetch_one(Slow(), file)
    assert slept == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    with pytest.raises(_fetch_worker.Failure, match=r"a\.json that came twice with another content than sha256:0000"):
        work._fetch_one(Slow(b"xx", b"xx"), file)


def test_what_is_there_counts_by_its_content(tmp_path: Path) -> None:
    git = "git:" + hashlib.sha1(b"blob 2\0ok", usedforsecurity=False).hexdigest()
    files = [_fetch_worker.File(name, 2, git) for name in ("linked", "stamped", "other", "there", "half")]
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    for name, content in (("linked", "ok"), ("stamped", "no"), ("other", "no")):
        (old / name).write_text(content)
    (new / "there").write_text("ok")
    (new / "half").write_text("o")
    # its content was checked when it was fetched, and it has not been changed since: it is not read again
    stamps = {"stamped": [2, (old / "stamped").stat().st_mtime_ns, git]}
    work, _slept = work_of(new, *files, standing=str(old), stamps=stamps)
    assert [file.name for file in work._take_what_is_there()] == ["other", "half"]
    assert [(new / name).stat().st_nlink for name in ("linked", "stamped", "there")] == [2, 2, 1]
    # all of it is in the ledger, which another run reads
    assert work_of(new, *files)[0].ledger.keys() == {"linked", "stamped", "there"}


def test_no_room_is_seen_before_anything_is_fetched(tmp_path: Path) -> None:
    work, _slept = work_of(tmp_path, _fetch_worker.File("a.safetensors", 1 << 60, ""))
    with pytest.raises(_fetch_worker.Failure, match=r"^1073741824.0 GiB missing and [0-9.]+ GiB free on the file system of"):
        work.run()


RSYNC = {
    "refused": (5, "@ERROR: auth failed on model\n", "rsync's exit code 5 from rsync://x (@ERROR: auth failed on model)", "model_source"),
    "full": (11, "rsync: write failed: No space left on device (28)\n", "no space left (rsync: write failed", "model_disk"),
    "not there": (12, "bash: rsync: command not found\n", "no rsync on the other side of rsync://x", "model_source"),
}


@pytest.mark.parametrize("case", RSYNC)
def test_why_rsync_ended(case: str) -> None:
    code, errors, text, check = RSYNC[case]
    answer = _fetch_worker.rsync_failure(code, errors, "rsync://x").answer
    assert text in answer["found"]
    assert answer["check"] == check


def test_a_giver_whose_file_is_damaged_gives_nothing(tmp_path: Path) -> None:
    right = hashlib.sha256(b"ok").hexdigest()
    (tmp_path / "a.safetensors").write_text("no")
    work, _slept = work_of(tmp_path)
    giver = tmp_path / _fetch_worker.WORK / "giver.json"
    giver.parent.mkdir(exist_ok=True)
    giver.write_text(Record("hub:a/b", files={"a.safetensors": Stamp(2, 0, f"sha256:{right}")}).text())
    with pytest.raises(_fetch_worker.Failure, match=r"1 files with another content than was once fetched, the first a\.safe"):
        work._check_copies()
    assert not (tmp_path / "a.safetensors").exists()


class Giver:
    """An rsync that answers with these exit codes, and what a run that looks meanwhile would take for whole."""

    def __init__(self, folder: Path, *codes: int) -> None:
        self.folder, self.codes, self.calls = folder, list(codes), []

    def __call__(self, argv: Sequence[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(list(argv))
        assert not (self.folder / RECORD).exists()
        return subprocess.CompletedProcess(argv, self.codes.pop(0), stderr="rsync: link_stat failed: No such file (2)")


def rsync_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *codes: int) -> tuple[_fetch_worker.Work, Giver]:
    stats = "Total file size: 10 bytes\nTotal transferred file size: 4 bytes\n"
    offer = rsync_offer("rsync://gpu01:8730/model/", str(tmp_path), "", lambda _argv: (0, stats, ""))
    work = _fetch_worker.Work(_fetch_worker.Job(str(tmp_path), offer.job, threads=1), lambda _s: None)
    giver = Giver(tmp_path, *codes)
    monkeypatch.setattr(_fetch_worker.subprocess, "run", giver)
    return work, giver


@pytest.mark.parametrize("code", [0, 23])
def test_a_givers_record_comes_last_and_never_among_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    work, giver = rsync_work(tmp_path, monkeypatch, 0, code)
    work._copy_by_rsync()
    files, record = giver.calls
    assert files[-2:] == ["rsync://gpu01:8730/model/", f"{tmp_path}/"]
    assert [word for word in files if RECORD in word] == []
    # the first rule that matches decides
    assert next(word for word in files if word.startswith(("--include", "--exclude"))) == "--exclude=.*"
    assert record[-2:] == [f"rsync://gpu01:8730/model/{RECORD}", str(tmp_path / _fetch_worker.WORK / "giver.json")]
    assert not {"--recursive", "--delete", "--exclude=.*"} & set(record)


def test_files_that_a_giver_lacks_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, _giver = rsync_work(tmp_path, monkeypatch, 23)
    with pytest.raises(_fetch_worker.Failure, match="rsync's exit code 23 from rsync://gpu01:8730/model/"):
        work._copy_by_rsync()


# ---- the fleet

HAS = {"settled": True, "complete": True, "source": "hub:a/b", "revision": "main", "commit": ONE, "total_gib": 5.0}
ASKED = {"source": "hub:a/b", "revision": "", "path": "/m"}
TURNS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], dict[str, Turn]]] = {
    "nobody has it": ({}, ASKED, [], {"a": Turn(asks=True), "b": Turn(), "c": Turn()}),
    "one has it": ({"a": HAS}, ASKED, [], {"a": Turn(), "b": Turn("a", gib=5.0), "c": Turn(gib=5.0)}),
    "two have it": ({"a": HAS, "z": HAS}, ASKED, [], {"b": Turn("a", gib=5.0), "c": Turn("z", gib=5.0)}),
    "of another commit": ({"a": HAS}, {**ASKED, "revision": TWO}, [], {"b": Turn(asks=True), "c": Turn()}),
    "of the commit": ({"a": HAS}, {**ASKED, "revision": ONE}, [], {"b": Turn("a", gib=5.0)}),
    "of another model": ({"a": {**HAS, "source": "hub:a/c"}}, ASKED, [], {"b": Turn(asks=True)}),
    "not whole": ({"a": {**HAS, "complete": False}}, ASKED, [], {"b": Turn(asks=True)}),
    "did not give it": ({"a": HAS, "z": HAS}, ASKED, ["a"], {"b": Turn("z", gib=5.0)}),
}


@pytest.mark.parametrize("case", TURNS)
def test_whose_turn_it_is(case: str) -> None:
    seen, asked, avoided, turns = TURNS[case]
    batch = ["a", "b", "c"]
    every = {**{name: {} for name in batch}, **seen}
    assert {host: turn_of(host, asked, every, batch, avoided) for host in turns} == turns


@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 7, 8, 9, 100])
def test_the_rounds_reach_every_host(hosts: int) -> None:
    batch = [f"h{number:03}" for number in range(hosts)]
    seen: dict[str, dict[str, Any]] = {name: {} for name in batch}
    for _round in range(rounds(hosts)):
        turns = {host: turn_of(host, ASKED, seen, batch) for host in batch}
        assert len({turn.peer for turn in turns.values() if turn.peer}) == sum(bool(turn.peer) for turn in turns.values())
        assert sum(turn.asks for turn in turns.values()) <= 1
        seen = {host: HAS if turns[host].peer or turns[host].asks else seen[host] for host in batch}
    assert all(seen.values())


def test_what_is_shared_can_only_be_read_by_whom_is_named(tmp_path: Path) -> None:
    text = configuration(Share(str(tmp_path), 8730, ["192.0.2.12"], "word"), "/run/x")
    assert "word" not in text
    wanted = {"read only = yes", "hosts allow = 192.0.2.12", "hosts deny = *", "auth users = inferops", "secrets file = /run/x/secret"}
    assert wanted <= set(text.splitlines())


LINES = {
    "on its way": (
        {"now": {"stage": "fetches 64 files, 554.3 GiB", "percent": 41, "fetched_gib": 227.13}},
        "[gpu01] /srv/kimi | fetches 64 files, 554.3 GiB | 41 % | 2 min 5 s | 227.1 GiB",
    ),
    "no figure yet": (
        {"now": {"stage": "starts", "percent": None, "fetched_gib": 0.0}},
        "[gpu01] /srv/kimi | starts | 2 min 5 s | 0.0 GiB",
    ),
    "there": ({"fetched_gib": 554.3}, "[gpu01] /srv/kimi | complete | 2 min 5 s | 554.3 GiB fetched"),
    "failed": ({"failed": True}, "[gpu01] /srv/kimi | failed | 2 min 5 s | 0.0 GiB fetched"),
}


@pytest.mark.parametrize("case", LINES)
def test_lines_at_the_terminal(case: str) -> None:
    seen, line = LINES[case]
    assert progress_line("gpu01", "/srv/kimi", seen, 125.0) == line


def test_the_worker_takes_its_job_as_it_is_written() -> None:
    job = {"directory": "/x", "source": {"kind": "hub"}, "files": [["a", 1, "git:b"]], "threads": 2}
    assert _fetch_worker.load_job(json.dumps(job)).files == (_fetch_worker.File("a", 1, "git:b"),)


NEWS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "it has only begun": ({}, {"stage": "starts", "percent": None}, False),
    "another stage": ({}, {"stage": "fetches", "percent": 0}, True),
    "the same tenth": ({"stage": "fetches", "percent": 11}, {"stage": "fetches", "percent": 19}, False),
    "a further tenth": ({"stage": "fetches", "percent": 19}, {"stage": "fetches", "percent": 20}, True),
}


@pytest.mark.parametrize("case", NEWS)
def test_what_is_news(case: str) -> None:
    known, now, said = NEWS[case]
    assert _is_news(known, now) is said
