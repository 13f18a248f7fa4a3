# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest action that suffices, a unit written by hand that is taken over, and an instance that is taken away again."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import ROOT, Host, Run
from support.kimi import FREE_GIB, WEIGHTS_GIB, kimi_host, kimi_service

Values = dict[str, Any]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with kimi_host(tmp_path_factory.mktemp("change"), "change", "infopy", "10.79.25") as host:
        yield host


def kimi(instance: str, port: int, **environment: str) -> Values:
    return {**kimi_service(instance, port, **environment), "sglang_gate_settle_time": 0}


def by_hand(host: Host, name: str, port: int) -> str:
    """The unit that this project began with, as its owner wrote it: running, enabled, at 0.85. Returns its text."""
    text = f"""[Unit]
Description=Kimi K2.6 with its draft

[Service]
Environment=HF_HUB_OFFLINE=1 STANDIN_FREE_GIB={FREE_GIB}
Environment="STANDIN_WEIGHTS_GIB={WEIGHTS_GIB}" STANDIN_STEP_SECONDS=0.02
ExecStart=/opt/byhand/bin/python -m sglang.launch_server \\
    --model-path /srv/models/kimi-k2.6 --served-model-name kimi-k2.6 \\
    # the draft
    --speculative-algorithm DFLASH --speculative-draft-model-path /srv/models/kimi-k2.6-dflash \\
    --speculative-num-draft-tokens 8 --tp 8 --context-length 200000 \\
    --mem-fraction-static=0.85 --max-running-requests 64 --trust-remote-code --port {port}
Restart=always
LimitMEMLOCK=infinity

[Install]
WantedBy=multi-user.target
"""
    host.shell(
        "test -d /opt/byhand || { python3 -m venv /opt/byhand && "
        "/opt/byhand/bin/pip install -q --no-index --find-links /srv/wheels sglang; } >&2\n"
        f"cat > /etc/systemd/system/{name}.service <<'END'\n{text}END\n"
        f"mkdir -p /etc/systemd/system/{name}.service.d; printf '[Service]\\nNice=1\\n' > /etc/systemd/system/{name}.service.d/ours.conf\n"
        f"systemctl daemon-reload; systemctl -q enable --now {name}.service"
    )
    host.wait_for(f"journalctl --all -o cat -u {name}.service | grep 'fired up'")
    return text


def message(run: Run, begin: str) -> list[str]:
    """The lines of a message from this one on, without the margin that Ansible puts in front of them."""
    lines = run.text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith(begin) and not line.startswith("[ERROR]"))
    margin = len(lines[first]) - len(lines[first].lstrip())
    body = lines[first:]
    end = next((number for number, line in enumerate(body) if len(line) - len(line.lstrip()) < margin or not line.strip()), len(body))
    return [line[margin:] for line in body[:end]]


def planned(run: Run) -> str:
    """What the plan says is about to happen."""
    return next(line.strip().removeprefix("change").strip() for line in run.text.splitlines() if line.strip().startswith("change  "))


def remove(host: Host, instance: str, *options: str) -> Run:
    run = host.play({"sglang_instance": instance, "sglang_state": "absent"}, *options)
    assert run.code == 0, run.text
    return run


