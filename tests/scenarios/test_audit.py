# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit of three hosts, well and in every way unwell: what it says of each, how it ends, and that it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.fleet import Fleet, FleetRun, kimi_fleet
from support.prometheus import parsed

UNIT, METRICS = "sglang-fleet.service", "/run/sglang.prom"
# the unit of the role without its marks, on another port: somebody wrote it by hand
BY_HAND = f"""cd /etc/systemd/system
sed -e '/^X-Inferops/d' -e '/^SyslogIdentifier=/d' -e '/^CacheDirectory=/d' -e 's/--port 30000/--port 30100/' {UNIT} > byhand.service
systemctl daemon-reload; systemctl start --no-block byhand.service"""
# a drop-in of the operator: 30 s between two starts are long for a test
SOON = f"d=/run/systemd/system/{UNIT}.d; mkdir -p $d; printf '[Service]\\nRestartSec=1\\n' > $d/soon.conf; "
READY = "journalctl --all -o cat -u {unit} | grep 'fired up' | tail -n +{starts}"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    work = tmp_path_factory.mktemp("audit")
    values = {"sglang_gate_settle_time": 0, "sglang_report_dir": str(work / "reports")}
    with kimi_fleet(work, "audit", 3, "infopv", "10.79.33", **values) as hosts:
        # of one class, but for the fraction
        hosts.ask(1, sglang_mem_fraction_static=0.94)
        deployed = hosts.play({"sglang_batches": ["100%"]})
        assert deployed.code == 0, deployed.text
        yield hosts


def audit(fleet: Fleet, *options: str, **values: Any) -> FleetRun:
    return fleet.play(values, *options, playbook="inferops.sglang.audit")


def told(run: FleetRun) -> list[str]:
    """What it says for people."""
    lines = run.text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("Audit: "))
    return lines[first : next(number for number in range(first, len(lines)) if lines[number].startswith(("ok: ", "[ERROR]")))]


def kept(fleet: Fleet, name: str) -> Any:
    return json.loads((fleet.reports / "latest" / name).read_text(encoding="utf-8"))


def checks(fleet: Fleet) -> dict[str, list[str]]:
    return {host["name"]: host["checks"] for host in kept(fleet, "audit.json")["hosts"]}


def test_a_fleet_that_is_well(fleet: Fleet) -> None:
    before = [(host.state(), host.starts("sglang-fleet")) for host in fleet.hosts]
    run = audit(fleet)
    assert run.code == 0, run.text
    rows = [line.split() for line in told(run)[2:5]]
    assert [(row[0], row[1], row[3], row[4], row[6], row[7]) for row in rows] == [
        ("audit-1", "sglang-fleet", "200,099", "200,000", "0.9259", "accepted"),
        ("audit-2", "sglang-fleet", "218,484", "200,000", "0.9400", "accepted"),
        ("audit-3", "sglang-fleet", "200,099", "200,000", "0.9259", "accepted"),
    ]
    assert told(run)[5:] == [
        "  note: audit-2 sglang-fleet: 218,484 tokens, 18,385 more than the 200,099 of its class (3 servers); "
        "its fraction is 0.9400, theirs 0.9259"
    ]
    assert fleet.states() == ["accepted", "accepted", "accepted"]
    assert set(run.changes().values()) == {0}
    assert [(host.state(), host.starts("sglang-fleet")) for host in fleet.hosts] == before


def test_more_is_asked_than_was_accepted(fleet: Fleet) -> None:
    """A question in double quotes, with blanks, as a person types it; the exit code is that of the audit."""
    run = audit(fleet, "-e", "sglang_audit_query=hosts[?min_tokens < `210000`].name", sglang_context_length=210000)
    assert run.code == 2, run.text
    assert kept(fleet, "answer.json") == {"query": "hosts[?min_tokens < `210000`].name", "answer": ["audit-1", "audit-3"]}
    assert '[\n "audit-1",\n "audit-3"\n]' in run.text
    assert "1 of 3 hosts accepted, 2 refused (audit-1, audit-3)" in run.text
    assert checks(fleet) == {"audit-1": ["pool"], "audit-2": [], "audit-3": ["pool"]}


