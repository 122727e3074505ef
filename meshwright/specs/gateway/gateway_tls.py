"""`spec.tls` of Gateways: certificates of clients, and the certificate that the gateway shows to backends."""

from typing import Final

from meshwright.mesh.gateway.gateways import GatewayTls
from meshwright.mesh.kinds import SECRET
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import choice, limited, missing
from meshwright.specs.gateway.references import object_reference

FRONTEND: Final = "frontend"

_MOST_PORTS: Final = 64
_MOST_CERTIFICATES: Final = 16
_MODES: Final = ("AllowValidOnly", "AllowInsecureFallback")
_MAPPING: Final = "must be a mapping"


def gateway_tls(fields: Fields) -> GatewayTls:
    """Read `spec.tls`; the client certificates that listeners demand are checked alone."""
    frontend, backend = fields.section(FRONTEND), fields.section("backend")
    if fields.has(FRONTEND):
        _check_frontend(frontend)
    certificate = backend.section("clientCertificateRef")
    is_named = backend.has("clientCertificateRef")
    shown = object_reference(certificate, SECRET) if is_named else None
    backend.close()
    fields.close()
    return GatewayTls(shown)


def _check_frontend(fields: Fields) -> None:
    if not fields.has("default"):
        missing(fields, "default", _MAPPING)
    _check_validation(fields.section("default"))
    sections = limited(fields, "perPort", _MOST_PORTS)
    ports = [section.required_port("port") for section in sections]
    for section in sections:
        if not section.has("tls"):
            missing(section, "tls", _MAPPING)
        _check_validation(section.section("tls"))
        section.close()
    for index in duplicates(ports):
        path = sections[index].at("port")
        fields.notes.refuse(Code.DUPLICATE, path, "must differ from the ports before", ports[index])
    fields.close()


def _check_validation(fields: Fields) -> None:
    validation = fields.section("validation")
    if fields.has("validation"):
        for section in limited(validation, "caCertificateRefs", _MOST_CERTIFICATES, least=1):
            object_reference(section)
        choice(validation, "mode", _MODES, _MODES[0])
        validation.close()
    fields.close()
