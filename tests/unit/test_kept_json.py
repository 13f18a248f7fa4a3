# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier run kept may be damaged; that must never stop the next run."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.plugin_utils._record_filters import kept_json

KEPT: dict[str, tuple[Any, Any, Any]] = {
    "whole mapping": ('{"a": 1}', {}, {"a": 1}),
    "whole list": ('[{"a": 1}]', [], [{"a": 1}]),
    "nothing": ("", [], []),
    "undefined": (None, {}, {}),
    "cut": ('[{"a":', [], []),
    "a list where a mapping belongs": ("[]", {}, {}),
    "a mapping where a list belongs": ('{"a": 1}', [], []),
    "a bare word": ("null", {}, {}),
    "odd elements": ('[1, null, "x", {"a": 1}]', [], [{"a": 1}]),
}


@pytest.mark.parametrize("case", KEPT)
def test_damaged_text_gives_the_fallback(case: str) -> None:
    text, fallback, expected = KEPT[case]
    assert kept_json(text, fallback) == expected


def test_a_fallback_that_is_no_collection_is_refused_in_words() -> None:
    with pytest.raises(AnsibleFilterError, match="mapping or a list"):
        kept_json("{}", 5)


NEEDS = [('{"id": 1, "unit": "x"}', {"id": 1, "unit": "x"}), ('{"id": 1}', {}), ("{}", {}), ("", {})]


@pytest.mark.parametrize(("text", "expected"), NEEDS)
def test_a_record_that_lacks_something_is_none(text: str, expected: Any) -> None:
    assert kept_json(text, {}, needs=["id", "unit"]) == expected
