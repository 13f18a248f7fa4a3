# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does something to the world right before a task of a play begins: a host is lost, or the controller is killed.

INFEROPS_AT_TASK: JSON, {"task": its name, "turn": which time it comes up, 1 for the first, "run": a shell command}. The play waits for the
command, so what it does is done when the task begins.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: at_task
type: notification
short_description: Runs a command when a task of a play comes up
description:
  - For tests alone.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "at_task"

    def __init__(self) -> None:
        super().__init__()
        self._wish = json.loads(os.environ.get("INFEROPS_AT_TASK", "{}"))
        self._turn = 0

    def v2_playbook_on_task_start(self, task: Any, **_conditional: Any) -> None:
        if not self._wish or task.get_name().rpartition(" : ")[2] != self._wish["task"]:
            return
        self._turn += 1
        if self._turn == self._wish["turn"]:
            subprocess.run(["sh", "-c", self._wish["run"]], check=True)
