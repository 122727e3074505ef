"""HTML forms of the debug pages. They only request a page, by GET, and never change anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.markup import Markup, tag, text

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter with label and example.

    `choices` is for parameters with few values. A parameter with `several` may be repeated.
    """

    name: str
    label: str
    example: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """An HTML form with the query parameters of a page as fields, and the label of the button."""

    fields: tuple[Field, ...]
    button: str
    path: str = ""
    """Path of the requested page; empty for the page with the form."""


CALL: Final = (
    Field("from", "From: namespace/service account", "shop/buyer"),
    Field("to", "To: namespace/service:port", "shop/store:80"),
    Field("method", "Method", "GET"),
    Field("path", "Path", "/"),
    Field("header", "Header", "name: value", several=True),
)
"""Fields describing a request; see `meshwright.admin.pages.calls.explain.read_request`."""


def form(asks: Form, path: str, query: Query) -> Markup:
    """Return a form as HTML, filled with the query parameters of the current request."""
    inputs = [
        _input(field, at, given) for field in asks.fields for at, given in enumerate(_values(field, query))
    ]
    button = tag("button", text(asks.button), type="submit")
    return tag("form", *inputs, button, action=asks.path or path, method="get")


def _values(field: Field, query: Query) -> list[str]:
    result = [value for name, value in query if name == field.name]
    # A repeatable field has one more empty input, because the form works without a script.
    return [*result, ""] if field.several else (result[:1] or [""])


def _input(field: Field, at: int, value: str) -> Markup:
    label, required = text(field.label), field.required
    if field.choices:
        first = tag("option", text("all" if not required else ""), value="")
        rest = (
            tag("option", text(choice), value=choice, selected=choice == value) for choice in field.choices
        )
        return tag("label", label, tag("select", first, *rest, name=field.name, required=required))
    shown = value or None
    entry = tag(
        "input", name=field.name, value=shown, placeholder=field.example, required=required and not at
    )
    return tag("label", label, entry)
