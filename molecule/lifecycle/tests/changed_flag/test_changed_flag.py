# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another flag: one restart, of the same environment."""

from __future__ import annotations


def test_it_was_restarted_once_with_the_flag(host, service):
    service.is_proved(200099)
    line = service.command_line()
    assert line[line.index("--max-running-requests") + 1] == "4"
    assert service.starts() == 2
    assert len(host.check_output("ls -d /opt/sglang/0.5.*").splitlines()) == 1
