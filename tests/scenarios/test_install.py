# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments on a host with systemd, pip, uv and git: built, left alone, found broken, killed half-way, linked and pruned.

The module is called as a task would call it. What it installs is the stand-in engine and a package of nothing, all from wheels.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.host import ROOT, Host, environment

NAME = "install"
UV = "0.13.9"
OLD, NEW = "0.5.12.post1", "0.5.23"
WHEEL = f"/srv/wheels/sglang-{NEW}+standin-py3-none-any.whl"
# An interpreter that waits: as long as this file is there, nothing goes on.
SLOW, GATE = "/srv/slow/python3.11", "/run/slow"
SLOW_TEXT = f'#!/bin/sh\nwhile [ -e {GATE} ]; do sleep 0.1; done\nexec /usr/bin/python3 "$@"\n'
# A project of its own build: nothing but Python is needed to make its wheel.
BACKEND = """
import zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "sglang-0.5.24.dev3-py3-none-any.whl"
    info = "sglang-0.5.24.dev3.dist-info"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as wheel:
        wheel.writestr("sglang/__init__.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: sglang\\nVersion: 0.5.24.dev3\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "sglang"
version = "0.5.24.dev3"
"""


@dataclass
class Call:
    """What one call of the module gave, and what was shown at the terminal meanwhile."""

    result: dict[str, Any]
    shown: list[str]

    @property
    def path(self) -> str:
        return self.result["release"]["path"]

    @property
    def error(self) -> str:
        assert self.result.get("failed") or "msg" in self.result, self.result
        return self.result["msg"]


def argv(host: Host, options: dict[str, Any], *more: str) -> list[str]:
    return ["ansible", NAME, "-i", str(host.inventory), "-m", "inferops.sglang.release", "-a", json.dumps(options), *more]


def read_call(out: str, errors: str) -> Call:
    found = re.search(r"=> (\{.*\})", out, re.DOTALL)
    assert found, out + errors
    return Call(json.loads(found.group(1)), [line for line in errors.splitlines() if line.startswith(f"[{NAME}]")])


def call(host: Host, *more: str, **options: Any) -> Call:
    done = subprocess.run(argv(host, options, *more), env=host.environment, capture_output=True, text=True, check=False)
    return read_call(done.stdout, done.stderr)


def install(host: Host, *more: str, **options: Any) -> Call:
    """A call that asks for an environment under /opt/NAME, from the wheels, with uv unless pip is asked."""
    return call(host, *more, **{"version": NEW, "wheelhouse": "/srv/wheels", "installer": "uv", **options})


