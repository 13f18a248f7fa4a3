# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a server in a container, as the main process of its unit.

    sglang_container.py start --name NAME --user USER --group GROUP [--drop VARIABLE]... -- ENGINE run OPTIONS... IMAGE COMMAND...
    sglang_container.py clear --name NAME -- ENGINE

The first takes away a container of that name that an end without warning left, as the second does, and then becomes the engine's own
client, which stays in front and passes output and signals on. Into the options go what only the host knows at the start: the numbers of
the account, the names of the variables that systemd read from the unit's environment (the client passes their values, so they are no
words of a command line), and the directory of the unit's credentials. The server's processes are those of the account, not of root.

Standard library only, Python 3.9 or later.
"""

from __future__ import annotations

import argparse
import grp
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Optional

# What systemd, a shell or the engine set for processes of the host. The image has a PATH of its own.
NOT_PASSED = frozenset(
    (
        "CACHE_DIRECTORY", "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY", "INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_FDS",
        "LISTEN_FDNAMES", "LISTEN_PID", "LOGS_DIRECTORY", "MAINPID", "MANAGERPID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE",
        "NOTIFY_SOCKET", "PATH", "PWD", "RUNTIME_DIRECTORY", "SHELL", "SHLVL", "STATE_DIRECTORY", "SYSTEMD_EXEC_PID", "TERM", "_",
    )
)  # fmt: skip


class NoStart(Exception):
    """The container cannot be started; the text says what was asked, what was found, and what to do."""


def account(user: str, group: str) -> str:
    """``UID:GID``: the image knows neither name."""
    try:
        return f"{pwd.getpwnam(user).pw_uid}:{grp.getgrnam(group).gr_gid}"
    except KeyError as error:
        raise NoStart(f"asked for a server of {user}:{group}, found no such account ({error.args[0]}); make it on the host") from error


def inserted(environment: Mapping[str, str], owner: str, drop: Sequence[str] = ()) -> list[str]:
    """The options that depend on the host and on this start; ``drop``: more variables that the server does not get."""
    words = ["--user", owner]
    for name in sorted(set(environment) - NOT_PASSED - set(drop)):
        words += ["--env", name]
    credentials = environment.get("CREDENTIALS_DIRECTORY")
    if credentials:
        words += ["--env", "CREDENTIALS_DIRECTORY", "--volume", f"{credentials}:{credentials}:ro"]
    return words


def command(words: Sequence[str], more: Sequence[str]) -> list[str]:
    """The engine's command with more behind its ``run``."""
    engine, verb, *rest = words
    return [engine, verb, *more, *rest]


def clear(engine: str, name: str) -> int:
    """Takes a container of this name away; that there is none is fine, and nothing to speak of. Raises OSError without the engine."""
    done = subprocess.run([engine, "rm", "--force", name], capture_output=True, text=True, check=False)
    if done.returncode == 0 or "no such container" in done.stderr.lower():
        return 0
    said = done.stderr.strip().splitlines()
    print(f"asked to take the container {name} away, found {said[-1] if said else f'exit code {done.returncode}'}", file=sys.stderr)
    return 1


def start(asked: argparse.Namespace) -> int:
    """Does not come back unless the engine cannot be run."""
    words = command(asked.words, inserted(os.environ, account(asked.user, asked.group), asked.drop))
    # what cannot be taken away makes the start itself fail
    clear(words[0], asked.name)
    sys.stderr.flush()
    os.execvp(words[0], words)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    starting, clearing = verbs.add_parser("start"), verbs.add_parser("clear")
    for verb, options in ((starting, ("--name", "--user", "--group")), (clearing, ("--name",))):
        for option in options:
            verb.add_argument(option, required=True)
    starting.add_argument("--drop", action="append", default=[], help="a variable that the server does not get")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    asked = parser.parse_args(arguments[:split], argparse.Namespace(words=list(arguments[split + 1 :])))
    if len(asked.words) < (3 if asked.verb == "start" else 1):
        parser.error("after -- give the engine, and to start it: run, its options, the image, and what to run in it")
    return asked


def main(arguments: Optional[Sequence[str]] = None) -> int:
    asked = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return start(asked) if asked.verb == "start" else clear(asked.words[0], asked.name)
    except NoStart as error:
        print(error, file=sys.stderr)
    except OSError as error:
        found = f"asked to {asked.verb} {asked.name} with {asked.words[0]}, found {error}"
        print(f"{found}; install it, or set sglang_container_engine", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
