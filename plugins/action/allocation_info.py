# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows at the terminal how a start goes on while M(inferops.sglang.allocation_info) waits for it.

The module waits on the host and comes back when there is news: another phase, a further tenth of the weights, or five minutes gone.
Each time one line is printed and the module is called again with what is known already, so no state is kept on the host. A server
that is already there costs one call and no line. The lines go to standard error, so that output made for programs stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Optional

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

MODULE = "inferops.sglang.allocation_info"


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def progress_line(host: str, unit: str, allocation: Optional[Mapping[str, Any]], waited_s: float) -> str:
    """One line about a start: host, unit, phase and how far it is, how long it has been waited for, and what it waits for."""
    seen = allocation or {}
    percent = seen.get("phase_percent")
    phase = (seen.get("phase") or "not started yet") + (f" {percent} %" if percent is not None else "")
    failure, waits = seen.get("failure"), seen.get("waiting_for")
    parts = (f"[{host}] {unit}", phase, duration(waited_s), failure["kind"] if failure else f"waits for {waits}" if waits else None)
    return " | ".join(part for part in parts if part)


class ActionModule(ActionBase):
    """Runs the module until its outcome is certain."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if not self._is_watched(arguments):
            in_background = bool(self._task.async_val) and not self._connection.has_native_async
            return {**result, **self._execute_module(MODULE, module_args=arguments, task_vars=task_vars, wrap_async=in_background)}
        return {**result, **self._watch(arguments, task_vars or {})}

    def _is_watched(self, arguments: Mapping[str, Any]) -> bool:
        """Whether there is a start of this host to wait for, and somebody to tell about it."""
        saved = any(arguments.get(name) for name in ("journal_directory", "journal_files", "log_files", "log_text", "since"))
        waits = arguments.get("wait_for", "none") in ("pool", "ready")
        return waits and not saved and not self._task.async_val and not self._task.check_mode

    def _watch(self, arguments: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        host, unit = task_vars.get("inventory_hostname", "localhost"), str(arguments.get("unit"))
        host += f" -> {self._task.delegate_to}" if self._task.delegate_to else ""
        known: dict[str, Any] = {}
        polls, waited_s, began = 0, 0.0, time.monotonic()
        while True:
            seen = self._execute_module(MODULE, module_args={**arguments, "since": known}, task_vars=task_vars)
            # what the calls themselves take is waiting, too
            polls, waited_s = polls + seen.get("polls", 0), max(seen.get("waited_s", 0.0), int(time.monotonic() - began))
            progress = seen.pop("progress", None)
            if not self._task.no_log and (progress is not None or known):
                Display().display(progress_line(host, unit, seen.get("allocation"), waited_s), stderr=True)
            if progress is None:
                return {**seen, "polls": polls} if polls else seen
            known = {**progress, "waited_s": waited_s}
