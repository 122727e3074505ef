"""What can be called: services and their ports."""

import enum
from dataclasses import dataclass

from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.values.cached_index import CachedIndex


class Protocol(enum.StrEnum):
    """What is spoken on a port, as far as a proxy must know it."""

    HTTP = "http"
    GRPC = "grpc"
    TCP = "tcp"
    TCP_SERVER_FIRST = "tcp-server-first"

    @property
    def is_http(self) -> bool:
        """Say whether requests, not only connections, can be seen on such a port."""
        return self in (Protocol.HTTP, Protocol.GRPC)


class EscapedSlashes(enum.StrEnum):
    """What becomes of a request whose path has an escaped slash or backslash (`%2f`, `%5c`, in any case).

    REJECT: it is answered 400. KEEP: rules and splits judge the path as it is written, and so does the
    application get it; but one that has a dot segment once its slashes are unescaped (`/books/..%2fadmin`)
    is answered 400 all the same. At a workload's port KEEP holds if any Service that is called there says it.
    """

    REJECT = "reject"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, order=True)
class ServiceKey:
    """A service's namespace and name."""

    namespace: Namespace
    name: ServiceName

    def fqdn(self, cluster_domain: str = "cluster.local") -> str:
        """Return `<name>.<namespace>.svc.<cluster domain>`."""
        return f"{self.name}.{self.namespace}.svc.{cluster_domain}"

    def host_names(self, cluster_domain: str = "cluster.local") -> tuple[str, ...]:
        """Return the names by which any namespace may call it, shortest first."""
        return (
            f"{self.name}.{self.namespace}",
            f"{self.name}.{self.namespace}.svc",
            self.fqdn(cluster_domain),
        )

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ExternalHost:
    """A host outside the mesh: its name in the DNS, or its address."""

    name: str

    def __str__(self) -> str:
        return self.name


Upstream = ServiceKey | ExternalHost
"""Whom calls lead to."""


@dataclass(frozen=True, slots=True)
class ServicePattern:
    """Services by namespace and name; None is any."""

    namespace: Namespace | None
    name: ServiceName | None

    def fits(self, key: ServiceKey) -> bool:
        """Say whether a service is among them."""
        return self.namespace in (None, key.namespace) and self.name in (None, key.name)

    def __str__(self) -> str:
        return f"{self.namespace or '*'}/{self.name or '*'}"


Scope = tuple[ServicePattern, ...] | None
"""The services that a proxy is to be configured with; None is no narrowing, empty is none of them."""


@dataclass(frozen=True, slots=True, order=True)
class ServicePort:
    """One port of a service.

    `target_port` is a number, or the name of a port of the workloads behind it. `protocol_source` says
    what `protocol` was decided from (`appProtocol`, `name`, `port`, `default`), for people who ask why.
    """

    port: Port
    target_port: Port | str
    protocol: Protocol
    name: str = ""
    protocol_source: str = "default"


@dataclass(frozen=True, slots=True)
class DnsName:
    """A name in the DNS at which a service is reached: lower case, no dot at its end.

    With `srv`, SRV records say which hosts and ports; else A and AAAA say the addresses, reached at `port`,
    or, without one, at the service's target ports.
    """

    name: str
    port: Port | None = None
    srv: bool = False


@dataclass(frozen=True, slots=True)
class Service(CachedIndex):
    """A named set of workloads and the ports they are called at.

    `selector` is a sorted tuple of label pairs, empty where endpoints come from elsewhere.
    `cluster_ip` is None where the service has none (headless, or outside Kubernetes). `dns_names` say
    where further endpoints of it are found. `escaped_slashes` is for its HTTP ports.
    `other_addresses` are further ones at which it is called, as of the other family. With
    `publish_not_ready` calls go to workloads that are not ready as well. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    `without_effect` are fields of `spec`, and annotations as `metadata.annotations[NAME]`, each with its
    value, that kube-proxy obeys and sidecars do not.
    """

    key: ServiceKey
    ports: tuple[ServicePort, ...]
    selector: tuple[tuple[str, str], ...] = ()
    cluster_ip: IpAddress | None = None
    headless: bool = False
    dns_names: tuple[DnsName, ...] = ()
    escaped_slashes: EscapedSlashes = EscapedSlashes.REJECT
    other_addresses: tuple[IpAddress, ...] = ()
    publish_not_ready: bool = False
    created: str = ""
    without_effect: tuple[tuple[str, str], ...] = ()

    def port(self, number: int) -> ServicePort | None:
        """Return the port with that number, or None."""
        found: ServicePort | None = self.index[0].get(number)
        return found

    def port_named(self, name: str) -> ServicePort | None:
        """Return the first port with that name, or None."""
        found: ServicePort | None = self.index[1].get(name)
        return found

    def ports_leading_to(self, target_port: str) -> tuple[ServicePort, ...]:
        """Return the ports with that target port, a name or a number as text, in their order."""
        return tuple(self.index[2].get(target_port, ()))

    def _indexed(
        self,
    ) -> tuple[dict[int, ServicePort], dict[str, ServicePort], dict[str, list[ServicePort]]]:
        backwards = self.ports[::-1]  # of two with one number, or name, the first counts
        by_target: dict[str, list[ServicePort]] = {}
        for each in self.ports:
            by_target.setdefault(str(each.target_port), []).append(each)
        return {each.port: each for each in backwards}, {each.name: each for each in backwards}, by_target
