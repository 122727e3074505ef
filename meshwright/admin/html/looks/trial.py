"""Layout of the page Try: a form for manifests, and the affected proxies."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, number, records, words
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.looks.versions import difference
from meshwright.admin.html.markup import Markup, detail, joined, tag, text
from meshwright.admin.html.tables import Column, plain, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted
from meshwright.admin.jsonable import Document

_ROWS: Final = "14"
_PARTS: Final = ("origin", "field", "value", "expected")
MOST_NAMED: Final = 20


def of_trial(document: Document) -> Verdict:
    """Return the verdict of the page Try: the numbers of problems and of proxies with a change."""
    if error := field_text(document, "error"):
        return Verdict(Tone.BAD, error, "error")
    if "objects" not in document:
        return Verdict(Tone.PLAIN, "The trial uses a copy of the mesh, and applies no manifest.")
    proxies = sum(len(words(record, "proxies")) for record in records(document, "changed"))
    more = (
        f"; {counted(int(number(document, 'more')), 'further kind')} of change not shown"
        if document.get("more")
        else ""
    )
    read = f"{counted(int(number(document, 'objects')), 'object')} read"
    concerns = f"{counted(proxies, 'proxy', 'proxies')} would get another configuration{more}"
    wrong = [*records(document, "problems"), *records(document, "failed")]
    if not wrong:
        return Verdict(Tone.GOOD if proxies else Tone.PLAIN, f"{read}; {concerns}. No manifest was applied.")
    return Verdict(
        Tone.BAD, f"{read}; {counted(len(wrong), 'problem')}; {concerns}. No manifest was applied."
    )


def _trial(result: Document, page_request: PageRequest) -> Iterable[Markup]:
    yield _form(field_text(result, "manifests"), page_request.path)
    if "objects" not in result:
        return
    if problems := records(result, "problems"):
        yield tag("h2", text("Problems"))
        yield table(problems, _PROBLEMS, "")
    if failed := records(result, "failed"):
        yield tag("h2", text("Failed groups"))
        yield table(failed, _FAILED, "")
    yield tag("h2", text("Changes"))
    changed = records(result, "changed")
    yield from map(_changed, changed)
    if not changed:
        yield tag("p", text("Every proxy would keep its configuration."), class_="empty")
    for field, words_ in (("new", "would be added"), ("gone", "would be removed")):
        if names := words(result, field):
            yield tag("p", text(f"{counted(len(names), 'proxy', 'proxies')} {words_}: "), _names(names))
    same = counted(int(number(result, "unchanged")), "proxy", "proxies")
    yield tag("p", text(f"{same} would keep the present configuration."), class_="shows")


def _form(manifests: str, path: str) -> Markup:
    shown = text("\n" + manifests)  # HTML parsers drop the first line break of a textarea
    area = tag("textarea", shown, name="manifests", rows=_ROWS, spellcheck="false", required=True)
    label = tag("label", text("Manifests in YAML, as for kubectl apply"), area)
    button = tag("button", text("Try"), type="submit")
    return tag("form", label, button, action=path, method="post", class_="wide")


def _changed(result: Document) -> Markup:
    names, resources = words(result, "proxies"), records(result, "resources")
    head = tag("h3", text(f"{counted(len(names), 'proxy', 'proxies')}: "), _names(names))
    return joined((head, *map(_resource, resources)))


def _resource(result: Document) -> Markup:
    change = badge(field_text(result, "change"), Tone.PLAIN)
    name = joined((change, text(f" {field_text(result, 'type')} {field_text(result, 'name')}")))
    lines = words(result, "diff")
    return detail(name, difference(lines)) if lines else tag("p", name)


def _names(names: list[str]) -> Markup:
    shown = [text(name) for name in names[:MOST_NAMED]]
    more = [text(f"and {len(names) - MOST_NAMED} more")] if len(names) > MOST_NAMED else []
    return joined((*shown, *more), ", ")


_PROBLEMS: Final = (
    Column("Severity", lambda item: badge(field_text(item, "severity")), ("severity",)),
    plain("Code", "code"),
    plain("Object", "object"),
    Column("Problem", lambda item: links.in_sentence(field_text(item, "line")), ("line", *_PARTS)),
)
_FAILED: Final = (
    plain("Error", "error"),
    Column("Proxies", lambda item: _names(words(item, "proxies")), ("proxies",)),
)

TRIAL: Final = PageLook(
    "Try",
    of_trial,
    _trial,
    shows="The effect of manifests, without applying them.",
)
