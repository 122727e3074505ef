"""What is to be done in the folder of a node's networks, so that our plug-in is in its list, or is not. Pure.

The runtime uses the first file, in the order of their names, that it can read (libcni). Steps are such that
whoever is killed between two of them, or sees another program's changes, comes to the same end with new ones.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from meshwright.kubernetes.cni.conflist import (
    REPLACES,
    TYPE,
    as_list,
    is_list,
    is_plugin,
    network,
    own,
    with_entry,
    without_entry,
)
from meshwright.kubernetes.cni.relay import SOCKET

KEPT: Final = ".meshwright"
"""What the name of a file ends in whose place a list has taken: no runtime looks at it."""
_LIST: Final = ".conflist"
_SINGLE: Final = (".conf", ".json")

Files = Mapping[str, bytes]
"""The files of the folder by their names."""


class NoNetworkError(Exception):
    """There is no list that our plug-in could stand in; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class FileWrite:
    """Put content in a file's place, whole; its mode is that of `like`, if there is such a file."""

    name: str
    content: bytes
    like: str


@dataclass(frozen=True, slots=True)
class FileRename:
    """Give a file another name, in place of whatever has that."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """Remove a file."""

    name: str


Step = FileWrite | FileRename | FileRemoval


def entry(socket: str) -> Mapping[str, Any]:
    """Return our entry in a list, for a daemon at that socket."""
    return {"type": TYPE, SOCKET: socket}


def put_in(files: Files, wanted: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps by which our entry is in the list that the runtime uses, and in no other.

    A file with one plug-in is no list: one takes its place, and it is kept. Raises NoNetworkError.
    """
    name = used(files)
    if _is_single(files, before := _replaced(files[name])):
        name = before  # it was written anew, or is there still
    found = network(files[name])
    assert found is not None  # noqa: S101 - it can be used
    text = files[name].decode()
    if name.endswith(_LIST):
        told = {**wanted, **({REPLACES: before} if before else {})}
        new = with_entry(text, told)
        target = name
        steps: list[Step] = [] if new == text else [FileWrite(name, new.encode(), name)]
    else:
        target, steps = _in_place(files, name, as_list(text, found, {**wanted, REPLACES: name}))
    return (*steps, *_out(files, lambda each: each != target))


def take_out(files: Files) -> tuple[Step, ...]:
    """Return the steps by which our entry is in no list, and every file as its author has it."""
    return tuple(_out(files, lambda _: True))


def used(files: Files) -> str:
    """Return the file that the runtime uses; raise NoNetworkError where it has none."""
    for name in sorted(files):
        found = network(files[name]) if name.endswith(_LIST) else None
        if (found is not None and is_list(found)) or _is_single(files, name):
            return name
    raise NoNetworkError("there is no network here yet: no file that ends in .conflist or .conf can be used")


def _is_single(files: Files, name: str) -> bool:
    """Say whether a file of that name is there, and holds one plug-in that can be used."""
    found = network(files[name]) if name in files and PurePosixPath(name).suffix in _SINGLE else None
    return found is not None and is_plugin(found)


def _in_place(files: Files, name: str, text: str) -> tuple[str, list[Step]]:
    """Return the name of the list that takes a file's place, and how it comes there."""
    target = str(PurePosixPath(name).with_suffix(_LIST))
    after = {each: content for each, content in files.items() if each != name} | {target: text.encode()}
    is_taken = target in files and _replaced(files[target]) != name
    if is_taken or (other := used(after)) != target:
        raise NoNetworkError(
            f"{name} holds one plug-in, and a list cannot take its place: {target if is_taken else other} is "
            "another network's; remove one of the two, or give it another name"
        )
    steps: list[Step] = [] if files.get(target) == text.encode() else [FileWrite(target, text.encode(), name)]
    return target, [*steps, FileRename(name, name + KEPT)]


def _replaced(content: bytes) -> str:
    """Return in which file's place a list was made; empty if in none's."""
    found = network(content)
    ours = own(found) if found is not None and is_list(found) else None
    return str(ours.get(REPLACES, "")) if ours else ""


def _out(files: Files, among: Callable[[str], bool]) -> Iterator[Step]:
    for name in sorted(files):
        found = network(files[name]) if name.endswith(_LIST) and among(name) else None
        if found is None or not is_list(found) or own(found) is None:
            continue
        before = _replaced(files[name])
        if before and (before in files or before + KEPT in files):
            yield from _back(files, name, before)
        else:
            yield FileWrite(name, without_entry(files[name].decode()).encode(), name)


def _back(files: Files, name: str, before: str) -> Iterator[Step]:
    """Yield how a file takes its place again; one that was written anew meanwhile is the right one."""
    if before in files:
        yield from (FileRemoval(each) for each in (name, before + KEPT) if each in files)
    else:
        yield FileRename(before + KEPT, before)
        yield FileRemoval(name)
