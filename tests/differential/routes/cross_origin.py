"""Cross-origin requests by the text of the specification and of the Fetch standard."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from catalog.oracle.decide import Request
from meshwright.mesh.gateway.filters import Cors
from tests.differential.wire import Answered

_ALL_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
)


def is_preflight(request: Request) -> bool:
    """Return whether a request asks for a permission, which a sidecar answers."""
    asks = _header(request, "access-control-request-method")
    return request.method == "OPTIONS" and bool(_header(request, "origin") and asks)


def allows(cors: Cors, request: Request) -> bool:
    """Return whether a filter allows the origin of a request."""
    origin = _header(request, "origin")
    return origin is not None and any(item == "*" or _is_one_of(origin, item) for item in cors.origins)


def _is_one_of(origin: str, pattern: str) -> bool:
    """Return whether an origin fits; `*` stands for labels of a host, and a default port may be left out."""
    (scheme, host, port), (wanted, labels, wanted_port) = _parts(origin), _parts(pattern)
    hosts = "[^:/]+".join(map(re.escape, labels.split("*")))
    return (scheme, port) == (wanted, wanted_port) and re.fullmatch(hosts, host) is not None


def _parts(origin: str) -> tuple[str, str, str]:
    scheme, _, place = origin.lower().partition("://")
    host, _, port = place.partition(":")
    return scheme, host, port or {"http": "80", "https": "443"}.get(scheme, "")


def preflight_faults(cors: Cors, request: Request, seen: Answered) -> Iterator[str]:
    """Yield what is wrong in the answer to a preflight request of an allowed origin."""
    yield from _origin_faults(cors, request, seen)
    if seen.value("access-control-max-age") != str(int(cors.max_age.total_seconds())):
        yield f"access-control-max-age is {seen.value('access-control-max-age')}"
    asked = _header(request, "access-control-request-method")
    methods = _listed(seen.value("access-control-allow-methods"))
    every: Iterable[frozenset[str]] = (frozenset({"*"}), frozenset({asked or ""}))
    if cors.credentials:
        # A browser takes a star literally; the filter can name all methods.
        every = (frozenset({asked or ""}), _ALL_METHODS)
    wanted = every if "*" in cors.methods else (frozenset(cors.methods),)
    if methods not in wanted:
        yield f"access-control-allow-methods is {sorted(methods)}"
    if "*" not in cors.request_headers:
        headers = _listed((seen.value("access-control-allow-headers") or "").lower())
        if headers != frozenset(name.lower() for name in cors.request_headers):
            yield f"access-control-allow-headers is {sorted(headers)}"


def answer_faults(cors: Cors, request: Request, seen: Answered) -> Iterator[str]:
    """Yield what is wrong in a server's answer to a request that is no preflight request."""
    if _header(request, "origin") is None or not allows(cors, request):
        yield from denied_faults(seen)
        return
    yield from _origin_faults(cors, request, seen)
    exposed = _listed((seen.value("access-control-expose-headers") or "").lower())
    if exposed != frozenset(name.lower() for name in cors.exposed_headers):
        yield f"access-control-expose-headers is {sorted(exposed)}"


def denied_faults(seen: Answered) -> Iterator[str]:
    """Yield what is wrong in an answer to another origin: it has no permission."""
    if (origin := seen.value("access-control-allow-origin")) is not None:
        yield f"access-control-allow-origin is {origin} for another origin"


def _origin_faults(cors: Cors, request: Request, seen: Answered) -> Iterator[str]:
    asked, answered = _header(request, "origin"), seen.value("access-control-allow-origin")
    star = ("*",) if "*" in cors.origins and not cors.credentials else ()
    if answered not in (asked, *star):
        yield f"access-control-allow-origin is {answered}"
    if seen.value("access-control-allow-credentials") != ("true" if cors.credentials else None):
        yield f"access-control-allow-credentials is {seen.value('access-control-allow-credentials')}"


def _header(request: Request, name: str) -> str | None:
    return next((value for given, value in request.headers if given.lower() == name), None)


def _listed(text: str | None) -> frozenset[str]:
    return frozenset(item.strip() for item in (text or "").split(",") if item.strip())
