# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in engine: its pools are SGLang's own recorded figures, its lines SGLang's, its deaths SGLang's.

Token figures are results of SGLang's own sizing code. Every start is a real process that is asked by its real log.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = HERE / "standin" / "build_wheel.py"
LIMIT = 20.0  # seconds after which a line that has not come is missing
READY = "The server is fired up and ready to roll!"

MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_hidden_layers": 61}
CONFIGS = {
    "kimi": {
        **MLA, "architectures": ["KimiK25ForConditionalGeneration"], "vision_config": {}, "num_attention_heads": 64,
        "hidden_size": 7168, "max_position_embeddings": 262144,
    },
    "dflash": {
        "architectures": ["DFlashDraftModel"], "num_hidden_layers": 6, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "hidden_size": 7168, "block_size": 8,
    },
    "deepseek-v3": {
        **MLA, "architectures": ["DeepseekV3ForCausalLM"], "num_attention_heads": 128, "hidden_size": 7168,
        "num_nextn_predict_layers": 1, "max_position_embeddings": 163840,
    },
    "deepseek-v3.2": {
        **MLA, "architectures": ["DeepseekV32ForCausalLM"], "num_attention_heads": 128, "hidden_size": 7168,
        "index_head_dim": 128, "max_position_embeddings": 163840,
    },
    "llama": {
        "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "hidden_size": 4096, "max_position_embeddings": 131072,
    },
    "eagle3": {
        "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "num_attention_heads": 32,
        "num_key_value_heads": 8, "hidden_size": 4096,
    },
    "qwen3-32b": {
        "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "hidden_size": 5120, "max_position_embeddings": 40960,
    },
    "window": {
        "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 64,
        "layer_types": ["sliding_attention", "full_attention"],
    },
}
DFLASH = ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "dflash"]
MTP = ["--speculative-algorithm", "EAGLE", "--page-size", "64", "--max-running-requests", "64"]
EAGLE3 = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "eagle3", "--max-running-requests", "48"]
START1 = ["--tp", "8", *DFLASH, "--max-running-requests", "64", "--mem-fraction-static", "0.85"]
START2 = ["--tp", "8", *DFLASH, "--max-running-requests", "8", "--mem-fraction-static", "0.92"]
KIMI = {"STANDIN_FREE_GIB": "93.7274", "STANDIN_WEIGHTS_GIB": "72.398415", "STANDIN_DRAFT_WEIGHTS_GIB": "0"}
KIMI_REAL = {**KIMI, "STANDIN_DRAFT_WEIGHTS_GIB": "1.312", "STANDIN_GRAPH_GIB": "0.64"}
SMALL = {"STANDIN_FREE_GIB": "20", "STANDIN_WEIGHTS_GIB": "16.5", "STANDIN_GRAPH_GIB": "0.25"}


def gib(free: float, weights: float) -> dict[str, str]:
    return {"STANDIN_FREE_GIB": str(free), "STANDIN_WEIGHTS_GIB": str(weights), "STANDIN_DRAFT_WEIGHTS_GIB": "0"}


