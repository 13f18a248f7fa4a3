# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From nothing: one start, at the fraction that SGLang's own sizing code gives for this card."""

from __future__ import annotations

UNIT = "sglang-k26-ddtree"


def test_one_start_reaches_the_target(service):
    service.is_proved(200099)
    assert service.receipt()["mem_fraction_static"] == 0.9259
    assert service.starts() == 1


def test_what_is_there_belongs_to_whom_it_should(host):
    owners = {
        f"/etc/sglang/{UNIT}.env": ("root", 0o600),
        f"/etc/systemd/system/{UNIT}.service": ("root", 0o644),
        f"/var/lib/sglang/{UNIT}/accepted.json": ("root", 0o600),
        "/opt/sglang": ("root", 0o755),
    }
    assert {path: (host.file(path).user, host.file(path).mode) for path in owners} == owners
    assert host.user("sglang").shell == "/usr/sbin/nologin"


def test_systemd_has_nothing_to_say_against_the_unit(host):
    done = host.run(f"systemd-analyze verify /etc/systemd/system/{UNIT}.service")
    assert (done.rc, done.stderr) == (0, "")


def test_the_process_has_given_up_what_it_does_not_need(host):
    pid = host.check_output(f"systemctl show -P MainPID {UNIT}.service")
    status = dict(line.split(":\t", 1) for line in host.check_output(f"cat /proc/{pid}/status").splitlines() if ":\t" in line)
    assert (int(status["CapBnd"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")
    assert status["Uid"].split()[0] == str(host.user("sglang").uid)


def test_the_server_listens_on_loopback_only(host):
    assert host.socket("tcp://127.0.0.1:30000").is_listening
    assert not host.socket("tcp://0.0.0.0:30000").is_listening
