"""Layout of the page Explain: the reasons why a request is allowed or refused."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, number, records, words
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


def of_explained(result: Document) -> Verdict:
    """Return the verdict of the page Explain: the answer by policy, and whether sidecars apply the answer."""
    if "usage" in result:
        return Verdict(Tone.PLAIN, "Enter a request.")
    how = " ".join(filter(None, (field_text(result, "method"), field_text(result, "path"))))
    sentence = f"{field_text(result, 'from')} to {field_text(result, 'to')} {how}".rstrip()
    tones = [tone_of(field_text(result, "answer")), _IN_FORCE.get(field_text(result, "in_force"), Tone.PLAIN)]
    return Verdict(
        worst(tones), f"{sentence}: {field_text(result, 'headline')}.", field_text(result, "answer")
    )


_IN_FORCE: Final = {"yes": Tone.GOOD, "no": Tone.BAD, "unknown": Tone.WARNING}


def _explained(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    if "usage" in result:
        return
    yield pairs(
        {
            "policy": badge(field_text(result, "policy")),
            "in force": badge(field_text(result, "in_force"), _IN_FORCE.get(field_text(result, "in_force"))),
            **({"because": _sentences(result, "in_force_because")} if result.get("in_force_because") else {}),
            **({"decided by": _sentences(result, "because")} if result.get("because") else {}),
            **({"logged": shown(result.get("logged"))} if result.get("logged") else {}),
        }
    )
    steps = (tag("h2", text("Steps")), tag("ol", *map(_step, records(result, "steps"))))
    besides = (
        (tag("h2", text("Other causes")), _sentences(result, "besides")) if result.get("besides") else ()
    )
    manifests = (*_missing(result), *_objects(result))
    yield tag("div", tag("div", *steps, *besides), tag("div", *manifests), class_="beside")
    if backends := records(result, "backends"):
        yield tag("h2", text("Backends"))
        yield table(backends, _BACKEND, "")


def _missing(result: Document) -> Iterable[Markup]:
    """Yield the manifests needed to allow the request, with buttons to copy and to try them."""
    missing = records(result, "missing")
    if not missing:
        return
    manifests = printed(missing)
    yield tag("h2", text("Missing policy"))
    yield tag("pre", text(manifests), tabindex="0", class_="copied")
    # HTML parsers drop the first line break of a textarea.
    area = tag("textarea", text("\n" + manifests), name="manifests", hidden=True)
    button = tag("button", text("Try"), type="submit")
    words_ = tag("span", text("Try does not apply the manifests."), class_="shows")
    yield tag("form", area, button, words_, action="/debug/try", method="post")


def _objects(result: Document) -> Iterable[Markup]:
    """Yield the objects involved in the decision about the request, as YAML."""
    objects = records(result, "objects")
    if objects:
        yield tag("h2", text("Objects in force"))
    for item in objects:
        decides = [badge("decides", Tone.PLAIN)] if item.get("decides") is True else []
        stale = [badge("stale")] if item.get("stale") is True else []
        name = links.mesh_object(field_text(item, "object"))
        where = joined((text("("), links.origin(field_text(item, "origin")), text(")")))
        yield tag("p", joined((name, where, *decides, *stale), " "))
        yield block(printed([_record(item.get("manifest") or item.get("value"))]).removeprefix("---\n"))


def _record(value: Json) -> Document:
    return value if isinstance(value, dict) else {}


def _sentences(result: Document, field: str) -> Markup:
    return listed(links.in_sentence(word) for word in words(result, field))


def _identities(result: Document, field: str) -> Markup:
    return listed(map(links.identity, words(result, field))) if words(result, field) else NONE


_BACKEND: Final = (
    Column(SERVICE.name, lambda item: links.service(field_text(item, "service")), ("service",)),
    Column("Weight", lambda item: text(field_text(item, "weight")), ("weight",)),
    Column("Admitted by", lambda item: _identities(item, "admitted"), ("admitted",)),
    Column("Refused by", lambda item: _identities(item, "refused"), ("refused",)),
)


def _step(step: Document) -> Markup:
    objects = [
        joined((links.mesh_object(field_text(record, "object")), text(f" ({field_text(record, 'origin')})")))
        for record in records(step, "objects")
    ]
    depth = min(int(number(step, "depth")), 5)
    return tag(
        "li",
        links.in_sentence(field_text(step, "text")),
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
                Field("gateway", "Or from outside to: namespace/gateway", "shop/edge"),
                Field("host", "Host, for a gateway", "shop.example"),
                Field("line", "Or a line of a sidecar's access log", '{"start_time": …'),
            ),
            "Explain",
        ),
    ),
    "Why a request is allowed or refused.",
)
