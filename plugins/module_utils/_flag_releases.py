# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the table of flags for one SGLang version. Private to this collection: may change at any time.

The table has not every release that was ever published. A version between two of them may have what either has, so what is said of
it as certain is what both agree on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils import _flag_table as table
from ansible_collections.inferops.sglang.plugins.module_utils._eras import read_version

RELEASE_INDEX = {release: index for index, release in enumerate(table.RELEASES)}
_NEWEST = len(table.RELEASES) - 1
_ARGUMENT: dict[str, str] = {name: names.split()[0] for names in table.SAME for name in names.split()}
SWITCHES = frozenset(table.SWITCHES.split())
BARE = frozenset(table.BARE.split())


@dataclass(frozen=True)
class Version:
    """A version among the releases of the table. ``sure``: it is one of them, or lies between two of them."""

    text: str
    nearest: tuple[int, ...]
    sure: bool
    newer: bool

    def within(self, since: str, last: str) -> bool:
        """Whether this version lies in a span of the table for certain; ``last`` empty: up to the newest and beyond."""
        return all(RELEASE_INDEX[since] <= index <= (RELEASE_INDEX[last] if last else _NEWEST) for index in self.nearest)

    def may_be_within(self, since: str, last: str) -> bool:
        return any(RELEASE_INDEX[since] <= index <= (RELEASE_INDEX[last] if last else _NEWEST) for index in self.nearest)


def version_of(text: str) -> Version:
    """``0.5.12.post1`` and the like. A branch, a development version and one newer than the table are not ``sure``.

    Raises InputError for no text at all.
    """
    parsed = read_version(text)
    key = (*parsed.release, parsed.post)
    keys = [_key(release) for release in table.RELEASES]
    below = [index for index, other in enumerate(keys) if other <= key]
    above = [index for index, other in enumerate(keys) if other >= key]
    nearest = {*below[-1:], *above[:1]}
    released = parsed.known and not parsed.notes
    return Version(parsed.text, tuple(sorted(nearest)), released and bool(below) and bool(above), not above)


def _key(release: str) -> tuple[int, ...]:
    parsed = read_version(release)
    return (*parsed.release, parsed.post)


def argument_of(flag: str) -> str:
    """One name for all flags that set the same argument."""
    return _ARGUMENT.get(flag, flag)


@cache
def spans_of(flag: str) -> tuple[tuple[str, str], ...]:
    """The releases that know a flag: first and last of every run; last empty where the newest has it."""
    return tuple((since, last) for since, last, names in table.FLAGS if flag in names.split())


@cache
def names_in(index: int) -> frozenset[str]:
    """All flags of one release of the table."""
    release = Version("", (index,), True, False)
    return frozenset(name for since, last, names in table.FLAGS if release.within(since, last) for name in names.split())


def known(flag: str, version: Version) -> bool:
    """Whether this version may know the flag."""
    return any(flag in names_in(index) for index in version.nearest)


def full_names(start: str, version: Version) -> tuple[str, ...]:
    """The flags that begin so; argparse takes the one that does for it."""
    names: set[str] = set().union(*(names_in(index) for index in version.nearest))
    return tuple(sorted(name for name in names if name.startswith(start)))


def choices_of(flag: str, version: Version) -> Optional[frozenset[str]]:
    """The values that a flag may have; None where it may have any, or where a neighbour in the table lets it."""
    found: set[str] = set()
    for index in version.nearest:
        values = _choices(flag, index)
        if values is None:
            return None
        found |= values
    return frozenset(found)


@cache
def _choices(flag: str, index: int) -> Optional[frozenset[str]]:
    for flags, since, last, values in table.CHOICES:
        if flag in flags.split() and RELEASE_INDEX[since] <= index <= (RELEASE_INDEX[last] if last else _NEWEST):
            return frozenset(value for value in _at(values.split(), index))
    return None


def _at(values: Iterable[str], index: int) -> Iterable[str]:
    """The values of one release out of ``value``, ``value@first``, ``value@first..last`` and ``value@..last``."""
    for text in values:
        value, _mark, when = text.partition("@")
        first, _dots, last = when.partition("..")
        if (not first or RELEASE_INDEX[first] <= index) and (not last or index <= RELEASE_INDEX[last]):
            yield value


def algorithms_of(version: Version) -> frozenset[str]:
    return frozenset(_listed(table.ALGORITHMS, version, sure=False))


def is_refused(flag: str, version: Version) -> bool:
    """Whether the parser has the flag only to refuse it."""
    return flag in _listed(table.REFUSED, version, sure=True)


def is_deprecated(flag: str, version: Version) -> bool:
    return flag in _listed(table.DEPRECATED, version, sure=True)


def _listed(rows: tuple[table.Row, ...], version: Version, sure: bool) -> list[str]:
    inside = version.within if sure else version.may_be_within
    return [name for since, last, names in rows if inside(since, last) for name in names.split()]


def releases_text(spans: Iterable[tuple[str, str]]) -> str:
    """``0.5.11 to 0.5.19``, ``0.5.12.post1 and newer``, several joined."""
    return ", ".join(since if since == last else f"{since} to {last}" if last else f"{since} and newer" for since, last in spans)
