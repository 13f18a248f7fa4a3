# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit files as systemd reads them: sections, continued lines, repeated and emptied keys, quoting, drop-ins, environment files.

Private to this collection: may change at any time. The rules are those of systemd.syntax(7), systemd.service(5) and systemd.exec(5).
Nothing in here reads a file or fails on a text: what systemd would leave out is left out and named in ``odd``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Optional

NO_TEXTS: Mapping[str, str] = MappingProxyType({})
# the role writes this key into its own units
MARK = "X-InferopsInstance"
# an empty value takes back what stood before; of these systemd never takes anything back
_KEPT_WHEN_EMPTY = frozenset({
    "After", "Before", "BindsTo", "Conflicts", "OnFailure", "OnSuccess", "PartOf", "Requires", "Requisite", "Upholds", "Wants",
})  # fmt: skip
_BLANKS = " \t\n\r"
_LETTER_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " ", "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
_CODE_ESCAPE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_REFERENCE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
# stands for a semicolon that is a word, not the end of a command
_ESCAPED_SEMICOLON = "\ufffe"
# what may stand in front of the program of an Exec line
_PREFIXES = "@-:+!|"


@dataclass(frozen=True)
class Setting:
    """One assignment. ``source``: path of the drop-in it stands in, empty for the unit's own file."""

    section: str
    name: str
    value: str
    source: str = ""


@dataclass(frozen=True)
class Unit:
    """A unit with its drop-ins. ``odd``: lines that systemd would leave out, in words."""

    settings: tuple[Setting, ...]
    odd: tuple[str, ...] = ()

    def values(self, section: str, name: str) -> tuple[str, ...]:
        """All values of a key that are in force, in the order in which they were given."""
        found: list[str] = []
        for setting in self.settings:
            if (setting.section, setting.name) != (section, name):
                continue
            if setting.value:
                found.append(setting.value)
            elif name not in _KEPT_WHEN_EMPTY:
                found.clear()
        return tuple(found)

    def last(self, section: str, name: str) -> str:
        """The value of a key that takes one; empty where none is in force."""
        return (self.values(section, name) or ("",))[-1]

    def names(self) -> tuple[tuple[str, str], ...]:
        """Section and name of everything that is set, each once, in the order of the file."""
        return tuple(dict.fromkeys((setting.section, setting.name) for setting in self.settings))

    @property
    def instance(self) -> str:
        """The instance of the role that this unit belongs to; empty for a unit that somebody else wrote."""
        return self.last("Unit", MARK) or self._unmarked_instance()

    def _unmarked_instance(self) -> str:
        """The same for what the role wrote before it had the mark: each of those units names its instance in three places."""
        name = self.last("Service", "SyslogIdentifier")
        places = (self.last("Service", "CacheDirectory"), self.last("Service", "WorkingDirectory"))
        return name if name and places == (f"sglang/{name}", f"%C/sglang/{name}") else ""


@dataclass(frozen=True)
class Words:
    """A line as words. ``odd``: why some of it could not be read."""

    words: tuple[str, ...]
    odd: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """One command of an Exec line: what stands in front of its program (as ``-`` or ``!``), and its words."""

    prefix: str
    words: tuple[str, ...]
    odd: tuple[str, ...] = ()


