# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audits of all hosts set beside one another. Private to this collection: may change at any time.

Pure, over what C(audit_info) returned for each host. A host of which nothing is known is not accepted. Memory is GiB (2^30).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median_high
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._fleet_class import FleetClass, Ingredients, class_of

# share by which a pool may differ from the middle of its class: free memory moves between two starts by far less
ALIKE = 0.01
# two fractions that a unit file with 4 decimals can tell apart by more than rounding
FRACTION_STEP = 0.0005
MOST_ROWS = 40  # hosts that are shown one by one; of more, accepted ones without a warning share a line for each class
_HEADS = ("host", "unit", "SGLang", "pool", "asked", "GiB left", "fraction", "verdict")
_NAMES = ("host", "unit", "SGLang", "verdict")

Host = dict[str, Any]


def document_of(results: Mapping[str, Any], now: float) -> dict[str, Any]:
    """All hosts as one document for questions, tables and programs; ``results``: what the module returned, by host.

    Figures of a host are those of its instances: the fewest tokens and the least headroom, the most that is asked.
    """
    hosts = [_host(name, result if isinstance(result, Mapping) else {}) for name, result in results.items()]
    classes = _set_beside(hosts)
    counts = Counter(host["state"] for host in hosts)
    return {
        "id": f"audit-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}",
        "at": round(now),
        "accepted": bool(hosts) and all(host["accepted"] for host in hosts),
        "counts": {"hosts": len(hosts), **{state: counts[state] for state in ("accepted", "refused", "unreachable", "not judged")}},
        "classes": classes,
        "hosts": hosts,
    }


def headline(document: Mapping[str, Any]) -> str:
    """How many hosts are accepted, and the names of the others."""
    counts = document["counts"]
    words = [f"{counts['accepted']} of {counts['hosts']} host{'s' * (counts['hosts'] != 1)} accepted"]
    for state in ("refused", "unreachable", "not judged"):
        names = [host["name"] for host in document["hosts"] if host["state"] == state]
        words += [f"{len(names)} {state} ({_listed(names)})"] if names else []
    return ", ".join(words)


# --- one host ---------------------------------------------------------------------------------------------------------


def _host(name: str, result: Mapping[str, Any]) -> Host:
    audit = result.get("audit")
    if not isinstance(audit, Mapping):
        return _unknown(name, result)
    instances = [{**instance} for instance in audit["instances"]]
    for instance in instances:
        known = _class(instance, audit["gpus"])
        instance["class"] = known.key
        instance["class_title"] = known.title
    findings = [*audit["findings"]]
    if not instances:
        findings.append(_finding(
            "instance", "a server", "no unit that starts SGLang, by the role or by hand",
            "run the playbook for this host, or take it out of the group that is audited",
        ))  # fmt: skip
    accepted = not findings and all(instance["accepted"] for instance in instances)
    return _filled({
        "name": name,
        "state": "accepted" if accepted else "refused",
        "accepted": accepted,
        "findings": findings,
        "warnings": [*audit["warnings"]],
        "gpus": audit["gpus"],
        "idle_gib": audit["idle_gib"],
        "instances": instances,
    })  # fmt: skip


def _unknown(name: str, result: Mapping[str, Any]) -> Host:
    """A host that did not answer, or on which the module could not run."""
    words = [str(result[key]) for key in ("msg", "module_stderr") if result.get(key)]
    said = " ".join(": ".join(words or ["nothing was heard of it"]).split()).removeprefix("Task failed: ")[:400]
    lost = result.get("unreachable") is True or not result
    state = "unreachable" if lost else "not judged"
    do = "see that it runs and that Ansible reaches it" if lost else "mend that, and run the audit again"
    findings = [_finding("reach" if lost else "read", "a host that answers" if lost else "what serves there", said, do)]
    return _filled({"name": name, "state": state, "accepted": False, "findings": findings, "warnings": [], "gpus": [], "idle_gib": None,
                    "instances": []})  # fmt: skip


def _filled(host: Host) -> Host:
    """With the figures of its instances under names of its own."""
    instances = host["instances"]
    host.update({
        "units": [instance["unit"] for instance in instances],
        "sglang_versions": sorted({str(instance["sglang_version"]) for instance in instances if instance["sglang_version"]}),
        "classes": [instance["class"] for instance in instances],
        # of a server that is not proved to hold anything, 0: so that a question for less than some number finds it
        "min_tokens": min((instance["min_tokens"] for instance in instances), default=0),
        "required_tokens": max((instance["required_tokens"] for instance in instances), default=0),
        "headroom_gib": min(_known(instances, "headroom_gib"), default=None),
        "mem_fraction_static": min(_known(instances, "mem_fraction_static"), default=None),
        "restarts": sum(_known(instances, "restarts")),
        "answering": bool(instances) and all(instance["answer"].get("status") == 200 for instance in instances),
        "drifted": any(finding["check"] == "drift" for instance in instances for finding in instance["findings"]),
        "drained": any(instance["drained"] for instance in instances),
        "checks": sorted({finding["check"] for finding in _all_findings(host)}),
    })  # fmt: skip
    return host


