# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang's start-up log: one log record (text) to typed events. Private to this collection: may change at any time.

The log is no API: wording, order of fields and prefix changed many times between 0.4 and 0.5.23, so every figure is found by
its key and every sentence must stand where SGLang puts it, at the start of a message. Memory is GiB (SGLang prints GiB as GB).
Nothing in here raises: text that is no known sentence gives a record without an event.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._flag_changes import CHANGES
from ansible_collections.inferops.sglang.plugins.module_utils._secrets import MASKED, is_secret_argument

MAX_RECORD = 1_000_000  # characters of one log record that are looked at; server_args needs some 20,000
MAX_VALUE = 100_000  # characters of one argument that are taken as a literal


@dataclass(frozen=True)
class Rank:
    """The labels in a record's prefix; None where the prefix does not show that dimension."""

    tp: Optional[int] = None
    pp: Optional[int] = None
    dp: Optional[int] = None
    ep: Optional[int] = None

    @property
    def labelled(self) -> bool:
        return not (self.tp is None and self.pp is None and self.dp is None)


NO_RANK = Rank()


class Event:
    """Base of all events."""


@dataclass(frozen=True)
class ServerArgs(Event):
    """The effective arguments, top level only; a value that is no Python literal stays text. Starts a new boot."""

    values: dict[str, Any]


@dataclass(frozen=True)
class Changed(Event):
    """A sentence by which SGLang says that it does otherwise than its flags ask.

    What it changes while it reads its arguments is printed before the record that holds them (``ServerArgs``).
    """

    text: str


@dataclass(frozen=True)
class InitBegin(Event):
    """A rank sets up its process groups."""


@dataclass(frozen=True)
class InitEnd(Event):
    """A rank has its process groups."""


@dataclass(frozen=True)
class WeightsBegin(Event):
    """A model (target, then drafts) starts to load."""

    avail_gib: Optional[float]


@dataclass(frozen=True)
class Progress(Event):
    """A progress bar of the weights or of the graphs (``what``: a phase); printed by the first rank of a model."""

    what: str
    percent: int


@dataclass(frozen=True)
class WeightsEnd(Event):
    """A model is loaded; ``usage_gib`` may be negative where the loader freed more than the model took."""

    avail_gib: Optional[float]
    usage_gib: Optional[float]
    model: Optional[str]


@dataclass(frozen=True)
class KvPool(Event):
    """One K/V line: MLA pools print ``kv_gib``, all others ``k_gib`` and ``v_gib``; old builds leave the tokens out."""

    tokens: Optional[int]
    kv_gib: Optional[float]
    k_gib: Optional[float]
    v_gib: Optional[float]
    dtype: Optional[str]
    label: Optional[str] = None
    upper_bound: bool = False


@dataclass(frozen=True)
class PostCapturePool(Event):
    """The pool's real size, where it is fixed only after graph capture; replaces the upper bound printed before."""

    pool: KvPool
    draft: bool
    avail_gib: Optional[float]


@dataclass(frozen=True)
class SplitSizes(Event):
    """Tokens of the full-attention and of the sliding-window half of one pool; ``full`` None: all layers slide, ``swa`` None: none does.

    ``post_capture``: these are the real sizes, whatever a pool line printed before them says: it is fixed after graph capture, or the
    line shows how many tokens would fit into memory that several pools share. ``slots``: of states, where they share that memory.
    """

    full: Optional[int]
    swa: Optional[int]
    post_capture: bool = False
    slots: Optional[int] = None


@dataclass(frozen=True)
class MambaPool(Event):
    """State slots of a hybrid model."""

    slots: Optional[int]


@dataclass(frozen=True)
class PoolEnd(Event):
    """All pools of one model runner (target, then each draft) are allocated."""

    avail_gib: Optional[float]


@dataclass(frozen=True)
class Capture(Event):
    """Graph capture begins or ends."""

    begins: bool
    avail_gib: Optional[float]


@dataclass(frozen=True)
class Summary(Event):
    """The line with the final figures; printed by TP0 alone in newer builds. All but the tokens may be missing."""

    max_total_num_tokens: int
    context_len: Optional[int]
    max_running_requests: Optional[int]
    available_gib: Optional[float]


@dataclass(frozen=True)
class Ready(Event):
    """The server answered its own warm-up request."""


