# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the package `sglang`; launch_server.py says what it imitates."""

from __future__ import annotations

from sglang.version import __version__

__all__ = ["__version__"]