def _known(instances: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    return [instance[key] for instance in instances if instance[key] is not None]


def _all_findings(host: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from host["findings"]
    for instance in host["instances"]:
        yield from instance["findings"]


def _finding(check: str, asked: str, found: str, do: str) -> dict[str, Any]:
    return {"check": check, "rank": None, "asked": asked, "found": found, "do": do}


def _class(instance: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]]) -> FleetClass:
    # what was accepted is what the host was planned as; what a unit drifted to is no class of its own
    receipt = instance["receipt"]
    flags = receipt["flags"] if isinstance(receipt.get("flags"), Mapping) else instance["flags"]
    args = instance["allocation"].get("server_args")
    shown = args.get("device") if isinstance(args, Mapping) else None
    own = [card for card in gpus if instance["unit"] in card["units"]]
    return class_of(Ingredients(
        cards=own or gpus,
        sglang_version=str(receipt.get("sglang_version") or instance["sglang_version"] or ""),
        release=str(instance["release"] or ""),
        checkpoints=instance["checkpoints"],
        device=str(flags.get("device") or shown or "cuda"),
        flags=flags,
    ))  # fmt: skip


# --- classes ----------------------------------------------------------------------------------------------------------


def _set_beside(hosts: Sequence[Host]) -> list[dict[str, Any]]:
    """Adds to each instance what sets it apart from those of its class; returns the classes in the order they come up."""
    members: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for host in hosts:
        for instance in host["instances"]:
            members.setdefault(instance["class"], []).append((host["name"], instance))
    found = []
    for key, of_class in members.items():
        pools = [instance["min_tokens"] for _name, instance in of_class if instance["min_tokens"]]
        fractions = [instance["mem_fraction_static"] for _name, instance in of_class if instance["mem_fraction_static"]]
        pool, fraction = (median_high(pools) if pools else None), (median_high(fractions) if fractions else None)
        for _name, instance in of_class if len(of_class) > 1 else ():
            instance["warnings"] = [*instance["warnings"], *_apart(instance, pool, fraction, len(of_class))]
        found.append({
            "key": key, "title": of_class[0][1]["class_title"], "hosts": list(dict.fromkeys(name for name, _instance in of_class)),
            "min_tokens": pool, "mem_fraction_static": fraction, "lesson": "",
        })  # fmt: skip
    return found


def _apart(instance: Mapping[str, Any], pool: int | None, fraction: float | None, members: int) -> Iterator[str]:
    own, own_fraction = instance["min_tokens"], instance["mem_fraction_static"]
    off = own_fraction - fraction if fraction is not None and own_fraction is not None else 0.0
    by_fraction = f"; its fraction is {own_fraction:.4f}, theirs {fraction:.4f}" if abs(off) > FRACTION_STEP else ""
    if pool and own and abs(own - pool) > ALIKE * pool:
        less = "fewer" if own < pool else "more"
        yield f"{own:,} tokens, {abs(own - pool):,} {less} than the {pool:,} of its class ({members} servers){by_fraction}"
    elif off < -FRACTION_STEP:
        yield f"its fraction {own_fraction:.4f} is under the {fraction:.4f} of its class ({members} servers)"


# --- the report -------------------------------------------------------------------------------------------------------


