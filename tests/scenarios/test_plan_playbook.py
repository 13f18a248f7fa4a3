# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook plan_k26, run as a reader runs it: no inventory, no host, no GPU; the table, and one clear message for wrong input."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import write_checkpoint
from support.host import ROOT

CONFIGS = ROOT / "tests/unit/fixtures/configs"
# the card of the derived cases
CARD = {"sglang_gpu_free_gib": 94.0, "sglang_weights_gib": 72.3, "sglang_draft_weights_gib": 1.312}
ROW = re.compile(r"\s*([\d,]+)  (\w+) +([\d.]+|-) +([\d,]+) +[\d,]+ +(-?[\d.]+)  (fits|tight|refused)(?:: (.*))?$")


@dataclass
class Row:
    fraction: str
    tokens: int
    left: float
    verdict: str
    advice: str


@dataclass
class Answer:
    code: int
    text: str

    @property
    def rows(self) -> dict[tuple[int, str], Row]:
        found = [match.groups() for match in map(ROW.match, self.text.splitlines()) if match]
        return {
            (number(context), dtype): Row(fraction, number(tokens), float(left), verdict, advice or "")
            for context, dtype, fraction, tokens, left, verdict, advice in found
        }

    def fractions(self) -> dict[tuple[int, str], str]:
        return {key: row.fraction for key, row in self.rows.items()}


def number(text: str) -> int:
    return int(text.replace(",", ""))


