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
    """Store of pairs, one for each holder.

    `certs.state.pair_files` implements it with files, and `certs.pair_records` with records that several
    servers share, for services only.

    Unlike other stored data, an unreadable key is an error and not silently replaced, because the cause may
    be a mistake of the administrator. Several threads, and the servers of one store, may use it at once: a
    pair is replaced atomically, and only in the place of the pair that the writer has seen. A power failure
    may lose or damage a pair stored just before.
    """

    def load(self, holder: Holder) -> Pair | None:
        """Return a holder's pair, or None without one.

        Raises CorruptPairError if the content is not a certificate with its key, StateError if it cannot be
        read.
        """

    def keep(self, holder: Holder, pair: Pair, before: str | None) -> Pair:
        """Store a pair privately in the place of the one with the serial `before`; return the stored pair.

        `before` is None if the caller has seen no pair. If another pair is stored, that one stays and is
        returned: the first writer wins, and the others take its pair. A removed or corrupt pair does not
        count. After a StateError the previous pair is unchanged.
        """

    def place(self, holder: Holder) -> str:
        """Return the location of a holder's pair for messages."""

    def services_end(self) -> datetime | None:
        """Return the latest end of all service certificates, or None without any. Raises StateError."""

    def last_end(self) -> datetime | None:
        """Return the latest end of all certificates, including those of servers, or None without any."""


@dataclass(frozen=True, slots=True)
class StoredPair:
    """A usable stored certificate with its key, or None; `due` is True if a renewal is due.

    `seen` is the serial of the stored certificate, usable or not, which a new one replaces; None without one.
    """

    pair: Pair | None = None
    due: bool = False
    seen: str | None = None


@dataclass(frozen=True, slots=True)
class IssuedPair:
    """The pair to use after an issuance. `unkept` is the reason for a failed storing, empty if stored.

    `is_new` is False if another server has stored a usable pair meanwhile; its pair is used, and the new key
    is forgotten.
    """

    pair: Pair
    unkept: str = ""
    is_new: bool = True


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
    return _judged(pair, pairs.place(holder), issuer, usage, names, now, patient=patient)


def _judged(
    pair: Pair, place: str, issuer: Issuer, usage: Usage, names: Names, now: datetime, *, patient: bool
) -> StoredPair:
    """Return whether a stored pair can still be used; the log has the reason if it is to be replaced."""
    known, serial = pair.leaf.names, pair.leaf.serial
    others = bool(names.uris) and known.uris == names.uris and known.alternatives != names.alternatives
    reason = misfit(pair, usage, known if others else names, issuer.signing_bundle())
    fields = {"path": place, "serial": serial}
    if reason:
        _log.info("stored certificate replaced", **fields, reason=reason)
        return StoredPair(seen=serial)
    valid = pair.leaf.not_before <= now <= pair.leaf.not_after
    if (patient and valid) or not (others or due(pair.leaf, now)):
        return StoredPair(pair, seen=serial)
    _log.info("stored certificate replaced", **fields, reason=_OTHERS if others else "it is due for renewal")
    return StoredPair(pair, due=True, seen=serial) if valid else StoredPair(seen=serial)


def issued_pair(
    pairs: Pairs,
    holder: Holder,
    issuer: Issuer,
    usage: Usage,
    names: Names,
    lifetime: timedelta,
    now: datetime,
    making: KeyPairOptions = MAKING,
    *,
    before: str | None,
) -> IssuedPair:
    """Return a new pair, stored in the place of the one with the serial `before`, or the pair to use instead.

    If another server has stored a usable pair first, its pair is used, so that all servers show one
    certificate. A pair that cannot be stored is returned too: otherwise a full disk would stop the mesh when
    the previous certificate expires. Raises RequestError, IssuerError.
    """
    pair = issue_pair(issuer, usage, names, lifetime, now, making)
    try:
        while (there := pairs.keep(holder, pair, before)).leaf.serial != pair.leaf.serial:
            stored_pair = _judged(there, pairs.place(holder), issuer, usage, names, now, patient=False)
            if stored_pair.pair is not None and not stored_pair.due:
                return IssuedPair(stored_pair.pair, is_new=False)
            before = stored_pair.seen
    except StateError as error:
        return IssuedPair(pair, str(error))
    return IssuedPair(pair)


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
    before = stored_pair.seen
    try:
        issued = issued_pair(pairs, holder, issuer, usage, names, lifetime(), now, before=before)
    except IssuerError as error:
        if stored_pair.pair is None:
            raise
        fields = {"path": pairs.place(holder), "until": stored_pair.pair.leaf.not_after.isoformat()}
        _log.error("stored certificate stays in use: a new one cannot be issued", **fields, reason=str(error))
        return stored_pair.pair, None
    return issued.pair, issued.unkept if issued.is_new else None


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
