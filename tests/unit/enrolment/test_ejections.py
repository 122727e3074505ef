"""Who has ejected whom, as it was said last."""

from datetime import UTC, datetime, timedelta

from meshwright.enrolment.ejections import HOLDS, MOST, Ejections
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
ANN, BOB = ProxyName.parse("ann.shop.market"), ProxyName.parse("bob.shop.market")
A80, A90, B80 = HostPort("10.0.0.1", 80), HostPort("10.0.0.1", 90), HostPort("fd00::1", 80)


def test_the_last_word_counts_for_as_long_as_it_holds() -> None:
    """By address, sorted by who says it; nobody speaks for another."""
    ejections = Ejections()
    assert (ejections.by_address(NOW), ejections.count(NOW)) == ({}, 0)
    ejections.note(BOB, [A90, A80, A80], NOW)
    ejections.note(ANN, [B80, A80], NOW + timedelta(seconds=10))
    assert ejections.by_address(NOW) == {A80.host: (ANN, BOB), B80.host: (ANN,)}
    assert ejections.count(NOW) == 3
    assert ejections.by_address(NOW + HOLDS) == {A80.host: (ANN,), B80.host: (ANN,)}
    ejections.note(ANN, [], NOW)
    assert ejections.by_address(NOW) == {A80.host: (BOB,)}
    assert ejections.by_address(NOW + HOLDS) == {}


def test_what_one_says_is_bounded() -> None:
    """A proxy that says that all the world is ejected fills no memory."""
    ejections = Ejections()
    ejections.note(ANN, (HostPort(f"10.0.{each // 250}.{each % 250}", 80) for each in range(3 * MOST)), NOW)
    assert ejections.count(NOW) == MOST
