# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a host, from files and programs that the tests give."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from typing import Any, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._host import (
    FileFacts,
    HostMemory,
    Instance,
    Interpreter,
    Listener,
    LockLimit,
    Manager,
    Owners,
    Sight,
    Space,
    Unit,
    Xid,
    is_own,
    pids_of,
    program_of,
    read_file_facts,
    read_instances,
    read_interpreter,
    read_listeners,
    read_lock_limit,
    read_manager,
    read_memory,
    read_owners,
    read_space,
    read_unit,
    read_xids,
)
from ansible_collections.inferops.sglang.plugins.module_utils._programs import limited, search_path

NOT_THERE = FileNotFoundError(2, "No such file or directory")
NOBODY = Owners(frozenset(), frozenset())


def sight(
    files: Optional[Mapping[str, str]] = None,
    links: Optional[Mapping[str, str]] = None,
    answer: Any = NOT_THERE,
    devices: Optional[Mapping[str, int]] = None,
    free: Optional[Mapping[str, int]] = None,
) -> Sight:
    """A host of these files. ``answer``: what every program says, or raises. ``devices``: folders by the filesystem they are on."""
    known, targets, places = dict(files or {}), dict(links or {}), dict(devices or {})

    def run(_argv):
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read(path: str) -> bytes:
        if path not in known:
            raise FileNotFoundError(2, "No such file or directory", path)
        return known[path].encode()

    def names(folder: str) -> list[str]:
        start = folder.rstrip("/") + "/"
        return sorted({path[len(start) :].split("/")[0] for path in (*known, *targets) if path.startswith(start)})

    def state(path: str) -> Optional[os.stat_result]:
        if path in places:
            return os.stat_result((stat.S_IFDIR | 0o755, 0, places[path], 1, 0, 0, 0, 0, 0, 0))
        if path in known:
            return os.stat_result((stat.S_IFREG | 0o640, 0, 0, 1, 0, 0, len(known[path]), 0, 0, 0))
        return os.stat_result((stat.S_IFDIR | 0o755, 0, 0, 1, 0, 0, 0, 0, 0, 0)) if names(path) else None

    return Sight(run, read, names, lambda path: targets.get(path, ""), state, lambda path: dict(free or {})[path], lambda _name: None)


MANAGERS = {
    "debian": ((0, "Version=252.39-1~deb12u1\n", ""), Manager(252)),
    "rhel": ((0, "Version=v257.9-2.el10\n", ""), Manager(257)),
    "not booted with it": (
        (1, "", "System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus\n"),
        Manager(
            None,
            "tini as process 1 (systemctl: System has not been booted with systemd as init system (PID 1). Can't operate. "
            "Failed to connect to bus)",
        ),
    ),
    "not installed": (NOT_THERE, Manager(None, "tini as process 1 (systemctl: [Errno 2] No such file or directory)")),
    "silent": ((3, "", ""), Manager(None, "tini as process 1 (systemctl: exit code 3)")),
}  # fmt: skip


@pytest.mark.parametrize("case", MANAGERS)
def test_the_service_manager(case: str) -> None:
    answer, manager = MANAGERS[case]
    assert read_manager(sight({"/proc/1/comm": "tini\n"}, answer=answer)) == manager


SHOWN = "LoadState=loaded\nActiveState=active\nMainPID=77\nDropInPaths=/a/b.conf /c/d.conf\nControlGroup=/system.slice/x.service\n"


def test_a_unit_as_the_manager_knows_it_and_as_its_file_is() -> None:
    path = "/etc/systemd/system/x.service"
    found = read_unit(sight({path: "[Unit]\n"}, answer=(0, SHOWN, "")), "x.service")
    assert found == Unit("x.service", path, "[Unit]\n", "loaded", "active", 77, ("/a/b.conf", "/c/d.conf"), "/system.slice/x.service")


def test_a_masked_unit_has_no_text() -> None:
    path = "/etc/systemd/system/x.service"
    found = read_unit(sight({path: ""}, {path: "/dev/null"}, (0, "LoadState=masked\nActiveState=inactive\nMainPID=0\n", "")), "x.service")
    assert (found.text, found.load_state, found.main_pid) == (None, "masked", 0)


