"""Route table of a called service port: entries in order, of which the first that fits a request decides.

Every kind of object that routes requests is translated into these entries by `catalog.policy.route_table`, so
drivers compile one list and do not know the kinds. The objects behind an entry are its `provenance`. Actions
are in `catalog.policy.values.route_actions`.
"""

from dataclasses import dataclass, field

from catalog.policy.values.route_actions import Forward, RouteAction, Share, WeightedBackend
from meshwright.mesh.gateway.filters import Cors
from meshwright.mesh.gateway.routes import MatchPlace
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import ROUTE_POLICY, TRAFFIC_SPLIT, Kind
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.routing import Abort, Delay, HeaderChanges, RouteActions
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True)
class RequestTreatment:
    """Treatment of requests and their answers by the caller's proxy, whatever the action.

    `cors` answers preflight requests of browsers, and adds headers to the answers of others.
    """

    request_headers: HeaderChanges = field(default_factory=HeaderChanges)
    response_headers: HeaderChanges = field(default_factory=HeaderChanges)
    delay: Delay | None = None
    abort: Abort | None = None
    cors: Cors | None = None

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


@hashed_once
@dataclass(frozen=True, slots=True)
class AppliedRoute(CachedHash):
    """A rule of a Gateway API route in force, with the number of one match; both count from 0.

    Of a route for connections the rule has one match.
    """

    kind: Kind
    by: PolicyKey
    number: int
    rule: Rule
    match: int = 0

    @property
    def object_key(self) -> ObjectKey:
        """The key of the route."""
        return ObjectKey.from_name(self.kind, self.by)

    @property
    def place(self) -> MatchPlace:
        """The place of the match in the route."""
        return MatchPlace(self.number, self.match)

    @property
    def rule_name(self) -> str:
        """The name of the rule, or `rule-1` for the first one without a name."""
        return self.rule.name or f"rule-{self.number + 1}"


RoutingPart = AppliedSplit | AppliedRule | AppliedRoute


@dataclass(frozen=True, slots=True)
class RouteSource:
    """Part of an object that made a route entry, for the requests of `match` (None: for all requests).

    The match is one of an HTTPRouteGroup, and is named in statistics. A Gateway API route has matches of its
    own, without names.
    """

    part: RoutingPart
    match: HTTPMatch | None = None


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """Entry for requests that fit all of `matches`: what happens to them, and the objects that decide it.

    A request of a split's match and of a RoutePolicy's match must fit both, so there may be several matches;
    without any the entry is for all requests. `provenance` has the object that chose the action first, and is
    empty if the service itself is called without any object.

    `server_names` are of entries for TLS connections: the names for which the client asks, such as
    `shop.example` or `*.example`; without any the entry is for all connections.
    """

    matches: tuple[RequestMatch, ...]
    action: RouteAction
    provenance: tuple[RouteSource, ...] = ()
    treatment: RequestTreatment | None = None
    server_names: tuple[str, ...] = ()

    @property
    def shares(self) -> tuple[Share, ...]:
        """The shares of the requests; empty without forwarding."""
        return self.action.shares if isinstance(self.action, Forward) else ()

    @property
    def backends(self) -> tuple[WeightedBackend, ...]:
        """The forwarded shares, without the answered ones."""
        return tuple(share for share in self.shares if isinstance(share, WeightedBackend))

    @property
    def faulty(self) -> bool:
        """True if faults are injected into requests."""
        return self.treatment is not None and self.treatment.faulty

    @property
    def named_matches(self) -> tuple[HTTPMatch, ...]:
        """The matches of objects that requests must fit, in the order of `matches`."""
        return tuple(dict.fromkeys(source.match for source in self.provenance if source.match is not None))

    @property
    def request_names(self) -> tuple[str, ...]:
        """The names for the requests of the entry in statistics: of matches, or of a Gateway API rule."""
        if (route := self.route) is not None:
            return (route.rule_name,)
        return tuple(match.name for match in self.named_matches)

    @property
    def chosen_by(self) -> str | None:
        """The object behind the action; None for the called service alone.

        For example, `split:shop/cart`, or `HTTPRoute:shop/cart/rule-1`.
        """
        for source in self.provenance:
            match source.part:
                case AppliedSplit(by):
                    return f"split:{by}"
                case AppliedRoute() as route:
                    return f"{route.kind.name}:{route.by}/{route.rule_name}"
                case AppliedRule():
                    # A rule treats requests, whichever backend they get.
                    continue
        return None

    @property
    def route(self) -> AppliedRoute | None:
        """The Gateway API route behind the entry, if any."""
        parts = (source.part for source in self.provenance)
        return next((part for part in parts if isinstance(part, AppliedRoute)), None)
