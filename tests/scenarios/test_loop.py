# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop as its user meets it: a playbook, a host with systemd and journald, and what is left behind.

The engine is the stand-in (tests/engine/standin): it imitates SGLang's start-up log, so that what a tiny model on the CPU
cannot show (eight ranks, a lost one, no memory at graph capture) can be shown here. Token figures are those that SGLang's own
sizing code gives for this card: 0.85 -> 101,134 and 0.92 -> 192,406 tokens.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from support.host import Host

Values = dict[str, Any]


def with_environment(service: Values, **more: str) -> Values:
    return {**service, "sglang_environment": {**service["sglang_environment"], **more}}


WRONG = {
    "context 0": ({"sglang_context_length": 0}, ["sglang_context_length", "asked for 0 tokens", "at least 1"]),
    "fraction over 1": ({"sglang_mem_fraction_static": 1.2}, ["sglang_mem_fraction_static", "1.2", "between 0 and 1"]),
    "tp that does not divide": ({"sglang_tp_size": 7}, ["7", "64"]),
    "model without config.json": ({"sglang_model": "/srv/models/empty"}, ["/srv/models/empty", "config.json"]),
    "draft of another target": ({"sglang_model": "/srv/models/qwen3-32b"}, ["DFlashDraftModel", "163840", "151936"]),
    "unknown version": ({"sglang_version": "banana"}, ["banana", "0.5."]),
    "relative model path": ({"sglang_model": "models/k26"}, ["models/k26", "absolute path"]),
    "a flag the role owns": ({"sglang_extra_args": {"context-length": 5}}, ["context-length", "variable of its own"]),
    "no requests": ({"sglang_concurrent_requests": 0}, ["sglang_concurrent_requests", "above 0"]),
    "somebody else's unit": ({"sglang_instance": "ssh"}, ["/etc/systemd/system/ssh.service", "does not start SGLang"]),
    "a router that reaches nobody": (
        {"sglang_balancers": [{"kind": "router", "url": "http://router:30000"}]},
        ["sglang_host: asked for 127.0.0.1, found the router http://router:30000", "set sglang_host to 0.0.0.0"]),
    # all that preflight finds comes in one message
    "many at once": (
        {
            "sglang_instance": "abc\n", "sglang_root": "/opt/my sglang", "sglang_state_dir": "state", "sglang_user": "no such user!",
            "sglang_context_length": True, "sglang_concurrent_requests": "inf", "sglang_mem_fraction_static": "0.92591",
            "sglang_weights_gib": -1, "sglang_gate_timeout": 0, "sglang_max_running_requests": -1,
            "sglang_gate_min_avail_gib": -1, "sglang_gate_max_spread_gib": True, "sglang_gate_settle_time": -2,
            "sglang_gate_allowed_changes": "dtype,--x y",
            "sglang_environment": "A=1", "sglang_environment_files": ["x.env"],
            "sglang_extra_args": {"x\nExecStartPre": "/bin/true", "context_length": 5, "tp": 4},
            "sglang_wheel": "sglang.whl", "sglang_git": "-x main", "sglang_install_method": "container",
            "sglang_model_source": "moonshotai/Kimi-K2.6", "sglang_draft_model_revision": "abc", "sglang_hub_endpoint": "hub.example.net",
            "sglang_gpus": "0,0", "sglang_keep_releases": -1, "sglang_adopt": "sglang", "sglang_model_peer_port": 0,
        },
        ["sglang_instance", "sglang_root", "sglang_state_dir", "sglang_user", "sglang_context_length: found true", "asked for inf",
         "at most 4 decimals", "sglang_weights_gib", "sglang_gate_timeout", "sglang_gate_min_avail_gib: asked for -1",
         "sglang_gate_max_spread_gib", "sglang_gate_settle_time: asked for -2", 'sglang_gate_allowed_changes: found "--x y"',
         "sglang_max_running_requests", "sglang_environment: found",
         "x.env", "ExecStartPre", "context_length", "sets --tp-size",
         'sglang_wheel: found "sglang.whl"', "sglang_wheel, sglang_git: asked for all of them",
         'sglang_git: found "-x main"', "sglang_container_image: found nothing",
         "give hub:OWNER/NAME", "only the hub has revisions", 'sglang_hub_endpoint: found "hub.example.net"', "each once",
         "sglang_keep_releases: asked for -1", 'sglang_adopt: found "sglang"', "sglang_model_peer_port: asked for 0"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_clear_error_before_anything_changed(host: Host, service: Values, case: str) -> None:
    wrong, words = WRONG[case]
    before = host.state()
    run = host.play({**service, **wrong})
    assert run.code == 2, run.text
    assert [word for word in words if word not in run.text] == [], run.text
    assert "Traceback" not in run.text
    assert "MODULE FAILURE" not in run.text
    assert host.state() == before


def test_check_mode_before_the_first_run_shows_all_and_changes_nothing(host: Host, service: Values) -> None:
    before = host.state()
    run = host.play(service, "--check", "--diff")
    assert run.code == 0, run.text
    name = service["sglang_instance"]
    files = (f"/etc/systemd/system/{name}.service", f"/etc/sglang/{name}.env")
    for shown in (*files, "--mem-fraction-static 0.9259", "200,000 tokens", "HF_HUB_OFFLINE"):
        assert shown in run.text
    assert host.state() == before


def test_first_run_reaches_the_target_in_one_start_and_the_second_changes_nothing(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    run = host.play(service)
    assert run.code == 0, run.text
    assert "ACCEPTED" in run.text
    receipt = host.receipt(name)
    assert host.shell(f"readlink /opt/sglang/current/{name}") == receipt["release"]
    # 0.9259: A - P (1 - f) = 14.3838 GiB, at 77,184 bytes a token
    assert receipt["mem_fraction_static"] == 0.9259
    assert receipt["tokens_per_rank"] == {f"TP{rank}": 200099 for rank in range(8)}
    assert (receipt["predicted_tokens"], receipt["prediction_error_tokens"]) == (200099, 0)
    assert host.starts(name) == 1

    accepted = json.loads(host.shell(f"cat /var/lib/sglang/{name}/accepted.json"))
    assert accepted["receipt"] == receipt
    files = {"unit": f"/etc/systemd/system/{name}.service", "environment": f"/etc/sglang/{name}.env"}
    assert {key: accepted[key].strip() for key in files} == {key: host.read(path) for key, path in files.items()}
    sizes = {key: int(host.shell(f"stat -c %s {path}")) for key, path in files.items()}
    assert {key: len(accepted[key].encode()) for key in files} == sizes

    invocation, state = host.invocation(name), host.state()
    again = host.play(service)
    assert again.code == 0, again.text
    assert again.changed == 0
    assert host.invocation(name) == invocation
    assert host.state() == state
    assert again.tasks() <= 30


def test_an_estimate_that_falls_short_is_corrected_by_its_own_boot(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    run = host.play({**service, "sglang_weights_gib": 70.0})
    assert run.code == 0, run.text
    assert host.starts(name) == 2
    receipt = host.receipt(name)
    assert receipt["prediction_basis"] == "observed"
    assert receipt["min_tokens"] >= 200000
    assert receipt["mem_fraction_static"] == 0.9259
    boots = json.loads(host.read(f"/var/lib/sglang/{name}/boots.json"))
    assert [boot["min_tokens"] for boot in boots] == [166719, 200099]
    again = host.play({**service, "sglang_weights_gib": 70.0})
    assert (again.code, again.changed, host.starts(name)) == (0, 0, 2), again.text


def test_more_than_fits_is_refused_with_numbers_and_the_old_service_runs_on(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    assert host.play(service).code == 0
    invocation, state = host.invocation(name), host.state()
    run = host.play({**service, "sglang_context_length": 262144})
    assert run.code == 2
    for word in ("262,144 tokens", "refused before anything was changed", "What would fit", "fp8"):
        assert word in run.text, run.text
    assert (host.invocation(name), host.state()) == (invocation, state)


REFUSED_STARTS = {
    "oom at capture": ({"STANDIN_FAULT": "oom_capture"}, ["lower the fraction"]),
    "not enough memory": ({"STANDIN_WEIGHTS_GIB": "93.0"}, ["raise the fraction"]),
    "silent death": ({"STANDIN_FAULT": "silent_death"}, ["REFUSED"]),
}


@pytest.mark.parametrize("case", REFUSED_STARTS)
def test_a_start_that_fails_goes_back_to_the_accepted_service(host: Host, service: Values, case: str) -> None:
    name = service["sglang_instance"]
    assert host.play(service).code == 0
    accepted = host.receipt(name)
    faults, words = REFUSED_STARTS[case]
    run = host.play(with_environment(service, **faults))
    assert run.code == 2, run.text
    assert [word for word in words if word not in run.text] == [], run.text
    assert "The last accepted service runs again (fraction 0.9259, 200,099 tokens)" in run.text
    assert host.receipt(name) == accepted
    assert host.shell(f"systemctl is-active {name}.service") == "active"
    assert "STANDIN_FAULT" not in host.read(f"/etc/sglang/{name}.env")
    again = host.play(service)
    assert (again.code, again.text.count("ACCEPTED")) == (0, 1), again.text


def test_a_lost_rank_is_named_and_a_host_without_history_is_left_stopped(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    run = host.play({**with_environment(service, STANDIN_FAULT="lost_rank:5"), "sglang_gate_timeout": 15})
    assert run.code == 2
    assert "TP5" in run.text, run.text
    assert "left stopped" in run.text
    # stopped before it was ready: systemd calls that a failed start
    assert host.shell(f"systemctl is-active {name}.service", check=False) == "failed"
    assert host.shell(f"ls /var/lib/sglang/{name}") == "boots.json\nverdict.json"


def test_a_pool_that_stays_short_is_refused_rank_by_rank(host: Host, service: Values) -> None:
    run = host.play({**service, "sglang_mem_fraction_static": 0.92, "sglang_pool_target": 192406})
    assert run.code == 0, run.text
    service |= {"sglang_instance": service["sglang_instance"] + "-b", "sglang_port": service["sglang_port"] + 500}
    short = host.play({**service, "sglang_mem_fraction_static": 0.9259, "sglang_weights_gib": 70.0, "sglang_environment": {
        **service["sglang_environment"], "STANDIN_WEIGHTS_GIB": "72.9"}})
    assert short.code == 2
    assert "ranks TP0-TP7: " in short.text
    assert " short" in short.text


def test_a_kill_while_weights_load_is_refused_and_the_next_run_recovers(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    slow = with_environment(service, STANDIN_FAULT="slow_load:60")
    with subprocess.Popen(host.command(slow), env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as play:
        host.wait_for(f"journalctl --all -o cat -u {name}.service | grep 'Load weight begin'")
        host.shell(f"systemctl kill --kill-whom=all -s KILL {name}.service")
        text, _errors = play.communicate()
    assert play.returncode == 2, text
    assert "REFUSED" in text
    assert host.play(service).code == 0
    assert host.receipt(name)["min_tokens"] == 200099


def test_a_full_disk_leaves_no_half_environment(host: Host, service: Values) -> None:
    # the disk that preflight would name is allowed, and turns out to be too small
    small = {**service, "sglang_root": "/srv/small", "sglang_allowed_findings": ["disk"]}
    run = host.play(small)
    assert run.code == 2
    assert "No space left" in run.text, run.text
    assert "the service is untouched" in run.text
    assert host.shell("ls -A /srv/small") == ""
    assert host.shell(f"ls /etc/systemd/system/{service['sglang_instance']}.service", check=False) == ""


def test_a_release_that_does_not_exist_leaves_the_host_as_it_was(host: Host, service: Values) -> None:
    run = host.play({**service, "sglang_version": "0.5.99", "sglang_root": "/opt/none"})
    assert run.code == 2
    assert "release: asked for SGLang 0.5.99 of the wheelhouse /srv/wheels, found 0.5.12.post1+standin in it" in run.text
    name = service["sglang_instance"]
    paths = f"/opt/none /etc/sglang/{name}.env /etc/systemd/system/{name}.service /var/lib/sglang/{name}"
    assert host.shell(f"ls -d {paths} 2>/dev/null", check=False) == ""


def test_an_install_killed_half_way_is_replaced(host: Host, service: Values) -> None:
    fresh = {**service, "sglang_root": "/opt/killed", "sglang_requirements": []}
    with subprocess.Popen(host.command(fresh), env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as play:
        host.wait_for("ls -d /opt/killed/*/lib 2>/dev/null")
        play.kill()
        play.communicate()
    host.shell("pkill -9 -f [/]opt/killed || true")
    assert host.shell("ls /opt/killed/*/.complete 2>/dev/null || true") == ""
    run = host.play(fresh)
    assert run.code == 0, run.text
    assert host.shell("ls /opt/killed/*/.complete")


def test_a_run_cut_between_unit_and_start_is_finished_by_the_next(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    assert host.play(service).code == 0
    invocation = host.invocation(name)
    changed = {**service, "sglang_max_running_requests": 4}
    with subprocess.Popen(host.command(changed), env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as play:
        host.wait_for(f"grep -s -- '--max-running-requests 4' /etc/systemd/system/{name}.service")
        play.kill()
        play.communicate()
    run = host.play(changed)
    assert run.code == 0, run.text
    assert host.invocation(name) != invocation
    assert host.receipt(name)["flags"]["max-running-requests"] == 4
    assert host.starts(name) <= 3


def test_the_gate_judges_the_newest_start_not_an_older_one(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    assert host.play(service).code == 0
    host.shell(f"sed -i 's/--mem-fraction-static 0.9259/--mem-fraction-static 0.9200/' /etc/systemd/system/{name}.service;"
               f"systemctl daemon-reload; systemctl restart {name}.service")
    play = host.inventory.parent / "gate.yml"
    play.write_text(
        "- hosts: sglang\n  gather_facts: false\n  tasks:\n    - ansible.builtin.include_role:\n"
        "        name: inferops.sglang.sglang\n        tasks_from: gate\n", encoding="utf-8")
    gate = {**service, "sglang_tp_size": 8, "sglang_context_length": 200000, "sglang_gate_timeout": 60}
    run = host.play(gate, playbook=str(play))
    assert run.code == 2, run.text
    assert "ranks TP0-TP7: 192,406 of 200,000 tokens, 7,594 short" in run.text


def test_no_tag_makes_a_pass_without_the_gate(host: Host, service: Values) -> None:
    before = host.state()
    planned = host.play(service, "--tags", "sglang_plan")
    assert planned.code == 2, planned.text
    assert "200,000 tokens in the pool of every rank" in planned.text
    assert "was not judged: the tags of this run leave the gate out" in planned.text
    assert host.state() == before


def test_what_is_quoted_badly_elsewhere_reaches_the_server_as_it_is(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    odd = "a \"b\" 'c' %h $HOME ${X} \\n ; `id` \u00e9\nend"
    words = {"chat-template": odd, "json-model-override-args": {"a": "b $x"}, "log-requests-level": 0, "warmups": ""}
    run = host.play({**with_environment(service, ODD=odd), "sglang_extra_args": words, "sglang_gpu_free_gib": 93.7274})
    assert run.code == 0, run.text
    process = f"/proc/$(systemctl show -P MainPID {name}.service)"
    arguments = host.shell(f"tr '\\0' '\\036' < {process}/cmdline").split("\x1e")
    assert arguments[arguments.index("--chat-template") + 1] == odd
    assert json.loads(arguments[arguments.index("--json-model-override-args") + 1]) == {"a": "b $x"}
    assert arguments[arguments.index("--log-requests-level") + 1] == "0"
    assert "--warmups" not in arguments
    assert f"ODD={odd}" in host.shell(f"tr '\\0' '\\036' < {process}/environ").split("\x1e")


def test_a_unit_edited_by_hand_and_damaged_records_are_mended(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    assert host.play(service).code == 0
    unit = f"/etc/systemd/system/{name}.service"
    host.shell(
        f"sed -i 's/--mem-fraction-static 0.9259/--mem-fraction-static 0.9200/' {unit}; systemctl daemon-reload;"
        f"systemctl restart {name}.service; cd /var/lib/sglang/{name}; printf '[{{\"a\":' > boots.json; truncate -s 40 receipt.json"
    )
    run = host.play(service)
    assert run.code == 0, run.text
    assert "it is left out" in run.text
    assert host.receipt(name)["tokens_per_rank"] == {f"TP{rank}": 200099 for rank in range(8)}
    assert host.play(service).changed == 0


def test_another_flag_gets_a_fraction_of_its_own_and_a_masked_unit_is_left_alone(host: Host, service: Values) -> None:
    name = service["sglang_instance"]
    assert host.play(service).code == 0
    run = host.play({**service, "sglang_kv_cache_dtype": "fp8_e4m3"})
    assert run.code == 0, run.text
    # 38,592 bytes a token, half of what they were: A - P (1 - f) = 7.19 GiB
    assert host.receipt(name)["mem_fraction_static"] == 0.8492
    host.shell(f"systemctl stop {name}.service; mv /etc/systemd/system/{name}.service /root/; systemctl mask {name}.service")
    masked = host.play(service)
    assert masked.code == 2
    assert f"systemctl unmask {name}.service" in masked.text


def test_two_instances_in_one_play_know_nothing_of_each_other(host: Host, service: Values) -> None:
    first, second = service["sglang_instance"], service["sglang_instance"] + "-b"
    common = {key: value for key, value in service.items() if key not in ("sglang_instance", "sglang_port")}
    port = service["sglang_port"]
    # the first is estimated wrong and corrected, so it leaves all that a run can leave
    instances = (
        {"sglang_instance": first, "sglang_port": port, "sglang_weights_gib": 70.0, "sglang_context_length": 200000},
        {"sglang_instance": second, "sglang_port": port + 500, "sglang_context_length": 100000},
    )
    settings = {"sglang_version": "0.5.12.post1", "sglang_tp_size": 8, "sglang_speculative_algorithm": "DFLASH", **common}
    roles = [{"role": "inferops.sglang.sglang", "vars": {**settings, **instance}} for instance in instances]
    gate = {"name": "inferops.sglang.sglang", "tasks_from": "gate"}
    asks_first = {"ansible.builtin.include_role": gate, "vars": {**settings, **instances[0]}}
    play = host.inventory.parent / "two.yml"
    play.write_text(json.dumps([{"hosts": "sglang", "gather_facts": False, "roles": roles, "post_tasks": [asks_first]}]), encoding="utf-8")
    run = host.play({}, playbook=str(play))
    assert run.code == 0, run.text
    assert run.text.count("ACCEPTED, 200,000 tokens") == 2
    assert run.text.count("ACCEPTED, 100,000 tokens") == 1
    kept = {name: json.loads(host.read(f"/var/lib/sglang/{name}/boots.json")) for name in (first, second)}
    assert [boot["min_tokens"] for boot in kept[first]] == [166719, 200099]
    assert [boot["invocation_id"] for boot in kept[second]] == [host.invocation(second)]
