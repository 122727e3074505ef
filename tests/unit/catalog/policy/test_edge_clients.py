"""Settings for clients at the ports of a gateway's proxies, from ClientTrafficPolicies."""

from dataclasses import replace

from catalog.policy.edge import edge_ports
from catalog.policy.provenance import made_from
from catalog.policy.values.parts import GatewayPorts
from catalog.relations.groups import group_of
from catalog.store.view import View
from meshwright.mesh.kinds import CLIENT_TRAFFIC_POLICY
from meshwright.mesh.policies.client_traffic import (
    DEFAULTS,
    PORT_DEFAULTS,
    ClientSettings,
    ClientTarget,
    PortSettings,
)
from tests.meshes import gateway as g
from tests.unit.catalog.policy.test_edge import EDGE, MESH

A = ClientTarget("edge", "a")
WHOLE, OWN = g.client_policy("whole", connections=1), g.client_policy("own", A, connections=2)
PROXIED = replace(OWN, port=PortSettings(proxy_protocol=True))


def settings(view: View) -> list[tuple[int, PortSettings, dict[str, ClientSettings]]]:
    """Return number and settings of each port, and the settings of its chains by server name."""
    return [
        (
            port.port,
            port.settings,
            {"" if chain.tls is None else chain.tls.server_name: chain.settings for chain in port.chains},
        )
        for port in edge_ports(view, group_of(view, EDGE))
    ]


def test_chains_of_server_names_have_settings_of_their_own() -> None:
    """Those of the port are one for all chains."""
    gateway = g.gateway("edge", g.https("a", "a.example"), g.https("b", "b.example"))
    view = g.view(*MESH, g.tls_secret(), gateway, WHOLE, PROXIED)
    chains = {"a.example": ClientSettings(2), "b.example": ClientSettings(1)}
    assert settings(view) == [(443, PortSettings(proxy_protocol=True), chains)]


def test_listeners_in_plain_text_share_their_settings() -> None:
    """A port without a policy of its own has that of the Gateway, else the defaults."""
    listeners = (g.listener("a", 80, "a.example"), g.listener("b", 80, "b.example"), g.listener("c", 81))
    tcp = g.listener("d", 82, protocol="TCP")
    gateway = g.gateway("edge", *listeners, tcp)
    assert settings(g.view(*MESH, gateway, WHOLE, OWN)) == [
        (80, PORT_DEFAULTS, {"": ClientSettings(2)}),
        (81, PORT_DEFAULTS, {"": ClientSettings(1)}),
        (82, PORT_DEFAULTS, {"": ClientSettings(1)}),
    ]
    assert settings(g.view(*MESH, gateway, OWN))[1:] == [
        (81, PORT_DEFAULTS, {"": DEFAULTS}),
        (82, PORT_DEFAULTS, {"": DEFAULTS}),
    ]


def test_policy_is_behind_the_ports_of_its_gateway() -> None:
    """A rejected listener is then attributed to it; a policy of another gateway is not behind them."""
    view = g.view(*MESH, g.gateway("edge"), WHOLE, g.client_policy("other", ClientTarget("other")))
    behind = made_from(view, group_of(view, EDGE), GatewayPorts())
    assert [item.key.name for item in behind if item.key.kind == CLIENT_TRAFFIC_POLICY] == ["whole"]
