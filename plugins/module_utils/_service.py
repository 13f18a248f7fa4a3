# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of a unit and of its running process. Private to this collection: may change at any time.

The commands and the files of the kernel's C(/proc) are read through injected functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import DIGEST_VARIABLE, ServiceState

Opener = Callable[[str], bytes]
Lister = Callable[[str], "list[str]"]

_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "NRestarts",
    "InvocationID",
    "ExecMainStatus",
    "Job",
    "LogNamespace",
    "ExecMainStartTimestampMonotonic",
)
_SUFFIX = re.compile(r"\.(?:service|scope|slice|target|socket|mount|timer)$")


def unit_name(name: str) -> str:
    """The unit's full name: a bare name means a service."""
    return name if _SUFFIX.search(name) else name + ".service"


def read_service(unit: str, run: Runner, read: Opener) -> ServiceState:
    """The unit's state as the service manager has it; a unit that does not exist has load state C(not-found).

    Raises JournalError where the service manager does not answer.
    """
    argv = ["systemctl", "show", "--property=" + ",".join(_PROPERTIES), "--", unit]
    try:
        code, out, errors = run(argv)
    except OSError as error:
        code, out, errors = 127, "", str(error)
    values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    if code != 0 or "ActiveState" not in values:
        raise JournalError(
            f"asked systemd for the state of {unit} (systemctl show), found exit code {code} and {errors.strip()[:300]!r}; "
            "run this on a host that runs systemd, or give journal_directory, journal_files, log_files or log_text instead"
        )
    main_pid = _number(values.get("MainPID"))
    return ServiceState(
        active_state=values["ActiveState"],
        sub_state=values.get("SubState", ""),
        result=values.get("Result", ""),
        load_state=values.get("LoadState", ""),
        main_pid=main_pid,
        n_restarts=_number(values.get("NRestarts")),
        invocation_id=values.get("InvocationID", ""),
        exec_main_status=_number(values.get("ExecMainStatus")),
        job=_number(values.get("Job")) > 0,
        digest=running_digest(main_pid, read),
        log_namespace=values.get("LogNamespace", ""),
        started_us=_number(values.get("ExecMainStartTimestampMonotonic")),
    )


def running_digest(pid: int, read: Opener) -> Optional[str]:
    """Digest of the configuration this process was started with; None without a process or without one in its environment."""
    prefix = DIGEST_VARIABLE.encode() + b"="
    for variable in _proc(pid, "environ", read).split(b"\0"):
        if variable.startswith(prefix):
            return variable[len(prefix) :].decode("utf-8", "replace")
    return None


def running_version(pid: int, read: Opener, listing: Lister) -> Optional[str]:
    """Version of SGLang in the Python environment that this process was started from; None where that cannot be told."""
    program = _proc(pid, "cmdline", read).split(b"\0")[0].decode("utf-8", "replace")
    prefix, bin_directory, _name = program.rpartition("/bin/")
    if not bin_directory:
        return None
    found = set()
    for library in listing(f"{prefix}/lib"):
        for entry in listing(f"{prefix}/lib/{library}/site-packages") if library.startswith("python") else ():
            match = re.match(r"sglang-(\d[\w.+!-]*)\.dist-info$", entry)
            found.update([match.group(1)] if match else [])
    return found.pop() if len(found) == 1 else None


def _proc(pid: int, name: str, read: Opener) -> bytes:
    try:
        return read(f"/proc/{pid}/{name}") if pid > 0 else b""
    except OSError:
        return b""


def _number(text: Optional[str]) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0
