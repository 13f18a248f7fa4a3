# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installer's output says: how far it is, and why it gave up. Private to this collection: may change at any time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._release import Request
from ansible_collections.inferops.sglang.plugins.module_utils._release_command import PACKAGES


@dataclass(frozen=True)
class Phase:
    """``kind`` moves on as the installation does, ``text`` says what it is at just now."""

    kind: str
    text: str


BEGINNING = Phase("environment", "makes the environment")

# the newest line that matches says where it is; pip's and uv's words
_PHASES: tuple[tuple[re.Pattern[str], str, Callable[[str], str]], ...] = (
    (re.compile(r"^\s*(?:Collecting|Downloading|Downloaded|Processing) (\S+)"), "fetches", lambda name: f"fetches {_package(name)}"),
    (re.compile(r"^\s*(?:Cloning|Updating|Running command git clone) (\S*)"), "fetches", lambda _url: "fetches the source"),
    (re.compile(r"^Resolved (\d+) packages?"), "fetches", lambda count: f"fetches {count} packages"),
    (re.compile(r"^\s*Building (?:wheels? for )?(?:collected packages: )?([^\s,(]+)"), "builds", lambda name: f"builds {_package(name)}"),
    (re.compile(r"^Installing collected packages: (.+)"), "installs", lambda names: _installs(names.count(",") + 1)),
    (re.compile(r"^Prepared (\d+) packages?"), "installs", lambda count: _installs(int(count))),
    (re.compile(r"^Installed (\d+) packages?"), "compiles", lambda _count: "compiles"),
    (re.compile(r"^Successfully installed "), "finishes", lambda _names: "writes to the disk"),
)


def phase_of(lines: Sequence[str]) -> Phase:
    """How far an installer is, by its newest line that tells."""
    for line in reversed(lines):
        if line == PACKAGES:
            return Phase("resolves", "looks for the packages")
        for pattern, kind, text in _PHASES:
            match = pattern.match(line)
            if match:
                return Phase(kind, text(match.group(1) if match.groups() else ""))
    return BEGINNING


def _package(name: str) -> str:
    """The name alone of a requirement, a URL or a file."""
    base = name.rstrip("/").rsplit("/", 1)[-1]
    return re.split(r"[=<>!~;\[@(]|-\d", base, maxsplit=1)[0] or name


def _installs(count: int) -> str:
    return f"installs {count} package{'s' if count != 1 else ''}"


@dataclass(frozen=True)
class Trouble:
    """Why an installer gave up, and what to do about it."""

    found: str
    do: str


@dataclass(frozen=True)
class _Cause:
    """Words that give a cause away: a pattern (C(@VERSION@) is the version asked), what to do, and what to say was found."""

    words: str
    do: str
    found: str = r"\g<0>"


