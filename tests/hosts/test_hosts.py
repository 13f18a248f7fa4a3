# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The throw-away hosts do what tests stand on: real systemd, own journals, a disk that stays, and no trace afterwards.

Sets of their own (prefix, network, state) keep these tests apart from hosts that somebody else runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# It stays active: journald looks up the invocation of a line when it reads it, and a unit that has ended has none any more.
UNIT = """\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo line of $INVOCATION_ID'
"""


@dataclass(frozen=True)
class Hosts:
    """One set of hosts, and the script that commands it."""

    prefix: str
    network: str

    @property
    def state(self) -> Path:
        return Path("/var/lib") / f"inferops-hosts-{self.prefix}"

    @property
    def environment(self) -> dict[str, str]:
        own = {"PREFIX": self.prefix, "NET": self.network, "STATE": str(self.state)}
        return {**os.environ, **{f"INFEROPS_HOSTS_{key}": value for key, value in own.items()}}

    def run(self, *words: str, stdin: str = "", before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*before, str(HERE / "hosts"), *words]
        return subprocess.run(command, env=self.environment, input=stdin, capture_output=True, text=True, check=False)

    def __call__(self, *words: str, stdin: str = "", before: tuple[str, ...] = ()) -> str:
        done = self.run(*words, stdin=stdin, before=before)
        assert done.returncode == 0, f"hosts {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def inside(self, name: str, script: str) -> str:
        return self("exec", name, "sh", "-ec", script)

    def boot(self, name: str) -> str:
        return self.inside(name, "cat /proc/sys/kernel/random/boot_id; stat -c %Z /proc/1")

    def leader(self, name: str) -> int:
        line = next(line for line in self("ls").splitlines() if line.startswith(f"{name} "))
        return int(line.split()[-1])


def _removed_afterwards(hosts: Hosts) -> Iterator[Hosts]:
    hosts("down")
    try:
        yield hosts
    finally:
        hosts("down")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Two hosts that all tests of this module share: nobody's reboot or crash may matter to another test."""
    shared = tmp_path_factory.mktemp("shared")
    (shared / "wheel").write_text("from the controller\n", encoding="ascii")
    platforms = [
        {"name": "one", "groups": ["gpu", "canary"], "binds": [f"{shared}:/srv/shared"], "tmpfs": ["/opt/small:8M"]},
        {"name": "two", "release": "bookworm", "groups": ["gpu"]},
    ]
    for hosts in _removed_afterwards(Hosts("infopt", "10.79.1")):
        hosts("up", "--platforms", "-", stdin=json.dumps(platforms))
        yield hosts


@pytest.fixture
def empty() -> Iterator[Hosts]:
    """A set in which there is nothing yet."""
    yield from _removed_afterwards(Hosts("infopu", "10.79.2"))


def test_an_image_is_built_once_and_carries_what_the_role_needs() -> None:
    hosts = Hosts("infopu", "10.79.2")
    image = Path(hosts("image"))
    again = hosts.run("image", "bookworm")
    assert (again.stdout.strip(), again.stderr) == (str(image), "")
    needed = ["sbin/init", "usr/sbin/sshd", "usr/bin/python3", "usr/bin/sudo", "usr/lib/python3.11/ensurepip", "var/log/journal"]
    assert [path for path in needed if not (image / path).resolve().exists()] == []


@pytest.mark.parametrize("name", ["one", "two"])
def test_systemd_is_pid_1_and_every_unit_started(pair: Hosts, name: str) -> None:
    assert pair.inside(name, "cat /proc/1/comm; systemctl is-system-running; hostname; id -u") == f"systemd\nrunning\n{name}\n0"


def test_each_host_has_a_journal_of_its_own_by_invocation(pair: Hosts) -> None:
    seen = {}
    for name in ("one", "two"):
        pair.inside(name, f"cat >/etc/systemd/system/probe.service <<'END'\n{UNIT}END\nsystemctl daemon-reload")
        for start in ("systemctl start probe", "systemctl restart probe"):
            pair.inside(name, start)
        lines = pair.inside(name, "journalctl --sync; journalctl -u probe -o cat | grep '^line of'").splitlines()
        assert len(set(lines)) == 2
        seen[name] = lines
        last = lines[-1].removeprefix("line of ")
        assert pair.inside(name, f"journalctl -o cat _SYSTEMD_INVOCATION_ID={last}") == lines[-1]
    assert not set(seen["one"]) & set(seen["two"])


