# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A later rollout to hosts that serve."""

from __future__ import annotations

STARTS = {"fleet-1": 3, "fleet-2": 3, "fleet-3": 2, "fleet-4": 2}


def test_the_service_is_proved_with_the_new_flag(service):
    service.is_proved()
    assert service.receipt()["flags"]["max-running-requests"] == 16


def test_each_host_was_started_once_more(service, name):
    assert service.starts() == STARTS[name]


def test_the_report_has_every_host_in_a_batch_of_its_own(report, name):
    assert (report["state"], report["finished"]) == ("accepted", True)
    assert report["batches"] == [["fleet-1"], ["fleet-2"], ["fleet-3"], ["fleet-4"]]
    assert {host["host"]: host["state"] for host in report["hosts"]}[name] == "accepted"
