# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of pip and uv, and what their output means. The output is that of the programs themselves."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._release import ReleaseError, Request
from ansible_collections.inferops.sglang.plugins.module_utils._release_command import (
    Installer,
    choose_installer,
    environment_text,
    requirements_text,
    script_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._release_output import os_release, phase_of, trouble_of, venv_package

REQUIREMENTS = [
    ({}, "sglang==0.5.23\n"),
    ({"index_url": "https://me:word@here"}, "--index-url https://me:word@here\nsglang==0.5.23\n"),
    ({"extra_index_url": "https://cuda", "requirements": ("a<2", "b")}, "--extra-index-url https://cuda\nsglang==0.5.23\na<2\nb\n"),
    # a wheelhouse is all there is
    ({"wheelhouse": "/w", "index_url": "https://here"}, "--no-index\n--find-links /w\nsglang==0.5.23\n"),
    ({"wheel": "/a b/sglang-0.5.23+x-py3-none-any.whl"}, "sglang @ file:///a%20b/sglang-0.5.23%2Bx-py3-none-any.whl\n"),
    ({"git": "git+https://here/r@c#subdirectory=python"}, "git+https://here/r@c#subdirectory=python\n"),
    ({"lock_file": "/l.txt", "wheelhouse": "/w"}, "--no-index\n--find-links /w\n-r /l.txt\n"),
]


@pytest.mark.parametrize(("options", "text"), REQUIREMENTS)
def test_where_to_look_and_what_to_install(options, text):
    assert requirements_text(Request("0.5.23", **options)) == text


PIP = (
    "/usr/bin/python3 -m venv --without-pip /r/e > /dev/null\n/r/e/bin/python -m ensurepip --upgrade --default-pip > /dev/null\n"
    "echo '--- packages'\n"
    "/r/e/bin/python -m pip install --no-input --no-cache-dir --disable-pip-version-check --progress-bar off{hashes} "
    "--requirement /r/b/requirements.txt{limits}\nsync -f /r/e"
)
UV = (
    "/bin/uv venv --no-progress --no-python-downloads --python /usr/bin/python3 /r/e > /dev/null\necho '--- packages'\n"
    "/bin/uv pip install --python /r/e/bin/python --no-progress --compile-bytecode{hashes}{indexes} "
    "--requirement /r/b/requirements.txt{limits}\nsync -f /r/e"
)
NONE = {"hashes": "", "limits": "", "indexes": ""}
SCRIPTS = [
    (Installer("pip"), {}, PIP.format(**NONE)),
    (Installer("pip"), {"constraints": "/c d.txt"}, PIP.format(**{**NONE, "limits": " --constraint '/c d.txt'"})),
    (Installer("pip"), {"lock_file": "/l.txt"}, PIP.format(**{**NONE, "hashes": " --require-hashes"})),
    (Installer("uv", "/bin/uv"), {}, UV.format(**NONE)),
    (Installer("uv", "/bin/uv"), {"extra_index_url": "https://x"}, UV.format(**{**NONE, "indexes": " --index-strategy unsafe-best-match"})),
    (Installer("uv", "/bin/uv"), {"lock_file": "/l.txt"}, UV.format(**{**NONE, "hashes": " --require-hashes"})),
]


@pytest.mark.parametrize(("installer", "options", "script"), SCRIPTS)
def test_the_script_makes_fills_and_writes_to_the_disk(installer, options, script):
    assert script_of(Request("0.5.23", **options), "/r/e", "/r/b", installer) == script


INSTALLERS = [
    ("auto", "/bin/uv", Installer("uv", "/bin/uv")),
    ("auto", None, Installer("pip")),
    ("pip", "/bin/uv", Installer("pip")),
    ("uv", "/bin/uv", Installer("uv", "/bin/uv")),
]


@pytest.mark.parametrize(("asked", "uv", "installer"), INSTALLERS)
def test_which_installer_it_is(asked, uv, installer):
    assert choose_installer(Request("0.5.23", installer=asked), lambda _name: uv) == installer


def test_a_uv_that_is_asked_for_must_be_there():
    with pytest.raises(ReleaseError, match="found no uv in the path of the host; install it there, or ask for the installer pip"):
        choose_installer(Request("0.5.23", installer="uv"), lambda _name: None)


def test_the_environment_of_the_play_reaches_the_installer():
    given = {
        "HTTPS_PROXY": 'http://me:w"o$r@here',
        "https_proxy": "http://low",
        "PIP_CERT": "/c",
        "UV_CACHE_DIR": "/u",
        "PATH": "/bin",
        "X": "1",
    }
    assert environment_text("/r/b", given) == (
        'TMPDIR="/r/b/tmp"\nUV_CACHE_DIR="/u"\nLC_ALL="C.UTF-8"\nNO_COLOR="1"\nGIT_TERMINAL_PROMPT="0"\n'
        'HTTPS_PROXY="http://me:w\\"o\\$r@here"\nPATH="/bin"\nPIP_CERT="/c"\nhttps_proxy="http://low"\n'
    )


PHASES = [
    ([], "environment", "makes the environment"),
    (["--- packages"], "resolves", "looks for the packages"),
    (["--- packages", "Collecting torch==2.9.1"], "fetches", "fetches torch"),
    (["--- packages", "  Downloading nvidia_cublas_cu12-12.8.4.1-py3-none-manylinux_2_27_x86_64.whl (594.3 MB)"], "fetches",
     "fetches nvidia_cublas_cu12"),
    (["--- packages", "Processing /srv/wheels/sglang-0.5.23+standin-py3-none-any.whl"], "fetches", "fetches sglang"),
    (["--- packages", "Collecting sglang@ git+https://here/r@c"], "fetches", "fetches sglang"),
    (["--- packages", "  Running command git clone --filter=blob:none --quiet https://here/r /tmp/x"], "fetches", "fetches the source"),
    (["--- packages", "   Updating https://here/r (c)"], "fetches", "fetches the source"),
    (["--- packages", "Collecting x", "Building wheels for collected packages: sgl-kernel, b"], "builds", "builds sgl-kernel"),
    (["--- packages", "  Building wheel for outlines_core (pyproject.toml): started"], "builds", "builds outlines_core"),
    (["--- packages", "   Building sglang @ git+file:///srv/r@c"], "builds", "builds sglang"),
    (["--- packages", "Installing collected packages: mpmath, numpy, torch"], "installs", "installs 3 packages"),
    (["--- packages", "Resolved 143 packages in 3.2s"], "fetches", "fetches 143 packages"),
    (["--- packages", "Resolved 1 package in 4ms", "Prepared 1 package in 12ms"], "installs", "installs 1 package"),
    (["--- packages", "Prepared 143 packages in 1m 2s", "Installed 143 packages in 4.12s"], "compiles", "compiles"),
    (["--- packages", "Successfully installed a-1 b-2", "", "[notice] A new release of pip"], "finishes", "writes to the disk"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "kind", "text"), PHASES)
def test_how_far_an_installer_is(lines, kind, text):
    phase = phase_of(lines)
    assert (phase.kind, phase.text) == (kind, text)


REQUEST = Request("0.5.23", index_url="https://me:word@here/wheels", lock_file="/l.txt")
LOOK = "compare the lock file /l.txt with where the packages come from; what came is not what was locked"
REACH = (
    "give sglang_index_url an index that it reaches, the play's environment a proxy, or sglang_wheelhouse a directory of wheels"
)
TROUBLES = {
    "pip, no release": (
        """ERROR: Could not find a version that satisfies the requirement sglang==0.5.99 (from versions: 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
ERROR: No matching distribution found for sglang==0.5.99""",
        "No matching distribution found for sglang==0.5.99 (from versions: ..., 0.2, 0.3, 0.4, 0.5, 0.6)",
        "give sglang_version a release that https://here/wheels has, or add what it lacks",
    ),
    "pip, a dependency of a requirement": (
        """ERROR: Could not find a version that satisfies the requirement torch==2.9.1 (from sglang) (from versions: none)
ERROR: No matching distribution found for torch==2.9.1 (from sglang)""",
        "No matching distribution found for torch==2.9.1 (from versions: none)",
        "give sglang_version a release that https://here/wheels has, or add what it lacks",
    ),
    "uv, no release": (
        """Using Python 3.11.2 environment at: v
error: No solution found when resolving dependencies
  cause: Because there is no version of sglang==0.5.99 and you require sglang==0.5.99, we can conclude that your requirements are \
unsatisfiable.""",
        "no solution: Because there is no version of sglang==0.5.99 and you require sglang==0.5.99, we can conclude that your requirements "
        "are unsatisfiable",
        "give versions that https://here/wheels has and that go together, or ask for the installer pip",
    ),
    "an older uv, no release": (
        """  \N{MULTIPLICATION SIGN} No solution found when resolving dependencies:
  ╰─▶ Because there is no version of sglang==0.5.99 and you require
      sglang==0.5.99, we can conclude that your requirements are unsatisfiable.""",
        "no solution: Because there is no version of sglang==0.5.99 and you require sglang==0.5.99, we can conclude that your requirements "
        "are unsatisfiable",
        "give versions that https://here/wheels has and that go together, or ask for the installer pip",
    ),
    "pip, no way there": (
        """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPS
object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/sglang/
ERROR: Could not find a version that satisfies the requirement sglang==0.5.23 (from versions: none)
ERROR: No matching distribution found for sglang==0.5.23""",
        "that the host does not reach https://here/wheels (Connection refused)",
        REACH,
    ),
    "uv, no name service": (
        """error: Request failed after 3 retries in 8.2s
  cause: Failed to fetch: https://nonexist.invalid/wheels/sglang/
  cause: dns error
  cause: failed to lookup address information: Name or service not known""",
        "that the host does not reach https://here/wheels (dns error)",
        REACH,
    ),
    "an index by http": (
        """WARNING: The repository located at here is not a trusted or secure host and is being ignored.
ERROR: No matching distribution found for sglang==0.5.23""",
        "The repository located at here is not a trusted or secure host",
        "give the index by https, or the play's environment PIP_TRUSTED_HOST",
    ),
    "an index that asks who one is": (
        "ERROR: HTTP error 403 while getting https://here/wheels\nERROR: 403 Client Error: Forbidden for url: https://here/wheels",
        "ERROR: 403 Client Error: Forbidden for url: https://here/wheels",
        "look at user and password in the address of the index",
    ),
    "a full disk": (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "No space left on device",
        "free space there, or put sglang_root on a file system with more of it",
    ),
    "pip, another hash": (
        """ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, update them.
    torch==2.9.1 from https://here/torch-2.9.1.whl (from -r /l.txt (line 2)):
        Expected sha256 aaaa
             Got        bbbb""",
        "torch==2.9.1 with sha256 bbbb in place of aaaa",
        LOOK,
    ),
    "uv, another hash": (
        "error: Failed to read `beside @ x`\n  cause: Hash mismatch for `beside==1.0`\n\n"
        "Expected:\n  sha256:aaaa\n\nComputed:\n  sha256:bbbb",
        "beside==1.0 with sha256 bbbb in place of aaaa",
        LOOK,
    ),
    "uv, no hash": (
        "error: In `--require-hashes` mode, all requirements must have a hash, but none were provided for: sglang==0.5.23",
        "In `--require-hashes` mode, all requirements must have a hash, but none were provided for: sglang==0.5.23",
        "give every package in /l.txt a version and a hash",
    ),
    "an older Python": (
        "ERROR: Package 'sglang' requires a different Python: 3.9.2 not in '>=3.10'",
        "ERROR: Package 'sglang' requires a different Python: 3.9.2 not in '>=3.10'",
        "give sglang_python a Python that the release runs on",
    ),
    "an older Python, of the version asked": (
        """ERROR: Ignored the following versions that require a different python version: 0.5.22 Requires-Python >=3.9; \
0.5.23 Requires-Python >=3.10
ERROR: Could not find a version that satisfies the requirement sglang==0.5.23 (from versions: 0.4.1)
ERROR: No matching distribution found for sglang==0.5.23""",
        "0.5.23 Requires-Python >=3.10",
        "give sglang_python a Python that the release runs on",
    ),
    "limits against the release": (
        """ERROR: Cannot install sglang==0.5.23 because these package versions have conflicting dependencies.
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io""",
        "ERROR: Cannot install sglang==0.5.23 because these package versions have conflicting dependencies",
        "take out of constraints and requirements what contradicts the release",
    ),
    "no venv": (
        "/r/e/bin/python: No module named ensurepip",
        "that /usr/bin/python3 cannot make environments (No module named ensurepip)",
        "install the package python3-venv on the host, or ask for the installer uv",
    ),
    "no git": (
        "ERROR: Cannot find command 'git' - do you have 'git' installed and in your PATH?",
        "Cannot find command 'git' - do you have 'git' installed and in your PATH?",
        "install git on the host",
    ),
    "no such reference": (
        "  error: pathspec 'nothere' did not match any file(s) known to git\n  error: subprocess-exited-with-error",
        "pathspec 'nothere' did not match any file(s) known to git",
        "check the repository and the reference: https://here/wheels",
    ),
    "a build that fails": (
        "  ERROR: Failed building wheel for outlines_core\nFailed to build outlines_core\nERROR: Could not build wheels",
        "that the build of outlines_core failed",
        "look at the output for what its build lacks, mostly a compiler or headers",
    ),
    "something new": (
        "Collecting a\nERROR: the moon is full.\nWARNING: take care",
        "the moon is full",
        "look at the output of the installer",
    ),
    "braces and backslashes": ("ERROR: a {b} \\g<0>", "a {b} \\g<0>", "look at the output of the installer"),
    "nothing": ("", "it ended with exit code 1", "look at the output of the installer"),
}


@pytest.mark.parametrize("case", TROUBLES)
def test_why_an_installer_gave_up(case):
    output, found, do = TROUBLES[case]
    trouble = trouble_of(output.splitlines(), REQUEST, {"ID": "debian"}, "it ended with exit code 1")
    assert (trouble.found, trouble.do) == (found, do)


DISTRIBUTIONS = [
    ("ID=debian\n", "/usr/bin/python3", "the package python3-venv"),
    ('ID=ubuntu\nID_LIKE="debian"\n', "/usr/bin/python3.12", "the package python3.12-venv"),
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "/usr/bin/python3.12", "the packages python3.12-libs and python3.12-pip-wheel"),
    ("ID=fedora\n", "/usr/bin/python3", "the packages python3-libs and python3-pip-wheel"),
    ('NAME="Arch"\nID=arch\n', "/usr/bin/python3", "the package that brings Python's module venv"),
    ("", "/opt/own/bin/py", "the package that brings Python's module venv"),
]


@pytest.mark.parametrize(("text", "python", "package"), DISTRIBUTIONS)
def test_the_package_that_brings_venv(text, python, package):
    assert venv_package(os_release(text), python) == package
