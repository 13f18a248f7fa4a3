# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes plugins/module_utils/_flag_table.py from what every release's parser knows.

    PYTHONPATH=tests:.cache/collections .venv/bin/python -m differential.flag_table

To be run when releases.txt gets a line; test_differential.py holds the table against the parsers at every run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, Optional

from differential import compare, sources

TABLE = Path(__file__).resolve().parents[2] / "plugins" / "module_utils" / "_flag_table.py"
WIDTH = 128
# What one parser knows (oracle/flags.py), by release, oldest first.
Known = Mapping[str, Mapping[str, Any]]
# First and last release, both indexes.
Span = tuple[int, int]

_HEAD = '''\
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that SGLang's releases know, from their own parsers. Private to this collection: may change at any time.

Written by tests/differential/flag_table.py and held against every release by tests/differential: not to be edited by hand.
A row is the first release, the last one (empty: the newest has it still), and the names, without dashes in front.
"""

from __future__ import annotations

Row = tuple[str, str, str]
'''


def options(known: Known) -> dict[str, dict[int, dict[str, Any]]]:
    """Every option by name, with what each release's parser says of it."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for index, parser in enumerate(known.values()):
        for option in parser["options"]:
            for name in option["names"]:
                found.setdefault(name, {})[index] = option
    return found


def spans(indexes: Iterable[int]) -> list[Span]:
    """Runs of neighbours."""
    runs: list[Span] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


class Writer:
    """The text of the table."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.releases = list(known)
        self.options = options(known)
        self.newest = len(self.releases) - 1

    def text(self) -> str:
        kinds: tuple[tuple[str, str, Callable[[Mapping[str, Any]], bool]], ...] = (
            ("FLAGS", "Every flag.", lambda _option: True),
            ("REFUSED", "Flags that the parser has only to refuse them.", lambda option: option["refused"]),
            ("DEPRECATED", "Flags that still work, or are ignored, with a word that they will go.", self._deprecated),
        )
        releases = [f'"{release}",' for release in self.releases]
        parts = [_HEAD, self._assigned("RELEASES", "The releases, oldest first.", "tuple[str, ...]", releases)]
        for name, comment, wanted in kinds:
            parts.append(self._assigned(name, comment, "tuple[Row, ...]", self._rows(self._grouped(wanted))))
        algorithms = self._rows(self._algorithms())
        parts.append(self._assigned("ALGORITHMS", "What --speculative-algorithm may name.", "tuple[Row, ...]", algorithms))
        parts.append(self._assigned("CHOICES", _CHOICES, "tuple[tuple[str, str, str, str], ...]", self._choices()))
        parts.append(self._words("SWITCHES", "Flags that take no value.", self._always("switch")))
        parts.append(self._words("BARE", "Flags that may stand alone or have values.", self._always("bare") - self._always("switch")))
        parts.append(self._assigned("SAME", "Names of one and the same argument.", "tuple[str, ...]", self._same()))
        return "\n".join(parts)

    def _deprecated(self, option: Mapping[str, Any]) -> bool:
        return bool(option["deprecated"] and not option["refused"])

    def _always(self, key: str) -> set[str]:
        return {name for name, said in self.options.items() if all(option[key] for option in said.values())}

    def _grouped(self, wanted: Callable[[Mapping[str, Any]], bool]) -> dict[Span, list[str]]:
        groups: dict[Span, list[str]] = {}
        for name, said in self.options.items():
            for span in spans(index for index, option in said.items() if wanted(option)):
                groups.setdefault(span, []).append(name)
        return groups

    def _algorithms(self) -> dict[Span, list[str]]:
        names = sorted({name for parser in self.known.values() for name in parser["algorithms"]})
        groups: dict[Span, list[str]] = {}
        for name in names:
            for span in spans(index for index, parser in enumerate(self.known.values()) if name in parser["algorithms"]):
                groups.setdefault(span, []).append(name)
        return groups

    def _rows(self, groups: Mapping[Span, list[str]]) -> list[str]:
        return [self._row(self._bounds(span), sorted(groups[span])) for span in sorted(groups)]

    def _bounds(self, span: Span) -> tuple[str, str]:
        return self.releases[span[0]], "" if span[1] == self.newest else self.releases[span[1]]

    def _row(self, bounds: tuple[str, ...], words: Iterable[str]) -> str:
        head = ", ".join(f'"{bound}"' for bound in bounds)
        lines = textwrap.wrap(" ".join(words), WIDTH - 8, break_on_hyphens=False, break_long_words=False)
        if len(lines) == 1 and len(head) + len(lines[0]) < WIDTH:
            return f'({head}, "{lines[0]}"),'
        texts = [f'        "{line}{" " if line is not lines[-1] else ""}"' for line in lines]
        return "\n".join([f"({head}, (", *texts, "    )),"])

    def _choices(self) -> list[str]:
        """Flags with the same choices in the same releases share a row."""
        rows: dict[tuple[str, str, str], list[str]] = {}
        for name, said in self.options.items():
            for span in spans(index for index, option in said.items() if option["choices"] is not None):
                values: dict[str, list[int]] = {}
                for index in range(span[0], span[1] + 1):
                    for value in said[index]["choices"]:
                        values.setdefault(value, []).append(index)
                words = [self._marked(value, run, span) for value, indexes in values.items() for run in spans(set(indexes))]
                rows.setdefault((*self._bounds(span), " ".join(sorted(words))), []).append(name)
        ordered = sorted((sorted(names), key) for key, names in rows.items())
        return [self._row((" ".join(names), *key[:2]), key[2].split()) for names, key in ordered]

    def _marked(self, value: str, run: Span, span: Span) -> str:
        since = f"@{self.releases[run[0]]}" if run[0] > span[0] else ""
        last = f"..{self.releases[run[1]]}" if run[1] < span[1] else ""
        return f"{value}{since or ('@' if last else '')}{last}"

    def _same(self) -> list[str]:
        groups: list[set[str]] = []
        for parser in self.known.values():
            by_argument: dict[str, set[str]] = {}
            for option in parser["options"]:
                by_argument.setdefault(option["kept_as"], set()).update(option["names"])
            for names in by_argument.values():
                groups = _merged(groups, names) if len(names) > 1 else groups
        return [f'"{" ".join(sorted(names))}",' for names in sorted(groups, key=sorted)]

    def _assigned(self, name: str, comment: str, kind: str, rows: Iterable[str]) -> str:
        lines = [f"# {line}" for line in comment.splitlines()]
        rows = list(rows)
        if name == "RELEASES":
            rows = textwrap.wrap(" ".join(rows), WIDTH, break_on_hyphens=False)
        return "\n".join([*lines, f"{name}: {kind} = (", *(f"    {row}" for row in rows), ")  # fmt: skip", ""])

    def _words(self, name: str, comment: str, words: Iterable[str]) -> str:
        lines = textwrap.wrap(" ".join(sorted(words)), WIDTH - 4, break_on_hyphens=False)
        return "\n".join([f"# {comment}", f"{name} = (", *(f'    "{line} "' for line in lines), ")  # fmt: skip", ""])


_CHOICES = """\
Flags whose values are a closed list in these releases: flags, first, last, values. A value stands for all of them, or says from
which one on (value@first) or up to which one (value@first..last, value@..last)."""


def _merged(groups: list[set[str]], names: set[str]) -> list[set[str]]:
    """The groups with these names as one, together with whatever shares a name with them."""
    touched = [group for group in groups if group & names]
    return [*(group for group in groups if not group & names), set.union(set(names), *touched)]


def ask(release: str) -> Mapping[str, Any]:
    return compare.run(release, []).flags


def main(target: Optional[Path] = None) -> None:
    sources.environment()
    releases = sources.releases()
    with futures.ThreadPoolExecutor(2) as pool:
        known = dict(zip(releases, pool.map(ask, releases)))
    (target or TABLE).write_text(Writer(known).text(), encoding="utf-8")


if __name__ == "__main__":
    main()
