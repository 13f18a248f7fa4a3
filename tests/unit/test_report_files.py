# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report on disk: whole or not at all, the link to the newest, JSON and JUnit as CI systems read them."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.plugin_utils import _report_files
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import normalised
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_files import ReportError, write_report
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_junit import junit
from ansible_collections.inferops.sglang.tests.unit import report_cases as cases
from ansible_collections.inferops.sglang.tests.unit.test_report_page import hostile

ID = "deploy-20261130T070102Z"
FILES = ["junit.xml", "report.html", "report.json"]


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_three_files_and_a_link_to_the_newest(tmp_path: Path) -> None:
    directory = tmp_path / "reports"
    paths = write_report(str(directory), cases.canary_short())
    folder = directory / ID
    assert paths == {
        "directory": str(folder), "html": f"{folder}/report.html", "json": f"{folder}/report.json", "junit": f"{folder}/junit.xml",
        "latest": f"{directory}/latest",
    }  # fmt: skip
    assert names(folder) == FILES
    assert names(directory) == [ID, "latest"]
    assert os.readlink(directory / "latest") == ID
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in FILES} == {0o644}


def test_a_later_batch_writes_the_same_report_anew_and_leaves_the_evidence(tmp_path: Path) -> None:
    folder = tmp_path / ID
    (folder / "evidence").mkdir(parents=True, mode=0o700)
    write_report(str(tmp_path), {**cases.canary_short(), "finished": False})
    assert json.loads((folder / "report.json").read_text())["state"] == "under way"
    write_report(str(tmp_path), json.loads((folder / "report.json").read_text()) | {"finished": True})
    assert json.loads((folder / "report.json").read_text())["state"] == "refused"
    assert names(folder) == ["evidence", *FILES]
    assert stat.S_IMODE((folder / "evidence").stat().st_mode) == 0o700


def test_the_link_goes_from_the_former_report_to_the_new_one(tmp_path: Path) -> None:
    write_report(str(tmp_path), cases.canary_short())
    write_report(str(tmp_path), cases.audit_outlier())
    assert os.readlink(tmp_path / "latest") == "audit-20261130T070102Z"
    assert names(tmp_path) == ["audit-20261130T070102Z", ID, "latest"]


def test_equal_reports_are_equal_files(tmp_path: Path) -> None:
    texts = []
    for directory in (tmp_path / "one", tmp_path / "two"):
        write_report(str(directory), cases.oom_at_capture())
        texts.append([(directory / ID / name).read_bytes() for name in FILES])
    assert texts[0] == texts[1]


def test_a_disk_that_is_full_leaves_the_former_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(str(tmp_path), cases.canary_short())
    before = (tmp_path / ID / "report.html").read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_report_files.os, "fsync", full)
    with pytest.raises(ReportError, match="No space left on device"):
        write_report(str(tmp_path), cases.all_accepted())
    assert (tmp_path / ID / "report.html").read_bytes() == before
    assert names(tmp_path / ID) == FILES


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError) as told:
        write_report(str(tmp_path / "file"), cases.canary_short())
    said = str(told.value)
    assert f"asked for a report in {tmp_path}/file/{ID}" in said
    assert "Not a directory" in said
    assert "sglang_report_dir" in said


def test_a_directory_in_the_place_of_the_link_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "mine").write_text("")
    with pytest.raises(ReportError, match="latest"):
        write_report(str(tmp_path), cases.canary_short())
    assert names(tmp_path) == [ID, "latest"]
    assert names(tmp_path / "latest") == ["mine"]


@pytest.mark.parametrize("identity", ["", "..", "../up", "a/b", ".hidden", "latest", "a b", "x" * 200, None, "a\n"])
def test_an_id_that_is_no_name_of_a_folder_is_refused(tmp_path: Path, identity: Any) -> None:
    with pytest.raises(ReportError, match="asked for an id"):
        write_report(str(tmp_path), {**cases.canary_short(), "id": identity})
    assert names(tmp_path) == []


def test_a_hostile_report_is_whole_in_every_form(tmp_path: Path) -> None:
    write_report(str(tmp_path), hostile())
    folder = tmp_path / ID
    json.loads((folder / "report.json").read_text(encoding="utf-8"))
    ET.parse(folder / "junit.xml")
    (folder / "report.html").read_text(encoding="utf-8")


# --- JUnit ------------------------------------------------------------------------------------------------------------


def xml(report: dict[str, Any]) -> ET.Element:
    return ET.fromstring(junit(normalised(report)))


def case(root: ET.Element, name: str) -> ET.Element:
    return next(entry for entry in root.iter("testcase") if entry.get("name") == name)


@pytest.mark.parametrize("name", cases.SITUATIONS)
def test_the_xml_is_of_the_form_that_ci_systems_read(name: str) -> None:
    root = xml(cases.SITUATIONS[name]())
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        tests = suite.findall("testcase")
        assert len(tests) == len(suite) == int(suite.attrib["tests"])
        assert len({test.attrib["name"] for test in tests}) == len(tests)
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[key]) == len(suite.findall(f"testcase/{tag}"))
        for test in tests:
            assert set(test.attrib) == {"name", "classname", "time"}
            # one result at the most, and the output after it
            assert [child.tag for child in test] in ([], ["system-out"], *([tag, *rest] for tag in ("failure", "error", "skipped")
                                                                           for rest in ([], ["system-out"])))  # fmt: skip
    for key in ("tests", "failures", "errors", "skipped"):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in root)


def test_a_refused_host_is_a_failure_with_its_first_finding_and_its_table() -> None:
    root = xml(cases.canary_short())
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("batch 1", "1"), ("not reached", "3")]
    refused = case(root, "gpu01.example.net")
    failure = refused.find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("pool", "ranks TP0-TP7: 192,406 of 200,000 tokens, 7,594 short")
    assert "The last accepted service runs again" in (failure.text or "")
    assert "REFUSED, 200,000 tokens asked of every rank" in (refused.findtext("system-out") or "")
    assert refused.get("time") == "1240.000"
    skipped = case(root, "gpu02.example.net").find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not reached in this run"


def test_an_unreachable_host_is_an_error() -> None:
    error = case(xml(cases.unreachable()), "gpu03.example.net").find("error")
    assert error is not None
    assert (error.get("type"), "No route to host" in (error.get("message") or "")) == ("unreachable", True)


def test_an_accepted_host_passes_and_shows_its_table() -> None:
    passed = case(xml(cases.all_accepted()), "gpu04.example.net")
    assert [child.tag for child in passed] == ["system-out"]
    assert "ACCEPTED" in (passed.findtext("system-out") or "")


def test_an_audit_has_a_suite_for_each_class() -> None:
    root = xml(cases.audit_outlier())
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("8 x RTX PRO 6000 96 GB, SGLang 0.5.12.post1", "10", "1"), ("8 x H200 141 GB, SGLang 0.5.23", "2", "0"),
    ]  # fmt: skip


def test_a_rollout_that_was_stopped_is_red_though_no_host_failed() -> None:
    fine = {**cases.all_accepted(), "stopped_because": "sglang_gate_passed was given from outside"}
    root = xml(fine)
    assert (root.get("failures"), root[-1].get("name")) == ("1", "deploy")
    failure = root[-1].find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "Stopped: sglang_gate_passed was given from outside"


def test_no_character_that_xml_forbids() -> None:
    text = junit(normalised(hostile()))
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]", text)
    ET.fromstring(text)
