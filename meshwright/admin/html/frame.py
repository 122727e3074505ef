"""Common frame of the debug pages: navigation, title, verdict, forms and body."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.forms import Form, Query, form
from meshwright.admin.html.markup import NOTHING, Markup, name, tag, text
from meshwright.admin.html.style import STYLE
from meshwright.admin.html.tones import Verdict, banner
from meshwright.admin.html.values import moment

SCRIPT_PATH: Final = "/debug/live.js"
"""Path of the only script, `live.js`, which refreshes the page."""


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation: the path and label of a page."""

    path: str
    label: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page; `at` has the form of times in JSON, for example `2026-01-02T03:04:05.000Z`."""

    path: str
    query: Query
    at: str


@dataclass(frozen=True, slots=True)
class PageContent:
    """Content of a page. `subject` is the described object; empty for a page about all objects."""

    title: str
    subject: str
    shows: str
    verdict: Verdict
    forms: Sequence[Form]
    body: Iterable[Markup]


def whole(page_request: PageRequest, drawn: PageContent, places: Iterable[Place]) -> str:
    """Return the page as HTML."""
    title = " · ".join(filter(None, (drawn.subject, drawn.title, "Meshwright")))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", text(title)),
        tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("style", Markup(STYLE)),
        tag("script", src=SCRIPT_PATH, defer=True),
    )
    skip = tag("a", text("Skip to the content"), class_="skip", href="#content")
    body = tag("body", skip, _header(page_request, places), _main(page_request, drawn), _footer(page_request))
    return f"<!doctype html>{tag('html', head, body, lang='en')}\n"


def _header(page_request: PageRequest, places: Iterable[Place]) -> Markup:
    entries = (
        tag(
            "a",
            text(place.label),
            href=place.path,
            aria_current="page" if place.path == page_request.path.rstrip("/") else None,
        )
        for place in places
    )
    return tag("header", tag("b", text("Meshwright")), tag("nav", *entries, aria_label="Pages"))


def _main(page_request: PageRequest, drawn: PageContent) -> Markup:
    about = tag("p", name(drawn.subject), class_="subject") if drawn.subject else NOTHING
    return tag(
        "main",
        tag("h1", text(drawn.title)),
        about,
        banner(drawn.verdict),
        tag("p", text(drawn.shows), class_="shows") if drawn.shows else NOTHING,
        *(form(item, page_request.path, page_request.query) for item in drawn.forms),
        *drawn.body,
        id="content",
    )


def _footer(page_request: PageRequest) -> Markup:
    markup = tag("span", text("As of "), moment(page_request.at), text(". Programs get JSON."), id="as-of")
    return tag("footer", tag("p", markup, text(" "), tag("span", id="live")))
