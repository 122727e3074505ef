"""Matches of requests, the same for every kind of object that selects requests.

A kind with a form of its own converts it, for example SMI's HTTPMatch (`meshwright.mesh.policies.smi`).
Routes have only matches of this form, so a driver translates them without knowing the kind.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Exact:
    """Exactly this text; for paths without the query, for example `/books`."""

    text: str


@dataclass(frozen=True, slots=True, order=True)
class Prefix:
    """Paths that begin with these whole segments, for example `/books` for `/books` and `/books/2`.

    `path` begins with a slash and does not end with one, except for `/` alone, which all paths begin with.
    """

    path: str


@dataclass(frozen=True, slots=True, order=True)
class Regex:
    """Text that `regex` (RE2) matches in full, for example `/books/.*`."""

    regex: str


@dataclass(frozen=True, slots=True, order=True)
class GrpcMethod:
    """Calls of gRPC methods; None for any service or any method, but not for both.

    `service` is a full name such as `shop.Cart`. With `is_regex` both are regular expressions (RE2) for the
    whole name.
    """

    service: str | None = None
    method: str | None = None
    is_regex: bool = False


@dataclass(frozen=True, slots=True, order=True)
class FieldMatch:
    """Header (`name` in lower case, `host` means `:authority`) or query parameter with this value."""

    name: str
    value: Exact | Regex


@dataclass(frozen=True, slots=True)
class RequestMatch:
    """Requests with this path, one of `methods`, all `headers` and all `parameters`; an empty part fits any.

    `grpc` fits only requests with a gRPC content type. Of a repeated parameter the first value counts.
    """

    path: Exact | Prefix | Regex | GrpcMethod | None = None
    methods: tuple[str, ...] = ()
    headers: tuple[FieldMatch, ...] = ()
    parameters: tuple[FieldMatch, ...] = ()
    grpc: bool = False
