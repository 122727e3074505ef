"""Layout of the page Try: a form for manifests, and the affected proxies."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import number, records, said, words
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


def of_trial(found: Document) -> Verdict:
    """Return the number of problems, and of proxies with a changed configuration."""
    if error := said(found, "error"):
        return Verdict(Tone.BAD, error, "error")
    if "objects" not in found:
        return Verdict(Tone.PLAIN, "Nothing is applied: a second copy of the mesh is asked.")
    proxies = sum(len(words(each, "proxies")) for each in records(found, "changed"))
    more = f", and more in {counted(int(number(found, 'more')), 'further way')}" if found.get("more") else ""
    read = f"{counted(int(number(found, 'objects')), 'object')} read"
    concerns = f"{counted(proxies, 'proxy', 'proxies')} would be served something else{more}"
    wrong = [*records(found, "problems"), *records(found, "failed")]
    if not wrong:
        return Verdict(Tone.GOOD if proxies else Tone.PLAIN, f"{read}; {concerns}. Nothing was applied.")
    return Verdict(Tone.BAD, f"{read}; {counted(len(wrong), 'problem')}; {concerns}. Nothing was applied.")


def _trial(found: Document, asked: PageRequest) -> Iterable[Markup]:
    yield _form(said(found, "manifests"), asked.path)
    if "objects" not in found:
        return
    if problems := records(found, "problems"):
        yield tag("h2", text("What would be wrong"))
        yield table(problems, _PROBLEMS, "")
    if failed := records(found, "failed"):
        yield tag("h2", text("Proxies for which nothing could be made"))
        yield table(failed, _FAILED, "")
    yield tag("h2", text("What would be served"))
    changed = records(found, "changed")
    yield from map(_changed, changed)
    if not changed:
        yield tag("p", text("Every proxy would be served what it is."), class_="empty")
    for field, words_ in (("new", "would be known"), ("gone", "would be known no more")):
        if names := words(found, field):
            yield tag("p", text(f"{counted(len(names), 'proxy', 'proxies')} {words_}: "), _names(names))
    same = counted(int(number(found, "unchanged")), "proxy", "proxies")
    yield tag("p", text(f"{same} would be served what they are."), class_="shows")


def _form(given: str, path: str) -> Markup:
    shown = text("\n" + given)  # HTML parsers drop the first line break of a textarea
    area = tag("textarea", shown, name="manifests", rows=_ROWS, spellcheck="false", required=True)
    label = tag("label", text("Manifests: YAML, as kubectl apply has it"), area)
    button = tag("button", text("Try"), type="submit")
    return tag("form", label, button, action=path, method="post", class_="wide")


def _changed(found: Document) -> Markup:
    names, resources = words(found, "proxies"), records(found, "resources")
    head = tag("h3", text(f"{counted(len(names), 'proxy', 'proxies')}: "), _names(names))
    return joined((head, *map(_resource, resources)))


def _resource(found: Document) -> Markup:
    change = badge(said(found, "change"), Tone.PLAIN)
    name = joined((change, text(f" {said(found, 'type')} {said(found, 'name')}")))
    lines = words(found, "diff")
    return detail(name, difference(lines)) if lines else tag("p", name)


def _names(names: list[str]) -> Markup:
    shown = [text(each) for each in names[:MOST_NAMED]]
    more = [text(f"and {len(names) - MOST_NAMED} more")] if len(names) > MOST_NAMED else []
    return joined((*shown, *more), ", ")


_PROBLEMS: Final = (
    Column("Severity", lambda each: badge(said(each, "severity")), ("severity",)),
    plain("Code", "code"),
    plain("Object", "object"),
    Column("What", lambda each: links.in_sentence(said(each, "line")), ("line", *_PARTS)),
)
_FAILED: Final = (
    plain("Why", "error"),
    Column("Proxies", lambda each: _names(words(each, "proxies")), ("proxies",)),
)

TRIAL: Final = PageLook(
    "Try",
    of_trial,
    _trial,
    shows="Whom manifests would concern, and how, if they were applied.",
)
