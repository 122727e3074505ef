"""A request, and whether it fits a match: in full, as a server sees it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from catalog.headers import SINGLE, UNSEEN
from mesh.identity import ServiceIdentity
from mesh.names import Port
from mesh.policy import HTTPMatch
from mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class Request:
    """A call: who, to which service and port, and for HTTP what is asked. Header names in any case.

    The path is the one that the server gets: dot segments resolved, no escaped slashes (they are refused).
    """

    client: ServiceIdentity | None
    service: ServiceKey
    port: Port
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()


def fits(match: HTTPMatch, request: Request) -> bool:
    """Say whether a request fits a match."""
    return path_fits(match, request) and method_fits(match, request) and not headers_missed(match, request)


def path_fits(match: HTTPMatch, request: Request) -> bool:
    """Say whether the path without query fits."""
    path = request.path.partition("?")[0].partition("#")[0]
    return match.path_regex is None or re.fullmatch(match.path_regex, path, re.ASCII) is not None


def method_fits(match: HTTPMatch, request: Request) -> bool:
    """Say whether the method fits."""
    return not match.methods or request.method in match.methods


def headers_missed(match: HTTPMatch, request: Request) -> tuple[str, ...]:
    """Return the names of the match's headers of which the request has no value that fits."""
    return tuple(
        wanted.name
        for wanted in match.headers
        if not any(re.fullmatch(wanted.regex, value, re.ASCII) for value in _values(request, wanted.name))
    )


def _values(request: Request, name: str) -> Iterable[str]:
    wanted = ("host", ":authority") if name.lower() in ("host", ":authority") else (name.lower(),)
    found = [value for given, value in request.headers if given.lower() in wanted]
    if name.lower() in UNSEEN:
        return ()
    return (",".join(found),) if found and name.lower() in SINGLE else found
