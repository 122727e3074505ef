"""Filters of the Gateway API's rules and backends: what changes in a request or its answer."""

import enum
from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.gateway.references import BackendObject
from meshwright.mesh.names import Port
from meshwright.mesh.policies.routing import HeaderChanges


class PathForm(enum.StrEnum):
    """Forms of a new path, in the words of the Gateway API."""

    FULL = "ReplaceFullPath"
    PREFIX = "ReplacePrefixMatch"


@dataclass(frozen=True, slots=True)
class NewPath:
    """A new path of a request; the query stays.

    With PREFIX `path` replaces what the rule's prefix match has matched, for example `/xyz` makes `/xyz/1` of
    `/books/1`. An empty `path` means `/`.
    """

    form: PathForm
    path: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """Answer with another location; what is None stays as requested.

    Without a `port`, that of the `scheme` counts, and without both the called port.
    """

    scheme: str | None = None
    host: str | None = None
    path: NewPath | None = None
    port: Port | None = None
    # The Gateway API's default; Envoy's own is 301.
    status: int = 302


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Another host or path for the backend; None leaves it."""

    host: str | None = None
    path: NewPath | None = None


@dataclass(frozen=True, slots=True)
class Mirror:
    """Copies of `numerator` of `denominator` requests to a further backend, whose answers are dropped."""

    backend: BackendObject
    # A fraction, and not a percentage, because a third of the requests is allowed.
    numerator: int = 100
    denominator: int = 100


@dataclass(frozen=True, slots=True)
class Cors:
    """Cross-origin requests that the caller's proxy allows, as the filter of type CORS has them.

    `origins` are origins such as `https://shop.example`, patterns with `*`, or `*` alone. `*` in `methods`,
    `request_headers` or `exposed_headers` stands for any. A browser remembers the answer for `max_age`.
    """

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    request_headers: tuple[str, ...] = ()
    exposed_headers: tuple[str, ...] = ()
    credentials: bool = False
    # The Gateway API's default.
    max_age: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of one rule or one backend.

    `unknown` names the filters that Meshwright does not carry out, for example `ExtensionRef`: requests with
    these filters must fail.
    """

    request_headers: HeaderChanges = field(default_factory=HeaderChanges)
    response_headers: HeaderChanges = field(default_factory=HeaderChanges)
    redirect: Redirect | None = None
    rewrite: Rewrite | None = None
    mirrors: tuple[Mirror, ...] = ()
    cors: Cors | None = None
    unknown: tuple[str, ...] = ()
