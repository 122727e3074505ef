"""Entries of a route table as Envoy routes: match, action, and the treatment of requests.

An entry is one route. The kinds of objects behind an entry have no effect here, so a new kind needs no code
in this module unless it brings a new action, match or treatment.
"""

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.route_table import (
    Answer,
    Forward,
    RequestMirror,
    RequestTreatment,
    RouteEntry,
    WeightedBackend,
)
from meshwright.mesh.matching import Regex, RequestMatch
from meshwright.mesh.policies.upstreams import HashKey, KeyKind
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import percent
from meshwright.sidecars.envoy.features import faults
from meshwright.sidecars.envoy.rules import headers, matching
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_components_pb2

_Route = route_components_pb2.Route
_Action = route_components_pb2.RouteAction
RetryPolicy = route_components_pb2.RetryPolicy


def entry_route(entry: RouteEntry, name: str, retry: RetryPolicy | None) -> _Route:
    """Return the route of an entry; without a `retry` of the caller, the retries of the mesh apply."""
    match entry.action:
        case Forward() as forward:
            result = to_route(name, entry.matches, _forwarding(forward, retry))
        case Answer(status):
            answer = route_components_pb2.DirectResponseAction(status=status)
            result = _Route(name=name, match=_match(entry.matches), direct_response=answer)
    if entry.treatment is not None:
        _treat(result, entry.treatment)
    return result


def to_route(name: str, matches: tuple[RequestMatch, ...], action: _Action) -> _Route:
    """Return a route of requests that fit all of `matches`."""
    return _Route(name=name, match=_match(matches), route=action)


def to_cluster(cluster: str) -> _Action:
    """Return the action that sends requests to one cluster, without a timeout."""
    return _Action(cluster=cluster, timeout=Duration())


def _forwarding(forward: Forward, retry: RetryPolicy | None) -> _Action:
    action = _to_shares(forward.shares)
    action.timeout.CopyFrom(Duration() if forward.timeout is None else duration(forward.timeout))
    for mirror in forward.mirrors:
        _mirror(action, mirror)
    for key in forward.keys:
        _hash(action, key)
    if retry is not None:
        action.retry_policy.CopyFrom(retry)
    return action


def _to_shares(shares: tuple[WeightedBackend, ...]) -> _Action:
    if len(shares) == 1:
        return _Action(cluster=names.cluster(shares[0]))
    # Backends of weight 0 stay, so that a new weight changes only this route configuration.
    weighted = route_components_pb2.WeightedCluster(
        clusters=[
            route_components_pb2.WeightedCluster.ClusterWeight(
                name=names.cluster(backend), weight=UInt32Value(value=backend.weight)
            )
            for backend in shares
        ]
    )
    return _Action(weighted_clusters=weighted)


def _mirror(action: _Action, mirror: RequestMirror) -> None:
    """Mirror requests; the copy keeps the host, to which Envoy would append `-shadow`."""
    action.request_mirror_policies.add(
        cluster=names.cluster(mirror.backend),
        runtime_fraction=base_pb2.RuntimeFractionalPercent(default_value=percent(mirror.percent)),
        disable_shadow_host_suffix_append=True,
    )


def _hash(action: _Action, key: HashKey) -> None:
    match key.kind:
        case KeyKind.HEADER:
            header = _Action.HashPolicy.Header(header_name=matching.header_name(key.name))
            action.hash_policy.add(header=header)
        case KeyKind.COOKIE:
            ttl = None if key.ttl is None else duration(key.ttl)
            cookie = _Action.HashPolicy.Cookie(name=key.name, ttl=ttl, path=key.path)
            action.hash_policy.add(cookie=cookie)
        case KeyKind.QUERY:
            action.hash_policy.add(query_parameter=_Action.HashPolicy.QueryParameter(name=key.name))


def _treat(result: _Route, treatment: RequestTreatment) -> None:
    result.request_headers_to_add.extend(headers.to_add(treatment.request_headers))
    result.request_headers_to_remove.extend(treatment.request_headers.remove)
    result.response_headers_to_add.extend(headers.to_add(treatment.response_headers))
    result.response_headers_to_remove.extend(treatment.response_headers.remove)
    if treatment.faulty:
        faults.harm(result, treatment)


def _match(matches: tuple[RequestMatch, ...]) -> route_components_pb2.RouteMatch:
    """Match requests that fit all conditions.

    A route takes one path expression, so further ones match a header.
    """
    headers = [header for match in matches for header in matching.header_matchers(match)]
    paths = [match.path.regex for match in matches if isinstance(match.path, Regex)]
    headers += map(matching.path_matcher, paths[1:])
    if not paths:
        return route_components_pb2.RouteMatch(prefix="/", headers=headers)
    regex = matching.full_match(paths[0]).safe_regex
    return route_components_pb2.RouteMatch(safe_regex=regex, headers=headers)
