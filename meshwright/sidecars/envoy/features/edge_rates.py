"""Rates of clients at a gateway's listener: local limits of each proxy, and a rate limit service.

Each limit has a local rate limit filter of its own, because the status and the headers of the answer belong
to a filter. The filters are in the listener and not in the routes, so that one bucket counts the requests for
all host names. A filter counts the requests for which its action makes a descriptor: the requests of a path,
those of no such path, or the requests of each client address.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.policies.client_traffic import ClientRates
from meshwright.mesh.policies.limits import RateLimit
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules import matching, rate_services, rates
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from protos.envoy.extensions.filters.http.local_ratelimit.v3 import local_rate_limit_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_CLIENTS: Final = 10_000
"""Client addresses with a bucket at one proxy; beyond them the least recently seen loses its bucket."""

_PATH: Final = "path"
_CLIENT: Final = "remote_address"

_Action = route_components_pb2.RateLimit.Action
_Descriptor = ratelimit_pb2.LocalRateLimitDescriptor
_Entry = ratelimit_pb2.RateLimitDescriptor.Entry
_Filter = local_rate_limit_pb2.LocalRateLimit


@dataclass(frozen=True, slots=True)
class EdgeRates(Feature):
    """The rates of a listener for clients outside the mesh."""

    rates: ClientRates

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add a filter for each limit: of each client first, so that one client cannot use up a total."""
        del terms
        for name, message in self._filters():
            manager.http_filters.add(name=f"{rates.HTTP_FILTER}.{name}", typed_config=packed(message))
        if (counted := self.rates.limits.counted_requests) is not None:
            asking = packed(rate_services.of_requests(counted))
            manager.http_filters.add(name=rate_services.HTTP_FILTER, typed_config=asking)

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Add the descriptors of the rate limit service for all requests."""
        if (counted := self.rates.limits.counted_requests) is not None:
            for host in routes.virtual_hosts:
                host.rate_limits.extend(rate_services.rate_limits(counted.descriptors))

    def _filters(self) -> Iterator[tuple[str, _Filter]]:
        limits = self.rates.limits
        if self.rates.per_client is not None:
            by_address = _Action(remote_address=_Action.RemoteAddress())
            yield "client", _limit("edge-client", self.rates.per_client, by_address, _Entry(key=_CLIENT))
        paths = tuple(route.path_regex for route in limits.routes)
        for number, route in enumerate(limits.routes):
            if route.limit is not None:
                first = _first(paths[:number], route.path_regex)
                yield f"path-{number}", _limit("edge-path", route.limit, first, _MATCHED)
        if limits.requests is not None:
            yield "requests", _limit("edge-requests", limits.requests, _first(paths), _MATCHED)


_MATCHED: Final = _Entry(key=_PATH, value="counted")


def _limit(stat_prefix: str, limit: RateLimit, action: _Action, entry: _Entry) -> _Filter:
    """Return a filter that counts the requests for which `action` makes the descriptor `entry`."""
    message = rates.of_requests(stat_prefix, limit)
    bucket = message.token_bucket
    message.descriptors.append(_Descriptor(entries=[entry], token_bucket=bucket))
    message.rate_limits.append(route_components_pb2.RateLimit(actions=[action]))
    # Requests without the descriptor are not counted at all.
    message.ClearField("token_bucket")
    message.always_consume_default_token_bucket.CopyFrom(BoolValue(value=False))
    message.max_dynamic_descriptors.CopyFrom(UInt32Value(value=_CLIENTS))
    return message


def _first(earlier: tuple[str, ...], path_regex: str = ".*") -> _Action:
    """Return the action for the requests that match `path_regex`, and none of the earlier expressions."""
    headers = [matching.path_matcher(regex) for regex in (*earlier, path_regex)]
    for header in headers[:-1]:
        header.invert_match = True
    match = _Action.HeaderValueMatch(descriptor_key=_PATH, descriptor_value=_MATCHED.value, headers=headers)
    return _Action(header_value_match=match)