def run(argv: list[str], cwd: Path = ROOT, **environment: str) -> Answer:
    variables = {
        **os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"), "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml", "ANSIBLE_PIPELINING": "true", **environment,
    }
    done = subprocess.run(argv, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return Answer(done.returncode, done.stdout + done.stderr)


def plan(values: dict[str, Any] | None = None, cwd: Path = ROOT, **environment: str) -> Answer:
    return run(["ansible-playbook", "inferops.sglang.plan_k26", "-e", json.dumps(values or {})], cwd, **environment)


def test_the_table_that_needs_nothing() -> None:
    answer = run(["make", "plan"])
    assert answer.code == 0, answer.text
    assert "changed=0" in answer.text
    rows = answer.rows
    # 1 - (93.73 - 72.40 - tokens * 77,184 (fp8: 38,592) / 2**30) / 93.73, rounded up
    assert answer.fractions() == {
        (65536, "bf16"): "0.8227", (65536, "fp8_e4m3"): "0.7976",
        (131072, "bf16"): "0.8730", (131072, "fp8_e4m3"): "0.8227",
        (200000, "bf16"): "0.9259", (200000, "fp8_e4m3"): "0.8492",
        (262144, "bf16"): "0.9735", (262144, "fp8_e4m3"): "0.8730",
    }  # fmt: skip
    # 0.0001 of the card are 130 tokens of bf16 and 261 of fp8
    assert [key for key, row in rows.items() if not 0 <= row.tokens - key[0] <= 261] == []
    assert [key for key, row in rows.items() if row.verdict == "refused"] == [(262144, "bf16")]
    refused = rows[262144, "bf16"]
    # 93.73 - 72.40 - 1.31 of the draft, less 262,177 tokens of 70,272 + 3,072 bytes, less a table of 9 * 262,156 * 4 bytes
    assert refused.left == pytest.approx(2.10, abs=0.01)
    assert refused.advice == "kv_cache_dtype=fp8_e4m3 fits at 0.8730, 11.05 GiB left"
    for part in (
        "Kimi K2.6 with its DFlash draft, SGLang 0.5.12.post1, DFLASH, TP 8",
        "Estimated: 93.73 GiB free before the weights",
        "rules of SGLang 0.5.11-0.5.13 every rank is charged for a token 77,184 bytes in bf16 (73,344 stored), "
        "38,592 bytes in fp8_e4m3 (36,672 stored)",
        "The longest context that leaves 5 GiB in bf16: ",
        "The pool may turn out up to ",
        "Running requests never enter the pool",
        "8 batch sizes up to 8 x 8 tokens",
        "rules of SGLang 0.5.14-0.5.17 200,000 tokens in bf16 need 0.9398",
        "rules of SGLang 0.5.18-0.5.23 200,000 tokens in bf16 need 0.9333",
        "inferops.sglang.deploy_k26 -e sglang_context_length=200000",
    ):
        assert part in answer.text


# release; fractions of 200,000 tokens in bf16 and fp8, then of 262,144
ERAS = [
    ("0.5.12.post1", ["0.9221", "0.8457", "0.9697", "0.8694"]),
    ("0.5.17", ["0.9361", "0.8596", "0.9836", "0.8834"]),
    ("0.5.23", ["0.9295", "0.8569", "0.9747", "0.8794"]),
]


@pytest.mark.parametrize(("version", "fractions"), ERAS)
def test_the_three_eras_differ(version: str, fractions: list[str]) -> None:
    answer = plan({**CARD, "sglang_version": version, "sglang_plan_contexts": [200000, 262144]})
    assert answer.code == 0, answer.text
    assert list(answer.fractions().values()) == fractions
    rows = answer.rows
    assert [rows[200000, kv].left for kv in ("bf16", "fp8_e4m3")] == pytest.approx([6.73, 13.56], abs=0.03)
    assert rows[262144, "bf16"].left == pytest.approx(2.48, abs=0.03)
    assert rows[262144, "bf16"].verdict == "refused"
    assert f"fits at {fractions[3]}, 11.4" in rows[262144, "bf16"].advice


def test_a_larger_card_and_what_other_releases_need() -> None:
    answer = plan({**CARD, "sglang_gpu_free_gib": 139.8, "sglang_context_length": 262144, "sglang_kv_cache_dtype": "bf16"})
    assert list(answer.rows) == [(262144, "bf16")]
    assert answer.rows[262144, "bf16"].fraction == "0.6520"
    assert answer.rows[262144, "bf16"].left == pytest.approx(48.28, abs=0.03)
    assert "0.5.14-0.5.17 262,144 tokens in bf16 need 0.6614" in answer.text
    assert "0.5.18-0.5.23 262,144 tokens in bf16 need 0.6554" in answer.text


def test_lines_also_where_results_are_json() -> None:
    answer = plan({"sglang_plan_contexts": "131072,200000", "sglang_plan_kv_cache_dtypes": "bf16"}, ANSIBLE_CALLBACK_RESULT_FORMAT="json")
    lines = [json.loads(line.strip().rstrip(",")) for line in answer.text.splitlines() if line.startswith('        "')]
    rows = Answer(answer.code, "\n".join(lines)).fractions()
    assert rows == {(131072, "bf16"): "0.8730", (200000, "bf16"): "0.9259"}


def test_without_the_draft() -> None:
    """70,272 bytes a token: 1 - (21.33 - 200,000 * 70,272 / 2**30) / 93.73"""
    answer = plan({"sglang_speculative_algorithm": "", "sglang_plan_kv_cache_dtypes": "bf16"})
    assert answer.rows[200000, "bf16"].fraction == "0.9121"
    assert "draft" not in answer.text
    assert "By the rules of SGLang 0.5.18" not in answer.text


def test_the_config_json_of_another_model() -> None:
    """Qwen3-32B on two cards: 64 layers * 4 heads * 2 * 128 * 2 bytes; 1 - (78.5 - 31 - 40,960 * 131,072 / 2**30) / 78.5"""
    values = {"sglang_model": str(CONFIGS / "qwen3-32b.json"), "sglang_version": "0.5.23", "sglang_tp_size": 2}
    answer = plan({**values, "sglang_weights_gib": 31, "sglang_gpu_free_gib": 78.5})
    assert answer.code == 0, answer.text
    assert list(answer.rows) == [(context, kv) for context in (10240, 20480, 40960) for kv in ("auto", "fp8_e4m3")]
    assert answer.rows[40960, "auto"].fraction == "0.4586"
    assert "131,072 bytes in auto" in answer.text
    assert "Kimi" not in answer.text.split("Show the plan")[1]


def test_a_checkpoint_on_this_machine(tmp_path: Path) -> None:
    """4 GiB in 16 rows-parallel matrices over two ranks: 2 GiB on each, and what the model has beside its files."""
    config = json.loads((CONFIGS / "llama-3.1-8b.json").read_text(encoding="utf-8"))
    tensors = {f"model.layers.{layer}.mlp.down_proj.weight": ("BF16", (4096, 32768)) for layer in range(16)}
    write_checkpoint(tmp_path / "llama", tensors, shards=2, config=config)
    values = {"sglang_model": "llama", "sglang_version": "0.5.23", "sglang_tp_size": 2, "sglang_gpu_free_gib": 22.9}
    answer = plan(values, cwd=tmp_path)
    assert answer.code == 0, answer.text
    weights = float(re.findall(r"\(([\d.]+) GiB of weights\)", answer.text)[0])
    assert weights == pytest.approx(2.0, abs=0.1)
    # 32 layers * 4 heads * 2 * 128 * 2 bytes = 65,536
    assert float(answer.rows[131072, "auto"].fraction) == pytest.approx(1 - (22.9 - weights - 131072 * 65536 / 2**30) / 22.9, abs=0.0002)


def test_the_quantisation_that_lies_beside_the_config(tmp_path: Path) -> None:
    """A checkpoint that asks for an FP8 cache: of 131,072 bytes a token 65,536 are left, on one card."""
    (tmp_path / "config.json").write_text((CONFIGS / "llama-3.1-8b.json").read_text(encoding="utf-8"), encoding="utf-8")
    quantisation = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quantisation), encoding="utf-8")
    values = {"sglang_model": str(tmp_path), "sglang_version": "0.5.23", "sglang_weights_gib": 8.5, "sglang_gpu_free_gib": 78.5}
    answer = plan({**values, "sglang_kv_cache_dtype": "auto"})
    assert answer.code == 0, answer.text
    assert "65,536 bytes in auto" in answer.text


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"sglang_tp_size": 7, "sglang_weights_gib": 83}, ["spreads KimiK25ForConditionalGeneration over 7 ranks", "64 attention heads"]),
    ({"sglang_tp_size": 4}, ["72.4 GiB a rank that hold for TP 8 only", "sglang_weights_gib"]),
    ({"sglang_contxt_length": 200000}, ["sglang_contxt_length", "look at the spelling"]),
    ({"sglang_context_length": "much"}, ["asked for contexts much", "whole numbers"]),
    ({"sglang_context_length": 0}, ["asked for contexts 0", "whole numbers"]),
    ({"sglang_plan_contexts": "200,000"}, ["found 200, 000", "without separators"]),
    ({"sglang_pool_target": 4000, "sglang_mem_fraction_static": 0.9}, ["sglang_mem_fraction_static, sglang_pool_target", "memory_plan"]),
    ({"sglang_kv_cache_dtype": "fp9"}, ["fp9", "fp8_e4m3"]),
    ({"sglang_version": "0.5.9"}, ["DFLASH", "use SGLang 0.5.11"]),
    ({"sglang_version": "nightly"}, ["'nightly'", "such as 0.5.12.post1"]),
    ({"sglang_model": "/srv/none"}, ["/srv/none", "fetch it first"]),
    ({"sglang_model": str(CONFIGS / "qwen3-32b.json")}, ["gpu_free_gib"]),
    ({"sglang_model": "{unknown}", **CARD}, ["NoSuchModelForCausalLM"]),
    ({"sglang_model": "{broken}", **CARD}, ["config.json", "Expecting"]),
]


@pytest.mark.parametrize(("values", "parts"), WRONG)
def test_wrong_input_gives_one_clear_message(values: dict[str, Any], parts: list[str], tmp_path: Path) -> None:
    for name, content in (("unknown", '{"architectures": ["NoSuchModelForCausalLM"]}'), ("broken", "{")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content, encoding="utf-8")
    paths = {"{unknown}": str(tmp_path / "unknown"), "{broken}": str(tmp_path / "broken")}
    answer = plan({key: paths.get(value, value) for key, value in values.items()})
    assert answer.code == 2
    errors = [line for line in answer.text.splitlines() if line.startswith("[ERROR]")]
    assert len(errors) == 1
    assert [part for part in parts if part not in errors[0]] == []
    assert answer.rows == {}


def test_where_nothing_fits() -> None:
    answer = plan({"sglang_context_length": 262144, "sglang_kv_cache_dtype": "bf16"})
    assert answer.code == 2
    assert answer.rows[262144, "bf16"].verdict == "refused"
    assert "Nothing of what was asked fits" in answer.text
    assert "Next:" not in answer.text
