# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An audit of a host as metrics in Prometheus' text format. Private to this collection: may change at any time.

The label is C(unit), not C(instance): Prometheus gives C(instance) itself, to the target that it asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._flags import number_of

# labels beside host and unit, and the value; a value of None is left out
Sample = tuple[Mapping[str, str], Optional[float]]


@dataclass(frozen=True)
class Family:
    """One metric of every instance, a gauge."""

    name: str
    help: str
    samples: Callable[[Mapping[str, Any]], Iterator[Sample]]


def _one(name: str) -> Callable[[Mapping[str, Any]], Iterator[Sample]]:
    def samples(instance: Mapping[str, Any]) -> Iterator[Sample]:
        value = instance.get(name)
        yield {}, float(value) if isinstance(value, bool) else number_of(value)

    return samples


def _pools(instance: Mapping[str, Any]) -> Iterator[Sample]:
    for row in instance.get("rows") or ():
        yield {"rank": str(row.get("rank"))}, number_of(row.get("tokens"))


def _started(instance: Mapping[str, Any]) -> Iterator[Sample]:
    try:
        yield {}, datetime.fromisoformat(str(instance.get("started_at"))).timestamp()
    except ValueError:
        return


def _up(instance: Mapping[str, Any]) -> Iterator[Sample]:
    yield {}, float((instance.get("answer") or {}).get("status") == 200)


FAMILIES: Sequence[Family] = (
    Family("sglang_accepted", "Whether nothing speaks against the instance (1) or it is refused (0).", _one("accepted")),
    Family("sglang_answering", "Whether the server answers on /health.", _up),
    Family("sglang_pool_tokens", "Tokens that the KV pool of a rank holds.", _pools),
    Family("sglang_proved_tokens", "Tokens that every rank is proved to hold, 0 where that is not proved.", _one("min_tokens")),
    Family("sglang_required_tokens", "Tokens that every rank must hold.", _one("required_tokens")),
    Family("sglang_headroom_gib", "GiB left on the fullest rank once it was up.", _one("headroom_gib")),
    Family("sglang_mem_fraction_static", "The static fraction that the server runs with.", _one("mem_fraction_static")),
    Family("sglang_restarts", "Automatic restarts since the last start by hand.", _one("restarts")),
    Family("sglang_drained", "Whether the server was taken out of its balancers and not put back.", _one("drained")),
    Family("sglang_boot_timestamp_seconds", "When the start that runs began, in seconds since 1970.", _started),
)


def metrics_of(audit: Mapping[str, Any], host: str, now: float) -> str:
    """All of it as one text, every metric with its HELP and TYPE."""
    lines: list[str] = []
    for family in FAMILIES:
        own = [line for instance in audit["instances"] for line in _lines(family, host, instance)]
        lines += [*_head(family.name, family.help), *own] if own else []
    for name, text, value in (
        ("sglang_instances", "Units of this host that start SGLang.", len(audit["instances"])),
        ("sglang_audit_timestamp_seconds", "When this was read, in seconds since 1970.", round(now)),
    ):
        lines += [*_head(name, text), _line(name, {"host": host}, value)]
    return "\n".join(lines) + "\n"


def _lines(family: Family, host: str, instance: Mapping[str, Any]) -> Iterator[str]:
    for labels, value in family.samples(instance):
        if value is not None:
            yield _line(family.name, {"host": host, "unit": str(instance["unit"]), **labels}, value)


def _head(name: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} gauge"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    # whole numbers have no point, and no exponent
    shown = str(int(value)) if value == int(value) else repr(float(value))
    return f"{name}{{{inside}}} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
