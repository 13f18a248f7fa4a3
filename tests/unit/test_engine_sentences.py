# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SGLang 0.5.23 itself printed when it was made to fail under systemd, on the CPU and with tiny models, and what is read from it.

Each log is what a journal held of one start, shortened to what matters: the milestones, of a traceback its deepest frame and its last
words, and what the service manager said. Before the bar stands who wrote the line.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._allocation import Allocation, BootFolder, Entry
from ansible_collections.inferops.sglang.plugins.module_utils._boot_watch import Look, explain
from ansible_collections.inferops.sglang.plugins.module_utils._parallelism import Parallelism

PIDS = {"main": 96, "rank": 130, "TP0": 1044, "TP1": 1045, "TP2": 1046}
SITE = "/opt/sglang/lib/python3.11/site-packages"

ONE = """
main| [2026-11-29 22:49:56] server_args={'model_path': '/srv/models/mla', 'tp_size': 1, 'mem_fraction_static': 0.05}
rank| [2026-11-29 22:50:18] Init parallel begin.
rank| [2026-11-29 22:50:21] Init parallel ends. elapsed=3.29 s
"""
LOADING = (
    ONE
    + """
rank| [2026-11-29 22:50:22] Load weight begin. avail mem=21.02 GB
"""
)
LOADED = (
    LOADING
    + """
rank| [2026-11-29 22:50:23] Load weight end. elapsed=1.00 s, type=DeepseekV3ForCausalLM, avail mem=20.86 GB, mem usage=0.16 GB.
"""
)
SUMMED = (
    LOADED
    + """
rank| [2026-11-29 22:50:24] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 13599, KV size: 0.89 GB
rank| [2026-11-29 22:50:24] Memory pool end. avail mem=19.76 GB
rank| [2026-11-29 22:50:24] max_total_num_tokens=13599, chunked_prefill_size=4096, max_running_requests=8, context_len=4096, \
available_cpu_mem=19.76 GB
main| [2026-11-29 22:50:24] INFO:     Started server process [96]
main| [2026-11-29 22:50:24] INFO:     Waiting for application startup.
main| [2026-11-29 22:50:24] INFO:     Application startup complete.
"""
)
TWO = """
main| [2026-11-29 23:20:53] server_args={'model_path': '/srv/models/gqa', 'tp_size': 2, 'mem_fraction_static': 0.05}
TP1| [2026-11-29 23:21:50 TP1] Init parallel begin.
TP0| [2026-11-29 23:21:50 TP0] Init parallel begin.
"""
TWO_SUMMED = (
    TWO
    + """
TP0| [2026-11-29 23:21:53 TP0] Load weight begin. avail mem=19.41 GB
TP1| [2026-11-29 23:21:53 TP1] Load weight begin. avail mem=19.36 GB
TP1| [2026-11-29 23:21:54 TP1] Load weight end. elapsed=0.45 s, type=Qwen3ForCausalLM, avail mem=19.31 GB, mem usage=0.05 GB.
TP0| [2026-11-29 23:21:54 TP0] Load weight end. elapsed=0.91 s, type=Qwen3ForCausalLM, avail mem=19.29 GB, mem usage=0.12 GB.
TP0| [2026-11-29 23:21:58 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 16384, K size: 0.25 GB, V size: 0.25 GB
TP0| [2026-11-29 23:21:58 TP0] Memory pool end. avail mem=18.36 GB
TP0| [2026-11-29 23:21:58 TP0] max_total_num_tokens=16384, chunked_prefill_size=4096, max_running_requests=8, context_len=4096, \
available_cpu_mem=18.37 GB
TP1| [2026-11-29 23:21:59 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 16384, K size: 0.25 GB, V size: 0.25 GB
TP1| [2026-11-29 23:21:59 TP1] Memory pool end. avail mem=18.25 GB
"""
)
KILLED = """
main| [2026-11-29 22:50:23] Received sigquit from a child process. It usually means the child failed.
main| [2026-11-29 22:50:23] kill_process_tree called: parent_pid=96, include_parent=True, pid=96
systemd| sglang.service: Main process exited, code=killed, status=9/KILL
systemd| sglang.service: Failed with result 'signal'.
"""
EXITED = """
systemd| sglang.service: Main process exited, code=exited, status=1/FAILURE
systemd| sglang.service: Failed with result 'exit-code'.
"""
USAGE = """
systemd| sglang.service: Main process exited, code=exited, status=2/INVALIDARGUMENT
systemd| sglang.service: Failed with result 'exit-code'.
"""


