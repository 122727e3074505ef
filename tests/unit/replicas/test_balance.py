"""Tests of the balance of streams between servers: by numbers of one moment, and over many seconds."""

import pytest

from meshwright.records.contract import ReplicaId
from meshwright.replicas.balance import Obstacle, Share, share
from meshwright.replicas.state import ReplicaState
from tests.unit.replicas.fleet import Fleet

A, B, C = map(ReplicaId, "abc")


def ready(streams: int, version: str = "1") -> ReplicaState:
    """Return the state of a ready server."""
    return ReplicaState(version=version, is_ready=True, streams=streams)


@pytest.mark.parametrize(
    ("streams", "mean", "is_exceeded", "ending"),
    [
        (1500, 1500.0, False, 0),
        (1650, 1500.0, False, 0),  # 10 % above are allowed
        (1651, 1500.0, True, 11),
        (2250, 1500.0, True, 45),  # at most 2 % of its own
        (130, 100.0, False, 0),  # three standard deviations of chance
        (131, 100.0, True, 3),
        (19, 10.0, False, 0),
        (20, 10.0, True, 1),
        (0, 0.0, False, 0),
        (1, 0.5, False, 0),
    ],
)
def test_server_ends_some_of_the_streams_above_its_share(
    streams: int, mean: float, is_exceeded: bool, ending: int
) -> None:
    """What chance explains stays; above that, a part of the streams above the mean ends each second."""
    result = Share(streams, mean)
    assert (result.is_exceeded, result.ending) == (is_exceeded, ending)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({B: ready(50), C: ready(0)}, Share(400, 150.0)),
        ({B: ready(0), C: ReplicaState(version="1", streams=7)}, Share(400, 200.0)),
        ({B: ready(0), C: ReplicaState(version="0")}, Share(400, 200.0)),
        ({}, Obstacle.ALONE),
        ({B: ReplicaState(version="1")}, Obstacle.ALONE),
        ({B: ready(0), C: None}, Obstacle.UNREADABLE),
        ({B: ready(0), C: ready(0, "2")}, Obstacle.VERSIONS),
        ({B: ready(0), C: ReplicaState(version="1", is_stopping=True)}, Obstacle.STOPPING),
    ],
)
def test_server_compares_itself_with_the_ready_ones(
    others: dict[ReplicaId, ReplicaState | None], expected: Share | Obstacle
) -> None:
    """Servers that are not ready do not count, and no proxy is moved while the numbers will change anyway."""
    assert share(A, {A: ready(400), **others}, 10.0) == expected


def test_server_that_knows_too_little_keeps_its_streams() -> None:
    """A server that is not ready, or only just, or that cannot ask the store, ends no streams."""
    states = {A: ready(400), B: ready(0)}
    assert share(A, states, 9.9) is Obstacle.NOT_READY
    assert share(A, {**states, A: ReplicaState(version="1", streams=400)}, 60.0) is Obstacle.NOT_READY
    assert share(C, states, 60.0) is Obstacle.NOT_READY
    assert share(A, states, 60.0, is_store_away=True) is Obstacle.STORE
    assert isinstance(share(A, states, 60.0), Share)


def killed_and_back(fleet: Fleet) -> None:
    """Kill a server, and start another one 20 s later."""
    fleet.kill(fleet.names()[0])
    fleet.run(20)
    fleet.start(0)


def restarted(fleet: Fleet) -> None:
    """Stop each server in order, and start another one after it."""
    for name in fleet.names():
        fleet.stop((name,))
        fleet.start(10)
        fleet.run(50)


def replaced(fleet: Fleet) -> None:
    """Start a server before each one that is stopped."""
    for name in fleet.names():
        fleet.start(5)
        fleet.run(10)
        fleet.stop((name,))
        fleet.run(15)


def all_replaced(fleet: Fleet) -> None:
    """Start all new servers, then stop all old ones."""
    old = fleet.names()
    for _ in old:
        fleet.start(5)
    fleet.run(15)
    fleet.stop(old)


@pytest.mark.parametrize("said_every", [5, 15])
def test_server_that_comes_back_gets_its_share(said_every: int) -> None:
    """A minute later all have their share, also if the servers hear each other's numbers late."""
    fleet = Fleet(3, 1500, said_every=said_every)
    killed_and_back(fleet)
    assert fleet.run(600, lambda: fleet.most < 1.15 * 1500) < 75
    fleet.run(300)
    assert fleet.most <= 1.101 * 1500
    assert fleet.fullest < 1.56 * 1500
    assert fleet.ended["shed"] < 1.1 * 3 * 1500
    fleet.forget()
    fleet.run(100)
    assert (fleet.ended["shed"], fleet.fullest) == (0, fleet.most)


def test_restarted_servers_get_their_share() -> None:
    """The last one has none at first, because each stop sends all its proxies to the others."""
    fleet = Fleet(3, 1500)
    restarted(fleet)
    assert fleet.run(600, lambda: fleet.most < 1.15 * 1500) < 60
    assert fleet.fullest < 1.9 * 1500
    assert fleet.ended["shed"] < 2.5 * 3 * 1500


def test_servers_replaced_one_by_one_stay_near_their_share() -> None:
    """Each new server is filled before the next old one ends."""
    fleet = Fleet(10, 1000)
    replaced(fleet)
    assert fleet.fullest < 1.4 * 1000
    assert fleet.ended["shed"] < 4 * 10 * 1000


def test_servers_replaced_together_move_almost_no_proxy_twice() -> None:
    """If all new servers are here before the first old one ends, each proxy chooses among all of them."""
    fleet = Fleet(30, 1000)
    all_replaced(fleet)
    fleet.run(100)
    assert fleet.fullest < 1.15 * 1000
    assert fleet.ended["shed"] < 0.3 * 30 * 1000


@pytest.mark.parametrize(("scene", "fullest"), [(killed_and_back, 1.4), (restarted, 1.7), (replaced, 1.3)])
def test_without_the_balance_servers_stay_uneven(scene: object, fullest: float) -> None:
    """The control of the tests above: proxies that stay where they are do not even out."""
    fleet = Fleet(3, 1500, sheds=False)
    assert callable(scene)
    scene(fleet)
    fleet.run(600)
    assert fleet.most > fullest * 1500


@pytest.mark.parametrize("each", [1, 10, 100, 1000])
def test_chance_is_not_chased(each: int) -> None:
    """Proxies that chose at random stay where they are, up to the rare case that is outside of chance."""
    ended = 0
    for seed in range(10):
        fleet = Fleet(3, each, seed=seed)
        fleet.run(60)
        ended += fleet.ended["shed"]
    assert ended <= 0.02 * 10 * 3 * each
