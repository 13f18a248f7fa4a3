# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of a report on a rollout or an audit, put in order. Private to this collection: may change at any time.

What comes in was gathered over a whole run, which may have been killed: anything may be missing, empty or odd, and nothing raises.
It fails closed: what a report says is never better than what its hosts show. docs/report.md has the form, key by key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import place_of
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_reasons import Reason, reasons_of
from ansible_collections.inferops.sglang.plugins.plugin_utils._report_text import count_words, first_line, number, shown, thousands, whole

FORM = 1  # of report.json; a later number says that a key has another meaning
KINDS = {"deploy": "Rollout", "rollback": "Rollback", "audit": "Audit"}
STATES = ("under way", "accepted", "refused", "stopped")

# of a host, in the order in which they are counted
HOST_STATES = ("refused", "unreachable", "not judged", "under way", "waiting", "accepted", "unchanged")
FINE = frozenset(("accepted", "unchanged"))
OPEN = frozenset(("waiting", "under way"))
_AGAIN = "Run again: hosts that were accepted are left as they are."
_STATE_OF_OUTCOME = {"accepted": "accepted", "refused": "refused", "removed": "accepted", "checked": "unchanged"}

DEEPEST = 24  # levels of what is nested
_TEXTS = ("instance", "unit", "outcome", "change", "refusal", "rolled_back", "evidence")
_NUMBERS = ("required_tokens", "starts", "started_at", "ended_at", "batch")
_FOLDERS = ("fleet_class", "plan", "verdict", "returned")
_LISTS = ("boots", "balancers", "findings")


def normalised(report: Any) -> dict[str, Any]:
    """The report with every key of the form, as plain data that JSON holds; ``counts`` and ``headline`` are added."""
    given = _mapping(plain(report))
    finished = given.get("finished") is True
    batches = [_names(batch) for batch in _list(given.get("batches"))]
    classes = [_class(entry) for entry in _list(given.get("classes")) if isinstance(entry, Mapping)]
    hosts = _hosts(given, batches, finished)
    stopped = _text(given.get("stopped_because"))
    made = {
        **given,
        "form": FORM,
        "kind": given["kind"] if given.get("kind") in KINDS else "deploy",
        "id": _text(given.get("id")),
        "started_at": number(given.get("started_at")),
        "updated_at": number(given.get("updated_at")),
        "finished": finished,
        "asked": _mapping(given.get("asked")),
        "batches": batches,
        "stopped_because": stopped,
        "classes": _with_hosts(classes, hosts),
        "hosts": hosts,
        "counts": _counts(hosts),
    }
    made["title"] = _text(given.get("title")) or _title(made)
    made["state"] = _state(made, given.get("state"))
    made["headline"] = _headline(made)
    made["next_step"] = _text(given.get("next_step")) or _next_step(made)
    return made


