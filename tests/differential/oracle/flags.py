# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of a release as its own parser has them, and the speculative algorithms it can name."""

from __future__ import annotations

import argparse
from typing import Any


def known() -> dict[str, Any]:
    """``options``: one object for every option of the parser; ``algorithms``: the names that --speculative-algorithm may have."""
    from sglang.srt.server_args import ServerArgs
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    options = [_option(parser, action) for action in parser._actions if action.option_strings and action.dest != "help"]
    closed = next(option["choices"] for option in options if option["kept_as"] == "speculative_algorithm")
    # where the parser takes any name, a plugin may bring one; these are SGLang's own
    return {"options": options, "algorithms": closed or ["NEXTN", *(name for name in SpeculativeAlgorithm.__members__ if name != "NONE")]}


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> dict[str, Any]:
    return {
        "names": [name.lstrip("-") for name in action.option_strings],
        "kept_as": action.dest,
        "switch": action.nargs == 0,
        "bare": action.nargs in (0, "?", "*"),
        "choices": None if action.choices is None else [str(choice) for choice in action.choices],
        "refused": type(action).__name__ == "DeprecatedAction" and _refuses(parser, action),
        "deprecated": type(action).__name__.startswith("Deprecated") or "eprecated" in str(action.help)[:40],
    }


def _refuses(parser: argparse.ArgumentParser, action: argparse.Action) -> bool:
    """Whether an option that is in the parser only for what it says ends the server, as it did at first, or is ignored."""
    try:
        action(parser, argparse.Namespace(), None, action.option_strings[0])
    except (ValueError, SystemExit):
        return True
    return False
