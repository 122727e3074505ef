"""Which of cert-manager's issuers is meant, as people write it."""

import re
from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.names import is_dns_subdomain

CERT_MANAGER: Final = "cert-manager.io"
"""cert-manager's own group."""

_OWN: Final = ("Issuer", "ClusterIssuer")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_RULE: Final = (
    "must be Issuer/NAME or ClusterIssuer/NAME, or KIND.GROUP/NAME for one of others, such as "
    "StepClusterIssuer.certmanager.step.sm/mesh"
)


@dataclass(frozen=True, slots=True)
class IssuerReference:
    """An issuer that CertificateRequests name; in their own namespace, unless its kind has none."""

    kind: str
    name: str
    group: str = CERT_MANAGER

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `KIND/NAME` or `KIND.GROUP/NAME`; raise ValueError, which says what would be right."""
        place, _, name = text.partition("/")
        kind, dot, group = place.partition(".")
        fits = _KIND.fullmatch(kind) and is_dns_subdomain(name) and (not dot or is_dns_subdomain(group))
        if not fits or (kind not in _OWN and group in ("", CERT_MANAGER)):
            raise ValueError(_RULE)
        return cls(kind, name, group or CERT_MANAGER)

    @property
    def is_own(self) -> bool:
        """Say whether it is of cert-manager's own kinds."""
        return self.group == CERT_MANAGER

    @property
    def is_namespaced(self) -> bool | None:
        """Say whether it stands in a namespace; None where that is not known."""
        return self.kind == "Issuer" if self.is_own else None

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.is_own else f"{self.kind}.{self.group}/{self.name}"
