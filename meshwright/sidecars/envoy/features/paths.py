"""Normalisation of paths: rules and splits must match the path seen by the application.

Dot segments are resolved first. An escaped slash, which applications interpret in two ways, is refused (400),
unless the Service declares that it is not a separator. Otherwise `/books/.*` would admit `/books/..%2fadmin`,
and a split at the client would see another path than the rules of the server.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.service import EscapedSlashes
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules import matching
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_SLASH: Final = r"(?:/|\\|%2f|%5c)"
_DOT_SEGMENT: Final = rf"(?i).*{_SLASH}(?:\.|%2e){{1,2}}(?:(?:;|{_SLASH}).*)?"
"""Path with a dot segment after unescaping slashes, backslashes and dots, or cutting parameters (`;`)."""

_Manager = hcm_pb2.HttpConnectionManager
_ACTIONS: Final = {
    EscapedSlashes.REJECT: _Manager.PathWithEscapedSlashesAction.REJECT_REQUEST,
    EscapedSlashes.KEEP: _Manager.PathWithEscapedSlashesAction.KEEP_UNCHANGED,
}


@dataclass(frozen=True, slots=True)
class Paths(Feature):
    """Normalisation of paths; `guarded` if access rules match paths, and not only splits."""

    slashes: EscapedSlashes
    guarded: bool = False

    def to_manager(self, manager: _Manager, terms: MeshTerms) -> None:
        """Enable the normalisation of paths, with the setting for escaped slashes."""
        del terms
        manager.normalize_path.CopyFrom(BoolValue(value=True))
        manager.path_with_escaped_slashes_action = _ACTIONS[self.slashes]

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Refuse, before any other route, paths that an application might read differently from the rules.

        With kept escaped slashes, dot segments beside one are not resolved. The route is present at every
        port, because a connection keeps the setting with which it began until the filter chain has drained.
        """
        if self.guarded:
            (host,) = routes.virtual_hosts
            host.routes.insert(0, guard())


@cache
def guard() -> route_components_pb2.Route:
    """Return the route that refuses a path with a hidden dot segment, for example `/books/..%2Fadmin`."""
    return route_components_pb2.Route(
        name="escaped-dot-segment",
        match=route_components_pb2.RouteMatch(safe_regex=matching.full_match(_DOT_SEGMENT).safe_regex),
        direct_response=route_components_pb2.DirectResponseAction(status=400),
    )
