#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_info
short_description: Completeness, fingerprint and weight memory of a checkpoint
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads the index and the headers of a directory of safetensors files, never a tensor, so that a checkpoint of half a terabyte
    takes as long as its headers.
  - Says what is missing, cut or still being fetched, and how much memory a rank will take to hold the weights.
  - An incomplete checkpoint is returned with its RV(checkpoint.problems), not failed. A directory without any checkpoint fails.
  - All memory is GiB (2^30 bytes) per rank, as SGLang's log prints it under the name GB.
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  path:
    description: Directory of the model on the host, or the path of its C(config.json).
    type: path
    required: true
  tp_size:
    description: SGLang's C(--tp-size). The ranks of one attention have to divide the attention heads.
    type: int
    default: 1
  pp_size:
    description: SGLang's C(--pp-size), no more than the model has layers.
    type: int
    default: 1
  dp_size:
    description: SGLang's C(--dp-size). It changes the weights of a rank under O(enable_dp_attention) only.
    type: int
    default: 1
  ep_size:
    description: SGLang's C(--ep-size).
    type: int
    default: 1
  enable_dp_attention:
    description: SGLang's C(--enable-dp-attention).
    type: bool
    default: false
  enable_dp_lm_head:
    description: SGLang's C(--enable-dp-lm-head).
    type: bool
    default: false
  moe_dense_tp_size:
    description: SGLang's C(--moe-dense-tp-size), which has to divide O(tp_size); by default the dense layers are shared by all ranks.
    type: int
  draft:
    description:
      - The weights are those of a draft. It holds an embedding and a head until it is given those of its target,
        which is after the pools are sized.
      - A checkpoint with the layers of its target too is as a draft only the next-token layers behind them.
    type: bool
    default: false
  platform:
    description: What SGLang runs on, where it is known; it narrows the error of some quantised checkpoints.
    type: str
    choices: [cuda, rocm]
  sglang_version:
    description: Version of SGLang, where it is known; it narrows the error of NVFP4 checkpoints.
    type: str
notes:
  - The estimate is that of NVIDIA and AMD cards. Other accelerators keep some weights in layouts of their own.
  - Quantisation that SGLang does itself while it loads (C(--quantization) on a checkpoint that has none) is not in the files
    and not in the estimate.
"""

EXAMPLES = r"""
- name: Look at the checkpoint
  inferops.sglang.checkpoint_info:
    path: /srv/models/kimi-k2.6
    tp_size: 8
    platform: cuda
  register: model

- name: Go on only with every byte of it
  ansible.builtin.assert:
    that: model.checkpoint.complete
    fail_msg: "{{ model.checkpoint.problems | join('; ') }}"

- name: The same files as on the host where they were accepted
  ansible.builtin.assert:
    that: model.checkpoint.fingerprint == accepted_fingerprint
"""

RETURN = r"""
checkpoint:
  description: The checkpoint.
  returned: success
  type: dict
  contains:
    complete:
      description: Is every byte there that the index and the headers promise?
      type: bool
    problems:
      description:
        - What is missing, cut, unfinished, in two files, or not what a loader of safetensors reads.
        - The first 20, then how many more there are.
      type: list
      elements: str
    files:
      description: The files that SGLang loads; with those that are missing, of many the first 20.
      type: list
      elements: str
    tensors:
      description: Number of tensors in the files that could be read.
      type: int
    total_gib:
      description: Size of these tensors in GiB.
      type: float
    fingerprint:
      description:
        - SHA-256 over names and headers of the files. A copy has the same one, whatever its times;
          other names, shapes or types have another. Of an incomplete checkpoint it is that of what is there.
      type: str
    quantization:
      description: Method that C(config.json) names; empty where it names none.
      type: str
    dtypes:
      description: Size in GiB by stored type, the largest first.
      type: dict
    weights_gib:
      description: Weight memory of the heaviest rank in GiB, as the driver counts it after loading; none where it cannot be told.
      type: float
    weights_error_gib:
      description: How far off RV(checkpoint.weights_gib) may be.
      type: float
    reasons:
      description: What the error is made of, the largest part first, or why there is no estimate.
      type: list
      elements: str
  sample:
    complete: true
    problems: []
    files: [model-00001-of-00002.safetensors, model-00002-of-00002.safetensors]
    tensors: 291
    total_gib: 14.958
    fingerprint: 8d3f0f4c6c0e1c3a8f0d9c3f7b6f0f3b4c4f1f0e4b0d2a9e8c7b6a5f4e3d2c1b
    quantization: ''
    dtypes: {BF16: 14.958}
    weights_gib: 15.021
    weights_error_gib: 0.1
    reasons: ["+-0.10 GiB: the driver's own while weights load"]
