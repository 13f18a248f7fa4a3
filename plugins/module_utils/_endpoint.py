# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an SGLang server answers when it is asked. Private to this collection: may change at any time.

Nothing of a server is an error here: what it does not answer, or answers badly, is what was to be found out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._http import Opener, Question, Said, ask, plain
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

CHECKS = ("health", "models", "info", "generate")
# asked without the server's key, and answered by one token that a model made
_ONE_TOKEN = "/health_generate"
# newest first
_INFO = ("/server_info", "/get_server_info")
# a token that every vocabulary has, and that ends nothing in one
_PLAIN_TOKEN = 100
_NO_ANSWER = -1


@dataclass(frozen=True)
class Wish:
    """What is asked. ``tokens``: how many to generate. ``prompt_tokens``: how long the prompt is, 0 for one token. ``timeout_s``: for each
    question, from its first byte to its last.
    """

    url: str
    key: str = ""
    checks: Sequence[str] = CHECKS
    tokens: int = 1
    prompt_tokens: int = 0
    timeout_s: float = 120.0


@dataclass
class Endpoint:
    """What was answered. ``status``: HTTP's, of the question for tokens where it was asked, else of the last; -1 where no answer came.
    ``error``: what went wrong first, empty for nothing. Seconds; none of what was not asked or not answered.
    """

    url: str
    healthy: Optional[bool] = None
    model: Optional[str] = None
    served_models: Optional[list[str]] = None
    answered: Optional[bool] = None
    generated_tokens: Optional[int] = None
    first_token_s: Optional[float] = None
    total_s: Optional[float] = None
    max_total_num_tokens: Optional[int] = None
    status: int = _NO_ANSWER
    error: str = ""
    errors: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def probe(wish: Wish, opener: Opener, clock: Clock) -> Endpoint:
    """Asks one question after the other. Never raises for what a server does."""
    return _Probe(wish, opener, clock).run()


class _Probe:
    def __init__(self, wish: Wish, opener: Opener, clock: Clock) -> None:
        self._wish = wish
        self._opener = opener
        self._clock = clock
        self._base = wish.url.rstrip("/")
        self._found = Endpoint(self._base)

    def run(self) -> Endpoint:
        steps = {"health": self._health, "models": self._models, "info": self._info, "generate": self._generate}
        for check in CHECKS:
            if check in self._wish.checks:
                steps[check]()
        self._found.error = next(iter(self._found.errors.values()), "")
        return self._found

    def _health(self) -> None:
        said = self._ask("health", "/health")
        self._found.healthy = said is not None and said.status == HTTPStatus.OK

    def _models(self) -> None:
        said = self._ask("models", "/v1/models")
        cards = _get(said, "data")
        if isinstance(cards, list):
            self._found.served_models = [card["id"] for card in cards if isinstance(card, dict) and isinstance(card.get("id"), str)]
        elif said is not None and "models" not in self._found.errors:
            self._found.errors["models"] = "/v1/models: no list of models"

    def _info(self) -> None:
        said = None
        for path in _INFO:
            # a release without the one has the other
            self._found.errors.pop("info", None)
            said = self._ask("info", path)
            if said is None or said.status != HTTPStatus.NOT_FOUND:
                break
        model, tokens = _get(said, "model_path"), _get(said, "max_total_num_tokens")
        self._found.model = model if isinstance(model, str) else None
        self._found.max_total_num_tokens = tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None

    def _generate(self) -> None:
        begun = self._clock.now()
        self._found.answered = False
        if self._wish.tokens == 1 and self._wish.prompt_tokens == 0:
            said = self._ask("generate", _ONE_TOKEN)
            if said is not None and said.status == HTTPStatus.OK:
                self._found.answered, self._found.generated_tokens = True, 1
                self._found.first_token_s = round(self._clock.now() - begun, 3)
        else:
            self._stream(begun)
        self._found.total_s = round(self._clock.now() - begun, 3)

    def _stream(self, begun: float) -> None:
        sampling = {"max_new_tokens": self._wish.tokens, "temperature": 0, "ignore_eos": True}
        body = {"input_ids": [_PLAIN_TOKEN] * max(1, self._wish.prompt_tokens), "sampling_params": sampling, "stream": True}
        question = Question("POST", f"{self._base}/generate", body, self._wish.key, self._wish.timeout_s)
        made: Optional[int] = None
        try:
            answer = self._opener(question)
            self._found.status = answer.status
            if answer.status != HTTPStatus.OK:
                self._found.errors["generate"] = _wrong("/generate", Said(answer.status, answer.read().decode("utf-8", "replace"), None))
                return
            for line in answer.lines:
                piece = _piece(line)
                if self._clock.now() - begun > self._wish.timeout_s:
                    raise TimeoutError
                if "error" in piece:
                    self._found.errors["generate"] = f"/generate: {_words(piece['error'])}"
                    return
                count = _tokens(piece)
                if count and self._found.first_token_s is None:
                    self._found.first_token_s = round(self._clock.now() - begun, 3)
                made = count if count is not None else made
        except OSError as error:
            self._found.errors["generate"] = f"/generate: {plain(error)}"
        self._found.generated_tokens = made
        self._found.answered = made is not None and made >= self._wish.tokens
        if not self._found.answered and "generate" not in self._found.errors:
            self._found.errors["generate"] = f"/generate: asked for {self._wish.tokens} tokens, found {made or 'none'}"

    def _ask(self, check: str, path: str) -> Optional[Said]:
        """The answer, none where none came; one that is no success is an error of this check."""
        self._found.status = _NO_ANSWER
        try:
            said = ask(self._opener, Question("GET", self._base + path, key=self._wish.key, timeout_s=self._wish.timeout_s))
        except OSError as error:
            self._found.errors[check] = f"{path}: {plain(error)}"
            return None
        self._found.status = said.status
        if said.status != HTTPStatus.OK:
            self._found.errors[check] = _wrong(path, said)
        return said


def _wrong(path: str, said: Said) -> str:
    words = " ".join(_words(_error_of(said)).split())[:300]
    return f"{path}: HTTP {said.status}" + (f" {words}" if words else "")


def _error_of(said: Said) -> Any:
    try:
        content = json.loads(said.text) if said.content is None else said.content
    except ValueError:
        return said.text or _phrase(said.status)
    return content.get("error", content.get("detail", content)) if isinstance(content, dict) else said.text


def _words(error: Any) -> str:
    if isinstance(error, dict):
        return str(error.get("message", error))
    return str(error)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _get(said: Optional[Said], name: str) -> Any:
    fine = said is not None and said.status == HTTPStatus.OK and isinstance(said.content, dict)
    return said.content.get(name) if fine and said is not None else None


def _piece(line: bytes) -> Mapping[str, Any]:
    """One event of a stream, empty for what is none."""
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("data:"):
        return {}
    try:
        content = json.loads(text[len("data:") :])
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _tokens(piece: Mapping[str, Any]) -> Optional[int]:
    """How many tokens there are after this event."""
    meta = piece.get("meta_info")
    count = meta.get("completion_tokens") if isinstance(meta, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None
