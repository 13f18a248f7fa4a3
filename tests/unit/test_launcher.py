# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API key reaches SGLang's parser, and nothing that anybody else can read.

The server is one of the test's own that does what SGLang does with a key: parses it, logs it with its arguments, starts a rank as a
new interpreter that logs it too, and prints what can be seen of a process from outside.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "roles/sglang/files/launch_server.py"
RANKS = """
import dataclasses, json, logging, os, sys

@dataclasses.dataclass
class Arguments:
    port: int
    api_key: str

def show(who, arguments):
    logging.basicConfig(format="%(message)s")
    logging.getLogger("x").warning(f"{who} logs {arguments=} {json.dumps(dataclasses.asdict(arguments))} {arguments.api_key}")
    sys.stdout.writelines([f"{who} prints {arguments.api_key}", chr(10)])
    print(who, "is seen as", open("/proc/self/cmdline", "rb").read(), sys.argv, dict(os.environ), flush=True)

def rank(arguments):
    show("rank", arguments)
    raise RuntimeError(f"rank dies of {arguments.api_key}")
"""
SERVER = """
import argparse, multiprocessing, sys
from sglang.ranks import Arguments, rank, show

if __name__ == "__main__":
    assert argparse.ArgumentParser().parse_known_args(["--other"])[1] == ["--other"]
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--api-key")
    arguments = Arguments(**vars(parser.parse_args(sys.argv[1:])))
    print("length", len(arguments.api_key), "port", arguments.port, flush=True)
    show("main", arguments)
    process = multiprocessing.get_context("spawn").Process(target=rank, args=(arguments,))
    process.start()
    process.join()
    parser.error(f"main dies of {arguments.api_key}")
"""
KEYS = ["sk-0123456789abcdef", "-starts-with-a-dash", "it's \"quoted\" \\ and % $HOME", "ключ"]


@pytest.fixture
def site(tmp_path):
    for name, text in (("__init__", ""), ("ranks", RANKS), ("launch_server", SERVER)):
        (tmp_path / "sglang").mkdir(exist_ok=True)
        (tmp_path / "sglang" / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "credentials").mkdir()
    return tmp_path


def launch(site, **environment):
    environment = {"PYTHONPATH": str(site), "PYTHONIOENCODING": "utf-8", "CREDENTIALS_DIRECTORY": str(site / "credentials"), **environment}
    return subprocess.run([sys.executable, SCRIPT, "--port", "31000"], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("key", KEYS)
def test_the_server_has_the_key_and_nobody_reads_it(site, key):
    (site / "credentials/api_key").write_text(f" {key}\n", encoding="utf-8")
    done = launch(site)
    assert done.returncode == 2, done.stderr
    assert f"length {len(key)} port 31000\n" in done.stdout
    for said in ("main logs", "rank logs", "rank dies of ******", "main dies of ******"):
        assert said in done.stderr
    for said in ("main prints ******", "rank prints ******", "main is seen as", "rank is seen as"):
        assert said in done.stdout
    for shown in (key, repr(key)[1:-1], ascii(key)[1:-1]):
        assert shown not in done.stdout + done.stderr


ASKED = "inferops.sglang: asked for {} in {}/api_key, found {}\n"
KEY, LINE = "the API key", "one line with the API key"
ONE = "give one line of text in the file of LoadCredential="
PROBLEMS = [
    (None, KEY, "[Errno 2] No such file or directory: '{}/api_key'; " + ONE),
    (b"\xff\xfe", KEY, "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte; " + ONE),
    (b"", LINE, "0 lines; write the key alone into its file"),
    (b"  \n", LINE, "0 lines; write the key alone into its file"),
    (b"one\ntwo\n", LINE, "2 lines; write the key alone into its file"),
]


@pytest.mark.parametrize(("content", "asked", "found"), PROBLEMS)
def test_without_a_key_nothing_is_started(site, content, asked, found):
    if content is not None:
        (site / "credentials/api_key").write_bytes(content)
    done = launch(site)
    assert (done.returncode, done.stdout) == (1, "")
    where = site / "credentials"
    assert done.stderr == ASKED.format(asked, where, found.format(where))


def test_outside_of_a_unit_it_says_what_is_missing(site):
    done = launch(site, CREDENTIALS_DIRECTORY="")
    assert (done.returncode, done.stderr) == (
        1, "inferops.sglang: asked for the API key, found no CREDENTIALS_DIRECTORY; start this by a unit with LoadCredential=api_key:FILE\n"
    )  # fmt: skip
