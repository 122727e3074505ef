"""Tests of request counts by the match that admits a request; a port with one match has none."""

from collections.abc import Iterable

import pytest
import re2

from catalog.policy.values.inbound import (
    Access,
    AccessRule,
    EveryoneInTheMesh,
    InboundPort,
    NamedMatch,
    OnlyRules,
)
from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import Protocol
from meshwright.sidecars.envoy.routes.virtual_clusters import MOST, counted
from meshwright.sidecars.envoy.rules import matching
from meshwright.sidecars.envoy.telemetry.stat_names import admitted_by, route
from tests.meshes import values as a

BUY, SELL = a.match("buy", "/buy", "POST"), a.match("sell", "/sell", headers=(("x-kind", "b.*"),))
ALL = a.match("all")


def rule(*matches: HTTPMatch, whole: bool = False) -> AccessRule:
    """Return a TrafficTarget's rule for the buyer."""
    by = ObjectKey.from_name(TRAFFIC_TARGET, a.policy_key("t"))
    return AccessRule(by, (a.identity("buyer"),), None if whole else matches)


def port(access: Access, named: Iterable[HTTPMatch]) -> InboundPort:
    """Return a port whose matches belong to one group."""
    where = SocketAddress(IpAddress("127.0.0.1"), Port(8080))
    named_matches = tuple(NamedMatch(a.policy_key("routes"), http_match) for http_match in named)
    return InboundPort(
        Port(8080), Protocol.HTTP, (a.service_key("shop"),), where, access, named=named_matches
    )


MANY = tuple(a.match(f"m{number:02}", f"/{number}") for number in range(MOST + 1))
RULES = "8080|default/routes"


@pytest.mark.parametrize(
    ("access", "named", "expected"),
    [
        (OnlyRules(()), (), []),
        (OnlyRules((rule(BUY),)), (BUY,), []),
        (OnlyRules((rule(BUY), rule(BUY))), (BUY,), []),
        (OnlyRules((rule(whole=True),)), (), []),
        (OnlyRules((rule(BUY, SELL),)), (BUY, SELL), [f"{RULES}/buy", f"{RULES}/sell", "8080|rest"]),
        (OnlyRules((rule(BUY), rule(whole=True))), (BUY,), [f"{RULES}/buy", "8080|rest"]),
        (OnlyRules((rule(BUY), rule(SELL))), (BUY,), [f"{RULES}/buy", "8080|rest"]),  # of an IngressBackend
        (OnlyRules((rule(BUY),)), (BUY, SELL), []),  # a rejected match is left out of the rules
        (EveryoneInTheMesh((rule(BUY, SELL),)), (BUY, SELL), []),
        (OnlyRules((rule(*MANY),)), MANY, [*(f"{RULES}/m{n:02}" for n in range(MOST)), "8080|rest"]),
    ],
)
def test_requests_are_counted_by_match_if_a_port_has_several(
    access: Access, named: tuple[HTTPMatch, ...], expected: list[str]
) -> None:
    """The first `MOST` matches and the rest are counted. Each name can be parsed from a statistic."""
    virtual_clusters = list(counted(port(access, named)))
    assert [virtual_cluster.name for virtual_cluster in virtual_clusters] == expected
    for virtual_cluster in virtual_clusters:
        statistic = f"default/shop.vcluster.{virtual_cluster.name}"
        assert admitted_by(statistic) == tuple(virtual_cluster.name.split("|", 1))
        assert route(statistic) is None


def test_virtual_cluster_matches_method_headers_and_path() -> None:
    """The query of a path is ignored. Envoy accepts no virtual cluster without a condition."""
    buy, sell, everything, rest = counted(port(OnlyRules((rule(BUY, SELL, ALL),)), (BUY, SELL, ALL)))
    assert [header.name for header in buy.headers] == [":method", ":path"]
    assert buy.headers[0].string_match.exact == "POST"
    assert buy.headers[1].string_match.safe_regex.regex == "(?:/buy)(?:[?](?s:.*))?"
    assert [header.name for header in sell.headers] == ["x-kind", ":path"]
    for any_ in (everything, rest):
        assert [(header.name, header.present_match) for header in any_.headers] == [(":method", True)]


@pytest.mark.parametrize(
    ("regex", "path", "expected"),
    [
        ("/a", "/a", True),
        ("/a", "/a?b=/c", True),
        ("/a", "/ab", False),
        ("/a$", "/a?b", True),
        ("^/a$", "/a?b", True),
        (r"/a\z", "/a?b", True),
        ("/a|/b$", "/b?c", True),
        (r"/a\$", "/a$?b", True),
        (r"/a\$", "/a?b", False),
        (r"/a\\$", "/a\\?b", True),
        ("/[$]", "/$?b", True),
        (r"\Q/a.b", "/a.b?c", True),
        (r"\Q/a.b", "/acb", False),
        (r"/\Qa$", "/a$?c", True),
        (r"\Q/a\E|/b", "/b?c", True),
        (r"\Q/a\\E$", "/a\\?c", True),
    ],
)
def test_path_expression_fits_in_full_with_any_query(regex: str, path: str, expected: bool) -> None:
    """RE2 confirms this for every way in which an expression may end."""
    result = matching.path_matcher(regex).string_match.safe_regex.regex
    assert (re2.fullmatch(result, path) is not None) is expected


@pytest.mark.parametrize("named", ["default/shop.vcluster.other", "default/shop.route.80|rest"])
def test_other_statistics_of_a_virtual_host_belong_to_no_match(named: str) -> None:
    """Examples are Envoy's own `other`, and the routes of outbound calls."""
    assert admitted_by(named) is None
