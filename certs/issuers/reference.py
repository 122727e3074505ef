"""Reference to an issuer of cert-manager, in the form written by people, for example `ClusterIssuer/mesh`."""

import re
from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.names import is_dns_subdomain

CERT_MANAGER: Final = "cert-manager.io"
"""API group of cert-manager's own issuers."""

_OWN: Final = ("Issuer", "ClusterIssuer")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_RULE: Final = (
    "must be Issuer/NAME or ClusterIssuer/NAME, or KIND.GROUP/NAME for an issuer of "
    "another project, for example StepClusterIssuer.certmanager.step.sm/mesh"
)


@dataclass(frozen=True, slots=True)
class IssuerReference:
    """Reference to an issuer for CertificateRequests.

    The issuer is in the requests' namespace, unless the kind is cluster-scoped.
    """

    kind: str
    name: str
    group: str = CERT_MANAGER

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `KIND/NAME` or `KIND.GROUP/NAME`; raise ValueError with the valid forms."""
        place, _, name = text.partition("/")
        kind, dot, group = place.partition(".")
        fits = _KIND.fullmatch(kind) and is_dns_subdomain(name) and (not dot or is_dns_subdomain(group))
        if not fits or (kind not in _OWN and group in ("", CERT_MANAGER)):
            raise ValueError(_RULE)
        return cls(kind, name, group or CERT_MANAGER)

    @property
    def is_own(self) -> bool:
        """Return whether the issuer is of one of cert-manager's own kinds."""
        return self.group == CERT_MANAGER

    @property
    def is_namespaced(self) -> bool | None:
        """Return whether the issuer's kind is namespaced; None if unknown."""
        return self.kind == "Issuer" if self.is_own else None

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.is_own else f"{self.kind}.{self.group}/{self.name}"
