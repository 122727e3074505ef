"""Rate limits of an external service as Envoy messages: the service, and the descriptors sent to it."""

from collections.abc import Iterable
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from meshwright.mesh.policies.rate_services import (
    CountedConnections,
    CountedRequests,
    Descriptor,
    Entry,
    Exact,
    GenericKey,
    HeaderCriterion,
    HeaderPresence,
    HeaderValueMatch,
    Prefix,
    RateLimitService,
    Regex,
    RemoteAddress,
    RequestHeader,
    Substring,
    Suffix,
)
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.rules.matching import full_match, header_name
from protos.envoy.config.core.v3 import config_source_pb2, grpc_service_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.config.ratelimit.v3 import rls_pb2
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from protos.envoy.extensions.filters.http.ratelimit.v3 import rate_limit_pb2 as http_pb2
from protos.envoy.extensions.filters.network.ratelimit.v3 import rate_limit_pb2 as network_pb2
from protos.envoy.type.matcher.v3 import string_pb2
from protos.envoy.type.v3 import http_status_pb2

HTTP_FILTER: Final = "envoy.filters.http.ratelimit"
NETWORK_FILTER: Final = "envoy.filters.network.ratelimit"

_RateLimit = route_components_pb2.RateLimit
_Action = _RateLimit.Action


def of_connections(stat_prefix: str, counted: CountedConnections) -> listener_components_pb2.Filter:
    """Return the network filter that asks the rate limit service about each new connection."""
    descriptors = [
        ratelimit_pb2.RateLimitDescriptor(
            entries=[
                ratelimit_pb2.RateLimitDescriptor.Entry(key=key, value=value) for key, value in descriptor
            ]
        )
        for descriptor in counted.descriptors
    ]
    message = network_pb2.RateLimit(
        stat_prefix=stat_prefix,
        domain=counted.asked.domain,
        descriptors=descriptors,
        timeout=duration(counted.asked.timeout),
        failure_mode_deny=not counted.asked.fails_open,
        rate_limit_service=_service(counted.asked),
    )
    return listener_components_pb2.Filter(name=NETWORK_FILTER, typed_config=packed(message))


def of_requests(counted: CountedRequests) -> http_pb2.RateLimit:
    """Return the HTTP filter that asks the rate limit service; descriptors are part of the routes."""
    return http_pb2.RateLimit(
        domain=counted.asked.domain,
        timeout=duration(counted.asked.timeout),
        failure_mode_deny=not counted.asked.fails_open,
        rate_limited_as_resource_exhausted=True,
        rate_limit_service=_service(counted.asked),
        enable_x_ratelimit_headers=(
            http_pb2.RateLimit.XRateLimitHeadersRFCVersion.DRAFT_VERSION_03
            if counted.shows_limits
            else http_pb2.RateLimit.XRateLimitHeadersRFCVersion.OFF
        ),
        rate_limited_status=http_status_pb2.HttpStatus(code=http_status_pb2.StatusCode.Name(counted.status)),
    )


def rate_limits(descriptors: Iterable[Descriptor]) -> list[_RateLimit]:
    """Return the rate limit descriptors for the requests of a route or a virtual host."""
    return [_RateLimit(actions=map(_action, descriptor)) for descriptor in descriptors]


def _service(rate_limit_service: RateLimitService) -> rls_pb2.RateLimitServiceConfig:
    cluster = names.rate_limit_cluster(rate_limit_service.server)
    return rls_pb2.RateLimitServiceConfig(
        grpc_service=grpc_service_pb2.GrpcService(
            envoy_grpc=grpc_service_pb2.GrpcService.EnvoyGrpc(cluster_name=cluster)
        ),
        transport_api_version=config_source_pb2.ApiVersion.V3,
    )


def _action(entry: Entry) -> _Action:
    match entry:
        case GenericKey(key, value):
            return _Action(generic_key=_Action.GenericKey(descriptor_key=key, descriptor_value=value))
        case RemoteAddress():
            return _Action(remote_address=_Action.RemoteAddress())
        case RequestHeader(key, name):
            headers = _Action.RequestHeaders(header_name=header_name(name), descriptor_key=key)
            return _Action(request_headers=headers)
        case HeaderValueMatch(key, value, headers, expected):
            match_ = _Action.HeaderValueMatch(
                descriptor_key=key,
                descriptor_value=value,
                expect_match=BoolValue(value=expected),
                headers=map(_criterion, headers),
            )
            return _Action(header_value_match=match_)


def _criterion(wanted: HeaderCriterion) -> route_components_pb2.HeaderMatcher:
    name = header_name(wanted.name)
    match wanted.value:
        case HeaderPresence(there):
            return route_components_pb2.HeaderMatcher(name=name, present_match=there)
        case Exact(text):
            string_matcher = string_pb2.StringMatcher(exact=text)
        case Prefix(text):
            string_matcher = string_pb2.StringMatcher(prefix=text)
        case Suffix(text):
            string_matcher = string_pb2.StringMatcher(suffix=text)
        case Substring(text):
            string_matcher = string_pb2.StringMatcher(contains=text)
        case Regex(text):
            string_matcher = full_match(text)
    return route_components_pb2.HeaderMatcher(name=name, string_match=string_matcher)
