"""Test of a rebuilt ledger, whose only source is the certificates that proxies present."""

from datetime import timedelta
from pathlib import Path

import pytest

from certs.ledger.rebuilding import RebuildingLedger
from certs.ledger.sqlite import SqliteLedger
from certs.peer import read_peer
from certs.proxy import issue_proxy
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from tests.unit.certs.ledger.entries import START, proxy

DAY = timedelta(days=1)
USUAL = 60 * DAY


@pytest.mark.parametrize(
    ("life", "term"),
    [
        (7 * DAY, 7 * DAY),
        (DAY, DAY),
        (365 * DAY, 365 * DAY),
        (USUAL, None),
        (41 * DAY + timedelta(hours=5), None),
        (timedelta(hours=12), None),
    ],
)
def test_unusual_validity_of_a_presented_certificate_becomes_its_requested_term(
    life: timedelta, term: timedelta | None, state: Path
) -> None:
    """Only whole days count as a request, because another validity was cut by the end of the CA."""
    authority = own_authority(state, TrustDomain("mesh.example"), START)
    with SqliteLedger.open(state / "lost") as lost, SqliteLedger.open(state / "kept") as kept:
        pem = issue_proxy(authority, lost, proxy("u1"), life, START).chain_pem
        rebuilding = RebuildingLedger(kept, lambda _: "aa", USUAL)
        shown = read_peer(pem)
        rebuilding.show(shown, pem, "10.0.0.1:5", START)
        rebuilding.confirm(shown.serial)
        (entry,) = kept.entries()
    assert (entry.term, entry.not_after) == (term, START + life)
