"""Tests of the first expiry of connected proxies' certificates, and of reads of the ledger."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.errors import StateError
from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from certs.peer import AdmittedPeer
from meshwright.delivery.proxies.expiry import IN_TURN, Expiry
from meshwright.delivery.proxies.held_certificates import HeldCertificates
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.proxies.shown_certificates import ShownCertificates
from meshwright.mesh.identity import ProxyName
from xds.cache import NodeKey
from xds.stream_status import Variant

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Fleet:
    """Proxies with certificates of a ledger; `asked` has the number of proxies in each read of it."""

    def __init__(self, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ledger = ledger
        self.now = NOW
        self.asked: list[int] = []
        self.registry = ProxyRegistry(lambda: self.now)
        self.shown = ShownCertificates()
        self._expiry = Expiry(self.registry, HeldCertificates(lambda _: None), ledger, self.shown)
        self._serials = iter(range(10_000))
        result = ledger.entries_of_all

        def entries_of_all(names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
            wanted = frozenset(names)
            self.asked.append(len(wanted))
            return result(wanted)

        monkeypatch.setattr(ledger, "entries_of_all", entries_of_all)

    def comes(self, number: int, hours: int, address: str = "ipv4:10.0.0.1:1") -> str:
        """Connect a proxy with a new certificate that is valid for some hours; return its serial."""
        serial, name = f"{next(self._serials):x}", ProxyName.parse(f"p{number}.shop.default")
        self.ledger.record(LedgerEntry.issued(serial, name, self.now, self.now + hours * HOUR))
        self.ledger.claim(serial, self.now)
        self.registry.opened(NodeKey(str(name)), address, Variant.DELTA)
        return serial

    def shows(self, number: int, serial: str) -> None:
        """Note that this server admitted a proxy with a certificate."""
        entry = self.ledger.entry(serial)
        assert entry is not None
        self.shown.note(AdmittedPeer(ProxyName.parse(f"p{number}.shop.default"), entry))

    def goes(self, number: int, address: str = "ipv4:10.0.0.1:1") -> None:
        """End a stream of a proxy."""
        self.registry.closed(NodeKey(f"p{number}.shop.default"), address)

    def left(self) -> float | None:
        """Return the hours until the first certificate expires."""
        seconds = self._expiry.seconds_left(self.now).get("proxy")
        return None if seconds is None else seconds / 3600


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """Return a fleet without proxies."""
    with SqliteLedger.open(tmp_path / "ledger.db") as ledger:
        yield Fleet(ledger, monkeypatch)


def test_first_expiry_is_that_of_connected_proxies(fleet: Fleet) -> None:
    """The last certificate that a proxy claimed counts, even while its earlier stream is open."""
    assert fleet.left() is None
    fleet.comes(1, hours=5)
    fleet.comes(2, hours=3)
    assert fleet.left() == 3
    fleet.now += HOUR
    assert fleet.left() == 2
    fleet.comes(2, hours=24, address="ipv4:10.0.0.1:2")
    assert fleet.left() == 4
    fleet.goes(1)
    assert fleet.left() == 24
    fleet.goes(2)
    fleet.goes(2, address="ipv4:10.0.0.1:2")
    assert fleet.left() is None


def test_ledger_is_read_for_one_in_twenty_known_proxies_at_each_look(fleet: Fleet) -> None:
    """Five of 100 proxies are read at each look, so that each is read once in twenty looks.

    If no certificate of a proxy is in force, the newest one counts.
    """
    serials = [fleet.comes(number, hours=10 + number) for number in range(100)]
    assert fleet.left() == 10
    for serial in serials[:50]:
        fleet.ledger.revoke(serial, fleet.now)
    later = LedgerEntry.issued("ffff", ProxyName.parse("p0.shop.default"), fleet.now, fleet.now + 99 * HOUR)
    fleet.ledger.record(later)
    fleet.ledger.claim("ffff", fleet.now)
    result = [fleet.left() for _ in range(IN_TURN)]
    assert fleet.asked == [100, *[5] * IN_TURN]
    assert result[-1] == 11, "of whom nothing is in force, the newest counts"


def test_failed_read_of_the_ledger_is_repeated_for_the_same_proxies(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the read succeeds, the known expiry stays."""
    fleet.comes(1, hours=5)
    assert fleet.left() == 5
    fleet.comes(2, hours=2)

    def refused(names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        raise StateError("no disk")

    with monkeypatch.context() as broken:
        broken.setattr(fleet.ledger, "entries_of_all", refused)
        assert fleet.left() == 5
    assert fleet.left() == 2


def test_certificate_shown_to_this_server_needs_no_read_of_the_ledger(fleet: Fleet) -> None:
    """100 proxies that connect at once cause no read; later they are read in turn like all others."""
    for number in range(100):
        fleet.shows(number, fleet.comes(number, hours=10 + number))
    assert fleet.left() == 10
    assert fleet.asked == [0]
    assert fleet.left() == 10
    assert fleet.asked == [0, 5]
    fleet.now += HOUR
    fleet.comes(77, hours=2, address="ipv4:10.0.0.1:2")
    assert fleet.left() == 2, "of whom nothing was shown, it is asked"
    assert fleet.asked == [0, 5, 6]


def test_newest_shown_certificate_counts(fleet: Fleet) -> None:
    """An agent may show a newer certificate during a stream, and a new stream may use an older one."""
    older = fleet.comes(1, hours=5)
    fleet.shows(1, older)
    assert fleet.left() == 5
    fleet.now += HOUR
    newer = LedgerEntry.issued("ffff", ProxyName.parse("p1.shop.default"), fleet.now, fleet.now + 24 * HOUR)
    fleet.ledger.record(newer)
    fleet.ledger.claim("ffff", fleet.now)
    fleet.shows(1, "ffff")
    fleet.shows(1, older)
    assert fleet.left() == 24
    fleet.registry.opened(NodeKey("p1.shop.default"), "ipv4:10.0.0.1:2", Variant.DELTA)
    fleet.shows(1, older)
    assert fleet.left() == 24
    assert fleet.asked == [0, 1, 1]


def test_certificate_shown_for_a_disconnected_proxy_does_not_count(fleet: Fleet) -> None:
    """An agent may renew its certificate while its Envoy is not connected."""
    serial = fleet.comes(1, hours=5)
    fleet.goes(1)
    fleet.shows(1, serial)
    assert fleet.left() is None
    fleet.comes(2, hours=7)
    assert fleet.left() == 7
