"""What runs: workloads, and the endpoints at which services are reached."""

import enum
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.identity import ProxyName, ServiceIdentity, SidecarKey
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceName
from meshwright.mesh.service import Protocol, Scope, ServiceKey

DRIVER_ANNOTATION: Final = "meshwright.dev/sidecar-driver"
"""On a Workload, Pod or Namespace: the name of the sidecar driver, where it is not the mesh's own."""


@dataclass(frozen=True, slots=True, order=True)
class WorkloadPort:
    """A port that a workload's application listens on; `protocol` is None where only services say."""

    number: Port
    name: str = ""
    protocol: Protocol | None = None


@dataclass(frozen=True, slots=True, order=True)
class Upstream:
    """Explicit interception, outbound: the sidecar offers `service`:`service_port` at a local address."""

    service: ServiceKey
    service_port: Port
    local_address: IpAddress
    local_port: Port


class Capture(enum.StrEnum):
    """How inbound connections reach a proxy that intercepts transparently.

    REDIRECT rewrites their destination; TPROXY leaves packets as they are, and needs a proxy that listens
    with IP_TRANSPARENT.
    """

    REDIRECT = "redirect"
    TPROXY = "tproxy"


class Health(enum.StrEnum):
    """Whether a workload, or an address of a slice, takes calls, as far as those who watch over it know.

    DRAINING is about to end and still answers: it is called where nobody is ready. UNREADY is not called.
    """

    READY = "ready"
    DRAINING = "draining"
    UNREADY = "unready"


@dataclass(frozen=True, slots=True)
class Transparent:
    """Interception by iptables in the workload's network namespace, by original destination.

    `capture` is what the rules there do with inbound connections; with `ipv6` they are for IPv6 as well.
    """

    capture: Capture = Capture.REDIRECT
    ipv6: bool = False


@dataclass(frozen=True, slots=True)
class Explicit:
    """Interception without privileges.

    The sidecar binds the workload's own address and ports; the application listens on
    `application_address` (same ports) and calls the `upstreams`. A pure client may have no
    application address.
    """

    application_address: IpAddress | None
    upstreams: tuple[Upstream, ...] = ()


Interception = Transparent | Explicit


@dataclass(frozen=True, slots=True, order=True)
class WorkloadKey:
    """A workload's namespace and name (a Workload's or a Pod's)."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Workload:
    """One running instance with (or without) a sidecar, whatever it runs on.

    `uuid` names its sidecar; None means it has none. `service` is its primary service, the middle part of
    the proxy's common name. `labels` is a sorted tuple of pairs. `weight` is relative to its peers.
    `driver` is the sidecar driver that it names itself, empty where it names none.
    `scope` narrows the services in its configuration; None leaves that to its namespace. `node` is the
    machine that it runs on; empty where nothing says.
    `other_addresses` are further ones of its own, as of the other family. With `shares_address` the address
    is its machine's, and so others': it tells nobody who answers there. Where `names_service` is not so,
    `service` is no more than the name of its ServiceAccount, as a Pod's is. `uid` is a Pod's own, which one
    of the same name that comes after it does not have; empty for what is no Pod. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
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
        """Return all its addresses; see `called_at` for those at which it is called."""
        return (self.address, *self.other_addresses)

    @property
    def called_at(self) -> tuple[IpAddress, ...]:
        """Return the addresses at which its sidecar takes calls, the first first; all where it has none.

        In explicit interception the sidecar binds one. Calls by IPv6 go past rules that are for IPv4 alone;
        where there is no other address they are tried nevertheless, and fail.
        """
        match self.interception:
            case Explicit():
                return (self.address,)
            case Transparent(ipv6=False) if self.uuid is not None:
                return tuple(each for each in self.addresses if ":" not in each) or (self.address,)
            case Transparent():
                return self.addresses

    @property
    def sidecar(self) -> SidecarKey | None:
        """Return which sidecar it claims, or None without one."""
        return None if self.uuid is None else SidecarKey(self.key.namespace, self.uuid)

    @property
    def proxy_name(self) -> ProxyName | None:
        """Return the common name that its sidecar's certificate must carry, or None without a sidecar."""
        if self.uuid is None:
            return None
        return ProxyName(self.uuid, self.service, self.key.namespace)

    def has_labels(self, selector: tuple[tuple[str, str], ...]) -> bool:
        """Say whether it carries every label of a non-empty selector."""
        return bool(selector) and set(selector) <= set(self.labels)


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """What a controller (`kind`: a Deployment, a Job) makes pods of, or a Pod that has no address yet.

    It says who is going to stand behind Services and have an identity. It has no address: nothing is called
    there, and no sidecar is configured for it.
    """

    kind: Kind
    key: WorkloadKey
    identity: ServiceIdentity
    labels: tuple[tuple[str, str], ...] = ()
    ports: tuple[WorkloadPort, ...] = ()

    def has_labels(self, selector: tuple[tuple[str, str], ...]) -> bool:
        """Say whether its pods carry every label of a non-empty selector."""
        return bool(selector) and set(selector) <= set(self.labels)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address at which one port of a service is reached.

    `identity` is who answers there, None where nobody in the mesh is known at the address. `proxies` are the
    sidecars that may be listening: one, unless several workloads claim the address. `other_addresses` are
    further ones of who answers, as of the other family: it is one endpoint, called at whichever is reached.
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
        """Return all its addresses, the first first."""
        return (self.address, *self.other_addresses)
