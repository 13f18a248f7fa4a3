# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading journals, with real binary journals and the real journalctl; and reading the state of a unit."""

from __future__ import annotations

import random
import re
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._blocks import MAX_LINE
from ansible_collections.inferops.sglang.plugins.module_utils._journal import (
    JournalError,
    JournalReader,
    Source,
    check_end,
    stream_output,
)
from ansible_collections.inferops.sglang.plugins.module_utils._service import read_service, running_digest, running_version, unit_name
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import parse_record, parse_suppressed
from ansible_collections.inferops.sglang.tests.unit.boots import FIRST, SECOND, Journal, Line, stamped
from hypothesis import given, settings
from hypothesis import strategies as st

OLD, NEW, OTHER = "d" * 32, "e" * 32, "f" * 32
UNIT = "sglang-k26.service"


def check_nothing(_code, _errors):
    pass


def all_of():
    return True


def milestones_only():
    return False


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A journal of two starts of one unit, a third unit between them, and what journald makes of odd messages."""
    journal = Journal()
    journal.manager("Started SGLang.", OLD)
    journal.server(FIRST.lines(), OLD)
    journal.server([Line(stamped("", f"server_args={{'tp_size': 1, 'pad': '{'x' * 9000}'}}"), 7)], OTHER, "other.service")
    journal.daemon(f"Suppressed 11 messages from {UNIT}")
    journal.daemon("Suppressed 22 messages from other.service")
    journal.server(SECOND.lines(), NEW)
    glued = "Loading:   0%|    | 0/1 [00:00<?, ?it/s]\r\x1b[32m[2026-05-30 22:08:02 TP0] Decode batch, #running-req: 1\x1b[0m"
    journal.server([Line(glued, 200), Line("first\nsecond", 200)], NEW)
    journal.add([("_SYSTEMD_INVOCATION_ID", NEW), ("_SYSTEMD_UNIT", UNIT), ("_PID", "200")])
    journal.add([("_SYSTEMD_INVOCATION_ID", NEW), ("_SYSTEMD_UNIT", UNIT), ("_PID", "200"), ("MESSAGE", b"bytes \xff\xfe end")])
    journal.add([("_SYSTEMD_INVOCATION_ID", NEW), ("_SYSTEMD_UNIT", UNIT), ("_PID", "200"), ("MESSAGE", "one"), ("MESSAGE", "two")])
    journal.server([Line(stamped("TP0", "Decode batch, #running-req: 1"), 200)], NEW)
    journal.manager("sglang-k26.service: Main process exited, code=exited, status=1/FAILURE", NEW)
    path = tmp_path_factory.mktemp("journal")
    journal.write(path)
    return path


def reader(directory) -> JournalReader:
    return JournalReader(Source(directory=str(directory)))


def test_only_the_lines_of_one_start_are_read_in_their_order(directory):
    found = [entry.text for entry in reader(directory).read(OLD, None, all_of) if not entry.daemon]
    assert found == ["Started SGLang.", *(line.text for line in FIRST.lines())]


def test_a_long_message_comes_whole(directory):
    entry, note = reader(directory).read(OTHER, None, all_of)
    assert len(entry.text) > 9000
    assert (note.text, note.daemon) == ("Suppressed 22 messages from other.service", True)


def test_odd_messages_come_as_text_and_know_their_process(directory):
    entries = list(reader(directory).read(NEW, None, all_of))[len(SECOND.lines()) :]
    texts = [entry.text for entry in entries]
    assert texts[0].endswith("#running-req: 1\x1b[0m")
    assert texts[1] == "first\nsecond"
    assert texts[2] == "bytes \ufffd\ufffd end"
    assert sorted(texts[3].split("\n")) == ["one", "two"]
    assert [entry.pid for entry in entries] == [200, 200, 200, 200, 200, 1]
    assert [entry.manager for entry in entries] == [False] * 5 + [True]
    assert all(entry.time_us > 1780000000000000 for entry in entries)


def test_noise_is_left_out_unless_it_is_wanted(directory):
    read = [entry.text for entry in reader(directory).read(NEW, None, milestones_only)]
    assert not [text for text in read if text.startswith("[") and "Decode batch" in text]
    assert [text for text in read if "Load weight end" in text]
    assert read[-1].endswith("status=1/FAILURE")


def test_the_note_on_dropped_messages_of_this_unit_is_read(directory):
    notes = [entry for entry in reader(directory).read(OLD, UNIT, milestones_only) if entry.daemon]
    assert [entry.text for entry in notes] == [f"Suppressed 11 messages from {UNIT}"]


def test_a_further_call_reads_only_what_is_new(tmp_path):
    journal = Journal()
    journal.server(FIRST.lines(), OLD)
    journal.write(tmp_path)
    known = reader(tmp_path)
    assert len(list(known.read(OLD, None, all_of))) == len(FIRST.lines())
    assert list(known.read(OLD, None, all_of)) == []
    further = Journal(first=1000)
    further.server([Line("later")], OLD)
    further.write(tmp_path)
    assert [entry.text for entry in known.read(OLD, None, all_of)] == ["later"]


def test_the_cursor_moves_past_noise():
    asked = []

    def stream(argv, _ended, _verbose):
        asked.append([word for word in argv if "cursor" in word])
        place = f"i={len(asked)};b=b;m={len(asked)}"
        before = f"__CURSOR=i={len(asked) - 1};b=b;m={len(asked) - 1}\nMESSAGE=last\n\n" if len(asked) > 1 else ""
        yield (before + f"__CURSOR={place}\n_SYSTEMD_INVOCATION_ID={OLD}\nMESSAGE={stamped('', 'Decode batch')}\n\n").encode()

    known = JournalReader(Source(), stream=stream)
    assert [list(known.read(OLD, None, milestones_only)) for _call in range(3)] == [[], [], []]
    assert asked == [[], ["--cursor=i=1;b=b;m=1"], ["--cursor=i=2;b=b;m=2"]]
    assert known.warnings == ()


def test_the_newest_start_is_found(directory):
    assert reader(directory).newest_invocation(UNIT) == NEW
    assert reader(directory).newest_invocation("other.service") == OTHER
    assert reader(directory).newest_invocation("nobody.service") is None
    assert reader(directory).newest_boot() == NEW


def test_a_start_whose_arguments_were_lost_is_found_by_its_other_lines(tmp_path):
    journal = Journal()
    journal.server([Line("no server at all"), Line("somebody quotes server_args= in a sentence")], OTHER, "other.service")
    journal.server(SECOND.lines()[1:], NEW)
    journal.server([Line("later noise"), Line("grep 'KV Cache is allocated' x")], OTHER, "other.service")
    journal.write(tmp_path)
    assert reader(tmp_path).newest_boot() == NEW


@pytest.mark.parametrize("lines", [[], [Line("ImportError: libcuda.so.1: cannot open shared object file")], SECOND.lines()[1:20]])
def test_a_start_that_says_little_yet_is_newer_than_one_that_said_all(tmp_path, lines):
    journal = Journal()
    journal.server(FIRST.lines(), OLD)
    journal.manager("Started SGLang.", NEW)
    journal.server(lines, NEW)
    journal.write(tmp_path)
    assert reader(tmp_path).newest_boot() == NEW


def test_a_journal_without_any_server_has_no_start(tmp_path):
    journal = Journal()
    journal.server([Line("nothing here")], OTHER, "other.service")
    journal.write(tmp_path)
    assert reader(tmp_path).newest_boot() is None


def test_the_last_lines_are_read_oldest_first(directory):
    assert reader(directory).last_lines(OLD, 2) == [line.text for line in FIRST.lines()[-2:]]


def test_single_files_are_read(directory):
    source = Source(files=(str(directory / "known.journal"),))
    assert JournalReader(source).newest_invocation(UNIT) == NEW


# --- journals of several files


def test_the_newest_start_is_found_among_several_machines_and_boots(tmp_path):
    """As an archive holds them: by time, whichever file, machine or boot it is in."""
    first, second = Journal(first=0), Journal(first=5000, boot="a" * 32)
    first.server(FIRST.lines(), OLD)
    second.server(SECOND.lines(), NEW)
    elsewhere = Journal(first=2000, boot="9" * 32, machine="8" * 32)
    elsewhere.server(FIRST.lines(), OTHER)
    second.write(tmp_path, "a.journal")
    first.write(tmp_path, "b.journal")
    elsewhere.write(tmp_path / ("8" * 32), "system.journal")
    for source in (Source(directory=str(tmp_path)), Source(files=tuple(map(str, sorted(tmp_path.rglob("*.journal")))))):
        known = JournalReader(source)
        assert (known.newest_invocation(UNIT), known.newest_boot()) == (NEW, NEW)
        assert len(list(known.read(NEW, UNIT, all_of))) == len(SECOND.lines())
        other = JournalReader(source)
        assert [entry.text for entry in other.read(OTHER, UNIT, all_of)] == [line.text for line in FIRST.lines()]


def test_one_start_goes_on_over_rotated_files(tmp_path):
    lines = FIRST.lines()
    for number, begin in enumerate(range(0, len(lines), 20)):
        part = Journal(first=begin)
        part.server(lines[begin : begin + 20], OLD)
        part.write(tmp_path, f"part{number}.journal")
    assert [entry.text for entry in reader(tmp_path).read(OLD, UNIT, all_of)] == [line.text for line in lines]


LOST = "the journal has lost the line that was read last"


def written(directory, name: str, begin: int, end: int):
    part = Journal(first=begin)
    part.server([Line(f"line {number}") for number in range(begin, end)], OLD)
    return part.write(directory, name)


@pytest.fixture
def half_read(tmp_path):
    """A reader that has read lines 0 to 4 and the file that holds them."""
    first = written(tmp_path, "a.journal", 0, 5)
    known = reader(tmp_path)
    assert texts(known) == [f"line {number}" for number in range(5)]
    return known, first


def texts(known: JournalReader) -> list[str]:
    return [entry.text for entry in known.read(OLD, UNIT, all_of)]


def test_a_file_that_is_renamed_between_two_looks_loses_and_repeats_nothing(half_read, tmp_path):
    known, first = half_read
    first.rename(tmp_path / "a@archived.journal")
    written(tmp_path, "b.journal", 5, 9)
    assert texts(known) == ["line 5", "line 6", "line 7", "line 8"]
    assert texts(known) == []
    assert known.warnings == ()


def test_lines_after_a_vacuumed_one_are_read_and_the_loss_is_noted(half_read, tmp_path):
    known, first = half_read
    first.unlink()
    written(tmp_path, "b.journal", 7, 9)
    assert texts(known) == ["line 7", "line 8"]
    assert texts(known) == []
    assert [warning.partition(" (")[0] for warning in known.warnings] == [LOST]


def test_the_same_lines_in_another_file_are_not_read_twice(half_read, tmp_path):
    """As when journald moves what it kept in memory to the disk."""
    known, first = half_read
    first.unlink()
    written(tmp_path, "b.journal", 0, 7)
    assert texts(known) == ["line 5", "line 6"]
    assert known.warnings == ()


def test_a_wiped_journal_is_noted_and_read_on_when_lines_come(half_read, tmp_path):
    known, first = half_read
    first.unlink()
    assert texts(known) == []
    assert [warning.partition(" (")[0] for warning in known.warnings] == [LOST]
    written(tmp_path, "b.journal", 9, 11)
    assert texts(known) == ["line 9", "line 10"]
    assert len(known.warnings) == 1


# --- what the log daemon dropped

# the same words from systemd 245 to 257
NOTES = [
    ("once", [f"Suppressed 11 messages from {UNIT}"], [11]),
    ("again and again", [f"Suppressed {count} messages from {UNIT}" for count in (1, 20, 300)], [1, 20, 300]),
    ("by its control group", [f"Suppressed 7 messages from /system.slice/{UNIT}"], [7]),
    ("of a unit whose name ends alike", [f"Suppressed 5 messages from my-{UNIT}", "Suppressed 6 messages from k26.service"], []),
    ("other words of the daemon", ["System Journal (/var/log/journal/x) is 8.0M, max 4.0G, 3.9G free."], []),
]


@pytest.mark.parametrize("unit", [UNIT, None])
@pytest.mark.parametrize(("notes", "counts"), [case[1:] for case in NOTES], ids=[case[0] for case in NOTES])
def test_notes_on_dropped_messages(tmp_path, notes, counts, unit):
    journal = Journal()
    journal.daemon(f"Suppressed 99 messages from {UNIT}")  # before this start, so of another one
    journal.server(FIRST.lines()[:5], OLD)
    for note in notes:
        journal.daemon(note)
    journal.write(tmp_path)
    found = [parse_suppressed(entry.text) for entry in reader(tmp_path).read(OLD, unit, milestones_only) if entry.daemon]
    assert [event.count if event else None for event in found] == counts or counts == [] == [event for event in found if event]


def test_what_other_processes_say_about_the_unit_is_not_believed(tmp_path):
    """Any process may give its lines a UNIT and an INVOCATION_ID; those with an underscore are the log daemon's word."""
    journal = Journal()
    journal.server(FIRST.lines()[:2], OLD)
    forged = [("UNIT", UNIT), ("INVOCATION_ID", OLD), ("MESSAGE", f"{UNIT}: Failed with result 'signal'.")]
    journal.add([*forged, ("SYSLOG_IDENTIFIER", "systemd"), ("_PID", "4711"), ("_UID", "1000")])
    session = [("_SYSTEMD_UNIT", "session-1.scope"), ("_SYSTEMD_INVOCATION_ID", OTHER), ("_PID", "4711"), ("_UID", "1000")]
    journal.add([*session, ("UNIT", UNIT), ("INVOCATION_ID", NEW), ("MESSAGE", "x")])
    journal.server([Line("Suppressed 9 messages from " + UNIT, 200)], OLD)
    journal.add([("_PID", "900"), ("_UID", "0"), ("INVOCATION_ID", OLD), ("MESSAGE", "sglang: Failed at step EXEC spawning x")])
    journal.write(tmp_path)
    found = list(reader(tmp_path).read(OLD, UNIT, all_of))
    assert [(entry.manager, entry.daemon) for entry in found] == [(False, False)] * 3 + [(True, False)]
    assert reader(tmp_path).newest_invocation(UNIT) == OLD


