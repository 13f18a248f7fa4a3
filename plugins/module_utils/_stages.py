# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which layers each pipeline stage holds. Private to this collection: may change at any time."""

from __future__ import annotations

from ansible_collections.inferops.sglang.plugins.module_utils._eras import Era


def stages(era: Era, layers: int, pp_size: int) -> tuple[range, ...]:
    """Layer numbers of each stage, first stage first, as SGLang cuts them where no partition is given.

    Layers that do not divide go one each to the last stages, in older releases all to the very last one.
    """
    each, left = divmod(layers, pp_size)
    if era.spread_layers:
        ends = [each * stage + max(0, stage - (pp_size - left)) for stage in range(pp_size + 1)]
    else:
        ends = [*(each * stage for stage in range(pp_size)), layers]
    return tuple(range(start, end) for start, end in zip(ends, ends[1:]))
