# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout from batch to batch: who may go on, and what its report says. Private to this collection: may change at any time.

Pure functions over plain data. A host's pass is the fact C(sglang_gate_passed) that the play sets when the gate has accepted it;
whatever else a host may say, without that fact no later batch opens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASS = "sglang_gate_passed"
# names that only the role and its plays set: given from outside they could stand for a pass
_PRIVATE = "__sglang_"
# what is asked of the hosts, by the kind of the run
_WAYS = {"deploy": "roll out", "rollback": "roll back"}
# actions after which the process is the one that it was
_LEFT_ALONE = ("nothing", "reload")

# how many hosts at a time, as Ansible's serial takes it; of 0, a negative number or an empty list it makes one batch of all hosts
_BATCH = re.compile(r"[1-9][0-9]*\s*%?")

Report = dict[str, Any]


@dataclass(frozen=True)
class Survey:
    """What the plan of one host found. ``action``: what suffices there; ``refused``: why it cannot be planned, empty if it can."""

    host: str
    action: str = ""
    text: str = ""
    serving: bool = False
    refused: str = ""
    reached: bool = True
    fleet_class: Mapping[str, Any] = field(default_factory=dict)
    required_tokens: int = 0
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def planned(self) -> bool:
        return self.reached and not self.refused


def survey_of(host: str, facts: Mapping[str, Any]) -> Survey:
    """The survey that the role left among the facts of a host; one without is a host that was not reached."""
    found = facts.get("__sglang_survey")
    if not isinstance(found, Mapping) or not found:
        return Survey(host, reached=False)
    return Survey(
        host=host,
        action=str(found.get("action") or ""),
        text=str(found.get("change") or ""),
        serving=found.get("serving") is True,
        refused=str(found.get("refused") or ""),
        fleet_class=found.get("fleet_class") or {},
        required_tokens=int(found.get("required_tokens") or 0),
        plan=found.get("plan") or {},
    )


def forged(extra_vars: Iterable[str], facts: Mapping[str, Mapping[str, Any]], opening: bool) -> list[str]:
    """Names given from outside that only this run may set; ``opening``: no host can have a pass yet."""
    given = [name for name in extra_vars if name == PASS or name.startswith(_PRIVATE)]
    found = [f"{PASS} of {host}" for host, values in facts.items() if opening and PASS in values and PASS not in given]
    return sorted(given) + found


def refusal_of_batches(asked: Mapping[str, Any]) -> str:
    """Why sizes of batches, by the variable that names them, cannot be meant; empty if all of them can."""
    wrong = [name for name, value in asked.items() if not _sizes(value)]
    return "\n".join(
        f"{name}: asked for batches of {asked[name]!r}, found that Ansible would take all hosts at once for it, or none. "
        f"No host was changed; give how many at a time, each 1 or more, as a number or a percentage: -e '{{\"{name}\": [1, \"10%\"]}}'"
        for name in wrong
    )


def refusal_of_folder(name: str, path: str) -> str:
    """Why a folder of the controller cannot be meant; empty if it can."""
    try:
        Path(path).expanduser()
    except RuntimeError:
        return f"{name}: asked for {path}, found no such user on the controller; give an absolute path, or one that begins with ~/"
    return ""


def _sizes(value: Any) -> bool:
    listed = value if isinstance(value, list) else [value]
    return bool(listed) and all(
        isinstance(size, (int, str)) and not isinstance(size, bool) and _BATCH.fullmatch(str(size).strip()) for size in listed
    )


def refusal_of_plan(surveys: Sequence[Survey], kind: str = "deploy") -> str:
    """Why this rollout does not begin; empty if every host was planned."""
    unreachable = [survey.host for survey in surveys if not survey.reached]
    refused = [survey for survey in surveys if survey.reached and survey.refused]
    if not unreachable and not refused:
        return ""
    out = len(unreachable) + len(refused)
    lines = [f"Asked to {_WAYS[kind]} {_hosts(surveys)}, found {out} that cannot take part; no host was changed"]
    lines += [f"  - {survey.host}: {_first_words(survey.refused)}" for survey in refused]
    lines += [f"  - {host}: could not be reached" for host in unreachable]
    left_out = ":".join(f"!{name}" for name in [survey.host for survey in refused] + unreachable)
    other_way = f", or leave them out with --limit 'all:{left_out}'" if any(survey.planned for survey in surveys) else ""
    return "\n".join([*lines, f"    do: mend them and run again{other_way}"])


