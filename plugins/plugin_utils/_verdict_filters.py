# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter over an allocation. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._flags import text_of
from ansible_collections.inferops.sglang.plugins.module_utils._verdict import Ask, judge
from ansible_collections.inferops.sglang.plugins.module_utils._verdict_table import as_data, table

_NO_FLAGS: Mapping[str, Any] = MappingProxyType({})


# what is undefined, as a whole or inside, comes in as it is and is refused like anything else that proves nothing
def verdict(
    allocation: Any,
    required_tokens: Any,
    flags: Any = _NO_FLAGS,
    min_avail_gib: Any = 1.0,
    max_spread_gib: Any = 4.0,
    allowed_changes: Any = (),
    also: Any = (),
    name: Any = "",
) -> dict[str, Any]:
    """One start against all that was asked of it; see the filter's documentation for what comes back."""
    found = judge(allocation, Ask(required_tokens, flags, min_avail_gib, max_spread_gib, allowed_changes, also))
    return {**as_data(found), "table": table(found, text_of(name))}
