# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP side: health, server and model information, generation with SGLang's limits and refusals."""

from __future__ import annotations

import contextlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from sglang.standin import log
from sglang.standin.arguments import effective
from sglang.standin.ranks import Group
from sglang.standin.timeline import Start

Answer = tuple[int, Any]
DEPRECATED = {"/get_server_info": "/server_info", "/get_model_info": "/model_info"}
HEALTH_TIMEOUT = 20.0  # seconds that a rank has for the token of a health check


@dataclass
class State:
    """What requests see of the server."""

    start: Start
    group: Group
    version: str
    config: dict[str, Any]
    starting: bool = True
    stopping: bool = False
    requests: int = 0  # under way: from the prompt to the last token
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """One more request is under way."""
        with self.lock:
            self.requests += 1
        try:
            yield
        finally:
            with self.lock:
                self.requests -= 1


class Server(ThreadingHTTPServer):
    """Listens like uvicorn does: the address may be reused, but a port in use is an OSError."""

    daemon_threads = True
    allow_reuse_address = True


def listen(state: State) -> Server:
    """Binds the address and returns the server, not yet answering. OSError if it is taken."""
    handler: type[BaseHTTPRequestHandler] = type("Handler", (_Handler,), {"state": state})
    return Server((state.start.args.host, state.start.args.port), handler)


