"""Tests of the check of clients after events: those of one moment are one check, of the clients concerned."""

import asyncio
from collections.abc import Set as AbstractSet

from meshwright.sidecars.contract.events import CertificateRevoked, RootsChanged
from meshwright.sidecars.envoy.control_plane import ClientCheck
from xds.cache import NodeKey


async def test_events_of_one_moment_are_one_check_of_the_clients_concerned() -> None:
    """A thousand revocations on another server arrive together; each later event is checked again."""
    checks = list[AbstractSet[NodeKey] | None]()
    check = ClientCheck(checks.append)
    names = [f"u{number}.cart.shop" for number in range(1000)]
    for name in names:
        check.on_event(CertificateRevoked(name, "3f9a"))
    assert checks == []  # not while the events arrive
    await asyncio.sleep(0)
    assert checks == [set(map(NodeKey, names))]
    check.on_event(CertificateRevoked("u1.cart.shop", "3f9b"))
    await asyncio.sleep(0)
    assert checks[1:] == [{NodeKey("u1.cart.shop")}]


async def test_other_roots_concern_all_clients() -> None:
    """A revocation of the same moment does not narrow the check, and the next check is narrow again."""
    checks = list[AbstractSet[NodeKey] | None]()
    check = ClientCheck(checks.append)
    check.on_event(CertificateRevoked("u1.cart.shop", "3f9a"))
    check.on_event(RootsChanged())
    check.on_event(CertificateRevoked("u2.cart.shop", "3f9b"))
    await asyncio.sleep(0)
    check.on_event(CertificateRevoked("u3.cart.shop", "3f9c"))
    await asyncio.sleep(0)
    assert checks == [None, {NodeKey("u3.cart.shop")}]
