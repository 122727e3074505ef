"""The certificate at hand as proof: who holds it gets another one of the same name."""

from collections.abc import Callable
from datetime import datetime

from certs.ledger.entry import LedgerEntry
from meshwright.enrolment.proofs.contract import Entitlement, Evidence, ProofRefused
from meshwright.mesh.identity import ProxyName

KIND = "certificate"

HolderOf = Callable[[bytes, str], LedgerEntry]
"""Returns the entry of who may speak to the control plane with a certificate (PEM), from an address, by the
one path that looks at validity, serial and ledger for every RPC; raises ProofRefused with its reason."""


class CertificateProof:
    """Judges certificates as whoever serves proxies does."""

    kind = KIND

    def __init__(self, holder_of: HolderOf) -> None:
        self._holder_of = holder_of

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return whose certificate it is; another one lives as long as was asked of this one."""
        del now  # the path has the same clock
        if evidence.certificate is None:
            raise ProofRefused("no_certificate")
        entry = self._holder_of(evidence.certificate, evidence.address)
        name = ProxyName.parse(entry.common_name)
        return Entitlement(name, validity=entry.term, joined_by=entry.joined_by, serial=entry.serial)
