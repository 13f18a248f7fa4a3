# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures out of a model's config.json, and the error for input that cannot be used. Private to this collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

Config = Mapping[str, Any]
# parts of a version, a post-release as the fourth
Release = tuple[int, ...]


class InputError(ValueError):
    """Input that cannot be planned with; the text says what was asked, what was found, and what to do."""

    def __init__(self, asked: str, found: str, advice: str) -> None:
        super().__init__(f"asked for {asked}; found {found}; {advice}")


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def optional_count(config: Config, key: str) -> Optional[int]:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def required_count(config: Config, key: str, what: str) -> int:
    value = optional_count(config, key)
    if value is None:
        raise InputError(f"{key} of {what}", repr(config.get(key)), "give the config.json of a complete checkpoint")
    return value
