"""Tests of pushes to real Envoys: first configuration, rejections, warming, swaps, listeners, secrets."""

import asyncio
import contextlib
import ssl
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.control_plane import Keys
from tests.conformance.envoys import EVERYTHING
from tests.conformance.resources import (
    cluster,
    endpoints,
    listener,
    on_demand_listener,
    route,
    route_by_header,
    secret,
    tls_listener,
    upstream,
)
from tests.conformance.traffic import Load, who_answers
from tests.tools.deadline import until
from xds.protocol.blame import APPLIED_OTHERS
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE
from xds.stream_status import SyncState, Variant

pytestmark = pytest.mark.envoy

SWAPS = 20
REQUESTS = 400 if EVERYTHING else 60
"""How many requests a swap takes at least."""
STALL = 10.0
"""Seconds: an Envoy that misses endpoints warms for 15."""
LIFE = 2.0
"""Seconds that a listener lives which nobody keeps alive; it is kept alive three times in them."""


async def answered_by(port: int, name: str) -> None:
    """Wait until an upstream answers; fail at a deadline."""

    async def answers() -> bool:
        return await who_answers(port) == name

    await until(answers)


async def test_envoy_accepts_its_first_configuration_before_its_fetch_timeout(bench: Any) -> None:
    """The Envoy is live, serves and has rejected nothing."""
    bench.plane.publish(*bench.front("one", bench.one))
    envoy = await bench.envoy()

    assert await bench.plane.settled() < STALL
    assert await until(envoy.is_live) < STALL
    await answered_by(bench.port, "one")
    assert await envoy.stat("control_plane.connected_state") == 1
    assert await envoy.stat("cluster_manager.cds.update_rejected") == 0


async def test_s12_envoy_that_connects_before_the_first_snapshot_waits_for_it(bench: Any) -> None:
    """It is not given an empty configuration, and is live once there is a snapshot."""
    envoy = await bench.envoy()
    await until(lambda: bench.plane.type_status(CLUSTER) is not None)
    assert not await envoy.is_live()
    bench.plane.publish(*bench.front("one", bench.one))

    await answered_by(bench.port, "one")


async def test_n3_rejected_cluster_does_not_affect_others_and_can_be_corrected(bench: Any) -> None:
    """The status has the NACK's message and the rejected name, and nothing is sent again.

    A corrected cluster clears the rejection.
    """
    envoy = await bench.running()
    async with Load(bench.port) as load:
        bad = (cluster("bad", policy="CLUSTER_PROVIDED"), endpoints("bad", bench.one))
        bench.plane.publish(*bench.front("one", bench.one, *bad, *upstream("good", bench.two)))
        await until(lambda: bench.plane.type_status(CLUSTER).state is SyncState.REJECTED)
        status = bench.plane.type_status(CLUSTER)
        assert status.rejection.message.startswith(APPLIED_OTHERS)
        assert status.rejected == ("bad",)
        await load.more(300)
        assert bench.plane.type_status(CLUSTER).sent_nonce == status.sent_nonce
        assert await envoy.stat("cluster_manager.cds.update_rejected") == 1

        async def good_has_endpoints() -> bool:
            return bool(await envoy.stat("cluster.good.membership_total") == 1)

        await until(good_has_endpoints)

        await bench.plane.update(*bench.front("good", bench.two, *upstream("bad", bench.one)))
        await answered_by(bench.port, "two")

    assert bench.plane.type_status(CLUSTER).state is SyncState.SYNCED
    assert load.failures == {}


@pytest.mark.parametrize(("seconds", "rejected"), [("0s", {"bad"}), ("-1s", {"bad", "good"})])
async def test_n3_response_rejected_as_a_whole_is_resent_after_the_correction(
    bench: Any, seconds: str, rejected: set[str]
) -> None:
    """Some faults stop Envoy before it applies any cluster, and some do not name the cluster.

    The other clusters of the response are then missing although they are unchanged, so they are sent again.
    """
    envoy = await bench.running()
    bad = (cluster("bad", timeout=seconds), endpoints("bad", bench.one))
    good = upstream("good", bench.two)
    bench.plane.publish(*bench.front("one", bench.one, *bad, *good))
    await until(lambda: bench.plane.type_status(CLUSTER).state is SyncState.REJECTED)
    assert set(bench.plane.type_status(CLUSTER).rejected) - {"one"} == rejected
    assert await envoy.stat("cluster.good.membership_total") == 0

    await bench.plane.update(*bench.front("good", bench.two, *upstream("bad", bench.one)))
    await answered_by(bench.port, "two")


