# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout from nothing leaves, and a second one that finds nothing to do."""

from __future__ import annotations

# two kinds of hosts: an environment of another Python is another one, and may take other memory
STARTS = {"fleet-1": 2, "fleet-2": 2, "fleet-3": 1, "fleet-4": 1}


def test_the_service_is_proved(service):
    service.is_proved()


def test_the_first_host_of_each_kind_was_started_twice_and_the_others_once(service, name):
    assert service.starts() == STARTS[name]


def test_the_plan_was_learnt(service):
    assert service.receipt()["prediction_basis"] == "observed"
    assert service.receipt()["prediction_error_tokens"] == 0


def test_the_report_is_of_the_run_that_changed_nothing(report, name):
    assert (report["state"], report["finished"]) == ("accepted", True)
    assert {host["host"]: host["state"] for host in report["hosts"]}[name] == "unchanged"
