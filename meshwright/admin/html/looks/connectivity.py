"""Layout of the page Connectivity: the sidecars of both sides, and the endpoints between them."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, items, records, words
from meshwright.admin.html.forms import CALL, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.explain import of_explained
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import Markup, listed, name, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted, worst
from meshwright.admin.html.values import NONE
from meshwright.admin.jsonable import Document
from meshwright.mesh.kinds import SERVICE, WORKLOAD

IN_STEP: Final = "in step"


def of_connectivity(result: Document) -> Verdict:
    """Return policy's verdict, with the numbers of sidecars not in step and of endpoints without traffic."""
    explained = result.get("explained")
    if not isinstance(explained, dict):
        return Verdict(Tone.PLAIN, "Enter a request.")
    by_policy = of_explained(explained)
    ill = sum(_is_ill(item) for item in (*records(result, "callers"), *records(result, "called")))
    held = sum(bool(field_text(record, "withheld")) for record in records(result, "endpoints"))
    wrong = [counted(ill, "sidecar") + " not in step"] if ill else []
    wrong += [counted(held, "endpoint") + " without traffic"] if held else []
    if not wrong:
        return by_policy
    tone = worst((Tone.WARNING, by_policy.tone))
    return Verdict(tone, f"{by_policy.sentence} {' and '.join(wrong)}.", by_policy.word)


def _is_ill(sidecar: Document) -> bool:
    return field_text(sidecar, "stands") != IN_STEP or bool(items(sidecar, "lacks"))


def _sentences(result: Document) -> Markup:
    messages = [
        item
        for item in (field_text(result, "said"), *words(result, "lacks"), *words(result, "rejected"))
        if item
    ]
    return listed(map(links.in_sentence, messages)) if messages else NONE


def _state(result: Document) -> Markup:
    return badge(field_text(result, "stands"), Tone.BAD if _is_ill(result) else Tone.GOOD)


_SIDECAR: Final = (
    Column("Proxy", lambda item: links.proxy(field_text(item, "proxy")), ("proxy",)),
    Column(WORKLOAD.name, lambda item: name(field_text(item, "workload")), ("workload",)),
    Column("State", _state, ("stands",)),
    Column("Reason", _sentences, ("said", "lacks", "rejected")),
)
_ENDPOINT: Final = (
    Column("Address", lambda item: name(field_text(item, "address")), ("address",)),
    Column(SERVICE.name, lambda item: links.service(field_text(item, "service")), ("service",)),
    Column(
        "Known to the caller", lambda item: text("yes" if item.get("given") is True else "no"), ("given",)
    ),
    Column("No traffic because", lambda item: text(field_text(item, "withheld")), ("withheld",)),
)


def _connectivity(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    if "usage" in result:
        return
    yield tag("h2", text("Sidecars of the caller"))
    yield table(records(result, "callers"), _SIDECAR, "No sidecar of the caller is known.")
    yield tag("h2", text("Endpoints of the service"))
    yield table(records(result, "endpoints"), _ENDPOINT, "No endpoint receives this request.")
    yield tag("h2", text("Called sidecars"))
    yield table(records(result, "called"), _SIDECAR, "No called sidecar gets traffic.")


CONNECTIVITY: Final = PageLook(
    "Connectivity",
    of_connectivity,
    _connectivity,
    (Form(CALL, "Check"),),
    "State of every part that a request passes.",
)
