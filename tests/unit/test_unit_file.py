# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit files are read as systemd reads them, and SGLang is found in them however it is started."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import (
    environment_files,
    environment_of,
    exec_commands,
    expand,
    read_environment_file,
    read_unit,
    split_words,
)
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import plain, read_flags, read_server

WORDS = {
    "blanks": ("  a\tb  c ", ["a", "b", "c"]),
    "double quotes": ('a "b c" d', ["a", "b c", "d"]),
    "single quotes": ("""a '{"x": "y z"}'""", ["a", '{"x": "y z"}']),
    "quotes inside a word": ('a"b c"d', ["ab cd"]),
    "an empty word": ('a "" b', ["a", "", "b"]),
    "escapes": (r'a\tb c\x20d "e\"f" g\\h \u00e9 \101 \s', ["a\tb", "c d", 'e"f', r"g\h", "\u00e9", "A", " "]),
    "escapes work in single quotes too": (r"'a\x41'", ["aA"]),
    "an unknown escape stays": (r"\d \$X \x4", [r"\d", r"\$X", r"\x4"]),
    "a zero is no character": (r"a\x00b", [r"a\x00b"]),
    "nothing": ("   ", []),
    "an open quote": ('a "b', []),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str) -> None:
    text, words = WORDS[case]
    assert list(split_words(text).words) == words


def test_an_open_quote_is_named() -> None:
    assert split_words('a "b').odd == ('a quote " is not closed: a "b',)


UNIT = r"""
# a comment
; another
[Unit]
Description = With a \
    continued line
After=a.service
After=
After=b.service
no assignment here
[Service]
ExecStart=/bin/old
ExecStart=
ExecStart=-/bin/new --a 1 \
# between continued lines
; another one

  --not-part=of-it
ExecStart=/bin/second a ; /bin/third \; b
Restart=always
Restart=no
[broken
Lost=1
[Service]
LimitNOFILE=5
"""


def test_sections_comments_continued_lines_and_resets() -> None:
    unit = read_unit(UNIT)
    assert unit.last("Unit", "Description") == "With a  continued line"
    # what orders units is never taken back
    assert unit.values("Unit", "After") == ("a.service", "b.service")
    assert unit.values("Service", "ExecStart") == ("-/bin/new --a 1", r"/bin/second a ; /bin/third \; b")
    assert unit.last("Service", "Restart") == "no"
    assert unit.last("Service", "LimitNOFILE") == "5"
    assert unit.odd == (
        "line 10: no assignment: no assignment here",
        "line 22: no section: [broken",
        "line 23: no section around it: Lost=1",
    )
    commands = exec_commands(unit)
    assert [(command.prefix, command.words) for command in commands] == [
        ("-", ("/bin/new", "--a", "1")), ("", ("/bin/second", "a")), ("", ("/bin/third", ";", "b")),
    ]  # fmt: skip


def test_drop_ins_come_in_the_order_of_their_names_and_the_administrators_hides_the_others() -> None:
    drop_ins = {
        "/usr/lib/systemd/system/a.service.d/50-b.conf": "[Service]\nNice=1\n",
        "/etc/systemd/system/a.service.d/50-b.conf": "[Service]\nNice=2\n",
        "/etc/systemd/system/a.service.d/10-a.conf": "[Service]\nNice=3\nExecStart=\nExecStart=/bin/b\n",
    }
    unit = read_unit("[Service]\nExecStart=/bin/a\nNice=0\n", drop_ins)
    assert unit.last("Service", "Nice") == "2"
    assert unit.values("Service", "ExecStart") == ("/bin/b",)
    assert [setting.source for setting in unit.settings][-1] == "/etc/systemd/system/a.service.d/50-b.conf"


EXPANDED = {
    "a variable by itself is several words": ("/bin/a $X", ["/bin/a", "1", "2 3"]),
    "in braces it is one": ("/bin/a ${X} b${Y}c", ["/bin/a", '1 "2 3"', "byc"]),
    "without braces it is none within a word": ("/bin/a b$Y", ["/bin/a", "b$Y"]),
    "two dollars are one": ("/bin/a $$X a$$b", ["/bin/a", "$X", "a$b"]),
    "two percents are one, a specifier stays": ("/bin/a 100%% %i %h/x", ["/bin/a", "100%", "%i", "%h/x"]),
    "a colon turns variables off": (":/bin/a $X $$Y", ["/bin/a", "$X", "$$Y"]),
    "an at sign gives another name": ("@/bin/a called b", ["/bin/a", "b"]),
}


@pytest.mark.parametrize("case", EXPANDED)
def test_variables_and_specifiers(case: str) -> None:
    line, words = EXPANDED[case]
    (command,) = exec_commands(read_unit(f"[Service]\nExecStart={line}\n"))
    assert list(expand(command, {"X": '1 "2 3"', "Y": "y"}).words) == words


