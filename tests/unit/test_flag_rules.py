# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _flag_table as table
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._flag_clashes import CLASHES
from ansible_collections.inferops.sglang.plugins.module_utils._flag_releases import spans_of, version_of
from ansible_collections.inferops.sglang.plugins.module_utils._flag_renames import INSTEAD, RENAMED
from ansible_collections.inferops.sglang.plugins.module_utils._flag_rules import flag_findings, flag_notes

DRAFT = {"speculative-draft-model-path": "/srv/draft"}
EAGLE = {"speculative-num-steps": 3, "speculative-eagle-topk": 1, "speculative-num-draft-tokens": 4}
TREE = {"speculative-num-steps": 3, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8}
# the flags of deploy_k26
K26 = {
    "model-path": "/srv/models/Kimi-K2.6", "host": "127.0.0.1", "port": 30000, "device": "cuda", "tp-size": 8, "context-length": 200000,
    "mem-fraction-static": "0.9259", "max-running-requests": 8, "speculative-algorithm": "DFLASH", **DRAFT,
    "speculative-num-draft-tokens": 8, "trust-remote-code": True, "tool-call-parser": "kimi_k2", "reasoning-parser": "kimi_k2",
}  # fmt: skip


@pytest.mark.parametrize("version", ["0.5.11", "0.5.12.post1", "0.5.16", "0.5.23"])
def test_the_flags_of_kimi_are_taken_by_every_release_with_dflash(version: str) -> None:
    assert flag_findings(version, K26, draft_block_size=8) == ()
    assert flag_notes(version, K26, draft_block_size=8) == ()