class Boot:
    """One start of the stand-in, in a process group of its own."""

    def __init__(self, site: Path, log: Path, models: Path, model: str, flags: list[str], env: dict[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = log
        paths = [str(models / flag) if flag in CONFIGS else flag for flag in flags]
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(models / model), "--port", str(self.port), *paths]
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "STANDIN_STEP_SECONDS": "0.02", **env}
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=environ, start_new_session=True)

    @property
    def text(self) -> str:
        return self.log.read_bytes().decode()  # carriage returns stay

    @property
    def records(self) -> list[str]:
        """What was said, without the time: "TP0 message" or "message"; elapsed times are blanked."""
        bare = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ?([A-Z0-9 ]*)\] ", r"\n<\1>", self.text)
        plain = re.sub(r"(elapsed[=:] ?)\d+\.\d\d", r"\1T", bare)
        return [re.sub(r"^<(.*?)>", lambda m: m[1] + " " if m[1] else "", line) for line in plain.splitlines() if line]

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + LIMIT
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} never came:\n{self.text}"
            if self.process.poll() is not None:
                assert text in self.text, f"ended with {self.process.returncode} before {text!r}:\n{self.text}"
            time.sleep(0.01)

    def ends(self) -> int:
        return self.process.wait(LIMIT)

    def stop(self) -> int:
        self.process.terminate()
        return self.ends()

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [int(pid) for pid in listed.split()]

    def ask(self, path: str, body: object = None, key: str | None = None) -> tuple[int, str]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data)
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=LIMIT) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """site(version) is a directory with the wheel of that version, unpacked when first asked for."""
    place = tmp_path_factory.mktemp("standin")

    @functools.cache
    def unpack(version):
        built = subprocess.run([sys.executable, BUILD, version, str(place)], check=True, capture_output=True, text=True)
        with zipfile.ZipFile(built.stdout.strip()) as wheel:
            wheel.extractall(place / version)
        return place / version

    return unpack


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    for name, config in CONFIGS.items():
        (place / name).mkdir()
        (place / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return place


@pytest.fixture
def boot(site, models, tmp_path):
    """boot(version, model, flags, env) starts a server; whatever is left of it is killed afterwards."""
    started = []

    def start(version, model, flags=(), env=None):
        server = Boot(site(version), tmp_path / f"{len(started)}.log", models, model, list(flags), env or {})
        started.append(server)
        return server

    yield start
    for server in started:
        try:
            os.killpg(server.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        server.process.wait(LIMIT)


FIGURES = [
    ("kimi start 1", "0.5.12.post1", "kimi", START1, KIMI, 101134),
    ("kimi start 2", "0.5.12.post1", "kimi", START2, KIMI, 192406),
    ("kimi f .926", "0.5.13.post1", "kimi", [*START2, "--mem-fraction-static", "0.926"], KIMI, 200229),
    ("kimi 0.5.14, same A", "0.5.14", "kimi", START2, KIMI, 192406),
    ("kimi 0.5.18, draft's own geometry", "0.5.18", "kimi", START1, KIMI, 104999),
    ("kimi 0.5.23", "0.5.23", "kimi", START2, KIMI, 201050),
    ("kimi 0.5.23 f .926", "0.5.23", "kimi", [*START2, "--mem-fraction-static", "0.926"], KIMI, 209283),
    ("kimi 0.5.12, draft weights not counted", "0.5.12.post1", "kimi", START2, {**KIMI, "STANDIN_DRAFT_WEIGHTS_GIB": "1.31"}, 192406),
    ("kimi DDTREE of a fork", "0.5.12.post1", "kimi", [*START2, "--speculative-algorithm", "DDTREE"],
     {**KIMI, "STANDIN_DDTREE": "1"}, 192406),
    ("deepseek MTP 0.5.9", "0.5.9", "deepseek-v3", ["--tp", "8", *MTP], gib(139, 86), 554944),
    ("deepseek MTP 0.5.13", "0.5.13.post1", "deepseek-v3", ["--tp", "8", *MTP], gib(139, 86), 554944),
    ("deepseek MTP 0.5.14", "0.5.14", "deepseek-v3", ["--tp", "8", *MTP], gib(139, 86), 545984),
    ("deepseek DSA fp8 0.5.16", "0.5.16", "deepseek-v3.2",
     ["--tp", "8", "--page-size", "64", "--kv-cache-dtype", "fp8_e4m3", "--mem-fraction-static", "0.9"], gib(139, 84), 1021824),
    ("deepseek DSA fp8 0.5.17", "0.5.17", "deepseek-v3.2",
     ["--tp", "8", "--page-size", "64", "--kv-cache-dtype", "fp8_e4m3", "--mem-fraction-static", "0.9"], gib(139, 84), 918080),
    ("llama", "0.5.9", "llama", [], gib(78.5, 15.1), 442204),
    ("llama 0.5.23", "0.5.23", "llama", [], gib(78.5, 15.1), 442204),
    ("llama page 16, tp 2", "0.5.12.post1", "llama", ["--tp", "2", "--page-size", "16", "--mem-fraction-static", "0.85"],
     gib(78.5, 8.377), 955968),
    ("llama heads replicated, tp 16", "0.5.12.post1", "llama", ["--tp", "16", "--mem-fraction-static", "0.9"], gib(78.5, 1.5), 4531814),
    ("llama pp 2", "0.5.14", "llama", ["--pp", "2"], gib(78.5, 15.1), 884408),
    ("llama cap", "0.5.14", "llama", ["--max-total-tokens", "200000", "--page-size", "64"], gib(78.5, 15.1), 200000),
    ("llama fp8", "0.5.14", "llama", ["--kv-cache-dtype", "fp8_e5m2", "--mem-fraction-static", "0.86"], gib(23.2, 15.8), 68026),
    ("llama EAGLE3 0.5.12", "0.5.12.post1", "llama", [*EAGLE3, "--mem-fraction-static", "0.8"], gib(78.5, 16.5), 379289),
    ("llama EAGLE3 0.5.14", "0.5.14", "llama", [*EAGLE3, "--mem-fraction-static", "0.8"], gib(78.5, 16.5), 367795),
    ("qwen dp-attention", "0.5.14", "qwen3-32b",
     ["--tp", "8", "--dp", "4", "--enable-dp-attention", "--mem-fraction-static", "0.8"], gib(78.5, 18.5), 362905),
]  # fmt: skip


@pytest.mark.parametrize(("version", "model", "flags", "env", "tokens"), [row[1:] for row in FIGURES], ids=[row[0] for row in FIGURES])
def test_every_rank_has_the_pool_that_sglang_has(boot, version, model, flags, env, tokens):
    server = boot(version, model, flags, {"STANDIN_STEP_SECONDS": "0", **env})
    server.wait_for(READY)
    told = re.findall(r"#tokens: (\d+)", server.text)
    ranks = len(re.findall(r"Load weight begin", server.text))
    assert len(told) == ranks
    assert set(told) == {str(tokens)}
    assert f"max_total_num_tokens={tokens}, " in server.text


def test_the_second_kimi_start_looks_like_the_one_in_the_field(boot):
    server = boot("0.5.12.post1", "kimi", [*START2, "--context-length", "200000"], KIMI_REAL)
    server.wait_for(READY)
    assert [line for line in server.records if line.startswith("TP5 ")] == [
        "TP5 Init torch distributed begin.",
        "TP5 Init torch distributed ends. elapsed=T s, mem usage=1.24 GB",
        "TP5 Load weight begin. avail mem=93.73 GB",
        "TP5 Load weight end. elapsed=T s, type=KimiK25ForConditionalGeneration, avail mem=21.33 GB, mem usage=72.40 GB.",
        "TP5 KV Cache is allocated. #tokens: 192406, KV size: 12.59 GB",
        "TP5 Memory pool end. avail mem=8.73 GB",
        "TP5 Capture cuda graph begin. This can take up to several minutes. avail mem=8.73 GB",
        "TP5 Capture cuda graph end. Time elapsed: T s. mem usage=0.64 GB. avail mem=8.09 GB.",
        "TP5 Init torch distributed begin.",
        "TP5 Init torch distributed ends. elapsed=T s, mem usage=0.00 GB",
        "TP5 Load weight begin. avail mem=8.09 GB",
        "TP5 Load weight end. elapsed=T s, type=DFlashDraftModel, avail mem=6.78 GB, mem usage=1.31 GB.",
        "TP5 KV Cache is allocated. #tokens: 192406, K size: 0.28 GB, V size: 0.28 GB",
        "TP5 Memory pool end. avail mem=6.23 GB",
        "TP5 Capture cuda graph begin. This can take up to several minutes. avail mem=6.23 GB",
        "TP5 Capture cuda graph end. Time elapsed: T s. mem usage=0.16 GB. avail mem=6.07 GB.",
    ]
    summary = (
        "TP0 max_total_num_tokens=192406, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=8, "
        "context_len=200000, available_gpu_mem=6.07 GB"
    )
    assert server.records.count(summary) == 1


def test_from_0_5_14_on_the_draft_is_loaded_before_the_pools(boot):
    server = boot("0.5.23", "kimi", [*START2, "--context-length", "200000"], KIMI_REAL)
    server.wait_for(READY)
    assert [line for line in server.records if line.startswith("TP5 ")] == [
        "TP5 Init parallel begin.",
        "TP5 Init parallel ends. elapsed=T s",
        "TP5 Memory baseline taken. mem usage=1.24 GB",
        "TP5 Load weight begin. avail mem=93.73 GB",
        "TP5 Load weight end. elapsed=T s, type=KimiK25ForConditionalGeneration, avail mem=21.33 GB, mem usage=72.40 GB.",
        "TP5 Memory baseline taken. mem usage=0.00 GB",
        "TP5 Load weight begin. avail mem=21.33 GB",
        "TP5 Load weight end. elapsed=T s, type=DFlashDraftModel, avail mem=20.02 GB, mem usage=1.31 GB.",
        "TP5 KV Cache is allocated. dtype: torch.bfloat16, #tokens: 181843, KV size: 11.90 GB",
        "TP5 Memory pool end. avail mem=8.11 GB",
        "TP5 KV Cache is allocated. dtype: torch.bfloat16, #tokens: 181843, K size: 0.26 GB, V size: 0.26 GB",
        "TP5 Memory pool end. avail mem=7.59 GB",
        "TP5 Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8, avail mem=7.59 GB",
        "TP5 Capture target verify CUDA graph end. bs=[1, 2, 4, 8], elapsed=T s, mem usage=0.64 GB, avail mem=6.95 GB.",
        "TP5 Capture draft verify CUDA graph begin. backend=full, num_tokens_per_req=8, avail mem=6.95 GB",
        "TP5 Capture draft verify CUDA graph end. bs=[1, 2, 4, 8], elapsed=T s, mem usage=0.16 GB, avail mem=6.79 GB.",
    ]


def test_the_main_process_speaks_without_a_rank_and_in_order(boot):
    server = boot("0.5.23", "llama", ["--context-length", "4096"], SMALL)
    server.wait_for(READY)
    pid = server.process.pid
    said = server.records[server.records.index(f"INFO:     Started server process [{pid}]") :]
    assert [re.sub(r"127\.0\.0\.1:\d+ - ", "CLIENT - ", line) for line in said] == [
        f"INFO:     Started server process [{pid}]",
        "INFO:     Waiting for application startup.",
        "INFO:     Application startup complete.",
        f"INFO:     Uvicorn running on http://127.0.0.1:{server.port} (Press CTRL+C to quit)",
        'INFO:     CLIENT - "GET /model_info HTTP/1.1" 200 OK',
        "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0",
        'INFO:     CLIENT - "POST /generate HTTP/1.1" 200 OK',
        READY,
    ]


WORDINGS = [
    ("0.5.9", "Load weight end. elapsed=T s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=3.50 GB, mem usage=16.50 GB."),
    ("0.5.10.post1", "Load weight end. elapsed=T s, type=LlamaForCausalLM, avail mem=3.50 GB, mem usage=16.50 GB."),
    ("0.5.12.post1", "KV Cache is allocated. #tokens: 819, K size: 0.05 GB, V size: 0.05 GB"),
    ("0.5.13.post1", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 819, K size: 0.05 GB, V size: 0.05 GB"),
    ("0.5.12.post1", "Using KV cache dtype: torch.bfloat16"),
    ("0.5.13.post1", "Max concurrent requests (per dp worker) from the finalized token capacity: max_num_reqs=2."),
    ("0.5.14", "Capture target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, bs=[1, 2], avail mem=3.40 GB"),
    ("0.5.20", "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2], avail mem=3.40 GB"),
    ("0.5.20", "Init torch distributed begin."),
    ("0.5.21", "Init parallel begin."),
    ("0.5.22", "Capture target decode CUDA graph end. bs=[1, 2], elapsed=T s, mem usage=0.25 GB, avail mem=3.15 GB."),
]


@pytest.mark.parametrize(("version", "line"), WORDINGS)
def test_wording_belongs_to_the_version(boot, version, line):
    server = boot(version, "llama", ["--max-running-requests", "2", "--mem-fraction-static", "0.88", "--max-total-tokens", "819"], SMALL)
    server.wait_for(READY)
    assert line in server.records


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (["--tp", "2", "--pp", "2"], {"PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"}),
        (["--tp", "2", "--ep", "2"], {"TP0 EP0", "TP1 EP1"}),
        (["--dp", "2"], {"DP0", "DP1"}),
        (["--tp", "4", "--dp", "2", "--enable-dp-attention"], {"DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"}),
        (["--tp", "12"], {f"TP{rank}" for rank in range(12)}),
        ([], {""}),
    ],
)
def test_prefix_names_the_rank(boot, flags, wanted):
    server = boot("0.5.12.post1", "llama", flags, SMALL)
    server.wait_for(READY)
    assert set(re.findall(r"\[[-\d]+ [:\d]+ ?([A-Z0-9 ]*)\] Memory pool end", server.text)) == wanted


def test_each_rank_is_a_process(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "4"], SMALL)
    server.wait_for(READY)
    names = [Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() for pid in server.children()]
    assert names == ["sglang::schedul"] * 4


