# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What serves on a host against what was accepted there. Private to this collection: may change at any time.

Pure, over what C(_audit_host) read. It fails closed: an instance is accepted only if nothing speaks against it and its pools are proved,
by the journal of the start that runs, or by the receipt of that very start. Warnings refuse nothing. Memory is GiB (2^30).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._audit_host import HostFacts, Instance
from ansible_collections.inferops.sglang.plugins.module_utils._flags import number_of, text_of
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import Accelerators, Gpu
from ansible_collections.inferops.sglang.plugins.module_utils._secrets import HIDDEN, is_secret_flag
from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import count, pool_tokens, sequence
from ansible_collections.inferops.sglang.plugins.module_utils._unit_action import Files, difference
from ansible_collections.inferops.sglang.plugins.module_utils._unit_change import RESTART, Change
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import plain
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Ask, Finding, Verdict, judge
from ansible_collections.inferops.sglang.plugins.module_utils._verdict_table import as_data

# GiB beyond the headroom that are worth a word, and that an idle card may show as used
SPARE_GIB = 2.0
# share by which a pool may be off what the plan said
FAR_OFF = 0.02
_DEPLOY = "run the playbook for this host: it proves what runs, or mends it"


@dataclass(frozen=True)
class Terms:
    """What hosts are held against.

    ``required_tokens``: of every rank, 0 for what each receipt accepted. If the role's ``instance`` is named it is asked of that one,
    and of what has no receipt to be held against. The rest as the gate takes it; ``headroom_gib``: what is to stay free on a card,
    beyond which memory is idle.
    """

    required_tokens: int = 0
    instance: str = ""
    min_avail_gib: float = 1.0
    max_spread_gib: float = 4.0
    allowed_changes: tuple[str, ...] = ()
    headroom_gib: float = 5.0


@dataclass(frozen=True)
class Judged:
    """One instance and its judgement. ``proof``: journal, receipt, or empty where no pool is proved; ``min_tokens`` is 0 then."""

    seen: Instance
    required_tokens: int
    required_by: str
    min_tokens: int
    proof: str
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    verdict: Verdict = field(default_factory=lambda: Verdict(False, 0, (), (), (), ()))

    @property
    def accepted(self) -> bool:
        return not self.findings

    @property
    def runs(self) -> bool:
        return _runs(self.seen)

    @property
    def receipt(self) -> Mapping[str, Any]:
        return _receipt(self.seen)


def judge_instance(seen: Instance, terms: Terms) -> Judged:
    """Everything that speaks against one instance, and what is worth a word."""
    required, by = _required(seen, terms)
    verdict = judge(seen.allocation, _ask(seen, required, terms))
    change = _drift(seen)
    case = _Case(seen, required, by, verdict, change)
    findings = tuple(finding for check in _CHECKS for finding in check(case))
    tokens, proof = _proved(case)
    return Judged(
        seen=seen,
        required_tokens=required,
        required_by=by,
        min_tokens=tokens,
        proof=proof,
        findings=findings,
        warnings=tuple(text for check in _WARNINGS for text in check(case, terms)),
        drift=change.reasons if change.action == RESTART else (),
        verdict=verdict,
    )


@dataclass(frozen=True)
class _Case:
    seen: Instance
    required: int
    by: str
    verdict: Verdict
    change: Change

    @property
    def receipt(self) -> Mapping[str, Any]:
        return _receipt(self.seen)

    @property
    def allocation(self) -> Mapping[str, Any]:
        return self.seen.allocation or {}

    @property
    def runs(self) -> bool:
        return _runs(self.seen)

    @property
    def is_the_accepted_start(self) -> bool:
        """Whether the process that runs is the one that the gate proved."""
        invocation = self.seen.service.invocation_id if self.seen.service else ""
        return self.runs and invocation != "" and invocation == self.receipt.get("invocation_id")

    @property
    def outlived_its_log(self) -> bool:
        """Whether the journal has lost the figures of a start that the gate proved when they were there."""
        return self.is_unseen and self.is_the_accepted_start and self.allocation.get("failure") is None

    @property
    def is_unseen(self) -> bool:
        """Whether the journal shows no pool of it."""
        return not any(pool_tokens(rank) for rank in _mappings(self.allocation.get("ranks")))

    @property
    def is_drifted(self) -> bool:
        return self.change.action == RESTART or self.is_of_other_files

    @property
    def is_of_other_files(self) -> bool:
        """Whether the process was started from something else than what was accepted."""
        service, accepted = self.seen.service, self.receipt.get("digest")
        return self.runs and service is not None and bool(accepted) and service.digest != accepted


def _runs(seen: Instance) -> bool:
    return seen.service is not None and seen.service.exists and not seen.service.dead


