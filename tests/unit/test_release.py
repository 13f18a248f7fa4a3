# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests, the folders they lead to, and what is said of what lies there."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._release import (
    ReleaseError,
    Request,
    check_wheelhouse,
    mark_text,
    path_of,
    python_version,
    sglang_version,
    state_of,
    state_of_existing,
    suits,
    without_secrets,
)

PACKAGES = ("sglang-0.5.23", "torch-2.9.1", "numpy-2.3.4")


def asks_nobody(argv: Sequence[str]) -> tuple[int, str, str]:
    raise AssertionError(f"asked {argv}")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter as distributions have it: a link without a version that leads to a name with one."""
    program(tmp_path / "usr/python3.11")
    link = tmp_path / "usr/python3"
    link.symlink_to("python3.11")
    return link


def environment(path: Path, python: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """An environment as an installer leaves it, by the names in it."""
    (path / "bin").mkdir(parents=True)
    (path / "bin/python").symlink_to(python)
    for name in packages:
        info = path / f"lib/python3.11/site-packages/{name}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("")
    return path


def finished(path: Path, python: Path, request: Request, packages: Sequence[str] = PACKAGES) -> Path:
    environment(path, python, packages)
    (path / ".complete").write_text(mark_text(str(path), request, "pip"))
    return path


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"version": ""}, "asked for version '', found that no release has such a number; give one, for example 0.5.23"),
    ({"version": "v0.5.23"}, "asked for version 'v0.5.23', found that no release has such a number; give one, for example 0.5.23"),
    ({"version": "0.5.23/.."}, "asked for version '0.5.23/..', found that no release has such a number; give one, for example 0.5.23"),
    ({"wheel": "/a.whl", "lock_file": "/b"},
     "asked for wheel and lock_file, found that each of them says where SGLang comes from; give one of them"),
    ({"lock_file": "/b", "requirements": ["x"]},
     "asked for the lock file /b and requirements beside it, found that nothing without a hash can be installed with a lock file; "
     "put the requirements into the lock file"),
    ({"requirements": ["x\n--index-url https://else"]},
     "asked for 'x\\n--index-url https://else', found more than one line in it; give each requirement as an item of its own"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_a_request_that_cannot_work_is_refused(options, message):
    with pytest.raises(ReleaseError) as error:
        Request.of({"version": "0.5.23", **options})
    assert str(error.value) == message
    assert error.value.finding.text == "release: " + message


SOURCES = [
    ({}, "index", "the package index"),
    ({"index_url": "https://me:word@here/wheels"}, "index", "https://here/wheels"),
    ({"wheelhouse": "/w", "index_url": "https://here"}, "wheelhouse", "/w"),
    ({"wheel": "/a.whl", "wheelhouse": "/w"}, "wheel", "/a.whl"),
    ({"git": "git+https://me:word@here/r@main", "wheelhouse": "/w"}, "git", "git+https://here/r@main"),
]


@pytest.mark.parametrize(("options", "source", "origin"), SOURCES)
def test_a_request_knows_where_it_comes_from(options, source, origin):
    request = Request.of({"version": "0.5.23", "requirements": None, **options})
    assert (request.source, request.origin) == (source, origin)
    assert "word" not in json.dumps(request.kept)


URLS = [
    ("https://here/wheels", "https://here/wheels"),
    ("https://me@here:8080/a?b=c#d", "https://here:8080/a?b=c#d"),
    ("git+https://u:p@here/r.git@v1#subdirectory=python", "git+https://here/r.git@v1#subdirectory=python"),
    ("git+ssh://git@here/r.git@v1", "git+ssh://here/r.git@v1"),
    ("git+file:///r.git@v1", "git+file:///r.git@v1"),
    ("http://[::1", "http://[::1"),
    ("", ""),
]


def test_a_release_that_yaml_reads_as_a_number() -> None:
    assert Request.of({"version": 0.5}).version == "0.5"


@pytest.mark.parametrize(("url", "plain"), URLS)
def test_what_logs_in_is_left_out_of_addresses(url, plain):
    assert without_secrets(url) == plain


def test_the_folder_is_named_by_the_release_and_by_all_that_matters(tmp_path, python):
    files = {name: tmp_path / name for name in ("wheel", "constraints", "lock_file")}
    for name, file in files.items():
        file.write_text(name)
    house = tmp_path / "house"
    house.mkdir()
    root = str(tmp_path / "root")
    base = Request("0.5.23", python=str(python))
    others = {
        "version": replace(base, version="0.5.22"),
        "wheelhouse": replace(base, wheelhouse=str(house)),
        "git": replace(base, git="git+https://here/r@main"),
        "index_url": replace(base, index_url="https://here"),
        "extra_index_url": replace(base, extra_index_url="https://here"),
        "requirements": replace(base, requirements=("x",)),
        "installer": replace(base, installer="pip"),
        **{name: replace(base, **{name: str(file)}) for name, file in files.items()},
    }
    paths = {name: path_of(root, request, asks_nobody) for name, request in others.items()}
    plain = path_of(root, base, asks_nobody)
    assert Path(plain).name.startswith("0.5.23-")
    assert len({plain, *paths.values()}) == 1 + len(others)
    # the same again, with another password, or with a file that lies elsewhere
    assert path_of(root + "/", base, asks_nobody) == plain
    secret = replace(base, index_url="https://me:word@here")
    assert path_of(root, secret, asks_nobody) == paths["index_url"]
    for name, file in files.items():
        moved = file.rename(file.with_name(f"{name}-moved"))
        assert path_of(root, replace(base, **{name: str(moved)}), asks_nobody) == paths[name]
        moved.write_text("other")
        assert path_of(root, replace(base, **{name: str(moved)}), asks_nobody) != paths[name]
    # another Python behind the same name
    python.unlink()
    program(python.with_name("python3.12"))
    python.symlink_to("python3.12")
    assert path_of(root, base, asks_nobody) != plain


MISSING = [
    ({"lock_file": "/nowhere/lock.txt"},
     "asked for the lock file /nowhere/lock.txt, found that it cannot be read (No such file or directory); put the file there on the host"),
    ({"wheelhouse": "/nowhere"}, "asked for the wheelhouse /nowhere, found no such directory on the host; put the wheels there"),
    ({"python": "/nowhere/python3"}, "asked for an environment of the interpreter /nowhere/python3, found no program there; "
                                     "install that Python on the host, or give the path of another one"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), MISSING)
def test_what_a_request_points_at_must_be_there(python, options, message):
    with pytest.raises(ReleaseError) as error:
        path_of("/opt/sglang", Request.of({"version": "0.5.23", "python": str(python), **options}), asks_nobody)
    assert str(error.value) == message


SHELVES = [
    ([], "no wheel of SGLang in it"),
    (["torch-2.9.1-cp311-cp311-linux_x86_64.whl", "sglang_kernel-0.5.23-py3-none-any.whl"], "no wheel of SGLang in it"),
    (["sglang-0.5.12.post1-py3-none-any.whl", "sglang-0.5.22.tar.gz"], "0.5.12.post1, 0.5.22 in it"),
]
FULL_SHELVES = ["sglang-0.5.23-cp311-cp311-linux_x86_64.whl", "sglang-0.5.23+cu130-py3-none-any.whl", "sglang-0.5.23.tar.gz"]


@pytest.mark.parametrize(("names", "found"), SHELVES)
def test_a_wheelhouse_without_the_release_is_told_before_anything_changes(tmp_path, names, found):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ReleaseError) as error:
        check_wheelhouse(Request("0.5.23", wheelhouse=str(tmp_path)))
    assert str(error.value) == (
        f"asked for SGLang 0.5.23 of the wheelhouse {tmp_path}, found {found}; "
        "put its wheel there with those of all it needs, or give sglang_version a release that is there"
    )
    # these say themselves where SGLang comes from
    for other in ({"wheel": "/a.whl"}, {"git": "git+https://here/r"}, {"lock_file": "/l.txt"}):
        check_wheelhouse(Request("0.5.23", wheelhouse=str(tmp_path), **other))


@pytest.mark.parametrize("name", FULL_SHELVES)
def test_a_wheelhouse_with_the_release_is_taken(tmp_path, name):
    (tmp_path / name).touch()
    check_wheelhouse(Request("0.5.23", wheelhouse=str(tmp_path)))


def test_an_interpreter_is_asked_only_where_its_name_does_not_tell(tmp_path, python):
    assert python_version(str(python), asks_nobody) == "3.11"
    other = program(tmp_path / "bin/python")
    assert python_version(str(other), lambda _argv: (0, "3.12\n", "")) == "3.12"
    with pytest.raises(ReleaseError, match="found exit code 1 and 'broken'; give the path of a Python that works"):
        python_version(str(other), lambda _argv: (1, "", "broken\n"))
    python.with_name("python3.11").unlink()
    with pytest.raises(ReleaseError, match=r"found no program there \(it leads to .*/usr/python3.11\)"):
        python_version(str(python), asks_nobody)


def remove_mark(path: Path) -> None:
    (path / ".complete").unlink()


def upgrade(path: Path) -> None:
    packages = path / "lib/python3.11/site-packages"
    (packages / "numpy-2.3.4.dist-info").rename(packages / "numpy-2.4.0.dist-info")
    (packages / "torch-2.9.1.dist-info/METADATA").unlink()


def switch_python(path: Path) -> None:
    (path / "bin/python").unlink()
    (path / "bin/python").symlink_to(program(path.parent / "usr/python3.13"))


def lose_python(path: Path) -> None:
    (path.parent / "usr/python3.11").unlink()


def change_mark(path: Path) -> None:
    mark = json.loads((path / ".complete").read_text())
    (path / ".complete").write_text(json.dumps({**mark, "version": "0.5.22"}))


DAMAGES = [
    ("absent", lambda path: path.rename(path.with_name("elsewhere")), "it is not built yet"),
    ("unfinished", remove_mark, "it was never finished: there is no .complete in it"),
    ("unreadable", lambda path: (path / ".complete").write_text("{"), "its .complete cannot be read (Expecting property name"),
    ("unreadable", lambda path: (path / ".complete").write_text("{}"), "its .complete cannot be read (it does not say what is inside)"),
    ("unreadable", lambda path: (path / ".complete").write_bytes(b"\xff"), "its .complete cannot be read ("),
    ("interpreter", lose_python, "its interpreter is gone: bin/python leads to {path}/usr/python3.11"),
    ("interpreter", lambda path: (path / "bin/python").unlink(), "it has no bin/python that runs"),
    ("interpreter", switch_python, "its packages are for Python 3.11, and {path}/usr/python3.13 is what its bin/python leads to now"),
    ("packages", upgrade, "2 of its 3 packages are missing or others by now (numpy-2.3.4, torch-2.9.1)"),
    ("version", change_mark, "it holds SGLang 0.5.23, and was finished with 0.5.22"),
]


@pytest.mark.parametrize(("kind", "damage", "reason"), DAMAGES)
def test_what_is_wrong_with_an_environment_is_told(tmp_path, python, kind, damage, reason):
    request = Request("0.5.23")
    path = finished(tmp_path / "0.5.23-00000000", python, request)
    assert state_of(str(path), request).as_dict() == {"path": str(path), "complete": True, "kind": "", "reason": "", "version": "0.5.23"}
    damage(path)
    state = state_of(str(path), request)
    assert (state.kind, state.complete) == (kind, False)
    assert state.reason.startswith(reason.format(path=tmp_path)), state.reason


def test_a_package_that_somebody_added_is_no_damage(tmp_path, python):
    request = Request("0.5.23")
    path = finished(tmp_path / "0.5.23-00000000", python, request)
    (path / "lib/python3.11/site-packages/more-1.0.dist-info").mkdir()
    assert state_of(str(path), request).complete


VERSIONS = [
    ("0.5.23", "0.5.23", "", True),
    ("0.5.23+cpu", "0.5.23", "", True),
    ("0.5.23", "0.5.23+cu130", "", True),
    ("0.5.23.post1", "0.5.23", "", False),
    ("0.5.24.dev3+gabc", "0.5.24", "", False),
    ("0.5.24.dev3+gabc", "0.5.24", "git+https://here/r", True),
    ("0.5.23", "0.5.24", "git+https://here/r", False),
]


@pytest.mark.parametrize(("found", "asked", "git", "fits"), VERSIONS)
def test_which_version_is_the_one_asked(found, asked, git, fits):
    assert suits(found, Request(asked, git=git)) is fits


def test_an_environment_without_sglang_or_with_another_one_is_not_marked(tmp_path, python):
    request = Request("0.5.23", wheel="/srv/a.whl")
    bare = environment(tmp_path / "bare", python, ("torch-2.9.1",))
    with pytest.raises(ReleaseError) as error:
        mark_text(str(bare), request, "uv")
    assert str(error.value) == (
        f"asked for SGLang 0.5.23 in {bare}, found that SGLang is not in it; look whether /srv/a.whl gives SGLang at all"
    )
    other = environment(tmp_path / "other", python, ("sglang-0.5.22+x",))
    with pytest.raises(ReleaseError) as error:
        mark_text(str(other), request, "uv")
    assert str(error.value) == (
        "asked for SGLang 0.5.23, found 0.5.22+x in /srv/a.whl; "
        "set sglang_version to 0.5.22, the version of what is installed: the plan depends on it"
    )
    assert sglang_version(str(environment(tmp_path / "two", python, ("sglang-0.5.22", "sglang-0.5.23")))) is None


EXISTING = [
    (PACKAGES, "0.5.23", "", ""),
    (PACKAGES, "0.5.22", "version", "it holds SGLang 0.5.23, not 0.5.22"),
    (("torch-2.9.1", "sglang_kernel-0.5.23"), "0.5.23", "packages", "SGLang is not installed in it"),
]


@pytest.mark.parametrize(("packages", "version", "kind", "reason"), EXISTING)
def test_an_environment_of_the_operator_needs_no_mark(tmp_path, python, packages, version, kind, reason):
    path = environment(tmp_path / "own", python, packages)
    state = state_of_existing(str(path), Request(version))
    assert (state.kind, state.reason) == (kind, reason)


def test_an_environment_of_the_operator_that_is_not_there(tmp_path):
    assert state_of_existing(str(tmp_path / "none"), Request("0.5.23")).reason == "there is no such directory"
    assert state_of_existing(str(tmp_path), Request("0.5.23")).reason == "it has no bin/python that runs"
    assert not os.listdir(tmp_path)
