"""Workloads and services in explicit interception on loopback addresses."""

import os
from dataclasses import dataclass

from tests.e2e.policy.applications import ADMIN, DATABASE, ECHO, GREETER, GRPC, GRPC_IN_TLS, HTTP
from tests.e2e.policy.policies import Document

NET = f"127.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"

PORTS = (
    {"port": 80, "targetPort": HTTP, "appProtocol": "http", "name": "web"},
    {"port": 81, "targetPort": ADMIN, "name": "http-admin"},
    {"port": GRPC, "name": "grpc-api"},
    {"port": DATABASE, "name": "db"},  # a server that speaks first, by its well-known number alone
    {"port": GREETER, "name": "greeter", "appProtocol": "tcp-server-first"},
    {"port": ECHO, "name": "tcp-echo"},
    {"port": GRPC_IN_TLS, "name": "tcp-grpc"},
)


@dataclass(frozen=True)
class Workload:
    """A workload, whose address depends on its number; it is a server if it has labels."""

    namespace: str
    name: str
    number: int
    account: str
    labels: tuple[str, ...] = ()
    calls: bool = False

    @property
    def address(self) -> str:
        """Return the address of the sidecar."""
        return f"{NET}.{self.number}"

    @property
    def application(self) -> str:
        """Return the address of the application."""
        return f"{NET}.{self.number + 100}"


WORKLOADS = {
    item.name: item
    for item in (
        Workload("shop", "client", 1, "client", calls=True),
        Workload("office", "clerk", 2, "clerk", calls=True),
        Workload("shop", "v1", 3, "v1", ("v1", "web", "both"), calls=True),
        Workload("shop", "v2", 4, "v2", ("v2", "both"), calls=True),
        Workload("shop", "v1-again", 5, "v1", ("v1-again",)),
    )
}
SERVICES = ("v1", "v2", "v1-again", "web", "both", "root")
"""`web` has the workload v1 as well, `both` has two, `root` none."""


def local_port(service: str, port: int) -> int:
    """Return the local port at which a caller's sidecar offers a service's port."""
    return 20000 + SERVICES.index(service) * 10 + [item["port"] for item in PORTS].index(port)


def documents() -> list[Document]:
    """Return the manifests of services and workloads."""
    return [*map(_service, SERVICES), *map(_workload, WORKLOADS.values())]


def _service(name: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {name: "yes"}, "ports": [dict(port) for port in PORTS]},
    }


def _workload(workload: Workload) -> Document:
    spec: Document = {
        "address": workload.address,
        "serviceAccount": workload.account,
        "uuid": workload.name,
    }
    if workload.labels:
        spec["applicationAddress"] = workload.application
    if workload.calls:
        spec["upstreams"] = [
            {
                "service": f"{service}.shop",
                "port": port["port"],
                "address": workload.address,
                "localPort": local_port(service, int(str(port["port"]))),
            }
            for service in SERVICES
            for port in PORTS
        ]
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": workload.name,
            "namespace": workload.namespace,
            "labels": dict.fromkeys(workload.labels, "yes"),
        },
        "spec": spec,
    }
