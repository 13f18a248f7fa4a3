# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release of SGLang in an environment of its own: what is asked, where it lies, whether it is whole. Private to this collection.

One environment for each request. Its folder's name carries a hash over the request and over the content of what the request points at,
so that another request, or the same one with another lock file, is another folder. The mark is written last: a folder without it is not
finished. Whether a finished one is still whole is told from the names in it alone, without starting anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlsplit, urlunsplit

from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner

MARK = ".complete"
RELEASE_NAME = re.compile(r"\d[\w.+!]*-[0-9a-f]{8}", re.ASCII)  # as path_of gives them
SHOWN_PACKAGES = 3

_VERSION = re.compile(r"\d[\w.+!-]{0,60}", re.ASCII)
_PYTHON_NAME = re.compile(r"python(\d+\.\d+)$")
_ASK_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


class ReleaseError(Exception):
    """What was asked, found, and what to do; as text and as a finding."""

    def __init__(self, asked: str, found: str, do: str) -> None:
        super().__init__(f"asked for {asked}, found {found}; {do}")
        self.finding = Finding("release", asked, found, do)


@dataclass(frozen=True)
class Request:
    """What to install, and from where; an empty text means that this is not asked.

    Exactly one of ``wheel`` (a file), ``git`` (a reference as pip takes it) and ``lock_file`` may take the place of the release itself.
    ``installer`` is C(auto), C(uv) or C(pip).
    """

    version: str
    wheelhouse: str = ""
    wheel: str = ""
    git: str = ""
    index_url: str = ""
    extra_index_url: str = ""
    requirements: tuple[str, ...] = ()
    constraints: str = ""
    lock_file: str = ""
    python: str = "/usr/bin/python3"
    installer: str = "auto"

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Request:
        """A module's options, or any other mapping with these names. Raises ReleaseError for values that cannot work."""
        given = {field.name: params[field.name] for field in fields(cls) if params.get(field.name)}
        requirements = tuple(str(item).strip() for item in given.pop("requirements", ()))
        # a release of two parts is a number to YAML
        request = cls(**{"version": "", **{name: str(value) for name, value in given.items()}}, requirements=requirements)
        request._check()
        return request

    @property
    def source(self) -> str:
        """Where SGLang itself comes from: C(wheel), C(git), C(wheelhouse) or C(index)."""
        return "wheel" if self.wheel else "git" if self.git else "wheelhouse" if self.wheelhouse else "index"

    @property
    def origin(self) -> str:
        """The same for messages, by name."""
        named = {"wheel": self.wheel, "git": without_secrets(self.git), "wheelhouse": self.wheelhouse}
        return named.get(self.source) or without_secrets(self.index_url) or "the package index"

    @property
    def kept(self) -> dict[str, Any]:
        """The request as it may be written down: without what logs somebody in."""
        return {**asdict(self), "requirements": list(self.requirements), **{name: without_secrets(getattr(self, name)) for name in _URLS}}

    def _check(self) -> None:
        if not _VERSION.fullmatch(self.version):
            raise ReleaseError(f"version {self.version!r}", "that no release has such a number", "give one, for example 0.5.23")
        instead = [name for name in ("wheel", "git", "lock_file") if getattr(self, name)]
        if len(instead) > 1:
            raise ReleaseError(f"{' and '.join(instead)}", "that each of them says where SGLang comes from", "give one of them")
        if self.lock_file and self.requirements:
            raise ReleaseError(
                f"the lock file {self.lock_file} and requirements beside it",
                "that nothing without a hash can be installed with a lock file",
                "put the requirements into the lock file",
            )
        broken = [text for text in (*self.requirements, *(getattr(self, name) for name in _URLS)) if re.search(r"[\r\n\0]", text)]
        if broken:
            raise ReleaseError(f"{broken[0][:100]!r}", "more than one line in it", "give each requirement as an item of its own")


# a wheel, or a source archive, by its file's name
_SGLANG_FILE = re.compile(r"sglang-(\d[^-]*?)(?:-.*\.whl|\.tar\.gz)$")
_URLS = ("index_url", "extra_index_url", "git")


