# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang in a container: a real podman on a throw-away host, with the stand-in engine in its image.

The host cannot raise limits and has no overlay filesystem to give, so podman gets smaller limits, its driver vfs and no control group of
its own there; the image holds the engine alone and takes Python from the host. Docker's words are held by the tests of the variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.host import Host
from support.kimi import kimi_host, kimi_service

TOKENS = 192406
IMAGE = "localhost/sglang:standin"
KEY = "k-4711-not-to-be-seen"
# what a host in a container cannot have
HOST_ARGS = [
    "--cgroups", "disabled", "--ulimit", "nofile=20000:20000", "--ulimit", "memlock=65536:65536", "--ulimit", "nproc=30000:30000",
    "--volume", "/usr:/usr:ro",
]  # fmt: skip
STORAGE = "printf '[storage]\\ndriver = \"vfs\"\\nrunroot = \"/run/containers/storage\"\\ngraphroot = \"/var/lib/containers/storage\"\\n'"
PREPARE = f"""
mkdir -p /etc/containers && {STORAGE} > /etc/containers/storage.conf
printf '[containers]\\nkeyring = false\\n' > /etc/containers/containers.conf
"""
MAKE_IMAGE = """
rm -rf /root/image && mkdir -p /root/image/opt/engine /root/image/tmp /root/image/usr /root/image/etc && cd /root/image
ln -s usr/bin bin && ln -s usr/lib lib && ln -s usr/lib64 lib64 && chmod 1777 tmp && echo {mark} > opt/mark
python3 -m zipfile -e /srv/wheels/sglang-*.whl opt/engine
tar -c . | podman import -c 'ENV PYTHONPATH=/opt/engine' -c 'ENV PATH=/usr/bin:/bin' - {image}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    before = os.environ.get("INFEROPS_HOSTS_PACKAGES")
    os.environ["INFEROPS_HOSTS_PACKAGES"] = "podman crun"
    try:
        with kimi_host(tmp_path_factory.mktemp("container"), "container", "infopz", "10.79.26") as booted:
            booted.shell(PREPARE)
            booted.shell(MAKE_IMAGE.format(mark="first", image=IMAGE))
            yield booted
    finally:
        del os.environ["INFEROPS_HOSTS_PACKAGES"]
        if before is not None:
            os.environ["INFEROPS_HOSTS_PACKAGES"] = before


def served(instance: str, port: int, **more: Any) -> dict[str, Any]:
    values = {**kimi_service(instance, port), "sglang_device": "cpu", "sglang_mem_fraction_static": 0.92, "sglang_pool_target": TOKENS}
    del values["sglang_wheelhouse"]
    container = {"sglang_install_method": "container", "sglang_container_image": IMAGE, "sglang_container_args": HOST_ARGS}
    # eight pretended ranks on a small machine
    return {**values, **container, "sglang_host_memory_per_rank_gib": 0, "sglang_gate_settle_time": 1, **more}


def running(host: Host) -> list[str]:
    return sorted(host.shell("podman ps --format '{{.Names}}'").split())


def image_id(host: Host) -> str:
    return "sha256:" + host.shell(f"podman image inspect --format '{{{{.Id}}}}' {IMAGE}")


def server_pid(host: Host, instance: str) -> str:
    return host.shell(f"podman inspect --format '{{{{.State.Pid}}}}' {instance}")


def test_a_service_in_a_container_is_proved_kept_changed_and_never_outlives_its_unit(host: Host) -> None:
    values = served("sglang-box", 31900)
    first = host.play(values)
    assert first.code == 0, first.text
    receipt = host.receipt("sglang-box")
    assert receipt["release"] == image_id(host)
    assert receipt["min_tokens"] == TOKENS
    assert running(host) == ["sglang-box"]
    # the client is the main process, with the mark of its configuration; the server is the account's
    main = host.shell("systemctl show -P MainPID sglang-box.service")
    assert host.read(f"/proc/{main}/comm") == "podman"
    pid = server_pid(host, "sglang-box")
    assert host.shell(f"stat -c %U /proc/{pid}") == "sglang"
    digest = re.search(r"INFEROPS_DIGEST=(\w+)", host.read("/etc/sglang/sglang-box.env"))
    for process in (main, pid):
        assert f"INFEROPS_DIGEST={digest[1]}" in host.shell(f"tr '\\0' '\\n' < /proc/{process}/environ")
    assert "STANDIN_FREE_GIB" not in host.shell(f"tr '\\0' ' ' < /proc/{main}/cmdline | sed 's/--env [A-Z_]*//g'")
    # models are there to be read
    assert "Read-only" in host.shell("podman exec sglang-box sh -c 'touch /srv/models/kimi-k2.6/x' 2>&1 || true")

    unchanged = host.play(values)
    assert unchanged.code == 0, unchanged.text
    assert unchanged.changed == 0, unchanged.text
    assert unchanged.tasks() <= 30, unchanged.text

    # the name means another image by now: that is a change, and the service starts anew with it
    host.shell(MAKE_IMAGE.format(mark="second", image=IMAGE))
    changed = host.play(values)
    assert changed.code == 0, changed.text
    assert host.starts("sglang-box") == 2
    assert host.receipt("sglang-box")["release"] == image_id(host) != receipt["release"]
    assert host.shell("podman exec sglang-box cat /opt/mark") == "second"

    # whatever ends the client, the container goes with it, and one that is left is no obstacle
    host.shell("systemctl kill --kill-whom=main --signal=KILL sglang-box.service")
    host.wait_for("systemctl show -P SubState sglang-box.service | grep auto-restart")
    assert running(host) == []
    host.shell("podman create --name sglang-box " + " ".join(HOST_ARGS) + f" {IMAGE} true; systemctl restart --no-block sglang-box.service")
    host.wait_for("podman exec sglang-box cat /opt/mark")
    host.shell("systemctl stop sglang-box.service")
    assert running(host) == []


def test_a_refused_start_goes_back_to_the_accepted_image(host: Host) -> None:
    values = served("sglang-back", 31901)
    accepted = host.play(values)
    assert accepted.code == 0, accepted.text
    old = host.receipt("sglang-back")
    host.shell(MAKE_IMAGE.format(mark="third", image=IMAGE))
    broken = {**values, "sglang_environment": {**values["sglang_environment"], "STANDIN_FAULT": "oom_weights"}}
    refused = host.play(broken)
    assert refused.code != 0
    said = " ".join(refused.text.split())
    assert "The last accepted service runs again (fraction 0.92, 192,406 tokens)." in said, refused.text[-3000:]
    assert host.receipt("sglang-back") == old
    unit = host.read("/etc/systemd/system/sglang-back.service")
    assert old["release"] in unit
    assert host.shell("podman inspect --format '{{.Image}}' sglang-back") == old["release"].partition(":")[2]
    host.shell("systemctl stop sglang-back.service")


def test_the_key_is_in_no_command_line_and_no_environment(host: Host) -> None:
    host.shell(f"umask 077; echo {KEY} > /root/key")
    run = host.play(served("sglang-keyed", 31902, sglang_api_key_file="/root/key"))
    assert run.code == 0, run.text
    pid = server_pid(host, "sglang-keyed")
    seen = host.shell(
        f"cat /proc/{pid}/cmdline /proc/{pid}/environ /proc/$(systemctl show -P MainPID sglang-keyed.service)/cmdline"
        " /etc/systemd/system/sglang-keyed.service; podman inspect sglang-keyed; journalctl -o cat -u sglang-keyed.service; true"
    )
    assert KEY not in seen
    python = (
        "import urllib.request as u,sys\n"
        "r=u.Request('http://127.0.0.1:31902/v1/models',headers=dict([h.split(': ') for h in sys.argv[1:]]))\n"
        "try: print(u.urlopen(r).status)\n"
        "except Exception as e: print(e.code)"
    )
    assert host.shell(f"python3 -c \"{python}\"") == "401"
    assert host.shell(f"python3 -c \"{python}\" 'Authorization: Bearer {KEY}'") == "200"
    host.shell("systemctl stop sglang-keyed.service")


def test_an_image_that_cannot_be_had_is_named_and_nothing_runs(host: Host) -> None:
    run = host.play(served("sglang-none", 31903, sglang_container_image="localhost/nothing:here"))
    assert run.code != 0
    said = " ".join(run.text.split())
    assert "asked for the image localhost/nothing:here, found that it cannot be pulled: it ended with exit code 125: " in said, run.text
    assert host.shell("systemctl show -P LoadState sglang-none.service") == "not-found"
    assert host.shell("systemctl list-units --all --plain --no-legend 'sglang-pull-*'") == ""


def test_a_container_is_removed_with_its_instance(host: Host) -> None:
    run = host.play(served("sglang-box", 31900, sglang_state="absent"))
    assert run.code == 0, run.text
    assert host.shell("systemctl show -P LoadState sglang-box.service") == "not-found"
    # the image is the operator's
    assert host.shell(f"podman image inspect --format '{{{{.Id}}}}' {IMAGE}")
