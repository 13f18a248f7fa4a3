# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPU as an out-of-tree SGLang platform, with DFLASH allowed on it."""

from __future__ import annotations

from typing import Any, Callable

import torch
from sglang.srt.platforms.cpu import CpuSRTPlatform

from . import calm, patches

ATTENTION_BACKEND = "torch_native"


def cache_locations(
    *,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    **_sizes: Any,
) -> torch.Tensor:
    """The KV rows of positions ``start_offset`` to ``end_offset`` of every request, one after the other.

    ``req_to_token`` is (requests, positions); the offsets are one per request of the batch.
    """
    spans = zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist())
    return torch.cat([req_to_token[row, start:end] for row, start, end in spans]).to(torch.int64)


class CpuEnginePlatform(CpuSRTPlatform):
    """SGLang's CPU platform, asked for its opinion as an out-of-tree one is.

    Being out-of-tree is what makes SGLang take portable code paths (no device
    kernels, no graphs) and ask the methods below instead of refusing.
    """

    def is_out_of_tree(self) -> bool:
        return True

    def get_default_attention_backend(self) -> str:
        return ATTENTION_BACKEND

    def supports_speculative_algorithm(self, algorithm: str) -> bool:
        return algorithm == "DFLASH"

    def supports_speculative_draft_attention_backend(self, algorithm: str, backend: str) -> bool:
        return algorithm == "DFLASH" and backend == ATTENTION_BACKEND

    def get_default_speculative_draft_attention_backend(self, algorithm: str) -> str:  # noqa: ARG002 (SGLang's signature)
        return ATTENTION_BACKEND

    def get_speculative_cache_locs_fn(self) -> Callable[..., torch.Tensor]:
        return cache_locations

    def get_group_coordinator_device(self, local_rank: int) -> torch.device:
        # Process groups are formed right before SGLang takes its memory baseline.
        calm.wait()
        return super().get_group_coordinator_device(local_rank)

    def init_backend(self) -> None:
        patches.allow_draft_attention_backend(ATTENTION_BACKEND)
        patches.ignore_streams_of_cpu_tensors()
        patches.gather_by_gloo()

    def post_load_model(self, model: torch.nn.Module) -> None:
        patches.use_absorbed_mla(ATTENTION_BACKEND)
        patches.attend_to_token_blocks()
        patches.use_portable_rope(model)
