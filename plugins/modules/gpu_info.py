#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: The accelerators of a host, their memory and who holds it
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads the cards with C(nvidia-smi), where there is none with C(rocm-smi), or the available memory of the host where SGLang runs on
    the CPU.
  - The free figure is what the driver shows. SGLang measures its own after it made its CUDA context and NCCL groups,
    which take some 1.2 to 1.9 GiB of a card; the role C(inferops.sglang.sglang) takes that off as C(sglang_runtime_overhead_gib).
  - Cards that cannot be read fail with the tool's own words and what is to be done. A tool that does not answer within 30 seconds
    is left behind, as nothing ends a process that hangs in a driver.
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  device:
    description: SGLang's C(--device). V(cuda) is that of NVIDIA's and of AMD's cards.
    type: str
    choices: [cuda, cpu]
    default: cuda
  gpus:
    description: Cards to read, by index or UUID, in this order; empty reads all. One that does not exist fails.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the cards
  inferops.sglang.gpu_info:
  register: cards

- name: Plan with the fullest card, less what the CUDA context and NCCL will take of it
  inferops.sglang.memory_plan:
    model: /srv/models/kimi-k2.6
    sglang_version: 0.5.23
    tp_size: 8
    context_length: 200000
    gpu_free_gib: "{{ cards.gpus | map(attribute='free_gib') | min - 1.9 }}"

- name: Read two of the cards
  inferops.sglang.gpu_info:
    gpus: [2, 3]
"""

RETURN = r"""
gpus:
  description: One entry for each card, in the driver's order or that of O(gpus); on O(device=cpu) one entry for the host's memory.
  returned: success
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
    pci_bus_id:
      description: Its address on the PCI bus; empty where it is not told.
      type: str
    compute_capability:
      description: CUDA compute capability, such as V(12.0); none for AMD's cards.
      type: float
    ecc_uncorrected:
      description: Uncorrected ECC errors since the driver was loaded; none where the card does not count them.
      type: int
    mig:
      description: Is the card cut into MIG instances?
      type: bool
  sample:
    - index: 0
      uuid: GPU-1
      name: NVIDIA RTX PRO 6000
      total_gib: 95.593
      used_gib: 0.0
      free_gib: 94.97
      pci_bus_id: "00000000:01:00.0"
      compute_capability: 12.0
      ecc_uncorrected: 0
      mig: false
processes:
  description: Processes that hold memory of these cards. The driver shows none to a container with a process namespace of its own.
  returned: success
  type: list
  elements: dict
  contains:
    pid:
      description: Process id.
      type: int
    name:
      description: Program; empty where it is not told.
      type: str
    gpu:
      description: Index of the card; none where the tool does not tell it (AMD).
      type: int
    used_gib:
      description: Memory it holds in GiB; none where it is not told.
      type: float
  sample: [{pid: 4711, name: /opt/venv/bin/python, gpu: 0, used_gib: 34.0}]
tool:
  description: The tool that read the cards; empty on O(device=cpu).
  returned: success
  type: str
  sample: nvidia-smi
driver_version:
  description: Version of the driver; empty where it is not told.
  returned: success
  type: str
  sample: 580.95.05
cuda_version:
  description: The newest CUDA that the driver runs; empty for AMD's cards and on O(device=cpu).
  returned: success
  type: str
  sample: "13.0"
notes:
  description: What is odd about the cards and stops nothing.
  returned: success
  type: list
  elements: str
  sample: []
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._gpus import TIME_LIMIT, GpuError, read_accelerators
from ansible_collections.inferops.sglang.plugins.module_utils._programs import limited


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "device": {"type": "str", "choices": ["cuda", "cpu"], "default": "cuda"},
            "gpus": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        found = read_accelerators(
            module.params["device"],
            limited(TIME_LIMIT),
            lambda path: Path(path).read_text(encoding="utf-8"),
            module.params["gpus"],
            cuda=True,
        )
    except GpuError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        gpus=[card.as_dict() for card in found.cards],
        processes=[process.as_dict() for process in found.processes],
        tool=found.tool,
        driver_version=found.driver_version,
        cuda_version=found.cuda_version,
        notes=list(found.notes),
    )


if __name__ == "__main__":
    main()