def _receipt(seen: Instance) -> Mapping[str, Any]:
    found = seen.kept.get("receipt.json")
    return found if isinstance(found, Mapping) else {}


def _required(seen: Instance, terms: Terms) -> tuple[int, str]:
    """Tokens that every rank must hold, and who says so."""
    accepted = count(_receipt(seen).get("required_tokens"))
    if terms.required_tokens and (terms.instance in ("", seen.name) or not accepted):
        return terms.required_tokens, "asked"
    return (accepted, "receipt") if accepted else (0, "")


def _ask(seen: Instance, required: int, terms: Terms) -> Ask:
    """The role's instance against the flags that were accepted, any other against its own unit."""
    accepted, verdict = _receipt(seen).get("flags"), seen.kept.get("verdict.json")
    own = {name: value for name, value in plain(seen.server).items() if not is_secret_flag(name)}
    flags = accepted if isinstance(accepted, Mapping) else own
    changes = _mappings(verdict.get("changes")) if isinstance(verdict, Mapping) else []
    # what the gate let pass
    allowed = [change.get("flag") for change in changes if change.get("allowed") is True]
    return Ask(
        # where nothing is asked the finding is that, and the rest of the boot is judged all the same
        required_tokens=required or 1,
        flags=flags,
        min_avail_gib=terms.min_avail_gib,
        max_spread_gib=terms.max_spread_gib,
        allowed_changes=[*terms.allowed_changes, *allowed],
    )


def _drift(seen: Instance) -> Change:
    """What differs from the unit that was accepted to the one on the disk."""
    accepted = seen.kept.get("accepted.json")
    unit, environment = (accepted.get("unit"), accepted.get("environment")) if isinstance(accepted, Mapping) else (None, None)
    if not isinstance(unit, str) or not isinstance(environment, str) or not seen.disk.unit:
        return Change("nothing")
    return difference(Files(unit, environment), seen.disk, seen.environment_path)


def _proved(case: _Case) -> tuple[int, str]:
    if not case.runs:
        return 0, ""
    if case.outlived_its_log:
        return count(case.receipt.get("min_tokens")) or 0, "receipt"
    data = case.allocation
    tokens = count(data.get("min_tokens")) or 0
    return (tokens, "journal") if tokens and data.get("ready") is True and data.get("complete") is True else (0, "")


# --- what refuses -----------------------------------------------------------------------------------------------------


def _readable(case: _Case) -> Iterator[Finding]:
    if case.seen.problem:
        yield Finding("read", None, "a unit that can be read", case.seen.problem, "see why, and run the audit again")


def _running(case: _Case) -> Iterator[Finding]:
    service = case.seen.service
    if service is None or case.runs:
        return
    if not service.exists:
        do = "run the playbook for this host, or remove the instance (sglang_state=absent)"
        yield Finding("unit", None, f"the unit {case.seen.unit}", "none, though the role made this instance", do)
        return
    failure = case.allocation.get("failure")
    found = f"it does not run: {service.sentence()}, {'enabled' if case.seen.enabled else 'not enabled'}"
    if isinstance(failure, Mapping):
        found += f"; its last start died of {text_of(failure.get('kind'))}: {text_of(failure.get('message'))}"
        do = text_of(failure.get("remedy")) if failure.get("remedy") else _DEPLOY
    else:
        do = f"run the playbook for this host, or start it (systemctl start {case.seen.unit})" if case.seen.enabled else _DEPLOY
    yield Finding("running", None, "a server that runs", found, do)


def _receipts(case: _Case) -> Iterator[Finding]:
    if case.seen.name and not case.receipt:
        yield Finding("receipt", None, "what was accepted here (receipt.json)", "none that can be read", _DEPLOY)
    elif case.seen.name and not isinstance(case.seen.kept.get("accepted.json"), Mapping):
        yield Finding("receipt", None, "the accepted service to go back to (accepted.json)", "none that can be read", _DEPLOY)
    if not case.required and not (case.seen.name and not case.receipt):
        do = f"give sglang_context_length, or take the unit over (sglang_adopt: {case.seen.unit})"
        yield Finding("receipt", None, "tokens to hold it against", "no receipt, for the role did not write this unit", do)


def _boot(case: _Case) -> Iterator[Finding]:
    """What the journal of this start says; of one that does not run, that is said already."""
    if not case.runs or case.seen.problem:
        return
    if case.outlived_its_log:
        tokens = count(case.receipt.get("min_tokens")) or 0
        if tokens < case.required:
            found = f"{tokens:,} tokens, {case.required - tokens:,} short, by the receipt of this start"
            yield Finding("pool", None, f"{case.required:,} tokens", found, _DEPLOY)
        return
    if case.is_unseen and case.seen.gaps and case.allocation.get("failure") is None:
        do = "start the server again, with its journal kept (SystemMaxUse=, Storage=persistent)"
        yield Finding("log", None, "the log of the start that runs", "; ".join(case.seen.gaps), do)
        return
    for finding in case.verdict.findings:
        # of a unit that drifted, the drift is the cause
        if finding.check != "flags" or not case.is_drifted:
            yield finding


