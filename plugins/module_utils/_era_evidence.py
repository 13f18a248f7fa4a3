# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release's rules explain the starts that were observed. Private to this collection: may change at any time.

A branch need not size as the release that its version string names, and some strings name none. What a start shows is
better evidence: the order in which target, draft and pool appear in its log, the wording of the pool line, and whether the
pool is the one that a release's bytes per token give. Memory that is printed with two decimals tells releases apart that
differ by more than a few hundred tokens; what it cannot tell counts for no release and against none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._eras import ERAS, Era, Version

# The first release whose pool line names the type of the pool.
_TYPED_SINCE = (0, 5, 13)
_ORDERS = ("draft_before_pool", "draft_after_pool")


@dataclass(frozen=True)
class Evidence:
    """What the starts show. ``fits``: does an era's pool explain the pools that they gave? None where they cannot tell."""

    fits: Callable[[Era], Optional[bool]]
    # draft_before_pool | draft_after_pool | None
    order: Optional[str] = None
    # does the pool line name a type? None where no such line is known
    typed: Optional[bool] = None
    # what the pools are: of two starts, or of one
    starts: int = 1

    def order_speaks(self, era: Era) -> Optional[bool]:
        if self.order not in _ORDERS:
            return None
        return self.order == ("draft_before_pool" if era.draft_weights_charged else "draft_after_pool")

    def wording_speaks(self, era: Era) -> Optional[bool]:
        return None if self.typed is None else self.typed == (era.since >= _TYPED_SINCE)

    def against(self, era: Era) -> bool:
        return False in (self.order_speaks(era), self.wording_speaks(era), self.fits(era))

    def said(self, era: Era) -> list[str]:
        """In words, what speaks for this era."""
        pool = "the two pools they gave" if self.starts > 1 else "the pool it gave"
        telling = (
            (self.order_speaks(era), "the order in which the log shows the draft's load"),
            (self.wording_speaks(era), "a pool line " + ("with" if self.typed else "without") + " a type"),
            (self.fits(era), pool),
        )
        return [text for speaks, text in telling if speaks]


def era_of_starts(version: Version, own: Era, evidence: Evidence, plannable: Callable[[Era], bool]) -> tuple[Era, list[str]]:
    """The rules that explain the starts, and what to say about them.

    Those of the version, unless the starts contradict them and others fit. ``plannable``: does an era know this model and
    these flags? Raises InputError where the version names no release and the starts leave it open.
    """
    if not version.known:
        return _without_version(version, evidence, plannable)
    if not evidence.against(own):
        return own, []
    others = [era for era in _nearest_first(own) if not evidence.against(era) and plannable(era)]
    if any(evidence.fits(era) is not None for era in (own, *others)):
        others = [era for era in others if evidence.fits(era)]
    if not others:
        return own, [_unexplained(own)]
    return others[0], [_contradicted(version, own, others[0], evidence)]


def no_release(version: Version) -> InputError:
    """For a version that names no release where no start with a pool can stand in for it."""
    return InputError(
        "the sizing rules of an SGLang version",
        repr(version.text),
        "give the version as the package names it, such as 0.5.12.post1; for a branch give the release it was cut from, "
        "or observed starts that show its pool",
    )


def _without_version(version: Version, evidence: Evidence, plannable: Callable[[Era], bool]) -> tuple[Era, list[str]]:
    """The newest rules that nothing speaks against, if something speaks for them."""
    found = [era for era in reversed(ERAS) if not evidence.against(era) and plannable(era)]
    found = [era for era in found if evidence.said(era)]
    if not found:
        raise InputError(
            f"the sizing rules of SGLang {version.text!r}, which names no release",
            "starts that no release explains, or that show nothing to tell releases by",
            "give the release it was cut from as sglang_version, or a start whose log shows the memory before and after the "
            "weights and the draft's load",
        )
    chosen = found[0]
    others = sorted({era.name for era in found} - {chosen.name})
    doubt = f" (those of {', '.join(others)} would do as well)" if others else ""
    said = " and ".join(evidence.said(chosen))
    return chosen, [
        f"The version string {version.text!r} names no release: planned by the rules of {chosen.name}{doubt}, which the observed "
        f"starts show by {said}."
    ]


def _nearest_first(own: Era) -> list[Era]:
    """The other rows of the table, those of the nearest releases first."""
    index = ERAS.index(own)
    return sorted((era for era in ERAS if era is not own), key=lambda era: abs(ERAS.index(era) - index))


def _contradicted(version: Version, own: Era, era: Era, evidence: Evidence) -> str:
    against = [text for text in evidence.said(era) if text not in evidence.said(own)]
    what = " and ".join(against) or "what the log shows"
    return (
        f"The version string says {version.text} (rules of {own.name}), but {what} {'are' if len(against) > 1 else 'is'} that of "
        f"{era.name}: planned by the rules of {era.name}."
    )


def _unexplained(own: Era) -> str:
    return f"No known release explains the observed starts (rules of {own.name}): planned along the line that their own figures draw."
