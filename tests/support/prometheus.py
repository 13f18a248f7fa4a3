# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus' text format, as strictly as its own manual: what it does not allow is an error."""

from __future__ import annotations

import re

_SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"(?:,(?=[a-zA-Z_])|(?=\})))*)\} (-?\d+(?:\.\d+)?(?:e-?\d+)?)'
)


def parsed(text: str) -> dict[str, list[tuple[str, float]]]:
    """Labels and value of every sample, by its metric. Each metric is in one piece, behind its HELP and its TYPE, and no sample is there
    twice."""
    found: dict[str, list[tuple[str, float]]] = {}
    said: list[str] = []
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            _hash, word, name, rest = line.split(" ", 3)
            assert word == "HELP" or (word, rest, said) == ("TYPE", "gauge", [name]), line
            assert name not in found, line
            said = [name] if word == "HELP" else [name, name]
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        assert said == [sample[1], sample[1]], line
        samples = found.setdefault(sample[1], [])
        assert sample[2] not in [labels for labels, _value in samples], line
        samples.append((sample[2], float(sample[3])))
    return found
