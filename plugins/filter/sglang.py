# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over allocations, units, models, the hosts of a play, and what earlier runs kept: plugins/plugin_utils/_*_filters.py.

Ansible loads this file anew in the process of every task that templates, so what a filter needs is loaded when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ansible.template import accept_args_markers, accept_lazy_markers

_ROOMS = {
    "_class_filters": ("fleet_boots", "fleet_class"),
    "_fleet_filters": ("model_turn",),
    "_plan_filters": ("kv_bytes", "mem_fraction", "memory_plan"),
    "_query": ("query",),
    "_record_filters": ("kept_json", "rank_name"),
    "_unit_filters": ("unit_action", "unit_changes", "unit_digest", "unit_variables"),
    "_verdict_filters": ("verdict",),
}
# these refuse by themselves what is undefined, as a whole or inside
_TAKE_ALL = ("verdict",)


def _late(room: str, name: str) -> Callable[..., Any]:
    """The filter of this name; its room is loaded by the first call."""

    def call(*args: Any, **options: Any) -> Any:
        module = import_module(f"ansible_collections.inferops.sglang.plugins.plugin_utils.{room}")
        return getattr(module, name)(*args, **options)

    return accept_args_markers(accept_lazy_markers(call)) if name in _TAKE_ALL else call


class FilterModule:
    """Filters of inferops.sglang."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {name: _late(room, name) for room, names in _ROOMS.items() for name in names}