@pytest.mark.parametrize(("version", "begin"), [("0.5.18", "ServerArgs("), ("0.5.19", "{")])
def test_server_args_record_is_longer_than_a_journal_field(boot, version, begin):
    server = boot(version, "llama", ["--tp", "2", "--mem-fraction-static", "0.8765"], SMALL)
    server.wait_for("Load weight begin")
    record = next(line for line in server.text.splitlines() if "server_args=" in line).partition("server_args=")[2]
    assert len(record) > 6000
    assert record.startswith(begin)
    tree = ast.parse(record, mode="eval").body
    shown = {word.arg: ast.literal_eval(word.value) for word in tree.keywords} if isinstance(tree, ast.Call) else ast.literal_eval(tree)
    assert (shown["tp_size"], shown["mem_fraction_static"], shown["context_length"]) == (2, 0.8765, None)


def test_a_progress_bar_glues_a_record_to_itself(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "4"], SMALL)
    server.wait_for(READY)
    assert re.search(r"\rMulti-thread loading shards:   0% Completed \| 0/64 \[00:00<\?, \?it/s\]\[[-\d]+ [:\d]+ TP\d\] ", server.text)


KILLED = -signal.SIGKILL
LAUNCH = "Received sigquit from a child process. It usually means the child failed."
RUNNING = "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
FATAL = [
    ("oom_capture:2", "0.5.12.post1", KILLED,
     ["TP2 Scheduler hit an exception: Traceback (most recent call last):",
      "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)", LAUNCH], ["max_total_num_tokens="]),
    ("oom_capture", "0.5.23", KILLED,
     ["TP0 Scheduler hit an exception: Traceback (most recent call last):",
      "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)", LAUNCH], ["max_total_num_tokens="]),
    ("oom_warmup:1", "0.5.12.post1", KILLED,
     ["TP1 Scheduler hit an exception: Traceback (most recent call last):", RUNNING], [LAUNCH, READY]),
    ("oom_draft_pool:3", "0.5.12.post1", KILLED,
     ["TP3 Memory pool end. avail mem=8.73 GB", "TP3 Scheduler hit an exception: Traceback (most recent call last):", LAUNCH],
     ["TP3 KV Cache is allocated. #tokens: 192406, K size"]),
    ("not_enough_memory", "0.5.9", KILLED,
     ["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
      "Current value: self.server_args.mem_fraction_static=0.92", LAUNCH], ["#tokens"]),
    ("not_enough_memory", "0.5.10.post1", KILLED,
     ["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.92"],
     ["#tokens"]),
    ("not_enough_memory", "0.5.12.post1", KILLED,
     ["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", LAUNCH], ["#tokens"]),
    ("crash_loop", "0.5.12.post1", KILLED,
     ["TP0 Memory pool end. avail mem=6.23 GB", "RuntimeError: CUDA error: an illegal memory access was encountered", LAUNCH],
     ["max_total_num_tokens="]),
    ("silent_death", "0.5.12.post1", 0, ["TP0 Memory pool end. avail mem=6.23 GB"], ["Scheduler hit", LAUNCH, "Rank 0"]),
    ("kill9:2", "0.5.9", 1, ["Rank 2 scheduler is dead. Please check if there are relevant logs.", "Exit code: -9"],
     ["TP2 Load weight end"]),
    ("kill9:2", "0.5.12.post1", 1,
     ["RuntimeError: Rank 2 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause "
      "is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."], ["Scheduler hit"]),
    ("kill9:main", "0.5.12.post1", KILLED, ["TP0 Init torch distributed begin."], ["Scheduler hit", LAUNCH, READY]),
    ("unbalanced:1", "0.5.12.post1", KILLED, ["TP0 Init torch distributed begin.", LAUNCH],
     ["TP0 Load weight begin", "min_per_gpu_memory"]),
    ("port_in_use", "0.5.12.post1", 1, ["INFO:     Application startup complete."], ["Uvicorn running", READY]),
    ("missing_file", "0.5.12.post1", KILLED, [LAUNCH], ["Load weight end"]),
    ("nccl_timeout", "0.5.12.post1", 1, ["terminate called after throwing an instance of 'c10::DistBackendError'"],
     ["Load weight begin"]),
    ("rendezvous_timeout", "0.5.12.post1", KILLED,
     ["torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/8 clients joined.", LAUNCH],
     ["Load weight begin"]),
    ("damaged_file", "0.5.12.post1", KILLED,
     ["safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer", LAUNCH], ["Load weight end"]),
    ("oom_weights:4", "0.5.12.post1", KILLED,
     ["TP4 Load weight begin. avail mem=93.73 GB", "TP4 Scheduler hit an exception: Traceback (most recent call last):", LAUNCH],
     ["TP4 Load weight end"]),
    ("oom_pool:6", "0.5.23", KILLED, ["TP6 Scheduler hit an exception: Traceback (most recent call last):", LAUNCH], ["TP6 KV Cache"]),
    ("foreign_process:3", "0.5.12.post1", KILLED,
     ["TP3 Scheduler hit an exception: Traceback (most recent call last):", LAUNCH], ["max_total_num_tokens="]),
    ("disk_full", "0.5.12.post1", KILLED,
     ["OSError: [Errno 28] No space left on device: '/root/.triton/cache/7f3a/kernel.cubin'", LAUNCH], ["max_total_num_tokens="]),
    ("hybrid_state", "0.5.14", KILLED, [LAUNCH], ["#tokens"]),
    ("watchdog:5", "0.5.12.post1", KILLED,
     ["TP5 Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", RUNNING], [READY, "Prefill batch, #new-seq: 2"]),
    ("host_oom:2", "0.5.12.post1", 1,
     ["RuntimeError: Rank 2 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause "
      "is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."], ["Scheduler hit"]),
    ("segfault:1", "0.5.12.post1", 1,
     ["Fatal Python error: Segmentation fault",
      "RuntimeError: Rank 1 scheduler died during initialization (exit code: -11). If exit code is -9 (SIGKILL), a common cause "
      "is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."], ["Scheduler hit"]),
    ("abort:1", "0.5.9", 1,
     ["Fatal Python error: Aborted", "Rank 1 scheduler is dead. Please check if there are relevant logs.", "Exit code: -6"],
     ["Scheduler hit"]),
    ("exit:7", "0.5.12.post1", 7, ["TP0 Init torch distributed begin."], ["Scheduler hit", LAUNCH, READY]),
    ("missing_kernel", "0.5.12.post1", 1, ["ImportError: ", "Could not load any common_ops library!"], ["server_args="]),
    ("no_device", "0.5.9", 1, ["RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA) is available."], ["server_args="]),
    ("no_device", "0.5.23", 1,
     ["RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available."], ["server_args="]),
    ("permission", "0.5.12.post1", 1, ["Traceback (most recent call last):"], ["server_args="]),
    ("bad_arguments", "0.5.12.post1", 2,
     ["launch_server.py: error: unrecognized arguments: --no-such-flag"], ["Traceback", "server_args="]),
    ("bad_flag", "0.5.18", 1,
     ['  File "sglang/srt/server_args.py", line 7, in check_server_args', "AssertionError: base_gpu_id must be non-negative"],
     ["server_args=", "Load weight"]),
    ("bad_flag", "0.5.19", 1,
     ['  File "sglang/srt/arg_groups/validation_hook.py", line 7, in check_server_args', "AssertionError: base_gpu_id must be "
         "non-negative"],
     ["server_args="]),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "version", "status", "said", "unsaid"), FATAL, ids=[f"{row[0]}-{row[1]}" for row in FATAL])
