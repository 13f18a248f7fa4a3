# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workers of SGLang's router, which newer releases call Model Gateway. Private to this collection: may change at any time.

What its releases do differently is data (``DIALECTS``). A worker that is removed finishes the requests it has, streams among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional
from urllib.parse import quote, urlsplit

from ansible_collections.inferops.sglang.plugins.module_utils._http import Opener, Question, Said, ask, plain
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

_POLL_S = 0.5
# the router's own work on what it was told: it answers 202 before it is done
_SETTLE_S = 30.0

# What the router shows of a worker and takes in the same words when one is added
_KEPT = (
    "priority", "cost", "worker_type", "bootstrap_port", "tokenizer_path", "reasoning_parser", "tool_parser", "chat_template",
    "disable_health_check",
)  # fmt: skip
# What the router takes where nobody said anything; once it is said, a label says so too
_UNSET = {"priority": 50, "cost": 1.0}
# Labels that the router writes itself, from what the worker says of itself; one that is given stands above what a new server says
_OWN_LABELS = (
    "model_path", "served_model_name", "model_id", "tp_size", "dp_size", "dp_rank", "dp_base_url", "priority", "cost", "server_version",
    "is_generation", "model_type", "architectures", "id2label", "num_labels", "is_embedding", "weight_version", "tokenizer_path",
    "max_context_length", "max_req_input_len", "has_image_understanding", "has_audio_understanding", "reasoning_parser", "tool_parser",
    "chat_template", "load_balance_method", "disaggregation_mode", "context_length", "max_total_tokens", "version", "hf_model_type",
)  # fmt: skip


class RouterError(Exception):
    """The message tells what was asked, what was found, and what to do."""


@dataclass(frozen=True)
class Worker:
    """``identity``: as the router addresses it. ``healthy``: none where this release does not say. ``restore``: what adds it again."""

    url: str
    identity: str
    healthy: Optional[bool]
    restore: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dialect:
    """One way in which releases list, add and remove workers. ``tells_health``: it says of each worker whether it is healthy."""

    name: str
    releases: str
    listing: str
    read: Callable[[Any], Optional[tuple[Worker, ...]]]
    removal: Callable[[str, Worker], Question]
    addition: Callable[[str, str, Mapping[str, Any], str], Question]


def _read_workers(content: Any) -> Optional[tuple[Worker, ...]]:
    listed = content.get("workers") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not all(isinstance(entry, dict) and isinstance(entry.get("url"), str) for entry in listed):
        return None
    return tuple(
        Worker(entry["url"], str(entry.get("id") or entry["url"]), entry.get("is_healthy") is True, _restore(entry)) for entry in listed
    )


def _read_urls(content: Any) -> Optional[tuple[Worker, ...]]:
    listed = content.get("urls") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not all(isinstance(url, str) for url in listed):
        return None
    return tuple(Worker(url, url, None) for url in listed)


