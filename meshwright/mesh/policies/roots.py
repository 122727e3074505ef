"""Trusted roots declared by objects: the Secret and the role of each root."""

import enum
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.names import SecretName, TrustDomain
from meshwright.mesh.policies.smi import PolicyKey

_MESHS_OWN: Final = TrustDomain("")


class Role(enum.StrEnum):
    """Role of a root certificate.

    ACTIVE: signs, or may sign. PASSIVE: trusted only. INACTIVE: ignored.
    """

    ACTIVE = "active"
    PASSIVE = "passive"
    INACTIVE = "inactive"


@dataclass(frozen=True, slots=True)
class MeshRootCertificate:
    """config.openservicemesh.io MeshRootCertificate: a CA of the mesh, with its key in `secret`.

    An empty `trust_domain` stands for the mesh's own. `created` is `metadata.creationTimestamp` as written,
    or empty; the age decides precedence.
    """

    key: PolicyKey
    secret: SecretName
    trust_domain: TrustDomain = _MESHS_OWN
    role: Role = Role.ACTIVE
    created: str = ""