def test_a_fault_ends_the_server_as_in_the_field(boot, fault, version, status, said, unsaid):
    speculation = [] if version in ("0.5.9", "0.5.10.post1") else DFLASH
    flags = ["--tp", "8", "--max-running-requests", "8", "--mem-fraction-static", "0.92", "--context-length", "200000", *speculation]
    server = boot(version, "kimi", flags, {**KIMI_REAL, "STANDIN_FAULT": fault})
    assert server.ends() == status
    for line in said:
        assert line in server.records
    for text in unsaid:
        assert not [line for line in server.records if text in line]


def test_weights_above_the_fraction_are_refused_with_the_least_fraction(boot):
    env = {"STANDIN_FREE_GIB": "94", "STANDIN_WEIGHTS_GIB": "87", "STANDIN_DRAFT_WEIGHTS_GIB": "1.5"}
    server = boot("0.5.14", "kimi", ["--tp", "2", *DFLASH, "--mem-fraction-static", "0.92"], env)
    assert server.ends() == KILLED
    assert (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.92. "
        "Raise --mem-fraction-static above 0.942 (minimum viable = 1 - available/pre = 0.9415). "  # 88.5 / 94
        "If using speculative decoding, draft weights are now counted."
    ) in server.records
    assert "#tokens" not in server.text


