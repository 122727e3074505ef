"""Who is asked besides policy: authorizers, and our own ExternalAuthorization as a value."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True)
class Authorizer:
    """Who is asked about every HTTP request that policy admits: a gRPC service, `envoy.service.auth.v3`.

    Sidecars call it in plain text at `server`, whose host is a name in the DNS or an IP address. A request of
    which it says nothing within `timeout` is refused, or passes where it `fails_open`.
    """

    server: HostPort
    stat_prefix: str
    timeout: timedelta
    fails_open: bool = False


NOWHERE: Final = HostPort("extension-service.invalid", 1)
"""A place that is none (RFC 6761, section 6.4): who is asked there answers nothing."""


@dataclass(frozen=True, slots=True)
class ExternalAuthorization:
    """policy.meshwright.dev ExternalAuthorization: who is asked at ports of workloads of its namespace.

    `authorizer` is None where nobody is: the mesh's own is not either. `service` is the ExtensionService
    whose place stands for the authorizer's, which says `NOWHERE` then. `accounts`: whose workloads; empty is
    all of the namespace. `ports`: their target ports; empty is all. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    authorizer: Authorizer | None
    accounts: tuple[ServiceAccountName, ...] = ()
    ports: tuple[Port, ...] = ()
    created: str = ""
    service: PolicyKey | None = None

    def at(self, server: HostPort | None) -> Authorizer | None:
        """Return who is asked where its ExtensionService is there; None for the server: where it is not."""
        if self.authorizer is None or self.service is None or server is None:
            return self.authorizer
        return replace(self.authorizer, server=server)
