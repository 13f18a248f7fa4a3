# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server makes of its flags before it sizes anything: the oracle starts after that, so it is given the outcome.

Read from the releases' handling of arguments (server_args.py, later arg_groups/). memory_plan gets the flags as a user would
write them and has to know these rules by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from differential.cases import Case, config, version_key


@dataclass(frozen=True)
class Rule:
    """Flags that releases from ``since`` up to ``until`` set for some architectures."""

    architectures: tuple[str, ...]
    sets: dict[str, Any]
    since: str = "0"
    until: str = "9"
    # only where the user sets none of them
    by_default: bool = False
    speculating: bool = False

    def applies(self, case: Case, release: str) -> bool:
        """Whether this release sets these flags for this case."""
        known = config(case.model)["architectures"][0] in self.architectures
        in_time = version_key(self.since) <= version_key(release) < version_key(self.until)
        asked_for = self.by_default and any(name in case.options for name in self.sets)
        return known and in_time and not asked_for and (bool(case.algorithm) or not self.speculating)


_ONE_POOL = {"disable_hybrid_swa_memory": True}
_GPT_OSS = ("GptOssForCausalLM",)
_DEEPSEEK_V4 = ("DeepseekV4ForCausalLM",)

RULES = (
    Rule(_GPT_OSS, _ONE_POOL, until="0.5.8"),
    Rule(_GPT_OSS, _ONE_POOL, until="0.5.9", speculating=True),
    Rule(("Gemma3ForCausalLM",), _ONE_POOL, since="0.5.1"),
    Rule(_DEEPSEEK_V4, {"swa_full_tokens_ratio": 0.1}, by_default=True),
    Rule(_DEEPSEEK_V4, {"kv_cache_dtype": "fp8_e4m3"}),
    Rule(_DEEPSEEK_V4, {"max_running_requests": 256}, by_default=True),
)


def resolved(case: Case, release: str) -> dict[str, Any]:
    """The case's flags as the release has them when it sizes."""
    flags = dict(case.options)
    for rule in RULES:
        if rule.applies(case, release):
            flags |= rule.sets
    return flags
