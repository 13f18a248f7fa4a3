#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: boot_evidence
short_description: What a start of a service left on its host, as files on the controller
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Fetches what shows why a start went wrong, in one task, before anything else is started in its place.
  - "The files in O(directory) are C(journal.log) (the lines of this start, the service manager's own among them), the unit with its
    drop-ins, C(environment.txt), C(gpus.txt) (what C(nvidia-smi) or C(rocm-smi) says), C(systemctl.txt), C(memory.txt), and O(texts)."
  - Values that a name calls secret are masked, in the environment file, on the command line and in the arguments that the server prints.
  - Logs of a server may hold what its users asked. Files are readable by their owner alone.
  - It never fails. What cannot be read or written is a note, for it is called where something failed already.
attributes:
  check_mode:
    support: full
    description: Reads and writes nothing.
  diff_mode:
    support: none
    description: Changes nothing on the host.
  action:
    support: full
    description: Writes on the controller what the module read on the host.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  unit:
    description: Name of the unit.
    type: str
    required: true
  invocation_id:
    description: The start, as the journal has it. Empty is the one that systemd knows of now.
    type: str
    default: ""
  environment_file:
    description: The environment file of the unit on the host.
    type: path
    required: true
  directory:
    description: Folder on the controller. It is made, for its owner alone. Empty writes nothing.
    type: str
    required: true
  texts:
    description: More files to write, by their names. A value that is no text is written as JSON; an empty one is left out.
    type: dict
    default: {}
  max_bytes:
    description: How much of the journal is kept. A quarter of it is from its beginning, the rest from its end.
    type: int
    default: 4194304
"""

EXAMPLES = r"""
- name: Keep what the last start left
  inferops.sglang.boot_evidence:
    unit: sglang-k26.service
    environment_file: /etc/sglang/sglang-k26.env
    directory: "{{ playbook_dir }}/evidence/{{ inventory_hostname }}"
"""

RETURN = r"""
directory:
  description: Folder on the controller, empty if nothing could be written.
  returned: always
  type: str
written:
  description: Names of the files in it.
  returned: always
  type: list
  elements: str
notes:
  description: What could not be read or written.
  returned: always
  type: list
  elements: str
msg:
  description: The same in one line.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._evidence import Wish, collect
from ansible_collections.inferops.sglang.plugins.module_utils._journal import stream_output
from ansible_collections.inferops.sglang.plugins.module_utils._programs import limited
from ansible_collections.inferops.sglang.plugins.module_utils._service import unit_name

# characters of a unit, an environment file or a table of the kernel; they are far smaller
LARGEST_FILE = 262144
# seconds that a driver's tool may take
TIMEOUT = 30


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(LARGEST_FILE)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "unit": {"type": "str", "required": True},
            "invocation_id": {"type": "str", "default": ""},
            "environment_file": {"type": "path", "required": True},
            "directory": {"type": "str", "required": True},
            "texts": {"type": "dict", "default": {}},
            "max_bytes": {"type": "int", "default": 4194304},
        },
        supports_check_mode=True,
    )
    asked = module.params
    wish = Wish(unit_name(asked["unit"]), asked["invocation_id"], asked["environment_file"], max(asked["max_bytes"], 4096))
    found = collect(wish, limited(TIMEOUT), stream_output, read)
    # the action writes the texts and takes them out
    module.exit_json(changed=False, texts=found.files, notes=found.notes)


if __name__ == "__main__":
    main()