def test_the_same_weights_start_where_the_draft_is_not_counted(boot):
    env = {"STANDIN_FREE_GIB": "94", "STANDIN_WEIGHTS_GIB": "86", "STANDIN_DRAFT_WEIGHTS_GIB": "1.5"}
    flags = ["--tp", "2", *DFLASH, "--mem-fraction-static", "0.92"]
    boot("0.5.13.post1", "kimi", flags, env).wait_for(READY)
    assert boot("0.5.14", "kimi", flags, env).ends() == KILLED


def test_states_that_do_not_fit_are_refused_with_what_they_need(boot):
    env = {"STANDIN_FREE_GIB": "80", "STANDIN_WEIGHTS_GIB": "60", "STANDIN_FAULT": "hybrid_state"}
    server = boot("0.5.14", "llama", ["--mem-fraction-static", "0.76"], env)
    assert server.ends() == KILLED
    # 20 - 80 x 0.24 = 0.8 GiB are left, all of which one slot of states takes: 819.2 MiB
    assert (
        "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=0 "
        "(total_rest_memory=0.80 GB, mamba_cache_per_req=819.20 MB). Try: (1) reduce --max-running-requests, "
        "(2) increase --mem-fraction-static, (3) reduce --speculative-num-draft-tokens, or (4) use GPUs with more memory."
    ) in server.records


@pytest.mark.parametrize(("fault", "function"), [("oom_prefill:1", "forward_extend"), ("oom_decode:1", "forward_decode")])
def test_a_clients_request_can_be_the_last(boot, fault, function):
    server = boot("0.5.12.post1", "llama", ["--tp", "2"], {**SMALL, "STANDIN_FAULT": fault})
    server.wait_for(READY)
    assert server.ask("/health") == (200, "")
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        server.ask("/generate", {"text": "a few words", "sampling_params": {"max_new_tokens": 2}})
    assert server.ends() == KILLED
    after = server.text[server.text.index(READY) :]
    assert re.search(rf"TP1\] Scheduler hit an exception: .*\n(?:  .*\n)*  .* in {function}\ntorch\.OutOfMemoryError: CUDA", after)
    assert RUNNING in server.records


def test_a_request_taken_back_is_no_failure(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "2"], {**SMALL, "STANDIN_FAULT": "retraction"})
    server.wait_for(READY)
    assert "Retract requests" not in server.text
    assert server.ask("/generate", {"text": "a few words", "sampling_params": {"max_new_tokens": 2}})[0] == 200
    assert "TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, " in server.text
    assert server.ask("/health") == (200, "")


MESSAGES = [
    ("foreign_process:3", r"of which 612\.81 MiB is free\. Process 4117 has 28\.50 GiB memory in use\. Including non-PyTorch memory, "
        r"this process"),
    ("permission", r"PermissionError: \[Errno 13\] Permission denied: '.*/kimi/config\.json'"),
    ("oom_capture:2", r"torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate 970\.00 MiB\. GPU 2 has a total "),
    ("oom_capture:2", r"Exception: Capture cuda graph failed: CUDA out of memory\. "),
    ("oom_warmup", r"torch\.OutOfMemoryError: CUDA out of memory\. .* GPU 0 "),
    ("unbalanced:1", r"RuntimeError: The memory capacity is unbalanced\. Some GPUs may be occupied by other processes\. "
     r"pre_model_load_memory=74\.98\d*, local_gpu_memory=93\.7274, local_gpu_memory \* 0\.9=84\.35"),
    ("missing_file", r'FileNotFoundError: No such file or directory: ".*/kimi/model-00001-of-000064\.safetensors"'),
    ("nccl_timeout", r"\[Rank 3\] Watchdog caught collective operation timeout: WorkNCCL\("),
    ("nccl_timeout", r"Rank 3 scheduler died during initialization \(exit code: -6\)"),
    ("port_in_use", r"ERROR:    \[Errno 98\] error while attempting to bind on address \('127\.0\.0\.1', \d+\): address already in use"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "pattern"), MESSAGES)