def _answering(case: _Case) -> Iterator[Finding]:
    answer = case.seen.answer
    # a start that is under way answers nothing yet, and is refused for that
    if case.runs and answer.url and answer.status != 200 and case.allocation.get("ready", True) is True:
        found = f"status {answer.status}" if answer.status is not None else f"no answer ({answer.why})"
        yield Finding("answer", None, f"200 from {answer.url}", found, f"look what the server does: journalctl -u {case.seen.unit} -e")


def _restarted(case: _Case) -> Iterator[Finding]:
    service, accepted = case.seen.service, case.receipt.get("invocation_id")
    if case.runs and service is not None and service.n_restarts > 0 and accepted and service.invocation_id != accepted:
        found = f"it died and was started again, {service.n_restarts} times since the last start by hand"
        do = f"see why (journalctl -u {case.seen.unit}); {_DEPLOY}"
        yield Finding("restart", None, f"the start that was accepted ({text_of(case.receipt.get('started_at'))})", found, do)


def _drifted(case: _Case) -> Iterator[Finding]:
    lines = "; ".join(case.change.reasons) if case.change.action == RESTART else ""
    do = "run the playbook with what is wanted, or go back to what was accepted (inferops.sglang.rollback)"
    if lines:
        since = "" if case.is_the_accepted_start or not case.runs else "; the server was started since"
        runs = "; the server still runs what was accepted" if case.is_the_accepted_start else since
        yield Finding("drift", None, "the unit that was accepted", f"a unit on the disk that differs: {lines}{runs}", do)
    elif case.is_of_other_files and case.seen.service is not None:
        found = f"a process that was started from other files (digest {case.seen.service.digest or 'none'})"
        yield Finding("drift", None, f"what was accepted (digest {text_of(case.receipt.get('digest'))})", found, do)


def _drained(case: _Case) -> Iterator[Finding]:
    if case.seen.drained_since:
        found = f"taken out of its balancers ({case.seen.drained_since}) and not put back"
        do = "run the playbook for this host, which puts it back once it is accepted; while a rollout is under way, wait for its end"
        yield Finding("drained", None, "a server that gets requests", found, do)


_CHECKS = (_readable, _running, _receipts, _drifted, _restarted, _boot, _answering, _drained)


# --- what is worth a word ---------------------------------------------------------------------------------------------


def _by_hand(case: _Case, _terms: Terms) -> Iterator[str]:
    if not case.seen.name:
        yield f"the role did not write this unit; sglang_adopt: {case.seen.unit} takes it over"


def _started_again(case: _Case, _terms: Terms) -> Iterator[str]:
    service, accepted = case.seen.service, case.receipt.get("invocation_id")
    if case.runs and service is not None and accepted and service.invocation_id != accepted and not service.n_restarts:
        yield "started again since it was accepted (by hand, or with the host); this start is judged by its own journal"


def _reloads(case: _Case, _terms: Terms) -> Iterator[str]:
    later = [item.line for item in case.change.differences if item.action != RESTART]
    if later:
        yield f"the unit on the disk differs from the accepted one in what the process does not get: {'; '.join(later)}"


def _unlogged(case: _Case, _terms: Terms) -> Iterator[str]:
    if case.outlived_its_log:
        yield "the journal has lost this start; its figures are those that the gate proved for this very start"
    elif case.runs:
        yield from case.seen.gaps


def _estimate(case: _Case, _terms: Terms) -> Iterator[str]:
    predicted, (tokens, _proof) = count(case.receipt.get("predicted_tokens")), _proved(case)
    if predicted and tokens and abs(tokens - predicted) > FAR_OFF * predicted:
        off = tokens - predicted
        yield (
            f"the plan said {predicted:,} tokens and the smallest rank has {tokens:,}, {abs(off):,} {'more' if off > 0 else 'fewer'}: "
            "a new plan learns from this start"
        )


def _idle_rank(case: _Case, terms: Terms) -> Iterator[str]:
    """Memory that stays free beside the pools of all ranks; without cards of their own it is not theirs."""
    left = number_of(case.allocation.get("min_avail_gib"))
    args = case.allocation.get("server_args")
    if not case.runs or left is None or (isinstance(args, Mapping) and args.get("device") == "cpu"):
        return
    spare = left - terms.headroom_gib
    if spare >= SPARE_GIB:
        yield f"{left:.2f} GiB stay free on every card, {spare:.2f} more than the headroom of {terms.headroom_gib:g}"


