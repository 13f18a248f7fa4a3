# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures out of a model's config.json, and the error for input that cannot be used. Private to this collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

Config = Mapping[str, Any]
# parts of a version, a post-release as the fourth
Release = tuple[int, ...]


class InputError(ValueError):
    """Input that cannot be planned with; the text says what was asked, what was found, and what to do."""

    def __init__(self, asked: str, found: str, advice: str) -> None:
        super().__init__(f"asked for {asked}; found {found}; {advice}")
        self.asked, self.found, self.advice = asked, found, advice


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# No count of any model comes near this, and no number of layers near the second: more is a broken file, and would take forever.
MOST = 10**9
MOST_LAYERS = 10_000
_LAYER_KEYS = ("num_hidden_layers", "num_nextn_predict_layers", "num_target_layers")

# Where configurations write 0 for what the model does not have.
_ZERO_IS_NONE = (
    "attention_chunk_size",
    "index_kpool",
    "num_nextn_predict_layers",
    "sliding_window",
    "sliding_window_size",
    "v_head_dim",
    "window_size",
)

_SHOWN = 120
_ADVICE = "give the config.json of a complete checkpoint, unaltered"


def shown(value: object) -> str:
    """A value out of a configuration as any terminal can print it: in ASCII, and cut where it is long."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):
        # values nested without an end, or numbers of more digits than Python prints
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def optional_number(config: Config, key: str, most: float = MOST) -> Optional[float]:
    """A number above 0 that need not be whole; None where there is none; raises InputError for anything else."""
    value = config.get(key)
    if value is None:
        return None
    # NaN fails both comparisons
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= most:
        return value
    raise InputError(f"{key} of a config.json", f"{shown(value)}, which is no number above 0 and up to {most}", _ADVICE)


def optional_list(config: Config, key: str) -> Optional[list[Any]]:
    """A list, None where there is none; raises InputError for anything else."""
    value = config.get(key)
    if value is None or isinstance(value, list):
        return value
    raise InputError(f"{key} of a config.json", f"{shown(value)}, which is no list", _ADVICE)


def optional_mapping(config: Config, key: str) -> Optional[Config]:
    """A mapping, None where there is none; raises InputError for anything else."""
    value = config.get(key)
    if value is None or isinstance(value, Mapping):
        return value
    raise InputError(f"{key} of a config.json", f"{shown(value)}, which is no mapping", _ADVICE)


def optional_text(config: Config, key: str) -> Optional[str]:
    """A string, None where there is none; raises InputError for anything else."""
    value = config.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"{key} of a config.json", f"{shown(value)}, which is no string", _ADVICE)


def optional_count(config: Config, key: str, what: str = "a config.json") -> Optional[int]:
    """A positive whole number, None where there is none; raises InputError for anything else, which must not pass for none."""
    value = config.get(key)
    if value is None or (is_int(value) and value == 0 and key in _ZERO_IS_NONE):
        return None
    most = MOST_LAYERS if key in _LAYER_KEYS else MOST
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most:
        return value
    raise InputError(f"{key} of {what}", f"{shown(value)}, which is no whole number from 1 to {most}", _ADVICE)


def required_count(config: Config, key: str, what: str) -> int:
    value = optional_count(config, key, what)
    if value is None:
        raise InputError(f"{key} of {what}", shown(config.get(key)), "give the config.json of a complete checkpoint")
    return value


def head_size(config: Config, what: str) -> int:
    """Elements of one attention head: head_dim, else the share of a head in hidden_size."""
    heads = required_count(config, "num_attention_heads", what)
    size = optional_count(config, "head_dim")
    if size is not None:
        return size
    hidden = required_count(config, "hidden_size", what)
    if hidden < heads:
        raise InputError(
            f"the size of the attention heads of {what}",
            f"num_attention_heads {heads} with hidden_size {hidden} and no head_dim",
            _ADVICE,
        )
    return hidden // heads
