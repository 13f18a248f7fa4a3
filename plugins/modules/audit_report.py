#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: audit_report
short_description: Set the audits of all hosts of a play beside one another
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Takes what M(inferops.sglang.audit_info) returned for every host of the play, shows it as a table, writes a report, and fails if a host
    is refused, could not be reached or read, or has no server.
  - Servers that are equal for a plan are a class. One whose pool or fraction differs from that of its class is named.
  - It runs on the controller alone, once for all hosts of the play (C(run_once)), as C(inferops.sglang.audit) does.
attributes:
  check_mode:
    support: full
    description: Writes no report.
  diff_mode:
    support: none
    description: A report is new each time.
  action:
    support: full
    description: Runs on the controller.
  action_group:
    support: full
    membership: [inferops.sglang.sglang]
    description: Use C(group/inferops.sglang.sglang) in C(module_defaults) to set options for all modules at once.
options:
  results:
    description: Name of the variable that the task with M(inferops.sglang.audit_info) registered.
    type: str
    default: __sglang_audit
  report_dir:
    description:
      - Directory on the controller for the report. In the folder of this audit stands the whole of it as C(audit.json), too, and an answer
        as C(answer.json). Empty writes none; one that cannot be written to is a warning.
    type: path
    default: ""
  query:
    description:
      - A question in JMESPath over C(audit.json), as P(inferops.sglang.query#filter) takes it. The answer is shown in place of the table.
    type: str
    default: ""
  instance:
    description: Name of the service, for the report.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read every server of this host
  inferops.sglang.audit_info:
  register: __sglang_audit
  ignore_unreachable: true

- name: Say what was found
  inferops.sglang.audit_report:
    report_dir: /srv/reports
  run_once: true
"""

RETURN = r"""
msg:
  description: How many hosts are accepted, and which are not.
  type: str
  returned: always
report:
  description: Path of the page. Empty if none was written.
  type: str
  returned: always
answer:
  description: The answer.
  type: raw
  returned: if O(query) is given
"""
