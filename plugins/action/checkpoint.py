# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows at the terminal how far M(inferops.sglang.checkpoint) is.

There is news with another stage, a further tenth, or a minute gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.inferops.sglang.plugins.plugin_utils._watch import WatchingAction, duration


def progress_line(host: str, path: str, seen: Mapping[str, Any], waited_s: float) -> str:
    """One line about a model that is being fetched: host, directory, what is done, how far it is, how long that has taken, and GiB."""
    progress = seen.get("now")
    if progress is None:
        done = f"{seen.get('fetched_gib', 0):.1f} GiB fetched"
        return " | ".join((f"[{host}] {path}", "failed" if seen.get("failed") else "complete", duration(waited_s), done))
    percent = f"{progress['percent']} %" if progress.get("percent") is not None else None
    parts = (f"[{host}] {path}", progress["stage"], percent, duration(waited_s), f"{progress['fetched_gib']:.1f} GiB")
    return " | ".join(part for part in parts if part)


class ActionModule(WatchingAction):
    """Runs the module until the checkpoint is there."""

    module = "inferops.sglang.checkpoint"

    def is_watched(self, arguments: Mapping[str, Any]) -> bool:
        """Whether something may have to be fetched."""
        return not arguments.get("check_only")

    def line(self, host: str, arguments: Mapping[str, Any], seen: Mapping[str, Any], waited_s: float) -> str:
        return progress_line(host, str(arguments.get("path")), seen, waited_s)
