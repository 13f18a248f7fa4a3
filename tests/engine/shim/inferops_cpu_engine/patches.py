# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SGLang's plugin interface has no place for. Each function may be called repeatedly."""

from __future__ import annotations

import functools
from typing import Any

import torch

# A torch.library fragment lives as long as a reference to it.
_fragments: list[torch.library.Library] = []


@functools.cache
def declare_torchvision_operators() -> None:
    """Let ``import torchvision`` succeed beside a CPU build of torch.

    The package index has torchvision with CUDA extensions only. Those do not load
    here, and its Python part then stops at two operators it cannot find.
    """
    fragment = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        # Where torch is a CUDA build the real extension defines them a moment later,
        # and two definitions clash: so declare them only if it cannot.
        if not torch.version.cuda:
            fragment.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _fragments.append(fragment)


def allow_draft_attention_backend(name: str) -> None:
    """Add ``name`` to the list of backends from which a DFLASH draft may take its own."""
    from sglang.srt.arg_groups import choices

    if name not in choices.DRAFT_ATTENTION_BACKEND_CHOICES:
        choices.add_draft_attention_backend_choices([name])


@functools.cache
def ignore_streams_of_cpu_tensors() -> None:
    """Make ``Tensor.record_stream`` do nothing for CPU tensors, which know no streams."""
    record_stream = torch.Tensor.record_stream

    def record_device_stream(tensor: torch.Tensor, stream: Any) -> None:
        if tensor.device.type != "cpu":
            record_stream(tensor, stream)

    torch.Tensor.record_stream = record_device_stream  # type: ignore[method-assign,assignment]


def gather_by_gloo() -> None:
    """Take SGLang's CPU branch for collectives between the ranks of TP > 1.

    The other branch goes through operators that an out-of-tree platform gets for
    torch's private device type only.
    """
    from sglang.srt.distributed import parallel_state

    parallel_state._is_cpu = True


def use_absorbed_mla(backend: str) -> None:
    """Let MLA models attend in the latent space under ``backend``.

    Without a handler of its own ``backend`` gets Triton's, which expands the cache to
    full heads and stops in the first request on a shape that torch cannot multiply.
    """
    from sglang.srt.models.deepseek_common import attention_backend_handler as handlers

    handlers.AttentionBackendRegistry.register(backend, handlers._dispatch_mla_subtype)


@functools.cache
def attend_to_token_blocks() -> None:
    """Teach the torch_native backend the blocks of speculative decoding.

    A batch that drafts or verifies adds the same number of tokens to every request; its
    ``seq_lens`` are the lengths before the block. Each token of the block is handed to the
    backend's decoding as if it were a request of its own, of the length that it may see.
    """
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
    from sglang.srt.layers.radix_attention import AttentionType

    forward_extend = TorchNativeAttnBackend.forward_extend

    def forward_extend_or_block(
        self: Any, q: torch.Tensor, k: Any, v: Any, layer: Any, batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        if batch.extend_seq_lens is not None and not batch.forward_mode.is_target_verify():
            return forward_extend(self, q, k, v, layer, batch, save_kv_cache)
        requests, before = batch.req_pool_indices, batch.seq_lens
        block = q.shape[0] // requests.shape[0]
        sees_whole_block = layer.attn_type == AttentionType.ENCODER_ONLY
        visible = torch.full((block,), block) if sees_whole_block else torch.arange(1, block + 1)
        batch.req_pool_indices = requests.repeat_interleave(block)
        batch.seq_lens = (before[:, None] + visible).flatten()
        try:
            return self.forward_decode(q, k, v, layer, batch, save_kv_cache)
        finally:
            batch.req_pool_indices, batch.seq_lens = requests, before

    TorchNativeAttnBackend.forward_extend = forward_extend_or_block  # type: ignore[method-assign]


def use_portable_rope(model: torch.nn.Module) -> None:
    """Send a DFLASH draft through SGLang's portable norm and rope.

    Its fused Triton kernel runs in the interpreter too, but once per token and head:
    a prompt of thousands of tokens would take minutes.
    """
    for module in model.modules():
        if getattr(module, "use_table_qk_norm_rope", False):
            module.use_table_qk_norm_rope = False  # type: ignore[assignment]
