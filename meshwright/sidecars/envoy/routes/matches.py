"""Requests of a route entry as Envoy's RouteMatch."""

from functools import lru_cache
from typing import Final

from meshwright.mesh.matching import Exact, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.sidecars.envoy.rules import matching
from protos.envoy.config.route.v3 import route_components_pb2

_Match = route_components_pb2.RouteMatch

REMEMBERED: Final = 2048
"""Number of cached matches: many entries, and all callers of a service, have the same ones."""


@lru_cache(REMEMBERED)
def route_match(matches: tuple[RequestMatch, ...]) -> _Match:
    """Match requests that fit all conditions; the message is shared, and must not be changed.

    A route takes one path expression, so further ones match a header.
    """
    paths = [match.path for match in matches if match.path is not None]
    result = _path(paths[0]) if paths else _Match(prefix="/")
    for match in matches:
        result.headers.extend(matching.header_matchers(match))
        result.query_parameters.extend(map(matching.parameter_matcher, match.parameters))
    result.headers.extend(matching.path_matcher(matching.path_regex(path)) for path in paths[1:])
    if any(match.grpc for match in matches):
        # Envoy compares the content type: `application/grpc`, also with a suffix such as `+proto`.
        result.grpc.SetInParent()
    return result


def _path(path: Exact | Prefix | Regex | GrpcMethod) -> _Match:
    """Return the match of a path. Envoy refuses a path-separated prefix that is `/` or ends with a slash."""
    match path:
        case Prefix("/"):
            return _Match(prefix="/")
        case Prefix(text):
            return _Match(path_separated_prefix=text)
        case Exact(text):
            return _Match(path=text)
        case GrpcMethod(None, None):
            return _Match(prefix="/")
        case GrpcMethod(service, None, False):
            return _Match(prefix=f"/{service}/")
        case GrpcMethod(str() as service, str() as method, False):
            return _Match(path=f"/{service}/{method}")
        case GrpcMethod() | Regex():
            return _Match(safe_regex=matching.full_match(matching.path_regex(path)).safe_regex)


def matched_prefix(matches: tuple[RequestMatch, ...]) -> str:
    """Return the path prefix that all requests of an entry have; `/` without one."""
    prefixes = (match.path for match in matches)
    return next((path.path for path in prefixes if isinstance(path, Prefix)), "/")
