# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a case gives to the sizing code: flags by the names that memory_plan has for them, and the two measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Optional

# SGLang chooses the chunk by the card; only sliding-window models with a request cap look at it.
CHUNKED_PREFILL_SIZE = 8192


@dataclass(frozen=True)
class Inputs:
    """One case. Memory in GiB, the least over the ranks; lengths in tokens; None is SGLang's own default."""

    model: str
    gpu_free_gib: float
    free_at_sizing_gib: float
    mem_fraction_static: float
    draft_model: Optional[str] = None
    # whether the server's arguments name the draft, by the user's word or by SGLang's own; else it is found in the target
    draft_is_named: bool = True
    speculative_algorithm: str = ""
    speculative_num_steps: Optional[int] = None
    speculative_eagle_topk: Optional[int] = None
    speculative_num_draft_tokens: Optional[int] = None
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    ep_size: int = 1
    dcp_size: int = 1
    enable_dp_attention: bool = False
    page_size: int = 1
    kv_cache_dtype: str = "auto"
    draft_kv_cache_dtype: Optional[str] = None
    context_length: Optional[int] = None
    max_running_requests: Optional[int] = None
    max_total_tokens: Optional[int] = None
    chunked_prefill_size: Optional[int] = None
    swa_full_tokens_ratio: float = 0.8
    disable_hybrid_swa_memory: bool = False
    mm_feature_transport: str = "cpu"
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: Optional[int] = None
    mamba_ssm_dtype: Optional[str] = None
    mamba_scheduler_strategy: str = "no_buffer"
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Inputs:
        """The options that sizing reads; every other option of memory_plan must be unknown to SGLang's sizing."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in options.items() if name in known})

    @property
    def algorithm(self) -> Optional[str]:
        """As SGLang stores it after parsing its arguments: NEXTN has become EAGLE."""
        return {"": None, "NEXTN": "EAGLE"}.get(self.speculative_algorithm, self.speculative_algorithm)

    @property
    def attention_dp_size(self) -> int:
        return self.dp_size if self.enable_dp_attention else 1

    @property
    def attention_tp_size(self) -> int:
        return self.tp_size // self.attention_dp_size
