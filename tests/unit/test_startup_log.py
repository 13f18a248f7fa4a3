# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One log record to events: every form seen in builds from 0.4.0 to 0.5.23, and what only looks like one."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._startup_log import (
    HIDDEN,
    Capture,
    Crash,
    ExceptionLine,
    Fatal,
    InitBegin,
    KvPool,
    MambaPool,
    PoolEnd,
    PostCapturePool,
    Rank,
    Ready,
    ServerArgs,
    SplitSizes,
    Stopping,
    Summary,
    Suppressed,
    Traceback,
    Unbalanced,
    UnitLine,
    WeightsBegin,
    WeightsEnd,
    is_noise,
    parse_record,
    parse_server_args,
    parse_suppressed,
    parse_unit_line,
)
from ansible_collections.inferops.sglang.tests.unit.boots import LOGS
from hypothesis import example, given, settings
from hypothesis import strategies as st

STAMP = "[2026-05-30 22:08:02]"
UNBALANCED = "The memory capacity is unbalanced. Some GPUs may be occupied by other processes."

# name, text, events in order
FORMS = [
    (
        "0.4.0 load end without usage",
        f"{STAMP} Load weight end. type=MistralForCausalLM, dtype=torch.bfloat16, avail mem=9.69 GB",
        [WeightsEnd(9.69, None, "MistralForCausalLM")],
    ),
    (
        "0.4.6 load end",
        f"{STAMP} Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=6.09 GB, mem usage=15.54 GB.",
        [WeightsEnd(6.09, 15.54, "Qwen2ForCausalLM")],
    ),
    (
        "0.5.9 load end with elapsed first",
        f"{STAMP} Load weight end. elapsed=605.50 s, type=KimiK25, dtype=torch.bfloat16, avail mem=210.38 GB, mem usage=73.58 GB.",
        [WeightsEnd(210.38, 73.58, "KimiK25")],
    ),
    (
        "0.5.10 load end with quant",
        f"{STAMP} Load weight end. elapsed=4.76 s, type=Qwen3_5, quant=fp8, fmt=e4m3, avail mem=264.75 GB, mem usage=14.49 GB.",
        [WeightsEnd(264.75, 14.49, "Qwen3_5")],
    ),
    (
        "negative usage",
        f"{STAMP} Load weight end. elapsed=94.49 s, type=X, avail mem=30.67 GB, mem usage=-1.86 GB.",
        [WeightsEnd(30.67, -1.86, "X")],
    ),
    (
        "0.5.18 overlap: second word on a load",
        f"{STAMP} Load weight end. Committed real weights after CUDA graph capture in 3.1 s",
        [WeightsEnd(None, None, None)],
    ),
    ("load begin", f"{STAMP} Load weight begin. avail mem=93.73 GB", [WeightsBegin(93.73)]),
    (
        "0.4.6 MHA",
        f"{STAMP} KV Cache is allocated. #tokens: 46611, K size: 1.42 GB, V size: 1.42 GB",
        [KvPool(46611, None, 1.42, 1.42, None)],
    ),
    ("0.4.9 MLA", f"{STAMP} KV Cache is allocated. #tokens: 192406, KV size: 12.59 GB", [KvPool(192406, 12.59, None, None, None)]),
    (
        "0.5.13 dtype before the tokens",
        f"{STAMP} KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 454112, K size: 3.46 GB, V size: 3.46 GB",
        [KvPool(454112, None, 3.46, 3.46, "torch.float8_e4m3fn")],
    ),
    (
        "0.5.17 label",
        f"{STAMP} SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB",
        [KvPool(300288, None, 8.38, 5.59, "torch.bfloat16", "SWA")],
    ),
    (
        "0.5.18 upper bound",
        f"{STAMP} KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1000, K size: 1.00 GB, V size: 1.00 GB",
        [KvPool(1000, None, 1.0, 1.0, "torch.bfloat16", None, True)],
    ),
    (
        "0.4.1 no tokens, trailing dot",
        f"{STAMP} KV Cache is allocated. K size: 4.41 GB, V size: 4.41 GB.",
        [KvPool(None, None, 4.41, 4.41, None)],
    ),
    (
        "extra tail",
        f"{STAMP} KV Cache is allocated. #tokens: 60000, KV size: 0.13 GB, layout=(60001, 1, 576), page_size=1",
        [KvPool(60000, 0.13, None, None, None)],
    ),
    (
        "grouped digits",
        f"{STAMP} KV Cache is allocated. #tokens: 1,048,576, K size: 1.00 GB, V size: 1.00 GB",
        [KvPool(1048576, None, 1.0, 1.0, None)],
    ),
    (
        "0.5.17 post-capture pool",
        f"{STAMP} Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 9000, KV size: 1.25 GB, avail mem=7.00 GB",
        [PostCapturePool(KvPool(9000, 1.25, None, None, "torch.bfloat16"), False, 7.0)],
    ),
    (
        "0.5.22 post-capture draft",
        f"{STAMP} Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 9000, KV size: 0.25 GB",
        [PostCapturePool(KvPool(9000, 0.25, None, None, "torch.bfloat16"), True, None)],
    ),
    (
        "0.5.16 post-capture",
        f"{STAMP} Post-capture KV sizing: max_total_num_tokens=8192, free memory=9.30 GB",
        [PostCapturePool(KvPool(8192, None, None, None, None), False, 9.3)],
    ),
    (
        "0.5.17 post-capture split",
        f"{STAMP} Post-capture KV sizing: full_layer_tokens=400, swa_layer_tokens=300",
        [SplitSizes(400, 300, True)],
    ),
    (
        "0.5.3 window",
        f"{STAMP} Use Sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288",
        [SplitSizes(375360, 300288)],
    ),
    ("0.5.9 all layers slide", f"{STAMP} Use sliding window memory pool (all SWA). swa_layer_tokens=5000", [SplitSizes(None, 5000)]),
    (
        "0.5.12 DeepSeek-V4",
        f"{STAMP} DSV4 pool sizes: full=32768, swa=3200, c4=8192, c128=256, c4_state=200, c128_state=0",
        [SplitSizes(32768, 3200)],
    ),
    (
        "0.5.3 mamba, no blank before the unit",
        f"{STAMP} Mamba Cache is allocated. max_mamba_cache_size: 38, conv_state size: 0.03GB, ssm_state size: 2.74GB ",
        [MambaPool(38)],
    ),
    ("0.5.2 mamba without slots", f"{STAMP} Mamba Cache is allocated. conv_state size: 0.03GB, ssm_state size: 2.74GB", [MambaPool(None)]),
    ("pool end", f"{STAMP} Memory pool end. avail mem=6.23 GB", [PoolEnd(6.23)]),
    ("unit cut short", f"{STAMP} Memory pool end. avail mem=0.58 G", [PoolEnd(0.58)]),
    (
        "0.4.0 capture begin without memory",
        f"{STAMP} Capture cuda graph begin. This can take up to several minutes.",
        [Capture(True, None)],
    ),
    (
        "0.4.3 capture end, memory first",
        f"{STAMP} Capture cuda graph end. Time elapsed: 7.23 s. avail mem=0.53 GB. mem usage=0.93 GB.",
        [Capture(False, 0.53)],
    ),
    (
        "0.4.6 capture end",
        f"{STAMP} Capture cuda graph end. Time elapsed: 1.24 s. mem usage=0.09 GB. avail mem=2.89 GB.",
        [Capture(False, 2.89)],
    ),
    (
        "0.5.14 capture",
        f"{STAMP} Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, bs=[1, 2], avail mem=26.27 GB",
        [Capture(True, 26.27)],
    ),
    (
        "0.5.22 capture end",
        f"{STAMP} Capture draft extend CUDA graph end. bs=[1, 2], elapsed=1.61 s, mem usage=0.11 GB, avail mem=26.15 GB.",
        [Capture(False, 26.15)],
    ),
    (
        "other accelerators",
        f"{STAMP} Capture npu graph end. Time elapsed: 8.04 s. mem usage=0.80 GB. avail mem=10.30 GB.",
        [Capture(False, 10.3)],
    ),
    (
        "NPU target decode",
        f"{STAMP} Capture target decode NPU graph end. elapsed=17.95 s, mem usage=0.73 GB, avail mem=0.88 GB.",
        [Capture(False, 0.88)],
    ),
    (
        "0.4.0 summary",
        f"{STAMP} max_total_num_tokens=56524, max_prefill_tokens=16384, max_running_requests=2049, context_len=32768",
        [Summary(56524, 32768, 2049, None)],
    ),
    (
        "0.4.9 summary",
        f"{STAMP} max_total_num_tokens=38141, chunked_prefill_size=-1, max_prefill_tokens=16384, max_running_requests=2048, "
        "context_len=131072, available_gpu_mem=0.83 GB",
        [Summary(38141, 131072, 2048, 0.83)],
    ),
    (
        "summary on the CPU",
        f"{STAMP} max_total_num_tokens=8192, context_len=2048, available_cpu_mem=21.28 GB",
        [Summary(8192, 2048, None, 21.28)],
    ),
    ("bare summary without prefix", "max_total_num_tokens=399740", [Summary(399740, None, None, None)]),
    ("0.5.21 init", f"{STAMP} Init parallel begin.", [InitBegin()]),
    ("0.5.20 init", f"{STAMP} Init torch distributed begin.", [InitBegin()]),
    ("ready", f"{STAMP} The server is fired up and ready to roll!", [Ready()]),
    ("stopping", f"{STAMP} SIGTERM received. signum=None frame=None. Draining requests and shutting down...", [Stopping()]),
    (
        "crash",
        f"{STAMP} Scheduler hit an exception: Traceback (most recent call last):",
        [Crash("Scheduler hit an exception: Traceback (most recent call last):")],
    ),
    (
        "0.5.10 dead child",
        f"{STAMP} Rank 3 scheduler died during initialization (exit code: -9).",
        [Fatal("child_died", "Rank 3 scheduler died during initialization (exit code: -9).")],
    ),
    (
        "0.5.23 a child that was told to stop",
        f"{STAMP} Subprocess scheduler_0 (pid=29426) crashed with exit code -15. Triggering SIGQUIT",
        [None],
    ),
    (
        "0.4.6 sigquit",
        f"{STAMP} Received sigquit from a child process. It usually means the child failed.",
        [Fatal("child_died", "Received sigquit from a child process. It usually means the child failed.")],
    ),
    (
        "port",
        f"{STAMP} ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use",
        [Fatal("port_in_use", "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use")],
    ),
    (
        "arguments",
        "launch_server.py: error: unrecognized arguments: --mem-fraction 0.9",
        [Fatal("bad_arguments", "launch_server.py: error: unrecognized arguments: --mem-fraction 0.9")],
    ),
    ("watchdog", f"{STAMP} Watchdog timeout (self.watchdog_timeout=300)", [Fatal("hang", "Watchdog timeout (self.watchdog_timeout=300)")]),
    ("warning of unbalance", f"{STAMP} {UNBALANCED}", [Unbalanced(UNBALANCED)]),
    ("traceback", "Traceback (most recent call last):", [Traceback()]),
    (
        "exception with a path",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB.",
        [ExceptionLine("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 970.00 MiB.")],
    ),
    ("exception without a word", "AssertionError", [ExceptionLine("AssertionError")]),
]


