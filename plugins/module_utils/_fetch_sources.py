# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of a checkpoint: a hub, a directory of the host, rsync. Private to this collection: may change at any time.

Each says what it has and what of it is missing here, before a byte is fetched. Commands go through an injected runner.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils import _fetch_worker
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import HUB, known_commit, read_record
from ansible_collections.inferops.sglang.plugins.module_utils._hub import Hub, SourceError, SourceFile, is_repository, serves, wanted
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner

_HOST_PATH = re.compile(r"(?:[\w.-]+@)?(?:[\w.-]+|\[[0-9a-fA-F:]+\]):/(?!/).*", re.ASCII)
_STATS = {
    "total": re.compile(r"^Total file size: ([\d,.]+)", re.M),
    "missing": re.compile(r"^Total transferred file size: ([\d,.]+)", re.M),
}
MANIFEST_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")

# The kinds of file that a server reads, as rsync's rules: the first that matches decides
_RULES = (
    "--exclude=.*",
    "--exclude=/original/", "--exclude=/onnx/", "--exclude=/gguf/", "--exclude=/openvino/", "--exclude=/metal/",
    "--include=/*.safetensors", "--include=/*.safetensors.index.json", "--exclude=*.safetensors", "--exclude=*.safetensors.index.json",
    "--include=*/", "--include=*.json", "--include=*.jsonl", "--include=*.model", "--include=*.tiktoken", "--include=*.py",
    "--include=*.jinja", "--include=*.txt", "--include=*.bpe", "--include=*.vocab", "--include=tokenizer*", "--exclude=*",
)  # fmt: skip
_RSYNC = ("rsync", "--copy-links", "--times", "--timeout=300")
_WHOLE = ("--recursive", "--inplace", "--delete", "--prune-empty-dirs", *_RULES)


@dataclass(frozen=True)
class Offer:
    """What a source has. ``job`` is the source as the worker takes it, ``files`` are empty where rsync finds out by itself.

    ``total_bytes`` are those of all files, ``missing_bytes`` those that have to be fetched. ``commit`` is empty where it is not known.
    """

    job: Mapping[str, Any]
    total_bytes: int
    missing_bytes: int
    commit: str = ""
    files: Sequence[SourceFile] = field(default_factory=tuple)


def kind_of(source: str) -> str:
    """C(hub), C(directory) or C(rsync); raises SourceError for what is none."""
    if source.startswith(HUB):
        if is_repository(source[len(HUB) :]):
            return "hub"
    elif source.startswith("/"):
        return "directory"
    elif source.startswith("rsync://") or _HOST_PATH.fullmatch(source):
        return "rsync"
    raise SourceError(
        f"the source {source!r}",
        "neither hub:OWNER/NAME, nor the absolute path of a directory, nor rsync://HOST/MODULE/PATH or HOST:/PATH",
        "give one of these",
    )  # fmt: skip


def hub_offer(hub: Hub, source: str, revision: str, fetching: str, standing: str) -> Offer:
    """One commit of a repository. Sizes tell here what is missing; the worker looks at the content."""
    found = hub.snapshot(source[len(HUB) :], revision)
    record = read_record(standing)
    missing = 0
    for file in found.files:
        stamp = record.files.get(file.name) if record else None
        is_other = stamp is not None and stamp.identity != "" and stamp.identity != file.identity
        there = _size(fetching, file.name) == file.size or (_size(standing, file.name) == file.size and not is_other)
        missing += 0 if there else file.size
    job = {"kind": "hub", "endpoint": hub.endpoint.rstrip("/"), "repository": found.repository, "commit": found.commit}
    return Offer(job, found.total_bytes, max(missing - parts_bytes(fetching), 0), found.commit, found.files)


