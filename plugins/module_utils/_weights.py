# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Weight memory of one rank, from the headers of a checkpoint. Private to this collection: may change at any time.

Three steps, each of them a table where it can be one: which tensor SGLang loads and how its ranks share it (by the layer
class that takes it: column, row and vocabulary parallel, fused experts, replicated), what loading adds to the files, and how
the caching allocator of torch rounds what it asks from the driver. What the headers cannot tell (the card, the kernels that
are chosen there) is no guess in the figure but part of its error, with a reason.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, prod
from typing import Any, NamedTuple, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import GIB, Checkpoint, Tensor, Weights
from ansible_collections.inferops.sglang.plugins.module_utils._config import Config, InputError, Release, optional_count, optional_number

_MIB = 1 << 20


@dataclass(frozen=True)
class Layout:
    """How a server spreads a model, by SGLang's flags, and on what.

    ``attention_ranks`` share one attention: all of ``tp_size`` but under DP attention. ``platform`` is cuda, rocm or, where it
    is not known, empty; ``release`` (SGLang's version) too may be unknown. Both decide what loading adds.
    """

    tp_size: int = 1
    pp_size: int = 1
    ep_size: int = 1
    attention_ranks: int = 1
    dp_lm_head: bool = False
    moe_dense_tp_size: Optional[int] = None
    platform: str = ""
    release: Optional[Release] = None

    @property
    def expert_ranks(self) -> int:
        """Ranks that cut one expert between them; each group of as many holds its own experts."""
        return self.tp_size // self.ep_size

    def ranks(self, who: str) -> int:
        if who == "dense":
            return self.moe_dense_tp_size or self.tp_size
        if who == "head":
            return self.attention_ranks if self.dp_lm_head else self.tp_size
        return self.tp_size if who in ("expert", "shared") else self.attention_ranks


def rank_weights(checkpoint: Checkpoint, config: Config, layout: Layout, is_draft: bool = False) -> Weights:
    """Weight memory (GiB) of the heaviest rank, as the driver counts it after loading; raises InputError for an incomplete one.

    ``config`` is the content of config.json. A checkpoint that also holds its target's layers is as a draft only the
    next-token layers behind them. A draft's copies of embedding and head count: SGLang lets go of them only after the pools.
    """
    return _tally(checkpoint, config, layout, is_draft).result()


def rank_bytes(checkpoint: Checkpoint, config: Config, layout: Layout, is_draft: bool = False) -> float:
    """Bytes that the parameters of the heaviest rank ask for, before the allocator rounds; otherwise as rank_weights."""
    return max(map(sum, _tally(checkpoint, config, layout, is_draft).stages()))


def _tally(checkpoint: Checkpoint, config: Config, layout: Layout, is_draft: bool) -> _Tally:
    if not checkpoint.complete:
        raise InputError(
            f"the weight memory of {checkpoint.directory}",
            f"an incomplete checkpoint ({len(checkpoint.problems)} problems, the first: {checkpoint.problems[0]})",
            "finish the download, or give weights_gib",
        )
    _check(layout)
    places = [_template(tensor.name) for tensor in checkpoint.tensors]
    facts = _facts(config, is_draft, set(places))
    _check_model(layout, facts, len({layer for layer, _name in places if layer is not None}))
    tally = _Tally(layout, facts)
    for tensor, (layer, template) in zip(checkpoint.tensors, places):
        tally.add(tensor, layer, template)
    return tally


def _check(layout: Layout) -> None:
    for name in ("tp_size", "pp_size", "ep_size", "attention_ranks"):
        if getattr(layout, name) < 1:
            raise InputError(f"{name} {getattr(layout, name)}", "a size below 1", "give SGLang's flag of that name")
    if layout.tp_size % layout.ep_size:
        raise InputError(f"ep_size {layout.ep_size}", f"tp_size {layout.tp_size}", "give an ep_size that divides tp_size")
    dense = layout.moe_dense_tp_size
    if dense is not None and (dense < 1 or layout.tp_size % dense):
        raise InputError(f"moe_dense_tp_size {dense}", f"tp_size {layout.tp_size}", "give 1 or another divisor of tp_size, or leave it out")


