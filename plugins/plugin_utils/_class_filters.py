# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters over classes of equal hosts. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils import _lessons
from ansible_collections.inferops.sglang.plugins.module_utils._fleet_class import Ingredients, class_of


def fleet_class(
    host: Mapping[str, Any],
    flags: Mapping[str, Any],
    sglang_version: str = "",
    release: str = "",
    device: str = "",
    gpu_free_gib: Sequence[Any] = (),
    weights_gib: float = 0.0,
    draft_weights_gib: float = 0.0,
) -> dict[str, Any]:
    """The class of a host, from what C(preflight_info) found on it and from what is to run there."""
    if not isinstance(host, Mapping) or not isinstance(flags, Mapping):
        raise AnsibleFilterError(
            f"fleet_class: asked for the class of a host, found {type(host).__name__} with {type(flags).__name__} as flags; "
            "give the result of inferops.sglang.preflight_info, and the server's flags by name"
        )
    what = Ingredients(
        cards=list(host.get("gpus") or ()),
        free_gib=[_gib(value, "gpu_free_gib") for value in gpu_free_gib],
        sglang_version=str(sglang_version),
        release=str(release),
        checkpoints=host.get("checkpoints") or {},
        weights_gib=_gib(weights_gib, "weights_gib"),
        draft_weights_gib=_gib(draft_weights_gib, "draft_weights_gib"),
        device=str(device),
        flags=flags,
    )
    return class_of(what).as_dict()


def fleet_boots(
    lessons: Mapping[str, Any], key: str, free_gib: float, own: Sequence[Mapping[str, Any]] = (), given: bool = False
) -> list[dict[str, Any]]:
    """Starts of other hosts of this class, as they would have looked on a host with so much free."""
    if not isinstance(lessons, Mapping):
        raise AnsibleFilterError(
            f"fleet_boots: asked for the starts of a class, found {type(lessons).__name__}; give lessons by the key of their class"
        )
    return _lessons.fleet_boots(lessons, str(key), _gib(free_gib, "free_gib"), own, bool(given))


def _gib(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise AnsibleFilterError(f"{name}: asked for GiB, found {value!r}; give a number") from None