@contextmanager
def started(host: Host, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The same, begun and held at its first step, when its first line was shown."""
    asked = {"version": NEW, "wheelhouse": "/srv/wheels", "installer": "pip", "python": SLOW, **options}
    host.shell(f"touch {GATE}")
    process = subprocess.Popen(argv(host, asked), env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert any(line.startswith(f"[{NAME}]") for line in process.stderr)
        yield process
    finally:
        host.shell(f"rm -f {GATE}")
        process.kill()
        process.communicate()


def finish(host: Host, process: subprocess.Popen[str]) -> Call:
    host.shell(f"rm -f {GATE}")
    return read_call(*process.communicate(timeout=60))


def unit_pattern(root: str) -> str:
    return f"'sglang-build{root.replace('/', '-')}-*'"


def builds(host: Host, root: str) -> int:
    """How many builds there ever were under a root, from the journal."""
    unit = f"sglang-build{root.replace('/', '-')}-"
    return int(host.shell(f"journalctl -o cat | grep -c '^Started {unit}' || true"))


def package(out: Path, version: str) -> Path:
    """A wheel of nothing, called beside."""
    info = f"beside-{version}.dist-info"
    path = out / f"beside-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in (
            (f"{info}/METADATA", f"Metadata-Version: 2.1\nName: beside\nVersion: {version}\n"),
            (f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            (f"{info}/RECORD", ""),
        ):
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return path


def fetch_uv(out: Path) -> None:
    """The program uv, from its wheel; kept between runs."""
    kept = ROOT / ".cache/uv" / UV
    if not any(kept.glob("*.whl")):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "-d", kept, f"uv=={UV}"]
        subprocess.run(pip, check=True)
    with zipfile.ZipFile(next(kept.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/scripts/uv"))
        (out / "uv").write_bytes(wheel.read(name))
    (out / "uv").chmod(0o755)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One host with wheels, uv, a repository and a small disk; gone afterwards."""
    work = tmp_path_factory.mktemp("install")
    for folder in ("wheels", "uv"):
        (work / folder).mkdir()
    for version in (OLD, NEW):
        subprocess.run([sys.executable, ROOT / "tests/engine/standin/build_wheel.py", version, work / "wheels"], check=True)
    for version in ("1.0", "2.0"):
        package(work / "wheels", version)
    fetch_uv(work / "uv")
    variables = {**environment("infopr", "10.79.21"), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    hosts = ROOT / "tests/hosts/hosts"
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        binds = ["--bind-ro", f"{work / 'wheels'}:/srv/wheels", "--bind-ro", f"{work / 'uv'}:/srv/uv"]
        subprocess.run([hosts, "up", NAME, *binds, "--tmpfs", "/srv/small:24M"], env=variables, check=True)
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        found = Host(NAME, inventory, variables)
        found.shell("ln -s /srv/uv/uv /usr/local/bin/uv; mkdir -p /srv/slow /srv/files; printf '[global]\\nretries = 1\\n' > /etc/pip.conf")
        found.shell(f"cat > {SLOW} <<'TEXT'\n{SLOW_TEXT}TEXT\nchmod 755 {SLOW}")
        yield found
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


def test_fresh_then_unchanged_then_another_version_and_back(host: Host) -> None:
    root = "/opt/fresh"
    planned = install(host, "--check", root=root, installer="pip")
    assert (planned.result["changed"], planned.result["release"]["reason"], planned.shown) == (True, "it is not built yet", [])
    assert host.shell(f"ls -d {root}", check=False) == ""

    fresh = install(host, root=root, installer="pip")
    assert (fresh.result["changed"], fresh.path) == (True, planned.path)
    assert re.fullmatch(rf"\[{NAME}\] SGLang {NEW} \| makes the environment \| \d+ s", fresh.shown[0]), fresh.shown
    assert re.fullmatch(rf"\[{NAME}\] SGLang {NEW} \| is installed \| (\d+ min )?\d+ s", fresh.shown[-1]), fresh.shown
    assert fresh.result["release"] == {"complete": True, "kind": "", "path": fresh.path, "reason": "", "version": f"{NEW}+standin"}
    assert host.shell(f"{fresh.result['python']} -c 'import sglang; print(sglang.__version__)'") == NEW
    mark = json.loads(host.read(f"{fresh.path}/.complete"))
    assert (mark["version"], mark["python"], mark["installer"]) == (f"{NEW}+standin", "3.11", "pip")
    assert mark["request"]["wheelhouse"] == "/srv/wheels"
    assert f"sglang-{NEW}+standin" in mark["distributions"]
    # nothing is left of the build but its output in the journal
    assert host.shell(f"ls -A {root}") == fresh.path.rsplit("/", 1)[1]
    assert host.shell("systemctl list-units --all --plain --no-legend 'sglang-build*'") == ""
    assert "Successfully installed sglang" in host.shell(f"journalctl -o cat -t sglang-build-opt-fresh-{fresh.path.rsplit('/', 1)[1]}")

    before = host.shell(f"find {root} -printf '%p %T@ %C@\\n' | sort")
    again = install(host, root=root, installer="pip")
    assert (again.result["changed"], again.path, again.shown) == (False, fresh.path, [])
    assert host.shell(f"find {root} -printf '%p %T@ %C@\\n' | sort") == before

    other = install(host, root=root, installer="pip", version=OLD)
    assert (other.result["changed"], other.result["release"]["version"]) == (True, f"{OLD}+standin")
    back = install(host, root=root, installer="pip")
    assert (back.result["changed"], back.path) == (False, fresh.path)
    assert builds(host, root) == 2


def test_uv_is_taken_where_it_is_and_compiles_what_the_service_cannot(host: Host) -> None:
    made = install(host, root="/opt/uv", installer="auto")
    assert json.loads(host.read(f"{made.path}/.complete"))["installer"] == "uv"
    assert host.shell(f"find {made.path}/lib -path '*sglang/__pycache__/launch_server*.pyc'")
    assert host.shell("ls -A /opt/uv") == made.path.rsplit("/", 1)[1]
    host.shell("rm /usr/local/bin/uv")
    try:
        # what is built already needs no installer
        assert install(host, root="/opt/uv", installer="auto").result["changed"] is False
        assert install(host, root="/opt/none").error == (
            "asked for the installer uv, found no uv in the path of the host; install it there, or ask for the installer pip"
        )
    finally:
        host.shell("ln -s /srv/uv/uv /usr/local/bin/uv")


REFUSED = {
    "no such release": (
        {"version": "0.5.99", "installer": "pip"},
        r"asked for SGLang 0\.5\.99 in /opt/refused/0\.5\.99-[0-9a-f]{8}, found No matching distribution found for sglang==0\.5\.99 "
        r"\(from versions: 0\.5\.12\.post1\+standin, 0\.5\.23\+standin\); give sglang_version a release that /srv/wheels has, or add "
        r"what it lacks\. The half-made environment is removed and the service is untouched\. The installer's output: "
        r"journalctl _SYSTEMD_INVOCATION_ID=[0-9a-f]{32}",
    ),
    "no such release, uv": (
        {"version": "0.5.99"},
        r"found no solution: Because there is no version of sglang==0\.5\.99 and you require sglang==0\.5\.99, we can conclude that "
        r"your requirements are unsatisfiable; give versions that /srv/wheels has and that go together, or ask for the installer pip\..*",
    ),
    "another version in the wheel": (
        {"version": "0.5.22", "wheel": WHEEL},
        rf"asked for SGLang 0\.5\.22, found 0\.5\.23\+standin in {re.escape(WHEEL)}; set sglang_version to 0\.5\.23, the version of what "
        r"is installed: the plan depends on it\. The half-made environment is removed and the service is untouched\.",
    ),
    "a full disk": (
        {"root": "/srv/small", "installer": "pip"},
        r"found No space left on device; free space there, or put sglang_root on a file system with more of it\. The half-made .*",
    ),
    "too little time": (
        {"python": SLOW, "timeout": 1, "installer": "pip"},
        r"found that it was ended after 1 s, which is all the time it was given; give sglang_install_timeout more than 1 seconds\..*",
    ),
    "no network": (
        {"wheelhouse": "", "index_url": "https://me:secret@10.79.21.1:9/wheels", "installer": "pip"},
        r"found that the host does not reach https://10\.79\.21\.1:9/wheels \(Connection refused\); give sglang_index_url .*",
    ),
    "no such repository": (
        {"version": "0.5.24", "git": "git+file:///srv/none.git@main", "installer": "pip"},
        r"found .*/srv/none\.git.* does not .*; check the repository and the reference: git\+file:///srv/none\.git@main\. .*",
    ),
    "no such constraints": (
        {"constraints": "/srv/none.txt"},
        r"asked for the constraints /srv/none\.txt, found that it cannot be read \(No such file or directory\); "
        r"put the file there on the host",
    ),
    "no such wheelhouse": (
        {"wheelhouse": "/srv/none"},
        r"asked for the wheelhouse /srv/none, found no such directory on the host; put the wheels there",
    ),
    "no such interpreter": (
        {"python": "/usr/bin/python3.99"},
        r"asked for an environment of the interpreter /usr/bin/python3\.99, found no program there; "
        r"install that Python on the host, or give the path of another one",
    ),
    "two sources": (
        {"wheel": WHEEL, "git": "git+file:///srv/none.git"},
        r"asked for wheel and git, found that each of them says where SGLang comes from; give one of them",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_installed_is_told_in_full_and_leaves_nothing(host: Host, case: str) -> None:
    options, message = REFUSED[case]
    root = options.get("root", "/opt/refused")
    if options.get("python") == SLOW:
        host.shell(f"touch {GATE}")
    try:
        refused = install(host, **{"root": root, **options})
    finally:
        host.shell(f"rm -f {GATE}")
    assert re.search(message + "$", refused.error, re.DOTALL), refused.error
    assert host.shell(f"ls -A {root}", check=False) == ""
    assert host.shell("systemctl list-units --all --plain --no-legend 'sglang-build*'") == ""
    assert "secret" not in refused.error


def test_without_venv_the_package_that_is_missing_is_named(host: Host) -> None:
    host.shell("mv /usr/lib/python3.11/ensurepip /srv/ensurepip")
    try:
        refused = install(host, root="/opt/refused", installer="pip")
    finally:
        host.shell("mv /srv/ensurepip /usr/lib/python3.11/ensurepip")
    assert (
        "found that /usr/bin/python3 cannot make environments (No module named ensurepip); "
        "install the package python3-venv on the host, or ask for the installer uv." in refused.error
    )


def test_a_lock_file_is_installed_with_its_hashes_and_nothing_else(host: Host) -> None:
    sums = host.shell("cd /srv/wheels && sha256sum *").splitlines()
    digest = {line.split()[1]: line.split()[0] for line in sums}
    lines = [f"sglang=={NEW}+standin --hash=sha256:{digest[WHEEL.rsplit('/', 1)[1]]}", "beside==1.0 --hash=sha256:{beside}"]
    right = digest["beside-1.0-py3-none-any.whl"]

    def write(beside: str) -> None:
        host.shell(f"printf '%s\\n' '{lines[0]}' '{lines[1].format(beside=beside)}' > /srv/files/lock.txt")

    write(right)
    locked = install(host, root="/opt/lock", lock_file="/srv/files/lock.txt", installer="pip")
    assert "beside-1.0" in json.loads(host.read(f"{locked.path}/.complete"))["distributions"]
    write("0" * 64)
    for installer in ("pip", "uv"):
        wrong = install(host, root="/opt/lock", lock_file="/srv/files/lock.txt", installer=installer)
        found = f"found beside==1.0 with sha256 {right} in place of {'0' * 64}; compare the lock file /srv/files/lock.txt with where"
        assert found in wrong.error, wrong.error
    # another content was another request: the environment of the first one is as it was
    assert host.shell("ls /opt/lock") == locked.path.rsplit("/", 1)[1]
    host.shell(f"echo 'sglang=={NEW}' > /srv/files/lock.txt")
    bare = install(host, root="/opt/lock", lock_file="/srv/files/lock.txt", installer="pip")
    assert "give every package in /srv/files/lock.txt a version and a hash" in bare.error


def test_other_content_of_the_same_files_is_another_environment(host: Host) -> None:
    wheel = f"/srv/files/{WHEEL.rsplit('/', 1)[1]}"
    host.shell(f"echo 'beside<2' > /srv/files/limits.txt; cp {WHEEL} {wheel}")
    asked = {"root": "/opt/content", "constraints": "/srv/files/limits.txt", "requirements": ["beside"], "wheel": wheel}
    first = install(host, **asked)
    assert "beside-1.0" in json.loads(host.read(f"{first.path}/.complete"))["distributions"]
    host.shell("echo 'beside>=2' > /srv/files/limits.txt")
    second = install(host, **asked)
    assert "beside-2.0" in json.loads(host.read(f"{second.path}/.complete"))["distributions"]
    host.shell(f"python3 -c \"import zipfile; zipfile.ZipFile('{wheel}', 'a').writestr('sglang/patched.py', '')\"")
    third = install(host, **asked)
    assert host.shell(f"ls {third.path}/lib/python3.11/site-packages/sglang/patched.py")
    assert len({first.path, second.path, third.path}) == 3
    assert install(host, **asked).result["changed"] is False


SITE = "lib/python3.11/site-packages"
BROKEN = {
    "unfinished": ("rm {path}/.complete", "it was never finished: there is no .complete in it"),
    "unreadable": ("echo '[]' > {path}/.complete", "its .complete cannot be read (it does not say what is inside)"),
    "interpreter": ("ln -sfn /usr/bin/python3.9 {path}/bin/python", "its interpreter is gone: bin/python leads to /usr/bin/python3.9"),
    "packages": (f"rm -r {{path}}/{SITE}/beside-1.0.dist-info", "1 of its 2 packages are missing or others by now (beside-1.0)"),
    "version": (
        f"mv {{path}}/{SITE}/sglang-{NEW}+standin.dist-info {{path}}/{SITE}/sglang-0.5.22.dist-info",
        f"it holds SGLang 0.5.22, not {NEW}",
    ),
}


def test_a_broken_environment_is_found_and_replaced(host: Host) -> None:
    asked = {"root": "/opt/broken", "requirements": ["beside==1.0"]}
    made = install(host, **asked)
    for kind, (damage, reason) in BROKEN.items():
        host.shell(f"touch {made.path}/old; " + damage.format(path=made.path))
        seen = install(host, "--check", **asked)
        assert (seen.result["changed"], seen.result["release"]["kind"], seen.result["release"]["reason"]) == (True, kind, reason)
        mended = install(host, **asked)
        assert (mended.result["changed"], mended.path, mended.result["release"]["complete"]) == (True, made.path, True), kind
        assert host.shell(f"ls -A /opt/broken; ls {made.path}/old", check=False) == made.path.rsplit("/", 1)[1]
    # a package that somebody added is nobody's damage
    host.shell(f"mkdir {made.path}/{SITE}/more-1.0.dist-info")
    assert install(host, **asked).result["changed"] is False


def test_a_broken_environment_that_cannot_be_replaced_comes_back(host: Host) -> None:
    host.shell("mkdir -p /srv/files/house && cp /srv/wheels/* /srv/files/house")
    asked = {"root": "/opt/kept", "wheelhouse": "/srv/files/house"}
    made = install(host, **asked)
    host.shell(f"echo x > {made.path}/.complete; rm -r /srv/files/house/*")
    before = host.shell(f"find {made.path} -printf '%p %T@\\n' | sort")
    refused = install(host, **asked)
    assert "The broken environment that was there is put back and the service is untouched." in refused.error, refused.error
    assert host.shell(f"find {made.path} -printf '%p %T@\\n' | sort") == before
    assert host.shell("ls -A /opt/kept") == made.path.rsplit("/", 1)[1]


def test_a_build_that_is_killed_is_told_and_made_anew(host: Host) -> None:
    root = "/opt/killed"
    with started(host, root=root) as process:
        host.shell(f"systemctl kill --kill-whom=all -s KILL {unit_pattern(root)}")
        killed = finish(host, process)
    assert re.search(
        r"found that the installation did not end by itself: it was killed with signal 9; run it again\. "
        r"The half-made environment is removed and the service is untouched\. The installer's output: journalctl _SYSTEMD_INVOCATION_ID=",
        killed.error,
    ), killed.error
    assert killed.shown[-1].startswith(f"[{NAME}] SGLang {NEW} | failed | ")
    with started(host, root=root) as process:
        host.shell(f"systemctl stop {unit_pattern(root)}")
        stopped = finish(host, process)
    assert "found that the installation did not end by itself: it was stopped; run it again." in stopped.error
    # the host goes down with nobody waiting: what lies there then is half-made, and taken for nothing else
    with started(host, root=root) as process:
        process.kill()
        host.shell(f"mkdir -p $(ls -d {root}/.*.build | sed 's,/[.],/,; s,[.]build$,,')/lib; sync")
        subprocess.run([ROOT / "tests/hosts/hosts", "crash", NAME], env=host.environment, check=True)
    seen = install(host, "--check", root=root, installer="pip", python=SLOW)
    assert seen.result["release"]["kind"] == "unfinished"
    made = install(host, root=root, installer="pip", python=SLOW)
    assert (made.result["changed"], made.result["release"]["complete"]) == (True, True)
    assert host.shell(f"ls -A {root}") == made.path.rsplit("/", 1)[1]


def test_a_run_joins_the_build_that_another_one_began(host: Host) -> None:
    root = "/opt/joined"
    with started(host, root=root) as first:
        first.kill()
        first.communicate()
        with started(host, root=root) as second, started(host, root=root) as third:
            ends = [finish(host, second), finish(host, third)]
    assert [(end.result["changed"], end.result["release"]["complete"]) for end in ends] == [(True, True)] * 2
    assert builds(host, root) == 1
    # all who wait for a build hear why it failed
    with started(host, root=root, version=OLD) as second, started(host, root=root, version=OLD) as third:
        host.shell(f"systemctl kill --kill-whom=all -s KILL {unit_pattern(root)}")
        errors = [finish(host, second).error, finish(host, third).error]
    assert [error.count("did not end by itself") for error in errors] == [1, 1], errors
    assert builds(host, root) == 2


def test_an_existing_environment_is_checked_and_never_changed(host: Host) -> None:
    made = install(host, root="/opt/own")
    own = made.path
    before = host.shell(f"find {own} -printf '%p %T@ %C@\\n' | sort")
    seen = call(host, version=NEW, existing=own)
    assert (seen.result["changed"], seen.result["python"], seen.shown) == (False, f"{own}/bin/python", [])
    assert call(host, version=OLD, existing=own).error == (
        f"asked for SGLang {OLD} in the existing environment {own}, found that it holds SGLang {NEW}+standin, not {OLD}; "
        "mend it, or give the version that is in it; it was not changed"
    )
    assert "found that there is no such directory; mend it" in call(host, version=NEW, existing="/srv/none").error
    assert "found that it has no bin/python that runs; mend it" in call(host, version=NEW, existing="/srv/files").error
    assert host.shell(f"find {own} -printf '%p %T@ %C@\\n' | sort") == before


def test_a_git_reference_is_built_by_the_installer(host: Host) -> None:
    host.shell(
        f"mkdir -p /srv/project && cd /srv/project && cat > backend.py <<'TEXT'\n{BACKEND}TEXT\n"
        f"cat > pyproject.toml <<'TEXT'\n{PROJECT}TEXT\n"
        "git init -q -b main . && git add . && git -c user.name=t -c user.email=t@localhost commit -q -m one"
        " && git clone -q --bare . /srv/project.git"
    )
    commit = host.shell("git -C /srv/project rev-parse HEAD")
    asked = {"version": "0.5.24", "wheelhouse": "", "git": f"git+file:///srv/project.git@{commit}", "root": "/opt/git"}
    for installer in ("pip", "uv"):
        made = install(host, **asked, installer=installer)
        assert made.result["release"]["version"] == "0.5.24.dev3", made.result
        assert install(host, **asked, installer=installer).result["changed"] is False
    missing = install(host, **{**asked, "git": "git+file:///srv/project.git@nothere"}, installer="pip")
    assert "check the repository and the reference: git+file:///srv/project.git@nothere" in missing.error, missing.error
    assert "nothere" in missing.error.split("; check")[0]


def test_a_link_leads_to_what_was_accepted_and_what_nothing_uses_goes(host: Host) -> None:
    root, state = "/opt/store", "/srv/states"
    beside: dict[str, list[str]] = {"none": [], "one": ["beside==1.0"], "two": ["beside==2.0"]}
    requests = [(version, more) for version in (NEW, OLD) for more in beside.values()]
    made = {name: install(host, root=root, version=version, requirements=more).path
            for name, (version, more) in zip("abcdef", requests, strict=True)}  # fmt: skip

    def current(path: str, keep: int, *more: str) -> Call:
        return call(host, *more, state="current", root=root, instance="k26", path=path, keep=keep, state_dir=state)

    dry = current(made["a"], 6, "--check")
    assert (dry.result["changed"], host.shell(f"ls {root}/current", check=False)) == (True, "")
    assert current(made["a"], 6).result["changed"] is True
    assert host.shell(f"readlink {root}/current/k26") == made["a"]
    assert current(made["a"], 6).result["changed"] is False

    # what a unit file, an accepted configuration or a process names is in use; so is what another instance's link leads to
    host.shell(
        f"printf '[Service]\\nExecStart={made['b']}/bin/python\\n' > /etc/systemd/system/other.service;"
        f" mkdir -p {state}/k26; echo '{{\"unit\": \"ExecStart={made['c']}/bin/python\"}}' > {state}/k26/accepted.json;"
        f" systemd-run -q --unit holder {made['d']}/bin/python -c 'import time; time.sleep(600)';"
        f" mkdir {root}/1.0-mine; ln -s {made['e']} {root}/current/second"
    )
    moved = current(made["e"], 0)
    assert moved.result["changed"] is True
    assert moved.result["removed"] == sorted([made["a"], made["f"]])
    used = moved.result["used"]
    assert (used[made["b"]], used[made["c"]]) == ("/etc/systemd/system/other.service", f"{state}/k26/accepted.json")
    assert used[made["e"]] == "current/k26"
    assert used[made["d"]].endswith("/holder.service")
    host.shell("rm /etc/systemd/system/other.service; pid=$(systemctl show -P MainPID holder); rm /run/systemd/transient/holder.service")
    assert re.fullmatch(r"process \d+ \(python\)", current(made["e"], 2).result["used"][made["d"]])

    # the ones that were used last stay
    host.shell(f"systemctl stop holder; rm {state}/k26/accepted.json; touch -d '2026-01-01' {made['b']}/.complete")
    assert current(made["c"], 2).result["removed"] == []
    assert current(made["c"], 1).result["removed"] == [made["b"]]

    gone = call(host, state="absent", root=root, instance="k26", keep=1, state_dir=state)
    assert (gone.result["changed"], gone.result["removed"]) == (True, [made["d"]])
    assert call(host, state="absent", root=root, instance="k26", keep=1, state_dir=state).result["changed"] is False
    # with the last instance nothing is left but what is not the role's
    last = call(host, state="absent", root=root, instance="second", keep=2, state_dir=state)
    assert last.result["removed"] == sorted([made["c"], made["e"]])
    assert host.shell(f"ls -A {root}") == "1.0-mine"
