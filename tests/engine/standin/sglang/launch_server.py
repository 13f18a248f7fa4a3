# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m sglang.launch_server`: an imitation of SGLang's start-up, for faults that a tiny model cannot show.

Imitated, by release from 0.5.9 to 0.5.23:
- the command line: some 240 of SGLang's flags with their defaults; an unknown one ends with status 2;
- one process per rank (tp x pp x dp replicas) with its own pid; the record prefix; what each rank prints and in
  which order: process groups, weights with the progress bar that glues records, pools, decode or verify graphs,
  the summary of TP rank 0, the HTTP server's lines, the warm-up request, the ready line;
- the wording of these records and the length of the `server_args=` record;
- the size of the pools, by an arithmetic of its own: MLA, DSA and GQA targets, DFLASH and EAGLE drafts, page size,
  --max-total-tokens, pipeline stages, dp-attention, the minimum over the ranks;
- failures: what they print, which process dies of what, and the exit status that is left;
- HTTP: /health, /health_generate, /model_info, /server_info and their old names, /v1/models, /v1/loads, /metrics, /generate,
  /v1/completions, /v1/chat/completions, as streams too; the API key; the refusal of prompts that are too long;
- the end by SIGTERM: status 0 from 0.5.20 on, death by SIGKILL before.

Not imitated: any computing, any use of memory, tokens (a token is a word), several nodes, the
detokenizer process, prefill and piecewise graphs, sliding-window and state pools, FP8 K/V chosen by the checkpoint,
an automatic --mem-fraction-static (0.88 stands in), float32 rounding of measured memory, times.
Source lines of tracebacks are not SGLang's; their last lines are.

The machine is described by the environment (GiB are per rank, numbers may be decimal):
  STANDIN_FREE_GIB           free before anything is loaded, one figure or one per rank with commas (94.0)
  STANDIN_WEIGHTS_GIB        the target's weights (60)
  STANDIN_DRAFT_WEIGHTS_GIB  the draft's weights (1.3)
  STANDIN_GRAPH_GIB          the target's graphs; a draft's take a quarter of it on top (1.5)
  STANDIN_STEP_SECONDS       length of a phase (0.05)
  STANDIN_TOKEN_SECONDS      what a token of an answer takes, after the prompt (0)
  STANDIN_DDTREE             1: a fork that knows the algorithm DDTREE, sized like DFLASH
  STANDIN_CHANGE             arguments that the server_args= record shows otherwise than given: name=value,name=value
  STANDIN_FAULT              faults, comma-separated; faults.py lists them
  STANDIN_FAULT_FILE         a file whose text, if there is any, is taken instead of STANDIN_FAULT
"""

from __future__ import annotations

import os
import sys

from sglang.standin.server import serve
from sglang.version import __version__

if __name__ == "__main__":
    serve(sys.argv[1:], os.environ, __version__)
