# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit written by hand was taken over, beside an instance that runs on other cards."""

from __future__ import annotations


def test_both_are_proved_on_cards_of_their_own(host, service, second):
    for one, port, cards in ((service, 30000, "0,1,2,3,4,5,6,7"), (second, 30001, "8,9,10,11,12,13,14,15")):
        one.is_proved(200099)
        assert host.socket(f"tcp://127.0.0.1:{port}").is_listening
        pid = host.check_output(f"systemctl show -P MainPID {one.name}.service")
        assert f"CUDA_VISIBLE_DEVICES={cards}" in host.check_output(f"tr '\\0' '\\n' </proc/{pid}/environ").splitlines()


def test_the_unit_written_by_hand_gave_its_place_up_and_its_file_stays(host, second):
    properties = host.service("by-hand.service").systemd_properties
    # its owner wrote no KillMode=mixed, so systemd calls what was stopped failed
    assert (properties["ActiveState"], properties["UnitFileState"], properties["MainPID"]) == ("failed", "disabled", "0")
    # its start was observed, so the first of the new ones reached the target
    assert second.receipt()["prediction_basis"] == "observed"
    assert second.starts() == 1
