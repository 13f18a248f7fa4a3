# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the host, run with a time limit. Private to this collection: may change at any time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

# argv -> (exit code, standard output, standard error); raises OSError where the program cannot be started,
# TimeoutError (an OSError) where it does not end
Runner = Callable[[Sequence[str]], "tuple[int, str, str]"]

# where the tools of drivers and of the system are beside the PATH of a session without a login
_MORE_PLACES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/rocm/bin", "/usr/lib/wsl/lib")


def through(run_command: Callable[..., Any], locale: str = "") -> Runner:
    """A runner of a module's own run_command, in this locale or in that of the session."""

    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        code, out, errors = run_command(list(argv), handle_exceptions=False, environ_update={"LC_ALL": locale} if locale else None)
        return code, out, errors

    return run


def limited(seconds: float) -> Runner:
    """A runner whose programs may take so many seconds each.

    A program that hangs inside a driver does not die by any signal, so that one that is out of time is left behind.
    """

    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        environment = {**os.environ, "LC_ALL": "C", "PATH": search_path()}
        # no context manager: leaving it would wait for the program
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
        )
        try:
            out, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TimeoutError(f"no answer within {seconds:g} s") from None
        return process.returncode, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace")

    return run


def search_path() -> str:
    """Where programs are looked for: the session's own PATH first."""
    own = [place for place in os.environ.get("PATH", "").split(os.pathsep) if place]
    return os.pathsep.join([*own, *(place for place in _MORE_PLACES if place not in own)])