@pytest.mark.parametrize("answer", [(1, "", "no bus"), FileNotFoundError(2, "systemctl")])
def test_a_unit_where_no_manager_answers_is_its_file(answer: Any) -> None:
    path = "/etc/systemd/system/x.service"
    assert read_unit(sight({path: "text"}, answer=answer), "x.service") == Unit("x.service", path, "text")


PROCESSES = {
    "/sys/fs/cgroup/system.slice/x.service/cgroup.procs": "77\n78\n",
    "/sys/fs/cgroup/system.slice/x.service/inner/cgroup.procs": "79\n",
    "/sys/fs/cgroup/system.slice/x.service/memory.stat": "",
    "/proc/77/environ": "A=1\0INFEROPS_DIGEST=abc\0",
    "/proc/90/environ": "INFEROPS_DIGEST=abc\0B=2\0",
    "/proc/91/environ": "INFEROPS_DIGEST=other\0",
    "/proc/91/comm": "python3\n",
    "/proc/91/cgroup": "0::/system.slice/y.service\n",
    "/proc/92/comm": "trainer\n",
    "/proc/92/cgroup": "0::/user.slice/user-0.slice\n",
    "/proc/77/status": "Name:\tx\nRssAnon:\t 1048576 kB\n",
    "/proc/78/status": "RssAnon:\t 524288 kB\n",
}
RUNNING = Unit("x.service", "/etc/systemd/system/x.service", main_pid=77, control_group="/system.slice/x.service")


def test_the_processes_of_a_unit_are_those_of_its_group() -> None:
    assert pids_of(sight(PROCESSES), [RUNNING]) == {77, 78, 79}
    assert pids_of(sight(), [Unit("y.service", "")]) == frozenset()


def test_a_process_with_the_same_configuration_is_the_instances_own_wherever_it_is() -> None:
    host = sight(PROCESSES)
    owners = read_owners(host, [RUNNING])
    assert {pid: is_own(host, owners, pid) for pid in (77, 79, 90, 91, 92)} == {77: True, 79: True, 90: True, 91: False, 92: False}


@pytest.mark.parametrize(("pid", "words"), [(91, "python3 of y.service"), (92, "trainer"), (93, "")])
def test_a_process_in_words(pid: int, words: str) -> None:
    assert program_of(sight(PROCESSES), pid) == words


# 30000 is 7530, 30001 is 7531; the tables' columns are address, remote, state, queues, timers, retransmissions, user, timeout, inode
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(address: str, state: str, inode: int) -> str:
    return f"   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0000000000000000 100\n"


LISTENS = {
    "on the same address": ("127.0.0.1", "tcp", "0100007F:7530", "127.0.0.1"),
    "on every address": ("127.0.0.1", "tcp", "00000000:7530", "0.0.0.0"),
    "on every address, the sixth": ("10.0.0.5", "tcp6", "00000000000000000000000000000000:7530", "::"),
    "asked for every address": ("0.0.0.0", "tcp", "0500000A:7530", "10.0.0.5"),
    "by the name of the loopback": ("localhost", "tcp", "0100007F:7530", "127.0.0.1"),
    "by another name": ("gpu01", "tcp", "0500000A:7530", "10.0.0.5"),
    "the sixth's loopback": ("::1", "tcp6", "00000000000000000000000001000000:7530", "::1"),
    "the fourth within the sixth": ("10.0.0.5", "tcp6", "0000000000000000FFFF00000500000A:7530", "10.0.0.5"),
}


@pytest.mark.parametrize("case", LISTENS)
def test_who_listens(case: str) -> None:
    host, table, address, shown = LISTENS[case]
    files = {f"/proc/net/{table}": HEAD + row(address, "0A", 555), "/proc/91/comm": "nginx\n", **PROCESSES}
    links = {"/proc/91/fd/3": "socket:[555]", "/proc/92/fd/3": "socket:[556]"}
    assert read_listeners(sight(files, links), host, 30000, NOBODY) == (Listener(shown, 30000, 91, "python3 of y.service", False),)


