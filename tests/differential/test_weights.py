# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes of a rank's parameters against those of SGLang's own model classes.

Releases before 0.5.4 build other classes where a GPU's kernels are missing, and those from 0.5.16 on want their process
groups published as one: both are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import Checkpoint, Tensor
from ansible_collections.inferops.sglang.plugins.module_utils._weights import Layout, rank_bytes
from differential import sources
from differential.weights_oracle import LAYOUTS, MODELS
from support.checkpoints import nbytes

TESTS = Path(__file__).resolve().parents[1]
RELEASES = ("0.5.9", "0.5.12.post1")


def answers(release: str, path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [str(sources.environment()), "-m", "differential.weights_oracle", str(sources.source(release)), str(path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


# What SGLang keeps in fp32, and Transformers' classes make here in the model's type
WIDE = ("e_score_correction_bias", "_proj_bias")
# Classes of these releases that do not follow DP attention: they are not made for it, so there is nothing to compare.
WITHOUT_DP_ATTENTION = ("llama", "llama, tied", "qwen2")


def checkpoint(tensors: list[tuple[str, list[int]]]) -> Checkpoint:
    types = [(name, "F32" if name.endswith(WIDE) else "BF16", tuple(shape)) for name, shape in tensors]
    found = tuple(Tensor(name, dtype, shape, nbytes(dtype, shape)) for name, dtype, shape in types)
    return Checkpoint("/m", ("model.safetensors",), found, (), "")


def comparable(model: str, layout: list[int]) -> bool:
    tp_size, _ep_size, attention_ranks = layout
    return attention_ranks == tp_size or model not in WITHOUT_DP_ATTENTION


def ours(model: dict[str, Any], layout: list[int]) -> float:
    tp_size, ep_size, attention_ranks = layout
    spread = Layout(tp_size=tp_size, ep_size=ep_size, attention_ranks=attention_ranks, platform="cuda")
    return rank_bytes(checkpoint(model["tensors"]), model["config"], spread)


@pytest.mark.parametrize("release", RELEASES)
def test_the_parameters_of_a_rank_are_those_of_sglang(release: str, tmp_path: Path) -> None:
    """To the byte: every model, every layout; the halves of kv_b_proj are what loading adds."""
    found = answers(release, tmp_path / "answers")
    cases = [case for case in found["counts"] if comparable(case["model"], case["layout"])]
    compared = [(case, ours(found["models"][case["model"]], case["layout"])) for case in cases]
    different = {
        f"{case['model']} {case['layout']}": (mine, case["bytes"] + case["latent_bytes"])
        for case, mine in compared
        if mine != case["bytes"] + case["latent_bytes"]
    }
    assert different == {}
    assert len(compared) == len(MODELS) * len(LAYOUTS) - 2 * len(WITHOUT_DP_ATTENTION)
