# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes docs/accuracy.md, from the data in this tree and from the results of the last `make differential`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
importlib.import_module("conftest")  # makes the collection importable

from accuracy import differential_section  # noqa: E402
from accuracy.document import DOCUMENT, document  # noqa: E402

DOCUMENT.write_text(document(differential_section.section()), encoding="utf-8")
print(f"{DOCUMENT} is written")