def test_the_smallest_action_suffices_and_is_shown_before_it_is_taken(host: Host) -> None:
    values = kimi("sglang-small", 32000)
    first = host.play(values)
    assert (first.code, planned(first)) == (0, "start: this instance has no unit here yet"), first.text
    invocation, state = host.invocation("sglang-small"), host.state()

    checked = host.play({**values, "sglang_max_running_requests": 4}, "--check")
    assert (checked.code, planned(checked)) == (0, "restart because: --max-running-requests 8 -> 4"), checked.text
    assert host.state() == state

    # the plan alone, and of a unit that the role wrote before its units had a mark
    role = {"name": "inferops.sglang.sglang", "tasks_from": "plan"}
    alone = host.inventory.parent / "plan.yml"
    profile = str(ROOT / "playbooks/vars/k26.yml")
    alone.write_text(json.dumps([{
        "hosts": "sglang", "gather_facts": False, "vars_files": [profile], "tasks": [{"ansible.builtin.include_role": role}],
    }]), encoding="utf-8")  # fmt: skip
    host.shell("sed -i '/^X-InferopsInstance=/d' /etc/systemd/system/sglang-small.service; systemctl daemon-reload")
    state = host.state()
    unmarked = host.play(values, playbook=str(alone))
    assert (unmarked.code, planned(unmarked)) == (0, "reload: X-InferopsInstance sglang-small added"), unmarked.text
    assert host.state() == state

    # a record of an adoption that is cut leads the way back nowhere else
    host.shell("printf '{\"id\": \"1\"}' > /var/lib/sglang/sglang-small/adoption.json")
    alone.write_text(alone.read_text(encoding="utf-8").replace('"plan"', '"rollback"'), encoding="utf-8")
    back = host.play(values, playbook=str(alone))
    assert (back.code, "The last accepted service runs again" in back.text) == (0, True), back.text
    assert host.shell("rm /var/lib/sglang/sglang-small/adoption.json; systemctl is-active sglang-small.service") == "active"
    invocation = host.invocation("sglang-small")

    # what systemd takes over by itself, written by hand, is put back without a restart
    host.shell("sed -i 's/^RestartSec=.*/RestartSec=5/' /etc/systemd/system/sglang-small.service; systemctl daemon-reload")
    reloaded = host.play(values)
    assert (reloaded.code, planned(reloaded)) == (0, "reload: RestartSec 5 -> 30"), reloaded.text
    assert host.invocation("sglang-small") == invocation
    assert host.shell("systemctl show -P NeedDaemonReload -P RestartUSec sglang-small.service").split() == ["30s", "no"]


def test_a_unit_written_by_hand_is_taken_over_only_where_that_is_asked(host: Host) -> None:
    name, port = "sglang-k26-ddtree", 32010
    old = by_hand(host, name, port)
    invocation, state = host.invocation(name), host.state()
    values = kimi(name, port)
    refused = host.play(values)
    assert refused.code == 2, refused.text
    said = message(refused, f"{name} on change: refused before anything was changed.")
    said = [re.sub(r"/opt/sglang/0\.5\.12\.post1-[0-9a-f]{8}/", "RELEASE/", line) for line in said]
    assert said[1:7] == [
        f"Asked to write /etc/systemd/system/{name}.service, found a unit of that name that this role did not write. "
        "The role would change:",
        "  - program /opt/byhand/bin/python -m sglang.launch_server -> RELEASE/bin/python -m sglang.launch_server",
        "  - --host 127.0.0.1 added",
        "  - --device cuda added",
        "  - --mem-fraction-static 0.85 -> 0.9259",
        "  - --max-running-requests 64 -> 8",
    ]
    assert said[said.index("These variables give the server that it starts now:") + 1 :] == [
        "  # it runs as root; the role runs it as sglang_user, who must be able to read the model",
        f"  sglang_instance: {name}",
        "  sglang_version: 0.5.12.post1+standin",
        "  sglang_install_method: existing",
        "  sglang_existing_environment: /opt/byhand",
        "  sglang_model: /srv/models/kimi-k2.6",
        "  sglang_draft_model: /srv/models/kimi-k2.6-dflash",
        "  sglang_served_model_name: kimi-k2.6",
        "  sglang_context_length: 200000",
        "  sglang_mem_fraction_static: 0.85",
        "  sglang_tp_size: 8",
        "  sglang_max_running_requests: 64",
        "  sglang_speculative_algorithm: DFLASH",
        "  sglang_speculative_num_draft_tokens: 8",
        f"  sglang_port: {port}",
        "  sglang_extra_args:",
        "    trust-remote-code: true",
        "  sglang_environment:",
        "    HF_HUB_OFFLINE: '1'",
        f"    STANDIN_FREE_GIB: '{FREE_GIB}'",
        f"    STANDIN_WEIGHTS_GIB: '{WEIGHTS_GIB}'",
        "    STANDIN_STEP_SECONDS: '0.02'",
        f"To take it over set sglang_adopt to {name}.service: the old file is kept beside the new one, and if the new server is refused, "
        "the old one is started again as it was. To leave it alone give sglang_instance another name.",
    ]
    assert f"Its drop-in /etc/systemd/system/{name}.service.d/ours.conf would stay in force." in said
    assert (host.invocation(name), host.state()) == (invocation, state)

    # what is refused by the gate gives the place back under the same name, too
    dies = host.play({**kimi(name, port, STANDIN_FAULT="silent_death"), "sglang_adopt": f"{name}.service"})
    assert dies.code == 2, dies.text
    assert f"{name}.service runs again as it was (101,134 tokens)." in dies.text
    assert host.read(f"/etc/systemd/system/{name}.service") == old.strip()
    assert host.shell(f"systemctl is-active {name}.service; systemctl is-enabled {name}.service").split() == ["active", "enabled"]

    # the old server's own start gives the fraction: the first start of the new one is right
    host.shell(f"rm /etc/systemd/system/{name}.service.*~")
    starts = host.starts(name)
    taken = host.play({**values, "sglang_adopt": f"{name}.service"})
    assert taken.code == 0, taken.text
    assert message(taken, f"{name} on change: takes over")[0] == (
        f"{name} on change: takes over {name}.service, whose file is kept beside the new one."
    )
    receipt = host.receipt(name)
    assert (receipt["prediction_basis"], receipt["mem_fraction_static"], receipt["min_tokens"]) == ("observed", 0.9259, 200099)
    assert host.starts(name) == starts + 1
    assert host.read(f"/etc/systemd/system/{name}.service.*~") == old.strip()


