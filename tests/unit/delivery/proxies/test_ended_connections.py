"""Connections that were ended are counted one by one, and said once in a while."""

from meshwright.delivery.proxies.ended_connections import EndedConnections, EndedCount
from xds.hooks import Cause, Peer


def _peer(port: int) -> Peer:
    return Peer(None, f"ipv4:10.0.0.1:{port}")


def test_a_flood_is_one_line_now_and_one_with_the_rest_later() -> None:
    """The first at once, all others with their number ten seconds after it; then nothing is left."""
    ended = EndedConnections()
    ended.note(_peer(1), Cause.CROWD)
    assert ended.due(100.0) == (EndedCount(Cause.CROWD, 1, _peer(1)),)
    for port in range(2, 1000):
        ended.note(_peer(port), Cause.CROWD)
        assert ended.due(100.0 + port / 100) == ()
    assert ended.due(110.0) == (EndedCount(Cause.CROWD, 998, _peer(999)),)
    assert ended.due(200.0) == ()


def test_each_cause_is_said_for_itself() -> None:
    """One that is said often does not hide one that is said for the first time."""
    ended = EndedConnections()
    ended.note(_peer(1), Cause.CROWD)
    ended.due(100.0)
    ended.note(_peer(2), Cause.CROWD)
    ended.note(_peer(3), Cause.BYTES)
    assert ended.due(101.0) == (EndedCount(Cause.BYTES, 1, _peer(3)),)
