# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a unit starts SGLang, and with which flags. Private to this collection: may change at any time.

A server is started as a module, as ``sglang serve``, as a script, behind other programs (numactl, env, a container engine), or by a
shell. What hides behind a script of the operator's own cannot be seen, and is said so.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._unit_file import (
    NO_TEXTS,
    Unit,
    environment_of,
    exec_commands,
    expand,
)

# a switch, one word, or several
Value = Union[bool, str, "tuple[str, ...]"]

# Flags of the launcher that have several names; the one on the right is the role's. From the parsers of SGLang 0.4.6 to 0.5.23.
ALIASES: Mapping[str, str] = MappingProxyType({
    "model": "model-path",
    "tensor-parallel-size": "tp-size",
    "pipeline-parallel-size": "pp-size",
    "data-parallel-size": "dp-size",
    "expert-parallel-size": "ep-size",
    "ep": "ep-size",
    "attention-context-parallel-size": "attn-cp-size",
    "moe-data-parallel-size": "moe-dp-size",
    "nccl-init-addr": "dist-init-addr",
    "speculative-draft-model": "speculative-draft-model-path",
    "speculative-dflash-draft-window-size": "speculative-draft-window-size",
    "hierarchical-sparse-attention-extra-config": "hisparse-config",
})  # fmt: skip
# argparse takes the beginning of a flag for the flag where only one begins so; these are the ones that people shorten
PREFIXED = (
    "model-path", "tokenizer-path", "context-length", "mem-fraction-static", "tp-size", "dp-size", "pp-size", "pp-max-micro-batch-size",
    "pp-async-batch-depth", "max-running-requests", "max-total-tokens", "chunked-prefill-size", "served-model-name", "trust-remote-code",
    "kv-cache-dtype", "page-size", "speculative-algorithm", "speculative-num-steps", "speculative-num-draft-tokens",
    "speculative-draft-model-path", "speculative-eagle-topk", "attention-backend", "disable-radix-cache", "disable-cuda-graph",
    "disable-cuda-graph-padding", "cuda-graph-max-bs", "cuda-graph-bs", "enable-metrics", "enable-dp-attention", "quantization",
    "quantization-param-path",
)  # fmt: skip
MODULES = ("sglang.launch_server", "sglang.srt.server", "sglang")
ENGINES = ("podman", "docker", "nerdctl")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_OPERATORS = frozenset({";", "&", "&&", "|", "||", "(", ")"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.S)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_COMPUTED = re.compile(r"`|\$\(")
_NUMBER = re.compile(r"-\d+(?:\.\d*)?\Z|-\.\d+\Z")


@dataclass(frozen=True)
class Server:
    """What a unit starts.

    ``how``: ``module``, ``serve`` or ``script`` where SGLang is seen, ``hidden`` where something else is started that may start it, empty
    where nothing is. ``front``: words in front of the interpreter. ``unread``: what could not be read, in words.
    """

    how: str = ""
    front: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    flags: Mapping[str, Value] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def is_seen(self) -> bool:
        return self.how in ("module", "serve", "script")

    @property
    def engine(self) -> str:
        """The container engine in front of it; empty for none."""
        return next((posixpath.basename(word) for word in self.front if posixpath.basename(word) in ENGINES), "")

    @property
    def image(self) -> str:
        """The image that the engine runs; empty without an engine."""
        return self.front[-1] if self.engine else ""

    @property
    def python_home(self) -> str:
        """The environment that the interpreter or the console script lies in; empty where that cannot be told."""
        home, bin_directory, _name = self.program[0].rpartition("/bin/") if self.program else ("", "", "")
        return home if bin_directory and not self.engine and home not in ("", "/usr", "/usr/local") else ""


def read_server(unit: Unit, files: Mapping[str, str] = NO_TEXTS, known: Collection[str] = PREFIXED) -> Server:
    """How the unit starts SGLang. ``files``: texts of its environment files by path; ``known``: flags that may be shortened."""
    environment = environment_of(unit, files)
    servers = []
    for command in exec_commands(unit):
        split = expand(command, environment)
        servers.append(_server(split.words, split.odd, environment, known))
    seen = [server for server in servers if server.is_seen] or servers
    return seen[-1] if seen else Server(environment=environment, unread=("the unit has no ExecStart=",))


def read_flags(words: Sequence[str], known: Collection[str] = PREFIXED) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Words of a command line as flags by their names without dashes, and what is none. Of a flag that is repeated the last holds."""
    flags: dict[str, Value] = {}
    odd: list[str] = []
    name: Optional[str] = None
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            name = flag_name(name, known)
            flags.pop(name, None)
            flags[name] = value if equals else True
            name = None if equals else name
        elif (word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)) or name is None:
            odd.append(f"the word {word} belongs to no flag")
            name = None
        else:
            flags[name] = _with(flags[name], word)
    return flags, tuple(odd)


def flag_name(given: str, known: Collection[str] = PREFIXED) -> str:
    """The role's name of a flag given by an alias or by a beginning that only one flag has."""
    name = given.replace("_", "-")
    if name in ALIASES or name in known:
        return ALIASES.get(name, name)
    candidates = {ALIASES.get(flag, flag) for flag in (*known, *ALIASES) if flag.startswith(name)}
    return candidates.pop() if len(candidates) == 1 else name


def _with(value: Value, word: str) -> Value:
    if value is True:
        return word
    return (*((value,) if isinstance(value, str) else tuple(value if isinstance(value, tuple) else ())), word)


def _server(words: Sequence[str], odd: tuple[str, ...], environment: Mapping[str, str], known: Collection[str]) -> Server:
    if not words:
        return Server("", environment=environment, unread=odd)
    begin = _launcher(words)
    if begin is None:
        return _behind_a_shell(words, odd, environment, known)
    how, start, end = begin
    flag_words = list(words[end:])
    # `sglang serve MODEL` takes the model without a flag
    if how == "serve" and flag_words and not flag_words[0].startswith("-"):
        flag_words.insert(0, "--model-path")
    flags, unread = read_flags(flag_words, known)
    if "config" in flags:
        unread = (*unread, f"more flags stand in {flags['config']}, which was not read")
    front, more = _front(words[:start])
    return Server(how, front, tuple(words[start:end]), flags, {**environment, **more}, (*odd, *unread))


def _launcher(words: Sequence[str]) -> Optional[tuple[str, int, int]]:
    """Where SGLang is started: how, where its program begins, and where its flags begin."""
    for place, word in enumerate(words):
        behind = words[place + 1] if place + 1 < len(words) else ""
        if word == "-m" and behind in MODULES:
            serves = behind == "sglang" and place + 2 < len(words) and words[place + 2] == "serve"
            return ("serve" if serves else "module"), _interpreter(words, place), place + 2 + serves
        if posixpath.basename(word) == "sglang" and behind == "serve":
            return "serve", place, place + 2
        if posixpath.basename(word) == "launch_server.py":
            return "script", _interpreter(words, place), place + 1
    return None


def _interpreter(words: Sequence[str], place: int) -> int:
    """Where the interpreter in front of this word stands, with its own switches; the word itself where there is none."""
    start = place
    while start and words[start - 1].startswith("-") and not words[start - 1].startswith("--"):
        start -= 1
    return start - 1 if start and posixpath.basename(words[start - 1]).startswith(("python", "pypy")) else place


def _front(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Words in front of the interpreter, without those that set variables through env."""
    if not words or posixpath.basename(words[0]) != "env":
        return tuple(words), {}
    environment: dict[str, str] = {}
    rest = list(words[1:])
    while rest and _ASSIGNMENT.match(rest[0]):
        name, _equals, value = rest.pop(0).partition("=")
        environment[name] = value
    # env with switches of its own (-i, -u) stays in sight
    return (tuple(words) if rest and rest[0].startswith("-") else tuple(rest)), environment


def _behind_a_shell(words: Sequence[str], odd: tuple[str, ...], environment: Mapping[str, str], known: Collection[str]) -> Server:
    shell = next((place for place, word in enumerate(words) if posixpath.basename(word) in SHELLS), None)
    behind = words[shell + 1 :] if shell is not None else ()
    script = next((behind[place + 1] for place, word in enumerate(behind[:-1]) if re.match(r"-\w*c\w*\Z", word)), None)
    if script is not None:
        found = _in_script(script, environment, known)
        if found:
            return replace(found, front=(*words[:shell], *found.front), unread=(*odd, *found.unread))
    runs = next((word for word in words if word.endswith(".sh")), words[0])
    return Server("hidden", (), tuple(words), {}, environment, (*odd, f"{runs} hides how SGLang is started"))


def _in_script(script: str, environment: Mapping[str, str], known: Collection[str]) -> Optional[Server]:
    """SGLang in a command that a shell is given as text."""
    variables = dict(environment)
    home = ""
    for words in _simple_commands(script):
        rest = list(words[1:] if words[0] in ("exec", "export", "nohup", "time") else words)
        own: dict[str, str] = {}
        while rest and _ASSIGNMENT.match(rest[0]):
            name, _equals, value = rest.pop(0).partition("=")
            own[name] = value
        if not rest:
            variables.update(own)
        elif rest[0] in ("source", ".") and len(rest) > 1 and rest[1].endswith("/bin/activate"):
            home = rest[1][: -len("/bin/activate")]
        elif _launcher(rest):
            server = _server([_in_shell(word, variables) for word in rest], (), {**variables, **own}, known)
            computed = ("the shell computes a part of it when it starts",) if _COMPUTED.search(script) else ()
            unread = (*server.unread, *(computed or (f"the shell replaces {word}" for word in _words_of(server) if "$" in word)))
            program = server.program
            if home and "/" not in program[0]:
                program = (f"{home}/bin/{program[0]}", *program[1:])
            return replace(server, program=program, unread=unread)
    return None


def _in_shell(word: str, variables: Mapping[str, str]) -> str:
    """A word with the variables that are known."""
    return _VARIABLE.sub(lambda match: variables.get(match.group(1) or match.group(2), match.group()), word)


def _words_of(server: Server) -> Iterator[str]:
    """All words of the program and of its flags' values."""
    yield from server.program
    for value in server.flags.values():
        yield from value if isinstance(value, tuple) else (str(value),)


def _simple_commands(script: str) -> Iterator[list[str]]:
    """The commands of a shell script as words, without redirections; nothing where the shell's quoting is broken."""
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return
    words: list[str] = []
    skip = False
    for token in (*tokens, ";"):
        if token in _OPERATORS:
            if words:
                yield words
            words = []
        elif skip or token[:1] in (">", "<"):
            # the file behind a redirection, and a number of a stream in front of one
            words = words[:-1] if not skip and words and words[-1].isdigit() and token[:1] == ">" else words
            skip = not skip and set(token) <= set("<>&|")
        else:
            words.append(token)


def plain(server: Server) -> dict[str, Any]:
    """The flags as plain data: lists for several words."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in server.flags.items()}
