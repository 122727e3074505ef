"""Roots that objects declare: where each is, and whether it is to sign."""

import enum
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.names import SecretName, TrustDomain
from meshwright.mesh.policies.smi import PolicyKey

_MESHS_OWN: Final = TrustDomain("")


class Role(enum.StrEnum):
    """What a root is for.

    ACTIVE: it signs, or may. PASSIVE: it is trusted, and does not sign. INACTIVE: neither.
    """

    ACTIVE = "active"
    PASSIVE = "passive"
    INACTIVE = "inactive"


@dataclass(frozen=True, slots=True)
class MeshRootCertificate:
    """config.openservicemesh.io MeshRootCertificate: a CA of the mesh, with its key in `secret`.

    `trust_domain` is empty where the object names none: then it is the mesh's. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    secret: SecretName
    trust_domain: TrustDomain = _MESHS_OWN
    role: Role = Role.ACTIVE
    created: str = ""