def without_secrets(url: str) -> str:
    """A URL without the user and the password in it; another one of these is not another request."""
    scheme, _plus, rest = url.partition("+") if url.startswith("git+") else ("", "", url)
    try:
        parts = urlsplit(rest)
    except ValueError:
        return url
    if "@" not in parts.netloc:
        return url
    return f"{scheme}+" * bool(scheme) + urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def path_of(root: str, request: Request, run: Runner) -> str:
    """Where the environment of this request lies, whether it is there or not.

    Reads the files the request points at, and asks the interpreter (``run``) only where its name does not tell its version.
    Raises ReleaseError for a file or an interpreter that is not there.
    """
    content = {name: _checksum(name, getattr(request, name)) for name in ("wheel", "constraints", "lock_file")}
    if request.wheelhouse and not os.path.isdir(request.wheelhouse):
        raise ReleaseError(f"the wheelhouse {request.wheelhouse}", "no such directory on the host", "put the wheels there")
    # two ways to one file are one request, and what fills the environment is part of it only as far as it was asked
    asked = {**request.kept, **content, "python_version": python_version(request.python, run)}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    return f"{root.rstrip('/') or '/'}/{request.version.replace('-', '_')}-{digest[:8]}"


def check_wheelhouse(request: Request) -> None:
    """Raises ReleaseError where a folder of wheels has SGLang, but not this release; what else it lacks the installer finds."""
    if request.source != "wheelhouse" or request.lock_file:
        return
    versions = sorted({match.group(1) for name in _listed(request.wheelhouse) if (match := _SGLANG_FILE.match(name))})
    if not any(suits(version, request) for version in versions):
        raise ReleaseError(
            f"SGLang {request.version} of the wheelhouse {request.wheelhouse}",
            f"{', '.join(versions)} in it" if versions else "no wheel of SGLang in it",
            "put its wheel there with those of all it needs, or give sglang_version a release that is there",
        )


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def python_version(python: str, run: Runner) -> str:
    """Version of an interpreter as far as its packages depend on it, C(3.11). Raises ReleaseError without one."""
    real = os.path.realpath(python)
    if not (os.path.isfile(real) and os.access(real, os.X_OK)):
        raise ReleaseError(
            f"an environment of the interpreter {python}",
            f"no program there{f' (it leads to {real})' if real != python else ''}",
            "install that Python on the host, or give the path of another one",
        )
    named = _PYTHON_NAME.search(os.path.basename(real))
    if named:
        return named.group(1)
    code, out, errors = _ask(python, run)
    if code != 0 or not re.fullmatch(r"\d+\.\d+", out.strip()):
        found = f"exit code {code} and {(errors or out).strip()[-200:]!r}"
        raise ReleaseError(f"the version of the interpreter {python}", found, "give the path of a Python that works")
    return out.strip()


def _ask(python: str, run: Runner) -> tuple[int, str, str]:
    try:
        return run([python, "-I", "-c", _ASK_VERSION])
    except OSError as error:
        return 127, "", str(error)


def _checksum(name: str, path: str) -> str:
    if not path:
        return ""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
    except OSError as error:
        found = f"that it cannot be read ({error.strerror})"
        raise ReleaseError(f"the {name.replace('_', ' ')} {path}", found, "put the file there on the host") from error
    return digest.hexdigest()


@dataclass(frozen=True)
class ReleaseState:
    """An environment as it lies there. ``kind`` names what is wrong: empty, or C(absent), C(unfinished), C(unreadable),
    C(interpreter), C(packages), C(version); ``reason`` says it in words, ``version`` is that of the SGLang inside.
    """

    path: str
    kind: str
    reason: str
    version: Optional[str]

    @property
    def complete(self) -> bool:
        return not self.kind

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "complete": self.complete, "kind": self.kind, "reason": self.reason, "version": self.version}


def state_of(path: str, request: Request) -> ReleaseState:
    """Whether the environment is there, finished, and still what it was when it was finished."""
    found = sglang_version(path)

    def say(kind: str, reason: str) -> ReleaseState:
        return ReleaseState(path, kind, reason, found)

    if not os.path.lexists(path):
        return say("absent", "it is not built yet")
    try:
        mark = read_mark(path)
    except FileNotFoundError:
        return say("unfinished", f"it was never finished: there is no {MARK} in it")
    except (OSError, ValueError) as error:
        return say("unreadable", f"its {MARK} cannot be read ({_plain(error)})")
    gone = _interpreter_problem(path, mark["python"])
    if gone:
        return say("interpreter", gone)
    if found is None or not suits(found, request):
        return say("version", f"it holds {'SGLang ' + found if found else 'no SGLang'}, not {request.version}")
    if found != mark["version"]:
        return say("version", f"it holds SGLang {found}, and was finished with {mark['version']}")
    lost = _lost(path, mark["python"], mark["distributions"])
    if lost:
        shown = ", ".join(lost[:SHOWN_PACKAGES]) + (", ..." if len(lost) > SHOWN_PACKAGES else "")
        return say("packages", f"{len(lost)} of its {len(mark['distributions'])} packages are missing or others by now ({shown})")
    return say("", "")


