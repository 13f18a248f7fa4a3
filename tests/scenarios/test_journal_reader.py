# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader on a host's own running journal: namespaces, dropped lines, rotation and loss while it waits, and who may read.

The stand-in engine runs as transient units; the rooms of the collection run on the host as allocation_info runs them, but in one
process, so that a wait is one reader with one cursor from its beginning to its end.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import ROOT, Host, environment

DRIVER = r'''
import json, subprocess, sys
from ansible_collections.inferops.sglang.plugins.module_utils import _boot_watch as watching
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError, JournalReader, Source
from ansible_collections.inferops.sglang.plugins.module_utils._service import read_service
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr

def read(path):
    with open(path, "rb") as file:
        return file.read()

unit, goal, timeout = sys.argv[1], sys.argv[2], float(sys.argv[3])
watch = watching.UnitWatch(unit, JournalReader(Source()), lambda: read_service(unit, run, read), lambda _pid: None, Parallelism())
try:
    seen = watching.observe(watch, watching.Terms(goal, timeout), Clock())
    print(json.dumps({"allocation": seen.look.allocation.as_dict(), "problem": seen.problem, "polls": seen.polls}))
except JournalError as error:
    print(json.dumps({"error": str(error)}))
'''
SERVER = "/usr/bin/python3 -m sglang.launch_server --model-path /srv/models/qwen3-32b --tp-size 2"
NUMBERS = iter(range(30100, 30999))


