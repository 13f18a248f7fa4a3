# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Safetensors checkpoints by their index and headers alone: tensors, completeness, fingerprint.

Private to this collection: may change at any time. No tensor is read, so a checkpoint of half a terabyte costs as much as
its headers. A file starts with the length of its header (8 bytes, little endian) and the header itself (JSON).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError, is_int

GIB = 1 << 30
INDEX = "model.safetensors.index.json"
# the format's own limit of a header
_MAX_HEADER = 100_000_000
# an index of a million tensors is a third of it
_MAX_JSON = 256 << 20
# more problems than these are a number
_FEW = 20
# characters of a name in a message
_NAME_WIDTH = 200
# sizes of the format are unsigned numbers of 64 bits
_MAX_SIZE = 1 << 64
# bits of an element by the type's name in a header: all that the format knows
_BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
_LFS_START = b"version "
# what download tools call a file that they have not finished
_UNFINISHED = (".incomplete", ".part", ".partial", ".tmp", ".crdownload", ".aria2")
# where the hub's client keeps the unfinished files of a download into a directory
_HUB_DOWNLOADS = os.path.join(".cache", "huggingface", "download")
_SHARD = re.compile(r"^(?P<start>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.safetensors$")

Opener = Callable[[str], BinaryIO]


class Tensor(NamedTuple):
    """One tensor of a checkpoint; ``size`` in bytes on disk, ``dtype`` as safetensors names it (``BF16``, ``F8_E4M3``)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Checkpoint:
    """What the headers of a checkpoint say. ``problems`` is empty exactly where every promised byte is there.

    Names are printable in ``files`` and ``problems``. Of many missing files and of many problems the first 20 are there.
    """

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
    """A regular file, to be read. What a pipe or a device holds has no end, and opening one can wait for ever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    # should it have become a pipe since
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def read_checkpoint(directory: str, opener: Opener = _open) -> Checkpoint:
    """The checkpoint in a directory; raises InputError where there is none, lists what is missing or cut in ``problems``.

    The fingerprint is made of the files' names and headers: a copy has the same one, other shapes or types another.
    """
    index = _index(directory, opener)
    present = _names(directory)
    listed = () if index else _loaded(_listed(directory, present))
    found = _read(directory, tuple(sorted(set(index.values()))) if index else _numbered(listed), opener)
    problems = found.problems
    if index and not problems:
        problems.extend(_misplaced(index, found.places))
    if index is not None and not index:
        problems.append(f"{INDEX}: it names no tensor")
    problems.extend(_copies(listed))
    promised = bool(index) or any(_SHARD.match(name) for name in listed)
    problems.extend(_unfinished(directory, present, promised and not problems))
    return Checkpoint(directory, tuple(map(_shown, found.files)), tuple(found.tensors), _few(problems), found.digest)


@dataclass
class _Found:
    """What the files of a checkpoint hold. ``places`` is the file of each tensor."""

    files: list[str]
    tensors: list[Tensor]
    places: dict[str, str]
    problems: list[str]
    digest: str


def _read(directory: str, files: Iterable[str], opener: Opener) -> _Found:
    found = _Found([], [], {}, [], "")
    digest = hashlib.sha256()
    for name in files:
        try:
            header, tensors = _file(os.path.join(directory, name), opener)
        except _Damaged as error:
            found.problems.append(f"{_shown(name)}: {error}")
            if not isinstance(error, _Missing) or len(found.problems) <= _FEW:
                found.files.append(name)
            continue
        found.files.append(name)
        digest.update(f"{name}\0".encode() + header)
        names = [tensor.name for tensor in tensors]
        found.problems.extend(_twice(name, names, found.places))
        found.places.update(dict.fromkeys(names, name))
        found.tensors.extend(tensors)
    found.digest = digest.hexdigest()
    return found


