# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a checkpoint's quantisation ask for an FP8 KV cache, and in which form? Private to this collection.

The releases learned to read these forms one after the other, so the form is kept by name (see auto_fp8 in _eras).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._config import Config, optional_count


def fp8_form(config: Config) -> Optional[str]:
    """The form in which a checkpoint's quantisation asks for an FP8 KV cache; None if it does not.

    Forms: ``modelopt_fp4``, ``modelopt_fp8`` and ``modelopt_mixed`` (nested, or by ``kv_cache_scheme``), the same with
    ``_flat`` at the end (by ``kv_cache_quant_algo`` beside ``quant_algo``), ``fp8`` and ``compressed_tensors``.
    """
    quant = config.get("quantization_config")
    if not isinstance(quant, Mapping):
        return None
    nested = quant.get("quantization")
    if isinstance(nested, Mapping):
        return _modelopt(nested) if _says_fp8(nested.get("kv_cache_quant_algo")) else None
    method, scheme = quant.get("quant_method"), quant.get("kv_cache_scheme")
    if method == "compressed-tensors":
        return "compressed_tensors" if _static_fp8(scheme) else None
    if quant.get("quant_algo") is None:
        return "fp8" if method in ("fp8", "mxfp8") and _says_fp8(quant.get("kv_cache_quant_algo")) else None
    if isinstance(scheme, Mapping):
        return _modelopt(quant) if _is_fp8(scheme) else None
    return f"{_modelopt(quant)}_flat" if _says_fp8(quant.get("kv_cache_quant_algo")) else None


def _modelopt(quant: Mapping[str, object]) -> str:
    algorithm = str(quant.get("quant_algo") or "")
    if algorithm == "MIXED_PRECISION":
        return "modelopt_mixed"
    return "modelopt_fp4" if "FP4" in algorithm else "modelopt_fp8"


def _says_fp8(value: object) -> bool:
    return isinstance(value, str) and value.upper() == "FP8"


def _is_fp8(scheme: Mapping[str, object]) -> bool:
    return scheme.get("type") == "float" and optional_count(scheme, "num_bits") == 8


def _static_fp8(scheme: object) -> bool:
    """One scale for the whole tensor, found before serving: all that SGLang can read."""
    return (
        isinstance(scheme, Mapping)
        and _is_fp8(scheme)
        and scheme.get("strategy") == "tensor"
        and bool(scheme.get("symmetric", True))
        and not scheme.get("dynamic", False)
    )
