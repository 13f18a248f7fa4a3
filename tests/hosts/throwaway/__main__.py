# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line; tests/hosts/README.md describes it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from . import cgroup
from .fleet import Fleet
from .host import RELEASE, Host, Spec
from .image import ensure_image
from .settings import HostsError, Settings, check_machine

# Keys of an entry in Molecule's platforms, and what they are here.
PLATFORM = {"name": "name", "release": "release", "groups": "groups", "binds": "bind_ro", "tmpfs": "tmpfs"}
# Every command takes both, whether it has arguments or not; it returns the exit code.
Command = Callable[[Fleet, argparse.Namespace], int]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hosts", description="Throw-away Debian hosts for tests.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, do: Command, text: str, names: str = "") -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(do=do)
        if names:
            added.add_argument("names", nargs=names, metavar="NAME")
        return added

    image = command("image", _image, "build the base image if it is not cached, and print where it is")
    image.add_argument("release", nargs="?", default=RELEASE)
    _maker(command("up", _up, "make and boot hosts, wait until they are up", "*"))
    _maker(command("ensure", _ensure, "the same for those that do not run; prints 'created NAME...'", "*"))
    inventory = command("inventory", _inventory, "print an Ansible inventory in YAML", "*")
    inventory.add_argument("--output", type=Path, metavar="FILE", help="write it to this file instead")
    command("list-json", _list_json, "print Molecule's instance configuration", "*")
    execute = command("exec", _exec, "run a command inside a host, as root")
    execute.add_argument("name", metavar="NAME")
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    command("reboot", _reboot, "reboot in an orderly way, keeping the disk", "+")
    command("crash", _crash, "pull the plug and boot again, keeping the disk", "+")
    command("down", _down, "remove hosts, all when none is named; prints 'removed NAME...'", "*")
    command("remove", _down, "remove the named hosts; prints 'removed NAME...'", "+")
    command("ls", _ls, "list the hosts")
    command("leftovers", _leftovers, "list all that is left of hosts on this machine; exit code 1 if anything is")
    supervise = command("supervise", _supervise, "what keeps one host running; for 'up' itself only")
    supervise.add_argument("directory", type=Path)
    return parser.parse_args()


def _maker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", default=RELEASE, help=f"Debian release (default: {RELEASE})")
    parser.add_argument("--group", action="append", default=[], help="inventory group; may be repeated")
    parser.add_argument("--bind-ro", action="append", default=[], metavar="SRC:DST", help="read-only bind mount")
    parser.add_argument("--tmpfs", action="append", default=[], metavar="DST:SIZE", help="file system of this size")
    parser.add_argument("--platforms", metavar="FILE", help="instead of names: Molecule's platforms as JSON; - is stdin")


def _specs(args: argparse.Namespace) -> list[Spec]:
    if args.platforms:
        return [_platform(entry) for entry in _platforms(args.platforms)]
    if not args.names:
        raise HostsError(f"{args.command}: no host named: give NAME... or --platforms FILE")
    options = {"groups": tuple(args.group), "bind_ro": tuple(args.bind_ro), "tmpfs": tuple(args.tmpfs)}
    return [Spec(name=name, release=args.release, **options) for name in args.names]


def _platforms(source: str) -> list[dict[str, object]]:
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    try:
        platforms = json.loads(text)
    except ValueError as error:
        raise HostsError(f"--platforms {source}: not JSON: {error}") from error
    if not isinstance(platforms, list) or not all(isinstance(entry, dict) for entry in platforms):
        raise HostsError(f"--platforms {source}: expected a list of mappings, found {type(platforms).__name__}")
    return platforms


def _platform(entry: dict[str, object]) -> Spec:
    unknown = sorted(set(entry) - set(PLATFORM))
    if unknown or "name" not in entry:
        found = f"unknown keys {', '.join(unknown)}" if unknown else "no name"
        raise HostsError(f"platform {entry.get('name', entry)}: {found}; keys are {', '.join(PLATFORM)}")
    return Spec.from_fields({PLATFORM[key]: value for key, value in entry.items()})


def _image(fleet: Fleet, args: argparse.Namespace) -> int:
    print(ensure_image(fleet.settings, args.release))
    return 0


def _up(fleet: Fleet, args: argparse.Namespace) -> int:
    return _report("created", fleet.up(_specs(args)))


def _ensure(fleet: Fleet, args: argparse.Namespace) -> int:
    return _report("created", fleet.ensure(_specs(args)))


def _down(fleet: Fleet, args: argparse.Namespace) -> int:
    return _report("removed", fleet.down(args.names))


def _report(verb: str, names: list[str]) -> int:
    if names:
        print(verb, *names)
    return 0


def _inventory(fleet: Fleet, args: argparse.Namespace) -> int:
    text = fleet.inventory(args.names)
    if args.output:
        args.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


def _list_json(fleet: Fleet, args: argparse.Namespace) -> int:
    print(fleet.instance_config(args.names))
    return 0


def _exec(fleet: Fleet, args: argparse.Namespace) -> int:
    if not args.words:
        raise HostsError(f"exec {args.name}: no command given")
    fleet.hosts([args.name])[0].execute(args.words)


def _reboot(fleet: Fleet, args: argparse.Namespace) -> int:
    fleet.reboot(args.names)
    return 0


def _crash(fleet: Fleet, args: argparse.Namespace) -> int:
    fleet.crash(args.names)
    return 0


def _ls(fleet: Fleet, _args: argparse.Namespace) -> int:
    print(fleet.table(), end="")
    return 0


def _leftovers(fleet: Fleet, _args: argparse.Namespace) -> int:
    left = fleet.leftovers()
    print("".join(f"{line}\n" for line in left), end="")
    return 1 if left else 0


def _supervise(fleet: Fleet, args: argparse.Namespace) -> int:
    Host(fleet.settings, args.directory.name).supervise()
    return 0


def main() -> int:
    """Do one command; an error is one message on stderr and exit code 1."""
    args = _arguments()
    try:
        check_machine()
        cgroup.check_kernel()
        do: Command = args.do
        return do(Fleet(Settings.from_environment()), args)
    except (HostsError, OSError) as error:
        print(f"hosts: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