def raised(path: str, words: str, rank: str = "") -> str:
    """A scheduler's announced end: the deepest frame and the last words."""
    writer, label = (rank, f" {rank}") if rank else ("rank", "")
    return (
        f"{writer}| [2026-11-29 22:50:23{label}] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'{writer}|   File "{SITE}/{path}", line 3050, in configure\n{writer}|     raise ValueError(\n{writer}| {words}\n'
    )


def uncaught(path: str, words: str) -> str:
    """The end of the main process before it has ranks."""
    frame = f'main|   File "{SITE}/{path}", line 442, in load\nmain|     raise OSError(\n'
    return f"main| Traceback (most recent call last):\n{frame}main| {words}\n"


class End(NamedTuple):
    """What was done to the server, what its start logged, and what is to be read from that."""

    provoked: str
    kind: str
    rank: Optional[int]
    word: str
    log: str
    advice: str = "other"
    minimum: Optional[float] = None


ENDS = [
    End(
        "a share of memory below the weights", "not_enough_memory", 0, "minimum viable", LOADED + raised(
            "sglang/srt/mem_cache/kv_cache_configurator.py",
            "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.001. Raise "
            "--mem-fraction-static above 0.010 (minimum viable = 1 - available/pre = 0.0091). If using speculative decoding, "
            "draft weights are now counted.",
        ) + KILLED, "raise", 0.0091,
    ),
    End(
        "a model directory that is not there", "missing_file", None, "/srv/models/absent", uncaught(
            "huggingface_hub/utils/_validators.py",
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
            "'/srv/models/absent'. Use `repo_type` argument if needed.",
        ) + "main| The above exception was the direct cause of the following exception:\n" + uncaught(
            "transformers/utils/hub.py",
            "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/srv/models/absent'. Use `repo_type` argument "
            "if needed.",
        ) + EXITED,
    ),
    End(
        "a directory the service's user cannot read", "missing_file", None, "/srv/models/closed", uncaught(
            "transformers/models/auto/configuration_auto.py",
            "ValueError: Unrecognized model in /srv/models/closed. Should have a `model_type` key in its config.json.",
        ) + EXITED,
    ),
    End(
        "an index that names a shard that is not there", "missing_file", 0, "model-00002-of-00002", LOADING + raised(
            "sglang/srt/model_loader/weight_utils.py",
            "RuntimeError: model.safetensors.index.json references 1 shard file(s) missing from /srv/models/shard (incomplete download?): "
            "['model-00002-of-00002.safetensors']",
        ) + KILLED,
    ),
    End(
        "no weights", "missing_file", 0, "/srv/models/noweights", LOADING + raised(
            "sglang/srt/model_loader/loader.py", "RuntimeError: Cannot find any model weights with `/srv/models/noweights`",
        ) + KILLED,
    ),
    End(
        "weights cut short", "damaged_file", 0, "incomplete metadata", LOADING + raised(
            "sglang/srt/model_loader/weight_utils.py",
            "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
        ) + KILLED,
    ),
    End(
        "a config.json cut short", "damaged_file", None, "/srv/models/mla/config.json", uncaught(
            "json/decoder.py", "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 20 (char 19)",
        ) + "main| During handling of the above exception, another exception occurred:\n" + uncaught(
            "transformers/configuration_utils.py",
            "OSError: It looks like the config file at '/srv/models/mla/config.json' is not a valid JSON file.",
        ) + EXITED,
    ),
    End(
        "an architecture that nobody knows", "unsupported_model", 0, "MysteryForCausalLM", ONE + raised(
            "sglang/srt/model_loader/utils.py",
            "ValueError: Cannot find model module. 'MysteryForCausalLM' is not a registered model in the Transformers library (only "
            "relevant if the model is meant to be in Transformers) and 'AutoModel' is not present in the model config's 'auto_map' "
            "(relevant if the model is custom).",
        ) + KILLED,
    ),
    End(
        "a draft of other sizes than its config.json says", "checkpoint_mismatch", 0, "shape mismatch", LOADED + raised(
            "sglang/srt/models/dflash.py",
            "ValueError: DFLASH fc.weight shape mismatch. This usually means the draft checkpoint's number of context features (K) does "
            "not match this config. Expected fc.weight.shape=(64, 192) (num_context_features=3, hidden_size=64), but got (128, 384) for "
            "weight 'fc.weight'.",
        ) + "rank| \rMulti-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]\n" + KILLED,
    ),
    End(
        "three ranks for eight KV heads", "checkpoint_mismatch", 2, "exceeds dimension size",
        TWO.replace("'tp_size': 2", "'tp_size': 3") + "TP2| [2026-11-29 22:54:47 TP2] Load weight begin. avail mem=19.48 GB\n"
        + raised("sglang/srt/layers/linear.py", "RuntimeError: start (768) + length (384) exceeds dimension size (1024).", "TP2") + KILLED,
    ),
    End(
        "an unknown flag", "bad_arguments", None, "--no-such-flag",
        "main| sglang serve: error: unrecognized arguments: --no-such-flag 1" + USAGE,
    ),
    End(
        "a word for a number", "bad_arguments", None, "'two'",
        "main| sglang serve: error: argument --tp-size/--tensor-parallel-size: invalid int value: 'two'" + USAGE,
    ),
    End(
        "a type of KV cache that does not exist", "bad_arguments", None, "'fp3'",
        "main| sglang serve: error: argument --kv-cache-dtype: invalid choice: 'fp3' (choose from 'auto', 'fp8_e5m2', 'fp8_e4m3')" + USAGE,
    ),
    End(
        "a type of KV cache that the device does not have", "bad_arguments", 0, "FP8", LOADED + raised(
            "sglang/srt/mem_cache/kv_cache_configurator.py", "ValueError: CPU FP8 KV cache is only supported for MHA.",
        ) + KILLED,
    ),
    End(
        "speculation without a draft", "bad_arguments", None, "--speculative-draft-model-path", uncaught(
            "sglang/srt/arg_groups/speculative_hook.py",
            "ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path.",
        ) + EXITED,
    ),
    End(
        "a context longer than the model's", "bad_arguments", None, "(262144)", uncaught(
            "sglang/srt/configs/model_config.py",
            "ValueError: Warning: User-specified context_length (999999) is greater than the derived context_length (262144). This may "
            "lead to incorrect model outputs or CUDA errors.",
        ) + EXITED,
    ),
    End(
        "an attention backend that is not installed", "missing_kernel", None, "flashinfer_python", uncaught(
            "importlib/metadata/__init__.py",
            "importlib.metadata.PackageNotFoundError: No package metadata was found for flashinfer_python",
        ) + "main| During handling of the above exception, another exception occurred:\n" + uncaught(
            "sglang/srt/utils/common.py",
            "Exception: flashinfer_python with minimum required version 0.7.2 is not installed. Please uninstall the old version and "
            "reinstall the latest version by following the instructions.",
        ) + EXITED,
    ),
    End(
        "two ranks on a host without a compiler", "missing_compiler", 0, "g++", TWO_SUMMED + raised(
            "torch/_inductor/cpp_builder.py",
            "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: "
            "(None, 'g++')", "TP0",
        ) + KILLED,
    ),
    End(
        "another server on the port", "port_in_use", None, "31999", SUMMED
        + "main| [2026-11-29 22:50:24] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31999): "
        "address already in use\nmain| [2026-11-29 22:50:24] INFO:     Waiting for application shutdown.",
    ),
    End(
        "a port that its user must not open", "permission", None, "81", SUMMED
        + "main| [2026-11-29 22:50:24] ERROR:    [Errno 13] error while attempting to bind on address ('127.0.0.1', 81): "
        "permission denied\nmain| [2026-11-29 22:50:24] INFO:     Waiting for application shutdown.",
    ),
    End(
        "another program on the port where ranks meet", "port_in_use", 0, "EADDRINUSE", ONE + raised(
            "torch/distributed/rendezvous.py",
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 31999, "
            "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        ) + KILLED,
    ),
    End(
        "a rank killed while it starts", "child_died", 1, "exit code: -9", TWO + uncaught(
            "sglang/srt/entrypoints/engine.py",
            "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is "
            "the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
        ) + EXITED,
    ),
    End(
        "the kernel's OOM killer while the pool is filled", "child_died", 0, "exit code: -9", LOADED + uncaught(
            "sglang/srt/entrypoints/engine.py",
            "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is "
            "the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
        ) + EXITED,
    ),
    End(
        "a rank killed while it serves", "child_died", 1, "Connection reset by peer",
        TWO_SUMMED + "main| [2026-11-29 23:22:15] The server is fired up and ready to roll!\n" + raised(
            "torch/distributed/distributed_c10d.py",
            "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:17075: Connection "
            "reset by peer. This is typically caused by a remote worker hanging or bugs in the application.", "TP0",
        ) + "main| [2026-11-29 23:22:47] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n" + KILLED,
    ),
    End(
        "the main process killed while a rank loads", "killed", None, "status=9/KILL", LOADED + """
systemd| sglang.service: Sent signal SIGKILL to main process 96 (python) on client request.
systemd| sglang.service: Main process exited, code=killed, status=9/KILL
systemd| sglang.service: Failed with result 'signal'.
""",
    ),
    End(
        "a program that is not there", "missing_file", None, "/opt/nothing/bin/python", """
systemd| sglang.service: Failed to locate executable /opt/nothing/bin/python: No such file or directory
systemd| sglang.service: Failed at step EXEC spawning /opt/nothing/bin/python: No such file or directory
systemd| sglang.service: Main process exited, code=exited, status=203/EXEC
systemd| sglang.service: Failed with result 'exit-code'.
""",
    ),
    End(
        "a program that may not be run", "permission", None, "/opt/sglang/bin/python", """
systemd| sglang.service: Failed to locate executable /opt/sglang/bin/python: Permission denied
systemd| sglang.service: Failed at step EXEC spawning /opt/sglang/bin/python: Permission denied
systemd| sglang.service: Main process exited, code=exited, status=203/EXEC
systemd| sglang.service: Failed with result 'exit-code'.
""",
    ),
]  # fmt: skip


def read(log: str, ended: bool = True) -> Allocation:
    folder = BootFolder()
    for line in log.split("\n"):
        writer, mark, text = line.partition("| ")
        if mark:
            folder.feed(Entry(text, PIDS.get(writer, 1), manager=writer == "systemd"))
    return folder.result(Parallelism(), ended=ended)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.provoked)
