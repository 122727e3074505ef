"""The router: the last HTTP filter, which sends the request to the cluster of the chosen route."""

from functools import cache

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.extensions.filters.http.router.v3 import router_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class Router(Feature):
    """Envoy's router, without adding x-envoy headers."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the router filter."""
        del terms
        manager.http_filters.append(_filter())


@cache
def _filter() -> hcm_pb2.HttpFilter:
    router = router_pb2.Router(suppress_envoy_headers=True)
    return hcm_pb2.HttpFilter(name="envoy.filters.http.router", typed_config=packed(router))
