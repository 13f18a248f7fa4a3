# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of a server in a container, word for word, for both engines; from the role's own variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[2] / "roles/sglang"
LIBEXEC = "/opt/sglang/libexec"
CACHE = "/var/cache/sglang/sglang-k26"
LIMITS = ["--pids-limit", "-1", "--ulimit", "memlock=-1:-1", "--ulimit", "stack=67108864:67108864", "--ulimit", "nofile=1048576:1048576"]
SERVER = ["python3", "-m", "sglang.launch_server"]
MODEL = ["--volume=/srv/m:/srv/m:ro"]
SEEN = {"image": {"id": "sha256:3b1f"}}


def words_of(name: str, **given: Any) -> Any:
    """A variable of the role with these values in the place of its defaults."""
    loader = DataLoader()
    files = [ROLE / "defaults/main.yml", *sorted((ROLE / "vars/main").glob("*.yml"))]
    variables = {name: value for file in files for name, value in loader.load_from_file(str(file), trusted_as_template=True).items()}
    values = {
        "sglang_instance": "sglang-k26", "sglang_model": "/srv/m", "sglang_install_method": "container", "sglang_container_image": "sg:1",
    }  # fmt: skip
    return Templar(loader, {**variables, **values, **given}).template(trust_as_template(f"{{{{ {name} }}}}"))


Words = tuple[str, ...]


def program(engine: str, cards: list[str], hidden: Words = (), key: Words = (), more: Words = ()) -> list[str]:
    return [
        "/usr/bin/python3", "-I", f"{LIBEXEC}/sglang_container.py", "start", "--name", "sglang-k26", "--user", "sglang",
        "--group", "sglang", *hidden, "--", engine, "run", "--rm", "--pull", "never", "--name", "sglang-k26",
        "--label", "inferops.image=sg:1", "--log-driver", "none", "--network", "host", "--ipc", "host",
        "--security-opt", "label=disable", "--security-opt", "no-new-privileges",
        *(["--cgroups", "split"] if engine == "podman" else []), *LIMITS, *cards,
        "--volume", f"{CACHE}:{CACHE}", "--workdir", CACHE, *key, *MODEL, *more, "sha256:3b1f",
    ]  # fmt: skip


HIDDEN = ("--drop", "CUDA_DEVICE_ORDER", "--drop", "CUDA_VISIBLE_DEVICES", "--drop", "HIP_VISIBLE_DEVICES")
AMD = ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"]
ROCM = {"tool": "rocm-smi"}
CARDS: list[tuple[str, dict[str, Any], list[str], tuple[str, ...]]] = [
    ("podman", {}, ["--device=nvidia.com/gpu=all"], ()),
    ("podman", {"sglang_gpus": [2, "GPU-aa"]}, ["--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=GPU-aa"], HIDDEN),
    ("podman", {"sglang_gpus": "4,5"}, ["--device=nvidia.com/gpu=4", "--device=nvidia.com/gpu=5"], HIDDEN),
    ("podman", {"sglang_device": "cpu"}, [], ()),
    ("docker", {}, ["--gpus", "all"], ()),
    # docker reads a list with commas in it only between quotes
    ("docker", {"sglang_gpus": [2, 3]}, ["--gpus", '"device=2,3"'], HIDDEN),
    ("docker", {"sglang_device": "cpu"}, [], ()),
    ("docker", {"__sglang_host": ROCM}, AMD, ()),
    # these are all devices there are, and the environment chooses among them
    ("podman", {"__sglang_host": ROCM, "sglang_gpus": [1]}, AMD, ()),
]


@pytest.mark.parametrize(("engine", "given", "cards", "hidden"), CARDS)
def test_the_cards_of_an_instance(engine: str, given: dict[str, Any], cards: list[str], hidden: tuple[str, ...]) -> None:
    found = words_of("__sglang_program", sglang_container_engine=engine, __sglang_image_seen=SEEN, **given)
    assert found == [*program(engine, cards, hidden), *SERVER]


def test_the_drafts_directory_more_arguments_and_the_key() -> None:
    found = words_of(
        "__sglang_program", sglang_device="cpu", sglang_draft_model="/srv/d", sglang_container_args=["--volume", "/srv/t:/srv/t:ro"],
        sglang_api_key_file="/root/key", __sglang_image_seen=SEEN,
    )  # fmt: skip
    launcher = f"{LIBEXEC}/launch_server.py"
    more = ("--volume=/srv/d:/srv/d:ro", "--volume", "/srv/t:/srv/t:ro")
    assert found == [*program("podman", [], key=("--volume", f"{launcher}:{launcher}:ro"), more=more), "python3", launcher]
    # the file itself is the unit's credential, and no word of the command
    assert "/root/key" not in " ".join(found)


IMAGES: list[tuple[dict[str, Any], str]] = [
    # before anything was looked at, and in check mode where it is not there
    ({}, "sg:1"),
    ({"__sglang_image_seen": {"image": None}, "__sglang_image_pulled": {}}, "sg:1"),
    ({"__sglang_image_seen": {"image": None}, "__sglang_image_pulled": {"image": {"id": "sha256:4c2e"}}}, "sha256:4c2e"),
    ({"__sglang_image_seen": SEEN, "__sglang_image_pulled": {"skipped": True}}, "sha256:3b1f"),
]


@pytest.mark.parametrize(("registered", "image"), IMAGES)
def test_the_image_runs_by_its_id(registered: dict[str, Any], image: str) -> None:
    assert words_of("__sglang_container_image", **registered) == image
    assert words_of("__sglang_release", **registered) == image


def test_a_name_that_systemd_takes_and_an_engine_does_not() -> None:
    assert words_of("__sglang_container_name", sglang_instance="sglang@k26") == "sglang_k26"
    assert words_of("__sglang_stop_program", sglang_instance="sglang@k26") == [
        "/usr/bin/python3", "-I", f"{LIBEXEC}/sglang_container.py", "clear", "--name", "sglang_k26", "--", "podman",
    ]  # fmt: skip


def test_nothing_of_this_is_there_without_a_container() -> None:
    assert words_of("__sglang_stop_program", sglang_install_method="venv") == []
    assert words_of("__sglang_programs", sglang_install_method="venv") == ["sglang_guard.py", "launch_server.py"]
    assert words_of("__sglang_programs") == ["sglang_guard.py", "launch_server.py", "sglang_container.py"]
