# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate on a host: the report as it is printed, the verdict that is kept, and what it refuses beside a short pool."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import ROOT, Host, Run, environment
from support.kimi import FREE_GIB, VERSION, kimi_service

Values = dict[str, Any]
GATE = [{
    "hosts": "sglang", "gather_facts": False,
    "tasks": [{"ansible.builtin.include_role": {"name": "inferops.sglang.sglang", "tasks_from": "gate"}}],
}]  # fmt: skip


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One Debian host with the stand-in's wheel and the configs of Kimi K2.6 and its draft; gone afterwards."""
    work = tmp_path_factory.mktemp("gate")
    subprocess.run([sys.executable, ROOT / "tests/engine/standin/build_wheel.py", VERSION, work / "wheels"], check=True)
    for model in ("kimi-k2.6", "kimi-k2.6-dflash"):
        (work / "models" / model).mkdir(parents=True)
        shutil.copy(ROOT / f"tests/unit/fixtures/configs/{model}.json", work / "models" / model / "config.json")
    variables, hosts = environment("infopg", "10.79.13"), ROOT / "tests/hosts/hosts"
    binds = [word for part in ("wheels", "models") for word in ("--bind-ro", f"{work / part}:/srv/{part}")]
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        subprocess.run([hosts, "up", "gate", "--group", "sglang", *binds], env=variables, check=True)
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        (work / "gate.yml").write_text(json.dumps(GATE), encoding="utf-8")
        yield Host("gate", inventory, variables)
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


@pytest.fixture(scope="module")
def deployed(host: Host) -> Values:
    """A service that was deployed and accepted, for the tests that only look at it."""
    values = {**kimi_service("sglang-gate", 31400), "sglang_gate_settle_time": 1}
    run = host.play(values)
    assert run.code == 0, run.text
    return values


def gate(host: Host, values: Values, **more: Any) -> Run:
    """The gate alone, as anybody runs it over a unit of theirs."""
    asked = {"sglang_tp_size": 8, "sglang_context_length": 200000, "sglang_gate_timeout": 30, "sglang_gate_settle_time": 0}
    return host.play({**values, **asked, **more}, playbook=str(host.inventory.parent / "gate.yml"))


def report(run: Run) -> list[str]:
    """The report as it was printed, from its headline on, without what Ansible puts in front of its lines."""
    lines = run.text.splitlines()
    begin = next(number for number, line in enumerate(lines) if "tokens asked of every rank" in line)
    margin = len(lines[begin]) - len(lines[begin].lstrip())
    body = [line[margin:] for line in lines[begin + 1 :]]
    end = next(number for number, line in enumerate([*body, ""]) if not line.startswith("  "))
    return [lines[begin][margin:].removeprefix("[ERROR]: Task failed: Action failed: "), *body[:end]]


def kept(host: Host, instance: str) -> Any:
    return json.loads(host.read(f"/var/lib/sglang/{instance}/verdict.json"))


def test_the_report_is_a_table_and_the_verdict_is_kept_once(host: Host, deployed: Values) -> None:
    name = deployed["sglang_instance"]
    first = host.read(f"/var/lib/sglang/{name}/verdict.json")
    run = gate(host, deployed)
    assert (run.code, run.changed) == (0, 0), run.text
    assert report(run) == [
        f"gate {name}.service: ACCEPTED, 200,000 tokens asked of every rank",
        "  rank     pool  against asked    draft  GiB left  verdict",
        *[f"  TP{rank}   200,099       99 spare  200,099      4.48  ok" for rank in range(8)],
    ]
    assert host.read(f"/var/lib/sglang/{name}/verdict.json") == first
    verdict = json.loads(first)
    assert (verdict["accepted"], verdict["min_tokens"], verdict["invocation_id"]) == (True, 200099, host.invocation(name))
    assert [row["rank"] for row in verdict["rows"]] == [f"TP{rank}" for rank in range(8)]
    assert host.shell(f"stat -c %a /var/lib/sglang/{name}/verdict.json") == "644"
    checked = host.play(deployed, "--check")
    assert (checked.code, checked.changed) == (0, 0), checked.text


