"""ClientTrafficPolicies of gateways: which is in force at each listener, and which have lost."""

from dataclasses import replace

import pytest

from catalog.relations.gateways.client_traffic import (
    LostTarget,
    MissingTarget,
    client_traffic,
    missing_targets,
    overruled,
    policy_at,
)
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.store.own_policies import client_traffic_policies
from catalog.store.view import View
from meshwright.mesh.names import Port
from meshwright.mesh.policies.client_traffic import ClientTarget, ClientTrafficPolicy, PortSettings
from tests.meshes import gateway as g
from tests.meshes import values as a

A, B = ClientTarget("edge", "a"), ClientTarget("edge", "b")
OLD, YOUNG = "2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"
PLAIN = g.gateway(
    "edge", g.listener("a", 80, "a.example"), g.listener("b", 80, "b.example"), g.listener("c", 81)
)
TLS = g.gateway("edge", g.https("a", "a.example"), g.https("b", "b.example"), g.https("c", "c.example"))


def view_of(*things: object) -> View:
    """Return a view with the class of gateways, and a certificate."""
    return g.view(g.CLASS, g.tls_secret(), *things)


def in_force(*things: object) -> dict[str, str]:
    """Return the policy of each listener of gateway edge by name; empty without one."""
    view = view_of(*things)
    key = a.policy_key("edge")
    found = ((it.listener.name, policy_at(view, key, it)) for it in listener_verdicts(view, key))
    return {name: "" if policy is None else policy.key.name for name, policy in found}


def lost(*things: object) -> dict[str, list[LostTarget]]:
    """Return by policy where another one is in force."""
    view = view_of(*things)
    found = {key.name: [*overruled(view, policy)] for key, policy in client_traffic_policies(view).items()}
    return {name: parts for name, parts in found.items() if parts}


def test_policy_of_a_gateway_is_for_all_its_listeners() -> None:
    """Those of its ListenerSets too; another gateway has none of it."""
    whole = g.client_policy("whole")
    assert in_force(PLAIN) == {"a": "", "b": "", "c": ""}
    assert in_force(PLAIN, whole) == {"a": "whole", "b": "whole", "c": "whole"}
    assert in_force(PLAIN, g.client_policy("other", ClientTarget("other"))) == {"a": "", "b": "", "c": ""}
    added = g.listener_set("set", g.listener("d", 90))
    assert (
        in_force(replace(PLAIN, allowed_sets=g.open_gateway("edge").allowed_sets), added, whole)["d"]
        == "whole"
    )


def test_policy_of_a_listener_precedes_an_older_one_of_the_gateway() -> None:
    """Listeners with TLS have each their own; nobody has lost, because they differ in their targets."""
    policies = (g.client_policy("whole", created=OLD), g.client_policy("own", A, created=YOUNG))
    assert in_force(TLS, *policies) == {"a": "own", "b": "whole", "c": "whole"}
    assert lost(TLS, *policies) == {}


def test_section_is_a_listener_of_the_gateway_itself() -> None:
    """A listener of a ListenerSet with the same name is another one."""
    gateway = g.open_gateway("edge", g.listener("b", 80))
    assert in_force(gateway, g.listener_set("set", g.listener("a", 90)), g.client_policy("own", A)) == {
        "b": "",
        "a": "",
    }


@pytest.mark.parametrize("target", [A, ClientTarget("edge")], ids=["listener", "gateway"])
def test_older_policy_is_in_force_and_named(target: ClientTarget) -> None:
    """Without an age a policy comes last, and policies of one age go by their names."""
    old, young = g.client_policy("z", target, created=OLD), g.client_policy("a", target, created=YOUNG)
    ageless = g.client_policy("0", target)
    assert in_force(TLS, ageless, young, old)["a"] == "z"
    why = "it is older or first by name"
    by_z = [LostTarget("spec.targetRefs[0]", "", a.policy_key("z"), why)]
    assert lost(TLS, ageless, young, old) == {"a": by_z, "0": by_z}


def test_listeners_of_plain_http_share_one_policy_at_a_port() -> None:
    """They share their connections; a policy of a listener at another port is not concerned."""
    own = (g.client_policy("young", B, created=YOUNG), g.client_policy("old", A, created=OLD))
    third = g.client_policy("third", ClientTarget("edge", "c"))
    assert in_force(PLAIN, *own, third) == {"a": "old", "b": "old", "c": "third"}
    (part,) = lost(PLAIN, *own, third)["young"]
    assert (part.at, part.by.name) == (" at port 80", "old")


def test_settings_of_a_port_are_those_of_the_first_policy() -> None:
    """They count before the server name is known, so they are one for all listeners of the port."""
    proxied = PortSettings(proxy_protocol=True)
    old, young = (
        g.client_policy("old", A, created=OLD, port=proxied),
        g.client_policy("young", B, created=YOUNG),
    )
    assert in_force(TLS, young, old) == {"a": "old", "b": "young", "c": ""}
    port = client_traffic(view_of(TLS, young, old), a.policy_key("edge"))[Port(443)].port
    assert port is not None
    assert port.port == proxied
    (part,) = lost(TLS, young, old)["young"]
    assert (part.at, part.by.name) == (
        " in connections.bufferSize and clientAddress.proxyProtocol at port 443",
        "old",
    )
    assert lost(TLS, replace(young, port=proxied), old) == {}


def missing(policy: ClientTrafficPolicy) -> list[MissingTarget]:
    """Return the missing targets of a policy beside gateway edge."""
    return [*missing_targets(view_of(TLS, policy), policy)]


def test_missing_targets_are_named_with_their_reasons() -> None:
    """A Gateway, and a listener of an existing one."""
    assert missing(g.client_policy("good", A, ClientTarget("edge"))) == []
    assert missing(g.client_policy("lost", ClientTarget("edgy"), ClientTarget("edge", "aa"))) == [
        MissingTarget(
            "spec.targetRefs[0].name", "edgy", "Gateway default/edgy does not exist (did you mean edge?)"
        ),
        MissingTarget(
            "spec.targetRefs[1].sectionName",
            "aa",
            "Gateway default/edge has no listener aa (did you mean a?)",
        ),
    ]
