# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another release, though its installation was killed half-way: it runs, and the one before is kept."""

from __future__ import annotations


def test_the_other_release_runs_and_the_one_before_stays(host, service):
    receipt = service.receipt()
    service.is_proved(receipt["min_tokens"])
    assert receipt["min_tokens"] >= 200000
    assert receipt["sglang_version"] == "0.5.11"
    assert [path.rsplit("-", 1)[0] for path in host.check_output("ls -d /opt/sglang/0.5.*").splitlines()] == [
        "/opt/sglang/0.5.11",
        "/opt/sglang/0.5.12.post1",
    ]


def test_nothing_is_left_of_the_killed_installation(host, service):
    assert host.file(f"{service.receipt()['release']}/.complete").exists
    assert host.check_output("systemctl list-units --all --plain --no-legend 'inferops-release-*'") == ""
