# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module run as Ansible runs it, in check mode: arguments in, JSON out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils import basic

Run = Callable[..., dict[str, Any]]


def runner(main: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a module's main with the arguments that are not None, and returns what it prints before it exits."""

    def call(**arguments: Any) -> dict[str, Any]:
        given = {key: value for key, value in arguments.items() if value is not None}
        content = json.dumps({"ANSIBLE_MODULE_ARGS": {**given, "_ansible_check_mode": True}})
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", content.encode())
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        with pytest.raises(SystemExit):
            main()
        return json.loads(capsys.readouterr().out)

    return call
