# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes on the controller what a start left on its host; see the documentation of M(inferops.sglang.boot_evidence)."""

from __future__ import annotations

import os
from typing import Any, Optional

from ansible.plugins.action import ActionBase
from ansible_collections.inferops.sglang.plugins.plugin_utils._evidence_files import write_evidence


class ActionModule(ActionBase):
    """Reads by the module, writes here."""

    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        directory, given = str(arguments.get("directory") or ""), arguments.pop("texts", None) or {}
        if not directory or self._task.check_mode:
            return {**result, **_said("", [], [])}
        directory = os.path.abspath(directory)
        seen = self._execute_module("inferops.sglang.boot_evidence", module_args=arguments, task_vars=task_vars)
        texts, notes = seen.get("texts") or {}, list(seen.get("notes") or [])
        if seen.get("failed") or seen.get("unreachable"):
            notes.append(f"asked the host for what the start left, found {seen.get('msg', 'no answer')}")
        written, not_written = write_evidence(directory, {**texts, **given})
        return {**result, **_said(directory if written else "", written, notes + not_written)}


def _said(directory: str, written: list[str], notes: list[str]) -> dict[str, Any]:
    kept = f"Evidence of this start: {directory} ({', '.join(written)})" if directory else "No evidence of this start is kept"
    return {
        "changed": False, "directory": directory, "written": written, "notes": notes,
        "msg": kept + (f"; {'; '.join(notes)}" if notes else ""),
    }  # fmt: skip
