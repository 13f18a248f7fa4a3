# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags that do not go together in a release, or that hide what is asked. Private to this collection: may change at any time.

Sources: ServerArgs._handle_speculative_decoding and check_server_args in server_args.py up to 0.5.12, then arg_groups/
speculative_hook.py, validation_hook.py and lora_hook.py. Every row names the first and the last release that the rule was read in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._flag_request import FlagRequest

TOGETHER = "flags_together"
SPEC_V2 = "spec_v2"
TRUNCATE = "auto_truncate"
CAP = "max_total_tokens"
BLOCK = "draft_block_size"

_EAGLE = frozenset(("EAGLE", "EAGLE3", "NEXTN", "STANDALONE"))
_DFLASH = frozenset(("DFLASH", "DDTREE"))
_SPEC_V2_VARIABLE = "SGLANG_ENABLE_SPEC_V2"

# What is found, in words; empty where the rule has nothing to say.
Found = Callable[[FlagRequest], str]


@dataclass(frozen=True)
class Clash:
    """Releases, algorithms (none named: any, also none), what is found, what to do, and what was asked if that is not the algorithm."""

    since: str
    last: str
    algorithms: frozenset[str]
    found: Found
    do: str
    asked: str = ""

    def finding(self, request: FlagRequest) -> Optional[Finding]:
        if not request.version.within(self.since, self.last) or (self.algorithms and request.algorithm not in self.algorithms):
            return None
        found = self.found(request)
        asked = self.asked or f"--speculative-algorithm {request.algorithm}"
        return Finding(TOGETHER, asked, f"{found}, which SGLang {request.version.text} refuses", self.do) if found else None


def _stages(request: FlagRequest) -> str:
    stages = request.number("pp-size", 1)
    return f"--pp-size {stages:.0f}" if stages > 1 and request.algorithm else ""


def _stages_beside_eagle(request: FlagRequest) -> str:
    prefill = request.algorithm == "DSPARK" and request.text("disaggregation-mode") == "prefill"
    return "" if request.algorithm in ("EAGLE", "NEXTN") or prefill else _stages(request)


def _attention_groups(request: FlagRequest) -> str:
    groups = request.attention_groups
    return f"attention data parallelism over {groups:.0f} groups" if groups > 1 else ""


def _groups_without_head(request: FlagRequest) -> str:
    groups = _attention_groups(request)
    return f"{groups} without --enable-dp-lm-head" if groups and not request.is_on("enable-dp-lm-head") else ""


def _groups_with_context(request: FlagRequest) -> str:
    groups, size = _attention_groups(request), request.number("attn-cp-size", 1)
    return f"{groups} with --attn-cp-size {size:.0f}" if groups and size > 1 else ""


def _no_draft(request: FlagRequest) -> str:
    return "" if request.text("speculative-draft-model-path") else "no --speculative-draft-model-path"


def _narrow_window(request: FlagRequest) -> str:
    window = request.value("speculative-draft-window-size")
    size, tokens = request.number("speculative-draft-window-size"), _draft_tokens(request)
    return f"a window of {size:.0f} under {tokens:.0f} draft tokens" if window is not None and size < tokens else ""


def _draft_tokens(request: FlagRequest) -> float:
    given = request.number("speculative-num-draft-tokens") or request.number("speculative-dflash-block-size")
    return given or request.draft_block_size or 1


def _two_blocks(request: FlagRequest) -> str:
    tokens, block = request.number("speculative-num-draft-tokens"), request.number("speculative-dflash-block-size")
    return f"{tokens:.0f} draft tokens and --speculative-dflash-block-size {block:.0f}" if tokens and block and tokens != block else ""