# --- odd and huge fields


def test_fields_of_every_kind_and_size_are_read(tmp_path):
    journal = Journal()
    identity = [("_SYSTEMD_INVOCATION_ID", OLD), ("_SYSTEMD_UNIT", UNIT)]
    forged = "end\n\n__CURSOR=forged\nMESSAGE=no entry\n"
    messages = [b"\x00\x01\xfe", "", "x" * 5000, b"y" * 70000 + b"\n", forged, "MESSAGE=inside", "last"]
    for number, message in enumerate(messages):
        odd = [("SYSLOG_IDENTIFIER", b"a\n\nb")] if number % 2 else []
        journal.add([*odd, *identity, ("_PID", str(number)), ("MESSAGE", message)])
    journal.write(tmp_path)
    found = [(entry.pid, entry.text) for entry in reader(tmp_path).read(OLD, UNIT, all_of)]
    expected = [m.decode("utf-8", "replace") if isinstance(m, bytes) else m for m in messages]
    assert found == [(number, text) for number, text in enumerate(expected) if text]


def test_of_a_huge_message_only_the_beginning_is_kept(tmp_path):
    journal = Journal()
    journal.server([Line("before"), Line("z" * 5_000_000), Line("\n" + "w" * 5_000_000), Line("after")], OLD)
    journal.write(tmp_path)
    found = [(len(entry.text), entry.text[-5:].strip()) for entry in reader(tmp_path).read(OLD, UNIT, all_of)]
    assert found == [(6, "efore"), (MAX_LINE - len("MESSAGE="), "zzzzz"), (MAX_LINE, "wwwww"), (5, "after")]


