"""SMI's policies for access and traffic splits as values, independent of their API version."""

import enum
from dataclasses import dataclass

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, TCP_ROUTE
from meshwright.mesh.matching import FieldMatch, Regex, RequestMatch
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True, order=True)
class PolicyKey:
    """A policy object's namespace and name; the kind follows from the type of the value."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """Header with a value fully matching `regex`; `name` is lower case (`host` means `:authority`)."""

    name: str
    regex: str


@dataclass(frozen=True, slots=True)
class HTTPMatch:
    """One named match of an HTTPRouteGroup.

    `path_regex` must match the path without the query in full, for example `/books/.*`; None for any. Empty
    `methods` match any.
    """

    name: str
    path_regex: str | None = None
    methods: tuple[str, ...] = ()
    headers: tuple[HeaderMatch, ...] = ()

    @property
    def request_match(self) -> RequestMatch:
        """The match without its name, in the form for routes."""
        path = None if self.path_regex is None else Regex(self.path_regex)
        headers = tuple(FieldMatch(header.name, Regex(header.regex)) for header in self.headers)
        return RequestMatch(path, self.methods, headers)


@dataclass(frozen=True, slots=True)
class HTTPRouteGroup:
    """specs.smi-spec.io HTTPRouteGroup: named HTTP matches."""

    key: PolicyKey
    matches: tuple[HTTPMatch, ...]


@dataclass(frozen=True, slots=True)
class TCPRoute:
    """specs.smi-spec.io TCPRoute: destination ports; empty for all."""

    key: PolicyKey
    ports: tuple[Port, ...] = ()


class RouteKind(enum.StrEnum):
    """Kind of object referenced by a TrafficTarget's rule."""

    HTTP = HTTP_ROUTE_GROUP.name
    TCP = TCP_ROUTE.name


@dataclass(frozen=True, slots=True)
class Rule:
    """A TrafficTarget's reference to a route object of the namespace; empty `matches` stand for all."""

    kind: RouteKind
    name: str
    matches: tuple[str, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class TrafficTarget(CachedHash):
    """access.smi-spec.io TrafficTarget: these sources may call this destination by these rules.

    `port` restricts the destination (in v1alpha1 and v1alpha2); None for every port. The hash is computed
    once, because the target is a key in look-ups for each source.
    """

    key: PolicyKey
    destination: ServiceIdentity
    sources: tuple[ServiceIdentity, ...]
    rules: tuple[Rule, ...]
    port: Port | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """A TrafficSplit's backend: `weight` is relative to the sum of all the backends' weights."""

    service: ServiceName
    weight: int


@dataclass(frozen=True, slots=True)
class TrafficSplit:
    """split.smi-spec.io TrafficSplit: calls to `apex` go to the backends by weight.

    `matches` names HTTPRouteGroups of the namespace (v1alpha3, v1alpha4); empty for every request. `created`
    is `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    apex: ServiceKey
    backends: tuple[Backend, ...]
    matches: tuple[str, ...] = ()
    created: str = ""
