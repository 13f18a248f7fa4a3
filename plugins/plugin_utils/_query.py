# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions in JMESPath over audits, receipts and allocations. Private to this collection: may change at any time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ansible.errors import AnsibleFilterError

# a comparison by size with a text
_TEXT_AS_NUMBER = re.compile(r"(?:[<>]=?\s*'([\d.]+)'|'([\d.]+)'\s*[<>])")
# a number without the marks that JMESPath wants
_BARE_NUMBER = re.compile(r"[<>=!]=?\s*(\d[\d_.,]*)(?![\d`])")
# what a shell leaves of a number in backticks that it took for a command
_TAKEN_AWAY = re.compile(r"[<>=!]=?\s*[\])]")
# another variable behind the question, where several are given in one
_VARIABLE = re.compile(r"[A-Za-z_]\w*=(?!=)")
_INSTALL = "install it beside Ansible on the controller: pip install jmespath==1.1.0"


def query(data: Any, expression: Any) -> Any:
    """The answer of this JMESPath expression over the data; see the filter's documentation."""
    if not isinstance(expression, str) or not expression.strip():
        raise _error(expression, "no expression", "give one, for example hosts[?min_tokens < `200000`].name")
    try:
        jmespath = import_module("jmespath")
        exceptions = import_module("jmespath.exceptions")
    except ImportError:
        raise _error(expression, "no library jmespath in the Python of Ansible", _INSTALL) from None
    text = str(expression)
    number = next((found for match in _TEXT_AS_NUMBER.finditer(text) for found in match.groups() if found), None)
    if number is not None:
        raise _error(text, f"a comparison by size with the text '{number}'", f"write the number in backticks: `{number}`")
    try:
        return jmespath.search(text, _plain(data))
    except exceptions.ParseError as error:
        raise _error(text, _place(text, error), _advice(text)) from None
    except TypeError as error:
        do = "compare numbers with numbers; those of your own stand in backticks"
        raise _error(text, f"that values cannot be compared ({error})", do) from None
    except (exceptions.JMESPathError, ValueError) as error:
        raise _error(text, " ".join(str(error).split()), "see the functions and types of JMESPath, and what is null in this data") from None


def whole_question(asked: str, options: Sequence[str], variable: str) -> str:
    """The question as it was given by C(-e variable=question): of a value with blanks in it Ansible takes what comes before the first.

    ``options``: all C(-e) of the command line. A value in quotes, and one behind which only other variables stand, is whole already.
    """
    for option in reversed(options):
        name, _equals, rest = option.partition("=")
        behind = rest[len(asked) :].split()
        if name.strip() == variable and rest.startswith(asked) and any(not _VARIABLE.match(word) for word in behind):
            return rest
    return asked


def _plain(data: Any) -> Any:
    """Of JSON's own types alone: JMESPath asks a value for its class, and Ansible has classes of its own for texts and mappings."""
    try:
        return json.loads(json.dumps(data, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise AnsibleFilterError(
            f"query: asked a question of {type(data).__name__}, found that it is no JSON ({error}); give plain data"
        ) from None


def _place(text: str, error: Any) -> str:
    position = getattr(error, "lex_position", None)
    token = getattr(error, "token_value", None)
    if not isinstance(position, int) or not 0 <= position <= len(text):
        return " ".join(str(error).split())
    if position >= len(text) or token in (None, ""):
        return "that it ends where more must come"
    return f"{text[position : position + 20]!r} at character {position + 1}, where it cannot stand"


def _advice(text: str) -> str:
    if _TAKEN_AWAY.search(text):
        return "if there was a number in backticks, the shell took it away: put the whole in single quotes, or write \\` for each backtick"
    bare = _BARE_NUMBER.search(text)
    if bare:
        return (
            f"write the number in backticks, `{bare.group(1)}`; on a command line single quotes around the whole keep the shell from "
            "taking them away"
        )
    return "see jmespath.org; the whole stands in single quotes on a command line"


def _error(expression: Any, found: str, do: str) -> AnsibleFilterError:
    return AnsibleFilterError(f"query: asked for {str(expression)[:200]!r}, found {found}; {do}")
