# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start left on its host, as texts for people. Private to this collection: may change at any time.

Everything is bounded, and nothing that cannot be read ends the rest: it is a note. Values that a name calls secret are masked.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError, Streamer, check_end
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._secrets import HIDDEN, is_secret, is_secret_flag

# the share of the bound that the beginning of a journal gets: arguments and weights are short, the end is what it died of
_HEAD_SHARE = 0.25
_CARDS = (("nvidia-smi",), ("rocm-smi",))
_PROPERTIES = (
    "Id,Description,LoadState,ActiveState,SubState,Result,StatusText,UnitFileState,FragmentPath,DropInPaths,NeedDaemonReload,"
    "InvocationID,MainPID,NRestarts,ExecMainStartTimestamp,ExecMainExitTimestamp,ExecMainCode,ExecMainStatus,ActiveEnterTimestamp,"
    "InactiveEnterTimestamp,StateChangeTimestamp,MemoryCurrent,MemoryPeak,MemoryMax,TasksCurrent,TimeoutStartUSec,TimeoutStopUSec,"
    "RestartUSec,StartLimitBurst,StartLimitIntervalUSec,LogNamespace"
)
_FLAG = re.compile(r"--([A-Za-z0-9-]+)([= ]+)(\"[^\"]*\"|'[^']*'|[^\s\"']+)")
# an argument of the server as its own log prints it: api_key='...', "hf_token": "..."
_ARGUMENT = re.compile(r"""(\b[a-z_]*(?:api_key|password|passphrase|secret|(?:hf|auth|access|bearer)_token)["']?\s*[=:]\s*)(["'])(.*?)\2""")
# a variable of the environment in somebody's words: HF_TOKEN=...
_VARIABLE = re.compile(r"""(?<![A-Za-z0-9_])([A-Z][A-Z0-9_]*)=("[^"]*"|'[^']*'|[^\s"']+)""")
# what stands for itself wherever it is printed: the header of a request, a token of the hub
_BARE = re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}|\bhf_[A-Za-z0-9]{20,}")
# one line of a unit may set several variables
_NAMED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*)=")
_ASSIGNED = re.compile(r"""^(\s*["']?)([A-Za-z_][A-Za-z0-9_]*)=(.*)$""")

Reader = Callable[[str], str]


@dataclass(frozen=True)
class Wish:
    """``unit``: with its ending. ``invocation``: the start, empty for the newest. ``most``: characters of the journal."""

    unit: str
    invocation: str
    environment_file: str
    most: int


@dataclass
class Evidence:
    """Texts by the file's name, and what could not be read."""

    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def collect(wish: Wish, run: Runner, stream: Streamer, read: Reader) -> Evidence:
    """All there is. ``read`` returns the text of a file and raises OSError."""
    found = Evidence()
    shown = _text_of(found, "systemctl.txt", run, ("systemctl", "show", f"--property={_PROPERTIES}", wish.unit))
    properties = dict(line.partition("=")[::2] for line in shown.splitlines())
    invocation = wish.invocation or properties.get("InvocationID", "")
    try:
        found.files["journal.log"] = journal(wish, invocation, properties.get("LogNamespace", ""), stream)
    except JournalError as error:
        found.notes.append(f"journal.log: {error}")
    for name, paths, mask in (
        (wish.unit, _paths(properties), masked_unit), ("environment.txt", [wish.environment_file], masked_environment),
    ):  # fmt: skip
        texts = {path: text for path in paths if (text := _read(found, name, path, read)) is not None}
        if texts:
            found.files[name] = "\n".join(f"# {path}\n{mask(text)}" for path, text in texts.items())
    found.files["gpus.txt"] = _cards(run)
    memory = _read(found, "memory.txt", "/proc/meminfo", read)
    if memory is not None:
        found.files["memory.txt"] = memory
    return found


def journal(wish: Wish, invocation: str, namespace: str, stream: Streamer) -> str:
    """The lines of one start, the service manager's own among them: its beginning and its end, and between them what was left out."""
    if not re.fullmatch(r"[0-9a-f]{32}", invocation):
        return f"{wish.unit} has no start that could be read.\n"
    argv = ["journalctl", "--no-pager", "--all", "--quiet", "--output=short-iso-precise"]
    argv += [f"--namespace=+{namespace}"] if namespace else []
    argv += [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}"]
    blocks = stream(argv, lambda code, errors: check_end(argv, code, errors), False)
    return masked_log(bounded(blocks, wish.most)) or f"The journal has no lines of the start {invocation} of {wish.unit}.\n"