@pytest.mark.parametrize("bad", ["front", "other"])
async def test_d12_rejected_route_does_not_cost_its_neighbour_an_update(
    bench: Any, second_port: int, bad: str
) -> None:
    """Envoy stops at the rejected route. The routes after it are lost, and are sent again."""
    await bench.running()
    good, port = ("other", second_port) if bad == "front" else ("front", bench.port)
    second = listener(second_port, name="second", routes="other")
    fixed = (*upstream("one", bench.one), *upstream("two", bench.two), listener(bench.port), second)
    await bench.plane.update(*fixed, route("one"), route("one", name="other"))
    bench.plane.publish(*fixed, route("one", name=bad, pattern="("), route("two", name=good))
    await until(lambda: bench.plane.type_status(ROUTE).state is SyncState.REJECTED)

    await bench.plane.update(*fixed, route("one", name=bad), route("two", name=good))
    await answered_by(port, "two")


async def test_rejected_listener_leaves_the_existing_one_in_service(bench: Any) -> None:
    """A second listener on the port of the first is rejected, and the first serves on."""
    await bench.running()
    async with Load(bench.port) as load:
        twin = listener(bench.port, name="twin")
        bench.plane.publish(*bench.front("one", bench.one, twin))
        await until(lambda: bench.plane.type_status(LISTENER).state is SyncState.REJECTED)
        assert bench.plane.type_status(LISTENER).rejected == ("twin",)
        await bench.plane.update(*bench.front("one", bench.one))
        await load.more(100)

    assert bench.plane.type_status(LISTENER).state is SyncState.SYNCED
    assert load.failures == {}


async def test_o3_changed_cluster_is_warm_at_once_and_loses_no_request(bench: Any) -> None:
    """Its endpoints are sent after it although they are unchanged."""
    envoy = await bench.running()
    async with Load(bench.port) as load:
        for timeout in ("2s", "3s", "4s"):
            changed = (cluster("one", timeout=timeout), endpoints("one", bench.one))
            seconds = await bench.plane.update(*changed, listener(bench.port), route("one"))
            assert seconds < STALL
            assert await envoy.stat("cluster_manager.warming_clusters") == 0
            await load.more(50)

    assert await envoy.stat("cluster.one.init_fetch_timeout") == 0
    assert load.failures == {}


async def test_changed_endpoints_move_all_traffic_without_loss(bench: Any) -> None:
    """One push of endpoints moves all requests."""
    await bench.running()
    async with Load(bench.port) as load:
        await bench.plane.update(cluster("one"), endpoints("one", bench.two), *bench.front("one", 1)[2:])
        await answered_by(bench.port, "two")
        await load.turn()  # what was under way may still have gone to the first
        before = load.answers["one"]
        await load.more(100)

    assert load.answers["one"] == before > 0
    assert load.answers["two"] >= 100
    assert load.failures == {}


async def test_o2_twenty_cluster_swaps_under_load_lose_no_request(bench: Any) -> None:
    """Each swap replaces the cluster with all the traffic, by make before break."""
    envoy = await bench.running()
    async with Load(bench.port) as load:
        for number in range(SWAPS):
            to = bench.two if number % 2 == 0 else bench.one
            assert await bench.plane.update(*bench.front(f"swap-{number}", to)) < STALL
            await load.more(REQUESTS)

    sys.stderr.write(f"\n{load.failures.total()} of {load.total} requests failed")
    assert load.failures == {}
    assert load.answers["two"] > 100
    assert await envoy.stat("cluster_manager.cluster_removed") >= SWAPS


async def test_o2_cluster_removed_before_its_routes_switch_loses_requests(bench: Any) -> None:
    """This is the negative control: the same swaps are published in the wrong order."""
    await bench.running()
    async with Load(bench.port) as load:
        before = "one"
        for number in range(SWAPS):
            name = f"swap-{number}"
            rest = (*upstream(name, bench.two), listener(bench.port))
            await bench.plane.update(*rest, route(before, unchecked=True))
            await load.turn()
            await bench.plane.update(*rest, route(name))
            await load.turn()
            before = name

    sys.stderr.write(f"\n{load.failures.total()} of {load.total} requests failed")
    assert load.failures["503"] > 100


async def test_listener_replacement_under_load_loses_no_request(bench: Any) -> None:
    """The new listener takes over the port, and connections of the old one are drained."""
    envoy = await bench.running()
    async with Load(bench.port) as load:
        for edition in (2, 3):
            changed = (*upstream("one", bench.one), listener(bench.port, edition=edition), route("one"))
            await bench.plane.update(*changed)
            await load.more(100)

        async def is_drained() -> bool:
            return bool(await envoy.stat("listener_manager.total_listeners_draining") == 0)

        await until(is_drained)
        await load.more(100)

    assert await envoy.stat("listener_manager.listener_modified") == 2
    assert load.failures == {}


