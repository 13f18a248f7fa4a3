# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of a server that decide its KV pool. Private to this collection: may change at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

EAGLE_TYPES = ("EAGLE", "EAGLE3", "STANDALONE")
DFLASH_TYPES = ("DFLASH", "DDTREE", "DSPARK")
# SGLang's own max_running_requests under any speculative algorithm
SPECULATIVE_REQUESTS = 48


@dataclass(frozen=True)
class Deployment:
    """The server's flags that decide its pool; sizes are counts, lengths tokens, an unset length means SGLang's default."""

    algorithm: str = ""
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    ep_size: int = 1
    dcp_size: int = 1
    dp_attention: bool = False
    page_size: int = 1
    kv_cache_dtype: str = "auto"
    draft_kv_cache_dtype: Optional[str] = None
    attention_backend: Optional[str] = None
    draft_attention_backend: Optional[str] = None
    # of the cards, such as 9.0; None where it is not known
    compute_capability: Optional[float] = None
    context_length: Optional[int] = None
    max_running_requests: Optional[int] = None
    max_total_tokens: Optional[int] = None
    num_steps: Optional[int] = None
    topk: Optional[int] = None
    num_draft_tokens: Optional[int] = None
    swa_full_tokens_ratio: float = 0.8
    disable_hybrid_swa_memory: bool = False
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False
    chunked_prefill_size: Optional[int] = None
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: Optional[int] = None
    mamba_ssm_dtype: Optional[str] = None
    mamba_scheduler_strategy: str = "auto"
    mm_feature_transport: str = "cpu"
    cuda_graph_max_bs: Optional[int] = None
    disable_cuda_graph: bool = False

    @property
    def attention_ranks(self) -> int:
        """Ranks that share the KV heads of one layer."""
        return self.tp_size // (self.dp_size if self.dp_attention else 1)


def normalise_algorithm(name: Optional[str]) -> str:
    """SGLang's name of the algorithm: NEXTN is EAGLE with the model's own next-token layers."""
    upper = (name or "").upper()
    return "EAGLE" if upper == "NEXTN" else upper
