# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the role made is gone; what it did not make is there."""

from __future__ import annotations


def test_nothing_of_the_role_is_left(host):
    found = host.check_output(
        "find /etc/systemd /etc/sglang /opt /var/lib/sglang /var/cache/sglang -iname '*sglang*' 2>/dev/null | grep -v by-hand || true"
    )
    assert found == ""
    assert not host.user("sglang").exists
    assert not host.group("sglang").exists
    assert host.check_output("systemctl list-units --all --plain --no-legend 'sglang*' 'inferops*'") == ""


def test_what_the_role_did_not_make_is_there(host):
    assert host.file("/etc/systemd/system/by-hand.service").exists
    assert host.file("/srv/models/Kimi-K2.6/config.json").exists