def test_memory_does_not_grow_with_a_message():
    """256 MiB of one message, printable and not, pass through a few MiB."""
    block = b"q" * (1 << 20)

    def stream(_argv, _ended, _verbose):
        identity = f"__CURSOR=s=1;i=1;b=1\n_SYSTEMD_INVOCATION_ID={OLD}\n".encode()
        yield identity + b"MESSAGE="
        yield from (block for _count in range(256))
        yield b"\n\n" + identity + b"MESSAGE\n" + (256 << 20).to_bytes(8, "little")
        yield from (block for _count in range(256))
        yield b"\n\n" + identity + b"MESSAGE=after\n\n"

    tracemalloc.start()
    try:
        found = [len(entry.text) for entry in JournalReader(Source(), stream).read(OLD, UNIT, all_of)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [MAX_LINE - len("MESSAGE="), MAX_LINE, 5]
    assert peak < 16 << 20


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000, 1 << 20])
def test_where_blocks_end_does_not_matter(directory, size):
    def cut(argv, ended, verbose):
        whole = b"".join(stream_output(argv, ended, verbose))
        yield from (whole[n : n + size] for n in range(0, len(whole), size))

    for everything in (all_of, milestones_only):
        expected = list(reader(directory).read(NEW, UNIT, everything))
        assert list(JournalReader(Source(directory=str(directory)), cut).read(NEW, UNIT, everything)) == expected


