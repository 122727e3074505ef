"""Actions of a route table: forwarding to shares of backends, redirects, and answers of the proxy."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from meshwright.mesh.gateway.filters import Redirect, Rewrite
from meshwright.mesh.gateway.rules import RuleRetry
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import HashKey
from meshwright.mesh.service import Upstream


class HttpVersion(enum.StrEnum):
    """Version of HTTP in which requests are sent to a backend.

    A sidecar keeps the version of its application. The others are for copies, which have no caller, and for
    gateways, whose callers know nothing about the backend.
    """

    CALLERS = "callers"
    HTTP1 = "http1"
    HTTP2 = "http2"


@dataclass(frozen=True, slots=True)
class WeightedBackend:
    """A share of the calls: an upstream's target port (number or name) and a relative weight.

    With `as_called` the called endpoint answers, and no other is chosen (headless services). `own` are
    changes for this share alone. `tls` is the BackendTLSPolicy for endpoints without a sidecar, if any.
    """

    upstream: Upstream
    target_port: str
    weight: int
    as_called: bool = False
    own: "ShareChanges | None" = None
    version: HttpVersion = HttpVersion.CALLERS
    tls: PolicyKey | None = None


@dataclass(frozen=True, slots=True)
class RequestMirror:
    """Copies of `numerator` of `denominator` requests for a backend, whose answers are dropped."""

    backend: WeightedBackend
    numerator: float = 100
    denominator: int = 100


@dataclass(frozen=True, slots=True)
class ShareChanges:
    """Changes for the requests and answers of one share, made after those of the whole entry."""

    request_headers: HeaderChanges = field(default_factory=HeaderChanges)
    response_headers: HeaderChanges = field(default_factory=HeaderChanges)
    rewrite: Rewrite | None = None
    mirrors: tuple[RequestMirror, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredShare:
    """A share of the calls that the caller's proxy answers itself, with this HTTP status.

    A connection without visible requests is closed.
    """

    status: int
    weight: int


Share = WeightedBackend | AnsweredShare


@dataclass(frozen=True, slots=True)
class Forward:
    """Requests go to one of `shares`, by weight; there is at least one, and one has a weight above 0.

    `keys` are the parts of a request that select the endpoint by consistent hash. With `fails_over` near
    endpoints are preferred, and a failed request is repeated at endpoints farther away.

    `timeout` is the limit until the end of the answer, including all attempts, and `per_try` the limit of one
    attempt; None turns a limit off. `retries` replace those of the caller and of the mesh, unless None.
    """

    shares: tuple[Share, ...]
    keys: tuple[HashKey, ...] = ()
    fails_over: bool = False
    timeout: timedelta | None = None
    mirrors: tuple[RequestMirror, ...] = ()
    rewrite: Rewrite | None = None
    retries: RuleRetry | None = None
    per_try: timedelta | None = None

    def backends(self) -> Iterator[WeightedBackend]:
        """Yield the backends, possibly repeated; those of mirrors are included."""
        for share in self.shares:
            if isinstance(share, WeightedBackend):
                yield share
                if share.own is not None:
                    yield from (mirror.backend for mirror in share.own.mirrors)
        for mirror in self.mirrors:
            yield mirror.backend


@dataclass(frozen=True, slots=True)
class Answer:
    """The caller's proxy answers requests itself, with this HTTP status."""

    status: int


RouteAction = Forward | Redirect | Answer
"""Action on a request. A Redirect here always has a port, which is that of the new location."""


NO_BACKEND: Final = Answer(HTTPStatus.SERVICE_UNAVAILABLE)
"""The answer to requests for which no backend may be called."""