def read_unit(text: str, drop_ins: Mapping[str, str] = NO_TEXTS) -> Unit:
    """A unit file and its drop-ins (path -> text), merged in the order in which systemd takes them."""
    settings: list[Setting] = []
    odd: list[str] = []
    for source, content in (("", text), *_in_order(drop_ins)):
        _read_into(settings, odd, source, content)
    return Unit(tuple(settings), tuple(odd))


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and with continued ones joined by a blank, each with the number of its first line."""
    begun, number = "", 0
    for position, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r").lstrip(_BLANKS)
        # a comment between continued lines does not end them
        if line[:1] in ("#", ";"):
            continue
        number = number if begun else position
        joined = begun + line
        if _ends_in_escape(joined):
            begun = joined[:-1] + " "
            continue
        begun = ""
        if joined.strip(_BLANKS):
            yield number, joined.strip(_BLANKS)
    if begun.strip(_BLANKS):
        yield number, begun.strip(_BLANKS)


def split_words(text: str) -> Words:
    """Words by systemd's quoting: single and double quotes, C escapes in and out of them. An unknown escape stays as it is."""
    words: list[list[str]] = []
    quote, place, inside = "", 0, False
    while place < len(text):
        letter = text[place]
        if letter in _BLANKS and not quote:
            inside, place = False, place + 1
            continue
        if not inside:
            words.append([])
            inside = True
        if letter == "\\":
            taken, place = _escape(text, place)
            words[-1].append(taken)
            continue
        place += 1
        if quote or letter in "\"'":
            words[-1].extend(letter if quote and letter != quote else "")
            quote = "" if letter == quote else quote or letter
        else:
            words[-1].append(letter)
    if quote:
        return Words((), (f"a quote {quote} is not closed: {text[:80]}",))
    return Words(tuple("".join(word) for word in words))


def exec_commands(unit: Unit, name: str = "ExecStart") -> tuple[Command, ...]:
    """The commands of an Exec key in force. ``%%`` becomes ``%``; other specifiers and variables are left as they stand."""
    return tuple(command for value in unit.values("Service", name) for command in _commands(value))


def expand(command: Command, environment: Mapping[str, str]) -> Words:
    """The command's words with its variables replaced as systemd does, and ``$$`` made ``$``; an unknown variable stays and is named."""
    if ":" in command.prefix:
        return Words(command.words, command.odd)
    words: list[str] = []
    missing: list[str] = []
    for word in command.words:
        alone = _REFERENCE.fullmatch(word)
        if alone and alone.group(2) and alone.group(2) in environment:
            words.extend(split_words(environment[alone.group(2)]).words)
            continue
        words.append(_REFERENCE.sub(lambda match: _replaced(match, environment, missing), word))
    return Words(tuple(words), (*command.odd, *(f"{name} comes from a file that was not read" for name in dict.fromkeys(missing))))


def environment_files(unit: Unit) -> tuple[str, ...]:
    """Paths of the environment files in force, with the dash in front of those that may be absent."""
    return tuple(unquoted for value in unit.values("Service", "EnvironmentFile") for unquoted in [value.strip(_BLANKS)])


def environment_of(unit: Unit, files: Mapping[str, str] = NO_TEXTS) -> dict[str, str]:
    """The variables that the unit sets, then those of its environment files as far as their texts are given (path -> text)."""
    found: dict[str, str] = {}
    for value in unit.values("Service", "Environment"):
        for word in split_words(value).words:
            name, equals, content = word.partition("=")
            if equals and _NAME.match(name):
                found[name] = content.replace("%%", "%")
    for path in environment_files(unit):
        found.update(read_environment_file(files.get(path.lstrip("-"), "")))
    for value in unit.values("Service", "UnsetEnvironment"):
        for word in split_words(value).words:
            name, equals, content = word.partition("=")
            if not equals or found.get(name) == content:
                found.pop(name, None)
    return found


