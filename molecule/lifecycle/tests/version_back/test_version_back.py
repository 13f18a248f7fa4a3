# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Back to the release before, whose environment was broken: it was built anew, and proved."""

from __future__ import annotations


def test_the_release_before_runs_again(host, service):
    service.is_proved(200099)
    assert service.receipt()["sglang_version"] == "0.5.12.post1"
    python = f"{service.receipt()['release']}/bin/python"
    version = host.check_output(f"{python} -c 'from importlib.metadata import version; print(version(\"sglang\"))'")
    assert version == "0.5.12.post1+standin"


def test_what_was_broken_is_gone(host):
    assert len(host.check_output("ls -A /opt/sglang | grep 0.5.12.post1").splitlines()) == 1
