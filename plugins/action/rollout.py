# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leads a rollout from batch to batch, on the controller alone; see the documentation of M(inferops.sglang.rollout)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars
from ansible_collections.inferops.sglang.plugins.module_utils import _lessons
from ansible_collections.inferops.sglang.plugins.plugin_utils import _lesson_store, _rollout
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_files import ReportError, write_report

STEPS = ("plan", "batch", "judge")


class ActionModule(ActionBase):
    """One task of a play for all its hosts (C(run_once))."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, asked = self.validate_argument_spec({
            "step": {"type": "str", "choices": list(STEPS), "required": True},
            "kind": {"type": "str", "choices": ["deploy", "rollback"], "default": "deploy"},
            "instance": {"type": "str", "default": "sglang"},
            "sglang_version": {"type": "str", "default": ""},
            "batches": {"type": "raw", "default": 1},
            "serving_batches": {"type": "raw", "default": 1},
            "report_dir": {"type": "str", "default": ""},
            "fleet_boots_dir": {"type": "str", "default": ""},
        })
        self._asked: dict[str, Any] = asked
        self._vars: dict[str, Any] = task_vars or {}
        self._now = time.time()
        self._warnings: list[str] = []
        result.update({"plan": self._plan, "batch": self._batch, "judge": self._judge}[asked["step"]]())
        if self._warnings:
            result["warnings"] = self._warnings
        return {"changed": False, **result}

    # the three steps

    def _plan(self) -> dict[str, Any]:
        hosts = self._vars["ansible_play_hosts_all"]
        facts = {host: self._facts(host) for host in hosts}
        forged = _rollout.forged(load_extra_vars(self._loader), facts, opening=True)
        if forged:
            return _failed(f"{_forged('begin', forged)} or the inventory. No host was changed")
        wrong = (_rollout.refusal_of_batches({f"sglang_{name}": self._asked[name] for name in ("batches", "serving_batches")})
                 or _rollout.refusal_of_folder("sglang_fleet_boots_dir", self._asked["fleet_boots_dir"]))
        if wrong:
            return _failed(wrong)
        surveys = [_rollout.survey_of(host, facts[host]) for host in hosts]
        identity = f"{self._asked['kind']}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(self._now))}"
        report = _rollout.new_report(
            self._asked["kind"], identity, self._asked["instance"], self._asked["sglang_version"], surveys, self._now)
        refusal = _rollout.refusal_of_plan(surveys, self._asked["kind"])
        lessons = self._kept_lessons(surveys, facts)
        report = _rollout.taught(report, lessons)
        if refusal:
            self._write(_rollout.stopped(report, refusal.splitlines()[0], self._now))
            return _failed(refusal)
        Display().display("\n".join(_rollout.plan_lines(surveys, report)), stderr=True)
        free, serving = _rollout.order_of(surveys)
        self._write(report)
        return {"id": identity, "free": free, "serving": serving, "lessons": lessons}

    def _batch(self) -> dict[str, Any]:
        rollout, batch = self._rollout(), list(self._vars["ansible_play_batch"])
        forged = _rollout.forged(load_extra_vars(self._loader), {}, opening=False)
        if forged:
            return _failed(_forged("open a batch", forged))
        earlier = _rollout.earlier_hosts(rollout, self._vars["ansible_play_hosts_all"], batch) if rollout else []
        facts = {host: self._facts(host) for host in earlier}
        passed = [host for host, values in facts.items() if values.get(_rollout.PASS) is True]
        refusal = _rollout.refusal_of_batch(rollout, self._vars["ansible_play_hosts_all"], batch, earlier, passed)
        if refusal:
            self._update(lambda report: _rollout.stopped(report, refusal, self._now))
            return _failed(refusal)
        lessons = self._lessons_so_far(rollout, earlier, facts)
        self._update(lambda report: _rollout.opened(_rollout.taught(report, lessons), batch, self._now))
        return {"lessons": lessons, "opened_at": self._now, "hosts": batch}

    def _judge(self) -> dict[str, Any]:
        batch = list(self._vars["ansible_play_batch"])
        # hosts that were lost are no longer in the batch of the play
        opened = (self._vars.get("__sglang_batch") or {}).get("hosts") or batch
        facts = {host: self._facts(host) for host in opened}
        outcomes = {host: values["__sglang_outcome"] for host, values in facts.items() if values.get("__sglang_outcome")}
        passed = [host for host, values in facts.items() if values.get(_rollout.PASS) is True]
        self._keep_lessons(outcomes)
        paths = self._update(lambda report: _rollout.judged(report, outcomes, passed, opened, self._now))
        return {"report": paths.get("html", "")}

    # lessons

    def _kept_lessons(self, surveys: list[_rollout.Survey], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        kept = []
        for survey in surveys:
            found = (facts[survey.host].get("__sglang_survey") or {}) if survey.planned else {}
            if found.get("boots"):
                kept += _lessons.lessons_from_kept(
                    survey.host, survey.fleet_class.get("key", ""), found["free_gib"], found["boots"], found["receipt"])
        folder = self._asked["fleet_boots_dir"]
        if folder:
            keys = {survey.fleet_class["key"] for survey in surveys if survey.fleet_class.get("key")}
            kept = _lesson_store.load(folder, keys) + kept
        return _lessons.merge(kept)

    def _lessons_so_far(self, rollout: Mapping[str, Any], earlier: list[str], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        before = (facts[earlier[-1]].get("__sglang_batch") or rollout) if earlier else rollout
        known = [lesson for lessons in (before.get("lessons") or {}).values() for lesson in lessons]
        new = [lesson for host in (before.get("hosts") or []) if host in facts
               for lesson in _lessons.lessons_from_outcome(facts[host].get("__sglang_outcome") or {})]
        return _lessons.merge(known + new)

    def _keep_lessons(self, outcomes: Mapping[str, Mapping[str, Any]]) -> None:
        folder = self._asked["fleet_boots_dir"]
        if not folder or self._task.check_mode:
            return
        try:
            _lesson_store.store(folder, [lesson for outcome in outcomes.values() for lesson in _lessons.lessons_from_outcome(outcome)])
        except OSError as error:
            self._warnings.append(
                f"asked to keep what these starts showed in {folder}, found {error}; the next run learns from the hosts alone")

    # what the play knows

    def _facts(self, host: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._vars["hostvars"][host]
        return found

    def _rollout(self) -> Mapping[str, Any]:
        found = self._vars.get("__sglang_rollout")
        return found if isinstance(found, Mapping) else {}

    # the report; what cannot be written never stops a rollout

    def _write(self, report: dict[str, Any]) -> dict[str, Any]:
        folder = self._asked["report_dir"]
        if not folder or self._task.check_mode:
            return {}
        try:
            paths: dict[str, Any] = write_report(folder, report)
        except ReportError as error:
            self._warnings.append(str(error))
            return {}
        # a page that cannot be drawn must not leave servers half rolled out
        except Exception as error:
            self._warnings.append(
                f"asked to write the report to {folder}, found {type(error).__name__} ({error}); this rollout has no report")
            return {}
        if report["finished"]:
            Display().display(f"Report: {paths['html']}", stderr=True)
        return paths

    def _update(self, change: Any) -> dict[str, Any]:
        folder = self._asked["report_dir"]
        if not folder or self._task.check_mode:
            return {}
        path = Path(folder) / str(self._rollout().get("id", "")) / "report.json"
        try:
            report = change(json.loads(path.read_text(encoding="utf-8")))
        # neither must a report that somebody else wrote into, whatever is in it now
        except Exception as error:
            self._warnings.append(f"asked to bring {path} up to date, found {type(error).__name__} ({error}); this rollout has no report")
            return {}
        return self._write(report)


def _forged(what: str, names: list[str]) -> str:
    return (f"Asked to {what} with {', '.join(names)} given from outside, which only this run may set; "
            "take it out of the command line")


def _failed(message: str) -> dict[str, Any]:
    return {"failed": True, "msg": message}
