# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inert modules in the place of everything that SGLang imports and a machine without a GPU does not have.

Nothing of them takes part in sizing. An object of such a module answers every attribute, call, index and operator with
another one, is false and empty, and may be a base class or a decorator.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

# Packages that may be missing; one that is installed is always preferred.
PACKAGES = frozenset(
    (
        "IPython", "PIL", "aiohttp", "anthropic", "apache_tvm_ffi", "av", "blobfile", "cachetools", "compressed_tensors", "cuda",
        "cutlass", "datasets", "decord", "deep_ep", "deep_gemm", "dill", "einops", "fastapi", "flashinfer", "gguf", "humming",
        "interegular", "kernels", "llguidance", "mistral_common", "modelscope", "multipart", "ninja", "numba", "openai",
        "openai_harmony", "orjson", "outlines", "partial_json_parser", "prometheus_client", "pybase64", "pynvml", "python_multipart",
        "quack", "requests", "scipy", "sentencepiece", "setproctitle", "sgl_kernel", "smg_grpc_servicer", "soundfile", "starlette",
        "tiktoken", "tilelang", "timm", "torch_memory_saver", "torchao", "torchaudio", "torchvision", "triton", "tvm_ffi", "uvicorn",
        "uvloop", "vllm", "watchfiles", "xgrammar", "xxhash", "zmq", "zstandard",
    )
)  # fmt: skip

# What the releases read from the environment while they are imported or sized.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    # contexts longer than the model's own are a case like any other
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
}


class _InertType(type):
    """The type of inert objects, which are classes themselves so that they can be inherited from."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return inert(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("_inherited"):
            return type.__call__(cls, *args, **kwargs)
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], _InertType):
            return args[0]  # used as a decorator
        return inert(cls.__name__)

    def _self(cls, *_args: Any) -> Any:
        return cls

    def _false(cls, *_args: Any) -> bool:
        return False

    def _zero(cls) -> int:
        return 0

    __or__ = __ror__ = __getitem__ = __enter__ = __mul__ = __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = _self
    __truediv__ = __floordiv__ = __and__ = _self
    __lt__ = __gt__ = __le__ = __ge__ = __bool__ = __exit__ = _false
    __len__ = __int__ = _zero

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


def inert(name: str) -> Any:
    """A new inert object."""

    def init_subclass(cls: Any, **_kwargs: Any) -> None:
        cls._inherited = True

    def schema(_cls: Any, _source: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    body = {
        "__init__": lambda _self, *_args, **_kwargs: None,
        "__init_subclass__": classmethod(init_subclass),
        "__get_pydantic_core_schema__": classmethod(schema),
    }
    return _InertType(name, (), body)


class _InertModule(types.ModuleType):
    __path__: ClassVar[list[str]] = []
    __version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        found = inert(name)
        setattr(self, name, found)
        return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: asked only for what is not installed."""

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> Any:
        if name.partition(".")[0] in PACKAGES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _InertModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> None:
    """Make the releases importable in this process; to be called before the first import of SGLang."""
    warnings.filterwarnings("ignore")
    os.environ.update(ENVIRONMENT)
    sys.meta_path.append(_Finder())
    _triton()
    _torch()
    _transformers()


def _triton() -> None:
    """Kernels stay plain functions; the driver, which is asked for the card while modules load, names none."""
    import triton
    import triton.runtime.driver
    import triton.runtime.jit

    def jit(function: Any = None, **_options: Any) -> Any:
        def keep(kernel: Any) -> Any:
            kernel.fn, kernel.arg_names, kernel.params = kernel, [], []
            return kernel

        return keep if function is None else keep(function)

    target = types.SimpleNamespace(backend="cpu", arch=90, warp_size=32)
    active = types.SimpleNamespace(get_current_target=lambda: target, get_current_device=lambda: 0)
    driver: Any = types.SimpleNamespace(active=active)
    triton.jit = jit
    triton.JITFunction = triton.runtime.JITFunction = triton.runtime.jit.JITFunction = types.FunctionType
    triton.runtime.driver = sys.modules["triton.runtime.driver"] = driver


def _torch() -> None:
    """No compiling, and a device module for ``meta``, on which the pools are allocated without memory."""
    import torch

    def compile_(function: Any = None, *_args: Any, **_kwargs: Any) -> Any:
        return function if callable(function) else (lambda other: other)

    torch.compile = compile_
    if not hasattr(torch._C._cpu, "_is_amx_tile_supported"):
        torch._C._cpu._is_amx_tile_supported = lambda: False

    def nothing(*_args: Any, **_kwargs: Any) -> None:
        return None

    def first(*_args: Any, **_kwargs: Any) -> int:
        return 0

    real: Callable[..., Any] = torch.get_device_module
    # some model classes ask for the card while they are imported; it is the one whose backends the cases have
    torch.cuda.get_device_capability = lambda *_args: (9, 0)
    torch.zeros, torch.empty = _on_meta(torch.zeros), _on_meta(torch.empty)
    meta = types.SimpleNamespace(
        Stream=nothing, Event=nothing, current_stream=nothing, set_device=nothing, empty_cache=nothing, synchronize=nothing,
        current_device=first, device_count=lambda: 1, stream=lambda *_args: contextlib.nullcontext(),
    )
    torch.meta = meta
    torch.get_device_module = lambda device=None: meta if str(device).startswith("meta") else real(device)


def _on_meta(make: Callable[..., Any]) -> Callable[..., Any]:
    """Some pools name the card in the place of their device."""

    def made(*args: Any, **kwargs: Any) -> Any:
        on_card = str(kwargs.get("device")).startswith("cuda")
        return make(*args, **{**kwargs, **({"device": "meta"} if on_card else {})})

    return made


def _transformers() -> None:
    """Old releases register configurations that the installed Transformers already has."""
    from transformers import PreTrainedConfig
    from transformers.models.auto import configuration_auto

    mapping = configuration_auto._LazyConfigMapping
    register = mapping.register

    def replace(self: Any, key: Any, value: Any, exist_ok: bool = False) -> Any:  # noqa: ARG001
        return register(self, key, value, exist_ok=True)

    mapping.register = replace
    _keep_inherited_constructors(PreTrainedConfig)
    _keep_figures_of_gemma4()
    # and read the figures of all layers off a model whose layers differ, as Transformers of their time had them
    PreTrainedConfig.allow_global_per_layer_attribute_access = True


def _keep_inherited_constructors(base: Any) -> None:
    """Transformers gives every configuration class a constructor now, also where a release means it to inherit its own."""
    prepare = base.__init_subclass__.__func__

    def keep(cls: Any, *args: Any, **kwargs: Any) -> None:
        inherited = None if "__init__" in vars(cls) else cls.__init__
        prepare(cls, *args, **kwargs)
        if inherited is not None and inherited.__module__.startswith("sglang."):
            cls.__init__ = inherited

    base.__init_subclass__ = classmethod(keep)


def _keep_figures_of_gemma4() -> None:
    """Transformers moves the figures of its full layers into every layer now; releases before 0.5.22 look for them here."""
    from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig

    construct = Gemma4TextConfig.__init__

    def keep(self: Any, *args: Any, **figures: Any) -> None:
        construct(self, *args, **figures)
        for name in ("num_global_key_value_heads", "global_head_dim"):
            if name in figures and not hasattr(self, name):
                setattr(self, name, figures[name])

    Gemma4TextConfig.__init__ = keep