def test_an_entry_that_was_cut_off_is_left_out():
    begin = f"_SYSTEMD_INVOCATION_ID={OLD}\nMESSAGE"
    whole = f"__CURSOR=i=1;b=1\n{begin}=one\n\n__CURSOR=i=2;b=2\n{begin}\n".encode()
    for rest in (b"", b"\x05\0\0", (5).to_bytes(8, "little") + b"ab", (5).to_bytes(8, "little") + b"abcde"):
        known = JournalReader(Source(), lambda _argv, _ended, _verbose, rest=rest: iter([whole + rest]))
        assert [entry.text for entry in known.read(OLD, UNIT, all_of)] == ["one"]


MESSAGES = [
    stamped("TP0", "KV Cache is allocated. #tokens: 192406, KV size: 12.59 GB"),
    stamped("TP1", "Decode batch, #running-req: 1"),
    stamped("TP1", "Decode batch ") + stamped("TP0", "Memory pool end. avail mem=8.73 GB"),
    "12 Load weight begin. avail mem=93.73 GB",
    "torch.OutOfMemoryError: CUDA out of memory.",
    "Traceback (most recent call last):",
    "plain words",
    "\rLoading: 5%",
    "two\nlines",
    "MESSAGE=no field",
    "",
]
OWN = [("_SYSTEMD_INVOCATION_ID", OLD), ("_SYSTEMD_UNIT", UNIT), ("_PID", "7")]
KINDS = [
    OWN,
    [*OWN, ("SYSLOG_IDENTIFIER", "x\n\ny")],
    [("INVOCATION_ID", OLD), ("_PID", "1")],
    [*OWN, ("INVOCATION_ID", OLD)],
    [*OWN, ("MESSAGE", "first")],
]


