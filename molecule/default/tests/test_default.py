# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rollout leaves on each host."""

from __future__ import annotations

import json

UNIT = "sglang-k26-ddtree"


def test_the_service_runs_and_was_started_once(host):
    properties = host.service(f"{UNIT}.service").systemd_properties
    assert properties["ActiveState"] == "active"
    assert properties["UnitFileState"] == "enabled"
    assert properties["NRestarts"] == "0"
    assert properties["User"] == "sglang"
    assert properties["KillMode"] == "mixed"
    assert properties["LogRateLimitIntervalUSec"] == "0"
    starts = host.check_output(f"journalctl --all -o cat -u {UNIT}.service | grep -c server_args=")
    assert starts == "1"


def test_the_server_listens_on_loopback_only(host):
    assert host.socket("tcp://127.0.0.1:30000").is_listening
    assert not host.socket("tcp://0.0.0.0:30000").is_listening


def test_the_receipt_says_what_every_rank_holds(host):
    receipt = json.loads(host.file(f"/var/lib/sglang/{UNIT}/receipt.json").content_string)
    # 0.9259 at 77,184 bytes a token on 93.7274 GiB: what SGLang's own sizing code gives
    assert receipt["mem_fraction_static"] == 0.9259
    assert receipt["tokens_per_rank"] == {f"TP{rank}": 200099 for rank in range(8)}
    assert receipt["required_tokens"] == 200000
    assert receipt["predicted_tokens"] == 200099
    assert receipt["invocation_id"] == host.check_output(f"systemctl show -P InvocationID {UNIT}.service")


def test_files_are_owned_and_closed_as_they_should_be(host):
    environment = host.file(f"/etc/sglang/{UNIT}.env")
    assert (environment.user, environment.mode) == ("root", 0o600)
    unit = host.file(f"/etc/systemd/system/{UNIT}.service")
    assert (unit.user, unit.mode) == ("root", 0o644)
    assert unit.content_string.count("--mem-fraction-static 0.9259") == 1
    assert host.file("/opt/sglang").user == "root"


def test_systemd_has_nothing_to_say_against_the_unit(host):
    done = host.run(f"systemd-analyze verify /etc/systemd/system/{UNIT}.service")
    assert (done.rc, done.stderr) == (0, "")
