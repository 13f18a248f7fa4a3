# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a directory hold a complete checkpoint from a source. Private to this collection: may change at any time.

What is there and is what was asked costs a look at headers and at a record: no network, no unit. Everything else is a long step, which
outlives whoever asked for it; a later call joins it, or finishes what it left.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._checkpoint import GIB, Checkpoint, read_checkpoint
from ansible_collections.inferops.sglang.plugins.module_utils._config import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_record import (
    RECORD,
    WORK,
    Record,
    Stamp,
    Standing,
    is_begun,
    read_record,
    standing,
)
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_sources import (
    Offer,
    directory_offer,
    hub_offer,
    kind_of,
    parts_bytes,
    read_manifest,
    rsync_offer,
)
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_swap import Places, finish, locked, places
from ansible_collections.inferops.sglang.plugins.module_utils._fetch_worker import ANSWER, gib
from ansible_collections.inferops.sglang.plugins.module_utils._hub import Hub, Opener, SourceError, is_commit, read_token
from ansible_collections.inferops.sglang.plugins.module_utils._long_step import (
    ABSENT,
    DONE,
    RUNNING,
    LongStep,
    StepState,
    forget,
    look,
    start_or_join,
)
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock, wait_until

_SLACK = 16 << 20
_POLL_S = 0.5
# without other news
_NEWS_S = 60.0
# what a program that goes out into the world takes from the environment of the task
_PASSED_ON = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir", "requests_ca_bundle", "curl_ca_bundle")
_CLIENT = {
    "HF_HUB_OFFLINE": "0",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_HUB_DOWNLOAD_TIMEOUT": "60",
}


@dataclass(frozen=True)
class Wish:
    """What is asked of a host. ``python`` has the hub's client, ``timeout_s`` limits the step.

    ``peer_url`` is the rsync address of a host that gives its copy in the source's place, ``peer_secret`` the word that it asks for.
    """

    path: str
    source: str
    revision: str = ""
    endpoint: str = ""
    token_file: str = ""
    manifest: str = ""
    python: str = ""
    timeout_s: int = 0
    peer_url: str = ""
    peer_secret: str = ""
    peer_name: str = ""


@dataclass(frozen=True)
class Tools:
    """How the world is reached; tests bring their own. ``today``: the time in UTC as text, ``worker``: the source of the worker."""

    run: Runner
    opener: Opener
    worker: str
    clock: Clock = field(default_factory=Clock)
    today: Callable[[], str] = lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    patience_s: float = 300.0


@dataclass
class Seen:
    """What stands at the path. ``checkpoint`` is none where there is no checkpoint at all."""

    checkpoint: Optional[Checkpoint]
    problems: list[str]
    standing: Standing

    @property
    def complete(self) -> bool:
        return self.checkpoint is not None and self.checkpoint.complete


def unit_of(path: str) -> str:
    """The name of the step that fills a directory: one for each directory of a host."""
    return f"inferops-model-{hashlib.sha256(places(path).path.encode()).hexdigest()[:12]}"