def exported(entries) -> bytes:
    """As journalctl prints them: what has a line's end or a control character in it comes with its size."""
    parts = []
    for number, fields in enumerate(entries):
        parts.append(f"__CURSOR=i={number};b={number}\n".encode())
        for name, value in fields:
            sized = name.encode() + b"\n" + len(value.encode()).to_bytes(8, "little") + value.encode() + b"\n"
            parts.append(f"{name}={value}\n".encode() if value.isprintable() else sized)
        parts.append(b"\n")
    return b"".join(parts)


def events(data: bytes, size: int, everything) -> list:
    blocks = [data[n : n + size] for n in range(0, len(data), size)]
    found = JournalReader(Source(), lambda _argv, _ended, _verbose: iter(blocks)).read(OLD, UNIT, everything)
    return [
        (entry.pid, entry.text) if entry.manager else (entry.pid, record.body, record.event)
        for entry in found
        for record in parse_record(entry.text)
        if entry.manager or record.event
    ]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.lists(st.sampled_from(MESSAGES), max_size=2)), max_size=12),
    st.sampled_from([7, 300, 1 << 16]),
)
def test_leaving_out_what_tells_nothing_loses_no_event(entries, size):
    data = exported([*kind, ("MESSAGE", "".join(texts))] for kind, texts in entries)
    assert events(data, size, milestones_only) == events(data, size, all_of)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(1, 100))
def test_no_bytes_make_the_reader_fail(before, after, size):
    data = before + exported([[*OWN, ("MESSAGE", "x")], [*OWN, ("MESSAGE", "a\nb")]]) + after
    for cut in range(0, len(data), 17):
        assert isinstance(events(data[:cut] + after, size, milestones_only), list)


# --- journals that cannot be read, or not whole


