# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role made goes, and only that; a removal that is killed anywhere is finished by the next one."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._adoption import Adoption, adoption_text, begin, open_adoption, read_adoption
from ansible_collections.inferops.sglang.plugins.module_utils._fetch import unit_of
from ansible_collections.inferops.sglang.plugins.module_utils._made import (
    Instance,
    Made,
    made_text,
    missing_directories,
    read_made,
    write_made,
)
from ansible_collections.inferops.sglang.plugins.module_utils._removal import Outcome, Removal, RemovalError, remove


@dataclass
class Machine:
    """A host with instances of the role, in a directory; systemd and the accounts are imitated."""

    root: Path
    accounts: set[str] = field(default_factory=lambda: {"sglang"})
    active: set[str] = field(default_factory=set)
    refuses: str = ""
    tick: Callable[[], None] = lambda: None
    running: list[str] = field(default_factory=list)

    def at(self, path: str) -> Path:
        return self.root / path

    def write(self, path: str, text: str = "x") -> Path:
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    def instance(self, name: str, release: str = "0.5.12-aaaaaaaa", mark: bool = True, models: Sequence[str] = ()) -> None:
        """Makes all that the role makes for one instance, and its entry in the record."""
        for part in ("units", "opt", "etc", "lib", "cache"):
            self.at(part).mkdir(exist_ok=True)
        self.write(f"opt/{release}/.complete")
        self.write(f"opt/{release}/bin/python")
        self.write("opt/libexec/guard.py")
        self.at("opt/current").mkdir(exist_ok=True)
        self.at(f"opt/current/{name}").symlink_to(self.at(f"opt/{release}"))
        self.write(f"etc/{name}.env")
        self.write(f"cache/{name}/kernel")
        for file in ("accepted.json", "accepted/0.5.11-b.json", "boots.json", "drained.json", "receipt.json", "verdict.json"):
            self.write(f"lib/{name}/{file}")
        line = f"X-InferopsInstance={name}\n" if mark else ""
        model = f" --model-path {models[0]}" if models else ""
        self.write(f"units/{name}.service", f"[Unit]\n{line}[Service]\nExecStart={self.at('opt')}/{release}/bin/python -m x{model}\n")
        self.active.add(f"{name}.service")
        made = self.made().with_new("sglang", "sglang", [str(self.at(part)) for part in ("opt", "etc", "lib")])
        entry = Instance(str(self.at(f"etc/{name}.env")), str(self.at(f"lib/{name}")), str(self.at(f"cache/{name}")), str(self.at("opt")))
        write_made(str(self.at("lib")), made_text(made.with_instance(name, Instance(**{**vars(entry), "models": tuple(models)}))))

    def made(self) -> Made:
        path = self.at("lib/made.json")
        return read_made(path.read_text(encoding="utf-8") if path.exists() else "")

    def run(self, argv: Sequence[str]) -> tuple[int, str, str]:
        words = list(argv)
        if words[0] == "getent":
            return (0, "", "") if words[2] in self.accounts else (2, "", "")
        if words[:2] == ["systemctl", "show"]:
            unit = words[-1]
            known = self.at(f"units/{unit}").exists() or unit in self.active
            state = f"LoadState={'loaded' if known else 'not-found'}\nActiveState={'active' if unit in self.active else 'inactive'}\n"
            return 0, state, ""
        if self.refuses and self.refuses in words:
            return 1, "", "it refuses"
        self.tick()
        if words[0] == "systemctl" and words[1] in ("disable", "stop"):
            self.active.discard(words[-1])
        elif words[0] == "userdel":
            # with the user goes the group of the same name
            self.accounts.discard(words[1])
        return 0, "", ""

    def remove(self, name: str, only_look: bool = False, models: bool = False) -> Outcome:
        made = self.made()
        removal = Removal(
            name=name, made=made, state_dir=str(self.at("lib")), models=models, only_look=only_look, run=self.run,
            processes=lambda _unit: iter(self.running), units=str(self.at("units")),
        )  # fmt: skip
        return remove(removal, made.instances.get(name))

    def tree(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_last_instance_takes_all_that_was_made_with_it(machine: Machine) -> None:
    machine.instance("a")
    outcome = machine.remove("a")
    assert machine.tree() == ["units"]
    assert (machine.accounts, machine.active) == (set(), set())
    assert [os.path.relpath(path, machine.root) if "/" in path else path for path in outcome.removed] == [
        "units/a.service", "etc/a.env", "opt/current/a", "opt/0.5.12-aaaaaaaa", "opt/libexec", "opt/current", "cache/a", "cache",
        "lib/a/accepted.json", "lib/a/boots.json", "lib/a/drained.json", "lib/a/receipt.json", "lib/a/verdict.json",
        "lib/a/accepted/0.5.11-b.json", "lib/a/accepted", "lib/a", "etc", "opt", "user sglang",
        "group sglang", "lib/made.json", "lib",
    ]  # fmt: skip
    assert outcome.kept == []
    again = machine.remove("a")
    assert (again.removed, again.kept) == ([], [])


def test_looking_says_the_same_and_changes_nothing(machine: Machine) -> None:
    machine.instance("a")
    before = machine.tree()
    looked = machine.remove("a", only_look=True)
    assert (machine.tree(), machine.active, machine.accounts) == (before, {"a.service"}, {"sglang"})
    assert looked.removed == machine.remove("a").removed


def test_another_instance_keeps_what_both_share(machine: Machine) -> None:
    machine.instance("a")
    machine.instance("b")
    machine.write("opt/0.5.9-bbbbbbbb/.complete")
    machine.write("opt/.0.5.9-bbbbbbbb.old/bin/python")
    machine.remove("a")
    assert machine.tree() == sorted([
        "units", "units/b.service", "etc", "etc/b.env", "cache", "cache/b", "cache/b/kernel", "lib", "lib/b", "lib/made.json",
        "lib/b/accepted", "lib/b/accepted/0.5.11-b.json",
        *(f"lib/b/{name}.json" for name in ("accepted", "boots", "drained", "receipt", "verdict")), "opt", "opt/current", "opt/current/b",
        "opt/libexec", "opt/libexec/guard.py", "opt/0.5.12-aaaaaaaa", "opt/0.5.12-aaaaaaaa/.complete", "opt/0.5.12-aaaaaaaa/bin",
        "opt/0.5.12-aaaaaaaa/bin/python",
    ])  # fmt: skip
    assert machine.accounts == {"sglang"}
    assert list(machine.made().instances) == ["b"]
    machine.remove("b")
    assert machine.tree() == ["units"]


@pytest.mark.parametrize("user", ["unit", "accepted", "process"])
def test_an_environment_that_something_uses_stays(machine: Machine, user: str) -> None:
    machine.instance("a")
    machine.instance("b", release="0.5.23-cccccccc")
    path = machine.at("opt/0.5.12-aaaaaaaa")
    if user == "unit":
        machine.write("units/b.service", f"[Unit]\nX-InferopsInstance=b\n[Service]\nExecStart={path}/bin/python\n")
    elif user == "accepted":
        machine.write("lib/b/accepted.json", f'{{"unit": "{path}/bin/python"}}')
    else:
        machine.running.append(f"{path}/bin/python -m sglang.launch_server")
    machine.remove("a")
    assert path.is_dir()


BUILD = "sglang-build{root}-opt-0.5.24-eeeeeeee.service"


@pytest.mark.parametrize("is_last", [True, False])
def test_a_build_that_goes_on_is_ended_unless_another_instance_may_wait_for_it(machine: Machine, is_last: bool) -> None:
    machine.instance("a")
    if not is_last:
        machine.instance("b", release="0.5.23-cccccccc")
    machine.write("opt/0.5.24-eeeeeeee/pyvenv.cfg")
    machine.write("opt/.0.5.24-eeeeeeee.build/plan.json")
    step = re.sub(r"[^A-Za-z0-9.-]", "_", BUILD.format(root=str(machine.root).replace("/", "-")))
    machine.active.add(step)
    outcome = machine.remove("a")
    assert (step in machine.active, machine.at("opt/0.5.24-eeeeeeee").exists()) == (not is_last, not is_last)
    assert (f"unit {step}" in outcome.removed) == is_last
    why = f"{step} builds it; another instance may wait for it"
    paths = [] if is_last else [str(machine.at(f"opt/{name}")) for name in (".0.5.24-eeeeeeee.build", "0.5.24-eeeeeeee")]
    assert [kept.path for kept in outcome.kept if kept.why == why] == paths


def test_a_model_that_another_instance_is_about_to_use_stays(machine: Machine) -> None:
    path = str(machine.write("models/m/.inferops-source.json").parent)
    machine.instance("a", models=[path])
    machine.instance("b", release="0.5.23-cccccccc", models=[path])
    machine.at("units/b.service").unlink()
    machine.active = {"a.service", f"{unit_of(path)}.service"}
    outcome = machine.remove("a", models=True)
    assert [kept.why for kept in outcome.kept] == ["another instance uses this model"]
    assert (machine.active, os.path.isdir(path)) == ({f"{unit_of(path)}.service"}, True)
    machine.remove("b", models=True)
    assert (machine.active, os.path.isdir(path)) == (set(), False)


def test_what_is_somebody_elses_stays_and_is_named(machine: Machine) -> None:
    machine.instance("a")
    machine.write("cache/other/f")
    for path in ("lib/a/notes.txt", "etc/mine", "opt/own-venv/bin/python", "units/a.service.d/x.conf", "units/a.service.1.2026~"):
        machine.write(path)
    kept = {os.path.relpath(kept.path, machine.root): kept.why for kept in machine.remove("a").kept}
    assert kept == {
        "units/a.service.d/x.conf": "a drop-in is its writer's",
        "units/a.service.1.2026~": "the copy of a unit that the role replaced",
        "lib/a": "it is not empty: notes.txt",
        "etc": "it is not empty: mine",
        "opt": "it is not empty: own-venv",
        "lib": "it is not empty: a",
    }
    assert machine.at("cache/other/f").exists()


def test_an_environment_of_the_operator_stays_and_is_named(machine: Machine) -> None:
    machine.instance("a")
    own = machine.write("srv/venv/bin/python").parent.parent
    machine.write("units/a.service", f"[Unit]\nX-InferopsInstance=a\n[Service]\nExecStart={own}/bin/python -m sglang.launch_server\n")
    assert [(kept.path, kept.why) for kept in machine.remove("a").kept] == [(str(own), "the role did not make this environment")]
    assert machine.at("srv/venv/bin/python").exists()


def test_directories_and_accounts_that_were_there_before_stay(machine: Machine) -> None:
    machine.instance("a")
    made = machine.made()
    write_made(str(machine.at("lib")), made_text(Made(instances=made.instances)))
    machine.remove("a")
    assert machine.tree() == ["etc", "lib", "opt", "units"]
    assert machine.accounts == {"sglang"}


def test_a_unit_without_the_mark_is_never_touched(machine: Machine) -> None:
    machine.write("units/a.service", "[Service]\nExecStart=/bin/x\n")
    machine.active.add("a.service")
    before = machine.tree()
    outcome = machine.remove("a")
    assert [(os.path.basename(kept.path), kept.why) for kept in outcome.kept] == [("a.service", "the role did not write this unit")]
    assert (outcome.removed, machine.tree(), machine.active) == ([], before, {"a.service"})

    # as after an adoption that was given back: what was made goes, the unit runs on
    machine.instance("b", mark=False)
    machine.remove("b")
    assert machine.tree() == ["units", "units/a.service", "units/b.service"]
    assert machine.active == {"a.service", "b.service"}


MODELS = {
    "not asked": (False, True, "", True, "models stay unless sglang_absent_models is true"),
    "fetched": (True, True, "", False, None),
    "not fetched": (True, False, "", True, "the role did not fetch this model"),
    "of another instance, too": (True, True, "b", True, "another instance uses this model"),
}


@pytest.mark.parametrize("case", MODELS)
def test_models_go_only_where_that_is_asked_and_the_role_fetched_them(machine: Machine, case: str) -> None:
    asked, fetched, other, stays, why = MODELS[case]
    model = str(machine.write("models/k/config.json").parent)
    if fetched:
        machine.write("models/k/.inferops-source.json")
        machine.write("models/k.fetching/part")
    machine.instance("a", models=[model])
    if other:
        machine.instance(other, models=[model])
    outcome = machine.remove("a", models=asked)
    assert os.path.isdir(model) is stays
    assert machine.at("models/k.fetching").exists() is (stays and fetched)
    assert [kept.why for kept in outcome.kept] == ([why] if why else [])


class Killed(BaseException):
    """The run ends here, as by a signal."""


def test_a_removal_that_is_killed_anywhere_is_finished_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    for kill_at in range(100):
        machine = Machine(tmp_path / str(kill_at))
        machine.root.mkdir()
        machine.instance("a")
        machine.write("cache/a/more/kernel")
        machine.write("opt/0.5.9-bbbbbbbb/.complete")
        count = 0

        def tick(limit: int = kill_at) -> None:
            nonlocal count
            count += 1
            if count > limit:
                raise Killed

        machine.tick = tick
        with monkeypatch.context() as patch:
            for module, name in ((os, "unlink"), (os, "rmdir"), (os, "replace"), (shutil, "rmtree")):
                patch.setattr(module, name, counted(getattr(module, name), tick))
            try:
                machine.remove("a")
                return_early = True
            except Killed:
                return_early = False
        machine.tick = lambda: None
        if return_early:
            break
        steps += 1
        machine.remove("a")
        left = [name for name in machine.tree() if name != "units"]
        # between the record and its directory nothing is left but that directory, and nothing in it
        assert left in ([], ["lib"]), (kill_at, left)
        assert (machine.accounts, machine.active) == (set(), set()), kill_at
    assert steps > 15


def counted(function: Callable[..., Any], tick: Callable[[], None]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        tick()
        return function(*arguments, **options)

    return call


def test_what_systemd_or_an_account_refuses_is_said_with_what_to_do(machine: Machine) -> None:
    machine.instance("a")
    machine.refuses = "disable"
    with pytest.raises(RemovalError, match=r"asked systemd for disable --now a\.service, found exit code 1 \(it refuses\); nothing"):
        machine.remove("a")
    assert machine.at("units/a.service").exists()
    machine.refuses = "userdel"
    with pytest.raises(RemovalError, match=r"asked to remove the user sglang, which the role made; found exit code 1 \(it refuses\); end"):
        machine.remove("a")
    machine.refuses = ""
    machine.remove("a")
    assert machine.tree() == ["units"]


def test_the_record_is_read_back_and_a_broken_one_is_none(tmp_path: Path) -> None:
    made = Made("u", "g", ("/a", "/b"), {"i": Instance("/e", "/s", "/c", "/r", ("/m",))})
    assert read_made(made_text(made)) == made
    for text in ("", "{", "[]", '{"instances": 5, "directories": "x", "user": 5}'):
        assert read_made(text) == Made()
    # models that an instance had before stay known, and a directory appears with its record in it
    assert made.with_instance("i", Instance("/e", "/s", "/c", "/r", ("/n",))).instances["i"].models == ("/m", "/n")
    write_made(str(tmp_path / "x/lib"), made_text(made))
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["lib"]
    assert read_made((tmp_path / "x/lib/made.json").read_text(encoding="utf-8")) == made


def test_directories_that_are_missing_are_named_from_the_outside(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    paths = [str(tmp_path / "there"), str(tmp_path / "a/b"), str(tmp_path / "a/c")]
    assert missing_directories(paths) == (str(tmp_path / "a"), str(tmp_path / "a/b"), str(tmp_path / "a/c"))


OWN = "[Unit]\nX-InferopsInstance=a\n"
BEGUN = {
    "a running unit of another name": ("old.service", {"ActiveState": "active", "UnitFileState": "enabled"}, "", (False, True, True)),
    "one that is only enabled": ("old.service", {"ActiveState": "failed", "UnitFileState": "enabled"}, "", (False, False, True)),
    "one that is neither": ("old.service", {"ActiveState": "inactive", "UnitFileState": "disabled"}, "", None),
    "a stopped unit in the same place": ("a.service", {"ActiveState": "inactive"}, "[Unit]\n", (True, False, False)),
    "the role's own": ("a.service", {"ActiveState": "active", "UnitFileState": "enabled"}, OWN, None),
}


@pytest.mark.parametrize("case", BEGUN)
def test_an_adoption_begins_where_there_is_something_to_take(case: str) -> None:
    unit, state, text, expected = BEGUN[case]
    found = begin("now", unit, "a.service", state, text)
    assert ((found.same, found.active, found.enabled) if found else None) == expected


def test_an_adoption_is_open_until_a_service_is_accepted_under_it() -> None:
    adoption = Adoption("1", "old.service", "/etc/old", "text", False, True, True, ("/d",))
    text = adoption_text(adoption)
    assert read_adoption(text) == adoption
    assert open_adoption(text, "") == adoption
    assert open_adoption(text, '{"receipt": {"adoption": "0"}}') == adoption
    assert open_adoption(text, '{"receipt": {"adoption": "1"}}') is None
    assert open_adoption(text, "{") == adoption
    for broken in ("", "{", "[]", "{}", '{"id": 1}'):
        assert open_adoption(broken, "") is None
