# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ranks a server has, by the sizes of its flags. Private to this collection: may change at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._ranks import RankId

MAX_RANKS = 4096  # more ranks than any deployment has: a log that shows more is not believed


@dataclass(frozen=True)
class Parallelism:
    """Sizes as in SGLang's flags; None: not given."""

    tp_size: Optional[int] = None
    pp_size: Optional[int] = None
    dp_size: Optional[int] = None
    dp_attention: bool = False

    def over(self, server_args: dict[str, Any]) -> Parallelism:
        """These sizes, completed by what the server says about itself."""
        replicas, groups = (size_of(server_args.get(name)) or 0 for name in ("dp_size", "attn_dp_size"))
        return Parallelism(
            tp_size=self.tp_size or size_of(server_args.get("tp_size")),
            pp_size=self.pp_size or size_of(server_args.get("pp_size")),
            # from 0.5.22 on groups of attention data parallelism have a size of their own; one of the two is 1
            dp_size=self.dp_size or max(replicas, groups) or None,
            dp_attention=self.dp_attention or server_args.get("enable_dp_attention") is True or groups > 1,
        )

    def against(self, server_args: dict[str, Any]) -> list[str]:
        """Where these sizes are not the server's own, in words. Of a server that spans nodes they may be those of one node."""
        if (size_of(server_args.get("nnodes")) or 1) > 1:
            return []
        own = Parallelism().over(server_args)
        pairs = [(name, getattr(self, name), getattr(own, name)) for name in ("tp_size", "pp_size", "dp_size")]
        return [f"{name}={size} was given, the server runs with {found}" for name, size, found in pairs if size and found and size != found]

    def ranks(self) -> tuple[RankId, ...]:
        """Every rank that must report; empty where the tensor parallel size is not known or no size of a real deployment.

        With attention data parallelism the DP label splits the TP ranks; without it every DP replica has all of them.
        """
        tp, pp, dp = self.tp_size or 0, self.pp_size or 1, self.dp_size or 1
        if not 0 < tp * pp * dp <= MAX_RANKS:
            return ()
        if self.dp_attention:
            group = max(tp // dp, 1)
            return tuple(RankId(t // group, p, t) for p in range(pp) for t in range(tp))
        return tuple(RankId(d, p, t) for d in range(dp) for p in range(pp) for t in range(tp))

    def key(self, rank: RankId) -> RankId:
        """What tells two ranks apart: with attention data parallelism the TP rank alone, whichever DP group it serves."""
        return rank._replace(dp=0) if self.dp_attention else rank


def size_of(value: Any) -> Optional[int]:
    """A number of ranks, nodes or the like as the server prints it; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def share_of(value: Any) -> Optional[float]:
    """A fraction as the server prints it; None for anything else."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1 else None
