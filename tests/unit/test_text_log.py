# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading logs that are kept as text: their forms, how they grow and are replaced, and what reading them fast leaves out."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import threading
import tracemalloc
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._blocks import MAX_LINE, Blocks
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import parse_record
from ansible_collections.inferops.sglang.plugins.module_utils._text_log import Decoder, GivenText, TextLog, parse_line
from ansible_collections.inferops.sglang.tests.unit.boots import FIRST, READY, SECOND, as_text, stamped
from hypothesis import example, given, settings
from hypothesis import strategies as st

OLD, NEW = "d" * 32, "e" * 32
NOISE = stamped("TP0", "Decode batch, #running-req: 1")


def all_of():
    return True


def milestones_only():
    return False


# --- forms

LINES = [
    ("text", {"MESSAGE": "x", "_PID": "5", "__REALTIME_TIMESTAMP": "7"}, Entry("x", 5, 7)),
    ("bytes", {"MESSAGE": [104, 105]}, Entry("hi")),
    ("repeated", {"MESSAGE": ["a", [98]]}, Entry("a\nb")),
    ("too long for journalctl", {"MESSAGE": None}, None),
    ("no message", {"_PID": "5"}, None),
    ("numbers that are no bytes", {"MESSAGE": [300, -1]}, None),
    ("odd pid", {"MESSAGE": "x", "_PID": ["8", "9"], "__REALTIME_TIMESTAMP": "soon"}, Entry("x", 8)),
    ("manager", {"MESSAGE": "x", "INVOCATION_ID": OLD, "_PID": "1"}, Entry("x", 1, None, True)),
    ("no object", ["MESSAGE"], None),
]


