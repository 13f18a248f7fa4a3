# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows at the terminal how something long goes on. Private to this collection: may change at any time.

The module does the work on the host. Given C(since), it comes back as soon as it has news, with C(progress): what the next call is told.
Each time one line is printed and the module is called again, so no state is kept on the host. Where nothing has to be waited for, that
is one call and no line. The lines go to standard error, so that output made for programs stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Optional

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class WatchingAction(ActionBase):
    """Calls C(module) until it returns without C(progress), and prints C(line) each time there is news."""

    _supports_check_mode = True
    _supports_async = True
    module = ""

    def is_watched(self, arguments: Mapping[str, Any]) -> bool:
        """Whether these arguments ask for something that may take long."""
        raise NotImplementedError

    def line(self, host: str, arguments: Mapping[str, Any], seen: Mapping[str, Any], waited_s: float) -> str:
        """What to print about a result that came ``waited_s`` seconds after the first call."""
        raise NotImplementedError

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if self._task.async_val or self._task.check_mode or arguments.get("since") or not self.is_watched(arguments):
            in_background = bool(self._task.async_val) and not self._connection.has_native_async
            return {**result, **self._execute_module(self.module, module_args=arguments, task_vars=task_vars, wrap_async=in_background)}
        return {**result, **self._watch(arguments, task_vars or {})}

    def _watch(self, arguments: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        host = task_vars.get("inventory_hostname", "localhost")
        host += f" -> {self._task.delegate_to}" if self._task.delegate_to else ""
        known: dict[str, Any] = {}
        polls, waited_s, began = 0, 0.0, time.monotonic()
        while True:
            seen = self._execute_module(self.module, module_args={**arguments, "since": known}, task_vars=task_vars)
            # what the calls themselves take is waiting, too
            polls, waited_s = polls + seen.get("polls", 0), max(seen.get("waited_s", 0.0), int(time.monotonic() - began))
            progress = seen.pop("progress", None)
            if not self._task.no_log and (progress is not None or known):
                Display().display(self.line(host, arguments, seen, waited_s), stderr=True)
            if progress is None:
                return {**seen, "polls": polls} if polls else seen
            known = {**progress, "waited_s": waited_s}