def test_a_unit_that_was_edited_a_server_that_is_down_and_a_host_that_is_lost(fleet: Fleet) -> None:
    fleet[0].shell(f"sed -i 's/0.9259/0.8900/' /etc/systemd/system/{UNIT}")
    fleet[1].shell(f"systemctl stop {UNIT}")
    fleet[2].shell("systemctl stop ssh.socket ssh.service 2>/dev/null; pkill -KILL sshd; true")
    run = audit(fleet, sglang_audit_textfile=METRICS)
    assert run.code == 2, run.text
    text = "\n".join(told(run))
    assert "Audit: 0 of 3 hosts accepted, 2 refused (audit-1, audit-2), 1 unreachable (audit-3)" in text
    assert "drift: a unit on the disk that differs: --mem-fraction-static 0.9259 -> 0.8900; the server still runs what was accepted" in text
    assert "running: it does not run: the unit is" in text
    assert "do: see that it runs and that Ansible reaches it" in text
    assert checks(fleet) == {"audit-1": ["drift"], "audit-2": ["running"], "audit-3": ["reach"]}
    assert fleet.states() == ["refused", "refused", "unreachable"]
    # nothing but the metrics that were asked for
    assert run.changes() == {"audit-1": 1, "audit-2": 1, "audit-3": 0}
    metrics = [parsed(host.shell(f"cat {METRICS}") + "\n") for host in fleet.hosts[:2]]
    assert [value for _labels, value in metrics[0]["sglang_pool_tokens"]] == [200099] * 8
    labels = f'host="audit-1",unit="{UNIT}"'
    assert [metrics[0][name] for name in ("sglang_accepted", "sglang_answering")] == [[(labels, 0)], [(labels, 1)]]
    assert "sglang_pool_tokens" not in metrics[1]
    assert metrics[1]["sglang_proved_tokens"] == [(labels.replace("audit-1", "audit-2"), 0)]


def test_a_server_that_died_one_out_of_its_balancers_and_one_by_hand(fleet: Fleet) -> None:
    """The first is as it was accepted, but not the start that was; the last has lost its log, and a unit of somebody else beside it."""
    fleet[0].shell(SOON + f"sed -i 's/0.8900/0.9259/' /etc/systemd/system/{UNIT}; systemctl daemon-reload; systemctl kill -s KILL {UNIT}")
    fleet[1].shell(f"systemctl start --no-block {UNIT}; echo '{{' > /var/lib/sglang/sglang-fleet/drained.json")
    fleet.find(2)
    fleet[2].shell(f"journalctl -q --rotate; sleep 1.1; journalctl -q --vacuum-time=1s; {BY_HAND}")
    fleet[0].wait_for(READY.format(unit=UNIT, starts=2))
    fleet[1].wait_for(READY.format(unit=UNIT, starts=2))
    fleet[2].wait_for(READY.format(unit="byhand.service", starts=1))
    run = audit(fleet, sglang_context_length=200000)
    assert run.code == 2, run.text
    text = "\n".join(told(run))
    assert checks(fleet) == {"audit-1": ["restart"], "audit-2": ["drained"], "audit-3": []}
    assert "restart: it died and was started again, 1 times since the last start by hand" in text
    assert "drained: taken out of its balancers" in text
    assert "note: audit-2 sglang-fleet: started again since it was accepted" in text
    assert "note: audit-3 byhand: the role did not write this unit; sglang_adopt: byhand.service takes it over" in text
    assert "note: audit-3 sglang-fleet: the journal has lost this start" in text
    last = kept(fleet, "audit.json")["hosts"][2]["instances"]
    assert [(server["name"], server["accepted"], server["min_tokens"], server["proof"]) for server in last] == [
        ("byhand", True, 200099, "journal"), ("sglang-fleet", True, 200099, "receipt"),
    ]  # fmt: skip


def test_what_hosts_returned_cannot_be_given_from_outside(fleet: Fleet) -> None:
    forged = {"audit": {"instances": [], "gpus": [], "idle_gib": 0, "findings": [], "warnings": []}}
    run = audit(fleet, "--check", __sglang_audit=forged)
    assert run.code == 2
    assert "found __sglang_audit given on the command line, which would stand for all of them; leave it out" in " ".join(run.text.split())


def test_a_name_that_nothing_reads_is_refused_before_anything_is_read(fleet: Fleet) -> None:
    run = audit(fleet, sglang_audit_querry="hosts[].name")
    assert run.code == 2, run.text
    assert "sglang_audit_querry: nothing reads such a variable; look at the spelling" in " ".join(run.text.split())
    assert "Read every server of this host" not in run.text
