"""Census of the Python objects of this process: bytes by owner and type.

Each object is charged once, to the first owner in the order of `_rooms` that reaches it without passing an
object of another owner. For example, an object shared by a source and the view is charged to the source.
Equal objects count separately. Bytes are the objects' own sizes with the header of the garbage collector. The
process needs more memory than their sum: for C code, for rounding, and for free memory of the allocator.

The census imports nothing of the server, because it counts in any checkout (`benchmarks.inspected_server`).
In checkouts before the engine's families, the engine is a package like others.
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
"""Classes of the engine, by name, that exist independently of the mesh.

Objects behind them are not searched.
"""

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
"""Classes of the engine with rows of their own."""

_PLAIN: Final = (
    *("mesh.", "catalog.policy.", "catalog.relations.", "sidecars.", "delivery.snapshots."),
    "xds.protocol.resources.resource",
)
"""Modules with value types; values belong to the owner that reaches them."""

_OURS: Final = (
    *("admin", "admission", "catalog", "certs", "controller", "delivery", "enrolment", "kube", "providers"),
    *("reporting", "specs", "xds"),
    *("incremental", "smi"),  # former names of engine and specs
)
_LIBRARIES: Final = ("asyncio", "grpc", "aiohttp", "concurrent")


@dataclass(slots=True)
class OwnerUsage:
    """Bytes and number of the Python objects of one owner, in total and by type."""

    size: int = 0
    count: int = 0
    types: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)


Census = dict[str, OwnerUsage]
"""Usage by owner."""


def census() -> Census:
    """Count by owner all Python objects reachable from the garbage collector's, including frozen ones."""
    gc.collect()
    frozen = gc.get_freeze_count() > 0
    # `gc.get_objects` leaves out frozen objects.
    gc.unfreeze()
    objects = gc.get_objects()
    if frozen:
        gc.freeze()
    # The list of objects refers to every object, and must not be searched itself.
    walk = _Walk({id(objects)})
    for owner, roots in _rooms(objects):
        walk.charge(owner, roots)
    return walk.census


class _Walk:
    def __init__(self, seen: set[int]) -> None:
        self.census: Census = {}
        self._seen = seen

    def charge(self, owner: str, roots: Iterable[object]) -> None:
        """Charge to an owner all objects that are reachable from its roots and have no owner yet."""
        holding = self.census.setdefault(owner, OwnerUsage())
        waiting = deque(roots)
        while waiting:
            item = waiting.popleft()
            if id(item) in self._seen or isinstance(item, _PROGRAM) or _engine_class(item) in _DECLARED:
                continue
            self._seen.add(id(item))
            size = sys.getsizeof(item)
            holding.size += size
            holding.count += 1
            name = f"{type(item).__module__}.{type(item).__qualname__}"
            holding.types[name] += size
            holding.counts[name] += 1
            waiting.extend(
                referent for referent in gc.get_referents(item) if _room(referent) in (None, owner)
            )


def _rooms(objects: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the owners of objects with their roots, in the order of charging."""
    rooms: dict[str, list[Any]] = {}
    for item in objects:
        if (room := _room(item)) is not None:
            rooms.setdefault(room, []).append(item)
        if _engine_class(item) == "Derivation" and hasattr(item, "family"):
            rooms.setdefault(f"value {item.family.name}", []).append(item.outcome)
    yield from sorted(rooms.items(), key=lambda room: (_rank(room[0]), room[0]))
    yield "others", [item for item in objects if not isinstance(item, (FrameType, Iterator))]


def _rank(room: str) -> int:
    order = ("providers", "table", "index", "value", "read", "node")
    return order.index(room.partition(" ")[0]) if room.partition(" ")[0] in order else len(order)


def _room(item: Any) -> str | None:  # noqa: ANN401 - whatever there is
    """Return the owner of an object by its type.

    None for values, which belong to the owner that reaches them.
    """
    match _engine_class(item):
        case "Derivation" if hasattr(item, "family"):
            return f"node {item.family.name}"
        case "Source":
            return f"read {item.origin}"
        case "Table":
            return f"table {item.name}"
        case "Entries":
            return f"index {item.name}"
        case "":
            return _room_of(type(item))  # type: ignore[arg-type]  # types hash
        case _:
            return "engine"


def _engine_class(item: object) -> str:
    return _engine(type(item))  # type: ignore[arg-type]  # types hash


@functools.cache
def _engine(kind: type) -> str:
    """Return the name of the engine's class from which a type is derived; empty for other types."""
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
    """Return the name of the module that defines a type; without `meshwright.` for our own packages."""
    # `str`, because a few types of C modules have another object there.
    return str(kind.__module__).removeprefix("meshwright.")


def write_on_signal(folder: Path) -> None:
    """Write a census at each SIGUSR2: `1.json`, `2.json` and so on in the folder.

    Each file has the bytes and objects of each type by owner.
    """
    written = 0

    def write(number: int, frame: FrameType | None) -> None:
        nonlocal written
        del number, frame
        written += 1
        draft = folder / "draft"
        result = {
            owner: {name: (size, owner_usage.counts[name]) for name, size in owner_usage.types.items()}
            for owner, owner_usage in census().items()
        }
        draft.write_text(json.dumps(result), encoding="utf-8")
        os.replace(draft, folder / f"{written}.json")  # noqa: PTH105 - whole, or not there

    signal.signal(signal.SIGUSR2, write)
