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
    # an EAGLE3 draft; a model with next-token layers of its own is compared with those (NEXTN)
    eagle3: Optional[str] = None
    nextn: bool = False
    standalone: Optional[str] = None
    tp_sizes: tuple[int, ...] = (1, 2, 4, 8)
    page_sizes: tuple[int, ...] = (1, 64)
    # KV types of the random cases; the matrix takes the first two
    kv_types: tuple[str, ...] = ("auto", "fp8_e4m3", "fp8_e5m2", "bf16")


# SGLang starts sparse attention with these alone
_DSA_TYPES = ("auto", "fp8_e4m3", "bf16")

FAMILIES = (
    Family("mha", "llama-2-7b"),
    Family("gqa", "llama-3.1-8b", dflash="llama-3.1-8b-dflash", eagle3="llama-3.1-8b-eagle3"),
    Family("gqa", "qwen3-32b", dflash="qwen3-32b-dflash", eagle3="qwen3-32b-eagle3", standalone="qwen3-0.6b"),
    Family("gqa", "qwen3-235b-a22b", dflash="qwen3-235b-a22b-dflash"),
    Family("gqa, multimodal", "qwen2.5-vl-7b", tp_sizes=(1, 2, 4)),
    Family("mqa", "gemma-2b"),
    Family("mla", "deepseek-v2-lite"),
    Family("mla", "deepseek-v3", dflash="deepseek-v3-dflash", nextn=True),
    Family("mla, multimodal", "kimi-k2.6", "0.5.9", dflash="kimi-k2.6-dflash", eagle3="kimi-k2.6-eagle3"),
    Family("dsa", "deepseek-v3.2", "0.5.3", dflash="deepseek-v3.2-dflash", nextn=True, page_sizes=(64,), kv_types=_DSA_TYPES),
    Family("dsa", "glm-5", "0.5.9", dflash="glm-5-dflash", nextn=True, page_sizes=(64,), kv_types=_DSA_TYPES),
    Family("swa", "gpt-oss-120b", "0.5.1", dflash="gpt-oss-120b-dflash", eagle3="gpt-oss-120b-eagle3"),
)
