# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models some of whose layers keep only a window of tokens, and their second pool. Private to this collection.

SGLang gives the windowed layers a pool of their own, smaller by ``swa_full_tokens_ratio``, but only to the architectures in
its list, which grew from release to release. Every other model with windows is sized as if each layer kept every token, and
so are these before they came into the list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import (
    Config,
    InputError,
    Release,
    optional_count,
    optional_list,
    optional_mapping,
    required_count,
)
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import SPECULATIVE_REQUESTS, Deployment

# Tokens after which SGLang gives back what has left the window of a request.
_EVICTION_INTERVAL = 128


@dataclass(frozen=True)
class Rules:
    """How releases from ``since`` up to the next row size the two pools."""

    since: Release
    # layers | bytes: one pool of all layers is sized and then split by their number or bytes; cell: both are in the cell
    split: str = "layers"
    # the cell counts every layer as a full one, those with heads of their own once more
    all_layers: bool = False
    # a pipeline stage counts the first layer of the next one too
    next_layer: bool = True
    # pages of more than one token; without it such a server does not start
    paged: bool = True
    # no request may be longer than the pool of the windowed layers
    limits_requests: bool = False
    # EAGLE-type drafts add their layers, as full ones, to the cell; DFLASH drafts their own
    eagle: bool = False
    dflash: bool = False
    # without a radix cache the requests decide the second pool: never | always | chunked (only where prefill is)
    by_requests: str = "never"
    # the cell of a DFLASH draft counts there too
    by_requests_dflash: bool = False
    # a second pool of no more than one window and a page is refused
    least: bool = False


_FIRST = Rules((0, 5, 7), limits_requests=True, paged=False)
_CHANGES: tuple[tuple[Release, dict[str, Any]], ...] = (
    ((0, 5, 8), {"all_layers": True, "paged": True}),
    ((0, 5, 9), {"all_layers": False, "split": "bytes"}),
    ((0, 5, 11), {"split": "cell", "limits_requests": False}),
    ((0, 5, 14), {"by_requests": "always"}),
    ((0, 5, 15), {"eagle": True}),
    ((0, 5, 16), {"least": True}),
    ((0, 5, 18), {"dflash": True}),
    ((0, 5, 21), {"next_layer": False}),
    ((0, 5, 22), {"by_requests": "chunked"}),
    ((0, 5, 23), {"by_requests_dflash": True}),
)


def _table() -> tuple[Rules, ...]:
    rows = [_FIRST]
    for since, changes in _CHANGES:
        rows.append(replace(rows[-1], since=since, **changes))
    return tuple(rows)


RULES = _table()


@dataclass(frozen=True)
class Windowed:
    """How one architecture names its windowed layers, and the release from which on they have a pool of their own."""

    since: Release
    # where its layers stand: layer_types | hybrid_layer_pattern | fourth (all but every fourth) | all
    layers: str = "layer_types"
    # where the heads of the windowed layers stand: plain (as all others) | swa | step | gemma
    heads: str = "plain"
    # its window counts the newest token too: SGLang looks back over one less
    inclusive: bool = True
    # the releases from which on it has two pools under speculation, and on the attention backend trtllm_mha
    speculates: Release = (0, 5, 7)
    on_trtllm: Release = (0, 5, 7)


_GEMMA4 = Windowed((0, 5, 11), heads="gemma")
_MUSE = Windowed((0, 5, 18))

WINDOWED: dict[str, Windowed] = {
    "BeamForCausalLM": Windowed((0, 5, 23)),
    "DiffusionGemmaForBlockDiffusion": replace(_GEMMA4, since=(0, 5, 21)),
    "Gemma4ForCausalLM": _GEMMA4,
    "Gemma4ForConditionalGeneration": _GEMMA4,
    "Gemma4UnifiedForConditionalGeneration": replace(_GEMMA4, since=(0, 5, 13)),
    "GptOssForCausalLM": Windowed((0, 5, 8), speculates=(0, 5, 9), on_trtllm=(0, 5, 10)),
    "GraniteMoeSWAForCausalLM": Windowed((0, 5, 19), inclusive=False),
    "GraniteSWAForCausalLM": Windowed((0, 5, 19), inclusive=False),
    "LagunaForCausalLM": Windowed((0, 5, 12), inclusive=False),
    "Llama4ForConditionalGeneration": Windowed((0, 5, 8), layers="fourth", inclusive=False),
    "MellumForCausalLM": Windowed((0, 5, 16)),
    "MiMoV2FlashForCausalLM": Windowed((0, 5, 7), layers="hybrid_layer_pattern", heads="swa", inclusive=False),
    "MiMoV2ForCausalLM": Windowed((0, 5, 11), layers="hybrid_layer_pattern", heads="swa", inclusive=False),
    "MuseGlimmerForCausalLM": _MUSE,
    "MuseGlimmerForConditionalGeneration": _MUSE,
    "MuseSparkForConditionalGeneration": Windowed((0, 5, 23)),
    "Spark2_5ForCausalLM": Windowed((0, 5, 20)),
    "Step3p5ForCausalLM": Windowed((0, 5, 9), heads="step", inclusive=False),
    "Step3p7ForConditionalGeneration": Windowed((0, 5, 13), heads="step", inclusive=False),
    "UnlimitedOCRForCausalLM": Windowed((0, 5, 15), layers="all", inclusive=False),
}