class _Handler(BaseHTTPRequestHandler):
    state: State
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(_GET)

    def do_POST(self) -> None:
        self._serve(_POST)

    def _serve(self, table: dict[str, Callable[[State, Any], Answer]]) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        path = self.path.partition("?")[0]
        self._reply(*self._answer(table, path, body))

    def _answer(self, table: dict[str, Callable[[State, Any], Answer]], path: str, body: bytes) -> Answer:
        if not self._allowed(path):
            return 401, {"error": "Unauthorized"}
        if path in DEPRECATED:
            log.say(
                f"Endpoint '{path}' is deprecated and will be removed in a future version. "
                f"Please use '{DEPRECATED[path]}' instead."
            )
        endpoint = table.get(DEPRECATED.get(path, path))
        if endpoint is None:
            return 404, {"detail": "Not Found"}
        try:
            return endpoint(self.state, json.loads(body or b"{}"))
        except ValueError as error:
            return 400, {"error": {"message": str(error)}}

    def _allowed(self, path: str) -> bool:
        key = self.state.start.args.api_key
        if key is None or path.startswith(("/health", "/metrics")):
            return True
        kind, _blank, token = (self.headers.get("Authorization") or "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(token.encode(), key.encode())

    def _reply(self, status: int, content: Any) -> None:
        if isinstance(content, Iterator):
            self._stream(status, content)
            return
        plain = isinstance(content, str)
        data = content.encode() if plain else json.dumps(content).encode()
        # before the answer, as uvicorn does: who has the answer finds the line in the log
        log.access(f"{self.client_address[0]}:{self.client_address[1]}", self.requestline, f"{status} {HTTPStatus(status).phrase}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response_only(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8" if plain else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def _stream(self, status: int, events: Iterator[Any]) -> None:
        log.access(f"{self.client_address[0]}:{self.client_address[1]}", self.requestline, f"{status} {HTTPStatus(status).phrase}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response_only(status)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                self._chunk(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def _health(state: State, _body: Any) -> Answer:
    if state.starting or state.stopping:
        return 503, ""
    waiter = threading.Thread(target=state.group.prefill, args=(1,), daemon=True)
    waiter.start()
    waiter.join(HEALTH_TIMEOUT)
    return (503 if waiter.is_alive() else 200), ""


def _model_info(state: State, _body: Any) -> Answer:
    args = state.start.args
    return 200, {
        "model_path": args.model_path,
        "tokenizer_path": args.tokenizer_path,
        "is_generation": True,
        "weight_version": args.weight_version,
        "has_image_understanding": "vision_config" in state.config,
        "model_type": state.config.get("model_type"),
        "architectures": state.config.get("architectures"),
    }


def _models(state: State, _body: Any) -> Answer:
    name = state.start.args.served_model_name
    card = {"id": name, "object": "model", "owned_by": "sglang", "root": name, "max_model_len": state.start.pools.context}
    return 200, {"object": "list", "data": [card]}


def _server_info(state: State, _body: Any) -> Answer:
    pools = state.start.pools
    groups = [rank.index for rank in pools.ranks if rank.pp == 0 and (rank.tp == 0 or rank.dp != pools.ranks[rank.index - 1].dp)]
    return 200, {
        **effective(state.start.args),
        "status": "ready",
        "max_total_num_tokens": pools.tokens[0],
        "max_req_input_len": pools.max_input,
        "internal_states": [_internal_state(state, index) for index in groups],
        "version": state.version,
    }


def _internal_state(state: State, index: int) -> dict[str, Any]:
    """One DP rank's figures; `kvcache` is the target's pool alone."""
    pools, rich = state.start.pools, state.start.era.memory_usage_rich
    graphs = sum(moment.usage for moment in pools.ledgers[index] if moment.what == "graph")
    digits = 3 if rich else 2
    usage: dict[str, Any] = {
        "weight": round(pools.at(index, "load", "target").usage, digits),
        "kvcache": round(sum(pools.sizes["target", index]), digits),
        "token_capacity": pools.tokens[index],
        "graph": round(graphs, digits),
    }
    if rich:
        usage["startup_available"] = round(pools.ledgers[index][-1].after, digits)
        usage["token_capacity_swa"] = None
        usage["graph"] = {"decode": round(graphs, digits)}
    return {"memory_usage": usage, "effective_max_running_requests_per_dp": pools.requests[index]}


def _metrics(state: State, _body: Any) -> Answer:
    if not state.start.args.enable_metrics:
        return 404, {"detail": "Not Found"}
    labels = f'{{model_name="{state.start.args.served_model_name}",tp_rank="0",pp_rank="0"}}'
    values = {"max_total_num_tokens": state.start.pools.tokens[0], "num_running_reqs": 0, "num_used_tokens": 0, "token_usage": 0}
    lines = [f"# TYPE sglang:{name} gauge\nsglang:{name}{labels} {float(value)}\n" for name, value in values.items()]
    return 200, "".join(lines)


def _loads(state: State, _body: Any) -> Answer:
    pools = state.start.pools
    load = {
        "dp_rank": 0,
        "num_running_reqs": state.requests,
        "num_waiting_reqs": 0,
        "max_total_num_tokens": pools.tokens[0],
        "max_running_requests": pools.requests[0],
    }
    return 200, {"version": state.version, "loads": [load]}


def _generate(state: State, body: Any) -> Answer:
    prompt, params = body.get("input_ids") or body.get("text") or "", body.get("sampling_params") or {}
    if isinstance(prompt, str):
        prompt = prompt.split()
    refusal = _refusal(state, len(prompt))
    if refusal:
        log.say(f"[http_server] Error: {refusal}")
        error = {"error": {"message": refusal}}
        # a stream has begun by the time that it is refused
        return (200, iter([error, "[DONE]"])) if body.get("stream") else (400, error)

    def answer(made: int, last: bool) -> dict[str, Any]:
        reason = {"type": "length", "length": made} if last else None
        meta = {"prompt_tokens": len(prompt), "completion_tokens": made, "cached_tokens": 0, "finish_reason": reason}
        return {"text": " word" * made, "output_ids": [1] * made, "meta_info": meta}

    return 200, _answered(state, len(prompt), params.get("max_new_tokens", 128), bool(body.get("stream")), answer)


def _completions(state: State, body: Any) -> Answer:
    return _openai(state, body, str(body.get("prompt") or "").split(), "text_completion", lambda text: {"text": text})


def _chat(state: State, body: Any) -> Answer:
    words: list[str] = " ".join(str(message.get("content")) for message in body.get("messages") or []).split()
    part = "delta" if body.get("stream") else "message"
    return _openai(state, body, words, "chat.completion", lambda text: {part: {"role": "assistant", "content": text}})


def _openai(state: State, body: Any, words: list[str], kind: str, choice: Callable[[str], dict[str, Any]]) -> Answer:
    refusal = _refusal(state, len(words))
    if refusal:
        return 400, {"object": "error", "message": refusal, "type": "BadRequestError", "param": None, "code": 400}
    stream = bool(body.get("stream"))
    model = state.start.args.served_model_name

    def answer(made: int, last: bool) -> dict[str, Any]:
        choices = [{"index": 0, "finish_reason": "length" if last else None, **choice(" word" * (1 if stream else made))}]
        if stream:
            return {"id": "standin", "object": f"{kind}.chunk" if kind == "chat.completion" else kind, "model": model, "choices": choices}
        usage = {"prompt_tokens": len(words), "completion_tokens": made, "total_tokens": len(words) + made}
        return {"id": "standin", "object": kind, "model": model, "choices": choices, "usage": usage}

    return 200, _answered(state, len(words), body.get("max_tokens") or 16, stream, answer)


def _answered(state: State, tokens: int, wanted: int, stream: bool, answer: Callable[[int, bool], dict[str, Any]]) -> Any:
    """The whole answer, or an iterator over what is there after each token."""
    if stream:
        return _events(state, tokens, wanted, answer)
    with state.request():
        made = _compute(state, tokens, wanted)
        time.sleep(made * state.start.token)
        return answer(made, True)


def _events(state: State, tokens: int, wanted: int, answer: Callable[[int, bool], dict[str, Any]]) -> Iterator[Any]:
    with state.request():
        made = _compute(state, tokens, wanted)
        for number in range(1, made + 1):
            time.sleep(state.start.token)
            yield answer(number, number == made)
        yield "[DONE]"


def _refusal(state: State, tokens: int) -> str | None:
    """Why a prompt of so many tokens is refused: by the context first, then by the pool; None if it is not."""
    pools = state.start.pools
    if tokens >= pools.context:
        return f"The input ({tokens} tokens) is longer than the model's context length ({pools.context} tokens)."
    if tokens >= pools.max_input:
        return (
            f"Input length ({tokens} tokens) exceeds the maximum allowed length ({pools.max_input} tokens). "
            "Use a shorter input or enable --allow-auto-truncate."
        )
    return None


def _compute(state: State, tokens: int, wanted: int) -> int:
    """Runs one request through the ranks; returns the tokens generated, cut to what the pool leaves."""
    state.group.prefill(max(1, tokens), warming=state.starting, real=not state.starting)
    pools = state.start.pools
    return max(0, min(wanted, pools.max_input + 5 - tokens - 1))


_GET: dict[str, Callable[[State, Any], Answer]] = {
    "/health": _health,
    "/health_generate": _health,
    "/model_info": _model_info,
    "/server_info": _server_info,
    "/v1/models": _models,
    "/v1/loads": _loads,
    "/metrics": _metrics,
}
_POST: dict[str, Callable[[State, Any], Answer]] = {
    "/generate": _generate,
    "/v1/completions": _completions,
    "/v1/chat/completions": _chat,
}