@dataclass(frozen=True)
class Stopping(Event):
    """The server was asked to stop: what its processes do from here on is no failure."""


@dataclass(frozen=True)
class Crash(Event):
    """A process says that it hit an exception; in most cases its traceback follows on lines of their own."""

    text: str


@dataclass(frozen=True)
class Fatal(Event):
    """One sentence that alone proves that the server will not come up or has died."""

    kind: str
    text: str


@dataclass(frozen=True)
class Unbalanced(Event):
    """A warning that one card has less free memory than the others, with both figures; as an exception the sentence is fatal."""

    text: str


@dataclass(frozen=True)
class Traceback(Event):
    """First line of a Python traceback; proves nothing alone, healthy boots print some."""


@dataclass(frozen=True)
class ExceptionLine(Event):
    """``Type: message`` at the start of an unprefixed line."""

    text: str


@dataclass(frozen=True)
class UnitLine(Event):
    """What the service manager says about the unit.

    ``exited``, ``failed``, ``restart``, ``limit``, ``oom``, ``exec``, ``overdue`` (a start that took too long), ``stopped`` (it was
    told to), ``ended`` (by itself or not).
    """

    what: str
    detail: str


@dataclass(frozen=True)
class Suppressed(Event):
    """The log daemon dropped records of a unit."""

    count: int
    text: str


class Record(NamedTuple):
    """One piece of a log line: what stands between two prefixes. ``headed``: it had SGLang's bracket prefix."""

    stamp: str
    rank: Rank
    body: str
    headed: bool
    pid: Optional[int]
    event: Optional[Event]


# --- figures by key ---------------------------------------------------------------------------------------------------

_NUMBER = r"(-?[\d,]*\.?\d+)"
_COUNT = r"(-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+))"  # a comma groups three digits, or ends the number
_FIGURES = {
    name: re.compile(pattern)
    for name, pattern in {
        "avail": rf"(?:avail mem|free memory)={_NUMBER} ?G",
        "usage": rf"mem usage={_NUMBER} ?G",
        "available": rf"available_[cg]pu_mem={_NUMBER} ?G",
        "kv": rf"\bKV size: ?{_NUMBER} ?G",
        "k": rf"\bK size: ?{_NUMBER} ?G",
        "v": rf"\bV size: ?{_NUMBER} ?G",
        "tokens": rf"#tokens: ?{_COUNT}",
        "max_total": rf"\bmax_total_num_tokens={_COUNT}",
        "context_len": r"\bcontext_len=(\d+)",
        "max_running": r"\bmax_running_requests=(\d+)",
        "full": r"\bfull(?:_layer_tokens|_max_total_num_tokens|_max|_capacity)?=(\d+)",
        "swa": r"\bswa(?:_layer_tokens|_max_total_num_tokens|_max|_capacity)?=(\d+)",
        "slots": r"max_mamba_cache_size(?:: |=)(\d+)",
        "dtype": r"dtype: ?([\w.]+)",
        "model": r"\btype=(\w+)",
    }.items()
}
_MAX_DIGITS = 18  # no figure of a boot is longer; longer ones are noise


def _text(key: str, body: str) -> Optional[str]:
    found = _FIGURES[key].search(body)
    return found.group(1) if found and len(found.group(1)) <= _MAX_DIGITS + 60 else None


def _number(key: str, body: str) -> Optional[str]:
    found = _text(key, body)
    digits = found.replace(",", "") if found else ""
    return digits if 0 < len(digits) <= _MAX_DIGITS and digits.isascii() else None


def _integer(key: str, body: str) -> Optional[int]:
    digits = _number(key, body)
    return int(digits) if digits is not None else None


def _gib(key: str, body: str) -> Optional[float]:
    digits = _number(key, body)
    return float(digits) + 0.0 if digits is not None else None  # no negative zero


# --- sentences --------------------------------------------------------------------------------------------------------


def _kv_pool(body: str) -> KvPool:
    label = body.partition("KV ")[0].strip()
    return KvPool(
        tokens=_integer("tokens", body),
        kv_gib=_gib("kv", body),
        k_gib=_gib("k", body),
        v_gib=_gib("v", body),
        dtype=_text("dtype", body),
        label=label or None,
        upper_bound="VA upper bound" in body,
    )


