"""Tests of the agreement between the verdicts of one server and those in the records of proxies."""

from collections.abc import Iterable

from catalog.policy.units import UnitId
from meshwright.controller.sharing.rejections.agreement import ECHO_SECONDS, Agreement, VerdictChange
from meshwright.controller.sharing.rejections.feed import StoredRejections
from meshwright.delivery.quarantine.verdicts import Verdict
from tests.unit.transfer.meshes import verdict
from xds.cache import NodeKey

NODE = NodeKey("a1.cart.shop")


def _of(*units: str, times: int = 2) -> tuple[Verdict, ...]:
    return tuple(verdict(NODE, unit, times=times) for unit in units)


def _stored(count: int, *units: str, times: int = 2) -> StoredRejections:
    return StoredRejections(NODE, count, {item.unit: item for item in _of(*units, times=times)})


class Server:
    """An agreement, with a clock, and with the verdicts of its server."""

    def __init__(self, *units: str) -> None:
        self.now = 0.0
        self.agreement = Agreement(lambda: self.now)
        self.own: Iterable[Verdict] = _of(*units)
        self.is_served = True

    def changes(self) -> list[tuple[list[str], list[str]]]:
        """Return the units to be added to the record, and to be removed from it."""
        return [([item.unit for item in change.found], sorted(change.ended)) for change in self.differences()]

    def differences(self) -> tuple[VerdictChange, ...]:
        """Return the changes to be written."""
        return self.agreement.differences(self.own, lambda _: self.is_served)


def test_new_verdict_is_written_once() -> None:
    """After the write the server waits until it follows the write, and then nothing is left to do."""
    server = Server("a")
    assert server.changes() == [(["a"], [])]
    [change] = server.differences()
    server.agreement.written(change, _stored(3, "a"))
    assert (server.changes(), server.agreement.unwritten()) == ([], ())
    assert not server.agreement.hear(_stored(2)), "older than the write"
    assert server.agreement.hear(_stored(3, "a")) == VerdictChange(NODE, _of("a"))
    assert server.changes() == []


def test_write_that_is_never_followed_does_not_block_the_next_one() -> None:
    """For example, the store was restored to an older snapshot, whose counts are lower."""
    server = Server("a")
    [change] = server.differences()
    server.agreement.written(change, _stored(9, "a"))
    server.own = _of("a", "b")
    assert server.changes() == []
    server.now = ECHO_SECONDS
    assert server.changes() == [(["a", "b"], [])]
    assert server.agreement.hear(_stored(2, "c")).found == _of("c")


def test_server_of_the_proxy_ends_a_verdict() -> None:
    """Any other server keeps the verdict, although its own proxies do not have it."""
    server = Server()
    assert server.agreement.hear(_stored(1, "a")).found == _of("a")
    server.is_served = False
    assert server.changes() == []
    server.is_served = True
    assert server.changes() == [([], ["a"])]


def test_changes_of_other_servers_are_heard_as_differences() -> None:
    """A verdict that this server knows already is not reported again."""
    server = Server("a")
    server.agreement.hear(_stored(1, "a"))
    change = server.agreement.hear(_stored(2, "a", "b"))
    assert (change.found, change.ended) == (_of("b"), frozenset())
    change = server.agreement.hear(_stored(3, "b"))
    assert change == VerdictChange(NODE, ended=frozenset({UnitId("a")}))
    change = server.agreement.hear(StoredRejections(NODE))
    assert change == VerdictChange(NODE, ended=frozenset({UnitId("b")})), "the record is gone"


def test_count_of_rejections_is_written_until_it_changes_nothing() -> None:
    """From the seventh rejection in a row the pause stays the same."""
    server = Server("a")
    server.agreement.hear(_stored(1, "a", times=1))
    server.own = _of("a", times=6)
    assert server.changes() == [(["a"], [])]
    server.agreement.hear(_stored(2, "a", times=7))
    server.own = _of("a", times=900)
    assert server.changes() == []


def test_verdict_that_does_not_fit_is_tried_again_only_after_another_change() -> None:
    """Otherwise the server would write the record for ever."""
    server = Server("a", "b")
    [change] = server.differences()
    server.agreement.written(change, _stored(1, "a"))
    server.agreement.hear(_stored(1, "a"))
    assert server.changes() == []
    server.agreement.hear(_stored(2, "a", "c"))
    assert (["b"], ["c"]) in server.changes()


def test_verdict_stays_unwritten_when_its_proxy_leaves() -> None:
    """The store may be away for longer than the proxy is remembered."""
    server = Server("a")
    server.differences()
    server.own, server.is_served = (), False
    assert server.changes() == [(["a"], [])]
    assert server.agreement.unwritten() == _of("a")


def test_verdicts_of_an_earlier_run_are_written_unless_they_are_there() -> None:
    """The state directory has them, because the store was away at the end of the run."""
    server = Server()
    server.is_served = False
    server.agreement.hear(_stored(1, "a"))
    server.agreement.add_unwritten(_of("a", "b"))
    assert server.changes() == [(["b"], [])]
    assert server.agreement.verdicts() == _of("a")