def damaged(directory, how: str) -> None:
    path = directory / "known.journal"
    whole = path.read_bytes()
    data = bytearray(whole)
    first = whole.find(b"MESSAGE=")
    if how == "cut in the middle":
        data = data[: len(data) // 2]
    elif how == "cut to nothing":
        data = data[:0]
    elif how == "another header":
        data[:8] = b"XXXXXXXX"
    elif how == "zeros in the middle":
        data[first + 4000 : first + 8000] = bytes(4000)
    elif how == "garbage in the middle":
        data[first + 4000 : first + 8000] = random.Random(4).randbytes(4000)
    elif how == "garbage at the end":
        data += random.Random(4).randbytes(100000)
    path.write_bytes(bytes(data))


WHOLLY = ["cut in the middle", "cut to nothing", "another header"]


@pytest.mark.parametrize("how", WHOLLY)
def test_a_directory_in_which_nothing_can_be_read_is_an_error_in_three_parts(tmp_path, how):
    written(tmp_path, "known.journal", 0, 50)
    damaged(tmp_path, how)
    for look in (lambda known: known.newest_invocation(UNIT), JournalReader.newest_boot, texts):
        with pytest.raises(JournalError, match=r"asked for a start in .*, found none .* damaged.*; copy the journal again"):
            look(reader(tmp_path))


@pytest.mark.parametrize("how", WHOLLY)
def test_what_can_be_read_beside_a_damaged_file_is_used_and_the_damage_is_noted(tmp_path, how):
    written(tmp_path, "known.journal", 0, 50)
    damaged(tmp_path, how)
    written(tmp_path, "sound.journal", 50, 60)
    known = reader(tmp_path)
    assert known.newest_invocation(UNIT) == OLD
    assert texts(known) == [f"line {number}" for number in range(50, 60)]
    assert len(known.warnings) == 1
    assert re.match(r"the journal is damaged, lines may be missing: .*known.journal", known.warnings[0])
    several = JournalReader(Source(files=(str(tmp_path / "known.journal"), str(tmp_path / "sound.journal"))))
    assert texts(several) == [f"line {number}" for number in range(50, 60)]
    assert re.match(r"the journal is damaged, lines may be missing: .*known.journal", several.warnings[0])


@pytest.mark.parametrize("how", ["zeros in the middle", "garbage in the middle"])
def test_damage_inside_a_file_is_noted(tmp_path, how):
    written(tmp_path, "known.journal", 0, 200)
    damaged(tmp_path, how)
    known = reader(tmp_path)
    assert 0 < len(texts(known)) < 200
    assert [warning.partition(":")[0] for warning in known.warnings] == ["the journal is damaged, lines may be missing"]


def test_what_stands_behind_the_end_of_a_file_does_no_harm(tmp_path):
    written(tmp_path, "known.journal", 0, 50)
    damaged(tmp_path, "garbage at the end")
    known = reader(tmp_path)
    assert (len(texts(known)), known.warnings) == (50, ())


UNREADABLE = ["absent directory", "absent file", "no journal", "cut short", "all of several"]


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_journal_that_cannot_be_read_is_an_error_in_three_parts(what, directory, tmp_path):
    whole = (directory / "known.journal").read_bytes()
    (tmp_path / "no.journal").write_text("this is no journal")
    (tmp_path / "cut.journal").write_bytes(whole[:100000])
    source = {
        "absent directory": Source(directory=str(tmp_path / "absent")),
        "absent file": Source(files=(str(tmp_path / "absent.journal"),)),
        "no journal": Source(files=(str(tmp_path / "no.journal"),)),
        "cut short": Source(files=(str(tmp_path / "cut.journal"),)),
        "all of several": Source(files=(str(tmp_path / "cut.journal"), str(tmp_path / "no.journal"))),
    }[what]
    with pytest.raises(JournalError, match=r"asked .*, found exit code 1 .*; check that the journal is there"):
        list(JournalReader(source).read(OLD, None, all_of))


def test_a_directory_without_a_journal_is_an_error_in_three_parts(tmp_path):
    for look in (lambda known: known.newest_invocation(UNIT), JournalReader.newest_boot, texts):
        with pytest.raises(JournalError, match=r"asked for the journal of .*, found no journal files there; check the path"):
            look(reader(tmp_path))


def test_a_directory_of_other_hosts_directories_says_where_a_journal_lies(tmp_path):
    """Of subdirectories only those named by a machine's id are looked into; another namespace's is named MACHINE.NAMESPACE."""
    written(tmp_path / "gpu07", "known.journal", 0, 5)
    with pytest.raises(JournalError, match=rf"found no journal files there; .* subdirectories with a journal \({tmp_path}/gpu07, "):
        texts(reader(tmp_path))


def test_this_hosts_own_journal_without_files_is_an_error_in_three_parts():
    def no_files(argv, ended, _verbose):
        ended(0, "" if "--output=export" in argv else "No journal files were found.\n")
        return iter(())

    with pytest.raises(JournalError, match=r"asked for the journal of this host.*, found no journal files.*; see that systemd-journald"):
        texts(JournalReader(Source(), no_files))


def nobody(argv, ended, verbose):
    return stream_output(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv], ended, verbose)


def test_a_journal_that_may_not_be_read_is_an_error_in_three_parts():
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        written(path, "known.journal", 0, 5).chmod(0o600)
        for look in (lambda known: known.newest_invocation(UNIT), JournalReader.newest_boot, texts):
            with pytest.raises(JournalError, match=r"asked the journal .*, found exit code 1 .*insufficient permissions.*; run as root or"):
                look(JournalReader(Source(directory=name), nobody))
        path.chmod(0o700)
        with pytest.raises(JournalError, match=r"asked the journal .*, found exit code 1 .*Permission denied.*; run as root or"):
            texts(JournalReader(Source(directory=name), nobody))


