"""Faults of servers: killed with SIGKILL, one by one and all but one."""

import asyncio
import statistics
import time
from typing import Final

import pytest

from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.observers import RealProxy
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.servers import Replica, alive, leaders, until_led
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

LEADS_SECONDS: Final = 20.0
"""Longest time until another server leads, if the leader was killed."""
MOVED_SECONDS: Final = 5.0
MEDIAN_SECONDS: Final = 1.0


async def test_killed_servers(mesh: Mesh) -> None:
    """Each server is killed and started again in turn, the leader first."""
    leader = await until_led(mesh.replicas)
    times: list[float] = []
    for replica in (leader, *(item for item in mesh.replicas if item is not leader)):
        led = leaders(mesh.replicas) == [replica]
        async with mesh.row(f"{'the leader' if led else 'a server'} is killed") as row:
            moved = await _killed(mesh, replica)
            times += moved
            row.healed = max(moved, default=0.0)
            row.note = f"{len(moved)} proxies moved in {', '.join(f'{item:.1f}' for item in moved)} s"
            if led:
                began = time.monotonic()
                await until(lambda: len(leaders(mesh.replicas)) == 1, LEADS_SECONDS)
                row.note += f"; another leads after {time.monotonic() - began:.0f} s"
            await mesh.settled()
            await replica.start()
    assert statistics.median(times) <= MEDIAN_SECONDS * 2, times
    assert max(times) <= MOVED_SECONDS * 2, times


async def test_all_but_one_killed(mesh: Mesh) -> None:
    """One server serves all proxies, until the others are back."""
    one, *others = mesh.replicas
    async with mesh.row("all servers but one are killed") as row:
        began = time.monotonic()
        await asyncio.gather(*(replica.kill() for replica in others))
        await mesh.settled()
        row.healed = time.monotonic() - began
        assert alive(mesh.replicas) == [one]
        await until_led(mesh.replicas)
        row.note = f"leads alone after {time.monotonic() - began:.0f} s"
        await asyncio.gather(*(replica.start() for replica in others))


async def _killed(mesh: Mesh, replica: Replica) -> list[float]:
    """Kill a server; return the seconds until each of its proxies is served by another one.

    The moment at which an Envoy is elsewhere is seen from outside by its statistics, so up to 50 ms late.
    """
    watching = [item for item in mesh.observers if item.address == replica.ads]
    counts = {proxy.name: await _connections(proxy) for proxy in mesh.proxies}
    moved: dict[str, float] = {}
    began = time.monotonic()
    await replica.kill()

    async def look(proxy: RealProxy) -> None:
        has_dialled = proxy.name not in moved and await _connections(proxy) > counts[proxy.name]
        if has_dialled and await proxy.is_connected():
            moved[proxy.name] = time.monotonic() - began

    async def are_elsewhere() -> bool:
        await asyncio.gather(*map(look, mesh.proxies))
        return await mesh.streams() >= mesh.proxy_count

    await until(are_elsewhere, 60)
    moved |= {item.name: item.streams[-1][0] - began for item in watching}
    return sorted(moved.values())


async def _connections(proxy: RealProxy) -> int:
    """Return the number of connections to control planes that an Envoy has opened so far."""
    stat = "cluster.meshwright-ads.upstream_cx_total"
    return (await proxy.stats(f"^{stat}$")).get(stat, 0)
