# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of a container engine, podman or docker. Private to this collection: may change at any time.

An image is known by its id, which is the same wherever it came from; a name may mean another one tomorrow. All commands go through an
injected runner.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.inferops.sglang.plugins.module_utils._long_step import (
    DONE,
    RUNNING,
    LongStep,
    StepState,
    forget,
    look,
    start_or_join,
    wait,
)
from ansible_collections.inferops.sglang.plugins.module_utils._programs import Runner
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

NEWS_S = 30.0
_ABSENT = ("no such image", "image not known", "failed to find image", "unable to find image", "no such object")


class ContainerError(Exception):
    """An image cannot be had; the text says what was asked, what was found, and what to do."""

    def __init__(self, asked: str, found: str, do: str) -> None:
        super().__init__(f"asked for {asked}, found {found}; {do}")


@dataclass(frozen=True)
class Image:
    """``id`` as ``sha256:...``; ``digests``: the names with digests by which a registry knows it, none for one that was imported."""

    id: str
    digests: tuple[str, ...]
    size_gib: float

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, "digests": list(self.digests), "size_gib": self.size_gib}


@dataclass(frozen=True)
class Pull:
    """Where a pull is: the image once it is there, else the step that fetches it."""

    image: Optional[Image]
    step: StepState
    pulled: bool


def find(engine: str, name: str, run: Runner) -> Optional[Image]:
    """The image of this name on the host, None where there is none. Raises ContainerError where the engine does not answer."""
    code, out, errors = run([engine, "image", "inspect", name])
    if code != 0:
        if is_absent(errors):
            return None
        found = f"{engine} image inspect with exit code {code}: {last_line(errors)}"
        raise ContainerError(f"the image {name}", found, f"mend {engine} on the host, and run again")
    return read(out, name)


def is_absent(errors: str) -> bool:
    """How the engines say that they have no such image."""
    text = errors.lower()
    return any(words in text for words in _ABSENT)


def read(out: str, name: str) -> Image:
    """What ``image inspect`` prints: a list of one object."""
    try:
        (shown,) = json.loads(out)
        digest, size = str(shown["Id"]), int(shown.get("Size") or 0)
        digests = tuple(map(str, shown.get("RepoDigests") or ()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContainerError(f"the image {name}", f"an answer that cannot be read ({error})", "look at: image inspect") from error
    return Image(digest if digest.startswith("sha256:") else f"sha256:{digest}", digests, round(size / 2**30, 2))


def step_of(engine: str, name: str, timeout_s: int) -> LongStep:
    """The pull as a step of its own, the same for everybody who asks for this image."""
    key = hashlib.sha256(f"{engine} {name}".encode()).hexdigest()[:12]
    # the engines look there for the logins of registries; a unit has no home of its own
    home = {"HOME": posixpath.expanduser("~root")}
    return LongStep(f"sglang-pull-{key}", (engine, "pull", name), f"Image {name} for SGLang", home, timeout_s=timeout_s)


def ensure(engine: str, name: str, timeout_s: int, run: Runner, clock: Clock, known: Optional[str] = None, watched: bool = False) -> Pull:
    """The image, pulled if it is not there. ``watched``: comes back every 30 seconds while that goes on.

    ``known``: the invocation that an earlier call came back from; its end is told even if another run saw it before. Raises
    ContainerError where the pull fails, and LongStepError where it cannot be started.
    """
    image = find(engine, name, run)
    if image is not None:
        return Pull(image, StepState(DONE), pulled=bool(known))
    step = step_of(engine, name, timeout_s)
    # a pull that was waited for and has ended without an image is not started again
    state = look(step.unit, run) if known else start_or_join(step, run)
    if state.state == RUNNING:
        # systemd ends the step in time; the rest is for it to notice
        state = wait(step.unit, run, clock, clock.now() + (NEWS_S if watched else timeout_s + 60))
    if state.state == RUNNING and watched:
        return Pull(None, state, pulled=True)
    forget(step.unit, run)
    image = find(engine, name, run) if state.state == DONE else None
    if image is None:
        said = f"that it cannot be pulled: {state.sentence()}: {last_line(chr(10).join(state.last_lines))}"
        do = f"mend the cause (name, network, login, disk), or load the image by hand: {engine} load"
        raise ContainerError(f"the image {name}", said, do)
    return Pull(image, state, pulled=True)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "nothing was said"