FLAGS: list[tuple[str, dict[str, Any], str]] = [
    (
        "0.5.11", {"speculative-draft-window-size": 4096},
        "flag_unknown: asked for --speculative-draft-window-size, found SGLang 0.5.11, which has it not; 0.5.12.post1 and newer have it; "
        "write --speculative-dflash-draft-window-size, its name there",
    ),
    (
        "0.5.9", {"speculative-draft-window-size": 4096},
        "flag_unknown: asked for --speculative-draft-window-size, found SGLang 0.5.9, which has it not; 0.5.12.post1 and newer have it; "
        "leave it out, or use SGLang 0.5.12.post1 or newer",
    ),
    (
        "0.5.20", {"speculative-dflash-draft-window-size": 4096},
        "flag_removed: asked for --speculative-dflash-draft-window-size, found SGLang 0.5.20, which has it not; 0.5.11 to 0.5.19 have it; "
        "write --speculative-draft-window-size, its name there",
    ),
    (
        "0.5.20", {"cuda-graph-bs": [1, 2]},
        "flag_removed: asked for --cuda-graph-bs, found SGLang 0.5.20, which has it not; 0.4.6.post5 to 0.5.19 have it; "
        "write --cuda-graph-bs-decode, its name there",
    ),
    (
        "0.5.13.post1", {"mamba-radix-cache-strategy": "extra_buffer"},
        "flag_unknown: asked for --mamba-radix-cache-strategy, found SGLang 0.5.13.post1, which has it not; 0.5.14 and newer have it; "
        "write --mamba-scheduler-strategy, its name there",
    ),
    (
        "0.5.4.post3", {"enable-ep-moe": True},
        "flag_removed: asked for --enable-ep-moe, found SGLang 0.5.4.post3, which has it not; 0.4.6.post5 to 0.5.3.post3 have it; "
        "give --ep-size the value of --tp-size",
    ),
    (
        "0.5.3", {"enable-ep-moe": True},
        "flag_removed: asked for --enable-ep-moe, found that SGLang 0.5.3 has it only to refuse it; give --ep-size the value of --tp-size",
    ),
    (
        "0.5.4.post3", {"crash-on-nan": "true"},
        "flag_removed: asked for --crash-on-nan, found SGLang 0.5.4.post3, which has it not; 0.5.3.post3 has it; leave it out",
    ),
    (
        "0.5.23", {"context-lenght": 4096},
        "flag_unknown: asked for --context-lenght, found no such flag in SGLang 0.5.23 nor in any other release; write --context-length",
    ),
    (
        "0.5.23", {"tp_size": 8},
        "flag_unknown: asked for --tp_size, found no such flag in SGLang 0.5.23 nor in any other release; write --tp-size",
    ),
    (
        "0.5.23", {"quux": 8},
        "flag_unknown: asked for --quux, found no such flag in SGLang 0.5.23 nor in any other release; leave it out",
    ),
    (
        "0.5.23", {"nccl": 8},
        "flag_unknown: asked for --nccl, found the start of nccl-init-addr, nccl-port in SGLang 0.5.23; write the flag out",
    ),
    (
        "0.5.3.post3", {"kv-cache-dtype": "bf16"},
        "flag_value: asked for --kv-cache-dtype bf16, found that SGLang 0.5.3.post3 knows auto, fp8_e4m3, fp8_e5m2; give one of these",
    ),
    (
        "0.5.21", {"kv-cache-dtype": "fp4_e2m1"},
        "flag_value: asked for --kv-cache-dtype fp4_e2m1, found that SGLang 0.5.21 knows auto, bf16, bfloat16, fp4_mx_block16, fp8_e4m3, "
        "fp8_e5m2, mxfp8, nvfp4; give one of these",
    ),
    (
        "0.5.23", {"log-requests-level": 4},
        "flag_value: asked for --log-requests-level 4, found that SGLang 0.5.23 knows 0, 1, 2, 3; give one of these",
    ),
    (
        "0.5.23", {"disable-radix-cache": "yes"},
        "flag_value: asked for --disable-radix-cache yes, found a switch of SGLang 0.5.23, which takes no value; "
        "give true, or leave it out",
    ),
    (
        "0.5.23", {"max-total-tokens": True},
        "flag_value: asked for --max-total-tokens alone, found a flag of SGLang 0.5.23 that needs a value; give one",
    ),
    (
        "0.5.23", {"tp-size": 8, "tensor-parallel-size": 4},
        "flag_twice: asked for --tp-size 8 and --tensor-parallel-size 4, found names of one argument, of which the last one wins; "
        "give one of them",
    ),
    (
        "0.5.10.post1", {"speculative-algorithm": "DFLASH"},
        "flag_value: asked for --speculative-algorithm DFLASH, found that SGLang 0.5.10.post1 knows EAGLE, EAGLE3, NEXTN, NGRAM, "
        "STANDALONE; give one of these",
    ),
    (
        "0.5.15.post1", {"speculative-algorithm": "DSPARK"},
        "speculative_algorithm: asked for --speculative-algorithm DSPARK, found that SGLang 0.5.15.post1 knows DFLASH, EAGLE, EAGLE3, "
        "FROZEN_KV_MTP, NEXTN, NGRAM, STANDALONE; give one of these",
    ),
    (
        "0.5.23", {"speculative-algorithm": "DDTREE", **DRAFT},
        "speculative_algorithm: asked for --speculative-algorithm DDTREE, found SGLang 0.5.23; no release up to 0.5.23 has it; "
        "install a branch that has it (sglang_git, sglang_wheel), or use DFLASH with the same draft",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "flags", "text"), FLAGS)
def test_a_flag_that_the_release_does_not_take(version: str, flags: dict[str, Any], text: str) -> None:
    assert [finding.text for finding in flag_findings(version, flags)] == [text]


TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("0.5.12.post1", {"speculative-dflash-draft-window-size": 4096}),
    ("0.5.12.post1", {"speculative-draft-window-size": 4096}),
    # between 0.5.11 and 0.5.12.post1, and so of either
    ("0.5.12", {"speculative-draft-window-size": 4096}),
    ("0.5.4", {"kv-cache-dtype": "bf16"}),
    ("0.5.4", {"nsa-decode": "fa3"}),
    # what argparse takes for the one flag that begins so
    ("0.5.9", {"context": 4096}),
    # leading dashes, and what leaves a flag out
    ("0.5.23", {"--context-length": 4096, "disable-radix-cache": False, "chat-template": "", "lora-paths": [], "revision": None}),
    ("0.5.23", {"stream-interval": 0, "lora-target-modules": ["q_proj", "all"], "disaggregation-mode": "null"}),
    # may stand alone in one release and has no value in another
    ("0.4.9.post6", {"hybrid-kvcache-ratio": 0.5}),
    # a version of a build, and of a branch whose flags may be others
    ("0.5.23+cpu", {"context-length": 4096}),
    ("0.5.24.dev3+gabcdef", {"no-such-flag": 1}),
    ("main", {"no-such-flag": 1}),
    ("0.6.0", {"no-such-flag": 1, "kv-cache-dtype": "fp2"}),
    ("0.4.1", {"no-such-flag": 1}),
]


@pytest.mark.parametrize(("version", "flags"), TAKEN)
def test_what_a_release_takes_or_may_take_is_no_finding(version: str, flags: dict[str, Any]) -> None:
    assert flag_findings(version, flags) == ()


def test_a_branch_may_know_more() -> None:
    flags = {"ddtree-budget": 64, "speculative-num-draft-tokens": 64, **DRAFT}
    assert flag_findings("0.5.12.post1", flags, "DDTREE", has_ddtree=True, draft_block_size=8) == ()
    assert flag_notes("0.5.12.post1", K26, has_ddtree=True, draft_block_size=8) == ()
    assert flag_notes("0.5.12.post1", flags, "DDTREE", has_ddtree=True, draft_block_size=8) == (
        "not checked, for the SGLang 0.5.12.post1 that is installed may be a branch: --ddtree-budget",
    )