def _check_model(layout: Layout, facts: _Facts, stored: int) -> None:
    """What SGLang refuses to spread so. ``stored`` is the number of layers in the files: config.json can name any."""
    layers = min(facts.layers or stored, max(stored, 1))
    # a draft may have fewer layers than its target has stages, and is given the target's flags
    most = max(layers, _DRAFT_STAGES) if facts.is_draft else layers
    if layout.pp_size > most:
        raise InputError(f"pp_size {layout.pp_size}", f"a model of {layers} layers", "give no more stages than layers")
    ranks, kv = layout.attention_ranks, facts.kv_heads
    if facts.heads_stated and (facts.query_heads % ranks or (kv % ranks and ranks % kv)):
        raise InputError(
            f"tp_size {layout.tp_size}, which shares one attention between {ranks} ranks",
            f"{facts.query_heads} attention heads and {kv} KV heads",
            "give a size that divides the attention heads, and divides the KV heads or is a multiple of them",
        )


# --- which tensor goes where ---------------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """``pattern`` is searched in the tensor's name with its numbers cut out. ``split`` names the cut, ``ranks`` who shares;
    ``fused`` is the parameter that takes several tensors."""

    pattern: str
    split: str
    ranks: str = ""
    fused: str = ""


# Splits: column (by output: vectors are cut too), row (by input: a bias, or a scale for each output, stays whole), kv (column,
# but never below one head), qkv (column and kv in one tensor), vocab (rows, padded), whole, never (not loaded).
# The first that fits counts; more special ones stand first.
_ENCODER = r"(?:^|\.)(?:visual|vision_tower|vision_model|vision_encoder|audio_tower)\."
_RULES = (
    # computed by the model itself, or left behind by training code
    _Rule(r"rotary_emb\.inv_freq|rotary_pos_emb|\.rotary_emb\.(?:cos|sin)_cached|masked_bias|\.attn\.bias$", "never"),
    # encoders: VisionAttention is cut by the attention ranks, as are most feed-forwards; MoonViT's is not
    _Rule(_ENCODER + r"(?:.*\.)?encoder\.blocks\.#\.mlp\.fc[01]\.", "whole"),
    _Rule(_ENCODER + r".*\.(?:w?qkv|[qkv]_proj|gate_proj|up_proj|linear_fc1|fc1)\.", "column", "encoder"),
    _Rule(_ENCODER + r".*\.(?:wo|attn\.proj|o_proj|out_proj|down_proj|linear_fc2|fc2)\.", "row", "encoder"),
    _Rule(_ENCODER, "whole"),
    _Rule(r"(?:^|\.)(?:mm_projector|multi_modal_projector|embed_vision|embed_audio)\.", "whole"),
    # the experts of a layer are two parameters: w13 and w2
    _Rule(r"\.experts\..*?(?:gate_up_proj|gate_proj|up_proj|w1|w3|linear_fc1)(?=[._]|$)", "column", "expert", "experts.w13"),
    _Rule(r"\.experts\..*?(?:down_proj|w2|linear_fc2)(?=[._]|$)", "row", "expert", "experts.w2"),
    _Rule(r"\.block_sparse_moe\.input_linear\.", "column", "expert", "experts.w13"),
    _Rule(r"\.block_sparse_moe\.output_linear\.", "row", "expert", "experts.w2"),
    # shared experts are cut by all ranks, also where --moe-dense-tp-size narrows the dense layers
    _Rule(r"\.shared_experts?\.(?:gate_proj|up_proj|gate_up_proj)\.", "column", "shared", "shared_experts.gate_up_proj"),
    _Rule(r"\.shared_experts?\.down_proj\.", "row", "shared"),
    # ReplicatedLinear and plain parameters: routers, latent down-projections, the sparse indexer, what fuses hidden states
    _Rule(r"\.(?:gate|router|shared_expert_gate)\.(?!.*_proj)", "whole"),
    _Rule(r"\.(?:q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj_with_mqa)\.", "whole", fused="fused_qkv_a_proj_with_mqa"),
    _Rule(r"\.indexer\.(?:wk|weights_proj)\.", "whole", fused="indexer.wk_weights_proj"),
    _Rule(r"\.indexer\.", "whole"),
    _Rule(r"(?:^|\.)(?:fc|eh_proj)\.", "whole"),
    # attention: KV heads are repeated on the ranks beyond their number
    _Rule(r"\.(?:k_proj|v_proj)(?=[._]|$)", "kv", "attention", "qkv_proj"),
    _Rule(r"\.q_proj(?=[._]|$)", "column", "attention", "qkv_proj"),
    _Rule(r"\.(?:qkv_proj|query_key_value|W_pack|wqkv|qkv)(?=[._]|$)", "qkv", "attention", "qkv_proj"),
    _Rule(r"\.(?:q_b_proj|kv_b_proj|g_proj)\.", "column", "attention"),
    _Rule(r"(?:self_attn|attention|attn)\..*?(?:o_proj|out_proj|wo|dense|c_proj)\.", "row", "attention"),
    _Rule(r"(?:self_attn|attn)\.sinks$", "column", "attention"),
    # states beside attention are cut by their heads
    _Rule(r"\.(?:linear_attn|mamba|mixer)\.(?:in_proj\w*|conv1d|A_log$|dt_bias$|D$)", "column", "attention"),
    _Rule(r"\.(?:linear_attn|mamba|mixer)\.out_proj\.", "row", "attention"),
    _Rule(r"\.(?:mamba|mixer)\.norm\.", "column", "attention"),
    # feed-forward
    _Rule(r"\.(?:gate_proj|up_proj|gate_up_proj|w1|w3)(?=[._]|$)", "column", "dense", "gate_up_proj"),
    _Rule(r"\.(?:fc1|fc_in|c_fc|dense_h_to_4h|input_linear)\.", "column", "dense"),
    _Rule(r"\.(?:down_proj|w2|fc2|fc_out|c_proj|dense_4h_to_h|output_linear)(?=[._]|$)", "row", "dense"),
    # VocabParallelEmbedding and ParallelLMHead
    _Rule(r"(?:^|\.)(?:embed_tokens|word_embeddings|tok_embeddings|wte)\.", "vocab", "attention"),
    _Rule(r"(?:^|\.)(?:lm_head|embed_out|shared_head\.head)\.|^output\.", "vocab", "head"),
    # norms, correction terms of routers, scales of the KV cache
    _Rule(r"norm\w*(?=\.|$)|(?:^|\.)ln_?\w*\.|e_score_correction_bias$|_scale$", "whole"),
)
_COMPILED = tuple((re.compile(rule.pattern), rule) for rule in _RULES)
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|word_embeddings|tok_embeddings|wte)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out)\.|^output\.")
_ENCODERS = re.compile(_ENCODER)
_SHARED = re.compile(r"\.shared_experts?\.")
_ABSORBED = re.compile(r"\.kv_b_proj\.(?:weight|qweight|weight_packed)$")
# next-token layers that do not stand behind the numbered ones
_NEXT_TOKEN = re.compile(r"(?:^|\.)(?:mtp|nextn)\.")
# what stands before the number of a layer
_LAYERS = frozenset({"layers", "h", "layer", "blocks"})

# SGLang pads the vocabulary to a multiple of 64, and of 64 times the ranks where those do not divide that
_VOCAB_UNIT = 64


# layers and experts have numbers of no more digits; what has more is a name
_DIGITS = 9


def _is_number(part: str) -> bool:
    """int() and isdigit() take the digits of every script, names of tensors have those of ASCII."""
    return part.isdigit() and part.isascii() and len(part) <= _DIGITS


def _template(name: str) -> tuple[Optional[int], str]:
    """The number of a tensor's layer, and its name with every number replaced."""
    parts = name.split(".")
    layer = None
    for position, part in enumerate(parts):
        if _is_number(part):
            if layer is None and position and parts[position - 1] in _LAYERS:
                layer = int(part)
            parts[position] = "#"
    return layer, ".".join(parts)


