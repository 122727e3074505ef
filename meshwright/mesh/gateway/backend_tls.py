"""BackendTLSPolicies of the Gateway API: the TLS from gateways to the backends of routes."""

import enum
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.kinds import SERVICE, Kind
from meshwright.mesh.names import ServiceName
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey

SYSTEM: Final = "System"
"""The well-known CA certificates of the proxy's machine or image."""


class AltNameType(enum.StrEnum):
    """Types of subject alternative names."""

    HOSTNAME = "Hostname"
    URI = "URI"


@dataclass(frozen=True, slots=True, order=True)
class AltName:
    """A name of which a backend's certificate must have one; a host name may begin with `*.`."""

    type: AltNameType
    name: str


@dataclass(frozen=True, slots=True)
class PolicyTarget:
    """An object in the namespace of its policy; `section` is the name of a Service's port, None for all."""

    kind: Kind
    name: str
    section: str | None = None


@dataclass(frozen=True, slots=True)
class BackendTLSPolicy:
    """gateway.networking.k8s.io BackendTLSPolicy: how gateways verify the certificates of backends.

    `hostname` is the requested server name, and the verified name unless there are `names`. `authorities`
    refer to CA certificates in the namespace of the policy; without any, `well_known` names a set of these.
    `generation`, `created` and `unused` are as in a Gateway. `dropped` is the reason why a policy that the
    API server has accepted cannot be read; requests to its targets fail.
    """

    key: PolicyKey
    targets: tuple[PolicyTarget, ...]
    hostname: str
    authorities: tuple[ObjectReference, ...] = ()
    well_known: str = ""
    names: tuple[AltName, ...] = ()
    generation: int = 0
    created: str = ""
    unused: tuple[str, ...] = ()
    dropped: str = ""

    def service_of(self, target: PolicyTarget) -> ServiceKey | None:
        """Return the key of a target Service, which may be missing; None for a target of another kind."""
        if target.kind != SERVICE:
            return None
        return ServiceKey(self.key.namespace, ServiceName(target.name))

    @property
    def services(self) -> tuple[ServiceKey, ...]:
        """The keys of the target Services, each once, in order."""
        found = (self.service_of(target) for target in self.targets)
        return tuple(dict.fromkeys(key for key in found if key is not None))
