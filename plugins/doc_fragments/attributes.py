# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of every module of this collection says alike."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of a module that only reads."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: Changes nothing.
  diff_mode:
    support: none
    description: Changes nothing.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options: {}
"""
