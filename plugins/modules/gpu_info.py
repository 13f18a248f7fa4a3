#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Memory of the accelerators of a host
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads total, used and free memory of each card with C(nvidia-smi), or the available memory of the host where SGLang runs on the CPU.
  - The free figure is what the driver shows. SGLang measures its own after it made its CUDA context and NCCL groups,
    which take some 1.2 to 1.9 GiB of a card; the role C(inferops.sglang.sglang) takes that off as C(sglang_runtime_overhead_gib).
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  device:
    description: SGLang's C(--device).
    type: str
    choices: [cuda, cpu]
    default: cuda
"""

EXAMPLES = r"""
- name: Read the cards
  inferops.sglang.gpu_info:
  register: cards

- name: Plan with what is free on the fullest card
  inferops.sglang.memory_plan:
    model: /srv/models/kimi-k2.6
    sglang_version: 0.5.23
    tp_size: 8
    context_length: 200000
    gpu_free_gib: "{{ cards.gpus | map(attribute='free_gib') }}"
"""

RETURN = r"""
gpus:
  description: One entry for each card, in the driver's order; on O(device=cpu) one entry for the host's memory.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: Number of the card.
      type: int
    uuid:
      description: The driver's name for it; V(cpu) on O(device=cpu).
      type: str
    name:
      description: Product name.
      type: str
    total_gib:
      description: Memory of the card in GiB (2^30).
      type: float
    used_gib:
      description: Memory in use in GiB.
      type: float
    free_gib:
      description: Free memory in GiB.
      type: float
  sample: [{index: 0, uuid: GPU-1, name: NVIDIA RTX PRO 6000, total_gib: 95.593, used_gib: 0.0, free_gib: 94.97}]
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import GpuError, read_gpus


def main() -> None:
    module = AnsibleModule(
        argument_spec={"device": {"type": "str", "choices": ["cuda", "cpu"], "default": "cuda"}},
        supports_check_mode=True,
    )
    try:
        cards = read_gpus(
            module.params["device"],
            lambda argv: module.run_command(list(argv), handle_exceptions=False, environ_update={"LC_ALL": "C"}),
            lambda path: Path(path).read_text(encoding="utf-8"),
        )
    except GpuError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, gpus=[card.as_dict() for card in cards])


if __name__ == "__main__":
    main()
