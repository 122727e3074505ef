"""Calls made by a group of proxies: service ports, their routes, and the backends of each route."""

from dataclasses import dataclass

from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.routing import RouteActions
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.policies.upstreams import HashKey
from meshwright.mesh.service import EscapedSlashes, Protocol, Upstream
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
class OutboundRoute:
    """Route of requests that fit any of `matches` (`None`: all); without backends they get no answer.

    `keys` are the parts of a request that select the endpoint by consistent hash. With `fails_over` near
    endpoints are preferred, and a failed request is repeated at endpoints farther away.
    """

    matches: tuple[HTTPMatch, ...] | None
    backends: tuple[WeightedBackend, ...]
    split: PolicyKey | None = None
    keys: tuple[HashKey, ...] = ()
    fails_over: bool = False


@dataclass(frozen=True, slots=True)
class RequestRule:
    """Handling of requests that fit any of `matches` (`None`: all), `by` a RoutePolicy.

    `mirror` gets copies, if the workload may call it.
    """

    by: PolicyKey
    matches: tuple[HTTPMatch, ...] | None
    actions: RouteActions
    mirror: WeightedBackend | None = None


@hashed_once
@dataclass(frozen=True, slots=True)
class OutboundService(CachedHash):
    """A port of a service, or of a host outside the mesh, that the workload may call.

    `addresses` are the called addresses in transparent interception, `listen` the proxy's own in explicit.
    `port` is the service's port; for a headless service the endpoints' port, because it is not translated.
    The first of `routes` that fits a request decides, and the last one fits all. `retries` come from a Retry
    of the workload. The first of `rules` that fits applies, whichever route is taken.
    """

    upstream: Upstream
    port: Port
    protocol: Protocol
    routes: tuple[OutboundRoute, ...]
    addresses: tuple[IpAddress, ...] = ()
    listen: tuple[SocketAddress, ...] = ()
    escaped_slashes: EscapedSlashes = EscapedSlashes.REJECT
    retries: Retries | None = None
    rules: tuple[RequestRule, ...] = ()

    @property
    def fails_over(self) -> bool:
        """True if any route repeats failed requests farther away."""
        return any(route.fails_over for route in self.routes)
