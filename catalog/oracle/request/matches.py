"""Fit of a forwarded request with a match of a Gateway API route, by the text of the specification.

Connections have no requests: of TLSRoutes the hostnames fit the server name of the connection.
"""

from collections.abc import Iterable
from dataclasses import replace

from catalog.oracle.request.expressions import fits_in_full
from catalog.oracle.request.request import Request, path_of, values_of
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch


def fits_match(match: RequestMatch, request: Request) -> bool:
    """Return whether a forwarded request fits the path, method, headers and parameters of a match."""
    return (
        _path_fits(match, path_of(request))
        and (not match.methods or request.method in match.methods)
        and (not match.grpc or _is_grpc(request))
        and all(_header_fits(field, request) for field in _first(match.headers))
        and all(_value_fits(field, _parameter(request, field.name)) for field in _first(match.parameters))
    )


def fits_with_preflight(match: RequestMatch, request: Request) -> bool:
    """Return whether a request fits a match of a rule with CORS, or is a preflight request for one that does.

    A preflight request has the method OPTIONS, and names the method of the request after it (Fetch standard,
    "CORS-preflight request").
    """
    if fits_match(match, request):
        return True
    asked = next(iter(values_of(request, "access-control-request-method")), "")
    is_preflight = request.method == "OPTIONS" and bool(asked) and any(values_of(request, "origin"))
    return is_preflight and fits_match(match, replace(request, method=asked))


def name_rank(hostnames: Iterable[str], server_name: str | None) -> tuple[int, int] | None:
    """Return the rank of the best of a TLSRoute's hostnames that fits; None if none does.

    An exact name has the smallest rank, then the longest wildcard, then a route without hostnames. A wildcard
    stands for one label or more, so `*.example` does not fit `example`. Case is ignored.
    """
    names = tuple(hostnames)
    if not names or server_name is None:
        return 2, 0
    asked = server_name.lower().removesuffix(".")
    ranks = [(0, 0) for name in names if name == asked]
    ranks += [(1, -len(name)) for name in names if name.startswith("*.") and asked.endswith(name[1:])]
    return min(ranks, default=None)


def _path_fits(match: RequestMatch, path: str) -> bool:
    match match.path:
        case None:
            return True
        case Exact(text):
            return path == text
        case Prefix(prefix):
            stem = prefix.rstrip("/")
            return path == stem or path.startswith(f"{stem}/")
        case Regex(regex):
            return _full(regex, path)
        case GrpcMethod(service, method, is_regex):
            slash, called, name = path.rpartition("/")[1], path.rpartition("/")[0], path.rpartition("/")[2]
            named = ((service, called.removeprefix("/")), (method, name))
            return bool(slash) and all(
                wanted is None or (_full(wanted, given) if is_regex else wanted == given)
                for wanted, given in named
            )


def _first(fields: tuple[FieldMatch, ...]) -> tuple[FieldMatch, ...]:
    """Return the fields; of several with one name only the first counts."""
    return tuple({field.name: field for field in reversed(fields)}.values())


def _header_fits(field: FieldMatch, request: Request) -> bool:
    """Return whether one value of a header fits, because the specification leaves repeated headers free.

    Hosts are compared without case, port and final dot.
    """
    values = tuple(values_of(request, field.name))
    if field.name == "host" and isinstance(field.value, Exact):
        return field.value.text.lower() in {value.lower() for value in values}
    if field.name == "host" and isinstance(field.value, Regex):
        return any(_full(f"(?i:{field.value.regex})", value) for value in values)
    return any(_value_fits(field, value) for value in values)


def _value_fits(field: FieldMatch, value: str | None) -> bool:
    if value is None:
        return False
    match field.value:
        case Exact(text):
            return value == text
        case Regex(regex):
            return _full(regex, value)


def _parameter(request: Request, name: str) -> str | None:
    """Return the first value of a query parameter, as written."""
    for pair in request.path.partition("?")[2].split("&"):
        given, _, value = pair.partition("=")
        if given == name:
            return value
    return None


def _is_grpc(request: Request) -> bool:
    kind = next((value.strip() for name, value in request.headers if name.lower() == "content-type"), "")
    return kind == "application/grpc" or kind.startswith("application/grpc+")


def _full(regex: str, text: str) -> bool:
    return fits_in_full(regex, text.encode("utf-8", "surrogateescape"))
