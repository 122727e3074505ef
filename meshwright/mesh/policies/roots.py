"""Roots that objects declare: the Secret of each, and whether it signs."""

import enum
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.names import SecretName, TrustDomain
from meshwright.mesh.policies.smi import PolicyKey

_MESHS_OWN: Final = TrustDomain("")


class Role(enum.StrEnum):
    """Role of a root.

    ACTIVE: it signs, or may sign. PASSIVE: it is trusted and does not sign. INACTIVE: neither.
    """

    ACTIVE = "active"
    PASSIVE = "passive"
    INACTIVE = "inactive"


@dataclass(frozen=True, slots=True)
class MeshRootCertificate:
    """config.openservicemesh.io MeshRootCertificate: a CA of the mesh, with its key in `secret`.

    `trust_domain` is empty if the object names none; it is the mesh's then. `created` is
    `metadata.creationTimestamp` as written, empty if there is none; it decides precedence.
    """

    key: PolicyKey
    secret: SecretName
    trust_domain: TrustDomain = _MESHS_OWN
    role: Role = Role.ACTIVE
    created: str = ""