def _post_capture(body: str) -> PostCapturePool:
    details = body.partition("sizing: ")[2]
    pool = KvPool(
        tokens=_integer("tokens", body) if "#tokens" in body else _integer("max_total", body),
        kv_gib=_gib("kv", body),
        k_gib=_gib("k", body),
        v_gib=_gib("v", body),
        dtype=_text("dtype", body),
    )
    return PostCapturePool(pool, draft=details.startswith("draft "), avail_gib=_gib("avail", body))


def _summary(body: str) -> Optional[Event]:
    tokens = _integer("max_total", body)
    if tokens is None:
        return None
    return Summary(tokens, _integer("context_len", body), _integer("max_running", body), _gib("available", body))


def _split_sizes(body: str) -> SplitSizes:
    return SplitSizes(_integer("full", body), _integer("swa", body))


def _real_sizes(body: str) -> SplitSizes:
    full = _integer("full", body)
    total = full if full is not None else _integer("max_total", body)
    return SplitSizes(total, _integer("swa", body) or None, True, _integer("slots", body))


def _capture(body: str) -> Capture:
    return Capture(begins=" begin" in body[:80], avail_gib=_gib("avail", body))


def _fatal(kind: str) -> Callable[[str], Event]:
    return lambda body: Fatal(kind, body[:2000])


def _child_died(body: str) -> Optional[Event]:
    # a child that was told to stop (SIGTERM is 15) did not fail
    return None if re.search(r"(?:exit ?code:?|terminated with)[ =]-15\b", body, re.IGNORECASE) else Fatal("child_died", body[:2000])


# Sentences SGLang logs, each anchored at the start of a message. The first that matches decides.
_SENTENCES: tuple[tuple[str, Callable[[str], Optional[Event]]], ...] = (
    (r"server_args=", lambda body: ServerArgs(parse_server_args(body[len("server_args=") :]))),
    (r"Init (?:torch distributed|parallel) begin", lambda _body: InitBegin()),
    (r"Init (?:torch distributed|parallel) ends?\b", lambda _body: InitEnd()),
    (r"Load weight begin\b", lambda body: WeightsBegin(_gib("avail", body))),
    (r"Load weight end\b", lambda body: WeightsEnd(_gib("avail", body), _gib("usage", body), _text("model", body))),
    (r"(?:\w[\w -]{0,80} )?KV Cache (?:is allocated|VA upper bound)\b", _kv_pool),
    (r"Post-capture KV sizing: (?:(?:draft )?KV cache allocated|max_total_num_tokens=)", _post_capture),
    (r"Post-capture KV sizing: (?:full|swa)_layer_tokens=", _real_sizes),
    (r"\[unified-memory-pool\] {1,4}total_bytes=\d{1,18}(?: \(=[\d.]{1,18} GB\))?, (?:full_|max_total_num_tokens=)", _real_sizes),
    (r"Use [Ss]liding window memory pool\b|DSV4 pool sizes:", _split_sizes),
    (r"Mamba Cache is allocated\b", lambda body: MambaPool(_integer("slots", body))),
    (r"Memory pool end\b", lambda body: PoolEnd(_gib("avail", body))),
    (r"Capture [\w/ -]{1,40}(?:[Gg]raph|GRAPH|draft extend) (?:begin|end)\b", _capture),
    (r"max_total_num_tokens=", _summary),
    (r"The server is fired up and ready to roll", lambda _body: Ready()),
    (r"(?:Signal )?SIGTERM received\b|Gracefully exiting\b|Received shutdown signal\b", lambda _body: Stopping()),
    (r"(?:\w{1,60} )?hit an exception:|Initialization failed\.|Server warmup failed; aborting startup", lambda body: Crash(body[:2000])),
    (r"Received (?:sigquit from a child|SIGQUIT from scheduler) process|SIGQUIT received\b", _child_died),
    (r"(?:RuntimeError: )?Rank \d+ scheduler (?:is dead|died)|Subprocess [\w-]{1,80} \(pid=\d+\) crashed|Exit code: -?[1-9]", _child_died),
    (r"Scheduler or DataParallelController \d+ terminated with -?[1-9]|Child process unexpectedly failed with ", _child_died),
    (r"Ray scheduler actor terminated with error|Scheduler (?:PP\d+ )?TP\d+ crashed:", _child_died),
    (r"Not enough memory\. Please try|Loaded weights leave no GPU memory|Not enough GPU memory for", _fatal("not_enough_memory")),
    # a soft watchdog only writes down what the process is doing
    (r"(?:(?!Soft)[A-Z]\w{1,60} )?[Ww]atchdog timeout\b(?! \(self\.watchdog_timeout=[\w.]{1,18}, self\.soft=True)", _fatal("hang")),
    (r"(?:\[[^\]]{1,200}\] ){0,2}Watchdog caught collective operation timeout", _fatal("nccl")),
    # the server does not end here: it asks itself for minutes whether it is up
    (r"ERROR: +\[Errno 98\]|\[Errno 98\] error while attempting to bind", _fatal("port_in_use")),
    (r"(?:ERROR: +)?\[Errno -?\d{1,3}\] (?:error while attempting to bind|Name or service not known)", _fatal("bad_arguments")),
    (r"Port \d+ is (?:already )?in use(?!, trying)", _fatal("port_in_use")),
    (r"[\w./ -]{0,300}(?:\.py|sglang[\w. -]{0,60}): error: (?:unrecognized|argument|the following|ambiguous)", _fatal("bad_arguments")),
    # the role's guard, before a server is started
    (r"cards not free: asked for GPU ", _fatal("gpus_busy")),
    (r"The memory capacity is unbalanced", lambda body: Unbalanced(body[:2000])),
    (CHANGES, lambda body: Changed(body[:500])),
    (r"Traceback \(most recent call last\):", lambda _body: Traceback()),
)
# what a serving server writes most is told apart first
_ANY_SENTENCE = r"(?!(?:Decode|Prefill) batch\b)(?:" + "|".join(pattern for pattern, _build in _SENTENCES) + ")"
# ASCII: letters, digits and blanks are then the same here as in the raw bytes that is_noise looks at
_IS_SENTENCE = re.compile(_ANY_SENTENCE, re.ASCII)
_WHICH_SENTENCE = re.compile("|".join(f"(?P<s{i}>{pattern})" for i, (pattern, _build) in enumerate(_SENTENCES)), re.ASCII)
_BUILDERS = {f"s{i}": build for i, (_pattern, build) in enumerate(_SENTENCES)}