_WARNINGS = (_by_hand, _started_again, _reloads, _unlogged, _estimate, _idle_rank)


# --- the host ---------------------------------------------------------------------------------------------------------


def audit_of(host: HostFacts, terms: Terms) -> dict[str, Any]:
    """The host as the module returns it: instances, gpus, findings and warnings of the host itself."""
    judged = [judge_instance(seen, terms) for seen in host.instances]
    cards, idle = _cards(host.cards, host.instances)
    findings = []
    if host.gpu_error:
        findings.append(Finding("gpus", None, "the cards of this host", host.gpu_error, "see why: a start needs them"))
    return {
        "instances": [instance_data(one) for one in judged],
        "gpus": cards,
        "idle_gib": round(sum(card.free_gib for card in idle), 2),
        "findings": [_finding_data(finding) for finding in findings],
        "warnings": [_idle_words(idle)] if idle and host.instances else [],
    }


def instance_data(judged: Judged) -> dict[str, Any]:
    """One instance as plain data."""
    seen, receipt, allocation = judged.seen, judged.receipt, judged.seen.allocation or {}
    service = seen.service
    # figures of a start that is over are in its allocation, and nowhere else
    boot = receipt if judged.proof == "receipt" else allocation if judged.runs else {}
    return {
        "name": seen.name or seen.unit[: -len(".service")],
        "unit": seen.unit,
        "instance": seen.name,
        "path": seen.path,
        "drop_ins": list(seen.drop_ins),
        "enabled": seen.enabled,
        "active_state": service.active_state if service else "unknown",
        "sub_state": service.sub_state if service else "",
        "restarts": service.n_restarts if service else None,
        "invocation_id": service.invocation_id if service else "",
        "started_at": boot.get("started_at"),
        "sglang_version": allocation.get("sglang_version") or receipt.get("sglang_version"),
        "release": receipt.get("release") or seen.server.image or seen.server.python_home,
        "mem_fraction_static": _fraction(judged),
        "required_tokens": judged.required_tokens,
        "required_by": judged.required_by,
        "min_tokens": judged.min_tokens,
        "proof": judged.proof,
        "predicted_tokens": count(receipt.get("predicted_tokens")),
        "headroom_gib": number_of(boot.get("headroom_gib", boot.get("min_avail_gib"))),
        "answer": asdict(seen.answer),
        "drained": bool(seen.drained_since),
        "drift": list(judged.drift),
        "flags": {name: HIDDEN if is_secret_flag(name) else value for name, value in plain(seen.server).items()},
        "checkpoints": receipt.get("checkpoints") if isinstance(receipt.get("checkpoints"), Mapping) else {},
        "accepted": judged.accepted,
        "findings": [_finding_data(finding) for finding in judged.findings],
        "warnings": list(judged.warnings),
        "rows": _kept_rows(judged) if boot is receipt else as_data(judged.verdict)["rows"] if judged.runs else [],
        "receipt": {**receipt},
        "allocation": {**allocation},
    }


def _fraction(judged: Judged) -> Optional[float]:
    args = (judged.seen.allocation or {}).get("server_args")
    running = number_of(args.get("mem_fraction_static")) if isinstance(args, Mapping) else None
    return running if running is not None else number_of(judged.seen.server.flags.get("mem-fraction-static"))


def _kept_rows(judged: Judged) -> list[dict[str, Any]]:
    """The ranks as the receipt has them."""
    pools = judged.receipt.get("tokens_per_rank")
    return [
        {"rank": str(name), "tokens": count(tokens), "spare": (count(tokens) or 0) - judged.required_tokens, "word": "ok"}
        for name, tokens in (pools.items() if isinstance(pools, Mapping) else ())
    ]


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "rank": finding.rank.name if finding.rank else None}


def _cards(found: Optional[Accelerators], instances: Iterable[Instance]) -> tuple[list[dict[str, Any]], list[Gpu]]:
    """The cards with the units that hold memory of them, and those that nobody holds any of."""
    if found is None:
        return [], []
    shown, idle = [], []
    for card in found.cards:
        pids = {process.pid for process in found.processes if process.gpu in (card.index, None)}
        units = [instance.unit for instance in instances if pids & instance.pids]
        shown.append({**card.as_dict(), "units": units})
        if not pids and card.used_gib < SPARE_GIB:
            idle.append(card)
    return shown, idle


def _idle_words(idle: Sequence[Gpu]) -> str:
    cards = ", ".join(str(card.index) for card in idle)
    return f"nothing uses card{'s' * (len(idle) > 1)} {cards}: {sum(card.free_gib for card in idle):.1f} GiB are idle"


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in sequence(value) or () if isinstance(item, Mapping)]
