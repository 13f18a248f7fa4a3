# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building: whatever an earlier run left, the next one ends whole or as it was. The service manager is a small imitation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import pytest
from ansible_collections.inferops.sglang.plugins.action.release import ActionModule
from ansible_collections.inferops.sglang.plugins.module_utils._release import ReleaseError, Request, mark_text
from ansible_collections.inferops.sglang.plugins.module_utils._release_build import Host, Known, Place, ensure, settle, size_of
from ansible_collections.inferops.sglang.plugins.module_utils._release_store import Store, linked, prune, set_link, users_of
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

REQUEST = Request("0.5.23")
NAME = "0.5.23-0123abcd"


def make(path: Path, version: str = "0.5.23", marked: bool = False) -> None:
    """An environment as an installer leaves it."""
    (path / "bin").mkdir(parents=True)
    (path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    program = path / "bin/python"
    program.write_text("")
    program.chmod(0o755)
    info = path / f"lib/python3.11/site-packages/sglang-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("")
    if marked:
        (path / ".complete").write_text(mark_text(str(path), REQUEST, "pip"))


@dataclass
class Systemd:
    """One unit: its state, and what happens when it is started and looked at the second time."""

    path: Path
    state: str = "absent"
    outcome: str = "done"
    makes: str = "0.5.23"
    starts: int = 0
    output: str = ""
    commands: list[list[str]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.commands.append(list(argv))
        if argv[0] == "systemd-run":
            self.starts, self.state = self.starts + 1, "running"
        elif argv[:2] == ["systemctl", "stop"]:
            self.state = "absent"
        elif argv[:2] == ["systemctl", "show"]:
            return 0, self._show(), ""
        elif "--output=cat" in argv:
            return 0, self.output, ""
        return 0, "", ""

    def finish(self) -> None:
        """The installer ends."""
        if self.state == "running":
            self.state = self.outcome
            if self.outcome == "done" or not self.path.exists():
                make(self.path, self.makes)

    def _show(self) -> str:
        states = {
            "absent": "ActiveState=inactive\nLoadState=not-found\n",
            "running": "ActiveState=active\nSubState=running\n",
            "done": "ActiveState=active\nSubState=exited\nResult=success\n",
            "failed": "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainCode=1\nExecMainStatus=1\n",
        }
        return states[self.state] + f"InvocationID=run{self.starts}\n"


@dataclass
class Scene:
    """A root with an environment's place in it, and the host around it."""

    root: Path
    systemd: Systemd
    seconds: float = 0.0

    @property
    def place(self) -> Place:
        return Place(str(self.root / NAME))

    @property
    def host(self) -> Host:
        lock = str(self.root.parent / "lock")
        return Host(self.systemd, Clock(lambda: self.seconds, self.sleep), lambda _name: None, {}, {}, lock)

    def sleep(self, span: float) -> None:
        self.seconds += span
        self.systemd.finish()

    def ensure(self, known: Optional[Known] = None):
        return ensure(REQUEST, self.place, 60, self.host, known)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir()) if self.root.exists() else []


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    root = tmp_path / "root"
    return Scene(root, Systemd(root / NAME))


# what an earlier run may have left: the environment (none, half, broken, whole), the folder of the build, one put aside, the unit
LEFT = [
    (environment, build, aside, unit)
    for environment in ("none", "half", "broken", "whole")
    for build in (False, True)
    for aside in (False, True)
    for unit in ("absent", "done", "failed", "running")
    # nothing is marked while it is built
    if unit != "running" or environment in ("none", "half")
]


def leave(scene: Scene, environment: str, build: bool, aside: bool, unit: str) -> None:
    path = scene.root / NAME
    scene.root.mkdir()
    if environment == "half":
        (path / "lib").mkdir(parents=True)
    elif environment != "none":
        make(path, marked=True)
    if environment == "broken":
        (path / ".complete").write_text("{")
    if build:
        (scene.root / f".{NAME}.build").mkdir()
    if aside:
        make(scene.root / f".{NAME}.old", "0.5.22")
    scene.systemd.state = unit


@pytest.mark.parametrize(("environment", "build", "aside", "unit"), LEFT)
def test_whatever_was_left_the_next_run_ends_whole(scene, environment, build, aside, unit):
    leave(scene, environment, build, aside, unit)
    news = scene.ensure()
    assert (news.state.complete, news.pending) == (True, False)
    assert (scene.names(), scene.systemd.state) == ([NAME], "absent" if news.built else unit)
    assert news.built is (environment != "whole" or build or aside or unit != "absent")
    assert scene.systemd.starts <= 1


@pytest.mark.parametrize(("environment", "build", "aside", "unit"), [left for left in LEFT if left[0] != "whole" and left[3] != "running"])
def test_where_it_cannot_be_built_what_was_there_before_is_there_again(scene, environment, build, aside, unit):
    leave(scene, environment, build, aside, unit)
    scene.systemd.outcome = "failed"
    with pytest.raises(ReleaseError, match="the service is untouched"):
        scene.ensure()
    # half an environment of a build is nobody's
    kept = aside or environment == "broken" or (environment == "half" and not build and unit != "done")
    assert scene.names() == ([NAME] if kept else [])
    if aside:
        assert (scene.root / NAME / "lib/python3.11/site-packages/sglang-0.5.22.dist-info").exists()


def test_a_run_that_joined_a_build_does_not_build_again_when_that_failed(scene):
    first = scene.ensure(Known())
    assert (first.pending, first.phase.text, first.invocation_id) == (True, "makes the environment", "run1")
    joined = scene.ensure(Known())
    scene.systemd.outcome, scene.systemd.output = "failed", "ERROR: the moon is full\n"
    messages = []
    for seen in (first, joined):
        with pytest.raises(ReleaseError) as error:
            scene.ensure(Known(seen.invocation_id, seen.phase.kind))
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "found the moon is full; look at the output of the installer. The half-made environment is removed" in messages[0]
    assert scene.systemd.starts == 1


def test_news_come_with_another_phase_and_every_half_minute(scene):
    scene.systemd.finish = lambda: None
    began = scene.ensure(Known())
    assert scene.seconds == 0
    again = scene.ensure(Known(began.invocation_id, began.phase.kind))
    assert (again.pending, scene.seconds) == (True, 30.0)
    scene.systemd.output = "--- packages\nCollecting torch==2.9.1\n"
    moved = scene.ensure(Known(again.invocation_id, again.phase.kind))
    assert (moved.phase.text, scene.seconds) == ("fetches torch", 30.0)


def test_another_version_than_asked_is_refused_and_leaves_nothing(scene):
    scene.systemd.makes = "0.5.22"
    with pytest.raises(ReleaseError) as error:
        scene.ensure()
    assert str(error.value) == (
        "asked for SGLang 0.5.23, found 0.5.22 in the package index; set sglang_version to 0.5.22, the version of what is installed: "
        "the plan depends on it. The half-made environment is removed and the service is untouched."
    )
    assert scene.names() == []


def test_the_mark_says_what_was_asked_and_what_is_inside(scene):
    scene.ensure()
    mark = json.loads((scene.root / NAME / ".complete").read_text())
    assert (mark["version"], mark["python"], mark["installer"], mark["distributions"]) == ("0.5.23", "3.11", "pip", ["sglang-0.5.23"])
    assert mark["request"] == REQUEST.kept


@pytest.mark.parametrize("unit", ["absent", "failed", "running", "done"])
def test_what_nobody_waits_for_is_settled_unless_it_goes_on(scene, unit):
    leave(scene, "half", True, True, unit)
    settle(scene.place, scene.host)
    left = [f".{NAME}.build", f".{NAME}.old", NAME] if unit in ("running", "done") else [NAME]
    assert scene.names() == left


def test_the_unit_has_a_name_that_systemd_takes():
    assert Place("/opt/my+sglang/0.5.23+x-0123abcd").unit == "sglang-build-opt-my_sglang-0.5.23_x-0123abcd"


def test_files_with_several_names_count_once(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 8192)
    one = size_of(str(tmp_path))
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert (one >= 8192, size_of(str(tmp_path)), size_of(str(tmp_path / "none"))) == (True, one, 0)


LINES = [
    ({"phase": "fetches torch", "size_gb": 3.1}, 130.4, "[gpu01] SGLang 0.5.23 | fetches torch | 2 min 10 s | 3.1 GB"),
    ({"phase": "makes the environment", "size_gb": 0.0}, 0.0, "[gpu01] SGLang 0.5.23 | makes the environment | 0 s"),
    ({"size_gb": 9.8}, 250.0, "[gpu01] SGLang 0.5.23 | is installed | 4 min 10 s | 9.8 GB"),
    ({"failed": True}, 9.0, "[gpu01] SGLang 0.5.23 | failed | 9 s"),
]


@pytest.mark.parametrize(("seen", "waited", "line"), LINES)
def test_a_line_says_what_the_installer_is_at(seen, waited, line):
    action = ActionModule.__new__(ActionModule)
    assert action.line("gpu01", {"version": "0.5.23"}, seen, waited) == line


@pytest.mark.parametrize(
    ("arguments", "watched"),
    [
        ({"version": "0.5.23"}, True),
        ({"version": "0.5.23", "existing": "/e"}, False),
        ({"state": "current"}, False),
        ({"state": "absent"}, False),
    ],
)
def test_only_what_may_take_long_is_watched(arguments, watched):
    assert ActionModule.__new__(ActionModule).is_watched(arguments) is watched


def test_a_process_that_renamed_itself_is_known_by_its_libraries(tmp_path):
    root = tmp_path / "root"
    store = Store(str(root), str(tmp_path / "states"), units=(), proc=str(tmp_path / "proc"))
    for name in ("1.0-00000001", "1.0-00000002", "1.0-00000003"):
        make(root / name)
    processes = (
        ("11", f"{root}/1.0-00000001/bin/python\0-m\0x", ""),
        ("7", "sglang::scheduler", f"7f0 {root}/1.0-00000002/lib/x.so"),
    )
    for pid, command, maps in processes:
        (tmp_path / "proc" / pid).mkdir(parents=True)
        for file, text in (("cmdline", command), ("maps", maps), ("comm", "python\n")):
            (tmp_path / "proc" / pid / file).write_text(text)
    names = ["1.0-00000001", "1.0-00000002", "1.0-00000003"]
    assert users_of(store, names) == {"1.0-00000001": "process 11 (python)", "1.0-00000002": "process 7 (python)"}


def test_what_is_being_built_or_is_nobodys_is_not_pruned(tmp_path):
    root = tmp_path / "root"
    store = Store(str(root), str(tmp_path / "states"), units=(), proc=str(tmp_path / "proc"))
    make(root / "1.0-00000001", "0.5.23", marked=True)
    make(root / "1.0-00000002")
    make(root / "1.0-00000003")
    (root / ".1.0-00000003.build").mkdir()
    (root / "1.0-00000004").mkdir()
    (root / "mine").mkdir()
    set_link(store, "k26", str(root / "elsewhere"))
    assert linked(store) == {"k26": str(root / "elsewhere")}
    removed: list[str] = []
    assert prune(store, 1, removed.append).removed == removed == [str(root / "1.0-00000002")]
    assert prune(store, 0, removed.append).removed == [str(root / "1.0-00000001"), str(root / "1.0-00000002")]
