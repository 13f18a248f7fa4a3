# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which flags, target, draft and release of SGLang go together. Private to this collection: may change at any time."""

from __future__ import annotations

from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import DFLASH_TYPES, EAGLE_TYPES, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, dotted
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, check_draft


def check_together(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> None:
    """Raises InputError where flags, target, draft and release do not go together."""
    _check_ranks(target, deployment)
    if draft is not None and deployment.algorithm != "STANDALONE":
        check_draft(target, draft)
    _check_era(era, target, draft, deployment)
    _check_speculation(era, draft, deployment)


def _check_ranks(target: Geometry, deployment: Deployment) -> None:
    for name in ("tp_size", "pp_size", "dp_size", "ep_size", "dcp_size", "page_size"):
        if getattr(deployment, name) < 1:
            raise InputError(name, str(getattr(deployment, name)), "give a whole number from 1 up")
    ranks = deployment.attention_ranks
    tests = (
        (deployment.dp_attention and deployment.tp_size % deployment.dp_size, "dp_size with enable_dp_attention", "tp_size"),
        (deployment.tp_size % deployment.ep_size, f"ep_size {deployment.ep_size}", "tp_size"),
        (deployment.tp_size % deployment.dcp_size, f"dcp_size {deployment.dcp_size}", "tp_size"),
    )
    for bad, name, whole in tests:
        if bad:
            raise InputError(name, f"tp_size {deployment.tp_size}, dp_size {deployment.dp_size}", f"give a divisor of {whole}")
    if deployment.pp_size > target.layers:
        raise InputError(f"pp_size {deployment.pp_size}", f"a model of {target.layers} layers", "give no more stages than layers")
    _check_heads(target, ranks, "tp_size")


def _check_heads(geometry: Geometry, ranks: int, name: str) -> None:
    kv = geometry.kv_heads
    if geometry.query_heads % ranks or (kv and kv % ranks and ranks % kv):
        raise InputError(
            f"{name} that spreads {geometry.architecture} over {ranks} ranks",
            f"{geometry.query_heads} attention heads" + (f" and {kv} KV heads" if kv else ""),
            "give a size that divides the attention heads, and divides the KV heads or is a multiple of them",
        )


def _check_era(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> None:
    if deployment.dcp_size > 1 and not era.dcp:
        raise InputError(f"dcp_size {deployment.dcp_size}", f"SGLang {era.name}", "use SGLang 0.5.18 or newer, or dcp_size 1")
    if deployment.draft_kv_cache_dtype and not era.draft_kv_dtype:
        raise InputError(
            f"draft_kv_cache_dtype {deployment.draft_kv_cache_dtype}", f"SGLang {era.name}", "use SGLang 0.5.18 or newer, or leave it out"
        )
    if target.family == "swa" and (deployment.pp_size > 1 or draft is not None):
        raise InputError(
            f"the pool of {target.architecture}", "pipeline stages or a draft model", "neither was proven for sliding-window models"
        )
    if target.draft is not None:
        raise InputError("the target model", f"the draft architecture {target.architecture}", "give the target as model")


def _check_speculation(era: Era, draft: Optional[Geometry], deployment: Deployment) -> None:
    algorithm = deployment.algorithm
    if algorithm not in (*EAGLE_TYPES, *DFLASH_TYPES):
        if draft is not None:
            raise InputError(
                f"a draft ({draft.architecture})",
                f"speculative_algorithm {algorithm or 'unset'}, which uses none",
                "name the draft's algorithm, such as DFLASH, or leave the draft out",
            )
        return
    if draft is None:
        raise InputError(f"speculative_algorithm {algorithm}", "no draft model", "give draft_model or draft_model_config")
    _check_heads(draft, deployment.attention_ranks, "tp_size")
    if algorithm in DFLASH_TYPES:
        _check_dflash(era, draft, deployment)
    elif draft.draft is not None:
        raise InputError(f"speculative_algorithm {algorithm}", f"the draft {draft.architecture}", "use DFLASH with this draft")


def _check_dflash(era: Era, draft: Geometry, deployment: Deployment) -> None:
    asked = f"speculative_algorithm {deployment.algorithm}"
    facts = draft.draft
    if era.dflash_cell == "unknown":
        raise InputError(asked, f"SGLang {era.name}, which has no such algorithm", f"use SGLang {dotted((0, 5, 11))} or newer")
    if facts is None:
        raise InputError(asked, f"the draft {draft.architecture}", "give a block-diffusion draft (DFlashDraftModel)")
    if deployment.pp_size > 1:
        raise InputError(asked, f"pp_size {deployment.pp_size}", "use pp_size 1: this algorithm knows no pipeline stages")
    if deployment.dp_attention and not era.dflash_with_dp_attention:
        raise InputError(asked, f"enable_dp_attention under SGLang {era.name}", "use SGLang 0.5.14 or newer, or no dp attention")
    # a tree (DDTREE) may hold more tokens than one block
    if deployment.algorithm == "DFLASH" and deployment.num_draft_tokens not in (None, facts.block_size):
        raise InputError(
            asked,
            f"speculative_num_draft_tokens {deployment.num_draft_tokens} where the draft's block_size is {facts.block_size}",
            f"give {facts.block_size} or leave it out",
        )
