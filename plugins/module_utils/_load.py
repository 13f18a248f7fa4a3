# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests an SGLang server has under way. Private to this collection: may change at any time.

Only the server knows: a router's own figures leave streams out, and know nothing of a worker once it is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._http import Opener, Question, ask, plain, refused

_SERVES_NOBODY = "nobody listens there"


@dataclass(frozen=True)
class Load:
    """``requests``: running and waiting ones of all replicas, none where that cannot be known, and ``why``."""

    requests: Optional[int]
    why: str = ""


@dataclass(frozen=True)
class _Route:
    """A route of some releases, and how its answer is counted; none where the answer is no such answer."""

    path: str
    releases: str
    count: Callable[[Any], Optional[int]]


def _of_snapshot(content: Any) -> Optional[int]:
    loads = content.get("loads") if isinstance(content, dict) else None
    return _sum(loads, ("num_running_reqs", "num_waiting_reqs"))


def _of_list(content: Any) -> Optional[int]:
    # num_reqs has those that wait in it
    return _sum(content, ("num_reqs",))


def _sum(loads: Any, names: tuple[str, ...]) -> Optional[int]:
    if not isinstance(loads, list) or not loads or not all(isinstance(load, dict) for load in loads):
        return None
    figures = [load.get(name) for load in loads for name in names]
    counts = [figure for figure in figures if isinstance(figure, int) and not isinstance(figure, bool)]
    return sum(counts) if len(counts) == len(figures) else None


ROUTES = (
    _Route("/v1/loads", "0.5.8 and newer", _of_snapshot),
    _Route("/get_load", "0.5.3 to 0.5.20", _of_list),
)


def read_load(opener: Opener, url: str, key: str = "", timeout_s: float = 10.0) -> Load:
    """Never raises: what cannot be known is said."""
    why = ""
    for route in ROUTES:
        try:
            said = ask(opener, Question("GET", url.rstrip("/") + route.path, key=key, timeout_s=timeout_s))
        except OSError as error:
            return Load(0, _SERVES_NOBODY) if refused(error) else Load(None, f"{route.path}: {plain(error)}")
        count = route.count(said.content) if said.status == 200 else None
        if count is not None:
            return Load(count)
        if said.status != 404:
            return Load(None, f"{route.path}: {said.brief}")
        why = "neither " + " nor ".join(f"{known.path} (SGLang {known.releases})" for known in ROUTES)
    return Load(None, why)
