# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What memory_plan says about a case: its own arguments, its own request, its own plan."""

from __future__ import annotations

from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._arguments import PLAN_OPTIONS, request_of
from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, parse_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan import Plan, Request, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._sizing import GIB, build_pool, request_table_gib
from differential.cases import Case, config

Figures = dict[str, Optional[float]]


def predict(case: Case, release: str) -> tuple[Figures, Optional[str]]:
    """The figures of a plan, or why it is refused."""
    try:
        request = request_of(options(case, release))
        plan = make_plan(request)
    except InputError as error:
        return {}, str(error)
    return {"tokens": plan.predicted_tokens, **_details(request, release, plan)}, None


def options(case: Case, release: str) -> dict[str, Any]:
    """Every option of memory_plan, as Ansible would hand it over."""
    unknown = case.options.keys() - PLAN_OPTIONS.keys()
    if unknown:
        raise KeyError(f"the case {case.name} sets {', '.join(sorted(unknown))}, which memory_plan does not have")
    lists = {name: [case.options[name]] for name in ("gpu_free_gib", "free_at_sizing_gib")}
    defaults = {name: row.get("default") for name, row in PLAN_OPTIONS.items()}
    models = {"model_config": config(case.model), "draft_model_config": config(case.draft) if case.draft else None}
    # the oracle's cards are none of compute capability 10, and only others from 12 on know nvfp4
    card = {"compute_capability": 12.0} if case.options["kv_cache_dtype"] == "nvfp4" else {}
    return {**defaults, **case.options, **lists, **models, **card, "sglang_version": release}


def _details(request: Request, release: str, plan: Plan) -> Figures:
    """What the plan's tokens rest on, as far as it is one figure."""
    tokens, slots = plan.predicted_tokens, plan.mamba_slots
    pool = build_pool(era_of(parse_version(release))[0], request.target, request.draft, request.deployment)
    context = request.context_length or request.target.max_position or 0
    table = request_table_gib(pool, request.deployment, context, tokens, slots) * GIB
    rows = tokens / pool.rows + pool.page
    one_pool = _is_one_pool(request)
    return {
        # of several stages the plan shows the one that decides, the release its first
        "swa_tokens": pool.swa_tokens(tokens) if request.deployment.pp_size == 1 else None,
        "mamba_slots": slots,
        "charged": pool.charged if one_pool else None,
        "target_bytes": rows * pool.target_bytes if one_pool else None,
        "draft_bytes": rows * pool.draft_bytes if request.draft and one_pool else None,
        "request_table_bytes": round(table) if _tells_requests(request) else None,
    }


def _tells_requests(request: Request) -> bool:
    """Up to 0.5.9 the default number of requests comes from the tokens before caps and whole pages, which no plan shows."""
    flags = request.deployment
    return bool(flags.max_running_requests or flags.algorithm) or parse_version(request.version).release >= (0, 5, 10)


def _is_one_pool(request: Request) -> bool:
    """Whether the pool is a product of rows and bytes that the release's pool tells as well.

    Not so where windowed layers have a pool of their own, where stages hold different kinds of layers, in fp4, whose scales the
    pools do not count, and for the hybrid models of 0.5.2, whose pools are padded by one row for a page.
    """
    target, flags = request.target, request.deployment
    first_hybrids = parse_version(request.version).release < (0, 5, 3)
    unlike = target.states is not None and (flags.pp_size > 1 or first_hybrids)
    return target.family not in ("swa", "compressed") and not unlike and "fp4" not in flags.kv_cache_dtype
