# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which flags, target, draft and release of SGLang go together. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import DFLASH_TYPES, EAGLE_TYPES, Deployment
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, dotted
from ansible_collections.inferops.sglang.plugins.module_utils._kv_dtype import type_faults
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, draft_faults
from ansible_collections.inferops.sglang.plugins.module_utils._sliding_window import (
    Windows,
    has_two_pools,
    rules_of,
    tokens_by_requests,
)
from ansible_collections.inferops.sglang.plugins.module_utils._stages import stages


def check_together(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> None:
    """Raises InputError where flags, target, draft and release do not go together."""
    check_sizes(deployment)
    for _room, fault in faults_together(era, target, draft, deployment):
        raise fault


def faults_together(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> Iterator[tuple[str, InputError]]:
    """Everything that does not go together, the gravest first, each under the name of what it concerns.

    The sizes of the deployment have to count something (check_sizes).
    """
    alone = draft is None or deployment.algorithm == "STANDALONE"
    compressed = target.family == "compressed"
    rooms = (
        ("parallelism", _rank_faults(target, deployment)),
        ("draft", () if draft is None or alone else draft_faults(target, draft)),
        ("version", _era_faults(era, target, deployment)),
        ("parallelism", _pipeline_faults(era, target, deployment)),
        ("windows", _window_faults(era, target, draft, deployment)),
        ("speculation", _compressed_faults(era, target, deployment) if compressed else _speculation_faults(era, draft, deployment)),
        ("flags", () if compressed else _flag_faults(era, draft, deployment)),
    )
    for room, faults in rooms:
        for fault in faults:
            yield room, fault


def check_sizes(deployment: Deployment) -> None:
    """Raises InputError for a size that counts nothing, by which other figures are divided."""
    for name in ("tp_size", "pp_size", "dp_size", "ep_size", "dcp_size", "page_size"):
        if getattr(deployment, name) < 1:
            raise InputError(name, str(getattr(deployment, name)), "give a whole number from 1 up")


def _rank_faults(target: Geometry, deployment: Deployment) -> Iterator[InputError]:
    # no rank at all where dp_size is above tp_size
    ranks = deployment.attention_ranks
    tests = (
        (deployment.dp_attention and deployment.tp_size % deployment.dp_size, "dp_size with enable_dp_attention", "tp_size"),
        (deployment.tp_size % deployment.ep_size, f"ep_size {deployment.ep_size}", "tp_size"),
        (deployment.tp_size % deployment.dcp_size, f"dcp_size {deployment.dcp_size}", "tp_size"),
        # each rank of attention is one of dcp_size that share its tokens
        (ranks % deployment.dcp_size, f"dcp_size {deployment.dcp_size}", f"the {ranks} ranks that share the attention"),
    )
    for bad, name, whole in tests:
        if bad:
            yield InputError(name, f"tp_size {deployment.tp_size}, dp_size {deployment.dp_size}", f"give a divisor of {whole}")
    if deployment.pp_size > target.layers:
        yield InputError(f"pp_size {deployment.pp_size}", f"a model of {target.layers} layers", "give no more stages than layers")
    if ranks:
        yield from _head_faults(target, ranks, "tp_size")


def _head_faults(geometry: Geometry, ranks: int, name: str) -> Iterator[InputError]:
    kv = geometry.kv_heads
    if geometry.query_heads % ranks or (kv and kv % ranks and ranks % kv):
        yield InputError(
            f"{name} that spreads {geometry.architecture} over {ranks} ranks",
            f"{geometry.query_heads} attention heads" + (f" and {kv} KV heads" if kv else ""),
            "give a size that divides the attention heads, and divides the KV heads or is a multiple of them",
        )


def _era_faults(era: Era, target: Geometry, deployment: Deployment) -> Iterator[InputError]:
    yield from type_faults(era, deployment)
    yield from _first_sparse_faults(era, target)
    yield from _dcp_faults(era, target, deployment)
    if target.draft is not None:
        yield InputError("the target model", f"the draft architecture {target.architecture}", "give the target as model")


def _dcp_faults(era: Era, target: Geometry, deployment: Deployment) -> Iterator[InputError]:
    if deployment.dcp_size == 1:
        return
    if target.family in _UNSHARED:
        yield InputError(f"dcp_size {deployment.dcp_size} for {target.architecture}", "an attention without it", "use dcp_size 1")
        return
    if era.dcp == "widened":
        return
    found = {
        "none": f"SGLang {era.name}, which has no decode context parallelism",
        "rows": "SGLang 0.5.15 or 0.5.16, which turn a request away that is longer than the rows of one rank",
    }
    asked = f"dcp_size {deployment.dcp_size} for {target.architecture}"
    yield InputError(asked, found[era.dcp], "use SGLang 0.5.17 or newer, or dcp_size 1")


def _first_sparse_faults(era: Era, target: Geometry) -> Iterator[InputError]:
    """The first release with sparse attention counts no index and does not heed the fraction."""
    if target.family == "dsa" and (0, 5, 3) <= era.since < (0, 5, 3, 2):
        yield InputError(
            f"the pool of {target.architecture}",
            "SGLang 0.5.3 before its second correction, which leaves the index out and sets the fraction to 0.8 by itself",
            "use SGLang 0.5.3.post2 or newer",
        )


# Attention that decode context parallelism does not share out.
_UNSHARED = ("compressed", "minimax_sparse")


def _pipeline_faults(era: Era, target: Geometry, deployment: Deployment) -> Iterator[InputError]:
    if deployment.pp_size > 1 and target.latent_dim and not era.mla_pipeline:
        yield InputError(
            f"pp_size {deployment.pp_size} for {target.architecture}",
            f"SGLang {era.name} before 0.5.2, which knows no pipeline stages for latent attention",
            "use SGLang 0.5.2 or newer, or pp_size 1",
        )


# Windowed by their classes, so that these releases split their pools; later ones switch that off.
_GEMMA = ("Gemma2", "Gemma3")


def _window_faults(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> Iterator[InputError]:
    asked = f"the pool of {target.architecture} under SGLang {era.name}"
    if target.architecture.startswith(_GEMMA) and (0, 4, 9) <= era.since < (0, 5, 1) and not deployment.disable_hybrid_swa_memory:
        yield InputError(
            asked,
            "two pools in 0.4.9, whose split was compared with no run",
            "use SGLang 0.5.1 or newer, or disable_hybrid_swa_memory as the server gets it",
        )
    if draft is not None and draft.windows is not None and has_two_pools(draft.windows, era.since, deployment):
        yield InputError(asked, f"the draft {draft.architecture} with two pools of its own", "use a draft without windowed layers")
    if target.windows is None or not has_two_pools(target.windows, era.since, deployment):
        return
    if deployment.dcp_size > 1:
        found = f"dcp_size {deployment.dcp_size} beside windowed layers"
        yield InputError(asked, found, "use dcp_size 1: no release was compared with more")
    if deployment.page_size > 1 and not rules_of(era.since).paged:
        found = f"page_size {deployment.page_size}, with which 0.5.7 does not start beside windowed layers"
        yield InputError(asked, found, "use page_size 1, SGLang 0.5.8 or newer, or disable_hybrid_swa_memory")
    if 1 < deployment.pp_size <= target.layers:
        yield from _stage_faults(asked, era, target, target.windows, deployment)


def _stage_faults(asked: str, era: Era, target: Geometry, windows: Windows, deployment: Deployment) -> Iterator[InputError]:
    """Stages whose pools SGLang sizes each for itself are planned only where they come out alike."""
    cut = [windows.of_stage(layers, era.since) for layers in stages(era, target.layers, deployment.pp_size)]
    held = {(len(stage.full), len(stage.windowed)) for stage in cut}
    rules = rules_of(era.since)
    alone = rules.split == "layers" or (len(held) > 1 and (rules.split == "bytes" or tokens_by_requests(windows, rules, deployment)))
    missing = any(not (full or not windows.full) or not windowed for full, windowed in held)
    if alone or missing:
        yield InputError(
            asked,
            f"stages of {', '.join(f'{full} full and {windowed} windowed layers' for full, windowed in sorted(held))}",
            "use a pp_size whose stages hold as many of each, or SGLang 0.5.11 or newer",
        )


def _compressed_faults(era: Era, target: Geometry, deployment: Deployment) -> Iterator[InputError]:
    asked = f"the pools of {target.architecture}"
    allowed = ("", "EAGLE", "DSPARK") if era.dspark else ("", "EAGLE")
    if era.compressed == "none":
        yield InputError(asked, f"SGLang {era.name}, which does not know them", f"use SGLang {dotted((0, 5, 12))} or newer")
    if deployment.algorithm not in allowed:
        found = f"speculative_algorithm {deployment.algorithm} under SGLang {era.name}"
        yield InputError(asked, found, f"use {' or '.join(name or 'none' for name in allowed)}")
    if era.compressed_extra_layer and deployment.pp_size > 1:
        found = f"pp_size {deployment.pp_size} under SGLang 0.5.12, which counts every layer on each stage"
        yield InputError(asked, found, "use SGLang 0.5.13 or newer")


def _speculation_faults(era: Era, draft: Optional[Geometry], deployment: Deployment) -> Iterator[InputError]:
    algorithm = deployment.algorithm
    if algorithm not in (*EAGLE_TYPES, *DFLASH_TYPES):
        if draft is not None:
            yield InputError(
                f"a draft ({draft.architecture})",
                f"speculative_algorithm {algorithm or 'unset'}, which uses none",
                "name the draft's algorithm, such as DFLASH, or leave the draft out",
            )
        return
    if draft is None:
        return
    if deployment.attention_ranks:
        yield from _head_faults(draft, deployment.attention_ranks, "tp_size")
    if algorithm in DFLASH_TYPES:
        yield from _dflash_faults(era, draft, deployment)
    elif draft.draft is not None:
        yield InputError(f"speculative_algorithm {algorithm}", f"the draft {draft.architecture}", "use DFLASH with this draft")


def _dflash_faults(era: Era, draft: Geometry, deployment: Deployment) -> Iterator[InputError]:
    asked = f"speculative_algorithm {deployment.algorithm}"
    facts = draft.draft
    spark = deployment.algorithm == "DSPARK"
    if era.dflash_cell == "unknown" or (spark and not era.dspark):
        first = dotted((0, 5, 16) if spark else (0, 5, 11))
        yield InputError(asked, f"SGLang {era.name}, which has no such algorithm", f"use SGLang {first} or newer")
    if facts is None or ("DSpark" in draft.architecture) != spark:
        wanted = "one for DSPARK (such as Qwen3DSparkModel)" if spark else "a block-diffusion draft (DFlashDraftModel)"
        yield InputError(asked, f"the draft {draft.architecture}", f"give {wanted}")


def _flag_faults(era: Era, draft: Optional[Geometry], deployment: Deployment) -> Iterator[InputError]:
    """What the command line alone shows, given what kind of draft there is."""
    asked = f"speculative_algorithm {deployment.algorithm}"
    if draft is None and deployment.algorithm in (*EAGLE_TYPES, *DFLASH_TYPES):
        yield InputError(asked, "no draft model", "give draft_model or draft_model_config")
    if draft is None or draft.draft is None or deployment.algorithm not in DFLASH_TYPES:
        return
    if deployment.pp_size > 1:
        yield InputError(asked, f"pp_size {deployment.pp_size}", "use pp_size 1: this algorithm knows no pipeline stages")
    if deployment.dp_attention and not era.dflash_with_dp_attention:
        yield InputError(asked, f"enable_dp_attention under SGLang {era.name}", "use SGLang 0.5.14 or newer, or no dp attention")
    # a tree (DDTREE) may hold more tokens than one block
    block = draft.draft.block_size
    if deployment.algorithm == "DFLASH" and deployment.num_draft_tokens not in (None, block):
        yield InputError(
            asked,
            f"speculative_num_draft_tokens {deployment.num_draft_tokens} where the draft's block_size is {block}",
            f"give {block} or leave it out",
        )
