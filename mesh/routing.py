"""What becomes of requests on their way to a service: our own RoutePolicy as a value."""

from dataclasses import dataclass, field
from datetime import timedelta

from mesh.policy import PolicyKey, Rule
from mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class RouteActions:
    """What callers' proxies do with a request; by default nothing.

    `timeout`: how long it may take until its answer has ended, all its tries included; None: any time.
    """

    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RouteRule:
    """Requests that fit any of `matches`, references to HTTPRouteGroups of the namespace; empty is all."""

    matches: tuple[Rule, ...] = ()
    actions: RouteActions = field(default_factory=RouteActions)


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """policy.meshwright.dev RoutePolicy: the first of `rules` that fits a request to `service` decides it.

    `created` is `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    service: ServiceKey
    rules: tuple[RouteRule, ...]
    created: str = ""
