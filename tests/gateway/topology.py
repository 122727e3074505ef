"""The mesh of the cases: callers, backends, and the Services and permissions that all cases share."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from tests.e2e.policy.policies import http, path, routes, target, tcp
from tests.e2e.policy.policies import ports as tcp_route
from tests.gateway.case_files import Call, Document, default_service

NET: Final = f"127.{60 + os.getpid() % 30}.{os.getpid() // 30 % 250}"
_FIRST_LOCAL_PORT: Final = 20000


@dataclass(frozen=True)
class Workload:
    """A workload, whose addresses depend on its number."""

    name: str
    number: int
    namespace: str = "shop"
    calls: bool = False
    serves: bool = True
    runs: bool = True
    labels: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Return the address of the sidecar."""
        return f"{NET}.{self.number}"

    @property
    def application(self) -> str:
        """Return the address of the application."""
        return f"{NET}.{self.number + 100}"


WORKLOADS: Final[Mapping[str, Workload]] = {
    item.name: item
    for item in (
        Workload("client", 1, calls=True, serves=False),
        Workload("desk", 2, "office", calls=True),
        Workload("v1", 3, labels=("half",)),
        Workload("v2", 4, labels=("both",)),
        Workload("v3", 5, labels=("both",)),
        Workload("guarded", 6),
        Workload("sealed", 7, runs=False),
        Workload("gone", 8, runs=False, labels=("half",)),
    )
}
"""Callers may call all backends, but `sealed` not at all, and of `guarded` only the client `/open`, and
`/badge` with a header.

`sealed` and `gone` have no sidecar, so connections to them are refused.
"""

_ALL_PORTS: Final = ["web", "other", "grpc", "tcp", "tls"]
_CALLERS: Final = ("shop/client", "office/desk")


@dataclass(frozen=True)
class Topology:
    """The shared objects, with a local port for each Service port that a case calls."""

    places: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Self:
        """Return the topology for these calls."""
        return cls(tuple(sorted({(call.service, call.port) for call in calls})))

    def place(self, call: Call) -> tuple[str, int]:
        """Return the address and port at which the caller's sidecar offers the called Service."""
        position = self.places.index((call.service, call.port))
        return WORKLOADS[call.caller].address, _FIRST_LOCAL_PORT + position

    def documents(self) -> list[Document]:
        """Return the manifests of the shared Services, permissions and workloads."""
        return [*_services(), *_permissions(), *map(self._workload, WORKLOADS.values())]

    def _workload(self, workload: Workload) -> Document:
        spec: Document = {
            "address": workload.address,
            "serviceAccount": workload.name,
            "uuid": workload.name,
        }
        if workload.serves:
            spec["applicationAddress"] = workload.application
        if workload.calls:
            spec["upstreams"] = [
                {
                    "service": service,
                    "port": port,
                    "address": workload.address,
                    "localPort": _FIRST_LOCAL_PORT + position,
                }
                for position, (service, port) in enumerate(self.places)
            ]
        return {
            "apiVersion": "meshwright.dev/v1alpha1",
            "kind": "Workload",
            "metadata": {
                "name": workload.name,
                "namespace": workload.namespace,
                "labels": dict.fromkeys((workload.name, *workload.labels), "yes"),
            },
            "spec": spec,
        }


def _services() -> Iterator[Document]:
    for workload in WORKLOADS.values():
        if workload.serves:
            yield default_service(workload.name, _ALL_PORTS, workload.name, workload.namespace)
    yield default_service("empty", _ALL_PORTS, "nobody")
    yield default_service("half", _ALL_PORTS, "half")
    yield default_service("both", _ALL_PORTS, "both")


def _permissions() -> Iterator[Document]:
    badge = {**path("/badge", "*"), "headers": [{"x-badge": "yes"}]}
    yield routes("open", path("/open", "*"), badge)
    yield target("guarded", "shop/guarded", ("shop/client",), http("open"))
    for namespace in ("shop", "office"):
        yield tcp_route("connections", namespace=namespace)
    for workload in WORKLOADS.values():
        if workload.serves and workload.name not in ("guarded", "sealed"):
            to, namespace = f"{workload.namespace}/{workload.name}", workload.namespace
            yield target(workload.name, to, _CALLERS, tcp("connections"), namespace=namespace)