# --- what config.json adds -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Facts:
    """What a tensor's own entry does not say. Counts are whole, not per rank."""

    layers: Optional[int]
    query_heads: int
    kv_heads: int
    heads_stated: bool
    tied: bool
    is_draft: bool
    # a draft that is the next-token layers of its target's checkpoint, with or without embedding and head of its own
    next_token_only: bool
    next_token_embedding: bool
    one_scale: bool
    # bytes of what the configuration asks for and no file holds
    rope_bytes: int
    embedding_bytes: int


# stages of the largest pipelines, and far more
_DRAFT_STAGES = 1024

_TEXT_KEYS = ("text_config", "llm_config", "language_config")


def _facts(config: Config, is_draft: bool, names: set[tuple[Optional[int], str]]) -> _Facts:
    text = _text(config)
    stated = _count(text, "num_attention_heads", "n_head")
    heads = stated or 1
    layers = _count(text, "num_hidden_layers", "n_layer")
    next_token = {name for layer, name in names if _is_next_token(layer, name, layers)}
    has_embedding = any(_EMBEDDING.search(name) for _layer, name in names)
    quant = _quantisation(config)
    return _Facts(
        layers=layers,
        query_heads=heads,
        kv_heads=_count(text, "num_key_value_heads") or heads,
        heads_stated=stated is not None,
        tied=has_embedding and _tied(config, text, any(_HEAD.search(name) for _layer, name in names)),
        is_draft=is_draft,
        next_token_only=is_draft and bool(next_token),
        next_token_embedding=any(_EMBEDDING.search(name) for name in next_token),
        one_scale=bool(quant) and quant.get("weight_block_size") is None,
        rope_bytes=_rope_bytes(text, heads),
        embedding_bytes=0 if has_embedding or not is_draft else _draft_embedding(config, text),
    )


