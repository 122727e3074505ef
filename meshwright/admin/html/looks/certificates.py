"""Layout of the page Certificates: of services, of proxies, and the proxies that lack a certificate."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, number, part, records, words
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import Markup, code, joined, name, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.timeline import Span, timeline
from meshwright.admin.html.tones import Tone, Verdict, badge, counted
from meshwright.admin.html.values import NONE, moment
from meshwright.admin.jsonable import Document


def of_certificates(result: Document) -> Verdict:
    """Return the verdict of the page Certificates: their number, BAD if one in use has expired."""
    services, proxies = records(result, "service_certificates"), records(result, "proxy_certificates")
    # Only the newest certificate of a proxy is in use: older ones may expire.
    newest = {
        field_text(proxy, "cn"): proxy
        for proxy in sorted(proxies, key=lambda proxy: field_text(proxy, "issued_at"))
    }
    expired = sum(_left(service) <= 0 for service in services)
    expired += sum(_standing(item) == "expired" for item in newest.values())
    many = f"{counted(len(services), 'service certificate')}, {counted(len(proxies), 'proxy certificate')}"
    if expired:
        have = counted(expired, "certificate in use has", "certificates in use have")
        return Verdict(Tone.BAD, f"{have} expired, of {many}.")
    return Verdict(Tone.GOOD if services or proxies else Tone.PLAIN, f"{many}; none in use has expired.")


def _left(certificate: Document) -> float:
    return number(certificate, "seconds_left")


def _standing(entry: Document) -> str:
    if field_text(entry, "state") == "revoked":
        return "revoked"
    return "expired" if entry.get("expired") is True else field_text(entry, "state")


def _valid(certificate: Document) -> Markup:
    left = _left(certificate)
    if left <= 0:
        return badge("expired")
    days, hours = divmod(int(left) // 3600, 24)
    said_left = counted(days, "day") if days else f"{hours} h" if hours else f"{int(left) // 60} min"
    return joined((badge("valid"), text(f" {said_left} left")))


def _claimed(entry: Document) -> Markup:
    if not field_text(entry, "claimed_at"):
        by = field_text(entry, "claim_by")
        return joined((text("by "), moment(by))) if by else NONE
    return joined(
        (moment(field_text(entry, "claimed_at")), tag("div", text(field_text(entry, "claimed_from"))))
    )


def _revoked(entry: Document) -> Markup:
    if not field_text(entry, "revoked_at"):
        return NONE
    return joined(
        (moment(field_text(entry, "revoked_at")), tag("div", name(field_text(entry, "revoked_why"))))
    )


def _serial(proxy: Document) -> Markup:
    return code(field_text(proxy, "serial")) if field_text(proxy, "serial") else NONE


def _lacks(proxy: Document) -> Markup:
    return joined((badge(word.replace("-", " "), Tone.WARNING) for word in words(proxy, "lacks")), " ")


def _held_certificate(proxy: Document) -> Markup:
    held = part(proxy, "service_certificate")
    if not held:
        return NONE
    return joined((code(field_text(held, "serial")), text(" until "), moment(field_text(held, "not_after"))))


_SERVICE: Final = (
    Column("Identity", lambda item: links.identity(field_text(item, "identity")), ("identity",)),
    Column("State", _valid, ("seconds_left",)),
    Column(
        "Serial",
        lambda item: tag("code", text(field_text(item, "serial")), id=field_text(item, "serial")),
        ("serial",),
    ),
    Column("Valid until", lambda item: moment(field_text(item, "not_after")), ("not_after",)),
)
_PROXY: Final = (
    Column("Proxy", lambda item: links.proxy(field_text(item, "cn")), ("cn",)),
    Column("State", lambda item: badge(_standing(item)), ("state", "expired")),
    Column(
        "Serial",
        lambda item: tag("code", text(field_text(item, "serial")), id=field_text(item, "serial")),
        ("serial",),
    ),
    Column("Valid until", lambda item: moment(field_text(item, "not_after")), ("not_after",)),
    Column("Claimed", _claimed, ("claimed_at", "claimed_from", "claim_by")),
    Column("First ready", lambda item: moment(field_text(item, "first_ready_at")), ("first_ready_at",)),
    Column("Last seen", lambda item: moment(field_text(item, "last_seen")), ("last_seen",)),
    Column("Revoked", _revoked, ("revoked_at", "revoked_why")),
)
_PARTICIPANT: Final = (
    Column("Proxy", lambda item: links.proxy(field_text(item, "cn")), ("cn",)),
    Column("Lacks", _lacks, ("takes_part", "lacks")),
    Column(
        "Certificate",
        lambda item: code(field_text(item, "serial")) if field_text(item, "serial") else NONE,
        ("serial",),
    ),
    Column("Service certificate", _held_certificate, ("service_certificate",)),
)


MOST_SPANS: Final = 24
"""Maximum number of certificates in the timeline, the first to expire; the tables list all."""


def _spans(result: Document) -> Iterator[Span]:
    """Yield the lifetimes of service certificates for the timeline, also of older ones in use by proxies."""
    current = set[str]()
    for record in records(result, "service_certificates"):
        current.add(field_text(record, "serial"))
        if (end := _moment(record, "not_after")) is not None:
            title = f"{field_text(record, 'identity')}: valid until {field_text(record, 'not_after')}"
            tone = Tone.BAD if _left(record) <= 0 else Tone.GOOD
            yield Span(field_text(record, "identity"), _moment(record, "not_before"), end, tone, title)
    for each in records(result, "participants"):
        held = part(each, "service_certificate")
        end = _moment(held, "not_after")
        if end is not None and field_text(held, "serial") not in current:
            serial, until = field_text(held, "serial"), field_text(held, "not_after")
            title = f"{field_text(each, 'cn')} still uses {serial}, valid until {until}"
            yield Span(f"in use by {field_text(each, 'cn')}", None, end, Tone.WARNING, title)


def _moment(result: Document, field: str) -> datetime | None:
    return _read(field_text(result, field))


def _read(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _timeline(result: Document, now: datetime | None) -> Iterable[Markup]:
    spans = sorted(_spans(result), key=lambda span: (span.end, span.name))
    authority = part(result, "authority")
    ends = _moment(authority, "not_after")
    if not spans or ends is None or now is None:
        return
    signer = f"CA ({field_text(authority, 'kind')})"
    # Certificates are useless after the end of their CA.
    tone = Tone.GOOD if ends > spans[-1].end else Tone.WARNING
    top = Span(signer, None, ends, tone, f"{signer}: valid until {field_text(authority, 'not_after')}")
    yield timeline([top, *spans[:MOST_SPANS]], now, spans[-1].end, "Lifetimes of certificates")
    if (more := len(spans) - MOST_SPANS) > 0:
        words_ = f"The picture lacks {counted(more, 'certificate')}, which expire later."
        yield tag("p", text(words_), class_="empty")


def _certificates(result: Document, page_request: PageRequest) -> Iterable[Markup]:
    yield from _timeline(result, _read(page_request.at))
    yield tag("h2", text("Service certificates"))
    empty = "None yet: the server issues one for each serviceAccount of a Workload."
    yield table(
        records(result, "service_certificates"),
        _SERVICE,
        empty,
        lambda record: field_text(record, "identity"),
    )
    yield tag("h2", text("Proxy certificates"))
    empty = "None yet: `meshwright certs issue-proxy` issues one."
    issued = records(result, "proxy_certificates")
    yield table(issued, _PROXY, empty, lambda item: field_text(item, "cn"))
    yield tag("h2", text("Proxies that do not take part in the mesh"))
    away = [record for record in records(result, "participants") if record.get("takes_part") is not True]
    listed = {field_text(item, "cn") for item in issued}
    yield table(
        away,
        _PARTICIPANT,
        "Every proxy takes part in the mesh.",
        lambda item: "" if (cn := field_text(item, "cn")) in listed else cn,
    )


CERTIFICATES: Final = PageLook(
    "Certificates", of_certificates, _certificates, shows="Issued certificates, without their keys."
)
