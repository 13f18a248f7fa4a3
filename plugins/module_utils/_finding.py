# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thing that speaks against a host or a request. Private to this collection: may change at any time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was asked, what was found, what to do. ``check`` is the name by which an operator can allow it."""

    check: str
    asked: str
    found: str
    do: str

    @property
    def text(self) -> str:
        return f"{self.check}: asked for {self.asked}, found {self.found}; {self.do}"

    def as_dict(self) -> dict[str, str]:
        return {"check": self.check, "asked": self.asked, "found": self.found, "do": self.do, "text": self.text}
