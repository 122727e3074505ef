"""Rendering of arbitrary JSON values as HTML: pairs, lists, tables and times."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.markup import Markup, joined, listed, name, tag, text
from meshwright.admin.jsonable import Json

NONE: Final = tag("span", Markup("&ndash;"), class_="none")
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z")
_COLUMNS: Final = 6
"""Maximum number of columns; records with more fields are shown as pairs."""


def shown(value: Json) -> Markup:
    """Return any JSON value as HTML."""
    match value:
        case None | "":
            return NONE
        case bool():
            return text("yes" if value else "no")
        case str():
            return moment(value) if _MOMENT.fullmatch(value) else links.in_sentence(value)
        case dict():
            return pairs({item: shown(inner) for item, inner in value.items()}) if value else text("none")
        case list():
            return _list(value)
        case _:
            return text(value)


def moment(value: str, *, exact: bool = False) -> Markup:
    """Return a UTC time as HTML, to the second or `exact`; another text is returned unchanged."""
    match = _MOMENT.fullmatch(value)
    if match is None:
        return name(value) if value else NONE
    day, time, fraction = match.groups("")
    message = f"{time}{fraction if exact else ''} UTC"
    return tag("time", tag("span", text(day)), text(" "), tag("span", text(message)), datetime=value)


def pairs(markups: Mapping[str, Markup]) -> Markup:
    """Return an HTML list of names with their values."""
    rows = (
        tag("div", tag("dt", name(item.replace("_", " "))), tag("dd", value))
        for item, value in markups.items()
    )
    return tag("dl", *rows)


def raw(value: object) -> Markup:
    """Return a value as indented JSON in a box."""
    return block(json.dumps(value, indent=2, ensure_ascii=False))


def block(content: str) -> Markup:
    """Return lines of text unchanged in a box of the page's width."""
    return tag("pre", text(content), tabindex="0")


def rows(labels: Sequence[str], cells: Sequence[Sequence[Markup]], names: Sequence[str] = ()) -> Markup:
    """Return a table; on a narrow screen each row is a card. `names` are the anchors of the rows."""
    head = tag("thead", tag("tr", *(tag("th", text(item), scope="col") for item in labels)))
    drawn = (
        tag(
            "tr",
            *(tag("td", tag("div", cell), data_label=label) for label, cell in zip(labels, row, strict=True)),
            id=names[at] if names and names[at] else None,
        )
        for at, row in enumerate(cells)
    )
    return tag("div", tag("table", head, tag("tbody", *drawn)), class_="table")


def _list(value: list[Json]) -> Markup:
    if not value:
        return text("none")
    result = [item for item in value if isinstance(item, dict)]
    names = list(dict.fromkeys(item for record in result for item in record))
    # Records with few, flat fields are easier to compare in a table.
    if len(result) == len(value) and 0 < len(names) <= _COLUMNS and all(map(_is_flat, result)):
        cells = [[shown(record.get(item)) for item in names] for record in result]
        return rows([item.replace("_", " ") for item in names], cells)
    if any(isinstance(item, dict | list) for item in value):
        return listed(shown(item) for item in value)
    return joined((shown(item) for item in value), ", ")


def _is_flat(record: dict[str, Json]) -> bool:
    return not any(isinstance(item, dict) for item in record.values())
