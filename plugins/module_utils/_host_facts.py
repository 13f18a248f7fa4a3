# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a preflight wants to know of a host, in one go. Private to this collection: may change at any time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ansible_collections.inferops.sglang.plugins.module_utils._gpus import Accelerators, GpuError, read_accelerators
from ansible_collections.inferops.sglang.plugins.module_utils._host import (
    Sight,
    is_own,
    program_of,
    read_file_facts,
    read_instances,
    read_interpreter,
    read_listeners,
    read_lock_limit,
    read_manager,
    read_memory,
    read_owners,
    read_space,
    read_unit,
    read_xids,
)
from ansible_collections.inferops.sglang.plugins.module_utils._host_models import read_checkpoint_facts
from ansible_collections.inferops.sglang.plugins.module_utils._preflight import CACHE_FOLDER, Ask, CheckpointFacts, Facts
from ansible_collections.inferops.sglang.plugins.module_utils._release import (
    ReleaseError,
    ReleaseState,
    Request,
    check_wheelhouse,
    path_of,
    state_of,
    state_of_existing,
)
from ansible_collections.inferops.sglang.plugins.module_utils._service import unit_name


@dataclass(frozen=True)
class Places:
    """Where to look. ``models``: paths of the models by C(model) and C(draft). ``release``: the options of the module release.
    ``adopt``: a unit whose server the instance takes over."""

    models: Mapping[str, str] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)
    release: Mapping[str, Any] = field(default_factory=dict)
    existing_environment: str = ""
    adopt: str = ""


def read_facts(ask: Ask, places: Places, sight: Sight) -> Facts:
    """The host. Nothing is read that nothing of what is asked depends on."""
    unit = read_unit(sight, unit_name(ask.instance))
    own = [unit] + ([read_unit(sight, unit_name(places.adopt))] if places.adopt else [])
    owners = read_owners(sight, own)
    accelerators = _accelerators(ask, sight)
    found = accelerators if isinstance(accelerators, Accelerators) else None
    release = _release(ask, places, sight)
    state = release if isinstance(release, ReleaseState) else None
    pids = [process.pid for process in found.processes] if found else []
    own_pids = frozenset(pid for pid in pids if is_own(sight, owners, pid))
    return Facts(
        manager=read_manager(sight),
        unit=unit,
        accelerators=found,
        gpu_error=accelerators if isinstance(accelerators, GpuError) else None,
        own_pids=own_pids,
        programs={pid: program_of(sight, pid) for pid in pids if pid not in own_pids},
        own_runs=any(item.main_pid for item in own),
        memory=read_memory(sight, owners),
        lock_limit=read_lock_limit(sight),
        spaces={path: space for path in _paths(ask, places) if (space := read_space(sight, path)) is not None},
        listeners=read_listeners(sight, ask.host, ask.port, owners),
        instances=read_instances(sight, [item.name for item in own]),
        xids=read_xids(sight) if found is not None and found.tool == "nvidia-smi" else (),
        interpreter=read_interpreter(sight, ask.python) if state is not None and not state.complete and ask.method == "venv" else None,
        release=state,
        release_error=release if isinstance(release, ReleaseError) else None,
        has_engine=ask.method != "container" or sight.program(ask.engine) is not None,
        has_uv=sight.program("uv") is not None,
        checkpoints=_checkpoints(ask, places, sight),
        files={path: read_file_facts(sight, path) for path in _named(ask)},
    )


def _accelerators(ask: Ask, sight: Sight) -> Union[Accelerators, GpuError]:
    try:
        return read_accelerators(ask.device, sight.run, lambda path: sight.text(path) or "", ask.gpus if ask.device != "cpu" else ())
    except GpuError as error:
        return error


def _release(ask: Ask, places: Places, sight: Sight) -> Union[ReleaseState, ReleaseError, None]:
    if ask.method == "container":
        return None
    try:
        request = Request.of(places.release)
        if ask.method == "existing":
            return state_of_existing(places.existing_environment, request)
        state = state_of(path_of(ask.root, request, sight.run), request)
        if not state.complete:
            check_wheelhouse(request)
        return state
    except ReleaseError as error:
        return error


def _checkpoints(ask: Ask, places: Places, sight: Sight) -> dict[str, CheckpointFacts]:
    kept = _kept(sight.text(f"{ask.state_dir}/{ask.instance}/receipt.json"))
    return {
        name: read_checkpoint_facts(path, ask.sources.get(name, ""), places.revisions.get(name, ""), kept.get(name, {}))
        for name, path in places.models.items()
        if path
    }


def _kept(receipt: Optional[str]) -> dict[str, Mapping[str, Any]]:
    """What the receipt of the last accepted start says of the models; nothing where it cannot be read."""
    try:
        content = json.loads(receipt or "")["checkpoints"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {name: entry for name, entry in content.items() if isinstance(entry, Mapping)} if isinstance(content, Mapping) else {}


def _paths(ask: Ask, places: Places) -> Iterable[str]:
    return [ask.root, ask.state_dir, CACHE_FOLDER, *(path for path in places.models.values() if path)]


def _named(ask: Ask) -> Iterable[str]:
    plain = [path.lstrip("-") for path in ask.environment_files]
    return {path for path in (*plain, *ask.named_files.values(), *ask.secret_files.values()) if path}
