# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Closes an audit, on the controller alone; see the documentation of M(inferops.sglang.audit_report)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars
from ansible_collections.inferops.sglang.plugins.module_utils._made import write_whole
from ansible_collections.inferops.sglang.plugins.plugin_utils._audit_fleet import document_of, headline, report_of, table_of
from ansible_collections.inferops.sglang.plugins.plugin_utils._query import query, whole_question
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_files import ReportError, write_report

ARGUMENTS: dict[str, dict[str, Any]] = {
    "results": {"type": "str", "default": "__sglang_audit"},
    "report_dir": {"type": "str", "default": ""},
    "query": {"type": "str", "default": ""},
    "instance": {"type": "str", "default": ""},
}


class ActionModule(ActionBase):
    """One task of a play for all its hosts (C(run_once))."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, asked = self.validate_argument_spec(ARGUMENTS)
        known = task_vars or {}
        if asked["results"] in load_extra_vars(self._loader):
            return {**result, "failed": True, "msg": _forged(asked["results"])}
        hosts = {host: self._read(known["hostvars"], host, asked["results"]) for host in known["ansible_play_hosts_all"]}
        document = document_of(hosts, time.time())
        asked["query"] = whole_question(asked["query"], context.CLIARGS.get("extra_vars") or (), "sglang_audit_query")
        answer = query(document, asked["query"]) if asked["query"] else None
        for line in [json.dumps(answer, indent=1, ensure_ascii=False)] if asked["query"] else table_of(document):
            self._display.display(line)
        paths = self._write(asked, document, answer)
        return {
            **result,
            "changed": False,
            "failed": not document["accepted"],
            "msg": headline(document),
            "report": paths.get("html", ""),
            **({"answer": answer} if asked["query"] else {}),
            **({"warnings": [paths["error"]]} if "error" in paths else {}),
        }

    @staticmethod
    def _read(hostvars: Mapping[str, Any], host: str, name: str) -> Any:
        return hostvars[host].get(name)

    def _write(self, asked: Mapping[str, Any], document: Mapping[str, Any], answer: Any) -> dict[str, str]:
        """The report, with the whole audit and the answer as JSON beside it. What cannot be written hides nothing that was found."""
        if not asked["report_dir"] or self._task.check_mode:
            return {}
        try:
            paths = write_report(asked["report_dir"], report_of(document, {"instance": asked["instance"]}))
            _write_json(os.path.join(paths["directory"], "audit.json"), document)
            if asked["query"]:
                _write_json(os.path.join(paths["directory"], "answer.json"), {"query": asked["query"], "answer": answer})
        except (ReportError, OSError) as error:
            return {"error": str(error)}
        return paths


def _write_json(path: str, data: Any) -> None:
    write_whole(path, json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n", 0o644)


def _forged(name: str) -> str:
    return f"asked to judge what hosts returned, found {name} given on the command line, which would stand for all of them; leave it out"
