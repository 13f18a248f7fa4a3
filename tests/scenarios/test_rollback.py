# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back as its user meets it: to an earlier release and forward again, where it fails, and what is kept of a refused start.

One host, the stand-in engine. The tests build on each other: a release is accepted once and gone back to many times.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import ROOT, Host, Run
from support.kimi import VERSION, kimi_host, kimi_service

NAME = "sglang-way"
OTHER = "0.5.11"
ROLLBACK = "inferops.sglang.rollback"
SECRET = "hf-4711-not-to-be-seen"
TOKENS = 200099


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    work = tmp_path_factory.mktemp("rollback")
    subprocess.run([sys.executable, ROOT / "tests/engine/standin/build_wheel.py", OTHER, work / "wheels"], check=True)
    with kimi_host(work, "way", "infopw", "10.79.32") as booted:
        yield booted


def service(**environment: str) -> dict[str, Any]:
    values = kimi_service(NAME, 32200, STANDIN_FAULT_FILE="/run/fault", HF_TOKEN=SECRET, **environment)
    return {**values, "sglang_gate_settle_time": 1, "sglang_gate_timeout": 40}


def back(host: Host, to: str = "", *options: str, **more: Any) -> Run:
    return host.play({**service(), "sglang_rollback_to": to, **more}, *options, playbook=ROLLBACK)


def said(run: Run) -> str:
    return " ".join(run.text.split())


def accepted(host: Host) -> str:
    """Version of the accepted service: by its receipt, by the link, and by the unit that runs."""
    receipt = host.receipt(NAME)
    assert host.shell(f"readlink /opt/sglang/current/{NAME}") == receipt["release"]
    assert host.shell(f"systemctl show -P InvocationID {NAME}.service") == receipt["invocation_id"]
    assert running(host) == receipt["release"]
    assert json.loads(host.read(f"/var/lib/sglang/{NAME}/accepted.json"))["receipt"] == receipt
    return receipt["sglang_version"]


def running(host: Host) -> str:
    """The environment that the server's process was started from."""
    program = host.shell(f"tr '\\0' '\\n' < /proc/$(systemctl show -P MainPID {NAME}.service)/cmdline | head -1")
    return program.removesuffix("/bin/python")


def test_with_nothing_accepted_the_playbook_refuses_and_touches_nothing(host: Host) -> None:
    state = host.state()
    run = back(host)
    assert run.code == 2
    assert f"asked to go back to the last accepted service of {NAME}, found none on this host" in said(run), run.text
    assert host.state() == state


def test_to_an_earlier_release_and_forward_again(host: Host) -> None:
    first = host.play({**service(), "sglang_version": OTHER})
    assert first.code == 0, first.text
    second = host.play(service())
    assert second.code == 0, second.text
    assert accepted(host) == VERSION

    state, starts = host.state(), host.starts(NAME)
    checked = back(host, OTHER, "--check", "--diff")
    assert (checked.code, f"goes back to {OTHER} (/opt/sglang/{OTHER}-" in said(checked)) == (0, True), checked.text
    assert host.state() == state

    run = back(host, OTHER)
    assert run.code == 0, run.text
    assert f"SGLang {OTHER} runs again (fraction 0.9259, 200,099 tokens) and is the accepted service now" in said(run), run.text
    assert (accepted(host), host.starts(NAME)) == (OTHER, starts + 1)
    report = json.loads((host.inventory.parent / "reports/latest/report.json").read_text(encoding="utf-8"))
    assert (report["kind"], report["state"], [entry["state"] for entry in report["hosts"]]) == ("rollback", "accepted", ["accepted"])
    assert host.shell(f"ls /var/lib/sglang/{NAME}/accepted | cut -d- -f1").split() == [VERSION]
    assert host.shell(f"stat -c '%a' /var/lib/sglang/{NAME}/accepted /var/lib/sglang/{NAME}/accepted/*").split() == ["700", "600"]

    # once more, and what was accepted last: both run already
    state = host.state()
    for to in (OTHER, ""):
        again = back(host, to)
        assert (again.code, again.changed) == (0, 0), again.text
    assert f"Kept before it, for sglang_rollback_to: {VERSION} (/opt/sglang/" in said(again), again.text
    assert host.state() == state

    forward = back(host, host.shell(f"ls -d /opt/sglang/{VERSION}-*"))
    assert (forward.code, accepted(host)) == (0, VERSION), forward.text


def test_what_is_not_kept_is_refused_with_what_is(host: Host) -> None:
    state = host.state()
    run = back(host, "0.4.6")
    assert run.code == 2
    for words in (
        "sglang_rollback_to: asked for 0.4.6, found no accepted service of that name",
        f"- {OTHER} (/opt/sglang/{OTHER}-", "no host was changed",
    ):  # fmt: skip
        assert words in said(run), run.text
    assert host.state() == state


def test_an_environment_that_is_gone_is_not_gone_back_to(host: Host) -> None:
    before = (host.receipt(NAME), host.invocation(NAME), host.read(f"/etc/systemd/system/{NAME}.service"))
    host.shell(f"mv /opt/sglang/{OTHER}-*/bin /opt/aside")
    broken = back(host, OTHER)
    host.shell(f"mv /opt/aside $(ls -d /opt/sglang/{OTHER}-*)/bin")
    assert broken.code == 2
    assert f"sglang_rollback_to: asked for {OTHER}, found it, but /opt/sglang/{OTHER}-" in said(broken), broken.text
    assert f"run the role with sglang_version {OTHER}, which makes it anew" in said(broken), broken.text
    assert (host.receipt(NAME), host.invocation(NAME), host.read(f"/etc/systemd/system/{NAME}.service")) == before