@pytest.mark.parametrize(("fields", "expected"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_one_line_of_json(fields, expected):
    assert parse_line(json.dumps(fields).encode()) == expected


@pytest.mark.parametrize("line", [b"", b"-- No entries --", b'{"MESSAGE":', b"\xff\xfe", b"[" * 100000])
def test_what_is_no_json_is_no_entry(line):
    assert parse_line(line) is None


def test_saved_logs_are_read_in_all_three_forms():
    lines = [
        b"[2026-05-30 22:08:02 TP0] plain \xff\r\n",
        b'{"log":"[2026-05-30 22:08:02 TP0] of docker\\n","stream":"stderr","time":"2026-05-30T22:08:02Z"}\n',
        b'{"__CURSOR":"s=1","MESSAGE":"of the journal","_PID":"9"}\n',
        b'{"__CURSOR":"s=1","MESSAGE":null}\n',
        b"{'model_path': 'no json'}\n",
    ]
    assert list(GivenText(b"".join(lines)).read(all_of, True)) == [
        Entry("[2026-05-30 22:08:02 TP0] plain \ufffd"),
        Entry("[2026-05-30 22:08:02 TP0] of docker"),
        Entry("of the journal", 9),
        Entry("{'model_path': 'no json'}"),
    ]


def test_of_a_whole_hosts_saved_journal_only_the_newest_start_counts():
    """From the line that opens it on; what other units and their manager say is none of its."""
    mine = {"_SYSTEMD_INVOCATION_ID": NEW, "_SYSTEMD_UNIT": "sglang.service"}
    other = {"_SYSTEMD_INVOCATION_ID": OLD, "_SYSTEMD_UNIT": "other.service"}
    manager = {"_PID": "1", "UNIT": "x.service"}
    daemon = {"SYSLOG_IDENTIFIER": "systemd-journald"}
    lines = [
        (other, "before"),
        (mine, stamped("", "server_args=ServerArgs(tp_size=1)")),
        (other, "Traceback (most recent call last):"),
        (other, "somebody quotes server_args="),
        ({**manager, "INVOCATION_ID": OLD}, "x.service: Failed with result 'exit-code'."),
        ({**manager, "INVOCATION_ID": NEW}, "Started SGLang."),
        (daemon, "Suppressed 5 messages from other.service"),
        (daemon, "Suppressed 6 messages from sglang.service"),
        ({}, "of a line whose fields were not kept"),
        (mine, stamped("", READY)),
    ]
    data = "".join(json.dumps({"__CURSOR": "x", **fields, "MESSAGE": text}) + "\n" for fields, text in lines)
    found = [entry.text for entry in GivenText(data.encode()).read(all_of, True)]
    assert found == [lines[number][1] for number in (0, 1, 5, 7, 8, 9)]


def docker(text: str, stream: str = "stderr") -> str:
    return json.dumps({"log": text, "stream": stream, "time": "2026-05-30T22:08:02.123456789Z"}, separators=(",", ":")) + "\n"


def test_docker_takes_long_lines_apart_and_here_they_are_joined():
    """Docker's json-file driver cuts at 16 KiB, and each stream has lines of its own."""
    log = docker("one ") + docker("other\n", "stdout") + docker("two ") + docker("of stdout", "stdout") + docker("three\n") + docker("left")
    found = [entry.text for entry in GivenText(log.encode()).read(all_of, True)]
    assert found == ["other", "one two three", "of stdout", "left"]


def test_a_part_of_a_long_line_is_no_noise():
    text = docker(stamped("", "server_args=ServerArgs(a=1, b='")) + docker(NOISE.replace("[", "") + "', tp_size=3)\n") + docker("x\n")
    (entry,) = GivenText(text.encode()).read(milestones_only, True)
    (record,) = parse_record(entry.text)
    assert record.event.values["tp_size"] == 3


def test_a_part_that_looks_like_noise_is_no_whole_line():
    text = docker("x\n") + docker(NOISE) + docker(stamped("TP0", READY) + "\n")
    assert [entry.text for entry in GivenText(text.encode()).read(milestones_only, True)] == [NOISE + stamped("TP0", READY)]


def test_a_text_is_read_once():
    log = GivenText(b"one\ntwo")
    assert [entry.text for entry in log.read(all_of, False)] == ["one", "two"]
    assert list(log.read(all_of, True)) == []
    assert (log.starts_over(), log.warnings, log.last_lines()) == (False, (), ["one", "two"])


# --- growing files


class Growing:
    """A file that a test lets grow, and what a reader of it finds at each look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_text("")
        self.log = TextLog([str(path)])
        self.look()

    def write(self, text: str) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(text)

    def look(self, final: bool = False) -> list[str]:
        """``again`` first where the reader starts over."""
        begin = ["again"] if self.log.starts_over() else []
        return begin + [entry.text for entry in self.log.read(all_of, final)]


@pytest.fixture
def growing(tmp_path):
    return Growing(tmp_path / "x.log")


def test_each_look_reads_only_what_was_added(growing):
    growing.write("one\ntwo\n")
    assert growing.look() == ["one", "two"]
    assert growing.look() == []
    growing.write("three\n")
    assert growing.look() == ["three"]
    assert growing.log.last_lines(2) == ["two", "three"]


def test_a_line_is_held_back_until_it_has_its_end(growing):
    growing.write("#tokens: 1924")
    assert growing.look() == []
    growing.write("06\nnext")
    assert growing.look() == ["#tokens: 192406"]
    assert growing.look(final=True) == ["next"]


def test_a_last_line_without_an_end_is_taken_for_whole_when_nothing_more_comes(growing):
    growing.write("one\ntwo")
    assert growing.look() == ["one"]
    assert growing.look() == ["two"]
    assert growing.look() == []
    growing.write(" and a half\n")
    assert growing.look() == ["again", "one", "two and a half"]


# what happens to a file of which two lines were read; what the next look finds
REPLACED = [
    ("made empty", lambda path: path.write_text(""), ["again"]),
    ("made empty and written again", lambda path: path.write_text("new\n"), ["again", "new"]),
    ("made empty and grown over what it was", lambda path: path.write_text("new line\n" * 3), ["again"] + ["new line"] * 3),
    ("another file in its place", lambda path: (path.rename(f"{path}.1"), path.write_text("one\ntwo\nx\n")), ["again", "one", "two", "x"]),
    ("moved away", lambda path: path.rename(f"{path}.1"), []),
    ("moved away and back", lambda path: (path.rename(f"{path}.1"), Path(f"{path}.1").rename(path)), []),
]


@pytest.mark.parametrize(("change", "found"), [case[1:] for case in REPLACED], ids=[case[0] for case in REPLACED])
def test_a_file_that_is_replaced_is_read_anew(growing, change, found):
    growing.write("one\ntwo\n")
    assert growing.look() == ["one", "two"]
    change(growing.path)
    assert growing.look() == found
    assert growing.look() == []


def test_of_several_files_only_the_last_may_grow(tmp_path):
    first, last = tmp_path / "x.log.1", tmp_path / "x.log"
    first.write_text("one\ntwo")
    last.write_text("three\n")
    log = TextLog([str(first), str(last)])
    assert [entry.text for entry in log.read(all_of, False)] == ["one", "two", "three"]
    last.write_text("three\nfour\n")
    assert not log.starts_over()
    assert [entry.text for entry in log.read(all_of, False)] == ["four"]
    first.write_text("one\ntwo\nmore\n")
    assert log.starts_over()
    assert [entry.text for entry in log.read(all_of, True)] == ["one", "two", "more", "three", "four"]


def test_a_look_at_a_log_that_did_not_grow_reads_next_to_nothing(tmp_path, monkeypatch):
    path = tmp_path / "x.log"
    path.write_text((NOISE + "\n") * 100000)
    log = TextLog([str(path)])
    assert list(log.read(milestones_only, False)) == []
    taken = []
    step = Blocks._step
    monkeypatch.setattr(Blocks, "_step", lambda self, to: (taken.append(to - self._at), step(self, to)))
    assert not log.starts_over()
    assert list(log.read(milestones_only, False)) == []
    assert sum(taken) == 0


# --- packed files and pipes


def test_a_packed_log_is_read_like_a_plain_one(tmp_path):
    plain, packed = tmp_path / "x.log", tmp_path / "packed"
    plain.write_text(as_text(SECOND.lines()) + "\n")
    # logrotate appends, so a packed file may have several members
    packed.write_bytes(b"".join(gzip.compress(line.encode() + b"\n") for line in as_text(SECOND.lines()).split("\n")))
    found = [[entry.text for entry in TextLog([str(path)]).read(all_of, True)] for path in (plain, packed)]
    assert found[0] == found[1] == [line.text for line in SECOND.lines()]
    log = TextLog([str(packed)])
    assert len(list(log.read(all_of, False))) == len(SECOND.lines())
    assert (log.starts_over(), list(log.read(all_of, False)), log.warnings) == (False, [], ())
    packed.write_bytes(gzip.compress(b"new\n"))
    assert log.starts_over()
    assert [entry.text for entry in log.read(all_of, True)] == ["new"]


@pytest.mark.parametrize("how", ["cut short", "garbage inside", "garbage behind"])
def test_of_a_damaged_packed_log_the_beginning_is_read_and_the_damage_noted(tmp_path, how):
    lines = b"".join(b"line %d %d\n" % (n, n * 7919 % 10007) for n in range(50000))
    whole = gzip.compress(lines)
    middle = len(whole) // 2
    data = {
        "cut short": whole[:middle],
        "garbage inside": whole[:middle] + b"\xff" * 1000 + whole[middle + 1000 :],
        "garbage behind": whole + b"garbage",
    }[how]
    path = tmp_path / "x.gz"
    path.write_bytes(data)
    log = TextLog([str(path)])
    found = [entry.text for entry in log.read(all_of, True)]
    assert found[:2] == ["line 0 0", "line 1 7919"]
    assert re.match(rf"{path} is damaged \(.+\): lines may be missing", log.warnings[0])


def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(as_text(FIRST.lines())))

    writer.start()
    log = TextLog([str(path)])
    found = [entry.text for entry in log.read(all_of, False)]
    writer.join()
    assert found == [line.text for line in FIRST.lines()]
    assert (log.starts_over(), list(log.read(all_of, True)), log.last_lines()) == (False, [], [])


# name, what is made at the path, what is found
UNREADABLE = [
    ("absent", lambda _path: None, "No such file or directory"),
    ("a directory", lambda path: path.mkdir(), "Is a directory"),
    ("a loop of links", lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
]


@pytest.mark.parametrize(("make", "found"), [case[1:] for case in UNREADABLE], ids=[case[0] for case in UNREADABLE])
def test_a_log_that_cannot_be_read_is_an_error_in_three_parts(tmp_path, make, found):
    path = tmp_path / "x.log"
    make(path)
    with pytest.raises(JournalError, match=rf"asked for the log {path}, found {found}; check the path and who may read it"):
        list(TextLog([str(path)]).read(all_of, True))


# --- bounded memory


def test_of_a_huge_line_the_beginning_is_kept_and_memory_does_not_grow(tmp_path):
    path = tmp_path / "x.log"
    with open(path, "wb") as file:
        file.write(b"before\n")
        file.writelines(b"q[1" * 100000 for _count in range(300))
        file.write(b"\nafter\n")
        file.writelines(b"r[1" * 100000 for _count in range(300))
    tracemalloc.start()
    try:
        log = TextLog([str(path)])
        found = [len(entry.text) for entry in log.read(milestones_only, True)]
        assert log.last_lines()[-1].endswith("r[1r[1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [MAX_LINE, MAX_LINE]
    assert peak < 24 << 20


# --- what is left out tells nothing

PIECES = [
    stamped("TP0", "KV Cache is allocated. #tokens: 192406, KV size: 12.59 GB"),
    stamped("TP1", "Load weight begin. avail mem=93.73 GB"),
    stamped("", READY),
    "2026-05-30 22:08:02,560 - INFO - flashinfer.jit: Loading JIT ops: batch_decode",
    "Traceback (most recent call last):",
    "torch.OutOfMemoryError: CUDA out of memory.",
    "server_args=",
    NOISE,
    "INFO",
    " ",
    "\r",
    "\x1b[32m",
    "[",
    "[00:10<00:20]",
    '"',
    "\\",
    "\t",
    "\x85",
    "\u2028",
    "é",
    "{",
    '{"log":"',
    '\\n"}',
    "12 ",
    "x.y: ",
    "| ",
]
LOG_LINES = st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map("".join), max_size=12)


def raw(lines: list[str], form: str) -> bytes:
    if form == "docker":
        return "".join(docker(line + "\n") for line in lines).encode()
    if form == "journal":
        fields = ({"__CURSOR": "x", "MESSAGE": line or None, "_PID": "7"} for line in lines)
        return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in fields).encode()
    return "\n".join(lines).encode()


def events(data: bytes, size: int, everything) -> list:
    entries = Decoder().entries(Blocks([data[n : n + size] for n in range(0, len(data), size)]), everything)
    return [record[:3] + record[4:] for entry in entries for record in parse_record(entry.text) if record.event]


@settings(max_examples=600, deadline=None)
@given(LOG_LINES, st.sampled_from(["plain", "docker", "journal"]), st.sampled_from([50, 1 << 16]))
@example(["12", "Load weight begin. avail mem=1.00 GB"], "plain", 1000)
@example(["INFO", "", "server_args=ServerArgs(tp_size=1)"], "plain", 1000)
@example(["torch.OutOfMemoryError", "x"], "plain", 1000)
@example(["torch.OutOfMemoryError: no memory"], "docker", 1000)
@example([NOISE + PIECES[0]], "docker", 1000)
def test_leaving_out_what_tells_nothing_loses_no_event(lines, form, size):
    data = b"first\n" + raw(lines, form) + b"\n"
    assert events(data, size, milestones_only) == events(data, size, all_of)


@settings(max_examples=600, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(PIECES), st.sampled_from([b"", b'{"log":"', b'{"__CURSOR":"x","MESSAGE":"']))
def test_no_bytes_make_the_reader_fail_or_lose_an_event(noise, piece, begin):
    data = noise + b"\n" + begin + piece.encode() + noise + b"\n" + noise
    for size in (50, 1000):
        assert events(data, size, milestones_only) == events(data, size, all_of)


def test_most_of_what_a_serving_server_writes_is_left_out():
    access = '[2026-05-30 22:08:02] INFO:     10.0.0.7:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    for form in ("plain", "docker", "journal"):
        data = raw([NOISE, access, "plain words"] * 10 + [stamped("", READY)], form) + b"\n"
        assert [entry.text for entry in Decoder().entries(Blocks([data]), milestones_only)] == [stamped("", READY)]


# --- of older starts nothing is read but that they were


def allocation(log: TextLog):
    folder = BootFolder()
    folder.feed_all(log.read(lambda: folder.in_traceback, True))
    return folder.result(Parallelism(), ended=True, saved=True)


def both_ways(tmp_path: Path, data: bytes):
    """The same log plain, where older starts are passed over, and packed, where every line is read."""
    (tmp_path / "x.log").write_bytes(data)
    (tmp_path / "x.gz").write_bytes(gzip.compress(data, 1))
    return allocation(TextLog([str(tmp_path / "x.log")])), allocation(TextLog([str(tmp_path / "x.gz")]))


SHORT = dataclasses.replace(SECOND, ready=False, ranks=range(5))
STARTS = {
    "a crash loop": [SHORT] * 30 + [FIRST],
    "the newest is the short one": [FIRST, SECOND, SHORT],
    "one": [SECOND],
    "none": [],
}


@pytest.mark.parametrize("form", ["plain", "docker"])
@pytest.mark.parametrize("starts", STARTS.values(), ids=STARTS)
def test_older_starts_are_counted_and_the_newest_is_read_whole(tmp_path, starts, form):
    lines = ["/opt/x.py:1: UserWarning: before"] + [line.text for start in starts for line in start.lines()]
    fast, slow = both_ways(tmp_path, raw(lines, form) + b"\n")
    assert fast == slow
    assert fast.restarts == max(len(starts) - 1, 0)
    assert fast.min_tokens == (starts[-1].tokens if starts else None)


OPENINGS = [
    ("behind a progress bar", "Loading: 5% 1/2 [00:01<00:01]" + stamped("", "server_args=ServerArgs(tp_size=1)"), True),
    ("coloured", "\x1b[32m" + stamped("", "server_args=ServerArgs(tp_size=1)"), True),
    ("behind a carriage return", "x\r" + stamped("", "server_args=ServerArgs(tp_size=1)"), True),
    ("of another writer", "2026-05-30 22:08:02 INFO 507 server_args=ServerArgs(tp_size=1)", True),
    ("twice in a line", stamped("", "said server_args=1 ") + stamped("", "server_args=ServerArgs(tp_size=1)"), True),
    ("quoted", "sudo: COMMAND=/usr/bin/grep server_args= x.log", False),
    ("quoted by Ansible", "python3: Invoked with text=" + stamped("", "server_args=ServerArgs(tp_size=1)"), False),
    ("inside another start's arguments", stamped("", "Receive: server_args=ServerArgs(tp_size=1)"), False),
    ("behind a very long line", "y" * 300000 + stamped("", "server_args=ServerArgs(tp_size=1)"), True),
    ("alone", "server_args=ServerArgs(tp_size=1)", True),
]


@pytest.mark.parametrize("form", ["plain", "docker"])
@pytest.mark.parametrize(("text", "opens"), [case[1:] for case in OPENINGS], ids=[case[0] for case in OPENINGS])
def test_what_opens_a_start_is_decided_by_the_same_rules(tmp_path, text, opens, form):
    lines = [line.text for line in FIRST.lines()[:60]]
    fast, slow = both_ways(tmp_path, raw([*lines, text, "end", *lines[1:20]], form) + b"\n")
    assert fast == slow
    assert (fast.restarts == 1, fast.server_args.get("tp_size")) == (opens, 1 if opens else 8)


def unnumbered(found):
    return dataclasses.replace(found, restarts=0, notes=tuple(note for note in found.notes if "boots; this is" not in note))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, *(line.text for line in FIRST.lines()[::9])]), max_size=40), st.sampled_from(["plain", "docker"]))
def test_passing_over_older_starts_changes_nothing_but_their_number(tmp_path_factory, lines, form):
    fast, slow = both_ways(tmp_path_factory.mktemp("x"), raw(lines, form) + b"\n")
    # where the line that opens an older start was lost, only reading all of it shows that it was another one
    assert unnumbered(fast) == unnumbered(slow)
    assert fast.restarts <= slow.restarts


def test_the_lines_that_open_a_start_are_found_wherever_blocks_end(tmp_path, monkeypatch):
    lines = [line.text for start in (FIRST, SECOND, SHORT) for line in start.lines()]
    for size in (11, 12, 100, 4096):
        monkeypatch.setattr("ansible_collections.inferops.sglang.plugins.module_utils._text_log._SCAN", size)
        fast, slow = both_ways(tmp_path, raw(lines, "plain") + b"\n")
        assert fast == slow
        assert fast.restarts == 2
