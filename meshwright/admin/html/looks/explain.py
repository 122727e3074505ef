"""Layout of the page Explain: the reasons why a request is allowed or refused."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import number, records, said, words
from meshwright.admin.html.forms import CALL, Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import NOTHING, Markup, joined, listed, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, tone_of, worst
from meshwright.admin.html.values import NONE, block, pairs, shown
from meshwright.admin.jsonable import Document, Json
from meshwright.mesh.kinds import SERVICE
from meshwright.providers.text.yaml_documents import printed


def of_explained(found: Document) -> Verdict:
    """Return the answer of policy, and whether the answer is in force."""
    if "usage" in found:
        return Verdict(Tone.PLAIN, "Ask whether a call may pass.")
    how = " ".join(filter(None, (said(found, "method"), said(found, "path"))))
    sentence = f"{said(found, 'from')} to {said(found, 'to')} {how}".rstrip()
    tones = [tone_of(said(found, "answer")), _IN_FORCE.get(said(found, "in_force"), Tone.PLAIN)]
    return Verdict(worst(tones), f"{sentence}: {said(found, 'headline')}.", said(found, "answer"))


_IN_FORCE: Final = {"yes": Tone.GOOD, "no": Tone.BAD, "unknown": Tone.WARNING}


def _explained(found: Document, _asked: PageRequest) -> Iterable[Markup]:
    if "usage" in found:
        return
    yield pairs(
        {
            "policy says": badge(said(found, "policy")),
            "in force": badge(said(found, "in_force"), _IN_FORCE.get(said(found, "in_force"))),
            **({"because": _sentences(found, "in_force_because")} if found.get("in_force_because") else {}),
            **({"decided by": _sentences(found, "because")} if found.get("because") else {}),
            **({"logged": shown(found.get("logged"))} if found.get("logged") else {}),
        }
    )
    steps = (tag("h2", text("Step by step")), tag("ol", *map(_step, records(found, "steps"))))
    besides = (tag("h2", text("Besides")), _sentences(found, "besides")) if found.get("besides") else ()
    manifests = (*_missing(found), *_objects(found))
    yield tag("div", tag("div", *steps, *besides), tag("div", *manifests), class_="beside")
    if backends := records(found, "backends"):
        yield tag("h2", text("Who may answer"))
        yield table(backends, _BACKEND, "")


def _missing(found: Document) -> Iterable[Markup]:
    """Yield the missing manifests, for copying with one click or for a trial."""
    missing = records(found, "missing")
    if not missing:
        return
    manifests = printed(missing)
    yield tag("h2", text("What would have to be added"))
    yield tag("pre", text(manifests), tabindex="0", class_="copied")
    # HTML parsers drop the first line break of a textarea.
    area = tag("textarea", text("\n" + manifests), name="manifests", hidden=True)
    button = tag("button", text("Try it"), type="submit")
    words_ = tag("span", text("Nothing is applied."), class_="shows")
    yield tag("form", area, button, words_, action="/debug/try", method="post")


def _objects(found: Document) -> Iterable[Markup]:
    """Yield the involved objects in force, as YAML."""
    objects = records(found, "objects")
    if objects:
        yield tag("h2", text("What is in force"))
    for each in objects:
        decides = [badge("decides", Tone.PLAIN)] if each.get("decides") is True else []
        stale = [badge("stale")] if each.get("stale") is True else []
        name = links.mesh_object(said(each, "object"))
        where = joined((text("("), links.origin(said(each, "origin")), text(")")))
        yield tag("p", joined((name, where, *decides, *stale), " "))
        yield block(printed([_record(each.get("manifest") or each.get("value"))]).removeprefix("---\n"))


def _record(value: Json) -> Document:
    return value if isinstance(value, dict) else {}


def _sentences(found: Document, field: str) -> Markup:
    return listed(links.in_sentence(each) for each in words(found, field))


def _identities(found: Document, field: str) -> Markup:
    return listed(map(links.identity, words(found, field))) if words(found, field) else NONE


_BACKEND: Final = (
    Column(SERVICE.name, lambda each: links.service(said(each, "service")), ("service",)),
    Column("Weight", lambda each: text(said(each, "weight")), ("weight",)),
    Column("Admitted by", lambda each: _identities(each, "admitted"), ("admitted",)),
    Column("Refused by", lambda each: _identities(each, "refused"), ("refused",)),
)


def _step(step: Document) -> Markup:
    objects = [
        joined((links.mesh_object(said(each, "object")), text(f" ({said(each, 'origin')})")))
        for each in records(step, "objects")
    ]
    depth = min(int(number(step, "depth")), 5)
    return tag(
        "li",
        links.in_sentence(said(step, "text")),
        listed(objects) if objects else NOTHING,
        class_=f"deep{depth}",
    )


EXPLAIN: Final = PageLook(
    "Explain",
    of_explained,
    _explained,
    (
        Form(
            (
                *CALL,
                Field("line", "Or a line of a sidecar's access log", '{"start_time": …'),
            ),
            "Explain",
        ),
    ),
    "Why a call may pass or not.",
)
