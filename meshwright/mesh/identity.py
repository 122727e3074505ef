"""Identities: the ServiceAccount of a workload, and the name of a sidecar."""

import sys
from dataclasses import dataclass
from typing import Self

from meshwright.mesh.names import (
    Namespace,
    ProxyUuid,
    ServiceAccountName,
    ServiceName,
    SpiffeId,
    TrustDomain,
    is_dns_label,
)


@dataclass(frozen=True, slots=True, order=True)
class ServiceIdentity:
    """A ServiceAccount: the identity in policies and service certificates."""

    namespace: Namespace
    service_account: ServiceAccountName

    def spiffe_id(self, trust_domain: TrustDomain) -> SpiffeId:
        """Return `spiffe://<trust-domain>/ns/<namespace>/sa/<service account>` (SPIFFE-ID, section 2)."""
        return SpiffeId(f"spiffe://{trust_domain}/ns/{self.namespace}/sa/{self.service_account}")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.service_account}"


class ProxyNameError(ValueError):
    """Error for a common name of another form than `<uuid>.<service>.<namespace>`."""


def is_proxy_name(common_name: str) -> bool:
    """Return whether a common name has the form of a proxy's name: exactly three DNS-1123 labels."""
    # No name can be read in two ways, because none of the three labels may contain a dot.
    labels = common_name.split(".")
    return len(labels) == 3 and all(map(is_dns_label, labels))


@dataclass(frozen=True, slots=True, order=True)
class SidecarKey:
    """A sidecar's UUID and namespace, unique among workloads; another namespace may have the same UUID."""

    namespace: Namespace
    uuid: ProxyUuid


@dataclass(frozen=True, slots=True, order=True)
class ProxyName:
    """Name of a sidecar, the common name of the proxy certificate: `<uuid>.<service>.<namespace>`.

    For example: `5f2c8a1b-e0d9-4437-9c41-d07be8563f2a.cart.shop`.
    """

    uuid: ProxyUuid
    service: ServiceName
    namespace: Namespace

    @classmethod
    def parse(cls, common_name: str) -> Self:
        """Parse a common name. Raises ProxyNameError for anything but three DNS-1123 labels."""
        if not is_proxy_name(common_name):
            raise ProxyNameError(
                f"common name {common_name[:200]!r} is not <uuid>.<service>.<namespace> in DNS-1123 labels"
            )
        # Names are parsed in many places and often kept. Interning stores each text only once.
        uuid, service, namespace = map(sys.intern, common_name.split("."))
        return cls(ProxyUuid(uuid), ServiceName(service), Namespace(namespace))

    @property
    def sidecar(self) -> SidecarKey:
        """Return the sidecar's UUID and namespace."""
        return SidecarKey(self.namespace, self.uuid)

    def __str__(self) -> str:
        return f"{self.uuid}.{self.service}.{self.namespace}"
