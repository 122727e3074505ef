"""Layout of the page Connectivity: the sidecars of both sides, and the endpoints between them."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import items, records, said, words
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


def of_connectivity(found: Document) -> Verdict:
    """Return policy's verdict, with the numbers of sidecars not in step and of endpoints without traffic."""
    explained = found.get("explained")
    if not isinstance(explained, dict):
        return Verdict(Tone.PLAIN, "Ask about a call.")
    by_policy = of_explained(explained)
    ill = sum(_is_ill(each) for each in (*records(found, "callers"), *records(found, "called")))
    held = sum(bool(said(each, "withheld")) for each in records(found, "endpoints"))
    wrong = [counted(ill, "sidecar") + " not in step"] if ill else []
    wrong += [counted(held, "endpoint") + " without traffic"] if held else []
    if not wrong:
        return by_policy
    tone = worst((Tone.WARNING, by_policy.tone))
    return Verdict(tone, f"{by_policy.sentence} {' and '.join(wrong)}.", by_policy.word)


def _is_ill(sidecar: Document) -> bool:
    return said(sidecar, "stands") != IN_STEP or bool(items(sidecar, "lacks"))


def _sentences(found: Document) -> Markup:
    told = [each for each in (said(found, "said"), *words(found, "lacks"), *words(found, "rejected")) if each]
    return listed(map(links.in_sentence, told)) if told else NONE


def _state(found: Document) -> Markup:
    return badge(said(found, "stands"), Tone.BAD if _is_ill(found) else Tone.GOOD)


_SIDECAR: Final = (
    Column("Proxy", lambda each: links.proxy(said(each, "proxy")), ("proxy",)),
    Column(WORKLOAD.name, lambda each: name(said(each, "workload")), ("workload",)),
    Column("Stands", _state, ("stands",)),
    Column("Why", _sentences, ("said", "lacks", "rejected")),
)
_ENDPOINT: Final = (
    Column("Address", lambda each: name(said(each, "address")), ("address",)),
    Column(SERVICE.name, lambda each: links.service(said(each, "service")), ("service",)),
    Column("Told to the caller", lambda each: text("yes" if each.get("given") is True else "no"), ("given",)),
    Column("Without traffic because", lambda each: text(said(each, "withheld")), ("withheld",)),
)


def _connectivity(found: Document, _asked: PageRequest) -> Iterable[Markup]:
    if "usage" in found:
        return
    yield tag("h2", text("The caller's sidecars"))
    yield table(records(found, "callers"), _SIDECAR, "No sidecar of the caller is known.")
    yield tag("h2", text("Its endpoints"))
    yield table(records(found, "endpoints"), _ENDPOINT, "Nobody stands behind what is called.")
    yield tag("h2", text("The called sidecars"))
    yield table(records(found, "called"), _SIDECAR, "No sidecar there gets traffic.")


CONNECTIVITY: Final = PageLook(
    "Connectivity",
    of_connectivity,
    _connectivity,
    (Form(CALL, "Look"),),
    "How it stands with all that a call goes by.",
)
