# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four servers behind SGLang's own router and behind HAProxy: no request fails while a rollout goes through them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.balancers import Haproxy, Router, balancers, flowing
from support.fleet import INSTANCE, PORT, Fleet, kimi_fleet
from support.host import ROOT

NETWORK = "10.79.31"
DRAINED = f"/var/lib/sglang/{INSTANCE}/drained.json"

# The least that takes a server out by hand, restarts it, and puts it back.
BY_HAND = f"""\
- hosts: sglang
  gather_facts: false
  become: true
  serial: 1
  tasks:
    - name: Take it out
      ansible.builtin.include_role: {{name: inferops.sglang.sglang, tasks_from: drain}}
    - name: Restart it
      ansible.builtin.systemd_service: {{name: {INSTANCE}.service, state: restarted}}
    - name: Wait for it
      inferops.sglang.allocation_info: {{unit: {INSTANCE}.service, wait_for: ready, require_ready: true, wait_timeout: 120}}
    - name: Put it back
      ansible.builtin.include_role: {{name: inferops.sglang.sglang, tasks_from: undrain}}
"""
# stopped once it is the server's process: before that it has not even its environment
HALFWAY = f"""
systemctl restart --no-block {INSTANCE}.service
until
    pid=$(systemctl show -P MainPID {INSTANCE}.service)
    grep -qs INFEROPS_DIGEST= /proc/$pid/environ && [ "$(systemctl show -P ActiveState {INSTANCE}.service)" = activating ]
do sleep 0.05; tries=${{tries}}x; [ ${{#tries}} -lt 400 ] || exit 1; done
kill -STOP "$pid"
"""
HOOK = """\
- name: Say what happens
  ansible.builtin.lineinfile:
    path: {path}
    line: "{what} {{{{ sglang_instance }}}}"
    create: true
    mode: "0644"
"""


@dataclass
class Site:
    fleet: Fleet
    router: Router
    haproxy: Haproxy
    work: Path

    def url(self, number: int) -> str:
        """The server as the router knows it."""
        return f"http://{addresses(self.fleet)[number]}:{PORT}"

    def values(self, **more: Any) -> dict[str, Any]:
        """What every run here is asked with."""
        entries = [
            {"kind": "router", "url": self.router.url},
            {"kind": "haproxy", "socket": "{}:{}".format(*self.haproxy.admin), "backend": "sglang"},
        ]
        return {"sglang_balancers": entries, "sglang_port": PORT, "sglang_instance": INSTANCE, **more}

    def invocations(self) -> list[str]:
        return self.fleet.shell(f"systemctl show -P InvocationID {INSTANCE}.service")


