# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The architectures whose KV cache this collection can size, and those it refuses, by the names in config.json.

Private to this collection: may change at any time. SGLang picks the attention of a model by the name of its architecture,
so this table does too. The families are explained where they are read (_model_geometry) and sized (_cells). A release is
the first in which the name was seen, of those that were inspected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.inferops.sglang.plugins.module_utils._config import Release
from ansible_collections.inferops.sglang.plugins.module_utils._states import HYBRIDS


@dataclass(frozen=True)
class Row:
    family: str
    since: Release = (0, 4, 6)
    is_draft: bool = False


# K and V heads, every layer with every token: SGLang sizes them so even where layer_types names windows.
_MHA: dict[Release, tuple[str, ...]] = {
    (0, 4, 6): (
        "BaichuanForCausalLM",
        "ChatGLMModel",
        "Cohere2ForCausalLM",
        "CohereForCausalLM",
        "DbrxForCausalLM",
        "DeepseekForCausalLM",
        "ExaoneForCausalLM",
        "GPT2LMHeadModel",
        "GPTBigCodeForCausalLM",
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "Gemma3ForConditionalGeneration",
        "GemmaForCausalLM",
        "GraniteForCausalLM",
        "Grok1ForCausalLM",
        "Grok1ModelForCausalLM",
        "InternLM2ForCausalLM",
        "InternLM3ForCausalLM",
        "InternVLChatModel",
        "Llama4ForCausalLM",
        "LlamaForCausalLM",
        "LlamaForCausalLMEagle",
        "LlamaForCausalLMEagle3",
        "LlavaForConditionalGeneration",
        "LlavaLlamaForCausalLM",
        "LlavaMistralForCausalLM",
        "LlavaQwenForCausalLM",
        "LlavaVidForCausalLM",
        "MiMoForCausalLM",
        "MiniCPMForCausalLM",
        "MiniCPMO",
        "MiniCPMV",
        "Mistral3ForConditionalGeneration",
        "MistralForCausalLM",
        "MixtralForCausalLM",
        "MultiModalityCausalLM",
        "Olmo2ForCausalLM",
        "OlmoForCausalLM",
        "OlmoeForCausalLM",
        "Phi3ForCausalLM",
        "Phi3SmallForCausalLM",
        "QWenLMHeadModel",
        "QuantMixtralForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen2ForCausalLMEagle",
        "Qwen2MoeForCausalLM",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "StableLmForCausalLM",
        "TorchNativeLlamaForCausalLM",
        "TorchNativePhi3ForCausalLM",
        "XverseForCausalLM",
        "XverseMoeForCausalLM",
        "YiVLForCausalLM",
    ),
    (0, 4, 9): (
        "Gemma3nForCausalLM",
        "Gemma3nForConditionalGeneration",
        "Glm4ForCausalLM",
        "Glm4MoeForCausalLM",
        "GraniteMoeForCausalLM",
        "HunYuanDenseV1ForCausalLM",
        "HunYuanMoEV1ForCausalLM",
        "InternS1ForConditionalGeneration",
        "PersimmonForCausalLM",
        "Phi4MMForCausalLM",
        "PhiForCausalLM",
        "PhiMoEForCausalLM",
        "Qwen2AudioForConditionalGeneration",
        "VILAForConditionalGeneration",
    ),
    (0, 5, 1): (
        "ArceeForCausalLM",
        "BailingMoeForCausalLM",
        "DeciLMForCausalLM",
        "Ernie4_5_ForCausalLM",
        "Ernie4_5_MoeForCausalLM",
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "Step3VLForConditionalGeneration",
    ),
    (0, 5, 2): (
        "OPTForCausalLM",
    ),
    (0, 5, 3): (
        "ApertusForCausalLM",
        "BailingMoEForCausalLM",
        "BailingMoeV2ForCausalLM",
        "DotsOCRForCausalLM",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
        "Sarashina2VisionForCausalLM",
        "SolarForCausalLM",
        "Starcoder2ForCausalLM",
    ),
    (0, 5, 4): (
        "DeepseekOCRForCausalLM",
        "MiniMaxM2ForCausalLM",
        "NVILAForConditionalGeneration",
        "NVILALiteForConditionalGeneration",
        "POINTSV15ChatModel",
        "Qwen3OmniMoeForConditionalGeneration",
    ),
    (0, 5, 5): (
        "OrionForCausalLM",
        "TeleFLMForCausalLM",
    ),
    (0, 5, 6): (
        "LLaDA2MoeModelLM",
        "Ministral3ForCausalLM",
        "PaddleOCRVLForConditionalGeneration",
    ),
    (0, 5, 7): (
        "GlmAsrForConditionalGeneration",
        "MiDashengLMModel",
    ),
    (0, 5, 8): (
        "AfmoeForCausalLM",
        "IQuestCoderForCausalLM",
    ),
    (0, 5, 9): (
        "Ernie4_5_VLMoeForConditionalGeneration",
        "Exaone4ForCausalLM",
        "ExaoneMoEForCausalLM",
        "GPTJForCausalLM",
        "GlmOcrForConditionalGeneration",
        "InternS1ProForConditionalGeneration",
        "LightOnOCRForConditionalGeneration",
        "SDARForCausalLM",
        "SDARMoeForCausalLM",
        "StepVLForConditionalGeneration",
    ),
    (0, 5, 10): (
        "SarvamMoEForCausalLM",
    ),
    (0, 5, 11): (
        "HYV3ForCausalLM",
        "MistralForCausalLMEagle",
        "Qwen3ASRForConditionalGeneration",
        "VoxtralForConditionalGeneration",
    ),
    (0, 5, 13): (
        "Cohere2MoeForCausalLM",
        "Cohere2VisionForConditionalGeneration",
    ),
    (0, 5, 14): (
        "MiMoV2ASRForCausalLM",
    ),
    (0, 5, 15): (
        "LocateAnythingForConditionalGeneration",
    ),
    (0, 5, 19): (
        "GraniteMoeSharedForCausalLM",
    ),
    (0, 5, 21): (
        "BailingMM2NativeForConditionalGeneration",
        "BailingMMNativeForConditionalGeneration",
    ),
    (0, 5, 22): (
        "ExaoneMoeForCausalLM",
    ),
}
# One latent vector for all heads.
_MLA: dict[Release, tuple[str, ...]] = {
    (0, 4, 6): (
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV3ForCausalLMNextN",
        "KimiVLForConditionalGeneration",
        "MiniCPM3ForCausalLM",
    ),
    (0, 5, 2): (
        "LongcatFlashForCausalLM",
    ),
    (0, 5, 3): (
        "DotsVLMForCausalLM",
    ),
    (0, 5, 6): (
        "MistralLarge3ForCausalLM",
        "MistralLarge3ForCausalLMEagle",
    ),
    (0, 5, 8): (
        "Glm4MoeLiteForCausalLM",
    ),
    (0, 5, 9): (
        "KimiK25ForConditionalGeneration",
    ),
    (0, 5, 10): (
        "SarvamMLAForCausalLM",
    ),
    (0, 5, 12): (
        "Eagle3DeepseekV2ForCausalLM",
    ),
}
# K and V heads or a latent vector, as the configuration has it.
_EITHER: dict[Release, tuple[str, ...]] = {
    (0, 4, 6): (
        "DeepseekVL2ForCausalLM",
    ),
    (0, 5, 6): (
        "PixtralForConditionalGeneration",
    ),
}
# Two pools from some release on, one before: _sliding_window knows which.
_SWA: dict[Release, tuple[str, ...]] = {
    (0, 4, 6): (
        "Llama4ForConditionalGeneration",
    ),
    (0, 5, 1): (
        "GptOssForCausalLM",
    ),
    (0, 5, 7): (
        "MiMoV2FlashForCausalLM",
    ),
    (0, 5, 9): (
        "Step3p5ForCausalLM",
    ),
    (0, 5, 11): (
        "Gemma4ForConditionalGeneration",
        "MiMoV2ForCausalLM",
    ),
    (0, 5, 12): (
        "LagunaForCausalLM",
    ),
    (0, 5, 13): (
        "Gemma4UnifiedForConditionalGeneration",
        "Step3p7ForConditionalGeneration",
    ),
    (0, 5, 15): (
        "UnlimitedOCRForCausalLM",
    ),
    (0, 5, 16): (
        "MellumForCausalLM",
    ),
    (0, 5, 18): (
        "MuseGlimmerForCausalLM",
        "MuseGlimmerForConditionalGeneration",
    ),
    (0, 5, 19): (
        "GraniteMoeSWAForCausalLM",
        "GraniteSWAForCausalLM",
        "Spark2_5ForCausalLM",
    ),
    (0, 5, 21): (
        "DiffusionGemmaForBlockDiffusion",
    ),
    (0, 5, 23): (
        "BeamForCausalLM",
        "MuseSparkForConditionalGeneration",
    ),
}


