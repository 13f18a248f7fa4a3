# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SGLang itself says after the role installed and started it with a solved fraction."""

from __future__ import annotations

import json
import re

import pytest

UNIT = "sglang-demo"
TARGET = 8192


@pytest.fixture
def receipt(host):
    return json.loads(host.file(f"/var/lib/sglang/{UNIT}/receipt.json").content_string)


@pytest.fixture
def journal(host, receipt):
    return host.check_output(f"journalctl --all -o cat _SYSTEMD_INVOCATION_ID={receipt['invocation_id']}")


def test_nothing_but_the_fraction_sizes_the_pool(host):
    unit = host.file(f"/etc/systemd/system/{UNIT}.service").content_string
    assert re.search(r"--mem-fraction-static 0\.\d{4}\b", unit)
    assert "--max-total-tokens" not in unit


def test_the_engine_printed_at_least_the_target(journal):
    pools = [int(number) for number in re.findall(r"KV Cache is allocated\. dtype: torch\.bfloat16, #tokens: (\d+)", journal)]
    assert len(pools) == 2, "one pool of the target, one of the draft"
    assert min(pools) >= TARGET
    assert [int(number) for number in re.findall(r"\bmax_total_num_tokens=(\d+), chunked_prefill_size", journal)] == [pools[0]]


def test_the_receipt_holds_predicted_against_actual(receipt, journal):
    printed = int(re.findall(r"\bmax_total_num_tokens=(\d+), chunked_prefill_size", journal)[0])
    assert receipt["tokens_per_rank"] == {"TP0": printed}
    assert receipt["required_tokens"] == TARGET
    assert receipt["predicted_tokens"] >= TARGET
    assert receipt["prediction_error_tokens"] == printed - receipt["predicted_tokens"]


def test_the_engine_is_the_unmodified_release(host, receipt):
    assert host.check_output(f"{receipt['release']}/bin/python -c 'import sglang; print(sglang.__version__)'") == "0.5.23"


def test_at_most_two_starts_were_needed(host):
    assert int(host.check_output(f"journalctl --all -o cat -u {UNIT}.service | grep -c server_args=")) in (1, 2)


def test_a_request_is_served(host):
    body = json.dumps({"text": "hello world", "sampling_params": {"max_new_tokens": 4, "temperature": 0, "ignore_eos": True}})
    script = (
        "import json, urllib.request as ask\n"
        f"request = ask.Request('http://127.0.0.1:30000/generate', {body.encode()!r}, {{'Content-Type': 'application/json'}})\n"
        "print(json.load(ask.urlopen(request, timeout=120))['meta_info']['completion_tokens'])\n"
    )
    assert host.check_output(f"/usr/bin/python3 - <<'END'\n{script}END") == "4"
