# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's own small arithmetic of KV pools: MLA, DSA and GQA targets with DFLASH or EAGLE drafts.

It shares no line with the collection under test, so that the two can disagree. Memory is in GiB, K/V in bytes
per token and rank, pools in tokens. No memory is taken: a rank keeps a ledger of what it would have left.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang.standin.eras import Era

GIB = 1 << 30
BALANCE = 0.9  # the smallest rank must have this share of every other rank's free memory
NOT_IMITATED = ("hybrid_override_pattern", "linear_attn_config", "full_attention_interval", "compress_ratios", "mamba_d_state")
DRAFT_TREE_TOKENS = 4  # draft tokens of EAGLE when none are asked for
BLOCK = 16  # draft tokens of DFLASH when neither the command line nor the draft's configuration says


class Refusal(Exception):
    """A start that cannot be imitated, or that SGLang would refuse before it loads anything."""


class Misuse(Exception):
    """The stand-in's own variables ask for something that it cannot do."""


@dataclass(frozen=True)
class Geometry:
    """What one model keeps per token. `latent` > 0 is MLA; `index` > 0 adds DSA's index keys."""

    name: str
    layers: int
    heads: int
    head_dim: int
    v_head_dim: int
    latent: int
    rope: int
    index: int

    def cell(self, element: int, tp: int, layers: int, fp8_latent_is_real: bool = True) -> tuple[int, int]:
        """(K, V) bytes per token of `layers` layers on one of `tp` ranks; MLA and DSA have one figure, V is 0."""
        if self.latent:
            stored = (self.latent + self.rope) * element
            if self.index and element == 1 and fp8_latent_is_real:
                stored = self.latent + self.latent // 128 * 4 + 2 * self.rope
            return (stored + self.index + self.index // 128 * 4) * layers, 0
        heads = max(1, self.heads // tp)
        return heads * self.head_dim * element * layers, heads * self.v_head_dim * element * layers


@dataclass(frozen=True)
class Rank:
    """One scheduler process; `index` counts all of them, `gpu` included."""

    index: int
    dp: int
    pp: int
    tp: int
    ep: int


@dataclass(frozen=True)
class Moment:
    """Free memory of a rank around one event of its era's order, GiB."""

    what: str
    whose: str
    before: float
    after: float

    @property
    def usage(self) -> float:
        return self.before - self.after


@dataclass(frozen=True)
class Hardware:
    """What the machine would have: free GiB per rank before anything is loaded, and what things take per rank."""

    free: list[float]
    weights: float
    draft_weights: float
    graph: float


@dataclass(frozen=True)
class Pools:
    """The outcome of one start, per rank. A rank whose pool has no token left ends its ledger before the pools.

    `free` is its own free memory before anything is loaded, `smallest` the least of its group, `available` what the
    group's poorest rank has when the pool is sized; `profiled` the tokens that fit before --max-total-tokens and the
    other stages have their say; `sizes` the GiB of (K, V), target or draft.
    """

    ranks: list[Rank]
    ledgers: list[list[Moment]]
    free: list[float]
    smallest: list[float]
    available: list[float]
    profiled: list[int]
    tokens: list[int]
    requests: list[int]
    context: int
    kv_dtype: str
    target: Geometry
    draft: Geometry | None
    draft_tokens: int
    sizes: dict[tuple[str, int], tuple[float, float]]

    def at(self, rank: int, what: str, whose: str) -> Moment:
        return next(moment for moment in self.ledgers[rank] if (moment.what, moment.whose) == (what, whose))

    @property
    def max_input(self) -> int:
        """A prompt must be shorter than this many tokens."""
        return min(self.context - 1, self.tokens[0] - 1) - 5


def read_config(path: str) -> dict[str, Any]:
    """The model's config.json. Refusal with the sentence that the loader has for a directory without one."""
    try:
        config = json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(f"OSError: {path} does not appear to have a file named config.json. ({error})") from error
    if not isinstance(config, dict):
        raise Refusal(f"OSError: {path}/config.json is not a table")
    return config


def geometry(config: dict[str, Any]) -> Geometry:
    """The geometry of one config.json; Refusal for families with state or window pools, which are not imitated."""
    text = config.get("text_config") or config
    kinds = set(text.get("layer_types") or []) - {"full_attention"}
    odd = sorted(kinds | {key for key in NOT_IMITATED if text.get(key)})
    if odd:
        raise Refusal(f"NotImplementedError: the stand-in knows MLA, DSA and GQA models only, this one has {', '.join(odd)}")
    heads = text["num_attention_heads"]
    head_dim = text.get("head_dim") or text["hidden_size"] // heads
    return Geometry(
        name=(config.get("architectures") or ["UnknownModel"])[0],
        layers=text["num_hidden_layers"],
        heads=text.get("num_key_value_heads") or heads,
        head_dim=head_dim,
        v_head_dim=text.get("v_head_dim") or head_dim,
        latent=text.get("kv_lora_rank") or 0,
        rope=text.get("qk_rope_head_dim") or 0,
        index=text.get("index_head_dim") or 0,
    )


def draft_geometry(args: argparse.Namespace, target: dict[str, Any]) -> Geometry | None:
    """The draft's geometry, its own MTP layers counted as layers; None when nothing drafts with a model."""
    if args.speculative_algorithm in (None, "NGRAM"):
        return None
    config = read_config(args.speculative_draft_model_path) if args.speculative_draft_model_path else target
    drafted = geometry(config)
    text = config.get("text_config") or config
    layers = text.get("num_nextn_predict_layers") or (drafted.layers if args.speculative_draft_model_path else 0)
    if not layers:
        raise Refusal("ValueError: speculative decoding needs --speculative-draft-model-path: the target has no MTP layers")
    return Geometry(**{**vars(drafted), "layers": layers})


def world(args: argparse.Namespace) -> list[Rank]:
    """Every rank of the server. Under dp-attention the DP ranks lie inside TP, else every DP rank is a replica."""
    inside = args.enable_dp_attention
    replicas = 1 if inside else args.dp_size
    ranks: list[Rank] = []
    for replica in range(replicas):
        for pp in range(args.pp_size):
            for tp in range(args.tp_size):
                dp = tp * args.dp_size // args.tp_size if inside else replica
                ranks.append(Rank(len(ranks), dp, pp, tp, tp * args.ep_size // args.tp_size))
    return ranks


def stage_layers(layers: int, pp: int, size: int) -> int:
    """Layers of one pipeline stage: the last stages take the remainder."""
    return layers // size + (1 if pp >= size - layers % size else 0)


class Sizing:
    """Walks one start in its era's order and keeps a ledger per rank."""

    def __init__(self, args: argparse.Namespace, era: Era, hardware: Hardware) -> None:
        self.args, self.era, self.hardware = args, era, hardware
        config = read_config(args.model_path)
        text = config.get("text_config") or config
        self.multimodal = "vision_config" in config
        self.target = geometry(config)
        self.draft = draft_geometry(args, config)
        self.context = args.context_length or text.get("max_position_embeddings") or 2048
        self.element, self.kv_dtype = _element(args.kv_cache_dtype, text)
        self.attention_tp = args.tp_size // args.dp_size if args.enable_dp_attention else args.tp_size
        self.draft_tokens = _draft_tokens(args, self.draft)
        self.ranks = world(args)
        if len(hardware.free) not in (1, len(self.ranks)):
            raise Misuse(f"STANDIN_FREE_GIB lists {len(hardware.free)} figures for {len(self.ranks)} ranks: give one or all")
        self.free = hardware.free if len(hardware.free) > 1 else hardware.free * len(self.ranks)
        self.smallest = [min(self.free[other.index] for other in self.ranks if _same_group(other, rank, args)) for rank in self.ranks]

    def run(self) -> Pools:
        """Sizes the pools and fills the ledgers."""
        order = [event for event in self.era.order if event[1] == "target" or self.draft]
        resident = order[: order.index(("pool", "target"))]
        loaded = sum(self._load(whose) for what, whose in resident if what == "load")
        available = [small - loaded for small in self.smallest]
        profiled = [self._profile(*figures) for figures in zip(self.ranks, available, self.smallest)]
        tokens = self._tokens(profiled)
        requests = [self._requests(pool) for pool in tokens]
        ledgers = [self._ledger(order if tokens[rank.index] > 0 else resident, rank, tokens, requests) for rank in self.ranks]
        sizes = {
            (whose, rank.index): self._kv_gib(whose, rank, tokens[rank.index])
            for rank in self.ranks
            for whose in ("target", "draft")
            if whose == "target" or self.draft
        }
        return Pools(
            ranks=self.ranks, ledgers=ledgers, free=self.free, smallest=self.smallest, available=available, profiled=profiled,
            tokens=tokens, requests=requests, context=self.context, kv_dtype=self.kv_dtype, target=self.target, draft=self.draft,
            draft_tokens=self.draft_tokens, sizes=sizes,
        )

    def _profile(self, rank: Rank, available: float, smallest: float) -> int:
        budget = available - smallest * (1 - self.args.mem_fraction_static) - self._reserve()
        return self._paged(int(budget * GIB) // self._charged(rank.pp))

    def _tokens(self, profiled: list[int]) -> list[int]:
        """Tokens per rank: what fits, the user's cap, and the least of all pipeline stages of a group."""
        cap = self.args.max_total_tokens
        fits = [self._paged(min(fit, cap)) if cap else fit for fit in profiled]
        return [min(fits[other.index] for other in self.ranks if _same_group(other, rank, self.args)) for rank in self.ranks]

    def _load(self, whose: str) -> float:
        return self.hardware.weights if whose == "target" else self.hardware.draft_weights

    def _reserve(self) -> float:
        return self.era.multimodal_reserve_mib / 1024 if self.multimodal else 0.0

    def _paged(self, tokens: int) -> int:
        page: int = self.args.page_size
        return tokens // page * page

    def _charged(self, pp: int) -> int:
        """Bytes per token that the era divides the budget by."""
        layers = stage_layers(self.target.layers, pp, self.args.pp_size)
        cell = sum(self.target.cell(self.element, self.attention_tp, layers, self.era.dsa_fp8_cell_is_real))
        if self.draft is None:
            return cell
        rule = self.era.eagle_charge if self.args.speculative_algorithm not in ("DFLASH", "DDTREE") else self.era.dflash_charge
        if rule == "none":
            return cell
        if rule == "geometry":
            return cell + sum(self.draft.cell(self.element, self.attention_tp, self.draft.layers))
        grown = cell * (layers + self.draft.layers)
        if self.args.speculative_algorithm in ("DFLASH", "DDTREE"):
            return math.ceil(grown / layers)
        return int(cell * (1 + self.draft.layers / layers))

    def _requests(self, tokens: int) -> int:
        """max_running_requests: the user's, else 48 under speculation, else an estimate from the pool."""
        estimate = max(2048, min(4096, int(tokens / self.context * 512)))
        half = max(tokens, 2) // 2
        asked = self.args.max_running_requests or (48 if self.args.speculative_algorithm else None)
        if asked is None:
            return min(estimate, half)
        share: int = max(1, asked // self.args.dp_size)
        return min(share, half, estimate) if self.era.requests_capped_by_estimate else min(share, half)

    def _kv_gib(self, whose: str, rank: Rank, tokens: int) -> tuple[float, float]:
        model = self.target if whose == "target" or self.draft is None else self.draft
        layers = stage_layers(model.layers, rank.pp, self.args.pp_size) if whose == "target" else model.layers
        key, value = model.cell(self.element, self.attention_tp, layers)
        rows = tokens + self.args.page_size
        return rows * key / GIB, rows * value / GIB

    def _ledger(self, events: list[tuple[str, str]], rank: Rank, pools: list[int], requests: list[int]) -> list[Moment]:
        tokens = pools[rank.index]
        rows = requests[rank.index] + self.era.request_rows_extra
        table = rows * (self.context + 4 + self.draft_tokens) * 4 / GIB
        ledger: list[Moment] = []
        free = self.free[rank.index]
        for what, whose in events:
            took = {
                "init": 0.0,
                "load": self._load(whose),
                "pool": sum(self._kv_gib(whose, rank, tokens)) + (table if whose == "target" else 0.0),
                "graph": self.hardware.graph if whose == "target" else self.hardware.graph / 4,
            }[what]
            ledger.append(Moment(what, whose, free, free - took))
            free -= took
        return ledger


def _same_group(one: Rank, other: Rank, args: argparse.Namespace) -> bool:
    """Plain DP replicas measure on their own; dp-attention ranks share one world."""
    return bool(args.enable_dp_attention) or one.dp == other.dp


def _element(kv_cache_dtype: str, text: dict[str, Any]) -> tuple[int, str]:
    if kv_cache_dtype.startswith("fp8"):
        return 1, "torch.float8_e4m3fn" if kv_cache_dtype == "fp8_e4m3" else "torch.float8_e5m2"
    if kv_cache_dtype != "auto":
        return 2, "torch.bfloat16"
    return 2, "torch.float16" if (text.get("dtype") or text.get("torch_dtype")) == "float16" else "torch.bfloat16"


def _draft_tokens(args: argparse.Namespace, draft: Geometry | None) -> int:
    if args.speculative_algorithm is None:
        return 0
    asked = args.speculative_num_draft_tokens or args.speculative_dflash_block_size
    if asked or draft is None or args.speculative_algorithm not in ("DFLASH", "DDTREE"):
        return int(asked or DRAFT_TREE_TOKENS)
    return int(read_config(args.speculative_draft_model_path).get("block_size") or BLOCK)