def test_an_end_of_the_real_engine_is_told_with_kind_rank_and_advice(end: End) -> None:
    failure = read(end.log).failure
    assert failure is not None
    assert (failure.kind, failure.rank and failure.rank["tp"]) == (end.kind, end.rank)
    assert (failure.advice, failure.minimum_fraction) == (end.advice, end.minimum)
    assert end.word in failure.message


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.provoked)
def test_progress_bars_and_the_words_after_the_cause_are_no_part_of_it(end: End) -> None:
    failure = read(end.log).failure
    assert failure is not None
    assert [word for word in ("Completed", "kill_process_tree", "sigquit") if word in failure.message] == []


@pytest.mark.parametrize("provoked", ["another server on the port", "a port that its user must not open"])
def test_a_server_that_cannot_listen_is_lost_while_it_still_runs(provoked: str) -> None:
    [end] = [end for end in ENDS if end.provoked == provoked]
    allocation = read(end.log, ended=False)
    assert (allocation.phase, allocation.ready, allocation.complete) == ("failed", False, True)


def test_a_stop_in_the_middle_of_a_start_is_no_failure() -> None:
    allocation = read(ONE + """
systemd| Stopping sglang.service...
systemd| sglang.service: Killing process 130 (python) with signal SIGKILL.
systemd| sglang.service: Deactivated successfully.
systemd| Stopped sglang.service.
""")  # fmt: skip
    assert (allocation.failure, allocation.stopped, allocation.ready) == (None, True, False)


