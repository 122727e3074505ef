"""Annotations with DNS names for the endpoints of a Service."""

import re
from collections.abc import Sequence
from typing import Final

from meshwright.mesh.names import Port
from meshwright.mesh.service import DnsName, ServicePort
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.values.references import parse_dns_name

DNS_ANNOTATION: Final = "meshwright.dev/dns"
"""Names with A and AAAA records: `NAME` or `NAME:PORT`, separated by spaces or commas."""

SRV_ANNOTATION: Final = "meshwright.dev/dns-srv"
"""Names with SRV records: `NAME`, separated by spaces or commas."""


def dns_names(annotations: Fields, ports: Sequence[ServicePort]) -> tuple[DnsName, ...]:
    """Return the names in a Service's annotations, sorted; an invalid one is reported and left out."""
    result = set()
    for annotation, read in ((DNS_ANNOTATION, _addressed), (SRV_ANNOTATION, _served)):
        for word in re.split(r"[\s,]+", annotations.text(annotation) or ""):
            name = read(word, ports) if word else None
            if isinstance(name, DnsName):
                result.add(name)
            elif name is not None:
                path = f"{annotations.path}[{annotation}]"
                # Only this entry is left out, so that the other names of the Service keep their endpoints.
                annotations.notes.drop(Code.WRONG_VALUE, path, f"{name}; this entry is left out", word)
    return tuple(sorted(result, key=lambda name: (name.name, name.srv, name.port or 0)))


def _addressed(text: str, ports: Sequence[ServicePort]) -> DnsName | str:
    """Parse a DNS name with an optional port in an annotation; return the name, or the broken rule."""
    name, colon, number = text.partition(":")
    known = parse_dns_name(name)
    if known is None or (colon and not _is_port(number)):
        return (
            "must be a DNS name, for example db.example.com, or a DNS name with a port, for example "
            "db.example.com:5432"
        )
    if colon and len(ports) != 1:
        return "may have a port only if the Service has exactly one port"
    if not colon and not any(isinstance(port.target_port, int) for port in ports):
        return (
            "needs a port: write it here, for example db.example.com:5432, or as a number in "
            "targetPort of the Service"
        )
    return DnsName(known, Port(int(number)) if colon else None)


def _served(text: str, ports: Sequence[ServicePort]) -> DnsName | str:
    """Parse a DNS name of SRV records in an annotation; return the name, or the broken rule."""
    known = parse_dns_name(text)
    if known is None:
        return "must be a DNS name, for example _db._tcp.example.com"
    if len(ports) != 1:
        return (
            "is only for Services with exactly one port, because the SRV records give the "
            "port number of the endpoints"
        )
    return DnsName(known, srv=True)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535
