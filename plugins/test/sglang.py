# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on what M(inferops.sglang.allocation_info) returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.template import accept_args_markers, accept_lazy_markers
from ansible_collections.inferops.sglang.plugins.module_utils._sufficient import sufficient


# both: what is undefined, as a whole or inside, comes in as it is and is refused like anything else that proves nothing
@accept_args_markers
@accept_lazy_markers
def pool_sufficient(allocation: Any, tokens: Any) -> bool:
    """True only if this allocation proves a ready server whose every rank holds at least ``tokens``; false on anything odd."""
    return sufficient(allocation, tokens)


class TestModule:
    """Ansible's entry point."""

    def tests(self) -> dict[str, Callable[..., bool]]:
        return {"pool_sufficient": pool_sufficient}
