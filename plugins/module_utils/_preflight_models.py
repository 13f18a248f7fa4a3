# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Target, draft and flags against each other and against the release. Private to this collection: may change at any time.

What the plan would refuse is all collected here, not only its first. Pure but for the config.json that an opener reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, deployment_of
from ansible_collections.inferops.sglang.plugins.module_utils._compatibility import check_sizes, faults_together
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._deployment import Deployment, normalise_algorithm
from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era, era_of, read_version
from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._flag_rules import flag_findings, flag_notes
from ansible_collections.inferops.sglang.plugins.module_utils._flags import argument_name, number_of
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import Geometry, read_geometry
from ansible_collections.inferops.sglang.plugins.module_utils._plan_request import check_deployment
from ansible_collections.inferops.sglang.plugins.module_utils._preflight import MODELS, Ask, CheckpointFacts, Facts, Said
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import build_pool

# path of a model's directory or configuration -> its config.json; raises InputError
ConfigReader = Callable[[str], Mapping[str, Any]]

SHOWN_PROBLEMS = 3
# flags whose option of a plan has another name, in one release or another
_OTHER_NAMES = {
    "speculative_draft_kv_cache_dtype": "draft_kv_cache_dtype",
    "speculative_draft_attention_backend": "draft_attention_backend",
    "mamba_radix_cache_strategy": "mamba_scheduler_strategy",
    "cuda_graph_max_bs_decode": "cuda_graph_max_bs",
}
# of a plan, but no flags of a server
_NO_FLAGS = (
    "model", "model_config", "draft_model", "draft_model_config", "sglang_version", "platform", "compute_capability", "concurrent_requests",
    "pool_target", "mem_fraction_static", "gpu_free_gib", "free_at_sizing_gib", "weights_gib", "draft_weights_gib", "observed",
    "free_jitter_gib", "min_headroom_gib",
)  # fmt: skip
FLAG_OPTIONS = {name: option for name, option in PLAN_OPTIONS.items() if name not in _NO_FLAGS}


@dataclass(frozen=True)
class Server:
    """The server's command line: ``flags`` by name without dashes, true for a switch. ``values``: those that decide the pool, as
    FLAG_OPTIONS takes them, cast and with defaults; ``errors`` say what of them cannot be cast."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    required_tokens: int = 0
    has_api_key: bool = False
    has_ddtree: bool = False


def pool_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags that decide the pool, by the names of FLAG_OPTIONS; the others are left out."""
    named = {argument_name(flag): value for flag, value in flags.items()}
    renamed = {_OTHER_NAMES.get(name, name): value for name, value in named.items()}
    return {name: value for name, value in renamed.items() if name in FLAG_OPTIONS}


