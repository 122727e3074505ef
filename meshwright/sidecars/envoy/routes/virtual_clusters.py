"""Virtual clusters, which only count requests by the match that admits them.

Rules decide on admission (`features.access`), independently of the route. A request is counted by the first
fitting match; a denied request is not counted by any. Callers are not distinguished.
"""

from collections.abc import Iterable
from typing import Final

from catalog.policy.values.inbound import InboundPort, NamedMatch, OnlyRules
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.rules import matching
from protos.envoy.config.route.v3 import route_components_pb2

MOST: Final = 16
"""Greatest number of counted matches of a port, by group and name; further ones are counted together."""

_Cluster = route_components_pb2.VirtualCluster


def counted(port: InboundPort) -> Iterable[_Cluster]:
    """Yield the virtual clusters of a port: one per match, then one for the rest.

    The result is empty if requests are admitted by one match only.
    """
    own, others = _ways(port)
    if len(own) + others > 1:
        for named_match in own:
            name = names.counted_route(port.port, (named_match.group,), (named_match.match.name,))
            yield _Cluster(name=name, headers=_headers(named_match.match))
        # Also for requests that an expression misses because a query follows the end of the path.
        yield _Cluster(name=names.counted_route(port.port, (), ()), headers=[_anything()])


def _ways(port: InboundPort) -> tuple[tuple[NamedMatch, ...], bool]:
    """Return the counted matches, and whether requests may be admitted in another way."""
    if not isinstance(port.access, OnlyRules):
        return (), True
    # Rules that a proxy has rejected are left out of the policy, so their matches must not be counted.
    matches = {match for rule in port.access.rules for match in rule.matches or ()}
    own = tuple(named_match for named_match in port.named if named_match.match in matches)[:MOST]
    whole = any(rule.matches is None for rule in port.access.rules)
    return own, whole or len(own) < len(matches)


def _headers(match: HTTPMatch) -> Iterable[route_components_pb2.HeaderMatcher]:
    header_matchers = matching.header_matchers(match.request_match)
    if match.path_regex is not None:
        header_matchers.append(matching.path_matcher(match.path_regex))
    return header_matchers or [_anything()]


def _anything() -> route_components_pb2.HeaderMatcher:
    return route_components_pb2.HeaderMatcher(name=":method", present_match=True)