# version, algorithm, flags, what is found and what to do
CLASHING: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("0.5.19", "EAGLE", {"pp-size": 2, **EAGLE}, "--pp-size 2", "use pp_size 1, or leave speculation out"),
    ("0.4.6.post5", "NEXTN", {"pipeline-parallel-size": 4}, "--pp-size 4", "use pp_size 1, or leave speculation out"),
    ("0.5.23", "DFLASH", {"pp-size": 2, **DRAFT}, "--pp-size 2", "use pp_size 1, or leave speculation out"),
    ("0.5.23", "DSPARK", {"pp-size": 2}, "--pp-size 2", "use pp_size 1, or leave speculation out"),
    (
        "0.5.14", "DFLASH", {"enable-dp-attention": True, "dp-size": 8, "tp-size": 8, **DRAFT}, "attention data parallelism over 8 groups",
        "leave attention data parallelism out, or speculation; 0.5.23 takes both with --enable-dp-lm-head",
    ),
    (
        "0.5.22", "DFLASH", {"attn-dp-size": 4, "enable-dp-lm-head": True, **DRAFT}, "attention data parallelism over 4 groups",
        "leave attention data parallelism out, or speculation; 0.5.23 takes both with --enable-dp-lm-head",
    ),
    (
        "0.5.23", "DFLASH", {"attn-dp-size": 4, **DRAFT}, "attention data parallelism over 4 groups without --enable-dp-lm-head",
        "add --enable-dp-lm-head",
    ),
    (
        "0.5.23", "DFLASH", {"attn-dp-size": 2, "enable-dp-lm-head": True, "attention-context-parallel-size": 2, **DRAFT},
        "attention data parallelism over 2 groups with --attn-cp-size 2", "use --attn-cp-size 1",
    ),
    (
        "0.5.18", "DSPARK", {"enable-dp-attention": True, "dp-size": 2},
        "attention data parallelism over 2 groups without --enable-dp-lm-head",
        "add --enable-dp-lm-head",
    ),
    (
        "0.5.18", "DSPARK", {"enable-dp-attention": True, "dp-size": 2, "enable-dp-lm-head": True, "attn-cp-size": 2},
        "attention data parallelism over 2 groups with --attn-cp-size 2", "use --attn-cp-size 1",
    ),
    (
        "0.5.2", "STANDALONE", {"enable-dp-attention": True, "dp-size": 2, **EAGLE}, "attention data parallelism over 2 groups",
        "leave attention data parallelism out, or speculation",
    ),
    (
        "0.5.9", "NGRAM", {"enable-dp-attention": True, "dp-size": 2}, "attention data parallelism over 2 groups",
        "leave attention data parallelism out, or speculation",
    ),
    ("0.5.11", "DFLASH", {}, "no --speculative-draft-model-path", "give the draft"),
    (
        "0.5.11", "DFLASH", {"speculative-dflash-draft-window-size": 4, "speculative-num-draft-tokens": 8, **DRAFT},
        "a window of 4 under 8 draft tokens", "give a window of at least the draft tokens",
    ),
    (
        "0.5.23", "DFLASH", {"speculative-draft-window-size": 0, **DRAFT}, "a window of 0 under 1 draft tokens",
        "give a window of at least the draft tokens",
    ),
    (
        "0.5.16", "DFLASH", {"speculative-dflash-block-size": 16, "speculative-num-draft-tokens": 8, **DRAFT},
        "8 draft tokens and --speculative-dflash-block-size 16", "give one of the two",
    ),
    (
        "0.5.9", "EAGLE3", {"speculative-num-draft-tokens": 4},
        "--speculative-eagle-topk or --speculative-num-draft-tokens without --speculative-num-steps",
        "give all three, or none and SGLang chooses",
    ),
    (
        "0.5.23", "EAGLE", {"speculative-num-steps": 3}, "--speculative-num-steps without --speculative-eagle-topk",
        "give all three, or none and SGLang chooses",
    ),
    (
        "0.5.5.post3", "EAGLE", {"page-size": 64, "attention-backend": "fa3", **TREE},
        "--speculative-eagle-topk 4 on pages with --attention-backend fa3", "use page_size 1 or --attention-backend flashinfer",
    ),
    (
        "0.5.12.post1", "EAGLE", {"page-size": 64, "attention-backend": "triton", **TREE},
        "--speculative-eagle-topk 4 on pages with --attention-backend triton", "use page_size 1, or flashinfer or fa3",
    ),
    (
        "0.5.23", "EAGLE3", {"page-size": 64, "attention-backend": "flashmla", **TREE},
        "--speculative-eagle-topk 4 on pages with --attention-backend flashmla", "use page_size 1, or flashinfer, fa3 or triton",
    ),
    (
        "0.5.3", "EAGLE", {"decode-attention-backend": "trtllm_mha", **TREE}, "--speculative-eagle-topk 4 with trtllm_mha",
        "use --speculative-eagle-topk 1",
    ),
    ("0.5.18", "EAGLE", {"enable-lora": True, **EAGLE}, "LoRA adapters", "leave the adapters out, or speculation"),
    ("0.5.23", "STANDALONE", {"lora-paths": ["/srv/a"], **EAGLE}, "LoRA adapters", "leave the adapters out, or speculation"),
    ("0.5.16", "DFLASH", {"device": "cpu", **DRAFT}, "--device cpu", "use --device cuda, or leave speculation out"),
    ("0.5.19", "DFLASH", {"device": "xpu", **DRAFT}, "--device xpu", "use --device cuda, or leave speculation out"),
    ("0.5.9", "NGRAM", {"device": "cpu"}, "--device cpu", "use --device cuda, or leave speculation out"),
    (
        "0.5.12.post1", "EAGLE3", {"speculative-skip-dp-mlp-sync": True, **EAGLE}, "--speculative-skip-dp-mlp-sync",
        "leave --speculative-skip-dp-mlp-sync out",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "algorithm", "flags", "found", "do"), CLASHING)
def test_flags_that_the_release_refuses_together(version: str, algorithm: str, flags: dict[str, Any], found: str, do: str) -> None:
    asked = f"flags_together: asked for --speculative-algorithm {algorithm}, found {found}, which SGLang {version} refuses; {do}"
    assert [finding.text for finding in flag_findings(version, flags, algorithm)] == [asked]


