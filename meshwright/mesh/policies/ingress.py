"""Clients outside the mesh with access to workloads: OSM's IngressBackend as a value."""

import enum
from dataclasses import dataclass

from meshwright.mesh.names import Port
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.values.cached_index import CachedIndex


class Proof(enum.StrEnum):
    """Necessary proof of a client besides the address.

    - NOTHING: it uses plain text.
    - CERTIFICATE: it uses TLS with a certificate of the mesh's roots.
    - ENCRYPTION: it uses TLS; a certificate is not verified.
    """

    NOTHING = "plain text"
    CERTIFICATE = "TLS with a client certificate"
    ENCRYPTION = "TLS without one"


@dataclass(frozen=True, slots=True, order=True)
class IngressPort:
    """A port of a service's workloads that clients outside the mesh may call: the target port, as a number.

    The client must give one of `server_names` as SNI in the TLS handshake; if empty, any SNI is accepted.
    """

    service: ServiceKey
    port: Port
    proof: Proof
    server_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IngressBackend(CachedIndex):
    """policy.openservicemesh.io IngressBackend: these sources may call these ports from outside the mesh.

    - `services` (their endpoints) and `ranges`: places of clients.
    - `principals`: names in their certificates. If a certificate is required, the name must match, and also
      the place if the object names any.
    - `matches`: HTTPRouteGroups of the namespace; empty for every request.
    - `created`: `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    backends: tuple[IngressPort, ...]
    services: tuple[ServiceKey, ...] = ()
    ranges: tuple[IpRange, ...] = ()
    principals: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    created: str = ""

    def part(self, service: ServiceKey, port: Port) -> IngressPort | None:
        """Return the part of the IngressBackend for a target port of a service, or None."""
        ingress_port: IngressPort | None = self.index.get((service, port))
        return ingress_port

    def _indexed(self) -> dict[tuple[ServiceKey, Port], IngressPort]:
        return {(backend.service, backend.port): backend for backend in reversed(self.backends)}
