"""Rules of the Gateway API's routes: matches, backends with weights, timeouts and retries."""

from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.gateway.filters import Filters
from meshwright.mesh.gateway.references import BackendObject
from meshwright.mesh.matching import RequestMatch


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend's share of a rule's requests: `weight` is relative to the sum of the rule's weights."""

    to: BackendObject
    weight: int = 1
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of a request with all attempts (`request`), and of one attempt (`backend_request`).

    Zero turns a limit off. None means that the rule does not give one.
    """

    request: timedelta | None = None
    backend_request: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RuleRetry:
    """Further attempts, at most `attempts`, after a failed connection or an answer with one of `codes`.

    0 attempts turn all retries off, also those of the mesh. `backoff` is the shortest delay before a retry.
    """

    attempts: int = 1
    codes: tuple[int, ...] = ()
    backoff: timedelta | None = None  # None leaves the delay to the mesh


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: requests that fit any of `matches` get the filters, and one of `backends` by weight.

    `matches` has at least one, which may be empty and fits all requests then. Connections of a TLSRoute or
    TCPRoute have no requests, so their rules have `backends` alone. `dropped` is the reason why the rule is
    not in force though the rest of the route is, for example a regular expression that RE2 refuses.
    """

    # Not empty, so a list without an element can never stand for all requests.
    matches: tuple[RequestMatch, ...] = (RequestMatch(),)
    filters: Filters = field(default_factory=Filters)
    backends: tuple[Backend, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    retry: RuleRetry | None = None
    name: str = ""
    dropped: str = ""
