"""External authorizers, and our own ExternalAuthorization as a value."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True)
class Authorizer:
    """A gRPC service (`envoy.service.auth.v3`) to be asked about every HTTP request admitted by policy.

    Sidecars call the service in plain text at `server` (the host is a DNS name or an IP address). A request
    without an answer within `timeout` is refused, or admitted if `fails_open`.
    """

    server: HostPort
    stat_prefix: str
    timeout: timedelta
    fails_open: bool = False


NOWHERE: Final = HostPort("extension-service.invalid", 1)
"""An unresolvable name (RFC 6761, section 6.4): an authorizer there never answers."""


@dataclass(frozen=True, slots=True)
class ExternalAuthorization:
    """policy.meshwright.dev ExternalAuthorization: the authorizer for ports of workloads of the namespace.

    - `authorizer`: None to ask no authorizer, not even the mesh's own.
    - `service`: the ExtensionService with the authorizer's address; the authorizer's server is `NOWHERE`
      then.
    - `accounts`: ServiceAccounts of the workloads; empty for all of the namespace.
    - `ports`: target ports; empty for all.
    - `created`: `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    authorizer: Authorizer | None
    accounts: tuple[ServiceAccountName, ...] = ()
    ports: tuple[Port, ...] = ()
    created: str = ""
    service: PolicyKey | None = None

    def at(self, server: HostPort | None) -> Authorizer | None:
        """Return the authorizer, with the ExtensionService's server in place of `NOWHERE`.

        A missing ExtensionService (`server` is None) leaves the authorizer unchanged.
        """
        if self.authorizer is None or self.service is None or server is None:
            return self.authorizer
        return replace(self.authorizer, server=server)
