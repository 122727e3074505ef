"""The fixed part of the differential mesh: its workloads and services.

All policies are about this one topology, so that the same Envoys serve all of them.
"""

import os
from dataclasses import dataclass
from typing import Any, Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey

Document = dict[str, Any]
"""A manifest."""

NET: Final = f"127.{10 + os.getpid() % 80}.{os.getpid() // 80 % 250}"

HTTP_A, HTTP_B, GRPC, TCP, TLS = 8080, 8081, 50051, 3306, 9443
RENUMBERED = 8000

PLAIN: Final = (IpAddress(f"{NET}.201"), IpAddress(f"{NET}.202"))
"""Where callers in plain text are, which have no sidecar."""


@dataclass(frozen=True)
class Runs:
    """A workload of the topology: its namespace, ServiceAccount (and name), and labels."""

    namespace: str
    account: str
    number: int
    labels: tuple[str, ...] = ()
    calls: bool = False

    @property
    def identity(self) -> ServiceIdentity:
        """Return the workload's identity."""
        return ServiceIdentity(Namespace(self.namespace), ServiceAccountName(self.account))

    @property
    def uuid(self) -> str:
        """Return the UUID of the workload's sidecar."""
        return f"{self.account}-uuid"

    @property
    def address(self) -> IpAddress:
        """Return the address of the sidecar."""
        return IpAddress(f"{NET}.{self.number}")

    @property
    def application(self) -> IpAddress:
        """Return the address of the application."""
        return IpAddress(f"{NET}.{self.number + 100}")


@dataclass(frozen=True)
class Offers:
    """A service: the label it selects, and its ports as (port, target port, appProtocol, name).

    A headless one has no address of its own; in explicit interception it is called like any other. `keeps`
    says that requests with escaped slashes pass.
    """

    namespace: str
    name: str
    selects: str
    ports: tuple[tuple[int, int | str, str, str], ...]
    headless: bool = False
    keeps: bool = False

    @property
    def key(self) -> ServiceKey:
        """Return the service's key."""
        return ServiceKey(Namespace(self.namespace), ServiceName(self.name))


_WEB = (
    (80, HTTP_A, "http", "web"),
    (81, HTTP_B, "http", "admin"),
    (GRPC, GRPC, "grpc", "api"),
    (TCP, TCP, "tcp-server-first", "db"),
)
_NAMED = ((80, "alt", "http", "web"), (TCP, TCP, "tcp-server-first", "db"))
_RENUMBERED = ((RENUMBERED, HTTP_A, "http", "web"), (TCP, TCP, "tcp-server-first", "db"))
"""As a backend it answers for `web` of the others by its port's name alone."""

WORKLOADS: Final = (
    Runs("shop", "alice", 1, calls=True),
    Runs("bank", "bob", 2, calls=True),
    Runs("shop", "v1", 3, ("web", "v1"), calls=True),
    Runs("shop", "v2", 4, ("web", "v2")),
    Runs("bank", "vault", 5, ("vault",)),
)
SERVERS: Final = tuple(workload for workload in WORKLOADS if workload.labels)
SERVICES: Final = (
    Offers("shop", "web", "web", _WEB),
    Offers("shop", "web-v1", "v1", _WEB),
    Offers("shop", "web-v2", "v2", _WEB),
    Offers("shop", "named", "web", _NAMED),
    Offers("shop", "renumbered", "v2", _RENUMBERED, keeps=True),
    Offers("shop", "pods", "web", _WEB, headless=True),
    Offers("shop", "root", "nobody", _WEB, keeps=True),
    Offers("bank", "vault", "vault", _WEB, keeps=True),
    Offers("bank", "gate", "nobody", _WEB),
)
SECURE: Final = (
    Offers("shop", "safe", "web", ((TLS, TLS, "tls", "tls"),)),
    Offers("shop", "safe-v2", "v2", ((TLS, TLS, "tls", "tls"),)),
    Offers("bank", "safe", "vault", ((TLS, TLS, "tls", "tls"),)),
)
"""Services whose applications speak TLS of their own; only routes of the Gateway API are about them."""

EVERY: Final = (*SERVICES, *SECURE)
ALT: Final = {"v1": HTTP_A, "v2": HTTP_B, "vault": HTTP_A}
"""The number of the port named `alt` at each server."""


def local_port(service: ServiceKey, port: int) -> Port:
    """Return the local port at which a client's sidecar offers a service's port."""
    index = next(number for number, offers in enumerate(EVERY) if offers.key == service)
    return Port(20000 + index * 10 + [80, 81, GRPC, TCP, RENUMBERED, TLS].index(port))


def is_http(port: int) -> bool:
    """Return whether a service's port is HTTP in this topology."""
    return port not in (TCP, TLS)


def documents() -> list[dict[str, object]]:
    """Return the manifests of services and workloads."""
    return [*map(_service, EVERY), *map(_workload, WORKLOADS)]


def _service(offers: Offers) -> dict[str, object]:
    ports = [
        {"port": port, "targetPort": target, "appProtocol": protocol, "name": name}
        for port, target, protocol, name in offers.ports
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": offers.name,
            "namespace": offers.namespace,
            **({"annotations": {"meshwright.dev/escaped-slashes": "keep"}} if offers.keeps else {}),
        },
        "spec": {
            "selector": {offers.selects: "yes"},
            "ports": ports,
            **({"clusterIP": "None"} if offers.headless else {}),
        },
    }


def _workload(runs: Runs) -> dict[str, object]:
    spec: dict[str, object] = {
        "address": runs.address,
        "serviceAccount": runs.account,
        "uuid": runs.uuid,
    }
    if runs.labels:
        spec["applicationAddress"] = runs.application
        spec["ports"] = [{"port": ALT[runs.account], "name": "alt"}]
    if runs.calls:
        spec["upstreams"] = [
            {
                "service": f"{offers.name}.{offers.namespace}",
                "port": port,
                "address": runs.address,
                "localPort": local_port(offers.key, port),
            }
            for offers in EVERY
            for port, *_ in offers.ports
        ]
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": runs.account,
            "namespace": runs.namespace,
            "labels": dict.fromkeys(runs.labels, "yes"),
        },
        "spec": spec,
    }