def read_environment_file(text: str) -> dict[str, str]:
    """An environment file: C(NAME=VALUE) lines, quoted as in a shell, a backslash joins lines, C(#) and C(;) begin comments."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        end = text.find("\n", place)
        line = text[place : end if end >= 0 else len(text)]
        name, equals, _rest = line.partition("=")
        if line.lstrip(_BLANKS)[:1] in ("#", ";") or not equals:
            place += len(line) + 1
            continue
        value, place = _shell_value(text, place + len(name) + 1)
        if _NAME.match(name.strip(_BLANKS)):
            found[name.strip(_BLANKS)] = value
    return found


def _in_order(drop_ins: Mapping[str, str]) -> list[tuple[str, str]]:
    """Drop-ins by the name of the file; of two with the same name the one of the administrator."""
    ranks = ("/etc/", "/run/")
    chosen: dict[str, str] = {}
    for path in sorted(drop_ins, key=lambda item: next((rank for rank, root in enumerate(ranks) if item.startswith(root)), len(ranks))):
        chosen.setdefault(posixpath.basename(path), path)
    return [(chosen[name], drop_ins[chosen[name]]) for name in sorted(chosen)]


def _read_into(settings: list[Setting], odd: list[str], source: str, text: str) -> None:
    section = ""
    where = f"{source} " if source else ""
    for number, line in logical_lines(text.lstrip("\ufeff")):
        if line.startswith("["):
            section = line[1:-1] if line.endswith("]") else ""
            odd.extend([] if section else [f"{where}line {number}: no section: {line[:80]}"])
            continue
        name, equals, value = line.partition("=")
        if not equals or not section:
            odd.append(f"{where}line {number}: {'no assignment' if not equals else 'no section around it'}: {line[:80]}")
            continue
        settings.append(Setting(section, name.strip(_BLANKS), value.strip(_BLANKS), source))


def _ends_in_escape(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _escape(text: str, place: int) -> tuple[str, int]:
    """What the backslash at this place stands for, and where the text goes on."""
    behind = text[place + 1 : place + 2]
    if behind in _LETTER_ESCAPES and behind:
        return _LETTER_ESCAPES[behind], place + 2
    match = _CODE_ESCAPE.match(text, place + 1)
    if match:
        digits = next(group for group in match.groups() if group)
        code = int(digits, 8 if match.group(4) else 16)
        if 0 < code < 0x110000:
            return chr(code), match.end()
    return "\\", place + 1


def _commands(value: str) -> Iterator[Command]:
    """The commands of one value: a semicolon by itself parts them, an escaped one is a word."""
    split = split_words(value.replace(" \\; ", f" {_ESCAPED_SEMICOLON} "))
    if split.odd:
        yield Command("", (), split.odd)
        return
    for words in _parted(split.words):
        first = words[0].lstrip(_PREFIXES)
        prefix = words[0][: len(words[0]) - len(first)]
        # behind an @ the second word is what the program is called, not an argument
        rest = words[2:] if "@" in prefix else words[1:]
        yield Command(prefix, tuple(word.replace("%%", "%").replace(_ESCAPED_SEMICOLON, ";") for word in (first, *rest)))


def _parted(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    part: list[str] = []
    for word in (*words, ";"):
        if word != ";":
            part.append(word)
        elif part:
            yield tuple(part)
            part = []


def _replaced(match: re.Match[str], environment: Mapping[str, str], missing: list[str]) -> str:
    if match.group() == "$$":
        return "$"
    # within a word only the form with braces is a variable
    if match.group(1) is None and match.group() != match.string:
        return match.group()
    name = match.group(1) or match.group(2)
    if name not in environment:
        missing.append(match.group())
        return match.group()
    return environment[name]


def _shell_value(text: str, place: int) -> tuple[str, int]:
    """The value that begins at this place, and where the next line begins."""
    value: list[str] = []
    blank_from: Optional[int] = None
    quote = ""
    while place < len(text):
        letter = text[place]
        place += 1
        if letter == "\\" and quote != "'":
            following, place = text[place : place + 1], place + 1
            if following != "\n":
                value.extend(following if not quote or following in '"\\`$' else letter + following)
            blank_from = None
        elif quote or letter in "\"'":
            value.extend(letter if quote and letter != quote else "")
            quote = "" if letter == quote else quote or letter
            blank_from = None
        elif letter == "\n":
            break
        else:
            blank_from = (len(value) if blank_from is None else blank_from) if letter in _BLANKS else None
            value.extend(letter if value or letter not in _BLANKS else "")
    return "".join(value[:blank_from]), place
