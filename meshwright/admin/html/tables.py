"""Tables of records: what is looked for in columns, all the rest of a record where it is opened."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.markup import Markup, detail, joined, tag, text
from meshwright.admin.html.tones import counted
from meshwright.admin.html.values import NONE, pairs, rows, shown
from meshwright.admin.jsonable import Document

MOST: Final = 500
"""More rows than a person reads, and few enough that a page of a large mesh is there at once."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: what it is called, what it shows of a record, and the fields that are said with that."""

    label: str
    show: Callable[[Document], Markup]
    fields: tuple[str, ...]


def plain(label: str, field: str) -> Column:
    """Return the column of one field, as it is."""
    return Column(label, lambda record: shown(record.get(field)), (field,))


def table(
    records: Sequence[Document],
    columns: Iterable[Column],
    empty: str,
    anchor: Callable[[Document], str] = lambda _: "",
) -> Markup:
    """Return a table of the first MOST records, and how many more there are; `empty` says what would fill it.

    Of several records with one `anchor` the first has it.
    """
    if not records:
        return tag("p", text(empty), class_="empty")
    these, shown_first = list(columns), records[:MOST]
    said = {field for column in these for field in column.fields}
    rest = [{name: value for name, value in each.items() if name not in said} for each in shown_first]
    labels = [column.label for column in these]
    cells = [[column.show(record) for column in these] for record in shown_first]
    if any(rest):
        labels.append("All else")
        for row, left in zip(cells, rest, strict=True):
            row.append(further(left))
    names = _once(map(anchor, shown_first))
    return joined((rows(labels, cells, names), _more(len(records) - len(shown_first))))


def further(left: Document) -> Markup:
    """Return the rest of a record, to be opened."""
    if not left:
        return NONE
    return detail(text("more"), pairs({name: shown(value) for name, value in left.items()}))


def _once(names: Iterable[str]) -> list[str]:
    """Return the names, each where it is first, empty where it has been already."""
    found = list(names)
    first = {each: at for at, each in reversed(list(enumerate(found)))}
    return [each if first[each] == at else "" for at, each in enumerate(found)]


def _more(count: int) -> Markup:
    if count <= 0:
        return text("")
    return tag("p", text(f"{counted(count, 'more row')}: all are in the JSON of this page."), class_="empty")
