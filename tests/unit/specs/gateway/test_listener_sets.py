"""Tests of ListenerSets: whole values, and what is tolerated from a cluster."""

from meshwright.mesh.gateway.gateways import (
    AllowedRoutes,
    Listener,
    ListenerSet,
    ListenerTls,
    ObjectReference,
    RoutesFrom,
)
from meshwright.mesh.kinds import GATEWAY, SECRET, SERVICE
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.reader import read
from tests.unit.specs.gateway.manifests import IN_CLUSTER, IN_FILE, faults, manifest, route_of

KEY = PolicyKey(Namespace("shop"), "r")
HTTP = Listener("http", Port(80), "HTTP")
LISTENER = "{name: http, port: 80, protocol: HTTP}"


def test_whole_set_is_read() -> None:
    """Listeners have the form of a gateway's."""
    document = manifest(
        "ListenerSet",
        """
        parentRef: {name: public, namespace: edge}
        listeners:
        - {name: http, port: 80, protocol: HTTP}
        - name: https
          port: 443
          protocol: HTTPS
          hostname: shop.example
          tls: {certificateRefs: [{name: own}], options: {a: b}}
          allowedRoutes: {namespaces: {from: All}}
        """,
    )
    document["metadata"] |= {"generation": 7, "creationTimestamp": "2026-11-23T08:00:00Z"}
    document["status"] = {"listeners": "anything"}
    reading = read(document, IN_FILE)
    assert reading.problems == ()
    https = Listener(
        "https",
        Port(443),
        "HTTPS",
        "shop.example",
        ListenerTls(certificates=(ObjectReference(SECRET, "own"),)),
        AllowedRoutes(RoutesFrom.ALL),
    )
    expected = ListenerSet(
        KEY,
        ObjectReference(GATEWAY, "public", Namespace("edge")),
        (HTTP, https),
        7,
        "2026-11-23T08:00:00Z",
        ("spec.listeners[1].tls.options",),
    )
    assert route_of(reading) == expected
    assert expected.gateway == PolicyKey(Namespace("edge"), "public")


def test_gateway_is_in_the_namespace_of_the_set_by_default() -> None:
    """A parent of another kind is no gateway."""
    for parent, gateway in (
        (ObjectReference(GATEWAY, "public"), PolicyKey(Namespace("shop"), "public")),
        (ObjectReference(SERVICE, "public"), None),
    ):
        assert ListenerSet(KEY, parent, (HTTP,)).gateway == gateway


def test_error_of_a_listener_refuses_a_file_and_drops_the_listener_of_a_cluster() -> None:
    """A cluster has checked its object with its own CRDs, which can be older or newer than the reader."""
    bad = "{name: bad, port: 81, protocol: HTTP, unheard: 1}"
    spec = f"{{parentRef: {{name: edge}}, listeners: [{bad}, {LISTENER}], news: 1}}"
    refused = read(manifest("ListenerSet", spec), IN_FILE)
    assert (refused.objects, faults(refused)) == ((), ["spec.listeners[0].unheard", "spec.news"])
    reading = read(manifest("ListenerSet", spec), IN_CLUSTER)
    assert reading.problems == ()
    dropped, http = route_of(reading).listeners
    assert (dropped.name, dropped.port, http) == ("bad", 81, HTTP)
    assert dropped.dropped.startswith("spec.listeners[0].unheard: unknown field")
    assert route_of(reading).unused == ("spec.news",)
