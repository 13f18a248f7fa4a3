# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of a report: what logs say made harmless, numbers and times as people read them. Private: may change at any time."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Optional

MAX_TEXT = 4000  # characters of one text on a page
LAST_SECOND = 32503680000.0  # the year 3000: a later time is no time
_DASH = "\u2013"

# what a terminal takes as a command: colours, movements of the cursor, titles
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# controls, what turns the direction of writing around, and what no encoding has; a new line and a tab are none
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)


def shown(value: Any, most: int = MAX_TEXT) -> str:
    """A text without commands for a terminal; a character that nobody sees stands as its number, what is too long is cut."""
    text = "" if value is None else value if isinstance(value, str) else str(value)
    text = _ANSI.sub("", text[: 2 * most].replace("\r\n", "\n"))
    text = _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text).strip()
    return text if len(text) <= most else text[: most - 4].rstrip() + " ..."


def first_line(value: Any, most: int = 300) -> str:
    """The first line of a text."""
    return next(iter(shown(value, most).split("\n")), "").strip()


def number(value: Any) -> Optional[float]:
    """A number that can be drawn; None for anything else, a truth value among them."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        real = float(value)
    except OverflowError:
        return None
    return real if -1e15 < real < 1e15 else None


def whole(value: Any) -> Optional[int]:
    """A whole number, None for anything else."""
    real = number(value)
    return None if real is None else round(real)


def count_words(amount: int, one: str, many: str = "") -> str:
    """C(1 host), C(4 hosts)."""
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"


def thousands(value: Optional[float]) -> str:
    """C(200,099); a dash for what is not known."""
    return _DASH if value is None else f"{round(value):,}"


def gib(value: Optional[float]) -> str:
    """Two decimals, as SGLang prints memory."""
    return _DASH if value is None else f"{value:.2f}"


def fraction(value: Optional[float]) -> str:
    """Four decimals, as a plan gives the static fraction."""
    return _DASH if value is None else f"{value:.4f}"


def signed(value: Optional[float]) -> str:
    """With a sign, that of minus as wide as that of plus."""
    if value is None:
        return _DASH
    near = round(value)
    return "±0" if near == 0 else f"+{near:,}" if near > 0 else f"\u2212{-near:,}"


def duration(seconds: Optional[float]) -> str:
    """Seconds as a person reads them: C(4.2 s), C(41 s), C(6 min 52 s), C(1 h 05 min)."""
    if seconds is None:
        return _DASH
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60:,} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def moment(epoch: Optional[float]) -> str:
    """Seconds since 1970 as C(2026-11-30 07:01:02 UTC); nothing for what is no time."""
    if epoch is None or not 0 < epoch < LAST_SECOND:
        return ""
    return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(epoch: Optional[float]) -> str:
    """C(07:01:02), where the day is known."""
    return moment(epoch)[11:19]


def epoch_of(stamp: Any) -> Optional[float]:
    """Seconds since 1970 of a time as C(allocation_info) returns it, in UTC; None for anything else."""
    if not isinstance(stamp, str):
        return None
    try:
        read = datetime.fromisoformat(stamp.replace("Z", "+00:00")[:40])
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()
