"""A census of this process: how many bytes of Python objects it holds, and whose they are.

Each object is charged once: to the first owner, in the order of `_rooms`, from whom it is reached without
passing another one. So what a source holds and the view has as well is the source's, and what is equal but
not one object counts twice. Bytes are what objects say of themselves, with the collector's header: what the
allocator rounds up or leaves free, or C holds besides, is the difference to what the process has in all.

It imports nothing of the program: it counts whichever checkout's runs (`benchmarks.inspected_server`). An
engine of before this one's families is a package like others.
"""

import functools
import gc
import json
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

_PROGRAM: Final = (
    *(ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType, type),
    *(GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType),
)
_DECLARED: Final = ("Declared", "Derived")
"""What is there whatever is served, the engine's classes by name; nothing is looked for behind it."""

_ENGINE: Final = (
    *_DECLARED,
    "Derivation",
    "Entries",
    "Firewall",
    "Graph",
    "Node",
    "Observed",
    "Source",
    "Table",
)
"""The engine's classes that are told apart."""

_PLAIN: Final = (
    *("mesh.", "catalog.policy.", "catalog.relations.", "sidecars.", "delivery.snapshots."),
    "xds.protocol.resources.resource",
)
"""Modules of values: they are whoever's has them."""

_OURS: Final = (
    *("admin", "admission", "catalog", "certs", "controller", "delivery", "enrolment", "kube", "providers"),
    *("reporting", "specs", "xds"),
    *("incremental", "smi"),  # the names of engine and specs once
)
_LIBRARIES: Final = ("asyncio", "grpc", "aiohttp", "concurrent")


@dataclass(slots=True)
class OwnerUsage:
    """What one owner holds: bytes and objects, and both by type."""

    size: int = 0
    count: int = 0
    types: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)


Census = dict[str, OwnerUsage]
"""Holdings by owner."""


def census() -> Census:
    """Count every object that is reached from what the collector knows, the frozen ones included."""
    gc.collect()
    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    objects = gc.get_objects()
    if frozen:
        gc.freeze()
    walk = _Walk({id(objects)})
    for owner, roots in _rooms(objects):
        walk.charge(owner, roots)
    return walk.found


class _Walk:
    def __init__(self, seen: set[int]) -> None:
        self.found: Census = {}
        self._seen = seen

    def charge(self, owner: str, roots: Iterable[object]) -> None:
        """Charge an owner with what is reached from its roots and is nobody's yet."""
        holding = self.found.setdefault(owner, OwnerUsage())
        waiting = deque(roots)
        while waiting:
            each = waiting.popleft()
            if id(each) in self._seen or isinstance(each, _PROGRAM) or _engine_class(each) in _DECLARED:
                continue
            self._seen.add(id(each))
            size = sys.getsizeof(each)
            holding.size += size
            holding.count += 1
            name = f"{type(each).__module__}.{type(each).__qualname__}"
            holding.types[name] += size
            holding.counts[name] += 1
            waiting.extend(found for found in gc.get_referents(each) if _room(found) in (None, owner))


def _rooms(objects: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield owners with their roots, in the order in which they are charged."""
    rooms: dict[str, list[Any]] = {}
    for each in objects:
        if (room := _room(each)) is not None:
            rooms.setdefault(room, []).append(each)
        if _engine_class(each) == "Derivation" and hasattr(each, "family"):
            rooms.setdefault(f"value {each.family.name}", []).append(each.outcome)
    yield from sorted(rooms.items(), key=lambda room: (_rank(room[0]), room[0]))
    yield "others", [each for each in objects if not isinstance(each, (FrameType, Iterator))]


def _rank(room: str) -> int:
    order = ("providers", "table", "index", "value", "read", "node")
    return order.index(room.partition(" ")[0]) if room.partition(" ")[0] in order else len(order)


def _room(each: Any) -> str | None:  # noqa: ANN401 - whatever there is
    """Return whose an object is by its own type; None for values, which are whoever's has them."""
    match _engine_class(each):
        case "Derivation" if hasattr(each, "family"):
            return f"node {each.family.name}"
        case "Source":
            return f"read {each.origin}"
        case "Table":
            return f"table {each.name}"
        case "Entries":
            return f"index {each.name}"
        case "":
            return _room_of(type(each))  # type: ignore[arg-type]  # types hash
        case _:
            return "engine"


def _engine_class(each: object) -> str:
    return _engine(type(each))  # type: ignore[arg-type]  # types hash


@functools.cache
def _engine(kind: type) -> str:
    """Return which of the engine's classes a type is of, or nothing."""
    names = (base.__name__ for base in kind.__mro__ if _module(base).startswith("engine."))
    return next((name for name in names if name in _ENGINE), "")


@functools.cache
def _room_of(kind: type) -> str | None:
    module = _module(kind)
    package, _, rest = module.partition(".")
    if module.startswith(_PLAIN) or package not in (*_OURS, *_LIBRARIES):
        return None
    return f"{package} {rest.partition('.')[0]}" if package in _OURS else package


def _module(kind: type) -> str:
    """Return a type's module, of our own package the part behind `meshwright.`."""
    return str(kind.__module__).removeprefix("meshwright.")  # of a few of C's own types it is no text


def write_on_signal(folder: Path) -> None:
    """Write a census at each SIGUSR2: `1.json`, `2.json` and so on in the folder.

    It has the bytes and objects of each type by owner.
    """
    written = 0

    def write(number: int, frame: FrameType | None) -> None:
        nonlocal written
        del number, frame
        written += 1
        draft = folder / "draft"
        found = {
            owner: {name: (size, each.counts[name]) for name, size in each.types.items()}
            for owner, each in census().items()
        }
        draft.write_text(json.dumps(found), encoding="utf-8")
        os.replace(draft, folder / f"{written}.json")  # noqa: PTH105 - whole, or not there

    signal.signal(signal.SIGUSR2, write)
