# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workers of SGLang's router: what its releases answer, how a worker leaves and comes back, and when nothing is under way any more.

The answers are those that sglang-router 0.1.9, 0.2.0, 0.2.4 and 0.3.2 from PyPI gave.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._http import Answer, KeyFileError, Question, is_away, plain, read_key
from ansible_collections.inferops.sglang.plugins.module_utils._load import Load, read_load
from ansible_collections.inferops.sglang.plugins.module_utils._quiet import ended, in_words, wait_quiet
from ansible_collections.inferops.sglang.plugins.module_utils._router import Router, RouterError, same
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

URL, OTHER = "http://gpu01:30000", "http://gpu02:30000"
ID = "82eabc25-8954-4162-8d2f-557de4299e8a"


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


class Play:
    """A router that answers by a table: "METHOD path" -> (status, content), or one of several in turn, the last one for good."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {key: list(value) if isinstance(value, list) else [value] for key, value in answers.items()}
        self.asked: list[Question] = []

    def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        line = f"{question.method} {question.url.removeprefix('http://router:30000')}"
        turns = self.answers.get(line)
        if turns is None:
            return Answer(404)
        turn = turns.pop(0) if len(turns) > 1 else turns[0]
        if isinstance(turn, OSError):
            raise turn
        status, content = turn
        return Answer(status, [content.encode() if isinstance(content, str) else json.dumps(content).encode()])

    @property
    def lines(self) -> list[str]:
        return [f"{one.method} {one.url.removeprefix('http://router:30000')}" for one in self.asked]


def play(answers: dict[str, Any], key: str = "") -> tuple[Play, Router]:
    played = Play(**answers)
    return played, Router("http://router:30000/", played, key, Time().clock)


def worker(url: str = URL, **more: Any) -> dict[str, Any]:
    base = {
        "id": ID, "url": url, "model_id": "kimi-k2.6", "priority": 50, "cost": 1.0, "worker_type": "regular", "is_healthy": True, "load": 0,
        "connection_mode": "HTTP", "disable_health_check": False,
        "metadata": {"model_path": "/srv/models/k26", "served_model_name": "kimi-k2.6", "tp_size": "8", "dp_size": "1"},
    }  # fmt: skip
    return {**base, **more}


def listed(*workers: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"workers": list(workers), "total": len(workers), "stats": {}}


DEFAULTS = {"worker_type": "regular", "disable_health_check": False}
RESTORED = {
    "as the router makes it": ({}, DEFAULTS),
    "by hand": (
        {
            "priority": 11, "cost": 2.5, "worker_type": "prefill", "bootstrap_port": 9000, "tokenizer_path": "/t",
            "reasoning_parser": "deepseek-r1", "tool_parser": "json", "chat_template": "/c", "disable_health_check": True,
            "metadata": {"priority": "11", "cost": "2.5", "a": "b", "served_model_name": "kimi-k2.6", "model_path": "/m", "tp_size": "8"},
        },
        {
            "priority": 11, "cost": 2.5, "worker_type": "prefill", "bootstrap_port": 9000, "tokenizer_path": "/t",

            "reasoning_parser": "deepseek-r1", "tool_parser": "json", "chat_template": "/c",
            "disable_health_check": True, "labels": {"a": "b"},
        },
    ),
    "the usual priority, by hand": ({"metadata": {"priority": "50", "model_path": "/m"}, "model_id": "/m"}, {**DEFAULTS, "priority": 50}),
    "another cost without a label": ({"cost": 2.0}, {**DEFAULTS, "cost": 2.0}),
    "a model named by hand": ({"model_id": "k26-eu"}, {**DEFAULTS, "model_id": "k26-eu"}),
    "0.2.2 calls it by its path": ({"model_id": "/m", "metadata": {"model_path": "/m", "model_id": "/m"}}, DEFAULTS),
    "nothing is known of it": ({"model_id": "unknown", "metadata": None}, DEFAULTS),
}  # fmt: skip


@pytest.mark.parametrize(("shown", "restore"), RESTORED.values(), ids=RESTORED)
def test_a_worker_comes_back_as_it_was_set(shown: dict[str, Any], restore: dict[str, Any]) -> None:
    _played, router = play({"GET /workers": listed(worker(**shown))})
    found = router.workers().find(URL)
    assert found is not None
    assert dict(found.restore) == restore


REMOVALS = {
    "0.3": ({"GET /workers": [listed(worker()), listed(worker()), listed()], f"DELETE /workers/{ID}": (202, {})}, f"DELETE /workers/{ID}"),
    "0.2": (
        {"GET /workers": [listed(worker(id=URL)), listed()], "DELETE /workers/http%3A%2F%2Fgpu01%3A30000": (202, {})},
        "DELETE /workers/http%3A%2F%2Fgpu01%3A30000",
    ),
    "0.1.9": (
        {
            "GET /list_workers": [(200, {"urls": [URL]}), (200, {"urls": []})],
            "POST /remove_worker?url=http%3A%2F%2Fgpu01%3A30000": (200, "Successfully removed worker"),
        },
        "POST /remove_worker?url=http%3A%2F%2Fgpu01%3A30000",
    ),
}


@pytest.mark.parametrize(("answers", "line"), REMOVALS.values(), ids=REMOVALS)
def test_it_is_gone_once_remove_returns(answers: dict[str, Any], line: str) -> None:
    played, router = play(answers, key="sesame")
    listing = router.workers()
    found = listing.find("http://GPU01:30000/")
    assert found is not None
    router.remove(listing, found)
    assert line in played.lines
    assert router.workers().workers == ()
    assert {question.key for question in played.asked} == {"sesame"}


def test_it_is_added_with_what_it_was_and_the_servers_key() -> None:
    location = f"/workers/{ID}"
    pending = (200, {"id": ID, "job_status": {"status": "processing", "message": None}})
    played, router = play({
        "GET /workers": [listed(), listed(), listed(worker(is_healthy=False)), listed(worker())],
        "POST /workers": (202, {"location": location}), f"GET {location}": pending,
    })  # fmt: skip
    waited = router.add(router.workers(), URL, {"priority": 70}, "server-key", 30)
    assert waited == 1.0
    added = next(question for question in played.asked if question.method == "POST")
    assert added.body == {"url": URL, "priority": 70, "api_key": "server-key"}
    assert added.key == ""


def test_an_old_router_takes_the_address_alone() -> None:
    line = "POST /add_worker?url=http%3A%2F%2Fgpu01%3A30000"
    played, router = play({"GET /list_workers": [(200, {"urls": []}), (200, {"urls": [URL]})], line: (200, "added")})
    assert router.add(router.workers(), URL, {"priority": 70}, "server-key", 30) == 0.0
    assert line in played.lines


UNKNOWN = "neither /workers nor /list_workers; give the address of sglang-router 0.1.9 and 0.2.0 to 0.3.2"
REFUSALS = {
    "nobody": ({"GET /workers": ConnectionRefusedError(111, "Connection refused")}, "found connection refused; start the router"),
    "too slow": ({"GET /workers": TimeoutError()}, "found no answer in time"),
    "another server": ({}, UNKNOWN),
    "no key": (
        {"GET /workers": (401, "Missing or invalid Authorization header")},
        "status 401 (Missing or invalid Authorization header); give the key",
    ),
    "odd": ({"GET /workers": (200, {"workers": "many"})}, 'status 200 ({"workers": "many"}); look at the router\'s log'),
    "dp aware": ({"GET /workers": listed(worker(f"{URL}@0"))}, f"found {URL}@0, one of several replicas of a server (--dp-aware)"),
}


@pytest.mark.parametrize(("answers", "text"), REFUSALS.values(), ids=REFUSALS)
def test_a_router_that_cannot_be_asked_is_said(answers: dict[str, Any], text: str) -> None:
    with pytest.raises(RouterError) as refused:
        play(answers)[1].workers()
    assert text in str(refused.value)
    assert str(refused.value).startswith("router http://router:30000/: asked for its workers")


def test_a_key_without_the_right_is_said_and_not_repeated() -> None:
    with pytest.raises(RouterError, match="the one given has no such right") as refused:
        play({"GET /workers": (403, "forbidden")}, key="sesame")[1].workers()
    assert "sesame" not in str(refused.value)


def test_a_router_that_gives_up_on_a_worker_is_quoted() -> None:
    failed = (200, {"job_status": {"status": "failed", "message": "Workflow failed at step detect_connection_mode"}})
    _played, router = play({"GET /workers": listed(), "POST /workers": (202, {"location": f"/workers/{ID}"}), f"GET /workers/{ID}": failed})
    with pytest.raises(RouterError, match=f"asked to take {URL} in, found that it gave up: Workflow failed at step detect_connection_mode"):
        router.add(router.workers(), URL, {}, "", 300)


BOUNDS: dict[str, tuple[dict[str, Any], Callable[[Router], Any], str]] = {
    "never healthy": (
        {"GET /workers": listed(worker(is_healthy=False))}, lambda router: router.wait_healthy(URL, 5),
        "within 5 s, found it listed as not healthy",
    ),
    "never listed": ({"GET /workers": listed()}, lambda router: router.wait_healthy(URL, 5), "within 5 s, found no such worker"),
    "never gone": (
        {"GET /workers": listed(worker()), f"DELETE /workers/{ID}": (202, {})},
        lambda router: router.remove(router.workers(), router.workers().workers[0]),
        "found it still listed after 30 s",
    ),
    "no removal": (
        {"GET /workers": listed(worker()), f"DELETE /workers/{ID}": (500, "no")},
        lambda router: router.remove(router.workers(), router.workers().workers[0]),
        f"asked to take {URL} out, found status 500 (no)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "act", "text"), BOUNDS.values(), ids=BOUNDS)
def test_what_does_not_happen_is_said(answers: dict[str, Any], act: Callable[[Router], Any], text: str) -> None:
    with pytest.raises(RouterError) as refused:
        act(play(answers)[1])
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("others", "count"),
    [([], 0), ([worker(OTHER)], 1), ([worker(OTHER, is_healthy=False)], 0)],
)
def test_workers_that_are_not_healthy_are_no_help(others: list[dict[str, Any]], count: int) -> None:
    assert play({"GET /workers": listed(worker(), *others)})[1].workers().others(URL) == count


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("http://gpu01:30000", "http://GPU01:30000/", True),
        ("http://gpu01", "http://gpu01:80", True),
        ("https://gpu01", "https://gpu01:443", True),
        ("gpu01:30000", "http://gpu01:30000", True),
        ("http://[2001:db8::1]:30000", "http://[2001:DB8::1]:30000", True),
        ("http://gpu01:30000", "https://gpu01:30000", False),
        ("http://gpu01:30000", "http://gpu01:30001", False),
        ("http://gpu01:30000", "http://gpu10:30000", False),
    ],
)
def test_an_address_is_the_same_however_it_is_written(one: str, other: str, equal: bool) -> None:
    assert same(one, other) is equal


# --- requests under way -----------------------------------------------------------------------------------------------------

LOADS = "GET http://gpu01:30000/v1/loads"
OLD = "GET http://gpu01:30000/get_load"
COUNTS = {
    "0.5.8 and newer": (
        {LOADS: (200, {"loads": [{"num_running_reqs": 2, "num_waiting_reqs": 1}, {"num_running_reqs": 1, "num_waiting_reqs": 0}]})},
        4,
        "",
    ),
    "0.5.3 to 0.5.7": ({OLD: (200, [{"dp_rank": 0, "num_reqs": 3, "num_waiting_reqs": 1, "num_tokens": 900}])}, 3, ""),
    "idle": ({LOADS: (200, {"loads": [{"num_running_reqs": 0, "num_waiting_reqs": 0}]})}, 0, ""),
    "nobody there": ({LOADS: ConnectionRefusedError(111, "Connection refused")}, 0, "nobody listens there"),
    "hangs": ({LOADS: TimeoutError()}, None, "/v1/loads: no answer in time"),
    "no key": ({LOADS: (401, {"error": "Unauthorized"})}, None, '/v1/loads: status 401 ({"error": "Unauthorized"})'),
    "neither route": ({}, None, "neither /v1/loads (SGLang 0.5.8 and newer) nor /get_load (SGLang 0.5.3 to 0.5.20)"),
    "no figures": ({LOADS: (200, {"loads": []})}, None, '/v1/loads: status 200 ({"loads": []})'),
    "odd figures": ({LOADS: (200, {"loads": [{"num_running_reqs": True, "num_waiting_reqs": 0}]})}, None, "/v1/loads: status 200"),
    "0.5.1 counts tokens": ({OLD: (200, {"load": 7})}, None, '/get_load: status 200 ({"load": 7})'),
}


@pytest.mark.parametrize(("answers", "count", "why"), COUNTS.values(), ids=COUNTS)
def test_requests_under_way_are_the_servers_own_figure(answers: dict[str, Any], count: int | None, why: str) -> None:
    load = read_load(Play(**answers), URL + "/", "key")
    assert load.requests == count
    assert load.why.startswith(why)


def numbers(*figures: int | None) -> Callable[[], Load]:
    left: Iterator[int | None] = iter(figures)
    last: list[int | None] = [None]

    def look() -> Load:
        last[0] = next(left, last[0])
        return Load(last[0], "no figures" if last[0] is None else "")

    return look


WAITS = {
    # looks are half a second apart, and nothing must be seen for two
    "nothing": ((0,), 60, True, 0, 0, 2.0),
    "ends": ((3, 2, 1, 0), 60, True, 3, 0, 3.5),
    "comes again": ((1, 0, 0, 1, 0), 60, True, 1, 0, 4.0),
    "never ends": ((2,), 5, False, 2, 2, 5.0),
    "ends at the bound": ((1, 1, 0), 1, True, 1, 0, 3.0),
    "comes again after the bound": ((1, 1, 0, 0, 1), 1, False, 1, 1, 1.5),
    "no time": ((0,), 0, True, 0, 0, 2.0),
    "no time and one": ((1,), 0, False, 1, 1, 0.0),
    "cannot be counted": ((None,), 3, False, None, None, 3.0),
}


@pytest.mark.parametrize(("figures", "bound", "ok", "first", "last", "waited"), WAITS.values(), ids=WAITS)
def test_it_is_quiet_when_nothing_is_seen_for_a_while(
    figures: tuple[int | None, ...], bound: float, ok: bool, first: int | None, last: int | None, waited: float
) -> None:
    quiet = wait_quiet(numbers(*figures), bound, Time().clock)
    assert (quiet.ok, quiet.first.requests, quiet.last.requests) == (ok, first, last)
    assert quiet.waited_s == waited


def test_it_is_said_for_people() -> None:
    clock = Time().clock
    assert ended(wait_quiet(numbers(0), 9, clock)) == "nothing was under way"
    assert ended(wait_quiet(numbers(2, 1, 0), 9, clock)) == "2 requests under way ended in 3.0 s"
    assert [in_words(Load(count, "no figures")) for count in (0, 1, 2, None)] == [
        "no requests", "1 request", "2 requests", "requests that cannot be counted (no figures)",
    ]  # fmt: skip


# --- keys -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "nothing in it"),
        ("one two\n", "1 lines or spaces in it"),
        ("one\ntwo\n", "2 lines or spaces in it"),
        (None, "no such file or directory"),
    ],
)
def test_a_file_without_a_key_is_said_and_never_repeated(tmp_path: Any, text: str | None, found: str) -> None:
    path = tmp_path / "key"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(KeyFileError) as refused:
        read_key(str(path), "the router's key")
    assert f"asked for the router's key in {path}, found {found}; write the key alone into it" in str(refused.value)


def test_a_key_is_read_without_its_line_end(tmp_path: Any) -> None:
    (tmp_path / "key").write_text("sesame\n", encoding="utf-8")
    assert read_key(str(tmp_path / "key"), "the key") == "sesame"
    assert read_key("", "the key") == ""
    assert Question("GET", URL, key="sesame").headers["Authorization"] == "Bearer sesame"
    assert "Authorization" not in Question("GET", URL).headers


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (ConnectionRefusedError(), True),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), True),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), False),
        (TimeoutError(), False),
        (PermissionError(), False),
        # the path of a socket that is on another host
        (FileNotFoundError(), False),
        (None, False),
    ],
)
def test_only_where_nobody_listens_nothing_is_there(error: Exception | None, away: bool) -> None:
    assert is_away(error) is away


def test_why_no_answer_came_is_said_in_plain_words() -> None:
    assert plain(ConnectionRefusedError(111, "Connection refused")) == "connection refused"
    assert plain(OSError("the answer ended early: IncompleteRead")) == "the answer ended early: IncompleteRead"