def test_ansible_reaches_hosts_and_groups_through_the_inventory(pair: Hosts, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    pair("inventory", "--output", str(inventory))
    for pattern, expected in (("all", {"one", "two"}), ("gpu", {"one", "two"}), ("canary", {"one"})):
        command = ["ansible", "--inventory", str(inventory), pattern, "-m", "ansible.builtin.command", "-a", "hostname"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert set(done.stdout.split()) & {"one", "two"} == expected


def test_molecule_is_told_the_same_addresses(pair: Hosts) -> None:
    addresses = {line.split()[0]: line.split()[1] for line in pair("ls").splitlines()}
    instances = json.loads(pair("list-json", "two", "one"))
    assert [entry["instance"] for entry in instances] == ["two", "one"]
    assert {entry["instance"]: entry["address"] for entry in instances} == addresses
    assert {(entry["user"], entry["port"], Path(entry["identity_file"]).stat().st_mode & 0o777) for entry in instances} == {
        ("root", 22, 0o600)
    }


def test_hosts_reach_each_other(pair: Hosts) -> None:
    address = next(line.split()[1] for line in pair("ls").splitlines() if line.startswith("two "))
    ask = f"import socket; print(socket.create_connection(('{address}', 22), 10).recv(4).decode())"
    assert pair("exec", "one", "python3", "-c", ask) == "SSH-"


def test_a_bind_is_readable_and_only_that(pair: Hosts) -> None:
    assert pair.inside("one", "cat /srv/shared/wheel") == "from the controller"
    refused = pair.run("exec", "one", "touch", "/srv/shared/new")
    assert refused.returncode != 0
    assert "Read-only file system" in refused.stderr


def test_a_small_file_system_fills_up(pair: Hosts) -> None:
    full = pair.run("exec", "one", "dd", "if=/dev/zero", "of=/opt/small/big", "bs=1M", "count=9")
    assert full.returncode != 0
    assert "No space left on device" in full.stderr
    assert pair.inside("one", "stat -c %s /opt/small/big; rm /opt/small/big") == str(8 * 2**20)


@pytest.mark.parametrize("command", ["reboot", "crash"])
def test_a_new_boot_keeps_the_disk_and_the_journal(pair: Hosts, command: str) -> None:
    before = pair.boot("two")
    machine = pair.inside(
        "two", f"echo kept >/var/lib/{command}; logger --journald <<'END'\nMESSAGE=before {command}\nEND\ncat /etc/machine-id"
    )
    pair.inside("two", "journalctl --sync")
    pair(command, "two")
    assert pair.boot("two") != before
    assert pair.inside("two", f"cat /var/lib/{command} /etc/machine-id") == f"kept\n{machine}"
    assert f"before {command}" in pair.inside("two", "journalctl -b -1 -o cat")
    assert pair.inside("two", "systemctl is-system-running") == "running"


def test_nothing_is_left_after_down_and_a_second_down_is_harmless(empty: Hosts) -> None:
    assert empty("up", "one", "two") == "created one two"
    kinds = {line.split()[0] for line in empty.run("leftovers").stdout.splitlines()}
    assert kinds == {"mount", "interface", "network", "cgroup", "process", "directory"}
    assert empty.run("leftovers").returncode == 1
    assert empty("remove", "one", "never-made") == "removed one"
    assert empty("down") == "removed two"
    assert empty("leftovers") == ""
    assert empty("down") == ""


def _runs(pid: int) -> bool:
    """Whether the process does anything: one that ended may stay listed until its parent asks for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_ensure_replaces_a_host_whose_supervisor_was_killed(empty: Hosts) -> None:
    assert empty("ensure", "one", "two") == "created one two"
    old, untouched = empty.leader("one"), empty.boot("two")
    supervisor = int((empty.state / "hosts" / "one" / "pid").read_text(encoding="ascii"))
    os.kill(supervisor, signal.SIGKILL)
    assert _runs(old), "the orphan must still run, or this test shows nothing"
    assert empty("ensure", "one", "two") == "created one"
    assert not _runs(old)
    assert empty.inside("one", "systemctl is-system-running") == "running"
    assert empty.boot("two") == untouched
    assert empty("ensure", "one", "two") == ""


def test_up_takes_over_what_a_killed_run_only_began(empty: Hosts) -> None:
    empty("up", "one")
    (empty.state / "hosts" / "two" / "upper").mkdir(parents=True)
    subprocess.run(["ip", "netns", "add", f"{empty.prefix}-two"], check=True)
    assert empty("up", "two") == "created two"
    assert empty("down") == "removed one two"
    assert empty("leftovers") == ""


def test_runs_at_the_same_time_make_each_host_once(empty: Hosts) -> None:
    command = [str(HERE / "hosts"), "ensure", "one", "two"]
    runs = [subprocess.Popen(command, env=empty.environment, stdout=subprocess.PIPE, text=True) for _run in range(3)]
    said = sorted(run.communicate()[0].strip() for run in runs)
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert said == ["", "", "created one two"]


def test_a_low_limit_of_open_files_is_no_obstacle(empty: Hosts) -> None:
    empty("up", "one", before=("prlimit", "--nofile=32:"))
    assert empty.inside("one", "systemctl is-system-running") == "running"


PLATFORMS = ("up", "--platforms", "-")


@pytest.mark.parametrize(
    ("words", "stdin", "told"),
    [
        (("up",), "", "no host named: give NAME... or --platforms FILE"),
        (("up", "Capital"), "", "host name 'Capital': use up to 40 of a-z"),
        (("up", "one", "one"), "", "a host is named twice: one, one"),
        (("up", "one", "--bind-ro", "/nowhere:/x"), "", "bind '/nowhere:/x': use SRC:DST, both absolute, where SRC exists"),
        (("up", "one", "--bind-ro", "/etc"), "", "bind '/etc': use SRC:DST"),
        (("up", "one", "--tmpfs", "/x:8"), "", "tmpfs '/x:8': use DST:SIZE, such as /opt/small:64M"),
        (PLATFORMS, "name: one", "--platforms -: not JSON"),
        (PLATFORMS, '{"name": "one"}', "--platforms -: expected a list of mappings, found dict"),
        (PLATFORMS, '[{"release": "trixie"}]', "no name; keys are name, release, groups, binds, tmpfs"),
        (PLATFORMS, '[{"name": "one", "image": "x"}]', "platform one: unknown keys image; keys are name"),
        (PLATFORMS, '[{"name": "one", "groups": "gpu"}]', "one: groups is 'gpu': use a list of texts"),
        (("up", "--platforms", "/nowhere.json"), "", "/nowhere.json"),
        (("exec", "one", "true"), "", "no host one; there are: none. Make it with 'hosts ensure'"),
        (("reboot", "one"), "", "no host one; there are: none"),
        (("crash", "one"), "", "no host one; there are: none"),
    ],
)
def test_a_mistake_is_told_in_one_line(empty: Hosts, words: tuple[str, ...], stdin: str, told: str) -> None:
    done = empty.run(*words, stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("hosts: ")
    assert told in done.stderr
    assert empty("leftovers") == ""


def test_up_and_ensure_refuse_a_running_host_that_differs(empty: Hosts) -> None:
    empty("up", "one", "--group", "gpu")
    for words, told in (
        (("up", "one", "--group", "gpu"), "one runs already: use 'hosts ensure', or 'hosts down' first"),
        (("ensure", "one"), "groups=('gpu',)"),
    ):
        done = empty.run(*words)
        assert done.returncode == 1
        assert told in done.stderr


def test_a_missing_tool_is_named_with_its_package(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-P", "-m", "throwaway", "ls"],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "mmdebstrap" in done.stderr
    assert "apt-get install --no-install-recommends apt iproute2" in done.stderr
