"""Stored certificates with keys: the interface of the store, and the rule for using one again."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NewType, Protocol

import structlog

from certs.contract import Issuer, Names, Usage
from certs.errors import CorruptPairError, IssuerError, StateError
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.pair import MAKING, KeyPairOptions, Pair, issue_pair
from certs.renewal import due
from meshwright.mesh.identity import ServiceIdentity

Holder = NewType("Holder", str)
"""Path of a pair in the store: words with slashes between them, which are valid file names."""

ADS_SERVER: Final = Holder("ads")
WEBHOOK: Final = Holder("webhook")

_OTHERS: Final = "its names are different"

_log = structlog.get_logger("certs.stored")


def holder_of(identity: ServiceIdentity) -> Holder:
    """Return the holder for a service identity, for example `services/shop/cart`.

    Namespace and account are DNS names, so they cannot contain a slash.
    """
    return Holder(f"services/{identity.namespace}/{identity.service_account}")


class Pairs(Protocol):
    """Store of pairs, one for each holder; `certs.state.pair_files` implements it with files.

    Unlike other stored data, an unreadable key is an error and not silently replaced, because the cause may
    be a mistake of the administrator. Safe to use from several threads and processes: a pair is replaced
    atomically, and the last writer wins. A power failure may lose or damage a pair stored just before.
    """

    def load(self, holder: Holder) -> Pair | None:
        """Return a holder's pair, or None without one.

        Raises CorruptPairError if the content is not a certificate with its key, StateError if it cannot be
        read.
        """

    def keep(self, holder: Holder, pair: Pair) -> None:
        """Store a pair privately and replace the holder's previous one.

        After a StateError the previous pair is unchanged.
        """

    def place(self, holder: Holder) -> str:
        """Return the location of a holder's pair for messages."""


@dataclass(frozen=True, slots=True)
class StoredPair:
    """A usable stored certificate with its key, or None; `due` is True if a renewal is due."""

    pair: Pair | None = None
    due: bool = False


def kept(
    pairs: Pairs,
    holder: Holder,
    issuer: Issuer,
    usage: Usage,
    names: Names,
    now: datetime,
    *,
    patient: bool = False,
) -> StoredPair:
    """Return the stored pair if it can still be used; otherwise the log has the reason.

    A corrupt pair causes only a warning, because the certificate can be issued again. An unreadable file (for
    example by its permissions) raises StateError, because a new pair could not be stored either. A pair with
    the same URI and other DNS names is due, but used until a new one is issued: peers verify the URI. For a
    `patient` caller no valid pair is due.
    """
    try:
        pair = pairs.load(holder)
    except CorruptPairError as error:
        _log.warning("stored certificate replaced", reason=str(error))
        return StoredPair()
    if pair is None:
        return StoredPair()
    known = pair.leaf.names
    others = bool(names.uris) and known.uris == names.uris and known.alternatives != names.alternatives
    reason = misfit(pair, usage, known if others else names, issuer.signing_bundle())
    fields = {"path": pairs.place(holder), "serial": pair.leaf.serial}
    if reason:
        _log.info("stored certificate replaced", **fields, reason=reason)
        return StoredPair()
    valid = pair.leaf.not_before <= now <= pair.leaf.not_after
    if (patient and valid) or not (others or due(pair.leaf, now)):
        return StoredPair(pair)
    _log.info("stored certificate replaced", **fields, reason=_OTHERS if others else "it is due for renewal")
    return StoredPair(pair, due=True) if valid else StoredPair()


def issued_pair(
    pairs: Pairs,
    holder: Holder,
    issuer: Issuer,
    usage: Usage,
    names: Names,
    lifetime: timedelta,
    now: datetime,
    making: KeyPairOptions = MAKING,
) -> tuple[Pair, str]:
    """Return a new pair, and the reason for a failed storing; empty if stored.

    The pair is returned in both cases: otherwise a full disk would stop the mesh when the previous
    certificate expires. Raises RequestError, IssuerError.
    """
    pair = issue_pair(issuer, usage, names, lifetime, now, making)
    try:
        pairs.keep(holder, pair)
    except StateError as error:
        return pair, str(error)
    return pair, ""


def kept_pair(
    pairs: Pairs,
    holder: Holder,
    issuer: Issuer,
    usage: Usage,
    names: Names,
    lifetime: Callable[[], timedelta],
    now: datetime,
    *,
    patient: bool = False,
) -> tuple[Pair, str | None]:
    """Return the stored pair if usable, otherwise a new one, which is stored.

    The second value is None for the stored pair; for a new pair it is the reason for a failed storing, or
    empty. A due pair is returned if the issuer cannot sign, or if the caller is `patient`. Raises
    RequestError, IssuerError, and StateError for an unreadable stored pair.
    """
    stored_pair = kept(pairs, holder, issuer, usage, names, now, patient=patient)
    if stored_pair.pair is not None and not stored_pair.due:
        return stored_pair.pair, None
    try:
        return issued_pair(pairs, holder, issuer, usage, names, lifetime(), now)
    except IssuerError as error:
        if stored_pair.pair is None:
            raise
        fields = {"path": pairs.place(holder), "until": stored_pair.pair.leaf.not_after.isoformat()}
        _log.error("stored certificate stays in use: a new one cannot be issued", **fields, reason=str(error))
        return stored_pair.pair, None


def misfit(pair: Pair, usage: Usage, names: Names, bundle_pem: bytes) -> str:
    """Return why a pair cannot be used for this purpose, whatever the time; empty if it can.

    The common name is not compared, because verifiers of the stored kinds ignore this name. The kind of key
    is not compared either: a new setting applies only to the next pair.
    """
    if not pair.leaf.serves(usage):
        return "its key usage is different"
    if pair.leaf.names.alternatives != names.alternatives:
        return _OTHERS
    if not is_signed_by_bundle(pair.chain_pem, bundle_pem):
        return "it lacks a chain to the root that signs now"
    return ""
