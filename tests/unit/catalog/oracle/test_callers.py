"""Tests of the clients that a rule's callers match."""

from dataclasses import replace

import pytest

from catalog.oracle.callers import is_caller
from catalog.oracle.decide import Answer, Request, decide
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName, TrustDomain
from meshwright.mesh.policies.callers import (
    AuthenticatedName,
    Caller,
    Client,
    EncryptedRange,
    IpRange,
    Outsider,
)
from meshwright.mesh.service import ServiceKey
from tests.meshes import values as a

TRUST = TrustDomain("cluster.local")
BUYER, CLERK = (ServiceIdentity(Namespace("shop"), ServiceAccountName(item)) for item in ("buyer", "clerk"))
NETWORK, V6 = IpRange("10.0.0.0/8"), IpRange("fd00::/16")
GATEWAY = AuthenticatedName("gateway.example.org")
SPIFFE = AuthenticatedName("spiffe://cluster.local/ns/shop/sa/buyer")
NEAR, FAR = (Outsider(IpAddress(item)) for item in ("10.1.2.3", "192.0.2.1"))
NAMED = Outsider(IpAddress("10.1.2.3"), GATEWAY.name)
EVERY: tuple[Client | None, ...] = (BUYER, CLERK, NEAR, Outsider(IpAddress("fd00::1")), FAR, NAMED, None)


@pytest.mark.parametrize(
    ("caller", "meant"),
    [
        (BUYER, {BUYER}),
        (NETWORK, {NEAR}),
        (V6, {Outsider(IpAddress("fd00::1"))}),
        (GATEWAY, {NAMED}),
        (SPIFFE, {BUYER}),
    ],
)
def test_caller_matches_its_identity_network_or_name(caller: Caller, meant: set[Client]) -> None:
    """A network matches only clients without a certificate; others are judged by their certificate."""
    assert {item for item in EVERY if is_caller(caller, item, TRUST)} == meant


TLS, ASKING = replace(NEAR, tls=True), replace(NEAR, tls=True, server_name="a.example.org")
HERE = Outsider(IpAddress("10.1.2.3"), SPIFFE.name)


@pytest.mark.parametrize(
    ("caller", "meant"),
    [
        (EncryptedRange(NETWORK), {TLS, ASKING, NAMED}),
        (EncryptedRange(NETWORK, ("a.example.org",)), {ASKING}),
        (EncryptedRange(NETWORK, ("b.example.org", "*.example.org")), {ASKING}),
        (EncryptedRange(NETWORK, ("*.org.example",)), set()),
        (EncryptedRange(V6), set()),
        (NETWORK, {NEAR}),
        (replace(GATEWAY, networks=(V6, NETWORK)), {NAMED}),
        (replace(GATEWAY, networks=(V6,)), set()),
        (replace(GATEWAY, server_names=("a.example.org",)), set()),
        (SPIFFE, {HERE}),
        (BUYER, {HERE}),
    ],
)
def test_encrypted_caller_matches_by_address_and_server_name(caller: Caller, meant: set[Client]) -> None:
    """Such clients have no certificate of the mesh. A certificate's name may require an address, too."""
    clients = (NEAR, TLS, ASKING, NAMED, HERE, None)
    assert {client for client in clients if is_caller(caller, client, TRUST)} == meant


@pytest.mark.parametrize("network", ["10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "shop", ""])
def test_network_in_a_wrong_form_is_refused(network: str) -> None:
    """Each network has one notation, so that equal networks are equal values."""
    with pytest.raises(ValueError, match=r"network|host bits"):
        IpRange(network)


@pytest.mark.parametrize("client", [NEAR, NAMED, None])
def test_traffic_target_admits_no_client_from_outside_the_mesh(client: Client | None) -> None:
    """Only a client with an identity of the mesh is allowed, because other objects admit outside clients."""
    mesh = a.view(
        a.service("shop"),
        a.workload("buyer", "10.0.0.1"),
        a.workload("shop", "10.0.0.2"),
        a.target("t", "buyer", "shop", a.tcp("all")),
        a.tcp_route("all"),
    )
    shop = ServiceKey(Namespace("default"), ServiceName("shop"))
    decision = decide(mesh, Request(client, shop, Port(80)))
    assert (decision.answer, decision.because) == (Answer.REFUSED, ())
    assert decide(mesh, Request(a.identity("buyer"), shop, Port(80))).allowed
