"""docs/reference.md: every kind that is read, with its fields and examples."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.kinds import Kind
from meshwright.specs.reference.meaning import Form
from meshwright.specs.reference.recording import (
    AnyContent,
    Asked,
    Choice,
    Flag,
    Items,
    Pairs,
    Percent,
    Ports,
    Section,
    Text,
    Texts,
    WholeNumber,
)
from meshwright.specs.reference.shapes import DescribedKind, Field, MappingShape, Shape, walked

_HEAD: Final = """# Reference: kinds and fields

Made from the program by `meshwright schema --page`; do not edit. Every kind that is read, with every field
that is: what it is to be, what holds without it, what it means, and what it is in the examples below, all
of which can be read. Where it says *given*, the field must be there. A null value is as good as none.

Where it says that no other field may stand in a kind, another is an error (MW1012), with the one that may
be meant. In the kinds of Kubernetes the fields that are not named here may hold anything, but one that looks
like one of those is a warning (MW1028); in a MeshConfig any is (MW1032). Annotations and labels that begin
with `meshwright.dev/` and are not named here are a warning (MW1025), and so are fields in `metadata` that no
object has (MW1027).
[codes.md](codes.md) explains the codes, [policy.md](policy.md) what policy comes to.

## In an editor

`meshwright schema` prints a JSON Schema (draft 2020-12) of whatever may stand in a directory of manifests,
`meshwright schema KIND` of one kind, and `--directory` writes all of them. They are beside this page too:
[of all kinds](schemas/all.json), and one for each, such as [Workload](schemas/Workload.json), which refer
to the former. After `meshwright schema > .mesh-schema.json` an editor with yaml-language-server checks and
completes a file beside it that begins with

```yaml
# yaml-language-server: $schema=.mesh-schema.json
```

For all files of a folder the setting `yaml.schemas` does the same:
`{".mesh-schema.json": "mesh/**/*.yaml"}`. A schema looks at one document, and lets pass what only its reader
can tell, such as a port that two listeners have: what `meshwright lint` says is what holds.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a kind's table; `versions` are those that have it so, empty if it is all."""

    field: str
    what: str
    default: str
    meaning: str
    example: str
    versions: tuple[str, ...]


def page(described: Sequence[DescribedKind], text_of: Callable[[Kind], str]) -> str:
    """Return the page, on which kinds with one table stand together.

    `text_of` gives a kind's examples as they are written.
    """
    sections = (_section(same, text_of(same[0].kind)) for same in _alike(described))
    return "\n".join((_HEAD, *sections))


def rows(described: DescribedKind) -> tuple[Row, ...]:
    """Return all fields of a kind, those of its newest version first."""
    found: dict[Row, list[str]] = {}
    for shape in reversed(described.shapes):
        for field in walked(shape.body):
            row = Row(field.place, _what(field), _default(field), field.meaning.text, _example(field), ())
            same = next((each for each in found if _without_example(each) == _without_example(row)), row)
            found.setdefault(same, []).extend(shape.api_versions)
    every = set(described.api_versions)
    return tuple(
        Row(row.field, row.what, row.default, row.meaning, row.example, _versions(described, have, every))
        for row, have in found.items()
    )


def as_records(described: Sequence[DescribedKind]) -> list[dict[str, object]]:
    """Return all kinds and fields for programs."""
    return [
        {
            "kind": each.kind.name,
            "api_versions": list(each.api_versions),
            "purpose": each.purpose,
            "fields": [
                {
                    "field": row.field,
                    "what": row.what,
                    "default": row.default,
                    "meaning": row.meaning,
                    "example": row.example,
                    "versions": list(row.versions or each.api_versions),
                }
                for row in rows(each)
            ],
        }
        for each in described
    ]


def _without_example(row: Row) -> tuple[str, ...]:
    return (row.field, row.what, row.default, row.meaning)


def _versions(described: DescribedKind, have: Sequence[str], every: set[str]) -> tuple[str, ...]:
    return () if set(have) == every else tuple(each for each in described.api_versions if each in have)


