# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit on a host: its key that nobody reads, its cards, the time of its start, its drop-ins, and what it may not do.

Two instances of Kimi K2.6 share a host of sixteen cards, eight for each. The cards are played by a program in the place of nvidia-smi.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.fake_cards import Card, FakeCards, Holder
from support.host import Host
from support.kimi import kimi_host, kimi_service

Values = dict[str, Any]
KEYS = {"one": "sk-first-0123456789abcdef", "two": "sk-second-'quoted'-fedcba"}
PORTS = {"one": 31500, "two": 31501, "hangs": 31502}
# systemd 252 and 257 say 2.2 of a unit that is loaded; with sglang_hardened false it would be 8.8
MOST_EXPOSURE = 2.3
GATE = [{
    "hosts": "sglang", "gather_facts": False,
    "tasks": [{"ansible.builtin.include_role": {"name": "inferops.sglang.sglang", "tasks_from": "gate"}}],
}]  # fmt: skip
SIXTEEN = [Card(number, used_mib=4) for number in range(16)]
HELD = [*SIXTEEN[:9], Card(9, used_mib=40964), *SIXTEEN[10:]]
# cards that get free before the new start has looked were never waited for
SAYS_THAT_IT_WAITS = """
before=$(systemctl show -P InvocationID sglang-two.service)
systemctl restart --no-block sglang-two.service
until
    now=$(systemctl show -P InvocationID sglang-two.service)
    [ "$now" != "$before" ] && journalctl -o cat _SYSTEMD_INVOCATION_ID="$now" | grep -qF 'waits for its cards'
do sleep 0.1; tries=${tries}x; [ ${#tries} -lt 400 ] || exit 1; done"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with kimi_host(tmp_path_factory.mktemp("unit"), "unit", "infopx", "10.79.24") as booted:
        booted.shell("mkdir /root/keys")
        for name, key in KEYS.items():
            booted.shell(f"umask 077; cat > /root/keys/{name} <<'END'\n{key}\nEND")
        FakeCards(booted).install().show(SIXTEEN)
        yield booted


def service(name: str, cards: range, **more: Any) -> Values:
    return {
        **kimi_service(f"sglang-{name}", PORTS[name]),
        "sglang_gate_settle_time": 1, "sglang_host_memory_per_rank_gib": 0, "sglang_gpus": list(cards),
        "sglang_api_key_file": f"/root/keys/{name}" if name in KEYS else "", **more,
    }  # fmt: skip


ONE, TWO = service("one", range(8)), service("two", range(8, 16), sglang_gpu_wait=3)


@pytest.fixture(scope="module")
def deployed(host: Host) -> Host:
    for values in (ONE, TWO):
        run = host.play(values)
        assert run.code == 0, run.text
    return host


def ask(host: Host, name: str, key: str) -> str:
    """The status of a request with this key."""
    return host.shell(
        "/usr/bin/python3 - <<'END'\n"
        "import urllib.request as ask, urllib.error\n"
        f"request = ask.Request('http://127.0.0.1:{PORTS[name]}/v1/models', headers={{'Authorization': {'Bearer ' + key!r}}})\n"
        "try: print(ask.urlopen(request, timeout=20).status)\n"
        "except urllib.error.HTTPError as error: print(error.code)\n"
        "END"
    )


def test_two_instances_have_cards_ports_keys_and_caches_of_their_own(deployed: Host) -> None:
    for name, cards, seconds in (("one", "0,1,2,3,4,5,6,7", 300), ("two", "8,9,10,11,12,13,14,15", 3)):
        unit = f"sglang-{name}.service"
        assert deployed.shell(f"systemctl is-active {unit}") == "active"
        environment = deployed.read(f"/etc/sglang/sglang-{name}.env").splitlines()
        wanted = ['CUDA_DEVICE_ORDER="PCI_BUS_ID"', f'CUDA_VISIBLE_DEVICES="{cards}"', f'HIP_VISIBLE_DEVICES="{cards}"']
        assert [line for line in wanted if line not in environment] == []
        assert deployed.shell(f"stat -c '%a %U' /etc/sglang/sglang-{name}.env /root/keys/{name}") == "600 root\n600 root"
        assert deployed.shell(f"stat -c '%a %U' /var/cache/sglang/sglang-{name}") == "755 sglang"
        program = deployed.receipt(f"sglang-{name}")["release"] + "/bin/python /opt/sglang/libexec/launch_server.py"
        lines = deployed.read(f"/etc/systemd/system/{unit}")
        assert f"/sglang_guard.py cards --wait {seconds} --first 0 --count 8\nExecStart={program} \\\n    --model-path " in lines
        assert re.search(r"^inferops\.sglang: the server answers after \d+ s$", deployed.shell(f"journalctl -o cat -u {unit}"), re.M)
    answers = {(name, key): ask(deployed, name, KEYS[key]) for name in KEYS for key in KEYS}
    assert answers == {("one", "one"): "200", ("one", "two"): "401", ("two", "one"): "401", ("two", "two"): "200"}


# everything of a running service that is open to users of the host, to its group of administrators, or to a backup of its files
OPEN = {
    "command lines": "cat /proc/[0-9]*/cmdline",
    "environments": "for pid in $(cat /sys/fs/cgroup/system.slice/sglang-{0}.service/cgroup.procs); do cat /proc/$pid/environ; done",
    "the unit as systemd has it": "systemctl show sglang-{0}.service; systemctl cat sglang-{0}.service",
    "the journal": "journalctl --all -o export -u sglang-{0}.service | tr -cd '[:print:][:space:]'",
    "files": "cat /etc/sglang/* /etc/systemd/system/sglang-* $(find /var/lib/sglang /var/cache/sglang -type f)",
}


@pytest.mark.parametrize("place", OPEN)
def test_a_key_is_nowhere_to_be_read(deployed: Host, place: str) -> None:
    for name, key in KEYS.items():
        shown = deployed.shell(OPEN[place].format(name), check=False)
        assert "sglang" in shown
        assert [text for text in (key, repr(key)[1:-1], json.dumps(key)) if text in shown] == []


def test_the_arguments_are_logged_without_the_key(deployed: Host) -> None:
    journal = deployed.shell("journalctl --all -o cat -u sglang-two.service")
    assert re.search(r"""server_args=.*api_key=["']\*{6}["']""", journal)


def test_systemd_finds_nothing_wrong_and_little_exposed(deployed: Host) -> None:
    unit = "sglang-one.service"
    assert deployed.shell(f"systemd-analyze verify /etc/systemd/system/{unit} 2>&1") == ""
    said = deployed.shell(f"systemd-analyze security --no-pager {unit}")
    exposure = float(re.findall(r"Overall exposure level for \S+: (\d+\.\d)", said)[0])
    assert exposure <= MOST_EXPOSURE


def test_a_limit_of_time_is_taken_over_without_a_restart(deployed: Host) -> None:
    before = deployed.invocation("sglang-one")
    assert deployed.shell("systemctl show -P TimeoutStartUSec sglang-one.service") == "1h 10min"
    run = deployed.play({**ONE, "sglang_start_timeout": 5000})
    assert run.code == 0, run.text
    assert deployed.invocation("sglang-one") == before
    assert deployed.shell("systemctl show -P TimeoutStartUSec sglang-one.service") == "1h 23min 20s"


def test_held_cards_are_waited_for_and_named(deployed: Host) -> None:
    # it came when nobody looked: the service is started again by the service manager alone
    holder = deployed.shell("systemd-run -q --unit holder sleep 1000; systemctl show -P MainPID holder")
    FakeCards(deployed).show(HELD, [Holder(int(holder), 9, used_mib=40960)])
    deployed.shell("systemctl restart --no-block sglang-two.service")
    held = f"GPU 9: 40.0 GiB held by pid {holder} '/usr/bin/sleep 1000' of holder.service (40.0 GiB)"
    waits = f"inferops.sglang: waits for its cards (0 of 3 s): {held}"
    found = f"cards not free: asked for GPU 8,9,10,11,12,13,14,15 with less than 1 GiB in use within 3 s, found {held}"
    journal = "journalctl -o cat --since -60s -u sglang-two.service"
    deployed.wait_for(f"{journal} | grep -F \"{waits}\"")
    deployed.wait_for(f"{journal} | grep -Fx \"inferops.sglang: {found}; end what holds them, or give this instance other cards\"")

    playbook = deployed.inventory.parent / "gate.yml"
    playbook.write_text(json.dumps(GATE), encoding="utf-8")
    gate = deployed.play({**TWO, "sglang_tp_size": 8, "sglang_context_length": 200000}, playbook=str(playbook))
    assert gate.code == 2
    assert f"  - gpus_busy: {found}; end what holds..." in gate.text, gate.text
    assert "    do: end what holds the cards, or give this instance others (sglang_gpus) or more time (sglang_gpu_wait)" in gate.text

    FakeCards(deployed).show(SIXTEEN, once=SAYS_THAT_IT_WAITS)
    deployed.wait_for("systemctl is-active sglang-two.service | grep -x active")
    assert re.search(r"^inferops\.sglang: the cards are free after \d s$", deployed.shell(journal), re.M)


def test_a_start_that_hangs_is_ended_tried_again_and_left_and_a_drop_in_stays(host: Host) -> None:
    drop_in = "/etc/systemd/system/sglang-hangs.service.d/quick.conf"
    host.shell(f"mkdir {drop_in.rpartition('/')[0]}; printf '[Service]\\nRestartSec=200ms\\nEnvironment=OF=MINE\\n' > {drop_in}")
    values = service("hangs", range(8), sglang_start_timeout=5, sglang_allowed_findings=["instances"])
    values["sglang_environment"] = {**values["sglang_environment"], "STANDIN_FAULT": "hang:weights"}
    run = host.play(values)
    assert run.code == 2, run.text
    assert (
        f"sglang-hangs.service: drop-ins of your own stay and hold beside the unit ({drop_in}); "
        "of what was planned they change environment: OF MINE added"
    ) in " ".join(run.text.split())
    assert "  - start_timeout: the service manager says: start-post operation timed out" in run.text, run.text
    assert "    do: look what it waited for; raise TimeoutStartSec (sglang_start_timeout) only if it made progress" in run.text

    # nobody watches: as after a reboot
    host.shell("systemctl reset-failed sglang-hangs.service; systemctl start --no-block sglang-hangs.service")
    host.wait_for("systemctl is-failed --quiet sglang-hangs.service && echo failed")
    assert host.shell("systemctl show -P NRestarts sglang-hangs.service") == "3"
    assert "Start request repeated too quickly." in host.shell("journalctl -o cat -u sglang-hangs.service -n 5")
    assert host.read(drop_in) == "[Service]\nRestartSec=200ms\nEnvironment=OF=MINE"


def test_what_is_not_asked_is_not_in_the_unit(deployed: Host) -> None:
    values = {**service("hangs", range(0)), "sglang_instance": "sglang-bare", "sglang_device": "cpu", "sglang_hardened": False}
    run = deployed.play(values, "--check", "--diff")
    assert run.code == 0, run.text
    assert "X-InferopsInstance=sglang-bare" in run.text
    for absent in ("ExecStartPre=", "LoadCredential=", "ProtectSystem=", "SystemCallFilter=", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        assert absent not in run.text