def _twice(name: str, names: Sequence[str], places: Mapping[str, str]) -> list[str]:
    again = places.keys() & names
    if not again:
        return []
    first = min(again)
    return [f"{_shown(name)}: {len(again)} tensors are in another file too, the first: {_shown(first)} in {_shown(places[first])}"]


def _shown(name: str) -> str:
    """A name as it can be printed: what has no glyph is escaped, what is too long is cut."""
    plain = name if name.isprintable() else ascii(name)[1:-1]
    return plain if len(plain) <= _NAME_WIDTH else f"{plain[:_NAME_WIDTH]}... ({len(name)} characters)"


def _few(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - _FEW
    return tuple(problems) if more <= 0 else (*problems[:_FEW], f"... and {more} more")


class _Damaged(Exception):
    """A file that is not what its header promises."""


class _Missing(_Damaged):
    """A file that is not there."""


def _index(directory: str, opener: Opener) -> Optional[dict[str, str]]:
    """Tensor to file by the checkpoint's index; None where there is no index."""
    path = os.path.join(directory, INDEX)
    try:
        content = _json(path, opener)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"the index {_shown(path)}", _why(error), "fetch the checkpoint again") from error
    names = content.get("weight_map") if isinstance(content, Mapping) else None
    if not isinstance(names, Mapping) or not all(_plain_name(value) for value in names.values()):
        raise InputError(f"the index {path}", "no weight_map of tensor and file names", "fetch the checkpoint again")
    return {str(key): value for key, value in names.items()}


def _json(path: str, opener: Opener) -> Any:
    """The content of a JSON file; raises OSError or ValueError."""
    with opener(path) as stream:
        text = stream.read(_MAX_JSON + 1)
    if len(text) > _MAX_JSON:
        raise ValueError(f"more than {_MAX_JSON >> 20} MiB of JSON")
    try:
        return json.loads(text.decode("utf-8"))
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _plain_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and os.path.basename(value) == value


def _names(directory: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(directory)))
    except (OSError, ValueError) as error:
        raise InputError(f"the checkpoint {_shown(directory)}", _why(error), "give the directory of the model on this host") from error


def _listed(directory: str, present: Iterable[str]) -> tuple[str, ...]:
    names = tuple(name for name in present if name.endswith(".safetensors"))
    if not names:
        raise InputError(
            f"the checkpoint {directory}",
            "no safetensors file in it",
            "fetch the model, or tell the plan what its weights take with weights_gib (draft_weights_gib)",
        )
    return names


def _loaded(names: tuple[str, ...]) -> tuple[str, ...]:
    """The files that SGLang loads where there is no index: all, but of the pair of Mistral's own form and the usual one."""
    if len(names) == 2 and names[0].endswith("consolidated.safetensors") and names[1].endswith("model.safetensors"):
        return names[1:]
    return names


def _copies(names: Sequence[str]) -> list[str]:
    """Mistral's own form of the weights, under other names, which without an index is loaded beside the usual one."""
    own = [name for name in names if name.startswith("consolidated")]
    if not own or len(own) == len(names):
        return []
    return [f"{_shown(own[0])}: without an index SGLang loads this second copy of the weights too: fetch {INDEX}, or remove the copy"]


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
        f"{_shown(name)}: an unfinished download"
        for name in partial
        if ".safetensors" in name and name[: name.index(".safetensors")] + ".safetensors" not in there
    ]
    if vouched:
        return problems
    try:
        hidden = os.listdir(os.path.join(directory, _HUB_DOWNLOADS))
    except (OSError, ValueError):
        hidden = []
    count = sum(name.endswith(_UNFINISHED) for name in hidden)
    return [*problems, f"{count} unfinished downloads in {_HUB_DOWNLOADS}"] if count else problems