def test_who_does_not_listen() -> None:
    rows = row("0100007F:7531", "0A", 1) + row("0100007F:7530", "01", 2) + row("0500000A:7530", "0A", 3) + "   a line of another form\n"
    assert read_listeners(sight({"/proc/net/tcp": HEAD + rows}), "127.0.0.1", 30000, NOBODY) == ()


def test_a_listener_that_cannot_be_seen_and_one_that_is_the_instances_own() -> None:
    files = {"/proc/net/tcp": HEAD + row("0100007F:7530", "0A", 555), **PROCESSES}
    assert read_listeners(sight(files), "127.0.0.1", 30000, NOBODY) == (Listener("127.0.0.1", 30000, 0, "", False),)
    own = read_listeners(sight(files, {"/proc/78/fd/9": "socket:[555]"}), "127.0.0.1", 30000, Owners(frozenset({77, 78}), frozenset()))
    assert [(item.pid, item.own) for item in own] == [(78, True)]


UNITS = "/etc/systemd/system"
MARKED = "[Unit]\nX-InferopsInstance=a\n[Service]\nEnvironmentFile=/etc/sglang/a.env\nExecStart=/x \\\n  --port 30001 \\\n  --tp-size 2\n"


def test_other_instances_are_units_with_the_mark_that_will_run() -> None:
    files = {
        f"{UNITS}/a.service": MARKED,
        f"{UNITS}/multi-user.target.wants/a.service": MARKED,
        f"{UNITS}/b.service": "[Unit]\nX-InferopsInstance=b\n[Service]\nExecStart=/x --port=30002\n",
        "/sys/fs/cgroup/system.slice/b.service/cgroup.procs": "5\n",
        # written by the role before it had the mark
        f"{UNITS}/old.service":
            "[Service]\nCacheDirectory=sglang/old\nWorkingDirectory=%C/sglang/old\nSyslogIdentifier=old\nExecStart=/x --port 30003\n",
        f"{UNITS}/multi-user.target.wants/old.service": "",
        # neither enabled nor running, without the mark, the instance itself
        f"{UNITS}/c.service": MARKED,
        f"{UNITS}/d.service": "[Service]\nExecStart=/x --port 30000\n",
        f"{UNITS}/multi-user.target.wants/d.service": "",
        f"{UNITS}/own.service": MARKED,
        f"{UNITS}/multi-user.target.wants/own.service": "",
        "/etc/sglang/a.env": '# made\nCUDA_VISIBLE_DEVICES="2, GPU-aa"\n',
    }
    assert read_instances(sight(files), ["own.service"]) == (
        Instance("a.service", 30001, ("2", "GPU-aa")),
        Instance("b.service", 30002, ()),
        Instance("old.service", 30003, ()),
    )


def test_memory_with_huge_pages_and_what_the_instance_gives_back() -> None:
    meminfo = (
        "MemTotal:       67108864 kB\nMemAvailable:   16777216 kB\nHugePages_Total:     100\nHugetlb:        41943040 kB\n"
    )
    found = read_memory(sight({"/proc/meminfo": meminfo, **PROCESSES}), Owners(frozenset({77, 78}), frozenset()))
    assert found == HostMemory(64.0, 16.0, 1.5, 40.0)
    assert read_memory(sight({"/proc/meminfo": "nothing\n"}), NOBODY) is None


LIMITS = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608       {}    bytes\n"


@pytest.mark.parametrize(
    ("hard", "rights", "most"),
    [
        pytest.param("8388608", "00000000a80425fb", 8192, id="cannot raise it"),
        pytest.param("8388608", "000001ffffffffff", None, id="can raise it"),
        pytest.param("unlimited", "00000000a80425fb", None, id="has none"),
    ],
)
def test_the_limit_of_locked_memory(hard: str, rights: str, most: Optional[int]) -> None:
    files = {"/proc/1/limits": LIMITS.format(hard), "/proc/1/status": f"Name:\tsystemd\nCapEff:\t{rights}\n"}
    assert read_lock_limit(sight({**files, "/sys/class/infiniband/mlx5_0/x": ""})) == LockLimit(most, ("mlx5_0",))


