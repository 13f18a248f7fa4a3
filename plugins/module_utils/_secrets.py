# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nobody should read on a screen, by its name. Private to this collection: may change at any time."""

from __future__ import annotations

import re

HIDDEN = "(not shown)"
# what stands for a secret among the arguments of a server that its log printed
MASKED = "********"
_SECRET = frozenset({"APIKEY", "CREDENTIAL", "CREDENTIALS", "KEY", "PASS", "PASSWD", "PASSWORD", "PASSPHRASE", "SECRET", "TOKEN"})
_SECRET_FLAGS = frozenset({"admin-api-key", "api-key", "ssl-keyfile-password"})
_SECRET_ARGUMENT = re.compile(r"(?:api_key|password|passphrase|_secret|(?:hf|auth|access|bearer)_token)$")


def is_secret(variable: str) -> bool:
    """Whether a variable of the environment holds, by its name, what nobody should read on a screen."""
    return not _SECRET.isdisjoint(variable.upper().split("_"))


def is_secret_flag(flag: str) -> bool:
    return flag in _SECRET_FLAGS


def is_secret_argument(argument: str) -> bool:
    """Whether an argument of the server, as its log names it, holds a key, a password or a token."""
    return _SECRET_ARGUMENT.search(argument) is not None
