"""Scenes of a simulated mesh, one after another, and the figures of each."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.simulation.fleet import Fleet

ARRIVAL_SECONDS: Final = 300.0
"""Time in which all proxies of a new mesh join."""
ROLL_SECONDS: Final = 60.0
"""Time in which a tenth of the Pods is replaced."""
AWAY_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one scene.

    - `counts` are events of proxies, `store` are operations of all servers at the store, and `busiest` the
      most of these within one second.
    - `fullest` is the largest number of streams of one server, as a multiple of the mean.
    - `told` has the seconds from a proxy's first ACK until another server has sent the new endpoint to all
      callers: for half of the new proxies, for 99 %, and for the last one.
    - `is_agreed` is True if all servers know all Pods as ready at the end.
    """

    scene: str
    seconds: float
    counts: dict[str, int]
    store: dict[str, int]
    busiest: dict[str, int]
    fullest: float
    told: tuple[float, float, float]
    is_agreed: bool


async def play(fleet: Fleet) -> tuple[Figures, ...]:
    """Play all scenes, and return their figures."""
    scenes: tuple[tuple[str, Callable[[Fleet], Coroutine[None, None, None]]], ...] = (
        ("all join", join),
        ("a tenth is rolled out", roll_out),
        ("quiet", rest),
        ("a server is killed and back", lose_a_server),
        ("all servers are replaced", replace_servers),
        ("the store is away", lose_the_store),
    )
    for _ in range(fleet.size.servers):
        await fleet.start_server()
    await asyncio.sleep(15.0)
    return tuple([await _figures(fleet, name, scene) for name, scene in scenes])


async def _figures(fleet: Fleet, name: str, scene: Callable[[Fleet], Coroutine[None, None, None]]) -> Figures:
    fleet.forget()
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with _watched(fleet):
        await scene(fleet)
    told = sum((server.told for server in fleet.servers), Counter[float]())
    return Figures(
        name,
        round(loop.time() - began, 3),
        dict(sorted(fleet.counts.items())),
        dict(sorted(fleet.store.counts.items())),
        dict(sorted(fleet.busiest.items())),
        round(fleet.fullest, 3),
        (_share(told, 0.5), _share(told, 0.99), _share(told, 1.0)),
        fleet.is_agreed,
    )


@asynccontextmanager
async def _watched(fleet: Fleet) -> AsyncIterator[None]:
    task = asyncio.create_task(fleet.watch())
    try:
        yield
    finally:
        task.cancel()


def _share(told: Counter[float], share: float) -> float:
    wanted, seen = share * told.total(), 0
    for seconds in sorted(told):
        seen += told[seconds]
        if seen >= wanted:
            return seconds
    return 0.0


async def join(fleet: Fleet) -> None:
    """Let all proxies join, evenly over some time."""
    size = fleet.size
    for number in range(size.proxies):
        fleet.add_pod(number % size.services)
        await asyncio.sleep(ARRIVAL_SECONDS / size.proxies)
    await fleet.settled(10.0)


async def roll_out(fleet: Fleet) -> None:
    """Replace a tenth of the Pods: the old one ends when the new one is served."""
    chosen = fleet.random.sample(list(fleet.pods.values()), len(fleet.pods) // 10)
    for old in chosen:
        fleet.add_pod(old.service, lambda old=old: fleet.end_pod(old))  # type: ignore[misc]
        await asyncio.sleep(ROLL_SECONDS / len(chosen))
    await fleet.settled(10.0)


async def rest(fleet: Fleet) -> None:
    """Let a minute pass."""
    await fleet.settled(60.0)


async def lose_a_server(fleet: Fleet) -> None:
    """Kill the leader or another server, and start a server half a minute later."""
    fleet.kill(fleet.servers[0])
    await asyncio.sleep(30.0)
    await fleet.start_server()
    await fleet.settled(120.0)


async def replace_servers(fleet: Fleet) -> None:
    """Start as many new servers, then end the old ones in steps."""
    old = tuple(fleet.servers)
    for _ in old:
        await fleet.start_server()
    await asyncio.sleep(15.0)
    await asyncio.gather(*(fleet.stop(server) for server in old))
    await fleet.settled(60.0)


async def lose_the_store(fleet: Fleet) -> None:
    """Take the store away; one proxy of fifty connects again, and one Pod of five hundred is new."""
    fleet.store.leave()
    await asyncio.sleep(5.0)
    pods = list(fleet.pods.values())
    for proxy in fleet.random.sample(pods, len(pods) // 50):
        fleet.reconnect(proxy)
    for proxy in fleet.random.sample(pods, len(pods) // 500):
        fleet.add_pod(proxy.service)
    await asyncio.sleep(AWAY_SECONDS)
    fleet.store.come_back()
    await fleet.settled(30.0)