def _text(config: Config) -> Config:
    return next((config[key] for key in _TEXT_KEYS if isinstance(config.get(key), Mapping)), config)


def _tied(config: Config, text: Config, has_head: bool) -> bool:
    stated = config.get("tie_word_embeddings", text.get("tie_word_embeddings"))
    return not has_head if stated is None else bool(stated)


def _count(config: Config, *keys: str) -> Optional[int]:
    return next(filter(None, (optional_count(config, key) for key in keys)), None)


def _quantisation(config: Config) -> Mapping[str, Any]:
    """The quantisation entry of config.json; ModelOpt's own file keeps the same one level deeper."""
    for part in (config, _text(config)):
        for key in ("quantization_config", "compression_config"):
            found = part.get(key)
            if isinstance(found, Mapping) and found:
                inner = found.get("quantization")
                return {**found, **inner} if isinstance(inner, Mapping) else found
    return {}


def quantisation_name(config: Config) -> str:
    """The method that config.json names, such as ``fp8`` or ``compressed-tensors pack-quantized``; empty for none."""
    quant = _quantisation(config)
    words = (quant.get("quant_method"), quant.get("quant_algo"), quant.get("format"))
    return " ".join(str(word) for word in words if word)


def _is_next_token(layer: Optional[int], template: str, layers: Optional[int]) -> bool:
    if _NEXT_TOKEN.search(template):
        return True
    return layer is not None and layers is not None and layer >= layers and not _ENCODERS.search(template)


def _rope_bytes(text: Config, heads: int) -> int:
    """The table of sines and cosines that every model makes once: a row of fp32 for each position, yarn's with its factor."""
    width = _count(text, "qk_rope_head_dim", "head_dim") or (_count(text, "hidden_size") or 0) // heads
    scaling = text.get("rope_parameters") or text.get("rope_scaling")
    scaling = scaling if isinstance(scaling, Mapping) else {}
    part = scaling.get("partial_rotary_factor", text.get("partial_rotary_factor"))
    if text.get("position_embedding_type") in ("nope", "absolute", "alibi"):
        return 0
    if isinstance(part, float) and 0 < part < 1 and "qk_rope_head_dim" not in text:
        width = int(width * part)
    rows = _count(text, "max_position_embeddings") or 0
    original = _count(scaling, "original_max_position_embeddings")
    factor = optional_number(scaling, "factor") if "yarn" in str(scaling.get("rope_type", scaling.get("type"))) else None
    if original and factor:
        rows = int(original * factor)
    return rows * width * 4