def test_only_a_users_own_journal_is_not_the_units(tmp_path):
    """A user sees the lines of his own processes without any complaint, unless the journal is asked for them without a format."""
    written(tmp_path, "user-1000.journal", 0, 5)

    def of_a_user(argv, ended, verbose):
        hint = "" if "--output=export" in argv else "Hint: You are currently not seeing messages from other users and the system.\n"
        yield from stream_output([*argv, f"--directory={tmp_path}"], lambda code, errors: ended(code, hint + errors), verbose)

    assert texts(JournalReader(Source(), of_a_user)) == [f"line {number}" for number in range(5)]
    with pytest.raises(JournalError, match=r"not seeing messages from other users.*; run as root or"):
        list(JournalReader(Source(), of_a_user).read(NEW, UNIT, all_of))


def test_a_start_that_says_nothing_yet_is_no_error(directory):
    known = reader(directory)
    assert [entry.daemon for entry in known.read("0" * 32, "unheard-of.service", all_of)] == []
    assert known.warnings == ()


# --- namespaces, and where the journal begins


def test_the_namespace_of_a_unit_is_read_beside_the_default_one():
    asked = []

    def stream(argv, _ended, _verbose):
        asked.append([word for word in argv if word.startswith("--namespace")])
        return iter(())

    known = JournalReader(Source(), stream)
    known.use_namespace("")
    texts(known)
    known.use_namespace("gpu")
    texts(known)
    known.check_begin(0)
    known.check_begin(1)
    assert asked == [[], [], ["--namespace=+gpu"], ["--namespace=gpu"]]


# when the journal begins and the server was started, in seconds of the same clock; the note
BEGINS = [
    (5, 10, ()),
    (11, 10, ()),  # the unit's first line may begin the journal of its namespace
    (40, 10, ("the journal begins 30 s after this start did (vacuumed, wiped, or not kept): the first lines of this start are gone",)),
    (None, 10, ("the journal begins with nothing of this boot (vacuumed, wiped, or not kept): the first lines of this start are gone",)),
]


@pytest.mark.parametrize(("begin", "started", "notes"), BEGINS)
def test_a_journal_that_begins_after_the_start_did_is_noted(begin, started, notes):
    blocks = [f"__CURSOR=x\n__MONOTONIC_TIMESTAMP={begin * 1000000}\n_PID=1\n\n".encode()] if begin is not None else []
    known = JournalReader(Source(), lambda _argv, _ended, _verbose: iter(blocks))
    known.check_begin(started * 1000000)
    assert known.warnings == notes


def test_a_missing_journalctl_is_an_error_in_three_parts():
    with pytest.raises(JournalError, match=r"asked .* found that it cannot be started .*; install"):
        list(stream_output(["/nonexistent/journalctl"], check_nothing))


ENDS = [
    ("all is well", 0, "", None),
    ("no match for --grep", 1, "", None),
    ("a remark", 0, "Journal file uses an unsupported feature, ignoring file.", None),
    ("not allowed", 1, "No journal files were opened due to insufficient permissions.", "systemd-journal"),
    ("only a part is allowed", 0, "Hint: You are currently not seeing messages from other users and the system.", "systemd-journal"),
    ("broken", 1, "Failed to open files: No data available", "not damaged"),
    ("killed", -9, "", "not damaged"),
]


@pytest.mark.parametrize(("code", "errors", "advice"), [case[1:] for case in ENDS], ids=[case[0] for case in ENDS])
def test_how_journalctl_ends(code, errors, advice):
    if advice is None:
        assert check_end(["journalctl"], code, errors) is None
        return
    with pytest.raises(JournalError, match=advice):
        check_end(["journalctl"], code, errors)


def test_a_reader_that_stops_early_ends_the_program(tmp_path):
    mark = tmp_path / "went on"
    program = f"import pathlib, time; print('one', flush=True); time.sleep(5); pathlib.Path({str(mark)!r}).touch()"
    lines = stream_output([sys.executable, "-c", program], check_nothing)
    assert next(lines).startswith(b"one")
    lines.close()
    assert not mark.exists()


# --- the unit

SHOW = """\
LoadState=loaded
ActiveState=active
SubState=running
Result=success
MainPID=4242
NRestarts=2
InvocationID=dddddddddddddddddddddddddddddddd
ExecMainStatus=0
Job=0
"""


def no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


