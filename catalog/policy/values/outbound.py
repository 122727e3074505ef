"""Calls that a group of proxies makes: service ports, their routes, and the backends of each route."""

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
    """A share of the calls: an upstream's target port (a number, or a port's name) and a relative weight.

    `as_called`: the endpoint that was called answers, and no other is chosen (headless services).
    """

    upstream: Upstream
    target_port: str
    weight: int
    as_called: bool = False


@dataclass(frozen=True, slots=True)
class OutboundRoute:
    """Where requests go that fit any of `matches` (None: all). Without backends nobody may answer them.

    `keys`: what of a request decides, where endpoints are chosen by consistent hash. `fails_over`: of some
    backend those endpoints come first that are near; what failed there is tried again farther away.
    """

    matches: tuple[HTTPMatch, ...] | None
    backends: tuple[WeightedBackend, ...]
    split: PolicyKey | None = None
    keys: tuple[HashKey, ...] = ()
    fails_over: bool = False


@dataclass(frozen=True, slots=True)
class RequestRule:
    """What becomes of requests that fit any of `matches` (None: all), `by` a RoutePolicy.

    `mirror` is who gets copies, where that is somebody whom the workload may call.
    """

    by: PolicyKey
    matches: tuple[HTTPMatch, ...] | None
    actions: RouteActions
    mirror: WeightedBackend | None = None


@hashed_once
@dataclass(frozen=True, slots=True)
class OutboundService(CachedHash):
    """A port of a service, or of a host outside the mesh, that the workload may call.

    `addresses` are those it is called at in transparent interception, `listen` where the proxy offers it in
    explicit. `port` is the service's; of a headless service, whose endpoints are called without a
    translation of ports, it is theirs. The first of `routes` that fits decides, and the last fits everything.
    `retries`: what the workload tries again, where a policy of its own says that. The first of `rules` that
    fits a request says what becomes of it, whichever route it takes; nothing does where none fits.
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
        """Whether what failed near is tried again farther away, on some route."""
        return any(each.fails_over for each in self.routes)
