"""What the operator of the control plane decides, not the manifests."""

from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Final

from mesh.names import TrustDomain

DEFAULT_TRUST_DOMAIN: Final = TrustDomain("cluster.local")


@dataclass(frozen=True, slots=True)
class MeshSettings:
    """The mesh's names, and the range from which services get addresses that have none."""

    trust_domain: TrustDomain = DEFAULT_TRUST_DOMAIN
    cluster_domain: str = "cluster.local"
    virtual_addresses: IPv4Network = field(default_factory=lambda: IPv4Network("240.0.0.0/8"))