def _draft_embedding(config: Config, text: Config) -> int:
    """EAGLE drafts have an embedding of the target's vocabulary also where their files hold none."""
    names = config.get("architectures")
    if not (isinstance(names, list) and names and "Eagle" in str(names[0])):
        return 0
    return 2 * (_count(text, "vocab_size") or 0) * (_count(text, "target_hidden_size", "hidden_size") or 0)


# --- bytes ---------------------------------------------------------------------------------------------------------------

# Plain parameters have the model's own type of two bytes. Scales, biases of routers and of stacked experts and state decay
# stay as they are stored.
_KEPT_AS_STORED = re.compile(r"scale|\.experts\.\w+_bias$|e_score_correction_bias|A_log|dt_bias|zero_point|zeros|g_idx|_shape$")
_WIDE = {"F32": 4, "F64": 8}
# elements in one stored element of a packed weight
_PACKED = {"I32": 8, "U8": 2}
_BLOCK_SCALE = re.compile(r"weight_scale_inv$")
_INDEXER_KEY = re.compile(r"\.indexer\.(?:wk|weights_proj)\.weight$")
_SIXTEEN_BITS = frozenset({"BF16", "F16", "F32", "F64"})
# experts whose kernels ask for more than the files hold: form, stored type, name
_PACKED_EXPERTS = (
    ("mxfp4", "U8", re.compile(r"\.experts\.(?:gate_up_proj|down_proj)_(?:blocks|scales)$")),
    ("nvfp4", "F8_E4M3", re.compile(r"\.experts\..*\.weight_scale$")),
    ("int4", "I32", re.compile(r"\.experts\.#\.(?:gate_proj|up_proj|w1|w3|down_proj|w2)\.weight_packed$")),
)
# What a rank's part of the experts' width is padded to, by the kernels of Hopper and by the widest others
_MXFP4_BLOCK, _MXFP4_WIDTH, _MXFP4_WIDEST, _MXFP4_HIDDEN = 32, 64, 256, 256

# What the driver takes for itself while weights load (kernels, handles): 0.00 to 0.07 GiB in the boots of tests/unit/test_weights.py
_DRIVER_GIB = 0.1
# Quantised weights pass through copies when they are repacked; what these leave behind in pieces was below 1 % in all of them
_REPACK = 0.01

# releases that keep the swizzled scales of NVFP4 experts beside the plain ones; before and after, one of the two goes
_BOTH_SCALES = ((0, 5, 10), (0, 5, 12))


class _Kind(NamedTuple):
    """What all tensors of one template and type have in common."""

    rule: Optional[_Rule]
    factor: float
    parameter: str
    is_encoder: bool
    is_embedding: bool
    is_head: bool
    is_shared: bool
    next_token: bool
    absorbed: bool
    # experts in a format whose kernels ask for more: mxfp4, nvfp4 (its scales), int4
    packed: str


