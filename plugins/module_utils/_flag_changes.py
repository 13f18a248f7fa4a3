# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How SGLang says that it does otherwise than its flags ask. Private to this collection: may change at any time.

The words of 0.4.6 to 0.5.23, each from the start of a message. Not in here: what SGLang chooses where a flag was left out, and what
it says about variables of its environment and about choices that only change the speed of one kernel.
"""

from __future__ import annotations

_SIZES = (
    r"max_total_tokens=\d{1,18} is larger than the profiled value",
    r"max_running_requests (?:was reduced|is capped)\b|Max running requests is reset to\b",
    r"Post-capture KV sizing: max_running_requests \d{1,9} -> |SWA ring: swa_max_total_num_tokens \d{1,18} -> ",
    r"KV pool holds \d{1,18} tokens, fewer than --context-length\b",
    r"Automatically (?:reduce|turn off?) --|Multimodal model: Dynamically adjusted --",
    r"DP attention is enabled\. (?:The )?chunked prefill size is adjusted\b",
    r"\w[\w ]{0,80} (?:is enabled\. The expert parallel size is adjusted\b|with radix cache requires page_size=)",
    r"speculative_\w{1,40} (?:is (?:adjusted|set) to\b|disabled:)|Reset swa_full_tokens_ratio to\b|Cuda graph bs is set to\b",
    r"Setting (?:KV cache dtype|page[ _]size|mem fraction static|max_running_requests|swa_full_tokens_ratio|(?:NSA|DSA) backend)(?: to |=)",
    r"Setting (?:sliding_window_size to|cuda_graph_config)\b|Use \w{1,40} attention backend for [\w-]{1,80}, setting page_size to\b",
    r"WARNING: The page size \d{1,9} should not\b",
    r"Enabled? (?:Context Parallel opt for|DSA [Cc]ontext [Pp]arallel)\b|DWDP enabled: dwdp_size=",
)
_INSTEAD = (
    r"Overriding (?:--|the draft model's|draft attention backend)|Fallback load_format to\b|KV cache is forced as\b|Forcing --",
    r"--[\w-]{1,60}(?:=[\w.]{1,40})?(?: falls back to| is ignored| is set to False| is not supported on|: disabling|: setting)\b",
    r"(?:Attention|Sampling) backend is (?:set|overridden) to\b|(?:moe_a2a_backend|disable_shared_experts_fusion) is overridden to\b",
    r"FlashAttention3 (?:only supports fp8_e4m3|decode backend is not)|mxfp8 quantization (?:supports only|forces)\b",
    r"(?:DFLASH|DSpark) only (?:supports|enables)\b|DFLASH (?:draft worker|fa4 draft: overriding)\b|UNO uses \w{1,40}=1; overriding\b",
    r"tokenspeed_mla required\b|Detected \w{1,80} draft; promoting\b|SM100 mixed NVFP4 speculative decoding routes\b",
    r"Kimi-K3 DCP \w|Kimi hybrid model: ignoring\b|GptOssForCausalLM on Intel XPU currently\b",
    r"MiniMax-M3(?: on \w{1,20}: attention_backend=|: [\w ]{1,100}; overriding\b)",
    r"(?:Mooncake[\w/ ]{0,30} storage backend|Kernel io backend) does not support\b|Page first layout is not supported\b",
)
_OFF = (
    r"Disabl(?:e|ing) (?:hybrid SWA memory|[Rr]adix [Cc]ache|overlap schedule|chunked prefix cache|--[\w-]{1,60})\b",
    # unless the flags asked for it
    r"Disabl(?:e|ing) (?:[\w-]{1,30} ){0,3}(?:CUDA|cuda) graph\b(?! because (?:--disable|disable_cuda_graph is|cuda_graph_config res))",
    r"(?:(?:The )?[Oo]verlap schedule|(?:The )?[Mm]ixed chunk|(?:Cuda|CUDA|Piecewise cuda) graph)[\w, ]{0,60} (?:is|are) disabled\b",
    r"(?:Radix cache|Chunked prefill|Hierarchical cache|Pipeline parallelism|Mamba extra_buffer)[\w, ]{0,60} (?:is|are) disabled\b",
    r"(?:Breakable|Full prefill|Prefill) CUDA graph (?:\([\w-]{1,30}\) )?is incompatible with\b|\w[\w ]{0,80} model detected, disable\b",
    r"XPU platform (?:does not|(?:currently )?only) support|Speculative decoding for \w{1,80} is not compatible with radix cache\b",
    r"EmbeddingGemma detected: disabling\b|expert_pack selected: CUDA graph\b|HRM-Text \(prefix_lm\) detected: forcing\b",
)
CHANGES = "|".join((*_SIZES, *_INSTEAD, *_OFF))
