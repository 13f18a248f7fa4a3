# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Safetensors checkpoints by their index and headers alone: tensors, completeness, fingerprint.

Private to this collection: may change at any time. No tensor is read, so a checkpoint of half a terabyte costs as much as
its headers. A file starts with the length of its header (8 bytes, little endian) and the header itself (JSON).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError

GIB = 1 << 30
INDEX = "model.safetensors.index.json"
# the format's own limit of a header
_MAX_HEADER = 100_000_000
_LFS_START = b"version "
# what download tools call a file that they have not finished
_UNFINISHED = (".incomplete", ".part", ".partial", ".tmp", ".crdownload", ".aria2")
# where the hub's client keeps the unfinished files of a download into a directory
_HUB_DOWNLOADS = os.path.join(".cache", "huggingface", "download")
_SHARD = re.compile(r"^(?P<start>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors$")

Opener = Callable[[str], BinaryIO]


class Tensor(NamedTuple):
    """One tensor of a checkpoint; ``size`` in bytes on disk, ``dtype`` as safetensors names it (``BF16``, ``F8_E4M3``)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Checkpoint:
    """What the headers of a checkpoint say. ``problems`` is empty exactly where every promised byte is there."""

    directory: str
    files: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    problems: tuple[str, ...]
    fingerprint: str

    @property
    def complete(self) -> bool:
        return not self.problems

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors, without headers."""
        return sum(tensor.size for tensor in self.tensors)

    def bytes_by_dtype(self) -> dict[str, int]:
        """Bytes of each stored type, the largest first."""
        found: dict[str, int] = {}
        for tensor in self.tensors:
            found[tensor.dtype] = found.get(tensor.dtype, 0) + tensor.size
        return dict(sorted(found.items(), key=lambda item: -item[1]))


@dataclass(frozen=True)
class Weights:
    """Weight memory of the heaviest rank, and how far off that may be; both GiB. ``reasons`` say what the error is made of."""

    gib: float
    error_gib: float = 0.0
    reasons: tuple[str, ...] = ()


def _open(path: str) -> BinaryIO:
    return open(path, "rb")


def read_checkpoint(directory: str, opener: Opener = _open) -> Checkpoint:
    """The checkpoint in a directory; raises InputError where there is none, lists what is missing or cut in ``problems``.

    The fingerprint is made of the files' names and headers: a copy has the same one, other shapes or types another.
    """
    index = _index(directory, opener)
    present = _names(directory)
    files = tuple(sorted(set(index.values()))) if index else _numbered(_listed(directory, present))
    tensors: list[Tensor] = []
    problems: list[str] = []
    digest = hashlib.sha256()
    for name in files:
        try:
            header, found = _file(os.path.join(directory, name), opener)
        except _Damaged as error:
            problems.append(f"{name}: {error}")
            continue
        digest.update(f"{name}\0".encode() + header)
        tensors.extend(found)
    if index and not problems:
        problems.extend(_unlisted(index, tensors))
    promised = bool(index) or any(_SHARD.match(name) for name in files)
    problems.extend(_unfinished(directory, present, promised and not problems))
    return Checkpoint(directory, files, tuple(tensors), tuple(problems), digest.hexdigest())


class _Damaged(Exception):
    """A file that is not what its header promises."""


def _index(directory: str, opener: Opener) -> dict[str, str]:
    """Tensor to file by the checkpoint's index; empty where there is no index."""
    path = os.path.join(directory, INDEX)
    try:
        with opener(path) as stream:
            content = json.loads(stream.read().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"the index {path}", str(error), "fetch the checkpoint again") from error
    names = content.get("weight_map") if isinstance(content, Mapping) else None
    if not isinstance(names, Mapping) or not all(_plain_name(value) for value in names.values()):
        raise InputError(f"the index {path}", "no weight_map of tensor and file names", "fetch the checkpoint again")
    return {str(key): value for key, value in names.items()}


def _plain_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and os.path.basename(value) == value


def _names(directory: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(directory)))
    except OSError as error:
        raise InputError(
            f"the checkpoint {directory}", error.strerror or str(error), "give the directory of the model on this host"
        ) from error