def test_the_message_of_a_fault_names_the_rank_and_the_cause(boot, fault, pattern):
    server = boot("0.5.12.post1", "kimi", ["--tp", "4"], {**KIMI_REAL, "STANDIN_FAULT": fault})
    server.ends()
    assert re.search(pattern, server.text)


def test_only_the_first_line_of_an_exception_has_a_prefix(boot):
    server = boot("0.5.12.post1", "kimi", ["--tp", "4"], {**KIMI_REAL, "STANDIN_FAULT": "oom_capture:1"})
    server.ends()
    lines = server.text.splitlines()
    first = next(index for index, line in enumerate(lines) if "Scheduler hit an exception" in line)
    assert re.search(r" TP1\] Scheduler hit an exception: Traceback \(most recent call last\):$", lines[first])
    last = next(index for index, line in enumerate(lines) if "Huge performance loss" in line)
    assert last > first
    assert not [line for line in lines[first + 1 : last + 1] if re.match(r"\[\d{4}-", line)]


def test_nothing_is_left_of_a_server_that_died(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "4"], {**SMALL, "STANDIN_FAULT": "oom_warmup", "STANDIN_STEP_SECONDS": "0.05"})
    server.wait_for("Init torch distributed begin.")
    ranks = server.children()
    assert len(ranks) == 4
    assert server.ends() == KILLED
    end = time.monotonic() + LIMIT
    while [pid for pid in ranks if Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()]:
        assert time.monotonic() < end, "ranks outlive the server"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("phase", "last", "unsaid"),
    [
        ("init", "TP1 Init torch distributed begin.", "TP1 Init torch distributed ends."),
        ("weights", "TP1 Load weight begin. avail mem=20.00 GB", "TP1 Load weight end."),
        ("pool", "TP1 Load weight end. elapsed=T s, type=LlamaForCausalLM, avail mem=3.50 GB, mem usage=16.50 GB.", "#tokens"),
        ("capture", "TP1 Capture cuda graph begin. This can take up to several minutes. avail mem=3.00 GB", "TP1 Capture cuda graph end"),
    ],
)
def test_a_hang_leaves_every_rank_silent_in_its_phase(boot, phase, last, unsaid):
    flags = ["--tp", "2", "--max-running-requests", "8", "--max-total-tokens", "8191"]
    server = boot("0.5.12.post1", "llama", flags, {**SMALL, "STANDIN_FAULT": f"hang:{phase}"})
    server.wait_for(last.partition(". elapsed")[0][4:])
    time.sleep(0.5)  # many steps: whatever was to come would have come
    assert [line for line in server.records if line.startswith("TP1 ")][-1] == last
    assert unsaid not in server.text
    assert server.process.poll() is None
    assert len(server.children()) == 2
    assert server.stop() == -signal.SIGTERM


def test_a_lost_rank_reports_no_pool_and_holds_up_the_others(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "4"], {**SMALL, "STANDIN_FAULT": "lost_rank:2"})
    server.wait_for("Capture cuda graph begin")
    time.sleep(0.5)  # many steps, as above
    told = {rank: [line[4:] for line in server.records if line.startswith(f"{rank} ")] for rank in ("TP0", "TP1", "TP2", "TP3")}
    assert [rank for rank, lines in told.items() if any("#tokens" in line for line in lines)] == ["TP0", "TP1", "TP3"]
    assert told["TP2"][-1].startswith("Load weight end. ")
    assert "max_total_num_tokens=" not in server.text
    assert len(server.children()) == 4


def test_one_poor_rank_makes_every_pool_smaller(boot):
    server = boot("0.5.12.post1", "kimi", START2, {**KIMI, "STANDIN_FAULT": "short_pool:1"})
    server.wait_for(READY)
    # P and A are both 1 GiB less: int((20.328985 - 92.7274 * 0.08) * 2**30) // 77184
    assert set(re.findall(r"#tokens: (\d+)", server.text)) == {"179607"}
    assert "TP7] Load weight begin. avail mem=92.73 GB" in server.text
    assert "TP6] Load weight begin. avail mem=93.73 GB" in server.text


def test_free_memory_may_differ_by_rank(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "2"], {**gib(78.5, 15.1), "STANDIN_FREE_GIB": "79.5,78.5"})
    server.wait_for(READY)
    assert "TP0] Load weight begin. avail mem=79.50 GB" in server.text
    assert set(re.findall(r"#tokens: (\d+)", server.text)) == {"884408"}


def test_a_slow_load_is_slow_and_healthy(boot):
    server = boot("0.5.12.post1", "llama", [], {**SMALL, "STANDIN_FAULT": "slow_load:0.6"})
    server.wait_for("Load weight begin")
    time.sleep(0.3)
    assert "Load weight end" not in server.text
    server.wait_for(READY)


def test_a_noisy_boot_is_healthy(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "2"], {**SMALL, "STANDIN_FAULT": "benign_noise"})
    server.wait_for(READY)
    for text in ("Traceback (most recent call last):", "Decode out of memory happened", "Unexpected error during package walk"):
        assert text in server.text
    assert server.ask("/health")[0] == 200


