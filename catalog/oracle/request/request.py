"""A request, the form after each sidecar, and the match with an HTTPMatch as in a server."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from catalog.oracle.request.expressions import fits_in_full
from catalog.oracle.request.headers import SINGLE, TE, UNSEEN
from catalog.oracle.request.methods import turned_down
from catalog.oracle.request.paths import ForwardedTarget, LocalReply, passed_on
from meshwright.mesh.gateway.routes import MatchPlace
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import Client
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from meshwright.mesh.service import EscapedSlashes, ServiceKey

_HOST: Final = (":authority", "host")
_HOST_BYTES: Final = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=:@\[\]-]*")


@dataclass(frozen=True, slots=True)
class Request:
    """A call: the client (`None`: unknown), the service and port, and for HTTP the request.

    Header names are in any case. `path` is the request target as sent (`catalog.oracle.request.paths`), in
    UTF-8, with surrogates for other bytes. With `http2` the client speaks HTTP/2 to the sidecar, which then
    accepts other targets. `forwarded` is True for the form in which the client's sidecar sends the request.
    `missed` are matches of Gateway API routes that the client's sidecar is served without.
    `server_name` is the name that a connection in TLS asks for, empty without a name or without TLS, and None
    if unknown: then every TLSRoute fits.
    """

    client: Client | None
    service: ServiceKey
    port: Port
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    http2: bool = False
    forwarded: bool = False
    missed: frozenset[tuple[ObjectKey, MatchPlace]] = frozenset()
    server_name: str | None = None

    @property
    def identity(self) -> ServiceIdentity | None:
        """The client's identity in the mesh; `None` for a client outside, without a sidecar."""
        return self.client if isinstance(self.client, ServiceIdentity) else None


def passed(request: Request, slashes: EscapedSlashes, upgrades: Iterable[str] = ()) -> Request | LocalReply:
    """Return a request as forwarded by one sidecar, with the path in origin form and normalised.

    `upgrades` are the forwarded protocols in the header Upgrade, in lower case, for example `websocket`.
    """
    refused = turned_down(request.method, request.headers, http2=request.http2)
    if refused is not None:
        return refused
    result = passed_on(_bytes(request.path), slashes, method=request.method, http2=request.http2)
    if isinstance(result, LocalReply):
        return result
    if any(_HOST_BYTES.fullmatch(_bytes(value)) is None for value in _hosts(request)):
        return LocalReply(400, "its host has characters that a host cannot have")
    headers = _forwarded(_headers(request, result), frozenset(upgrades))
    return replace(request, path=_text(result.target), headers=headers)


def _tokens(headers: Iterable[tuple[str, str]], name: str) -> tuple[str, ...]:
    """Return the elements of a header with a list as value, as written."""
    values = (value for given, value in headers if given.lower() == name)
    return tuple(item.strip() for value in values for item in value.split(","))


def path_of(request: Request) -> str:
    """Return the path of a forwarded request without query, as seen by splits and rules."""
    return request.path.partition("?")[0]


def fits(match: HTTPMatch, request: Request) -> bool:
    """Return whether a forwarded request fits a match."""
    return path_fits(match, request) and method_fits(match, request) and not headers_missed(match, request)


def path_fits(match: HTTPMatch, request: Request) -> bool:
    """Return whether the path of a request, without query, fits a match."""
    return match.path_regex is None or fits_in_full(match.path_regex, _bytes(path_of(request)))


def method_fits(match: HTTPMatch, request: Request) -> bool:
    """Return whether the method of a request fits a match."""
    return not match.methods or request.method in match.methods


def headers_missed(match: HTTPMatch, request: Request) -> tuple[str, ...]:
    """Return the names of the match's headers without a fitting value in the request.

    For example, a match with `x-user: alice.*` misses `x-user` in a request without this header.
    """
    return tuple(
        wanted.name
        for wanted in match.headers
        if not any(
            fits_in_full(_expression(wanted), _bytes(value)) for value in values_of(request, wanted.name)
        )
    )


def values_of(request: Request, name: str) -> Iterable[str]:
    """Return the values of a header, of which one must fit a match; `host` also in its other spellings."""
    # The server's rules never see the application's value, so no expression can match.
    if name.lower() in UNSEEN:
        return ()
    # Of TE only `trailers` may be forwarded (RFC 9113, section 8.2.2).
    if name.lower() == TE:
        return ("trailers",) if "trailers" in _tokens(request.headers, TE) else ()
    if name.lower() in _HOST:
        result = _hosts(request)
        return _spellings(",".join(result)) if result else ()
    result = [value.strip(" \t") for given, value in request.headers if given.lower() == name.lower()]
    return (",".join(result),) if result and name.lower() in SINGLE else result


def _expression(wanted: HeaderMatch) -> str:
    """Return the expression for a header's value.

    Hosts are compared without case (RFC 9110, section 4.2.3).
    """
    # Host names ignore case, as in DNS. Values of other headers are compared as they are.
    return f"(?i){wanted.regex}" if wanted.name.lower() in _HOST else wanted.regex


def _spellings(host: str) -> tuple[str, ...]:
    """Return a host as written and without the port, each also without a final dot (DNS root)."""
    name, colon, port = host.rpartition(":")
    result = [host, name] if colon and port.isascii() and port.isdigit() else [host]
    return (*result, *(item.removesuffix(".") for item in result))


def _hosts(request: Request) -> list[str]:
    return [value.strip(" \t") for given, value in request.headers if given.lower() in _HOST]


def _headers(request: Request, forwarded_target: ForwardedTarget) -> tuple[tuple[str, str], ...]:
    if forwarded_target.authority is None:
        return request.headers
    others = (header for header in request.headers if header[0].lower() not in _HOST)
    return (("host", forwarded_target.authority.decode()), *others)


def _forwarded(headers: tuple[tuple[str, str], ...], upgrades: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return the headers, except the ones named in Connection.

    Connection and Upgrade stay if an offer is forwarded; Upgrade then only has the forwarded protocols.
    """
    named = {token.lower() for token in _tokens(headers, "connection")}
    offered = _tokens(headers, "upgrade") if "upgrade" in named else ()
    passing = [item for item in offered if item.lower() in upgrades]
    ending = (named - {"te"}) | {"upgrade"} | (set() if passing else {"connection"})
    kept = tuple(header for header in headers if header[0].lower() not in ending)
    return (*kept, ("upgrade", ", ".join(passing))) if passing else kept


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