def directory_offer(source: str, path: str, fetching: str, standing: str) -> Offer:
    """A directory of this host. Content that has the same size and time of change is the same."""
    origin = os.path.realpath(source)
    asked = f"a checkpoint from the directory {source}"
    if origin == path or origin.startswith(path + "/") or path.startswith(origin + "/"):
        raise SourceError(asked, f"that it is (in) the place where the model shall be, {path}", "give another directory as source")
    if not os.path.isdir(origin):
        raise SourceError(asked, "no such directory on this host", "mount the file system it is on, or give another source")
    files = wanted(_listed(origin))
    if not any(file.name.endswith(".safetensors") for file in files):
        raise SourceError(asked, f"no safetensors file in it, and {len(files)} others", "give the directory that holds the model's files")
    missing = sum(file.size for file in files if not (_same_time(fetching, file) or _same_time(standing, file)))
    record = read_record(origin)
    commit = record.commit if record else known_commit(origin)
    return Offer({"kind": "directory", "path": origin}, sum(file.size for file in files), missing, commit, files)


def rsync_offer(url: str, fetching: str, standing: str, run: Runner, password_file: str = "") -> Offer:
    """What rsync would copy, by its own word."""
    words = rsync_words(url, password_file)
    argv = [*words, *_WHOLE]
    origin = url if url.endswith("/") else url + "/"
    linked = [f"--link-dest={standing}"] if standing else []
    asked = f"a checkpoint by rsync from {url}"
    try:
        code, out, errors = run([*argv, "--dry-run", "--stats", *linked, origin, fetching + "/"])
    except OSError as error:
        found = f"that rsync cannot be started here ({error.strerror or error})"
        raise SourceError(asked, found, "install the package rsync on this host (Debian, Ubuntu, Red Hat and others call it so)") from None
    if code != 0:
        failure = _fetch_worker.rsync_failure(code, errors, url).answer
        raise SourceError(asked, failure["found"], failure["do"], failure["check"])
    figures = {name: pattern.search(out) for name, pattern in _STATS.items()}
    total, missing = (int(re.sub(r"\D", "", found[1])) if found else 0 for found in (figures["total"], figures["missing"]))
    return Offer({"kind": "rsync", "url": origin, "argv": argv, "record_argv": words, "missing_bytes": missing}, total, missing)


def rsync_words(url: str, password_file: str = "") -> list[str]:
    """The command in front of what decides what is copied, and where to."""
    words = [*_RSYNC]
    words += ["--contimeout=30"] if url.startswith("rsync://") else ["--rsh=ssh -o BatchMode=yes -o ConnectTimeout=30"]
    return [*words, *([f"--password-file={password_file}"] if password_file else [])]


def read_manifest(path: str) -> dict[str, str]:
    """File name to SHA-256 of the files that serving needs, of a file as C(sha256sum) writes it; raises SourceError."""
    asked = f"the manifest {path}"
    todo = "give a file with lines of 64 hexadecimal digits, two spaces and a file's name, as sha256sum writes them"
    try:
        with open(path, encoding="utf-8") as stream:
            lines = [line.rstrip("\n") for line in stream if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(asked, getattr(error, "strerror", None) or "no text", todo, "model_manifest") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = MANIFEST_LINE.fullmatch(line)
        name = os.path.normpath(match[2]) if match else ""
        if match is None or name.startswith(("/", "..")):
            raise SourceError(asked, f"the line {number}, {line[:80]!r}", todo, "model_manifest")
        if serves(name):
            found[name] = match[1].lower()
    if not found:
        raise SourceError(asked, "no file in it that a server reads", todo, "model_manifest")
    return found


def parts_bytes(fetching: str) -> int:
    """Bytes of files that have come in part."""
    place = os.path.join(fetching, _fetch_worker.WORK, "parts")
    try:
        return sum(entry.stat().st_size for entry in os.scandir(place))
    except OSError:
        return 0


def _listed(directory: str) -> list[SourceFile]:
    found = []
    for folder, names, files in os.walk(directory, followlinks=False):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in files:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, directory)
            if serves(relative) and os.path.isfile(path):
                state = os.stat(path)
                found.append(SourceFile(relative, state.st_size, f"mtime:{state.st_mtime_ns}"))
    return sorted(found, key=lambda file: file.name)


def _size(directory: str, name: str) -> int:
    try:
        return os.stat(os.path.join(directory, name)).st_size if directory else -1
    except OSError:
        return -1


def _same_time(directory: str, file: SourceFile) -> bool:
    try:
        state = os.stat(os.path.join(directory, file.name)) if directory else None
    except OSError:
        return False
    return state is not None and (state.st_size, f"mtime:{state.st_mtime_ns}") == (file.size, file.identity)