@dataclass
class _Tally:
    """Parameters of one rank, added up tensor by tensor."""

    layout: Layout
    facts: _Facts
    # bytes by layer and parameter; the order of insertion is that of allocation
    parameters: dict[tuple[Optional[int], str], float] = field(default_factory=dict)
    doubts: dict[str, float] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    quantised: float = 0.0
    _kinds: dict[tuple[str, str], _Kind] = field(default_factory=dict)

    def add(self, tensor: Tensor, layer: Optional[int], template: str) -> None:
        kind = self._kinds.get((template, tensor.dtype))
        if kind is None:
            kind = self._kinds[(template, tensor.dtype)] = _kind(template, tensor.dtype)
        if self._left_out(layer, kind):
            return
        rule = kind.rule or self._guess(tensor, template)
        size = tensor.size * kind.factor * self._share(tensor, rule)
        if kind.packed:
            size = self._packed(layer, tensor, template, kind.packed, size)
        if tensor.dtype not in _SIXTEEN_BITS:
            self.quantised += size
        self._put(None if kind.is_encoder else layer, kind.parameter or tensor.name, size)
        self._doubt_cut(tensor, kind, size)
        if kind.absorbed:
            self._absorb(layer, tensor)

    def _left_out(self, layer: Optional[int], kind: _Kind) -> bool:
        """Not loaded: what the rule says, next-token layers by the target, all but these by a draft that is made of them."""
        facts = self.facts
        if kind.rule is not None and kind.rule.split == "never":
            return True
        if facts.tied and kind.is_head:
            return True
        if facts.next_token_only and not facts.next_token_embedding and (kind.is_embedding or kind.is_head):
            return False
        behind = layer is not None and facts.layers is not None and layer >= facts.layers and not kind.is_encoder
        return facts.next_token_only != (kind.next_token or behind)

    def _guess(self, tensor: Tensor, template: str) -> _Rule:
        """A name in no rule: counted whole, because too much is safe where too little is not."""
        if template not in self.unknown:
            self.unknown.append(template)
        shared = tensor.size - tensor.size / self.layout.tp_size if len(tensor.shape) > 1 else 0.0
        self._doubt(_UNKNOWN, shared)
        return _Rule("", "whole")

    def _share(self, tensor: Tensor, rule: _Rule) -> float:
        """The part of a tensor that one rank holds; above 1/ranks where it is padded or repeated."""
        whole = 1 / self.layout.ep_size if rule.ranks == "expert" else 1.0
        if rule.split == "whole" or prod(tensor.shape) <= 2 or (rule.split == "row" and _is_vector(tensor, rule)):
            return whole
        ranks = self.layout.ranks(rule.ranks)
        if rule.split == "vocab":
            return padded_vocabulary(tensor.shape[0], ranks) / tensor.shape[0] / ranks
        if rule.split == "kv":
            return 1 / min(ranks, self.facts.kv_heads)
        if rule.split == "qkv":
            query = self.facts.query_heads / (self.facts.query_heads + 2 * self.facts.kv_heads)
            return query / ranks + (1 - query) / min(ranks, self.facts.kv_heads)
        return 1 / ranks

    def _absorb(self, layer: Optional[int], tensor: Tensor) -> None:
        """Latent attention multiplies by the two halves of kv_b_proj on their own, copies in the model's type beside the whole
        (in one byte where a single scale allows it)."""
        elements = prod(tensor.shape) * _PACKED.get(tensor.dtype, 1)
        one_byte = tensor.dtype.startswith("F8") and (self.facts.one_scale or self.layout.platform == "rocm")
        half = elements / self.layout.attention_ranks * (1 if one_byte else 2) / 2
        self._put(layer, "kv_b_proj.w_kc", half)
        self._put(layer, "kv_b_proj.w_vc", half)
        if tensor.dtype.startswith("F8") and not self.layout.platform:
            self._doubt("the copies of kv_b_proj have one byte or two, by the card", half)

    def _packed(self, layer: Optional[int], tensor: Tensor, template: str, form: str, size: float) -> float:
        """Bytes of a rank's part of experts after what their kernels ask for."""
        if form == "mxfp4":
            padded, widest = _mxfp4_padding(tensor.shape, template, self.layout.expert_ranks)
            self._doubt("MXFP4 experts are padded by the card and its kernels", size * (widest - padded))
            return size * padded
        if form == "int4":
            self._order(layer, tensor, template)
        elif self.layout.release is not None and _BOTH_SCALES[0] <= self.layout.release < _BOTH_SCALES[1]:
            self._put(layer, "experts.blockscale_swizzled", size)
        else:
            self._doubt("the scales of NVFP4 experts are rearranged in copies, of which some may stay", size / 2)
        return size

    def _order(self, layer: Optional[int], tensor: Tensor, template: str) -> None:
        """Two indices (4 bytes) for each input of an INT4 expert: made by all, dropped again by the kernels of CUDA only."""
        is_down = template.rsplit(".", 2)[1] in ("down_proj", "w2")
        inputs = tensor.shape[-1] * _PACKED["I32"]
        # gate and up read the same inputs, whole on every rank; down reads the rank's part of the experts' width
        size = 2 * 4 * inputs / self.layout.tp_size if is_down else 4 * inputs / self.layout.ep_size
        if self.layout.platform == "rocm":
            self._put(layer, "experts.g_idx", size)
        elif not self.layout.platform:
            self._doubt("ROCm keeps the order indices of INT4 experts", size)

    def _doubt_cut(self, tensor: Tensor, kind: _Kind, size: float) -> None:
        """Flags that make a rank hold more of a tensor than SGLang's defaults do."""
        if kind.is_encoder and self.layout.attention_ranks > 1:
            self._doubt("the encoder is whole on every rank under --mm-enable-dp-encoder", tensor.size - size)
        if kind.is_shared and self.layout.ep_size > 1:
            self._doubt("shared experts are whole on every rank under an all-to-all backend", tensor.size - size)

    def _put(self, layer: Optional[int], name: str, size: float) -> None:
        key = (layer, name)
        self.parameters[key] = self.parameters.get(key, 0.0) + size

    def _doubt(self, reason: str, size: float) -> None:
        self.doubts[reason] = self.doubts.get(reason, 0.0) + size

    def result(self) -> Weights:
        """The heaviest pipeline stage, as the allocator holds it, and its error."""
        stages = self.stages()
        sizes = max(stages, key=sum)
        taken, part = allocated(sizes), sum(sizes) / (sum(map(sum, stages)) or 1.0)
        rounding = taken - sum(sizes)
        parts = {
            "the driver's own while weights load": _DRIVER_GIB * GIB,
            "the rounding of the allocator, which its settings change": rounding,
            "what repacking quantised weights leaves in pieces": self.quantised * part * _REPACK,
            **{reason: size * part for reason, size in self.doubts.items()},
        }
        error = sum(parts.values())
        return Weights(taken / GIB, error / GIB, tuple(self._reasons(parts, taken)))

    def _reasons(self, parts: Mapping[str, float], taken: int) -> Iterable[str]:
        for reason, size in sorted(parts.items(), key=lambda item: -item[1]):
            if size > max(taken * 0.001, 0.01 * GIB) or reason == _UNKNOWN:
                names = f": {', '.join(self.unknown[:5])}" if reason == _UNKNOWN else ""
                yield f"+-{size / GIB:.2f} GiB: {reason}{names}"

    def stages(self) -> list[list[float]]:
        """Bytes of the parameters of each pipeline stage, in the order of allocation."""
        return [self._stage(stage, first, last) for stage, (first, last) in enumerate(self._bounds())]

    def _bounds(self) -> list[tuple[int, int]]:
        """First layer of each pipeline stage and the one behind its last; the last stages take the remainder."""
        numbers = [layer for layer, _name in self.parameters if layer is not None]
        first = min(numbers, default=0)
        size, more = divmod(max(numbers, default=-1) + 1 - first, self.layout.pp_size)
        ends = [first]
        for stage in range(self.layout.pp_size):
            ends.append(ends[-1] + size + (stage >= self.layout.pp_size - more))
        return list(zip(ends, ends[1:]))

    def _stage(self, stage: int, first: int, last: int) -> list[float]:
        """Bytes of a stage's parameters: its layers, on the first what stands before them, on the last the head."""
        is_last = stage == self.layout.pp_size - 1
        unstored = (self.facts.rope_bytes, self.facts.embedding_bytes / self.layout.attention_ranks)
        sizes = [size for size in unstored if size]
        for (layer, name), size in self.parameters.items():
            if layer is not None:
                here = first <= layer < last
            elif _HEAD.search(name):
                here = is_last
            else:
                # a tied head is a copy of the embedding on the last of several stages
                here = stage == 0 or (is_last and self.facts.tied and bool(_EMBEDDING.search(name)))
            if here:
                sizes.append(size)
        return sizes


