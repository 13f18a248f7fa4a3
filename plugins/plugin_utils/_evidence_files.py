# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of evidence on the controller, for their owner alone. Private to this collection: may change at any time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._made import write_whole

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:-]{0,254}")


def write_evidence(directory: str, texts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Writes each text whole or not at all. Returns the names of the files, and what could not be written; raises nothing for it."""
    written: list[str] = []
    try:
        _make(directory)
        for name, content in texts.items():
            if content and _NAME.fullmatch(name):
                write_whole(os.path.join(directory, name), _text(content), 0o600)
                written.append(name)
    except OSError as error:
        return written, [
            f"asked to write {error.filename or directory}, found {error.strerror or error}; "
            "make the directory writable, or give another as sglang_report_dir (empty keeps none)"
        ]
    return written, []


def _make(directory: str) -> None:
    """The folder, and what is missing above it, for the owner alone."""
    missing, folder = [], os.path.abspath(directory)
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        # other hosts may be refused at the same time
        os.makedirs(path, 0o700, exist_ok=True)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"
