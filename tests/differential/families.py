# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models that are compared, a row each; their configurations, cut down to what decides, are in models/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Family:
    """A model of a family, with the drafts it is compared with; ``since`` is the first release that knows it."""

    name: str
    model: str
    since: str = "0.4.6"
    dflash: Optional[str] = None
    # an EAGLE3 draft, or next-token layers of its own (NEXTN)
    eagle3: Optional[str] = None
    # which SGLang names as their own draft (named), or finds without (unnamed)
    nextn: str = ""
    standalone: Optional[str] = None
    tp_sizes: tuple[int, ...] = (1, 2, 4, 8)
    page_sizes: tuple[int, ...] = (1, 64)
    # KV types of the random cases; the matrix takes the first two
    kv_types: tuple[str, ...] = ("auto", "fp8_e4m3", "fp8_e5m2", "bf16")
    # layers with states beside the KV cache, and the first releases whose radix cache keeps them, and keeps spare ones
    states: bool = False
    radix_since: str = "0"
    buffer_since: str = "9"


# SGLang starts sparse attention with these alone
_DSA = {"page_sizes": (64,), "kv_types": ("auto", "fp8_e4m3", "bf16")}
# ... and compressed attention with these
_COMPRESSED = {"page_sizes": (256,), "kv_types": ("fp8_e4m3",), "nextn": "named"}
_FP4 = ("auto", "fp8_e4m3", "fp8_e5m2", "bf16", "fp4_e2m1", "fp4_mx_block16", "nvfp4")

FAMILIES = (
    Family("mha", "llama-2-7b"),
    Family("gqa", "llama-3.1-8b", dflash="llama-3.1-8b-dflash", eagle3="llama-3.1-8b-eagle3", kv_types=_FP4),
    Family("gqa", "qwen3-32b", dflash="qwen3-32b-dflash", eagle3="qwen3-32b-eagle3", standalone="qwen3-0.6b"),
    Family("gqa", "qwen3-235b-a22b", dflash="qwen3-235b-a22b-dflash"),
    Family("gqa", "minimax-m2.5", "0.5.4"),
    Family("gqa", "gemma-3-27b", "0.5.1"),
    Family("gqa, multimodal", "qwen2.5-vl-7b", tp_sizes=(1, 2, 4)),
    Family("mqa", "gemma-2b"),
    Family("mla", "deepseek-v2-lite", kv_types=_FP4),
    Family("mla", "deepseek-v3", dflash="deepseek-v3-dflash", nextn="named"),
    Family("mla", "kimi-k2"),
    Family("mla, multimodal", "kimi-k2.6", "0.5.9", dflash="kimi-k2.6-dflash", eagle3="kimi-k2.6-eagle3"),
    Family("dsa", "deepseek-v3.2", "0.5.3.post2", dflash="deepseek-v3.2-dflash", nextn="named", **_DSA),
    Family("dsa", "glm-5", "0.5.9", dflash="glm-5-dflash", nextn="named", **_DSA),
    Family("dsa, shared index", "glm-5.2", "0.5.9", dflash="glm-5.2-dflash", nextn="named", **_DSA),
    Family("swa", "gpt-oss-120b", "0.5.1", dflash="gpt-oss-120b-dflash", eagle3="gpt-oss-120b-eagle3"),
    Family("swa", "llama-4-scout", "0.4.6"),
    Family("swa", "mimo-v2-flash", "0.5.7"),
    Family("swa", "step-3.5-flash", "0.5.9"),
    Family("swa", "laguna-xs", "0.5.12"),
    Family("swa, multimodal", "gemma-4-26b-a4b", "0.5.11"),
    Family("compressed", "deepseek-v4-flash", "0.5.12", **_COMPRESSED),
    Family("compressed", "deepseek-v4-pro", "0.5.12", **_COMPRESSED),
    Family("sparse index", "minimax-m3", "0.5.16", kv_types=("auto", "bf16")),
    Family("gated delta", "qwen3-next-80b", "0.5.2", nextn="unnamed", states=True, radix_since="0.5.3.post2", buffer_since="0.5.7"),
    Family("gated delta, multimodal", "qwen3.5-122b-a10b", "0.5.9", dflash="qwen3.5-122b-a10b-dflash", states=True, buffer_since="0.5.9"),
    Family("mamba", "nemotron-3-nano-30b-a3b", "0.5.3.post2", states=True, radix_since="0.5.6", buffer_since="0.5.13"),
    Family("mamba", "nemotron-3-super-120b-a12b", "0.5.3.post2", states=True, radix_since="0.5.6", buffer_since="0.5.13"),
    Family("mamba", "falcon-h1-34b", "0.5.3.post2", tp_sizes=(1, 2, 4), states=True, radix_since="0.5.6", buffer_since="0.5.13"),
    Family("mamba", "granite-4.0-h-small", "0.5.9", states=True, buffer_since="0.5.13"),
    Family("kda and mla", "kimi-linear-48b", "0.5.4", states=True, radix_since="0.5.14", buffer_since="0.5.16"),
    Family("kda and mla", "kimi-k3", "0.5.17", states=True, buffer_since="0.5.17"),
    Family("convolution", "lfm2-1.2b", "0.5.9", states=True),
)
