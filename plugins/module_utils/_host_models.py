# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models that are on a host, read no more than needed. Private to this collection: may change at any time.

The headers of a large checkpoint take seconds. Where its files are those of the last accepted start, by name, size and time of change, or
those that were fetched and checked, they are taken to be what they were.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import INDEX, model_directory, optional_config, read_checkpoint
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import read_record, standing
from ansible_collections.inferops.sglang.plugins.module_utils._preflight import CheckpointFacts

GIB = 1 << 30


def read_checkpoint_facts(path: str, source: str, revision: str, kept: Mapping[str, Any]) -> CheckpointFacts:
    """The directory of a model; ``kept``: the same as an accepted start left it, as plain data."""
    directory = model_directory(path)
    if not os.path.isdir(directory):
        return CheckpointFacts(path, source=source, revision=revision, missing_gib=_source_gib(source))
    sizes = _sizes(directory)
    signature = signature_of(directory)
    whole = _kept(path, signature, kept) or _fetched(directory, signature, path) or _read(directory, signature, path, sizes)
    stands = standing(directory, whole.complete, source, revision)
    missing = None if stands.settled else _missing_gib(directory, source, sizes)
    return CheckpointFacts(
        **{
            **whole.__dict__,
            "settled": stands.settled and whole.complete,
            "source": source,
            "revision": revision,
            "commit": stands.commit,
            "refusal": stands.refusal,
            "note": stands.note,
            "missing_gib": missing,
        }
    )


def signature_of(directory: str) -> str:
    """SHA-256 over names, sizes and times of change of the files of a model; another one may still be the same content."""
    digest = hashlib.sha256()
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return ""
    for entry in entries:
        try:
            found = entry.stat()
        except OSError:
            continue
        digest.update(f"{entry.name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _kept(path: str, signature: str, kept: Mapping[str, Any]) -> Optional[CheckpointFacts]:
    same = kept.get("path") == path and kept.get("signature") == signature and kept.get("complete") is True
    fingerprint, gib = kept.get("fingerprint"), kept.get("total_gib")
    if not same or not isinstance(fingerprint, str) or not isinstance(gib, (int, float)):
        return None
    return CheckpointFacts(path, present=True, complete=True, fingerprint=fingerprint, total_gib=float(gib), signature=signature)


def _fetched(directory: str, signature: str, path: str) -> Optional[CheckpointFacts]:
    """By the record of what fetched and checked it, as long as no file is another since."""
    record = read_record(directory)
    if record is None or not record.fingerprint or not record.files:
        return None
    weights = 0
    for name, stamp in record.files.items():
        try:
            found = os.stat(os.path.join(directory, name))
        except OSError:
            return None
        if (found.st_size, found.st_mtime_ns) != (stamp.size, stamp.mtime_ns):
            return None
        weights += found.st_size if name.endswith(".safetensors") else 0
    loaded = {name for name in os.listdir(directory) if name.endswith(".safetensors")}
    if not loaded or not loaded <= set(record.files):
        return None
    gib = round(weights / GIB, 3)
    return CheckpointFacts(path, present=True, complete=True, fingerprint=record.fingerprint, total_gib=gib, signature=signature)


def _read(directory: str, signature: str, path: str, sizes: Mapping[str, int]) -> CheckpointFacts:
    try:
        found = read_checkpoint(directory)
    except InputError as error:
        bare = INDEX not in sizes and not any(name.endswith(".safetensors") for name in sizes)
        alone = bare and "config.json" in sizes
        return CheckpointFacts(
            path, present=True, problems=(error.found,), signature=signature, config_alone=alone, bare=bare and not alone
        )
    return CheckpointFacts(
        path=path,
        present=True,
        complete=found.complete,
        problems=found.problems,
        fingerprint=found.fingerprint,
        total_gib=round(found.total_bytes / GIB, 3),
        signature=signature,
    )


def _sizes(directory: str) -> dict[str, int]:
    """Size in bytes of each file."""
    try:
        return {entry.name: entry.stat().st_size for entry in os.scandir(directory) if entry.is_file()}
    except OSError:
        return {}


def _source_gib(source: str) -> Optional[float]:
    return sum(_sizes(source).values()) / GIB if source.startswith("/") else None


def _missing_gib(directory: str, source: str, sizes: Mapping[str, int]) -> Optional[float]:
    """What has to be fetched: by the source, if it is a directory of this host, else by what the index promises."""
    if source.startswith("/"):
        return sum(size for name, size in _sizes(source).items() if sizes.get(name) != size) / GIB
    try:
        index = optional_config(directory, INDEX)
    except InputError:
        return None
    metadata = index.get("metadata") if index else None
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    if not isinstance(total, int) or isinstance(total, bool):
        return None
    return max(total - sum(size for name, size in sizes.items() if name.endswith(".safetensors")), 0) / GIB
