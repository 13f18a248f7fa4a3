# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a start: bounded, without secrets, and never in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._evidence import (
    Wish,
    bounded,
    collect,
    masked_environment,
    masked_log,
    masked_unit,
)
from ansible_collections.inferops.sglang.plugins.module_utils._journal import Ended, JournalError
from ansible_collections.inferops.sglang.plugins.plugin_utils._evidence_files import write_evidence

START = "0123456789abcdef0123456789abcdef"
BOUNDS = {
    "short": ([b"one\ntwo\n"], 100, "one\ntwo\n"),
    "nothing": ([], 100, ""),
    "just as long": ([b"a\n" * 10], 20, "a\n" * 10),
    # a quarter from the beginning, the rest from the end, whole lines
    "one block": (
        [b"".join(b"%02d\n" % number for number in range(40))], 40,
        "00\n01\n02\n[... 84 bytes are left out here ...]\n31\n32\n33\n34\n35\n36\n37\n38\n39\n",
    ),
    "many blocks": (
        [b"%02d\n" % number for number in range(40)], 40,
        "00\n01\n02\n[... 84 bytes are left out here ...]\n31\n32\n33\n34\n35\n36\n37\n38\n39\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BOUNDS)
def test_a_journal_keeps_its_beginning_and_its_end(case: str) -> None:
    blocks, most, text = BOUNDS[case]
    assert bounded(blocks, most) == text


MASKED = {
    "flag": (masked_log, "launch_server --api-key abc --port 3", "launch_server --api-key *** --port 3"),
    "flag with a sign": (masked_log, "x --api-key='a b' y", "x --api-key=*** y"),
    "no secret": (masked_log, "--speculative-num-draft-tokens 8 --tokenizer-path /x",
                  "--speculative-num-draft-tokens 8 --tokenizer-path /x"),
    "argument": (masked_log, "ServerArgs(api_key='abc', admin_api_key=None, tp_size=8)",
                 "ServerArgs(api_key='***', admin_api_key=None, tp_size=8)"),
    "JSON": (masked_log, '{"hf_token": "abc", "num_tokens": "5"}', '{"hf_token": "***", "num_tokens": "5"}'),
    "variable": (masked_log, "export HF_TOKEN=hf-1 MAX_TOKENS=5 NCCL_DEBUG=INFO", "export HF_TOKEN=*** MAX_TOKENS=5 NCCL_DEBUG=INFO"),
    "header": (masked_log, "headers: Authorization: Bearer sk-0123456789abc, bearer of news",
               "headers: Authorization: Bearer ***, bearer of news"),
    "token of the hub": (masked_log, "401 for hf_AbCdEfGhIjKlMnOpQrStUv of hf_hub_download",
                         "401 for *** of hf_hub_download"),
    "continued line": (masked_unit, "ExecStart=env \\\n  WANDB_API_KEY=abc x\n", "ExecStart=env \\\n  WANDB_API_KEY=*** x\n"),
    "environment": (masked_environment, "A=1\nHF_TOKEN=hf-1\n# x\n", "A=1\nHF_TOKEN=***\n# x\n"),
    "unit": (masked_unit, 'Environment="HF_TOKEN=hf-1"\nExecStart=x --api-key q\n',
             'Environment="HF_TOKEN=***\nExecStart=x --api-key ***\n'),
}  # fmt: skip


@pytest.mark.parametrize("case", MASKED)
def test_what_is_secret_by_its_name_is_masked(case: str) -> None:
    mask, text, shown = MASKED[case]
    assert mask(text).replace("(not shown)", "***") == shown


def run(argv: Sequence[str]) -> tuple[int, str, str]:
    if argv[0] == "systemctl":
        files = "FragmentPath=/etc/k26.service\nDropInPaths=/etc/k26.d/a.conf"
        return 0, f"Id=k26.service\n{files}\nInvocationID={START}\nLogNamespace=ai\n", ""
    if argv[0] == "nvidia-smi":
        return 9, "NVIDIA-SMI has failed", ""
    raise FileNotFoundError(argv[0])


def read(path: str) -> str:
    texts = {"/etc/k26.service": "[Service]\n", "/etc/k26.d/a.conf": "Nice=1\n", "/proc/meminfo": "MemFree: 1 kB\n"}
    if path not in texts:
        raise PermissionError(13, "Permission denied", path)
    return texts[path]


def test_all_there_is_and_a_note_for_the_rest() -> None:
    asked: list[Sequence[str]] = []

    def stream(argv: Sequence[str], ended: Ended, _verbose: bool) -> Iterator[bytes]:
        asked.append(argv)
        yield b"the end\n"
        ended(0, "")

    found = collect(Wish("k26.service", "", "/etc/k26.env", 4096), run, stream, read)
    assert asked[0][-4:] == ["--namespace=+ai", f"_SYSTEMD_INVOCATION_ID={START}", "+", f"INVOCATION_ID={START}"]
    assert found.files["journal.log"] == "the end\n"
    assert found.files["k26.service"] == "# /etc/k26.service\n[Service]\n\n# /etc/k26.d/a.conf\nNice=1\n"
    assert found.files["gpus.txt"] == "NVIDIA-SMI has failed\nnvidia-smi ended with 9"
    assert found.files["memory.txt"] == "MemFree: 1 kB\n"
    assert found.notes == ["environment.txt: asked for /etc/k26.env, found Permission denied"]


def test_a_journal_that_cannot_be_read_is_a_note() -> None:
    def stream(_argv: Sequence[str], _ended: Ended, _verbose: bool) -> Iterator[bytes]:
        raise JournalError("found that it cannot be started")

    found = collect(Wish("k26.service", START, "/etc/k26.service", 4096), run, stream, read)
    assert found.notes == ["journal.log: found that it cannot be started"]
    assert "journal.log" not in found.files


def test_files_are_for_their_owner_and_odd_names_are_none(tmp_path: Path) -> None:
    folder = tmp_path / "id/evidence/gpu01"
    written, notes = write_evidence(str(folder), {"a.txt": "text", "b.json": {"b": 1}, "../c": "x", "d.txt": "", ".e": "x"})
    assert (written, notes) == (["a.txt", "b.json"], [])
    assert (folder / "b.json").read_text(encoding="utf-8") == '{\n "b": 1\n}\n'
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, folder / "a.txt")] == [0o700, 0o700, 0o600]
    assert sorted(os.listdir(folder)) == ["a.txt", "b.json"]


def test_a_folder_that_cannot_be_made_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    written, notes = write_evidence(str(tmp_path / "file/evidence/gpu01"), {"a.txt": "text"})
    assert written == []
    assert notes[0].startswith(f"asked to write {tmp_path}/file, found File exists; make the directory writable")


def test_a_secret_is_masked_wherever_it_stands_on_a_line_of_a_unit() -> None:
    unit = 'Environment="A=1" "HF_TOKEN=a bc" B=2\nEnvironment=A=1 HF_TOKEN=abc\nEnvironment=A=1 B=2\nUser=x\n'
    masked = 'Environment="A=1" "HF_TOKEN=(not shown)\nEnvironment=A=1 HF_TOKEN=(not shown)\nEnvironment=A=1 B=2\nUser=x\n'
    assert masked_unit(unit) == masked
