# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""build_wheel.py VERSION OUT_DIR: writes the stand-in as a wheel that `pip install sglang==VERSION` accepts.

The file is sglang-VERSION+standin-py3-none-any.whl; the same inputs give the same bytes. Prints its path.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

from sglang.standin.eras import era_of

HERE = Path(__file__).resolve().parent
EPOCH = (2026, 1, 1, 0, 0, 0)


def build(version: str, out: Path) -> Path:
    """Writes the wheel of one version into `out` and returns its path. ValueError if it cannot imitate the version."""
    era_of(version)
    local = f"{version}+standin"
    info = f"sglang-{local}.dist-info"
    files = {str(path.relative_to(HERE)): path.read_bytes() for path in sorted((HERE / "sglang").rglob("*.py"))}
    files["sglang/version.py"] = f'__version__ = "{version}"\n'.encode()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: sglang\nVersion: {local}\nSummary: A stand-in for SGLang's start-up\nRequires-Python: >=3.9\n"
    ).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: standin\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"sglang-{local}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    return wheel


def _record(files: dict[str, bytes], own: str) -> bytes:
    rows: list[str] = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*rows, f"{own},,", ""]).encode()


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(build(sys.argv[1], Path(sys.argv[2])))
    except ValueError as error:
        print(f"build_wheel.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
