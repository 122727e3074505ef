"""A census of this process: how many bytes of Python objects it holds, and whose they are.

Each object is charged once: to the first owner, in the order of `_rooms`, from whom it is reached without
passing another one. So what a source holds and the view has as well is the source's, and what is equal but
not one object counts twice. Bytes are what objects say of themselves, with the collector's header: what the
allocator rounds up or leaves free, or C holds besides, is the difference to what the process has in all.
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

from engine.declared import Declared
from engine.derived import Derived, Observed
from engine.firewall import Firewall
from engine.graph import Graph
from engine.index import Entries
from engine.node import Derivation, Node, Source
from engine.table import Table

_PROGRAM: Final = (
    *(ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType, type, Derived, Declared),
    *(GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType),
)
"""What is there whatever is served; nothing is looked for behind it."""

_PLAIN: Final = (
    *("mesh.", "catalog.policy.", "catalog.relations.", "sidecars.", "delivery.snapshots."),
    "xds.protocol.resource",
)
"""Modules of values: they are whoever's has them."""

_OURS: Final = ("admin", "catalog", "certs", "controller", "delivery", "providers", "specs", "xds")
_LIBRARIES: Final = ("asyncio", "grpc", "aiohttp", "concurrent")


@dataclass(slots=True)
class Holding:
    """What one owner holds: bytes and objects, and the bytes by type."""

    size: int = 0
    count: int = 0
    types: Counter[str] = field(default_factory=Counter)


Census = dict[str, Holding]
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
        holding = self.found.setdefault(owner, Holding())
        waiting = deque(roots)
        while waiting:
            each = waiting.popleft()
            if id(each) in self._seen or isinstance(each, _PROGRAM):
                continue
            self._seen.add(id(each))
            size = sys.getsizeof(each)
            holding.size += size
            holding.count += 1
            holding.types[f"{type(each).__module__}.{type(each).__qualname__}"] += size
            waiting.extend(found for found in gc.get_referents(each) if _room(found) in (None, owner))


def _rooms(objects: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield owners with their roots, in the order in which they are charged."""
    rooms: dict[str, list[Any]] = {}
    for each in objects:
        if (room := _room(each)) is not None:
            rooms.setdefault(room, []).append(each)
        if isinstance(each, Derivation):
            rooms.setdefault(f"value {_function(each)}", []).extend((each.outcome,))
    yield from sorted(rooms.items(), key=lambda room: (_rank(room[0]), room[0]))
    yield "others", [each for each in objects if not isinstance(each, (FrameType, Iterator))]


def _rank(room: str) -> int:
    order = ("providers", "table", "index", "value", "read", "node")
    return order.index(room.partition(" ")[0]) if room.partition(" ")[0] in order else len(order)


def _room(each: object) -> str | None:
    """Return whose an object is by its own type; None for values, which are whoever's has them."""
    match each:
        case Derivation():
            return f"node {_function(each)}"
        case Source():
            return f"read {each.origin}"
        case Table():
            return f"table {each.name}"
        case Entries():
            return f"index {each.name}"
        case _:
            return _room_of(type(each))  # type: ignore[arg-type]  # types hash


@functools.cache
def _room_of(kind: type) -> str | None:
    if issubclass(kind, (Graph, Node, Observed, Firewall)):
        return "engine"
    module = str(kind.__module__)  # of a few of C's own types it is no text
    package, _, rest = module.partition(".")
    if module.startswith(_PLAIN) or package not in (*_OURS, *_LIBRARIES):
        return None
    return f"{package} {rest.partition('.')[0]}" if package in _OURS else package


def _function(node: Derivation) -> str:
    return node.family.name


def write_on_signal(folder: Path) -> None:
    """Write a census at each SIGUSR2: `1.json`, `2.json` and so on in the folder."""
    written = 0

    def write(number: int, frame: FrameType | None) -> None:
        nonlocal written
        del number, frame
        written += 1
        found = {
            owner: {"bytes": each.size, "objects": each.count, "types": dict(each.types.most_common(8))}
            for owner, each in census().items()
        }
        draft = folder / "draft"
        draft.write_text(json.dumps(found), encoding="utf-8")
        os.replace(draft, folder / f"{written}.json")  # noqa: PTH105 - whole, or not there

    signal.signal(signal.SIGUSR2, write)
