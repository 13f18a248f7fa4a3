# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter over what the hosts of a play have. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._fetch_fleet import rounds, turn_of


def model_turn(
    hostvars: Mapping[str, Any],
    host: str,
    model: Mapping[str, Any],
    play_hosts: Sequence[str],
    batch: Sequence[str],
    avoided: Collection[str] = (),
) -> dict[str, Any]:
    """Where a host takes a model from in this round of the play."""
    elsewhere = _elsewhere([hostvars[name] for name in play_hosts], model)
    seen = {name: _seen(hostvars[name], model) or elsewhere.get(name, {}) for name in play_hosts}
    return {**asdict(turn_of(host, model, seen, batch, avoided)), "rounds": rounds(len(batch))}


def _seen(variables: Mapping[str, Any], model: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a host has at the place of this model: as it was fetched in this play, else as its preflight saw it."""
    fetched = (variables.get("__sglang_models_fetched") or {}).get(model["path"])
    if fetched:
        return dict(fetched)
    checkpoints = (variables.get("__sglang_host") or {}).get("checkpoints") or {}
    return next((dict(found) for found in checkpoints.values() if found.get("path") == model["path"]), {})


def _elsewhere(every: Sequence[Mapping[str, Any]], model: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a host of an earlier batch saw on hosts whose turn comes later."""
    looks = [look for variables in every for look in (variables.get("__sglang_models_elsewhere") or {}).get("results") or ()]
    found = {}
    for look in looks:
        asked, name = look["item"]
        if look.get("settled") and all(asked[key] == model[key] for key in ("path", "source", "revision")):
            found[name] = {**look, "source": model["source"], "revision": model["revision"], "commit": look.get("revision", "")}
    return found
