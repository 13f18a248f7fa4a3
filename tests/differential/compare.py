# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the cases of a release through its own sizing code and through memory_plan, and compares the two."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from differential import sources
from differential.arguments import resolved
from differential.cases import MODELS, Case
from differential.predict import Figures, predict
from differential.uncomparable import REASONS, Reason

TESTS = Path(__file__).resolve().parents[1]
# What a release raises where the budget holds no pool: the plan's answer to that is 0 tokens, not a refusal.
NO_POOL = (
    "Not enough memory. Please try to increase",
    "Not enough GPU memory for hybrid",
    "Loaded weights leave no GPU memory for the KV cache",
    "cannot hold even one request",
    "leaves no room for the full KV pool",
)


@dataclass(frozen=True)
class Outcome:
    """One case of one release: what either side said, or why it said nothing."""

    release: str
    case: Case
    predicted: Figures
    printed: Figures
    refusal: Optional[str]
    error: Optional[str]

    @property
    def both_refuse(self) -> bool:
        return self.refusal is not None and self.error is not None

    @property
    def difference(self) -> Optional[int]:
        """Tokens predicted beyond the printed ones; None where a side has none."""
        predicted, printed = self.predicted.get("tokens"), self.printed.get("tokens")
        return None if predicted is None or printed is None else int(predicted - printed)

    @property
    def problem(self) -> str:
        """How the two answers differ, in words; empty where they agree."""
        if self.both_refuse:
            return ""
        if self.error is not None:
            return f"the release refuses ({self.error}), the plan says {self.predicted['tokens']:,.0f} tokens"
        if self.refusal is not None:
            return f"the plan refuses ({self.refusal}), the release says {self.printed['tokens']:,.0f} tokens"
        return self._unequal("tokens") or ""

    @property
    def details(self) -> list[str]:
        """In what the figures under equal answers differ, where both sides tell them."""
        if self.problem or not self.printed.get("tokens"):
            return []
        return [text for text in map(self._unequal, self.printed) if text]

    def _unequal(self, name: str) -> Optional[str]:
        predicted, printed = self.predicted.get(name), self.printed.get(name)
        if predicted is None or printed is None or abs(predicted - printed) < 1e-6:
            return None
        return f"{name}: plan {predicted:,.1f}, release {printed:,.1f}"

    @property
    def reason(self) -> Optional[Reason]:
        """Why this case cannot be compared, if it is one of those."""
        return next((reason for reason in REASONS if reason.applies(self.case, self.release)), None) if self.problem else None


@dataclass(frozen=True)
class Run:
    """What one process of a release gave: the cases' outcomes, and what its parser knows (oracle/flags.py)."""

    outcomes: list[Outcome]
    flags: dict[str, Any]


def run(release: str, cases: Sequence[Case]) -> Run:
    """The cases, and the flags beside them."""
    answers, flags = ask(release, cases)
    return Run(judge(release, cases, answers, release), flags)


def judge(release: str, cases: Sequence[Case], answers: Sequence[dict[str, Any]], planned_as: str) -> list[Outcome]:
    """A release's answers beside plans for it, or for another release, which must be noticed."""
    return [_outcome(release, case, answer, planned_as) for case, answer in zip(cases, answers)]


def ask(release: str, cases: Sequence[Case]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The release's own answers and its flags, in one process of its own."""
    python, source = sources.environment(), sources.source(release)
    with tempfile.TemporaryDirectory() as folder:
        answers, flags = Path(folder) / "answers", Path(folder) / "flags"
        done = subprocess.run(
            [str(python), "-m", "differential.oracle", str(source), str(answers), str(flags)],
            input=json.dumps([asked(case, release) for case in cases]),
            env={**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = answers.read_text(encoding="utf-8").splitlines() if answers.is_file() else []
        known = flags.read_text(encoding="utf-8") if flags.is_file() else ""
    if done.returncode or len(lines) != len(cases) or not known:
        raise sources.SourceError(
            f"wanted: {len(cases)} answers of SGLang {release}; found: {len(lines)} and exit status {done.returncode}: "
            f"{done.stderr.strip()[-2000:]}; mend tests/differential/oracle for this release"
        )
    return [json.loads(line) for line in lines], json.loads(known)


def asked(case: Case, release: str) -> dict[str, Any]:
    """A case as the release is asked it: its flags as they are when it sizes; next-token layers are a draft that is the model."""
    draft = case.draft or (case.model if case.algorithm == "NEXTN" else None)
    models = {"model": str(MODELS / case.model), "draft_model": str(MODELS / draft) if draft else None}
    return {**resolved(case, release), **models, "draft_is_named": case.draft_is_named}


def _outcome(release: str, case: Case, answer: dict[str, Any], planned_as: str) -> Outcome:
    predicted, refusal = predict(case, planned_as)
    error = answer.get("error")
    printed = {} if error else {**answer, "tokens": answer["tokens"] * case.options.get("dcp_size", 1)}
    if error and any(text in error for text in NO_POOL):
        printed, error = {"tokens": 0}, None
    return Outcome(release, case, predicted, printed, refusal, error)
