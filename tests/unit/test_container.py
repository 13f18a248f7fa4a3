# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of a container engine, and the program that starts a server in a container."""

from __future__ import annotations

import grp
import importlib.util
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._container import ContainerError, Image, ensure, find, is_absent, step_of
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

SCRIPT = Path(__file__).parents[2] / "roles/sglang/files/sglang_container.py"
spec = importlib.util.spec_from_file_location("sglang_container", SCRIPT)
container = importlib.util.module_from_spec(spec)
sys.modules["sglang_container"] = container
spec.loader.exec_module(container)

NAME = "docker.io/lmsysorg/sglang:v0.5.23"
PODMAN = [{"Id": "3b1f", "RepoDigests": ["docker.io/lmsysorg/sglang@sha256:7e5d"], "Size": 32212254720, "RepoTags": [NAME]}]
DOCKER = [{"Id": "sha256:3b1f", "RepoDigests": None, "Size": 1073741824}]


class FakeHost:
    """A host whose image appears when its pull has ended, after so many looks at it."""

    def __init__(self, there: bool = False, looks: int = 0, fails: str = "") -> None:
        self.there, self.looks, self.fails = there, looks, fails
        self.started = self.unit = False
        self.asked: list[list[str]] = []

    def __call__(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.asked.append(list(argv))
        if argv[1:3] == ["image", "inspect"]:
            return (0, json.dumps(PODMAN), "") if self.there else (125, "[]", f"Error: inspecting object: {NAME}: image not known\n")
        if argv[0] == "systemd-run":
            self.started = self.unit = True
            return 0, "", ""
        if argv[:2] == ["systemctl", "show"]:
            return 0, self._state(), ""
        if argv[:2] == ["systemctl", "stop"]:
            self.unit = False
        if argv[0] == "journalctl" and "--sync" not in argv:
            return 0, "Trying to pull\n" + self.fails, ""
        return 0, "", ""

    def _state(self) -> str:
        if not self.unit:
            return "LoadState=not-found\nActiveState=inactive\n"
        self.looks -= 1
        times = "ExecMainStartTimestampMonotonic=1000000\nExecMainExitTimestampMonotonic=43000000\nInvocationID=abc\n"
        if self.looks >= 0:
            return times + "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\n"
        if self.fails:
            return times + "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainCode=1\nExecMainStatus=125\n"
        self.there = True
        return times + "LoadState=loaded\nActiveState=active\nSubState=exited\nResult=success\nExecMainCode=1\nExecMainStatus=0\n"


class FakeClock(Clock):
    def __init__(self) -> None:
        self.time = 1.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


SHOWN = [
    (PODMAN, Image("sha256:3b1f", ("docker.io/lmsysorg/sglang@sha256:7e5d",), 30.0)),
    (DOCKER, Image("sha256:3b1f", (), 1.0)),
]


@pytest.mark.parametrize(("shown", "image"), SHOWN)
def test_an_image_is_known_by_its_id(shown: list, image: Image) -> None:
    assert find("podman", NAME, lambda _argv: (0, json.dumps(shown), "")) == image


@pytest.mark.parametrize("out", ["", "[]", "{", '[{"Id": null, "Size": "x"}]', "[1]"])
def test_an_answer_that_cannot_be_read_is_an_error(out: str) -> None:
    with pytest.raises(ContainerError, match=f"asked for the image {NAME}, found an answer that cannot be read"):
        find("podman", NAME, lambda _argv: (0, out, ""))


ABSENT = [
    ("Error: inspecting object: x: image not known", True),
    ('Error: failed to find image x: x: No such image', True),
    ("Error response from daemon: No such image: x:latest", True),
    ("Error: No such object: x", True),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", False),
    ("Error: 'overlay' is not supported over overlayfs", False),
]


@pytest.mark.parametrize(("errors", "absent"), ABSENT)
def test_how_the_engines_say_that_there_is_no_image(errors: str, absent: bool) -> None:
    assert is_absent(errors) is absent


def test_an_engine_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ContainerError) as error:
        find("docker", NAME, lambda _argv: (1, "", "Cannot connect to the Docker daemon. Is the docker daemon running?\n"))
    assert str(error.value) == (
        f"asked for the image {NAME}, found docker image inspect with exit code 1: Cannot connect to the Docker daemon. Is the docker "
        "daemon running?; mend docker on the host, and run again"
    )


def test_an_image_that_is_there_is_not_pulled() -> None:
    host = FakeHost(there=True)
    pull = ensure("podman", NAME, 60, host, FakeClock())
    assert (pull.image, pull.pulled) == (SHOWN[0][1], False)
    assert host.asked == [["podman", "image", "inspect", NAME]]


def test_a_missing_image_is_pulled_as_a_long_step_that_leaves_nothing() -> None:
    host = FakeHost(looks=5)
    pull = ensure("podman", NAME, 60, host, FakeClock())
    assert (pull.image, pull.pulled) == (SHOWN[0][1], True)
    (started,) = [argv for argv in host.asked if argv[0] == "systemd-run"]
    assert started[-3:] == ["podman", "pull", NAME]
    assert "--property=RuntimeMaxSec=60" in started
    assert "--setenv=HOME=/root" in started
    assert not host.unit


