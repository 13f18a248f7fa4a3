# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model hub says of a repository: commit, files, and whether they can be had. Private to this collection: may change at any time.

Standard library only: this is asked before there is an environment with the hub's own client. Requests go through an injected opener.
A token is sent to the endpoint alone, never to where it redirects.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional
from urllib.parse import quote, urljoin, urlsplit

from ansible_collections.inferops.sglang.plugins.module_utils._finding import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

CHECK = "model_source"
TIMEOUT_S = 30
_TRIES = 6
# where nobody answers at all, that is soon certain
_TRIES_IN_SILENCE = 4
_REDIRECTS = 5
# the hub counts requests in windows of five minutes
_LONGEST_WAIT_S = 300.0
_MAX_ANSWER = 64 << 20
_RESET = re.compile(r"\bt=(\d+)")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")

# What serving reads: weights, configuration, tokenizer, code of the model's own, chat templates
_KINDS = (".safetensors", ".json", ".jsonl", ".model", ".tiktoken", ".py", ".jinja", ".txt", ".bpe", ".vocab")
# The same weights in forms that SGLang does not load
_OTHER_FORMS = ("original/", "onnx/", "gguf/", "openvino/", "metal/")


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """``headers`` by names in lower case; a body of HEAD is empty."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


# raises OSError where no answer comes
Opener = Callable[[Request], Response]


@dataclass(frozen=True)
class SourceFile:
    """``size`` in bytes; ``identity`` is C(sha256:HEX) of the content or C(git:HEX) of git's blob, empty where only the size is known."""

    name: str
    size: int
    identity: str = ""