async def test_removed_listener_closes_its_port_and_can_be_added_again(bench: Any, second_port: int) -> None:
    """The other listener's traffic goes on, and the routes are requested again."""
    await bench.running()
    second = (listener(second_port, name="second", routes="other"), route("two", name="other"))
    with_second = bench.front("one", bench.one, *upstream("two", bench.two), *second)
    async with Load(bench.port) as load:
        await bench.plane.update(*with_second)
        await answered_by(second_port, "two")
        await bench.plane.update(*bench.front("one", bench.one))
        await answered_by(second_port, "ConnectionRefusedError")
        await bench.plane.update(*with_second)
        await answered_by(second_port, "two")

    assert load.failures == {}


async def test_n7_cluster_on_demand_is_sent_at_the_first_request(bench: Any) -> None:
    """A request for a missing cluster is answered at once, and succeeds after the cluster is added.

    Envoy requests clusters on demand only in the incremental variant.
    """
    if bench.variant is Variant.SOTW:
        pytest.skip("Envoy has no on-demand discovery in state of the world")
    hidden = replace(cluster("hidden"), on_demand=True)
    listening = on_demand_listener(bench.port, timedelta(seconds=2 * STALL))
    front = (listening, route_by_header("x-to"), hidden, endpoints("hidden", bench.two))
    bench.plane.publish(*upstream("one", bench.one), *front)
    envoy = await bench.envoy()
    await bench.plane.settled()
    await until(envoy.is_live)
    assert await envoy.stat("cluster.hidden.membership_total") == 0
    assert await who_answers(bench.port, "x-to: one") == "one"
    assert await who_answers(bench.port, "x-to: hidden") == "two"

    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await who_answers(bench.port, "x-to: later") == "503"
    assert loop.time() - begun < STALL  # its own timeout is twice that
    later = (replace(cluster("later"), on_demand=True), endpoints("later", bench.one))
    await bench.plane.update(*upstream("one", bench.one), *front, *later)

    async def has_come() -> bool:
        return await who_answers(bench.port, "x-to: later") == "one"

    await until(has_come)


async def outlived(port: int) -> float:
    """Call for longer than a listener's time to live; return the end time."""
    loop = asyncio.get_running_loop()
    async with Load(port) as load:
        end = loop.time() + 2.5 * LIFE
        while loop.time() < end:
            await load.more(1)
    assert load.failures == {}
    return end


async def test_n5_listener_with_a_ttl_is_kept_by_heartbeats(bench: Any) -> None:
    """Without the server it is removed. State of the world has no time to live, so the listener is kept."""
    await bench.running()
    mortal = replace(listener(bench.port, edition=2), ttl_seconds=LIFE)
    await bench.plane.update(*upstream("one", bench.one), mortal, route("one"))
    end = await outlived(bench.port)

    await bench.plane.stop()
    if bench.variant is Variant.DELTA:
        await answered_by(bench.port, "ConnectionRefusedError")
    else:
        await until(lambda: asyncio.get_running_loop().time() > end + 2 * LIFE)
        assert await who_answers(bench.port) == "one"


async def test_n5_listener_whose_ttl_was_removed_is_kept_without_the_server(bench: Any) -> None:
    """The same listener without a time to live is no longer removed (Resource.ttl)."""
    await bench.running()
    edition = listener(bench.port, edition=2)
    for one in (replace(edition, ttl_seconds=LIFE), edition):
        await bench.plane.update(*upstream("one", bench.one), one, route("one"))
    await bench.plane.stop()
    await outlived(bench.port)


def shown(port: int) -> bytes:
    """Return the certificate of a new connection."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=30).encode()


async def test_o7_secret_is_rotated_by_one_push_without_loss(
    bench: Any, tmp_path: Path, second_port: int
) -> None:
    """New connections get the new certificate, and no listener is replaced."""
    first, second = (Keys.make(tmp_path / name).tls for name in ("first", "second"))
    front = bench.front("one", bench.one, tls_listener(second_port, "cert"))
    bench.plane.publish(*front, secret("cert", first.chain, first.key))
    envoy = await bench.envoy()
    await bench.plane.settled()
    await answered_by(bench.port, "one")

    async def shows(chain: bytes) -> bool:
        with contextlib.suppress(ConnectionError):  # it is not listened at before the secret is there
            return (await asyncio.to_thread(shown, second_port)) in chain
        return False

    await until(lambda: shows(first.chain))
    async with Load(bench.port) as load:
        await bench.plane.update(*front, secret("cert", second.chain, second.key))
        await until(lambda: shows(second.chain))

    assert await envoy.stat("listener_manager.listener_modified") == 0
    assert load.failures == {}
