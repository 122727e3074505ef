"""Layout of the page Access: callers, called ports, and the objects allowing the requests."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, records, words
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import Markup, code, joined, listed, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted
from meshwright.admin.html.values import NONE
from meshwright.admin.jsonable import Document


def of_access(result: Document) -> Verdict:
    """Return the verdict of the page Access: the number of pairs of caller and port with allowed requests."""
    records_ = records(result, "access")
    may = sum(record.get("allowed") is True for record in records_)
    return Verdict(
        Tone.PLAIN,
        f"Calls are allowed for {may} of {counted(len(records_), 'pair')} of identity and service port.",
    )


def _may(record: Document) -> Markup:
    # Plain and not red: a refusal is the normal state without a policy that allows the request.
    return badge("allowed") if record.get("allowed") is True else badge("refused", Tone.PLAIN)


def _to(record: Document) -> Markup:
    to = field_text(record, "destination_service")
    return joined((links.service(to), text(f":{field_text(record, 'port')}")))


def _requests(record: Document) -> Markup:
    return listed(code(word) for word in words(record, "requests")) if words(record, "requests") else NONE


def _by(record: Document) -> Markup:
    return listed(links.in_sentence(word) for word in words(record, "by")) if words(record, "by") else NONE


def _why(record: Document) -> Markup:
    to = f"{field_text(record, 'destination_service')}:{field_text(record, 'port')}"
    return links.link("why", links.href("/debug/explain", {"from": field_text(record, "source"), "to": to}))


_ACCESS: Final = (
    Column("From", lambda item: links.identity(field_text(item, "source")), ("source",)),
    Column("To", _to, ("destination_service", "port")),
    Column("Calls", _may, ("allowed",)),
    Column("Protocol", lambda item: text(field_text(item, "protocol")), ("protocol",)),
    Column("Requests", _requests, ("requests",)),
    Column("Allowed by", _by, ("by",)),
    Column("Explain", _why, ()),
)


def _access(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    empty = "No identity or no service port is known. Add a Service, and a Workload with a serviceAccount."
    yield table(records(result, "access"), _ACCESS, empty)


ACCESS: Final = PageLook(
    "Access",
    of_access,
    _access,
    (Form((Field("source", "From: namespace/service account", "shop/buyer"),), "Show access"),),
    "Requests that policy allows, by identity and service port, with the objects that allow them.",
    frozenset({"source"}),
)
