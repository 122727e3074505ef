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
    """Clients that may call in plain text, and the requests that they may send.

    The places of clients are `ranges` and the endpoints of `services`; without both, everywhere. `matches`
    names HTTPRouteGroups of the object's namespace; empty for every request and every connection.
    """

    services: tuple[ServiceKey, ...] = ()
    ranges: tuple[IpRange, ...] = ()
    matches: tuple[str, ...] = ()

    @property
    def from_everywhere(self) -> bool:
        """Return whether clients may be everywhere."""
        return not (self.services or self.ranges)


@dataclass(frozen=True, slots=True)
class MutualTLS:
    """policy.meshwright.dev MutualTLS: TLS for calls to ports of workloads of its namespace.

    - `accounts`: ServiceAccounts of the workloads; empty for all of the namespace.
    - `ports`: target ports; empty for all.
    - `plaintext`: None if the object does not say: then all callers in a namespace that admits every
      caller of the mesh, and no caller elsewhere.
    - `created`: `metadata.creationTimestamp` as written, empty if there is none; it decides precedence.
    """

    key: PolicyKey
    mode: TlsMode
    accounts: tuple[ServiceAccountName, ...] = ()
    ports: tuple[Port, ...] = ()
    plaintext: PlainText | None = None
    created: str = ""
