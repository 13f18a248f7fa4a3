# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes this checkout importable and loadable as the collection inferops.sglang, for every test layer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / ".cache" / "collections"
LINK = TREE / "ansible_collections" / "inferops" / "sglang"

if not LINK.exists():
    LINK.parent.mkdir(parents=True, exist_ok=True)
    LINK.symlink_to(ROOT, target_is_directory=True)
sys.path.insert(0, str(TREE))
os.environ["ANSIBLE_COLLECTIONS_PATH"] = str(TREE)
# molecule and ansible-playbook run tools that stand beside the interpreter
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

from ansible.plugins.loader import init_plugin_loader  # noqa: E402

# before any test imports ansible_collections: a plain namespace import would hide the collection from the plugin loader
init_plugin_loader([str(TREE)])
