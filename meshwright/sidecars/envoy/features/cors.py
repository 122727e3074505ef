"""Cross-origin requests of browsers: the filter is inactive by itself, and routes configure it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.route_table import RouteEntry
from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.gateway.filters import Cors as Allowed
from meshwright.mesh.matching import FieldMatch, Regex, RequestMatch
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules.matching import full_match
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.filters.http.cors.v3 import cors_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.type.matcher.v3 import string_pb2

_Route = route_components_pb2.Route
_Match = route_components_pb2.RouteMatch
FILTER: Final = "envoy.filters.http.cors"

_ANY: Final = "*"
_OPTIONS: Final = "OPTIONS"
_ANY_LABELS: Final = "[^:/]+"
_ANY_HOST: Final = rf"(?:{_ANY_LABELS}|\[[^\]/]+\])"
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Cors(Feature):
    """The CORS filter, present if any route entry allows cross-origin requests."""

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the filter, which is inactive without the settings of routes."""
        del terms
        manager.http_filters.add(name=FILTER, typed_config=packed(cors_pb2.Cors()))


def allow(route: _Route, allowed: Allowed) -> None:
    """Configure the filter for a route.

    A browser takes `*` literally in the answer to a request with credentials (Fetch standard, "CORS
    protocol and credentials"). Envoy then answers the method and headers of the preflight request, and `*`
    among the exposed headers is left out.
    """
    exposed = (name for name in allowed.exposed_headers if name != _ANY or not allowed.credentials)
    message = cors_pb2.CorsPolicy(
        allow_origin_string_match=map(_origin, allowed.origins),
        allow_methods=_listed(allowed.methods),
        allow_headers=_listed(allowed.request_headers),
        expose_headers=_listed(exposed),
        max_age=str(int(allowed.max_age.total_seconds())),
        allow_credentials=BoolValue(value=allowed.credentials),
    )
    route.typed_per_filter_config[FILTER].CopyFrom(packed(message))


def refuse_others(match: _Match, allowed: Allowed) -> _Route | None:
    """Return a route that refuses preflight requests of other origins; None if no origin is another one.

    The filter would pass them on, and a backend could allow them.
    """
    if _ANY in allowed.origins:
        return None
    route = _Route(direct_response=route_components_pb2.DirectResponseAction(status=HTTPStatus.FORBIDDEN))
    route.match.CopyFrom(match)
    route.match.headers.add(name=":method", string_match=string_pb2.StringMatcher(exact=_OPTIONS))
    route.match.headers.add(name="access-control-request-method", present_match=True)
    route.match.headers.add(name="origin", present_match=True)
    for matcher in map(_origin, allowed.origins):
        route.match.headers.add(name="origin", string_match=matcher, invert_match=True)
    return route


def preflight_entry(entry: RouteEntry) -> RouteEntry | None:
    """Return the entry of the preflight requests for requests that have a method by their match; else None.

    A preflight request has the method OPTIONS, and names the one of the request after it.
    """
    if entry.treatment is None or entry.treatment.cors is None:
        return None
    matches = tuple(map(_preflight, entry.matches))
    return None if matches == entry.matches else replace(entry, matches=matches)


def _preflight(match: RequestMatch) -> RequestMatch:
    methods = [method for method in match.methods if method != _OPTIONS]
    if not methods:
        return match
    named = FieldMatch("access-control-request-method", Regex("|".join(methods)))
    origin = FieldMatch("origin", Regex(".+"))
    return replace(match, methods=(_OPTIONS,), headers=(*match.headers, named, origin))


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _origin(pattern: str) -> string_pb2.StringMatcher:
    """Match origins in any case; without a port they have the default port of the scheme, written or not.

    `*` stands for any host, or for the labels at the left of a host.
    """
    if pattern == _ANY:
        return full_match(".*")
    scheme, _, place = pattern.partition("://")
    host, _, port = place.partition(":")
    labels = _ANY_HOST if host == _ANY else re.escape(host).replace(re.escape(_ANY), _ANY_LABELS)
    default = _DEFAULT_PORTS[scheme]
    ending = f":{port}" if port not in ("", default) else f"(?::{default})?"
    return full_match(f"(?i:{scheme}://{labels}{ending})")
