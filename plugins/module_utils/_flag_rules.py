# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags of ``sglang.launch_server`` against the release that shall take them. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding

CHECK = "flags"


def flag_findings(
    version: str,
    flags: Mapping[str, Any],
    algorithm: str = "",
    has_ddtree: bool = False,
    *,
    environment: Optional[Mapping[str, Any]] = None,
    draft_block_size: Optional[int] = None,
    required_tokens: int = 0,
) -> tuple[Finding, ...]:
    """What this release refuses, ignores or is known to be hurt by. ``flags`` by name without dashes, true for a switch."""
    del version, flags, environment, draft_block_size, required_tokens
    if algorithm.upper() == "DDTREE" and not has_ddtree:
        return (Finding(CHECK, "speculative-algorithm DDTREE", "a release without it", "install a branch that has it"),)
    return ()


def flag_notes(
    version: str, flags: Mapping[str, Any], *, environment: Optional[Mapping[str, Any]] = None, has_api_key: bool = False
) -> tuple[str, ...]:
    """What is worth knowing of these flags and speaks against nothing."""
    del version, flags, environment, has_api_key
    return ()
