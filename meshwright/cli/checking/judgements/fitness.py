"""Judgements of a machine before the first start: whether a server or an agent could run there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.agent.interception.owners import named
from meshwright.cli.checking.judgements.check import Check, counted
from meshwright.cli.checking.judgements.problems import ObjectProblem, judged

_PYTHON: Final = (3, 11)


@dataclass(frozen=True, slots=True)
class Directory:
    """A needed directory: whether the directory exists, and why this user could not create or write it."""

    path: Path
    there: bool
    error: str = ""


def python(version: Sequence[int], system: str) -> Check:
    """Judge the version of Python and the operating system."""
    text = f"Python {'.'.join(map(str, version[:3]))} on {system}"
    if system != "Linux":
        return Check.failed(
            "Python", text, "use a machine with Linux: Meshwright needs its sockets, file locks and iptables"
        )
    if tuple(version[:2]) < _PYTHON:
        return Check.failed("Python", text, f"install Python {_PYTHON[0]}.{_PYTHON[1]} or newer")
    return Check.ok("Python", text)


def directory(name: str, result: Directory, option: str) -> Check:
    """Judge whether a directory for Meshwright's files can be written or created."""
    if result.error:
        return Check.failed(
            name, result.error, f"create the directory for this user, or give another one with {option}"
        )
    return Check.ok(name, f"{result.path} {'can be written' if result.there else 'can be made'}")


def mesh(where: Path, objects: int, object_problems: Sequence[ObjectProblem], error: str = "") -> Check:
    """Judge the objects in the mesh directory, with the problems found by lint."""
    name = "mesh directory"
    if error:
        return Check.failed(name, error, "create the directory, or give the right one with --mesh")
    what = f"{where} has {counted(objects, 'object')}"
    return judged(
        name,
        object_problems,
        f"for the whole list: `meshwright lint {where}`",
        f"{what} and no problems",
        f"{what}: ",
    )


def cluster(objects: int, object_problems: Sequence[ObjectProblem], error: str = "") -> Check:
    """Judge the mesh's objects in a cluster, with the problems found by lint."""
    name = "cluster"
    if error:
        return Check.failed(
            name,
            error,
            "see docs/start/kubernetes.md for access to the cluster and the permissions of the server",
        )
    what = f"the cluster has {counted(objects, 'object')}"
    do = "for the whole list: `meshwright lint --kubernetes`"
    return judged(name, object_problems, do, f"{what} and no problems", f"{what}: ")


def program(name: str, result: str | None, need: str, do: str) -> Check:
    """Judge whether a program is installed."""
    if result is None:
        return Check.failed(name, f"not found on this machine: {need}", do)
    return Check.ok(name, f"found at {result}")


def user(uid: int, *, known: bool) -> Check:
    """Judge whether a user with the proxy's uid exists on this machine."""
    if known:
        return Check.ok("proxy's user", f"{named(uid)} exists")
    do = f"useradd --uid {uid} --no-create-home --shell /usr/sbin/nologin meshwright-proxy"
    return Check.warning("proxy's user", f"no user has the uid {uid}", do)
