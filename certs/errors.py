"""Errors of certificates, by the side that can repair them.

    CertificateError
    ├── StateError          this machine: the state directory, a file in it, the ledger
    │   ├── CorruptPairError    an unusable stored certificate with key (can be issued again)
    │   ├── DamagedError        a ledger file damaged beyond reading
    │   └── UnwrittenError      a revocation lost at a restart (certs.ledger.contract)
    ├── IssuerError         the issuer cannot sign: expired CA, or unreachable
    ├── RequestError        the requester: a name unfit for a certificate, an unknown serial
    └── PeerRefused         the remote side: unacceptable certificate

Every message is one sentence for people, without secrets.
"""

import enum


class CertificateError(Exception):
    """Base class of this package's errors; `str()` is one clear sentence."""


class StateError(CertificateError):
    """The state directory or its content is unusable, and must be repaired on this machine."""


class CorruptPairError(StateError):
    """A stored certificate and key are unreadable or do not match."""


class DamagedError(StateError):
    """The ledger file is damaged or is not a ledger, so the content is lost."""


class IssuerError(CertificateError):
    """The issuer cannot sign now; issued certificates stay valid until they expire."""


class RequestError(CertificateError, ValueError):
    """The request is impossible; the message has the value and a valid form."""


class RefusalReason(enum.StrEnum):
    """The reason for refusing a peer; stable, for logs and metrics."""

    UNREADABLE = "unreadable"
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"
    WRONG_USAGE = "wrong_usage"
    BAD_COMMON_NAME = "bad_common_name"
    NOT_ISSUED = "not_issued"
    REVOKED = "revoked"
    UNCLAIMED = "unclaimed_too_long"
    NAME_MISMATCH = "name_mismatch"
    RETIRED_ROOT = "retired_root"


class PeerRefused(CertificateError):
    """A peer's certificate is not accepted; `reason` is for metrics, the message only for the log."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
