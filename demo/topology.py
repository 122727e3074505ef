"""The bookstore as a table: programs, identities, services and calls. Pure."""

import enum
import uuid
from dataclasses import dataclass
from typing import Final, Protocol

from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import (
    Explicit,
    Interception,
    Transparent,
    Upstream,
    Workload,
    WorkloadKey,
    WorkloadPort,
)

_UUIDS: Final = uuid.UUID("6d772d64-656d-4f00-8000-626f6f6b7321")
HTTP_PORT: Final = Port(14001)
MYSQL_PORT: Final = Port(3306)


def _service(namespace: str, name: str) -> ServiceKey:
    return ServiceKey(Namespace(namespace), ServiceName(name))


BOOKSTORE: Final = _service("bookstore", "bookstore")
BOOKSTORE_V1: Final = _service("bookstore", "bookstore-v1")
BOOKSTORE_V2: Final = _service("bookstore", "bookstore-v2")
BOOKWAREHOUSE: Final = _service("bookwarehouse", "bookwarehouse")
MYSQL: Final = _service("bookwarehouse", "mysql")

SERVICE_PORTS: Final = {
    BOOKSTORE: HTTP_PORT,
    BOOKSTORE_V1: HTTP_PORT,
    BOOKSTORE_V2: HTTP_PORT,
    BOOKWAREHOUSE: HTTP_PORT,
    MYSQL: MYSQL_PORT,
}
"""Port of each service; the target port is the same."""


class Role(enum.StrEnum):
    """Kind of the program in a workload: client, store, warehouse or database."""

    CLIENT = "client"
    STORE = "store"
    WAREHOUSE = "warehouse"
    DATABASE = "database"


class Mode(enum.StrEnum):
    """Mode of interception: the way in which traffic enters the sidecars."""

    EXPLICIT = "explicit"
    TRANSPARENT = "transparent"


@dataclass(frozen=True, slots=True)
class Place:
    """One workload of the bookstore: a program, its identity and its sidecar.

    `backs` are the services that select the workload, the primary service first. A pure client backs no
    service, and its primary service has the name of its ServiceAccount. `calls` are the services with
    addresses for this workload, including services denied by policy. `index` counts from 1 and determines the
    IP addresses.
    """

    name: str
    index: int
    identity: ServiceIdentity
    role: Role
    labels: tuple[tuple[str, str], ...]
    backs: tuple[ServiceKey, ...]
    calls: tuple[ServiceKey, ...]

    @property
    def service(self) -> ServiceName:
        """Return the workload's primary service, which is the middle part of the proxy's name."""
        return self.backs[0].name if self.backs else ServiceName(self.identity.service_account)

    @property
    def port(self) -> Port | None:
        """Return the port of the workload's program; None for a pure client."""
        return SERVICE_PORTS[self.backs[0]] if self.backs else None

    @property
    def uuid(self) -> ProxyUuid:
        """Return the UUID of the sidecar, the same in every run."""
        return ProxyUuid(str(uuid.uuid5(_UUIDS, self.name)))

    @property
    def proxy_name(self) -> ProxyName:
        """Return the common name of the sidecar's certificate."""
        return ProxyName(self.uuid, self.service, self.identity.namespace)


def _place(
    index: int,
    name: str,
    namespace: str,
    role: Role,
    backs: tuple[ServiceKey, ...],
    calls: tuple[ServiceKey, ...],
    *,
    account: str = "",
    labels: tuple[tuple[str, str], ...] = (),
) -> Place:
    identity = ServiceIdentity(Namespace(namespace), ServiceAccountName(account or name))
    return Place(name, index, identity, role, labels or (("app", name),), backs, calls)


_EVERYTHING: Final = (BOOKSTORE, BOOKSTORE_V2, BOOKWAREHOUSE, MYSQL)

