"""Real Envoys live through our restarts and absences."""

import asyncio
from typing import Any

import pytest

import xds.server.streams.conversation
from tests.conformance.envoys import EVERYTHING
from tests.conformance.resources import cluster, endpoints, listener, route, upstream
from tests.conformance.traffic import Load, who_answers
from tests.tools.deadline import until
from xds.protocol.delta import DeltaStream
from xds.protocol.sotw import AdsStream
from xds.protocol.stream import Stream
from xds.stream_status import Variant

pytestmark = pytest.mark.envoy

ABSENCE = 30.0 if EVERYTHING else 5.0
STALL = 10.0
"""Seconds: an Envoy that misses endpoints warms for 15."""


async def moved(bench: Any) -> bool:
    """Say whether the traffic goes to the second upstream."""
    return await who_answers(bench.port) == "two"


async def test_s11_a_restart_under_load_loses_nothing(bench: Any) -> None:
    """Twice: the new server serves the same, Envoy keeps all it has, and follows the next update."""
    envoy = await bench.running()
    async with Load(bench.port) as load:
        for _ in range(2):
            await bench.plane.stop()
            await load.more(100)
            await bench.plane.start()
            await bench.plane.settled()
            await load.more(100)
        replaced = await envoy.stat("listener_manager.listener_modified")
        await bench.plane.update(*bench.front("two", bench.two))
        await until(lambda: moved(bench))

    assert load.failures == {}
    assert replaced == 0
    assert await envoy.stat("cluster_manager.cluster_modified") == 0


async def absence(load: Load) -> None:
    """Let the load run for as long as the absence lasts."""
    loop = asyncio.get_running_loop()
    end = loop.time() + ABSENCE
    while loop.time() < end:
        await load.more(1)


async def test_an_envoy_works_on_without_a_control_plane(bench: Any) -> None:
    """Nothing fails while we are away; what was decided in the meantime arrives when we are back."""
    await bench.running()
    async with Load(bench.port) as load:
        await bench.plane.stop()
        await absence(load)
        bench.plane.resources = bench.front("two", bench.two, *upstream("one", bench.one))
        await bench.plane.start()
        await bench.plane.settled()
        await until(lambda: moved(bench))

    assert load.failures == {}


async def test_d13_a_cluster_swapped_while_we_were_away_loses_nothing(bench: Any) -> None:
    """An incremental client says what it holds: the old cluster goes when the routes have switched.

    A state-of-the-world client does not, and its answer lists everything: the old cluster goes at once, and
    requests fail until the routes follow. That is the protocol's, and is only held to be short.
    """
    await bench.running()
    async with Load(bench.port) as load:
        await bench.plane.stop()
        bench.plane.resources = bench.front("two", bench.two)
        await bench.plane.start()
        await bench.plane.settled()
        await until(lambda: moved(bench))
        await load.turn()
        failures = dict(load.failures)
        await load.more(100)

    assert load.failures == failures
    assert failures == {} or (bench.variant is Variant.SOTW and load.failures.keys() == {"503"})


class _WithoutO3(Stream):
    def _follow_with_endpoints(self, clusters: object) -> None:
        """Break rule O3."""


class _ForgetfulAds(_WithoutO3, AdsStream):
    """State of the world without rule O3."""


class _ForgetfulDelta(_WithoutO3, DeltaStream):
    """Incremental without rule O3."""


async def test_o4_a_restart_while_envoy_warms_frees_it(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends no endpoints leaves it warming; its successor answers what Envoy asks first."""
    envoy = await bench.running()
    await bench.plane.stop()
    with monkeypatch.context() as broken:
        broken.setattr(xds.server.streams.conversation, "AdsStream", _ForgetfulAds)
        broken.setattr(xds.server.streams.conversation, "DeltaStream", _ForgetfulDelta)
        await bench.plane.start()
        await bench.plane.settled()
        async with Load(bench.port) as load:
            changed = (cluster("one", timeout="2s"), endpoints("one", bench.one))
            bench.plane.publish(*changed, listener(bench.port), route("one"))

            async def is_warming() -> bool:
                return bool(await envoy.stat("cluster_manager.warming_clusters") == 1)

            await until(is_warming, STALL)
            assert not bench.plane.is_settled()
            await bench.plane.stop()
            broken.undo()
            await bench.plane.start()

            async def is_warm() -> bool:
                return bool(await envoy.stat("cluster_manager.warming_clusters") == 0)

            assert await until(is_warm) < STALL
            await bench.plane.settled()

    assert load.failures == {}
    assert await envoy.stat("cluster.one.init_fetch_timeout") == 0
