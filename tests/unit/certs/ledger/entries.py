"""Ledger entries for tests, as issue_proxy creates them."""

from datetime import UTC, datetime, timedelta
from typing import Final

from certs.ledger.entry import LedgerEntry
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName

START: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
YEAR: Final = timedelta(days=365)


def new_entry(serial: str, uuid: str = "u1", at: datetime = START) -> LedgerEntry:
    """Return an entry as issue_proxy makes it."""
    return LedgerEntry.issued(serial, proxy(uuid), at, at + YEAR)


def proxy(uuid: str) -> ProxyName:
    """Return a proxy's name."""
    return ProxyName(ProxyUuid(uuid), ServiceName("shop"), Namespace("default"))
