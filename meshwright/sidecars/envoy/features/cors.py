"""Cross-origin requests of browsers: the filter is inactive by itself, and routes configure it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.gateway.filters import Cors as Allowed
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules.matching import full_match
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.filters.http.cors.v3 import cors_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.type.matcher.v3 import string_pb2

FILTER: Final = "envoy.filters.http.cors"

_ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Cors(Feature):
    """The CORS filter, present if any route entry allows cross-origin requests."""

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the filter, which is inactive without the settings of routes."""
        del terms
        manager.http_filters.add(name=FILTER, typed_config=packed(cors_pb2.Cors()))


def allow(route: route_components_pb2.Route, allowed: Allowed) -> None:
    """Configure the filter for a route.

    A browser takes `*` literally in the answer to a request with credentials (Fetch standard, "CORS
    protocol and credentials"). Envoy then answers the method and headers of the preflight request.
    """
    message = cors_pb2.CorsPolicy(
        allow_origin_string_match=map(_origin, allowed.origins),
        allow_methods=_listed(allowed.methods),
        allow_headers=_listed(allowed.request_headers),
        expose_headers=_listed(allowed.exposed_headers),
        max_age=str(int(allowed.max_age.total_seconds())),
        allow_credentials=BoolValue(value=allowed.credentials),
    )
    route.typed_per_filter_config[FILTER].CopyFrom(packed(message))


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _origin(pattern: str) -> string_pb2.StringMatcher:
    """Match an origin; `*` stands for any text, for example several labels of a host."""
    if _ANY not in pattern:
        return string_pb2.StringMatcher(exact=pattern)
    return full_match(".*".join(map(re.escape, pattern.split(_ANY))))
