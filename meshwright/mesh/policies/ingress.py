"""Who may call from outside the mesh: OSM's IngressBackend as a value."""

import enum
from dataclasses import dataclass

from meshwright.mesh.names import Port
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.values.cached_index import CachedIndex


class Proof(enum.StrEnum):
    """What a client must bring besides its address.

    NOTHING: it speaks plain text. CERTIFICATE: it speaks TLS, and shows one of the mesh's roots. ENCRYPTION:
    it speaks TLS, and no certificate of it is looked at.
    """

    NOTHING = "plain text"
    CERTIFICATE = "TLS with a client certificate"
    ENCRYPTION = "TLS without one"


@dataclass(frozen=True, slots=True, order=True)
class IngressPort:
    """A port at which workloads of a service are called: the service's target port, as a number.

    `server_names`: names of which a client must ask for one in TLS; empty is any or none.
    """

    service: ServiceKey
    port: Port
    proof: Proof
    server_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IngressBackend(CachedIndex):
    """policy.openservicemesh.io IngressBackend: these sources may call these ports from outside the mesh.

    `services` (their endpoints) and `ranges` are where a client may be, `principals` the names in its
    certificate. Where it must show one it needs both, a place only if any is named. `matches` names
    HTTPRouteGroups of the namespace; empty is every request. `created` is `metadata.creationTimestamp` as
    written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    backends: tuple[IngressPort, ...]
    services: tuple[ServiceKey, ...] = ()
    ranges: tuple[IpRange, ...] = ()
    principals: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    created: str = ""

    def part(self, service: ServiceKey, port: Port) -> IngressPort | None:
        """Return what it says of a service's target port, None for nothing."""
        found: IngressPort | None = self.index.get((service, port))
        return found

    def _indexed(self) -> dict[tuple[ServiceKey, Port], IngressPort]:
        return {(each.service, each.port): each for each in reversed(self.backends)}