def _listed(directory: str, present: Iterable[str]) -> tuple[str, ...]:
    names = tuple(name for name in present if name.endswith(".safetensors"))
    if not names:
        raise InputError(
            f"the checkpoint {directory}",
            "no safetensors file in it",
            "fetch the model, or tell the plan what its weights take (weights_gib, draft_weights_gib)",
        )
    return names


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The files there are and those that their numbers promise: one of ``-00001-of-00064`` says that there are 64."""
    wanted = set(names)
    for match in filter(None, map(_SHARD.match, names)):
        start, count = match["start"], int(match["count"])
        wanted.update(f"{start}-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1))
    return tuple(sorted(wanted))


def _unfinished(directory: str, present: Sequence[str], vouched: bool) -> list[str]:
    """Downloads that have not ended. The hub's client names its own by a hash, so that those count only where nothing vouches
    for the files: every file of an index or of a numbered series being whole, the one in flight is no weight."""
    there = set(present)
    partial = [name for name in present if name.endswith(_UNFINISHED)]
    problems = [
        f"{name}: an unfinished download"
        for name in partial
        if ".safetensors" in name and name[: name.index(".safetensors")] + ".safetensors" not in there
    ]
    if vouched:
        return problems
    try:
        hidden = os.listdir(os.path.join(directory, _HUB_DOWNLOADS))
    except OSError:
        hidden = []
    count = sum(name.endswith(_UNFINISHED) for name in hidden)
    return [*problems, f"{count} unfinished downloads in {_HUB_DOWNLOADS}"] if count else problems


def _file(path: str, opener: Opener) -> tuple[bytes, list[Tensor]]:
    """Header bytes and tensors of one file; raises _Damaged where file and header do not agree."""
    try:
        with opener(path) as stream:
            header = _header(stream)
            size = stream.seek(0, os.SEEK_END)
    except FileNotFoundError:
        raise _Damaged("missing") from None
    except OSError as error:
        raise _Damaged(error.strerror or str(error)) from error
    tensors, end = _tensors(header)
    expected = 8 + len(header) + end
    if size != expected:
        raise _Damaged(f"{size} bytes where its header promises {expected}")
    return header, tensors


def _header(stream: BinaryIO) -> bytes:
    start = stream.read(8)
    if start == _LFS_START:
        raise _Damaged("a git-lfs pointer, not the file it stands for: git lfs pull has not run")
    length = int.from_bytes(start, "little")
    if len(start) < 8 or not 0 < length <= _MAX_HEADER:
        raise _Damaged("no safetensors header")
    header = stream.read(length)
    if len(header) != length:
        raise _Damaged("cut inside its header")
    return header


def _tensors(header: bytes) -> tuple[list[Tensor], int]:
    """The tensors of a header and where the last one ends (bytes after the header)."""
    try:
        content = json.loads(header.decode("utf-8"))
        content.pop("__metadata__", None)
        tensors = []
        last = 0
        for name, entry in content.items():
            start, end = entry["data_offsets"]
            tensors.append(Tensor(name, str(entry["dtype"]), tuple(map(int, entry["shape"])), int(end) - int(start)))
            last = max(last, int(end))
        return tensors, last
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Damaged(f"an unreadable header ({error})") from error


def _unlisted(index: Mapping[str, str], tensors: Iterable[Tensor]) -> list[str]:
    present = {tensor.name for tensor in tensors}
    absent = [name for name in index if name not in present]
    if not absent:
        return []
    return [f"{len(absent)} tensors of the index are in no file, the first: {absent[0]}"]


def optional_config(directory: str, name: str, opener: Opener = _open) -> Optional[dict[str, Any]]:
    """A JSON object beside the weights, such as hf_quant_config.json; None where there is none."""
    path = os.path.join(directory, name)
    try:
        with opener(path) as stream:
            content = json.loads(stream.read().decode("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"the file {path}", str(error), "fetch the checkpoint again, or give the path of its config.json") from error
    if not isinstance(content, dict):
        raise InputError(f"the file {path}", f"a JSON {type(content).__name__}", "give the path of a model's config.json")
    return content


def model_directory(path: str) -> str:
    """The directory of a model that is given as such or by its configuration file."""
    return _split(path)[0]


def model_config(path: str, opener: Opener = _open) -> dict[str, Any]:
    """config.json of a model with the quantisation that ModelOpt keeps in a file of its own; raises InputError where there is none."""
    directory, name = _split(path)
    config = optional_config(directory, name, opener)
    if config is None:
        raise InputError(
            f"the model {path}", f"no {os.path.join(directory, name)} on this host", "give the directory of the model, or fetch it first"
        )
    quantisation = optional_config(directory, "hf_quant_config.json", opener)
    if quantisation is not None:
        config.setdefault("quantization_config", quantisation)
    return config


def _split(path: str) -> tuple[str, str]:
    """Directory and file name of a configuration given as either."""
    if path.endswith(".json"):
        return os.path.dirname(path) or ".", os.path.basename(path)
    return path, "config.json"
