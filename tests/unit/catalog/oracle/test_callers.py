"""Who is meant by a rule's callers."""

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
BUYER, CLERK = (ServiceIdentity(Namespace("shop"), ServiceAccountName(each)) for each in ("buyer", "clerk"))
NETWORK, V6 = IpRange("10.0.0.0/8"), IpRange("fd00::/16")
GATEWAY = AuthenticatedName("gateway.example.org")
SPIFFE = AuthenticatedName("spiffe://cluster.local/ns/shop/sa/buyer")
NEAR, FAR = (Outsider(IpAddress(each)) for each in ("10.1.2.3", "192.0.2.1"))
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
def test_who_is_meant(caller: Caller, meant: set[Client]) -> None:
    """A network means whoever shows no certificate in it: others are judged by theirs."""
    assert {each for each in EVERY if is_caller(caller, each, TRUST)} == meant


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
def test_who_is_meant_in_tls(caller: Caller, meant: set[Client]) -> None:
    """Without a certificate of the mesh, by address and server's name; a name may need an address, too."""
    clients = (NEAR, TLS, ASKING, NAMED, HERE, None)
    assert {each for each in clients if is_caller(caller, each, TRUST)} == meant


@pytest.mark.parametrize("network", ["10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "shop", ""])
def test_what_is_no_network(network: str) -> None:
    """It is written in one way, so that equal networks are equal values."""
    with pytest.raises(ValueError, match=r"network|host bits"):
        IpRange(network)


@pytest.mark.parametrize("client", [NEAR, NAMED, None])
def test_no_target_admits_who_is_not_of_the_mesh(client: Client | None) -> None:
    """Nor does permissive mode: what is said for outsiders is said by other objects."""
    mesh = a.view(
        a.service("shop"),
        a.workload("buyer", "10.0.0.1"),
        a.workload("shop", "10.0.0.2"),
        a.target("t", "buyer", "shop", a.tcp("all")),
        a.tcp_route("all"),
    )
    shop = ServiceKey(Namespace("default"), ServiceName("shop"))
    found = decide(mesh, Request(client, shop, Port(80)))
    assert (found.answer, found.because) == (Answer.REFUSED, ())
    assert decide(mesh, Request(a.identity("buyer"), shop, Port(80))).allowed