def test_a_way_back_that_fails_returns_to_what_ran_before(host: Host) -> None:
    receipt = host.receipt(NAME)
    # the fault is there for the first start alone
    host.shell("echo oom_capture > /run/fault")
    command = host.command({**service(), "sglang_rollback_to": OTHER}, playbook=ROLLBACK)
    with subprocess.Popen(command, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as play:
        host.wait_for(f"journalctl --all -o cat -u {NAME}.service | grep 'CUDA out of memory'", seconds=300)
        host.shell("rm -f /run/fault")
        text, _errors = play.communicate()
    run = Run(play.returncode, text)
    assert run.code == 2, run.text
    assert f"Went back to {OTHER}" in said(run), run.text
    assert f"What was accepted before runs again: {VERSION} (" in said(run), run.text
    assert host.receipt(NAME) == receipt
    assert (running(host), host.shell(f"readlink /opt/sglang/current/{NAME}")) == (receipt["release"], receipt["release"])
    report = json.loads((host.inventory.parent / "reports/latest/report.json").read_text(encoding="utf-8"))
    told = report["hosts"][0]
    assert (report["state"], told["state"], told["verdict"]["accepted"]) == ("refused", "refused", False)
    assert told["returned"]["min_tokens"] == TOKENS
    evidence = host.inventory.parent / "reports/latest/evidence/way/journal.log"
    assert "CUDA out of memory" in evidence.read_text(encoding="utf-8")


def test_where_both_fail_the_host_says_what_stands(host: Host) -> None:
    host.shell("echo oom_capture > /run/fault")
    run = back(host, OTHER)
    host.shell("rm -f /run/fault")
    assert run.code == 2, run.text
    assert "What was accepted before it failed too: Went back to" in said(run), run.text
    assert f"What stands now: {NAME}.service is" in said(run), run.text
    # what was accepted stays accepted: the next run puts it back
    mended = back(host)
    assert (mended.code, "The last accepted service runs again" in mended.text) == (0, True), mended.text


def test_a_refused_start_leaves_its_evidence_on_the_controller(host: Host) -> None:
    receipt = host.receipt(NAME)
    refused = host.play({**service(STANDIN_FAULT="oom_capture"), "sglang_max_running_requests": 4})
    assert refused.code == 2, refused.text
    assert "The last accepted service runs again (fraction 0.9259, 200,099 tokens)." in said(refused), refused.text
    assert host.receipt(NAME) == receipt

    folder = host.inventory.parent / "reports/latest/evidence/way"
    assert sorted(os.listdir(folder)) == sorted([
        "boot.json", "environment.txt", "gpus.txt", "journal.log", "memory.txt", "plan.json", f"{NAME}.service", "systemctl.txt",
        "verdict.json",
    ])  # fmt: skip
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert "CUDA out of memory" in texts["journal.log"]
    # the service manager's own words are there, those of no other start
    assert f"{NAME}.service" in texts["journal.log"]
    assert texts["journal.log"].count("server_args=") == 1
    assert "--max-running-requests 4" in texts[f"{NAME}.service"]
    assert "HF_TOKEN=" in texts["environment.txt"]
    assert [name for name, text in texts.items() if SECRET in text] == []
    boot = json.loads(texts["boot.json"])
    assert boot["failure"]["advice"] == "lower"
    assert json.loads(texts["verdict.json"])["accepted"] is False
    assert json.loads(texts["plan.json"])["required_tokens"] == 200000


def test_evidence_that_cannot_be_written_never_stands_in_the_way(host: Host) -> None:
    blocked = host.inventory.parent / "blocked"
    blocked.write_text("a file, not a folder", encoding="utf-8")
    refused = host.play({**service(STANDIN_FAULT="silent_death"), "sglang_report_dir": str(blocked)})
    assert refused.code == 2, refused.text
    assert "No evidence of this start is kept; asked to write" in said(refused), refused.text
    assert "The last accepted service runs again (fraction 0.9259, 200,099 tokens)." in said(refused), refused.text


def test_a_way_back_that_was_killed_is_finished_by_the_next(host: Host) -> None:
    host.shell("echo slow_load:30 > /run/fault")
    command = host.command({**service(), "sglang_rollback_to": OTHER}, playbook=ROLLBACK)
    with subprocess.Popen(command, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as play:
        host.wait_for(f"grep -q '/opt/sglang/{OTHER}-' /etc/systemd/system/{NAME}.service && "
                      f"systemctl show -P ActiveState {NAME}.service | grep activating", seconds=300)  # fmt: skip
        os.killpg(play.pid, 9)
    host.shell("rm -f /run/fault")
    # what is accepted is still the other one, so that one comes back; then the way is gone to its end
    assert host.receipt(NAME)["sglang_version"] == VERSION
    run = back(host, OTHER)
    assert (run.code, accepted(host)) == (0, OTHER), run.text
    assert host.receipt(NAME)["min_tokens"] == TOKENS