# The last line of a traceback, as torch.OutOfMemoryError or queue.Empty
_EXCEPTION_TYPE = r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Empty|Timeout|Again|Group)|Exception)"
_EXCEPTION = re.compile(_EXCEPTION_TYPE + r"(?:: .*|:)?$", re.ASCII)


def _recognise(body: str, headed: bool) -> Optional[Event]:
    if _IS_SENTENCE.match(body):
        found = _WHICH_SENTENCE.match(body)
        return _BUILDERS[found.lastgroup](body) if found and found.lastgroup else None
    if not headed and _EXCEPTION.match(body):
        return ExceptionLine(body[:2000])
    return None


# --- from a line to records -------------------------------------------------------------------------------------------

_STAMP = r"(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
_KNOWN_LABELS = r"(?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d{1,5}"
_RANKS_ALONE = rf"{_KNOWN_LABELS}(?: {_KNOWN_LABELS}){{0,7}}"
_HEADER = re.compile(rf"\[(?:({_STAMP})((?: [A-Z][A-Z_]{{0,15}}\d{{1,5}}){{0,8}})|({_RANKS_ALONE}))\](?: |$)", re.ASCII)
_LABEL = re.compile(r"\b(TP|PP|DP|EP)(\d+)")
# A message that carries text of others (arguments, prompts): no further record is looked for behind it.
_CARRIER = re.compile(r"server_args=|Receive|Finish|\{\"")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# Prefixes of other writers before a message without SGLang's bracket: container tools, tracing, logging configurations.
_PREFIXES = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[ \t]{1,20}",
    r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)[: \t][ \t]{0,20}",
    r"[-|][ \t]{1,20}",
    r"\d{1,8}[ \t]{1,20}",  # a process id
    r"\[[\w./-]{1,80}\.py:\d{1,6}\][ \t]{1,20}",
    r"[\w-]{1,40}(?:\.(?!py:)[a-z_][\w-]{0,40}){1,8}:[ \t]{1,20}",
    r"[\w.-]{1,60}[ \t]{1,20}\|[ \t]",
    r"\[pod/[^\] \t]{1,200}\][ \t]{1,20}",
    r"(?:stdout|stderr) [FP] ",
    r"\[rank\d{1,5}\]: ?",
    r"\w{3,5}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,80} [\w@.:/()-]{1,80}\[\d{1,8}\]: ",
)
_ANY_PREFIX = "(?:" + "|".join(_PREFIXES) + "){1,8}"
_FOREIGN = re.compile(_ANY_PREFIX, re.ASCII)
_PIDS = (re.compile(r"\[(\d{1,8})\]: "), re.compile(r"(?:^|\s)(\d{1,8})\s"))  # of the log daemon, of a logging configuration