WITHOUT_SPECULATION = [
    (
        {"chunked-prefill-size": 1000, "page-size": 64},
        "flags_together: asked for chunks of whole pages, found --chunked-prefill-size 1000 on pages of 64, which SGLang 0.5.23 refuses; "
        "give a multiple of page_size, or -1",
    ),
    (
        {"speculative-draft-sink-size": 4},
        "flags_together: asked for --speculative-draft-sink-size, found no --speculative-draft-window-size, which SGLang 0.5.23 refuses; "
        "give both, or neither",
    ),
    (
        {"allow-auto-truncate": True},
        "auto_truncate: asked for --allow-auto-truncate, found that SGLang then cuts prompts that do not fit the pool, and answers as if "
        "nothing were missing; leave it out: the gate proves that the pool holds what is asked",
    ),
    (
        {"max-total-tokens": 100000},
        "max_total_tokens: asked for 200,000 tokens in the pool of every rank, found --max-total-tokens 100,000, which caps it; "
        "leave it out, or ask for less",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "text"), WITHOUT_SPECULATION)
def test_flags_that_hide_or_hurt(flags: dict[str, Any], text: str) -> None:
    assert [finding.text for finding in flag_findings("0.5.23", flags, required_tokens=200_000)] == [text]


def test_every_rule_is_provoked() -> None:
    provoked = {
        (clash.since, clash.last, clash.do)
        for version, algorithm, flags, _found, do in [*CLASHING, *(("0.5.23", "", flags, "", "") for flags, _text in WITHOUT_SPECULATION)]
        for clash in CLASHES
        if version_of(version).within(clash.since, clash.last) and (clash.do == do or (not algorithm and clash.asked))
    }
    assert {(clash.since, clash.last, clash.do) for clash in CLASHES} - provoked == set()


TOGETHER_FINE: list[tuple[str, str, dict[str, Any]]] = [
    ("0.5.20", "EAGLE", {"pp-size": 2, "disaggregation-mode": "prefill", **EAGLE}),
    ("0.5.23", "DSPARK", {"pp-size": 2, "disaggregation-mode": "prefill"}),
    ("0.5.23", "DFLASH", {"attn-dp-size": 4, "enable-dp-lm-head": True, **DRAFT}),
    # without groups the switch means nothing
    ("0.5.14", "DFLASH", {"enable-dp-attention": True, **DRAFT}),
    ("0.5.14", "EAGLE", {"enable-dp-attention": True, "dp-size": 8, **EAGLE}),
    ("0.5.23", "EAGLE", {}),
    ("0.5.23", "EAGLE", {"speculative-adaptive": True, "speculative-num-steps": 3}),
    # SGLang chooses the backend
    ("0.5.9", "EAGLE", {"page-size": 64, **TREE}),
    ("0.5.13.post1", "EAGLE", {"page-size": 64, "attention-backend": "triton", **TREE}),
    ("0.5.23", "DFLASH", {"enable-lora": True, **DRAFT}),
    ("0.5.4.post3", "EAGLE", {"enable-lora": True, **EAGLE}),
    ("0.5.18", "", {"enable-lora": True, "pp-size": 4}),
    # a platform of its own may bring it
    ("0.5.23", "DFLASH", {"device": "cpu", **DRAFT}),
    ("0.5.16", "NGRAM", {"device": "cpu"}),
    ("0.5.23", "", {"chunked-prefill-size": -1, "page-size": 64}),
    ("0.5.23", "", {"chunked-prefill-size": 8192, "page-size": 64, "max-total-tokens": 200000}),
]


@pytest.mark.parametrize(("version", "algorithm", "flags"), TOGETHER_FINE)
def test_flags_that_go_together(version: str, algorithm: str, flags: dict[str, Any]) -> None:
    assert flag_findings(version, flags, algorithm, required_tokens=200_000) == ()