def test_the_state_of_a_unit_is_read():
    asked = []

    def run(argv):
        asked.append(argv)
        return 0, SHOW, ""

    environ = b"PATH=/bin\0INFEROPS_DIGEST=0123abcd\0X=\xff\0"
    state = read_service(UNIT, run, {"/proc/4242/environ": environ}.__getitem__)
    assert state.as_dict() == {
        "active_state": "active",
        "sub_state": "running",
        "result": "success",
        "load_state": "loaded",
        "main_pid": 4242,
        "n_restarts": 2,
        "invocation_id": OLD,
        "exec_main_status": 0,
        "digest": "0123abcd",
    }
    assert asked[0][:2] == ["systemctl", "show"]
    assert asked[0][-2:] == ["--", UNIT]


# name, changes to the state, exists, dead
STATES = [
    ("running", {}, True, False),
    ("starting", {"ActiveState": "activating", "SubState": "start"}, True, False),
    ("waiting for its restart", {"ActiveState": "activating", "SubState": "auto-restart", "Result": "exit-code"}, True, True),
    ("failed", {"ActiveState": "failed", "SubState": "failed"}, True, True),
    ("failed, about to be started", {"ActiveState": "failed", "SubState": "failed", "Job": "17"}, True, False),
    ("stopped", {"ActiveState": "inactive", "SubState": "dead"}, True, True),
    ("unknown", {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead", "MainPID": "0"}, False, True),
    ("removed while it runs", {"LoadState": "not-found"}, True, False),
]


@pytest.mark.parametrize(("changes", "exists", "dead"), [case[1:] for case in STATES], ids=[case[0] for case in STATES])
def test_which_states_mean_that_no_process_runs(changes, exists, dead):
    values = dict(line.split("=", 1) for line in SHOW.splitlines()) | changes
    out = "\n".join(f"{key}={value}" for key, value in values.items())
    state = read_service(UNIT, lambda _argv: (0, out, ""), no_file)
    assert (state.exists, state.dead) == (exists, dead)


def cannot_start(_argv):
    raise FileNotFoundError("systemctl")


@pytest.mark.parametrize("run", [cannot_start, lambda _argv: (1, "", "Failed to connect to bus"), lambda _argv: (0, "nonsense", "")])
def test_a_service_manager_that_does_not_answer_is_an_error_in_three_parts(run):
    with pytest.raises(JournalError, match=r"asked systemd .* found exit code .*; run this on a host that runs systemd"):
        read_service(UNIT, run, no_file)


def test_names_of_units():
    names = ["sglang-k26", "sglang@k26", "sglang.v2", "sglang-k26.service", "x.scope"]
    assert [unit_name(name) for name in names] == [
        "sglang-k26.service",
        "sglang@k26.service",
        "sglang.v2.service",
        "sglang-k26.service",
        "x.scope",
    ]


def test_a_process_without_a_digest_or_that_may_not_be_read_has_none():
    def denied(path: str) -> bytes:
        raise PermissionError(path)

    assert running_digest(0, no_file) is None
    assert running_digest(5, denied) is None
    assert running_digest(5, lambda _path: b"XINFEROPS_DIGEST=1\0PATH=/bin\0") is None


# name, command line, what lies in the environment, version
VERSIONS = [
    (
        "a virtual environment",
        b"/opt/sglang/bin/python3\0-m\0sglang.launch_server\0",
        {"python3.11": ["sglang-0.5.12.post1.dist-info"]},
        "0.5.12.post1",
    ),
    (
        "a kernel package beside it",
        b"/opt/sglang/bin/python3\0",
        {"python3.11": ["sglang_kernel-1.0.dist-info", "sglang-0.5.23.dist-info"]},
        "0.5.23",
    ),
    (
        "two of them",
        b"/opt/sglang/bin/python3\0",
        {"python3.11": ["sglang-0.5.1.dist-info"], "python3.12": ["sglang-0.5.2.dist-info"]},
        None,
    ),
    ("none", b"/opt/sglang/bin/python3\0", {"python3.11": ["torch-2.9.dist-info"], "libfoo": ["sglang-9.dist-info"]}, None),
    ("no path", b"python3\0", {"python3.11": ["sglang-0.5.1.dist-info"]}, None),
    ("no process", b"", {}, None),
]


@pytest.mark.parametrize(("command", "libraries", "version"), [case[1:] for case in VERSIONS], ids=[case[0] for case in VERSIONS])
def test_the_version_of_the_running_process(command, libraries, version):
    def listing(path: str) -> list[str]:
        if path == "/opt/sglang/lib":
            return list(libraries)
        return libraries.get(path.split("/")[4], []) if path.endswith("/site-packages") else []

    assert running_version(5, lambda _path: command, listing) == version
