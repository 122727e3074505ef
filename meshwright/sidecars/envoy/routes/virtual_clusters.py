"""By which match requests are admitted, each counted: virtual clusters, which count and do nothing else.

Who is admitted, rules decide (`features.access`), and by which route a request goes is no affair of theirs. A
request is counted where the first fits; one that is denied comes to none. Callers are not told apart.
"""

from collections.abc import Iterable
from typing import Final

from catalog.policy.values.inbound import InboundPort, NamedMatch, OnlyRules
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.rules import matching
from protos.envoy.config.route.v3 import route_components_pb2

MOST: Final = 16
"""So many matches of a port are counted, the first by group and name; the others together, as the rest."""

_Cluster = route_components_pb2.VirtualCluster


def counted(port: InboundPort) -> Iterable[_Cluster]:
    """Yield what counts the requests of a port: by match, and last the rest.

    Nothing where requests come by one match alone.
    """
    own, others = _ways(port)
    if len(own) + others > 1:
        for each in own:
            name = names.counted_route(port.port, (each.group,), (each.match,))
            yield _Cluster(name=name, headers=_headers(each.match))
        # Also of what an expression misses that looks for the end of a path where a query follows.
        yield _Cluster(name=names.counted_route(port.port, (), ()), headers=[_anything()])


def _ways(port: InboundPort) -> tuple[tuple[NamedMatch, ...], bool]:
    """Return the matches that are counted, and whether requests may come by anything else."""
    if not isinstance(port.access, OnlyRules):
        return (), True
    # What is left out for being rejected is no more among the rules.
    matches = {match for rule in port.access.rules for match in rule.matches or ()}
    own = tuple(each for each in port.named if each.match in matches)[:MOST]
    whole = any(rule.matches is None for rule in port.access.rules)
    return own, whole or len(own) < len(matches)


def _headers(match: HTTPMatch) -> Iterable[route_components_pb2.HeaderMatcher]:
    found = matching.header_matchers(match)
    if match.path_regex is not None:
        found.append(matching.path_matcher(match.path_regex))
    return found or [_anything()]


def _anything() -> route_components_pb2.HeaderMatcher:
    return route_components_pb2.HeaderMatcher(name=":method", present_match=True)
