"""IngressBackend, policy.openservicemesh.io v1alpha1.

Fields have Open Service Mesh's meaning. For example, `port.number` is the target port, and for an https
backend with both places and certificate names among its sources, a client must match one of each. Where
checks of OSM had no effect or the opposite effect, they have the intended effect here.
"""

import re
from collections.abc import Sequence
from typing import Final

from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import LONGEST_NAME, Namespace, is_dns_subdomain
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort, Proof
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.manifest import Manifest
from meshwright.specs.quotes import never
from meshwright.specs.values.places import IP_RANGE, Places
from meshwright.specs.values.references import own_service, route_group

HTTP: Final = "http"
HTTPS: Final = "https"
PRINCIPAL: Final = "AuthenticatedPrincipal"
SOURCES: Final = (PRINCIPAL, IP_RANGE, SERVICE.name)

PRINCIPAL_RULE: Final = (
    "must be a name from the client's certificate: a DNS name, or a URI, for example "
    "spiffe://cluster.local/gateway"
)
SERVER_NAME_RULE: Final = "must be a DNS name, or a wildcard, for example *.example.org"
NO_PRINCIPAL: Final = (
    f"must have at least one {PRINCIPAL}, because clients of https backends show a certificate; "
    "or set tls.skipClientCertValidation: true for each https backend"
)

_DNS_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*://[!-~]+")
_LONGEST_URI: Final = 2048


def ingress_backend(manifest: Manifest) -> IngressBackend:
    """Read an IngressBackend; its backends must be services of its namespace."""
    fields = manifest.spec()
    sections = fields.sections("backends", required=True)
    backends = tuple(_backend(item, manifest.namespace) for item in sections)
    sources = _Sources()
    for section in fields.sections("sources", required=True):
        sources.read(section)
    matches = tuple(sorted({_match(item) for item in fields.sections("matches")}))
    fields.close()
    for index in duplicates([(backend.service, backend.port) for backend in backends]):
        sections[index].wrong(
            "port",
            "must differ from the ports of the other backends with the same service",
            code=Code.DUPLICATE,
        )
    if fields.has("backends") and not sections:
        fields.wrong("backends", "must have at least one backend", Code.EMPTY)
    _judge(fields, backends, sources)
    return IngressBackend(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        backends=tuple(sorted(set(backends))),
        services=tuple(sorted(sources.services)),
        ranges=tuple(sorted(sources.ranges)),
        principals=tuple(sorted(sources.principals)),
        matches=matches,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


class _Sources(Places):
    """The permitted clients in one IngressBackend: Services, IP ranges and certificate names."""

    def __init__(self) -> None:
        super().__init__()
        self.principals: set[str] = set()

    def read(self, fields: Fields) -> None:
        """Read one entry of `sources`; in an entry other than a Service, the namespace is ignored."""
        kind = fields.raw("kind")
        # `choice` would replace a missing kind by its default, but the kind is required.
        if not fields.has("kind"):
            fields.required_text("kind", one_of(SOURCES))
        else:
            fields.choice("kind", SOURCES, PRINCIPAL)
        if kind == SERVICE.name:
            self.read_service(fields)
        elif kind == IP_RANGE:
            self.read_range(fields)
        elif kind == PRINCIPAL:
            self._principal(fields)
        # Accepted for an invalid kind too, so that this entry has one error instead of three.
        fields.accept("name", "namespace")
        fields.close()

    def _principal(self, fields: Fields) -> None:
        text = fields.required_text("name", PRINCIPAL_RULE)
        if not text:
            return
        if not _is_principal(text):
            fields.wrong("name", PRINCIPAL_RULE)
        self.principals.add(text)


def _judge(fields: Fields, backends: Sequence[IngressPort], sources: _Sources) -> None:
    """Report backends that a client cannot be admitted to, because its kind of source is missing."""
    if fields.notes.refused:
        return
    if not sources.principals and any(backend.proof is Proof.CERTIFICATE for backend in backends):
        fields.notes.refuse(Code.EMPTY, fields.at("sources"), NO_PRINCIPAL)
    closed = [backend for backend in backends if backend.proof is not Proof.CERTIFICATE]
    if closed and not sources.have_places:
        named = ", ".join(f"{ingress_port.service.name}:{ingress_port.port}" for ingress_port in closed)
        expected = (
            f"has no {SERVICE.name} and no {IP_RANGE}, so all requests to {named} are denied: "
            "clients without a certificate are known only by their address. Add a source (the "
            "ranges 0.0.0.0/0 and ::/0 allow all clients)"
        )
        fields.notes.warn(Code.EMPTY, fields.at("sources"), expected)


def _backend(fields: Fields, namespace: Namespace) -> IngressPort:
    service = own_service(fields, "name", namespace)
    port = fields.section("port", required=True)
    number, protocol = port.required_port("number"), _protocol(port)
    port.close()
    tls = fields.section("tls")
    skipped, names = tls.flag("skipClientCertValidation"), _server_names(tls)
    tls.close()
    fields.close()
    if protocol == HTTP:
        if skipped or names:
            expected = "is ignored, because clients call a backend with protocol http in plain text"
            fields.notes.warn(Code.FIELDS_NOT_USED, tls.path, expected)
        return IngressPort(service, number, Proof.NOTHING)
    return IngressPort(service, number, Proof.ENCRYPTION if skipped else Proof.CERTIFICATE, names)


def _protocol(fields: Fields) -> str:
    """Read the protocol of a backend: http or https, in upper or lower case."""
    rule = f"{one_of((HTTP, HTTPS))}; for gRPC write http, and for gRPC over TLS https"
    text = fields.required_text("protocol", rule, never)
    if text and text.lower() not in (HTTP, HTTPS):
        fields.wrong("protocol", rule)
    return text.lower()


def _server_names(fields: Fields) -> tuple[str, ...]:
    """Read the TLS server names of a backend in lower case, because clients may use any case."""
    result = set()
    for path, item in fields.items("sniHosts"):
        text = item.lower() if isinstance(item, str) else ""
        if is_dns_subdomain(text.removeprefix("*.")):
            result.add(text)
        else:
            fields.notes.refuse(Code.WRONG_VALUE, path, SERVER_NAME_RULE, item)
    return tuple(sorted(result))


def _match(fields: Fields) -> str:
    name = route_group(fields)
    fields.close()
    return name


def _is_principal(text: str) -> bool:
    if "://" in text:
        return len(text) <= _LONGEST_URI and _URI.fullmatch(text) is not None
    return len(text) <= LONGEST_NAME and _DNS_NAME.fullmatch(text) is not None
