"""Tests of long-lived traffic: HTTP upgrades, interim responses and idle TCP connections."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import re2

from catalog.policy.values.inbound import EveryoneInTheMesh
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.service import Protocol
from meshwright.sidecars.envoy.features.upgrades import other_than
from tests.meshes.resources import resources
from tests.meshes.route_entries import entry
from tests.unit.sidecars.envoy.test_translate import backend, decoded, inbound, outbound, policy
from xds.protocol.resources.resource import LISTENER

_MANAGER = "envoy.filters.network.http_connection_manager"
_TCP = "envoy.filters.network.tcp_proxy"


def filters(made: ProxyPolicy, name: str) -> list[dict[str, Any]]:
    """Return the configurations of every network filter with a name, in both directions."""
    listeners = [decoded(resource) for resource in resources(made) if resource.type_url == LISTENER]
    result = [
        item["typedConfig"]
        for listener in listeners
        for chain in listener["filterChains"]
        for item in chain["filters"]
        if item["name"] == name
    ]
    assert len(listeners) > 1
    assert result
    return result


def of(protocol: Protocol, long_lived: LongLived) -> ProxyPolicy:
    """Return the policy of a proxy that receives and makes calls in one protocol."""
    ports = (inbound(EveryoneInTheMesh(), protocol=protocol),)
    called = outbound(protocol, entry(backend("a", 1), backend("b", 1)))
    return replace(policy(inbound=ports, outbound=(called,), passthrough=True), long_lived=long_lived)


def test_interim_responses_come_from_the_application() -> None:
    """Otherwise Envoy answers `Expect: 100-continue` by itself and drops 103."""
    managers = filters(of(Protocol.HTTP, LongLived()), _MANAGER)
    assert [manager.get("proxy100Continue") for manager in managers] == [True] * len(managers)


@pytest.mark.parametrize(
    ("upgrades", "passing"), [(("websocket",), ["websocket"]), (("tls/1.2", "x"), ["tls/1.2", "x"]), ((), [])]
)
def test_only_configured_upgrades_pass(upgrades: tuple[str, ...], passing: list[str]) -> None:
    """In both directions, an expression makes Envoy ignore the others."""
    for item in filters(of(Protocol.HTTP, LongLived(upgrades=upgrades)), _MANAGER):
        assert [one["upgradeType"] for one in item.get("upgradeConfigs", [])] == passing
        ignored = item["httpProtocolOptions"]["ignoreHttp11Upgrade"]
        assert ignored == [{"safeRegex": {"regex": other_than(upgrades)}}]


@pytest.mark.parametrize(
    ("names", "kept", "ignored"),
    [
        (
            ("websocket",),
            ["websocket", "WebSocket"],
            ["", "w", "web", "websockets", "h2c", "TLS/1.2", "xwebsocket"],
        ),
        (("ws", "wss"), ["ws", "WSS"], ["w", "wsss", "wsx", "s"]),
        (
            ("a/1.0", "a-b", "a_c", "^]"),
            ["A/1.0", "a-b", "a_c", "^]"],
            ["a/1x0", "a", "a/1.00", "^", "a-", "b"],
        ),
        ((), [], ["", "websocket"]),
    ],
)
def test_expression_of_ignored_upgrades_fits_every_other_name(
    names: tuple[str, ...], kept: list[str], ignored: list[str]
) -> None:
    """RE2, which Envoy uses, confirms it in upper and lower case."""
    expression = re2.compile(other_than(names))
    assert [item for item in (*kept, *ignored) if expression.fullmatch(item)] == ignored


@pytest.mark.parametrize(
    ("idle", "written"), [(None, "0s"), (timedelta(days=7), "604800s"), (timedelta(seconds=90), "90s")]
)
def test_idle_tcp_connections_have_the_configured_timeout(idle: timedelta | None, written: str) -> None:
    """It is written in both directions, because Envoy would end idle connections after an hour otherwise."""
    result = filters(of(Protocol.TCP, LongLived(tcp_idle=idle)), _TCP)
    assert [item.get("idleTimeout") for item in result] == [written] * len(result)