@pytest.mark.parametrize(("text", "expected"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_each_form_of_a_sentence_gives_its_event(text, expected):
    assert [record.event for record in parse_record(text)] == expected


END = "Memory pool end. avail mem=1.00 GB"
# name, text, rank, stamp, pid
PREFIXES = [
    ("no rank", f"[2026-05-30 22:08:02] {END}", Rank(), "2026-05-30 22:08:02", None),
    ("TP", f"[2026-05-30 22:08:02 TP3] {END}", Rank(tp=3), "2026-05-30 22:08:02", None),
    ("two digits", f"[2026-05-30 22:08:02 TP10] {END}", Rank(tp=10), "2026-05-30 22:08:02", None),
    ("TP EP", f"[2026-05-30 22:08:02 TP0 EP1] {END}", Rank(tp=0, ep=1), "2026-05-30 22:08:02", None),
    ("DP TP", f"[2026-05-30 22:08:02 DP7 TP6] {END}", Rank(tp=6, dp=7), "2026-05-30 22:08:02", None),
    ("0.4.9 order TP PP", f"[2026-05-30 22:08:02 DP1 TP2 PP3] {END}", Rank(tp=2, pp=3, dp=1), "2026-05-30 22:08:02", None),
    (
        "0.5.9 order, all labels",
        f"[2026-05-30 22:08:02 DP1 PP2 ATTN_CP3 MOE_DP4 TP5 EP6] {END}",
        Rank(tp=5, pp=2, dp=1, ep=6),
        "2026-05-30 22:08:02",
        None,
    ),
    ("milliseconds", f"[2026-05-30 22:08:02.123 TP1] {END}", Rank(tp=1), "2026-05-30 22:08:02.123", None),
    ("rank without date", f"[TP4] {END}", Rank(tp=4), "", None),
    ("time without date", f"[08:00:27] {END}", Rank(), "08:00:27", None),
    ("nothing", END, Rank(), "", None),
    (
        "docker and kubectl timestamps",
        f"2026-09-23T08:24:42.655136271Z [2026-05-30 22:08:02 DP0 TP0] {END}",
        Rank(tp=0, dp=0),
        "2026-05-30 22:08:02",
        None,
    ),
    ("CRI", f"2026-09-23T08:24:42.655136271Z stderr F {END}", Rank(), "", None),
    ("compose", f"sglang-1  | [2026-05-30 22:08:02 TP0] {END}", Rank(tp=0), "2026-05-30 22:08:02", None),
    ("tracing", f"2026-06-01T01:11:53.390560Z  INFO scheduler.init_model_worker: {END}", Rank(), "", None),
    ("logging configuration with a pid", f"2025-04-13 14:53:45 INFO 507 [model_runner.py:313] {END}", Rank(), "", 507),
    (
        "journal in another locale",
        f"août 28 18:14:37 gpu01 bash[9]: [2026-05-30 22:08:02 TP1] {END}",
        Rank(tp=1),
        "2026-05-30 22:08:02",
        None,
    ),
    ("torch's global rank", f"[rank6]: {END}", Rank(), "", None),
]


@pytest.mark.parametrize(("text", "rank", "stamp", "pid"), [form[1:] for form in PREFIXES], ids=[form[0] for form in PREFIXES])
def test_each_prefix_is_understood(text, rank, stamp, pid):
    (record,) = [record for record in parse_record(text) if record.event]
    assert record.event == PoolEnd(1.0)
    assert (record.rank, record.stamp, record.pid) == (rank, stamp, pid)


GLUED = [
    ("progress bar before", "  0%|     | 0/13 [00:00<?, ?it/s][2026-05-30 22:08:02 TP1] Memory pool end. avail mem=1.45 GB", [(1, 1.45)]),
    (
        "two records",
        "[2026-05-30 22:08:02 TP0] Memory pool end. avail mem=1.00 GB[2026-05-30 22:08:02 TP1] Memory pool end. avail mem=2.00 GB",
        [(0, 1.0), (1, 2.0)],
    ),
    ("carriage returns", "Loading: 0%\rLoading: 100%\r[2026-05-30 22:08:02 TP2] Memory pool end. avail mem=3.00 GB\r\n", [(2, 3.0)]),
    ("colour", "\x1b[32m[2026-05-30 22:08:02 TP2]\x1b[0m Memory pool end. avail mem=3.00 GB", [(2, 3.0)]),
    ("several lines in one message", "tracing\n[2026-05-30 22:08:02 TP2] Memory pool end. avail mem=3.00 GB\nmore", [(2, 3.0)]),
]


@pytest.mark.parametrize(("text", "expected"), [form[1:] for form in GLUED], ids=[form[0] for form in GLUED])
def test_records_are_found_where_others_wrote_into_their_line(text, expected):
    found = [(record.rank.tp, record.event.avail_gib) for record in parse_record(text) if isinstance(record.event, PoolEnd)]
    assert found == expected


DECOYS = [
    f"{STAMP} max_total_num_tokens: arg=60000 vs profiled=16725761, using min",
    f"{STAMP} Uneven DCP: restart with VECTOR=21,19,24 to raise max_total_num_tokens from 441536 to ~630784",
    f"{STAMP} KV pool sizing: available_bytes=5083410432 (4.734 GiB), cell_size=14143 -> max_total_num_tokens=359424",
    f"{STAMP} req_to_token_pool: slots=4096 (profiled_max_total_num_tokens=16725761, context_len=163840), mem=2.68GB",
    "profiled_max_total_num_tokens=16725761",
    "max_total_num_tokens = 193408",
    f"{STAMP} KV cache: MLA(kv_lora=512, rope=64) layers=2 dtype=torch.bfloat16 max_tokens=16725761",
    f"{STAMP} VirtualKV Cache is allocated. #tokens: 99, K size: 1.00 GB, V size: 1.00 GB",
    f"{STAMP} KV Cache skipped (no-op pool). Logical #tokens: 512, physical K/V size: ~1.0 KB placeholder",
    f"{STAMP} Allocating kv hierarchical KV host pool: 3423488 tokens, 153.81 GB host memory.",
    f"{STAMP} Capture cuda graph bs [1, 2, 4, 8]",
    f"{STAMP} Ignore import error when loading sglang.srt.models.midashenglm: No module named 'torchaudio'",
    f"{STAMP} Decode out of memory happened. #retracted_reqs: 1",
    f"{STAMP} KV cache pool is full. Retract requests. #retracted_reqs: 1",
    f"{STAMP} INFO:     Application startup complete.",
    f"{STAMP} Soft watchdog timeout (300)",
    "[rank1]:[W807 17:36:05.837219864 NPUGraph.cpp:223] Warning: Waiting for pending NCCL work to finish before starting graph capture.",
    "[TP0..3] Memory pool end. avail mem=1.00 GB",
    "FutureWarning: the pynvml package is deprecated",
    f"{STAMP} Receive: obj=GenerateReqInput(text='[2026-05-30 22:08:02 TP0] KV Cache is allocated. #tokens: 999999, KV size: 1.00 GB')",
    "ansible-inferops.sglang.allocation_info[9]: Invoked with log_text=[2026-05-30 22:08:02 TP0] KV Cache is allocated. #tokens: 999999",
]


@pytest.mark.parametrize("text", DECOYS)
def test_what_only_looks_like_a_sentence_gives_no_event(text):
    assert [record.event for record in parse_record(text) if record.event] == []


def test_server_args_of_both_dump_forms_are_read_at_the_top_level():
    dumps = [
        "ServerArgs(model_path='/srv/a, b', model_loader_extra_config='{\"tp_size\": 4}', tp_size=8, ratio=-0.5, names=['x', (1, 2)], "
        "odd=None)",
        "{'model_path': '/srv/a, b', 'model_loader_extra_config': '{\"tp_size\": 4}', 'tp_size': 8, 'ratio': -0.5, 'names': ['x', (1, 2)], "
        "'odd': None}",
    ]
    expected = {
        "model_path": "/srv/a, b",
        "model_loader_extra_config": '{"tp_size": 4}',
        "tp_size": 8,
        "ratio": -0.5,
        "names": ["x", [1, 2]],
        "odd": None,
    }
    assert [parse_server_args(dump) for dump in dumps] == [expected, expected]


def test_a_nested_tp_size_is_not_the_servers():
    assert parse_server_args("{'extra': {'tp_size': 4, 'x': [1, {'pp_size': 2}]}, 'tp_size': 2}") == {
        "extra": {"tp_size": 4, "x": [1, {"pp_size": 2}]},
        "tp_size": 2,
    }


def test_a_value_that_is_no_literal_costs_only_itself():
    dump = "{'backend': <Backend.FULL: 0>, 'call': f(1, 2), 'tp_size': 2, 'cut': 'the line ends he"
    assert parse_server_args(dump) == {"backend": "<Backend.FULL: 0>", "call": "f(1, 2)", "tp_size": 2, "cut": "'the line ends he"}


def test_nothing_in_a_dump_is_executed(tmp_path):
    trap = tmp_path / "trap"
    parse_server_args(f"ServerArgs(a=open({str(trap)!r}, 'w'), b=__import__('os').mkdir({str(trap)!r}))")
    assert not trap.exists()


def test_secrets_are_masked():
    values = parse_server_args("ServerArgs(api_key='k1', admin_api_key='k2', ssl_keyfile_password='k3', hf_token='k4', max_total_tokens=5)")
    assert values == {"api_key": HIDDEN, "admin_api_key": HIDDEN, "ssl_keyfile_password": HIDDEN, "hf_token": HIDDEN, "max_total_tokens": 5}
    assert parse_server_args("ServerArgs(api_key=None)") == {"api_key": None}


# file, number of arguments, a few of them
DUMPS = [
    ("0.5.12.post1-llama-tp1.log", 381, {"tp_size": 1, "mem_fraction_static": 0.843, "max_total_tokens": 1048576, "page_size": 1}),
    ("0.5.23-llama-tp2.log", 546, {"tp_size": 2, "mem_fraction_static": 0.95, "max_total_tokens": 8192, "speculative_algorithm": None}),
]


@pytest.mark.parametrize(("name", "count", "some"), DUMPS)
def test_whole_dumps_of_the_real_engine_are_read(name, count, some):
    lines = (LOGS / name).read_text(encoding="utf-8").splitlines()
    (event,) = [record.event for line in lines for record in parse_record(line) if isinstance(record.event, ServerArgs)]
    assert len(event.values) == count
    assert {key: event.values[key] for key in some} == some


UNIT_LINES = [
    ("sglang.service: Main process exited, code=exited, status=1/FAILURE", UnitLine("exited", "code=exited, status=1/FAILURE")),
    ("sglang.service: Failed with result 'exit-code'.", UnitLine("failed", "exit-code")),
    ("sglang.service: Scheduled restart job, restart counter is at 3.", UnitLine("restart", "3")),
    ("sglang.service: Start request repeated too quickly.", UnitLine("limit", "Start request repeated too quickly")),
    ("sglang.service: A process of this unit has been killed by the OOM killer.", UnitLine("oom", "killed by the OOM killer")),
    ("sglang.service: Deactivated successfully.", UnitLine("ended", "Deactivated successfully")),
    ("Stopping SGLang...", UnitLine("stopped", "Stopping")),
    (
        "sglang.service: Failed at step EXEC spawning /opt/x: No such file or directory",
        UnitLine("exec", "Failed at step EXEC spawning /opt/x: No such file or directory"),
    ),
    ("Started SGLang.", None),
]


@pytest.mark.parametrize(("text", "expected"), UNIT_LINES)
def test_lines_of_the_service_manager(text, expected):
    assert parse_unit_line(text) == expected


def test_the_log_daemons_note_on_dropped_messages():
    text = "Suppressed 62498 messages from sglang-k26.service"
    assert parse_suppressed(text) == Suppressed(62498, text)
    assert parse_suppressed("Journal started") is None


ENDINGS = ["", " ", "\x1b[0m", "\r", "]", "[", "[2026-05-30 22:08:02 TP1] Memory pool end. avail mem=1.00 GB"]


@settings(max_examples=400, deadline=None)
@example("launch_server.py: error: unrecognized arguments: --mem-fraction 0.9", "\N{SUPERSCRIPT TWO}", "", 1)
@example("Traceback (most recent call last):", "12\N{NO-BREAK SPACE}", "", 1)
@given(
    st.sampled_from([form[1] for form in FORMS] + [form[1] for form in PREFIXES] + [form[1] for form in GLUED] + DECOYS),
    st.text(max_size=40),
    st.sampled_from(ENDINGS),
    st.integers(0, 200),
)
def test_no_raw_line_is_called_noise_that_holds_an_event(text, other, ending, cut):
    message = (other + text[cut % 7 :] + ending) if cut % 2 else (text[: len(text) - cut % 5] + other + ending)
    line = json.dumps({"MESSAGE": message, "_PID": "1"}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if is_noise(line):
        assert [record.event for record in parse_record(message) if record.event] == []


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.builds(lambda a, b: a + b, st.sampled_from([form[1] for form in FORMS]), st.text())))
def test_no_text_breaks_the_parser(text):
    for record in parse_record(text):
        assert record.headed in (True, False)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ServerArgs(){}[]'\",=:\\ 0123456789.a_-<>\n", max_size=200))
def test_no_dump_breaks_the_reader_of_arguments(text):
    assert isinstance(parse_server_args("{" + text), dict)
    assert isinstance(parse_server_args("ServerArgs(" + text), dict)


def test_noise_is_most_of_what_a_serving_server_writes():
    serving = [
        f"{STAMP} Decode batch, #running-req: 1, #token: 28, token usage: 0.00, cuda graph: True, gen throughput (token/s): 2.81",
        f"{STAMP} Prefill batch, #new-seq: 1, #new-token: 28, #cached-token: 0, token usage: 0.00",
        f'{STAMP} INFO:     10.0.0.7:38552 - "POST /generate HTTP/1.1" 200 OK',
        "/opt/x.py:71: UserWarning: is still supported",
    ]
    assert [is_noise(json.dumps({"MESSAGE": text}, separators=(",", ":")).encode()) for text in serving] == [True] * len(serving)
