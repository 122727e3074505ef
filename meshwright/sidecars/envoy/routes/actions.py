"""Forwarding of requests to clusters as Envoy's RouteAction: shares, rewrites, mirrors, hashes and limits."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.route_actions import Forward, RequestMirror, WeightedBackend
from meshwright.mesh.gateway.filters import Rewrite
from meshwright.mesh.policies.upstreams import HashKey, KeyKind
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import fraction
from meshwright.sidecars.envoy.routes.attempts import Attempts
from meshwright.sidecars.envoy.routes.rewrites import path_change
from meshwright.sidecars.envoy.rules import matching
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_components_pb2

_Action = route_components_pb2.RouteAction
_Weights = route_components_pb2.WeightedCluster


def to_cluster(cluster: str) -> _Action:
    """Return the action that sends requests to one cluster, without a timeout."""
    return _Action(cluster=cluster, timeout=Duration())


def to_backends(forward: Forward, backends: tuple[WeightedBackend, ...], attempts: Attempts) -> _Action:
    """Return the action that sends requests to some of the backends of `forward`, without rewrites."""
    action = _clusters(backends)
    # Without a value Envoy would have a limit of 15 seconds.
    action.timeout.CopyFrom(Duration() if forward.timeout is None else duration(forward.timeout))
    if forward.mirrors:
        mirror(action, forward.mirrors)
    for key in forward.keys:
        _hash(action, key)
    if (retry := attempts.policy(forward)) is not None:
        action.retry_policy.CopyFrom(retry)
    return action


def _clusters(backends: tuple[WeightedBackend, ...]) -> _Action:
    if len(backends) == 1:
        return _Action(cluster=names.cluster(backends[0]))
    # Backends of weight 0 stay, so that a new weight changes only this route configuration.
    weights = [
        _Weights.ClusterWeight(name=names.cluster(backend), weight=UInt32Value(value=backend.weight))
        for backend in backends
    ]
    return _Action(weighted_clusters=_Weights(clusters=weights))


def rewrite(action: _Action, wanted: Rewrite, matched: str) -> None:
    """Change host and path of requests whose paths begin with `matched`."""
    if wanted.host is not None:
        action.host_rewrite_literal = wanted.host
    if wanted.path is None:
        return
    change = path_change(wanted.path, matched)
    if change.substitution is not None:
        action.regex_rewrite.CopyFrom(change.substitution)
    elif change.prefix is not None:
        action.prefix_rewrite = change.prefix


def mirror(action: _Action, mirrors: Iterable[RequestMirror]) -> None:
    """Mirror requests; the copies keep the host, to which Envoy would append `-shadow`."""
    for wanted in mirrors:
        share = fraction(wanted.numerator, wanted.denominator)
        action.request_mirror_policies.add(
            cluster=names.cluster(wanted.backend),
            runtime_fraction=base_pb2.RuntimeFractionalPercent(default_value=share),
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
