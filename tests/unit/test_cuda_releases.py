# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._cuda_releases import (
    DRIVERS,
    PINS,
    driver_finding,
    driver_note,
    pin_of,
    required_python,
)

RUNS = [
    ("0.5.23", "580.65.06"),
    ("0.5.23", "590.44"),
    ("0.5.10.post1", "525.60.13"),
    ("0.5.9", "550.54.14"),
    ("0.4.6.post5", "535.183.01"),
    # nothing is known of the one or of the other
    ("0.4.5", "470.82.01"),
    ("main", "470.82.01"),
    ("0.5.23", ""),
    ("0.5.23", "[N/A]"),
]


@pytest.mark.parametrize(("version", "driver"), RUNS)
def test_a_driver_that_runs_the_release_is_no_finding(version: str, driver: str) -> None:
    assert driver_finding(version, driver) is None


REFUSED = [
    (
        "0.5.23",
        "570.133.20",
        "driver: asked for SGLang 0.5.23 with torch 2.14.1 for CUDA 13.0, which needs driver 580.65.06 or newer, found driver 570.133.20; "
        "install a driver of at least 580.65.06, or a build of SGLang and torch for an older CUDA (sglang_extra_index_url, sglang_wheel)",
    ),
    (
        "0.5.9",
        "470.82.01",
        "driver: asked for SGLang 0.5.9 with torch 2.9.1 for CUDA 12.8, which needs driver 525.60.13 or newer, 570.26 for all it can, "
        "found driver 470.82.01; install a driver of at least 525.60.13, or a build of SGLang and torch for an older CUDA "
        "(sglang_extra_index_url, sglang_wheel)",
    ),
]


@pytest.mark.parametrize(("version", "driver", "text"), REFUSED)
def test_an_older_driver_is_refused_with_both_versions(version: str, driver: str, text: str) -> None:
    finding = driver_finding(version, driver)
    assert finding is not None
    assert finding.text == text


def test_a_driver_of_the_same_major_version_is_worth_a_note() -> None:
    assert driver_note("0.5.9", "550.54.14") == (
        "driver 550.54.14 is older than 570.26, which came with CUDA 12.8 (torch 2.9.1 of SGLang 0.5.9): programs run, "
        "but kernels that are compiled at run time may be refused as an unsupported PTX version"
    )


@pytest.mark.parametrize(("version", "driver"), [("0.5.9", "570.26"), ("0.5.9", "470.82.01"), ("0.5.23", "580.65.06"), ("main", "550")])
def test_there_is_no_note_where_all_is_well_or_refused(version: str, driver: str) -> None:
    assert driver_note(version, driver) == ""


PYTHONS = [
    ("0.4.6.post5", (3, 8)),
    ("0.5.1.post3", (3, 10)),
    ("0.5.21", (3, 10)),
    ("0.5.22", (3, 11)),
    ("0.5.23+cpu", (3, 11)),
    ("0.7.0", (3, 11)),
    ("0.4.1", (3, 8)),
    ("main", (3, 11)),
]


@pytest.mark.parametrize(("version", "least"), PYTHONS)
def test_the_least_python_of_a_release(version: str, least: tuple[int, int]) -> None:
    assert required_python(version) == least


def test_a_newer_release_has_the_pins_of_the_newest_known() -> None:
    assert pin_of("0.6.0") == ("0.5.22", "2.14.1", "13.0")
    assert pin_of("0.5.20.post1") == ("0.5.18", "2.13.0", "13.0")


def test_every_pin_has_its_drivers() -> None:
    assert [pin.since for pin in PINS if pin.cuda not in DRIVERS] == []


def test_no_version_is_an_error() -> None:
    with pytest.raises(InputError, match="give the version as the package names it"):
        required_python("")
