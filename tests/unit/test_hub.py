# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hub says of a repository, and what is said of a hub that gives nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Optional

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _hub
from ansible_collections.inferops.sglang.plugins.module_utils._hub import Hub, Request, Response, SourceError, SourceFile, open_url
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock
from support.hub import Hub as Server
from support.hub import serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BUSY = Response(429, {"retry-after": "3"})


def description(*siblings: dict) -> Response:
    return Response(200, {}, json.dumps({"sha": COMMIT, "siblings": list(siblings)}).encode())


FILES = (
    {"rfilename": "model.safetensors", "size": 134, "blobId": "aa", "lfs": {"sha256": "bb", "size": 5000}},
    {"rfilename": "config.json", "size": 20, "blobId": "cc"},
)
MODEL = description(*FILES)


def hub_of(*answers: object, token_file: str = "", patience_s: float = 300.0) -> tuple[Hub, list[Request], list[float]]:
    """A hub that gives these answers in turn; what it was asked, and how long it was waited for."""
    asked: list[Request] = []
    slept: list[float] = []
    left = list(answers)

    def opener(request: Request) -> Response:
        asked.append(request)
        answer = left.pop(0)
        if isinstance(answer, OSError):
            raise answer
        assert isinstance(answer, Response)
        return answer

    return Hub("http://hub.test/", opener, token_file, Clock(lambda: 0.0, slept.append), patience_s), asked, slept


def test_a_snapshot_is_a_commit_and_the_files_that_serving_needs() -> None:
    hub, asked, _slept = hub_of(MODEL, Response(200))
    found = hub.snapshot("acme/kimi", "refs/pr/1")
    assert (found.commit, found.total_bytes) == (COMMIT, 5020)
    assert found.files == (SourceFile("config.json", 20, "git:cc"), SourceFile("model.safetensors", 5000, "sha256:bb"))
    assert [(request.method, request.url) for request in asked] == [
        ("GET", "http://hub.test/api/models/acme/kimi/revision/refs%2Fpr%2F1?blobs=true"),
        ("HEAD", f"http://hub.test/acme/kimi/resolve/{COMMIT}/config.json"),
    ]
    assert "Authorization" not in asked[0].headers