def report_of(document: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The document in the form of a report, one entry for each server."""
    required = {instance["required_tokens"] for host in document["hosts"] for instance in host["instances"]}
    return {
        "kind": "audit",
        "id": document["id"],
        "title": f"Audit of {document['counts']['hosts']} host{'s' * (document['counts']['hosts'] != 1)}",
        "started_at": None,
        "updated_at": document["at"],
        "finished": True,
        "state": "accepted" if document["accepted"] else "refused" if document["counts"]["refused"] else "stopped",
        "asked": {**asked, "required_tokens": required.pop() if len(required) == 1 else None},
        "batches": [],
        "stopped_because": "",
        "next_step": "",
        "classes": [{**entry} for entry in document["classes"]],
        "hosts": [entry for host in document["hosts"] for entry in _entries(host)],
    }


def _entries(host: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if host["state"] in ("unreachable", "not judged"):
        own = [f"{finding['found']}; {finding['do']}" for finding in host["findings"]]
        yield {"host": host["name"], "batch": None, "state": host["state"], "findings": own}
    elif not host["instances"]:
        yield {"host": host["name"], "batch": None, "state": "refused", "verdict": {"accepted": False, "findings": host["findings"]}}
    for instance in host["instances"]:
        alone = len(host["instances"]) == 1
        findings = [*instance["findings"], *host["findings"]]
        yield {
            "host": host["name"] if alone else f"{host['name']} {instance['name']}",
            "batch": None,
            "state": "refused" if findings else "accepted",
            "outcome": "refused" if findings else "accepted",
            "instance": instance["name"],
            "unit": instance["unit"],
            "change": "",
            "fleet_class": {"key": instance["class"], "title": instance["class_title"]},
            "required_tokens": instance["required_tokens"],
            "starts": 0,
            "plan": _plan(instance["receipt"]),
            "boots": [instance["allocation"]] if instance["allocation"] else [],
            "verdict": {
                "accepted": not findings, "required_tokens": instance["required_tokens"], "findings": findings,
                "changes": [], "rows": instance["rows"], "notes": [*instance["warnings"], *host["warnings"]], "table": [],
            },
        }  # fmt: skip


def _plan(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """What the accepted start was planned as."""
    names = {"mem_fraction_static": "mem_fraction_static", "predicted_tokens": "predicted_tokens", "headroom_gib": "planned_headroom_gib",
             "basis": "prediction_basis"}  # fmt: skip
    return {name: receipt[kept] for name, kept in names.items() if kept in receipt}


# --- the table --------------------------------------------------------------------------------------------------------


def table_of(document: Mapping[str, Any]) -> list[str]:
    """The audit for a person: a headline, a row for each server, what speaks against it with what to do, and what is worth a word."""
    hosts = document["hosts"]
    quiet = [host for host in hosts if host["accepted"] and not _told(host)] if len(hosts) > MOST_ROWS else []
    rows = [row for host in hosts if host not in quiet for row in _rows(host)]
    return [
        f"Audit: {headline(document)}",
        *_grid([*rows, *_class_rows(quiet)]),
        *(line for host in hosts for line in _against(host)),
        *(f"  note: {text}" for host in hosts for text in _told(host)),
    ]


def _told(host: Mapping[str, Any]) -> list[str]:
    """Warnings with the place that they are about in front."""
    of_host = [f"{host['name']}: {text}" for text in host["warnings"]]
    return of_host + [f"{host['name']} {instance['name']}: {text}" for instance in host["instances"] for text in instance["warnings"]]


def _rows(host: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if not host["instances"]:
        yield (host["name"], "-", "-", "-", "-", "-", "-", host["state"])
    for instance in host["instances"]:
        yield (
            host["name"],
            instance["name"],
            str(instance["sglang_version"] or "-"),
            _count(instance["min_tokens"]),
            _count(instance["required_tokens"]),
            f"{instance['headroom_gib']:.2f}" if instance["headroom_gib"] is not None else "-",
            f"{instance['mem_fraction_static']:.4f}" if instance["mem_fraction_static"] is not None else "-",
            "accepted" if instance["accepted"] else ", ".join(dict.fromkeys(finding["check"] for finding in instance["findings"])),
        )


def _class_rows(hosts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """One row for all accepted servers of a class that have nothing more to tell."""
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for host in hosts:
        for instance in host["instances"]:
            grouped.setdefault((instance["class"], instance["name"]), []).append(instance)
    for (_key, name), members in grouped.items():
        figures = {"min_tokens": "{:,}", "required_tokens": "{:,}", "headroom_gib": "{:.2f}", "mem_fraction_static": "{:.4f}"}
        spans = [_span(_known(members, key), form) for key, form in figures.items()]
        yield (f"({len(members)} more)", name, str(members[0]["sglang_version"] or "-"), *spans, "accepted")


def _span(values: Sequence[Any], form: str) -> str:
    if not values:
        return "-"
    least, most = form.format(min(values)), form.format(max(values))
    return least if least == most else f"{least}-{most}"


def _count(value: int) -> str:
    return f"{value:,}" if value else "-"


def _grid(rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [_HEADS, *rows] if rows else []
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADS))] if cells else []
    lines = []
    for row in cells:
        # names to the left, figures to the right
        padded = (cell.ljust(width) if head in _NAMES else cell.rjust(width) for head, cell, width in zip(_HEADS, row, widths))
        lines.append(("  " + "  ".join(padded)).rstrip())
    return lines


def _against(host: Mapping[str, Any]) -> Iterator[str]:
    places = [(host["name"], host["findings"]), *((f"{host['name']} {one['name']}", one["findings"]) for one in host["instances"])]
    for place, findings in places:
        if findings:
            yield f"{place}:"
        for (check, found, do), ranks in _grouped(findings).items():
            yield f"  - {check}: {f'{_ranks(ranks)}: ' if ranks else ''}{found.removeprefix(f'{check}: ')}"
            if do:
                yield f"    do: {do}"


def _grouped(findings: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[str]]:
    """Findings that differ by the rank alone are one."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for finding in findings:
        ranks = found.setdefault((finding["check"], finding["found"], finding["do"]), [])
        ranks += [finding["rank"]] if finding["rank"] else []
    return found


def _ranks(ranks: Sequence[str]) -> str:
    return f"{ranks[0]} to {ranks[-1]} ({len(ranks)} ranks)" if len(ranks) > 2 else " and ".join(ranks)


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