def plain(value: Any, deep: int = DEEPEST) -> Any:
    """The value as JSON can hold it: no class of Ansible's own, no number that is none, no half of a character."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, (int, float)):
        return (int(value) if isinstance(value, int) else float(value)) if number(value) is not None else None
    if deep <= 0:
        return None
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(entry, deep - 1) for key, entry in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [plain(entry, deep - 1) for entry in value]
    return None


# --- hosts ------------------------------------------------------------------------------------------------------------


def _hosts(given: Mapping[str, Any], batches: Sequence[Sequence[str]], finished: bool) -> list[dict[str, Any]]:
    """Every host that is told of, each once, those of the batches first and in their order."""
    number_of = {name: index for index, batch in enumerate(batches, 1) for name in batch}
    told = {entry["host"]: entry for entry in map(_named, _list(given.get("hosts"))) if entry["host"]}
    order = dict.fromkeys([*number_of, *told])
    return [_host({"host": name, **told.get(name, {})}, number_of.get(name), finished) for name in order]


def _named(entry: Any) -> dict[str, Any]:
    fields = _mapping(entry)
    return {**fields, "host": _text(fields.get("host") or fields.get("name"))}


def _host(entry: Mapping[str, Any], batch: int | None, finished: bool) -> dict[str, Any]:
    made = {
        **entry,
        **{key: _text(entry.get(key)) for key in _TEXTS},
        **{key: number(entry.get(key)) for key in _NUMBERS},
        **{key: _mapping(entry.get(key)) for key in _FOLDERS},
        **{key: _list(entry.get(key)) for key in _LISTS},
    }
    made["required_tokens"], made["starts"] = whole(made["required_tokens"]), whole(made["starts"]) or 0
    made["boots"] = [boot for boot in made["boots"] if isinstance(boot, Mapping)]
    made["findings"] = [_text(finding) for finding in made["findings"] if _text(finding)]
    made["balancers"] = [_text(entry) for entry in made["balancers"] if _text(entry)]
    made["batch"] = batch if batch is not None else whole(made["batch"])
    made["state"] = _host_state(made, entry.get("state"), batch is not None, finished)
    return made


def _host_state(host: Mapping[str, Any], given: Any, opened: bool, finished: bool) -> str:
    """The state that was given, or else that of the outcome; what speaks against the host is stronger than either."""
    if host["refusal"] or host["verdict"].get("accepted") is False or host["outcome"] == "refused":
        return "refused"
    state = given if given in HOST_STATES else _STATE_OF_OUTCOME.get(host["outcome"], "under way" if opened else "waiting")
    return "not judged" if finished and state == "under way" else state


def _class(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **entry,
        "key": _text(entry.get("key")),
        "title": _text(entry.get("title")),
        "lesson": _text(entry.get("lesson")),
        "hosts": _names(entry.get("hosts")),
    }


def _with_hosts(classes: list[dict[str, Any]], hosts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The classes that were told, then those that only hosts name."""
    known = {entry["key"]: entry for entry in classes}
    for host in hosts:
        key = _text(host["fleet_class"].get("key"))
        if not key:
            continue
        if key not in known:
            known[key] = {"key": key, "title": _text(host["fleet_class"].get("title")), "hosts": [], "lesson": ""}
            classes.append(known[key])
        if host["host"] not in known[key]["hosts"]:
            known[key]["hosts"].append(host["host"])
    return classes


# --- the whole --------------------------------------------------------------------------------------------------------


