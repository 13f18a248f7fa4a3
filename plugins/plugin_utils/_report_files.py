# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a report: a page, JSON and JUnit, each whole or not at all. Private to this collection: may change at any time."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._made import write_whole
from ansible_collections.inferops.sglang.plugins.plugin_utils._report import normalised
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_html import page
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_junit import junit

LATEST = "latest"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class ReportError(Exception):
    """The report could not be written; the text says what was asked, what was found and what to do."""


def write_report(directory: str, report: Mapping[str, Any]) -> dict[str, str]:
    """Writes C(report.html), C(report.json) and C(junit.xml) into the folder of the report's id, and leads C(latest) there.

    Each file is replaced in one step, so whoever reads meanwhile reads the last whole one. What else is in the folder stays. Returns the
    paths: C(directory), C(html), C(json), C(junit), C(latest). Raises ReportError; the run it tells of need not end for that.
    """
    form = normalised(report)
    if not _ID.fullmatch(form["id"]) or form["id"] == LATEST:
        raise ReportError(
            _said(
                "an id for the folder of the report",
                repr(form["id"][:80]),
                "give one of letters, digits, dots and dashes, as deploy-20261130T070102Z",
            )
        )
    folder = os.path.join(os.path.abspath(directory), form["id"])
    texts = {
        "html": ("report.html", page(form, folder)),
        "json": ("report.json", json.dumps(form, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"),
        "junit": ("junit.xml", junit(form)),
    }
    paths = {"directory": folder, **{name: os.path.join(folder, file) for name, (file, _text) in texts.items()}}
    try:
        _make(folder)
        for name, (_file, text) in texts.items():
            write_whole(paths[name], text, 0o644)
        return {**paths, "latest": _lead(os.path.dirname(folder), form["id"])}
    except OSError as error:
        raise ReportError(
            _said(
                f"a report in {folder}",
                f"{error.strerror or error} ({error.filename or folder})",
                "make the directory writable, or give another as sglang_report_dir (empty writes no report)",
            )
        ) from error


def _make(folder: str) -> None:
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)


def _lead(directory: str, name: str) -> str:
    """Leads the link to this report in one step."""
    link = os.path.join(directory, LATEST)
    draft = os.path.join(tempfile.mkdtemp(prefix=f".{LATEST}.", dir=directory), LATEST)
    try:
        os.symlink(name, draft)
        os.replace(draft, link)
    finally:
        if os.path.lexists(draft):
            os.unlink(draft)
        os.rmdir(os.path.dirname(draft))
    return link


def _said(asked: str, found: str, do: str) -> str:
    return Finding("report", asked, found, do).text
