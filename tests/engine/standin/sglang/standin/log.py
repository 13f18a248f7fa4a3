# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log records as the server writes them: "[date ranks] message", on standard error, one write per record."""

from __future__ import annotations

import sys
import time

STDOUT, STDERR = "stdout", "stderr"


def say(text: str, ranks: str = "") -> None:
    """One record; `ranks` is "" or e.g. " TP3". Only the first line of a long message has the prefix."""
    raw(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{ranks}] {text}\n")


def http(text: str) -> None:
    """One line of the HTTP server."""
    say(f"INFO:     {text}")


def access(client: str, request: str, status: str) -> None:
    """One line of the access log, which goes to standard output."""
    raw(f'[{time.strftime("%Y-%m-%d %H:%M:%S")}] INFO:     {client} - "{request}" {status}\n', STDOUT)


def raw(text: str, stream: str = STDERR) -> None:
    """Text as it is, through the stream of the interpreter, which whoever started the server may have put another one in the place of."""
    written = getattr(sys, stream)
    written.write(text)
    written.flush()
