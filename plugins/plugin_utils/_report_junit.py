# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as JUnit XML, for CI systems. Private to this collection: may change at any time.

One suite for each batch of a rollout or class of an audit, one case for each host. A refused host is a failure, an unreachable one an
error, one that was not reached or not judged is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from ansible_collections.inferops.sglang.plugins.plugin_utils._report import FINE, against
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_text import first_line, moment, number, shown

MOST_OUTPUT = 20000  # characters of a case's output

# state of a host: element of its case, and what stands in it if nothing else is known
_ELEMENTS = {
    "refused": ("failure", "refused"),
    "unreachable": ("error", "unreachable"),
    "not judged": ("skipped", "not judged in this run"),
    "under way": ("skipped", "under way"),
    "waiting": ("skipped", "not reached in this run"),
}
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(report: Mapping[str, Any]) -> str:
    """The XML of a normalised report."""
    suites = [_suite(report, name, hosts) for name, hosts in suites_of(report)]
    if report["state"] in ("refused", "stopped") and not any(_count(suite, "failure") + _count(suite, "error") for suite in suites):
        suites.append(_stopped(report))
    whole = ET.Element("testsuites", {"name": first_line(report["title"]), **_totals(suites), "time": _seconds(report, "updated_at")})
    whole.extend(suites)
    ET.indent(whole)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(whole, encoding="unicode") + "\n"


def suites_of(report: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """The hosts by batch, or by class where there are no batches, each with a name; hosts of neither come last."""
    if report["batches"]:
        groups = [(f"batch {index}", batch) for index, batch in enumerate(report["batches"], 1)]
        rest = "not reached"
    else:
        groups = [(first_line(entry["title"] or entry["key"]), entry["hosts"]) for entry in report["classes"]]
        rest = "no class" if groups else "hosts"
    by_name = {host["host"]: host for host in report["hosts"]}
    suites = []
    for name, names in groups:
        found = [by_name.pop(host) for host in names if host in by_name]
        suites += [(name, found)] if found else []
    return suites + ([(rest, list(by_name.values()))] if by_name else [])


def _suite(report: Mapping[str, Any], name: str, hosts: Sequence[Mapping[str, Any]]) -> ET.Element:
    cases = [_case(report, name, host) for host in hosts]
    suite = ET.Element("testsuite", {"name": name})
    suite.extend(cases)
    counts = {key: str(_count(suite, element)) for key, element in _COUNTED.items()}
    took = sum(float(case.get("time", "0")) for case in cases)
    suite.attrib.update({"tests": str(len(cases)), **counts, "time": f"{took:.3f}", **_timestamp(report)})
    return suite


def _case(report: Mapping[str, Any], suite: str, host: Mapping[str, Any]) -> ET.Element:
    place = f"sglang.{report['kind']}.{suite.replace('.', '_')}"
    case = ET.Element("testcase", {"name": first_line(host["host"]), "classname": place, "time": _seconds(host, "ended_at")})
    if host["state"] not in FINE:
        element, usual = _ELEMENTS[host["state"]]
        reasons = [reason.text for reason in against(host)] or [usual]
        told = ET.SubElement(case, element, {"message": first_line(reasons[0])})
        if element != "skipped":
            told.set("type", next((reason.check for reason in against(host) if reason.check), host["state"]))
            told.text = shown("\n".join(_told(host)), MOST_OUTPUT)
    output = shown("\n".join(_output(host)), MOST_OUTPUT)
    if output:
        ET.SubElement(case, "system-out").text = output
    return case


def _told(host: Mapping[str, Any]) -> Iterator[str]:
    for reason in against(host):
        yield reason.text
        if reason.do:
            yield f"  do: {reason.do}"
    yield from (text for text in (host["rolled_back"],) if text)


def _output(host: Mapping[str, Any]) -> Iterator[str]:
    """The table for people, what was done, and where the evidence lies."""
    table = host["verdict"].get("table")
    yield from (line for line in table if isinstance(line, str)) if isinstance(table, list) else ()
    for name in ("change", "evidence"):
        if host[name]:
            yield f"{name}: {host[name]}"


def _stopped(report: Mapping[str, Any]) -> ET.Element:
    """A rollout that did not come to its end is no success, though no single host failed."""
    suite = ET.Element("testsuite", {"name": report["kind"], "tests": "1", "failures": "1", "errors": "0", "skipped": "0", "time": "0.000"})
    suite.attrib.update(_timestamp(report))
    case = ET.SubElement(suite, "testcase", {"name": report["kind"], "classname": f"sglang.{report['kind']}", "time": "0.000"})
    ET.SubElement(case, "failure", {"message": first_line(report["headline"]), "type": report["state"]}).text = shown(report["next_step"])
    return suite


def _totals(suites: Sequence[ET.Element]) -> dict[str, str]:
    return {key: str(sum(int(suite.get(key, "0")) for suite in suites)) for key in ("tests", *_COUNTED)}


def _count(suite: ET.Element, element: str) -> int:
    return len(suite.findall(f"testcase/{element}"))


def _timestamp(report: Mapping[str, Any]) -> dict[str, str]:
    """As the schema of JUnit wants it, in UTC and without a zone."""
    at = moment(report["started_at"])
    return {"timestamp": at[:19].replace(" ", "T")} if at else {}


def _seconds(entry: Mapping[str, Any], end: str) -> str:
    began, ended = number(entry.get("started_at")), number(entry.get(end))
    return f"{max(ended - began, 0.0) if began is not None and ended is not None else 0.0:.3f}"
