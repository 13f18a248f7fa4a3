# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type in which K and V are kept: what each release calls it, and what ``auto`` stands for. Private to this collection.

``auto`` is the model's own 16-bit type, unless the checkpoint asks for FP8 in a form that the release reads, or the release
chooses for the architecture. SGLang also looks at the card for some of them; what that decides is said in ``notes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError, Release
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import DFLASH_TYPES, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, span
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry

# First compute capability of the cards whose sparse attention is kept in fp8 by default.
BLACKWELL = 10.0


@dataclass(frozen=True)
class KvType:
    """A type of the KV pool. ``size`` is bytes of an element of its buffers, ``width`` bytes of one value without scales."""

    name: str
    size: int
    width: float


_16_BIT = KvType("bf16", 2, 2.0)
_TYPES = {
    "bf16": _16_BIT,
    "bfloat16": _16_BIT,
    "fp8_e4m3": KvType("fp8_e4m3", 1, 1.0),
    "fp8_e5m2": KvType("fp8_e5m2", 1, 1.0),
    "mxfp8": KvType("mxfp8", 1, 1.0),
    # two values to a byte
    "fp4_e2m1": KvType("fp4_e2m1", 1, 0.5),
    "fp4_mx_block16": KvType("fp4_mx_block16", 1, 0.5),
    "nvfp4": KvType("nvfp4", 1, 0.5),
}
FP4_TYPES = ("fp4_e2m1", "fp4_mx_block16", "nvfp4")

# Architectures that a release keeps in FP8 where kv_cache_dtype is auto, whatever the checkpoint says.
_FP8_BY_DEFAULT: dict[str, Release] = {"MuseSparkForConditionalGeneration": (0, 5, 23)}


def check_types(era: Era, deployment: Deployment) -> None:
    """Raises InputError for a name that the release does not know."""
    for fault in type_faults(era, deployment):
        raise fault


def type_faults(era: Era, deployment: Deployment) -> Iterator[InputError]:
    """Every name that the release does not know."""
    names = [("kv_cache_dtype", deployment.kv_cache_dtype, era.kv_dtypes)]
    if deployment.draft_kv_cache_dtype is not None:
        names.append(("draft_kv_cache_dtype", deployment.draft_kv_cache_dtype, era.draft_kv_dtypes))
    for option, name, known in names:
        try:
            _check_name(name, known, era, option)
        except InputError as error:
            yield error


def kv_type(era: Era, geometry: Geometry, deployment: Deployment) -> KvType:
    """Type of the target's pool, under a name that any release knows; raises InputError for one that the model cannot have."""
    name = deployment.kv_cache_dtype
    _check_name(name, ("auto", *_TYPES), era, "kv_cache_dtype")
    if geometry.family == "compressed":
        return _of_compressed(era, name)
    if geometry.family == "dsa":
        return _of_sparse(era, geometry, deployment)
    return _automatic(era, geometry) if name == "auto" else _TYPES[name]


def draft_kv_type(era: Era, target: Geometry, draft: Geometry, deployment: Deployment) -> KvType:
    """Type of the draft's own pool: by its own flag, else by the server's, and never fp8 where its attention cannot read that."""
    name = _draft_name(era, target, deployment)
    if name == "auto":
        return _automatic(era, draft)
    return _TYPES[name]


def charged_draft_type(era: Era, target: Geometry, deployment: Deployment) -> KvType:
    """Type that a block-diffusion draft is charged with: SGLang does not look into its checkpoint here."""
    name = _draft_name(era, target, deployment)
    return _16_BIT if name == "auto" else _TYPES[name]


def type_notes(era: Era, geometry: Geometry, deployment: Deployment) -> list[str]:
    """What the type of the pool depends on beyond what the plan was given."""
    if geometry.family != "dsa":
        return []
    pages = ["SGLang gives sparse attention pages of 64 tokens on NVIDIA cards: give page_size 64."] if deployment.page_size == 1 else []
    return pages + _card_notes(era, deployment)


def _card_notes(era: Era, deployment: Deployment) -> list[str]:
    if deployment.compute_capability is not None:
        return []
    if deployment.kv_cache_dtype == "auto":
        return [
            "kv_cache_dtype auto of sparse attention is bf16 up to compute capability 9 and fp8_e4m3 from 10 on: planned as bf16; "
            "give compute_capability, or kv_cache_dtype itself."
        ]
    if deployment.kv_cache_dtype == "fp8_e4m3" and deployment.attention_backend is None and era.dsa_raw_on_blackwell:
        return [
            "The fp8 rows of sparse attention are shorter where its backend is trtllm, the default from compute capability 10 on: "
            "planned with the rows of older cards; give compute_capability, or attention_backend."
        ]
    return []


def _automatic(era: Era, geometry: Geometry) -> KvType:
    default = _FP8_BY_DEFAULT.get(geometry.architecture)
    if (default is not None and era.since >= default) or geometry.fp8_kv_form in era.auto_fp8:
        return _TYPES["fp8_e4m3"]
    return _16_BIT


def _of_sparse(era: Era, geometry: Geometry, deployment: Deployment) -> KvType:
    """Sparse attention knows two types; the card decides between them where nothing is said."""
    name = deployment.kv_cache_dtype
    if name == "auto":
        name = "fp8_e4m3" if (deployment.compute_capability or 0.0) >= BLACKWELL else "bf16"
    if name not in ("bf16", "bfloat16", "fp8_e4m3"):
        raise InputError(
            f"the KV pool of {geometry.architecture} with kv_cache_dtype {name}",
            f"sparse attention, which SGLang {era.name} keeps in bfloat16 or fp8_e4m3 only",
            "use one of these, or auto",
        )
    return _TYPES[name]


def _of_compressed(era: Era, name: str) -> KvType:
    if name not in ("auto", "fp8_e4m3"):
        raise InputError(
            f"the pools of compressed attention with kv_cache_dtype {name}",
            f"SGLang {era.name}, which sizes them as fp8_e4m3 on every card",
            "use auto or fp8_e4m3",
        )
    return _TYPES["fp8_e4m3"]


def _draft_name(era: Era, target: Geometry, deployment: Deployment) -> str:
    name = deployment.draft_kv_cache_dtype or _server_name(era, target, deployment)
    own = era.fa4_draft_own_type and deployment.algorithm in DFLASH_TYPES and deployment.draft_attention_backend == "fa4"
    return "bf16" if own else name


def _server_name(era: Era, target: Geometry, deployment: Deployment) -> str:
    """The server's flag as a draft finds it: for some models, and in some releases, written over with what the target took."""
    name = deployment.kv_cache_dtype
    if name != "auto" or not (era.auto_recorded or target.family in ("dsa", "compressed") or target.architecture in _FP8_BY_DEFAULT):
        return name
    taken = kv_type(era, target, deployment).name
    return taken if taken == "fp8_e4m3" or target.family == "dsa" else name


def _check_name(name: str, known: tuple[str, ...], era: Era, option: str) -> None:
    if name not in known:
        raise InputError(
            f"{option} {name}",
            f"SGLang {span(era)}, which knows {', '.join(known)}" if known else f"SGLang {span(era)}, which has no such option",
            "use one of these, or a release that has it" if known else "use SGLang 0.5.18 or newer, or leave it out",
        )
