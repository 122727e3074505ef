"""Route table of a called service port: entries in order, of which the first that fits a request decides.

Every kind of object that routes requests is translated into these entries by `catalog.policy.route_table`, so
drivers compile one list and do not know the kinds. The objects behind an entry are its `provenance`.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from meshwright.mesh.kinds import ROUTE_POLICY, TRAFFIC_SPLIT
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.routing import Abort, Delay, HeaderChanges, RouteActions
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.policies.upstreams import HashKey
from meshwright.mesh.service import Upstream
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True, order=True)
class WeightedBackend:
    """A share of the calls: an upstream's target port (number or name) and a relative weight.

    With `as_called` the called endpoint answers, and no other is chosen (headless services).
    """

    upstream: Upstream
    target_port: str
    weight: int
    as_called: bool = False


@dataclass(frozen=True, slots=True)
class RequestMirror:
    """Copies of a percentage of requests for a backend, whose answers are dropped."""

    backend: WeightedBackend
    percent: float


@dataclass(frozen=True, slots=True)
class Forward:
    """Requests go to one of `shares`, by weight; there is at least one, and one has a weight above 0.

    `keys` are the parts of a request that select the endpoint by consistent hash. With `fails_over` near
    endpoints are preferred, and a failed request is repeated at endpoints farther away. `timeout` is the
    limit until the end of the answer, including all attempts; None turns the limit off.
    """

    shares: tuple[WeightedBackend, ...]
    keys: tuple[HashKey, ...] = ()
    fails_over: bool = False
    timeout: timedelta | None = None
    mirrors: tuple[RequestMirror, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The caller's proxy answers requests itself, with this HTTP status."""

    status: int


RouteAction = Forward | Answer


NO_BACKEND: Final = Answer(HTTPStatus.SERVICE_UNAVAILABLE)
"""The answer to requests for which no backend may be called."""


@dataclass(frozen=True, slots=True)
class RequestTreatment:
    """Treatment of requests and their answers by the caller's proxy, whatever the action."""

    request_headers: HeaderChanges = field(default_factory=HeaderChanges)
    response_headers: HeaderChanges = field(default_factory=HeaderChanges)
    delay: Delay | None = None
    abort: Abort | None = None

    @property
    def faulty(self) -> bool:
        """True if faults are injected."""
        return self.delay is not None or self.abort is not None


@hashed_once
@dataclass(frozen=True, slots=True)
class AppliedSplit(CachedHash):
    """A TrafficSplit in force, with the shares that the caller may call; empty if there are none."""

    by: PolicyKey
    shares: tuple[WeightedBackend, ...]

    @property
    def object_key(self) -> ObjectKey:
        """The key of the TrafficSplit."""
        return ObjectKey.from_name(TRAFFIC_SPLIT, self.by)


@hashed_once
@dataclass(frozen=True, slots=True)
class AppliedRule(CachedHash):
    """A rule of a RoutePolicy in force, for requests of any of `matches` (None: all).

    `mirror` gets copies, if the workload may call it.
    """

    by: PolicyKey
    matches: tuple[HTTPMatch, ...] | None
    actions: RouteActions
    mirror: WeightedBackend | None = None

    @property
    def object_key(self) -> ObjectKey:
        """The key of the RoutePolicy."""
        return ObjectKey.from_name(ROUTE_POLICY, self.by)


RoutingPart = AppliedSplit | AppliedRule


@dataclass(frozen=True, slots=True)
class RouteSource:
    """Part of an object that made a route entry, for the requests of `match` (None: for all requests).

    The match is one of an HTTPRouteGroup, and is named in statistics.
    """

    part: RoutingPart
    match: HTTPMatch | None = None


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """Entry for requests that fit all of `matches`: what happens to them, and the objects that decide it.

    A request of a split's match and of a RoutePolicy's match must fit both, so there may be several matches;
    without any the entry is for all requests. `provenance` has the object that chose the action first, and is
    empty if the service itself is called without any object.
    """

    matches: tuple[RequestMatch, ...]
    action: RouteAction
    provenance: tuple[RouteSource, ...] = ()
    treatment: RequestTreatment | None = None

    @property
    def shares(self) -> tuple[WeightedBackend, ...]:
        """The shares to which requests are forwarded; empty without forwarding."""
        return self.action.shares if isinstance(self.action, Forward) else ()

    @property
    def faulty(self) -> bool:
        """True if faults are injected into requests."""
        return self.treatment is not None and self.treatment.faulty

    @property
    def named_matches(self) -> tuple[HTTPMatch, ...]:
        """The matches of objects that requests must fit, in the order of `matches`."""
        return tuple(dict.fromkeys(source.match for source in self.provenance if source.match is not None))

    @property
    def chosen_by(self) -> str | None:
        """The object that chose the action, such as `split:shop/cart`; None for the called service itself."""
        parts = (source.part for source in self.provenance)
        return next((f"split:{part.by}" for part in parts if isinstance(part, AppliedSplit)), None)