# Raw log text of which it is certain that parse_record finds nothing in it: one line, no second bracket that could begin a record,
# and none of the sentences at the start. This is most of what a serving server writes.


def _noise(rest: str) -> str:
    headed = rf'\[\d{{4}}-\d\d-\d\d [^\]"\\\n\r\x1b]{{1,70}}\] (?!{_ANY_SENTENCE})'
    # taken as a whole, as _unheaded takes it: giving parts of a prefix back would cost far more than the rest of the line
    prefix = rf"(?=(?P<foreign>(?:{_ANY_PREFIX})?))(?P=foreign)"
    bare = rf'(?!\[[\dA-Z])(?!{prefix}(?:{_ANY_SENTENCE}|{_EXCEPTION_TYPE}(?:[:"\n]|$)))'
    return f"(?:{headed}|{bare}){rest}"


# A line as it is, without its end, for expressions over bytes; the same as a string of JSON, without its quotes.
NOISE = _noise(r"[^\n\r\x1b\[]*(?:\[(?![\dA-Z])[^\n\r\x1b\[]*)*")
QUOTED_NOISE = _noise(r'[^"\\\[]*(?:(?:\\"|\[(?![\dA-Z]))[^"\\\[]*)*')
_JOURNAL_NOISE = re.compile((rf'"MESSAGE" ?: ?"{QUOTED_NOISE}"[,}} ]').encode())


def is_noise(line: bytes) -> bool:
    """True for a raw line of C(journalctl -o json) in which parse_record would find no event; false where that is not certain."""
    return _JOURNAL_NOISE.search(line) is not None


# Bars of the loaders and of the graph runners; the bracket makes sure that is_noise lets them through. Bars without a word, and those
# of kernels that are made ready, tell nothing about the model.
_BAR_PHASES = {"Loading": "weights", "loading": "weights", "Compiling": "capture", "Capturing": "capture"}
_BAR = re.compile(
    r"(Loading|loading|Capturing|Compiling)(?: [\w-]{1,30}){0,6}(?: \([^()]{0,80}\))?"
    r": {1,3}(\d{1,3})%(?: Completed )?\|[^\[\]]{0,500}\[\d[^\[\]]{0,80}\]?",
    re.ASCII,
)

# Ansible writes the arguments of its modules to the journal: a quoted log line in them is no record of the server.
_QUOTED = "Invoked with "


def parse_record(text: str) -> list[Record]:
    """Takes one log record, possibly of several lines, glued together or coloured, apart; unknown pieces have no event."""
    text = text[:MAX_RECORD]
    if text.isprintable():
        return _parse_line(text)
    if _QUOTED in text[:400].partition("\n")[0]:
        return []  # with all the lines of a log that was given as an argument
    lines = re.split(r"[\r\n]", _ANSI.sub("", text))
    return [record for line in lines if line.strip() for record in _parse_line(line)]


def _parse_line(line: str) -> list[Record]:
    header = _HEADER.search(line)
    if _QUOTED in line[:400]:
        return []
    if header is None:
        return _bare(line)
    records = _bare(line[: header.start()]) if line[: header.start()].strip() else []
    while header is not None:
        start = header.end()
        following = None if _CARRIER.match(line, start) else _HEADER.search(line, start)
        records.append(_headed(header, line[start : following.start() if following else None]))
        header = following
    return records


def _headed(header: re.Match[str], body: str) -> Record:
    rank = _rank(header.group(2) or header.group(3) or "")
    return Record(header.group(1) or "", rank, body, True, None, _recognise(body, True))


def _bare(line: str) -> list[Record]:
    """A line, or the part of one, that has no bracket: progress bars write over each other, so of several the last one counts."""
    bars = list(_BAR.finditer(line)) if "%" in line else []
    if not bars:
        return [_unheaded(line)]
    last = bars[-1]
    progress = Record("", NO_RANK, last.group(), False, None, Progress(_BAR_PHASES[last.group(1)], min(int(last.group(2)), 100)))
    rest = line[last.end() :]
    return [progress, _unheaded(rest)] if rest.strip() else [progress]