def test_draft_tokens_are_held_against_the_block_of_the_draft() -> None:
    flags = {"speculative-num-draft-tokens": 16, **DRAFT}
    assert [finding.text for finding in flag_findings("0.5.23", flags, "DFLASH", draft_block_size=8)] == [
        "draft_block_size: asked for --speculative-num-draft-tokens 16, found a draft whose block_size is 8; give 8 or leave it out"
    ]
    assert flag_findings("0.5.23", flags, "DFLASH", draft_block_size=16) == ()
    assert flag_findings("0.5.23", flags, "DFLASH") == ()
    assert flag_notes("0.5.23", flags, "DFLASH") == (
        "--speculative-num-draft-tokens 16 was not held against the draft's block_size: its configuration was not read",
    )


V2 = [
    (
        "0.5.14", "DFLASH", DRAFT, "1",
        "spec_v2: asked for SGLANG_ENABLE_SPEC_V2=1 in the environment, found SGLang 0.5.14, which reads it no more: speculation always "
        "runs as version 2; leave it out; --disable-overlap-schedule is what turns overlap off",
    ),
    (
        "0.5.9", "EAGLE", TREE, "True",
        "spec_v2: asked for SGLANG_ENABLE_SPEC_V2=True in the environment, found --speculative-eagle-topk 4, which SGLang 0.5.9 refuses "
        "with it; use --speculative-eagle-topk 1, or leave the variable out",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "algorithm", "flags", "value", "text"), V2)
def test_the_variable_for_version_2_of_speculation(version: str, algorithm: str, flags: dict[str, Any], value: str, text: str) -> None:
    found = flag_findings(version, flags, algorithm, environment={"SGLANG_ENABLE_SPEC_V2": value})
    assert [finding.text for finding in found] == [text]


@pytest.mark.parametrize(("version", "flags"), [("0.5.9", EAGLE), ("0.5.13.post1", TREE), ("0.5.6.post2", TREE)])
def test_the_variable_is_fine_where_it_is_read(version: str, flags: dict[str, Any]) -> None:
    assert flag_findings(version, flags, "EAGLE", environment={"SGLANG_ENABLE_SPEC_V2": "1"}) == ()


