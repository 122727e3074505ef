"""The contract between who certifies and what entitles to a certificate.

A kind of proof is judged by a `Proof`. Ours are join tokens, Kubernetes ServiceAccount tokens and the
certificate at hand; others come by the entry point group `meshwright.proofs`: a callable without arguments
that returns a Proof. Which are accepted is the setting `enrolment_proofs`.
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
    """What was shown: `data` as the kind has it, with the digest of the key that is to be certified.

    `certificate` is that of the TLS connection (PEM), where one was asked for.
    """

    data: bytes = field(repr=False)
    key_digest: str
    address: str
    certificate: bytes | None = field(default=None, repr=False)


def _nothing() -> None:
    """Give nothing back."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What a proof entitles to: a proxy's name, or a proxy of a service, whose UUID follows from its key.

    `validity` is None where certificates live as long as is set. `proof` is for log and ledger: what was
    shown, by an id that is no secret, is the same each time, and is nobody else's; empty where there is none.
    A name that was come by with it, and then revoked, it does not give again; nor, if it is good `since` some
    moment, one that was revoked later. Of a certificate that was shown `joined_by` is what the ledger has,
    and `serial` its own: once that is revoked, it gives nothing. `give_back` is called, in a
    thread, where nothing comes of it.
    """

    holder: ProxyName | tuple[ServiceName, Namespace]
    proof: str = ""
    validity: timedelta | None = None
    since: datetime | None = None
    joined_by: str = ""
    serial: str = ""
    give_back: Callable[[], None] = _nothing


class ProofRefusal(enum.StrEnum):
    """Why a proof entitles nobody, where its kind has no words of its own; for our log."""

    KIND = "proof_kind_not_accepted"
    UNREADABLE = "proof_unreadable"
    NOT_AUTHENTICATED = "not_authenticated"
    NO_WORKLOAD = "no_workload"
    OTHER_POD = "other_pod"
    OTHER_WORKLOAD = "other_workload"
    PROXY_REVOKED = "proxy_revoked"


class ProofRefused(Exception):
    """A proof entitles nobody. `reason` is a word for log and metric, the message is for the log alone."""

    def __init__(self, reason: str, detail: str = "", proof: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.proof = proof


class ProofUndecided(Exception):
    """Whether a proof entitles cannot be told now: who would know does not answer. Later it may be."""


class ProofPending(ProofUndecided):
    """The same where nothing is wrong: whose proof it is will be known in a moment."""


class Proof(Protocol):
    """Judges one kind of proof."""

    @property
    def kind(self) -> str:
        """Return the kind, as requests name it."""

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return what this entitles to; raise ProofRefused, ProofUndecided, or enrolment.limits.Exhausted.

        To ask again with the same key and data must entitle to the same: answers get lost.
        """


@runtime_checkable
class RecognisableProof(Proof, Protocol):
    """A proof that can tell whoever holds one from a guesser, cheaply and without using anything up."""

    async def recognise(self, evidence: Evidence) -> str:
        """Return what the proof names, if it shows something that nobody can guess; else the empty text.

        The name is not secret. It entitles to nothing: `prove` is asked afterwards. Raises CertificateError.
        """
