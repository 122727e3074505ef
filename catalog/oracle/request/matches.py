"""Fit of a forwarded request with a match of a Gateway API route, by the text of the specification."""

from catalog.oracle.request.expressions import fits_in_full
from catalog.oracle.request.request import Request, path_of
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch


def fits_match(match: RequestMatch, request: Request) -> bool:
    """Return whether a forwarded request fits the path, method, headers and parameters of a match."""
    return (
        _path_fits(match, path_of(request))
        and (not match.methods or request.method in match.methods)
        and (not match.grpc or _is_grpc(request))
        and all(_value_fits(field, _header(request, field.name)) for field in _first(match.headers))
        and all(_value_fits(field, _parameter(request, field.name)) for field in _first(match.parameters))
    )


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


def _value_fits(field: FieldMatch, value: str | None) -> bool:
    if value is None:
        return False
    match field.value:
        case Exact(text):
            return value == text
        case Regex(regex):
            return _full(regex, value)


def _header(request: Request, name: str) -> str | None:
    """Return the values of a header with commas, as HTTP joins them; None without the header."""
    names = ("host", ":authority") if name == "host" else (name,)
    values = [value.strip(" \t") for given, value in request.headers if given.lower() in names]
    return ",".join(values) if values else None


def _parameter(request: Request, name: str) -> str | None:
    """Return the first value of a query parameter, as written."""
    for pair in request.path.partition("?")[2].split("&"):
        given, _, value = pair.partition("=")
        if given == name:
            return value
    return None


def _is_grpc(request: Request) -> bool:
    kind = _header(request, "content-type") or ""
    return kind == "application/grpc" or kind.startswith("application/grpc+")


def _full(regex: str, text: str) -> bool:
    return fits_in_full(regex, text.encode("utf-8", "surrogateescape"))
