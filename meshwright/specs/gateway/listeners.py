"""Listeners of gateways: protocol, host name, TLS, and the routes that may attach."""

from dataclasses import replace
from typing import Final

from meshwright.mesh.gateway.gateways import (
    AllowedRoutes,
    Listener,
    ListenerProtocol,
    ListenerTls,
    RoutesFrom,
    TlsMode,
)
from meshwright.mesh.kinds import GATEWAY_API, SECRET, Kind
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import (
    ANNOTATION_VALUE,
    GROUP,
    HOSTNAME,
    KIND,
    PROTOCOL,
    SECTION,
    choice,
    limited,
    limited_pairs,
    optional,
    required,
)
from meshwright.specs.gateway.references import object_reference
from meshwright.specs.gateway.selectors import namespaces

MOST_LISTENERS: Final = 64
_MOST_CERTIFICATES: Final = 64
_MOST_KINDS: Final = 8
_MOST_OPTIONS: Final = 16
_ROUTES_FROM: Final = (RoutesFrom.ALL, RoutesFrom.SELECTOR, RoutesFrom.SAME)
_WITHOUT_TLS: Final = (ListenerProtocol.HTTP, ListenerProtocol.TCP, ListenerProtocol.UDP)
_WITHOUT_HOSTNAME: Final = (ListenerProtocol.TCP, ListenerProtocol.UDP)


def listeners_of(spec: Fields) -> tuple[Listener, ...]:
    """Read `listeners`, which must differ by name, and by port, protocol or host name."""
    sections = limited(spec, "listeners", MOST_LISTENERS, least=1)
    listeners = tuple(map(_listener, sections))
    good = [pair for pair in zip(sections, listeners, strict=True) if not pair[1].dropped]
    for index in duplicates([listener.name for _, listener in good]):
        fields, listener = good[index]
        rule = "must differ from the names before"
        spec.notes.refuse(Code.DUPLICATE, fields.at("name"), rule, listener.name)
    for index in duplicates([(item.port, item.protocol, item.hostname) for _, item in good]):
        rule = "must differ from the listeners before by port, protocol or hostname"
        spec.notes.refuse(Code.DUPLICATE, good[index][0].path, rule)
    return listeners


def _listener(fields: Fields) -> Listener:
    """Read a listener; an error refuses a gateway from a file, and drops the listener of a cluster."""
    whole = fields.notes
    notes = fields.notes = whole.part()
    listener = Listener(
        name=required(fields, "name", SECTION),
        port=fields.required_port("port"),
        protocol=required(fields, "protocol", PROTOCOL),
        hostname=optional(fields, "hostname", HOSTNAME) or "",
        tls=_tls(fields.section("tls")) if fields.has("tls") else None,
        allowed=_allowed(fields.section("allowedRoutes")),
    )
    _check_protocol(fields, listener)
    fields.accept("tls")
    fields.close()
    whole.is_clean &= notes.is_clean
    whole.refused |= notes.refused
    return replace(listener, dropped=notes.fault)


def _check_protocol(fields: Fields, listener: Listener) -> None:
    """Check the fields that a protocol needs or excludes."""
    protocol, tls = listener.protocol, listener.tls
    if protocol in _WITHOUT_TLS and tls is not None:
        fields.wrong("tls", f"must be absent for the protocol {protocol}")
    if protocol == ListenerProtocol.HTTPS and tls is not None and tls.mode is not TlsMode.TERMINATE:
        rule = (
            f"must be {TlsMode.TERMINATE} for the protocol {protocol}; listeners of protocol "
            f"{ListenerProtocol.TLS} pass connections on unread"
        )
        fields.section("tls").wrong("mode", rule)
    if protocol == ListenerProtocol.TLS and tls is None:
        fields.wrong("tls", f"must be present for the protocol {protocol}")
    if protocol in _WITHOUT_HOSTNAME and listener.hostname:
        fields.wrong("hostname", f"must be absent for the protocol {protocol}")


def _tls(fields: Fields) -> ListenerTls:
    mode = TlsMode(choice(fields, "mode", tuple(TlsMode), TlsMode.TERMINATE))
    sections = limited(fields, "certificateRefs", _MOST_CERTIFICATES)
    certificates = tuple(object_reference(section, SECRET) for section in sections)
    options = limited_pairs(fields, "options", _MOST_OPTIONS, ANNOTATION_VALUE)
    if mode is TlsMode.TERMINATE and not sections and not options:
        fields.wrong("certificateRefs", f"must have a certificate for the mode {mode}")
    fields.close()
    return ListenerTls(mode, certificates)


def _allowed(fields: Fields) -> AllowedRoutes:
    origin, selector = namespaces(fields.section("namespaces"), _ROUTES_FROM, RoutesFrom.SAME)
    kinds = tuple(_route_kind(section) for section in limited(fields, "kinds", _MOST_KINDS))
    fields.close()
    return AllowedRoutes(origin, selector, kinds)


def _route_kind(fields: Fields) -> Kind:
    group = optional(fields, "group", GROUP)
    kind = Kind(required(fields, "kind", KIND), GATEWAY_API if group is None else group)
    fields.close()
    return kind