def _half_of_three(request: FlagRequest) -> str:
    steps, topk, tokens = (request.value(f"speculative-{name}") for name in ("num-steps", "eagle-topk", "num-draft-tokens"))
    if request.is_on("speculative-adaptive"):
        return ""
    if steps is None and (topk is not None or tokens is not None):
        return "--speculative-eagle-topk or --speculative-num-draft-tokens without --speculative-num-steps"
    return "--speculative-num-steps without --speculative-eagle-topk" if steps is not None and topk is None else ""


def _tree_on_pages(*backends: str) -> Found:
    """A tree of drafts on pages of several tokens; only where the backend is named, for SGLang chooses it by the card."""

    def found(request: FlagRequest) -> str:
        backend = request.text("attention-backend")
        if not backend or backend in backends or request.number("page-size", 1) <= 1 or request.number("speculative-eagle-topk", 1) <= 1:
            return ""
        return f"--speculative-eagle-topk {request.text('speculative-eagle-topk')} on pages with --attention-backend {backend}"

    return found


def _trtllm_tree(request: FlagRequest) -> str:
    backends = [request.text(f"{kind}attention-backend") for kind in ("", "decode-", "prefill-")]
    tree = request.number("speculative-eagle-topk", 1) > 1
    return f"--speculative-eagle-topk {request.text('speculative-eagle-topk')} with trtllm_mha" if tree and "trtllm_mha" in backends else ""


def _lora(*algorithms: str) -> Found:
    def found(request: FlagRequest) -> str:
        lora = request.is_on("enable-lora") or request.value("lora-paths") is not None
        return "LoRA adapters" if lora and request.algorithm and request.algorithm not in algorithms else ""

    return found


def _device(*devices: str) -> Found:
    def found(request: FlagRequest) -> str:
        device = request.text("device").partition(":")[0]
        return f"--device {device}" if device and device not in devices else ""

    return found


def _pages(request: FlagRequest) -> str:
    chunk, page = request.number("chunked-prefill-size"), request.number("page-size", 1)
    return f"--chunked-prefill-size {chunk:.0f} on pages of {page:.0f}" if chunk > 0 and page > 1 and chunk % page else ""


def _skip_sync(request: FlagRequest) -> str:
    return "--speculative-skip-dp-mlp-sync" if request.is_on("speculative-skip-dp-mlp-sync") else ""


def _sink(request: FlagRequest) -> str:
    alone = request.value("speculative-draft-sink-size") is not None and request.value("speculative-draft-window-size") is None
    return "no --speculative-draft-window-size" if alone else ""


