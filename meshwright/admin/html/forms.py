"""Forms that ask for a page: GET alone, nothing is changed by any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.markup import Markup, tag, text

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter: what it is called, an example, its `choices` if they are few; `several` may be given."""

    name: str
    label: str
    example: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """What can be asked of a page, and the word on its button."""

    fields: tuple[Field, ...]
    button: str
    path: str = ""
    """Which page is asked; empty is the one that has the form."""


CALL: Final = (
    Field("from", "From: namespace/service account", "shop/buyer"),
    Field("to", "To: namespace/service:port", "shop/store:80"),
    Field("method", "Method", "GET"),
    Field("path", "Path", "/"),
    Field("header", "Header", "name: value", several=True),
)
"""Fields of the form that describes a call; see `meshwright.admin.pages.calls.explain.read_request`."""


def form(asks: Form, path: str, query: Query) -> Markup:
    """Return a form, filled in with what was asked."""
    inputs = [_input(each, at, given) for each in asks.fields for at, given in enumerate(_given(each, query))]
    button = tag("button", text(asks.button), type="submit")
    return tag("form", *inputs, button, action=asks.path or path, method="get")


def _given(field: Field, query: Query) -> list[str]:
    found = [value for name, value in query if name == field.name]
    return [*found, ""] if field.several else (found[:1] or [""])


def _input(field: Field, at: int, given: str) -> Markup:
    label, required = text(field.label), field.required
    if field.choices:
        first = tag("option", text("all" if not required else ""), value="")
        rest = (tag("option", text(each), value=each, selected=each == given) for each in field.choices)
        return tag("label", label, tag("select", first, *rest, name=field.name, required=required))
    shown = given or None
    entry = tag(
        "input", name=field.name, value=shown, placeholder=field.example, required=required and not at
    )
    return tag("label", label, entry)
