"""Test of the check of all clients after events: many events of one moment are one check."""

import asyncio

from meshwright.sidecars.contract.events import CertificateRevoked, RootsChanged
from meshwright.sidecars.envoy.control_plane import ClientCheck


async def test_events_of_one_moment_are_one_check() -> None:
    """A thousand revocations on another server arrive together; each later event is checked again."""
    checks = list[int]()
    check = ClientCheck(lambda: checks.append(1))
    for number in range(1000):
        check.on_event(CertificateRevoked(f"u{number}.cart.shop", f"{number:x}"))
    assert checks == []  # not while the events arrive
    await asyncio.sleep(0)
    assert checks == [1]
    check.on_event(RootsChanged())
    await asyncio.sleep(0)
    assert checks == [1, 1]
