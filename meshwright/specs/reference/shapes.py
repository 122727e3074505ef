"""What the documents of a kind may hold, as values: fields within mappings, by version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from meshwright.mesh.kinds import Kind
from meshwright.specs.kinds import READ
from meshwright.specs.reference.meaning import Meaning
from meshwright.specs.reference.recording import Asked, Choice, Flag, WholeNumber

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MappingShape:
    """A mapping: its fields, the names that may hold anything, whether nothing else may stand there.

    With `pairs` it may hold any names, each with a text.
    """

    fields: tuple["Field", ...] = ()
    untouched: tuple[str, ...] = ()
    closed: bool = False
    pairs: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field: as what its reader asks for it, what it means, and what stands in it.

    `required` is whether it must be there, `not_empty` whether it may not be empty; `example` is None where
    no example has it. `inside` is the mapping that it may be, `items` what each mapping in its list is.
    """

    place: str
    name: str
    asked: tuple[Asked, ...]
    meaning: Meaning
    required: bool
    not_empty: bool
    example: object
    inside: MappingShape
    items: MappingShape

    @property
    def default(self) -> object:
        """What the reader takes where the field is absent; None if it says nothing of that."""
        for each in self.asked:
            if isinstance(each, Choice | Flag | WholeNumber) and each.default not in (None, ""):
                return None if self.required else each.default
        return None


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kind's documents hold in some of its versions."""

    api_versions: tuple[str, ...]
    body: MappingShape


@dataclass(frozen=True, slots=True)
class DescribedKind:
    """A kind, what it is for, its shapes in the order of its versions, and its examples."""

    kind: Kind
    purpose: str
    shapes: tuple[Shape, ...]
    examples: tuple[Document, ...]

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return what may stand in apiVersion, in the reader's order."""
        return READ[self.kind].api_versions


def walked(mapped: MappingShape) -> Iterator[Field]:
    """Yield all fields, each before those that stand in it."""
    for field in mapped.fields:
        yield field
        yield from walked(field.inside)
        yield from walked(field.items)
