"""What becomes of requests on their way to a service: our own RoutePolicy as a value."""

from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.names import ServiceName
from meshwright.mesh.policies.smi import PolicyKey, Rule
from meshwright.mesh.service import ServiceKey

Headers = tuple[tuple[str, str], ...]
"""Names, in lower case, and values."""


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """What becomes of a message's headers: some go, then others come; of one name there is one change.

    `put` stands in the place of whatever was there, `add` beside it. All are sorted.
    """

    put: Headers = ()
    add: Headers = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delay:
    """So many of a hundred requests are held back for a time before they are sent."""

    percent: float
    duration: timedelta


@dataclass(frozen=True, slots=True)
class Abort:
    """So many of a hundred requests are not sent, and answered with a status."""

    percent: float
    status: int


@dataclass(frozen=True, slots=True)
class Mirror:
    """Of so many of a hundred requests copies go to another service of the namespace; nobody waits for it."""

    service: ServiceName
    percent: float


@dataclass(frozen=True, slots=True)
class RouteActions:
    """What callers' proxies do with a request; by default nothing.

    `timeout`: how long it may take until its answer has ended, all its tries included; None: any time. A
    request is held back and aborted before it is sent; what it is held back does not count.
    """

    timeout: timedelta | None = None
    request_headers: HeaderChanges = field(default_factory=HeaderChanges)
    response_headers: HeaderChanges = field(default_factory=HeaderChanges)
    delay: Delay | None = None
    abort: Abort | None = None
    mirror: Mirror | None = None

    @property
    def faulty(self) -> bool:
        """Say whether it harms requests on purpose."""
        return self.delay is not None or self.abort is not None


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