NEEDED = {
    "config.json": True, "model-00001-of-00002.safetensors": True, "model.safetensors.index.json": True, "tokenizer.model": True,
    "tiktoken.model": True, "tokenizer_config.json": True, "modeling_kimi.py": True, "chat_template.jinja": True, "merges.txt": True,
    "encoding/code.py": True, "additional_chat_templates/tool.jinja": True,
    "pytorch_model.bin": False, "model.gguf": False, "consolidated.00.pth": False, "onnx/model.json": False, "original/params.json": False,
    "adapter/model.safetensors": False, "README.md": False, ".gitattributes": False, "figures/a.png": False, ".cache/x.json": False,
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_what_serving_needs(name: str) -> None:
    assert _hub.serves(name) is NEEDED[name]


def test_a_second_copy_of_the_weights_is_left_where_it_is_and_an_only_one_is_taken() -> None:
    both = [SourceFile("consolidated.safetensors", 1), SourceFile("model-00001-of-00001.safetensors", 1), SourceFile("params.json", 1)]
    assert [file.name for file in _hub.wanted(both)] == ["model-00001-of-00001.safetensors", "params.json"]
    assert [file.name for file in _hub.wanted(both[:1])] == ["consolidated.safetensors"]


def test_a_busy_hub_is_asked_again_when_it_says() -> None:
    hub, asked, slept = hub_of(BUSY, Response(429, {"ratelimit": '"api";r=0;t=41'}), Response(503), OSError("gone"), MODEL, Response(302))
    assert hub.snapshot("acme/kimi", "").commit == COMMIT
    assert slept == [3.0, 41.0, 4.0, 8.0]
    assert len(asked) == 6


def test_the_token_stays_with_the_hub(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_x\n")
    (tmp_path / "token").chmod(0o600)
    moved = Response(307, {"location": "/api/models/acme/renamed/revision/main"})
    hub, asked, _slept = hub_of(moved, MODEL, Response(302, {"location": "http://content.test/x"}), token_file=str(tmp_path / "token"))
    hub.snapshot("acme/kimi", "")
    assert [request.url.split("/")[2] for request in asked] == ["hub.test"] * 3
    assert {request.headers["Authorization"] for request in asked} == {"Bearer hf_x"}
    hub, asked, _slept = hub_of(Response(302, {"location": "http://elsewhere.test/x"}), token_file=str(tmp_path / "token"))
    with pytest.raises(SourceError, match=r"found that http://hub.test/ sends on to http://elsewhere.test/x; give the address"):
        hub.snapshot("acme/kimi", "")
    assert len(asked) == 1


REFUSALS: dict[str, tuple[list[object], str]] = {
    "too busy for too long": (
        [Response(429, {"retry-after": "200"})] * 2,
        "asked for acme/kimi at revision main, found too many requests (429) from http://hub.test/, which asks to wait 200 s,"
        " after 2 tries over 200 s; run again later, or give token_file",
    ),
    "down": ([Response(500)] * 6, "found the server's error 500 from http://hub.test/, after 6 tries over 31 s; open the way there"),
    "no route": ([OSError(113, "No route to host")] * 4, "no answer (No route to host) from http://hub.test/, after 4 tries over 7 s"),
    "a page of a proxy": ([Response(200, {}, b"<html>")], "found an answer of http://hub.test/ that is no description of a model (JSON"),
    "no weights": ([description(FILES[1])], "found no safetensors file among its 1 files; name a repository"),
    "a file that leads out": ([description({"rfilename": "../x", "size": 1, "blobId": "a"})], "no description of a model (ValueError)"),
    "no commit": ([Response(200, {}, b'{"sha": "main", "siblings": []}')], "found no commit in the answer"),
    "round and round": ([Response(302, {"location": "/x"})] * 5, "found more than 5 redirects from http://hub.test/; give the address"),
    "forbidden": ([Response(403, {"x-error-message": "blocked"})], "found status 403 (blocked) from http://hub.test/; look at"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_hub_that_gives_nothing(case: str) -> None:
    answers, text = REFUSALS[case]
    hub, _asked, _slept = hub_of(*answers)
    with pytest.raises(SourceError) as error:
        hub.snapshot("acme/kimi", "")
    assert text in str(error.value)


TOKENS: dict[str, tuple[Optional[str], int, str]] = {
    "missing": (None, 0o600, "No such file or directory; put the hub's token into that file on this host, owner root, mode 0600"),
    "for the group": ("hf_x", 0o640, "mode 0640, so that others can read it; chmod 0600"),
    "empty": ("\n", 0o600, "no token, which is one word; put the hub's token into that file, and nothing else"),
    "a shell file": ("export HF_TOKEN=hf_x", 0o600, "no token, which is one word"),
}


@pytest.mark.parametrize("case", TOKENS)
def test_a_file_that_is_no_token(case: str, tmp_path: Path) -> None:
    text, mode, said = TOKENS[case]
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(SourceError) as error:
        _hub.read_token(str(path))
    assert said in str(error.value)


WORLD: dict[str, tuple[Callable[[Server], None], str, str]] = {
    "gated": (lambda hub: hub.gated.add("acme/kimi"), "main", "found a gated repository and no token (401); accept its conditions at"),
    "no such repository": (lambda hub: hub.repositories.clear(), "main", "found no such repository for no token (401); look for the name"),
    "no such revision": (lambda hub: hub.gated.clear(), "v9",
                         "found the repository acme/kimi without that revision (404); give a commit, branch"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORLD)
def test_over_real_connections(case: str) -> None:
    change, revision, text = WORLD[case]
    files = {"config.json": b"{}", "model.safetensors": b"weights"}
    with serving(Server()) as server:
        commit = server.publish("acme/kimi", files)
        assert Hub(server.endpoint, open_url).snapshot("acme/kimi", commit).total_bytes == 9
        change(server)
        with pytest.raises(SourceError) as error:
            Hub(server.endpoint, open_url).snapshot("acme/kimi", revision)
    assert text in str(error.value)
    # the sizes of what is large come from the hub, and nothing of it was fetched
    assert server.transfers() == []
