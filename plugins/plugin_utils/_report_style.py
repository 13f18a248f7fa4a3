# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Colours and style of a report's page. Private to this collection: may change at any time.

Texts stand out from what is behind them by 4.5 to 1 at the least, what is drawn by 3 to 1, by day and by night.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

LIGHT = {
    "ground": "#f3f5f7", "sheet": "#ffffff", "ink": "#15191e", "quiet": "#55606c", "rule": "#d9dfe5", "faint": "#edf0f3",
    "good": "#12707c", "good-soft": "#d9eef0", "bad": "#b3261e", "bad-soft": "#fbe9e7", "warn": "#855300", "warn-soft": "#fbf0d9",
    "way": "#2b5cab", "way-soft": "#e4ecf9",
    "starting": "#7d8793", "weights": "#3f74c4", "pool": "#12808e", "capture": "#8656b0", "warmup": "#b06c10",
}  # fmt: skip
DARK = {
    "ground": "#0f1215", "sheet": "#171b20", "ink": "#e8ebee", "quiet": "#9ba6b2", "rule": "#2d343c", "faint": "#20262c",
    "good": "#5cbcc8", "good-soft": "#12343a", "bad": "#ff8d80", "bad-soft": "#3b1b19", "warn": "#e6b45c", "warn-soft": "#362a12",
    "way": "#8bb2f3", "way-soft": "#1b2a45",
    "starting": "#8a95a1", "weights": "#6f9fe8", "pool": "#4bb3c0", "capture": "#b48adb", "warmup": "#dba04a",
}  # fmt: skip


@cache
def style() -> str:
    """The style sheet of the page."""
    with open(os.path.join(os.path.dirname(__file__), "report.css"), encoding="utf-8") as file:
        rules = file.read()
    return (
        f":root{{color-scheme:light dark;{_variables(LIGHT)}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}\n"
        f"@media print{{:root{{color-scheme:light;{_variables(LIGHT)}}}}}\n{rules}"
    )


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())
