# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills PATH.fetching: a program of its own, run as a long step with a job file. Private to this collection: may change at any time.

It imports nothing of this collection, so that it runs wherever its file is, with any Python from 3.9 on; only the hub needs
C(huggingface_hub). Every step can be killed: what was checked is in a ledger, what is half there is gone on with.
The last line that it prints is its answer: C(inferops: {...}).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Optional

ANSWER = "inferops: "
WORK, RECORD = ".inferops-fetch", ".inferops-source.json"
_BLOCK = 8 << 20
# tries in a row that brought no byte
_TRIES = 8
_LONGEST_PAUSE_S = 600.0
_RSYNC_TRIES = 4
# socket, protocol stream, receive, partial for vanished files, timeouts: what the next try may not meet again
_RSYNC_AGAIN = (10, 12, 24, 30, 35)
# some of what was asked for is not there
_RSYNC_LACKS = 23
# bytes that a file system needs beside the content
_SLACK = 16 << 20


class Failure(Exception):
    """What was found, and what to do."""

    def __init__(self, found: str, do: str, check: str = "model_source") -> None:
        super().__init__(f"{found}; {do}")
        self.answer = {"check": check, "found": found, "do": do}


class Again(Exception):
    """Worth another try, after ``pause_s`` seconds where the server says so."""

    def __init__(self, reason: str, pause_s: Optional[float] = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(frozen=True)
class File:
    name: str
    size: int
    # sha256:HEX or git:HEX of the content, mtime:NS of the source, or empty
    identity: str


@dataclass(frozen=True)
class Job:
    """``directory`` is filled, ``standing`` is what it will replace (empty for none). ``carried``: the operator's own files in there.

    ``stamps``: name -> [bytes, time of change in ns, identity] of files in ``standing`` whose content was checked when they were fetched.
    ``manifest``: name -> SHA-256, from the file ``manifest_path``. ``source`` depends on its C(kind).
    """

    directory: str
    source: Mapping[str, Any]
    standing: str = ""
    files: Sequence[File] = ()
    stamps: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    carried: Sequence[str] = ()
    manifest: Mapping[str, str] = field(default_factory=dict)
    manifest_path: str = ""
    threads: int = 8


def load_job(text: str) -> Job:
    content = json.loads(text)
    return Job(**{**content, "files": tuple(File(*entry) for entry in content.get("files", ()))})


class Fetcher:
    """How one file comes to ``part``, where some of it may be already; raises Again or Failure."""

    def fetch(self, file: File, part: str) -> None:
        raise NotImplementedError


class Work:
    """One run over a job. ``sleep`` lets a pause pass."""

    def __init__(self, job: Job, sleep: Callable[[float], None] = time.sleep) -> None:
        self.job, self.sleep = job, sleep
        self.place = os.path.join(job.directory, WORK)
        self.lock = threading.Lock()
        self.stopped = False
        self.ledger: dict[str, list[Any]] = {}
        os.makedirs(os.path.join(self.place, "parts"), exist_ok=True)
        for line in _lines(os.path.join(self.place, "ledger")):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                entry = json.loads(line)
                self.ledger[str(entry["name"])] = [entry["size"], entry["mtime_ns"], entry["identity"], entry["fetched"]]

    # ---- the steps

    def run(self) -> dict[str, Any]:
        """All of it; returns the answer of success."""
        if self.job.source["kind"] == "rsync":
            self._copy_by_rsync()
        else:
            missing = self._take_what_is_there()
            self._need_space(missing)
            self._fetch(missing)
        if self.job.manifest:
            self.say("checks the manifest")
            self._hold_against_manifest()
        self._carry()
        self._tidy()
        return {
            "fetched_bytes": sum(entry[0] for entry in self.ledger.values() if entry[3]),
            "files": {name: entry[:3] for name, entry in self.ledger.items()},
        }

    def say(self, stage: str, missing: int = 0) -> None:
        """For the log, and for whoever asks how far it is."""
        _say(stage)
        _write(os.path.join(self.place, "state.json"), json.dumps({"stage": stage, "missing_bytes": missing}))

    def _take_what_is_there(self) -> list[File]:
        """Files of the job that are neither in the directory nor, with the same content, in what stands: those are linked in."""
        self.say("looks at what is there already")
        missing: list[File] = []
        with ThreadPoolExecutor(self.job.threads) as pool:
            for file, there in zip(self.job.files, pool.map(self._take, self.job.files)):
                if not there:
                    missing.append(file)
        return missing

    def _take(self, file: File) -> bool:
        target = self._path(file.name)
        if self._is_same(target, file, self.ledger.get(file.name)):
            if file.name not in self.ledger:
                self._enter(file, fetched=True)
            return True
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        with self.lock:
            self.ledger.pop(file.name, None)
        origin = os.path.join(self.job.standing, file.name) if self.job.standing else ""
        if not origin or not self._is_same(origin, file, self.job.stamps.get(file.name)):
            return False
        self._link(origin, target)
        self._enter(file, fetched=False)
        return True

    def _is_same(self, path: str, file: File, stamp: Optional[Sequence[Any]]) -> bool:
        """By a stamp that still holds, or by reading it."""
        try:
            found = os.stat(path)
        except OSError:
            return False
        if not os.path.isfile(path) or found.st_size != file.size:
            return False
        if stamp is not None and list(stamp[:3]) == [found.st_size, found.st_mtime_ns, file.identity]:
            return True
        if file.identity.startswith("mtime:"):
            return found.st_mtime_ns == int(file.identity[6:])
        return identity_of(path, file) == file.identity

    def _need_space(self, missing: Sequence[File]) -> None:
        need = sum(file.size for file in missing) - sum(_size(self._part(file)) for file in missing)
        disk = os.statvfs(self.job.directory)
        free = disk.f_bavail * disk.f_frsize
        if need + (_SLACK if need else 0) > free:
            raise Failure(
                f"{gib(need)} missing and {gib(free)} free on the file system of {self.job.directory}",
                f"free {gib(need + _SLACK - free)} there, or give a directory on a larger file system", "model_disk",
            )  # fmt: skip

    def _fetch(self, missing: Sequence[File]) -> None:
        if not missing:
            return
        total = sum(file.size for file in missing)
        before = sum(entry[0] for entry in self.ledger.values() if entry[3])
        self.say(f"fetches {len(missing)} files, {gib(total)}", total + before)
        source = self.job.source
        fetcher = HubFetcher(source) if source["kind"] == "hub" else CopyFetcher(source["path"])
        # the large ones first: what is left at the end is small
        ordered = sorted(missing, key=lambda file: -file.size)
        pool = ThreadPoolExecutor(self.job.threads if source["kind"] == "hub" else 1)
        running = [pool.submit(self._fetch_one, fetcher, file) for file in ordered]
        try:
            for ended in as_completed(running):
                ended.result()
        finally:
            # the others need not come to their end where one failed: what they have is kept
            self.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)

    def _fetch_one(self, fetcher: Fetcher, file: File) -> None:
        part, target = self._part(file), self._path(file.name)
        tries, pause_s, damaged = 0, 1.0, 0
        while not self.stopped:
            before = _size(part)
            try:
                fetcher.fetch(file, part)
                if _size(part) != file.size:
                    raise Again(f"{_size(part)} of {file.size} bytes came")
                if self._is_damaged(part, file):
                    damaged += 1
                    os.unlink(part)
                    if damaged > 1:
                        raise Failure(f"{file.name} that came twice with another content than {file.identity}",
                                      "look what answers in the place of the source (a proxy, a mirror), and run again")  # fmt: skip
                    raise Again(f"another content than {file.identity}")
            except Again as error:
                gained = _size(part) > before
                tries, pause_s = (1, 1.0) if gained else (tries + 1, min(pause_s * 2, 60.0))
                if tries >= _TRIES:
                    raise Failure(f"that {file.name} does not come ({error}), {tries} tries in a row without a byte",
                                  "look at the source and at the way to it, and run again: what came is kept") from None  # fmt: skip
                wait_s = min(error.pause_s if error.pause_s is not None else pause_s, _LONGEST_PAUSE_S)
                _say(f"{file.name}: {error}; again in {wait_s:.0f} s, from byte {_size(part)}")
                self.sleep(wait_s)
                continue
            except OSError as error:
                raise _disk_failure(error, self.job.directory) from error
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(part, target)
            self._enter(file, fetched=True)
            _say(f"{file.name}: {gib(file.size)}")
            return

    def _is_damaged(self, part: str, file: File) -> bool:
        return file.identity.startswith(("sha256:", "git:")) and identity_of(part, file) != file.identity

    def _copy_by_rsync(self) -> None:
        source = self.job.source
        missing = int(source.get("missing_bytes", 0))
        self.say(f"copies {gib(missing)} by rsync", missing + int(source.get("here_bytes", 0)))
        # --inplace goes on with a half file, but would write through a link into what stands: those are linked again, which is free
        for name in _walk(self.job.directory):
            if os.lstat(self._path(name)).st_nlink > 1:
                os.unlink(self._path(name))
        linked = [f"--link-dest={self.job.standing}"] if self.job.standing else []
        self._rsync([*source["argv"], *linked, source["url"], self.job.directory + "/"])
        # beside the files, never among them: a record in this folder says that it is whole
        self._rsync([*source["record_argv"], source["url"] + RECORD, os.path.join(self.place, "giver.json")], may_lack=True)
        self._check_copies()

    def _rsync(self, argv: Sequence[str], may_lack: bool = False) -> None:
        """``may_lack``: the one file that is asked for need not be there."""
        url = self.job.source["url"]
        for attempt in range(1, _RSYNC_TRIES + 1):
            try:
                done = subprocess.run(list(argv), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            except OSError as error:
                raise Failure(f"that rsync cannot be started ({error.strerror})", "install the package rsync on this host") from error
            if done.returncode == 0 or (may_lack and done.returncode == _RSYNC_LACKS):
                return
            _say(done.stderr.strip())
            if done.returncode not in _RSYNC_AGAIN or attempt == _RSYNC_TRIES:
                raise rsync_failure(done.returncode, done.stderr, url)
            self.sleep(5.0)

    def _check_copies(self) -> None:
        """Names what came; where the giver's record knows their content, all are held against it."""
        stamps = _stamps(os.path.join(self.place, "giver.json"))
        names = list(_walk(self.job.directory))
        known = [File(name, int(stamps[name][0]), str(stamps[name][2])) for name in names if name in stamps]
        self.say(f"checks {len(known)} of {len(names)} files against what is known of them")
        with ThreadPoolExecutor(self.job.threads) as pool:
            right = dict(zip([file.name for file in known], pool.map(self._is_right, known)))
        wrong = sorted(name for name, is_right in right.items() if not is_right)
        for name in wrong:
            os.unlink(self._path(name))
        if wrong:
            raise Failure(f"{len(wrong)} files with another content than was once fetched, the first {wrong[0]}",
                          "check the disk of the host that gave them; they are removed here, so run again with another source")  # fmt: skip
        for name in names:
            linked = os.lstat(self._path(name)).st_nlink > 1
            identity = str(stamps[name][2]) if name in stamps else ""
            self._enter(File(name, _size(self._path(name)), identity), fetched=not linked)

    def _is_right(self, file: File) -> bool:
        path = self._path(file.name)
        if not file.identity:
            return True
        return self._is_same(path, file, self.ledger.get(file.name) or self.job.stamps.get(file.name))

    def _hold_against_manifest(self) -> None:
        wanted = self.job.manifest
        absent = sorted(name for name in wanted if not os.path.isfile(self._path(name)))
        present = [name for name in wanted if name not in absent]
        with ThreadPoolExecutor(self.job.threads) as pool:
            wrong = sorted(name for name, ok in zip(present, pool.map(self._has_sum, present)) if not ok)
        if not absent and not wrong:
            return
        for name in wrong:
            # what the source itself vouches for comes again the same: the manifest is of something else
            if not self.ledger.get(name, [0, 0, ""])[2].startswith(("sha256:", "git:")):
                os.unlink(self._path(name))
                self.ledger.pop(name, None)
        kinds = (("missing", absent), ("with another sum", wrong))
        found = [f"{len(names)} {what}, the first {names[0]}" for what, names in kinds if names]
        raise Failure(f"of the {len(wanted)} files in {self.job.manifest_path} {' and '.join(found)}",
                      "give the manifest of this revision, or a source that is not damaged", "model_manifest")  # fmt: skip

    def _has_sum(self, name: str) -> bool:
        known = self.ledger.get(name, [0, 0, ""])[2]
        found = known[7:] if known.startswith("sha256:") else _digest(self._path(name), hashlib.sha256())
        return found == self.job.manifest[name]

    def _carry(self) -> None:
        """The operator's own files beside the model's stay beside it."""
        for name in self.job.carried:
            if not os.path.lexists(self._path(name)):
                self._link(os.path.join(self.job.standing, name), self._path(name))

    def _tidy(self) -> None:
        """The user of the service can read all of it."""
        for folder, names, files in os.walk(self.job.directory):
            if WORK in names:
                names.remove(WORK)
            os.chmod(folder, 0o755)
            for name in files:
                path = os.path.join(folder, name)
                if os.lstat(path).st_nlink == 1 and not os.path.islink(path):
                    os.chmod(path, 0o644)
        known = {**{file.name: 1 for file in self.job.files}, **dict.fromkeys(self.job.carried, 1)}
        if self.job.source["kind"] != "rsync":
            # of an earlier commit, fetched before this one was asked
            for name in [name for name in _walk(self.job.directory) if name not in known]:
                os.unlink(self._path(name))
        shutil.rmtree(os.path.join(self.place, "parts"), ignore_errors=True)

    # ---- small things

    def _path(self, name: str) -> str:
        return os.path.join(self.job.directory, name)

    def _part(self, file: File) -> str:
        # by content: the part of another commit's file is not gone on with
        return os.path.join(self.place, "parts", hashlib.sha256(f"{file.name}\0{file.identity}\0{file.size}".encode()).hexdigest()[:32])

    def _link(self, origin: str, target: str) -> None:
        """A second name for the same bytes; a copy only where the file system has no such thing."""
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            os.link(os.path.realpath(origin), target)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
                raise
            shutil.copy2(origin, target + ".part")
            os.replace(target + ".part", target)

    def _enter(self, file: File, fetched: bool) -> None:
        found = os.stat(self._path(file.name))
        entry = {"name": file.name, "size": found.st_size, "mtime_ns": found.st_mtime_ns, "identity": file.identity, "fetched": fetched}
        with self.lock:
            self.ledger[file.name] = [found.st_size, found.st_mtime_ns, file.identity, fetched]
            with open(os.path.join(self.place, "ledger"), "a", encoding="utf-8") as stream:
                stream.write(json.dumps(entry) + "\n")


class CopyFetcher(Fetcher):
    """From a directory of this host, which may be a shared file system."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fetch(self, file: File, part: str) -> None:
        origin = os.path.join(self.path, file.name)
        try:
            shutil.copyfile(origin, part)
            shutil.copystat(origin, part)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise Again(error.strerror or str(error)) from error


class HubFetcher(Fetcher):
    """From a hub, by its own client: address, access and resumption are its business.

    Over HTTP and not over Xet: that way a file which came half is gone on with after the process was killed.
    """

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.endpoint, self.repository, self.commit = source["endpoint"], source["repository"], source["commit"]
        self.token = _token()
        try:
            from huggingface_hub import get_hf_file_metadata, hf_hub_url  # type: ignore[import-not-found,unused-ignore]
            from huggingface_hub.file_download import http_get  # type: ignore[import-not-found,unused-ignore]
            from huggingface_hub.utils import build_hf_headers  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise Failure(f"no usable huggingface_hub in {sys.executable} ({error})",
                          "give an interpreter that has it as python; an environment of SGLang has it") from error  # fmt: skip
        self.metadata, self.url, self.get, self.headers = get_hf_file_metadata, hf_hub_url, http_get, build_hf_headers

    def fetch(self, file: File, part: str) -> None:
        url = self.url(self.repository, file.name, revision=self.commit, endpoint=self.endpoint)
        allowed = False
        try:
            seen = self.metadata(url, token=self.token or False, timeout=30, endpoint=self.endpoint)
            allowed = True
            # where it redirects to signs its addresses, and must not see the token
            own = seen.location.split("/")[:3] == url.split("/")[:3]
            headers = {**self.headers(token=(self.token or False) if own else False), "Accept-Encoding": "identity"}
            if _size(part) > file.size:
                os.unlink(part)
            with open(part, "ab") as stream:
                self.get(seen.location, stream, resume_size=stream.tell(), headers=headers, expected_size=file.size)
        # the client's errors have no common ancestor over its releases
        except Exception as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
                raise
            raise self._verdict(error, file, allowed) from error

    def _verdict(self, error: Exception, file: File, allowed: bool) -> Exception:
        """``allowed``: the hub would give it, so that a refusal is that of a signed address which ran out."""
        answer = getattr(error, "response", None)
        status = getattr(answer, "status_code", 0)
        first = str(error).strip().split("\n", 1)[0][:200] or type(error).__name__
        if isinstance(error, ValueError) and "hf_xet" in str(error):
            return Failure(f"{file.name} of {gib(file.size)}, which the hub does not give over HTTP",
                           "fetch this model with the hub's own client, then run again: what is complete is taken")  # fmt: skip
        if status and status not in (408, 416, 429) and status < 500 and not allowed:
            return Failure(f"status {status} for {file.name} ({first})",
                           f"look at {self.endpoint}/{self.repository} and at the token's rights")  # fmt: skip
        return Again(first, _pause(answer.headers) if answer is not None else None)


def identity_of(path: str, file: File) -> str:
    """What a file's content is called, in the way of the identity that is expected; empty where none is."""
    kind = file.identity.partition(":")[0]
    if kind == "sha256":
        return "sha256:" + _digest(path, hashlib.sha256())
    if kind == "git":
        return "git:" + _digest(path, hashlib.sha1(f"blob {_size(path)}\0".encode(), usedforsecurity=False))
    return ""


def _digest(path: str, digest: Any) -> str:
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return str(digest.hexdigest())


def _pause(headers: Any) -> Optional[float]:
    plain = str(headers.get("retry-after", "")).strip()
    return float(plain) if plain.isascii() and plain.isdigit() else None


def _token() -> str:
    """The credential of the unit; empty where it has none."""
    place = os.environ.get("CREDENTIALS_DIRECTORY", "")
    return "".join(_lines(os.path.join(place, "token"))).strip() if place else ""


def rsync_failure(code: int, errors: str, url: str) -> Failure:
    last = next((line.strip() for line in errors.splitlines() if line.strip()), "no message")
    if code == 11 or "No space left" in errors:
        return Failure(f"no space left ({last})", "free some on the file system of the model", "model_disk")
    if "command not found" in errors or code == 127:
        return Failure(f"no rsync on the other side of {url} ({last})", "install the package rsync there")
    return Failure(f"rsync's exit code {code} from {url} ({last})",
                   "open the way there, or give another source, and run again: what came is kept")  # fmt: skip


def _disk_failure(error: OSError, directory: str) -> Failure:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure(f"no space left on the file system of {directory}", "free some, and run again: what came is kept", "model_disk")
    return Failure(f"{error.strerror or error} at {error.filename or directory}", "mend that file system, and run again: what came is kept")


def _walk(directory: str) -> Iterator[str]:
    """Names of all files below, but those that the worker keeps beside them."""
    for folder, names, files in os.walk(directory):
        if WORK in names:
            names.remove(WORK)
        yield from (os.path.relpath(os.path.join(folder, name), directory) for name in files if name != RECORD)


def _stamps(path: str) -> dict[str, list[Any]]:
    try:
        files = json.loads("".join(_lines(path)))["files"]
        return {name: [entry["size"], entry["mtime_ns"], entry.get("identity", "")] for name, entry in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readlines()
    except OSError:
        return []


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _write(path: str, text: str) -> None:
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(path + ".new", path)


def _say(line: str) -> None:
    # in one piece, as several threads say something
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def gib(size: float) -> str:
    """Bytes as a person reads them."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.1f} MiB"


def main(argv: Sequence[str]) -> int:
    """Does the job in a file; 0 where it is done."""
    with open(argv[1], encoding="utf-8") as stream:
        job = load_job(stream.read())
    try:
        answer = Work(job).run()
        # what is recorded as whole must be so after a power cut, too
        os.sync()
        _write(os.path.join(job.directory, WORK, "result.json"), json.dumps(answer))
        _say("all is there")
        return 0
    except Failure as failure:
        said = failure.answer
    except OSError as error:
        said = _disk_failure(error, job.directory).answer
    _say(ANSWER + json.dumps(said))
    return 1


if __name__ == "__main__":
    # threads that still wait for a server need not be waited for
    status = main(sys.argv)
    sys.stdout.flush()
    os._exit(status)
