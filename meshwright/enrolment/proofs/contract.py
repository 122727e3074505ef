"""Contract of proofs, which entitle a machine to a certificate.

Each kind of proof is judged by a `Proof`. Built in are join tokens, Kubernetes ServiceAccount tokens and the
present certificate. Other kinds can be installed as entry points in the group `meshwright.proofs`: a callable
without arguments that returns a Proof. The setting `enrolment_proofs` selects the accepted kinds.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ServiceName


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence in a request: `data` in the format of the kind, and the digest of the key to be certified.

    `certificate` is the client certificate of the TLS connection (PEM), if one was requested.
    """

    data: bytes = field(repr=False)
    key_digest: str
    address: str
    certificate: bytes | None = field(default=None, repr=False)


def _keep_proof() -> None:
    """Do nothing: default for a proof that is not used up."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    """Result of a proof: a proxy's name, or a service for a new proxy, with a UUID derived from the key.

    - `proof` identifies the proof in log and ledger. This id is public, unique, and the same each time, or
      empty if the kind lacks ids.
    - `validity` is `None` for the default validity.
    - `since` is the time from which the proof was valid. A name revoked later is not given again.
    - `joined_by` and `serial` belong to a certificate as proof. A revoked certificate entitles to nothing.
    - `give_back` is called in a thread if the certificate is not issued, for example to restore the use of a
      token.

    A revoked name is never given again for the same `proof`.
    """

    holder: ProxyName | tuple[ServiceName, Namespace]
    proof: str = ""
    validity: timedelta | None = None
    since: datetime | None = None
    joined_by: str = ""
    serial: str = ""
    give_back: Callable[[], None] = _keep_proof


class ProofRefusal(enum.StrEnum):
    """Reasons to refuse a proof, for kinds without reasons of their own; written to our log."""

    KIND = "proof_kind_not_accepted"
    UNREADABLE = "proof_unreadable"
    NOT_AUTHENTICATED = "not_authenticated"
    NO_WORKLOAD = "no_workload"
    OTHER_POD = "other_pod"
    OTHER_WORKLOAD = "other_workload"
    PROXY_REVOKED = "proxy_revoked"


class ProofRefused(Exception):
    """Error for a refused proof. `reason` is for log and metric; the message is only for the log."""

    def __init__(self, reason: str, detail: str = "", proof: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.proof = proof


class ProofUndecided(Exception):
    """Error for a proof that cannot be judged now, because a needed server does not respond.

    A retry may succeed.
    """


class ProofPending(ProofUndecided):
    """Error for a proof that cannot be judged yet, although no server fails: the data will arrive soon."""


class Proof(Protocol):
    """Judge of one kind of proof by which machines get certificates."""

    @property
    def kind(self) -> str:
        """Return the kind of proof, as written in join requests, for example `join-token`."""

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return the entitlement; raise ProofRefused, ProofUndecided or LimitExhausted.

        A repeated call with the same key and data must return the same result, because responses get lost.
        """


@runtime_checkable
class RecognisableProof(Proof, Protocol):
    """A proof with a cheap check that the sender is not guessing; the check never uses up the proof."""

    async def recognise(self, evidence: Evidence) -> str:
        """Return the name in the proof if the proof also shows an unguessable value.

        Else an empty text.

        The name is not secret and does not entitle to a certificate; `prove` is called afterwards. Raises
        CertificateError.
        """
