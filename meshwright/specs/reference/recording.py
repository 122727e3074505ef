"""Cursor that records which fields a reader reads, and with which getters."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.names import Port
from meshwright.specs.fields import Fields
from meshwright.specs.notes import Notes
from meshwright.specs.quotes import TEXT_RULE, Fits

_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Text:
    """Type of a field: any text."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Type of a field: one of the allowed texts, in alphabetical order."""

    allowed: tuple[str, ...]
    default: str


@dataclass(frozen=True, slots=True)
class Flag:
    """Type of a field: true or false."""

    default: bool | None


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """Type of a field: a whole number from `low` to `high`, both included."""

    low: int
    high: int
    default: int | None


@dataclass(frozen=True, slots=True)
class Percent:
    """Type of a field: a number from 0 to 100."""


@dataclass(frozen=True, slots=True)
class Section:
    """Type of a field: a mapping with named fields."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Type of a field: a mapping from text to text."""


@dataclass(frozen=True, slots=True)
class Items:
    """Type of a field: a list; the calls for its items are recorded on their own."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Type of a field: a list of texts, each not empty."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Type of a field: a list of port numbers."""


@dataclass(frozen=True, slots=True)
class AnyContent:
    """Type of a field: any content."""


Asked = Text | Choice | Flag | WholeNumber | Percent | Section | Pairs | Items | Texts | Ports | AnyContent

_SAID_BETTER: Final[Mapping[type[Asked], tuple[type[Asked], ...]]] = {
    Text: (Choice,),
    Section: (Pairs,),
    Items: (Texts, Ports),
    AnyContent: (Text, Choice, Flag, WholeNumber, Percent, Section, Pairs, Items, Texts, Ports),
}
"""Types that are redundant beside one of the listed types, because getters call each other."""


@dataclass(slots=True)
class Record:
    """Recorded calls by mapping (for example `spec.ports[]`; empty for the document) and field, in order.

    An empty set of `Asked` is a value that the reader checks itself. `closed` are mappings without further
    fields, `pairs` mappings from text to text, and `mappings` the read values, with their places.
    """

    fields: dict[str, dict[str, set[Asked]]] = field(default_factory=dict)
    pairs: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    mappings: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def add(self, other: "Record") -> None:
        """Add the recorded calls for another example."""
        for parent, names in other.fields.items():
            mine = self.fields.setdefault(parent, {})
            for name, asked in names.items():
                mine.setdefault(name, set()).update(asked)
        self.pairs |= other.pairs
        self.closed |= other.closed
        self.mappings += other.mappings

    def field_types(self, parent: str, name: str) -> tuple[Asked, ...]:
        """Return the types with which a reader reads a field, without redundant ones."""
        result = set(self.fields[parent][name])
        if place(parent, name) in self.pairs:
            result.add(Pairs())
        kinds = {type(item) for item in result}
        kept = (item for item in result if kinds.isdisjoint(_SAID_BETTER.get(type(item), ())))
        return tuple(sorted(kept, key=repr))


def place(parent: str, name: str) -> str:
    """Return the place of a field, such as `spec.ports[].name`."""
    return f"{parent}.{name}" if parent else name


class Recorder(Fields):
    """Fields of a mapping, with a record of all calls by the reader."""

    __slots__ = ("_names", "_place", "_record")

    def __init__(self, mapping: Mapping[str, object], path: str, notes: Notes, record: Record) -> None:
        super().__init__(mapping, path, notes)
        self._record = record
        self._names: dict[str, set[Asked]] | None = None
        self._place = _INDEX.sub("[]", path)
        if isinstance(mapping, dict):
            # The real mapping and not a copy, because probing removes fields from it.
            record.mappings.append((self._place, mapping))

    def _inside(self, mapping: Mapping[str, object], path: str) -> "Recorder":
        return Recorder(mapping, path, self.notes, self._record)

    def _note(self, name: str, field_type: Asked | None) -> None:
        if self._names is None:  # a mapping of which no field is read is not recorded
            self._names = self._record.fields.setdefault(self._place, {})
        asked = self._names.get(name)
        if asked is None:
            asked = self._names[name] = set()
        if field_type is not None:
            asked.add(field_type)

    def raw(self, name: str) -> object:
        """Record the field without a type, and return its value."""
        self._note(name, None)
        return super().raw(name)

    def accept(self, *names: str) -> None:
        """Record the fields as fields with any content."""
        for name in names:
            self._note(name, AnyContent())
        super().accept(*names)

    def text(
        self, name: str, default: str | None = None, expected: str = TEXT_RULE, fits: Fits | None = None
    ) -> str | None:
        """Record the field as a text, and return its value."""
        self._note(name, Text())
        return super().text(name, default, expected, fits)

    def choice(self, name: str, allowed: Collection[str], default: str) -> str:
        """Record the field as a choice, and return its value."""
        self._note(name, Choice(tuple(sorted(map(str, allowed))), str(default)))
        return super().choice(name, allowed, default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Record the field as a boolean, and return its value."""
        self._note(name, Flag(default))
        return super().flag(name, default=default)

    def optional_flag(self, name: str) -> bool | None:
        """Record the field as a boolean without a default, and return its value."""
        self._note(name, Flag(None))
        return super().optional_flag(name)

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int | None:
        """Record the field as a whole number, and return its value."""
        self._note(name, WholeNumber(low, high, default))
        return super().whole(name, low, high, default)

    def percent(self, name: str, default: float | None = None) -> float:
        """Record the field as a percentage, and return its value."""
        self._note(name, Percent())
        return super().percent(name, default)

    def section(self, name: str, *, required: bool = False) -> Fields:
        """Record the field as a mapping, and return the mapping."""
        self._note(name, Section())
        return super().section(name, required=required)

    def items(self, name: str, *, required: bool = False) -> tuple[tuple[str, object], ...]:
        """Record the field as a list, and return its items."""
        self._note(name, Items())
        return super().items(name, required=required)

    def texts(self, name: str, expected: str = TEXT_RULE, fits: Fits | None = None) -> tuple[str, ...]:
        """Record the field as a list of texts, and return its value."""
        self._note(name, Texts())
        return super().texts(name, expected, fits)

    def ports(self, name: str) -> tuple[Port, ...]:
        """Record the field as a list of ports, and return its value."""
        self._note(name, Ports())
        return super().ports(name)

    def all_pairs(self) -> tuple[tuple[str, str], ...]:
        """Record that this mapping is from text to text."""
        self._record.pairs.add(self._place)
        return super().all_pairs()

    def close(self) -> None:
        """Record that this mapping has no further fields."""
        self._record.closed.add(self._place)
        super().close()
