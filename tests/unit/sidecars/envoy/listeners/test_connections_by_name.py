"""Tests of calls to a port without HTTP: shares of connections, and entries by server name."""

from dataclasses import replace
from typing import Any

from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.route_actions import Answer, AnsweredShare, Forward
from catalog.policy.values.route_table import RouteEntry
from meshwright.mesh.service import Protocol
from meshwright.sidecars.envoy import names
from tests.unit.sidecars.envoy.test_translate import backend, only, outbound, policy
from xds.protocol.resources.resource import LISTENER


def listener(*table: RouteEntry) -> dict[str, Any]:
    """Return the listener for all calls of a proxy that calls a port with this table."""
    called = outbound(Protocol.TCP, *table)
    wanted = policy(outbound=(called,), passthrough=True)
    return only(replace(wanted, interception=InterceptionKind.TRANSPARENT), LISTENER)


def chains(of: dict[str, Any]) -> list[tuple[list[str], Any]]:
    """Return the server names and the destination of each chain of the called service."""
    result = []
    for chain in of["filterChains"]:
        if not chain["name"].startswith("outbound_"):
            continue
        match, (proxy,) = chain["filterChainMatch"], chain["filters"]
        assert match["prefixRanges"] == [{"addressPrefix": "10.96.0.1", "prefixLen": 32}]
        asked = match.get("serverNames", [])
        assert match.get("transportProtocol") == ("tls" if asked else None)
        to = proxy["typedConfig"]
        weighted = to.get("weightedClusters", {}).get("clusters", [])
        result.append((asked, to.get("cluster") or [(item["name"], item["weight"]) for item in weighted]))
    return result


def entry(*shares: Any, asked: tuple[str, ...] = ()) -> RouteEntry:
    """Return an entry for connections that ask for these names."""
    return RouteEntry((), Forward(shares) if shares else Answer(500), server_names=asked)


def test_answered_share_of_connections_is_closed() -> None:
    """Envoy refuses weights of 0 here, and closes a connection to a cluster that does not exist."""
    shares = (backend("a", 3), AnsweredShare(500, 1), backend("b", 0))
    assert chains(listener(entry(*shares))) == [([], [("default/a|8080", 3), (names.NO_CLUSTER, 1)])]
    assert chains(listener(entry())) == [([], names.NO_CLUSTER)]


def test_connections_for_other_names_are_closed() -> None:
    """Without their chain they would take the default one, which leads to their original destination."""
    by_name = listener(
        entry(backend("a", 1), asked=("a.example", "*.b.example")), entry(asked=("c.example",))
    )
    assert "defaultFilterChain" in by_name
    assert chains(by_name) == [
        (["a.example", "*.b.example"], "default/a|8080"),
        (["c.example"], names.NO_CLUSTER),
        ([], names.NO_CLUSTER),
    ]
    rest = listener(entry(backend("a", 1), asked=("a.example",)), entry(backend("b", 1)))
    assert chains(rest) == [(["a.example"], "default/a|8080"), ([], "default/b|8080")]


def test_names_are_read_only_on_ports_that_need_them() -> None:
    """An inspector would delay clients of other ports that wait for the server's first bytes."""
    inspector = "envoy.filters.listener.tls_inspector"
    plain, by_name = listener(entry(backend("a", 1))), listener(entry(backend("a", 1), asked=("a.example",)))
    assert inspector not in [item["name"] for item in plain["listenerFilters"]]
    (found,) = [item for item in by_name["listenerFilters"] if item["name"] == inspector]
    assert found["filterDisabled"] == {"notMatch": {"destinationPortRange": {"start": 80, "end": 81}}}
