"""Evidence in shared records that a mesh has a CA, although the record with the CA is missing. A pure module.

A start must not make another CA then: every proxy would need a new certificate, and the cause would be
hidden.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from certs.authority_records.data_key import SEAL
from certs.authority_records.fields import AUTHORITY


@dataclass(frozen=True, slots=True)
class CaEvidence:
    """Evidence of a CA in other records: its fingerprints in the ledger, and the numbers of records."""

    fingerprints: frozenset[str] = field(default_factory=frozenset)
    proxies: int = 0
    services: int = 0

    @classmethod
    def of(cls, fingerprints: Iterable[str | None], proxies: int, services: int) -> "CaEvidence":
        """Return the evidence; None and empty texts are no fingerprints."""
        return cls(frozenset(text for text in fingerprints if text), proxies, services)

    def loss(self, has_seal: bool) -> str | None:
        """Return a sentence about the lost CA, or None if there has been no CA.

        `has_seal` is True if the store still has the data key.
        """
        if not (self.fingerprints or self.proxies or self.services):
            return None
        lost = (
            f"the record {AUTHORITY} with the CA is missing"
            if has_seal
            else (f"the records {SEAL} and {AUTHORITY} with the data key and the CA are missing")
        )
        named = " and ".join(sorted(self.fingerprints)) or "unknown"
        return (
            f"{lost}, but the shared ledger belongs to the CA with the fingerprint {named}, and has records "
            f"of {self.proxies} proxies and {self.services} services: restore the missing records from "
            "a backup (in Kubernetes: the Secret meshwright-custody), or wait until a running server has "
            "written them again. Without either the CA is lost: to begin anew, remove all records of the mesh"
        )
