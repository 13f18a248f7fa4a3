# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches what the comparison runs: the Python sources of SGLang releases, and a virtual environment they run in.

Everything is kept below ~/.cache/inferops-sglang/differential (XDG_CACHE_HOME moves ~/.cache) and appears there only when it
is whole and checked: a fetch that was killed leaves nothing that a later one would take.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
WHEELHOUSE = HERE.parent / "engine" / "wheelhouse"
REQUIREMENTS = (HERE / "requirements.txt", HERE.parent / "engine" / "requirements.txt")
# Debian 12's own: the wheelhouse holds wheels for it, and the releases' wheels are made for it
PYTHON = "/usr/bin/python3"


class SourceError(Exception):
    """What was wanted, what was found and what to do, in one text."""


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "inferops-sglang" / "differential"


def releases() -> list[str]:
    """Every release of releases.txt, oldest first."""
    lines = (line.partition("#")[0].strip() for line in (HERE / "releases.txt").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def source(release: str) -> Path:
    """The folder that holds the package ``sglang`` of a release, fetched if it is not there."""
    return _complete(cache_root() / "sources" / release, functools.partial(_unpack, release))


def environment() -> Path:
    """The Python of the environment that the releases run in, made if it is not there."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in REQUIREMENTS)).hexdigest()[:16]
    return _complete(cache_root() / f"environment-{key}", _install) / "bin" / "python"


def _complete(target: Path, fill: Callable[[Path], None]) -> Path:
    """``target``, made by ``fill`` in a folder beside it that gets its name when it is whole; one process at a time."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            fill(part)
            part.rename(target)
    return target


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SourceError(
            f"wanted: {' '.join(argv)}; found: exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}; "
            "fix what it names (often the network or a full disk) and run this again"
        )
    return done.stdout


def _unpack(release: str, part: Path) -> None:
    """The published wheel without its compiled libraries."""
    download = part / "wheel"
    pip = [str(environment()), "-m", "pip", "--disable-pip-version-check", "download", "-qq", "--no-deps"]
    _run([*pip, "--only-binary", ":all:", "-d", str(download), f"sglang=={release}"])
    wheel = next(download.iterdir())
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("sglang/") and not name.endswith(".so")]
        archive.extractall(part, names)
    shutil.rmtree(download)
    for needed in ("sglang/srt/server_args.py", "sglang/srt/model_executor/model_runner.py"):
        if not (part / needed).is_file():
            raise SourceError(f"wanted: {needed} of SGLang {release}; found: {wheel.name} without it; is releases.txt right?")


def _install(part: Path) -> None:
    wheels = _run([str(WHEELHOUSE)]).splitlines()[-1]
    _run([PYTHON, "-m", "venv", str(part)])
    pip = [str(part / "bin" / "python"), "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "-qq", "--no-index"]
    _run([*pip, "--find-links", wheels, "-r", str(REQUIREMENTS[0])])
