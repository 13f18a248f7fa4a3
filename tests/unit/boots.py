# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs and journals of known content for the unit tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional, Union

LOGS = Path(__file__).parent / "fixtures" / "logs"
READY = "The server is fired up and ready to roll!"
JOURNAL_REMOTE = "/lib/systemd/systemd-journal-remote"


@dataclass(frozen=True)
class Line:
    """One log line with the process that wrote it."""

    text: str
    pid: int = 100


def stamped(rank: str, message: str) -> str:
    return f"[2026-05-30 22:08:02{' ' + rank if rank else ''}] {message}"


@dataclass(frozen=True)
class KimiStart:
    """A start of Kimi K2.6 with a DFlash draft on eight ranks, in the order of SGLang up to 0.5.13: draft after target."""

    fraction: float
    max_running_requests: int
    tokens: int
    target_gib: float
    draft_k_gib: float
    after_target_gib: float
    after_draft_gib: Sequence[float]
    ready: bool = True
    ranks: Sequence[int] = field(default_factory=lambda: range(8))

    def lines(self) -> list[Line]:
        arguments = (
            f"server_args=ServerArgs(model_path='/srv/models/kimi-k2.6', speculative_algorithm='DFLASH', tp_size=8, pp_size=1, dp_size=1, "
            f"context_length=200000, mem_fraction_static={self.fraction}, max_running_requests={self.max_running_requests})"
        )
        lines = [Line(stamped("", arguments))]
        for message in (
            "Init torch distributed begin.",
            "Load weight begin. avail mem=93.73 GB",
            "Load weight end. elapsed=412.07 s, type=KimiK25ForConditionalGeneration, avail mem=21.33 GB, mem usage=72.40 GB.",
            f"KV Cache is allocated. #tokens: {self.tokens}, KV size: {self.target_gib:.2f} GB",
            f"Memory pool end. avail mem={self.after_target_gib:.2f} GB",
            f"Capture cuda graph begin. This can take up to several minutes. avail mem={self.after_target_gib:.2f} GB",
            f"Capture cuda graph end. Time elapsed: 41.20 s. mem usage=0.64 GB. avail mem={self.after_target_gib - 0.64:.2f} GB.",
            f"Load weight begin. avail mem={self.after_target_gib - 0.64:.2f} GB",
            f"Load weight end. elapsed=3.10 s, type=DFlashDraftModel, avail mem={self.after_target_gib - 1.95:.2f} GB, mem usage=1.31 GB.",
            f"KV Cache is allocated. #tokens: {self.tokens}, K size: {self.draft_k_gib:.2f} GB, V size: {self.draft_k_gib:.2f} GB",
        ):
            lines += [Line(stamped(f"TP{rank}", message), 200 + rank) for rank in self.ranks]
        lines += [
            Line(stamped(f"TP{rank}", f"Memory pool end. avail mem={after:.2f} GB"), 200 + rank)
            for rank, after in zip(self.ranks, self.after_draft_gib)
        ]
        summary = (
            f"max_total_num_tokens={self.tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            f"max_running_requests={self.max_running_requests}, context_len=200000, available_gpu_mem={min(self.after_draft_gib):.2f} GB"
        )
        lines.append(Line(stamped("TP0", summary), 200))
        return [*lines, Line(stamped("", READY))] if self.ready else lines


# The two starts this collection began with: the second was taken for enough for 200,000 tokens and is 7,594 short.
FIRST = KimiStart(0.85, 64, 101134, 6.62, 0.14, 14.70, (10.37,) * 8)
SECOND = KimiStart(0.92, 8, 192406, 12.59, 0.28, 8.73, (6.25, 6.24, 6.23, 6.24, 6.25, 6.24, 6.23, 6.24))


def log_lines(name: str) -> list[str]:
    return (LOGS / name).read_text(encoding="utf-8").split("\n")


Value = Union[str, bytes]


@dataclass
class Journal:
    """Collects journal entries and writes them as a binary journal; ``first`` sets the time of its first entry."""

    first: int = 0
    boot: str = "b" * 32
    machine: str = "c" * 32
    entries: list[list[tuple[str, Value]]] = field(default_factory=list)

    def add(self, fields: Iterable[tuple[str, Value]]) -> None:
        number = self.first + len(self.entries)
        common: list[tuple[str, Value]] = [
            ("__REALTIME_TIMESTAMP", str(1780000000000000 + number * 1000)),
            ("__MONOTONIC_TIMESTAMP", str(1000000 + number * 1000)),
            ("_BOOT_ID", self.boot),
            ("_MACHINE_ID", self.machine),
            ("_HOSTNAME", "gpu01"),
        ]
        self.entries.append([*common, *fields])

    def server(self, lines: Iterable[Line], invocation: str, unit: str = "sglang-k26.service") -> None:
        """Lines of the server's own processes."""
        for line in lines:
            self.add(
                [
                    ("_SYSTEMD_UNIT", unit),
                    ("_SYSTEMD_INVOCATION_ID", invocation),
                    ("_PID", str(line.pid)),
                    ("SYSLOG_IDENTIFIER", "python"),
                    ("MESSAGE", line.text),
                ]
            )

    def manager(self, text: str, invocation: str, unit: str = "sglang-k26.service") -> None:
        """A line of the service manager about the unit."""
        self.add([("UNIT", unit), ("INVOCATION_ID", invocation), ("_PID", "1"), ("SYSLOG_IDENTIFIER", "systemd"), ("MESSAGE", text)])

    def daemon(self, text: str) -> None:
        """A line of the log daemon about itself."""
        self.add(
            [
                ("_PID", "300"),
                ("SYSLOG_IDENTIFIER", "systemd-journald"),
                ("MESSAGE_ID", "a596d6fe7bfa4994828e72309e95d61e"),
                ("MESSAGE", text),
            ]
        )

    def export(self) -> bytes:
        return b"".join(b"".join(_field(name, value) for name, value in entry) + b"\n" for entry in self.entries)

    def write(self, directory: Path, name: str = "known.journal") -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / name
        subprocess.run([JOURNAL_REMOTE, "-o", str(path), "-"], input=self.export(), check=True, capture_output=True)
        return path


def _field(name: str, value: Value) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    if b"\n" in data or not isinstance(value, str):
        return name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"
    return name.encode() + b"=" + data + b"\n"


def as_text(lines: Iterable[Line], extra: Optional[str] = None) -> str:
    return "\n".join([line.text for line in lines] + ([extra] if extra else []))
