# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models come to two hosts: from a hub by its own client, from each other, from a directory, by rsync.

The hub is the tests' own (support/hub.py) on this machine, the client is the real one. The weights are small and mostly holes.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import write_checkpoint
from support.host import ROOT, Host, Run, environment
from support.hub import Hub, files_of, serving

REQUIREMENTS = ROOT / "tests/support/hub_client_requirements.txt"
NAMES = ("model-1", "model-2")
WRAPPER = "#!/bin/sh\nPYTHONPATH=/srv/client/site exec /usr/bin/python3 \"$@\"\n"
MODEL = "acme/kimi"
SHARDS = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
# of bf16: 24 MiB a shard, more than the client reads at once
TENSORS = {f"layers.{number}.weight": ("BF16", (3072, 4096)) for number in range(3)}


@dataclass
class Fleet:
    """Two hosts, a hub, and the folder of this machine that both see as /srv/shared."""

    hosts: dict[str, Host]
    hub: Hub
    work: Path
    inventory: Path

    @property
    def first(self) -> Host:
        return self.hosts[NAMES[0]]

    def model(self, name: str, **changes: Any) -> dict[str, bytes]:
        """The files of a small model; ``changes``: file name (with _ for .) -> content."""
        folder = write_checkpoint(self.work / name, TENSORS, shards=3, config={"architectures": ["LlamaForCausalLM"]})
        (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
        (folder / "pytorch_model.bin").write_bytes(b"the same weights again")
        files = files_of(folder)
        return {**files, **{key.replace("_", "."): value for key, value in changes.items()}}

    def play(self, tasks: list[dict[str, Any]], *options: str, hosts: str = NAMES[0], serial: int = 0) -> Run:
        """Runs tasks on hosts, all at once or in batches."""
        (self.work / "result.json").unlink(missing_ok=True)
        playbook = self.work / "play.yml"
        playbook.write_text(json.dumps([{"hosts": hosts, "gather_facts": False, "serial": serial, "tasks": tasks}]), encoding="utf-8")
        argv = ["ansible-playbook", "-i", str(self.inventory), str(playbook), *options]
        # the last result of each host comes as a file
        tree = {"ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.tree", "ANSIBLE_CALLBACK_TREE_DIR": str(self.work / "results")}
        done = subprocess.run(argv, env={**self.first.environment, **tree}, capture_output=True, text=True, check=False)
        return Run(done.returncode, done.stdout + done.stderr)

    def fetch(self, path: str, *options: str, repository: str = MODEL, **arguments: Any) -> tuple[Run, dict[str, Any]]:
        """One call of the module on the first host: the run, and the result where there is one."""
        run = self.play([self.task(path, repository, **arguments)], *options)
        return run, json.loads((self.work / "results" / NAMES[0]).read_text(encoding="utf-8"))

    def task(self, path: str, repository: str = MODEL, **arguments: Any) -> dict[str, Any]:
        given = {"path": path, "source": f"hub:{repository}", "endpoint": self.hub.endpoint, "python": "/srv/client/python", **arguments}
        return {"name": "Fetch", "inferops.sglang.checkpoint": given, "register": "fetched"}

    def keep(self, expression: str) -> dict[str, Any]:
        """A task that gives the value of an expression to kept()."""
        copy = {"content": f"{{{{ {expression} | to_json }}}}", "dest": str(self.work / "result.json")}
        return {"name": "Keep", "ansible.builtin.copy": copy, "delegate_to": "localhost", "check_mode": False}

    def kept(self) -> Any:
        path = self.work / "result.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    work = tmp_path_factory.mktemp("models")
    client = work / "client"
    client.mkdir()
    pip = [ROOT / ".venv/bin/python", "-m", "pip", "install", "-q", "--no-deps", "--target", client / "site", "-r", REQUIREMENTS]
    subprocess.run(pip, check=True)
    (client / "python").write_text(WRAPPER, encoding="utf-8")
    (client / "python").chmod(0o755)
    variables = environment("infopm", "10.79.22")
    hosts = ROOT / "tests/hosts/hosts"
    (work / "shared").mkdir()
    subprocess.run([hosts, "down"], env=variables, check=True)
    try:
        binds = ["--bind-ro", f"{client}:/srv/client", "--bind-ro", f"{work / 'shared'}:/srv/shared", "--tmpfs", "/srv/small:40M"]
        subprocess.run([hosts, "up", *NAMES, "--group", "sglang", *binds], env=variables, check=True)
        inventory = work / "inventory.yml"
        subprocess.run([hosts, "inventory", "--output", inventory], env=variables, check=True)
        with serving(Hub(), "10.79.22.1", "content.test") as hub:
            found = Fleet({name: Host(name, inventory, variables) for name in NAMES}, hub, work, inventory)
            for host in found.hosts.values():
                host.shell("echo 10.79.22.1 content.test >> /etc/hosts")
            yield found
    finally:
        subprocess.run([hosts, "down"], env=variables, check=True)


@pytest.fixture(autouse=True)
def hub(fleet: Fleet) -> Hub:
    """The hub as if it had just been made: two ports of a hub that has nothing and knows nobody."""
    fresh = Hub(endpoint=fleet.hub.endpoint, content_endpoint=fleet.hub.content_endpoint)
    for name, value in vars(fresh).items():
        if name != "lock":
            setattr(fleet.hub, name, value)
    return fleet.hub


def units(host: Host) -> str:
    return host.shell("systemctl list-units --all --plain --no-legend 'inferops-*'")


def listing(host: Host, path: str) -> list[str]:
    return sorted(host.shell(f"cd {path} && find . -mindepth 1 -printf '%P\\n'").split())


def test_a_model_comes_through_a_busy_hub_and_a_cut_connection_once_and_then_offline(fleet: Fleet, hub: Hub) -> None:
    host, path = fleet.first, "/srv/models/first"
    commit = hub.publish(MODEL, fleet.model("first"))
    run, early = fleet.fetch(path, check_only=True)
    assert (early["changed"], early["revision"], early["missing_gib"]) == (False, commit, 0.07), run.text
    assert early["complete"] is False
    assert host.shell("ls -A /srv/models 2>/dev/null || true") == ""

    hub.busy = 2
    # after 11 MiB: the client reads 10 at once and loses what it has of the next
    hub.cuts = {SHARDS[1]: [11 << 20]}
    run, result = fleet.fetch(path)
    assert run.code == 0, run.text
    assert (result["changed"], result["complete"], result["revision"], result["fetched_gib"]) == (True, True, commit, 0.07)
    assert "fetches 6 files, 72.0 MiB" in run.text
    assert f"[{NAMES[0]}] {path} | complete | " in run.text
    wanted = sorted([*SHARDS, "config.json", "model.safetensors.index.json", "tokenizer.json"])
    assert listing(host, path) == [".inferops-source.json", *wanted]
    resumed = [asked.start for asked in hub.transfers(SHARDS[1])]
    assert (len(resumed), resumed[0]) == (2, 0)
    assert resumed[1] in (10 << 20, 11 << 20), resumed
    assert len(hub.transfers(SHARDS[0])) == 1
    assert hub.transfers("pytorch_model.bin") == []
    assert host.shell(f"stat -c '%a %U' {path} {path}/{SHARDS[0]} {path}/.inferops-source.json") == "755 root\n644 root\n644 root"
    record = json.loads(host.read(f"{path}/.inferops-source.json"))
    assert {key: record[key] for key in ("source", "revision", "commit", "fingerprint", "via")} == {
        "source": f"hub:{MODEL}", "revision": "main", "commit": commit, "fingerprint": result["fingerprint"], "via": "",
    }  # fmt: skip
    assert host.shell("ls -A /srv/models") == "first"
    assert units(host) == ""

    before, asked = host.shell(f"find {path} -printf '%p %T@ %i\\n' | sort"), len(hub.requests)
    run = fleet.play([fleet.task(path, endpoint="http://10.79.22.1:9", revision=revision) for revision in ("", "main", commit)])
    assert (run.code, run.changed, run.text.count("ok: [model-1]")) == (0, 0, 3), run.text
    assert "| complete |" not in run.text
    assert host.shell(f"find {path} -printf '%p %T@ %i\\n' | sort") == before
    assert len(hub.requests) == asked

    # a shard is lost: it alone comes again, of the same commit, wherever the branch is by now
    hub.publish(MODEL, {**fleet.model("first"), "config.json": b'{"moved": 1}'})
    host.shell(f"rm {path}/{SHARDS[2]}")
    run, result = fleet.fetch(path)
    assert (run.code, result["complete"], result["revision"], result["fetched_gib"]) == (0, True, commit, 0.023), run.text
    assert len(hub.transfers(SHARDS[0])) == 1
    assert len(hub.transfers(SHARDS[2])) == 2


SAID = {
    "no hub there": (
        {"endpoint": "http://10.79.22.1:9"},
        "asked for acme/draft at revision main, found no answer (Connection refused) from http://10.79.22.1:9, after ",
    ),
    "no such repository": (
        {"repository": "acme/nothing"},
        "asked for acme/nothing at revision main, found no such repository for no token (401); look for the name at {hub}/acme/nothing;",
    ),
    "no such revision": (
        {"repository": MODEL, "revision": "v9"},
        "asked for acme/kimi at revision v9, found the repository acme/kimi without that revision (404);"
        " give a commit, branch or tag of {hub}/acme/kimi as revision",
    ),
    "gated and no token": (
        {},
        "asked for acme/draft at revision main, found a gated repository and no token (401); accept its conditions at {hub}/acme/draft,"
        " and name a file with that account's token in token_file (sglang_hub_token_file)",
    ),
    "gated and no access": (
        {"token_file": "/root/stranger"},
        "asked for acme/draft at revision main, found a gated repository that the token in /root/stranger does not open (403);"
        " accept its conditions at {hub}/acme/draft with the account of that token, and let the token read gated repositories",
    ),
    "a token that nobody knows": (
        {"token_file": "/root/unknown"},
        "asked for acme/draft at revision main, found that {hub} does not know the token in /root/unknown (401);",
    ),
    "a token for all to read": (
        {"token_file": "/root/open"},
        "asked for the token in /root/open, found mode 0644, so that others can read it; chmod 0600 /root/open",
    ),
    "no room": (
        {"repository": MODEL, "path": "/srv/small/model"},
        "asked for hub:acme/kimi in /srv/small/model, found 72.0 MiB missing and 40.0 MiB free on its file system; free 48.0 MiB there,",
    ),
    "a mount point": (
        {"repository": MODEL, "path": "/srv/small"},
        "asked for a checkpoint at /srv/small, found a mount point, which nothing can be moved to;"
        " give a directory on it, for example /srv/small/model",
    ),
    "no source": (
        {"source": "kimi"},
        "asked for the source 'kimi', found neither hub:OWNER/NAME, nor the absolute path of a directory,",
    ),
}


def test_what_stands_against_a_model_is_named_before_anything_is_fetched(fleet: Fleet, hub: Hub) -> None:
    host = fleet.first
    host.shell(
        "umask 077; echo stranger > /root/stranger; echo nobody > /root/unknown; echo stranger > /root/open; chmod 0644 /root/open"
    )
    hub.publish(MODEL, fleet.model("named"))
    hub.publish("acme/draft", fleet.model("named"))
    hub.gated, hub.tokens = {"acme/draft"}, {"stranger": set()}
    before = host.shell("find /srv -xdev; ls /srv/small")
    tasks: list[dict[str, Any]] = []
    for name, (arguments, _text) in SAID.items():
        given = {"repository": "acme/draft", "path": "/srv/models/named", **arguments}
        tasks.append({**fleet.task(**given, check_only=True), "name": name, "register": f"said_{len(tasks)}"})
    names = ", ".join(f"said_{number}" for number in range(len(tasks)))
    run = fleet.play([*tasks, fleet.keep(f"[{names}]")])
    assert run.code == 0, run.text
    for (name, (_arguments, text)), said in zip(SAID.items(), fleet.kept()):
        assert text.format(hub=hub.endpoint) in said["finding"]["text"].partition(": ")[2], name
    assert hub.transfers() == []
    assert host.shell("find /srv -xdev; ls /srv/small") == before

    # without check_only it is the task's failure, and the same words
    run, _result = fleet.fetch("/srv/models/named", repository="acme/draft")
    assert run.code == 2
    assert SAID["gated and no token"][1].format(hub=hub.endpoint) in " ".join(run.text.split())


def test_a_fetch_outlives_its_controller_and_goes_on_where_it_was_killed_and_nobody_sees_the_token(fleet: Fleet, hub: Hub) -> None:
    host, path = fleet.first, "/srv/models/secret"
    commit = hub.publish("acme/secret", fleet.model("secret"))
    hub.gated, hub.tokens = {"acme/secret"}, {"hf_SECRETWORD": {"acme/secret"}}
    hub.bytes_per_second = 3 << 19
    host.shell("umask 077; printf 'hf_SECRETWORD\\n' > /root/token")
    playbook = fleet.work / "background.yml"
    task = fleet.task(path, "acme/secret", token_file="/root/token")
    playbook.write_text(json.dumps([{"hosts": NAMES[0], "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
    argv = ["ansible-playbook", "-i", str(fleet.inventory), str(playbook)]
    with subprocess.Popen(argv, env=host.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as play:
        host.wait_for(f"find {path}.fetching/.inferops-fetch/parts -size +2M 2>/dev/null")
        unit = units(host).split()[0]
        seen = host.shell(f"cat /proc/*/cmdline | tr '\\0' ' '; systemctl show {unit}; systemctl cat {unit}; journalctl -b --no-pager")
        os.killpg(play.pid, signal.SIGKILL)
    assert "SECRETWORD" not in seen
    assert f"Fetches hub:acme/secret into {path}" in seen
    process = host.shell(f"systemctl show -P MainPID {unit}")
    time.sleep(1)
    assert host.shell(f"systemctl show -P ActiveState {unit}") == "active"
    host.shell(f"kill -9 {process}")
    host.wait_for(f"systemctl is-failed {unit}")
    assert host.shell(f"ls -d {path} 2>/dev/null || true") == ""

    hub.bytes_per_second = 0
    asked = len(hub.requests)
    run, result = fleet.fetch(path, repository="acme/secret", token_file="/root/token")
    assert (run.code, result["complete"], result["revision"]) == (0, True, commit), run.text
    assert all(asked.start > 0 for asked in hub.requests[asked:] if asked.method == "GET" and asked.path.endswith(".safetensors"))
    assert {asked.token for asked in hub.requests if asked.port == "content"} == {""}
    assert {asked.token for asked in hub.requests if asked.port == "hub"} == {"hf_SECRETWORD"}
    assert units(host) == ""
    assert "SECRETWORD" not in run.text + host.shell("journalctl -b --no-pager")
    assert host.shell("grep -rl SECRETWORD /srv/models /run/systemd /run/credentials 2>/dev/null || true") == ""


def test_another_revision_takes_the_place_of_one_that_stands_whole_until_then(fleet: Fleet, hub: Hub) -> None:
    host, path = fleet.first, "/srv/models/moved"
    old = fleet.model("moved")
    first = hub.publish(MODEL, old)
    assert fleet.fetch(path)[0].code == 0
    host.shell(f"echo mine > {path}/chat.txt")
    inodes = host.shell(f"stat -c '%i' {path}/{SHARDS[0]} {path}/{SHARDS[1]}")

    changed = bytearray(old[SHARDS[2]])
    changed[-1] = 7
    second = hub.publish(MODEL, {**old, SHARDS[2]: bytes(changed)}, branch="v2")
    hub.damaged = {SHARDS[2]}
    run, _result = fleet.fetch(path, revision="v2")
    assert run.code == 2
    expected = f"found {SHARDS[2]} that came twice with another content than sha256:{hashlib.sha256(changed).hexdigest()};"
    assert expected in " ".join(run.text.split())
    assert json.loads(host.read(f"{path}/.inferops-source.json"))["commit"] == first
    assert host.shell(f"sha256sum < {path}/{SHARDS[2]}").split()[0] == hashlib.sha256(old[SHARDS[2]]).hexdigest()

    hub.damaged, asked = set(), len(hub.requests)
    run, result = fleet.fetch(path, "--check", revision="v2")
    assert (run.code, result["changed"], result["revision"], result["missing_gib"]) == (0, True, second, 0.023), run.text
    run, result = fleet.fetch(path, revision="v2")
    assert (run.code, result["revision"], result["fetched_gib"]) == (0, second, 0.023), run.text
    assert {Path(entry.path).name for entry in hub.requests[asked:] if entry.method == "GET" and "/api/" not in entry.path} == {SHARDS[2]}
    assert host.shell(f"stat -c '%i' {path}/{SHARDS[0]} {path}/{SHARDS[1]}") == inodes
    assert host.shell(f"sha256sum < {path}/{SHARDS[2]}").split()[0] == hashlib.sha256(changed).hexdigest()
    assert host.read(f"{path}/chat.txt") == "mine"
    assert host.shell("ls -A /srv/models | grep moved") == "moved"

    # another name of the same commit brings nothing, and is known from then on
    hub.branches[(MODEL, "release")] = second
    run, result = fleet.fetch(path, revision="release")
    assert (run.code, result["changed"], result["fetched_gib"]) == (0, False, 0.0), run.text
    assert fleet.fetch(path, revision="release", endpoint="http://10.79.22.1:9")[1]["changed"] is False

    # what the operator put there stays, where it is not what is asked
    host.shell(f"mv {path} /srv/models/own; rm /srv/models/own/.inferops-source.json; mkdir -p /srv/models/own/.cache/huggingface/download")
    host.shell(f"printf '{second}\\netag\\n1.0\\n' > /srv/models/own/.cache/huggingface/download/config.json.metadata")
    run, result = fleet.fetch("/srv/models/own", revision=second, endpoint="http://10.79.22.1:9")
    assert (run.code, result["changed"], result["own"], result["revision"]) == (0, False, True, second), run.text
    run, _result = fleet.fetch("/srv/models/own", revision=first)
    assert run.code == 2
    assert f"found a complete checkpoint of commit {second} that was not fetched by this collection;" in " ".join(run.text.split())


def test_a_directory_and_an_rsync_address_are_sources_and_a_manifest_is_held_against_them(fleet: Fleet) -> None:
    host, folder = fleet.first, fleet.work / "shared/kimi"
    write_checkpoint(folder, TENSORS, shards=3, config={"architectures": ["LlamaForCausalLM"]})
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    manifests = {"right": sums, "wrong": {**sums, SHARDS[1]: "0" * 64}}
    for name, found in manifests.items():
        lines = [f"{digest}  ./{file}\n" for file, digest in found.items()] + [f"{'1' * 64}  README.md\n"]
        (fleet.work / "shared" / name).write_text("".join(lines), encoding="utf-8")
    run, _result = fleet.fetch("/srv/models/copied", source="/srv/shared/kimi", manifest="/srv/shared/wrong")
    assert run.code == 2
    expected = f"found of the 5 files in /srv/shared/wrong 1 with another sum, the first {SHARDS[1]}; give the manifest of this revision,"
    assert expected in " ".join(run.text.split())
    assert host.shell("ls -d /srv/models/copied 2>/dev/null || true") == ""
    run, result = fleet.fetch("/srv/models/copied", source="/srv/shared/kimi", manifest="/srv/shared/right")
    assert (run.code, result["complete"], result["fetched_gib"]) == (0, True, 0.07), run.text
    run, result = fleet.fetch("/srv/models/copied", source="/srv/shared/kimi", manifest="/srv/shared/right")
    assert (run.code, result["changed"]) == (0, False), run.text

    other = fleet.hosts[NAMES[1]]
    other.shell(
        "printf 'use chroot = no\\nuid = root\\ngid = root\\n[m]\\npath = /srv/shared\\n' > /root/rsyncd.conf;"
        "systemd-run -q --unit=plain-rsync rsync --daemon --no-detach --config=/root/rsyncd.conf"
    )
    url = f"rsync://{other.shell('hostname -I').split()[0]}/m/kimi"
    run, result = fleet.fetch("/srv/models/synced", source=url, check_only=True)
    assert (run.code, result["missing_gib"]) == (0, 0.07), run.text
    run, result = fleet.fetch("/srv/models/synced", source=url)
    assert (run.code, result["complete"], result["fetched_gib"], result["source"]) == (0, True, 0.07, url), run.text
    inode = host.shell(f"stat -c %i /srv/models/synced/{SHARDS[0]}")
    host.shell(f"rm /srv/models/synced/{SHARDS[1]}")
    run, result = fleet.fetch("/srv/models/synced", source=url)
    assert (run.code, result["complete"], result["fetched_gib"]) == (0, True, 0.023), run.text
    assert host.shell(f"stat -c %i /srv/models/synced/{SHARDS[0]}") == inode
    other.shell("systemctl stop plain-rsync")
    run, result = fleet.fetch("/srv/models/away", source=url, check_only=True)
    assert f"found rsync's exit code 10 from {url} " in result["finding"]["text"]


def fleet_play(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the role does about models: look, ask early, fetch."""
    look = {
        "name": "Look", "register": "__sglang_host",
        "inferops.sglang.preflight_info": {
            "instance": "sglang", "sglang_version": "0.5.23", "device": "cpu", "model": model["sglang_model"],
            "model_source": model["sglang_model_source"], "model_revision": model.get("sglang_model_revision", ""),
            "weights_given": ["model"],
        },
    }  # fmt: skip
    steps = [
        {"name": step, "ansible.builtin.include_role": {"name": "inferops.sglang.sglang", "tasks_from": step, "public": True}}
        for step in ("model_check", "model")
    ]
    found = {"that": "__sglang_model_findings == []", "fail_msg": "{{ __sglang_model_findings }}"}
    refuse = {"name": "Refuse", "ansible.builtin.assert": found}
    return [look, *steps, refuse]


def test_a_fleet_asks_the_hub_once_and_copies_from_host_to_host(fleet: Fleet, hub: Hub) -> None:
    path = "/srv/models/fleet"
    commit = hub.publish(MODEL, fleet.model("fleet"))
    model = {"sglang_model": path, "sglang_model_source": f"hub:{MODEL}", "sglang_hub_endpoint": hub.endpoint,
             "sglang_install_method": "container", "sglang_python": "/srv/client/python"}  # fmt: skip
    values = json.dumps(model)
    run = fleet.play(fleet_play(model), "-e", values, hosts="sglang")
    assert run.code == 0, run.text
    assert sorted(Path(asked.path).name for asked in hub.transfers() if asked.method == "GET") == sorted(
        [*SHARDS, "config.json", "model.safetensors.index.json", "tokenizer.json"]
    )
    records = {name: json.loads(host.read(f"{path}/.inferops-source.json")) for name, host in fleet.hosts.items()}
    assert {record["commit"] for record in records.values()} == {commit}
    assert [records[name]["via"] for name in NAMES] == ["", NAMES[0]]
    assert len({record["fingerprint"] for record in records.values()}) == 1
    for host in fleet.hosts.values():
        assert units(host) == ""
        assert host.shell("ls /run | grep inferops || true; ss -Htln 'sport = 8730'") == ""

    # all of it again, with no hub and no port: nothing runs but the look
    again = fleet.play(fleet_play(model), "-e", values, "-e", "sglang_hub_endpoint=http://10.79.22.1:9", hosts="sglang")
    assert (again.code, again.changed) == (0, 0), again.text
    assert "Copy it" not in again.text

    # the one that has it comes in a later batch; the hub is not asked
    fleet.hosts[NAMES[0]].shell(f"rm -r {path}")
    asked = len(hub.requests)
    run = fleet.play(fleet_play(model), "-e", values, hosts="sglang", serial=1)
    assert run.code == 0, run.text
    assert json.loads(fleet.hosts[NAMES[0]].read(f"{path}/.inferops-source.json"))["via"] == NAMES[1]
    assert len(hub.requests) == asked

    # a giver that cannot give: the other host is told why, and asks the hub itself
    fleet.hosts[NAMES[1]].shell(f"rm -r {path}")
    fleet.hosts[NAMES[0]].shell("systemd-run -q --unit=in-the-way python3 -m http.server 8730")
    fleet.hosts[NAMES[0]].wait_for("ss -Htln 'sport = 8730'")
    run = fleet.play(fleet_play(model), "-e", values, hosts="sglang")
    fleet.hosts[NAMES[0]].shell("systemctl stop in-the-way")
    assert run.code == 0, run.text
    assert f"asked for {path} to be copied from this host at port 8730, found that another program listens there;" in run.text
    assert json.loads(fleet.hosts[NAMES[1]].read(f"{path}/.inferops-source.json"))["via"] == ""
    assert len(hub.transfers(SHARDS[0])) == 2

    # a gated model refuses all hosts before anything is fetched, and one of them asked
    hub.publish("acme/gated", fleet.model("fleet"))
    hub.gated, asked = {"acme/gated"}, len(hub.requests)
    model = {**model, "sglang_model": "/srv/models/gated", "sglang_model_source": "hub:acme/gated"}
    tasks = fleet_play(model)
    run = fleet.play([tasks[0], tasks[1], tasks[3]], "-e", json.dumps(model), hosts="sglang")
    assert run.code == 2
    assert " ".join(run.text.split()).count("and no token (401); accept its conditions at") >= 2, run.text
    assert {name for name in NAMES if f"fatal: [{name}]" in run.text} == set(NAMES)
    assert len(hub.requests) - asked == 2