def _unheaded(line: str) -> Record:
    prefix = _FOREIGN.match(line)
    if prefix is None:
        return Record("", NO_RANK, line, False, None, _recognise(line, False))
    body = line[prefix.end() :]
    pid = _PIDS[0].search(prefix.group()) or _PIDS[1].search(prefix.group())
    return Record("", NO_RANK, body, False, int(pid.group(1)) if pid else None, _recognise(body, False))


@lru_cache(maxsize=4096)
def _rank(labels: str) -> Rank:
    found = {name.lower(): int(number) for name, number in _LABEL.findall(labels)}
    return Rank(**found)


# --- the service manager and the log daemon ---------------------------------------------------------------------------

_UNIT_LINES = (
    ("restart", re.compile(r"Scheduled restart job, restart counter is at (\d+)")),
    ("limit", re.compile(r"(Start request repeated too quickly)")),
    ("oom", re.compile(r"(killed by the OOM killer|systemd-oomd killed \w{1,20} process\(es\) in this unit)")),
    ("exec", re.compile(r"(Failed (?:at step|to execute|to locate|to load environment).*)")),
    ("exited", re.compile(r"(?:Main|Control) process exited, (code=\w+, status=\S+)")),
    ("overdue", re.compile(r"(start(?:-pre|-post)? operation timed out)")),
    ("failed", re.compile(r"Failed with result '([\w-]+)'")),
    ("stopped", re.compile(r"(?:^|: )(Stopping|Stopped)\b")),
    ("ended", re.compile(r"(?:^|: )(Deactivated successfully|Succeeded)\.")),
)
_SUPPRESSED = re.compile(r"Suppressed (\d{1,12}) messages from (\S+)")


def parse_unit_line(text: str) -> Optional[UnitLine]:
    """One record of the service manager about a unit; None where it says nothing about life and death."""
    for what, pattern in _UNIT_LINES:
        found = pattern.search(text, 0, 2000)
        if found:
            return UnitLine(what, found.group(1)[:500])
    return None


def parse_suppressed(text: str) -> Optional[Suppressed]:
    """The log daemon's note that it dropped records; None for any other text."""
    found = _SUPPRESSED.match(text)
    return Suppressed(int(found.group(1)), text[:300]) if found else None


# --- server_args ------------------------------------------------------------------------------------------------------

_ARGUMENT = re.compile(r"\s*(?:'(?P<quoted>\w+)'\s*:|(?P<plain>\w+)=)\s*")
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()\[\]{},]|[^'"()\[\]{},]+|['"].*""", re.DOTALL)
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def parse_server_args(dump: str) -> dict[str, Any]:
    """Top-level arguments of ``ServerArgs(a=1, ...)`` or ``{'a': 1, ...}``; keys that hold secrets are masked.

    Read value by value, so one value that is no literal (an object's repr, a line cut short) costs only itself: it stays text.
    """
    opening = re.match(r"(?:\w+\(|\{)", dump)
    if opening is None:
        return {}
    found: dict[str, Any] = {}
    for argument in _top_level(dump[opening.end() :]):
        name = _ARGUMENT.match(argument)
        if name is not None:
            key = name.group("quoted") or name.group("plain")
            value = _literal(argument[name.end() :].strip())
            found[key] = MASKED if value is not None and is_secret_argument(key) else value
    return found


def _top_level(text: str) -> list[str]:
    parts: list[str] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        depth += _DEPTH.get(mark, 0)
        if depth < 0:
            return [*parts, text[start : token.start()]]
        if mark == "," and depth == 0:
            parts.append(text[start : token.start()])
            start = token.end()
    return [*parts, text[start:]]


def _literal(text: str) -> Any:
    if len(text) > MAX_VALUE:
        return text[:1000]
    try:
        return _plain(ast.literal_eval(text), 6)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text[:1000]


def _plain(value: Any, depth: int) -> Any:
    """A literal as JSON can carry it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)[:100] if abs(value) < 10**100 else "huge"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if depth and isinstance(value, dict):
        return {str(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth - 1) for item in value]
    return repr(value)[:1000]
