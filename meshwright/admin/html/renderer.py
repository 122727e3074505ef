"""Rendering of complete debug pages by their looks, of the index, and of error pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.fields import field_text, records
from meshwright.admin.html.forms import Form
from meshwright.admin.html.frame import PageContent, PageRequest, Place, whole
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.looks.pushes import PROXY
from meshwright.admin.html.markup import Markup, joined, listed, tag, text
from meshwright.admin.html.tones import Tone, Verdict, badge, worst
from meshwright.admin.jsonable import Document

_FIND: Final = Form((PROXY,), "Find a proxy", "/debug/proxy/show")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the index with the purpose, and with the verdict if a quick one is available."""

    place: Place
    shows: str
    verdict: Verdict | None = None


def drawn(look: PageLook, result: Document, page_request: PageRequest, places: Iterable[Place]) -> str:
    """Return a debug page as HTML, from the page's JSON (`result`) and look."""
    one = (value for name, value in page_request.query if name in look.subjects)
    subject = field_text(result, "cn") or field_text(result, "proxy") or next(one, "")
    title, body = (
        look.label or named(page_request.path),
        (*_missing(result), *look.body(result, page_request)),
    )
    shows = "" if subject else look.shows
    return whole(
        page_request, PageContent(title, subject, shows, look.verdict(result), look.forms, body), places
    )


def _missing(result: Document) -> Iterable[Markup]:
    """Yield a warning with the servers of the mesh that are missing in a page, if any."""
    if missing := records(result, "partial"):
        lines = (f"{field_text(item, 'replica')}: {field_text(item, 'reason')}" for item in missing)
        yield tag("p", badge("incomplete", Tone.WARNING), text(" These servers did not answer:"))
        yield listed(map(text, lines))


def failed(look: PageLook, sentence: str, page_request: PageRequest, places: Iterable[Place]) -> str:
    """Return an error page with one sentence as the reason, and the forms of the page."""
    verdict = Verdict(Tone.BAD, sentence, "error")
    title = look.label or named(page_request.path)
    return whole(page_request, PageContent(title, "", look.shows, verdict, look.forms, (_back(),)), places)


def index(entries: Sequence[Entry], page_request: PageRequest, places: Iterable[Place]) -> str:
    """Return the page with links to all other pages, and with the worst verdicts at the top."""
    known = [entry.verdict for entry in entries if entry.verdict is not None]
    tone = worst(item.tone for item in known)
    wrong = " ".join(item.sentence for item in known if item.tone is tone)
    verdict = Verdict(tone, wrong if tone in (Tone.BAD, Tone.WARNING) else "No problems found.")
    cards = tag("ul", *map(_card, entries), class_="cards")
    shown = PageContent("Overview", "", "", verdict, (_FIND,), (cards,))
    return whole(page_request, shown, places)


def _card(entry: Entry) -> Markup:
    head = tag("a", text(entry.place.label), href=entry.place.path)
    if entry.verdict is None:
        return tag("li", head, tag("p", text(entry.shows), class_="shows"))
    state = joined(
        (badge(entry.verdict.tone.value, entry.verdict.tone), text(" "), text(entry.verdict.sentence))
    )
    return tag("li", head, tag("p", state), tag("p", text(entry.shows), class_="shows"))


def _back() -> Markup:
    return tag("p", tag("a", text("All pages"), href="/debug"))


def named(path: str) -> str:
    """Return the title for a page without a label, made from the path: `Proxy` for `/debug/proxy`."""
    return path.removeprefix("/debug/").capitalize()
