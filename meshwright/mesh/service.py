"""Services and their ports."""

import enum
from dataclasses import dataclass
from sys import intern

from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.values.cached_index import CachedIndex


class Protocol(enum.StrEnum):
    """Application protocol of a port, as far as a proxy must know it."""

    HTTP = "http"
    GRPC = "grpc"
    TCP = "tcp"
    TCP_SERVER_FIRST = "tcp-server-first"

    @property
    def is_http(self) -> bool:
        """Return whether a proxy sees requests on such a port, not only connections."""
        return self in (Protocol.HTTP, Protocol.GRPC)


class EscapedSlashes(enum.StrEnum):
    """Treatment of requests with an escaped slash or backslash in the path (`%2f`, `%5c`, in any case).

    - REJECT: the request is answered with 400.
    - KEEP: policies match the path as written, and the application gets the path unchanged. A path with a dot
      segment after unescaping (for example `/books/..%2fadmin`) is still answered with 400. At a workload's
      port KEEP applies if any Service of the port has KEEP.
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
        """Return the names of the service valid in all namespaces, shortest first."""
        return (
            f"{self.name}.{self.namespace}",
            f"{self.name}.{self.namespace}.svc",
            self.fqdn(cluster_domain),
        )

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ExternalHost:
    """A host outside the mesh, as destination of calls: a DNS name or an address."""

    name: str

    def __str__(self) -> str:
        return self.name


Upstream = ServiceKey | ExternalHost
"""Destination of calls."""


@dataclass(frozen=True, slots=True)
class ServicePattern:
    """Pattern of services by namespace and name; None matches any."""

    namespace: Namespace | None
    name: ServiceName | None

    def fits(self, key: ServiceKey) -> bool:
        """Return whether the pattern matches a service."""
        return self.namespace in (None, key.namespace) and self.name in (None, key.name)

    def __str__(self) -> str:
        return f"{self.namespace or '*'}/{self.name or '*'}"


Scope = tuple[ServicePattern, ...] | None
"""Services in a proxy's configuration; None for all, empty for none."""


@dataclass(frozen=True, slots=True, order=True)
class ServicePort:
    """One port of a service.

    `target_port` is a number, or the name of a port of the workloads. `protocol_source` is the origin of
    `protocol` (`appProtocol`, `name`, `port`, `default`), for explanations. With `http2` the application
    declares that it speaks HTTP/2 in plain text (`appProtocol: kubernetes.io/h2c`), and with `secure` that
    it speaks HTTP with TLS (`https` or `kubernetes.io/wss`).
    """

    port: Port
    target_port: Port | str
    protocol: Protocol
    name: str = ""
    protocol_source: str = "default"
    http2: bool = False
    secure: bool = False

    @property
    def target(self) -> str:
        """The target port as text: one object for equal ones, because every backend of a route has one."""
        return intern(str(self.target_port))


@dataclass(frozen=True, slots=True)
class DnsName:
    """A DNS name of a service's endpoints: lower case, without a final dot.

    With `srv`, SRV records give hosts and ports. Otherwise A and AAAA records give addresses, reached at
    `port`, or, if None, at the service's target ports.
    """

    name: str
    port: Port | None = None
    srv: bool = False


@dataclass(frozen=True, slots=True)
class Service(CachedIndex):
    """A named set of workloads, and the ports for calling them.

    - `selector`: sorted label pairs; empty if endpoints come from elsewhere.
    - `cluster_ip`: None for a headless service, or outside Kubernetes; `other_addresses` are further ones,
      for example of the other family.
    - `dns_names`: names of further endpoints.
    - `escaped_slashes`: applies to the HTTP ports.
    - `publish_not_ready`: calls go also to unready workloads.
    - `created`: `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    - `without_effect`: fields of `spec`, and annotations as `metadata.annotations[NAME]`, each with its
      value, that kube-proxy obeys and sidecars do not.
    - `ingress`: addresses and host names of the load balancer in front of the service.
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
    ingress: tuple[str, ...] = ()

    def port(self, number: int) -> ServicePort | None:
        """Return the port with this number, or None."""
        service_port: ServicePort | None = self.index[0].get(number)
        return service_port

    def port_named(self, name: str) -> ServicePort | None:
        """Return the first port with this name, or None."""
        service_port: ServicePort | None = self.index[1].get(name)
        return service_port

    def ports_leading_to(self, target_port: str) -> tuple[ServicePort, ...]:
        """Return the ports with this target port, a name or a number as text, in order."""
        return tuple(self.index[2].get(target_port, ()))

    def _indexed(
        self,
    ) -> tuple[dict[int, ServicePort], dict[str, ServicePort], dict[str, list[ServicePort]]]:
        backwards = self.ports[::-1]  # of two ports with the same number or name the first counts
        by_target: dict[str, list[ServicePort]] = {}
        for port in self.ports:
            by_target.setdefault(port.target, []).append(port)
        return (
            {service_port.port: service_port for service_port in backwards},
            {service_port.name: service_port for service_port in backwards},
            by_target,
        )
