# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Safetensors checkpoints by their index and headers alone: size, completeness, fingerprint, weight bytes per rank.

Private to this collection: may change at any time. No tensor is read, so a checkpoint of half a terabyte costs as much as
its headers. A file starts with the length of its header (8 bytes, little endian) and the header itself (JSON).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError

GIB = 1 << 30
INDEX = "model.safetensors.index.json"
# the format's own limit of a header
_MAX_HEADER = 100_000_000

Opener = Callable[[str], BinaryIO]


@dataclass(frozen=True)
class Tensor:
    """One tensor of a checkpoint; ``size`` in bytes on disk."""

    name: str
    size: int
    dims: int


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


@dataclass(frozen=True)
class Weights:
    """Weight memory of the heaviest rank, and how far off that may be; both GiB."""

    gib: float
    error_gib: float = 0.0


def _open(path: str) -> BinaryIO:
    return open(path, "rb")


def read_checkpoint(directory: str, opener: Opener = _open) -> Checkpoint:
    """The checkpoint in a directory; raises InputError where there is none, lists what is missing or cut in ``problems``."""
    index = _index(directory, opener)
    files = tuple(sorted(set(index.values()))) if index else _listed(directory)
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
    return Checkpoint(directory, files, tuple(tensors), tuple(problems), digest.hexdigest())


def weights_per_rank(checkpoint: Checkpoint, tp_size: int, pp_size: int, attention_ranks: int) -> Weights:
    """Weight memory of one rank, from the tensors' bytes.

    Vectors and the tensors that SGLang keeps whole on every rank (latent down-projections, routers, a draft's fusion layer)
    count in full, attention is shared by the attention ranks, the rest by all tensor-parallel ranks; stages share evenly.
    The files do not show what loading adds (absorbed and repacked copies, buffers): hence the error.
    """
    if not checkpoint.complete:
        raise InputError(
            f"the weight memory of {checkpoint.directory}",
            f"an incomplete checkpoint ({len(checkpoint.problems)} problems, the first: {checkpoint.problems[0]})",
            "finish the download, or give weights_gib",
        )
    rank_bytes = sum(tensor.size / _shares(tensor, tp_size, attention_ranks) for tensor in checkpoint.tensors) / pp_size
    gib = rank_bytes / GIB
    return Weights(gib, gib * RANK_ERROR)


# A 554 GiB INT4 checkpoint over 8 ranks took 72.3 to 73.6 GiB where this rule says 71; single-rank models less than that.
RANK_ERROR = 0.05

_WHOLE = re.compile(r"(?:q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj|\.gate|\.router|indexer\.|^fc|\.fc)\b")
_ATTENTION = re.compile(r"self_attn|\.attention\.|\.attn\.")


def _shares(tensor: Tensor, tp_size: int, attention_ranks: int) -> int:
    if tensor.dims <= 1 or _WHOLE.search(tensor.name):
        return 1
    return attention_ranks if _ATTENTION.search(tensor.name) else tp_size


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


def _listed(directory: str) -> tuple[str, ...]:
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".safetensors"))
    except OSError as error:
        raise InputError(f"the checkpoint {directory}", str(error), "give the directory of the model on this host") from error
    if not names:
        raise InputError(
            f"the checkpoint {directory}", "no safetensors file in it", "give weights_gib (and draft_weights_gib), or fetch the model"
        )
    return tuple(names)


def _file(path: str, opener: Opener) -> tuple[bytes, list[Tensor]]:
    """Header bytes and tensors of one file; raises _Damaged where file and header do not agree."""
    try:
        with opener(path) as stream:
            header = _header(stream)
            size = stream.seek(0, os.SEEK_END)
    except FileNotFoundError:
        raise _Damaged("missing") from None
    except OSError as error:
        raise _Damaged(str(error)) from error
    tensors, end = _tensors(header)
    expected = 8 + len(header) + end
    if size != expected:
        raise _Damaged(f"{size} bytes where its header promises {expected}")
    return header, tensors


def _header(stream: BinaryIO) -> bytes:
    start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or not 0 < length <= _MAX_HEADER:
        raise _Damaged("no safetensors header")
    header = stream.read(length)
    if len(header) != length:
        raise _Damaged("cut inside its header")
    return header


def _tensors(header: bytes) -> tuple[list[Tensor], int]:
    try:
        content = json.loads(header.decode("utf-8"))
        entries = [(name, entry) for name, entry in content.items() if name != "__metadata__"]
        spans = [(name, len(entry["shape"]), *entry["data_offsets"]) for name, entry in entries]
        tensors = [Tensor(name, int(end) - int(start), dims) for name, dims, start, end in spans]
        return tensors, max((int(end) for _name, _dims, _start, end in spans), default=0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Damaged(f"an unreadable header ({error})") from error


def _unlisted(index: Mapping[str, str], tensors: Sequence[Tensor]) -> list[str]:
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