def _file(path: str, opener: Opener) -> tuple[bytes, list[Tensor]]:
    """Header bytes and tensors of one file; raises _Damaged where file and header do not agree."""
    try:
        os.path.basename(path).encode("utf-8")
        with opener(path) as stream:
            header = _header(stream)
            size = stream.seek(0, os.SEEK_END)
    except FileNotFoundError:
        raise _Missing("missing") from None
    except OSError as error:
        raise _Damaged(_why(error)) from error
    except ValueError as error:
        raise _Damaged("not the name of a file in UTF-8") from error
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
    """The tensors of a header and where the last one ends (bytes after the header); raises _Damaged for one that no loader reads."""
    try:
        content = json.loads(header.decode("utf-8"))
        if not isinstance(content, dict):
            raise _Damaged(f"an unreadable header (a JSON {type(content).__name__}, no table of tensors)")
        metadata = content.pop("__metadata__", None)
        places = [_entry(name, entry) for name, entry in content.items()]
        "".join(content).encode("utf-8")
    except RecursionError:
        raise _Damaged("an unreadable header (nested too deeply)") from None
    except (ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"an unreadable header ({_shown(str(error))})") from error
    if metadata is not None and not (isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())):
        raise _Damaged("an unreadable header (__metadata__ is no table of texts)")
    if not places:
        raise _Damaged("a header without tensors")
    return [tensor for _start, tensor in places], _contiguous(places)


def _entry(name: str, entry: Any) -> tuple[int, Tensor]:
    """Where a tensor of a header starts, and the tensor."""
    start, end = entry["data_offsets"]
    if not is_int(start) or not is_int(end) or not 0 <= start <= end < _MAX_SIZE:
        raise _Damaged(f"{_shown(name)} with the offsets {_figures((start, end))}, not those of a part of the file")
    dtype, shape = entry["dtype"], entry["shape"]
    bits = _BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise _Damaged(f"{_shown(name)} of the type {_shown(repr(dtype))}, which safetensors does not have")
    wanted = bits
    for length in shape if isinstance(shape, list) else (None,):
        if not isinstance(length, int) or isinstance(length, bool) or not 0 <= length < _MAX_SIZE or wanted >= 8 * _MAX_SIZE:
            raise _Damaged(f"{_shown(name)} with the shape {_figures(shape)}, which no tensor has")
        wanted *= length
    if wanted != 8 * (end - start):
        raise _Damaged(f"{_shown(name)} of {end - start} bytes, where {dtype} and the shape {_figures(shape)} make {wanted / 8:.15g}")
    return start, Tensor(name, dtype, tuple(shape), end - start)


def _figures(value: object) -> str:
    """What a header says, short enough for a message: a number can have any length."""
    try:
        return _shown(str(value))
    except ValueError:
        return "a number of thousands of digits"


def _contiguous(places: Sequence[tuple[int, Tensor]]) -> int:
    """Where the last tensor ends; raises _Damaged for a hole between two of them or an overlap, which the format forbids."""
    last = 0
    for start, tensor in sorted(places, key=lambda place: (place[0], place[1].size)):
        if start != last:
            raise _Damaged(f"{_shown(tensor.name)} starts at byte {start} of the data, where the tensors before it end at {last}")
        last = start + tensor.size
    return last


def _misplaced(index: Mapping[str, str], places: Mapping[str, str]) -> list[str]:
    absent = [name for name in index if name not in places]
    elsewhere = [name for name, file in index.items() if places.get(name, file) != file]
    problems = []
    if absent:
        problems.append(f"{len(absent)} tensors of the index are in no file, the first: {_shown(absent[0])}")
    if elsewhere:
        name = elsewhere[0]
        where = f"{_shown(name)} in {_shown(places[name])}, not in {_shown(index[name])}"
        problems.append(f"{len(elsewhere)} tensors are in another file than the index says, the first: {where}")
    return problems


def optional_config(directory: str, name: str, opener: Opener = _open) -> Optional[dict[str, Any]]:
    """A JSON object beside the weights, such as hf_quant_config.json; None where there is none."""
    path = os.path.join(directory, name)
    try:
        content = _json(path, opener)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"the file {_shown(path)}", _why(error), "fetch the checkpoint again, or give the path of its config.json"
        ) from error
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
