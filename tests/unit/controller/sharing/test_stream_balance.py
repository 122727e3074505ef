"""Tests of the balance of streams on one server: what it says to the others, and what it ends and logs."""

from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from meshwright.controller.sharing.stream_balance import StreamBalance
from meshwright.records.contract import ReplicaId
from meshwright.replicas.balance import Obstacle, Share
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState

HERE, THERE = ReplicaId("here"), ReplicaId("there")


@dataclass
class Driver:
    """A driver's streams, of which only so many are old enough to end."""

    streams: int
    old: int = 10**6
    youngest: list[float] = field(default_factory=list)

    def end_oldest(self, count: int, youngest_seconds: float) -> int:
        """End streams."""
        self.youngest.append(youngest_seconds)
        ended = min(count, self.streams, self.old)
        self.streams -= ended
        self.old -= ended
        return ended


class Server:
    """One server with drivers, and another one that says what it has."""

    def __init__(self, *drivers: Driver, version: str = "1") -> None:
        self.drivers = drivers
        self.now = 100.0
        self.missing = list[str]()
        self.is_stopping = False
        self.is_store_away = False
        self.moved = list[int]()
        self.membership = Membership(HERE, ReplicaState(version=version))
        self.balance = StreamBalance(
            self.membership,
            lambda: self.drivers,
            lambda: self.missing,
            is_stopping=lambda: self.is_stopping,
            is_store_away=lambda: self.is_store_away,
            moved=self.moved.append,
            monotonic=lambda: self.now,
        )

    def hear(self, state: ReplicaState) -> None:
        """Hear the state of the other server."""
        self.membership.hear({THERE: state.encode()})

    def pass_seconds(self, seconds: int) -> Share | Obstacle:
        """Compare once a second; return the last result."""
        for _ in range(seconds):
            self.now += 1.0
            result = self.balance.compare()
        return result


def other(streams: int, version: str = "1") -> ReplicaState:
    """Return the state of the other server."""
    return ReplicaState(version=version, is_ready=True, streams=streams)


def test_server_says_how_many_streams_it_has_and_whether_it_is_ready() -> None:
    """The others hear the streams of all drivers, and hear at once that the server stops."""
    server = Server(Driver(7), Driver(3))
    server.missing = ["first read of the sources"]
    server.balance.compare()
    before = server.membership.own
    server.missing.clear()
    server.balance.compare()
    ready = server.membership.own
    server.missing, server.is_stopping = ["stopping"], True
    server.balance.compare()
    assert (before, ready, server.membership.own) == (
        ReplicaState(version="1", streams=10),
        ReplicaState(version="1", streams=10, is_ready=True),
        ReplicaState(version="1", streams=10, is_stopping=True),
    )


def test_server_with_too_many_streams_ends_some_each_second() -> None:
    """It waits until it has been ready for ten seconds; streams below the allowed number stay."""
    driver = Driver(2000)
    server = Server(driver)
    server.hear(other(1000))
    assert server.pass_seconds(10) is Obstacle.NOT_READY
    assert server.moved == []
    server.pass_seconds(2)
    assert server.moved == [34, 33]
    server.pass_seconds(600)
    assert (sum(server.moved), driver.streams) == (2000 - driver.streams, 2000 - sum(server.moved))
    assert 1.08 * 1000 < driver.streams < 1.12 * (driver.streams + 1000) / 2
    assert set(driver.youngest) == {30.0}


def test_beginning_and_end_are_logged_once() -> None:
    """An operator sees two lines, not one for each stream or second."""
    server = Server(Driver(2000))
    server.hear(other(1000))
    with capture_logs() as logs:
        server.pass_seconds(300)
    moved = sum(server.moved)
    assert logs == [
        {
            "event": "more proxies than the fair share are connected here; some are moved to other servers",
            "log_level": "info",
            "streams": 2000,
            "fair_share": 1500,
        },
        {
            "event": "no more proxies are moved to other servers",
            "log_level": "info",
            "reason": "this server has its share",
            "moved": moved,
        },
    ]


def test_young_streams_are_not_counted_as_moved() -> None:
    """Streams that were not old enough go on, and the next driver's are tried."""
    first, second = Driver(1500, old=5), Driver(500)
    server = Server(first, second)
    server.hear(other(0))
    server.pass_seconds(11)
    assert (server.moved, first.streams, second.streams) == ([40], 1495, 465)


@pytest.mark.parametrize("change", ["store", "version", "stopping", "missing"])
def test_streams_stay_while_the_comparison_could_be_wrong(change: str) -> None:
    """The log says why no more streams are moved."""
    server = Server(Driver(2000))
    server.hear(other(0))
    server.pass_seconds(12)
    assert len(server.moved) == 2
    match change:
        case "store":
            server.is_store_away, reason = True, Obstacle.STORE
        case "version":
            server.hear(other(0, "2"))
            reason = Obstacle.VERSIONS
        case "stopping":
            server.hear(ReplicaState(version="1", is_stopping=True))
            reason = Obstacle.STOPPING
        case _:
            server.missing, reason = ["sidecar driver envoy"], Obstacle.NOT_READY
    with capture_logs() as logs:
        assert server.pass_seconds(5) is reason
    assert len(server.moved) == 2
    assert [log["reason"] for log in logs] == [reason.value]