def sizes_of(flags: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of a command line that say which cards it takes; what is no whole number is left to others to refuse."""
    named = {argument_name(flag): value for flag, value in flags.items()}
    defaults = {"tp_size": 1, "pp_size": 1, "dp_size": 1, "nnodes": 1, "base_gpu_id": 0, "gpu_id_step": 1}
    found = {name: number_of(named.get(name)) for name in defaults}
    return {name: int(value) if value is not None and 0 <= value < 10**6 else defaults[name] for name, value in found.items()}


def model_findings(ask: Ask, facts: Facts, server: Server, read_config: ConfigReader) -> Iterator[Said]:
    """What speaks against the models and the command line."""
    geometries: dict[str, Optional[Geometry]] = {}
    for name, checkpoint in facts.checkpoints.items():
        found = _geometry(name, checkpoint, read_config)
        geometries[name] = None if isinstance(found, Finding) else found
        if isinstance(found, Finding) and checkpoint.present and not ask.sources.get(name):
            yield found
            # an empty directory needs to be told once
            if checkpoint.bare:
                continue
        yield from _checkpoint(ask, name, checkpoint)
    yield from _together(ask, server, geometries)
    yield from _flags(ask, server, geometries.get("draft"))


# --- checkpoints ------------------------------------------------------------------------------------------------------------


def _checkpoint(ask: Ask, name: str, found: CheckpointFacts) -> Iterator[Said]:
    variable, source = MODELS[name], ask.sources.get(name, "")
    if found.note:
        yield f"{found.note}."
    if found.refusal:
        do = f"give {variable} another directory, or move that one away: what you put there is not replaced"
        yield Finding(_check(name), f"{variable} {found.path} as revision asked", found.refusal, do)
        return
    if found.settled:
        return
    what = _lacks(found)
    if source:
        gib = f", {found.missing_gib:.1f} GiB," if found.missing_gib else ""
        yield f"{variable} {found.path} is fetched{gib} from {source}: {what}."
    elif not found.present:
        do = f"give the directory of the model on the host, or {variable}_source to fetch it"
        yield Finding(_check(name), f"{variable} {found.path}", what, do)
    elif found.config_alone and name in ask.weights_given:
        yield f"{variable} {found.path} holds no safetensors files, so that only its configuration was checked."
    else:
        do = f"fetch what is missing, or give {variable}_source"
        yield Finding(_check(name), f"a complete checkpoint in {found.path} ({variable})", what, do)


def _check(name: str) -> str:
    return {"model": "model", "draft": "draft_model"}[name]


def _lacks(found: CheckpointFacts) -> str:
    if not found.present:
        return "no such directory on the host"
    if found.config_alone:
        return "no safetensors file in it"
    more = len(found.problems) - SHOWN_PROBLEMS
    shown = list(found.problems[:SHOWN_PROBLEMS]) + ([f"and {more} more"] if more > 0 else [])
    return "; ".join(shown) or "what is there is another revision"


def _geometry(name: str, found: CheckpointFacts, read_config: ConfigReader) -> Union[Geometry, Finding]:
    try:
        return read_geometry(read_config(found.path), {"model": "the model", "draft": "the draft model"}[name])
    except InputError as error:
        return _finding(_check(name), error)


# --- what goes together -----------------------------------------------------------------------------------------------------


def _together(ask: Ask, server: Server, geometries: Mapping[str, Optional[Geometry]]) -> Iterator[Said]:
    for text in server.errors:
        yield Finding("flags", "flags that the plan can read", text, "mend it in sglang_extra_args")
    if server.errors:
        return
    deployment = deployment_of({**{name: option.get("default") for name, option in PLAN_OPTIONS.items()}, **server.values})
    try:
        version = read_version(ask.version)
        era, _notes = era_of(version)
        check_sizes(deployment)
        check_deployment(deployment)
    except InputError as error:
        yield _finding("version", error)
        return
    target = geometries.get("model")
    # a string that names no release says nothing about what the branch can do
    if target is None or not version.known or ("draft" in geometries and geometries["draft"] is None):
        return
    draft = geometries.get("draft") or (target if normalise_algorithm(deployment.algorithm) == "EAGLE" and target.nextn_layers else None)
    yield from _pool(era, target, draft, deployment)


def _pool(era: Era, target: Geometry, draft: Optional[Geometry], deployment: Deployment) -> Iterator[Said]:
    faults = list(faults_together(era, target, draft, deployment))
    # those of the command line alone are told by its own rules, whether there are models or not
    yield from (_finding(room, fault) for room, fault in faults if room != "flags")
    if faults:
        return
    try:
        build_pool(era, target, draft, deployment)
    except InputError as error:
        yield _finding("pool", error)


def _flags(ask: Ask, server: Server, draft: Optional[Geometry]) -> Iterator[Said]:
    if not ask.version.strip():
        return
    algorithm = str(server.values.get("speculative_algorithm") or "")
    block = draft.draft.block_size if draft is not None and draft.draft is not None else None
    given = (ask.version, server.flags, algorithm, server.has_ddtree)
    yield from flag_findings(
        *given, environment=server.environment, draft_block_size=block, required_tokens=server.required_tokens
    )
    yield from flag_notes(*given, environment=server.environment, draft_block_size=block, has_api_key=server.has_api_key)


def _finding(check: str, error: InputError) -> Finding:
    return Finding(check, error.asked, error.found, error.advice)