_ANY: frozenset[str] = frozenset()
_NO_STAGES = "use pp_size 1, or leave speculation out"
_NO_GROUPS = "leave attention data parallelism out, or speculation"
_LORA_OUT = "leave the adapters out, or speculation"
CLASHES: tuple[Clash, ...] = (
    # "Pipeline parallelism is not compatible with overlap schedule, speculative decoding"; from 0.5.20 on EAGLE alone has stages
    Clash("0.4.6.post5", "0.5.19", _ANY, _stages, _NO_STAGES),
    Clash("0.5.20", "", _ANY, _stages_beside_eagle, _NO_STAGES),
    # "Currently DFLASH speculative decoding does not support dp attention", then only with the head of the target in every group
    Clash("0.5.11", "0.5.22", _DFLASH, _attention_groups, f"{_NO_GROUPS}; 0.5.23 takes both with --enable-dp-lm-head"),
    Clash("0.5.23", "", _DFLASH, _groups_without_head, "add --enable-dp-lm-head"),
    Clash("0.5.23", "", _DFLASH, _groups_with_context, "use --attn-cp-size 1"),
    Clash("0.5.16", "", frozenset(("DSPARK",)), _groups_without_head, "add --enable-dp-lm-head"),
    Clash("0.5.16", "", frozenset(("DSPARK",)), _groups_with_context, "use --attn-cp-size 1"),
    Clash("0.5.2", "", frozenset(("STANDALONE",)), _attention_groups, _NO_GROUPS),
    Clash("0.5.3", "", frozenset(("NGRAM",)), _attention_groups, _NO_GROUPS),
    Clash("0.5.11", "", _DFLASH, _no_draft, "give the draft"),
    Clash("0.5.11", "", _DFLASH, _narrow_window, "give a window of at least the draft tokens"),
    Clash("0.5.11", "", _DFLASH, _two_blocks, "give one of the two"),
    # asserts without a word, or a comparison with nothing: the three come together
    Clash("0.4.6.post5", "", _EAGLE, _half_of_three, "give all three, or none and SGLang chooses"),
    # "only supported for the 'flashinfer' backend", then for fa3 too, then for triton
    Clash("0.5.3", "0.5.5.post3", _EAGLE, _tree_on_pages("flashinfer"), "use page_size 1 or --attention-backend flashinfer"),
    Clash("0.5.6.post2", "0.5.12.post1", _EAGLE, _tree_on_pages("flashinfer", "fa3"), "use page_size 1, or flashinfer or fa3"),
    Clash("0.5.13.post1", "", _EAGLE, _tree_on_pages("flashinfer", "fa3", "triton"), "use page_size 1, or flashinfer, fa3 or triton"),
    Clash("0.5.3", "", _EAGLE, _trtllm_tree, "use --speculative-eagle-topk 1"),
    # "Currently LoRA is only compatible with NGRAM speculative decoding"
    Clash("0.5.5.post3", "0.5.18", _ANY, _lora("NGRAM"), _LORA_OUT),
    Clash("0.5.19", "", _ANY, _lora("NGRAM", "EAGLE", "EAGLE3", "NEXTN", "DFLASH", "DSPARK", "DDTREE"), _LORA_OUT),
    # from 0.5.20 on a platform of its own may bring these algorithms to any device
    Clash("0.5.16", "0.5.16", frozenset(("DFLASH", "DSPARK")), _device("cuda"), "use --device cuda, or leave speculation out"),
    Clash("0.5.17", "0.5.19", frozenset(("DFLASH",)), _device("cuda", "npu"), "use --device cuda, or leave speculation out"),
    Clash("0.5.3", "0.5.15.post1", frozenset(("NGRAM",)), _device("cuda"), "use --device cuda, or leave speculation out"),
    Clash("0.5.11", "0.5.22", _EAGLE - {"EAGLE", "NEXTN"} | _DFLASH, _skip_sync, "leave --speculative-skip-dp-mlp-sync out"),
    Clash("0.5.21", "", _ANY, _sink, "give both, or neither", "--speculative-draft-sink-size"),
    Clash("0.4.6.post5", "", _ANY, _pages, "give a multiple of page_size, or -1", "chunks of whole pages"),
)


def clashes(request: FlagRequest) -> Iterator[Finding]:
    """Everything that speaks against the flags as a whole."""
    for clash in CLASHES:
        finding = clash.finding(request)
        if finding is not None:
            yield finding
    yield from _block(request)
    yield from _hidden(request)
    yield from _spec_v2(request)


def _block(request: FlagRequest) -> Iterator[Finding]:
    """The worker takes the flag, warns ("DFLASH block size mismatch"), and the draft guesses worse; in every release that has DFLASH."""
    tokens, block = request.number("speculative-num-draft-tokens"), request.draft_block_size
    if request.algorithm == "DFLASH" and block and tokens and tokens != block:
        found = f"a draft whose block_size is {block}"
        yield Finding(BLOCK, f"--speculative-num-draft-tokens {tokens:.0f}", found, f"give {block} or leave it out")


def _hidden(request: FlagRequest) -> Iterator[Finding]:
    """Flags that make a pool which is too small look like one that is not."""
    if request.is_on("allow-auto-truncate"):
        found = "that SGLang then cuts prompts that do not fit the pool, and answers as if nothing were missing"
        yield Finding(TRUNCATE, "--allow-auto-truncate", found, "leave it out: the gate proves that the pool holds what is asked")
    cap = request.number("max-total-tokens")
    if 0 < cap < request.required_tokens:
        asked = f"{request.required_tokens:,} tokens in the pool of every rank"
        yield Finding(CAP, asked, f"--max-total-tokens {cap:,.0f}, which caps it", "leave it out, or ask for less")


