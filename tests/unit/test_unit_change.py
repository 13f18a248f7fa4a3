# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two units, what suffices to take it over, and the variables that give the same server."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.plugin_utils._unit_filters import unit_action, unit_changes, unit_digest, unit_variables

PYTHON = "/opt/v/bin/python -m sglang.launch_server"
BASE = f"""
[Unit]
Description=A server
StartLimitBurst=3
[Service]
User=sglang
Environment=A=1
EnvironmentFile=/etc/sglang/a.env
ExecStart={PYTHON} --model-path /m --tp-size 8 --mem-fraction-static 0.9000
Restart=on-failure
TimeoutStopSec=120
LimitNOFILE=1024
[Install]
WantedBy=multi-user.target
"""

# what is replaced, by what, the action, and the lines
CHANGES: dict[str, tuple[str, str, str, list[str]]] = {
    "nothing": ("", "", "nothing", []),
    "a comment": ("[Service]", "# why\n[Service]", "nothing", []),
    "the fraction": ("0.9000", "0.9259", "restart", ["--mem-fraction-static 0.9000 -> 0.9259"]),
    "the same number": ("0.9000", "0.90", "nothing", []),
    "the same flag by another name": ("--tp-size 8", "--tp=8", "nothing", []),
    "the same path": ("--model-path /m", "--model-path /m/", "nothing", []),
    "a switch more": ("--tp-size 8", "--tp-size 8 --trust-remote-code", "restart", ["--trust-remote-code added"]),
    "a flag more": ("--tp-size 8", "--tp-size 8 --context-length 200000", "restart", ["--context-length 200000 added"]),
    "a flag less": ("--tp-size 8", "", "restart", ["--tp-size 8 removed"]),
    "a switch that gets a value": ("--tp-size 8", "--tp-size", "restart", ["--tp-size 8 -> alone"]),
    "a list": ("--tp-size 8", "--tp-size 8 --cuda-graph-bs 1 2 4", "restart", ["--cuda-graph-bs 1 2 4 added"]),
    "the program": (
        "/opt/v/bin/python", "/opt/w/bin/python", "restart", [f"program {PYTHON} -> /opt/w/bin/python -m sglang.launch_server"],
    ),
    "a program in front": ("=/opt/v/", "=/usr/bin/nice -n 5 /opt/v/", "restart", ["in front of it /usr/bin/nice -n 5 added"]),
    "a variable": ("Environment=A=1", "Environment=A=2 B=3", "restart", ["environment: A 1 -> 2", "environment: B 3 added"]),
    "a secret": ("Environment=A=1", "Environment=A=1 HF_TOKEN=hf_abc", "restart", ["environment: HF_TOKEN (not shown) added"]),
    "a key": ("--tp-size 8", "--tp-size 8 --api-key sk-1", "restart", ["--api-key (not shown) added"]),
    "an environment file": (
        "a.env", "b.env", "restart", ["EnvironmentFile /etc/sglang/a.env -> /etc/sglang/b.env"],
    ),
    "the user": ("User=sglang", "User=root", "restart", ["User sglang -> root"]),
    "a limit": ("LimitNOFILE=1024", "LimitMEMLOCK=infinity", "restart", ["LimitMEMLOCK infinity added", "LimitNOFILE 1024 removed"]),
    "how long it waits": ("TimeoutStopSec=120", "TimeoutStopSec=60", "reload", ["TimeoutStopSec 120 -> 60"]),
    "whether it starts again": ("Restart=on-failure", "Restart=always", "reload", ["Restart on-failure -> always"]),
    "what runs before the next start": ("Restart=", "ExecStartPre=/bin/true\nRestart=", "reload", ["ExecStartPre /bin/true added"]),
    "its place among units": ("[Service]", "After=a.service\n[Service]", "reload", ["After a.service added"]),
    "where it is wanted": ("multi-user", "graphical", "reload", ["WantedBy multi-user.target -> graphical.target"]),
    "both": (
        "User=sglang", "User=root\nKillMode=mixed", "restart", ["User sglang -> root", "KillMode mixed added"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_what_differs_and_what_suffices(case: str) -> None:
    old, new, action, lines = CHANGES[case]
    changed = BASE.replace(old, new, 1) if old else BASE
    found = unit_changes(BASE, changed)
    assert (found["action"], found["lines"]) == (action, lines)
    # a restart is asked for exactly where the digest differs
    assert (unit_digest(BASE) != unit_digest(changed)) == (action == "restart")


def test_only_the_lines_that_ask_for_the_action_are_its_reasons() -> None:
    found = unit_changes(BASE, BASE.replace("User=sglang", "User=root\nKillMode=mixed"))
    assert found["reasons"] == ["User sglang -> root"]


def test_texts_of_environment_files_are_compared_and_the_digest_in_them_is_not() -> None:
    files = [{"/etc/sglang/a.env": f"B=1\nINFEROPS_DIGEST={digest}\n{more}"} for digest, more in (("x", ""), ("y", ""), ("x", "C=2\n"))]
    assert unit_changes(BASE, BASE, files[0], files[1])["action"] == "nothing"
    assert unit_changes(BASE, BASE, files[0], files[2])["lines"] == ["environment: C 2 added"]
    assert unit_digest(BASE, files[0]) == unit_digest(BASE, files[1]) != unit_digest(BASE, files[2])


def test_a_drop_in_of_the_old_unit_counts() -> None:
    drop_in = {"/etc/systemd/system/a.service.d/x.conf": "[Service]\nUser=root\n"}
    assert unit_changes(BASE, BASE, drop_ins=drop_in)["lines"] == ["User root -> sglang"]


def test_a_hidden_start_is_shown_as_it_is() -> None:
    hidden = BASE.replace(PYTHON, "/opt/run.sh")
    assert unit_changes(hidden, BASE)["lines"][:2] == [
        f"program {PYTHON} added", "starts /opt/run.sh --model-path /m --tp-size 8 --mem-fraction-static 0.9000 removed",
    ]  # fmt: skip


LOWER = BASE.replace("0.9000", "0.8")
ACCEPTED = {"unit": BASE.replace("0.9000", "0.8500"), "environment": "A=1\n", "receipt": {"digest": "old"}}
READY = {
    "phase": "ready", "ready": True, "complete": True, "min_tokens": 5, "failure": None, "missing_ranks": [],
    "ranks": [{"tp": 0, "target": {"tokens": 5}}],
}  # fmt: skip
# service, what is on the disk, what is accepted, tokens wanted, and what is said
ACTIONS: dict[str, tuple[dict[str, Any], str, dict[str, Any], int, str]] = {
    "no unit": ({"active_state": "inactive"}, "", {}, 0, "start: this instance has no unit here yet"),
    "stopped": ({"active_state": "inactive"}, BASE, {}, 0, "start: the service is inactive"),
    "failed, and another fraction": (
        {"active_state": "failed"}, LOWER, {}, 0, "start: the service is failed; --mem-fraction-static 0.8 -> 0.9000",
    ),
    "as wanted": ({"active_state": "active", "digest": "new"}, BASE, {}, 5, "nothing to do"),
    "on its way": ({"active_state": "activating", "digest": "new"}, BASE, {}, 10**6, "nothing to do"),
    "the file differs": (
        {"active_state": "active", "digest": "new"}, LOWER, {}, 0, "restart because: --mem-fraction-static 0.8 -> 0.9000",
    ),
    "the process differs, the file does not": (
        {"active_state": "active", "digest": "other"}, BASE, {}, 0,
        "restart because: the process was started from other files (their digest other, now new)",
    ),
    "the process is the accepted one, the file is new already": (
        {"active_state": "active", "digest": "old"}, BASE, ACCEPTED, 0, "restart because: --mem-fraction-static 0.8500 -> 0.9000",
    ),
    "not the role's process": (
        {"active_state": "active", "digest": None}, BASE, {}, 0,
        "restart because: the process was started from other files (their digest is missing, now new)",
    ),
    # as after a first start that fell short: the file was not there before this run
    "it runs, and there was no file": (
        {"active_state": "active", "digest": "other"}, "", {}, 0,
        "restart because: the process was started from other files (their digest other, now new)",
    ),
    "what systemd takes over": (
        {"active_state": "active", "digest": "new"}, BASE.replace("=120", "=9"), {}, 0, "reload: TimeoutStopSec 9 -> 120",
    ),
    "comments": ({"active_state": "active", "digest": "new"}, f"# x\n{BASE}", {}, 0, "reload: comments or the order of lines"),
    "too short": (
        {"active_state": "active", "digest": "new"}, BASE, {}, 10,
        "restart because: the running server does not prove 10 tokens (its log shows 5)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ACTIONS)
def test_the_running_process_decides(case: str) -> None:
    service, disk, accepted, required, text = ACTIONS[case]
    now = {"service": service, "allocation": {"phase": "weights"} if service["active_state"] == "activating" else READY}
    found = unit_action(
        now, disk, BASE, environment_file="/etc/sglang/a.env", old_environment="A=1\n", new_environment="A=1\n", digest="new",
        accepted=accepted, required_tokens=required,
    )  # fmt: skip
    assert found["text"] == text
    assert found["action"] == text.split(":")[0].split()[0]


def test_variables_that_move_from_a_unit_into_a_file_are_not_called_removed() -> None:
    old = "[Service]\nEnvironment=A=1 B=2\nExecStart=/opt/v/bin/python -m sglang.launch_server --model-path /m\n"
    new = old.replace("Environment=A=1 B=2", "EnvironmentFile=/etc/sglang/a.env")
    now = {"service": {"active_state": "active", "digest": ""}, "allocation": READY}
    found = unit_action(now, old, new, environment_file="/etc/sglang/a.env", new_environment="A=1\nB=3\nC=4\n", digest="new")
    assert found["text"] == "restart because: environment: B 2 -> 3; environment: C 4 added"


@pytest.mark.parametrize("wrong", [None, 5, {}, {"service": None}])
def test_no_result_of_allocation_info_is_refused(wrong: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="asked for the result of allocation_info"):
        unit_action(wrong, "", "")


def test_no_text_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="asked for the text of a unit, found int; give the file's content"):
        unit_changes(5, BASE)
    with pytest.raises(AnsibleFilterError, match="asked for texts by path, found list; give a mapping"):
        unit_changes(BASE, BASE, old_files=[])


HAND = r"""
[Service]
User=infer
Group=infer
Environment=CUDA_VISIBLE_DEVICES=0,1,2,3 NCCL_P2P_LEVEL=SYS
Environment=HF_TOKEN=hf_x
EnvironmentFile=-/etc/k.env
ExecStart=/usr/bin/numactl --membind=0 /opt/v/bin/python3 -u -m sglang.launch_server \
  --model /srv/m --tp 8 --api-key 123 --speculative-algorithm DFLASH --speculative-draft-model-path /srv/d \
  --json-model-override-args '{"a": "b"}' --cuda-graph-bs 1 2 --mem-fraction=0.85 --trust-remote-code --dp 2
"""


def test_the_variables_of_a_unit_are_ready_to_paste() -> None:
    text = unit_variables(HAND, name="sglang-k26.service", version="0.5.12")
    assert "123" not in text
    assert "hf_x" not in text
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# in front of it stands /usr/bin/numactl --membind=0: no variable reproduces that",
        "# --api-key is not repeated here: put it into a file of mode 0600 and name that in sglang_api_key_file",
        "# --dp-size 2: the role has no variable for it",
        "# HF_TOKEN: not repeated here; put it into a file of mode 0600 and name that in sglang_environment_files",
    ]
    assert yaml.safe_load(text) == {
        "sglang_instance": "sglang-k26",
        "sglang_version": "0.5.12",
        "sglang_install_method": "existing",
        "sglang_existing_environment": "/opt/v",
        "sglang_model": "/srv/m",
        "sglang_draft_model": "/srv/d",
        "sglang_mem_fraction_static": 0.85,
        "sglang_tp_size": 8,
        "sglang_speculative_algorithm": "DFLASH",
        "sglang_extra_args": {"json-model-override-args": {"a": "b"}, "cuda-graph-bs": [1, 2], "trust-remote-code": True},
        "sglang_gpus": [0, 1, 2, 3],
        "sglang_environment": {"NCCL_P2P_LEVEL": "SYS"},
        "sglang_environment_files": ["-/etc/k.env"],
        "sglang_user": "infer",
        "sglang_group": "infer",
    }


def test_a_container_becomes_its_variables() -> None:
    text = unit_variables(
        "[Service]\nExecStart=/usr/bin/docker run --rm --name k26 --gpus all -v /srv:/srv lmsysorg/sglang:v1 "
        "python3 -m sglang.launch_server --model-path /srv/m\n"
    )
    assert yaml.safe_load(text) == {
        "sglang_install_method": "container",
        "sglang_container_engine": "docker",
        "sglang_container_image": "lmsysorg/sglang:v1",
        "sglang_container_args": ["--gpus", "all", "-v", "/srv:/srv"],
        "sglang_model": "/srv/m",
    }


def test_what_a_script_hides_is_said_and_nothing_is_made_up() -> None:
    assert unit_variables("[Service]\nExecStart=/opt/run.sh\n", name="x.service") == (
        "# /opt/run.sh hides how SGLang is started\nsglang_instance: x\n"
    )
