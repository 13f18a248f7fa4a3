#!/usr/bin/python

# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout
short_description: Lead a rollout from batch to batch
version_added: 0.1.0
description:
  - Opens a batch of a play only if every earlier host of this run was accepted, carries what one host taught to the hosts like it, and
    writes the report.
  - It runs on the controller alone, once for all hosts of the play (C(run_once)). The playbooks of this collection show its use.
  - A host passes by the fact C(sglang_gate_passed), which the play sets when the role has accepted it. A pass that was given from outside,
    by the command line or the inventory, is refused.
attributes:
  check_mode:
    description: Nothing is written in check mode.
    support: full
  diff_mode:
    description: Would return details on what has changed.
    support: none
  action:
    description: Runs on the controller.
    support: full
options:
  step:
    description:
      - V(plan) closes the play that has planned every host and touched none. It fails if one of them was refused or could not be reached.
      - V(batch) opens a batch. It fails if an earlier host has no pass.
      - V(judge) closes a batch. It never fails.
    type: str
    choices: [plan, batch, judge]
    required: true
  kind:
    description: What the rollout does, for its report.
    type: str
    choices: [deploy, rollback]
    default: deploy
  instance:
    description: Name of the service, for the report.
    type: str
    default: sglang
  sglang_version:
    description: Release that is rolled out, for the report.
    type: str
    default: ""
  batches:
    description:
      - What C(serial) of the play of hosts that serve nothing is given; a number, a percentage, or a list of them.
      - V(plan) refuses what C(serial) would take for all hosts at once, as V(0) or an empty list.
    type: raw
    default: 1
  serving_batches:
    description: The same for the play of hosts whose server is stopped.
    type: raw
    default: 1
  report_dir:
    description: Directory on the controller for the report. Empty writes none; one that cannot be written to is a warning.
    type: path
    default: ""
  fleet_boots_dir:
    description: Directory on the controller where lessons are kept from run to run. Empty keeps them for this run alone.
    type: path
    default: ""
author:
  - inferops.sglang contributors (@inferops)
"""

EXAMPLES = r"""
- name: Open this batch only if every earlier host was accepted
  inferops.sglang.rollout:
    step: batch
    report_dir: /srv/rollouts
  register: __sglang_batch
  run_once: true
  any_errors_fatal: true
"""

RETURN = r"""
id:
  description: Name of this rollout, which its report is kept under.
  returned: success, O(step=plan)
  type: str
  sample: deploy-20261130T070102Z
free:
  description: Hosts that serve nothing or need no restart, in the order of the inventory.
  returned: success, O(step=plan)
  type: list
  elements: str
serving:
  description: Hosts whose server has to be stopped.
  returned: success, O(step=plan)
  type: list
  elements: str
lessons:
  description: What earlier starts showed, by class of host.
  returned: success, O(step=plan) and O(step=batch)
  type: dict
opened_at:
  description: When the batch was opened, in seconds since 1970.
  returned: success, O(step=batch)
  type: float
hosts:
  description: The hosts of the batch.
  returned: success, O(step=batch)
  type: list
  elements: str
report:
  description: Path of the page that shows how the rollout stands. Empty if none is written.
  returned: O(step=judge)
  type: str
"""
