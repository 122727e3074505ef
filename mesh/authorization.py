"""Who is asked besides policy: authorizers, and our own ExternalAuthorization as a value."""

from dataclasses import dataclass
from datetime import timedelta

from mesh.host_port import HostPort
from mesh.names import Port, ServiceAccountName
from mesh.policy import PolicyKey


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


@dataclass(frozen=True, slots=True)
class ExternalAuthorization:
    """policy.meshwright.dev ExternalAuthorization: who is asked at ports of workloads of its namespace.

    `authorizer` is None where nobody is: the mesh's own is not either. `accounts`: whose workloads; empty is
    all of the namespace. `ports`: their target ports; empty is all. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    authorizer: Authorizer | None
    accounts: tuple[ServiceAccountName, ...] = ()
    ports: tuple[Port, ...] = ()
    created: str = ""
