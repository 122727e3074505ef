"""Workloads, and the endpoints at which services are reached."""

import enum
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.identity import ProxyName, ServiceIdentity, SidecarKey
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceName
from meshwright.mesh.service import Protocol, Scope, ServiceKey

DRIVER_ANNOTATION: Final = "meshwright.dev/sidecar-driver"
"""Annotation of a Workload, Pod or Namespace to select another sidecar driver than the mesh's."""


@dataclass(frozen=True, slots=True, order=True)
class WorkloadPort:
    """A port on which a workload's application listens; `protocol` is None if only services declare it."""

    number: Port
    name: str = ""
    protocol: Protocol | None = None


@dataclass(frozen=True, slots=True, order=True)
class Upstream:
    """A service that the workload calls at a local address of the sidecar (explicit interception).

    The sidecar offers `service`:`service_port` there.
    """

    service: ServiceKey
    service_port: Port
    local_address: IpAddress
    local_port: Port


class Capture(enum.StrEnum):
    """Redirection of inbound connections to a proxy that intercepts transparently.

    REDIRECT rewrites the destination; TPROXY does not change packets, and needs a proxy that listens with
    IP_TRANSPARENT.
    """

    REDIRECT = "redirect"
    TPROXY = "tproxy"


class Health(enum.StrEnum):
    """Health of a workload, or of an address in a slice, as far as it is known.

    DRAINING will end soon and still answers: such an endpoint is called only if no other is ready. UNREADY is
    never called.
    """

    READY = "ready"
    DRAINING = "draining"
    UNREADY = "unready"


@dataclass(frozen=True, slots=True)
class Transparent:
    """Interception by iptables in the workload's network namespace, by the original destination.

    `capture` is how the rules redirect inbound connections; with `ipv6` there are rules for IPv6 too.
    """

    capture: Capture = Capture.REDIRECT
    ipv6: bool = False


@dataclass(frozen=True, slots=True)
class Explicit:
    """Interception without privileges.

    The sidecar binds the workload's own address and ports. The application listens on `application_address`
    (same ports) and calls the `upstreams`. A client without ports may have no application address.
    """

    application_address: IpAddress | None
    upstreams: tuple[Upstream, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """No interception: the proxy serves the gateway of this name in the workload's namespace.

    The proxy binds the workload's addresses, at the ports of the gateway's listeners. There is no application
    behind it.
    """

    gateway: str


Interception = Transparent | Explicit | Edge


@dataclass(frozen=True, slots=True, order=True)
class WorkloadKey:
    """Namespace and name of a workload: a Workload object or a Pod."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Workload:
    """One running instance, with or without a sidecar, on whatever platform.

    - `uuid`: UUID of the sidecar, None without one.
    - `service`: primary service, the middle part of the proxy's common name. Without `names_service` this is
      only the name of the ServiceAccount, as for a Pod.
    - `labels`: sorted pairs. `weight`: relative to its peers.
    - `driver`: sidecar driver of its own choice, or empty.
    - `scope`: narrows the services in the configuration; None leaves the decision to the namespace.
    - `node`: machine of the workload, empty if unknown.
    - `other_addresses`: further addresses, for example of the other family.
    - `shares_address`: True for the address of the machine, which does not identify the workload.
    - `uid`: UID of a Pod, different for a later Pod of the same name; empty for others.
    - `created`: `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: WorkloadKey
    identity: ServiceIdentity
    service: ServiceName
    address: IpAddress
    uuid: ProxyUuid | None = None
    ports: tuple[WorkloadPort, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    interception: Interception = Transparent()
    locality: str = ""
    weight: int = 1
    driver: str = ""
    scope: Scope = None
    node: str = ""
    health: Health = Health.READY
    other_addresses: tuple[IpAddress, ...] = ()
    shares_address: bool = False
    names_service: bool = True
    uid: str = ""
    created: str = ""

    @property
    def addresses(self) -> tuple[IpAddress, ...]:
        """Return all addresses of the workload; see `called_at` for those at which the workload is called."""
        return (self.address, *self.other_addresses)

    @property
    def called_at(self) -> tuple[IpAddress, ...]:
        """Return the addresses at which the sidecar takes calls; all addresses without a sidecar.

        In explicit interception the sidecar binds only the first one. Iptables rules for IPv4 do not catch
        calls by IPv6. Without another address, IPv6 is still returned, and calls fail.
        """
        match self.interception:
            case Explicit():
                return (self.address,)
            case Transparent(ipv6=False) if self.uuid is not None:
                return tuple(address for address in self.addresses if ":" not in address) or (self.address,)
            case Transparent() | Edge():
                return self.addresses

    @property
    def sidecar(self) -> SidecarKey | None:
        """Return the key of the sidecar that the workload claims, or None without one."""
        return None if self.uuid is None else SidecarKey(self.key.namespace, self.uuid)

    @property
    def proxy_name(self) -> ProxyName | None:
        """Return the common name that the sidecar's certificate must have, or None without a sidecar."""
        if self.uuid is None:
            return None
        return ProxyName(self.uuid, self.service, self.key.namespace)

    def has_labels(self, selector: tuple[tuple[str, str], ...]) -> bool:
        """Return whether the workload has every label of a non-empty selector."""
        return bool(selector) and set(selector) <= set(self.labels)


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Future Pods of a controller (`kind`: a Deployment, a Job), or a Pod still without an address.

    A template shows the future workloads and identities behind Services. Without an address it is never
    called, and a sidecar is never configured for it.
    """

    kind: Kind
    key: WorkloadKey
    identity: ServiceIdentity
    labels: tuple[tuple[str, str], ...] = ()
    ports: tuple[WorkloadPort, ...] = ()

    def has_labels(self, selector: tuple[tuple[str, str], ...]) -> bool:
        """Return whether the pods have every label of a non-empty selector."""
        return bool(selector) and set(selector) <= set(self.labels)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address at which one port of a service is reached.

    - `identity`: identity of the workload at the address; None outside the mesh.
    - `proxies`: sidecars that may listen there: one, unless several workloads claim the address.
    - `other_addresses`: further addresses of the same endpoint; a caller uses any reachable one.
    """

    service: ServiceKey
    service_port: Port
    address: IpAddress
    port: Port
    identity: ServiceIdentity | None = None
    locality: str = ""
    weight: int = 1
    proxies: tuple[ProxyName, ...] = ()
    health: Health = Health.READY
    other_addresses: tuple[IpAddress, ...] = ()

    @property
    def addresses(self) -> tuple[IpAddress, ...]:
        """Return all addresses of the endpoint, the primary one first."""
        return (self.address, *self.other_addresses)
