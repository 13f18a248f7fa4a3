# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every release has: its model configurations, its layer split, its pools; and a model that only describes itself."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import json
import os
import re
import types
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from differential.oracle.inputs import Inputs
from differential.oracle.settings import Group, Patches, Settings, defaults, settings_of


@dataclass
class Answer:
    """What the release said; bytes are of one rank, None is what it does not tell."""

    tokens: int
    swa_tokens: Optional[int] = None
    charged: Optional[float] = None
    target_bytes: Optional[int] = None
    draft_bytes: Optional[int] = None
    request_table_bytes: Optional[int] = None
    max_running_requests: Optional[int] = None
    mamba_slots: Optional[int] = None

    def plain(self) -> dict[str, Any]:
        return asdict(self)


class Collective:
    """The MIN over pipeline stages, which one process plays one after the other until nothing changes any more."""

    def __init__(self) -> None:
        self._least: dict[int, int] = {}
        self._call = 0
        self.changed = True

    def begin_round(self) -> None:
        self.changed = False

    def begin_stage(self) -> None:
        self._call = 0

    def all_reduce(self, tensor: Any, *_args: Any, **_kwargs: Any) -> None:
        mine, known = int(tensor.item()), self._least.get(self._call)
        least = mine if known is None else min(mine, known)
        self.changed = self.changed or least != known
        self._least[self._call] = least
        tensor.fill_(least)
        self._call += 1


class Release:
    """The imported release, with the answers it gets instead of a device and of process groups."""

    def __init__(self, source: Path) -> None:
        # before all else: releases before 0.4.9 can be imported in this order only
        importlib.import_module("sglang.srt.configs.model_config")
        self.source = source
        self.patches = Patches()
        self.defaults = defaults()
        self.cells: list[Optional[float]] = []
        self._quiet_pools()
        self._own_configurations()
        self._listen_for_cells()

    def has(self, module: str) -> bool:
        return importlib.util.find_spec(f"sglang.srt.{module}") is not None

    def use(self, inputs: Inputs, stage: int) -> Settings:
        """Answer from this case from now on, as this pipeline stage."""
        settings = settings_of(inputs, stage, self.defaults)
        self.patches.settings, self.patches.at_sizing_gib = settings, inputs.free_at_sizing_gib
        _state_type(getattr(settings, "mamba_ssm_dtype", None))
        self.patches.apply()
        self.cells.clear()
        return settings

    def model_config(self, path: str, inputs: Inputs, draft: bool = False) -> Any:
        """The release's own reading of a config.json."""
        from sglang.srt.configs.model_config import ModelConfig

        wanted = {
            "model_path": path,
            "model_override_args": "{}",
            "context_length": inputs.context_length,
            "dtype": "bfloat16",
            "is_draft_model": draft,
            "disable_hybrid_swa_memory": inputs.disable_hybrid_swa_memory,
            "speculative_algorithm": inputs.algorithm,
        }
        known = inspect.signature(ModelConfig.__init__).parameters
        config = ModelConfig(**{name: value for name, value in wanted.items() if name in known})
        _keep_layer_kinds(config, path)
        return config

    def layers(self, config: Any, inputs: Inputs, stage: int) -> tuple[int, int]:
        """First and last-plus-one layer of a pipeline stage, by the release's own split."""
        from sglang.srt.distributed.utils import get_pp_indices

        count = max(config.num_hidden_layers, getattr(config, "num_attention_layers", None) or 0)
        return get_pp_indices(count, stage, inputs.pp_size) if inputs.pp_size > 1 else (0, count)

    def stand_in(self, config: Any, inputs: Inputs, stage: int, draft: bool) -> Any:
        """In the place of the loaded model: what sizing asks one for, and no weights."""
        model = types.SimpleNamespace(quant_config=None, model=types.SimpleNamespace(layers=self._windowed_layers(config)))
        if not draft:
            model.start_layer, model.end_layer = self.layers(config, inputs, stage)
        window = self._window(config)
        if window is not _NO_METHOD:
            model.get_attention_sliding_window_size = lambda: window
        return model

    def _window(self, config: Any) -> Any:
        """The answer of the release's own model class to the question for its window, if it takes that question."""
        found = _class_with_window(self.source, config.hf_config.architectures[0])
        method = getattr(found, "get_attention_sliding_window_size", None)
        if method is None:
            return _NO_METHOD
        text = types.SimpleNamespace(get_attention_sliding_window_size=lambda: config.hf_text_config.sliding_window - 1)
        return method(types.SimpleNamespace(config=config.hf_config, language_model=text, _draft_window_size=None))

    def _windowed_layers(self, config: Any) -> list[Any]:
        kinds = getattr(config.hf_text_config, "layer_types", None) or [""] * config.num_hidden_layers
        window = getattr(config.hf_text_config, "sliding_window", None)
        return [_layer(index, window if "sliding" in str(kind) else -1) for index, kind in enumerate(kinds)]

    def stage_group(self, inputs: Inputs, stage: int) -> Group:
        return Group(inputs.pp_size, stage)

    def _quiet_pools(self) -> None:
        """What pools do on a device or with a loaded model when they are made, and what holds no memory."""
        for name in ("mem_cache.memory_pool", "layers.quantization.fp4_kv_cache_quant_method"):
            module = importlib.import_module(f"sglang.srt.{name}") if self.has(name) else None
            for kind in vars(module).values() if module else ():
                if isinstance(kind, type):
                    for step in _WARM_UPS & vars(kind).keys():
                        setattr(kind, step, lambda _self, *_args, **_kwargs: None)

    def _listen_for_cells(self) -> None:
        """Releases from 0.5.11 on have an object that knows the bytes a token is charged with; remember what it says."""
        if not self.has("model_executor.pool_configurator"):
            return
        from sglang.srt.model_executor import pool_configurator

        make = pool_configurator.create_memory_pool_configurator

        def told(runner: Any) -> Any:
            made = make(runner)
            self.cells.append(getattr(made, "_cell_size", None))
            return made

        pool_configurator.create_memory_pool_configurator = told

    def _own_configurations(self) -> None:
        """Configurations made out of server arguments by the release itself are read like those of the case."""
        from sglang.srt.configs.model_config import ModelConfig

        self.inputs: Optional[Inputs] = None

        def from_server_args(_arguments: Any, model_path: Optional[str] = None, is_draft_model: bool = False, **_rest: Any) -> Any:
            assert self.inputs is not None
            return self.model_config(model_path or self.inputs.model, self.inputs, is_draft_model)

        ModelConfig.from_server_args = staticmethod(from_server_args)


