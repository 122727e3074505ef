"""Tests of ejections: the endpoints that each proxy last reported as ejected."""

from datetime import UTC, datetime, timedelta

from meshwright.enrolment.ejections import HOLDS, MOST, Ejections
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
ANN, BOB = ProxyName.parse("ann.shop.market"), ProxyName.parse("bob.shop.market")
A80, A90, B80 = HostPort("10.0.0.1", 80), HostPort("10.0.0.1", 90), HostPort("fd00::1", 80)


def test_last_report_of_each_proxy_counts_until_it_expires() -> None:
    """Ejections are listed by address with their reporters; a report replaces only its proxy's last one."""
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


def test_ejections_of_one_proxy_are_limited_in_number() -> None:
    """A proxy that reports countless ejections must not fill the memory."""
    ejections = Ejections()
    ejections.note(ANN, (HostPort(f"10.0.{each // 250}.{each % 250}", 80) for each in range(3 * MOST)), NOW)
    assert ejections.count(NOW) == MOST
