# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with one accepted server of the role, for the tests of the audit: what lies on it, what runs, and what its tools say."""

from __future__ import annotations

import copy
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._audit_host import Eyes
from ansible_collections.inferops.sglang.plugins.module_utils._host import Sight
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import ServiceState

STATE = "/var/lib/sglang"
UNIT = "/etc/systemd/system/k26.service"
TEXT = """[Unit]
X-InferopsInstance=k26
[Service]
EnvironmentFile=/etc/sglang/k26.env
ExecStart=/opt/sglang/0.5.23-abc/bin/python -m sglang.launch_server \\
    --model-path /srv/models/k26 \\
    --tp-size 2 \\
    --mem-fraction-static 0.9259 \\
    --port 30000
TimeoutStopSec=120
"""
ENVIRONMENT = "CUDA_VISIBLE_DEVICES=0,1\nINFEROPS_DIGEST=1111\n"
FLAGS = {"model-path": "/srv/models/k26", "tp-size": "2", "mem-fraction-static": "0.9259", "port": "30000"}
RECEIPT = {
    "instance": "k26", "sglang_version": "0.5.23", "release": "/opt/sglang/0.5.23-abc", "digest": "1111", "flags": FLAGS,
    "checkpoints": {"model": {"fingerprint": "aa11"}}, "mem_fraction_static": 0.9259, "required_tokens": 200000, "predicted_tokens": 200099,
    "prediction_basis": "observed", "min_tokens": 200099, "tokens_per_rank": {"TP0": 200099, "TP1": 200105}, "headroom_gib": 6.34,
    "planned_headroom_gib": 6.4, "invocation_id": "start1", "started_at": "2026-11-30T07:00:00+00:00",
}  # fmt: skip
BOOT: Mapping[str, Any] = MappingProxyType({
    "invocation_id": "start1", "started_at": "2026-11-30T07:00:00+00:00", "sglang_version": "0.5.23", "ready": True, "complete": True,
    "stopped": False, "phase": "ready", "failure": None, "missing_ranks": [], "min_tokens": 200099, "max_total_num_tokens": 200099,
    "min_avail_gib": 6.34, "restarts": 0, "notes": [],
    "server_args": {
        "model_path": "/srv/models/k26", "tp_size": 2, "pp_size": 1, "dp_size": 1, "mem_fraction_static": 0.9259, "port": 30000,
        "host": "0.0.0.0", "device": "cuda", "page_size": 1,
    },
    "ranks": [
        {"tp": 0, "pp": 0, "dp": 0, "last_avail_gib": 6.34, "avail_after_pool_gib": 7.9, "target": {"tokens": 200099}, "draft": None},
        {"tp": 1, "pp": 0, "dp": 0, "last_avail_gib": 6.4, "avail_after_pool_gib": 7.9, "target": {"tokens": 200105}, "draft": None},
    ],
})  # fmt: skip
RUNNING = ServiceState("active", "running", "success", "loaded", 100, 0, "start1", 0, digest="1111")
BY_HAND = "[Service]\nExecStart=/opt/v/bin/python -m sglang.launch_server --model-path /srv/m --port 30001 --api-key verysecret\n"


def changed(data: Mapping[str, Any], **places: Any) -> dict[str, Any]:
    """The data with values replaced: by key, or by ranks__1__target and the like."""
    made = copy.deepcopy(dict(data))
    for path, value in places.items():
        *parts, last = (int(part) if part.isdigit() else part for part in path.split("__"))
        inner: Any = made
        for part in parts:
            inner = inner[part]
        inner[last] = value
    return made


def kept(name: str, value: Any) -> dict[str, str]:
    """A file that the role keeps of the instance."""
    return {f"{STATE}/k26/{name}": value if isinstance(value, str) else json.dumps(value)}


def accepted_files() -> dict[str, str]:
    return {
        f"{STATE}/made.json": json.dumps({"instances": {"k26": {"environment": "/etc/sglang/k26.env", "root": "/opt/sglang"}}}),
        UNIT: TEXT,
        "/etc/sglang/k26.env": ENVIRONMENT,
        **kept("receipt.json", RECEIPT),
        **kept("accepted.json", {"unit": TEXT, "environment": ENVIRONMENT, "receipt": RECEIPT}),
    }


@dataclass
class FakeHost:
    """``boots``: allocation, service and gaps of each unit, or an error. ``show``: what systemd says of each. ``health``: a status, or an
    error. ``programs``: output by the beginning of a command line; a program that is none of them is not there."""

    files: dict[str, str] = field(default_factory=accepted_files)
    boots: dict[str, Any] = field(default_factory=lambda: {"k26.service": (BOOT, RUNNING, ())})
    show: dict[str, str] = field(default_factory=lambda: {"k26.service": "ActiveState=active\nUnitFileState=enabled"})
    health: Any = 200
    programs: dict[str, str] = field(default_factory=dict)
    asked: list[Sequence[str]] = field(default_factory=list)
    probed: list[tuple[str, int, bool]] = field(default_factory=list)

    def with_files(self, **files: str) -> FakeHost:
        return replace(self, files={**self.files, **files})

    def eyes(self) -> Eyes:
        sight = Sight(
            self._run, read=lambda path: self._read(path).encode(), names=self._names, link=lambda _path: "",
            state=self._state, program=lambda name: name if any(key.startswith(name) for key in self.programs) else None,
        )  # fmt: skip
        return Eyes(sight, self._boot, self._probe)

    def _read(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def _names(self, folder: str) -> list[str]:
        return sorted({path[len(folder) + 1 :].split("/")[0] for path in self.files if path.startswith(f"{folder}/")})

    def _state(self, path: str) -> Optional[os.stat_result]:
        known = path in self.files
        return os.stat_result((stat.S_IFREG | 0o644, 1, 1, 1, 0, 0, 10, 0, 1796000000, 0)) if known else None

    def _run(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.asked.append(argv)
        if argv[:2] == ["systemctl", "show"]:
            names = argv[argv.index("--") + 1 :]
            unknown = "ActiveState=inactive\nUnitFileState="
            return 0, "\n\n".join(f"Id={name}\n{self.show.get(name, unknown)}" for name in names), ""
        line = " ".join(argv)
        for begin, text in self.programs.items():
            if line.startswith(begin):
                return 0, text, ""
        raise FileNotFoundError(2, "No such file or directory", argv[0])

    def _boot(self, unit: str) -> Any:
        found = self.boots.get(unit, JournalError(f"asked for {unit}, found no journal; make one"))
        if isinstance(found, Exception):
            raise found
        return found

    def _probe(self, host: str, port: int, tls: bool, _path: str, _seconds: float) -> int:
        self.probed.append((host, port, tls))
        if isinstance(self.health, Exception):
            raise self.health
        return self.health