def test_the_fault_file_wins_while_it_has_text(boot, tmp_path):
    wish = tmp_path / "fault"
    env = {**SMALL, "STANDIN_FAULT": "oom_capture", "STANDIN_FAULT_FILE": str(wish)}
    assert boot("0.5.12.post1", "llama", [], env).ends() == KILLED
    wish.write_text("none\n", encoding="ascii")
    boot("0.5.12.post1", "llama", [], env).wait_for(READY)
    wish.write_text("\n", encoding="ascii")
    assert boot("0.5.12.post1", "llama", [], env).ends() == KILLED


@pytest.mark.parametrize(
    ("flags", "env", "status", "message"),
    [
        (["--no-such-flag"], {}, 2, "launch_server.py: error: unrecognized arguments: --no-such-flag"),
        (["--mem-fraction-static", "much"], {}, 2, "argument --mem-fraction-static: invalid float value: 'much'"),
        (["--speculative-algorithm", "DDTREE"], {}, 2, "argument --speculative-algorithm: invalid choice: 'DDTREE'"),
        (["--model-path", "/nowhere"], {}, 1, "OSError: /nowhere does not appear to have a file named config.json."),
        (["--model-path", "window"], {}, 1, "the stand-in knows MLA, DSA and GQA models only, this one has sliding_attention"),
        (["--speculative-algorithm", "DFLASH"], {}, 1, "speculative decoding needs --speculative-draft-model-path"),
        ([], {"STANDIN_FAULT": "flood"}, 2, "standin: STANDIN_FAULT asks for 'flood'; known are none, benign_noise,"),
        ([], {"STANDIN_FAULT": "lost_rank:1"}, 2, "standin: STANDIN_FAULT gives 'lost_rank' the argument '1'; it takes 0"),
        ([], {"STANDIN_FAULT": "slow_load"}, 2, "standin: STANDIN_FAULT gives 'slow_load' the argument ''; it takes a number of seconds"),
        ([], {"STANDIN_FAULT": "oom_draft_pool"}, 2, "standin: STANDIN_FAULT asks for 'oom_draft_pool', but this server has no draft"),
        ([], {"STANDIN_FAULT": "hybrid_state"}, 2, "standin: STANDIN_FAULT asks for 'hybrid_state', but this release has no words for it"),
        ([], {"STANDIN_FAULT": "exit:soon"}, 2, "standin: STANDIN_FAULT gives 'exit' the argument 'soon'; it takes a number of status"),
        ([], {"STANDIN_FREE_GIB": "lots"}, 2, "standin: STANDIN_FREE_GIB is 'lots': a number is needed"),
        ([], {"STANDIN_FREE_GIB": "90,91"}, 2, "standin: STANDIN_FREE_GIB lists 2 figures for 1 ranks: give one or all"),
    ],
)
def test_what_cannot_be_started_says_why(boot, flags, env, status, message):
    server = boot("0.5.12.post1", "llama", flags, {**SMALL, **env})
    assert server.ends() == status
    assert message in server.text


def test_dflash_came_with_0_5_11(boot):
    server = boot("0.5.10.post1", "kimi", DFLASH, KIMI)
    assert server.ends() == 2
    assert "argument --speculative-algorithm: invalid choice: 'DFLASH'" in server.text


def test_a_request_is_refused_exactly_where_sglang_refuses_it(boot):
    server = boot("0.5.12.post1", "llama", ["--max-total-tokens", "1000", "--context-length", "3000"], SMALL)
    server.wait_for(READY)
    status, answer = server.ask("/generate", {"text": "w " * 993, "sampling_params": {"max_new_tokens": 4}})
    assert status == 200
    assert json.loads(answer)["meta_info"]["prompt_tokens"] == 993
    assert json.loads(answer)["meta_info"]["completion_tokens"] == 4
    assert server.ask("/generate", {"text": "w " * 994}) == (
        400,
        '{"error": {"message": "Input length (994 tokens) exceeds the maximum allowed length (994 tokens). '
        'Use a shorter input or enable --allow-auto-truncate."}}',
    )
    assert server.ask("/generate", {"input_ids": [1] * 3000}) == (
        400,
        '{"error": {"message": "The input (3000 tokens) is longer than the model\'s context length (3000 tokens)."}}',
    )
    long = {"model": "m", "messages": [{"role": "user", "content": "w " * 994}], "max_tokens": 2}
    status, answer = server.ask("/v1/chat/completions", long)
    assert (status, json.loads(answer)["type"]) == (400, "BadRequestError")
    status, answer = server.ask("/v1/completions", {"prompt": "one two three", "max_tokens": 2})
    assert (status, json.loads(answer)["usage"]) == (200, {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5})


def test_generation_is_cut_to_what_the_pool_leaves(boot):
    server = boot("0.5.12.post1", "llama", ["--max-total-tokens", "1000", "--context-length", "3000"], SMALL)
    server.wait_for(READY)
    status, answer = server.ask("/generate", {"text": "w " * 900, "sampling_params": {"max_new_tokens": 500}})
    assert status == 200
    assert json.loads(answer)["meta_info"]["completion_tokens"] == 98  # 1000 - 1 - 900 - 1


def test_a_stream_comes_token_by_token_and_is_counted_while_it_lasts(boot):
    server = boot("0.5.23", "llama", ["--max-total-tokens", "1000", "--context-length", "3000"], {**SMALL, "STANDIN_TOKEN_SECONDS": "0.1"})
    server.wait_for(READY)

    def running() -> int:
        return json.loads(server.ask("/v1/loads")[1])["loads"][0]["num_running_reqs"]

    body = {"text": "two words", "stream": True, "sampling_params": {"max_new_tokens": 6}}
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/generate", json.dumps(body).encode())
    assert running() == 0
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        events = [answer.readline()]
        assert running() == 1
        events += [line for line in answer if line.strip()]
    assert running() == 0
    *tokens, done = [line.decode().strip().removeprefix("data: ") for line in events]
    assert done == "[DONE]"
    assert [json.loads(event)["meta_info"]["completion_tokens"] for event in tokens] == [1, 2, 3, 4, 5, 6]
    assert [json.loads(event)["meta_info"]["finish_reason"] for event in tokens[-2:]] == [None, {"type": "length", "length": 6}]
    # refused, a stream has status 200 all the same
    status, text = server.ask("/generate", {"text": "w " * 994, "stream": True})
    assert (status, text.count("Input length (994 tokens) exceeds"), text.strip().splitlines()[-1]) == (200, 1, "data: [DONE]")
    status, text = server.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "stream": True})
    assert (status, text.count('"delta"'), text.count('"finish_reason": "length"')) == (200, 2, 1)