def test_a_variable_of_a_file_that_was_not_read_stays_and_is_named() -> None:
    (command,) = exec_commands(read_unit("[Service]\nExecStart=/bin/a ${X} $Z\n"))
    found = expand(command, {})
    assert (found.words, found.odd) == (
        ("/bin/a", "${X}", "$Z"), ("${X} comes from a file that was not read", "$Z comes from a file that was not read"),
    )  # fmt: skip


def test_environment_and_its_files() -> None:
    unit = read_unit(
        "[Service]\nEnvironment=LOST=1\nEnvironment=\nEnvironment=A=1 \"B=x y\" 'C=100%%' no-name D\nEnvironmentFile=-/etc/a\n"
        "EnvironmentFile=/etc/b\nUnsetEnvironment=F G=2\n"
    )
    assert environment_files(unit) == ("-/etc/a", "/etc/b")
    assert environment_of(unit) == {"A": "1", "B": "x y", "C": "100%"}
    files = {"/etc/a": "A=2\nE=3\nF=4\n", "/etc/b": "E=5\nG=1\n"}
    assert environment_of(unit, files) == {"A": "2", "B": "x y", "C": "100%", "E": "5", "G": "1"}


def test_an_environment_file_is_read_as_a_shell_would() -> None:
    text = (
        "# A=0\n ; B=0\nA=plain text  \nB=\"in quotes \\\"x\\\" \\$y \\n\"\nC='single \\\"'\nD=joi\\\nned\nE = spaced\nF=a\"b\"'c'\n"
        'G="two\nlines"\nnonsense\n1X=bad\nH=\nI=last'
    )
    assert read_environment_file(text) == {
        "A": "plain text", "B": 'in quotes "x" $y \\n', "C": 'single \\"', "D": "joined", "E": "spaced", "F": "abc", "G": "two\nlines",
        "H": "", "I": "last",
    }  # fmt: skip


