"""Proof by the present proxy certificate: the holder gets a new certificate for the same name."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from certs.ledger.entry import LedgerEntry
from meshwright.enrolment.proofs.contract import Entitlement, Evidence, ProofRefused
from meshwright.mesh.identity import ProxyName

KIND = "certificate"

HolderOf = Callable[[bytes, str], LedgerEntry]
"""Function from a certificate (PEM) and a client address to the ledger entry; raises ProofRefused.

This is the same check of validity, serial and ledger as for every RPC of the control plane.
"""


Prepare = Callable[[bytes, str], Awaitable[None]]
"""Function that gets the ledger entry of a certificate from other servers; raises ProofUndecided."""


async def _prepared(shown: bytes, address: str) -> None:
    """Return at once: a ledger that is not shared has all entries."""
    del shown, address


class CertificateProof:
    """Judge of the proxy certificate shown for a renewal, with the same check as for xDS clients."""

    kind = KIND

    def __init__(self, holder_of: HolderOf, prepare: Prepare = _prepared) -> None:
        self._holder_of = holder_of
        self._prepare = prepare

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return the name in the certificate.

        The new certificate gets the same validity as the present one.
        """
        del now  # `holder_of` has its own clock
        if evidence.certificate is None:
            raise ProofRefused("no_certificate")
        await self._prepare(evidence.certificate, evidence.address)
        entry = self._holder_of(evidence.certificate, evidence.address)
        name = ProxyName.parse(entry.common_name)
        return Entitlement(name, validity=entry.term, joined_by=entry.joined_by, serial=entry.serial)