class Box:
    """The host, with the stand-in engine as units and the reader beside them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.shell = host.shell

    def start(self, name: str, *properties: str, step: float = 0.02, port: int = 0) -> str:
        """A server of two ranks as a transient unit; seconds of one step of its start."""
        unit = f"reader-{name}.service"
        options = " ".join(f"-p {value}" for value in properties)
        self.shell(
            f"systemd-run --quiet --unit {unit} {options} -E PYTHONPATH=/srv/standin -E STANDIN_STEP_SECONDS={step} "
            f"{SERVER} --port {port or next(NUMBERS)}"
        )
        return unit

    def command(self, unit: str, goal: str, timeout: float, prefix: str = "") -> str:
        return f"{prefix} env PYTHONPATH=/srv/collections python3 /srv/driver.py {unit} {goal} {timeout}"

    def look(self, unit: str, goal: str = "none", timeout: float = 30, prefix: str = "") -> dict[str, Any]:
        return json.loads(self.shell(self.command(unit, goal, timeout, prefix)))


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    work = tmp_path_factory.mktemp("reader")
    (work / "qwen3-32b").mkdir()
    (work / "qwen3-32b/config.json").write_bytes((ROOT / "tests/unit/fixtures/configs/qwen3-32b.json").read_bytes())
    variables = environment("infopj", "10.79.12")
    hosts = ROOT / "tests/hosts/hosts"
    subprocess.run([hosts, "down"], env=variables, check=True)
    target = "/srv/collections/ansible_collections/inferops/sglang/plugins/module_utils"
    binds = {ROOT / "plugins/module_utils": target, ROOT / "tests/engine/standin": "/srv/standin", work: "/srv/models"}
    options = [word for source, place in binds.items() for word in ("--bind-ro", f"{source}:{place}")]
    try:
        subprocess.run([hosts, "up", "reader", "--release", request.param, *options], env=variables, check=True)
        host = Host("reader", work / "inventory.yml", variables)
        host.shell(f"cat > /srv/driver.py <<'END'\n{DRIVER}\nEND")
        yield Box(host)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


LOST = "the journal has lost the line that was read last"
BEGINS = "the journal begins"


def test_a_unit_with_a_journal_namespace_is_read(box: Box) -> None:
    """What the server says is in the namespace, what the manager says about it in the default journal."""
    unit = box.start("namespace", "LogNamespace=gpu")
    seen = box.look(unit, "ready")
    assert (seen["problem"], seen["allocation"]["complete"], seen["allocation"]["notes"]) == (None, True, [])
    assert "server_args" not in box.shell(f"journalctl -o cat -u {unit}")
    box.shell(f"systemctl kill --signal=KILL {unit}")
    box.host.wait_for(f"journalctl -o cat -u {unit} | grep 'Main process exited'")
    allocation = box.look(unit)["allocation"]
    assert (allocation["complete"], allocation["ready"]) == (True, False)
    assert "status=9/KILL" in allocation["failure"]["message"]


def test_a_unit_with_a_journal_namespace_is_read_after_it_was_stopped(box: Box) -> None:
    text = f"[Service]\nExecStart={SERVER} --port {next(NUMBERS)}\nLogNamespace=gpu\nEnvironment=PYTHONPATH=/srv/standin"
    unit = "kept.service"
    box.shell(f"printf '{text}\n' > /etc/systemd/system/{unit}; systemctl daemon-reload; systemctl start {unit}")
    assert box.look(unit, "ready")["problem"] is None
    box.shell(f"systemctl stop {unit}")
    allocation = box.look(unit)["allocation"]
    assert (allocation["was_ready"], allocation["ready"], allocation["stopped"]) == (True, False, True)
    assert (allocation["complete"], allocation["failure"]) == (True, None)


def test_lines_that_the_log_daemon_dropped_are_unknown_and_not_absent(box: Box) -> None:
    """journald tells of dropped lines only when the next one comes, so a request is made once the server has said all."""
    port = next(NUMBERS)
    unit = box.start("limited", "LogRateLimitBurst=2", "LogRateLimitIntervalSec=3", port=port)
    get = f"python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/v1/models')\""
    box.host.wait_for(f"{get} 2>/dev/null && echo up")
    time.sleep(3)
    box.shell(get)
    box.host.wait_for(f"journalctl -o cat --since -1min | grep 'Suppressed .* messages from {unit}'")
    allocation = box.look(unit)["allocation"]
    assert (allocation["ready"], allocation["complete"], allocation["failure"]) == (False, False, None)
    (note,) = [note for note in allocation["notes"] if "the log daemon dropped" in note]
    dropped = sum(map(int, box.shell(f"journalctl -o cat | sed -n 's/Suppressed \\([0-9]*\\) messages from {unit}/\\1/p'").split()))
    assert f"dropped {dropped} messages" in note


def test_a_wait_goes_on_over_rotation_and_loss(box: Box) -> None:
    """One reader sees all lines of a start although the journal is rotated, and later emptied, while it waits."""
    unit = box.start("rotated", step=0.8)
    argv = [ROOT / "tests/hosts/hosts", "exec", box.host.name, "sh", "-c", box.command(unit, "ready", 60)]
    with subprocess.Popen(argv, env=box.host.environment, stdout=subprocess.PIPE) as waiting:
        box.host.wait_for(f"journalctl -o cat -u {unit} | grep 'Load weight begin'")
        time.sleep(1.2)  # a look has read it
        box.shell("journalctl --rotate")
        box.host.wait_for(f"journalctl -o cat -u {unit} | grep 'Memory pool end'")
        time.sleep(1.2)
        box.shell("journalctl --rotate --vacuum-size=1")
        assert waiting.stdout is not None
        seen = json.loads(waiting.stdout.read())
    assert (seen["problem"], seen["allocation"]["ready"], seen["allocation"]["complete"]) == (None, True, True)
    assert [note.partition(" (")[0] for note in seen["allocation"]["notes"] if note.startswith("the journal")] == [LOST]
    later = box.look(unit)["allocation"]
    assert (later["complete"], later["failure"]) == (False, None)
    assert [note for note in later["notes"] if note.startswith(BEGINS)]


def test_a_server_whose_journal_was_wiped_is_not_called_failed(box: Box) -> None:
    unit = box.start("wiped")
    assert box.look(unit, "ready")["problem"] is None
    time.sleep(2)
    box.shell("rm -rf /var/log/journal/* /run/log/journal/*; systemctl restart systemd-journald")
    allocation = box.look(unit)["allocation"]
    assert (allocation["ready"], allocation["complete"], allocation["failure"]) == (False, False, None)
    assert [note for note in allocation["notes"] if note.startswith(BEGINS)]


def test_who_may_not_read_the_journal_is_told_so(box: Box) -> None:
    unit = box.start("private")
    assert box.look(unit, "ready")["problem"] is None
    box.shell("useradd plain; useradd --groups systemd-journal reader")
    error = box.look(unit, prefix="runuser -u plain --")["error"]
    assert error.startswith("asked the journal")
    assert error.endswith("; run as root or as a member of the group systemd-journal")
    allocation = box.look(unit, prefix="runuser -u reader --")["allocation"]
    assert (allocation["ready"], allocation["complete"], allocation["notes"]) == (True, True, [])
