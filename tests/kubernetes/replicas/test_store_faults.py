"""Faults of the store: away, slow, without quorum, restored from a snapshot, and cut off from one server."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

import grpc
import pytest

from tests.kubernetes.replicas.joining import Joining
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.servers import Replica, until_led
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(1500)]

AWAY_SECONDS: Final = float(os.environ.get("MESHWRIGHT_STORE_AWAY", "20"))
"""Seconds for which the store is away; 600 in the long form."""
SLOW_SECONDS: Final = 2.0
"""Delay of each answer of a slow store."""


async def test_store_is_away(mesh: Mesh) -> None:
    """Proxies are served, a join is answered UNAVAILABLE, and a revocation holds, at once and afterwards."""
    joining = await Joining.prepared(mesh)
    revoked, known, *_ = mesh.observers
    async with mesh.row(f"the store is away for {AWAY_SECONDS:.0f} s") as row:
        await mesh.engine.kill()
        began = time.monotonic()
        code, text = await joining.ask(mesh.replicas[0])
        assert code is grpc.StatusCode.UNAVAILABLE, (code, text)
        assert "try again later" in text, text
        # A proxy that is known may connect anew, to any server.
        await mesh.moves_on(known)
        here, addresses = mesh.replica(revoked.address), revoked.addresses
        revoked.addresses = (here.ads,)
        status, said = await here.revoke(mesh.serials[revoked.name])
        assert (status, "in force at 3 of 3 servers, not kept" in said) == (500, True), (status, said)
        await until(lambda: revoked.is_refused_by({here.ads}))
        await asyncio.sleep(max(0.0, began + AWAY_SECONDS - time.monotonic()))
        await mesh.engine.again()
        back = time.monotonic()
        mesh.forget(revoked)
        await mesh.settled()
        row.healed = time.monotonic() - back
        # The revocation is in force at all servers, and in the store.
        revoked.addresses = addresses
        await until(lambda: revoked.is_refused_by({item.ads for item in mesh.replicas}, back))
        row.note = f"the revocation is in force everywhere {time.monotonic() - back:.0f} s later"
        await joining.until_joined(mesh.replicas[1])
        assert not revoked.is_served


async def test_revocation_while_the_store_is_away_holds_at_all_servers(mesh: Mesh) -> None:
    """A revocation that the store does not take is told to all servers, and ends a stream at another one."""
    revoked, *_ = mesh.observers
    async with mesh.row("a revocation at another server, without the store") as row:
        there = mesh.replica(revoked.address)
        await mesh.engine.kill()
        began = time.monotonic()
        await mesh.others(there)[0].revoke(mesh.serials[revoked.name])
        await until(lambda: revoked.is_refused_by({there.ads}), 10)
        row.healed = time.monotonic() - began
        mesh.forget(revoked)
        await mesh.engine.again()


async def test_store_is_slow(mesh: Mesh) -> None:
    """Each answer of the store takes two seconds: streams and the leader stay, joins are late."""
    joining = await Joining.prepared(mesh)
    leader = await until_led(mesh.replicas)
    terms = {replica.name: replica.terms() for replica in mesh.replicas}
    async with mesh.row("each answer of the store takes 2 s") as row:
        mesh.slow(SLOW_SECONDS)
        began = time.monotonic()
        await mesh.moves_on(mesh.observers[0])
        code, text = await joining.ask(mesh.replicas[1])
        took = time.monotonic() - began
        await asyncio.sleep(max(0.0, 30 - took))
        led = {replica.name: replica.terms() for replica in mesh.replicas}
        mesh.slow(0.0)
        began = time.monotonic()
        await mesh.settled()
        row.healed = time.monotonic() - began
        row.note = f"a join took {took:.1f} s ({code.name} {text})"
    assert code is grpc.StatusCode.OK
    assert led == terms, f"{leader.name} led before"


async def test_quorum_is_lost_and_restored(mesh: Mesh) -> None:
    """The store answers, but takes no writes; afterwards a server leads again."""
    joining = await Joining.prepared(mesh)
    async with mesh.row("quorum is lost for 30 s") as row:
        await mesh.engine.lose_quorum()
        code, text = await joining.ask(mesh.replicas[0])
        assert code is grpc.StatusCode.UNAVAILABLE, (code, text)
        await mesh.moves_on(mesh.observers[0])
        await asyncio.sleep(30)
        await mesh.engine.regain_quorum()
        began = time.monotonic()
        await mesh.settled()
        await until_led(mesh.replicas)
        row.healed = time.monotonic() - began
        await joining.until_joined(mesh.replicas[0])


async def test_store_is_restored_from_an_older_snapshot(mesh: Mesh) -> None:
    """A proxy that joined and a revocation that was made after the snapshot are in force afterwards."""
    revoked, *_ = mesh.observers
    joining = await Joining.prepared(mesh)
    async with mesh.row("the store is restored from an older snapshot") as row:
        await mesh.engine.save()
        await mesh.settled()
        code, text = await joining.ask(mesh.replicas[0])
        assert code is grpc.StatusCode.OK, (code, text)
        status, said = await mesh.replicas[0].revoke(mesh.serials[revoked.name])
        assert status == 200, said
        await until(lambda: not revoked.is_served)
        mesh.forget(revoked)
        await mesh.engine.restore()
        began = time.monotonic()
        await mesh.settled()
        await until_led(mesh.replicas)
        row.healed = time.monotonic() - began
        # A server that starts now knows only the store.
        await mesh.replicas[2].stop()
        await mesh.replicas[2].start()
        await until(lambda: revoked.is_refused_by({mesh.replicas[2].ads}, began))
        assert await joining.is_let_in(mesh.replicas[2])
        row.note = "revocation and join after the snapshot are kept"


async def test_leader_is_cut_off_from_the_store(mesh: Mesh) -> None:
    """The server goes on serving its proxies, and another one leads."""
    leader = await until_led(mesh.replicas)
    network = mesh.engine.networks[leader.name]
    await _cut_off(mesh, leader, "the leader is cut off from the store for 30 s", network.cut)


async def test_leader_hears_nothing_of_the_store(mesh: Mesh) -> None:
    """Connections stay open without a byte, as behind a firewall that drops packets."""
    leader = await until_led(mesh.replicas)
    network = mesh.engine.networks[leader.name]
    await _cut_off(mesh, leader, "the leader hears nothing of the store for 30 s", network.silence)


async def _cut_off(mesh: Mesh, leader: Replica, name: str, cut: Callable[[], None]) -> None:
    async with mesh.row(name) as row:
        began = time.monotonic()
        cut()
        await until(lambda: _others_lead(mesh, leader), 40)
        row.note = f"another leads after {time.monotonic() - began:.0f} s"
        await asyncio.sleep(max(0.0, began + 30 - time.monotonic()))
        mesh.engine.networks[leader.name].heal()
        began = time.monotonic()
        await mesh.settled()
        row.healed = time.monotonic() - began


def _others_lead(mesh: Mesh, leader: Replica) -> bool:
    assert not (leader.leads() and any(item.leads() for item in mesh.others(leader))), "two servers lead"
    return any(item.leads() for item in mesh.others(leader))