def test_what_a_healthy_start_says_of_missing_parts_is_no_failure() -> None:
    words = f"""
main| {SITE}/sglang/srt/layers/quantization/awq/awq.py:53: UserWarning: Only CUDA, HIP and XPU support AWQ currently.
main|   warnings.warn(f"Only CUDA, HIP and XPU support AWQ currently.")
main| [2026-11-29 22:49:56] Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit
rank| [W1129 22:50:18.178979715 socket.cpp:207] [c10d] The hostname of the client socket cannot be retrieved. err=-3
rank| [2026-11-29 22:50:22] Cannot detect CUDA architecture.
rank| [2026-11-29 22:50:22] Ignore import error when loading sglang.srt.models.inkling: No module named 'cutlass'
rank| [2026-11-29 22:50:22] Setup Custom allreduce failed with . To silence this warning, specify --disable-custom-all-reduce explicitly.
"""
    allocation = read(SUMMED + words + "main| [2026-11-29 22:50:26] The server is fired up and ready to roll!")
    assert (allocation.failure, allocation.ready, allocation.complete, allocation.min_tokens) == (None, True, True, 13599)


class Journal:
    """A watch whose journal ends as that of a rank which cannot reach its peers: with the frames of torch's own stack."""

    name = "sglang.service"

    def look(self, final: bool) -> Look:
        raise AssertionError(f"nobody looks again (final={final})")

    def last_lines(self) -> list[str]:
        return [
            "[E1130 00:00:03.084343724 socket.cpp:818] [c10d] The client socket has failed to connect to any network address of "
            "(192.0.2.7, 25118).",
            "Exception raised from run at /__w/pytorch/pytorch/torch/csrc/distributed/c10d/socket.cpp:820 (most recent call first):",
            "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7fb869e20b8d in libc10.so)",
            "frame #43: _start + 0x21 (0x628f41 in sglang::scheduler)",
        ]


def test_the_last_line_in_a_message_is_no_frame_of_a_stack() -> None:
    text = explain(Journal(), "ready", 60, Look(read(ONE, ended=False), None, False))
    assert "network address of (192.0.2.7, 25118)" in text
    assert "frame #" not in text