BOOKBUYER: Final = _place(1, "bookbuyer", "bookbuyer", Role.CLIENT, (), _EVERYTHING)
BOOKTHIEF: Final = _place(2, "bookthief", "bookthief", Role.CLIENT, (), _EVERYTHING)
STORE_V1: Final = _place(
    3,
    "bookstore-v1",
    "bookstore",
    Role.STORE,
    (BOOKSTORE, BOOKSTORE_V1),
    (BOOKWAREHOUSE, MYSQL),
    # bookstore-v1 shares the ServiceAccount of the root service, as in OSM's demo; bookstore-v2 has its own.
    account="bookstore",
    labels=(("app", "bookstore"), ("version", "v1")),
)
STORE_V2: Final = _place(
    4,
    "bookstore-v2",
    "bookstore",
    Role.STORE,
    (BOOKSTORE_V2,),
    (BOOKWAREHOUSE, MYSQL),
    labels=(("app", "bookstore-v2"), ("version", "v2")),
)
WAREHOUSE: Final = _place(
    5, "bookwarehouse", "bookwarehouse", Role.WAREHOUSE, (BOOKWAREHOUSE,), (BOOKSTORE, MYSQL)
)
DATABASE: Final = _place(6, "mysql", "bookwarehouse", Role.DATABASE, (MYSQL,), ())

PLACES: Final = (BOOKBUYER, BOOKTHIEF, STORE_V1, STORE_V2, WAREHOUSE, DATABASE)


class Addresses(Protocol):
    """Addresses of all workloads in one mode of interception."""

    @property
    def mode(self) -> Mode:
        """Return the mode of interception."""

    def workload(self, place: Place) -> IpAddress:
        """Return the address at which other workloads reach the sidecar of a workload."""

    def application(self, place: Place) -> IpAddress:
        """Return the address on which the program of a workload listens."""

    def upstream(self, place: Place, service: ServiceKey) -> str:
        """Return the host at which the program of a workload calls a service, by the service's own port."""


@dataclass(frozen=True, slots=True)
class ExplicitAddresses:
    """Loopback addresses `<base>.<index>.n`; `base` is two octets, for example `127.20`.

    n is 1 for the sidecar, 2 for the program, and 3 for the agent's own server. Upstreams have one address
    each from 10 on, because services share ports.
    """

    base: str
    mode: Mode = Mode.EXPLICIT

    def workload(self, place: Place) -> IpAddress:
        """Return the loopback address of the workload's sidecar."""
        return IpAddress(f"{self.base}.{place.index}.1")

    def application(self, place: Place) -> IpAddress:
        """Return the loopback address of the workload's program."""
        return IpAddress(f"{self.base}.{place.index}.2")

    def status(self, place: Place) -> IpAddress:
        """Return the loopback address of the agent's own server."""
        return IpAddress(f"{self.base}.{place.index}.3")

    def upstream(self, place: Place, service: ServiceKey) -> str:
        """Return the address at which the sidecar offers `service`.

        Raise ValueError if the service is not in `calls`.
        """
        return f"{self.base}.{place.index}.{10 + place.calls.index(service)}"


@dataclass(frozen=True, slots=True)
class TransparentAddresses:
    """One address per network namespace in `<network>.0/24`; the control plane has .1."""

    network: str
    mode: Mode = Mode.TRANSPARENT

    @property
    def control_plane(self) -> IpAddress:
        """Return the address at which sidecars reach the control plane."""
        return IpAddress(f"{self.network}.1")

    def workload(self, place: Place) -> IpAddress:
        """Return the address of the workload's network namespace."""
        return IpAddress(f"{self.network}.{10 + place.index}")

    def application(self, place: Place) -> IpAddress:  # noqa: ARG002 - the same in every place
        """Return 0.0.0.0: programs listen on all addresses, unaware of interception."""
        return IpAddress("0.0.0.0")

    def upstream(self, place: Place, service: ServiceKey) -> str:  # noqa: ARG002 - as above
        """Return the service name, for example `bookstore.bookstore`, as any program would use it."""
        return f"{service.name}.{service.namespace}"


def workload(place: Place, addresses: Addresses) -> Workload:
    """Return a workload as an object of the mesh, with the addresses of the given mode of interception."""
    ports = () if place.port is None else (WorkloadPort(place.port, str(place.role)),)
    return Workload(
        key=WorkloadKey(place.identity.namespace, place.name),
        identity=place.identity,
        service=place.service,
        address=addresses.workload(place),
        uuid=place.uuid,
        ports=ports,
        labels=place.labels,
        interception=_interception(place, addresses),
    )


def _interception(place: Place, addresses: Addresses) -> Interception:
    if addresses.mode is Mode.TRANSPARENT:
        return Transparent()
    upstreams = tuple(
        Upstream(
            service,
            SERVICE_PORTS[service],
            IpAddress(addresses.upstream(place, service)),
            SERVICE_PORTS[service],
        )
        for service in place.calls
    )
    return Explicit(addresses.application(place) if place.backs else None, tuple(sorted(upstreams)))
