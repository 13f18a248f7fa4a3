# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fills an environment, uv or pip, as a script and a file of requirements. Private to this collection: may change at any time.

All that says from where to install stands in the file, which only root can read: a package index may be given with a password.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from ansible_collections.inferops.sglang.plugins.module_utils._release import ReleaseError, Request

REQUIREMENTS = "requirements.txt"
PACKAGES = "--- packages"  # the line in the output from which on the packages are installed
ENVIRONMENT = "environment"
# What a play sets with C(environment) for its tasks has to reach the installer, too, and what git, a proxy or a compiler reads.
PASSED_PREFIXES = ("PIP_", "UV_", "GIT_", "SETUPTOOLS_SCM_")
PASSED_NAMES = (
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("ssl_cert_file", "ssl_cert_dir", "requests_ca_bundle", "curl_ca_bundle"),
    *("path", "home", "ssh_auth_sock", "cuda_home", "torch_cuda_arch_list", "max_jobs", "cc", "cxx"),
)


@dataclass(frozen=True)
class Installer:
    """C(uv) or C(pip), and where uv is."""

    name: str
    program: str = ""


def choose_installer(request: Request, which: Callable[[str], Optional[str]]) -> Installer:
    """What the request asks for, or uv where it is there. Raises ReleaseError for a uv that is not."""
    uv = which("uv") if request.installer != "pip" else None
    if uv:
        return Installer("uv", uv)
    if request.installer == "uv":
        raise ReleaseError("the installer uv", "no uv in the path of the host", "install it there, or ask for the installer pip")
    return Installer("pip")


def requirements_text(request: Request) -> str:
    """The file of requirements: where to look, and what to install."""
    lines = []
    if request.wheelhouse:
        lines += ["--no-index", f"--find-links {request.wheelhouse}"]
    else:
        lines += [f"--index-url {request.index_url}"] if request.index_url else []
        lines += [f"--extra-index-url {request.extra_index_url}"] if request.extra_index_url else []
    if request.lock_file:
        lines.append(f"-r {request.lock_file}")
    else:
        lines += [_requirement(request), *request.requirements]
    return "\n".join(lines) + "\n"


def _requirement(request: Request) -> str:
    if request.wheel:
        return f"sglang @ {Path(request.wheel).as_uri()}"
    if request.git:
        return request.git
    return f"sglang=={request.version}"


def script_of(request: Request, path: str, build: str, installer: Installer) -> str:
    """Shell lines that make the environment; the last one brings it to the disk before it can be marked."""
    *make, install = _commands(request, path, f"{build}/{REQUIREMENTS}", installer)
    # what is wrong goes to the other stream; how pip installs itself would look like how it installs SGLang
    quiet = [f"{shlex.join(command)} > /dev/null" for command in make]
    return "\n".join([*quiet, *(shlex.join(command) for command in (["echo", PACKAGES], install, ["sync", "-f", path]))])


def _commands(request: Request, path: str, requirements: str, installer: Installer) -> list[list[str]]:
    limits = ["--constraint", request.constraints] if request.constraints else []
    hashes = ["--require-hashes"] if request.lock_file else []
    if installer.name == "pip":
        python = f"{path}/bin/python"
        install = [python, "-m", "pip", "install", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"]
        return [
            # pip comes in a step of its own: venv would keep to itself why that fails
            [request.python, "-m", "venv", "--without-pip", path],
            [python, "-m", "ensurepip", "--upgrade", "--default-pip"],
            [*install, *hashes, "--requirement", requirements, *limits],
        ]
    # The service's user cannot write into the environment: compiled now or at every start. And as pip does, the best version of
    # all indexes counts, for an index of CUDA builds holds old versions of everything else, too.
    install = [installer.program, "pip", "install", "--python", f"{path}/bin/python", "--no-progress", "--compile-bytecode"]
    indexes = ["--index-strategy", "unsafe-best-match"] if request.extra_index_url else []
    make = [installer.program, "venv", "--no-progress", "--no-python-downloads", "--python", request.python, path]
    return [make, [*install, *hashes, *indexes, "--requirement", requirements, *limits]]


def environment_text(build: str, given: Mapping[str, str]) -> str:
    """The environment of the script: what the play's own environment says to installers, and temporary files where there is room."""
    passed = {name: value for name, value in sorted(given.items()) if name.startswith(PASSED_PREFIXES) or name.lower() in PASSED_NAMES}
    # beside the environment: wheels of gigabytes do not fit into every /tmp, and uv links files in place of copying them
    own = {"TMPDIR": f"{build}/tmp", "UV_CACHE_DIR": f"{build}/cache", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"}
    return "".join(f"{name}={_quoted(value)}\n" for name, value in {**own, **passed}.items() if "\n" not in value)


def _quoted(value: str) -> str:
    """A value in systemd's environment files."""
    escaped = value
    for sign in '\\"$`':
        escaped = escaped.replace(sign, "\\" + sign)
    return f'"{escaped}"'
