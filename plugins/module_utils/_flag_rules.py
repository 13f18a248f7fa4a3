# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags of ``sglang.launch_server`` against the release that shall take them. Private to this collection: may change at any time.

What a release knows stands in _flag_table; what it refuses together stands in _flag_clashes, each with its source.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils import _flag_releases as releases
from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._flag_clashes import clashes, side_notes
from ansible_collections.inferops.sglang.plugins.module_utils._flag_renames import INSTEAD, RENAMED
from ansible_collections.inferops.sglang.plugins.module_utils._flag_request import FlagRequest
from ansible_collections.inferops.sglang.plugins.module_utils._flag_table import RELEASES
from ansible_collections.inferops.sglang.plugins.module_utils._flags import text_of

UNKNOWN = "flag_unknown"
REMOVED = "flag_removed"
VALUE = "flag_value"
TWICE = "flag_twice"
ALGORITHM = "speculative_algorithm"
_NEWEST = RELEASES[-1]


def flag_findings(
    version: str,
    flags: Mapping[str, Any],
    algorithm: str = "",
    has_ddtree: bool = False,
    *,
    environment: Optional[Mapping[str, Any]] = None,
    draft_block_size: Optional[int] = None,
    required_tokens: int = 0,
) -> tuple[Finding, ...]:
    """What this release refuses or ignores of the flags, and what is known to hurt; in the order of the flags.

    ``version`` as the package names it, such as ``0.5.12.post1``; raises InputError for no text. ``flags``: by name without dashes in
    front; true is a switch, a list is several words, and what is empty or false is not given at all. ``algorithm``: what
    --speculative-algorithm will say, if it is not among the flags. ``has_ddtree``: SGLang comes from a branch that knows more than its
    version says, so nothing is refused for being unknown. ``environment``: variables of the server's process. ``draft_block_size``: of
    the draft's configuration, where SGLang takes 16 if that names none; None if the draft was not read. ``required_tokens``: what the
    pool of every rank must hold.
    """
    request = FlagRequest.of(version, flags, algorithm, has_ddtree, environment, draft_block_size, required_tokens)
    certain = request.version.sure and not has_ddtree
    found = [*_doubles(request), *_algorithm(request)]
    if certain:
        found[:0] = [finding for flag, value in request.given.items() for finding in _of_flag(request.version, flag, value)]
    return (*found, *clashes(request))


def flag_notes(
    version: str,
    flags: Mapping[str, Any],
    algorithm: str = "",
    has_ddtree: bool = False,
    *,
    environment: Optional[Mapping[str, Any]] = None,
    draft_block_size: Optional[int] = None,
    has_api_key: bool = False,
) -> tuple[str, ...]:
    """What is worth knowing of the flags and speaks against nothing; arguments as in flag_findings."""
    request = FlagRequest.of(version, flags, algorithm, has_ddtree, environment, draft_block_size, 0)
    notes = list(side_notes(request, has_api_key))
    if request.version.sure and not has_ddtree:
        return (*(text for flag in request.given for text in _advice(request.version, flag)), *notes)
    unknown = ", ".join(f"--{flag}" for flag in request.given if not releases.known(flag, request.version))
    if not request.version.sure:
        why = f"SGLang {request.version.text} is not in the table of flags ({RELEASES[0]} to {_NEWEST})"
        notes.insert(0, f"{why}; {f'not checked: {unknown}' if unknown else 'the nearest release has them all'}")
    elif unknown:
        notes.insert(0, f"not checked, for the SGLang {request.version.text} that is installed may be a branch: {unknown}")
    return tuple(notes)


def _of_flag(version: releases.Version, flag: str, value: Any) -> Iterator[Finding]:
    """What speaks against one flag: that the release has it not, or not with this value."""
    name = flag
    if not releases.known(flag, version):
        longer = releases.full_names(flag, version)
        if len(longer) != 1:
            yield _unknown(version, flag, longer)
            return
        name = longer[0]
    if releases.is_refused(name, version):
        yield Finding(REMOVED, f"--{flag}", f"that SGLang {version.text} has it only to refuse it", _instead(name, version))
        return
    yield from _of_value(version, name, value)