# in order: what makes other things fail stands first
_CAUSES = (
    _Cause(r"No space left on device|Disk quota exceeded", "free space there, or put sglang_root on a file system with more of it"),
    _Cause(r"ensurepip is not available|No module named '?(?:venv|ensurepip)'?", "install {venv} on the host, or ask for the installer uv",
           "that {python} cannot make environments (\\g<0>)"),
    _Cause(r"Cannot find command 'git'[^\n]*|Git executable not found[^\n]*", "install git on the host"),
    _Cause(r"(?:fatal|error): ((?:'[^'\n]*' does not appear|repository|unable to|could not read|pathspec|couldn't find remote)[^\n]*)"
           r"|(failed to fetch (?:branch|tag|commit)[^\n]*)",
           "check the repository and the reference: {origin}", r"\1\2"),
    _Cause(r"(?P<package>\S+) from [^\n]*\n\s*Expected sha256 (?P<want>\w+)\s*\n\s*Got\s+(?P<got>\w+)",
           "compare the lock file {lock} with where the packages come from; what came is not what was locked",
           r"\g<package> with sha256 \g<got> in place of \g<want>"),
    _Cause(r"Hash mismatch for `(?P<package>[^`]+)`\s+Expected:\s+sha256:(?P<want>\w+)\s+Computed:\s+sha256:(?P<got>\w+)",
           "compare the lock file {lock} with where the packages come from; what came is not what was locked",
           r"\g<package> with sha256 \g<got> in place of \g<want>"),
    _Cause(r"Hashes are required in --require-hashes mode[^\n]*(?:\n\s+\S+ --hash=\S+)?|"
           r"In `?--require-hashes`? mode, all requirements must have[^\n]*",
           "give every package in {lock} a version and a hash"),
    _Cause(r"[^\n]*\b40[13]\b (?:Client )?Error[^\n]*|[^\n]*HTTP status client error \(40[13][^\n]*|40[13] (?:Unauthorized|Forbidden)",
           "look at user and password in the address of the index"),
    _Cause(r"The repository located at \S+ is not a trusted or secure host",
           "give the index by https, or the play's environment PIP_TRUSTED_HOST"),
    _Cause(r"Temporary failure in name resolution|Name or service not known|Network is unreachable|No route to host|Connection refused"
           r"|Connection reset by peer|[Cc]onnection timed out|dns error[^\n]*|tcp connect error[^\n]*",
           "give sglang_index_url an index that it reaches, the play's environment a proxy, or sglang_wheelhouse a directory of wheels",
           "that the host does not reach {origin} (\\g<0>)"),
    _Cause(r"[^\n]*requires a different Python: [^\n]*|\b@VERSION@ Requires-Python [^;\n]*|[^\n]*does not satisfy Python[^\n]*",
           "give sglang_python a Python that the release runs on"),
    _Cause(r"ResolutionImpossible[^\n]*|(?:[^\n]*) because these package versions have conflicting dependencies",
           "take out of constraints and requirements what contradicts the release"),
    _Cause(r"No matching distribution found for (?P<what>[^\n(]*[^\n(\s])",
           "give sglang_version a release that {origin} has, or add what it lacks",
           "No matching distribution found for \\g<what>{versions}"),
    _Cause(r"No solution found when resolving dependencies:?\s+(?:╰─▶ |cause: )?(?P<why>(?:[^\n]+\n?)+)",
           "give versions that {origin} has and that go together, or ask for the installer pip", r"no solution: \g<why>"),
    _Cause(r"[^\n]*is not a (?:supported wheel on this platform|valid wheel filename)[^\n]*|[^\n]*[Ii]nvalid wheel[^\n]*",
           "give sglang_wheel a wheel for the Python and the processor of this host"),
    _Cause(r"Failed (?:building wheel for|to build) ([^\n]+)", "look at the output for what its build lacks, mostly a compiler or headers",
           r"that the build of \1 failed"),
)  # fmt: skip
_VERSIONS = re.compile(r"\(from versions: ([^)\n]*)\)")
_TALK = re.compile(r"^\s*(?:WARNING|\[notice\]|hint|note:|note )|^\s*$")


def trouble_of(lines: Sequence[str], request: Request, release: Mapping[str, str], otherwise: str) -> Trouble:
    """The decisive words of an installer that failed, with what to do.

    ``release``: what C(os-release) says of the host. ``otherwise``: what is known without any output.
    """
    text = "\n".join(lines)
    versions = _VERSIONS.search(text)
    names = {
        "venv": venv_package(release, request.python),
        "python": request.python,
        "origin": request.origin,
        "lock": request.lock_file,
        "versions": f" (from versions: {_short(versions.group(1))})" if versions else "",
    }
    for cause in _CAUSES:
        match = re.search(cause.words.replace("@VERSION@", re.escape(request.version)), text)
        if match:
            template = cause.found.format_map({name: value.replace("\\", "\\\\") for name, value in names.items()})
            return Trouble(" ".join(match.expand(template).split()).rstrip("."), cause.do.format_map(names))
    errors = [line for line in lines if re.match(r"\s*(?:ERROR|error|Error)\b", line)] or [line for line in lines if not _TALK.match(line)]
    found = re.sub(r"^\s*(?:ERROR|error|Error):\s*", "", errors[-1]).strip().rstrip(".") if errors else otherwise
    return Trouble(found, "look at the output of the installer")


def _short(versions: str) -> str:
    known = versions.split(", ")
    return versions if len(known) <= 5 else "..., " + ", ".join(known[-5:])


def venv_package(release: Mapping[str, str], python: str) -> str:
    """The package that brings the module venv for an interpreter, by family of distributions (C(ID) and C(ID_LIKE) of os-release)."""
    family = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    name = python.rsplit("/", 1)[-1]
    if family & {"debian", "ubuntu"}:
        return f"the package {name if name.startswith('python') else 'python3'}-venv"
    if family & {"rhel", "fedora", "centos"}:
        return f"the packages {name}-libs and {name}-pip-wheel" if name.startswith("python") else "the package python3-libs"
    return "the package that brings Python's module venv"


def os_release(text: str) -> dict[str, str]:
    """The lines of C(/etc/os-release)."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _equals, value in pairs}