MORE_FLAGS = {
    "two forms": ("--a b --c=d", {"a": "b", "c": "d"}),
    "switches and lists": ("--a --b 1 2 3 --c", {"a": True, "b": ["1", "2", "3"], "c": True}),
    "a value with an equals sign": ("--a x=y --b={\"k\":\"v=w\"}", {"a": "x=y", "b": '{"k":"v=w"}'}),
    "negative numbers are values": ("--a -1 --b -0.5", {"a": "-1", "b": "-0.5"}),
    "an empty value": ("--a= --b", {"a": "", "b": True}),
    "aliases": (
        "--model /m --tensor-parallel-size 8 --data-parallel-size 2 --ep 4",
        {"model-path": "/m", "tp-size": "8", "dp-size": "2", "ep-size": "4"},
    ),
    "beginnings": (
        "--tp 8 --dp 2 --mem-fraction 0.9 --context-len 5",
        {"tp-size": "8", "dp-size": "2", "mem-fraction-static": "0.9", "context-length": "5"},
    ),
    "a beginning of two flags is none": ("--pp 2 --speculative 1", {"pp": "2", "speculative": "1"}),
    "underscores": ("--mem_fraction_static 0.9", {"mem-fraction-static": "0.9"}),
    "the last one holds": ("--tp 8 --x 1 --tp-size 4 --x", {"tp-size": "4", "x": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", MORE_FLAGS)
def test_flags(case: str) -> None:
    line, flags = MORE_FLAGS[case]
    found, odd = read_flags(line.split())
    assert ({name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}, odd) == (flags, ())


def test_words_that_belong_to_no_flag_are_named() -> None:
    assert read_flags(["stray", "--a=1", "b", "-x"]) == (
        {"a": "1"}, ("the word stray belongs to no flag", "the word b belongs to no flag", "the word -x belongs to no flag"),
    )  # fmt: skip


M8 = {"model-path": "/m", "tp-size": "8"}
STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "module": (
        "/opt/v/bin/python3 -u RUN",
        {"how": "module", "program": ["/opt/v/bin/python3", "-u", "-m", "sglang.launch_server"], "flags": M8, "python_home": "/opt/v"},
    ),
    "the system's python": ("/usr/bin/python3 RUN", {"how": "module", "flags": M8, "python_home": ""}),
    "env": (
        "/usr/bin/env A=1 B=2 python3 RUN",
        {"how": "module", "front": [], "environment": {"A": "1", "B": "2"}, "flags": M8},
    ),
    "serve": (
        "/opt/v/bin/sglang serve /m --tp 8",
        {"how": "serve", "program": ["/opt/v/bin/sglang", "serve"], "flags": M8, "python_home": "/opt/v"},
    ),
    "serve with flags alone": ("/opt/v/bin/sglang serve --model-path /m --tp 8", {"how": "serve", "flags": M8}),
    "serve as a module": ("/opt/v/bin/python -m sglang serve /m --tp 8", {"how": "serve", "flags": M8}),
    "script": (
        "/opt/v/bin/python /src/sglang/python/sglang/launch_server.py --model /m --tp 8",
        {"how": "script", "program": ["/opt/v/bin/python", "/src/sglang/python/sglang/launch_server.py"], "flags": M8},
    ),
    "numactl": (
        "/usr/bin/numactl --cpunodebind=0 --membind=0 /opt/v/bin/python RUN",
        {"how": "module", "front": ["/usr/bin/numactl", "--cpunodebind=0", "--membind=0"], "flags": M8, "python_home": "/opt/v"},
    ),
    "docker": (
        "/usr/bin/docker run --rm --gpus all -v /srv:/srv -e A=1 lmsysorg/sglang:v0.5.12 python3 RUN",
        {"how": "module", "engine": "docker", "image": "lmsysorg/sglang:v0.5.12", "flags": M8, "python_home": ""},
    ),
    "podman with an entry point": (
        "/usr/bin/podman run --rm --entrypoint python3 sglang:1 RUN",
        {"how": "module", "engine": "podman", "image": "sglang:1", "flags": M8},
    ),
    "a shell": (
        "/bin/bash -lc 'cd /x && source /opt/v/bin/activate && export A=1; exec python RUN 2>&1 | tee -a /var/log/x'",
        {"how": "module", "program": ["/opt/v/bin/python", "-m", "sglang.launch_server"], "flags": M8, "environment": {"A": "1"}},
    ),
    "a shell with variables of its own": (
        "/bin/sh -c 'python3 -m sglang.launch_server --model $(cat /etc/model) --tp 8'",
        {"how": "module", "unread": ["the shell computes a part of it when it starts"]},
    ),
    "a shell with a variable that is known, and one that is not": (
        "/bin/sh -c 'export M=/m; python3 -m sglang.launch_server --model $M --tp $TP'",
        {"how": "module", "flags": {"model-path": "/m", "tp-size": "$TP"}, "unread": ["the shell replaces $TP"]},
    ),
    "a script of the operator's": (
        "/opt/sglang/start.sh --fast",
        {"how": "hidden", "flags": {}, "unread": ["/opt/sglang/start.sh hides how SGLang is started"]},
    ),
    "a script through a shell": ("/bin/bash /opt/run.sh", {"how": "hidden", "unread": ["/opt/run.sh hides how SGLang is started"]}),
    "compose": ("/usr/bin/docker compose up", {"how": "hidden", "unread": ["/usr/bin/docker hides how SGLang is started"]}),
    "a file of flags": (
        "/opt/v/bin/python -m sglang.launch_server --config /etc/k.yaml",
        {"how": "module", "unread": ["more flags stand in /etc/k.yaml, which was not read"]},
    ),
    "a broken line": ('/opt/v/bin/python "-m', {"how": "", "unread": ['a quote " is not closed: /opt/v/bin/python "-m']}),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTS)
def test_how_sglang_is_started(case: str) -> None:
    line, expected = STARTS[case]
    line = re.sub(r"\bRUN\b", "-m sglang.launch_server --model /m --tp 8", line)
    server = read_server(read_unit(f"[Service]\nExecStart={line}\n"))
    found = {
        "how": server.how, "program": list(server.program), "front": list(server.front), "flags": plain(server), "engine": server.engine,
        "image": server.image, "python_home": server.python_home, "environment": dict(server.environment), "unread": list(server.unread),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_a_unit_without_a_start() -> None:
    server = read_server(read_unit("[Unit]\nDescription=x\n"))
    assert (server.how, server.unread) == ("", ("the unit has no ExecStart=",))


def test_variables_of_an_environment_file_reach_the_command_line() -> None:
    unit = read_unit(
        "[Service]\nEnvironmentFile=/etc/default/sglang\n"
        "ExecStart=/opt/v/bin/python -m sglang.launch_server --model-path ${MODEL} $SGLANG_ARGS\n"
    )
    server = read_server(unit, {"/etc/default/sglang": 'MODEL=/m\nSGLANG_ARGS="--tp 8 --trust-remote-code"\n'})
    assert plain(server) == {"model-path": "/m", "tp-size": "8", "trust-remote-code": True}


BEFORE_THE_MARK = "[Service]\nCacheDirectory=sglang/a\nWorkingDirectory=%C/sglang/a\nSyslogIdentifier=a\n"
OWNERS = {
    "the mark": ("[Unit]\nX-InferopsInstance=a\n", "a"),
    "as the role wrote it before the mark": (BEFORE_THE_MARK, "a"),
    "the mark goes before": (f"[Unit]\nX-InferopsInstance=b\n{BEFORE_THE_MARK}", "b"),
    "another cache": (BEFORE_THE_MARK.replace("Directory=sglang/a", "Directory=sglang/b"), ""),
    "another directory": (BEFORE_THE_MARK.replace("%C/sglang/a", "/srv/a"), ""),
    "no name in the log": (BEFORE_THE_MARK.replace("SyslogIdentifier=a\n", ""), ""),
    "somebody else's": ("[Service]\nExecStart=/opt/v/bin/python -m sglang.launch_server\n", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("case", OWNERS)
def test_whose_unit_it_is(case: str) -> None:
    text, instance = OWNERS[case]
    assert read_unit(text).instance == instance
