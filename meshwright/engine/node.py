"""Nodes of a graph: sources, which are written, and derivations, which are computed.

There are about a hundred nodes for each service of a mesh. To keep them small, common attributes are in the
node's family, and rare ones in the graph.
"""

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, cast


class AbsentInput(enum.Enum):
    """Marker of an input missing from a table, because `None` is an ordinary value."""

    ABSENT = enum.auto()


ABSENT: Final = AbsentInput.ABSENT

FEW: Final = 32
"""Number of readers up to which they are a tuple, searched one by one."""


def same(old: object, new: object) -> bool:
    """Return whether a new value can replace the old one: equal and of the same type (1 is not True)."""
    return old is new or (type(old) is type(new) and old == new)


class Family:
    """Nodes of one kind by key, with the name of their table, index or function.

    A node without readers is removed from `nodes`; other holders keep their nodes themselves.
    """

    __slots__ = ("name", "nodes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[Hashable, Any] = {}


class Function(Family):
    """Values of a function by the arguments after `first`: a single argument itself, several as a tuple."""

    __slots__ = ("first", "function", "single")

    def __init__(
        self, name: str, function: Callable[..., Any], first: tuple[Any, ...], *, single: bool
    ) -> None:
        super().__init__(name)
        self.function = function
        self.first = first
        self.single = single

    def arguments(self, key: Hashable) -> tuple[Any, ...]:
        """Return the function's arguments for a key, without the arguments `first`."""
        return (key,) if self.single else key  # type: ignore[return-value]

    def node(self, key: Hashable) -> "Derivation":
        """Return the derivation for a key, created if necessary."""
        derivation: Derivation | None = self.nodes.get(key)
        if derivation is None:
            derivation = self.nodes[key] = Derivation(self, key)
        return derivation

    def run(self, key: Hashable) -> Any:  # noqa: ANN401 - a graph has functions of all types
        """Call the function with the arguments of a key, and return the value or raise the error."""
        if self.single:
            return self.function(*self.first, key)
        return self.function(*self.first, *self.arguments(key))


@dataclass(frozen=True, slots=True, eq=False)
class RaisedError:
    """Outcome of a function that raised an error; errors of one type with equal arguments are equal."""

    error: Exception

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RaisedError):
            return NotImplemented
        return type(self.error) is type(other.error) and self.error.args == other.error.args

    __hash__ = None  # type: ignore[assignment]  # arguments of an error need not hash


class Node:
    """Node that can be read: an input, a set of keys, an entry of an index, or a derived value.

    The family holds the node under `key`. `level` is the number of the latest stage behind the node (see
    `engine.graph`).
    """

    __slots__ = ("changed_at", "family", "key", "level", "readers")

    reads: "tuple[Node, ...]"
    stale: bool
    dirty_set: "dict[Derivation, None] | None"

    def __init__(self, family: Family, key: Hashable, level: int = 0) -> None:
        self.family = family
        self.key = key
        self.level = level
        self.changed_at = 0
        self.readers: tuple[Derivation, ...] | dict[Derivation, None] = ()

    def read_by(self, reader: "Derivation") -> None:
        """Add a new reader. A tuple of thirty readers takes a quarter of the memory of a dictionary."""
        readers = self.readers
        if isinstance(readers, dict):
            readers[reader] = None
        elif len(readers) < FEW:
            self.readers = (*readers, reader)
        else:
            self.readers = dict.fromkeys((*readers, reader))

    def left_by(self, reader: "Derivation") -> None:
        """Remove a reader. A dictionary never shrinks, so few readers become a tuple again."""
        readers = self.readers
        if isinstance(readers, dict):
            readers.pop(reader, None)
            if len(readers) <= FEW // 2:
                self.readers = tuple(readers)
        elif reader in readers:
            place = readers.index(reader)
            self.readers = readers[:place] + readers[place + 1 :]


class Source(Node):
    """Node with a value written by a caller, and not computed by the graph."""

    __slots__ = ()

    reads: tuple[Node, ...] = ()
    stale = False
    dirty_set = None

    @property
    def origin(self) -> str:
        """The name of the table or index in which the value is stored."""
        return self.family.name


class Wall(Source):
    """Source written with the result of one derivation, `behind`; readers are marked only after a change."""

    __slots__ = ("reads",)

    def __init__(self, family: Family, key: Hashable, read: "Derivation", level: int) -> None:
        super().__init__(family, key, level)
        self.reads = (read,)

    @property
    def behind(self) -> "Derivation":
        """The derivation whose result the wall passes to its readers."""
        return cast("Derivation", self.reads[0])


class Gate(Wall):
    """Wall with a derivation kept only for this wall, and released together with the wall."""

    __slots__ = ()


class Derivation(Node):
    """Function applied to a key: the outcome, and the reads behind it.

    An error is an outcome like any value. With a `dirty_set` the derivation is kept without readers, and
    added to this set whenever it may have changed.
    """

    __slots__ = ("dirty_set", "outcome", "reads", "stale", "verified_at")

    family: Function

    def __init__(self, family: Function, key: Hashable) -> None:
        super().__init__(family, key)
        self.reads = ()
        self.stale = True
        self.verified_at = 0
        self.outcome: object = None
        self.dirty_set = None

    def __str__(self) -> str:
        return f"{self.family.name}({', '.join(map(str, self.family.arguments(self.key)))})"

    @property
    def error(self) -> Exception | None:
        """The error raised by the function, or `None` if the outcome is a value."""
        return self.outcome.error if isinstance(self.outcome, RaisedError) else None

    def outcome_is(self, outcome: object) -> bool:
        """Return whether a new outcome is the same as the present one, so readers need no new computation."""
        return same(self.outcome, outcome)
