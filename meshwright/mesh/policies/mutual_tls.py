"""Requirement of client certificates: our own MutualTLS as a value."""

import enum
from dataclasses import dataclass

from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


class TlsMode(enum.StrEnum):
    """STRICT: every caller uses the mesh's TLS. PERMISSIVE: some callers may use plain text too."""

    STRICT = "Strict"
    PERMISSIVE = "Permissive"


@dataclass(frozen=True, slots=True)
class PlainText:
    """Clients admitted in plain text, and their permitted requests.

    The places of clients are `ranges` and the endpoints of `services`; without both, everywhere. `matches`
    names HTTPRouteGroups of the object's namespace; empty for every request and every connection.
    """

    services: tuple[ServiceKey, ...] = ()
    ranges: tuple[IpRange, ...] = ()
    matches: tuple[str, ...] = ()

    @property
    def from_everywhere(self) -> bool:
        """Return whether plaintext clients may have any address."""
        return not (self.services or self.ranges)


@dataclass(frozen=True, slots=True)
class MutualTLS:
    """policy.meshwright.dev MutualTLS: TLS for calls to ports of workloads of the namespace.

    - `accounts`: ServiceAccounts of the workloads; empty for all of the namespace.
    - `ports`: target ports; empty for all.
    - `plaintext`: None if missing in the object: then a namespace that admits every caller of the mesh admits
      all callers, and any other refuses them.
    - `created`: `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    mode: TlsMode
    accounts: tuple[ServiceAccountName, ...] = ()
    ports: tuple[Port, ...] = ()
    plaintext: PlainText | None = None
    created: str = ""