REFUSED = {
    "headroom": (
        {"sglang_gate_min_avail_gib": 4.5},
        ["  - ranks TP0-TP7: headroom: 4.48 GiB left, 4.50 GiB wanted"],
    ),
    "a flag": (
        {"sglang_kv_cache_dtype": "fp8_e4m3", "sglang_max_running_requests": 8},
        ["  - kv-cache-dtype: asked fp8_e4m3, SGLang runs with auto"],
    ),
    "the fraction": ({"sglang_mem_fraction_static": 0.93}, ["  - mem-fraction-static: asked 0.9300, SGLang runs with 0.9259"]),
    "more tokens": (
        {"sglang_context_length": 0, "sglang_pool_target": 210000}, ["  - ranks TP0-TP7: 200,099 of 210,000 tokens, 9,901 short"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_gate_alone_refuses(host: Host, deployed: Values, case: str) -> None:
    asked, said = REFUSED[case]
    run = gate(host, deployed, **asked)
    assert run.code == 2, run.text
    assert [line for line in report(run) if line.startswith("  - ")] == said
    assert kept(host, deployed["sglang_instance"])["accepted"] is False


def test_the_gate_alone_makes_the_place_for_its_verdict_and_sees_a_dead_server(host: Host, deployed: Values) -> None:
    name = deployed["sglang_instance"]
    host.shell(f"systemctl stop {name}.service; mv /var/lib/sglang/{name} /var/lib/sglang/{name}.kept")
    try:
        run = gate(host, deployed)
        assert run.code == 2, run.text
        assert "  - not ready: the server was stopped" in report(run)
        assert [finding["check"] for finding in kept(host, name)["findings"]] == ["ready"]
    finally:
        host.shell(f"rm -r /var/lib/sglang/{name}; mv /var/lib/sglang/{name}.kept /var/lib/sglang/{name}; systemctl start {name}.service")


def test_a_flag_that_was_silently_changed_refuses_the_host_unless_it_may(host: Host) -> None:
    values = kimi_service("sglang-changed", 31500, STANDIN_CHANGE="trust_remote_code=False,max_running_requests=4")
    values["sglang_gate_settle_time"] = 0
    run = host.play(values)
    assert run.code == 2, run.text
    do = (
        "    do: ask for what this release and this card can do, or name the flag in allowed_changes "
        "(sglang_gate_allowed_changes of the role) if it may differ"
    )
    said = report(run)
    assert said[-3:] == [
        "  - max-running-requests: asked 8, SGLang runs with 4",
        "  - trust-remote-code: asked true, SGLang runs with false",
        do,
    ]
    # the last word of the run: the headline, the first finding with what to do, and where the host stands
    last = run.text[run.text.rindex(said[0]) :].splitlines()
    margin = len(last[1]) - len(last[1].lstrip()) - 2
    assert [last[0], *(line[margin:] for line in last[1:4])] == [
        said[0], said[-3], do, "No service was accepted on this host before: sglang-changed.service is left stopped.",
    ]  # fmt: skip
    assert host.shell("systemctl is-active sglang-changed.service", check=False) != "active"
    assert [change["flag"] for change in kept(host, "sglang-changed")["changes"]] == ["max-running-requests", "trust-remote-code"]
    allowed = host.play({**values, "sglang_gate_allowed_changes": "trust_remote_code,max-running-requests"})
    assert allowed.code == 0, allowed.text
    assert "  note: trust-remote-code: asked true, SGLang runs with false, which is allowed" in report(allowed)


def test_pages_that_a_backend_chose_are_named_and_the_next_run_plans_with_them(host: Host) -> None:
    values = {**kimi_service("sglang-pages", 31700, STANDIN_CHANGE="page_size=64"), "sglang_page_size": 1, "sglang_gate_settle_time": 0}
    run = host.play(values)
    assert run.code == 0, run.text
    note = "  note: page-size: not asked, SGLang runs with 64"
    assert note in report(run)
    invocation = host.invocation("sglang-pages")
    again = host.play(values)
    assert (again.code, again.changed) == (0, 0), again.text
    assert note in report(again)
    assert "page_size is" not in again.text
    assert host.invocation("sglang-pages") == invocation


def test_the_gate_alone_needs_no_more_than_the_unit_and_the_tokens(host: Host, deployed: Values) -> None:
    """Ports, hosts and ranks are the server's own, and what is left at the role's default is not asked."""
    playbook, name = str(host.inventory.parent / "gate.yml"), deployed["sglang_instance"]
    only = {"sglang_instance": name, "sglang_gate_settle_time": 0, "sglang_gate_timeout": 30}
    run = host.play({**only, "sglang_context_length": 200000}, playbook=playbook)
    assert (run.code, report(run)[0]) == (0, f"gate {name}.service: ACCEPTED, 200,000 tokens asked of every rank"), run.text
    nothing = host.play(only, playbook=playbook)
    assert nothing.code == 2, nothing.text
    for word in ("sglang_context_length, sglang_pool_target: asked for 0 and 0 tokens", "found nothing", "give what every rank must hold"):
        assert word in nothing.text, nothing.text
    assert "Wait for the boot" not in nothing.text


def test_a_card_that_others_use_is_named_though_every_pool_is_large_enough(host: Host) -> None:
    # the pool follows the fullest card; the others keep 5 GiB more
    free = ",".join(["98.7274"] * 5 + [FREE_GIB] + ["98.7274"] * 2)
    run = host.play({**kimi_service("sglang-spread", 31600, STANDIN_FREE_GIB=free), "sglang_gate_settle_time": 0})
    assert run.code == 2, run.text
    said = report(run)
    assert [line.split()[-2:] for line in said[2:10] if not line.endswith("  ok")] == [["less", "left"]], said
    assert said[7].startswith("  TP5   200,099       99 spare"), said
    assert said[10:] == [
        "  - rank TP5: spread: 4.85 GiB left after its pool, 5.00 less than TP0 (9.85), under 4.00 allowed",
        "    do: look what else holds memory on the card of that rank (nvidia-smi), free it and start again",
    ]


@pytest.mark.parametrize("how", ["systemctl kill --kill-whom=all -s KILL", "systemctl restart"])
def test_a_server_that_does_not_stay_up_is_no_server(host: Host, deployed: Values, how: str) -> None:
    """It is lost after the generated token, while the gate only looks whether it stays."""
    name = deployed["sglang_instance"]
    host.shell(f"systemctl reset-failed {name}.service; systemctl restart {name}.service")
    invocation = host.invocation(name)
    command = host.command({**deployed, "sglang_tp_size": 8, "sglang_context_length": 200000, "sglang_gate_settle_time": 60},
                           playbook=str(host.inventory.parent / "gate.yml"))  # fmt: skip
    with subprocess.Popen(command, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as play:
        host.wait_for(f"journalctl --all -o cat _SYSTEMD_INVOCATION_ID={invocation} | grep health_generate")
        # what tests did before is no crash loop
        host.shell(f"systemctl reset-failed {name}.service; {how} {name}.service")
        text, _errors = play.communicate()
    assert play.returncode == 2, text
    assert any(line.startswith("  - ") for line in report(Run(2, text))), text
    verdict = kept(host, name)
    assert (verdict["accepted"], verdict["invocation_id"]) == (False, invocation)