def addresses(fleet: Fleet) -> list[str]:
    return [text.split()[0] for text in fleet.shell("hostname -I")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    work = tmp_path_factory.mktemp("balanced")
    with kimi_fleet(work, "balanced", 4, "infopb", NETWORK, sglang_host="0.0.0.0", sglang_gate_settle_time=1) as fleet:
        paced = json.loads((fleet.inventory / "group_vars/sglang.json").read_text(encoding="utf-8"))["sglang_environment"]
        fleet.ask(sglang_environment={**paced, "STANDIN_TOKEN_SECONDS": "0.1"})
        first = fleet.play()
        assert first.code == 0, first.text
        servers = {host.name: f"{address}:{PORT}" for host, address in zip(fleet.hosts, addresses(fleet), strict=True)}
        with balancers(work, f"{NETWORK}.1", servers) as (router, haproxy):
            yield Site(fleet, router, haproxy, work)


def test_no_request_fails_while_each_server_is_restarted_by_hand(site: Site) -> None:
    playbook = site.work / "by_hand.yml"
    playbook.write_text(BY_HAND, encoding="utf-8")
    workers, before = site.router.workers(), site.invocations()
    with flowing([site.router.url, site.haproxy.url]) as load:
        run = site.fleet.play(site.values(), playbook=str(playbook))
    assert run.code == 0, run.text
    assert load.failures == []
    assert load.streamed > 10
    assert not set(before) & set(site.invocations())
    assert site.router.workers() == workers
    assert set(site.haproxy.statuses().values()) == {"UP"}


def test_no_request_fails_while_a_rollout_goes_through(site: Site) -> None:
    # one worker is not what the router would make of it, and one is out for a reason of somebody else
    site.router.remove(site.url(1))
    site.router.add(site.url(1), priority=70, cost=2.5, labels={"rack": "b7"})
    site.router.remove(site.url(3))
    workers, before = site.router.workers(), site.invocations()
    hooks = {}
    for what in ("drain", "undrain"):
        hooks[f"sglang_{what}_tasks"] = str(site.work / f"{what}.yml")
        (site.work / f"{what}.yml").write_text(HOOK.format(path="/root/hooks", what=what), encoding="utf-8")
    with flowing([site.router.url, site.haproxy.url]) as load:
        run = site.fleet.play(site.values(sglang_max_running_requests=16, **hooks))
    assert run.code == 0, run.text
    assert load.failures == []
    assert load.streamed > 10
    assert not set(before) & set(site.invocations())
    assert [server.max_running_requests for server in site.fleet.serving()] == [16] * 4
    assert site.router.workers() == workers
    assert workers[site.url(1)]["priority"] == 70
    assert site.url(3) not in workers
    assert set(site.haproxy.statuses().values()) == {"UP"}
    assert site.fleet.shell("cat /root/hooks") == [f"drain {INSTANCE}\nundrain {INSTANCE}"] * 4
    assert site.fleet.shell(f"ls {DRAINED} 2>/dev/null || true") == [""] * 4
    told = {host["host"]: host["balancers"] for host in site.fleet.report()["hosts"]}
    assert [len(told[host.name]) for host in site.fleet.hosts] == [4, 4, 4, 2]
    assert "put back, healthy" in told["balanced-1"][2]
    # nothing is left to do, and nothing is asked of a balancer for it
    site.router.add(site.url(3))
    again = site.fleet.play(site.values(sglang_max_running_requests=16, **hooks))
    assert (again.code, set(again.changes().values())) == (0, {0}), again.text
    assert "Ask the routers" not in again.text


def test_what_was_taken_out_is_put_back_by_the_next_run(site: Site) -> None:
    workers, name = site.router.workers(), site.fleet[0].name
    asked = site.values(sglang_max_running_requests=12)
    kill = {"task": "Put the server back into the routers", "turn": 1, "run": "kill -KILL -$PPID"}
    killed = site.fleet.play(asked, "--limit", name, at=kill)
    assert killed.code == -9, killed.text
    assert site.url(0) not in site.router.workers()
    assert site.haproxy.statuses()[name] == "MAINT"
    record = json.loads(site.fleet[0].read(DRAINED))
    assert [(entry["kind"], entry.get("worker")) for entry in record["taken_out"]] == [("router", site.url(0)), ("haproxy", None)]
    starts = site.fleet[0].starts(INSTANCE)
    finished = site.fleet.play(asked, "--limit", name)
    assert finished.code == 0, finished.text
    assert (site.router.workers(), site.haproxy.statuses()[name]) == (workers, "UP")
    assert site.fleet[0].starts(INSTANCE) == starts
    assert site.fleet[0].shell(f"ls {DRAINED} 2>/dev/null || true") == ""


def test_a_server_that_cannot_be_taken_out_serves_on(site: Site) -> None:
    workers, before, name = site.router.workers(), site.invocations()[1], site.fleet[1].name
    asked = site.values(sglang_max_running_requests=12, sglang_drain_timeout=1)
    long = http.client.HTTPConnection(site.url(1).removeprefix("http://"), timeout=60)
    long.request("POST", "/generate", json.dumps({"text": "on", "stream": True, "sampling_params": {"max_new_tokens": 3000}}))
    stream = long.getresponse()
    assert stream.readline().startswith(b"data: {")
    busy = site.fleet.play(asked, "--limit", name)
    assert busy.code != 0, busy.text
    assert f"asked for no request under way at {site.url(1)} within 1 s, found 1 request" in " ".join(busy.text.split())
    assert stream.readline() == b"\n"
    assert (site.invocations()[1], site.router.workers(), site.haproxy.statuses()[name]) == (before, workers, "UP")

    # a run that was killed while it waited had taken it out; what runs was accepted, so the next one that must refuse gives all of it back
    kill = {"task": "Take the server out of the routers", "turn": 1, "run": "kill -KILL -$PPID"}
    killed = site.fleet.play(asked, "--limit", name, at=kill)
    assert (killed.code, site.url(1) in site.router.workers()) == (-9, False), killed.text
    refused = site.fleet.play(asked, "--limit", name)
    assert "within 1 s, found 1 request" in " ".join(refused.text.split()), refused.text
    long.close()
    assert (site.invocations()[1], site.router.workers(), site.haproxy.statuses()[name]) == (before, workers, "UP")

    # a balancer whose host cannot be reached is refused like one that says nothing: this host is not lost
    away = {**asked, "sglang_balancers": [{**entry, "delegate_to": "balancer.invalid"} for entry in asked["sglang_balancers"]]}
    lost = site.fleet.play(away, "--limit", name)
    assert lost.code == 2, lost.text
    assert "asked balancer.invalid to speak to a balancer, found no way to that host" in " ".join(lost.text.split())
    assert site.invocations()[1] == before

    # a balancer that is not there: nothing is stopped, and the other one is told nothing; not even where nothing was accepted to go back to
    site.router.stop()
    accepted = DRAINED.replace("drained", "accepted")
    site.fleet[1].shell(f"mv {accepted} {accepted}.away")
    lost = site.fleet.play(asked, "--limit", name)
    site.fleet[1].shell(f"mv {accepted}.away {accepted}")
    assert lost.code != 0, lost.text
    assert "Nothing was stopped: what ran before this run runs on." in " ".join(lost.text.split())
    assert f"router {site.router.url}: asked for its workers (/workers), found connection refused" in " ".join(lost.text.split()).lower()
    assert (site.invocations()[1], site.haproxy.statuses()[name]) == (before, "UP")
    assert site.fleet[1].shell(f"ls {DRAINED} 2>/dev/null || true") == ""
    site.router.start()


def test_a_server_that_was_stopped_gets_no_request_before_it_was_proved(site: Site) -> None:
    workers, name, server = site.router.workers(), site.fleet[2].name, site.fleet[2]
    server.shell(f"systemctl stop {INSTANCE}.service")
    asked = site.values(sglang_max_running_requests=12)
    kill = {"task": "Judge it", "turn": 1, "run": "kill -KILL -$PPID"}
    killed = site.fleet.play(asked, "--limit", name, at=kill)
    assert killed.code == -9, killed.text
    # it runs and answers, and neither balancer sends it anything
    assert server.shell(f"systemctl is-active {INSTANCE}.service") == "active"
    assert (site.url(2) in site.router.workers(), site.haproxy.statuses()[name]) == (False, "MAINT")

    # what that run took out was not proved: where the next one must refuse, it stays out
    long = http.client.HTTPConnection(site.url(2).removeprefix("http://"), timeout=60)
    long.request("POST", "/generate", json.dumps({"text": "on", "stream": True, "sampling_params": {"max_new_tokens": 3000}}))
    assert long.getresponse().readline().startswith(b"data: {")
    record = server.read(DRAINED)
    busy = site.fleet.play({**asked, "sglang_max_running_requests": 13, "sglang_drain_timeout": 1}, "--limit", name)
    assert busy.code != 0, busy.text
    assert "found 1 request; wait longer" in " ".join(busy.text.split())
    assert "what an earlier run took out stays out until its server was proved" in " ".join(busy.text.split())
    assert (site.url(2) in site.router.workers(), site.haproxy.statuses()[name]) == (False, "MAINT")
    assert json.loads(server.read(DRAINED)) == json.loads(record)
    long.close()
    proved = site.fleet.play(asked, "--limit", name)
    assert proved.code == 0, proved.text
    assert (site.router.workers(), site.haproxy.statuses()[name]) == (workers, "UP")

    # a balancer that is there and knows no such server may send it requests under another name
    server.shell(f"systemctl stop {INSTANCE}.service")
    wrong = {**asked, "sglang_balancers": [{**asked["sglang_balancers"][1], "server": "misspelt"}]}
    refused = site.fleet.play(wrong, "--limit", name)
    assert refused.code == 2, refused.text
    text = " ".join(refused.text.split())
    assert "asked for its state, found no server misspelt in backend sglang; mend the name" in text
    assert f"Nothing was started: {INSTANCE}.service is stopped, as it was before this run." in text
    assert server.shell(f"systemctl is-active {INSTANCE}.service || true") != "active"

    # a balancer that is not there yet sends nothing either: the first servers of a site are deployed before its router
    site.router.stop()
    alone = site.fleet.play(asked, "--limit", name)
    site.router.start()
    assert alone.code == 0, alone.text
    assert site.haproxy.statuses()[name] == "UP"
    assert server.shell(f"ls {DRAINED} 2>/dev/null || true") == ""
    (told,) = [host["balancers"] for host in site.fleet.report()["hosts"] if host["host"] == name]
    assert told[0].startswith(f"router {site.router.url}: asked for its workers (/workers), found ")
    assert told[0].endswith(" (the server did not run)")


def test_a_server_that_is_on_its_way_up_gets_no_request_before_it_was_proved(site: Site) -> None:
    workers, name, server = site.router.workers(), site.fleet[2].name, site.fleet[2]
    asked = site.values(sglang_max_running_requests=site.fleet.serving()[2].max_running_requests)
    # as after a reboot: nobody deploys it, and it is not ready yet
    server.shell(HALFWAY)
    started = server.invocation(INSTANCE)
    goes_on = f"{ROOT}/tests/hosts/hosts exec {name} systemctl kill -s CONT {INSTANCE}.service"
    run = site.fleet.play(asked, "--limit", name, at={"task": "Watch the boot", "turn": 1, "run": goes_on})
    assert run.code == 0, run.text
    assert server.invocation(INSTANCE) == started, run.text
    (told,) = [host["balancers"] for host in site.fleet.report()["hosts"] if host["host"] == name]
    assert [line.rsplit(" ", 1)[0].partition(f"{PORT} ")[2][:9] for line in told if line.startswith("router")] == ["taken out", "put back,"]
    assert (site.router.workers(), site.haproxy.statuses()[name]) == (workers, "UP")