"""

from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import (
    GIB,
    Checkpoint,
    Weights,
    model_config,
    model_directory,
    read_checkpoint,
)
from ansible_collections.inferops.sglang.plugins.module_utils._config import Config, InputError
from ansible_collections.inferops.sglang.plugins.module_utils._eras import parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._weights import Layout, quantisation_name, rank_weights

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "tp_size": {"type": "int", "default": 1},
    "pp_size": {"type": "int", "default": 1},
    "dp_size": {"type": "int", "default": 1},
    "ep_size": {"type": "int", "default": 1},
    "enable_dp_attention": {"type": "bool", "default": False},
    "enable_dp_lm_head": {"type": "bool", "default": False},
    "moe_dense_tp_size": {"type": "int"},
    "draft": {"type": "bool", "default": False},
    "platform": {"type": "str", "choices": ["cuda", "rocm"]},
    "sglang_version": {"type": "str"},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        checkpoint = describe(module.params)
    except InputError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, checkpoint=checkpoint)


def describe(params: dict[str, Any]) -> dict[str, Any]:
    """The module's arguments as its result; raises InputError."""
    layout = _layout(params)
    checkpoint = read_checkpoint(model_directory(params["path"]))
    config, missing = _config(params["path"])
    weights, reasons = _weights(checkpoint, config, missing, layout, params["draft"])
    return {
        "complete": checkpoint.complete,
        "problems": list(checkpoint.problems),
        "files": list(checkpoint.files),
        "tensors": len(checkpoint.tensors),
        "total_gib": round(checkpoint.total_bytes / GIB, 3),
        "fingerprint": checkpoint.fingerprint,
        "quantization": quantisation_name(config),
        "dtypes": {dtype: round(size / GIB, 3) for dtype, size in checkpoint.bytes_by_dtype().items()},
        "weights_gib": None if weights is None else round(weights.gib, 3),
        "weights_error_gib": None if weights is None else round(weights.error_gib, 3),
        "reasons": reasons,
    }


def _layout(params: dict[str, Any]) -> Layout:
    tp_size, dp_size = params["tp_size"], params["dp_size"] if params["enable_dp_attention"] else 1
    if dp_size < 1 or tp_size % dp_size:
        raise InputError(f"dp_size {dp_size} with enable_dp_attention", f"tp_size {tp_size}", "give a dp_size that divides tp_size")
    version = params["sglang_version"]
    return Layout(
        tp_size=tp_size,
        pp_size=params["pp_size"],
        ep_size=params["ep_size"],
        attention_ranks=tp_size // dp_size,
        dp_lm_head=params["enable_dp_lm_head"],
        moe_dense_tp_size=params["moe_dense_tp_size"],
        platform=params["platform"] or "",
        release=parse_version(version).release if version else None,
    )


def _config(path: str) -> tuple[Config, str]:
    """config.json, or why there is none: a checkpoint can be looked at without, but not be spread over ranks."""
    try:
        return model_config(path), ""
    except InputError as error:
        return {}, str(error)


def _weights(checkpoint: Checkpoint, config: Config, missing: str, layout: Layout, is_draft: bool) -> tuple[Optional[Weights], list[str]]:
    if missing:
        return None, [f"No estimate of the weights: {missing}"]
    if not checkpoint.complete:
        return None, ["No estimate of the weights: the checkpoint is incomplete"]
    weights = rank_weights(checkpoint, config, layout, is_draft)
    return weights, list(weights.reasons)


if __name__ == "__main__":
    main()
