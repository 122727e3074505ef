"""Tables of records: the important fields in columns, the other fields in a part to open."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.markup import Markup, detail, joined, tag, text
from meshwright.admin.html.tones import counted
from meshwright.admin.html.values import NONE, pairs, rows, shown
from meshwright.admin.jsonable import Document

MOST: Final = 500
"""Maximum number of rows: more than a person reads, and few enough for a quick page of a large mesh."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the label, the content of a cell, and the record's fields in the cell."""

    label: str
    show: Callable[[Document], Markup]
    fields: tuple[str, ...]


def plain(label: str, field: str) -> Column:
    """Return a table column with one field of each record, unchanged."""
    return Column(label, lambda record: shown(record.get(field)), (field,))


def table(
    records: Sequence[Document],
    columns: Iterable[Column],
    empty: str,
    anchor: Callable[[Document], str] = lambda _: "",
) -> Markup:
    """Return a table of the first MOST records, and the number of further ones.

    `empty` is the text without records. Only the first of several records with the same `anchor` gets it.
    """
    if not records:
        return tag("p", text(empty), class_="empty")
    these, shown_first = list(columns), records[:MOST]
    fields = {field for column in these for field in column.fields}
    rest = [{name: value for name, value in item.items() if name not in fields} for item in shown_first]
    labels = [column.label for column in these]
    cells = [[column.show(record) for column in these] for record in shown_first]
    if any(rest):
        labels.append("Other fields")
        for row, left in zip(cells, rest, strict=True):
            row.append(further(left))
    # An id must be unique in a document.
    names = _once(map(anchor, shown_first))
    return joined((rows(labels, cells, names), _more(len(records) - len(shown_first))))


def further(left: Document) -> Markup:
    """Return the fields of a record without a column, hidden until a click."""
    if not left:
        return NONE
    return detail(text("more"), pairs({name: shown(value) for name, value in left.items()}))


def _once(names: Iterable[str]) -> list[str]:
    """Return the names, with the second and later occurrence of a name replaced by an empty text."""
    result = list(names)
    first = {item: at for at, item in reversed(list(enumerate(result)))}
    return [item if first[item] == at else "" for at, item in enumerate(result)]


def _more(count: int) -> Markup:
    if count <= 0:
        return text("")
    return tag("p", text(f"{counted(count, 'more row')}: all are in the JSON of this page."), class_="empty")
