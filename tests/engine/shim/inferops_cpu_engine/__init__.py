# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An SGLang platform plugin that lets the unmodified server run without a GPU.

It is found through SGLang's own ``sglang.srt.platforms`` entry point as soon as it is
installed: no environment variable, no import hook, no change to SGLang's files.

Real, that is SGLang's own code: argument parsing, process tree, weight loading, the
measurement of free memory, pool sizing and the KV pools themselves, scheduler, radix
cache, tokenizer, HTTP server, model code, the DFLASH worker, and every log line.

Not real, that is decided here or missing:

* attention is SGLang's slow ``torch_native`` backend; there are no CUDA graphs, no NCCL
  (gloo instead), no FlashInfer and no quantized kernels; MoE layers were not tried;
* Triton's interpreter runs the few Triton kernels that are called;
* "GPU memory" is the RAM of the host (or what its cgroup leaves of it), and the start
  waits until it stands still before SGLang takes its baseline (``calm``);
* DFLASH is allowed on a device that SGLang does not list for it, with an own look-up of
  cache rows (``platform``), and ``patches`` closes what has no place in the interface;
* two operators of torchvision are declared but not implemented (images are not served).
"""

from __future__ import annotations

import os


def activate() -> str:
    """The entry point: name the platform class that SGLang shall use in this process."""
    # Triton's kernels cannot be compiled for a CPU, but its interpreter runs them. The
    # variable counts when a kernel is defined, so the processes that run kernels must
    # inherit it: this is the parent's first chance to set it.
    os.environ.setdefault("TRITON_INTERPRET", "1")

    from . import patches

    patches.declare_torchvision_operators()
    return "inferops_cpu_engine.platform.CpuEnginePlatform"
