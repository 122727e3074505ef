"""Shapes of documents as values: the fields of each mapping, by API version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from meshwright.mesh.kinds import Kind
from meshwright.specs.kinds import READ
from meshwright.specs.reference.meaning import Meaning
from meshwright.specs.reference.recording import Asked, Choice, Flag, WholeNumber

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MappingShape:
    """A mapping: its fields, names with any content (`untouched`), and whether other names are refused.

    With `pairs` it may have any names, each with a text.
    """

    fields: tuple["Field", ...] = ()
    untouched: tuple[str, ...] = ()
    closed: bool = False
    pairs: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field: the types its reader accepts, its meaning, and its content.

    `required`: the field must be present. `not_empty`: the field must not be empty. `example` is None without
    an example. `inside` is the shape of its mapping, and `items` of each mapping in its list.
    """

    place: str
    name: str
    types: tuple[Asked, ...]
    meaning: Meaning
    required: bool
    not_empty: bool
    example: object
    inside: MappingShape
    items: MappingShape

    @property
    def default(self) -> object:
        """The value that the reader uses for an absent field; None if it has no default."""
        for item in self.types:
            if isinstance(item, Choice | Flag | WholeNumber) and item.default not in (None, ""):
                return None if self.required else item.default
        return None


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a kind's documents in some of its API versions."""

    api_versions: tuple[str, ...]
    body: MappingShape


@dataclass(frozen=True, slots=True)
class DescribedKind:
    """A kind with its purpose, its shapes in the order of versions, and its examples."""

    kind: Kind
    purpose: str
    shapes: tuple[Shape, ...]
    examples: tuple[Document, ...]

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return the accepted values of apiVersion, in the reader's order."""
        return READ[self.kind].api_versions


def walked(mapped: MappingShape) -> Iterator[Field]:
    """Yield all fields of a mapping and of the mappings inside, each before the fields within it."""
    for field in mapped.fields:
        yield field
        yield from walked(field.inside)
        yield from walked(field.items)