def _restore(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody set of this worker by hand; what the server says of itself it is asked again."""
    told_of = entry.get("metadata")
    metadata: Mapping[str, Any] = told_of if isinstance(told_of, dict) else {}
    kept = {name: entry[name] for name in _KEPT if entry.get(name) is not None and (name in metadata or entry[name] != _UNSET.get(name))}
    labels = {name: value for name, value in metadata.items() if name not in _OWN_LABELS}
    if labels:
        kept["labels"] = labels
    model = entry.get("model_id")
    told = ("unknown", *(metadata.get(name) for name in ("served_model_name", "model_path", "model_id")))
    if model and model not in told:
        kept["model_id"] = model
    return kept


DIALECTS = (
    Dialect(
        "workers", "0.2.0 to 0.3.2", "/workers", _read_workers,
        lambda base, worker: Question("DELETE", f"{base}/workers/{quote(worker.identity, safe='')}"),
        lambda base, url, restore, key: Question("POST", f"{base}/workers", {"url": url, **restore, **({"api_key": key} if key else {})}),
    ),
    Dialect(
        "urls", "0.1.9", "/list_workers", _read_urls,
        lambda base, worker: Question("POST", f"{base}/remove_worker?url={quote(worker.url, safe='')}"),
        lambda base, url, _restore, _key: Question("POST", f"{base}/add_worker?url={quote(url, safe='')}", timeout_s=_SETTLE_S),
    ),
)  # fmt: skip
SUPPORTED = "sglang-router " + " and ".join(dialect.releases for dialect in reversed(DIALECTS))


@dataclass(frozen=True)
class Listing:
    """The workers of a router, and how this release of it is spoken to."""

    dialect: Dialect
    workers: tuple[Worker, ...]

    def find(self, url: str) -> Optional[Worker]:
        return next((worker for worker in self.workers if same(worker.url, url)), None)

    def others(self, url: str) -> int:
        """Workers beside this one that the router may send requests to."""
        return sum(not same(worker.url, url) and worker.healthy is not False for worker in self.workers)


@dataclass(frozen=True)
class Router:
    """A router by its address, and the key of its control plane, empty for none."""

    url: str
    opener: Opener
    key: str = ""
    clock: Clock = field(default_factory=Clock)

    @property
    def base(self) -> str:
        return self.url.rstrip("/")

    def workers(self) -> Listing:
        """Raises RouterError where there is no router, or none that is known here."""
        for dialect in DIALECTS:
            said = self._ask(Question("GET", self.base + dialect.listing), f"its workers ({dialect.listing})")
            if said.status == 404:
                continue
            workers = dialect.read(said.content) if said.status == 200 else None
            if workers is None:
                raise self._unexpected(f"its workers ({dialect.listing})", said)
            split = next((worker.url for worker in workers if "@" in worker.url), "")
            if split:
                raise RouterError(
                    f"router {self.url}: asked for its workers, found {split}, one of several replicas of a server (--dp-aware); "
                    "take the server out with tasks of your own (sglang_drain_tasks), or run the router without --dp-aware"
                )
            return Listing(dialect, workers)
        paths = " nor ".join(dialect.listing for dialect in DIALECTS)
        found = f"a server that knows neither {paths}"
        raise RouterError(f"router {self.url}: asked for its workers, found {found}; give the address of {SUPPORTED}")

    def remove(self, listing: Listing, worker: Worker) -> None:
        """The worker gets no new request once this returns. Raises RouterError."""
        what = f"to take {worker.url} out"
        self._tell(listing.dialect.removal(self.base, worker), what)
        outcome = wait_until(self.workers, lambda now: now.find(worker.url) is None, _SETTLE_S, _POLL_S, self.clock)
        if not outcome.ok:
            raise RouterError(
                f"router {self.url}: asked {what}, found it still listed after {_SETTLE_S:g} s; look at the router's log, "
                "it may have been told by somebody else to add it"
            )

    def add(self, listing: Listing, url: str, restore: Mapping[str, Any], key: str, timeout_s: float) -> float:
        """The worker is listed and healthy once this returns, after so many seconds. Raises RouterError."""
        what = f"to take {url} in"
        said = self._tell(listing.dialect.addition(self.base, url, restore, key), what)
        return self.wait_healthy(url, timeout_s, self._job(said))

    def wait_healthy(self, url: str, timeout_s: float, job: str = "") -> float:
        """Seconds until the router lists the worker as healthy. ``job``: where the router tells how its work on it goes."""
        last: list[str] = [""]

        def look() -> bool:
            worker = self.workers().find(url)
            last[0] = "no such worker" if worker is None else "" if worker.healthy is not False else "it listed as not healthy"
            if worker is None and job:
                self._failed_job(job, url)
            return last[0] == ""

        outcome = wait_until(look, bool, timeout_s, _POLL_S, self.clock)
        if outcome.ok:
            return outcome.elapsed_s
        raise RouterError(
            f"router {self.url}: asked for {url} to be healthy within {timeout_s:g} s, found {last[0]}; "
            f"look whether the router reaches {url}/health, and at its --health-check-interval-secs"
        )

    def _job(self, said: Said) -> str:
        location = said.content.get("location") if isinstance(said.content, dict) else None
        return location if isinstance(location, str) and location.startswith("/workers/") else ""

    def _failed_job(self, job: str, url: str) -> None:
        said = self._ask(Question("GET", self.base + job), f"how it goes with {url}")
        status = said.content.get("job_status") if isinstance(said.content, dict) else None
        if isinstance(status, dict) and status.get("status") == "failed":
            words = " ".join(str(status.get("message") or "no reason").split())[:300]
            do = f"look whether the router reaches {url}/health"
            raise RouterError(f"router {self.url}: asked to take {url} in, found that it gave up: {words}; {do}")

    def _tell(self, question: Question, what: str) -> Said:
        said = self._ask(question, what)
        if said.status not in (200, 201, 202):
            raise self._unexpected(what, said)
        return said

    def _ask(self, question: Question, what: str) -> Said:
        known = Question(question.method, question.url, question.body, self.key, question.timeout_s)
        try:
            return ask(self.opener, known)
        except OSError as error:
            raise RouterError(
                f"router {self.url}: asked {what if what.startswith('to ') else 'for ' + what}, found {plain(error)}; "
                "start the router, mend its address in sglang_balancers, or take the entry out"
            ) from error

    def _unexpected(self, what: str, said: Said) -> RouterError:
        do = f"look at the router's log; it has to be {SUPPORTED}"
        if said.status in (401, 403):
            do = "give the key of its control plane as api_key_file" + (", the one given has no such right" if self.key else "")
        return RouterError(f"router {self.url}: asked {what if what.startswith('to ') else 'for ' + what}, found {said.brief}; {do}")


def same(url: str, other: str) -> bool:
    """The same address, written in another way perhaps."""
    return _plain_url(url) == _plain_url(other)


def _plain_url(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    return parts.scheme.lower(), (parts.hostname or "").lower(), port if port is not None else {"https": 443}.get(parts.scheme.lower(), 80)
