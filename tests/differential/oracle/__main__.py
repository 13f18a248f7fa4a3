# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the sizing code of one unpacked SGLang release, on the CPU and on given measurements.

    python -m differential.oracle SOURCE ANSWERS FLAGS < CASES

CASES is a JSON list of objects (the fields of inputs.Inputs); ANSWERS gets one JSON object a line, in the same order: the
fields of release.Answer, or ``error`` with what the release raised. FLAGS gets what flags.known says of the release's parser.

Real, that is the release's own code: reading config.json (ModelConfig), the arguments' defaults, the split into pipeline
stages, the KV type, the window a model class reports, the layers of the draft, the bytes per token, the budget, caps and
pages, the splits for sliding windows and for states, the number of requests, and every pool, made on PyTorch's ``meta``
device where it has its size and takes no memory.

Not real: the two measurements of free memory are the case's; the process groups are numbers, and the MIN over pipeline
stages is worked out by playing the stages in turns; no weights are loaded, so what sizing asks a model for is answered by a
stand-in (no quantisation; which layers slide is read from ``layer_types``); up to 0.5.15, what ModelRunner keeps from its
constructor (layers of the draft, hybrid or not) is set from outside by the same rules; packages that need a GPU are inert.
"""

from __future__ import annotations

import gc
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from differential.oracle import configurator, flags, runner, stubs
from differential.oracle.inputs import Inputs
from differential.oracle.release import Answer, Collective, Release


def main() -> None:
    source, answers, known = map(Path, sys.argv[1:])
    cases = [Inputs.of(options) for options in json.load(sys.stdin)]
    stubs.install()
    sys.path.insert(0, str(source))
    release = Release(source)
    known.write_text(json.dumps(flags.known()), encoding="utf-8")
    size = configurator.size if release.has("mem_cache.kv_cache_configurator") else runner.size
    with answers.open("w", encoding="utf-8") as out:
        for inputs in cases:
            gc.freeze()  # releases from 0.5.19 on collect garbage before they measure
            out.write(json.dumps(answer(release, size, inputs)) + "\n")


def answer(release: Release, size: Callable[[Release, Inputs, int], Answer], inputs: Inputs) -> dict[str, Any]:
    """The answer to one case, or what the release raised."""
    try:
        return stages(release, size, inputs).plain()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {"error": f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"}


def stages(release: Release, size: Callable[[Release, Inputs, int], Answer], inputs: Inputs) -> Answer:
    """All pipeline stages, until the least pool has reached every one; the answer of the least, and of the fullest among equals."""
    import torch

    collective = Collective()
    torch.distributed.all_reduce = collective.all_reduce
    found: list[Answer] = []
    while collective.changed:
        collective.begin_round()
        found = []
        for stage in range(inputs.pp_size):
            collective.begin_stage()
            found.append(size(release, inputs, stage))
    return min(found, key=lambda one: (one.tokens, -(one.target_bytes or 0)))


if __name__ == "__main__":
    main()
