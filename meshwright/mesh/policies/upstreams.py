"""Calls to the endpoints of a service: our own UpstreamPolicy as a value."""

import enum
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from meshwright.mesh.policies.resilience import OutlierDetection
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class OutlierDetectionOverride:
    """Settings of OutlierDetection for one service; None keeps the mesh's setting.

    Zero `failures` turn the ejection off.
    """

    failures: int | None = None
    server_errors: int | None = None
    ejected_for: timedelta | None = None
    most_percent: int | None = None

    def over(self, mesh: OutlierDetection | None) -> OutlierDetection | None:
        """Return the settings of the service.

        Without settings of the mesh, missing ones have their defaults.
        """
        # An override can also turn the ejection on, with the defaults for its other settings.
        base = mesh or OutlierDetection()
        detection = replace(
            base,
            failures=base.failures if self.failures is None else self.failures,
            server_errors=base.server_errors if self.server_errors is None else self.server_errors or None,
            ejected_for=base.ejected_for if self.ejected_for is None else self.ejected_for,
            most_percent=base.most_percent if self.most_percent is None else self.most_percent,
        )
        return detection if detection.failures else None


class BalancingAlgorithm(enum.StrEnum):
    """Algorithm to select one of the available endpoints; all respect weights.

    - ROUND_ROBIN: one after the other.
    - LEAST_REQUEST: of two random ones, the one with fewer active requests.
    - RANDOM: any.
    - CONSISTENT_HASH: the same one for the same key; few keys move when endpoints change.
    """

    ROUND_ROBIN = "RoundRobin"
    LEAST_REQUEST = "LeastRequest"
    RANDOM = "Random"
    CONSISTENT_HASH = "ConsistentHash"


class KeyKind(enum.StrEnum):
    """Part of a request that contains the key for consistent hashing."""

    HEADER = "header"
    COOKIE = "cookie"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class HashKey:
    """Key in a request: a header, a cookie or a query parameter, by name.

    A missing cookie is set at the client for `ttl`, zero for a session cookie, with `path`; with None the
    cookie is never set. Without a key any endpoint is selected.
    """

    kind: KeyKind
    name: str
    ttl: timedelta | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class LoadBalancing:
    """Selection of an endpoint for a call; `key` is set for consistent hashing."""

    balancing: BalancingAlgorithm = BalancingAlgorithm.ROUND_ROBIN
    key: HashKey | None = None


HEALTH_RPC: Final = "/grpc.health.v1.Health/Check"
"""Path of the health check of gRPC servers (gRPC Health Checking Protocol)."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Health check of endpoints: a GET of `path`, the gRPC health protocol, or a connection without either.

    - `grpc`: service name in the gRPC check, empty for the whole server.
    - `well`: ranges (first and last) of the status of a good answer, which must arrive within `timeout`.
    - `unhealthy`: number of bad checks in a row until a good endpoint gets no calls.
    - `healthy`: number of good checks until the endpoint gets calls again.
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
        """Method and path of the check's request, which access policy must admit.

        None for a check that only connects.
        """
        if self.grpc is not None:
            return ("POST", HEALTH_RPC)
        return None if self.path is None else ("GET", self.path)


class LocalityScope(enum.StrEnum):
    """Scope of preferred endpoints: the caller's region, or its zone."""

    REGION = "Region"
    ZONE = "Zone"


@dataclass(frozen=True, slots=True)
class LocalityPreference:
    """Preference of near endpoints; with `fails_over` others are called if too few of them are healthy."""

    within: LocalityScope
    fails_over: bool = True


def prefix(locality: str, within: LocalityScope) -> str:
    """Return the common part of near localities: `region`, or `region/zone`; empty if unknown.

    For example, `eu/eu-1` for `eu/eu-1/rack-7` within a zone.
    """
    region, _, rest = locality.partition("/")
    zone = rest.partition("/")[0]
    match within:
        case LocalityScope.REGION:
            return region
        case LocalityScope.ZONE:
            return f"{region}/{zone}" if zone else ""


@dataclass(frozen=True, slots=True)
class UpstreamPolicy:
    """policy.meshwright.dev UpstreamPolicy: calls to the endpoints of `service`.

    `ejecting` is None if missing in the object; without `checking` health checks are off; without `nearest`
    the locality does not matter. `created` is `metadata.creationTimestamp` as written, or empty; the age
    decides precedence.
    """

    key: PolicyKey
    service: ServiceKey
    ejecting: OutlierDetectionOverride | None = None
    load: LoadBalancing = field(default_factory=LoadBalancing)
    checking: HealthCheck | None = None
    created: str = ""
    nearest: LocalityPreference | None = None
