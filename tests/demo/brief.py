# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible prints, shortened for reading while it runs: brief.py LOG < OUTPUT; LOG gets every line.

A task is one line, and below it what it said. An error is told once, without the place in the role that raised it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

TASK = re.compile(r"TASK \[(?:[\w.]+ : )?(?P<name>.*)\] \*+$")
OTHER = re.compile(r"(?:PLAY|RUNNING HANDLER|NO MORE HOSTS LEFT|PLAY RECAP)\b.*\*+$")
RESULT = re.compile(r"(?P<word>ok|changed|skipping|included|failed|fatal)\b(?:: | \[)")
SAID = re.compile(r"\[(?P<kind>ERROR|WARNING)\]: (?:Task failed: )?(?:(?:Action|Module) failed: )?(?P<text>.*)")
NOISE = re.compile(r"ASYNC |\s*$|\s+(?:changed: |msg: \|-)")


def brief(lines: Iterable[str]) -> Iterable[str]:
    """The pieces to print, in order; what a task said comes as soon as it is said."""
    open_line = False  # a task's name is printed, its result is not
    telling = False  # this line belongs to a message
    failed = False
    spoke = False  # the task showed something of its own, below its name
    for line in lines:
        task, said, result = TASK.match(line), SAID.match(line), RESULT.match(line)
        if task or OTHER.match(line):
            yield "\n" * open_line
            open_line, telling, failed, spoke = bool(task), False, False, False
            yield f"  {task['name']} ..." if task else ""
        elif said:
            failed = said["kind"] == "ERROR"
            word = "FAILED" if failed else ""
            yield f"{' ' * failed}{word}\n" if open_line else f"    {word}\n" if spoke and failed else ""
            yield f"      {said['text']}\n"
            open_line, telling, spoke = False, True, False
        elif line.startswith("Origin: "):
            telling = False
        elif result:
            yield f" {result['word']}\n" * open_line
            open_line, telling = False, not failed and line.endswith("=> ")
        elif open_line and not NOISE.match(line):
            open_line, telling, spoke = False, True, True
            yield f"\n      {line}\n"
        elif telling and not NOISE.match(line):
            yield f"      {line if failed else re.sub('^(    msg: | {8})', '', line)}\n"


def main() -> None:
    with open(sys.argv[1], "a", encoding="utf-8") as log:

        def lines() -> Iterable[str]:
            for line in sys.stdin:
                log.write(line)
                log.flush()
                yield line.rstrip("\n")

        for piece in brief(lines()):
            print(piece, end="", flush=True)


main()