def _unknown(version: releases.Version, flag: str, longer: tuple[str, ...]) -> Finding:
    asked, spans = f"--{flag}", releases.spans_of(flag)
    if longer and not spans:
        return Finding(UNKNOWN, asked, f"the start of {_joined(longer)} in SGLang {version.text}", "write the flag out")
    if not spans:
        near = difflib.get_close_matches(flag, sorted(releases.full_names("", version)), n=1, cutoff=0.75)
        do = f"write --{near[0]}" if near else "leave it out"
        return Finding(UNKNOWN, asked, f"no such flag in SGLang {version.text} nor in any other release", do)
    known = f"SGLang {version.text}, which has it not; {releases.releases_text(spans)} ha{'s' if _is_one(spans) else 've'} it"
    not_yet = all(not last or releases.RELEASE_INDEX[last] >= version.nearest[0] for _since, last in spans)
    return Finding(UNKNOWN if not_yet else REMOVED, asked, known, _instead(flag, version))


def _is_one(spans: tuple[tuple[str, str], ...]) -> bool:
    return len(spans) == 1 and spans[0][0] == spans[0][1]


def _instead(flag: str, version: releases.Version) -> str:
    """What to write in this version in the place of a flag: another name, old or new, or other words."""
    names = [*RENAMED.get(flag, ()), *(old for old, new in RENAMED.items() if flag in new)]
    here = next((name for name in names if releases.known(name, version) and not releases.is_refused(name, version)), None)
    if here is not None:
        return f"write --{here}, its name there"
    older = [since for since, _last in releases.spans_of(flag) if releases.RELEASE_INDEX[since] > version.nearest[-1]]
    if older:
        return f"leave it out, or use SGLang {older[0]} or newer"
    return INSTEAD.get(flag, "leave it out")


def _of_value(version: releases.Version, flag: str, value: Any) -> Iterator[Finding]:
    asked = f"--{flag} {text_of(value)}"
    if flag in releases.SWITCHES:
        if value is not True:
            yield Finding(VALUE, asked, f"a switch of SGLang {version.text}, which takes no value", "give true, or leave it out")
        return
    if value is True:
        if flag not in releases.BARE:
            yield Finding(VALUE, f"--{flag} alone", f"a flag of SGLang {version.text} that needs a value", "give one")
        return
    choices = releases.choices_of(flag, version)
    wrong = [text_of(word) for word in _words(value) if choices is not None and text_of(word) not in choices]
    if choices is not None and wrong:
        yield Finding(VALUE, asked, f"that SGLang {version.text} knows {_joined(sorted(choices))}", "give one of these")


def _words(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _doubles(request: FlagRequest) -> Iterator[Finding]:
    """Two names of one argument: the later one on the command line wins, whatever the first says."""
    names: dict[str, list[str]] = {}
    for flag in request.given:
        names.setdefault(releases.argument_of(flag), []).append(flag)
    for flags in names.values():
        if len(flags) > 1 and all(releases.known(flag, request.version) for flag in flags):
            both = " and ".join(f"--{flag} {text_of(request.given[flag])}" for flag in flags)
            yield Finding(TWICE, both, "names of one argument, of which the last one wins", "give one of them")


def _algorithm(request: FlagRequest) -> Iterator[Finding]:
    """An algorithm that this release has not; where the parser has a list of them, it says so by its choices."""
    name, version = request.algorithm, request.version
    if request.has_ddtree or not name or name in releases.algorithms_of(version):
        return
    asked = f"--speculative-algorithm {name}"
    if name == "DDTREE":
        do = "install a branch that has it (sglang_git, sglang_wheel), or use DFLASH with the same draft"
        yield Finding(ALGORITHM, asked, f"SGLang {version.text}; no release up to {_NEWEST} has it", do)
        return
    if not version.sure or releases.choices_of("speculative-algorithm", version) is not None:
        return
    known = _joined(sorted(releases.algorithms_of(version)))
    yield Finding(ALGORITHM, asked, f"that SGLang {version.text} knows {known}", "give one of these")


def _advice(version: releases.Version, flag: str) -> Iterator[str]:
    longer = () if releases.known(flag, version) else releases.full_names(flag, version)
    if len(longer) == 1:
        yield f"--{flag} is the start of --{longer[0]}, which SGLang {version.text} takes it for; write it out"
    elif releases.is_deprecated(flag, version):
        advice = _instead(flag, version) if flag in RENAMED else INSTEAD.get(flag, "it will go")
        yield f"--{flag} is deprecated in SGLang {version.text}: {advice}"


def _joined(names: Any) -> str:
    return ", ".join(names)
