# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The case that started this project, as the stand-in engine plays it on a throw-away host."""

from __future__ import annotations

from typing import Any

VERSION = "0.5.12.post1"
# The card of that case: 93.727 GiB before the weights, 21.329 GiB after them.
FREE_GIB, WEIGHTS_GIB = "93.7274", "72.398415"


def kimi_service(instance: str, port: int, **environment: str) -> dict[str, Any]:
    """Variables of the role for one instance of Kimi K2.6; ``environment``: more for the server."""
    return {
        "sglang_instance": instance,
        "sglang_port": port,
        "sglang_wheelhouse": "/srv/wheels",
        "sglang_model": "/srv/models/kimi-k2.6",
        "sglang_draft_model": "/srv/models/kimi-k2.6-dflash",
        "sglang_gpu_free_gib": [float(FREE_GIB)],
        "sglang_weights_gib": float(WEIGHTS_GIB),
        "sglang_draft_weights_gib": 1.31,
        "sglang_environment": {
            "STANDIN_FREE_GIB": FREE_GIB, "STANDIN_WEIGHTS_GIB": WEIGHTS_GIB, "STANDIN_STEP_SECONDS": "0.02", **environment,
        },
    }  # fmt: skip
