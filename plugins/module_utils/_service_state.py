# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service manager says about a unit. Private to this collection: may change at any time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Optional

DIGEST_VARIABLE = "INFEROPS_DIGEST"  # the role gives each configuration it starts a digest, in the server's environment


@dataclass(frozen=True)
class ServiceState:
    """What the service manager says about the unit now."""

    active_state: str
    sub_state: str
    result: str
    load_state: str
    main_pid: int
    n_restarts: int
    invocation_id: str
    exec_main_status: int
    job: bool = False
    digest: Optional[str] = None
    log_namespace: str = ""  # the journal of its own that it logs to
    started_us: int = 0  # when its process was started, in microseconds of the clock that never jumps

    @property
    def exists(self) -> bool:
        return self.load_state != "not-found" or self.active_state != "inactive"

    @property
    def dead(self) -> bool:
        """No process runs and none is about to start: failed, stopped, or waiting for its automatic restart."""
        if self.sub_state == "auto-restart":
            return True
        return self.active_state in ("failed", "inactive") and not self.job

    @property
    def to_be_started(self) -> bool:
        """A start is waiting for its turn: all else that is shown belongs to the start before it."""
        return self.job and (self.active_state != "activating" or self.sub_state.startswith("auto-restart"))

    @property
    def failed(self) -> bool:
        return self.active_state == "failed" or self.sub_state == "auto-restart"

    def as_dict(self) -> dict[str, Any]:
        values = asdict(self)
        for name in ("job", "log_namespace", "started_us"):
            del values[name]
        return values

    def sentence(self) -> str:
        """The state in words, for messages."""
        return (
            f"the unit is {self.active_state} ({self.sub_state}), result {self.result}, exit status {self.exec_main_status}, "
            f"{self.n_restarts} automatic restarts"
        )