def test_the_filesystem_of_a_path_that_is_not_there_yet() -> None:
    host = sight(devices={"/": 1, "/srv": 2, "/srv/models": 2}, free={"/srv/models": 3 << 30, "/": 1 << 30})
    assert read_space(host, "/srv/models/kimi/x/") == Space("/srv", 2, 3.0)
    assert read_space(host, "/opt/sglang") == Space("/", 1, 1.0)


KERNEL = [
    {"MESSAGE": "NVRM: Xid (PCI:0000:3B:00): 79, pid=1, GPU has fallen off the bus.", "__REALTIME_TIMESTAMP": "1796000100000000"},
    {"MESSAGE": "NVRM: Xid (PCI:0000:0a:00): 31", "__REALTIME_TIMESTAMP": "1796000100000000"},
    {"MESSAGE": "NVRM: loading NVIDIA UNIX Open Kernel Module", "__REALTIME_TIMESTAMP": "1"},
    {"MESSAGE": [78, 86], "__REALTIME_TIMESTAMP": "1"},
    {"MESSAGE": "NVRM: Xid (PCI:0000:0a:00): 48"},
]  # fmt: skip


def test_the_errors_of_the_cards_in_the_kernels_log() -> None:
    out = "\n".join([*(json.dumps(record) for record in KERNEL), "not json"])
    assert read_xids(sight(answer=(0, out, ""))) == (
        Xid("2026-11-30 00:55:00 UTC", "0000:3b:00", 79, "pid=1, GPU has fallen off the bus."),
        Xid("2026-11-30 00:55:00 UTC", "0000:0a:00", 31, ""),
    )


@pytest.mark.parametrize("answer", [(1, "", "No journal files were opened due to insufficient permissions."), FileNotFoundError(2, "x")])
def test_a_kernels_log_that_cannot_be_read_says_nothing(answer: Any) -> None:
    assert read_xids(sight(answer=answer)) == ()


def test_facts_of_files() -> None:
    host = sight({"/srv/key": "secret\n"}, devices={"/srv": 1})
    assert read_file_facts(host, "/srv/key") == FileFacts("file", 0o640, 7, 1)
    assert read_file_facts(host, "/srv/key").open_to_others is True
    assert FileFacts("file", 0o600, 7).open_to_others is False
    assert read_file_facts(host, "/srv").kind == "folder"
    assert read_file_facts(host, "/none") == FileFacts("missing")


INTERPRETERS = {
    "works": ((0, "3.11.2 1\n", ""), Interpreter("3.11.2", True)),
    "without ensurepip": ((0, "3.12.3 0\n", ""), Interpreter("3.12.3", False)),
    "absent": (FileNotFoundError(2, "No such file or directory"), Interpreter("", found="no such program")),
    "not to be run": (PermissionError(13, "Permission denied"), Interpreter("", found="that it cannot be started (Permission denied)")),
    "hangs": (TimeoutError("no answer within 30 s"), Interpreter("", found="that it cannot be started (no answer within 30 s)")),
    "breaks": ((127, "", "error while\nloading"), Interpreter("", found="exit code 127 (error while loading)")),
    "is another program": ((0, "hello\n", ""), Interpreter("", found="exit code 0 (hello)")),
}


@pytest.mark.parametrize("case", INTERPRETERS)
def test_interpreters(case: str) -> None:
    answer, found = INTERPRETERS[case]
    assert read_interpreter(sight(answer=answer), "/usr/bin/python3") == found


def test_the_release_of_an_interpreter() -> None:
    assert (Interpreter("3.11.2").release, Interpreter("").release) == ((3, 11, 2), ())


# --- programs, for real -----------------------------------------------------------------------------------------------------


def test_a_program_that_does_not_end_is_left_behind() -> None:
    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 s"):
        limited(0.2)(["sleep", "60"])


def test_a_program_says_what_it_says_in_plain_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert limited(30)(["sh", "-c", "echo $LC_ALL; printf '\\377' >&2; exit 3"]) == (3, "C\n", "\ufffd")
    with pytest.raises(FileNotFoundError):
        limited(30)(["no-such-program-here"])


def test_tools_of_drivers_are_found_without_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/mine:/usr/bin")
    places = search_path().split(":")
    assert places[:2] == ["/mine", "/usr/bin"]
    assert places.count("/usr/bin") == 1
    assert "/opt/rocm/bin" in places
