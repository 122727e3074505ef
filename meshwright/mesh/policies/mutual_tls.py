"""Who must show a certificate of the mesh: our own MutualTLS as a value."""

import enum
from dataclasses import dataclass

from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


class TlsMode(enum.StrEnum):
    """STRICT: every caller speaks the mesh's TLS. PERMISSIVE: some may call in plain text as well."""

    STRICT = "Strict"
    PERMISSIVE = "Permissive"


@dataclass(frozen=True, slots=True)
class PlainText:
    """Who may call in plain text, and what: whoever is in a place, with requests that fit.

    Places are `ranges`, and the endpoints of `services`; neither is everywhere. `matches` names
    HTTPRouteGroups of the object's namespace; empty is every request, and every connection.
    """

    services: tuple[ServiceKey, ...] = ()
    ranges: tuple[IpRange, ...] = ()
    matches: tuple[str, ...] = ()

    @property
    def from_everywhere(self) -> bool:
        """Say whether no place is named."""
        return not (self.services or self.ranges)


@dataclass(frozen=True, slots=True)
class MutualTLS:
    """policy.meshwright.dev MutualTLS: how callers come to ports of workloads of its namespace.

    `accounts`: whose workloads; empty is all of the namespace. `ports`: their target ports; empty is all.
    `plaintext` is None where nothing is said of it: then it is everybody where the namespace admits every
    caller of the mesh, and else nobody. `created` is `metadata.creationTimestamp` as written, empty where
    there is none: it settles precedence.
    """

    key: PolicyKey
    mode: TlsMode
    accounts: tuple[ServiceAccountName, ...] = ()
    ports: tuple[Port, ...] = ()
    plaintext: PlainText | None = None
    created: str = ""
