"""The nodes of a graph: what can be read, and what is computed from reads.

There are a hundred of them for each service of a mesh: what all of one sort have in common stands in their
family, and what few of them ever have in the graph.
"""

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, cast


class AbsentInput(enum.Enum):
    """What stands where an input is not there; None is a value like others."""

    ABSENT = enum.auto()


ABSENT: Final = AbsentInput.ABSENT

FEW: Final = 32
"""Readers that are looked through one by one."""


def same(old: object, new: object) -> bool:
    """Say whether a new value may be taken for the old one: equal, and of one type (1 is not True)."""
    return old is new or (type(old) is type(new) and old == new)


class Family:
    """Nodes of one sort by key, and the name of what they are of: a table, an index, a function.

    A node that nobody reads is taken out of `nodes`; one that stands elsewhere is kept by whoever has it.
    """

    __slots__ = ("name", "nodes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[Hashable, Any] = {}


class Function(Family):
    """The values of a function by what it is given after `first`: one argument itself, several as a tuple."""

    __slots__ = ("first", "function", "single")

    def __init__(
        self, name: str, function: Callable[..., Any], first: tuple[Any, ...], *, single: bool
    ) -> None:
        super().__init__(name)
        self.function = function
        self.first = first
        self.single = single

    def arguments(self, key: Hashable) -> tuple[Any, ...]:
        """Return the arguments that a key stands for."""
        return (key,) if self.single else key  # type: ignore[return-value]

    def node(self, key: Hashable) -> "Derivation":
        """Return the node of a key, made if it is not there."""
        found: Derivation | None = self.nodes.get(key)
        if found is None:
            found = self.nodes[key] = Derivation(self, key)
        return found

    def run(self, key: Hashable) -> Any:  # noqa: ANN401 - functions of all types stand in one graph
        """Compute the value for a key, or raise what the function raises."""
        if self.single:
            return self.function(*self.first, key)
        return self.function(*self.first, *self.arguments(key))


@dataclass(frozen=True, slots=True, eq=False)
class RaisedError:
    """The outcome of a function that raised an error; errors of one type that say the same are equal."""

    error: Exception

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RaisedError):
            return NotImplemented
        return type(self.error) is type(other.error) and self.error.args == other.error.args

    __hash__ = None  # type: ignore[assignment]  # arguments of an error need not hash


class Node:
    """Something that can be read: an input, a set of keys, an index's entry, a derived value.

    It stands in its family under `key`. `level` is the number of the latest stage (see engine.graph) that it
    depends on.
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
        """Add a reader that is not there yet. A tuple of thirty takes a quarter of what a dictionary does."""
        readers = self.readers
        if isinstance(readers, dict):
            readers[reader] = None
        elif len(readers) < FEW:
            self.readers = (*readers, reader)
        else:
            self.readers = dict.fromkeys((*readers, reader))

    def left_by(self, reader: "Derivation") -> None:
        """Take a reader out; a dictionary keeps the room of the most it had until they are few again."""
        readers = self.readers
        if isinstance(readers, dict):
            readers.pop(reader, None)
            if len(readers) <= FEW // 2:
                self.readers = tuple(readers)
        elif reader in readers:
            place = readers.index(reader)
            self.readers = readers[:place] + readers[place + 1 :]


class Source(Node):
    """A node that is written, not computed."""

    __slots__ = ()

    reads: tuple[Node, ...] = ()
    stale = False
    dirty_set = None

    @property
    def origin(self) -> str:
        """The name of its table or index."""
        return self.family.name


class Wall(Source):
    """A source that is written from the one derivation `behind` it, which it reads."""

    __slots__ = ("reads",)

    def __init__(self, family: Family, key: Hashable, read: "Derivation", level: int) -> None:
        super().__init__(family, key, level)
        self.reads = (read,)

    @property
    def behind(self) -> "Derivation":
        """The derivation that it reads."""
        return cast("Derivation", self.reads[0])


class Gate(Wall):
    """A wall whose derivation is kept for its sake: that is let go when the wall is forgotten."""

    __slots__ = ()


class Derivation(Node):
    """A function applied to a key: what came of it, and what it read.

    An error that the function raised is its outcome like any value. It is kept though nobody reads it if it
    has a `dirty_set`, which is told of it when it may have changed.
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
        """The error that it came to, if it is one."""
        return self.outcome.error if isinstance(self.outcome, RaisedError) else None

    def outcome_is(self, outcome: object) -> bool:
        """Say whether this outcome may be taken for the one that is there."""
        return same(self.outcome, outcome)
