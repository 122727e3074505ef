"""Tests of ended connections: each is counted, and reports are combined over time."""

from meshwright.delivery.proxies.ended_connections import EndedConnections, EndedCount
from xds.hooks import Cause, Peer


def _peer(port: int) -> Peer:
    return Peer(None, f"ipv4:10.0.0.1:{port}")


def test_flood_of_ended_connections_is_reported_at_once_and_as_one_count() -> None:
    """The first connection is reported at once, the other 998 together ten seconds later."""
    ended = EndedConnections()
    ended.note(_peer(1), Cause.CROWD)
    assert ended.due(100.0) == (EndedCount(Cause.CROWD, 1, _peer(1)),)
    for port in range(2, 1000):
        ended.note(_peer(port), Cause.CROWD)
        assert ended.due(100.0 + port / 100) == ()
    assert ended.due(110.0) == (EndedCount(Cause.CROWD, 998, _peer(999)),)
    assert ended.due(200.0) == ()


def test_each_cause_is_reported_separately() -> None:
    """A frequent cause must not delay the first report of another cause."""
    ended = EndedConnections()
    ended.note(_peer(1), Cause.CROWD)
    ended.due(100.0)
    ended.note(_peer(2), Cause.CROWD)
    ended.note(_peer(3), Cause.BYTES)
    assert ended.due(101.0) == (EndedCount(Cause.BYTES, 1, _peer(3)),)
