"""How callers reach the endpoints of a service: our own UpstreamPolicy as a value."""

import enum
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from meshwright.mesh.policies.resilience import OutlierDetection
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class OutlierDetectionOverride:
    """What of OutlierDetection is said for one service, in place of what holds for the mesh; None: nothing.

    Without failures nobody is left alone.
    """

    failures: int | None = None
    server_errors: int | None = None
    ejected_for: timedelta | None = None
    most_percent: int | None = None

    def over(self, mesh: OutlierDetection | None) -> OutlierDetection | None:
        """Return what holds for the service; where the mesh has none, what is not said is by default."""
        base = mesh or OutlierDetection()
        found = replace(
            base,
            failures=base.failures if self.failures is None else self.failures,
            server_errors=base.server_errors if self.server_errors is None else self.server_errors or None,
            ejected_for=base.ejected_for if self.ejected_for is None else self.ejected_for,
            most_percent=base.most_percent if self.most_percent is None else self.most_percent,
        )
        return found if found.failures else None


class BalancingAlgorithm(enum.StrEnum):
    """Which endpoint is chosen of those that may answer; each by its weight.

    ROUND_ROBIN: one after the other. LEAST_REQUEST: of two by chance the one with fewer requests under way.
    RANDOM: any. CONSISTENT_HASH: for the same key the same one, and few others when endpoints come and go.
    """

    ROUND_ROBIN = "RoundRobin"
    LEAST_REQUEST = "LeastRequest"
    RANDOM = "Random"
    CONSISTENT_HASH = "ConsistentHash"


class KeyKind(enum.StrEnum):
    """In which part of a request the key is."""

    HEADER = "header"
    COOKIE = "cookie"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class HashKey:
    """What of a request is the key: a header, a cookie or a parameter of the query, by name.

    A cookie that is not there is given to the client for `ttl`, zero for as long as it runs, with `path`;
    None: it is not. Without a key any endpoint is chosen.
    """

    kind: KeyKind
    name: str
    ttl: timedelta | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class LoadBalancing:
    """Which endpoint is chosen; `key` is there where it is by consistent hash."""

    balancing: BalancingAlgorithm = BalancingAlgorithm.ROUND_ROBIN
    key: HashKey | None = None


HEALTH_RPC: Final = "/grpc.health.v1.Health/Check"
"""The path by which a server of gRPC is asked (gRPC Health Checking Protocol)."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How endpoints are asked whether they are well: by a GET of `path`, or by gRPC's protocol of health.

    `grpc` is the service that is asked about, empty for the server. Without either it is by a connection
    alone. One that is well is left alone after `unhealthy` answers in a row that are none or whose status is
    in none of the ranges `well` (first and last), and called again after `healthy` others. An answer counts
    that is there within `timeout`.
    """

    path: str | None
    interval: timedelta = timedelta(seconds=10)
    timeout: timedelta = timedelta(seconds=1)
    healthy: int = 1
    unhealthy: int = 3
    well: tuple[tuple[int, int], ...] = ((200, 399),)
    grpc: str | None = None

    @property
    def request(self) -> tuple[str, str] | None:
        """The method and path of the request that it is, which policy judges; None for a connection."""
        if self.grpc is not None:
            return ("POST", HEALTH_RPC)
        return None if self.path is None else ("GET", self.path)


class LocalityScope(enum.StrEnum):
    """How near an endpoint is that is preferred: in the caller's region, or in its zone."""

    REGION = "Region"
    ZONE = "Zone"


@dataclass(frozen=True, slots=True)
class LocalityPreference:
    """Endpoints that are near are called; others where `fails_over`, when too few of those are well."""

    within: LocalityScope
    fails_over: bool = True


def prefix(locality: str, within: LocalityScope) -> str:
    """Return which localities are as near: `region`, or `region/zone`; empty where that is not known."""
    region, _, rest = locality.partition("/")
    zone = rest.partition("/")[0]
    match within:
        case LocalityScope.REGION:
            return region
        case LocalityScope.ZONE:
            return f"{region}/{zone}" if zone else ""


@dataclass(frozen=True, slots=True)
class UpstreamPolicy:
    """policy.meshwright.dev UpstreamPolicy: how callers reach the endpoints of `service`.

    `ejecting` is None where it says nothing of outliers; without `checking` no endpoint is asked whether it
    is well. `nearest` is None where it makes no difference where an endpoint is. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    service: ServiceKey
    ejecting: OutlierDetectionOverride | None = None
    load: LoadBalancing = field(default_factory=LoadBalancing)
    checking: HealthCheck | None = None
    created: str = ""
    nearest: LocalityPreference | None = None
