"""The mesh of the cases: callers, backends, and the Services and permissions that all cases share."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from tests.e2e.policy.policies import http, path, routes, target, tcp
from tests.e2e.policy.policies import ports as tcp_route
from tests.gateway.case_files import GATEWAY, Call, Case, Document, default_service

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
    gateway: str = ""
    has_sidecar: bool = True

    @property
    def address(self) -> str:
        """Return the address of the sidecar, or of the application without one."""
        return f"{NET}.{self.number}" if self.has_sidecar else self.application

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
        Workload("bare", 10, runs=False, labels=("gw-bare", "half"), has_sidecar=False),
        Workload("front", 9, serves=False, gateway=GATEWAY["name"]),
    )
}
"""Callers may call all backends, but `sealed` not at all, and of `guarded` only the client `/open`, and
`/badge` with a header.

`sealed` and `gone` have no running sidecar, so connections to them are refused. `bare` is not of the mesh,
and `front` serves the gateway of the cases with listeners.
"""

_ALL_PORTS: Final = ["web", "other", "grpc", "tcp", "tls"]
_CALLERS: Final = ("shop/client", "office/desk", "shop/front")
OUTSIDE: Final = "outside"
"""The caller without a sidecar, who calls the gateway."""


@dataclass(frozen=True)
class Topology:
    """The shared objects, with a local port for each Service port that a case calls.

    `listeners` are those of the gateway.
    """

    places: tuple[tuple[str, int], ...]
    listeners: tuple[Document, ...] = ()

    @classmethod
    def of(cls, calls: Iterable[Call], listeners: Iterable[Document] = ()) -> Self:
        """Return the topology for these calls, with a gateway if there are listeners."""
        places = {(call.service, call.port) for call in calls if call.caller != OUTSIDE}
        return cls(tuple(sorted(places)), tuple(listeners))

    @classmethod
    def of_cases(cls, cases: Iterable[Case]) -> Self:
        """Return the topology for the calls and listeners of cases."""
        every = tuple(cases)
        calls = (call for case in every for stage in case.stages for call in stage.calls)
        return cls.of(calls, (at for case in every for at in case.listeners))

    def place(self, call: Call) -> tuple[str, int]:
        """Return the address and port at which the caller's sidecar offers the called Service.

        For a caller from outside these are of the gateway.
        """
        if call.caller == OUTSIDE:
            return WORKLOADS["front"].address, call.port
        position = self.places.index((call.service, call.port))
        return WORKLOADS[call.caller].address, _FIRST_LOCAL_PORT + position

    def documents(self) -> list[Document]:
        """Return the manifests of the shared Services, permissions and workloads."""
        return [*_services(), *_permissions(), *self._gateway(), *map(self._workload, WORKLOADS.values())]

    def _gateway(self) -> Iterator[Document]:
        """Yield the class, and the gateway if any case has a listener, as a gateway needs one."""
        yield {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": "meshwright"},
            "spec": {"controllerName": CONTROLLER_NAME},
        }
        if self.listeners:
            yield {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "Gateway",
                "metadata": dict(GATEWAY),
                "spec": {"gatewayClassName": "meshwright", "listeners": list(self.listeners)},
            }

    def _workload(self, workload: Workload) -> Document:
        spec: Document = {
            "address": workload.address,
            "serviceAccount": workload.name,
        }
        if workload.has_sidecar:
            spec["uuid"] = workload.name
        if workload.gateway:
            spec["gateway"] = workload.gateway
        if workload.serves and workload.has_sidecar:
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