def order_of(surveys: Iterable[Survey]) -> tuple[list[str], list[str]]:
    """Hosts that no request misses, those that start first; then those whose server has to be stopped."""
    planned = [survey for survey in surveys if survey.planned]
    free = sorted((survey for survey in planned if not survey.serving), key=lambda survey: survey.action in _LEFT_ALONE)
    return [survey.host for survey in free], [survey.host for survey in planned if survey.serving]


def earlier_hosts(rollout: Mapping[str, Any], play: Sequence[str], batch: Collection[str]) -> list[str]:
    """Hosts of this rollout whose turn was before this batch: those of the play before, and of this play up to the batch."""
    own = list(play[: min(play.index(host) for host in batch)]) if batch else list(play)
    before = [host for host in rollout.get("free") or [] if host not in play]
    return before + own if set(batch) & set(rollout.get("serving") or []) else own


def refusal_of_batch(
    rollout: Mapping[str, Any], play: Sequence[str], batch: Sequence[str], earlier: Sequence[str], passed: Collection[str]
) -> str:
    """Why this batch does not open; empty if every earlier host was accepted in this run."""
    if not rollout.get("id"):
        return (
            "Asked to open a batch, found that this run has no plan (--start-at-task leaves it out); "
            "start the playbook from its beginning: hosts that hold what is asked are not touched again"
        )
    serving = [host for host in play if host in (rollout.get("serving") or [])]
    strangers = [host for host in play if host not in (rollout.get("free") or []) and host not in serving]
    if strangers or 0 < len(serving) < len(play):
        return (
            f"Asked to deploy {', '.join(strangers or serving)} in this play, found that the plan of this run does not say so; "
            "a group of the inventory may have the name of one that the playbook makes (sglang_rollout_..., sglang_rollback_...): rename it"
        )
    missing = [host for host in earlier if host not in passed]
    if missing:
        return (
            f"Asked to open the batch {', '.join(batch)}, found {len(missing)} of {len(earlier)} earlier hosts without a pass in this run: "
            f"{', '.join(missing)}. Mend them and run again"
        )
    return ""


def opened(report: Report, batch: Sequence[str], now: float) -> Report:
    """The report once this batch is under way. Nobody is left to write it anew where all of the batch are lost: it says so beforehand."""
    number = len(report["batches"]) + 1
    waits = (
        f"Batch {number} is under way ({', '.join(_short(batch))}). "
        "If this run has ended, it was lost: look whether its hosts can be reached, and run again."
    )
    hosts = [{**host, "batch": number, "state": "under way"} if host["host"] in batch else host for host in report["hosts"]]
    return {**report, "batches": [*report["batches"], list(batch)], "hosts": hosts, "updated_at": now, "next_step": waits}


def judged(report: Report, outcomes: Mapping[str, Mapping[str, Any]], passed: Collection[str], batch: Sequence[str], now: float) -> Report:
    """The report once this batch has ended: a host that has said nothing since could not be reached."""
    hosts = [
        _judged_host(host, outcomes.get(host["host"]), host["host"] in passed) if host["host"] in batch else host
        for host in report["hosts"]
    ]
    report = {**report, "hosts": hosts, "updated_at": now, "next_step": ""}
    lost = {name: [host["host"] for host in hosts if host["state"] == name] for name in ("refused", "unreachable", "not judged")}
    if any(lost.values()):
        said = [f"{', '.join(names)} {word}" for names, word in zip(lost.values(), ("refused", "lost", "not judged")) if names]
        return {**report, "finished": True, "state": "stopped", "stopped_because": "; ".join(said)}
    if all(host["state"] in ("accepted", "unchanged") for host in hosts):
        return {**report, "finished": True, "state": "accepted"}
    return report


def stopped(report: Report, why: str, now: float) -> Report:
    """The report of a rollout that does not go on; hosts under way have not been heard of again."""
    hosts = [{**host, "state": "unreachable"} if host.get("state") == "under way" else host for host in report["hosts"]]
    return {**report, "hosts": hosts, "finished": True, "state": "stopped", "stopped_because": why, "next_step": "", "updated_at": now}