def bounded(blocks: Iterable[bytes], most: int) -> str:
    """The beginning and the end of a text, ``most`` bytes in all, with whole lines where it was cut."""
    room = int(most * _HEAD_SHARE)
    head, tail, held, dropped = bytearray(), deque[bytes](), 0, 0
    for block in blocks:
        taken = max(0, room - len(head))
        head += block[:taken]
        if block[taken:]:
            tail.append(block[taken:])
            held += len(block) - taken
        while tail and held - len(tail[0]) >= most - room:
            dropped += len(tail[0])
            held -= len(tail.popleft())
    rest = b"".join(tail)
    over = max(0, len(rest) - (most - room))
    dropped, rest = dropped + over, rest[over:]
    if not dropped:
        return (bytes(head) + rest).decode("utf-8", "replace")
    first, last = bytes(head).rpartition(b"\n"), rest.partition(b"\n")
    dropped += len(first[2]) + len(last[0] + last[1])
    told = f"\n[... {dropped:,} bytes are left out here ...]\n".encode()
    return (first[0] + told + last[2]).decode("utf-8", "replace")


def masked_log(text: str) -> str:
    """A text of any origin without the secrets that their names or their form give away."""
    known = _VARIABLE.sub(_hidden_variable, _ARGUMENT.sub(rf"\1\2{HIDDEN}\2", text))
    return _BARE.sub(lambda found: f"{found[1] or ''}{HIDDEN}", _FLAG.sub(_hidden_flag, known))


def _hidden_variable(found: re.Match[str]) -> str:
    return f"{found[1]}={HIDDEN}" if is_secret(found[1]) else found[0]


def masked_unit(text: str) -> str:
    """A unit without the values of flags and variables that hold a secret by their names; a continued line has its flags alone."""
    return "\n".join(_masked_setting(line) for line in masked_log(text).splitlines()) + "\n"


def masked_environment(text: str) -> str:
    return "\n".join(_masked_assignment(line) for line in text.splitlines()) + "\n"


def _masked_setting(line: str) -> str:
    if not line.lstrip().startswith("Environment="):
        return line
    secret = next((name for name in _NAMED.finditer(line) if is_secret(name[1])), None)
    # a value may have quotes and spaces: what follows goes with it
    return f"{line[: secret.end()]}{HIDDEN}" if secret else line


def _masked_assignment(line: str) -> str:
    found = _ASSIGNED.match(line)
    return f"{found[1]}{found[2]}={HIDDEN}" if found and is_secret(found[2]) else line


def _hidden_flag(found: re.Match[str]) -> str:
    return f"--{found[1]}{found[2]}{HIDDEN}" if is_secret_flag(found[1]) else found[0]


def _paths(properties: Mapping[str, str]) -> list[str]:
    return [path for path in [properties.get("FragmentPath", ""), *properties.get("DropInPaths", "").split()] if path]


def _cards(run: Runner) -> str:
    """What the drivers' own tools say now."""
    said = []
    for argv in _CARDS:
        try:
            code, out, errors = run(argv)
        except FileNotFoundError:
            continue
        except OSError as error:
            said.append(f"{argv[0]}: {error}")
            continue
        said.append(out if code == 0 else f"{out}{errors}\n{argv[0]} ended with {code}")
    return "\n".join(said) or "No nvidia-smi and no rocm-smi on this host.\n"


def _text_of(found: Evidence, name: str, run: Runner, argv: Sequence[str]) -> str:
    try:
        code, out, errors = run(argv)
    except OSError as error:
        found.notes.append(f"{name}: asked {' '.join(argv[:2])}, found {error}")
        return ""
    if code != 0:
        found.notes.append(f"{name}: asked {' '.join(argv[:2])}, found exit code {code} ({errors.strip()[:200]})")
    found.files[name] = out
    return out


def _read(found: Evidence, name: str, path: str, read: Reader) -> Optional[str]:
    try:
        return read(path)
    except OSError as error:
        found.notes.append(f"{name}: asked for {path}, found {error.strerror or error}")
        return None