def test_a_server_that_is_refused_gives_its_place_back_even_after_a_run_that_was_killed(host: Host) -> None:
    name, old_name, port = "sglang-new", "sglang-hand", 32020
    old = by_hand(host, old_name, port)
    values = {**kimi(name, port), "sglang_adopt": f"{old_name}.service"}
    started = subprocess.Popen(host.command(values), env=host.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host.wait_for(f"systemctl is-active -q {old_name}.service || echo stopped", 300)
    started.kill()
    started.wait()

    refused = host.play({**values, **kimi(name, port, STANDIN_FAULT="silent_death")})
    assert refused.code == 2, refused.text
    assert f"{old_name}.service runs again as it was (101,134 tokens)." in refused.text
    states = f"systemctl is-active {old_name}.service {name}.service; systemctl is-enabled {old_name}.service {name}.service"
    assert host.shell(states, check=False).split() == ["active", "inactive", "enabled", "disabled"]
    assert host.starts(old_name) == 2

    taken = host.play(values)
    assert taken.code == 0, taken.text
    assert message(taken, f"{name} on change: takes over")[0] == (
        f"{name} on change: takes over {old_name}.service, which is stopped and disabled right before the new one starts; its file stays."
    )
    assert f"Its drop-in /etc/systemd/system/{old_name}.service.d/ours.conf holds no more." in taken.text
    assert host.shell(states, check=False).split() == ["failed", "active", "disabled", "enabled"]
    assert host.read(f"/etc/systemd/system/{old_name}.service") == old.strip()
    assert host.receipt(name)["prediction_basis"] == "observed"


REFUSED_ADOPTIONS = {
    "sglang-nowhere.service": "Asked to adopt sglang-nowhere.service, found no such unit; give the name of the unit that starts SGLang now",
    "sglang-new.service": "Asked to adopt sglang-new.service, found that this role wrote it for the instance sglang-new; deploy that one",
    "ssh.service": "Asked to adopt ssh.service, found that it does not start SGLang (/usr/sbin/sshd -D); give the name of",
}


@pytest.mark.parametrize("unit", REFUSED_ADOPTIONS)
def test_what_cannot_be_taken_over_is_said_before_anything_changed(host: Host, unit: str) -> None:
    state = host.state()
    run = host.play({**kimi("sglang-other", 32030), "sglang_adopt": unit})
    assert run.code == 2, run.text
    assert REFUSED_ADOPTIONS[unit] in run.text, run.text
    assert host.state() == state


def test_an_instance_is_taken_away_alone_even_after_a_run_that_was_killed(host: Host) -> None:
    name = "sglang-small"
    others = host.shell("cat /var/lib/sglang/sglang-new/receipt.json; systemctl show -P InvocationID sglang-new.service")
    host.shell(f"mkdir /run/systemd/system/{name}.service.d; cd /run/systemd/system/{name}.service.d; "
               "printf '[Service]\\nExecStop=/bin/sleep 600\\n' > slow.conf; systemctl daemon-reload")  # fmt: skip
    state = host.state()
    looked = remove(host, name, "--check", "--diff")
    assert host.state() == state
    assert "-/etc/systemd/system/sglang-small.service" in looked.text.splitlines()

    values = {"sglang_instance": name, "sglang_state": "absent"}
    started = subprocess.Popen(host.command(values), env=host.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host.wait_for(f"systemctl show -P ActiveState {name}.service | grep deactivating", 300)
    # the module on the host and what it waits for: without them nobody goes on where the run ends
    host.shell(f"waits=$(pgrep -f 'systemct[l] disable --now {name}'); kill -9 $(ps -o ppid= -p $waits) $waits")
    started.kill()
    started.wait()
    host.shell(f"rm -r /run/systemd/system/{name}.service.d; systemctl daemon-reload; systemctl kill -s KILL {name}.service")
    host.shell(f"test -e /etc/systemd/system/{name}.service")

    removed = message(remove(host, name), f"{name} on change: removed")
    assert removed[1:4] == [
        f"  - /etc/systemd/system/{name}.service", f"  - /etc/sglang/{name}.env", f"  - /opt/sglang/current/{name}",
    ]  # fmt: skip
    assert removed[-3:] == [
        "stays:",
        "  - /srv/models/kimi-k2.6: models stay unless sglang_absent_models is true",
        "  - /srv/models/kimi-k2.6-dflash: models stay unless sglang_absent_models is true",
    ]
    assert "user" not in " ".join(removed)
    assert host.shell("cat /var/lib/sglang/sglang-new/receipt.json; systemctl show -P InvocationID sglang-new.service") == others
    assert host.shell(f"find / -xdev -name '*{name}*' -not -path '/proc/*' -not -path '/var/log/*'") == ""


def test_the_last_instance_takes_all_that_was_made_and_nothing_else(host: Host) -> None:
    name = "sglang-k26-ddtree"
    kept = message(remove(host, name), f"{name} on change: removed")
    kept = kept[kept.index("stays:") + 1 :]
    assert kept[0] == f"  - /etc/systemd/system/{name}.service.d/ours.conf: a drop-in is its writer's"
    assert re.fullmatch(rf"  - /etc/systemd/system/{name}\.service\..*~: the copy of a unit that the role replaced", kept[1])
    host.shell("touch /etc/sglang/notes")
    last = message(remove(host, "sglang-new"), "sglang-new on change: removed")
    assert [line for line in last if "sglang/0.5.12" not in line] == [
        "sglang-new on change: removed",
        *(f"  - {path}" for path in (
            "/etc/systemd/system/sglang-new.service", "/etc/sglang/sglang-new.env", "/opt/sglang/current/sglang-new", "/opt/sglang/libexec",
            "/opt/sglang/current", "/var/cache/sglang/sglang-new", "/var/cache/sglang", "/var/lib/sglang/sglang-new/accepted.json",
            "/var/lib/sglang/sglang-new/adoption.json", "/var/lib/sglang/sglang-new/boots.json", "/var/lib/sglang/sglang-new/receipt.json",
            "/var/lib/sglang/sglang-new/verdict.json", "/var/lib/sglang/sglang-new", "/opt/sglang", "user sglang", "group sglang",
            "/var/lib/sglang/made.json", "/var/lib/sglang",
        )),
        "stays:",
        "  - /srv/models/kimi-k2.6: models stay unless sglang_absent_models is true",
        "  - /srv/models/kimi-k2.6-dflash: models stay unless sglang_absent_models is true",
        "  - /etc/sglang: it is not empty: notes",
    ]  # fmt: skip
    assert host.shell("ls -d /opt/* /etc/sglang /var/lib/sglang /var/cache/sglang; getent passwd sglang", check=False).split() == [
        "/etc/sglang", "/opt/byhand",
    ]  # fmt: skip
    # what was taken over once is its owner's again
    again = remove(host, "sglang-hand")
    assert (again.changed, message(again, "sglang-hand on change:")) == (0, [
        "sglang-hand on change: nothing to remove",
        "stays:",
        "  - /etc/systemd/system/sglang-hand.service: the role did not write this unit",
    ])  # fmt: skip
