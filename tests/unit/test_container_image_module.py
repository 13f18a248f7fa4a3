# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module container_image in check mode, on an engine that tells what a file says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.modules import container_image
from support.module import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(container_image.main, monkeypatch, capsys)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose file ``answer`` holds what podman prints; without it there is no such image."""
    program = tmp_path / "podman"
    answer = f'cat {tmp_path}/answer || {{ echo "image not known" >&2; exit 125; }}'
    program.write_text(f'#!/bin/sh\n[ "$1 $2" = "image inspect" ] || exit 9\n{answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_an_image_that_is_there(run: Run, engine: Path) -> None:
    (engine / "answer").write_text(json.dumps([{"Id": "3b1f", "RepoDigests": ["x@sha256:7e5d"], "Size": 5368709120}]))
    result = run(name="x:1")
    assert result["image"] == {"id": "sha256:3b1f", "digests": ["x@sha256:7e5d"], "size_gib": 5.0}
    assert result["changed"] is False


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("pull", "changed"), [(True, True), (False, False)])
def test_an_image_that_is_not_there_would_be_pulled(run: Run, pull: bool, changed: bool) -> None:
    result = run(name="x:1", pull=pull)
    assert (result["image"], result["changed"]) == (None, changed)


def test_without_the_engine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible.module_utils.basic.AnsibleModule.get_bin_path", lambda *_args, **_options: None)
    result = run(name="x:1", engine="docker")
    assert result["failed"]
    assert result["msg"] == "asked for the image x:1, found no docker on the host; install it, or name the other engine"


def test_seconds_below_one(run: Run) -> None:
    assert run(name="x:1", timeout=0)["msg"] == "asked for timeout=0, found a number that is too small; give seconds above 0"
