# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading journals, with real binary journals and the real journalctl; and reading the state of a unit."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Entry
from ansible_collections.inferops.sglang.plugins.module_utils._journal import (
    JournalError,
    JournalReader,
    Source,
    check_end,
    stream_output,
)
from ansible_collections.inferops.sglang.plugins.module_utils._service import read_service, running_digest, running_version, unit_name
from ansible_collections.inferops.sglang.plugins.module_utils._text_log import GivenText, TextLog, parse_line
from ansible_collections.inferops.sglang.tests.unit.boots import FIRST, SECOND, Journal, Line, stamped

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


UNREADABLE = ["absent directory", "absent file", "no journal", "cut short"]


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
    }[what]
    with pytest.raises(JournalError, match=r"asked .*, found exit code 1 .*; check that the journal is there"):
        list(JournalReader(source).read(OLD, None, all_of))


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
    lines = stream_output(["/bin/sh", "-c", f"echo one; sleep 5; echo two; touch {mark}"], check_nothing)
    assert next(lines) == b"one\n"
    lines.close()
    assert not mark.exists()


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
