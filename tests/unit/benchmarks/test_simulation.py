"""Tests of servers in simulated time: real code, a small mesh, and the counts of each scene."""

import asyncio
from dataclasses import replace

import pytest

from benchmarks.simulation.__main__ import arguments, server_bytes
from benchmarks.simulation.clock import NothingDueError, run
from benchmarks.simulation.fleet import Fleet, Size
from benchmarks.simulation.record_cost import RecordCost, record_cost
from benchmarks.simulation.scenes import Figures, join, play, roll_out

SMALL = Size(servers=3, services=20)
SEED = 7


async def _played(seed: int) -> tuple[Figures, ...]:
    return await play(Fleet(SMALL, seed))


@pytest.fixture(scope="module")
def figures() -> dict[str, Figures]:
    """Return the figures of all scenes of a small mesh."""
    return {scene.scene: scene for scene in run(_played(SEED))}


def test_same_seed_has_the_same_figures(figures: dict[str, Figures]) -> None:
    """Nothing depends on the machine."""
    assert run(_played(SEED)) == tuple(figures.values())


def test_all_servers_agree_after_each_scene(figures: dict[str, Figures]) -> None:
    """Each server lets all Pods get calls, whichever server their proxies are connected to."""
    assert {name: scene.is_agreed for name, scene in figures.items()} == dict.fromkeys(figures, True)


def test_proxy_that_joins_is_two_writes(figures: dict[str, Figures]) -> None:
    """One is for the certificate, and one for the first ACK; another is for the first proxy of the mesh."""
    proxies = SMALL.proxies
    assert figures["all join"].store["write"] == 2 * proxies + 1
    assert figures["a tenth is rolled out"].store["write"] == 2 * (proxies // 10)
    assert figures["all join"].counts["first resources"] == 16 * proxies


def test_proxies_that_move_write_nothing_and_get_their_endpoints_alone(figures: dict[str, Figures]) -> None:
    """No cluster, route or listener is sent again, and no record is written."""
    for name in ("a server is killed and back", "all servers are replaced"):
        scene = figures[name]
        assert scene.store.get("write", 0) == 0
        assert {word.split()[0] for word in scene.counts if word.endswith("pushes")} == {"moved"}
        moves = scene.counts["moved pushes"] // 3  # an empty one for clusters and listeners each
        assert scene.counts["moved resources"] == 5 * moves


def test_quiet_mesh_renews_its_presence_only(figures: dict[str, Figures]) -> None:
    """A minute without changes is about twelve renewals of each server, and nothing else."""
    scene = figures["quiet"]
    assert (scene.counts, set(scene.store)) == ({}, {"renewal"})
    assert 36 <= scene.store["renewal"] <= 39


def test_store_that_is_away_stops_joins_alone(figures: dict[str, Figures]) -> None:
    """Known proxies move while the store is away, and no proxy without news is told anything afterwards."""
    scene = figures["the store is away"]
    assert scene.counts["moved pushes"] == 3 * (SMALL.proxies // 50)
    assert scene.counts.get("news pushes", 0) == 0
    assert scene.store.get("write", 0) == 0


def test_news_are_told_within_a_second(figures: dict[str, Figures]) -> None:
    """From the first ACK of a proxy at one server until its callers at all others know of it."""
    assert max(scene.told[2] for scene in figures.values()) <= 1.3


async def _joined_with_lost_answers() -> tuple[bool, int, int]:
    fleet = Fleet(SMALL, SEED, lost_share=0.2)
    for _ in range(SMALL.servers):
        await fleet.start_server()
    await join(fleet)
    await roll_out(fleet)
    return fleet.is_agreed, fleet.store.counts["lost answer"], len(fleet.store.memory.records)


def test_lost_answers_lose_nothing() -> None:
    """A fifth of all writes is done without an answer: each proxy has one record, and all servers know it."""
    is_agreed, lost, records = run(_joined_with_lost_answers())
    assert (is_agreed, records) == (True, SMALL.proxies + SMALL.proxies // 10 + 1)
    assert lost > 10


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()


def test_tasks_that_wait_for_each_other_are_found() -> None:
    """Time cannot jump if no timer is due."""
    with pytest.raises(NothingDueError):
        run(_wait_for_ever())


def test_memory_of_a_server_is_a_sum() -> None:
    """Each server has the whole view and all records, but only its share of groups and streams."""
    size, cost = Size(30, 10_000), RecordCost(1000.0, 50.0)
    expected = 10_000 * 31_000 + 1000 * 55_000 + 1000 * 129_000 + 30_000 * 1000
    assert server_bytes(size, cost) == expected
    assert server_bytes(replace(size, servers=1), cost) > 10 * expected / 2


def test_record_has_a_cost() -> None:
    """The CPU time is that of this machine; the memory may be zero, if the heap had room."""
    cost = run(record_cost(50))
    assert cost.cpu_us > 0
    assert cost.bytes >= 0


def test_quick_run_is_small() -> None:
    """The default is the size of the table in the documents."""
    options = arguments([])
    assert (options.servers, options.services) == (30, 10_000)
    options = arguments(["--quick"])
    assert (options.servers, options.services) == (3, 100)
