# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows at the terminal that an image is still being pulled while M(inferops.sglang.container_image) waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.inferops.sglang.plugins.plugin_utils._watch import WatchingAction, duration


class ActionModule(WatchingAction):
    """Runs the module until the image is there."""

    module = "inferops.sglang.container_image"

    def is_watched(self, arguments: Mapping[str, Any]) -> bool:
        return boolean(arguments.get("pull", True), strict=False)

    def line(self, host: str, arguments: Mapping[str, Any], seen: Mapping[str, Any], waited_s: float) -> str:
        phase = "failed" if seen.get("failed") else "is there" if seen.get("image") else "is pulled"
        return f"[{host}] image {arguments.get('name')} | {phase} | {duration(waited_s)}"
