# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log records as the server writes them: "[date ranks] message", on standard error, one write per record."""

from __future__ import annotations

import os
import time

STDOUT, STDERR = 1, 2


def say(text: str, ranks: str = "") -> None:
    """One record; `ranks` is "" or e.g. " TP3". Only the first line of a long message has the prefix."""
    raw(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{ranks}] {text}\n")


def http(text: str) -> None:
    """One line of the HTTP server."""
    say(f"INFO:     {text}")


def access(client: str, request: str, status: str) -> None:
    """One line of the access log, which goes to standard output."""
    raw(f'[{time.strftime("%Y-%m-%d %H:%M:%S")}] INFO:     {client} - "{request}" {status}\n', STDOUT)


def raw(text: str, stream: int = STDERR) -> None:
    """Bytes as they are."""
    left = text.encode()
    while left:
        left = left[os.write(stream, left) :]
