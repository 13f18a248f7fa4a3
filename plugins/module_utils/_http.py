# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to servers of the own network. Private to this collection: may change at any time.

No proxy is asked and no redirect is followed, so that a key goes where it was meant to go and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

# what a server says of itself is some kilobytes; a whole answer is never longer than this
_MOST_BYTES = 16 << 20
# a key that is sent in a header has one line without spaces around it
_KEY = re.compile(r"[\x21-\x7e]+")
_DO = "write the key alone into it, on one line, mode 0600"
_PROTOCOL = (http.client.HTTPException,)


@dataclass(frozen=True)
class Question:
    """``body`` is sent as JSON. ``timeout_s``: seconds that the server may be silent."""

    method: str
    url: str
    body: Optional[Mapping[str, Any]] = None
    key: str = ""
    timeout_s: float = 10.0

    @property
    def headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "inferops.sglang"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        return headers


@dataclass(frozen=True)
class Answer:
    """``lines`` come as the server sends them and can be read once."""

    status: int
    lines: Iterable[bytes] = field(default_factory=tuple)

    def read(self) -> bytes:
        """The whole body. Raises OSError where the server falls silent in it."""
        return b"".join(self.lines)


@dataclass(frozen=True)
class Said:
    """An answer that is read: its status, its text, and what the text is as JSON, none where it is not JSON."""

    status: int
    text: str
    content: Any

    @property
    def brief(self) -> str:
        """The status with the server's own words, for people."""
        words = " ".join(self.text.split())
        return f"status {self.status}" + (f" ({words[:200]})" if words else "")


# raises OSError where no answer comes
Opener = Callable[[Question], Answer]


class KeyFileError(Exception):
    """A file has no key in it; the message tells what was asked, found, and what to do."""


def ask(opener: Opener, question: Question) -> Said:
    """Raises OSError where no answer comes."""
    answer = opener(question)
    text = answer.read().decode("utf-8", "replace")
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    return Said(answer.status, text, content)


def read_key(path: str, what: str) -> str:
    """The key in this file, empty for no file. Raises KeyFileError, which never repeats the key."""
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as stream:
            key = stream.read(65536).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"asked for {what} in {path}, found {plain(error)}; {_DO}") from error
    if not _KEY.fullmatch(key):
        found = "nothing in it" if not key else f"{len(key.splitlines())} lines or spaces in it"
        raise KeyFileError(f"asked for {what} in {path}, found {found}; {_DO}")
    return key


def opener(validate_certs: bool = True) -> Opener:
    """Answers of the network."""
    context = ssl.create_default_context()
    if not validate_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    director = urllib.request.OpenerDirector()
    # these alone: no proxy, no redirect
    for handler in (
        urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(),
    ):  # fmt: skip
        director.add_handler(handler)

    def open_it(question: Question) -> Answer:
        data = None if question.body is None else json.dumps(question.body).encode()
        request = urllib.request.Request(question.url, data=data, headers=question.headers, method=question.method)
        try:
            response = director.open(request, timeout=question.timeout_s)
        except urllib.error.HTTPError as error:
            return Answer(error.code, _lines(error))
        except urllib.error.URLError as error:
            raise error.reason if isinstance(error.reason, OSError) else OSError(str(error.reason)) from error
        except (ValueError, *_PROTOCOL) as error:
            raise OSError(f"no HTTP: {error or type(error).__name__}") from error
        return Answer(response.status, _lines(response))

    return open_it


def plain(error: BaseException) -> str:
    """Why no answer came, in a few words."""
    if isinstance(error, (socket.timeout, TimeoutError)):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "no address for that name"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"a certificate that is not trusted ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__


def refused(error: Optional[BaseException]) -> bool:
    """Nobody listens there: nothing can be under way either."""
    return isinstance(error, ConnectionRefusedError)


def is_away(error: Optional[BaseException]) -> bool:
    """Nothing is there yet: nobody listens, or the name has no address. Silence, a certificate or a missing right is something else."""
    return refused(error) or (isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME)


def _lines(response: Any) -> Iterator[bytes]:
    read = 0
    try:
        for line in response:
            read += len(line)
            if read > _MOST_BYTES:
                raise OSError(f"an answer of more than {_MOST_BYTES:,} bytes")
            yield line
    except _PROTOCOL as error:
        raise OSError(f"the answer ended early: {error or type(error).__name__}") from error
    finally:
        response.close()
