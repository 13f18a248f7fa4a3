# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two units, and the smallest action that takes it over. Private to this collection: may change at any time.

What the process got at its start (command line, environment, user, limits, sandbox) needs a restart. What the service manager itself
looks up later (how long it waits, whether it starts again, what it does before the next start) needs it to read the file again. One
reading gives both the difference and the digest, so a digest that is equal has no difference to show.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._flags import number_of, text_of
from ansible_collections.inferops.sglang.plugins.module_utils._secrets import HIDDEN, is_secret, is_secret_flag
from ansible_collections.inferops.sglang.plugins.module_utils._service_state import DIGEST_VARIABLE
from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import (
    NO_TEXTS,
    Unit,
    environment_files,
    environment_of,
    exec_commands,
)
from ansible_collections.inferops.sglang.plugins.module_utils._unit_server import Server, Value, read_server

NOTHING, RELOAD, RESTART = "nothing", "reload", "restart"

# Settings of [Service] that the service manager looks up when it needs them, not when it starts the process.
_LATER = frozenset({
    "ExecCondition", "ExecReload", "ExecStartPost", "ExecStartPre", "ExecStop", "ExecStopPost", "FinalKillSignal", "KillMode", "KillSignal",
    "Restart", "RestartForceExitStatus", "RestartKillSignal", "RestartMaxDelaySec", "RestartMode", "RestartPreventExitStatus",
    "RestartSec", "RestartSteps", "SendSIGHUP", "SendSIGKILL", "StartLimitAction", "StartLimitBurst", "StartLimitInterval",
    "StartLimitIntervalSec", "SuccessExitStatus", "TimeoutAbortSec", "TimeoutSec", "TimeoutStartFailureMode", "TimeoutStartSec",
    "TimeoutStopFailureMode", "TimeoutStopSec",
})  # fmt: skip
# read as the command and its environment, not as settings
_READ_ELSEWHERE = frozenset({"Environment", "EnvironmentFile", "ExecStart", "UnsetEnvironment"})
# several of these add up; of every other setting the last holds
_LISTS = re.compile(
    r"(?:Exec\w+|After|Before|Wants|Requires|Requisite|BindsTo|PartOf|Upholds|Conflicts|Documentation|WantedBy|RequiredBy|UpheldBy|Also|Alias"
    r"|(?:ReadWrite|ReadOnly|Inaccessible|Exec|NoExec)Paths|(?:Cache|State|Runtime|Logs|Configuration)Directory|Device(?:Allow|Policy)"
    r"|(?:Load|Set)Credential\w*|ImportCredential|PassEnvironment|SupplementaryGroups|Bind\w*Paths|SystemCall\w+|Restrict(?:AddressFamilies|"
    r"Namespaces)|CapabilityBoundingSet|AmbientCapabilities|Condition\w+|Assert\w+|TemporaryFileSystem|IPAddress\w+|SuccessExitStatus)\Z"
)


@dataclass(frozen=True)
class Difference:
    """One thing that differs, as a line for a person; ``action``: what takes it over."""

    action: str
    line: str


@dataclass(frozen=True)
class Change:
    """All that differs. ``action``: the smallest one that suffices; ``reasons``: the lines that ask for it."""

    action: str
    differences: tuple[Difference, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(difference.line for difference in self.differences)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(difference.line for difference in self.differences if difference.action == self.action)


@dataclass(frozen=True)
class Reading:
    """A unit as it is compared: every part a mapping of a name to a value that equal settings share and to one that is shown."""

    start: Mapping[str, str]
    flags: Mapping[str, Value]
    environment: Mapping[str, str]
    settings: Mapping[str, str]
    later: Mapping[str, str]


def reading_of(unit: Unit, files: Mapping[str, str] = NO_TEXTS, known: Optional[Server] = None) -> Reading:
    """A unit with the texts of its environment files as far as they are given; a file that is not counts as its name."""
    server = known or read_server(unit, files)
    environment = {**environment_of(unit, files), **server.environment}
    environment.pop(DIGEST_VARIABLE, None)
    unread = [path for path in environment_files(unit) if path.lstrip("-") not in files]
    settings = {"EnvironmentFile": " ".join(unread)} if unread else {}
    later: dict[str, str] = {}
    for section, name in unit.names():
        if section == "Service" and name in _READ_ELSEWHERE:
            continue
        value = " ".join(unit.values(section, name)) if _LISTS.match(name) else unit.last(section, name)
        waits = section != "Service" or name in _LATER or name.startswith("X-")
        (later if waits else settings).update({name: value} if value else {})
    return Reading(_start(unit, server), server.flags, environment, settings, later)


def digest(reading: Reading) -> str:
    """Sixteen hexadecimal digits of all that a process gets at its start."""
    parts = {
        "start": reading.start,
        "flags": {name: comparable(value) for name, value in reading.flags.items()},
        "environment": reading.environment,
        "settings": reading.settings,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def compare(old: Reading, new: Reading) -> Change:
    """What differs from the old unit to the new one, and the smallest action that takes it over."""
    found = (
        *_differences(RESTART, "", old.start, new.start, _plain),
        *_differences(RESTART, "--", old.flags, new.flags, _flag_value),
        *_differences(RESTART, "environment: ", old.environment, new.environment, _variable),
        *_differences(RESTART, "", old.settings, new.settings, _plain),
        *_differences(RELOAD, "", old.later, new.later, _plain),
    )
    actions = {difference.action for difference in found}
    return Change(RESTART if RESTART in actions else RELOAD if actions else NOTHING, found)


def comparable(value: Any) -> Any:
    """One spelling for values that mean the same: numbers, JSON, paths."""
    if isinstance(value, (tuple, list)):
        return [comparable(item) for item in value]
    if not isinstance(value, str):
        return value
    number = number_of(value)
    if number is not None:
        return number
    if value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return posixpath.normpath(value) if value.startswith("/") else value


def _start(unit: Unit, server: Server) -> dict[str, str]:
    """What is started, in words: the interpreter with its module, and what stands in front of it."""
    prefixes = "".join(command.prefix for command in exec_commands(unit))
    program = server.program if server.how != "hidden" else ()
    found = {
        "program": " ".join(program),
        "in front of it": " ".join(server.front),
        "starts": " ".join(server.program) if server.how == "hidden" else "",
        "marks of ExecStart": prefixes,
    }
    return {name: value for name, value in found.items() if value}


def _differences(
    action: str, title: str, old: Mapping[str, Any], new: Mapping[str, Any], show: Callable[[str, Any], str]
) -> Iterator[Difference]:
    for name in dict.fromkeys((*new, *old)):
        before, after = old.get(name), new.get(name)
        if comparable(before) != comparable(after):
            yield Difference(action, f"{title}{name} {_from_to(name, before, after, show)}")


def _from_to(name: str, before: Any, after: Any, show: Callable[[str, Any], str]) -> str:
    if before is None:
        return f"{show(name, after)} added".strip()
    if after is None:
        return f"{show(name, before)} removed".strip()
    return f"{show(name, before) or 'alone'} -> {show(name, after) or 'alone'}"


def _plain(_name: str, value: Any) -> str:
    return text_of(value)


def _flag_value(name: str, value: Any) -> str:
    if is_secret_flag(name):
        return HIDDEN
    return "" if value is True else text_of(" ".join(value) if isinstance(value, tuple) else value)


def _variable(name: str, value: Any) -> str:
    return HIDDEN if is_secret(name) else text_of(value)
