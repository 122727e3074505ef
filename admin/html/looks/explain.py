"""Why a call may pass or not."""

from collections.abc import Iterable
from typing import Final

from admin.html import links
from admin.html.fields import items, number, records, said, words
from admin.html.forms import CALL, Field, Form
from admin.html.frame import Asked
from admin.html.looks.look import Look
from admin.html.markup import NOTHING, Markup, joined, listed, tag, text
from admin.html.tables import Column, table
from admin.html.tones import Tone, Verdict, badge, tone_of, worst
from admin.html.values import NONE, pairs, raw, shown
from admin.pages.jsonable import Document
from mesh.kinds import SERVICE


def of_explained(found: Document) -> Verdict:
    """Return the answer, and whether it is in force."""
    if "usage" in found:
        return Verdict(Tone.PLAIN, "Ask whether a call may pass.")
    how = " ".join(filter(None, (said(found, "method"), said(found, "path"))))
    sentence = f"{said(found, 'from')} to {said(found, 'to')} {how}".rstrip()
    tones = [tone_of(said(found, "answer")), _IN_FORCE.get(said(found, "in_force"), Tone.PLAIN)]
    return Verdict(worst(tones), f"{sentence}: {said(found, 'headline')}.", said(found, "answer"))


_IN_FORCE: Final = {"yes": Tone.GOOD, "no": Tone.BAD, "unknown": Tone.WARNING}


def _explained(found: Document, _asked: Asked) -> Iterable[Markup]:
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
    yield tag("h2", text("Step by step"))
    yield tag("ol", *map(_step, records(found, "steps")))
    if backends := records(found, "backends"):
        yield tag("h2", text("Who may answer"))
        yield table(backends, _BACKEND, "")
    if found.get("besides"):
        yield tag("h2", text("Besides"))
        yield _sentences(found, "besides")
    if missing := items(found, "missing"):
        yield tag("h2", text("What would have to be added"))
        yield from map(raw, missing)


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


EXPLAIN: Final = Look(
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