def state_of_existing(path: str, request: Request) -> ReleaseState:
    """The same for an environment that somebody else made and looks after: it has an interpreter and the version that is asked."""
    found = sglang_version(path)
    python = os.path.join(path, "bin/python")
    if not os.path.isdir(path):
        return ReleaseState(path, "absent", "there is no such directory", None)
    if not _runs(python):
        return ReleaseState(path, "interpreter", _leads(python), found)
    if found is None:
        return ReleaseState(path, "packages", "SGLang is not installed in it", None)
    if not suits(found, request):
        return ReleaseState(path, "version", f"it holds SGLang {found}, not {request.version}", found)
    return ReleaseState(path, "", "", found)


def mark_text(path: str, request: Request, installer: str) -> str:
    """What the mark of a finished environment says: the request, what it gave, and every package.

    Raises ReleaseError if it is not whole.
    """
    pythons = _libraries(path)
    found = sglang_version(path)
    if len(pythons) != 1 or not _runs(f"{path}/bin/python") or found is None:
        raise ReleaseError(
            f"SGLang {request.version} in {path}",
            "no interpreter in it" if not _runs(f"{path}/bin/python") else "that SGLang is not in it",
            f"look whether {request.origin} gives SGLang at all",
        )
    if not suits(found, request):
        raise ReleaseError(
            f"SGLang {request.version}",
            f"{found} in {request.lock_file or request.origin}",
            f"set sglang_version to {found.split('+')[0]}, the version of what is installed: the plan depends on it",
        )
    mark = {
        "request": request.kept,
        "version": found,
        "python": pythons[0],
        "installer": installer,
        "distributions": sorted(_distributions(path, pythons[0])),
    }
    return json.dumps(mark, indent=4, sort_keys=True) + "\n"


def read_mark(path: str) -> dict[str, Any]:
    """The mark of an environment. Raises FileNotFoundError without one, OSError or ValueError for one that says nothing."""
    mark = json.loads(Path(path, MARK).read_text(encoding="utf-8"))
    named = isinstance(mark, dict) and isinstance(mark.get("distributions"), list)
    if not named or not all(isinstance(mark.get(name), str) for name in ("version", "python")):
        raise ValueError("it does not say what is inside")
    return dict(mark)


def sglang_version(path: str) -> Optional[str]:
    """Version of the SGLang that is installed in an environment, by the names of its packages; None without exactly one."""
    names = {name for python in _libraries(path) for name in _distributions(path, python)}
    found = [name.partition("-")[2] for name in names if name.lower().startswith("sglang-")]
    return found[0] if len(found) == 1 else None


def suits(found: str, request: Request) -> bool:
    """Whether this version is the one that is asked; what is built from git may be on its way to it (C(0.5.24.dev3))."""
    asked, public = request.version.split("+")[0], found.split("+")[0]
    return public == asked or (bool(request.git) and re.sub(r"\.dev\d+$", "", public) == asked)


def _interpreter_problem(path: str, python: str) -> str:
    program = f"{path}/bin/python"
    if not _runs(program):
        return _leads(program)
    named = _PYTHON_NAME.search(os.path.basename(os.path.realpath(program)))
    if named and named.group(1) != python:
        return f"its packages are for Python {python}, and {os.path.realpath(program)} is what its bin/python leads to now"
    return ""


def _runs(program: str) -> bool:
    return os.path.isfile(program) and os.access(program, os.X_OK)


def _leads(program: str) -> str:
    if os.path.islink(program):
        return f"its interpreter is gone: bin/python leads to {os.path.realpath(program)}"
    return "it has no bin/python that runs"


def _libraries(path: str) -> list[str]:
    """Versions of Python that the environment holds packages for."""
    found = (_PYTHON_NAME.fullmatch(name) for name in _names(f"{path}/lib"))
    return sorted(match.group(1) for match in found if match and os.path.isdir(f"{path}/lib/{match.group()}/site-packages"))


def _distributions(path: str, python: str) -> list[str]:
    ending = ".dist-info"
    return [name[: -len(ending)] for name in _names(f"{path}/lib/python{python}/site-packages") if name.endswith(ending)]


def _lost(path: str, python: str, recorded: Iterable[str]) -> list[str]:
    """Packages that are not there, or only half: what a broken upgrade leaves has no list of files."""
    packages = f"{path}/lib/python{python}/site-packages"
    here = set(_distributions(path, python))
    return sorted(name for name in recorded if name not in here or not os.path.isfile(f"{packages}/{name}.dist-info/METADATA"))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _plain(error: Exception) -> str:
    return error.strerror or "unreadable" if isinstance(error, OSError) else str(error)