@dataclass(frozen=True)
class Windows:
    """The windowed layers of a model, whole (not per rank): their numbers, heads, and the tokens they look back over.

    ``full`` are the layers that keep every token, whose heads are those of the geometry itself.
    """

    row: Windowed
    full: tuple[int, ...]
    windowed: tuple[int, ...]
    kv_heads: int
    head_dim: int
    v_head_dim: int
    window: Optional[int]

    def of_stage(self, layers: range, release: Release) -> Windows:
        """The layers that one pipeline stage pays for: those it holds, up to 0.5.20 also the first of the next stage."""
        paid = range(layers.start, layers.stop + rules_of(release).next_layer)
        full, windowed = (tuple(layer for layer in kind if layer in paid) for kind in (self.full, self.windowed))
        return replace(self, full=full, windowed=windowed)


@dataclass(frozen=True)
class SecondPool:
    """The pool of the windowed layers, beside the full one. Bytes are per token and rank.

    Its tokens are a share of the full pool's, or ``fixed`` by what so many requests can hold in their windows.
    """

    bytes_per_token: int
    full_bytes: int
    ratio: float
    page: int
    fixed: Optional[int] = None
    # a cap of the full pool caps a fixed one too
    capped: bool = False
    # with no more tokens than this SGLang does not start
    least: int = 0
    limits_requests: bool = False

    def tokens(self, full: int) -> int:
        """Tokens of the second pool beside so many in the full one; 0.5.7 to 0.5.9 may make it a page larger."""
        if self.fixed is not None:
            return min(self.fixed, full) if self.capped else self.fixed
        return int(full * self.ratio) // self.page * self.page

    @property
    def fixed_bytes(self) -> int:
        """Bytes of the budget that a pool of fixed size takes before the full pool is sized."""
        return (self.fixed or 0) * self.bytes_per_token

    def request_tokens(self, full: int) -> int:
        """Tokens that one request may fill."""
        return min(full, self.tokens(full)) if self.limits_requests else full

    def full_for(self, request: int) -> int:
        """Tokens of the full pool, in whole pages, with which one request may fill so many."""
        if not self.limits_requests or not self.ratio:
            return request
        pages = most = -(-request // self.page)
        while self.request_tokens(most * self.page) < request:
            most *= 2
        while pages < most:
            middle = (pages + most) // 2
            pages, most = (pages, middle) if self.request_tokens(middle * self.page) >= request else (middle + 1, most)
        return pages * self.page


def rules_of(release: Release) -> Rules:
    """The row that sizes the two pools in a release; before 0.5.7 no model has two."""
    return next((row for row in reversed(RULES) if row.since <= release), RULES[0])


def has_two_pools(windows: Windows, release: Release, deployment: Deployment) -> bool:
    """Do the windowed layers of this model have a pool of their own, in this release and with these flags?"""
    row = windows.row
    if release < row.since or deployment.disable_hybrid_swa_memory:
        return False
    if deployment.algorithm and release < row.speculates:
        return False
    return release >= row.on_trtllm or not _uses_trtllm(deployment)


def backend_decides(windows: Optional[Windows], release: Release, deployment: Deployment) -> bool:
    """Does it depend on an attention backend that is not told whether there are two pools?"""
    told = deployment.attention_backend is not None or deployment.compute_capability is not None
    return windows is not None and release < windows.row.on_trtllm and not told


def _uses_trtllm(deployment: Deployment) -> bool:
    """trtllm_mha by its flag, or as the default on cards of compute capability 10."""
    if deployment.attention_backend is not None:
        return deployment.attention_backend == "trtllm_mha"
    return int(deployment.compute_capability or 0) == 10


def read_windows(text: Config, architecture: str, heads: tuple[int, int, int], what: str) -> Windows:
    """The windowed layers that a configuration names; raises InputError where it leaves them open.

    ``heads`` are the KV heads, the head size and the V head size of the layers that keep every token.
    """
    row = WINDOWED[architecture]
    layers = required_count(text, "num_hidden_layers", what)
    full, windowed = _split(text, row, layers, what)
    kv_heads, head_dim, v_head_dim = _windowed_heads(text, row, heads, what)
    window = next((size for size in (optional_count(text, key) for key in _WINDOW_KEYS) if size), None)
    if window is not None and row.inclusive:
        window -= 1
    return Windows(row, full, windowed, kv_heads, head_dim, v_head_dim, window)


_WINDOW_KEYS = ("sliding_window_size", "sliding_window", "window_size", "attention_chunk_size")


def _split(text: Config, row: Windowed, layers: int, what: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if row.layers == "all":
        return (), tuple(range(layers))
    if row.layers == "fourth":
        kinds = ["full_attention" if (layer + 1) % 4 == 0 else "sliding_attention" for layer in range(layers)]
    elif row.layers == "hybrid_layer_pattern":
        kinds = ["sliding_attention" if kind else "full_attention" for kind in _list(text, row.layers)]
    else:
        kinds = [str(kind) for kind in _list(text, row.layers)]
    full, windowed = (
        tuple(layer for layer, kind in enumerate(kinds[:layers]) if kind == wanted) for wanted in ("full_attention", "sliding_attention")
    )
    if len(full) + len(windowed) != layers or not windowed:
        raise InputError(
            f"the KV bytes per token of {what}",
            f"{row.layers} with {len(kinds)} entries, {len(windowed)} of them sliding, for {layers} layers",
            "give the whole config.json: the split into full and sliding layers decides the pool",
        )
    return full, windowed


def _list(text: Config, key: str) -> list[object]:
    return optional_list(text, key) or []


def _windowed_heads(text: Config, row: Windowed, heads: tuple[int, int, int], what: str) -> tuple[int, int, int]:
    kv_heads, head_dim, v_head_dim = heads
    if row.heads == "swa":
        head_dim = optional_count(text, "swa_head_dim") or head_dim
        return required_count(text, "swa_num_key_value_heads", what), head_dim, optional_count(text, "swa_v_head_dim") or head_dim
    if row.heads == "step":
        other = optional_mapping(text, "attention_other_setting")
        found = optional_count(other, "num_attention_groups") if other else None
        return found or kv_heads, head_dim, head_dim
    if row.heads == "gemma":
        # the plain keys are those of the windowed layers here
        head_dim = required_count(text, "head_dim", what)
        return required_count(text, "num_key_value_heads", what), head_dim, head_dim
    return kv_heads, head_dim, v_head_dim


def tokens_by_requests(windows: Windows, rules: Rules, deployment: Deployment) -> Optional[int]:
    """Tokens of the second pool, in whole pages, where the requests decide it; None where the ratio does.

    Each request holds its window, what is given back together, a page to align by and what one step of decoding takes;
    the chunks that are being prefilled come on top.
    """
    requests = deployment.max_running_requests or (SPECULATIVE_REQUESTS if deployment.algorithm else None)
    if rules.by_requests == "never" or not deployment.disable_radix_cache or requests is None or windows.window is None or not windows.full:
        return None
    chunk, page = deployment.chunked_prefill_size, deployment.page_size
    if chunk is None:
        raise InputError(
            "the pool of windowed layers that max_running_requests decides where there is no radix cache",
            "no chunked_prefill_size",
            "give it as the server's arguments in its log show it: SGLang's default depends on the card",
        )
    if chunk <= 0 and rules.by_requests == "chunked":
        return None
    drafted = _drafted_tokens(deployment)
    each = windows.window + _EVICTION_INTERVAL * drafted + page + _decode_tokens(deployment, drafted)
    in_flight = 1 if deployment.disable_overlap_schedule else 2
    shared = max(1, requests // (deployment.dp_size if deployment.dp_attention else 1))
    return -(-(each * shared + in_flight * chunk + page) // page) * page


def _drafted_tokens(deployment: Deployment) -> int:
    if deployment.algorithm and deployment.num_draft_tokens is None:
        raise InputError(
            "the pool of windowed layers that max_running_requests decides where there is no radix cache",
            f"speculative_algorithm {deployment.algorithm} without speculative_num_draft_tokens",
            "give it as the server gets it",
        )
    return deployment.num_draft_tokens or 1


def _decode_tokens(deployment: Deployment, drafted: int) -> int:
    """Tokens that one step of decoding may take for a request: under speculation twice, while the next step is prepared."""
    page, steps, topk = deployment.page_size, deployment.num_steps or 1, deployment.topk or 1
    if not deployment.algorithm:
        return page
    if page > 1 and topk > 1:
        raise InputError(
            "the pool of windowed layers without a radix cache",
            f"speculative_eagle_topk {topk} with page_size {page}",
            "use topk 1 or pages of 1: trees over pages were compared with no release",
        )
    if deployment.disable_overlap_schedule:
        return max(-(-steps // page) * page * topk, -(-drafted // page) * page)
    return 2 * max(steps * topk, drafted)
