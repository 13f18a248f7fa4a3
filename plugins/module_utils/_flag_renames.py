# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What took the place of flags that SGLang dropped. Private to this collection: may change at any time.

From the words of the deprecated actions in the parsers of 0.4.6 to 0.5.23, and from what the next release registers in their place.
"""

from __future__ import annotations

# Flag that is gone, or on its way out: the names that took its place, newest first. The first that a release knows is named.
RENAMED: dict[str, tuple[str, ...]] = {
    "cuda-graph-bs": ("cuda-graph-bs-decode",),
    "cuda-graph-max-bs": ("cuda-graph-max-bs-decode",),
    "dsa-prefill-cp-mode": ("cp-strategy",),
    "enable-deepep-waterfill": ("enable-waterfill",),
    "enable-dsa-prefill-context-parallel": ("enable-prefill-cp",),
    "enable-gdn-replayssm-spec": ("enable-linear-replayssm-spec",),
    "enable-nsa-prefill-context-parallel": ("enable-prefill-cp", "enable-dsa-prefill-context-parallel"),
    "enable-prefill-context-parallel": ("enable-prefill-cp",),
    "grpc-mode": ("smg-grpc-mode",),
    "hybrid-kvcache-ratio": ("swa-full-tokens-ratio",),
    "kt-amx-method": ("kt-method",),
    "kt-amx-weight-path": ("kt-weight-path",),
    "mamba-scheduler-strategy": ("mamba-radix-cache-strategy",),
    "max-micro-batch-size": ("pp-max-micro-batch-size",),
    "multi-item-scoring-delimiter": ("enable-mis",),
    "nsa-decode": ("dsa-decode-backend", "nsa-decode-backend"),
    "nsa-decode-backend": ("dsa-decode-backend",),
    "nsa-prefill": ("dsa-prefill-backend", "nsa-prefill-backend"),
    "nsa-prefill-backend": ("dsa-prefill-backend",),
    "nsa-prefill-cp-mode": ("cp-strategy", "dsa-prefill-cp-mode"),
    "oltp-traces-endpoint": ("otlp-traces-endpoint",),
    "optimistic-prefill-retries": ("optimistic-prefill-attempts",),
    "piecewise-cuda-graph-compiler": ("cuda-graph-tc-compiler",),
    "piecewise-cuda-graph-max-tokens": ("cuda-graph-max-bs-prefill",),
    "piecewise-cuda-graph-tokens": ("cuda-graph-bs-prefill",),
    "prefill-cp-mode": ("cp-strategy",),
    "speculative-dflash-draft-window-size": ("speculative-draft-window-size",),
    "stream-output": ("incremental-streaming-output",),
}
# Flag that is gone, or on its way out: what to write instead where that is more than another name.
INSTEAD: dict[str, str] = {
    "collect-tokens-histogram": "leave it out: --enable-metrics collects it",
    "disable-cuda-graph": "use --cuda-graph-backend-decode disabled and --cuda-graph-backend-prefill disabled",
    "disable-fast-image-processor": "use --image-processor-backend pil",
    "disable-piecewise-cuda-graph": "use --cuda-graph-backend-prefill disabled",
    "disaggregation-decode-dp": "leave it out: the two sides tell each other",
    "disaggregation-decode-tp": "leave it out: the two sides tell each other",
    "disaggregation-prefill-pp": "leave it out: the two sides tell each other",
    "elastic-ep-rejoin": "use --elastic-ep-join-mode recover",
    "enable-beta-spec": "set SGLANG_ENABLE_SPEC_V2=1 in the environment up to 0.5.10; from 0.5.11 on it is the default",
    "enable-breakable-cuda-graph": "use --cuda-graph-backend-prefill breakable",
    "enable-deepep-moe": "use --moe-a2a-backend deepep",
    "enable-dp-attention": "use --attn-dp-size with the number of groups, and no --dp-size",
    "enable-ep-moe": "give --ep-size the value of --tp-size",
    "enable-expert-distribution-metrics": "use --expert-balancedness-report-mode",
    "enable-flashinfer-allreduce-fusion": "use --flashinfer-allreduce-fusion-backend auto",
    "enable-flashinfer-autotune": "leave it out: it is the default, and --disable-flashinfer-autotune turns it off",
    "enable-flashinfer-cutedsl-moe": "use --moe-runner-backend flashinfer_cutedsl",
    "enable-flashinfer-cutlass-moe": "use --moe-runner-backend flashinfer_cutlass",
    "enable-flashinfer-mla": "use --attention-backend flashinfer",
    "enable-flashinfer-mxfp4-moe": "use --moe-runner-backend flashinfer_mxfp4",
    "enable-flashinfer-trtllm-moe": "use --moe-runner-backend flashinfer_trtllm",
    "enable-flashmla": "use --attention-backend flashmla",
    "enable-nan-detection": "set SGLANG_SPEC_NAN_DETECTION=1 in the environment",
    "enable-piecewise-cuda-graph": "leave it out: it is the default",
    "enable-triton-kernel-moe": "use --moe-runner-backend triton_kernel",
    "enforce-piecewise-cuda-graph": "use --cuda-graph-backend-prefill tc_piecewise",
    "keep-mm-feature-on-device": "use --mm-feature-transport cuda_ipc",
    "monokernel-backend": "use --enable-amd-monokernel",
}
