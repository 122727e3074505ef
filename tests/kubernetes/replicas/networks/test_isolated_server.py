"""One server is cut off from the store for longer than its patience, while the others reach the store."""

import time
from typing import Final

import pytest

from meshwright.controller.sharing.shared_store import LOOK_SECONDS
from meshwright.replicas.isolation import PATIENCE_SECONDS
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.observers import Observer
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.servers import Replica, until_led
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(900)]

LATE_SECONDS: Final = 30.0
"""Longest time by which a server notices late that it is the only one."""


async def test_server_is_cut_off_from_the_store_alone(mesh: Mesh) -> None:
    """It serves on; after 300 s it is not ready and moves its proxies, and serves who comes all the same."""
    await until_led(mesh.replicas)
    cut_off = mesh.replicas[0]
    here, guest, *_ = mesh.observers
    async with mesh.row(f"one server is cut off from the store for {PATIENCE_SECONDS:.0f} s") as row:
        for observer in (here, guest):
            await mesh.moves_to(observer, cut_off)
            observer.addresses = mesh.addresses
        mesh.engine.networks[cut_off.name].cut()
        began = time.monotonic()
        begun = {observer.name: len(observer.streams) for observer in (here, guest)}
        await until(lambda: _is_ready(cut_off, ready=False), PATIENCE_SECONDS + LATE_SECONDS)
        unready = time.monotonic() - began
        # The last answer may have come a moment before the cut.
        assert unready >= PATIENCE_SECONDS - 2 * LOOK_SECONDS, f"not ready after {unready:.0f} s"
        assert all(len(item.streams) == begun[item.name] for item in (here, guest)), "a stream ended before"
        status, text = await cut_off.ready()
        assert (status, "which answers other servers" in text) == (503, True), text
        await until(lambda: all(_has_moved(item, begun[item.name]) for item in (here, guest)))
        moved = time.monotonic() - began - unready
        # A proxy that knows no other server is served, and its stream does not end again.
        await mesh.moves_to(guest, cut_off)
        count = len(guest.streams)
        assert [await _is_ready(item, ready=True) for item in mesh.others(cut_off)] == [True, True]
        mesh.engine.networks[cut_off.name].heal()
        healed = time.monotonic()
        await until(lambda: _is_ready(cut_off, ready=True))
        assert len(guest.streams) == count, "the stream of a guest has ended"
        guest.addresses = mesh.addresses
        await mesh.settled()
        row.healed = time.monotonic() - healed
        row.note = f"not ready after {unready:.0f} s; its proxies moved in {moved:.0f} s"


async def _is_ready(replica: Replica, *, ready: bool) -> bool:
    return (await replica.ready())[0] == (200 if ready else 503)


def _has_moved(observer: Observer, count: int) -> bool:
    return len(observer.streams) > count and observer.is_served