_UNKNOWN = "names that no rule knows, counted whole"


def _kind(template: str, dtype: str) -> _Kind:
    rule = next((rule for pattern, rule in _COMPILED if pattern.search(template)), None)
    return _Kind(
        rule=rule,
        factor=_factor(template, dtype),
        parameter=f"{rule.fused}.{template.rpartition('.')[2]}" if rule is not None and rule.fused else "",
        is_encoder=bool(_ENCODERS.search(template)),
        is_embedding=bool(_EMBEDDING.search(template)),
        is_head=bool(_HEAD.search(template)),
        is_shared=bool(_SHARED.search(template)),
        next_token=bool(_NEXT_TOKEN.search(template)),
        absorbed=bool(_ABSORBED.search(template)),
        packed=next((form for form, kept, pattern in _PACKED_EXPERTS if kept == dtype and pattern.search(template)), ""),
    )


def _factor(template: str, dtype: str) -> float:
    """Bytes of the parameter for one stored byte: types wider than the model's are narrowed, block scales are fp32."""
    if _BLOCK_SCALE.search(template) and dtype in ("BF16", "F16"):
        return 2.0
    if _INDEXER_KEY.search(template) and dtype.startswith("F8"):
        return 2.0
    if dtype not in _WIDE or _KEPT_AS_STORED.search(template):
        return 1.0
    return 2.0 / _WIDE[dtype]


