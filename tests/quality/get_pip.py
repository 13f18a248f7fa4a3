# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-test calls to bring pip into a new virtual environment, without a download from anywhere but pip's index.

Python carries a pip of its own (ensurepip); that one then installs what ansible-test asks for.
"""

import subprocess
import sys

# two flags that only the script which this one stands in for knows
NOT_FOR_PIP = ("--no-setuptools", "--no-wheel")


def main():
    # in a process of its own: ensurepip turns pip's configuration off in the process that it runs in
    subprocess.check_call([sys.executable, "-m", "ensurepip", "--upgrade", "--default-pip"])
    wanted = [argument for argument in sys.argv[1:] if argument not in NOT_FOR_PIP]
    return subprocess.call([sys.executable, "-m", "pip", "install", "--upgrade", *wanted])


if __name__ == "__main__":
    sys.exit(main())