class Fetch:
    """One wish on one host."""

    def __init__(self, wish: Wish, tools: Tools) -> None:
        self.wish, self.tools = wish, tools
        self.where: Places = places(wish.path)
        self.unit = unit_of(wish.path)
        self.mended: list[str] = []

    # ---- what a caller asks for

    def check(self, expected_bytes: int = 0) -> dict[str, Any]:
        """What would be done, without doing it. Raises SourceError.

        With ``expected_bytes`` no source is asked: another host knows how much it is.
        """
        seen = self._see()
        if self._is_settled(seen):
            return self._result(seen, changed=is_begun(self.where.path))
        self._check_place()
        if self._step().state == RUNNING:
            return self._result(seen, changed=True)
        if expected_bytes:
            here = sum(_tree(place) for place in (self.where.fetching, self.where.path))
            offer = Offer({}, expected_bytes, max(expected_bytes - here, 0))
        elif self.wish.peer_url:
            offer = Offer({}, 0, 0)
        else:
            offer = self._offer()
            if self._is_same_commit(seen, offer):
                return self._result(seen, changed=False)
        self._check_space(offer.missing_bytes)
        if self.wish.manifest:
            read_manifest(self.wish.manifest)
        result = self._result(seen, changed=True)
        return {**result, "revision": offer.commit, "total_gib": _gib(offer.total_bytes), "missing_gib": _gib(offer.missing_bytes)}

    def make(self, since: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
        """Does it. Raises SourceError, LongStepError.

        With ``since`` it comes back with C(progress) as soon as there is news, to be called again with that.
        """
        self._mend()
        seen = self._see()
        if self._is_settled(seen):
            return self._result(seen, changed=bool(self.mended))
        # a step that was only joined may have ended for reasons that are over: a giver that went away, a disk that was full
        ours = bool(since and since.get("started"))
        step = self._step()
        if step.state == RUNNING and not self._is_for_this():
            forget(self.unit, self.tools.run)
            step = StepState(ABSENT)
        if not (step.state == RUNNING or ours or (step.state == DONE and self._has_result())):
            offer = self._offer()
            if self._is_same_commit(seen, offer):
                return self._renamed(seen)
            step, ours = self._start(offer), True
        if step.state == RUNNING:
            step, progress = self._wait(since, ours)
            if progress is not None:
                return {"changed": True, "progress": progress, "now": progress, "directory": self.where.path, "polls": 1}
        if step.state != DONE:
            raise self._failed(look(self.unit, self.tools.run))
        return self._finish()

    def _is_same_commit(self, seen: Seen, offer: Offer) -> bool:
        """Whether another name of the revision stands for what is there."""
        found = seen.standing
        same = bool(offer.commit) and (found.source, found.commit) == (self.wish.source, offer.commit)
        return same and not found.own and not seen.problems

    def _renamed(self, seen: Seen) -> dict[str, Any]:
        record = read_record(self.where.path)
        if record is not None:
            _write(os.path.join(self.where.path, RECORD), replace(record, revision=self.wish.revision).text(), 0o644)
        return self._result(seen, changed=False)

    # ---- what stands there

    def _see(self) -> Seen:
        path = self.where.path
        if os.path.lexists(path) and not os.path.isdir(path):
            raise SourceError(f"a checkpoint at {path}", "a file", "give a directory as path", "model_path")
        try:
            checkpoint = read_checkpoint(path) if os.path.isdir(path) else None
            problems = list(checkpoint.problems) if checkpoint else [f"{path} does not exist"]
        except InputError as error:
            checkpoint, problems = None, [error.found]
        if checkpoint is not None and not os.path.isfile(os.path.join(path, "config.json")):
            problems.append("config.json: missing")
        complete = checkpoint is not None and not problems
        found = standing(path, complete, self.wish.source, self.wish.revision)
        return Seen(checkpoint, problems, found)

    def _is_settled(self, seen: Seen) -> bool:
        if seen.standing.refusal:
            raise SourceError(
                f"{self.wish.source} at revision {self.wish.revision} in {self.where.path}",
                seen.standing.refusal,
                f"give {seen.standing.commit} as revision if that is what shall run, another path, or move that directory away",
                "model_path",
            )
        return seen.standing.settled and not seen.problems

    def _mend(self) -> None:
        """Finishes what a killed run left; what was fetched for another wish is material for this one."""
        if not is_begun(self.where.path):
            return
        fetched = read_record(self.where.fetching)
        with locked(self.where):
            begun = os.path.isdir(self.where.replaced) and not os.path.isdir(self.where.path)
            if fetched is not None and not begun and not fetched.answers(self.wish.source, self.wish.revision):
                os.unlink(os.path.join(self.where.fetching, RECORD))
            self.mended = finish(self.where)

    def _check_place(self) -> None:
        where, path = self.where, self.where.path
        if os.path.ismount(path):
            raise SourceError(
                f"a checkpoint at {path}", "a mount point, which nothing can be moved to",
                f"give a directory on it, for example {os.path.join(path, 'model')}", "model_path",
            )  # fmt: skip
        parent = _existing(where.parent)
        if not os.access(parent, os.W_OK):
            raise SourceError(
                f"a checkpoint at {path}", f"that {parent} cannot be written to", "give a path on a file system that can be", "model_path"
            )

    def _check_space(self, missing: int) -> None:
        free = self._free()
        if missing and missing + _SLACK > free:
            raise SourceError(
                f"{self.wish.source} in {self.where.path}",
                f"{gib(missing)} missing and {gib(free)} free on its file system",
                f"free {gib(missing + _SLACK - free)} there, or give a path on a larger file system",
                "model_disk",
            )

    def _free(self) -> int:
        disk = os.statvfs(_existing(self.where.parent))
        return disk.f_bavail * disk.f_frsize

    # ---- the source

    def _offer(self) -> Offer:
        wish, fetching = self.wish, self.where.fetching
        stands = self.where.path if os.path.isdir(self.where.path) else ""
        if wish.peer_url:
            return rsync_offer(wish.peer_url, fetching, stands, self.tools.run, self._secret())
        kind = kind_of(wish.source)
        if kind == "hub":
            hub = Hub(wish.endpoint, self.tools.opener, wish.token_file, self.tools.clock, self.tools.patience_s)
            record = read_record(stands)
            # what was lost of a checkpoint comes from the commit that it is of, wherever its branch is now
            kept = record.commit if record and record.answers(wish.source, wish.revision) else ""
            return hub_offer(hub, wish.source, kept or wish.revision, fetching, stands)
        if kind == "directory":
            return directory_offer(wish.source, self.where.path, fetching, stands)
        return rsync_offer(wish.source, fetching, stands, self.tools.run)

    def _secret(self) -> str:
        """The word that a peer asks for, where rsync can read it and nobody else."""
        path = os.path.join(self._work(), "secret")
        _write(path, self.wish.peer_secret + "\n", 0o600)
        return path

    def _asked(self) -> dict[str, str]:
        return {"source": self.wish.source, "revision": self.wish.revision}

    def _is_for_this(self) -> bool:
        """Whether what runs was started for the same wish; from whom it comes does not matter."""
        return _read_json(os.path.join(self.where.fetching, WORK, "asked.json")) == self._asked()

    def _has_result(self) -> bool:
        return self._is_for_this() and bool(_read_json(os.path.join(self.where.fetching, WORK, "result.json")))

    # ---- the step

    def _step(self) -> StepState:
        return look(self.unit, self.tools.run, lines=0)

    def _work(self) -> str:
        place = os.path.join(self.where.fetching, WORK)
        try:
            os.makedirs(self.where.fetching, 0o755, exist_ok=True)
            os.makedirs(place, 0o700, exist_ok=True)
        except OSError as error:
            raise SourceError(
                f"a checkpoint at {self.where.path}", f"{error.strerror} at {error.filename}",
                "give a path that can be written to", "model_path",
            ) from None  # fmt: skip
        return place

    def _start(self, offer: Offer) -> StepState:
        wish = self.wish
        self._check_place()
        manifest = read_manifest(wish.manifest) if wish.manifest else {}
        self._check_space(offer.missing_bytes)
        is_hub = offer.job["kind"] == "hub"
        python = wish.python if is_hub and wish.python else sys.executable
        if is_hub and not os.access(python, os.X_OK):
            raise SourceError(
                f"{wish.source} by the hub's client", f"no program {python}", "give an interpreter that has huggingface_hub as python"
            )
        token = {"token": wish.token_file} if is_hub and read_token(wish.token_file) else {}
        place = self._work()
        record = read_record(self.where.path)
        job = {
            "directory": self.where.fetching,
            "source": {**offer.job, "here_bytes": _tree(self.where.fetching)},
            "standing": self.where.path if os.path.isdir(self.where.path) else "",
            "files": [[file.name, file.size, file.identity] for file in offer.files],
            "stamps": {name: [stamp.size, stamp.mtime_ns, stamp.identity] for name, stamp in record.files.items()} if record else {},
            "carried": _own_files(self.where.path, record, {file.name for file in offer.files}),
            "manifest": manifest,
            "manifest_path": wish.manifest,
        }
        for name in ("result.json", "giver.json", "state.json"):
            _remove(os.path.join(place, name))
        _write(os.path.join(place, "worker.py"), self.tools.worker)
        _write(os.path.join(place, "job.json"), json.dumps(job))
        _write(os.path.join(place, "environment"), self._environment(place), 0o600)
        _write(os.path.join(place, "asked.json"), json.dumps(self._asked()))
        _write(os.path.join(place, "commit.json"), json.dumps({"commit": offer.commit, "via": wish.peer_name if wish.peer_url else ""}))
        return start_or_join(
            LongStep(
                unit=self.unit,
                argv=(python, os.path.join(place, "worker.py"), os.path.join(place, "job.json")),
                description=f"Fetches {wish.source} into {self.where.path}",
                credentials=token,
                timeout_s=wish.timeout_s,
                environment_file=os.path.join(place, "environment"),
            ),
            self.tools.run,
        )

    def _environment(self, place: str) -> str:
        """In a file, as a proxy's address may hold a password."""
        taken = {name: value for name, value in self.tools.environment.items() if name.lower() in _PASSED_ON and "\n" not in value}
        values = {**taken, **_CLIENT, "HF_HOME": os.path.join(place, "home"), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return "".join(f"{name}={_quoted(value)}\n" for name, value in values.items())

    def _wait(self, since: Optional[Mapping[str, Any]], ours: bool) -> tuple[StepState, Optional[dict[str, Any]]]:
        """The step once it has ended, or what is new about it where somebody wants to know."""
        known = since or {}
        outcome = wait_until(
            look=lambda: (self._step(), self._progress(ours)),
            done=lambda value: value[0].state != RUNNING or (since is not None and _is_news(known, value[1])),
            timeout_s=_NEWS_S if since is not None else float("inf"),
            interval_s=_POLL_S,
            clock=self.tools.clock,
        )
        step, progress = outcome.value
        if step.state == RUNNING:
            return step, progress
        return look(self.unit, self.tools.run), None

    def _progress(self, ours: bool) -> dict[str, Any]:
        state = _read_json(os.path.join(self.where.fetching, WORK, "state.json"))
        here, missing = _tree(self.where.fetching), state.get("missing_bytes") or 0
        # what was there before this step counts for nothing
        percent = min(100 * here // missing, 100) if missing else None
        return {"started": ours, "stage": state.get("stage", "starts"), "fetched_gib": _gib(here), "percent": percent}

    def _failed(self, step: StepState) -> SourceError:
        asked = f"{self.wish.source}{f' at revision {self.wish.revision}' if self.wish.revision else ''} in {self.where.path}"
        if self.wish.peer_url:
            asked += f" from {self.wish.peer_name or self.wish.peer_url}"
        for line in reversed(step.last_lines):
            if line.startswith(ANSWER):
                said = json.loads(line[len(ANSWER) :])
                return SourceError(asked, said["found"], said["do"], said["check"])
        last = f"; its last line is {step.last_lines[-1]!r}" if step.last_lines else ""
        return SourceError(asked, f"{step.sentence()}{last}", f"look at journalctl -u {self.unit}, and run again: what came is kept")

    # ---- the end

    def _finish(self) -> dict[str, Any]:
        fetching, place = self.where.fetching, os.path.join(self.where.fetching, WORK)
        result, origin = _read_json(os.path.join(place, "result.json")), _read_json(os.path.join(place, "commit.json"))
        try:
            found = read_checkpoint(fetching)
            problems = list(found.problems)
        except InputError as error:
            problems = [error.found]
        if not os.path.isfile(os.path.join(fetching, "config.json")):
            problems.append("config.json: missing")
        forget(self.unit, self.tools.run)
        giver = _read_json(os.path.join(place, "giver.json"))
        commit = origin.get("commit") or giver.get("commit") or ""
        if is_commit(self.wish.revision) and commit and commit != self.wish.revision:
            problems.append(f"commit {commit} where {self.wish.revision} was asked")
        if problems:
            raise SourceError(
                f"a complete checkpoint from {self.wish.source}", "; ".join(problems),
                f"complete the source; what came is in {fetching}, and what stood at {self.where.path} before still does",
            )  # fmt: skip
        record = Record(
            source=self.wish.source,
            revision=self.wish.revision or ("main" if self.wish.source.startswith("hub:") else ""),
            commit=commit,
            fingerprint=found.fingerprint,
            when=self.tools.today(),
            via=origin.get("via", ""),
            files={name: Stamp(*entry) for name, entry in result.get("files", {}).items()},
        )
        with locked(self.where):
            _write(os.path.join(fetching, RECORD), record.text(), 0o644)
            finish(self.where)
        return {**self._result(self._see(), changed=True), "fetched_gib": _gib(result.get("fetched_bytes", 0))}

    def _result(self, seen: Seen, changed: bool) -> dict[str, Any]:
        checkpoint, found = seen.checkpoint, seen.standing
        return {
            "changed": changed,
            "directory": self.where.path,
            "complete": checkpoint is not None and not seen.problems,
            "settled": found.settled and not seen.problems and not is_begun(self.where.path),
            "problems": seen.problems,
            "fingerprint": checkpoint.fingerprint if checkpoint else "",
            "total_gib": _gib(checkpoint.total_bytes if checkpoint else 0),
            "source": found.source,
            "revision": found.commit,
            "own": found.own,
            "fetched_gib": 0.0,
            "missing_gib": 0.0,
            "free_gib": _gib(self._free()),
            "mended": self.mended,
            "notes": [found.note] if found.note else [],
        }


def check_finding(error: SourceError) -> dict[str, str]:
    """A refusal as it goes into a list of findings."""
    return error.finding.as_dict()


def _is_news(known: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Another stage, or a further tenth."""
    return known.get("stage", "starts") != now["stage"] or (now["percent"] or 0) // 10 > (known.get("percent") or 0) // 10


def _own_files(path: str, record: Optional[Record], coming: set[str]) -> list[str]:
    """Names of what the operator put beside the model: no file of the model, no weights, nothing hidden, nothing unfinished."""
    theirs: set[str] = set(record.files) if record else set()
    found = []
    for folder, names, files in os.walk(path) if os.path.isdir(path) else ():
        names[:] = [name for name in names if not name.startswith(".")]
        for name in files:
            relative = os.path.relpath(os.path.join(folder, name), path)
            weights = ".safetensors" in name or name.endswith((".incomplete", ".part", ".partial", ".tmp", ".crdownload", ".aria2"))
            if relative not in theirs and relative not in coming and not name.startswith(".") and not weights:
                found.append(relative)
    return sorted(found)


def _existing(path: str) -> str:
    """The path, or the nearest directory above it that exists."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _tree(directory: str) -> int:
    """Bytes of files that have no other name: links to what stands cost nothing."""
    total = parts_bytes(directory)
    for folder, names, files in os.walk(directory):
        if WORK in names:
            names.remove(WORK)
        for name in files:
            try:
                state = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            total += state.st_size if state.st_nlink == 1 else 0
    return total


def _gib(size: float) -> float:
    return round(size / GIB, 3)


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: str, text: str, mode: int = 0o600) -> None:
    """In one step: whoever reads it sees the old or the new content, on the disk before it has its name."""
    handle = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        os.fchmod(handle, mode)
        stream.write(text)
        stream.flush()
        os.fsync(handle)
    os.replace(path + ".new", path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _quoted(value: str) -> str:
    """A value of an environment file as systemd reads it."""
    escaped = value
    for character in ("\\", '"', "$", "`"):
        escaped = escaped.replace(character, "\\" + character)
    return f'"{escaped}"'
