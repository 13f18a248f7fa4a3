#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: allocation_info
short_description: What a start of SGLang allocated, rank by rank
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Reads the log of the newest start of an SGLang server and returns the KV pool of every rank, the memory figures the next plan
    needs, the phase the start is in, and, if it died, why and in which direction C(mem_fraction_static) must move.
  - The pool of the target model is told from the pool of the draft model. The lines SGLang prints for the two look alike.
  - Only the newest start counts. In the journal it is told from earlier ones by its invocation id, in plain logs by the line with the
    server's arguments.
  - Waits for the start if told to, in one task and without retries. It gives up within 3 seconds after a fatal line, or as soon
    as the unit is no longer active, and not only when the time is over.
  - A person at the terminal sees a line on standard error for each phase of a unit that is waited for, and for each tenth of its weights.
  - A start that printed its pools is not proof of a server that serves. Use the test P(inferops.sglang.pool_sufficient#test) on the result.
extends_documentation_fragment: [inferops.sglang.attributes]
attributes:
  check_mode:
    description: Changes nothing. Does not wait in check mode, but returns the present state.
options:
  unit:
    description:
      - Name of the systemd unit. A name without a suffix means a service.
      - Together with O(journal_directory) or O(journal_files) it chooses the unit in that journal, and the state of the unit on this
        host is not looked at.
    type: str
  journal_directory:
    description:
      - Directory with journal files, as C(/var/log/journal) of another host.
      - Of its subdirectories only those whose name is a machine's id are looked into, as C(journalctl --directory) does. A unit with a
        journal namespace of its own has its lines in one named C(MACHINE.NAMESPACE), so give that one for it.
      - Without O(unit) the newest start of any SGLang server in it is read.
    type: path
  journal_files:
    description: Journal files. See O(journal_directory).
    type: list
    elements: path
  log_files:
    description:
      - Saved logs, for example of a container, read one after the other as one log.
      - Plain lines, lines of docker's C(json-file) driver, and the output of C(journalctl -o json) are understood, also packed with gzip.
      - A log that is still written may be waited for. What was read is not read again, unless the file was replaced.
      - Of the starts before the newest one only their number counts, so a crash loop of gigabytes is read in seconds.
    type: list
    elements: path
  log_text:
    description: A log as text.
    type: str
  invocation_id:
    description:
      - The start to read, as systemd names it.
      - By default the unit's current one, or its newest one in the journal.
    type: str
  tp_size:
    description:
      - Tensor parallel size, which says how many ranks must report. By default what the server says in its own log.
      - A size that is not the server's own proves nothing, but for a server that spans nodes. There it is the ranks of the first node.
    type: int
  pp_size:
    description: Pipeline parallel size. By default what the server says in its own log.
    type: int
  dp_size:
    description: Data parallel size. By default what the server says in its own log.
    type: int
  wait_for:
    description:
      - V(none) returns the present state, whatever it is. It fails only if the log cannot be read.
      - V(pool) waits until every expected rank has reported its pool.
      - V(ready) waits until the server says that it is ready.
    type: str
    choices: [none, pool, ready]
    default: none
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 1800
  phase_timeouts:
    description:
      - Seconds the start may stay in one phase. A longer stay fails as a hang.
      - The keys are phases, V(starting), V(weights), V(pool), V(capture) and V(warmup).
      - For a unit they count from when the phase began, which may be before this module was called. For a log, from when it was seen.
    type: dict
    default: {}
  weights_gib:
    description:
      - Memory that the weights take on a rank in GiB, as far as it is known. While a unit loads them, RV(allocation.phase_percent) is
        then worked out from what C(nvidia-smi) says that the ranks' processes hold.
      - SGLang's own progress bar ends no line before it is full, so a journal does not show it in time.
    type: float
  settle_time:
    description:
      - Seconds a unit must have been at what is waited for, without a restart and without a failure, before this module is content.
      - A server that has been ready for longer costs no time. Waiting for this is not part of O(wait_timeout).
    type: int
    default: 0
  since:
    description:
      - What an earlier call returned as RV(progress). The module then returns as soon as it has something new to tell, undecided.
      - In a playbook this needs no thought, as the calls that show a start's progress are made by themselves.
    type: dict
    suboptions:
      invocation_id:
        description: The start that is watched.
        type: str
      restarts:
        description: Automatic restarts of the unit when the watch began.
        type: int
      phase:
        description: The phase that is known.
        type: str
      percent:
        description: How far the weights or the graphs were.
        type: int
      waited_s:
        description: Seconds that earlier calls waited. They are part of O(wait_timeout).
        type: float
        default: 0.0
  require_ready:
    description: Fail if the server is not ready, or not every expected rank has reported its pool.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Wait until the server of this host is ready
  inferops.sglang.allocation_info:
    unit: sglang-k26
    tp_size: 8
    wait_for: ready
    wait_timeout: 1800
    phase_timeouts:
      weights: 1200
  register: boot

- name: Go on only if every rank can hold a request of 200,000 tokens
  ansible.builtin.assert:
    that: boot.allocation is inferops.sglang.pool_sufficient(200000)

- name: Look into the journal that was collected from another host
  inferops.sglang.allocation_info:
    journal_directory: /srv/collected/gpu07
  register: gpu07

- name: Look into the saved log of a container
  inferops.sglang.allocation_info:
    log_files:
      - /srv/collected/sglang.log
"""

RETURN = r"""
allocation:
  description:
    - The newest start. Memory is GiB (2^30), which SGLang's log calls GB. What the log does not tell is V(null).
    - V(null) if the unit does not exist or was never started. Returned by a failing wait, too.
  returned: unless the log could not be read
  type: dict
  contains:
    invocation_id:
      description: The start, as systemd names it.
      type: str
    started_at:
      description: When it began, in UTC. In plain logs the local time that SGLang printed.
      type: str
    sglang_version:
      description: Version of SGLang in the Python environment of the running process. Known only for a unit that runs.
      type: str
    server_args:
      description: The effective arguments the server printed. Values of arguments that hold secrets are masked.
      type: dict
    phase:
      description: One of V(starting), V(weights), V(pool), V(capture), V(warmup), V(ready), V(failed).
      type: str
    phases:
      description:
        - Seconds it spent in each phase, by phase. The last one counts up to the last line that tells something.
        - By the clock of the host that never jumps. In plain logs by the times that SGLang printed.
      type: dict
    phase_percent:
      description:
        - How far the weights or the graphs are, while one of them is under way, by the server's own progress bar.
        - The weights of a unit also by O(weights_gib).
      type: int
    waiting_for:
      description: Which ranks a start that is under way waits for, and what they are doing.
      type: str
    ready:
      description:
        - Whether the server of this start said that it is ready, and did not fail since.
        - In a journal also that it was not stopped since. A saved log shows how a start went, so there an orderly stop takes nothing away.
      type: bool
    was_ready:
      description: Whether it ever said so.
      type: bool
    stopped:
      description: Whether it was told to stop, or ended, without a failure.
      type: bool
    complete:
      description: Whether every expected rank, and no other, reported the pool of its target model.
      type: bool
    ranks:
      description: One entry for each rank that reported.
      type: list
      elements: dict
      contains:
        tp:
          description: Tensor parallel rank.
          type: int
        pp:
          description: Pipeline parallel rank.
          type: int
        dp:
          description: Data parallel rank.
          type: int
        ep:
          description: Expert parallel rank.
          type: int
        pid:
          description: Process id, if the log tells.
          type: int
        phase:
          description: How far this rank has come.
          type: str
        phases:
          description: Seconds this rank spent in each phase, by phase.
          type: dict
        avail_before_weights_gib:
          description: Free memory before the first model was loaded.
          type: float
        avail_after_weights_gib:
          description: Free memory after the last model that was loaded before the pool, so when the pool was sized.
          type: float
        weights_gib:
          description: What the load of the target model took.
          type: float
        draft_weights_gib:
          description: What the loads of the draft models took.
          type: float
        load_order:
          description: Whether the draft was loaded before or after the pool of the target, V(draft_before_pool) or V(draft_after_pool).
          type: str
        avail_after_pool_gib:
          description: Free memory after the last pool.
          type: float
        avail_after_capture_gib:
          description: Free memory after the last graph capture.
          type: float
        last_avail_gib:
          description: The last free memory this rank printed.
          type: float
        target:
          description: Pool of the target model.
          type: dict
          contains: &pool
            tokens:
              description: Tokens that requests can fill. Under decode context parallelism those of all ranks that share them.
              type: int
            shard_tokens:
              description: The part of them that this rank holds, under decode context parallelism.
              type: int
            kv_gib:
              description: Its memory, as MLA models print it.
              type: float
            k_gib:
              description: Memory of the keys, as other models print it.
              type: float
            v_gib:
              description: Memory of the values, as other models print it.
              type: float
            dtype:
              description: Type of its elements.
              type: str
            avail_after_gib:
              description: Free memory after it.
              type: float
            upper_bound_tokens:
              description: Tokens it holds at most, if the real size is not known yet.
              type: int
        draft:
          description: Pool of the draft model, the sum if there are several.
          type: dict
          contains: *pool
        swa_tokens:
          description: Tokens of the sliding window's half of the pool.
          type: int
        mamba_slots:
          description: State slots of a hybrid model.
          type: int
    missing_ranks:
      description: Expected ranks that reported no pool, with C(tp), C(pp) and C(dp).
      type: list
      elements: dict
    min_tokens:
      description: The smallest pool of the target model.
      type: int
    capacity_tokens:
      description:
        - Tokens that all requests together can fill. Tensor-parallel ranks share a pool, data-parallel ranks add up, and pipeline stages
          have as many as the smallest of them.
        - V(null) unless every expected rank reported.
      type: int
    max_total_num_tokens:
      description: Tokens in the final line, the smallest if several ranks print one.
      type: int
    context_len:
      description: Context length in the final line.
      type: int
    max_running_requests:
      description: Largest number of concurrent requests in the final line.
      type: int
    available_gpu_mem_gib:
      description: Free memory in the final line.
      type: float
    min_avail_gib:
      description: The smallest RV(allocation.ranks[].last_avail_gib).
      type: float
    spread_gib:
      description: Difference between the largest and the smallest RV(allocation.ranks[].avail_after_pool_gib).
      type: float
    load_order:
      description: RV(allocation.ranks[].load_order), if all ranks agree.
      type: str
    failure:
      description: Why the start died, V(null) if it did not.
      type: dict
      contains:
        kind:
          description: For example V(not_enough_memory), V(oom_capture), V(child_died), V(hang), V(crash_loop). All are in docs/failures.md.
          type: str
        rank:
          description: The rank that failed, with C(tp), C(pp) and C(dp), V(null) if the log does not tell.
          type: dict
        message:
          description: What was logged.
          type: str
        advice:
          description: Where C(mem_fraction_static) must go, V(raise), V(lower), V(impossible), or V(other) if it is not to blame.
          type: str
        minimum_fraction:
          description: Below this fraction this start cannot come up, if the advice is V(raise), or V(impossible) because of it.
          type: float
        remedy:
          description: What to do.
          type: str
        next_fraction:
          description:
            - The nearest fraction that takes this cause away, with 4 decimals, V(null) if the log does not hold the figures for it.
            - With the advice V(raise), the smallest that leaves a pool at all. With V(lower), the largest that leaves what was missing.
          type: float
    restarts:
      description: Automatic restarts of the unit, or further starts in a plain log.
      type: int
    elapsed_s:
      description: Seconds from the start to ready, or to the last milestone.
      type: float
    last_milestone:
      description: The last known line.
      type: str
    dropped_messages:
      description: Messages of the unit that the log daemon dropped. What is missing is then unknown, not absent.
      type: int
    notes:
      description: What else a reader should know, for example that the log daemon dropped messages.
      type: list
      elements: str
service:
  description: State of the unit. V(null) if the log is not the one of a unit on this host.
  returned: unless the log could not be read
  type: dict
  contains:
    active_state:
      description: For example V(active).
      type: str
    sub_state:
      description: For example V(running) or V(auto-restart).
      type: str
    result:
      description: For example V(success) or V(exit-code).
      type: str
    load_state:
      description: V(not-found) for a unit that does not exist.
      type: str
    main_pid:
      description: Process id of the server, 0 if none runs.
      type: int
    n_restarts:
      description: Automatic restarts since the unit was started.
      type: int
    invocation_id:
      description: The current start.
      type: str
    exec_main_status:
      description: Exit status of the last process.
      type: int
    digest:
      description: Digest of the configuration the running process was started with, which the role puts into its environment.
      type: str
summary:
  description: The same in a few lines for a person, state, pools, failure with what to do, and notes.
  returned: unless the log could not be read
  type: list
  elements: str
waited_s:
  description: Seconds this module waited.
  returned: unless the log could not be read
  type: float
polls:
  description: How often it looked.
  returned: unless the log could not be read
  type: int
progress:
  description: What to give as O(since) in the next call, with V(invocation_id), V(restarts), V(phase), V(percent) and V(waited_s).
  returned: with O(since), while nothing is decided
  type: dict
"""

import os
import re
from dataclasses import asdict, replace
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._boot_watch import (
    JournalWatch,
    Milestone,
    Terms,
    TextWatch,
    UnitWatch,
    Watch,
    milestone_of,
    observe,
    shortcoming,
)
from ansible_collections.inferops.sglang.plugins.module_utils._gauge import WeightsGauge
from ansible_collections.inferops.sglang.plugins.module_utils._journal import JournalError, JournalReader, Source
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism
from ansible_collections.inferops.sglang.plugins.module_utils._programs import through
from ansible_collections.inferops.sglang.plugins.module_utils._service import read_service, running_version, unit_name
from ansible_collections.inferops.sglang.plugins.module_utils._summary import summary_of
from ansible_collections.inferops.sglang.plugins.module_utils._text_log import GivenText, TextLog
from ansible_collections.inferops.sglang.plugins.module_utils._timeline import PHASES
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

ARGUMENTS: dict[str, dict[str, Any]] = {
    "unit": {"type": "str"},
    "journal_directory": {"type": "path"},
    "journal_files": {"type": "list", "elements": "path"},
    "log_files": {"type": "list", "elements": "path"},
    "log_text": {"type": "str"},
    "invocation_id": {"type": "str"},
    "tp_size": {"type": "int"},
    "pp_size": {"type": "int"},
    "dp_size": {"type": "int"},
    "wait_for": {"type": "str", "choices": ["none", "pool", "ready"], "default": "none"},
    "wait_timeout": {"type": "int", "default": 1800},
    "phase_timeouts": {"type": "dict", "default": {}},
    "weights_gib": {"type": "float"},
    "settle_time": {"type": "int", "default": 0},
    "since": {
        "type": "dict",
        "options": {
            "invocation_id": {"type": "str"},
            "restarts": {"type": "int"},
            "phase": {"type": "str"},
            "percent": {"type": "int"},
            "waited_s": {"type": "float", "default": 0.0},
        },
    },
    "require_ready": {"type": "bool", "default": False},
}
UNIT_NAME = re.compile(r"(?!.*@(?:\.|$))[\w:.\\@-]{1,255}", re.ASCII)  # what systemd allows, and no template without an instance
TEXT_SOURCES = ("log_files", "log_text")
JOURNAL_SOURCES = ("journal_directory", "journal_files")


def read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def list_directory(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def make_watch(module: AnsibleModule, expected: Parallelism) -> Watch:
    asked = module.params
    if asked["log_files"] is not None:
        return TextWatch(", ".join(asked["log_files"]), TextLog(asked["log_files"]), expected)
    if asked["log_text"] is not None:
        return TextWatch("the given log", GivenText(asked["log_text"].encode("utf-8", "surrogateescape")), expected)
    unit = unit_name(asked["unit"]) if asked["unit"] else None
    source = Source(asked["journal_directory"], tuple(asked["journal_files"] or ()))
    reader = JournalReader(source)
    if unit is None or source != Source():
        where = asked["journal_directory"] or ", ".join(asked["journal_files"])
        return JournalWatch(f"{unit or 'the newest server'} in {where}", reader, unit, asked["invocation_id"], expected)
    return UnitWatch(
        unit,
        reader,
        service=lambda: read_service(unit, run=through(module.run_command, "C"), read=read_bytes),
        version=lambda pid: running_version(pid, read_bytes, list_directory),
        expected=expected,
        invocation=asked["invocation_id"],
        since=Milestone(**asked["since"]) if asked["since"] else None,
        gauge=WeightsGauge(asked["weights_gib"], through(module.run_command, "C"), Clock().now) if asked["weights_gib"] else None,
    )


def read_limits(module: AnsibleModule) -> dict[str, float]:
    """Checks what types alone cannot."""
    limits = {}
    for phase, seconds in module.params["phase_timeouts"].items():
        number = as_seconds(seconds)
        if phase not in PHASES[:-1] or number is None:
            module.fail_json(
                msg=f"asked for phase_timeouts with {phase}={seconds!r}, found no such phase or no number of seconds above 0; "
                f"give seconds for any of {', '.join(PHASES[:-1])}"
            )
        limits[phase] = number
    for name, least in (
        ("tp_size", 1), ("pp_size", 1), ("dp_size", 1), ("wait_timeout", 0), ("settle_time", 0), ("weights_gib", 0)
    ):  # fmt: skip
        value = module.params[name]
        if value is not None and not least <= value < float("inf"):
            size = "too small" if value < least else "no number"
            module.fail_json(msg=f"asked for {name}={value}, found that it is {size}; give {name} as {least} or more, or leave it out")
    since = module.params["since"] or {}
    if not 0 <= since.get("waited_s", 0) < float("inf") or (since.get("restarts") or 0) < 0:
        module.fail_json(
            msg=f"asked for since={dict(since)}, found no such time or restarts in it; give the progress that an earlier call returned"
        )
    return limits


def check_sources(module: AnsibleModule) -> None:
    """A source that is named must be one name: a template that came out empty would choose another, a pattern several units."""
    sources = ("unit", *JOURNAL_SOURCES, *TEXT_SOURCES)
    for name in (*sources, "invocation_id"):
        value = module.params[name]
        names = [value] if isinstance(value, str) else value or []
        empty = name in sources and name != "log_text" and value is not None and not (names and all(names))
        if empty or (name != "log_text" and any("\0" in part for part in names)):
            module.fail_json(msg=f"asked for {name}={str(value)[:300]!r}, found no name in it; give {name}, or leave it out")
    unit = module.params["unit"]
    if unit and not UNIT_NAME.fullmatch(unit):
        module.fail_json(msg=f"asked for unit={unit[:300]!r}, found that no unit has such a name; give the name of one unit")
    if all(module.params[name] is None for name in sources):
        module.fail_json(msg=f"asked for a start, found no source of it; give one of {', '.join(sources)}")


def as_seconds(value: Any) -> Optional[float]:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 < number < float("inf") and not isinstance(value, bool) else None


def run(module: AnsibleModule) -> None:
    limits = read_limits(module)
    check_sources(module)
    asked = module.params
    expected = Parallelism(asked["tp_size"], asked["pp_size"], asked["dp_size"])
    watch = make_watch(module, expected)
    terms = Terms(
        goal="none" if module.check_mode else asked["wait_for"],
        # a text does not grow: one look says all
        timeout_s=0 if asked["log_text"] is not None else asked["wait_timeout"],
        phase_timeouts=limits,
        settle_s=asked["settle_time"] if isinstance(watch, UnitWatch) else 0,
        since=Milestone(**asked["since"]) if asked["since"] else None,
    )
    seen = observe(watch, terms, Clock())
    allocation, service = seen.look.allocation, seen.look.service
    former = watch.former() if isinstance(watch, UnitWatch) and not seen.pending and allocation and not allocation.failure else None
    if allocation is not None and former is not None:
        allocation = replace(allocation, notes=(*allocation.notes, former))
    result: dict[str, Any] = {
        "changed": False,
        "allocation": allocation.as_dict() if allocation else None,
        "service": service.as_dict() if service else None,
        "summary": summary_of(allocation),
        "waited_s": round(seen.waited_s, 1),
        "polls": seen.polls,
    }
    if seen.pending:
        module.exit_json(**result, progress=asdict(milestone_of(seen.look, seen.waited_s)))
    problem = seen.problem
    if problem is None and asked["require_ready"] and not module.check_mode:
        problem = shortcoming(watch, seen.look)
    if problem is None and allocation is None and service is None:
        problem = f"asked for a start of {watch.name}, found none; check the journal and the name of the unit, or give invocation_id"
    if problem is not None:
        module.fail_json(msg=problem, **result)
    module.exit_json(**result)


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_one_of=[["unit", *JOURNAL_SOURCES, *TEXT_SOURCES]],
        mutually_exclusive=[["unit", *TEXT_SOURCES], [*JOURNAL_SOURCES, *TEXT_SOURCES], ["invocation_id", *TEXT_SOURCES]],
        supports_check_mode=True,
    )
    try:
        run(module)
    except JournalError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