_NO_METHOD = object()
_WARM_UPS = {"_init_kv_copy_and_warmup", "_warmup_fused_copy_slot_kernel", "load_scales_from_model"}


def _state_type(name: Optional[str]) -> None:
    """The servers of the first hybrid models hand this argument to their configurations through the environment."""
    if name is None:
        os.environ.pop("SGLANG_MAMBA_SSM_DTYPE", None)
    else:
        os.environ["SGLANG_MAMBA_SSM_DTYPE"] = name


def _keep_layer_kinds(config: Any, path: str) -> None:
    """Transformers renames the kinds of a hybrid model's layers, which releases before 0.5.19 look for by their old names."""
    if type(config.hf_config).__name__ == "GraniteMoeHybridConfig":
        config.hf_config.layer_types = json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))["layer_types"]


@functools.cache
def _class_with_window(source: Path, architecture: str) -> Any:
    """The model class of an architecture; None where the release has none by that name with a window."""
    for path in sorted((source / "sglang/srt/models").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^class {architecture}\(", text, re.MULTILINE) and "get_attention_sliding_window_size" in text:
            return getattr(importlib.import_module(f"sglang.srt.models.{path.stem}"), architecture)
    return None


def _layer(index: int, window: int) -> Any:
    attention = types.SimpleNamespace(layer_id=index, sliding_window_size=window)
    return types.SimpleNamespace(layer_id=index, self_attn=types.SimpleNamespace(attn=attention))


def draft_layers(config: Any) -> int:
    """KV layers of a draft: the next-token layers of an MTP checkpoint, else all."""
    nextn = getattr(config, "num_nextn_predict_layers", None)
    return int(nextn) if nextn else int(config.num_hidden_layers)


def pool_bytes(pool: Any) -> Optional[int]:
    """Bytes of a KV pool, by its own account; None for a pool that gives none."""
    tell = getattr(pool, "get_kv_size_bytes", None)
    if tell is None:
        return None
    found = tell()
    return int(sum(found)) if isinstance(found, tuple) else int(found)


def table_bytes(pool: Any) -> int:
    table = pool.req_to_token
    return int(table.numel() * table.element_size())
