# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows at the terminal how an installation goes on while M(inferops.sglang.release) waits for it.

There is news when the installer is at something else, and every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.inferops.sglang.plugins.plugin_utils._watch import WatchingAction, duration


class ActionModule(WatchingAction):
    """Runs the module until the environment is there."""

    module = "inferops.sglang.release"

    def is_watched(self, arguments: Mapping[str, Any]) -> bool:
        return arguments.get("state", "present") == "present" and not arguments.get("existing")

    def line(self, host: str, arguments: Mapping[str, Any], seen: Mapping[str, Any], waited_s: float) -> str:
        phase = seen.get("phase") or ("failed" if seen.get("failed") else "is installed")
        size = seen.get("size_gb")
        parts = (f"[{host}] SGLang {arguments.get('version')}", phase, duration(waited_s), f"{size} GB" if size else "")
        return " | ".join(part for part in parts if part)