def _alike(described: Sequence[DescribedKind]) -> Iterator[list[DescribedKind]]:
    """Yield kinds with the same purpose and fields together; they stand one after the other."""

    def alike(each: DescribedKind) -> object:
        return each.purpose, tuple(_without_example(row) for row in rows(each))

    for _, same in itertools.groupby(described, alike):
        yield list(same)


def _section(same: Sequence[DescribedKind], examples: str) -> str:
    first = same[0]
    versions = [
        f"`{each.kind.name}`: {', '.join(f'`{name}`' for name in each.api_versions)}" for each in same
    ]
    lines = [
        f"## {', '.join(each.kind.name for each in same)}",
        "",
        first.purpose,
        "",
        f"apiVersion of {'; of '.join(versions)}."
        + (" No other field may stand in it." if _closed(first) else ""),
        "",
        "| field | what | default | meaning | example |",
        "|---|---|---|---|---|",
        *_lines(rows(first)),
        "",
    ]
    if unused := _unused(first):
        lines += [f"Allowed fields without effect: {', '.join(f'`{each}`' for each in unused)}.", ""]
    return "\n".join((*lines, "```yaml", examples.rstrip("\n"), "```", ""))


def _closed(described: DescribedKind) -> bool:
    return all(shape.body.closed for shape in described.shapes)


def _unused(described: DescribedKind) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for shape in described.shapes:
        for prefix, mapped in _mappings(shape):
            found |= dict.fromkeys(f"{prefix}{name}" for name in mapped.untouched)
    return tuple(found)


def _mappings(shape: Shape) -> Iterator[tuple[str, MappingShape]]:
    yield "", shape.body
    for field in walked(shape.body):
        yield f"{field.place}.", field.inside
        yield f"{field.place}[].", field.items


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table's lines; of what stands in a field of some versions it is not said again."""
    versions = {row.field: row.versions for row in rows}
    for row in rows:
        held = row.field.removesuffix(row.field.rpartition(".")[2]).removesuffix(".").removesuffix("[]")
        said = versions.get(held) == row.versions
        only = ", ".join(each.rpartition("/")[2] for each in (() if said else row.versions))
        meaning = f"{row.meaning} Only in {only}." if only else row.meaning
        example = f"`{row.example}`" if row.example else ""
        cells = (f"`{row.field}`", row.what, row.default, meaning, example)
        yield "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"


def _example(field: Field) -> str:
    """Return the example on one line, nothing where it is a mapping or a list of such."""
    value = field.example
    if isinstance(value, Mapping) and not any(isinstance(each, Pairs) for each in field.asked):
        return ""
    if value is None or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value)):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _default(field: Field) -> str:
    if field.required:
        return f"given, or `{field.meaning.instead}`" if field.meaning.instead else "given"
    if field.default is not None:
        return f"`{json.dumps(field.default) if isinstance(field.default, bool) else field.default}`"
    return field.meaning.default or "none"


def _what(field: Field) -> str:
    form, raw = field.meaning.form, field.meaning.raw
    if not field.asked:
        return (raw or form or Form("anything", {})).words
    said = [_words(each, field) for each in field.asked]
    text = any(isinstance(each, Text | Choice | Items | Texts) for each in field.asked)
    return " or ".join(said if text or form is None else (*said, form.words))


_PLAIN: Final[Mapping[type[Asked], str]] = {
    Flag: "true or false",
    Percent: "0 to 100",
    Section: "mapping",
    Pairs: "mapping of texts",
}


def _words(asked: Asked, field: Field) -> str:
    form = field.meaning.form
    match asked:
        case Text():
            return form.words if form else "text"
        case Choice(allowed=allowed):
            return " or ".join(f"`{each}`" for each in allowed)
        case WholeNumber(low=low, high=high):
            return f"{low} to {high}"
        case Flag() | Percent() | Section() | Pairs():
            return _PLAIN[type(asked)]
        case Texts() | Items() if form:
            return f"list of: {form.words}"
        case Texts():
            return "list of texts"
        case Ports():
            return "list of 1 to 65535"
        case Items():
            return "list of mappings"
        case AnyContent():
            return "anything"
