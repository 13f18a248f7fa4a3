# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a server, as the rules about its flags read it. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._flag_releases import Version, argument_of, version_of
from ansible_collections.inferops.sglang.plugins.module_utils._flags import number_of, text_of


@dataclass(frozen=True)
class FlagRequest:
    """Flags that are given, by name without dashes, and what else decides about them."""

    version: Version
    given: Mapping[str, Any]
    algorithm: str = ""
    has_ddtree: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)
    draft_block_size: Optional[int] = None
    required_tokens: int = 0

    @classmethod
    def of(
        cls,
        version: str,
        flags: Mapping[str, Any],
        algorithm: str,
        has_ddtree: bool,
        environment: Optional[Mapping[str, Any]],
        draft_block_size: Optional[int],
        required_tokens: int,
    ) -> FlagRequest:
        """Raises InputError for a version without text."""
        given = {text_of(flag).lstrip("-"): value for flag, value in flags.items() if _is_given(value)}
        named = algorithm or text_of(given.get("speculative-algorithm", ""))
        return cls(version_of(version), given, named.upper(), has_ddtree, environment or {}, draft_block_size, required_tokens)

    def value(self, flag: str) -> Any:
        """What was given for this flag under any of its names; None where nothing was."""
        if flag in self.given:
            return self.given[flag]
        argument = argument_of(flag)
        return next((value for name, value in self.given.items() if argument_of(name) == argument), None)

    def is_on(self, flag: str) -> bool:
        return self.value(flag) is True

    def number(self, flag: str, default: float = 0) -> float:
        """A number; the default where none was given, or what was given is none."""
        found = number_of(self.value(flag))
        return default if found is None else found

    def text(self, flag: str) -> str:
        value = self.value(flag)
        return "" if value is None else text_of(value)

    @property
    def attention_groups(self) -> float:
        """Groups of attention data parallelism; 1 without it."""
        groups = self.number("attn-dp-size", 1)
        return max(groups, self.number("dp-size", 1)) if self.is_on("enable-dp-attention") else groups


def _is_given(value: Any) -> bool:
    """Whether a value puts its flag on the command line; a zero does."""
    return value is not None and value is not False and value not in ("", (), [], {})
