"""The bookstore as a table: which programs there are, who they are, what they offer and call. Pure."""

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
"""Every service and its one port, which is also its target port."""


class Role(enum.StrEnum):
    """Which of the programs runs in a place."""

    CLIENT = "client"
    STORE = "store"
    WAREHOUSE = "warehouse"
    DATABASE = "database"


class Mode(enum.StrEnum):
    """How traffic gets into the sidecars."""

    EXPLICIT = "explicit"
    TRANSPARENT = "transparent"


@dataclass(frozen=True, slots=True)
class Place:
    """One workload of the bookstore: a program, its identity, its sidecar.

    `backs` are the services whose selectors it fits, its primary service first; a pure client backs none,
    and its primary service is its ServiceAccount's name. `calls` are the services that it can address,
    also those that policy must keep from it. `index` counts from 1 and settles its addresses.
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
        """Return the primary service: the middle part of its proxy's name."""
        return self.backs[0].name if self.backs else ServiceName(self.identity.service_account)

    @property
    def port(self) -> Port | None:
        """Return the port that its program listens on."""
        return SERVICE_PORTS[self.backs[0]] if self.backs else None

    @property
    def uuid(self) -> ProxyUuid:
        """Return its sidecar's UUID, the same in every run."""
        return ProxyUuid(str(uuid.uuid5(_UUIDS, self.name)))

    @property
    def proxy_name(self) -> ProxyName:
        """Return the common name of its sidecar's certificate."""
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
    """Where things are in one mode of interception."""

    @property
    def mode(self) -> Mode:
        """Return that mode."""

    def workload(self, place: Place) -> IpAddress:
        """Return the address at which a place's sidecar is reached by its peers."""

    def application(self, place: Place) -> IpAddress:
        """Return the address on which a place's program listens."""

    def upstream(self, place: Place, service: ServiceKey) -> str:
        """Return the host at which a place's program calls a service (by the service's own port)."""


@dataclass(frozen=True, slots=True)
class ExplicitAddresses:
    """Loopback addresses `<base>.<index>.n`; `base` is two octets, such as `127.20`.

    n is 1 for the sidecar, 2 for the program, 3 for the agent's own server, and from 10 one for each
    upstream: services share ports, so each has an address of its own.
    """

    base: str
    mode: Mode = Mode.EXPLICIT

    def workload(self, place: Place) -> IpAddress:
        """Return the sidecar's address."""
        return IpAddress(f"{self.base}.{place.index}.1")

    def application(self, place: Place) -> IpAddress:
        """Return the program's address."""
        return IpAddress(f"{self.base}.{place.index}.2")

    def status(self, place: Place) -> IpAddress:
        """Return the address of the agent's own server."""
        return IpAddress(f"{self.base}.{place.index}.3")

    def upstream(self, place: Place, service: ServiceKey) -> str:
        """Return the address at which the sidecar offers `service`; ValueError if it is not offered."""
        return f"{self.base}.{place.index}.{10 + place.calls.index(service)}"


@dataclass(frozen=True, slots=True)
class TransparentAddresses:
    """One address per network namespace in `<network>.0/24`; .1 is the control plane's end of it."""

    network: str
    mode: Mode = Mode.TRANSPARENT

    @property
    def control_plane(self) -> IpAddress:
        """Return the address at which sidecars reach the control plane."""
        return IpAddress(f"{self.network}.1")

    def workload(self, place: Place) -> IpAddress:
        """Return the namespace's address."""
        return IpAddress(f"{self.network}.{10 + place.index}")

    def application(self, place: Place) -> IpAddress:  # noqa: ARG002 - the same in every place
        """Return the wildcard: programs need not know that they are intercepted."""
        return IpAddress("0.0.0.0")

    def upstream(self, place: Place, service: ServiceKey) -> str:  # noqa: ARG002 - as above
        """Return the service's name, as any program would call it."""
        return f"{service.name}.{service.namespace}"


def workload(place: Place, addresses: Addresses) -> Workload:
    """Describe a place as the mesh sees it, by the mode of `addresses`."""
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
