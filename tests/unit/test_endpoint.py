# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made of a server's answers, good and bad, and of options that are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._endpoint import Wish, probe
from ansible_collections.inferops.sglang.plugins.module_utils._http import Answer, Question
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock
from ansible_collections.inferops.sglang.plugins.modules import endpoint_probe
from support.module import runner

URL = "http://gpu01:30000"
INFO = {"model_path": "/srv/models/k26", "max_total_num_tokens": 200099}
HEALTHY: dict[str, Any] = {
    "/health": (200, ""),
    "/v1/models": (200, {"object": "list", "data": [{"id": "kimi-k2.6", "object": "model"}, {"id": "lora-a"}]}),
    "/server_info": (200, INFO),
    "/health_generate": (200, ""),
}


def event(tokens: int) -> dict[str, Any]:
    return {"text": " word" * tokens, "meta_info": {"completion_tokens": tokens, "prompt_tokens": 4}}


class Server:
    """Answers by path; every question and every line of a stream takes a second."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[Question] = []
        self.now = 0.0

    def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        self.now += 1.0
        answer = self.answers.get(question.url.removeprefix(URL), (404, {"detail": "Not Found"}))
        if isinstance(answer, OSError):
            raise answer
        status, content = answer
        if isinstance(content, list):
            return Answer(status, self._lines(content))
        return Answer(status, [content.encode() if isinstance(content, str) else json.dumps(content).encode()])

    def _lines(self, events: list[Any]) -> Iterator[bytes]:
        for each in events:
            self.now += 1.0
            if isinstance(each, OSError):
                raise each
            yield f"data: {each if isinstance(each, str) else json.dumps(each)}\n".encode()
            yield b"\n"


def asked(answers: dict[str, Any], **wish: Any) -> tuple[Server, dict[str, Any]]:
    server = Server(answers)
    found = probe(Wish(URL + "/", **wish), server, Clock(lambda: server.now))
    return server, found.as_dict()


def test_a_healthy_server() -> None:
    server, found = asked(HEALTHY, key="sesame")
    assert found == {
        "url": URL, "healthy": True, "model": "/srv/models/k26", "served_models": ["kimi-k2.6", "lora-a"], "answered": True,
        "generated_tokens": 1, "first_token_s": 1.0, "total_s": 1.0, "max_total_num_tokens": 200099,
        "status": 200, "error": "", "errors": {},
    }  # fmt: skip
    assert [question.url.removeprefix(URL) for question in server.asked] == ["/health", "/v1/models", "/server_info", "/health_generate"]
    assert {question.key for question in server.asked} == {"sesame"}


def test_only_what_is_asked_is_asked() -> None:
    server, found = asked(HEALTHY, checks=["generate"], timeout_s=7)
    assert [(question.url.removeprefix(URL), question.timeout_s) for question in server.asked] == [("/health_generate", 7)]
    assert (found["healthy"], found["served_models"], found["model"], found["answered"]) == (None, None, None, True)


def test_an_older_release_says_it_under_its_older_name() -> None:
    older = {**HEALTHY, "/server_info": (404, {"detail": "Not Found"}), "/get_server_info": (200, INFO)}
    _server, found = asked(older, checks=["info"])
    assert (found["max_total_num_tokens"], found["errors"]) == (200099, {})


def test_tokens_come_as_a_stream_after_a_prompt_of_the_length_that_is_asked() -> None:
    server, found = asked(
        {"/generate": (200, [event(1), event(2), event(3), "[DONE]"])}, checks=["generate"], tokens=3, prompt_tokens=199000
    )
    assert server.asked[0].body == {
        "input_ids": [100] * 199000, "stream": True, "sampling_params": {"max_new_tokens": 3, "temperature": 0, "ignore_eos": True},
    }  # fmt: skip
    assert (found["answered"], found["generated_tokens"], found["first_token_s"], found["total_s"]) == (True, 3, 2.0, 5.0)


REFUSED = "Input length (199996 tokens) exceeds the maximum allowed length (199994 tokens)."
BAD = {
    "starting": ({**HEALTHY, "/health_generate": (503, "")}, {}, "/health_generate: HTTP 503 Service Unavailable", 503, None),
    "hangs": ({**HEALTHY, "/health_generate": TimeoutError()}, {}, "/health_generate: no answer in time", -1, None),
    "gone": (
        {**HEALTHY, "/health_generate": ConnectionRefusedError(111, "Connection refused")}, {},
        "/health_generate: connection refused", -1, None,
    ),
    "without the key": ({"/generate": (401, {"error": "Unauthorized"})}, {"tokens": 2}, "/generate: HTTP 401 Unauthorized", 401, None),
    "a refused prompt": (
        {"/generate": (400, {"error": {"message": REFUSED}})}, {"prompt_tokens": 199996}, f"/generate: HTTP 400 {REFUSED}", 400, None,
    ),
    "a prompt refused in the stream": (
        {"/generate": (200, [{"error": {"message": REFUSED}}, "[DONE]"])}, {"prompt_tokens": 199996}, f"/generate: {REFUSED}", 200, None,
    ),
    "dies in the stream": (
        {"/generate": (200, [event(1), ConnectionResetError(104, "Connection reset by peer")])}, {"tokens": 5},
        "/generate: connection reset by peer", 200, 1,
    ),
    "cut by the pool": (
        {"/generate": (200, [event(1), event(2), "[DONE]"])}, {"tokens": 5},
        "/generate: asked for 5 tokens, found 2", 200, 2,
    ),
    "no tokens": (
        {"/generate": (200, ["[DONE]"])}, {"tokens": 5},
        "/generate: asked for 5 tokens, found none", 200, None,
    ),
    "nonsense": (
        {"/generate": (200, ["{", "[1]", {"meta_info": 7}])}, {"tokens": 5},
        "/generate: asked for 5 tokens, found none", 200, None,
    ),
    "too slow": (
        {"/generate": (200, [event(number) for number in range(1, 9)])}, {"tokens": 8, "timeout_s": 4},
        "/generate: no answer in time", 200, 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "wish", "error", "status", "tokens"), BAD.values(), ids=BAD)
def test_what_goes_wrong_is_said(answers: dict[str, Any], wish: dict[str, Any], error: str, status: int, tokens: int | None) -> None:
    found = asked(answers, checks=["generate"], **wish)[1]
    assert (found["answered"], found["error"], found["errors"]) == (False, error, {"generate": error})
    assert (found["status"], found["generated_tokens"]) == (status, tokens)


def test_each_check_fails_for_itself_and_the_first_is_told_first() -> None:
    _server, found = asked({"/health": (503, ""), "/v1/models": (200, "<html>"), "/health_generate": (200, "")})
    assert found["errors"] == {
        "health": "/health: HTTP 503 Service Unavailable", "models": "/v1/models: no list of models",
        "info": "/get_server_info: HTTP 404 Not Found",
    }  # fmt: skip
    assert found["error"] == "/health: HTTP 503 Service Unavailable"
    assert (found["healthy"], found["answered"]) == (False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of the following is required: url, port"),
        ({"url": "ftp://gpu01"}, "url: found 'ftp://gpu01'; give an address that begins with http:// or https://"),
        ({"port": 70000}, "port: found 70000; give a TCP port between 1 and 65535"),
        ({"port": 1, "tokens": 0}, "tokens: found 0; give a number from 1 to 10,000,000"),
        ({"port": 1, "prompt_tokens": 10_000_001}, "prompt_tokens: found 10000001; give a number from 0 to 10,000,000"),
        ({"port": 1, "timeout": 0}, "timeout: found 0; give a number from 1 to 86,400"),
        ({"port": 1, "checks": ["pulse"]}, "value of checks must be one or more of: health, models, info, generate"),
        ({"port": 1, "api_key_file": "/nowhere/key"}, "asked for the server's key in /nowhere/key, found no such file or directory"),
    ],
)
def test_options_that_are_none_are_refused(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = runner(endpoint_probe.main, monkeypatch, capsys)(**options)
    assert said["failed"]
    assert message in said["msg"]


def test_a_server_that_is_not_there_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("sesame\n", encoding="utf-8")
    said = runner(endpoint_probe.main, monkeypatch, capsys)(port=1, api_key_file=str(tmp_path / "key"), timeout=5)
    assert not said.get("failed")
    assert (said["changed"], said["endpoint"]["healthy"], said["endpoint"]["answered"]) == (False, False, False)
    assert said["endpoint"]["error"] == "/health: connection refused"


@pytest.mark.parametrize(
    ("asked_for", "url"),
    [
        ({"url": None, "host": "127.0.0.1", "port": 30000, "tls": False}, "http://127.0.0.1:30000"),
        ({"url": None, "host": "::1", "port": 30000, "tls": True}, "https://[::1]:30000"),
        ({"url": "http://gpu01", "host": "127.0.0.1", "port": None, "tls": False}, "http://gpu01"),
    ],
)
def test_an_address_is_made_of_host_and_port(asked_for: dict[str, Any], url: str) -> None:
    assert endpoint_probe.address(asked_for) == url