def test_information_endpoints(boot, models):
    flags = [*START2, "--context-length", "200000", "--served-model-name", "k26", "--enable-metrics"]
    server = boot("0.5.12.post1", "kimi", flags, KIMI_REAL)
    server.wait_for(READY)
    info = json.loads(server.ask("/server_info")[1])
    assert (info["version"], info["tp_size"], info["status"]) == ("0.5.12.post1", 8, "ready")
    assert (info["max_total_num_tokens"], info["max_req_input_len"]) == (192406, 192400)
    assert info["internal_states"] == [
        {
            "memory_usage": {"weight": 72.4, "kvcache": 12.59, "token_capacity": 192406, "graph": 0.8},
            "effective_max_running_requests_per_dp": 8,
        }
    ]
    assert json.loads(server.ask("/get_server_info")[1]) == info
    assert "Endpoint '/get_server_info' is deprecated" in server.text
    card = json.loads(server.ask("/v1/models")[1])["data"][0]
    assert (card["id"], card["max_model_len"]) == ("k26", 200000)
    told = json.loads(server.ask("/model_info")[1])
    assert (told["model_path"], told["architectures"]) == (str(models / "kimi"), ["KimiK25ForConditionalGeneration"])
    assert 'sglang:max_total_num_tokens{model_name="k26",tp_rank="0",pp_rank="0"} 192406.0' in server.ask("/metrics")[1]
    assert server.ask("/get_load")[0] == 404


def test_the_api_key_guards_all_but_health(boot):
    server = boot("0.5.23", "llama", ["--api-key", "opensesame"], SMALL)
    server.wait_for(READY)
    assert server.ask("/server_info") == (401, '{"error": "Unauthorized"}')
    assert server.ask("/server_info", key="opensesam")[0] == 401
    assert server.ask("/server_info", key="opensesame")[0] == 200
    assert server.ask("/health") == (200, "")
    assert server.ask("/metrics")[0] == 404


def test_health_is_503_until_the_warm_up_is_over(boot):
    server = boot("0.5.12.post1", "llama", [], {**SMALL, "STANDIN_FAULT": "hang:warmup"})
    server.wait_for('"GET /model_info HTTP/1.1" 200 OK')
    assert server.ask("/health") == (503, "")
    assert server.ask("/health_generate") == (503, "")
    assert READY not in server.text
    healthy = boot("0.5.12.post1", "llama", [], SMALL)
    healthy.wait_for(READY)
    assert healthy.ask("/health") == (200, "")
    assert healthy.ask("/health_generate") == (200, "")


@pytest.mark.parametrize(("version", "status"), [("0.5.12.post1", KILLED), ("0.5.19", KILLED), ("0.5.20", 0), ("0.5.23", 0)])
def test_sigterm_ends_it_as_the_version_does(boot, version, status):
    server = boot(version, "llama", ["--tp", "2"], SMALL)
    server.wait_for(READY)
    assert server.stop() == status
    assert "SIGTERM received. signum=None frame=None. Draining requests and shutting down..." in server.records
    assert "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[]." in server.records
    assert ("INFO:     Application shutdown complete." in server.records) == (status == 0)


def test_a_rank_that_is_killed_takes_the_server_along(boot):
    server = boot("0.5.12.post1", "llama", ["--tp", "2"], SMALL)
    server.wait_for(READY)
    rank = server.children()[1]
    os.kill(rank, signal.SIGKILL)
    assert server.ends() == KILLED
    assert f"Subprocess scheduler_1 (pid={rank}) crashed with exit code -9. Triggering SIGQUIT for cleanup..." in server.records


def test_a_taken_port_is_found_only_after_the_weights(boot):
    first = boot("0.5.12.post1", "llama", [], SMALL)
    first.wait_for(READY)
    second = boot("0.5.12.post1", "llama", ["--port", str(first.port)], SMALL)
    assert second.ends() == 1
    assert "max_total_num_tokens=" in second.text
    assert f"[Errno 98] error while attempting to bind on address ('127.0.0.1', {first.port}): address already in use" in second.text


def test_the_wheel_is_the_same_every_time_and_pip_takes_it(tmp_path):
    wheels = []
    for place in ("one", "two"):
        built = subprocess.run([sys.executable, BUILD, "0.5.12.post1", str(tmp_path / place)], check=True, capture_output=True, text=True)
        wheels.append(Path(built.stdout.strip()))
    assert wheels[0].name == "sglang-0.5.12.post1+standin-py3-none-any.whl"
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-compile", "--find-links", str(tmp_path / "one")]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), "sglang==0.5.12.post1"], check=True, capture_output=True)
    asked = "import sglang, importlib.metadata as m; print(sglang.__version__, m.version('sglang'))"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    said = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True, env=environ)
    assert said.stdout == "0.5.12.post1 0.5.12.post1+standin\n"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.5.8", "build_wheel.py: version 0.5.8 is older than 0.5.9, the first start that is imitated"),
        ("latest", "build_wheel.py: version 'latest' is not of the form 0.5.12 or 0.5.12.post1"),
    ],
)
def test_a_version_that_is_not_imitated_is_refused(tmp_path, version, message):
    built = subprocess.run([sys.executable, BUILD, version, str(tmp_path)], check=False, capture_output=True, text=True)
    assert (built.returncode, built.stderr.strip()) == (2, message)
