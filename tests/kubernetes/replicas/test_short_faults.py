"""The short form of the faults, in each run of the Kubernetes tests: a killed leader and a cut store."""

import time

import grpc
import pytest

from tests.kubernetes.replicas.joining import Joining
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.picky_proxies import picky_proxies, rejected_everywhere
from tests.kubernetes.replicas.rows import IS_LONG
from tests.kubernetes.replicas.servers import until_led
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.timeout(400),
    pytest.mark.skipif(IS_LONG, reason="the long form has these faults in rows of their own"),
]


async def test_leader_is_killed_and_store_is_cut_off_under_load(mesh: Mesh) -> None:
    """No request fails, and no proxy is sent a resource that it holds in this version already.

    Meanwhile a revocation holds, and a machine joins as soon as the store is back. Before, a proxy rejects
    policy at one server, and is never sent it by another one.
    """
    [picky] = await picky_proxies(mesh, 1)
    await rejected_everywhere(picky, mesh)
    joining, (revoked, known, *_) = await Joining.prepared(mesh), mesh.observers
    leader = await until_led(mesh.replicas)
    async with mesh.row("the leader is killed, and the store is cut off") as row:
        await leader.kill()
        killed = time.monotonic()
        await mesh.settled()
        row.healed = time.monotonic() - killed
        await until_led(mesh.replicas)
        row.note = f"another leads after {time.monotonic() - killed:.0f} s"
        mesh.cut()
        one, two = mesh.others(leader)
        code, text = await joining.ask(one)
        assert code is grpc.StatusCode.UNAVAILABLE, (code, text)
        await mesh.moves_on(known)
        here, addresses = mesh.replica(revoked.address), revoked.addresses
        revoked.addresses = (here.ads,)
        await here.revoke(mesh.serials[revoked.name])
        await until(lambda: revoked.is_refused_by({here.ads}))
        mesh.forget(revoked)
        mesh.heal()
        healed = time.monotonic()
        await mesh.settled()
        revoked.addresses = addresses
        await until(lambda: revoked.is_refused_by({one.ads, two.ads}, healed))
        await joining.until_joined(two)
        await leader.start()
