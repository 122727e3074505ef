"""Tests of the proof by the present certificate, which another server may have issued."""

from datetime import UTC, datetime, timedelta

import pytest

from certs.ledger.entry import LedgerEntry
from meshwright.enrolment.proofs.certificate import CertificateProof
from meshwright.enrolment.proofs.contract import Entitlement, Evidence, ProofRefused, ProofUndecided
from meshwright.mesh.identity import ProxyName

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
NAME = ProxyName.parse("u1.shop.market")
ENTRY = LedgerEntry.issued("1a", NAME, NOW, NOW + timedelta(days=1))
SHOWN = Evidence(b"", "", "10.0.0.1:5", b"pem")


class Ledger:
    """A ledger that has the entry after it was looked up at other servers."""

    def __init__(self, *, is_away: bool = False) -> None:
        self._is_away = is_away
        self._known: dict[bytes, LedgerEntry] = {}

    async def prepare(self, shown: bytes, address: str) -> None:
        """Look up the entry of a certificate."""
        if self._is_away:
            raise ProofUndecided("away")
        self._known[shown] = ENTRY

    def holder_of(self, shown: bytes, address: str) -> LedgerEntry:
        """Return the entry of a certificate that was looked up."""
        if shown not in self._known:
            raise ProofRefused("not_issued")
        return self._known[shown]


async def test_certificate_of_another_server_is_looked_up_before_it_is_judged() -> None:
    """A machine may join at one server and renew or report at another a moment later."""
    ledger = Ledger()
    proof = CertificateProof(ledger.holder_of, ledger.prepare)
    assert await proof.prove(SHOWN, NOW) == Entitlement(NAME, serial="1a")


async def test_certificate_that_cannot_be_looked_up_is_undecided() -> None:
    """A refusal would make the machine's agent give up its certificate."""
    ledger = Ledger(is_away=True)
    with pytest.raises(ProofUndecided):
        await CertificateProof(ledger.holder_of, ledger.prepare).prove(SHOWN, NOW)


async def test_ledger_that_is_not_shared_needs_no_look_up() -> None:
    """Its server knows all certificates of its CA."""
    with pytest.raises(ProofRefused, match="not_issued"):
        await CertificateProof(Ledger().holder_of).prove(SHOWN, NOW)