@dataclass(frozen=True)
class Snapshot:
    """One commit of a repository and the files of it that serving needs, by name."""

    repository: str
    commit: str
    files: tuple[SourceFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


class SourceError(Exception):
    """A model cannot be had from its source; C(finding) tells what was asked, found, and what to do."""

    def __init__(self, asked: str, found: str, do: str, check: str = CHECK) -> None:
        super().__init__(f"asked for {asked}, found {found}; {do}")
        self.finding = Finding(check, asked, found, do)


@dataclass(frozen=True)
class Hub:
    """A hub by its endpoint, with the token of ``token_file`` (empty for none). ``patience_s``: seconds it may ask to wait, in all."""

    endpoint: str
    opener: Opener
    token_file: str = ""
    clock: Clock = field(default_factory=Clock)
    patience_s: float = _LONGEST_WAIT_S

    def snapshot(self, repository: str, revision: str) -> Snapshot:
        """The commit behind a revision (empty: main) and its files, which are checked to be had. Raises SourceError."""
        asked = f"{repository} at revision {revision or 'main'}"
        url = f"{self._base}/api/models/{repository}/revision/{quote(revision or 'main', safe='')}?blobs=true"
        answer = self._ask("GET", url, asked)
        commit, files = _content(answer, asked, self.endpoint)
        needed = wanted(files)
        if not any(file.name.endswith(".safetensors") for file in needed):
            raise SourceError(
                asked, f"no safetensors file among its {len(files)} files",
                "name a repository that has the weights as safetensors, which SGLang loads and the plan reads",
            )  # fmt: skip
        # a gated repository shows its files to everybody, and gives them to few
        first = min(needed, key=lambda file: (file.name != "config.json", file.size))
        self._ask("HEAD", f"{self._base}/{repository}/resolve/{commit}/{quote(first.name)}", asked)
        return Snapshot(repository, commit, needed)

    @property
    def _base(self) -> str:
        return self.endpoint.rstrip("/")

    def _ask(self, method: str, url: str, asked: str) -> Response:
        """An answer below 400; redirects of a GET are followed on the same host, those of a HEAD lead to the content."""
        token = read_token(self.token_file)
        headers = {"User-Agent": "inferops.sglang", "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        for _redirect in range(_REDIRECTS):
            answer = self._patiently(Request(method, url, headers), asked)
            target = urljoin(url, answer.headers.get("location", url))
            if answer.status >= 400:
                raise _refused(answer, asked, self, bool(token))
            if answer.status < 300 or method == "HEAD":
                return answer
            if urlsplit(target)[:2] != urlsplit(url)[:2]:
                raise SourceError(asked, f"that {self.endpoint} sends on to {target}", "give the address that answers by itself")
            url = target
        raise SourceError(asked, f"more than {_REDIRECTS} redirects from {self.endpoint}", "give the address that answers by itself")

    def _patiently(self, request: Request, asked: str) -> Response:
        """The answer, asked again where the hub is busy; its own word for how long to wait counts."""
        waited, silent, reason = 0.0, 0, ""
        for attempt in range(_TRIES):
            try:
                answer = self.opener(request)
            except OSError as error:
                answer, reason, silent = Response(0), _reason(error), silent + 1
            if answer.status not in (0, 408, 429, 500, 502, 503, 504):
                return answer
            pause = retry_after(answer.headers) if retry_after(answer.headers) is not None else min(2.0**attempt, 30.0)
            if attempt == _TRIES - 1 or silent == _TRIES_IN_SILENCE or waited + (pause or 0.0) > self.patience_s:
                break
            self.clock.sleep(pause or 0.0)
            waited += pause or 0.0
        tries = f"{attempt + 1} tries over {waited:.0f} s"
        if answer.status == 429:
            wait = f", which asks to wait {pause:.0f} s" if pause else ""
            raise SourceError(
                asked, f"too many requests (429) from {self.endpoint}{wait}, after {tries}",
                "run again later, or give token_file (sglang_hub_token_file): the hub allows more to an account than to an address",
            )  # fmt: skip
        found = f"no answer ({reason})" if answer.status == 0 else f"the server's error {answer.status}"
        raise SourceError(
            asked, f"{found} from {self.endpoint}, after {tries}",
            "open the way there (route, name service, proxy in the task's environment), give another endpoint (sglang_hub_endpoint), "
            "or take the model from a directory or by rsync",
        )  # fmt: skip


def is_repository(text: str) -> bool:
    return _REPOSITORY.fullmatch(text) is not None


def is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None


def read_token(path: str) -> str:
    """The token in a file, empty where no file is named. Raises SourceError for a file that is not one, or that others can read."""
    if not path:
        return ""
    asked = f"the token in {path}"
    try:
        mode = os.stat(path).st_mode
        with open(path, encoding="utf-8") as stream:
            text = stream.read(4097).strip() if stat.S_ISREG(mode) else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(asked, _reason(error), "put the hub's token into that file on this host, owner root, mode 0600") from None
    if mode & 0o077:
        raise SourceError(asked, f"mode {stat.S_IMODE(mode):04o}, so that others can read it", f"chmod 0600 {path}")
    if not text or len(text.split()) != 1 or len(text) > 4096 or not text.isprintable():
        raise SourceError(asked, "no token, which is one word", "put the hub's token into that file, and nothing else")
    return text


def retry_after(headers: Mapping[str, str]) -> Optional[float]:
    """Seconds that an answer asks to wait, by C(Retry-After) or by the hub's own C(RateLimit); None where it does not say."""
    plain = headers.get("retry-after", "").strip()
    if plain.isascii() and plain.isdigit():
        return float(plain)
    found = _RESET.search(headers.get("ratelimit", ""))
    return float(found[1]) if found else None


def wanted(files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    """The files that serving needs: no weights in other forms, and no second copy of the weights."""
    kept = [file for file in files if serves(file.name)]
    usual = any(file.name.startswith("model") and file.name.endswith((".safetensors", ".safetensors.index.json")) for file in kept)
    return tuple(file for file in kept if not (usual and file.name.startswith("consolidated")))


def serves(name: str) -> bool:
    """Whether a server reads a file of this name."""
    if any(part.startswith(".") for part in name.split("/")) or name.startswith(_OTHER_FORMS):
        return False
    # SGLang loads weights from the folder itself only
    if name.endswith((".safetensors", ".safetensors.index.json")):
        return "/" not in name
    return name.endswith(_KINDS) or name.rsplit("/", 1)[-1].startswith("tokenizer")


def _content(answer: Response, asked: str, endpoint: str) -> tuple[str, tuple[SourceFile, ...]]:
    try:
        content = json.loads(answer.body.decode("utf-8"))
        commit = content["sha"]
        files = tuple(sorted((_file(entry) for entry in content["siblings"]), key=lambda file: file.name))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceError(
            asked, f"an answer of {endpoint} that is no description of a model ({type(error).__name__})",
            "give the address of a hub, or of a mirror that speaks its interface, and look whether a proxy answers in its place",
        ) from None  # fmt: skip
    if not isinstance(commit, str) or not is_commit(commit):
        raise SourceError(asked, f"no commit in the answer of {endpoint}", "give the address of a hub that names commits")
    return commit, files


def _file(entry: Mapping[str, Any]) -> SourceFile:
    name, large = entry["rfilename"], entry.get("lfs")
    if not isinstance(name, str) or not _safe(name):
        raise ValueError("a file's name that leads out of its folder")
    size = large["size"] if large else entry["size"]
    if not isinstance(size, int) or size < 0:
        raise ValueError("a size that is none")
    # a mirror may know no more than the size
    blob = entry.get("blobId")
    identity = f"sha256:{large['sha256']}" if large else f"git:{blob}" if blob else ""
    return SourceFile(name, size, identity)


def _safe(name: str) -> bool:
    return bool(name) and name.isprintable() and not name.startswith("/") and not {"", ".", ".."} & set(name.split("/"))


def _refused(answer: Response, asked: str, hub: Hub, has_token: bool) -> SourceError:
    """Why the hub gives nothing: its code for the error decides, then the status."""
    code, said = answer.headers.get("x-error-code", ""), answer.headers.get("x-error-message", "")
    repository = asked.split(" ", 1)[0]
    page = f"{hub.endpoint.rstrip('/')}/{repository}"
    use = f"the token in {hub.token_file}" if has_token else "no token"
    if code == "GatedRepo":
        todo = (
            f"accept its conditions at {page} with the account of that token, and let the token read gated repositories"
            if has_token
            else f"accept its conditions at {page}, and name a file with that account's token in token_file (sglang_hub_token_file)"
        )
        found = f"a gated repository that {use} does not open" if has_token else "a gated repository and no token"
        return SourceError(asked, f"{found} ({answer.status})", todo)
    if answer.status == 401 and has_token and code != "RepoNotFound":
        return SourceError(asked, f"that {hub.endpoint} does not know {use} (401)", "put a token that is valid into the file")
    if code == "RevisionNotFound":
        return SourceError(asked, f"the repository {repository} without that revision ({answer.status})",
                           f"give a commit, branch or tag of {page} as revision")  # fmt: skip
    if code == "RepoNotFound" or answer.status in (401, 404):
        return SourceError(
            asked, f"no such repository for {use} ({answer.status})",
            f"look for the name at {page}; if it is private, give the token of an account that may read it "
            "in token_file (sglang_hub_token_file)",
        )  # fmt: skip
    return SourceError(asked, f"status {answer.status}{f' ({said})' if said else ''} from {hub.endpoint}", f"look at {page} in a browser")


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", None)
    while isinstance(inner, Exception):
        error, inner = inner, getattr(inner, "reason", None)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **more: Any) -> None:
        """Leads nowhere: the answer is taken as it is."""


def open_url(request: Request) -> Response:
    """One request by the standard library, through the proxies of the environment; redirects come back as they are."""
    opener = urllib.request.build_opener(_NoRedirect)
    wire = urllib.request.Request(request.url, headers=dict(request.headers), method=request.method)
    try:
        with opener.open(wire, timeout=TIMEOUT_S) as stream:
            return Response(stream.status, _lower(stream.headers), stream.read(_MAX_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, _lower(error.headers), error.read(_MAX_ANSWER))
    except (socket.timeout, TimeoutError) as error:
        raise OSError(f"none within {TIMEOUT_S} s") from error
    except ValueError as error:
        # an address that is none
        raise OSError(str(error)) from error


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}
