# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts SGLang's server with the API key of a systemd credential.

    PYTHON launch_server.py FLAGS...        in place of   PYTHON -m sglang.launch_server FLAGS... --api-key KEY

SGLang takes its key from the command line alone, which every user of a host can read, and up to its newest release prints it with its
arguments. Here the key comes from $CREDENTIALS_DIRECTORY/api_key, is given to SGLang's argument parser inside the process, and is
struck out of all that this process and its children print. It is in no command line, in no environment and in no log.

Standard library only, Python 3.9 or later. SGLang starts its ranks as new interpreters that read this file again under another name:
they print through it as well.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Optional

FLAG = "--api-key"
CREDENTIAL = "api_key"
STRUCK_OUT = "******"


class NoKey(Exception):
    """There is no key to start with; the text says what was asked, what was found, and what to do."""


def read_key(directory: Optional[str]) -> str:
    """The key in the credential: one line, white space around it does not count."""
    if not directory:
        raise NoKey("asked for the API key, found no CREDENTIALS_DIRECTORY; start this by a unit with LoadCredential=api_key:FILE")
    path = os.path.join(directory, CREDENTIAL)
    try:
        with open(path, encoding="utf-8") as file:
            key = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoKey(f"asked for the API key in {path}, found {error}; give one line of text in the file of LoadCredential=") from error
    lines = len(key.splitlines())
    if lines != 1:
        raise NoKey(f"asked for one line with the API key in {path}, found {lines} lines; write the key alone into its file")
    return key


def spellings(key: str) -> list[str]:
    """The key as Python, JSON and plain text show it, the longest first."""
    return sorted({key, repr(key)[1:-1], json.dumps(key)[1:-1]}, key=len, reverse=True)


class Discreet:
    """A text stream that strikes words out of what is written to it; in all else it is the stream that it stands for."""

    def __init__(self, stream: Any, words: Sequence[str]) -> None:
        self._stream = stream
        self._words = words

    def write(self, text: str) -> int:
        told = text
        for word in self._words:
            told = told.replace(word, STRUCK_OUT)
        self._stream.write(told)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def strike_out(key: str) -> None:
    """From here on nothing of this process prints the key, whoever made its log handlers."""
    words = spellings(key)
    sys.stdout = Discreet(sys.stdout, words)
    sys.stderr = Discreet(sys.stderr, words)


def give_to_parser(key: str) -> None:
    """Lets each parser that has the flag read the key, as if it stood at the end of the command line."""
    read = argparse.ArgumentParser.parse_known_args

    def parse_known_args(parser: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        knows_it = FLAG in parser._option_string_actions
        # in one word: a key may begin with a dash
        return read(parser, [*words, f"{FLAG}={key}"] if knows_it else words, namespace)

    argparse.ArgumentParser.parse_known_args = parse_known_args  # type: ignore[method-assign,assignment]


def main() -> None:
    try:
        key = read_key(os.environ.get("CREDENTIALS_DIRECTORY"))
    except NoKey as problem:
        sys.exit(f"inferops.sglang: {problem}")
    strike_out(key)
    if __name__ == "__main__":
        give_to_parser(key)
        # not under another main module: the ranks are to read this file again, not that one
        runpy.run_module("sglang.launch_server", run_name="__main__")


if __name__ in ("__main__", "__mp_main__"):
    main()