def _counts(hosts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = Counter(host["state"] for host in hosts)
    return {"hosts": sum(found.values()), **{state: found[state] for state in HOST_STATES}}


def _state(report: Mapping[str, Any], given: Any) -> str:
    """The worse of what was given and what the hosts show."""
    counts = report["counts"]
    if not report["finished"]:
        return "under way"
    if counts["refused"] or given == "refused":
        return "refused"
    unjudged = any(counts[state] for state in ("unreachable", "not judged", "waiting"))
    return "stopped" if unjudged or report["stopped_because"] or given == "stopped" or not counts["hosts"] else "accepted"


def _title(report: Mapping[str, Any]) -> str:
    asked = report["asked"]
    words = [KINDS[report["kind"]]]
    words += [f"of {_text(asked['instance'])}"] if _text(asked.get("instance")) else []
    return " ".join(words)


def _headline(report: Mapping[str, Any]) -> str:
    """What came out, in one sentence."""
    makers = {"accepted": _all_well, "refused": _who_fell, "stopped": _why_stopped, "under way": _how_far}
    return makers[report["state"]](report)


def _all_well(report: Mapping[str, Any]) -> str:
    counts, required = report["counts"], whole(report["asked"].get("required_tokens"))
    hosts = count_words(counts["hosts"], "host")
    if all(host["outcome"] == "removed" for host in report["hosts"]):
        return f"Removed from {hosts}"
    if all(host["outcome"] == "checked" for host in report["hosts"]):
        return f"{hosts} looked at, nothing was changed"
    return f"{hosts} accepted" + (f": every rank holds {thousands(required)} tokens" if required else "")


def _who_fell(report: Mapping[str, Any]) -> str:
    fallen = [host for host in report["hosts"] if host["state"] == "refused"]
    if not fallen:
        return report["stopped_because"] or "Refused"
    more = f"; and {count_words(len(fallen) - 1, 'host')} more" if len(fallen) > 1 else ""
    return f"{shown(fallen[0]['host'])} refused, {_in_short(fallen[0])}{more}"


def _in_short(host: Mapping[str, Any]) -> str:
    """Why a host was refused: what its start died of, else what speaks against it first."""
    failure = _mapping(host["boots"][-1].get("failure")) if host["boots"] else {}
    reasons = against(host)
    if _text(failure.get("kind")):
        place = place_of(_mapping(failure.get("rank")))
        return f"{'rank ' + place.name + ': ' if place else ''}{first_line(failure['kind'], 80)}"
    return first_line(reasons[0].text, 160) if reasons else "for a reason that is not known"


def _why_stopped(report: Mapping[str, Any]) -> str:
    counts = report["counts"]
    if not counts["hosts"]:
        return "Stopped: no host was reached"
    if counts["unreachable"]:
        why = f"{_listed(_in_state(report, 'unreachable'))} unreachable"
    elif report["stopped_because"]:
        return f"Stopped: {first_line(report['stopped_because'], 200)}"
    elif counts["not judged"]:
        why = f"{_listed(_in_state(report, 'not judged'))} not judged"
    else:
        why = f"{count_words(counts['waiting'], 'host')} not reached" if counts["waiting"] else "the run ended early"
    fine = counts["accepted"] + counts["unchanged"]
    return f"Stopped: {why}; {fine:,} of {count_words(counts['hosts'], 'host')} accepted"


def _how_far(report: Mapping[str, Any]) -> str:
    counts = report["counts"]
    fine = counts["accepted"] + counts["unchanged"]
    bad = "".join(f", {counts[state]:,} {state}" for state in ("refused", "unreachable", "not judged") if counts[state])
    where = f"batch {len(report['batches'])}: " if report["batches"] else ""
    return f"Under way, {where}{fine:,} of {count_words(counts['hosts'], 'host')} accepted{bad}"


def _next_step(report: Mapping[str, Any]) -> str:
    """What an operator does now, in one sentence."""
    refused, lost, open_ = (_in_state(report, state) for state in ("refused", "unreachable", "not judged"))
    if refused:
        first = next(host for host in report["hosts"] if host["state"] == "refused")
        moves = [reason.do for reason in against(first) if reason.do]
        return f"On {shown(refused[0])}: {first_line(moves[0], 400)}." if moves else f"Look at what speaks against {_listed(refused)}."
    if lost:
        return f"Make {_listed(lost)} reachable, or leave it out of the inventory. {_AGAIN}"
    if not report["finished"]:
        return "Wait: this page is written anew after each batch."
    if open_:
        return f"Run again for {_listed(open_)}, without tags that leave the gate out."
    if report["state"] == "stopped":
        return _AGAIN
    return "Nothing to do."


def against(host: Mapping[str, Any]) -> list[Reason]:
    """What speaks against a host, the first first: the verdict's findings, what was found besides, else why it was refused."""
    return list(_against(host))


def _against(host: Mapping[str, Any]) -> Iterator[Reason]:
    found = reasons_of(host["verdict"])
    yield from found
    yield from (Reason("", (), text, "") for text in host["findings"] if text not in {reason.text for reason in found})
    if not found and not host["findings"] and host["refusal"]:
        yield Reason("", (), _why(host["refusal"]), "")


def _why(refusal: str) -> str:
    """A refusal without the line that says no more than that it is one."""
    first, _newline, rest = refusal.strip().partition("\n")
    return rest.strip() if rest.strip() and first.endswith(": refused before anything was changed.") else refusal.strip()


def _in_state(report: Mapping[str, Any], state: str) -> list[str]:
    return [host["host"] for host in report["hosts"] if host["state"] == state]


def _listed(names: Sequence[str], most: int = 3) -> str:
    shortened = ", ".join(shown(name, 80) for name in names[:most])
    return shortened + (f" and {len(names) - most:,} more" if len(names) > most else "")


# --- odd data ---------------------------------------------------------------------------------------------------------


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value] if isinstance(value, str) and value else []


def _names(value: Any) -> list[str]:
    return [name for name in map(_text, _list(value)) if name]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None or isinstance(value, (bool, dict, list)) else str(value)
