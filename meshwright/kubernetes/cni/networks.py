"""Changes of a node's network files that add our plug-in to the active list or remove it. Pure functions.

The runtime uses the first valid file, in the order of the names (libcni). After an interruption between two
steps, or a change by another program, newly computed steps lead to the same end.
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
"""Suffix of a file replaced by a list; runtimes ignore files with this suffix."""
_LIST: Final = ".conflist"
_SINGLE: Final = (".conf", ".json")

Files = Mapping[str, bytes]
"""Content of the folder's files by their names."""


class NoNetworkError(Exception):
    """The folder of network files has no list for our plug-in; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class FileWrite:
    """Replace the content of a file; mode and owner are copied from `like` if this file exists."""

    name: str
    content: bytes
    like: str


@dataclass(frozen=True, slots=True)
class FileRename:
    """Step that renames a network file, and replaces an existing file with the new name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """Step that removes a network file."""

    name: str


Step = FileWrite | FileRename | FileRemoval


def entry(socket: str) -> Mapping[str, Any]:
    """Return the entry of Meshwright's plug-in for a network list, with the socket of the daemon."""
    return {"type": TYPE, SOCKET: socket}


def put_in(files: Files, wanted: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps after which only the runtime's active list has our entry.

    A file with one plug-in is not a list. A list replaces such a file; the file is kept with the suffix KEPT.
    Raises NoNetworkError.
    """
    name = used(files)
    if _is_single(files, before := _replaced(files[name])):
        name = before  # written again by another program, or not yet renamed
    result = network(files[name])
    assert result is not None  # noqa: S101 - `used` returns only files that can be parsed
    text = files[name].decode()
    if name.endswith(_LIST):
        fields = {**wanted, **({REPLACES: before} if before else {})}
        new = with_entry(text, fields)
        target = name
        steps: list[Step] = [] if new == text else [FileWrite(name, new.encode(), name)]
    else:
        target, steps = _in_place(files, name, as_list(text, result, {**wanted, REPLACES: name}))
    return (*steps, *_out(files, lambda file: file != target))


def take_out(files: Files) -> tuple[Step, ...]:
    """Return the steps that remove the plug-in from all lists and restore the files that lists replaced."""
    return tuple(_out(files, lambda _: True))


def used(files: Files) -> str:
    """Return the file in use by the runtime. Raises NoNetworkError if there is no usable file."""
    for name in sorted(files):
        result = network(files[name]) if name.endswith(_LIST) else None
        if (result is not None and is_list(result)) or _is_single(files, name):
            return name
    raise NoNetworkError(
        "the node does not have a network configuration yet: the folder needs a valid .conflist or .conf "
        "file of a network plug-in"
    )


def _is_single(files: Files, name: str) -> bool:
    """Return whether a file of this name exists and configures a single plug-in, without a list."""
    result = network(files[name]) if name in files and PurePosixPath(name).suffix in _SINGLE else None
    return result is not None and is_plugin(result)


def _in_place(files: Files, name: str, text: str) -> tuple[str, list[Step]]:
    """Return the name of the list that replaces the file `name`, and the steps to write the list."""
    target = str(PurePosixPath(name).with_suffix(_LIST))
    after = {item: content for item, content in files.items() if item != name} | {target: text.encode()}
    is_taken = target in files and _replaced(files[target]) != name
    if is_taken or (other := used(after)) != target:
        raise NoNetworkError(
            f"{name} configures one plug-in, and cannot be replaced by a list, because "
            f"{target if is_taken else other} belongs to another network; remove or rename one of the two"
        )
    steps: list[Step] = [] if files.get(target) == text.encode() else [FileWrite(target, text.encode(), name)]
    return target, [*steps, FileRename(name, name + KEPT)]


def _replaced(content: bytes) -> str:
    """Return the name of the file that a list with our entry has replaced, or an empty text."""
    result = network(content)
    ours = own(result) if result is not None and is_list(result) else None
    return str(ours.get(REPLACES, "")) if ours else ""


def _out(files: Files, among: Callable[[str], bool]) -> Iterator[Step]:
    for name in sorted(files):
        result = network(files[name]) if name.endswith(_LIST) and among(name) else None
        if result is None or not is_list(result) or own(result) is None:
            continue
        before = _replaced(files[name])
        if before and (before in files or before + KEPT in files):
            yield from _back(files, name, before)
        else:
            yield FileWrite(name, without_entry(files[name].decode()).encode(), name)


def _back(files: Files, name: str, before: str) -> Iterator[Step]:
    """Yield the steps to restore a file; a file written again meanwhile wins over the kept one."""
    if before in files:
        yield from (FileRemoval(item) for item in (name, before + KEPT) if item in files)
    else:
        yield FileRename(before + KEPT, before)
        yield FileRemoval(name)
