# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows at the terminal how a start goes on while M(inferops.sglang.allocation_info) waits for it.

There is news with another phase, a further tenth of the weights, or five minutes gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.plugin_utils._watch import WatchingAction, duration


def progress_line(host: str, unit: str, allocation: Optional[Mapping[str, Any]], waited_s: float) -> str:
    """One line about a start: host, unit, phase and how far it is, how long it has been waited for, and what it waits for."""
    seen = allocation or {}
    percent = seen.get("phase_percent")
    phase = (seen.get("phase") or "not started yet") + (f" {percent} %" if percent is not None else "")
    failure, waits = seen.get("failure"), seen.get("waiting_for")
    parts = (f"[{host}] {unit}", phase, duration(waited_s), failure["kind"] if failure else f"waits for {waits}" if waits else None)
    return " | ".join(part for part in parts if part)


class ActionModule(WatchingAction):
    """Runs the module until its outcome is certain."""

    module = "inferops.sglang.allocation_info"

    def is_watched(self, arguments: Mapping[str, Any]) -> bool:
        """Whether there is a start of this host to wait for."""
        saved = any(arguments.get(name) for name in ("journal_directory", "journal_files", "log_files", "log_text"))
        return arguments.get("wait_for", "none") in ("pool", "ready") and not saved

    def line(self, host: str, arguments: Mapping[str, Any], seen: Mapping[str, Any], waited_s: float) -> str:
        return progress_line(host, str(arguments.get("unit")), seen.get("allocation"), waited_s)