def _rows(family: str, names: dict[Release, tuple[str, ...]]) -> Iterator[tuple[str, Row]]:
    for since, group in names.items():
        for name in group:
            yield name, Row(family, since)


ARCHITECTURES: dict[str, Row] = {
    **dict(_rows("mha", _MHA)),
    **dict(_rows("mla", _MLA)),
    **dict(_rows("either", _EITHER)),
    **dict(_rows("swa", _SWA)),
    # layers with a KV cache beside layers with a state of fixed size
    **{name: Row(hybrid.family, hybrid.since) for name, hybrid in HYBRIDS.items()},
    "DeepseekV32ForCausalLM": Row("dsa", (0, 5, 3, 2)),
    "GlmMoeDsaForCausalLM": Row("dsa", (0, 5, 9)),
    "DeepseekV4ForCausalLM": Row("compressed", (0, 5, 12)),
    "MiniMaxM3SparseForCausalLM": Row("minimax_sparse", (0, 5, 16)),
    "MiniMaxM3SparseForConditionalGeneration": Row("minimax_sparse", (0, 5, 16)),
    "DFlashDraftModel": Row("mha", (0, 5, 11), is_draft=True),
    "Qwen3DSparkModel": Row("mha", (0, 5, 16), is_draft=True),
    "DSparkDraftModel": Row("mha", (0, 5, 18), is_draft=True),
}

