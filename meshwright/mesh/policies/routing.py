"""Treatment of requests to a service: our own RoutePolicy as a value."""

from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.names import ServiceName
from meshwright.mesh.policies.smi import PolicyKey, Rule
from meshwright.mesh.service import ServiceKey

Headers = tuple[tuple[str, str], ...]
"""Names, in lower case, and values."""


def _name(header: tuple[str, str]) -> str:
    return header[0]


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """Changes of a message's headers: removals first, then additions; one change per name.

    `put` replaces existing values, `add` keeps them. All are sorted.
    """

    put: Headers = ()
    add: Headers = ()
    remove: tuple[str, ...] = ()

    def followed_by(self, further: "HeaderChanges") -> "HeaderChanges":
        """Return both changes as one, as if `further` were made after this one."""
        put, gone = dict(further.put), {*further.remove, *(name for name, _ in further.put)}
        return HeaderChanges(
            tuple(sorted({**{name: value for name, value in self.put if name not in gone}, **put}.items())),
            tuple(sorted((*(one for one in self.add if one[0] not in gone), *further.add), key=_name)),
            tuple(sorted({*self.remove, *further.remove})),
        )


@dataclass(frozen=True, slots=True)
class Delay:
    """Fault: delay of a percentage of requests before they are sent."""

    percent: float
    duration: timedelta


@dataclass(frozen=True, slots=True)
class Abort:
    """Fault: answer with a status to a percentage of requests, which are not sent."""

    percent: float
    status: int


@dataclass(frozen=True, slots=True)
class Mirror:
    """Copies of a percentage of requests to another service of the namespace; answers are not waited for."""

    service: ServiceName
    percent: float


@dataclass(frozen=True, slots=True)
class RouteActions:
    """Actions of callers' proxies on a request; none by default.

    `timeout` is the limit until the end of the answer, including all attempts; None turns the limit off.
    Delays and aborts happen before the request is sent, and a delay does not count.
    """

    timeout: timedelta | None = None
    request_headers: HeaderChanges = field(default_factory=HeaderChanges)
    response_headers: HeaderChanges = field(default_factory=HeaderChanges)
    delay: Delay | None = None
    abort: Abort | None = None
    mirror: Mirror | None = None

    @property
    def faulty(self) -> bool:
        """Return whether the actions inject faults."""
        return self.delay is not None or self.abort is not None


@dataclass(frozen=True, slots=True)
class RouteRule:
    """A rule of a RoutePolicy: the actions on requests for any of `matches`, or on all if empty.

    `matches` are references to HTTPRouteGroups of the namespace.
    """

    matches: tuple[Rule, ...] = ()
    actions: RouteActions = field(default_factory=RouteActions)


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """policy.meshwright.dev RoutePolicy: the first matching one of `rules` applies to a request to `service`.

    `created` is `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    service: ServiceKey
    rules: tuple[RouteRule, ...]
    created: str = ""