def new_report(kind: str, identity: str, instance: str, version: str, surveys: Sequence[Survey], now: float) -> Report:
    """The report of a rollout whose hosts were all looked at and none was touched."""
    required = max((survey.required_tokens for survey in surveys), default=0)
    return {
        "kind": kind, "id": identity, "title": f"{instance} on {_hosts(surveys)}", "started_at": now, "updated_at": now, "finished": False,
        "state": "under way", "asked": {"required_tokens": required, "instance": instance, "sglang_version": version}, "batches": [],
        "stopped_because": "", "next_step": "", "classes": classes_of(surveys), "hosts": [_planned_host(survey) for survey in surveys],
    }  # fmt: skip


def classes_of(surveys: Iterable[Survey]) -> list[dict[str, Any]]:
    """Classes of equal hosts in the order they come up: key, title, hosts, lesson."""
    found: dict[str, dict[str, Any]] = {}
    for survey in surveys:
        key = survey.fleet_class.get("key")
        if key:
            entry = found.setdefault(key, {"key": key, "title": survey.fleet_class.get("title") or key, "hosts": [], "lesson": ""})
            entry["hosts"].append(survey.host)
    return list(found.values())


def taught(report: Report, lessons: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The report with what each class has learnt."""
    classes = [{**one, "lesson": _lesson_text(lessons.get(one["key"]) or ()) or one["lesson"]} for one in report["classes"]]
    return {**report, "classes": classes}


def plan_lines(surveys: Sequence[Survey], report: Report) -> list[str]:
    """The plan of the whole rollout for a person, before anything is touched."""
    free, serving = order_of(surveys)
    lines = [f"Rollout {report['id']}: {report['title']}"]
    lines += [f"  class   {one['title']}: {', '.join(_short(one['hosts']))}" for one in report["classes"]]
    lines += [f"  first   {len(free)} that serve nothing or need no restart: {', '.join(_short(free))}"] if free else []
    lines += [f"  then    {len(serving)} whose server is stopped for it: {', '.join(_short(serving))}"] if serving else []
    return lines


def _lesson_text(lessons: Iterable[Mapping[str, Any]]) -> str:
    lesson = next(iter(lessons), None)
    boot = (lesson or {}).get("boot") or lesson or {}
    if not lesson or not boot.get("min_tokens"):
        return ""
    fraction = (boot.get("server_args") or {}).get("mem_fraction_static")
    return f"{lesson.get('host', 'a host')} showed {boot['min_tokens']:,} tokens" + (f" at {fraction}" if fraction else "")


def _planned_host(survey: Survey) -> dict[str, Any]:
    state = "unreachable" if not survey.reached else "refused" if survey.refused else "waiting"
    return {
        "host": survey.host, "batch": None, "state": state, "change": survey.text, "fleet_class": dict(survey.fleet_class),
        "required_tokens": survey.required_tokens, "plan": dict(survey.plan), "refusal": survey.refused,
    }  # fmt: skip


def _judged_host(planned: Mapping[str, Any], outcome: Mapping[str, Any] | None, has_passed: bool) -> dict[str, Any]:
    return {**planned, **(outcome or {}), "state": _state(outcome, has_passed)}


def _state(outcome: Mapping[str, Any] | None, has_passed: bool) -> str:
    if not outcome:
        return "unreachable"
    if not has_passed:
        return "refused" if outcome.get("outcome") == "refused" else "not judged"
    return "unchanged" if outcome.get("outcome") == "accepted" and not outcome.get("starts") else "accepted"


def _first_words(refusal: str) -> str:
    """What a refusal says first; a line that only opens a list says nothing without the next one."""
    first, *more = refusal.strip().splitlines() or [""]
    if first.endswith(":") and more:
        first = f"{first} {more.pop(0).strip()}"
    return first + (" (the rest stands above)" if more else "")


def _short(names: Sequence[str], most: int = 8) -> list[str]:
    return [*names] if len(names) <= most else [*names[:most], f"and {len(names) - most} more"]


def _hosts(surveys: Sequence[Survey]) -> str:
    return surveys[0].host if len(surveys) == 1 else f"{len(surveys)} hosts"
