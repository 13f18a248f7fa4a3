# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The architectures whose KV cache this collection can size, and those it refuses, by the names in config.json.

Private to this collection: may change at any time. SGLang picks the attention of a model by the name of its architecture,
so this table does too. The families are explained where they are read (_model_geometry) and sized (_cells).
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._config import Release


@dataclass(frozen=True)
class Row:
    family: str
    since: Release = (0, 4, 6)
    is_draft: bool = False


# SGLang takes no window from these classes: they are sized as full attention even where layer_types names one.
_MHA = (
    "ArceeForCausalLM",
    "BaichuanForCausalLM",
    "CohereForCausalLM",
    "Ernie4_5_ForCausalLM",
    "Ernie4_5_MoeForCausalLM",
    "ExaoneForCausalLM",
    "GemmaForCausalLM",
    "Glm4ForCausalLM",
    "Glm4MoeForCausalLM",
    "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration",
    "GraniteForCausalLM",
    "GraniteMoeForCausalLM",
    "InternLM2ForCausalLM",
    "InternLM3ForCausalLM",
    "LlamaForCausalLM",
    "MiMoForCausalLM",
    "MiniCPMForCausalLM",
    "Mistral3ForConditionalGeneration",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "OlmoForCausalLM",
    "OlmoeForCausalLM",
    "OrionForCausalLM",
    "Phi3ForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen2MoeForCausalLM",
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "SolarForCausalLM",
    "StableLmForCausalLM",
    "Starcoder2ForCausalLM",
)
_MHA_DRAFTS = (
    "LlamaForCausalLMEagle",
    "LlamaForCausalLMEagle3",
    "MistralForCausalLMEagle",
    "Qwen2ForCausalLMEagle",
)
_MLA = (
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV3ForCausalLMNextN",
    "KimiVLForConditionalGeneration",
    "MiniCPM3ForCausalLM",
)

ARCHITECTURES: dict[str, Row] = {
    **{name: Row("mha") for name in (*_MHA, *_MHA_DRAFTS)},
    **{name: Row("mla") for name in _MLA},
    "Glm4MoeLiteForCausalLM": Row("mla", (0, 5, 9)),
    "KimiK25ForConditionalGeneration": Row("mla", (0, 5, 9)),
    "Eagle3DeepseekV2ForCausalLM": Row("mla", (0, 5, 11)),
    "DeepseekV32ForCausalLM": Row("dsa", (0, 5, 3)),
    "GlmMoeDsaForCausalLM": Row("dsa", (0, 5, 9)),
    "GptOssForCausalLM": Row("swa", (0, 5, 1)),
    "DFlashDraftModel": Row("mha", (0, 5, 11), is_draft=True),
}

# Beginnings of architecture names that have no closed form here, with what stands in its way.
UNSIZED = {
    "Afmoe": "hybrid sliding-window attention",
    "BailingMoe": "hybrid linear attention",
    "Cohere2": "hybrid sliding-window attention",
    "DeciLM": "KV heads that differ from layer to layer",
    "DeepseekV4": "the compressed attention of DeepSeek-V4",
    "Exaone4": "hybrid sliding-window attention",
    "Falcon": "Mamba states beside the KV cache",
    "Gemma2": "hybrid sliding-window attention",
    "Gemma3": "hybrid sliding-window attention",
    "Gemma4": "hybrid sliding-window attention",
    "Glm5": "hybrid linear attention",
    "GraniteMoeHybrid": "Mamba states beside the KV cache",
    "Jet": "hybrid linear attention",
    "KimiK3": "hybrid linear attention",
    "KimiLinear": "hybrid linear attention",
    "Lfm2": "convolution states beside the KV cache",
    "Llama4": "hybrid chunked attention",
    "LongcatFlash": "two attentions in one layer",
    "MiMoV2": "hybrid sliding-window attention",
    "MiniMax": "the attention of MiniMax",
    "NemotronH": "Mamba states beside the KV cache",
    "Olmo2": "hybrid sliding-window attention",
    "Qwen3Next": "linear-attention states beside the KV cache",
    "Qwen3_5": "linear-attention states beside the KV cache",
    "Step3p5": "hybrid sliding-window attention",
}
