# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a server in a container, as the main process of its unit.

    sglang_container.py --name NAME --user USER --group GROUP [--drop VARIABLE]... -- ENGINE run OPTIONS... IMAGE COMMAND...

Takes away a container of that name that an end without warning left, then becomes the engine's own client, which stays in front and
passes output and signals on. Into the options go what only the host knows at the start: the numbers of the account, the names of the
variables that systemd read from the unit's environment (the client passes their values, so they are no words of a command line), and
the directory of the unit's credentials. The server's processes are those of the account, not of root.

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


def clear(engine: str, name: str) -> None:
    """Takes a container of this name away; none is fine, and what cannot be taken away the start itself will say."""
    subprocess.run([engine, "rm", "--force", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def parse(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--name", "--user", "--group"):
        parser.add_argument(option, required=True)
    parser.add_argument("--drop", action="append", default=[], help="a variable that the server does not get")
    given = list(sys.argv[1:] if arguments is None else arguments)
    split = given.index("--") if "--" in given else len(given)
    asked = parser.parse_args(given[:split], argparse.Namespace(words=given[split + 1 :]))
    if len(asked.words) < 3:
        parser.error("after -- give the engine, run, its options, the image, and what to run in it")
    return asked


def main(arguments: Optional[Sequence[str]] = None) -> int:
    asked = parse(arguments)
    try:
        words = command(asked.words, inserted(os.environ, account(asked.user, asked.group), asked.drop))
        clear(words[0], asked.name)
        sys.stdout.flush()
        os.execvp(words[0], words)
    except NoStart as error:
        print(error, file=sys.stderr)
    except OSError as error:
        found = f"asked to start {asked.name} with {asked.words[0]}, found {error}"
        print(f"{found}; install it, or set sglang_container_engine", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