def test_whoever_watches_hears_every_thirty_seconds() -> None:
    host, clock = FakeHost(looks=100), FakeClock()
    news = ensure("podman", NAME, 3600, host, clock, watched=True)
    assert news.image is None
    assert 30 <= clock.now() <= 32
    later = ensure("podman", NAME, 3600, host, clock, known=news.step.invocation_id, watched=True)
    assert later.image is not None
    assert later.pulled
    assert len([argv for argv in host.asked if argv[0] == "systemd-run"]) == 1


def test_a_pull_that_fails_says_why() -> None:
    host = FakeHost(fails="Error: initializing source: connection refused\n")
    with pytest.raises(ContainerError) as error:
        ensure("podman", NAME, 60, host, FakeClock())
    assert str(error.value) == (
        f"asked for the image {NAME}, found that it cannot be pulled: it ended with exit code 125: Error: initializing source: connection "
        "refused; mend the cause (name, network, login, disk), or load the image by hand: podman load"
    )
    assert not host.unit


def test_one_image_is_one_step() -> None:
    assert step_of("podman", NAME, 60).unit == step_of("podman", NAME, 90).unit != step_of("docker", NAME, 60).unit


ME = f"{os.getuid()}:{os.getgid()}"
INSERTED = [
    ({}, (), ["--user", "1:2"]),
    (
        {"HF_HUB_OFFLINE": "1", "A": "secret", "PATH": "/bin", "JOURNAL_STREAM": "8:1", "HOME": "/var/cache/x"},
        (),
        ["--user", "1:2", "--env", "A", "--env", "HF_HUB_OFFLINE", "--env", "HOME"],
    ),
    (
        {"CREDENTIALS_DIRECTORY": "/run/credentials/a.service", "CUDA_VISIBLE_DEVICES": "1", "B": ""},
        ("CUDA_VISIBLE_DEVICES",),
        [
            "--user", "1:2", "--env", "B", "--env", "CREDENTIALS_DIRECTORY", "--volume",
            "/run/credentials/a.service:/run/credentials/a.service:ro",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "drop", "words"), INSERTED)
def test_what_only_the_host_knows_goes_into_the_options(environment: dict, drop: tuple, words: list[str]) -> None:
    assert container.inserted(environment, "1:2", drop) == words


def test_it_stands_behind_the_verb() -> None:
    assert container.command(["podman", "run", "--rm", "image", "python3"], ["--user", "1:2"]) == [
        "podman", "run", "--user", "1:2", "--rm", "image", "python3",
    ]  # fmt: skip


def engine(tmp_path: Path, end: str = "") -> Path:
    """A program that writes down how it was called, and ends so."""
    program = tmp_path / "engine"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{end}\n')
    program.chmod(0o755)
    return program


def test_it_clears_the_name_and_becomes_the_client(tmp_path: Path) -> None:
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    words = [engine(tmp_path), "run", "--rm", "image", "python3", "-m", "sglang.launch_server", "--", "--name"]
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, "start", "--name", "box", "--user", user, "--group", group, "--drop", "C", "--", *words],
        env={"A": "1", "C": "3", "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    removed, ran = (tmp_path / "calls").read_text().splitlines()
    assert removed == "rm --force box"
    # what Python itself sets for its locale comes along
    assert ran.replace("--env LC_CTYPE ", "") == f"run --user {ME} --env A --rm image python3 -m sglang.launch_server -- --name"


FAILING = [
    (["--user", "no-such-user", "--", "podman", "run", "image"], 1, "asked for a server of no-such-user:root, found no such account"),
    (["--user", "root", "--", "/nowhere/podman", "run", "image"], 1, "asked to start box with /nowhere/podman, found [Errno 2]"),
    (["--user", "root", "--", "podman"], 2, "after -- give the engine, and to start it: run, its options, the image"),
    (["--user", "root"], 2, "after -- give the engine, and to start it: run, its options, the image"),
]


@pytest.mark.parametrize(("words", "code", "text"), FAILING)
def test_what_cannot_be_started_is_said(words: list[str], code: int, text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, "start", "--name", "box", "--group", "root", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert text in done.stderr
    assert "Traceback" not in done.stderr


CLEARED = [
    ("", 0, ""),
    ("echo Error: no container with name or ID box found: no such container >&2; exit 1", 0, ""),
    ("echo Error response from daemon: No such container: box >&2; exit 1", 0, ""),
    ("echo Cannot connect to the daemon >&2; exit 1", 1, "asked to take the container box away, found Cannot connect to the daemon\n"),
    ("exit 3", 1, "asked to take the container box away, found exit code 3\n"),
]


@pytest.mark.parametrize(("end", "code", "text"), CLEARED)
def test_a_container_is_taken_away_and_nothing_is_said_of_one_that_is_not_there(tmp_path: Path, end: str, code: int, text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, "clear", "--name", "box", "--", engine(tmp_path, end)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", text)
    assert (tmp_path / "calls").read_text() == "rm --force box\n"


def test_no_engine_to_clear_with_is_said() -> None:
    words = [sys.executable, "-I", SCRIPT, "clear", "--name", "box", "--", "/nowhere/podman"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("asked to clear box with /nowhere/podman, found [Errno 2]")