def _is_vector(tensor: Tensor, rule: _Rule) -> bool:
    """A value for each output: a bias, or a scale in a column of its own; stacked experts have one dimension more."""
    stacked = rule.ranks == "expert" and not _numbered(tensor.name)
    shape = tensor.shape[1:] if stacked else tensor.shape
    return len(shape) <= 1 or shape[-1] == 1


def _numbered(name: str) -> bool:
    """Does every expert have tensors of its own?"""
    return _is_number(name.partition(".experts.")[2].partition(".")[0])


def padded_vocabulary(rows: int, ranks: int) -> int:
    """Rows of a vocabulary with SGLang's padding for so many ranks."""
    padded = _rounded(rows, _VOCAB_UNIT)
    return padded if padded % ranks == 0 else _rounded(rows, _VOCAB_UNIT * ranks)


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _mxfp4_padding(shape: tuple[int, ...], template: str, ranks: int) -> tuple[float, float]:
    """How much larger padding makes stacked MXFP4 experts: with the kernels of Hopper, and with those that pad the most."""
    is_up = ".gate_up_proj" in template
    width, hidden = (shape[1] // 2, shape[2] * _MXFP4_BLOCK) if is_up else (shape[2] * _MXFP4_BLOCK, shape[1])
    of_rank = width / ranks
    least = _rounded(-(-width // ranks), _MXFP4_WIDTH) / of_rank
    most = _rounded(-(-width // ranks), _MXFP4_WIDEST) / of_rank * _rounded(hidden, _MXFP4_HIDDEN) / hidden
    return least, most


# --- the allocator -------------------------------------------------------------------------------------------------------

# CUDACachingAllocator of torch: what is asked for in units of 512 bytes; up to 1 MiB out of segments of 2 MiB, up to 10 MiB out
# of segments of 20 MiB, above in segments of its own in units of 2 MiB. What a segment has left is used by later requests,
# above 1 MiB only if more than 1 MiB is left.
_BLOCK, _SMALL, _SMALL_SEGMENT, _MEDIUM, _MEDIUM_SEGMENT, _LARGE_UNIT = 512, _MIB, 2 * _MIB, 10 * _MIB, 20 * _MIB, 2 * _MIB


def allocated(sizes: Iterable[float]) -> int:
    """Bytes that the driver gives for parameters of these sizes (bytes), in this order."""
    total = 0
    small: list[int] = []
    large: list[int] = []
    for size in sizes:
        wanted = max(_BLOCK, _rounded(ceil(size), _BLOCK))
        free, least = (small, _BLOCK) if wanted <= _SMALL else (large, _SMALL + 1)
        place = bisect_left(free, wanted)
        if place < len(free):
            block = free.pop(place)
        else:
            block = _segment(wanted)
            total += block
        if block - wanted >= least:
            insort(free, block - wanted)
    return total


def _segment(wanted: int) -> int:
    if wanted <= _SMALL:
        return _SMALL_SEGMENT
    if wanted < _MEDIUM:
        return _MEDIUM_SEGMENT
    return _rounded(wanted, _LARGE_UNIT)
