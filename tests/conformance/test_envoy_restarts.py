"""Tests of real Envoys during restarts and absences of the server."""

import asyncio
from typing import Any

import pytest

import xds.server.streams.conversation
from tests.conformance.control_plane import ControlPlane
from tests.conformance.envoys import EVERYTHING, Envoy
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
    """Return whether the second upstream answers."""
    return await who_answers(bench.port) == "two"


async def test_s11_server_restart_under_load_loses_no_request_and_resends_nothing(bench: Any) -> None:
    """The new server serves the same resources, twice.

    Envoy replaces nothing, and follows the next update.
    """
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


async def test_s11_server_that_stops_in_order_hands_its_envoy_to_another_one(bench: Any) -> None:
    """Under load no request is lost, the Envoy replaces nothing, and follows updates of the other server."""
    other = await ControlPlane.begin(bench.plane.keys, bench.ends)
    for plane in (bench.plane, other):
        plane.publish(*bench.front("one", bench.one))
    envoy = await Envoy.start(bench.program, bench.plane, bench.variant, bench.folder, bench.ends, other)
    await until(lambda: bench.plane.is_settled() or other.is_settled())
    first, second = (bench.plane, other) if bench.plane.is_settled() else (other, bench.plane)
    async with Load(bench.port) as load:
        await load.more(50)
        server, first.server = first.server, None
        assert server is not None
        await server.stop(0.5, 0.5)
        await second.settled()
        await load.more(50)
        replaced = await envoy.stat("listener_manager.listener_modified")
        await second.update(*bench.front("two", bench.two))
        await until(lambda: moved(bench))

    assert load.failures == {}
    assert replaced == 0
    assert await envoy.stat("cluster_manager.cluster_modified") == 0


async def absence(load: Load) -> None:
    """Let the load run for the time of the absence."""
    loop = asyncio.get_running_loop()
    end = loop.time() + ABSENCE
    while loop.time() < end:
        await load.more(1)


async def test_envoy_serves_without_a_control_plane_and_catches_up(bench: Any) -> None:
    """No request fails during the absence, and changes made meanwhile arrive afterwards."""
    await bench.running()
    async with Load(bench.port) as load:
        await bench.plane.stop()
        await absence(load)
        bench.plane.resources = bench.front("two", bench.two, *upstream("one", bench.one))
        await bench.plane.start()
        await bench.plane.settled()
        await until(lambda: moved(bench))

    assert load.failures == {}


async def test_d13_cluster_swapped_during_an_absence_loses_no_delta_request(bench: Any) -> None:
    """An incremental client reports its resources, so the old cluster outlives the switch of the routes.

    A state-of-the-world client does not, and its response lists everything: requests may fail until the
    routes follow. This is a property of the protocol, and only the outcome 503 is allowed.
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


async def test_o4_restarted_server_completes_an_envoy_that_was_left_warming(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that sends no endpoints leaves a cluster warming.

    Its successor answers Envoy's first request, which ends the warming.
    """
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
