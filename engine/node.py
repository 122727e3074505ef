"""The nodes of a graph: what can be read, and what is computed from reads."""

import enum
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, Final


class Absent(enum.Enum):
    """What stands where an input is not there; None is a value like others."""

    ABSENT = enum.auto()


ABSENT: Final = Absent.ABSENT

FEW: Final = 8
"""Readers that are looked through one by one."""


def same(old: object, new: object) -> bool:
    """Say whether a new value may be taken for the old one: equal, and of one type (1 is not True)."""
    return old is new or (type(old) is type(new) and old == new)


class Node:
    """Something that can be read: an input, a set of keys, an index's entry, a derived value.

    `owner` is where it is found under `key`; a node that nobody reads is taken out of there, unless `pinned`.
    `level` is the number of the latest stage (see engine.graph) that it depends on.
    """

    __slots__ = ("changed_at", "key", "level", "owner", "pinned", "readers", "reads", "stale")

    def __init__(self, owner: MutableMapping[Any, Any], key: Hashable, *, level: int = 0) -> None:
        self.owner = owner
        self.key = key
        self.level = level
        self.pinned = False
        self.stale = False
        self.changed_at = 0
        self.readers: tuple[Derivation, ...] | set[Derivation] = ()
        self.reads: tuple[Node, ...] = ()

    def read_by(self, reader: "Derivation") -> None:
        """Add a reader. Most nodes have few: a set of five takes seven times what a tuple of them does."""
        readers = self.readers
        if isinstance(readers, set):
            readers.add(reader)
        elif reader not in readers:
            self.readers = (*readers, reader) if len(readers) < FEW else {*readers, reader}

    def left_by(self, reader: "Derivation") -> None:
        """Take a reader out."""
        readers = self.readers
        if isinstance(readers, set):
            readers.discard(reader)
        elif reader in readers:
            self.readers = tuple(each for each in readers if each is not reader)


class Source(Node):
    """A node that is written, not computed; `origin` is the name of its table or index."""

    __slots__ = ("origin",)

    def __init__(
        self,
        origin: str,
        owner: MutableMapping[Any, Any],
        key: Hashable,
        *,
        level: int = 0,
        pinned: bool = False,
    ) -> None:
        super().__init__(owner, key, level=level)
        self.origin = origin
        self.pinned = pinned


class Derivation(Node):
    """A function applied to arguments: what came of it, and what it read.

    An error that the function raised is its outcome like any value. `dirty_set`, if there is one, is told
    of the node when it may have changed.
    """

    __slots__ = ("arguments", "cycle", "dirty_set", "error", "function", "running", "value", "verified_at")

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        owner: MutableMapping[Any, Any],
        key: Hashable,
    ) -> None:
        super().__init__(owner, key)
        self.function = function
        self.arguments = arguments
        self.stale = True
        self.running = False
        self.verified_at = 0
        self.value: Any = None
        self.error: Exception | None = None
        self.cycle: Exception | None = None
        self.dirty_set: dict[Derivation, None] | None = None

    def __str__(self) -> str:
        arguments = ", ".join(str(each) for each in self.arguments if not hasattr(each, "graph"))
        return f"{self.function.__module__}.{self.function.__qualname__}({arguments})"

    def outcome_is(self, value: object, error: Exception | None) -> bool:
        """Say whether this outcome may be taken for the one that is there."""
        if self.error is not None or error is not None:
            return type(self.error) is type(error) and _said(self.error) == _said(error)
        return same(self.value, value)


def _said(error: Exception | None) -> tuple[object, ...]:
    return () if error is None else error.args
