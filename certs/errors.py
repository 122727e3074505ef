"""What can go wrong with certificates, by who must mend it.

    CertificateError
    ├── StateError          this machine: the state directory, a file in it, the ledger
    │   ├── CorruptPairError    a stored certificate with its key that cannot be used (it can be issued again)
    │   ├── DamagedError        a ledger's file that is no ledger any more
    │   └── UnwrittenError      a revocation that a restart would forget; certs.ledger.contract has it
    ├── IssuerError         the issuer cannot sign: its CA has expired (later: it cannot be reached)
    ├── RequestError        whoever asked: a name that cannot be certified, a serial nobody knows
    └── PeerRefused         the remote side: its certificate does not let it in

Every message is one sentence for people, and holds nothing secret.
"""

import enum


class CertificateError(Exception):
    """Root of this package's errors; `str()` is one clear sentence."""


class StateError(CertificateError):
    """The state directory, or something in it, is not as it must be: mend it on this machine."""


class CorruptPairError(StateError):
    """A stored certificate and key cannot be read or do not belong together."""


class DamagedError(StateError):
    """The ledger's file is damaged, or is no ledger: what it knew is lost."""


class IssuerError(CertificateError):
    """The issuer cannot sign now; what was issued before stays good until it expires."""


class RequestError(CertificateError, ValueError):
    """What was asked for is not possible; the message names the value and what would be right."""


class RefusalReason(enum.StrEnum):
    """Why a peer is refused; stable, for logs and metrics."""

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
    """A peer's certificate does not let it in; `reason` is for metrics, the message for the log only."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