NOTES: list[tuple[str, str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("0.5.23", "", {"host": "0.0.0.0"}, {}, ["--host 0.0.0.0 without an API key: whoever reaches the port may use the server"]),
    ("0.5.23", "", {"host": "::"}, {"has_api_key": True}, []),
    ("0.5.23", "", {"host": "::", "api-key": "x"}, {}, []),
    ("0.5.23", "", {"host": "127.0.0.1"}, {}, []),
    (
        "0.5.14", "", {"cuda-graph-bs": [1], "mamba-scheduler-strategy": "auto"}, {},
        [
            "--cuda-graph-bs is deprecated in SGLang 0.5.14: write --cuda-graph-bs-decode, its name there",
            "--mamba-scheduler-strategy is deprecated in SGLang 0.5.14: write --mamba-radix-cache-strategy, its name there",
        ],
    ),
    (
        "0.5.22", "", {"enable-dp-attention": True}, {},
        ["--enable-dp-attention is deprecated in SGLang 0.5.22: use --attn-dp-size with the number of groups, and no --dp-size"],
    ),
    ("0.5.9", "", {"context": 4096}, {}, ["--context is the start of --context-length, which SGLang 0.5.9 takes it for; write it out"]),
    (
        "0.6.0", "", {"no-such-flag": 1, "port": 30000}, {},
        ["SGLang 0.6.0 is not in the table of flags (0.4.6.post5 to 0.5.23); not checked: --no-such-flag"],
    ),
    (
        "0.6.0", "", {"port": 30000}, {},
        ["SGLang 0.6.0 is not in the table of flags (0.4.6.post5 to 0.5.23); the nearest release has them all"],
    ),
    ("0.5.9", "EAGLE", EAGLE, {}, ["without SGLANG_ENABLE_SPEC_V2=1 SGLang 0.5.9 turns the overlap scheduler off for EAGLE"]),
    ("0.5.9", "EAGLE", EAGLE, {"environment": {"SGLANG_ENABLE_SPEC_V2": 1}}, []),
    ("0.5.11", "EAGLE", EAGLE, {}, []),
    (
        "0.5.2", "EAGLE", EAGLE, {"environment": {"SGLANG_ENABLE_SPEC_V2": 1}},
        ["SGLANG_ENABLE_SPEC_V2 is read from 0.5.4 on, and not by SGLang 0.5.2"],
    ),
    (
        "0.5.12.post1", "DFLASH", DRAFT, {"environment": {"SGLANG_ENABLE_SPEC_V2": 1}},
        ["SGLANG_ENABLE_SPEC_V2 says nothing about DFLASH in SGLang 0.5.12.post1"],
    ),
    (
        "0.5.19", "EAGLE", {"speculative-draft-window-size": 4096, **EAGLE}, {},
        ["--speculative-draft-window-size has no effect with EAGLE in SGLang 0.5.19"],
    ),
    ("0.5.21", "EAGLE", {"speculative-draft-window-size": 4096, **EAGLE}, {}, []),
    (
        "0.5.12.post1", "DFLASH", {"enable-mixed-chunk": True, **DRAFT}, {},
        ["--enable-mixed-chunk is turned off by DFLASH in SGLang 0.5.12.post1"],
    ),
    (
        "0.5.23", "EAGLE", {**EAGLE, "speculative-num-draft-tokens": 8}, {},
        ["--speculative-num-draft-tokens 8 becomes 4 (steps + 1) with --speculative-eagle-topk 1"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "algorithm", "flags", "more", "notes"), NOTES)
def test_notes(version: str, algorithm: str, flags: dict[str, Any], more: dict[str, Any], notes: list[str]) -> None:
    assert list(flag_notes(version, flags, algorithm, **more)) == notes


def test_no_version_is_an_error() -> None:
    with pytest.raises(InputError, match="give the version as the package names it"):
        flag_findings("", {})


@pytest.mark.parametrize("value", [object(), float("nan"), 10**30, "a\nb", {"a": [1]}, b"x", ["x", None]])
def test_odd_values_are_no_error(value: object) -> None:
    for flag in ("kv-cache-dtype", "pp-size", "page-size", "host", "lora-paths", "max-total-tokens", "disable-radix-cache"):
        flag_findings("0.5.23", {flag: value}, "EAGLE", required_tokens=1)
        flag_notes("0.5.23", {flag: value}, "DFLASH")


def test_what_took_a_flags_place_is_known_and_every_flag_that_went_is_accounted_for() -> None:
    """A flag that no release knows would send people astray."""
    named = {name for names in RENAMED.values() for name in names} | set(RENAMED) | set(INSTEAD)
    assert {name for name in named if not spans_of(name)} == set()
    gone = {name for _since, last, names in table.FLAGS if last for name in names.split() if spans_of(name)[-1][1]}
    # nothing took the place of these
    for_good = {
        "crash-on-nan", "cuda-graph-tc-compiler", "custom-sigquit-handler", "debug-tensor-dump-inject", "debug-tensor-dump-prefill-only",
        "disable-hicache-numa-detect", "disaggregation-decode-enable-fake-auto", "ds-channel-config-path", "ds-heavy-channel-num",
        "ds-heavy-channel-type", "ds-heavy-token-num", "ds-sparse-decode-threshold", "enable-double-sparsity", "load-watch-interval",
        "mm-max-concurrent-calls", "mm-per-request-timeout", "n-share-experts-fusion", "no-record-nolora-graph", "pdlb-url",
        "prefill-round-robin-balance", "record-nolora-graph", "speculative-ngram-branch-length",
        "speculative-ngram-max-match-window-size", "speculative-ngram-min-match-window-size", "speculative-skip-dp-mlp-sync",
        "torchao-config",
    }  # fmt: skip
    assert gone - set(RENAMED) - set(INSTEAD) == for_good
