"""`spec.tls` of Gateways: certificates of clients, and the certificate that the gateway shows to backends."""

from dataclasses import replace
from typing import Final

from meshwright.mesh.gateway.gateways import ClientValidation, FrontendTls, GatewayTls, ValidationMode
from meshwright.mesh.kinds import SECRET
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import choice, limited, missing
from meshwright.specs.gateway.references import object_reference

_MOST_PORTS: Final = 64
_MOST_AUTHORITIES: Final = 16
_MAPPING: Final = "must be a mapping"


def gateway_tls(fields: Fields) -> GatewayTls:
    """Read `spec.tls`."""
    frontend, backend = fields.section("frontend"), fields.section("backend")
    validations = _frontend(frontend) if fields.has("frontend") else FrontendTls()
    certificate = backend.section("clientCertificateRef")
    is_named = backend.has("clientCertificateRef")
    shown = object_reference(certificate, SECRET) if is_named else None
    backend.close()
    fields.close()
    return GatewayTls(shown, validations)


def _frontend(fields: Fields) -> FrontendTls:
    """Read the validations of clients.

    An error refuses a gateway from a file, and drops the validations of a cluster: a client must not get in
    because one of their fields is not known.
    """
    whole = fields.notes
    notes = fields.notes = whole.part()
    if not fields.has("default"):
        missing(fields, "default", _MAPPING)
    default = _validation(fields.section("default"))
    sections = limited(fields, "perPort", _MOST_PORTS)
    ports = [section.required_port("port") for section in sections]
    for section in sections:
        if not section.has("tls"):
            missing(section, "tls", _MAPPING)
    validations = [_validation(section.section("tls")) for section in sections]
    for section in sections:
        section.close()
    for index in duplicates(ports):
        path = sections[index].at("port")
        notes.refuse(Code.DUPLICATE, path, "must differ from the ports before", ports[index])
    fields.close()
    whole.is_clean &= notes.is_clean
    whole.refused |= notes.refused
    return replace(FrontendTls(default, tuple(zip(ports, validations, strict=True))), dropped=notes.fault)


def _validation(fields: Fields) -> ClientValidation | None:
    validation = fields.section("validation")
    is_there = fields.has("validation")
    fields.close()
    if not is_there:
        return None
    sections = limited(validation, "caCertificateRefs", _MOST_AUTHORITIES, least=1)
    authorities = tuple(object_reference(section) for section in sections)
    mode = choice(validation, "mode", tuple(ValidationMode), ValidationMode.VALID_ONLY)
    validation.close()
    return ClientValidation(authorities, ValidationMode(mode))
