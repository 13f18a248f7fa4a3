# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one page for people. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ansible_collections.inferops.sglang.plugins.plugin_utils._report import against
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_text import shown


def page(report: Mapping[str, Any], _folder: str) -> str:
    """The page of a normalised report, as text."""
    rows = "".join(
        f"<tr><th scope=row>{_safe(host['host'])}</th><td>{_safe(host['state'])}</td>"
        f"<td>{_safe('; '.join(reason.text for reason in against(host)))}</td></tr>"
        for host in report["hosts"]
    )
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{_safe(report['title'])}</title><h1>{_safe(report['headline'])}</h1>"
        f"<p>{_safe(report['next_step'])}</p><table><tr><th>host</th><th>state</th><th>against it</th></tr>{rows}</table></html>\n"
    )


def _safe(value: Any) -> str:
    return escape(shown(value))