# What SGLang takes for multimodal by its name, beside every model whose language model has a configuration of its own.
MULTIMODAL = frozenset(
    (
        "DotsOCRForCausalLM",
        "DotsVLMForCausalLM",
        "Ernie4_5_VLMoeForConditionalGeneration",
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "LlavaLlamaForCausalLM",
        "LlavaMistralForCausalLM",
        "LlavaQwenForCausalLM",
        "LlavaVidForCausalLM",
        "MiDashengLMModel",
        "MiMoV2ASRForCausalLM",
        "MiniCPMO",
        "MiniCPMV",
        "MuseGlimmerForConditionalGeneration",
        "PaddleOCRVLForConditionalGeneration",
        "Phi4MMForCausalLM",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "UnlimitedOCRForCausalLM",
    )
)
# These serve text alone unless they are told otherwise.
TEXT_ONLY = frozenset(("Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Step3VLForConditionalGeneration"))

_NO_TEXT = "a model that embeds, ranks or classifies and generates no text"
_ANY_MODEL = "a wrapper around any model, whose attention its name does not tell"
_DRAFT = "a draft whose pool was compared with no release"

# Beginnings of architecture names that have no closed form here, with what stands in its way.
UNSIZED = {
    "BailingMoe": "hybrid linear attention",
    "Bert": _NO_TEXT,
    "CLIP": _NO_TEXT,
    "Contriever": _NO_TEXT,
    "Cosmos3": "a checkpoint in several parts",
    "DFlash": _DRAFT,
    "DSpark": _DRAFT,
    "DeepseekV4": "a draft of DeepSeek-V4, which is planned through its target",
    "Dots3": "latent attention with windows",
    "EmbeddingGemma": _NO_TEXT,
    "Ernie4_5_MoeForCausalLMMTP": _DRAFT,
    "ExaoneMoEForCausalLMMTP": _DRAFT,
    "Falcon": "Mamba states and no KV cache",
    "Gemma2ForSequenceClassification": _NO_TEXT,
    "Gemma4": "a part of Gemma 4, whose heads SGLang reads from the whole checkpoint",
    "GigaChat35": _DRAFT,
    "Glm4Moe": _DRAFT,
    "Glm5": _DRAFT,
    "GlmImage": "a model of images",
    "GlmMoeDsa": _DRAFT,
    "GlmOcr": _DRAFT,
    "GraniteMoeHybrid": "Mamba states beside the KV cache",
    "HYV3": _DRAFT,
    "HYV4": "sparse attention over several streams",
    "HrmText": "layers that are run more than once",
    "IQuestLoopCoder": "layers that are run more than once",
    "IQuestQ1": "windows in blocks of layers",
    "Inkling": "convolution states beside two pools",
    "InternLM2ForRewardModel": _NO_TEXT,
    "K2Horizon": "attention with a mixture of values",
    "KimiK3": _DRAFT,
    "Lfm2Bidirectional": _NO_TEXT,
    "Lfm2DSpark": _DRAFT,
    "LiLiCorr": _DRAFT,
    "LingDSpark": _DRAFT,
    "LlamaEmbedding": _NO_TEXT,
    "LlamaForClassification": _NO_TEXT,
    "LlamaForSequenceClassification": _NO_TEXT,
    "LongcatFlashForCausalLMNextN": _DRAFT,
    "Mamba": "Mamba states and no KV cache",
    "MiMoMTP": _DRAFT,
    "MiMoV2MTP": _DRAFT,
    "MindSpore": _ANY_MODEL,
    "MiniMaxDFlash2": _DRAFT,
    "MiniMax": "an attention of MiniMax that no release was compared with",
    "MistralModel": _NO_TEXT,
    "Mllama": "an encoder beside the decoder",
    "MossVL": "an encoder beside the decoder",
    "MuseGlimmerAssistant": _DRAFT,
    "Nanbeige": "layers that are run more than once",
    "NemotronH": _DRAFT,
    "PixtralVision": _NO_TEXT,
    "Qwen2ForRewardModel": _NO_TEXT,
    "Qwen2ForSequenceClassification": _NO_TEXT,
    "Qwen3DSpark": _DRAFT,
    "Qwen3ForRewardModel": _NO_TEXT,
    "Qwen3ForSequenceClassification": _NO_TEXT,
    "Qwen3Model": _NO_TEXT,
    "Qwen3MoeForCausalLMMTP": _DRAFT,
    "Qwen3Next": _DRAFT,
    "Qwen3_5": _DRAFT,
    "Qwen4Exp": _DRAFT,
    "Step3p5MTP": _DRAFT,
    "Transformers": _ANY_MODEL,
    "Whisper": "an encoder beside the decoder",
    "XLMRoberta": _NO_TEXT,
    "Xllm": "attention with a mixture of values",
}