def _spec_v2(request: FlagRequest) -> Iterator[Finding]:
    """0.5.14 to 0.5.20 say "SGLANG_ENABLE_SPEC_V2 has been removed", later ones nothing; with a tree 0.5.9 refuses it."""
    value = request.environment.get(_SPEC_V2_VARIABLE)
    if value is None:
        return
    asked = f"{_SPEC_V2_VARIABLE}={value} in the environment"
    if request.version.within("0.5.14", ""):
        found = f"SGLang {request.version.text}, which reads it no more: speculation always runs as version 2"
        yield Finding(SPEC_V2, asked, found, "leave it out; --disable-overlap-schedule is what turns overlap off")
    elif _is_true(value) and request.version.within("0.5.7", "0.5.10.post1") and request.number("speculative-eagle-topk", 1) > 1:
        found = f"--speculative-eagle-topk {request.text('speculative-eagle-topk')}, which SGLang {request.version.text} refuses with it"
        yield Finding(SPEC_V2, asked, found, "use --speculative-eagle-topk 1, or leave the variable out")


def _is_true(value: object) -> bool:
    return str(value).lower() in ("1", "true", "yes", "y")


def side_notes(request: FlagRequest, has_api_key: bool) -> Iterator[str]:
    """What is worth knowing and speaks against nothing."""
    if request.text("host") in ("0.0.0.0", "::") and not has_api_key and not request.text("api-key"):
        yield f"--host {request.text('host')} without an API key: whoever reaches the port may use the server"
    version, variable = request.version, request.environment.get(_SPEC_V2_VARIABLE)
    if request.algorithm in _EAGLE and version.within("0.5.4.post3", "0.5.10.post1") and not _is_true(variable):
        yield f"without {_SPEC_V2_VARIABLE}=1 SGLang {version.text} turns the overlap scheduler off for {request.algorithm}"
    if variable is not None and not version.may_be_within("0.5.4.post3", ""):
        yield f"{_SPEC_V2_VARIABLE} is read from 0.5.4 on, and not by SGLang {version.text}"
    if variable is not None and request.algorithm in _DFLASH and version.within("0.5.11", "0.5.13.post1"):
        yield f"{_SPEC_V2_VARIABLE} says nothing about {request.algorithm} in SGLang {version.text}"
    yield from _ignored(request)


def _ignored(request: FlagRequest) -> Iterator[str]:
    version, algorithm = request.version, request.algorithm or "no speculation"
    honoured = _DFLASH | {"EAGLE3"} | ({"EAGLE", "NEXTN"} if version.within("0.5.21", "") else frozenset())
    if request.value("speculative-draft-window-size") is not None and request.algorithm not in honoured:
        yield f"--speculative-draft-window-size has no effect with {algorithm} in SGLang {version.text}"
    if request.is_on("enable-mixed-chunk") and request.algorithm and not version.may_be_within("0.5.21", ""):
        yield f"--enable-mixed-chunk is turned off by {algorithm} in SGLang {version.text}"
    tokens = request.number("speculative-num-draft-tokens")
    if request.algorithm == "DFLASH" and tokens and request.draft_block_size is None:
        yield f"--speculative-num-draft-tokens {tokens:.0f} was not held against the draft's block_size: its configuration was not read"
    topk, steps = request.number("speculative-eagle-topk"), request.number("speculative-num-steps")
    if request.algorithm in _EAGLE and topk == 1 and tokens and steps and tokens != steps + 1:
        yield f"--speculative-num-draft-tokens {tokens:.0f} becomes {steps + 1:.0f} (steps + 1) with --speculative-eagle-topk 1"
