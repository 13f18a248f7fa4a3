# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the folder of wheels that installs the real SGLang on a host without a GPU or a network.

It holds every package of requirements.txt, SGLang's own wheel with other requirements in its
metadata (version label ``+cpu``, every other file byte for byte as published), and the platform
plugin of the folder shim. Plain ``pip install --no-index --find-links FOLDER sglang==0.5.23``
takes the lot: ``==0.5.23`` admits ``0.5.23+cpu``.

The work is kept below ~/.cache/inferops-sglang/wheelhouse (INFEROPS_ENGINE_CACHE names another
place), in folders keyed by a hash of what they were made from, and appears there only when
complete. The last line printed is the folder.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Callable, Optional

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
SHIM = HERE / "shim"

SGLANG = "0.5.23"
LABEL = "cpu"
PLUGIN = "inferops_cpu_engine"
PLUGIN_VERSION = "1.0"
PYTHON = (3, 11)
"""The Python of the hosts that install from the wheelhouse: Debian 12's own."""

Member = tuple[zipfile.ZipInfo, bytes]


class WheelhouseError(Exception):
    """What was wanted, what was found and what to do, in one text."""


def requirements() -> list[str]:
    """The pinned requirements, comments removed."""
    lines = (line.partition("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def plugin_files() -> dict[str, bytes]:
    """The plugin's modules by their name inside the wheel."""
    return {str(path.relative_to(SHIM)): path.read_bytes() for path in sorted((SHIM / PLUGIN).glob("*.py"))}


def cache_root() -> Path:
    default = Path.home() / ".cache" / "inferops-sglang" / "wheelhouse"
    return Path(os.environ.get("INFEROPS_ENGINE_CACHE") or default)


def _key(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def _complete(target: Path, fill: Callable[[Path], None]) -> Path:
    """``target``, made by ``fill`` in a folder beside it that is renamed when it is whole."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{target.name}.part-", dir=target.parent))
    try:
        fill(part)
        part.chmod(0o755)
        try:
            part.rename(target)
        except OSError:
            # Another run was faster; its folder was made from the same inputs.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _run(argv: list[str]) -> None:
    print("+", " ".join(argv), flush=True)
    done = subprocess.run(argv, check=False)
    if done.returncode:
        raise WheelhouseError(
            f"wanted: {' '.join(argv)}; found: exit status {done.returncode}, its own message stands above; "
            "fix what it names (often the network or a full disk) and run this again"
        )


def _pip(scratch: Path) -> list[str]:
    """The pip of a bare Python 3.11, whose idea of a fitting wheel is that of the hosts."""
    found = sys.version_info[:2]
    if found != PYTHON:
        raise WheelhouseError(
            f"wanted: Python {PYTHON[0]}.{PYTHON[1]}, the hosts' version, to choose wheels with; "
            f"found: {sys.executable} is {found[0]}.{found[1]}; run this on Debian 12, or with its Python"
        )
    venv = scratch / "venv"
    _run([sys.executable, "-m", "venv", str(venv)])
    return [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]


def _download(target: Path) -> None:
    """Fill ``target`` with the published wheels: requirements in wheels/, SGLang itself in sglang/."""
    with tempfile.TemporaryDirectory() as scratch:
        get = [*_pip(Path(scratch)), "download", "-qq", "--only-binary", ":all:"]
        _run([*get, "--no-deps", "-d", str(target / "sglang"), f"sglang=={SGLANG}"])
        _run([*get, "-d", str(target / "wheels"), "-r", str(REQUIREMENTS)])


def _record_row(name: str, data: bytes) -> tuple[str, str, int]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", len(data)


def _write_wheel(path: Path, dist_info: str, members: Iterable[Member]) -> None:
    """Write ``members`` and the RECORD that lists them."""
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in members:
            wheel.writestr(member, data, zipfile.ZIP_DEFLATED)
            rows.writerow(_record_row(member.filename, data))
        name = f"{dist_info}/RECORD"
        rows.writerow((name, "", ""))
        wheel.writestr(_plain_member(name), record.getvalue())


def _plain_member(name: str) -> zipfile.ZipInfo:
    """A readable file of a fixed date, so that equal inputs give equal wheels."""
    member = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
    member.external_attr = 0o100644 << 16
    return member


def cpu_metadata(published: bytes, needs: Iterable[str]) -> bytes:
    """The METADATA ``published`` with ``needs`` for its requirements and the local label on its version."""
    head, _blank, description = published.decode().partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith(("Requires-Dist:", "Provides-Extra:"))]
    lines = [f"{line}+{LABEL}" if line.startswith("Version:") else line for line in lines]
    lines += [f"Requires-Dist: {need}" for need in needs]
    return "\n".join(lines).encode() + b"\n\n" + description.encode()


def repack(published: Path, folder: Path, needs: Iterable[str]) -> Path:
    """Write the wheel ``published`` into ``folder`` with ``needs`` for its requirements.

    Raises WheelhouseError if anything but METADATA and RECORD came out different.
    """
    old = f"sglang-{SGLANG}"
    new = f"{old}+{LABEL}"

    def members() -> Iterator[Member]:
        with zipfile.ZipFile(published) as wheel:
            for member in wheel.infolist():
                data = wheel.read(member)
                if member.filename == f"{old}.dist-info/RECORD" or member.is_dir():
                    continue
                if member.filename == f"{old}.dist-info/METADATA":
                    data = cpu_metadata(data, needs)
                member.filename = member.filename.replace(f"{old}.dist-info/", f"{new}.dist-info/", 1)
                yield member, data

    path = folder / published.name.replace(old, new, 1)
    _write_wheel(path, f"{new}.dist-info", members())
    changed = differences(published, path)
    if changed != {"METADATA", "RECORD"}:
        raise WheelhouseError(
            f"wanted: {path.name} to differ from {published.name} in METADATA and RECORD only; "
            f"found: {', '.join(sorted(changed))}; the published wheel is laid out in a way this script does not know"
        )
    return path


def differences(published: Path, repacked: Path) -> set[str]:
    """The files in which two wheels of SGLang differ; those of the .dist-info by their bare names."""

    def digests(path: Path) -> dict[str, str]:
        with zipfile.ZipFile(path) as wheel:
            return {
                _bare(member.filename): hashlib.sha256(wheel.read(member)).hexdigest()
                for member in wheel.infolist()
                if not member.is_dir()
            }

    before, after = digests(published), digests(repacked)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _bare(name: str) -> str:
    folder, slash, rest = name.partition("/")
    return rest if slash and folder.endswith(".dist-info") else name


def plugin_wheel(folder: Path) -> Path:
    """Write the platform plugin's wheel into ``folder``; SGLang finds it by its entry point."""
    info = f"{PLUGIN}-{PLUGIN_VERSION}.dist-info"
    documents = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PLUGIN.replace('_', '-')}\nVersion: {PLUGIN_VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: wheelhouse\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[sglang.srt.platforms]\ninferops_cpu = {PLUGIN}:activate\n",
    }
    files = {**plugin_files(), **{name: text.encode() for name, text in documents.items()}}
    path = folder / f"{PLUGIN}-{PLUGIN_VERSION}-py3-none-any.whl"
    _write_wheel(path, info, ((_plain_member(name), data) for name, data in files.items()))
    return path


def _share(source: Path, target: Path) -> None:
    """Put ``source`` at ``target`` without a second copy of its bytes, where the file system allows that."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _assemble(downloads: Path, target: Path) -> None:
    for wheel in sorted((downloads / "wheels").iterdir()):
        _share(wheel, target / wheel.name)
    published = next((downloads / "sglang").iterdir())
    repack(published, target, [*requirements(), f"{PLUGIN.replace('_', '-')}=={PLUGIN_VERSION}"])
    plugin_wheel(target)
    with tempfile.TemporaryDirectory() as scratch:
        # Proves the folder complete, without help from this machine's pip configuration, before it gets its name.
        offline = ["install", "-qq", "--dry-run", "--no-index", "--find-links", str(target), f"sglang=={SGLANG}"]
        _run([*_pip(Path(scratch)), "--isolated", *offline])


def build(root: Optional[Path] = None) -> Path:
    """Build what is missing below ``root`` (default: the cache) and return the wheelhouse."""
    root = root or cache_root()
    downloads = root / f"downloads-{_key(REQUIREMENTS.read_bytes(), SGLANG.encode())}"
    _complete(downloads, _download)
    inputs = [REQUIREMENTS.read_bytes(), Path(__file__).read_bytes(), *plugin_files().values()]
    return _complete(root / f"wheels-{_key(*inputs)}", functools.partial(_assemble, downloads))


def main() -> None:
    try:
        print(build())
    except WheelhouseError as error:
        sys.exit(f"wheelhouse: {error}")


if __name__ == "__main__":
    main()
